//! One open device: what its handles share.

use std::{
    any::Any,
    fmt,
    mem::ManuallyDrop,
    ops,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, atomic::AtomicU64},
    thread,
};

use super::{
    adapters::{self, Opened},
    event::Timer,
    pipeline::Pipelines,
    recorder::Recorder,
    staging::Staging,
};
use crate::{DeviceInfo, Error, Features, Limits, Result, cache::Cache, pool::Pool};

/// Bytes of the pieces in which host data passes through staging memory: long enough to reach a bus's full speed,
/// short enough for the encoding of one piece to overlap the copy of another.
pub(super) const STAGING_BYTES: u64 = 8 << 20;

/// Bytes that each pool of staging memory keeps, and that uploads may have under way before they wait.
pub(super) const STAGING_BUDGET: u64 = 8 * STAGING_BYTES;

/// Bytes of device memory that the pool keeps, where the GPU's memory is not known; else a quarter of that.
const POOL_BYTES: u64 = 1 << 30;

/// Bytes of the ring of uniform parameters: 256 launches at the usual alignment.
pub(super) const PARAMS_RING_BYTES: u64 = 64 << 10;

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
    pub(super) compiled: AtomicU64,
    pub(super) cache_hits: AtomicU64,
    pub(super) compile_nanos: AtomicU64,
}

/// Why the device cannot be used any more, once that is so.
///
/// A failed submission counts: the batch may have been any thread's, and memory holds who knows what since.
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

