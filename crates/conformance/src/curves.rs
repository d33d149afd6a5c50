//! Curves of shapes that the well-known ones do not have.

use ark_bls12_381::Fr;
use ark_ec::{
    CurveConfig,
    short_weierstrass::{Affine, SWCurveConfig},
};
use ark_ff::{Fp2, Fp2Config, Fp64, Fp256, MontBackend, MontFp};

use evariste::field::small::BabyBear;

use crate::fields::{self, Mnt4, Sixteen};

/// The base field of P-256, where sums carry out of the limbs.
#[derive(ark_ff::MontConfig)]
#[modulus = "115792089210356248762697446949407573530086143415290314195533631308867097853951"]
#[generator = "6"]
pub(crate) struct P256FieldConfig;
pub(crate) type P256Field = Fp256<MontBackend<P256FieldConfig, 4>>;

/// The scalar field of P-256.
#[derive(ark_ff::MontConfig)]
#[modulus = "115792089210356248762697446949407573529996955224135760342422259061068512044369"]
#[generator = "7"]
pub(crate) struct P256ScalarConfig;
pub(crate) type P256Scalar = Fp256<MontBackend<P256ScalarConfig, 4>>;

/// P-256: a = −3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct P256;

impl CurveConfig for P256 {
    type BaseField = P256Field;
    type ScalarField = P256Scalar;

    const COFACTOR: &'static [u64] = &[1];
    const COFACTOR_INV: P256Scalar = MontFp!("1");
}

impl SWCurveConfig for P256 {
    type ZeroFlag = bool;

    const COEFF_A: P256Field = MontFp!("-3");
    const COEFF_B: P256Field = MontFp!("41058363725152142129326129780047268409114441015993725554835256314039467401291");
    const GENERATOR: Affine<Self> = Affine::new_unchecked(
        MontFp!("48439561293906451759052585252797914202762949526041747995844080717082404635286"),
        MontFp!("36134250956749795798585127919587881956611106672985015071877198253568414405109"),
    );
}

/// The scalar field of secp256k1.
#[derive(ark_ff::MontConfig)]
#[modulus = "115792089237316195423570985008687907852837564279074904382605163141518161494337"]
#[generator = "7"]
pub(crate) struct Secp256k1ScalarConfig;
pub(crate) type Secp256k1Scalar = Fp256<MontBackend<Secp256k1ScalarConfig, 4>>;

/// secp256k1: y² = x³ + 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Secp256k1;

impl CurveConfig for Secp256k1 {
    type BaseField = fields::Secp256k1;
    type ScalarField = Secp256k1Scalar;

    const COFACTOR: &'static [u64] = &[1];
    const COFACTOR_INV: Secp256k1Scalar = MontFp!("1");
}

impl SWCurveConfig for Secp256k1 {
    type ZeroFlag = bool;

    const COEFF_A: fields::Secp256k1 = MontFp!("0");
    const COEFF_B: fields::Secp256k1 = MontFp!("7");
    const GENERATOR: Affine<Self> = Affine::new_unchecked(
        MontFp!("55066263022277343669578718895168534326250603453777594175500187360389116729240"),
        MontFp!("32670510020758816978083085130507043184471273380659243275938904335757337482424"),
    );
}

/// y² = x³ + 3x over a small field: (0, 0) is a point, of order 2. The scalars' field is of no matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThroughOrigin;

impl CurveConfig for ThroughOrigin {
    type BaseField = Sixteen;
    type ScalarField = Fr;

    const COFACTOR: &'static [u64] = &[1];
    const COFACTOR_INV: Fr = MontFp!("1");
}

impl SWCurveConfig for ThroughOrigin {
    type ZeroFlag = bool;

    const COEFF_A: Sixteen = MontFp!("3");
    const COEFF_B: Sixteen = MontFp!("0");
    const GENERATOR: Affine<Self> = Affine::new_unchecked(MontFp!("1"), MontFp!("2"));
}

/// y² = x³ + 3x − 4 over a small field: (1, 0) is of order 2. The scalars' field is of no matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvenOrder;

