//! Host memory that the device copies from or to: staging memory, kept mapped while the host has it.

use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use super::{
    context::{STAGING_BUDGET, STAGING_BYTES},
    gpu::Gpu,
    memory::Piece,
    recorder::Recorder,
    staging::{Staging, Upload},
};
use crate::{
    error::Result,
    handles::own,
    host::{HostBuffer, HostMemory, PendingCopy},
    info::{DeviceId, Transfer},
    pool::Pool,
    secrecy::Secrecy,
    zeroize::zeroize,
};

/// How long a wait for a callback sleeps that another thread is about to run.
const CALLBACK_PAUSE: Duration = Duration::from_millis(1);

/// Whether the device copies from such host memory itself. The host reads it at a crawl then, since it is not cached.
/// Only the whole can be copied from, since mappings end as a whole. Longer memory for uploads is often used in parts,
/// so it passes through pieces of staging memory, like memory for downloads that goes up.
pub(super) fn is_copied_from(transfer: Transfer, len: usize) -> bool {
    transfer == Transfer::Upload && len as u64 <= STAGING_BYTES
}

/// Where memory of such a length is kept that the device does not copy from.
fn downloads(gpu: &Gpu, len: usize) -> &Pool<Staging> {
    if len as u64 <= STAGING_BYTES { &gpu.downloads } else { &gpu.large }
}

/// A host buffer. The staging memory is there until a transfer takes it.
pub(super) struct WgpuHost {
    gpu: Arc<Gpu>,
    staging: Option<Staging>,
    len: usize,
    transfer: Transfer,
    secrecy: Secrecy,
}

impl WgpuHost {
    pub(super) fn new(gpu: &Arc<Gpu>, len: usize, transfer: Transfer, secrecy: Secrecy) -> Result<Self> {
        gpu.alive()?;
        let class = Pool::<()>::class(len as u64);
        let copied_from = is_copied_from(transfer, len);
        let pooled = if copied_from { pooled_upload(gpu, class)? } else { downloads(gpu, len).take(class) };
        let staging = match pooled {
            Some(staging) => staging,
            None => {
                let buffer = gpu.create_staging(class, copied_from, len as u64)?;
                if !copied_from {
                    settle(gpu, &map(&buffer, wgpu::MapMode::Read))?;
                }
                Staging::of(buffer).map_err(|reason| gpu.driver_error("get_mapped_range", reason))?
            }
        };
        Ok(Self { gpu: Arc::clone(gpu), staging: Some(staging), len, transfer, secrecy })
    }

    /// What a host buffer is for, if it is of this device.
    pub(super) fn expect(host: &HostBuffer, gpu: &Arc<Gpu>) -> Result<(Transfer, Secrecy)> {
        let host = own(host.downcast_ref::<Self>(), "host buffer", &gpu.info)?;
        gpu.expect_same("host buffer", &host.gpu)?;
        Ok((host.transfer, host.secrecy))
    }

    /// The contents.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.staging.as_mut().map_or(&mut [], |staging| &mut staging.bytes_mut()[..self.len])
    }

    /// Queues the copy of all of it, rounded up to whole words, to pieces of device memory.
    pub(super) fn write<'a>(mut self, pieces: impl Iterator<Item = Piece<'a>>) -> Result<()> {
        let Some(staging) = self.staging.take() else { return Ok(()) };
        let secrecy = self.secrecy;
        self.gpu.uploading.fetch_add(staging.class(), Ordering::Relaxed);
        let buffer = staging.unmap();
        self.gpu.record(|recorder, device| {
            for piece in pieces {
                let encoder = recorder.encoder(device);
                encoder.copy_buffer_to_buffer(&buffer, piece.done, piece.buffer, piece.offset, piece.len);
            }
            recorder.push_upload(Upload { buffer, secrecy });
        })
    }

    /// Queues the copy of pieces of device memory: its length, rounded up to whole words.
    pub(super) fn read<'a>(mut self, pieces: impl Iterator<Item = Piece<'a>>) -> Result<WgpuRead> {
        let Some(staging) = self.staging.take() else {
            return Err(self.gpu.driver_error("read", "the host buffer is in use"));
        };
        let buffer = staging.unmap();
        let submission = self.gpu.record_and_submit(|recorder, device| {
            for piece in pieces {
                let encoder = recorder.encoder(device);
                encoder.copy_buffer_to_buffer(piece.buffer, piece.offset, &buffer, piece.done, piece.len);
            }
        })?;
        let mapped = map(&buffer, wgpu::MapMode::Read);
        Ok(WgpuRead { host: Some(self), buffer, submission, mapped })
    }
}

