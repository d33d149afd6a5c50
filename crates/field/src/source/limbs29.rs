//! Multiplication in WGSL with 64-bit integers, for fields of many limbs. WGSL has no carries, so sums of products of
//! whole limbs take as long as the products. Up to 64 products of parts of 29 bits add up without a carry.
//!
//! This is Montgomery's multiplication by columns (P. L. Montgomery, "Modular multiplication without trial division",
//! 1985), with a row for each part of the first factor and the radix of the parts. The power of this radix exceeds
//! [`super::wgsl`]'s R. To get the same product, the second factor is multiplied by their ratio, a shift that costs
//! nothing.
//!
//! Where elements stay in parts, sums have no carries either, and are reduced when they would grow too long.

use std::fmt::Write as _;

use super::list;
use crate::field::constants::Constants;

/// Bits of a part.
const BITS: usize = 29;
const MASK: u32 = (1 << BITS) - 1;

/// Limbs from which on this is faster: below, products are too many more. Measured on an H200 for 8 limbs, chains of
/// products: 41 G a second, 30 by whole limbs.
const LEAST_LIMBS: usize = 6;

/// Limbs up to which the columns, of two products for each part, have no carries.
const MOST_LIMBS: usize = 28;

/// The number of parts of a field of `limbs` limbs, if parts pay there.
pub(super) fn count(limbs: usize) -> Option<usize> {
    (LEAST_LIMBS..=MOST_LIMBS).contains(&limbs).then(|| (32 * limbs).div_ceil(BITS))
}

/// Part `i` of limbs that are multiplied by 2^`shift`, a shift by less than a part, as text.
fn part(i: usize, shift: usize, limbs: usize, limb: &dyn Fn(usize) -> String) -> String {
    let Some(start) = (BITS * i).checked_sub(shift) else {
        return format!("({} << {shift}u) & {MASK}u", limb(0));
    };
    let (at, right) = (start / 32, start % 32);
    let low = if right == 0 { limb(at) } else { format!("({} >> {right}u)", limb(at)) };
    match right + BITS {
        32 => low,
        ..32 => format!("{low} & {MASK}u"),
        _ if at + 1 < limbs => format!("({low} | ({} << {}u)) & {MASK}u", limb(at + 1), 32 - right),
        // The last limb ends within.
        _ => low,
    }
}

/// Limb `i` of parts, as text; bits beyond the last limb are lost.
fn limb(i: usize, parts: usize, part: &dyn Fn(usize) -> String) -> String {
    let pieces = (0..parts).filter_map(|k| match (BITS * k).checked_sub(32 * i) {
        Some(left) if left < 32 => Some(format!("({} << {left}u)", part(k))),
        None if 32 * i - BITS * k < BITS => Some(format!("({} >> {}u)", part(k), 32 * i - BITS * k)),
        _ => None,
    });
    pieces.collect::<Vec<_>>().join(" | ")
}

/// Part `i` of an integer.
fn part_of(value: &[u32], i: usize) -> u32 {
    let bit = |at: usize| value.get(at / 32).is_some_and(|limb| limb >> (at % 32) & 1 == 1);
    (0..BITS).filter(|k| bit(BITS * i + k)).map(|k| 1 << k).sum()
}

/// `f_mul` and its functions, for a field of `parts` parts.
pub(super) fn mul(constants: &Constants, parts: usize) -> String {
    let limbs = constants.modulus.len();
    let shift = BITS * parts - 32 * limbs;
    let split = |name: &str, shift| {
        let parts = list(parts, |i| part(i, shift, limbs, &|k| format!("a.l{k}")));
        format!("fn {name}(a: F) -> FParts {{ return FParts({parts}); }}\n")
    };
    let mut text = format!("struct FParts {{ {} }}\n", list(parts, |i| format!("p{i}: u32")));
    text += &split("f_parts", 0);
    text += &split("f_factor", shift);
    let joined = list(limbs, |i| limb(i, parts, &|k| format!("a.p{k}")));
    let _ = writeln!(text, "fn f_joined(a: FParts) -> F {{ return F({joined}); }}");
    text += &product(constants, parts);
    let carry = match constants.full {
        true => format!("p.p{} >> {}u", parts - 1, BITS - shift),
        false => "0u".into(),
    };
    let _ = write!(
        text,
        "fn f_mul(a: F, b: F) -> F {{\n  let p = f_parts_mul(f_parts(a), f_factor(b));\n\
         \x20 return f_reduce(f_joined(p), {carry});\n}}\n"
    );
    text
}

