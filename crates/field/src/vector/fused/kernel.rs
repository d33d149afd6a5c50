//! The kernel of an expression: its program, its text in each language, and its body for the CPU.

use std::{fmt::Write, iter, sync::Arc};

use evariste_backend::{
    author::{Binding, BindingList, CpuArg, KernelSpec, Language, Wiped},
    parallel, params,
};
use evariste_expression::{Builder, Constants, Expression, Op, Port, Program, Step, Text, binding_names, cuda_product};

use super::super::{
    THREADS,
    reduce::{self, Combine},
    tile_threads, variant, wgsl_kernel,
};
use crate::{
    evaluator::{Rows, lanes_of},
    field::DeviceField,
    ifma,
    source::{self, binding_type, iterations},
};

/// Rows that a CPU thread takes at a time. 16 values of 32 bytes in each row fill half of the 256 KiB that the thread
/// may count on.
const ROWS: usize = 256;

/// Shares of the rows that a CPU thread takes: each makes room for values once.
const PARTS: usize = 4;

/// Names of columns that have a binding of their own.
pub(super) const COLUMNS: [&str; 32] = binding_names!("x");

params! {
    pub(in crate::vector) struct Params {
        len: u32,
    }
}

impl Params {
    pub(super) fn new(len: u32) -> Self {
        Self { len }
    }
}

/// A value that the kernel loads: of a column by its number among those in use, or of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Leaf {
    Column(u32),
    Constant(u32),
}

/// The effect at the end of a program: its slot has the row's value.
#[derive(Clone, Copy, Debug)]
struct Value;

/// An expression as a program for one row.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    program: Program<Leaf, Value>,
    /// Indices of the columns in use.
    pub(super) columns: Vec<u32>,
    pub(super) constants: Constants,
}

impl Compiled {
    pub(super) fn new(expression: &Expression) -> Self {
        let (columns, constants) = (expression.named_columns(), Constants::of(expression));
        let mut builder = Builder::default();
        let value = builder.evaluate(expression.steps(), |builder, step| {
            let leaf = match (step, constants.index(step)) {
                (Step::Column(index), _) => Leaf::Column(columns.partition_point(|column| *column < index) as u32),
                (_, Some(index)) => Leaf::Constant(index),
                (_, None) => unreachable!("every integer of an expression has a number"),
            };
            builder.push(Op::Leaf(leaf))
        });
        builder.effect(Value, value);
        Self { program: builder.finish(), columns, constants }
    }

    /// The arithmetic and the value of a row in CUDA: `TERM(i)`, of buffers of the types `INPUTS`.
    fn cuda<F: DeviceField>(&self, direct: usize) -> String {
        let (definition, mul) = cuda_product(self.program.multiplications());
        let mut text = source::cuda::<F>() + definition;
        let parameters: String = self.inputs(direct).map(|name| format!(", const F* {name}")).collect();
        let _ = writeln!(text, "__device__ __forceinline__ F row_value(const Params& params, size_t i{parameters}) {{");
        let leaf = |leaf| match leaf {
            Leaf::Constant(index) => format!("constants[{index}]"),
            Leaf::Column(index) => match (index as usize).checked_sub(direct) {
                None => format!("{}[i]", COLUMNS[index as usize]),
                Some(index) => format!("rest[(size_t){index} * params.len + i]"),
            },
        };
        self.text(mul, &leaf).cuda(&mut text);
        // Their types, and the call.
        let types = vec!["F"; self.inputs(direct).count()].join(", ");
        let arguments: String = self.inputs(direct).map(|name| format!(", {name}")).collect();
        let _ = write!(text, "}}\n#define INPUTS {types}\n#define TERM(i) row_value(params, i{arguments})\n");
        text
    }

