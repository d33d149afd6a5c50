use std::{any::type_name, fmt, sync::Arc};

use ark_ec::{
    AffineRepr, CurveConfig, CurveGroup,
    hashing::{
        curve_maps::wb::{WBConfig, WBMap},
        map_to_curve_hasher::MapToCurve as _,
    },
    short_weierstrass::{Affine, SWCurveConfig},
};
use ark_ff::{
    AdditiveGroup, FftField, Field, PrimeField,
    field_hashers::{DefaultFieldHasher, HashToField},
};
use evariste_backend::{
    Buffer, Element, Queue, View, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Language, Ready, loop_iterations},
    parallel, params,
};
use evariste_curve::{
    AffinePoint, DeviceCurve, Jacobian, Points, point,
    source::{self as curve_source, Form},
};
use evariste_field::{
    DeviceField, Mont,
    source::{self, iterations},
    two_adic_root,
};
use num_bigint::BigUint;
use rayon::prelude::*;
use sha2::Sha256;

use crate::{
    decompress::PRODUCTS_OF_DIGIT,
    error::{Error, Result},
    kernel::{checked_len, launch_len, parts},
    machine::THREADS,
    map::MapToCurve,
    membership::Membership,
    root_field::RootField,
};

/// Hashes messages to points of the subgroup of prime order on one device. It computes `hash_to_curve` of RFC 9380 with
/// `expand_message_xmd` and SHA-256, for curves like those of the suites `BLS12381G1_XMD:SHA-256_SSWU_RO_` and
/// `BLS12381G2_XMD:SHA-256_SSWU_RO_`.
///
/// The host hashes each message to two elements of the field, on all cores. The device maps both ([`MapToCurve`]), adds
/// the points, and clears the cofactor. In G1 this takes a multiplication with 1 − z, in G2 two with z and 1 − z. Each
/// takes 64 doublings (Budroni and Pintore, "Efficient hash maps to G2 on BLS curves", 2017). The time depends on the
/// messages: do not hash secret ones.
///
/// ```
/// # fn main() -> Result<(), evariste_sqrt::Error> {
/// use ark_bls12_381::g2::Config;
/// use evariste_backend::Device;
/// use evariste_sqrt::HashToCurve;
///
/// let hash = HashToCurve::<Config>::new(&Device::best()?, b"EXAMPLE-V01-CS02-with-BLS12381G2_XMD:SHA-256_SSWU_RO_")?;
/// let points = hash.hash_host(&["one message", "another one"])?.to_vec()?;
/// assert!(points.iter().all(|p| p.is_in_correct_subgroup_assuming_on_curve()));
/// # Ok(())
/// # }
/// ```
pub struct HashToCurve<C: WBConfig + DeviceCurve<BaseField: RootField>> {
    queue: Queue,
    inner: Arc<Inner<C>>,
}

/// The kernel of the endomorphism, and its constants.
type Frobenius<C> = (Kernel<FrobeniusParams>, Buffer<Mont<<C as CurveConfig>::BaseField>>);

struct Inner<C: WBConfig + DeviceCurve<BaseField: RootField>> {
    domain: Vec<u8>,
    map: MapToCurve<C>,
    points: Points<C>,
    multiple: Kernel<MultipleParams>,
    /// Scalars of the multiplications, one after the other.
    scalars: Vec<(Buffer<u32>, u32)>,
    frobenius: Option<Frobenius<C>>,
    /// When scalars and constants are on the device.
    ready: Ready,
}

/// Bytes of the hash for each coefficient, for which its field must be made.
const COEFFICIENT_BYTES: u32 = 64;

