//! What takes minutes: long chains, and sizes that 32 bits cannot say.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use ::aes::{Aes128, Aes192, Aes256};
use cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, KeyInit, KeyIvInit, StreamCipher, StreamCipherSeek,
    consts,
};
use ctr::Ctr128BE;
use evariste::aes::{Aes, Counter, Message, Method};
use evariste::backend::Device;

use super::{bytes, on_device, streams::Folder};
use crate::{
    expect::{expect_equal, expect_same},
    harness::{DeviceTrials, Outcome},
};

/// Beyond what 32 bits can say of bytes.
const LONG: u64 = (4 << 30) + 1;

/// Bytes that are compared at each place.
const WINDOW: usize = 1 << 16;

const KEY: [u8; 32] = [3; 32];
const IV: [u8; 16] = [0xff; 16];

pub(super) fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("full::monte_carlo", monte_carlo);
    trials.add_large("full::four_gib_and_one_byte", LONG, LONG, four_gib_and_one_byte);
    trials.add_large("full::files_of_four_gib_and_one_byte", 0, 0, long_files);
    trials.add_large("full::ctr_of_64_gib_and_one_byte", HUGE, HUGE, huge_ctr);
    trials.add_large("full::ctr_on_a_copy_of_64_gib", HUGE, 2 * HUGE, huge_copy);
    trials.add_large("full::gcm_of_64_gib", HUGE, HUGE, huge_gcm);
    trials.add_large("full::ecb_and_cbc_of_64_gib_and_one_block", HUGE, HUGE, huge_chain);
    trials.add_large("full::xts_of_64_gib_and_one_sector", HUGE, HUGE + (HUGE >> 6), huge_xts);
    trials.add_large("full::batches_at_64_gib", HUGE, HUGE, huge_batches);
}

/// The Monte Carlo test of AESAVS, 6.4.1, for encryption: 100 rounds of 1,000 encryptions, each of the last one's
/// result.
fn monte_carlo(device: &Device) -> Outcome {
    monte_carlo_with::<Aes128>(device, 16)?;
    monte_carlo_with::<Aes192>(device, 24)?;
    monte_carlo_with::<Aes256>(device, 32)
}

fn monte_carlo_with<C>(device: &Device, key_bytes: usize) -> Outcome
where
    C: KeyInit + BlockCipherEncrypt + BlockSizeUser<BlockSize = consts::U16>,
{
    let mut key = bytes(key_bytes, 1);
    let mut block: [u8; 16] = bytes(16, 2).try_into().map_err(|_| "16 bytes")?;
    for round in 0..100 {
        let reference = C::new_from_slice(&key).map_err(|_| "the length of a key")?;
        let (mut last, mut expected) = ([0; 16], Array::from(block));
        let ecb = Aes::with_keys(device, &[&key], on_device(Method::fastest(device.info())))?.ecb();
        let mut data = device.upload::<u8>(&block)?;
        for i in 0..1000 {
            if i == 999 {
                last = expected.0;
            }
            reference.encrypt_block(&mut expected);
            ecb.encrypt(&mut data)?;
        }
        expect_same(&format!("AES-{}, round {round}", 8 * key_bytes), &data.to_vec()?, &expected)?;
        block = expected.0;
        // The last bytes of the two last blocks.
        let mask = [last, block].concat();
        key.iter_mut().zip(&mask[32 - key_bytes..]).for_each(|(key, byte)| *key ^= byte);
    }
    Ok(())
}

/// Places that are compared.
fn windows() -> [u64; 4] {
    [0, 1 << 31, (1 << 32) - WINDOW as u64, LONG - WINDOW as u64]
}

fn stream(at: u64) -> Vec<u8> {
    let mut expected = vec![0; WINDOW];
    let mut reference = Ctr128BE::<Aes256>::new(&KEY.into(), &IV.into());
    reference.seek(at);
    reference.apply_keystream(&mut expected);
    expected
}

/// Positions and places that need more than 32 bits.
fn four_gib_and_one_byte(device: &Device) -> Outcome {
    let len = LONG as usize;
    let mut data = device.zeros::<u8>(len)?;
    Aes::new(device, &KEY)?.ctr(&IV)?.apply(&mut data)?;
    for at in windows() {
        let actual = data.view(at as usize..at as usize + WINDOW)?.to_vec()?;
        expect_same(&format!("at {at}"), &actual, &stream(at))?;
    }
    let gcm = Aes::new(device, &KEY)?.gcm()?;
    let tag = gcm.seal(&[1; 12], &[], &mut data)?;
    Ok(gcm.open(&[1; 12], &[], &mut data, tag.as_ref())?)
}

/// Beyond what 32 bits can say of words of 16 bytes, with room for a sector and what lies around it.
const HUGE: u64 = (64 << 30) + (1 << 20);

/// What data is before: this stream.
const PATTERN: [u8; 16] = [0x3c; 16];

/// Where data is compared: the start, around 2^32 and 2^36, and the end.
fn places(end: u64) -> Vec<u64> {
    let window = WINDOW as u64;
    let borders = [0, 1 << 31, (1 << 32) - window, 1 << 32, 1 << 35, (1 << 36) - window, 1 << 36];
    borders.into_iter().filter(|at| at + window <= end).chain([end - window]).collect()
}

