#![doc = include_str!("../README.md")]
//!
//! The time of all operations depends on the points. Points must lie on the curve. Neither a prime order nor a subgroup
//! is assumed.

mod constants;
mod element;
pub mod lanes;
mod operation;
pub mod point;
mod points;
pub mod source;

use ark_ec::short_weierstrass::SWCurveConfig;

pub use constants::{CurveConstant, CurveError, expect_generator};
pub use element::{AffinePoint, Jacobian, Xyzz};
pub use points::{PointForm, Points};

use evariste_field::DeviceField;
use evariste_primitives::Monoid;

/// A curve whose points live on devices: every short Weierstrass curve of arkworks over a [`DeviceField`].
pub trait DeviceCurve: SWCurveConfig<BaseField: DeviceField> {}

impl<C: SWCurveConfig<BaseField: DeviceField>> DeviceCurve for C {}

/// Addition of points in XYZZ form, for [`SegmentedSum`](evariste_primitives::SegmentedSum).
#[derive(Debug)]
pub struct PointSum<C>(std::marker::PhantomData<fn() -> C>);

// SAFETY: the text is that of the curve, whose points in this form have four coordinates; it computes on its arguments.
unsafe impl<C: DeviceCurve> Monoid for PointSum<C> {
    type Element = Xyzz<C>;
    type Value = [C::BaseField; 4];

    fn name() -> String {
        format!("points over {}", source::label::<C>())
    }

    fn binding_type() -> evariste_backend::BindingType {
        evariste_field::source::binding_type::<C::BaseField>()
    }

    fn source(language: evariste_backend::Language, bindings: &[evariste_backend::Binding]) -> String {
        use evariste_backend::Language;
        use source::Form;

        match language {
            Language::Cuda => {
                source::cuda::<C>() + "#define M Xyzz\n#define m_zero xyzz_infinity\n#define m_add xyzz_add\n"
            }
            Language::Wgsl { int64 } => {
                let accessors = bindings.iter().map(|binding| source::wgsl_accessors::<C>(binding, Form::Xyzz));
                source::wgsl::<C>(int64, &[Form::Xyzz])
                    + &accessors.collect::<String>()
                    + "alias M = Xyzz;\nfn m_zero() -> M { return xyzz_infinity(); }\n\
                       fn m_add(a: M, b: M) -> M { return xyzz_add(a, b); }\n"
            }
        }
    }

    fn turns() -> u64 {
        source::turns::<C>()
    }

    fn zero() -> Self::Value {
        [<C::BaseField as ark_ff::AdditiveGroup>::ZERO; 4]
    }

    fn add(a: Self::Value, b: Self::Value) -> Self::Value {
        point::xyzz_add::<C>(a, b)
    }

    fn load(words: &[u32]) -> Self::Value {
        point::load(words)
    }

    fn store(value: &Self::Value, words: &mut [u32]) {
        point::store(value, words);
    }
}
