//! Tests with files of circom's tools, and with arkworks' prover. `tests/data` says how the files were made.

mod arkworks;
mod data;
mod files;
mod mutations;
mod setup;
mod verification;
