#![doc = include_str!("../README.md")]

#[cfg(feature = "cuda")]
pub mod archive;
mod bindings;
mod buffer;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cache;
mod cached;
mod compilations;
mod cpu;
mod cpu_arg;
mod cpu_vectors;
mod crossover;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
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
mod pool;
mod queue;
mod registry;
mod ring;
mod secrecy;
mod span;
mod spec;
mod stream;
mod transfer;
mod uploads;
mod view;
#[cfg(feature = "wgpu")]
mod wgpu;
mod zeroize;

pub use bindings::{Access, Binding, BindingList, BindingType};
pub use buffer::{Buffer, Composite, Element, decode};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub use cache::CACHE_VARIABLE;
pub use cached::CACHED_PLANS;
pub use compilations::{Compilation, Compilations, Observer, Origin};
pub use cpu_arg::CpuArg;
pub use cpu_vectors::{CpuVectors, cpu_vectors};
pub use crossover::{Crossovers, fastest};
pub use device::{
    Device,
    backend::Backend,
    dispatch::{Arg, Dispatch},
};
pub use error::{Error, Result};
pub use handles::{Event, Executable, Memory, QueueHandle};
pub use host::{HostBuffer, HostMemory, Pending, PendingCopy};
pub use info::{DeviceId, DeviceInfo, Dialect, Features, Kind, Limits, Stats, Transfer};
pub use kernel::{Kernel, LazyKernel, Prepared};
pub use lazy::Lazy;
pub use params::{Constant, ParamField, ParamType, Params};
pub use queue::{Queue, Ready};
pub use registry::{DEVICE_VARIABLE, Discovered};
pub use ring::Ring;
pub use secrecy::Secrecy;
pub use span::{Span, SpanMut};
pub use spec::{CpuBody, KernelSpec, Language, loop_turns};
pub use stream::Stream;
pub use transfer::Download;
pub use uploads::{HostData, Uploads};
pub use view::{View, ViewMut};
pub use zeroize::{Wiped, zeroize_vec};

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
