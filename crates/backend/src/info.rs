//! The description of a device: its name, its limits and features, and its counters.

use std::{fmt, time::Duration};

/// One of the three backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The host's processor cores.
    Cpu,
    /// NVIDIA GPUs through CUDA.
    Cuda,
    /// Any GPU through Vulkan, Metal or DirectX 12.
    Wgpu,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Cpu => "cpu",
            Kind::Cuda => "cuda",
            Kind::Wgpu => "wgpu",
        })
    }
}

/// The name of a device: `cpu`, `cuda:0`, `wgpu:1`. Indices count the devices of one backend from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId {
    /// The backend.
    pub kind: Kind,
    /// The number of the device among those of the backend, from 0 on.
    pub index: usize,
}

impl DeviceId {
    /// The one CPU device.
    pub const CPU: Self = Self { kind: Kind::Cpu, index: 0 };

    /// The forms that [`str::parse`] understands.
    pub const EXPECTED: &'static str = "cpu, cuda, cuda:N, wgpu or wgpu:N";
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Cpu => f.write_str("cpu"),
            kind => write!(f, "{kind}:{}", self.index),
        }
    }
}

/// The directions of copies that host memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// Copies from the host to the device; reads into it are refused. Reading such memory on the host may be slow.
    /// Through wgpu, parts of it and more than 8 MiB are copied once more on their way up.
    Upload,
    /// Copies from the device to the host. Copies the other way work too, as with `Both`.
    Download,
    /// Copies in both directions. Some devices copy such memory once more on its way up.
    Both,
}

/// The name, limits and features of a device. Algorithms plan by these, never by [`Kind`] or by names in it, so that
/// they work with a new backend.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceInfo {
    /// The name by which it is opened.
    pub id: DeviceId,
    /// Its vendor's name for it.
    pub name: String,
    /// The version of the driver or the API.
    pub driver: String,
    /// The target that kernels are compiled for, such as `sm_90`, `vulkan`, `x86_64`.
    pub architecture: String,
    /// The vendor's unique identifier, where there is one.
    pub uuid: Option<[u8; 16]>,
    /// Memory of the device in bytes, where it is known.
    pub memory_bytes: Option<u64>,
    /// The number of units that run workgroups at once: streaming multiprocessors, or CPU threads.
    pub parallelism: u32,
    /// Hard limits.
    pub limits: Limits,
    /// Optional abilities.
    pub features: Features,
}

/// The language of a device's kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Bodies in Rust, which do a whole launch.
    Rust,
    /// CUDA C++.
    Cuda,
    /// WGSL.
    Wgsl,
}

/// Architectures of GPUs whose memory is GDDR or shared with the processor's.
const SLOW_MEMORY: [&str; 8] = ["sm_75", "sm_86", "sm_87", "sm_88", "sm_89", "sm_110", "sm_120", "sm_121"];

impl DeviceInfo {
    /// Returns whether a workgroup is one thread, as on a processor. Then a kernel's body divides the work of a launch
    /// itself, and data is in the host's memory already.
    pub fn is_processor(&self) -> bool {
        self.limits.workgroup_threads == 1
    }

    /// Returns whether the host's processor does the device's work, as itself or by emulating a GPU.
    pub fn runs_on_host(&self) -> bool {
        self.features.software || self.id.kind == Kind::Cpu
    }

    /// Returns what the device's kernels are written in.
    pub fn dialect(&self) -> Dialect {
        match self.id.kind {
            Kind::Cuda => Dialect::Cuda,
            Kind::Wgpu => Dialect::Wgsl,
            // What runs CUDA's sources on the host has workgroups.
            Kind::Cpu if self.is_processor() => Dialect::Rust,
            Kind::Cpu => Dialect::Cuda,
        }
    }

    /// Returns whether memory is slow compared with the arithmetic of the device. Then it does not pay to read more in
    /// order to compute less. It is known of NVIDIA's GPUs only.
    pub fn has_slow_memory(&self) -> bool {
        SLOW_MEMORY.contains(&self.architecture.as_str())
    }
}

/// Hard limits of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bytes of the largest single allocation.
    pub buffer_bytes: u64,
    /// How many buffers one kernel can bind.
    pub bindings: u32,
    /// Memory that a workgroup shares, in bytes. On a CPU, the cache of one thread.
    pub workgroup_bytes: u32,
    /// Cache that the whole device shares, in bytes. Data that fits may be processed in short runs.
    pub cache_bytes: u64,
    /// The most threads that a workgroup may have; 1 on a CPU.
    pub workgroup_threads: u32,
    /// Bytes of the pieces in which host data passes through staging memory.
    pub staging_bytes: u64,
    /// The limit for loop iterations of one thread in a launch, including nested loops, if there is one. Beyond it,
    /// Mesa's llvmpipe silently ends all loops. Launches that may exceed it are refused
    /// ([`Kernel::launch`](crate::author::Kernel::launch)).
    pub loop_iterations: Option<u32>,
}

/// Optional abilities of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Kernels may use 64-bit integers.
    pub int64: bool,
    /// Queues run side by side, so that copies overlap with kernels.
    pub queues: bool,
    /// A workgroup that has started runs on until it ends, so that another one may wait for its results. On a CPU,
    /// where a kernel's body does the whole launch, nothing has to wait.
    pub forward_progress: bool,
    /// The device is a GPU emulated by the processor; [`crate::Device::best`] does not choose it.
    pub software: bool,
}

/// Counters of a device since it was opened.
///
/// The difference between two readings shows what code between them did. Tests assert on it, and users tune by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Kernels launched.
    pub launches: u64,
    /// Copies from host to device.
    pub writes: u64,
    /// Copies from device to host.
    pub reads: u64,
    /// Bytes copied from host to device.
    pub bytes_up: u64,
    /// Bytes copied from device to host.
    pub bytes_down: u64,
    /// Bytes of device memory held by live buffers.
    pub bytes_live: u64,
    /// Largest value that `bytes_live` had.
    pub bytes_peak: u64,
    /// Bytes that the pool keeps for later buffers.
    pub bytes_pooled: u64,
    /// Kernels compiled from source, by any call or thread.
    pub compiled: u64,
    /// Kernels loaded from the disk cache or from an archive of kernels compiled ahead.
    pub cache_hits: u64,
    /// Total time for compiling kernels, summed over threads.
    pub compile_time: Duration,
    /// Total time for loading kernels from the disk cache, summed over threads.
    pub load_time: Duration,
}
