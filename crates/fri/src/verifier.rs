use evariste_backend::Element;
use evariste_hash::{Dimensions, Opening, TreeParameters, cap_len, verify};

use ark_ff::Field;

use crate::{
    error::{Error, Result},
    field::FriField,
    plan::{FriConfig, QueryStep, log_arities},
    reference,
};

/// Verifies the opening of a query on the host.
///
/// `rounds` are the caps that the prover has sent, with the challenges that the verifier drew after each. `inputs` are
/// log₂ of the length of each input, from the longest on, and its value at `index`, shifted right by as many bits as it
/// is shorter. What binds these values, such as openings of trees over matrices, is the caller's to check. So are
/// proofs of work, and that `index` was drawn after the final polynomial. `steps` are from
/// [`Fri::open`](crate::Fri::open).
///
/// # Errors
/// - [`Error::Parameter`] for a configuration that is none, or if `shift` is 0.
/// - [`Error::NoInput`], [`Error::Order`], [`Error::TooShort`] and [`Error::Domain`] for inputs that the commit phase
///   refuses too.
/// - [`Error::Proof`] if a part of the proof has another length than these parameters give it.
/// - [`Error::Hash`] if a row is not that of its tree.
/// - [`Error::OtherPolynomial`] if the values do not fold to the final polynomial's.
#[expect(clippy::too_many_arguments, reason = "they are the protocol's: the statement, and a proof in its parts")]
pub fn verify_query<F: FriField, P: TreeParameters<F::BasePrimeField>>(
    parameters: &P,
    config: &FriConfig,
    shift: F::BasePrimeField,
    rounds: &[(&[Digest<F, P>], F)],
    final_polynomial: &[F],
    index: usize,
    inputs: &[(u32, F)],
    steps: &[QueryStep<F, Digest<F, P>>],
) -> Result<()> {
    config.expect()?;
    crate::fold::inverse_of(shift)?;
    let log_lens: Vec<u32> = inputs.iter().map(|(log_len, _)| *log_len).collect();
    expect_lens::<F>(&log_lens, config)?;
    let arities = log_arities(&log_lens, config);
    let expect = |what, expected: usize, actual: usize| match expected == actual {
        true => Ok(()),
        false => Err(Error::Proof { what, expected, actual }),
    };
    expect("the rounds", arities.len(), rounds.len())?;
    expect("the opening of a query", arities.len(), steps.len())?;
    expect("the final polynomial", 1 << config.log_final_len, final_polynomial.len())?;
    let Some(((log_len, value), others)) = inputs.split_first() else { return Err(Error::NoInput) };
    let (mut log_len, mut value, mut place, mut shift) = (*log_len, *value, index, shift);
    if index >> log_len != 0 {
        let (what, expected) = ("an index", "below the number of evaluations");
        return Err(Error::Parameter { what, expected, actual: index as u64 });
    }
    let mut others = others.iter().peekable();
    for ((log_arity, (cap, beta)), QueryStep { values, path }) in arities.into_iter().zip(rounds).zip(steps) {
        let arity = 1usize << log_arity;
        expect("a row of a query", arity, values.len())?;
        if values[place % arity] != value {
            return Err(Error::OtherPolynomial { index });
        }
        let (row, log_height) = (place >> log_arity, log_len - log_arity);
        let elements: Vec<_> = values.iter().flat_map(|value| value.to_base_prime_field_elements()).collect();
        let dimensions = [Dimensions { height: 1 << log_height, columns: elements.len() }];
        expect("a cap", cap_len(parameters, &dimensions, config.log_cap), cap.len())?;
        verify(parameters, cap, &dimensions, row, &Opening { rows: vec![elements], path: path.clone() })?;
        let points: Vec<_> = (0..arity).map(|i| reference::point(log_len, shift, (row << log_arity) + i)).collect();
        value = reference::interpolate(&points, values, *beta);
        (place, log_len, shift) = (row, log_height, shift.pow([arity as u64]));
        if let Some((_, input)) = others.next_if(|(length, _)| *length == log_len) {
            value += beta.pow([arity as u64]) * input;
        }
    }
    let x = F::from_base_prime_field(reference::point(log_len, shift, place));
    match reference::evaluate(final_polynomial, x) == value {
        true => Ok(()),
        false => Err(Error::OtherPolynomial { index }),
    }
}

/// What digests consist of.
type Digest<F, P> = <<P as TreeParameters<<F as Field>::BasePrimeField>>::Node as Element>::Host;

/// Refuses lengths of inputs that no commit phase takes.
fn expect_lens<F: FriField>(log_lens: &[u32], config: &FriConfig) -> Result<()> {
    use ark_ff::FftField;
    let len = |log_len: u32| 1usize.checked_shl(log_len).unwrap_or(usize::MAX);
    let most = <F::BasePrimeField as FftField>::TWO_ADICITY.min(usize::BITS - 1);
    if let Some(actual) = log_lens.iter().copied().find(|log_len| *log_len > most) {
        return Err(Error::Domain { expected: most, actual });
    }
    if let Some(index) = (1..log_lens.len()).find(|i| log_lens[*i] >= log_lens[i - 1]) {
        return Err(Error::Order { index, before: len(log_lens[index - 1]), actual: len(log_lens[index]) });
    }
    match log_lens.last() {
        None => Err(Error::NoInput),
        Some(last) if *last < config.log_last() => {
            let (what, expected) = ("an input", len(config.log_last()));
            Err(Error::TooShort { what, expected, actual: len(*last) })
        }
        Some(_) => Ok(()),
    }
}
