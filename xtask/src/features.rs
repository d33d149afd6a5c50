//! That the trials are built from the same dependencies as the tests of the workspace, with the same features, so that `cargo
//! xtask test` compiles each of them once.

use std::{collections::BTreeSet, path::Path, process::Command};

use crate::program::TRIALS;

/// The packages and their features that cargo builds for a selection of packages.
fn built(selection: &[&str]) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["tree", "--offline", "--locked", "--prefix", "none", "--format", "{p} [{f}]"]);
    let output = cargo.args(selection).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("names are UTF-8");
    lines.lines().map(|line| line.trim_end_matches(" (*)").replace(" (proc-macro)", "")).collect()
}

#[test]
fn trials_and_tests_are_built_from_the_same() {
    let trials = built(&["--package", TRIALS.package, "--edges", "normal,build"]);
    let tests = built(&["--workspace", "--features", "evariste-benches/all"]);
    assert!(trials.len() > 100, "only {} packages", trials.len());
    let twice: Vec<&String> = trials.difference(&tests).collect();
    assert!(
        twice.is_empty(),
        "built again for the tests, with other features (see {}'s manifest): {twice:#?}",
        TRIALS.package
    );
}
