//! Fuzz targets: functions that take any bytes, do with them what a user or an attacker could, compare what comes of it
//! with a plain implementation, and panic where they differ.
//!
//! `cargo xtask fuzz` gives each its time on stable Rust: mutations of a few inputs, the same ones for the same seed.
//! Under `cargo fuzz` libFuzzer chooses the inputs by the code that they reach.

mod batches;
mod cache;
mod devices;
mod expressions;
mod files;
mod folder;
mod groth16;
mod points;
mod reference;
mod sumchecks;

pub use batches::aes_batches;
pub use cache::cache_entries;
pub use devices::device_names;
pub use expressions::expressions;
pub use files::aes_files;
pub use groth16::{circom_files, snarkjs_texts};
pub use points::points;
pub use sumchecks::sumchecks;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it is called; there is a file of this name in `fuzz_targets`.
    pub name: &'static str,
    /// What it does with an input. It panics if a result is wrong.
    pub run: fn(&[u8]),
    /// Inputs to start from, beside random bytes. Targets that read their input as a list of choices need none.
    pub seeds: &'static [&'static [u8]],
}

/// All targets.
pub static TARGETS: [Target; 9] = [
    Target { name: "aes_batches", run: aes_batches, seeds: &[] },
    Target { name: "aes_files", run: aes_files, seeds: &[] },
    Target { name: "cache_entries", run: cache_entries, seeds: &[] },
    Target { name: "circom_files", run: circom_files, seeds: groth16::FILES },
    Target { name: "device_names", run: device_names, seeds: devices::SEEDS },
    Target { name: "expressions", run: expressions, seeds: &[] },
    Target { name: "points", run: points, seeds: &[] },
    Target { name: "snarkjs_texts", run: snarkjs_texts, seeds: groth16::TEXTS },
    Target { name: "sumchecks", run: sumchecks, seeds: &[] },
];

/// What is left of the input where it must have been long enough: targets go on with zeros at its end.
fn choice<T>(choice: arbitrary::Result<T>) -> T {
    match choice {
        Ok(choice) => choice,
        Err(error) => unreachable!("numbers and byte strings come from any input: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn every_target_has_its_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets");
        let programs: BTreeSet<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(programs, BTreeSet::from(TARGETS.map(|target| target.name.to_owned())));
    }

    #[test]
    fn targets_take_an_empty_input() {
        TARGETS.iter().for_each(|target| (target.run)(&[]));
    }
}
