//! Any GPU with Vulkan, Metal or DirectX 12, through wgpu.
//!
//! - Memory is made of chunks, since APIs bind as little as 128 MiB at once; kernels see through them by accessors that
//!   [`codegen`] writes.
//! - A view of memory is a window of it, from the last aligned place before it on. Where that is not its start, the
//!   accessors of a pipeline of its own add the difference, which passes with the parameters.
//! - There is one queue. Commands are batched and submitted when a batch is worth it, and by whatever waits.
//! - Host data passes through mapped buffers; a read is a copy and a mapping that are waited for last.
//! - wgpu reports errors on the side. Those of allocations and compilation are caught where they happen. Any other,
//!   such as a failed submission, leaves memory in doubt. The device is lost then, and every later call returns that.
//! - All handles keep the device alive.

use std::{
    fmt,
    num::NonZero,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use self::{
    context::{Options, STAGING_BYTES},
    event::WgpuEvent,
    gpu::Gpu,
    host::{WgpuHost, WgpuRead, is_copied_from},
    memory::{WgpuMemory, copy_pieces},
    pipelines::Pipeline,
    program::{Program, Variant},
    recorder::Recorder,
};
use crate::{
    bindings::Access,
    compilations::{Observer, Origin},
    device::backend::Backend,
    device::dispatch::{Arg, Dispatch},
    error::{Error, Result},
    handles::{Event, Executable, Memory, QueueHandle, own},
    host::{HostBuffer, Pending, PendingCopy},
    info::{DeviceInfo, Stats, Transfer},
    parallel,
    secrecy::Secrecy,
    span::{Span, SpanMut, expect_len},
    spec::KernelSpec,
};

mod adapters;
pub mod codegen;
mod context;
mod event;
mod gpu;
mod host;
mod memory;
mod pipelines;
mod program;
mod recorder;
mod staging;
#[cfg(test)]
mod tests;
mod timer;

/// Bytes of the buffers that launches of no workgroups bind: those that every kernel's elements fit.
const NOTHING_BYTES: u64 = 256;

pub(crate) fn open(index: usize) -> Result<Arc<dyn Backend>> {
    Ok(Arc::new(Wgpu::new(index, Options::default())?))
}

pub(crate) fn count() -> Result<usize> {
    Ok(adapters::list()?.len())
}

struct Wgpu {
    gpu: Arc<Gpu>,
    queue: QueueHandle,
}

/// What a queue's handle holds.
struct WgpuQueue(Arc<Gpu>);

impl Wgpu {
    fn new(index: usize, options: Options) -> Result<Self> {
        let gpu = Arc::new(Gpu::new(adapters::open(index)?, options)?);
        Ok(Self { queue: QueueHandle::new(WgpuQueue(Arc::clone(&gpu))), gpu })
    }

    fn expect_own(&self, queue: &QueueHandle) -> Result<()> {
        let WgpuQueue(gpu) = own(queue.downcast_ref(), "queue", &self.gpu.info)?;
        self.gpu.expect_same("queue", gpu)
    }
}

impl Backend for Wgpu {
    fn info(&self) -> &DeviceInfo {
        &self.gpu.info
    }

    fn stats(&self) -> Stats {
        let counters = &self.gpu.counters;
        counters.compilations.counted(Stats {
            launches: counters.launches.load(Ordering::Relaxed),
            writes: counters.writes.load(Ordering::Relaxed),
            reads: counters.reads.load(Ordering::Relaxed),
            bytes_up: counters.bytes_up.load(Ordering::Relaxed),
            bytes_down: counters.bytes_down.load(Ordering::Relaxed),
            bytes_live: counters.live.load(Ordering::Relaxed),
            bytes_peak: counters.peak.load(Ordering::Relaxed),
            bytes_pooled: self.gpu.buffers.bytes(),
            ..Stats::default()
        })
    }

    fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory> {
        Ok(Memory::new(WgpuMemory::new(&self.gpu, bytes, secrecy)?, bytes))
    }

    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
        Ok(HostBuffer::new(WgpuHost::new(&self.gpu, bytes, transfer, secrecy)?))
    }

    fn expect_host(&self, host: &HostBuffer) -> Result<()> {
        WgpuHost::expect(host, &self.gpu).map(drop)
    }

    fn default_queue(&self) -> &QueueHandle {
        &self.queue
    }

    fn queue(&self) -> Result<QueueHandle> {
        self.gpu.alive()?;
        Ok(self.queue.clone())
    }

    fn write(&self, queue: &QueueHandle, dst: SpanMut<'_>, src: HostBuffer) -> Result<Pending> {
        self.expect_own(queue)?;
        let memory = WgpuMemory::of(dst.memory(), &self.gpu)?;
        let (transfer, secrecy) = WgpuHost::expect(&src, &self.gpu)?;
        let (at, len) = (dst.at(), src.len() as u64);
        expect_len("the source of a write, in bytes", dst.bytes(), len)?;
        let bytes = memory.target("write", at, len)?;
        let whole = if is_copied_from(transfer, src.len()) { src.into_whole::<WgpuHost>() } else { Err(src) };
        let pending = match whole {
            Ok(host) => {
                if len > 0 {
                    host.write(memory.pieces(at, bytes))?;
                }
                Pending::new(Another { gpu: Arc::clone(&self.gpu), len: len as usize, transfer, secrecy })
            }
            Err(src) => {
                let starts = (0..).step_by(STAGING_BYTES as usize);
                for (piece, start) in src.chunks(STAGING_BYTES as usize).zip(starts) {
                    let mut host = WgpuHost::new(&self.gpu, piece.len(), Transfer::Upload, secrecy)?;
                    parallel::copy(piece, host.bytes_mut());
                    host.write(memory.pieces(at + start, (bytes - start).min(STAGING_BYTES)))?;
                }
                Pending::done(src)
            }
        };
        self.gpu.counters.writes.fetch_add(1, Ordering::Relaxed);
        self.gpu.counters.bytes_up.fetch_add(len, Ordering::Relaxed);
        self.gpu.alive()?;
        Ok(pending)
    }

    fn read(&self, queue: &QueueHandle, src: Span<'_>, dst: HostBuffer) -> Result<Pending> {
        self.expect_own(queue)?;
        let memory = WgpuMemory::of(src.memory(), &self.gpu)?;
        let (transfer, secrecy) = WgpuHost::expect(&dst, &self.gpu)?;
        if transfer == Transfer::Upload {
            return Err(self.gpu.driver_error("read", "the host buffer is one for uploads"));
        }
        let (at, len) = (src.at(), dst.len() as u64);
        expect_len("the target of a read, in bytes", src.bytes(), len)?;
        let bytes = memory.source("read", at, len)?;
        self.gpu.alive()?;
        self.gpu.counters.reads.fetch_add(1, Ordering::Relaxed);
        self.gpu.counters.bytes_down.fetch_add(len, Ordering::Relaxed);
        if len == 0 {
            return Ok(Pending::done(dst));
        }
        match dst.into_whole::<WgpuHost>() {
            Ok(host) => Ok(Pending::new(host.read(memory.pieces(at, bytes))?)),
            Err(part) => {
                let host = WgpuHost::new(&self.gpu, part.len(), Transfer::Download, secrecy)?;
                Ok(Pending::new(IntoPart { read: host.read(memory.pieces(at, bytes))?, part }))
            }
        }
    }

    fn copy(&self, queue: &QueueHandle, src: Span<'_>, dst: SpanMut<'_>) -> Result<()> {
        self.expect_own(queue)?;
        let (source, target) = (WgpuMemory::of(src.memory(), &self.gpu)?, WgpuMemory::of(dst.memory(), &self.gpu)?);
        expect_len("the source of a copy, in bytes", dst.bytes(), src.bytes())?;
        source.source("copy", src.at(), src.bytes())?;
        let words = target.target("copy", dst.at(), dst.bytes())?;
        if words > 0 && std::ptr::eq(source, target) {
            // The API copies between different buffers only.
            let between = WgpuMemory::new(&self.gpu, words, source.secrecy())?;
            self.copy_pieces((source, src.at()), (&between, 0), words)?;
            return self.copy_pieces((&between, 0), (target, dst.at()), words);
        }
        self.copy_pieces((source, src.at()), (target, dst.at()), words)
    }

    fn clear(&self, queue: &QueueHandle, dst: SpanMut<'_>) -> Result<()> {
        self.expect_own(queue)?;
        let memory = WgpuMemory::of(dst.memory(), &self.gpu)?;
        let words = memory.target("clear", dst.at(), dst.bytes())?;
        self.gpu.record(|recorder, device| {
            for piece in memory.pieces(dst.at(), words) {
                recorder.encoder(device).clear_buffer(piece.buffer, piece.offset, Some(piece.len));
            }
        })
    }

    fn record(&self, queue: &QueueHandle) -> Result<Event> {
        self.expect_own(queue)?;
        Ok(Event::new(WgpuEvent::record(&self.gpu)?))
    }

    fn wait_for(&self, queue: &QueueHandle, event: &Event) -> Result<()> {
        self.expect_own(queue)?;
        // Later work of the one queue starts after the event anyway.
        WgpuEvent::of(event, &self.gpu)?;
        self.gpu.alive()
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        WgpuEvent::of(from, &self.gpu)?.elapsed(WgpuEvent::of(to, &self.gpu)?)
    }

    fn compile(&self, spec: &KernelSpec) -> Result<Executable> {
        Ok(Executable::new(Program::new(&self.gpu, spec)?))
    }

    fn finish_compiling(&self, kernels: &[Executable]) -> Result<()> {
        let programs = kernels.iter().map(|kernel| Program::of(kernel, &self.gpu)).collect::<Result<Vec<_>>>()?;
        let mut made: Vec<Option<Result<Vec<_>>>> = programs.iter().map(|_| None).collect();
        parallel::chunks(&mut made, 1, &|i, made| made[0] = Some(programs[i].pipelines()));
        let pipelines = made.into_iter().flatten().collect::<Result<Vec<_>>>()?;
        // Drivers of hardware compile when a pipeline is made.
        if !self.gpu.info.features.software {
            return Ok(());
        }
        for (program, pipelines) in programs.iter().zip(&pipelines) {
            for (variant, pipeline) in pipelines {
                self.launch_nothing(program.spec(), variant, pipeline)?;
            }
        }
        let start = Instant::now();
        self.sync()?;
        self.gpu.counters.compilations.note_time(Origin::Compiler, start.elapsed());
        Ok(())
    }

    fn observe(&self, observer: Option<Observer>) {
        self.gpu.counters.compilations.observe(observer);
    }

    unsafe fn dispatch(&self, queue: &QueueHandle, job: Dispatch<'_, '_>) -> Result<()> {
        self.expect_own(queue)?;
        let gpu = &*self.gpu;
        gpu.alive()?;
        let program = Program::of(job.executable, &self.gpu)?;
        let Bound { variant, bases, entries } = bind(&self.gpu, job.spec, job.args)?;
        let grid = grid(gpu, job.groups)?;
        let pipeline = program.pipeline(&variant)?;
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &pipeline.layout, entries: &entries };
        let group = gpu.device.create_bind_group(&descriptor);
        let with_bases;
        let params = match variant.based {
            false => job.params,
            true => {
                with_bases = [bytemuck::cast_slice(&bases), job.params].concat();
                &with_bases
            }
        };
        self.launch(&pipeline, &group, params, job.groups, grid)?;
        gpu.counters.launches.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let latest = self.gpu.flush()?;
        self.gpu.wait(latest)
    }

    fn trim(&self) {
        self.gpu.drain();
        // What the device still uses is freed when it is done; a lost device says so on the next call.
        let _ = self.gpu.poll(wgpu::PollType::Poll);
    }
}

