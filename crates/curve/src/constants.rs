use std::{
    any::{TypeId, type_name},
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use ark_ec::AffineRepr;
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField};
use evariste_backend::Device;

use crate::{device_curve::DeviceCurve, point};

/// A constant of a curve's configuration that operations rely on and that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{curve}: {constant}")]
pub struct CurveError {
    /// The type of the configuration.
    pub curve: &'static str,
    /// The constant that does not hold.
    pub constant: CurveConstant,
}

/// A claim of a curve's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum CurveConstant {
    /// 4 a³ + 27 b² ≠ 0.
    #[error("4 a³ + 27 b² is 0, so that the coefficients are those of no curve")]
    Coefficients,
    /// The generator is on the curve, and not at infinity.
    #[error("the generator is at infinity or not on the curve")]
    Generator,
    /// The generator's order divides r, the modulus of the scalar field.
    #[error("the generator's multiple by the modulus of the scalar field is not infinity")]
    Order,
    /// r times the cofactor is a number of points that a curve over the field may have.
    #[error("no curve over the field has the cofactor times the modulus of the scalar field for its number of points")]
    Cofactor,
    /// The map from the isogenous curve gives points of this one.
    #[error("the map from the isogenous curve gives points that are not on the curve")]
    Isogeny,
}

/// What is known of curves, by their types.
#[derive(Debug, Default)]
struct Known(Mutex<BTreeMap<TypeId, Result<(), CurveConstant>>>);

/// Checks the coefficients, the generator and its order, once for each device and curve: one multiple of the generator
/// on the host, some hundred microseconds.
///
/// # Errors
/// [`CurveError`] with the first of these that does not hold.
pub fn expect_generator<C: DeviceCurve>(device: &Device) -> Result<(), CurveError> {
    let (notes, curve) = (device.cached_value::<Known>(), TypeId::of::<C>());
    let known = || notes.0.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known().get(&curve).copied();
    // Not under the lock, which is for a look alone.
    let result = found.unwrap_or_else(|| {
        let checked = check::<C>();
        *known().entry(curve).or_insert(checked)
    });
    result.map_err(|constant| CurveError { curve: type_name::<C>(), constant })
}

fn check<C: DeviceCurve>() -> Result<(), CurveConstant> {
    let (a, b) = (C::COEFF_A, C::COEFF_B);
    if a.square() * a * C::BaseField::from(4u8) + b.square() * C::BaseField::from(27u8) == C::BaseField::ZERO {
        return Err(CurveConstant::Coefficients);
    }
    let on_curve = |(x, y): &(C::BaseField, C::BaseField)| y.square() == (x.square() + a) * x + b;
    let Some((x, y)) = C::GENERATOR.xy().filter(on_curve) else { return Err(CurveConstant::Generator) };
    let order = C::ScalarField::MODULUS;
    let digits = (0..order.num_bits() as usize).rev().map(|i| order.get_bit(i));
    // As kernels add, whatever the configuration does in their place.
    let multiple = digits.fold([C::BaseField::ZERO; 4], |sum: point::XyzzOf<C>, digit| {
        let sum = point::xyzz_double::<C>(sum);
        if digit { point::xyzz_add_affine::<C>(sum, [x, y]) } else { sum }
    });
    let [_, _, zz, _] = multiple;
    if zz == C::BaseField::ZERO { Ok(()) } else { Err(CurveConstant::Order) }
}
