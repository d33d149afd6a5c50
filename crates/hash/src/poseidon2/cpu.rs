//! The bodies for the CPU: one state a lane of vectors, over fields of words; elsewhere one by one.

use std::{
    array,
    sync::atomic::{AtomicU32, Ordering},
};

use evariste_backend::{author::Wiped, parallel};
use evariste_field::{
    DevicePrimeField,
    words::{Halving, MAX_LANES, Multiple, WordField, WordJob, Words, transpose},
};

use super::params::{CompressParams, GrindParams, HashParams, LayersParams, PermuteParams, Shape, flags};
use crate::{layers::Arity, parameters::Poseidon2Parameters, reference};

/// States that a thread takes at a time.
const GRAIN: usize = 128;

/// The body of `permute`.
pub(super) fn permute<F: DevicePrimeField>(
    shape: Shape,
    params: &PermuteParams,
    constants: &[u32],
    states: &mut [u32],
) {
    let limbs = shape.width * F::LIMBS;
    let (words, rounds) = (Words::of::<F>(), [params.half, params.partial]);
    parallel::chunks(&mut states[..params.len as usize * limbs], GRAIN * limbs, &|_, states| {
        run::<F>(
            words,
            shape,
            rounds,
            constants,
            Work { count: states.len() / limbs, ..Work::of(Input::Own, states, 1) },
        );
    });
}

/// The body of `compress`.
pub(super) fn compress<F: DevicePrimeField>(
    shape: Shape,
    group: usize,
    params: &CompressParams,
    constants: &[u32],
    children: &[u32],
    out: &mut [u32],
) {
    let limbs = shape.digest * F::LIMBS;
    let (words, rounds) = (Words::of::<F>(), [params.half, params.partial]);
    let (len, stride) = (params.len as usize, params.stride as usize);
    parallel::chunks(digests::<F>(shape, out, len, stride), GRAIN * stride * limbs, &|chunk, out| {
        let count = GRAIN.min(len - chunk * GRAIN);
        let children = &children[chunk * GRAIN * group * limbs..][..count * group * limbs];
        let input = Input::Digests(children, group);
        run::<F>(words, shape, rounds, constants, Work { count, ..Work::of(input, out, stride) });
    });
}

/// The body of `compress_layers`.
pub(super) fn compress_layers<F: DevicePrimeField>(
    shape: Shape,
    params: &LayersParams,
    constants: &[u32],
    nodes: &mut [u32],
) {
    let LayersParams { half, partial, .. } = *params;
    let mut rest = nodes;
    for layer in 0..params.layers {
        let len = params.len >> layer;
        let (children, others) = rest.split_at_mut(2 * len as usize * shape.digest * F::LIMBS);
        compress::<F>(shape, 2, &CompressParams { len, half, partial, stride: 1 }, constants, children, others);
        rest = others;
    }
}

/// The body of `hash_rows`.
pub(super) fn hash_rows<F: DevicePrimeField>(
    shape: Shape,
    params: &HashParams,
    constants: &[u32],
    x: &[u32],
    states: Option<&mut [u32]>,
    out: &mut [u32],
) {
    let (words, rounds) = (Words::of::<F>(), [params.half, params.partial]);
    let [len, stride, columns, pitch] =
        [params.len, params.stride, params.columns, params.pitch].map(|value| value as usize);
    let [is_first, is_last] = [flags::FIRST, flags::LAST].map(|flag| params.flags & flag != 0);
    let rows = |chunk: usize, count: usize| Rows {
        values: &x[chunk * GRAIN * pitch * F::LIMBS..][..((count - 1) * pitch + columns) * F::LIMBS],
        columns,
        pitch,
        position: params.position as usize,
        is_last,
    };
    let limbs = shape.width * F::LIMBS;
    match states {
        Some(states) if !is_last => {
            parallel::chunks(&mut states[..len * limbs], GRAIN * limbs, &|chunk, states| {
                let count = states.len() / limbs;
                let (rows, start) = (rows(chunk, count), if is_first { Start::New } else { Start::Own });
                run::<F>(
                    words,
                    shape,
                    rounds,
                    constants,
                    Work { count, ..Work::of(Input::Rows(rows, start), states, 1) },
                );
            });
        }
        states => {
            let carried = states.filter(|_| !is_first).map(|states| &*states);
            let each = GRAIN * stride * shape.digest * F::LIMBS;
            parallel::chunks(digests::<F>(shape, out, len, stride), each, &|chunk, out| {
                let count = GRAIN.min(len - chunk * GRAIN);
                let start = match carried {
                    Some(states) => Start::Carried(&states[chunk * GRAIN * limbs..][..count * limbs]),
                    None => Start::New,
                };
                let input = Input::Rows(rows(chunk, count), start);
                run::<F>(words, shape, rounds, constants, Work { count, ..Work::of(input, out, stride) });
            });
        }
    }
}

