//! Kernels: declared once, with one body for each backend.

use std::{any::Any, fmt, marker::PhantomData, sync::Arc};

use crate::{
    Constant, CpuArg, Device, Element, Error, Lazy, Memory, ParamField, Params, Queue, Result, Secrecy, Span, SpanMut,
    View, ViewMut,
    backend::shared_handle,
    bindings::{Access, Binding, BindingList, BindingType},
    params,
};

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
type TurnsFn = dyn Fn(&[u8]) -> u64 + Send + Sync;

/// The body that runs on the host: one call does the whole launch, on all cores.
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

/// Returns the turns of a loop that goes `count` times through a body that takes `body` turns of loops itself, for
/// [`KernelSpec::turns`]. The last look at the condition is one more, and compilers were seen to add another.
pub const fn loop_turns(count: u64, body: u64) -> u64 {
    count.saturating_mul(body.saturating_add(1)).saturating_add(2)
}

/// A kernel's declaration: its name, its buffers, and a body in each language.
///
/// **CUDA**: `extern "C" __global__ void name(const Params params, BUFFERS(T0, T1, …))`, with `Params` what
/// [`params!`](crate::params) declared and `BUFFERS` the bindings in order, under their names, as pointers to these types, which are
/// `const` where they are only read. Dynamic shared memory is `shared_bytes`. A body with the line `wait_for_previous();`, which
/// every thread must then come to before it touches memory other than the parameters, is launched while the launch ahead of it
/// ends ("programmatic dependent launch", CUDA C++ Programming Guide); others start afterwards.
///
/// **WGSL**: `fn name(…)` with `@compute @workgroup_size(THREADS)`. The backend declares `params`, the bindings' accessors, and
/// `const THREADS: u32`. Groups may be laid out in two dimensions: the group's index is
/// `group.x + group.y * groups.x` with `@builtin(workgroup_id) group` and `@builtin(num_workgroups) groups`, and may
/// reach past the last group, where the body must do nothing.
///
/// **CPU**: [`CpuBody`].
#[derive(Clone)]
pub struct KernelSpec {
    /// The entry point in both sources.
    pub name: &'static str,
    /// What distinguishes this instance of the kernel from others of its name, such as `bls12-381-fr/8`: kernels of one name and
    /// variant have the same text. For messages and lists.
    pub variant: String,
    /// The buffers, in order.
    pub bindings: Vec<Binding>,
    /// How many threads a workgroup has.
    pub threads: u32,
    /// Bytes of memory that a workgroup has: dynamic shared memory in CUDA, the sum of the `var<workgroup>` declarations in
    /// WGSL.
    pub shared_bytes: u32,
    /// The fields of the parameters.
    pub params: &'static [ParamField],
    /// Constants that the sources see.
    pub constants: Vec<Constant>,
    /// The body for the CPU.
    pub cpu: CpuBody,
    source: Arc<SourceFn>,
    turns: Option<Arc<TurnsFn>>,
}

