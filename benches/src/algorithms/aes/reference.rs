//! What each mode makes of data, by RustCrypto's block ciphers and the definitions.

use ::aes::{Aes128, Aes192, Aes256};
use aes_gcm::{
    AesGcm,
    aead::{AeadInOut, KeyInit},
};
use anyhow::{Context, Result};
use cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, InnerIvInit, StreamCipher, StreamCipherSeek,
    consts::{U12, U16},
};
use ctr::{CtrCore, flavors};

use super::{IV, KEY, SECTOR, pattern::pattern_at};

/// The counter of the first block that GCM encrypts with a nonce.
pub(super) fn gcm_counter(nonce: &[u8; 12]) -> [u8; 16] {
    let mut counter = [0; 16];
    counter[..12].copy_from_slice(nonce);
    counter[15] = 2;
    counter
}

pub(super) fn reference_seal(key_bytes: usize, nonce: &[u8; 12], data: &mut [u8]) -> Result<Vec<u8>> {
    fn run<C: Cipher + KeyInit>(nonce: &[u8; 12], data: &mut [u8]) -> Result<Vec<u8>> {
        let tag = AesGcm::<C, U12>::from(C::new(&key())).encrypt_inout_detached(&(*nonce).into(), &[], data.into());
        Ok(tag.ok().context("too long")?.to_vec())
    }
    match key_bytes {
        16 => run::<Aes128>(nonce, data),
        24 => run::<Aes192>(nonce, data),
        _ => run::<Aes256>(nonce, data),
    }
}

/// RustCrypto's block function on whole blocks.
pub(super) fn reference_blocks(key: &[u8], decrypt: bool, data: &mut [u8]) {
    fn run<C: Cipher>(cipher: &C, decrypt: bool, data: &mut [u8]) {
        for block in Array::slice_as_chunks_mut(data).0 {
            if decrypt { cipher.decrypt_block(block) } else { cipher.encrypt_block(block) }
        }
    }
    match key.len() {
        16 => run(&Aes128::new_from_slice(key).expect("16 bytes"), decrypt, data),
        24 => run(&Aes192::new_from_slice(key).expect("24 bytes"), decrypt, data),
        _ => run(&Aes256::new_from_slice(key).expect("32 bytes"), decrypt, data),
    }
}

/// Sectors from a place on, by the definition (IEEE 1619).
pub(super) fn reference_xts(key_bytes: usize, at: usize, data: &mut [u8]) {
    let key = xts_key(key_bytes);
    for (i, sector) in data.chunks_mut(SECTOR).enumerate() {
        let mut tweak = ((at / SECTOR + i) as u128).to_le_bytes();
        reference_blocks(&key[key_bytes..], false, &mut tweak);
        let mut tweak = u128::from_le_bytes(tweak);
        for block in sector.as_chunks_mut::<16>().0 {
            let mask = |block: &mut [u8; 16]| *block = (u128::from_le_bytes(*block) ^ tweak).to_le_bytes();
            mask(block);
            reference_blocks(&key[..key_bytes], false, block);
            mask(block);
            tweak = (tweak << 1) ^ ((tweak >> 127) * 0x87);
        }
    }
}

/// CBC decryption of the pattern from a place on.
pub(super) fn reference_cbc_decrypt(key_bytes: usize, at: usize, data: &mut [u8]) {
    let before = if at == 0 { IV.to_vec() } else { pattern_at(at - 16, 16) };
    let previous = [&before[..], data].concat();
    reference_blocks(&KEY[..key_bytes], true, data);
    data.iter_mut().zip(previous).for_each(|(byte, before)| *byte ^= before);
}

/// CBC encryption from the start of a message on.
pub(super) fn reference_cbc_encrypt(key_bytes: usize, iv: [u8; 16], data: &mut [u8]) {
    let mut last = iv;
    for block in data.as_chunks_mut::<16>().0 {
        block.iter_mut().zip(last).for_each(|(byte, last)| *byte ^= last);
        reference_blocks(&KEY[..key_bytes], false, block);
        last = *block;
    }
}

/// RustCrypto's stream from a position on.
pub(super) fn stream(key_bytes: usize, iv: [u8; 16], position: usize, data: &mut [u8]) {
    fn run<C: Cipher>(cipher: &C, iv: [u8; 16], position: u64, data: &mut [u8]) {
        let mut stream = Stream::from_core(CtrCore::inner_iv_init(cipher, &iv.into()));
        stream.seek(position);
        stream.apply_keystream(data);
    }
    match key_bytes {
        16 => run(&Aes128::new(&key()), iv, position as u64, data),
        24 => run(&Aes192::new(&key()), iv, position as u64, data),
        _ => run(&Aes256::new(&key()), iv, position as u64, data),
    }
}

/// A block cipher of RustCrypto.
pub(super) trait Cipher: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16> {}
impl<C: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16>> Cipher for C {}

pub(super) type Stream<'a, C> = cipher::StreamCipherCoreWrapper<CtrCore<&'a C, flavors::Ctr128BE>>;

pub(super) fn key<N: cipher::array::ArraySize>() -> Array<u8, N> {
    Array::from_fn(|i| KEY[i])
}

pub(super) fn xts_key(key_bytes: usize) -> Vec<u8> {
    let mut key = vec![1; 2 * key_bytes];
    key[key_bytes..].copy_from_slice(&KEY[..key_bytes]);
    key
}
