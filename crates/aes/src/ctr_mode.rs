use evariste_backend::{Arg, Buffer, Error as DeviceError, HostBuffer, Queue, Secrecy, ViewMut};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    Aes, Counter, Error, Mode, Result,
    batch::Batch,
    block::{BLOCK, add_counter},
    blocks::Work,
    copies::{tail, words},
    cpu,
    engine::key,
    kernels::CTR_RUN,
    keystream::Stream,
    params::CtrParams,
    ring,
};

/// Counter mode (NIST SP 800-38A, 6.5): a stream that is XORed onto data, from any position on. Encryption and decryption
/// are the same.
///
/// A counter block must never be used twice with one key: not in two streams, and not by seeking back to encrypt other
/// data. What this type can see it refuses: data beyond the end of the stream, where the counter would start again.
///
/// Data is authenticated by nothing: who changes a bit of it changes that bit of the plaintext. Use [`crate::Gcm`] unless
/// a protocol says otherwise.
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

    /// XORs onto each message the stream of its key and counter block.
    ///
    /// # Errors
    /// [`Error::Keystream`] for a message longer than a stream with this counter, [`Error::Alignment`] for one that does
    /// not start at a multiple of 16, [`Error::NoSuchKey`] for one whose key there is not, [`Error::Overlap`] for two that
    /// share bytes, [`Error::RepeatedKeystream`] for two that have equal keys and a counter block in common, and
    /// [`Error::Device`] for one that leaves `data` or for data on another device: with nothing written.
    /// [`Error::Device`] also if the device fails or has too little memory.
    pub fn ctr_batch<'d>(
        &self,
        data: impl Into<ViewMut<'d, u8>>,
        messages: &[Message],
        counter: Counter,
    ) -> Result<()> {
        let data = data.into();
        for message in messages {
            expect_stream(0, message.len, counter)?;
        }
        let batch = Batch::new(self, data.as_view(), &messages)?;
        let stream = |message: &Message| Stream {
            key: message.key,
            start: u128::from_be_bytes(message.iv),
            blocks: message.len.div_ceil(BLOCK) as u64,
        };
        self.expect_apart(messages.par_iter().map(stream), counter, Secrecy::Public)?;
        self.aligned(data, 0, |data| self.messages(Work::Ctr(counter), data, &batch))
    }

    /// XORs the keystream from byte `skip` of the block of `counter` on. But on the CPU the data must start `skip` bytes after a
    /// word.
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
        self.engine.ready.wait(self.queue())?;
        let (device, shape) = (&self.engine.device, self.engine.shape);
        let kernel = self.engine.ctr.get(device, || shape.ctr(device.info(), self.ciphers()))?;
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
            let args = &mut [Arg::write(part), key(&self.engine.schedule), Arg::read(&self.engine.tables)];
            // SAFETY: the words of the part are `blocks`, from byte `skip` of the first to `tail` of the last; schedule and tables
            // are of this kernel's shape.
            Ok(unsafe { kernel.launch(self.queue(), groups, &params, args) }?)
        };
        let each = self.engine.config.launch_blocks();
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

/// One message of a batch, in data that all messages share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The byte of the data where it starts: a multiple of 16.
    pub offset: usize,
    /// Its length in bytes.
    pub len: usize,
    /// The number of its key, from 0 on.
    pub key: usize,
    /// Its counter block or initialisation vector.
    pub iv: [u8; BLOCK],
}

impl Ctr {
    /// Makes a stream on a device with a key of 16, 24 or 32 bytes, from the counter block `iv` on.
    ///
    /// # Errors
    /// [`Error::KeyLength`] unless `key` has 16, 24 or 32 bytes, [`Error::IvLength`] unless `iv` has 16, [`Error::Device`]
    /// if the device fails or has too little memory.
    pub fn new(queue: impl Into<Queue>, key: &[u8], iv: &[u8]) -> Result<Self> {
        Aes::new(queue, key)?.ctr(iv)
    }

    /// Sets which bits of the counter block are the counter (all 128 unless set). The position stays: where the stream now
    /// ends before it, all data is refused until [`Ctr::seek`] goes back.
    #[must_use]
    pub fn counter(mut self, counter: Counter) -> Self {
        self.counter = counter;
        self
    }

    /// Returns which bits of the counter block are the counter.
    pub fn width(&self) -> Counter {
        self.counter
    }

