//! The GPUs of the machine, their order, and the features asked of them.

use std::{cmp::Reverse, task};

use crate::{
    error::{Error, Result},
    info::{DeviceId, Kind},
};

/// The largest binding that is asked for: with 1 GiB, word indices of a whole chunk fit any shader compiler's 32-bit
/// byte offsets.
const MAX_CHUNK_BYTES: u64 = 1 << 30;

/// Storage buffers of one kernel that are asked for. Some drivers offer a million.
const MAX_BINDINGS: u32 = 128;

/// An adapter that can run kernels.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) adapter: wgpu::Adapter,
    pub(super) info: wgpu::AdapterInfo,
}

/// A device that was opened, with what it was opened from.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) id: DeviceId,
    pub(super) info: wgpu::AdapterInfo,
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) memory_bytes: Option<u64>,
}

/// All adapters, best first: discrete, integrated and other hardware, then emulations by the processor. A GPU that
/// several drivers or APIs offer is there once.
pub(super) fn list() -> Result<Vec<Found>> {
    let apis = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: apis,
        flags: wgpu::InstanceFlags::empty().with_env(),
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let mut found: Vec<Found> = ready(instance.enumerate_adapters(apis))
        .into_iter()
        .filter(|adapter| {
            let flags = adapter.get_downlevel_capabilities().flags;
            flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS)
        })
        .map(|adapter| Found { info: adapter.get_info(), adapter })
        .collect();
    order(&mut found, |found| &found.info);
    if found.is_empty() {
        return Err(Error::Unavailable {
            backend: Kind::Wgpu,
            reason: "no Vulkan, Metal or DirectX 12 driver was found; install the driver of the GPU's vendor, or an \
                     emulation by the processor (Debian and Ubuntu: mesa-vulkan-drivers)"
                .into(),
        });
    }
    Ok(found)
}

/// Opens adapter number `index` with all the limits and abilities of it that kernels use.
pub(super) fn open(index: usize) -> Result<Opened> {
    let id = DeviceId { kind: Kind::Wgpu, index };
    let mut found = list()?;
    if index >= found.len() {
        return Err(Error::NoSuchDevice { actual: id, available: found.len() });
    }
    let Found { adapter, info } = found.swap_remove(index);
    let required_features = adapter.features()
        & (wgpu::Features::SHADER_INT64
            | wgpu::Features::IMMEDIATES
            | wgpu::Features::PIPELINE_CACHE
            | wgpu::Features::TIMESTAMP_QUERY
            | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);
    let opened = ready(adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("evariste"),
        required_features,
        required_limits: wanted_limits(&adapter.limits(), required_features),
        // Freed memory is kept by our own pool; the driver's blocks can be small.
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        ..wgpu::DeviceDescriptor::default()
    }));
    let (device, queue) =
        opened.map_err(|error| Error::Driver { device: id, call: "request_device", reason: error.to_string() })?;
    Ok(Opened { id, memory_bytes: memory_bytes(&adapter), info, device, queue })
}

/// The default limits as far as the adapter has them, and the adapter's own where kernels profit from more.
fn wanted_limits(adapter: &wgpu::Limits, features: wgpu::Features) -> wgpu::Limits {
    let immediates = features.contains(wgpu::Features::IMMEDIATES);
    wgpu::Limits {
        max_buffer_size: adapter.max_buffer_size,
        max_storage_buffer_binding_size: adapter.max_storage_buffer_binding_size,
        max_storage_buffers_per_shader_stage: adapter.max_storage_buffers_per_shader_stage.min(MAX_BINDINGS),
        max_buffers_and_acceleration_structures_per_shader_stage: adapter
            .max_buffers_and_acceleration_structures_per_shader_stage,
        max_compute_workgroup_storage_size: adapter.max_compute_workgroup_storage_size,
        max_compute_invocations_per_workgroup: adapter.max_compute_invocations_per_workgroup,
        max_compute_workgroup_size_x: adapter.max_compute_workgroup_size_x,
        max_compute_workgroups_per_dimension: adapter.max_compute_workgroups_per_dimension,
        max_immediate_size: if immediates { adapter.max_immediate_size } else { 0 },
        ..wgpu::Limits::default().or_worse_values_from(adapter)
    }
}

/// Bytes of the chunks that memory is made of: a power of two that one buffer and one binding can have.
pub(super) fn chunk_bytes(limits: &wgpu::Limits) -> u64 {
    let most = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(MAX_CHUNK_BYTES);
    1 << most.max(1 << 16).ilog2()
}

/// `LP_MAX_TGSI_LOOP_ITERATIONS` of Mesa's llvmpipe: it counts the iterations of all loops of a thread together, and
/// ends every loop when they are used up.
const LLVMPIPE_LOOP_ITERATIONS: u32 = 65_535;

/// [`crate::Limits::loop_iterations`] of an adapter.
pub(super) fn loop_iterations(info: &wgpu::AdapterInfo) -> Option<u32> {
    let names = [&info.driver, &info.name];
    names.iter().any(|name| name.contains("llvmpipe")).then_some(LLVMPIPE_LOOP_ITERATIONS)
}

