//! The algorithms, as programs.
//!
//! p − 1 = 2^n · m with odd m, and g is a generator of the subgroup of order 2^n. All exponents are p shifted down: (m
//! − 1) / 2 is p ≫ (n + 1). So are (p − 3) / 4, (p − 5) / 8 and (p − 9) / 16 where they are integers.

mod degree;
mod maps;
mod prime;
#[cfg(any(test, feature = "compare"))]
mod sze;

use ark_ff::Field;
use evariste_field::DevicePrimeField;
use num_bigint::BigUint;

use crate::{
    config::RootChoice,
    error::{Error, Result},
    method::Method,
    program::{Builder, LANES, Operand, Program, Slot, Step},
};

pub(crate) use degree::{Degree, roots_of_degree};
pub(crate) use maps::{Map, maps, maps2};
pub(crate) use prime::Prime;

/// Largest n for which the methods that keep all powers are offered.
pub(crate) const MAX_COLUMNS: u32 = 64;

/// A program that is being made, over a prime field.
struct Writer<'a, B> {
    prime: &'a Prime<B>,
    b: Builder<B>,
    /// Slots for the tables of exponentiations, and for what logarithms work with.
    scratch: Slot,
}

impl<'a, B: DevicePrimeField> Writer<'a, B> {
    fn new(prime: &'a Prime<B>, inputs: u32) -> Self {
        Self { prime, b: Builder::new(inputs), scratch: 0 }
    }

    /// Makes everything from the next slot on scratch. Called when all slots are taken.
    fn reserve(&mut self) {
        self.scratch = self.b.slot();
    }

    /// r = base^(p ≫ shift).
    fn power(&mut self, base: Slot, shift: u32) {
        let prime = self.prime;
        self.b.power(base, prime.shifted(shift), self.scratch);
    }

    /// The table of powers for logarithms to the base g: row c has γ^(−d · 2^(N − (c + 1) w)) for d below 2^w, where γ
    /// has order 2^N with N = digits · w and γ^(2^(N − n)) = g. Where γ lies outside the field the entries are 1: there
    /// d is a multiple of 2^(N − n).
    fn set_table(&mut self) {
        let prime = self.prime;
        let [digits, width] = prime.digits;
        let pad = digits * width - prime.two_adicity;
        let mut table = Vec::with_capacity((digits << width) as usize);
        for row in 0..digits {
            // 2 to the power of this is the exponent of g, which for the last row lacks `pad`.
            let exponent = (digits - 1 - row) * width;
            let step = if exponent >= pad { prime.power_of_generator(exponent - pad) } else { prime.generator };
            let (step, every) = (Prime::inverse(step), if exponent >= pad { 1 } else { 1 << (pad - exponent) });
            let mut power = B::ONE;
            for d in 0..1u32 << width {
                if d % every == 0 {
                    table.push(power);
                    power *= step;
                } else {
                    table.push(B::ONE);
                }
            }
        }
        self.b.set_table(table, prime.hash.clone(), width, pad);
    }

    /// Digits of the logarithm e of r to the base g, then halved: the flag says whether e is odd. Bernstein's and
    /// Sarkar's algorithm: windows of the logarithm from the lowest on, each after the known ones were divided out.
    ///
    /// Cost for k digits of w bits: (k − 1) w squarings and k (k − 1) / 2 multiplications.
    fn logarithm(&mut self) {
        let [digits, width] = self.prime.digits;
        let place = |i: u32| self.scratch + i;
        for i in (0..digits).rev() {
            self.b.push(Step::Store(place(i)));
            if i > 0 {
                self.b.push(Step::Square(width));
            }
        }
        self.b.push(Step::Digit(0));
        for i in 1..digits {
            self.b.push(Step::Load(Operand::Slot(self.scratch + i)));
            for digit in 0..i {
                self.b.push(Step::Multiply(0, Operand::Table { row: i - digit, digit }));
            }
            self.b.push(Step::Digit(i));
        }
        self.b.push(Step::Halve);
        self.b.at_least(self.scratch + digits);
    }

