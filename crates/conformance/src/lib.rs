#![doc = include_str!("../README.md")]

use evariste_backend::Device;
use libtest_mimic::Trial;

/// The trials of one device. Their names read `device::suite::field::case`.
pub fn suite(_device: &Device) -> Vec<Trial> {
    Vec::new()
}
