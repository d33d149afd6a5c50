//! Trials by device, and what they took.

use std::{
    sync::{Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use evariste::backend::Device;
use libtest_mimic::{Failed, Trial};

pub(crate) type Outcome = Result<(), Failed>;

/// Adds trials of a device.
pub(crate) type Add = fn(&mut DeviceTrials<'_>);

/// A trial without a device, by its name.
pub(crate) type Named = (&'static str, fn() -> Outcome);

/// A trial to be.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) run: Box<dyn FnOnce() -> Outcome + Send>,
    /// Why it cannot run here.
    pub(crate) skipped: Option<String>,
}

impl Case {
    pub(crate) fn trial(self) -> Trial {
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

/// What trials that have ended took, without the time that they waited for their turn; those of `launches()` wait in
/// between.
static TOOK: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

pub(crate) fn timed(name: String, run: impl FnOnce() -> Outcome) -> Outcome {
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
pub(crate) struct DeviceTrials<'a> {
    pub(crate) device: &'a Device,
    pub(crate) label: &'a str,
    pub(crate) name: &'static str,
    pub(crate) cases: Vec<Case>,
}

impl DeviceTrials<'_> {
    pub(crate) fn add(&mut self, case: &str, run: fn(&Device) -> Outcome) {
        self.add_with(case, run);
    }

    pub(crate) fn add_with(&mut self, case: &str, run: impl FnOnce(&Device) -> Outcome + Send + 'static) {
        let device = self.device.clone();
        self.push(case, move |name| {
            let _turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
            timed(name, || run(&device))
        });
    }

    /// Adds a trial that uses up the device's memory or watches its counters, so that no other may run meanwhile.
    pub(crate) fn add_alone(&mut self, case: &str, run: fn(&Device) -> Outcome) {
        let device = self.device.clone();
        self.add_alone_with(case, move || run(&device));
    }

    pub(crate) fn add_alone_with(&mut self, case: &str, run: impl FnOnce() -> Outcome + Send + 'static) {
        self.push(case, move |name| {
            let _turn = TURN.write().unwrap_or_else(PoisonError::into_inner);
            timed(name, run)
        });
    }

    pub(crate) fn push(&mut self, case: &str, run: impl FnOnce(String) -> Outcome + Send + 'static) {
        let name = format!("{}::{}::{case}", self.label, self.name);
        let of_case = name.clone();
        self.cases.push(Case { name, run: Box::new(|| run(of_case)), skipped: None });
    }

    /// Adds a trial that cannot be run here.
    pub(crate) fn skip(&mut self, case: &str, reason: &'static str) {
        let name = format!("{}::{}::{case}", self.label, self.name);
        self.cases.push(Case { name, run: Box::new(move || Err(reason.into())), skipped: Some(reason.into()) });
    }

    /// [`DeviceTrials::add_alone`] for a trial that takes so much memory, in one buffer and in all. Devices that have
    /// less, or that the processor emulates, skip it.
    pub(crate) fn add_large(&mut self, case: &str, buffer_bytes: u64, memory_bytes: u64, run: fn(&Device) -> Outcome) {
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
