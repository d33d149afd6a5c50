//! Keys of GHASH on a device, and sums of data that lies there.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use evariste_backend::{
    Buffer, HostBuffer, Queue, Secrecy, Transfer, View,
    author::{Arg, Kernel, LazyKernel, Ready},
};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    alignment::{tail, words},
    batch::{Batch, Prepared},
    block::BLOCK,
    config::MAX_STRIDES,
    error::Result,
    gf128,
    ghash::{HashKey, Sum},
    kernels::{self, THREADS},
    params::{GhashParams, POWERS, SQUARES},
    plan::Aes,
};

/// Messages that one launch of GHASH takes.
const MAX_HASHED: usize = 1 << 24;

/// Segments into which GHASH cuts data, if it is long enough: enough to keep a device busy, and few enough for the host
/// to put together in microseconds.
const MAX_SEGMENTS: u64 = 1 << 11;

/// Blocks that a workgroup hashes at a time at least, if the data has them.
const MIN_HASHED: u64 = 1 << 11;

/// Blocks of a message of a batch that are one segment in any case: putting together costs the host as much as it
/// gains.
const MIN_CUT: u64 = 1 << 10;

/// Blocks of a segment of a batch at most: the strides of one launch.
const MAX_SEGMENT: u64 = MAX_STRIDES * THREADS as u64;

/// The keys of GHASH of a plan, on the host and on its device.
pub(crate) struct HashKeys {
    /// As they were collected: a shared slice would be a copy, and the vector that it came from is not zeroed.
    keys: Arc<Vec<HashKey>>,
    /// H, H^2, H^4, … of each key.
    powers: Buffer<u32>,
    /// When these are there.
    ready: Ready,
    kernel: LazyKernel<GhashParams>,
    /// Where the last sum was written and read, for the next one.
    place: Mutex<Option<(Buffer<u8>, HostBuffer)>>,
}

impl HashKeys {
    pub(crate) fn new(queue: &Queue, h: impl Fn(usize) -> u128 + Send + Sync, count: usize) -> Result<Self> {
        let keys: Vec<_> = (0..count).into_par_iter().map(|key| HashKey::new(h(key))).collect();
        let mut words = Zeroizing::new(Vec::with_capacity(count * POWERS));
        for key in &keys {
            words.extend_from_slice(key.squares());
            let mut power = 1;
            for _ in SQUARES..POWERS {
                words.push(power);
                power = gf128::multiply(power, key.squares()[0]);
            }
        }
        let powers = queue.upload_with::<u32>(bytemuck::cast_slice::<u128, u32>(&words), Secrecy::Secret)?;
        let (keys, ready) = (Arc::new(keys), Ready::behind(queue)?);
        Ok(Self { keys, powers, ready, kernel: LazyKernel::default(), place: Mutex::default() })
    }

    pub(crate) fn key(&self, key: usize) -> &HashKey {
        &self.keys[key]
    }

    pub(crate) fn powers(&self) -> &Buffer<u32> {
        &self.powers
    }

    pub(crate) fn kernel(&self) -> Result<&Kernel<GhashParams>> {
        let device = self.powers.device();
        Ok(self.kernel.get(device, || kernels::ghash(device.info(), Arc::clone(&self.keys)))?)
    }

    /// Launches the writes of `count` sums by `launch` on a queue. Calls `done` with the result of `launch` and with
    /// the sums, as they lie in memory.
    pub(crate) fn read<M, T>(
        &self,
        queue: &Queue,
        count: usize,
        launch: impl FnOnce(&mut Buffer<u8>) -> Result<M>,
        done: impl FnOnce(M, &[[u8; BLOCK]]) -> T,
    ) -> Result<T> {
        let (device, bytes) = (self.powers.device(), count * BLOCK);
        // A call that finds the place taken uses one of its own.
        let mut own = None;
        let mut shared = self.place.try_lock();
        let place = shared.as_deref_mut().unwrap_or(&mut own);
        let (mut out, mut host) = match place.take().filter(|(out, _)| out.len() >= bytes) {
            Some(place) => place,
            None => {
                let len = bytes.next_power_of_two();
                (
                    device.alloc_with::<u8>(len, Secrecy::Secret)?,
                    device.host_buffer(len, Transfer::Download, Secrecy::Secret)?,
                )
            }
        };
        let made = launch(&mut out)?;
        let rest = host.split_off(bytes);
        let mut host = queue.read_pinned(out.view(..bytes)?, host)?.wait()?;
        let result = done(made, bytemuck::cast_slice(&host));
        // Both are of one allocation.
        if host.join(rest).is_ok() {
            *place = Some((out, host));
        }
        Ok(result)
    }
}

