//! A device that remembers what was launched on it, and can be told to fail.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use evariste::backend::{
    Device, DeviceInfo, Error, Event, HostBuffer, Kind, Pending, Result, Secrecy, Stats, Transfer,
    author::{Access, Backend, Dispatch, Executable, KernelSpec, Memory, QueueHandle, Span, SpanMut},
};

/// Workgroups of the smallest and of the largest launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    pub(crate) least: u64,
    pub(crate) most: u64,
}

impl Groups {
    pub(crate) fn and(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// What was allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    pub(crate) bytes: u64,
    pub(crate) secrecy: Secrecy,
    /// Of host memory.
    pub(crate) transfer: Option<Transfer>,
}

/// What came to which memory.
#[derive(Debug, Default)]
struct Flow {
    /// What memory was asked for as, by its address.
    known: HashMap<usize, Secrecy>,
    /// Memory that was written.
    written: HashSet<usize>,
    /// What brought what it made of secret memory to public one: kernels, by their names, and copies.
    leaks: Vec<&'static str>,
}

impl Flow {
    fn secrecy(&self, memory: &Memory) -> Secrecy {
        self.known.get(&memory.address()).copied().unwrap_or_default()
    }

    /// Of memory of some secrecy to this memory.
    fn write(&mut self, by: &'static str, secrecy: Secrecy, to: &Memory) {
        self.written.insert(to.address());
        if secrecy > self.secrecy(to) {
            self.leaks.push(by);
        }
    }
}

/// Another device, to which it passes everything on.
#[derive(Debug)]
pub(crate) struct Recorder {
    below: Device,
    info: DeviceInfo,
    /// Kernels that are not launched; memory has all bits set then until it is written.
    skipped: &'static [&'static str],
    /// By kernel and variant.
    launched: Mutex<BTreeMap<(&'static str, String), Groups>>,
    allocated: Mutex<Vec<Allocation>>,
    flow: Mutex<Flow>,
    /// The most memory that the device below had given at once, to whomever.
    peak: AtomicU64,
    /// Reads before the one that fails.
    reads: AtomicUsize,
    /// Launches before the one that fails.
    launches: AtomicUsize,
    /// Kernels that were asked for.
    compiled: AtomicUsize,
}

impl Recorder {
    /// `as_hardware` has CUDA's sources on the host be those that GPUs get. Emulated Vulkan devices, which would take
    /// minutes to compile the transforms, always get their own.
    pub(crate) fn new(below: &Device, as_hardware: bool) -> Arc<Self> {
        let mut info = below.info().clone();
        info.features.software &= info.id.kind == Kind::Wgpu || !as_hardware;
        Self::with_info(below, info, &[])
    }

    /// A device on which some kernels are not launched, and memory has all bits set until it is written: so that others
    /// find what these would have left as it never is.
    pub(crate) fn skipping(below: &Device, skipped: &'static [&'static str]) -> Device {
        Device::unregistered(Self::with_info(below, below.info().clone(), skipped))
    }

    /// One that tells nothing else of itself than the device below does.
    pub(crate) fn plain(below: &Device) -> Arc<Self> {
        Self::with_info(below, below.info().clone(), &[])
    }

    /// A device with buffers of at most `bytes` bytes.
    pub(crate) fn with_buffers_of(below: &Device, bytes: u64) -> Device {
        let mut info = below.info().clone();
        info.limits.buffer_bytes = bytes;
        Device::unregistered(Self::with_info(below, info, &[]))
    }

    /// A device that allows the loops of a thread `iterations` iterations.
    pub(crate) fn impatient(below: &Device, iterations: u32) -> Arc<Self> {
        let mut info = below.info().clone();
        info.limits.loop_iterations = Some(iterations);
        Self::with_info(below, info, &[])
    }

    /// One that says this of itself.
    pub(crate) fn with_info(below: &Device, info: DeviceInfo, skipped: &'static [&'static str]) -> Arc<Self> {
        let (launched, allocated) = (Mutex::default(), Mutex::default());
        let (flow, peak) = (Mutex::default(), AtomicU64::new(0));
        let [reads, launches] = [(); 2].map(|()| AtomicUsize::new(usize::MAX));
        let compiled = AtomicUsize::new(0);
        Arc::new(Self {
            below: below.clone(),
            info,
            skipped,
            launched,
            allocated,
            flow,
            peak,
            reads,
            launches,
            compiled,
        })
    }

    /// What was launched of a kernel.
    pub(crate) fn launched(&self, spec: &KernelSpec) -> Option<Groups> {
        let launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        launched.get(&(spec.name, spec.variant.clone())).copied()
    }

    /// What was launched of all variants of a kernel.
    pub(crate) fn launched_as(&self, name: &str) -> Option<Groups> {
        let launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        let variants = launched.iter().filter(|((kernel, _), _)| *kernel == name);
        variants.map(|(_, groups)| *groups).reduce(Groups::and)
    }

    /// The names and variants of the kernels that were launched.
    pub(crate) fn all_launched(&self) -> Vec<(&'static str, String)> {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// How many kernels were made ready.
    pub(crate) fn compiled(&self) -> usize {
        self.compiled.load(Ordering::Relaxed)
    }

    /// What was allocated since this was asked last.
    pub(crate) fn allocations(&self) -> Vec<Allocation> {
        mem::take(&mut self.allocated.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The names of the kernels that were launched.
    pub(crate) fn names(&self) -> BTreeSet<&'static str> {
        let launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        launched.keys().map(|(name, _)| *name).collect()
    }

    /// The addresses of the memory that was written since this was asked last.
    pub(crate) fn written(&self) -> HashSet<usize> {
        mem::take(&mut self.flow().written)
    }

    /// What brought secrets to memory that was allocated as public since this was asked last: kernels that were given
    /// both, and copies.
    pub(crate) fn leaks(&self) -> Vec<&'static str> {
        mem::take(&mut self.flow().leaks)
    }

    fn flow(&self) -> MutexGuard<'_, Flow> {
        self.flow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The most memory that was live on the device below when some was allocated here, in bytes, since this was asked
    /// last.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.swap(0, Ordering::Relaxed)
    }

    /// Has one read from the device fail, after `reads` that do not.
    pub(crate) fn fail_read_after(&self, reads: usize) {
        self.reads.store(reads, Ordering::Relaxed);
    }

    /// Has one launch fail, after `launches` that do not.
    pub(crate) fn fail_launch_after(&self, launches: usize) {
        self.launches.store(launches, Ordering::Relaxed);
    }

    fn allocate(&self, bytes: u64, secrecy: Secrecy, transfer: Option<Transfer>) {
        let mut allocated = self.allocated.lock().unwrap_or_else(PoisonError::into_inner);
        allocated.push(Allocation { bytes, secrecy, transfer });
    }

    fn backend(&self) -> &dyn Backend {
        self.below.backend()
    }
}

