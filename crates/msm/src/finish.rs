//! What is left for the host.

use ark_ec::short_weierstrass::Projective;
use ark_ff::{AdditiveGroup, Zero};
use rayon::prelude::*;

use crate::{MsmCurve, reduce::Reduction};

/// The value of each row, for the points that a reduction leaves, times 2^`weight`.
pub(crate) fn rows<C: MsmCurve>(reduction: &Reduction, points: &[Projective<C>], weight: u32) -> Vec<Projective<C>> {
    let row = |row: usize| {
        let mut terms = reduction.weights(row);
        terms.sort_unstable_by_key(|(_, own)| std::cmp::Reverse(*own));
        let mut sum = Projective::<C>::zero();
        let mut at = terms.first().map_or(0, |(_, own)| *own);
        for (place, own) in terms {
            double(&mut sum, at - own);
            at = own;
            sum += points[place];
        }
        double(&mut sum, at + weight);
        sum
    };
    (0..reduction.rows as usize).into_par_iter().map(row).collect()
}

/// Σ 2^(`bits` · s)·(row s) over the `sets` rows of each sum.
pub(crate) fn sums<C: MsmCurve>(rows: &[Projective<C>], sets: usize, bits: u32) -> Vec<Projective<C>> {
    let combine = |rows: &[Projective<C>]| {
        let mut sum = Projective::<C>::zero();
        for row in rows.iter().rev() {
            double(&mut sum, bits);
            sum += row;
        }
        sum
    };
    rows.par_chunks_exact(sets).map(combine).collect()
}

fn double<C: MsmCurve>(point: &mut Projective<C>, times: u32) {
    for _ in 0..times {
        point.double_in_place();
    }
}
