//! Compiled kernels on disk.
//!
//! The folder holds machine code that is loaded into processes. So it must belong to the user and be closed to others;
//! otherwise it is not used. It is opened once, checked as it was opened, and everything happens inside that handle.
//! Another current folder, or a link in its path that is turned later, lead nowhere else. Entries are plain files,
//! opened without following links. Files are written aside and renamed, and carry a checksum. A truncated, altered or
//! empty file is a miss. Every failure is a miss too: a cache never fails a call.
//!
//! Beside the entries may lie archives of kernels that were compiled ahead, which are read and never written.
//!
//! Where there is no such thing as a folder that is open, the folder is remembered by its absolute path. It lies in the
//! user's profile, which other users cannot write to.

use std::{
    env,
    io::{self, Read, Write},
    path::PathBuf,
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use folder::Folder;

/// The environment variable that names the folder of the kernel cache; `off` turns the cache off. Without it the cache
/// lies in the user's cache folder, under `evariste`.
pub const CACHE_VARIABLE: &str = "EVARISTE_CACHE";

/// First bytes of every file: name and version of the format.
const MAGIC: &[u8; 8] = b"evrste01";

/// A folder of compiled kernels.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: Option<Arc<Folder>>,
}

impl Cache {
    /// The user's cache, or one that keeps nothing if there is no safe folder for it.
    pub(crate) fn open() -> Self {
        let folder = match env::var_os(CACHE_VARIABLE) {
            Some(name) if name == "off" => None,
            Some(name) => Some(PathBuf::from(name)),
            None => user_cache_folder(),
        };
        Self::at(folder)
    }

    /// A cache in a given folder.
    pub(crate) fn at(folder: Option<PathBuf>) -> Self {
        let folder = folder.and_then(|path| match Folder::open(&path) {
            Ok(folder) => Some(Arc::new(folder)),
            Err(error) => {
                log::warn!("kernels are not cached: {}: {error}", path.display());
                None
            }
        });
        Self { folder }
    }

    /// The name of an entry, from everything that its contents depend on.
    pub(crate) fn key(parts: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        hasher.finalize()
    }

    /// The contents stored under `key`.
    pub(crate) fn get(&self, key: &blake3::Hash) -> Option<Vec<u8>> {
        let (folder, name) = (self.folder.as_ref()?, key.to_hex());
        let mut file = Vec::new();
        let opened = folder.read(&name).and_then(|mut entry| entry.read_to_end(&mut file));
        match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                log::warn!("the cached {name} is not used: {error}");
                return None;
            }
            Ok(_) => {}
        }
        let contents = check(key, &file);
        if contents.is_none() {
            log::warn!("the cached {name} is damaged and will be replaced");
        }
        contents.map(<[u8]>::to_vec)
    }

    /// The plain files whose names end in `extension`, by name, with their contents.
    #[cfg(feature = "cuda")]
    pub(crate) fn archives(&self, extension: &str) -> Vec<(String, Vec<u8>)> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let names = folder.names().inspect_err(|error| log::warn!("archives of kernels are not found: {error}"));
        let mut names: Vec<String> = names.unwrap_or_default();
        names.retain(|name| name.ends_with(extension));
        names.sort_unstable();
        let read = |name: String| {
            let mut contents = Vec::new();
            match folder.read(&name).and_then(|mut file| file.read_to_end(&mut contents)) {
                Ok(_) => Some((name, contents)),
                Err(error) => {
                    log::warn!("{name} is not used: {error}");
                    None
                }
            }
        };
        names.into_iter().filter_map(read).collect()
    }

    /// Stores `contents` under `key`; nothing where there are none.
    pub(crate) fn put(&self, key: &blake3::Hash, contents: &[u8]) {
        let (Some(folder), name) = (&self.folder, key.to_hex()) else { return };
        if contents.is_empty() {
            return;
        }
        if let Err(error) = write_aside(folder, &name, &[MAGIC, checksum(key, contents).as_bytes(), contents]) {
            log::warn!("{name} could not be cached: {error}");
        }
    }
}

fn checksum(key: &blake3::Hash, contents: &[u8]) -> blake3::Hash {
    blake3::keyed_hash(key.as_bytes(), contents)
}

fn check<'a>(key: &blake3::Hash, file: &'a [u8]) -> Option<&'a [u8]> {
    let (sum, contents) = file.strip_prefix(MAGIC)?.split_first_chunk::<{ blake3::OUT_LEN }>()?;
    (!contents.is_empty() && checksum(key, contents) == *sum).then_some(contents)
}

fn write_aside(folder: &Folder, name: &str, parts: &[&[u8]]) -> io::Result<()> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let aside = format!("{name}.{}-{serial}", process::id());
    let mut file = folder.create(&aside)?;
    let written = parts.iter().try_for_each(|part| file.write_all(part)).and_then(|()| folder.rename(&aside, name));
    if written.is_err() {
        folder.remove(&aside);
    }
    written
}

fn user_cache_folder() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = if cfg!(windows) {
        absolute("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        absolute("HOME").map(|home| home.join("Library/Caches"))
    } else {
        absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))
    };
    base.map(|base| base.join("evariste"))
}

