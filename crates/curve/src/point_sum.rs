//! Sums of points by key.

use ark_ff::AdditiveGroup;
use evariste_backend::author::{Binding, BindingType, Language};
use evariste_field::source::binding_type;
use evariste_primitives::Monoid;

use crate::{
    device_curve::DeviceCurve,
    element::Xyzz,
    point,
    source::{self, Form},
};

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

    fn binding_type() -> BindingType {
        binding_type::<C::BaseField>()
    }

    fn source(language: Language, bindings: &[Binding]) -> String {
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

    fn iterations() -> u64 {
        source::iterations::<C>()
    }

    fn zero() -> Self::Value {
        [AdditiveGroup::ZERO; 4]
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
