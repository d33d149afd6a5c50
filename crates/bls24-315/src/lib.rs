#![doc = include_str!("../README.md")]

pub mod g1;

use ark_ff::{Fp256, Fp320, MontBackend};

/// The configuration of the base field.
#[derive(Debug, ark_ff::MontConfig)]
#[modulus = "39705142709513438335025689890408969744933502416914749335064285505637884093126342347073617133569"]
#[generator = "13"]
pub struct FqConfig;

/// The base field: 315 bits.
pub type Fq = Fp320<MontBackend<FqConfig, 5>>;

/// The configuration of the scalar field.
#[derive(Debug, ark_ff::MontConfig)]
#[modulus = "11502027791375260645628074404575422495959608200132055716665986169834464870401"]
#[generator = "7"]
pub struct FrConfig;

/// The scalar field: 253 bits, of two-adicity 22.
pub type Fr = Fp256<MontBackend<FrConfig, 4>>;
