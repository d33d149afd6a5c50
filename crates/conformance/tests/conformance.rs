//! The suite on every device found; with `EVARISTE_FULL` set, what takes minutes too. What is not there is reported as
//! ignored.

use std::{env, process::ExitCode};

use evariste::backend::Device;
use evariste_conformance::{Heap, skipped};
use libtest_mimic::Arguments;

/// Trials look at what is freed.
#[global_allocator]
static HEAP: Heap = Heap;

fn main() -> ExitCode {
    evariste_conformance::run_child();
    let mut trials = evariste_conformance::common();
    let full = env::var_os("EVARISTE_FULL").is_some();
    for found in Device::discover() {
        match found.device {
            Ok(device) => {
                trials.extend(evariste_conformance::suite(&device));
                trials.extend(full.then(|| evariste_conformance::long(&device)).into_iter().flatten());
            }
            Err(error) => trials.push(skipped(found.id.to_string(), &error.to_string())),
        }
    }
    match evariste_conformance::emulator() {
        Ok(emulator) => trials.extend(emulator),
        Err(error) => trials.push(skipped("emulator", &error.to_string())),
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
