//! Results as the bench writes them.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde::{Deserialize, Deserializer};

/// What one run of the bench measured.
#[derive(Clone, Debug, Deserialize)]
pub struct Results {
    /// Where.
    pub machine: Machine,
    /// What was measured.
    pub commit: String,
    /// Cases whose result was wrong, or that could not be measured.
    #[serde(default)]
    pub failures: Vec<String>,
    /// Cases that a device has no room for.
    #[serde(default)]
    pub skipped: Vec<Skipped>,
    /// What was measured.
    pub records: Vec<Record>,
}

/// A host and its devices.
#[derive(Clone, Debug, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Threads that run at once.
    pub cores: usize,
    /// Those that were measured.
    pub devices: Vec<Device>,
    /// Those that were not, and why.
    #[serde(default)]
    pub missing: Vec<Missing>,
}

/// A device and its limits.
#[derive(Clone, Debug, Deserialize)]
pub struct Device {
    /// Its name in the command line: `cuda:0`.
    pub device: String,
    /// Its name in the shops.
    pub name: String,
    /// Bytes read and bytes written in a second by a copy within the device. NaN if nobody measured it.
    #[serde(deserialize_with = "or_nan")]
    pub copy_bytes_per_s: f64,
    /// Multiplications in BLS12-381 Fr in a second. NaN if nobody measured it.
    #[serde(deserialize_with = "or_nan")]
    pub mul_per_s: f64,
}

fn or_nan<'de, D: Deserializer<'de>>(number: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(number)?.unwrap_or(f64::NAN))
}

/// A device that is not there.
#[derive(Clone, Debug, Deserialize)]
pub struct Missing {
    /// Its name in the command line.
    pub device: String,
    /// Why.
    pub reason: String,
}

/// One case at one size.
#[derive(Clone, Debug, Deserialize)]
pub struct Record {
    /// Of which algorithm.
    pub algorithm: String,
    /// Its name, which ends with where its data lies.
    pub case: String,
    /// On which device.
    pub device: String,
    /// The other library that it measures, if it does.
    pub peer: Option<String>,
    /// log₂ of the size.
    pub log_n: u32,
    /// The median of the time, in milliseconds.
    pub median_ms: f64,
    /// The mean of the times, in milliseconds. Older files lack it.
    pub mean_ms: Option<f64>,
    /// The variance of the times, in square milliseconds. Older files lack it.
    pub variance_ms2: Option<f64>,
    /// Elements, or of AES bytes, in a second.
    pub throughput: Option<f64>,
    /// Kernel launches of one iteration.
    pub launches: Option<u64>,
    /// Of transforms, N·log₂N·bits² in a second. Older files lack it.
    pub relative_efficiency: Option<f64>,
    /// Which share of the device's limit it reaches.
    pub of_limit: Option<f64>,
    /// How the result was checked.
    pub checked: String,
    /// How many times faster it is than the fastest peer, if there is one.
    pub speedup: Option<Speedup>,
}

/// A ratio to another library.
#[derive(Clone, Debug, Deserialize)]
pub struct Speedup {
    /// The library.
    pub peer: String,
    /// Its time divided by ours.
    pub ratio: f64,
}

/// A case that a device has no room for.
#[derive(Clone, Debug, Deserialize)]
pub struct Skipped {
    /// On which device.
    pub device: String,
    /// Its name.
    pub case: String,
    /// log₂ of the size.
    pub log_n: u32,
    /// Why.
    pub reason: String,
}

impl Results {
    /// Reads a file of results.
    ///
    /// # Errors
    /// If there is none, or it is none of the bench's.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no file of the bench's results", path.display()))
    }

    /// Reads all files of results of a folder, by name.
    ///
    /// # Errors
    /// If the folder cannot be read, or one of its files `*.json` is none of the bench's.
    pub fn read_folder(folder: &Path) -> Result<Vec<(String, Self)>> {
        let reading = || format!("reading {}", folder.display());
        let entries =
            fs::read_dir(folder).with_context(reading)?.collect::<Result<Vec<_>, _>>().with_context(reading)?;
        let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort_unstable();
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        paths.iter().map(|path| Ok((name(path), Self::read(path)?))).collect()
    }
}
