//! A set of keys on a device, and the launches that all modes are made of.

use std::{fmt, mem, ops::Range, sync::Arc};

use evariste_backend::{Arg, Buffer, Device, Event, Kernel, LazyKernel, Queue, Secrecy};
use rayon::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use crate::{
    Config, Error, KeySize, Method, Result,
    cpu::{self, BLOCK},
    ghash::{HashKeys, Sum},
    kernels::{
        self, BORDER_UNITS, BlockMode, BlockParams, BorderParams, CTR_RUN, Ciphers, CtrParams, Descriptor, Direction,
        GhashParams, MoveParams, POWERS, Place, SerialMode, SerialParams, Shape, THREADS, WARP,
    },
    key::{HostCipher, Key},
    keystream::EqualKeys,
    tables,
};

/// Messages of one launch.
const MAX_MESSAGES: usize = 1 << 30;

/// Sectors of one launch of XTS, which has 16 bytes of memory for the tweak of each.
const MAX_TWEAKS: usize = 1 << 26;

/// Messages whose descriptors one task makes at a time, at some 10 ns each.
const GRAIN: usize = 1 << 10;

/// Messages that one launch of GHASH takes.
const MAX_HASHED: usize = 1 << 24;

/// Segments that data is cut into for GHASH, if it is long enough: as many as keep a device busy, and as few as the host
/// puts together in microseconds.
const MAX_SEGMENTS: u64 = 1 << 11;

/// Blocks that a workgroup hashes at a time at least, if there are so many.
const MIN_HASHED: u64 = 1 << 11;

/// Blocks of a message of a batch that are one segment in any case: putting together costs the host as much as it gains.
const MIN_CUT: u64 = 1 << 10;

/// Blocks of a segment of a batch at most: as many strides as one launch has.
const MAX_SEGMENT: u64 = MAX_STRIDES * THREADS as u64;

/// Strides of one thread: systems end launches that take long.
pub(crate) const MAX_STRIDES: u64 = 1 << 10;

/// Blocks that one launch chains in CBC encryption, for the same reason, and since emulated GPUs end long loops.
const MAX_CHAIN: u32 = 1 << 11;

/// Keys of one size on a device. Clones share them; all modes are made from it.
///
/// Schedules are in memory that is zeroed when the last clone is gone, on the host and on the device.
///
/// ```
/// # fn main() -> Result<(), evariste_aes::Error> {
/// use evariste_aes::Aes;
/// use evariste_backend::Device;
///
/// let aes = Aes::new(&Device::best()?, &[7; 32])?;
/// let mut bytes = *b"any length at all";
/// aes.ctr(&[1; 16])?.apply(&mut bytes)?;
/// aes.ctr(&[1; 16])?.apply(&mut bytes)?;
/// assert_eq!(&bytes, b"any length at all");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Aes(Arc<Engine>);

struct Engine {
    device: Device,
    config: Config,
    shape: Shape,
    ciphers: Ciphers,
    equal_keys: EqualKeys,
    schedule: Buffer<u32>,
    tables: Buffer<u32>,
    /// When schedule and tables are there, for other queues than the default one.
    ready: Event,
    ctr: LazyKernel<CtrParams>,
    blocks: [[LazyKernel<BlockParams>; 2]; 5],
    serial: [[LazyKernel<SerialParams>; 2]; 2],
    borders: LazyKernel<BorderParams>,
    moves: LazyKernel<MoveParams>,
}

impl Aes {
    /// One key of 16, 24 or 32 bytes.
    ///
    /// # Errors
    /// [`Error::KeyLength`], [`Error::Device`].
    pub fn new(device: &Device, key: &[u8]) -> Result<Self> {
        Self::with_config(device, &[key], Config::default())
    }

    /// Keys of one size, at least one, and how to use them.
    ///
    /// # Errors
    /// [`Error::KeyLength`], [`Error::Count`] without a key, [`Error::Method`], [`Error::Device`].
    pub fn with_config(device: &Device, keys: &[impl AsRef<[u8]>], config: Config) -> Result<Self> {
        let keys = keys.iter().map(|key| Key::new(key.as_ref())).collect::<Result<Vec<_>>>()?;
        let Some(first) = keys.first() else {
            return Err(Error::Count { what: "keys, at least", expected: 1, actual: 0 });
        };
        let size = first.size();
        if let Some(other) = keys.iter().find(|key| key.size() != size) {
            return Err(Error::KeyLength { expected: "as many as the first", actual: other.size().bytes() });
        }
        let method = config.method.unwrap_or_else(|| Method::fastest(device.info()));
        let shape = Shape::new(device.info(), method, size)?;
        let mut words = Zeroizing::new(Vec::with_capacity(keys.len() * shape.schedule_words()));
        for key in &keys {
            match shape.sliced() {
                true => words.extend_from_slice(&key.sliced_schedule()),
                false => words.extend_from_slice(&*key.schedule()),
            }
        }
        let schedule = device.upload_with::<u32>(&words, Secrecy::Secret)?;
        let tables = device.upload::<u32>(&tables::words())?;
        Ok(Self(Arc::new(Engine {
            device: device.clone(),
            config,
            shape,
            ciphers: keys.iter().map(Key::cipher).collect(),
            equal_keys: EqualKeys::default(),
            schedule,
            tables,
            ready: device.record(None)?,
            ctr: LazyKernel::default(),
            blocks: Default::default(),
            serial: Default::default(),
            borders: LazyKernel::default(),
            moves: LazyKernel::default(),
        })))
    }

