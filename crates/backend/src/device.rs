use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    env, fmt,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use crate::{
    Backend, Buffer, DeviceId, DeviceInfo, Element, Error, Event, Executable, HostBuffer, Kernel, KernelSpec, Kind,
    Memory, Observer, Params, Queue, Result, Secrecy, Stats, Transfer, cpu, parallel, plans::Plans,
};

/// The environment variable that overrides the choice of [`Device::best`].
pub const DEVICE_VARIABLE: &str = "EVARISTE_DEVICE";

/// A device. Clones are the same device, and so is the result of asking for the same device twice.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::Device;
///
/// let device = Device::cpu();
/// let mut buffer = device.upload::<u32>(&[1, 2, 3])?;
/// buffer.view_mut(1..2)?.write(&[20])?;
/// assert_eq!(buffer.to_vec()?, [1, 20, 3]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Device(Arc<Open>);

struct Open {
    backend: Arc<dyn Backend>,
    notes: Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    plans: Plans,
}

impl Open {
    fn new(backend: Arc<dyn Backend>) -> Arc<Self> {
        Arc::new(Self { backend, notes: Mutex::default(), plans: Plans::default() })
    }
}

/// Kernels that [`Device::prepare`] has made ready. The device keeps them, and stays open, as long as this lives.
#[derive(Debug)]
#[must_use = "kernels that nobody keeps may be compiled again"]
pub struct Prepared {
    device: Device,
    kernels: Vec<(KernelSpec, Executable)>,
}

impl Prepared {
    /// Returns a kernel of the list, which is not rendered, hashed and looked up again as [`Kernel::new`] would.
    ///
    /// # Panics
    /// If the list has not as many kernels, or `P` not the fields that this one was declared with.
    pub fn kernel<P: Params>(&self, index: usize) -> Kernel<P> {
        let (spec, executable) = &self.kernels[index];
        Kernel::from_parts(self.device.clone(), spec.clone(), executable.clone())
    }
}

/// A device that may be there, as [`Device::discover`] reports it.
#[derive(Debug)]
pub struct Discovered {
    /// The device's name.
    pub id: DeviceId,
    /// The open device, or the reason why it cannot be used.
    pub device: Result<Device>,
}

impl Device {
    /// Returns the host's processor as a device, which is always there.
    pub fn cpu() -> Self {
        match open(DeviceId::CPU) {
            Ok(device) => device,
            Err(error) => unreachable!("the CPU device does not depend on anything: {error}"),
        }
    }

    /// Opens NVIDIA GPU number `index`, from 0 on.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the program was built without the feature `cuda`, if the driver is missing, too old or
    /// does not start, or if it finds no GPU; [`Error::NoSuchDevice`] if it finds `index` GPUs or fewer; [`Error::Driver`]
    /// or [`Error::Lost`] if it cannot open this one.
    pub fn cuda(index: usize) -> Result<Self> {
        open(DeviceId { kind: Kind::Cuda, index })
    }

    /// Opens GPU number `index`, from 0 on, of those with Vulkan, Metal or DirectX 12; hardware comes before emulation.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the program was built without the feature `wgpu`, or if no driver of these offers a GPU
    /// that computes; [`Error::NoSuchDevice`] if they offer `index` GPUs or fewer; [`Error::Driver`] if this one cannot be
    /// opened, [`Error::OutOfMemory`] if it has no room for what each device needs.
    pub fn wgpu(index: usize) -> Result<Self> {
        open(DeviceId { kind: Kind::Wgpu, index })
    }

    /// Opens the device of a name.
    ///
    /// # Errors
    /// [`Error::NoSuchDevice`] for another CPU than number 0. Else returns the errors of [`Device::cuda`] or
    /// [`Device::wgpu`], for the same reasons.
    pub fn open(id: DeviceId) -> Result<Self> {
        if id.kind == Kind::Cpu && id.index != 0 {
            return Err(Error::NoSuchDevice { actual: id, available: 1 });
        }
        open(id)
    }

