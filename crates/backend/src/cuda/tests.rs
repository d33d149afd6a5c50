//! What this backend does with a driver that fails, on the double in [`super::double`]: no GPU is needed.

use std::{
    io::Read,
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{
    Cuda, compiler,
    double::{self, Failure, SECRET},
    driver::Context,
    kernels::Compiler,
};
use crate::{
    bindings::{Binding, BindingType},
    buffer::Buffer,
    cache::Cache,
    compilations::Origin,
    device::Device,
    device::dispatch::Arg,
    error::{Error, Result},
    host::{HostBuffer, Pending},
    info::Transfer,
    kernel::Kernel,
    params,
    queue::Queue,
    ring::Ring,
    secrecy::Secrecy,
    span::SpanMut,
    spec::KernelSpec,
    stream::Stream,
    uploads::{HostData, Uploads},
    view::View,
};

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

/// A bit of everything, in an order in which what is dropped is under work.
fn work(device: &Device) -> Result<()> {
    let queue = device.queue()?;
    let kernel = fill(device)?;
    let mut secret = device.upload_with::<u32>(&[SECRET; LEN], Secrecy::Secret)?;
    let mut x = device.zeros::<u32>(LEN)?;
    let made = device.default_queue().record()?;
    queue.wait_for(&made)?;
    // Writes that nobody waits for, of one host memory in parts too.
    drop(queue.write_pinned(&mut x, host(device, Transfer::Upload, Secrecy::Public, 1)?)?);
    drop(queue.write_pinned(&mut secret, host(device, Transfer::Both, Secrecy::Secret, SECRET)?)?);
    let mut first = host(device, Transfer::Both, Secrecy::Public, 2)?;
    let second = first.split_off(BYTES / 2);
    let first = queue.write_pinned(x.view_mut(..LEN / 2)?, first)?;
    drop(queue.write_pinned(x.view_mut(LEN / 2..)?, second)?);
    launch(&kernel, &queue, 3, &mut x)?;
    let (events, columns) =
        queue.write_pinned_columns(&mut x, host(device, Transfer::Both, Secrecy::Public, 4)?, 4, 4)?;
    let seen = queue.record()?;
    device.default_queue().wait_for(&seen)?;
    let mut y = x.duplicate()?;
    y.copy_from(&x)?;
    y.view_mut(..16)?.clear()?;
    let down = device.default_queue().read_pinned_columns(
        &y,
        host(device, Transfer::Both, Secrecy::Public, 9)?,
        4,
        &events,
    )?;
    let words = queue.read(&x)?;
    assert!(words.iter().all(|word| *word == 4), "{words:?}");
    let down = down.wait()?;
    let down: Vec<u32> = down.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    assert!(down.iter().enumerate().all(|(i, word)| *word == if i < 16 { 0 } else { 4 }), "{down:?}");
    // Reads of secrets, of which one is abandoned.
    drop(secret.read_pinned(host(device, Transfer::Both, Secrecy::Secret, 0)?)?);
    assert_eq!(secret.to_vec()?, [SECRET; LEN]);
    device.elapsed(&events[0], &seen)?;
    let first = first.wait()?;
    drop((columns, first));
    device.sync()?;
    device.trim();
    // A last use that nobody waits for.
    launch(&kernel, &queue, 5, &mut y)?;
    drop(queue.read_pinned(&y, host(device, Transfer::Both, Secrecy::Public, 0)?)?);
    Ok(())
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

/// Whether a call that fails can have done its work all the same.
fn may_be_late(function: &str) -> bool {
    ["Memcpy", "Memset", "Launch", "Record", "Wait", "Synchronize"].iter().any(|part| function.contains(part))
}

fn run(function: &'static str, n: usize, failure: Failure, without_pools: bool) {
    let case = format!("call {n} of {function} fails: {failure:?}, without pools: {without_pools}");
    double::reset(without_pools);
    double::fail(function, n, failure);
    let opened = open(0);
    let is_open = opened.is_ok();
    if let Ok(device) = opened {
        let done = work(&device);
        if failure == Failure::Lost && !double::is_armed() {
            // Whatever is asked for says so.
            let lost = device.alloc::<u32>(1).map(drop);
            assert!(matches!(lost, Err(Error::Lost { .. })), "{case}: {done:?}, then {lost:?}");
            assert!(
                matches!(device.host_buffer(1, Transfer::Both, Secrecy::Public), Err(Error::Lost { .. })),
                "{case}"
            );
        } else {
            double::heal();
            expect_no_dma(&device, &case);
            let again = work(&device);
            assert!(again.is_ok(), "{case}: {done:?}, then {again:?}");
        }
        drop(device);
    }
    double::run_all();
    let faults = double::faults();
    assert!(faults.is_empty(), "{case}: {faults:?}");
    // Without a context nothing can be freed.
    let driver_leaks =
        function == "cuCtxSetCurrent" || double::RELEASES.contains(&function) || !is_open && failure != Failure::Once;
    if failure == Failure::Lost || driver_leaks {
        return double::heal();
    }
    let [device, host, streams, events, modules, contexts] = double::left();
    assert_eq!([device, host, contexts], [0; 3], "{case}: device memory, host memory, contexts");
    if failure != Failure::Lasting {
        assert_eq!([streams, events, modules], [0; 3], "{case}: streams, events, modules");
    }
}

#[test]
fn whichever_call_fails_memory_is_kept_while_it_is_used_and_freed_after() {
    for without_pools in [false, true] {
        double::reset(without_pools);
        double::calls();
        let device = open(0).unwrap();
        work(&device).unwrap();
        drop(device);
        double::run_all();
        assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]));
        for (function, count) in double::calls() {
            let failures = [Failure::Once, Failure::Late, Failure::Lasting, Failure::Lost];
            for failure in failures.into_iter().filter(|f| *f != Failure::Late || may_be_late(function)) {
                if function == "nvrtc" && failure != Failure::Once {
                    continue;
                }
                (0..count).for_each(|n| run(function, n, failure, without_pools));
            }
        }
    }
}