    /// The buffers that the value is computed from: the columns, the rest of them in one, and the constants.
    fn inputs(&self, direct: usize) -> impl Iterator<Item = &'static str> {
        let rest = (direct < self.columns.len()).then_some("rest");
        COLUMNS[..direct].iter().copied().chain(rest).chain(["constants"])
    }

    /// The value of a row in WGSL, `term(i)`, after the arithmetic and the accessors.
    fn wgsl(&self, direct: usize) -> String {
        let leaf = |leaf| match leaf {
            Leaf::Constant(index) => format!("constants_load({index}u)"),
            Leaf::Column(index) => match (index as usize).checked_sub(direct) {
                None => format!("{}_load(i)", COLUMNS[index as usize]),
                Some(index) => format!("rest_load({index}u * params.len + i)"),
            },
        };
        let mut text = String::from("fn term(i: u32) -> F {\n");
        self.text("f_mul", &leaf).wgsl(&mut text);
        text + "}\n"
    }

    fn text<'a>(&'a self, mul: &'a str, leaf: &'a dyn Fn(Leaf) -> String) -> Text<'a, Leaf, Value> {
        Text {
            program: &self.program,
            mul,
            leaf,
            effect: &|Value, slot| format!("return r{slot};"),
            select: &|_, _| unreachable!("a row's value has no condition"),
        }
    }

    /// Room for the values of one thread, for up to `rows` rows at a time.
    fn rows<'a, F: DeviceField>(&self, rows: usize, lanes: Option<&'a ifma::Montgomery52>) -> Rows<'a, F> {
        Rows::new(self.program.slots(), ROWS.min(rows), lanes)
    }

    /// Computes the values of `rows` rows from `first` on, at most [`ROWS`], and hands them with their slot to `then`.
    fn run<F: DeviceField>(
        &self,
        inputs: &Inputs<'_, F>,
        first: usize,
        rows: usize,
        values: &mut Rows<'_, F>,
        mut then: impl FnMut(&mut Rows<'_, F>, u32),
    ) {
        self.program.run(rows, values, false, |values, port| match port {
            Port::Load(slot, Leaf::Column(index)) => {
                let limbs = &inputs.column(index as usize)[first * F::LIMBS..];
                values.load(rows, slot, limbs, F::LIMBS, F::LIMBS);
            }
            Port::Load(slot, Leaf::Constant(index)) => {
                values.set(slot, iter::repeat_n(inputs.constants[index as usize], rows));
            }
            Port::Effect(Value, slot) => then(values, slot),
        });
    }
}

/// The inputs of a run on the CPU.
struct Inputs<'a, F> {
    direct: Vec<&'a [u32]>,
    rest: &'a [u32],
    rest_limbs: usize,
    constants: Vec<F>,
}

impl<F> Inputs<'_, F> {
    fn column(&self, index: usize) -> &[u32] {
        match self.direct.get(index) {
            Some(column) => column,
            None => &self.rest[(index - self.direct.len()) * self.rest_limbs..],
        }
    }
}

/// The expression kernel in CUDA, after the value of a row.
const CUDA_ROWS: &str = "extern \"C\" __global__ void expression(const Params params, BUFFERS(INPUTS, F)) {
    wait_for_previous();
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < params.len) out[i] = TERM(i);
}
";

/// The same in WGSL.
const WGSL_ROWS: &str = "@compute @workgroup_size(THREADS)
fn expression(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        out_store(i, term(i));
    }
}
";

impl Compiled {
    fn bindings<F: DeviceField>(&self, direct: usize) -> (Vec<Binding>, Option<Binding>, Binding, Binding) {
        let word = binding_type::<F>();
        let columns = COLUMNS[..direct].iter().map(|name| Binding::read(name, word)).collect();
        let rest = (direct < self.columns.len()).then(|| Binding::read("rest", word));
        (columns, rest, Binding::read("constants", word), Binding::write("out", word))
    }

    /// Iterations of loops that the value of a row takes in WGSL at most.
    fn iterations<F: DeviceField>(&self) -> u64 {
        // Each of the two choices of a turn may be a loop to a compiler.
        iterations::repeat(self.program.multiplications() as u64, iterations::mul::<F>() + 2)
    }
}

/// The arguments of the body for the CPU: columns, the rest of them in one buffer, constants, the output.
type Args<'a, 'm> = (&'a mut [CpuArg<'m>], Option<&'a mut CpuArg<'m>>, &'a mut CpuArg<'m>, &'a mut CpuArg<'m>);

/// The inputs, of columns of `rest_limbs` limbs, and the output.
fn inputs_and_output<'a, F: DeviceField>(
    (columns, rest, constants, out): Args<'a, '_>,
    rest_limbs: usize,
) -> (Inputs<'a, F>, &'a mut [u32]) {
    let inputs = Inputs::<F> {
        direct: columns.iter().map(|column| column.read()).collect(),
        rest: rest.map_or(&[], |rest| rest.read()),
        rest_limbs,
        constants: constants.read::<u32>().chunks_exact(F::LIMBS).map(F::load).collect(),
    };
    (inputs, out.write())
}