impl KernelSpec {
    /// Declares a kernel with parameters `P`. The body for the CPU gets the buffers in the shape in which `bindings` declares them:
    /// as an array for an array, and so on ([`BindingList`]). `source` gives the text in a language, complete but for what
    /// [`KernelSpec`] says the backend declares; it is called only for the language of the device.
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
        Self {
            name,
            variant: variant.into(),
            bindings: bindings.list(),
            threads: 256,
            shared_bytes: 0,
            params: P::FIELDS,
            constants: Vec::new(),
            cpu: CpuBody::new(bindings, cpu),
            source: Arc::new(source),
            turns: None,
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

    /// Adds constants that the sources see, which [`constants!`](crate::constants) declares (there are none unless added).
    #[must_use]
    pub fn constants(mut self, constants: &[Constant]) -> Self {
        self.constants.extend_from_slice(constants);
        self
    }

    /// Sets the most turns that the loops of one thread take in WGSL with these parameters, loops within loops and the last
    /// look at each condition included (few unless set).
    ///
    /// # Panics
    /// If `P` has not the fields that the kernel was declared with.
    #[must_use]
    pub fn turns<P: Params>(mut self, turns: impl Fn(&P) -> u64 + Send + Sync + 'static) -> Self {
        assert_eq!(P::FIELDS, self.params, "parameters of kernel {}", self.name);
        self.turns = Some(Arc::new(move |params| turns(&bytemuck::pod_read_unaligned(params))));
        self
    }

    /// Returns whether [`KernelSpec::turns`] says how many turns loops take.
    pub fn declares_turns(&self) -> bool {
        self.turns.is_some()
    }

    /// Refuses parameters with which the loops of a thread may take more turns than a device allows, before the kernel is
    /// compiled for it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the loops of a thread may take more turns with these parameters than
    /// [`Limits::loop_turns`](crate::Limits::loop_turns).
    pub fn expect_fits<P: Params>(&self, device: &Device, params: &P) -> Result<()> {
        let info = device.info();
        let (Some(limit), Some(turns)) = (info.limits.loop_turns, &self.turns) else { return Ok(()) };
        let (limit, actual) = (limit.into(), turns(bytemuck::bytes_of(params)));
        if actual <= limit {
            return Ok(());
        }
        Err(Error::TooLarge {
            what: "the work of one thread, in turns of its loops,",
            device: info.id,
            expected: limit,
            actual,
        })
    }

    /// Returns the size of the parameters in bytes.
    pub fn params_bytes(&self) -> usize {
        4 * params::words(self.params)
    }

    /// Returns the kernel's own text in a language, without what the backend declares.
    pub fn source(&self, language: Language) -> String {
        (self.source)(language)
    }

    /// Makes the kernel ready, if the device's workgroups have its threads and memory.
    pub(crate) fn compile(&self, device: &Device) -> Result<Executable> {
        let info = device.info();
        let check = |what, limit: u32, actual: u32| {
            if actual <= limit {
                return Ok(());
            }
            Err(Error::TooLarge { what, device: info.id, expected: limit.into(), actual: actual.into() })
        };
        if info.limits.workgroup_threads > 1 {
            check("workgroup", info.limits.workgroup_threads, self.threads)?;
            check("workgroup memory", info.limits.workgroup_bytes, self.shared_bytes)?;
        }
        device.backend().compile(self)
    }

    /// Returns the kernel's name and variant, for messages.
    pub fn label(&self) -> String {
        match self.variant.as_str() {
            "" => self.name.to_owned(),
            variant => format!("{} ({variant})", self.name),
        }
    }

    /// Returns the text in CUDA C++, behind the declarations of the parameters, the constants and the buffers.
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

shared_handle! {
    /// A kernel ready to launch on one device.
    Executable
}

/// One buffer of a launch, or a view of one.
#[derive(Debug)]
pub struct Arg<'a> {
    device: &'a Device,
    span: ArgSpan<'a>,
    secrecy: Secrecy,
}

#[derive(Debug)]
pub(crate) enum ArgSpan<'a> {
    Read(Span<'a>),
    Write(SpanMut<'a>),
}

impl<'a> Arg<'a> {
    /// Binds elements that the kernel only reads.
    pub fn read<T: Element>(view: impl Into<View<'a, T>>) -> Self {
        let view = view.into();
        Self { device: view.device(), span: ArgSpan::Read(view.span()), secrecy: view.secrecy() }
    }

    /// Binds elements that the kernel writes, and may read.
    pub fn write<T: Element>(view: impl Into<ViewMut<'a, T>>) -> Self {
        let view = view.into();
        let (device, secrecy) = (view.device(), view.secrecy());
        Self { device, span: ArgSpan::Write(view.into_span()), secrecy }
    }

    /// Returns how the launch may use the elements.
    pub fn access(&self) -> Access {
        match self.span {
            ArgSpan::Read(_) => Access::Read,
            ArgSpan::Write(_) => Access::Write,
        }
    }

    /// Returns whether the buffer is zeroed when it is dropped.
    pub fn secrecy(&self) -> Secrecy {
        self.secrecy
    }

    /// Returns the bytes to bind, and whose memory they are of.
    pub fn span(&self) -> Span<'_> {
        match &self.span {
            ArgSpan::Read(span) => *span,
            ArgSpan::Write(span) => span.as_span(),
        }
    }

    /// Returns the whole allocation, of which the kernel gets [`Arg::span`].
    pub fn memory(&self) -> &Memory {
        match &self.span {
            ArgSpan::Read(span) => span.memory(),
            ArgSpan::Write(span) => span.memory(),
        }
    }

    /// The bytes, with the access they are given for.
    pub(crate) fn span_mut(&mut self) -> ArgSpan<'_> {
        match &mut self.span {
            ArgSpan::Read(span) => ArgSpan::Read(*span),
            ArgSpan::Write(span) => ArgSpan::Write(span.reborrow()),
        }
    }

