use std::{iter, ops::Range};

use evariste_backend::{Arg, Buffer, Queue};

use crate::{
    Aes, Error, Message, Mode, Result,
    batch::{Batch, Next, Prepared},
    block::BLOCK,
    blocks::Work,
    cpu,
    kernels::{PREVIOUS_UNITS, THREADS},
    params::{Direction, PreviousParams, SerialMode, SerialParams},
    ring,
};

/// Blocks that one launch chains in CBC encryption, for the same reason, and since emulated GPUs end long loops.
const MAX_CHAIN: u32 = 1 << 11;

/// Cipher block chaining (NIST SP 800-38A, 6.2), without padding. Decryption works on all blocks at once; encryption goes
/// block after block, so that only batches of messages ([`Aes::cbc_encrypt_batch`]) keep a device busy.
///
/// CBC authenticates nothing, and padding on top of it must not tell an attacker whether it is right. It is here for what
/// exists already.
#[derive(Clone, Debug)]
pub struct Cbc {
    aes: Aes,
}

impl Aes {
    /// Makes CBC with key 0.
    pub fn cbc(&self) -> Cbc {
        Cbc { aes: self.clone() }
    }

    /// Encrypts each message with its key and initialisation vector, one thread a message.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] for a message that is not whole blocks, [`Error::Alignment`] for one that does not start at
    /// a multiple of 16, [`Error::NoSuchKey`] for one whose key there is not, [`Error::Overlap`] for two that share bytes,
    /// and [`Error::Device`] for one that leaves `data` or for a buffer of another device: with nothing written.
    /// [`Error::Device`] also if the device fails or has too little memory.
    pub fn cbc_encrypt_batch(&self, data: &mut Buffer<u8>, messages: &[Message]) -> Result<()> {
        let batch = self.cbc_messages(data, &messages)?;
        self.cbc_encrypt(data, &batch)
    }

    /// Decrypts each message with its key and initialisation vector.
    ///
    /// # Errors
    /// Returns the errors of [`Aes::cbc_encrypt_batch`], for the same reasons.
    pub fn cbc_decrypt_batch(&self, data: &mut Buffer<u8>, messages: &[Message]) -> Result<()> {
        let batch = self.cbc_messages(data, &messages)?;
        self.messages(None, Work::CbcDecrypt, data, &batch)
    }

    fn cbc_messages<'a>(&self, data: &Buffer<u8>, messages: &'a &[Message]) -> Result<Batch<'a>> {
        messages.iter().try_for_each(|message| expect_blocks(message.len))?;
        Batch::new(self, data, messages)
    }

    /// CBC encryption of messages, each by one thread.
    fn cbc_encrypt(&self, data: &mut Buffer<u8>, batch: &Batch<'_>) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let (mode, direction) = (SerialMode::CbcEncrypt, Direction::Encrypt);
        let slot = &self.0.serial[mode as usize][direction as usize];
        let kernel = slot.get(&self.0.device, || self.0.shape.serial(mode, direction, self.ciphers()))?;
        for Prepared { count, longest, messages, .. } in batch.prepare(self, None, |_, _| Next::Chained)? {
            let count = count as u32;
            let groups = self.groups(count.into(), THREADS.into(), THREADS);
            for first in (0..longest as u32).step_by(MAX_CHAIN as usize) {
                let params = SerialParams { count, first, blocks: MAX_CHAIN, ..SerialParams::default() };
                let (schedule, tables) = (&self.0.schedule, &self.0.tables);
                let args = &mut [Arg::write(&mut *data), Arg::read(&messages), Arg::read(schedule), Arg::read(tables)];
                // SAFETY: every message lies in the data and names a key, as `Batch` checks.
                unsafe { kernel.launch(None, groups, &params, args) }?;
            }
        }
        Ok(())
    }

    pub(crate) fn previous(&self, queue: Option<&Queue>, data: &Buffer<u8>, part: &Prepared) -> Result<Buffer<u32>> {
        let tiles = part.units.div_ceil(PREVIOUS_UNITS);
        let mut previous = self.0.device.alloc_with::<u32>(4 * tiles as usize, data.secrecy())?;
        let kernel = self.0.previous.get(&self.0.device, || self.0.shape.previous())?;
        let params = PreviousParams { tiles, messages: part.count as u32, tile_units: PREVIOUS_UNITS };
        let args = &mut [Arg::read(data), Arg::read(&part.messages), Arg::write(&mut previous)];
        // SAFETY: a thread for each of `tiles` entries; unit tile · PREVIOUS_UNITS belongs to a message within the data, and what is
        // chained has a block before it.
        unsafe { kernel.launch(queue, tiles.div_ceil(THREADS).into(), &params, args) }?;
        Ok(previous)
    }
}

