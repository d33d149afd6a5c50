use std::ops::Range;

use evariste_backend::{Buffer, Queue};

use crate::{
    Aes, Message, Mode, Result, batch::Batch, block::BLOCK, blocks::Work, cbc::expect_blocks, cpu, params::Direction,
    ring,
};

/// The bare block cipher (NIST SP 800-38A, 6.1): equal blocks give equal blocks, so that patterns of the data stay visible.
/// A part for building modes, not a way of encrypting.
#[derive(Clone, Debug)]
pub struct Ecb {
    aes: Aes,
}

impl Aes {
    /// Makes the bare block cipher with key 0.
    pub fn ecb(&self) -> Ecb {
        Ecb { aes: self.clone() }
    }

    /// Encrypts each message, of whole blocks, with its key. Initialisation vectors do nothing.
    ///
    /// # Errors
    /// [`crate::Error::PartialBlock`] for a message that is not whole blocks, [`crate::Error::Alignment`] for one that does
    /// not start at a multiple of 16, [`crate::Error::NoSuchKey`] for one whose key there is not, [`crate::Error::Overlap`]
    /// for two that share bytes, and [`crate::Error::Device`] for one that leaves `data` or for a buffer of another device:
    /// with nothing written. [`crate::Error::Device`] also if the device fails or has too little memory.
    pub fn ecb_encrypt_batch(&self, data: &mut Buffer<u8>, messages: &[Message]) -> Result<()> {
        self.ecb_batch(data, messages, Direction::Encrypt)
    }

    /// Decrypts each message, of whole blocks, with its key. Initialisation vectors do nothing.
    ///
    /// # Errors
    /// Returns the errors of [`Aes::ecb_encrypt_batch`], for the same reasons.
    pub fn ecb_decrypt_batch(&self, data: &mut Buffer<u8>, messages: &[Message]) -> Result<()> {
        self.ecb_batch(data, messages, Direction::Decrypt)
    }

    fn ecb_batch(&self, data: &mut Buffer<u8>, messages: &[Message], direction: Direction) -> Result<()> {
        messages.iter().try_for_each(|message| expect_blocks(message.len))?;
        let batch = Batch::new(self, data, &messages)?;
        self.messages(None, Work::Ecb(direction), data, &batch)
    }
}

impl Ecb {
    /// Encrypts a host slice of whole blocks.
    ///
    /// # Errors
    /// [`crate::Error::PartialBlock`] unless the length of `data` is a multiple of 16. [`crate::Error::Device`] if the
    /// device fails or has too little memory: some pieces of `data` may be encrypted then.
    pub fn encrypt(&self, data: &mut [u8]) -> Result<()> {
        self.on_slice(data, Direction::Encrypt)
    }

    /// Decrypts a host slice of whole blocks.
    ///
    /// # Errors
    /// Returns the errors of [`Ecb::encrypt`], for the same reasons.
    pub fn decrypt(&self, data: &mut [u8]) -> Result<()> {
        self.on_slice(data, Direction::Decrypt)
    }

    /// Encrypts a range of bytes of a buffer, whole blocks. Queued: returns before it is done.
    ///
    /// # Errors
    /// [`crate::Error::PartialBlock`] unless the length of the range is a multiple of 16. [`crate::Error::Device`] for a
    /// range that leaves `data`, for a buffer of another device, or if the device fails or has too little memory.
    pub fn encrypt_range(&self, data: &mut Buffer<u8>, range: Range<usize>) -> Result<()> {
        self.on_range(data, range, Direction::Encrypt)
    }

    /// Decrypts a range of bytes of a buffer, whole blocks. Queued: returns before it is done.
    ///
    /// # Errors
    /// Returns the errors of [`Ecb::encrypt_range`], for the same reasons.
    pub fn decrypt_range(&self, data: &mut Buffer<u8>, range: Range<usize>) -> Result<()> {
        self.on_range(data, range, Direction::Decrypt)
    }

    fn on_slice(&self, data: &mut [u8], direction: Direction) -> Result<()> {
        expect_blocks(data.len())?;
        if self.aes.on_host(Mode::Cbc, data.len())? {
            cpu::ecb(self.aes.cipher(0), direction, data);
            return Ok(());
        }
        let work = |queue: &Queue, piece: &mut Buffer<u8>, _, len| self.run(Some(queue), piece, 0, len, direction);
        ring::for_len(&self.aes, data.len(), BLOCK)?.run(data, work, |_| ())
    }

    fn on_range(&self, data: &mut Buffer<u8>, range: Range<usize>, direction: Direction) -> Result<()> {
        expect_blocks(range.len())?;
        self.aes.expect_range(data, &range)?;
        let len = range.len();
        self.aes.aligned(None, data, range, 0, |data, offset| self.run(None, data, offset, len, direction))
    }

    fn run(
        &self,
        queue: Option<&Queue>,
        data: &mut Buffer<u8>,
        offset: usize,
        len: usize,
        direction: Direction,
    ) -> Result<()> {
        let message = Message { offset, len, key: 0, iv: [0; BLOCK] };
        let batch = Batch::new(&self.aes, data, &message)?;
        self.aes.messages(queue, Work::Ecb(direction), data, &batch)
    }
}
