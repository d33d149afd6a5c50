use std::fmt;

/// A hash function of bytes, with digests of 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HashFunction {
    /// Keccak-256, as Ethereum uses it: Keccak's own padding, not that of SHA-3.
    Keccak256,
    /// SHA3-256 (FIPS 202).
    Sha3_256,
    /// SHA-256 (FIPS 180-4).
    Sha256,
    /// BLAKE2s with 32 bytes and no key (RFC 7693).
    Blake2s256,
    /// BLAKE3 in its plain mode.
    Blake3,
}

impl HashFunction {
    /// All of them.
    pub const ALL: [Self; 5] = [
        HashFunction::Keccak256,
        HashFunction::Sha3_256,
        HashFunction::Sha256,
        HashFunction::Blake2s256,
        HashFunction::Blake3,
    ];

    /// The byte behind a message.
    pub(super) fn pad(self) -> u32 {
        match self {
            HashFunction::Keccak256 => 0x01,
            HashFunction::Sha3_256 => 0x06,
            HashFunction::Sha256 => 0x80,
            HashFunction::Blake2s256 | HashFunction::Blake3 => 0,
        }
    }

    /// The bytes of a block.
    pub(super) fn block(self) -> u32 {
        match self {
            HashFunction::Keccak256 | HashFunction::Sha3_256 => 136,
            HashFunction::Sha256 | HashFunction::Blake2s256 | HashFunction::Blake3 => 64,
        }
    }
}

impl fmt::Display for HashFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HashFunction::Keccak256 => "Keccak-256",
            HashFunction::Sha3_256 => "SHA3-256",
            HashFunction::Sha256 => "SHA-256",
            HashFunction::Blake2s256 => "BLAKE2s-256",
            HashFunction::Blake3 => "BLAKE3",
        })
    }
}
