//! Lists the sources of kernels that lie beside this file: a module for each folder, a constant for each source in it,
//! and a table of those that have an entry point. A new source is known once it is there. `cuda/build.rs` and
//! `shaders/build.rs` are one text.

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

/// How the names of sources end.
const EXTENSIONS: [&str; 3] = ["cu", "cuh", "wgsl"];

/// What stands before an entry point, in CUDA C++ and in WGSL.
const ENTRIES: [&str; 2] = ["__global__", "@compute"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=.");
    let (mut modules, mut kernels) = (String::new(), String::new());
    for folder in entries(Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()))? {
        if is_source(&folder) {
            return Err(io::Error::other(format!("{} lies in no folder", folder.display())));
        }
        let files: Vec<PathBuf> = if folder.is_dir() { entries(&folder)? } else { Vec::new() };
        let sources: Vec<&PathBuf> = files.iter().filter(|file| is_source(file)).collect();
        if sources.is_empty() {
            continue;
        }
        let module = name(&folder);
        write(&mut modules, format_args!("/// Sources of the folder `{module}`.\npub mod {module} {{\n"));
        for path in sources {
            let text = fs::read_to_string(path)?;
            let constant = name(path).to_uppercase();
            let file = format!("{module}/{}", path.file_name().unwrap_or_default().to_string_lossy());
            let comment: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//")).map(str::trim).collect();
            let docs = format!("`{file}`:\n```text\n{}\n```", comment.join("\n"));
            write(&mut modules, format_args!("    #[doc = {docs:?}]\n"));
            // By the folder that is compiled: cargo keeps this script's output when that moves.
            let text_of = format!("include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{file}\"))");
            write(&mut modules, format_args!("    pub const {constant}: &str = {text_of};\n"));
            let is_kernel = file.ends_with(".cu") || ENTRIES.iter().any(|entry| text.contains(entry));
            match entry(&text) {
                Some(entry) => write(&mut kernels, format_args!("    ({entry:?}, {module}::{constant}),\n")),
                None if is_kernel => {
                    return Err(io::Error::other(format!("{file} has no entry point that is understood")));
                }
                None => {}
            }
        }
        modules.push_str("}\n\n");
    }
    let table = format!(
        "/// Every kernel: the name of its entry, and its source. Tests launch each.\n\
         pub const KERNELS: &[(&str, &str)] = &[\n{kernels}];\n"
    );
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("sources.rs"), modules + &table)
}

/// What a folder has, by name.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

fn is_source(file: &Path) -> bool {
    file.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
}

/// The name of a file or folder, without what is behind its dot.
fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The entry point of a source, if it has one.
fn entry(text: &str) -> Option<&str> {
    let cuda = || {
        let rest = text.split_once("__global__ void")?.1.trim_start();
        match rest.strip_prefix("__launch_bounds__") {
            Some(bounds) => Some(bounds.split_once(')')?.1),
            None => Some(rest),
        }
    };
    let wgsl = || Some(text.split_once("@compute")?.1.split_once("fn ")?.1);
    Some(cuda().or_else(wgsl)?.split_once('(')?.0.trim())
}

/// Writing to text does not fail.
fn write(text: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(line);
}
