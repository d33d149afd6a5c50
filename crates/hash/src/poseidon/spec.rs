//! The kernels: their declarations, their text in WGSL, and their bodies for the CPU.

use evariste_backend::{
    author::{Binding, CpuArg, KernelSpec, Language, Wiped, loop_iterations},
    parallel, params,
};
#[cfg(target_arch = "x86_64")]
use evariste_field::ifma::{Montgomery52, STEP};
use evariste_field::{
    DevicePrimeField,
    source::{self, binding_type, iterations},
};

#[cfg(target_arch = "x86_64")]
use super::lanes;

/// Threads of a workgroup.
pub(super) const THREADS: u32 = 128;

/// States that a CPU thread takes at a time: those of a step in lanes.
const GRAIN: usize = 16;

/// States from which on a step in lanes takes less time than one by one.
#[cfg(target_arch = "x86_64")]
const FEW_STATES: usize = 4;

params! {
    /// What both kernels take.
    pub(super) struct Params {
        /// How many states.
        pub(super) len: u32,
        /// Full rounds at each end.
        pub(super) half: u32,
        /// Partial rounds.
        pub(super) partial: u32,
    }
}

/// What the text of kernels depends on, beside the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) width: usize,
    pub(super) alpha: u32,
}

impl Shape {
    fn declare<F: DevicePrimeField>(
        self,
        spec: KernelSpec,
        bindings: Vec<Binding>,
        cuda: &'static str,
        more: String,
        kernel: &'static str,
    ) -> KernelSpec {
        let Self { width, alpha } = self;
        spec.with_source(move |language| match language {
            Language::Cuda => {
                let threads = format!("#define THREADS {THREADS}\n");
                [&source::cuda::<F>(), &threads, evariste_cuda::hash::POSEIDON, cuda].concat()
            }
            Language::Wgsl { int64 } => {
                let accessors: String = bindings.iter().map(source::wgsl_accessors::<F>).collect();
                [&source::wgsl::<F>(int64), &accessors, &permutation(width, alpha), &more, kernel].concat()
            }
        })
        .threads(THREADS)
        .constants(&[("WIDTH", width as u32), ("ALPHA", alpha)])
        .iterations(move |params: &Params| {
            let (mul, width) = (iterations::mul::<F>(), width as u64);
            let (multiply, power) = (loop_iterations(width, width * mul), 4 * mul);
            let full = loop_iterations(width, power) + multiply;
            let partial = power + mul + loop_iterations(width, 2 * mul);
            2 * loop_iterations(params.half.into(), full)
                + loop_iterations(params.partial.into(), partial)
                + power
                + multiply
        })
    }

    fn variant<F: DevicePrimeField>(self) -> String {
        format!("{}, width {}, x^{}", source::label::<F>(), self.width, self.alpha)
    }
}

/// `poseidon_permute`, of states in place.
pub(super) fn permute<F: DevicePrimeField>(shape: Shape) -> KernelSpec {
    let word = binding_type::<F>();
    let bindings = [Binding::read("constants", word), Binding::write("states", word)];
    let body = move |params: &Params, [constants, states]: &mut [CpuArg<'_>; 2]| {
        let permutation = Permutation::<F>::new(shape, params, constants.read());
        let limbs = shape.width * F::LIMBS;
        let states = &mut states.write()[..params.len as usize * limbs];
        parallel::chunks(states, GRAIN * limbs, &|_, states| permutation.permute_all(states));
    };
    let spec = KernelSpec::new("poseidon_permute", shape.variant::<F>(), bindings, body, |_| String::new());
    let load = list(shape.width, &|k| format!("states_load(at + {k}u)"));
    let store: String = (0..shape.width).map(|k| format!("  states_store(at + {k}u, s.s{k});\n")).collect();
    let more = format!(
        "fn states_load_state(at: u32) -> State {{\n  return State({load});\n}}\n\
         fn states_store_state(at: u32, s: State) {{\n{store}}}\n"
    );
    let (cuda, wgsl) = (evariste_cuda::hash::POSEIDON_PERMUTE, evariste_shaders::hash::POSEIDON_PERMUTE);
    shape.declare::<F>(spec, bindings.to_vec(), cuda, more, wgsl)
}