    /// The kernels of a method, for compiling them ahead.
    ///
    /// # Errors
    /// [`Error::Method`].
    pub fn kernels(
        info: &evariste_backend::DeviceInfo,
        method: Method,
        size: KeySize,
    ) -> Result<Vec<evariste_backend::KernelSpec>> {
        Ok(kernels::all(Shape::new(info, method, size)?, info))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The choices it was made with.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// How kernels compute the cipher.
    pub fn method(&self) -> Method {
        self.0.shape.method
    }

    /// The length of the keys.
    pub fn key_size(&self) -> KeySize {
        self.0.shape.size
    }

    /// How many keys there are.
    pub fn keys(&self) -> usize {
        self.0.ciphers.len()
    }

    pub(crate) fn cipher(&self, key: usize) -> &HostCipher {
        &self.0.ciphers[key]
    }

    pub(crate) fn equal_keys(&self) -> &EqualKeys {
        &self.0.equal_keys
    }

    fn ciphers(&self) -> Ciphers {
        Arc::clone(&self.0.ciphers)
    }

    /// Refuses a batch's message that names no key.
    pub(crate) fn expect_key(&self, message: usize, key: usize) -> Result<()> {
        match key < self.keys() {
            true => Ok(()),
            false => Err(Error::NoSuchKey { message, expected: self.keys(), actual: key }),
        }
    }

    pub(crate) fn per_thread(&self) -> u32 {
        self.0.shape.per_thread()
    }

    /// Refuses a buffer of another device, and a range that leaves the buffer.
    pub(crate) fn expect_range(&self, data: &Buffer<u8>, range: &Range<usize>) -> Result<()> {
        self.0.device.expect_same("the data of a cipher", data.device())?;
        if range.start <= range.end && range.end <= data.len() {
            return Ok(());
        }
        let (offset, count) = (range.start as u64, range.end.saturating_sub(range.start) as u64);
        Err(evariste_backend::Error::OutOfRange { what: "cipher", offset, count, len: data.len() as u64 }.into())
    }

    /// Workgroups for `units` of work, of which a workgroup takes `each` at a time.
    fn groups(&self, units: u64, each: u64, threads: u32) -> u64 {
        let info = self.0.device.info();
        let needed = units.div_ceil(each);
        let resident = u64::from(info.parallelism) * u64::from(self.0.shape.resident(info, threads));
        let enough = resident.max(1).max(needed.div_ceil(MAX_STRIDES));
        if self.0.config.strides(info) { needed.min(enough) } else { needed }
    }

    /// Workgroups of the kernel of independent blocks for some units.
    fn block_groups(&self, units: u64) -> u64 {
        let (info, shape) = (self.0.device.info(), self.0.shape);
        let (each, threads) = (shape.block_units(info), shape.block_threads(info));
        self.spread_groups(units, each.into(), threads)
    }

    /// [`Aes::groups`] of a kernel whose warps take `each` units of a workgroup's together: where workgroups stride, warps of
    /// different ones take neighbouring parts, so that short data is spread over the device.
    fn spread_groups(&self, units: u64, each: u64, threads: u32) -> u64 {
        let by_warps = self.0.shape.method.tables() > 0 && each > threads.into();
        let warps = if by_warps { u64::from(threads / WARP).max(1) } else { 1 };
        match self.0.config.strides(self.0.device.info()) {
            true => self.groups(units, each / warps, threads),
            false => self.groups(units, each, threads),
        }
    }

    /// Whether one thread is a workgroup, as on the CPU: kernels' bodies share out the work of a launch themselves.
    fn whole_launches(&self) -> bool {
        self.0.device.info().limits.workgroup_threads == 1
    }

    fn wait_until_ready(&self, queue: Option<&Queue>) -> Result<()> {
        match queue {
            None => Ok(()),
            Some(_) => Ok(self.0.device.wait_for(queue, &self.0.ready)?),
        }
    }

    /// Runs `work` on the range's bytes where its first byte is `phase` bytes after a word: in place if it is so there,
    /// else on a copy. `work` gets the data and where the range starts in it.
    pub(crate) fn aligned(
        &self,
        queue: Option<&Queue>,
        data: &mut Buffer<u8>,
        range: Range<usize>,
        phase: usize,
        work: impl FnOnce(&mut Buffer<u8>, usize) -> Result<()>,
    ) -> Result<()> {
        if range.start % BLOCK == phase {
            return work(data, range.start);
        }
        let mut copy = self.copy_of(queue, data, range.clone(), phase)?;
        work(&mut copy, phase)?;
        self.move_bytes(queue, &copy, phase, data, range.start, range.len(), Target::Used)
    }

    /// [`Aes::aligned`] for work that only reads.
    pub(crate) fn aligned_read<T>(
        &self,
        data: &Buffer<u8>,
        range: Range<usize>,
        work: impl FnOnce(&Buffer<u8>, usize) -> Result<T>,
    ) -> Result<T> {
        if range.start.is_multiple_of(BLOCK) {
            return work(data, range.start);
        }
        work(&self.copy_of(None, data, range, 0)?, 0)
    }

    /// A copy of a range that starts `phase` bytes after a word.
    fn copy_of(
        &self,
        queue: Option<&Queue>,
        data: &Buffer<u8>,
        range: Range<usize>,
        phase: usize,
    ) -> Result<Buffer<u8>> {
        let mut copy = self.0.device.alloc_with::<u8>(phase + range.len(), data.secrecy())?;
        self.move_bytes(queue, data, range.start, &mut copy, phase, range.len(), Target::Fresh)?;
        Ok(copy)
    }

    /// Copies bytes from one buffer to another, from and to any place.
    #[expect(clippy::too_many_arguments, reason = "two places, what lies around them, and a queue")]
    fn move_bytes(
        &self,
        queue: Option<&Queue>,
        src: &Buffer<u8>,
        from: usize,
        dst: &mut Buffer<u8>,
        to: usize,
        len: usize,
        target: Target,
    ) -> Result<()> {
        self.expect_range(src, &(from..from + len))?;
        self.expect_range(dst, &(to..to + len))?;
        let kernel = self.0.moves.get(&self.0.device, kernels::move_bytes)?;
        let mut done = 0;
        while done < len {
            let (from, to) = (from + done, to + done);
            // All but the last launch end where a word of the target does.
            let now = (len - done).min(self.launch_bytes() - to % BLOCK);
            let params = MoveParams {
                dst_word: Place::of(to),
                src_word: Place::of(from),
                to: (to % BLOCK) as u32,
                from_byte: (from % BLOCK) as u32,
                words: words(to, now) as u32,
                tail: tail(to + now) as u32,
                src_words: words(from, now) as u32,
                fresh: u32::from(target == Target::Fresh),
            };
            let groups = self.groups(params.words.into(), THREADS.into(), THREADS);
            let args = &mut [Arg::read(src), Arg::write(&mut *dst)];
            // SAFETY: words dst_word … dst_word + words − 1 of the target and src_word … src_word + src_words − 1 of the
            // source hold bytes of the ranges checked above, and buffers are padded to whole words.
            unsafe { kernel.launch(queue, groups, &params, args) }?;
            done += now;
        }
        Ok(())
    }

    /// XORs the keystream from byte `skip` of the block of `counter` on; the range starts `skip` bytes after a word.
    pub(crate) fn ctr_aligned(
        &self,
        queue: Option<&Queue>,
        data: &mut Buffer<u8>,
        range: Range<usize>,
        counter: [u8; BLOCK],
        wide: bool,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        self.wait_until_ready(queue)?;
        let (device, shape) = (&self.0.device, self.0.shape);
        let kernel = self.0.ctr.get(device, || shape.ctr(device.info(), self.ciphers()))?;
        let threads = shape.ctr_threads(device.info());
        let blocks = words(range.start, range.len());
        let mut done = 0;
        while done < blocks {
            let now = (blocks - done).min(self.0.config.launch_blocks());
            let params = CtrParams {
                counter: bytemuck::cast(cpu::add_counter(counter, done.into(), wide)),
                wide: wide.into(),
                start: Place::of(range.start + done as usize * BLOCK),
                blocks: now as u32,
                skip: if done == 0 { (range.start % BLOCK) as u32 } else { 0 },
                tail: if done + now == blocks { tail(range.end) as u32 } else { BLOCK as u32 },
            };
            // A run that starts in the middle reaches into one more.
            let groups = self.spread_groups(now + 255, u64::from(threads * CTR_RUN), threads);
            let args = &mut [Arg::write(&mut *data), Arg::read(&self.0.schedule), Arg::read(&self.0.tables)];
            // SAFETY: words start … start + blocks − 1 hold bytes of the range, which the caller has checked, and
            // buffers are padded to whole words; schedule and tables are of this kernel's shape.
            unsafe { kernel.launch(queue, groups, &params, args) }?;
            done += now;
        }
        Ok(())
    }

    /// A mode of independent blocks over messages of this device's buffer `data`.
    pub(crate) fn messages(
        &self,
        queue: Option<&Queue>,
        mode: BlockMode,
        direction: Direction,
        wide: bool,
        data: &mut Buffer<u8>,
        batch: &Batch,
    ) -> Result<()> {
        let parts = self.prepare(queue, mode, wide, batch)?;
        self.run(queue, mode, direction, wide, data, &parts)
    }

    /// The launches of a mode over messages, with what they read of them on the device.
    pub(crate) fn prepare(
        &self,
        queue: Option<&Queue>,
        mode: BlockMode,
        wide: bool,
        batch: &Batch,
    ) -> Result<Vec<Prepared>> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut parts = batch.parts(self, |iv, blocks| match mode {
            BlockMode::Ctr => Next::Iv(cpu::add_counter(iv, blocks.into(), wide)),
            BlockMode::Tweak => Next::Iv(u128::from_le_bytes(iv).wrapping_add(blocks.into()).to_le_bytes()),
            BlockMode::Cbc => Next::Chained,
            BlockMode::Ecb | BlockMode::Xts => Next::Iv(iv),
        });
        if mode == BlockMode::Cbc {
            // Each needs the end of the one before as it was.
            parts.reverse();
        }
        let upload = |part: Part| Ok(Prepared { messages: self.upload_descriptors(queue, &part)?, part });
        parts.into_iter().map(upload).collect()
    }

