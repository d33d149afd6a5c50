//! The kernel that checks whether points are in the subgroup of prime order, by a multiple of each.

use std::{marker::PhantomData, sync::Mutex};

use ark_ff::{AdditiveGroup, Field};
use evariste_backend::{
    Buffer, Queue, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Language, Wiped, loop_iterations},
    parallel, params,
};
use evariste_curve::{
    AffinePoint, DeviceCurve, Jacobian, point,
    source::{self as curve_source, Form},
};
use evariste_field::{
    DeviceField, Mont,
    ifma::{self, STEP},
    native::Native,
    source::{self, iterations},
};

use crate::{
    decompress::{GRAIN, Prime0},
    error::Result,
    machine::THREADS,
    membership::{MAX_BETA, Membership},
    plan::beta,
    root_field::RootField,
};

params! {
    /// The digits of the scalar from number `low` on, below `high`; the highest one of `bits` is that which the
    /// multiple starts with.
    pub(crate) struct SubgroupParams {
        pub(crate) len: u32,
        pub(crate) bits: u32,
        pub(crate) high: u32,
        pub(crate) low: u32,
    }
}

/// The check with its scalar on the device.
pub(crate) struct Subgroup<C: DeviceCurve<BaseField: RootField>> {
    pub(crate) kernel: Kernel<SubgroupParams>,
    pub(crate) scalar: Buffer<u32>,
    pub(crate) ends: Buffer<Mont<C::BaseField>>,
    pub(crate) bits: u32,
    /// Digits of one launch.
    pub(crate) digits: u32,
}

impl<C: DeviceCurve<BaseField: RootField>> Subgroup<C> {
    pub(crate) fn new(queue: &Queue, membership: &Membership<C::BaseField>) -> Result<Self> {
        let kernel = Kernel::new(queue.device(), subgroup_spec::<C>(membership))?;
        let ends = membership.ends.unwrap_or([C::BaseField::ONE; 2]);
        let (scalar, ends) = (queue.upload(&membership.scalar.to_u32_digits())?, queue.upload(&ends)?);
        let bits = membership.scalar.bits() as u32;
        let mut subgroup = Self { kernel, scalar, ends, bits, digits: (bits - 1).max(1) };
        while subgroup.digits > 1 && !subgroup.launches(0).all(|params| subgroup.kernel.fits(&params)) {
            subgroup.digits = subgroup.digits.div_ceil(2);
        }
        Ok(subgroup)
    }

    /// The digits of the scalar for each launch over `len` points, from the highest on. A scalar of one digit takes one
    /// launch without digits.
    pub(crate) fn launches(&self, len: u32) -> impl Iterator<Item = SubgroupParams> {
        let (bits, digits) = (self.bits, self.digits);
        (0..(bits - 1).div_ceil(digits).max(1)).map(move |i| {
            let high = bits - 1 - i * digits;
            SubgroupParams { len, bits, high, low: high.saturating_sub(digits) }
        })
    }

    /// Multiples that are kept between launches for `len` points in launches of `each`, if the scalar takes several.
    pub(crate) fn kept(&self, len: usize, each: usize) -> usize {
        if self.launches(0).count() > 1 { len.min(each) } else { 0 }
    }

    /// Refuses a device that has not enough loop iterations for some digits.
    pub(crate) fn expect_fits(&self) -> Result<()> {
        Ok(self.launches(0).try_for_each(|params| self.kernel.expect_fits(&params))?)
    }

    /// Checks points whose status is 0. There is a multiple in `sums` for each if one launch does not do all digits.
    pub(crate) fn run(
        &self,
        queue: &Queue,
        points: &mut ViewMut<'_, AffinePoint<C>>,
        status: &mut ViewMut<'_, u32>,
        sums: &mut Buffer<Jacobian<C>>,
    ) -> Result<()> {
        let len = points.len() as u32;
        for params in self.launches(len) {
            let args = &mut [
                Arg::read(&self.scalar),
                Arg::read(&self.ends),
                Arg::write(&mut *points),
                Arg::write(&mut *status),
                Arg::write(&mut *sums),
            ];
            // SAFETY: there are `len` points and statuses, a scalar of `bits` digits and both ends. There are `len`
            // multiples if one launch does not do all digits, else none are touched.
            unsafe { self.kernel.launch(queue, len.div_ceil(THREADS).into(), &params, args)? };
        }
        Ok(())
    }
}

