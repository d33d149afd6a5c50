//! The combination of windows, on the host.

use std::cmp::Reverse;

use ark_ec::short_weierstrass::Projective;
use ark_ff::{AdditiveGroup, Field, Zero};
use evariste_backend::author::Wiped;
use evariste_curve::point::{self, JacobianOf};
use evariste_field::DeviceField;
use rayon::prelude::*;

use crate::{memory_plan::MemoryPlan, msm_curve::MsmCurve, precompute::PrecomputedTable, reduce::Reduction};

/// Products of additions, counted by the square of a field's limbs, up to which one core combines a sum alone. It takes a
/// quarter of a millisecond for as many, and cores that sleep take half of that to wake. Doublings stay in sequence anyway.
const ALONE: u64 = 3 << 19;

/// Products of an addition.
const PRODUCTS: u64 = 17;

/// Sums, from what is left of each class of digits, in order.
pub(crate) struct Windows<C: MsmCurve> {
    sums: Wiped<Projective<C>>,
    /// Windows of a sum, and the bits of each.
    windows: usize,
    bits: u32,
    /// log₂ of the weight of the next class, and of what each has more than the one before.
    weight: u32,
    step: u32,
}

/// The place of a point, and log₂ of its weight.
type Term = (usize, u32);

impl<C: MsmCurve> Windows<C> {
    /// Those of `count` sums, all zero.
    pub(crate) fn new(plan: &MemoryPlan, precomputed: PrecomputedTable, count: usize) -> Self {
        let sums = Wiped::from(vec![Projective::zero(); count]);
        let step = precomputed.doublings().max(1);
        Self { sums, windows: plan.windows as usize, bits: plan.window, weight: 0, step }
    }

    /// Adds the next class of digits, of which the reduction left these points.
    pub(crate) fn add(&mut self, reduction: &Reduction, points: &[Projective<C>]) {
        let Self { windows, bits, weight, .. } = *self;
        // Σ 2^(bits · w) · (row w) over the rows of a sum.
        let combined = |sum: usize| {
            let rows = (0..windows).map(|w| (bits * w as u32, reduction.weights(sum * windows + w)));
            combine::<C>(rows.collect(), points, weight)
        };
        match &mut self.sums[..] {
            [sum] => *sum += combined(0),
            sums => sums.par_iter_mut().enumerate().for_each(|(i, sum)| *sum += combined(i)),
        }
        self.weight += self.step;
    }

    /// Returns the sums.
    pub(crate) fn into_sums(self) -> Wiped<Projective<C>> {
        self.sums
    }
}

/// The sum of rows of points, for log₂ of the weight of each row and the terms of its points, times 2^`weight`.
fn combine<C: MsmCurve>(mut rows: Vec<(u32, Vec<Term>)>, points: &[Projective<C>], weight: u32) -> Projective<C> {
    let additions = rows.iter().map(|(_, terms)| terms.len() as u64).sum::<u64>();
    let sum = if additions * PRODUCTS * (C::BaseField::LIMBS as u64).pow(2) <= ALONE {
        let terms = rows.iter().flat_map(|(row, terms)| terms.iter().map(move |(place, own)| (*place, row + own)));
        horner::<C>(terms.collect(), points, weight)
    } else {
        let mut sums = Wiped::from(vec![Projective::zero(); rows.len()]);
        let terms = rows.iter().enumerate().map(|(i, (row, _))| (i, *row)).collect();
        sums.par_iter_mut().zip(&mut rows).for_each(|(sum, (_, terms))| {
            let [x, y, z] = horner::<C>(std::mem::take(terms), points, 0);
            *sum = Projective::new_unchecked(x, y, z);
        });
        horner::<C>(terms, &sums, weight)
    };
    let [x, y, z] = sum;
    Projective::new_unchecked(x, y, z)
}

/// Σ 2^(`weight` + own) · (point at place) over terms.
fn horner<C: MsmCurve>(mut terms: Vec<Term>, points: &[Projective<C>], weight: u32) -> JacobianOf<C> {
    terms.sort_unstable_by_key(|(_, own)| Reverse(*own));
    let double = |sum, times| (0..times).fold(sum, |sum, _| point::jacobian_double::<C>(sum));
    let mut sum = [C::BaseField::ONE, C::BaseField::ONE, C::BaseField::ZERO];
    let mut at = terms.first().map_or(0, |(_, own)| *own);
    for (place, own) in terms {
        let Projective { x, y, z } = points[place];
        sum = point::jacobian_add::<C>(double(sum, at - own), [x, y, z]);
        at = own;
    }
    double(sum, at + weight)
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::{Fr, g1::Config};
    use ark_ec::PrimeGroup;
    use ark_ff::UniformRand;
    use ark_std::{rand::Rng, test_rng};

    use super::*;

    #[test]
    fn rows_have_their_weights_alone_and_on_all_cores() {
        let rng = &mut test_rng();
        let generator = Projective::<Config>::generator();
        let mut points: Vec<_> = (0..8).map(|_| generator * Fr::rand(rng)).collect();
        points.extend([points[0], -points[1], Projective::zero()]);
        let most = ALONE / PRODUCTS / 144;
        for (count, terms) in [(0, 0), (1, 1), (20, 1), (3, 13), (most as usize / 10, 10), (most as usize / 10 + 1, 10)]
        {
            let rows: Vec<(u32, Vec<Term>)> = (0..count)
                .map(|row| {
                    (
                        row as u32 / 4,
                        (0..terms).map(|_| (rng.gen_range(0..points.len()), rng.gen_range(0..9))).collect(),
                    )
                })
                .collect();
            let weighted = |row: &u32, (place, own): &Term| points[*place] * Fr::from(1u128 << (row + own + 2));
            let expected: Projective<Config> =
                rows.iter().flat_map(|(row, terms)| terms.iter().map(move |term| weighted(row, term))).sum();
            assert_eq!(combine::<Config>(rows, &points, 2), expected, "{count} {terms}");
        }
    }
}
