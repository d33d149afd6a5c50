//! Definitions, naively, to compare with.

use std::array;

use evariste_field::DevicePrimeField;

use crate::parameters::Poseidon2Parameters;

pub mod bytes;

/// Applies Poseidon2 to a state (Grassi, Khovratovich and Schofnegger, "Poseidon2: a faster version of the Poseidon hash
/// function", AFRICACRYPT 2023).
///
/// # Panics
/// If the state has another width.
pub fn permute<F: DevicePrimeField>(parameters: &Poseidon2Parameters<F>, state: &mut [F]) {
    assert_eq!(state.len(), parameters.width);
    let power = |x: F| x.pow([u64::from(parameters.alpha)]);
    mix(state);
    for (constants, is_first) in [(&parameters.initial, true), (&parameters.terminal, false)] {
        for round in constants.chunks_exact(parameters.width) {
            state.iter_mut().zip(round).for_each(|(x, constant)| *x = power(*x + constant));
            mix(state);
        }
        if is_first {
            for constant in &parameters.partial {
                state[0] = power(state[0] + constant);
                let sum: F = state.iter().sum();
                state.iter_mut().zip(&parameters.diagonal).for_each(|(x, factor)| *x = sum + *x * factor);
            }
        }
    }
}

/// Multiplies by circ(2·M, M, …, M) with M = circ(2, 3, 1, 1).
fn mix<F: DevicePrimeField>(state: &mut [F]) {
    for block in state.chunks_exact_mut(4) {
        let sum: F = block.iter().sum();
        let mixed: [F; 4] = array::from_fn(|i| sum + block[i] + block[(i + 1) % 4].double());
        block.copy_from_slice(&mixed);
    }
    let sums: [F; 4] = array::from_fn(|k| state.iter().skip(k).step_by(4).sum());
    state.iter_mut().enumerate().for_each(|(i, x)| *x += sums[i % 4]);
}

/// Hashes elements by the sponge without padding that overwrites: whole blocks of the rate, then the rest if there is
/// one, each followed by a permutation.
pub fn hash<F: DevicePrimeField>(parameters: &Poseidon2Parameters<F>, elements: &[F]) -> Vec<F> {
    let mut state = vec![F::ZERO; parameters.width];
    for block in elements.chunks(parameters.rate) {
        state[..block.len()].copy_from_slice(block);
        permute(parameters, &mut state);
    }
    state.truncate(parameters.digest);
    state
}

/// Compresses two digests: the first elements of the permuted state of both and zeros.
pub fn compress<F: DevicePrimeField>(parameters: &Poseidon2Parameters<F>, left: &[F], right: &[F]) -> Vec<F> {
    let mut state = [left, right].concat();
    state.resize(parameters.width, F::ZERO);
    permute(parameters, &mut state);
    state.truncate(parameters.digest);
    state
}
