//! What a file of trials registers. Each check of all kernels or all plans reads its own field here, so that it is
//! complete without a list.

use evariste::backend::Device;
use libtest_mimic::Trial;

use crate::{
    freed::Freed,
    harness::{Add, Named, Outcome},
    launches::{Exception, KernelGroup},
    loops::Divided,
    misplaced::Plan,
    secrecy::Operation,
};

/// The trials of an algorithm, or of a part of the library. `build.rs` lists the constant `AREA` of each file in
/// `trials`.
#[derive(Debug)]
pub(crate) struct Area {
    /// What names of its trials have behind the device's.
    pub(crate) name: &'static str,
    /// Adds the trials of a device.
    pub(crate) add: Add,
    /// Its kernels, and the trials that launch each.
    pub(crate) kernels: &'static [KernelGroup],
    /// Kernels that are launched otherwise than most.
    pub(crate) exceptions: &'static [Exception],
    /// Operations on secrets.
    pub(crate) operations: &'static [Operation],
    /// Kernels that none of the operations launches on the CPU, and why.
    pub(crate) without_operation: &'static [(&'static str, &'static str)],
    /// Operations on secrets that leave nothing in freed memory of the host.
    pub(crate) freed: &'static [Freed],
    /// Trials that watch how work on several queues is ordered.
    pub(crate) ordered: &'static [Named],
    /// Trials with lengths around 2³².
    pub(crate) boundaries: &'static [Named],
    /// Operations that devices with few iterations of loops divide.
    pub(crate) divided: &'static [Divided],
    /// Does what compiles nothing once plans are prepared.
    pub(crate) prepared: Option<fn(&Device) -> Outcome>,
    /// Its plans, each for a trial that it refuses another device's queue.
    pub(crate) plans: &'static [Plan],
    /// Trials that need no device in particular.
    pub(crate) common: fn() -> Vec<Trial>,
}

impl Area {
    /// One that has nothing but trials of devices.
    pub(crate) const fn new(name: &'static str, add: Add) -> Self {
        Self {
            name,
            add,
            kernels: &[],
            exceptions: &[],
            operations: &[],
            without_operation: &[],
            freed: &[],
            ordered: &[],
            boundaries: &[],
            divided: &[],
            prepared: None,
            plans: &[],
            common: Vec::new,
        }
    }
}
