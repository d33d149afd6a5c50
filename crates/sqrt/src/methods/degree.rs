//! Roots of odd prime degree: Adleman, Manders and Miller's algorithm.
//!
//! Let p − 1 = ℓ^s t, where ℓ does not divide t, and α the inverse of ℓ modulo t. Then y = a^α is a root of a b. The
//! order of b = a^(ℓ α − 1) divides ℓ^s. If a is a power with exponent ℓ, b = g^(ℓ k) for g of order ℓ^s, and y g^(−k)
//! is the root. The digits of k to the base ℓ are found from the lowest on.
//!
//! Adleman, Manders and Miller, "On taking roots in finite fields", FOCS 1977.

use evariste_field::DevicePrimeField;
use num_bigint::BigUint;

use super::{Prime, Writer};
use crate::program::{Operand, Program, Step};

/// The degree ℓ of roots, and what it has to do with p − 1.
#[derive(Clone, Debug)]
pub(crate) struct Degree<B> {
    pub(crate) degree: u32,
    /// s.
    pub(crate) adicity: u32,
    /// t.
    rest: BigUint,
    /// g.
    generator: B,
}

impl<B: DevicePrimeField> Degree<B> {
    /// Of an odd prime.
    pub(crate) fn new(degree: u32) -> Self {
        let order = super::order::<B>();
        let (mut rest, mut adicity) = (order.clone(), 0);
        while (&rest % degree) == BigUint::ZERO {
            rest /= degree;
            adicity += 1;
        }
        let mut generator = B::ONE;
        if adicity > 0 {
            // The smallest integer that is no power with this exponent.
            let symbol = (&order / degree).to_u64_digits();
            let is_none = |x: &B| !x.is_zero() && x.pow(&symbol) != B::ONE;
            let found = (2u64..).map(B::from).find(is_none).unwrap_or(B::ONE);
            generator = found.pow(rest.to_u64_digits());
        }
        Self { degree, adicity, rest, generator }
    }

    /// g^(ℓ^k).
    fn power_of_generator(&self, k: u32) -> B {
        (0..k).fold(self.generator, |x, _| x.pow([self.degree.into()]))
    }

    /// By which a root is multiplied for the others: of order ℓ, or 1 where all elements have one root.
    pub(crate) fn root_of_unity(&self) -> B {
        self.power_of_generator(self.adicity.saturating_sub(1))
    }
}

fn digits(x: &BigUint) -> Vec<bool> {
    (0..x.bits()).map(|i| x.bit(i)).collect()
}

/// Roots in a prime field, of the degree given: from slot 0 to slot 0.
pub(crate) fn roots_of_degree<B: DevicePrimeField>(prime: &Prime<B>, degree: &Degree<B>) -> Program<B> {
    let mut w = Writer::new(prime, 1);
    let (a, root, rest, kept) = (0, w.b.slot(), w.b.slot(), w.b.slot());
    w.reserve();
    let (l, s) = (BigUint::from(degree.degree), degree.adicity);
    let by_degree = digits(&l);
    let [at_a, at_root, at_rest, at_kept] = [a, root, rest, kept].map(Operand::Slot);
    // Below: a^(α − 1), y, and b = y^(ℓ − 1) a^(α − 1). Where s = 0, b is 1.
    let inverse = l.modinv(&degree.rest).unwrap_or_default();
    let exponent = if inverse == BigUint::ZERO { inverse } else { inverse - 1u8 };
    w.b.power(a, &digits(&exponent), w.scratch);
    w.b.extend([Step::Store(rest), Step::Multiply(0, at_a), Step::Store(root)]);
    if s > 1 {
        w.b.power(root, &digits(&(&l - 1u8)), w.scratch);
        w.b.extend([Step::Multiply(0, at_rest), Step::Store(rest)]);
    }
    let units: Vec<B> = std::iter::successors(Some(degree.root_of_unity()), |x| Some(*x * degree.root_of_unity()))
        .take(degree.degree as usize - 1)
        .collect();
    for i in 0..s.saturating_sub(1) {
        // b^(ℓ^(s − 2 − i)) is of order ℓ: the power of the root of unity that the digit says.
        w.b.extend([Step::Load(at_rest), Step::Store(kept)]);
        for _ in 0..s - 2 - i {
            w.b.power(kept, &by_degree, w.scratch);
            w.b.push(Step::Store(kept));
        }
        let steps = [i, i + 1].map(|k| Prime::inverse(degree.power_of_generator(k)));
        let mut powers = steps;
        for unit in &units {
            let unit = w.b.constant(*unit);
            w.b.extend([Step::Load(at_kept), Step::Test(unit)]);
            // No later digit looks at b behind the last but one.
            let updated = if i + 2 < s { 2 } else { 1 };
            for (slot, power) in [root, rest].into_iter().zip(powers).take(updated) {
                let factor = w.b.by_flag(B::ONE, power);
                w.b.extend([Step::Load(Operand::Slot(slot)), Step::Multiply(0, factor), Step::Store(slot)]);
            }
            powers = [powers[0] * steps[0], powers[1] * steps[1]];
        }
    }
    w.b.power(root, &by_degree, w.scratch);
    w.b.extend([Step::Check(at_a), Step::Load(at_root), Step::Store(a)]);
    w.b.finish()
}
