//! Scan, histogram, sort and segmented sums on integers.

mod boundaries;
mod loops;
mod queues;
mod secrets;

use std::ops::Range;

use ark_bls12_381::Fr;
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use evariste::backend::{Buffer, Device, Error};
use evariste::field::{DeviceField, FieldSum, Mont, small};
use evariste::primitives::{
    Histogram, MAX_BITS, RadixSort, RadixSortConfig, Scan, SegmentedSum, SortMethod, reference,
};

use crate::{
    area::Area,
    devices::{garbage, is_checked_cpu, other_device},
    expect::{expect, expect_equal, expect_error, expect_same},
    fields,
    harness::{DeviceTrials, Outcome},
    launches::{Exception, KernelGroup, Launched},
    recorder::Recorder,
    samples::samples,
    sizes::lengths,
};

pub(crate) const AREA: Area = Area {
    kernels: KERNELS,
    // The sum of one tile is no one's offset.
    exceptions: &[Exception::new("scan_sums", "", Launched::BySeveral)],
    operations: secrets::OPERATIONS,
    ordered: queues::ORDERED,
    boundaries: boundaries::BOUNDARIES,
    divided: loops::DIVIDED,
    plans: queues::PLANS,
    ..Area::new("primitives", add)
};

fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("scan", scan);
    trials.add("histogram", histogram);
    trials.add("sort", sort);
    trials.add("sort_bits", sort_bits);
    trials.add("sort_methods", sort_methods);
    trials.add("sort_large", sort_large);
    trials.add("sort_with_false_counts", sort_with_false_counts);
    trials.add("segmented_sum::bls12-381-fr", segmented_sum::<Fr>);
    trials.add("segmented_sum::baby-bear", segmented_sum::<small::BabyBear>);
    trials.add("segmented_sum::bn254-fq2", segmented_sum::<ark_bn254::Fq2>);
    trials.add("segmented_sum::mersenne-89", segmented_sum::<fields::Mersenne89>);
    trials.add("segmented_sum::unsorted_keys", unsorted_keys);
    trials.add("many_keys", loops::many_keys);
    trials.add("many_keys_by_one_workgroup", loops::many_keys_by_one_workgroup);
    trials.add("misuse", misuse);
}

const KERNELS: &[KernelGroup] = &[KernelGroup {
    name: "primitives",
    cases: &["scan", "histogram", "sort", "segmented_sum::"],
    kernels: |_| {
        let sums = [
            SegmentedSum::<FieldSum<Fr>>::kernels(),
            SegmentedSum::<FieldSum<small::BabyBear>>::kernels(),
            SegmentedSum::<FieldSum<ark_bn254::Fq2>>::kernels(),
            SegmentedSum::<FieldSum<fields::Mersenne89>>::kernels(),
        ];
        Ok([RadixSort::kernels(), sums.concat()].concat())
    },
}];

const LENGTHS: [usize; 10] = [0, 1, 2, 255, 256, 257, 1000, 4096, 10_000, (1 << 16) + 3];

/// A key from its place, the number of keys and a source of randomness.
type Shape = fn(usize, usize, &mut StdRng) -> u32;