    /// Launches what was prepared for the same mode.
    pub(crate) fn run(
        &self,
        queue: Option<&Queue>,
        mode: BlockMode,
        direction: Direction,
        wide: bool,
        data: &mut Buffer<u8>,
        parts: &[Prepared],
    ) -> Result<()> {
        self.wait_until_ready(queue)?;
        let slot = &self.0.blocks[mode as usize][direction as usize];
        let device = &self.0.device;
        let kernel = slot.get(device, || self.0.shape.blocks(device.info(), mode, direction, self.ciphers()))?;
        parts.iter().try_for_each(|part| self.message_part(queue, kernel, mode, wide, data, part))
    }

    fn message_part(
        &self,
        queue: Option<&Queue>,
        kernel: &Kernel<BlockParams>,
        mode: BlockMode,
        wide: bool,
        data: &mut Buffer<u8>,
        Prepared { part, messages }: &Prepared,
    ) -> Result<()> {
        let params = BlockParams {
            units: part.units,
            messages: part.descriptors.len() as u32,
            wide: wide.into(),
            ..BlockParams::default()
        };
        let groups = self.block_groups(part.units.into());
        let (schedule, tables) = (&self.0.schedule, &self.0.tables);
        if mode == BlockMode::Cbc {
            let borders = match self.whole_launches() {
                true => None,
                false => Some(self.borders(queue, data, messages, part)?),
            };
            let args = &mut [
                Arg::write(data),
                Arg::read(messages),
                Arg::read(schedule),
                Arg::read(tables),
                Arg::read(borders.as_ref().unwrap_or(messages)),
            ];
            // SAFETY: as below, and there is a border for every BORDER_UNITS units, if workgroups see only theirs.
            return Ok(unsafe { kernel.launch(queue, groups, &params, args) }?);
        }
        let args = &mut [Arg::write(data), Arg::read(messages), Arg::read(schedule), Arg::read(tables)];
        // SAFETY: every unit belongs to a message, every message lies in the data, as `Batch` checks, and names a key of
        // the schedule; schedule and tables are of this kernel's shape.
        Ok(unsafe { kernel.launch(queue, groups, &params, args) }?)
    }

