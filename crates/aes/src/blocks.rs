//! Modes whose blocks are independent, over messages.

use evariste_backend::{Arg, Buffer, Kernel, Queue};

use crate::{
    Aes, Counter, Result,
    batch::{Batch, Next, Prepared},
    block::add_counter,
    params::{BlockMode, BlockParams, Direction},
};

/// What is done to each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Each block on its own.
    Ecb(Direction),
    /// Decryption in CBC.
    CbcDecrypt,
    /// The keystream is XORed on.
    Ctr(Counter),
    /// Blocks become the encrypted numbers from the initialisation vector's on.
    Tweak,
}

impl Work {
    fn mode(self) -> BlockMode {
        match self {
            Work::Ecb(_) => BlockMode::Ecb,
            Work::CbcDecrypt => BlockMode::Cbc,
            Work::Ctr(_) => BlockMode::Ctr,
            Work::Tweak => BlockMode::Tweak,
        }
    }

    fn direction(self) -> Direction {
        match self {
            Work::Ecb(direction) => direction,
            Work::CbcDecrypt => Direction::Decrypt,
            Work::Ctr(_) | Work::Tweak => Direction::Encrypt,
        }
    }
}

impl Aes {
    /// A mode of independent blocks over messages of this device's buffer `data`.
    pub(crate) fn messages(
        &self,
        queue: Option<&Queue>,
        work: Work,
        data: &mut Buffer<u8>,
        batch: &Batch<'_>,
    ) -> Result<()> {
        let parts = self.prepare(queue, work, batch)?;
        self.run(queue, work, data, &parts)
    }

    /// The launches of a mode over messages, with what they read of them on the device.
    pub(crate) fn prepare(&self, queue: Option<&Queue>, work: Work, batch: &Batch<'_>) -> Result<Vec<Prepared>> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut parts = batch.prepare(self, queue, |iv, blocks| match work {
            Work::Ctr(width) => Next::Iv(add_counter(iv, blocks.into(), width)),
            Work::Tweak => Next::Iv(u128::from_le_bytes(iv).wrapping_add(blocks.into()).to_le_bytes()),
            Work::CbcDecrypt => Next::Chained,
            Work::Ecb(_) => Next::Iv(iv),
        })?;
        if work == Work::CbcDecrypt {
            // Each needs the end of the one before as it was.
            parts.reverse();
        }
        Ok(parts)
    }

    /// Launches what was prepared for the same mode.
    pub(crate) fn run(
        &self,
        queue: Option<&Queue>,
        work: Work,
        data: &mut Buffer<u8>,
        parts: &[Prepared],
    ) -> Result<()> {
        self.wait_until_ready(queue)?;
        let (mode, direction) = (work.mode(), work.direction());
        let slot = &self.0.blocks[mode as usize][direction as usize];
        let device = &self.0.device;
        let kernel = slot.get(device, || self.0.shape.blocks(device.info(), mode, direction, self.ciphers()))?;
        parts.iter().try_for_each(|part| self.message_part(queue, kernel, work, data, part))
    }

    fn message_part(
        &self,
        queue: Option<&Queue>,
        kernel: &Kernel<BlockParams>,
        work: Work,
        data: &mut Buffer<u8>,
        part: &Prepared,
    ) -> Result<()> {
        let wide = if let Work::Ctr(width) = work { width.word() } else { 0 };
        let params = BlockParams { units: part.units, messages: part.count as u32, wide, ..BlockParams::default() };
        let groups = self.block_groups(part.units.into());
        let (messages, schedule, tables) = (&part.messages, &self.0.schedule, &self.0.tables);
        if work == Work::CbcDecrypt {
            let previous = match self.whole_launches() {
                true => None,
                false => Some(self.previous(queue, data, part)?),
            };
            let args = &mut [
                Arg::write(data),
                Arg::read(messages),
                Arg::read(schedule),
                Arg::read(tables),
                Arg::read(previous.as_ref().unwrap_or(messages)),
            ];
            // SAFETY: as below, and there is a border for every PREVIOUS_UNITS units, if workgroups see only theirs.
            return Ok(unsafe { kernel.launch(queue, groups, &params, args) }?);
        }
        let args = &mut [Arg::write(data), Arg::read(messages), Arg::read(schedule), Arg::read(tables)];
        // SAFETY: every unit belongs to a message, every message lies in the data, as `Batch` checks, and names a key of
        // the schedule; schedule and tables are of this kernel's shape.
        Ok(unsafe { kernel.launch(queue, groups, &params, args) }?)
    }
}
