//! Whether keystreams of a batch repeat each other.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Mutex, OnceLock},
};

use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{Aes, Error, Result};

/// Streams up to which one thread sorts them.
const FEW: usize = 1 << 12;

/// Streams of one task, at some 20 ns each.
const GRAIN: usize = 256;

/// The hash of a stream without blocks: those of others are odd.
const NONE: u64 = 0;

/// Counter blocks that follow each other, with a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) key: usize,
    /// As a big-endian number.
    pub(crate) start: u128,
    pub(crate) blocks: u64,
}

/// For each key the number of the first one that is equal.
#[derive(Debug, Default)]
pub(crate) struct EqualKeys(OnceLock<Vec<u32>>);

impl EqualKeys {
    /// By what the keys make of a block that nothing else encrypts, so that comparing tells nothing of the keys themselves.
    fn of(&self, aes: &Aes) -> &[u32] {
        self.0.get_or_init(|| {
            let mark = |key| (Zeroizing::new(aes.cipher(key).encrypt(*b"evariste eq keys")), key as u32);
            let mut marks: Vec<_> = (0..aes.keys()).map(mark).collect();
            marks.sort_unstable_by(|(a, i), (b, j)| a[..].cmp(&b[..]).then(i.cmp(j)));
            let mut first = vec![0; marks.len()];
            for equal in marks.chunk_by(|(a, _), (b, _)| **a == **b) {
                equal.iter().for_each(|(_, key)| first[*key as usize] = equal[0].1);
            }
            first
        })
    }
}

/// A stream in the order in which overlaps are found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sorted {
    key: u32,
    start: u128,
    blocks: u64,
    message: usize,
}

/// Hashes of streams, in memory that is kept from one check to the next: new pages would take longer than the check.
#[derive(Debug, Default)]
pub(crate) struct Hashes(Mutex<Vec<u64>>);

impl Hashes {
    /// Whether two of these streams have the same key and `cycle`: by chance so even if none do, in one of 2^63 pairs.
    ///
    /// Each task sorts the hashes of a part of their range, so that no two write to the same memory: a table that all cores
    /// share is a wait for another core's cache at nearly every access. The hash, of two folded products as in wyhash, has seeds
    /// of its own, so that nobody can make streams meet.
    fn any_twice(&self, streams: impl IndexedParallelIterator<Item = Sorted>, cycle: u128) -> bool {
        // Who finds the memory taken uses its own.
        let (mut own, mut shared) = (Vec::new(), self.0.try_lock());
        let hashes = shared.as_deref_mut().unwrap_or(&mut own);
        let random = RandomState::new();
        let seeds = [0u64, 1, 2].map(|i| random.hash_one(i));
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        let hash = |stream: Sorted| {
            let start = stream.start & cycle;
            let hash = fold(start as u64 ^ seeds[0], (start >> 64) as u64 ^ seeds[1]);
            if stream.blocks == 0 { NONE } else { fold(hash ^ u64::from(stream.key), seeds[2] | 1) | 1 }
        };
        streams.map(hash).collect_into_vec(hashes);
        let parts = rayon::current_num_threads().next_power_of_two().min((hashes.len() / GRAIN).next_power_of_two());
        (0..parts).into_par_iter().any(|part| {
            let mut own = Vec::with_capacity(2 * hashes.len() / parts);
            let here = |hash: &u64| *hash != NONE && (hash >> 32) as usize & (parts - 1) == part;
            own.extend(hashes.iter().copied().filter(here));
            own.sort_unstable();
            own.windows(2).any(|pair| pair[0] == pair[1])
        })
    }
}

