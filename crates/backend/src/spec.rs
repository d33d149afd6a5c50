//! Declarations of kernels: once, with one body for each language.

use std::{fmt, sync::Arc};

use crate::{
    bindings::{Binding, BindingList},
    cpu_arg::CpuArg,
    params,
    params::{Constant, ParamField, Params},
};
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use crate::{error::Error, info::DeviceId};

/// A language that kernels are written in, with what the device offers in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// CUDA C++, which NVRTC compiles.
    Cuda,
    /// WGSL, which wgpu compiles.
    Wgsl {
        /// `u64` may be used.
        int64: bool,
    },
}

type CpuFn = dyn for<'a> Fn(&[u8], &'a mut [CpuArg<'a>]) + Send + Sync;

type SourceFn = dyn Fn(Language) -> String + Send + Sync;

type IterationsFn = dyn Fn(&[u8]) -> u64 + Send + Sync;

/// The CPU body of a kernel. One call does the whole launch, on all cores.
#[derive(Clone)]
pub struct CpuBody(Arc<CpuFn>);

impl fmt::Debug for CpuBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CpuBody")
    }
}

impl CpuBody {
    /// Wraps a function of the parameters and the bound buffers, which it gets as `bindings` declares them.
    pub fn new<P: Params, B: BindingList>(
        bindings: B,
        body: impl for<'a> Fn(&P, B::Args<'a>) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |params, mut args| {
            let args = bindings.args(&mut args);
            body(&bytemuck::pod_read_unaligned(params), args);
        }))
    }

    pub(crate) fn run<'a>(&self, params: &[u8], args: &'a mut [CpuArg<'a>]) {
        (self.0)(params, args);
    }
}

/// Returns an upper bound for the iterations of a loop that runs `count` times, with `body` iterations of inner loops
/// each time. Use it for [`KernelSpec::iterations`]. The last check of the condition is one more, and compilers were
/// seen to add another.
pub const fn loop_iterations(count: u64, body: u64) -> u64 {
    count.saturating_mul(body.saturating_add(1)).saturating_add(2)
}

/// A kernel's declaration: its name, its buffers, and a body in each language.
///
/// **CUDA**: `extern "C" __global__ void name(const Params params, BUFFERS(T0, T1, …))`. [`params!`](crate::params)
/// declared `Params`. `BUFFERS` are the bindings in order, under their names, as pointers to these types; a type is
/// `const` if it is only read. Dynamic shared memory is `shared_bytes`.
///
/// A body may have the line `wait_for_previous();`. Every thread must then come to it before it touches memory other
/// than the parameters. Such a kernel is launched while the launch ahead of it ends ("programmatic dependent launch",
/// CUDA C++ Programming Guide). Others start afterwards.
///
/// **WGSL**: `fn name(…)` with `@compute @workgroup_size(THREADS)`. The backend declares `params`, the bindings'
/// accessors, and `const THREADS: u32`. Groups may be laid out in two dimensions. The group's index is
/// `group.x + group.y * groups.x` with `@builtin(workgroup_id) group` and `@builtin(num_workgroups) groups`. It may
/// reach past the last group, where the body must do nothing.
///
/// **CPU**: [`CpuBody`].
#[derive(Clone)]
pub struct KernelSpec {
    /// The entry point in both sources.
    pub name: &'static str,
    /// Distinguishes this kernel from others of its name, such as `bls12-381-fr/8`. Kernels of one name and variant
    /// have the same text. Messages and lists show it.
    pub variant: String,
    /// The buffers, in order.
    pub bindings: Vec<Binding>,
    /// The threads of a workgroup.
    pub threads: u32,
    /// The memory of a workgroup in bytes: dynamic shared memory in CUDA, the sum of the `var<workgroup>` declarations
    /// in WGSL.
    pub shared_bytes: u32,
    /// The fields of the parameters.
    pub params: &'static [ParamField],
    /// Constants that the sources see.
    pub constants: Vec<Constant>,
    /// The body for the CPU.
    pub cpu: CpuBody,
    source: Arc<SourceFn>,
    pub(crate) iterations: Option<Arc<IterationsFn>>,
    /// Launches read and write parts of one buffer.
    pub(crate) within_a_buffer: bool,
    /// Launches get parts of buffers.
    pub(crate) of_parts: bool,
}

