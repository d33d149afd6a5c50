//! One open device as wgpu has it: its limits, its counters, and whether it is lost. Batches, pools and kernels use it,
//! and it knows nothing of them.

#[cfg(test)]
use std::sync::{Mutex, PoisonError};
use std::{
    any::Any,
    fmt,
    mem::ManuallyDrop,
    ops,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock, atomic::AtomicU64},
    thread,
};

use super::adapters::{self, Opened};
use crate::{
    cache::Cache,
    compilations::Compilations,
    error::{Error, Result},
    info::{DeviceInfo, Features, Limits},
};

/// Bytes of the pieces in which host data passes through staging memory. They are long enough to reach a bus's full
/// speed, and short enough for the encoding of one piece to overlap the copy of another.
pub(super) const STAGING_BYTES: u64 = 8 << 20;

/// Bytes that each pool of staging memory keeps, and that uploads may have under way before they wait.
pub(super) const STAGING_BUDGET: u64 = 8 * STAGING_BYTES;

/// wgpu does not tell how many units a GPU has. Plans use the number to give every unit work, so it errs upwards.
const UNITS: u32 = 64;

/// Nor how much cache: what today's integrated GPUs have at least.
const CACHE_BYTES: u64 = 4 << 20;

/// Indices of words are 32 bits in kernels, and the narrowest words have 4 bytes.
const MAX_BUFFER_BYTES: u64 = 1 << 34;

/// Buffers of the largest size that a kernel can bind at once. It binds each chunk of a buffer by itself.
const LARGE_BUFFERS: u64 = 4;

/// What tests change about a device.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// Bytes of a chunk, instead of the largest that the device can bind.
    pub(super) chunk_bytes: Option<u64>,
    /// Parameters pass through uniform buffers even where the device has immediates.
    pub(super) no_immediates: bool,
    /// The cache of pipelines, instead of the user's.
    pub(super) cache: Option<Cache>,
}

/// Counters for [`crate::Stats`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) launches: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) reads: AtomicU64,
    pub(super) bytes_up: AtomicU64,
    pub(super) bytes_down: AtomicU64,
    pub(super) live: AtomicU64,
    pub(super) peak: AtomicU64,
    pub(super) compilations: Compilations,
}

/// Why the device cannot be used any more, once that is so.
///
/// A failed submission counts: the batch may have been any thread's, and the contents of memory are unknown since.
type Fault = Arc<OnceLock<String>>;

/// Calls of wgpu's that tests let fail.
#[cfg(test)]
#[derive(Debug, Default)]
pub(super) struct Failures {
    /// The call that is to fail, and how many of its kind succeed before.
    pub(super) next: Mutex<Option<(&'static str, usize)>>,
    /// Calls of each kind so far.
    pub(super) seen: Mutex<std::collections::BTreeMap<&'static str, usize>>,
}

/// One open device: what wgpu has of it, and whether it is lost.
pub(super) struct Context {
    pub(super) info: DeviceInfo,
    pub(super) chunk_bytes: u64,
    /// Bytes of immediates that a kernel can have; none where the device has no such thing.
    pub(super) immediate_bytes: usize,
    pub(super) uniform_align: usize,
    /// What bindings start at a multiple of: that of a word at least.
    pub(super) storage_align: u64,
    pub(super) max_groups: u32,
    /// Largest single buffer of the API.
    pub(super) max_buffer_bytes: u64,
    pub(super) counters: Counters,
    fault: Fault,
    #[cfg(test)]
    pub(super) failures: Failures,
    pub(super) device: wgpu::Device,
    pub(super) queue: CalmQueue,
}

/// A queue whose end does not panic: wgpu waits for the device then, and panics if the driver fails unexpectedly.
pub(super) struct CalmQueue(ManuallyDrop<wgpu::Queue>);

impl ops::Deref for CalmQueue {
    type Target = wgpu::Queue;