/// The body of `grind`.
pub(super) fn grind<F: DevicePrimeField>(
    shape: Shape,
    params: &GrindParams,
    constants: &[u32],
    state: &[u32],
    found: &mut [u32],
) {
    let (words, rounds) = (Words::of::<F>(), [params.half, params.partial]);
    let limbs = shape.width * F::LIMBS;
    let integer = |words: [u32; 2]| u64::from(words[0]) | u64::from(words[1]) << 32;
    let (start, mask) = (integer(params.start), integer(params.mask));
    let best = AtomicU32::new(found[0]);
    parallel::for_each((params.len as usize).div_ceil(GRAIN), &|chunk| {
        let first = chunk * GRAIN;
        if u32::MAX - (first as u32) < best.load(Ordering::Relaxed) {
            return;
        }
        let count = GRAIN.min(params.len as usize - first);
        let mut states = state[..limbs].repeat(count);
        for (i, state) in states.chunks_exact_mut(limbs).enumerate() {
            F::from(start + (first + i) as u64).store(&mut state[params.position as usize * F::LIMBS..]);
        }
        run::<F>(words, shape, rounds, constants, Work { count, ..Work::of(Input::Own, &mut states, 1) });
        let drawn = |i: usize| F::load(&states[i * limbs + (shape.rate - 1) * F::LIMBS..]).into_bigint().as_ref()[0];
        if let Some(i) = (0..count).find(|i| drawn(*i) & mask == 0) {
            best.fetch_max(u32::MAX - (first + i) as u32, Ordering::Relaxed);
        }
    });
    found[0] = best.into_inner();
}

/// The part of `out` from its first digest to its last, of `len` that lie `stride` apart.
fn digests<F: DevicePrimeField>(shape: Shape, out: &mut [u32], len: usize, stride: usize) -> &mut [u32] {
    let end = len.checked_sub(1).map_or(0, |last| (last * stride + 1) * shape.digest * F::LIMBS);
    &mut out[..end]
}

/// What states are made of.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug))]
enum Input<'a> {
    /// The states that are written.
    Own,
    /// So many digests each.
    Digests(&'a [u32], usize),
    Rows(Rows<'a>, Start<'a>),
}

/// Where sponges start.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug))]
enum Start<'a> {
    New,
    /// From the states that are written.
    Own,
    Carried(&'a [u32]),
}

#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug))]
struct Rows<'a> {
    values: &'a [u32],
    columns: usize,
    /// The distance of rows.
    pitch: usize,
    /// Elements of the first block that the sponges have.
    position: usize,
    /// A block that is not full is permuted.
    is_last: bool,
}

/// What one thread computes.
struct Work<'a> {
    count: usize,
    input: Input<'a>,
    out: &'a mut [u32],
    /// The distance of digests in the output. States follow each other.
    stride: usize,
}

impl<'a> Work<'a> {
    fn of(input: Input<'a>, out: &'a mut [u32], stride: usize) -> Self {
        Self { count: 0, input, out, stride }
    }

    /// Whether whole states are written.
    fn keeps_states(&self) -> bool {
        match self.input {
            Input::Own => true,
            Input::Digests(..) => false,
            Input::Rows(rows, _) => !rows.is_last,
        }
    }
}

fn run<F: DevicePrimeField>(words: Option<Words>, shape: Shape, rounds: [u32; 2], constants: &[u32], work: Work<'_>) {
    let rounds = rounds.map(|rounds| rounds as usize);
    match words {
        Some(words) if LANE_WIDTHS.contains(&shape.width) => in_lanes(words, shape, rounds, constants, work),
        _ => one_by_one::<F>(shape, rounds, constants, work),
    }
}