#[test]
fn an_event_of_another_device_is_refused_before_anything_is_queued() {
    double::reset(false);
    let (device, other) = (open(0).unwrap(), open(1).unwrap());
    let x = device.zeros::<u32>(LEN).unwrap();
    let (own, foreign) = (device.default_queue().record().unwrap(), other.default_queue().record().unwrap());
    let memory = host(&device, Transfer::Both, Secrecy::Public, 7).unwrap();
    let error = device.default_queue().read_pinned_columns(&x, memory, 4, &[own, foreign]).unwrap_err();
    assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
    expect_no_dma(&device, "a foreign event");
    assert_eq!(double::faults(), [""; 0]);
}

/// Rows that are further apart than the driver's copies of several rows can have them.
#[test]
fn matrices_of_any_width_are_copied() {
    const WORDS: usize = double::MAX_PITCH / 2;

    for (rows, pieces, rectangles) in [(1, 1, 0), (1, 4, 0), (2, 1, 0), (2, 4, 8), (1, WORDS, 0), (WORDS, 1, 0)] {
        for factor in [1, 3] {
            let case = format!("{rows} rows in {pieces} pieces, {factor}");
            double::reset(false);
            let device = open(0).unwrap();
            let words: Vec<u32> = (0..(factor * WORDS) as u32).collect();
            let mut host = device.host_buffer(4 * words.len(), Transfer::Both, Secrecy::Public).unwrap();
            host.copy_from_slice(bytemuck::cast_slice(&words));
            let mut x = device.zeros::<u32>(words.len()).unwrap();
            let (events, sent) = device.default_queue().write_pinned_columns(&mut x, host, rows, pieces).unwrap();
            assert_eq!(x.to_vec().unwrap(), words, "{case}");
            let mut host = sent.wait().unwrap();
            host.fill(0);
            let host = device.default_queue().read_pinned_columns(&x, host, rows, &events).unwrap().wait().unwrap();
            assert!(*host == *bytemuck::cast_slice::<u32, u8>(&words), "{case}");
            let called = double::calls().get("cuMemcpy2DAsync_v2").copied().unwrap_or(0);
            assert_eq!(called, if factor == 1 { rectangles } else { 0 }, "{case}");
            drop((host, x, events, device));
            double::run_all();
            assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]), "{case}");
        }
    }
}

#[test]
fn transfers_that_are_forgotten_keep_their_memory() {
    double::reset(false);
    let device = open(0).unwrap();
    let mut x = device.zeros::<u32>(LEN).unwrap();
    std::mem::forget(x.write_pinned(host(&device, Transfer::Both, Secrecy::Public, 1).unwrap()).unwrap());
    std::mem::forget(x.read_pinned(host(&device, Transfer::Both, Secrecy::Public, 1).unwrap()).unwrap());
    std::mem::forget(device.default_queue().download(&x).unwrap());
    drop(x);
    expect_no_dma(&device, "forgotten transfers");
    drop(device);
    double::run_all();
    assert_eq!(double::faults(), [""; 0]);
}

