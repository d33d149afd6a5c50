//! Sums of affine points on the host's cores, with inversions that many additions share.

use std::mem;

use ark_ff::{AdditiveGroup, Field, Zero};
use evariste_backend::author::{Wiped, zeroize_vec};
use evariste_curve::{
    DeviceCurve, lanes,
    point::{self, AffineOf},
};
use evariste_field::{DeviceField, ifma, native::Native};

use crate::shared::{affine_words, load_affine};

/// Points that are gone through level by level at once: their sums stay in cache.
const BLOCK: usize = 1 << 14;

/// Additions that share an inversion, enough to make its share small, in lanes too, where an addition takes a fifth of
/// the time.
const RUN: usize = 1 << 10;

/// Fewer additions are not done in lanes, which take a multiple of [`ifma::STEP`].
const MIN_LANES: usize = ifma::STEP / 2;

/// Sums of the points of each bucket, on one core. Neighbours of one bucket are added in pairs, then their sums, and so
/// on, 5M + 1S each. All points may be added: infinity, equal and opposite ones. An object keeps the memory that it
/// works in, and zeroes it in the end: which points are added is as secret as the scalars.
#[derive(Debug)]
pub(crate) struct AffineTree<'a, C: DeviceCurve> {
    level: Level,
    next: Level,
    pairs: Wiped<[u32; 2]>,
    /// Where runs have odd lengths, the last of them.
    odd: Wiped<u32>,
    additions: Additions<'a, C>,
}

#[derive(Debug, Default)]
struct Level {
    /// Buckets, and how many of `numbers` each has.
    runs: Wiped<(u32, usize)>,
    /// Twice the place of each point, plus 1 for its opposite.
    numbers: Wiped<u32>,
    /// Points, but for those of the first level.
    points: Wiped<u32>,
}

impl Level {
    /// Reserves room for the results of `numbers` numbers and `points` points of `words` words.
    fn reserve(&mut self, numbers: usize, points: usize, words: usize) {
        reserve(&mut self.runs, numbers);
        reserve(&mut self.numbers, numbers);
        reserve(&mut self.points, points * words);
    }
}

/// Reserves room for `len` elements in all, so that no memory grows later and leaves a copy behind.
fn reserve<T: Copy>(memory: &mut Vec<T>, len: usize) {
    if memory.capacity() < len {
        zeroize_vec(memory);
        memory.reserve_exact(len);
    }
}

impl<'a, C: DeviceCurve> AffineTree<'a, C> {
    /// In lanes of the field that coordinates are of, if there are such.
    pub(crate) fn new(lanes: Option<&'a ifma::Montgomery52>) -> Self {
        Self {
            level: Level::default(),
            next: Level::default(),
            pairs: Wiped::default(),
            odd: Wiped::default(),
            additions: Additions::new(lanes),
        }
    }

    /// Calls `found` with each bucket of sorted `keys` and the sum of its points. `number` gives for each key twice the
    /// place of its point, plus 1 for the opposite. A bucket may be found several times, each with the sum of some of
    /// its points.
    pub(crate) fn sum(
        &mut self,
        keys: &[u32],
        number: &dyn Fn(usize) -> u32,
        points: &[u32],
        found: &mut dyn FnMut(u32, AffineOf<C>),
    ) {
        let most = keys.len().min(BLOCK);
        // Of each run, half and one more: of three, two.
        self.level.reserve(most, most - most / 3, affine_words::<C>());
        self.next.reserve(most, most - most / 3, affine_words::<C>());
        reserve(&mut self.pairs, most / 2);
        reserve(&mut self.odd, most / 3);
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
        for &(key, len) in runs.iter() {
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
        self.additions.add_all(points, &self.pairs, out);
        for (number, out) in self.odd.iter().zip(left.chunks_exact_mut(words)) {
            point::store(&signed::<C>(points, *number), out);
        }
        mem::swap(&mut self.level, &mut self.next);
    }
}

/// Point `number` / 2, or its opposite.
pub(crate) fn signed<C: DeviceCurve>(points: &[u32], number: u32) -> AffineOf<C> {
    let point = load_affine::<C>(points, number as usize / 2);
    if number % 2 == 1 { point::affine_negate::<C>(point) } else { point }
}

/// Additions with one inversion for many. An object keeps the memory that it works in, as [`AffineTree`] does.
#[derive(Debug)]
pub(crate) struct Additions<'a, C: DeviceCurve> {
    lanes: Option<&'a ifma::Montgomery52>,
    /// The product of the denominators before each pair, and its own.
    prefixes: Wiped<[C::BaseField; 2]>,
    /// Pairs that may lie on no chord.
    lone: Wiped<usize>,
    /// For lanes: the first points of pairs and the second ones.
    gathered: [Wiped<u32>; 2],
    /// Their sums, if the step computes more than the caller asked for.
    sums: Wiped<u32>,
    scratch: Wiped<u32>,
}

