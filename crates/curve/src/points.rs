use std::{fmt, sync::Arc};

use ark_ff::{AdditiveGroup, Field};
#[cfg(doc)]
use evariste_backend::Error;
use evariste_backend::{
    Arg, Binding, BindingList, BindingType, CpuArg, Device, Element, KernelSpec, Language, LazyKernel, Queue, Result,
    View, ViewMut, Wiped, parallel, params,
};

use crate::{
    AffinePoint, DeviceCurve, Jacobian, Xyzz,
    lanes::add_affine,
    operation::{Divide, Map},
    point,
    source::{self, Form},
};
use evariste_field::{
    DeviceField, ifma,
    source::{binding_type, cuda_group_inverse, group_inverse_threads, turns, wgsl_group_inverse},
};
use evariste_primitives::{ByIndex, checked_len};

/// Threads of a workgroup.
const THREADS: u32 = 256;

/// Points of a thread at most, where threads share inversions.
const MAX_RUN: usize = 64;

/// Points of a thread at least, however few there are.
const MIN_RUN: usize = 4;

/// Threads for each unit that runs workgroups, before runs become longer.
const THREADS_PER_UNIT: usize = 512;

/// Points that a CPU thread takes at a time.
const GRAIN: usize = 1 << 9;

/// The same in lanes, of which 16 share an inversion, at the least and at the most.
const LANES_GRAIN: [usize; 2] = [1 << 8, 1 << 11];

params! {
    struct MapParams {
        len: u32,
    }

    struct DivideParams {
        len: u32,
        threads: u32,
    }

    struct TimesParams {
        len: u32,
        /// The first binary digit of the multipliers, and how many.
        first: u32,
        digits: u32,
        /// The output has the multiples by the digits above.
        carried: u32,
    }
}

/// Operations on vectors of points on one device. Kernels are compiled at their first use and kept.
///
/// All operations are queued and return at once. They take buffers and views of parts of them, of at most
/// [`MAX_LEN`](evariste_primitives::MAX_LEN) points. [`Points::on`] gives the same operations on another queue than the default
/// one.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use ark_bls12_381::{G1Affine, g1::Config};
/// use ark_ec::AffineRepr;
/// use evariste_backend::Device;
/// use evariste_curve::{AffinePoint, Points};
///
/// let device = Device::best()?;
/// let points = Points::<Config>::new(&device);
/// let g = device.upload::<AffinePoint<Config>>(&[G1Affine::generator(); 3])?;
/// let (mut multiples, mut affine) = (device.alloc(3)?, device.alloc(3)?);
/// points.mul(&g, &device.upload::<u32>(&[0, 1, 2])?, &mut multiples)?;
/// points.normalise_xyzz(&multiples, &mut affine)?;
/// let g = G1Affine::generator();
/// assert_eq!(affine.to_vec()?, [G1Affine::zero(), g, (g + g).into()]);
/// # Ok(())
/// # }
/// ```
pub struct Points<C> {
    /// Of the kernels, which are made later: a queue of another device is refused.
    device: Device,
    queue: Queue,
    kernels: Arc<Kernels>,
    affine: ByIndex<AffinePoint<C>>,
    xyzz: ByIndex<Xyzz<C>>,
    jacobian: ByIndex<Jacobian<C>>,
}

