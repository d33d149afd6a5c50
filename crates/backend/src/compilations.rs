//! The compilations of a device: counted, logged, and reported to an observer.

use std::{
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::info::Stats;

/// Where the code of a kernel came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// It was compiled from source.
    Compiler,
    /// An earlier process had left it in the cache on disk.
    DiskCache,
    /// It was compiled ahead of time, and came in an archive.
    Archive,
}

/// A kernel that a device has just made ready.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compilation {
    /// The kernel's name and variant.
    pub kernel: String,
    /// Where its code came from.
    pub origin: Origin,
    /// The time that one thread spent on it.
    pub time: Duration,
}

/// A function that a device calls after it has made a kernel ready.
pub type Observer = Arc<dyn Fn(&Compilation) + Send + Sync>;

/// Counts the compilations of a device, for backends.
#[derive(Default)]
pub struct Compilations {
    compiled: AtomicU64,
    cache_hits: AtomicU64,
    compile_nanos: AtomicU64,
    load_nanos: AtomicU64,
    observer: RwLock<Option<Observer>>,
}

impl Compilations {
    /// Counts a kernel, logs it and calls the observer, on this thread. Call it without holding a lock, since the
    /// observer may use the device.
    pub fn note(&self, kernel: String, origin: Origin, time: Duration) {
        let (counter, verb) = match origin {
            Origin::Compiler => (&self.compiled, "compiled"),
            Origin::DiskCache => (&self.cache_hits, "loaded"),
            Origin::Archive => (&self.cache_hits, "loaded from an archive"),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.note_time(origin, time);
        log::debug!("{verb} {kernel} in {time:.2?}");
        let observer = self.observer.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(observer) = observer {
            observer(&Compilation { kernel, origin, time });
        }
    }

    /// Adds time that a driver spent on kernels after they were counted, or on kernels that it refused.
    pub fn note_time(&self, origin: Origin, time: Duration) {
        let nanos = match origin {
            Origin::Compiler => &self.compile_nanos,
            Origin::DiskCache | Origin::Archive => &self.load_nanos,
        };
        nanos.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Sets what is called for each kernel from now on.
    pub fn observe(&self, observer: Option<Observer>) {
        *self.observer.write().unwrap_or_else(PoisonError::into_inner) = observer;
    }

    /// Returns `stats` with the counters of compilations filled in.
    #[must_use]
    pub fn counted(&self, stats: Stats) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let time = |nanos| Duration::from_nanos(get(nanos));
        Stats {
            compiled: get(&self.compiled),
            cache_hits: get(&self.cache_hits),
            compile_time: time(&self.compile_nanos),
            load_time: time(&self.load_nanos),
            ..stats
        }
    }
}

impl fmt::Debug for Compilations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compilations")
            .field("compiled", &self.compiled)
            .field("cache_hits", &self.cache_hits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn kernels_are_counted_by_origin_and_told_once() {
        let compilations = Arc::new(Compilations::default());
        let seen: Arc<Mutex<Vec<Compilation>>> = Arc::default();
        compilations.note("before".into(), Origin::Compiler, Duration::from_nanos(1));
        let (own, told) = (Arc::clone(&compilations), Arc::clone(&seen));
        compilations.observe(Some(Arc::new(move |compilation| {
            // No lock is held: what an observer asks is answered, and it may take itself away.
            assert!(own.counted(Stats::default()).compiled > 0);
            if compilation.origin == Origin::DiskCache {
                own.observe(None);
            }
            told.lock().unwrap().push(compilation.clone());
        })));
        for origin in [Origin::Compiler, Origin::DiskCache, Origin::Compiler] {
            compilations.note("kernel".into(), origin, Duration::from_nanos(10));
        }
        let origins: Vec<Origin> = seen.lock().unwrap().iter().map(|compilation| compilation.origin).collect();
        assert_eq!(origins, [Origin::Compiler, Origin::DiskCache]);
        let stats = compilations.counted(Stats { launches: 7, ..Stats::default() });
        assert_eq!((stats.launches, stats.compiled, stats.cache_hits), (7, 3, 1));
        assert_eq!((stats.compile_time, stats.load_time), (Duration::from_nanos(21), Duration::from_nanos(10)));
    }
}