impl<'a, C: DeviceCurve> Additions<'a, C> {
    /// In lanes of the field that coordinates are of, if there are such.
    pub(crate) fn new(lanes: Option<&'a ifma::Montgomery52>) -> Self {
        Self {
            lanes,
            prefixes: Wiped::default(),
            lone: Wiped::default(),
            gathered: [Wiped::default(), Wiped::default()],
            sums: Wiped::default(),
            scratch: Wiped::default(),
        }
    }

    /// The sum of each pair of points: twice the place of each, plus 1 for its opposite.
    pub(crate) fn add_all(&mut self, points: &[u32], pairs: &[[u32; 2]], out: &mut [u32]) {
        for (pairs, out) in pairs.chunks(RUN).zip(out.chunks_mut(RUN * affine_words::<C>())) {
            self.add(points, pairs, out);
        }
    }

    /// The same with one inversion for all.
    fn add(&mut self, points: &[u32], pairs: &[[u32; 2]], out: &mut [u32]) {
        match self.lanes {
            Some(lanes) if pairs.len() >= MIN_LANES => {
                let mut scratch = mem::take(&mut self.scratch);
                reserve(&mut scratch, (2 * RUN + 1) * C::BaseField::LIMBS);
                self.gather(points, pairs, out, |sides, out| lanes::add_affine::<C>(lanes, sides, out, &mut scratch));
                self.scratch = scratch;
            }
            _ => self.one_by_one(points, pairs, out),
        }
    }

    /// Calls `add` with the points of pairs side by side, a multiple of [`ifma::STEP`] of them.
    fn gather(
        &mut self,
        points: &[u32],
        pairs: &[[u32; 2]],
        out: &mut [u32],
        add: impl FnOnce((&[u32], &[u32]), &mut [u32]),
    ) {
        let words = affine_words::<C>();
        let all = pairs.len().next_multiple_of(ifma::STEP) * words;
        for (side, gathered) in self.gathered.iter_mut().enumerate() {
            reserve(gathered, RUN * words);
            gathered.resize(all, 0);
            for (pair, place) in pairs.iter().zip(gathered.chunks_exact_mut(words)) {
                let number = pair[side];
                match number % 2 {
                    0 => place.copy_from_slice(&points[number as usize / 2 * words..][..words]),
                    _ => point::store(&signed::<C>(points, number), place),
                }
            }
        }
        let [a, b] = &self.gathered;
        if out.len() == all {
            add((a, b), out);
        } else {
            reserve(&mut self.sums, RUN * words);
            self.sums.resize(all, 0);
            add((a, b), &mut self.sums);
            out.copy_from_slice(&self.sums[..out.len()]);
        }
    }

