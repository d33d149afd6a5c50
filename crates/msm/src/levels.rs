//! Sums of affine points on the host's cores, with inversions that many additions share.

use std::mem;

use ark_ff::{AdditiveGroup, Field, Zero};
use evariste_curve::{
    DeviceCurve,
    point::{self, AffineOf},
};
use evariste_field::DeviceField;

use crate::shared::{affine_words, load_affine};

/// Points that are gone through level by level at once: their sums stay in cache.
const BLOCK: usize = 1 << 14;

/// Additions that share an inversion: as many as make its share small.
const RUN: usize = 1 << 9;

/// Sums of the points of each bucket, on one core: neighbours of one bucket are added in pairs, then their sums, and so on, 5M +
/// 1S each. All points may be added: infinity, equal and opposite ones. An object keeps the memory that it works in.
#[derive(Debug)]
pub(crate) struct Levels<C: DeviceCurve> {
    level: Level,
    next: Level,
    pairs: Vec<[u32; 2]>,
    /// Where runs have odd lengths, the last of them.
    odd: Vec<u32>,
    additions: Additions<C>,
}

#[derive(Debug, Default)]
struct Level {
    /// Buckets, and how many of `numbers` each has.
    runs: Vec<(u32, usize)>,
    /// Twice the place of each point, plus 1 for its opposite.
    numbers: Vec<u32>,
    /// Points, but for those of the first level.
    points: Vec<u32>,
}

impl<C: DeviceCurve> Levels<C> {
    pub(crate) fn new() -> Self {
        let additions = Additions { prefixes: Vec::with_capacity(RUN), lone: Vec::new() };
        Self { level: Level::default(), next: Level::default(), pairs: Vec::new(), odd: Vec::new(), additions }
    }

    /// Calls `found` with each bucket of sorted `keys` and the sum of its points. `number` gives for each key twice the place of
    /// its point, plus 1 for the opposite. A bucket may be found several times, each with the sum of some of its points.
    pub(crate) fn sum(
        &mut self,
        keys: &[u32],
        number: &dyn Fn(usize) -> u32,
        points: &[u32],
        found: &mut dyn FnMut(u32, AffineOf<C>),
    ) {
        for (block, keys) in keys.chunks(BLOCK).enumerate() {
            self.level.runs.clear();
            self.level.runs.extend(keys.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())));
            self.level.numbers.clear();
            self.level.numbers.extend((block * BLOCK..).take(keys.len()).map(number));
            self.add(Some(points), found);
            while !self.level.runs.is_empty() {
                self.add(None, found);
            }
        }
    }

    /// From one level to the next. Points of runs that are one point are found.
    fn add(&mut self, points: Option<&[u32]>, found: &mut dyn FnMut(u32, AffineOf<C>)) {
        let (words, Level { runs, numbers, points: own }) = (affine_words::<C>(), &self.level);
        let points = points.unwrap_or(own);
        self.next.runs.clear();
        self.next.numbers.clear();
        self.pairs.clear();
        self.odd.clear();
        // What is left over goes behind the sums.
        let sums: usize = runs.iter().map(|(_, len)| len / 2).sum();
        let mut rest = &numbers[..];
        for &(key, len) in runs {
            let (run, others) = rest.split_at(len);
            rest = others;
            if let [number] = run {
                found(key, signed::<C>(points, *number));
                continue;
            }
            let (pairs, odd) = run.as_chunks();
            self.next.numbers.extend((self.pairs.len()..).take(pairs.len()).map(|place| 2 * place as u32));
            self.pairs.extend_from_slice(pairs);
            self.next.numbers.extend((sums + self.odd.len()..).take(odd.len()).map(|place| 2 * place as u32));
            self.odd.extend_from_slice(odd);
            self.next.runs.push((key, len.div_ceil(2)));
        }
        self.next.points.resize((sums + self.odd.len()) * words, 0);
        let (out, left) = self.next.points.split_at_mut(sums * words);
        for (pairs, out) in self.pairs.chunks(RUN).zip(out.chunks_mut(RUN * words)) {
            self.additions.add(points, pairs, out);
        }
        for (number, out) in self.odd.iter().zip(left.chunks_exact_mut(words)) {
            point::store(&signed::<C>(points, *number), out);
        }
        mem::swap(&mut self.level, &mut self.next);
    }
}

/// Point `number` / 2, or its opposite.
fn signed<C: DeviceCurve>(points: &[u32], number: u32) -> AffineOf<C> {
    let point = load_affine::<C>(points, number as usize / 2);
    if number % 2 == 1 { point::affine_negate::<C>(point) } else { point }
}

/// Additions with one inversion.
#[derive(Debug)]
struct Additions<C: DeviceCurve> {
    /// The product of the denominators before each pair, and its own.
    prefixes: Vec<[C::BaseField; 2]>,
    /// Pairs that may lie on no chord.
    lone: Vec<usize>,
}

impl<C: DeviceCurve> Additions<C> {
    fn add(&mut self, points: &[u32], pairs: &[[u32; 2]], out: &mut [u32]) {
        let words = affine_words::<C>();
        let x = |number: u32| C::BaseField::load(&points[number as usize / 2 * words..]);
        self.prefixes.clear();
        self.lone.clear();
        let mut product = C::BaseField::ONE;
        for (k, &[first, second]) in pairs.iter().enumerate() {
            let [a, b] = [x(first), x(second)];
            let mut denominator = b - a;
            if a.is_zero() || b.is_zero() || denominator.is_zero() {
                denominator = point::affine_denominator::<C>(signed::<C>(points, first), signed::<C>(points, second));
                self.lone.push(k);
            }
            self.prefixes.push([product, denominator]);
            product *= denominator;
        }
        // No denominator is zero.
        let mut inverse = product.inverse().unwrap_or(C::BaseField::ZERO);
        let additions = pairs.iter().zip(&self.prefixes).zip(out.chunks_exact_mut(words)).enumerate();
        for (k, ((&[first, second], [prefix, denominator]), out)) in additions.rev() {
            let (a, b) = (signed::<C>(points, first), signed::<C>(points, second));
            let own = inverse * prefix;
            inverse *= denominator;
            let sum = match self.lone.pop_if(|last| *last == k) {
                Some(_) => point::affine_add::<C>(a, b, own),
                None => point::affine_chord::<C>(a, b, own),
            };
            point::store(&sum, out);
        }
    }
}
