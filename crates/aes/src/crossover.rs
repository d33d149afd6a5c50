//! From which length on a device is faster than the CPU on host slices.
//!
//! Measured once for each mode and configuration, when a slice comes that is long enough to need the answer, and kept with
//! the device, so that plans made later need not measure again.

use evariste_backend::{Crossovers, Device, fastest};

use crate::{Aes, Config, KeySize, Result, Xts, block::BLOCK};

/// Slices shorter than this are the CPU's without measuring: it encrypts as much before a launch and two copies are done.
const SHORT: usize = 1 << 16;

/// log₂ of the lengths that are tried. What does not pay at 16 MiB does not pay at all: from there on the time is in
/// proportion to the length on both sides.
const LOG_LENGTHS: std::ops::RangeInclusive<u32> = 16..=24;

/// Runs at each length, of which the fastest counts.
const RUNS: u32 = 3;

/// Bytes of a sector in the measurement of XTS.
const SECTOR: usize = 4096;

/// A mode whose crossover is measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Counter mode.
    Ctr,
    /// Galois/counter mode.
    Gcm,
    /// XTS.
    Xts,
    /// Decryption in CBC, and ECB, which moves data in the same way.
    Cbc,
}

/// What is known of a device.
#[derive(Debug, Default)]
struct Thresholds(Crossovers<(Mode, KeySize, Config), usize>);

impl Aes {
    /// Returns the length in bytes from which on the device works on host slices: what the configuration says
    /// ([`Config::crossover`]), else what was measured, which this does where it has not been done, in some tens of
    /// milliseconds. `usize::MAX` if the CPU is always faster, as it is where its cores encrypt faster than a bus moves
    /// data.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if it has to measure and the device fails or has too little memory for that.
    pub fn crossover(&self, mode: Mode) -> Result<usize> {
        match self.config().crossover {
            Some(crossover) => Ok(crossover),
            None => {
                let configuration = self.configuration(mode);
                let measure = || measure(self.device(), &configuration);
                self.device().cached_value::<Thresholds>().0.get_or_measure(configuration.clone(), measure)
            }
        }
    }

    /// Measures the crossover anew, for all plans of this device with the same configuration that do not pin it. The
    /// measurement works on zeros with a key of its own.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the device fails or has too little memory to measure; what was known stays.
    pub fn calibrate(&self, mode: Mode) -> Result<usize> {
        let configuration = self.configuration(mode);
        let crossover = measure(self.device(), &configuration)?;
        self.device().cached_value::<Thresholds>().0.set(configuration, crossover);
        Ok(crossover)
    }

    /// Whether a host slice of this length is for the CPU.
    pub(crate) fn on_host(&self, mode: Mode, len: usize) -> Result<bool> {
        match self.config().crossover {
            None if len < SHORT => Ok(true),
            _ if self.device().info().is_processor() => Ok(true),
            _ => Ok(len < self.crossover(mode)?),
        }
    }

    fn configuration(&self, mode: Mode) -> (Mode, KeySize, Config) {
        let config = Config { method: Some(self.method()), crossover: None, ..self.config().clone() };
        (mode, self.key_size(), config)
    }
}

fn measure(device: &Device, (mode, size, config): &(Mode, KeySize, Config)) -> Result<usize> {
    // The processor emulates these, on top of the copies.
    if device.info().runs_on_host() {
        return Ok(usize::MAX);
    }
    let at = |crossover| Config { crossover: Some(crossover), ..config.clone() };
    let mut on_device = cipher(device, *mode, *size, at(0))?;
    let mut on_host = cipher(device, *mode, *size, at(usize::MAX))?;
    let mut crossover = None;
    for log in LOG_LENGTHS {
        let mut data = vec![0; 1 << log];
        match fastest(RUNS, || on_device(&mut data))? < fastest(RUNS, || on_host(&mut data))? {
            // Twice in a row, so that one disturbed run decides nothing.
            true if crossover.is_some() => break,
            true => crossover = Some(data.len()),
            false => crossover = None,
        }
    }
    let crossover = crossover.unwrap_or(usize::MAX);
    log::debug!("{}: {mode:?} on host slices from {crossover} bytes on", device.info().id);
    Ok(crossover)
}

type Work = Box<dyn FnMut(&mut [u8]) -> Result<()>>;

/// A mode at work on host slices, with a key that is no secret.
fn cipher(device: &Device, mode: Mode, size: KeySize, config: Config) -> Result<Work> {
    let mut key = vec![0x5a; 2 * size.bytes()];
    key[0] = 0;
    if mode == Mode::Xts {
        let xts = Xts::with_config(device, &key, SECTOR, config)?;
        return Ok(Box::new(move |data| xts.encrypt(0, data)));
    }
    let aes = Aes::with_config(device, &[&key[..size.bytes()]], config)?;
    Ok(match mode {
        Mode::Ctr => {
            let mut stream = aes.ctr(&[0; BLOCK])?;
            Box::new(move |data| {
                stream.seek(0)?;
                stream.apply(data)
            })
        }
        Mode::Gcm => {
            let gcm = aes.gcm()?;
            Box::new(move |data| gcm.seal(&[0; 12], &[], data).map(drop))
        }
        Mode::Cbc | Mode::Xts => {
            let cbc = aes.cbc();
            Box::new(move |data| cbc.decrypt(&[0; BLOCK], data))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_kept_and_what_is_pinned_is_not_measured() {
        let device = Device::cpu();
        let aes = Aes::new(&device, &[0; 16]).unwrap();
        assert_eq!(aes.crossover(Mode::Gcm).unwrap(), usize::MAX);
        assert_eq!(device.cached_value::<Thresholds>().0.get(&aes.configuration(Mode::Gcm)), Some(usize::MAX));
        let pinned = Config { crossover: Some(5), ..Config::default() };
        let pinned = Aes::with_config(&device, &[[0; 16]], pinned).unwrap();
        assert_eq!(pinned.crossover(Mode::Gcm).unwrap(), 5);
        assert_eq!(pinned.configuration(Mode::Gcm), aes.configuration(Mode::Gcm));
    }

    #[test]
    fn every_mode_can_be_timed() {
        for mode in [Mode::Ctr, Mode::Gcm, Mode::Xts, Mode::Cbc] {
            for size in [KeySize::Aes128, KeySize::Aes192, KeySize::Aes256] {
                let mut data = [0; SECTOR];
                cipher(&Device::cpu(), mode, size, Config::default()).unwrap()(&mut data).unwrap();
                assert_ne!(data, [0; SECTOR], "{mode:?}");
            }
        }
    }
}
