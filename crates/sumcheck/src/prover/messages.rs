//! The polynomial of a round, from the values at which a kernel evaluates it.

use evariste_backend::author::Wiped;
use evariste_field::DeviceField;

use crate::{
    config::Strategy,
    polynomial::{divide, interpolate, interpolate_with_top},
    program::EvaluationPoints,
};

/// The points at which a round of a polynomial of this degree is evaluated. `zero`: it is known to be 0 at 0 and at 1.
pub(super) fn points(strategy: Strategy, degree: u64, zero: bool) -> EvaluationPoints {
    let degree = degree as u32;
    match strategy {
        Strategy::Textbook => {
            EvaluationPoints { zero: true, one: true, integers: 2..(degree + 1).max(2), infinity: false }
        }
        Strategy::FromClaim => {
            EvaluationPoints { zero: true, one: false, integers: 2..(degree + 1).max(2), infinity: false }
        }
        Strategy::SplitEq | Strategy::ZeroCheck => {
            EvaluationPoints { zero: !zero, one: false, integers: 2..degree.max(2), infinity: degree > 1 }
        }
    }
}

/// The round's polynomial from its values, for which w₀ q(0) + w₁ q(1) is `sum`.
pub(super) fn from_values<E: DeviceField>(
    values: &[E],
    points: &EvaluationPoints,
    sum: E,
    [w0, w1]: [E; 2],
) -> Wiped<E> {
    let mut values = values.iter().copied();
    let mut next = || values.next().unwrap_or(E::ZERO);
    let ends = match (points.zero, w1.inverse()) {
        (false, _) => [E::ZERO; 2],
        (true, Some(inverse)) => {
            let zero = next();
            [zero, (sum - w0 * zero) * inverse]
        }
        // It was evaluated at 1, and w₀ is 1.
        (true, None) => [sum, next()],
    };
    let mut known = Wiped::with_capacity(ends.len() + points.integers.len());
    known.extend(ends);
    known.extend(points.integers.clone().map(|_| next()));
    match points.infinity {
        true => interpolate_with_top(&known, next()),
        false => interpolate(&known),
    }
}

/// The same from the values of the polynomial with the weight as a factor, if there is one. The weight is that of the
/// variables bound so far, times the line from w₀ to w₁.
pub(super) fn from_table<E: DeviceField>(
    values: &[E],
    points: &EvaluationPoints,
    sum: E,
    [w0, w1]: [E; 2],
    scale: Option<E>,
) -> Wiped<E> {
    let mut known = Wiped::with_capacity(values.len() + 1);
    known.extend_from_slice(values);
    if !points.one {
        known.insert(1, sum * scale.unwrap_or(E::ONE) - values[0]);
    }
    let polynomial = interpolate(&known);
    match scale {
        Some(scale) => divide(&polynomial, [scale * w0, scale * (w1 - w0)]),
        None => polynomial,
    }
}
