//! Computations as lists of steps. All elements of a batch take them together.
//!
//! An element has an accumulator and [`SLOTS`] slots of its own. Nearly all steps multiply the accumulator by
//! something, modulo the element's prime and in Montgomery form. The factor may depend on the prime and on earlier
//! results, but whether a step is done does not. So the threads of a GPU stay together, and the work can be cut between
//! any two steps.

use crate::number::MAX_BITS;

/// Bits of the exponents' digits.
pub(crate) const WINDOW: u32 = 4;

/// Where the accumulator lies between launches.
pub(crate) const ACCUMULATOR: u32 = 0;
/// The element, in Montgomery form.
const VALUE: u32 = 1;
/// The bits of a logarithm.
pub(crate) const BITS: u32 = 2;
/// A root, but for what the logarithm says.
const ROOT: u32 = 3;
/// Powers of the element, and later those whose logarithms are taken, one for each level of the recursion.
pub(crate) const TABLE: u32 = 4;
const STACK: u32 = TABLE;
/// Slots of an element.
pub(crate) const SLOTS: u32 = TABLE + (1 << WINDOW);

const _: () = assert!(MAX_BITS.ilog2() < 1 << WINDOW, "the recursion has a slot for each level");

/// Sections of a prime's constants. A section has the limbs of the prime.
pub(crate) mod section {
    /// The prime.
    pub(crate) const MODULUS: u32 = 0;
    /// R mod p.
    pub(crate) const ONE: u32 = 1;
    /// R² mod p.
    pub(crate) const SQUARE: u32 = 2;
    /// 1, by which the Montgomery form is left.
    pub(crate) const UNIT: u32 = 3;
    /// (q − 1)/2, for p − 1 = 2^s q with q odd.
    pub(crate) const ROOT_EXPONENT: u32 = 4;
    /// From here on, number k is z^(−2^k) in Montgomery form, for z of order 2^s.
    pub(crate) const POWERS: u32 = 5;
}

/// Words before the first section: −p⁻¹ modulo 2^64.
pub(crate) const HEAD: u32 = 4;

/// A step. Up to [`Step::Correct`], the accumulator is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// By itself.
    Square,
    /// By a slot.
    Slot(u32),
    /// By the slot that a digit of an exponent says.
    Digit { digit: u32, section: u32 },
    /// By a section of the constants.
    Constant(u32),
    /// By a section if a bit is set.
    Correct { bit: u32, section: u32 },
    /// The accumulator becomes the input, or 0 where that is not below the prime or has none.
    Start,
    /// A slot becomes the accumulator.
    Store(u32),
    /// The accumulator becomes a slot.
    Load(u32),
    /// The accumulator becomes a section.
    LoadConstant(u32),
    /// A bit says whether the accumulator is not 1. They come in order.
    Bit(u32),
    /// There is no root unless the accumulator is the slot's.
    Check(u32),
    /// The output becomes the accumulator or its opposite.
    Finish,
}

/// Bits of an argument of a step.
pub(crate) const ARGUMENT_BITS: u32 = 14;

/// How many of the codes are multiplications: those below.
pub(crate) const MULTIPLICATIONS: u32 = 5;

impl Step {
    /// The names of the codes in the sources.
    pub(crate) const NAMES: [&'static str; 12] = [
        "SQUARE",
        "SLOT",
        "DIGIT",
        "CONSTANT",
        "CORRECT",
        "START",
        "STORE",
        "LOAD",
        "LOAD_CONSTANT",
        "BIT",
        "CHECK",
        "FINISH",
    ];

    fn parts(self) -> (u32, u32, u32) {
        match self {
            Step::Square => (0, 0, 0),
            Step::Slot(slot) => (1, slot, 0),
            Step::Digit { digit, section } => (2, digit, section),
            Step::Constant(section) => (3, section, 0),
            Step::Correct { bit, section } => (4, section, bit),
            Step::Start => (5, 0, 0),
            Step::Store(slot) => (6, slot, 0),
            Step::Load(slot) => (7, slot, 0),
            Step::LoadConstant(section) => (8, section, 0),
            Step::Bit(bit) => (9, bit, 0),
            Step::Check(slot) => (10, slot, 0),
            Step::Finish => (11, 0, 0),
        }
    }

    pub(crate) fn encode(self) -> u32 {
        let (code, x, y) = self.parts();
        code | x << 4 | y << (4 + ARGUMENT_BITS)
    }

    pub(crate) fn decode(word: u32) -> Self {
        let (x, y) = (word >> 4 & ((1 << ARGUMENT_BITS) - 1), word >> (4 + ARGUMENT_BITS));
        match word & 15 {
            0 => Step::Square,
            1 => Step::Slot(x),
            2 => Step::Digit { digit: x, section: y },
            3 => Step::Constant(x),
            4 => Step::Correct { bit: y, section: x },
            5 => Step::Start,
            6 => Step::Store(x),
            7 => Step::Load(x),
            8 => Step::LoadConstant(x),
            9 => Step::Bit(x),
            10 => Step::Check(x),
            11 => Step::Finish,
            code => unreachable!("no step has the code {code}"),
        }
    }

