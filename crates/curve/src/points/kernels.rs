//! The kernels of operations on vectors of points, in all three languages.

use ark_ff::{AdditiveGroup, Field};
use evariste_backend::{
    author::{Binding, BindingList, BindingType, CpuArg, KernelSpec, Language, Wiped},
    parallel, params,
};
use evariste_field::{
    DeviceField, ifma,
    native::Native,
    source::{binding_type, cuda_group_inverse, group_inverse_threads, iterations, wgsl_group_inverse},
};

use crate::{
    device_curve::DeviceCurve,
    lanes::add_affine,
    operation::{Divide, Map},
    point,
    source::{self, Form},
};

/// Threads of a workgroup.
pub(crate) const THREADS: u32 = 256;

/// Points that a CPU thread takes at a time.
const GRAIN: usize = 1 << 9;

/// The least and the most points of a CPU thread in vectors, where 16 points share an inversion.
const LANES_GRAIN: [usize; 2] = [1 << 8, 1 << 11];

params! {
    pub(crate) struct MapParams {
        pub(crate) len: u32,
    }

    pub(crate) struct DivideParams {
        pub(crate) len: u32,
        pub(crate) threads: u32,
    }

    pub(crate) struct MulParams {
        pub(crate) len: u32,
        /// The first binary digit of the multipliers, and how many.
        pub(crate) first: u32,
        pub(crate) digits: u32,
        /// The output has the multiples by the digits above.
        pub(crate) carried: u32,
    }
}

/// Words of a point on the device.
fn words<C: DeviceCurve>(form: Form) -> usize {
    form.coordinates().len() * C::BaseField::LIMBS
}

/// The operands `a` and perhaps `b` with the output, as bindings and as the arguments of a call.
fn operands<C: DeviceCurve>(inputs: &[Form]) -> ((Binding, Option<Binding>, Binding), &'static str) {
    let word = binding_type::<C::BaseField>();
    let binary = inputs.len() == 2;
    let b = binary.then(|| Binding::read("b", word));
    let call = if binary { "a_load(i), b_load(i)" } else { "a_load(i)" };
    ((Binding::read("a", word), b, Binding::write("out", word)), call)
}

/// They in the body for the CPU.
type Args<'a, 'm> = (&'a mut CpuArg<'m>, Option<&'a mut CpuArg<'m>>, &'a mut CpuArg<'m>);

pub(crate) fn map_spec<C: DeviceCurve>(operation: Map) -> KernelSpec {
    let (function, inputs, output) = operation.signature();
    let (bindings, call) = operands::<C>(inputs);
    let seen: Vec<(Binding, Form)> = bindings.list().into_iter().zip(inputs.iter().copied().chain([output])).collect();
    let source = move |language| match language {
        Language::Cuda => {
            let binary = inputs.get(1).map(|b| format!("#define BINARY\n#define B {}\n", b.name())).unwrap_or_default();
            let names =
                format!("#define A {}\n#define OUT {}\n#define OP {function}\n", inputs[0].name(), output.name());
            [&source::cuda::<C>(), &binary, &names, evariste_cuda::curve::MAP].concat()
        }
        Language::Wgsl { int64 } => {
            let op = format!("fn op(i: u32) -> {} {{ return {function}({call}); }}\n", output.name());
            [&source::wgsl_kernel::<C>(int64, &seen), &op, evariste_shaders::curve::MAP].concat()
        }
    };
    let body = move |params: &MapParams, (a, b, out): Args<'_, '_>| {
        let len = params.len as usize;
        let (a, b): (&[u32], &[u32]) = (a.read(), b.map_or(&[], |b| b.read()));
        let (a_words, b_words) = (words::<C>(inputs[0]), inputs.get(1).map_or(0, |form| words::<C>(*form)));
        let out_words = words::<C>(output);
        parallel::chunks(&mut out.write::<u32>()[..len * out_words], GRAIN * out_words, &|run, out| {
            for (i, out) in (run * GRAIN..).zip(out.chunks_exact_mut(out_words)) {
                operation.apply::<C>(&a[i * a_words..][..a_words], &b[i * b_words..][..b_words], out);
            }
        });
    };
    let variant = format!("{operation:?} over {}", source::label::<C>());
    let iterations = source::iterations::<C>();
    KernelSpec::new("point_map", variant, bindings, body, source)
        .threads(THREADS)
        .iterations(move |_: &MapParams| iterations)
}