    /// r = r · g^(−⌊e / 2⌋), after [`Writer::logarithm`], by one multiplication for each digit.
    fn divide_by_half(&mut self) {
        let [digits, _] = self.prime.digits;
        for digit in 0..digits {
            self.b.push(Step::Multiply(0, Operand::Table { row: digits - 1 - digit, digit }));
        }
    }

    /// r = h with x · h² = 1, or g where x, in a slot, is no square; the flag says which. So x · h is the root, and 1 /
    /// (x · h) is h, or h / g. `keep` is a slot for x^((m − 1) / 2).
    fn inverse_root(&mut self, x: Slot, keep: Slot) {
        let n = self.prime.two_adicity;
        self.power(x, n + 1);
        let v = Operand::Slot(keep);
        self.b.extend([Step::Store(keep), Step::Square(1), Step::Multiply(0, Operand::Slot(x))]);
        self.logarithm();
        self.b.push(Step::Load(v));
        self.divide_by_half();
    }

    /// Chooses between r, in the slots `root`, and −r.
    fn choose(&mut self, root: &[Slot], choice: RootChoice) {
        let one = self.b.constant(integer::<B>(1));
        match choice {
            RootChoice::Any => return,
            RootChoice::Even => {
                for slot in root {
                    self.b.extend([Step::Load(Operand::Slot(*slot)), Step::Multiply(0, one), Step::Sign]);
                }
            }
            // y is above (p − 1) / 2 if 2y mod p is odd.
            RootChoice::Smaller | RootChoice::Larger => {
                for slot in root.iter().rev() {
                    let y = Operand::Slot(*slot);
                    self.b.extend([Step::Load(y), Step::Add(y), Step::Multiply(0, one), Step::Sign]);
                }
            }
        }
        for slot in root {
            self.b.extend([Step::Load(Operand::Slot(*slot)), Step::Negate, Step::Store(*slot)]);
        }
    }
}

/// p − 1.
fn order<B: DevicePrimeField>() -> BigUint {
    let p: BigUint = B::MODULUS.into();
    p - 1u8
}

/// The element whose device form is an integer that fits a limb.
fn integer<B: DevicePrimeField>(integer: u32) -> B {
    let mut limbs = vec![0; B::LIMBS];
    limbs[0] = integer;
    B::load(&limbs)
}

/// The method for a prime: those with a formula, else the table or Cipolla's, whichever costs less.
pub(crate) fn best<B: DevicePrimeField>(prime: &Prime<B>) -> Result<Method> {
    Ok(match prime.two_adicity {
        1 => Method::Power,
        2 => Method::Atkin,
        3 => Method::Muller,
        _ => {
            let products = |method| Ok::<_, Error>(roots(prime, method, RootChoice::Any)?.products());
            if products(Method::Cipolla)? < products(Method::Table)? { Method::Cipolla } else { Method::Table }
        }
    })
}

/// Roots in a prime field: from slot 0 to slot 0.
pub(crate) fn roots<B: DevicePrimeField>(prime: &Prime<B>, method: Method, choice: RootChoice) -> Result<Program<B>> {
    let mut w = Writer::new(prime, 1);
    let (a, root) = (0, w.b.slot());
    write_root(&mut w, method, a, root)?;
    w.b.extend([Step::Load(Operand::Slot(root)), Step::Store(a)]);
    w.choose(&[a], choice);
    Ok(w.b.finish())
}

