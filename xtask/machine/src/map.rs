//! Tables of the workspace's packages in documents, written from the packages' manifests.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

/// What stands before and after a table.
const MARKERS: [&str; 2] = ["<!-- packages: written by cargo xtask map -->\n", "<!-- end of packages -->"];

/// The folders that may hold packages, or folders of them.
const FOLDERS: [&str; 7] = ["crates", "cuda", "shaders", "benches", "fuzz", "xtask", "examples"];

/// A document, and the table that it has.
type Document = (&'static str, fn(&[Package]) -> String);

const DOCUMENTS: [Document; 2] = [("README.md", published), ("docs/architecture.md", map)];

/// What a manifest says of a package.
#[derive(Debug)]
struct Package {
    folder: String,
    name: String,
    description: String,
    /// The files to read first: `start` of `[package.metadata.map]`.
    start: Option<String>,
    is_published: bool,
    /// The packages of the workspace that it depends on; those of its tests only if it is for the workspace alone.
    dependencies: BTreeSet<String>,
}

/// Writes the tables, and gives the documents that changed.
///
/// # Errors
/// A file cannot be read or written, a manifest has no name or description, or a document has no markers.
pub fn write(root: &Path) -> Result<Vec<&'static str>> {
    let stale = stale(root)?;
    for (document, text) in &stale {
        fs::write(root.join(document), text).with_context(|| format!("writing {document}"))?;
    }
    Ok(stale.into_iter().map(|(document, _)| document).collect())
}

/// The documents whose tables are not those of the manifests, and the text that they should have.
///
/// # Errors
/// As of [`write()`].
pub fn stale(root: &Path) -> Result<Vec<(&'static str, String)>> {
    let packages = in_order(packages(root)?);
    let mut stale = Vec::new();
    for (document, table) in DOCUMENTS {
        let text = fs::read_to_string(root.join(document)).with_context(|| format!("reading {document}"))?;
        let [start, end] = MARKERS;
        let (head, rest) = text.split_once(start).with_context(|| format!("{document} has no {start:?}"))?;
        let (_, tail) = rest.split_once(end).with_context(|| format!("{document} has no {end:?}"))?;
        let wanted = [head, start, &table(&packages), end, tail].concat();
        if wanted != text {
            stale.push((document, wanted));
        }
    }
    Ok(stale)
}

/// The table of those that users choose from.
fn published(packages: &[Package]) -> String {
    let mut rows: Vec<&Package> = packages.iter().filter(|package| package.is_published).collect();
    rows.sort_by_key(|package| &package.name);
    let row = |package: &&Package| {
        let Package { folder, name, description, .. } = package;
        format!("| [`{name}`]({folder}) | {description} |\n")
    };
    format!("| Crate | What it is |\n|---|---|\n{}", rows.iter().map(row).collect::<String>())
}

/// The table of all.
fn map(packages: &[Package]) -> String {
    let row = |package: &Package| {
        let start = package.start.as_deref().unwrap_or("src/lib.rs");
        let start: Vec<String> = start.split(' ').map(|file| format!("`{file}`")).collect();
        format!("| `{}` | {} | {} |\n", package.folder, package.description, start.join(", "))
    };
    format!(
        "| Folder | What it is | Look here first |\n|---|---|---|\n{}",
        packages.iter().map(row).collect::<String>()
    )
}

/// Each behind those that it depends on, and otherwise by their folders.
fn in_order(mut left: Vec<Package>) -> Vec<Package> {
    let mut ordered: Vec<Package> = Vec::new();
    while !left.is_empty() {
        let is_free = |package: &Package| left.iter().all(|other| !package.dependencies.contains(&other.name));
        // Cargo allows no circles.
        let next = left.iter().position(is_free).unwrap_or(0);
        ordered.push(left.remove(next));
    }
    ordered
}

/// All packages, by their folders.
fn packages(root: &Path) -> Result<Vec<Package>> {
    let mut manifests = Vec::new();
    for folder in FOLDERS.map(|folder| root.join(folder)) {
        manifests.push(folder.join("Cargo.toml"));
        let entries = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            manifests.push(entry?.path().join("Cargo.toml"));
        }
    }
    manifests.retain(|manifest| manifest.is_file());
    manifests.sort();
    manifests.iter().map(|manifest| package(root, manifest)).collect()
}

fn package(root: &Path, manifest: &PathBuf) -> Result<Package> {
    let text = fs::read_to_string(manifest).with_context(|| format!("reading {}", manifest.display()))?;
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        line.and_then(|rest| rest.strip_suffix('"')).map(str::to_owned)
    };
    let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root).ok()).unwrap_or(manifest);
    let is_published = !text.lines().any(|line| line == "publish = false");
    let (mut section, mut dependencies) = ("", BTreeSet::new());
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        } else if line.starts_with("evariste")
            && (section == "[dependencies]" || section == "[dev-dependencies]" && !is_published)
        {
            dependencies.extend(line.split(['.', ' ']).next().map(str::to_owned));
        }
    }
    let what = || format!("{} has no name or description", manifest.display());
    let package = Package {
        folder: folder.to_string_lossy().replace('\\', "/"),
        name: value("name").with_context(what)?,
        description: value("description").with_context(what)?,
        start: value("start"),
        is_published,
        dependencies,
    };
    ensure!(!package.description.contains('|'), "{}: a description cannot have |", manifest.display());
    for file in package.start.iter().flat_map(|start| start.split(' ')) {
        ensure!(root.join(folder).join(file).exists(), "{} names {file}, which is not there", manifest.display());
    }
    Ok(package)
}