/// The forms of points: [`AffinePoint`], [`Xyzz`] and [`Jacobian`], for what is done alike with all of them.
pub trait PointForm<C>: Element + sealed::Sealed {
    #[doc(hidden)]
    fn by_index(points: &Points<C>) -> &ByIndex<Self>
    where
        Self: Sized;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! point_forms {
    ($($form:ident $field:ident),*) => {$(
        impl<C> sealed::Sealed for $form<C> {}

        impl<C: DeviceCurve> PointForm<C> for $form<C> {
            fn by_index(points: &Points<C>) -> &ByIndex<Self> {
                &points.$field
            }
        }
    )*};
}

point_forms!(AffinePoint affine, Xyzz xyzz, Jacobian jacobian);

/// The kernels that were used so far.
#[derive(Default)]
struct Kernels {
    map: [LazyKernel<MapParams>; Map::ALL.len()],
    divide: [LazyKernel<DivideParams>; Divide::ALL.len()],
    times: LazyKernel<TimesParams>,
}

impl<C: DeviceCurve> Points<C> {
    /// Makes the operations on a queue; `&device` is its default one. Nothing is compiled yet.
    pub fn new(queue: impl Into<Queue>) -> Self {
        let queue = queue.into();
        Self {
            device: queue.device().clone(),
            kernels: Arc::default(),
            affine: ByIndex::new(&queue),
            xyzz: ByIndex::new(&queue),
            jacobian: ByIndex::new(&queue),
            queue,
        }
    }

