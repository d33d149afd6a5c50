//! Challenges that kernels draw themselves.

use std::fmt::Write;

use ark_ff::PrimeField;
use evariste_backend::author::Wiped;
use evariste_field::{
    DeviceField,
    source::{self, cuda_words, iterations as loops, list, wgsl_words},
};

use crate::{
    params::{Params, threads},
    polynomial::{evaluate, interpolate, interpolate_with_top},
    program::EvaluationPoints,
    transcript::{Blake3Transcript, blocks, bytes_of},
};

/// Bits of output that a coefficient of a challenge is made of.
const WIDE_BITS: usize = 512;

/// Words of a message, whole blocks of 16.
fn words<E: DeviceField>(degree: usize) -> usize {
    (2 + degree * E::LIMBS).next_multiple_of(16)
}

/// Workgroup memory beside the tile: values, a message, its words and the pieces of a challenge.
pub(crate) fn shared_bytes<E: DeviceField>(degree: usize) -> u32 {
    let drawn = 4 * (words::<E>(degree) + lanes::<E>() * E::LIMBS);
    source::tile_bytes::<E>(2 * degree as u32 + 1) + drawn as u32
}

/// Whether kernels can draw challenges of `E` for messages of `degree` elements. One thread makes a challenge as an
/// element, another one as an integer. Its coefficients come from one block of output.
pub(crate) fn can<E: DeviceField>(degree: usize) -> bool {
    let (threads, extension) = (threads::<E>() as usize, E::extension_degree() as usize);
    2 * degree <= threads && blocks::<E>() == 1 && extension * lanes::<E>() < threads
}

/// Pieces of a coefficient's output, each of fewer bits than the prime has.
fn pieces<E: DeviceField>() -> usize {
    WIDE_BITS.div_ceil(prime::<E>().1 - 1)
}

/// Threads that share a coefficient.
fn lanes<E: DeviceField>() -> usize {
    pieces::<E>().min(4)
}

/// Threads that share a coefficient of a message, in one of both forms.
fn parts<E: DeviceField>(degree: usize) -> usize {
    (degree + 1).min(threads::<E>() as usize / (2 * degree).max(1))
}

/// Iterations of the loops of a thread.
pub(crate) fn iterations<E: DeviceField>(
    degree: usize,
    previous: Option<&EvaluationPoints>,
) -> impl Fn(&Params) -> u64 + Send + Sync + 'static {
    let (threads, mul) = (u64::from(threads::<E>()), loops::mul::<E>());
    let points = previous.map(EvaluationPoints::len);
    let blocks = words::<E>(degree) as u64 / 16;
    let parts = parts::<E>(degree) as u64;
    move |params: &Params| {
        let Some(points) = points else { return 0 };
        let sums = loops::repeat(u64::from(params.previous_chunks).div_ceil(threads), 0);
        let tree = loops::repeat(threads.ilog2().into(), 0);
        let hash = loops::repeat(8, 0) + loops::repeat(blocks, 60) + 20;
        loops::repeat(points as u64, sums + tree)
            + loops::repeat((degree as u64 + 1).div_ceil(parts), mul)
            + loops::repeat(parts, 0)
            + loops::repeat(degree as u64, mul)
            + hash
            + 20 * mul
    }
}

/// Limbs and bits of the prime field.
fn prime<E: DeviceField>() -> (usize, usize) {
    let bits = <E::BasePrimeField as PrimeField>::MODULUS_BIT_SIZE as usize;
    (E::LIMBS / E::extension_degree() as usize, bits)
}

/// 2^((bits − 1) j + 32 limbs) for each piece of bits − 1 bits of a coefficient's output.
fn scales<E: DeviceField>() -> Vec<Vec<u32>> {
    let (limbs, bits) = prime::<E>();
    let scale = |piece: usize| {
        let mut words = vec![0; E::LIMBS];
        E::from(2u8).pow([((bits - 1) * piece + 32 * limbs) as u64]).store(&mut words);
        words.truncate(limbs);
        words
    };
    (0..pieces::<E>()).map(scale).collect()
}

/// `draw` in CUDA, for messages of `degree` elements.
pub(crate) fn cuda<E: DeviceField>(degree: usize, previous: &EvaluationPoints) -> String {
    let ((limbs, bits), extension) = (prime::<E>(), E::extension_degree());
    let (upper, lower) = if extension == 1 { ("F", "f") } else { ("B", "b") };
    let scales = scales::<E>();
    format!(
        "#define DEGREE {degree}\n#define PREVIOUS_POINTS {}\n#define PREVIOUS_FIRST {}\ntypedef {upper} P;\n\
         #define p_zero {lower}_zero\n#define p_add {lower}_add\n#define p_mul {lower}_mul\n#define PRIME_LIMBS {limbs}\n\
         #define PRIME_BITS {bits}\n#define PRIME_DEGREE {extension}\n#define WIDE {{{}}}\n{}",
        previous.len(),
        u8::from(previous.zero),
        list(scales.len(), |piece| format!("{{{}}}", cuda_words(&scales[piece]))),
        evariste_cuda::sumcheck::DRAW,
    )
}

