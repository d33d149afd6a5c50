use std::ops::Range;

use evariste_backend::{Arg, Buffer, Device, Queue, Secrecy};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::{
    Aes, Config, Error, Message, Mode, Result,
    batch::Batch,
    block::BLOCK,
    blocks::Work,
    cpu,
    kernels::THREADS,
    params::{BlockMode, BlockParams, Direction, Place, SerialMode, SerialParams},
    ring,
};

/// The longest sector: 2^20 blocks (IEEE 1619, NIST SP 800-38E).
const MAX_SECTOR: usize = BLOCK << 20;

/// Sectors of one launch of XTS, which has 16 bytes of memory for the tweak of each.
const MAX_TWEAKS: usize = 1 << 26;

/// XTS (IEEE 1619, NIST SP 800-38E), for sectors of storage: the length stays, each sector depends on its number, and a
/// sector that is not whole blocks steals from its last one.
///
/// It hides the data of a medium at rest; it authenticates nothing.
#[derive(Clone, Debug)]
pub struct Xts {
    /// Key 0 is for the data, key 1 for the tweaks.
    aes: Aes,
    sector_bytes: usize,
}

impl Xts {
    /// Makes XTS on a device for sectors of `sector_bytes` bytes, with a key of 32, 48 or 64 bytes: two of AES-128, -192 or
    /// -256.
    ///
    /// # Errors
    /// [`Error::KeyLength`] unless `key` has 32, 48 or 64 bytes, [`Error::SectorLength`] unless sectors have 16 to 2^24,
    /// [`Error::EqualKeys`] if both halves of `key` are equal, [`Error::Device`] if the device fails or has too little
    /// memory for the schedules.
    pub fn new(device: &Device, key: &[u8], sector_bytes: usize) -> Result<Self> {
        Self::with_config(device, key, sector_bytes, Config::default())
    }

    /// Does what [`Xts::new`] does, with a configuration.
    ///
    /// # Errors
    /// [`Error::Method`] if the device has too little workgroup memory for the method. Else returns the errors of
    /// [`Xts::new`], for the same reasons.
    pub fn with_config(device: &Device, key: &[u8], sector_bytes: usize, config: Config) -> Result<Self> {
        if !matches!(key.len(), 32 | 48 | 64) {
            return Err(Error::KeyLength { expected: "32, 48 or 64", actual: key.len() });
        }
        expect_sector(sector_bytes)?;
        let (data, tweak) = key.split_at(key.len() / 2);
        if data.ct_eq(tweak).into() {
            return Err(Error::EqualKeys);
        }
        Ok(Self { aes: Aes::with_config(device, &[data, tweak], config)?, sector_bytes })
    }

    /// Returns the bytes of a sector.
    pub fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    /// Encrypts a host slice of sectors, which are numbered from `first` on. The last one may be shorter, but has at least
    /// 16 bytes.
    ///
    /// # Errors
    /// [`Error::SectorLength`] if the last sector has fewer than 16 bytes, [`Error::SectorNumber`] if the number of the
    /// last one exceeds 2^128 − 1: with nothing written. [`Error::Device`] if the device fails or has too little memory:
    /// some pieces of `data` may be done then.
    pub fn encrypt(&self, first: u128, data: &mut [u8]) -> Result<()> {
        self.on_slice(first, data, Direction::Encrypt)
    }

    /// Decrypts a host slice of sectors, as [`Xts::encrypt`] encrypts it.
    ///
    /// # Errors
    /// Returns the errors of [`Xts::encrypt`], for the same reasons.
    pub fn decrypt(&self, first: u128, data: &mut [u8]) -> Result<()> {
        self.on_slice(first, data, Direction::Decrypt)
    }

    /// Encrypts a range of bytes of a buffer as [`Xts::encrypt`] does. Queued: returns before it is done.
    ///
    /// # Errors
    /// [`Error::Device`] for a range that leaves `data` or for a buffer of another device, with nothing written. Else
    /// returns the errors of [`Xts::encrypt`], for the same reasons.
    pub fn encrypt_range(&self, first: u128, data: &mut Buffer<u8>, range: Range<usize>) -> Result<()> {
        self.on_range(None, first, data, range, Direction::Encrypt)
    }

    /// Decrypts a range of bytes of a buffer as [`Xts::decrypt`] does. Queued: returns before it is done.
    ///
    /// # Errors
    /// [`Error::Device`] for a range that leaves `data` or for a buffer of another device, with nothing written. Else
    /// returns the errors of [`Xts::encrypt`], for the same reasons.
    pub fn decrypt_range(&self, first: u128, data: &mut Buffer<u8>, range: Range<usize>) -> Result<()> {
        self.on_range(None, first, data, range, Direction::Decrypt)
    }

