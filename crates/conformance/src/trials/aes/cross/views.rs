//! Parts of buffers, and what is left of keys and secrets.

use std::thread;

use evariste::{
    aes::{Aes, AesConfig, Counter, Error, Gcm, GcmMessage, Message, Method, Tag, Xts},
    backend::{Device, Secrecy, ViewMut},
};
use libtest_mimic::Failed;

use crate::{
    expect::{expect_equal, expect_same},
    harness::Outcome,
    trials::aes::{bytes, on_device},
};

/// Two views of one buffer that share a word of 16 bytes, each worked on by a thread on a queue of its own, in place
/// and on copies; and views without a byte.
pub(super) fn views(device: &Device) -> Outcome {
    let (keys, key) = ([bytes(16, 21), bytes(16, 22)], bytes(32, 23));
    for method in [Method::fastest(device.info()), Method::Bitsliced] {
        let plans = |device: &Device, config: AesConfig| -> Result<(Aes, Xts), Failed> {
            let xts = Xts::with_config(device, &key, 48, config.clone())?;
            Ok((Aes::with_keys(device, &keys, config)?, xts))
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
            aes.cbc().on(&queue).decrypt(&[8; 16], data.view_mut(..whole)?)?;
            aes.ecb().on(&queue).encrypt(data.view_mut(data.len() - whole..)?)?;
            xts.encrypt(3, &mut data)?;
            let sealed = GcmMessage { offset: 16, len: 77, key: 1, nonce: &[1; 12], aad: b"batch" };
            let mut tags = gcm.seal_batch(&mut data, &[sealed])?;
            tags.push(gcm.seal(&[2; 12], b"aad", &mut data)?);
            gcm.open(&[2; 12], b"aad", &mut data, tags[1].as_ref())?;
            let last = data.len() - 1;
            xts.decrypt(9, data.view_mut(last..last)?)?;
            device.default_queue().wait_for(&queue.record()?)?;
            Ok(tags)
        };
        let expected_of = |data: &mut [u8]| -> Result<Vec<Tag>, Error> {
            for position in 0..16 {
                let mut stream = host.ctr(&[7; 16])?;
                stream.seek(position)?;
                stream.apply_host(data)?;
            }
            let second = Aes::with_keys(&Device::cpu(), &[&keys[1]], AesConfig::default())?;
            host.ctr(&[0; 16])?.apply_host(&mut data[..1001])?;
            second.ctr(&[1008_u32 as u8; 16])?.apply_host(&mut data[1008..1041])?;
            let whole = data.len() / 16 * 16;
            second.cbc().encrypt_host(&[0; 16], &mut data[..160])?;
            host.cbc().encrypt_host(&[160; 16], &mut data[160..whole])?;
            host.cbc().decrypt_host(&[8; 16], &mut data[..whole])?;
            let start = data.len() - whole;
            host.ecb().encrypt_host(&mut data[start..])?;
            host_xts.encrypt_host(3, data)?;
            let tag = second.gcm()?.seal_host(&[1; 12], b"batch", &mut data[16..93])?;
            let mut sealed = data.to_vec();
            Ok(vec![tag, host.gcm()?.seal_host(&[2; 12], b"aad", &mut sealed)?])
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
        aes.ctr(&[1; 16])?.apply(&mut none)?;
        aes.ctr_batch(&mut none, &[], Counter::Bits128)?;
        aes.cbc().encrypt(&[1; 16], &mut none)?;
        aes.cbc().decrypt(&[1; 16], &mut none)?;
        aes.ecb().encrypt(&mut none)?;
        xts.encrypt(1, &mut none)?;
        let tag = gcm.seal(&[1; 12], b"aad", &mut none)?;
        expect_equal("a tag of nothing", &tag, &host.gcm()?.seal_host(&[1; 12], b"aad", &mut [])?)?;
        gcm.open(&[1; 12], b"aad", &mut none, tag.as_ref())?;
        expect_same("untouched", &data.to_vec()?, &expected)?;
    }
    Ok(())
}

/// Copies of parts of secret buffers are as secret: their memory comes back without them.
pub(super) fn views_of_secrets(device: &Device) -> Outcome {
    // So long that nothing else has a buffer of this size.
    let plain = vec![0xa5; 150_001];
    let aes = Aes::with_keys(device, &[[1; 16]], on_device(Method::Sbox))?;
    let mut data = device.upload_with::<u8>(&plain, Secrecy::Secret)?;
    for _ in 0..2 {
        aes.ctr(&[2; 16])?.apply(data.view_mut(1..)?)?;
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
pub(super) fn keys_are_zeroed(device: &Device) -> Outcome {
    // So many keys that nothing else has a buffer of this size.
    let keys = vec![[0xa5; 16]; 1501];
    let aes = Aes::with_keys(device, &keys, on_device(Method::Sbox))?;
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
