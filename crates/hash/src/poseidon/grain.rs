//! The generator of Poseidon's constants, as its reference script has it (`generate_parameters_grain.sage`).

use ark_ff::{BigInteger, PrimeField};

/// A Grain register of 80 bits, whose output is thinned.
pub(super) struct Grain {
    state: u128,
}

impl Grain {
    /// Starts it for a prime field of `bits` bits, an S-box that is a power, and these numbers.
    pub(super) fn new(bits: u32, width: usize, full: usize, partial: usize) -> Self {
        let mut state = 0u128;
        let mut append = |value: usize, bits: u32| state = state << bits | value as u128;
        append(1, 2);
        append(0, 4);
        append(bits as usize, 12);
        append(width, 12);
        append(full, 10);
        append(partial, 10);
        append((1 << 30) - 1, 30);
        let mut grain = Self { state };
        for _ in 0..160 {
            grain.step();
        }
        grain
    }

    /// Bit 0 of the sequence is the highest of 80.
    fn step(&mut self) -> bool {
        let bit = [62, 51, 38, 23, 13, 0].iter().fold(0, |sum, place| sum ^ self.state >> (79 - place)) & 1;
        self.state = (self.state << 1 | bit) & ((1 << 80) - 1);
        bit == 1
    }

    /// The second bit of the first pair whose first is 1.
    fn bit(&mut self) -> bool {
        while !self.step() {
            self.step();
        }
        self.step()
    }

    /// Bits, the highest first.
    fn bits(&mut self, count: u32) -> Vec<bool> {
        (0..count).map(|_| self.bit()).collect()
    }

    /// An element: integers that are not below the modulus are left out.
    pub(super) fn below<F: PrimeField>(&mut self) -> F {
        loop {
            let bits = self.bits(F::MODULUS_BIT_SIZE);
            if let Some(x) = F::from_bigint(F::BigInt::from_bits_be(&bits)) {
                return x;
            }
        }
    }

    /// An element: an integer modulo p.
    pub(super) fn reduced<F: PrimeField>(&mut self) -> F {
        let bits = self.bits(F::MODULUS_BIT_SIZE);
        bits.into_iter().fold(F::ZERO, |x, bit| x.double() + F::from(u64::from(bit)))
    }
}
