//! Checks of points that come in affine form.

use std::{fmt, sync::Arc};

use evariste_backend::{
    Buffer, Element as _, Queue, Secrecy, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Language, Ready},
    params,
};
use evariste_curve::{
    AffinePoint, DeviceCurve, Jacobian, point,
    source::{self as curve_source, Form},
};
use evariste_field::{DeviceField, Mont, native::Native, source};
use rayon::prelude::*;

use crate::{
    decompress::{Check, Invalid, PRODUCTS_OF_DIGIT, Subgroup, invalid},
    error::{Error, Result},
    kernel::{checked_len, launch_len, parts},
    machine::THREADS,
    membership::Membership,
    root_field::RootField,
};

params! {
    struct OnCurveParams {
        len: u32,
    }
}

/// Points that a CPU thread takes at a time, at least.
const GRAIN: usize = 256;

/// Checks points in affine form on one device: keys and proofs of others, whose bytes went to the device as they are
/// ([`Device::upload_bytes`](evariste_backend::Device::upload_bytes)).
///
/// The device checks that coordinates are below p, that they satisfy y² = x³ + a x + b, and that the point is in the
/// subgroup of prime order, as [`Decompress`](crate::Decompress) does. The point at infinity is valid.
///
/// ```
/// # fn main() -> Result<(), evariste_sqrt::Error> {
/// use ark_bls12_381::{Fq, G1Affine, g1::Config};
/// use ark_ec::AffineRepr;
/// use evariste_backend::Device;
/// use evariste_sqrt::{Check, Error, PointCheck, PointError};
///
/// let device = Device::best()?;
/// let check = PointCheck::<Config>::new(&device, Check::Subgroup)?;
/// let g = G1Affine::generator();
/// check.expect_valid(&mut device.upload(&[g, G1Affine::zero()])?)?;
/// let off = G1Affine::new_unchecked(g.x, g.y + Fq::from(1));
/// let refused = check.expect_valid(&mut device.upload(&[g, off])?).unwrap_err();
/// assert_eq!(refused, Error::Point { index: 1, kind: PointError::NotOnCurve });
/// # Ok(())
/// # }
/// ```
pub struct PointCheck<C: DeviceCurve<BaseField: RootField>> {
    queue: Queue,
    inner: Arc<Inner<C>>,
}

struct Inner<C: DeviceCurve<BaseField: RootField>> {
    on_curve: Kernel<OnCurveParams>,
    /// a and b.
    coefficients: Buffer<Mont<C::BaseField>>,
    subgroup: Option<Subgroup<C>>,
    /// Points of one launch.
    each: usize,
    /// When everything is on the device.
    ready: Ready,
}

impl<C: DeviceCurve<BaseField: RootField>> PointCheck<C> {
    /// Makes a plan on a queue (`&device` is its default one). Compiles the kernels.
    ///
    /// # Errors
    /// - [`Error::Curve`]: with [`Check::Subgroup`], the coefficients, the generator, its order or the cofactor of the
    ///   curve do not hold.
    /// - [`Error::Device`]: a kernel does not compile, or the device fails.
    pub fn new(queue: impl Into<Queue>, check: Check) -> Result<Self> {
        let queue = queue.into();
        let device = queue.device();
        let membership = if check == Check::Subgroup { Membership::checked::<C>(device)? } else { None };
        let subgroup = membership.map(|membership| Subgroup::<C>::new(&queue, &membership)).transpose()?;
        let products = subgroup.as_ref().map_or(PRODUCTS_OF_DIGIT, |own| u64::from(own.bits) * PRODUCTS_OF_DIGIT);
        let inner = Inner {
            on_curve: Kernel::new(device, on_curve_spec::<C>())?,
            coefficients: queue.upload(&[C::COEFF_A, C::COEFF_B])?,
            subgroup,
            each: launch_len::<C::BaseField>(device.info(), products),
            ready: Ready::behind(&queue)?,
        };
        Ok(Self { queue, inner: Arc::new(inner) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), inner: Arc::clone(&self.inner) }
    }

