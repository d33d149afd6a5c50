//! The operations on points: for each its name in the sources, its types, and its body on the CPU.

use crate::{
    device_curve::DeviceCurve,
    point::{self, load, store},
    source::Form,
};

/// Operations that need no division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Map {
    XyzzOfAffine,
    XyzzOfJacobian,
    JacobianOfAffine,
    JacobianOfXyzz,
    AffineNegate,
    XyzzNegate,
    JacobianNegate,
    XyzzDouble,
    JacobianDouble,
    XyzzAdd,
    XyzzAddAffine,
    JacobianAdd,
    JacobianAddAffine,
}

impl Map {
    pub(crate) const ALL: [Self; 13] = [
        Map::XyzzOfAffine,
        Map::XyzzOfJacobian,
        Map::JacobianOfAffine,
        Map::JacobianOfXyzz,
        Map::AffineNegate,
        Map::XyzzNegate,
        Map::JacobianNegate,
        Map::XyzzDouble,
        Map::JacobianDouble,
        Map::XyzzAdd,
        Map::XyzzAddAffine,
        Map::JacobianAdd,
        Map::JacobianAddAffine,
    ];

    /// The function, the forms that it takes, and the form that it gives.
    pub(crate) fn signature(self) -> (&'static str, &'static [Form], Form) {
        use Form::{Affine, Jacobian, Xyzz};

        match self {
            Map::XyzzOfAffine => ("xyzz_of_affine", &[Affine], Xyzz),
            Map::XyzzOfJacobian => ("xyzz_of_jacobian", &[Jacobian], Xyzz),
            Map::JacobianOfAffine => ("jacobian_of_affine", &[Affine], Jacobian),
            Map::JacobianOfXyzz => ("jacobian_of_xyzz", &[Xyzz], Jacobian),
            Map::AffineNegate => ("affine_negate", &[Affine], Affine),
            Map::XyzzNegate => ("xyzz_negate", &[Xyzz], Xyzz),
            Map::JacobianNegate => ("jacobian_negate", &[Jacobian], Jacobian),
            Map::XyzzDouble => ("xyzz_double", &[Xyzz], Xyzz),
            Map::JacobianDouble => ("jacobian_double", &[Jacobian], Jacobian),
            Map::XyzzAdd => ("xyzz_add", &[Xyzz, Xyzz], Xyzz),
            Map::XyzzAddAffine => ("xyzz_add_affine", &[Xyzz, Affine], Xyzz),
            Map::JacobianAdd => ("jacobian_add", &[Jacobian, Jacobian], Jacobian),
            Map::JacobianAddAffine => ("jacobian_add_affine", &[Jacobian, Affine], Jacobian),
        }
    }

    /// One point; `b` is empty where the operation takes one operand.
    pub(crate) fn apply<C: DeviceCurve>(self, a: &[u32], b: &[u32], out: &mut [u32]) {
        match self {
            Map::XyzzOfAffine => store(&point::xyzz_of_affine::<C>(load(a)), out),
            Map::XyzzOfJacobian => store::<C::BaseField, 4>(&point::xyzz_of_jacobian(load(a)), out),
            Map::JacobianOfAffine => store(&point::jacobian_of_affine::<C>(load(a)), out),
            Map::JacobianOfXyzz => store::<C::BaseField, 3>(&point::jacobian_of_xyzz(load(a)), out),
            Map::AffineNegate => store(&point::affine_negate::<C>(load(a)), out),
            Map::XyzzNegate => store::<C::BaseField, 4>(&point::xyzz_negate(load(a)), out),
            Map::JacobianNegate => store::<C::BaseField, 3>(&point::jacobian_negate(load(a)), out),
            Map::XyzzDouble => store(&point::xyzz_double::<C>(load(a)), out),
            Map::JacobianDouble => store(&point::jacobian_double::<C>(load(a)), out),
            Map::XyzzAdd => store(&point::xyzz_add::<C>(load(a), load(b)), out),
            Map::XyzzAddAffine => store(&point::xyzz_add_affine::<C>(load(a), load(b)), out),
            Map::JacobianAdd => store(&point::jacobian_add::<C>(load(a), load(b)), out),
            Map::JacobianAddAffine => store(&point::jacobian_add_affine::<C>(load(a), load(b)), out),
        }
    }
}

/// Operations with one division, which give affine points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Divide {
    AffineAdd,
    XyzzNormalise,
    JacobianNormalise,
}

impl Divide {
    pub(crate) const ALL: [Self; 3] = [Divide::AffineAdd, Divide::XyzzNormalise, Divide::JacobianNormalise];

    /// The functions for the denominator and for the rest, and the forms that both take.
    pub(crate) fn signature(self) -> (&'static str, &'static str, &'static [Form]) {
        match self {
            Divide::AffineAdd => ("affine_denominator", "affine_add", &[Form::Affine, Form::Affine]),
            Divide::XyzzNormalise => ("xyzz_denominator", "xyzz_normalise", &[Form::Xyzz]),
            Divide::JacobianNormalise => ("jacobian_denominator", "jacobian_normalise", &[Form::Jacobian]),
        }
    }

    /// The denominator for one point, never zero; `b` is empty where the operation takes one operand.
    pub(crate) fn denominator<C: DeviceCurve>(self, a: &[u32], b: &[u32]) -> C::BaseField {
        match self {
            Divide::AffineAdd => point::affine_denominator::<C>(load(a), load(b)),
            Divide::XyzzNormalise => point::xyzz_denominator(load(a)),
            Divide::JacobianNormalise => point::jacobian_denominator(load(a)),
        }
    }

    /// The result for one point, given the inverse of the denominator.
    pub(crate) fn finish<C: DeviceCurve>(self, a: &[u32], b: &[u32], inverse: C::BaseField) -> [C::BaseField; 2] {
        match self {
            Divide::AffineAdd => point::affine_add::<C>(load(a), load(b), inverse),
            Divide::XyzzNormalise => point::xyzz_normalise::<C>(load(a), inverse),
            Divide::JacobianNormalise => point::jacobian_normalise::<C>(load(a), inverse),
        }
    }
}
