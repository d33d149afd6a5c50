//! Input that must be refused, with nothing written.

use evariste::aes::{Aes, AesConfig, Counter, Ctr, Error, Gcm, GcmMessage, Message, Method, Xts, cipher::StreamCipher};
use evariste::backend::{Device, Error as DeviceError, HostBuffer, Secrecy, Transfer};

use super::bytes;
use crate::{
    devices::other_device,
    expect::{expect, expect_equal, expect_error, expect_same},
    harness::{DeviceTrials, Outcome},
};

pub(super) fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("wrong_lengths", wrong_lengths);
    trials.add("keystream_repetition", keystream_repetition);
    trials.add("repeated_keystream_in_batches", repeated_keystream);
    trials.add("wrong_tags", wrong_tags);
    trials.add("pinned_memory", pinned_memory);
    trials.add("bad_batches", bad_batches);
    trials.add("bad_sectors", bad_sectors);
    trials.add("other_devices", other_devices);
}

fn wrong_lengths(device: &Device) -> Outcome {
    for len in [0, 15, 17, 33, 64] {
        let error = expect_error("key", Aes::new(device, &vec![0; len]))?;
        expect_equal("key", &error, &Error::KeyLength { expected: "16, 24 or 32", actual: len })?;
    }
    let mixed: [&[u8]; 2] = [&[0; 16], &[0; 32]];
    expect_error("keys of two sizes", Aes::with_keys(device, &mixed, AesConfig::default()))?;
    let error = expect_error("no keys", Aes::with_keys(device, &[[0; 16]; 0], AesConfig::default()))?;
    expect("no keys", matches!(error, Error::Count { .. }))?;
    let aes = Aes::new(device, &[0; 16])?;
    for len in [0, 12, 15, 17] {
        let error = expect_error("counter block", aes.ctr(&vec![0; len]))?;
        expect_equal("iv", &error, &Error::IvLength { what: "a counter block", expected: "16", actual: len })?;
    }
    let gcm = aes.gcm()?;
    expect("empty nonce", matches!(gcm.seal_host(&[], &[], &mut []), Err(Error::IvLength { actual: 0, .. })))?;
    let error = expect_error("tag", gcm.open_host(&[0; 12], &[], &mut [], &[0; 15]))?;
    expect_equal("tag", &error, &Error::TagLength { expected: 16, actual: 15 })?;
    for len in [0, 1, 3, 5, 7, 9, 11, 17] {
        expect_error("tag length", gcm.clone().with_tag_bytes(len))?;
    }
    let cbc = aes.cbc();
    let mut data = device.upload::<u8>(&bytes(64, 1))?;
    for len in [1, 15, 17, 63] {
        let expected = Error::PartialBlock { expected: 16, actual: len };
        let mut slice = vec![7; len];
        expect_equal("slice", &expect_error("slice", cbc.decrypt_host(&[0; 16], &mut slice))?, &expected)?;
        expect_equal("slice", &expect_error("slice", cbc.encrypt_host(&[0; 16], &mut slice))?, &expected)?;
        expect_same("slice", &slice, &vec![7; len])?;
        let error = expect_error("range", cbc.decrypt(&[0; 16], data.view_mut(0..len)?))?;
        expect_equal("range", &error, &expected)?;
        expect_error("range", aes.ecb().encrypt(data.view_mut(0..len)?))?;
    }
    expect_same("data", &data.to_vec()?, &bytes(64, 1))
}