impl<C: WBConfig + DeviceCurve<BaseField: RootField>> HashToCurve<C> {
    /// Makes a plan for a domain separation tag (RFC 9380, section 3.1) on a queue (`&device` is its default one).
    /// Compiles the kernels.
    ///
    /// # Errors
    /// - [`Error::Domain`]: the tag is empty.
    /// - [`Error::Field`]: the suite of the curve would take other than 64 bytes for a coefficient. Or the clearing of
    ///   its cofactor is not that of BLS12-381. Or the base field is neither prime nor a quadratic extension x² = β of
    ///   a prime field.
    /// - [`Error::Square`]: the constant of the simplified map or β is a square.
    /// - [`Error::Modulus`]: the modulus is no prime.
    /// - [`Error::Root`]: the base field has a root of unity that is not primitive.
    /// - [`Error::Curve`]: the coefficients, the generator, its order, the cofactor or the isogeny of the curve do not
    ///   hold.
    /// - [`Error::Device`]: a kernel does not compile, or the device has no room for the tables or fails.
    pub fn new(queue: impl Into<Queue>, domain: &[u8]) -> Result<Self> {
        let queue = queue.into();
        let device = queue.device();
        if domain.is_empty() {
            return Err(Error::Domain);
        }
        Membership::<C::BaseField>::checked::<C>(device)?;
        let clearing = Clearing::of::<C>()?;
        let scalar = |scalar: &BigUint| Ok((queue.upload(&scalar.to_u32_digits())?, scalar.bits() as u32));
        let frobenius = |ends: [C::BaseField; 2]| -> Result<Frobenius<C>> {
            Ok((Kernel::new(device, frobenius_spec::<C>())?, queue.upload(&ends)?))
        };
        let inner = Inner {
            domain: domain.to_vec(),
            map: MapToCurve::new(&queue)?,
            points: Points::new(&queue),
            multiple: Kernel::new(device, multiple_spec::<C>())?,
            scalars: clearing.scalars.iter().map(scalar).collect::<Result<_>>()?,
            frobenius: clearing.ends.map(frobenius).transpose()?,
            ready: Ready::behind(&queue)?,
        };
        Ok(Self { queue, inner: Arc::new(inner) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), inner: Arc::clone(&self.inner) }
    }

