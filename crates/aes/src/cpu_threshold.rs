//! The length from which a device is faster than the CPU on host slices.
//!
//! The first slice long enough to need it measures it, once for each mode and configuration. The device keeps it for
//! plans made later.

use evariste_backend::{
    Device,
    author::{CpuThresholds, fastest},
};

use crate::{
    block::BLOCK,
    config::{AesConfig, Mode},
    error::Result,
    key::KeySize,
    plan::Aes,
    xts::Xts,
};

/// Slices shorter than this are the CPU's without measuring: it has encrypted them before a launch and two copies are
/// done.
const SHORT: usize = 1 << 16;

/// log₂ of the lengths that are tried. What does not pay at 16 MiB does not pay at all: from there on the time is in
/// proportion to the length on both sides.
const LOG_LENGTHS: std::ops::RangeInclusive<u32> = 16..=24;

/// Timed runs at each length; the fastest is used.
const RUNS: u32 = 3;

/// Bytes of a sector in the measurement of XTS.
const SECTOR: usize = 4096;

/// The thresholds that are known of a device.
#[derive(Debug, Default)]
struct Thresholds(CpuThresholds<(Mode, KeySize, AesConfig)>);

impl Aes {
    /// Returns the length in bytes from which the device works on host slices. It is [`AesConfig::cpu_threshold`], or a
    /// measured length. The first call for a mode measures it, in some tens of milliseconds. It is `usize::MAX` if the
    /// CPU is always faster, since it encrypts faster than the bus moves data.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the device fails or has too little memory for the measurement.
    pub fn cpu_threshold(&self, mode: Mode) -> Result<usize> {
        match self.config().cpu_threshold {
            Some(threshold) => Ok(threshold),
            None => {
                let configuration = self.configuration(mode);
                let measure = || measure(self.device(), &configuration);
                self.device().cached_value::<Thresholds>().0.get_or_measure(configuration.clone(), measure)
            }
        }
    }

    /// Measures the CPU threshold again, for all plans of this device with the same configuration that do not set it.
    /// The measurement works on zeros with a key of its own.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the device fails or has too little memory to measure; the known threshold stays.
    pub fn calibrate(&self, mode: Mode) -> Result<usize> {
        let configuration = self.configuration(mode);
        let threshold = measure(self.device(), &configuration)?;
        self.device().cached_value::<Thresholds>().0.set(configuration, threshold);
        Ok(threshold)
    }

    /// Whether a host slice of this length is for the CPU. Refuses a queue of another device.
    pub(crate) fn on_host(&self, mode: Mode, len: usize) -> Result<bool> {
        self.own_queue()?;
        match self.config().cpu_threshold {
            None if len < SHORT => Ok(true),
            _ if self.device().info().is_processor() => Ok(true),
            _ => Ok(len < self.cpu_threshold(mode)?),
        }
    }

    fn configuration(&self, mode: Mode) -> (Mode, KeySize, AesConfig) {
        let config = self.config().clone().method(self.method()).cpu_threshold(None);
        (mode, self.key_size(), config)
    }
}

fn measure(device: &Device, (mode, size, config): &(Mode, KeySize, AesConfig)) -> Result<usize> {
    // The processor emulates these, on top of the copies.
    if device.info().runs_on_host() {
        return Ok(usize::MAX);
    }
    let at = |threshold: usize| config.clone().cpu_threshold(threshold);
    let mut on_device = cipher(device, *mode, *size, at(0))?;
    let mut on_host = cipher(device, *mode, *size, at(usize::MAX))?;
    let mut threshold = None;
    for log in LOG_LENGTHS {
        let mut data = vec![0; 1 << log];
        match fastest(RUNS, || on_device(&mut data))? < fastest(RUNS, || on_host(&mut data))? {
            // Twice in a row, so that one disturbed run decides nothing.
            true if threshold.is_some() => break,
            true => threshold = Some(data.len()),
            false => threshold = None,
        }
    }
    let threshold = threshold.unwrap_or(usize::MAX);
    log::debug!("{}: {mode:?} on host slices from {threshold} bytes on", device.info().id);
    Ok(threshold)
}

type Work = Box<dyn FnMut(&mut [u8]) -> Result<()>>;

/// A mode at work on host slices, with a key that is no secret.
fn cipher(device: &Device, mode: Mode, size: KeySize, config: AesConfig) -> Result<Work> {
    let mut key = vec![0x5a; 2 * size.bytes()];
    key[0] = 0;
    if mode == Mode::Xts {
        let xts = Xts::with_config(device, &key, SECTOR, config)?;
        return Ok(Box::new(move |data| xts.encrypt_host(0, data)));
    }
    let aes = Aes::with_config(device, &key[..size.bytes()], config)?;
    Ok(match mode {
        Mode::Ctr => {
            let mut stream = aes.ctr(&[0; BLOCK])?;
            Box::new(move |data| {
                stream.seek(0)?;
                stream.apply_host(data)
            })
        }
        Mode::Gcm => {
            let gcm = aes.gcm()?;
            Box::new(move |data| gcm.seal_host(&[0; 12], &[], data).map(drop))
        }
        Mode::Cbc | Mode::Xts => {
            let cbc = aes.cbc();
            Box::new(move |data| cbc.decrypt_host(&[0; BLOCK], data))
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
        assert_eq!(aes.cpu_threshold(Mode::Gcm).unwrap(), usize::MAX);
        assert_eq!(device.cached_value::<Thresholds>().0.get(&aes.configuration(Mode::Gcm)), Some(usize::MAX));
        let pinned = AesConfig::default().cpu_threshold(5);
        let pinned = Aes::with_config(&device, &[0; 16], pinned).unwrap();
        assert_eq!(pinned.cpu_threshold(Mode::Gcm).unwrap(), 5);
        assert_eq!(pinned.configuration(Mode::Gcm), aes.configuration(Mode::Gcm));
    }

    #[test]
    fn every_mode_can_be_timed() {
        for mode in [Mode::Ctr, Mode::Gcm, Mode::Xts, Mode::Cbc] {
            for size in [KeySize::Aes128, KeySize::Aes192, KeySize::Aes256] {
                let mut data = [0; SECTOR];
                cipher(&Device::cpu(), mode, size, AesConfig::default()).unwrap()(&mut data).unwrap();
                assert_ne!(data, [0; SECTOR], "{mode:?}");
            }
        }
    }
}