impl CurveConfig for EvenOrder {
    type BaseField = Sixteen;
    type ScalarField = Fr;

    const COFACTOR: &'static [u64] = &[1];
    const COFACTOR_INV: Fr = MontFp!("1");
}

impl SWCurveConfig for EvenOrder {
    type ZeroFlag = bool;

    const COEFF_A: Sixteen = MontFp!("3");
    const COEFF_B: Sixteen = MontFp!("-4");
    const GENERATOR: Affine<Self> = Affine::new_unchecked(MontFp!("2"), MontFp!("25768"));
}

/// u² = 17 over the scalar field of MNT4-753, whose multiplicative generator that is: 48 limbs.
pub(crate) struct LongFieldConfig;
pub(crate) type LongField = Fp2<LongFieldConfig>;

impl Fp2Config for LongFieldConfig {
    type Fp = Mnt4;

    const NONRESIDUE: Mnt4 = MontFp!("17");
    const FROBENIUS_COEFF_FP2_C1: &[Mnt4] = &[MontFp!("1"), MontFp!("-1")];
}

/// y² = x³ − 16x + 9 − u, which (u, 3) is on. The scalars' field is of no matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Long;

impl CurveConfig for Long {
    type BaseField = LongField;
    type ScalarField = Fr;

    const COFACTOR: &'static [u64] = &[1];
    const COFACTOR_INV: Fr = MontFp!("1");
}

impl SWCurveConfig for Long {
    type ZeroFlag = bool;

    const COEFF_A: LongField = LongField::new(MontFp!("-16"), MontFp!("0"));
    const COEFF_B: LongField = LongField::new(MontFp!("9"), MontFp!("-1"));
    const GENERATOR: Affine<Self> =
        Affine::new_unchecked(LongField::new(MontFp!("0"), MontFp!("1")), LongField::new(MontFp!("3"), MontFp!("0")));
}

/// A prime of 31 bits.
#[derive(ark_ff::MontConfig)]
#[modulus = "2013334997"]
#[generator = "2"]
pub(crate) struct ShortScalarConfig;
pub(crate) type ShortScalar = Fp64<MontBackend<ShortScalarConfig, 1>>;

/// y² = x³ − 3x + 15 over one limb, of prime order: sums of it have several windows, and kernels that compile fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short;

impl CurveConfig for Short {
    type BaseField = BabyBear;
    type ScalarField = ShortScalar;

    const COFACTOR: &'static [u64] = &[1];
    const COFACTOR_INV: ShortScalar = MontFp!("1");
}

impl SWCurveConfig for Short {
    type ZeroFlag = bool;

    const COEFF_A: BabyBear = MontFp!("-3");
    const COEFF_B: BabyBear = MontFp!("15");
    const GENERATOR: Affine<Self> = Affine::new_unchecked(MontFp!("1"), MontFp!("1568408905"));
}

/// A field of 17 elements. Its configured generator is 6², so that the root of unity that comes of it is not primitive.
#[derive(ark_ff::MontConfig)]
#[modulus = "17"]
#[generator = "2"]
pub(crate) struct TinyFieldConfig;
pub(crate) type TinyField = Fp64<MontBackend<TinyFieldConfig, 1>>;

#[derive(ark_ff::MontConfig)]
#[modulus = "19"]
#[generator = "2"]
pub(crate) struct TinyScalarConfig;
pub(crate) type TinyScalar = Fp64<MontBackend<TinyScalarConfig, 1>>;

/// y² = x³ + 2 x + 2 over 17 elements, of 19 points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiny;

impl CurveConfig for Tiny {
    type BaseField = TinyField;
    type ScalarField = TinyScalar;

    const COFACTOR: &'static [u64] = &[1];
    const COFACTOR_INV: TinyScalar = MontFp!("1");
}

impl SWCurveConfig for Tiny {
    type ZeroFlag = bool;

    const COEFF_A: TinyField = MontFp!("2");
    const COEFF_B: TinyField = MontFp!("2");
    const GENERATOR: Affine<Self> = Affine::new_unchecked(MontFp!("0"), MontFp!("6"));
}