    /// Gives the stream a queue of its own for data of the device, as [`Aes::on`] says. It is the same stream, which goes on: a
    /// second one at the same position would use parts of it twice.
    #[must_use]
    pub fn on(mut self, queue: &Queue) -> Self {
        self.aes = self.aes.on(queue);
        self
    }

    /// Returns the keys that it works with, of which it uses number 0.
    pub fn aes(&self) -> &Aes {
        &self.aes
    }

    /// Returns the position of the next byte in the stream, in bytes from its start.
    pub fn position(&self) -> u128 {
        self.position
    }

    /// Returns how many bytes the stream has left: none, too, where [`Ctr::counter`] made it end before its position.
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

    /// XORs the stream onto a host slice and moves on by its length. Slices shorter than [`Aes::crossover`] are left to the
    /// CPU; long ones pass through the device in pieces, on several queues.
    ///
    /// # Errors
    /// [`Error::Keystream`] if the stream has fewer bytes left, [`Error::Device`] if the device fails or has too little
    /// memory: data and position are as they were then.
    pub fn apply(&mut self, data: &mut [u8]) -> Result<()> {
        expect_stream(self.position, data.len(), self.counter)?;
        let (counter, skip) = self.block_at(self.position);
        if self.aes.on_host(Mode::Ctr, data.len())? {
            cpu::ctr(self.aes.cipher(0), counter, self.counter, skip, data);
        } else {
            self.apply_in_pieces(data)?;
        }
        self.position += data.len() as u128;
        Ok(())
    }

    /// Does what [`Ctr::apply`] does, on pinned memory of this device, for both directions ([`Device::host_buffer`](evariste_backend::Device::host_buffer),
    /// [`Transfer::Both`]): the device reads and writes it itself, so that a bus works at full speed both ways at once.
    ///
    /// # Errors
    /// [`Error::Keystream`] if the stream has fewer bytes left, [`Error::Device`] for memory of another device or for
    /// uploads only, with nothing written. [`Error::Device`] also if the device fails or has too little memory: where that
    /// is in the middle, the data is lost and `data` is empty.
    ///
    /// [`Transfer::Both`]: evariste_backend::Transfer::Both
    pub fn apply_pinned(&mut self, data: &mut HostBuffer) -> Result<()> {
        expect_stream(self.position, data.len(), self.counter)?;
        let (expected, actual) = (self.aes.device().info().id, data.device());
        if expected != actual {
            return Err(DeviceError::WrongDevice { what: "the data of a cipher", expected, actual }.into());
        }
        data.expect_download("the data of a cipher")?;
        let len = data.len();
        if self.aes.on_host(Mode::Ctr, len)? {
            self.apply_on_host(self.position, data);
        } else {
            ring::for_len(&self.aes, len, BLOCK)?.run_pinned(data, |queue, piece, at, len| {
                self.clone().on(queue).apply_at(self.position + at as u128, piece.view_mut(..len)?)
            })?;
        }
        self.position += len as u128;
        Ok(())
    }

    /// XORs the stream onto data of the device and moves on by its length. Queued: returns before it is done. Work is done in place
    /// where the data starts as far from a multiple of 16 in its buffer as the position is from one, else on a copy.
    ///
    /// # Errors
    /// [`Error::Keystream`] if the stream has fewer bytes left, [`Error::Device`] for data on another device: with nothing
    /// written. [`Error::Device`] also if the device fails or has no room for the copy: data and position are as they were
    /// then, unless it fails again when launches before are taken back.
    pub fn apply_buffer<'d>(&mut self, data: impl Into<ViewMut<'d, u8>>) -> Result<()> {
        let data = data.into();
        let len = data.len();
        self.apply_at(self.position, data)?;
        self.position += len as u128;
        Ok(())
    }

    /// Does what [`Ctr::apply_buffer`] does, from a given position of the stream on. The position of this stream stays.
    ///
    /// # Errors
    /// [`Error::Keystream`] if the stream ends before the data does, [`Error::Device`] for data on another device: with
    /// nothing written. [`Error::Device`] also if the device fails or has no room for a copy.
    pub fn apply_at<'d>(&self, position: u128, data: impl Into<ViewMut<'d, u8>>) -> Result<()> {
        let data = data.into();
        self.aes.expect_here(data.device())?;
        expect_stream(position, data.len(), self.counter)?;
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
        expect_stream(self.position, usize::try_from(len).unwrap_or(usize::MAX), self.counter)
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
        let ring = ring::for_len(&self.aes, data.len(), BLOCK)?;
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

pub(crate) fn expect_stream(position: u128, len: usize, counter: Counter) -> Result<()> {
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
