#![doc = include_str!("../README.md")]

#[cfg(feature = "cuda")]
pub mod archive;
mod bindings;
mod buffer;
mod byte_pipeline;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cache;
mod cached;
mod compilations;
mod cpu;
mod cpu_arg;
mod cpu_threshold;
mod cpu_vectors;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod devices;
mod error;
#[cfg(all(feature = "fuzz", any(feature = "cuda", feature = "wgpu")))]
#[doc(hidden)]
pub mod fuzzing;
mod handles;
mod host;
mod info;
mod kernel;
mod lazy;
pub mod parallel;
mod params;
mod pinned_pipeline;
mod pool;
mod prefetch;
mod queue;
mod registry;
mod secrecy;
mod sharded;
mod slots;
mod span;
mod spec;
mod transfer;
mod unused;
mod view;
#[cfg(feature = "wgpu")]
mod wgpu;
mod zeroize;

pub use buffer::{Buffer, ByteCheck, Element};
pub use byte_pipeline::BytePipeline;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub use cache::CACHE_VARIABLE;
pub use cached::CACHED_PLANS;
pub use compilations::{Compilation, Observer, Origin};
pub use device::Device;
pub use devices::Devices;
pub use error::{Error, Result};
pub use handles::Event;
pub use host::{HostBuffer, Pending};
pub use info::{DeviceId, DeviceInfo, Dialect, Features, Kind, Limits, Stats, Transfer};
pub use kernel::Prepared;
pub use pinned_pipeline::PinnedPipeline;
pub use prefetch::{HostData, Prefetch};
pub use queue::Queue;
pub use registry::{DEVICE_VARIABLE, Discovered};
pub use secrecy::Secrecy;
pub use sharded::{Distribution, Sharded};
pub use transfer::Download;
pub use view::{View, ViewMut};

/// The interface for authors of kernels, plans and backends. It is exempt from semantic versioning: any release may
/// change it.
///
/// [`params!`](crate::params) and [`constants!`](crate::constants) belong to it, as do [`parallel`],
/// `archive`, `nvrtc` and `wgsl`.
pub mod author {
    pub use crate::{
        bindings::{Access, Binding, BindingList, BindingType},
        buffer::{Composite, decode},
        compilations::Compilations,
        cpu_arg::CpuArg,
        cpu_threshold::{CpuThresholds, fastest},
        cpu_vectors::{CpuVectors, cpu_has_carry_chains, cpu_vectors},
        device::{
            backend::Backend,
            dispatch::{Arg, Dispatch, Lent},
        },
        handles::{Executable, Memory, QueueHandle},
        host::{HostMemory, PendingCopy},
        kernel::{Kernel, LazyKernel},
        lazy::Lazy,
        params::{Constant, ParamField, ParamType, Params},
        queue::Ready,
        span::{Span, SpanMut},
        spec::{CpuBody, KernelSpec, Language, loop_iterations},
        unused::without_unused_functions,
        zeroize::{Wiped, zeroize_vec},
    };
}

#[doc(hidden)]
pub use bytemuck;
#[doc(hidden)]
pub use params::is_packed;

/// What the CUDA compiler reports of one kernel, without any GPU.
#[cfg(feature = "cuda")]
pub use cuda::compiler as nvrtc;
/// How the portable backend composes one kernel's WGSL, without any GPU.
#[cfg(feature = "wgpu")]
pub use wgpu::codegen as wgsl;
