//! What is left behind when a device fails, and when a queue is not its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use evariste_aes::{Aes, AesConfig, Counter, Error, Gcm, Message, Xts};
use evariste_backend::{
    Buffer, Device, DeviceInfo, Error as DeviceError, Event, HostBuffer, Limits, Pending, Queue, Result, Secrecy,
    Stats, Transfer,
    author::{Backend, CpuArg, Dispatch, Executable, KernelSpec, Memory, QueueHandle, Span, SpanMut},
};

/// The CPU with the limits of a GPU, so that bytes that start within a word are moved, and a launch that fails.
#[derive(Debug)]
struct Failing {
    cpu: Device,
    info: DeviceInfo,
    /// Launches before the one that fails.
    before: Arc<AtomicU64>,
}

impl Failing {
    fn below(&self) -> &dyn Backend {
        self.cpu.backend()
    }
}

impl Backend for Failing {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn stats(&self) -> Stats {
        self.below().stats()
    }

    fn alloc(&self, bytes: u64, secrecy: Secrecy) -> Result<Memory> {
        self.below().alloc(bytes, secrecy)
    }

    fn host_buffer(&self, bytes: usize, transfer: Transfer, secrecy: Secrecy) -> Result<HostBuffer> {
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
        if self.before.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(DeviceError::Driver { device: self.info.id, call: "launch", reason: "made to fail".into() });
        }
        if job.spec.name != "move_bytes" {
            // SAFETY: as the caller vouches.
            return unsafe { self.below().dispatch(queue, job) };
        }
        // The CPU is given the bytes themselves, and never moves them: those of a fresh copy come behind others.
        let body = |(): &(), [src, dst]: &mut [CpuArg<'_>; 2]| {
            let (src, dst) = (src.read::<u8>(), dst.write::<u8>());
            let around = dst.len() - src.len();
            dst[around..].copy_from_slice(src);
        };
        let bindings = [job.spec.bindings[0], job.spec.bindings[1]];
        let spec = KernelSpec::new("move_bytes", "", bindings, body, |_| String::new());
        let executable = self.compile(&spec)?;
        let moved = Dispatch { executable: &executable, spec: &spec, params: &[], args: job.args, groups: 1 };
        // SAFETY: bytes are copied within slices.
        unsafe { self.below().dispatch(queue, moved) }
    }

    fn sync(&self) -> Result<()> {
        self.below().sync()
    }

    fn trim(&self) {
        self.below().trim();
    }
}

#[test]
fn ctr_takes_back_what_it_did_before_a_failure_in_copies_too() {
    let (cpu, before) = (Device::cpu(), Arc::new(AtomicU64::new(u64::MAX)));
    let mut info = cpu.info().clone();
    info.limits = Limits { bindings: 16, workgroup_bytes: 227 << 10, workgroup_threads: 1024, ..info.limits };
    let device = Device::unregistered(Arc::new(Failing { cpu, info, before: Arc::clone(&before) }));
    let config = AesConfig::default().launch_bytes(0).cpu_threshold(0);
    let aes = Aes::with_keys(&device, &[[1; 16]], config).unwrap();
    for offset in [0, 1] {
        let plain: Vec<u8> = (0..offset + 3 * 128 + 40).map(|i| (i * 7 + i / 256) as u8).collect();
        let (mut data, mut ctr) = (device.upload::<u8>(&plain).unwrap(), aes.ctr(&[2; 16]).unwrap());
        let mut failed = 0;
        // Until no launch is left to fail.
        loop {
            before.store(failed, Ordering::Relaxed);
            let outcome = ctr.apply(data.view_mut(offset..).unwrap());
            before.store(u64::MAX, Ordering::Relaxed);
            if outcome.is_ok() {
                break;
            }
            assert_eq!((ctr.position(), data.to_vec().unwrap()), (0, plain.clone()), "launch {failed} from {offset}");
            failed += 1;
        }
        assert!(failed >= if offset == 0 { 4 } else { 12 }, "{failed} launches from {offset}");
        ctr.seek(0).unwrap();
        ctr.apply(data.view_mut(offset..).unwrap()).unwrap();
        assert_eq!(data.to_vec().unwrap(), plain, "the stream twice, from {offset}");
    }
}

