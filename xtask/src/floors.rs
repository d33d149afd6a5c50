//! The floors of the crates: a crate uses only crates on floors below its own, as `docs/architecture.md` says.
//!
//! This is read off `cargo metadata`. Dependencies for tests alone do not count.

use std::{collections::BTreeMap, path::Path, process::Command};

use serde_json::Value;

/// The published crates that are no algorithms, floor by floor from below. Crates of one line do not use each other.
const FLOORS: [&[&str]; 9] = [
    // Texts, code, expressions without fields, and a curve of arkworks' own.
    &["evariste-cuda", "evariste-shaders", "evariste-kernels", "evariste-expression", "evariste-bls24-315"],
    &["evariste-backend"],
    &["evariste-primitives"],
    &["evariste-field"],
    &["evariste-curve"],
    // Algorithms: all published crates that no other line names.
    &[],
    // Protocols over several algorithms.
    &["evariste-cluster", "evariste-fri", "evariste-groth16"],
    // Other libraries' traits over these.
    &["evariste-plonky3"],
    // What exports all, and a program.
    &["evariste", "evariste-cli"],
];
const ALGORITHMS: usize = 5;

#[test]
fn crates_use_only_floors_below_their_own() {
    let uses = published();
    assert!(uses.len() > 10, "only {} crates were found", uses.len());
    assert_eq!(broken(&FLOORS, ALGORITHMS, &uses), Vec::<String>::new());
}

#[test]
fn a_crate_that_uses_its_own_floor_is_found() {
    let broken = |uses: &[(&str, &[&str])]| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let uses = uses.iter().map(|(from, to)| ((*from).to_owned(), owned(to))).collect();
        broken(&[&["backend"], &[], &["pcs", "fri"]], 1, &uses)
    };
    assert_eq!(broken(&[("ntt", &["backend"]), ("pcs", &["msm", "ntt", "backend"])]), Vec::<String>::new());
    let found = broken(&[("ntt", &["msm"]), ("fri", &["pcs"]), ("backend", &["ntt"])]);
    assert_eq!(found, ["backend uses ntt", "fri uses pcs", "ntt uses msm"]);
}

/// Each use of a crate on the same floor, or on one above.
fn broken(floors: &[&[&str]], algorithms: usize, uses: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let floor = |name: &String| floors.iter().position(|names| names.contains(&name.as_str())).unwrap_or(algorithms);
    let pairs = uses.iter().flat_map(|(from, used)| used.iter().map(move |to| (from, to)));
    pairs.filter(|(from, to)| floor(from) <= floor(to)).map(|(from, to)| format!("{from} uses {to}")).collect()
}

/// The workspace's published crates under `crates`, `cuda` and `shaders`, with those of the workspace that each depends
/// on.
fn published() -> BTreeMap<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    // `publish = false` is an empty list of registries.
    let published = packages.iter().filter(|package| package["publish"].is_null());
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let uses = |package: &Value| {
        let dependencies = package["dependencies"].as_array().cloned().unwrap_or_default();
        let own = dependencies.into_iter().filter(|used| used["path"].is_string() && used["kind"] != "dev");
        own.map(|used| name(&used)).collect()
    };
    published.map(|package| (name(package), uses(package))).collect()
}
