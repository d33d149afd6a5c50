use std::iter;

use evariste_backend::{
    Buffer, Queue, View, ViewMut,
    author::{Arg, Kernel},
};

use crate::{
    batch::{Batch, Message, Next, Prepared},
    block::BLOCK,
    block_modes::Work,
    config::Mode,
    cpu,
    error::{Error, Result},
    kernels::{CHAINED_UNITS, THREADS},
    params::{ChainedParams, Direction, SerialMode, SerialParams},
    pieces,
    plan::{Aes, key},
};

/// Blocks that one launch chains in CBC encryption: systems end launches that take long, and emulated GPUs end long
/// loops.
const MAX_CHAIN: u32 = 1 << 11;

/// Cipher block chaining (NIST SP 800-38A, 6.2), without padding. Decryption works on all blocks at once. Encryption
/// takes one block after the other, so that only batches of messages ([`Aes::cbc_encrypt_batch`]) keep a device busy.
///
/// CBC authenticates nothing. Padding on top of it must not reveal to an attacker whether it is right. Use CBC for
/// existing protocols only.
#[derive(Clone, Debug)]
pub struct Cbc {
    aes: Aes,
}

impl Aes {
    /// Makes CBC with key 0.
    pub fn cbc(&self) -> Cbc {
        Cbc { aes: self.clone() }
    }

    /// Encrypts each message with its key and initialisation vector, one thread a message. Queued: returns before the
    /// device is done.
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
    pub fn cbc_encrypt_batch<'d>(&self, data: impl Into<ViewMut<'d, u8>>, messages: &[Message]) -> Result<()> {
        let data = data.into();
        let batch = self.cbc_messages(data.as_view(), &messages)?;
        self.aligned(data, 0, |data| self.cbc_encrypt(data, &batch))
    }

    /// Decrypts each message with its key and initialisation vector. Queued: returns before the device is done.
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
    pub fn cbc_decrypt_batch<'d>(&self, data: impl Into<ViewMut<'d, u8>>, messages: &[Message]) -> Result<()> {
        let data = data.into();
        let batch = self.cbc_messages(data.as_view(), &messages)?;
        self.aligned(data, 0, |data| self.messages(Work::CbcDecrypt, data, &batch))
    }

    fn cbc_messages<'a>(&self, data: View<'_, u8>, messages: &'a &[Message]) -> Result<Batch<'a>> {
        messages.iter().try_for_each(|message| expect_blocks(message.len))?;
        Batch::new(self, data, messages)
    }

    fn cbc_encrypt_kernel(&self) -> Result<&Kernel<SerialParams>> {
        let (mode, direction) = (SerialMode::CbcEncrypt, Direction::Encrypt);
        let slot = &self.plan.serial[mode as usize][direction as usize];
        Ok(slot.get(&self.plan.device, || self.plan.shape.serial(mode, direction, self.ciphers()))?)
    }

    /// CBC encryption of messages, each by one thread.
    fn cbc_encrypt(&self, mut data: ViewMut<'_, u8>, batch: &Batch<'_>) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        self.plan.ready.wait(self.queue())?;
        let (kernel, schedule, tables) = (self.cbc_encrypt_kernel()?, &self.plan.schedule, &self.plan.tables);
        for Prepared { count, longest, messages, .. } in batch.prepare(self, |_, _| Next::Chained)? {
            let count = count as u32;
            let groups = self.groups(count.into(), THREADS.into(), THREADS);
            for first in (0..longest as u32).step_by(MAX_CHAIN as usize) {
                let params = SerialParams { count, first, blocks: MAX_CHAIN, ..SerialParams::default() };
                let args = &mut [Arg::write(data.reborrow()), Arg::read(&messages), key(schedule), Arg::read(tables)];
                // SAFETY: every message lies in the data and names a key, as `Batch` checks.
                unsafe { kernel.launch(self.queue(), groups, &params, args) }?;
            }
        }
        Ok(())
    }

    /// CBC encryption of one message with key 0 that is all of the data.
    fn cbc_encrypt_one(&self, iv: &[u8; BLOCK], data: ViewMut<'_, u8>) -> Result<()> {
        if !self.whole_launches() {
            let message = Message { offset: 0, len: data.len(), key: 0, iv: *iv };
            let batch = Batch::new(self, data.as_view(), &message)?;
            return self.cbc_encrypt(data, &batch);
        }
        let (kernel, schedule, tables) = (self.cbc_encrypt_kernel()?, &self.plan.schedule, &self.plan.tables);
        let params = SerialParams { iv: bytemuck::cast(*iv), ..SerialParams::default() };
        // There are no messages: the tables' first words stand in for them, unread.
        let args = &mut [Arg::write(data), Arg::read(tables), key(schedule), Arg::read(tables)];
        // SAFETY: the body for the CPU takes the data as it is, and key 0.
        Ok(unsafe { kernel.launch(self.queue(), 1, &params, args) }?)
    }

    pub(crate) fn chained_blocks(&self, data: View<'_, u8>, part: &Prepared) -> Result<Buffer<u32>> {
        let tiles = part.units.div_ceil(CHAINED_UNITS);
        let mut previous = self.plan.device.alloc_with::<u32>(4 * tiles as usize, data.secrecy())?;
        let kernel = self.plan.chained.get(&self.plan.device, || self.plan.shape.chained())?;
        let params = ChainedParams { tiles, messages: part.count as u32, tile_units: CHAINED_UNITS };
        let args = &mut [Arg::read(data), Arg::read(&part.messages), Arg::write(&mut previous)];
        // SAFETY: a thread for each of `tiles` entries; unit tile · CHAINED_UNITS belongs to a message within the data,
        // and what is chained has a block before it.
        unsafe { kernel.launch(self.queue(), tiles.div_ceil(THREADS).into(), &params, args) }?;
        Ok(previous)
    }
}

