//! Lists what is measured: each file of `src/algorithms` is one algorithm, or a part of one.

#[path = "../xtask/listing/modules.rs"]
mod modules;

use modules::Listing;

fn main() -> std::io::Result<()> {
    Listing { folder: "algorithms", item: "ALGORITHM", of: "crate::Algorithm", table: "ALGORITHMS" }.write()
}
