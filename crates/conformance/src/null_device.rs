//! A device without memory: it claims as much as one likes, computes nothing, and remembers what it was asked to do.
//!
//! What plans do at the borders of 32 bits can be seen with it where no machine has the memory: the test reads off the
//! parameters of each launch what the launch works on, and checks with [`Cover`] that together they work on the whole
//! range, and on nothing twice.
//!
//! Allocations of up to [`KEPT`] bytes have their contents, as far as those are written from the host: descriptors of
//! batches, for instance. Larger ones, and whatever kernels would have written, read as zeros. Host memory is the
//! CPU's.

use std::{
    ops::Range,
    ptr::NonNull,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytemuck::Pod;
use evariste::backend::{
    Device, DeviceId, DeviceInfo, Error, Event, Features, HostBuffer, Kind, Limits, Pending, Result, Secrecy, Stats,
    Transfer,
    author::{Access, Backend, Dispatch, Executable, HostMemory, KernelSpec, Memory, QueueHandle, Span, SpanMut},
};

use libtest_mimic::{Failed, Trial};

use crate::{
    expect::{expect, expect_equal, expect_same},
    harness::Outcome,
};

/// Bytes of an allocation up to which it keeps what the host writes.
pub(crate) const KEPT: u64 = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct NullDevice {
    info: DeviceInfo,
    cpu: Device,
    calls: Mutex<Vec<Call>>,
    asked_for: Mutex<Vec<KernelSpec>>,
    memories: AtomicU64,
}

/// The kernels that some work asks for on a device that says this of itself, in the order in which it does: some
/// several times. There is no such device, and nothing is computed: what the work reads is zeros.
///
/// # Errors
/// Those of the work.
pub fn asked_for(
    info: DeviceInfo,
    work: impl FnOnce(&Device) -> std::result::Result<(), Failed>,
) -> std::result::Result<Vec<KernelSpec>, Failed> {
    let null = NullDevice::with_info(info);
    work(&null.device())?;
    let mut specs = null.asked_for.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *specs))
}

/// What a device was asked to do. Places in memory are in bytes.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Launch(Launch),
    Write { memory: u64, range: Range<u64> },
    Read { memory: u64, range: Range<u64> },
    Copy { from: u64, at: u64, memory: u64, range: Range<u64> },
    Clear { memory: u64, range: Range<u64> },
}

/// A launch of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) name: &'static str,
    pub(crate) variant: String,
    pub(crate) threads: u32,
    pub(crate) groups: u64,
    pub(crate) params: Vec<u8>,
    pub(crate) args: Vec<Bound>,
}

impl Launch {
    /// Word `i` of the parameters.
    pub(crate) fn word(&self, i: usize) -> u32 {
        bytemuck::pod_read_unaligned(&self.params[4 * i..][..4])
    }
}

/// A buffer of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// The number of its allocation.
    pub(crate) memory: u64,
    /// The bytes that are bound: where they start in it, and how many.
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    pub(crate) access: Access,
    /// What the host had written, where it is kept.
    contents: Vec<u8>,
}

impl Bound {
    pub(crate) fn range(&self) -> Range<u64> {
        self.at..self.at + self.bytes
    }

    /// The contents as elements; none where they are not kept.
    pub(crate) fn contents<T: Pod>(&self) -> Vec<T> {
        self.contents.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
    }
}

struct NullMemory {
    number: u64,
    contents: Mutex<Vec<u8>>,
}

impl NullMemory {
    fn contents(&self) -> MutexGuard<'_, Vec<u8>> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The CPU's, under the device's name.
struct NullHost {
    memory: HostBuffer,
    start: NonNull<u8>,
    device: DeviceId,
    transfer: Transfer,
}

// SAFETY: the CPU's memory is `Send`, and nothing but the owner of this uses it.
unsafe impl Send for NullHost {}
// SAFETY: shared access tells where it is, and does not use it.
unsafe impl Sync for NullHost {}

// SAFETY: the CPU's memory is initialised, stays where it is, and is not used while this value lives.
unsafe impl HostMemory for NullHost {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn bytes(&self) -> usize {
        self.memory.len()
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn transfer(&self) -> Transfer {
        self.transfer
    }

