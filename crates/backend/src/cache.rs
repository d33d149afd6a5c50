//! Compiled kernels on disk.
//!
//! The folder holds machine code that is loaded into processes, so it must belong to the user and be closed to others;
//! otherwise it is not used. Files are written aside and renamed, and carry a checksum: a truncated or altered file is
//! a miss. Every failure is a miss too: a cache never fails a call.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// The environment variable that names the folder of the kernel cache; `off` turns the cache off. Without it the cache
/// lies in the user's cache folder, under `evariste`.
pub const CACHE_VARIABLE: &str = "EVARISTE_CACHE";

/// First bytes of every file: name and version of the format.
const MAGIC: &[u8; 8] = b"evrste01";

/// A folder of compiled kernels.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: Option<PathBuf>,
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
        let folder = folder.filter(|folder| match private(folder) {
            Ok(()) => true,
            Err(error) => {
                log::warn!("kernels are not cached: {}: {error}", folder.display());
                false
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
        let path = self.path(key)?;
        let file = fs::read(&path).ok()?;
        let contents = check(key, &file);
        if contents.is_none() {
            log::warn!("{} is damaged and will be replaced", path.display());
        }
        contents.map(<[u8]>::to_vec)
    }

    /// Stores `contents` under `key`.
    pub(crate) fn put(&self, key: &blake3::Hash, contents: &[u8]) {
        let Some(path) = self.path(key) else { return };
        if let Err(error) = write_aside(&path, &[MAGIC, checksum(key, contents).as_bytes(), contents]) {
            log::warn!("{} could not be cached: {error}", path.display());
        }
    }

    fn path(&self, key: &blake3::Hash) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(key.to_hex().as_str()))
    }
}

fn checksum(key: &blake3::Hash, contents: &[u8]) -> blake3::Hash {
    blake3::keyed_hash(key.as_bytes(), contents)
}

fn check<'a>(key: &blake3::Hash, file: &'a [u8]) -> Option<&'a [u8]> {
    let (sum, contents) = file.strip_prefix(MAGIC)?.split_first_chunk::<{ blake3::OUT_LEN }>()?;
    (checksum(key, contents) == *sum).then_some(contents)
}

fn write_aside(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let aside = path.with_extension(format!("{}-{serial}", process::id()));
    let written = fs::File::create_new(&aside)
        .and_then(|mut file| parts.iter().try_for_each(|part| file.write_all(part)))
        .and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
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
fn private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};

    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let metadata = fs::symlink_metadata(folder)?;
    let user = rustix::process::geteuid().as_raw();
    if !metadata.is_dir() || metadata.uid() != user || metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other("the folder must be the user's own, with mode 0700"));
    }
    Ok(())
}

#[cfg(not(unix))]
fn private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

#[cfg(test)]
mod tests {
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

        let path = cache.path(&key).unwrap();
        let good = fs::read(&path).unwrap();
        for length in [0, 7, 20, good.len() - 1] {
            fs::write(&path, &good[..length]).unwrap();
            assert_eq!(cache.get(&key), None, "truncated to {length}");
        }
        let mut flipped = good.clone();
        *flipped.last_mut().unwrap() ^= 1;
        fs::write(&path, flipped).unwrap();
        assert_eq!(cache.get(&key), None);
        fs::write(cache.path(&other).unwrap(), &good).unwrap();
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
}
