//! That a kernel is found under the same path in both languages.

use std::{collections::BTreeSet, fs, path::Path};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace")
}

/// The sources of a crate that have an entry point, by their folder and name.
fn kernels(of: &str, extension: &str, entry: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in
        fs::read_dir(root().join(of)).expect("the folder is there").flatten().filter(|entry| entry.path().is_dir())
    {
        for file in fs::read_dir(folder.path()).expect("it is a folder").flatten() {
            let path = file.path();
            let is_kernel = path.extension().is_some_and(|found| found == extension)
                && fs::read_to_string(&path).expect("a source is text").contains(entry);
            if is_kernel {
                let stem = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
                found.insert(format!("{}/{stem}", folder.file_name().to_string_lossy()));
            }
        }
    }
    found
}

#[test]
fn every_kernel_has_a_twin() {
    let (cuda, shaders) = (kernels("cuda", "cu", "__global__"), kernels("shaders", "wgsl", "@compute"));
    assert!(cuda.len() > 50, "{} kernels", cuda.len());
    assert_eq!(cuda, shaders);
}

#[test]
fn tables_of_packages_are_current() {
    let stale = evariste_machine::map::stale(root()).expect("documents and manifests can be read");
    let stale: Vec<&str> = stale.into_iter().map(|(document, _)| document).collect();
    assert!(stale.is_empty(), "cargo xtask map writes {stale:?} anew");
}

#[test]
fn sources_are_listed_by_one_script() {
    let [cuda, shaders] =
        ["cuda", "shaders"].map(|of| fs::read_to_string(root().join(of).join("build.rs")).expect("it is there"));
    assert!(cuda == shaders, "cuda/build.rs and shaders/build.rs are to be one text");
}

/// Rust files below a folder.
fn rust_files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// A newcomer's machine may have neither an adapter for wgpu nor a compiler for C++. Only what one line does is seen.
#[test]
fn tests_do_not_insist_on_devices_that_may_be_missing() {
    let mut files = Vec::new();
    for crates in fs::read_dir(root().join("crates")).expect("the folder is there").flatten() {
        // The emulator's own tests are left out without a compiler.
        if crates.file_name() != "emulator" && crates.path().join("src").is_dir() {
            rust_files(&crates.path(), &mut files);
        }
    }
    for file in files {
        let text = fs::read_to_string(&file).expect("a source is text");
        let insists = text.lines().position(|line| {
            ["Device::wgpu(", "Device::cuda(", "emulator::device("].iter().any(|device| line.contains(device))
                && [".unwrap()", ".expect("].iter().any(|call| line.contains(call))
        });
        assert!(
            insists.is_none(),
            "{}, line {:?}: the device may be missing",
            file.display(),
            insists.map(|at| at + 1)
        );
    }
}

/// A new backend answers the questions of `DeviceInfo`, and no algorithm knows its name.
#[test]
fn algorithms_ask_for_facts_and_not_for_the_backend() {
    const NO_ALGORITHMS: [&str; 8] =
        ["backend", "bls24-315", "cli", "conformance", "emulator", "evariste", "kernels", "microbench"];
    const NAMES: [&str; 5] = [".id.kind", "Kind::Cpu", "Kind::Cuda", "Kind::Wgpu", ".architecture"];

    let mut files = Vec::new();
    for crates in fs::read_dir(root().join("crates")).expect("the folder is there").flatten() {
        if !NO_ALGORITHMS.iter().any(|name| crates.file_name() == *name) && crates.path().join("src").is_dir() {
            rust_files(&crates.path().join("src"), &mut files);
        }
    }
    assert!(files.len() > 100, "{} files", files.len());
    for file in files.iter().filter(|file| file.file_stem().is_some_and(|stem| stem != "tests")) {
        let text = fs::read_to_string(file).expect("a source is text");
        let code = text.split("#[cfg(test)]\nmod tests {").next().expect("the first part is always there");
        let asks = code.lines().position(|line| NAMES.iter().any(|name| line.contains(name)));
        assert!(
            asks.is_none(),
            "{}, line {:?} asks for a backend by its name",
            file.display(),
            asks.map(|line| line + 1)
        );
    }
}
