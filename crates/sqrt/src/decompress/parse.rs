//! The kernel that parses encodings and takes y from x.

use std::sync::{Arc, Mutex};

use ark_ff::Field;
use evariste_backend::{
    author::{Binding, BindingType, CpuArg, KernelSpec, Language, loop_iterations},
    parallel, params,
};
use evariste_curve::{DeviceCurve, point};
use evariste_field::{DeviceField, ifma::STEP, source};

use crate::{
    decompress::{
        GRAIN, Prime0,
        encoding::{EncodingLayout, INFINITE},
    },
    error::Result,
    machine::{self, Machine, THREADS},
    methods,
    plan::Programs,
    program::Program,
    root_field::RootField,
};

params! {
    pub(crate) struct PointsParams {
        pub(crate) len: u32,
    }
}

/// The program that computes y from x.
pub(crate) fn program<C: DeviceCurve<BaseField: RootField>>() -> Result<Program<Prime0<C>>> {
    let [a, b] = [C::COEFF_A, C::COEFF_B].map(|x| x.to_base_prime_field_elements().collect::<Vec<_>>());
    let Programs { prime, beta, .. } = Programs::<C::BaseField>::new()?;
    methods::points(&prime, beta, &a, &b)
}

pub(crate) fn points_spec<C: DeviceCurve<BaseField: RootField>>(
    layout: EncodingLayout,
    program: &Arc<Program<Prime0<C>>>,
) -> KernelSpec {
    let word = source::binding_type::<Prime0<C>>();
    let [program_words, constants, hashed] = machine::bindings::<Prime0<C>>();
    let bindings = [
        program_words,
        constants,
        hashed,
        Binding::read("bytes", BindingType::U32),
        Binding::write("out", word),
        Binding::write("status", BindingType::U32),
    ];
    let infinity_y = point::affine_infinity::<C>()[1] == C::BaseField::ONE;
    let rendered = Arc::clone(program);
    let source = move |language| match language {
        Language::Cuda => {
            let field = source::cuda::<Prime0<C>>();
            let layout = cuda_layout(&layout, infinity_y);
            [&field, &machine::cuda(&rendered), &layout, evariste_cuda::sqrt::POINTS].concat()
        }
        Language::Wgsl { int64 } => {
            let field = source::wgsl::<Prime0<C>>(int64);
            let accessors = source::wgsl_accessors::<Prime0<C>>(&bindings[4]);
            let layout = wgsl_layout::<Prime0<C>>(&layout, infinity_y);
            [&field, &machine::wgsl(&rendered), &accessors, &layout, evariste_shaders::sqrt::POINTS].concat()
        }
    };
    let (run, iterations) = (Arc::clone(program), program.iterations());
    let body =
        move |params: &PointsParams, args: &mut [CpuArg<'_>; 6]| points_body::<C>(&run, &layout, params.len, args);
    let EncodingLayout { bytes, big_endian, flags_at, flags, required, larger, parts, .. } = layout;
    let variant = format!(
        "{bytes} bytes, {big_endian}, {flags_at}, {flags:#x}, {required:#x}, {larger:#x}, {parts:?}, {infinity_y} over {} ({})",
        source::label::<C::BaseField>(),
        machine::label(program),
    );
    let iterations = iterations + loop_iterations(2, loop_iterations(8, 0));
    KernelSpec::new("sqrt_points", variant, bindings, body, source)
        .threads(THREADS)
        .iterations(move |_: &PointsParams| iterations)
}

fn cuda_layout(layout: &EncodingLayout, infinity_y: bool) -> String {
    let list = |part: fn(&(usize, usize)) -> usize| {
        layout.parts[..layout.degree].iter().map(|x| part(x).to_string()).collect::<Vec<_>>().join(", ")
    };
    format!(
        "#define COEFFICIENTS {}\n#define BYTES {}\n#define BIG_ENDIAN {}\n#define FLAGS_AT {}u\n#define FLAGS {}u\n\
         #define REQUIRED {}u\n#define INFINITE {INFINITE}u\n#define LARGER {}u\n#define STARTS {{ {} }}\n\
         #define COUNTS {{ {} }}\n#define INFINITY_Y {}\n",
        layout.degree,
        layout.bytes,
        u8::from(layout.big_endian),
        layout.flags_at,
        layout.flags,
        layout.required,
        layout.larger,
        list(|part| part.0),
        list(|part| part.1),
        u8::from(infinity_y),
    )
}

fn wgsl_layout<B: DeviceField>(layout: &EncodingLayout, infinity_y: bool) -> String {
    let EncodingLayout { bytes, big_endian, flags_at, flags, required, larger, degree, parts } = layout;
    let limbs = (0..B::LIMBS).map(|i| format!("e_limb(point, start, count, {i}u)")).collect::<Vec<_>>().join(", ");
    let stores = |value: &dyn Fn(usize) -> String| -> String {
        (0..2 * degree).map(|k| format!("    out_store({}u * i + {k}u, {});\n", 2 * degree, value(k))).collect()
    };
    let none = |k: usize| if infinity_y && k == *degree { "f_one()" } else { "f_zero()" }.to_owned();
    format!(
        "const COEFFICIENTS = {degree}u;\nconst LIMBS = {}u;\nconst BYTES = {bytes}u;\nconst BIG_ENDIAN = {big_endian};\n\
         const FLAGS_AT = {flags_at}u;\nconst FLAGS = {flags}u;\nconst REQUIRED = {required}u;\n\
         const INFINITE = {INFINITE}u;\nconst LARGER = {larger}u;\n\
         fn starts(k: u32) -> u32 {{ return select({}u, {}u, k == 0u); }}\n\
         fn counts(k: u32) -> u32 {{ return select({}u, {}u, k == 0u); }}\n\
         fn e_element(point: u32, start: u32, count: u32) -> F {{\n  return F({limbs});\n}}\n\
         fn outputs(i: u32, none: bool) {{\n  if (none) {{\n{}  }} else {{\n{}  }}\n}}\n",
        B::LIMBS,
        parts[1].0,
        parts[0].0,
        parts[1].1,
        parts[0].1,
        stores(&none),
        stores(&|k| format!("slots[{k}]")),
    )
}

fn points_body<C: DeviceCurve<BaseField: RootField>>(
    program: &Program<Prime0<C>>,
    layout: &EncodingLayout,
    len: u32,
    [words, constants, hashed, bytes, out, status]: &mut [CpuArg<'_>; 6],
) {
    let machine = Machine::<Prime0<C>>::new(program, words.read(), constants.read(), hashed.read());
    let (each, limbs, len) = (Prime0::<C>::LIMBS, 2 * C::BaseField::LIMBS, len as usize);
    let bytes = bytes.read::<u8>();
    let status: Vec<_> = status.write::<u32>()[..len].chunks_mut(GRAIN).map(Mutex::new).collect();
    parallel::chunks(&mut out.write::<u32>()[..len * limbs], GRAIN * limbs, &|chunk, out| {
        // Nobody else takes this chunk.
        let Ok(mut status) = status[chunk].lock() else { return };
        let mut group = machine.group(2 * layout.degree);
        let mut infinite = [false; STEP];
        for (at, status) in (0..).step_by(STEP).zip(status.chunks_mut(STEP)) {
            for (i, status) in status.iter_mut().enumerate() {
                let point = &bytes[(chunk * GRAIN + at + i) * layout.bytes..][..layout.bytes];
                let (mut canonical, mut zero) = (true, true);
                for k in 0..layout.degree {
                    let words = group.words(k, i);
                    for (i, word) in words.iter_mut().enumerate() {
                        *word =
                            (0..4).fold(0, |word, j| word | u32::from(layout.digit(point, k, 4 * i + j)) << (8 * j));
                    }
                    let rest = (4 * each..layout.parts[k].1).all(|i| layout.digit(point, k, i) == 0);
                    zero &= rest && words.iter().all(|word| *word == 0);
                    if !(rest && Prime0::<C>::is_stored(words)) {
                        canonical = false;
                        words.fill(0);
                    }
                }
                let flags = point[layout.flags_at];
                infinite[i] = flags & INFINITE != 0;
                let larger = flags & layout.larger != 0;
                group.want[i] = larger.into();
                *status = match () {
                    () if flags & layout.required != layout.required || infinite[i] && (larger || !zero) => 1,
                    () if !canonical => 2,
                    () => 0,
                };
            }
            machine.run(&mut group, status.len());
            let out = out[at * limbs..].chunks_exact_mut(limbs);
            for (i, (out, status)) in out.zip(status).enumerate() {
                if *status == 0 && !infinite[i] && group.verdicts[i] == 0 {
                    *status = 3;
                }
                if *status != 0 || infinite[i] {
                    point::store(&point::affine_infinity::<C>(), out);
                    continue;
                }
                for (k, words) in out.chunks_exact_mut(each).enumerate() {
                    words.copy_from_slice(group.words(k, i));
                }
            }
        }
    });
}
