use std::ops::Range;

use evariste_backend::{Buffer, Device};
use subtle::ConstantTimeEq;

use crate::{
    Aes, Config, Error, Mode, Result,
    cpu::{self, BLOCK},
    kernels::Direction,
};

/// The longest sector: 2^20 blocks (IEEE 1619, NIST SP 800-38E).
const MAX_SECTOR: usize = BLOCK << 20;

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
    /// Sectors of `sector_bytes`, with a key of 32, 48 or 64 bytes: two of AES-128, -192 or -256.
    ///
    /// # Errors
    /// [`Error::KeyLength`], [`Error::EqualKeys`], [`Error::SectorLength`], [`Error::Device`].
    pub fn new(device: &Device, key: &[u8], sector_bytes: usize) -> Result<Self> {
        Self::with_config(device, key, sector_bytes, Config::default())
    }

    /// [`Xts::new`] with choices.
    ///
    /// # Errors
    /// As [`Xts::new`], and [`Error::Method`].
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

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    /// Encrypts a host slice: sectors from number `first` on, of which the last may be shorter, but not than 16 bytes.
    ///
    /// # Errors
    /// [`Error::SectorLength`], [`Error::Device`].
    pub fn encrypt(&self, first: u128, data: &mut [u8]) -> Result<()> {
        self.on_slice(first, data, Direction::Encrypt)
    }

    /// The inverse of [`Xts::encrypt`].
    ///
    /// # Errors
    /// As [`Xts::encrypt`].
    pub fn decrypt(&self, first: u128, data: &mut [u8]) -> Result<()> {
        self.on_slice(first, data, Direction::Decrypt)
    }

    /// [`Xts::encrypt`] on part of a buffer.
    ///
    /// # Errors
    /// As [`Xts::encrypt`], and [`Error::TooLong`] beyond 2^35 bytes.
    pub fn encrypt_range(&self, first: u128, data: &mut Buffer<u8>, range: Range<usize>) -> Result<()> {
        self.on_range(first, data, range, Direction::Encrypt)
    }

    /// [`Xts::decrypt`] on part of a buffer.
    ///
    /// # Errors
    /// As [`Xts::encrypt_range`].
    pub fn decrypt_range(&self, first: u128, data: &mut Buffer<u8>, range: Range<usize>) -> Result<()> {
        self.on_range(first, data, range, Direction::Decrypt)
    }

    /// The tweak of a sector, encrypted.
    fn tweak(&self, sector: u128) -> [u8; BLOCK] {
        self.aes.cipher(1).encrypt(sector.to_le_bytes())
    }

    fn expect_sectors(&self, len: usize) -> Result<()> {
        match len % self.sector_bytes {
            0 => Ok(()),
            last => expect_sector(last),
        }
    }

    fn on_slice(&self, first: u128, data: &mut [u8], direction: Direction) -> Result<()> {
        use rayon::prelude::*;

        self.expect_sectors(data.len())?;
        if !self.aes.on_host(Mode::Xts, data.len())? {
            return self.aes.through_device(data, |buffer| self.on_range(first, buffer, 0..buffer.len(), direction));
        }
        data.par_chunks_mut(self.sector_bytes).enumerate().for_each(|(i, sector)| {
            let tweak = self.tweak(first.wrapping_add(i as u128));
            cpu::xts(self.aes.cipher(0), direction, tweak, sector);
        });
        Ok(())
    }

    fn on_range(&self, first: u128, data: &mut Buffer<u8>, range: Range<usize>, direction: Direction) -> Result<()> {
        self.aes.expect_range(data, &range)?;
        self.expect_sectors(range.len())?;
        let sector = |i: usize| first.wrapping_add(i as u128);
        let (whole, last) = (range.len() / self.sector_bytes, range.len() % self.sector_bytes);
        if self.sector_bytes.is_multiple_of(BLOCK) || whole <= 1 {
            let len = whole * self.sector_bytes;
            self.run(data, range.start, self.sector_bytes, whole, first, direction)?;
            return self.run(data, range.start + len, last, usize::from(last > 0), sector(whole), direction);
        }
        // Sectors that are not whole blocks do not start at words: one after the other.
        range.clone().step_by(self.sector_bytes).enumerate().try_for_each(|(i, start)| {
            let bytes = self.sector_bytes.min(range.end - start);
            self.run(data, start, bytes, 1, sector(i), direction)
        })
    }

    fn run(
        &self,
        data: &mut Buffer<u8>,
        start: usize,
        sector_bytes: usize,
        sectors: usize,
        first: u128,
        direction: Direction,
    ) -> Result<()> {
        if sectors == 0 {
            return Ok(());
        }
        self.aes.aligned(None, data, start..start + sector_bytes * sectors, 0, |data, start| {
            self.aes.xts(data, start, sector_bytes, sectors, first, direction)
        })
    }
}

fn expect_sector(bytes: usize) -> Result<()> {
    match bytes {
        BLOCK..=MAX_SECTOR => Ok(()),
        actual => Err(Error::SectorLength { actual }),
    }
}
