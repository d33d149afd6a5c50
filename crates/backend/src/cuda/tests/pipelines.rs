//! Pieces on their way through the device, whichever call fails.

use std::io::Read;

use super::super::double::{self, Failure};
use super::*;
use crate::{
    buffer::Buffer,
    byte_pipeline::BytePipeline,
    error::{Error, Result},
    host::HostBuffer,
    info::Transfer,
    pinned_pipeline::PinnedPipeline,
    prefetch::{HostData, Prefetch},
    queue::Queue,
    secrecy::Secrecy,
    view::View,
};

/// Parts of host memory go to the device and come back into the same place, and no call leaves them under a copy.
#[test]
fn streams_keep_their_memory_until_copies_are_done() {
    let transfers = ["cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"];
    let order = ["none", "cuEventRecord", "cuEventSynchronize", "cuStreamWaitEvent"];
    for function in transfers.into_iter().chain(order) {
        for (n, failure) in (0..12).flat_map(|n| [(n, Failure::Once), (n, Failure::Late), (n, Failure::Lasting)]) {
            let case = format!("call {n} of {function} fails: {failure:?}");
            double::reset(false);
            let device = open(0).unwrap();
            let mut stream = PinnedPipeline::<u32>::new(&device, 12, Secrecy::Secret).unwrap();
            // Eight words: the last five are the first part.
            let piece = |i: u32| {
                let mut all = device.host_buffer(32, Transfer::Both, Secrecy::Secret).unwrap();
                let words: Vec<u32> = (0..8).map(|k| 100 * i + (k + 5) % 8).collect();
                all.copy_from_slice(bytemuck::cast_slice(&words));
                let rest = all.split_off(12);
                vec![rest, all]
            };
            let pieces: Vec<_> = (0..6).map(piece).collect();
            double::fail(function, n, failure);
            let mut done = Vec::new();
            let mut failed = 0;
            for parts in pieces {
                // Where each word goes: the parts were exchanged, and come back one further.
                let work = |queue: &Queue, data: &mut Buffer<u32>| {
                    let (given, mut rest) = data.as_view_mut().split_at(8)?;
                    queue.copy(given.view(..1)?, rest.view_mut(..1)?)?;
                    Ok::<_, Error>(1..9)
                };
                match stream.run(parts, work) {
                    Ok(parts) => done.extend(parts),
                    Err(_) => failed += 1,
                }
            }
            for _ in 0..6 {
                match stream.next() {
                    Ok(parts) => done.extend(parts),
                    Err(_) => failed += 1,
                }
            }
            double::heal();
            let words = |parts: &Vec<HostBuffer>| -> Vec<u32> {
                assert_eq!([parts[0].len(), parts[1].len()], [20, 12], "{case}");
                parts.iter().flat_map(|part| bytemuck::pod_collect_to_vec(part)).collect()
            };
            let found: Vec<Vec<u32>> = done.iter().map(words).collect();
            // What was given to the device: 5 + 3 words in this order, then all one further, the first again at the
            // end.
            let expected = |i: u32| -> Vec<u32> { (0..8).map(|k| 100 * i + (k + 1) % 8).collect() };
            if function == "none" {
                assert_eq!((found.len(), failed), (6, 0), "{case}");
                assert!(found.iter().enumerate().all(|(i, words)| *words == expected(i as u32)), "{case}: {found:?}");
            }
            // In order, and whole.
            assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{case}: {found:?}");
            assert!(found.iter().all(|words| *words == expected(words[0] / 100)), "{case}: {found:?}");
            drop((done, stream, device));
            double::run_all();
            assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]), "{case}");
        }
    }
}

/// The last piece comes after the others, but waits for none to go back.
#[test]
fn uploads_of_a_stream_come_one_after_the_other() {
    double::reset(false);
    let device = open(0).unwrap();
    let mut stream = PinnedPipeline::<u32>::new(&device, LEN, Secrecy::Public).unwrap();
    let (mut given, mut last) = (Vec::new(), None);
    for word in 0..3 {
        let host = host(&device, Transfer::Both, Secrecy::Public, word).unwrap();
        given.push(double::Transfer::Up(host.as_ptr().addr()));
        let work = |queue: &Queue, _: &mut Buffer<u32>| {
            last = Some(queue.record()?);
            Ok::<_, Error>(0..LEN)
        };
        stream.run(vec![host], work).unwrap();
    }
    let last = last.unwrap();
    device.elapsed(&last, &last).unwrap();
    assert_eq!(double::transfers(), given);
    drop((last, stream, device));
    double::run_all();
    assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]));
}

