//! Maps from fields to curves, for hashing to these.

use evariste_field::DevicePrimeField;

use super::{Prime, Writer, integer, write_norm, write_ratio};
use crate::program::{Operand, Program, Slot, Step};

/// An element of a quadratic extension: its coefficients in two neighbouring slots, or constants.
type Pair = [Operand; 2];

/// What a map to a curve is made of: y² = x³ + a x + b with a b ≠ 0, z for the simplified map to it, and the fractions
/// of polynomials that take x and y on to the curve, the constant coefficient first.
pub(crate) struct Map<'a, F> {
    pub(crate) a: F,
    pub(crate) b: F,
    pub(crate) z: F,
    pub(crate) x: [&'a [F]; 2],
    pub(crate) y: [&'a [F]; 2],
}

/// The simplified map of Shallue, van de Woestijne and Ulas, then the isogeny: from an element in slot 0 to a point in
/// Jacobian form in slots 0 to 2. Appendices F.2 and E of RFC 9380, with the fractions of the isogeny over one
/// denominator, so that there is no inversion.
pub(crate) fn maps<B: DevicePrimeField>(prime: &Prime<B>, map: &Map<'_, B>) -> Program<B> {
    let mut w = Writer::new(prime, 3);
    let at = Operand::Slot;
    let [u, numerator, denominator, other] = [0, w.b.slot(), w.b.slot(), w.b.slot()];
    let ratio = [w.b.slot(), w.b.slot(), w.b.slot()];
    // g(x) as a fraction; then the x of both cases, and y; the powers of the denominator of x; the four polynomials.
    let [top, bottom] = [w.b.slot(), w.b.slot()];
    let (xs, ys) = (w.b.slots(2), w.b.slots(2));
    let degree = [map.x, map.y].into_iter().flatten().map(|of| of.len()).max().unwrap_or(1) as Slot - 1;
    let powers = w.b.slots(degree.max(1));
    let polynomials = w.b.slots(4);
    w.reserve();
    w.set_table();
    let [a, b, z, one, zero] = [map.a, map.b, map.z, B::ONE, B::ZERO].map(|x| w.b.constant(x));
    // z u² in `other`, and z² u⁴ + z u² in `numerator`.
    w.b.extend([Step::Load(at(u)), Step::Multiply(1, z), Step::Store(other), Step::Square(1), Step::Add(at(other))]);
    w.b.push(Step::Store(numerator));
    // The denominator of x is −a times that, or a z if it is 0.
    w.b.extend([Step::Load(zero), Step::Subtract(at(numerator)), Step::Store(xs), Step::Load(z), Step::Store(xs + 1)]);
    w.b.extend([
        Step::Load(at(numerator)),
        Step::Test(zero),
        Step::Load(Operand::SlotByFlag(xs)),
        Step::Multiply(0, a),
    ]);
    w.b.push(Step::Store(denominator));
    w.b.extend([Step::Load(at(numerator)), Step::Add(one), Step::Multiply(0, b), Step::Store(numerator)]);
    // (n² + a d²) n + b d³, over d³.
    w.b.extend([Step::Load(at(denominator)), Step::Multiply(1, a), Step::Store(top), Step::Load(at(numerator))]);
    w.b.extend([Step::Square(1), Step::Add(at(top)), Step::Multiply(0, at(numerator)), Step::Store(top)]);
    w.b.extend([Step::Load(at(denominator)), Step::Multiply(1, at(denominator)), Step::Store(bottom)]);
    w.b.extend([Step::Multiply(0, b), Step::Add(at(top)), Step::Store(top)]);
    write_ratio(&mut w, [top, bottom], ratio, map.z);
    let root = ratio[0];
    // Whether it is a root of the ratio: else x is z u² times as large, and y is z u³ times the root.
    w.b.extend([Step::Load(at(numerator)), Step::Store(xs + 1), Step::Multiply(0, at(other)), Step::Store(xs)]);
    w.b.extend([Step::Load(at(root)), Step::Store(ys + 1), Step::Multiply(0, at(other)), Step::Multiply(0, at(u))]);
    w.b.extend([Step::Store(ys), Step::Load(at(root)), Step::Square(1), Step::Multiply(0, at(bottom))]);
    w.b.extend([Step::Test(at(top)), Step::Load(Operand::SlotByFlag(xs)), Step::Store(numerator)]);
    w.b.extend([Step::Load(Operand::SlotByFlag(ys)), Step::Store(root)]);
    // y has the sign of u.
    let canonical = w.b.constant(integer::<B>(1));
    w.b.extend([Step::Load(at(u)), Step::Multiply(0, canonical), Step::Sign, Step::Want, Step::Load(at(root))]);
    w.b.extend([Step::Multiply(0, canonical), Step::Sign, Step::Load(at(root)), Step::Negate, Step::Store(root)]);
    // d^i for i from 1 on, then each polynomial times d to the power of its degree.
    w.b.extend([Step::Load(at(denominator)), Step::Store(powers)]);
    for i in 1..degree {
        w.b.extend([Step::Multiply(0, at(denominator)), Step::Store(powers + i)]);
    }
    let all = [map.x[0], map.x[1], map.y[0], map.y[1]];
    for (polynomial, to) in all.into_iter().zip(polynomials..) {
        let Some((highest, rest)) = polynomial.split_last() else { continue };
        let highest = w.b.constant(*highest);
        w.b.push(Step::Load(highest));
        for (i, coefficient) in rest.iter().rev().enumerate() {
            let coefficient = w.b.constant(*coefficient);
            w.b.extend([Step::Multiply(0, at(numerator)), Step::Store(to), Step::Load(coefficient)]);
            w.b.extend([Step::Multiply(0, at(powers + i as Slot)), Step::Add(at(to))]);
        }
        w.b.push(Step::Store(to));
    }
    // What lacks powers of d to be over one denominator gets them.
    for [first, second] in [[0, 1], [2, 3]] {
        let (numerator, denominator) = (all[first as usize].len(), all[second as usize].len());
        let (lower, by) =
            if numerator > denominator { (second, numerator - denominator) } else { (first, denominator - numerator) };
        if by > 0 {
            let place = polynomials + lower;
            w.b.extend([Step::Load(at(place)), Step::Multiply(0, at(powers + by as Slot - 1)), Step::Store(place)]);
        }
    }
    // Over Z = e f for x = c / e and y = y0 g / f: X = c e f² and Y = y0 g e³ f².
    let [c, e, g, f] = [0, 1, 2, 3].map(|k| polynomials + k);
    w.b.extend([
        Step::Load(at(f)),
        Step::Multiply(0, at(e)),
        Step::Store(2),
        Step::Multiply(0, at(f)),
        Step::Store(top),
    ]);
    w.b.extend([
        Step::Multiply(0, at(c)),
        Step::Store(0),
        Step::Load(at(e)),
        Step::Square(1),
        Step::Multiply(0, at(top)),
    ]);
    w.b.extend([Step::Multiply(0, at(g)), Step::Multiply(0, at(root)), Step::Store(1)]);
    w.b.finish()
}

/// The arithmetic of a quadratic extension i² = β in the steps of its prime field.
struct Pairs<'a, 'b, B> {
    w: &'b mut Writer<'a, B>,
    beta: Operand,
    scratch: Slot,
}

impl<B: DevicePrimeField> Pairs<'_, '_, B> {
    fn at(slot: Slot) -> Pair {
        [Operand::Slot(slot), Operand::Slot(slot + 1)]
    }

    fn constant(&mut self, x: &[B]) -> Pair {
        [0, 1].map(|k| self.w.b.constant(x[k]))
    }

    fn copy(&mut self, to: Slot, a: Pair) {
        for (k, x) in (to..).zip(a) {
            self.w.b.extend([Step::Load(x), Step::Store(k)]);
        }
    }

    fn add(&mut self, to: Slot, a: Pair, b: Pair) {
        for (k, (x, y)) in (to..).zip(a.into_iter().zip(b)) {
            self.w.b.extend([Step::Load(x), Step::Add(y), Step::Store(k)]);
        }
    }

    /// `to` may be a factor.
    fn multiply(&mut self, to: Slot, a: Pair, b: Pair) {
        let [first, second] = [self.scratch, self.scratch + 1];
        let steps = [
            [Step::Load(a[1]), Step::Multiply(0, b[1]), Step::Multiply(0, self.beta), Step::Store(first)],
            [Step::Load(a[0]), Step::Multiply(0, b[0]), Step::Add(Operand::Slot(first)), Step::Store(first)],
        ];
        self.w.b.extend(steps.into_iter().flatten());
        self.w.b.extend([Step::Load(a[0]), Step::Multiply(0, b[1]), Step::Store(second), Step::Load(a[1])]);
        self.w.b.extend([Step::Multiply(0, b[0]), Step::Add(Operand::Slot(second)), Step::Store(to + 1)]);
        self.w.b.extend([Step::Load(Operand::Slot(first)), Step::Store(to)]);
    }

    /// Both coefficients, by the flag, from slots in which that for an unset flag stands before that for a set one.
    fn choose(&mut self, to: Slot, from: Slot) {
        for k in 0..2 {
            self.w.b.extend([Step::Load(Operand::SlotByFlag(from + 2 * k)), Step::Store(to + k)]);
        }
    }

    /// Makes an element the one that [`Pairs::choose`] takes if the flag is `set`.
    fn offer(&mut self, to: Slot, set: bool, a: Pair) {
        for (k, x) in (0..).zip(a) {
            self.w.b.extend([Step::Load(x), Step::Store(to + 2 * k + Slot::from(set))]);
        }
    }
}

/// [`maps`] for a quadratic extension i² = β: coefficients in pairs, from slots 0 and 1 to slots 0 to 5.
///
/// y is a root of t / d, or of z t / d, for fractions t / d. With a = t d, which is a square if t / d is, it is the
/// root of a or z a over d, by the norms as in [`roots2`]: its first exponentiation tells which of the two has a root,
/// and the second one gives 1 / N(d) as well, by which d is divided by, since the sign of y is needed.
pub(crate) fn maps2<B: DevicePrimeField>(prime: &Prime<B>, beta: B, map: &Map<'_, Vec<B>>) -> Program<B> {
    let mut w = Writer::new(prime, 6);
    let mut pair = || w.b.slots(2);
    let [u, numerator, denominator, other] = [0, pair(), pair(), pair()];
    let [top, bottom, root, factor] = [pair(), pair(), pair(), pair()];
    let degree = [map.x, map.y].into_iter().flatten().map(|of| of.len()).max().unwrap_or(1) as Slot - 1;
    let (powers, polynomials) = (w.b.slots(2 * degree.max(1)), w.b.slots(8));
    // What is chosen among: a, the numerator of x, and the factor of y; the root of the norm, and the denominator of x.
    let [radicands, xs, factors] = [w.b.slots(4), w.b.slots(4), w.b.slots(4)];
    let (norms, zero_or_first, candidates) = (w.b.slots(2), w.b.slots(2), w.b.slots(3));
    let [norm, keep, delta, size, scaled] = [(); 5].map(|()| w.b.slot());
    let scratch = w.b.slots(2);
    w.reserve();
    w.set_table();
    let [zero, half, canonical] = [B::ZERO, Prime::inverse(B::from(2u8)), integer::<B>(1)].map(|x| w.b.constant(x));
    let beta_at = w.b.constant(beta);
    let mut p = Pairs { w: &mut w, beta: beta_at, scratch };
    let at = Pairs::<B>::at;
    let slot = Operand::Slot;
    let [a, b, z, one] = [&map.a, &map.b, &map.z, &vec![B::ONE, B::ZERO]].map(|x| p.constant(x));
    // z u² in `other`, and z² u⁴ + z u² in `numerator`.
    p.multiply(other, at(u), at(u));
    p.multiply(other, at(other), z);
    p.multiply(numerator, at(other), at(other));
    p.add(numerator, at(numerator), at(other));
    // The denominator of x is −a times that, or a z if it is 0, which its norm tells.
    p.offer(xs, true, z);
    for k in 0..2 {
        p.w.b.extend([Step::Load(zero), Step::Subtract(slot(numerator + k)), Step::Store(xs + 2 * k)]);
    }
    write_norm(p.w, [numerator, numerator + 1], beta, norm);
    p.w.b.extend([Step::Load(slot(norm)), Step::Test(zero)]);
    p.choose(denominator, xs);
    p.multiply(denominator, at(denominator), a);
    p.add(numerator, at(numerator), one);
    p.multiply(numerator, at(numerator), b);
    // (n² + a d²) n + b d³, over d³.
    p.multiply(bottom, at(denominator), at(denominator));
    p.multiply(top, at(bottom), a);
    p.multiply(factor, at(numerator), at(numerator));
    p.add(top, at(top), at(factor));
    p.multiply(top, at(top), at(numerator));
    p.multiply(bottom, at(bottom), at(denominator));
    p.multiply(factor, at(bottom), b);
    p.add(top, at(top), at(factor));
    // What belongs to a square, and to none: then x is z u² times as large, and y is z u³ times the root.
    p.multiply(top, at(top), at(bottom));
    p.offer(radicands, true, at(top));
    p.multiply(root, at(top), z);
    p.offer(radicands, false, at(root));
    p.offer(xs, true, at(numerator));
    p.multiply(root, at(numerator), at(other));
    p.offer(xs, false, at(root));
    p.offer(factors, true, one);
    p.multiply(root, at(other), at(u));
    p.offer(factors, false, at(root));
    write_norm(p.w, [top, top + 1], beta, norm);
    p.w.inverse_root(norm, keep);
    let generator = p.w.prime.generator;
    let norm_of_z = map.z[0].square() - beta * map.z[1].square();
    let correction = p.w.prime.root(norm_of_z * Prime::inverse(generator));
    let correction = p.w.b.constant(correction);
    p.w.b.extend([Step::Multiply(0, slot(norm)), Step::Store(norms + 1), Step::Multiply(0, correction)]);
    p.w.b.extend([Step::Store(norms), Step::Load(slot(norms + 1)), Step::Square(1), Step::Test(slot(norm))]);
    p.w.b.extend([Step::Load(Operand::SlotByFlag(norms)), Step::Store(keep)]);
    p.choose(top, radicands);
    p.choose(numerator, xs);
    p.choose(factor, factors);
    // δ = (a0 + s) / 2, or a0 where that is 0.
    p.w.b.extend([Step::Load(zero), Step::Store(zero_or_first), Step::Load(slot(top)), Step::Store(zero_or_first + 1)]);
    p.w.b.extend([Step::Add(slot(keep)), Step::Multiply(0, half), Step::Test(zero)]);
    p.w.b.extend([Step::Add(Operand::SlotByFlag(zero_or_first)), Step::Store(delta)]);
    // h with δ N(d)² h² = 1 or g.
    write_norm(p.w, [bottom, bottom + 1], beta, size);
    p.w.b.extend([Step::Load(slot(size)), Step::Square(1), Step::Multiply(0, slot(delta)), Step::Store(scaled)]);
    p.w.inverse_root(scaled, keep);
    p.w.b.extend([Step::Store(keep), Step::Multiply(0, slot(size)), Step::Store(norm)]);
    p.w.b.extend([Step::Multiply(0, slot(delta)), Step::Store(candidates), Step::Store(candidates + 2)]);
    p.w.b.extend([Step::Load(slot(norm)), Step::Multiply(0, slot(top + 1)), Step::Multiply(0, half)]);
    p.w.b.push(Step::Store(candidates + 1));
    let c = p.w.prime.root(beta * generator);
    let inverse = Prime::inverse(generator);
    let first = p.w.b.by_flag(B::ONE, c * inverse);
    let second = p.w.b.by_flag(B::ONE, Prime::inverse(c));
    for (i, by) in (0..).zip([first, second]) {
        p.w.b.extend([Step::Load(Operand::SlotByFlag(candidates + i)), Step::Multiply(0, by), Step::Store(root + i)]);
    }
    // 1 / N(d), then the conjugate of d over it, which is 1 / d.
    let by = p.w.b.by_flag(B::ONE, inverse);
    p.w.b.extend([Step::Load(slot(keep)), Step::Square(1), Step::Multiply(0, slot(delta))]);
    p.w.b.extend([Step::Multiply(0, slot(size)), Step::Multiply(0, by), Step::Store(size)]);
    p.w.b.extend([Step::Multiply(0, slot(bottom)), Step::Store(bottom), Step::Load(zero)]);
    p.w.b.extend([Step::Subtract(slot(bottom + 1)), Step::Multiply(0, slot(size)), Step::Store(bottom + 1)]);
    p.multiply(root, at(root), at(bottom));
    p.multiply(root, at(root), at(factor));
    // y has the sign of u.
    for (of, last) in [(u, Some(Step::Want)), (root, None)] {
        for k in 0..2 {
            p.w.b.extend([Step::Load(slot(of + k)), Step::Multiply(0, canonical), Step::Sign]);
        }
        p.w.b.extend(last);
    }
    for k in 0..2 {
        p.w.b.extend([Step::Load(slot(root + k)), Step::Negate, Step::Store(root + k)]);
    }
    // As over a prime field from here on.
    p.copy(powers, at(denominator));
    for i in 1..degree {
        p.multiply(powers + 2 * i, at(powers + 2 * i - 2), at(denominator));
    }
    let all = [map.x[0], map.x[1], map.y[0], map.y[1]];
    for (polynomial, to) in all.into_iter().zip((polynomials..).step_by(2)) {
        let Some((highest, rest)) = polynomial.split_last() else { continue };
        let highest = p.constant(highest);
        p.copy(to, highest);
        for (i, coefficient) in (0..).zip(rest.iter().rev()) {
            let coefficient = p.constant(coefficient);
            p.multiply(to, at(to), at(numerator));
            p.multiply(top, at(powers + 2 * i), coefficient);
            p.add(to, at(to), at(top));
        }
    }
    for [first, second] in [[0, 1], [2, 3]] {
        let (numerator, denominator) = (all[first as usize].len(), all[second as usize].len());
        let (lower, by) =
            if numerator > denominator { (second, numerator - denominator) } else { (first, denominator - numerator) };
        if by > 0 {
            let place = polynomials + 2 * lower;
            p.multiply(place, at(place), at(powers + 2 * (by as Slot - 1)));
        }
    }
    let [c, e, g, f] = [0, 2, 4, 6].map(|k| polynomials + k);
    p.multiply(4, at(f), at(e));
    p.multiply(top, at(4), at(f));
    p.multiply(0, at(top), at(c));
    p.multiply(bottom, at(e), at(e));
    p.multiply(top, at(top), at(bottom));
    p.multiply(top, at(top), at(g));
    p.multiply(2, at(top), at(root));
    w.b.finish()
}