    /// Opens the device that `EVARISTE_DEVICE` names; else the first CUDA device, else the first GPU through wgpu, else the
    /// CPU. Emulated GPUs are not chosen.
    ///
    /// # Errors
    /// Only if `EVARISTE_DEVICE` is set: [`Error::UnknownDevice`] if it is no name of a device, else the errors of
    /// [`Device::cuda`] or [`Device::wgpu`], for the same reasons.
    pub fn best() -> Result<Self> {
        if let Some(name) = env::var_os(DEVICE_VARIABLE) {
            return name.to_string_lossy().parse();
        }
        if let Ok(device) = Self::cuda(0) {
            return Ok(device);
        }
        match Self::wgpu(0) {
            Ok(device) if !device.info().features.software => Ok(device),
            _ => Ok(Self::cpu()),
        }
    }

    /// Opens every device that works.
    pub fn all() -> Vec<Self> {
        Self::discover().into_iter().filter_map(|found| found.device.ok()).collect()
    }

    /// Lists every device of every backend, each with the reason if it cannot be used. A backend without any device is
    /// listed as its number 0, with the reason.
    pub fn discover() -> Vec<Discovered> {
        let mut found = vec![Discovered { id: DeviceId::CPU, device: Ok(Self::cpu()) }];
        for kind in [Kind::Cuda, Kind::Wgpu] {
            match count(kind) {
                Ok(count) => found.extend((0..count).map(|index| {
                    let id = DeviceId { kind, index };
                    Discovered { id, device: open(id) }
                })),
                Err(error) => found.push(Discovered { id: DeviceId { kind, index: 0 }, device: Err(error) }),
            }
        }
        found
    }

    /// Returns the device's name, limits and features.
    pub fn info(&self) -> &DeviceInfo {
        self.0.backend.info()
    }

    /// Returns what the device has counted since it was opened: launches, copies, bytes.
    pub fn stats(&self) -> Stats {
        self.0.backend.stats()
    }

    /// Calls `observer` after each kernel that the device makes ready from now on, in place of the one before; `None` calls none.
    /// A program shows progress with it: a first use may compile for seconds.
    ///
    /// The call comes from the thread that compiled, and several may come at once. The device holds no lock meanwhile. An observer
    /// that holds the device keeps it open.
    pub fn on_compile(&self, observer: Option<Observer>) {
        self.backend().observe(observer);
    }

    /// Makes kernels ready side by side, on rayon's pool, and waits for what the driver would compile at their first launch. Those
    /// of a plan are listed by its type, such as `Vector::kernels`. A [`Kernel`](crate::Kernel) that is made of one of them
    /// afterwards compiles nothing, as long as you keep what this gives, and [`Prepared::kernel`] gives it at once.
    ///
    /// With CUDA, a device keeps kernels as long as it is open. With wgpu, kernels for views of buffers that start at odd places
    /// are compiled at their first launch all the same.
    ///
    /// # Errors
    /// Returns the errors of [`Kernel::new`](crate::Kernel::new), for the same reasons, of the first kernel in the list that has
    /// one; [`Error::OutOfMemory`] with wgpu if there is no memory for buffers to bind.
    pub fn prepare(&self, kernels: &[KernelSpec]) -> Result<Prepared> {
        let (start, before) = (Instant::now(), self.stats());
        let mut made: Vec<Option<Result<Executable>>> = kernels.iter().map(|_| None).collect();
        parallel::chunks(&mut made, 1, &|i, made| made[0] = Some(kernels[i].compile(self)));
        let executables = made.into_iter().flatten().collect::<Result<Vec<_>>>()?;
        self.backend().finish_compiling(&executables)?;
        let after = self.stats();
        // Only for the log: a backend of one's own may count as it likes.
        let compiled = after.compiled.saturating_sub(before.compiled);
        let loaded = after.cache_hits.saturating_sub(before.cache_hits);
        if compiled > 0 || loaded > 0 {
            log::info!("{} compiled {compiled} kernels and loaded {loaded} in {:.2?}", self.info().id, start.elapsed());
        }
        Ok(Prepared { device: self.clone(), kernels: kernels.iter().cloned().zip(executables).collect() })
    }

