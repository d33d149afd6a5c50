//! The vector instructions that CPU bodies of kernels may use.

use std::sync::{
    OnceLock,
    atomic::{AtomicU8, Ordering},
};

/// The vector instructions that CPU bodies of kernels may use. A processor that has one level has all earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuVectors {
    /// Those that the program is compiled for.
    Baseline,
    /// AVX2.
    Avx2,
    /// AVX-512 with its instructions for bytes, words and shorter vectors (F, BW, DQ, VL).
    Avx512,
    /// AVX-512 as above, with multiplications of 52 bits (IFMA) and shifts across lanes (VBMI2).
    Avx512Ifma,
}

/// The environment variable that restricts CPU bodies of kernels to portable code.
const INSTRUCTIONS_VARIABLE: &str = "EVARISTE_CPU";

/// Returns the best vector instructions of this processor, or `None` if the environment variable `EVARISTE_CPU` is
/// `portable`: CPU bodies then use arkworks' arithmetic. The first answer stands for the process.
pub fn cpu_vectors() -> Option<CpuVectors> {
    static ANSWER: OnceLock<Option<CpuVectors>> = OnceLock::new();
    *ANSWER.get_or_init(|| (!is_portable()).then(detect_vectors))
}

fn is_portable() -> bool {
    std::env::var_os(INSTRUCTIONS_VARIABLE).is_some_and(|name| name == "portable")
}

/// Returns whether this processor has the instructions of x86-64 for long products (BMI2 and ADX), and may use them. It
/// is asked for every product.
#[inline]
pub fn cpu_has_carry_chains() -> bool {
    const UNKNOWN: u8 = 2;
    static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
    #[cold]
    fn detect() -> bool {
        let has = !is_portable() && detect_carry_chains();
        ANSWER.store(has.into(), Ordering::Relaxed);
        has
    }
    match ANSWER.load(Ordering::Relaxed) {
        UNKNOWN => detect(),
        answer => answer == 1,
    }
}

#[cfg(target_arch = "x86_64")]
fn detect_carry_chains() -> bool {
    is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("adx")
}

#[cfg(not(target_arch = "x86_64"))]
fn detect_carry_chains() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
fn detect_vectors() -> CpuVectors {
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    let ifma = is_x86_feature_detected!("avx512ifma") && is_x86_feature_detected!("avx512vbmi2");
    match is_x86_feature_detected!("avx2") {
        _ if avx512 && ifma => CpuVectors::Avx512Ifma,
        _ if avx512 => CpuVectors::Avx512,
        true => CpuVectors::Avx2,
        false => CpuVectors::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect_vectors() -> CpuVectors {
    CpuVectors::Baseline
}
