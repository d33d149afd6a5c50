#![doc = include_str!("../README.md")]
#![no_std]

include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The type of a prime field's elements, `F`, after the constants of the field; instructions with carries.
pub const FIELD_WORDS: &str = concat!(include_str!("../field/words.cuh"), include_str!("../field/carries.cuh"));

/// Prime field arithmetic: `f_add`, `f_sub`, `f_mul` and more, after [`FIELD_WORDS`] and what the crate for fields
/// renders of sums and products by instructions with carries.
pub const FIELD: &str = concat!(
    include_str!("../field/even_odd.cuh"),
    include_str!("../field/lazy.cuh"),
    include_str!("../field/shoup.cuh"),
    include_str!("../field/sums.cuh"),
    include_str!("../field/goldilocks.cuh"),
    include_str!("../field/portable.cuh"),
);

/// Arithmetic modulo odd numbers known at run time, before its kernels.
pub const MODSQRT: &str = concat!(
    include_str!("../modsqrt/header.cuh"),
    include_str!("../field/carries.cuh"),
    include_str!("../modsqrt/multiply.cuh")
);

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    /// The names that follow `__global__ void`, behind launch bounds, and what follows them up to the body.
    fn entries(source: &str) -> impl Iterator<Item = (&str, &str)> {
        source.split("__global__ void").skip(1).filter_map(|rest| {
            let rest = match rest.trim_start().strip_prefix("__launch_bounds__") {
                Some(bounds) => bounds.split_once(')')?.1,
                None => rest,
            };
            let (name, rest) = rest.split_once('(')?;
            Some((name.trim(), rest.split_once(" {")?.0))
        })
    }

    #[test]
    fn every_kernel_is_listed_under_its_entry_and_takes_what_is_declared() {
        for (name, source) in KERNELS {
            let found: Vec<(&str, &str)> = entries(source).collect();
            assert!(!found.is_empty() && found.iter().all(|(entry, _)| entry == name), "{name}: {found:?}");
            let declared = |parameters: &str| parameters.starts_with("const Params params, BUFFERS(");
            assert!(found.iter().all(|(_, parameters)| declared(parameters)), "{name} takes {found:?}");
        }
        assert!(KERNELS.len() > 50, "{} kernels", KERNELS.len());
    }
}
