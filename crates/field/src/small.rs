//! The small prime fields that proof systems use, and their usual extensions.
//!
//! Extensions are named by their degree. All are [`Extension`]s: arkworks' quadratic and cubic types over these fields
//! work as well.

use ark_ff::{Field, Fp64, MontBackend, MontConfig, MontFp};

use crate::extension::{Extension, ExtensionConfig};

/// Defines [`Goldilocks`], p = 2^64 − 2^32 + 1.
#[derive(Debug, MontConfig)]
#[modulus = "18446744069414584321"]
#[generator = "7"]
pub struct GoldilocksConfig;

/// The field of 2^64 − 2^32 + 1 elements.
pub type Goldilocks = Fp64<MontBackend<GoldilocksConfig, 1>>;

/// Defines [`BabyBear`], p = 15 · 2^27 + 1.
#[derive(Debug, MontConfig)]
#[modulus = "2013265921"]
#[generator = "31"]
pub struct BabyBearConfig;

/// The field of 15 · 2^27 + 1 elements.
pub type BabyBear = Fp64<MontBackend<BabyBearConfig, 1>>;

/// Defines [`KoalaBear`], p = 127 · 2^24 + 1.
#[derive(Debug, MontConfig)]
#[modulus = "2130706433"]
#[generator = "3"]
pub struct KoalaBearConfig;

/// The field of 127 · 2^24 + 1 elements.
pub type KoalaBear = Fp64<MontBackend<KoalaBearConfig, 1>>;

/// Defines [`Mersenne31`], p = 2^31 − 1.
#[derive(Debug, MontConfig)]
#[modulus = "2147483647"]
#[generator = "7"]
pub struct Mersenne31Config;

/// The field of 2^31 − 1 elements. Its multiplicative group has no subgroup of 4 elements, so that transforms have no
/// domains over it: proof systems use the circle over this field, which is not here.
pub type Mersenne31 = Fp64<MontBackend<Mersenne31Config, 1>>;

/// Coefficients of x^N, zero after those given.
const fn reduction<F: Field, const N: usize, const M: usize>(given: [F; M]) -> [F; N] {
    let mut all = [F::ZERO; N];
    let mut i = 0;
    while i < M {
        all[i] = given[i];
        i += 1;
    }
    all
}

macro_rules! extensions {
    ($($name:ident, $config:ident: $base:ty, $degree:literal, $text:literal, [$($coefficient:expr),*];)*) => {$(
        #[doc = concat!("x^", $degree, " = ", $text, ".")]
        #[derive(Debug)]
        pub struct $config;

        impl ExtensionConfig<$degree> for $config {
            type BaseField = $base;

            const REDUCTION: [$base; $degree] = reduction([$($coefficient),*]);
        }

        #[doc = concat!("The extension of [`", stringify!($base), "`] with x^", $degree, " = ", $text, ".")]
        pub type $name = Extension<$config, $degree>;
    )*};
}

extensions! {
    Goldilocks2, Goldilocks2Config: Goldilocks, 2, "7", [MontFp!("7")];
    Goldilocks3, Goldilocks3Config: Goldilocks, 3, "x + 1", [MontFp!("1"), MontFp!("1")];
    Goldilocks4, Goldilocks4Config: Goldilocks, 4, "7", [MontFp!("7")];
    Goldilocks5, Goldilocks5Config: Goldilocks, 5, "3", [MontFp!("3")];
    BabyBear2, BabyBear2Config: BabyBear, 2, "11", [MontFp!("11")];
    BabyBear3, BabyBear3Config: BabyBear, 3, "2", [MontFp!("2")];
    BabyBear4, BabyBear4Config: BabyBear, 4, "11", [MontFp!("11")];
    BabyBear5, BabyBear5Config: BabyBear, 5, "2", [MontFp!("2")];
    KoalaBear2, KoalaBear2Config: KoalaBear, 2, "3", [MontFp!("3")];
    KoalaBear3, KoalaBear3Config: KoalaBear, 3, "x + 4", [MontFp!("4"), MontFp!("1")];
    KoalaBear4, KoalaBear4Config: KoalaBear, 4, "3", [MontFp!("3")];
    KoalaBear5, KoalaBear5Config: KoalaBear, 5, "1 − x²", [MontFp!("1"), MontFp!("0"), MontFp!("-1")];
}