#[test]
fn transfers_outlive_their_device() {
    for function in ["none", "cuEventSynchronize", "cuStreamSynchronize", "cuCtxSynchronize"] {
        double::reset(false);
        let device = open(0).unwrap();
        let x = device.upload::<u32>(&[8; LEN]).unwrap();
        let memory = || host(&device, Transfer::Both, Secrecy::Public, 0).unwrap();
        let waited = x.read_pinned(memory()).unwrap();
        let dropped = x.read_pinned(memory()).unwrap();
        drop((x, device));
        let words = waited.wait().unwrap();
        assert!(words.chunks_exact(4).all(|word| word == 8u32.to_le_bytes()));
        double::fail(function, 0, Failure::Once);
        drop((words, dropped));
        double::heal();
        double::run_all();
        assert_eq!(double::faults(), [""; 0], "{function}");
    }
}

#[test]
fn copies_between_devices_hold_both() {
    for function in ["none", "cuMemcpyPeerAsync", "cuEventRecord", "cuStreamWaitEvent", "cuStreamSynchronize"] {
        for (n, failure) in (0..6).flat_map(|n| [(n, Failure::Once), (n, Failure::Late), (n, Failure::Lasting)]) {
            let case = format!("call {n} of {function} fails: {failure:?}");
            double::reset(false);
            let (device, other) = (open(0).unwrap(), open(1).unwrap());
            let x = other.upload::<u32>(&[6; LEN]).unwrap();
            let mut y = device.zeros::<u32>(LEN).unwrap();
            double::fail(function, n, failure);
            let backend = device.backend();
            let copied = backend.copy(backend.default_queue(), x.as_view().span(), (&mut y.memory).into());
            double::heal();
            drop(x);
            other.trim();
            drop(other);
            if copied.is_ok() {
                assert_eq!(y.to_vec().unwrap(), [6; LEN], "{case}");
            }
            drop((y, device));
            double::run_all();
            assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]), "{case}: {copied:?}");
        }
    }
}

/// Parts of host memory go to the device and come back into the same place, and no call leaves them under a copy.
#[test]
fn streams_keep_their_memory_until_copies_are_done() {
    let transfers = ["cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"];
    let order = ["none", "cuEventRecord", "cuEventSynchronize", "cuStreamWaitEvent"];
    for function in transfers.into_iter().chain(order) {
        for (n, failure) in (0..12).flat_map(|n| [(n, Failure::Once), (n, Failure::Late), (n, Failure::Lasting)]) {
            let case = format!("call {n} of {function} fails: {failure:?}");
            double::reset(false);
            let device = open(0).unwrap();
            let mut stream = Stream::<u32>::new(&device, 12, Secrecy::Secret).unwrap();
            // Eight words, of which the last five are the first part.
            let piece = |i: u32| {
                let mut all = device.host_buffer(32, Transfer::Both, Secrecy::Secret).unwrap();
                let words: Vec<u32> = (0..8).map(|k| 100 * i + (k + 5) % 8).collect();
                all.copy_from_slice(bytemuck::cast_slice(&words));
                let rest = all.split_off(12);
                vec![rest, all]
            };
            let pieces: Vec<_> = (0..6).map(piece).collect();
            double::fail(function, n, failure);
            let mut done = Vec::new();
            let mut failed = 0;
            for parts in pieces {
                // Where each word goes: the parts were exchanged, and come back one further.
                let work = |queue: &Queue, data: &mut Buffer<u32>| {
                    let (given, mut rest) = data.as_view_mut().split_at(8)?;
                    queue.copy(given.view(..1)?, rest.view_mut(..1)?)?;
                    Ok::<_, Error>(1..9)
                };
                match stream.run(parts, work) {
                    Ok(parts) => done.extend(parts),
                    Err(_) => failed += 1,
                }
            }
            for _ in 0..6 {
                match stream.next() {
                    Ok(parts) => done.extend(parts),
                    Err(_) => failed += 1,
                }
            }
            double::heal();
            let words = |parts: &Vec<HostBuffer>| -> Vec<u32> {
                assert_eq!([parts[0].len(), parts[1].len()], [20, 12], "{case}");
                parts.iter().flat_map(|part| bytemuck::pod_collect_to_vec(part)).collect()
            };
            let found: Vec<Vec<u32>> = done.iter().map(words).collect();
            // What was given to the device: 5 + 3 words in this order, then all one further, the first again at the end.
            let expected = |i: u32| -> Vec<u32> { (0..8).map(|k| 100 * i + (k + 1) % 8).collect() };
            if function == "none" {
                assert_eq!((found.len(), failed), (6, 0), "{case}");
                assert!(found.iter().enumerate().all(|(i, words)| *words == expected(i as u32)), "{case}: {found:?}");
            }
            // In order, and whole.
            assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{case}: {found:?}");
            assert!(found.iter().all(|words| *words == expected(words[0] / 100)), "{case}: {found:?}");
            drop((done, stream, device));
            double::run_all();
            assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]), "{case}");
        }
    }
}

