use evariste_backend::{Buffer, Queue, Secrecy, ViewMut, author::Arg};
use subtle::ConstantTimeEq;

use crate::{
    block::BLOCK,
    block_modes::Work,
    config::{AesConfig, Mode},
    cpu,
    error::{Error, Result},
    kernels::THREADS,
    params::{BlockMode, BlockParams, Direction, SerialMode, SerialParams},
    pieces,
    plan::{Aes, key},
};

/// The longest sector: 2^20 blocks (IEEE 1619, NIST SP 800-38E).
const MAX_SECTOR: usize = BLOCK << 20;

/// Sectors of one launch of XTS, which has 16 bytes of memory for the tweak of each.
const MAX_TWEAKS: usize = 1 << 26;

/// XTS (IEEE 1619, NIST SP 800-38E) for sectors of storage. The length stays, and the ciphertext of a sector depends on
/// its number. A sector that is not whole blocks ends with ciphertext stealing.
///
/// XTS hides data at rest. It authenticates nothing.
#[derive(Clone, Debug)]
pub struct Xts {
    /// Key 0 is for the data, key 1 for the tweaks.
    aes: Aes,
    sector_bytes: usize,
}

impl Xts {
    /// Makes XTS for sectors of `sector_bytes` bytes on a queue (`&device` is its default one). The key has 32, 48 or
    /// 64 bytes: two keys of AES-128, -192 or -256.
    ///
    /// # Errors
    /// - [`Error::KeyLength`]: `key` has other than 32, 48 or 64 bytes.
    /// - [`Error::SectorLength`]: sectors have other than 16 to 2^24 bytes.
    /// - [`Error::EqualKeys`]: both halves of `key` are equal.
    /// - [`Error::Device`]: the device fails or has too little memory for the schedules.
    pub fn new(queue: impl Into<Queue>, key: &[u8], sector_bytes: usize) -> Result<Self> {
        Self::with_config(queue, key, sector_bytes, AesConfig::default())
    }

    /// Makes XTS with a configuration.
    ///
    /// # Errors
    /// - [`Error::KeyLength`]: `key` has other than 32, 48 or 64 bytes.
    /// - [`Error::SectorLength`]: sectors have other than 16 to 2^24 bytes.
    /// - [`Error::EqualKeys`]: both halves of `key` are equal.
    /// - [`Error::Method`]: the device has too little workgroup memory for the method.
    /// - [`Error::Device`]: the device fails or has too little memory for the schedules.
    pub fn with_config(queue: impl Into<Queue>, key: &[u8], sector_bytes: usize, config: AesConfig) -> Result<Self> {
        if !matches!(key.len(), 32 | 48 | 64) {
            return Err(Error::KeyLength { expected: "32, 48 or 64", actual: key.len() });
        }
        expect_sector(sector_bytes)?;
        let (data, tweak) = key.split_at(key.len() / 2);
        if data.ct_eq(tweak).into() {
            return Err(Error::EqualKeys);
        }
        Ok(Self { aes: Aes::with_keys(queue, &[data, tweak], config)?, sector_bytes })
    }