    /// Returns the kernel that checks range and equation, for compiling it ahead. That of the subgroup is among those of
    /// [`Decompress`](crate::Decompress).
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        vec![on_curve_spec::<C>()]
    }

    /// Returns the most bytes of device memory that a call for `len` points allocates: a status of 4 bytes for each in
    /// [`PointCheck::expect_valid`], and a Jacobian point for each of a launch on devices that check the subgroup in
    /// several launches.
    pub fn scratch_bytes(&self, len: usize) -> u64 {
        (len as u64).saturating_mul(4).saturating_add((self.kept(len) * Jacobian::<C>::BYTES) as u64)
    }

    /// Multiples that are kept between launches.
    fn kept(&self, len: usize) -> usize {
        self.inner.subgroup.as_ref().map_or(0, |subgroup| subgroup.kept(len, self.inner.each))
    }

    /// Writes 0 to `status[i]` if `points[i]` is valid. Otherwise `points[i]` becomes the point at infinity, and
    /// `status[i]` says why ([`PointError::from_status`](crate::PointError::from_status)). It queues work and returns.
    ///
    /// # Errors
    /// [`Error::Device`] holds one of these:
    /// - [`Length`](evariste_backend::Error::Length): there is not a status for each point.
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice): points, statuses or the queue are of another device.
    /// - [`SecretInput`](evariste_backend::Error::SecretInput): points are secret and statuses public.
    /// - [`TooLarge`](evariste_backend::Error::TooLarge): there are more than 2^31 points, or one check exceeds the
    ///   loop iterations of a thread.
    /// - [`OutOfMemory`](evariste_backend::Error::OutOfMemory): there is no room for the scratch.
    /// - Another error, if the device fails.
    pub fn check<'a>(
        &self,
        points: impl Into<ViewMut<'a, AffinePoint<C>>>,
        status: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        let (mut points, mut status, inner) = (points.into(), status.into(), &*self.inner);
        let queue = self.queue.expect_device(inner.on_curve.device())?;
        let len = points.len();
        queue.device().expect_same("the points", points.device())?;
        queue.device().expect_same("the statuses", status.device())?;
        status.expect_len("the statuses", len)?;
        checked_len(queue.device(), "a batch of points", len)?;
        inner.on_curve.expect_fits(&OnCurveParams { len: 0 })?;
        if let Some(subgroup) = &inner.subgroup {
            subgroup.expect_fits()?;
        }
        inner.ready.wait(queue)?;
        let secrecy = Secrecy::of([points.secrecy(), status.secrecy()]);
        let mut sums = queue.device().alloc_with::<Jacobian<C>>(self.kept(len), secrecy)?;
        for part in parts(len, inner.each) {
            let params = OnCurveParams { len: part.len() as u32 };
            let groups = params.len.div_ceil(THREADS).into();
            let (mut points, mut status) = (points.view_mut(part.clone())?, status.view_mut(part)?);
            let args = &mut [Arg::read(&inner.coefficients), Arg::write(&mut points), Arg::write(&mut status)];
            // SAFETY: there are `len` points and statuses, and both coefficients.
            unsafe { inner.on_curve.launch(queue, groups, &params, args) }?;
            if let Some(subgroup) = &inner.subgroup {
                subgroup.run(queue, &mut points, &mut status, &mut sums)?;
            }
        }
        Ok(())
    }

    /// Checks points as [`PointCheck::check`] does, and waits for the device.
    ///
    /// # Errors
    /// - [`Error::Point`] with the first invalid point. All invalid points are the point at infinity then.
    /// - [`Error::Device`] under the conditions of [`PointCheck::check`], and if there is no room for a status of each
    ///   point.
    pub fn expect_valid<'a>(&self, points: impl Into<ViewMut<'a, AffinePoint<C>>>) -> Result<()> {
        match self.invalid(points)?.first() {
            None => Ok(()),
            Some((index, kind)) => Err(Error::Point { index: *index, kind: *kind }),
        }
    }

    /// Checks points as [`PointCheck::check`] does, and lists the invalid ones, which become the point at infinity.
    /// Waits for the device.
    ///
    /// # Errors
    /// [`Error::Device`] under the conditions of [`PointCheck::check`], and if there is no room for a status of each
    /// point.
    pub fn invalid<'a>(&self, points: impl Into<ViewMut<'a, AffinePoint<C>>>) -> Result<Invalid> {
        let points = points.into();
        let queue = self.queue.expect_device(self.inner.on_curve.device())?;
        let mut status = queue.device().alloc_with::<u32>(points.len(), points.secrecy())?;
        self.check(points, &mut status)?;
        Ok(invalid(&queue.read(&status)?))
    }
}

fn on_curve_spec<C: DeviceCurve<BaseField: RootField>>() -> KernelSpec {
    let word = source::binding_type::<C::BaseField>();
    let bindings = [
        Binding::read("coefficients", word),
        Binding::write("points", word),
        Binding::write("status", BindingType::U32),
    ];
    let seen = bindings;
    let source = move |language| match language {
        Language::Cuda => curve_source::cuda::<C>() + evariste_cuda::sqrt::ON_CURVE,
        Language::Wgsl { int64 } => {
            let points = curve_source::wgsl_kernel::<C>(int64, &[(seen[1], Form::Affine)]);
            let coefficients = source::wgsl_accessors::<C::BaseField>(&seen[0]);
            [&points, &coefficients, evariste_shaders::sqrt::ON_CURVE].concat()
        }
    };
    let iterations = curve_source::iterations::<C>();
    KernelSpec::new("sqrt_on_curve", curve_source::label::<C>(), bindings, on_curve::<C>, source)
        .threads(THREADS)
        .iterations(move |_: &OnCurveParams| iterations)
}

/// The body for the CPU.
fn on_curve<C: DeviceCurve>(params: &OnCurveParams, [_, points, status]: &mut [CpuArg<'_>; 3]) {
    let words = 2 * C::BaseField::LIMBS;
    let points = &mut points.write::<u32>()[..params.len as usize * words];
    let status = &mut status.write::<u32>()[..params.len as usize];
    points.par_chunks_exact_mut(words).with_min_len(GRAIN).zip(status).for_each(|(words, status)| {
        *status = wrong::<C>(words);
        if *status > 0 {
            point::store(&point::affine_infinity::<C>(), words);
        }
    });
}

/// What is wrong with a point, as a status.
fn wrong<C: DeviceCurve>(words: &[u32]) -> u32 {
    if words.chunks_exact(C::BaseField::LIMBS).any(|limbs| !C::BaseField::is_stored(limbs)) {
        return 2;
    }
    let p @ [x, y]: point::AffineOf<C> = point::load(words);
    let holds = || {
        let ([x, y], [a, b]) = ([x, y].map(Native), [C::COEFF_A, C::COEFF_B].map(Native));
        y.square() == (x.square() + a) * x + b
    };
    if point::affine_is_infinity::<C>(&p) || holds() { 0 } else { 3 }
}

impl<C: DeviceCurve<BaseField: RootField>> fmt::Debug for PointCheck<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PointCheck").field("device", self.queue.device()).finish_non_exhaustive()
    }
}
