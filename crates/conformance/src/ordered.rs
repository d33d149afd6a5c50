//! A device that looks whether work on different queues is ordered by the events of whoever gives it. Backends order the rest
//! themselves, at the price of waiting for all that the other queue was given: so what is found here is an operation of which a
//! step has left its queue, or waits for more than it must.
//!
//! Each operation on a queue gets a time there, and each queue knows up to which time it is ordered behind every other one:
//! by events, and by waits of the host. Two operations that use the same allocation, of which one writes, must be ordered.
//! The work itself is done at once, by the CPU, so that results are right in any case.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use evariste_backend::{
    Access, Backend, Device, DeviceInfo, Dispatch, Error, Event, Executable, HostBuffer, KernelSpec, Memory, Pending,
    PendingCopy, Queue, QueueHandle, Result, Secrecy, Span, SpanMut, Stats, Transfer,
};
use libtest_mimic::Trial;

use crate::Outcome;

/// For each queue, up to which of its times something is ordered behind it.
type Clock = BTreeMap<usize, u64>;

/// See the module.
#[derive(Debug)]
pub(crate) struct Ordered {
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

impl Ordered {
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

impl Backend for Ordered {
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

/// The trials: whatever takes a queue is the first to use what it uses, on a queue of its own.
pub(crate) fn common() -> Vec<Trial> {
    let trials: [crate::Named; 9] = [
        ("the device finds what is not ordered", finds),
        ("operations", operations),
        ("transforms", transforms),
        ("pipelines and pinned memory", pipelines),
        ("sums of points", sums_of_points),
        ("sumchecks", sumchecks),
        ("square roots", square_roots),
        ("counter mode", counter_mode),
        ("modes", modes),
    ];
    trials.into_iter().map(|(name, run)| Trial::test(format!("any::ordered::{name}"), run)).collect()
}

fn expect_ordered(device: &Ordered, what: &str) -> Outcome {
    let faults = device.faults();
    if faults.is_empty() { Ok(()) } else { Err(format!("{what}: {faults:?}").into()) }
}

/// Runs a trial on plans for work on a further queue, which are made on the default queue, on that queue, and on a third one.
fn on_plans(run: impl Fn(&Ordered, &Queue, &Queue) -> Outcome) -> Outcome {
    for case in 0..3 {
        let ordered = Ordered::new();
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
    let ordered = Ordered::new();
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

/// All that operations take from the host, keep for themselves and give back is on their queue.
fn operations() -> Outcome {
    use ark_bls12_381::{Fr, g1::Config};
    use evariste_curve::{AffinePoint, Points};
    use evariste_field::{Expression, FieldSum, Mont, Prefix, Vector};
    use evariste_primitives::{Histogram, RadixSort, Scan, SegmentedSum, SortMethod};

    on_plans(|ordered, made_on, queue| {
        let device = queue.device();
        let vector = Vector::<Fr>::new(made_on).on(queue);
        let len = 5000;
        let (mut a, mut out) = (device.alloc::<Mont<Fr>>(len)?, device.alloc::<Mont<Fr>>(len)?);
        queue.write(&mut a, &vec![Fr::from(3); len])?;
        let z = Fr::from(7);
        vector.scale(&a, z, &mut out)?;
        vector.pow_assign(&mut out, [5])?;
        vector.powers(z, z, &mut out)?;
        vector.inverse(&a, &mut out)?;
        vector.prefix_sum_assign(&mut out, Prefix::Exclusive)?;
        vector.divide_by_linear(&a, z, &mut out)?;
        vector.divide_by_linear(a.view(..0)?, z, out.view_mut(..0)?)?;
        vector.evaluate(&a, z)?;
        vector.inner_product(&a, &out)?;
        vector.transpose(&a, 50, &mut out)?;
        let places = queue.upload_with::<u32>(&vec![9; len], Secrecy::Public)?;
        vector.gather(&a, &places, &mut out)?;
        vector.scatter(&a, &places, &mut out)?;
        let wide: Expression = (0..41).map(|i| Expression::column(i) * i64::from(i + 1)).sum();
        vector.evaluate_expression(&wide, &[&a; 41], &[], &mut out)?;
        vector.sum_expression(&wide, &[&a; 41], &[])?;
        expect_ordered(ordered, "vectors")?;

        let (mut keys, mut values) = (device.alloc::<u32>(len)?, device.alloc::<u32>(len)?);
        queue.write(&mut keys, &vec![9; len])?;
        Scan::new(made_on)?.on(queue).exclusive(&keys, &mut values)?;
        Histogram::new(made_on)?.on(queue).count(&keys, 0..4, values.view_mut(..16)?)?;
        Histogram::new(made_on)?.on(queue).count(keys.view(..0)?, 0..4, values.view_mut(..16)?)?;
        for method in [SortMethod::Sweep, SortMethod::Scatter] {
            RadixSort::with_method(made_on, method)?.on(queue).sort(&mut keys, values.view_mut(..)?, 0..4)?;
        }
        SegmentedSum::<FieldSum<Fr>>::new(made_on)?.on(queue).reduce(&keys, &a, &mut out)?;
        expect_ordered(ordered, "primitives")?;

        let points = Points::<Config>::new(made_on).on(queue);
        let (mut affine, mut sums) = (device.alloc::<AffinePoint<Config>>(20)?, device.alloc(20)?);
        queue.clear(&mut affine)?;
        points.mul(&affine, keys.view(..20)?, &mut sums)?;
        points.normalise_xyzz(&sums, &mut affine)?;
        expect_ordered(ordered, "points")
    })
}

fn transforms() -> Outcome {
    use ark_bls12_381::Fr;
    use ark_ff::FftField;
    use evariste_field::Mont;
    use evariste_ntt::{Config, Ntt, Order, Split, Twiddles};

    let x: Vec<Fr> = (0..1 << 9).map(Fr::from).collect();
    let cases = [false, true].into_iter().flat_map(|inverse| [false, true].map(|coset| (inverse, coset)));
    for (twiddles, split) in Twiddles::ALL.into_iter().flat_map(|twiddles| Split::ALL.map(|split| (twiddles, split))) {
        for (inverse, coset) in cases.clone() {
            on_plans(|ordered, made_on, queue| {
                let ntt = Ntt::<Fr>::with_config(made_on, 9, Config { twiddles: Some(twiddles), split })?;
                let mut data = queue.device().alloc::<Mont<Fr>>(x.len())?;
                queue.write(&mut data, &x)?;
                let generator = if coset { Fr::GENERATOR } else { Fr::from(1) };
                let transform = ntt.coset(generator).output(Order::BitReversed).on(queue);
                if inverse {
                    transform.inverse(&mut data)?
                } else {
                    transform.forward(&mut data)?
                };
                queue.read(&data)?;
                expect_ordered(ordered, &format!("{twiddles:?}, {split:?}, inverse: {inverse}, coset: {coset}"))
            })?;
        }
    }
    Ok(())
}

/// Every step of a sum: tables of multiples, affine additions, both ways of adding to buckets, and scalars that come from the
/// host in pieces while the device works.
fn sums_of_points() -> Outcome {
    use ark_bls12_381::{Fr, G1Affine, g1::Config};
    use ark_ec::AffineRepr;
    use evariste_field::Mont;
    use evariste_msm::{Accumulation, Addition, Aggregation, Msm, MsmConfig, Precompute, Tuning};

    let bases = [G1Affine::generator(); 40];
    let scalars: Vec<Fr> = (1..41).map(Fr::from).collect();
    let tuning = Tuning { levels: Some(1), ..Tuning::default() };
    let (aggregation, addition) = (Aggregation::RunningSums, Addition::Double);
    let whole = Tuning { accumulation: Accumulation::WholeBuckets, aggregation, ..Tuning::default() };
    let per_bucket = Tuning { accumulation: Accumulation::PerBucket, addition, ..Tuning::default() };
    let plain = MsmConfig { window: Some(4), tuning, ..MsmConfig::default() };
    let memory = Msm::<Config>::new(&Device::cpu(), &[], plain)?.required_bytes(10, 1)?;
    for config in [
        plain,
        MsmConfig { precompute: Precompute::Tables { budget: u64::MAX }, ..plain },
        MsmConfig { precompute: Precompute::OddDigits { depth: 1 }, tuning: per_bucket, ..plain },
        MsmConfig { precompute: Precompute::Doublings { depth: 1 }, tuning: whole, ..plain },
        MsmConfig { precompute: Precompute::Doublings { depth: 1 }, tuning: Tuning::default(), ..plain },
        MsmConfig { memory: Some(memory), ..plain },
    ] {
        on_plans(|ordered, made_on, queue| {
            let msm = Msm::<Config>::new(made_on, &bases, config)?.on(queue);
            let mut buffer = queue.device().alloc::<Mont<Fr>>(scalars.len())?;
            queue.write(&mut buffer, &scalars)?;
            let sums = [msm.msm(&scalars)?, msm.msm(&buffer)?, msm.msm_profiled(buffer.view(1..)?)?.0];
            expect_ordered(ordered, &format!("{config:?}"))?;
            let expected = [820, 820, 819].map(|factor| bases[0] * Fr::from(factor));
            crate::expect_same("sums", &sums, &expected)
        })?;
    }
    Ok(())
}

/// Proofs with challenges drawn on the device and on the host, about tables that stay, that do not, and that share a buffer.
fn sumchecks() -> Outcome {
    use ark_bls12_381::Fr;
    use evariste_field::{Expression, Mont};
    use evariste_sumcheck::{
        Blake3Transcript, Config, Draw, Order, Statement, Strategy, Sumcheck, Tables, Weight, reference,
    };

    const VARIABLES: usize = 4;
    const LEN: usize = 1 << VARIABLES;
    let few = Expression::column(0) * Expression::column(1);
    let many: Expression = (0..40).map(|i| Expression::column(i) * Expression::column(i + 1)).sum();
    let cases = [
        (&few, Strategy::ZeroCheck, Draw::Device),
        (&few, Strategy::ZeroCheck, Draw::Host),
        (&few, Strategy::Textbook, Draw::Host),
        (&many, Strategy::SplitEq, Draw::Host),
    ];
    for (expression, strategy, draw) in cases {
        on_plans(|ordered, made_on, queue| {
            let plan = Sumcheck::<Fr>::new(made_on, expression, Config { strategy, draw, check: true })?.on(queue);
            let host: Vec<Fr> = (0..LEN as u64).map(Fr::from).collect();
            // The second half of a buffer.
            let mut buffer = queue.device().alloc::<Mont<Fr>>(2 * LEN)?;
            queue.write(buffer.view_mut(LEN..)?, &host)?;
            let table = buffer.view(LEN..)?;
            let operations = Tables::<Fr>::new(made_on).on(queue);
            operations.eq(&host[..VARIABLES])?;
            operations.fold(table, host[3], Order::MsbFirst)?;
            let (tables, given) = (vec![host.clone(); expression.columns()], vec![table; expression.columns()]);
            for order in [Order::MsbFirst, Order::LsbFirst] {
                let point = host[5..][..VARIABLES].to_vec();
                let statement = Statement::<Fr>::new(VARIABLES, expression)?.order(order).weight(Weight::Eq(point));
                let claim = plan.sum(&statement, &given)?;
                let transcript = || Blake3Transcript::new(b"ordered");
                let (expected, _) = reference::prove(&statement, VARIABLES, &tables, claim, &mut transcript());
                let proved = plan.prove(&statement, &given, claim, &mut transcript())?;
                crate::expect_same("a proof", &proved.proof.to_bytes(), &expected.to_bytes())?;
                plan.prove_rounds(&statement, 2, &given, claim, &mut transcript())?;
                let owned = given.iter().map(|table| queue.duplicate(table)).collect::<Result<_>>()?;
                plan.prove_consuming(&statement, owned, claim, &mut transcript())?;
                if expression.columns() == 2 {
                    let slices: Vec<&[Fr]> = tables.iter().map(Vec::as_slice).collect();
                    plan.prove_from_host(&statement, &slices, 1 << 14, Secrecy::Public, claim, &mut transcript())?;
                }
            }
            expect_ordered(ordered, &format!("{strategy:?}, {draw:?}"))
        })?;
    }
    Ok(())
}

/// Plans whose tables, primes and programs are uploaded when they are made, on a queue that did not see that.
fn square_roots() -> Outcome {
    use ark_bls12_381::{Fr, g1};
    use evariste_field::Mont;
    use evariste_sqrt::{Check, Decompress, Encoding, Jacobi, MapToCurve, ModSqrt, NthRoot, Sqrt, modular::BoxedUint};

    on_plans(|ordered, made_on, queue| {
        let device = queue.device();
        let (mut roots, mut mask) = (device.alloc::<Mont<Fr>>(5)?, device.alloc::<u32>(5)?);
        let mut squares = device.alloc::<Mont<Fr>>(5)?;
        queue.write(&mut squares, &[Fr::from(4); 5])?;
        Sqrt::<Fr>::new(made_on)?.on(queue).sqrt(&squares, &mut roots, &mut mask)?;
        expect_ordered(ordered, "roots")?;
        NthRoot::<Fr>::new(made_on, 3)?.on(queue).roots(&squares, &mut roots, &mut mask)?;
        expect_ordered(ordered, "cube roots")?;

        let mut bytes = device.alloc::<u8>(5 * 48)?;
        queue.clear(&mut bytes)?;
        let mut points = device.alloc(5)?;
        let decompress = Decompress::<g1::Config>::new(made_on, Encoding::Zcash, Check::Subgroup)?;
        decompress.on(queue).decompress(&bytes, &mut points, &mut mask)?;
        expect_ordered(ordered, "points from their encodings")?;

        let mut elements = device.alloc(5)?;
        queue.clear(&mut elements)?;
        let mut mapped = device.alloc(5)?;
        MapToCurve::<g1::Config>::new(made_on)?.on(queue).map(&elements, &mut mapped)?;
        expect_ordered(ordered, "elements mapped to a curve")?;

        let (mut values, mut found) = (device.alloc::<u32>(10)?, device.alloc::<u32>(10)?);
        queue.clear(&mut values)?;
        let plan = ModSqrt::new(made_on, &BoxedUint::from(59u64.wrapping_neg()))?.on(queue);
        plan.sqrt(&values, &mut found, &mut mask)?;
        expect_ordered(ordered, "roots modulo a prime that is known at run time")?;
        Jacobi::new(made_on, &BoxedUint::from(15u32))?.on(queue).symbols(&values, &mut mask)?;
        expect_ordered(ordered, "symbols for a modulus that is known at run time")
    })
}

fn pipelines() -> Outcome {
    use ark_bls12_381::Fr;
    use ark_ff::FftField;
    use evariste_backend::Element;
    use evariste_field::Mont;
    use evariste_ntt::{Config, LowDegreeExtension, Ntt, Order, Pipeline, Split};

    let bytes = Mont::<Fr>::BYTES << 9;
    for inverse in [false, true] {
        let ordered = Ordered::new();
        let device = ordered.device();
        let ntt = Ntt::<Fr>::new(&device, 9)?;
        let mut pipeline = Pipeline::new(ntt.coset(Fr::GENERATOR), 1, Secrecy::Public)?;
        for _ in 0..5 {
            let mut host = device.host_buffer(bytes, Transfer::Both, Secrecy::Public)?;
            host.fill(0);
            if inverse {
                pipeline.inverse(host)?
            } else {
                pipeline.forward(host)?
            };
        }
        while pipeline.next()?.is_some() {}
        expect_ordered(&ordered, "a pipeline")?;

        // In blocks of columns, whose rows are of 64 KiB at least.
        let ordered = Ordered::new();
        let device = ordered.device();
        let ntt = Ntt::<Fr>::with_config(&device, 17, Config { split: Split::ThreeWay, ..Config::default() })?;
        let mut host = device.host_buffer(Mont::<Fr>::BYTES << 17, Transfer::Both, Secrecy::Public)?;
        host.fill(0);
        let queue = device.queue()?;
        let transform = ntt.transform().on(&queue);
        let run = |host| match inverse {
            true => transform.inverse_pinned(host, Secrecy::Public),
            false => transform.forward_pinned(host, Secrecy::Public),
        };
        let host = run(host)?;
        expect_ordered(&ordered, "a transform of pinned memory")?;
        // Tables were made by now.
        let before = device.stats().launches;
        run(host)?;
        let (launches, passes) = (device.stats().launches - before, ntt.passes_per_transform() as u64);
        crate::expect(&format!("{launches} launches of {passes} passes"), launches > passes)?;
    }
    on_plans(|ordered, made_on, queue| {
        let device = queue.device();
        let (mut a, mut b) = (device.alloc::<Mont<Fr>>(300)?, device.alloc::<Mont<Fr>>(128)?);
        queue.clear(&mut a)?;
        queue.clear(&mut b)?;
        Ntt::<Fr>::new(made_on, 9)?.on(queue).product(&a, b.view(3..)?)?;
        let extension = LowDegreeExtension::<Fr>::new(made_on, 6, 1)?.on(queue);
        extension.extend(&b, Fr::GENERATOR, Order::Natural)?;
        expect_ordered(ordered, "products and extensions")
    })?;

    let ordered = Ordered::new();
    let mut x: Vec<Fr> = (0..1 << 9).map(Fr::from).collect();
    evariste_ntt::forward_out_of_core(&ordered.device(), &mut x, 1 << 16)?;
    expect_ordered(&ordered, "a transform out of core")
}

fn counter_mode() -> Outcome {
    use evariste_aes::{Aes, Config};

    let ordered = Ordered::new();
    let device = ordered.device();
    let config = Config { chunk_bytes: 1 << 12, crossover: Some(0), ..Config::default() };
    let aes = Aes::with_config(&device, &[[7; 16]], config)?;
    let mut data = vec![0; 1 << 16];
    let mut ctr = aes.ctr(&[1; 16])?;
    ctr.apply(&mut data)?;
    expect_ordered(&ordered, "counter mode in pieces")
}

fn modes() -> Outcome {
    use evariste_aes::Aes;

    on_plans(|ordered, made_on, queue| {
        let aes = Aes::new(made_on, &[7; 16])?.on(queue);
        let mut data = queue.upload::<u8>(&[1; 1000])?;
        aes.ctr(&[1; 16])?.apply_buffer(&mut data)?;
        aes.ecb().encrypt_buffer(data.view_mut(..960)?)?;
        aes.cbc().encrypt_buffer(&[1; 16], data.view_mut(..960)?)?;
        aes.gcm()?.seal_buffer(&[1; 12], b"", &mut data)?;
        expect_ordered(ordered, "modes on buffers")
    })
}
