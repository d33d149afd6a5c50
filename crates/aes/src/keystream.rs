//! Checks that keystreams of a batch do not repeat each other.

use std::hash::{BuildHasher, RandomState};

use evariste_backend::Secrecy;
use rayon::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use crate::{
    block::Counter,
    error::{Error, Result},
    plan::{Aes, EqualKeys, Hashes},
};

/// Streams up to which one thread sorts them.
const FEW: usize = 1 << 12;

/// Streams of one task, at some 20 ns each.
const GRAIN: usize = 256;

/// The hash of a stream without blocks: those of others are odd.
const NONE: u64 = 0;

/// Counter blocks that follow each other, with a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CounterRange {
    pub(crate) key: usize,
    /// As a big-endian number.
    pub(crate) start: u128,
    pub(crate) blocks: u64,
}

impl EqualKeys {
    /// By what the keys make of a block that nothing else encrypts, so that comparing tells nothing of the keys
    /// themselves.
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

impl Zeroize for Sorted {
    fn zeroize(&mut self) {
        self.start.zeroize();
    }
}

impl Hashes {
    /// Whether two of these streams have the same key and `cycle`: by chance so even if none do, in one of 2^63 pairs.
    ///
    /// Each task sorts the hashes of a part of their range, so that no two write to the same memory: a table that all
    /// cores share is a wait for another core's cache at nearly every access. The hash, of two folded products as in
    /// wyhash, has seeds of its own, so that nobody can make streams meet.
    ///
    /// An attacker with the seeds would learn of the streams from the hashes: those of secret streams are zeroed.
    fn any_twice(&self, streams: impl IndexedParallelIterator<Item = Sorted>, cycle: u128, secrecy: Secrecy) -> bool {
        // A thread that finds the memory taken uses its own.
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
        let twice = (0..parts).into_par_iter().any(|part| {
            let here = |hash: &&u64| **hash != NONE && (*hash >> 32) as usize & (parts - 1) == part;
            // One that grew would leave what it had behind.
            let room = match secrecy {
                Secrecy::Public => 2 * hashes.len() / parts,
                Secrecy::Secret => hashes.iter().filter(here).count(),
            };
            let mut own: Vec<u64> = Vec::with_capacity(room);
            own.extend(hashes.iter().filter(here));
            own.sort_unstable();
            let twice = own.windows(2).any(|pair| pair[0] == pair[1]);
            if secrecy == Secrecy::Secret {
                own.zeroize();
            }
            twice
        });
        if secrecy == Secrecy::Secret {
            hashes.as_mut_slice().zeroize();
        }
        twice
    }
}

impl Aes {
    /// Refuses streams that have a counter block in common: sorted by key and start, each must end before the next one
    /// starts. Keys that are equal count as one. Where the counter has 32 bits, nothing is sorted unless some may share
    /// the others. `secrecy` is that of the starts.
    pub(crate) fn expect_apart(
        &self,
        streams: impl IndexedParallelIterator<Item = CounterRange> + Clone,
        width: Counter,
        secrecy: Secrecy,
    ) -> Result<()> {
        if streams.len() < 2 {
            return Ok(());
        }
        let keys = if self.keys() > 1 { self.equal_keys().of(self) } else { &[0] };
        let sorted = |(message, stream): (usize, CounterRange)| Sorted {
            key: keys[stream.key],
            start: stream.start,
            blocks: stream.blocks,
            message,
        };
        // The bits of the counter that count, and the others, which tell streams apart.
        let low = match width {
            Counter::Bits128 => u128::MAX,
            Counter::Bits32 => u32::MAX.into(),
        };
        let streams = streams.with_min_len(GRAIN).enumerate().map(sorted);
        if width == Counter::Bits32 && !self.plan.hashes.any_twice(streams.clone(), !low, secrecy) {
            return Ok(());
        }
        // As many as there are: a vector that grew would leave what it had behind.
        let mut sorted = Vec::with_capacity(streams.len());
        streams.collect_into_vec(&mut sorted);
        sorted.retain(|stream| stream.blocks > 0);
        match sorted.len() {
            ..=FEW => sorted.sort_unstable(),
            _ => sorted.par_sort_unstable(),
        }
        let repeated = repetition(&sorted, low);
        if secrecy == Secrecy::Secret {
            // Those that were not retained lie behind the others.
            sorted.zeroize();
        }
        match repeated {
            None => Ok(()),
            Some((a, b)) => Err(Error::RepeatedKeystream { first: a.min(b), second: a.max(b) }),
        }
    }
}

/// Two messages whose streams, which are sorted, have a counter block in common. `low` are the bits of the counter that
/// count.
fn repetition(streams: &[Sorted], low: u128) -> Option<(usize, usize)> {
    streams.chunk_by(|a, b| a.key == b.key && a.start & !low == b.start & !low).find_map(|cycle| {
        if let Some(pair) = cycle.windows(2).find(|pair| pair[1].start - pair[0].start < pair[0].blocks.into()) {
            return Some((pair[0].message, pair[1].message));
        }
        // Only the last may reach beyond the end of the counter, to the start of the first.
        let [first, .., last] = cycle else { return None };
        let room = (low - (last.start & low)).saturating_add(1).saturating_add(first.start & low);
        (u128::from(last.blocks) > room).then_some((first.message, last.message))
    })
}

#[cfg(test)]
mod tests {
    use evariste_backend::Device;

