//! Modes whose blocks are independent, over messages.

use evariste_backend::{
    ViewMut,
    author::{Arg, Kernel},
};

use crate::{
    batch::{Batch, Message, Next, Prepared},
    block::{BLOCK, Counter, add_counter},
    error::Result,
    params::{BlockMode, BlockParams, Direction},
    plan::{Aes, key},
};

/// What is done to each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Each block on its own.
    #[cfg_attr(not(feature = "hazmat"), expect(dead_code, reason = "kernels have all modes"))]
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
    /// A mode of independent blocks over one message that is all of the data.
    pub(crate) fn message(&self, work: Work, key: usize, iv: [u8; BLOCK], mut data: ViewMut<'_, u8>) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        if self.whole_launches() {
            let params = BlockParams { key: key as u32, iv: bytemuck::cast(iv), ..BlockParams::default() };
            return self.launch_alone(work.mode(), work.direction(), &params, data);
        }
        let message = Message { offset: 0, len: data.len(), key, iv };
        let batch = Batch::new(self, data.as_view(), &message)?;
        self.messages(work, data.reborrow(), &batch)
    }

    /// A launch for what the parameters alone tell, on a device where one thread is a workgroup.
    pub(crate) fn launch_alone(
        &self,
        mode: BlockMode,
        direction: Direction,
        params: &BlockParams,
        data: ViewMut<'_, u8>,
    ) -> Result<()> {
        let (kernel, tables) = (self.block_kernel(mode, direction)?, &self.plan.tables);
        // There are no messages: the tables' first words stand in for them, unread.
        let (messages, schedule) = (Arg::read(tables), key(&self.plan.schedule));
        let args = &mut [Arg::write(data), messages, schedule, Arg::read(tables), Arg::read(tables)];
        // SAFETY: the bodies for the CPU take the data as it is, and keys that are there.
        Ok(unsafe { kernel.launch(self.queue(), 1, params, &mut args[..kernel.spec().bindings.len()]) }?)
    }

    pub(crate) fn block_kernel(&self, mode: BlockMode, direction: Direction) -> Result<&Kernel<BlockParams>> {
        let (device, slot) = (&self.plan.device, &self.plan.blocks[mode as usize][direction as usize]);
        Ok(slot.get(device, || self.plan.shape.blocks(device.info(), mode, direction, self.ciphers()))?)
    }

    /// A mode of independent blocks over messages of data that starts at a word.
    pub(crate) fn messages(&self, work: Work, data: ViewMut<'_, u8>, batch: &Batch<'_>) -> Result<()> {
        let parts = self.prepare(work, batch)?;
        self.run(work, data, &parts)
    }

    /// The launches of a mode over messages, with what they read of them on the device.
    pub(crate) fn prepare(&self, work: Work, batch: &Batch<'_>) -> Result<Vec<Prepared>> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut parts = batch.prepare(self, |iv, blocks| match work {
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
    pub(crate) fn run(&self, work: Work, mut data: ViewMut<'_, u8>, parts: &[Prepared]) -> Result<()> {
        self.plan.ready.wait(self.queue())?;
        let kernel = self.block_kernel(work.mode(), work.direction())?;
        parts.iter().try_for_each(|part| self.message_part(kernel, work, data.reborrow(), part))
    }

    fn message_part(
        &self,
        kernel: &Kernel<BlockParams>,
        work: Work,
        data: ViewMut<'_, u8>,
        part: &Prepared,
    ) -> Result<()> {
        let wide = if let Work::Ctr(width) = work { width.word() } else { 0 };
        let params = BlockParams { units: part.units, messages: part.count as u32, wide, ..BlockParams::default() };
        let groups = self.block_groups(part.units.into());
        let (messages, schedule, tables) = (&part.messages, &self.plan.schedule, &self.plan.tables);
        if work == Work::CbcDecrypt {
            let previous = match self.whole_launches() {
                true => None,
                false => Some(self.chained_blocks(data.as_view(), part)?),
            };
            let args = &mut [
                Arg::write(data),
                Arg::read(messages),
                key(schedule),
                Arg::read(tables),
                Arg::read(previous.as_ref().unwrap_or(messages)),
            ];
            // SAFETY: as below, and there is a border for every CHAINED_UNITS units, if workgroups see only theirs.
            return Ok(unsafe { kernel.launch(self.queue(), groups, &params, args) }?);
        }
        let args = &mut [Arg::write(data), key(messages), key(schedule), Arg::read(tables)];
        // SAFETY: every unit belongs to a message, every message lies in the data, as `Batch` checks, and names a key
        // of the schedule; schedule and tables are of this kernel's shape.
        Ok(unsafe { kernel.launch(self.queue(), groups, &params, args) }?)
    }
}
