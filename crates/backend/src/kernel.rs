//! Kernels ready to launch on a device.

use std::{fmt, marker::PhantomData, time::Instant};

use crate::{
    bindings::Access,
    buffer::Element,
    device::Device,
    device::dispatch::{Arg, ArgSpan, Dispatch},
    error::{Error, Result},
    handles::Executable,
    lazy::Lazy,
    parallel,
    params::Params,
    queue::Queue,
    secrecy::Secrecy,
    spec::KernelSpec,
    view::{View, ViewMut},
};

/// A kernel ready to launch with parameters `P`.
///
/// Safe functions wrap kernels, and check lengths next to the launch: see `docs/adding-a-kernel.md`.
pub struct Kernel<P> {
    ready: Ready,
    params: PhantomData<fn(P)>,
}

/// A kernel whatever its parameters, so that a launch is compiled once.
struct Ready {
    device: Device,
    spec: KernelSpec,
    executable: Executable,
}

impl<P: Params> Kernel<P> {
    /// Makes a kernel ready on a device.
    ///
    /// # Errors
    /// - [`Error::TooLarge`] if the kernel needs more threads, workgroup memory or bindings than the device has.
    /// - [`Error::Compile`] if the compiler or the driver refuses its text. Also if the device has a kernel of the same
    ///   name and variant with another text.
    /// - [`Error::Unavailable`] if there is no compiler and the disk cache does not have the kernel.
    /// - [`Error::Driver`] if another call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    ///
    /// # Panics
    /// If the fields of `P` are not those that `spec` declares.
    pub fn new(device: &Device, spec: KernelSpec) -> Result<Self> {
        let executable = spec.compile(device)?;
        Ok(Self::from_parts(device.clone(), spec, executable))
    }

    /// A kernel that its device has made ready.
    pub(crate) fn from_parts(device: Device, spec: KernelSpec, executable: Executable) -> Self {
        spec.expect_fields(P::FIELDS);
        Self { ready: Ready { device, spec, executable }, params: PhantomData }
    }

    /// Returns the device that the kernel is ready on.
    pub fn device(&self) -> &Device {
        &self.ready.device
    }

    /// Returns the kernel's declaration.
    pub fn spec(&self) -> &KernelSpec {
        &self.ready.spec
    }

    /// Returns whether the loops of a thread fit into the iterations that the device allows with these parameters
    /// ([`Limits::loop_iterations`](crate::Limits::loop_iterations)). Call this before splitting work into launches.
    pub fn fits(&self, params: &P) -> bool {
        self.expect_fits(params).is_ok()
    }

    /// Returns the error of a launch with parameters that do not fit ([`Kernel::fits`]), before anything is written.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the loops of a thread may take more iterations than
    /// [`Limits::loop_iterations`](crate::Limits::loop_iterations).
    pub fn expect_fits(&self, params: &P) -> Result<()> {
        self.ready.spec.expect_fits(&self.ready.device, params)
    }

