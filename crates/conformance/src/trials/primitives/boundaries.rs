//! Integers of lengths around 2³².

use evariste::{
    field::{FieldSum, Mont, small::KoalaBear},
    primitives::{Histogram, MAX_LEN, RadixSort, RadixSortConfig, Scan, SegmentedSum, SortMethod},
};

use crate::{
    boundaries,
    harness::{Named, Outcome},
    null_device::{Launch, NullDevice},
};

pub(super) const BOUNDARIES: &[Named] = &[("primitives", primitives)];

fn primitives() -> Outcome {
    let stub = NullDevice::new(1 << 40);
    let device = stub.device();
    let words = |len: usize| device.alloc::<u32>(len);
    let lengths = [MAX_LEN - 1, MAX_LEN, MAX_LEN + 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 34];
    let whole = |launch: &Launch, len: usize| launch.word(0) as usize == len;
    let scan = Scan::new(&device)?;
    boundaries::check(&stub, "scan", MAX_LEN, &lengths, |len| scan.exclusive(&words(len)?, &mut words(len)?), whole)?;
    let histogram = Histogram::new(&device)?;
    let count = |len| histogram.count(&words(len)?, 0..16, &mut words(1 << 16)?);
    boundaries::check(&stub, "histogram", MAX_LEN, &lengths, count, whole)?;
    for method in [SortMethod::Sweep, SortMethod::Scatter] {
        let sort = RadixSort::with_config(&device, RadixSortConfig::default().method(method))?;
        let work = |len| sort.sort(&mut words(len)?, &mut words(len)?, 0..32);
        boundaries::check(&stub, &format!("{method:?}"), MAX_LEN, &lengths, work, whole)?;
    }
    let sum = SegmentedSum::<FieldSum<KoalaBear>>::new(&device)?;
    let mut out = device.alloc::<Mont<KoalaBear>>(1000)?;
    let work = |len| sum.reduce(&words(len)?, &device.alloc(len)?, &mut out);
    boundaries::check(&stub, "segmented sum", MAX_LEN, &lengths, work, whole)
}
