//! The kernel's body for the CPU.

use evariste_backend::author::CpuArg;
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    kernel::{Params, choice, mask},
    steps::{ACCUMULATOR, BITS, HEAD, SLOTS, Step, TABLE, WINDOW, section},
};

/// The launch on the CPU, by words of 64 bits. An element's slots lie together.
pub(super) fn run(
    limbs: usize,
    params: &Params,
    [program, constants, indices, values, state, out, mask]: &mut [CpuArg<'_>; 7],
) {
    let (len, words) = (params.len as usize, limbs / 2);
    let steps: Vec<Step> = program.read::<u32>()[params.first as usize..params.end as usize]
        .iter()
        .map(|word| Step::decode(*word))
        .collect();
    let (constants, indices, values) = (constants.read::<u64>(), indices.read::<u32>(), values.read::<u32>());
    let state = &mut state.write::<u64>()[..len * SLOTS as usize * words];
    let mask = &mut mask.write::<u32>()[..len];
    let out = out.write::<u32>()[..len * limbs].par_chunks_exact_mut(limbs);
    let elements = state.par_chunks_exact_mut(SLOTS as usize * words).zip(out).zip(mask).enumerate();
    elements.for_each_init(
        // It never grows, which would leave a copy behind.
        || Zeroizing::new(vec![0; 2 * words]),
        |product, (i, ((slots, out), mask))| {
            let prime = if params.indexed != 0 { indices[i] } else { 0 };
            let known = prime < params.primes;
            let stride = params.stride as usize / 2;
            let constants = &constants[if known { prime as usize } else { 0 } * stride..][..stride];
            let mut element = Element { words, constants, slots, product };
            let value = &values[i * limbs..][..limbs];
            for step in &steps {
                element.step(*step, known, value, params.choice, out, mask);
            }
        },
    );
}

/// An element on the CPU.
struct Element<'a> {
    words: usize,
    /// Of its modulus.
    constants: &'a [u64],
    slots: &'a mut [u64],
    /// A product before it is reduced.
    product: &'a mut [u64],
}

impl Element<'_> {
    fn section(&self, section: u32) -> &[u64] {
        &self.constants[HEAD as usize / 2 + section as usize * self.words..][..self.words]
    }

    fn slot(&self, slot: u32) -> &[u64] {
        &self.slots[slot as usize * self.words..][..self.words]
    }

    fn slot_mut(&mut self, slot: u32) -> &mut [u64] {
        &mut self.slots[slot as usize * self.words..][..self.words]
    }

    fn accumulator(&self) -> &[u64] {
        self.slot(ACCUMULATOR)
    }

    fn step(&mut self, step: Step, known: bool, value: &[u32], wanted: u32, out: &mut [u32], mask: &mut u32) {
        let words = self.words;
        match step {
            Step::Square => self.multiply_slot(ACCUMULATOR),
            Step::Slot(slot) => self.multiply_slot(slot),
            Step::Digit { digit, section } => {
                let low = digit * WINDOW;
                let digit =
                    self.section(section)[(low / u64::BITS) as usize] >> (low % u64::BITS) & ((1 << WINDOW) - 1);
                self.multiply_slot(TABLE + digit as u32);
            }
            Step::Constant(section) => self.multiply_section(section),
            Step::Correct { bit, section } => {
                let set = self.slot(BITS)[(bit / u64::BITS) as usize] >> (bit % u64::BITS) & 1 == 1;
                self.multiply_section(if set { section } else { section::ONE });
            }
            Step::Start => {
                let limbs = value.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32);
                self.slot_mut(ACCUMULATOR).iter_mut().zip(limbs).for_each(|(word, limb)| *word = limb);
                let below = is_below(self.accumulator(), self.section(section::MODULUS));
                if !known || !below {
                    self.slot_mut(ACCUMULATOR).fill(0);
                }
                *mask = match (known, below) {
                    (false, _) => mask::NO_PRIME,
                    (true, false) => mask::NOT_REDUCED,
                    (true, true) => mask::ROOT,
                };
            }
            Step::Store(slot) => self.slots.copy_within(..words, slot as usize * words),
            Step::Load(slot) => self.slots.copy_within(slot as usize * words..(slot as usize + 1) * words, 0),
            Step::LoadConstant(section) => {
                let from = HEAD as usize / 2 + section as usize * words;
                self.slots[..words].copy_from_slice(&self.constants[from..][..words]);
            }
            Step::Bit(bit) => {
                let differs = u64::from(self.accumulator() != self.section(section::ONE));
                let word = &mut self.slot_mut(BITS)[(bit / u64::BITS) as usize];
                let shift = bit % u64::BITS;
                *word = if shift == 0 { 0 } else { *word } | differs << shift;
            }
            Step::Check(slot) => {
                if *mask == mask::ROOT && self.accumulator() != self.slot(slot) {
                    *mask = mask::NO_ROOT;
                }
            }
            Step::Finish => {
                let root = self.accumulator();
                let mut borrow = false;
                let other = self.section(section::MODULUS).iter().zip(root).map(|(p, root)| {
                    let (part, first) = p.overflowing_sub(*root);
                    let (part, second) = part.overflowing_sub(borrow.into());
                    borrow = first | second;
                    part
                });
                let other: Zeroizing<Vec<u64>> = Zeroizing::new(other.collect());
                let swap = match wanted {
                    choice::EVEN => root[0] & 1 == 1,
                    choice::SMALLER => is_below(&other, root),
                    // The opposite of 0 is 0.
                    choice::LARGER => is_below(root, &other) && root.iter().any(|word| *word != 0),
                    _ => false,
                };
                let root = if swap { &other[..] } else { root };
                let valid = *mask == mask::ROOT;
                out.chunks_exact_mut(2).zip(root).for_each(|(out, word)| {
                    out.copy_from_slice(&if valid { [*word as u32, (*word >> 32) as u32] } else { [0; 2] });
                });
            }
        }
    }

    fn multiply_slot(&mut self, slot: u32) {
        let words = self.words;
        match slot {
            ACCUMULATOR => square(self.product, &self.slots[..words]),
            _ => multiply(self.product, &self.slots[..words], &self.slots[slot as usize * words..][..words]),
        }
        self.reduce();
    }

    fn multiply_section(&mut self, section: u32) {
        let factor = &self.constants[HEAD as usize / 2 + section as usize * self.words..][..self.words];
        multiply(self.product, &self.slots[..self.words], factor);
        self.reduce();
    }

    /// The accumulator becomes the product / R mod p.
    fn reduce(&mut self) {
        let modulus = &self.constants[HEAD as usize / 2..][..self.words];
        reduce(&mut self.slots[..self.words], self.product, modulus, self.constants[0]);
    }
}