fn pattern(at: u64, len: usize) -> Vec<u8> {
    stream_from(&PATTERN, at, vec![0; len])
}

fn stream_from(iv: &[u8; 16], at: u64, mut data: Vec<u8>) -> Vec<u8> {
    let mut reference = Ctr128BE::<Aes256>::new(&KEY.into(), iv.into());
    reference.seek(at);
    reference.apply_keystream(&mut data);
    data
}

/// A buffer of [`HUGE`] bytes, by pieces that are far from any border.
fn patterned(device: &Device) -> Result<evariste::backend::Buffer<u8>, libtest_mimic::Failed> {
    let mut data = device.zeros::<u8>(HUGE as usize)?;
    let mut stream = Aes::new(device, &KEY)?.ctr(&PATTERN)?;
    for start in (0..HUGE as usize).step_by(1 << 30) {
        stream.apply(data.view_mut(start..(HUGE as usize).min(start + (1 << 30)))?)?;
    }
    for at in places(HUGE) {
        expect_at("the pattern", &data, at, &pattern(at, WINDOW))?;
    }
    Ok(data)
}

fn expect_at(what: &str, data: &evariste::backend::Buffer<u8>, at: u64, expected: &[u8]) -> Outcome {
    let actual = data.view(at as usize..at as usize + expected.len())?.to_vec()?;
    expect_same(&format!("{what}, at {at}"), &actual, expected)
}

fn huge_ctr(device: &Device) -> Outcome {
    let mut data = patterned(device)?;
    for method in [Method::fastest(device.info()), Method::Bitsliced] {
        let aes = Aes::with_keys(device, &[&KEY], on_device(method))?;
        for end in [(1 << 36) - 1, 1 << 36, (1 << 36) + 1, HUGE] {
            aes.ctr(&IV)?.apply(data.view_mut(..end as usize)?)?;
            for at in places(end) {
                expect_at("counter mode", &data, at, &stream_from(&IV, at, pattern(at, WINDOW)))?;
            }
            if end < HUGE {
                expect_at("after it", &data, end, &pattern(end, 100))?;
            }
            aes.ctr(&IV)?.apply(data.view_mut(..end as usize)?)?;
            for at in places(HUGE) {
                expect_at("and back", &data, at, &pattern(at, WINDOW))?;
            }
        }
    }
    Ok(())
}

/// At a place that the position does not fit, of a length that a copy counts in more than 32 bits.
fn huge_copy(device: &Device) -> Outcome {
    let mut data = patterned(device)?;
    let range = 3..(1 << 36) + 77_u64;
    Aes::new(device, &KEY)?.ctr(&IV)?.apply(data.view_mut(range.start as usize..range.end as usize)?)?;
    for at in places(range.end - range.start) {
        let expected = stream_from(&IV, at, pattern(range.start + at, WINDOW));
        expect_at("counter mode", &data, range.start + at, &expected)?;
    }
    expect_at("before it", &data, 0, &pattern(0, 3))?;
    expect_at("after it", &data, range.end, &pattern(range.end, 100))
}

/// The longest message, up to the border and across it.
fn huge_gcm(device: &Device) -> Outcome {
    let mut data = patterned(device)?;
    let gcm = Aes::new(device, &KEY)?.gcm()?;
    let len = (1 << 36) - 32;
    let mut counter = [1; 16];
    counter[12..].copy_from_slice(&[0, 0, 0, 2]);
    for start in [0, 16, 32, 64_u64] {
        let range = start as usize..start as usize + len;
        let tag = gcm.seal(&[1; 12], b"aad", data.view_mut(range.clone())?)?;
        for at in places(len as u64) {
            // The counter of 32 bits does not wrap before the end.
            let expected = stream_from(&counter, at, pattern(start + at, WINDOW));
            expect_at("sealed", &data, start + at, &expected)?;
        }
        expect_at("after it", &data, range.end as u64, &pattern(range.end as u64, 100))?;
        let last = range.end - 1..range.end;
        let right = data.view(last.clone())?.to_vec()?;
        data.view_mut(last.clone())?.write(&[right[0] ^ 1])?;
        let error = crate::expect::expect_error(
            "changed",
            gcm.open(&[1; 12], b"aad", data.view_mut(range.clone())?, tag.as_ref()),
        )?;
        expect_equal("changed", &error, &evariste::aes::Error::Tag { message: None })?;
        data.view_mut(last)?.write(&right)?;
        gcm.open(&[1; 12], b"aad", data.view_mut(range)?, tag.as_ref())?;
        for at in places(HUGE) {
            expect_at("opened", &data, at, &pattern(at, WINDOW))?;
        }
    }
    Ok(())
}

fn cipher_blocks(data: &mut [u8], decrypt: bool) {
    let cipher = Aes256::new(&KEY.into());
    for block in Array::slice_as_chunks_mut(data).0 {
        if decrypt { cipher.decrypt_block(block) } else { cipher.encrypt_block(block) }
    }
}