    /// Returns the same mode for work on `queue`, as [`Aes::on`] says.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { aes: self.aes.on(queue), sector_bytes: self.sector_bytes }
    }

    /// Returns the bytes of a sector.
    pub fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    /// Encrypts a host slice of sectors with the numbers from `first` on. The last one may be shorter, but has at least
    /// 16 bytes. The CPU works on slices shorter than [`Aes::cpu_threshold`]. Longer ones pass through the device in
    /// pieces, on several queues.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::SectorLength`]: the last sector has fewer than 16 bytes.
    /// - [`Error::SectorNumber`]: the number of the last sector exceeds 2^128 − 1.
    ///
    /// [`Error::Device`] if the device fails or has too little memory. Some pieces of `data` may be done then.
    pub fn encrypt_host(&self, first: u128, data: &mut [u8]) -> Result<()> {
        self.on_slice(first, data, Direction::Encrypt)
    }

    /// Decrypts a host slice of sectors that [`Xts::encrypt_host`] or [`Xts::encrypt`] encrypted.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::SectorLength`]: the last sector has fewer than 16 bytes.
    /// - [`Error::SectorNumber`]: the number of the last sector exceeds 2^128 − 1.
    ///
    /// [`Error::Device`] if the device fails or has too little memory. Some pieces of `data` may be done then.
    pub fn decrypt_host(&self, first: u128, data: &mut [u8]) -> Result<()> {
        self.on_slice(first, data, Direction::Decrypt)
    }

    /// Encrypts sectors in device memory with the numbers from `first` on. Queued: returns before the device is done.
    /// The last one may be shorter, but has at least 16 bytes.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::SectorLength`]: the last sector has fewer than 16 bytes.
    /// - [`Error::SectorNumber`]: the number of the last sector exceeds 2^128 − 1.
    /// - [`Error::Device`]: data or the queue are of another device.
    ///
    /// [`Error::Device`] if the device fails or has too little memory. Some sectors may be done then.
    pub fn encrypt<'d>(&self, first: u128, data: impl Into<ViewMut<'d, u8>>) -> Result<()> {
        self.on_view(first, data.into(), Direction::Encrypt)
    }

    /// Decrypts sectors in device memory with the numbers from `first` on. Queued: returns before the device is done.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::SectorLength`]: the last sector has fewer than 16 bytes.
    /// - [`Error::SectorNumber`]: the number of the last sector exceeds 2^128 − 1.
    /// - [`Error::Device`]: data or the queue are of another device.
    ///
    /// [`Error::Device`] if the device fails or has too little memory. Some sectors may be done then.
    pub fn decrypt<'d>(&self, first: u128, data: impl Into<ViewMut<'d, u8>>) -> Result<()> {
        self.on_view(first, data.into(), Direction::Decrypt)
    }

    /// Refuses a last sector that is too short, and numbers that would start again.
    fn expect_sectors(&self, first: u128, len: usize) -> Result<()> {
        let count = len.div_ceil(self.sector_bytes) as u64;
        if u128::from(count.saturating_sub(1)) > u128::MAX - first {
            return Err(Error::SectorNumber { first, count });
        }
        match len % self.sector_bytes {
            0 => Ok(()),
            last => expect_sector(last),
        }
    }

    fn on_slice(&self, first: u128, data: &mut [u8], direction: Direction) -> Result<()> {
        self.expect_sectors(first, data.len())?;
        if !self.aes.on_host(Mode::Xts, data.len())? {
            return self.in_pieces(first, data, direction);
        }
        cpu::xts_sectors([0, 1].map(|key| self.aes.cipher(key)), direction, first, self.sector_bytes, data);
        Ok(())
    }

    /// Sectors that are whole blocks in pieces; others start anywhere within words, and go as one buffer.
    fn in_pieces(&self, first: u128, data: &mut [u8], direction: Direction) -> Result<()> {
        if !self.sector_bytes.is_multiple_of(BLOCK) {
            let mut buffer = self.aes.own_queue()?.upload_with::<u8>(data, Secrecy::Secret)?;
            self.on_view(first, buffer.as_view_mut(), direction)?;
            return Ok(self.aes.queue().read_into(&buffer, data)?);
        }
        let work = |queue: &Queue, piece: &mut Buffer<u8>, at: usize, len| {
            let first = first + (at / self.sector_bytes) as u128;
            self.on(queue).on_view(first, piece.view_mut(..len)?, direction)
        };
        pieces::for_len(&self.aes, data.len(), self.sector_bytes)?.run(data, work, |_| ())
    }

    fn on_view(&self, first: u128, mut data: ViewMut<'_, u8>, direction: Direction) -> Result<()> {
        self.aes.own_queue()?;
        self.aes.expect_here(data.device())?;
        self.expect_sectors(first, data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        if self.aes.whole_launches() {
            let iv = bytemuck::cast(first.to_le_bytes());
            let params = BlockParams { stride: self.sector_bytes as u32, iv, ..BlockParams::default() };
            return self.aes.launch_alone(BlockMode::Xts, direction, &params, data);
        }
        let (bytes, len) = (self.sector_bytes, data.len());
        // Sectors that are not whole blocks do not start at words: one after the other.
        let most = if bytes.is_multiple_of(BLOCK) { (self.aes.launch_bytes() / bytes).clamp(1, MAX_TWEAKS) } else { 1 };
        let (whole, mut at) = (len / bytes, 0);
        while at * bytes < len {
            // A short last sector goes alone.
            let count = if at < whole { most.min(whole - at) } else { 1 };
            let part = data.view_mut(at * bytes..len.min((at + count) * bytes))?;
            self.aes.aligned(part, 0, |part| self.aes.xts(part, count, first + at as u128, direction))?;
            at += count;
        }
        Ok(())
    }
}

