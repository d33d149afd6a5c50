use evariste_backend::{Buffer, Error as DeviceError, HostBuffer, Queue, Secrecy, ViewMut, author::Arg};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    alignment::{tail, words},
    batch::{Batch, Message},
    block::{BLOCK, Counter, add_counter},
    block_modes::Work,
    config::{AesConfig, Mode},
    cpu,
    error::{Error, Result},
    kernels::CTR_RUN,
    keystream::CounterRange,
    params::CtrParams,
    pieces,
    plan::{Aes, key},
};

/// Counter mode (NIST SP 800-38A, 6.5): a keystream that is XORed onto data, from any position on. Encryption and
/// decryption are the same.
///
/// Never use a counter block twice with one key: neither in two streams, nor by seeking back to encrypt other data. The
/// type refuses data beyond the end of the stream, where the counter would start again. Other reuse is undetected.
///
/// Counter mode authenticates nothing: an attacker who flips a bit of the ciphertext flips that bit of the plaintext.
/// Use [`crate::Gcm`] unless a protocol says otherwise.
#[derive(Clone, Debug)]
pub struct Ctr {
    aes: Aes,
    iv: [u8; BLOCK],
    counter: Counter,
    position: u128,
}

impl Aes {
    /// Makes a stream with key 0, from the counter block `iv` on.
    ///
    /// # Errors
    /// [`Error::IvLength`] unless `iv` has 16 bytes.
    pub fn ctr(&self, iv: &[u8]) -> Result<Ctr> {
        Ok(Ctr { aes: self.clone(), iv: block("a counter block", iv)?, counter: Counter::default(), position: 0 })
    }

    /// XORs the keystream of its key and counter block onto each message. Queued: returns before the device is done.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::Alignment`]: a message does not start at a multiple of 16.
    /// - [`Error::NoSuchKey`]: a message names a key that the plan lacks.
    /// - [`Error::Overlap`]: two messages share bytes.
    /// - [`Error::Keystream`]: a message is longer than a stream with this counter.
    /// - [`Error::RepeatedKeystream`]: two messages have equal keys and a counter block in common.
    /// - [`Error::Device`]: a message leaves `data`, or data or the queue are of another device.
    ///
    /// [`Error::Device`] if the device fails or has too little memory.
    pub fn ctr_batch<'d>(
        &self,
        data: impl Into<ViewMut<'d, u8>>,
        messages: &[Message],
        counter: Counter,
    ) -> Result<()> {
        let data = data.into();
        for message in messages {
            expect_keystream(0, message.len, counter)?;
        }
        let batch = Batch::new(self, data.as_view(), &messages)?;
        let stream = |message: &Message| CounterRange {
            key: message.key,
            start: u128::from_be_bytes(message.iv),
            blocks: message.len.div_ceil(BLOCK) as u64,
        };
        self.expect_apart(messages.par_iter().map(stream), counter, Secrecy::Public)?;
        self.aligned(data, 0, |data| self.messages(Work::Ctr(counter), data, &batch))
    }

    /// XORs the keystream from byte `skip` of the block of `counter` on. But on the CPU the data must start `skip`
    /// bytes after a word.
    pub(crate) fn ctr_aligned(
        &self,
        mut data: ViewMut<'_, u8>,
        skip: usize,
        counter: [u8; BLOCK],
        width: Counter,
    ) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        self.plan.ready.wait(self.queue())?;
        let (device, shape) = (&self.plan.device, self.plan.shape);
        let kernel = self.plan.ctr.get(device, || shape.ctr(device.info(), self.ciphers()))?;
        let threads = shape.ctr_threads(device.info());
        let (len, blocks) = (data.len(), words(skip, data.len()));
        let mut launch = |done: u64, now: u64| -> Result<()> {
            let params = CtrParams {
                counter: bytemuck::cast(add_counter(counter, done.into(), width)),
                wide: width.word(),
                blocks: now as u32,
                skip: if done == 0 { skip as u32 } else { 0 },
                tail: if done + now == blocks { tail(skip + len) as u32 } else { BLOCK as u32 },
            };
            let start_of = |block: u64| (block as usize * BLOCK).saturating_sub(skip).min(len);
            let part = data.view_mut(start_of(done)..start_of(done + now))?;
            // A run that starts in the middle reaches into one more.
            let groups = self.spread_groups(now + 255, u64::from(threads * CTR_RUN), threads);
            let args = &mut [Arg::write(part), key(&self.plan.schedule), Arg::read(&self.plan.tables)];
            // SAFETY: the words of the part are `blocks`, from byte `skip` of the first to `tail` of the last; schedule
            // and tables are of this kernel's shape.
            Ok(unsafe { kernel.launch(self.queue(), groups, &params, args) }?)
        };
        let each = self.plan.config.launch_blocks();
        let mut done = 0;
        while done < blocks {
            let now = (blocks - done).min(each);
            if let Err(error) = launch(done, now) {
                // The same stream again takes itself away: what was launched before is launched once more.
                while done > 0 {
                    done -= each;
                    launch(done, each)?;
                }
                return Err(error);
            }
            done += now;
        }
        Ok(())
    }
}

