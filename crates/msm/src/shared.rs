//! What the kernels share.

use ark_ff::Zero;
use evariste_backend::Element as _;
use evariste_backend::{Binding, Language, Word};
use evariste_field::{
    DeviceField, Mont,
    curve::{
        DeviceCurve, PointSum, Xyzz,
        source::{self, Form},
    },
    primitives::Monoid,
    source::word,
};

/// x, y, zz, zzz, as CPU bodies compute with them.
pub(crate) type Sum<C> = <PointSum<C> as Monoid>::Value;

/// Words of a point in XYZZ form.
pub(crate) const fn sum_words<C: DeviceCurve>() -> usize {
    Xyzz::<C>::BYTES / 4
}

/// Words of a point in affine form.
pub(crate) const fn affine_words<C: DeviceCurve>() -> usize {
    2 * C::BaseField::LIMBS
}

/// Bytes of a point in XYZZ form.
pub(crate) const fn sum_bytes<C: DeviceCurve>() -> u64 {
    Xyzz::<C>::BYTES as u64
}

/// Bytes of a scalar.
pub(crate) const fn scalar_bytes<F: DeviceField>() -> u64 {
    Mont::<F>::BYTES as u64
}

pub(crate) fn zero<C: DeviceCurve>() -> Sum<C> {
    PointSum::<C>::zero()
}

pub(crate) fn add<C: DeviceCurve>(a: Sum<C>, b: Sum<C>) -> Sum<C> {
    PointSum::<C>::add(a, b)
}

pub(crate) fn load<C: DeviceCurve>(sums: &[u32], i: usize) -> Sum<C> {
    PointSum::<C>::load(&sums[i * sum_words::<C>()..])
}

pub(crate) fn store<C: DeviceCurve>(sum: &Sum<C>, words: &mut [u32]) {
    PointSum::<C>::store(sum, words);
}

/// Point `i` of a vector in affine form, in XYZZ form.
pub(crate) fn load_affine<C: DeviceCurve>(points: &[u32], i: usize) -> Sum<C> {
    use ark_ff::{AdditiveGroup, Field};

    let (words, limbs) = (&points[i * affine_words::<C>()..], C::BaseField::LIMBS);
    let [x, y] = [0, limbs].map(|at| C::BaseField::load(&words[at..]));
    let infinity = if C::COEFF_B.is_zero() { C::BaseField::ONE } else { C::BaseField::ZERO };
    if x.is_zero() && y == infinity {
        return zero::<C>();
    }
    [x, y, C::BaseField::ONE, C::BaseField::ONE]
}

/// A buffer of points.
pub(crate) fn points<C: DeviceCurve>(name: &'static str, form: Form) -> (Binding, Option<Form>) {
    (Binding::read(name, word::<C::BaseField>()), Some(form))
}

/// A buffer of points that is written.
pub(crate) fn points_out<C: DeviceCurve>(name: &'static str, form: Form) -> (Binding, Option<Form>) {
    (Binding::write(name, word::<C::BaseField>()), Some(form))
}

/// A buffer of integers.
pub(crate) fn words(name: &'static str) -> (Binding, Option<Form>) {
    (Binding::read(name, Word::U32), None)
}

/// A buffer of integers that is written.
pub(crate) fn words_out(name: &'static str) -> (Binding, Option<Form>) {
    (Binding::write(name, Word::U32), None)
}

/// The text of a kernel over points: the arithmetic of the curve, accessors, and the kernel itself.
pub(crate) fn text<C: DeviceCurve>(
    language: Language,
    bindings: &[(Binding, Option<Form>)],
    threads: u32,
    [cuda, wgsl]: [&str; 2],
) -> String {
    match language {
        Language::Cuda => {
            let threads = format!("#define THREADS {threads}u\n");
            [&source::cuda::<C>(), evariste_cuda::MSM_HEADER, &threads, cuda].concat()
        }
        Language::Wgsl { int64 } => {
            let accessors = bindings.iter().filter_map(|(binding, form)| form.map(|form| (binding, form)));
            let accessors = accessors.map(|(binding, form)| source::wgsl_accessors::<C>(binding, form));
            source::wgsl::<C>(int64, &[Form::Xyzz]) + &accessors.collect::<String>() + wgsl
        }
    }
}

/// The bindings alone.
pub(crate) fn bindings(seen: &[(Binding, Option<Form>)]) -> Vec<Binding> {
    seen.iter().map(|(binding, _)| *binding).collect()
}