pub(crate) fn divide_spec<C: DeviceCurve>(operation: Divide) -> KernelSpec {
    let (denominator, finish, inputs) = operation.signature();
    let (bindings, call) = operands::<C>(inputs);
    let forms = inputs.iter().copied().chain([Form::Affine]);
    let seen: Vec<(Binding, Form)> = bindings.list().into_iter().zip(forms).collect();
    let (threads, bytes) = group_inverse_threads::<C::BaseField>(THREADS);
    let source = move |language| match language {
        Language::Cuda => {
            let binary = if inputs.len() == 2 { "#define BINARY\n" } else { "" };
            let names =
                format!("#define A {}\n#define DENOMINATOR {denominator}\n#define FINISH {finish}\n", inputs[0].name());
            let inverse = cuda_group_inverse(threads);
            [&source::cuda::<C>(), &inverse, binary, &names, evariste_cuda::curve::DIVIDE].concat()
        }
        Language::Wgsl { int64 } => {
            let functions = format!(
                "fn denominator(i: u32) -> F {{ return {denominator}({call}); }}\n\
                 fn finish(i: u32, inverse: F) -> Affine {{ return {finish}({call}, inverse); }}\n\
                 fn out_x_load(i: u32) -> F {{ return out_coordinate_load(2u * i); }}\n\
                 fn out_x_store(i: u32, x: F) {{ out_coordinate_store(2u * i, x); }}\n"
            );
            let addition = if operation == Divide::AffineAdd { source::wgsl_affine_addition() } else { "" };
            let inverse = wgsl_group_inverse::<C::BaseField>(threads);
            [&source::wgsl_kernel::<C>(int64, &seen), addition, &inverse, &functions, evariste_shaders::curve::DIVIDE]
                .concat()
        }
    };
    let lanes = if operation == Divide::AffineAdd { ifma::Montgomery52::of::<C::BaseField>() } else { None };
    let body = move |params: &DivideParams, (a, b, out): Args<'_, '_>| {
        let out_words = words::<C>(Form::Affine);
        let (a, b): (&[u32], &[u32]) = (a.read(), b.map_or(&[], |b| b.read()));
        let a_words = words::<C>(inputs[0]);
        let b_words = if b.is_empty() { 0 } else { a_words };
        let out = &mut out.write::<u32>()[..params.len as usize * out_words];
        let grain = match lanes {
            None => GRAIN,
            Some(_) => lanes_grain(params.len as usize),
        };
        parallel::chunks(out, grain * out_words, &|chunk, out| {
            let (first, count) = (chunk * grain, out.len() / out_words);
            let part = |first: usize, count: usize| {
                (&a[first * a_words..][..count * a_words], &b[first * b_words..][..count * b_words])
            };
            let whole = lanes.as_ref().map_or(0, |_| count - count % ifma::STEP);
            let (in_lanes, rest) = out.split_at_mut(whole * out_words);
            if let Some(lanes) = &lanes {
                add_affine::<C>(lanes, part(first, whole), in_lanes, &mut Wiped::default());
            }
            divide_run::<C>(operation, part(first + whole, count - whole), rest);
        });
    };
    let variant = format!("{operation:?} over {}", source::label::<C>());
    let (mul, finish) = (iterations::mul::<C::BaseField>(), source::iterations::<C>());
    let shared = iterations::group_inverse::<C::BaseField>(threads);
    let iterations = move |params: &DivideParams| {
        let run = u64::from(params.len.div_ceil(params.threads.max(1)));
        iterations::repeat(run, mul) + shared + iterations::repeat(run, 2 * mul + finish)
    };
    KernelSpec::new("point_divide", variant, bindings, body, source)
        .threads(threads)
        .shared_bytes(bytes)
        .iterations(iterations)
}

