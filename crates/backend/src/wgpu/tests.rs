//! Everything here runs on whatever adapter is there, Mesa's software Vulkan included. Without any, each test asserts
//! that this is said as it should be, and prints so.

use std::{
    env, fs,
    path::PathBuf,
    process,
    sync::{Arc, OnceLock, atomic::Ordering},
    thread,
    time::Duration,
};

use super::{
    Wgpu,
    context::{Options, STAGING_BUDGET, STAGING_BYTES},
    gpu::Gpu,
    program::{Program, Variant},
};
use crate::{
    bindings::{Binding, BindingType},
    buffer::{Buffer, Element},
    cache::Cache,
    device::Device,
    device::dispatch::Arg,
    error::{Error, Result},
    host::HostBuffer,
    info::{Kind, Transfer},
    kernel::Kernel,
    params,
    queue::Queue,
    ring::Ring,
    secrecy::Secrecy,
    span::{Span, SpanMut},
    spec::{KernelSpec, Language},
};

/// A device of its own with changed options, or `None`, told, without any adapter.
fn open(options: Options) -> Option<Device> {
    open_gpu(options).map(|(device, _)| device)
}

fn open_gpu(options: Options) -> Option<(Device, Arc<Gpu>)> {
    match Wgpu::new(0, options) {
        Ok(backend) => {
            let gpu = Arc::clone(&backend.gpu);
            Some((Device::unregistered(Arc::new(backend)), gpu))
        }
        Err(error) => {
            assert!(matches!(error, Error::Unavailable { backend: Kind::Wgpu, .. }), "{error}");
            eprintln!("not tested: {error}");
            None
        }
    }
}

/// The device that most tests share: opening one takes longer than a test.
fn shared() -> Option<Device> {
    static DEVICE: OnceLock<Option<Device>> = OnceLock::new();
    DEVICE.get_or_init(|| open(Options { cache: Some(Cache::at(None)), ..Options::default() })).clone()
}

fn tiny_chunks() -> Options {
    Options { chunk_bytes: Some(64), cache: Some(Cache::at(None)), ..Options::default() }
}

fn no_immediates() -> Options {
    Options { no_immediates: true, cache: Some(Cache::at(None)), ..Options::default() }
}

params! {
    struct Params {
        len: u32,
        factor: u32,
        offset: u32,
    }

    struct Groups {
        groups: u32,
    }
}

const ADD: &str = "
@compute @workgroup_size(THREADS)
fn add(
    @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if i < params.len { y_set(i, y_get(i) * params.factor + x_get(i) + params.offset); }
}";

/// `y = y·factor + x + offset`, element by element.
fn add(device: &Device, threads: u32) -> Kernel<Params> {
    let bindings = vec![Binding::read("x", BindingType::U32), Binding::write("y", BindingType::U32)];
    let variant = format!("{threads} threads");
    let spec = KernelSpec::new::<Params, _>("add", variant, bindings, |_, _| {}, |_| ADD.into()).threads(threads);
    Kernel::new(device, spec).unwrap()
}

fn run_add(device: &Device, kernel: &Kernel<Params>, len: usize, rounds: u32) -> (Vec<u32>, Vec<u32>) {
    let x: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2654435761)).collect();
    let mut expected: Vec<u32> = (0..len as u32).collect();
    let source = device.upload::<u32>(&x).unwrap();
    let mut target = device.upload::<u32>(&expected).unwrap();
    for round in 0..rounds {
        let params = Params { len: len as u32, factor: round | 1, offset: round };
        for (y, x) in expected.iter_mut().zip(&x) {
            *y = y.wrapping_mul(params.factor).wrapping_add(*x).wrapping_add(params.offset);
        }
        let groups = len.div_ceil(kernel.spec().threads as usize) as u64;
        let mut args = [Arg::read(&source), Arg::write(&mut target)];
        // SAFETY: the body leaves threads beyond `len` idle, and both buffers have `len` words.
        unsafe { kernel.launch(&device.default_queue(), groups, &params, &mut args) }.unwrap();
    }
    (target.to_vec().unwrap(), expected)
}

