use evariste_backend::Device;

use super::*;
use crate::{
    block::Counter,
    config::AesConfig,
    gcm::GcmMessage,
    ghash::tests::{WATCHED, left},
};

/// More than one task has, of all lengths up to some blocks.
const COUNT: usize = 2 * GRAIN + 100;

const ROOM: usize = 5 * BLOCK;

fn messages() -> Vec<Message> {
    let message = |i: usize| Message {
        offset: i * ROOM,
        len: i * 7 % (ROOM + 1),
        key: i % 2,
        iv: (i as u128).swap_bytes().to_be_bytes(),
    };
    (0..COUNT).map(message).collect()
}

fn data(device: &Device) -> Buffer<u8> {
    let bytes: Vec<u8> = (0..COUNT * ROOM).map(|i| (i * 31 + i / 251) as u8).collect();
    device.upload::<u8>(&bytes).unwrap()
}

/// Messages in one launch, and in several.
fn plans() -> [Aes; 2] {
    [u64::MAX, 1 << 12].map(|launch_bytes| {
        let config = AesConfig::default().launch_bytes(launch_bytes);
        Aes::with_keys(&Device::cpu(), &[[1; 16], [2; 16]], config).unwrap()
    })
}

#[test]
fn batches_are_their_messages() {
    for aes in plans() {
        let (mut together, mut alone) = (data(aes.device()), data(aes.device()));
        aes.ctr_batch(&mut together, &messages(), Counter::Bits32).unwrap();
        for message in messages() {
            aes.ctr_batch(&mut alone, &[message], Counter::Bits32).unwrap();
        }
        assert!(together.to_vec().unwrap() == alone.to_vec().unwrap());
    }
}

#[test]
fn nonces_of_all_lengths_seal_as_each_does_alone() {
    for aes in plans() {
        let gcm = aes.gcm().unwrap();
        let messages = messages();
        for hashed in [false, true] {
            let nonces: Vec<Vec<u8>> = (0..COUNT)
                .map(|i| [i.to_le_bytes().to_vec(), vec![9; if hashed { 1 + i % 9 } else { 4 }]].concat())
                .collect();
            let sealed = |i: usize| {
                let Message { offset, len, key, .. } = messages[i];
                GcmMessage { offset, len, key, nonce: &nonces[i], aad: &nonces[i][..i % 5] }
            };
            let all: Vec<_> = (0..COUNT).map(sealed).collect();
            let (mut together, mut alone) = (data(aes.device()), data(aes.device()));
            let tags = gcm.seal_batch(&mut together, &all).unwrap();
            for (message, tag) in all.iter().zip(&tags) {
                assert_eq!(gcm.seal_batch(&mut alone, &[*message]).unwrap(), [*tag]);
            }
            assert!(together.to_vec().unwrap() == alone.to_vec().unwrap());
            for (short, wrong) in [(16, 0), (16, COUNT - 1), (13, 5), (4, GRAIN)] {
                let gcm = gcm.clone().with_tag_bytes(short).unwrap();
                let mut short: Vec<Vec<u8>> = tags.iter().map(|tag| tag.as_ref()[..short].to_vec()).collect();
                *short[wrong].last_mut().unwrap() ^= 0x80;
                let before = together.to_vec().unwrap();
                let refused = gcm.open_batch(&mut together, &all, &short).unwrap_err();
                assert_eq!(refused, Error::Tag { message: Some(wrong) });
                assert!(together.to_vec().unwrap() == before);
                *short[wrong].last_mut().unwrap() ^= 0x80;
                gcm.open_batch(&mut together, &all, &short).unwrap();
                gcm.seal_batch(&mut together, &all).unwrap();
            }
            gcm.open_batch(&mut together, &all, &tags).unwrap();
            assert!(together.to_vec().unwrap() == data(aes.device()).to_vec().unwrap());
            let mut twice = all.clone();
            (twice[COUNT - 1].nonce, twice[COUNT - 1].key) = (twice[3].nonce, twice[3].key);
            let expected = Error::RepeatedKeystream { first: 3, second: COUNT - 1 };
            assert_eq!(gcm.seal_batch(&mut together, &twice).unwrap_err(), expected);
            assert!(together.to_vec().unwrap() == data(aes.device()).to_vec().unwrap());
        }
    }
}

