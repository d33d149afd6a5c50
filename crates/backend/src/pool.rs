//! Reuse of allocations: freed blocks wait on shelves by size class, up to a budget. Small blocks have one of their own:
//! they come and go with every call, and large ones that wait for later would take their room.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Blocks of `R` kept for reuse.
#[derive(Debug)]
pub(crate) struct Pool<R> {
    large: Mutex<Shelves<R>>,
    small: Mutex<Shelves<R>>,
    /// The largest small block, in bytes.
    largest_small: u64,
}

#[derive(Debug)]
struct Shelves<R> {
    by_class: BTreeMap<u64, Shelf<R>>,
    bytes: u64,
    budget: u64,
}

#[derive(Debug)]
struct Shelf<R> {
    blocks: Vec<R>,
    /// Bytes, by class, that found no room in the pool since a block of this class came or went.
    refused: BTreeMap<u64, u64>,
}

/// Allocations of up to this size round up to a power of two, larger ones to an eighth of one.
const SMALL: u64 = 256;

impl<R> Pool<R> {
    /// A pool that keeps at most `budget` bytes, and an eighth more in blocks of at most a 1024th of it.
    pub(crate) fn new(budget: u64) -> Self {
        let shelves = |budget| Mutex::new(Shelves { by_class: BTreeMap::new(), bytes: 0, budget });
        Self { large: shelves(budget), small: shelves(budget / 8), largest_small: budget / 1024 }
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
        let mut shelves = self.shelves(class);
        let shelf = shelves.by_class.get_mut(&class)?;
        let block = shelf.blocks.pop()?;
        shelf.refused.clear();
        shelves.bytes -= class;
        Some(block)
    }

    /// Keeps a block of size class `class`, or hands it back if the budget is used up.
    pub(crate) fn give(&self, class: u64, block: R) -> Option<R> {
        let mut shelves = self.shelves(class);
        if shelves.bytes.saturating_add(class) > shelves.budget {
            return Some(block);
        }
        shelves.put(class, block);
        None
    }

    /// Does what [`Pool::give`] does, but evicts stale classes when the budget is full. A class is stale if blocks of
    /// it have been handed back since it was last used. These blocks have at least the bytes that the pool keeps of the
    /// class. Otherwise, unused memory would keep out everything later, or frequent small blocks would evict rare large
    /// ones. Returns what the pool does not keep.
    #[cfg(any(test, feature = "cuda", feature = "wgpu"))]
    pub(crate) fn replace(&self, class: u64, block: R) -> Vec<R> {
        let mut shelves = self.shelves(class);
        let mut excess = shelves.bytes.saturating_add(class).saturating_sub(shelves.budget);
        let mut replaced = Vec::new();
        if excess > 0 {
            let Shelves { by_class, bytes, budget } = &mut *shelves;
            let gives_way = |size: u64, shelf: &Shelf<R>| {
                let refused = shelf.refused.get(&class).map(|bytes| bytes + class);
                size != class && refused.is_some_and(|refused| refused >= size * shelf.blocks.len() as u64)
            };
            let kept = |(size, shelf): (&u64, &Shelf<R>)| {
                if gives_way(*size, shelf) { 0 } else { size * shelf.blocks.len() as u64 }
            };
            if by_class.iter().map(kept).sum::<u64>().saturating_add(class) > *budget {
                for shelf in by_class.values_mut() {
                    *shelf.refused.entry(class).or_default() += class;
                }
                return vec![block];
            }
            for (size, shelf) in by_class.iter_mut().filter(|(size, shelf)| gives_way(**size, shelf)) {
                while excess > 0
                    && let Some(block) = shelf.blocks.pop()
                {
                    excess = excess.saturating_sub(*size);
                    *bytes -= size;
                    replaced.push(block);
                }
            }
        }
        shelves.put(class, block);
        replaced
    }

    /// Takes out everything.
    pub(crate) fn drain(&self) -> Vec<R> {
        let taken = |mut shelves: MutexGuard<'_, Shelves<R>>| {
            shelves.bytes = 0;
            std::mem::take(&mut shelves.by_class)
        };
        let all = [taken(lock(&self.large)), taken(lock(&self.small))];
        all.into_iter().flat_map(BTreeMap::into_values).flat_map(|shelf| shelf.blocks).collect()
    }

    /// Bytes kept.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.large).bytes + lock(&self.small).bytes
    }

    /// Where blocks of a class wait.
    fn shelves(&self, class: u64) -> MutexGuard<'_, Shelves<R>> {
        lock(if class <= self.largest_small { &self.small } else { &self.large })
    }
}

fn lock<R>(shelves: &Mutex<Shelves<R>>) -> MutexGuard<'_, Shelves<R>> {
    shelves.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R> Shelves<R> {
    fn put(&mut self, class: u64, block: R) {
        self.bytes += class;
        let shelf =
            self.by_class.entry(class).or_insert_with(|| Shelf { blocks: Vec::new(), refused: BTreeMap::new() });
        shelf.blocks.push(block);
        shelf.refused.clear();
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

    #[test]
    fn small_blocks_have_room_beside_large_ones() {
        let pool = Pool::new(1 << 20);
        assert_eq!((pool.give(1 << 20, 'a'), pool.give(2048, 'b')), (None, Some('b')));
        for _ in 0..64 {
            assert_eq!((pool.give(1024, 'c'), pool.replace(1024, 'd')), (None, vec![]));
        }
        assert_eq!((pool.give(1024, 'e'), pool.bytes()), (Some('e'), (1 << 20) + (1 << 17)));
        assert_eq!((pool.take(1024), pool.take(1 << 20), pool.take(1 << 20)), (Some('d'), Some('a'), None));
        assert_eq!((pool.drain().len(), pool.bytes()), (127, 0));
    }

    #[test]
    fn what_is_not_used_any_more_gives_way() {
        let pool = Pool::new(64);
        assert_eq!(pool.replace(64, 'a'), []);
        // Not the first time, and not if there would be no room either.
        assert_eq!(
            (pool.replace(32, 'b'), pool.replace(128, 'c'), pool.replace(128, 'c')),
            (vec!['b'], vec!['c'], vec!['c'])
        );
        assert_eq!((pool.replace(32, 'b'), pool.bytes()), (vec!['a'], 32));
        // Enough to make room, and none of its own class.
        assert_eq!((pool.replace(16, 'd'), pool.replace(16, 'e'), pool.bytes()), (vec![], vec![], 64));
        assert_eq!((pool.replace(32, 'f'), pool.replace(32, 'f'), pool.bytes()), (vec!['f'], vec!['e', 'd'], 64));
        assert_eq!((pool.replace(32, 'g'), pool.replace(32, 'g'), pool.bytes()), (vec!['g'], vec!['g'], 64));
    }

    #[test]
    fn what_is_used_in_turns_with_others_stays() {
        let pool = Pool::new(64);
        assert_eq!(pool.replace(64, 'a'), []);
        for _ in 0..4 {
            let block = pool.take(64).unwrap();
            assert_eq!(pool.replace(64, block), []);
            for (class, block) in [(16, 'b'), (16, 'b'), (32, 'c')] {
                assert_eq!((pool.take(class), pool.replace(class, block)), (None, vec![block]));
            }
        }
    }
}