/// The root of `a` into `root`, checked by the verdict, by a method. No slot is taken behind it.
fn write_root<B: DevicePrimeField>(w: &mut Writer<'_, B>, method: Method, a: Slot, root: Slot) -> Result<()> {
    let n = w.prime.two_adicity;
    let applies = match method {
        Method::Power => n == 1,
        Method::Atkin => n == 2,
        Method::Muller => n == 3,
        Method::Table => true,
        Method::Warp => n <= MAX_COLUMNS,
        #[cfg(any(test, feature = "compare"))]
        Method::Serial => true,
        #[cfg(any(test, feature = "compare"))]
        Method::PowerMatrix | Method::NeededColumns => n <= MAX_COLUMNS,
        Method::Cipolla => n >= 2,
        #[cfg(any(test, feature = "compare"))]
        Method::Sze => sze::applies(w.prime),
    };
    if !applies {
        return Err(Error::Method { method, two_adicity: n });
    }
    match method {
        Method::Power => power(w, a, root),
        Method::Atkin => atkin(w, a, root),
        Method::Muller => muller(w, a, root),
        Method::Table => {
            let keep = w.b.slot();
            w.reserve();
            w.set_table();
            w.inverse_root(a, keep);
            w.b.extend([Step::Multiply(0, Operand::Slot(a)), Step::Store(root)]);
        }
        #[cfg(any(test, feature = "compare"))]
        Method::Serial => serial(w, a, root),
        #[cfg(any(test, feature = "compare"))]
        Method::PowerMatrix => matrix(w, a, root, false),
        #[cfg(any(test, feature = "compare"))]
        Method::NeededColumns => matrix(w, a, root, true),
        Method::Warp => warp(w, a, root),
        Method::Cipolla => cipolla(w, a, root),
        #[cfg(any(test, feature = "compare"))]
        Method::Sze => sze::write(w, a, root),
    }
    w.b.extend([Step::Load(Operand::Slot(root)), Step::Square(1), Step::Check(Operand::Slot(a))]);
    Ok(())
}

/// a · a^((p − 3) / 4).
fn power<B: DevicePrimeField>(w: &mut Writer<'_, B>, a: Slot, root: Slot) {
    w.reserve();
    w.power(a, 2);
    w.b.extend([Step::Multiply(0, Operand::Slot(a)), Step::Store(root)]);
}

/// b = (2a)^((p − 5) / 8), i = 2 a b², a root of −1: then a b (i − 1).
fn atkin<B: DevicePrimeField>(w: &mut Writer<'_, B>, a: Slot, root: Slot) {
    let [double, b] = [w.b.slot(), w.b.slot()];
    w.reserve();
    let one = w.b.constant(B::ONE);
    let [a, by] = [a, b].map(Operand::Slot);
    w.b.extend([Step::Load(a), Step::Add(a), Step::Store(double)]);
    w.power(double, 3);
    w.b.extend([Step::Store(b), Step::Square(1), Step::Multiply(0, Operand::Slot(double)), Step::Subtract(one)]);
    w.b.extend([Step::Multiply(0, by), Step::Multiply(0, a), Step::Store(root)]);
}

/// b = (2a)^((p − 9) / 16), and i = 2 a b² with i² = ±1. Where it is 1, d² a takes the place of a, for a d that is no
/// square: b becomes b d^((p − 9) / 8), the new i is a root of −1, and the root is divided by d. Then a b (i − 1) as
/// Atkin's.
fn muller<B: DevicePrimeField>(w: &mut Writer<'_, B>, a: Slot, root: Slot) {
    let [double, b] = [w.b.slot(), w.b.slot()];
    w.reserve();
    let d = w.prime.non_residue;
    let one = w.b.constant(B::ONE);
    let shift = w.prime.pow(d, 3) * Prime::inverse(d);
    let [square, shift, scale] = [d.square(), shift, d].map(|factor| w.b.by_flag(B::ONE, factor));
    let [a, by, twice] = [a, b, double].map(Operand::Slot);
    w.b.extend([Step::Load(a), Step::Add(a), Step::Store(double)]);
    w.power(double, 4);
    w.b.extend([Step::Store(b), Step::Square(1), Step::Multiply(0, twice), Step::Square(1), Step::Test(one)]);
    w.b.extend([Step::Load(by), Step::Multiply(0, shift), Step::Store(b), Step::Square(1), Step::Multiply(0, twice)]);
    w.b.extend([Step::Multiply(0, square), Step::Subtract(one), Step::Multiply(0, by), Step::Multiply(0, a)]);
    w.b.extend([Step::Multiply(0, scale), Step::Store(root)]);
}

/// x = a^m and y = a^((m + 1) / 2), so that y² = a · x, into slots; r = x.
#[cfg(any(test, feature = "compare"))]
fn start<B: DevicePrimeField>(w: &mut Writer<'_, B>, a: Slot, x: Slot, y: Slot) {
    w.power(a, w.prime.two_adicity + 1);
    w.b.extend([Step::Store(x), Step::Multiply(0, Operand::Slot(a)), Step::Store(y)]);
    w.b.extend([Step::Multiply(0, Operand::Slot(x)), Step::Store(x)]);
}