/// Sorts adapters, best first, and leaves out those that are another's GPU through another driver or API.
fn order<T>(found: &mut Vec<T>, info: impl Fn(&T) -> &wgpu::AdapterInfo) {
    found.sort_by_key(|adapter| (kind_rank(info(adapter)), Reverse(api_rank(info(adapter)))));
    let mut kept: Vec<T> = Vec::with_capacity(found.len());
    for adapter in found.drain(..) {
        if !kept.iter().any(|better| same_gpu(info(better), info(&adapter))) {
            kept.push(adapter);
        }
    }
    *found = kept;
}

fn kind_rank(info: &wgpu::AdapterInfo) -> u32 {
    match info.device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

fn api_rank(info: &wgpu::AdapterInfo) -> u32 {
    match info.backend {
        wgpu::Backend::Metal => 3,
        wgpu::Backend::Vulkan => 2,
        wgpu::Backend::Dx12 => 1,
        _ => 0,
    }
}

/// Whether two adapters are one GPU. Two GPUs of one model differ in their place on the bus, which not every API tells.
/// Within one API, adapters without a place are different GPUs.
fn same_gpu(a: &wgpu::AdapterInfo, b: &wgpu::AdapterInfo) -> bool {
    if (a.vendor, a.device) != (b.vendor, b.device) {
        return false;
    }
    if a.device_pci_bus_id.is_empty() || b.device_pci_bus_id.is_empty() {
        return a.backend != b.backend;
    }
    a.device_pci_bus_id.eq_ignore_ascii_case(&b.device_pci_bus_id)
}

/// The largest memory that is local to the GPU, where the API tells.
#[cfg(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn memory_bytes(adapter: &wgpu::Adapter) -> Option<u64> {
    /// `VK_MEMORY_HEAP_DEVICE_LOCAL_BIT`.
    const DEVICE_LOCAL: u32 = 1;
    // SAFETY: the driver's handles are only read from, and not kept.
    let adapter = unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }?;
    let instance = adapter.shared_instance().raw_instance();
    // SAFETY: the physical device belongs to this instance, and both live as long as `adapter`.
    let memory = unsafe { instance.get_physical_device_memory_properties(adapter.raw_physical_device()) };
    let heaps = memory.memory_heaps.get(..memory.memory_heap_count as usize)?;
    heaps.iter().filter(|heap| heap.flags.as_raw() & DEVICE_LOCAL != 0).map(|heap| heap.size).max()
}

#[cfg(not(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn memory_bytes(_: &wgpu::Adapter) -> Option<u64> {
    None
}

/// The result of a future of wgpu's. Outside of browsers they are ready at once.
pub(super) fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = task::Context::from_waker(task::Waker::noop());
    loop {
        if let task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(kind: wgpu::DeviceType, api: wgpu::Backend, device: u32, bus: &str) -> wgpu::AdapterInfo {
        let mut info = wgpu::AdapterInfo::new(kind, api);
        (info.vendor, info.device, info.device_pci_bus_id) = (0x10de, device, bus.to_owned());
        info
    }

    #[test]
    fn hardware_comes_first_and_one_gpu_comes_once() {
        use wgpu::{Backend::*, DeviceType::*};
        let mut found = vec![
            adapter(Cpu, Vulkan, 0, ""),
            adapter(IntegratedGpu, Dx12, 3, ""),
            adapter(DiscreteGpu, Dx12, 1, ""),
            adapter(IntegratedGpu, Vulkan, 3, "0000:00:02.0"),
            adapter(DiscreteGpu, Vulkan, 1, "0000:01:00.0"),
            adapter(DiscreteGpu, Vulkan, 1, "0000:02:00.0"),
            adapter(DiscreteGpu, Vulkan, 1, "0000:02:00.0"),
        ];
        order(&mut found, |info| info);
        let order: Vec<_> = found.iter().map(|i| (i.device_type, i.backend, &*i.device_pci_bus_id)).collect();
        assert_eq!(
            order,
            [
                (DiscreteGpu, Vulkan, "0000:01:00.0"),
                (DiscreteGpu, Vulkan, "0000:02:00.0"),
                (IntegratedGpu, Vulkan, "0000:00:02.0"),
                (Cpu, Vulkan, ""),
            ]
        );
    }

    #[test]
    fn llvmpipe_has_a_limit_of_turns() {
        let mut info = adapter(wgpu::DeviceType::Cpu, wgpu::Backend::Vulkan, 0, "");
        assert_eq!(loop_iterations(&info), None);
        info.driver = "llvmpipe".into();
        assert_eq!(loop_iterations(&info), Some(LLVMPIPE_LOOP_ITERATIONS));
    }

    #[test]
    fn chunks_are_powers_of_two_within_the_limits() {
        let limits = |binding, buffer| wgpu::Limits {
            max_storage_buffer_binding_size: binding,
            max_buffer_size: buffer,
            ..wgpu::Limits::default()
        };
        assert_eq!(chunk_bytes(&limits((128 << 20) - 4, 1 << 40)), 64 << 20);
        assert_eq!(chunk_bytes(&limits(128 << 20, 1 << 40)), 128 << 20);
        assert_eq!(chunk_bytes(&limits((1 << 31) - 4, (1 << 31) - 1)), 1 << 30);
    }
}
