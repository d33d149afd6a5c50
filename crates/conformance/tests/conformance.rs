//! The suite on every device found.

use std::process::ExitCode;

use evariste_backend::Device;
use libtest_mimic::Arguments;

fn main() -> ExitCode {
    evariste_conformance::run_child();
    let mut trials = evariste_conformance::common();
    trials.extend(Device::all().iter().flat_map(evariste_conformance::suite));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
