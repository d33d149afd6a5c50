//! What the kernels share.

use ark_ff::AdditiveGroup;
use evariste_backend::{
    Element as _,
    author::{Binding, BindingType, Language},
};
use evariste_curve::{
    DeviceCurve, Xyzz, point,
    source::{self, Form},
};
use evariste_field::{DeviceField, Mont, source::binding_type};

/// x, y, zz, zzz, as CPU bodies compute with them.
pub(crate) type Sum<C> = point::XyzzOf<C>;

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
    [C::BaseField::ZERO; 4]
}

pub(crate) fn load<C: DeviceCurve>(sums: &[u32], i: usize) -> Sum<C> {
    point::load(&sums[i * sum_words::<C>()..])
}

/// Point `i` of a vector in affine form.
pub(crate) fn load_affine<C: DeviceCurve>(points: &[u32], i: usize) -> point::AffineOf<C> {
    point::load(&points[i * affine_words::<C>()..])
}

/// A buffer of points.
pub(crate) fn points<C: DeviceCurve>(name: &'static str, form: Form) -> (Binding, Option<Form>) {
    (Binding::read(name, binding_type::<C::BaseField>()), Some(form))
}

/// A buffer of points that is written.
pub(crate) fn points_out<C: DeviceCurve>(name: &'static str, form: Form) -> (Binding, Option<Form>) {
    (Binding::write(name, binding_type::<C::BaseField>()), Some(form))
}

/// A buffer of integers.
pub(crate) fn words(name: &'static str) -> (Binding, Option<Form>) {
    (Binding::read(name, BindingType::U32), None)
}

/// A buffer of integers that is written.
pub(crate) fn words_out(name: &'static str) -> (Binding, Option<Form>) {
    (Binding::write(name, BindingType::U32), None)
}

/// The text of a kernel over points: the arithmetic of the curve, accessors, and the kernel itself. With `calls`,
/// products are called.
pub(crate) fn text<C: DeviceCurve>(
    language: Language,
    bindings: &[(Binding, Option<Form>)],
    threads: u32,
    calls: bool,
    [cuda, wgsl]: [&str; 2],
) -> String {
    match language {
        Language::Cuda => cuda_text::<C>(&format!("#define THREADS {threads}u\n"), calls, cuda),
        Language::Wgsl { int64 } => wgsl_text::<C>(int64, bindings) + wgsl,
    }
}

/// [`text`] of a kernel that takes four lanes for an addition, with CUDA.
pub(crate) fn quad_text<C: DeviceCurve>(
    language: Language,
    bindings: &[(Binding, Option<Form>)],
    threads: u32,
    [cuda, wgsl]: [&str; 2],
) -> String {
    let cuda = match language {
        Language::Cuda => &[evariste_cuda::warp::FUNCTIONS, evariste_cuda::msm::QUAD, cuda].concat(),
        Language::Wgsl { .. } => "",
    };
    text::<C>(language, bindings, threads, true, [cuda, wgsl])
}

/// The text of a kernel in CUDA C++ behind constants.
pub(crate) fn cuda_text<C: DeviceCurve>(constants: &str, calls: bool, kernel: &str) -> String {
    let curve = if calls { source::cuda_inlined::<C>() } else { source::cuda::<C>() };
    let calls = format!("#define X_CALLS {}\n", u8::from(calls));
    [&curve, constants, &calls, evariste_cuda::msm::HEADER, kernel].concat()
}

/// What comes before a kernel in WGSL.
pub(crate) fn wgsl_text<C: DeviceCurve>(int64: bool, bindings: &[(Binding, Option<Form>)]) -> String {
    let accessors = bindings.iter().filter_map(|(binding, form)| form.map(|form| (binding, form)));
    let accessors = accessors.map(|(binding, form)| source::wgsl_accessors::<C>(binding, form));
    source::wgsl::<C>(int64, &[Form::Xyzz]) + &accessors.collect::<String>()
}

/// The bindings alone.
pub(crate) fn bindings<const N: usize>(seen: &[(Binding, Option<Form>); N]) -> [Binding; N] {
    seen.map(|(binding, _)| binding)
}