    /// Returns the same operations, with the same kernels, for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self {
            device: self.device.clone(),
            queue: queue.clone(),
            kernels: Arc::clone(&self.kernels),
            affine: self.affine.on(queue),
            xyzz: self.xyzz.on(queue),
            jacobian: self.jacobian.on(queue),
        }
    }

    /// Returns the kernels, for compiling them ahead.
    pub fn kernels() -> Vec<KernelSpec> {
        let map = Map::ALL.into_iter().map(map_spec::<C>);
        let by_index =
            [ByIndex::<AffinePoint<C>>::kernels(), ByIndex::<Xyzz<C>>::kernels(), ByIndex::<Jacobian<C>>::kernels()];
        let divide = Divide::ALL.into_iter().map(divide_spec::<C>);
        map.chain(divide).chain([times_spec::<C>()]).chain(by_index.into_iter().flatten()).collect()
    }

    /// Gives the kernel of [`Points::normalise_xyzz`], for compiling it ahead.
    pub fn normalise_xyzz_kernel() -> KernelSpec {
        divide_spec::<C>(Divide::XyzzNormalise)
    }

    /// Converts affine points to XYZZ form, `out[i] = a[i]`, without a multiplication.
    ///
    /// # Errors
    /// [`Error::Length`] unless all views have as many elements as `a`, [`Error::WrongDevice`] for a view of another
    /// device, [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points, [`Error::Driver`] if a
    /// call of the driver fails, [`Error::Lost`] if the device is lost. At the first use, when the kernel is compiled, also
    /// [`Error::Compile`] if the compiler or the driver refuses it, and [`Error::Unavailable`] if the compiler is missing
    /// and the disk cache has not the kernel.
    pub fn affine_to_xyzz<'a>(
        &self,
        a: impl Into<View<'a, AffinePoint<C>>>,
        out: impl Into<ViewMut<'a, Xyzz<C>>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.unary(Map::XyzzOfAffine, a, out)
    }

    /// Converts affine points to Jacobian form, `out[i] = a[i]`, without a multiplication.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn affine_to_jacobian<'a>(
        &self,
        a: impl Into<View<'a, AffinePoint<C>>>,
        out: impl Into<ViewMut<'a, Jacobian<C>>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.unary(Map::JacobianOfAffine, a, out)
    }

    /// Converts Jacobian points to XYZZ form, `out[i] = a[i]`: 1M + 1S.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn jacobian_to_xyzz<'a>(
        &self,
        a: impl Into<View<'a, Jacobian<C>>>,
        out: impl Into<ViewMut<'a, Xyzz<C>>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.unary(Map::XyzzOfJacobian, a, out)
    }

    /// Converts XYZZ points to Jacobian form, `out[i] = a[i]`: 2M.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn xyzz_to_jacobian<'a>(
        &self,
        a: impl Into<View<'a, Xyzz<C>>>,
        out: impl Into<ViewMut<'a, Jacobian<C>>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.unary(Map::JacobianOfXyzz, a, out)
    }

    /// Computes `out[i] = −a[i]` in affine form, without a multiplication.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn negate_affine<'a>(
        &self,
        a: impl Into<View<'a, AffinePoint<C>>>,
        out: impl Into<ViewMut<'a, AffinePoint<C>>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.unary(Map::AffineNegate, a, out)
    }

    /// Computes `out[i] = −a[i]` in XYZZ form, without a multiplication.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn negate_xyzz<'a>(&self, a: impl Into<View<'a, Xyzz<C>>>, out: impl Into<ViewMut<'a, Xyzz<C>>>) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.unary(Map::XyzzNegate, a, out)
    }

    /// Computes `out[i] = −a[i]` in Jacobian form, without a multiplication.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn negate_jacobian<'a>(
        &self,
        a: impl Into<View<'a, Jacobian<C>>>,
        out: impl Into<ViewMut<'a, Jacobian<C>>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.unary(Map::JacobianNegate, a, out)
    }

    /// Computes `out[i] = 2 a[i]` in XYZZ form: 6M + 3S, and 1M + 1S more where the curve's a is not 0.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn double_xyzz<'a>(&self, a: impl Into<View<'a, Xyzz<C>>>, out: impl Into<ViewMut<'a, Xyzz<C>>>) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.unary(Map::XyzzDouble, a, out)
    }

    /// Computes `out[i] = 2 a[i]` in Jacobian form: 5M + 3S, and 1M + 2S more where the curve's a is not 0.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn double_jacobian<'a>(
        &self,
        a: impl Into<View<'a, Jacobian<C>>>,
        out: impl Into<ViewMut<'a, Jacobian<C>>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.unary(Map::JacobianDouble, a, out)
    }

    /// Computes `out[i] = a[i] + b[i]` in XYZZ form: 12M + 2S ("add-2008-s" of the Explicit-Formulas Database).
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn add_xyzz<'a>(
        &self,
        a: impl Into<View<'a, Xyzz<C>>>,
        b: impl Into<View<'a, Xyzz<C>>>,
        out: impl Into<ViewMut<'a, Xyzz<C>>>,
    ) -> Result<()> {
        let (a, b, out) = (a.into(), b.into(), out.into());
        self.binary(Map::XyzzAdd, a, b, out)
    }

    /// Computes `out[i] = a[i] + b[i]` for affine points b, in XYZZ form: 8M + 2S ("madd-2008-s" of the Explicit-Formulas
    /// Database).
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn add_xyzz_affine<'a>(
        &self,
        a: impl Into<View<'a, Xyzz<C>>>,
        b: impl Into<View<'a, AffinePoint<C>>>,
        out: impl Into<ViewMut<'a, Xyzz<C>>>,
    ) -> Result<()> {
        let (a, b, out) = (a.into(), b.into(), out.into());
        self.binary(Map::XyzzAddAffine, a, b, out)
    }

    /// Computes `out[i] = a[i] + b[i]` in Jacobian form: 13M + 4S.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn add_jacobian<'a>(
        &self,
        a: impl Into<View<'a, Jacobian<C>>>,
        b: impl Into<View<'a, Jacobian<C>>>,
        out: impl Into<ViewMut<'a, Jacobian<C>>>,
    ) -> Result<()> {
        let (a, b, out) = (a.into(), b.into(), out.into());
        self.binary(Map::JacobianAdd, a, b, out)
    }

    /// Computes `out[i] = a[i] + b[i]` for affine points b, in Jacobian form: 8M + 3S.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn add_jacobian_affine<'a>(
        &self,
        a: impl Into<View<'a, Jacobian<C>>>,
        b: impl Into<View<'a, AffinePoint<C>>>,
        out: impl Into<ViewMut<'a, Jacobian<C>>>,
    ) -> Result<()> {
        let (a, b, out) = (a.into(), b.into(), out.into());
        self.binary(Map::JacobianAddAffine, a, b, out)
    }

    /// Computes `out[i] = a[i] + b[i]` in affine form: 5M + 1S, and an inversion for every 16 points or more.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn add_affine<'a>(
        &self,
        a: impl Into<View<'a, AffinePoint<C>>>,
        b: impl Into<View<'a, AffinePoint<C>>>,
        out: impl Into<ViewMut<'a, AffinePoint<C>>>,
    ) -> Result<()> {
        let (a, b, out) = (a.into(), b.into(), out.into());
        b.expect_len("the second operand", a.len())?;
        self.divide(Divide::AffineAdd, a.len(), vec![Arg::read(a), Arg::read(b)], out)
    }

    /// Converts XYZZ points to affine form, `out[i] = a[i]`: 6M + 1S, and an inversion for every 16 points or more.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn normalise_xyzz<'a>(
        &self,
        a: impl Into<View<'a, Xyzz<C>>>,
        out: impl Into<ViewMut<'a, AffinePoint<C>>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.divide(Divide::XyzzNormalise, a.len(), vec![Arg::read(a)], out)
    }

    /// Converts Jacobian points to affine form, `out[i] = a[i]`: 6M + 1S, and an inversion for every 16 points or more.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn normalise_jacobian<'a>(
        &self,
        a: impl Into<View<'a, Jacobian<C>>>,
        out: impl Into<ViewMut<'a, AffinePoint<C>>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.divide(Divide::JacobianNormalise, a.len(), vec![Arg::read(a)], out)
    }

    /// Computes `out[i] = k[i] a[i]` in XYZZ form, by doubling and adding: 32 doublings at most, and an addition for each
    /// bit of `k[i]` that is 1.
    ///
    /// # Errors
    /// Returns the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn mul<'a>(
        &self,
        a: impl Into<View<'a, AffinePoint<C>>>,
        k: impl Into<View<'a, u32>>,
        out: impl Into<ViewMut<'a, Xyzz<C>>>,
    ) -> Result<()> {
        let (a, k, mut out) = (a.into(), k.into(), out.into());
        k.expect_len("the multipliers", a.len())?;
        out.expect_len("the output", a.len())?;
        let len = checked_len(&self.device, "vector of points", a.len())?;
        let kernel = self.kernels.times.get(&self.device, times_spec::<C>)?;
        let mut digits = u32::BITS;
        while digits > 1 && !kernel.fits(&TimesParams { len, first: 0, digits, carried: 1 }) {
            digits /= 2;
        }
        for first in (0..u32::BITS).step_by(digits as usize).rev() {
            let carried = u32::from(first + digits < u32::BITS);
            let args = &mut [Arg::read(a), Arg::read(k), Arg::write(&mut out)];
            let params = TimesParams { len, first, digits, carried };
            // SAFETY: all buffers have `len` elements, and threads touch only those below it.
            unsafe { kernel.launch(&self.queue, len.div_ceil(THREADS).into(), &params, args) }?;
        }
        Ok(())
    }

    /// `out[i] = a[indices[i]]`, and the point at infinity where the index is beyond the end of `a`, for points of any form.
    ///
    /// # Errors
    /// [`Error::Length`] unless there are as many indices as outputs; and the errors of [`Points::affine_to_xyzz`], for the same
    /// reasons.
    pub fn gather<'a, P: PointForm<C>>(
        &self,
        a: impl Into<View<'a, P>>,
        indices: impl Into<View<'a, u32>>,
        out: impl Into<ViewMut<'a, P>>,
    ) -> Result<()> {
        let (a, indices) = (a.into(), indices.into());
        self.checked_lens([a.len(), indices.len()])?;
        P::by_index(self).gather(a, indices, out)
    }

    /// `out[indices[i]] = a[i]` for points of any form, as if one i after the other: of several points for the same place the last
    /// one stays, on every device. Points whose index is beyond the end of `out` are dropped, and what no index names keeps its
    /// value.
    ///
    /// ```
    /// # fn main() -> Result<(), evariste_backend::Error> {
    /// use ark_bls12_381::{G1Affine, g1::Config};
    /// use ark_ec::AffineRepr;
    /// use evariste_backend::Device;
    /// use evariste_curve::{AffinePoint, Points};
    ///
    /// let device = Device::best()?;
    /// let points = Points::<Config>::new(&device);
    /// let (g, zero) = (G1Affine::generator(), G1Affine::zero());
    /// let a = device.upload::<AffinePoint<Config>>(&[g, -g, zero])?;
    /// let mut out = device.upload::<AffinePoint<Config>>(&[g, g])?;
    /// points.scatter(&a, &device.upload(&[1, 7, 1])?, &mut out)?;
    /// assert_eq!(out.to_vec()?, [g, zero]);
    /// points.gather(&a, &device.upload(&[1, 7])?, &mut out)?;
    /// assert_eq!(out.to_vec()?, [-g, zero]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Length`] unless there are as many indices as points in `a`; [`Error::OutOfMemory`] for 4 bytes of scratch for each
    /// point of `out`; and the errors of [`Points::affine_to_xyzz`], for the same reasons.
    pub fn scatter<'a, P: PointForm<C>>(
        &self,
        a: impl Into<View<'a, P>>,
        indices: impl Into<View<'a, u32>>,
        out: impl Into<ViewMut<'a, P>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.checked_lens([a.len(), out.len()])?;
        P::by_index(self).scatter(a, indices, out)
    }

    fn checked_lens<const N: usize>(&self, lens: [usize; N]) -> Result<()> {
        lens.into_iter().try_for_each(|len| checked_len(&self.device, "vector of points", len).map(drop))
    }

    fn unary<A: Element, O: Element>(&self, operation: Map, a: View<'_, A>, out: ViewMut<'_, O>) -> Result<()> {
        out.expect_len("the output", a.len())?;
        self.map(operation, a.len(), &mut [Arg::read(a), Arg::write(out)])
    }

    fn binary<A: Element, B: Element, O: Element>(
        &self,
        operation: Map,
        a: View<'_, A>,
        b: View<'_, B>,
        out: ViewMut<'_, O>,
    ) -> Result<()> {
        b.expect_len("the second operand", a.len())?;
        out.expect_len("the output", a.len())?;
        self.map(operation, a.len(), &mut [Arg::read(a), Arg::read(b), Arg::write(out)])
    }

    /// The buffers all have `len` elements, of the forms that the operation takes.
    fn map(&self, operation: Map, len: usize, args: &mut [Arg<'_>]) -> Result<()> {
        let len = checked_len(&self.device, "vector of points", len)?;
        let kernel = self.kernels.map[operation as usize].get(&self.device, || map_spec::<C>(operation))?;
        // SAFETY: all buffers have `len` elements, and threads touch only those below it.
        unsafe { kernel.launch(&self.queue, len.div_ceil(THREADS).into(), &MapParams { len }, args) }
    }

    /// The inputs have `len` elements, of the forms that the operation takes.
    fn divide<'a>(
        &self,
        operation: Divide,
        len: usize,
        mut args: Vec<Arg<'a>>,
        out: ViewMut<'a, AffinePoint<C>>,
    ) -> Result<()> {
        out.expect_len("the output", len)?;
        args.push(Arg::write(out));
        let threads = (self.device.info().parallelism as usize).saturating_mul(THREADS_PER_UNIT).max(1);
        let mut run = len.div_ceil(threads).clamp(MIN_RUN, MAX_RUN) as u32;
        let len = checked_len(&self.device, "vector of points", len)?;
        let kernel = self.kernels.divide[operation as usize].get(&self.device, || divide_spec::<C>(operation))?;
        while run > 1 && !kernel.fits(&DivideParams { len, threads: len.div_ceil(run) }) {
            run /= 2;
        }
        let threads = len.div_ceil(run);
        let groups = threads.div_ceil(kernel.spec().threads);
        // SAFETY: all buffers have `len` elements, and threads touch only those below it.
        unsafe { kernel.launch(&self.queue, groups.into(), &DivideParams { len, threads }, &mut args) }
    }
}

