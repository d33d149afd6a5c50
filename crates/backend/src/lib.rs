#![doc = include_str!("../README.md")]

#[cfg(feature = "cuda")]
pub mod archive;
mod backend;
mod bindings;
mod buffer;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cache;
mod compilations;
mod cpu;
mod crossover;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod error;
#[cfg(all(feature = "fuzz", any(feature = "cuda", feature = "wgpu")))]
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod info;
mod kernel;
mod lazy;
pub mod parallel;
mod params;
mod plans;
mod pool;
mod queue;
mod ring;
mod span;
mod stream;
mod uploads;
mod view;
#[cfg(feature = "wgpu")]
mod wgpu;
mod zeroize;

pub use backend::{Backend, Event, Memory, QueueHandle, Secrecy};
pub use bindings::{Access, Binding, BindingList, BindingType};
pub use buffer::{Buffer, Composite, Element, decode};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub use cache::CACHE_VARIABLE;
pub use compilations::{Compilation, Compilations, Observer, Origin};
pub use cpu::{CpuArg, CpuVectors, cpu_vectors};
pub use crossover::{Crossovers, fastest};
pub use device::{DEVICE_VARIABLE, Device, Discovered, Prepared};
pub use error::{Error, Result};
pub use host::{HostBuffer, HostMemory, Pending, PendingCopy, Transfer};
pub use info::{DeviceId, DeviceInfo, Dialect, Features, Kind, Limits, Stats};
pub use kernel::{Arg, CpuBody, Dispatch, Executable, Kernel, KernelSpec, Language, LazyKernel, loop_turns};
pub use lazy::Lazy;
pub use params::{Constant, ParamField, ParamType, Params};
pub use plans::CACHED_PLANS;
pub use queue::{Queue, Ready};
pub use ring::Ring;
pub use span::{Span, SpanMut};
pub use stream::Stream;
pub use uploads::{HostData, Uploads};
pub use view::{Download, View, ViewMut};
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