impl Wgpu {
    /// Queues a launch of no workgroups, for which Mesa's emulation compiles the kernel all the same.
    fn launch_nothing(&self, spec: &KernelSpec, variant: &Variant, pipeline: &Pipeline) -> Result<()> {
        let gpu = &*self.gpu;
        let nothing = |_| WgpuMemory::new(&self.gpu, NOTHING_BYTES, Secrecy::Public);
        let buffers = (0..spec.bindings.len()).map(nothing).collect::<Result<Vec<_>>>()?;
        let entries: Vec<wgpu::BindGroupEntry<'_>> = buffers
            .iter()
            .enumerate()
            .map(|(i, memory)| wgpu::BindGroupEntry {
                binding: i as u32,
                resource: memory.chunks()[0].as_entire_binding(),
            })
            .collect();
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &pipeline.layout, entries: &entries };
        let (group, params) = (gpu.device.create_bind_group(&descriptor), vec![0; variant.params_bytes(spec)]);
        self.launch(pipeline, &group, &params, 0, [0, 0])
    }

    /// Queues a launch of groups laid out in a grid.
    fn launch(
        &self,
        pipeline: &Pipeline,
        group: &wgpu::BindGroup,
        params: &[u8],
        groups: u64,
        [x, y]: [u32; 2],
    ) -> Result<()> {
        self.gpu.record(|recorder, device| {
            let offset = match &pipeline.params {
                Some(_) => self.push_params(recorder, params)?,
                None => 0,
            };
            let pass = recorder.pass(device, groups);
            pass.set_pipeline(&pipeline.pipeline);
            pass.set_bind_group(0, group, &[]);
            match &pipeline.params {
                Some(group) => pass.set_bind_group(1, group, &[offset]),
                None if !params.is_empty() => pass.set_immediates(0, params),
                None => {}
            }
            pass.dispatch_workgroups(x, y, 1);
            Ok(())
        })?
    }

    fn copy_pieces(&self, from: (&WgpuMemory, u64), to: (&WgpuMemory, u64), bytes: u64) -> Result<()> {
        self.gpu.record(|recorder, device| {
            for (from, to) in copy_pieces(from, to, bytes) {
                let encoder = recorder.encoder(device);
                encoder.copy_buffer_to_buffer(from.buffer, from.offset, to.buffer, to.offset, to.len);
            }
        })
    }

    /// Adds uniform parameters to the batch, or to the next one if this one has no room left.
    fn push_params(&self, recorder: &mut Recorder, params: &[u8]) -> Result<u32> {
        let gpu = &*self.gpu;
        let capacity = gpu.params.size() as usize;
        if let Some(offset) = recorder.push_params(params, gpu.uniform_align, capacity) {
            return Ok(offset);
        }
        gpu.submit(recorder)?;
        let offset = recorder.push_params(params, gpu.uniform_align, capacity);
        offset.ok_or_else(|| gpu.driver_error("dispatch", "the parameters exceed the ring that holds them"))
    }
}

