//! Writes the tables and the chart of `docs/scaling.md`: what the model of [`model`] says of times on several GPUs.
//!
//! `cargo run -p evariste-scaling` prints the tables, `-- --chart` the chart. A test compares the page with both.

mod chart;
mod model;
mod tables;

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        None => print!("{}", tables::all()),
        Some("--chart") => print!("{}", chart::speedups()),
        Some(other) => {
            eprintln!("unknown argument {other}: expected none or --chart");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// The page has the tables of the model, and the chart is the model's.
    #[test]
    fn the_page_says_what_the_model_does() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let page = fs::read_to_string(docs.join("scaling.md")).expect("the page");
        for table in super::tables::all().split("\n\n") {
            assert!(page.contains(table.trim()), "docs/scaling.md lacks:\n{table}");
        }
        let chart = fs::read_to_string(docs.join("charts/scaling.svg")).expect("the chart");
        assert_eq!(chart, super::chart::speedups(), "docs/charts/scaling.svg");
    }
}
