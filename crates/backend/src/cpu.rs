//! The host's processor as a device.
//!
//! Its one queue runs work at once, on the calling thread and rayon's pool; a read is done when it returns. Memory is
//! aligned to 64 bytes and never uninitialised. Staging memory is the same kind of block as device memory, so that a
//! write of a whole allocation swaps blocks instead of copying them.

use std::{
    alloc::{self, Layout},
    mem,
    panic::{self, AssertUnwindSafe},
    ptr::NonNull,
    slice,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rayon::prelude::*;

use crate::{
    cpu_arg::CpuArg,
    cpu_vectors::{CpuVectors, cpu_vectors},
    device::backend::Backend,
    device::dispatch::{ArgSpan, Dispatch},
    error::{Error, Result},
    handles::{Event, Executable, Memory, QueueHandle, own},
    host::{HostBuffer, HostMemory, Pending},
    info::{DeviceId, DeviceInfo, Features, Limits, Stats, Transfer},
    parallel,
    pool::Pool,
    secrecy::Secrecy,
    span::{Span, SpanMut, expect_len},
    spec::KernelSpec,
    zeroize::zeroize,
};

/// Alignment of all memory: a cache line, and the widest vector register.
const ALIGN: usize = 64;

/// Cache that plans may count on for each thread. Half of the level 2 cache of today's cores (1–2 MiB) would be more;
/// 256 KiB is what the smallest have.
const CACHE_BYTES: u32 = 256 << 10;

/// Bytes that the pool keeps for later allocations, where the machine's memory is not known.
const POOL_BYTES: u64 = 1 << 30;

/// Copies and fills of at least this many bytes use several threads.
const PARALLEL_BYTES: usize = 1 << 20;

/// Bytes of a block from which on it asks for huge pages: a few of 2 MiB.
const HUGE_BYTES: u64 = 8 << 20;

/// Buffers of a launch that need no memory of their own.
const FEW_ARGS: usize = 6;

#[derive(Debug)]
pub(crate) struct Cpu {
    info: DeviceInfo,
    queue: QueueHandle,
    shared: Arc<Shared>,
    launches: AtomicU64,
    transfers: [AtomicU64; 4],
}

#[derive(Debug)]
struct Shared {
    pool: Pool<Block>,
    live: AtomicU64,
    peak: AtomicU64,
}

impl Cpu {
    pub(crate) fn new() -> Self {
        let memory_bytes = memory_bytes();
        let info = DeviceInfo {
            id: DeviceId::CPU,
            name: processor_name().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            driver: format!("rayon, {} threads", rayon::current_num_threads()),
            architecture: std::env::consts::ARCH.to_owned()
                + if cpu_vectors() >= Some(CpuVectors::Avx512Ifma) { ", AVX-512 IFMA" } else { "" },
            uuid: None,
            memory_bytes,
            parallelism: rayon::current_num_threads() as u32,
            limits: Limits {
                buffer_bytes: memory_bytes.unwrap_or(isize::MAX as u64 / 2),
                bindings: u32::MAX,
                workgroup_bytes: CACHE_BYTES,
                cache_bytes: (u64::from(CACHE_BYTES) * rayon::current_num_threads() as u64),
                workgroup_threads: 1,
                staging_bytes: isize::MAX as u64,
                loop_iterations: None,
            },
            features: Features { int64: true, queues: false, forward_progress: true, software: false },
        };
        Self {
            info,
            queue: QueueHandle::new(()),
            shared: Arc::new(Shared {
                pool: Pool::new(memory_bytes.map_or(POOL_BYTES, |bytes| bytes / 8)),
                live: AtomicU64::new(0),
                peak: AtomicU64::new(0),
            }),
            launches: AtomicU64::new(0),
            transfers: Default::default(),
        }
    }

    /// A system that overcommits memory promises more than it has, and ends processes that use it. So the sum of all
    /// buffers stays below the machine's memory.
    fn allocate(&self, bytes: u64, secrecy: Secrecy) -> Result<Block> {
        let class = Pool::<Block>::class(bytes);
        let live = self.shared.live.load(Ordering::Relaxed);
        let available = self.info.memory_bytes.map(|memory| memory.saturating_sub(live));
        let new = || if available.is_none_or(|available| class <= available) { Block::new(class) } else { None };
        let block = self.shared.pool.take(class).or_else(new).or_else(|| {
            self.trim();
            new()
        });
        let mut block = block.ok_or(Error::OutOfMemory { device: DeviceId::CPU, requested: bytes, available })?;
        block.secrecy = secrecy;
        Ok(block)
    }

    fn count(&self, direction: usize, bytes: usize) {
        self.transfers[direction].fetch_add(1, Ordering::Relaxed);
        self.transfers[direction + 2].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn memory<'a>(&self, memory: &'a Memory) -> Result<&'a CpuMemory> {
        own(memory.downcast_ref(), "memory", &self.info)
    }

    /// Refuses queues of other backends. There is one device of this one.
    fn expect_queue(&self, queue: &QueueHandle) -> Result<()> {
        own(queue.downcast_ref::<()>(), "queue", &self.info).map(drop)
    }

    /// The bytes of a span.
    fn bytes<'a>(&self, span: Span<'a>) -> Result<&'a [u8]> {
        let start = self.memory(span.memory())?.place(span.at(), span.bytes())?;
        // SAFETY: `place` gives the start of these initialised bytes, which no one writes while the span is there.
        Ok(unsafe { slice::from_raw_parts(start.as_ptr(), span.bytes() as usize) })
    }

    fn bytes_mut<'a>(&self, span: SpanMut<'a>) -> Result<&'a mut [u8]> {
        let start = self.memory(span.memory())?.place(span.at(), span.bytes())?;
        // SAFETY: `place` gives the start of these initialised bytes, and the span is the right to them meanwhile.
        Ok(unsafe { slice::from_raw_parts_mut(start.as_ptr(), span.bytes() as usize) })
    }
}