/// Streams end where their counter would start again.
fn keystream_repetition(device: &Device) -> Outcome {
    let limit = 1 << 36;
    let mut stream = Ctr::new(device, &[0; 16], &[0xff; 16])?.with_counter(Counter::Bits32);
    stream.seek(limit - 100)?;
    let mut slice = bytes(101, 1);
    let expected = Error::Keystream { position: limit - 100, len: 101, expected: limit };
    expect_equal("slice", &expect_error("slice", stream.apply_host(&mut slice))?, &expected)?;
    expect_same("slice", &slice, &bytes(101, 1))?;
    let mut data = device.upload::<u8>(&slice)?;
    expect_equal("buffer", &expect_error("buffer", stream.apply(&mut data))?, &expected)?;
    expect_same("buffer", &data.to_vec()?, &bytes(101, 1))?;
    expect_equal("position", &stream.position(), &(limit - 100))?;
    stream.apply_host(&mut slice[..100])?;
    expect_equal("remaining", &stream.remaining(), &0)?;
    expect_error("one byte more", stream.apply_host(&mut [0]))?;
    expect_error("seeking beyond", stream.seek(limit + 1))?;
    let mut wide = Ctr::new(device, &[0; 16], &[0xff; 16])?;
    wide.seek(u128::MAX)?;
    expect_error("the end of positions", wide.apply_host(&mut [0]))?;

    // A position that a narrower counter does not reach.
    let mut stream = Ctr::new(device, &[0; 16], &[0; 16])?;
    stream.seek(1 << 40)?;
    let mut stream = stream.with_counter(Counter::Bits32);
    expect_equal("remaining", &stream.remaining(), &0)?;
    let mut slice = [7; 20];
    let expected = Error::Keystream { position: 1 << 40, len: 20, expected: limit };
    expect_equal("slice", &expect_error("slice", stream.apply_host(&mut slice))?, &expected)?;
    expect("keystream", stream.try_apply_keystream(&mut slice).is_err())?;
    expect("keystream", stream.try_write_keystream(&mut slice).is_err())?;
    expect_same("slice", &slice, &[7; 20])?;
    expect_error("buffer", stream.apply(&mut data))?;
    expect_same("buffer", &data.to_vec()?, &bytes(101, 1))
}

/// The same key and counters twice within a batch, also as two keys that are equal.
fn repeated_keystream(device: &Device) -> Outcome {
    let aes = Aes::with_keys(device, &[[1; 16], [2; 16], [1; 16]], AesConfig::default())?;
    let mut data = device.upload::<u8>(&bytes(512, 8))?;
    let iv = |last: u8| {
        let mut iv = [0xff; 16];
        iv[15] = last;
        iv
    };
    let message = |offset, len, key, iv| Message { offset, len, key, iv };
    let repeated = |first, second| Some(Error::RepeatedKeystream { first, second });
    let cases = [
        ([message(0, 16, 0, iv(5)), message(16, 16, 0, iv(5))], Counter::Bits128, repeated(0, 1)),
        ([message(0, 16, 0, iv(5)), message(16, 16, 2, iv(5))], Counter::Bits128, repeated(0, 1)),
        ([message(0, 1, 0, iv(6)), message(16, 17, 0, iv(5))], Counter::Bits128, repeated(0, 1)),
        ([message(0, 17, 0, iv(0xff)), message(32, 1, 0, [0; 16])], Counter::Bits128, repeated(0, 1)),
        ([message(0, 17, 0, iv(0xff)), message(32, 1, 0, [0; 16])], Counter::Bits32, None),
        ([message(0, 16, 0, iv(5)), message(16, 16, 1, iv(5))], Counter::Bits128, None),
        ([message(0, 16, 0, iv(5)), message(16, 16, 0, iv(6))], Counter::Bits128, None),
        ([message(0, 0, 0, iv(5)), message(16, 16, 0, iv(5))], Counter::Bits128, None),
    ];
    for (messages, counter, expected) in cases {
        let before = data.to_vec()?;
        let error = aes.ctr_batch(&mut data, &messages, counter).err();
        expect_equal(&format!("{messages:?}"), &error, &expected)?;
        if expected.is_some() {
            expect_same("untouched", &data.to_vec()?, &before)?;
        }
    }
    let gcm = aes.gcm()?;
    let sealed = |offset, len, key, nonce| GcmMessage { offset, len, key, nonce, aad: &[] };
    for (messages, expected) in [
        ([sealed(0, 16, 0, &[1; 12]), sealed(16, 16, 0, &[1; 12])], repeated(0, 1)),
        // The block that masks the tag repeats too.
        ([sealed(0, 0, 0, &[1; 12]), sealed(16, 0, 2, &[1; 12])], repeated(0, 1)),
        ([sealed(0, 16, 0, &[1; 13]), sealed(16, 16, 0, &[1; 13])], repeated(0, 1)),
        ([sealed(0, 16, 0, &[1; 12]), sealed(16, 16, 1, &[1; 12])], None),
        ([sealed(0, 16, 0, &[1; 12]), sealed(16, 16, 0, &[1; 13])], None),
    ] {
        let before = data.to_vec()?;
        let tags = gcm.seal_batch(&mut data, &messages);
        expect_equal(&format!("{messages:?}"), &tags.as_ref().err().cloned(), &expected)?;
        if let Ok(tags) = tags {
            gcm.open_batch(&mut data, &messages, &tags)?;
        }
        expect_same("untouched, or opened", &data.to_vec()?, &before)?;
    }
    Ok(())
}