/// The widths of states in lanes.
const LANE_WIDTHS: [usize; 5] = [8, 12, 16, 24, 32];

/// Of no type of elements: compiled once, and not wherever a field is named.
fn in_lanes(words: Words, shape: Shape, rounds: [usize; 2], constants: &[u32], work: Work<'_>) {
    match shape.width {
        8 => words.run(Job::<8> { shape, rounds, constants, work }),
        12 => words.run(Job::<12> { shape, rounds, constants, work }),
        16 => words.run(Job::<16> { shape, rounds, constants, work }),
        24 => words.run(Job::<24> { shape, rounds, constants, work }),
        _ => words.run(Job::<32> { shape, rounds, constants, work }),
    }
}

/// Where in the constants those at the end start, the diagonal, and those of partial rounds.
fn places(width: usize, [half, _]: [usize; 2]) -> [usize; 3] {
    [half * width, 2 * half * width, (2 * half + 1) * width]
}

struct Job<'a, const W: usize> {
    shape: Shape,
    rounds: [usize; 2],
    constants: &'a [u32],
    work: Work<'a>,
}

impl<const W: usize> WordJob for Job<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<F: WordField>(self, field: F) {
        let Self { shape, rounds, constants, work } = self;
        let (keeps_states, Work { count, input, out, stride }) = (work.keeps_states(), work);
        let permutation = Permutation::new(field, shape.alpha, rounds, words::<F>(constants));
        let out = bytemuck::cast_slice_mut::<u32, F::Word>(out);
        for first in (0..count).step_by(F::LANES) {
            let lanes = F::LANES.min(count - first);
            let mut state = [field.splat(bytemuck::Zeroable::zeroed()); W];
            // Elements of the row from the block's start on, and how many of a row there are.
            let (mut base, mut columns) = (0, 1);
            match input {
                Input::Own | Input::Rows(_, Start::Own) => {
                    load(field, lanes, |lane| &out[(first + lane) * W..][..W], &mut state);
                }
                Input::Rows(_, Start::Carried(states)) => {
                    let states = words::<F>(states);
                    load(field, lanes, |lane| &states[(first + lane) * W..][..W], &mut state);
                }
                Input::Digests(children, group) => {
                    let children = words::<F>(children);
                    let used = group * shape.digest;
                    load(field, lanes, |lane| &children[(first + lane) * used..][..used], &mut state[..used]);
                }
                Input::Rows(_, Start::New) => {}
            }
            if let Input::Rows(rows, _) = input {
                (base, columns) = (-(rows.position as isize), rows.columns as isize);
            }
            while base < columns {
                let mut is_permuted = true;
                if let Input::Rows(Rows { values, pitch, is_last, .. }, _) = input {
                    let values = words::<F>(values);
                    let from = base.min(0).unsigned_abs();
                    let to = (columns - base).min(shape.rate as isize) as usize;
                    let column = base.max(0) as usize;
                    let row = |lane: usize| &values[(first + lane) * pitch + column..][..to - from];
                    load(field, lanes, row, &mut state[from..to]);
                    is_permuted = to == shape.rate || is_last;
                }
                if is_permuted {
                    state = permutation.permute(state);
                }
                base += shape.rate as isize;
            }
            let kept = if keeps_states { W } else { shape.digest };
            let distance = if keeps_states { W } else { stride * shape.digest };
            store(field, lanes, &state[..kept], |i, lane, values| {
                out[(first + lane) * distance + i..][..values.len()].copy_from_slice(values);
            });
        }
    }
}

#[inline(always)]
fn words<F: WordField>(limbs: &[u32]) -> &[F::Word] {
    bytemuck::cast_slice(limbs)
}

