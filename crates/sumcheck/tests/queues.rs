//! Queues of other devices.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ark_bls12_381::Fr;
use evariste_backend::{
    Device, DeviceInfo, Error as DeviceError, Event, HostBuffer, Pending, Result, Secrecy, Stats, Transfer,
    author::{Backend, Dispatch, Executable, KernelSpec, Memory, QueueHandle, Span, SpanMut},
};
use evariste_field::{Expression, Mont};
use evariste_sumcheck::{Blake3Transcript, Error, Mle, Order, Statement, Sumcheck, Weight};

/// A second CPU, which counts its allocations.
#[derive(Debug)]
struct Counting {
    cpu: Device,
    allocations: Arc<AtomicUsize>,
}

impl Counting {
    fn below(&self) -> &dyn Backend {
        self.cpu.backend()
    }
}

impl Backend for Counting {
    fn info(&self) -> &DeviceInfo {
        self.below().info()
    }

    fn stats(&self) -> Stats {
        self.below().stats()
    }

    fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory> {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        self.below().alloc(bytes, secrecy)
    }

    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        self.below().host_buffer(bytes, transfer, secrecy)
    }

    fn default_queue(&self) -> &QueueHandle {
        self.below().default_queue()
    }

    fn queue(&self) -> Result<QueueHandle> {
        self.below().queue()
    }

    fn write(&self, queue: &QueueHandle, dst: SpanMut<'_>, src: HostBuffer) -> Result<Pending> {
        self.below().write(queue, dst, src)
    }

    fn read(&self, queue: &QueueHandle, src: Span<'_>, dst: HostBuffer) -> Result<Pending> {
        self.below().read(queue, src, dst)
    }

    fn copy(&self, queue: &QueueHandle, src: Span<'_>, dst: SpanMut<'_>) -> Result<()> {
        self.below().copy(queue, src, dst)
    }

    fn clear(&self, queue: &QueueHandle, dst: SpanMut<'_>) -> Result<()> {
        self.below().clear(queue, dst)
    }

    fn record(&self, queue: &QueueHandle) -> Result<Event> {
        self.below().record(queue)
    }

    fn wait_for(&self, queue: &QueueHandle, event: &Event) -> Result<()> {
        self.below().wait_for(queue, event)
    }

    fn elapsed(&self, from: &Event, to: &Event) -> Result<Duration> {
        self.below().elapsed(from, to)
    }

    fn compile(&self, spec: &KernelSpec) -> Result<Executable> {
        self.below().compile(spec)
    }

    unsafe fn dispatch(&self, queue: &QueueHandle, job: Dispatch<'_, '_>) -> Result<()> {
        // SAFETY: as the caller vouches.
        unsafe { self.below().dispatch(queue, job) }
    }

    fn sync(&self) -> Result<()> {
        self.below().sync()
    }

    fn trim(&self) {
        self.below().trim();
    }
}

/// Tables, constants, points and challenges stay on the device of the prover.
#[test]
fn queues_of_other_devices_are_refused_before_anything_is_uploaded() {
    let (device, allocations) = (Device::cpu(), Arc::new(AtomicUsize::new(0)));
    let other = Device::unregistered(Arc::new(Counting { cpu: device.clone(), allocations: Arc::clone(&allocations) }));
    let queue = other.default_queue();

    let square = Expression::column(0) * Expression::column(0) * Expression::constant(0);
    let values: Vec<Fr> = (0..16u64).map(Fr::from).collect();
    let point = vec![Fr::from(3); 4];
    let statement =
        Statement::<Fr>::new(4, &square).unwrap().constants(&[Fr::from(5)]).weight(Weight::Eq(point.clone()));
    let table = device.upload::<Mont<Fr>>(&values).unwrap();
    let (prover, mle) = (Sumcheck::<Fr>::new(&device, &square).unwrap(), Mle::<Fr>::new(&device));
    let claim = prover.sum(&statement, &[&table]).unwrap();
    let (prover, mle, fresh) = (prover.on(&queue), mle.on(&queue), || Blake3Transcript::new(b"queues"));
    let mut transcript = fresh();
    let refused: [(&str, Option<Error>); 8] = [
        ("a proof", prover.prove(&statement, &[&table], claim, &mut transcript).err()),
        ("first rounds", prover.prove_rounds(&statement, 2, &[&table], claim, &mut transcript).err()),
        ("a proof that consumes", {
            let owned = device.upload::<Mont<Fr>>(&values).unwrap();
            prover.prove_consuming(&statement, vec![owned], claim, &mut transcript).err()
        }),
        ("a proof from the host", {
            prover.prove_host(&statement, &[&values], u64::MAX, Secrecy::Public, claim, &mut transcript).err()
        }),
        ("a proof in pieces", {
            prover.prove_host(&statement, &[&values], 0, Secrecy::Public, claim, &mut transcript).err()
        }),
        ("a sum", prover.sum(&statement, &[&table]).err()),
        ("eq", mle.eq(&point).err()),
        ("a binding", mle.bind(&table, Fr::from(7), Order::MsbFirst).err()),
    ];
    for (call, error) in refused {
        assert!(matches!(error, Some(Error::Device(DeviceError::WrongDevice { .. }))), "{call}: {error:?}");
    }
    assert_eq!(allocations.load(Ordering::Relaxed), 0);
    // The transcript has not moved either.
    assert_eq!(transcript.state(), fresh().state());
}
