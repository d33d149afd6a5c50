//! Against RustCrypto's crates.

mod divided;
mod views;

use ::aes::{Aes128, Aes192, Aes256};
use aes_gcm::{
    AesGcm,
    aead::{AeadInOut, KeyInit},
};
use cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, KeyIvInit, StreamCipher, StreamCipherSeek, consts,
};
use ctr::{Ctr32BE, Ctr128BE};
use evariste::aes::{Aes, AesConfig, Counter, GcmMessage, Message, Method, Mode, Xts};
use evariste::backend::{Device, Kind, Secrecy, Transfer};
use libtest_mimic::Failed;

use super::{KEY_BYTES, bytes, on_device};
use crate::{
    expect::{expect, expect_equal, expect_same},
    harness::{DeviceTrials, Outcome},
    sizes::lengths,
};

pub(super) fn add(trials: &mut DeviceTrials<'_>) {
    for method in Method::ALL {
        let name = format!("{method:?}").to_lowercase();
        trials.add_with(&format!("{name}::ctr"), move |device| ctr(device, method));
        trials.add_with(&format!("{name}::ctr_by_strides"), move |device| ctr_by_strides(device, method));
        trials.add_with(&format!("{name}::ecb"), move |device| ecb(device, method));
        trials.add_with(&format!("{name}::cbc"), move |device| cbc(device, method));
        trials.add_with(&format!("{name}::xts"), move |device| xts(device, method));
        trials.add_with(&format!("{name}::gcm"), move |device| gcm(device, method));
        trials.add_with(&format!("{name}::batches"), move |device| batches(device, method));
        trials.add_with(&format!("{name}::many_units"), move |device| divided::many_units(device, method));
    }
    trials.add("host_slices", host_slices);
    trials.add_alone("cpu_thresholds", cpu_thresholds);
    trials.add("counters_carry_and_wrap", counters);
    trials.add("boundaries", divided::borders);
    trials.add("split_launches", divided::split_launches);
    trials.add("views", views::views);
    trials.add("views_of_secrets", views::views_of_secrets);
    trials.add("configurations", divided::configurations);
    trials.add("long_ghash", long_ghash);
    trials.add("keys_are_zeroed", views::keys_are_zeroed);
}

/// Evaluates an expression for the cipher of a key's length.
macro_rules! for_key {
    ($key:expr, $cipher:ident => $body:expr) => {
        match $key.len() {
            16 => {
                type $cipher = Aes128;
                $body
            }
            24 => {
                type $cipher = Aes192;
                $body
            }
            _ => {
                type $cipher = Aes256;
                $body
            }
        }
    };
}

fn ctr_reference(key: &[u8], iv: &[u8], counter: Counter, position: u64, data: &mut [u8]) -> Result<(), Failed> {
    fn run<C: KeyIvInit + StreamCipher + StreamCipherSeek>(
        key: &[u8],
        iv: &[u8],
        position: u64,
        data: &mut [u8],
    ) -> Result<(), Failed> {
        let mut cipher = C::new_from_slices(key, iv).map_err(|_| "key or counter block of a wrong length")?;
        cipher.try_seek(position).map_err(|_| "cannot seek")?;
        cipher.try_apply_keystream(data).map_err(|_| "the keystream ends")?;
        Ok(())
    }
    for_key!(key, C => match counter {
        Counter::Bits128 => run::<Ctr128BE<C>>(key, iv, position, data),
        Counter::Bits32 => run::<Ctr32BE<C>>(key, iv, position, data),
    })
}

/// In place, from all positions and to all places within a word, with the bytes around left as they are.
fn ctr(device: &Device, method: Method) -> Outcome {
    for key_bytes in KEY_BYTES {
        let (key, iv) = (bytes(key_bytes, 1), bytes(16, 2));
        let aes = Aes::with_keys(device, &[&key], on_device(method))?;
        for (i, (len, offset, position)) in
            [(0, 3), (1, 0), (15, 1), (16, 0), (17, 15), (255, 7), (4096, 0), (4097, 16), (70_001, 5), (300_000, 0)]
                .into_iter()
                .flat_map(|(len, offset)| [0, offset as u64, 16 * 250 + 9].map(|position| (len, offset, position)))
                .enumerate()
        {
            let counter = if i % 2 == 0 { Counter::Bits128 } else { Counter::Bits32 };
            let plain = bytes(offset + len + 5, i as u64);
            let mut expected = plain.clone();
            ctr_reference(&key, &iv, counter, position, &mut expected[offset..offset + len])?;
            let mut data = device.upload::<u8>(&plain)?;
            let mut stream = aes.ctr(&iv)?.with_counter(counter);
            stream.seek(position.into())?;
            stream.apply(data.view_mut(offset..offset + len)?)?;
            let what = format!("AES-{}, {len} bytes at {offset} from {position}", 8 * key_bytes);
            expect_same(&what, &data.to_vec()?, &expected)?;
            expect_equal("position", &stream.position(), &(u128::from(position) + len as u128))?;
        }
    }
    Ok(())
}