    fn one_by_one(&mut self, points: &[u32], pairs: &[[u32; 2]], out: &mut [u32]) {
        let words = affine_words::<C>();
        let x = |number: u32| C::BaseField::load(&points[number as usize / 2 * words..]);
        self.prefixes.clear();
        reserve(&mut self.prefixes, RUN);
        self.lone.clear();
        reserve(&mut self.lone, RUN);
        let mut product = Native::<C::BaseField>::ONE;
        for (k, &[first, second]) in pairs.iter().enumerate() {
            let [a, b] = [x(first), x(second)];
            let mut denominator = b.native_sub(&a);
            if a.is_zero() || b.is_zero() || denominator.is_zero() {
                denominator = point::affine_denominator::<C>(signed::<C>(points, first), signed::<C>(points, second));
                self.lone.push(k);
            }
            self.prefixes.push([product.0, denominator]);
            product *= Native(denominator);
        }
        // No denominator is zero.
        let mut inverse = Native(product.0.inverse().unwrap_or(C::BaseField::ZERO));
        let additions = pairs.iter().zip(self.prefixes.iter()).zip(out.chunks_exact_mut(words)).enumerate();
        for (k, ((&[first, second], [prefix, denominator]), out)) in additions.rev() {
            let (a, b) = (signed::<C>(points, first), signed::<C>(points, second));
            let own = (inverse * Native(*prefix)).0;
            inverse *= Native(*denominator);
            let sum = match self.lone.pop_if(|last| *last == k) {
                Some(_) => point::affine_add::<C>(a, b, own),
                None => point::affine_chord::<C>(a, b, own),
            };
            point::store(&sum, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::g1::Config;
    use ark_ec::{
        AffineRepr, CurveGroup,
        short_weierstrass::{Affine, Projective},
    };

    use super::*;

    /// Small multiples of the generator in device form, and which.
    fn multiples(len: usize) -> (Vec<u32>, Vec<i64>) {
        let factors: Vec<i64> = (0..len as i64).map(|i| i * i % 11 - 5).collect();
        let words = affine_words::<Config>();
        let mut points = vec![0; len * words];
        for (k, words) in factors.iter().zip(points.chunks_exact_mut(words)) {
            let point = (Affine::<Config>::generator() * ark_bls12_381::Fr::from(*k)).into_affine();
            point::store(&[point.x, point.y], words);
        }
        (points, factors)
    }

    /// What is found of each of three buckets, by an object that was used before.
    fn check(lanes: Option<&ifma::Montgomery52>, len: usize) {
        let (points, factors) = multiples(len);
        let mut levels = AffineTree::<Config>::new(lanes);
        for signs in 0..2 {
            let mut keys: Vec<u32> = (0..len as u32).map(|i| u32::from(i > 2) + u32::from(i > 40)).collect();
            keys.sort_unstable();
            let number = |i: usize| 2 * i as u32 + u32::from(signs == 1 && i.is_multiple_of(3));
            let mut sums = [Projective::<Config>::default(); 3];
            levels.sum(&keys, &number, &points, &mut |key, [x, y]| {
                let point = if x.is_zero() && y.is_zero() { Affine::identity() } else { Affine::new(x, y) };
                sums[key as usize] += point;
            });
            let mut expected = [0; 3];
            for (i, (key, factor)) in keys.iter().zip(&factors).enumerate() {
                expected[*key as usize] += if number(i) % 2 == 1 { -factor } else { *factor };
            }
            let generator = Affine::<Config>::generator();
            assert_eq!(sums, expected.map(|k| generator * ark_bls12_381::Fr::from(k)), "{len}, {signs}");
        }
    }

    #[test]
    fn buckets_have_the_sums_of_their_points() {
        let field = ifma::Montgomery52::of::<ark_bls12_381::Fq>();
        for lanes in [None, field.as_ref()] {
            for len in [0, 1, 2, 3, 4, 57, 2500] {
                check(lanes, len);
            }
        }
    }

    /// What grew would leave its old memory behind as it was.
    #[test]
    fn no_memory_grows_while_points_are_added() {
        let (points, _) = multiples(RUN);
        let mut levels = AffineTree::<Config>::new(None);
        let pairs: Vec<[u32; 2]> = (0..RUN as u32).map(|i| [2 * i, 2 * i]).collect();
        let mut out = vec![0; points.len()];
        levels.additions.add(&points, &pairs[..1], &mut out[..affine_words::<Config>()]);
        let places = |levels: &AffineTree<'_, Config>| {
            (levels.additions.prefixes.as_ptr() as usize, levels.additions.lone.as_ptr() as usize)
        };
        let before = places(&levels);
        levels.additions.lone.extend(0..RUN);
        assert_eq!(places(&levels), before);
        levels.additions.add(&points, &pairs, &mut out);
        assert_eq!(places(&levels), before);
    }

    /// As lanes are given them, whatever the processor.
    #[test]
    fn points_are_gathered_in_steps() {
        let (points, _) = multiples(64);
        let words = affine_words::<Config>();
        let additions = &mut AffineTree::<Config>::new(None).additions;
        for len in [8, 16, 21] {
            let pairs: Vec<[u32; 2]> = (0..len).map(|i| [4 * i + i % 2, 4 * i + 3]).collect();
            let [mut out, mut expected] = [vec![1; pairs.len() * words], vec![2; pairs.len() * words]];
            additions.gather(&points, &pairs, &mut out, |(a, b), out| {
                assert_eq!((a.len(), b.len()), (out.len(), out.len()));
                assert!(out.len().is_multiple_of(ifma::STEP * words));
                for (i, out) in out.chunks_exact_mut(words).enumerate() {
                    let [a, b] = [a, b].map(|x| point::load(&x[i * words..]));
                    let inverse = point::affine_denominator::<Config>(a, b).inverse();
                    point::store(&point::affine_add::<Config>(a, b, inverse.unwrap()), out);
                }
            });
            additions.one_by_one(&points, &pairs, &mut expected);
            assert_eq!(out, expected, "{len}");
        }
    }
}