impl KernelSpec {
    /// Declares a kernel with parameters `P`. The body for the CPU gets the buffers in the shape in which `bindings`
    /// declares them ([`BindingList`]): an array for an array, and so on. `source` gives the text in a language,
    /// complete but for the declarations of the backend ([`KernelSpec`]). It is called only for the language of the
    /// device.
    pub fn new<P: Params, B: BindingList>(
        name: &'static str,
        variant: impl Into<String>,
        bindings: B,
        cpu: impl for<'a> Fn(&P, B::Args<'a>) + Send + Sync + 'static,
        source: impl Fn(Language) -> String + Send + Sync + 'static,
    ) -> Self {
        const {
            assert!(params::is_packed::<P>(), "parameters are 32-bit words");
        }
        let list = bindings.list();
        Self::declare(name, variant.into(), list, P::FIELDS, CpuBody::new(bindings, cpu), Arc::new(source))
    }

    fn declare(
        name: &'static str,
        variant: String,
        bindings: Vec<Binding>,
        params: &'static [ParamField],
        cpu: CpuBody,
        source: Arc<SourceFn>,
    ) -> Self {
        Self {
            name,
            variant,
            bindings,
            threads: 256,
            shared_bytes: 0,
            params,
            constants: Vec::new(),
            cpu,
            source,
            iterations: None,
            within_a_buffer: false,
            of_parts: false,
        }
    }

    /// Replaces the kernel's text, and keeps all else that it declares.
    #[must_use]
    pub fn with_source(self, source: impl Fn(Language) -> String + Send + Sync + 'static) -> Self {
        Self { source: Arc::new(source), ..self }
    }

    /// Sets the threads of a workgroup (256 unless set).
    #[must_use]
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the workgroup memory in bytes (none unless set).
    #[must_use]
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Adds constants that the sources see, which [`constants!`](crate::constants) declares (there are none unless
    /// added).
    #[must_use]
    pub fn constants(mut self, constants: &[Constant]) -> Self {
        self.constants.extend_from_slice(constants);
        self
    }

    /// Sets an upper bound for the loop iterations of one thread in WGSL with these parameters. Nested loops count, and
    /// so does the last check of each condition. Without a bound, a kernel declares none.
    ///
    /// # Panics
    /// If the fields of `P` are not those that the kernel declares.
    #[must_use]
    pub fn iterations<P: Params>(mut self, iterations: impl Fn(&P) -> u64 + Send + Sync + 'static) -> Self {
        self.expect_fields(P::FIELDS);
        self.iterations = Some(Arc::new(move |params| iterations(&bytemuck::pod_read_unaligned(params))));
        self
    }

    /// # Panics
    /// If the parameters have other fields.
    pub(crate) fn expect_fields(&self, fields: &[ParamField]) {
        assert_eq!(fields, self.params, "parameters of kernel {}", self.name);
    }

    /// Declares that launches read and write parts of one buffer, as those of trees do.
    /// [`Device::prepare`](crate::Device::prepare) then makes what wgpu needs for them too.
    #[must_use]
    pub fn within_a_buffer(mut self) -> Self {
        self.within_a_buffer = true;
        self
    }

    /// Declares that launches get parts of buffers, which start anywhere, and no two of one buffer.
    /// [`Device::prepare`](crate::Device::prepare) then makes what wgpu needs for them too.
    #[must_use]
    pub fn of_parts(mut self) -> Self {
        self.of_parts = true;
        self
    }

    /// Returns whether the kernel declares a bound for its loop iterations ([`KernelSpec::iterations`]).
    pub fn declares_iterations(&self) -> bool {
        self.iterations.is_some()
    }

    /// Returns the size of the parameters in bytes.
    pub fn params_bytes(&self) -> usize {
        4 * params::words(self.params)
    }

    /// Returns the kernel's own text in a language, without what the backend declares.
    pub fn source(&self, language: Language) -> String {
        (self.source)(language)
    }

    /// Returns the kernel's name and variant, for messages.
    pub fn label(&self) -> String {
        match self.variant.as_str() {
            "" => self.name.to_owned(),
            variant => format!("{} ({variant})", self.name),
        }
    }

    /// Returns the text in CUDA C++, after the declarations of parameters, constants and buffers.
    pub fn cuda_source(&self) -> String {
        let (constants, buffers) = (params::cuda_constants(&self.constants), params::cuda_buffers(&self.bindings));
        format!("{}\n{constants}{buffers}#line 1\n{}", params::cuda(self.params), self.source(Language::Cuda))
    }
}

impl fmt::Debug for KernelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelSpec")
            .field("name", &self.name)
            .field("variant", &self.variant)
            .field("bindings", &self.bindings)
            .field("threads", &self.threads)
            .field("shared_bytes", &self.shared_bytes)
            .finish_non_exhaustive()
    }
}

/// Refuses a kernel of whose name and variant the device has one with another text.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(crate) fn two_texts(spec: &KernelSpec, device: DeviceId) -> Error {
    let log = "there is a kernel of this name and variant with another text: variants must tell texts apart".to_owned();
    Error::Compile { kernel: spec.label(), device: device.to_string(), log }
}