fn ctr_by_strides(device: &Device, method: Method) -> Outcome {
    let (key, iv, plain) = (bytes(16, 1), bytes(16, 2), bytes(1_000_003, 3));
    let mut expected = plain.clone();
    ctr_reference(&key, &iv, Counter::Bits128, 0, &mut expected)?;
    for grid_stride in [None, Some(false), Some(true)] {
        let config = on_device(method).grid_stride(grid_stride);
        let mut data = device.upload::<u8>(&plain)?;
        Aes::with_keys(device, &[&key], config)?.ctr(&iv)?.apply(&mut data)?;
        expect_same(&format!("strides: {grid_stride:?}"), &data.to_vec()?, &expected)?;
    }
    Ok(())
}

/// From host slice to host slice and in pinned memory: short ones on the CPU, long ones in pieces, from odd positions.
fn host_slices(device: &Device) -> Outcome {
    let (key, iv) = (bytes(32, 1), bytes(16, 2));
    for config in [
        AesConfig::default(),
        AesConfig::default().cpu_threshold(0).chunk_bytes(5000).queues(1),
        AesConfig::default().cpu_threshold(0).chunk_bytes(1 << 16).queues(4),
    ] {
        let aes = Aes::with_keys(device, &[&key], config)?;
        for (len, position) in [(0, 0), (1, 5), (20_000, 0), (300_001, 7), (1 << 20, 16)] {
            let mut data = bytes(len, 3);
            let mut expected = data.clone();
            ctr_reference(&key, &iv, Counter::Bits128, position, &mut expected)?;
            let mut stream = aes.ctr(&iv)?;
            stream.seek(position.into())?;
            stream.apply_host(&mut data)?;
            expect_same(&format!("{len} bytes from {position}"), &data, &expected)?;

            let mut pinned = device.host_buffer(len, Transfer::Both, Secrecy::Secret)?;
            pinned.copy_from_slice(&bytes(len, 3));
            stream.seek(position.into())?;
            stream.apply_pinned(&mut pinned)?;
            expect_same(&format!("{len} pinned bytes from {position}"), &pinned, &expected)?;
            expect_equal("position", &stream.position(), &(position as u128 + len as u128))?;
        }
    }
    Ok(())
}

/// A pinned crossover decides whether the CPU or the device works on a slice; a measured one is remembered.
fn cpu_thresholds(device: &Device) -> Outcome {
    let launches = |config: &AesConfig, len: usize| -> Result<u64, Failed> {
        let mut stream = Aes::with_keys(device, &[&[1; 16]], config.clone())?.ctr(&[2; 16])?;
        let before = device.stats().launches;
        let mut data = vec![0; len];
        stream.apply_host(&mut data)?;
        let mut expected = vec![0; len];
        ctr_reference(&[1; 16], &[2; 16], Counter::Bits128, 0, &mut expected)?;
        expect_same(&format!("{len} bytes"), &data, &expected)?;
        Ok(device.stats().launches - before)
    };
    let config = AesConfig::default().cpu_threshold(1000);
    expect_equal("launches for a short slice", &launches(&config, 999)?, &0)?;
    let on_device = device.info().id.kind != Kind::Cpu;
    expect_equal("launches for a long slice", &(launches(&config, 1000)? > 0), &on_device)?;

    let measured = AesConfig::default().chunk_bytes(1 << 20);
    let aes = Aes::with_keys(device, &[&[1; 16]], measured.clone())?;
    for mode in [Mode::Ctr, Mode::Gcm, Mode::Xts, Mode::Cbc] {
        let crossover = aes.cpu_threshold(mode)?;
        expect(&format!("{mode:?} from {crossover} bytes on"), crossover >= 1 << 16)?;
        let before = device.stats().launches;
        let again = Aes::with_keys(device, &[&[3; 16]], measured.clone())?.cpu_threshold(mode)?;
        expect_equal("crossover", &again, &crossover)?;
        expect_equal("launches for what is known", &(device.stats().launches - before), &0)?;
    }
    let crossover = aes.cpu_threshold(Mode::Ctr)?;
    expect_equal("launches under the crossover", &launches(&measured, (crossover - 1).min(1 << 20))?, &0)?;
    if crossover <= 1 << 24 {
        expect("launches from the crossover on", launches(&measured, crossover)? > 0)?;
    }
    Ok(())
}

