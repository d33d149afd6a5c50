#![doc = include_str!("../README.md")]

mod area;
mod boundaries;
mod curves;
mod devices;
mod emulator;
mod expect;
mod fields;
mod freed;
mod harness;
mod heap;
mod hostile;
mod launches;
mod left_out;
mod loops;
mod misplaced;
mod null_device;
mod order_checker;
mod prepared;
mod recorder;
mod samples;
mod secrecy;
mod sizes;
mod tail_memory;

include!(concat!(env!("OUT_DIR"), "/trials.rs"));

use evariste::backend::{Device, Error};
use libtest_mimic::Trial;

pub use fields::EVERY_FIELD;
pub use harness::{skipped, slowest};
pub use heap::Heap;
pub use launches::{kernels, launches};
pub use null_device::asked_for;
pub use trials::process::run_child;

use area::Area;
use devices::is_emulated;
use expect::expect;
use harness::{Add, Case, DeviceTrials, Named, Outcome};
use trials::AREAS;

/// The trials of one device. Their names read `device::suite::field::case`, without the field where there is none.
///
/// Call [`run_child`] first in `main`: some trials start the program again.
pub fn suite(device: &Device) -> Vec<Trial> {
    named(device, &device.info().id.to_string()).into_iter().map(Case::trial).collect()
}

/// The trials of one device under a name.
fn named(device: &Device, label: &str) -> Vec<Case> {
    let mut trials = DeviceTrials { device, label, name: "", cases: Vec::new() };
    for area in AREAS {
        trials.name = area.name;
        (area.add)(&mut trials);
    }
    for (name, add) in OF_ALL_AREAS {
        trials.name = name;
        add(&mut trials);
    }
    if is_emulated(device) {
        for case in &mut trials.cases {
            case.skipped = case.skipped.take().or_else(|| left_out::in_vulkan(&case.name).map(str::to_owned));
        }
    }
    trials.cases
}

/// The trials of the CUDA sources on the host, named `emulator::…` with the arithmetic of GPUs and
/// `emulator-portable::…` with the portable one. Every launch is checked for races, bounds and undefined behaviour.
///
/// # Errors
/// [`Error::Unavailable`] without a compiler; the reason says which it takes.
pub fn emulator() -> Result<Vec<Trial>, Error> {
    emulator::trials(named, None)
}

/// Those of [`emulator`] whose names start with a label, `emulator` or `emulator-portable`.
///
/// # Errors
/// As for [`emulator`].
pub fn emulator_of(label: &str) -> Result<Vec<Trial>, Error> {
    emulator::trials(named, Some(label))
}

/// Trials that each area has a part in.
const OF_ALL_AREAS: [(&str, Add); 4] =
    [("loops", loops::add), ("secrecy", secrecy::add), ("freed", freed::add), ("launches", launches::add)];

/// The trials of one device that take minutes, or gigabytes of memory and disk. Devices that the processor emulates
/// have few.
pub fn long(device: &Device) -> Vec<Trial> {
    let label = &device.info().id.to_string();
    let mut trials = DeviceTrials { device, label, name: "aes", cases: Vec::new() };
    trials::aes::add_long(&mut trials);
    trials.cases.into_iter().map(Case::trial).collect()
}

/// The trials that need no device in particular.
pub fn common() -> Vec<Trial> {
    let named = |of: &'static str, trials: &[Named]| -> Vec<Trial> {
        trials.iter().map(|(name, run)| Trial::test(format!("any::{of}::{name}"), *run)).collect()
    };
    let mut trials = vec![launches::common(), launches::names(), null_device::common(), secrecy::common()];
    trials.extend([order_checker::common(), misplaced::common()]);
    trials.extend(hostile::common());
    trials.push(Trial::test("any::areas::nothing_is_missing", nothing_is_missing));
    for area in AREAS {
        trials.extend(named("ordered", area.ordered));
        trials.extend(named("boundaries", area.boundaries));
        trials.extend((area.common)());
    }
    trials
}

/// That what has kernels has operations, plans and an order of launches to check too.
fn nothing_is_missing() -> Outcome {
    for Area { name, operations, ordered, plans, .. } in AREAS.iter().filter(|area| !area.kernels.is_empty()) {
        for (what, is_there) in
            [("operations", !operations.is_empty()), ("ordered", !ordered.is_empty()), ("plans", !plans.is_empty())]
        {
            expect(&format!("that the area {name} has `{what}`"), is_there)?;
        }
    }
    Ok(())
}
