//! Copies, staging memory and events.

use std::{sync::atomic::Ordering, time::Duration};

use super::super::context::{Options, STAGING_BUDGET, STAGING_BYTES};
use super::*;
use crate::{
    buffer::{Buffer, Element},
    byte_pipeline::BytePipeline,
    cache::Cache,
    error::{Error, Result},
    host::HostBuffer,
    info::Transfer,
    queue::Queue,
    secrecy::Secrecy,
    span::SpanMut,
};

#[test]
fn rings_take_bytes_of_any_length() {
    const PIECE: usize = 64;
    let work = |queue: &Queue, piece: &mut Buffer<u8>, _at: usize, len: usize| {
        if len < 8 {
            return Ok(());
        }
        let (first, mut rest) = piece.as_view_mut().split_at(4)?;
        queue.copy(&first, rest.view_mut(..4)?)
    };
    for device in [shared(), open(tiny_chunks())].into_iter().flatten() {
        for (slots, len) in [1, 3].iter().flat_map(|slots| [0, 1, 7, 64, 73, 256, 737].map(|len| (*slots, len))) {
            let data: Vec<u8> = (0..len).map(|i: usize| (i * 7 + i / 251) as u8).collect();
            let mut expected = data.clone();
            expected.chunks_mut(PIECE).filter(|piece| piece.len() >= 8).for_each(|piece| piece.copy_within(..4, 4));
            let ring = || BytePipeline::new(&device, PIECE, slots, Secrecy::Secret).unwrap();
            let (mut slice, mut seen) = (data.clone(), Vec::new());
            ring().run(&mut slice, work, |piece| seen.extend_from_slice(piece)).unwrap();
            assert!((&slice, &seen) == (&expected, &expected), "{slots} {len}");
            let (mut left, mut seen) = (&data[..], Vec::new());
            let input = |piece: &mut [u8]| Ok::<_, Error>(std::io::Read::read(&mut left, piece).unwrap());
            let done = |piece: &[u8]| {
                seen.extend_from_slice(piece);
                Ok(())
            };
            ring().pump(input, |queue, piece, _, len| work(queue, piece, 0, len), done).unwrap();
            assert_eq!(seen, expected, "{slots} {len}");
            // From the middle of a word of pinned memory on.
            for start in [0, 3] {
                let mut host = device.host_buffer(start + len + 5, Transfer::Both, Secrecy::Secret).unwrap();
                host.fill(0xee);
                let mut part = host.split_off(start);
                let end = part.split_off(len);
                part.copy_from_slice(&data);
                ring().run_pinned(&mut part, work).unwrap();
                assert_eq!(&*part, expected, "{slots} {len} {start}");
                part.join(end).unwrap();
                host.join(part).unwrap();
                assert!(host[..start].iter().chain(&host[start + len..]).all(|byte| *byte == 0xee));
            }
        }
    }
}

/// As where a device was lost, and was opened again.
#[test]
fn a_ring_leaves_memory_of_a_device_opened_before_as_it_is() {
    let options = || Options { cache: Some(Cache::at(None)), ..Options::default() };
    let (Some(before), Some(device)) = (open(options()), open(options())) else { return };
    let mut host = before.host_buffer(100, Transfer::Both, Secrecy::Public).unwrap();
    host.fill(7);
    let ring = BytePipeline::new(&device, 64, 2, Secrecy::Public).unwrap();
    let refused = ring.run_pinned(&mut host, |_, _, _, _| Ok::<_, Error>(()));
    assert!(matches!(refused, Err(Error::WrongDevice { .. })), "{refused:?}");
    assert_eq!(*host, [7; 100]);
}