    /// Refuses a part of a buffer that is not whole words of its binding, which kernels read and write as a whole.
    fn expect_words(&self, binding: &Binding) -> Result<()> {
        let span = self.span();
        if span.is_whole() || binding.binding_type == BindingType::Bytes {
            return Ok(());
        }
        let (word, end) = (binding.binding_type.bytes(), span.at() + span.bytes());
        if span.at().is_multiple_of(word) && (end.is_multiple_of(word) || end == span.memory().bytes()) {
            return Ok(());
        }
        Err(Error::Unaligned { what: "a kernel argument", expected: word, offset: span.at(), count: span.bytes() })
    }
}

/// A launch, as a backend gets it: already checked against the kernel's declaration.
#[derive(Debug)]
pub struct Dispatch<'a, 'm> {
    /// The kernel.
    pub executable: &'a Executable,
    /// Its declaration.
    pub spec: &'a KernelSpec,
    /// The parameters, of the declared size.
    pub params: &'a [u8],
    /// The buffers, in the declared order and with the declared access.
    pub args: &'a mut [Arg<'m>],
    /// Workgroups, at least 1.
    pub groups: u64,
}

/// A kernel ready to launch with parameters `P`.
///
/// Kernels are wrapped in safe functions that check lengths next to the launch; see `docs/adding-a-kernel.md`.
pub struct Kernel<P> {
    device: Device,
    spec: KernelSpec,
    executable: Executable,
    params: PhantomData<fn(P)>,
}

impl<P: Params> Kernel<P> {
    /// Makes a kernel ready on a device.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the device has fewer threads, less memory or fewer bindings for a workgroup than the kernel takes;
    /// [`Error::Compile`] if the compiler or the driver refuses its text, or the device has a kernel of the same name and variant
    /// with another text; [`Error::Unavailable`] if the compiler is missing and the disk cache has not what it would make;
    /// [`Error::Driver`] if another call of the driver fails, [`Error::Lost`] if the device is lost.
    ///
    /// # Panics
    /// If `P` has not the fields that `spec` was declared with.
    pub fn new(device: &Device, spec: KernelSpec) -> Result<Self> {
        let executable = spec.compile(device)?;
        Ok(Self::from_parts(device.clone(), spec, executable))
    }

    /// A kernel that its device has made ready.
    pub(crate) fn from_parts(device: Device, spec: KernelSpec, executable: Executable) -> Self {
        assert_eq!(P::FIELDS, spec.params, "parameters of kernel {}", spec.name);
        Self { device, spec, executable, params: PhantomData }
    }

    /// Returns the device that the kernel is ready on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the kernel's declaration.
    pub fn spec(&self) -> &KernelSpec {
        &self.spec
    }

    /// Returns whether the loops of a thread take no more turns with these parameters than the device allows
    /// ([`Limits::loop_turns`](crate::Limits::loop_turns)). Who divides work into launches asks this first.
    pub fn fits(&self, params: &P) -> bool {
        self.expect_fits(params).is_ok()
    }

