//! Files in memory.

use std::{fs::File, path::Path};

use memmap2::Mmap;

use crate::error::{Error, Result};

/// Reads from a file that is mapped into memory. Errors name the file.
pub(crate) fn map<T>(path: &Path, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    let io = |error| Error::io(Some(path), &error);
    let file = File::open(path).map_err(io)?;
    // SAFETY: the mapping is private to this call and read only. The bytes stay the same as long as no other program
    // changes the file, which the documentation of every caller demands.
    let bytes = unsafe { Mmap::map(&file) }.map_err(io)?;
    read(&bytes).map_err(|error| error.in_file(path))
}
