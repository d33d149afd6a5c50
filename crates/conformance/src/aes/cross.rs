//! Against RustCrypto's crates.

use std::thread;

use ::aes::{Aes128, Aes192, Aes256};
use aes_gcm::{
    AesGcm,
    aead::{AeadInOut, KeyInit},
};
use cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, KeyIvInit, StreamCipher, StreamCipherSeek, consts,
};
use ctr::{Ctr32BE, Ctr128BE};
use evariste_aes::{Aes, Config, Counter, Error, Gcm, GcmMessage, Message, Method, Mode, Tag, Xts};
use evariste_backend::{Device, Kind, Secrecy, Transfer, ViewMut};
use libtest_mimic::Failed;

use super::{KEY_BYTES, bytes, on_device};
use crate::{Outcome, Suite, expect, expect_equal, expect_same, sizes::lengths};

pub(super) fn add(suite: &mut Suite<'_>) {
    for method in Method::ALL {
        let name = format!("{method:?}").to_lowercase();
        suite.add_with(&format!("{name}::ctr"), move |device| ctr(device, method));
        suite.add_with(&format!("{name}::ctr_by_strides"), move |device| ctr_by_strides(device, method));
        suite.add_with(&format!("{name}::ecb"), move |device| ecb(device, method));
        suite.add_with(&format!("{name}::cbc"), move |device| cbc(device, method));
        suite.add_with(&format!("{name}::xts"), move |device| xts(device, method));
        suite.add_with(&format!("{name}::gcm"), move |device| gcm(device, method));
        suite.add_with(&format!("{name}::batches"), move |device| batches(device, method));
        suite.add_with(&format!("{name}::many_units"), move |device| many_units(device, method));
    }
    suite.add("host_slices", host_slices);
    suite.add_alone("crossovers", crossovers);
    suite.add("counters_carry_and_wrap", counters);
    suite.add("boundaries", borders);
    suite.add("split_launches", split_launches);
    suite.add("views", views);
    suite.add("views_of_secrets", views_of_secrets);
    suite.add("configurations", configurations);
    suite.add("long_ghash", long_ghash);
    suite.add("keys_are_zeroed", keys_are_zeroed);
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
        let aes = Aes::with_config(device, &[&key], on_device(method))?;
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
            let mut stream = aes.ctr(&iv)?.counter(counter);
            stream.seek(position.into())?;
            stream.apply_buffer(data.view_mut(offset..offset + len)?)?;
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
        let config = Config { grid_stride, ..on_device(method) };
        let mut data = device.upload::<u8>(&plain)?;
        Aes::with_config(device, &[&key], config)?.ctr(&iv)?.apply_buffer(&mut data)?;
        expect_same(&format!("strides: {grid_stride:?}"), &data.to_vec()?, &expected)?;
    }
    Ok(())
}

