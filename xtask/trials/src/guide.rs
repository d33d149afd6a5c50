//! The steps of `docs/adding-an-algorithm.md`, followed for a tiny algorithm on a copy of the workspace: so that the
//! page stays right, and what an algorithm costs in files is known.
//!
//! Its files lie in `xtask/adding-an-algorithm`. The copy has a version of its own: cargo then keeps what is built from
//! it apart from what is built from the workspace, and takes the same dependencies.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf, absolute},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail, ensure};
use evariste_machine::{
    map,
    process::{cargo, root},
};
use libtest_mimic::Trial;

/// The page.
const PAGE: &str = "docs/adding-an-algorithm.md";

/// What the page calls the new algorithm, and what it is called here.
const NAMES: [&str; 2] = ["msm", "gray"];

/// The files that are new.
const FILES: &str = "xtask/adding-an-algorithm";

/// The files that an algorithm may edit.
const MOST_EDITS: usize = 4;

/// Folders with what is no part of the workspace.
const NOT_COPIED: [&str; 4] = ["target", ".git", "artifacts", "corpus"];

/// Something that is put into a file that is there, behind a text that it has once.
struct Edit {
    file: &'static str,
    behind: &'static str,
    text: &'static str,
}

/// The edits of other files, by the steps of the page.
const EDITS: &[Edit] = &[
    // 1. The crate.
    Edit {
        file: "Cargo.toml",
        behind: "[workspace.dependencies]\n",
        text: concat!("evariste-gray = { path = \"crates/gray\", version = \"", env!("CARGO_PKG_VERSION"), "\" }\n"),
    },
    // 3. Tests and 4. benches edit no file.
    // 5. For users.
    Edit {
        file: "crates/evariste/Cargo.toml",
        behind: "field = [\"dep:evariste-field\"]\n",
        text: "## Gray codes. Need no field.\ngray = [\"dep:evariste-gray\"]\n",
    },
    Edit { file: "crates/evariste/Cargo.toml", behind: "\nfull = [", text: "\"gray\", " },
    Edit {
        file: "crates/evariste/Cargo.toml",
        behind: "\nevariste-field = { workspace = true, optional = true }\n",
        text: "evariste-gray = { workspace = true, optional = true }\n",
    },
    Edit {
        file: "crates/evariste/src/lib.rs",
        behind: "pub use evariste_field as field;\n",
        text: "#[cfg(feature = \"gray\")]\npub use evariste_gray as gray;\n",
    },
    Edit { file: "CHANGELOG.md", behind: "### Added\n\n", text: "- `evariste-gray`: Gray codes of 32-bit integers.\n" },
];

/// What trials that follow pages are named by, behind `any::`.
pub(crate) const SUITE: &str = "docs";

/// A trial that follows the steps, named `any::docs::adding_an_algorithm`.
pub(crate) fn trial() -> Trial {
    const NAME: &str = "any::docs::adding_an_algorithm";

    match cargo() {
        Some(_) => Trial::test(NAME, || follow().map_err(|error| format!("{error:#}").into())),
        None => evariste_conformance::skipped(NAME, "it runs under `cargo xtask test` only"),
    }
}

/// The variable in which cargo is told what stands for the compiler of the workspace's crates.
const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

/// Set where this program stands for the compiler: what stood for it before, if anything.
const CHECKS: &str = "EVARISTE_CHECKS_WITH";