    /// Whether it multiplies.
    pub(crate) fn multiplies(self) -> bool {
        self.parts().0 < MULTIPLICATIONS
    }
}

/// Square roots for exponents (q − 1)/2 of `exponent_bits` bits, and primes of 2-adicity up to `adicity`.
pub(crate) fn roots(exponent_bits: u32, adicity: u32) -> Vec<Step> {
    let mut steps = vec![Step::Start, Step::Constant(section::SQUARE), Step::Store(VALUE)];
    power(&mut steps, exponent_bits, section::ROOT_EXPONENT);
    if adicity > 1 {
        // The accumulator is w = a^((q − 1)/2); a w is a root of a b, for b = a w².
        steps.extend([Step::Store(STACK), Step::Slot(VALUE), Step::Store(ROOT), Step::Slot(STACK)]);
        logarithm(&mut steps, adicity, 0, adicity - 1, STACK);
        steps.push(Step::Load(ROOT));
        steps.extend((0..adicity - 1).map(|bit| Step::Correct { bit, section: section::POWERS + bit }));
    } else {
        steps.push(Step::Slot(VALUE));
    }
    steps.extend([Step::Store(ROOT), Step::Square, Step::Check(VALUE)]);
    steps.extend([Step::Load(ROOT), Step::Constant(section::UNIT), Step::Finish]);
    steps
}

/// Squares.
pub(crate) fn squares() -> Vec<Step> {
    vec![Step::Start, Step::Square, Step::Constant(section::SQUARE), Step::Finish]
}

/// The power of [`VALUE`], which is in the accumulator as well, by an exponent of `bits` bits: fixed windows.
fn power(steps: &mut Vec<Step>, bits: u32, section: u32) {
    steps.extend([Step::Store(TABLE + 1), Step::LoadConstant(section::ONE), Step::Store(TABLE)]);
    let digits = bits.div_ceil(WINDOW);
    if digits == 0 {
        return;
    }
    steps.push(Step::Load(VALUE));
    for entry in 2..1 << WINDOW {
        steps.extend([Step::Slot(VALUE), Step::Store(TABLE + entry)]);
    }
    steps.push(Step::Load(TABLE));
    for digit in (0..digits).rev() {
        if digit + 1 < digits {
            steps.extend([Step::Square; WINDOW as usize]);
        }
        steps.push(Step::Digit { digit, section });
    }
}

/// The `count` bits, from number `first` on, of the logarithm of the accumulator, of order at most 2^count, to the base
/// z^(2^(adicity − count)). Both halves of the bits are logarithms of half the length: the low ones that of a power,
/// the high ones that of what is left when the low ones are divided out.
fn logarithm(steps: &mut Vec<Step>, adicity: u32, first: u32, count: u32, slot: u32) {
    if count == 1 {
        steps.push(Step::Bit(first));
        return;
    }
    let low = count / 2;
    steps.push(Step::Store(slot));
    steps.extend((0..count - low).map(|_| Step::Square));
    logarithm(steps, adicity, first, low, slot + 1);
    steps.push(Step::Load(slot));
    let section = section::POWERS + adicity - count;
    steps.extend((0..low).map(|i| Step::Correct { bit: first + i, section: section + i }));
    logarithm(steps, adicity, first + low, count - low, slot);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_back() {
        let codes = roots(20, 7).into_iter().chain(squares());
        codes.for_each(|step| assert_eq!(Step::decode(step.encode()), step));
        let widest = Step::Correct { bit: 4094, section: section::POWERS + 4095 };
        assert_eq!(Step::decode(widest.encode()), widest);
    }

    #[test]
    fn logarithms_stay_in_the_slots_and_cost_what_is_said() {
        for adicity in [2, 3, 4, 64, 1000, MAX_BITS - 1] {
            let steps = roots(1, adicity);
            let slots = steps.iter().filter_map(|step| match step {
                Step::Store(slot) => Some(*slot),
                _ => None,
            });
            assert!(slots.max() < Some(SLOTS));
            let bits: Vec<u32> =
                steps.iter().filter_map(|step| if let Step::Bit(bit) = step { Some(*bit) } else { None }).collect();
            assert!(bits.iter().copied().eq(0..adicity - 1), "each bit once and in order");
            let multiplications = steps.iter().filter(|step| step.multiplies()).count() as u32;
            let (fixed, levels) = (14 + 1 + 5, (adicity - 1).next_power_of_two().ilog2());
            assert!(multiplications <= fixed + (adicity - 1) * (levels + 1), "{adicity}: {multiplications}");
        }
    }
}