/// What a ring has given is right, all else is as it was, and no call leaves its memory under a copy. Of one thread of
/// the pool, since each has a driver of its own.
#[test]
fn rings_keep_their_memory_until_copies_are_done() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        for function in ["none", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord", "cuEventSynchronize"]
        {
            for (n, failure) in (0..16).flat_map(|n| [(n, Failure::Once), (n, Failure::Late), (n, Failure::Lasting)]) {
                for way in 0..3 {
                    ring_fails(function, n, failure, way);
                }
            }
        }
    });
}

/// Seven pieces and a bit through three places.
fn ring_fails(function: &'static str, n: usize, failure: Failure, way: usize) {
    const PIECE: usize = 64;

    let case = format!("call {n} of {function} fails: {failure:?}, way {way}");
    double::reset(false);
    let device = open(0).unwrap();
    let ring = || BytePipeline::new(&device, PIECE, 3, Secrecy::Secret);
    let data: Vec<u8> = (1..=(7 * PIECE + 13) as u32).map(|i| (i * 7 + i / 251) as u8).collect();
    let mut expected = data.clone();
    expected.chunks_mut(PIECE).for_each(|piece| piece.copy_within(..4, 4));
    let work = |queue: &Queue, piece: &mut Buffer<u8>| {
        let (first, mut rest) = piece.as_view_mut().split_at(4)?;
        queue.copy(&first, rest.view_mut(..4)?)
    };
    let run = |found: &mut Vec<u8>, slice: &mut [u8]| match way {
        0 => ring()?.run(slice, |queue, piece, _, _| work(queue, piece), |piece| found.extend_from_slice(piece)),
        1 => {
            let mut left = &data[..];
            let input = |piece: &mut [u8]| Ok(left.read(piece).unwrap());
            let done = |piece: &[u8]| {
                found.extend_from_slice(piece);
                Ok(())
            };
            ring()?.pump(input, |queue, piece, _, _| work(queue, piece), done)
        }
        _ => {
            let mut host = device.host_buffer(data.len(), Transfer::Both, Secrecy::Secret)?;
            host.copy_from_slice(&data);
            let done = ring()?.run_pinned(&mut host, |queue, piece, _, _| work(queue, piece));
            assert!(done.is_ok() || host.is_empty(), "{case}");
            found.extend_from_slice(&host);
            done
        }
    };
    let (mut found, mut slice) = (Vec::new(), data.clone());
    double::fail(function, n, failure);
    let done: Result<()> = run(&mut found, &mut slice);
    let failed = !double::is_armed() || failure == Failure::Lasting;
    double::heal();
    assert!(done.is_err() || found == expected, "{case}");
    assert!(done.is_ok() || failed && function != "none", "{case}: {done:?}");
    assert_eq!(found, expected[..found.len()], "{case}");
    if way == 0 {
        assert!(slice == [&expected[..found.len()], &data[found.len()..]].concat(), "{case}");
    }
    expect_no_dma(&device, &case);
    (found, slice) = (Vec::new(), data.clone());
    run(&mut found, &mut slice).unwrap();
    assert!(found == expected, "{case}, and again");
    drop(device);
    double::run_all();
    assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]), "{case}");
}

/// Each piece is read as it was given, whichever call fails for another one, and no call leaves host memory under a
/// copy.
#[test]
fn uploads_keep_their_memory_until_it_is_read() {
    for function in ["none", "cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuEventSynchronize", "cuStreamWaitEvent"] {
        for (n, failure) in (0..24).flat_map(|n| [(n, Failure::Once), (n, Failure::Late), (n, Failure::Lasting)]) {
            for way in 0..4 {
                uploads_fail(function, n, failure, way);
            }
        }
    }
}

