//! Data to work on.

use std::cell::LazyCell;

use anyhow::Result;
use ark_ec::{AffineRepr, short_weierstrass::Affine};
use ark_ff::UniformRand;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use evariste::backend::{Buffer, Device};
use evariste::curve::{AffinePoint, DeviceCurve, Points};
use rayon::prelude::*;

/// Elements that come from one seed.
const GRAIN: usize = 1 << 12;

/// Elements that are made when they are first used: cases that are only counted need none.
pub(crate) type Lazy<F> = LazyCell<Vec<F>, Box<dyn FnOnce() -> Vec<F>>>;

/// Random elements, the same ones every time.
pub(crate) fn random<F: UniformRand + Default + Clone + Send>(len: usize) -> Vec<F> {
    let mut elements = vec![F::default(); len];
    elements.par_chunks_mut(GRAIN).enumerate().for_each(|(seed, chunk)| {
        let mut rng = StdRng::seed_from_u64(seed as u64);
        chunk.fill_with(|| F::rand(&mut rng));
    });
    elements
}

/// Points that are made at once.
const PIECE: usize = 1 << 20;

/// Multiples of the generator by these integers.
pub(crate) fn multiples<C: DeviceCurve>(device: &Device, multipliers: &[u32]) -> Result<Buffer<AffinePoint<C>>> {
    let (operations, piece) = (Points::<C>::new(device), multipliers.len().min(PIECE));
    let generators = device.upload::<AffinePoint<C>>(&vec![Affine::<C>::generator(); piece])?;
    let mut all = device.zeros(multipliers.len())?;
    for (i, multipliers) in multipliers.chunks(piece.max(1)).enumerate() {
        let mut multiples = device.alloc(multipliers.len())?;
        operations.mul(generators.view(..multipliers.len())?, &device.upload::<u32>(multipliers)?, &mut multiples)?;
        operations.normalise_xyzz(&multiples, all.view_mut(i * piece..i * piece + multipliers.len())?)?;
    }
    Ok(all)
}

/// Random places below `len`, other ones every time.
pub(crate) fn places(count: usize, len: usize) -> Vec<usize> {
    use ark_std::rand::Rng;
    use std::hash::{BuildHasher, RandomState};

    let mut rng = StdRng::seed_from_u64(RandomState::new().hash_one(len));
    (0..count).map(|_| rng.gen_range(0..len)).collect()
}
