//! Source text of a curve's arithmetic, for kernels to stand on, after that of its base field.
//!
//! In both languages a kernel sees the types `Affine`, `Xyzz` and `Jacobian`. Names of functions start with the type of
//! the result in lower case, such as `xyzz_add_affine(a, b)`: see `cuda/curve/points.cuh`.

use evariste_backend::author::{Access, Binding, BindingType};

use crate::device_curve::DeviceCurve;
use evariste_field::{DeviceField, source};

/// The form that points have on devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The form of [`AffinePoint`](super::AffinePoint).
    Affine,
    /// The form of [`Xyzz`](super::Xyzz).
    Xyzz,
    /// The form of [`Jacobian`](super::Jacobian).
    Jacobian,
}

impl Form {
    /// Returns the name of the type in both languages.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Affine => "Affine",
            Form::Xyzz => "Xyzz",
            Form::Jacobian => "Jacobian",
        }
    }

    /// Returns the names of the coordinates, in their order on the device.
    pub const fn coordinates(self) -> &'static [&'static str] {
        match self {
            Form::Affine => &["x", "y"],
            Form::Xyzz => &["x", "y", "zz", "zzz"],
            Form::Jacobian => &["x", "y", "z"],
        }
    }
}

/// A coefficient of the curve in device form.
fn limbs<F: DeviceField>(x: F) -> Vec<u32> {
    let mut limbs = vec![0; F::LIMBS];
    x.store(&mut limbs);
    limbs
}

fn is_zero<F: DeviceField>(x: F) -> bool {
    x == F::ZERO
}

/// Names a curve in variants of kernels and in messages, by its base field ([`source::label`]) and digits that tell it
/// from other curves over that.
pub fn label<C: DeviceCurve>() -> String {
    let coefficients = [C::COEFF_A, C::COEFF_B].into_iter().flat_map(limbs).flat_map(u32::to_le_bytes);
    let digits = source::digits_of(&coefficients.collect::<Vec<u8>>());
    format!("{}, curve {digits}", source::label::<C::BaseField>())
}

/// Returns the arithmetic of a curve in CUDA C++: that of its base field, constants, then `curve/points.cuh`. Over an
/// extension of a field with long elements, the products in that field are called (`field/extension.cuh`).
pub fn cuda<C: DeviceCurve>() -> String {
    format!("#define F_CALLS 1\n{}", cuda_inlined::<C>())
}

/// Returns the text of [`cuda`] with all products inlined, for kernels with few in their text.
pub fn cuda_inlined<C: DeviceCurve>() -> String {
    format!(
        "{}#define C_A {{ {} }}\n#define C_A_ZERO {}\n#define C_B_ZERO {}\n{}",
        source::cuda::<C::BaseField>(),
        source::cuda_words(&limbs(C::COEFF_A)),
        u8::from(is_zero(C::COEFF_A)),
        u8::from(is_zero(C::COEFF_B)),
        evariste_cuda::curve::POINTS,
    )
}

/// Returns the arithmetic of a curve in WGSL, on points of the given forms. `Affine` is always there, but its
/// additions, which need an inversion, only with [`wgsl_affine_addition`].
pub fn wgsl<C: DeviceCurve>(int64: bool, forms: &[Form]) -> String {
    let (xyzz, jacobian) = (forms.contains(&Form::Xyzz), forms.contains(&Form::Jacobian));
    let mut text = source::wgsl::<C::BaseField>(int64);
    text += &format!("const C_A_ZERO = {};\nconst C_B_ZERO = {};\n", is_zero(C::COEFF_A), is_zero(C::COEFF_B));
    text += &wgsl_constant("c_a", C::COEFF_A);
    text += evariste_shaders::curve::POINTS;
    if xyzz {
        text += evariste_shaders::curve::XYZZ;
    }
    if jacobian {
        text += evariste_shaders::curve::JACOBIAN;
    }
    if xyzz && jacobian {
        text += evariste_shaders::curve::CONVERT;
    }
    text
}