    /// Refuses parameters that do not fit ([`Kernel::fits`]), as a launch would, before anything is written.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the loops of a thread may take more turns with these parameters than
    /// [`Limits::loop_turns`](crate::Limits::loop_turns).
    pub fn expect_fits(&self, params: &P) -> Result<()> {
        self.spec.expect_fits(&self.device, params)
    }

    /// Queues a launch of `groups` workgroups (none: nothing happens).
    ///
    /// # Errors
    /// [`Error::WrongDevice`] for a buffer or queue of another device, [`Error::Arguments`] if `args` are not as many as are
    /// declared, or not for the same access, [`Error::Unaligned`] for a view that is not whole words of its binding
    /// ([`Binding::binding_type`], but for [`BindingType::Bytes`]) and does not end with its buffer, [`Error::SecretInput`] if
    /// one of the buffers is secret and one that is written is not ([`View::declassify`] says that this is right),
    /// [`Error::TooLarge`] if the loops of a thread may take more turns than the device allows, or for more workgroups or
    /// bindings than it takes, [`Error::Compile`] with wgpu if views like these need the kernel compiled once more and that is
    /// refused, [`Error::Driver`] if a call of the driver fails or a body for the CPU panics, [`Error::Lost`] if the device is
    /// lost.
    ///
    /// # Safety
    /// With these parameters, the kernel's bodies must stay inside the buffers and views of `args`. A CUDA body with the
    /// line `wait_for_previous();` must come to it as [`KernelSpec`] says.
    pub unsafe fn launch(&self, queue: &Queue, groups: u64, params: &P, args: &mut [Arg<'_>]) -> Result<()> {
        self.device.expect_same("the queue of a launch", queue.device())?;
        for arg in &*args {
            self.device.expect_same("a kernel argument", arg.device)?;
        }
        if !args.iter().map(Arg::access).eq(self.spec.bindings.iter().map(|b| b.access)) {
            return Err(Error::Arguments {
                kernel: self.spec.name,
                expected: format!("{:?}", self.spec.bindings),
                actual: format!("{:?}", args.iter().map(Arg::access).collect::<Vec<_>>()),
            });
        }
        args.iter().zip(&*self.spec.bindings).try_for_each(|(arg, binding)| arg.expect_words(binding))?;
        if args.iter().any(|arg| arg.secrecy == Secrecy::Secret) {
            self.expect_secret(args)?;
        }
        if groups == 0 {
            return Ok(());
        }
        self.expect_fits(params)?;
        let backend = self.device.backend();
        let params = bytemuck::bytes_of(params);
        let (executable, spec) = (&self.executable, &self.spec);
        // SAFETY: the caller vouches for the bodies; the bindings match the declaration.
        unsafe { backend.dispatch(queue.handle(), Dispatch { executable, spec, params, args, groups }) }
    }
}

/// A kernel that is made at its first use.
// Boxed: structs with the room for many that are not made would be moved to the heap with what the stack held there before, which
// may be keys.
pub struct LazyKernel<P>(Lazy<Box<Kernel<P>>>);

impl<P> Default for LazyKernel<P> {
    fn default() -> Self {
        Self(Lazy::default())
    }
}

impl<P> Kernel<P> {
    /// Refuses buffers of which one is secret unless those that are written are, too. Whether a kernel reads what it writes is
    /// nowhere declared, so that a secret one that is written counts as read.
    fn expect_secret(&self, args: &[Arg<'_>]) -> Result<()> {
        let first = |is: &dyn Fn(&Arg<'_>) -> bool| {
            let found = args.iter().zip(&*self.spec.bindings).find(|(arg, _)| is(arg));
            found.map(|(_, binding)| binding.name)
        };
        let secret = first(&|arg| arg.secrecy == Secrecy::Secret);
        let public = first(&|arg| arg.secrecy == Secrecy::Public && arg.access() == Access::Write);
        match (secret, public) {
            (Some(input), Some(output)) => Err(Error::SecretInput { operation: self.spec.name, input, output }),
            _ => Ok(()),
        }
    }
}

impl<P: Params> LazyKernel<P> {
    /// Returns the kernel, which the first call makes from what `spec` gives.
    ///
    /// # Errors
    /// Returns the errors of [`Kernel::new`], for the same reasons; the next call tries again.
    pub fn get(&self, device: &Device, spec: impl FnOnce() -> KernelSpec) -> Result<&Kernel<P>> {
        Ok(self.0.get_or_make(|| Kernel::new(device, spec()).map(Box::new))?)
    }
}

impl<P> fmt::Debug for LazyKernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LazyKernel").field(&self.0.get()).finish()
    }
}

