#![doc = include_str!("../README.md")]

mod area;
mod boundaries;
mod curves;
mod emulator;
mod fields;
mod freed;
mod heap;
mod hostile;
mod launches;
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

use std::{
    fmt::Debug,
    panic::Location,
    sync::{Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use evariste::backend::{Buffer, Device, Element, Error, Kind, Secrecy, Transfer};
use libtest_mimic::{Failed, Trial};

pub use emulator::emulator;
pub use heap::Heap;
pub use launches::{kernels, launches};
pub use null_device::asked_for;
pub use trials::process::run_child;

use area::Area;
use trials::AREAS;

/// Whether trials run over every field and curve, and not over one of each shape alone. What is left out is compiled,
/// as far as types go, but for no field.
pub const EVERY_FIELD: bool = cfg!(feature = "every-field");

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
    trials.cases
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

type Outcome = Result<(), Failed>;

/// Adds trials of a device.
type Add = fn(&mut DeviceTrials<'_>);

/// A trial without a device, by its name.
type Named = (&'static str, fn() -> Outcome);

/// A trial to be.
struct Case {
    name: String,
    run: Box<dyn FnOnce() -> Outcome + Send>,
    /// Why it cannot run here.
    skipped: Option<String>,
}

impl Case {
    fn trial(self) -> Trial {
        match self.skipped {
            None => Trial::test(self.name, self.run),
            Some(reason) => skipped(self.name, &reason),
        }
    }
}

/// A trial that is reported as ignored, with the reason why it cannot be run here.
pub fn skipped(name: impl Into<String>, reason: &str) -> Trial {
    let error = Failed::from(reason);
    Trial::test(name, move || Err(error)).with_kind(format!("skipped: {reason}")).with_ignored_flag(true)
}

/// Trials run side by side, but for those that take it to write.
static TURN: RwLock<()> = RwLock::new(());

/// What trials that have ended took, without the time that they waited for their turn; those of [`launches()`] wait in
/// between.
static TOOK: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

fn timed(name: String, run: impl FnOnce() -> Outcome) -> Outcome {
    let start = Instant::now();
    let outcome = run();
    // Trials within another, which have no device's label, count as that one.
    if !name.starts_with("::") {
        TOOK.lock().unwrap_or_else(PoisonError::into_inner).push((start.elapsed(), name));
    }
    outcome
}

/// Of the trials of devices that have ended, the `count` that took longest, the longest first.
pub fn slowest(count: usize) -> Vec<(Duration, String)> {
    let mut all = TOOK.lock().unwrap_or_else(PoisonError::into_inner).clone();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.truncate(count);
    all
}

/// The trials of one device, as areas add them.
struct DeviceTrials<'a> {
    device: &'a Device,
    label: &'a str,
    name: &'static str,
    cases: Vec<Case>,
}

impl DeviceTrials<'_> {
    fn add(&mut self, case: &str, run: fn(&Device) -> Outcome) {
        self.add_with(case, run);
    }

    fn add_with(&mut self, case: &str, run: impl FnOnce(&Device) -> Outcome + Send + 'static) {
        let device = self.device.clone();
        self.push(case, move |name| {
            let _turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
            timed(name, || run(&device))
        });
    }

    /// Adds a trial that uses up the device's memory or watches its counters, so that no other may run meanwhile.
    fn add_alone(&mut self, case: &str, run: fn(&Device) -> Outcome) {
        let device = self.device.clone();
        self.add_alone_with(case, move || run(&device));
    }

    fn add_alone_with(&mut self, case: &str, run: impl FnOnce() -> Outcome + Send + 'static) {
        self.push(case, move |name| {
            let _turn = TURN.write().unwrap_or_else(PoisonError::into_inner);
            timed(name, run)
        });
    }

    fn push(&mut self, case: &str, run: impl FnOnce(String) -> Outcome + Send + 'static) {
        let name = format!("{}::{}::{case}", self.label, self.name);
        let of_case = name.clone();
        self.cases.push(Case { name, run: Box::new(|| run(of_case)), skipped: None });
    }

    /// Adds a trial that cannot be run here.
    fn skip(&mut self, case: &str, reason: &'static str) {
        let name = format!("{}::{}::{case}", self.label, self.name);
        self.cases.push(Case { name, run: Box::new(move || Err(reason.into())), skipped: Some(reason.into()) });
    }

    /// [`DeviceTrials::add_alone`] for a trial that takes so much memory, in one buffer and in all. Devices that have
    /// less, or that the processor emulates, skip it.
    fn add_large(&mut self, case: &str, buffer_bytes: u64, memory_bytes: u64, run: fn(&Device) -> Outcome) {
        self.add_alone(case, run);
        let info = self.device.info();
        let (buffer, memory) = (info.limits.buffer_bytes, info.memory_bytes.unwrap_or(info.limits.buffer_bytes));
        let reason = match () {
            () if info.features.software => Some("the processor emulates it".into()),
            () if buffer < buffer_bytes => Some(format!("needs buffers of {} MiB", buffer_bytes >> 20)),
            () if memory < memory_bytes => Some(format!("needs {} MiB", memory_bytes >> 20)),
            () => None,
        };
        if let Some(case) = self.cases.last_mut() {
            case.skipped = reason;
        }
    }
}

/// A buffer of elements that no operation gives: a kernel that does nothing must not leave what an earlier one wrote.
fn garbage<T: Element>(device: &Device, len: usize) -> Result<Buffer<T>, Error> {
    let mut buffer = device.alloc::<T>(len)?;
    let mut host = device.host_buffer(len * T::BYTES, Transfer::Upload, Secrecy::Public)?;
    host.fill(0x5a);
    buffer.write_pinned(host)?.wait()?;
    Ok(buffer)
}

/// Whether the processor emulates a GPU, whose compiler takes seconds for a kernel over several limbs.
fn is_emulated(device: &Device) -> bool {
    let info = device.info();
    info.id.kind == Kind::Wgpu && info.features.software
}

/// Whether the processor runs kernels of a program that looks for overflow and broken assumptions, several times as
/// long as others: long inputs are shorter then.
fn is_checked_cpu(device: &Device) -> bool {
    cfg!(debug_assertions) && device.info().id.kind == Kind::Cpu
}

/// Another device than this one, where there is one.
fn other_device(device: &Device) -> Option<Device> {
    match device.info().id.kind {
        Kind::Cpu => Device::all().into_iter().find(|other| !other.is_same(device)),
        _ => Some(Device::cpu()),
    }
}

/// Replaces `assert_eq!`, which would print all of two values. Values here are long vectors, and one trial compares
/// them (`what`) for many fields and lengths.
#[track_caller]
fn expect_equal<T: PartialEq + Debug>(what: &str, actual: &T, expected: &T) -> Outcome {
    if actual == expected {
        return Ok(());
    }
    let shorten = |text: String| text.chars().take(500).collect::<String>();
    let [expected, actual] = [expected, actual].map(|value| shorten(format!("{value:?}")));
    Err(format!("{what}: expected {expected}, got {actual} (at {})", here()).into())
}

/// Compares vectors and names the first place where they differ.
#[track_caller]
fn expect_same<T: PartialEq + Debug>(what: &str, actual: &[T], expected: &[T]) -> Outcome {
    expect_equal(&format!("{what}, length"), &actual.len(), &expected.len())?;
    match actual.iter().zip(expected).position(|(a, e)| a != e) {
        None => Ok(()),
        Some(i) => expect_equal(&format!("{what} at {i} of {}", actual.len()), &actual[i], &expected[i]),
    }
}

/// The line of the caller, from the root of the workspace on.
#[track_caller]
fn here() -> String {
    let place = Location::caller().to_string();
    place.rsplit_once("/../").map_or(place.as_str(), |(_, place)| place).to_owned()
}

#[track_caller]
fn expect(what: &str, holds: bool) -> Outcome {
    if holds { Ok(()) } else { Err(format!("{what} does not hold (at {})", here()).into()) }
}

/// Unwraps the error of a call that must fail.
fn expect_error<T, E>(what: &str, result: Result<T, E>) -> Result<E, Failed> {
    result.err().ok_or_else(|| format!("{what} must fail").into())
}
