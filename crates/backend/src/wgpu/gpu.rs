//! One open device with all that its handles share: the batch, pools and pipelines.

use std::{
    fmt, ops,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
};

use super::{
    adapters::Opened,
    context::{Context, Options, STAGING_BUDGET},
    pipelines::Pipelines,
    recorder::Recorder,
    staging::Staging,
    timer::Timer,
};
use crate::{
    cache::Cache,
    error::{Error, Result},
    pool::Pool,
};

/// Bytes of device memory that the pool keeps, where the GPU's memory is not known; else a quarter of that. Small
/// blocks have an eighth more.
const POOL_BYTES: u64 = 1 << 30;

/// Bytes of the ring of uniform parameters: 256 launches at the usual alignment.
pub(super) const PARAMS_RING_BYTES: u64 = 64 << 10;

/// One open device, with all that its handles share.
pub(super) struct Gpu {
    recorder: Mutex<Recorder>,
    pub(super) params: wgpu::Buffer,
    pub(super) buffers: Pool<wgpu::Buffer>,
    pub(super) uploads: Arc<Pool<Staging>>,
    pub(super) downloads: Pool<Staging>,
    /// Mapped memory of more than a piece that the device does not copy from: apart, so that it takes no room from
    /// pieces.
    pub(super) large: Pool<Staging>,
    /// Bytes of staging memory that the device has yet to copy from.
    pub(super) uploading: Arc<AtomicU64>,
    pub(super) pipelines: Pipelines,
    pub(super) timer: Option<Timer>,
    /// Last, so that the device goes when all that is of it has gone.
    context: Context,
}

impl ops::Deref for Gpu {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl Gpu {
    pub(super) fn new(opened: Opened, options: Options) -> Result<Self> {
        let adapter = opened.info.clone();
        let context = Context::new(opened, &options);
        let limits = context.device.limits();
        let caches = context.device.features().contains(wgpu::Features::PIPELINE_CACHE);
        let cache = caches.then(|| options.cache.unwrap_or_else(Cache::open));
        let params = wgpu::BufferDescriptor {
            label: Some("parameters"),
            size: PARAMS_RING_BYTES.min(limits.max_uniform_buffer_binding_size),
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        };
        let memory_bytes = context.info.memory_bytes;
        let out_of_memory =
            |_| Error::OutOfMemory { device: context.info.id, requested: params.size, available: memory_bytes };
        let params = context.scoped(|| context.device.create_buffer(&params)).map_err(out_of_memory)?;
        Ok(Self {
            recorder: Mutex::default(),
            params,
            buffers: Pool::new(memory_bytes.map_or(POOL_BYTES, |bytes| bytes / 4)),
            uploads: Arc::new(Pool::new(STAGING_BUDGET)),
            downloads: Pool::new(STAGING_BUDGET),
            large: Pool::new(STAGING_BUDGET),
            uploading: Arc::default(),
            pipelines: Pipelines::new(cache, &adapter),
            timer: Timer::new(&context.device, &context.queue),
            context,
        })
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
        let create = || self.scoped(|| self.device.create_buffer(&descriptor));
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
        f.debug_struct("Gpu").field("context", &self.context).finish_non_exhaustive()
    }
}
