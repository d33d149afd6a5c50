//! Multiples of one point by many scalars.

use std::{fmt, sync::Arc};

use ark_ec::{
    AffineRepr, CurveGroup,
    short_weierstrass::{Affine, Projective},
};
use ark_ff::{AdditiveGroup, PrimeField};
use evariste_backend::{
    Buffer, Device, Element, Queue, Result, Secrecy, View, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Language, Ready},
    parallel, params,
};
use evariste_field::{
    Canonical, DeviceField, DevicePrimeField, Mont, Vector,
    source::{binding_type, iterations},
};
use evariste_primitives::checked_len;

use crate::{
    device_curve::DeviceCurve,
    element::{AffinePoint, Xyzz},
    point,
    points::Points,
    source::{self, Form},
};

/// Bits of a digit of a scalar.
const DIGIT_BITS: u32 = 8;

/// Multiples of a digit in the table: by every value but 0.
const MULTIPLES: usize = (1 << DIGIT_BITS) - 1;

/// Scalars that have scratch at a time.
const PIECE: usize = 1 << 18;

/// Threads of a workgroup.
const THREADS: u32 = 256;

/// Multiples that a thread of a processor computes at a time.
const GRAIN: usize = 16;

params! {
    struct FixedBaseParams {
        len: u32,
        /// Words of a scalar.
        words: u32,
        /// The first digit of the launch, and how many.
        first: u32,
        digits: u32,
        /// The output has the sums of the digits before.
        carried: u32,
    }
}

/// A plan for multiples of one point by many scalars, on one device: for the set-up of keys, commitments and blinding.
///
/// A scalar of b bits is ⌈b / 8⌉ digits. A table has the multiples of the point by each value of each digit, so that a
/// multiple takes an addition of a point for each digit, 8M + 2S, and no doubling. The results share inversions. (Brickell,
/// Gordon, McCurley and Wilson, "Fast exponentiation with precomputation", EUROCRYPT 1992.)
///
/// The point may have any order: a scalar is the integer below the modulus of its field. Time depends on the scalars.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use ark_bls12_381::{Fr, G1Affine, g1::Config};
/// use ark_ec::AffineRepr;
/// use evariste_backend::Device;
/// use evariste_curve::FixedBase;
/// use evariste_field::Mont;
///
/// let device = Device::best()?;
/// let g = G1Affine::generator();
/// let fixed = FixedBase::<Config>::new(&device, g)?;
/// let scalars = [0u64, 1, 1 << 40].map(Fr::from);
/// let mut out = device.alloc(3)?;
/// fixed.mul(&device.upload::<Mont<Fr>>(&scalars)?, &mut out)?;
/// assert_eq!(out.to_vec()?, scalars.map(|k| g * k));
/// # Ok(())
/// # }
/// ```
pub struct FixedBase<C: DeviceCurve<ScalarField: DevicePrimeField>> {
    queue: Queue,
    vector: Vector<C::ScalarField>,
    points: Points<C>,
    inner: Arc<Inner<C>>,
    /// Scalars that have scratch at a time.
    piece: usize,
}

struct Inner<C: DeviceCurve> {
    kernel: Kernel<FixedBaseParams>,
    table: Buffer<AffinePoint<C>>,
    /// When the table is there.
    ready: Ready,
    /// Digits of one launch.
    each: u32,
}

/// Digits of a scalar.
fn digits<C: DeviceCurve>() -> u32 {
    C::ScalarField::MODULUS_BIT_SIZE.div_ceil(DIGIT_BITS)
}

