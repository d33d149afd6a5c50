//! Elements that trials work on.

use ark_std::rand::{SeedableRng, rngs::StdRng};
use evariste::field::DeviceField;

/// Edge values, then random ones.
pub(crate) fn samples<F: DeviceField>(len: usize, seed: u64) -> Vec<F> {
    let mut rng = StdRng::seed_from_u64(seed);
    let half = F::from(2u8).inverse().unwrap_or(F::ONE);
    let edges = [F::ZERO, F::ONE, -F::ONE, F::from(2u8), -F::from(2u8), half, -half, F::from(u32::MAX)];
    let mixed = |i: usize, rng: &mut _| match i {
        0..64 => edges[(i + i / 8 * seed as usize) % 8],
        _ => F::rand(rng),
    };
    (0..len).map(|i| mixed(i, &mut rng)).collect()
}
