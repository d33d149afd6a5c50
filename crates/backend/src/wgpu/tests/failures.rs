//! Failures, their bounds, and what they leave behind.

use std::{env, fs, process, sync::atomic::Ordering};

use super::super::context::Options;
use super::*;
use crate::{
    bindings::{Binding, BindingType},
    cache::Cache,
    device::Device,
    device::dispatch::Arg,
    error::{Error, Result},
    info::{Kind, Transfer},
    kernel::Kernel,
    secrecy::Secrecy,
    span::{Span, SpanMut},
    spec::KernelSpec,
};

/// A bit of everything, with memory and a kernel of its own, so that some is new in each round.
fn work(device: &Device, round: usize) -> Result<()> {
    let len = 100 + 1000 * round;
    let bindings = vec![Binding::read("x", BindingType::U32), Binding::write("y", BindingType::U32)];
    let source = move |_| format!("// {round}\n{ADD}");
    let variant = format!("round {round}");
    let spec = KernelSpec::new::<Params, _>("add", variant, bindings, |_, _| {}, source).threads(64);
    let kernel = Kernel::<Params>::new(device, spec)?;
    let x = device.upload_with::<u32>(&vec![3; len], Secrecy::Secret)?;
    let mut y = device.alloc_with::<u32>(len, Secrecy::Secret)?;
    y.clear()?;
    let mut host = device.host_buffer(4 * len, Transfer::Both, Secrecy::Secret)?;
    host.fill(1);
    let rest = host.split_off(4 * (len / 2));
    let (mut low, mut high) = y.as_view_mut().split_at(len / 2)?;
    drop(low.write_pinned(host)?);
    drop(high.write_pinned(rest)?.wait()?);
    let params = Params { len: len as u32, factor: 1, offset: 2 };
    // SAFETY: the body leaves threads beyond `len` idle, and both buffers have `len` words.
    unsafe {
        kernel.launch(
            &device.default_queue(),
            len.div_ceil(64) as u64,
            &params,
            &mut [Arg::read(&x), Arg::write(&mut y)],
        )
    }?;
    let from = device.default_queue().record()?;
    let z = y.duplicate()?;
    drop(device.default_queue().download(&z)?);
    let memory = |secrecy| device.host_buffer(4 * len, Transfer::Download, secrecy);
    drop(z.read_pinned(memory(Secrecy::Secret)?)?);
    let host = z.as_view().declassify().read_pinned(memory(Secrecy::Public)?)?.wait()?;
    device.elapsed(&from, &device.default_queue().record()?)?;
    let word = 0x0101_0101_u32 + 3 + 2;
    assert_eq!(z.to_vec()?, vec![word; len]);
    assert!(host.chunks_exact(4).all(|bytes| bytes == word.to_le_bytes()));
    device.sync()
}

#[test]
fn whichever_call_fails_the_device_goes_on_or_says_that_it_is_lost() {
    let options = || Options { cache: Some(Cache::at(None)), ..Options::default() };
    let Some((device, gpu)) = open_gpu(options()) else { return };
    gpu.failures.seen.lock().unwrap().clear();
    work(&device, 1).unwrap();
    let live = device.stats().bytes_live;
    let seen = gpu.failures.seen.lock().unwrap().clone();
    let kinds = ["create_buffer", "create_compute_pipeline", "map_async", "map_async, upload", "poll", "submit"];
    assert!(seen.keys().eq(&kinds), "{seen:?}");
    let mut round = 1;
    for (call, n, count) in seen.iter().flat_map(|(call, count)| (0..*count).map(|n| (*call, n, *count))) {
        let case = format!("call {n} of {count} of {call} fails");
        if ["submit", "poll"].contains(&call) {
            // The device is gone then: the first few will do, as each takes a device.
            if n < 3 {
                let (device, gpu) = open_gpu(options()).unwrap();
                *gpu.failures.next.lock().unwrap() = Some((call, n));
                let done = work(&device, 1);
                assert!(matches!(done, Err(Error::Lost { .. })), "{case}: {done:?}");
                let after = device.alloc::<u32>(1).map(drop);
                assert!(matches!(after, Err(Error::Lost { .. })), "{case}: {after:?}");
            }
            continue;
        }
        device.trim();
        round += 1;
        *gpu.failures.next.lock().unwrap() = Some((call, n));
        let done = work(&device, round);
        *gpu.failures.next.lock().unwrap() = None;
        work(&device, round).unwrap_or_else(|error| panic!("{case}: {done:?}, then {error}"));
        assert_eq!(device.stats().bytes_live, live, "{case}");
        gpu.wait(None).unwrap();
        assert_eq!(gpu.uploading.load(Ordering::Relaxed), 0, "{case}");
    }
}