impl<C: DeviceCurve<ScalarField: DevicePrimeField>> FixedBase<C> {
    /// Makes a plan on a queue (`&device` is its default one), with a table that the host computes: 8,160 additions of
    /// points for scalars of 255 bits. Compiles the kernels.
    ///
    /// # Errors
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the table.
    /// - [`Error::TooLarge`](evariste_backend::Error::TooLarge) if one addition exceeds the loop iterations of a thread.
    /// - [`Error::Compile`](evariste_backend::Error::Compile) if the compiler or the driver refuses a kernel.
    /// - [`Error::Unavailable`](evariste_backend::Error::Unavailable) if the compiler is missing and the disk cache has
    ///   not the kernels.
    /// - Another error, if the device fails.
    pub fn new(queue: impl Into<Queue>, point: Affine<C>) -> Result<Self> {
        let queue = queue.into();
        let kernel = Kernel::new(queue.device(), spec::<C>())?;
        let params = |digits| FixedBaseParams { len: 0, words: 0, first: 0, digits, carried: 1 };
        let mut each = digits::<C>();
        while each > 1 && !kernel.fits(&params(each)) {
            each = each.div_ceil(2);
        }
        kernel.expect_fits(&params(each))?;
        let table = queue.upload::<AffinePoint<C>>(&multiples(point))?;
        let ready = Ready::behind(&queue)?;
        let inner = Arc::new(Inner { kernel, table, ready, each });
        let (vector, points) = (Vector::new(&queue), Points::new(&queue));
        let plan = Self { queue, vector, points, inner, piece: PIECE };
        // Every kernel is compiled, and was launched once.
        let zero = plan.queue.upload::<Mont<C::ScalarField>>(&[C::ScalarField::ZERO])?;
        plan.mul(&zero, &mut plan.device().alloc(1)?)?;
        Ok(plan)
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self {
            queue: queue.clone(),
            vector: self.vector.on(queue),
            points: self.points.on(queue),
            inner: Arc::clone(&self.inner),
            piece: self.piece,
        }
    }

    /// Returns the kernels of the plan's own, for compiling them ahead.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        vec![spec::<C>()]
    }

    fn device(&self) -> &Device {
        self.inner.kernel.device()
    }

    /// Returns the bytes of the table: 255 points for each digit of 8 bits.
    pub fn bytes(&self) -> u64 {
        (digits::<C>() as usize * MULTIPLES * AffinePoint::<C>::BYTES) as u64
    }

    /// Returns the most bytes that [`FixedBase::mul`] allocates for `len` scalars: an integer and a point in XYZZ form
    /// for each, of 2^18 at most.
    pub fn scratch_bytes(len: usize) -> u64 {
        (len.min(PIECE) * (Canonical::<C::ScalarField>::BYTES + Xyzz::<C>::BYTES)) as u64
    }

    /// Computes `out[i] = scalars[i]` times the point. It queues work and returns.
    ///
    /// # Errors
    /// - [`Error::Length`](evariste_backend::Error::Length) unless there is an output for each scalar.
    /// - [`Error::WrongDevice`](evariste_backend::Error::WrongDevice) if a view or the queue is of another device.
    /// - [`Error::SecretInput`](evariste_backend::Error::SecretInput) for secret scalars and a public output.
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if there is no room for
    ///   [`FixedBase::scratch_bytes`].
    /// - Another error, if the device fails.
    pub fn mul<'a>(
        &self,
        scalars: impl Into<View<'a, Mont<C::ScalarField>>>,
        out: impl Into<ViewMut<'a, AffinePoint<C>>>,
    ) -> Result<()> {
        let (scalars, mut out, inner) = (scalars.into(), out.into(), &*self.inner);
        let queue = self.queue.expect_device(self.device())?;
        queue.device().expect_same("the scalars", scalars.device())?;
        queue.device().expect_same("the output", out.device())?;
        out.expect_len("the output", scalars.len())?;
        inner.ready.wait(queue)?;
        let secrecy = Secrecy::of([scalars.secrecy(), out.secrecy()]);
        let most = scalars.len().min(self.piece);
        let mut integers = queue.device().alloc_with::<Canonical<C::ScalarField>>(most, secrecy)?;
        let mut sums = queue.device().alloc_with::<Xyzz<C>>(most, secrecy)?;
        for first in (0..scalars.len()).step_by(self.piece) {
            let piece = first..scalars.len().min(first + self.piece);
            let len = piece.len();
            self.vector.to_canonical(scalars.view(piece.clone())?, integers.view_mut(..len)?)?;
            self.sums(integers.view(..len)?, sums.view_mut(..len)?)?;
            self.points.normalise_xyzz(sums.view(..len)?, out.view_mut(piece)?)?;
        }
        Ok(())
    }

    fn sums(&self, integers: View<'_, Canonical<C::ScalarField>>, mut out: ViewMut<'_, Xyzz<C>>) -> Result<()> {
        let Inner { kernel, table, each, .. } = &*self.inner;
        let len = checked_len(self.device(), "vector of scalars", integers.len())?;
        let (all, words) = (digits::<C>(), C::ScalarField::LIMBS as u32);
        for first in (0..all).step_by(*each as usize) {
            let params =
                FixedBaseParams { len, words, first, digits: (all - first).min(*each), carried: (first > 0).into() };
            let args = &mut [Arg::read(table), Arg::read(integers), Arg::write(&mut out)];
            // SAFETY: there are `len` sums and integers of `words` words, and multiples by all values of all digits,
            // which these words have.
            unsafe { kernel.launch(&self.queue, len.div_ceil(THREADS).into(), &params, args) }?;
        }
        Ok(())
    }
}

