use std::{fmt, sync::Arc};

use evariste_backend::{
    Buffer, Device, DeviceInfo, Element, Error as DeviceError, Queue, Secrecy, View, ViewMut,
    author::{Arg, Kernel, KernelSpec, LazyKernel},
};

use self::{
    function::HashFunction,
    params::{CHUNK, ChunkParams, MessageParams, ParentParams, THREADS, flags},
};
use crate::error::{Error, Result};

mod blake3;
mod cpu;
pub(crate) mod function;
mod params;
mod spec;
#[cfg(test)]
mod tests;
mod wgsl;

/// What one launch takes at most.
#[derive(Clone, Copy, Debug)]
struct Most {
    /// Bytes of messages: kernels count them by 31 bits.
    bytes: usize,
    messages: usize,
    /// Leaves of BLAKE3's trees whose values are kept, unless one message has more.
    leaves: usize,
    /// Bytes of a leaf: a chunk, or a power of two of them.
    leaf: usize,
}

impl Most {
    /// Values of leaves take 64 MiB.
    const USUAL: Self = Self { bytes: (1 << 31) - (1 << 16), messages: 1 << 24, leaves: 1 << 21, leaf: CHUNK };

    /// Processors hash 16 chunks side by side.
    fn of(info: &DeviceInfo) -> Self {
        Self { leaf: if info.is_processor() { 16 * CHUNK } else { CHUNK }, ..Self::USUAL }
    }
}

/// Bytes of the word of a binding of bytes.
const WORD: usize = 16;

/// A hash function of bytes on a device, over many messages at a time.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use evariste_backend::Device;
/// use evariste_hash::{ByteHash, HashFunction};
///
/// let device = Device::best()?;
/// let keccak = ByteHash::new(&device, HashFunction::Keccak256)?;
/// // Three messages of 4 bytes.
/// let messages = device.upload::<u8>(b"ab12cd34ef56")?;
/// let mut digests = device.alloc::<[u8; 32]>(3)?;
/// keccak.hash_rows(&messages, 4, &mut digests)?;
/// // Messages of 0, 5 and 7 bytes.
/// keccak.hash_many(&messages, &[0, 0, 5, 12], &mut digests)?;
/// assert_eq!(digests.to_vec()?[0][..4], [0xc5, 0xd2, 0x46, 0x01]);
/// # Ok(())
/// # }
/// ```
///
/// # Algorithm
///
/// A thread hashes one message, with the state in registers. With BLAKE3 a thread hashes one chunk of 1024 bytes. The
/// values of chunks go layer by layer up the tree, so that one long message is hashed by as many threads as it has
/// chunks. The other functions are sequential, and one long message is the work of one thread.
///
/// Work is counted in additions of two or three words, logical operations of two or three, and shifts of two words. Those
/// of a block are at least:
///
/// | function | bytes of a block | instructions of a block |
/// | --- | --- | --- |
/// | Keccak-256, SHA3-256 | 136 | 4320 |
/// | SHA-256 | 64 | 1384 |
/// | BLAKE2s-256 | 64 | 976 |
/// | BLAKE3 | 64, and one block more a KiB for its tree | 680 |
///
/// Sources: FIPS 202; FIPS 180-4; RFC 7693; O'Connor, Aumasson, Neves and Wilcox-O'Hearn, "BLAKE3: one function, fast
/// everywhere", 2020.
pub struct ByteHash {
    queue: Queue,
    shared: Arc<Shared>,
}

/// What plans on all queues share.
struct Shared {
    device: Device,
    function: HashFunction,
    most: Most,
    /// What is bound where there is no table.
    nothing: Buffer<[u8; 32]>,
    messages: LazyKernel<MessageParams>,
    chunks: LazyKernel<ChunkParams>,
    parents: LazyKernel<ParentParams>,
}

/// Messages of one length, one after the other.
#[derive(Clone, Copy)]
struct Messages<'a, T: Element> {
    values: View<'a, T>,
    /// Elements of each.
    columns: usize,
    count: usize,
}

impl<'a, T: Element> Messages<'a, T> {
    fn bytes(&self) -> usize {
        self.columns * T::BYTES
    }

