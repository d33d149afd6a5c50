//! `docs/comparisons.md`, written from the files under `docs/results`.

use std::path::Path;

use anyhow::{Context, Result};

use crate::{
    Figures, Results, Section, Table,
    founding::{SYSTEMS, Scale, System},
    section::{cell, ratio},
};

/// The document, from the repository's root.
pub const DOCUMENT: &str = "docs/comparisons.md";

/// Where results lie, from the repository's root.
pub const RESULTS: &str = "docs/results";

/// The device that the document compares on.
const DEVICE: &str = "NVIDIA H200";

/// The files that the document is written from. The first one that has a case counts.
const FILES: [&str; 18] = [
    "h200-founding.json",
    "h200-founding-sqrt.json",
    "h200-msm-methods-19.json",
    "h200-msm-methods-22.json",
    "h200-msm-methods-23.json",
    "h200-msm-methods-24.json",
    "h200-ntt-fr.json",
    "h200-ntt.json",
    "h200-ntt-25.json",
    "h200-ntt-26.json",
    "h200-msm.json",
    "h200-sumcheck.json",
    "h200-sumcheck-28.json",
    "h200-sumcheck-rounds.json",
    "h200-aes-modes.json",
    "h200-aes.json",
    "h200-sqrt.json",
    "h200-field.json",
];

/// Roots and symbols modulo run-time numbers, through CUDA and through Vulkan.
const MODULAR: [&str; 2] = ["h200-modsqrt.json", "h200-vulkan-modsqrt.json"];

/// Bits of the moduli, and log₂ of the roots that were computed at once.
const MODULI: [(u32, u32); 5] = [(256, 20), (512, 20), (1024, 17), (2048, 14), (4096, 11)];

/// log₂ of the symbols.
const SYMBOLS: u32 = 17;

const HEAD: &str = "# Comparisons

What the five documents that this workspace was founded on published, beside what it measures. `cargo xtask reproduce all` measures
the same on the devices at hand; this page is written from recorded results by `cargo xtask comparisons`, and CI checks that it
is what they say. Figures are those of one NVIDIA H200, medians, checked results; a dash is a figure that is not there.
";

/// The document, from the results below a root.
///
/// # Errors
/// If a file of results is missing or damaged.
pub fn document(root: &Path) -> Result<String> {
    let mut text = HEAD.to_owned();
    for section in sections(root)? {
        text += "\n";
        text += &section.markdown("results");
    }
    text += "\n";
    text += &modular(root)?;
    Ok(text)
}

/// The files that the document is written from.
pub(crate) fn files(root: &Path) -> Result<Vec<(&'static str, Results)>> {
    FILES.iter().map(|file| Ok((*file, Results::read(&root.join(RESULTS).join(file))?))).collect()
}

/// The five comparisons, from the results below a root.
pub(crate) fn sections(root: &Path) -> Result<Vec<Section>> {
    let files = files(root)?;
    let section = |system: &System| {
        let figures = Figures::new(DEVICE, files.iter().map(|(file, results)| (*file, results)));
        system.section(&figures, Scale::Source)
    };
    Ok(SYSTEMS.into_iter().map(section).collect())
}

/// What no founding document has: moduli that are known at run time alone.
fn modular(root: &Path) -> Result<String> {
    let [cuda, vulkan] = MODULAR.map(|file| Results::read(&root.join(RESULTS).join(file)));
    let (cuda, vulkan) = (cuda?, vulkan?);
    let [cuda, vulkan] = [(MODULAR[0], &cuda), (MODULAR[1], &vulkan)].map(|file| Figures::new(DEVICE, [file]));
    let head = ["bits", "roots", "roots, CUDA", "roots, Vulkan", "ratio", "symbols, CUDA", "symbols, Vulkan"];
    let mut table = Table::new("Times of a batch in device memory, ms", head);
    for (bits, log_n) in MODULI {
        let [roots, symbols] = ["roots", "symbols"].map(|what| format!("mod-{bits}/{what}/device"));
        let [a, b] = [&cuda, &vulkan].map(|figures| figures.time(&roots, log_n));
        let [c, d] = [&cuda, &vulkan].map(|figures| cell(figures.time(&symbols, SYMBOLS)));
        table.row([bits.to_string(), format!("2^{log_n}"), cell(a), cell(b), ratio(b, a), c, d]);
    }
    Ok(format!(
        "## Roots and symbols modulo run-time numbers\n\nRoots modulo primes ≡ 3 (mod 4), and Jacobi symbols of 2^{SYMBOLS} elements, \
         through CUDA and through Vulkan ([`{0}`](results/{0}), [`{1}`](results/{1})). All are checked: elements are squares and \
         products of one with a non-residue.\n{2}",
        MODULAR[0],
        MODULAR[1],
        table.markdown()
    ))
}

/// Writes the document.
///
/// # Errors
/// As [`document`], and if it cannot be written.
pub fn write(root: &Path) -> Result<()> {
    let path = root.join(DOCUMENT);
    std::fs::write(&path, document(root)?).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_says_what_the_results_say() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let written = std::fs::read_to_string(root.join(DOCUMENT)).unwrap();
        let document = document(&root).unwrap();
        let line = written.lines().zip(document.lines()).position(|(a, b)| a != b);
        assert!(written == document, "line {line:?} differs: `cargo xtask comparisons` writes it anew");
    }
}
