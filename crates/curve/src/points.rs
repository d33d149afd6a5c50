mod kernels;

use std::{fmt, sync::Arc};

#[cfg(doc)]
use evariste_backend::Error;
use evariste_backend::{
    Device, Element, Queue, Result, View, ViewMut,
    author::{Arg, KernelSpec, LazyKernel},
};
use evariste_primitives::{GatherScatter, checked_len};

use crate::{
    device_curve::DeviceCurve,
    element::{AffinePoint, Jacobian, Xyzz},
    operation::{Divide, Map},
    points::kernels::{DivideParams, MapParams, MulParams, THREADS, divide_spec, map_spec, mul_spec},
};

/// Points of a thread at most, where threads share inversions.
const MAX_RUN: usize = 64;

/// Points of a thread at least, however few there are.
const MIN_RUN: usize = 4;

/// Threads for each unit that runs workgroups, before runs become longer.
const THREADS_PER_UNIT: usize = 512;

/// Operations on vectors of points on one device. The first call of each compiles its kernel.
///
/// Every call is queued and returns at once. It takes buffers and views of at most
/// [`MAX_LEN`](evariste_primitives::MAX_LEN) points. Costs count multiplications (M) and squarings (S) in the base
/// field.
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
    /// The device of the kernels, which are made later.
    device: Device,
    queue: Queue,
    kernels: Arc<Kernels>,
    affine: GatherScatter<AffinePoint<C>>,
    xyzz: GatherScatter<Xyzz<C>>,
    jacobian: GatherScatter<Jacobian<C>>,
}

/// A form of points: [`AffinePoint`], [`Xyzz`] or [`Jacobian`].
pub trait PointForm<C>: Element + sealed::Sealed {
    #[doc(hidden)]
    fn gather_scatter(points: &Points<C>) -> &GatherScatter<Self>
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
            fn gather_scatter(points: &Points<C>) -> &GatherScatter<Self> {
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
    mul: LazyKernel<MulParams>,
}

impl<C: DeviceCurve> Points<C> {
    /// Makes a plan on a queue (`&device` is its default one). Compiles nothing.
    pub fn new(queue: impl Into<Queue>) -> Self {
        let queue = queue.into();
        Self {
            device: queue.device().clone(),
            kernels: Arc::default(),
            affine: GatherScatter::new(&queue),
            xyzz: GatherScatter::new(&queue),
            jacobian: GatherScatter::new(&queue),
            queue,
        }
    }

    /// Returns the same plan for work on `queue`.
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
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        let map = Map::ALL.into_iter().map(map_spec::<C>);
        let gather_scatter = [
            GatherScatter::<AffinePoint<C>>::kernels(),
            GatherScatter::<Xyzz<C>>::kernels(),
            GatherScatter::<Jacobian<C>>::kernels(),
        ];
        let divide = Divide::ALL.into_iter().map(divide_spec::<C>);
        map.chain(divide).chain([mul_spec::<C>()]).chain(gather_scatter.into_iter().flatten()).collect()
    }

    /// Returns the kernel of [`Points::normalise_xyzz`], for compiling it ahead.
    pub fn normalise_xyzz_kernel() -> KernelSpec {
        divide_spec::<C>(Divide::XyzzNormalise)
    }