/// Divides y by g^(2^(i − 1)), x by its square, where the flag is not set.
#[cfg(any(test, feature = "compare"))]
fn divide<B: DevicePrimeField>(w: &mut Writer<'_, B>, i: u32, slots: &[(Slot, u32)]) {
    for (slot, exponent) in slots {
        let factor = Prime::inverse(w.prime.power_of_generator(i - 1 + exponent));
        let factor = w.b.by_flag(factor, B::ONE);
        w.b.extend([Step::Load(Operand::Slot(*slot)), Step::Multiply(0, factor), Step::Store(*slot)]);
    }
}

/// One binary digit of the logarithm after the other, each by squarings from x on.
#[cfg(any(test, feature = "compare"))]
fn serial<B: DevicePrimeField>(w: &mut Writer<'_, B>, a: Slot, y: Slot) {
    let x = w.b.slot();
    w.reserve();
    start(w, a, x, y);
    let one = w.b.constant(B::ONE);
    for i in 1..w.prime.two_adicity {
        w.b.push(Step::Load(Operand::Slot(x)));
        if w.prime.two_adicity - 1 - i > 0 {
            w.b.push(Step::Square(w.prime.two_adicity - 1 - i));
        }
        w.b.push(Step::Test(one));
        divide(w, i, &[(y, 0), (x, 1)]);
    }
}

/// The powers x^(2^j) are columns, which are all brought up to date for each digit, by multiplications that do not wait
/// for one another, instead of squarings that do. `needed`: only those that later digits look at.
#[cfg(any(test, feature = "compare"))]
fn matrix<B: DevicePrimeField>(w: &mut Writer<'_, B>, a: Slot, y: Slot, needed: bool) {
    let n = w.prime.two_adicity;
    let columns = w.b.slots(n);
    w.reserve();
    start(w, a, columns, y);
    for j in 1..n {
        w.b.extend([Step::Square(1), Step::Store(columns + j)]);
    }
    let one = w.b.constant(B::ONE);
    for i in 1..n {
        w.b.extend([Step::Load(Operand::Slot(columns + n - 1 - i)), Step::Test(one)]);
        let count = if needed { n - 1 - i } else { n };
        let updated: Vec<(Slot, u32)> = (0..count).map(|j| (columns + j, 1 + j)).collect();
        divide(w, i, &[(y, 0)]);
        divide(w, i, &updated);
    }
}

/// The columns of [`matrix`] in the lanes of a warp, which make the root before the steps.
fn warp<B: DevicePrimeField>(w: &mut Writer<'_, B>, a: Slot, root: Slot) {
    debug_assert_eq!([a, root], [0, 1]);
    w.reserve();
    let (prime, n) = (w.prime, w.prime.two_adicity);
    // Digit i divides column k by g^(2^(i − 1 + k)). Lanes without a column take factors too, and throw the products
    // away.
    let looked_at = n + n.next_multiple_of(LANES);
    let first = Prime::inverse(prime.generator);
    let inverses = std::iter::successors(Some(first), |x| Some(x.square())).take(looked_at as usize);
    w.b.set_columns(n, prime.shifted(n + 1), inverses);
}

/// r = 0 if a is 0, else what is in the slot, which has a slot behind it that is free.
fn unless_zero<B: DevicePrimeField>(w: &mut Writer<'_, B>, a: Slot, slot: Slot) {
    let zero = w.b.constant(B::ZERO);
    w.b.extend([Step::Load(zero), Step::Store(slot + 1), Step::Load(Operand::Slot(a)), Step::Test(zero)]);
    w.b.push(Step::Load(Operand::SlotByFlag(slot)));
}

