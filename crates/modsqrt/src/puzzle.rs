//! Client puzzles by square roots.

use crypto_bigint::{
    BoxedUint, NonZero, Odd, Resize,
    modular::{BoxedMontyForm, BoxedMontyParams},
};

#[cfg(doc)]
use crate::{config::RootChoice, plan::ModSqrt};
use crate::{
    error::{Error, Result},
    number::{MAX_BITS, MIN_RANDOM_BITS},
    prime,
};

/// A client puzzle: a square modulo a prime p of k bits, whose solution is the smaller of its two roots.
///
/// The client takes about k squarings, one after the other, and the server one multiplication. The server refuses p
/// minus the smaller root, so that a puzzle has one solution.
///
/// A server sends a puzzle to a client that asks for something costly, and does the work when the solution comes back.
/// Several processors cannot divide the squarings of one puzzle among them. A client with a GPU can solve many puzzles
/// at once ([`ModSqrt::sqrt_host`] of their squares, with [`RootChoice::Smaller`]). Choose the length of the prime with
/// that in mind. The server must remember or authenticate its puzzles, and accept each solution once.
///
/// Source: Jerschow and Mauve, "Modular square root puzzles: design of non-parallelizable and non-interactive client
/// puzzles", Computers & Security 35 (2013).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Puzzle {
    prime: BoxedUint,
    square: BoxedUint,
}

impl Puzzle {
    /// Draws a random prime ≡ 3 (mod 4) of `bits` bits. One prime serves many puzzles.
    ///
    /// # Errors
    /// [`Error::ModulusBits`] unless `bits` is 64 to 4096. [`Error::Randomness`] if the system gives no random bytes.
    pub fn draw_prime(bits: u32) -> Result<BoxedUint> {
        if !(MIN_RANDOM_BITS..=MAX_BITS).contains(&bits) {
            return Err(Error::ModulusBits { index: 0, expected: MIN_RANDOM_BITS..=MAX_BITS, actual: bits });
        }
        Ok((*prime::random(bits)?).clone())
    }

    /// Draws a puzzle: the square of a random number modulo the server's prime. The prime must be ≡ 3 (mod 4), as one
    /// of [`Puzzle::draw_prime`] is. Otherwise [`Puzzle::solve`] finds no root.
    ///
    /// # Errors
    /// - [`Error::ModulusBits`]: the prime has other than 2 to 4096 bits.
    /// - [`Error::EvenModulus`]: it is even.
    /// - [`Error::Randomness`]: the system gives no random bytes.
    pub fn draw(prime: &BoxedUint) -> Result<Self> {
        let modulus = prime::Modulus::new(0, prime)?;
        let precision = modulus.value().bits_precision();
        let range =
            Option::<NonZero<BoxedUint>>::from(modulus.value().to_nz()).ok_or(Error::EvenModulus { index: 0 })?;
        let root = prime::random_bits(precision + 64, precision + 64)?.rem(&range).resize_unchecked(precision);
        let square = root.mul_mod(&root, &range);
        Ok(Self { prime: modulus.value().clone(), square })
    }

    /// Makes a puzzle from its prime and its square, as the client received them. It does not test the prime: puzzles
    /// with composites have no solution.
    ///
    /// # Errors
    /// - [`Error::ModulusBits`]: the prime has other than 2 to 4096 bits.
    /// - [`Error::EvenModulus`]: it is even.
    /// - [`Error::NotReduced`]: the square is not below it.
    pub fn new(prime: &BoxedUint, square: &BoxedUint) -> Result<Self> {
        let modulus = prime::Modulus::new(0, prime)?;
        if square >= prime {
            return Err(Error::NotReduced { index: 0 });
        }
        Ok(Self {
            prime: modulus.value().clone(),
            square: square.clone().resize_unchecked(modulus.value().bits_precision()),
        })
    }

    /// Returns the modulus.
    pub fn prime(&self) -> &BoxedUint {
        &self.prime
    }

    /// Returns the square.
    pub fn square(&self) -> &BoxedUint {
        &self.square
    }

    /// Solves the puzzle on one core, as its client does. The power a^((p + 1)/4) of the square a is a root or none.
    /// Returns the smaller of the root and its opposite, or `None`. For many puzzles with one prime use
    /// [`ModSqrt::sqrt_host`] with [`RootChoice::Smaller`].
    pub fn solve(&self) -> Option<BoxedUint> {
        let odd = Option::<Odd<BoxedUint>>::from(self.prime.to_odd())?;
        let params = BoxedMontyParams::new_vartime(odd);
        let exponent = self.prime.wrapping_shr_vartime(2).wrapping_add(BoxedUint::one());
        let root = BoxedMontyForm::new(self.square.clone(), &params).pow(&exponent).retrieve();
        let opposite = self.prime.wrapping_sub(&root);
        let smaller = if opposite < root { opposite } else { root };
        self.verify(&smaller).then_some(smaller)
    }

    /// Returns whether a number is the smaller root, at most (p − 1)/2. The check of the server takes one
    /// multiplication.
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
    use super::*;
    use crate::number::MIN_BITS;

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
        assert_eq!(Puzzle::new(&prime, &prime).unwrap_err(), Error::NotReduced { index: 0 });
        let bits = |least, actual| Error::ModulusBits { index: 0, expected: least..=MAX_BITS, actual };
        assert_eq!(Puzzle::draw_prime(63).unwrap_err(), bits(MIN_RANDOM_BITS, 63));
        assert_eq!(Puzzle::draw(&BoxedUint::one()).unwrap_err(), bits(MIN_BITS, 1));
    }
}