impl<C> fmt::Debug for Points<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Points").field("device", &self.device).finish_non_exhaustive()
    }
}

/// Words of a point on the device.
fn words<C: DeviceCurve>(form: Form) -> usize {
    form.coordinates().len() * C::BaseField::LIMBS
}

/// The operands `a` and perhaps `b` with the output, as bindings and as the arguments of a call.
fn operands<C: DeviceCurve>(inputs: &[Form]) -> ((Binding, Option<Binding>, Binding), &'static str) {
    let word = binding_type::<C::BaseField>();
    let binary = inputs.len() == 2;
    let b = binary.then(|| Binding::read("b", word));
    let call = if binary { "a_load(i), b_load(i)" } else { "a_load(i)" };
    ((Binding::read("a", word), b, Binding::write("out", word)), call)
}

/// They in the body for the CPU.
type Args<'a, 'm> = (&'a mut CpuArg<'m>, Option<&'a mut CpuArg<'m>>, &'a mut CpuArg<'m>);

fn map_spec<C: DeviceCurve>(operation: Map) -> KernelSpec {
    let (function, inputs, output) = operation.signature();
    let (bindings, call) = operands::<C>(inputs);
    let seen: Vec<(Binding, Form)> = bindings.list().into_iter().zip(inputs.iter().copied().chain([output])).collect();
    let source = move |language| match language {
        Language::Cuda => {
            let binary = inputs.get(1).map(|b| format!("#define BINARY\n#define B {}\n", b.name())).unwrap_or_default();
            let names =
                format!("#define A {}\n#define OUT {}\n#define OP {function}\n", inputs[0].name(), output.name());
            [&source::cuda::<C>(), &binary, &names, evariste_cuda::curve::MAP].concat()
        }
        Language::Wgsl { int64 } => {
            let op = format!("fn op(i: u32) -> {} {{ return {function}({call}); }}\n", output.name());
            [&source::wgsl_kernel::<C>(int64, &seen), &op, evariste_shaders::curve::MAP].concat()
        }
    };
    let body = move |params: &MapParams, (a, b, out): Args<'_, '_>| {
        let len = params.len as usize;
        let (a, b): (&[u32], &[u32]) = (a.read(), b.map_or(&[], |b| b.read()));
        let (a_words, b_words) = (words::<C>(inputs[0]), inputs.get(1).map_or(0, |form| words::<C>(*form)));
        let out_words = words::<C>(output);
        parallel::chunks(&mut out.write::<u32>()[..len * out_words], GRAIN * out_words, &|run, out| {
            for (i, out) in (run * GRAIN..).zip(out.chunks_exact_mut(out_words)) {
                operation.apply::<C>(&a[i * a_words..][..a_words], &b[i * b_words..][..b_words], out);
            }
        });
    };
    let variant = format!("{operation:?} over {}", source::label::<C>());
    let turns = source::turns::<C>();
    KernelSpec::new("point_map", variant, bindings, body, source).threads(THREADS).turns(move |_: &MapParams| turns)
}