/// Counters that carry into every word, and 32-bit ones that wrap.
fn counters(device: &Device) -> Outcome {
    let key = bytes(16, 1);
    for method in [Method::fastest(device.info()), Method::Bitsliced] {
        let aes = Aes::with_keys(device, &[&key], on_device(method))?;
        for filled in [1, 4, 5, 8, 9, 12, 13, 16] {
            let mut iv = [0x5a; 16];
            iv[16 - filled..].fill(0xff);
            iv[15] = 0xfd;
            for counter in [Counter::Bits128, Counter::Bits32] {
                let plain = bytes(20_000, 3);
                let mut expected = plain.clone();
                ctr_reference(&key, &iv, counter, 0, &mut expected)?;
                let mut data = device.upload::<u8>(&plain)?;
                aes.ctr(&iv)?.with_counter(counter).apply(&mut data)?;
                expect_same(&format!("{filled} bytes filled, {counter:?}"), &data.to_vec()?, &expected)?;
            }
        }
    }
    Ok(())
}

fn blocks(key: &[u8], decrypt: bool, data: &mut [u8]) {
    fn run<C: KeyInit + BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = consts::U16>>(
        key: &[u8],
        decrypt: bool,
        data: &mut [u8],
    ) {
        let cipher = C::new_from_slice(key).expect("the length of the key fits");
        for block in Array::slice_as_chunks_mut(data).0 {
            if decrypt { cipher.decrypt_block(block) } else { cipher.encrypt_block(block) }
        }
    }
    for_key!(key, C => run::<C>(key, decrypt, data))
}

fn ecb(device: &Device, method: Method) -> Outcome {
    for key_bytes in KEY_BYTES {
        let key = bytes(key_bytes, 4);
        let ecb = Aes::with_keys(device, &[&key], on_device(method))?.ecb();
        for (count, offset) in [(0, 0), (1, 0), (7, 16), (9, 3), (256, 0), (257, 1), (5000, 48)] {
            let len = 16 * count;
            let plain = bytes(offset + len + 3, 5);
            let mut expected = plain.clone();
            blocks(&key, false, &mut expected[offset..offset + len]);
            let mut data = device.upload::<u8>(&plain)?;
            ecb.encrypt(data.view_mut(offset..offset + len)?)?;
            expect_same(&format!("AES-{}, {count} blocks at {offset}", 8 * key_bytes), &data.to_vec()?, &expected)?;
            ecb.decrypt(data.view_mut(offset..offset + len)?)?;
            expect_same("back", &data.to_vec()?, &plain)?;
        }
    }
    Ok(())
}

fn cbc_reference(key: &[u8], iv: &[u8; 16], data: &mut [u8]) {
    let mut last = *iv;
    for block in data.as_chunks_mut::<16>().0 {
        block.iter_mut().zip(last).for_each(|(byte, last)| *byte ^= last);
        blocks(key, false, block);
        last = *block;
    }
}

fn cbc(device: &Device, method: Method) -> Outcome {
    for key_bytes in KEY_BYTES {
        let (key, iv) = (bytes(key_bytes, 6), [9; 16]);
        let cbc = Aes::with_keys(device, &[&key], on_device(method))?.cbc();
        for (count, offset) in [(0, 0), (1, 5), (2, 0), (255, 0), (257, 16), (2049, 2), (20_000, 0)] {
            let len = 16 * count;
            let plain = bytes(offset + len + 3, 7);
            let mut expected = plain.clone();
            cbc_reference(&key, &iv, &mut expected[offset..offset + len]);
            let mut data = device.upload::<u8>(&expected)?;
            cbc.decrypt(&iv, data.view_mut(offset..offset + len)?)?;
            expect_same(&format!("AES-{}, {count} blocks at {offset}", 8 * key_bytes), &data.to_vec()?, &plain)?;
            if count < 1000 {
                cbc.encrypt(&iv, data.view_mut(offset..offset + len)?)?;
                expect_same("encryption", &data.to_vec()?, &expected)?;
            }
            let mut slice = expected[offset..offset + len].to_vec();
            cbc.decrypt_host(&iv, &mut slice)?;
            expect_same("host slice", &slice, &plain[offset..offset + len])?;
            cbc.encrypt_host(&iv, &mut slice)?;
            expect_same("host slice, encryption", &slice, &expected[offset..offset + len])?;
        }
    }
    Ok(())
}