pub(super) fn spec<F: DeviceField>(digest: [u8; 32], program: Compiled, direct: usize) -> KernelSpec {
    let (bindings, iterations, program) = (program.bindings::<F>(direct), program.iterations::<F>(), Arc::new(program));
    let (seen, rendered) = (bindings.list(), Arc::clone(&program));
    let source = move |language| match language {
        Language::Cuda => rendered.cuda::<F>(direct) + CUDA_ROWS,
        Language::Wgsl { int64 } => wgsl_kernel::<F>(int64, &seen, &rendered.wgsl(direct), WGSL_ROWS),
    };
    let lanes = lanes_of::<F>();
    let body = move |params: &Params, args: Args<'_, '_>| {
        let limbs = params.len as usize * F::LIMBS;
        let (inputs, out) = inputs_and_output::<F>(args, limbs);
        let each = (params.len as usize).div_ceil(PARTS * rayon::current_num_threads()).max(1);
        let each = each.next_multiple_of(ROWS);
        parallel::chunks(&mut out[..limbs], each * F::LIMBS, &|run, out| {
            let mut values = program.rows(out.len() / F::LIMBS, lanes.as_ref());
            for (first, out) in (run * each..).step_by(ROWS).zip(out.chunks_mut(ROWS * F::LIMBS)) {
                let rows = out.len() / F::LIMBS;
                program.run(&inputs, first, rows, &mut values, |values, slot| values.store(rows, slot, out, 1));
            }
        });
    };
    KernelSpec::new("expression", variant::<F>(&source::digits(&digest)), bindings, body, source)
        .threads(THREADS)
        .iterations(move |_: &Params| iterations)
}

/// The kernel `reduce` with the values of an expression for elements.
pub(super) fn sum_spec<F: DeviceField>(digest: [u8; 32], program: Compiled, direct: usize) -> KernelSpec {
    let (bindings, term, program) = (program.bindings::<F>(direct), program.iterations::<F>(), Arc::new(program));
    let (seen, rendered) = (bindings.list(), Arc::clone(&program));
    let source = move |language| match language {
        Language::Cuda => reduce::cuda::<F>(&rendered.cuda::<F>(direct), Combine::Sum),
        Language::Wgsl { int64 } => reduce::wgsl::<F>(int64, &seen, &rendered.wgsl(direct), Combine::Sum),
    };
    let lanes = lanes_of::<F>();
    let body = move |params: &reduce::Params, args: Args<'_, '_>| {
        let (len, chunks) = (params.len as usize, params.chunks as usize);
        let (inputs, out) = inputs_and_output::<F>(args, len * F::LIMBS);
        // Threads share chunks where these are few.
        let chunk_len = 1usize << params.log_chunk;
        let each = len.div_ceil(PARTS * rayon::current_num_threads()).next_multiple_of(ROWS).clamp(1, chunk_len);
        let parts = chunk_len.div_ceil(each);
        let mut sums = Wiped::from(vec![F::ZERO; chunks * parts]);
        parallel::chunks(&mut sums, 1, &|task, sum| {
            let chunk_end = len.min((task / parts + 1) << params.log_chunk);
            let start = ((task / parts) << params.log_chunk) + task % parts * each;
            let end = chunk_end.min(start + each);
            if start >= end {
                return;
            }
            let mut values = program.rows(end - start, lanes.as_ref());
            for first in (start..end).step_by(ROWS) {
                let rows = ROWS.min(end - first);
                program.run(&inputs, first, rows, &mut values, |values, slot| sum[0] += values.sum(rows, slot));
            }
        });
        let out = out[..chunks * F::LIMBS].chunks_exact_mut(F::LIMBS);
        out.zip(sums.chunks(parts)).for_each(|(out, sums)| sums.iter().sum::<F>().store(out));
    };
    let threads = tile_threads::<F>();
    KernelSpec::new("reduce", variant::<F>(&format!("sum of {}", source::digits(&digest))), bindings, body, source)
        .threads(threads)
        .shared_bytes(source::tile_bytes::<F>(threads))
        .iterations(reduce::iterations(threads, term, 0))
}