impl<P> fmt::Debug for Kernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("device", &self.device).field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Refuses a kernel of whose name and variant the device has one with another text.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(crate) fn two_texts(spec: &KernelSpec, device: crate::DeviceId) -> Error {
    let log = "there is a kernel of this name and variant with another text: variants must tell texts apart".to_owned();
    Error::Compile { kernel: spec.label(), device: device.to_string(), log }
}

/// Downcasts a handle of this crate to a backend's own type, or says whose it is.
pub(crate) fn own<'a, T: Any>(handle: Option<&'a T>, what: &'static str, device: &crate::DeviceInfo) -> Result<&'a T> {
    handle.ok_or_else(|| Error::Driver {
        device: device.id,
        call: what,
        reason: "the handle belongs to another backend".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secrecy::*;

    #[test]
    fn secrets_stay_in_secret_memory_unless_they_are_declassified() {
        let device = Device::cpu();
        let bindings = [Binding::read("a", BindingType::U32), Binding::read("b", BindingType::U32)];
        let written = [Binding::write("x", BindingType::U32), Binding::write("y", BindingType::U32)];
        let body = |_: &(), (_, [x, y]): (&mut [CpuArg<'_>; 2], &mut [CpuArg<'_>; 2])| {
            x.write::<u32>().fill(1);
            y.write::<u32>().fill(1);
        };
        let spec = KernelSpec::new("sum", "", (bindings, written), body, |_| String::new());
        let kernel = Kernel::<()>::new(&device, spec).unwrap();
        let launch = |secrecy: [Secrecy; 4], declassify: bool| {
            let [a, b, mut x, mut y] = secrecy.map(|secrecy| device.upload_with::<u32>(&[0; 3], secrecy).unwrap());
            let [a, b] = [&a, &b].map(|x| if declassify { x.as_view().declassify() } else { x.as_view() });
            let args = &mut [Arg::read(a), Arg::read(b), Arg::write(&mut x), Arg::write(&mut y)];
            // SAFETY: the body touches its own buffers only.
            let launched = unsafe { kernel.launch(&device.default_queue(), 1, &(), args) };
            let expected = u32::from(launched.is_ok());
            assert_eq!((x.to_vec().unwrap(), y.to_vec().unwrap()), (vec![expected; 3], vec![expected; 3]));
            launched
        };
        let refused = |input, output| Err(Error::SecretInput { operation: "sum", input, output });
        assert_eq!(launch([Public, Public, Public, Public], false), Ok(()));
        assert_eq!(launch([Public, Public, Secret, Secret], false), Ok(()));
        assert_eq!(launch([Secret, Secret, Secret, Secret], false), Ok(()));
        assert_eq!(launch([Public, Secret, Public, Secret], false), refused("b", "x"));
        assert_eq!(launch([Secret, Secret, Secret, Public], false), refused("a", "y"));
        // It may read what it writes.
        assert_eq!(launch([Public, Public, Secret, Public], false), refused("x", "y"));
        assert_eq!(launch([Secret, Secret, Public, Public], true), Ok(()));
    }
}