    /// The tweak of a sector, encrypted.
    fn tweak(&self, sector: u128) -> Zeroizing<[u8; BLOCK]> {
        Zeroizing::new(self.aes.cipher(1).encrypt(sector.to_le_bytes()))
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
        let sectors = data.chunks_mut(self.sector_bytes).enumerate().collect();
        cpu::each(
            sectors,
            |(_, sector)| sector.len(),
            |(i, sector): (usize, &mut [u8])| {
                let tweak = self.tweak(first + i as u128);
                cpu::xts(self.aes.cipher(0), direction, &tweak, sector);
            },
        );
        Ok(())
    }

    /// Sectors that are whole blocks in pieces; others start anywhere within words, and go as one buffer.
    fn in_pieces(&self, first: u128, data: &mut [u8], direction: Direction) -> Result<()> {
        if !self.sector_bytes.is_multiple_of(BLOCK) {
            let mut buffer = self.aes.device().upload_with::<u8>(data, Secrecy::Secret)?;
            let range = 0..buffer.len();
            self.on_range(None, first, &mut buffer, range, direction)?;
            return Ok(buffer.read(data)?);
        }
        let work = |queue: &Queue, piece: &mut Buffer<u8>, at: usize, len| {
            let first = first + (at / self.sector_bytes) as u128;
            self.on_range(Some(queue), first, piece, 0..len, direction)
        };
        ring::for_len(&self.aes, data.len(), self.sector_bytes)?.run(data, work, |_| ())
    }

    fn on_range(
        &self,
        queue: Option<&Queue>,
        first: u128,
        data: &mut Buffer<u8>,
        range: Range<usize>,
        direction: Direction,
    ) -> Result<()> {
        self.aes.expect_range(data, &range)?;
        self.expect_sectors(first, range.len())?;
        let (bytes, whole, last) =
            (self.sector_bytes, range.len() / self.sector_bytes, range.len() % self.sector_bytes);
        if bytes.is_multiple_of(BLOCK) || whole <= 1 {
            let sectors = Sectors { start: range.start, bytes, count: whole, first };
            self.run(queue, data, sectors, direction)?;
            let start = range.start + whole * bytes;
            // Without a short last sector its number may be one too many.
            let (count, first) = (usize::from(last > 0), first.wrapping_add(whole as u128));
            let rest = Sectors { start, bytes: last, count, first };
            return self.run(queue, data, rest, direction);
        }
        // Sectors that are not whole blocks do not start at words: one after the other.
        range.clone().step_by(bytes).enumerate().try_for_each(|(i, start)| {
            let bytes = bytes.min(range.end - start);
            self.run(queue, data, Sectors { start, bytes, count: 1, first: first + i as u128 }, direction)
        })
    }

    fn run(&self, queue: Option<&Queue>, data: &mut Buffer<u8>, sectors: Sectors, direction: Direction) -> Result<()> {
        if sectors.count == 0 {
            return Ok(());
        }
        self.aes.aligned(queue, data, sectors.range(), 0, |data, start| {
            self.aes.xts(queue, data, Sectors { start, ..sectors }, direction)
        })
    }
}

/// Sectors of XTS that follow each other in a buffer.
#[derive(Clone, Copy, Debug)]
struct Sectors {
    start: usize,
    /// Of each.
    bytes: usize,
    count: usize,
    /// The number of the first.
    first: u128,
}

impl Sectors {
    fn range(&self) -> Range<usize> {
        self.start..self.start + self.bytes * self.count
    }
}

impl Aes {
    /// XTS over sectors of equal length from the start of a word on, with key 0 for the data and key 1 for the tweaks.
    /// Several sectors must be whole blocks long.
    fn xts(&self, queue: Option<&Queue>, data: &mut Buffer<u8>, sectors: Sectors, direction: Direction) -> Result<()> {
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
        let message = Message { offset: 0, len: sectors * BLOCK, key: 1, iv: first.to_le_bytes() };
        let batch = Batch::new(self, &tweaks, &message)?;
        self.messages(queue, Work::Tweak, &mut tweaks, &batch)?;
        Ok(tweaks)
    }
}

fn expect_sector(bytes: usize) -> Result<()> {
    match bytes {
        BLOCK..=MAX_SECTOR => Ok(()),
        actual => Err(Error::SectorLength { actual }),
    }
}