/// `draw` in WGSL.
pub(crate) fn wgsl<E: DeviceField>(degree: usize, previous: &EvaluationPoints) -> String {
    let ((limbs, bits), extension) = (prime::<E>(), E::extension_degree() as usize);
    let (upper, lower) = if extension == 1 { ("F", "f") } else { ("B", "b") };
    let mut text = format!(
        "const DEGREE = {degree}u;\nconst LIMBS = {}u;\nconst PRIME_LIMBS = {limbs}u;\nconst PRIME_DEGREE = {extension}u;\n\
         const PREVIOUS_POINTS = {}u;\nconst PREVIOUS_FIRST = {}u;\nconst TOTAL = {}u;\nconst WORDS = {}u;\n\
         const LANES = {}u;\nconst PARTS = {}u;\nvar<workgroup> values: array<F, {}>;\nvar<workgroup> message: array<F, {}>;\n\
         var<workgroup> words: array<u32, {}>;\nvar<workgroup> pieces: array<u32, {}>;\n",
        E::LIMBS,
        previous.len(),
        u8::from(previous.zero),
        2 + degree * E::LIMBS,
        words::<E>(degree),
        lanes::<E>(),
        parts::<E>(degree),
        degree + 1,
        degree.max(1),
        words::<E>(degree),
        lanes::<E>() * E::LIMBS,
    );
    let _ = writeln!(text, "fn put_words(x: F, at: u32) {{");
    for part in 0..extension {
        let path = if extension == 1 { "x".into() } else { format!("x.c{part}") };
        for i in 0..limbs {
            let _ = writeln!(text, "    words[at + {}u] = {path}.l{i};", part * limbs + i);
        }
    }
    // What a lane has of the integer of 16 words modulo the prime, by one multiplication in the text.
    let scales = scales::<E>();
    let slots = scales.len().div_ceil(lanes::<E>());
    let _ = writeln!(
        text,
        "}}\nfn wide_part(lane: u32, at: u32) {{\n    var sum = {lower}_zero();\n    for (var slot = 0u; slot < {slots}u; slot++) {{\n        \
         var part = {lower}_zero();\n        var scale = {lower}_zero();\n        switch slot * LANES + lane {{"
    );
    for (piece, scale) in scales.iter().enumerate() {
        let limb = |i: usize| {
            let (bit, left) = ((bits - 1) * piece + 32 * i, (bits - 1).saturating_sub(32 * i));
            let word = |k: usize| if k < 16 { format!("blake[{k}]") } else { "0u".into() };
            let whole = match bit % 32 {
                0 => word(bit / 32),
                shift => format!("({} >> {shift}u) | ({} << {}u)", word(bit / 32), word(bit / 32 + 1), 32 - shift),
            };
            if left >= 32 { whole } else { format!("({whole}) & {}u", (1u64 << left) - 1) }
        };
        let (part, scale) = (list(limbs, limb), wgsl_words(scale));
        let _ = writeln!(text, "        case {piece}u: {{ part = {upper}({part}); scale = {upper}({scale}); }}");
    }
    let _ = writeln!(
        text,
        "        default: {{}}\n        }}\n        sum = {lower}_add(sum, {lower}_mul(part, scale));\n    }}"
    );
    for i in 0..limbs {
        let _ = writeln!(text, "    pieces[at + {i}u] = sum.l{i};");
    }
    let sum = |part: usize| {
        let lane = |lane: usize| {
            let at = (part * lanes::<E>() + lane) * limbs;
            format!("{upper}({})", list(limbs, |i| format!("pieces[{}]", at + i)))
        };
        (1..lanes::<E>()).fold(lane(0), |sum, next| format!("{lower}_add({sum}, {})", lane(next)))
    };
    let value = match extension {
        1 => sum(0),
        _ => format!("F({})", list(extension, sum)),
    };
    text + &format!("}}\nfn drawn_value() -> F {{ return {value}; }}\n") + evariste_shaders::sumcheck::DRAW
}

