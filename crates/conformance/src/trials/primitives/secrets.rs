//! Operations on secret integers.

use ark_bls12_381::Fr;
use evariste::{
    field::FieldSum,
    primitives::{Histogram, RadixSort, RadixSortConfig, Scan, SegmentedSum, SortMethod},
};

use crate::{
    harness::Outcome,
    secrecy::{LEN, Operation, Probe},
};

pub(super) const OPERATIONS: &[Operation] = &[
    Operation::new("scan", 2, |p| {
        let (scan, input, mut out) = (Scan::new(&p.device)?, p.keys(10_000)?, p.output_keys(10_001)?);
        p.watch(|| scan.exclusive(&input, &mut out))
    }),
    Operation::new("histogram", 2, |p| {
        let (histogram, keys, mut out) = (Histogram::new(&p.device)?, p.keys(10_000)?, p.output_keys(1 << 8)?);
        p.watch(|| histogram.count(&keys, 3..11, &mut out))
    }),
    Operation::new("sort", 2, |p| sort(p, SortMethod::fastest(p.device.info()))),
    // The other method on the CPU.
    Operation::new("sort_by_counts", 2, |p| sort(p, SortMethod::Scatter)),
    Operation::new("segmented_sum", 3, |p| {
        let sum = SegmentedSum::<FieldSum<Fr>>::new(&p.device)?;
        let (keys, values, mut out) = (p.sorted(LEN)?, p.elements(1)?, p.output(100)?);
        p.watch(|| sum.reduce(&keys, &values, &mut out))
    }),
];

/// What is moved changes places with what it is moved from: so both are as secret as each other.
fn sort(p: &Probe, method: SortMethod) -> Outcome {
    let sort = RadixSort::with_config(&p.device, RadixSortConfig::default().method(method))?;
    let (mut keys, mut values) = (p.in_place(|p| p.keys(5000))?, p.in_place(|p| p.keys(5000))?);
    p.watch(|| sort.sort(&mut keys, &mut values, 0..20))
}
