//! Sze's algorithm: roots without a non-residue, given roots of unity only.
//!
//! Classes of u + v s with s² = a, up to factors of the field, are a group. Where a = α², (u + v α) / (u − v α) makes
//! it the multiplicative group of the field, and orders of classes divide p − 1. A class u + v s of order d > 2 gives
//! (u + v α) / (u − v α) = ζ^j for a primitive d-th root of unity ζ. Hence α = u / v · (ζ^j − 1) / (ζ^j + 1). Let p − 1
//! = 2^n p_1^(e_1) … t. Then 4 or one of the odd primes p_i divides the order of a class, unless this divides 2 t. The
//! order divides 2 t for 2 t classes only. So one of the first 2 t − 1 elements c has a class c + s of another order,
//! or is a root itself.
//!
//! Sze, "On taking square roots without quadratic nonresidues over finite fields", Mathematics of Computation 80
//! (2011), Algorithm 2.

use ark_ff::Field;
use evariste_field::DevicePrimeField;
use num_bigint::BigUint;

use super::{Prime, Writer, order, unless_zero};
use crate::program::{Operand, Slot, Step};

/// The largest odd prime that is looked for in p − 1.
const MAX_ODD: u32 = 31;

/// Of how many elements one is not served at most, as a power of 2.
const FAILURE_BITS: u64 = 64;

/// The power of an odd prime r in p − 1, with a primitive r-th root of unity.
#[derive(Clone, Debug)]
struct Odd<B> {
    prime: u32,
    /// e, for r^e.
    exponent: u32,
    /// (p − 1) / r^e.
    rest: BigUint,
    root_of_unity: B,
}

impl<B: DevicePrimeField> Odd<B> {
    /// Of the small odd primes that divide p − 1.
    fn all() -> Vec<Self> {
        let order = order::<B>();
        let odd = (3..=MAX_ODD).step_by(2).filter(|r| (2..*r).all(|d| r % d != 0));
        odd.filter(|r| (&order % r) == BigUint::ZERO).map(|r| Self::of(r, &order)).collect()
    }

    fn of(prime: u32, order: &BigUint) -> Self {
        let (mut rest, mut exponent) = (order.clone(), 0);
        while (&rest % prime) == BigUint::ZERO {
            rest /= prime;
            exponent += 1;
        }
        let power = (order / prime).to_u64_digits();
        // Of all elements but 0, one in r has the power 1.
        let powers = (2u64..).map(|h| B::from(h).pow(&power));
        let root_of_unity = powers.into_iter().find(|x| *x != B::ONE && !x.is_zero()).unwrap_or(B::ONE);
        Self { prime, exponent, rest, root_of_unity }
    }

    /// (ζ^j − 1) / (ζ^j + 1) for j up to (r − 1) / 2: those behind are the opposites of these.
    fn quotients(&self) -> impl Iterator<Item = B> {
        let powers = std::iter::successors(Some(self.root_of_unity), |x| Some(*x * self.root_of_unity));
        let all = powers.map(|x| (x - B::ONE) * Prime::inverse(x + B::ONE));
        all.take((self.prime / 2) as usize)
    }
}

/// Elements c that are tried. Where t is small, one of them is sure to have a class that serves. Otherwise the attempts
/// fail for one in 2^64 elements: a class has an order that divides 2 t with a probability of 2 t / (p − 1).
fn attempts<B: DevicePrimeField>(prime: &Prime<B>, odd: &[Odd<B>]) -> u32 {
    let order = order::<B>();
    let powers = odd.iter().fold(BigUint::from(1u8) << (prime.two_adicity - 1), |product, odd| {
        product * BigUint::from(odd.prime).pow(odd.exponent)
    });
    let classes = &order / &powers;
    let by_chance = FAILURE_BITS.div_ceil((powers.bits() - 1).max(1));
    let certain = u64::try_from(classes - 1u8).unwrap_or(u64::MAX);
    by_chance.min(certain).clamp(1, prime.attempts().into()) as u32
}

/// Whether there is a root of unity to take roots with: of order 4, or of the order of a small odd prime.
pub(super) fn applies<B: DevicePrimeField>(prime: &Prime<B>) -> bool {
    prime.two_adicity >= 2 || !Odd::<B>::all().is_empty()
}

/// A root of −1: by the algorithm itself where an odd prime serves it, else of the smallest integer whose order 4
/// divides.
fn root_of_minus_one<B: DevicePrimeField>(odd: &[Odd<B>]) -> B {
    let order = order::<B>();
    let by_itself = odd.iter().find_map(|odd| (1u64..64).find_map(|c| class_of_order(-B::ONE, B::from(c), odd)));
    // x, which becomes its square.
    let step = |x: &mut B| {
        let before = *x;
        x.square_in_place();
        Some(before)
    };
    let found = by_itself.or_else(|| {
        let n = order.trailing_zeros().unwrap_or(0);
        let mut powers = (2u64..).map(|h| B::from(h).pow((&order >> n).to_u64_digits()));
        powers.find_map(|power| (0..n).scan(power, |x, _| step(x)).find(is_root))
    });
    found.unwrap_or(B::ONE)
}