    use super::*;
    use crate::{
        config::AesConfig,
        ghash::tests::{WATCHED, left},
    };

    fn check(keys: &[[u8; 16]], streams: &[(usize, u128, u64)], width: Counter) -> Option<(usize, usize)> {
        let aes = Aes::with_keys(&Device::cpu(), keys, AesConfig::default()).unwrap();
        let stream = |&(key, start, blocks): &(usize, u128, u64)| CounterRange { key, start, blocks };
        match aes.expect_apart(streams.par_iter().map(stream), width, Secrecy::Public) {
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
        for (streams, width, expected) in [
            (&[(0, 5, 2), (0, 7, 1), (0, 3, 2)][..], Counter::Bits128, None),
            (&[(0, 5, 3), (0, 7, 1)], Counter::Bits128, Some((0, 1))),
            (&[(0, 7, 1), (0, 5, 3)], Counter::Bits128, Some((0, 1))),
            (&[(0, 7, 1), (1, 5, 3)], Counter::Bits128, None),
            (&[(2, 7, 1), (1, 0, 1), (0, 5, 3)], Counter::Bits128, Some((0, 2))),
            (&[(0, 7, 1), (0, 7, 0), (0, 8, 1)], Counter::Bits128, None),
            (&[(0, 7, 1), (0, 9, 1), (0, 7, 1)], Counter::Bits128, Some((0, 2))),
            (&[(0, end, 1), (0, 0, 1)], Counter::Bits128, None),
            (&[(0, end, 2), (0, 0, 1)], Counter::Bits128, Some((0, 1))),
            (&[(0, end, 2), (0, 1, 1)], Counter::Bits128, None),
            (&[(0, end - 9, u64::MAX), (0, u128::from(u64::MAX), 1)], Counter::Bits128, None),
            // A counter of 32 bits goes around within its block.
            (&[(0, low, 2), (0, low + 1, 1)], Counter::Bits32, None),
            (&[(0, low, 2), (0, low + 1, 1)], Counter::Bits128, Some((0, 1))),
            (&[(0, low, 2), (0, 0, 1)], Counter::Bits32, Some((0, 1))),
            (&[(0, low, 2), (0, 1, 1)], Counter::Bits32, None),
            (&[(0, 1, 1 << 32), (0, 0, 1)], Counter::Bits32, Some((0, 1))),
            (&[(0, end, 1), (0, end & !low, 1)], Counter::Bits32, None),
            (&[(0, end, 2), (0, end & !low, 1)], Counter::Bits32, Some((0, 1))),
        ] {
            assert_eq!(check(&keys, streams, width), expected, "{streams:?}");
        }
    }

    #[test]
    fn one_repetition_among_many_is_found() {
        let mut streams: Vec<(usize, u128, u64)> =
            (0..20_000).map(|i| (0, (i * 7919 % 20_011) << 40, 1 << 30)).collect();
        assert_eq!(check(&[[1; 16]], &streams, Counter::Bits128), None);
        assert_eq!(check(&[[1; 16]], &streams, Counter::Bits32), None);
        streams[12_345] = (0, streams[77].1 + 5, 1);
        assert_eq!(check(&[[1; 16]], &streams, Counter::Bits128), Some((77, 12_345)));
        assert_eq!(check(&[[1; 16]], &streams, Counter::Bits32), Some((77, 12_345)));
    }

    /// Whether two streams have a block in common, block by block.
    fn naive(streams: &[(usize, u128, u64)], width: Counter) -> bool {
        let block = |start: u128, i: u64| match width {
            Counter::Bits128 => start.wrapping_add(i.into()),
            Counter::Bits32 => start >> 32 << 32 | u128::from((start as u32).wrapping_add(i as u32)),
        };
        let mut all: Vec<(usize, u128)> = streams
            .iter()
            .flat_map(|&(key, start, blocks)| (0..blocks).map(move |i| (key % 2, block(start, i))))
            .collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        all.len() < count
    }

    #[test]
    fn streams_are_told_apart_as_their_blocks_are() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let aes = Aes::with_keys(&Device::cpu(), &[[1; 16], [2; 16], [1; 16]], AesConfig::default()).unwrap();
        let mut refused = 0;
        for round in 0..20_000 {
            let (count, room) = (random(7) as usize, 2 + 8 * random(8));
            let high = [0, 1, u128::MAX >> 32, 1 << 95];
            let streams: Vec<(usize, u128, u64)> = (0..count)
                .map(|_| {
                    let low = (random(room) as u32).wrapping_sub(room as u32 / 2);
                    (random(3) as usize, high[random(4) as usize] << 32 | u128::from(low), random(5))
                })
                .collect();
            for width in [Counter::Bits32, Counter::Bits128] {
                let stream = |&(key, start, blocks): &(usize, u128, u64)| CounterRange { key, start, blocks };
                let found = match aes.expect_apart(streams.par_iter().map(stream), width, Secrecy::Public) {
                    Ok(()) => false,
                    Err(Error::RepeatedKeystream { first, second }) => {
                        assert!(first < second, "{round}");
                        assert!(naive(&[streams[first], streams[second]], width), "{streams:?}");
                        true
                    }
                    Err(error) => panic!("{error}"),
                };
                assert_eq!(found, naive(&streams, width), "{width:?} {streams:?}");
                refused += usize::from(found);
            }
        }
        assert!((2_000..38_000).contains(&refused), "{refused}");
    }

