//! The CUDA sources on the host: the trials of a device that runs them without a GPU.

use evariste::backend::{Device, Error};
use evariste_emulator::{Arithmetic, device};
use libtest_mimic::Trial;

use crate::{
    harness::{Case, skipped},
    left_out, sizes,
};

/// What runs with the arithmetic of GPUs: the launches of all kernels, over a field and a curve of each shape, at few
/// sizes, and what is not among these. Of long fields only some transforms: a multiplication takes microseconds here.
const CARRY_FLAG: [&str; 28] = [
    "launches::",
    "device::views::",
    "field::bls12-377-fr::chains",
    "field::bls12-381-fq2::operations",
    "field::goldilocks-3::chains",
    "field::mersenne-89::inverse",
    "field::mersenne-89::operations",
    "field::secp256k1-fq::inverse",
    "field::secp256k1-fq::operations",
    "field::deep_prefixes",
    "ntt::bls12-381-fr::definition",
    "ntt::bls12-381-fr::sizes",
    "ntt::bls12-381-fr::edge_values",
    "ntt::bls12-381-fr::splits_and_twiddles",
    "ntt::goldilocks::sizes",
    "ntt::goldilocks::definition",
    "ntt::baby-bear::sizes",
    "ntt::baby-bear::extensions_by_blocks",
    "ntt::baby-bear::long",
    "ntt::baby-bear::many_columns",
    "primitives::sort_large",
    "curve::through-origin::",
    "curve::bn254-g1::lengths",
    "curve::misuse",
    "msm::bls12-381-g1::divisions",
    "msm::p-256::scalars",
    "msm::short::divisions",
    "msm::bn254-g1::counts",
];

/// What runs with the portable arithmetic.
const PORTABLE: [&str; 5] = [
    "field::bls12-381-fr::",
    "field::bls12-381-fq::",
    "field::baby-bear::",
    "ntt::bls12-381-fr::sizes",
    "ntt::goldilocks::sizes",
];

/// Not for this device: a trial that starts another process, which would run it on the CPU device; one whose threads
/// write one place, as they may with such input, be it keys that are not sorted or counts that are false; and two about
/// memory and counters, which are the CPU's.
const NOT_EMULATED: [&str; 5] = [
    "no_host_copies_and_few_launches",
    "unsorted_keys",
    "sort_with_false_counts",
    "aes::pinned_memory",
    "aes::cpu_thresholds",
];

/// The trials of the CUDA sources on the host, of all that `suite` gives for a device and a name: of one arithmetic by its
/// label, or of both.
pub(crate) fn trials(suite: fn(&Device, &str) -> Vec<Case>, of: Option<&str>) -> Result<Vec<Trial>, Error> {
    let mut trials = Vec::new();
    let arithmetics =
        [("emulator", Arithmetic::CarryFlag, &CARRY_FLAG[..]), ("emulator-portable", Arithmetic::Portable, &PORTABLE)];
    for (label, arithmetic, wanted) in arithmetics.into_iter().filter(|(label, ..)| of.is_none_or(|of| of == *label)) {
        let device = device(arithmetic)?;
        if arithmetic == Arithmetic::Portable {
            // What lengths do to a kernel, the other arithmetic shows.
            sizes::keep_to_few(&device);
        }
        let is_wanted = |case: &Case| {
            let name = case.name.split_once("::").map_or("", |(_, name)| name);
            wanted.iter().any(|prefix| name.starts_with(prefix))
                && !NOT_EMULATED.iter().any(|part| name.ends_with(part))
        };
        if arithmetic == Arithmetic::CarryFlag {
            let device = device.clone();
            let name = format!("{label}::aes::places_in_kernels");
            trials.push(Trial::test(name, move || crate::trials::aes::in_kernels(&device)));
            let name = format!("{label}::prepared_calls_compile_nothing");
            // On a device of its own, where nobody else compiles.
            trials.push(match left_out::on_the_host(&name) {
                Some(reason) => skipped(name, reason),
                None => Trial::test(name, move || {
                    crate::prepared::check(&evariste_emulator::device(arithmetic)?, &["msm"]).map(drop)
                }),
            });
        }
        let mut cases: Vec<Case> = suite(&device, label).into_iter().filter(is_wanted).collect();
        for case in &mut cases {
            case.skipped = case.skipped.take().or_else(|| left_out::on_the_host(&case.name).map(str::to_owned));
        }
        trials.extend(cases.into_iter().map(Case::trial));
    }
    Ok(trials)
}
