//! What the fuzz targets reach that is not public.

use std::path::{Path, PathBuf};

use crate::cache;

/// A folder of compiled kernels.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    cache: cache::Cache,
}

impl Cache {
    /// The cache in a folder, which is made if it is not there.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), cache: cache::Cache::at(Some(folder.to_owned())) }
    }

    /// The contents of an entry.
    pub fn get(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.cache.get(&cache::Cache::key(&[name]))
    }

    /// Stores the contents of an entry.
    pub fn put(&self, name: &[u8], contents: &[u8]) {
        self.cache.put(&cache::Cache::key(&[name]), contents);
    }

    /// The file of an entry.
    pub fn path(&self, name: &[u8]) -> PathBuf {
        self.folder.join(cache::Cache::key(&[name]).to_hex().as_str())
    }
}
