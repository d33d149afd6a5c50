//! Polynomials of one variable, by values and by coefficients. Some may come of secrets and never be part of a proof.

use ark_ff::Field;
use evariste_backend::author::Wiped;

/// The coefficients of the polynomial with these values at 0, 1, 2, …, which are fewer than the
/// characteristic.
pub(crate) fn interpolate<E: Field>(values: &[E]) -> Wiped<E> {
    // Newton's divided differences, then Horner's scheme.
    let mut differences = Wiped::from(values.to_vec());
    for order in 1..values.len() {
        let scale = E::from(order as u64).inverse().unwrap_or(E::ZERO);
        for i in (order..values.len()).rev() {
            differences[i] = (differences[i] - differences[i - 1]) * scale;
        }
    }
    // With room for one more.
    let mut coefficients = Wiped::with_capacity(values.len() + 1);
    for (i, difference) in differences.iter().enumerate().rev() {
        // coefficients · (X − i) + difference
        let point = E::from(i as u64);
        coefficients.push(E::ZERO);
        for j in (1..coefficients.len()).rev() {
            coefficients[j] = coefficients[j - 1] - point * coefficients[j];
        }
        coefficients[0] = *difference - point * coefficients[0];
    }
    coefficients
}

/// The coefficients of the polynomial of degree `degree` with this coefficient of X^degree and these values at 0, 1, …,
/// degree − 1.
pub(crate) fn interpolate_with_top<E: Field>(values: &[E], top: E) -> Wiped<E> {
    let degree = values.len() as u64;
    let less = |(i, value): (usize, &E)| *value - top * E::from(i as u64).pow([degree]);
    let mut coefficients = interpolate(&Wiped::from(values.iter().enumerate().map(less).collect::<Vec<_>>()));
    coefficients.push(top);
    coefficients
}

/// The value at `x`.
pub(crate) fn evaluate<E: Field>(coefficients: &[E], x: E) -> E {
    coefficients.iter().rev().fold(E::ZERO, |value, coefficient| value * x + coefficient)
}

/// The quotient by a + b X, which divides the polynomial and is not zero.
pub(crate) fn divide<E: Field>(polynomial: &[E], [a, b]: [E; 2]) -> Wiped<E> {
    let mut quotient = Wiped::from(vec![E::ZERO; polynomial.len().saturating_sub(1)]);
    match (a.inverse(), b.inverse()) {
        (Some(a), _) => {
            let mut before = E::ZERO;
            for (q, p) in quotient.iter_mut().zip(polynomial) {
                *q = (*p - b * before) * a;
                before = *q;
            }
        }
        (None, Some(b)) => quotient.iter_mut().zip(&polynomial[1..]).for_each(|(q, p)| *q = *p * b),
        (None, None) => {}
    }
    quotient
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::UniformRand;

    use super::*;

    #[test]
    fn values_lead_back_to_coefficients() {
        let mut rng = ark_std::test_rng();
        for len in [1, 2, 3, 6] {
            let coefficients: Vec<Fr> = (0..len).map(|_| Fr::rand(&mut rng)).collect();
            let values: Vec<Fr> = (0..len).map(|i| evaluate(&coefficients, Fr::from(i))).collect();
            assert_eq!(*interpolate(&values), coefficients);
            let top = coefficients[len as usize - 1];
            assert_eq!(*interpolate_with_top(&values[..len as usize - 1], top), coefficients);
            for line in [[Fr::from(3), Fr::from(5)], [Fr::from(0), Fr::from(7)], [Fr::from(7), Fr::from(0)]] {
                let mut product = vec![Fr::from(0); len as usize + 1];
                for (i, c) in coefficients.iter().enumerate() {
                    product[i] += line[0] * c;
                    product[i + 1] += line[1] * c;
                }
                assert_eq!(*divide(&product, line), coefficients);
            }
        }
    }
}
