//! Encodings of points, and where their parts lie.

use ark_ff::PrimeField;

use crate::{
    error::{Error, Result},
    root_field::RootField,
};

/// The encoding of a point as bytes: its x, and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// The encoding of BLS12-381 in ZCash, Ethereum and the drafts of the CFRG: big-endian, the highest coefficient
    /// first. The flags are the highest bits of the first byte: compressed (always set), infinity, and y is the larger
    /// root.
    Zcash,
    /// arkworks' encoding of curves in short Weierstrass form: little-endian, the lowest coefficient first. The flags
    /// are the highest bits of the last byte: y is the larger root, and infinity. For BLS12-381 arkworks uses ZCash's
    /// encoding instead.
    ///
    /// Bits outside coordinates and flags must be 0, so that a point has one encoding. Otherwise the bytes are
    /// [`PointError::NotCanonical`](crate::PointError::NotCanonical). Over primes of 255 and 256 bits the flags take a
    /// byte more than the coordinate. arkworks ignores six bits of that 33rd byte for Pallas, Vesta and other curves.
    Arkworks,
}

/// Where the parts of an encoding lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodingLayout {
    pub(crate) bytes: usize,
    pub(crate) big_endian: bool,
    pub(crate) flags_at: usize,
    pub(crate) flags: u8,
    pub(crate) required: u8,
    pub(crate) larger: u8,
    pub(crate) degree: usize,
    /// Where each coefficient starts, and how many bytes it has.
    pub(crate) parts: [(usize, usize); 2],
}

/// The flag of the point at infinity, in both encodings.
pub(crate) const INFINITE: u8 = 0x40;

impl EncodingLayout {
    pub(crate) fn new<F: RootField>(encoding: Encoding) -> Result<Self> {
        let degree = F::extension_degree() as usize;
        let bits = F::BasePrimeField::MODULUS_BIT_SIZE as usize;
        let plain = bits.div_ceil(8);
        match encoding {
            Encoding::Zcash => {
                let actual = (8 * plain - bits) as u32;
                if actual < 3 {
                    return Err(Error::Flags { expected: 3, actual });
                }
                let start = |k| if k < degree { (degree - 1 - k) * plain } else { 0 };
                let parts = [0, 1].map(|k| (start(k), plain));
                let (bytes, big_endian) = (degree * plain, true);
                Ok(Self { bytes, big_endian, flags_at: 0, flags: 0xe0, required: 0x80, larger: 0x20, degree, parts })
            }
            Encoding::Arkworks => {
                let last = (bits + 2).div_ceil(8);
                let parts = [(0, if degree == 1 { last } else { plain }), (plain, last)];
                let bytes = (degree - 1) * plain + last;
                let (big_endian, flags_at) = (false, bytes - 1);
                Ok(Self { bytes, big_endian, flags_at, flags: 0xc0, required: 0, larger: 0x80, degree, parts })
            }
        }
    }

    /// Byte `i` of a coefficient, from the lowest on, without flags.
    pub(crate) fn digit(&self, point: &[u8], k: usize, i: usize) -> u8 {
        let (start, count) = self.parts[k];
        if i >= count {
            return 0;
        }
        let at = if self.big_endian { start + count - 1 - i } else { start + i };
        if at == self.flags_at { point[at] & !self.flags } else { point[at] }
    }
}