#[test]
fn sizes_at_their_extremes_are_errors() {
    let Some(device) = shared() else { return };
    let backend = device.backend();
    let queue = backend.default_queue();
    // Something under way, against which staging memory is counted.
    let kept = device.upload::<u32>(&[1; 1000]).unwrap();
    for bytes in [usize::MAX, usize::MAX - 15, usize::MAX / 2 + 2, 1 << 50] {
        for transfer in [Transfer::Upload, Transfer::Both] {
            let error = backend.host_buffer(bytes, transfer, Secrecy::Public).unwrap_err();
            assert!(matches!(error, Error::TooLarge { .. } | Error::OutOfMemory { .. }), "{error}");
        }
        let error = backend.alloc(bytes as u64, Secrecy::Public).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    }
    let mut x = device.zeros::<u32>(4).unwrap();
    for (at, bytes) in [(u64::MAX, 1), (1, u64::MAX), (u64::MAX - 3, 8), (20, 0)] {
        let error = SpanMut::new(&mut x.memory, at, bytes).and_then(|x| backend.clear(queue, x)).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
        let error = Span::new(&x.memory, at, bytes).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
    }
    assert_eq!(kept.to_vec().unwrap(), [1; 1000]);
}

#[test]
fn handles_of_other_devices_are_refused() {
    let (Some(device), Some(other)) = (shared(), open(no_immediates())) else { return };
    let (ours, theirs) = (device.backend(), other.backend());
    let (mut mine, mut foreign) = (device.zeros::<u32>(4).unwrap(), other.zeros::<u32>(4).unwrap());
    let wrong = |result: Result<()>| {
        assert!(matches!(result, Err(Error::WrongDevice { .. })), "{result:?}");
    };
    let host = || theirs.host_buffer(16, Transfer::Upload, Secrecy::Public).unwrap();
    wrong(ours.write(ours.default_queue(), (&mut mine.memory).into(), host()).map(drop));
    wrong(ours.clear(ours.default_queue(), (&mut foreign.memory).into()));
    wrong(ours.clear(theirs.default_queue(), (&mut mine.memory).into()));
    wrong(ours.copy(ours.default_queue(), foreign.as_view().span(), (&mut mine.memory).into()));
    let download = theirs.host_buffer(16, Transfer::Download, Secrecy::Public).unwrap();
    wrong(ours.read(ours.default_queue(), mine.as_view().span(), download).map(drop));
    let event = theirs.record(theirs.default_queue()).unwrap();
    wrong(ours.wait_for(ours.default_queue(), &event));
    let kernel = add(&other, 64);
    let params = Params { len: 0, factor: 0, offset: 0 };
    // SAFETY: the launch is refused.
    wrong(unsafe {
        kernel.launch(&device.default_queue(), 1, &params, &mut [Arg::read(&mine), Arg::write(&mut foreign)])
    });

    let cpu = Device::cpu();
    let mut elsewhere = cpu.zeros::<u32>(4).unwrap();
    let refused = ours.clear(ours.default_queue(), (&mut elsewhere.memory).into());
    assert!(matches!(refused, Err(Error::Driver { .. })), "{refused:?}");
    let refused = ours.clear(cpu.backend().default_queue(), (&mut mine.memory).into());
    assert!(matches!(refused, Err(Error::Driver { .. })), "{refused:?}");
    let upload = ours.host_buffer(16, Transfer::Upload, Secrecy::Public).unwrap();
    let refused = ours.read(ours.default_queue(), mine.as_view().span(), upload);
    assert!(matches!(refused, Err(Error::Driver { .. })), "{refused:?}");
}

#[test]
fn errors_that_nobody_catches_lose_the_device() {
    let Some((device, gpu)) = open_gpu(no_immediates()) else { return };
    let buffer = device.zeros::<u32>(4).unwrap();
    // A usage that contradicts itself.
    let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE;
    drop(gpu.device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 4, usage, mapped_at_creation: false }));
    for result in [device.sync(), buffer.to_vec().map(drop), device.alloc::<u32>(1).map(drop), device.sync()] {
        assert!(matches!(result, Err(Error::Lost { .. })), "{result:?}");
    }
}

#[test]
fn a_destroyed_device_is_lost_and_drops_cleanly() {
    let Some((device, gpu)) = open_gpu(no_immediates()) else { return };
    let secret = device.upload_with::<u32>(&[1; 8], Secrecy::Secret).unwrap();
    let kernel = add(&device, 64);
    let pending = device.default_queue().download(&secret).unwrap();
    gpu.device.destroy();
    let outcome = pending.wait();
    assert!(matches!(outcome, Ok(_) | Err(Error::Lost { .. } | Error::Driver { .. })), "{outcome:?}");
    assert!(matches!(device.sync(), Err(Error::Lost { .. })));
    assert!(matches!(secret.to_vec(), Err(Error::Lost { .. })));
    assert!(matches!(Kernel::<Params>::new(&device, kernel.spec().clone()), Err(Error::Lost { .. })));
}

/// Runs an ignored test of this file in a process of its own.
fn in_child(name: &str, variables: &[(&str, &str)]) {
    let name = format!("wgpu::tests::failures::{name}");
    let mut command = process::Command::new(env::current_exe().unwrap());
    command.args(["--exact", &name, "--ignored", "--nocapture", "--test-threads=1"]);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    print!("{text}");
}

