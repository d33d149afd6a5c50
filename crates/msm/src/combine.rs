//! The combination of windows, on the host.

use ark_ec::short_weierstrass::Projective;
use ark_ff::{AdditiveGroup, Zero};
use evariste_backend::author::Wiped;
use rayon::prelude::*;

use crate::{memory_plan::MemoryPlan, msm_curve::MsmCurve, precompute::PrecomputedTable, reduce::Reduction};

/// The sums of each window, from what is left of each class of digits, in order.
pub(crate) struct Windows<C: MsmCurve> {
    rows: Wiped<Projective<C>>,
    windows: usize,
    bits: u32,
    /// log₂ of the weight of the next class, and of what each has more than the one before.
    weight: u32,
    step: u32,
}

impl<C: MsmCurve> Windows<C> {
    /// Those of `count` sums, all zero.
    pub(crate) fn new(plan: &MemoryPlan, precomputed: PrecomputedTable, count: usize) -> Self {
        let rows = Wiped::from(vec![Projective::zero(); plan.windows as usize * count]);
        let step = precomputed.doublings().max(1);
        Self { rows, windows: plan.windows as usize, bits: plan.window, weight: 0, step }
    }

    /// Adds the next class of digits, of which the reduction left these points.
    pub(crate) fn add(&mut self, reduction: &Reduction, points: &[Projective<C>]) {
        let own = window_sums::<C>(reduction, points, self.weight);
        self.rows.iter_mut().zip(own.iter()).for_each(|(row, own)| *row += own);
        self.weight += self.step;
    }

    /// The sums.
    pub(crate) fn combined(&self) -> Wiped<Projective<C>> {
        combine::<C>(&self.rows, self.windows, self.bits)
    }
}

/// The value of each row, for the points that a reduction leaves, times 2^`weight`.
fn window_sums<C: MsmCurve>(reduction: &Reduction, points: &[Projective<C>], weight: u32) -> Wiped<Projective<C>> {
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
    in_place(reduction.rows as usize, row)
}

/// Σ 2^(`bits` · w)·(row w) over the `windows` rows of each sum.
fn combine<C: MsmCurve>(rows: &[Projective<C>], windows: usize, bits: u32) -> Wiped<Projective<C>> {
    let combine = |sum: usize| {
        let own = &rows[sum * windows..][..windows];
        let mut sum = Projective::<C>::zero();
        for row in own.iter().rev() {
            double(&mut sum, bits);
            sum += row;
        }
        sum
    };
    in_place(rows.len() / windows, combine)
}

/// Points on all cores, in memory that is zeroed even if one of them panics.
fn in_place<P: Copy + Zero + Send>(count: usize, point: impl Fn(usize) -> P + Sync) -> Wiped<P> {
    let mut points = Wiped::from(vec![P::zero(); count]);
    points.par_iter_mut().enumerate().for_each(|(i, out)| *out = point(i));
    points
}

fn double<C: MsmCurve>(point: &mut Projective<C>, times: u32) {
    for _ in 0..times {
        point.double_in_place();
    }
}