/// `draw` on the CPU.
pub(crate) fn body<E: DeviceField>(
    params: &Params,
    degree: usize,
    previous: &EvaluationPoints,
    inputs: &[E],
    partials: &mut [u32],
    state: &mut [u32],
) -> E {
    let load = |partials: &[u32], at: usize| E::load(&partials[at * E::LIMBS..]);
    let (points, now) = (previous.len(), (params.parity & 1) as usize);
    let mut values = Wiped::from(vec![E::ZERO; degree.max(1) + 1]);
    values[0] = load(partials, params.claim_at as usize + now);
    for point in 0..points {
        let at = |chunk: usize| params.previous_at as usize + chunk * points + point;
        let sum = (0..params.previous_chunks as usize).map(|chunk| load(partials, at(chunk))).sum();
        values[2 + point - usize::from(previous.zero)] = sum;
    }
    let row = |j: usize| {
        let line = &inputs[params.lines_at as usize + 2 * j..][..2];
        let others = &inputs[params.matrix_at as usize + j * (degree - 1)..][..degree - 1];
        line.iter().chain(others).zip(values.iter()).map(|(factor, value)| *factor * value).sum()
    };
    let message: Vec<E> = (0..degree).map(row).collect();
    for (j, coefficient) in message.iter().enumerate() {
        coefficient.store(&mut partials[(params.message_at as usize + j) * E::LIMBS..]);
    }
    let next = 1 - now;
    let mut transcript = Blake3Transcript::from_words(&state[8 * now..8 * now + 8]);
    transcript.absorb(&bytes_of(&message));
    state[8 * next..8 * next + 8].copy_from_slice(&transcript.words());
    let challenge = transcript.challenge();
    let zero = if previous.zero { values[1 - (params.ones & 1) as usize] } else { E::ZERO };
    let polynomial: Vec<E> = [zero].iter().chain(&message).copied().collect();
    evaluate(&polynomial, challenge).store(&mut partials[(params.claim_at as usize + next) * E::LIMBS..]);
    challenge
}

/// Columns that make messages of values. For each round come the factors of its sum and of its first value in each
/// coefficient of X to X^degree. Then come the factors of the values at 2, 3, … and infinity, for any round. Each
/// stands twice: as an element, and so that its products are the integers of coefficients.
pub(crate) struct Interpolation<E> {
    /// The columns of what values at 0, at 1, and the others, count.
    columns: Vec<Vec<E>>,
    /// An element whose product with another one has its integer for limbs.
    integer: E,
}

impl<E: DeviceField> Interpolation<E> {
    /// For polynomials of this degree.
    pub(crate) fn new(degree: usize) -> Self {
        let column = |k| {
            let unit = |i: usize| if i == k { E::ONE } else { E::ZERO };
            let polynomial = match degree {
                1 => interpolate(&[unit(0), unit(1)]),
                _ => interpolate_with_top(&(0..degree).map(unit).collect::<Vec<_>>(), unit(degree)),
            };
            polynomial[1..].to_vec()
        };
        let mut one = vec![0; E::LIMBS];
        one[0] = 1;
        Self { columns: (0..=degree).map(column).collect(), integer: E::load(&one) }
    }

    /// Those of rounds with these weights at 0 and 1, whose sum is w₀ q(0) + w₁ q(1). In the first round, q may be
    /// known to be 0 at both.
    pub(crate) fn lines(&self, weights: &[[E; 2]], zero: bool, out: &mut Vec<E>) {
        let mut inverses: Vec<E> = weights.iter().map(|[_, w1]| *w1).collect();
        // On this thread: arkworks' parallel one wakes others for a few elements, which takes 0.3 ms.
        ark_ff::serial_batch_inversion_and_mul(&mut inverses, &E::ONE);
        for (round, ([w0, w1], inverse)) in weights.iter().zip(inverses).enumerate() {
            let lines = self.columns[0].iter().zip(&self.columns[1]).map(|(at_zero, at_one)| match w1 {
                _ if zero && round == 0 => [E::ZERO; 2],
                // It was evaluated at 1, and w₀ is 1.
                w1 if *w1 == E::ZERO => [*at_zero, *at_one],
                _ => {
                    let sum = *at_one * inverse;
                    [sum, *at_zero - sum * w0]
                }
            });
            let lines: Vec<E> = lines.flatten().collect();
            out.extend(&lines);
            out.extend(lines.iter().map(|factor| *factor * self.integer));
        }
    }

    /// Those of the other values.
    pub(crate) fn others(&self, out: &mut Vec<E>) {
        let start = out.len();
        for row in 0..self.columns[0].len() {
            out.extend(self.columns[2..].iter().map(|column| column[row]));
        }
        let integers: Vec<E> = out[start..].iter().map(|factor| *factor * self.integer).collect();
        out.extend(integers);
    }
}