impl Backend for Cpu {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn stats(&self) -> Stats {
        let [writes, reads, bytes_up, bytes_down] = self.transfers.each_ref().map(|n| n.load(Ordering::Relaxed));
        Stats {
            launches: self.launches.load(Ordering::Relaxed),
            writes,
            reads,
            bytes_up,
            bytes_down,
            bytes_live: self.shared.live.load(Ordering::Relaxed),
            bytes_peak: self.shared.peak.load(Ordering::Relaxed),
            bytes_pooled: self.shared.pool.bytes(),
            ..Stats::default()
        }
    }

    fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory> {
        let block = self.allocate(bytes, secrecy)?;
        let live = self.shared.live.fetch_add(block.class, Ordering::Relaxed) + block.class;
        self.shared.peak.fetch_max(live, Ordering::Relaxed);
        let shared = Arc::clone(&self.shared);
        Ok(Memory::new(CpuMemory { block: Some(block), bytes: bytes as usize, shared }, bytes))
    }

    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
        let block = Some(self.allocate(bytes as u64, secrecy)?);
        Ok(HostBuffer::new(CpuStaging { block, bytes, transfer, shared: Arc::clone(&self.shared) }))
    }

    fn default_queue(&self) -> &QueueHandle {
        &self.queue
    }

    fn queue(&self) -> Result<QueueHandle> {
        Ok(self.queue.clone())
    }

    fn write(&self, queue: &QueueHandle, mut dst: SpanMut<'_>, mut src: HostBuffer) -> Result<Pending> {
        self.expect_queue(queue)?;
        own(src.downcast_ref::<CpuStaging>(), "host buffer", &self.info)?;
        self.memory(dst.memory())?;
        expect_len("the source of a write, in bytes", dst.bytes(), src.len() as u64)?;
        self.count(0, src.len());
        let (is_whole, secrecy) = (dst.is_whole(), src.secrecy());
        let memory = dst.memory_mut().filter(|_| is_whole).and_then(Memory::downcast_mut::<CpuMemory>);
        // What one of them had must not come to the other if that is less secret.
        if let Some(memory) = memory.filter(|memory| memory.secrecy() == secrecy) {
            src = match src.into_whole::<CpuStaging>() {
                Ok(staging) => return Ok(Pending::done(HostBuffer::new(staging.swap(memory)))),
                Err(part) => part,
            };
        }
        parallel::copy(&src, self.bytes_mut(dst)?);
        Ok(Pending::done(src))
    }

    fn read(&self, queue: &QueueHandle, src: Span<'_>, mut dst: HostBuffer) -> Result<Pending> {
        self.expect_queue(queue)?;
        own(dst.downcast_ref::<CpuStaging>(), "host buffer", &self.info)?;
        let source = self.bytes(src)?;
        expect_len("the target of a read, in bytes", src.bytes(), dst.len() as u64)?;
        self.count(1, source.len());
        parallel::copy(source, &mut dst);
        Ok(Pending::done(dst))
    }

    fn copies_from(&self, memory: &Memory) -> bool {
        memory.downcast_ref::<CpuMemory>().is_some()
    }

    fn copy(&self, queue: &QueueHandle, src: Span<'_>, dst: SpanMut<'_>) -> Result<()> {
        self.expect_queue(queue)?;
        expect_len("the source of a copy, in bytes", dst.bytes(), src.bytes())?;
        parallel::copy(self.bytes(src)?, self.bytes_mut(dst)?);
        Ok(())
    }

    fn clear(&self, queue: &QueueHandle, dst: SpanMut<'_>) -> Result<()> {
        self.expect_queue(queue)?;
        self.bytes_mut(dst)?.par_chunks_mut(PARALLEL_BYTES).for_each(|chunk| chunk.fill(0));
        Ok(())
    }

    fn record(&self, queue: &QueueHandle) -> Result<Event> {
        self.expect_queue(queue)?;
        Ok(Event::new(Instant::now()))
    }

    fn wait_for(&self, queue: &QueueHandle, event: &Event) -> Result<()> {
        self.expect_queue(queue)?;
        own(event.downcast_ref::<Instant>(), "event", &self.info).map(drop)
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        let from = own(from.downcast_ref::<Instant>(), "event", &self.info)?;
        Ok(own(to.downcast_ref::<Instant>(), "event", &self.info)?.saturating_duration_since(*from))
    }

    fn compile(&self, _: &KernelSpec) -> Result<Executable> {
        Ok(Executable::new(()))
    }

    unsafe fn dispatch(&self, queue: &QueueHandle, job: Dispatch<'_, '_>) -> Result<()> {
        self.expect_queue(queue)?;
        self.launches.fetch_add(1, Ordering::Relaxed);
        // On the stack where they are few, as they are for all but generated kernels: a launch is some 30 ns then.
        let mut few = [const { CpuArg::Read(&[]) }; FEW_ARGS];
        let mut many = Vec::new();
        let args = match few.get_mut(..job.args.len()) {
            Some(few) => few,
            None => {
                many.resize_with(job.args.len(), || CpuArg::Read(&[]));
                &mut many
            }
        };
        for (slot, arg) in args.iter_mut().zip(job.args) {
            *slot = match arg.span_mut() {
                ArgSpan::Read(span) => CpuArg::Read(self.bytes(span)?),
                ArgSpan::Write(span) => CpuArg::Write(self.bytes_mut(span)?),
            };
        }
        // A body with a defect fails its launch, as a kernel of a GPU would. What it has written by then is plain
        // numbers.
        let (spec, params) = (job.spec, job.params);
        let body = AssertUnwindSafe(move || {
            // Moved, since the body borrows them for as long as they live.
            let args = args;
            spec.cpu.run(params, args);
        });
        panic::catch_unwind(body).map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            let reason = format!("its body panicked: {}", text.unwrap_or("without a message"));
            Error::Driver { device: DeviceId::CPU, call: spec.name, reason }
        })
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn trim(&self) {
        self.shared.pool.drain();
    }
}