    fn deref(&self) -> &wgpu::Queue {
        &self.0
    }
}

impl Drop for CalmQueue {
    fn drop(&mut self) {
        // SAFETY: the queue is not used again.
        let queue = unsafe { ManuallyDrop::take(&mut self.0) };
        if catch_unwind(AssertUnwindSafe(|| drop(queue))).is_err() {
            log::error!("the driver failed while its device was closed");
        }
    }
}

impl Context {
    pub(super) fn new(opened: Opened, options: &Options) -> Self {
        let Opened { id, info: adapter, device, queue, memory_bytes } = opened;
        let fault = Fault::default();
        watch(&device, &fault);
        let limits = device.limits();
        let chunk_bytes = options.chunk_bytes.unwrap_or_else(|| adapters::chunk_bytes(&limits));
        let bindings = limits.max_storage_buffers_per_shader_stage;
        let chunks = (u64::from(bindings) / LARGE_BUFFERS).max(1);
        let software = adapter.device_type == wgpu::DeviceType::Cpu;
        let info = DeviceInfo {
            id,
            name: adapter.name.clone(),
            driver: format!("{} {}", adapter.driver, adapter.driver_info).trim().to_owned(),
            architecture: adapter.backend.to_str().to_owned(),
            uuid: None,
            memory_bytes,
            parallelism: if software { thread::available_parallelism().map_or(1, |n| n.get() as u32) } else { UNITS },
            limits: Limits {
                buffer_bytes: chunk_bytes.saturating_mul(chunks).min(MAX_BUFFER_BYTES),
                bindings,
                workgroup_bytes: limits.max_compute_workgroup_storage_size,
                cache_bytes: CACHE_BYTES,
                workgroup_threads: limits
                    .max_compute_invocations_per_workgroup
                    .min(limits.max_compute_workgroup_size_x),
                staging_bytes: STAGING_BYTES,
                loop_iterations: adapters::loop_iterations(&adapter),
            },
            features: Features {
                int64: device.features().contains(wgpu::Features::SHADER_INT64),
                queues: false,
                // WebGPU promises nothing here, and some GPUs let the workgroup that runs starve the others.
                forward_progress: false,
                software,
            },
        };
        Self {
            chunk_bytes,
            immediate_bytes: if options.no_immediates { 0 } else { limits.max_immediate_size as usize },
            uniform_align: limits.min_uniform_buffer_offset_alignment as usize,
            storage_align: u64::from(limits.min_storage_buffer_offset_alignment).next_multiple_of(16),
            max_groups: limits.max_compute_workgroups_per_dimension,
            max_buffer_bytes: limits.max_buffer_size,
            counters: Counters::default(),
            fault,
            #[cfg(test)]
            failures: Failures::default(),
            info,
            device,
            queue: CalmQueue(ManuallyDrop::new(queue)),
        }
    }

    /// Refuses to go on with a lost device.
    pub(super) fn alive(&self) -> Result<()> {
        match self.fault.get() {
            None => Ok(()),
            Some(reason) => Err(Error::Lost { device: self.info.id, reason: reason.clone() }),
        }
    }

    /// Whether a call is to fail, which in a program none is.
    #[cfg(not(test))]
    pub(super) fn fails(&self, _call: &'static str) -> bool {
        false
    }

    #[cfg(test)]
    pub(super) fn fails(&self, call: &'static str) -> bool {
        *self.failures.seen.lock().unwrap_or_else(PoisonError::into_inner).entry(call).or_default() += 1;
        let mut next = self.failures.next.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *next {
            Some((failing, 0)) if *failing == call => next.take().is_some(),
            Some((failing, left)) if *failing == call => {
                *left -= 1;
                false
            }
            _ => false,
        }
    }

    /// Marks the device as lost.
    pub(super) fn lose(&self, reason: impl FnOnce() -> String) -> Error {
        let reason = self.fault.get_or_init(reason).clone();
        Error::Lost { device: self.info.id, reason }
    }

    pub(super) fn driver_error(&self, call: &'static str, reason: impl fmt::Display) -> Error {
        Error::Driver { device: self.info.id, call, reason: reason.to_string() }
    }

    /// Refuses `other`, the device of `what`, unless it is this one.
    pub(super) fn expect_same(&self, what: &'static str, other: &Self) -> Result<()> {
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        Err(Error::WrongDevice { what, expected: self.info.id, actual: other.info.id })
    }

    /// Waits for a submission, or for all so far, and runs the callbacks of what is done.
    pub(super) fn wait(&self, submission_index: Option<wgpu::SubmissionIndex>) -> Result<()> {
        self.poll(wgpu::PollType::Wait { submission_index, timeout: None })
    }

    /// Runs the callbacks of what is done.
    pub(super) fn poll(&self, kind: wgpu::PollType) -> Result<()> {
        self.alive()?;
        if self.fails("poll") {
            return Err(self.lose(|| "made to fail".into()));
        }
        // wgpu panics where polling finds that the device is gone; it holds no locks by then.
        match catch_unwind(AssertUnwindSafe(|| self.device.poll(kind))) {
            Ok(Ok(_)) => self.alive(),
            Ok(Err(error)) => Err(self.lose(|| error.to_string())),
            Err(panic) => Err(self.lose(|| panic_message(&*panic))),
        }
    }

    /// Runs calls of wgpu's on this thread and gives their first error.
    pub(super) fn scoped<T>(&self, call: impl FnOnce() -> T) -> Result<T, wgpu::Error> {
        scoped(&self.device, call)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("info", &self.info).field("lost", &self.fault.get()).finish_non_exhaustive()
    }
}

/// Notes errors that no scope catches, and the loss of the device.
fn watch(device: &wgpu::Device, fault: &Fault) {
    let (errors, losses) = (Arc::clone(fault), Arc::clone(fault));
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        log::error!("wgpu: {error}");
        let _ = errors.set(error.to_string());
    }));
    device.set_device_lost_callback(move |reason, message| {
        let _ = losses.set(format!("{reason:?}: {message}"));
    });
}

fn scoped<T>(device: &wgpu::Device, call: impl FnOnce() -> T) -> Result<T, wgpu::Error> {
    let filters = [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory];
    let [internal, validation, memory] = filters.map(|filter| device.push_error_scope(filter));
    let output = call();
    let errors = [memory.pop(), validation.pop(), internal.pop()].map(adapters::ready);
    match errors.into_iter().flatten().next() {
        None => Ok(output),
        Some(error) => Err(error),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("polling panicked").to_owned()
}
