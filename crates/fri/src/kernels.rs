//! The kernels: their declarations, and their bodies for the CPU.

use ark_ff::{AdditiveGroup, Field};
use evariste_backend::{
    author::{Binding, CpuArg, KernelSpec, Language, Wiped, loop_iterations},
    parallel, params,
};
use evariste_field::{
    DeviceField,
    source::{self, binding_type, iterations},
};

use crate::{field::FriField, points::HALVES, text};

/// Threads of a workgroup: a fold by 16 over an extension of degree 4 keeps 64 words in registers.
pub(crate) const THREADS: u32 = 128;

/// Words of a buffer that one launch indexes, at most.
pub(crate) const WORDS: usize = 1 << 31;

/// Elements that a CPU thread computes at a time.
const GRAIN: usize = 256;

params! {
    /// What `fri_fold` takes.
    pub(crate) struct FoldParams {
        /// Elements of the output.
        pub(crate) len: u32,
        /// The number of the first of them.
        pub(crate) first: u32,
        /// log₂ of the first table of points.
        pub(crate) low_bits: u32,
    }

    /// What `fri_combine` takes.
    pub(crate) struct CombineParams {
        /// Rows.
        pub(crate) len: u32,
        /// Elements of a row that are combined.
        pub(crate) columns: u32,
        /// The distance of rows.
        pub(crate) pitch: u32,
        /// 1 if the output is added to.
        pub(crate) add: u32,
    }

    /// What `fri_denominators` takes.
    pub(crate) struct DenominatorParams {
        pub(crate) len: u32,
        /// The number of the first point.
        pub(crate) first: u32,
        pub(crate) low_bits: u32,
    }

    /// What `fri_evaluate` takes.
    pub(crate) struct EvaluateParams {
        /// Sums: stripes times columns.
        pub(crate) len: u32,
        pub(crate) columns: u32,
        pub(crate) rows: u32,
        /// Rows are summed up in so many parts, the rows of a part this far apart. There are no more than rows.
        pub(crate) stripes: u32,
    }

    /// What `fri_quotients` takes.
    pub(crate) struct QuotientParams {
        pub(crate) len: u32,
        /// 1 if the output is added to.
        pub(crate) add: u32,
    }
}

params! {
    /// What `fri_constraints` takes.
    pub(crate) struct ConstraintParams {
        /// Rows, and the number of the first of them.
        pub(crate) len: u32,
        pub(crate) first: u32,
        /// log₂ of all rows.
        pub(crate) log_rows: u32,
        /// The distances of rows and of columns.
        pub(crate) row_pitch: u32,
        pub(crate) column_pitch: u32,
        /// The distance of lists of selectors.
        pub(crate) selector_pitch: u32,
        pub(crate) instructions: u32,
        /// 1 if the output is added to.
        pub(crate) add: u32,
        /// 1 if the output is divided after these instructions.
        pub(crate) last: u32,
        /// Slots that are not in workgroup memory.
        pub(crate) spilled: u32,
    }
}

/// Elements of the prime field of `F`.
pub(crate) type Base<F> = <F as Field>::BasePrimeField;

/// Writes each element of `out`, by its number.
fn fill<F: DeviceField>(out: &mut [u32], len: u32, element: &(dyn Fn(usize, F) -> F + Sync)) {
    parallel::chunks(&mut out[..len as usize * F::LIMBS], GRAIN * F::LIMBS, &|chunk, out| {
        for (i, limbs) in out.chunks_exact_mut(F::LIMBS).enumerate() {
            element(chunk * GRAIN + i, F::load(limbs)).store(limbs);
        }
    });
}

pub(crate) fn at<F: DeviceField>(limbs: &[u32], i: usize) -> F {
    F::load(&limbs[i * F::LIMBS..][..F::LIMBS])
}

/// t(j) of a table of points.
fn point<B: DeviceField>(points: &[u32], j: usize, low_bits: u32) -> B {
    let low = 1 << low_bits;
    at::<B>(points, HALVES + (j & (low - 1))) * at::<B>(points, HALVES + low + (j >> low_bits))
}

/// Bindings of the prime field.
const BASE: [&str; 5] = ["points", "matrix", "inputs", "selectors", "spilled"];

/// The binding of instructions.
pub(crate) const CODE: &str = "code";

