//! Challenges that kernels draw themselves.

use std::fmt::Write;

use ark_ff::PrimeField;
use evariste_field::{
    DeviceField,
    source::{self, turns as loops},
};

use crate::{
    Blake3Transcript,
    polynomial::{evaluate, interpolate, interpolate_with_top},
    program::Points,
    round::{Params, threads},
    transcript::{blocks, bytes_of},
};

/// Bits of output that a coefficient of a challenge is made of.
const WIDE_BITS: usize = 512;

/// Words of a message, whole blocks of 16.
fn words<E: DeviceField>(degree: usize) -> usize {
    (2 + degree * E::LIMBS).next_multiple_of(16)
}

/// Workgroup memory beside the tile.
pub(crate) fn shared_bytes<E: DeviceField>(degree: usize) -> u32 {
    let drawn = 4 * (words::<E>(degree) + E::LIMBS);
    source::tile_bytes::<E>(degree as u32 + 1) + drawn as u32
}

/// Whether kernels can draw challenges of `E` for messages of so many elements: a thread makes each, and coefficients come from
/// one block of output.
pub(crate) fn can<E: DeviceField>(degree: usize) -> bool {
    degree <= threads::<E>() as usize && blocks::<E>() == 1 && E::extension_degree() < threads::<E>().into()
}

/// Turns of the loops of a thread.
pub(crate) fn turns<E: DeviceField>(
    degree: usize,
    previous: Option<&Points>,
) -> impl Fn(&Params) -> u64 + Send + Sync + 'static {
    let (threads, mul) = (u64::from(threads::<E>()), loops::mul::<E>());
    let points = previous.map(Points::len);
    let blocks = words::<E>(degree) as u64 / 16;
    move |params: &Params| {
        let Some(points) = points else { return 0 };
        let sums = loops::repeat(u64::from(params.previous_chunks).div_ceil(threads), 0);
        let tree = loops::repeat(threads.ilog2().into(), 0);
        let hash = loops::repeat(8, 0) + loops::repeat(blocks, 60) + 20;
        loops::repeat(points as u64, sums + tree)
            + loops::repeat(2, mul)
            + 2 * loops::repeat(degree as u64 + 1, mul)
            + hash
            + 40 * mul
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
    (0..WIDE_BITS.div_ceil(bits - 1)).map(scale).collect()
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    items.into_iter().collect::<Vec<_>>().join(", ")
}

/// `draw` in CUDA, for messages of so many elements.
pub(crate) fn cuda<E: DeviceField>(degree: usize, previous: &Points) -> String {
    let ((limbs, bits), extension) = (prime::<E>(), E::extension_degree());
    let (upper, lower) = if extension == 1 { ("F", "f") } else { ("B", "b") };
    let row = |words: &Vec<u32>| format!("{{{}}}", list(words.iter().map(|word| format!("{word:#010x}u"))));
    format!(
        "#define DEGREE {degree}\n#define PREVIOUS_POINTS {}\n#define PREVIOUS_FIRST {}\ntypedef {upper} P;\n\
         #define p_zero {lower}_zero\n#define p_add {lower}_add\n#define p_mul {lower}_mul\n#define PRIME_LIMBS {limbs}\n\
         #define PRIME_BITS {bits}\n#define PRIME_DEGREE {extension}\n#define WIDE {{{}}}\n{}",
        previous.len(),
        u8::from(previous.first),
        list(scales::<E>().iter().map(row)),
        evariste_cuda::SUMCHECK_DRAW,
    )
}

