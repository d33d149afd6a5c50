//! Proofs of work.

use ark_ff::BigInteger;
use evariste_backend::author::Arg;
use evariste_field::{DevicePrimeField, Mont};

use super::{Poseidon2, groups, params::GrindParams};
use crate::error::{Error, Result};

/// log₂ of the fewest and the most integers that a launch tries.
const LOG_TRIED: [u32; 2] = [7, 22];

impl<F: DevicePrimeField> Poseidon2<F> {
    /// Searches a proof of work: the smallest integer x for which the state, with x in place of element `position`, is
    /// permuted to one whose element `rate` − 1 is an integer with `bits` low bits 0. Waits for it.
    ///
    /// A transcript does this by [`DuplexSponge::grind`](crate::DuplexSponge::grind). It takes 2^`bits` permutations on
    /// average. A launch tries 2^`bits` integers, 2^7 at least and 2^22 at most.
    ///
    /// # Errors
    /// - [`Error::Parameters`] unless `state` is one state, `position` is below the rate, and `bits` is below the bits
    ///   of the modulus and 64.
    /// - [`Error::NoWitness`] if no element solves it.
    /// - [`Error::Device`] if the queue is of another device, or if the device fails.
    pub fn grind(&self, state: &[F], position: usize, bits: u32) -> Result<F> {
        let (width, rate) = (self.parameters().width(), self.parameters().rate());
        let refuse = |what, expected, actual: usize| Err(Error::Parameters { what, expected, actual: actual as u64 });
        if state.len() != width {
            return refuse("the length of a state", "its width", state.len());
        }
        if position >= rate {
            return refuse("the place of a proof of work", "below the rate", position);
        }
        if bits >= F::MODULUS_BIT_SIZE.min(64) {
            return refuse("the bits of a proof of work", "below those of the modulus, and 64", bits as usize);
        }
        self.expect_here(self.queue.device())?;
        // R, and its inverse.
        let shift = F::from(2u64).pow([32 * F::LIMBS as u64]);
        let state = [state, &[shift, shift.inverse().unwrap_or(F::ONE)]].concat();
        let state = self.queue.upload::<Mont<F>>(&state)?;
        let kernel = self.shared.grind()?;
        self.shared.ready.wait(&self.queue)?;
        let [half, partial] = self.shared.rounds();
        let words = |x: u64| [x as u32, (x >> 32) as u32];
        let below = match F::MODULUS.num_bits() {
            0..=64 => F::MODULUS.as_ref()[0],
            _ => u64::MAX,
        };
        let tried = 1u64 << bits.clamp(LOG_TRIED[0], LOG_TRIED[1]);
        let mut start = 0;
        while start < below {
            let len = tried.min(below - start) as u32;
            let mut found = self.queue.upload::<u32>(&[0])?;
            let (start_words, mask) = (words(start), words((1 << bits) - 1));
            let params = GrindParams { len, half, partial, position: position as u32, start: start_words, mask };
            let args = &mut [Arg::read(&self.shared.constants), Arg::read(&state), Arg::write(&mut found)];
            // SAFETY: there are a state and two elements, the constants of so many rounds, and a word.
            unsafe { kernel.launch(&self.queue, groups(len as usize), &params, args)? };
            match self.queue.read(&found)?[..] {
                [found] if found > 0 => return Ok(F::from(start + u64::from(u32::MAX - found))),
                _ => start += u64::from(len),
            }
        }
        Err(Error::NoWitness { bits })
    }
}
