use evariste_backend::{Buffer, Queue, ViewMut};

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
    /// for two that share bytes, and [`crate::Error::Device`] for one that leaves `data` or for data on another device:
    /// with nothing written. [`crate::Error::Device`] also if the device fails or has too little memory.
    pub fn ecb_encrypt_batch<'d>(&self, data: impl Into<ViewMut<'d, u8>>, messages: &[Message]) -> Result<()> {
        self.ecb_batch(data.into(), messages, Direction::Encrypt)
    }

    /// Decrypts each message, of whole blocks, with its key. Initialisation vectors do nothing.
    ///
    /// # Errors
    /// Returns the errors of [`Aes::ecb_encrypt_batch`], for the same reasons.
    pub fn ecb_decrypt_batch<'d>(&self, data: impl Into<ViewMut<'d, u8>>, messages: &[Message]) -> Result<()> {
        self.ecb_batch(data.into(), messages, Direction::Decrypt)
    }

    fn ecb_batch(&self, data: ViewMut<'_, u8>, messages: &[Message], direction: Direction) -> Result<()> {
        messages.iter().try_for_each(|message| expect_blocks(message.len))?;
        let batch = Batch::new(self, data.as_view(), &messages)?;
        self.aligned(data, 0, |data| self.messages(Work::Ecb(direction), data, &batch))
    }
}

impl Ecb {
    /// Gives the same cipher on a queue of its own, as [`Aes::on`] says.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        self.aes.on(queue).ecb()
    }

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

    /// Encrypts data of the device, whole blocks. Queued: returns before it is done.
    ///
    /// # Errors
    /// [`crate::Error::PartialBlock`] unless the length of `data` is a multiple of 16. [`crate::Error::Device`] for data on
    /// another device, or if the device fails or has too little memory.
    pub fn encrypt_buffer<'d>(&self, data: impl Into<ViewMut<'d, u8>>) -> Result<()> {
        self.on_view(data.into(), Direction::Encrypt)
    }

    /// Decrypts data of the device, whole blocks. Queued: returns before it is done.
    ///
    /// # Errors
    /// Returns the errors of [`Ecb::encrypt_buffer`], for the same reasons.
    pub fn decrypt_buffer<'d>(&self, data: impl Into<ViewMut<'d, u8>>) -> Result<()> {
        self.on_view(data.into(), Direction::Decrypt)
    }

    fn on_slice(&self, data: &mut [u8], direction: Direction) -> Result<()> {
        expect_blocks(data.len())?;
        if self.aes.on_host(Mode::Cbc, data.len())? {
            cpu::ecb(self.aes.cipher(0), direction, data);
            return Ok(());
        }
        let work =
            |queue: &Queue, piece: &mut Buffer<u8>, _, len| self.on(queue).on_view(piece.view_mut(..len)?, direction);
        ring::for_len(&self.aes, data.len(), BLOCK)?.run(data, work, |_| ())
    }

    fn on_view(&self, data: ViewMut<'_, u8>, direction: Direction) -> Result<()> {
        expect_blocks(data.len())?;
        self.aes.expect_here(data.device())?;
        self.aes.aligned(data, 0, |data| self.aes.message(Work::Ecb(direction), 0, [0; BLOCK], data))
    }
}