/// `f_parts_mul(a, b)`: a · b · 2^(−29 parts), up to a multiple of p, below that product plus p. The parts of the
/// second factor are below 2^29. So are the parts of the product, except the last. The parts of the first factor may be
/// up to 5 · 2^29 if there are at most [`MOST_UNREDUCED`].
fn product(constants: &Constants, parts: usize) -> String {
    let p = |i| part_of(&constants.modulus, i);
    let last = parts - 1;
    let mut text = String::from("fn f_parts_mul(a: FParts, b: FParts) -> FParts {\n");
    for i in 0..parts {
        let _ = write!(text, "  var a{i} = a.p{i};");
    }
    text += "\n";
    for i in 0..last {
        let _ = write!(text, "  var c{i} = 0lu;");
    }
    let reduced = |i: usize| match p(i) {
        0 => String::new(),
        1 => " + m".into(),
        part => format!(" + m * {part}lu"),
    };
    let _ = write!(
        text,
        "\n  for (var i = 0u; i < {parts}u; i++) {{\n    let x = u64(a0);\n    let s = c0 + x * u64(b.p0);\n\
         \x20   let m = u64((u32(s) * {}u) & {MASK}u);\n    let carry = (s{}) >> {BITS}u;\n",
        constants.n0 & MASK,
        reduced(0),
    );
    for i in 1..parts {
        let column = if i < last { format!("c{i} + ") } else { String::new() };
        let carry = if i == 1 { " + carry" } else { "" };
        let _ = writeln!(text, "    c{} = {column}x * u64(b.p{i}){}{carry};", i - 1, reduced(i));
    }
    let rotate = (1..parts).map(|i| format!("a{} = a{i};", i - 1)).collect::<Vec<_>>().join(" ");
    let _ = writeln!(text, "    {rotate}\n  }}");
    for i in 0..last {
        let sum = if i == 0 { "c0".into() } else { format!("c{i} + (s{} >> {BITS}u)", i - 1) };
        let _ = writeln!(text, "  let s{i} = {sum};");
    }
    let part = |i| match i == last {
        true => format!("u32(s{} >> {BITS}u)", last - 1),
        false => format!("u32(s{i}) & {MASK}u"),
    };
    let _ = writeln!(text, "  return FParts({});\n}}", list(parts, part));
    text
}

/// Times p below which elements in limbs are, between what is done with them in parts.
const STORED: f64 = 2.2;

/// Parts up to which the columns hold products of differences, whose parts are up to 5 · 2^29.
const MOST_UNREDUCED: usize = 10;

/// Bits by which a product's bound falls, at least.
const LEAST_SHIFT: usize = 5;

/// Butterflies in parts, for fields that they serve.
pub(super) struct Lazy<'a> {
    constants: &'a Constants,
    parts: usize,
    /// p over the weight of the last part, and 2^(32 limbs) / p.
    last: f64,
    room: f64,
}

impl<'a> Lazy<'a> {
    pub(super) fn new(constants: &'a Constants) -> Option<Self> {
        let limbs = constants.modulus.len();
        let parts = count(limbs)?;
        let p = constants.modulus.iter().rev().fold(0.0, |p, limb| p * 32f64.exp2() + f64::from(*limb));
        let last = p / ((BITS * (parts - 1)) as f64).exp2();
        let room = ((32 * limbs) as f64).exp2() / p;
        let lazy = Self { constants, parts, last, room };
        (parts <= MOST_UNREDUCED && lazy.shift() >= LEAST_SHIFT && lazy.is_bounded()).then_some(lazy)
    }

    /// A factor in parts is multiplied by 2 to the power of this, modulo p, for a product that is R's.
    pub(super) fn shift(&self) -> usize {
        BITS * self.parts - 32 * self.constants.modulus.len()
    }

    /// The multiple of p that is added to a difference; it is below `below` times p. With it no part is negative, if
    /// the parts of the subtrahend are below `units` · 2^29.
    fn multiple(&self, below: f64, units: u32) -> u32 {
        let serves =
            |times: &u32| (f64::from(*times) * self.last).floor() - f64::from(units) > (below * self.last).ceil();
        (below.ceil() as u32..).find(serves).unwrap_or(u32::MAX)
    }

    /// Of a difference of two elements, and of two sums of two.
    fn multiples(&self) -> [u32; 2] {
        [self.multiple(STORED, 1), self.multiple(2.0 * STORED, 2)]
    }

    /// Whether everything that a butterfly of four elements computes is as long as it may be, in the worst case.
    fn is_bounded(&self) -> bool {
        let [one, two] = self.multiples().map(f64::from);
        // Of a factor below p.
        let product = |x: f64| 1.0 + x / self.room / (self.shift() as f64).exp2();
        let difference = product(STORED + one);
        let products = [2.0 * difference, product(2.0 * STORED + two), product(difference + one)];
        let unreduced = [4.0 * STORED, 2.0 * STORED + two, STORED + one + difference, STORED + 2.0 * one];
        self.room >= STORED
            && products.iter().all(|x| *x <= STORED)
            && unreduced.iter().all(|x| *x <= 16.0 && x * self.last < 32f64.exp2() && product(*x) <= STORED)
    }