/// With t such that a t² − 4 is no square, V_((p − 1) / 4)(a t² − 2) / t, V the Lucas sequence with V_0 = 2, V_1 = a t²
/// − 2 and V_(i + 1) = V_1 V_i − V_(i − 1): Müller's form of Cipolla's and Lehmer's algorithm.
fn cipolla<B: DevicePrimeField>(w: &mut Writer<'_, B>, a: Slot, root: Slot) {
    let found = w.b.slots(2);
    let [first, current, next, other] = [w.b.slot(), w.b.slot(), w.b.slot(), w.b.slot()];
    w.reserve();
    let attempts = w.prime.attempts();
    let t: Vec<B> = (1..=u64::from(attempts)).map(B::from).collect();
    let squares = w.b.by_counter(t.iter().map(Field::square));
    let inverses = w.b.by_counter(t.iter().map(|t| Prime::inverse(*t)));
    let [one, two] = [B::ONE, B::from(2u8)].map(|x| w.b.constant(x));
    let begin = w.b.here();
    w.b.extend([Step::Load(squares), Step::Multiply(0, Operand::Slot(a)), Step::Subtract(two), Step::Store(first)]);
    w.b.extend([Step::Subtract(two), Step::Store(current)]);
    w.power(current, 1);
    w.b.push(Step::Test(one));
    let found_one = w.b.jump(false);
    w.b.end_search(begin, attempts);
    w.b.land(found_one);
    // From V_0 and V_1 on, by the digits of (p − 1) / 4.
    let p = Operand::Slot(first);
    w.b.extend([Step::Load(two), Step::Store(current), Step::Load(p), Step::Store(next)]);
    let digits = w.prime.shifted(2).to_vec();
    for digit in digits.iter().rev() {
        let (squared, mixed) = if *digit { (next, current) } else { (current, next) };
        w.b.extend([Step::Load(Operand::Slot(current)), Step::Multiply(0, Operand::Slot(next)), Step::Subtract(p)]);
        w.b.extend([Step::Store(other), Step::Load(Operand::Slot(squared)), Step::Square(1), Step::Subtract(two)]);
        w.b.extend([Step::Store(squared), Step::Load(Operand::Slot(other)), Step::Store(mixed)]);
    }
    w.b.extend([Step::Load(Operand::Slot(current)), Step::Multiply(0, inverses), Step::Store(found)]);
    unless_zero(w, a, found);
    w.b.push(Step::Store(root));
}

/// The quadratic residue symbol, as the verdict: of the norm where there are two coefficients over `non_residue`.
pub(crate) fn symbols<B: DevicePrimeField>(prime: &Prime<B>, non_residue: Option<B>) -> Program<B> {
    let mut w = Writer::new(prime, if non_residue.is_some() { 2 } else { 1 });
    let norm = w.b.slot();
    w.reserve();
    match non_residue {
        Some(beta) => {
            write_norm(&mut w, [0, 1], beta, norm);
            w.power(norm, 1);
        }
        None => w.power(0, 1),
    }
    w.b.push(Step::Symbol);
    w.b.finish()
}

/// c0² − β c1² into a slot.
fn write_norm<B: DevicePrimeField>(w: &mut Writer<'_, B>, c: [Slot; 2], beta: B, to: Slot) {
    let beta = w.b.constant(beta);
    w.b.extend([Step::Load(Operand::Slot(c[1])), Step::Multiply(1, beta), Step::Store(to)]);
    w.b.extend([Step::Load(Operand::Slot(c[0])), Step::Square(1), Step::Subtract(Operand::Slot(to)), Step::Store(to)]);
}

/// Roots of u / v where that is a square, else of z u / v: from slots 0 and 1 to slot 0. Section F.2.1.1 of RFC 9380,
/// with the logarithm in place of its loop. The verdict says which.
pub(crate) fn ratios<B: DevicePrimeField>(prime: &Prime<B>, z: B, choice: RootChoice) -> Program<B> {
    let mut w = Writer::new(prime, 2);
    let [u, v, root, power, base] = [0, 1, w.b.slot(), w.b.slot(), w.b.slot()];
    w.reserve();
    w.set_table();
    write_ratio(&mut w, [u, v], [root, power, base], z);
    let at = Operand::Slot;
    w.b.extend([Step::Load(at(root)), Step::Square(1), Step::Multiply(0, at(v)), Step::Check(at(u))]);
    w.b.extend([Step::Load(at(root)), Step::Store(0)]);
    w.choose(&[0], choice);
    w.b.finish()
}