#[test]
fn bytes_of_any_length_pass_through() {
    for device in [shared(), open(tiny_chunks())].into_iter().flatten() {
        for len in [0, 1, 2, 3, 4, 5, 7, 63, 64, 65, 66, 127, 128, 129, 131] {
            let bytes: Vec<u8> = (0..len).map(|i| i as u8 ^ 0x5a).collect();
            let mut buffer = device.upload::<u8>(&bytes).unwrap();
            assert_eq!(buffer.to_vec().unwrap(), bytes);
            assert_eq!(buffer.duplicate().unwrap().to_vec().unwrap(), bytes);
            if len > 2 {
                buffer.view_mut(1..2).unwrap().write(&[1]).unwrap();
                buffer.view_mut(len - 1..).unwrap().write(&[2]).unwrap();
                let mut expected = bytes.clone();
                (expected[1], expected[len - 1]) = (1, 2);
                assert_eq!(buffer.to_vec().unwrap(), expected);
            }
            buffer.clear().unwrap();
            assert_eq!(buffer.to_vec().unwrap(), vec![0; len]);
        }
        let backend = device.backend();
        let (short, mut long) = (device.upload::<u8>(&[9; 5]).unwrap(), device.upload::<u8>(&[7; 12]).unwrap());
        let refused = SpanMut::new(&mut long.memory, 0, 5)
            .and_then(|long| backend.copy(backend.default_queue(), short.as_view().span(), long));
        assert!(matches!(refused, Err(Error::Driver { .. })), "padding would overwrite what follows: {refused:?}");
        assert!(matches!(short.view(3..6), Err(Error::OutOfRange { .. })));
        let refused = SpanMut::new(&mut long.memory, 8, 5);
        assert!(matches!(refused, Err(Error::OutOfRange { .. })));
        assert_eq!(long.to_vec().unwrap(), [7; 12]);
    }
}

#[test]
fn large_data_passes_in_pieces_and_staging_is_reused() {
    let Some(device) = shared() else { return };
    let staging = device.info().limits.staging_bytes as usize / 4;
    // The longer one exceeds the budget of uploads that are under way.
    for (len, rounds) in [(3 * staging + 5, 4), (10 * staging, 1)] {
        let data: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
        for _ in 0..rounds {
            let buffer = device.upload::<u32>(&data).unwrap();
            assert!(buffer.to_vec().unwrap() == data);
        }
    }
}

