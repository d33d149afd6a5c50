//! Kernels and their pipelines.

use std::{env, fs, path::PathBuf, process, thread};

use super::*;
use super::{
    super::context::Options,
    super::program::{Program, Variant},
};
use crate::{
    bindings::{Binding, BindingType},
    cache::Cache,
    device::dispatch::Arg,
    error::{Error, Result},
    info::Transfer,
    kernel::Kernel,
    secrecy::Secrecy,
    spec::{KernelSpec, Language},
};

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
