//! The library of Amazon Web Services, from BoringSSL and OpenSSL, with assembly for every processor.

use anyhow::{Result, ensure};
use aws_lc_rs::{aead, cipher, iv::FixedLength};

use super::{
    IV, KEY, NONCE,
    check::check_slice,
    host::time_open,
    pattern::patterned_vec,
    reference::{gcm_counter, reference_seal, stream},
};
use crate::timing::{Budget, Timing};

pub(super) fn ctr(budget: &Budget, key_bytes: usize, len: usize) -> Result<(Timing, Option<u64>, String)> {
    let algorithm = if key_bytes == 16 { &cipher::AES_128 } else { &cipher::AES_256 };
    let key = cipher::EncryptingKey::ctr(cipher::UnboundCipherKey::new(algorithm, &KEY[..key_bytes])?)?;
    let mut data = patterned_vec(len);
    let apply = |data: &mut [u8]| {
        let context = cipher::EncryptionContext::Iv128(FixedLength::from(IV));
        key.less_safe_encrypt(data, context).map(drop).map_err(anyhow::Error::from)
    };
    apply(&mut data)?;
    let checked = check_slice(&data, 16, |at, part| stream(key_bytes, IV, at, part))?;
    Ok((budget.time_queued(|| apply(&mut data), || Ok(()))?, None, checked))
}

fn gcm_key(key_bytes: usize) -> Result<aead::LessSafeKey> {
    let algorithm = if key_bytes == 16 { &aead::AES_128_GCM } else { &aead::AES_256_GCM };
    Ok(aead::LessSafeKey::new(aead::UnboundKey::new(algorithm, &KEY[..key_bytes])?))
}

fn seal(key: &aead::LessSafeKey, data: &mut [u8]) -> Result<aead::Tag> {
    let nonce = aead::Nonce::assume_unique_for_key(NONCE);
    Ok(key.seal_in_place_separate_tag(nonce, aead::Aad::empty(), data)?)
}

pub(super) fn gcm_seal(budget: &Budget, key_bytes: usize, len: usize) -> Result<(Timing, Option<u64>, String)> {
    let key = gcm_key(key_bytes)?;
    let mut data = patterned_vec(len);
    let tag = seal(&key, &mut data)?;
    let checked = check_slice(&data, 16, |at, part| stream(key_bytes, gcm_counter(&NONCE), at, part))?;
    let expected = reference_seal(key_bytes, &NONCE, &mut patterned_vec(len))?;
    ensure!(tag.as_ref() == expected, "the tag is wrong");
    let timing = budget.time_queued(|| seal(&key, &mut data).map(drop), || Ok(()))?;
    Ok((timing, None, checked + ", and the tag"))
}

pub(super) fn gcm_open(budget: &Budget, key_bytes: usize, len: usize) -> Result<(Timing, Option<u64>, String)> {
    let key = gcm_key(key_bytes)?;
    let open = |data: &mut [u8], tag: &[u8]| {
        let nonce = aead::Nonce::assume_unique_for_key(NONCE);
        key.open_in_place_separate_tag(nonce, aead::Aad::empty(), tag, data).map(drop)?;
        Ok(())
    };
    let sealed = |data: &mut [u8]| {
        let tag = reference_seal(key_bytes, &NONCE, data)?;
        ensure!(seal(&key, &mut patterned_vec(len))?.as_ref() == tag, "the tag is wrong");
        Ok(tag)
    };
    let open = |data: &mut [u8], tag: &Vec<u8>| open(data, tag);
    let (timing, checked) = time_open(budget, &mut patterned_vec(len), sealed, open)?;
    Ok((timing, None, checked))
}