#[cfg(unix)]
mod folder {
    use std::{
        fs::{DirBuilder, File},
        io,
        os::{
            fd::{AsFd, OwnedFd},
            unix::fs::DirBuilderExt,
        },
        path::{Path, PathBuf},
    };

    #[cfg(feature = "cuda")]
    use rustix::fs::Dir;
    use rustix::{
        fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, renameat, unlinkat},
        process::geteuid,
    };

    /// An open folder that is the user's alone.
    #[derive(Debug)]
    pub(super) struct Folder(OwnedFd);

    impl Folder {
        /// Makes the folder where it is missing.
        pub(super) fn open(path: &Path) -> io::Result<Self> {
            // Without what may stand at the end, `/` or `/.`, with which a link would be followed.
            let path: PathBuf = path.components().collect();
            DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let folder = openat(CWD, &path, flags, Mode::empty())?;
            expect_own(&folder, FileType::Directory, 0o077)?;
            Ok(Self(folder))
        }

        pub(super) fn read(&self, name: &str) -> io::Result<File> {
            // Without blocking: what is no plain file might wait for someone to write.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = openat(&self.0, name, flags, Mode::empty())?;
            expect_own(&file, FileType::RegularFile, 0o022)?;
            Ok(file.into())
        }

        /// What lies in it, as far as names are text.
        #[cfg(feature = "cuda")]
        pub(super) fn names(&self) -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in Dir::read_from(&self.0)? {
                names.extend(entry?.file_name().to_str().ok().map(str::to_owned));
            }
            Ok(names)
        }

        /// A new file.
        pub(super) fn create(&self, name: &str) -> io::Result<File> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?.into())
        }

        pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            Ok(renameat(&self.0, from, &self.0, to)?)
        }

        /// Whether it works does not matter.
        pub(super) fn remove(&self, name: &str) {
            let _ = unlinkat(&self.0, name, AtFlags::empty());
        }
    }

    /// Refuses what is opened unless it is of this kind, the user's own, and others have none of the rights `denied`.
    fn expect_own(opened: impl AsFd, kind: FileType, denied: u32) -> io::Result<()> {
        let stat = fstat(opened)?;
        let mode = Mode::from_raw_mode(stat.st_mode);
        if FileType::from_raw_mode(stat.st_mode) != kind
            || stat.st_uid != geteuid().as_raw()
            || mode.intersects(Mode::from_bits_retain(denied as _))
        {
            return Err(io::Error::other(match kind {
                FileType::Directory => "the folder must be the user's own, no link, with mode 0700",
                _ => "the entry must be a plain file of the user's own that others cannot write",
            }));
        }
        Ok(())
    }
}

#[cfg(not(unix))]
mod folder {
    use std::{
        fs::{self, File},
        io,
        path::{Path, PathBuf, absolute},
    };

    /// A folder by its absolute path.
    #[derive(Debug)]
    pub(super) struct Folder(PathBuf);

    impl Folder {
        /// Makes the folder where it is missing.
        pub(super) fn open(path: &Path) -> io::Result<Self> {
            let path = absolute(path)?;
            fs::create_dir_all(&path)?;
            match fs::symlink_metadata(&path)?.is_dir() {
                true => Ok(Self(path)),
                false => Err(io::Error::other("the folder must be no link")),
            }
        }

        pub(super) fn read(&self, name: &str) -> io::Result<File> {
            let path = self.0.join(name);
            match fs::symlink_metadata(&path)?.is_file() {
                true => File::open(path),
                false => Err(io::Error::other("the entry must be a plain file")),
            }
        }

        /// What lies in it, as far as names are text.
        #[cfg(feature = "cuda")]
        pub(super) fn names(&self) -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in fs::read_dir(&self.0)? {
                names.extend(entry?.file_name().into_string());
            }
            Ok(names)
        }

        /// A new file.
        pub(super) fn create(&self, name: &str) -> io::Result<File> {
            File::create_new(self.0.join(name))
        }

        pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            fs::rename(self.0.join(from), self.0.join(to))
        }

        /// Whether it works does not matter.
        pub(super) fn remove(&self, name: &str) {
            let _ = fs::remove_file(self.0.join(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = env::temp_dir().join(format!("evariste-cache-{name}-{}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn what_was_put_comes_back_and_damage_is_a_miss() {
        let folder = scratch("damage");
        let cache = Cache::at(Some(folder.clone()));
        let (key, other) = (Cache::key(&[b"ab", b"c"]), Cache::key(&[b"a", b"bc"]));
        assert_ne!(key, other);
        assert_eq!(cache.get(&key), None);
        cache.put(&key, b"machine code");
        assert_eq!(cache.get(&key).as_deref(), Some(&b"machine code"[..]));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left aside");

        let path = folder.join(key.to_hex().as_str());
        let good = fs::read(&path).unwrap();
        for length in [0, 7, 20, good.len() - 1] {
            fs::write(&path, &good[..length]).unwrap();
            assert_eq!(cache.get(&key), None, "truncated to {length}");
        }
        let mut flipped = good.clone();
        *flipped.last_mut().unwrap() ^= 1;
        fs::write(&path, flipped).unwrap();
        assert_eq!(cache.get(&key), None);
        fs::write(folder.join(other.to_hex().as_str()), &good).unwrap();
        assert_eq!(cache.get(&other), None, "contents of another key");
        cache.put(&key, b"again");
        assert_eq!(cache.get(&key).as_deref(), Some(&b"again"[..]));
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_open_to_others_is_not_used() {
        use std::os::unix::fs::PermissionsExt;

        let folder = scratch("open");
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let cache = Cache::at(Some(folder.clone()));
        cache.put(&Cache::key(&[]), b"x");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(folder).unwrap();
    }
    #[test]
    fn an_entry_without_contents_is_a_miss() {
        let folder = scratch("empty");
        let cache = Cache::at(Some(folder.clone()));
        let key = Cache::key(&[b"empty"]);
        cache.put(&key, b"");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        let entry = [MAGIC, checksum(&key, b"").as_bytes().as_slice()].concat();
        fs::write(folder.join(key.to_hex().as_str()), entry).unwrap();
        assert_eq!(cache.get(&key), None);
        cache.put(&key, b"code");
        assert_eq!(cache.get(&key).as_deref(), Some(&b"code"[..]));
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_nowhere() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let [own, hostile, link] = ["own", "hostile", "link"].map(scratch);
        let key = Cache::key(&[b"code"]);
        Cache::at(Some(hostile.clone())).put(&key, b"hostile code");
        assert!(Cache::at(Some(hostile.clone())).get(&key).is_some());

        // A folder that is a link is not used, nor is one whose path leads elsewhere later.
        let _ = fs::remove_file(&link);
        symlink(&hostile, &link).unwrap();
        for path in [link.clone(), link.join(""), link.join("."), link.join("./")] {
            assert_eq!(Cache::at(Some(path.clone())).get(&key), None, "{} is a link", path.display());
        }
        fs::remove_file(&link).unwrap();
        fs::create_dir_all(own.join("inner")).unwrap();
        fs::set_permissions(own.join("inner"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::create_dir_all(hostile.join("inner")).unwrap();
        fs::rename(hostile.join(key.to_hex().as_str()), hostile.join("inner").join(key.to_hex().as_str())).unwrap();
        symlink(&own, &link).unwrap();
        let cache = Cache::at(Some(link.join("inner")));
        assert_eq!(cache.get(&key), None);
        fs::remove_file(&link).unwrap();
        symlink(&hostile, &link).unwrap();
        assert_eq!(cache.get(&key), None, "a link was turned");
        cache.put(&key, b"own code");
        assert_eq!(cache.get(&key).as_deref(), Some(&b"own code"[..]));
        assert!(own.join("inner").join(key.to_hex().as_str()).exists(), "it went where the folder was opened");

        // So is an entry that is a link, or that others may write.
        let entry = own.join("inner").join(key.to_hex().as_str());
        fs::remove_file(&entry).unwrap();
        symlink(hostile.join("inner").join(key.to_hex().as_str()), &entry).unwrap();
        assert_eq!(cache.get(&key), None, "the entry is a link");
        cache.put(&key, b"own code");
        assert_eq!(cache.get(&key).as_deref(), Some(&b"own code"[..]), "the link is replaced");
        assert!(fs::symlink_metadata(&entry).unwrap().is_file());
        fs::set_permissions(&entry, fs::Permissions::from_mode(0o622)).unwrap();
        assert_eq!(cache.get(&key), None, "others may write the entry");
        fs::remove_file(&link).unwrap();
        [own, hostile].into_iter().for_each(|folder| fs::remove_dir_all(folder).unwrap());
    }

    /// Another current folder is for the whole process, so the test runs in one of its own.
    #[cfg(unix)]
    #[test]
    fn a_relative_folder_is_that_of_its_opening() {
        const CHILD: &str = "EVARISTE_TEST_RELATIVE_CACHE";
        let name = "cache::tests::a_relative_folder_is_that_of_its_opening";
        let Some(folder) = env::var_os(CHILD).map(PathBuf::from) else {
            let folder = scratch("relative");
            let program = env::current_exe().unwrap();
            let child = process::Command::new(program).args(["--exact", name]).env(CHILD, &folder).output().unwrap();
            assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
            return fs::remove_dir_all(folder).unwrap();
        };
        let key = Cache::key(&[b"code"]);
        Cache::at(Some(folder.join("there/cache"))).put(&key, b"hostile code");
        fs::create_dir_all(folder.join("here")).unwrap();
        env::set_current_dir(folder.join("here")).unwrap();
        let cache = Cache::at(Some("cache".into()));
        env::set_current_dir(folder.join("there")).unwrap();
        assert_eq!(cache.get(&key), None);
        cache.put(&key, b"own code");
        assert_eq!(cache.get(&key).as_deref(), Some(&b"own code"[..]));
        assert!(folder.join("here/cache").join(key.to_hex().as_str()).exists());
    }
}
