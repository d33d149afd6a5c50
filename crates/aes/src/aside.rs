//! Files that take their name only when they are complete.
//!
//! Where the system and the file system have files without a name (`O_TMPFILE` of Linux), nothing is left of one whose
//! program is killed. Elsewhere it has a name beside its target, `.NAME.N.part`, and is locked while its program lives.
//! The next file for the same target removes files that are not locked: dead programs left them.

mod rights;

use std::{
    fs::{self, File, Metadata},
    io::{self, Seek},
    path::{self, Path, PathBuf},
};

use crate::{
    aside::rights::keep_rights,
    error::{Error, Result},
};

/// Links that are followed, as systems do.
const MAX_LINKS: usize = 40;

/// Bytes of a target's name that the name beside it begins with: systems take 255 in all.
const NAME_BYTES: usize = 100;

/// Names beside a target that are tried: the number of programs that may write a file to it at once.
const NAMES: usize = 1000;

/// Of these, those that are looked at for what others left behind.
const LEFT_BEHIND: usize = 8;

/// A file that takes its name only when it is finished, and goes if it never is.
pub(crate) struct Aside {
    file: File,
    /// The name that it has until then, if it has one.
    name: Option<PathBuf>,
    target: PathBuf,
    /// Of the file that it replaces.
    replaced: Option<Metadata>,
}

impl Aside {
    /// Refuses what cannot be a target, before the work for it.
    pub(crate) fn expect_target(target: &Path) -> Result<()> {
        follow(target).map(drop)
    }

    /// A file for what is made of `source`, which stays whatever it is called.
    pub(crate) fn new(target: &Path, source: &File) -> Result<Self> {
        let (target, replaced) = follow(target)?;
        remove_left_behind(&target, source);
        match without_name(folder_of(&target)) {
            Some(file) => Ok(Self { file, name: None, target, replaced }),
            None => Self::named(target, replaced),
        }
    }

    fn named(target: PathBuf, replaced: Option<Metadata>) -> Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut last = None;
        for number in 0..NAMES {
            let name = beside(&target, number);
            match options.open(&name) {
                Ok(file) => {
                    if is_kept(&file) {
                        return Ok(Self { file, name: Some(name), target, replaced });
                    }
                    // Another program took it for left behind, before it was locked.
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = Some(error),
                Err(error) => return Err(Error::io(format!("creating {}", name.display()), &error)),
            }
        }
        let last = last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into());
        Err(Error::io(format!("creating {}", beside(&target, NAMES - 1).display()), &last))
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Makes sure that the contents are on the disk before they get the name.
    pub(crate) fn finish(mut self) -> Result<()> {
        let target = self.target.clone();
        self.complete().map_err(|error| Error::io(format!("completing {}", target.display()), &error))
    }

    fn complete(&mut self) -> io::Result<()> {
        self.settle()?;
        if self.name.is_none() && !self.link()? {
            let mut named = Self::named(self.target.clone(), self.replaced.clone()).map_err(io::Error::other)?;
            self.file.rewind()?;
            io::copy(&mut self.file, &mut named.file)?;
            std::mem::swap(self, &mut named);
            self.settle()?;
        }
        if let Some(name) = &self.name {
            fs::rename(name, &self.target)?;
        }
        self.name = None;
        Ok(())
    }

    /// Gives it the rights of what it replaces, and its contents to the disk.
    fn settle(&self) -> io::Result<()> {
        if let Some(replaced) = &self.replaced {
            keep_rights(&self.file, replaced, &self.target)?;
        }
        self.file.sync_all()
    }