fn is_below(a: &[u64], b: &[u64]) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

/// The words of a b.
fn multiply(product: &mut [u64], a: &[u64], b: &[u64]) {
    let words = a.len();
    product.fill(0);
    for (i, x) in b.iter().enumerate() {
        product[i + words] = add_multiple(&mut product[i..i + words], a, *x);
    }
}

/// The words of a²: products of different words once, twice their sum, and the squares of words.
fn square(product: &mut [u64], a: &[u64]) {
    let words = a.len();
    product.fill(0);
    for (i, x) in a.iter().enumerate() {
        product[i + words] = add_multiple(&mut product[2 * i + 1..i + words], &a[i + 1..], *x);
    }
    let (mut bit, mut carry) = (0, 0);
    for (pair, x) in product.as_chunks_mut::<2>().0.iter_mut().zip(a) {
        let (low, high) = wide(*x, *x, pair[0] << 1 | bit, carry);
        let twice = u128::from(pair[1] << 1 | pair[0] >> 63) + u128::from(high);
        (bit, carry) = (pair[1] >> 63, (twice >> 64) as u64);
        *pair = [low, twice as u64];
    }
}

/// out = product / R mod p, for a product below R p, which is used up.
fn reduce(out: &mut [u64], product: &mut [u64], p: &[u64], n0: u64) {
    let words = p.len();
    let mut top = 0;
    for i in 0..words {
        let m = product[i].wrapping_mul(n0);
        let carry = add_multiple(&mut product[i..i + words], p, m);
        let high = u128::from(product[i + words]) + u128::from(carry) + u128::from(top);
        (product[i + words], top) = (high as u64, (high >> 64) as u64);
    }
    out.copy_from_slice(&product[words..]);
    if top == 1 || !is_below(out, p) {
        let mut borrow = false;
        for (out, p) in out.iter_mut().zip(p) {
            let (part, first) = out.overflowing_sub(*p);
            let (part, second) = part.overflowing_sub(borrow.into());
            (*out, borrow) = (part, first | second);
        }
    }
}

/// sum += a x, and the carry; by four words, which compilers do better with than with single ones.
fn add_multiple(sum: &mut [u64], a: &[u64], x: u64) -> u64 {
    let mut carry = 0;
    let mut add = |sum: &mut u64, a: u64| (*sum, carry) = wide(a, x, *sum, carry);
    let (fours, rest) = sum.as_chunks_mut::<4>();
    let (a_fours, a_rest) = a.as_chunks::<4>();
    for (sum, a) in fours.iter_mut().zip(a_fours) {
        add(&mut sum[0], a[0]);
        add(&mut sum[1], a[1]);
        add(&mut sum[2], a[2]);
        add(&mut sum[3], a[3]);
    }
    rest.iter_mut().zip(a_rest).for_each(|(sum, a)| add(sum, *a));
    carry
}

/// The words of a b + c + d.
fn wide(a: u64, b: u64, c: u64, d: u64) -> (u64, u64) {
    let sum = u128::from(a) * u128::from(b) + u128::from(c) + u128::from(d);
    (sum as u64, (sum >> 64) as u64)
}