    /// A thread that finds the memory of hashes taken gets the same answer.
    #[test]
    fn threads_that_check_at_once_do_not_mix_their_streams() {
        let aes = Aes::new(&Device::cpu(), &[1; 16]).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8_usize {
                let aes = &aes;
                scope.spawn(move || {
                    for round in 0..50 {
                        let count = 300 + 997 * thread;
                        let mut streams: Vec<u128> = (0..count as u128).map(|i| i << 32).collect();
                        let (a, b) = (round * 5, count - 1 - round);
                        if round % 2 == 1 {
                            streams[b] = streams[a];
                        }
                        let stream = |start: &u128| CounterRange { key: 0, start: *start, blocks: 2 };
                        let found = aes.expect_apart(streams.par_iter().map(stream), Counter::Bits32, Secrecy::Public);
                        match round % 2 {
                            0 => assert!(found.is_ok()),
                            _ => assert_eq!(found.unwrap_err(), Error::RepeatedKeystream { first: a, second: b }),
                        }
                    }
                });
            }
        });
    }

    /// Counters that are hashes of nonces tell of the key: so do hashes of them, whose seeds are known.
    #[test]
    fn nothing_is_kept_of_secret_counters() {
        let aes = Aes::new(&Device::cpu(), &[1; 16]).unwrap();
        let gcm = aes.gcm().unwrap();
        let nonces: Vec<[u8; 13]> = (0..1000_u128).map(|i| *i.to_le_bytes().first_chunk().unwrap()).collect();
        let message = |nonce| crate::gcm::GcmMessage { offset: 0, len: 0, key: 0, nonce, aad: b"" };
        let messages: Vec<_> = nonces.iter().map(|nonce| message(&nonce[..])).collect();
        gcm.seal_batch(&mut aes.device().zeros(0).unwrap(), &messages).unwrap();
        let hashes = aes.plan.hashes.0.lock().unwrap();
        assert_eq!((hashes.len(), hashes.iter().filter(|hash| **hash != 0).count()), (1000, 0));
        drop(hashes);
        // Sorted once one comes twice.
        let streams: Vec<u64> = (0..1000).map(|i| i / 2).collect();
        for (secrecy, expected) in [(Secrecy::Secret, 0), (Secrecy::Public, 500)] {
            let stream = |blocks: &u64| CounterRange { key: 0, start: WATCHED[1], blocks: *blocks };
            let found = aes.expect_apart(streams.par_iter().map(stream), Counter::Bits32, secrecy);
            assert!(matches!(found, Err(Error::RepeatedKeystream { .. })));
            assert!(left(1) >= expected && (expected > 0 || left(1) == 0), "{}", left(1));
        }
    }
}
