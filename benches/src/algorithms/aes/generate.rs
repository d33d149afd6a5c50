//! `cargo xtask input`: a file that encrypting can be tried on.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::Args;

use super::pattern::{PERIOD, patterned_vec};

#[derive(Args, Debug)]
pub(crate) struct Input {
    /// Bytes.
    bytes: u64,
    /// Where to. There must be no such file yet.
    file: PathBuf,
}

impl Input {
    /// Writes bytes without a pattern, the same ones each time.
    pub(crate) fn write(&self) -> Result<ExitCode> {
        let writing = || format!("writing {}", self.file.display());
        let mut file = BufWriter::new(File::create_new(&self.file).with_context(writing)?);
        let mut left = self.bytes;
        while left > 0 {
            let part = left.min(PERIOD as u64);
            file.write_all(&patterned_vec(part as usize)).with_context(writing)?;
            left -= part;
        }
        file.flush().with_context(writing)?;
        Ok(ExitCode::SUCCESS)
    }
}
