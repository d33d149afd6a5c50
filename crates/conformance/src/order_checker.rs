//! A device that checks whether the caller's events order work on different queues. Backends order the rest themselves,
//! at the price of a wait for all work of the other queue. So a finding here is an operation with a step outside its
//! queue, or with a wait for more than it must.
//!
//! Each operation on a queue gets a time there. Each queue knows up to which time it is ordered behind every other one:
//! by events, and by waits of the host. Two operations that use the same allocation must be ordered if one writes. The
//! CPU does the work itself at once, so that results are right in any case.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use evariste::backend::{
    Device, DeviceInfo, Error, Event, HostBuffer, Pending, Queue, Result, Secrecy, Stats, Transfer,
    author::{Access, Backend, Dispatch, Executable, KernelSpec, Memory, PendingCopy, QueueHandle, Span, SpanMut},
};
use libtest_mimic::Trial;

use crate::harness::Outcome;

/// For each queue, up to which of its times something is ordered behind it.
type Clock = BTreeMap<usize, u64>;

/// See the module.
#[derive(Debug)]
pub(crate) struct OrderChecker {
    cpu: Device,
    info: DeviceInfo,
    default_queue: QueueHandle,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    queues: Vec<Clock>,
    host: Clock,
    /// By address.
    memories: BTreeMap<usize, Uses>,
    faults: Vec<String>,
    launches: u64,
}

/// The last uses of an allocation: when it was written, and read by each queue since.
#[derive(Debug, Default)]
struct Uses {
    written: Option<(usize, u64, &'static str)>,
    read: BTreeMap<usize, (u64, &'static str)>,
}

/// What a queue's handle holds: its number.
struct Number(usize);

/// What an event's handle holds.
struct Point(Clock);

fn join(clock: &mut Clock, other: &Clock) {
    for (queue, time) in other {
        let known = clock.entry(*queue).or_default();
        *known = (*known).max(*time);
    }
}

impl State {
    /// An operation on a queue, and what is ordered behind it.
    fn operate(&mut self, queue: usize, what: &'static str, uses: &[(usize, Access)]) -> Clock {
        let host = self.host.clone();
        let clock = &mut self.queues[queue];
        join(clock, &host);
        let time = clock.entry(queue).or_default();
        *time += 1;
        let (time, clock) = (*time, clock.clone());
        let is_behind = |other: usize, then: u64| clock.get(&other).is_some_and(|seen| *seen >= then);
        for (memory, access) in uses {
            let known = self.memories.entry(*memory).or_default();
            let written = known.written;
            let read = known.read.iter().map(|(queue, (time, what))| (*queue, *time, *what));
            let before: Vec<_> = match access {
                Access::Read => written.into_iter().collect(),
                Access::Write => written.into_iter().chain(read).collect(),
            };
            for (other, _, earlier) in before.into_iter().filter(|(other, then, _)| !is_behind(*other, *then)) {
                self.faults.push(format!("{what} on queue {queue} does not wait for {earlier} on queue {other}"));
            }
            match access {
                Access::Read => drop(known.read.insert(queue, (time, what))),
                Access::Write => (known.written, known.read) = (Some((queue, time, what)), BTreeMap::new()),
            }
        }
        clock
    }
}

impl OrderChecker {
    pub(crate) fn new() -> Arc<Self> {
        let cpu = Device::cpu();
        let mut info = cpu.info().clone();
        info.features.queues = true;
        let state = State { queues: vec![Clock::new()], ..State::default() };
        Arc::new(Self { cpu, info, default_queue: QueueHandle::new(Number(0)), state: Arc::new(Mutex::new(state)) })
    }

    pub(crate) fn device(self: &Arc<Self>) -> Device {
        Device::unregistered(Arc::clone(self) as _)
    }

    /// What was not ordered.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.state().faults.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn below(&self) -> &dyn Backend {
        self.cpu.backend()
    }

    fn number(&self, queue: &QueueHandle) -> Result<usize> {
        queue.downcast_ref::<Number>().map(|number| number.0).ok_or_else(|| self.foreign("queue"))
    }

    fn point<'a>(&self, event: &'a Event) -> Result<&'a Clock> {
        event.downcast_ref::<Point>().map(|point| &point.0).ok_or_else(|| self.foreign("event"))
    }

    fn foreign(&self, call: &'static str) -> Error {
        Error::Driver { device: self.info.id, call, reason: "the handle belongs to another backend".into() }
    }

    fn operate(&self, queue: &QueueHandle, what: &'static str, uses: &[(&Memory, Access)]) -> Result<Clock> {
        let uses: Vec<_> = uses.iter().map(|(memory, access)| (memory.address(), *access)).collect();
        let queue = self.number(queue)?;
        Ok(self.state().operate(queue, what, &uses))
    }

    fn pending(&self, copy: Pending, done: Clock) -> Pending {
        Pending::new(Waited { copy, done, state: Arc::clone(&self.state) })
    }
}

/// A copy after which the host is ordered behind it.
struct Waited {
    copy: Pending,
    done: Clock,
    state: Arc<Mutex<State>>,
}

