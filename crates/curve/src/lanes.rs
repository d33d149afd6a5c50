//! Sums of affine points in lanes of AVX-512, for CPU bodies of kernels.

use ark_ff::Field;
use evariste_field::{DeviceField, ifma, invert};

use crate::{device_curve::DeviceCurve, point};

/// Computes `out[i] = a[i] + b[i]` for any points in device form. Each addition takes 5M + 1S, and all share one
/// inversion. The function runs on one core, in lanes of the base field. `scratch` is memory to work in.
///
/// # Panics
/// If the lengths do not fit each other, or are not those of a multiple of [`ifma::STEP`] points.
pub fn add_affine<C: DeviceCurve>(
    lanes: &ifma::Montgomery52,
    (a, b): (&[u32], &[u32]),
    out: &mut [u32],
    scratch: &mut Vec<u32>,
) {
    let (limbs, words) = (C::BaseField::LIMBS, 2 * C::BaseField::LIMBS);
    let at = |x: &[u32], i: usize| point::load::<C::BaseField, 2>(&x[i * words..]);
    scratch.resize(out.len() + limbs, 0);
    let (one, rest) = scratch.split_at_mut(limbs);
    let (denominators, inverses) = rest.split_at_mut(out.len() / 2);
    C::BaseField::ONE.store(one);

    let special = lanes.differences(a, b, denominators);
    for &i in special.iter() {
        point::affine_denominator::<C>(at(a, i), at(b, i)).store(&mut denominators[i * limbs..]);
    }
    lanes.inverse_run(denominators, inverses, one, &invert::<C::BaseField>);
    lanes.chords(a, b, inverses, out);
    for &i in special.iter() {
        let inverse = C::BaseField::load(&inverses[i * limbs..]);
        point::store(&point::affine_add::<C>(at(a, i), at(b, i), inverse), &mut out[i * words..][..words]);
    }
}
