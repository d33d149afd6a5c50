use evariste_backend::{Buffer, Queue, ViewMut};

#[cfg(doc)]
use crate::error::Error;
use crate::{
    batch::{Batch, Message},
    block::BLOCK,
    block_modes::Work,
    cbc::expect_blocks,
    config::Mode,
    cpu,
    error::Result,
    params::Direction,
    pieces,
    plan::Aes,
};

/// The bare block cipher, ECB (NIST SP 800-38A, 6.1). Equal blocks give equal blocks, so that patterns of the data stay
/// visible. Build modes with it, but do not encrypt with it.
#[derive(Clone, Debug)]
pub struct Ecb {
    aes: Aes,
}

impl Aes {
    /// Makes the bare block cipher with key 0.
    pub fn ecb(&self) -> Ecb {
        Ecb { aes: self.clone() }
    }

    /// Encrypts each message with its key. Initialisation vectors do nothing. Queued: returns before the device is
    /// done.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::Alignment`]: a message does not start at a multiple of 16.
    /// - [`Error::NoSuchKey`]: a message names a key that the plan lacks.
    /// - [`Error::Overlap`]: two messages share bytes.
    /// - [`Error::PartialBlock`]: a message is not whole blocks.
    /// - [`Error::Device`]: a message leaves `data`, or data or the queue are of another device.
    ///
    /// [`Error::Device`] if the device fails or has too little memory.
    pub fn ecb_encrypt_batch<'d>(&self, data: impl Into<ViewMut<'d, u8>>, messages: &[Message]) -> Result<()> {
        self.ecb_batch(data.into(), messages, Direction::Encrypt)
    }

    /// Decrypts each message with its key. Initialisation vectors do nothing. Queued: returns before the device is
    /// done.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::Alignment`]: a message does not start at a multiple of 16.
    /// - [`Error::NoSuchKey`]: a message names a key that the plan lacks.
    /// - [`Error::Overlap`]: two messages share bytes.
    /// - [`Error::PartialBlock`]: a message is not whole blocks.
    /// - [`Error::Device`]: a message leaves `data`, or data or the queue are of another device.
    ///
    /// [`Error::Device`] if the device fails or has too little memory.
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
    /// Returns the same cipher for work on `queue`, as [`Aes::on`] says.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        self.aes.on(queue).ecb()
    }

    /// Encrypts a host slice of whole blocks.
    ///
    /// # Errors
    /// - [`Error::PartialBlock`]: the length of `data` is no multiple of 16.
    /// - [`Error::Device`]: the device fails or has too little memory. Some pieces of `data` may be encrypted then.
    pub fn encrypt_host(&self, data: &mut [u8]) -> Result<()> {
        self.on_slice(data, Direction::Encrypt)
    }

    /// Decrypts a host slice of whole blocks.
    ///
    /// # Errors
    /// - [`Error::PartialBlock`]: the length of `data` is no multiple of 16.
    /// - [`Error::Device`]: the device fails or has too little memory. Some pieces of `data` may be decrypted then.
    pub fn decrypt_host(&self, data: &mut [u8]) -> Result<()> {
        self.on_slice(data, Direction::Decrypt)
    }

    /// Encrypts whole blocks of device memory. Queued: returns before the device is done.
    ///
    /// # Errors
    /// - [`Error::PartialBlock`]: the length of `data` is no multiple of 16.
    /// - [`Error::Device`]: data or the queue are of another device, or the device fails or has too little memory.
    pub fn encrypt<'d>(&self, data: impl Into<ViewMut<'d, u8>>) -> Result<()> {
        self.on_view(data.into(), Direction::Encrypt)
    }

    /// Decrypts whole blocks of device memory. Queued: returns before the device is done.
    ///
    /// # Errors
    /// - [`Error::PartialBlock`]: the length of `data` is no multiple of 16.
    /// - [`Error::Device`]: data or the queue are of another device, or the device fails or has too little memory.
    pub fn decrypt<'d>(&self, data: impl Into<ViewMut<'d, u8>>) -> Result<()> {
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
        pieces::for_len(&self.aes, data.len(), BLOCK)?.run(data, work, |_| ())
    }

    fn on_view(&self, data: ViewMut<'_, u8>, direction: Direction) -> Result<()> {
        expect_blocks(data.len())?;
        self.aes.own_queue()?;
        self.aes.expect_here(data.device())?;
        self.aes.aligned(data, 0, |data| self.aes.message(Work::Ecb(direction), 0, [0; BLOCK], data))
    }
}