    /// Some of them.
    fn part(&self, start: usize, count: usize) -> Result<Self> {
        let values = self.values.view(start * self.columns..(start + count) * self.columns)?;
        Ok(Self { values, columns: self.columns, count })
    }

    /// The byte of a word where they start.
    fn at(&self) -> u32 {
        (self.values.start() * T::BYTES % WORD) as u32
    }
}

impl HashFunction {
    /// Returns the bytes of device memory that [`ByteHash`](crate::ByteHash) takes beside its arguments, to hash
    /// `messages` messages of `bytes` bytes. For messages of different lengths, `bytes` are those of the longest.
    pub fn required_bytes(self, messages: usize, bytes: usize) -> u64 {
        match self {
            HashFunction::Blake3 => blake3::required_bytes(messages, bytes),
            _ => 4 * (messages.min(Most::USUAL.messages) as u64 + 1),
        }
    }
}

impl ByteHash {
    /// Makes a plan on a queue (`&device` is its default one). Kernels are compiled at their first use, or by
    /// [`ByteHash::prepare`].
    ///
    /// # Errors
    /// [`Error::Device`] if there is no memory, or if the device fails.
    pub fn new(queue: impl Into<Queue>, function: HashFunction) -> Result<Self> {
        let queue = queue.into();
        let most = Most::of(queue.device().info());
        Self::with_most(queue, function, most)
    }

    fn with_most(queue: Queue, function: HashFunction, most: Most) -> Result<Self> {
        let device = queue.device().clone();
        let shared = Shared {
            nothing: device.alloc(1)?,
            device,
            function,
            most,
            messages: LazyKernel::default(),
            chunks: LazyKernel::default(),
            parents: LazyKernel::default(),
        };
        Ok(Self { queue, shared: Arc::new(shared) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), shared: Arc::clone(&self.shared) }
    }