    /// Returns the kernels beside those of [`MapToCurve`] and of [`Points`], so that you can compile them ahead. The
    /// list is empty for a curve that [`HashToCurve::new`] refuses.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        let Ok(clearing) = Clearing::of::<C>() else { return Vec::new() };
        std::iter::once(multiple_spec::<C>()).chain(clearing.ends.map(|_| frobenius_spec::<C>())).collect()
    }

    /// Returns the most bytes of device memory that a call for `len` messages allocates, with the points that it
    /// returns.
    pub fn required_bytes(&self, len: usize) -> u64 {
        let (element, jacobian) = (Mont::<C::BaseField>::BYTES as u64, Jacobian::<C>::BYTES as u64);
        let jacobians = if self.inner.frobenius.is_some() { 6 } else { 4 };
        let message = 2 * element + jacobians * jacobian + AffinePoint::<C>::BYTES as u64;
        message.saturating_mul(len as u64).saturating_add(self.inner.map.required_bytes(len.saturating_mul(2)))
    }

    /// Computes the point of each message, on the device.
    ///
    /// # Errors
    /// [`Error::Device`] holds one of these:
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice): the queue is of another device.
    /// - [`TooLarge`](evariste_backend::Error::TooLarge): there are more than 2^30 messages, or one map or one addition
    ///   exceeds the loop iterations of a thread.
    /// - [`OutOfMemory`](evariste_backend::Error::OutOfMemory): there is no room for [`HashToCurve::required_bytes`].
    /// - Another error, if the device fails.
    pub fn hash_host<M: AsRef<[u8]> + Sync>(&self, messages: &[M]) -> Result<Buffer<AffinePoint<C>>> {
        let (inner, count) = (&*self.inner, messages.len());
        let device = inner.multiple.device();
        let queue = self.queue.expect_device(device)?;
        checked_len(device, "a batch of elements to map", count.saturating_mul(2))?;
        let hasher = <DefaultFieldHasher<Sha256> as HashToField<C::BaseField>>::new(&inner.domain);
        let hash = |message: &M| -> (C::BaseField, C::BaseField) { hasher.hash_to_field::<2>(message.as_ref()).into() };
        // All the first elements, then all the second ones.
        let (mut first, second): (Vec<_>, Vec<_>) = messages.par_iter().with_min_len(64).map(hash).unzip();
        first.extend(second);
        let mut elements = device.alloc::<Mont<C::BaseField>>(2 * count)?;
        queue.write(&mut elements, &first)?;
        let mut mapped = device.alloc::<Jacobian<C>>(2 * count)?;
        let (map, points) = (inner.map.on(queue), inner.points.on(queue));
        map.map(&elements, &mut mapped)?;
        let jacobians = || device.alloc::<Jacobian<C>>(count);
        let (mut sum, mut multiple, mut out) = (jacobians()?, jacobians()?, device.alloc(count)?);
        points.add_jacobian(mapped.view(..count)?, mapped.view(count..)?, &mut sum)?;
        inner.ready.wait(queue)?;
        let Some((kernel, ends)) = &inner.frobenius else {
            for scalar in &inner.scalars {
                self.multiply(scalar, sum.as_view(), multiple.as_view_mut())?;
                std::mem::swap(&mut sum, &mut multiple);
            }
            points.normalise_jacobian(&sum, &mut out)?;
            return Ok(out);
        };
        let [first, second] = &inner.scalars[..] else { unreachable!("there are two scalars with an endomorphism") };
        let frobenius = |a: &Buffer<Jacobian<C>>, out: &mut Buffer<Jacobian<C>>| -> Result<()> {
            let params = FrobeniusParams { len: count as u32 };
            let args = &mut [Arg::read(ends), Arg::read(a), Arg::write(out)];
            // SAFETY: both have `len` points, and there are two ends.
            Ok(unsafe { kernel.launch(queue, params.len.div_ceil(THREADS).into(), &params, args) }?)
        };
        // k2 (k1 P + ψ P) + 2 ψ² P − P.
        let (mut image, mut other) = (jacobians()?, jacobians()?);
        frobenius(&sum, &mut image)?;
        self.multiply(first, sum.as_view(), multiple.as_view_mut())?;
        points.add_jacobian(&multiple, &image, &mut other)?;
        self.multiply(second, other.as_view(), multiple.as_view_mut())?;
        frobenius(&image, &mut other)?;
        points.double_jacobian(&other, &mut image)?;
        points.add_jacobian(&multiple, &image, &mut other)?;
        points.negate_jacobian(&sum, &mut image)?;
        points.add_jacobian(&other, &image, &mut multiple)?;
        points.normalise_jacobian(&multiple, &mut out)?;
        Ok(out)
    }

    /// k times each point, in launches of a bounded number of points. A launch takes the digits that a thread of the
    /// device may do.
    fn multiply(
        &self,
        (scalar, bits): &(Buffer<u32>, u32),
        base: View<'_, Jacobian<C>>,
        mut out: ViewMut<'_, Jacobian<C>>,
    ) -> Result<()> {
        let kernel = &self.inner.multiple;
        let of = |len: usize, high: u32, low: u32| MultipleParams {
            len: len as u32,
            high,
            low,
            first: u32::from(high + 1 == *bits),
        };
        let mut digits = (bits - 1).max(1);
        while digits > 1 && !kernel.fits(&of(0, digits, 0)) {
            digits = digits.div_ceil(2);
        }
        let each = launch_len::<C::BaseField>(self.queue.device().info(), u64::from(digits) * PRODUCTS_OF_DIGIT);
        for part in parts(base.len(), each) {
            // A scalar of one digit is one launch without any.
            let mut high = bits - 1;
            loop {
                let low = high.saturating_sub(digits);
                let (base, out) = (base.view(part.clone())?, out.view_mut(part.clone())?);
                let params = of(part.len(), high, low);
                let args = &mut [Arg::read(scalar), Arg::read(base), Arg::write(out)];
                // SAFETY: both have `len` points, and the scalar has `bits` digits.
                unsafe { kernel.launch(&self.queue, params.len.div_ceil(THREADS).into(), &params, args) }?;
                if low == 0 {
                    break;
                }
                high = low;
            }
        }
        Ok(())
    }
}