/// From host slice to host slice and in pinned memory: short ones on the CPU, long ones in pieces, from odd positions.
fn host_slices(device: &Device) -> Outcome {
    let (key, iv) = (bytes(32, 1), bytes(16, 2));
    for config in [
        Config::default(),
        Config { crossover: Some(0), chunk_bytes: 5000, queues: 1, ..Config::default() },
        Config { crossover: Some(0), chunk_bytes: 1 << 16, queues: 4, ..Config::default() },
    ] {
        let aes = Aes::with_config(device, &[&key], config)?;
        for (len, position) in [(0, 0), (1, 5), (20_000, 0), (300_001, 7), (1 << 20, 16)] {
            let mut data = bytes(len, 3);
            let mut expected = data.clone();
            ctr_reference(&key, &iv, Counter::Bits128, position, &mut expected)?;
            let mut stream = aes.ctr(&iv)?;
            stream.seek(position.into())?;
            stream.apply(&mut data)?;
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

/// A pinned crossover decides who works on a slice; a measured one is remembered.
fn crossovers(device: &Device) -> Outcome {
    let launches = |config: &Config, len: usize| -> Result<u64, Failed> {
        let mut stream = Aes::with_config(device, &[&[1; 16]], config.clone())?.ctr(&[2; 16])?;
        let before = device.stats().launches;
        let mut data = vec![0; len];
        stream.apply(&mut data)?;
        let mut expected = vec![0; len];
        ctr_reference(&[1; 16], &[2; 16], Counter::Bits128, 0, &mut expected)?;
        expect_same(&format!("{len} bytes"), &data, &expected)?;
        Ok(device.stats().launches - before)
    };
    let config = Config { crossover: Some(1000), ..Config::default() };
    expect_equal("launches for a short slice", &launches(&config, 999)?, &0)?;
    let on_device = device.info().id.kind != Kind::Cpu;
    expect_equal("launches for a long slice", &(launches(&config, 1000)? > 0), &on_device)?;

    let measured = Config { chunk_bytes: 1 << 20, ..Config::default() };
    let aes = Aes::with_config(device, &[&[1; 16]], measured.clone())?;
    for mode in [Mode::Ctr, Mode::Gcm, Mode::Xts, Mode::Cbc] {
        let crossover = aes.crossover(mode)?;
        expect(&format!("{mode:?} from {crossover} bytes on"), crossover >= 1 << 16)?;
        let before = device.stats().launches;
        let again = Aes::with_config(device, &[&[3; 16]], measured.clone())?.crossover(mode)?;
        expect_equal("crossover", &again, &crossover)?;
        expect_equal("launches for what is known", &(device.stats().launches - before), &0)?;
    }
    let crossover = aes.crossover(Mode::Ctr)?;
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
        let aes = Aes::with_config(device, &[&key], on_device(method))?;
        for filled in [1, 4, 5, 8, 9, 12, 13, 16] {
            let mut iv = [0x5a; 16];
            iv[16 - filled..].fill(0xff);
            iv[15] = 0xfd;
            for counter in [Counter::Bits128, Counter::Bits32] {
                let plain = bytes(20_000, 3);
                let mut expected = plain.clone();
                ctr_reference(&key, &iv, counter, 0, &mut expected)?;
                let mut data = device.upload::<u8>(&plain)?;
                aes.ctr(&iv)?.counter(counter).apply_buffer(&mut data)?;
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
        let ecb = Aes::with_config(device, &[&key], on_device(method))?.ecb();
        for (count, offset) in [(0, 0), (1, 0), (7, 16), (9, 3), (256, 0), (257, 1), (5000, 48)] {
            let len = 16 * count;
            let plain = bytes(offset + len + 3, 5);
            let mut expected = plain.clone();
            blocks(&key, false, &mut expected[offset..offset + len]);
            let mut data = device.upload::<u8>(&plain)?;
            ecb.encrypt_buffer(data.view_mut(offset..offset + len)?)?;
            expect_same(&format!("AES-{}, {count} blocks at {offset}", 8 * key_bytes), &data.to_vec()?, &expected)?;
            ecb.decrypt_buffer(data.view_mut(offset..offset + len)?)?;
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
        let cbc = Aes::with_config(device, &[&key], on_device(method))?.cbc();
        for (count, offset) in [(0, 0), (1, 5), (2, 0), (255, 0), (257, 16), (2049, 2), (20_000, 0)] {
            let len = 16 * count;
            let plain = bytes(offset + len + 3, 7);
            let mut expected = plain.clone();
            cbc_reference(&key, &iv, &mut expected[offset..offset + len]);
            let mut data = device.upload::<u8>(&expected)?;
            cbc.decrypt_buffer(&iv, data.view_mut(offset..offset + len)?)?;
            expect_same(&format!("AES-{}, {count} blocks at {offset}", 8 * key_bytes), &data.to_vec()?, &plain)?;
            if count < 1000 {
                cbc.encrypt_buffer(&iv, data.view_mut(offset..offset + len)?)?;
                expect_same("encryption", &data.to_vec()?, &expected)?;
            }
            let mut slice = expected[offset..offset + len].to_vec();
            cbc.decrypt(&iv, &mut slice)?;
            expect_same("host slice", &slice, &plain[offset..offset + len])?;
            cbc.encrypt(&iv, &mut slice)?;
            expect_same("host slice, encryption", &slice, &expected[offset..offset + len])?;
        }
    }
    Ok(())
}

/// CBC in so many workgroups that finding their borders takes several too.
fn borders(device: &Device) -> Outcome {
    let (key, iv) = (bytes(32, 15), [7; 16]);
    for (method, blocks) in [(Method::Sbox, 65_600), (Method::Bitsliced, 8 * 65_600)] {
        let plain = bytes(16 * blocks, 16);
        let mut encrypted = plain.clone();
        cbc_reference(&key, &iv, &mut encrypted);
        let mut data = device.upload::<u8>(&encrypted)?;
        Aes::with_config(device, &[&key], on_device(method))?.cbc().decrypt_buffer(&iv, &mut data)?;
        expect_same(&format!("{blocks} blocks decrypted, {method:?}"), &data.to_vec()?, &plain)?;
    }
    Ok(())
}

/// Data that takes several launches, of few bytes each, gives what one gives.
fn split_launches(device: &Device) -> Outcome {
    let keys = [bytes(16, 31), bytes(16, 32)];
    let key = bytes(32, 33);
    let lens = [0, 1, 160, 16 * 40, 33, 10_000, 16];
    let mut end: usize = 0;
    let messages: Vec<Message> = lens
        .iter()
        .enumerate()
        .map(|(i, &len)| {
            let offset = end;
            end = (end + len).next_multiple_of(16) + 16;
            Message { offset, len, key: i % 2, iv: [0xff - i as u8; 16] }
        })
        .collect();
    let mut whole = messages.clone();
    whole.iter_mut().for_each(|message| message.len = message.len / 16 * 16);
    let nonces: Vec<[u8; 13]> = (0..lens.len()).map(|i| [i as u8; 13]).collect();
    let sealed: Vec<GcmMessage<'_>> = messages
        .iter()
        .zip(&nonces)
        .map(|(m, nonce)| GcmMessage { offset: m.offset, len: m.len, key: m.key, nonce, aad: b"aad" })
        .collect();
    let plain = bytes(end, 34);
    // Each result of each operation, on data that the last one has left.
    let run = |config: Config| -> Result<Vec<Vec<u8>>, Failed> {
        let aes = Aes::with_config(device, &keys, config.clone())?;
        let (gcm, xts) = (aes.gcm()?, Xts::with_config(device, &key, 48, config)?);
        let mut data = device.upload::<u8>(&plain)?;
        let mut results = Vec::new();
        for range in [0..end, 16..16 * 600, 5..end - 3] {
            let blocks = range.start..range.start + range.len() / 16 * 16;
            aes.ctr(&[0xff; 16])?.apply_buffer(data.view_mut(range.clone())?)?;
            results.push(data.to_vec()?);
            results.push(gcm.seal_buffer(&[1; 12], b"aad", data.view_mut(range.clone())?)?.as_ref().to_vec());
            results.push(data.to_vec()?);
            aes.ecb().encrypt_buffer(data.view_mut(blocks.clone())?)?;
            results.push(data.to_vec()?);
            aes.cbc().decrypt_buffer(&[3; 16], data.view_mut(blocks.clone())?)?;
            results.push(data.to_vec()?);
            aes.cbc().encrypt_buffer(&[4; 16], data.view_mut(blocks)?)?;
            results.push(data.to_vec()?);
            xts.encrypt_buffer(7, data.view_mut(range.start..range.start + range.len() / 48 * 48 - 17)?)?;
            results.push(data.to_vec()?);
        }
        aes.ctr_batch(&mut data, &messages, Counter::Bits128)?;
        results.push(data.to_vec()?);
        aes.cbc_decrypt_batch(&mut data, &whole)?;
        results.push(data.to_vec()?);
        aes.cbc_encrypt_batch(&mut data, &whole)?;
        results.push(data.to_vec()?);
        let tags = gcm.seal_batch(&mut data, &sealed)?;
        results.push(data.to_vec()?);
        results.push(tags.iter().flat_map(|tag| tag.as_ref().to_vec()).collect());
        gcm.open_batch(&mut data, &sealed, &tags)?;
        results.push(data.to_vec()?);
        Ok(results)
    };
    for method in [Method::fastest(device.info()), Method::Bitsliced] {
        let expected = run(on_device(method))?;
        for launch_bytes in [0, 5000] {
            let results = run(Config { launch_bytes, ..on_device(method) })?;
            for (i, (actual, expected)) in results.iter().zip(&expected).enumerate() {
                expect_same(&format!("{method:?}, {launch_bytes} bytes a launch, step {i}"), actual, expected)?;
            }
        }
    }
    Ok(())
}

/// The least and the most that a configuration can say.
fn configurations(device: &Device) -> Outcome {
    let (key, iv, plain) = (bytes(32, 35), [0xff; 16], bytes(50_001, 36));
    let usual = Config { crossover: Some(0), ..Config::default() };
    let mut configs = Vec::new();
    for bytes in [0, 1, 15, 17, usize::MAX - 1, usize::MAX] {
        configs.push(Config { chunk_bytes: bytes, ..usual.clone() });
        configs.push(Config { queues: bytes, chunk_bytes: 999, ..usual.clone() });
        configs.push(Config { launch_bytes: bytes as u64, ..usual.clone() });
        configs.push(Config { crossover: Some(bytes), ..usual.clone() });
    }
    configs.extend([Some(false), Some(true)].map(|grid_stride| Config { grid_stride, ..usual.clone() }));
    let mut stream = plain.clone();
    ctr_reference(&key, &iv, Counter::Bits128, 0, &mut stream)?;
    let mut sealed = plain.clone();
    let tag = gcm_reference(&key, &[1; 12], b"aad", &mut sealed)?;
    let mut sectors = plain.clone();
    xts_reference(&bytes(64, 37), 512, 9, &mut sectors);
    for config in configs {
        // Pieces of a block take as many launches as there are blocks.
        let short = config.chunk_bytes < 1000 && config.queues == usual.queues;
        let len = if short { 512 * 3 + 17 } else { plain.len() };
        let what = format!("{config:?}");
        let aes = Aes::with_config(device, &[&key], config.clone())?;
        let mut data = plain[..len].to_vec();
        aes.ctr(&iv)?.apply(&mut data)?;
        expect_same(&what, &data, &stream[..len])?;
        let mut output = Vec::new();
        let done = aes.ctr(&iv)?.copy(&mut &plain[..len], &mut output, |_| ())?;
        expect_equal(&what, &done, &(len as u64))?;
        expect_same(&what, &output, &stream[..len])?;
        let mut pinned = device.host_buffer(len, Transfer::Both, Secrecy::Secret)?;
        pinned.copy_from_slice(&plain[..len]);
        aes.ctr(&iv)?.apply_pinned(&mut pinned)?;
        expect_same(&what, &pinned, &stream[..len])?;

        let gcm = aes.gcm()?;
        let mut data = plain[..len].to_vec();
        let actual = gcm.seal(&[1; 12], b"aad", &mut data)?;
        expect_same(&what, &data, &sealed[..len])?;
        if len == plain.len() {
            expect_same(&what, actual.as_ref(), &tag)?;
        }
        gcm.open(&[1; 12], b"aad", &mut data, actual.as_ref())?;
        expect_same(&what, &data, &plain[..len])?;

        let mut data = plain[..len].to_vec();
        Xts::with_config(device, &bytes(64, 37), 512, config.clone())?.encrypt(9, &mut data)?;
        let whole = len / 512 * 512;
        expect_same(&what, &data[..whole], &sectors[..whole])?;

        let mut data = plain[..len / 16 * 16].to_vec();
        cbc_reference(&key, &iv, &mut data);
        aes.cbc().decrypt(&iv, &mut data)?;
        expect_same(&what, &data, &plain[..len / 16 * 16])?;
    }
    Ok(())
}

/// So few messages and sectors that they are one workgroup's, and so many that they are several's.
fn many_units(device: &Device, method: Method) -> Outcome {
    let key = bytes(32, 17);
    let aes = Aes::with_config(device, &[&key], on_device(method))?;
    for count in [1, 300] {
        let messages: Vec<Message> = (0..count)
            .map(|i| Message { offset: 32 * i, len: 32, key: 0, iv: (i as u128 * 3).to_be_bytes() })
            .collect();
        let part = |message: &Message| message.offset..message.offset + message.len;
        let plain = bytes(32 * count, 18);
        let mut data = device.upload::<u8>(&plain)?;

        let mut expected = plain.clone();
        for message in &messages {
            ctr_reference(&key, &message.iv, Counter::Bits128, 0, &mut expected[part(message)])?;
        }
        aes.ctr_batch(&mut data, &messages, Counter::Bits128)?;
        expect_same(&format!("{count} messages, ctr"), &data.to_vec()?, &expected)?;

        data.write(&plain)?;
        let mut expected = plain.clone();
        messages.iter().for_each(|message| cbc_reference(&key, &message.iv, &mut expected[part(message)]));
        aes.cbc_encrypt_batch(&mut data, &messages)?;
        expect_same(&format!("{count} messages, cbc"), &data.to_vec()?, &expected)?;
        aes.cbc_decrypt_batch(&mut data, &messages)?;
        expect_same(&format!("{count} messages, cbc back"), &data.to_vec()?, &plain)?;
    }

    let key = bytes(64, 19);
    let xts = Xts::with_config(device, &key, 16, on_device(method))?;
    let plain = bytes(16 * 4200, 20);
    let mut expected = plain.clone();
    xts_reference(&key, 16, 3, &mut expected);
    let mut data = device.upload::<u8>(&plain)?;
    xts.encrypt_buffer(3, &mut data)?;
    expect_same("4200 sectors", &data.to_vec()?, &expected)?;
    xts.decrypt_buffer(3, &mut data)?;
    expect_same("4200 sectors, back", &data.to_vec()?, &plain)
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
            xts.encrypt_buffer(first, data.view_mut(offset..offset + len)?)?;
            let what = format!("{len} bytes at {offset} in sectors of {sector_bytes}");
            expect_same(&what, &data.to_vec()?, &expected)?;
            xts.decrypt_buffer(first, data.view_mut(offset..offset + len)?)?;
            expect_same("back", &data.to_vec()?, &plain)?;
            let host = Xts::new(device, &key, sector_bytes)?;
            let mut slice = plain[offset..offset + len].to_vec();
            host.encrypt(first, &mut slice)?;
            expect_same("host slice", &slice, &expected[offset..offset + len])?;
            host.decrypt(first, &mut slice)?;
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
        let gcm = Aes::with_config(device, &[&key], on_device(method))?.gcm()?;
        for (len, offset, aad) in [(0, 0, 0), (1, 0, 13), (16, 3, 16), (100, 0, 1), (70_000, 32, 100), (200_003, 9, 0)]
        {
            let (plain, aad) = (bytes(offset + len + 3, 11), bytes(aad, 12));
            let range = offset..offset + len;
            let mut expected = plain.clone();
            let tag = gcm_reference(&key, &nonce, &aad, &mut expected[range.clone()])?;
            let mut data = device.upload::<u8>(&plain)?;
            let sealed = gcm.seal_buffer(&nonce, &aad, data.view_mut(range.clone())?)?;
            expect_same(&format!("{len} bytes at {offset}"), &data.to_vec()?, &expected)?;
            expect_same("tag", sealed.as_ref(), &tag)?;
            let mut slice = plain[range.clone()].to_vec();
            expect_same("tag of a host slice", gcm.seal(&nonce, &aad, &mut slice)?.as_ref(), &tag)?;
            expect_same("host slice", &slice, &expected[range.clone()])?;
            gcm.open(&nonce, &aad, &mut slice, &tag)?;
            expect_same("opened host slice", &slice, &plain[range.clone()])?;
            gcm.open_buffer(&nonce, &aad, data.view_mut(range)?, &tag)?;
            expect_same("opened", &data.to_vec()?, &plain)?;
        }
    }
    Ok(())
}

/// GHASH of few segments, of many, and of ones of several strides, against that of RustCrypto.
fn long_ghash(device: &Device) -> Outcome {
    let gcm = Aes::with_config(device, &[&[5; 16]], on_device(Method::fastest(device.info())))?.gcm()?;
    for len in lengths(device, &[65_536, 65_537, 3_000_001]) {
        let plain = bytes(len, 13);
        let mut data = device.upload::<u8>(&plain)?;
        let mut slice = plain.clone();
        let tag = gcm.seal_buffer(&[1; 12], &[], &mut data)?;
        let expected = gcm_reference(&[5; 16], &[1; 12], &[], &mut slice)?;
        expect_same("tag", tag.as_ref(), &expected)?;
    }
    Ok(())
}

/// Ragged messages with keys and nonces of their own.
fn batches(device: &Device, method: Method) -> Outcome {
    let keys: Vec<Vec<u8>> = (0..5).map(|i| bytes(32, 20 + i)).collect();
    let aes = Aes::with_config(device, &keys, on_device(method))?;
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

/// Two views of one buffer that share a word of 16 bytes, each worked on by a thread on a queue of its own, in place and on copies;
/// and views without a byte.
fn views(device: &Device) -> Outcome {
    let (keys, key) = ([bytes(16, 21), bytes(16, 22)], bytes(32, 23));
    for method in [Method::fastest(device.info()), Method::Bitsliced] {
        let plans = |device: &Device, config: Config| -> Result<(Aes, Xts), Failed> {
            let xts = Xts::with_config(device, &key, 48, config.clone())?;
            Ok((Aes::with_config(device, &keys, config)?, xts))
        };
        let ((aes, xts), (host, host_xts)) =
            (plans(device, on_device(method))?, plans(&Device::cpu(), on_device(method))?);
        let gcm = aes.gcm()?;
        let plain = bytes(20_010, 24);
        let mut data = device.upload::<u8>(&plain)?;
        let ready = device.default_queue().record()?;
        // Results of all modes on a view, and the tags.
        let work = |mut data: ViewMut<'_, u8>| -> Result<Vec<Tag>, Error> {
            let queue = device.queue()?;
            queue.wait_for(&ready)?;
            let (aes, gcm, xts) = (aes.on(&queue), gcm.on(&queue), xts.on(&queue));
            for position in 0..16 {
                aes.ctr(&[7; 16])?.apply_at(position, &mut data)?;
            }
            let message = |offset, len, key| Message { offset, len, key, iv: [offset as u8; 16] };
            aes.ctr_batch(&mut data, &[message(0, 1001, 0), message(1008, 33, 1)], Counter::Bits128)?;
            let whole = data.len() / 16 * 16;
            let chained = [message(0, 160, 1), message(160, whole - 160, 0)];
            aes.cbc_encrypt_batch(&mut data, &chained)?;
            aes.cbc().on(&queue).decrypt_buffer(&[8; 16], data.view_mut(..whole)?)?;
            aes.ecb().on(&queue).encrypt_buffer(data.view_mut(data.len() - whole..)?)?;
            xts.encrypt_buffer(3, &mut data)?;
            let sealed = GcmMessage { offset: 16, len: 77, key: 1, nonce: &[1; 12], aad: b"batch" };
            let mut tags = gcm.seal_batch(&mut data, &[sealed])?;
            tags.push(gcm.seal_buffer(&[2; 12], b"aad", &mut data)?);
            gcm.open_buffer(&[2; 12], b"aad", &mut data, tags[1].as_ref())?;
            let last = data.len() - 1;
            xts.decrypt_buffer(9, data.view_mut(last..last)?)?;
            device.default_queue().wait_for(&queue.record()?)?;
            Ok(tags)
        };
        let expected_of = |data: &mut [u8]| -> Result<Vec<Tag>, Error> {
            for position in 0..16 {
                let mut stream = host.ctr(&[7; 16])?;
                stream.seek(position)?;
                stream.apply(data)?;
            }
            let second = Aes::with_config(&Device::cpu(), &[&keys[1]], Config::default())?;
            host.ctr(&[0; 16])?.apply(&mut data[..1001])?;
            second.ctr(&[1008_u32 as u8; 16])?.apply(&mut data[1008..1041])?;
            let whole = data.len() / 16 * 16;
            second.cbc().encrypt(&[0; 16], &mut data[..160])?;
            host.cbc().encrypt(&[160; 16], &mut data[160..whole])?;
            host.cbc().decrypt(&[8; 16], &mut data[..whole])?;
            let start = data.len() - whole;
            host.ecb().encrypt(&mut data[start..])?;
            host_xts.encrypt(3, data)?;
            let tag = second.gcm()?.seal(&[1; 12], b"batch", &mut data[16..93])?;
            let mut sealed = data.to_vec();
            Ok(vec![tag, host.gcm()?.seal(&[2; 12], b"aad", &mut sealed)?])
        };
        let mut expected = plain.clone();
        // The second one starts within a word of 16, at a multiple of 4.
        let (start, middle, end) = (3, 10_004, 20_007);
        let (low, high) = data.view_mut(start..end)?.split_at(middle - start)?;
        let (low, high) = thread::scope(|scope| {
            let low = scope.spawn(|| work(low));
            let high = work(high);
            low.join().map(|low| (low, high)).map_err(|_| Failed::from("a thread panicked"))
        })?;
        let tags = [expected_of(&mut expected[start..middle])?, expected_of(&mut expected[middle..end])?];
        expect_same(&format!("{method:?}"), &data.to_vec()?, &expected)?;
        expect_equal("tags", &[low?, high?], &tags)?;

        let mut none = data.view_mut(5..5)?;
        aes.ctr(&[1; 16])?.apply_buffer(&mut none)?;
        aes.ctr_batch(&mut none, &[], Counter::Bits128)?;
        aes.cbc().encrypt_buffer(&[1; 16], &mut none)?;
        aes.cbc().decrypt_buffer(&[1; 16], &mut none)?;
        aes.ecb().encrypt_buffer(&mut none)?;
        xts.encrypt_buffer(1, &mut none)?;
        let tag = gcm.seal_buffer(&[1; 12], b"aad", &mut none)?;
        expect_equal("a tag of nothing", &tag, &host.gcm()?.seal(&[1; 12], b"aad", &mut [])?)?;
        gcm.open_buffer(&[1; 12], b"aad", &mut none, tag.as_ref())?;
        expect_same("untouched", &data.to_vec()?, &expected)?;
    }
    Ok(())
}

/// Copies of parts of secret buffers are as secret: their memory comes back without them.
fn views_of_secrets(device: &Device) -> Outcome {
    // So long that nothing else has a buffer of this size.
    let plain = vec![0xa5; 150_001];
    let aes = Aes::with_config(device, &[[1; 16]], on_device(Method::Sbox))?;
    let mut data = device.upload_with::<u8>(&plain, Secrecy::Secret)?;
    for _ in 0..2 {
        aes.ctr(&[2; 16])?.apply_buffer(data.view_mut(1..)?)?;
    }
    expect_same("back", &data.to_vec()?, &plain)?;
    for _ in 0..3 {
        let reused = device.alloc::<u8>(plain.len() - 1)?.to_vec()?;
        let leaked = reused.windows(16).any(|window| window == [0xa5; 16]);
        expect_equal("data is left in reused memory", &leaked, &false)?;
    }
    Ok(())
}

/// The memory of a schedule comes back without it.
fn keys_are_zeroed(device: &Device) -> Outcome {
    // So many keys that nothing else has a buffer of this size.
    let keys = vec![[0xa5; 16]; 1501];
    let aes = Aes::with_config(device, &keys, on_device(Method::Sbox))?;
    let schedule_bytes = 480 * keys.len();
    drop(Gcm::new(device, &keys[0])?);
    drop(aes);
    for _ in 0..3 {
        let reused = device.alloc::<u8>(schedule_bytes)?.to_vec()?;
        let leaked = reused.windows(16).any(|window| window == [0xa5; 16]);
        expect_equal("a key is left in reused memory", &leaked, &false)?;
    }
    Ok(())
}