/// As [`ratios`], into the first of three slots.
fn write_ratio<B: DevicePrimeField>(w: &mut Writer<'_, B>, [u, v]: [Slot; 2], [root, power, base]: [Slot; 3], z: B) {
    let n = w.prime.two_adicity;
    let at = Operand::Slot;
    // v^(2^n − 1), then u v^(2^(n + 1) − 1).
    w.b.power(v, &vec![true; n as usize], w.scratch);
    w.b.extend([Step::Store(power), Step::Square(1), Step::Multiply(0, at(v)), Step::Multiply(0, at(u))]);
    w.b.push(Step::Store(base));
    w.power(base, n + 1);
    // y / u, y, and y² v / u.
    w.b.extend([Step::Multiply(0, at(power)), Step::Store(base), Step::Multiply(0, at(u)), Step::Store(root)]);
    w.b.extend([Step::Multiply(0, at(base)), Step::Multiply(0, at(v))]);
    w.logarithm();
    w.b.push(Step::Load(at(root)));
    w.divide_by_half();
    // The square is now u / v times g where that is no square.
    let correction = w.prime.root(z * Prime::inverse(w.prime.generator));
    let correction = w.b.by_flag(B::ONE, correction);
    w.b.extend([Step::Multiply(0, correction), Step::Store(root)]);
}

/// Roots in a quadratic extension with i² = β: from slots 0 and 1 to these.
pub(crate) fn roots2<B: DevicePrimeField>(prime: &Prime<B>, beta: B, choice: RootChoice) -> Program<B> {
    let mut w = Writer::new(prime, 2);
    let root = w.b.slots(2);
    write_root2(&mut w, beta, [0, 1], [root, root + 1]);
    for i in 0..2 {
        w.b.extend([Step::Load(Operand::Slot(root + i)), Step::Store(i)]);
    }
    w.choose(&[0, 1], choice);
    w.b.finish()
}

/// The norm method ("complex method"): with s² = a0² − β a1² and δ = (a0 + s) / 2, one of δ and δ' = (a0 − s) / 2 is a
/// square, since δ δ' = β (a1 / 2)². With h of `inverse_root`, δ h and a1 h / 2 are the coefficients if it is δ; if it
/// is δ', both change places but for constants. Two exponentiations in the prime field in all. Checked by the verdict.
/// No slot is taken behind it.
///
/// Scott, "Tricks of the trade for faster pairing-friendly extension field arithmetic", and Algorithm 9 of Adj and
/// Rodríguez-Henríquez, "Square root computation over even extension fields".
fn write_root2<B: DevicePrimeField>(w: &mut Writer<'_, B>, beta: B, a: [Slot; 2], root: [Slot; 2]) {
    let [norm, keep] = [w.b.slot(), w.b.slot()];
    // 0 and a0, and the candidates for both coefficients and the first again, to choose from.
    let (zero_or_a0, candidates) = (w.b.slots(2), w.b.slots(3));
    w.reserve();
    w.set_table();
    let at = Operand::Slot;
    let [zero, half] = [B::ZERO, Prime::inverse(B::from(2u8))].map(|x| w.b.constant(x));
    write_norm(w, a, beta, norm);
    w.inverse_root(norm, keep);
    w.b.extend([Step::Multiply(0, at(norm)), Step::Add(at(a[0])), Step::Multiply(0, half), Step::Store(norm)]);
    // Where s = −a0, which is where a1 = 0, the other root of the norm does.
    w.b.extend([Step::Load(zero), Step::Store(zero_or_a0), Step::Load(at(a[0])), Step::Store(zero_or_a0 + 1)]);
    w.b.extend([Step::Load(at(norm)), Step::Test(zero), Step::Add(Operand::SlotByFlag(zero_or_a0)), Step::Store(norm)]);
    w.inverse_root(norm, keep);
    w.b.extend([Step::Store(keep), Step::Multiply(0, at(norm))]);
    w.b.extend([Step::Store(candidates), Step::Store(candidates + 2), Step::Load(at(keep))]);
    w.b.extend([Step::Multiply(0, at(a[1])), Step::Multiply(0, half), Step::Store(candidates + 1)]);
    // (δ h)² = δ g, and c² = β g: then a1 c / (2 δ h) = a1 h / 2 · c / g and δ h / c.
    let generator = w.prime.generator;
    let c = w.prime.root(beta * generator);
    let first = w.b.by_flag(B::ONE, c * Prime::inverse(generator));
    let second = w.b.by_flag(B::ONE, Prime::inverse(c));
    for (i, factor) in [first, second].into_iter().enumerate() {
        w.b.push(Step::Load(Operand::SlotByFlag(candidates + i as u32)));
        w.b.extend([Step::Multiply(0, factor), Step::Store(root[i])]);
    }
    // (y0 + y1 i)² = y0² + β y1² + 2 y0 y1 i.
    let factor = w.b.constant(beta);
    w.b.extend([Step::Load(at(root[1])), Step::Multiply(1, factor), Step::Store(norm), Step::Load(at(root[0]))]);
    w.b.extend([Step::Square(1), Step::Add(at(norm)), Step::Check(at(a[0]))]);
    w.b.extend([Step::Load(at(root[0])), Step::Multiply(0, at(root[1])), Step::Store(norm), Step::Add(at(norm))]);
    w.b.push(Step::Check(at(a[1])));
}