#[test]
fn much_host_memory_goes_up_in_pieces_whole_and_in_parts() {
    let Some((device, gpu)) = open_gpu(Options { cache: Some(Cache::at(None)), ..Options::default() }) else { return };
    let (piece, live) = (STAGING_BYTES as usize, device.stats().bytes_live);
    let bytes = |len: usize, seed: usize| -> Vec<u8> { (0..len).map(|i| (i * 7 + i / 251 + seed) as u8).collect() };
    let created = || gpu.failures.seen.lock().unwrap().get("create_buffer").copied().unwrap_or(0);
    let cases = [Transfer::Upload, Transfer::Both].into_iter().flat_map(|transfer| {
        let lens = [0, 1, piece - 1, piece, piece + 1, 2 * piece, 2 * piece + 7].map(|len| (transfer, len));
        // More than may be under way at once.
        lens.into_iter().chain([(transfer, STAGING_BUDGET as usize + piece + 5)])
    });
    for ((transfer, len), secrecy) in cases.flat_map(|case| [Secrecy::Public, Secrecy::Secret].map(|s| (case, s))) {
        let case = format!("{len} bytes for {transfer:?}, {secrecy:?}");
        let mut buffer = device.alloc_with::<u8>(len, secrecy).unwrap();
        let mut host = device.host_buffer(len, transfer, secrecy).unwrap();
        host.copy_from_slice(&bytes(len, 1));
        let mut host = buffer.write_pinned(host).unwrap().wait().unwrap();
        assert_eq!((host.len(), host.transfer()), (len, transfer), "{case}");
        assert!(buffer.to_vec().unwrap() == bytes(len, 1), "{case}, whole");
        // In parts: those inside are whole words, the first has an odd number of them, and one is empty.
        let mut expected = bytes(len, 2);
        host.copy_from_slice(&expected);
        let first = (len / 5).next_multiple_of(4).min(len);
        let second = (first + 4 * (len / 8 / 4)).min(len);
        let mut parts = vec![host];
        for at in [second, second, first] {
            let rest = parts[0].split_off(at);
            parts.insert(1, rest);
        }
        let mut at = 0;
        let mut back: Vec<HostBuffer> = Vec::new();
        for part in parts {
            let end = at + part.len();
            let part = buffer.view_mut(at..end).unwrap().write_pinned(part).unwrap().wait().unwrap();
            assert_eq!(part.len(), end - at, "{case}");
            at = end;
            match back.first_mut() {
                Some(whole) => whole.join(part).unwrap(),
                None => back.push(part),
            }
        }
        assert!(buffer.to_vec().unwrap() == expected, "{case}, in parts");
        let mut host = back.pop().unwrap();
        assert_eq!(host.len(), len, "{case}");
        // A part in the middle, from bytes of the host that are not aligned to words.
        if len > piece {
            let (skip, at, count) = (3, 4, piece + 4);
            let count = count.min(len - 4) / 4 * 4;
            host.copy_from_slice(&bytes(len, 3));
            let mut middle = host.split_off(skip);
            let end = middle.split_off(count);
            let middle = buffer.view_mut(at..at + count).unwrap().write_pinned(middle).unwrap().wait().unwrap();
            expected[at..at + count].copy_from_slice(&bytes(len, 3)[skip..skip + count]);
            assert!(buffer.to_vec().unwrap() == expected, "{case}, in the middle");
            host.join(middle).unwrap();
            host.join(end).unwrap();
        }
        // What it may be read into.
        let refused = buffer.read_pinned(host);
        match transfer {
            Transfer::Upload => assert!(refused.is_err(), "{case}: {refused:?}"),
            _ => assert!(*refused.unwrap().wait().unwrap() == expected, "{case}, read"),
        }
        assert!(buffer.to_vec().unwrap() == expected, "{case}, afterwards");
    }
    // Once all that is kept is there, a cycle creates nothing, and what is secret is gone.
    let len = 2 * piece + 7;
    device.trim();
    let cycle = |transfer, secrecy| {
        let mut buffer = device.alloc_with::<u8>(len, secrecy).unwrap();
        let mut host = device.host_buffer(len, transfer, secrecy).unwrap();
        host.fill(0xaa);
        let host = buffer.write_pinned(host).unwrap().wait().unwrap();
        drop(host);
        device.sync().unwrap();
    };
    let cycles = || {
        for transfer in [Transfer::Upload, Transfer::Both] {
            cycle(transfer, Secrecy::Secret);
            let kept = device.host_buffer(len, transfer, Secrecy::Public).unwrap();
            assert!(kept.iter().all(|byte| *byte == 0), "{transfer:?}");
            drop(kept);
            for staged in [piece, 7] {
                let staging = device.host_buffer(staged, Transfer::Upload, Secrecy::Public).unwrap();
                assert!(staging.iter().all(|byte| *byte == 0), "staging of {staged} bytes for {transfer:?}");
            }
        }
    };
    cycles();
    let counts = || {
        let pools = [gpu.uploads.bytes(), gpu.downloads.bytes(), gpu.large.bytes()];
        (created(), pools, device.stats().bytes_pooled)
    };
    let before = counts();
    (0..10).for_each(|_| cycles());
    assert_eq!(counts(), before);
    gpu.wait(None).unwrap();
    assert_eq!((gpu.uploading.load(Ordering::Relaxed), device.stats().bytes_live), (0, live));

    // Long host memory that was dropped takes no room from what reads pass through.
    device.trim();
    drop(device.host_buffer(STAGING_BUDGET as usize, Transfer::Upload, Secrecy::Public).unwrap());
    let buffer = device.alloc::<u8>(piece).unwrap();
    let read = || drop(buffer.to_vec().unwrap());
    read();
    let before = created();
    (0..10).for_each(|_| read());
    assert_eq!(created(), before);
}

#[test]
fn long_host_memory_that_is_not_used_any_more_gives_way() {
    let Some((device, gpu)) = open_gpu(Options { cache: Some(Cache::at(None)), ..Options::default() }) else { return };
    let created = || gpu.failures.seen.lock().unwrap().get("create_buffer").copied().unwrap_or(0);
    let take = |bytes: u64| drop(device.host_buffer(bytes as usize, Transfer::Both, Secrecy::Public).unwrap());
    take(STAGING_BUDGET);
    // As much as is kept must have been asked for since.
    (1..STAGING_BUDGET / (2 * STAGING_BYTES)).for_each(|_| take(2 * STAGING_BYTES));
    assert_eq!(gpu.large.bytes(), STAGING_BUDGET);
    take(2 * STAGING_BYTES);
    let before = created();
    (0..10).for_each(|_| take(2 * STAGING_BYTES));
    assert_eq!((created(), gpu.large.bytes()), (before, 2 * STAGING_BYTES));
}

