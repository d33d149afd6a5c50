#![doc = include_str!("../README.md")]
#![no_std]

include!(concat!(env!("OUT_DIR"), "/sources.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of the first function after `@compute`.
    fn entry(source: &str) -> Option<&str> {
        let (_, rest) = source.split_once("@compute")?;
        let (_, rest) = rest.split_once("fn ")?;
        rest.split_once('(').map(|(name, _)| name)
    }

    #[test]
    fn every_kernel_is_listed_under_its_entry() {
        for (name, source) in KERNELS {
            assert_eq!(entry(source), Some(*name));
            assert_eq!(source.matches("@compute").count(), 1, "{name}");
        }
        assert!(KERNELS.len() > 50, "{} kernels", KERNELS.len());
    }
}