#[test]
fn kernels_run_with_immediates_and_with_uniforms() {
    let default = Options { cache: Some(Cache::at(None)), ..Options::default() };
    for options in [default, no_immediates()] {
        let uniform = options.no_immediates;
        let Some((device, gpu)) = open_gpu(options) else { return };
        let kernel = add(&device, 64);
        let plain = Variant { chunks: vec![1, 1], based: false, shared: false };
        let params = Program::new(&gpu, kernel.spec()).unwrap().pipeline(&plain).unwrap().params.is_some();
        assert_eq!(params, uniform || gpu.immediate_bytes < size_of::<Params>());
        // More launches than a batch or the ring of uniforms holds.
        let (actual, expected) = run_add(&device, &kernel, 1000, 700);
        assert_eq!(actual, expected);
        assert_eq!(device.stats().launches, 700);
    }
}

#[test]
fn allocations_of_many_chunks_are_one_to_kernels_and_copies() {
    let Some(device) = open(tiny_chunks()) else { return };
    assert!(device.info().limits.buffer_bytes >= 128, "{:?}", device.info().limits);
    let kernel = add(&device, 32);
    let most = (device.info().limits.buffer_bytes / 4) as usize;
    for len in [1, 15, 16, 17, 31, 33, 48, 60, most] {
        let len = len.min(most);
        let (actual, expected) = run_add(&device, &kernel, len, 3);
        assert_eq!(actual, expected, "{len} words");
    }
    // Copies between different offsets cross borders at different places.
    let (words, backend) = (40, device.backend());
    let source: Vec<u32> = (100..100 + words).collect();
    let from = device.upload::<u32>(&source).unwrap();
    let mut to = device.zeros::<u32>(words as usize).unwrap();
    to.view_mut(13..34).unwrap().copy_from(from.view(3..24).unwrap()).unwrap();
    let expected: Vec<u32> = (0..words).map(|i| if (13..34).contains(&i) { 90 + i } else { 0 }).collect();
    assert_eq!(to.to_vec().unwrap(), expected);
    to.view_mut(15..33).unwrap().clear().unwrap();
    let expected: Vec<u32> = (0..words).map(|i| if [13, 14, 33].contains(&i) { 90 + i } else { 0 }).collect();
    assert_eq!(to.to_vec().unwrap(), expected);

    let huge = backend.host_buffer(usize::MAX / 4, Transfer::Upload, Secrecy::Public);
    assert!(matches!(huge, Err(Error::TooLarge { .. })), "{huge:?}");
    let limit = device.info().limits.buffer_bytes;
    let error = backend.alloc(limit + 1, Secrecy::Public).unwrap_err();
    assert!(matches!(error, Error::TooLarge { expected: l, actual, .. } if (l, actual) == (limit, limit + 1)));
}

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
fn views_start_anywhere_and_share_a_buffer() {
    for device in [shared(), open(no_immediates()), open(tiny_chunks())].into_iter().flatten() {
        let kernel = add(&device, 32);
        let words: Vec<u32> = (1..33).collect();
        for (middle, x_at, y_at, len) in [(16, 0, 0, 16), (1, 0, 0, 1), (13, 2, 3, 11), (31, 30, 0, 1), (16, 1, 0, 0)] {
            for swapped in [false, true] {
                let mut buffer = device.upload::<u32>(&words).unwrap();
                let (low, high) = buffer.view_mut(..).unwrap().split_at(middle).unwrap();
                let (x, y, x_start, y_start) = if swapped { (high, low, middle, 0) } else { (low, high, 0, middle) };
                let (x_at, y_at) = if swapped { (y_at, x_at) } else { (x_at, y_at) };
                let (x, mut y) = (x.view(x_at..x_at + len).unwrap(), y);
                let y = y.view_mut(y_at..y_at + len).unwrap();
                let params = Params { len: len as u32, factor: 3, offset: 7 };
                // SAFETY: the body leaves threads beyond `len` idle, and both views have `len` words.
                unsafe { kernel.launch(&device.default_queue(), 1, &params, &mut [Arg::read(x), Arg::write(y)]) }
                    .unwrap();
                let mut expected = words.clone();
                for i in 0..len {
                    expected[y_start + y_at + i] = 3 * words[y_start + y_at + i] + words[x_start + x_at + i] + 7;
                }
                assert_eq!(buffer.to_vec().unwrap(), expected, "{middle} {x_at} {y_at} {len} {swapped}");
                // Within one buffer a copy takes a detour, at other places in its chunks.
                let (low, mut high) = buffer.view_mut(..).unwrap().split_at(middle).unwrap();
                let len = low.len().min(high.len());
                high.view_mut(..len).unwrap().copy_from(low.view(..len).unwrap()).unwrap();
                expected.copy_within(..len, middle);
                assert_eq!(buffer.to_vec().unwrap(), expected, "{middle}, copied");
            }
        }
    }
}

