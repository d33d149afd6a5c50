//! Lists the areas: each file of `src/trials` is one.

#[path = "../../xtask/listing/modules.rs"]
mod modules;

use modules::Listing;

fn main() -> std::io::Result<()> {
    Listing { folder: "trials", item: "AREA", of: "crate::area::Area", table: "AREAS" }.write()
}