    /// Makes a device of a backend of one's own, such as one for tests. No name opens it, and asking for its [`DeviceId`]
    /// gives another one.
    pub fn unregistered(backend: Arc<dyn Backend>) -> Self {
        Self(Open::new(backend))
    }

    /// Returns the backend that does the device's work.
    pub fn backend(&self) -> &dyn Backend {
        &*self.0.backend
    }

    /// Returns what a crate keeps with this device as long as that is open, such as what it measured: one value of each
    /// type, by default empty. It must not hold the device itself, which would stay open for ever.
    ///
    /// Of threads that make a value at once, all get that of one of them. No lock is held meanwhile, so that a `Default` may ask
    /// for other notes.
    pub fn notes<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        let notes = || self.0.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let known = notes().get(&TypeId::of::<T>()).map(Arc::clone);
        let note = known.unwrap_or_else(|| {
            let made: Arc<dyn Any + Send + Sync> = Arc::new(T::default());
            // Another thread's may stay: then this one goes when the lock is free again.
            Arc::clone(notes().entry(TypeId::of::<T>()).or_insert_with(|| Arc::clone(&made)))
        });
        match note.downcast() {
            Ok(note) => note,
            Err(_) => unreachable!("values are kept under their own type"),
        }
    }

    /// Returns the plan of type `T` that was made under `key` and is kept with this device, or a new one from `make`. At
    /// most [`CACHED_PLANS`](crate::CACHED_PLANS) plans of a type are kept: then the one that was used longest ago goes.
    ///
    /// Plans hold their device, so a device stays open while it keeps plans: until [`Device::trim`], or an allocation that
    /// finds too little memory or the device lost, drops them. For plans that calls on host slices make behind the scenes; a
    /// program that uses one plan again and again keeps it itself.
    ///
    /// # Errors
    /// Returns the error of `make`, if that fails; nothing is kept then.
    pub fn cached_plan<T: Any + Send + Sync, E>(
        &self,
        key: &str,
        make: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<Arc<T>, E> {
        let plans = &self.0.plans;
        if let Some(plan) = plans.find(key) {
            return Ok(plan);
        }
        // Not under the lock: making a plan may take seconds, and may ask for others.
        Ok(plans.keep(key, Arc::new(make()?)))
    }

    /// Returns whether both are the same device.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Refuses `other`, the device of `what`, unless it is this one.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] if it is another one.
    pub fn expect_same(&self, what: &'static str, other: &Self) -> Result<()> {
        if self.is_same(other) {
            return Ok(());
        }
        Err(Error::WrongDevice { what, expected: self.info().id, actual: other.info().id })
    }

    /// Allocates a buffer of `len` elements, whose contents are unspecified.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more bytes than one buffer may have ([`Limits::buffer_bytes`](crate::Limits::buffer_bytes)),
    /// [`Error::OutOfMemory`] if the device has not as much memory left, [`Error::Driver`] if a call of the driver fails,
    /// [`Error::Lost`] if the device is lost.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.alloc_with(len, Secrecy::Public)
    }

    /// Allocates a buffer of `len` elements, whose contents are unspecified. It is zeroed when it is dropped if it is
    /// [`Secrecy::Secret`].
    ///
    /// # Errors
    /// Returns the errors of [`Device::alloc`], for the same reasons.
    pub fn alloc_with<T: Element>(&self, len: usize, secrecy: Secrecy) -> Result<Buffer<T>> {
        const { assert!(T::BYTES > 0, "an element has at least one byte") };
        let limit = self.info().limits.buffer_bytes;
        let bytes = (len as u64).checked_mul(T::BYTES as u64).filter(|bytes| *bytes <= limit);
        let bytes = bytes.ok_or(Error::TooLarge {
            what: "buffer",
            device: self.info().id,
            expected: limit / T::BYTES as u64,
            actual: len as u64,
        })?;
        let memory: Memory = match self.0.backend.alloc(bytes, secrecy) {
            // Plans that nobody asked to be kept must not be what is in the way.
            Err(Error::OutOfMemory { .. }) if self.0.plans.clear() => self.0.backend.alloc(bytes, secrecy)?,
            // Nor may they keep a device open that is of no use: once all handles are gone, it can be opened anew.
            Err(error @ Error::Lost { .. }) => {
                self.0.plans.clear();
                return Err(error);
            }
            memory => memory?,
        };
        // Kernels go by the length, whoever wrote the backend.
        if memory.bytes() != bytes {
            let reason = format!("it gave {} bytes instead of {bytes}", memory.bytes());
            return Err(Error::Driver { device: self.info().id, call: "alloc", reason });
        }
        Ok(Buffer::from_parts(self.clone(), memory, len, secrecy))
    }

    /// Makes a buffer of `len` elements whose device form is all zero bytes.
    ///
    /// # Errors
    /// Returns the errors of [`Device::alloc`], for the same reasons.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = self.alloc(len)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// Makes a buffer of as many elements as `host` has, with these contents.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more bytes than one buffer may have ([`Limits::buffer_bytes`](crate::Limits::buffer_bytes)),
    /// [`Error::OutOfMemory`] if there is not as much memory for the buffer or for staging, [`Error::Driver`] if a call of
    /// the driver fails, [`Error::Lost`] if the device is lost.
    pub fn upload<T: Element>(&self, host: &[T::Host]) -> Result<Buffer<T>> {
        self.upload_with(host, Secrecy::Public)
    }

    /// Makes a buffer of as many elements as `host` has, with these contents. It is zeroed when it is dropped if it is
    /// [`Secrecy::Secret`].
    ///
    /// # Errors
    /// Returns the errors of [`Device::upload`], for the same reasons.
    pub fn upload_with<T: Element>(&self, host: &[T::Host], secrecy: Secrecy) -> Result<Buffer<T>> {
        self.default_queue().upload_with(host, secrecy)
    }

    /// Makes host memory of `bytes` bytes that this device copies from or to without a detour, whose contents are
    /// unspecified. It is zeroed when it is dropped if it is [`Secrecy::Secret`]. Making new memory is slow with CUDA,
    /// which pins it: keep it for many transfers.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is not as much memory that the device can use, [`Error::TooLarge`] with wgpu for
    /// more than a buffer of its API may have, [`Error::Driver`] if a call of the driver fails, [`Error::Lost`] if the
    /// device is lost.
    pub fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
        let host = self.0.backend.host_buffer(bytes, transfer, secrecy)?;
        // Whoever fills it goes by the length, whoever wrote the backend.
        let reason = if host.len() != bytes {
            format!("it gave {} bytes of host memory instead of {bytes}", host.len())
        } else if host.secrecy() < secrecy {
            "it gave host memory that it does not zero in place of secret".into()
        } else {
            return Ok(host);
        };
        Err(Error::Driver { device: self.info().id, call: "host_buffer", reason })
    }

    /// Returns the queue that work goes to where none is named.
    pub fn default_queue(&self) -> Queue {
        Queue::from_handle(self, self.backend().default_queue().clone())
    }

    /// Makes a further queue, or returns the default queue again where the device has one only.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver cannot make one, [`Error::Lost`] if the device is lost.
    pub fn queue(&self) -> Result<Queue> {
        Ok(Queue::from_handle(self, self.backend().queue()?))
    }

    /// Waits for both events and gives the time between them.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] for an event of another device of this kind, [`Error::Driver`] for one of another kind or if
    /// a call of the driver fails, [`Error::Lost`] if the device is lost.
    pub fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        self.0.backend.elapsed(from, to)
    }

    /// Waits until the device is idle, and reports what went wrong on it since.
    ///
    /// # Errors
    /// [`Error::Driver`] if a call of the driver fails, [`Error::Lost`] if the device is lost, which work that was queued
    /// before may have caused.
    pub fn sync(&self) -> Result<()> {
        self.0.backend.sync()
    }

    /// Gives memory that is kept for later buffers back to the system, after dropping the plans that are kept
    /// ([`Device::cached_plan`]).
    pub fn trim(&self) {
        self.0.plans.clear();
        self.0.backend.trim();
    }
}

