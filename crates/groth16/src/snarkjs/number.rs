//! Field elements as numbers.

use ark_ff::{BigInteger, PrimeField};
use num_bigint::BigUint;

use crate::error::{Error, JsonProblem, Result};

pub(super) fn to_decimal(x: &impl PrimeField) -> String {
    x.into_bigint().to_string()
}

/// Hexadecimal digits, at least as many as a word of the EVM has.
pub(super) fn to_hex(x: &impl PrimeField) -> String {
    let digits: String = x.into_bigint().to_bytes_be().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{:0>64}", digits.trim_start_matches('0'))
}

/// Reads a decimal number below the modulus, without sign and leading zeros.
pub(super) fn from_decimal<F: PrimeField>(field: &str, digits: &str) -> Result<F> {
    let error = |problem| Error::Json { path: None, field: field.to_owned(), problem };
    let leading_zero = digits.len() > 1 && digits.starts_with('0');
    if digits.is_empty() || leading_zero || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(error(JsonProblem::NotDecimal));
    }
    // The cost of conversion grows with the square of the length.
    let most = F::MODULUS_BIT_SIZE as usize;
    let number = (digits.len() <= most).then(|| BigUint::parse_bytes(digits.as_bytes(), 10)).flatten();
    let integer = number.and_then(|number| F::BigInt::try_from(number).ok());
    integer.and_then(F::from_bigint).ok_or_else(|| error(JsonProblem::NotCanonical))
}
