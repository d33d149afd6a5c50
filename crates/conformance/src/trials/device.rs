//! Buffers, copies, queues, and what happens when they are misused.

mod freed;
mod queues;
mod secrets;
mod views;

use std::{thread, time::Duration};

use evariste::backend::{Device, Error, Secrecy, Transfer};

use crate::{
    area::Area,
    devices::other_device,
    expect::{expect, expect_equal, expect_error, expect_same},
    harness::{DeviceTrials, Outcome},
    launches,
};

pub(crate) const AREA: Area = Area { operations: secrets::OPERATIONS, freed: freed::FREED, ..Area::new("device", add) };

fn add(trials: &mut DeviceTrials<'_>) {
    queues::add(trials);
    views::add(trials);
    trials.add("second_text", launches::second_text);
    trials.add("round_trips", round_trips);
    trials.add("ranges_and_alignment", ranges_and_alignment);
    trials.add("copies_and_clears", copies_and_clears);
    trials.add("pinned_transfers", pinned_transfers);
    trials.add("pinned_parts_on_several_queues", pinned_parts);
    trials.add("pinned_columns", pinned_columns);
    trials.add("pinned_misuse", pinned_misuse);
    trials.add("wrong_ranges_and_lengths", wrong_ranges_and_lengths);
    match other_device(trials.device) {
        Some(_) => trials.add("wrong_device", wrong_device),
        None => trials.skip("wrong_device", "no other device, which all trials of misuse do without"),
    }
    trials.add_alone("too_large_then_usable", too_large_then_usable);
    trials.add("queues_and_events", queues_and_events);
    trials.add("two_threads", two_threads);
    trials.add_alone("stats_count", stats_count);
    trials.add_alone("secrets_are_zeroed", secrets_are_zeroed);
    trials.add_alone("memory_is_given_back", memory_is_given_back);
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn words(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect()
}

fn round_trips(device: &Device) -> Outcome {
    for len in [0, 1, 2, 3, 4, 5, 31, 1000, 4097, (1 << 20) + 3] {
        expect_same("bytes", &device.upload::<u8>(&bytes(len))?.to_vec()?, &bytes(len))?;
        expect_same("words", &device.upload::<u32>(&words(len))?.to_vec()?, &words(len))?;
        let wide: Vec<u64> = words(len).into_iter().map(|w| u64::from(w) << 31 | 1).collect();
        expect_same("wide words", &device.upload::<u64>(&wide)?.to_vec()?, &wide)?;
    }
    // More than one piece of staging memory, where that is bounded.
    let long = words((9 << 20) + 1);
    expect_same("long", &device.upload::<u32>(&long)?.to_vec()?, &long)
}

fn ranges_and_alignment(device: &Device) -> Outcome {
    let mut expected = bytes(1001);
    let mut buffer = device.upload::<u8>(&expected)?;
    for (offset, len) in [(0, 1), (1, 1), (2, 5), (3, 0), (7, 13), (996, 5), (1000, 1), (4, 996), (1001, 0)] {
        let piece: Vec<u8> = bytes(len).iter().map(|b| b ^ 0x5a).collect();
        buffer.view_mut(offset..offset + len)?.write(&piece)?;
        expected[offset..offset + len].copy_from_slice(&piece);
        let mut back = vec![0; len];
        buffer.view(offset..offset + len)?.read(&mut back)?;
        expect_same("piece", &back, &piece)?;
        expect_same("whole", &buffer.to_vec()?, &expected)?;
    }
    Ok(())
}

fn copies_and_clears(device: &Device) -> Outcome {
    for len in [0, 1, 3, 1000, 300_001] {
        let source = device.upload::<u8>(&bytes(len))?;
        let mut copy = source.duplicate()?;
        expect_same("copy", &copy.to_vec()?, &bytes(len))?;
        copy.clear()?;
        expect_same("cleared", &copy.to_vec()?, &vec![0; len])?;
        copy.copy_from(&source)?;
        expect_same("copied back", &copy.to_vec()?, &bytes(len))?;
        expect_same("zeros", &device.zeros::<u64>(len)?.to_vec()?, &vec![0; len])?;
    }
    Ok(())
}

fn pinned_transfers(device: &Device) -> Outcome {
    for (up, down) in [(Transfer::Upload, Transfer::Download), (Transfer::Both, Transfer::Both)] {
        for len in [0, 1, 3, 4, 1000, (3 << 20) + 2] {
            let mut buffer = device.alloc_with::<u8>(len, Secrecy::Secret)?;
            let mut host = device.host_buffer(len, up, Secrecy::Secret)?;
            host.copy_from_slice(&bytes(len));
            let sent = buffer.write_pinned(host)?.wait()?;
            expect_equal("length of what comes back", &sent.len(), &len)?;
            expect_same("written", &buffer.to_vec()?, &bytes(len))?;
            let host = device.host_buffer(len, down, Secrecy::Secret)?;
            expect_same("read", &buffer.read_pinned(host)?.wait()?, &bytes(len))?;
        }
    }
    // Nobody waits: the write happens all the same, and the memory may come back from its pool.
    let mut buffer = device.zeros::<u32>(1000)?;
    for round in 0..20_u32 {
        let mut host = device.host_buffer(400, Transfer::Upload, Secrecy::Public)?;
        host.fill(round as u8);
        let start = 45 * round as usize;
        drop(buffer.view_mut(start..start + 100)?.write_pinned(host)?);
        drop(buffer.read_pinned(device.host_buffer(4000, Transfer::Download, Secrecy::Public)?)?);
    }
    // Each write is longer than its step, so that it ends under the next one.
    let expected: Vec<u32> = (0..955).map(|i: u32| (i / 45).min(19) * 0x0101_0101).chain([0; 45]).collect();
    expect_same("words", &buffer.to_vec()?, &expected)
}

/// Parts of one allocation go up and down on queues of their own, and join to what was there.
fn pinned_parts(device: &Device) -> Outcome {
    let (part, count) = (100_001 * 4, 5);
    let len = part * count;
    let mut rest = device.host_buffer(len, Transfer::Both, Secrecy::Public)?;
    rest.copy_from_slice(&bytes(len));
    let mut under_way = Vec::new();
    while !rest.is_empty() {
        let tail = rest.split_off(part);
        let queue = device.queue()?;
        let mut buffer = device.alloc::<u8>(part)?;
        let sent = queue.write_pinned(&mut buffer, std::mem::replace(&mut rest, tail))?;
        under_way.push((queue, buffer, sent));
    }
    let mut back = Vec::new();
    for (queue, buffer, sent) in &mut under_way.into_iter() {
        let mut host = sent.wait()?;
        host.fill(0);
        back.push(queue.read_pinned(&buffer, host)?);
    }
    let mut joined = rest;
    for (i, pending) in back.into_iter().enumerate() {
        let host = pending.wait()?;
        match i {
            0 => joined = host,
            _ => joined.join(host).map_err(|_| "parts that follow each other join")?,
        }
    }
    expect_same("joined", &joined, &bytes(len))
}

/// Blocks of columns go up on one queue, are copied on another as soon as they are there, and go down on the first.
fn pinned_columns(device: &Device) -> Outcome {
    for (rows, columns, pieces) in [(1, 12, 3), (7, 6, 1), (16, 1000, 8), (5, 3, 3), (1024, 512, 4), (0, 0, 1)] {
        let (transfers, work) = (device.queue()?, device.queue()?);
        let len = 4 * rows * columns;
        let mut host = device.host_buffer(len, Transfer::Both, Secrecy::Public)?;
        host.copy_from_slice(&bytes(len));
        let (mut first, mut second) = (device.zeros::<u32>(rows * columns + 3)?, device.zeros(rows * columns + 3)?);
        // The zeros are written on the default queue.
        let zeroed = device.default_queue().record()?;
        transfers.wait_for(&zeroed)?;
        work.wait_for(&zeroed)?;
        let behind = 2..2 + rows * columns;
        let mut part = first.view_mut(behind.clone())?;
        let (there, sent) = transfers.write_pinned_columns(&mut part, host, rows, pieces)?;
        expect_equal("events", &there.len(), &pieces)?;
        let mut copied = Vec::new();
        for (piece, event) in there.iter().enumerate() {
            work.wait_for(event)?;
            for row in 0..rows {
                let at = 2 + row * columns + piece * (columns / pieces);
                let place = at..at + columns / pieces;
                work.copy(first.view(place.clone())?, second.view_mut(place)?)?;
            }
            copied.push(work.record()?);
        }
        let mut host = sent.wait()?;
        host.fill(0);
        let host = transfers.read_pinned_columns(second.view(behind)?, host, rows, &copied)?.wait()?;
        expect_same(&format!("{rows} × {columns} in {pieces}"), &host, &bytes(len))?;
        device.sync()?;
        let around = second.to_vec()?;
        expect_equal("around", &(around[1], around[rows * columns + 2]), &(0, 0))?;
    }
    let mut buffer = device.upload::<u32>(&words(12))?;
    for (rows, pieces, expected) in [(5, 1, 60), (3, 3, 72), (1, 0, 0)] {
        let host = device.host_buffer(48, Transfer::Both, Secrecy::Public)?;
        let written = device.default_queue().write_pinned_columns(&mut buffer, host, rows, pieces);
        let error = expect_error("uneven blocks", written)?;
        let what = "the blocks of columns of a copy, in bytes";
        expect_equal("uneven", &error, &Error::Length { what, expected, actual: 48 })?;
    }
    expect_same("untouched", &buffer.to_vec()?, &words(12))
}

fn pinned_misuse(device: &Device) -> Outcome {
    let id = device.info().id;
    let mut buffer = device.upload::<u32>(&words(10))?;
    let host = |len| device.host_buffer(len, Transfer::Both, Secrecy::Public);
    let error = expect_error("part of an element", buffer.view_mut(..2)?.write_pinned(host(7)?))?;
    let what = "the host memory of a copy, in bytes";
    expect_equal("part", &error, &Error::Length { what, expected: 8, actual: 7 })?;
    let mut odd = device.upload::<u8>(&bytes(10))?;
    let error = expect_error("a write to half a word", odd.view_mut(2..6)?.write_pinned(host(4)?))?;
    expect_equal("half", &error, &Error::Unaligned { what: "write", expected: 4, offset: 2, count: 4 })?;
    let error = expect_error("a read of half a word", odd.view(4..7)?.read_pinned(host(3)?))?;
    expect_equal("half", &error, &Error::Unaligned { what: "read", expected: 4, offset: 4, count: 3 })?;
    drop(odd.view_mut(8..)?.write_pinned(host(2)?)?);
    let upload = device.host_buffer(4, Transfer::Upload, Secrecy::Public)?;
    let error = expect_error("a read into memory for uploads", buffer.view(..1)?.read_pinned(upload))?;
    let (expected, actual) = (Transfer::Download, Transfer::Upload);
    let what = "the host memory of a read";
    expect_equal("direction", &error, &Error::WrongTransfer { what, expected, actual })?;
    if let Some(other) = other_device(device) {
        let foreign = other.host_buffer(8, Transfer::Both, Secrecy::Public)?;
        let error = expect_error("host memory of another device", buffer.write_pinned(foreign))?;
        let (what, actual) = ("the host memory of a copy", other.info().id);
        expect_equal("foreign", &error, &Error::WrongDevice { what, expected: id, actual })?;
    }
    expect_same("untouched", &buffer.to_vec()?, &words(10))
}

fn wrong_ranges_and_lengths(device: &Device) -> Outcome {
    let mut buffer = device.upload::<u32>(&words(10))?;
    let out_of_range = |what, offset, count| Error::OutOfRange { what, offset, count, len: 10 };
    let error = expect_error("a part past the end", buffer.view_mut(8..11))?;
    expect_equal("part", &error, &out_of_range("a view", 8, 3))?;
    let error = expect_error("a part far past the end", buffer.view(usize::MAX..usize::MAX))?;
    expect_equal("part", &error, &out_of_range("a view", u64::MAX, 0))?;
    let error = expect_error("a write of another length", buffer.write(&[0; 9]))?;
    expect_equal("write", &error, &Error::Length { what: "the target of a write", expected: 9, actual: 10 })?;
    let error = expect_error("a read of another length", buffer.read(&mut [0; 11]))?;
    expect_equal("read", &error, &Error::Length { what: "the source of a read", expected: 11, actual: 10 })?;
    let error = expect_error("a copy of another length", buffer.copy_from(&device.zeros(9)?))?;
    expect_equal("copy", &error, &Error::Length { what: "the source of a copy", expected: 10, actual: 9 })?;
    expect_same("untouched", &buffer.to_vec()?, &words(10))
}

fn wrong_device(device: &Device) -> Outcome {
    let Some(other) = other_device(device) else { return Ok(()) };
    let mut buffer = device.upload::<u32>(&words(10))?;
    let (expected, actual) = (device.info().id, other.info().id);
    let copied = device.default_queue().copy(&other.zeros(10)?, &mut buffer);
    let error = expect_error("a copy within a device from another one", copied)?;
    expect_equal("copy", &error, &Error::WrongDevice { what: "the source of a copy", expected, actual })?;
    expect_error("an event of another device", device.default_queue().wait_for(&other.default_queue().record()?))?;
    let error = expect_error("a queue of another device", other.queue()?.write(buffer.view_mut(..1)?, &[1]))?;
    let what = "the target of a write";
    expect_equal("queue", &error, &Error::WrongDevice { what, expected: actual, actual: expected })?;
    expect_same("untouched", &buffer.to_vec()?, &words(10))
}

fn too_large_then_usable(device: &Device) -> Outcome {
    let limit = device.info().limits.buffer_bytes;
    for len in [usize::MAX, (limit as usize).saturating_add(1)] {
        let error = expect_error("an allocation past the limit", device.alloc::<u8>(len))?;
        let expected =
            Error::TooLarge { what: "buffer", device: device.info().id, expected: limit, actual: len as u64 };
        expect_equal("limit", &error, &expected)?;
    }
    // As large as the limits allow, and larger than any memory: refused when memory runs out, if not by the limit.
    let mut held = Vec::new();
    let mut failure = None;
    let step = (1usize << 46).min(limit as usize);
    let most = if device.info().features.software { 0 } else { 4096 };
    for _ in 0..most {
        match device.alloc::<u8>(step) {
            Ok(buffer) => held.push(buffer),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    if most > 0 {
        let Some(Error::OutOfMemory { requested, .. }) = failure else {
            return Err(format!("expected OutOfMemory, got {failure:?} after {} buffers", held.len()).into());
        };
        expect_equal("requested", &requested, &(step as u64))?;
    }
    drop(held);
    expect_same("usable", &device.upload::<u32>(&words(1000))?.to_vec()?, &words(1000))
}

fn queues_and_events(device: &Device) -> Outcome {
    let (first, second) = (device.queue()?, device.queue()?);
    let long = words(1 << 20);
    let mut buffer = device.zeros::<u32>(long.len())?;
    let start = device.default_queue().record()?;
    first.wait_for(&start)?;
    first.write(&mut buffer, &long)?;
    let written = first.record()?;
    second.wait_for(&written)?;
    expect_same("read on another queue", &second.read(&buffer)?, &long)?;
    device.default_queue().wait_for(&written)?;
    let copy = buffer.duplicate()?;
    let end = device.default_queue().record()?;
    let [all, part] = [device.elapsed(&start, &end)?, device.elapsed(&start, &written)?];
    expect("time passes", all >= part && part > Duration::ZERO)?;
    // Dropped while another queue may still work on it.
    second.write(&mut buffer, &long)?;
    drop(buffer);
    expect_same("copy", &copy.to_vec()?, &long)?;
    Ok(device.sync()?)
}

fn two_threads(device: &Device) -> Outcome {
    let work = |seed: usize| -> Result<(), Error> {
        for round in 0..50 {
            let expected = words(1000 + 37 * seed + round);
            let buffer = device.upload::<u32>(&expected)?;
            let copy = buffer.duplicate()?;
            drop(buffer);
            assert_eq!(copy.to_vec()?, expected);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads = [0, 1, 2].map(|seed| scope.spawn(move || work(seed)));
        for thread in threads {
            thread.join().map_err(|_| "a thread saw wrong data")??;
        }
        Ok(())
    })
}

fn stats_count(device: &Device) -> Outcome {
    let before = device.stats();
    let buffer = device.upload::<u32>(&words(1000))?;
    let held = device.stats();
    buffer.to_vec()?;
    let after = device.stats();
    expect("writes are counted", held.writes == before.writes + 1 && held.bytes_up == before.bytes_up + 4000)?;
    expect("reads are counted", after.reads == before.reads + 1 && after.bytes_down == before.bytes_down + 4000)?;
    expect("memory is counted", held.bytes_live >= 4000 && held.bytes_peak >= 4000)
}

fn secrets_are_zeroed(device: &Device) -> Outcome {
    // A size that nothing else uses, so that the pool hands out the same memory again: what is not secret is left
    // there.
    let len = 777_777;
    drop(device.upload::<u8>(&vec![0x5a; len])?);
    let left = device.alloc::<u8>(len)?.to_vec()?;
    expect("memory comes back from the pool as it was", left.windows(16).any(|window| window == [0x5a; 16]))?;
    let secret = vec![0xa5; len];
    let buffer = device.upload_with::<u8>(&secret, Secrecy::Secret)?;
    expect_same("secret", &buffer.to_vec()?, &secret)?;
    expect_equal("secrecy", &buffer.secrecy(), &Secrecy::Secret)?;
    drop(buffer);
    for _ in 0..3 {
        let reused = device.alloc::<u8>(len)?.to_vec()?;
        expect("no secret is left in reused memory", !reused.windows(16).any(|window| window == [0xa5; 16]))?;
    }
    Ok(())
}

fn memory_is_given_back(device: &Device) -> Outcome {
    for _ in 0..200 {
        device.upload::<u32>(&words(100_000))?;
    }
    device.sync()?;
    let before = device.stats().bytes_pooled;
    device.trim();
    let after = device.stats().bytes_pooled;
    expect(&format!("of {before} bytes in the pool {after} are left, and fewer than before"), after < before)?;
    expect_same("usable", &device.upload::<u32>(&words(1000))?.to_vec()?, &words(1000))
}