/// Points that a CPU thread takes at a time in lanes, of `len` in all.
fn lanes_grain(len: usize) -> usize {
    let each = len.div_ceil(rayon::current_num_threads());
    each.next_multiple_of(ifma::STEP).clamp(LANES_GRAIN[0], LANES_GRAIN[1])
}

/// An operation on a run of points with one inversion.
fn divide_run<C: DeviceCurve>(operation: Divide, (a, b): (&[u32], &[u32]), out: &mut [u32]) {
    let out_words = words::<C>(Form::Affine);
    let count = out.len() / out_words;
    if count == 0 {
        return;
    }
    let (a_words, b_words) = (a.len() / count, b.len() / count);
    let operands = |i: usize| (&a[i * a_words..][..a_words], &b[i * b_words..][..b_words]);
    let mut product = Native::<C::BaseField>::ONE;
    let mut prefixes = Wiped::with_capacity(count);
    for i in 0..count {
        let (a, b) = operands(i);
        let denominator = operation.denominator::<C>(a, b);
        prefixes.push((product, Native(denominator)));
        product *= Native(denominator);
    }
    // No denominator is zero.
    let mut inverse = Native(product.0.inverse().unwrap_or(C::BaseField::ZERO));
    for (i, out) in out.chunks_exact_mut(out_words).enumerate().rev() {
        let ((a, b), (prefix, denominator)) = (operands(i), prefixes[i]);
        point::store(&operation.finish::<C>(a, b, (inverse * prefix).0), out);
        inverse *= denominator;
    }
}

pub(crate) fn mul_spec<C: DeviceCurve>() -> KernelSpec {
    let word = binding_type::<C::BaseField>();
    let bindings = [Binding::read("a", word), Binding::read("k", BindingType::U32), Binding::write("out", word)];
    let seen = [(bindings[0], Form::Affine), (bindings[2], Form::Xyzz)];
    let source = move |language| match language {
        Language::Cuda => source::cuda::<C>() + evariste_cuda::curve::MULTIPLY,
        Language::Wgsl { int64 } => source::wgsl_kernel::<C>(int64, &seen) + evariste_shaders::curve::MULTIPLY,
    };
    let body = |params: &MulParams, [a, k, out]: &mut [CpuArg<'_>; 3]| {
        let (a_words, out_words) = (words::<C>(Form::Affine), words::<C>(Form::Xyzz));
        let (a, k) = (a.read::<u32>(), k.read::<u32>());
        parallel::chunks(&mut out.write::<u32>()[..params.len as usize * out_words], out_words, &|i, out| {
            let a = point::load(&a[i * a_words..][..a_words]);
            let (mut sum, mut digits) = ([C::BaseField::ZERO; 4], params.digits);
            // Doubling infinity is left out.
            match params.carried {
                0 => digits = digits.min((u32::BITS - k[i].leading_zeros()).saturating_sub(params.first)),
                _ => sum = point::load(out),
            }
            let k = k[i] >> params.first;
            for bit in (0..digits).rev() {
                sum = point::xyzz_double::<C>(sum);
                if k >> bit & 1 == 1 {
                    sum = point::xyzz_add_affine::<C>(sum, a);
                }
            }
            point::store(&sum, out);
        });
    };
    let variant = format!("points over {}", source::label::<C>());
    let add = source::iterations::<C>();
    KernelSpec::new("point_multiply", variant, bindings, body, source)
        .threads(THREADS)
        .iterations(move |params: &MulParams| iterations::repeat(2 * u64::from(params.digits), add))
}
