//! The bodies for the CPU: one state a lane of vectors, over fields of words; elsewhere one by one.

use std::{
    array,
    sync::atomic::{AtomicU32, Ordering},
};

use evariste_backend::{author::Wiped, parallel};
use evariste_field::{
    DevicePrimeField,
    words::{MAX_LANES, WordField, WordJob, Words},
};

use super::params::{CompressParams, GrindParams, HashParams, PermuteParams, Shape, flags};
use crate::{layers::Arity, parameters::Poseidon2Parameters, reference};

/// States that a thread takes at a time.
const GRAIN: usize = 64;

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
enum Input<'a> {
    /// The states that are written.
    Own,
    /// So many digests each.
    Digests(&'a [u32], usize),
    Rows(Rows<'a>, Start<'a>),
}

/// Where sponges start.
#[derive(Clone, Copy)]
enum Start<'a> {
    New,
    /// From the states that are written.
    Own,
    Carried(&'a [u32]),
}

#[derive(Clone, Copy)]
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
    match (words, shape.width) {
        (Some(words), 8) => words.run(Job::<8> { shape, rounds, constants, work }),
        (Some(words), 12) => words.run(Job::<12> { shape, rounds, constants, work }),
        (Some(words), 16) => words.run(Job::<16> { shape, rounds, constants, work }),
        (Some(words), 24) => words.run(Job::<24> { shape, rounds, constants, work }),
        (Some(words), 32) => words.run(Job::<32> { shape, rounds, constants, work }),
        _ => one_by_one::<F>(shape, rounds, constants, work),
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
        let permutation = Permutation::<F, W> { field, alpha: shape.alpha, rounds, constants: words::<F>(constants) };
        let out = bytemuck::cast_slice_mut::<u32, F::Word>(out);
        for first in (0..count).step_by(F::LANES) {
            let lanes = F::LANES.min(count - first);
            let zeros = [field.splat(bytemuck::Zeroable::zeroed()); W];
            let own = |out: &[F::Word]| array::from_fn(|i| gather(field, lanes, |lane| out[(first + lane) * W + i]));
            let state: [F::Lanes; W] = match input {
                Input::Own => permutation.permute(own(out)),
                Input::Digests(children, group) => {
                    let children = words::<F>(children);
                    let mut state = zeros;
                    let used = group * shape.digest;
                    for (i, x) in state[..used].iter_mut().enumerate() {
                        *x = gather(field, lanes, |lane| children[(first + lane) * used + i]);
                    }
                    permutation.permute(state)
                }
                Input::Rows(Rows { values, columns, pitch, position, is_last }, start) => {
                    let values = words::<F>(values);
                    let mut state = match start {
                        Start::New => zeros,
                        Start::Own => own(out),
                        Start::Carried(states) => own(words::<F>(states)),
                    };
                    let mut base = -(position as isize);
                    while base < columns as isize {
                        let from = base.min(0).unsigned_abs();
                        let to = (columns as isize - base).min(shape.rate as isize) as usize;
                        for (i, x) in state[from..to].iter_mut().enumerate() {
                            let column = base.max(0) as usize + i;
                            *x = gather(field, lanes, |lane| values[(first + lane) * pitch + column]);
                        }
                        if to == shape.rate || is_last {
                            state = permutation.permute(state);
                        }
                        base += shape.rate as isize;
                    }
                    state
                }
            };
            let kept = if keeps_states { W } else { shape.digest };
            let distance = if keeps_states { W } else { stride * shape.digest };
            for (i, x) in state[..kept].iter().enumerate() {
                let mut values = [bytemuck::Zeroable::zeroed(); MAX_LANES];
                // SAFETY: there is a place for each lane.
                unsafe { field.store(values.as_mut_ptr(), *x) };
                for (lane, value) in values[..lanes].iter().enumerate() {
                    out[(first + lane) * distance + i] = *value;
                }
            }
        }
    }
}

#[inline(always)]
fn words<F: WordField>(limbs: &[u32]) -> &[F::Word] {
    bytemuck::cast_slice(limbs)
}

/// The values of some lanes, and zeros in the rest.
#[inline(always)]
fn gather<F: WordField>(field: F, lanes: usize, value: impl Fn(usize) -> F::Word) -> F::Lanes {
    let mut values = [bytemuck::Zeroable::zeroed(); MAX_LANES];
    for (lane, place) in values[..lanes].iter_mut().enumerate() {
        *place = value(lane);
    }
    // SAFETY: there is a value for each lane.
    unsafe { field.load(values.as_ptr()) }
}

/// The permutation of [`WordField::LANES`] states.
struct Permutation<'a, F: WordField, const W: usize> {
    field: F,
    alpha: u32,
    rounds: [usize; 2],
    constants: &'a [F::Word],
}

impl<F: WordField, const W: usize> Permutation<'_, F, W> {
    #[inline(always)]
    fn permute(&self, state: [F::Lanes; W]) -> [F::Lanes; W] {
        let field = self.field;
        let [end, diagonal, ones] = places(W, self.rounds);
        let mut s = self.mix(state);
        for (rows, is_first) in [(0..end, true), (end..diagonal, false)] {
            for constants in self.constants[rows].chunks_exact(W) {
                for (x, constant) in s.iter_mut().zip(constants) {
                    *x = self.power(field.add(*x, field.splat(*constant)));
                }
                s = self.mix(s);
            }
            if is_first {
                s = self.partial_rounds(s, &self.constants[diagonal..ones], &self.constants[ones..]);
            }
        }
        s
    }

    #[inline(always)]
    fn partial_rounds(&self, mut s: [F::Lanes; W], diagonal: &[F::Word], constants: &[F::Word]) -> [F::Lanes; W] {
        let field = self.field;
        for constant in &constants[..self.rounds[1]] {
            s[0] = self.power(field.add(s[0], field.splat(*constant)));
            let mut sum = s[0];
            for x in &s[1..] {
                sum = field.add(sum, *x);
            }
            for (x, factor) in s.iter_mut().zip(diagonal) {
                *x = field.add(sum, field.mul(*x, field.splat(*factor)));
            }
        }
        s
    }

    #[inline(always)]
    fn power(&self, x: F::Lanes) -> F::Lanes {
        let field = self.field;
        let square = field.mul(x, x);
        match self.alpha {
            3 => field.mul(square, x),
            5 => field.mul(field.mul(square, square), x),
            _ => field.mul(field.mul(square, square), field.mul(square, x)),
        }
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
