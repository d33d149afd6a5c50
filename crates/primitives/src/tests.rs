//! Plans side by side.

use evariste_backend::{Buffer, Device, Error};

use crate::{
    gather_scatter::GatherScatter,
    histogram::Histogram,
    scan::Scan,
    sort::{RadixSort, RadixSortConfig, SortMethod},
};

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