/// `draw` in WGSL.
pub(crate) fn wgsl<E: DeviceField>(degree: usize, previous: &Points) -> String {
    let ((limbs, bits), extension) = (prime::<E>(), E::extension_degree() as usize);
    let (upper, lower) = if extension == 1 { ("F", "f") } else { ("B", "b") };
    let mut text = format!(
        "const DEGREE = {degree}u;\nconst LIMBS = {}u;\nconst PRIME_LIMBS = {limbs}u;\nconst PRIME_DEGREE = {extension}u;\n\
         const PREVIOUS_POINTS = {}u;\nconst PREVIOUS_FIRST = {}u;\nconst TOTAL = {}u;\nconst WORDS = {}u;\n\
         var<workgroup> values: array<F, {}>;\nvar<workgroup> words: array<u32, {}>;\nvar<workgroup> drawn: array<u32, {}>;\n",
        E::LIMBS,
        previous.len(),
        u8::from(previous.first),
        2 + degree * E::LIMBS,
        words::<E>(degree),
        degree + 1,
        words::<E>(degree),
        E::LIMBS,
    );
    // The coefficients of an element as integers.
    let one = list((0..limbs).map(|i| format!("{}u", u8::from(i == 0))));
    let _ = writeln!(text, "fn canonical(x: F, at: u32) {{");
    for part in 0..extension {
        let path = if extension == 1 { "x".into() } else { format!("x.c{part}") };
        let _ = writeln!(text, "    let p{part} = {lower}_mul({path}, {upper}({one}));");
        for i in 0..limbs {
            let _ = writeln!(text, "    words[at + {}u] = p{part}.l{i};", part * limbs + i);
        }
    }
    // The integer of 16 words modulo the prime.
    let _ = writeln!(text, "}}\nfn wide_value(at: u32) {{\n    var sum = {lower}_zero();");
    for (piece, scale) in scales::<E>().iter().enumerate() {
        let limb = |i: usize| {
            let (bit, left) = ((bits - 1) * piece + 32 * i, (bits - 1).saturating_sub(32 * i));
            let word = |k: usize| if k < 16 { format!("blake[{k}]") } else { "0u".into() };
            let whole = match bit % 32 {
                0 => word(bit / 32),
                shift => format!("({} >> {shift}u) | ({} << {}u)", word(bit / 32), word(bit / 32 + 1), 32 - shift),
            };
            if left >= 32 { whole } else { format!("({whole}) & {}u", (1u64 << left) - 1) }
        };
        let (part, scale) = (list((0..limbs).map(limb)), list(scale.iter().map(|word| format!("{word}u"))));
        let _ = writeln!(text, "    sum = {lower}_add(sum, {lower}_mul({upper}({part}), {upper}({scale})));");
    }
    for i in 0..limbs {
        let _ = writeln!(text, "    drawn[at + {i}u] = sum.l{i};");
    }
    let coefficient = |part: usize| {
        let limbs = list((0..limbs).map(|i| format!("drawn[{}]", part * limbs + i)));
        format!("{upper}({limbs})")
    };
    let value = match extension {
        1 => coefficient(0),
        _ => format!("F({})", list((0..extension).map(coefficient))),
    };
    text + &format!("}}\nfn drawn_value() -> F {{ return {value}; }}\n") + evariste_shaders::SUMCHECK_DRAW
}

/// `draw` on the CPU.
pub(crate) fn body<E: DeviceField>(
    params: &Params,
    degree: usize,
    previous: &Points,
    inputs: &[E],
    partials: &mut [u32],
    state: &mut [u32],
) -> E {
    let load = |partials: &[u32], at: usize| E::load(&partials[at * E::LIMBS..]);
    let points = previous.len();
    let mut values = vec![E::ZERO; degree.max(1) + 1];
    for point in 0..points {
        let at = |chunk: usize| params.previous_at as usize + chunk * points + point;
        let sum = (0..params.previous_chunks as usize).map(|chunk| load(partials, at(chunk))).sum();
        let slot = match previous.first && point == 0 {
            true => params.previous_at_one as usize,
            false => 2 + point - usize::from(previous.first),
        };
        values[slot] = sum;
    }
    let (now, next) = (params.parity as usize, 1 - params.parity as usize);
    let sum = load(partials, params.claim_at as usize + now);
    if previous.first {
        let weights = &inputs[params.weights_at as usize..];
        match params.previous_at_one {
            0 => values[1] = (sum - weights[0] * values[0]) * weights[1],
            _ => values[0] = sum,
        }
    }
    let row = |j: usize| {
        let row = &inputs[params.matrix_at as usize + j * (degree + 1)..];
        row.iter().zip(&values).map(|(factor, value)| *factor * value).sum()
    };
    let message: Vec<E> = (0..degree).map(row).collect();
    for (j, coefficient) in message.iter().enumerate() {
        coefficient.store(&mut partials[(params.message_at as usize + j) * E::LIMBS..]);
    }
    let mut transcript = Blake3Transcript::from_words(&state[8 * now..8 * now + 8]);
    transcript.absorb(&bytes_of(&message));
    state[8 * next..8 * next + 8].copy_from_slice(&transcript.words());
    let challenge = transcript.challenge();
    let polynomial: Vec<E> = values[..1].iter().chain(&message).copied().collect();
    evaluate(&polynomial, challenge).store(&mut partials[(params.claim_at as usize + next) * E::LIMBS..]);
    challenge
}

/// The matrix that makes the coefficients of X to X^degree of values at 0, 1, … and infinity, as `draw` has them.
pub(crate) fn matrix<E: DeviceField>(degree: usize) -> Vec<E> {
    let columns: Vec<Vec<E>> = (0..=degree)
        .map(|k| {
            let unit = |i: usize| if i == k { E::ONE } else { E::ZERO };
            match degree {
                1 => interpolate(&[unit(0), unit(1)]),
                _ => interpolate_with_top(&(0..degree).map(unit).collect::<Vec<_>>(), unit(degree)),
            }
        })
        .collect();
    (1..=degree).flat_map(|j| columns.iter().map(move |column| column[j]).collect::<Vec<_>>()).collect()
}