/// Returns `affine_denominator` and `affine_add` in WGSL, for a place behind [`wgsl`].
pub const fn wgsl_affine_addition() -> &'static str {
    evariste_shaders::curve::AFFINE
}

/// Most products of field elements in an operation on one or two points, divisions left out. The addition of two points
/// in Jacobian form takes 19, with the tangent for equal points.
const PRODUCTS: u64 = 20;

/// Returns the most loop iterations that an operation on one or two points takes in WGSL, divisions left out.
pub fn iterations<C: DeviceCurve>() -> u64 {
    PRODUCTS * source::iterations::mul::<C::BaseField>()
}

/// A function without arguments that gives a constant. It is read as an element of a buffer would be, so that it does
/// not matter here what `F` is made of.
fn wgsl_constant<F: DeviceField>(name: &'static str, value: F) -> String {
    if is_zero(value) {
        return format!("fn {name}() -> F {{ return f_zero(); }}\n");
    }
    let word = source::binding_type::<F>();
    let words: Vec<String> = limbs(value)
        .chunks(word.bytes() as usize / 4)
        .map(|limbs| format!("{}({})", word_type(word), source::wgsl_words(limbs)))
        .collect();
    let cases = words.iter().enumerate().skip(1).map(|(i, word)| format!("case {i}u: {{ return {word}; }} "));
    format!(
        "fn {name}_get(i: u32) -> {} {{ switch i {{ {}default: {{ return {}; }} }} }}\n{}\
         fn {name}() -> F {{ return {name}_load(0u); }}\n",
        word_type(word),
        cases.collect::<String>(),
        words[0],
        source::wgsl_accessors::<F>(&Binding::read(name, word)),
    )
}

const fn word_type(word: BindingType) -> &'static str {
    match word {
        BindingType::U32 | BindingType::Atomic => "u32",
        BindingType::Vec2 => "vec2<u32>",
        BindingType::Vec4 | BindingType::Bytes => "vec4<u32>",
    }
}

/// Returns `x_load` and `x_store` in WGSL for a binding `x` of points of a form, whose word is that of the base field.
/// `x_coordinate_load` and `x_coordinate_store` take and give single coordinates, all counted.
pub fn wgsl_accessors<C: DeviceCurve>(binding: &Binding, form: Form) -> String {
    let (name, kind, names) = (binding.name, form.name(), form.coordinates());
    let count = names.len();
    let mut text = source::wgsl_accessors::<C::BaseField>(binding)
        .replace(&format!("fn {name}_load("), &format!("fn {name}_coordinate_load("))
        .replace(&format!("fn {name}_store("), &format!("fn {name}_coordinate_store("));
    let loads: Vec<String> = (0..count).map(|at| format!("{name}_coordinate_load({count}u * i + {at}u)")).collect();
    text += &format!("fn {name}_load(i: u32) -> {kind} {{ return {kind}({}); }}\n", loads.join(", "));
    if binding.access == Access::Write {
        let stores = names.iter().enumerate();
        let stores = stores.map(|(at, x)| format!(" {name}_coordinate_store({count}u * i + {at}u, v.{x});"));
        text += &format!("fn {name}_store(i: u32, v: {kind}) {{{} }}\n", stores.collect::<String>());
    }
    text
}

/// Returns what a WGSL kernel over points stands on: the arithmetic of the forms of its bindings, and their accessors.
pub fn wgsl_kernel<C: DeviceCurve>(int64: bool, bindings: &[(Binding, Form)]) -> String {
    let forms: Vec<Form> = bindings.iter().map(|(_, form)| *form).collect();
    let accessors = bindings.iter().map(|(binding, form)| wgsl_accessors::<C>(binding, *form));
    wgsl::<C>(int64, &forms) + &accessors.collect::<String>()
}
