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

/// What the kernels of AES have in common, before each of them.
pub const AES: &str = concat!(include_str!("../warp/functions.cuh"), include_str!("../aes/header.cuh"));

/// What the threads of a workgroup compute together, before kernels that use it.
pub const GROUP: &str = concat!(include_str!("../warp/functions.cuh"), include_str!("../primitives/group.cuh"));

/// Sums over the threads of a workgroup, before the kernels of the sumcheck.
pub const SUM: &str = concat!(include_str!("../warp/functions.cuh"), include_str!("../sumcheck/sum.cuh"));

/// Arithmetic modulo odd numbers known at run time, before its kernels.
pub const MODSQRT: &str = concat!(
    include_str!("../warp/functions.cuh"),
    include_str!("../modsqrt/header.cuh"),
    include_str!("../field/carries.cuh"),
    include_str!("../modsqrt/multiply.cuh")
);

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{
        fs,
        path::Path,
        string::{String, ToString},
        vec::Vec,
    };

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
    fn functions_of_a_warp_are_named_in_one_source() {
        let names =
            ["__shfl", "__ballot", "__syncwarp", "__any_sync", "__all_sync", "__activemask", "__match", "__reduce"];
        let mut users = Vec::<String>::new();
        for folder in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap().map(|entry| entry.unwrap().path()) {
            for file in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
                let is_source = file.extension().is_some_and(|extension| extension == "cu" || extension == "cuh");
                if is_source && names.iter().any(|name| fs::read_to_string(&file).unwrap().contains(name)) {
                    users.push(file.display().to_string());
                }
            }
        }
        assert!(users.len() == 1 && users[0].ends_with("warp/functions.cuh"), "{users:?}");
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
