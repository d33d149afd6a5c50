//! Tests with files of circom's tools, and with arkworks' prover. `tests/data` says how the files were made.

mod arkworks;
mod curves;
mod data;
mod files;
mod mutations;
mod proofs;
mod setup;
mod verification;