/// How points are brought to the subgroup: by k P for the one scalar, or by k2 (k1 P + ψ P) + 2 ψ² P − P for two and
/// the endomorphism ψ (x, y) = (ends[0] x, ends[1] y), of the conjugates of x and y.
struct Clearing<F> {
    scalars: Vec<BigUint>,
    ends: Option<[F; 2]>,
}

impl<F: RootField> Clearing<F> {
    /// What gives the same as arkworks' `clear_cofactor`, which is that of the suite, for a point outside of the
    /// subgroup.
    fn of<C: WBConfig + DeviceCurve<BaseField = F>>() -> Result<Self> {
        let refused = Err(Error::Field { what: "hashes to curves", degree: F::extension_degree() });
        if (F::BasePrimeField::MODULUS_BIT_SIZE + 128).div_ceil(8) != COEFFICIENT_BYTES {
            return refused;
        }
        // arkworks' own roots rest on this one, and may not end where it is not primitive.
        if two_adic_root::<F::BasePrimeField>() != Some(F::BasePrimeField::TWO_ADIC_ROOT_OF_UNITY) {
            return Err(Error::Root { field: type_name::<F::BasePrimeField>() });
        }
        let Ok(point) = WBMap::<C>::map_to_curve(F::ONE) else { return refused };
        let expected = C::clear_cofactor(&point);
        let short = Membership::<F>::of::<C>().filter(|membership| membership.ends.is_some());
        let candidates = short.into_iter().flat_map(|membership| {
            // The scalar of the first group is z², that of the second one |z|.
            let ends = membership.ends.filter(|_| membership.conjugate);
            let z = if ends.is_some() { membership.scalar } else { membership.scalar.sqrt() };
            [&z + 1u8, &z - 1u8].map(|last| {
                let scalars = if ends.is_some() { vec![z.clone(), last] } else { vec![last] };
                Self { scalars, ends }
            })
        });
        let cofactor = Self { scalars: vec![BigUint::from_slice(&words(C::COFACTOR))], ends: None };
        let found = candidates.chain([cofactor]).find(|clearing| clearing.apply::<C>(point) == expected);
        found.map_or(refused, Ok)
    }

    fn apply<C: SWCurveConfig<BaseField = F>>(&self, p: Affine<C>) -> Affine<C> {
        let times = |p: Affine<C>, k: &BigUint| p.mul_bigint(k.to_u64_digits()).into_affine();
        let Some([u, v]) = self.ends else { return self.scalars.iter().fold(p, times) };
        let [first, second] = &self.scalars[..] else { return Affine::zero() };
        let image = |p: Affine<C>| Affine::new_unchecked(u * p.x.frobenius_map(1), v * p.y.frobenius_map(1));
        let other = image(p);
        let sum = (times(p, first) + other).into_affine();
        (times(sum, second).into_group() + image(other).into_group().double() - p).into_affine()
    }
}

fn words(limbs: &[u64]) -> Vec<u32> {
    limbs.iter().flat_map(|limb| [*limb as u32, (*limb >> 32) as u32]).collect()
}

params! {
    struct MultipleParams {
        len: u32,
        high: u32,
        low: u32,
        first: u32,
    }

    struct FrobeniusParams {
        len: u32,
    }
}

/// Points that a CPU thread takes at a time.
const GRAIN: usize = 16;

