//! What this backend does with a driver that fails, on the double in [`super::double`]: no GPU is needed.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cudarc::driver::sys::CUresult;

use super::{
    Cuda, compiler,
    double::{self, Failure},
    driver::Context,
    kernels::Compiler,
};
use crate::{
    bindings::{Binding, BindingType},
    buffer::Buffer,
    cache::Cache,
    compilations::Origin,
    device::Device,
    device::dispatch::{Arg, Lent},
    error::{Error, Result},
    host::{HostBuffer, Pending},
    info::{DeviceId, Kind, Transfer},
    kernel::Kernel,
    params,
    queue::Queue,
    secrecy::Secrecy,
    span::SpanMut,
    spec::KernelSpec,
};

mod pipelines;
mod transfers;

static COMPILER: Compiler = Compiler {
    version: || Ok((12, 9)),
    compile: |spec, _, architecture| match double::compile() {
        true => Ok((architecture.to_owned(), compiler::Compiled { code: vec![1], log: String::new(), usage: None })),
        false => {
            Err(Error::Compile { kernel: spec.name.into(), device: architecture.into(), log: "made to fail".into() })
        }
    },
};

pub(super) fn open(index: usize) -> Result<Device> {
    let context = Context::retain_of(&double::FUNCTIONS, index)?;
    Ok(Device::unregistered(Arc::new(Cuda::of(context, Cache::at(None), &COMPILER)?)))
}

params! {
    pub(super) struct Fill {
        pub(super) word: u32,
    }
}

pub(super) fn fill(device: &Device) -> Result<Kernel<Fill>> {
    fill_by(device, "")
}

fn fill_by(device: &Device, source: &'static str) -> Result<Kernel<Fill>> {
    let bindings = vec![Binding::write("x", BindingType::U32)];
    let spec = KernelSpec::new::<Fill, _>("fill", source, bindings, |_, _| {}, |_| source.to_owned());
    Kernel::new(device, spec.threads(64))
}

#[test]
fn a_name_and_a_variant_have_one_text() {
    let device = open(0).unwrap();
    let make = |source: &'static str| {
        let bindings = vec![Binding::write("x", BindingType::U32)];
        Kernel::<Fill>::new(
            &device,
            KernelSpec::new::<Fill, _>("fill", "one", bindings, |_, _| {}, |_| source.to_owned()),
        )
    };
    // What does not compile has no name.
    double::fail("nvrtc", 0, Failure::Once);
    make("a").unwrap_err();
    make("b").unwrap();
    make("b").unwrap();
    let error = make("c").unwrap_err();
    assert!(matches!(&error, Error::Compile { kernel, .. } if kernel == "fill (one)"), "{error}");
}

pub(super) fn launch(kernel: &Kernel<Fill>, queue: &Queue, word: u32, x: &mut Buffer<u32>) -> Result<()> {
    // SAFETY: the double fills the buffer and no more.
    unsafe { kernel.launch(queue, 1, &Fill { word }, &mut [Arg::write(x)]) }
}

pub(super) const LEN: usize = 1024;
const BYTES: usize = 4 * LEN;

pub(super) fn host(device: &Device, transfer: Transfer, secrecy: Secrecy, word: u32) -> Result<HostBuffer> {
    let mut host = device.host_buffer(BYTES, transfer, secrecy)?;
    host.chunks_exact_mut(4).for_each(|bytes| bytes.copy_from_slice(&word.to_le_bytes()));
    Ok(host)
}

#[test]
fn launches_start_early_where_their_code_waits() {
    let cases = [(90, "wait_for_previous();", 1), (120, "    wait_for_previous();", 1), (90, "", 0)];
    for (architecture, source, attributes) in cases.into_iter().chain([(89, "wait_for_previous();", 0)]) {
        double::reset(false);
        double::compile_for(architecture);
        let device = open(0).unwrap();
        let (kernel, queue) = (fill_by(&device, source).unwrap(), device.queue().unwrap());
        let mut x = device.alloc::<u32>(4).unwrap();
        // SAFETY: the double fills the buffer and no more.
        unsafe { kernel.launch(&queue, 3, &Fill { word: 7 }, &mut [Arg::write(&mut x)]) }.unwrap();
        assert_eq!(double::launches(), [[attributes, 3, 64]], "{architecture} {source}");
    }
}

/// Kernels with texts of their own.
fn numbered(count: usize) -> Vec<KernelSpec> {
    let spec = |i: usize| {
        let bindings = vec![Binding::write("x", BindingType::U32)];
        KernelSpec::new::<Fill, _>("fill", i.to_string(), bindings, |_, _| {}, move |_| format!("// {i}")).threads(64)
    };
    (0..count).map(spec).collect()
}

