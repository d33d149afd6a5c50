//! Kernels at places that the host's memory does not reach: a device whose long allocations have their end only.
//!
//! It runs CUDA's sources on another device. Where a buffer is long, only what lies from [`START`] on is there, and the
//! kernel's pointer to it is moved back by as much before its first statement: so all its index arithmetic, with the
//! numbers that it would have, leads to memory that is there.

use std::{
    ops::Range,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use evariste::backend::{
    Buffer, Device, DeviceInfo, Error, Event, HostBuffer, Pending, Queue, Result, Secrecy, Stats, Transfer,
    author::{Access, Arg, Backend, Dispatch, Executable, KernelSpec, Language, Memory, QueueHandle, Span, SpanMut},
};

/// Bytes that are missing: those before one MiB before 2^36.
pub(crate) const START: u64 = (1 << 36) - (1 << 20);

/// Bytes of a word, in which kernels count.
const WORD: u64 = 16;

#[derive(Debug)]
pub(crate) struct TailMemory {
    below: Device,
    info: DeviceInfo,
}

/// All of a short allocation, or what a long one has from [`START`] on.
struct Part {
    buffer: RwLock<Buffer<u8>>,
    start: u64,
}

impl TailMemory {
    /// On a device that runs CUDA's sources, with memory of one MiB more than 2^36 bytes.
    pub(crate) fn device(below: Device) -> Device {
        let mut info = below.info().clone();
        info.limits.buffer_bytes = (1 << 36) + (1 << 20);
        Device::unregistered(Arc::new(Self { below, info }))
    }

    fn backend(&self) -> &dyn Backend {
        self.below.backend()
    }

    fn part<'a>(&self, memory: &'a Memory) -> Result<&'a Part> {
        memory.downcast_ref().ok_or_else(|| self.refuse("memory", "the handle belongs to another backend"))
    }

    fn refuse(&self, call: &'static str, reason: &str) -> Error {
        Error::Driver { device: self.info.id, call, reason: reason.into() }
    }

    /// Where bytes of an allocation are in what is there of it.
    fn within(&self, part: &Part, at: u64, bytes: u64) -> Result<Range<usize>> {
        let start = at.checked_sub(part.start).ok_or_else(|| self.refuse("copy", "nothing is there"))? as usize;
        Ok(start..start + bytes as usize)
    }
}

impl Backend for TailMemory {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn stats(&self) -> Stats {
        self.below.stats()
    }

    fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory> {
        let start = if bytes > START { START } else { 0 };
        let buffer = RwLock::new(self.below.alloc_with((bytes - start) as usize, secrecy)?);
        Ok(Memory::new(Part { buffer, start }, bytes))
    }

    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
        self.below.host_buffer(bytes, transfer, secrecy)
    }

    fn default_queue(&self) -> &QueueHandle {
        self.backend().default_queue()
    }

    fn queue(&self) -> Result<QueueHandle> {
        self.backend().queue()
    }

    fn write(&self, queue: &QueueHandle, dst: SpanMut<'_>, src: HostBuffer) -> Result<Pending> {
        let part = self.part(dst.memory())?;
        let place = self.within(part, dst.at(), dst.bytes())?;
        let mut buffer = part.buffer.write().unwrap_or_else(PoisonError::into_inner);
        Queue::from_handle(&self.below, queue.clone()).write(buffer.view_mut(place)?, &src)?;
        Ok(Pending::done(src))
    }

    fn read(&self, queue: &QueueHandle, src: Span<'_>, mut dst: HostBuffer) -> Result<Pending> {
        let part = self.part(src.memory())?;
        let place = self.within(part, src.at(), src.bytes())?;
        let buffer = part.buffer.read().unwrap_or_else(PoisonError::into_inner);
        Queue::from_handle(&self.below, queue.clone()).read_into(buffer.view(place)?, &mut dst)?;
        Ok(Pending::done(dst))
    }

    fn copy(&self, _: &QueueHandle, _: Span<'_>, _: SpanMut<'_>) -> Result<()> {
        Err(self.refuse("copy", "it is not needed here"))
    }

    fn clear(&self, _: &QueueHandle, _: SpanMut<'_>) -> Result<()> {
        Err(self.refuse("clear", "it is not needed here"))
    }

    fn record(&self, queue: &QueueHandle) -> Result<Event> {
        self.backend().record(queue)
    }

    fn wait_for(&self, queue: &QueueHandle, event: &Event) -> Result<()> {
        self.backend().wait_for(queue, event)
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        self.below.elapsed(from, to)
    }

    /// A launch tells which buffers are long; so it compiles.
    fn compile(&self, _: &KernelSpec) -> Result<Executable> {
        Ok(Executable::new(()))
    }

    unsafe fn dispatch(&self, queue: &QueueHandle, job: Dispatch<'_, '_>) -> Result<()> {
        let parts = job.args.iter().map(|arg| self.part(arg.memory())).collect::<Result<Vec<_>>>()?;
        // What is missing of each view, which starts at a word if anything is, and where the rest lies in what is
        // there.
        let place = |(part, arg): (&&Part, &Arg<'_>)| {
            let span = arg.span();
            let missing = part.start.saturating_sub(span.at());
            let start = (span.at() + missing - part.start) as usize;
            (missing, start..start + (span.bytes() - missing) as usize)
        };
        let (missing, places): (Vec<u64>, Vec<Range<usize>>) = parts.iter().zip(&*job.args).map(place).unzip();
        let spec = moved(job.spec, &missing);
        let executable = self.backend().compile(&spec)?;
        let (mut read, mut write) = (Vec::new(), Vec::new());
        for (part, arg) in parts.iter().zip(&*job.args) {
            match arg.access() {
                Access::Read => read.push(part.buffer.read().unwrap_or_else(PoisonError::into_inner)),
                Access::Write => write.push(part.buffer.write().unwrap_or_else(PoisonError::into_inner)),
            }
        }
        let (mut read, mut write) = (read.iter(), write.iter_mut());
        let arg = |(arg, place): (&Arg<'_>, Range<usize>)| match arg.access() {
            Access::Read => read.next().map(|buffer| Ok(Arg::read(buffer.view(place)?))),
            Access::Write => write.next().map(|buffer| Ok(Arg::write(buffer.view_mut(place)?))),
        };
        let mut args = job.args.iter().zip(places).filter_map(arg).collect::<Result<Vec<Arg<'_>>>>()?;
        let (spec, params, groups) = (&spec, job.params, job.groups);
        let job = Dispatch { executable: &executable, spec, params, args: &mut args, groups };
        // SAFETY: what the caller promises of long buffers holds of their ends, with pointers moved by what is missing;
        // and the device below watches its kernels.
        unsafe { self.backend().dispatch(queue, job) }
    }

    fn sync(&self) -> Result<()> {
        self.below.sync()
    }

    fn trim(&self) {
        self.below.trim();
    }
}

/// A kernel whose pointers are moved back by bytes that are missing before its first statement.
fn moved(spec: &KernelSpec, missing: &[u64]) -> KernelSpec {
    let of_bindings = spec.bindings.iter().zip(missing).filter(|(_, bytes)| **bytes > 0);
    let moves: String =
        of_bindings.map(|(binding, bytes)| format!(" {} -= {}ull;", binding.name, bytes / WORD)).collect();
    let original = spec.clone();
    let source = move |language: Language| {
        let (text, entry) = (original.source(language), format!("\n{}(", original.name));
        // A text with several bodies chooses one of them.
        let mut bodies = text.split(&entry);
        let head = bodies.next().unwrap_or_default().to_owned();
        bodies.fold(head, |head, body| head + &entry + &body.replacen(") {", &format!(") {{{moves}"), 1))
    };
    let mut moved = spec.clone().with_source(source);
    moved.variant = format!("{}, moved by {missing:?}", spec.variant);
    moved
}