/// Whether this is a root of −1.
fn is_root<B: Field>(x: &B) -> bool {
    x.square() == -B::ONE
}

/// The root of `a` that the class of c + s of a square `a` tells with an odd prime: `None` if that does not divide its
/// order.
fn class_of_order<B: DevicePrimeField>(a: B, c: B, odd: &Odd<B>) -> Option<B> {
    let product = |[u, v]: [B; 2], [x, y]: [B; 2]| [u * x + a * v * y, u * y + v * x];
    let power = |base: [B; 2], exponent: &BigUint| {
        (0..exponent.bits()).rev().fold([B::ONE, B::ZERO], |x, i| {
            let square = product(x, x);
            if exponent.bit(i) { product(square, base) } else { square }
        })
    };
    if c.square() == a {
        return Some(c);
    }
    let mut class = power([c, B::ONE], &odd.rest);
    for _ in 0..odd.exponent {
        let next = power(class, &odd.prime.into());
        if next[1].is_zero() {
            break;
        }
        class = next;
    }
    let [u, v] = class;
    let ratio = u * v.inverse()?;
    odd.quotients().map(|quotient| ratio * quotient).find(|root| root.square() == a)
}

/// Slots of a class u + v s, of others and of what is computed on the way.
struct Slots {
    a: Slot,
    u: Slot,
    v: Slot,
    /// A class that is multiplied by.
    base: [Slot; 2],
    /// What u is going to be.
    next: Slot,
}

impl Slots {
    /// The square of u + v s: u² + a v², and 2 u v.
    fn squared(&self) -> Vec<Step> {
        [self.norm(), self.doubled()].concat()
    }

    /// u² + a v² into the accumulator and `next`.
    fn norm(&self) -> Vec<Step> {
        let [a, u, v, next] = [self.a, self.u, self.v, self.next].map(Operand::Slot);
        let first = [Step::Load(u), Step::Square(1), Step::Store(self.next), Step::Load(v), Step::Square(1)];
        [first.as_slice(), &[Step::Multiply(0, a), Step::Add(next), Step::Store(self.next)]].concat()
    }

    /// The rest of a squaring: v = 2 u v, and u.
    fn doubled(&self) -> Vec<Step> {
        let [u, v, next] = [self.u, self.v, self.next].map(Operand::Slot);
        let first = [Step::Load(u), Step::Multiply(0, v), Step::Store(self.v), Step::Add(v), Step::Store(self.v)];
        [first.as_slice(), &[Step::Load(next), Step::Store(self.u)]].concat()
    }

    /// Times c + s, for c in the first slot of the base: c u + a v, and u + c v.
    fn times_simple(&self) -> Vec<Step> {
        let [a, u, v, c, next] = [self.a, self.u, self.v, self.base[0], self.next].map(Operand::Slot);
        [
            [Step::Load(a), Step::Multiply(0, v), Step::Store(self.next)].as_slice(),
            &[Step::Load(c), Step::Multiply(0, u), Step::Add(next), Step::Store(self.next)],
            &[Step::Load(c), Step::Multiply(0, v), Step::Add(u), Step::Store(self.v)],
            &[Step::Load(next), Step::Store(self.u)],
        ]
        .concat()
    }

    /// Times x + y s of the base: u x + a v y, and u y + v x. `other` is a free slot.
    fn times(&self, other: Slot) -> Vec<Step> {
        let [a, u, v, next, kept] = [self.a, self.u, self.v, self.next, other].map(Operand::Slot);
        let [x, y] = self.base.map(Operand::Slot);
        [
            [Step::Load(y), Step::Multiply(0, v), Step::Multiply(0, a), Step::Store(self.next)].as_slice(),
            &[Step::Load(x), Step::Multiply(0, u), Step::Add(next), Step::Store(self.next)],
            &[Step::Load(y), Step::Multiply(0, u), Step::Store(other)],
            &[Step::Load(x), Step::Multiply(0, v), Step::Add(kept), Step::Store(self.v)],
            &[Step::Load(next), Step::Store(self.u)],
        ]
        .concat()
    }
}