fn multiple_spec<C: DeviceCurve>() -> KernelSpec {
    let word = source::binding_type::<C::BaseField>();
    let bindings =
        [Binding::read("scalar", BindingType::U32), Binding::read("base", word), Binding::write("out", word)];
    let source = move |language| match language {
        Language::Cuda => curve_source::cuda::<C>() + evariste_cuda::sqrt::MULTIPLE,
        Language::Wgsl { int64 } => {
            let forms = [&bindings[1], &bindings[2]].map(|binding| (*binding, Form::Jacobian));
            curve_source::wgsl_kernel::<C>(int64, &forms) + evariste_shaders::sqrt::MULTIPLE
        }
    };
    let body = |params: &MultipleParams, args: &mut [CpuArg<'_>; 3]| multiple_body::<C>(*params, args);
    // Doublings have 8 products, or 11 where a is not 0; additions 16, and a doubling in the rare case.
    let digit = 40 * iterations::mul::<C::BaseField>();
    KernelSpec::new("sqrt_multiple", curve_source::label::<C>(), bindings, body, source)
        .threads(THREADS)
        .iterations(move |params: &MultipleParams| loop_iterations((params.high - params.low).into(), digit))
}

fn multiple_body<C: DeviceCurve>(params: MultipleParams, [scalar, base, out]: &mut [CpuArg<'_>; 3]) {
    let (scalar, base, each) = (scalar.read::<u32>(), base.read::<u32>(), 3 * C::BaseField::LIMBS);
    parallel::chunks(&mut out.write::<u32>()[..params.len as usize * each], GRAIN * each, &|chunk, out| {
        for (out, base) in out.chunks_exact_mut(each).zip(base[chunk * GRAIN * each..].chunks_exact(each)) {
            let point = point::load(base);
            let mut sum: point::JacobianOf<C> = if params.first == 1 { point } else { point::load(out) };
            for bit in (params.low..params.high).rev() {
                sum = point::jacobian_double::<C>(sum);
                if scalar[bit as usize / 32] >> (bit % 32) & 1 == 1 {
                    sum = point::jacobian_add::<C>(sum, point);
                }
            }
            point::store(&sum, out);
        }
    });
}

fn frobenius_spec<C: DeviceCurve>() -> KernelSpec {
    let word = source::binding_type::<C::BaseField>();
    let bindings = [Binding::read("ends", word), Binding::read("a", word), Binding::write("out", word)];
    let source = move |language| match language {
        Language::Cuda => curve_source::cuda::<C>() + evariste_cuda::sqrt::FROBENIUS,
        Language::Wgsl { int64 } => {
            let forms = [&bindings[1], &bindings[2]].map(|binding| (*binding, Form::Jacobian));
            let ends = source::wgsl_accessors::<C::BaseField>(&bindings[0]);
            curve_source::wgsl_kernel::<C>(int64, &forms) + &ends + evariste_shaders::sqrt::FROBENIUS
        }
    };
    let body = |params: &FrobeniusParams, [ends, a, out]: &mut [CpuArg<'_>; 3]| {
        let each = 3 * C::BaseField::LIMBS;
        let [u, v]: [C::BaseField; 2] = point::load(ends.read::<u32>());
        let a = a.read::<u32>();
        parallel::chunks(&mut out.write::<u32>()[..params.len as usize * each], GRAIN * each, &|chunk, out| {
            for (out, a) in out.chunks_exact_mut(each).zip(a[chunk * GRAIN * each..].chunks_exact(each)) {
                let [x, y, z]: point::JacobianOf<C> = point::load(a);
                let [x, y, z] = [x, y, z].map(|x| x.frobenius_map(1));
                point::store(&[u * x, v * y, z], out);
            }
        });
    };
    let iterations = 2 * iterations::mul::<C::BaseField>();
    KernelSpec::new("sqrt_frobenius", curve_source::label::<C>(), bindings, body, source)
        .threads(THREADS)
        .iterations(move |_: &FrobeniusParams| iterations)
}

impl<C: WBConfig + DeviceCurve<BaseField: RootField>> fmt::Debug for HashToCurve<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashToCurve").field("device", self.queue.device()).finish_non_exhaustive()
    }
}
