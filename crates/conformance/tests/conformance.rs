//! The suite on every device found; with `EVARISTE_FULL` set, what takes minutes too.

use std::{env, process::ExitCode};

use evariste_backend::Device;
use libtest_mimic::Arguments;

fn main() -> ExitCode {
    evariste_conformance::run_child();
    let mut trials = evariste_conformance::common();
    let devices = Device::all();
    trials.extend(devices.iter().flat_map(evariste_conformance::suite));
    if env::var_os("EVARISTE_FULL").is_some() {
        trials.extend(devices.iter().flat_map(evariste_conformance::long));
    }
    trials.extend(evariste_conformance::hosted().unwrap_or_default());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
