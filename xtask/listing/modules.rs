//! Lists the files of a folder for a crate's build script: a module for each, and a table of a constant that each of
//! them has. A file that is there is in the table.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

/// The first lines of a file that is compiled with a feature alone.
const FEATURE: &str = "#![cfg(feature = ";

/// What is listed.
pub(crate) struct Listing {
    /// The folder below `src`, which becomes a module.
    pub(crate) folder: &'static str,
    /// The constant of each file, by reference.
    pub(crate) item: &'static str,
    /// Its type.
    pub(crate) of: &'static str,
    /// What the table is called.
    pub(crate) table: &'static str,
}

impl Listing {
    /// Writes the module for the crate to include.
    pub(crate) fn write(&self) -> io::Result<()> {
        let Self { folder, item, of, table } = self;
        let variable = |name| env::var_os(name).map(PathBuf::from).unwrap_or_default();
        let (package, out) = (variable("CARGO_MANIFEST_DIR"), variable("OUT_DIR"));
        let sources = package.join("src").join(folder);
        println!("cargo::rerun-if-changed=src/{folder}");
        let mut files = fs::read_dir(&sources)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
        files.sort();
        let (mut modules, mut entries) = (String::new(), String::new());
        for file in &files {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            let text = fs::read_to_string(file)?;
            let attribute = text.lines().find(|line| line.starts_with(FEATURE)).unwrap_or_default().replace("#!", "#");
            modules += &format!("    {attribute}\n    pub(crate) mod {name};\n");
            entries += &format!("        {attribute}\n        &{name}::{item},\n");
        }
        let text = format!(
            "#[path = {:?}]\npub(crate) mod {folder} {{\n{modules}\n    \
             pub(crate) const {table}: &[&{of}] = &[\n{entries}    ];\n}}\n",
            way(&out, &sources)
        );
        fs::write(out.join(format!("{folder}.rs")), text)
    }
}

/// The way from one folder to another. Cargo keeps what was written when all of them move together.
fn way(from: &Path, to: &Path) -> String {
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| "..".to_owned());
    let down = to.components().skip(common).map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}