impl Cbc {
    /// Returns the keys that it works with, of which it uses number 0.
    pub fn aes(&self) -> &Aes {
        &self.aes
    }

    /// Encrypts a host slice of whole blocks. One message has no parallelism: the CPU does it.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] unless the length of `data` is a multiple of 16.
    pub fn encrypt(&self, iv: &[u8; BLOCK], data: &mut [u8]) -> Result<()> {
        expect_blocks(data.len())?;
        cpu::cbc_encrypt(self.aes.cipher(0), *iv, data);
        Ok(())
    }

    /// Decrypts a host slice of whole blocks. Slices shorter than [`Aes::crossover`] are left to the CPU; long ones pass
    /// through the device in pieces, on several queues.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] unless the length of `data` is a multiple of 16. [`Error::Device`] if the device fails or
    /// has too little memory: some pieces of `data` may be decrypted then.
    pub fn decrypt(&self, iv: &[u8; BLOCK], data: &mut [u8]) -> Result<()> {
        expect_blocks(data.len())?;
        if self.aes.on_host(Mode::Cbc, data.len())? {
            cpu::cbc_decrypt(self.aes.cipher(0), *iv, data);
            return Ok(());
        }
        let ring = ring::for_len(&self.aes, data.len(), BLOCK)?;
        // What comes before each piece, which the piece before overwrites.
        let ends = data.chunks_exact(ring.piece_bytes()).filter_map(|piece| piece.last_chunk().copied());
        let before: Vec<[u8; BLOCK]> = iter::once(*iv).chain(ends).collect();
        let piece_bytes = ring.piece_bytes();
        let work = |queue: &Queue, piece: &mut Buffer<u8>, at: usize, len| {
            let message = one(0..len, &before[at / piece_bytes]);
            let batch = Batch::new(&self.aes, piece, &message)?;
            self.aes.messages(Some(queue), Work::CbcDecrypt, piece, &batch)
        };
        ring.run(data, work, |_| ())
    }

    /// Encrypts a range of bytes of a buffer, whole blocks, by one thread. Queued: returns before it is done.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] unless the length of the range is a multiple of 16. [`Error::Device`] for a range that
    /// leaves `data`, for a buffer of another device, or if the device fails or has too little memory.
    pub fn encrypt_range(&self, iv: &[u8; BLOCK], data: &mut Buffer<u8>, range: Range<usize>) -> Result<()> {
        self.on_range(iv, data, range, |data, batch| self.aes.cbc_encrypt(data, batch))
    }

    /// Decrypts a range of bytes of a buffer, whole blocks. Queued: returns before it is done.
    ///
    /// # Errors
    /// Returns the errors of [`Cbc::encrypt_range`], for the same reasons.
    pub fn decrypt_range(&self, iv: &[u8; BLOCK], data: &mut Buffer<u8>, range: Range<usize>) -> Result<()> {
        self.on_range(iv, data, range, |data, batch| self.aes.messages(None, Work::CbcDecrypt, data, batch))
    }

    fn on_range(
        &self,
        iv: &[u8; BLOCK],
        data: &mut Buffer<u8>,
        range: Range<usize>,
        work: impl FnOnce(&mut Buffer<u8>, &Batch<'_>) -> Result<()>,
    ) -> Result<()> {
        expect_blocks(range.len())?;
        self.aes.expect_range(data, &range)?;
        let len = range.len();
        self.aes.aligned(None, data, range, 0, |data, offset| {
            let message = one(offset..offset + len, iv);
            let batch = Batch::new(&self.aes, data, &message)?;
            work(data, &batch)
        })
    }
}

/// A message with key 0.
fn one(range: Range<usize>, iv: &[u8; BLOCK]) -> Message {
    Message { offset: range.start, len: range.len(), key: 0, iv: *iv }
}

pub(crate) fn expect_blocks(len: usize) -> Result<()> {
    match len % BLOCK {
        0 => Ok(()),
        _ => Err(Error::PartialBlock { expected: BLOCK, actual: len }),
    }
}