impl Backend for Recorder {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn stats(&self) -> Stats {
        self.below.stats()
    }

    fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory> {
        self.allocate(bytes, secrecy, None);
        let mut memory = self.backend().alloc(bytes, secrecy)?;
        self.peak.fetch_max(self.stats().bytes_live, Ordering::Relaxed);
        self.flow().known.insert(memory.address(), secrecy);
        if !self.skipped.is_empty() {
            let mut ones = self.backend().host_buffer(bytes as usize, Transfer::Upload, secrecy)?;
            ones.fill(u8::MAX);
            self.backend().write(self.default_queue(), (&mut memory).into(), ones)?.wait()?;
        }
        Ok(memory)
    }

    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
        self.allocate(bytes as u64, secrecy, Some(transfer));
        self.backend().host_buffer(bytes, transfer, secrecy)
    }

    fn default_queue(&self) -> &QueueHandle {
        self.backend().default_queue()
    }

    fn queue(&self) -> Result<QueueHandle> {
        self.backend().queue()
    }

    fn write(&self, queue: &QueueHandle, dst: SpanMut<'_>, src: HostBuffer) -> Result<Pending> {
        self.flow().write("a write", src.secrecy(), dst.memory());
        self.backend().write(queue, dst, src)
    }

    fn read(&self, queue: &QueueHandle, src: Span<'_>, dst: HostBuffer) -> Result<Pending> {
        match self.reads.fetch_sub(1, Ordering::Relaxed) {
            0 => Err(Error::Driver { device: self.info.id, call: "read", reason: "made to fail".into() }),
            _ => {
                let mut flow = self.flow();
                if flow.secrecy(src.memory()) > dst.secrecy() {
                    flow.leaks.push("a read");
                }
                drop(flow);
                self.backend().read(queue, src, dst)
            }
        }
    }

    fn copy(&self, queue: &QueueHandle, src: Span<'_>, dst: SpanMut<'_>) -> Result<()> {
        let mut flow = self.flow();
        let secrecy = flow.secrecy(src.memory());
        flow.write("a copy", secrecy, dst.memory());
        drop(flow);
        self.backend().copy(queue, src, dst)
    }

    fn clear(&self, queue: &QueueHandle, dst: SpanMut<'_>) -> Result<()> {
        self.flow().write("a clear", Secrecy::Public, dst.memory());
        self.backend().clear(queue, dst)
    }

    fn record(&self, queue: &QueueHandle) -> Result<Event> {
        self.backend().record(queue)
    }

    fn wait_for(&self, queue: &QueueHandle, event: &Event) -> Result<()> {
        self.backend().wait_for(queue, event)
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        self.backend().elapsed(from, to)
    }

    fn compile(&self, spec: &KernelSpec) -> Result<Executable> {
        self.compiled.fetch_add(1, Ordering::Relaxed);
        self.backend().compile(spec)
    }

    unsafe fn dispatch(&self, queue: &QueueHandle, job: Dispatch<'_, '_>) -> Result<()> {
        if self.skipped.contains(&job.spec.name) {
            return Ok(());
        }
        if self.launches.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(Error::Driver { device: self.info.id, call: job.spec.name, reason: "told to fail".into() });
        }
        let mut flow = self.flow();
        let secrecy = Secrecy::of(job.args.iter().map(|arg| flow.secrecy(arg.memory())));
        for arg in job.args.iter().filter(|arg| arg.access() == Access::Write) {
            flow.write(job.spec.name, secrecy, arg.memory());
        }
        drop(flow);
        let (key, count) = ((job.spec.name, job.spec.variant.clone()), job.groups);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { self.backend().dispatch(queue, job) }?;
        let mut launched = self.launched.lock().unwrap_or_else(PoisonError::into_inner);
        let groups = Groups { least: count, most: count };
        launched.entry(key).and_modify(|known| *known = known.and(groups)).or_insert(groups);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.backend().sync()
    }

    fn trim(&self) {
        self.backend().trim();
    }
}