impl Aes {
    /// Refuses streams that have a counter block in common: sorted by key and start, each must end before the next one
    /// starts. Keys that are equal count as one. Where the counter has 32 bits, nothing is sorted unless some may share the
    /// others.
    pub(crate) fn expect_apart(
        &self,
        streams: impl IndexedParallelIterator<Item = Stream> + Clone,
        wide: bool,
    ) -> Result<()> {
        if streams.len() < 2 {
            return Ok(());
        }
        let keys = if self.keys() > 1 { self.equal_keys().of(self) } else { &[0] };
        let sorted = |(message, stream): (usize, Stream)| Sorted {
            key: keys[stream.key],
            start: stream.start,
            blocks: stream.blocks,
            message,
        };
        // The bits of the counter that count, and the others, which tell streams apart.
        let low = if wide { u128::MAX } else { u32::MAX.into() };
        let streams = streams.with_min_len(GRAIN).enumerate().map(sorted);
        if !wide && !self.0.hashes.any_twice(streams.clone(), !low) {
            return Ok(());
        }
        let mut streams: Vec<Sorted> = streams.filter(|stream| stream.blocks > 0).collect();
        match streams.len() {
            ..=FEW => streams.sort_unstable(),
            _ => streams.par_sort_unstable(),
        }
        for cycle in streams.chunk_by(|a, b| a.key == b.key && a.start & !low == b.start & !low) {
            let repeated = |a: &Sorted, b: &Sorted| {
                let (first, second) = (a.message.min(b.message), a.message.max(b.message));
                Error::RepeatedKeystream { first, second }
            };
            if let Some(pair) = cycle.windows(2).find(|pair| pair[1].start - pair[0].start < pair[0].blocks.into()) {
                return Err(repeated(&pair[0], &pair[1]));
            }
            // Only the last may reach beyond the end of the counter, to the start of the first.
            if let [first, .., last] = cycle {
                let room = (low - (last.start & low)).saturating_add(1).saturating_add(first.start & low);
                if u128::from(last.blocks) > room {
                    return Err(repeated(first, last));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use evariste_backend::Device;

    use super::*;
    use crate::Config;

    fn check(keys: &[[u8; 16]], streams: &[(usize, u128, u64)], wide: bool) -> Option<(usize, usize)> {
        let aes = Aes::with_config(&Device::cpu(), keys, Config::default()).unwrap();
        let stream = |&(key, start, blocks): &(usize, u128, u64)| Stream { key, start, blocks };
        match aes.expect_apart(streams.par_iter().map(stream), wide) {
            Ok(()) => None,
            Err(Error::RepeatedKeystream { first, second }) => Some((first, second)),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn streams_overlap_within_a_key_and_around_the_end_of_the_counter() {
        let keys = [[1; 16], [2; 16], [1; 16]];
        let end = u128::MAX;
        let low = u128::from(u32::MAX);
        for (streams, wide, expected) in [
            (&[(0, 5, 2), (0, 7, 1), (0, 3, 2)][..], true, None),
            (&[(0, 5, 3), (0, 7, 1)], true, Some((0, 1))),
            (&[(0, 7, 1), (0, 5, 3)], true, Some((0, 1))),
            (&[(0, 7, 1), (1, 5, 3)], true, None),
            (&[(2, 7, 1), (1, 0, 1), (0, 5, 3)], true, Some((0, 2))),
            (&[(0, 7, 1), (0, 7, 0), (0, 8, 1)], true, None),
            (&[(0, 7, 1), (0, 9, 1), (0, 7, 1)], true, Some((0, 2))),
            (&[(0, end, 1), (0, 0, 1)], true, None),
            (&[(0, end, 2), (0, 0, 1)], true, Some((0, 1))),
            (&[(0, end, 2), (0, 1, 1)], true, None),
            (&[(0, end - 9, u64::MAX), (0, u128::from(u64::MAX), 1)], true, None),
            // A counter of 32 bits goes around within its block.
            (&[(0, low, 2), (0, low + 1, 1)], false, None),
            (&[(0, low, 2), (0, low + 1, 1)], true, Some((0, 1))),
            (&[(0, low, 2), (0, 0, 1)], false, Some((0, 1))),
            (&[(0, low, 2), (0, 1, 1)], false, None),
            (&[(0, 1, 1 << 32), (0, 0, 1)], false, Some((0, 1))),
            (&[(0, end, 1), (0, end & !low, 1)], false, None),
            (&[(0, end, 2), (0, end & !low, 1)], false, Some((0, 1))),
        ] {
            assert_eq!(check(&keys, streams, wide), expected, "{streams:?}");
        }
    }

    #[test]
    fn one_repetition_among_many_is_found() {
        let mut streams: Vec<(usize, u128, u64)> =
            (0..20_000).map(|i| (0, (i * 7919 % 20_011) << 40, 1 << 30)).collect();
        assert_eq!(check(&[[1; 16]], &streams, true), None);
        assert_eq!(check(&[[1; 16]], &streams, false), None);
        streams[12_345] = (0, streams[77].1 + 5, 1);
        assert_eq!(check(&[[1; 16]], &streams, true), Some((77, 12_345)));
        assert_eq!(check(&[[1; 16]], &streams, false), Some((77, 12_345)));
    }
}