/// Where cargo has started this program as the compiler, checks a crate of the copy as the compiler would, and makes no
/// code. `cargo check` would do the same, but check the dependencies too, which are compiled already.
pub(crate) fn check_as_compiler() -> Option<ExitCode> {
    let before = env::var_os(CHECKS)?;
    let mut command: Vec<OsString> = env::args_os().skip(1).collect();
    let is_script = command.iter().any(|argument| argument.to_str().is_some_and(|it| it.starts_with("build_script")));
    for argument in command.iter_mut().filter(|_| !is_script) {
        let Some(text) = argument.to_str() else { continue };
        if text.starts_with("--emit=") {
            *argument = "--emit=dep-info,metadata".into();
        } else if let Some(library) = text.strip_suffix(".rlib").filter(|it| it.starts_with("evariste")) {
            *argument = format!("{library}.rmeta").into();
        }
    }
    if !before.is_empty() {
        command.insert(0, before);
    }
    let status = Command::new(&command[0]).args(&command[1..]).status();
    Some(if status.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Adds the algorithm to a copy, compares the files with those that the page lists, and builds and tests what came of
/// it.
fn follow() -> Result<()> {
    let root = root();
    let target = absolute(env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from))?;
    let copy = target.join("adding-an-algorithm");
    if copy.exists() {
        fs::remove_dir_all(&copy).with_context(|| format!("removing {}", copy.display()))?;
    }
    for file in files(&root, &target)? {
        copy_file(&root.join(&file), &copy.join(&file))?;
    }

    let templates = root.join(FILES);
    let (mut new, mut edited) = (BTreeSet::new(), BTreeSet::new());
    for file in files(&templates, &target)? {
        ensure!(!copy.join(&file).exists(), "{} is there already", file.display());
        copy_file(&templates.join(&file), &copy.join(&file))?;
        new.insert(file.to_string_lossy().replace('\\', "/"));
    }
    for Edit { file, behind, text } in EDITS {
        insert(&copy.join(file), behind, text)?;
        edited.insert((*file).to_owned());
    }
    let written = map::write(&copy)?.into_iter().map(str::to_owned).collect();
    compare(&root, &new, &edited, &written)?;

    let version = concat!("[workspace.package]\nversion = \"", env!("CARGO_PKG_VERSION"));
    insert(&copy.join("Cargo.toml"), version, "+copy")?;
    let cargo = |with: &[(&str, OsString)], arguments: &[&str]| -> Result<()> {
        let mut cargo = cargo().context("there is no cargo")?;
        cargo.current_dir(&copy).envs(with.iter().cloned());
        cargo.args(arguments).args(["--release", "--offline", "--quiet"]);
        let output = cargo.output().context("cargo could not be started")?;
        let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        ensure!(output.status.success(), "cargo {} in {}:\n{out}{err}", arguments.join(" "), copy.display());
        Ok(())
    };
    // With devices that read its WGSL, where there are any. Nothing of this package is built. It gives dependencies the
    // features with which they are built already.
    let mut with = vec![("CARGO_TARGET_DIR", target.into_os_string())];
    for tests in ["--lib", "--doc"] {
        cargo(&with, &["test", "--package", "evariste-gray", "--package", "evariste-trials", tests])?;
    }
    // The façade, whose feature `full` trials and benches take, has it as a feature.
    let packages = ["evariste-trials", "evariste-benches", "evariste"].map(|package| ["--package", package]).concat();
    with.push((WRAPPER, env::current_exe()?.into()));
    with.push((CHECKS, env::var_os(WRAPPER).unwrap_or_default()));
    cargo(&with, &[&["build"], &packages[..], &["--features", "evariste/full"]].concat())?;
    fs::remove_dir_all(&copy).with_context(|| format!("removing {}", copy.display()))
}

/// Whether the page lists these files, and says how many they are.
fn compare(root: &Path, new: &BTreeSet<String>, edited: &BTreeSet<String>, written: &BTreeSet<String>) -> Result<()> {
    let page = fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let listed = |kind: &str| -> BTreeSet<String> {
        let [theirs, ours] = NAMES;
        let words = page.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let of_kind = words.filter(|words| words.first() == Some(&kind) && words.len() > 2);
        of_kind.map(|words| words[1].replace(theirs, ours)).collect()
    };
    for (kind, files) in [("new", new), ("edited", edited), ("written", written)] {
        let listed = listed(kind);
        ensure!(listed == *files, "{PAGE} lists as {kind} {listed:?}, the steps lead to {files:?}");
    }
    let numbers = format!("makes {} files and edits {}", new.len(), edited.len());
    ensure!(page.contains(&numbers), "{PAGE} does not say that an algorithm {numbers}");
    ensure!(edited.len() <= MOST_EDITS, "an algorithm edits {edited:?}, expected at most {MOST_EDITS} files");
    Ok(())
}

/// Puts a text behind another one, which the file has once.
fn insert(file: &Path, behind: &str, text: &str) -> Result<()> {
    let before = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let (Some(place), 1) = (before.find(behind), before.matches(behind).count()) else {
        bail!("{} has {:?} not once", file.display(), behind);
    };
    let (head, tail) = before.split_at(place + behind.len());
    fs::write(file, [head, text, tail].concat()).with_context(|| format!("writing {}", file.display()))
}

/// All files below a folder, from there, without the folder of what is built.
fn files(folder: &Path, target: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(below) = folders.pop() {
        let entries = fs::read_dir(folder.join(&below)).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = below.join(entry.file_name());
            let skipped = NOT_COPIED.iter().any(|name| entry.file_name() == *name) || absolute(entry.path())? == target;
            if skipped {
                continue;
            }
            if entry.file_type()?.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    Ok(files)
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    fs::copy(from, to).map(drop).with_context(|| format!("copying {} to {}", from.display(), to.display()))
}
