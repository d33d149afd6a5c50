//! Modes of AES as their standards write them, block after block and bit after bit.

use aes::{
    Aes128Enc, Aes192Enc, Aes256Enc,
    cipher::{BlockCipherEncrypt, KeyInit},
};

pub(crate) const BLOCK: usize = 16;

/// Encrypts a block in place.
type Encrypt = Box<dyn Fn(&mut [u8; BLOCK])>;

/// AES in the forward direction.
pub(crate) struct Cipher(Encrypt);

impl Cipher {
    /// A key of 16, 24 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Self {
        fn boxed<C: BlockCipherEncrypt<BlockSize = aes::cipher::consts::U16> + KeyInit + 'static>(
            key: &[u8],
        ) -> Encrypt {
            let cipher = C::new_from_slice(key).expect("the key has the length of the type");
            Box::new(move |block| cipher.encrypt_block(block.into()))
        }
        Self(match key.len() {
            16 => boxed::<Aes128Enc>(key),
            24 => boxed::<Aes192Enc>(key),
            _ => boxed::<Aes256Enc>(key),
        })
    }

    fn encrypt(&self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = block;
        (self.0)(&mut block);
        block
    }

    /// CTR from byte `position` of the stream of `iv` on; the last `bits` bits of the block count.
    pub(crate) fn ctr(&self, iv: [u8; BLOCK], bits: u32, position: u128, data: &mut [u8]) {
        let mask = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
        let start = u128::from_be_bytes(iv);
        for (i, byte) in data.iter_mut().enumerate() {
            let at = position + i as u128;
            let counter = start & !mask | start.wrapping_add(at / BLOCK as u128) & mask;
            *byte ^= self.encrypt(counter.to_be_bytes())[(at % BLOCK as u128) as usize];
        }
    }

    /// CBC of whole blocks.
    pub(crate) fn cbc_encrypt(&self, iv: [u8; BLOCK], data: &mut [u8]) {
        let mut before = iv;
        for block in data.as_chunks_mut::<BLOCK>().0 {
            before.iter_mut().zip(&*block).for_each(|(a, b)| *a ^= b);
            before = self.encrypt(before);
            *block = before;
        }
    }

    /// GCM: encrypts `data` and gives the tag.
    pub(crate) fn seal(&self, nonce: &[u8], aad: &[u8], data: &mut [u8]) -> [u8; BLOCK] {
        let h = u128::from_be_bytes(self.encrypt([0; BLOCK]));
        let start = match <[u8; 12]>::try_from(nonce) {
            Ok(nonce) => u128::from_be_bytes([0; BLOCK]) | join(nonce) << 32 | 1,
            Err(_) => ghash(h, &[nonce], nonce.len() as u128 * 8),
        };
        let counter = |n: u128| (start & !0xffff_ffff | start.wrapping_add(n) & 0xffff_ffff).to_be_bytes();
        self.ctr(counter(1), 32, 0, data);
        let sum = ghash(h, &[aad, data], ((aad.len() as u128 * 8) << 64) | (data.len() as u128 * 8));
        (sum ^ u128::from_be_bytes(self.encrypt(counter(0)))).to_be_bytes()
    }
}

fn join(nonce: [u8; 12]) -> u128 {
    nonce.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte))
}

/// GHASH of parts that are filled up to whole blocks, and of a last block.
fn ghash(h: u128, parts: &[&[u8]], last: u128) -> u128 {
    let block = |chunk: &[u8]| {
        let mut block = [0; BLOCK];
        block[..chunk.len()].copy_from_slice(chunk);
        u128::from_be_bytes(block)
    };
    let blocks = parts.iter().flat_map(|part| part.chunks(BLOCK).map(block)).chain([last]);
    blocks.fold(0, |sum, block| multiply(sum ^ block, h))
}

/// The product in GF(2^128), where the highest bit is the coefficient of x⁰ (NIST SP 800-38D, section 6.3).
fn multiply(x: u128, y: u128) -> u128 {
    let (mut z, mut v) = (0, y);
    for bit in (0..128).rev() {
        if x >> bit & 1 == 1 {
            z ^= v;
        }
        v = v >> 1 ^ if v & 1 == 1 { 0xe1 << 120 } else { 0 };
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test case 4 of the GCM specification, whose tag takes in all of this but CBC.
    #[test]
    fn gcm_is_that_of_its_specification() {
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
        };
        let mut data = bytes(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        );
        let aad = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let cipher = Cipher::new(&bytes("feffe9928665731c6d6a8f9467308308"));
        let tag = cipher.seal(&bytes("cafebabefacedbaddecaf888"), &aad, &mut data);
        assert_eq!(tag.to_vec(), bytes("5bc94fbc3221a5db94fae95ae7121a47"));
    }
}
