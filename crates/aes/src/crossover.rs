use std::time::{Duration, Instant};

use evariste_backend::Device;

use crate::{Aes, Config, Result};

/// log₂ of the lengths that are tried.
const LOG_LENGTHS: std::ops::RangeInclusive<u32> = 12..=28;

/// Runs at each length, of which the fastest counts.
const RUNS: usize = 5;

/// Measures from which length on host slices are better worked on by a device than by the CPU, for [`Config::crossover`]:
/// AES-128 in counter mode, from 4 KiB to 256 MiB. `usize::MAX` if the CPU is always faster, as it is where its cores
/// encrypt faster than a bus moves data. Takes up to some seconds.
///
/// # Errors
/// [`crate::Error::Device`].
pub fn measure_crossover(device: &Device, config: &Config) -> Result<usize> {
    let stream =
        |crossover| Aes::with_config(device, &[[0; 16]], Config { crossover, ..config.clone() })?.ctr(&[0; 16]);
    let (mut on_device, mut on_host) = (stream(0)?, stream(usize::MAX)?);
    let mut crossover = usize::MAX;
    for log in LOG_LENGTHS {
        let mut data = vec![0; 1 << log];
        let mut time = |stream: &mut crate::Ctr| -> Result<Duration> {
            let mut best = Duration::MAX;
            for _ in 0..RUNS {
                stream.seek(0)?;
                let start = Instant::now();
                stream.apply(&mut data)?;
                best = best.min(start.elapsed());
            }
            Ok(best)
        };
        match time(&mut on_device)? < time(&mut on_host)? {
            true => crossover = crossover.min(1 << log),
            false => crossover = usize::MAX,
        }
    }
    Ok(crossover)
}
