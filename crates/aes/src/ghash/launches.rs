//! Sums of data that lies on the device.

use std::ops::Range;

use evariste_backend::{Arg, Buffer, Secrecy};
use zeroize::Zeroizing;

use super::{HashKeys, Sum};
use crate::{
    Aes, Result,
    batch::{Batch, Prepared},
    copies::{tail, words},
    cpu::BLOCK,
    engine::MAX_STRIDES,
    kernels::{self, GhashParams, POWERS, Place, THREADS},
};

/// Messages that one launch of GHASH takes.
const MAX_HASHED: usize = 1 << 24;

/// Segments that data is cut into for GHASH, if it is long enough: as many as keep a device busy, and as few as the host
/// puts together in microseconds.
const MAX_SEGMENTS: u64 = 1 << 11;

/// Blocks that a workgroup hashes at a time at least, if there are so many.
const MIN_HASHED: u64 = 1 << 11;

/// Blocks of a message of a batch that are one segment in any case: putting together costs the host as much as it gains.
const MIN_CUT: u64 = 1 << 10;

/// Blocks of a segment of a batch at most: as many strides as one launch has.
const MAX_SEGMENT: u64 = MAX_STRIDES * THREADS as u64;

impl Aes {
    /// Σ X_i H^(n−1−i) over the n blocks of a range that starts at a word, with the powers of a key.
    pub(crate) fn ghash(&self, data: &Buffer<u8>, range: Range<usize>, keys: &HashKeys, key: usize) -> Result<Sum> {
        let mut total = Sum::default();
        let step = self.launch_bytes();
        for start in range.clone().step_by(step) {
            let part = start..range.end.min(start.saturating_add(step));
            let sum = self.ghash_part(data, part.clone(), keys, key)?;
            total = if start == range.start { sum } else { keys.key(key).append(&total, &sum, part.len()) };
        }
        Ok(total)
    }

    fn ghash_part(&self, data: &Buffer<u8>, range: Range<usize>, keys: &HashKeys, key: usize) -> Result<Sum> {
        let blocks = words(range.start, range.len());
        if blocks == 0 {
            return Ok(Sum::default());
        }
        let segment = if self.whole_launches() { blocks } else { self.segment_of(blocks) };
        let count = blocks.div_ceil(segment);
        let params = GhashParams {
            count: count as u32,
            word: Place::of(range.start),
            blocks: blocks as u32,
            tail: tail(range.end) as u32,
            segment: segment as u32,
            power: (key * POWERS) as u32,
        };
        let (kernel, powers) = (keys.kernel()?, keys.powers());
        let launch = |out: &mut Buffer<u8>| {
            // There are no messages: the tables' first words stand in for them, unread.
            let args = &mut [Arg::read(data), Arg::read(&self.0.tables), Arg::read(powers), Arg::write(out)];
            // SAFETY: the range's words lie in the data; there is an output for each segment; the key has powers.
            Ok(unsafe { kernel.launch(None, self.hash_groups(count), &params, args) }?)
        };
        keys.read(count as usize, launch, |(), sums| keys.key(key).join_segments(sums, segment, blocks))
    }

    /// Blocks of the segments that so many blocks are cut into.
    fn segment_of(&self, blocks: u64) -> u64 {
        let at_once = u64::from(kernels::hashed_at_once(self.0.device.info()));
        blocks.div_ceil(MAX_SEGMENTS).max(MIN_HASHED / at_once).next_multiple_of(THREADS.into())
    }

    /// Workgroups that hash so many segments.
    fn hash_groups(&self, segments: u64) -> u64 {
        let info = self.0.device.info();
        match kernels::hashed_at_once(info) {
            1 => segments,
            _ if self.whole_launches() => 1,
            // Two of them fit at once.
            _ => segments.min(2 * u64::from(info.parallelism.max(1))),
        }
    }

    /// [`Aes::ghash`] of each message of a batch, with its own powers, as they lie in memory. `parts` are what the batch was prepared
    /// as. `meanwhile` runs on the host while the device hashes; `done` gets what it made, and the sums.
    pub(crate) fn ghash_messages<M, T>(
        &self,
        data: &Buffer<u8>,
        batch: &Batch<'_>,
        parts: &[Prepared],
        keys: &HashKeys,
        meanwhile: impl FnOnce() -> M,
        done: impl FnOnce(M, &[[u8; BLOCK]]) -> T,
    ) -> Result<T> {
        let most = if self.whole_launches() {
            u64::from(u32::MAX)
        } else {
            self.segment_of(batch.blocks()).clamp(MIN_CUT, MAX_SEGMENT)
        };
        let launch = |messages: &Buffer<u32>, count: usize, out: &mut Buffer<u8>| -> Result<()> {
            let params = GhashParams { count: count as u32, ..GhashParams::default() };
            let (kernel, powers) = (keys.kernel()?, keys.powers());
            let args = &mut [Arg::read(data), Arg::read(messages), Arg::read(powers), Arg::write(out)];
            // SAFETY: every segment lies in the data and names powers that are there, as `Batch` checks; there is an
            // output for each.
            Ok(unsafe { kernel.launch(None, self.hash_groups(count as u64), &params, args) }?)
        };
        if let [Prepared { count, messages, .. }] = parts
            && *count == batch.count()
            && *count <= MAX_HASHED
            && batch.longest() <= most
        {
            let launch = |out: &mut Buffer<u8>| {
                launch(messages, *count, out)?;
                Ok(meanwhile())
            };
            return keys.read(*count, launch, done);
        }
        let segments = batch.segments(most);
        let mut sums = Zeroizing::new(Vec::with_capacity(segments.len()));
        let (mut meanwhile, mut made) = (Some(meanwhile), None);
        for part in segments.chunks(MAX_HASHED) {
            let messages = self.0.device.upload_on(None, bytemuck::cast_slice(part), Secrecy::Public)?;
            let launch = |out: &mut Buffer<u8>| {
                launch(&messages, part.len(), out)?;
                made = made.take().or_else(|| meanwhile.take().map(|meanwhile| meanwhile()));
                Ok(())
            };
            keys.read(part.len(), launch, |(), part| sums.extend_from_slice(part))?;
        }
        let mut sums: &[[u8; BLOCK]] = &sums;
        let mut joined = Zeroizing::new(Vec::with_capacity(batch.count()));
        for span in batch.spans() {
            let blocks = words(span.offset, span.len);
            let (own, rest) = sums.split_at(blocks.div_ceil(most).max(1) as usize);
            joined.push(*keys.key(span.key).join_segments(own, most, blocks));
            sums = rest;
        }
        let made = made.or_else(|| meanwhile.map(|meanwhile| meanwhile()));
        let Some(made) = made else { unreachable!("it ran at the first launch, or just now") };
        Ok(done(made, &joined))
    }
}