/// IEEE 1619 by its definition, sector by sector.
fn xts_reference(key: &[u8], sector_bytes: usize, first: u128, data: &mut [u8]) {
    let (data_key, tweak_key) = key.split_at(key.len() / 2);
    for (i, sector) in data.chunks_mut(sector_bytes).enumerate() {
        let mut tweak = (first + i as u128).to_le_bytes();
        blocks(tweak_key, false, &mut tweak);
        let mut tweak = u128::from_le_bytes(tweak);
        let one = |block: &mut [u8], tweak: u128| {
            let mask = |block: &mut [u8]| block.iter_mut().zip(tweak.to_le_bytes()).for_each(|(b, t)| *b ^= t);
            mask(block);
            blocks(data_key, false, block);
            mask(block);
        };
        let whole = sector.len() / 16 * 16;
        for block in sector[..whole].as_chunks_mut::<16>().0 {
            one(block, tweak);
            tweak = (tweak << 1) ^ ((tweak >> 127) * 0x87);
        }
        let part = sector.len() - whole;
        if part > 0 {
            let (body, tail) = sector.split_at_mut(whole);
            let last = &mut body[whole - 16..];
            last[..part].swap_with_slice(tail);
            one(last, tweak);
        }
    }
}

fn xts(device: &Device, method: Method) -> Outcome {
    for key_bytes in [32, 64] {
        let key = bytes(key_bytes, 8);
        for (sector_bytes, len, offset) in [
            (16, 16, 0),
            (17, 17, 3),
            (31, 31, 0),
            (100, 316, 0),
            (512, 512 * 40, 0),
            (512, 512 * 3 + 17, 1),
            (4096, 4096 * 5 + 100, 16),
            (8192 + 48, 3 * (8192 + 48), 0),
        ] {
            let xts = Xts::with_config(device, &key, sector_bytes, on_device(method))?;
            let first = u128::from(u64::MAX) - 1;
            let plain = bytes(offset + len + 3, 9);
            let mut expected = plain.clone();
            xts_reference(&key, sector_bytes, first, &mut expected[offset..offset + len]);
            let mut data = device.upload::<u8>(&plain)?;
            xts.encrypt(first, data.view_mut(offset..offset + len)?)?;
            let what = format!("{len} bytes at {offset} in sectors of {sector_bytes}");
            expect_same(&what, &data.to_vec()?, &expected)?;
            xts.decrypt(first, data.view_mut(offset..offset + len)?)?;
            expect_same("back", &data.to_vec()?, &plain)?;
            let host = Xts::new(device, &key, sector_bytes)?;
            let mut slice = plain[offset..offset + len].to_vec();
            host.encrypt_host(first, &mut slice)?;
            expect_same("host slice", &slice, &expected[offset..offset + len])?;
            host.decrypt_host(first, &mut slice)?;
            expect_same("host slice, back", &slice, &plain[offset..offset + len])?;
        }
    }
    Ok(())
}

fn gcm_reference(key: &[u8], nonce: &[u8; 12], aad: &[u8], data: &mut [u8]) -> Result<Vec<u8>, Failed> {
    for_key!(key, C => {
        let cipher = AesGcm::<C, consts::U12>::new_from_slice(key).map_err(|_| "key of a wrong length")?;
        let tag = cipher.encrypt_inout_detached(&(*nonce).into(), aad, data.into()).map_err(|_| "too long")?;
        Ok(tag.to_vec())
    })
}

fn gcm(device: &Device, method: Method) -> Outcome {
    for key_bytes in KEY_BYTES {
        let (key, nonce) = (bytes(key_bytes, 10), [3; 12]);
        let gcm = Aes::with_keys(device, &[&key], on_device(method))?.gcm()?;
        for (len, offset, aad) in [(0, 0, 0), (1, 0, 13), (16, 3, 16), (100, 0, 1), (70_000, 32, 100), (200_003, 9, 0)]
        {
            let (plain, aad) = (bytes(offset + len + 3, 11), bytes(aad, 12));
            let range = offset..offset + len;
            let mut expected = plain.clone();
            let tag = gcm_reference(&key, &nonce, &aad, &mut expected[range.clone()])?;
            let mut data = device.upload::<u8>(&plain)?;
            let sealed = gcm.seal(&nonce, &aad, data.view_mut(range.clone())?)?;
            expect_same(&format!("{len} bytes at {offset}"), &data.to_vec()?, &expected)?;
            expect_same("tag", sealed.as_ref(), &tag)?;
            let mut slice = plain[range.clone()].to_vec();
            expect_same("tag of a host slice", gcm.seal_host(&nonce, &aad, &mut slice)?.as_ref(), &tag)?;
            expect_same("host slice", &slice, &expected[range.clone()])?;
            gcm.open_host(&nonce, &aad, &mut slice, &tag)?;
            expect_same("opened host slice", &slice, &plain[range.clone()])?;
            gcm.open(&nonce, &aad, data.view_mut(range)?, &tag)?;
            expect_same("opened", &data.to_vec()?, &plain)?;
        }
    }
    Ok(())
}

