//! Multi-scalar multiplication by its definition, as a reference.

use ark_ec::{
    AffineRepr,
    short_weierstrass::{Affine, Projective, SWCurveConfig},
};
use ark_ff::Zero;

/// Computes Σ `integers[i]` · `bases[i]`, for integers of 64-bit limbs, least significant first, by doubling and
/// adding.
///
/// # Panics
/// If the numbers of integers and bases differ.
pub fn msm<C: SWCurveConfig, I: AsRef<[u64]>>(bases: &[Affine<C>], integers: &[I]) -> Projective<C> {
    assert_eq!(bases.len(), integers.len());
    let terms = bases.iter().zip(integers).map(|(base, integer)| {
        let bits = integer.as_ref().iter().rev().flat_map(|limb| (0..64).rev().map(move |bit| limb >> bit & 1));
        bits.skip_while(|bit| *bit == 0).fold(Projective::zero(), |sum: Projective<C>, bit| match bit {
            1 => sum + sum + base,
            _ => sum + sum,
        })
    });
    terms.fold(Affine::<C>::zero().into_group(), |sum, term| sum + term)
}
