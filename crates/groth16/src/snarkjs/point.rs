//! Points as lists of coordinates: x, y and 1, or 0, 1 and 0 for the one at infinity.

use ark_ec::{AffineRepr, short_weierstrass::Affine};
use ark_ff::{AdditiveGroup, Field, PrimeField};
use evariste_curve::DeviceCurve;

use super::number::{from_decimal, to_decimal};
use crate::{
    check::Check,
    error::{Error, JsonProblem, Result},
    words::check_point,
};

pub(super) type G1Json = [String; 3];
pub(super) type G2Json = [[String; 2]; 3];

/// A field that coordinates are lists of elements of.
type Base<C> = <<Affine<C> as AffineRepr>::BaseField as Field>::BasePrimeField;

/// Returns the coefficients of x, and then those of y. Those of infinity are 0.
pub(super) fn affine<C: DeviceCurve>(point: &Affine<C>) -> Vec<Base<C>> {
    let (x, y) = point.xy().unwrap_or_default();
    [x, y].iter().flat_map(Field::to_base_prime_field_elements).collect()
}

/// Returns the coefficients of the three coordinates.
fn coordinates<C: DeviceCurve>(point: &Affine<C>) -> [Vec<String>; 3] {
    let (zero, one) = (C::BaseField::ZERO, C::BaseField::ONE);
    let [x, y, z] = point.xy().map_or([zero, one, zero], |(x, y)| [x, y, one]);
    [x, y, z].map(|coordinate| coordinate.to_base_prime_field_elements().map(|x| to_decimal(&x)).collect())
}

pub(super) fn to_g1<C: DeviceCurve>(point: &Affine<C>) -> G1Json {
    coordinates(point).map(|coordinate| coordinate.concat())
}

pub(super) fn to_g2<C: DeviceCurve>(point: &Affine<C>) -> G2Json {
    coordinates(point).map(|coordinate| {
        let mut coefficients = coordinate.into_iter();
        [(); 2].map(|()| coefficients.next().unwrap_or_default())
    })
}

pub(super) fn from_g1<C: DeviceCurve<BaseField: PrimeField>>(field: &str, json: &G1Json) -> Result<Affine<C>> {
    let [x, y, z] = json;
    let number = |i, digits| from_decimal(&format!("{field}[{i}]"), digits);
    point(field, [number(0, x)?, number(1, y)?, number(2, z)?])
}

pub(super) fn from_g2<C: DeviceCurve>(field: &str, json: &G2Json) -> Result<Affine<C>> {
    let number = |i: usize| {
        let number = |j: usize| from_decimal(&format!("{field}[{i}][{j}]"), &json[i][j]);
        let element = C::BaseField::from_base_prime_field_elems([number(0)?, number(1)?]);
        // Coordinates of another degree are none of curves that snarkjs has.
        element.ok_or_else(|| error(field, JsonProblem::NotAffine))
    };
    point(field, [number(0)?, number(1)?, number(2)?])
}

fn point<C: DeviceCurve>(field: &str, [x, y, z]: [C::BaseField; 3]) -> Result<Affine<C>> {
    let (zero, one) = (C::BaseField::ZERO, C::BaseField::ONE);
    if [x, y, z] == [zero, one, zero] {
        return Ok(Affine::identity());
    }
    if z != one {
        return Err(error(field, JsonProblem::NotAffine));
    }
    let point = Affine::new_unchecked(x, y);
    check_point(&point, Check::Full).map_err(|kind| error(field, JsonProblem::Point { kind }))?;
    Ok(point)
}

fn error(field: &str, problem: JsonProblem) -> Error {
    Error::Json { path: None, field: field.to_owned(), problem }
}