pub(crate) fn declare<F: FriField>(
    spec: KernelSpec,
    bindings: Vec<Binding>,
    define: String,
    more: String,
    [cuda, wgsl]: [&'static str; 2],
) -> KernelSpec {
    let is_base = |binding: &Binding| BASE.contains(&binding.name);
    let has_points = bindings.iter().any(|binding| binding.name == "points");
    spec.with_source(move |language| match language {
        Language::Cuda => {
            let points = if has_points { evariste_cuda::fri::POINTS } else { "" };
            [&source::cuda::<F>(), &text::cuda::<F>(), &format!("#define THREADS {THREADS}\n{define}"), points, cuda]
                .concat()
        }
        Language::Wgsl { int64 } => {
            let points = if has_points { evariste_shaders::fri::POINTS } else { "" };
            let accessors: String = bindings
                .iter()
                .filter(|binding| binding.name != CODE)
                .map(|binding| match is_base(binding) {
                    true => text::wgsl_accessors(binding, Base::<F>::LIMBS),
                    false => source::wgsl_accessors::<F>(binding),
                })
                .collect();
            [&source::wgsl::<F>(int64), &text::wgsl::<F>(), &accessors, points, &more, wgsl].concat()
        }
    })
    .threads(THREADS)
}

/// `fri_fold`, by 2^`log_arity`, with something added or not.
pub(crate) fn fold<F: FriField>(log_arity: u32, adds: bool) -> KernelSpec {
    let (word, base) = (binding_type::<F>(), binding_type::<Base<F>>());
    let first = [Binding::read("points", base), Binding::read("challenge", word), Binding::read("x", word)];
    let added = adds.then(|| Binding::read("added", word));
    let out = Binding::write("out", word);
    let bindings: Vec<Binding> = first.into_iter().chain(added).chain([out]).collect();
    let body = move |params: &FoldParams, args: FoldArgs<'_, '_>| {
        let ([points, challenge, x], added, out) = args;
        let (points, challenge, x): (&[u32], &[u32], &[u32]) = (points.read(), challenge.read(), x.read());
        let added: Option<&[u32]> = added.map(|added| added.read());
        let base = |i: usize| at::<Base<F>>(points, i);
        let (challenge, factor) = (at::<F>(challenge, 0), at::<F>(challenge, 1));
        fill::<F>(out.write(), params.len, &|i, _| {
            let j = (params.first as usize + i) << (log_arity - 1);
            let mut u = challenge.mul_by_base_prime_field(&point(points, j, params.low_bits));
            let mut values = [F::ZERO; 16];
            for (j, value) in values[..1 << log_arity].iter_mut().enumerate() {
                *value = at(x, (i << log_arity) + j);
            }
            for step in 0..log_arity {
                if step > 0 {
                    u.square_in_place();
                }
                for j in 0..1 << (log_arity - 1 - step) {
                    let (a, b) = (values[2 * j], values[2 * j + 1]);
                    let difference = match j {
                        0 => a - b,
                        _ => (a - b).mul_by_base_prime_field(&base(HALVES + j)),
                    };
                    values[j] = a + b + u * difference;
                }
            }
            let value = values[0].mul_by_base_prime_field(&base(log_arity as usize));
            added.map_or(value, |added| value + factor * at::<F>(added, i))
        });
    };
    let adding = if adds { ", added to" } else { "" };
    let variant = format!("{}, by {}{adding}", source::label::<F>(), 1 << log_arity);
    let spec = KernelSpec::new("fri_fold", variant, (first, added, out), body, |_| String::new());
    let buffer = if adds { ", F" } else { "" };
    let define = format!("#define ADDED {}\n#define ADDED_BUFFER {buffer}\n", u8::from(adds));
    let sum = if adds { "f_add(r, f_mul(challenge_load(1u), added_load(i)))" } else { "r" };
    let more = text::wgsl_fold_row(log_arity) + &format!("fn folded(i: u32, r: F) -> F {{ return {sum}; }}\n");
    let steps = u64::from(log_arity) + (2 << log_arity);
    let mul = iterations::mul::<F>();
    declare::<F>(spec, bindings, define, more, [evariste_cuda::fri::FOLD, evariste_shaders::fri::FOLD])
        .constants(&[("FOLDED", log_arity)])
        .iterations(move |_: &FoldParams| steps * mul)
}

/// The buffers of `fri_fold`: points, the challenge and the values, what is added, and the output.
type FoldArgs<'a, 'm> = (&'a mut [CpuArg<'m>; 3], Option<&'a mut CpuArg<'m>>, &'a mut CpuArg<'m>);

/// `fri_combine`.
pub(crate) fn combine<F: FriField>() -> KernelSpec {
    let word = binding_type::<F>();
    let bindings = [
        Binding::read("weights", word),
        Binding::read("matrix", binding_type::<Base<F>>()),
        Binding::write("out", word),
    ];
    let body = |params: &CombineParams, [weights, matrix, out]: &mut [CpuArg<'_>; 3]| {
        let (weights, matrix): (&[u32], &[u32]) = (weights.read(), matrix.read());
        let weights: Vec<F> = (0..params.columns as usize).map(|c| at(weights, c)).collect();
        fill::<F>(out.write(), params.len, &|i, before| {
            let row = i * params.pitch as usize;
            let terms = weights.iter().enumerate();
            let sum: F = terms.map(|(c, weight)| weight.mul_by_base_prime_field(&at(matrix, row + c))).sum();
            if params.add == 1 { before + sum } else { sum }
        });
    };
    let spec = KernelSpec::new("fri_combine", source::label::<F>(), bindings, body, |_| String::new());
    let sources = [evariste_cuda::fri::COMBINE, evariste_shaders::fri::COMBINE];
    let mul = iterations::mul::<F>();
    declare::<F>(spec, bindings.to_vec(), String::new(), String::new(), sources)
        .iterations(move |params: &CombineParams| loop_iterations(params.columns.into(), mul))
}

