//! What runs with every field alone where a processor plays a GPU, whose compilers take most of the time: kernels whose
//! text others run over another field, another curve or with another table. GPUs run everything.

use crate::fields::EVERY_FIELD;

/// Trials of the CUDA sources on the host, by how their names start, and why they are left out.
const ON_THE_HOST: [(&str, &str); 8] = [
    ("emulator::launches::aes-table", "other tables run: --every-field has this one too"),
    ("emulator::launches::aes-twotables", "other tables run: --every-field has these too"),
    ("emulator::launches::curve-further", "these kernels run over other curves: --every-field has all"),
    ("emulator::launches::ntt-bls12-381-fr", "some transforms over this field run: --every-field has all"),
    ("emulator::launches::sumcheck-long", "sumchecks over a short field run: --every-field has a long one too"),
    ("emulator::prepared_calls_compile_nothing", "emulated Vulkan prepares more: --every-field has this device too"),
    ("emulator-portable::field::bls12-381-fq::", "eight limbs run: --every-field has twelve too"),
    ("emulator-portable::ntt::bls12-381-fr::sizes", "vectors over this field run: --every-field has transforms too"),
];

/// What runs of those: products of twelve limbs, and sums of points over an extension.
const ALL_THE_SAME: [&str; 2] = ["emulator-portable::field::bls12-381-fq::operations", "curve::bn254-g2::additions"];

/// Trials of emulated Vulkan, by how their names start behind the device's.
const IN_VULKAN: [&str; 28] = [
    "aes::table::",
    "aes::twotables::",
    "curve::bls12-381-g1::",
    "curve::bn254-g2::",
    "curve::even-order::",
    "field::bls12-377-fr::",
    "field::bn254-fr::",
    "field::goldilocks::expression",
    "field::goldilocks::maps",
    "field::goldilocks::matrices",
    "field::goldilocks::permutations",
    "field::goldilocks::prefixes",
    "field::goldilocks::reductions",
    "field::small-fp-",
    "freed::msm_by_pairs",
    "freed::msm_of_any_integers",
    "freed::msm_of_forms",
    "freed::msm_of_integers",
    "hash::poseidon2::goldilocks",
    "hash::poseidon2::koala-bear",
    "hash::poseidon::bls12-381-fr",
    "ntt::bls12-381-fr::columns",
    "ntt::goldilocks::columns",
    "ntt::goldilocks::orders_cosets_batches",
    "ntt::goldilocks::passes",
    "primitives::segmented_sum::bn254-fq2",
    "primitives::segmented_sum::mersenne-89",
    "several::baby-bear-4::unlike",
];

/// Why a trial of the CUDA sources on the host is left out, by its name.
pub(crate) fn on_the_host(name: &str) -> Option<&'static str> {
    let is_named = |(start, _): &&(&str, &str)| name.starts_with(start) && !ALL_THE_SAME.contains(&name);
    ON_THE_HOST.iter().find(|left| !EVERY_FIELD && is_named(left)).map(|(_, reason)| *reason)
}

/// Why a trial of emulated Vulkan is left out, by its name.
pub(crate) fn in_vulkan(name: &str) -> Option<&'static str> {
    let name = name.split_once("::").map_or("", |(_, name)| name);
    let is_left_out = IN_VULKAN.iter().any(|start| name.starts_with(start)) && !ALL_THE_SAME.contains(&name);
    (is_left_out && !EVERY_FIELD).then_some("emulated: others run the same text: --every-field has it too")
}
