use std::{fmt, sync::Arc};

use ark_ff::Field;
use evariste_backend::{
    Buffer, Element, Queue, Secrecy, View, ViewMut,
    author::{Arg, KernelSpec, Ready},
};
use evariste_curve::{AffinePoint, DeviceCurve, Jacobian};
use evariste_field::ifma::STEP;

mod encoding;
mod parse;
mod subgroup;

use crate::{
    decompress::{
        encoding::EncodingLayout,
        parse::{PointsParams, points_spec, program},
        subgroup::subgroup_spec,
    },
    error::{Error, PointError, Result},
    kernel::{Loaded, checked_len, launch_len, parts},
    machine::THREADS,
    membership::Membership,
    root_field::RootField,
};

pub use encoding::Encoding;
pub(crate) use subgroup::Subgroup;

/// The check of a point besides its encoding and the curve's equation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Check {
    /// Nothing.
    Curve,
    /// The point lies in the subgroup of prime order.
    #[default]
    Subgroup,
}

/// The configuration of a [`Decompress`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DecompressConfig {
    /// The check besides the encoding and the curve's equation.
    pub check: Check,
}

impl DecompressConfig {
    /// Sets [`DecompressConfig::check`].
    #[must_use]
    pub fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }
}

/// The indices of invalid encodings or points, each with the reason.
pub type Invalid = Vec<(usize, PointError)>;

/// Decompresses points of a curve on one device. Compressed encodings become affine points in Montgomery form as
/// [`evariste_curve`] has them. The device parses the bytes, checks each coordinate, computes y from x by the field's
/// [`Method`](crate::Method), and checks the subgroup.
///
/// A point P is in the subgroup of prime order r if one of these equations holds:
///
/// - z² P = −φ(P) for G1 where r = z⁴ − z² + 1 (BLS12-381 and its family): 127 doublings. z P = ψ(P) for G2: 63
///   doublings. Scott, "A note on group membership tests for G1, G2 and GT on BLS pairing-friendly curves" (2021).
/// - 6 z² P = ψ(P) for G2 of BN254 and its family: 126 doublings. El Housni, Guillevic and Piellard, "Co-factor
///   clearing and subgroup membership testing on pairing-friendly curves" (2022).
/// - r P = 0 on other curves. A cofactor of 1 needs no check.
///
/// A device that limits the loop iterations of a thread multiplies in several launches. It keeps a Jacobian point for
/// each of a launch's points between them.
///
/// ```
/// # fn main() -> Result<(), evariste_sqrt::Error> {
/// use ark_bls12_381::{G1Affine, g1::Config};
/// use ark_ec::AffineRepr;
/// use ark_serialize::CanonicalSerialize;
/// use evariste_backend::Device;
/// use evariste_sqrt::{Decompress, Encoding, Error, PointError};
///
/// let mut bytes = Vec::new();
/// G1Affine::generator().serialize_compressed(&mut bytes).unwrap();
/// let decompress = Decompress::<Config>::new(&Device::best()?, Encoding::Zcash)?;
/// assert_eq!(decompress.decompress_host(&bytes)?.to_vec()?, [G1Affine::generator()]);
/// bytes[0] &= 0x7f;
/// let refused = decompress.decompress_host(&bytes).unwrap_err();
/// assert_eq!(refused, Error::Point { index: 0, kind: PointError::Flags });
/// # Ok(())
/// # }
/// ```
pub struct Decompress<C: DeviceCurve<BaseField: RootField>> {
    queue: Queue,
    inner: Arc<Inner<C>>,
}

/// The prime field under a curve.
type Prime0<C> = <<C as ark_ec::CurveConfig>::BaseField as Field>::BasePrimeField;

struct Inner<C: DeviceCurve<BaseField: RootField>> {
    layout: EncodingLayout,
    points: Loaded<PointsParams, Prime0<C>>,
    subgroup: Option<Subgroup<C>>,
    /// Points of one launch.
    each: usize,
    products: u64,
    /// When scalar and endomorphism of the subgroup are on the device, too.
    ready: Ready,
}