impl FromStr for Device {
    type Err = Error;

    /// Opens the device of a name such as `cpu`, `cuda`, `cuda:1` or `wgpu:0`.
    fn from_str(name: &str) -> Result<Self> {
        Self::open(name.parse()?)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.info().id)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.info().id, self.info().name)
    }
}

/// The open devices, so that two independent crates that ask for `cuda:0` can exchange buffers.
static REGISTRY: Mutex<Vec<(DeviceId, Place)>> = Mutex::new(Vec::new());

/// Where a device is while it is open. Who opens it holds this lock, and not that of the registry: drivers and loggers that run
/// meanwhile may ask for another device.
type Place = Arc<Mutex<Weak<Open>>>;

fn place(id: DeviceId) -> Place {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, place)) = registry.iter().find(|(known, _)| *known == id) {
        return Arc::clone(place);
    }
    registry.retain(|(_, place)| {
        Arc::strong_count(place) > 1 || place.try_lock().is_ok_and(|open| open.strong_count() > 0)
    });
    let place = Place::default();
    registry.push((id, Arc::clone(&place)));
    place
}

fn open(id: DeviceId) -> Result<Device> {
    let place = place(id);
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(open) = place.upgrade() {
        return Ok(Device(open));
    }
    let backend: Arc<dyn Backend> = match id.kind {
        Kind::Cpu => Arc::new(cpu::Cpu::new()),
        #[cfg(feature = "cuda")]
        Kind::Cuda => crate::cuda::open(id.index)?,
        #[cfg(feature = "wgpu")]
        Kind::Wgpu => crate::wgpu::open(id.index)?,
        #[cfg(not(all(feature = "cuda", feature = "wgpu")))]
        kind => return Err(not_built(kind)),
    };
    let open = Open::new(backend);
    *place = Arc::downgrade(&open);
    Ok(Device(open))
}