fn divide_spec<C: DeviceCurve>(operation: Divide) -> KernelSpec {
    let (denominator, finish, inputs) = operation.signature();
    let (bindings, call) = operands::<C>(inputs);
    let forms = inputs.iter().copied().chain([Form::Affine]);
    let seen: Vec<(Binding, Form)> = bindings.list().into_iter().zip(forms).collect();
    let (threads, bytes) = group_inverse_threads::<C::BaseField>(THREADS);
    let source = move |language| match language {
        Language::Cuda => {
            let binary = if inputs.len() == 2 { "#define BINARY\n" } else { "" };
            let names =
                format!("#define A {}\n#define DENOMINATOR {denominator}\n#define FINISH {finish}\n", inputs[0].name());
            let inverse = cuda_group_inverse(threads);
            [&source::cuda::<C>(), &inverse, binary, &names, evariste_cuda::curve::DIVIDE].concat()
        }
        Language::Wgsl { int64 } => {
            let functions = format!(
                "fn denominator(i: u32) -> F {{ return {denominator}({call}); }}\n\
                 fn finish(i: u32, inverse: F) -> Affine {{ return {finish}({call}, inverse); }}\n\
                 fn out_x_load(i: u32) -> F {{ return out_coordinate_load(2u * i); }}\n\
                 fn out_x_store(i: u32, x: F) {{ out_coordinate_store(2u * i, x); }}\n"
            );
            let addition = if operation == Divide::AffineAdd { source::wgsl_affine_addition() } else { "" };
            let inverse = wgsl_group_inverse::<C::BaseField>(threads);
            [&source::wgsl_kernel::<C>(int64, &seen), addition, &inverse, &functions, evariste_shaders::curve::DIVIDE]
                .concat()
        }
    };
    let lanes = if operation == Divide::AffineAdd { ifma::Field::of::<C::BaseField>() } else { None };
    let body = move |params: &DivideParams, (a, b, out): Args<'_, '_>| {
        let out_words = words::<C>(Form::Affine);
        let (a, b): (&[u32], &[u32]) = (a.read(), b.map_or(&[], |b| b.read()));
        let a_words = words::<C>(inputs[0]);
        let b_words = if b.is_empty() { 0 } else { a_words };
        let out = &mut out.write::<u32>()[..params.len as usize * out_words];
        let grain = match lanes {
            None => GRAIN,
            Some(_) => lanes_grain(params.len as usize),
        };
        parallel::chunks(out, grain * out_words, &|chunk, out| {
            let (first, count) = (chunk * grain, out.len() / out_words);
            let part = |first: usize, count: usize| {
                (&a[first * a_words..][..count * a_words], &b[first * b_words..][..count * b_words])
            };
            let whole = lanes.as_ref().map_or(0, |_| count - count % ifma::STEP);
            let (in_lanes, rest) = out.split_at_mut(whole * out_words);
            if let Some(lanes) = &lanes {
                add_affine::<C>(lanes, part(first, whole), in_lanes, &mut Wiped::default());
            }
            divide_run::<C>(operation, part(first + whole, count - whole), rest);
        });
    };
    let variant = format!("{operation:?} over {}", source::label::<C>());
    let (mul, finish) = (turns::mul::<C::BaseField>(), source::turns::<C>());
    let shared = turns::group_inverse::<C::BaseField>(threads);
    let turns = move |params: &DivideParams| {
        let run = u64::from(params.len.div_ceil(params.threads.max(1)));
        turns::repeat(run, mul) + shared + turns::repeat(run, 2 * mul + finish)
    };
    KernelSpec::new("point_divide", variant, bindings, body, source).threads(threads).shared_bytes(bytes).turns(turns)
}

