use std::marker::PhantomData;

use ark_ec::{
    AffineRepr,
    short_weierstrass::{Affine, Projective},
};
use ark_ff::{Field, Zero};
use evariste_backend::{Element, Result};

use crate::{device_curve::DeviceCurve, point};
use evariste_field::{DeviceField, expect_stored};

/// A point (x, y) in affine form, as an element of a buffer, with both coordinates in Montgomery form.
///
/// The point at infinity is (0, 0) on the device, or (0, 1) if b = 0 so that (0, 0) lies on the curve. Neither pair is
/// on the curve. If you write points of a foreign encoding, such a pair becomes the point at infinity whatever it meant
/// there.
#[derive(Debug)]
pub struct AffinePoint<C>(PhantomData<fn() -> C>);

/// A point as (x, y, zz, zzz), an element of a buffer that stands for (x / zz, y / zzz) with zz³ = zzz². At infinity zz
/// = 0.
///
/// The host gets Jacobian coordinates: the same points, with other coordinates than those uploaded.
#[derive(Debug)]
pub struct Xyzz<C>(PhantomData<fn() -> C>);

/// A point as (x, y, z), an element of a buffer that stands for (x / z², y / z³). At infinity z = 0.
#[derive(Debug)]
pub struct Jacobian<C>(PhantomData<fn() -> C>);

impl<C: DeviceCurve> Element for AffinePoint<C> {
    type Host = Affine<C>;

    const BYTES: usize = 4 * 2 * C::BaseField::LIMBS;
    const COPIED: bool = C::BaseField::COPIED;

    fn encode(src: &[Affine<C>], dst: &mut [u8]) {
        encode(src, dst, |p: &Affine<C>| match p.xy() {
            Some((x, y)) => [x, y],
            None => point::affine_infinity::<C>(),
        });
    }

    fn decode(src: &[u8], dst: &mut [Affine<C>]) -> Result<()> {
        decode(src, dst, |[x, y]| match point::affine_is_infinity::<C>(&[x, y]) {
            true => Affine::identity(),
            false => Affine::new_unchecked(x, y),
        })
    }
}

impl<C: DeviceCurve> Element for Xyzz<C> {
    type Host = Projective<C>;

    const BYTES: usize = 4 * 4 * C::BaseField::LIMBS;

    fn encode(src: &[Projective<C>], dst: &mut [u8]) {
        encode(src, dst, |p: &Projective<C>| {
            let zz = p.z.square();
            [p.x, p.y, zz, zz * p.z]
        });
    }

    fn decode(src: &[u8], dst: &mut [Projective<C>]) -> Result<()> {
        decode(src, dst, |p: [C::BaseField; 4]| jacobian::<C>(point::jacobian_of_xyzz(p)))
    }
}

impl<C: DeviceCurve> Element for Jacobian<C> {
    type Host = Projective<C>;

    const BYTES: usize = 4 * 3 * C::BaseField::LIMBS;
    const COPIED: bool = C::BaseField::COPIED;

    fn encode(src: &[Projective<C>], dst: &mut [u8]) {
        encode(src, dst, |p: &Projective<C>| [p.x, p.y, p.z]);
    }

    fn decode(src: &[u8], dst: &mut [Projective<C>]) -> Result<()> {
        decode(src, dst, jacobian::<C>)
    }
}

/// arkworks compares points at infinity by their z alone, but normalises them to this.
fn jacobian<C: DeviceCurve>([x, y, z]: [C::BaseField; 3]) -> Projective<C> {
    match z.is_zero() {
        true => Projective::zero(),
        false => Projective::new_unchecked(x, y, z),
    }
}

/// Encodes points by their coordinates.
fn encode<T, F: DeviceField, const N: usize>(src: &[T], dst: &mut [u8], coordinates: impl Fn(&T) -> [F; N]) {
    let words = bytemuck::cast_slice_mut::<u8, u32>(dst).chunks_exact_mut(N * F::LIMBS);
    src.iter().zip(words).for_each(|(p, words)| point::store(&coordinates(p), words));
}

/// Decodes points from their coordinates.
fn decode<T, F: DeviceField, const N: usize>(src: &[u8], dst: &mut [T], point: impl Fn([F; N]) -> T) -> Result<()> {
    let words = bytemuck::cast_slice::<u8, u32>(src);
    expect_stored::<F>(words, N)?;
    dst.iter_mut().zip(words.chunks_exact(N * F::LIMBS)).for_each(|(p, words)| *p = point(point::load(words)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::{Fq, G1Affine, g1::Config};
    use ark_ff::PrimeField;
    use evariste_backend::Error;

    use super::*;

    #[test]
    fn coordinates_that_are_no_elements_are_told() {
        let generator = G1Affine::generator();
        let mut words = vec![0u32; 3 * AffinePoint::<Config>::BYTES / 4];
        AffinePoint::<Config>::encode(&[generator; 3], bytemuck::cast_slice_mut(&mut words));
        let mut points = [G1Affine::identity(); 3];
        AffinePoint::<Config>::decode(bytemuck::cast_slice(&words), &mut points).unwrap();
        assert_eq!(points, [generator; 3]);
        let limbs = Fq::MODULUS.0.iter().flat_map(|limb| [*limb as u32, (*limb >> 32) as u32]);
        words[3 * Fq::LIMBS..4 * Fq::LIMBS].copy_from_slice(&limbs.collect::<Vec<_>>());
        let refused = Err(Error::Undecodable { index: 1 });
        assert_eq!(AffinePoint::<Config>::decode(bytemuck::cast_slice(&words), &mut points), refused);
    }
}
