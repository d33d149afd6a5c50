//! Operations in lanes of a field of some number of limbs, behind pointers. Their callers are compiled once for all
//! numbers.

use std::fmt;

use evariste_backend::author::Wiped;

use super::{
    Job, Montgomery52,
    points::jobs::{Chords, Differences},
    vector::{chain::Chain, combine::Combine, inner::InnerProduct, inverse::Inverse, products::Products},
};

/// Does jobs for the fields of some number of limbs.
pub(super) trait Jobs: fmt::Debug + Send + Sync {
    fn products(&self, field: &Montgomery52, job: Products);
    fn chain(&self, field: &Montgomery52, job: Chain);
    fn combine(&self, field: &Montgomery52, job: Combine);
    fn inner_product(&self, field: &Montgomery52, job: InnerProduct) -> Wiped<u32>;
    fn inverse(&self, field: &Montgomery52, job: Inverse<'_>);
    fn differences(&self, field: &Montgomery52, job: Differences) -> Wiped<usize>;
    fn chords(&self, field: &Montgomery52, job: Chords);
}

/// `LIMBS` in memory and `L` in lanes.
#[derive(Debug)]
pub(super) struct Limbs<const LIMBS: usize, const L: usize>;

macro_rules! jobs {
    ($($name:ident: $job:ty => $output:ty),*) => {
        impl<const LIMBS: usize, const L: usize> Jobs for Limbs<LIMBS, L> {
            $(
                fn $name(&self, field: &Montgomery52, job: $job) -> $output {
                    assert_eq!(field.limbs, LIMBS);
                    // SAFETY: a field is made only where the processor has the instructions, and has these limbs.
                    unsafe { job.run::<LIMBS, L>(field) }
                }
            )*
        }
    };
}

jobs! {
    products: Products => (),
    chain: Chain => (),
    combine: Combine => (),
    inner_product: InnerProduct => Wiped<u32>,
    inverse: Inverse<'_> => (),
    differences: Differences => Wiped<usize>,
    chords: Chords => ()
}
