//! Curves of few points, and one that counts inversions.

use std::sync::atomic::{AtomicUsize, Ordering};

use ark_ec::{
    CurveConfig,
    short_weierstrass::{Affine, SWCurveConfig},
};
use ark_ff::{Field, Fp, Fp256, MontBackend, MontConfig, MontFp, PrimeField};

macro_rules! tiny_curves {
    ($($name:ident $p:literal $g:literal $r:literal $h:literal $a:literal $b:literal ($x:literal, $y:literal) $cofactor:literal)*) => {$(
        pub(super) mod $name {
            use ark_ec::{CurveConfig, short_weierstrass::{Affine, SWCurveConfig}};
            use ark_ff::{Fp64, MontBackend, MontConfig, MontFp};

            #[derive(MontConfig)]
            #[modulus = $p]
            #[generator = $g]
            pub(crate) struct Base;

            #[derive(MontConfig)]
            #[modulus = $r]
            #[generator = $h]
            pub(crate) struct Scalar;

            pub(crate) struct Curve;

            impl CurveConfig for Curve {
                type BaseField = Fp64<MontBackend<Base, 1>>;
                type ScalarField = Fp64<MontBackend<Scalar, 1>>;

                const COFACTOR: &'static [u64] = &[$cofactor];
                const COFACTOR_INV: Self::ScalarField = MontFp!("1");
            }

            impl SWCurveConfig for Curve {
                type ZeroFlag = bool;

                const COEFF_A: Self::BaseField = MontFp!($a);
                const COEFF_B: Self::BaseField = MontFp!($b);
                const GENERATOR: Affine<Self> = Affine::new_unchecked(MontFp!($x), MontFp!($y));
            }
        }
    )*};
}

// Of every order that is small against something: bits of a digit, factors of what is measured, a byte.
tiny_curves! {
    three_of_five "5" "2" "3" "2" "4" "2" ("3", "1") 1
    seven_of_five "5" "2" "7" "3" "2" "1" ("0", "1") 1
    nineteen_of_seventeen "17" "3" "19" "2" "2" "2" ("0", "6") 1
    eleven_of_257 "257" "3" "11" "2" "1" "3" ("5", "90") 24
    // The generator is not on the curve, or not of the order that is said; and a cusp.
    off_the_curve "17" "3" "19" "2" "2" "2" ("0", "5") 1
    of_another_order "17" "3" "11" "2" "2" "2" ("0", "6") 1
    no_curve "17" "3" "19" "2" "0" "0" ("1", "1") 1
}

pub(super) static INVERSIONS: AtomicUsize = AtomicUsize::new(0);

/// The base field of BN254, which counts its inversions.
pub(super) struct Counted;

impl MontConfig<4> for Counted {
    const MODULUS: ark_ff::BigInt<4> = ark_bn254::Fq::MODULUS;
    const GENERATOR: Fp256<MontBackend<Self, 4>> = MontFp!("3");
    const TWO_ADIC_ROOT_OF_UNITY: Fp256<MontBackend<Self, 4>> = MontFp!("-1");

    fn inverse(a: &Fp256<MontBackend<Self, 4>>) -> Option<Fp256<MontBackend<Self, 4>>> {
        INVERSIONS.fetch_add(1, Ordering::Relaxed);
        let inverse = ark_bn254::Fq::new_unchecked(a.0).inverse()?;
        Some(Fp::new_unchecked(inverse.0))
    }
}

#[derive(Clone, Copy)]
pub(super) struct CountedCurve;

impl CurveConfig for CountedCurve {
    type BaseField = Fp256<MontBackend<Counted, 4>>;
    type ScalarField = ark_bn254::Fr;

    const COFACTOR: &'static [u64] = &[1];
    const COFACTOR_INV: ark_bn254::Fr = ark_bn254::Fr::ONE;
}

impl SWCurveConfig for CountedCurve {
    type ZeroFlag = bool;

    const COEFF_A: Self::BaseField = MontFp!("0");
    const COEFF_B: Self::BaseField = MontFp!("3");
    const GENERATOR: Affine<Self> = Affine::new_unchecked(MontFp!("1"), MontFp!("2"));
}