#[test]
fn kernels_that_are_prepared_are_compiled_once_and_told_of() {
    // Each thread has a driver of its own in the double, so that all is done by this one.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    pool.install(|| {
        double::reset(false);
        let device = open(0).unwrap();
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let (seen, weak) = (Arc::clone(&told), device.clone());
        device.on_compile(Some(Arc::new(move |compilation| {
            // The device answers meanwhile, the same kernel included: no lock is held.
            let known = weak.stats().compiled;
            Kernel::<Fill>::new(&weak, numbered(6).remove(seen.lock().unwrap().len())).unwrap();
            assert_eq!(weak.stats().compiled, known);
            assert_eq!(compilation.origin, Origin::Compiler);
            seen.lock().unwrap().push(compilation.kernel.clone());
        })));
        let specs = numbered(6);
        let prepared = device.prepare(&specs).unwrap();
        let labels: Vec<String> = specs.iter().map(KernelSpec::label).collect();
        assert_eq!(*told.lock().unwrap(), labels);
        let stats = device.stats();
        assert_eq!((stats.compiled, stats.cache_hits), (6, 0));
        assert!(stats.compile_time > Duration::ZERO && stats.load_time == Duration::ZERO);
        for spec in specs {
            Kernel::<Fill>::new(&device, spec).unwrap();
        }
        assert_eq!(device.stats(), stats, "they were ready");
        device.on_compile(None);
        drop(prepared);
    });
}

#[test]
fn a_kernel_that_is_refused_leaves_those_beside_it() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    pool.install(|| {
        double::reset(false);
        let device = open(0).unwrap();
        double::fail("nvrtc", 2, Failure::Once);
        let error = device.prepare(&numbered(5)).unwrap_err();
        assert!(matches!(error, Error::Compile { .. }), "{error}");
        assert_eq!(device.stats().compiled, 4, "the others were made");
        assert!(device.prepare(&numbered(5)).is_ok());
        assert_eq!(device.stats().compiled, 5);
        let large = numbered(1).remove(0).threads(u32::MAX);
        assert!(matches!(device.prepare(&[large]), Err(Error::TooLarge { .. })));
    });
}

#[test]
fn sizes_at_their_extremes_are_errors() {
    double::reset(false);
    let device = open(0).unwrap();
    let backend = device.backend();
    let queue = backend.default_queue();
    for bytes in [u64::MAX, u64::MAX - 14, 1 << 63, (1 << 34) + 1] {
        assert!(matches!(backend.alloc(bytes, Secrecy::Public), Err(Error::TooLarge { .. })), "{bytes}");
    }
    for bytes in [usize::MAX, usize::MAX - 15, usize::MAX / 2 + 2, 1 << 40] {
        for transfer in [Transfer::Upload, Transfer::Both] {
            let error = backend.host_buffer(bytes, transfer, Secrecy::Public).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { requested, .. } if requested == bytes as u64), "{error}");
        }
    }
    let mut x = device.zeros::<u32>(4).unwrap();
    for (at, bytes) in [(u64::MAX, 1), (1, u64::MAX), (u64::MAX - 3, 8), (17, 0), (16, 1)] {
        let error = SpanMut::new(&mut x.memory, at, bytes).and_then(|x| backend.clear(queue, x)).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
    }
    for (rows, pieces) in [(usize::MAX, usize::MAX), (0, usize::MAX), (1, usize::MAX), (usize::MAX, 0)] {
        for len in [0, 16] {
            let memory = device.host_buffer(len, Transfer::Both, Secrecy::Public).unwrap();
            let written: Result<(_, Pending)> =
                device.default_queue().write_pinned_columns(&mut x, memory, rows, pieces);
            assert!(
                len == 0 && pieces <= 1 || matches!(written, Err(Error::Length { .. })),
                "{rows} {pieces}: {written:?}"
            );
        }
    }
    drop(x);
    drop(device);
    double::run_all();
    assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]));
}

/// Work that another library gives to a queue comes behind what other queues did with the same memory, and before what
/// they do next.
#[test]
fn lent_queues_keep_the_order_of_uses() {
    double::reset(false);
    let (device, other) = (open(0).unwrap(), open(1).unwrap());
    let (kernel, work, lent) = (fill(&device).unwrap(), device.queue().unwrap(), device.queue().unwrap());
    let (mut x, mut y) = (device.alloc::<u32>(LEN).unwrap(), device.upload::<u32>(&[1; LEN]).unwrap());
    launch(&kernel, &work, 7, &mut x).unwrap();
    let half = LEN / 2;
    let copy = |lent: Lent<'_>| {
        let (from, to) = (lent.addresses[0], lent.addresses[1]);
        // SAFETY: both have so many bytes, of which one is read and the other written.
        let given = unsafe { (double::FUNCTIONS.cuMemcpyDtoDAsync_v2)(to, from, BYTES / 2, lent.stream.cast()) };
        assert_eq!(given, CUresult::CUDA_SUCCESS);
        Ok(())
    };
    let args = &mut [Arg::read(x.view(half..).unwrap()), Arg::write(y.view_mut(..half).unwrap())];
    // SAFETY: the copy stays inside both views, and is given before the call returns.
    unsafe { lent.lend(args, copy) }.unwrap();
    launch(&kernel, &work, 8, &mut x).unwrap();
    assert_eq!(work.read(&y).unwrap(), [[7; LEN / 2], [1; LEN / 2]].concat());
    assert_eq!(x.to_vec().unwrap(), [8; LEN]);
    let event = work.record().unwrap();
    device.sync().unwrap();
    assert_eq!(device.is_done(&event), Ok(true));

    let broken = Error::Driver { device: device.info().id, call: "a library", reason: "made to fail".into() };
    // SAFETY: no work is given.
    assert_eq!(unsafe { lent.lend(&mut [], |_| Err(broken.clone())) }, Err(broken));
    // SAFETY: as above.
    let foreign = unsafe { other.default_queue().lend(&mut [Arg::read(&x)], |_| unreachable!("it is refused")) };
    assert!(matches!(foreign, Err(Error::WrongDevice { .. })), "{foreign:?}");
    drop((x, y, kernel, work, lent, event, device, other));
    double::run_all();
    assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]));
}

