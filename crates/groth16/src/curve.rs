//! The curves that proofs are over.

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::{
    bls12::{Bls12, Bls12Config},
    bn::{Bn, BnConfig},
    pairing::Pairing,
    short_weierstrass::{Affine, Projective},
};
use evariste_curve::DeviceCurve;
use evariste_field::DevicePrimeField;

/// A pairing between curves whose points live on devices. All BN and BLS12 curves of arkworks have one.
pub trait DevicePairing:
    Pairing<
        BaseField: DevicePrimeField,
        ScalarField: DevicePrimeField,
        G1 = Projective<Self::G1Config>,
        G1Affine = Affine<Self::G1Config>,
        G2 = Projective<Self::G2Config>,
        G2Affine = Affine<Self::G2Config>,
    >
{
    /// The curve of G1.
    type G1Config: DeviceCurve<BaseField = Self::BaseField, ScalarField = Self::ScalarField>;
    /// The curve of G2.
    type G2Config: DeviceCurve<ScalarField = Self::ScalarField>;
}

impl<P: BnConfig> DevicePairing for Bn<P>
where
    P::G1Config: DeviceCurve<BaseField: DevicePrimeField, ScalarField: DevicePrimeField>,
    P::G2Config: DeviceCurve,
{
    type G1Config = P::G1Config;
    type G2Config = P::G2Config;
}

impl<P: Bls12Config> DevicePairing for Bls12<P>
where
    P::G1Config: DeviceCurve<BaseField: DevicePrimeField, ScalarField: DevicePrimeField>,
    P::G2Config: DeviceCurve,
{
    type G1Config = P::G1Config;
    type G2Config = P::G2Config;
}

/// The curves of files, for programs that learn from a file which one it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Curve {
    /// BN254, which snarkjs calls bn128: [`Bn254`].
    Bn254,
    /// BLS12-381, which snarkjs calls bls12381: [`Bls12_381`].
    Bls12381,
}

impl Curve {
    /// Returns the curve's name in snarkjs' files.
    pub fn name(self) -> &'static str {
        match self {
            Curve::Bn254 => Bn254::NAME,
            Curve::Bls12381 => Bls12_381::NAME,
        }
    }
}

/// A curve that snarkjs has.
pub trait CircomCurve: DevicePairing {
    /// The curve's name in snarkjs' files.
    const NAME: &'static str;
}

impl CircomCurve for Bn254 {
    const NAME: &'static str = "bn128";
}

impl CircomCurve for Bls12_381 {
    const NAME: &'static str = "bls12381";
}
