//! The suite on every device found.

use std::process::ExitCode;

use evariste_backend::Device;
use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let trials = Device::all().iter().flat_map(evariste_conformance::suite).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