#[test]
fn the_first_that_is_wrong_is_named() {
    let device = Device::cpu();
    let (aes, data) = (Aes::with_keys(&device, &[[1; 16], [2; 16]], AesConfig::default()).unwrap(), data(&device));
    let refused = |change: &dyn Fn(&mut [Message])| {
        let mut messages = messages();
        change(&mut messages);
        Batch::new(&aes, data.as_view(), &&messages[..]).map(|_| ()).unwrap_err()
    };
    let alignment = |message, actual| Error::Alignment { message, expected: BLOCK, actual };
    let last = COUNT - 1;
    let wrong = refused(&|messages| [last, GRAIN].iter().for_each(|i| messages[*i].offset += 1));
    assert_eq!(wrong, alignment(GRAIN, GRAIN * ROOM + 1));
    let wrong = refused(&|messages| (messages[7].key, messages[last].offset) = (2, 1));
    assert_eq!(wrong, Error::NoSuchKey { message: 7, expected: 2, actual: 2 });
    let wrong = refused(&|messages| messages[last].len = ROOM + 1);
    assert!(matches!(wrong, Error::Device(evariste_backend::Error::OutOfRange { .. })));
    let wrong = refused(&|messages| messages[GRAIN - 1].len = usize::MAX);
    assert!(matches!(wrong, Error::Device(evariste_backend::Error::OutOfRange { .. })));
    // The borders of tasks.
    let wrong = refused(&|messages| (messages[GRAIN - 1].len, messages[GRAIN].len) = (ROOM + 1, 1));
    assert_eq!(wrong, Error::Overlap { first: GRAIN - 1, second: GRAIN });
    // Out of order is no overlap, and refused only where it is one.
    let mut messages = messages();
    messages.swap(0, last);
    assert!(Batch::new(&aes, data.as_view(), &&messages[..]).is_ok());
    (messages[last].len, messages[1].len) = (ROOM + 1, 1);
    let wrong = Batch::new(&aes, data.as_view(), &&messages[..]).map(|_| ()).unwrap_err();
    assert_eq!(wrong, Error::Overlap { first: last, second: 1 });
    let mut other = messages;
    other.truncate(0);
    assert!(Batch::new(&aes, Device::cpu().zeros(0).unwrap().as_view(), &&other[..]).is_ok());
}

/// Around the border of what goes to the device together.
#[test]
fn descriptors_are_those_of_their_messages() {
    let aes = Aes::with_keys(&Device::cpu(), &[[1; 16], [2; 16]], AesConfig::default()).unwrap();
    for count in [1, GRAIN, UPLOAD - 1, UPLOAD, UPLOAD + 1, 2 * UPLOAD + GRAIN + 3] {
        let message = |i: usize| Message {
            offset: i * 2 * BLOCK,
            len: i * 7 % (2 * BLOCK + 1),
            key: i % 2,
            iv: (i as u128).to_be_bytes(),
        };
        let messages: Vec<Message> = (0..count).map(message).collect();
        let data = aes.device().zeros(count * 2 * BLOCK).unwrap();
        let slice = &messages[..];
        let batch = Batch::new(&aes, data.as_view(), &slice).unwrap();
        let prepared = batch.prepare(&aes, |_, _| unreachable!("it is one launch")).unwrap();
        let [prepared] = &prepared[..] else { panic!("it is one launch") };
        let words = prepared.messages.to_vec().unwrap();
        let descriptors: &[Descriptor] = bytemuck::cast_slice(&words);
        assert_eq!((descriptors.len(), prepared.count), (count, count));
        let mut unit = 0;
        for (message, descriptor) in messages.iter().zip(descriptors) {
            let blocks = message.len.div_ceil(BLOCK) as u32;
            let expected = (unit, (message.offset / BLOCK) as u32, blocks, message.key as u32, message.iv);
            let Descriptor { first_unit, word_low, blocks: actual, key, iv, .. } = *descriptor;
            assert_eq!((first_unit, word_low, actual, key, iv), expected, "{count}");
            unit += aes.units(blocks.into()) as u32;
        }
        assert_eq!(prepared.units, unit);
        assert_eq!(prepared.longest, messages.iter().map(|message| message.len.div_ceil(BLOCK)).max().unwrap() as u64);
    }
}

