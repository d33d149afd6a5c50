#![doc = include_str!("../README.md")]
//!
//! Every call is queued and returns at once. It works on the queue of its plan, and takes buffers and views of at most
//! [`MAX_LEN`] elements. The scratch comes from the device's pool and has the secrecy of the input.
//!
//! # Choices
//! If a device promises [`Features::forward_progress`], [`RadixSort`] uses decoupled look-back. On other devices
//! workgroups never wait for each other: a first kernel reduces totals, a second one scans them, and a last one adds
//! them. No kernel counts in device memory with atomics. Workgroups count in their own memory and write rows, and
//! another kernel adds the rows. [`GatherScatter`] takes the maximum of some numbers in device memory, which does not
//! depend on their order.
//!
//! [`Features::forward_progress`]: evariste_backend::Features::forward_progress

mod gather_scatter;
mod histogram;
pub mod reference;
mod scan;
mod scattered;
mod segmented;
mod sort;

use std::ops::Range;

use evariste_backend::{Device, Error, Result};

pub use gather_scatter::GatherScatter;
pub use histogram::{Histogram, MAX_BITS};
pub use scan::Scan;
pub use segmented::{Monoid, SegmentedSum};
pub use sort::{RadixSort, RadixSortConfig, SortMethod};

/// The most elements of a vector: the index of any element of its last tile fits 32 bits.
pub const MAX_LEN: usize = 1 << 31;

/// Threads of every workgroup here: what WebGPU promises.
const THREADS: u32 = 256;

/// Returns the length of a vector, which `what` names in the error.
///
/// # Errors
/// [`Error::TooLarge`] if the vector is longer than [`MAX_LEN`].
pub fn checked_len(device: &Device, what: &'static str, len: usize) -> Result<u32> {
    match u32::try_from(len) {
        Ok(short) if len <= MAX_LEN => Ok(short),
        _ => Err(Error::TooLarge { what, device: device.info().id, expected: MAX_LEN as u64, actual: len as u64 }),
    }
}

/// The shift and the number of a range of key bits.
fn checked_bits(bits: &Range<u32>) -> Result<(u32, u32)> {
    match bits.end.checked_sub(bits.start) {
        Some(count) if bits.end <= u32::BITS => Ok((bits.start, count)),
        _ => {
            let (offset, count) = (bits.start.into(), u64::from(bits.end.saturating_sub(bits.start)));
            Err(Error::OutOfRange { what: "bits of a key", offset, count, len: u32::BITS.into() })
        }
    }
}

/// The lowest `bits` bits, of at most 32.
const fn mask(bits: u32) -> u32 {
    match bits {
        0 => 0,
        _ => u32::MAX >> (u32::BITS - bits),
    }
}

/// A kernel on words: constants, then the sources.
fn source(language: evariste_backend::Language, constants: &[(&str, u32)], cuda: &[&str], wgsl: &[&str]) -> String {
    use evariste_backend::Language;

    let mut text = String::new();
    for (name, value) in constants {
        text += &match language {
            Language::Cuda => format!("#define {name} {value}u\n"),
            Language::Wgsl { .. } => format!("const {name} = {value}u;\n"),
        };
    }
    let parts = match language {
        Language::Cuda => cuda,
        Language::Wgsl { .. } => wgsl,
    };
    text + &parts.concat()
}

#[cfg(test)]
mod tests {
    use evariste_backend::{Buffer, Error};

    use super::*;

    /// Every plan with all its views on the device of the queue.
    #[test]
    fn queues_of_other_devices_are_refused_before_anything_is_done() {
        let (device, other) = (Device::cpu(), Device::another_cpu());
        let queue = other.default_queue();
        let zeros = || -> Buffer<u32> { other.zeros(4).unwrap() };
        let (keys, mut out, mut values) = (zeros(), zeros(), zeros());
        let before = other.stats();
        let gather_scatter = GatherScatter::<u32>::new(&device).on(&queue);
        let sort = |method, out: &mut Buffer<u32>, values: &mut Buffer<u32>| {
            let config = RadixSortConfig::default().method(method);
            RadixSort::with_config(&device, config).unwrap().on(&queue).sort(out, values, 0..8)
        };
        let refused = [
            Scan::new(&device).unwrap().on(&queue).exclusive(&keys, &mut out),
            Histogram::new(&device).unwrap().on(&queue).count(&keys, 0..2, &mut out),
            Histogram::new(&device).unwrap().on(&queue).count(keys.view(..0).unwrap(), 0..2, &mut out),
            sort(SortMethod::Sweep, &mut out, &mut values),
            sort(SortMethod::Scatter, &mut out, &mut values),
            gather_scatter.gather(&keys, &values, &mut out),
            gather_scatter.scatter(&keys, &values, &mut out),
        ];
        for (call, outcome) in refused.into_iter().enumerate() {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::WrongDevice { .. }), "call {call}: {error}");
        }
        let after = other.stats();
        assert_eq!((after.launches, after.bytes_peak), (before.launches, before.bytes_peak));
    }

    /// But for an eighth and some words, by which the CPU rounds allocations up.
    #[test]
    fn calls_take_no_more_memory_than_they_say() {
        let device = Device::another_cpu();
        let (keys, mut out) = (device.zeros::<u32>(10_000).unwrap(), device.zeros::<u32>(10_001).unwrap());
        let mut counts = device.zeros::<u32>(256).unwrap();
        let live = device.stats().bytes_live;
        let expect = |what: &str, required: u64| {
            let taken = device.stats().bytes_peak - live;
            assert!(taken <= required + required / 8 + 4 * 16, "{what}: {taken} of {required} bytes");
        };
        let (scan, histogram) = (Scan::new(&device).unwrap(), Histogram::new(&device).unwrap());
        scan.exclusive(&keys, &mut out).unwrap();
        expect("a scan", scan.required_bytes(10_001));
        histogram.count(&keys, 0..8, &mut counts).unwrap();
        expect("a histogram", histogram.required_bytes(10_000, 8));
    }
}
