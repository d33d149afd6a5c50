//! Tests with files of circom's tools, with the tools themselves, and with arkworks' prover. `tests/data` says how the files
//! were made.
//!
//! They are one program: each curve's prover is compiled once. What it tests is listed here, since some tests run only where
//! circom's tools are.

mod arkworks;
mod circom;
mod curves;
mod data;
mod files;
mod mutations;
mod proofs;
mod setup;
mod verification;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Tests that fail by a panic, by their paths.
macro_rules! trials {
    ($($module:ident: $($test:ident),+;)+) => {
        vec![$($(Trial::test(concat!(stringify!($module), "::", stringify!($test)), || {
            $module::$test();
            Ok(())
        })),+),+]
    };
}

fn main() -> ExitCode {
    let mut trials = trials! {
        arkworks: arkworks_keys_give_the_same_bytes, circom_keys_give_the_same_bytes, keys_and_matrices_fit_together;
        curves: files_tell_their_curve, other_curves_are_refused;
        files:
            snarkjs_files_prove, files_are_written_as_snarkjs_writes_them, a_wrong_witness_is_found,
            errors_name_the_file_the_section_and_the_offset, checks_are_made_as_chosen;
        mutations:
            damaged_keys_are_refused, damaged_witnesses_are_refused, damaged_constraints_are_refused,
            sections_are_there_once, keys_of_other_proof_systems_are_refused,
            files_of_another_curve_are_refused, damaged_texts_are_refused;
        proofs: errors_take_the_place_of_proofs, witnesses_are_read_when_they_are_due, many_proofs_hold;
        setup:
            keys_of_our_own_prove, the_least_circuits_prove, squares_satisfy_their_constraints,
            keys_differ_by_their_secrets;
        verification:
            what_does_not_hold_is_refused, points_off_the_curve_and_the_subgroup_are_refused,
            verifying_keys_are_checked, numbers_of_texts_are_below_the_modulus;
    };
    trials.extend(circom::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