/// Points that a CPU thread takes at a time in lanes, of `len` in all.
fn lanes_grain(len: usize) -> usize {
    let each = len.div_ceil(rayon::current_num_threads());
    each.next_multiple_of(ifma::STEP).clamp(LANES_GRAIN[0], LANES_GRAIN[1])
}

/// An operation on a run of points with one inversion.
fn divide_run<C: DeviceCurve>(operation: Divide, (a, b): (&[u32], &[u32]), out: &mut [u32]) {
    let out_words = words::<C>(Form::Affine);
    let count = out.len() / out_words;
    if count == 0 {
        return;
    }
    let (a_words, b_words) = (a.len() / count, b.len() / count);
    let operands = |i: usize| (&a[i * a_words..][..a_words], &b[i * b_words..][..b_words]);
    let mut product = C::BaseField::ONE;
    let mut prefixes = Wiped::with_capacity(count);
    for i in 0..count {
        let (a, b) = operands(i);
        let denominator = operation.denominator::<C>(a, b);
        prefixes.push((product, denominator));
        product *= denominator;
    }
    // No denominator is zero.
    let mut inverse = product.inverse().unwrap_or(C::BaseField::ZERO);
    for (i, out) in out.chunks_exact_mut(out_words).enumerate().rev() {
        let ((a, b), (prefix, denominator)) = (operands(i), prefixes[i]);
        point::store(&operation.finish::<C>(a, b, inverse * prefix), out);
        inverse *= denominator;
    }
}