    /// Returns the queue of the plan.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) fn device(&self) -> &Device {
        &self.shared.device
    }

    /// Returns the function.
    pub fn function(&self) -> HashFunction {
        self.shared.function
    }

    /// Compiles all kernels side by side, so that no later call does.
    ///
    /// # Errors
    /// [`Error::Device`] if a kernel does not compile, or if the device fails.
    pub fn prepare(&self) -> Result<()> {
        let shared = &self.shared;
        let prepared = shared.device.prepare(&Self::kernels(shared.function))?;
        if shared.function == HashFunction::Blake3 {
            shared.chunks()?;
            shared.parents.get(&shared.device, spec::blake3_parents)?;
        } else {
            shared.messages.get(&shared.device, || spec::hash_messages(shared.function))?;
        }
        drop(prepared);
        Ok(())
    }

    /// Returns the kernels, for tools that compile them ahead.
    #[doc(hidden)]
    pub fn kernels(function: HashFunction) -> Vec<KernelSpec> {
        match function {
            HashFunction::Blake3 => vec![spec::blake3_chunks(CHUNK), spec::blake3_parents()],
            function => vec![spec::hash_messages(function)],
        }
    }

    /// Hashes messages of `bytes` bytes each, which follow each other: the rows of a matrix. `out` has a digest for each.
    /// Returns when the work is queued.
    ///
    /// # Errors
    /// [`Error::Device`], with
    /// - [`Length`](DeviceError::Length) unless `messages` has `bytes` bytes for each digest of `out`,
    /// - [`SecretInput`](DeviceError::SecretInput) if `messages` are secret and `out` is not,
    /// - [`WrongDevice`](DeviceError::WrongDevice) if a view is of another device,
    /// - [`TooLarge`](DeviceError::TooLarge) for messages of more than 2 GiB − 64 KiB, unless they are hashed by BLAKE3; and for
    ///   messages of more blocks than one thread takes, on devices that limit its loops,
    /// - [`OutOfMemory`](DeviceError::OutOfMemory) without room for [`required_bytes`](HashFunction::required_bytes),
    /// - the errors of a compiler and a driver.
    pub fn hash_rows<'a>(
        &self,
        messages: impl Into<View<'a, u8>>,
        bytes: usize,
        out: impl Into<ViewMut<'a, [u8; 32]>>,
    ) -> Result<()> {
        let out = out.into();
        let (values, count) = (messages.into(), out.len());
        self.hash_apart("the messages", values, bytes, count, out, 1)
    }

    /// Hashes messages of different lengths: message i is the bytes `offsets[i]` to `offsets[i + 1]` − 1, and `out[i]`
    /// its digest. So there is one offset more than messages. Bytes before the first offset and behind the last are no
    /// part of any. Returns when the work is queued.
    ///
    /// # Errors
    /// - [`Error::Offsets`] for another number of offsets.
    /// - [`Error::Offset`] for an offset below the one before it or beyond the bytes.
    /// - [`Error::Device`] as in [`ByteHash::hash_rows`].
    pub fn hash_many<'a>(
        &self,
        bytes: impl Into<View<'a, u8>>,
        offsets: &[usize],
        out: impl Into<ViewMut<'a, [u8; 32]>>,
    ) -> Result<()> {
        let (bytes, mut out) = (bytes.into(), out.into());
        if offsets.len().checked_sub(1) != Some(out.len()) {
            return Err(Error::Offsets { expected: out.len() + 1, actual: offsets.len() });
        }
        let mut least = 0;
        for (index, offset) in offsets.iter().copied().enumerate() {
            if offset < least || offset > bytes.len() {
                return Err(Error::Offset { index, least, most: bytes.len(), actual: offset });
            }
            least = offset;
        }
        self.expect_io(bytes, &out)?;
        if self.shared.function == HashFunction::Blake3 {
            return self.blake3_many(bytes, offsets, out);
        }
        let longest = offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        self.expect_message(longest)?;
        let kernel = self.shared.messages.get(&self.shared.device, || spec::hash_messages(self.shared.function))?;
        kernel.expect_fits(&MessageParams { bytes: longest as u32, ..MessageParams::default() })?;
        let secrecy = Secrecy::of([bytes.secrecy(), out.secrecy()]);
        let mut start = 0;
        while start < out.len() {
            let base = offsets[start];
            let most = out.len().min(start + self.shared.most.messages);
            let len = offsets[start + 1..=most].partition_point(|offset| offset - base <= self.shared.most.bytes);
            let table: Vec<u32> = offsets[start..=start + len].iter().map(|offset| (offset - base) as u32).collect();
            let messages = bytes.view(base..offsets[start + len])?;
            let params = MessageParams {
                len: len as u32,
                at: (messages.start() % WORD) as u32,
                bytes: longest as u32,
                stride: 1,
                pad: self.shared.function.pad(),
                flags: flags::TABLE,
                ..MessageParams::default()
            };
            let table = self.queue.upload_with::<u32>(&table, secrecy)?;
            let digests = out.view_mut(start..start + len)?;
            let args = &mut [Arg::read(messages), Arg::read(&table), Arg::write(digests)];
            // SAFETY: the table has an offset more than there are messages and digests. They ascend to the end of the
            // bytes.
            unsafe { kernel.launch(&self.queue, groups(len), &params, args)? };
            start += len;
        }
        Ok(())
    }

    /// Hashes one message and reads the digest. Waits for it. A long message is hashed by many threads with BLAKE3 alone.
    ///
    /// # Errors
    /// [`Error::Device`] as in [`ByteHash::hash_rows`].
    pub fn digest<'a>(&self, message: impl Into<View<'a, u8>>) -> Result<[u8; 32]> {
        let message = message.into();
        let mut out = self.shared.device.alloc_with::<[u8; 32]>(1, message.secrecy())?;
        self.hash_rows(message, message.len(), &mut out)?;
        Ok(self.queue.read(&out)?.into_iter().next().unwrap_or_default())
    }

    /// Compresses pairs of digests: `out` has one digest for two neighbouring ones of `pairs`, the hash of their 64 bytes.
    /// Returns when the work is queued.
    ///
    /// # Errors
    /// [`Error::Device`], with
    /// - [`Length`](DeviceError::Length) unless `pairs` has twice as many digests as `out`,
    /// - [`SecretInput`](DeviceError::SecretInput) if `pairs` are secret and `out` is not,
    /// - [`WrongDevice`](DeviceError::WrongDevice) if a view is of another device,
    /// - the errors of a compiler and a driver.
    pub fn compress<'a>(
        &self,
        pairs: impl Into<View<'a, [u8; 32]>>,
        out: impl Into<ViewMut<'a, [u8; 32]>>,
    ) -> Result<()> {
        let out = out.into();
        let (pairs, count) = (pairs.into(), out.len());
        self.hash_apart("the digests to compress", pairs, 2, count, out, 1)
    }

    /// Hashes `count` messages of so many elements each, by their bytes, with digests `stride` apart. The view of digests
    /// ends with the last one.
    pub(crate) fn hash_apart<T: Element>(
        &self,
        what: &'static str,
        values: View<'_, T>,
        columns: usize,
        count: usize,
        mut out: ViewMut<'_, [u8; 32]>,
        stride: usize,
    ) -> Result<()> {
        out.expect_len("the digests", places(count, stride))?;
        values.expect_len(what, count.saturating_mul(columns))?;
        self.expect_io(values, &out)?;
        let messages = Messages { values, columns, count };
        if self.shared.function == HashFunction::Blake3 {
            return self.blake3_apart(messages, out, stride);
        }
        let bytes = messages.bytes();
        self.expect_message(bytes)?;
        let kernel = self.shared.messages.get(&self.shared.device, || spec::hash_messages(self.shared.function))?;
        let params = MessageParams {
            pitch: bytes as u32,
            bytes: bytes as u32,
            stride: stride as u32,
            pad: self.shared.function.pad(),
            ..MessageParams::default()
        };
        kernel.expect_fits(&params)?;
        let most = (self.shared.most.bytes / bytes.max(1)).min(self.shared.most.messages);
        for start in (0..count).step_by(most) {
            let len = most.min(count - start);
            let part = messages.part(start, len)?;
            let digests = out.view_mut(start * stride..start * stride + places(len, stride))?;
            let args = &mut [Arg::read(part.values), Arg::read(self.shared.nothing.view(..0)?), Arg::write(digests)];
            let params = MessageParams { len: len as u32, at: part.at(), ..params };
            // SAFETY: there are `len` messages of so many bytes, and places for their digests.
            unsafe { kernel.launch(&self.queue, groups(len), &params, args)? };
        }
        Ok(())
    }

    /// Refuses what is elsewhere, and public digests of secrets.
    fn expect_io<T: Element>(&self, input: View<'_, T>, out: &ViewMut<'_, [u8; 32]>) -> Result<()> {
        self.queue.expect_device(&self.shared.device)?;
        self.shared.device.expect_same("the messages", input.device())?;
        self.shared.device.expect_same("the digests", out.device())?;
        Ok(input.secrecy().expect_to(out.secrecy(), "hash", ["the messages", "the digests"])?)
    }

    /// Refuses a message that one launch does not take.
    fn expect_message(&self, bytes: usize) -> Result<()> {
        let most = self.shared.most.bytes;
        if bytes <= most {
            return Ok(());
        }
        let (device, expected) = (self.shared.device.info().id, most as u64);
        Err(DeviceError::TooLarge { what: "message", device, expected, actual: bytes as u64 }.into())
    }
}

impl Shared {
    fn chunks(&self) -> Result<&Kernel<ChunkParams>> {
        Ok(self.chunks.get(&self.device, || spec::blake3_chunks(self.most.leaf))?)
    }
}

impl Clone for ByteHash {
    fn clone(&self) -> Self {
        self.on(&self.queue)
    }
}

impl fmt::Debug for ByteHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteHash")
            .field("device", &self.shared.device)
            .field("function", &self.shared.function)
            .finish_non_exhaustive()
    }
}

fn groups(threads: usize) -> u64 {
    (threads as u64).div_ceil(THREADS.into())
}

/// From the first of `count` digests `stride` apart to the last.
pub(crate) fn places(count: usize, stride: usize) -> usize {
    count.checked_sub(1).map_or(0, |last| last * stride + 1)
}