impl PendingCopy for Waited {
    fn wait(self: Box<Self>) -> Result<HostBuffer> {
        join(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).host, &self.done);
        self.copy.wait()
    }
}

impl Backend for OrderChecker {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn stats(&self) -> Stats {
        let mut stats = self.below().stats();
        // Others launch on the CPU device too.
        stats.launches = self.state().launches;
        stats
    }

    fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory> {
        let memory = self.below().alloc(bytes, secrecy)?;
        // Memory is there for all queues, and freed behind all that use it.
        self.state().memories.remove(&memory.address());
        Ok(memory)
    }

    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
        self.below().host_buffer(bytes, transfer, secrecy)
    }

    fn default_queue(&self) -> &QueueHandle {
        &self.default_queue
    }

    fn queue(&self) -> Result<QueueHandle> {
        let mut state = self.state();
        state.queues.push(Clock::new());
        Ok(QueueHandle::new(Number(state.queues.len() - 1)))
    }

    fn write(&self, queue: &QueueHandle, dst: SpanMut<'_>, src: HostBuffer) -> Result<Pending> {
        let done = self.operate(queue, "a write", &[(dst.memory(), Access::Write)])?;
        let below = self.below();
        Ok(self.pending(below.write(below.default_queue(), dst, src)?, done))
    }

    fn read(&self, queue: &QueueHandle, src: Span<'_>, dst: HostBuffer) -> Result<Pending> {
        let done = self.operate(queue, "a read", &[(src.memory(), Access::Read)])?;
        let below = self.below();
        Ok(self.pending(below.read(below.default_queue(), src, dst)?, done))
    }

    fn copy(&self, queue: &QueueHandle, src: Span<'_>, dst: SpanMut<'_>) -> Result<()> {
        self.operate(queue, "a copy", &[(src.memory(), Access::Read), (dst.memory(), Access::Write)])?;
        let below = self.below();
        below.copy(below.default_queue(), src, dst)
    }

    fn clear(&self, queue: &QueueHandle, dst: SpanMut<'_>) -> Result<()> {
        self.operate(queue, "a clear", &[(dst.memory(), Access::Write)])?;
        let below = self.below();
        below.clear(below.default_queue(), dst)
    }

    fn record(&self, queue: &QueueHandle) -> Result<Event> {
        Ok(Event::new(Point(self.operate(queue, "an event", &[])?)))
    }

    fn wait_for(&self, queue: &QueueHandle, event: &Event) -> Result<()> {
        let (queue, point) = (self.number(queue)?, self.point(event)?);
        join(&mut self.state().queues[queue], point);
        Ok(())
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        let (from, to) = (self.point(from)?, self.point(to)?);
        let mut state = self.state();
        join(&mut state.host, from);
        join(&mut state.host, to);
        Ok(Duration::ZERO)
    }

    fn compile(&self, spec: &KernelSpec) -> Result<Executable> {
        self.below().compile(spec)
    }

    unsafe fn dispatch(&self, queue: &QueueHandle, job: Dispatch<'_, '_>) -> Result<()> {
        let uses: Vec<_> = job.args.iter().map(|arg| (arg.memory(), arg.access())).collect();
        self.operate(queue, job.spec.name, &uses)?;
        self.state().launches += 1;
        let below = self.below();
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { below.dispatch(below.default_queue(), job) }
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.state();
        for clock in state.queues.clone() {
            join(&mut state.host, &clock);
        }
        Ok(())
    }

    fn trim(&self) {
        self.below().trim();
    }
}

/// That the device finds what is not ordered. The trials of areas use it: whatever takes a queue is the first to use
/// what it uses, on a queue of its own.
pub(crate) fn common() -> Trial {
    Trial::test("any::ordered::the device finds what is not ordered", finds)
}

pub(crate) fn expect_ordered(device: &OrderChecker, what: &str) -> Outcome {
    let faults = device.faults();
    if faults.is_empty() { Ok(()) } else { Err(format!("{what}: {faults:?}").into()) }
}

/// Runs a trial on plans for work on a further queue, which are made on the default queue, on that queue, and on a
/// third one.
pub(crate) fn on_plans(run: impl Fn(&OrderChecker, &Queue, &Queue) -> Outcome) -> Outcome {
    for case in 0..3 {
        let ordered = OrderChecker::new();
        let device = ordered.device();
        let queue = device.queue()?;
        let made_on = match case {
            0 => device.default_queue(),
            1 => queue.clone(),
            _ => device.queue()?,
        };
        run(&ordered, &made_on, &queue)?;
    }
    Ok(())
}

fn finds() -> Outcome {
    let ordered = OrderChecker::new();
    let device = ordered.device();
    let queue = device.queue()?;
    let mut x = device.upload::<u32>(&[1; 16])?;
    let seen = device.default_queue().record()?;
    queue.wait_for(&seen)?;
    queue.clear(&mut x)?;
    expect_ordered(&ordered, "a clear after an event")?;
    x.clear()?;
    let faults = ordered.faults();
    if faults != ["a clear on queue 0 does not wait for a clear on queue 1"] {
        return Err(format!("{faults:?}").into());
    }
    Ok(())
}