impl Cbc {
    /// Returns the same mode for work on `queue`, as [`Aes::on`] says.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        self.aes.on(queue).cbc()
    }

    /// Returns the keys. The mode uses key 0.
    pub fn aes(&self) -> &Aes {
        &self.aes
    }

    /// Encrypts a host slice of whole blocks, on the CPU: one message has no parallelism.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] unless the length of `data` is a multiple of 16.
    pub fn encrypt_host(&self, iv: &[u8; BLOCK], data: &mut [u8]) -> Result<()> {
        expect_blocks(data.len())?;
        self.aes.own_queue()?;
        cpu::cbc_encrypt(self.aes.cipher(0), *iv, data);
        Ok(())
    }

    /// Decrypts a host slice of whole blocks. The CPU works on slices shorter than [`Aes::cpu_threshold`]. Longer ones
    /// pass through the device in pieces, on several queues.
    ///
    /// # Errors
    /// - [`Error::PartialBlock`]: the length of `data` is no multiple of 16.
    /// - [`Error::Device`]: the device fails or has too little memory. Some pieces of `data` may be decrypted then.
    pub fn decrypt_host(&self, iv: &[u8; BLOCK], data: &mut [u8]) -> Result<()> {
        expect_blocks(data.len())?;
        if self.aes.on_host(Mode::Cbc, data.len())? {
            cpu::cbc_decrypt(self.aes.cipher(0), *iv, data);
            return Ok(());
        }
        let ring = pieces::for_len(&self.aes, data.len(), BLOCK)?;
        // What comes before each piece, which the piece before overwrites.
        let ends = data.chunks_exact(ring.piece_bytes()).filter_map(|piece| piece.last_chunk().copied());
        let before: Vec<[u8; BLOCK]> = iter::once(*iv).chain(ends).collect();
        let piece_bytes = ring.piece_bytes();
        let work = |queue: &Queue, piece: &mut Buffer<u8>, at: usize, len| {
            let iv = before[at / piece_bytes];
            self.aes.on(queue).message(Work::CbcDecrypt, 0, iv, piece.view_mut(..len)?)
        };
        ring.run(data, work, |_| ())
    }

    /// Encrypts whole blocks of device memory, by one thread. Queued: returns before the device is done.
    ///
    /// # Errors
    /// - [`Error::PartialBlock`]: the length of `data` is no multiple of 16.
    /// - [`Error::Device`]: data or the queue are of another device, or the device fails or has too little memory.
    pub fn encrypt<'d>(&self, iv: &[u8; BLOCK], data: impl Into<ViewMut<'d, u8>>) -> Result<()> {
        self.on_view(data.into(), |data| self.aes.cbc_encrypt_one(iv, data))
    }

    /// Decrypts whole blocks of device memory. Queued: returns before the device is done.
    ///
    /// # Errors
    /// - [`Error::PartialBlock`]: the length of `data` is no multiple of 16.
    /// - [`Error::Device`]: data or the queue are of another device, or the device fails or has too little memory.
    pub fn decrypt<'d>(&self, iv: &[u8; BLOCK], data: impl Into<ViewMut<'d, u8>>) -> Result<()> {
        self.on_view(data.into(), |data| self.aes.message(Work::CbcDecrypt, 0, *iv, data))
    }

    fn on_view(&self, data: ViewMut<'_, u8>, work: impl FnOnce(ViewMut<'_, u8>) -> Result<()>) -> Result<()> {
        expect_blocks(data.len())?;
        self.aes.own_queue()?;
        self.aes.expect_here(data.device())?;
        self.aes.aligned(data, 0, work)
    }
}

pub(crate) fn expect_blocks(len: usize) -> Result<()> {
    match len % BLOCK {
        0 => Ok(()),
        _ => Err(Error::PartialBlock { expected: BLOCK, actual: len }),
    }
}