/// `poseidon_hash`, of rows of one element less than a state.
pub(super) fn hash<F: DevicePrimeField>(shape: Shape) -> KernelSpec {
    let word = binding_type::<F>();
    let bindings = [Binding::read("constants", word), Binding::read("x", word), Binding::write("out", word)];
    let body = move |params: &Params, [constants, x, out]: &mut [CpuArg<'_>; 3]| {
        let permutation = Permutation::<F>::new(shape, params, constants.read());
        let (x, limbs) = (x.read::<u32>(), (shape.width - 1) * F::LIMBS);
        let out = &mut out.write()[..params.len as usize * F::LIMBS];
        parallel::chunks(out, GRAIN * F::LIMBS, &|chunk, out| {
            let rows = x[chunk * GRAIN * limbs..].chunks_exact(limbs);
            let each = limbs + F::LIMBS;
            let mut states = Wiped::from(vec![0u32; out.len() / F::LIMBS * each]);
            states.chunks_exact_mut(each).zip(rows).for_each(|(state, row)| state[F::LIMBS..].copy_from_slice(row));
            permutation.permute_all(&mut states);
            let states = states.chunks_exact(each);
            out.chunks_exact_mut(F::LIMBS).zip(states).for_each(|(out, state)| out.copy_from_slice(&state[..F::LIMBS]));
        });
    };
    let spec = KernelSpec::new("poseidon_hash", shape.variant::<F>(), bindings, body, |_| String::new());
    let row = list(shape.width, &|k| if k == 0 { "f_zero()".to_owned() } else { format!("x_load(at + {}u)", k - 1) });
    let more = format!("fn x_load_row(at: u32) -> State {{\n  return State({row});\n}}\n");
    let (cuda, wgsl) = (evariste_cuda::hash::POSEIDON_HASH, evariste_shaders::hash::POSEIDON_HASH);
    shape.declare::<F>(spec, bindings.to_vec(), cuda, more, wgsl).within_a_buffer()
}

/// The permutation on the host, by the same constants.
struct Permutation<F> {
    alpha: u32,
    half: usize,
    partial: usize,
    width: usize,
    constants: Vec<F>,
    /// The field in lanes, and the constants there.
    #[cfg(target_arch = "x86_64")]
    lanes: Option<(Montgomery52, Vec<u64>)>,
}

impl<F: DevicePrimeField> Permutation<F> {
    fn new(shape: Shape, params: &Params, words: &[u32]) -> Self {
        Self {
            alpha: shape.alpha,
            half: params.half as usize,
            partial: params.partial as usize,
            width: shape.width,
            constants: words.chunks_exact(F::LIMBS).map(F::load).collect(),
            #[cfg(target_arch = "x86_64")]
            lanes: Montgomery52::of::<F>().filter(|_| params.len as usize >= FEW_STATES).map(|field| {
                let constants = field.run::<F, _>(lanes::Constants(words), lanes::Constants::run_usual);
                (field, constants)
            }),
        }
    }

    /// Permutes states in device form.
    fn permute_all(&self, states: &mut [u32]) {
        #[cfg(target_arch = "x86_64")]
        if states.len() >= FEW_STATES * self.width * F::LIMBS
            && let Some((field, constants)) = &self.lanes
        {
            return self.permute_in_lanes(field, constants, states);
        }
        let mut state = vec![F::ZERO; self.width];
        for words in states.chunks_exact_mut(self.width * F::LIMBS) {
            state.iter_mut().zip(words.chunks_exact(F::LIMBS)).for_each(|(x, limbs)| *x = F::load(limbs));
            self.permute(&mut state);
            state.iter().zip(words.chunks_exact_mut(F::LIMBS)).for_each(|(x, limbs)| x.store(limbs));
        }
        wipe(&mut state);
    }

    #[cfg(target_arch = "x86_64")]
    fn permute_in_lanes(&self, field: &Montgomery52, constants: &[u64], states: &mut [u32]) {
        let mut one = vec![0; F::LIMBS];
        F::ONE.store(&mut one);
        let &Self { alpha, half, partial, width, .. } = self;
        let run = |states: &mut [u32]| {
            let job = lanes::States { width, alpha, rounds: [half, partial], constants, one: &one, states };
            field.run::<F, _>(job, lanes::States::run_usual);
        };
        let step = STEP * width * F::LIMBS;
        let (whole, rest) = states.split_at_mut(states.len() / step * step);
        run(whole);
        if !rest.is_empty() {
            let mut padded = Wiped::from(vec![0; step]);
            padded[..rest.len()].copy_from_slice(rest);
            run(&mut padded);
            rest.copy_from_slice(&padded[..rest.len()]);
        }
    }

    fn power(&self, x: F) -> F {
        let square = x.square();
        match self.alpha {
            3 => square * x,
            5 => square.square() * x,
            _ => square.square() * square * x,
        }
    }

