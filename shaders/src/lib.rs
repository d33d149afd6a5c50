#![doc = include_str!("../README.md")]
#![no_std]

include!(concat!(env!("OUT_DIR"), "/sources.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_one_entry() {
        for (name, source) in KERNELS {
            assert_eq!(source.matches("@compute").count(), 1, "{name}");
        }
        assert!(KERNELS.len() > 50, "{} kernels", KERNELS.len());
    }
}