#[test]
fn a_machine_without_drivers_is_told_what_to_install() {
    if cfg!(any(windows, target_vendor = "apple")) {
        return eprintln!("not tested: the driver is part of the system");
    }
    let nowhere = "/nonexistent/icd.json";
    in_child("child_without_drivers", &[("VK_DRIVER_FILES", nowhere), ("VK_ICD_FILENAMES", nowhere)]);
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_without_drivers() {
    if env::var_os("VK_DRIVER_FILES").is_none() {
        return eprintln!("not tested: meant to be run by the test above");
    }
    for result in [super::super::open(0).map(drop), super::super::count().map(drop), Device::wgpu(0).map(drop)] {
        let Err(Error::Unavailable { backend: Kind::Wgpu, reason }) = result else { panic!("{result:?}") };
        assert!(reason.contains("mesa-vulkan-drivers"), "{reason}");
    }
    assert!(Device::discover().iter().any(|found| found.id.kind == Kind::Wgpu && found.device.is_err()));
}

#[cfg(target_os = "linux")]
#[test]
fn running_out_of_memory_is_an_error_and_the_next_call_works() {
    if shared().is_some_and(|device| device.info().features.software) {
        in_child("child_out_of_memory", &[]);
    } else {
        eprintln!("not tested: only an emulation's memory can be limited");
    }
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "runs in a process of its own"]
fn child_out_of_memory() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Some(device) = open(Options { cache: Some(Cache::at(None)), ..Options::default() }) else { return };
    let kernel = add(&device, 64);
    let (actual, expected) = run_add(&device, &kernel, 1000, 2);
    assert_eq!(actual, expected);
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split_whitespace().next().unwrap().parse().unwrap();
    let limit = Rlimit { current: Some(pages * 4096 + (700 << 20)), ..getrlimit(Resource::As) };
    setrlimit(Resource::As, limit).unwrap();
    for _ in 0..3 {
        let mut held = Vec::new();
        let error = loop {
            match device.alloc::<u8>(64 << 20) {
                Ok(buffer) => held.push(buffer),
                Err(error) => break error,
            }
            assert!(held.len() < 100, "the limit does not hold");
        };
        assert!(matches!(error, Error::OutOfMemory { requested, .. } if requested == 64 << 20), "{error}");
        assert!(held.len() > 1, "{} blocks", held.len());
        held.truncate(1);
        let (actual, expected) = run_add(&device, &kernel, 1000, 2);
        assert_eq!(actual, expected);
        // Another size than the pool's: the pool must make room.
        drop(device.alloc::<u8>(500 << 20).unwrap());
    }
    device.sync().unwrap();
}

#[test]
fn many_cycles_do_not_grow() {
    // Other tests would count in the size of this process.
    in_child("child_many_cycles", &[]);
}

#[test]
#[ignore = "runs in a process of its own"]
fn child_many_cycles() {
    let Some(device) = open(Options { cache: Some(Cache::at(None)), ..Options::default() }) else { return };
    let kernel = add(&device, 64);
    let cycle = |device: &Device| {
        let (actual, expected) = run_add(device, &kernel, 5000, 2);
        assert_eq!(actual, expected);
        drop(device.upload_with::<u32>(&[7; 3000], Secrecy::Secret).unwrap());
        drop(device.default_queue().record().unwrap());
        let buffer = device.zeros::<u32>(100).unwrap();
        drop(device.default_queue().download(&buffer).unwrap());
        drop(add(device, 64));
    };
    (0..20).for_each(|_| cycle(&device));
    device.sync().unwrap();
    let (stats, resident) = (device.stats(), resident_bytes());
    (0..300).for_each(|_| cycle(&device));
    device.sync().unwrap();
    let after = device.stats();
    assert_eq!((after.bytes_live, after.bytes_pooled, after.bytes_peak), (0, stats.bytes_pooled, stats.bytes_peak));
    assert_eq!(after.compiled, stats.compiled, "the pipeline is kept");
    if let (Some(before), Some(after)) = (resident, resident_bytes()) {
        assert!(after < before + (64 << 20), "{before} bytes of the process grew to {after}");
    }
    device.trim();
    assert_eq!(device.stats().bytes_pooled, 0);
}

fn resident_bytes() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    Some(statm.split_whitespace().nth(1)?.parse::<u64>().ok()? * 4096)
}

#[test]
fn devices_come_and_go() {
    for _ in 0..8 {
        let Some(device) = open(Options { cache: Some(Cache::at(None)), ..Options::default() }) else { return };
        let buffer = device.upload::<u32>(&[1, 2, 3]).unwrap();
        let pending = device.default_queue().download(&buffer).unwrap();
        assert_eq!(pending.wait().unwrap(), [1, 2, 3]);
        drop(device);
        assert_eq!(buffer.to_vec().unwrap(), [1, 2, 3], "a buffer keeps its device");
    }
}
