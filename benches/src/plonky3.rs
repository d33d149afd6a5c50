//! Transforms of Plonky3 over the small fields, on all cores.

use std::{
    cell::RefCell,
    fmt,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use ark_ff::{FftField, PrimeField};
use evariste::field::{DeviceField, small};
use evariste::ntt::Order;
use p3_dft::{Radix2DFTSmallBatch, Radix2DitParallel, TwoAdicSubgroupDft};
use p3_field::{PrimeCharacteristicRing, PrimeField64, TwoAdicField};
use p3_matrix::{Matrix, bitrev::BitReversibleMatrix, dense::RowMajorMatrix};
use p3_monty_31::{FieldParameters, MontyField31, TwoAdicData, dft::RecursiveDft};

use crate::{
    input::Lazy,
    session::{Case, Session},
};

/// What its records are called: it has vector code only where the whole program is built for it.
const NAME: &str = if cfg!(any(target_feature = "avx2", all(target_arch = "aarch64", target_feature = "neon"))) {
    "plonky3"
} else {
    "plonky3-default"
};

/// A field that Plonky3 has too.
pub(super) trait Shared: DeviceField + PrimeField + FftField {
    /// The same field.
    type Theirs: TwoAdicField + PrimeField64 + Ord;

    /// What does a task in this field.
    fn candidates(task: Task) -> Vec<Candidate<Self::Theirs>>;

    fn to_theirs(self) -> Self::Theirs {
        Self::Theirs::from_u64(self.into_bigint().as_ref()[0])
    }
}

/// What is done to each column of a matrix.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    Forward(Order),
    /// The extension to twice the values, on the coset of the field's generator, in bit-reversed order.
    Extend,
}

/// One of its transforms.
pub(super) struct Candidate<P> {
    name: &'static str,
    apply: Box<dyn Fn(RowMajorMatrix<P>) -> RowMajorMatrix<P>>,
}

impl<P> fmt::Debug for Candidate<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<P: TwoAdicField> Candidate<P> {
    fn new<D: TwoAdicSubgroupDft<P> + 'static>(name: &'static str, task: Task) -> Self {
        let dft = D::default();
        let apply = move |matrix| {
            let (values, order) = match task {
                Task::Forward(order) => (dft.dft_batch(matrix), order),
                Task::Extend => (dft.coset_lde_batch(matrix, 1, P::GENERATOR), Order::BitReversed),
            };
            // What lies in this order already is only given back.
            match order {
                Order::Natural => values.to_row_major_matrix(),
                Order::BitReversed => values.bit_reverse_rows().to_row_major_matrix(),
            }
        };
        Self { name, apply: Box::new(apply) }
    }
}

/// What every field has.
fn general<P: TwoAdicField + Ord>(task: Task) -> Vec<Candidate<P>> {
    vec![
        Candidate::new::<Radix2DitParallel<P>>("Radix2DitParallel", task),
        Candidate::new::<Radix2DFTSmallBatch<P>>("Radix2DFTSmallBatch", task),
    ]
}

/// What fields below 2^31 have.
fn monty_31<P: FieldParameters + TwoAdicData>(task: Task) -> Vec<Candidate<MontyField31<P>>> {
    let mut candidates = general(task);
    candidates.push(Candidate::new::<RecursiveDft<_>>("RecursiveDft", task));
    candidates
}

impl Shared for small::Goldilocks {
    type Theirs = p3_goldilocks::Goldilocks;

    fn candidates(task: Task) -> Vec<Candidate<Self::Theirs>> {
        general(task)
    }
}

impl Shared for small::BabyBear {
    type Theirs = p3_baby_bear::BabyBear;

    fn candidates(task: Task) -> Vec<Candidate<Self::Theirs>> {
        monty_31(task)
    }
}

impl Shared for small::KoalaBear {
    type Theirs = p3_koala_bear::KoalaBear;

    fn candidates(task: Task) -> Vec<Candidate<Self::Theirs>> {
        monty_31(task)
    }
}

/// Times the fastest transform on the columns of a matrix. `check` compares the values, which it reads one by one, and
/// says with what.
pub(super) fn measure<F: Shared>(
    session: &mut Session,
    case: Case,
    task: Task,
    columns: usize,
    input: &Lazy<F>,
    check: impl Fn(&dyn Fn(usize) -> Result<F>) -> Result<String>,
) {
    let case = Case { device: "cpu".into(), peer: Some(NAME), ..case };
    session.measure(case, |budget| {
        let input: Vec<F::Theirs> = input.iter().map(|x| x.to_theirs()).collect();
        let matrix = || RowMajorMatrix::new(input.clone(), columns);
        let mut fastest: Option<(Duration, Candidate<F::Theirs>, String)> = None;
        for candidate in F::candidates(task) {
            // The tables are made in the first run.
            let values = (candidate.apply)(matrix()).values;
            let checked = check(&|i| Ok(F::from(values[i].as_canonical_u64()))).context(candidate.name)?;
            drop(values);
            let matrix = matrix();
            let start = Instant::now();
            let values = (candidate.apply)(matrix);
            let time = start.elapsed();
            drop(values);
            if fastest.as_ref().is_none_or(|(least, ..)| time < *least) {
                fastest = Some((time, candidate, checked));
            }
        }
        let (_, Candidate { name, apply }, checked) = fastest.context("no transform")?;
        let matrix = RefCell::new(None);
        let prepare = || *matrix.borrow_mut() = Some(RowMajorMatrix::new(input.clone(), columns));
        let timing = budget.time_prepared(1, prepare, |_| {
            let given = matrix.take().context("no matrix")?;
            matrix.replace(Some(apply(given)));
            Ok(())
        })?;
        Ok((timing, None, format!("{checked}, of {name}, the fastest here")))
    });
}