/// The rows of some lanes, all as long as `x`, one to each lane. Other lanes get zeros. Where all lanes have one,
/// squares of rows and half of one are transposed in registers.
#[inline(always)]
fn load<'a, F: WordField>(field: F, lanes: usize, row: impl Fn(usize) -> &'a [F::Word], x: &mut [F::Lanes]) {
    let zero = <F::Word as bytemuck::Zeroable>::zeroed();
    let (mut done, half) = (0, F::LANES / 2);
    while lanes == F::LANES && x.len() - done >= half {
        let mut square = [field.splat(zero); MAX_LANES];
        let is_whole = x.len() - done >= F::LANES;
        for (lane, place) in square[..F::LANES].iter_mut().enumerate() {
            let (row, mut padded) = (&row(lane)[done..], [zero; MAX_LANES]);
            let values = if is_whole {
                &row[..F::LANES]
            } else {
                padded[..half].copy_from_slice(&row[..half]);
                &padded
            };
            // SAFETY: there is a value for each lane.
            *place = unsafe { field.load(values.as_ptr()) };
        }
        transpose(field, &mut square);
        let count = if is_whole { F::LANES } else { half };
        x[done..][..count].copy_from_slice(&square[..count]);
        done += count;
    }
    for (i, x) in x.iter_mut().enumerate().skip(done) {
        let mut values = [zero; MAX_LANES];
        for (lane, value) in values[..lanes].iter_mut().enumerate() {
            *value = row(lane)[i];
        }
        // SAFETY: there is a value for each lane.
        *x = unsafe { field.load(values.as_ptr()) };
    }
}

/// The way back: `put` gets the elements from a place on that belong to a lane.
#[inline(always)]
fn store<F: WordField>(field: F, lanes: usize, x: &[F::Lanes], mut put: impl FnMut(usize, usize, &[F::Word])) {
    let zero = <F::Word as bytemuck::Zeroable>::zeroed();
    let (mut done, half) = (0, F::LANES / 2);
    let mut values = [zero; MAX_LANES];
    while lanes == F::LANES && x.len() - done >= half {
        let mut square = [field.splat(zero); MAX_LANES];
        let count = if x.len() - done >= F::LANES { F::LANES } else { half };
        square[..count].copy_from_slice(&x[done..][..count]);
        transpose(field, &mut square);
        for (lane, row) in square[..F::LANES].iter().enumerate() {
            // SAFETY: there is a place for each lane.
            unsafe { field.store(values.as_mut_ptr(), *row) };
            // Of known lengths.
            if count == half { put(done, lane, &values[..half]) } else { put(done, lane, &values[..F::LANES]) }
        }
        done += count;
    }
    for (i, x) in x.iter().enumerate().skip(done) {
        // SAFETY: there is a place for each lane.
        unsafe { field.store(values.as_mut_ptr(), *x) };
        for (lane, value) in values[..lanes].iter().enumerate() {
            put(i, lane, &[*value]);
        }
    }
}