impl fmt::Debug for Wgpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.gpu.fmt(f)
    }
}

/// A write from memory that is mapped again when the device is done with it. Waiting for that would submit each batch
/// early, so other memory stands in for it.
struct Another {
    gpu: Arc<Gpu>,
    len: usize,
    transfer: Transfer,
    secrecy: Secrecy,
}

impl PendingCopy for Another {
    fn wait(self: Box<Self>) -> Result<HostBuffer> {
        Ok(HostBuffer::new(WgpuHost::new(&self.gpu, self.len, self.transfer, self.secrecy)?))
    }
}

/// A read into part of a mapping.
struct IntoPart {
    read: WgpuRead,
    part: HostBuffer,
}

impl PendingCopy for IntoPart {
    fn wait(mut self: Box<Self>) -> Result<HostBuffer> {
        parallel::copy(Box::new(self.read).wait()?.as_ref(), &mut self.part);
        Ok(self.part)
    }
}

/// The buffers of a launch as a pipeline takes them.
struct Bound<'a> {
    variant: Variant,
    /// Where each view starts in what is bound, in words of its binding; not used unless the variant is based.
    bases: Vec<u32>,
    entries: Vec<wgpu::BindGroupEntry<'a>>,
}

fn bind<'a>(gpu: &Arc<Gpu>, spec: &KernelSpec, args: &'a [Arg<'_>]) -> Result<Bound<'a>> {
    let mut chunks = Vec::with_capacity(args.len());
    let mut entries: Vec<wgpu::BindGroupEntry<'a>> = Vec::with_capacity(args.len());
    let (mut bases, mut based, mut parts) = (Vec::new(), false, false);
    for (index, (arg, binding)) in args.iter().zip(&*spec.bindings).enumerate() {
        let (memory, span) = (WgpuMemory::of(arg.memory(), gpu)?, arg.span());
        let mut push = |resource| {
            let binding = entries.len() as u32;
            entries.push(wgpu::BindGroupEntry { binding, resource });
        };
        if span.is_whole() && span.bytes() > 0 {
            chunks.push(memory.chunks().len() as u32);
            memory.chunks().iter().for_each(|buffer| push(buffer.as_entire_binding()));
            continue;
        }
        parts = true;
        let window = memory.window(span.at(), span.bytes());
        chunks.push(window.chunks.len() as u32);
        match window.range {
            None => window.chunks.iter().for_each(|buffer| push(buffer.as_entire_binding())),
            Some((offset, size)) => {
                let buffer = &window.chunks[0];
                push(wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size: NonZero::new(size) }));
            }
        }
        let base = window.base / binding.binding_type.bytes();
        if base > 0 {
            based = true;
            bases.resize(args.len(), 0);
            bases[index] = base as u32;
        }
    }
    // The API takes one buffer for reading or for writing, whatever the ranges are.
    let written = |arg: &Arg<'_>| {
        let is_same = |other: &&Arg<'_>| std::ptr::eq(other.memory(), arg.memory());
        args.iter().filter(|other| other.access() == Access::Write).any(|other| is_same(&other))
    };
    let shared = parts && args.iter().any(|arg| arg.access() == Access::Read && written(arg));
    Ok(Bound { variant: Variant { chunks, based, shared }, bases, entries })
}

/// Lays groups out in rows of about equal length, so that few reach past the last.
fn grid(gpu: &Gpu, groups: u64) -> Result<[u32; 2]> {
    let most = u64::from(gpu.max_groups.max(1));
    let limit = most * most;
    if groups > limit {
        return Err(Error::TooLarge {
            what: "the grid of a launch",
            device: gpu.info.id,
            expected: limit,
            actual: groups,
        });
    }
    let rows = groups.div_ceil(most).max(1);
    Ok([groups.div_ceil(rows) as u32, rows as u32])
}