/// One open device.
pub(super) struct Gpu {
    pub(super) info: DeviceInfo,
    pub(super) chunk_bytes: u64,
    /// Bytes of immediates that a kernel can have; none where the device has no such thing.
    pub(super) immediate_bytes: usize,
    pub(super) uniform_align: usize,
    /// What bindings start at a multiple of: that of a word at least.
    pub(super) storage_align: u64,
    pub(super) max_groups: u32,
    /// Largest single buffer of the API.
    max_buffer_bytes: u64,
    recorder: Mutex<Recorder>,
    pub(super) params: wgpu::Buffer,
    pub(super) buffers: Pool<wgpu::Buffer>,
    pub(super) uploads: Arc<Pool<Staging>>,
    pub(super) downloads: Pool<Staging>,
    /// Mapped memory of more than a piece that the device does not copy from: apart, so that it takes no room from pieces.
    pub(super) large: Pool<Staging>,
    /// Bytes of staging memory that the device has yet to copy from.
    pub(super) uploading: Arc<AtomicU64>,
    pub(super) pipelines: Pipelines,
    pub(super) timer: Option<Timer>,
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

impl Gpu {
    pub(super) fn new(opened: Opened, options: Options) -> Result<Self> {
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
                loop_turns: adapters::loop_turns(&adapter),
            },
            features: Features {
                int64: device.features().contains(wgpu::Features::SHADER_INT64),
                queues: false,
                // WebGPU promises nothing here, and some GPUs let the workgroup that runs starve the others.
                forward_progress: false,
                software,
            },
        };
        let caches = device.features().contains(wgpu::Features::PIPELINE_CACHE);
        let cache = caches.then(|| options.cache.unwrap_or_else(Cache::open));
        let params = wgpu::BufferDescriptor {
            label: Some("parameters"),
            size: PARAMS_RING_BYTES.min(limits.max_uniform_buffer_binding_size),
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        };
        let out_of_memory = |_| Error::OutOfMemory { device: id, requested: params.size, available: memory_bytes };
        let params = scoped(&device, || device.create_buffer(&params)).map_err(out_of_memory)?;
        Ok(Self {
            chunk_bytes,
            immediate_bytes: if options.no_immediates { 0 } else { limits.max_immediate_size as usize },
            uniform_align: limits.min_uniform_buffer_offset_alignment as usize,
            storage_align: u64::from(limits.min_storage_buffer_offset_alignment).next_multiple_of(16),
            max_groups: limits.max_compute_workgroups_per_dimension,
            recorder: Mutex::default(),
            params,
            buffers: Pool::new(memory_bytes.map_or(POOL_BYTES, |bytes| bytes / 4)),
            uploads: Arc::new(Pool::new(STAGING_BUDGET)),
            downloads: Pool::new(STAGING_BUDGET),
            large: Pool::new(STAGING_BUDGET),
            uploading: Arc::default(),
            pipelines: Pipelines::new(cache, &adapter),
            timer: Timer::new(&device, &queue),
            max_buffer_bytes: limits.max_buffer_size,
            counters: Counters::default(),
            fault,
            #[cfg(test)]
            failures: Failures::default(),
            info,
            device,
            queue: CalmQueue(ManuallyDrop::new(queue)),
        })
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
    fn lose(&self, reason: impl FnOnce() -> String) -> Error {
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

    /// Records commands, and submits the batch if it is full.
    pub(super) fn record<T>(&self, commands: impl FnOnce(&mut Recorder, &wgpu::Device) -> T) -> Result<T> {
        self.alive()?;
        let mut recorder = self.lock();
        let output = commands(&mut recorder, &self.device);
        if recorder.is_full() {
            self.submit(&mut recorder)?;
        }
        Ok(output)
    }

    /// Records commands and submits them; the index tells when they are done.
    pub(super) fn record_and_submit(
        &self,
        commands: impl FnOnce(&mut Recorder, &wgpu::Device),
    ) -> Result<Option<wgpu::SubmissionIndex>> {
        self.alive()?;
        let mut recorder = self.lock();
        commands(&mut recorder, &self.device);
        self.submit(&mut recorder)?;
        Ok(recorder.latest())
    }

    /// Submits what is recorded; the index tells when all work so far is done.
    pub(super) fn flush(&self) -> Result<Option<wgpu::SubmissionIndex>> {
        self.record_and_submit(|_, _| ())
    }

    /// Submits the batch.
    pub(super) fn submit(&self, recorder: &mut Recorder) -> Result<()> {
        if let Some(batch) = recorder.take() {
            if !batch.params.is_empty() {
                self.queue.write_buffer(&self.params, 0, &batch.params);
            }
            let index = self.queue.submit([batch.commands]);
            recorder.submitted(index, !batch.uploads.is_empty());
            for upload in batch.uploads {
                upload.recycle(&self.uploads, &self.uploading, self.fails("map_async, upload"));
            }
            if self.fails("submit") {
                return Err(self.lose(|| "made to fail".into()));
            }
        }
        self.alive()
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

    /// Waits for the oldest upload. False if there is none.
    pub(super) fn wait_for_upload(&self) -> Result<bool> {
        let index = {
            let mut recorder = self.lock();
            match recorder.oldest_upload() {
                Some(index) => Some(index),
                None => {
                    self.submit(&mut recorder)?;
                    recorder.oldest_upload()
                }
            }
        };
        match index {
            Some(index) => self.wait(Some(index)).map(|()| true),
            None => Ok(false),
        }
    }

    /// A buffer of device memory of a size class, from the pool or the system. `requested` is for the error.
    pub(super) fn take_or_create(&self, class: u64, requested: u64) -> Result<wgpu::Buffer> {
        self.alive()?;
        if let Some(buffer) = self.buffers.take(class) {
            return Ok(buffer);
        }
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        self.create(class, usage, false, requested)
    }

    /// A new buffer for staging.
    pub(super) fn create_staging(&self, class: u64, copied_from: bool, requested: u64) -> Result<wgpu::Buffer> {
        let usage = match copied_from {
            true => wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
            false => wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        };
        self.create(class, usage, copied_from, requested)
    }

    fn create(&self, size: u64, usage: wgpu::BufferUsages, mapped: bool, requested: u64) -> Result<wgpu::Buffer> {
        if size > self.max_buffer_bytes {
            let (what, limit) = ("buffer", self.max_buffer_bytes);
            return Err(Error::TooLarge { what, device: self.info.id, expected: limit, actual: requested });
        }
        if self.fails("create_buffer") {
            return Err(Error::OutOfMemory { device: self.info.id, requested, available: None });
        }
        let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: mapped };
        let create = || scoped(&self.device, || self.device.create_buffer(&descriptor));
        let created = match create() {
            Err(wgpu::Error::OutOfMemory { .. }) => {
                self.drain();
                let idle = self.flush()?;
                self.wait(idle)?;
                create()
            }
            created => created,
        };
        self.alive()?;
        created.map_err(|error| match error {
            wgpu::Error::OutOfMemory { .. } => Error::OutOfMemory { device: self.info.id, requested, available: None },
            error => self.driver_error("create_buffer", error),
        })
    }

    /// Empties the pools.
    pub(super) fn drain(&self) {
        drop(self.buffers.drain());
        drop(self.uploads.drain());
        drop(self.downloads.drain());
        drop(self.large.drain());
    }

    /// Runs calls of wgpu's on this thread and gives their first error.
    pub(super) fn scoped<T>(&self, call: impl FnOnce() -> T) -> Result<T, wgpu::Error> {
        scoped(&self.device, call)
    }

    fn lock(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // Clears of secret memory may still be in the batch.
        let _ = self.flush();
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu").field("info", &self.info).field("lost", &self.fault.get()).finish_non_exhaustive()
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
