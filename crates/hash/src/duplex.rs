use evariste_field::DevicePrimeField;

use crate::{
    error::{Error, Result},
    parameters::Poseidon2Parameters,
    poseidon2::Poseidon2,
    reference,
};

/// A transcript by a duplex sponge over Poseidon2, on the host: it observes elements and draws others that depend on
/// all of them. Plonky3's `DuplexChallenger` draws the same.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use evariste_backend::Device;
/// use evariste_field::small::BabyBear;
/// use evariste_hash::{DuplexSponge, Poseidon2, Poseidon2Parameters};
///
/// let parameters = Poseidon2Parameters::<BabyBear>::plonky3(16)?;
/// let poseidon2 = Poseidon2::new(&Device::best()?, parameters.clone())?;
/// let mut transcript = DuplexSponge::new(parameters);
/// transcript.observe(&[BabyBear::from(7)]);
/// let mut verifier = transcript.clone();
/// let witness = transcript.grind(&poseidon2, 6)?;
/// assert!(verifier.check_witness(6, witness)?);
/// assert_eq!(verifier.draw(), transcript.draw());
/// # Ok(())
/// # }
/// ```
///
/// # Algorithm
///
/// Observed elements wait until there are as many as the rate has. Then, or before a draw, they replace the first
/// elements of the state, zeros the rest of the rate. Their number is added to the element after it, and the state is
/// permuted. Draws take elements of the rate from the last to the first.
#[derive(Clone, Debug)]
pub struct DuplexSponge<F> {
    parameters: Poseidon2Parameters<F>,
    state: Vec<F>,
    observed: Vec<F>,
    drawn: Vec<F>,
}

impl<F: DevicePrimeField> DuplexSponge<F> {
    /// Makes an empty transcript.
    pub fn new(parameters: Poseidon2Parameters<F>) -> Self {
        let state = vec![F::ZERO; parameters.width()];
        Self { parameters, state, observed: Vec::new(), drawn: Vec::new() }
    }

    /// Observes elements.
    pub fn observe(&mut self, elements: &[F]) {
        for x in elements {
            self.drawn.clear();
            self.observed.push(*x);
            if self.observed.len() == self.parameters.rate() {
                self.permute();
            }
        }
    }

    /// Draws an element.
    pub fn draw(&mut self) -> F {
        loop {
            if self.observed.is_empty()
                && let Some(x) = self.drawn.pop()
            {
                return x;
            }
            self.permute();
        }
    }

    /// Draws an element of an extension, coefficient by coefficient.
    pub fn draw_extension<E: ark_ff::Field<BasePrimeField = F>>(&mut self) -> E {
        let coefficients: Vec<F> = (0..E::extension_degree()).map(|_| self.draw()).collect();
        E::from_base_prime_field_elems(coefficients).unwrap_or(E::ZERO)
    }

    /// Draws an integer below 2^`bits`: the low bits of an element. It is the nearer to uniform, the larger the modulus.
    ///
    /// # Errors
    /// [`Error::Parameters`] unless `bits` is below the bits of the modulus and 64.
    pub fn draw_bits(&mut self, bits: u32) -> Result<u64> {
        let mask = mask::<F>(bits)?;
        Ok(self.draw().into_bigint().as_ref()[0] & mask)
    }

    /// Searches a proof of work on the device of `poseidon2`, and observes it: the smallest integer after which
    /// [`draw_bits`](DuplexSponge::draw_bits) gives 0. The drawn bits are gone then, as after
    /// [`check_witness`](DuplexSponge::check_witness). With 0 bits it is 0, and nothing is observed.
    ///
    /// # Errors
    /// Those of [`Poseidon2::grind`], before anything is observed. [`Error::Parameters`] also if `poseidon2` has other
    /// parameters.
    pub fn grind(&mut self, poseidon2: &Poseidon2<F>, bits: u32) -> Result<F> {
        if *poseidon2.parameters() != self.parameters {
            let (what, expected) = ("the parameters of a permutation", "those of the transcript");
            return Err(Error::Parameters { what, expected, actual: poseidon2.parameters().width() as u64 });
        }
        if bits == 0 {
            return Ok(F::ZERO);
        }
        let position = self.observed.len();
        let mut state = self.state.clone();
        self.absorb(&mut state, position + 1);
        let witness = poseidon2.grind(&state, position, bits)?;
        match self.check_witness(bits, witness)? {
            true => Ok(witness),
            false => Err(Error::NoWitness { bits }),
        }
    }

    /// Observes a proof of work and draws its bits. Returns whether they are 0. With 0 bits nothing is observed.
    ///
    /// # Errors
    /// [`Error::Parameters`] unless `bits` is below the bits of the modulus and 64.
    pub fn check_witness(&mut self, bits: u32, witness: F) -> Result<bool> {
        mask::<F>(bits)?;
        if bits == 0 {
            return Ok(true);
        }
        self.observe(&[witness]);
        Ok(self.draw_bits(bits)? == 0)
    }

    /// Brings what was observed into a state, as if it were `count` elements.
    fn absorb(&self, state: &mut [F], count: usize) {
        let rate = self.parameters.rate();
        state[..rate].fill(F::ZERO);
        state[..self.observed.len()].copy_from_slice(&self.observed);
        state[rate] += F::from(count as u64);
    }

    fn permute(&mut self) {
        let mut state = std::mem::take(&mut self.state);
        if !self.observed.is_empty() {
            self.absorb(&mut state, self.observed.len());
        }
        reference::permute(&self.parameters, &mut state);
        self.observed.clear();
        self.drawn = state[..self.parameters.rate()].to_vec();
        self.state = state;
    }
}

fn mask<F: DevicePrimeField>(bits: u32) -> Result<u64> {
    if bits >= F::MODULUS_BIT_SIZE.min(64) {
        let (what, expected) = ("the number of bits that are drawn", "below those of the modulus, and 64");
        return Err(Error::Parameters { what, expected, actual: bits.into() });
    }
    Ok((1 << bits) - 1)
}
