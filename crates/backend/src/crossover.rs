//! From which length on a device is faster than the CPU on host slices: what algorithms measure and keep.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Crossovers that were measured or set, by what they depend on, such as a field or a mode. For what an algorithm keeps
/// with a device ([`Device::cached_value`](crate::Device::cached_value)), in a type of its own.
#[derive(Debug)]
pub struct Crossovers<K, V>(Mutex<BTreeMap<K, V>>);

impl<K, V> Default for Crossovers<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord, V: Copy> Crossovers<K, V> {
    /// Returns the crossover for `key`, if one was measured or set.
    pub fn get(&self, key: &K) -> Option<V> {
        self.lock().get(key).copied()
    }

    /// Sets the crossover for `key`, whatever was known.
    pub fn set(&self, key: K, crossover: V) {
        self.lock().insert(key, crossover);
    }

    /// Returns the crossover for `key`, which `measure` gives where none is known. No lock is held meanwhile, since a
    /// thread that waits in a pool of threads may come by here again with other work: what was set or measured by
    /// others until then stays, and is given.
    ///
    /// # Errors
    /// Returns the error of `measure`, if that fails; nothing is kept then.
    pub fn get_or_measure<E>(&self, key: K, measure: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        match self.get(&key) {
            Some(known) => Ok(known),
            None => {
                let measured = measure()?;
                Ok(*self.lock().entry(key).or_insert(measured))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `run` once to warm up, then `runs` times, and returns the time of the fastest run.
///
/// # Errors
/// Returns the first error of `run`, which is not run again.
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
        let crossovers = Crossovers::<u8, u32>::default();
        assert_eq!(crossovers.get(&0), None);
        let measured = crossovers.get_or_measure(0, || {
            crossovers.set(0, 3);
            Ok::<_, ()>(12)
        });
        assert_eq!(measured, Ok(3), "set while it was measured");
        assert_eq!(crossovers.get_or_measure(1, || Err("no device")), Err("no device"));
        assert_eq!(crossovers.get_or_measure(1, || Ok::<_, ()>(12)), Ok(12));
        assert_eq!(crossovers.get_or_measure(1, || Ok::<_, ()>(14)), Ok(12), "it is known");
        crossovers.set(1, 0);
        assert_eq!((crossovers.get(&0), crossovers.get(&1)), (Some(3), Some(0)));
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