/// Pinned memory of another device or direction, and too much of it.
fn pinned_memory(device: &Device) -> Outcome {
    let mut stream = Ctr::new(device, &[0; 16], &[0; 16])?;
    let id = device.info().id;
    let zeros = |device: &Device, transfer| -> Result<HostBuffer, DeviceError> {
        let mut host = device.host_buffer(100, transfer, Secrecy::Public)?;
        host.fill(0);
        Ok(host)
    };
    let mut upload = zeros(device, Transfer::Upload)?;
    let error = expect_error("memory for uploads", stream.apply_pinned(&mut upload))?;
    let (what, expected, actual) = ("the data of a cipher", Transfer::Download, Transfer::Upload);
    expect_equal("direction", &error, &Error::Device(DeviceError::WrongTransfer { what, expected, actual }))?;
    expect_same("untouched", &upload, &[0; 100])?;
    if let Some(other) = other_device(device) {
        let mut foreign = zeros(&other, Transfer::Both)?;
        let error = expect_error("memory of another device", stream.apply_pinned(&mut foreign))?;
        let (expected, actual) = (id, other.info().id);
        expect_equal("device", &error, &Error::Device(DeviceError::WrongDevice { what, expected, actual }))?;
        expect_same("untouched", &foreign, &[0; 100])?;
    }
    let mut long = zeros(device, Transfer::Both)?;
    stream = stream.with_counter(Counter::Bits32);
    stream.seek((1 << 36) - 99)?;
    expect("the end", matches!(stream.apply_pinned(&mut long), Err(Error::Keystream { len: 100, .. })))?;
    expect_same("untouched", &long, &[0; 100])
}

/// Nothing is decrypted under a wrong key, nonce, text, associated data or tag.
fn wrong_tags(device: &Device) -> Outcome {
    let config = AesConfig::default().cpu_threshold(0);
    let gcm = Aes::with_keys(device, &[&[1; 16]], config)?.gcm()?;
    let mut data = device.upload::<u8>(&bytes(1000, 2))?;
    let tag = gcm.seal(&[1; 12], b"aad", data.view_mut(3..1000)?)?;
    let sealed = data.to_vec()?;
    let mut flipped = tag.as_ref().to_vec();
    flipped[15] ^= 1;
    let other = Gcm::new(device, &[2; 16])?;
    type Attempt<'a> = (&'a Gcm, &'a [u8], &'a [u8], &'a [u8], usize);
    let attempts: [Attempt<'_>; 5] = [
        (&gcm, &[1; 12], b"aad", &flipped, 1000),
        (&gcm, &[1; 12], b"aae", tag.as_ref(), 1000),
        (&gcm, &[1; 13], b"aad", tag.as_ref(), 1000),
        (&gcm, &[1; 12], b"aad", tag.as_ref(), 999),
        (&other, &[1; 12], b"aad", tag.as_ref(), 1000),
    ];
    for (gcm, nonce, aad, tag, end) in attempts {
        let error = expect_error("range", gcm.open(nonce, aad, data.view_mut(3..end)?, tag))?;
        expect_equal("range", &error, &Error::Tag { message: None })?;
        expect_same("still encrypted", &data.to_vec()?, &sealed)?;
        let mut slice = sealed[3..end].to_vec();
        expect_error("slice", gcm.open_host(nonce, aad, &mut slice, tag))?;
        expect_same("still encrypted", &slice, &sealed[3..end])?;
    }
    let messages = [
        GcmMessage { offset: 0, len: 100, key: 0, nonce: &[1; 12], aad: &[] },
        GcmMessage { offset: 112, len: 50, key: 0, nonce: &[2; 12], aad: &[] },
    ];
    let mut data = device.upload::<u8>(&bytes(200, 3))?;
    let tags = gcm.seal_batch(&mut data, &messages)?;
    let sealed = data.to_vec()?;
    let wrong = [tags[0], tags[0]];
    let error = expect_error("batch", gcm.open_batch(&mut data, &messages, &wrong))?;
    expect_equal("batch", &error, &Error::Tag { message: Some(1) })?;
    expect_same("still encrypted", &data.to_vec()?, &sealed)?;
    let error = expect_error("tags missing", gcm.open_batch(&mut data, &messages, &tags[..1]))?;
    expect_equal("count", &error, &Error::Count { what: "tags", expected: 2, actual: 1 })?;
    gcm.open_batch(&mut data, &messages, &tags)?;
    expect_same("opened", &data.to_vec()?, &bytes(200, 3))
}