pub(crate) fn subgroup_spec<C: DeviceCurve<BaseField: RootField>>(membership: &Membership<C::BaseField>) -> KernelSpec {
    let word = source::binding_type::<C::BaseField>();
    let bindings = [
        Binding::read("scalar", BindingType::U32),
        Binding::read("ends", word),
        Binding::write("points", word),
        Binding::write("status", BindingType::U32),
        Binding::write("sums", word),
    ];
    let (seen, short, conjugate) = (bindings, membership.ends.is_some(), membership.conjugate);
    let source = move |language| match language {
        Language::Cuda => {
            let curve = curve_source::cuda::<C>();
            let (short, conjugate) = (u8::from(short), u8::from(conjugate));
            let ends = format!("#define ENDOMORPHISM {short}\n#define CONJUGATE {conjugate}\n");
            [&curve, &ends, evariste_cuda::sqrt::SUBGROUP].concat()
        }
        Language::Wgsl { int64 } => {
            let curve = curve_source::wgsl::<C>(int64, &[Form::Jacobian]);
            let points = curve_source::wgsl_accessors::<C>(&seen[2], Form::Affine)
                + &curve_source::wgsl_accessors::<C>(&seen[4], Form::Jacobian);
            let ends = source::wgsl_accessors::<C::BaseField>(&seen[1]);
            let conjugated = if conjugate { "F(x.c0, b_sub(b_zero(), x.c1))" } else { "x" };
            let text = format!("const ENDOMORPHISM = {short};\nfn conjugate(x: F) -> F {{ return {conjugated}; }}\n",);
            [&curve, &points, &ends, &text, evariste_shaders::sqrt::SUBGROUP].concat()
        }
    };
    let (of, scalar) = (membership.clone(), membership.scalar.clone());
    let side_by_side = SideBySide::<C>::new(membership);
    let body = move |params: &SubgroupParams, args: &mut [CpuArg<'_>; 5]| {
        subgroup_body::<C>(&of, side_by_side.as_ref(), *params, args);
    };
    // Doublings have 8 products, or 11 where a is not 0; additions 11, and a doubling in the rare case.
    let mul = iterations::mul::<C::BaseField>();
    let iterations = move |params: &SubgroupParams| {
        let additions = (params.low..params.high).filter(|bit| scalar.bit((*bit).into())).count() as u64;
        loop_iterations((params.high - params.low).into(), 11 * mul).saturating_add(additions * 20 * mul) + 6 * mul
    };
    let (bits, curve) = (membership.scalar.bits(), curve_source::label::<C>());
    let how = match (short, conjugate) {
        (false, _) => "",
        (true, false) => " and an endomorphism",
        (true, true) => " and an endomorphism of conjugates",
    };
    let variant = format!("{bits} digits{how} over {curve}");
    KernelSpec::new("sqrt_subgroup", variant, bindings, body, source).threads(THREADS).iterations(iterations)
}