    fn secrecy(&self) -> Secrecy {
        self.memory.secrecy()
    }
}

impl NullDevice {
    /// With a GPU's limits, and `memory_bytes` of memory, in one allocation if need be.
    pub(crate) fn new(memory_bytes: u64) -> Arc<Self> {
        Self::with_info(DeviceInfo {
            id: DeviceId { kind: Kind::Cuda, index: 0 },
            name: "a device without memory".into(),
            driver: "none".into(),
            architecture: "null".into(),
            uuid: None,
            memory_bytes: Some(memory_bytes),
            parallelism: 132,
            limits: Limits {
                buffer_bytes: memory_bytes,
                bindings: 16,
                workgroup_bytes: 227 << 10,
                cache_bytes: 50 << 20,
                workgroup_threads: 1024,
                staging_bytes: 16 << 20,
                loop_iterations: None,
            },
            features: Features { int64: true, queues: true, forward_progress: true, software: false },
        })
    }

    /// A device that says this of itself.
    pub(crate) fn with_info(info: DeviceInfo) -> Arc<Self> {
        Arc::new(Self {
            info,
            cpu: Device::cpu(),
            calls: Mutex::default(),
            asked_for: Mutex::default(),
            memories: AtomicU64::new(0),
        })
    }

    /// It as a device.
    pub(crate) fn device(self: &Arc<Self>) -> Device {
        Device::unregistered(Arc::clone(self) as _)
    }

    /// What it was asked to do since this was asked the last time.
    pub(crate) fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls())
    }

    /// The launches among [`NullDevice::take_calls`].
    pub(crate) fn take_launches(&self) -> Vec<Launch> {
        let launch = |call| match call {
            Call::Launch(launch) => Some(launch),
            _ => None,
        };
        self.take_calls().into_iter().filter_map(launch).collect()
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory<'a>(&self, memory: &'a Memory) -> Result<&'a NullMemory> {
        memory.downcast_ref().ok_or_else(|| self.foreign())
    }

    fn foreign(&self) -> Error {
        Error::Driver { device: self.info.id, call: "memory", reason: "the handle belongs to another backend".into() }
    }
}

impl Backend for NullDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    fn alloc(&self, bytes: u64, _: Secrecy) -> Result<Memory> {
        let number = self.memories.fetch_add(1, Ordering::Relaxed);
        let contents = vec![0; if bytes <= KEPT { bytes as usize } else { 0 }];
        Ok(Memory::new(NullMemory { number, contents: Mutex::new(contents) }, bytes))
    }

    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
        let mut memory = self.cpu.host_buffer(bytes, transfer, secrecy)?;
        let start = NonNull::from(&mut *memory).cast();
        Ok(HostBuffer::new(NullHost { memory, start, device: self.info.id, transfer }))
    }

    fn default_queue(&self) -> &QueueHandle {
        self.cpu.backend().default_queue()
    }

    fn queue(&self) -> Result<QueueHandle> {
        self.cpu.backend().queue()
    }

    fn write(&self, _: &QueueHandle, dst: SpanMut<'_>, src: HostBuffer) -> Result<Pending> {
        let (target, range) = (self.memory(dst.memory())?, dst.at()..dst.at() + dst.bytes());
        if let Some(kept) = target.contents().get_mut(range.start as usize..range.end as usize) {
            kept.copy_from_slice(&src);
        }
        self.calls().push(Call::Write { memory: target.number, range });
        Ok(Pending::done(src))
    }

    fn read(&self, _: &QueueHandle, src: Span<'_>, mut dst: HostBuffer) -> Result<Pending> {
        let (source, range) = (self.memory(src.memory())?, src.at()..src.at() + src.bytes());
        match source.contents().get(range.start as usize..range.end as usize) {
            Some(kept) => dst.copy_from_slice(kept),
            None => dst.fill(0),
        }
        self.calls().push(Call::Read { memory: source.number, range });
        Ok(Pending::done(dst))
    }

    fn copy(&self, _: &QueueHandle, src: Span<'_>, dst: SpanMut<'_>) -> Result<()> {
        let (from, memory) = (self.memory(src.memory())?.number, self.memory(dst.memory())?.number);
        self.calls().push(Call::Copy { from, at: src.at(), memory, range: dst.at()..dst.at() + dst.bytes() });
        Ok(())
    }

    fn clear(&self, _: &QueueHandle, dst: SpanMut<'_>) -> Result<()> {
        let memory = self.memory(dst.memory())?.number;
        self.calls().push(Call::Clear { memory, range: dst.at()..dst.at() + dst.bytes() });
        Ok(())
    }

    fn record(&self, queue: &QueueHandle) -> Result<Event> {
        self.cpu.backend().record(queue)
    }

    fn wait_for(&self, queue: &QueueHandle, event: &Event) -> Result<()> {
        self.cpu.backend().wait_for(queue, event)
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        self.cpu.elapsed(from, to)
    }

    fn compile(&self, spec: &KernelSpec) -> Result<Executable> {
        self.asked_for.lock().unwrap_or_else(PoisonError::into_inner).push(spec.clone());
        self.cpu.backend().compile(spec)
    }

    unsafe fn dispatch(&self, _: &QueueHandle, job: Dispatch<'_, '_>) -> Result<()> {
        let mut args = Vec::with_capacity(job.args.len());
        for arg in &*job.args {
            let (memory, span) = (self.memory(arg.memory())?, arg.span());
            let kept = memory.contents();
            let contents =
                kept.get(span.at() as usize..(span.at() + span.bytes()) as usize).unwrap_or_default().to_vec();
            let (at, bytes) = (span.at(), span.bytes());
            args.push(Bound { memory: memory.number, at, bytes, access: arg.access(), contents });
        }
        self.calls().push(Call::Launch(Launch {
            name: job.spec.name,
            variant: job.spec.variant.clone(),
            threads: job.spec.threads,
            groups: job.groups,
            params: job.params.to_vec(),
            args,
        }));
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn trim(&self) {}
}