fn count(kind: Kind) -> Result<usize> {
    match kind {
        Kind::Cpu => Ok(1),
        #[cfg(feature = "cuda")]
        Kind::Cuda => crate::cuda::count(),
        #[cfg(feature = "wgpu")]
        Kind::Wgpu => crate::wgpu::count(),
        #[cfg(not(all(feature = "cuda", feature = "wgpu")))]
        kind => Err(not_built(kind)),
    }
}

#[cfg(not(all(feature = "cuda", feature = "wgpu")))]
fn not_built(backend: Kind) -> Error {
    Error::Unavailable { backend, reason: format!("this program was built without the feature `{backend}`") }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            atomic::{AtomicU32, AtomicU64, Ordering},
            mpsc,
        },
        thread,
    };

    use super::*;
    use crate::{Dispatch, Executable, KernelSpec, Pending, QueueHandle, Ring, Span, SpanMut, Stream, Uploads};

    #[test]
    fn names_round_trip_and_nonsense_is_refused() {
        for name in ["cpu", "cuda:0", "cuda:7", "wgpu:1"] {
            assert_eq!(name.parse::<DeviceId>().unwrap().to_string(), name);
        }
        assert_eq!("cuda".parse::<DeviceId>().unwrap(), DeviceId { kind: Kind::Cuda, index: 0 });
        for name in ["", "nonsense", "cpu:0", "cuda:", "cuda:-1", "cuda:+1", "wgpu:x", "CUDA:0"] {
            let error = name.parse::<DeviceId>().unwrap_err();
            assert_eq!(error, Error::UnknownDevice { expected: DeviceId::EXPECTED, actual: name.into() });
            assert!(error.to_string().contains("wgpu:N"));
        }
    }

    #[test]
    fn notes_are_kept_by_type() {
        type Numbers = Mutex<Vec<u32>>;
        let device = Device::cpu();
        device.notes::<Numbers>().lock().unwrap().push(7);
        assert_eq!(*Device::cpu().notes::<Numbers>().lock().unwrap(), [7]);
        assert!(device.notes::<Mutex<Vec<u64>>>().lock().unwrap().is_empty());
    }

    /// What depends on other notes of the same device.
    struct Outer(Arc<Inner>);

    #[derive(Default)]
    struct Inner(AtomicU32);

    impl Default for Outer {
        fn default() -> Self {
            let inner = Device::cpu().notes::<Inner>();
            inner.0.fetch_add(1, Ordering::Relaxed);
            Self(inner)
        }
    }

    #[test]
    fn notes_may_ask_for_others_when_they_are_made() {
        let device = Device::cpu();
        let outer = within_a_minute(|| Device::cpu().notes::<Outer>());
        assert!(Arc::ptr_eq(&outer, &device.notes()) && Arc::ptr_eq(&outer.0, &device.notes()));
        assert_eq!(outer.0.0.load(Ordering::Relaxed), 1);
    }

    /// Refuses to wait for good.
    fn within_a_minute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(work()));
        receiver.recv_timeout(Duration::from_secs(60)).expect("it ends")
    }

    #[test]
    fn a_device_opens_while_another_one_does() {
        let id = DeviceId { kind: Kind::Wgpu, index: usize::MAX };
        let place = place(id);
        let opening = place.lock().unwrap();
        assert!(within_a_minute(Device::cpu).is_same(&Device::cpu()));
        drop(opening);
        drop(place);
        // What did not open leaves nothing behind.
        drop(super::place(DeviceId { index: usize::MAX - 1, ..id }));
        assert!(REGISTRY.lock().unwrap().iter().all(|(known, _)| *known != id));
    }

    #[test]
    fn the_same_device_twice_is_one_device() {
        assert!(Device::cpu().is_same(&"cpu".parse().unwrap()));
    }

    /// A backend that gives less memory than was asked for, or more; and fails with an error while it holds more than so
    /// many bytes.
    #[derive(Debug)]
    struct Skewed {
        below: Device,
        /// Bytes that device memory, host memory and host memory that comes back are longer.
        memory: i64,
        host: i64,
        back: i64,
        /// Events for blocks of columns beside those that were asked for.
        events: i64,
        limit: Option<(u64, Error)>,
        /// Kernels that it says it has compiled when it is asked for the first time, and none from then on.
        compiled: AtomicU64,
    }

    impl Skewed {
        fn new(below: &Device) -> Self {
            Self {
                below: below.clone(),
                memory: 0,
                host: 0,
                back: 0,
                events: 0,
                limit: None,
                compiled: AtomicU64::new(0),
            }
        }

        fn device(self) -> Device {
            Device::unregistered(Arc::new(self))
        }

        /// Host memory of another length in place of what comes back.
        fn back(&self, pending: Pending) -> Result<Pending> {
            let host = pending.wait()?;
            if self.back == 0 {
                return Ok(Pending::done(host));
            }
            let len = (host.len() as i64 + self.back).max(0) as usize;
            Ok(Pending::done(self.below.host_buffer(len, host.transfer(), host.secrecy())?))
        }
    }

    impl Backend for Skewed {
        fn info(&self) -> &DeviceInfo {
            self.below.info()
        }

        fn stats(&self) -> Stats {
            Stats { compiled: self.compiled.swap(0, Ordering::Relaxed), ..self.below.stats() }
        }

        fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory> {
            match &self.limit {
                Some((limit, error)) if self.stats().bytes_live + bytes > *limit => return Err(error.clone()),
                _ => {}
            }
            self.below.backend().alloc(bytes.saturating_add_signed(self.memory), secrecy)
        }

        fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
            self.below.backend().host_buffer(bytes.saturating_add_signed(self.host as isize), transfer, secrecy)
        }

        fn default_queue(&self) -> &QueueHandle {
            self.below.backend().default_queue()
        }

        fn queue(&self) -> Result<QueueHandle> {
            self.below.backend().queue()
        }

        fn write(&self, queue: &QueueHandle, dst: SpanMut<'_>, src: HostBuffer) -> Result<Pending> {
            self.back(self.below.backend().write(queue, dst, src)?)
        }

        fn read(&self, queue: &QueueHandle, src: Span<'_>, dst: HostBuffer) -> Result<Pending> {
            self.back(self.below.backend().read(queue, src, dst)?)
        }

        fn write_columns(
            &self,
            queue: &QueueHandle,
            dst: SpanMut<'_>,
            src: HostBuffer,
            _: usize,
            pieces: usize,
        ) -> Result<(Vec<Event>, Pending)> {
            let pending = self.write(queue, dst, src)?;
            let count = (pieces as i64 + self.events) as usize;
            Ok(((0..count).map(|_| self.record(queue)).collect::<Result<_>>()?, pending))
        }

        fn copy(&self, queue: &QueueHandle, src: Span<'_>, dst: SpanMut<'_>) -> Result<()> {
            self.below.backend().copy(queue, src, dst)
        }

        fn clear(&self, queue: &QueueHandle, dst: SpanMut<'_>) -> Result<()> {
            self.below.backend().clear(queue, dst)
        }

        fn record(&self, queue: &QueueHandle) -> Result<Event> {
            self.below.backend().record(queue)
        }

        fn wait_for(&self, queue: &QueueHandle, event: &Event) -> Result<()> {
            self.below.backend().wait_for(queue, event)
        }

        fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
            self.below.elapsed(from, to)
        }

        fn compile(&self, spec: &KernelSpec) -> Result<Executable> {
            self.below.backend().compile(spec)
        }

        unsafe fn dispatch(&self, queue: &QueueHandle, job: Dispatch<'_, '_>) -> Result<()> {
            // SAFETY: the caller's promise is the one that is asked for.
            unsafe { self.below.backend().dispatch(queue, job) }
        }

        fn sync(&self) -> Result<()> {
            self.below.sync()
        }

        fn trim(&self) {
            self.below.trim();
        }
    }

    #[test]
    fn a_backend_that_gives_other_memory_than_was_asked_for_is_refused() {
        for memory in [-8, -1, 1] {
            let device = Skewed { memory, ..Skewed::new(&Device::cpu()) }.device();
            let error = device.alloc::<u64>(4).unwrap_err();
            assert!(matches!(&error, Error::Driver { call: "alloc", .. }), "{error}");
            assert!(device.upload::<u64>(&[1, 2]).is_err());
        }
        let device = Skewed::new(&Device::cpu()).device();
        assert_eq!(device.upload::<u64>(&[1, 2]).unwrap().to_vec().unwrap(), [1, 2]);
    }

    /// All that passes through host memory: results or errors of these calls of the backend.
    fn expect_refused(device: &Device, call: &str) {
        let refused = |what: &str, error: Option<Error>| {
            let is_named = |error: &Error| matches!(error, Error::Driver { call: named, .. } if *named == call);
            assert!(error.as_ref().is_some_and(is_named), "{what}: {error:?}");
        };
        let host = |device: &Device, bytes| device.host_buffer(bytes, Transfer::Both, Secrecy::Public);
        // Of a device that does as it should, if this one gives none.
        let given = |bytes| host(device, bytes).or_else(|_| host(&Device::cpu(), bytes)).unwrap();
        let mut x = device.alloc::<u8>(64).unwrap();
        if call == "host_buffer" {
            refused("a write", x.write(&[1; 64]).err());
            refused("host memory", host(device, 64).err());
            refused(
                "a ring",
                Ring::new(device, 32, 2, Secrecy::Public)
                    .and_then(|ring| ring.run(&mut [0; 100], |_, _, _, _| Ok::<_, Error>(()), |_| ()))
                    .err(),
            );
        }
        refused("an unaligned write", x.view_mut(1..3).unwrap().write(&[1, 2]).err());
        refused("a read", x.to_vec().err());
        if call == "wait" {
            refused("a write", x.write_pinned(given(64)).unwrap().wait().err());
            refused("a read", x.read_pinned(given(64)).unwrap().wait().err());
            let mut ring = given(100);
            let work = |_: &Queue, _: &mut Buffer<u8>, _, _| Ok::<_, Error>(());
            refused("a ring", Ring::new(device, 32, 2, Secrecy::Public).unwrap().run_pinned(&mut ring, work).err());
            let mut stream = Stream::<u8>::new(device, 64, Secrecy::Public).unwrap();
            let run = stream.run(vec![given(64)], |_, _| Ok::<_, Error>(0..64)).and_then(|_| stream.next());
            refused("a stream", run.err());
            let mut uploads = Uploads::<u8>::new(device, 64, 1, Secrecy::Public).unwrap();
            uploads.run(given(64), |_, _, _| Ok::<_, Error>(())).unwrap();
            refused("an upload", uploads.next().err());
        }
    }

    #[test]
    fn a_backend_that_gives_other_host_memory_than_was_asked_for_is_refused() {
        for skew in [-64, -1, 1, 16] {
            expect_refused(&Skewed { host: skew, ..Skewed::new(&Device::cpu()) }.device(), "host_buffer");
            expect_refused(&Skewed { back: skew, ..Skewed::new(&Device::cpu()) }.device(), "wait");
        }
    }

    #[test]
    fn a_backend_that_gives_other_events_than_was_asked_for_is_refused() {
        for events in [-2, -1, 1] {
            let device = Skewed { events, ..Skewed::new(&Device::cpu()) }.device();
            let host = device.host_buffer(64, Transfer::Both, Secrecy::Public).unwrap();
            let mut x = device.alloc::<u32>(16).unwrap();
            let error = device.default_queue().write_pinned_columns(&mut x, host, 4, 2).unwrap_err();
            assert!(matches!(error, Error::Driver { call: "write_columns", .. }), "{error}");
        }
    }

    #[test]
    fn a_backend_that_counts_backwards_makes_kernels_all_the_same() {
        let device = Skewed { compiled: AtomicU64::new(5), ..Skewed::new(&Device::cpu()) }.device();
        assert!(device.prepare(&[]).is_ok());
    }

    /// A device of 1000 bytes that fails with an error beyond, and keeps a plan of 800.
    fn with_a_plan(beyond: impl FnOnce(DeviceId) -> Error) -> (Device, std::sync::Weak<Buffer<u8>>) {
        let below = Device::unregistered(Arc::new(cpu::Cpu::new()));
        let error = beyond(below.info().id);
        let device = Skewed { limit: Some((1000, error)), ..Skewed::new(&below) }.device();
        let plan = device.cached_plan("plan", || device.alloc::<u8>(800)).unwrap();
        (device, Arc::downgrade(&plan))
    }

    #[test]
    fn plans_go_where_memory_runs_out() {
        let out = |device| Error::OutOfMemory { device, requested: 0, available: None };
        let (device, plan) = with_a_plan(out);
        let own = device.alloc::<u8>(100).unwrap();
        assert!(plan.upgrade().is_some(), "there was room beside it");
        assert_eq!(device.alloc::<u8>(500).unwrap().len(), 500, "there is without it");
        assert!(plan.upgrade().is_none());
        assert!(matches!(device.alloc::<u8>(901).unwrap_err(), Error::OutOfMemory { .. }), "{}", own.len());
    }

    #[test]
    fn plans_do_not_keep_a_lost_device() {
        let (device, plan) = with_a_plan(|device| Error::Lost { device, reason: "made to fail".into() });
        assert!(matches!(device.alloc::<u8>(500).unwrap_err(), Error::Lost { .. }));
        assert!(plan.upgrade().is_none());
    }
}