/// GHASH of few segments, of many, and of ones of several strides, against that of RustCrypto.
fn long_ghash(device: &Device) -> Outcome {
    let gcm = Aes::with_keys(device, &[&[5; 16]], on_device(Method::fastest(device.info())))?.gcm()?;
    for len in lengths(device, &[65_536, 65_537, 3_000_001]) {
        let plain = bytes(len, 13);
        let mut data = device.upload::<u8>(&plain)?;
        let mut slice = plain.clone();
        let tag = gcm.seal(&[1; 12], &[], &mut data)?;
        let expected = gcm_reference(&[5; 16], &[1; 12], &[], &mut slice)?;
        expect_same("tag", tag.as_ref(), &expected)?;
    }
    Ok(())
}

/// Ragged messages with keys and nonces of their own.
fn batches(device: &Device, method: Method) -> Outcome {
    let keys: Vec<Vec<u8>> = (0..5).map(|i| bytes(32, 20 + i)).collect();
    let aes = Aes::with_keys(device, &keys, on_device(method))?;
    let lens = [0, 1, 16, 17, 160, 1000, 33, 4096, 5, 70_000, 129, 0, 64];
    let mut messages = Vec::new();
    let mut end = 0;
    for (i, len) in lens.into_iter().cycle().take(100).enumerate() {
        messages.push(Message { offset: end, len, key: i % keys.len(), iv: [i as u8; 16] });
        end = (end + len).next_multiple_of(16) + 16 * (i % 2);
    }
    // In any order.
    messages.sort_by_key(|message| message.iv[0].wrapping_mul(37));
    let plain = bytes(end, 14);
    let part = |message: &Message| message.offset..message.offset + message.len;

    let mut expected = plain.clone();
    for message in &messages {
        ctr_reference(&keys[message.key], &message.iv, Counter::Bits128, 0, &mut expected[part(message)])?;
    }
    let mut data = device.upload::<u8>(&plain)?;
    aes.ctr_batch(&mut data, &messages, Counter::Bits128)?;
    expect_same("ctr", &data.to_vec()?, &expected)?;

    let mut whole = messages.clone();
    whole.iter_mut().for_each(|message| message.len = message.len / 16 * 16);
    let mut expected = plain.clone();
    whole.iter().for_each(|message| cbc_reference(&keys[message.key], &message.iv, &mut expected[part(message)]));
    let mut data = device.upload::<u8>(&plain)?;
    aes.cbc_encrypt_batch(&mut data, &whole)?;
    expect_same("cbc", &data.to_vec()?, &expected)?;
    aes.cbc_decrypt_batch(&mut data, &whole)?;
    expect_same("cbc, back", &data.to_vec()?, &plain)?;

    let gcm = aes.gcm()?;
    let mut expected = plain.clone();
    let mut tags = Vec::new();
    for message in &messages {
        let nonce = [message.iv[0]; 12];
        tags.push(gcm_reference(&keys[message.key], &nonce, &nonce[..5], &mut expected[part(message)])?);
    }
    let nonces: Vec<[u8; 12]> = messages.iter().map(|message| [message.iv[0]; 12]).collect();
    let sealed: Vec<GcmMessage<'_>> = messages
        .iter()
        .zip(&nonces)
        .map(|(m, nonce)| GcmMessage { offset: m.offset, len: m.len, key: m.key, nonce, aad: &nonce[..5] })
        .collect();
    let mut data = device.upload::<u8>(&plain)?;
    let actual: Vec<Vec<u8>> = gcm.seal_batch(&mut data, &sealed)?.iter().map(|tag| tag.as_ref().to_vec()).collect();
    expect_same("gcm", &data.to_vec()?, &expected)?;
    expect_same("gcm, tags", &actual, &tags)?;
    gcm.open_batch(&mut data, &sealed, &tags)?;
    expect_same("gcm, back", &data.to_vec()?, &plain)
}