impl fmt::Debug for HashKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashKeys").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

impl Aes {
    /// Σ X_i H^(n−1−i) over the n blocks of data, with the powers of a key. But on the CPU the data must start at a
    /// word.
    pub(crate) fn ghash(&self, data: View<'_, u8>, keys: &HashKeys, key: usize) -> Result<Sum> {
        keys.ready.wait(self.queue())?;
        let (mut total, mut done) = (Sum::default(), 0);
        while done < data.len() {
            let end = data.len().min(done.saturating_add(self.launch_bytes()));
            let sum = self.ghash_part(data.view(done..end)?, keys, key)?;
            total = if done == 0 { sum } else { keys.key(key).append(&total, &sum, end - done) };
            done = end;
        }
        Ok(total)
    }

    fn ghash_part(&self, data: View<'_, u8>, keys: &HashKeys, key: usize) -> Result<Sum> {
        let blocks = words(0, data.len());
        let segment = if self.whole_launches() { blocks } else { self.segment_of(blocks) };
        let count = blocks.div_ceil(segment);
        let params = GhashParams {
            count: count as u32,
            blocks: blocks as u32,
            tail: tail(data.len()) as u32,
            segment: segment as u32,
            power: (key * POWERS) as u32,
        };
        let (kernel, powers) = (keys.kernel()?, keys.powers());
        let launch = |out: &mut Buffer<u8>| {
            // There are no messages: the tables' first words stand in for them, unread.
            let args = &mut [Arg::read(data), Arg::read(&self.plan.tables), Arg::read(powers), Arg::write(out)];
            // SAFETY: the data has the words that the parameters name; there is an output for each segment; the key has
            // powers.
            Ok(unsafe { kernel.launch(self.queue(), self.hash_groups(count), &params, args) }?)
        };
        keys.read(self.queue(), count as usize, launch, |(), sums| keys.key(key).join_segments(sums, segment, blocks))
    }

    /// Blocks of a segment, for data of a number of blocks.
    fn segment_of(&self, blocks: u64) -> u64 {
        let at_once = u64::from(kernels::hashed_at_once(self.plan.device.info()));
        blocks.div_ceil(MAX_SEGMENTS).max(MIN_HASHED / at_once).next_multiple_of(THREADS.into())
    }

    /// Workgroups that hash a number of segments.
    fn hash_groups(&self, segments: u64) -> u64 {
        let info = self.plan.device.info();
        match kernels::hashed_at_once(info) {
            1 => segments,
            _ if self.whole_launches() => 1,
            // Two of them fit at once.
            _ => segments.min(2 * u64::from(info.parallelism.max(1))),
        }
    }

    /// [`Aes::ghash`] of each message of a batch, with its own powers, as they lie in memory. `parts` are what the
    /// batch was prepared as. `meanwhile` runs on the host while the device hashes; `done` gets what it made, and the
    /// sums.
    pub(crate) fn ghash_messages<M, T>(
        &self,
        data: View<'_, u8>,
        batch: &Batch<'_>,
        parts: &[Prepared],
        keys: &HashKeys,
        meanwhile: impl FnOnce() -> M,
        done: impl FnOnce(M, &[[u8; BLOCK]]) -> T,
    ) -> Result<T> {
        keys.ready.wait(self.queue())?;
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
            Ok(unsafe { kernel.launch(self.queue(), self.hash_groups(count as u64), &params, args) }?)
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
            return keys.read(self.queue(), *count, launch, done);
        }
        let segments = batch.segments(most);
        let mut sums = Zeroizing::new(Vec::with_capacity(segments.len()));
        let (mut meanwhile, mut made) = (Some(meanwhile), None);
        for part in segments.chunks(MAX_HASHED) {
            let messages = self.own_queue()?.upload_with(bytemuck::cast_slice(part), Secrecy::Public)?;
            let launch = |out: &mut Buffer<u8>| {
                launch(&messages, part.len(), out)?;
                made = made.take().or_else(|| meanwhile.take().map(|meanwhile| meanwhile()));
                Ok(())
            };
            keys.read(self.queue(), part.len(), launch, |(), part| sums.extend_from_slice(part))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ghash::tests::{WATCHED, left};

    #[test]
    fn keys_leave_nothing_in_memory() {
        drop(HashKeys::new(&evariste_backend::Device::cpu().default_queue(), |_| WATCHED[0], 3).unwrap());
        assert_eq!(left(0), 0);
        drop(std::hint::black_box(vec![WATCHED[0]]));
        assert_eq!(left(0), 1);
    }
}