    /// Queues a launch of `groups` workgroups. With 0 workgroups, nothing happens.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`] if a buffer or the queue is of another device.
    /// - [`Error::Arguments`] if `args` differ from the declaration in number or access.
    /// - [`Error::Unaligned`] if a view is not whole words of its binding
    ///   ([`Binding::binding_type`](crate::author::Binding::binding_type)), other than at the end of its buffer.
    ///   [`BindingType::Bytes`](crate::author::BindingType::Bytes) takes any view.
    /// - [`Error::SecretInput`] if one of the buffers is secret and a written one is public. [`View::declassify`]
    ///   permits it.
    /// - [`Error::TooLarge`] if the loops of a thread may take more iterations than the device allows, or for too many
    ///   workgroups or bindings.
    /// - [`Error::Compile`] with wgpu if such views need the kernel compiled once more, and that fails.
    /// - [`Error::Driver`] if a call of the driver fails or a CPU body panics, [`Error::Lost`] if the device is lost.
    ///
    /// # Safety
    /// With these parameters, the kernel's bodies must stay inside the buffers and views of `args`. A CUDA body with
    /// the line `wait_for_previous();` must reach it as [`KernelSpec`] says.
    pub unsafe fn launch(&self, queue: &Queue, groups: u64, params: &P, args: &mut [Arg<'_>]) -> Result<()> {
        // SAFETY: the caller vouches for the bodies.
        unsafe { self.ready.launch(queue, groups, bytemuck::bytes_of(params), args) }
    }
}

impl Ready {
    /// # Safety
    /// As for [`Kernel::launch`].
    unsafe fn launch(&self, queue: &Queue, groups: u64, params: &[u8], args: &mut [Arg<'_>]) -> Result<()> {
        self.device.expect_same("the queue of a launch", queue.device())?;
        for arg in &*args {
            self.device.expect_same("a kernel argument", arg.device())?;
        }
        if !args.iter().map(Arg::access).eq(self.spec.bindings.iter().map(|b| b.access)) {
            return Err(Error::Arguments {
                kernel: self.spec.name,
                expected: format!("{:?}", self.spec.bindings),
                actual: format!("{:?}", args.iter().map(Arg::access).collect::<Vec<_>>()),
            });
        }
        args.iter().zip(&*self.spec.bindings).try_for_each(|(arg, binding)| arg.expect_words(binding))?;
        if args.iter().any(|arg| arg.secrecy() == Secrecy::Secret) {
            self.expect_secret(args)?;
        }
        if groups == 0 {
            return Ok(());
        }
        self.spec.expect_iterations(&self.device, params)?;
        let backend = self.device.backend();
        let (executable, spec) = (&self.executable, &self.spec);
        // SAFETY: the caller vouches for the bodies; the bindings match the declaration.
        unsafe { backend.dispatch(queue.handle(), Dispatch { executable, spec, params, args, groups }) }
    }

    /// Refuses secret buffers if a written one is public. The declaration does not say whether a kernel reads a buffer
    /// that it writes, so a secret one counts as read.
    fn expect_secret(&self, args: &[Arg<'_>]) -> Result<()> {
        let first = |is: &dyn Fn(&Arg<'_>) -> bool| {
            let found = args.iter().zip(&*self.spec.bindings).find(|(arg, _)| is(arg));
            found.map(|(_, binding)| binding.name)
        };
        let secret = first(&|arg| arg.secrecy() == Secrecy::Secret);
        let public = first(&|arg| arg.secrecy() == Secrecy::Public && arg.access() == Access::Write);
        match (secret, public) {
            (Some(input), Some(output)) => Err(Error::SecretInput { operation: self.spec.name, input, output }),
            _ => Ok(()),
        }
    }
}

// Boxed: a struct with room for kernels that are not made would be moved to the heap with what the stack held there
// before, such as keys.
/// A kernel that is compiled at its first use.
pub struct LazyKernel<P>(Lazy<Box<Kernel<P>>>);

impl<P> Default for LazyKernel<P> {
    fn default() -> Self {
        Self(Lazy::default())
    }
}

impl<P: Params> LazyKernel<P> {
    /// Returns the kernel. The first call makes it from `spec`.
    ///
    /// # Errors
    /// The errors of [`Kernel::new`]. The next call tries again.
    pub fn get(&self, device: &Device, spec: impl FnOnce() -> KernelSpec) -> Result<&Kernel<P>> {
        match self.0.get() {
            Some(kernel) => Ok(kernel),
            None => self.make(device, spec()),
        }
    }

    fn make(&self, device: &Device, spec: KernelSpec) -> Result<&Kernel<P>> {
        Ok(self.0.get_or_make(|| Kernel::new(device, spec).map(Box::new))?)
    }
}

impl<P> fmt::Debug for LazyKernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LazyKernel").field(&self.0.get()).finish()
    }
}

impl<P> fmt::Debug for Kernel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ready { device, spec, .. } = &self.ready;
        f.debug_struct("Kernel").field("device", device).field("spec", spec).finish_non_exhaustive()
    }
}

impl KernelSpec {
    /// Returns an error if the loops of a thread may take more iterations with these parameters than the device allows.
    /// The kernel need not be compiled for it yet.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if they may take more than [`Limits::loop_iterations`](crate::Limits::loop_iterations).
    pub fn expect_fits<P: Params>(&self, device: &Device, params: &P) -> Result<()> {
        self.expect_iterations(device, bytemuck::bytes_of(params))
    }