#[test]
fn rings_take_bytes_of_any_length() {
    const PIECE: usize = 64;
    let work = |queue: &Queue, piece: &mut Buffer<u8>, _at: usize, len: usize| {
        if len < 8 {
            return Ok(());
        }
        let (first, mut rest) = piece.as_view_mut().split_at(4)?;
        queue.copy(&first, rest.view_mut(..4)?)
    };
    for device in [shared(), open(tiny_chunks())].into_iter().flatten() {
        for (slots, len) in [1, 3].iter().flat_map(|slots| [0, 1, 7, 64, 73, 256, 737].map(|len| (*slots, len))) {
            let data: Vec<u8> = (0..len).map(|i: usize| (i * 7 + i / 251) as u8).collect();
            let mut expected = data.clone();
            expected.chunks_mut(PIECE).filter(|piece| piece.len() >= 8).for_each(|piece| piece.copy_within(..4, 4));
            let ring = || Ring::new(&device, PIECE, slots, Secrecy::Secret).unwrap();
            let (mut slice, mut seen) = (data.clone(), Vec::new());
            ring().run(&mut slice, work, |piece| seen.extend_from_slice(piece)).unwrap();
            assert!((&slice, &seen) == (&expected, &expected), "{slots} {len}");
            let (mut left, mut seen) = (&data[..], Vec::new());
            let input = |piece: &mut [u8]| Ok::<_, Error>(std::io::Read::read(&mut left, piece).unwrap());
            let done = |piece: &[u8]| {
                seen.extend_from_slice(piece);
                Ok(())
            };
            ring().pump(input, |queue, piece, _, len| work(queue, piece, 0, len), done).unwrap();
            assert_eq!(seen, expected, "{slots} {len}");
            // From the middle of a word of pinned memory on.
            for start in [0, 3] {
                let mut host = device.host_buffer(start + len + 5, Transfer::Both, Secrecy::Secret).unwrap();
                host.fill(0xee);
                let mut part = host.split_off(start);
                let end = part.split_off(len);
                part.copy_from_slice(&data);
                ring().run_pinned(&mut part, work).unwrap();
                assert_eq!(&*part, expected, "{slots} {len} {start}");
                part.join(end).unwrap();
                host.join(part).unwrap();
                assert!(host[..start].iter().chain(&host[start + len..]).all(|byte| *byte == 0xee));
            }
        }
    }
}

/// As where a device was lost, and was opened again.
#[test]
fn a_ring_leaves_memory_of_a_device_opened_before_as_it_is() {
    let options = || Options { cache: Some(Cache::at(None)), ..Options::default() };
    let (Some(before), Some(device)) = (open(options()), open(options())) else { return };
    let mut host = before.host_buffer(100, Transfer::Both, Secrecy::Public).unwrap();
    host.fill(7);
    let ring = Ring::new(&device, 64, 2, Secrecy::Public).unwrap();
    let refused = ring.run_pinned(&mut host, |_, _, _, _| Ok::<_, Error>(()));
    assert!(matches!(refused, Err(Error::WrongDevice { .. })), "{refused:?}");
    assert_eq!(*host, [7; 100]);
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
fn a_kernel_with_more_chunks_than_bindings_is_refused() {
    let Some(device) = open(tiny_chunks()) else { return };
    let bindings: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| Binding::read(name, BindingType::Vec4)).into();
    let source = "@compute @workgroup_size(THREADS) fn five() { _ = a_get(0u) + b_get(0u) + c_get(0u) + d_get(0u) + e_get(0u); }";
    let spec = KernelSpec::new::<(), _>("five", "", bindings, |_, _| {}, move |_| source.into());
    let kernel = Kernel::<()>::new(&device, spec).unwrap();
    let buffer = device.zeros::<u8>(device.info().limits.buffer_bytes as usize).unwrap();
    let mut args: Vec<_> = (0..5).map(|_| Arg::read(&buffer)).collect();
    // SAFETY: the body reads the first word of each buffer.
    let error = unsafe { kernel.launch(&device.default_queue(), 1, &(), &mut args) }.unwrap_err();
    assert!(
        matches!(error, Error::TooLarge { expected: limit, .. } if limit == u64::from(device.info().limits.bindings)),
        "{error}"
    );
    drop(args);
    assert_eq!(buffer.to_vec().unwrap(), vec![0; buffer.len()], "the device goes on");
}

