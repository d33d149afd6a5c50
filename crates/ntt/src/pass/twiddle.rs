//! The kernel that computes the twiddles between two passes, once for a plan: see `cuda/ntt/twiddles.cu`.

use evariste_backend::{
    author::{Binding, CpuArg, KernelSpec, Language},
    parallel, params,
};
use evariste_field::{
    DeviceField, shoup_constants,
    source::{self, iterations},
};

use super::cpu::Table;

params! {
    pub(crate) struct Params {
        pub(crate) len: u32,
        pub(crate) at: u32,
        pub(crate) log_columns: u32,
        pub(crate) shift: u32,
        pub(crate) split: u32,
    }
}

/// Elements that one CPU thread takes at a time.
const GRAIN: usize = 1 << 10;

/// With `quotients`, factors are integers with their quotients.
pub(crate) fn spec<F: DeviceField>(quotients: bool) -> KernelSpec {
    let bindings =
        [Binding::read("powers", source::binding_type::<F>()), Binding::write("out", source::binding_type::<F>())];
    let source = move |language| match language {
        Language::Cuda if quotients => source::cuda::<F>() + "#define QUOTIENTS\n" + evariste_cuda::ntt::TWIDDLES,
        Language::Cuda => source::cuda::<F>() + evariste_cuda::ntt::TWIDDLES,
        Language::Wgsl { int64 } => {
            let accessors: String = bindings.iter().map(source::wgsl_accessors::<F>).collect();
            source::wgsl::<F>(int64) + &accessors + evariste_shaders::ntt::TWIDDLES
        }
    };
    let entry = F::LIMBS * (1 + usize::from(quotients));
    let body = move |params: &Params, [powers, out]: &mut [CpuArg<'_>; 2]| {
        let powers = Table::<F>::new(powers.read());
        let start = params.at as usize * F::LIMBS;
        let out = &mut out.write::<u32>()[start..][..params.len as usize * entry];
        parallel::chunks(out, GRAIN * entry, &|run, out| {
            for (i, out) in (run * GRAIN..).zip(out.chunks_exact_mut(entry)) {
                // The first one is of output 0.
                let (j, k) = i
                    .checked_sub(1)
                    .map_or((0, 0), |i| (i & ((1 << params.log_columns) - 1), (i >> params.log_columns) + 1));
                let e = (j * k) << params.shift;
                let (low, high) = (e & ((1 << params.split) - 1), (1 << params.split) + (e >> params.split));
                let factor = powers.at(low) * powers.at(high);
                match quotients {
                    true => out.copy_from_slice(&shoup_constants([factor.0])[F::LIMBS..]),
                    false => factor.store(out),
                }
            }
        });
    };
    let quotients = if quotients { " with quotients" } else { "" };
    let variant = format!("twiddles{quotients} over {}", source::label::<F>());
    KernelSpec::new("ntt_twiddles", variant, bindings, body, source).iterations(|_: &Params| iterations::mul::<F>())
}
