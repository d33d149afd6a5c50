//! The kernels: their declarations.

use std::iter;

use evariste_backend::author::{Binding, BindingType, CpuArg, KernelSpec, Language, loop_iterations};
use evariste_field::{
    DevicePrimeField,
    source::{self, binding_type, iterations},
};

use super::{
    cpu,
    params::{
        CompressParams, GrindParams, HashParams, LANE_THREADS, LayersParams, PermuteParams, Shape, THREADS, flags,
    },
    wgsl,
};

impl Shape {
    fn variant<F: DevicePrimeField>(&self, more: &str) -> String {
        let Self { width, alpha, rate, digest, small_start, .. } = self;
        let start = if *small_start { ", from -2, 1, 2" } else { "" };
        let halvings = match self.halvings.iter().all(|k| *k == 0) {
            true => String::new(),
            false => format!(", halvings {}", self.halvings()),
        };
        format!("{}, width {width}, x^{alpha}, {rate} to {digest}{start}{halvings}{more}", source::label::<F>())
    }

    /// The list that kernels have.
    fn halvings(&self) -> String {
        let known = self.halvings.iter().take(self.width).map(ToString::to_string);
        known.collect::<Vec<_>>().join(", ")
    }

    /// Loop iterations of a permutation in WGSL.
    fn iterations<F: DevicePrimeField>(&self, half: u32, partial: u32) -> u64 {
        let mul = if wgsl::is_single::<F>() { 0 } else { iterations::mul::<F>() };
        let (width, power) = (self.width as u64, 4 * mul);
        2 * loop_iterations(half.into(), width * power) + loop_iterations(partial.into(), power + width * mul)
    }

    /// A kernel of one thread a state.
    fn declare<F: DevicePrimeField>(
        self,
        spec: KernelSpec,
        bindings: Vec<Binding>,
        cuda: &'static str,
        more: impl Fn() -> String + Send + Sync + 'static,
        kernel: &'static str,
    ) -> KernelSpec {
        let more = move |int64| wgsl::permutation::<F>(self.width, self.alpha, int64) + &more();
        let cuda = [evariste_cuda::hash::POSEIDON2, cuda];
        self.declare_with::<F, _>(spec.threads(THREADS), bindings, cuda, more, kernel)
    }

    /// A kernel of these texts in CUDA, and in WGSL of `more`, which gets whether there are 64-bit integers, and `kernel`.
    fn declare_with<F: DevicePrimeField, const PARTS: usize>(
        self,
        spec: KernelSpec,
        bindings: Vec<Binding>,
        cuda: [&'static str; PARTS],
        more: impl Fn(bool) -> String + Send + Sync + 'static,
        kernel: &'static str,
    ) -> KernelSpec {
        let constants = [
            ("WIDTH", self.width as u32),
            ("ALPHA", self.alpha),
            ("RATE", self.rate as u32),
            ("DIGEST", self.digest as u32),
        ];
        let carried = u32::from(bindings.iter().any(|binding| binding.name == "states"));
        let small_start = u32::from(self.small_start);
        let defined = format!(
            "#define THREADS {}\n#define CARRIED {carried}\n#define SMALL_START {small_start}\n\
             #define HALVINGS {}\n",
            spec.threads,
            self.halvings()
        );
        spec.with_source(move |language| match language {
            Language::Cuda => [&source::cuda::<F>(), defined.as_str(), &cuda.concat()].concat(),
            Language::Wgsl { int64 } => {
                [&source::wgsl::<F>(int64), &wgsl::accessors::<F>(&bindings), &more(int64), kernel].concat()
            }
        })
        .constants(&constants)
    }
}

/// `permute`, of states in place.
pub(super) fn permute<F: DevicePrimeField>(shape: Shape) -> KernelSpec {
    let word = binding_type::<F>();
    let bindings = [Binding::read("constants", word), Binding::write("states", word)];
    let body = move |params: &PermuteParams, [constants, states]: &mut [CpuArg<'_>; 2]| {
        cpu::permute::<F>(shape, params, constants.read(), states.write());
    };
    let more = move || wgsl::states(&bindings[1], shape.width);
    let spec = KernelSpec::new("permute", shape.variant::<F>(""), bindings, body, |_| String::new());
    let (cuda, wgsl) = (evariste_cuda::hash::PERMUTE, evariste_shaders::hash::PERMUTE);
    shape
        .declare::<F>(spec, bindings.to_vec(), cuda, more, wgsl)
        .iterations(move |params: &PermuteParams| shape.iterations::<F>(params.half, params.partial))
}

/// `compress`, of each two or four digests.
pub(super) fn compress<F: DevicePrimeField>(shape: Shape, count: usize) -> KernelSpec {
    let word = binding_type::<F>();
    let bindings = [Binding::read("constants", word), Binding::read("children", word), Binding::write("out", word)];
    let body = move |params: &CompressParams, [constants, children, out]: &mut [CpuArg<'_>; 3]| {
        cpu::compress::<F>(shape, count, params, constants.read(), children.read(), out.write());
    };
    let elements = count * shape.digest;
    let more = move || wgsl::children(&bindings[1], shape.width, elements) + &wgsl::digests(&bindings[2], shape.digest);
    let variant = shape.variant::<F>(&format!(", {count} digests"));
    let spec = KernelSpec::new("compress", variant, bindings, body, |_| String::new());
    let (cuda, wgsl) = (evariste_cuda::hash::COMPRESS, evariste_shaders::hash::COMPRESS);
    shape
        .declare::<F>(spec, bindings.to_vec(), cuda, more, wgsl)
        .constants(&[("CHILDREN", elements as u32)])
        .within_a_buffer()
        .iterations(move |params: &CompressParams| shape.iterations::<F>(params.half, params.partial))
}

/// `compress_layers`, of each two digests and of what this gives.
pub(super) fn compress_layers<F: DevicePrimeField>(shape: Shape) -> KernelSpec {
    let word = binding_type::<F>();
    let bindings = [Binding::read("constants", word), Binding::write("nodes", word)];
    let body = move |params: &LayersParams, [constants, nodes]: &mut [CpuArg<'_>; 2]| {
        cpu::compress_layers::<F>(shape, params, constants.read(), nodes.write());
    };
    let spec = KernelSpec::new("compress_layers", shape.variant::<F>(""), bindings, body, |_| String::new());
    let cuda = [evariste_cuda::warp::FUNCTIONS, evariste_cuda::hash::POSEIDON2, evariste_cuda::hash::COMPRESS_LAYERS];
    let (more, wgsl) = (
        move |int64| wgsl::power::<F>(shape.alpha, int64) + &source::wgsl_tile::<F>(LANE_THREADS),
        evariste_shaders::hash::COMPRESS_LAYERS,
    );
    let mul = if wgsl::is_single::<F>() { 0 } else { iterations::mul::<F>() };
    let mix = loop_iterations(shape.width as u64 / 4, 0);
    shape
        .declare_with::<F, _>(spec.threads(LANE_THREADS), bindings.to_vec(), cuda, more, wgsl)
        .constants(&[("LANES", shape.lanes())])
        .shared_bytes(source::tile_bytes::<F>(LANE_THREADS))
        .of_parts()
        .iterations(move |params: &LayersParams| {
            let full = loop_iterations(params.half.into(), 4 * mul + mix);
            let partial = loop_iterations(params.partial.into(), 5 * mul + loop_iterations(shape.width as u64, 0));
            loop_iterations(params.layers.into(), mix + 2 * full + partial)
        })
}

/// The buffers of `hash_rows`: constants and a matrix, states if launches carry them, and digests.
type HashArgs<'a, 'm> = (&'a mut [CpuArg<'m>; 2], Option<&'a mut CpuArg<'m>>, &'a mut CpuArg<'m>);

