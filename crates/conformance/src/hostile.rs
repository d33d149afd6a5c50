//! Backends that anyone may write, and that do not keep their word: what they cause is an error, and neither a panic
//! nor a wait for good.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use ark_bls12_381::Fr;
use evariste::backend::{
    Buffer, Device, DeviceInfo, Event, HostBuffer, Pending, Result, Secrecy, Stats, Transfer,
    author::{Backend, Dispatch, Executable, KernelSpec, Memory, QueueHandle, Span, SpanMut},
};
use evariste::field::{Expression, Mont, Vector};
use libtest_mimic::{Failed, Trial};

use crate::{
    expect::expect,
    harness::{Named, Outcome},
    recorder::Recorder,
    samples::samples,
    secrecy,
};

pub(crate) fn common() -> impl Iterator<Item = Trial> {
    let trials: [Named; 2] = [("false_limits", false_limits), ("handles_that_call_back", handles_that_call_back)];
    trials.into_iter().map(|(name, run)| Trial::test(format!("any::hostile::{name}"), run))
}

/// What a device says falsely of itself.
type Lie = (&'static str, fn(&mut DeviceInfo, u64));

const LIES: [Lie; 9] = [
    ("bytes of a buffer", |info, x| info.limits.buffer_bytes = x),
    ("bindings", |info, x| info.limits.bindings = x as u32),
    ("bytes of a workgroup", |info, x| info.limits.workgroup_bytes = x as u32),
    ("bytes of the cache", |info, x| info.limits.cache_bytes = x),
    ("threads of a workgroup", |info, x| info.limits.workgroup_threads = x as u32),
    ("bytes of staging memory", |info, x| info.limits.staging_bytes = x),
    ("iterations of loops", |info, x| info.limits.loop_iterations = Some(x as u32)),
    ("bytes of memory", |info, x| info.memory_bytes = Some(x)),
    ("units", |info, x| info.parallelism = x as u32),
];

/// Every operation on a device each of whose limits is 0, 1, odd, small, and as large as it can be. What it computes
/// may be an error.
fn false_limits() -> Outcome {
    let told = |what: &str, lie: fn(&mut DeviceInfo, u64), value: u64| -> Vec<String> {
        let mut info = Device::cpu().info().clone();
        lie(&mut info, value);
        let device = Device::unregistered(Recorder::with_info(&Device::cpu(), info, &[]));
        let panics = secrecy::operations().filter(|(_, run)| catch_unwind(AssertUnwindSafe(|| run(&device))).is_err());
        panics.map(|(name, _)| format!("{name} with {value} {what}")).collect()
    };
    // Most operations are too small for several cores.
    let panicked: Vec<String> = thread::scope(|scope| {
        let threads: Vec<_> = [0, 1, 3, 1000, u64::MAX]
            .into_iter()
            .map(|value| {
                scope.spawn(move || LIES.into_iter().flat_map(|(what, lie)| told(what, lie, value)).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|_| vec!["a thread".to_owned()])).collect()
    });
    expect(&format!("nothing panics, but {panicked:?}: it"), panicked.is_empty())
}

/// What is done when a kernel is dropped.
type Hook = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// The CPU, whose kernels call back when they are dropped.
struct Calling {
    below: Device,
    hook: Hook,
}

struct Compiled {
    executable: Executable,
    hook: Hook,
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let hook = self.hook.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(hook) = hook {
            hook();
        }
    }
}

impl fmt::Debug for Calling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calling").finish_non_exhaustive()
    }
}

impl Calling {
    fn backend(&self) -> &dyn Backend {
        self.below.backend()
    }
}

impl Backend for Calling {
    fn info(&self) -> &DeviceInfo {
        self.below.info()
    }

    fn stats(&self) -> Stats {
        self.below.stats()
    }

    fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory> {
        self.backend().alloc(bytes, secrecy)
    }

    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
        self.backend().host_buffer(bytes, transfer, secrecy)
    }

    fn default_queue(&self) -> &QueueHandle {
        self.backend().default_queue()
    }

    fn queue(&self) -> Result<QueueHandle> {
        self.backend().queue()
    }

    fn write(&self, queue: &QueueHandle, dst: SpanMut<'_>, src: HostBuffer) -> Result<Pending> {
        self.backend().write(queue, dst, src)
    }

    fn read(&self, queue: &QueueHandle, src: Span<'_>, dst: HostBuffer) -> Result<Pending> {
        self.backend().read(queue, src, dst)
    }

    fn copy(&self, queue: &QueueHandle, src: Span<'_>, dst: SpanMut<'_>) -> Result<()> {
        self.backend().copy(queue, src, dst)
    }

    fn clear(&self, queue: &QueueHandle, dst: SpanMut<'_>) -> Result<()> {
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
        let executable = self.backend().compile(spec)?;
        Ok(Executable::new(Compiled { executable, hook: Arc::clone(&self.hook) }))
    }

    unsafe fn dispatch(&self, queue: &QueueHandle, job: Dispatch<'_, '_>) -> Result<()> {
        let Some(compiled) = job.executable.downcast_ref::<Compiled>() else {
            let reason = "the handle belongs to another backend".into();
            return Err(evariste::backend::Error::Driver { device: self.info().id, call: "kernel", reason });
        };
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { self.backend().dispatch(queue, Dispatch { executable: &compiled.executable, ..job }) }
    }

    fn sync(&self) -> Result<()> {
        self.backend().sync()
    }

    fn trim(&self) {
        self.backend().trim();
    }
}

/// The kernel of an expression that has not been used for longest gives way, and asks the same operations for another
/// one.
fn handles_that_call_back() -> Outcome {
    let hook = Hook::default();
    let device = Device::unregistered(Arc::new(Calling { below: Device::cpu(), hook: Arc::clone(&hook) }));
    let vector = Vector::<Fr>::new(&device);
    let a = Arc::new(device.upload::<Mont<Fr>>(&samples::<Fr>(20, 1))?);
    let sum = |vector: &Vector<Fr>, a: &Buffer<Mont<Fr>>, power| {
        vector.sum_expression(&Expression::column(0).pow(power), &[a], &[])
    };
    let (sender, receiver) = mpsc::channel();
    let (called, calls) = mpsc::channel();
    let (again, own) = (vector.clone(), Arc::clone(&a));
    let call = move || drop(called.send(sum(&again, &own, 1000)));
    *hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(call));
    // More than are kept.
    let work = move || (2..100).try_for_each(|power| sum(&vector, &a, power).map(drop));
    thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(100)).map_err(|_| Failed::from("the operations wait for good"))??;
    calls.try_recv().map_err(|_| Failed::from("no kernel was dropped"))?.map(drop).map_err(Failed::from)
}