impl Ctr {
    /// Makes a stream from the counter block `iv` on, on a queue (`&device` is its default one). The key has 16, 24 or
    /// 32 bytes.
    ///
    /// # Errors
    /// - [`Error::KeyLength`]: `key` has other than 16, 24 or 32 bytes.
    /// - [`Error::IvLength`]: `iv` has other than 16 bytes.
    /// - [`Error::Device`]: the device fails or has too little memory.
    pub fn new(queue: impl Into<Queue>, key: &[u8], iv: &[u8]) -> Result<Self> {
        Self::with_config(queue, key, iv, AesConfig::default())
    }

    /// Makes a stream with a configuration.
    ///
    /// # Errors
    /// - [`Error::KeyLength`]: `key` has other than 16, 24 or 32 bytes.
    /// - [`Error::IvLength`]: `iv` has other than 16 bytes.
    /// - [`Error::Method`]: the device has too little workgroup memory for the method.
    /// - [`Error::Device`]: the device fails or has too little memory.
    pub fn with_config(queue: impl Into<Queue>, key: &[u8], iv: &[u8], config: AesConfig) -> Result<Self> {
        Aes::with_config(queue, key, config)?.ctr(iv)
    }

    /// Sets the bits of the counter block that are the counter (by default all 128). The position stays. If the stream
    /// now ends before it, calls refuse all data until [`Ctr::seek`] goes back.
    #[must_use]
    pub fn with_counter(mut self, counter: Counter) -> Self {
        self.counter = counter;
        self
    }

    /// Returns the bits of the counter block that are the counter.
    pub fn counter(&self) -> Counter {
        self.counter
    }

    /// Moves the stream to `queue` for work on buffers, as [`Aes::on`] says. It takes the stream by value, since a
    /// second stream at the same position would repeat the keystream.
    #[must_use]
    pub fn on(mut self, queue: &Queue) -> Self {
        self.aes = self.aes.on(queue);
        self
    }

    /// Returns the keys. The stream uses key 0.
    pub fn aes(&self) -> &Aes {
        &self.aes
    }

    /// Returns the position of the next byte in the stream, in bytes from its start.
    pub fn position(&self) -> u128 {
        self.position
    }

    /// Returns the bytes that the stream has left; 0 if [`Ctr::with_counter`] made it end before its position.
    pub fn remaining(&self) -> u128 {
        self.counter.limit().saturating_sub(self.position)
    }

    /// Sets the position of the next byte in the stream, in bytes from its start.
    ///
    /// # Errors
    /// [`Error::Keystream`] for a position beyond the end of the stream; the position stays then.
    pub fn seek(&mut self, position: u128) -> Result<()> {
        let limit = self.counter.limit();
        if position > limit {
            return Err(Error::Keystream { position, len: 0, expected: limit });
        }
        self.position = position;
        Ok(())
    }

    /// XORs the stream onto a host slice and moves on by its length. The CPU works on slices shorter than
    /// [`Aes::cpu_threshold`]. Longer ones pass through the device in pieces, on several queues.
    ///
    /// # Errors
    /// Data and position stay as they were with each of these:
    /// - [`Error::Keystream`]: the stream has fewer bytes left.
    /// - [`Error::Device`]: the device fails or has too little memory.
    pub fn apply_host(&mut self, data: &mut [u8]) -> Result<()> {
        expect_keystream(self.position, data.len(), self.counter)?;
        let (counter, skip) = self.block_at(self.position);
        if self.aes.on_host(Mode::Ctr, data.len())? {
            cpu::ctr(self.aes.cipher(0), counter, self.counter, skip, data);
        } else {
            self.apply_in_pieces(data)?;
        }
        self.position += data.len() as u128;
        Ok(())
    }

    /// XORs the stream as [`Ctr::apply_host`] does, onto pinned memory of this device for both directions
    /// ([`Device::host_buffer`](evariste_backend::Device::host_buffer), [`Transfer::Both`]). The device reads and
    /// writes it directly, so that the bus works at full speed both ways at once.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::Keystream`]: the stream has fewer bytes left.
    /// - [`Error::Device`]: the memory is of another device or for uploads only.
    ///
    /// [`Error::Device`] if the device fails or has too little memory. If it fails in the middle, the data is lost and
    /// `data` is empty.
    ///
    /// [`Transfer::Both`]: evariste_backend::Transfer::Both
    pub fn apply_pinned(&mut self, data: &mut HostBuffer) -> Result<()> {
        expect_keystream(self.position, data.len(), self.counter)?;
        let (expected, actual) = (self.aes.device().info().id, data.device());
        if expected != actual {
            return Err(DeviceError::WrongDevice { what: "the data of a cipher", expected, actual }.into());
        }
        data.expect_download("the data of a cipher")?;
        let len = data.len();
        if self.aes.on_host(Mode::Ctr, len)? {
            self.apply_on_host(self.position, data);
        } else {
            pieces::for_len(&self.aes, len, BLOCK)?.run_pinned(data, |queue, piece, at, len| {
                self.clone().on(queue).apply_at(self.position + at as u128, piece.view_mut(..len)?)
            })?;
        }
        self.position += len as u128;
        Ok(())
    }

