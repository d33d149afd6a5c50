//! Sums of multiples of points on the host.

use ark_ec::{
    AdditiveGroup,
    short_weierstrass::{Affine, Projective, SWCurveConfig},
};
use ark_ff::{BigInteger, PrimeField, Zero};
use rayon::prelude::*;

/// Returns Σ `scalars[i]` · `bases[i]`, by buckets, with the windows of the scalars beside each other. arkworks' sum has
/// methods for short scalars besides, which take a program thousands of functions for each curve.
pub(crate) fn sum<C: SWCurveConfig>(bases: &[Affine<C>], scalars: &[C::ScalarField]) -> Projective<C> {
    let integers: Vec<_> = scalars.iter().map(|scalar| scalar.into_bigint()).collect();
    let bits = integers.iter().map(BigInteger::num_bits).max().unwrap_or(0) as usize;
    let window = (bases.len() + 1).ilog2() as usize * 2 / 3 + 2;
    let starts: Vec<usize> = (0..bits).step_by(window).collect();
    let sums = starts.par_iter().map(|&start| {
        let mut buckets = vec![Projective::zero(); (1 << window) - 1];
        for (base, integer) in bases.iter().zip(&integers) {
            if let Some(bucket) = digit(integer.as_ref(), start, window).checked_sub(1) {
                buckets[bucket] += base;
            }
        }
        let (mut running, mut sum) = (Projective::zero(), Projective::zero());
        for bucket in buckets.iter().rev() {
            running += bucket;
            sum += running;
        }
        sum
    });
    let sums: Vec<Projective<C>> = sums.collect();
    sums.into_iter().rev().fold(Projective::zero(), |mut total, sum| {
        (0..window).for_each(|_| {
            total.double_in_place();
        });
        total + sum
    })
}

/// Returns `count` bits of an integer, fewer than a limb has, from bit `start` on.
fn digit(limbs: &[u64], start: usize, count: usize) -> usize {
    let (limb, shift) = (start / 64, start % 64);
    let low = limbs[limb] >> shift;
    let high = limbs.get(limb + 1).filter(|_| shift > 0).map_or(0, |next| next << (64 - shift));
    ((low | high) & ((1 << count) - 1)) as usize
}

#[cfg(test)]
mod tests {
    use ark_bn254::{Fr, g1::Config};
    use ark_ff::{Field, PrimeField, UniformRand};
    use ark_std::test_rng;
    use evariste_msm::reference;

    use super::*;

    #[test]
    fn sums_are_those_of_the_definition() {
        let rng = &mut test_rng();
        for count in [0, 1, 2, 40] {
            let bases: Vec<_> = (0..count).map(|_| Affine::<Config>::rand(rng)).collect();
            let full: Vec<_> = (0..count).map(|_| Fr::rand(rng)).collect();
            let short = (0..count).map(|i| Fr::from(u128::MAX - i as u128)).collect();
            let least = [Fr::ZERO, Fr::ONE, -Fr::ONE].into_iter().cycle().take(count).collect();
            for scalars in [full, short, least, vec![Fr::ZERO; count]] {
                let integers: Vec<_> = scalars.iter().map(|scalar| scalar.into_bigint().0).collect();
                assert_eq!(sum(&bases, &scalars), reference::msm(&bases, &integers));
            }
        }
        let base = Affine::<Config>::rand(rng);
        let opposite = sum(&[base, -base, Affine::identity()], &[Fr::from(5); 3]);
        assert_eq!(opposite, Projective::zero());
    }
}