    fn upload_descriptors(&self, queue: Option<&Queue>, part: &Part) -> Result<Buffer<u32>> {
        let words = bytemuck::cast_slice(&part.descriptors);
        Ok(self.0.device.upload_on(queue, words, part.secrecy)?)
    }

    fn borders(
        &self,
        queue: Option<&Queue>,
        data: &Buffer<u8>,
        messages: &Buffer<u32>,
        part: &Part,
    ) -> Result<Buffer<u32>> {
        let tiles = part.units.div_ceil(BORDER_UNITS);
        let mut borders = self.0.device.alloc_with::<u32>(4 * tiles as usize, data.secrecy())?;
        let kernel = self.0.borders.get(&self.0.device, || self.0.shape.borders())?;
        let params = BorderParams { tiles, messages: part.descriptors.len() as u32, tile_units: BORDER_UNITS };
        let args = &mut [Arg::read(data), Arg::read(messages), Arg::write(&mut borders)];
        // SAFETY: a thread for each of `tiles` entries; unit tile · BORDER_UNITS belongs to a message within the data, and what is
        // chained has a block before it.
        unsafe { kernel.launch(queue, tiles.div_ceil(THREADS).into(), &params, args) }?;
        Ok(borders)
    }

    /// CBC encryption of messages, each by one thread.
    pub(crate) fn cbc_encrypt(&self, data: &mut Buffer<u8>, batch: &Batch) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let (mode, direction) = (SerialMode::CbcEncrypt, Direction::Encrypt);
        let slot = &self.0.serial[mode as usize][direction as usize];
        let kernel = slot.get(&self.0.device, || self.0.shape.serial(mode, direction, self.ciphers()))?;
        for part in batch.parts(self, |_, _| Next::Chained) {
            let messages = self.upload_descriptors(None, &part)?;
            let count = part.descriptors.len() as u32;
            let groups = self.groups(count.into(), THREADS.into(), THREADS);
            let longest = part.descriptors.iter().map(|message| message.blocks).max().unwrap_or(0);
            for first in (0..longest).step_by(MAX_CHAIN as usize) {
                let params = SerialParams { count, first, blocks: MAX_CHAIN, ..SerialParams::default() };
                let (schedule, tables) = (&self.0.schedule, &self.0.tables);
                let args = &mut [Arg::write(&mut *data), Arg::read(&messages), Arg::read(schedule), Arg::read(tables)];
                // SAFETY: every message lies in the data and names a key, as `Batch` checks.
                unsafe { kernel.launch(None, groups, &params, args) }?;
            }
        }
        Ok(())
    }

    /// XTS over sectors of equal length from the start of a word on, with key 0 for the data and key 1 for the tweaks.
    /// Several sectors must be whole blocks long.
    pub(crate) fn xts(
        &self,
        queue: Option<&Queue>,
        data: &mut Buffer<u8>,
        sectors: Sectors,
        direction: Direction,
    ) -> Result<()> {
        self.expect_range(data, &sectors.range())?;
        self.wait_until_ready(queue)?;
        let most = (self.launch_bytes() / sectors.bytes).clamp(1, MAX_TWEAKS);
        for at in (0..sectors.count).step_by(most) {
            let part = Sectors {
                start: sectors.start + at * sectors.bytes,
                count: most.min(sectors.count - at),
                first: sectors.first + at as u128,
                ..sectors
            };
            self.xts_part(queue, data, part, direction)?;
        }
        Ok(())
    }

    fn xts_part(
        &self,
        queue: Option<&Queue>,
        data: &mut Buffer<u8>,
        sectors: Sectors,
        direction: Direction,
    ) -> Result<()> {
        let (device, shape) = (&self.0.device, self.0.shape);
        let Sectors { start, bytes: sector_bytes, count: sectors, first } = sectors;
        let tweaks = self.tweaks(queue, first, sectors)?;
        let (whole, part) = (sector_bytes / BLOCK, sector_bytes % BLOCK);
        let blocks = (whole - usize::from(part > 0)) as u32;
        let units = blocks.div_ceil(self.per_thread());
        let total = u64::from(units) * sectors as u64;
        let (word, stride) = (Place::of(start), whole as u32);
        let (schedule, tables) = (&self.0.schedule, &self.0.tables);
        if blocks > 0 {
            let slot = &self.0.blocks[BlockMode::Xts as usize][direction as usize];
            let kernel = slot.get(device, || shape.blocks(device.info(), BlockMode::Xts, direction, self.ciphers()))?;
            let params = BlockParams { units: total as u32, messages: units, wide: 0, word, stride, blocks, key: 0 };
            let groups = self.block_groups(total);
            let args = &mut [Arg::write(&mut *data), Arg::read(&tweaks), Arg::read(schedule), Arg::read(tables)];
            // SAFETY: sector i < sectors has `blocks` whole blocks from word + i · stride on within the range that the caller
            // has checked, and a tweak.
            unsafe { kernel.launch(queue, groups, &params, args) }?;
        }
        if part > 0 {
            let slot = &self.0.serial[SerialMode::XtsSteal as usize][direction as usize];
            let kernel = slot.get(device, || shape.serial(SerialMode::XtsSteal, direction, self.ciphers()))?;
            let (count, tail) = (sectors as u32, part as u32);
            let params = SerialParams { count, first: 0, blocks, word, stride, tail, key: 0 };
            let groups = self.groups(sectors as u64, THREADS.into(), THREADS);
            let args = &mut [Arg::write(data), Arg::read(&tweaks), Arg::read(schedule), Arg::read(tables)];
            // SAFETY: the last whole block of each sector and the short one after it are within the range that the caller has
            // checked.
            unsafe { kernel.launch(queue, groups, &params, args) }?;
        }
        Ok(())
    }

    /// The numbers of sectors, encrypted with key 1.
    fn tweaks(&self, queue: Option<&Queue>, first: u128, sectors: usize) -> Result<Buffer<u8>> {
        let mut tweaks = self.0.device.alloc_with::<u8>(sectors * BLOCK, Secrecy::Secret)?;
        let message = Span { offset: 0, len: sectors * BLOCK, key: 1, iv: first.to_le_bytes() };
        let batch = Batch::new(self, &tweaks, vec![message], Secrecy::Public)?;
        self.messages(queue, BlockMode::Tweak, Direction::Encrypt, false, &mut tweaks, &batch)?;
        Ok(tweaks)
    }

    /// Σ X_i H^(n−1−i) over the n blocks of a range that starts at a word, with the powers of a key.
    pub(crate) fn ghash(&self, data: &Buffer<u8>, range: Range<usize>, keys: &HashKeys, key: usize) -> Result<Sum> {
        let mut total = Sum::default();
        let step = self.launch_bytes();
        for start in range.clone().step_by(step) {
            let part = start..range.end.min(start.saturating_add(step));
            let sum = self.ghash_part(data, part.clone(), keys, key)?;
            total = if start == range.start { sum } else { keys.key(key).append(&total, &sum, part.len()) };
        }
        Ok(total)
    }

    fn ghash_part(&self, data: &Buffer<u8>, range: Range<usize>, keys: &HashKeys, key: usize) -> Result<Sum> {
        let blocks = words(range.start, range.len());
        if blocks == 0 {
            return Ok(Sum::default());
        }
        let segment = if self.whole_launches() { blocks } else { self.segment_of(blocks) };
        let count = blocks.div_ceil(segment);
        let params = GhashParams {
            count: count as u32,
            word: Place::of(range.start),
            blocks: blocks as u32,
            tail: tail(range.end) as u32,
            segment: segment as u32,
            power: (key * POWERS) as u32,
        };
        let (kernel, powers) = (keys.kernel()?, keys.powers());
        let sums = keys.read(count as usize, |out| {
            // There are no messages: the tables' first words stand in for them, unread.
            let args = &mut [Arg::read(data), Arg::read(&self.0.tables), Arg::read(powers), Arg::write(out)];
            // SAFETY: the range's words lie in the data; there is an output for each segment; the key has powers.
            Ok(unsafe { kernel.launch(None, self.hash_groups(count), &params, args) }?)
        })?;
        Ok(keys.key(key).join_segments(bytemuck::cast_slice(&sums), segment, blocks))
    }

    /// Blocks of the segments that so many blocks are cut into.
    fn segment_of(&self, blocks: u64) -> u64 {
        let at_once = u64::from(kernels::hashed_at_once(self.0.device.info()));
        blocks.div_ceil(MAX_SEGMENTS).max(MIN_HASHED / at_once).next_multiple_of(THREADS.into())
    }

    /// Workgroups that hash so many segments.
    fn hash_groups(&self, segments: u64) -> u64 {
        let info = self.0.device.info();
        match kernels::hashed_at_once(info) {
            1 => segments,
            _ if self.whole_launches() => 1,
            // Two of them fit at once.
            _ => segments.min(2 * u64::from(info.parallelism.max(1))),
        }
    }

    /// [`Aes::ghash`] of each message of a batch, with its own powers, as they lie in memory. `parts` are what the batch was prepared
    /// as. `meanwhile` runs on the host while the device hashes.
    pub(crate) fn ghash_messages(
        &self,
        data: &Buffer<u8>,
        batch: &Batch,
        parts: &[Prepared],
        keys: &HashKeys,
        meanwhile: impl FnOnce(),
    ) -> Result<Zeroizing<Vec<u128>>> {
        let blocks = |span: &Span| words(span.offset, span.len);
        let total = batch.spans.iter().map(blocks).sum();
        let longest = batch.spans.iter().map(blocks).max().unwrap_or(0);
        let most = if self.whole_launches() {
            u64::from(u32::MAX)
        } else {
            self.segment_of(total).clamp(MIN_CUT, MAX_SEGMENT)
        };
        let mut meanwhile = Some(meanwhile);
        let mut hash = |messages: &Buffer<u32>, count: usize| {
            let params = GhashParams { count: count as u32, ..GhashParams::default() };
            let (kernel, powers) = (keys.kernel()?, keys.powers());
            keys.read(count, |out| {
                let args = &mut [Arg::read(data), Arg::read(messages), Arg::read(powers), Arg::write(out)];
                // SAFETY: every segment lies in the data and names powers that are there, as `Batch` checks; there is an
                // output for each.
                unsafe { kernel.launch(None, self.hash_groups(count as u64), &params, args) }?;
                if let Some(meanwhile) = meanwhile.take() {
                    meanwhile();
                }
                Ok(())
            })
        };
        if let [Prepared { part, messages }] = parts
            && part.descriptors.len() == batch.spans.len()
            && part.descriptors.len() <= MAX_HASHED
            && longest <= most
        {
            return hash(messages, batch.spans.len());
        }
        let segments = batch.segments(most);
        let mut sums = Zeroizing::new(Vec::with_capacity(segments.len()));
        for part in segments.chunks(MAX_HASHED) {
            let messages = self.0.device.upload_on(None, bytemuck::cast_slice(part), Secrecy::Public)?;
            sums.extend_from_slice(&hash(&messages, part.len())?);
        }
        let mut sums: &[[u8; BLOCK]] = bytemuck::cast_slice(&sums);
        let mut joined = Zeroizing::new(Vec::with_capacity(batch.spans.len()));
        for span in &batch.spans {
            let (own, rest) = sums.split_at(blocks(span).div_ceil(most).max(1) as usize);
            let sum = keys.key(span.key).join_segments(own, most, blocks(span));
            joined.push(u128::from_ne_bytes(*sum));
            sums = rest;
        }
        Ok(joined)
    }

    /// Bytes that one launch works on at most: whole blocks.
    fn launch_bytes(&self) -> usize {
        usize::try_from(self.0.config.launch_blocks()).unwrap_or(usize::MAX).saturating_mul(BLOCK) / BLOCK * BLOCK
    }
}

