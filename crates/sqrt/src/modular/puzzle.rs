//! Client puzzles by square roots.

use crypto_bigint::{
    BoxedUint, NonZero, Odd, Resize,
    modular::{BoxedMontyForm, BoxedMontyParams},
};

#[cfg(doc)]
use super::ModSqrt;
use super::{
    number::{MAX_BITS, MIN_BITS},
    prime,
};
use crate::{Error, Result};

/// A puzzle that takes its client about as many squarings modulo a prime, one after the other, as the prime has bits, and its server one
/// multiplication: a square, of which a root is asked for.
///
/// A server gives one to whoever asks for something costly, and does it when the solution comes back. The squarings of one
/// puzzle cannot be divided among processors, but many puzzles can be solved at once, by a client with a GPU too
/// ([`ModSqrt::sqrt`] of their squares): the length of the prime is to be chosen with that in mind. The server keeps what
/// it drew, or has it authenticated, and takes each solution once.
///
/// Source: Jerschow and Mauve, "Modular square root puzzles: design of non-parallelizable and non-interactive client puzzles",
/// Computers & Security 35 (2013).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Puzzle {
    prime: BoxedUint,
    square: BoxedUint,
}

impl Puzzle {
    /// Draws a random prime for puzzles, ≡ 3 (mod 4), of so many bits: once, for many puzzles.
    ///
    /// # Errors
    /// [`Error::ModulusBits`] unless `bits` is 64 to 4096; [`Error::Randomness`] if the system gives no random bytes.
    pub fn draw_prime(bits: u32) -> Result<BoxedUint> {
        if !(MIN_BITS..=MAX_BITS).contains(&bits) {
            return Err(Error::ModulusBits { index: 0, expected: MIN_BITS..=MAX_BITS, actual: bits });
        }
        Ok((*prime::random(bits)?).clone())
    }

    /// Draws a puzzle with a prime of the server, ≡ 3 (mod 4) as that of [`Puzzle::draw_prime`] is: of others,
    /// [`Puzzle::solve`] finds no root. It is the square of a random number, which is forgotten.
    ///
    /// # Errors
    /// [`Error::ModulusBits`] unless the prime has 64 to 4096 bits; [`Error::EvenModulus`] if it is even;
    /// [`Error::Randomness`] if the system gives no random bytes.
    pub fn draw(prime: &BoxedUint) -> Result<Self> {
        let modulus = prime::Modulus::new(0, prime)?;
        let precision = modulus.value().bits_precision();
        let range =
            Option::<NonZero<BoxedUint>>::from(modulus.value().to_nz()).ok_or(Error::EvenModulus { index: 0 })?;
        let root = prime::random_bits(precision + 64, precision + 64)?.rem(&range).resize_unchecked(precision);
        let square = root.mul_mod(&root, &range);
        Ok(Self { prime: modulus.value().clone(), square })
    }

    /// Makes the puzzle that a client got.
    ///
    /// # Errors
    /// [`Error::ModulusBits`] unless the prime has 64 to 4096 bits; [`Error::EvenModulus`] if it is even;
    /// [`Error::TooLarge`] unless the square is below it. Whether it is a prime is not tested: of what is none, no
    /// solution is found.
    pub fn new(prime: &BoxedUint, square: &BoxedUint) -> Result<Self> {
        let modulus = prime::Modulus::new(0, prime)?;
        if square >= prime {
            return Err(Error::TooLarge { index: 0 });
        }
        Ok(Self {
            prime: modulus.value().clone(),
            square: square.clone().resize_unchecked(modulus.value().bits_precision()),
        })
    }

    /// Gives the modulus.
    pub fn prime(&self) -> &BoxedUint {
        &self.prime
    }

    /// Gives the number of which a root is asked for.
    pub fn square(&self) -> &BoxedUint {
        &self.square
    }

    /// Does the client's work, on one core: computes the power (p + 1)/4 of the square. `None` where that is no root,
    /// so that the puzzle is none. For many puzzles with one prime there is [`ModSqrt::sqrt`].
    pub fn solve(&self) -> Option<BoxedUint> {
        let odd = Option::<Odd<BoxedUint>>::from(self.prime.to_odd())?;
        let params = BoxedMontyParams::new_vartime(odd);
        let exponent = self.prime.wrapping_shr_vartime(2).wrapping_add(BoxedUint::one());
        let root = BoxedMontyForm::new(self.square.clone(), &params).pow(&exponent).retrieve();
        self.verify(&root).then_some(root)
    }

    /// Does the server's work: tells whether a number below the prime is a root. One multiplication.
    pub fn verify(&self, root: &BoxedUint) -> bool {
        let modulus = Option::<NonZero<BoxedUint>>::from(self.prime.to_nz());
        *root < self.prime
            && modulus.is_some_and(|p| {
                let root = root.clone().resize_unchecked(self.prime.bits_precision());
                root.mul_mod(&root, &p) == self.square
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puzzles_are_solved_and_checked() {
        let prime = Puzzle::draw_prime(256).unwrap();
        assert!(prime.bits() == 256 && prime.as_words()[0] % 4 == 3);
        let puzzle = Puzzle::draw(&prime).unwrap();
        assert_eq!(Puzzle::new(puzzle.prime(), puzzle.square()).unwrap(), puzzle);
        let root = puzzle.solve().unwrap();
        assert!(puzzle.verify(&root) && puzzle.verify(&prime.wrapping_sub(&root)));
        assert!(!puzzle.verify(&root.wrapping_add(BoxedUint::one())));
        assert!(!puzzle.verify(&root.resize_unchecked(320).wrapping_add(&prime)), "not below the prime");
        assert!(Puzzle::new(&prime, &prime.wrapping_sub(BoxedUint::one())).unwrap().solve().is_none(), "no square");
        assert_eq!(Puzzle::new(&prime, &prime).unwrap_err(), Error::TooLarge { index: 0 });
        let bits = |actual| Error::ModulusBits { index: 0, expected: MIN_BITS..=MAX_BITS, actual };
        assert_eq!(Puzzle::draw_prime(63).unwrap_err(), bits(63));
        assert_eq!(Puzzle::draw(&BoxedUint::one()).unwrap_err(), bits(1));
    }
}