/// The root of slot `a`: c = 1, 2, … until 4 or a small odd prime divides the order of the class of c + s.
pub(super) fn write<B: DevicePrimeField>(w: &mut Writer<'_, B>, a: Slot, root: Slot) {
    let found = w.b.slots(2);
    let base = [w.b.slot(), w.b.slot()];
    let slots = Slots { a, u: w.b.slot(), v: w.b.slot(), base, next: w.b.slot() };
    let [c, kept, before] = [w.b.slot(), w.b.slot(), w.b.slots(2)];
    w.reserve();
    let n = w.prime.two_adicity;
    let odd = Odd::<B>::all();
    let attempts = attempts(w.prime, &odd);
    let all = w.b.by_counter((1..=u64::from(attempts)).map(B::from));
    let [zero, one] = [B::ZERO, B::ONE].map(|x| w.b.constant(x));
    let [at_u, at_v, at_next] = [slots.u, slots.v, slots.next].map(Operand::Slot);
    // Once the flag is set.
    let set = [Step::Load(zero), Step::Test(zero)];
    // u + v s = (c + s)^exponent.
    let power_of_c = |w: &mut Writer<'_, B>, exponent: &BigUint| {
        w.b.extend([Step::Load(Operand::Slot(c)), Step::Store(slots.base[0]), Step::Store(slots.u)]);
        w.b.extend([Step::Load(one), Step::Store(slots.v)]);
        for bit in (0..exponent.bits() - 1).rev() {
            w.b.extend(slots.squared());
            if exponent.bit(bit) {
                w.b.extend(slots.times_simple());
            }
        }
    };
    let begin = w.b.here();
    w.b.extend([Step::Load(all), Step::Store(c), Step::Store(found), Step::Square(1), Step::Test(Operand::Slot(a))]);
    let mut is_root = vec![w.b.jump(true)];
    let mut order_of_twos = None;
    if n >= 2 {
        power_of_c(w, &(order::<B>() >> n));
        w.b.extend([Step::Load(at_u), Step::Test(zero)]);
        let at_most_two = w.b.jump(true);
        w.b.extend([Step::Load(at_v), Step::Test(zero)]);
        order_of_twos = Some(w.b.jump(false));
        w.b.land(at_most_two);
    }
    let few = w.b.here();
    let mut order_of_odd = Vec::new();
    for odd in &odd {
        power_of_c(w, &odd.rest);
        w.b.extend([Step::Load(at_v), Step::Test(zero)]);
        order_of_odd.push(w.b.jump(false));
    }
    if order_of_twos.is_some() {
        w.b.seldom(few);
    }
    w.b.end_search(begin, attempts);
    w.b.extend(set);
    let mut found_ratio = vec![w.b.jump(true)];
    let few = w.b.here();
    for (odd, from) in odd.iter().zip(order_of_odd) {
        w.b.land(from);
        // Powers by r, as long as r² divides the order.
        let mut order_is_prime = Vec::new();
        for _ in 1..odd.exponent {
            for (at, slot) in [(at_u, 0), (at_v, 1)] {
                w.b.extend([Step::Load(at), Step::Store(slots.base[slot]), Step::Store(before + slot as Slot)]);
            }
            let bits = u32::BITS - odd.prime.leading_zeros();
            for bit in (0..bits - 1).rev() {
                w.b.extend(slots.squared());
                if odd.prime >> bit & 1 == 1 {
                    w.b.extend(slots.times(kept));
                }
            }
            w.b.extend([Step::Load(at_v), Step::Test(zero)]);
            order_is_prime.push(w.b.jump(true));
        }
        // Without such powers the class is as it was; and behind the last one it has the order r.
        w.b.extend([Step::Load(at_u), Step::Store(before), Step::Load(at_v), Step::Store(before + 1)]);
        order_is_prime.into_iter().for_each(|from| w.b.land(from));
        // a v², to which the square of u (ζ^j − 1) / (ζ^j + 1) is compared.
        let [u, v] = [before, before + 1].map(Operand::Slot);
        w.b.extend([Step::Load(v), Step::Store(slots.v), Step::Square(1), Step::Multiply(0, Operand::Slot(a))]);
        w.b.push(Step::Store(slots.next));
        for quotient in odd.quotients() {
            let quotient = w.b.constant(quotient);
            w.b.extend([Step::Load(u), Step::Multiply(0, quotient), Step::Store(found), Step::Square(1)]);
            w.b.push(Step::Test(at_next));
            found_ratio.push(w.b.jump(true));
        }
        w.b.extend(set);
        found_ratio.push(w.b.jump(true));
    }
    if order_of_twos.is_some() {
        w.b.seldom(few);
    }
    if let Some(from) = order_of_twos {
        w.b.land(from);
        let mut order_is_four = Vec::new();
        for _ in 1..n {
            w.b.extend(slots.norm()).push(Step::Test(zero));
            order_is_four.push(w.b.jump(true));
            w.b.extend(slots.doubled());
        }
        order_is_four.into_iter().for_each(|from| w.b.land(from));
        let unit = w.b.constant(root_of_minus_one(&odd));
        w.b.extend([Step::Load(at_u), Step::Multiply(0, unit), Step::Store(found)]);
    }
    found_ratio.into_iter().for_each(|from| w.b.land(from));
    // What was found, divided by v.
    let exponent = order::<B>() - 1u8;
    let exponent: Vec<bool> = (0..exponent.bits()).map(|i| exponent.bit(i)).collect();
    w.b.power(slots.v, &exponent, w.scratch);
    w.b.extend([Step::Multiply(0, Operand::Slot(found)), Step::Store(found)]);
    is_root.drain(..).for_each(|from| w.b.land(from));
    unless_zero(w, a, found);
    w.b.push(Step::Store(root));
}
