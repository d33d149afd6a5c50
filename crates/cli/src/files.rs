//! Files that take their names only when all of them are complete.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use tempfile::{Builder, NamedTempFile};

use crate::exit::Usage;

/// A file without its name, gone if it does not get it.
pub(crate) struct Aside {
    file: BufWriter<NamedTempFile>,
    target: PathBuf,
}

impl Aside {
    /// Makes a file beside its target.
    pub(crate) fn new(target: &Path) -> Result<Self> {
        let path = resolve(target)?;
        let mut builder = Builder::new();
        builder.prefix(".evariste-").suffix(".part");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let make = || -> io::Result<NamedTempFile> {
            let file = builder.tempfile_in(folder_of(&path))?;
            if let Ok(replaced) = path.metadata() {
                file.as_file().set_permissions(replaced.permissions())?;
            }
            Ok(file)
        };
        let file = make().with_context(|| target.display().to_string())?;
        Ok(Self { file: BufWriter::new(file), target: path })
    }

    pub(crate) fn file(&mut self) -> &mut impl Write {
        &mut self.file
    }

    /// Gives files their names one after the other, after the contents of all have reached the disk.
    pub(crate) fn finish(files: Vec<Self>) -> Result<()> {
        let mut complete = Vec::with_capacity(files.len());
        for Aside { file, target } in files {
            let name = || target.display().to_string();
            let file = file.into_inner().map_err(io::IntoInnerError::into_error).with_context(name)?;
            file.as_file().sync_all().with_context(name)?;
            complete.push((file, target));
        }
        for (file, target) in complete {
            file.persist(&target).map_err(|error| error.error).with_context(|| target.display().to_string())?;
        }
        Ok(())
    }
}

/// Writes texts, each with a line's end. Files take their names when all are complete.
pub(crate) fn write(texts: &[(&Path, String)]) -> Result<()> {
    let aside = |(path, text): &(&Path, String)| -> Result<Aside> {
        let mut aside = Aside::new(path)?;
        writeln!(aside.file(), "{text}").with_context(|| path.display().to_string())?;
        Ok(aside)
    };
    Aside::finish(texts.iter().map(aside).collect::<Result<_>>()?)
}

/// Reads a text.
pub(crate) fn text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Reads a text from a file, or from the standard input for `-`.
pub(crate) fn text_or_input(path: &Path) -> Result<String> {
    if path != Path::new("-") {
        return text(path);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).context("standard input")?;
    Ok(text)
}

/// Refuses targets that no file can have, or that are one file under two names, before the work for them.
pub(crate) fn expect_targets(targets: [&Path; 2]) -> Result<()> {
    let [first, second] = targets;
    if resolve(first)? == resolve(second)? {
        return Err(Usage(format!("{} and {} are the same file", first.display(), second.display())).into());
    }
    Ok(())
}

/// Returns the place of the file that a target names, through links.
fn resolve(target: &Path) -> Result<PathBuf> {
    let refuse = |kind, reason: &str| Err(io::Error::new(kind, reason)).with_context(|| target.display().to_string());
    let is_name = target.file_name().is_some() && !target.as_os_str().as_encoded_bytes().ends_with(b"/");
    match target.metadata() {
        Ok(found) if found.is_file() => Ok(target.canonicalize().with_context(|| target.display().to_string())?),
        Ok(_) => refuse(io::ErrorKind::InvalidInput, "it is not a file"),
        Err(_) if !is_name => refuse(io::ErrorKind::InvalidInput, "it is not the name of a file"),
        Err(_) if folder_of(target).is_dir() => {
            let folder = folder_of(target).canonicalize().with_context(|| target.display().to_string())?;
            Ok(folder.join(target.file_name().unwrap_or_default()))
        }
        Err(_) => refuse(io::ErrorKind::NotFound, "its folder is not there"),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the length of a file, or 0.
pub(crate) fn len(path: &Path) -> u64 {
    File::open(path).and_then(|file| file.metadata()).map_or(0, |found| found.len())
}
