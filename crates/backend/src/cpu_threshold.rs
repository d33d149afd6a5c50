//! CPU thresholds: the length of a host slice from which on a device is faster than the CPU.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The CPU thresholds of an algorithm on one device, in elements of a host slice. They may depend on a key, such as a
/// field or a mode. The device uses slices from its threshold on, the CPU shorter ones. An algorithm keeps them with
/// the device ([`Device::cached_value`](crate::Device::cached_value)), in a type of its own.
#[derive(Debug)]
pub struct CpuThresholds<K>(Mutex<BTreeMap<K, usize>>);

impl<K> Default for CpuThresholds<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> CpuThresholds<K> {
    /// Returns the threshold for `key`, if one was measured or set.
    pub fn get(&self, key: &K) -> Option<usize> {
        self.lock().get(key).copied()
    }

    /// Sets the threshold for `key`, whatever was known.
    pub fn set(&self, key: K, threshold: usize) {
        self.lock().insert(key, threshold);
    }

    /// Returns the threshold for `key`, and calls `measure` if none is known. No lock is held during `measure`, since a
    /// thread that waits in a thread pool may enter here again with other work. A value that others set meanwhile stays
    /// and is returned.
    ///
    /// # Errors
    /// Returns the error of `measure`; nothing is kept then.
    pub fn get_or_measure<E>(&self, key: K, measure: impl FnOnce() -> Result<usize, E>) -> Result<usize, E> {
        match self.get(&key) {
            Some(known) => Ok(known),
            None => {
                let measured = measure()?;
                Ok(*self.lock().entry(key).or_insert(measured))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `run` once to warm up and then `runs` times. Returns the shortest time of these.
///
/// # Errors
/// Returns the first error of `run`, and does not call it again.
pub fn fastest<E>(runs: u32, mut run: impl FnMut() -> Result<(), E>) -> Result<Duration, E> {
    run()?;
    let mut fastest = Duration::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        run()?;
        fastest = fastest.min(start.elapsed());
    }
    Ok(fastest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_stays_whatever_was_measured_meanwhile() {
        let thresholds = CpuThresholds::<u8>::default();
        assert_eq!(thresholds.get(&0), None);
        let measured = thresholds.get_or_measure(0, || {
            thresholds.set(0, 3);
            Ok::<_, ()>(12)
        });
        assert_eq!(measured, Ok(3), "set while it was measured");
        assert_eq!(thresholds.get_or_measure(1, || Err("no device")), Err("no device"));
        assert_eq!(thresholds.get_or_measure(1, || Ok::<_, ()>(12)), Ok(12));
        assert_eq!(thresholds.get_or_measure(1, || Ok::<_, ()>(14)), Ok(12), "it is known");
        thresholds.set(1, 0);
        assert_eq!((thresholds.get(&0), thresholds.get(&1)), (Some(3), Some(0)));
    }

    #[test]
    fn the_fastest_is_one_of_those_that_count() {
        let mut runs = 0;
        let start = Instant::now();
        let fastest = fastest(3, || {
            runs += 1;
            std::thread::sleep(Duration::from_millis(if runs == 1 { 0 } else { 1 }));
            Ok::<_, ()>(())
        });
        let elapsed = start.elapsed();
        assert_eq!(runs, 4);
        assert!(fastest.is_ok_and(|fastest| fastest >= Duration::from_millis(1) && 3 * fastest <= elapsed));
    }
}
