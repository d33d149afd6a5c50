//! Operations in lanes of a field of some number of limbs, behind pointers. Their callers are compiled once for all
//! numbers.

use std::fmt;

use evariste_backend::Wiped;

use super::{
    Field, Job,
    points::jobs::{Chords, Differences},
    vector::{chain::Chain, combine::Combine, inner::InnerProduct, inverse::Inverse, products::Products},
};

/// Does jobs for the fields of some number of limbs.
pub(super) trait Jobs: fmt::Debug + Send + Sync {
    fn products(&self, field: &Field, job: Products);
    fn chain(&self, field: &Field, job: Chain);
    fn combine(&self, field: &Field, job: Combine);
    fn inner_product(&self, field: &Field, job: InnerProduct) -> Wiped<u32>;
    fn inverse(&self, field: &Field, job: Inverse<'_>);
    fn differences(&self, field: &Field, job: Differences) -> Wiped<usize>;
    fn chords(&self, field: &Field, job: Chords);
}

/// `LIMBS` in memory and `L` in lanes.
#[derive(Debug)]
pub(super) struct Limbs<const LIMBS: usize, const L: usize>;

macro_rules! jobs {
    ($($name:ident: $job:ty => $output:ty),*) => {
        impl<const LIMBS: usize, const L: usize> Jobs for Limbs<LIMBS, L> {
            $(
                fn $name(&self, field: &Field, job: $job) -> $output {
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