/// An element whose size does not divide that of staging memory, like an extension field's.
struct Wide;

impl Element for Wide {
    type Host = [u32; 12];
    const BYTES: usize = 48;

    fn encode(src: &[Self::Host], dst: &mut [u8]) {
        dst.copy_from_slice(bytemuck::cast_slice(src));
    }

    fn decode(src: &[u8], dst: &mut [Self::Host]) -> Result<()> {
        bytemuck::cast_slice_mut(dst).copy_from_slice(src);
        Ok(())
    }
}

#[test]
fn pieces_of_all_elements_pass_through_short_host_memory() {
    let Some((device, gpu)) = open_gpu(Options { cache: Some(Cache::at(None)), ..Options::default() }) else { return };
    let words: Vec<[u32; 12]> = (0..3 * STAGING_BYTES as u32 / 48).map(|i| [i; 12]).collect();
    assert!(device.upload::<Wide>(&words).unwrap().to_vec().unwrap() == words);
    assert_eq!(gpu.large.bytes(), 0, "elements of 48 bytes");
    // Between words too.
    let bytes: Vec<u8> = (0..3 * STAGING_BYTES).map(|i| (i * 7 + i / 251) as u8).collect();
    let mut buffer = device.zeros::<u8>(bytes.len() + 2).unwrap();
    let mut view = buffer.view_mut(1..=bytes.len()).unwrap();
    view.write(&bytes).unwrap();
    assert!(view.to_vec().unwrap() == bytes);
    assert_eq!(gpu.large.bytes(), 0, "bytes between words");
}

#[test]
fn secrets_are_gone_when_their_memory_comes_back() {
    let Some(device) = open(Options { cache: Some(Cache::at(None)), ..Options::default() }) else { return };
    let backend = device.backend();
    let secret = device.upload_with::<u32>(&[0xdead_beef; 64], Secrecy::Secret).unwrap();
    assert_eq!(secret.to_vec().unwrap(), [0xdead_beef; 64]);
    for transfer in [Transfer::Upload, Transfer::Download] {
        let staging: HostBuffer = backend.host_buffer(256, transfer, Secrecy::Public).unwrap();
        assert!(staging.iter().all(|byte| *byte == 0), "{transfer:?}");
        let mut unused = backend.host_buffer(256, transfer, Secrecy::Secret).unwrap();
        unused.fill(0xaa);
        drop(unused);
        let staging = backend.host_buffer(256, transfer, Secrecy::Public).unwrap();
        assert!(staging.iter().all(|byte| *byte == 0), "{transfer:?} that was not used");
    }
    drop(secret);
    assert_eq!(device.alloc::<u32>(64).unwrap().to_vec().unwrap(), [0; 64], "the same block from the pool");
}

#[test]
fn events_are_ordered_and_timed() {
    let Some(device) = shared() else { return };
    let queue = device.queue().unwrap();
    let kernel = add(&device, 64);
    let start = device.default_queue().record().unwrap();
    let (actual, expected) = run_add(&device, &kernel, 1 << 18, 8);
    assert_eq!(actual, expected);
    let end = queue.record().unwrap();
    queue.wait_for(&end).unwrap();
    let elapsed = device.elapsed(&start, &end).unwrap();
    assert!(elapsed > Duration::ZERO && elapsed < Duration::from_secs(60), "{elapsed:?}");
    assert_eq!(device.elapsed(&start, &end).unwrap(), elapsed, "asked twice");
    // More events than there are slots for timestamps.
    let events: Vec<_> = (0..100).map(|_| device.default_queue().record().unwrap()).collect();
    for pair in events.windows(2) {
        assert!(device.elapsed(&pair[0], &pair[1]).unwrap() < Duration::from_secs(60));
    }
}