impl fmt::Debug for Aes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aes")
            .field("device", &self.0.device)
            .field("key_size", &self.key_size())
            .field("keys", &self.keys())
            .field("method", &self.method())
            .finish_non_exhaustive()
    }
}

/// What lies around the bytes that are copied to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// Nothing: nobody has written it.
    Fresh,
    /// What must stay.
    Used,
}

/// Sectors of XTS that follow each other in a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sectors {
    pub(crate) start: usize,
    /// Of each.
    pub(crate) bytes: usize,
    pub(crate) count: usize,
    /// The number of the first.
    pub(crate) first: u128,
}

impl Sectors {
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.start + self.bytes * self.count
    }
}

/// One message within a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) offset: usize,
    pub(crate) len: usize,
    pub(crate) key: usize,
    pub(crate) iv: [u8; BLOCK],
}

impl Span {
    fn descriptor(&self) -> Descriptor {
        let Place([word_low, word_high]) = Place::of(self.offset);
        Descriptor {
            first_unit: 0,
            word_low,
            blocks: 0,
            key: self.key as u32,
            tail: tail(self.offset + self.len) as u32,
            powers: (self.key * POWERS) as u32,
            word_high,
            chained: 0,
            iv: self.iv,
        }
    }
}

/// Messages that were checked against their buffer: each lies in it, none shares a byte with another, and each has a key.
#[derive(Debug)]
pub(crate) struct Batch {
    spans: Vec<Span>,
    secrecy: Secrecy,
}