/// A library whose work does not end says so: nothing else uses the memory then.
#[test]
fn a_device_that_a_library_works_on_for_good_is_lost() {
    double::reset(false);
    let device = open(0).unwrap();
    let (x, queue) = (device.zeros::<u32>(LEN).unwrap(), device.queue().unwrap());
    let lost = Error::Lost { device: device.info().id, reason: "a library works on".into() };
    // Another device is another matter.
    let other = Error::Lost { device: DeviceId { kind: Kind::Cuda, index: 1 }, reason: "elsewhere".into() };
    // SAFETY: no work is given.
    assert_eq!(unsafe { queue.lend(&mut [], |_| Err(other.clone())) }, Err(other));
    assert_eq!(x.to_vec().unwrap(), [0; LEN]);
    // SAFETY: as above.
    assert_eq!(unsafe { queue.lend(&mut [], |_| Err(lost.clone())) }, Err(lost.clone()));
    assert_eq!(x.to_vec(), Err(lost.clone()));
    assert_eq!(device.alloc::<u32>(LEN).unwrap_err(), lost);
    let frees = double::left()[0];
    drop(x);
    assert_eq!(double::left()[0], frees, "memory of a lost device is freed");
    assert_eq!(double::faults(), Vec::<String>::new());
}

/// Large transfers fill what is kept of pinned memory. Every later call would make its few bytes anew, which takes
/// longer than the call.
#[test]
fn small_pinned_memory_is_kept_beside_large() {
    double::reset(false);
    let device = open(0).unwrap();
    for transfer in [Transfer::Upload, Transfer::Download] {
        let host = |bytes| device.host_buffer(bytes, transfer, Secrecy::Public).unwrap();
        drop([(); 8].map(|()| host(16 << 20)));
        let before = double::left()[1];
        drop(host(100));
        assert_eq!(double::left()[1], before + 1, "{transfer:?}");
    }
}

/// The next transfer would wait for that otherwise.
#[test]
fn secrets_in_pinned_memory_are_zeroed_before_the_host_waits() {
    const BYTES: usize = 2 << 20;
    double::reset(false);
    let device = open(0).unwrap();
    let queue = device.default_queue();
    let mut x = device.alloc_with::<u32>(BYTES / 4, Secrecy::Secret).unwrap();
    let word = device.host_buffer(4, Transfer::Download, Secrecy::Secret).unwrap();
    let mut secret = device.host_buffer(BYTES, Transfer::Upload, Secrecy::Secret).unwrap();
    secret.fill(7);
    let start = secret.as_ptr();
    drop(queue.write_pinned(&mut x, secret).unwrap());
    double::run_all();
    // SAFETY: the device keeps the memory for reuse, and nothing uses it meanwhile.
    let are = |byte| unsafe { std::slice::from_raw_parts(start, BYTES) }.iter().all(|own| *own == byte);
    assert!(are(7));
    let read = queue.read_pinned(x.view(..1).unwrap(), word).unwrap().wait().unwrap();
    assert!(are(0));
    assert_eq!(&read[..], [7; 4]);
}

/// Fails where host memory that can be had is still under a copy.
fn expect_no_dma(device: &Device, case: &str) {
    let taken: Vec<HostBuffer> = [Transfer::Upload, Transfer::Both]
        .into_iter()
        .flat_map(|transfer| (0..12).map(move |_| (transfer, 7)))
        .map(|(transfer, word)| host(device, transfer, Secrecy::Public, word).unwrap())
        .collect();
    assert!(taken.iter().all(|host| !double::pending(host)), "{case}: memory is given out under a copy");
    double::run_all();
    let kept = taken.iter().all(|host| host.chunks_exact(4).all(|word| word == 7u32.to_le_bytes()));
    assert!(kept, "{case}: memory that was given out changes");
}
