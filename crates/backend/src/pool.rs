//! Reuse of allocations: freed blocks wait on shelves by size class, up to a budget.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Blocks of `R` kept for reuse.
#[derive(Debug)]
pub(crate) struct Pool<R> {
    shelves: Mutex<Shelves<R>>,
    budget: u64,
}

#[derive(Debug)]
struct Shelves<R> {
    by_class: BTreeMap<u64, Vec<R>>,
    bytes: u64,
}

/// Allocations of up to this size round up to a power of two, larger ones to an eighth of one.
const SMALL: u64 = 256;

impl<R> Pool<R> {
    /// A pool that keeps at most `budget` bytes.
    pub(crate) fn new(budget: u64) -> Self {
        Self { shelves: Mutex::new(Shelves { by_class: BTreeMap::new(), bytes: 0 }), budget }
    }

    /// The size that an allocation of `bytes` takes: at most an eighth more, powers of two exactly, and none under 16.
    pub(crate) fn class(bytes: u64) -> u64 {
        if bytes <= SMALL {
            return bytes.next_power_of_two().max(16);
        }
        let step = 1 << (bytes.ilog2() - 3);
        bytes.checked_next_multiple_of(step).unwrap_or(bytes)
    }

    /// A block of exactly the size class `class`, if one is kept.
    pub(crate) fn take(&self, class: u64) -> Option<R> {
        let mut shelves = self.lock();
        let block = shelves.by_class.get_mut(&class)?.pop()?;
        shelves.bytes -= class;
        Some(block)
    }

    /// Keeps a block of size class `class`, or hands it back if the budget is used up.
    pub(crate) fn give(&self, class: u64, block: R) -> Option<R> {
        let mut shelves = self.lock();
        if shelves.bytes.saturating_add(class) > self.budget {
            return Some(block);
        }
        shelves.bytes += class;
        shelves.by_class.entry(class).or_default().push(block);
        None
    }

    /// Takes out everything.
    pub(crate) fn drain(&self) -> Vec<R> {
        let mut shelves = self.lock();
        shelves.bytes = 0;
        std::mem::take(&mut shelves.by_class).into_values().flatten().collect()
    }

    /// Bytes kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Shelves<R>> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_waste_at_most_an_eighth_and_keep_powers_of_two() {
        for bytes in (0..5000).chain([1 << 20, (1 << 20) + 1, (1 << 40) - 1, u64::MAX]) {
            let class = Pool::<()>::class(bytes);
            assert!(class >= bytes && class >= 16, "{bytes} → {class}");
            assert!(bytes <= SMALL || class - bytes <= bytes / 8, "{bytes} → {class}");
            assert!(!bytes.is_power_of_two() || bytes < 16 || class == bytes);
        }
    }

    #[test]
    fn blocks_come_back_within_the_budget() {
        let pool = Pool::new(48);
        assert_eq!(pool.take(16), None);
        assert_eq!((pool.give(16, 'a'), pool.give(32, 'b'), pool.give(16, 'c')), (None, None, Some('c')));
        assert_eq!((pool.bytes(), pool.take(32), pool.take(32)), (48, Some('b'), None));
        assert_eq!((pool.drain(), pool.bytes()), (vec!['a'], 0));
    }
}
