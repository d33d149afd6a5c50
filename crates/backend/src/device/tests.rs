//! Devices, and backends of one's own that go wrong.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::{
    ByteCheck, Element,
    buffer::Buffer,
    byte_pipeline::BytePipeline,
    cpu,
    device::dispatch::Dispatch,
    handles::{Executable, QueueHandle},
    host::Pending,
    info::DeviceId,
    pinned_pipeline::PinnedPipeline,
    prefetch::Prefetch,
    queue::Queue,
    span::{Span, SpanMut},
    spec::KernelSpec,
};

/// A backend that gives less memory than was asked for, or more. It fails with an error while it holds more than some
/// number of bytes.
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
    /// What it tells of itself.
    info: DeviceInfo,
    /// Kernels that it says it has compiled when it is asked for the first time, and none from then on.
    compiled: AtomicU64,
}

impl Skewed {
    fn new(below: &Device) -> Self {
        let (below, info, compiled) = (below.clone(), below.info().clone(), AtomicU64::new(0));
        Self { below, memory: 0, host: 0, back: 0, events: 0, limit: None, info, compiled }
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
        &self.info
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
            BytePipeline::new(device, 32, 2, Secrecy::Public)
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
        refused("a ring", BytePipeline::new(device, 32, 2, Secrecy::Public).unwrap().run_pinned(&mut ring, work).err());
        let mut stream = PinnedPipeline::<u8>::new(device, 64, Secrecy::Public).unwrap();
        let run = stream.run(vec![given(64)], |_, _| Ok::<_, Error>(0..64)).and_then(|_| stream.next());
        refused("a stream", run.err());
        let mut uploads = Prefetch::<u8>::new(device, 64, 1, Secrecy::Public).unwrap();
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

/// A device whose memory others reach through pieces of host memory only.
fn with_staging(bytes: u64) -> Device {
    let mut skewed = Skewed::new(&Device::another_cpu());
    skewed.info.limits.staging_bytes = bytes;
    skewed.device()
}

/// Words whose first byte is even.
struct Even;

impl Element for Even {
    type Host = u8;

    const BYTES: usize = 4;

    fn encode(src: &[u8], dst: &mut [u8]) {
        src.iter().zip(dst.chunks_exact_mut(4)).for_each(|(x, bytes)| bytes.fill(*x));
    }

    fn decode(src: &[u8], dst: &mut [u8]) -> Result<()> {
        for (index, (x, bytes)) in dst.iter_mut().zip(src.chunks_exact(4)).enumerate() {
            if bytes[0] % 2 == 1 {
                return Err(Error::Undecodable { index: index as u64 });
            }
            *x = bytes[0];
        }
        Ok(())
    }
}

/// In pieces of five words each, with an error in the third.
#[test]
fn bytes_are_uploaded_and_checked_in_pieces() {
    let device = with_staging(20);
    let mut bytes: Vec<u8> = (0..23u8).flat_map(|i| [2 * i; 4]).collect();
    let secret = device.default_queue().upload_bytes::<Even>(&bytes, ByteCheck::Elements, Secrecy::Secret).unwrap();
    assert_eq!((secret.to_vec().unwrap(), secret.secrecy()), ((0..23).map(|i| 2 * i).collect(), Secrecy::Secret));
    bytes[4 * 13] = 1;
    let refused = device.upload_bytes::<Even>(&bytes, ByteCheck::Elements).unwrap_err();
    assert_eq!(refused, Error::Undecodable { index: 13 });
    let unchecked = device.upload_bytes::<Even>(&bytes, ByteCheck::None).unwrap();
    assert_eq!(unchecked.view(14..).unwrap().to_vec().unwrap(), (14..23).map(|i| 2 * i).collect::<Vec<u8>>());
}

/// Directly, and through host memory in one piece and in several.
#[test]
fn elements_come_from_other_devices() {
    let (cpu, far) = (Device::cpu(), Device::another_cpu());
    for other in [far.clone(), with_staging(8), with_staging(1 << 20)] {
        let host: Vec<u8> = (0..=100).collect();
        let x = other.upload_with::<u8>(&host, Secrecy::Secret).unwrap();
        let mut y = cpu.upload_with::<u8>(&[0; 101], Secrecy::Secret).unwrap();
        y.view_mut(4..).unwrap().copy_from(x.view(4..).unwrap()).unwrap();
        assert_eq!(y.to_vec().unwrap(), [&[0; 4], &host[4..]].concat());
        let mut back = other.alloc_with::<u8>(101, Secrecy::Secret).unwrap();
        other.default_queue().receive(&y, &mut back).unwrap();
        assert_eq!(back.to_vec().unwrap(), y.to_vec().unwrap());
        let refused = y.view_mut(..8).unwrap().copy_from(x.view(1..9).unwrap()).unwrap_err();
        assert!(matches!(refused, Error::Unaligned { what: "copy", offset: 1, .. }), "{refused}");
        let refused = y.view_mut(1..9).unwrap().copy_from(x.view(..8).unwrap()).unwrap_err();
        assert!(matches!(refused, Error::Unaligned { what: "copy", offset: 1, .. }), "{refused}");
        let refused = y.copy_from(x.view(4..).unwrap()).unwrap_err();
        assert_eq!(refused, Error::Length { what: "the source of a copy", expected: 101, actual: 97 });
        let refused = cpu.zeros::<u8>(101).unwrap().copy_from(&x).unwrap_err();
        assert!(matches!(refused, Error::SecretInput { operation: "copy", .. }), "{refused}");
        let refused = cpu.default_queue().receive(&y, &mut back).unwrap_err();
        assert!(matches!(refused, Error::WrongDevice { what: "the target of a copy", .. }), "{refused}");
        assert_eq!(y.to_vec().unwrap(), [&[0; 4], &host[4..]].concat());
        y.view_mut(..0).unwrap().copy_from(x.view(..0).unwrap()).unwrap();
    }
}

/// Of matrices on one device, on two of a kind, and on two that talk through host memory.
#[test]
fn columns_come_from_other_devices() {
    let (cpu, far) = (Device::cpu(), Device::another_cpu());
    for other in [cpu.clone(), far, with_staging(8)] {
        let host: Vec<u32> = (100..160).collect();
        let x = other.upload::<u32>(&host).unwrap();
        for (rows, columns) in [(1, 0..60), (1, 7..9), (4, 2..7), (60, 0..1), (12, 5..5), (6, 0..10)] {
            let mut y = cpu.zeros::<u32>(60).unwrap();
            cpu.default_queue().receive_columns(&x, &mut y, rows, columns.clone()).unwrap();
            let expected = host.iter().enumerate().map(|(i, word)| match columns.contains(&(i % (60 / rows))) {
                true => *word,
                false => 0,
            });
            assert_eq!(y.to_vec().unwrap(), expected.collect::<Vec<_>>(), "{rows} rows, {columns:?}");
        }
        let mut y = cpu.upload::<u32>(&[5; 60]).unwrap();
        let refused =
            |rows, columns, y: &mut Buffer<u32>| cpu.default_queue().receive_columns(&x, y, rows, columns).unwrap_err();
        let what = "a matrix of whole rows";
        assert_eq!(refused(7, 0..2, &mut y), Error::Length { what, expected: 63, actual: 60 });
        let what = "columns of a row";
        assert_eq!(refused(4, 3..16, &mut y), Error::OutOfRange { what, offset: 3, count: 13, len: 15 });
        #[expect(clippy::reversed_empty_ranges, reason = "the caller's mistake")]
        let reversed = 4..3;
        assert_eq!(refused(4, reversed, &mut y), Error::OutOfRange { what, offset: 4, count: 0, len: 15 });
        assert_eq!(y.to_vec().unwrap(), [5; 60]);
        let (bytes, mut target) = (other.upload::<u8>(&[1; 32]).unwrap(), cpu.zeros::<u8>(32).unwrap());
        let refused = cpu.default_queue().receive_columns(&bytes, &mut target, 4, 2..6).unwrap_err();
        assert!(matches!(refused, Error::Unaligned { offset: 2, count: 4, .. }), "{refused}");
        // One row is no exception, other than at the end of its buffer.
        let refused = cpu.default_queue().receive_columns(&bytes, &mut target, 1, 2..6).unwrap_err();
        assert!(matches!(refused, Error::Unaligned { offset: 2, count: 4, .. }), "{refused}");
        assert_eq!(target.to_vec().unwrap(), [0; 32]);
        let (bytes, mut target) = (other.upload::<u8>(&[1; 7]).unwrap(), cpu.zeros::<u8>(7).unwrap());
        cpu.default_queue().receive_columns(&bytes, &mut target, 1, 4..7).unwrap();
        assert_eq!(target.to_vec().unwrap(), [0, 0, 0, 0, 1, 1, 1]);
    }
}