/// That it remembers what it is asked to do, however much memory that would take.
pub(crate) fn common() -> Trial {
    Trial::test("any::null_device::remembers", || {
        let null = NullDevice::new(1 << 50);
        let device = null.device();
        let mut long = device.alloc::<u32>(1 << 40)?;
        long.clear()?;
        long.view_mut((1 << 40) - 2..)?.write(&[7, 8])?;
        let short = device.upload::<u32>(&[1, 2, 3])?;
        expect_same("kept", &short.to_vec()?, &[1, 2, 3])?;
        long.view_mut(5..7)?.copy_from(short.view(1..)?)?;
        expect("a range that leaves it", long.view_mut((1 << 40) - 1..(1 << 40) + 1).is_err())?;
        let calls: Vec<_> = null
            .take_calls()
            .into_iter()
            .map(|call| match call {
                Call::Launch(launch) => {
                    (launch.name, launch.args.iter().filter(|arg| arg.access == Access::Write).count() as u64, 0..0)
                }
                Call::Write { memory, range } => ("write", memory, range),
                Call::Read { memory, range } => ("read", memory, range),
                Call::Copy { from, at, memory, range } => ("copy", 100 * from + 10 * at + memory, range),
                Call::Clear { memory, range } => ("clear", memory, range),
            })
            .collect();
        let expected = [
            ("clear", 0, 0..1 << 42),
            ("write", 0, (1 << 42) - 8..1 << 42),
            ("write", 1, 0..12),
            ("read", 1, 0..12),
            ("copy", 140, 20..28),
        ];
        expect_same("calls", &calls, &expected)?;
        expect_equal("calls since", &null.take_calls().len(), &0)
    })
}

/// What several launches work on, of one range.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cover(Vec<Range<u64>>);

impl Cover {
    /// Adds what a launch works on.
    pub(crate) fn add(&mut self, part: Range<u64>) {
        self.0.push(part);
    }

    /// That the parts make up the range, in any order, with no gap and nothing twice.
    pub(crate) fn expect_exactly(mut self, what: &str, range: Range<u64>) -> Outcome {
        if let Some(part) = self.0.iter().find(|part| part.start > part.end) {
            return Err(format!("{what}: a part from {} to {}", part.start, part.end).into());
        }
        self.0.retain(|part| !part.is_empty());
        self.0.sort_by_key(|part| part.start);
        let mut at = range.start;
        for part in self.0 {
            if part.start != at {
                let fault = if part.start > at { "nothing works on" } else { "twice, or outside:" };
                let (least, most) = (at.min(part.start), at.max(part.start));
                return Err(format!("{what}: {fault} bytes {least} to {most} of {range:?}").into());
            }
            at = part.end;
        }
        if at == range.end { Ok(()) } else { Err(format!("{what}: ends at {at}, not at {}", range.end).into()) }
    }
}
