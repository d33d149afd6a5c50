//! Integers where a device ends loops early.

use evariste::{
    backend::{Device, Error},
    primitives::{Histogram, RadixSort, RadixSortConfig, SortMethod, reference},
};

use crate::{devices::garbage, expect::expect_same, harness::Outcome, loops::Divided};

pub(super) const DIVIDED: &[Divided] = &[("histogram", 200, |device| check_histogram(device, 300_000))];

pub(super) fn many_keys(device: &Device) -> Outcome {
    // On two units a thread would take 2^16 of them.
    let len = if device.info().limits.loop_iterations.is_some() { 1 << 26 } else { 1 << 20 };
    check_histogram(device, len)
}

fn check_histogram(device: &Device, len: usize) -> Outcome {
    let keys: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let mut out = garbage::<u32>(device, 1 << 5)?;
    Histogram::new(device)?.count(&device.upload(&keys)?, 7..12, &mut out)?;
    expect_same("counts", &out.to_vec()?, &reference::histogram(&keys, &(7..12)))
}

/// Without forward progress a sweep is a loop over all keys: either done to the end, or refused with the keys as they
/// were.
pub(super) fn many_keys_by_one_workgroup(device: &Device) -> Outcome {
    let keys: Vec<u32> = (0..100_000u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let values: Vec<u32> = (0..keys.len() as u32).collect();
    let (mut dk, mut dv) = (device.upload::<u32>(&keys)?, device.upload::<u32>(&values)?);
    let sort = RadixSort::with_config(device, RadixSortConfig::default().method(SortMethod::Sweep))?;
    let (keys, values) = match sort.sort(&mut dk, &mut dv, 3..19) {
        Ok(()) => {
            let mut sorted = values;
            sorted.sort_by_key(|i| keys[*i as usize] >> 3 & 0xffff);
            (sorted.iter().map(|i| keys[*i as usize]).collect(), sorted)
        }
        Err(Error::TooLarge { expected: limit, .. })
            if device.info().limits.loop_iterations.map(u64::from) == Some(limit) =>
        {
            (keys, values)
        }
        Err(error) => return Err(error.into()),
    };
    expect_same("keys", &dk.to_vec()?, &keys)?;
    expect_same("values", &dv.to_vec()?, &values)
}