#[test]
fn wide_words_and_int64_work_where_they_are() {
    for device in [shared(), open(tiny_chunks())].into_iter().flatten() {
        let source = |language: Language| {
            let square = match language {
                Language::Wgsl { int64: true } => {
                    "let s = u64(v.x) * u64(v.x); let w = vec2<u32>(u32(s), u32(s >> 32u));"
                }
                _ => "let w = vec2<u32>(v.x * v.x, 0u);",
            };
            format!(
                "@compute @workgroup_size(THREADS) fn square(@builtin(global_invocation_id) id: vec3<u32>) {{
                let v = x_get(id.x); {square} y_set(id.x, vec4<u32>(w, v.yx)); }}"
            )
        };
        let bindings = vec![Binding::read("x", BindingType::Vec2), Binding::write("y", BindingType::Vec4)];
        let spec = KernelSpec::new::<(), _>("square", "", bindings, |_, _| {}, source).threads(8);
        let kernel = Kernel::<()>::new(&device, spec).unwrap();
        let values = [3, 0xffff, 70000, u32::MAX, 5, 6, 7, 8];
        let x: Vec<u32> = values.iter().flat_map(|v| [*v, v ^ 1]).collect();
        let (source, mut target) = (device.upload::<u32>(&x).unwrap(), device.zeros::<u32>(32).unwrap());
        // SAFETY: eight threads on eight words each.
        unsafe { kernel.launch(&device.default_queue(), 1, &(), &mut [Arg::read(&source), Arg::write(&mut target)]) }
            .unwrap();
        let high = |square: u64| if device.info().features.int64 { (square >> 32) as u32 } else { 0 };
        let expected = values.iter().flat_map(|v| {
            let square = u64::from(*v) * u64::from(*v);
            [square as u32, high(square), v ^ 1, *v]
        });
        assert_eq!(target.to_vec().unwrap(), expected.collect::<Vec<_>>());
    }
}

#[test]
fn grids_beyond_one_dimension_reach_every_group() {
    let Some(device) = shared() else { return };
    let source = "
        @compute @workgroup_size(THREADS)
        fn mark(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
            let i = group.x + group.y * groups.x;
            if i < params.groups { y_set(i, y_get(i) + i + 1u); }
        }";
    let bindings = vec![Binding::write("y", BindingType::U32)];
    let spec = KernelSpec::new::<Groups, _>("mark", "", bindings, |_, _| {}, move |_| source.into()).threads(1);
    let kernel = Kernel::<Groups>::new(&device, spec).unwrap();
    for groups in [65535, 65536, 131_071, 200_003] {
        let mut marks = device.zeros::<u32>(groups as usize).unwrap();
        // SAFETY: one word for each group, and groups beyond are idle.
        unsafe {
            kernel.launch(&device.default_queue(), groups.into(), &Groups { groups }, &mut [Arg::write(&mut marks)])
        }
        .unwrap();
        assert!(marks.to_vec().unwrap().into_iter().eq(1..=groups), "{groups} groups");
    }
    let mut marks = device.zeros::<u32>(1).unwrap();
    // SAFETY: the launch is refused.
    let error = unsafe {
        kernel.launch(&device.default_queue(), 1 << 60, &Groups { groups: 0 }, &mut [Arg::write(&mut marks)])
    }
    .unwrap_err();
    assert!(matches!(error, Error::TooLarge { actual, .. } if actual == 1 << 60), "{error}");
}