fn bad_batches(device: &Device) -> Outcome {
    let aes = Aes::new(device, &[0; 16])?;
    let mut data = device.upload::<u8>(&bytes(256, 4))?;
    let message = |offset, len| Message { offset, len, key: 0, iv: [0; 16] };
    let cases = [
        (vec![message(0, 33), message(128, 1), message(32, 16)], Error::Overlap { first: 0, second: 2 }),
        (vec![message(0, 16), message(24, 16)], Error::Alignment { message: 1, expected: 16, actual: 24 }),
        (vec![Message { key: 1, ..message(0, 16) }], Error::NoSuchKey { message: 0, expected: 1, actual: 1 }),
    ];
    for (messages, expected) in cases {
        let error = expect_error("batch", aes.ctr_batch(&mut data, &messages, Counter::Bits128))?;
        expect_equal("batch", &error, &expected)?;
    }
    let error = expect_error("range", aes.ctr_batch(&mut data, &[message(240, 17)], Counter::Bits128))?;
    expect("range", matches!(error, Error::Device(DeviceError::OutOfRange { .. })))?;
    let error = expect_error("range", aes.ctr_batch(&mut data, &[message(240, usize::MAX)], Counter::Bits128))?;
    expect("range", matches!(error, Error::Device(DeviceError::OutOfRange { .. })))?;
    let error = expect_error("part", aes.cbc_decrypt_batch(&mut data, &[message(0, 17)]))?;
    expect_equal("part", &error, &Error::PartialBlock { expected: 16, actual: 17 })?;
    expect_same("data", &data.to_vec()?, &bytes(256, 4))?;
    aes.ctr_batch(&mut data, &[], Counter::Bits128)?;
    Ok(())
}