/// Seven pieces through two memories.
fn uploads_fail(function: &'static str, n: usize, failure: Failure, way: usize) {
    const PIECES: usize = 7;
    const WORDS: usize = 4;

    let case = format!("call {n} of {function} fails: {failure:?}, way {way}");
    double::reset(false);
    let device = open(0).unwrap();
    let own = device.queue().unwrap();
    let mut out = device.alloc_with::<u32>(PIECES * WORDS, Secrecy::Secret).unwrap();
    let lens = [WORDS; PIECES];
    let mut uploads = match way {
        0 => Prefetch::<u32>::new(&device, WORDS, 2, Secrecy::Secret),
        1 => Prefetch::ahead_of(&device, &lens, 2, Secrecy::Secret),
        _ => Prefetch::ahead_of(&own, &lens, 2, Secrecy::Secret),
    }
    .unwrap();
    let words = |piece: usize| -> [u32; WORDS] { std::array::from_fn(|i| (100 * piece + i + 1) as u32) };
    let mut given = device.host_buffer(4 * PIECES * WORDS, Transfer::Upload, Secrecy::Secret).unwrap();
    (0..PIECES).for_each(|i| given[16 * i..][..16].copy_from_slice(bytemuck::cast_slice(&words(i))));
    let mut left = HostData::Pinned(given);
    double::fail(function, n, failure);
    let (mut done, mut back) = (Vec::new(), 0);
    for piece in 0..PIECES {
        let work =
            |queue: &Queue, data: View<'_, u32>, _| queue.copy(data, out.view_mut(piece * WORDS..(piece + 1) * WORDS)?);
        let ran = match way {
            3 => uploads.run(&words(piece)[..], work),
            2 => uploads.run(left.split_to(WORDS), work),
            _ => uploads.host().and_then(|mut host| {
                assert!(!double::pending(&host), "{case}: memory is given out under a copy");
                host.copy_from_slice(bytemuck::cast_slice(&words(piece)));
                uploads.run(host, work)
            }),
        };
        done.extend(ran.is_ok().then_some(piece));
    }
    for _ in 0..PIECES {
        back += usize::from(uploads.next().is_ok_and(|host| host.is_some()));
    }
    let failed = !double::is_armed() || failure == Failure::Lasting;
    double::heal();
    assert!(function != "none" || done.len() == PIECES, "{case}: {done:?}");
    assert!(done.len() == PIECES || failed, "{case}: {done:?}");
    if function == "none" {
        assert_eq!(back, [2, 2, PIECES, 0][way], "{case}");
    }
    // The uploads before what reads them, where they are not held back.
    double::run_all();
    device.sync().unwrap();
    let found = out.to_vec().unwrap();
    assert!(done.iter().all(|i| found[i * WORDS..][..WORDS] == words(*i)), "{case}: {done:?} of {found:?}");
    drop((uploads, left));
    expect_no_dma(&device, &case);
    drop((out, own, device));
    double::run_all();
    assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]), "{case}");
}

/// What was queued before the caller's part failed is read as it was given too.
#[test]
fn uploads_wait_for_work_of_pieces_that_failed() {
    double::reset(false);
    let device = open(0).unwrap();
    let mut out = device.zeros::<u32>(4).unwrap();
    let mut uploads = Prefetch::<u32>::ahead_of(&device, &[1; 4], 2, Secrecy::Public).unwrap();
    let word = |word: u32| {
        let mut host = device.host_buffer(4, Transfer::Upload, Secrecy::Public).unwrap();
        host.copy_from_slice(&word.to_le_bytes());
        host
    };
    for i in 0..4 {
        let work = |queue: &Queue, data: View<'_, u32>, _| {
            queue.copy(data, out.view_mut(i..=i)?)?;
            Err::<(), _>(Error::Undecodable { index: i as u64 })
        };
        assert_eq!(uploads.run(word(i as u32 + 1), work).unwrap_err(), Error::Undecodable { index: i as u64 });
    }
    uploads.run(word(5), |_, _, _| Ok::<_, Error>(())).unwrap();
    assert!(uploads.next().unwrap().is_some());
    assert_eq!(out.to_vec().unwrap(), [1, 2, 3, 4]);
    drop((uploads, out, device));
    double::run_all();
    assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]));
}
