use ark_ec::{
    AffineRepr, CurveConfig, CurveGroup, PrimeGroup,
    hashing::{
        HashToCurve as _,
        curve_maps::wb::{IsogenyMap, WBConfig, WBMap},
        map_to_curve_hasher::{MapToCurve as _, MapToCurveBasedHasher},
    },
    short_weierstrass::{Affine, Projective, SWCurveConfig},
};
use ark_ff::{
    AdditiveGroup, Field, Fp2, Fp2Config, Fp64, Fp256, MontBackend, MontConfig, MontFp, PrimeField, UniformRand, Zero,
    field_hashers::DefaultFieldHasher,
};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use evariste_backend::{Device, Error as DeviceError};
use evariste_curve::{CurveConstant, CurveError, DeviceCurve};
use evariste_field::{
    Mont,
    small::{BabyBear, BabyBear2, Goldilocks},
};
use num_bigint::BigUint;

use crate::{
    config::{RootChoice, SqrtConfig},
    decompress::{Check, Decompress, DecompressConfig, Encoding},
    error::{Error, PointError},
    hash_to_curve::HashToCurve,
    map::MapToCurve,
    membership::Membership,
    method::Method,
    nth_root::NthRoot,
    plan::Sqrt,
    reference,
    root_field::RootField,
};

mod constants;
mod hashing;
mod points;
mod queues;
mod roots;

use roots::sample;

macro_rules! primes {
    ($($name:ident $config:ident $modulus:literal $generator:literal)*) => {$(
        #[derive(MontConfig)]
        #[modulus = $modulus]
        #[generator = $generator]
        struct $config;
        type $name = Fp64<MontBackend<$config, 1>>;
    )*};
}

// The smallest prime of each class modulo 16, those of more than one digit of a logarithm excepted.
primes! {
    F3 C3 "3" "2"
    F5 C5 "5" "2"
    F7 C7 "7" "3"
    F11 C11 "11" "2"
    F13 C13 "13" "2"
    F17 C17 "17" "3"
    F19 C19 "19" "2"
    F31 C31 "31" "3"
    F37 C37 "37" "2"
    F41 C41 "41" "6"
    F97 C97 "97" "5"
    F101 C101 "101" "2"
    F163 C163 "163" "2"
    F251 C251 "251" "6"
    // The configured generator is 6², by which arkworks has no root of unity of order 16, and square roots that never
    // end.
    Square17 CSquare17 "17" "2"
    Composite CComposite "15" "2"
}

/// 2^251 + 17 · 2^192 + 1.
#[derive(MontConfig)]
#[modulus = "3618502788666131213697322783095070105623107215331596699973092056135872020481"]
#[generator = "3"]
struct StarkConfig;
type Stark = Fp256<MontBackend<StarkConfig, 4>>;

/// There is none without a compiler for C++.
fn emulator() -> Option<Device> {
    evariste_emulator::device(evariste_emulator::Arithmetic::CarryFlag).ok()
}

/// There is none without an adapter.
fn vulkan() -> Option<Device> {
    match Device::wgpu(0) {
        Err(evariste_backend::Error::Unavailable { .. }) => None,
        opened => Some(opened.unwrap()),
    }
}

/// All that this machine has. CI says what must be there.
fn devices() -> impl Iterator<Item = Device> {
    [Device::cpu()].into_iter().chain(vulkan()).chain(emulator())
}