fn bad_sectors(device: &Device) -> Outcome {
    let key = bytes(32, 5);
    expect_equal("equal keys", &expect_error("equal keys", Xts::new(device, &[7; 32], 512))?, &Error::EqualKeys)?;
    for len in [16, 31, 47, 65] {
        let error = expect_error("key", Xts::new(device, &vec![0; len], 512))?;
        expect_equal("key", &error, &Error::KeyLength { expected: "32, 48 or 64", actual: len })?;
    }
    for actual in [0, 1, 15, (16 << 20) + 1] {
        let error = expect_error("sector", Xts::new(device, &key, actual))?;
        expect_equal("sector", &error, &Error::SectorLength { actual })?;
    }
    let xts = Xts::new(device, &key, 512)?;
    let mut data = device.upload::<u8>(&bytes(1024, 6))?;
    for len in [1, 15, 513, 527] {
        let error = expect_error("last sector", xts.encrypt(0, data.view_mut(0..len)?))?;
        expect_equal("last sector", &error, &Error::SectorLength { actual: len % 512 })?;
        expect_error("last sector", xts.decrypt_host(0, &mut vec![0; len]))?;
    }
    // Numbers of sectors that would start again.
    for first in [u128::MAX, u128::MAX - 1] {
        let expected = Error::SectorNumber { first, count: 3 };
        let len = 2 * 512 + 16;
        let mut data = device.upload::<u8>(&bytes(2048, 6))?;
        for decrypt in [false, true] {
            let view = data.view_mut(3..3 + len)?;
            let outcome = if decrypt { xts.decrypt(first, view) } else { xts.encrypt(first, view) };
            expect_equal("sector number", &expect_error("sector number", outcome)?, &expected)?;
            expect_same("data", &data.to_vec()?, &bytes(2048, 6))?;
        }
        let mut slice = bytes(len, 7);
        expect_equal("slice", &expect_error("slice", xts.encrypt_host(first, &mut slice))?, &expected)?;
        expect_same("slice", &slice, &bytes(len, 7))?;
    }
    let mut slice = bytes(1024, 7);
    xts.encrypt_host(u128::MAX - 1, &mut slice)?;
    xts.encrypt(u128::MAX - 1, &mut data)?;
    xts.decrypt(u128::MAX - 1, &mut data)?;
    expect_same("data", &data.to_vec()?, &bytes(1024, 6))
}

fn other_devices(device: &Device) -> Outcome {
    let aes = Aes::new(device, &[0; 16])?;
    let mut stream = aes.ctr(&[0; 16])?;
    if let Some(other) = other_device(device) {
        let (gcm, xts) = (aes.gcm()?, Xts::new(device, &bytes(32, 5), 16)?);
        let mut foreign = other.upload::<u8>(&bytes(100, 7))?;
        let message = Message { offset: 0, len: 16, key: 0, iv: [0; 16] };
        let sealed = GcmMessage { offset: 0, len: 16, key: 0, nonce: &[0; 12], aad: &[] };
        let mut part = foreign.view_mut(5..69)?;
        let refused = [
            stream.apply(&mut part).err(),
            gcm.seal(&[0; 12], &[], &mut part).err(),
            gcm.open(&[0; 12], &[], &mut part, &[0; 16]).err(),
            gcm.seal_batch(&mut part, &[sealed]).err(),
            gcm.open_batch(&mut part, &[sealed], &[[0; 16]]).err(),
            xts.encrypt(0, &mut part).err(),
            xts.decrypt(0, &mut part).err(),
            aes.cbc().encrypt(&[0; 16], &mut part).err(),
            aes.cbc().decrypt(&[0; 16], &mut part).err(),
            aes.ecb().encrypt(&mut part).err(),
            aes.ecb().decrypt(&mut part).err(),
            aes.ctr_batch(&mut part, &[message], Counter::Bits128).err(),
            aes.cbc_encrypt_batch(&mut part, &[message]).err(),
            aes.cbc_decrypt_batch(&mut part, &[message]).err(),
            aes.ecb_encrypt_batch(&mut part, &[message]).err(),
            aes.ecb_decrypt_batch(&mut part, &[message]).err(),
        ];
        let (what, expected, actual) = ("the data of a cipher", device.info().id, other.info().id);
        let wrong = Error::Device(DeviceError::WrongDevice { what, expected, actual });
        for (i, error) in refused.iter().enumerate() {
            expect_equal(&format!("operation {i}"), error, &Some(wrong.clone()))?;
        }
        expect_same("untouched", &foreign.to_vec()?, &bytes(100, 7))?;
    }
    expect_equal("position", &stream.position(), &0)?;
    let mut info = device.info().clone();
    info.limits.workgroup_bytes = 2048;
    let error = expect_error("method", Aes::kernels(&info, Method::FourTables, aes.key_size()))?;
    expect("method", matches!(error, Error::Method { expected: 16_384, actual: 2048, .. }))
}