    /// Gives a file without a name one beside the target, since only a rename replaces what is there. False where the
    /// system does not.
    #[cfg(target_os = "linux")]
    fn link(&mut self) -> io::Result<bool> {
        use std::os::fd::AsRawFd;

        use rustix::fs::{AtFlags, CWD, linkat};

        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        for number in 0..NAMES {
            let name = beside(&self.target, number);
            match linkat(CWD, &own, CWD, &name, AtFlags::SYMLINK_FOLLOW) {
                Ok(()) => {
                    self.name = Some(name);
                    return Ok(true);
                }
                Err(rustix::io::Errno::EXIST) => {}
                Err(_) => return Ok(false),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    #[cfg(not(target_os = "linux"))]
    fn link(&mut self) -> io::Result<bool> {
        Ok(false)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = fs::remove_file(name);
        }
    }
}

/// The name that a file for this target has until it is finished.
fn beside(target: &Path, number: usize) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let end = (0..=NAME_BYTES.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    target.with_file_name(format!(".{}.{number}.part", &name[..end]))
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file without a name in a folder, where there are such files.
#[cfg(target_os = "linux")]
fn without_name(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};

    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(open(folder, flags, Mode::RUSR | Mode::WUSR).ok()?);
    // It has a name for a moment at the end.
    let _ = file.try_lock();
    Some(file)
}

#[cfg(not(target_os = "linux"))]
fn without_name(_: &Path) -> Option<File> {
    None
}

/// Locks a file that was just made, and tells whether it still has its name.
#[cfg(unix)]
fn is_kept(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;

    // Where there are no locks, nobody takes it for left behind.
    let is_taken = matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock));
    !is_taken && file.metadata().is_ok_and(|metadata| metadata.nlink() > 0)
}

#[cfg(not(unix))]
fn is_kept(_: &File) -> bool {
    true
}

/// Removes files of this user for the same target that no program works on: the program that wrote them was ended. What
/// cannot be found out stays, and so does what is being read.
#[cfg(unix)]
fn remove_left_behind(target: &Path, source: &File) {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

    use rustix::fs::OFlags;

    let Ok(source) = source.metadata() else { return };
    let same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    let is_own = |found: &Metadata| {
        found.is_file() && found.uid() == rustix::process::geteuid().as_raw() && !same(found, &source)
    };
    for number in 0..LEFT_BEHIND {
        let name = beside(target, number);
        if !fs::symlink_metadata(&name).is_ok_and(|found| is_own(&found)) {
            continue;
        }
        let mut options = File::options();
        options.read(true).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
        let Ok(file) = options.open(&name) else { continue };
        if file.try_lock().is_err() {
            continue;
        }
        // Its program may have given it the target's name meanwhile, and another one this name to its own: from here
        // on, a program that finds the file under this name waits for the lock.
        if let (Ok(open), Ok(found)) = (file.metadata(), fs::symlink_metadata(&name))
            && is_own(&found)
            && same(&open, &found)
        {
            let _ = fs::remove_file(&name);
        }
    }
}

#[cfg(not(unix))]
fn remove_left_behind(_: &Path, _: &File) {}

/// Where a path leads through links, and what is there. A path that no file can have is refused.
fn follow(target: &Path) -> Result<(PathBuf, Option<Metadata>)> {
    let refuse = |path: &Path, kind, reason: &str| {
        Err(Error::Io { what: format!("replacing {}", path.display()), kind, reason: reason.into() })
    };
    let fail = |path: &Path, error| Err(Error::io(format!("replacing {}", path.display()), &error));
    let mut path = target.to_owned();
    for _ in 0..=MAX_LINKS {
        if !names_a_file(&path) {
            return refuse(&path, io::ErrorKind::InvalidInput, "it is not the name of a file");
        }
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match fs::metadata(folder_of(&path)) {
                    Ok(folder) if folder.is_dir() => Ok((path, None)),
                    Ok(_) => refuse(&path, io::ErrorKind::NotADirectory, "it is not in a folder"),
                    Err(error) => fail(&path, error),
                };
            }
            Err(error) => return fail(&path, error),
        };
        if found.is_file() {
            return Ok((path, Some(found)));
        }
        if !found.is_symlink() {
            return refuse(&path, io::ErrorKind::InvalidInput, "it is not a file");
        }
        let next = fs::read_link(&path).map_err(|error| Error::io(format!("reading {}", path.display()), &error))?;
        // A link is relative to the folder that it lies in.
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    refuse(target, io::ErrorKind::InvalidInput, "it has too many links")
}

/// Whether a path ends with a name, other than those of folders.
fn names_a_file(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let last = bytes.rsplit(|byte| byte.is_ascii() && path::is_separator(char::from(*byte))).next();
    !matches!(last, None | Some(b"" | b"." | b".."))
}

#[cfg(test)]
mod tests;
