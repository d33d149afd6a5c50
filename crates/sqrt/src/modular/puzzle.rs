//! Client puzzles by square roots.

use crypto_bigint::{
    BoxedUint, NonZero, Odd, Resize,
    modular::{BoxedMontyForm, BoxedMontyParams},
};

#[cfg(doc)]
use super::ModSqrt;
use super::{
    number::{MAX_BITS, MIN_RANDOM_BITS},
    prime,
};
#[cfg(doc)]
use crate::Choice;
use crate::{Error, Result};

/// A puzzle that takes its client about as many squarings modulo a prime, one after the other, as the prime has bits, and its
/// server one multiplication: a square, of which the smaller root is asked for. The other one, p minus it, is no solution: so a
/// puzzle has one solution, and who has solved one has not solved two.
///
/// A server gives one to whoever asks for something costly, and does it when the solution comes back. The squarings of one
/// puzzle cannot be divided among processors, but many puzzles can be solved at once, by a client with a GPU too
/// ([`ModSqrt::sqrt_host`] of their squares, with [`Choice::Smaller`]): the length of the prime is to be chosen with that in mind. The
/// server keeps what it drew, or has it authenticated, and takes each puzzle once.
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
        if !(MIN_RANDOM_BITS..=MAX_BITS).contains(&bits) {
            return Err(Error::ModulusBits { index: 0, expected: MIN_RANDOM_BITS..=MAX_BITS, actual: bits });
        }
        Ok((*prime::random(bits)?).clone())
    }

    /// Draws a puzzle with a prime of the server, ≡ 3 (mod 4) as that of [`Puzzle::draw_prime`] is: of others,
    /// [`Puzzle::solve`] finds no root. It is the square of a random number, which is forgotten.
    ///
    /// # Errors
    /// [`Error::ModulusBits`] unless the prime has 2 to 4096 bits; [`Error::EvenModulus`] if it is even;
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
    /// [`Error::ModulusBits`] unless the prime has 2 to 4096 bits; [`Error::EvenModulus`] if it is even;
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

    /// Gives the number of which the smaller root is asked for.
    pub fn square(&self) -> &BoxedUint {
        &self.square
    }

    /// Does the client's work, on one core: computes the power (p + 1)/4 of the square, and gives that or its opposite, whichever
    /// is smaller. `None` where it is no root, so that the puzzle is none. For many puzzles with one prime there is
    /// [`ModSqrt::sqrt_host`], with [`Choice::Smaller`].
    pub fn solve(&self) -> Option<BoxedUint> {
        let odd = Option::<Odd<BoxedUint>>::from(self.prime.to_odd())?;
        let params = BoxedMontyParams::new_vartime(odd);
        let exponent = self.prime.wrapping_shr_vartime(2).wrapping_add(BoxedUint::one());
        let root = BoxedMontyForm::new(self.square.clone(), &params).pow(&exponent).retrieve();
        let opposite = self.prime.wrapping_sub(&root);
        let smaller = if opposite < root { opposite } else { root };
        self.verify(&smaller).then_some(smaller)
    }

    /// Does the server's work: tells whether a number is the smaller root, which is at most (p − 1)/2. One multiplication.
    pub fn verify(&self, root: &BoxedUint) -> bool {
        let modulus = Option::<NonZero<BoxedUint>>::from(self.prime.to_nz());
        *root <= self.prime.wrapping_shr_vartime(1)
            && modulus.is_some_and(|p| {
                let root = root.clone().resize_unchecked(self.prime.bits_precision());
                root.mul_mod(&root, &p) == self.square
            })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::number::MIN_BITS, *};

    #[test]
    fn puzzles_are_solved_and_checked() {
        let prime = Puzzle::draw_prime(256).unwrap();
        assert!(prime.bits() == 256 && prime.as_words()[0] % 4 == 3);
        let puzzle = Puzzle::draw(&prime).unwrap();
        assert_eq!(Puzzle::new(puzzle.prime(), puzzle.square()).unwrap(), puzzle);
        let root = puzzle.solve().unwrap();
        assert!(puzzle.verify(&root));
        assert!(!puzzle.verify(&prime.wrapping_sub(&root)), "a puzzle has one solution");
        // The largest one there is, and the smallest.
        let half = prime.wrapping_shr_vartime(1);
        for (root, other) in [
            (half.clone(), half.wrapping_add(BoxedUint::one())),
            (BoxedUint::one(), prime.wrapping_sub(BoxedUint::one())),
        ] {
            let modulus = Option::<NonZero<BoxedUint>>::from(prime.to_nz()).unwrap();
            let root = root.resize_unchecked(256);
            let puzzle = Puzzle::new(&prime, &root.mul_mod(&root, &modulus)).unwrap();
            assert!(puzzle.verify(&root) && !puzzle.verify(&other));
            assert_eq!(puzzle.solve(), Some(root));
        }
        let zero = Puzzle::new(&prime, &BoxedUint::zero()).unwrap();
        assert!(zero.verify(&zero.solve().unwrap()) && !zero.verify(&prime));
        assert!(!puzzle.verify(&root.wrapping_add(BoxedUint::one())));
        assert!(!puzzle.verify(&root.resize_unchecked(320).wrapping_add(&prime)), "not below the prime");
        assert!(Puzzle::new(&prime, &prime.wrapping_sub(BoxedUint::one())).unwrap().solve().is_none(), "no square");
        assert_eq!(Puzzle::new(&prime, &prime).unwrap_err(), Error::TooLarge { index: 0 });
        let bits = |least, actual| Error::ModulusBits { index: 0, expected: least..=MAX_BITS, actual };
        assert_eq!(Puzzle::draw_prime(63).unwrap_err(), bits(MIN_RANDOM_BITS, 63));
        assert_eq!(Puzzle::draw(&BoxedUint::one()).unwrap_err(), bits(MIN_BITS, 1));
    }
}
