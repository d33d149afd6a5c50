#![doc = include_str!("../README.md")]

mod aes;
mod boundaries;
mod child;
mod curve;
mod curves;
mod device;
mod emulator;
mod field;
mod fields;
mod freed;
mod heap;
mod hostile;
mod launches;
mod loops;
mod modsqrt;
mod msm;
mod ntt;
mod ordered;
mod prepared;
mod primitives;
mod process;
mod queues;
mod recorder;
mod samples;
mod secrecy;
mod sizes;
mod sqrt;
mod stub;
mod sumcheck;
mod vector;
mod views;
mod window;

use std::{
    fmt::Debug,
    panic::Location,
    sync::{Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use evariste_backend::{Buffer, Device, Element, Error, Kind, Secrecy, Transfer};
use libtest_mimic::{Failed, Trial};

pub use child::run_child;
pub use emulator::emulator;
pub use heap::Heap;
pub use launches::{kernels, launches};
pub use stub::asked_for;

use launches::Family;

/// Whether trials run over every field and curve, and not over one of each shape alone. What is left out is compiled, as far as
/// types go, but for no field.
pub const EVERY_FIELD: bool = cfg!(feature = "every-field");

/// The trials of something.
struct Topic {
    /// What their names have behind the device's; several may share it.
    name: &'static str,
    add: fn(&mut Suite<'_>),
    /// Its kernels, and which of the trials launch them.
    families: &'static [Family],
}

/// What is tested on every device, in the order of the trials.
const TOPICS: &[Topic] = &[
    Topic { name: "device", add: device::add, families: &[] },
    Topic { name: "device", add: views::add, families: &[] },
    Topic { name: "device", add: queues::add, families: &[] },
    Topic { name: "field", add: field::add, families: field::FAMILIES },
    Topic { name: "ntt", add: ntt::add, families: ntt::FAMILIES },
    Topic { name: "aes", add: aes::add, families: aes::FAMILIES },
    Topic { name: "primitives", add: primitives::add, families: primitives::FAMILIES },
    Topic { name: "curve", add: curve::add, families: curve::FAMILIES },
    Topic { name: "msm", add: msm::add, families: msm::FAMILIES },
    Topic { name: "sumcheck", add: sumcheck::add, families: sumcheck::FAMILIES },
    Topic { name: "modsqrt", add: modsqrt::add, families: modsqrt::FAMILIES },
    Topic { name: "sqrt", add: sqrt::add, families: sqrt::FAMILIES },
    Topic { name: "loops", add: loops::add, families: &[] },
    Topic { name: "secrecy", add: secrecy::add, families: &[] },
    Topic { name: "freed", add: freed::add, families: &[] },
    Topic { name: "process", add: process::add, families: &[] },
];

/// The trials of one device. Their names read `device::suite::field::case`, without the field where there is none.
///
/// Whoever runs them calls [`run_child`] first in `main`: some trials start the program again.
pub fn suite(device: &Device) -> Vec<Trial> {
    named(device, &device.info().id.to_string()).into_iter().map(Case::trial).collect()
}

/// The trials of one device under a name.
fn named(device: &Device, label: &str) -> Vec<Case> {
    let mut suite = Suite { device, label, name: "", cases: Vec::new() };
    for topic in TOPICS {
        suite.name = topic.name;
        (topic.add)(&mut suite);
    }
    suite.name = "launches";
    launches::add(&mut suite);
    suite.cases
}

/// The trials of one device that take minutes, or gigabytes of memory and disk. Devices that the processor emulates have few.
pub fn long(device: &Device) -> Vec<Trial> {
    let label = &device.info().id.to_string();
    let mut suite = Suite { device, label, name: "aes", cases: Vec::new() };
    aes::add_long(&mut suite);
    suite.cases.into_iter().map(Case::trial).collect()
}

/// The trials that need no device in particular.
pub fn common() -> Vec<Trial> {
    process::common()
        .into_iter()
        .chain([launches::common(), launches::names(), stub::common(), secrecy::common()])
        .chain(ordered::common())
        .chain(boundaries::common())
        .chain(hostile::common())
        .chain(aes::common())
        .collect()
}

type Outcome = Result<(), Failed>;

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

/// What trials that have ended took, without the time that they waited for their turn; those of [`launches()`] wait in between.
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

struct Suite<'a> {
    device: &'a Device,
    label: &'a str,
    name: &'static str,
    cases: Vec<Case>,
}

impl Suite<'_> {
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

    /// [`Suite::add_alone`] for a trial that takes so much memory, in one buffer and in all. Devices that have less, or that the
    /// processor emulates, skip it.
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

/// Whether the processor runs kernels of a program that looks for overflow and broken assumptions, several times as long as others:
/// long inputs are shorter then.
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

/// What `assert_eq!` is elsewhere: values here are long vectors, of which it would print all, and one trial says what it was about
/// (`what`) for many fields and lengths.
#[track_caller]
fn expect_equal<T: PartialEq + Debug>(what: &str, actual: &T, expected: &T) -> Outcome {
    if actual == expected {
        return Ok(());
    }
    let shorten = |text: String| text.chars().take(500).collect::<String>();
    let [expected, actual] = [expected, actual].map(|value| shorten(format!("{value:?}")));
    Err(format!("{what}: expected {expected}, got {actual} (at {})", Location::caller()).into())
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

#[track_caller]
fn expect(what: &str, holds: bool) -> Outcome {
    if holds { Ok(()) } else { Err(format!("{what} does not hold (at {})", Location::caller()).into()) }
}

/// Unwraps the error of a call that must fail.
fn expect_error<T, E>(what: &str, result: Result<T, E>) -> Result<E, Failed> {
    result.err().ok_or_else(|| format!("{what} must fail").into())
}