/// `fri_denominators`.
pub(crate) fn denominators<F: FriField>() -> KernelSpec {
    let word = binding_type::<F>();
    let bindings =
        [Binding::read("points", binding_type::<Base<F>>()), Binding::read("z", word), Binding::write("out", word)];
    let body = |params: &DenominatorParams, [points, z, out]: &mut [CpuArg<'_>; 3]| {
        let (points, z): (&[u32], F) = (points.read(), at(z.read(), 0));
        fill::<F>(out.write(), params.len, &|i, _| {
            let number = params.first as usize + i;
            let x = F::from_base_prime_field(point(points, number / 2, params.low_bits));
            if number % 2 == 1 { z + x } else { z - x }
        });
    };
    let spec = KernelSpec::new("fri_denominators", source::label::<F>(), bindings, body, |_| String::new());
    let sources = [evariste_cuda::fri::DENOMINATORS, evariste_shaders::fri::DENOMINATORS];
    let mul = iterations::mul::<F>();
    declare::<F>(spec, bindings.to_vec(), String::new(), String::new(), sources)
        .iterations(move |_: &DenominatorParams| mul)
}

/// `fri_evaluate`.
pub(crate) fn evaluate<F: FriField>() -> KernelSpec {
    let word = binding_type::<F>();
    let bindings = [
        Binding::read("z", word),
        Binding::read("inverses", word),
        Binding::read("matrix", binding_type::<Base<F>>()),
        Binding::write("out", word),
    ];
    let body = |params: &EvaluateParams, [z, inverses, matrix, out]: &mut [CpuArg<'_>; 4]| {
        let (z, inverses, matrix): (F, &[u32], &[u32]) = (at(z.read(), 0), inverses.read(), matrix.read());
        let [columns, rows, stripes] = [params.columns, params.rows, params.stripes].map(|count| count as usize);
        let out: &mut [u32] = out.write();
        parallel::chunks(&mut out[..params.len as usize * F::LIMBS], columns * F::LIMBS, &|stripe, out| {
            let mut sums = Wiped::from(vec![(F::ZERO, Base::<F>::ZERO); columns]);
            for row in (stripe..rows).step_by(stripes) {
                let inverse = at::<F>(inverses, row);
                for (c, (sum, plain)) in sums.iter_mut().enumerate() {
                    let value = at::<Base<F>>(matrix, row * columns + c);
                    *sum += inverse.mul_by_base_prime_field(&value);
                    *plain += value;
                }
            }
            for ((sum, plain), limbs) in sums.iter().zip(out.chunks_exact_mut(F::LIMBS)) {
                (z * *sum - F::from_base_prime_field(*plain)).store(limbs);
            }
        });
    };
    let spec = KernelSpec::new("fri_evaluate", source::label::<F>(), bindings, body, |_| String::new());
    let sources = [evariste_cuda::fri::EVALUATE, evariste_shaders::fri::EVALUATE];
    let mul = iterations::mul::<F>();
    declare::<F>(spec, bindings.to_vec(), String::new(), String::new(), sources).iterations(
        move |params: &EvaluateParams| loop_iterations(params.rows.div_ceil(params.stripes.max(1)).into(), mul),
    )
}

/// `fri_quotients`.
pub(crate) fn quotients<F: FriField>() -> KernelSpec {
    let word = binding_type::<F>();
    let bindings = [
        Binding::read("scalars", word),
        Binding::read("combined", word),
        Binding::read("inverses", word),
        Binding::write("out", word),
    ];
    let body = |params: &QuotientParams, [scalars, combined, inverses, out]: &mut [CpuArg<'_>; 4]| {
        let [at_z, factor] = [0, 1].map(|i| at::<F>(scalars.read(), i));
        let (combined, inverses): (&[u32], &[u32]) = (combined.read(), inverses.read());
        fill::<F>(out.write(), params.len, &|i, before| {
            let quotient = (at_z - factor * at::<F>(combined, i)) * at::<F>(inverses, i);
            if params.add == 1 { before + quotient } else { quotient }
        });
    };
    let spec = KernelSpec::new("fri_quotients", source::label::<F>(), bindings, body, |_| String::new());
    let sources = [evariste_cuda::fri::QUOTIENTS, evariste_shaders::fri::QUOTIENTS];
    let mul = iterations::mul::<F>();
    declare::<F>(spec, bindings.to_vec(), String::new(), String::new(), sources)
        .iterations(move |_: &QuotientParams| 2 * mul)
}

/// Workgroups of one thread an element.
pub(crate) fn groups(threads: usize) -> u64 {
    (threads as u64).div_ceil(THREADS.into())
}