fn times_spec<C: DeviceCurve>() -> KernelSpec {
    let word = binding_type::<C::BaseField>();
    let bindings = [Binding::read("a", word), Binding::read("k", BindingType::U32), Binding::write("out", word)];
    let seen = [(bindings[0], Form::Affine), (bindings[2], Form::Xyzz)];
    let source = move |language| match language {
        Language::Cuda => source::cuda::<C>() + evariste_cuda::curve::TIMES,
        Language::Wgsl { int64 } => source::wgsl_kernel::<C>(int64, &seen) + evariste_shaders::curve::TIMES,
    };
    let body = |params: &TimesParams, [a, k, out]: &mut [CpuArg<'_>; 3]| {
        let (a_words, out_words) = (words::<C>(Form::Affine), words::<C>(Form::Xyzz));
        let (a, k) = (a.read::<u32>(), k.read::<u32>());
        parallel::chunks(&mut out.write::<u32>()[..params.len as usize * out_words], out_words, &|i, out| {
            let a = point::load(&a[i * a_words..][..a_words]);
            let (mut sum, mut digits) = ([C::BaseField::ZERO; 4], params.digits);
            // Doubling infinity is left out.
            match params.carried {
                0 => digits = digits.min((u32::BITS - k[i].leading_zeros()).saturating_sub(params.first)),
                _ => sum = point::load(out),
            }
            let k = k[i] >> params.first;
            for bit in (0..digits).rev() {
                sum = point::xyzz_double::<C>(sum);
                if k >> bit & 1 == 1 {
                    sum = point::xyzz_add_affine::<C>(sum, a);
                }
            }
            point::store(&sum, out);
        });
    };
    let variant = format!("points over {}", source::label::<C>());
    let add = source::turns::<C>();
    KernelSpec::new("point_times", variant, bindings, body, source)
        .threads(THREADS)
        .turns(move |params: &TimesParams| turns::repeat(2 * u64::from(params.digits), add))
}

