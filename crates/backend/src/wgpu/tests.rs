//! Everything here runs on whatever adapter is there, Mesa's software Vulkan included. Without any, each test asserts
//! that this is said as it should be, and prints so.

use std::sync::{Arc, OnceLock};

use super::{Wgpu, context::Options, gpu::Gpu};
use crate::{
    bindings::{Binding, BindingType},
    cache::Cache,
    device::Device,
    device::dispatch::Arg,
    error::Error,
    info::Kind,
    kernel::Kernel,
    params,
    spec::KernelSpec,
};

mod failures;
mod kernels;
mod transfers;

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