/// Keys of every shape that could favour one place over the others.
const SHAPES: [(&str, Shape); 7] = [
    ("random", |_, _, rng| rng.r#gen()),
    ("all equal", |_, _, _| 0x8765_4321),
    ("one hot", |i, _, rng| if i % 10 == 3 { rng.r#gen() } else { 7 }),
    ("sorted", |i, _, _| i as u32),
    ("reversed", |i, len, _| (len - i) as u32),
    ("all ones", |_, _, _| u32::MAX),
    ("few", |_, _, rng| rng.gen_range(0..3) << 14),
];

fn keys(shape: usize, len: usize) -> (&'static str, Vec<u32>) {
    let (name, key) = SHAPES[shape];
    let mut rng = StdRng::seed_from_u64((shape * 1_000_003 + len) as u64);
    (name, (0..len).map(|i| key(i, len, &mut rng)).collect())
}

fn scan(device: &Device) -> Outcome {
    let scan = Scan::new(device)?;
    for len in lengths(device, &LENGTHS) {
        for shape in 0..SHAPES.len() {
            let (name, input) = keys(shape, len);
            let expected = reference::exclusive_scan(&input);
            let input = device.upload::<u32>(&input)?;
            for (more, expected) in [(0, &expected[..len]), (1, &expected[..])] {
                let mut out = garbage(device, len + more)?;
                scan.exclusive(&input, &mut out)?;
                expect_same(&format!("{len} {name} and {more} more"), &out.to_vec()?, expected)?;
            }
        }
    }
    // Three levels, and an output that begins a tile of its own.
    for len in lengths(device, &[1 << 11, (1 << 22) + 2047]) {
        let input: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let mut out = garbage(device, len + 1)?;
        scan.exclusive(&device.upload(&input)?, &mut out)?;
        expect_same(&format!("{len}"), &out.to_vec()?, &reference::exclusive_scan(&input))?;
    }
    Ok(())
}

fn histogram(device: &Device) -> Outcome {
    let histogram = Histogram::new(device)?;
    for len in lengths(device, &LENGTHS) {
        for shape in 0..SHAPES.len() {
            let (name, keys) = keys(shape, len);
            let uploaded = device.upload::<u32>(&keys)?;
            for bits in [0..0, 32..32, 0..1, 3..11, 20..32, 16..29, 5..5 + MAX_BITS, 16..32] {
                let mut out = garbage(device, 1 << bits.len())?;
                histogram.count(&uploaded, bits.clone(), &mut out)?;
                let expected = reference::histogram(&keys, &bits);
                expect_same(&format!("bits {bits:?} of {len} {name}"), &out.to_vec()?, &expected)?;
            }
        }
    }
    Ok(())
}

fn sorted(device: &Device, sort: &RadixSort, what: &str, keys: &[u32], bits: Range<u32>) -> Outcome {
    let values: Vec<u32> = (0..keys.len() as u32).map(|i| i ^ 0xa5a5_0000).collect();
    let (mut sorted_keys, mut sorted_values) = (device.upload::<u32>(keys)?, device.upload::<u32>(&values)?);
    sort.sort(&mut sorted_keys, &mut sorted_values, bits.clone())?;
    let (expected_keys, expected_values) = reference::sort(keys, &values, &bits);
    let what = format!("{:?} of {} {what} by bits {bits:?}", sort.method(), keys.len());
    expect_same(&format!("{what}, keys"), &sorted_keys.to_vec()?, &expected_keys)?;
    expect_same(&format!("{what}, values"), &sorted_values.to_vec()?, &expected_values)
}

fn sort(device: &Device) -> Outcome {
    let sort = RadixSort::new(device)?;
    expect_equal("method", &sort.method(), &SortMethod::fastest(device.info()))?;
    for len in lengths(device, &LENGTHS) {
        for shape in 0..SHAPES.len() {
            let (name, keys) = keys(shape, len);
            sorted(device, &sort, name, &keys, 0..32)?;
            sorted(device, &sort, name, &keys, 3..16)?;
        }
    }
    Ok(())
}

/// Every number of bits and of passes, at both ends of the keys.
fn sort_bits(device: &Device) -> Outcome {
    let sort = RadixSort::new(device)?;
    let (name, keys) = keys(0, 5000);
    for bits in 0..=32 {
        sorted(device, &sort, name, &keys, 0..bits)?;
        sorted(device, &sort, name, &keys, 32 - bits..32)?;
    }
    Ok(())
}

/// The method that the device would not choose.
fn sort_methods(device: &Device) -> Outcome {
    for method in [SortMethod::Sweep, SortMethod::Scatter] {
        let sort = RadixSort::with_config(device, RadixSortConfig::default().method(method))?;
        for (len, shape) in [(2, 4), (257, 2), (2049, 0), (1 << 14, 1), (40_000, 0)] {
            let (name, keys) = keys(shape, len);
            sorted(device, &sort, name, &keys, 0..32)?;
            sorted(device, &sort, name, &keys, 9..20)?;
        }
    }
    Ok(())
}

/// Counts that are not those of the keys, as where another queue changes the keys meanwhile, lead out of no buffer.
fn sort_with_false_counts(device: &Device) -> Outcome {
    for (method, skipped) in [
        (SortMethod::Sweep, &["histogram", "column_sums"][..]),
        (SortMethod::Sweep, &["histogram"]),
        (SortMethod::Scatter, &["sort_count"]),
        (SortMethod::Scatter, &["scan_tiles"]),
    ] {
        let skipping = Recorder::skipping(device, skipped);
        let sort = RadixSort::with_config(&skipping, RadixSortConfig::default().method(method))?;
        for (len, shape) in [(2, 0), (2049, 0), (1 << 14, 1), (40_000, 5)] {
            let (_, input) = keys(shape, len);
            let (mut keys, mut values) = (skipping.upload::<u32>(&input)?, skipping.upload::<u32>(&input)?);
            sort.sort(&mut keys, &mut values, 0..32)?;
            // Whatever is there now, the device says that nothing went wrong.
            keys.to_vec()?;
            values.to_vec()?;
            skipping.sync()?;
        }
        let (name, keys) = keys(0, 5000);
        sorted(
            device,
            &RadixSort::with_config(device, RadixSortConfig::default().method(method))?,
            name,
            &keys,
            0..32,
        )?;
    }
    Ok(())
}

/// Enough tiles that some start while others look back.
fn sort_large(device: &Device) -> Outcome {
    let sort = RadixSort::new(device)?;
    let len = match device.info().features.software {
        true => 1 << 16,
        false if is_checked_cpu(device) => (1 << 20) + 17,
        false => (1 << 22) + 17,
    };
    for shape in [0, 1, 2] {
        let (name, keys) = keys(shape, len);
        sorted(device, &sort, name, &keys, 0..32)?;
    }
    let scratch = sort.required_bytes(len, 32);
    expect("scratch for the pairs at least", scratch >= 8 * len as u64 && scratch < 10 * len as u64)
}

fn segmented_sum<F: DeviceField>(device: &Device) -> Outcome {
    let sum = SegmentedSum::<FieldSum<F>>::new(device)?;
    for len in lengths(device, &LENGTHS) {
        let values = samples::<F>(len, 21);
        let uploaded = device.upload::<Mont<F>>(&values)?;
        for (shape, bits) in (0..SHAPES.len()).zip([10, 16, 4, 32, 32, 3, 16]) {
            let (name, mut keys) = keys(shape, len);
            keys.iter_mut().for_each(|key| *key >>= 32 - bits);
            keys.sort_unstable();
            for segments in [0, 1, 9, 1 << 10, 100_000] {
                let mut out = device.upload::<Mont<F>>(&samples(segments, 22))?;
                sum.reduce(&device.upload(&keys)?, &uploaded, &mut out)?;
                let expected = reference::segmented_sum(&keys, &values, segments, F::ZERO, |a, b| a + b);
                expect_same(&format!("{segments} segments of {len} {name}"), &out.to_vec()?, &expected)?;
            }
        }
    }
    Ok(())
}

/// Keys that are not sorted give some sums, and nothing else happens.
fn unsorted_keys(device: &Device) -> Outcome {
    let sum = SegmentedSum::<FieldSum<Fr>>::new(device)?;
    let (_, keys) = keys(0, 10_000);
    let keys: Vec<u32> = keys.iter().map(|key| key >> 20).collect();
    let mut out: Buffer<Mont<Fr>> = garbage(device, 1 << 12)?;
    sum.reduce(&device.upload(&keys)?, &device.upload(&samples(keys.len(), 23))?, &mut out)?;
    device.sync()?;
    Ok(())
}

fn misuse(device: &Device) -> Outcome {
    let (scan, histogram) = (Scan::new(device)?, Histogram::new(device)?);
    let (sort, sum) = (RadixSort::new(device)?, SegmentedSum::<FieldSum<Fr>>::new(device)?);
    let mut four = device.upload::<u32>(&[4, 3, 2, 1])?;
    let mut six: Buffer<u32> = device.zeros(6)?;

    let error = expect_error("a scan into another length", scan.exclusive(&four, &mut six))?;
    expect_equal("scan", &error, &Error::Length { what: "the output of a scan", expected: 4, actual: 6 })?;
    let error = expect_error("a histogram of another length", histogram.count(&four, 0..3, &mut six))?;
    expect_equal("histogram", &error, &Error::Length { what: "the output of a histogram", expected: 8, actual: 6 })?;
    expect_error("a histogram of 2^17", histogram.count(&four, 0..17, &mut six))?;
    expect_error("values of another length", sort.sort(&mut four, &mut six, 0..32))?;
    let mut values: Buffer<u32> = device.zeros(4)?;
    let error = expect_error("bits past the end", sort.sort(&mut four, &mut values, 30..33))?;
    expect_equal("bits", &error, &Error::OutOfRange { what: "bits of a key", offset: 30, count: 3, len: 32 })?;
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    expect_error("bits that end before they start", sort.sort(&mut four, &mut values, 5..3))?;
    let error = expect_error("values of another length", sum.reduce(&four, &device.zeros(5)?, &mut device.zeros(1)?))?;
    let what = "the values of a segmented sum";
    expect_equal("segmented sum", &error, &Error::Length { what, expected: 4, actual: 5 })?;
    if let Some(other) = other_device(device) {
        let error = expect_error("a scan elsewhere", scan.exclusive(&four, &mut other.zeros(4)?))?;
        let (expected, actual) = (device.info().id, other.info().id);
        expect_equal("device", &error, &Error::WrongDevice { what: "the output of a scan", expected, actual })?;
        expect_error("a sort elsewhere", sort.sort(&mut other.zeros(4)?, &mut values, 0..32))?;
    }
    expect_same("untouched", &four.to_vec()?, &[4, 3, 2, 1])
}