    fn expect_iterations(&self, device: &Device, params: &[u8]) -> Result<()> {
        let info = device.info();
        let (Some(limit), Some(iterations)) = (info.limits.loop_iterations, &self.iterations) else { return Ok(()) };
        let (limit, actual) = (limit.into(), iterations(params));
        if actual <= limit {
            return Ok(());
        }
        Err(Error::TooLarge {
            what: "the work of one thread, in iterations of its loops,",
            device: info.id,
            expected: limit,
            actual,
        })
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
}

impl<'a> Arg<'a> {
    /// Binds elements that the kernel only reads.
    pub fn read<T: Element>(view: impl Into<View<'a, T>>) -> Self {
        let view = view.into();
        Self::new(view.device(), ArgSpan::Read(view.span()), view.secrecy())
    }

    /// Binds elements that the kernel writes, and may read.
    pub fn write<T: Element>(view: impl Into<ViewMut<'a, T>>) -> Self {
        let view = view.into();
        let (device, secrecy) = (view.device(), view.secrecy());
        Self::new(device, ArgSpan::Write(view.into_span()), secrecy)
    }
}

/// Kernels that [`Device::prepare`] has made ready. The device keeps them, and stays open, as long as this lives.
#[derive(Debug)]
#[must_use = "kernels that nobody keeps may be compiled again"]
pub struct Prepared {
    device: Device,
    kernels: Vec<(KernelSpec, Executable)>,
}

impl Prepared {
    /// Returns a kernel of the list. In contrast to [`Kernel::new`], this does not render, hash and look up its text
    /// again.
    ///
    /// # Panics
    /// If `index` is out of range, or if the fields of `P` are not those that the kernel declares.
    pub fn kernel<P: Params>(&self, index: usize) -> Kernel<P> {
        let (spec, executable) = &self.kernels[index];
        Kernel::from_parts(self.device.clone(), spec.clone(), executable.clone())
    }
}

impl Device {
    /// Compiles kernels side by side, on rayon's pool, including what the driver would compile at their first launch.
    /// The kernels of a plan are listed by its type, such as `Vector::kernels`.
    ///
    /// As long as you keep the result, a [`Kernel`] made from one of these declarations compiles nothing, and
    /// [`Prepared::kernel`] returns it at once. With CUDA, a device keeps kernels as long as it is open. With wgpu,
    /// kernels for views at odd starts are compiled at their first launch all the same, unless they are declared for
    /// parts of buffers ([`KernelSpec::within_a_buffer`], [`KernelSpec::of_parts`]).
    ///
    /// # Errors
    /// The error of the first kernel in the list that has one:
    ///
    /// - [`Error::TooLarge`] if the kernel needs more threads, workgroup memory or bindings than the device has.
    /// - [`Error::Compile`] if the compiler or the driver refuses its text.
    /// - [`Error::Unavailable`] if there is no compiler and the disk cache does not have the kernel.
    /// - [`Error::OutOfMemory`] with wgpu if there is no memory for buffers to bind.
    /// - [`Error::Driver`] if another call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn prepare(&self, kernels: &[KernelSpec]) -> Result<Prepared> {
        let (start, before) = (Instant::now(), self.stats());
        let mut made: Vec<Option<Result<Executable>>> = kernels.iter().map(|_| None).collect();
        parallel::chunks(&mut made, 1, &|i, made| made[0] = Some(kernels[i].compile(self)));
        let executables = made.into_iter().flatten().collect::<Result<Vec<_>>>()?;
        self.backend().finish_compiling(&executables)?;
        let after = self.stats();
        // Only for the log: a backend of one's own may count as it likes.
        let compiled = after.compiled.saturating_sub(before.compiled);
        let loaded = after.cache_hits.saturating_sub(before.cache_hits);
        if compiled > 0 || loaded > 0 {
            log::info!("{} compiled {compiled} kernels and loaded {loaded} in {:.2?}", self.info().id, start.elapsed());
        }
        Ok(Prepared { device: self.clone(), kernels: kernels.iter().cloned().zip(executables).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bindings::{Binding, BindingType},
        cpu_arg::CpuArg,
        secrecy::Secrecy::*,
    };

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