    /// Converts affine points to XYZZ form, `out[i] = a[i]`, without a multiplication.
    ///
    /// # Errors
    /// - [`Error::Length`] unless `out` has the length of `a`.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler or the driver refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing and the disk cache has not the kernel.
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
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
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
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
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
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
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
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
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
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
    pub fn negate_xyzz<'a>(&self, a: impl Into<View<'a, Xyzz<C>>>, out: impl Into<ViewMut<'a, Xyzz<C>>>) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.unary(Map::XyzzNegate, a, out)
    }

    /// Computes `out[i] = −a[i]` in Jacobian form, without a multiplication.
    ///
    /// # Errors
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
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
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
    pub fn double_xyzz<'a>(&self, a: impl Into<View<'a, Xyzz<C>>>, out: impl Into<ViewMut<'a, Xyzz<C>>>) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.unary(Map::XyzzDouble, a, out)
    }

    /// Computes `out[i] = 2 a[i]` in Jacobian form: 5M + 3S, and 1M + 2S more where the curve's a is not 0.
    ///
    /// # Errors
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
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
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
    pub fn add_xyzz<'a>(
        &self,
        a: impl Into<View<'a, Xyzz<C>>>,
        b: impl Into<View<'a, Xyzz<C>>>,
        out: impl Into<ViewMut<'a, Xyzz<C>>>,
    ) -> Result<()> {
        let (a, b, out) = (a.into(), b.into(), out.into());
        self.binary(Map::XyzzAdd, a, b, out)
    }

    /// Computes `out[i] = a[i] + b[i]` for affine points b, in XYZZ form: 8M + 2S ("madd-2008-s" of the
    /// Explicit-Formulas Database).
    ///
    /// # Errors
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
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
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
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
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
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
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
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
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
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
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
    pub fn normalise_jacobian<'a>(
        &self,
        a: impl Into<View<'a, Jacobian<C>>>,
        out: impl Into<ViewMut<'a, AffinePoint<C>>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.divide(Divide::JacobianNormalise, a.len(), vec![Arg::read(a)], out)
    }

    /// Computes `out[i] = k[i] a[i]` in XYZZ form by double-and-add. A product takes at most 32 doublings, and an
    /// addition for each 1 among the bits of `k[i]`.
    ///
    /// # Errors
    /// - [`Error::Length`] unless all views have the same length.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
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
        let kernel = self.kernels.mul.get(&self.device, mul_spec::<C>)?;
        let mut digits = u32::BITS;
        while digits > 1 && !kernel.fits(&MulParams { len, first: 0, digits, carried: 1 }) {
            digits /= 2;
        }
        for first in (0..u32::BITS).step_by(digits as usize).rev() {
            let carried = u32::from(first + digits < u32::BITS);
            let args = &mut [Arg::read(a), Arg::read(k), Arg::write(&mut out)];
            let params = MulParams { len, first, digits, carried };
            // SAFETY: all buffers have `len` elements, and threads touch only those below it.
            unsafe { kernel.launch(&self.queue, len.div_ceil(THREADS).into(), &params, args) }?;
        }
        Ok(())
    }

    /// Sets `out[i] = a[indices[i]]` for points of any form, or the point at infinity if the index is beyond the end of
    /// `a`.
    ///
    /// # Errors
    /// - [`Error::Length`] unless there is an index for each output.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points or indices.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses the kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
    pub fn gather<'a, P: PointForm<C>>(
        &self,
        a: impl Into<View<'a, P>>,
        indices: impl Into<View<'a, u32>>,
        out: impl Into<ViewMut<'a, P>>,
    ) -> Result<()> {
        let (a, indices) = (a.into(), indices.into());
        self.checked_lens([a.len(), indices.len()])?;
        P::gather_scatter(self).gather(a, indices, out)
    }

    /// Sets `out[indices[i]] = a[i]` for ascending i and points of any form: the last writer wins, on every device.
    /// Points whose index is beyond the end of `out` are dropped, and places without an index keep their value.
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
    /// - [`Error::Length`] unless there is an index for each point of `a`.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](evariste_primitives::MAX_LEN) points.
    /// - [`Error::OutOfMemory`] if there is no room for 4 bytes of scratch a point of `out`.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - [`Error::Compile`] at the first use if the compiler refuses a kernel.
    /// - [`Error::Unavailable`] at the first use if the compiler is missing.
    pub fn scatter<'a, P: PointForm<C>>(
        &self,
        a: impl Into<View<'a, P>>,
        indices: impl Into<View<'a, u32>>,
        out: impl Into<ViewMut<'a, P>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        self.checked_lens([a.len(), out.len()])?;
        P::gather_scatter(self).scatter(a, indices, out)
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

#[cfg(test)]
mod tests {
    use ark_ec::{AffineRepr, CurveGroup, short_weierstrass::Affine};
    use evariste_backend::{Device, Error};

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

    /// Every operation with all its views on the device of the queue.
    #[test]
    fn queues_of_other_devices_are_refused_before_anything_is_done() {
        type C = ark_bls12_381::g1::Config;

        let other = Device::another_cpu();
        let points = Points::<C>::new(&Device::cpu()).on(&other.default_queue());
        let a = other.upload::<AffinePoint<C>>(&[Affine::generator()]).unwrap();
        let index = other.upload::<u32>(&[0]).unwrap();
        let (mut out, mut sums) = (other.alloc(1).unwrap(), other.alloc(1).unwrap());
        let before = other.stats();
        let refused = [
            points.affine_to_xyzz(&a, &mut sums),
            points.add_affine(&a, &a, &mut out),
            points.mul(&a, &index, &mut sums),
            points.gather(&a, &index, &mut out),
            points.scatter(&a, &index, &mut out),
        ];
        for (call, outcome) in refused.into_iter().enumerate() {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::WrongDevice { .. }), "call {call}: {error}");
        }
        let after = other.stats();
        assert_eq!((after.launches, after.bytes_peak), (before.launches, before.bytes_peak));
    }
}
