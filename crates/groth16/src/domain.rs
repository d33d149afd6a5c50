//! Sizes of domains: the roots of unity that rows of constraints belong to.

use ark_ff::FftField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};

use crate::error::{Error, Result};

/// Returns log₂ of the size of the largest domain. Quotients need a root of unity of twice the order. Rows are numbers of
/// 32 bits.
pub(crate) fn largest_log<F: FftField>() -> u32 {
    F::TWO_ADICITY.saturating_sub(1).min(31)
}

/// Returns the size of the domain of so many constraints and of the rows of public inputs, the constant 1 among these.
pub(crate) fn size<F: FftField>(constraints: usize, inputs: usize) -> Result<usize> {
    let largest = 1_u64 << largest_log::<F>();
    let actual = (constraints as u64).saturating_add(inputs as u64);
    if actual > largest {
        return Err(Error::Domain { largest, actual });
    }
    Ok((actual as usize).next_power_of_two())
}

/// Returns arkworks' domain of a key's size, or of twice that.
pub(crate) fn of_size<F: FftField>(size: usize) -> Radix2EvaluationDomain<F> {
    Radix2EvaluationDomain::new(size).expect("a key's domain is one of the field's, and has room to double")
}

#[cfg(test)]
mod tests {
    use ark_bn254::Fr;

    use super::*;

    #[test]
    fn domains_hold_constraints_and_inputs() {
        assert_eq!(size::<Fr>(0, 1), Ok(1));
        assert_eq!(size::<Fr>(6, 2), Ok(8));
        assert_eq!(size::<Fr>(7, 2), Ok(16));
        let largest = 1_u64 << 27;
        assert_eq!(size::<Fr>((1 << 27) - 1, 1), Ok(1 << 27));
        assert_eq!(size::<Fr>(1 << 27, 1), Err(Error::Domain { largest, actual: largest + 1 }));
        assert_eq!(size::<Fr>(usize::MAX, 1), Err(Error::Domain { largest, actual: u64::MAX }));
        assert_eq!(of_size::<Fr>(2 << 27).log_size_of_group, 28);
    }
}