    /// XORs the stream onto device memory and moves on by its length. Queued: returns before the device is done. It
    /// works in place if the data's start in its buffer and the position are equal modulo 16, otherwise on a copy.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::Keystream`]: the stream has fewer bytes left.
    /// - [`Error::Device`]: data or the queue are of another device.
    ///
    /// [`Error::Device`] if the device fails or has no room for the copy. Data and position then stay as they were,
    /// unless the device fails again while the call undoes earlier launches.
    pub fn apply<'d>(&mut self, data: impl Into<ViewMut<'d, u8>>) -> Result<()> {
        let data = data.into();
        let len = data.len();
        self.apply_at(self.position, data)?;
        self.position += len as u128;
        Ok(())
    }

    /// XORs the stream as [`Ctr::apply`] does, from `position` of the stream on. The position of this stream stays.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::Keystream`]: the stream ends before the data does.
    /// - [`Error::Device`]: data or the queue are of another device.
    ///
    /// [`Error::Device`] if the device fails or has no room for a copy.
    pub fn apply_at<'d>(&self, position: u128, data: impl Into<ViewMut<'d, u8>>) -> Result<()> {
        let data = data.into();
        self.aes.own_queue()?;
        self.aes.expect_here(data.device())?;
        expect_keystream(position, data.len(), self.counter)?;
        let (counter, skip) = self.block_at(position);
        self.aes.aligned_or_undone(data, skip, |data| self.aes.ctr_aligned(data, skip, counter, self.counter))
    }

    /// XORs the stream from a position on onto a host slice, on the CPU.
    pub(crate) fn apply_on_host(&self, position: u128, data: &mut [u8]) {
        let (counter, skip) = self.block_at(position);
        cpu::ctr(self.aes.cipher(0), counter, self.counter, skip, data);
    }

    /// Refuses data of a length that the stream does not reach to.
    pub(crate) fn expect(&self, len: u64) -> Result<()> {
        expect_keystream(self.position, usize::try_from(len).unwrap_or(usize::MAX), self.counter)
    }

    pub(crate) fn advance(&mut self, len: u64) {
        self.position += u128::from(len);
    }

    /// The counter block at a position, and how many bytes of its stream come before it.
    fn block_at(&self, position: u128) -> ([u8; BLOCK], usize) {
        let counter = add_counter(self.iv, position / BLOCK as u128, self.counter);
        (counter, (position % BLOCK as u128) as usize)
    }

    fn apply_in_pieces(&self, data: &mut [u8]) -> Result<()> {
        let (counter, skip) = self.block_at(self.position);
        let head = if skip == 0 { 0 } else { data.len().min(BLOCK - skip) };
        let mut first = Zeroizing::new([0; BLOCK]);
        let first = &mut first[..head];
        first.copy_from_slice(&data[..head]);
        let ring = pieces::for_len(&self.aes, data.len(), BLOCK)?;
        let (next, _) = self.block_at(self.position + head as u128);
        let work = |queue: &Queue, piece: &mut Buffer<u8>, at: usize, len| {
            let counter = add_counter(next, (at / BLOCK) as u128, self.counter);
            self.aes.on(queue).ctr_aligned(piece.view_mut(..len)?, 0, counter, self.counter)
        };
        let mut done = 0;
        if let Err(error) = ring.run(&mut data[head..], work, |piece| done += piece.len()) {
            // The same stream again takes itself away.
            cpu::ctr(self.aes.cipher(0), next, self.counter, 0, &mut data[head..][..done]);
            return Err(error);
        }
        cpu::ctr(self.aes.cipher(0), counter, self.counter, skip, first);
        data[..head].copy_from_slice(first);
        Ok(())
    }
}

pub(crate) fn expect_keystream(position: u128, len: usize, counter: Counter) -> Result<()> {
    let limit = counter.limit();
    match position.checked_add(len as u128) {
        Some(end) if end <= limit => Ok(()),
        _ => Err(Error::Keystream { position, len: len as u64, expected: limit }),
    }
}

/// A block given as a slice.
pub(crate) fn block(what: &'static str, bytes: &[u8]) -> Result<[u8; BLOCK]> {
    bytes.try_into().map_err(|_| Error::IvLength { what, expected: "16", actual: bytes.len() })
}