    fn permute(&self, state: &mut [F]) {
        let width = self.width;
        let (full, rest) = self.constants.split_at(2 * self.half * width);
        let (matrix, rest) = rest.split_at(width * width);
        let (last, sparse) = rest.split_at(width * width);
        let mut sums = vec![F::ZERO; width];
        let mut multiply = |state: &mut [F], matrix: &[F]| {
            for (sum, row) in sums.iter_mut().zip(matrix.chunks_exact(width)) {
                *sum = row.iter().zip(&*state).map(|(x, y)| *x * y).sum();
            }
            state.copy_from_slice(&sums);
        };
        for (number, row) in full.chunks_exact(width).enumerate() {
            if number == self.half {
                for (round, constants) in sparse.chunks_exact(2 * width).enumerate() {
                    let x = self.power(state[0] + constants[0]);
                    state[0] = x;
                    if round + 1 == self.partial {
                        multiply(state, last);
                        break;
                    }
                    let (v, w) = constants[1..].split_at(width);
                    state[0] = v.iter().zip(&*state).map(|(x, y)| *x * y).sum();
                    state[1..].iter_mut().zip(w).for_each(|(y, w)| *y += *w * x);
                }
            }
            state.iter_mut().zip(row).for_each(|(x, c)| *x = self.power(*x + c));
            multiply(state, matrix);
        }
        wipe(&mut sums);
    }
}

/// Leaves nothing of a state.
fn wipe<F: DevicePrimeField>(elements: &mut [F]) {
    for x in elements {
        x.zeroize();
    }
}

/// The text of the permutation in WGSL, after the arithmetic of the field and the accessors of `constants`.
fn permutation(width: usize, alpha: u32) -> String {
    let fields = list(width, &|i| format!("s{i}: F"));
    let power = match alpha {
        3 => "f_mul(y2, y)",
        5 => "f_mul(f_mul(y2, y2), y)",
        _ => "f_mul(f_mul(y2, y2), f_mul(y2, y))",
    };
    // Without element `first`, and with another one at the end.
    let shifted = |first: usize| {
        list(width, &|i| match i {
            i if i + 1 == width => "x".to_owned(),
            i if i >= first => format!("a.s{}", i + 1),
            i => format!("a.s{i}"),
        })
    };
    let (all, rest) = (shifted(0), shifted(1));
    let row = (1..width).fold("f_mul(a.s0, constants_load(row))".to_owned(), |sum, i| {
        format!("f_add({sum}, f_mul(a.s{i}, constants_load(row + {i}u)))")
    });
    format!(
        "struct State {{ {fields} }}\n\
         fn power(x: F, c: F) -> F {{\n  let y = f_add(x, c);\n  let y2 = f_mul(y, y);\n  return {power};\n}}\n\
         fn shift_in(a: State, x: F) -> State {{ return State({all}); }}\n\
         fn shift_in_rest(a: State, x: F) -> State {{ return State({rest}); }}\n\
         fn multiply(a: State, matrix: u32) -> State {{\n  var r = a;\n\
         \x20 for (var i = 0u; i < WIDTH; i++) {{\n    let row = matrix + i * WIDTH;\n\
         \x20   r = shift_in(r, {row});\n  }}\n  return r;\n}}\n\
         fn full_round(a: State, at: u32, matrix: u32) -> State {{\n  var s = a;\n\
         \x20 for (var i = 0u; i < WIDTH; i++) {{ s = shift_in(s, power(s.s0, constants_load(at + i))); }}\n\
         \x20 return multiply(s, matrix);\n}}\n\
         fn partial_round(a: State, at: u32) -> State {{\n  let x = power(a.s0, constants_load(at));\n\
         \x20 var sum = f_mul(x, constants_load(at + 1u));\n  var s = a;\n\
         \x20 for (var i = 1u; i < WIDTH; i++) {{\n    let y = s.s1;\n\
         \x20   sum = f_add(sum, f_mul(y, constants_load(at + 1u + i)));\n\
         \x20   s = shift_in_rest(s, f_add(y, f_mul(x, constants_load(at + WIDTH + i))));\n  }}\n\
         \x20 s.s0 = sum;\n  return s;\n}}\n\
         fn permute_state(a: State) -> State {{\n  var s = a;\n  let rows = params.half * WIDTH;\n\
         \x20 let matrix = 2u * rows;\n  var sparse = matrix + 2u * WIDTH * WIDTH;\n\
         \x20 for (var at = 0u; at < rows; at += WIDTH) {{ s = full_round(s, at, matrix); }}\n\
         \x20 for (var i = 1u; i < params.partial; i++) {{\n    s = partial_round(s, sparse);\n\
         \x20   sparse += 2u * WIDTH;\n  }}\n\
         \x20 if (params.partial > 0u) {{\n    s.s0 = power(s.s0, constants_load(sparse));\n\
         \x20   s = multiply(s, matrix + WIDTH * WIDTH);\n  }}\n\
         \x20 for (var at = rows; at < 2u * rows; at += WIDTH) {{ s = full_round(s, at, matrix); }}\n\
         \x20 return s;\n}}\n"
    )
}

fn list(count: usize, element: &dyn Fn(usize) -> String) -> String {
    (0..count).map(element).collect::<Vec<_>>().join(", ")
}
