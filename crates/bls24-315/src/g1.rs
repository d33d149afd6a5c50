//! The group G1: y² = x³ + 1.

use ark_ec::{
    CurveConfig,
    short_weierstrass::{self as sw, SWCurveConfig},
};
use ark_ff::MontFp;

use crate::{Fq, Fr};

/// A point by its coordinates x and y.
pub type Affine = sw::Affine<Config>;

/// A point in Jacobian coordinates.
pub type Projective = sw::Projective<Config>;

/// The configuration of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config;

impl CurveConfig for Config {
    type BaseField = Fq;
    type ScalarField = Fr;

    const COFACTOR: &'static [u64] = &[3452012412914368512];
    const COFACTOR_INV: Fr = MontFp!("11502027748484983061746766725372608623013042341922603258659095701186171371503");
}

impl SWCurveConfig for Config {
    type ZeroFlag = bool;

    const COEFF_A: Fq = MontFp!("0");
    const COEFF_B: Fq = MontFp!("1");
    const GENERATOR: Affine = Affine::new_unchecked(
        MontFp!("34223510504517033132712852754388476272837911830964394866541204856091481856889569724484362330263"),
        MontFp!("24215295174889464585413596429561903295150472552154479431771837786124301185073987899223459122783"),
    );
}

#[cfg(test)]
mod tests {
    use ark_ec::AffineRepr;
    use ark_ff::{BigInteger, PrimeField, Zero};

    use super::*;

    #[test]
    fn the_generator_has_the_order_of_the_scalar_field() {
        let generator = Affine::generator();
        assert!(generator.is_on_curve());
        assert!(generator.mul_bigint(Fr::MODULUS).is_zero());
        assert!(Fr::MODULUS.is_odd());
    }

    #[test]
    fn the_cofactor_and_its_inverse_belong_together() {
        assert_eq!(Fr::from(Config::COFACTOR[0]) * Config::COFACTOR_INV, Fr::from(1u64));
    }
}