/// The last piece comes after the others, but waits for none to go back.
#[test]
fn uploads_of_a_stream_come_one_after_the_other() {
    double::reset(false);
    let device = open(0).unwrap();
    let mut stream = Stream::<u32>::new(&device, LEN, Secrecy::Public).unwrap();
    let (mut given, mut last) = (Vec::new(), None);
    for word in 0..3 {
        let host = host(&device, Transfer::Both, Secrecy::Public, word).unwrap();
        given.push(double::Transfer::Up(host.as_ptr().addr()));
        let work = |queue: &Queue, _: &mut Buffer<u32>| {
            last = Some(queue.record()?);
            Ok::<_, Error>(0..LEN)
        };
        stream.run(vec![host], work).unwrap();
    }
    let last = last.unwrap();
    device.elapsed(&last, &last).unwrap();
    assert_eq!(double::transfers(), given);
    drop((last, stream, device));
    double::run_all();
    assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]));
}

/// What a ring has given is right, all else is as it was, and no call leaves its memory under a copy. Of one thread of the pool,
/// since each has a driver of its own.
#[test]
fn rings_keep_their_memory_until_copies_are_done() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        for function in ["none", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord", "cuEventSynchronize"]
        {
            for (n, failure) in (0..16).flat_map(|n| [(n, Failure::Once), (n, Failure::Late), (n, Failure::Lasting)]) {
                for way in 0..3 {
                    ring_fails(function, n, failure, way);
                }
            }
        }
    });
}

/// Seven pieces and a bit through three places.
fn ring_fails(function: &'static str, n: usize, failure: Failure, way: usize) {
    const PIECE: usize = 64;

    let case = format!("call {n} of {function} fails: {failure:?}, way {way}");
    double::reset(false);
    let device = open(0).unwrap();
    let ring = || Ring::new(&device, PIECE, 3, Secrecy::Secret);
    let data: Vec<u8> = (1..=(7 * PIECE + 13) as u32).map(|i| (i * 7 + i / 251) as u8).collect();
    let mut expected = data.clone();
    expected.chunks_mut(PIECE).for_each(|piece| piece.copy_within(..4, 4));
    let work = |queue: &Queue, piece: &mut Buffer<u8>| {
        let (first, mut rest) = piece.as_view_mut().split_at(4)?;
        queue.copy(&first, rest.view_mut(..4)?)
    };
    let run = |found: &mut Vec<u8>, slice: &mut [u8]| match way {
        0 => ring()?.run(slice, |queue, piece, _, _| work(queue, piece), |piece| found.extend_from_slice(piece)),
        1 => {
            let mut left = &data[..];
            let input = |piece: &mut [u8]| Ok(left.read(piece).unwrap());
            let done = |piece: &[u8]| {
                found.extend_from_slice(piece);
                Ok(())
            };
            ring()?.pump(input, |queue, piece, _, _| work(queue, piece), done)
        }
        _ => {
            let mut host = device.host_buffer(data.len(), Transfer::Both, Secrecy::Secret)?;
            host.copy_from_slice(&data);
            let done = ring()?.run_pinned(&mut host, |queue, piece, _, _| work(queue, piece));
            assert!(done.is_ok() || host.is_empty(), "{case}");
            found.extend_from_slice(&host);
            done
        }
    };
    let (mut found, mut slice) = (Vec::new(), data.clone());
    double::fail(function, n, failure);
    let done: Result<()> = run(&mut found, &mut slice);
    let failed = !double::is_armed() || failure == Failure::Lasting;
    double::heal();
    assert!(done.is_err() || found == expected, "{case}");
    assert!(done.is_ok() || failed && function != "none", "{case}: {done:?}");
    assert_eq!(found, expected[..found.len()], "{case}");
    if way == 0 {
        assert!(slice == [&expected[..found.len()], &data[found.len()..]].concat(), "{case}");
    }
    expect_no_dma(&device, &case);
    (found, slice) = (Vec::new(), data.clone());
    run(&mut found, &mut slice).unwrap();
    assert!(found == expected, "{case}, and again");
    drop(device);
    double::run_all();
    assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]), "{case}");
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

