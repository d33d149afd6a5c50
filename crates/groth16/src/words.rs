//! Field elements and points in bytes.

use ark_ec::short_weierstrass::Affine;
use ark_ff::{AdditiveGroup, BigInteger, PrimeField};
use evariste_backend::author::Wiped;
use evariste_curve::DeviceCurve;
use evariste_field::DeviceField;
use rayon::prelude::*;

use crate::{
    check::Check,
    curve::Curve,
    error::{PointError, Problem, Result},
    sections::Cursor,
};

/// The bytes of an element of a prime field in circom's files: whole words of 64 bits.
pub(crate) fn bytes<F: PrimeField>() -> usize {
    F::MODULUS.as_ref().len() * 8
}

/// Reads the length of field elements and the modulus, which are those of a field.
pub(crate) fn expect_field<F: PrimeField>(cursor: &mut Cursor<'_>) -> Result<()> {
    let (start, expected) = (cursor.clone(), bytes::<F>() as u32);
    let actual = cursor.word()?;
    if actual != expected {
        return Err(start.error(Problem::ElementBytes { expected, actual }));
    }
    let start = cursor.clone();
    let (expected, actual) = (F::MODULUS.to_bytes_le(), cursor.take(expected.into())?);
    if actual != expected {
        return Err(start.error(Problem::Modulus { expected: hex(&expected), actual: hex(actual) }));
    }
    Ok(())
}

/// Reads the length of field elements and the modulus, and returns the curve whose field that is: `N` is the field of
/// BN254, and `S` that of BLS12-381.
pub(crate) fn curve<N: PrimeField, S: PrimeField>(mut cursor: Cursor<'_>) -> Result<Curve> {
    if expect_field::<N>(&mut cursor.clone()).is_ok() {
        return Ok(Curve::Bn254);
    }
    if expect_field::<S>(&mut cursor.clone()).is_ok() {
        return Ok(Curve::Bls12381);
    }
    let bytes = cursor.word()?;
    let start = cursor.clone();
    let modulus = cursor.take(bytes.into())?;
    // Of a field, and no section full of bytes.
    let actual = hex(&modulus[..modulus.len().min(8 * MOST_LIMBS)]);
    Err(start.error(Problem::Curve { actual }))
}

fn hex(little_endian: &[u8]) -> String {
    let digits: String = little_endian.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{digits}")
}

/// Reads an integer below the modulus.
pub(crate) fn integer<F: PrimeField>(bytes: &[u8]) -> Option<F> {
    let mut value = F::BigInt::default();
    for (limb, bytes) in value.as_mut().iter_mut().zip(bytes.as_chunks::<8>().0) {
        *limb = u64::from_le_bytes(*bytes);
    }
    F::from_bigint(value)
}

/// Reads integers below the modulus, for which the vector has room.
pub(crate) fn integers<F: PrimeField>(cursor: &mut Cursor<'_>, count: u64, values: &mut Wiped<F>) -> Result<()> {
    let (start, each) = (cursor.clone(), bytes::<F>());
    for (index, bytes) in (0..count).zip(cursor.take(count * each as u64)?.chunks_exact(each)) {
        let wrong = || start.error_at(index * each as u64, Problem::NotCanonical { index });
        values.push(integer(bytes).ok_or_else(wrong)?);
    }
    Ok(())
}

/// Limbs of the longest element of which points have two.
pub(crate) const MOST_LIMBS: usize = 64;

/// Reads the device form of an element, which is that of circom's files.
pub(crate) fn element<F: DeviceField>(bytes: &[u8]) -> Option<F> {
    const { assert!(F::LIMBS <= MOST_LIMBS) };
    let mut limbs = [0; MOST_LIMBS];
    for (limb, bytes) in limbs.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *limb = u32::from_le_bytes(*bytes);
    }
    F::is_stored(&limbs).then(|| F::load(&limbs))
}

/// The bytes of a point in circom's files.
pub(crate) fn point_bytes<C: DeviceCurve>() -> usize {
    2 * 4 * C::BaseField::LIMBS
}

/// Reads points. Both coordinates of the one at infinity are 0.
pub(crate) fn points<C: DeviceCurve>(cursor: &mut Cursor<'_>, count: u64, check: Check) -> Result<Vec<Affine<C>>> {
    let (start, each) = (cursor.clone(), point_bytes::<C>());
    let bytes = cursor.take(count * each as u64)?;
    let read = || bytes.par_chunks_exact(each).map(|bytes| point(bytes, check));
    let points: Result<Vec<_>, PointError> = read().collect();
    points.map_err(|kind| {
        // Threads found it, perhaps not the first one.
        let first = read().enumerate().find_map_first(|(index, point)| Some((index as u64, point.err()?)));
        let (index, kind) = first.unwrap_or((0, kind));
        start.error_at(index * each as u64, Problem::Point { index, kind })
    })
}

fn point<C: DeviceCurve>(bytes: &[u8], check: Check) -> Result<Affine<C>, PointError> {
    let (x, y) = bytes.split_at(bytes.len() / 2);
    let (x, y) = element(x).zip(element(y)).ok_or(PointError::NotCanonical)?;
    if (x, y) == (C::BaseField::ZERO, C::BaseField::ZERO) {
        return Ok(Affine::identity());
    }
    let point = Affine::new_unchecked(x, y);
    check_point(&point, check)?;
    Ok(point)
}

/// Checks a point.
pub(crate) fn check_point<C: DeviceCurve>(point: &Affine<C>, check: Check) -> Result<(), PointError> {
    if check != Check::Trusted && !point.is_on_curve() {
        return Err(PointError::NotOnCurve);
    }
    if check == Check::Full && !point.is_in_correct_subgroup_assuming_on_curve() {
        return Err(PointError::NotInSubgroup);
    }
    Ok(())
}