/// For numbers from 9 to 31, written out, so that lanes stay in registers.
macro_rules! each_from_9 {
    (|$i:ident| $body:expr) => {
        each_from_9!(|$i| $body; 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    (|$i:ident| $body:expr; $($number:literal)*) => { $({ const $i: usize = $number; $body })* };
}

/// The permutation of [`WordField::LANES`] states.
struct Permutation<'a, F: WordField, const W: usize> {
    field: F,
    alpha: u32,
    rounds: [usize; 2],
    constants: &'a [F::Word],
    diagonal: [Multiple<F::Word>; W],
    /// The halvings among the factors, if the others are those of a [`PUBLISHED`] diagonal.
    halvings: Option<[Halving; W]>,
}

/// How diagonals start that Plonky3 publishes for fields below 2^31, with 0 for 1/2 and −1/2. What comes after are powers
/// of 1/2, each with a sign.
const PUBLISHED: [i8; 9] = [-2, 1, 2, 0, 3, 4, 0, -3, -4];

impl<'a, F: WordField, const W: usize> Permutation<'a, F, W> {
    #[inline(always)]
    fn new(field: F, alpha: u32, rounds: [usize; 2], constants: &'a [F::Word]) -> Self {
        let diagonal = &constants[places(W, rounds)[1]..][..W];
        let diagonal: [_; W] = array::from_fn(|i| field.multiple(diagonal[i]));
        let mut halvings = [Halving::default(); W];
        let is_published = |(i, halving): (usize, &mut Halving)| match diagonal[i] {
            Multiple::Few { count, is_negative } => {
                let factor = if is_negative { -(count as i8) } else { count as i8 };
                PUBLISHED.get(i) == Some(&factor)
            }
            Multiple::Halved(it) => {
                *halving = it;
                PUBLISHED.get(i).is_none_or(|factor| *factor == 0)
            }
            Multiple::Any(_) => false,
        };
        let is_published = W > PUBLISHED.len() && halvings.iter_mut().enumerate().all(is_published);
        Self { field, alpha, rounds, constants, diagonal, halvings: is_published.then_some(halvings) }
    }

    #[inline(always)]
    fn permute(&self, state: [F::Lanes; W]) -> [F::Lanes; W] {
        let field = self.field;
        let [end, diagonal, ones] = places(W, self.rounds);
        let mut s = self.mix(state);
        for (rows, is_first) in [(0..end, true), (end..diagonal, false)] {
            for constants in self.constants[rows].chunks_exact(W) {
                for (x, c) in s.as_chunks_mut::<4>().0.iter_mut().zip(constants.as_chunks::<4>().0) {
                    let c = [field.splat(c[0]), field.splat(c[1]), field.splat(c[2]), field.splat(c[3])];
                    field.powers_of_sums(x, c, self.alpha);
                }
                s = self.mix(s);
            }
            if is_first {
                let constants = &self.constants[ones..][..self.rounds[1]];
                s = match &self.halvings {
                    Some(halvings) if F::HALVES && W > PUBLISHED.len() => self.published_rounds(s, constants, halvings),
                    _ => self.partial_rounds(s, constants),
                };
            }
        }
        s
    }

    /// The S-box of a partial round, and the sum of the other elements, which is there before.
    #[inline(always)]
    fn partial_power(&self, s: &mut [F::Lanes; W], constant: F::Word) -> F::Lanes {
        let field = self.field;
        let mut power = [s[0]];
        field.powers_of_sums(&mut power, [field.splat(constant)], self.alpha);
        [s[0]] = power;
        let mut sums = [s[4], s[1], s[2], s[3]];
        for (i, block) in s.as_chunks::<4>().0.iter().enumerate().skip(1) {
            for (sum, x) in sums.iter_mut().zip(block).skip(usize::from(i == 1)) {
                *sum = field.add(*sum, *x);
            }
        }
        field.add(field.add(sums[0], sums[1]), field.add(sums[2], sums[3]))
    }

    #[inline(always)]
    fn partial_rounds(&self, mut s: [F::Lanes; W], constants: &[F::Word]) -> [F::Lanes; W] {
        let field = self.field;
        for constant in constants {
            let others = self.partial_power(&mut s, *constant);
            let sum = field.add(others, s[0]);
            for (x, factor) in s.iter_mut().zip(&self.diagonal) {
                *x = field.add_multiple(sum, *x, factor);
            }
        }
        s
    }

    /// sum ± `COUNT` · x. A closure would be compiled without the processor's instructions.
    #[inline(always)]
    fn add_few<const COUNT: u8, const IS_NEGATIVE: bool>(&self, sum: F::Lanes, x: F::Lanes) -> F::Lanes {
        self.field.add_multiple(sum, x, &Multiple::Few { count: COUNT, is_negative: IS_NEGATIVE })
    }

    /// The same with a [`PUBLISHED`] diagonal.
    #[inline(always)]
    fn published_rounds(&self, mut s: [F::Lanes; W], constants: &[F::Word], halvings: &[Halving; W]) -> [F::Lanes; W] {
        let field = self.field;
        for constant in constants {
            let others = self.partial_power(&mut s, *constant);
            let sum = field.add(others, s[0]);
            // The sum of all, less 2 times the first.
            s[0] = field.sub(others, s[0]);
            s[1] = self.add_few::<1, false>(sum, s[1]);
            s[2] = self.add_few::<2, false>(sum, s[2]);
            s[3] = field.add_halved(sum, s[3], &halvings[3]);
            s[4] = self.add_few::<3, false>(sum, s[4]);
            s[5] = self.add_few::<4, false>(sum, s[5]);
            s[6] = field.add_halved(sum, s[6], &halvings[6]);
            s[7] = self.add_few::<3, true>(sum, s[7]);
            s[8] = self.add_few::<4, true>(sum, s[8]);
            each_from_9!(|I| if I < W {
                s[I] = field.add_halved(sum, s[I], &halvings[I]);
            });
        }
        s
    }

    #[inline(always)]
    fn mix(&self, mut s: [F::Lanes; W]) -> [F::Lanes; W] {
        let field = self.field;
        for block in s.as_chunks_mut::<4>().0 {
            let [x0, x1, x2, x3] = *block;
            let (t01, t23) = (field.add(x0, x1), field.add(x2, x3));
            let all = field.add(t01, t23);
            let (first, last) = (field.add(all, x1), field.add(all, x3));
            let doubled = |x| field.add(x, x);
            *block = [
                field.add(first, t01),
                field.add(first, doubled(x2)),
                field.add(last, t23),
                field.add(last, doubled(x0)),
            ];
        }
        let mut sums = [s[0], s[1], s[2], s[3]];
        for block in &s.as_chunks::<4>().0[1..] {
            for (sum, x) in sums.iter_mut().zip(block) {
                *sum = field.add(*sum, *x);
            }
        }
        for block in s.as_chunks_mut::<4>().0 {
            for (x, sum) in block.iter_mut().zip(&sums) {
                *x = field.add(*x, *sum);
            }
        }
        s
    }
}

/// Over other fields.
fn one_by_one<F: DevicePrimeField>(shape: Shape, rounds: [usize; 2], constants: &[u32], work: Work<'_>) {
    let Shape { width, alpha, rate, digest, .. } = shape;
    let [end, diagonal, ones] = places(width, rounds);
    let mut initial: Vec<F> = constants.chunks_exact(F::LIMBS).map(F::load).collect();
    let partial = initial.split_off(ones);
    let (diagonal, terminal) = (initial.split_off(diagonal), initial.split_off(end));
    let parameters =
        Poseidon2Parameters { width, alpha, initial, partial, terminal, diagonal, rate, digest, arity: Arity::Two };
    let (keeps_states, Work { count, input, out, stride }) = (work.keeps_states(), work);
    let mut state = Wiped::from(vec![F::ZERO; width]);
    for i in 0..count {
        let of_number = |elements: usize| i * elements * F::LIMBS..(i + 1) * elements * F::LIMBS;
        let start: &[u32] = match input {
            Input::Own | Input::Rows(_, Start::Own) => &out[of_number(width)],
            Input::Digests(children, group) => &children[of_number(group * digest)],
            Input::Rows(_, Start::Carried(states)) => &states[of_number(width)],
            Input::Rows(_, Start::New) => &[],
        };
        state.fill(F::ZERO);
        state.iter_mut().zip(start.chunks_exact(F::LIMBS)).for_each(|(x, limbs)| *x = F::load(limbs));
        match input {
            Input::Rows(Rows { values, columns, pitch, mut position, is_last }, _) => {
                for limbs in values[i * pitch * F::LIMBS..][..columns * F::LIMBS].chunks_exact(F::LIMBS) {
                    state[position] = F::load(limbs);
                    position += 1;
                    if position == rate {
                        reference::permute(&parameters, &mut state);
                        position = 0;
                    }
                }
                if is_last && position > 0 {
                    reference::permute(&parameters, &mut state);
                }
            }
            _ => reference::permute(&parameters, &mut state),
        }
        let (kept, distance) = if keeps_states { (width, width) } else { (digest, stride * digest) };
        for (x, limbs) in state[..kept].iter().zip(out[i * distance * F::LIMBS..].chunks_exact_mut(F::LIMBS)) {
            x.store(limbs);
        }
    }
}

#[cfg(test)]
mod tests {
    use evariste_field::small::{BabyBear, Goldilocks, KoalaBear, Mersenne31};

    use super::*;
    use crate::published::Poseidon2Field;

    fn encoded<F: DevicePrimeField>(values: &[F]) -> Vec<u32> {
        let mut limbs = vec![0; values.len() * F::LIMBS];
        values.iter().zip(limbs.chunks_exact_mut(F::LIMBS)).for_each(|(x, limbs)| x.store(limbs));
        limbs
    }

    /// Published diagonals and others, with all vectors that are here.
    fn check<F: Poseidon2Field>(width: usize, is_published: bool) {
        let mut parameters = Poseidon2Parameters::<F>::plonky3(width).unwrap();
        if !is_published {
            parameters.diagonal.reverse();
        }
        let shape = Shape::of(&parameters);
        let Poseidon2Parameters { initial, terminal, diagonal, partial, .. } = &parameters;
        let rounds = [initial.len() / width, partial.len()];
        let constants = encoded(&[&initial[..], terminal, diagonal, partial].concat());
        // Whole vectors of any length and a part of one, with the elements that are at borders.
        let count = 2 * MAX_LANES + 5;
        let states: Vec<F> = (0..count * width)
            .map(|i| match i % 5 {
                0 => F::ZERO,
                1 => -F::from((i % 3) as u64),
                _ => F::from(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(i as u64 + 1)),
            })
            .collect();
        let mut expected = states.clone();
        expected.chunks_exact_mut(width).for_each(|state| reference::permute(&parameters, state));
        for words in Words::each_of::<F>() {
            let mut out = encoded(&states);
            in_lanes(words, shape, rounds, &constants, Work { count, ..Work::of(Input::Own, &mut out, 1) });
            assert!(out == encoded(&expected), "width {width}, {words:?}");
        }
    }

    #[test]
    fn lanes_of_all_vectors_compute_what_the_reference_does() {
        for is_published in [true, false] {
            [16, 24, 32].into_iter().for_each(|width| check::<BabyBear>(width, is_published));
            [16, 24, 32].into_iter().for_each(|width| check::<KoalaBear>(width, is_published));
            [16, 24].into_iter().for_each(|width| check::<Mersenne31>(width, is_published));
            [8, 12, 16].into_iter().for_each(|width| check::<Goldilocks>(width, is_published));
        }
    }

    /// Sponges and compressions of any rate and digest, whose rows and digests are no whole vectors.
    #[test]
    fn lanes_load_and_store_what_single_states_do() {
        for [rate, digest] in [[15, 7], [13, 5], [9, 1], [8, 8]] {
            let parameters = Poseidon2Parameters::<BabyBear>::plonky3(16).unwrap().sponge(rate, digest).unwrap();
            let shape = Shape::of(&parameters);
            let Poseidon2Parameters { initial, terminal, diagonal, partial, .. } = &parameters;
            let rounds = [initial.len() / 16, partial.len()];
            let constants = encoded(&[&initial[..], terminal, diagonal, partial].concat());
            let count = 2 * MAX_LANES + 5;
            let (pitch, stride) = (40, 3);
            let values: Vec<u32> =
                (0..(count * pitch) as u32).map(|i| i.wrapping_mul(0x9e37_79b9) % (1 << 30)).collect();
            let carried = &values[..count * 16];
            let mut inputs = vec![Input::Digests(&values[..count * 2 * digest], 2), Input::Own];
            for (columns, position) in [(0, 0), (0, 3), (1, 0), (rate, 0), (rate - 1, 1), (37, 2), (40, rate - 1)] {
                for is_last in [false, true] {
                    let rows = Rows { values: &values, columns, pitch, position, is_last };
                    inputs.extend(
                        [Start::New, Start::Own, Start::Carried(carried)].map(|start| Input::Rows(rows, start)),
                    );
                }
            }
            for input in inputs {
                let keeps_states = Work::of(input, &mut [], 1).keeps_states();
                if !keeps_states && matches!(input, Input::Rows(_, Start::Own)) {
                    continue;
                }
                let stride = if keeps_states { 1 } else { stride };
                let before = &values[..count * if keeps_states { 16 } else { stride * digest }];
                let mut expected = before.to_vec();
                let work = Work { count, ..Work::of(input, &mut expected, stride) };
                one_by_one::<BabyBear>(shape, rounds, &constants, work);
                for words in Words::each_of::<BabyBear>() {
                    let mut out = before.to_vec();
                    in_lanes(words, shape, rounds, &constants, Work { count, ..Work::of(input, &mut out, stride) });
                    assert!(out == expected, "{rate} to {digest}, {input:?}, {words:?}");
                }
            }
        }
    }
}