// SAFETY: the mapping has at least `len` bytes, which wgpu initialised, and lasts until the staging memory is taken
// out, which takes the whole value. Nothing else accesses mapped memory.
unsafe impl HostMemory for WgpuHost {
    fn start(&self) -> NonNull<u8> {
        self.staging.as_ref().map_or(NonNull::dangling(), |staging| staging.start)
    }

    fn bytes(&self) -> usize {
        self.len
    }

    fn device(&self) -> DeviceId {
        self.gpu.info.id
    }

    fn transfer(&self) -> Transfer {
        self.transfer
    }

    fn secrecy(&self) -> Secrecy {
        self.secrecy
    }
}

impl Drop for WgpuHost {
    fn drop(&mut self) {
        let Some(mut staging) = self.staging.take() else { return };
        if self.secrecy == Secrecy::Secret {
            zeroize(staging.bytes_mut());
        }
        let copied_from = is_copied_from(self.transfer, self.len);
        let pool = if copied_from { &*self.gpu.uploads } else { downloads(&self.gpu, self.len) };
        drop(pool.replace(staging.class(), staging));
    }
}

/// Staging memory for an upload from the pool, or `None` if a new one is due. Waits while too much is under way.
fn pooled_upload(gpu: &Gpu, class: u64) -> Result<Option<Staging>> {
    loop {
        if let Some(staging) = gpu.uploads.take(class) {
            return Ok(Some(staging));
        }
        let uploading = gpu.uploading.load(Ordering::Relaxed);
        if uploading == 0 || uploading.saturating_add(class) <= STAGING_BUDGET || !gpu.wait_for_upload()? {
            return Ok(None);
        }
    }
}

/// A copy to the host that is under way. The host memory is there until the end.
pub(super) struct WgpuRead {
    host: Option<WgpuHost>,
    buffer: wgpu::Buffer,
    submission: Option<wgpu::SubmissionIndex>,
    mapped: Receiver<bool>,
}

impl WgpuRead {
    fn finish(&mut self) -> Result<WgpuHost> {
        let Some(host) = &self.host else { unreachable!("a read is waited for once") };
        let gpu = Arc::clone(&host.gpu);
        gpu.wait(self.submission.take())?;
        settle(&gpu, &self.mapped)?;
        let staging =
            Staging::of(self.buffer.clone()).map_err(|reason| gpu.driver_error("get_mapped_range", reason))?;
        let Some(mut host) = self.host.take() else { unreachable!("the host memory was there above") };
        host.staging = Some(staging);
        Ok(host)
    }
}

impl PendingCopy for WgpuRead {
    fn wait(mut self: Box<Self>) -> Result<HostBuffer> {
        self.finish().map(HostBuffer::new)
    }
}

impl Drop for WgpuRead {
    fn drop(&mut self) {
        let Some(host) = self.host.take() else { return };
        self.buffer.unmap();
        if host.secrecy == Secrecy::Secret {
            // If this fails, the device is lost, and its memory with it.
            let clear =
                |recorder: &mut Recorder, device: &_| recorder.encoder(device).clear_buffer(&self.buffer, 0, None);
            let _ = host.gpu.record_and_submit(clear);
        }
    }
}

/// Asks for a mapping; the channel tells whether it came about.
fn map(buffer: &wgpu::Buffer, mode: wgpu::MapMode) -> Receiver<bool> {
    let (sender, receiver) = mpsc::channel();
    buffer.map_async(mode, .., move |mapped| {
        // The receiver is gone if nobody waits.
        let _ = sender.send(mapped.is_ok());
    });
    receiver
}

/// Waits for a mapping whose buffer the device has finished with.
fn settle(gpu: &Gpu, mapped: &Receiver<bool>) -> Result<()> {
    while !gpu.fails("map_async") {
        match mapped.try_recv() {
            Ok(true) => return Ok(()),
            Ok(false) => break,
            Err(mpsc::TryRecvError::Disconnected) => break,
            Err(mpsc::TryRecvError::Empty) => gpu.poll(wgpu::PollType::Poll)?,
        }
        match mapped.recv_timeout(CALLBACK_PAUSE) {
            Ok(true) => return Ok(()),
            Ok(false) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    gpu.alive()?;
    Err(gpu.driver_error("map_async", "the buffer could not be mapped"))
}