/// Points of y² = x³ + a x + b: from x, as integers in the first slots, to x and y. The flag that is wanted says which
/// y.
pub(crate) fn points<B: DevicePrimeField>(prime: &Prime<B>, beta: Option<B>, a: &[B], b: &[B]) -> Result<Program<B>> {
    let degree = a.len() as Slot;
    let mut w = Writer::new(prime, 2 * degree);
    let square = w.b.slots(degree);
    let at = Operand::Slot;
    let radix = w.b.constant(B::from(2u8).pow([32 * B::LIMBS as u64]));
    for k in 0..degree {
        w.b.extend([Step::Load(at(k)), Step::Multiply(0, radix), Step::Store(k)]);
    }
    let add = |w: &mut Writer<'_, B>, x: B| {
        if !x.is_zero() {
            let x = w.b.constant(x);
            w.b.push(Step::Add(x));
        }
    };
    match beta {
        None => {
            w.b.extend([Step::Load(at(0)), Step::Square(1)]);
            add(&mut w, a[0]);
            w.b.push(Step::Multiply(0, at(0)));
            add(&mut w, b[0]);
            w.b.push(Step::Store(square));
            write_root(&mut w, best(prime)?, square, 1)?;
            w.choose(&[1], RootChoice::Larger);
        }
        Some(beta) => {
            // Both coefficients of x² + a, then of its product by x; y is not there yet.
            let factor = w.b.constant(beta);
            let [first, second, product] = [2, 3, square];
            w.b.extend([Step::Load(at(1)), Step::Multiply(1, factor), Step::Store(first), Step::Load(at(0))]);
            w.b.extend([Step::Square(1), Step::Add(at(first))]);
            add(&mut w, a[0]);
            w.b.extend([Step::Store(first), Step::Load(at(0)), Step::Multiply(0, at(1)), Step::Store(second)]);
            w.b.push(Step::Add(at(second)));
            add(&mut w, a[1]);
            w.b.extend([
                Step::Store(second),
                Step::Multiply(0, at(1)),
                Step::Multiply(0, factor),
                Step::Store(product),
            ]);
            w.b.extend([Step::Load(at(first)), Step::Multiply(0, at(0)), Step::Add(at(product))]);
            add(&mut w, b[0]);
            w.b.extend([Step::Store(square), Step::Load(at(first)), Step::Multiply(0, at(1)), Step::Store(square + 1)]);
            w.b.extend([Step::Load(at(second)), Step::Multiply(0, at(0)), Step::Add(at(square + 1))]);
            add(&mut w, b[1]);
            w.b.push(Step::Store(square + 1));
            write_root2(&mut w, beta, [square, square + 1], [2, 3]);
            w.choose(&[2, 3], RootChoice::Larger);
        }
    }
    Ok(w.b.finish())
}