#[test]
fn a_kernel_that_does_not_compile_says_why() {
    let Some(device) = shared() else { return };
    for source in
        ["fn broken( {", "@compute @workgroup_size(THREADS) fn broken() { let a: u32 = 1.5; }", "fn other() {}"]
    {
        let spec = KernelSpec::new::<(), _>("broken", "on purpose", vec![], |_, _| {}, move |_| source.into());
        match Kernel::<()>::new(&device, spec) {
            Err(Error::Compile { kernel, log, .. }) => assert!(kernel == "broken (on purpose)" && !log.is_empty()),
            other => panic!("expected a compile error, got {other:?}"),
        }
    }
    let (actual, expected) = run_add(&device, &add(&device, 64), 100, 1);
    assert_eq!(actual, expected, "the device goes on");
}

#[test]
fn threads_that_make_one_kernel_at_once_all_get_it() {
    let Some(device) = shared() else { return };
    for round in 0..20 {
        let spec = |text: &'static str| {
            let bindings = vec![Binding::read("x", BindingType::U32), Binding::write("y", BindingType::U32)];
            let source = move |_| format!("// {text} {round}\n{ADD}");
            KernelSpec::new::<Params, _>("add", format!("at once {round}"), bindings, |_, _| {}, source).threads(64)
        };
        let kernels: Vec<Result<Kernel<Params>>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| Kernel::new(&device, spec("one")))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        kernels.iter().for_each(|kernel| assert!(kernel.is_ok(), "round {round}: {kernel:?}"));
        let other = Kernel::<Params>::new(&device, spec("another")).map(drop);
        assert!(matches!(other, Err(Error::Compile { .. })), "round {round}: {other:?}");
    }
}

#[test]
fn bytes_of_any_length_pass_through() {
    for device in [shared(), open(tiny_chunks())].into_iter().flatten() {
        for len in [0, 1, 2, 3, 4, 5, 7, 63, 64, 65, 66, 127, 128, 129, 131] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8 ^ 0x5a).collect();
            let mut buffer = device.upload::<u8>(&bytes).unwrap();
            assert_eq!(buffer.to_vec().unwrap(), bytes);
            assert_eq!(buffer.duplicate().unwrap().to_vec().unwrap(), bytes);
            if len > 2 {
                buffer.view_mut(1..2).unwrap().write(&[1]).unwrap();
                buffer.view_mut(len - 1..).unwrap().write(&[2]).unwrap();
                let mut expected = bytes.clone();
                (expected[1], expected[len - 1]) = (1, 2);
                assert_eq!(buffer.to_vec().unwrap(), expected);
            }
            buffer.clear().unwrap();
            assert_eq!(buffer.to_vec().unwrap(), vec![0; len]);
        }
        let backend = device.backend();
        let (short, mut long) = (device.upload::<u8>(&[9; 5]).unwrap(), device.upload::<u8>(&[7; 12]).unwrap());
        let refused = SpanMut::new(&mut long.memory, 0, 5)
            .and_then(|long| backend.copy(backend.default_queue(), short.as_view().span(), long));
        assert!(matches!(refused, Err(Error::Driver { .. })), "padding would overwrite what follows: {refused:?}");
        assert!(matches!(short.view(3..6), Err(Error::OutOfRange { .. })));
        let refused = SpanMut::new(&mut long.memory, 8, 5);
        assert!(matches!(refused, Err(Error::OutOfRange { .. })));
        assert_eq!(long.to_vec().unwrap(), [7; 12]);
    }
}

#[test]
fn large_data_passes_in_pieces_and_staging_is_reused() {
    let Some(device) = shared() else { return };
    let staging = device.info().limits.staging_bytes as usize / 4;
    // The longer one exceeds the budget of uploads that are under way.
    for (len, rounds) in [(3 * staging + 5, 4), (10 * staging, 1)] {
        let data: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
        for _ in 0..rounds {
            let buffer = device.upload::<u32>(&data).unwrap();
            assert!(buffer.to_vec().unwrap() == data);
        }
    }
}