/// `hash_rows`: of one matrix by one launch, or `carried` from launch to launch.
pub(super) fn hash_rows<F: DevicePrimeField>(shape: Shape, carried: bool) -> KernelSpec {
    let word = binding_type::<F>();
    let first = [Binding::read("constants", word), Binding::read("x", word)];
    let states = carried.then(|| Binding::write("states", word));
    let out = Binding::write("out", word);
    let bindings: Vec<Binding> = first.into_iter().chain(states).chain(iter::once(out)).collect();
    let body = move |params: &HashParams, args: HashArgs<'_, '_>| {
        let ([constants, x], states, out) = args;
        let states = states.map(|states| states.write());
        cpu::hash_rows::<F>(shape, params, constants.read(), x.read(), states, out.write());
    };
    let more = move || {
        let states = states.iter().map(|states| wgsl::states(states, shape.width));
        let rest = [wgsl::digests(&out, shape.digest), wgsl::absorb(shape.rate), wgsl::sponge(shape.width, carried)];
        states.chain(rest).collect()
    };
    let variant = shape.variant::<F>(if carried { ", carried" } else { "" });
    let spec = KernelSpec::new("hash_rows", variant, (first, states, out), body, |_| String::new());
    let (cuda, wgsl) = (evariste_cuda::hash::HASH_ROWS, evariste_shaders::hash::HASH_ROWS);
    shape.declare::<F>(spec, bindings, cuda, more, wgsl).constants(flags::ALL).iterations(move |params: &HashParams| {
        let blocks = (u64::from(params.position) + u64::from(params.columns)).div_ceil(shape.rate as u64);
        loop_iterations(blocks, shape.iterations::<F>(params.half, params.partial))
    })
}

/// `grind`: the first integer that solves a proof of work.
pub(super) fn grind<F: DevicePrimeField>(shape: Shape) -> KernelSpec {
    let word = binding_type::<F>();
    let bindings =
        [Binding::read("constants", word), Binding::read("state", word), Binding::write("found", BindingType::Atomic)];
    let body = move |params: &GrindParams, [constants, state, found]: &mut [CpuArg<'_>; 3]| {
        cpu::grind::<F>(shape, params, constants.read(), state.read(), found.write());
    };
    let more = move || wgsl::states(&bindings[1], shape.width) + &wgsl::candidates::<F>(shape.rate);
    let spec = KernelSpec::new("grind", shape.variant::<F>(""), bindings, body, |_| String::new());
    let (cuda, wgsl) = (evariste_cuda::hash::GRIND, evariste_shaders::hash::GRIND);
    let products = 2 * iterations::mul::<F>();
    shape
        .declare::<F>(spec, bindings[..2].to_vec(), cuda, more, wgsl)
        .iterations(move |params: &GrindParams| products + shape.iterations::<F>(params.half, params.partial))
}