/// The multiples d · 2^(8 w) of a point for each digit w and value d > 0 of it.
fn multiples<C: DeviceCurve>(point: Affine<C>) -> Vec<Affine<C>> {
    let mut base = point.into_group();
    let mut all: Vec<Projective<C>> = Vec::with_capacity(digits::<C>() as usize * MULTIPLES);
    for _ in 0..digits::<C>() {
        let mut multiple = base;
        for _ in 0..MULTIPLES {
            all.push(multiple);
            multiple += base;
        }
        base = multiple;
    }
    Projective::normalize_batch(&all)
}

fn spec<C: DeviceCurve>() -> KernelSpec {
    let word = binding_type::<C::BaseField>();
    let bindings = [Binding::read("table", word), Binding::read("k", BindingType::U32), Binding::write("out", word)];
    let seen = [(bindings[0], Form::Affine), (bindings[2], Form::Xyzz)];
    let source = move |language| match language {
        Language::Cuda => source::cuda::<C>() + evariste_cuda::curve::FIXED_BASE,
        Language::Wgsl { int64 } => source::wgsl_kernel::<C>(int64, &seen) + evariste_shaders::curve::FIXED_BASE,
    };
    let variant = source::label::<C>();
    let addition = source::iterations::<C>();
    KernelSpec::new("point_fixed_base", variant, bindings, body::<C>, source)
        .threads(THREADS)
        .iterations(move |params: &FixedBaseParams| iterations::repeat(params.digits.into(), addition))
}

/// The body for the CPU.
fn body<C: DeviceCurve>(params: &FixedBaseParams, [table, k, out]: &mut [CpuArg<'_>; 3]) {
    let (point_words, sum_words) = (2 * C::BaseField::LIMBS, 4 * C::BaseField::LIMBS);
    let (table, k, words) = (table.read::<u32>(), k.read::<u32>(), params.words as usize);
    let out = &mut out.write::<u32>()[..params.len as usize * sum_words];
    parallel::chunks(out, GRAIN * sum_words, &|run, out| {
        for (i, out) in (run * GRAIN..).zip(out.chunks_exact_mut(sum_words)) {
            let mut sum = if params.carried == 1 { point::load(out) } else { [C::BaseField::ZERO; 4] };
            for digit in params.first..params.first + params.digits {
                let word = k[i * words + (digit / 4) as usize];
                let value = (word >> (8 * (digit % 4)) & 255) as usize;
                if value > 0 {
                    let at = (MULTIPLES * digit as usize + value - 1) * point_words;
                    sum = point::xyzz_add_affine::<C>(sum, point::load(&table[at..at + point_words]));
                }
            }
            point::store(&sum, out);
        }
    });
}

impl<C: DeviceCurve<ScalarField: DevicePrimeField>> fmt::Debug for FixedBase<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FixedBase").field("device", self.device()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::{Fr, G1Affine, g1::Config};
    use ark_std::UniformRand;

    use super::*;

    #[test]
    fn pieces_are_in_their_places() {
        let (device, g) = (Device::cpu(), G1Affine::generator());
        let plan = FixedBase::<Config> { piece: 7, ..FixedBase::new(&device, g).unwrap() };
        let rng = &mut ark_std::test_rng();
        let scalars: Vec<Fr> = (0..20).map(|_| Fr::rand(rng)).collect();
        let mut out = device.alloc(20).unwrap();
        plan.mul(&device.upload::<Mont<Fr>>(&scalars).unwrap(), &mut out).unwrap();
        let expected: Vec<G1Affine> = scalars.iter().map(|k| (g * k).into()).collect();
        assert_eq!(out.to_vec().unwrap(), expected);
    }
}