#[cfg(test)]
mod tests {
    use ark_ec::{AffineRepr, CurveGroup, short_weierstrass::Affine};
    use evariste_backend::Device;

    use crate::*;

    /// Among sums in lanes those that lie on no chord, at the ends of runs and in all of one.
    fn check<C: DeviceCurve>() {
        let device = Device::cpu();
        let points = Points::<C>::new(&device);
        let generator = Affine::<C>::generator();
        let multiples = std::iter::successors(Some(generator.into_group()), |point| Some(*point + generator));
        let mut a = CurveGroup::normalize_batch(&multiples.take(5000).collect::<Vec<_>>());
        let mut b: Vec<Affine<C>> = a.iter().rev().copied().collect();
        let edges = (0..5000).filter(|i| i % 23 == 0 || i % 256 < 2 || (4096..4112).contains(i));
        for (k, i) in edges.enumerate() {
            match k % 5 {
                0 => a[i] = Affine::identity(),
                1 => b[i] = Affine::identity(),
                2 => b[i] = a[i],
                3 => b[i] = -a[i],
                _ => (a[i], b[i]) = (Affine::identity(), Affine::identity()),
            }
        }
        for len in [0, 1, 15, 16, 17, 1000, 5000] {
            let (a, b) = (&a[..len], &b[..len]);
            let mut out = device.alloc(len).unwrap();
            points.add_affine(&device.upload(a).unwrap(), &device.upload(b).unwrap(), &mut out).unwrap();
            let expected: Vec<_> = a.iter().zip(b).map(|(a, b)| *a + *b).collect();
            assert_eq!(out.to_vec().unwrap(), CurveGroup::normalize_batch(&expected), "{len}");
        }
    }

    #[test]
    fn affine_sums_match_arkworks_on_the_cpu() {
        check::<ark_bls12_381::g1::Config>();
        check::<ark_bn254::g1::Config>();
        check::<ark_bls12_381::g2::Config>();
    }
}