#[test]
fn queues_of_others_are_refused_before_anything_is_written() {
    let (device, foreign, plain) = (Device::cpu(), QueueHandle::new(7_u32), [5_u8; 96]);
    let foreign = Queue::from_handle(&device, foreign);
    let aes = Aes::new(&device, &[1; 16]).unwrap().on(&foreign);
    let gcm = Gcm::new(&device, &[1; 16]).unwrap().on(&foreign);
    let two_keys: Vec<u8> = (0..32).collect();
    let xts = Xts::new(&device, &two_keys, 32).unwrap().on(&foreign);
    let messages = [Message { offset: 0, len: 33, key: 0, iv: [0; 16] }];
    type Call<'a> = &'a dyn Fn(&mut Buffer<u8>) -> Result<(), Error>;
    let calls: [(&str, Call<'_>); 6] = [
        ("CTR", &|data| aes.ctr(&[1; 16])?.apply(data)),
        ("sealing", &|data| gcm.seal(&[1; 12], b"", data).map(drop)),
        ("opening", &|data| gcm.open(&[1; 12], b"", data, &[0; 16])),
        ("XTS", &|data| xts.encrypt(1, data)),
        ("CBC", &|data| aes.cbc().encrypt(&[1; 16], data)),
        ("a batch in CTR", &|data| aes.ctr_batch(data, &messages, Counter::Bits128)),
    ];
    for (what, call) in calls {
        let mut data = device.upload::<u8>(&plain).unwrap();
        let error = call(&mut data).unwrap_err();
        assert!(matches!(error, Error::Device(DeviceError::Driver { call: "queue", .. })), "{what}: {error}");
        assert_eq!(data.to_vec().unwrap(), plain, "{what}");
    }
}

/// Keys, plaintexts and descriptors stay on the device that the keys are on.
#[test]
fn queues_of_other_devices_are_refused_before_anything_is_uploaded() {
    let (cpu, before) = (Device::cpu(), Arc::new(AtomicU64::new(u64::MAX)));
    let mut info = cpu.info().clone();
    info.limits = Limits { bindings: 16, workgroup_bytes: 227 << 10, workgroup_threads: 1024, ..info.limits };
    let device = Device::unregistered(Arc::new(Failing { cpu: cpu.clone(), info, before }));
    let other = cpu.default_queue();
    let config = AesConfig::default().cpu_threshold(0);
    let own = Aes::with_config(&device, &[1; 16], config.clone()).unwrap();
    let (aes, gcm) = (own.on(&other), own.gcm().unwrap().on(&other));
    let xts = Xts::with_config(&device, &(0..32).collect::<Vec<u8>>(), 33, config).unwrap().on(&other);
    let messages = [Message { offset: 0, len: 33, key: 0, iv: [0; 16] }];
    let mut data = device.upload::<u8>(&[5; 96]).unwrap();
    let refused = [
        aes.gcm().map(drop),
        xts.encrypt_host(1, &mut [5; 66]),
        aes.ctr_batch(&mut data, &messages, Counter::Bits128),
        aes.cbc_decrypt_batch(&mut data, &[Message { len: 32, ..messages[0] }]),
        aes.ctr(&[1; 16]).unwrap().apply(&mut data),
        aes.cbc().encrypt(&[1; 16], &mut data),
        aes.cbc().decrypt(&[1; 16], &mut data),
        gcm.seal(&[1; 12], b"", &mut data).map(drop),
        gcm.open(&[1; 12], b"", &mut data, &[0; 16]),
        xts.encrypt(1, &mut data),
        xts.decrypt(1, &mut data),
    ];
    for (call, outcome) in refused.into_iter().enumerate() {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Device(DeviceError::WrongDevice { .. })), "call {call}: {error}");
    }
    assert_eq!(data.to_vec().unwrap(), [5; 96]);
}