fn huge_chain(device: &Device) -> Outcome {
    let mut data = patterned(device)?;
    let aes = Aes::new(device, &KEY)?;
    let end = (1 << 36) + 16_u64;
    aes.ecb().encrypt(data.view_mut(..end as usize)?)?;
    for at in places(end) {
        let mut expected = pattern(at, WINDOW);
        cipher_blocks(&mut expected, false);
        expect_at("ecb", &data, at, &expected)?;
    }
    expect_at("after it", &data, end, &pattern(end, 100))?;
    aes.ecb().decrypt(data.view_mut(..end as usize)?)?;
    aes.cbc().decrypt(&[9; 16], data.view_mut(..end as usize)?)?;
    for at in places(end) {
        let before = if at == 0 { vec![9; 16] } else { pattern(at - 16, 16) };
        let mut expected = pattern(at, WINDOW);
        let previous = [before, expected.clone()].concat();
        cipher_blocks(&mut expected, true);
        expected.iter_mut().zip(previous).for_each(|(byte, before)| *byte ^= before);
        expect_at("cbc", &data, at, &expected)?;
    }
    expect_at("after it", &data, end, &pattern(end, 100))
}

fn huge_xts(device: &Device) -> Outcome {
    const SECTOR: usize = 4096;
    let mut data = patterned(device)?;
    let key: Vec<u8> = (0..64).collect();
    let reference = evariste::aes::Xts::new(&Device::cpu(), &key, SECTOR)?;
    for method in [Method::fastest(device.info()), Method::Bitsliced] {
        let xts = evariste::aes::Xts::with_config(device, &key, SECTOR, on_device(method))?;
        let end = (1 << 36) + SECTOR as u64;
        xts.encrypt(7, data.view_mut(..end as usize)?)?;
        for at in places(end).into_iter().map(|at| at / SECTOR as u64 * SECTOR as u64) {
            let mut expected = pattern(at, SECTOR);
            reference.encrypt_host(7 + u128::from(at) / SECTOR as u128, &mut expected)?;
            expect_at("xts", &data, at, &expected)?;
        }
        expect_at("after it", &data, end, &pattern(end, 100))?;
        xts.decrypt(7, data.view_mut(..end as usize)?)?;
        for at in places(HUGE) {
            expect_at("xts, back", &data, at, &pattern(at, WINDOW))?;
        }
    }
    Ok(())
}

/// Messages at the border, across it and behind it, and one that ends there and is longer than a launch.
fn huge_batches(device: &Device) -> Outcome {
    let mut data = patterned(device)?;
    let aes = Aes::new(device, &KEY)?;
    let border = 1_usize << 36;
    let spans = [(border - 160, 70), (border - 64, 65), (border + 16, 1000), (16, border - 1024)];
    let messages: Vec<Message> = spans
        .iter()
        .enumerate()
        .map(|(i, &(offset, len))| Message { offset, len, key: 0, iv: [i as u8; 16] })
        .collect();
    aes.ctr_batch(&mut data, &messages, Counter::Bits128)?;
    for message in &messages {
        let ends = if message.len < WINDOW { vec![0] } else { places(message.len as u64) };
        for at in ends {
            let place = message.offset as u64 + at;
            let expected = stream_from(&message.iv, at, pattern(place, message.len.min(WINDOW)));
            expect_at("a batch", &data, place, &expected)?;
        }
    }
    for at in [0, border - 176, border - 80, border + 1040] {
        expect_at("between messages", &data, at as u64, &pattern(at as u64, 10))?;
    }
    Ok(())
}

fn long_files(device: &Device) -> Outcome {
    let folder = Folder::new()?;
    let [plain, sealed, opened] = ["plain", "sealed", "opened"].map(|name| folder.file(name));
    File::create(&plain)?.set_len(LONG)?;
    let aes = Aes::new(device, &KEY)?;
    expect_equal("bytes", &aes.ctr(&IV)?.apply_file(&plain, &sealed, |_| ())?, &LONG)?;
    expect_windows("counter mode", &sealed, stream)?;
    aes.ctr(&IV)?.apply_file(&sealed, &sealed, |_| ())?;
    expect_windows("and back", &sealed, |_| vec![0; WINDOW])?;
    let gcm = aes.gcm()?;
    gcm.seal_file(&[1; 12], b"long", &plain, &sealed, |_| ())?;
    expect_equal("bytes", &sealed.metadata()?.len(), &(LONG + 16))?;
    gcm.open_file(&[1; 12], b"long", &sealed, &opened, |_| ())?;
    expect_windows("opened", &opened, |_| vec![0; WINDOW])?;
    fs::remove_file(&opened)?;
    folder.expect_files(2)
}

fn expect_windows(what: &str, path: &Path, expected: impl Fn(u64) -> Vec<u8>) -> Outcome {
    let mut file = File::open(path)?;
    expect_equal(&format!("{what}, bytes"), &file.metadata()?.len(), &LONG)?;
    for at in windows() {
        let mut actual = vec![0; WINDOW];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut actual)?;
        expect_same(&format!("{what}, at {at}"), &actual, &expected(at))?;
    }
    Ok(())
}