impl Aes {
    /// XTS over `count` sectors of equal length from the start of a word on, with key 0 for the data and key 1 for the
    /// tweaks. Several sectors must be whole blocks long.
    fn xts(&self, mut data: ViewMut<'_, u8>, count: usize, first: u128, direction: Direction) -> Result<()> {
        self.plan.ready.wait(self.queue())?;
        let (device, shape) = (&self.plan.device, self.plan.shape);
        let tweaks = self.tweaks(first, count)?;
        let sector_bytes = data.len() / count;
        let (stride, part) = (sector_bytes / BLOCK, sector_bytes % BLOCK);
        let blocks = (stride - usize::from(part > 0)) as u32;
        let units = blocks.div_ceil(self.per_thread());
        let (total, stride) = (u64::from(units) * count as u64, stride as u32);
        let (schedule, tables) = (&self.plan.schedule, &self.plan.tables);
        if blocks > 0 {
            let kernel = self.block_kernel(BlockMode::Xts, direction)?;
            let params = BlockParams { units: total as u32, messages: units, stride, blocks, ..BlockParams::default() };
            let groups = self.block_groups(total);
            let args = &mut [Arg::write(data.reborrow()), key(&tweaks), key(schedule), Arg::read(tables)];
            // SAFETY: sector i < count has `blocks` whole blocks from word i · stride on within the data, and a tweak.
            unsafe { kernel.launch(self.queue(), groups, &params, args) }?;
        }
        if part > 0 {
            let slot = &self.plan.serial[SerialMode::XtsSteal as usize][direction as usize];
            let kernel = slot.get(device, || shape.serial(SerialMode::XtsSteal, direction, self.ciphers()))?;
            let (count, tail) = (count as u32, part as u32);
            let params = SerialParams { count, blocks, stride, tail, ..SerialParams::default() };
            let groups = self.groups(count.into(), THREADS.into(), THREADS);
            let args = &mut [Arg::write(data), key(&tweaks), key(schedule), Arg::read(tables)];
            // SAFETY: the last whole block of each sector and the short one after it are within the data.
            unsafe { kernel.launch(self.queue(), groups, &params, args) }?;
        }
        Ok(())
    }

    /// The numbers of sectors, encrypted with key 1.
    fn tweaks(&self, first: u128, sectors: usize) -> Result<Buffer<u8>> {
        let mut tweaks = self.plan.device.alloc_with::<u8>(sectors * BLOCK, Secrecy::Secret)?;
        self.message(Work::Tweak, 1, first.to_le_bytes(), tweaks.as_view_mut())?;
        Ok(tweaks)
    }
}

fn expect_sector(bytes: usize) -> Result<()> {
    match bytes {
        BLOCK..=MAX_SECTOR => Ok(()),
        actual => Err(Error::SectorLength { actual }),
    }
}