/// Aligned, initialised memory.
#[derive(Debug)]
struct Block {
    allocation: NonNull<u8>,
    start: NonNull<u8>,
    class: u64,
    secrecy: Secrecy,
}

// SAFETY: a block owns its memory alone.
unsafe impl Send for Block {}
// SAFETY: shared access only gives the address; a writer holds the right to the bytes.
unsafe impl Sync for Block {}

impl Block {
    fn new(class: u64) -> Option<Self> {
        // SAFETY: the layout is never of size zero.
        let allocation = NonNull::new(unsafe { alloc::alloc_zeroed(Self::layout(class)?) })?;
        // SAFETY: at most ALIGN − 1 further, and the allocation has ALIGN bytes more than the block.
        let start = unsafe { allocation.add(allocation.align_offset(ALIGN)) };
        if class >= HUGE_BYTES {
            advise_huge_pages(start, class as usize);
        }
        Some(Self { allocation, start, class, secrecy: Secrecy::Public })
    }

    /// With room to align the start by hand. Zeroed memory of a large alignment is written when it is allocated. That
    /// of the usual alignment comes as untouched pages.
    fn layout(class: u64) -> Option<Layout> {
        Layout::from_size_align(usize::try_from(class).ok()?.checked_add(ALIGN)?, align_of::<u128>()).ok()
    }

    fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        assert!(len as u64 <= self.class);
        // SAFETY: the block has `class` initialised bytes, and is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), len) }
    }

    /// Puts the block into the pool, zeroed first if it is secret.
    fn retire(mut self, shared: &Shared) {
        let class = self.class;
        if self.secrecy == Secrecy::Secret {
            zeroize(self.bytes_mut(class as usize));
        }
        drop(shared.pool.give(class, self));
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.class) {
            // SAFETY: allocated in `new` with this layout.
            unsafe { alloc::dealloc(self.allocation.as_ptr(), layout) }
        }
    }
}