    /// The multiple of p that is added to a difference: each part but the last borrows `units` · 2^29 from the next.
    fn padded(&self, times: u32, units: u32) -> Vec<u32> {
        let mut multiple = vec![0; self.constants.modulus.len() + 1];
        let mut carry = 0;
        for (limb, p) in multiple.iter_mut().zip(self.constants.modulus.iter().chain([&0])) {
            let sum = u64::from(*p) * u64::from(times) + carry;
            (*limb, carry) = (sum as u32, sum >> 32);
        }
        let last = self.parts - 1;
        let pad = |i: usize| match i {
            0 => part_of(&multiple, 0) + (units << BITS),
            i if i < last => part_of(&multiple, i) + (units << BITS) - units,
            _ => part_of(&multiple, last) + (part_of(&multiple, last + 1) << BITS) - units,
        };
        (0..self.parts).map(pad).collect()
    }

    /// `f_parts_add`, `f_parts_sub` of values below 2.2 p, and `f_parts_sub_sums` of sums of two such values. After
    /// `f_parts_reduce` a sum or difference of sums is below 2.1 p. `f_parts_carried` only shortens the parts of a sum.
    pub(super) fn render(&self) -> String {
        let all = |part: &dyn Fn(usize) -> String| list(self.parts, part);
        let mut text = format!(
            "fn f_parts_add(a: FParts, b: FParts) -> FParts {{ return FParts({}); }}\n",
            all(&|i| format!("a.p{i} + b.p{i}")),
        );
        let [one, two] = self.multiples();
        for (name, times, units) in [("f_parts_sub", one, 1), ("f_parts_sub_sums", two, 2)] {
            let padded = self.padded(times, units);
            let parts = all(&|i| format!("a.p{i} + ({}u - b.p{i})", padded[i]));
            let _ = writeln!(text, "fn {name}(a: FParts, b: FParts) -> FParts {{ return FParts({parts}); }}");
        }
        text += "fn f_parts_carried(a: FParts) -> FParts {\n  let s0 = a.p0;\n";
        for i in 1..self.parts {
            let _ = writeln!(text, "  let s{i} = a.p{i} + (s{} >> {BITS}u);", i - 1);
        }
        let short = |i| if i + 1 == self.parts { format!("s{i}") } else { format!("s{i} & {MASK}u") };
        let _ = writeln!(text, "  return FParts({});\n}}", all(&short));
        // The quotient from the last two parts, never too large and at most one too small.
        let (last, before) = (self.parts - 1, self.parts - 2);
        let unit = (BITS as f64).exp2();
        let inverse = (1.0 - (-16f64).exp2()) / (self.last * unit);
        let _ = writeln!(
            text,
            "fn f_parts_reduce(a: FParts) -> FParts {{\n\
             \x20 let q = u64(u32((f32(a.p{last}) * {unit:.1}f + f32(a.p{before})) * {inverse:e}f));",
        );
        // Minus q p, as plus q times the complement of p; the last part drops the overflow.
        for i in 0..self.parts {
            let part = part_of(&self.constants.modulus, i);
            let complement = if i == 0 { (1 << BITS) - part } else { MASK - part };
            let carry = if i == 0 { String::new() } else { format!(" + (s{} >> {BITS}u)", i - 1) };
            let _ = writeln!(text, "  let s{i} = u64(a.p{i}) + q * {complement}lu{carry};");
        }
        let part = |i| match i == last {
            true => format!("u32(s{last}) - (u32(q) << {BITS}u)"),
            false => format!("u32(s{i}) & {MASK}u"),
        };
        let _ = writeln!(text, "  return FParts({});\n}}", all(&part));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts as the shader makes them, on numbers.
    fn parts_of(value: &[u32], shift: usize, parts: usize) -> Vec<u32> {
        (0..parts).map(|i| evaluate(&part(i, shift, value.len(), &|k| format!("{}", value[k])))).collect()
    }

    /// What an expression of numbers, shifts, | and & is.
    fn evaluate(text: &str) -> u32 {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (value, rest) = operand(&text);
        assert_eq!(rest, "", "{text}");
        value
    }

    fn operand(text: &str) -> (u32, &str) {
        let (value, rest) = match text.strip_prefix('(') {
            Some(inner) => {
                let (value, rest) = operand(inner);
                (value, rest.strip_prefix(')').unwrap())
            }
            None => {
                let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
                (text[..end].parse().unwrap(), text[end..].strip_prefix('u').unwrap_or(&text[end..]))
            }
        };
        after(value, rest)
    }

    fn after(value: u32, rest: &str) -> (u32, &str) {
        type Operator = fn(u32, u32) -> u32;
        let operators: [(&str, Operator); 4] =
            [("<<", |a, b| a << b), (">>", |a, b| a >> b), ("|", |a, b| a | b), ("&", |a, b| a & b)];
        for (sign, apply) in operators {
            if let Some(rest) = rest.strip_prefix(sign) {
                let (other, rest) = operand(rest);
                return (apply(value, other), rest);
            }
        }
        (value, rest)
    }

    #[test]
    fn parts_have_all_bits_and_join_to_limbs() {
        for limbs in LEAST_LIMBS..=MOST_LIMBS {
            let value: Vec<u32> = (1..=limbs as u32).map(|i| i.wrapping_mul(0x9e37_79b9) | 1 << 31 | 1).collect();
            let parts = count(limbs).unwrap();
            let shift = BITS * parts - 32 * limbs;
            assert!(shift < BITS && 2 * parts < 64, "{limbs} limbs");
            let plain: Vec<u32> = (0..parts).map(|i| part_of(&value, i)).collect();
            assert_eq!(parts_of(&value, 0, parts), plain, "{limbs} limbs");
            let mut shifted = vec![0; limbs + 1];
            for (i, limb) in value.iter().enumerate() {
                let wide = u64::from(*limb) << shift;
                shifted[i] |= wide as u32;
                shifted[i + 1] |= (wide >> 32) as u32;
            }
            let expected: Vec<u32> = (0..parts).map(|i| part_of(&shifted, i)).collect();
            assert_eq!(parts_of(&value, shift, parts), expected, "{limbs} limbs, shifted");
            let joined: Vec<u32> =
                (0..limbs).map(|i| evaluate(&limb(i, parts, &|k| format!("{}", plain[k])))).collect();
            assert_eq!(joined, value, "{limbs} limbs");
        }
        assert_eq!((count(LEAST_LIMBS - 1), count(MOST_LIMBS + 1)), (None, None));
    }

    /// Σ 2^(29 i) times part i, as limbs.
    fn value(parts: &[u32]) -> Vec<u32> {
        let mut limbs = vec![0u32; parts.len() + 1];
        for (i, part) in parts.iter().enumerate() {
            let (at, left) = (BITS * i / 32, BITS * i % 32);
            let mut carry = u64::from(*part) << left;
            for limb in &mut limbs[at..] {
                carry += u64::from(*limb);
                *limb = carry as u32;
                carry >>= 32;
            }
        }
        limbs
    }

    #[test]
    fn differences_stay_positive_and_below_their_bounds() {
        let mut full = Constants::of::<ark_bls12_381::Fr>();
        full.modulus[7] |= 1 << 31;
        for (constants, lazy) in [
            (Constants::of::<ark_bls12_381::Fr>(), true),
            (Constants::of::<ark_bn254::Fr>(), true),
            (Constants::of::<ark_bn254::Fq>(), true),
            // Too many parts, too few, and no room above p.
            (Constants::of::<ark_bls12_381::Fq>(), false),
            (Constants::of::<crate::small::Goldilocks>(), false),
            (full, false),
        ] {
            let Some(found) = Lazy::new(&constants) else {
                assert!(!lazy, "{:x?}", constants.modulus);
                continue;
            };
            assert!(lazy, "{:x?}", constants.modulus);
            for (times, units) in found.multiples().into_iter().zip([1, 2]) {
                let padded = found.padded(times, units);
                let mut expected = vec![0; found.parts + 1];
                let mut carry = 0;
                for (limb, p) in expected.iter_mut().zip(&constants.modulus) {
                    carry += u64::from(*p) * u64::from(times);
                    *limb = carry as u32;
                    carry >>= 32;
                }
                expected[constants.modulus.len()] = carry as u32;
                assert_eq!(value(&padded), expected, "{times} p with {units} units");
                let (last, others) = padded.split_last().unwrap();
                assert!(others.iter().all(|part| *part >= units * MASK && *part <= (units + 1) << BITS));
                let most = (f64::from(units) * STORED * found.last).ceil();
                assert!(f64::from(*last) >= most && f64::from(*last) < 16.0 * found.last);
            }
            // The columns of the longest first factor.
            let longest = u128::from(5u32 << (BITS - 1)) * 2;
            let columns = found.parts as u128 * (longest + u128::from(MASK)) * u128::from(MASK) + (1 << 36);
            assert!(columns < 1 << 64);
        }
    }
}