/// Each piece is read as it was given, whichever call fails for another one, and no call leaves host memory under a copy.
#[test]
fn uploads_keep_their_memory_until_it_is_read() {
    for function in ["none", "cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuEventSynchronize", "cuStreamWaitEvent"] {
        for (n, failure) in (0..24).flat_map(|n| [(n, Failure::Once), (n, Failure::Late), (n, Failure::Lasting)]) {
            for way in 0..4 {
                uploads_fail(function, n, failure, way);
            }
        }
    }
}

/// Seven pieces through two memories.
fn uploads_fail(function: &'static str, n: usize, failure: Failure, way: usize) {
    const PIECES: usize = 7;
    const WORDS: usize = 4;

    let case = format!("call {n} of {function} fails: {failure:?}, way {way}");
    double::reset(false);
    let device = open(0).unwrap();
    let own = device.queue().unwrap();
    let mut out = device.alloc_with::<u32>(PIECES * WORDS, Secrecy::Secret).unwrap();
    let lens = [WORDS; PIECES];
    let mut uploads = match way {
        0 => Uploads::<u32>::new(&device, WORDS, 2, Secrecy::Secret),
        1 => Uploads::ahead_of(&device, &lens, 2, Secrecy::Secret),
        _ => Uploads::ahead_of(&own, &lens, 2, Secrecy::Secret),
    }
    .unwrap();
    let words = |piece: usize| -> [u32; WORDS] { std::array::from_fn(|i| (100 * piece + i + 1) as u32) };
    let mut given = device.host_buffer(4 * PIECES * WORDS, Transfer::Upload, Secrecy::Secret).unwrap();
    (0..PIECES).for_each(|i| given[16 * i..][..16].copy_from_slice(bytemuck::cast_slice(&words(i))));
    let mut left = HostData::Pinned(given);
    double::fail(function, n, failure);
    let (mut done, mut back) = (Vec::new(), 0);
    for piece in 0..PIECES {
        let work =
            |queue: &Queue, data: View<'_, u32>, _| queue.copy(data, out.view_mut(piece * WORDS..(piece + 1) * WORDS)?);
        let ran = match way {
            3 => uploads.run(&words(piece)[..], work),
            2 => uploads.run(left.split_to(WORDS), work),
            _ => uploads.host().and_then(|mut host| {
                assert!(!double::pending(&host), "{case}: memory is given out under a copy");
                host.copy_from_slice(bytemuck::cast_slice(&words(piece)));
                uploads.run(host, work)
            }),
        };
        done.extend(ran.is_ok().then_some(piece));
    }
    for _ in 0..PIECES {
        back += usize::from(uploads.next().is_ok_and(|host| host.is_some()));
    }
    let failed = !double::is_armed() || failure == Failure::Lasting;
    double::heal();
    assert!(function != "none" || done.len() == PIECES, "{case}: {done:?}");
    assert!(done.len() == PIECES || failed, "{case}: {done:?}");
    if function == "none" {
        assert_eq!(back, [2, 2, PIECES, 0][way], "{case}");
    }
    // The uploads before what reads them, where they are not held back.
    double::run_all();
    device.sync().unwrap();
    let found = out.to_vec().unwrap();
    assert!(done.iter().all(|i| found[i * WORDS..][..WORDS] == words(*i)), "{case}: {done:?} of {found:?}");
    drop((uploads, left));
    expect_no_dma(&device, &case);
    drop((out, own, device));
    double::run_all();
    assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]), "{case}");
}

/// What was queued before the caller's part failed is read as it was given too.
#[test]
fn uploads_wait_for_work_of_pieces_that_failed() {
    double::reset(false);
    let device = open(0).unwrap();
    let mut out = device.zeros::<u32>(4).unwrap();
    let mut uploads = Uploads::<u32>::ahead_of(&device, &[1; 4], 2, Secrecy::Public).unwrap();
    let word = |word: u32| {
        let mut host = device.host_buffer(4, Transfer::Upload, Secrecy::Public).unwrap();
        host.copy_from_slice(&word.to_le_bytes());
        host
    };
    for i in 0..4 {
        let work = |queue: &Queue, data: View<'_, u32>, _| {
            queue.copy(data, out.view_mut(i..=i)?)?;
            Err::<(), _>(Error::Undecodable { index: i as u64 })
        };
        assert_eq!(uploads.run(word(i as u32 + 1), work).unwrap_err(), Error::Undecodable { index: i as u64 });
    }
    uploads.run(word(5), |_, _, _| Ok::<_, Error>(())).unwrap();
    assert!(uploads.next().unwrap().is_some());
    assert_eq!(out.to_vec().unwrap(), [1, 2, 3, 4]);
    drop((uploads, out, device));
    double::run_all();
    assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]));
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