#[test]
fn much_host_memory_goes_up_in_pieces_whole_and_in_parts() {
    let Some((device, gpu)) = open_gpu(Options { cache: Some(Cache::at(None)), ..Options::default() }) else { return };
    let (piece, live) = (STAGING_BYTES as usize, device.stats().bytes_live);
    let bytes = |len: usize, seed: usize| -> Vec<u8> { (0..len).map(|i| (i * 7 + i / 251 + seed) as u8).collect() };
    let created = || gpu.failures.seen.lock().unwrap().get("create_buffer").copied().unwrap_or(0);
    let cases = [Transfer::Upload, Transfer::Both].into_iter().flat_map(|transfer| {
        let lens = [0, 1, piece - 1, piece, piece + 1, 2 * piece, 2 * piece + 7].map(|len| (transfer, len));
        // More than may be under way at once.
        lens.into_iter().chain([(transfer, STAGING_BUDGET as usize + piece + 5)])
    });
    for ((transfer, len), secrecy) in cases.flat_map(|case| [Secrecy::Public, Secrecy::Secret].map(|s| (case, s))) {
        let case = format!("{len} bytes for {transfer:?}, {secrecy:?}");
        let mut buffer = device.alloc_with::<u8>(len, secrecy).unwrap();
        let mut host = device.host_buffer(len, transfer, secrecy).unwrap();
        host.copy_from_slice(&bytes(len, 1));
        let mut host = buffer.write_pinned(host).unwrap().wait().unwrap();
        assert_eq!((host.len(), host.transfer()), (len, transfer), "{case}");
        assert!(buffer.to_vec().unwrap() == bytes(len, 1), "{case}, whole");
        // In parts, of which those inside are whole words, the first of an odd number of them, and one is empty.
        let mut expected = bytes(len, 2);
        host.copy_from_slice(&expected);
        let first = (len / 5).next_multiple_of(4).min(len);
        let second = (first + 4 * (len / 8 / 4)).min(len);
        let mut parts = vec![host];
        for at in [second, second, first] {
            let rest = parts[0].split_off(at);
            parts.insert(1, rest);
        }
        let mut at = 0;
        let mut back: Vec<HostBuffer> = Vec::new();
        for part in parts {
            let end = at + part.len();
            let part = buffer.view_mut(at..end).unwrap().write_pinned(part).unwrap().wait().unwrap();
            assert_eq!(part.len(), end - at, "{case}");
            at = end;
            match back.first_mut() {
                Some(whole) => whole.join(part).unwrap(),
                None => back.push(part),
            }
        }
        assert!(buffer.to_vec().unwrap() == expected, "{case}, in parts");
        let mut host = back.pop().unwrap();
        assert_eq!(host.len(), len, "{case}");
        // A part in the middle, from bytes of the host that are not aligned to words.
        if len > piece {
            let (skip, at, count) = (3, 4, piece + 4);
            let count = count.min(len - 4) / 4 * 4;
            host.copy_from_slice(&bytes(len, 3));
            let mut middle = host.split_off(skip);
            let end = middle.split_off(count);
            let middle = buffer.view_mut(at..at + count).unwrap().write_pinned(middle).unwrap().wait().unwrap();
            expected[at..at + count].copy_from_slice(&bytes(len, 3)[skip..skip + count]);
            assert!(buffer.to_vec().unwrap() == expected, "{case}, in the middle");
            host.join(middle).unwrap();
            host.join(end).unwrap();
        }
        // What it may be read into.
        let refused = buffer.read_pinned(host);
        match transfer {
            Transfer::Upload => assert!(refused.is_err(), "{case}: {refused:?}"),
            _ => assert!(*refused.unwrap().wait().unwrap() == expected, "{case}, read"),
        }
        assert!(buffer.to_vec().unwrap() == expected, "{case}, afterwards");
    }
    // Once all that is kept is there, a cycle creates nothing, and what is secret is gone.
    let len = 2 * piece + 7;
    device.trim();
    let cycle = |transfer, secrecy| {
        let mut buffer = device.alloc_with::<u8>(len, secrecy).unwrap();
        let mut host = device.host_buffer(len, transfer, secrecy).unwrap();
        host.fill(0xaa);
        let host = buffer.write_pinned(host).unwrap().wait().unwrap();
        drop(host);
        device.sync().unwrap();
    };
    let cycles = || {
        for transfer in [Transfer::Upload, Transfer::Both] {
            cycle(transfer, Secrecy::Secret);
            let kept = device.host_buffer(len, transfer, Secrecy::Public).unwrap();
            assert!(kept.iter().all(|byte| *byte == 0), "{transfer:?}");
            drop(kept);
            for staged in [piece, 7] {
                let staging = device.host_buffer(staged, Transfer::Upload, Secrecy::Public).unwrap();
                assert!(staging.iter().all(|byte| *byte == 0), "staging of {staged} bytes for {transfer:?}");
            }
        }
    };
    cycles();
    let counts = || {
        let pools = [gpu.uploads.bytes(), gpu.downloads.bytes(), gpu.large.bytes()];
        (created(), pools, device.stats().bytes_pooled)
    };
    let before = counts();
    (0..10).for_each(|_| cycles());
    assert_eq!(counts(), before);
    gpu.wait(None).unwrap();
    assert_eq!((gpu.uploading.load(Ordering::Relaxed), device.stats().bytes_live), (0, live));

    // Long host memory that was dropped takes no room from what reads pass through.
    device.trim();
    drop(device.host_buffer(STAGING_BUDGET as usize, Transfer::Upload, Secrecy::Public).unwrap());
    let buffer = device.alloc::<u8>(piece).unwrap();
    let read = || drop(buffer.to_vec().unwrap());
    read();
    let before = created();
    (0..10).for_each(|_| read());
    assert_eq!(created(), before);
}