/// The block is there until drop.
struct CpuMemory {
    block: Option<Block>,
    bytes: usize,
    shared: Arc<Shared>,
}

impl CpuMemory {
    fn secrecy(&self) -> Secrecy {
        self.block.as_ref().map_or(Secrecy::Public, |block| block.secrecy)
    }

    /// Where `bytes` bytes from byte `at` on start.
    fn place(&self, at: u64, bytes: u64) -> Result<NonNull<u8>> {
        let range = range("memory", self.bytes, at, bytes)?;
        let Some(block) = &self.block else { return Ok(NonNull::dangling()) };
        assert!(self.bytes as u64 <= block.class);
        // SAFETY: the block has `class` bytes, and the range lies in them.
        Ok(unsafe { block.start.add(range.start) })
    }
}

impl Drop for CpuMemory {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.shared.live.fetch_sub(block.class, Ordering::Relaxed);
            block.retire(&self.shared);
        }
    }
}

/// The block is there until drop.
struct CpuStaging {
    block: Option<Block>,
    bytes: usize,
    transfer: Transfer,
    shared: Arc<Shared>,
}

impl CpuStaging {
    /// Exchanges the contents with those of memory of the same size and secrecy.
    fn swap(mut self, memory: &mut CpuMemory) -> Self {
        mem::swap(&mut self.block, &mut memory.block);
        self
    }
}

// SAFETY: the block has at least `bytes` initialised bytes, does not move, and is accessed by no one else until it is
// taken out, which takes the whole value.
unsafe impl HostMemory for CpuStaging {
    fn start(&self) -> NonNull<u8> {
        self.block.as_ref().map_or(NonNull::dangling(), |block| block.start)
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn device(&self) -> DeviceId {
        DeviceId::CPU
    }

    fn transfer(&self) -> Transfer {
        self.transfer
    }

    fn secrecy(&self) -> Secrecy {
        self.block.as_ref().map_or(Secrecy::Public, |block| block.secrecy)
    }
}

impl Drop for CpuStaging {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            block.retire(&self.shared);
        }
    }
}

fn range(what: &'static str, len: usize, offset: u64, count: u64) -> Result<std::ops::Range<usize>> {
    match offset.checked_add(count) {
        Some(end) if end <= len as u64 => Ok(offset as usize..end as usize),
        _ => Err(Error::OutOfRange { what, offset, count, len: len as u64 }),
    }
}

/// Asks for large pages: passes over a matrix by columns touch another page with every row, and first touches of memory
/// are fewer. Whether the system has them makes no difference but in time.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn advise_huge_pages(start: NonNull<u8>, bytes: usize) {
    use rustix::mm::{Advice, madvise};

    let page = rustix::param::page_size();
    let first = start.as_ptr().align_offset(page);
    let len = bytes.saturating_sub(first) / page * page;
    // SAFETY: whole pages inside the block. The advice changes neither their contents nor access to them.
    let _ = unsafe { madvise(start.as_ptr().wrapping_add(first).cast(), len, Advice::LinuxHugepage) };
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn advise_huge_pages(_: NonNull<u8>, _: usize) {}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn memory_bytes() -> Option<u64> {
    let info = rustix::system::sysinfo();
    Some(info.totalram as u64 * u64::from(info.mem_unit))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn memory_bytes() -> Option<u64> {
    None
}

fn processor_name() -> Option<String> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bindings::{Binding, BindingType},
        device::Device,
        device::dispatch::Arg,
        kernel::Kernel,
    };

    #[test]
    fn a_body_with_a_defect_fails_its_launch_and_no_more() {
        let body = |_: &(), args: &mut [CpuArg<'_>]| args[0].write::<u32>().fill(1);
        let spec = KernelSpec::new("defect", "", vec![Binding::read("x", BindingType::U32)], body, |_| String::new());
        let device = Device::cpu();
        let kernel = Kernel::<()>::new(&device, spec).unwrap();
        let x = device.upload::<u32>(&[7; 5]).unwrap();
        // SAFETY: the body touches its own buffer only.
        let error = unsafe { kernel.launch(&device.default_queue(), 1, &(), &mut [Arg::read(&x)]) }.unwrap_err();
        assert!(
            matches!(&error, Error::Driver { call: "defect", reason, .. } if reason.contains("read only")),
            "{error}"
        );
        assert_eq!(x.to_vec().unwrap(), [7; 5]);
    }
}
