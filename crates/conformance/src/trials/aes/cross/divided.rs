//! Work that is divided: at borders of launches and buffers, by configurations, and by units of a batch.

use evariste::{
    aes::{Aes, AesConfig, Counter, GcmMessage, Message, Method, Xts},
    backend::{Device, Secrecy, Transfer},
};
use libtest_mimic::Failed;

use super::{cbc_reference, ctr_reference, gcm_reference, xts_reference};
use crate::{
    devices::is_emulated,
    expect::{expect_equal, expect_same},
    harness::Outcome,
    trials::aes::{bytes, on_device},
};

/// CBC in a number of workgroups for which finding their borders takes several too.
pub(super) fn borders(device: &Device) -> Outcome {
    let (key, iv) = (bytes(32, 15), [7; 16]);
    for (method, blocks) in [(Method::Sbox, 65_600), (Method::Bitsliced, 8 * 65_600)] {
        let plain = bytes(16 * blocks, 16);
        let mut encrypted = plain.clone();
        cbc_reference(&key, &iv, &mut encrypted);
        let mut data = device.upload::<u8>(&encrypted)?;
        Aes::with_keys(device, &[&key], on_device(method))?.cbc().decrypt(&iv, &mut data)?;
        expect_same(&format!("{blocks} blocks decrypted, {method:?}"), &data.to_vec()?, &plain)?;
    }
    Ok(())
}

/// Data that takes several launches, of few bytes each, gives what one gives.
pub(super) fn split_launches(device: &Device) -> Outcome {
    let keys = [bytes(16, 31), bytes(16, 32)];
    let key = bytes(32, 33);
    // An emulated GPU takes a millisecond for each launch of a block.
    let longest = if is_emulated(device) { 2000 } else { 10_000 };
    let lens = [0, 1, 160, 16 * 40, 33, longest, 16];
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
    let run = |config: AesConfig| -> Result<Vec<Vec<u8>>, Failed> {
        let aes = Aes::with_keys(device, &keys, config.clone())?;
        let (gcm, xts) = (aes.gcm()?, Xts::with_config(device, &key, 48, config)?);
        let mut data = device.upload::<u8>(&plain)?;
        let mut results = Vec::new();
        for range in [0..end, 16..end / 18 * 16, 5..end - 3] {
            let blocks = range.start..range.start + range.len() / 16 * 16;
            aes.ctr(&[0xff; 16])?.apply(data.view_mut(range.clone())?)?;
            results.push(data.to_vec()?);
            results.push(gcm.seal(&[1; 12], b"aad", data.view_mut(range.clone())?)?.as_ref().to_vec());
            results.push(data.to_vec()?);
            aes.ecb().encrypt(data.view_mut(blocks.clone())?)?;
            results.push(data.to_vec()?);
            aes.cbc().decrypt(&[3; 16], data.view_mut(blocks.clone())?)?;
            results.push(data.to_vec()?);
            aes.cbc().encrypt(&[4; 16], data.view_mut(blocks)?)?;
            results.push(data.to_vec()?);
            xts.encrypt(7, data.view_mut(range.start..range.start + range.len() / 48 * 48 - 17)?)?;
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
            let results = run(on_device(method).launch_bytes(launch_bytes))?;
            for (i, (actual, expected)) in results.iter().zip(&expected).enumerate() {
                expect_same(&format!("{method:?}, {launch_bytes} bytes a launch, step {i}"), actual, expected)?;
            }
        }
    }
    Ok(())
}

/// The least and the most that a configuration can say.
pub(super) fn configurations(device: &Device) -> Outcome {
    // An emulated GPU takes a millisecond for each launch of a piece.
    let (len, few_sectors) = if is_emulated(device) { (5001, 1) } else { (50_001, 3) };
    let (key, iv, plain) = (bytes(32, 35), [0xff; 16], bytes(len, 36));
    let usual = AesConfig::default().cpu_threshold(0);
    let mut configs = Vec::new();
    for bytes in [0, 1, 15, 17, usize::MAX - 1, usize::MAX] {
        configs.push(usual.clone().chunk_bytes(bytes));
        configs.push(usual.clone().queues(bytes).chunk_bytes(999));
        configs.push(usual.clone().launch_bytes(bytes as u64));
        configs.push(usual.clone().cpu_threshold(bytes));
    }
    configs.extend([Some(false), Some(true)].map(|grid_stride| usual.clone().grid_stride(grid_stride)));
    let mut stream = plain.clone();
    ctr_reference(&key, &iv, Counter::Bits128, 0, &mut stream)?;
    let mut sealed = plain.clone();
    let tag = gcm_reference(&key, &[1; 12], b"aad", &mut sealed)?;
    let mut sectors = plain.clone();
    xts_reference(&bytes(64, 37), 512, 9, &mut sectors);
    for config in configs {
        // Pieces of a block take one launch for each block.
        let short = config.chunk_bytes < 1000 && config.queues == usual.queues;
        let len = if short { 512 * few_sectors + 17 } else { plain.len() };
        let what = format!("{config:?}");
        let aes = Aes::with_keys(device, &[&key], config.clone())?;
        let mut data = plain[..len].to_vec();
        aes.ctr(&iv)?.apply_host(&mut data)?;
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
        let actual = gcm.seal_host(&[1; 12], b"aad", &mut data)?;
        expect_same(&what, &data, &sealed[..len])?;
        if len == plain.len() {
            expect_same(&what, actual.as_ref(), &tag)?;
        }
        gcm.open_host(&[1; 12], b"aad", &mut data, actual.as_ref())?;
        expect_same(&what, &data, &plain[..len])?;

        let mut data = plain[..len].to_vec();
        Xts::with_config(device, &bytes(64, 37), 512, config.clone())?.encrypt_host(9, &mut data)?;
        let whole = len / 512 * 512;
        expect_same(&what, &data[..whole], &sectors[..whole])?;

        let mut data = plain[..len / 16 * 16].to_vec();
        cbc_reference(&key, &iv, &mut data);
        aes.cbc().decrypt_host(&iv, &mut data)?;
        expect_same(&what, &data, &plain[..len / 16 * 16])?;
    }
    Ok(())
}

/// Messages and sectors for one workgroup, and for several.
pub(super) fn many_units(device: &Device, method: Method) -> Outcome {
    let key = bytes(32, 17);
    let aes = Aes::with_keys(device, &[&key], on_device(method))?;
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
    xts.encrypt(3, &mut data)?;
    expect_same("4200 sectors", &data.to_vec()?, &expected)?;
    xts.decrypt(3, &mut data)?;
    expect_same("4200 sectors, back", &data.to_vec()?, &plain)
}