#[test]
fn long_host_memory_that_is_not_used_any_more_gives_way() {
    let Some((device, gpu)) = open_gpu(Options { cache: Some(Cache::at(None)), ..Options::default() }) else { return };
    let created = || gpu.failures.seen.lock().unwrap().get("create_buffer").copied().unwrap_or(0);
    let take = |bytes: u64| drop(device.host_buffer(bytes as usize, Transfer::Both, Secrecy::Public).unwrap());
    take(STAGING_BUDGET);
    // As much as is kept must have been asked for since.
    (1..STAGING_BUDGET / (2 * STAGING_BYTES)).for_each(|_| take(2 * STAGING_BYTES));
    assert_eq!(gpu.large.bytes(), STAGING_BUDGET);
    take(2 * STAGING_BYTES);
    let before = created();
    (0..10).for_each(|_| take(2 * STAGING_BYTES));
    assert_eq!((created(), gpu.large.bytes()), (before, 2 * STAGING_BYTES));
}

/// An element whose size does not divide that of staging memory, like an extension field's.
struct Wide;

impl Element for Wide {
    type Host = [u32; 12];
    const BYTES: usize = 48;

    fn encode(src: &[Self::Host], dst: &mut [u8]) {
        dst.copy_from_slice(bytemuck::cast_slice(src));
    }

    fn decode(src: &[u8], dst: &mut [Self::Host]) -> Result<()> {
        bytemuck::cast_slice_mut(dst).copy_from_slice(src);
        Ok(())
    }
}