impl<C: DeviceCurve<BaseField: RootField>> Inner<C> {
    /// Multiples that are kept between launches for `len` points, if the subgroup's scalar takes several.
    fn kept(&self, len: usize) -> usize {
        self.subgroup.as_ref().map_or(0, |subgroup| subgroup.kept(len, self.each))
    }
}

impl<C: DeviceCurve<BaseField: RootField>> Decompress<C> {
    /// Makes a plan that checks the subgroup, on a queue (`&device` is its default one). Compiles the kernels.
    ///
    /// # Errors
    /// - [`Error::Field`]: the base field is neither prime nor a quadratic extension x² = β of a prime field.
    /// - [`Error::Square`]: β is a square.
    /// - [`Error::Modulus`]: the modulus is no prime.
    /// - [`Error::Flags`]: the coordinates leave no room for the flags of the encoding.
    /// - [`Error::Curve`]: the coefficients, the generator, its order or the cofactor of the curve do not hold.
    /// - [`Error::Device`]: a kernel does not compile, or the device has no room for the tables or fails.
    pub fn new(queue: impl Into<Queue>, encoding: Encoding) -> Result<Self> {
        Self::with_config(queue, encoding, DecompressConfig::default())
    }

    /// Makes a plan with a configuration.
    ///
    /// # Errors
    /// - [`Error::Field`]: the base field is neither prime nor a quadratic extension x² = β of a prime field.
    /// - [`Error::Square`]: β is a square.
    /// - [`Error::Modulus`]: the modulus is no prime.
    /// - [`Error::Flags`]: the coordinates leave no room for the flags of the encoding.
    /// - [`Error::Curve`]: with [`Check::Subgroup`], the coefficients, the generator, its order or the cofactor of the
    ///   curve do not hold.
    /// - [`Error::Device`]: a kernel does not compile, or the device has no room for the tables or fails.
    pub fn with_config(queue: impl Into<Queue>, encoding: Encoding, config: DecompressConfig) -> Result<Self> {
        let queue = queue.into();
        let device = queue.device();
        let (layout, program) = (EncodingLayout::new::<C::BaseField>(encoding)?, Arc::new(program::<C>()?));
        let points = Loaded::new(&queue, &program, points_spec::<C>(layout, &program))?;
        let membership = if config.check == Check::Subgroup { Membership::checked::<C>(device)? } else { None };
        let subgroup = membership.map(|membership| Subgroup::new(&queue, &membership)).transpose()?;
        let launch = |subgroup: &Subgroup<C>| {
            launch_len::<C::BaseField>(device.info(), u64::from(subgroup.bits) * PRODUCTS_OF_DIGIT)
        };
        let each = subgroup.as_ref().map_or(points.each, |subgroup| points.each.min(launch(subgroup)));
        let (products, ready) = (program.products(), Ready::behind(&queue)?);
        let inner = Arc::new(Inner { layout, points, subgroup, each, products, ready });
        Ok(Self { queue, inner })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), inner: Arc::clone(&self.inner) }
    }

    /// Returns the kernels of an encoding, so that you can compile them ahead. The list is empty where
    /// [`Decompress::new`] refuses the field or the curve.
    #[doc(hidden)]
    pub fn kernels(encoding: Encoding) -> Vec<KernelSpec> {
        let (Ok(layout), Ok(program)) = (EncodingLayout::new::<C::BaseField>(encoding), program::<C>()) else {
            return Vec::new();
        };
        let subgroup = Membership::<C::BaseField>::of::<C>().map(|membership| subgroup_spec::<C>(&membership));
        std::iter::once(points_spec::<C>(layout, &Arc::new(program))).chain(subgroup).collect()
    }

    /// Returns the bytes of an encoded point.
    pub fn point_bytes(&self) -> usize {
        self.inner.layout.bytes
    }

    /// Returns the number of multiplications and squarings in the prime field for the root of one point.
    pub fn products(&self) -> u64 {
        self.inner.products
    }

    /// Returns the most bytes of device memory that a call for `len` points allocates. [`Decompress::decompress_host`]
    /// allocates the encodings, the points, the statuses and the scratch. Calls on views allocate the scratch alone: a
    /// Jacobian point for each of a launch, on devices that check the subgroup in several launches.
    pub fn required_bytes(&self, len: usize) -> u64 {
        let element = self.inner.layout.bytes.next_multiple_of(4) + AffinePoint::<C>::BYTES + 4;
        let kept = (self.inner.kept(len) * Jacobian::<C>::BYTES) as u64;
        (len as u64).saturating_mul(element as u64).saturating_add(kept)
    }

    /// Writes the point of encoding i to `out[i]` and 0 to `status[i]`. For an invalid encoding it writes the point at
    /// infinity, and to `status[i]` the reason ([`PointError::from_status`]).
    ///
    /// # Errors
    /// [`Error::Device`] holds one of these:
    /// - [`Length`](evariste_backend::Error::Length): the numbers of points, of statuses and of encodings, each of
    ///   [`Decompress::point_bytes`] bytes, differ.
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice): bytes, points, statuses or the queue are of another
    ///   device.
    /// - [`TooLarge`](evariste_backend::Error::TooLarge): encodings have 2^32 bytes or more, there are more than 2^31
    ///   points, or one root exceeds the loop iterations of a thread.
    /// - [`Unaligned`](evariste_backend::Error::Unaligned): a view of bytes is not whole words of 4.
    /// - [`OutOfMemory`](evariste_backend::Error::OutOfMemory): there is no room for the scratch.
    /// - Another error, if the device fails.
    pub fn decompress<'a>(
        &self,
        bytes: impl Into<View<'a, u8>>,
        out: impl Into<ViewMut<'a, AffinePoint<C>>>,
        status: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        let (bytes, mut out, mut status) = (bytes.into(), out.into(), status.into());
        let inner = &*self.inner;
        let queue = self.queue.expect_device(inner.points.kernel.device())?;
        let len = out.len();
        bytes.expect_len("the encodings, in bytes,", len.saturating_mul(inner.layout.bytes))?;
        status.expect_len("the statuses", len)?;
        let too_large = |limit: usize| {
            let (what, device) = ("a batch of encodings, in bytes,", queue.device().info().id);
            Error::Device(evariste_backend::Error::TooLarge {
                what,
                device,
                expected: limit as u64,
                actual: bytes.len() as u64,
            })
        };
        // Kernels count bytes with 32 bits.
        if bytes.len() > u32::MAX as usize {
            return Err(too_large(u32::MAX as usize));
        }
        checked_len(queue.device(), "a batch of points", len)?;
        inner.points.kernel.expect_fits(&PointsParams { len: 0 })?;
        if let Some(subgroup) = &inner.subgroup {
            subgroup.expect_fits()?;
        }
        inner.ready.wait(queue)?;
        let secrecy = Secrecy::of([bytes.secrecy(), out.secrecy(), status.secrecy()]);
        let mut sums = queue.device().alloc_with::<Jacobian<C>>(inner.kept(len), secrecy)?;
        for part in parts(len, inner.each) {
            let params = PointsParams { len: part.len() as u32 };
            let groups = params.len.div_ceil(THREADS).into();
            let encodings = bytes.view(part.start * inner.layout.bytes..part.end * inner.layout.bytes)?;
            let (mut out, mut status) = (out.view_mut(part.clone())?, status.view_mut(part)?);
            let mut args = inner.points.args(queue)?;
            args.extend([Arg::read(encodings), Arg::write(&mut out), Arg::write(&mut status)]);
            // SAFETY: there are bytes, points and statuses for `len` points, and threads touch only theirs. The program
            // refers to its own slots, constants and digits alone, and a hash gives places in its table for any
            // element.
            unsafe { inner.points.kernel.launch(queue, groups, &params, &mut args)? };
            if let Some(subgroup) = &inner.subgroup {
                subgroup.run(queue, &mut out, &mut status, &mut sums)?;
            }
        }
        Ok(())
    }

    /// The same plan with launches of `each` points, and of `digits` digits of the subgroup's scalar.
    #[cfg(test)]
    pub(crate) fn in_launches_of(mut self, each: usize, digits: u32) -> Self {
        let inner = Arc::get_mut(&mut self.inner).expect("a plan with one handle");
        inner.each = each;
        inner.subgroup.iter_mut().for_each(|subgroup| subgroup.digits = digits);
        self
    }

    /// Decompresses encodings in host memory to points on the device. Waits for the device.
    ///
    /// # Errors
    /// [`Error::Point`] with the first invalid encoding.
    ///
    /// [`Error::Device`] holds one of these:
    /// - [`Length`](evariste_backend::Error::Length): the bytes are not whole encodings.
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice): the queue is of another device.
    /// - [`TooLarge`](evariste_backend::Error::TooLarge): there are 2^32 bytes or more, or more than 2^31 points, or
    ///   one root exceeds the loop iterations of a thread.
    /// - [`OutOfMemory`](evariste_backend::Error::OutOfMemory): the device has no room for
    ///   [`Decompress::required_bytes`].
    /// - Another error, if the device fails.
    pub fn decompress_host(&self, bytes: &[u8]) -> Result<Buffer<AffinePoint<C>>> {
        let (points, invalid) = self.try_decompress_host(bytes)?;
        match invalid.first() {
            None => Ok(points),
            Some((index, kind)) => Err(Error::Point { index: *index, kind: *kind }),
        }
    }

    /// Decompresses encodings in host memory to points on the device, and lists the invalid ones. An invalid encoding
    /// gives the point at infinity. Waits for the device.
    ///
    /// # Errors
    /// [`Error::Device`] holds one of these:
    /// - [`Length`](evariste_backend::Error::Length): the bytes are not whole encodings.
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice): the queue is of another device.
    /// - [`TooLarge`](evariste_backend::Error::TooLarge): there are 2^32 bytes or more, or more than 2^31 points, or
    ///   one root exceeds the loop iterations of a thread.
    /// - [`OutOfMemory`](evariste_backend::Error::OutOfMemory): the device has no room for
    ///   [`Decompress::required_bytes`].
    /// - Another error, if the device fails.
    pub fn try_decompress_host(&self, bytes: &[u8]) -> Result<(Buffer<AffinePoint<C>>, Invalid)> {
        // If the bytes end within an encoding, the last one is too short.
        let len = bytes.len().div_ceil(self.inner.layout.bytes);
        let queue = self.queue.expect_device(self.inner.points.kernel.device())?;
        let mut encodings = queue.device().alloc::<u8>(bytes.len())?;
        let (mut points, mut status) = (queue.device().alloc(len)?, queue.device().alloc::<u32>(len)?);
        queue.write(&mut encodings, bytes)?;
        self.decompress(&encodings, &mut points, &mut status)?;
        let invalid = invalid(&queue.read(&status)?);
        Ok((points, invalid))
    }
}

/// The indices of statuses that are not 0, each with its reason.
pub(crate) fn invalid(status: &[u32]) -> Invalid {
    status.iter().enumerate().filter_map(|(i, status)| Some((i, PointError::from_status(*status)?))).collect()
}

/// Points that a CPU thread takes at a time.
const GRAIN: usize = 16;
const _: () = assert!(GRAIN <= STEP);

/// Products of a doubling and an addition of Jacobian points: 8 or 11, and 11 or 16.
pub(crate) const PRODUCTS_OF_DIGIT: u64 = 20;

impl<C: DeviceCurve<BaseField: RootField>> fmt::Debug for Decompress<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompress")
            .field("device", self.queue.device())
            .field("layout", &self.inner.layout)
            .finish_non_exhaustive()
    }
}