/// What a launch works on: messages in the order of their units, and parts of them.
#[derive(Debug, Default)]
struct Part {
    descriptors: Vec<Descriptor>,
    units: u32,
    secrecy: Secrecy,
}

/// A launch's work, with its descriptors on the device.
#[derive(Debug)]
pub(crate) struct Prepared {
    part: Part,
    messages: Buffer<u32>,
}

/// How the rest of a message starts that goes on in the next launch.
enum Next {
    /// With this initialisation vector.
    Iv([u8; BLOCK]),
    /// With the block that lies before it.
    Chained,
}

impl Batch {
    /// Refuses messages that leave the buffer, overlap, do not start at a word, or name no key. `secrecy` is that of the
    /// initialisation vectors.
    pub(crate) fn new(aes: &Aes, data: &Buffer<u8>, spans: Vec<Span>, secrecy: Secrecy) -> Result<Self> {
        let batch = Self { spans, secrecy };
        let expect = |(message, span): (usize, &Span)| {
            if span.offset % BLOCK != 0 {
                return Err(Error::Alignment { message, expected: BLOCK, actual: span.offset });
            }
            aes.expect_range(data, &(span.offset..span.offset.saturating_add(span.len)))?;
            aes.expect_key(message, span.key)
        };
        let spans = batch.spans.par_iter().enumerate().with_min_len(GRAIN);
        if let Some(error) = spans.find_map_first(|span| expect(span).err()) {
            return Err(error);
        }
        expect_disjoint(&batch.spans)?;
        Ok(batch)
    }

    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }

    fn is_empty(&self) -> bool {
        self.spans.iter().all(|span| span.len == 0)
    }

    /// Its messages as kernels see them that only read, each cut into segments of so many blocks, of which it has at least one.
    fn segments(&self, most: u64) -> Vec<Descriptor> {
        let mut segments = Vec::with_capacity(self.spans.len());
        for span in &self.spans {
            let (mut at, end) = (span.offset, span.offset + span.len);
            let whole = Descriptor { iv: [0; BLOCK], ..span.descriptor() };
            loop {
                let left = words(at, end - at);
                let Place([word_low, word_high]) = Place::of(at);
                let rest = Descriptor { word_low, word_high, blocks: left as u32, ..whole };
                if left <= most {
                    segments.push(rest);
                    break;
                }
                segments.push(Descriptor { blocks: most as u32, tail: BLOCK as u32, ..rest });
                at += most as usize * BLOCK;
            }
        }
        segments
    }

    /// The launches that it takes. A message that does not fit goes on in the next one, which it is the first of, where
    /// `next` tells how from an initialisation vector and the blocks that came after it.
    fn parts(&self, aes: &Aes, next: impl Fn([u8; BLOCK], u64) -> Next) -> Vec<Part> {
        let per_thread = u64::from(aes.per_thread());
        let room = (aes.config().launch_blocks() / per_thread) as u32;
        let new = |capacity: usize| Part {
            descriptors: Vec::with_capacity(capacity.min(MAX_MESSAGES)),
            units: 0,
            secrecy: self.secrecy,
        };
        let units = |span: &Span| words(span.offset, span.len).div_ceil(per_thread);
        let total: u64 = self.spans.iter().map(units).sum();
        if total <= room.into() && self.spans.len() <= MAX_MESSAGES {
            let after = |sum: &mut u32, span: &Span| Some(mem::replace(sum, *sum + units(span) as u32));
            let firsts: Vec<u32> = self.spans.iter().scan(0, after).collect();
            let descriptor = |(span, first_unit): (&Span, &u32)| {
                let blocks = words(span.offset, span.len) as u32;
                Descriptor { first_unit: *first_unit, blocks, ..span.descriptor() }
            };
            let descriptors = self.spans.par_iter().zip(&firsts).with_min_len(GRAIN).map(descriptor).collect();
            return vec![Part { descriptors, units: total as u32, secrecy: self.secrecy }];
        }
        let (mut parts, mut part) = (Vec::new(), new(self.spans.len()));
        for span in &self.spans {
            let (mut at, end) = (span.offset, span.offset + span.len);
            let mut rest = span.descriptor();
            loop {
                if part.units == room || part.descriptors.len() == MAX_MESSAGES {
                    parts.push(mem::replace(&mut part, new(0)));
                }
                let (left, free) = (words(at, end - at), u64::from(room - part.units) * per_thread);
                let now = left.min(free);
                let Place([word_low, word_high]) = Place::of(at);
                let descriptor = Descriptor { first_unit: part.units, word_low, word_high, blocks: now as u32, ..rest };
                part.units += now.div_ceil(per_thread) as u32;
                if now == left {
                    part.descriptors.push(descriptor);
                    break;
                }
                part.descriptors.push(Descriptor { tail: BLOCK as u32, ..descriptor });
                at += now as usize * BLOCK;
                match next(rest.iv, now) {
                    Next::Iv(iv) => rest.iv = iv,
                    Next::Chained => rest.chained = 1,
                }
            }
        }
        parts.push(part);
        parts
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.secrecy == Secrecy::Secret {
            self.spans.iter_mut().for_each(|span| span.iv.zeroize());
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.secrecy == Secrecy::Secret {
            self.descriptors.iter_mut().for_each(|descriptor| descriptor.iv.zeroize());
        }
    }
}

fn expect_disjoint(spans: &[Span]) -> Result<()> {
    let ordered = |pair: &[Span]| pair[0].offset + pair[0].len <= pair[1].offset;
    if spans.par_windows(2).with_min_len(GRAIN).all(ordered) {
        return Ok(());
    }
    let mut order: Vec<(usize, &Span)> = spans.iter().enumerate().filter(|(_, span)| span.len > 0).collect();
    order.sort_by_key(|(_, span)| span.offset);
    match order.windows(2).find(|pair| pair[0].1.offset + pair[0].1.len > pair[1].1.offset) {
        None => Ok(()),
        Some(pair) => Err(Error::Overlap { first: pair[0].0, second: pair[1].0 }),
    }
}

/// Words that hold bytes of a range.
fn words(start: usize, len: usize) -> u64 {
    match len {
        0 => 0,
        _ => ((start % BLOCK) as u64 + (len - 1) as u64) / BLOCK as u64 + 1,
    }
}

/// How many bytes of its word lie before the end of a range: 1 to 16.
fn tail(end: usize) -> usize {
    end.wrapping_sub(1) % BLOCK + 1
}