#[test]
fn pieces_of_all_elements_pass_through_short_host_memory() {
    let Some((device, gpu)) = open_gpu(Options { cache: Some(Cache::at(None)), ..Options::default() }) else { return };
    let words: Vec<[u32; 12]> = (0..3 * STAGING_BYTES as u32 / 48).map(|i| [i; 12]).collect();
    assert!(device.upload::<Wide>(&words).unwrap().to_vec().unwrap() == words);
    assert_eq!(gpu.large.bytes(), 0, "elements of 48 bytes");
    // Between words too.
    let bytes: Vec<u8> = (0..3 * STAGING_BYTES).map(|i| (i * 7 + i / 251) as u8).collect();
    let mut buffer = device.zeros::<u8>(bytes.len() + 2).unwrap();
    let mut view = buffer.view_mut(1..=bytes.len()).unwrap();
    view.write(&bytes).unwrap();
    assert!(view.to_vec().unwrap() == bytes);
    assert_eq!(gpu.large.bytes(), 0, "bytes between words");
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

#[test]
fn two_threads_on_one_device_get_their_own_results() {
    for device in [shared(), open(no_immediates())].into_iter().flatten() {
        thread::scope(|scope| {
            for seed in 0..4 {
                let device = &device;
                scope.spawn(move || {
                    let kernel = add(device, 32 << (seed % 2));
                    for round in 0..10 {
                        let (actual, expected) = run_add(device, &kernel, 500 + 777 * seed + round, 5);
                        assert_eq!(actual, expected);
                        let secret = vec![round as u32; 100 + round];
                        let buffer = device.upload_with::<u32>(&secret, Secrecy::Secret).unwrap();
                        let duplicate = buffer.duplicate().unwrap();
                        drop(buffer);
                        assert_eq!(duplicate.to_vec().unwrap(), secret);
                    }
                });
            }
        });
        device.sync().unwrap();
    }
}

#[test]
fn secrets_are_gone_when_their_memory_comes_back() {
    let Some(device) = open(Options { cache: Some(Cache::at(None)), ..Options::default() }) else { return };
    let backend = device.backend();
    let secret = device.upload_with::<u32>(&[0xdead_beef; 64], Secrecy::Secret).unwrap();
    assert_eq!(secret.to_vec().unwrap(), [0xdead_beef; 64]);
    for transfer in [Transfer::Upload, Transfer::Download] {
        let staging: HostBuffer = backend.host_buffer(256, transfer, Secrecy::Public).unwrap();
        assert!(staging.iter().all(|byte| *byte == 0), "{transfer:?}");
        let mut unused = backend.host_buffer(256, transfer, Secrecy::Secret).unwrap();
        unused.fill(0xaa);
        drop(unused);
        let staging = backend.host_buffer(256, transfer, Secrecy::Public).unwrap();
        assert!(staging.iter().all(|byte| *byte == 0), "{transfer:?} that was not used");
    }
    drop(secret);
    assert_eq!(device.alloc::<u32>(64).unwrap().to_vec().unwrap(), [0; 64], "the same block from the pool");
}

#[test]
fn events_are_ordered_and_timed() {
    let Some(device) = shared() else { return };
    let queue = device.queue().unwrap();
    let kernel = add(&device, 64);
    let start = device.default_queue().record().unwrap();
    let (actual, expected) = run_add(&device, &kernel, 1 << 18, 8);
    assert_eq!(actual, expected);
    let end = queue.record().unwrap();
    queue.wait_for(&end).unwrap();
    let elapsed = device.elapsed(&start, &end).unwrap();
    assert!(elapsed > Duration::ZERO && elapsed < Duration::from_secs(60), "{elapsed:?}");
    assert_eq!(device.elapsed(&start, &end).unwrap(), elapsed, "asked twice");
    // More events than there are slots for timestamps.
    let events: Vec<_> = (0..100).map(|_| device.default_queue().record().unwrap()).collect();
    for pair in events.windows(2) {
        assert!(device.elapsed(&pair[0], &pair[1]).unwrap() < Duration::from_secs(60));
    }
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

#[test]
fn pipelines_are_cached_on_disk_and_damage_is_a_miss() {
    let folder = env::temp_dir().join(format!("evariste-wgpu-cache-{}", process::id()));
    let _ = fs::remove_dir_all(&folder);
    let compiled = || {
        let device = open(Options { cache: Some(Cache::at(Some(folder.clone()))), ..Options::default() })?;
        let (actual, expected) = run_add(&device, &add(&device, 64), 100, 1);
        assert_eq!(actual, expected);
        Some((device.stats().compiled, device.stats().cache_hits))
    };
    let files = || -> Vec<PathBuf> { fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect() };
    let Some(first) = compiled() else { return };
    assert_eq!(first, (1, 0));
    let [file] = &files()[..] else { return eprintln!("not tested: the adapter has no caches for pipelines") };
    assert_eq!(compiled(), Some((0, 1)));
    let good = fs::read(file).unwrap();
    // A truncated file, one of another format, and one that is sound but holds what wgpu refuses.
    let key = blake3::Hash::from_hex(file.file_name().unwrap().to_str().unwrap()).unwrap();
    let foreign = Cache::at(Some(folder.clone()));
    let damages: [&dyn Fn(); 3] =
        [&|| fs::write(file, &good[..good.len() / 2]).unwrap(), &|| fs::write(file, b"nonsense").unwrap(), &|| {
            foreign.put(&key, b"not of wgpu's making")
        }];
    for damage in damages {
        damage();
        assert_eq!(compiled(), Some((1, 0)), "damage is a miss");
        assert_eq!(compiled(), Some((0, 1)), "and is replaced");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Runs an ignored test of this file in a process of its own.
fn in_child(name: &str, variables: &[(&str, &str)]) {
    let name = format!("wgpu::tests::{name}");
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
    for result in [super::open(0).map(drop), super::count().map(drop), Device::wgpu(0).map(drop)] {
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