fn subgroup_body<C: DeviceCurve<BaseField: RootField>>(
    membership: &Membership<C::BaseField>,
    side_by_side: Option<&SideBySide<C>>,
    params: SubgroupParams,
    [_, _, points, status, sums]: &mut [CpuArg<'_>; 5],
) {
    let (limbs, each, len) = (2 * C::BaseField::LIMBS, 3 * C::BaseField::LIMBS, params.len as usize);
    // There are no multiples where one launch does all digits.
    let sums = sums.write::<u32>().chunks_mut(GRAIN * each).map(Some).chain(std::iter::repeat_with(|| None));
    let status = status.write::<u32>()[..len].chunks_mut(GRAIN);
    let status: Vec<_> = status.zip(sums).map(Mutex::new).collect();
    let side_by_side = side_by_side.filter(|_| params.high + 1 == params.bits && params.low == 0);
    let multiplied = |mut sum: point::JacobianOf<C>, p: point::AffineOf<C>| {
        for bit in (params.low..params.high).rev() {
            sum = point::jacobian_double::<C>(sum);
            if membership.scalar.bit(bit.into()) {
                sum = point::jacobian_add_affine::<C>(sum, p);
            }
        }
        sum
    };
    parallel::chunks(&mut points.write::<u32>()[..len * limbs], GRAIN * limbs, &|chunk, points| {
        // Nobody else takes this chunk.
        let Ok(mut own) = status[chunk].lock() else { return };
        let (status, sums) = &mut *own;
        let enough = status.iter().filter(|status| **status == 0).count() >= MIN_SIDE_BY_SIDE;
        let multiples = side_by_side.filter(|_| enough).map(|side_by_side| side_by_side.multiples(points));
        for (i, (words, status)) in points.chunks_exact_mut(limbs).zip(status.iter_mut()).enumerate() {
            let p: point::AffineOf<C> = point::load(words);
            if *status != 0 || point::affine_is_infinity::<C>(&p) {
                continue;
            }
            let kept = sums.as_deref_mut().map(|sums| &mut sums[i * each..][..each]);
            let sum = match (&multiples, &kept) {
                (Some(multiples), _) => point::load(&multiples[i * each..]),
                (None, Some(kept)) if params.high + 1 < params.bits => multiplied(point::load(kept), p),
                (None, _) => multiplied(point::jacobian_of_affine::<C>(p), p),
            };
            match kept {
                Some(kept) if params.low > 0 => point::store(&sum, kept),
                _ if is_member::<C>(membership, p, sum) => {}
                _ => {
                    point::store(&point::affine_infinity::<C>(), words);
                    *status = 4;
                }
            }
        }
    });
}

/// Points of a step from which on the step takes less time than they do one after the other.
const MIN_SIDE_BY_SIDE: usize = 6;

/// Multiples by the subgroup's scalar in lanes of the CPU, where the curve has an endomorphism. Formulas there are not
/// complete: where an addition would be a doubling or its sum infinite, z is 0 at the end. Of a point of the subgroup
/// no multiple on the way by a scalar below r / 2 is, so that such points are outside, as z = 0 says.
struct SideBySide<C: DeviceCurve<BaseField: RootField>> {
    lanes: ifma::Montgomery52,
    digits: Vec<bool>,
    beta: u8,
    one: Vec<u32>,
    curve: PhantomData<C>,
}

impl<C: DeviceCurve<BaseField: RootField>> SideBySide<C> {
    fn new(membership: &Membership<C::BaseField>) -> Option<Self> {
        membership.ends?;
        let beta = match beta::<C::BaseField>().ok()? {
            None => 0,
            Some(square) => (1..=MAX_BETA).find(|beta| Prime0::<C>::from(*beta) == -square)?,
        };
        let lanes = ifma::Montgomery52::of::<Prime0<C>>().filter(|_| C::COEFF_A == C::BaseField::ZERO)?;
        let digits = (0..membership.scalar.bits() - 1).rev().map(|bit| membership.scalar.bit(bit)).collect();
        let mut one = vec![0; Prime0::<C>::LIMBS];
        Prime0::<C>::ONE.store(&mut one);
        Some(Self { lanes, digits, beta, one, curve: PhantomData })
    }

    /// Of up to a step of points, Jacobian.
    fn multiples(&self, points: &[u32]) -> Wiped<u32> {
        let limbs = C::BaseField::LIMBS;
        let mut all = Wiped::from(vec![0; STEP * 2 * limbs]);
        all[..points.len()].copy_from_slice(points);
        let mut multiples = Wiped::from(vec![0; STEP * 3 * limbs]);
        let degree = limbs / Prime0::<C>::LIMBS;
        let Self { lanes, digits, beta, one, .. } = self;
        #[cfg(target_arch = "x86_64")]
        {
            use crate::lanes::multiples::Multiples;
            let job = Multiples { digits, degree, beta: *beta, one, points: &all, multiples: &mut multiples };
            lanes.run::<Prime0<C>, _>(job, Multiples::run_usual);
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("no {lanes:?} is made for {multiples:?} by {digits:?} over {one:?}, {degree} and {beta}");
        #[cfg(target_arch = "x86_64")]
        multiples
    }
}

/// Whether a point whose multiple by the scalar is `multiple` is in the subgroup.
fn is_member<C: DeviceCurve<BaseField: RootField>>(
    membership: &Membership<C::BaseField>,
    p: point::AffineOf<C>,
    [x, y, z]: point::JacobianOf<C>,
) -> bool {
    let Some(ends) = membership.ends else { return z == C::BaseField::ZERO };
    let ends = ends.map(Native);
    let [u, v] = if membership.conjugate { p.map(|x| x.frobenius_map(1)) } else { p }.map(Native);
    let [x, y, z] = [x, y, z].map(Native);
    let square = z.square();
    !z.is_zero() && u * ends[0] * square == x && v * ends[1] * square * z == y
}
