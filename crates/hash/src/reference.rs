//! Definitions, naively, to compare with.

use std::array;

use evariste_field::DevicePrimeField;

use crate::{parameters::Poseidon2Parameters, poseidon::parameters::PoseidonParameters};

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

/// Compresses digests, one after the other: the first elements of the permuted state of them and zeros. If the arity is
/// one of more digests than a state has room for, the hash of them and as many zeros as digests are missing.
pub fn compress<F: DevicePrimeField>(parameters: &Poseidon2Parameters<F>, children: &[F]) -> Vec<F> {
    let mut state = children.to_vec();
    if !parameters.is_truncated() {
        state.resize(parameters.arity.children() * parameters.digest, F::ZERO);
        return hash(parameters, &state);
    }
    state.resize(parameters.width, F::ZERO);
    permute(parameters, &mut state);
    state.truncate(parameters.digest);
    state
}

/// Applies Poseidon to a state: in each round constants are added, an S-box is applied to all elements or to the first
/// alone, and the state is multiplied by the matrix (Grassi, Khovratovich, Rechberger, Roy and Schofnegger, "Poseidon: a
/// new hash function for zero-knowledge proof systems", USENIX Security 2021).
///
/// # Panics
/// If the state has another width.
pub fn poseidon<F: DevicePrimeField>(parameters: &PoseidonParameters<F>, state: &mut [F]) {
    let (width, [full, partial]) = (parameters.width(), parameters.rounds());
    assert_eq!(state.len(), width);
    for (round, constants) in parameters.constants().chunks_exact(width).enumerate() {
        let is_partial = (full / 2..full / 2 + partial).contains(&round);
        state.iter_mut().zip(constants).for_each(|(x, constant)| *x += constant);
        let boxes = if is_partial { 1 } else { width };
        state[..boxes].iter_mut().for_each(|x| *x = x.pow([u64::from(parameters.alpha())]));
        let rows = parameters.matrix().chunks_exact(width);
        let mixed: Vec<F> = rows.map(|row| row.iter().zip(&*state).map(|(m, x)| *m * x).sum()).collect();
        state.copy_from_slice(&mixed);
    }
}

/// Hashes elements, one less than a state has: the first element of the permuted state of 0 and them.
pub fn poseidon_hash<F: DevicePrimeField>(parameters: &PoseidonParameters<F>, elements: &[F]) -> F {
    let mut state = [&[F::ZERO], elements].concat();
    poseidon(parameters, &mut state);
    state[0]
}