/// Launches that are full before messages without a byte, which then are alone in the next one, if at all.
#[test]
fn messages_without_bytes_lie_anywhere() {
    for (device, launch_bytes) in
        Device::all().into_iter().flat_map(|device| [(device.clone(), 128), (device, u64::MAX)])
    {
        for method in [crate::config::Method::Sbox, crate::config::Method::Bitsliced] {
            let config = AesConfig::default().method(method).launch_bytes(launch_bytes);
            let aes = Aes::with_keys(&device, &[[1; 16], [2; 16]], config).unwrap();
            let host = Aes::with_keys(&Device::cpu(), &[[1; 16], [2; 16]], AesConfig::default()).unwrap();
            let shapes: [&[usize]; 6] =
                [&[128, 0], &[0, 128, 0, 0], &[0], &[128, 0, 128, 0, 16], &[256, 0], &[0, 0, 7, 0, 300, 0]];
            for lengths in shapes {
                let mut at = 0;
                let mut messages = Vec::new();
                for (i, len) in lengths.iter().enumerate() {
                    messages.push(Message { offset: at, len: *len, key: i % 2, iv: [i as u8 + 1; 16] });
                    at += len.next_multiple_of(BLOCK);
                }
                let bytes: Vec<u8> = (0..at).map(|i| (i * 31 + 7) as u8).collect();
                let both = || [aes.device(), host.device()].map(|device| device.upload::<u8>(&bytes).unwrap());
                let nonces: Vec<Vec<u8>> = (0..lengths.len()).map(|i| vec![i as u8; 12 + i % 2]).collect();
                let sealed = |(i, message): (usize, &Message)| {
                    let Message { offset, len, key, .. } = *message;
                    GcmMessage { offset, len, key, nonce: &nonces[i], aad: &nonces[i][..i] }
                };
                let all: Vec<_> = messages.iter().enumerate().map(sealed).collect();
                let [mut together, mut alone] = both();
                let (gcm, host_gcm) = (aes.gcm().unwrap(), host.gcm().unwrap());
                let tags = gcm.seal_batch(&mut together, &all).unwrap();
                for (message, tag) in all.iter().zip(&tags) {
                    assert_eq!(host_gcm.seal_batch(&mut alone, &[*message]).unwrap(), [*tag], "{lengths:?}");
                }
                assert_eq!(together.to_vec().unwrap(), alone.to_vec().unwrap(), "{lengths:?}");
                gcm.open_batch(&mut together, &all, &tags).unwrap();
                assert_eq!(together.to_vec().unwrap(), bytes, "{lengths:?}");
                if lengths.iter().all(|len| len.is_multiple_of(BLOCK)) {
                    let [mut together, mut alone] = both();
                    aes.cbc_encrypt_batch(&mut together, &messages).unwrap();
                    for message in &messages {
                        host.cbc_encrypt_batch(&mut alone, &[*message]).unwrap();
                    }
                    assert_eq!(together.to_vec().unwrap(), alone.to_vec().unwrap(), "{lengths:?}");
                    aes.cbc_decrypt_batch(&mut together, &messages).unwrap();
                    assert_eq!(together.to_vec().unwrap(), bytes, "{lengths:?}");
                }
            }
        }
    }
}

/// Messages whose counters tell of a key.
struct Hashed<'a>(&'a [Message]);

impl Messages for Hashed<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn span(&self, message: usize) -> Span {
        self.0.span(message)
    }

    fn iv(&self, _message: usize) -> [u8; BLOCK] {
        WATCHED[2].to_ne_bytes()
    }

    fn secrecy(&self, _message: usize) -> Secrecy {
        Secrecy::Secret
    }
}

#[test]
fn secret_counters_leave_nothing_in_memory() {
    let messages = messages();
    let hashed = Hashed(&messages);
    for aes in plans() {
        let data = data(aes.device());
        let batch = Batch::new(&aes, data.as_view(), &hashed).unwrap();
        drop(batch.prepare(&aes, |iv, _| Next::Iv(iv)).unwrap());
    }
    assert_eq!(left(2), 0);
    drop(std::hint::black_box(vec![WATCHED[2]]));
    assert_eq!(left(2), 1);
}
