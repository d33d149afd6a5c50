//! The fields that the suite runs over: the first-class ones of this slice, and one of each shape of modulus.

use ark_ff::{Fp2, Fp2Config, Fp64, Fp256, Fp768, MontBackend, MontFp, SmallFp};
use evariste::field::small::Goldilocks;

/// Whether trials run over every field and curve, and not over one of each shape alone. What is left out is compiled,
/// as far as types go, but for no field.
pub const EVERY_FIELD: bool = cfg!(feature = "every-field");

/// 2^16 − 15: half a limb.
#[derive(ark_ff::MontConfig)]
#[modulus = "65521"]
#[generator = "17"]
pub(crate) struct SixteenConfig;
pub(crate) type Sixteen = Fp64<MontBackend<SixteenConfig, 1>>;

/// 15 · 2^27 + 1 in arkworks' type for small primes.
#[derive(ark_ff::SmallFpConfig)]
#[modulus = "2013265921"]
#[generator = "31"]
pub(crate) struct SmallBabyBearConfig;
pub(crate) type SmallBabyBear = SmallFp<SmallBabyBearConfig>;

/// 2^64 − 2^32 + 1 in arkworks' type for small primes.
#[derive(ark_ff::SmallFpConfig)]
#[modulus = "18446744069414584321"]
#[generator = "7"]
pub(crate) struct SmallGoldilocksConfig;
pub(crate) type SmallGoldilocks = SmallFp<SmallGoldilocksConfig>;

/// x² = 7 over 2^64 − 2^32 + 1, in arkworks' type for quadratic extensions.
pub(crate) struct Goldilocks2Config;
pub(crate) type Goldilocks2 = Fp2<Goldilocks2Config>;

impl Fp2Config for Goldilocks2Config {
    type Fp = Goldilocks;

    const NONRESIDUE: Goldilocks = MontFp!("7");
    const FROBENIUS_COEFF_FP2_C1: &[Goldilocks] = &[MontFp!("1"), MontFp!("-1")];
}

/// The base field of secp256k1: eight limbs whose sums carry out, and no two-adicity.
#[derive(ark_ff::MontConfig)]
#[modulus = "115792089237316195423570985008687907853269984665640564039457584007908834671663"]
#[generator = "3"]
pub(crate) struct Secp256k1Config;
pub(crate) type Secp256k1 = Fp256<MontBackend<Secp256k1Config, 4>>;

/// The scalar field of MNT4-753: 24 limbs.
#[derive(ark_ff::MontConfig)]
#[modulus = "41898490967918953402344214791240637128170709919953949071783502921025352812571106773058893763790338921418070971888458477323173057491593855069696241854796396165721416325350064441470418137846398469611935719059908164220784476160001"]
#[generator = "17"]
pub(crate) struct Mnt4Config;
pub(crate) type Mnt4 = Fp768<MontBackend<Mnt4Config, 12>>;

/// 2^89 − 1: three limbs.
#[derive(ark_ff::MontConfig)]
#[modulus = "618970019642690137449562111"]
#[generator = "3"]
pub(crate) struct Mersenne89Config;
pub(crate) type Mersenne89 = ark_ff::Fp128<MontBackend<Mersenne89Config, 2>>;
