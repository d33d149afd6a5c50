//! Proofs of many witnesses, one after the other.

use std::{borrow::Borrow, collections::VecDeque, fmt, iter::Fuse};

use ark_std::rand::rngs::StdRng;

use super::{Prover, UnderWay, blinding, system_rng};
use crate::{curve::DevicePairing, error::Result, verifier::Claim, witness::Witness};

/// Proofs that are under way at once. While the device computes one, the host combines and verifies the one before.
const UNDER_WAY: usize = 2;

/// An iterator over proofs and their public inputs, in the order of the witnesses: [`Prover::proofs`].
pub struct Proofs<'a, E: DevicePairing, I> {
    prover: &'a Prover<E>,
    witnesses: Fuse<I>,
    rng: StdRng,
    under_way: VecDeque<Result<UnderWay<E>>>,
}

impl<E: DevicePairing> Prover<E> {
    /// Proves witnesses one after the other, and gives out each proof with its public inputs when it is finished. The
    /// host finishes one proof while the device computes the next.
    ///
    /// Memory does not grow with the number of witnesses: two proofs are under way, and a witness is dropped when the
    /// device has its values. The iterator reads the next witness before it gives out a proof.
    ///
    /// An error of a witness takes the place of its proof, and the others are proven all the same. It is an error that
    /// `witnesses` gives, or one of [`Prover::prove`].
    ///
    /// # Errors
    /// [`Error::Randomness`](crate::Error::Randomness) if the system gives no random numbers.
    pub fn proofs<I, W>(&self, witnesses: I) -> Result<Proofs<'_, E, I::IntoIter>>
    where
        I: IntoIterator<Item = Result<W>>,
        W: Borrow<Witness<E::ScalarField>>,
    {
        let (witnesses, rng) = (witnesses.into_iter().fuse(), system_rng()?);
        Ok(Proofs { prover: self, witnesses, rng, under_way: VecDeque::with_capacity(UNDER_WAY) })
    }
}

impl<E: DevicePairing, I, W> Iterator for Proofs<'_, E, I>
where
    I: Iterator<Item = Result<W>>,
    W: Borrow<Witness<E::ScalarField>>,
{
    type Item = Result<Claim<E>>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.under_way.len() < UNDER_WAY
            && let Some(witness) = self.witnesses.next()
        {
            let blinding = blinding(&mut self.rng);
            let started = witness.and_then(|witness| self.prover.start(witness.borrow(), blinding));
            self.under_way.push_back(started);
        }
        let first = self.under_way.pop_front()?;
        Some(first.and_then(|proof| self.prover.finish(proof)))
    }
}

impl<E: DevicePairing, I> fmt::Debug for Proofs<'_, E, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proofs")
            .field("prover", self.prover)
            .field("under_way", &self.under_way.len())
            .finish_non_exhaustive()
    }
}
