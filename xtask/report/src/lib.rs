//! Recorded results beside published ones.
//!
//! `cargo xtask bench --json` writes what it measured to a file ([`Results`]). A founding system ([`founding::System`])
//! knows the figures that its source published, the cases of the bench that measure the same, and the sentences that
//! both together support. `cargo xtask reproduce` prints that from a run, and `docs/comparisons.md` is written from the
//! files under `docs/results`, and checked against them. `cargo xtask report` makes one page of all results, with
//! charts ([`page`]).

mod chart;
pub mod comparisons;
mod figures;
pub mod founding;
pub mod page;
mod profile;
mod records;
mod section;

pub use figures::Figures;
pub use profile::Profile;
pub use records::{Device, Machine, Missing, Record, Results, Skipped, Speedup};
pub use section::{Section, Table};
