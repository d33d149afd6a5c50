//! Batches of messages at the borders of 32 bits.

use std::ops::Range;

use evariste::aes::{Counter, Gcm, GcmMessage, Message};

use super::{BORDER, LAUNCHES, METHODS, POWERS, Place, add, bytes, described, parts, per_thread};
use crate::{
    expect::expect_equal,
    harness::Outcome,
    null_device::{Cover, Launch},
};

/// Messages on both sides of a border, across it, and longer than a launch.
pub(super) fn batches() -> Outcome {
    let place = Place::new();
    let mut data = place.data()?;
    let spans = [
        (BORDER - 32, 17),
        (BORDER, 16),
        (0, 0),
        (BORDER + 16, 3 * BORDER / 4),
        (64, 5),
        (2 * BORDER - 16, 33),
        (1 << 20, BORDER / 2 + 1),
    ];
    for method in METHODS {
        for launch_bytes in LAUNCHES {
            let aes = place.aes(method, launch_bytes)?;
            let messages: Vec<Message> = spans
                .iter()
                .enumerate()
                .map(|(i, &(offset, len))| Message { offset, len, key: i % 2, iv: [i as u8; 16] })
                .collect();
            aes.ctr_batch(&mut data, &messages, Counter::Bits128)?;
            expect_messages(&place.launches(&["aes_blocks"]), &messages, Counter::Bits128, per_thread(method))?;

            let gcm: Gcm = aes.gcm()?;
            let nonces: Vec<[u8; 12]> = (0..spans.len()).map(|i| [i as u8; 12]).collect();
            let sealed: Vec<GcmMessage<'_>> = messages
                .iter()
                .zip(&nonces)
                .map(|(m, nonce)| GcmMessage { offset: m.offset, len: m.len, key: m.key, nonce, aad: &[] })
                .collect();
            gcm.seal_batch(&mut data, &sealed)?;
            let launches = place.stub.take_launches();
            let counters: Vec<Message> = messages
                .iter()
                .map(|message| {
                    let mut iv = message.iv;
                    iv[12..].copy_from_slice(&[0, 0, 0, 2]);
                    Message { iv, ..*message }
                })
                .collect();
            let (blocks, hashes): (Vec<_>, Vec<_>) = launches.into_iter().partition(|l| l.name == "aes_blocks");
            expect_messages(&blocks, &counters, Counter::Bits32, per_thread(method))?;
            expect_hashes(&hashes, &messages)?;
        }
    }
    Ok(())
}

fn expect_messages(launches: &[Launch], messages: &[Message], width: Counter, per_thread: u32) -> Outcome {
    let mut covers = vec![Cover::default(); messages.len()];
    for launch in launches {
        for part in parts(launch, per_thread)?.into_iter().filter(|part| part.blocks > 0) {
            let belongs = |m: &&Message| (m.offset as u64..(m.offset + m.len) as u64).contains(&part.range.start);
            let message = messages.iter().find(belongs).ok_or("a part of no message")?;
            expect_equal("key", &(part.key as usize), &message.key)?;
            let expected = add(message.iv, (part.range.start - message.offset as u64) / 16, width);
            expect_equal("counter", &part.iv, &expected)?;
            let i = messages.iter().position(|m| m == message).ok_or("a message")?;
            covers[i].add(part.range);
        }
    }
    let pairs = covers.into_iter().zip(messages).enumerate();
    pairs.into_iter().try_for_each(|(i, (cover, message))| {
        cover.expect_exactly(&format!("message {i}"), bytes(&(message.offset..message.offset + message.len)))
    })
}

/// Each message is hashed once, in segments, with the powers of its key.
fn expect_hashes(launches: &[Launch], messages: &[Message]) -> Outcome {
    let mut cover = Cover::default();
    for launch in launches {
        let [count, segment] = [0, 3].map(|i| launch.word(i));
        expect_equal("a length of segments", &segment, &0)?;
        let segments = described(launch);
        expect_equal("segments", &(count as usize), &segments.len())?;
        for part in segments.into_iter().filter(|part| part.blocks > 0) {
            let key = messages.iter().find(|m| bytes(&(m.offset..m.offset + m.len)).contains(&part.range.start));
            expect_equal("powers", &Some((part.powers / POWERS) as usize), &key.map(|message| message.key))?;
            cover.add(part.range);
        }
    }
    // The messages as one range after the other.
    let mut spans: Vec<Range<u64>> = messages.iter().map(|m| bytes(&(m.offset..m.offset + m.len))).collect();
    spans.sort_by_key(|span| (span.start, span.end));
    let mut at = 0;
    for span in spans {
        cover.add(at..span.start);
        at = span.end;
    }
    cover.expect_exactly("hashes", 0..at)
}
