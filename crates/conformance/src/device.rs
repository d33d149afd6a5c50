//! Buffers, copies, queues, and what happens when they are misused.

use std::thread;

use evariste_backend::{Device, Error, Secrecy};

use crate::{Outcome, Suite, expect, expect_equal, expect_error, expect_same, other_device};

pub(crate) fn add(suite: &mut Suite<'_>) {
    suite.add("round_trips", round_trips);
    suite.add("ranges_and_alignment", ranges_and_alignment);
    suite.add("copies_and_clears", copies_and_clears);
    suite.add("wrong_ranges_and_lengths", wrong_ranges_and_lengths);
    suite.add("wrong_device", wrong_device);
    suite.add_alone("too_large_then_usable", too_large_then_usable);
    suite.add("queues_and_events", queues_and_events);
    suite.add("two_threads", two_threads);
    suite.add_alone("stats_count", stats_count);
    suite.add("secrets_are_zeroed", secrets_are_zeroed);
    suite.add("memory_is_given_back", memory_is_given_back);
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
        buffer.write_at(offset, &piece)?;
        expected[offset..offset + len].copy_from_slice(&piece);
        let mut back = vec![0; len];
        buffer.read_at(offset, &mut back)?;
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

fn wrong_ranges_and_lengths(device: &Device) -> Outcome {
    let mut buffer = device.upload::<u32>(&words(10))?;
    let out_of_range = |what, offset, count| Error::OutOfRange { what, offset, count, len: 10 };
    let error = expect_error("a write past the end", buffer.write_at(8, &[0; 3]))?;
    expect_equal("write", &error, &out_of_range("write", 8, 3))?;
    let error = expect_error("a write far past the end", buffer.write_at(usize::MAX, &[0; 3]))?;
    expect_equal("write", &error, &out_of_range("write", u64::MAX, 3))?;
    let error = expect_error("a read past the end", buffer.read_at(11, &mut []))?;
    expect_equal("read", &error, &out_of_range("read", 11, 0))?;
    let error = expect_error("a copy of another length", buffer.copy_from(&device.zeros(9)?))?;
    expect_equal("copy", &error, &Error::Length { what: "the source of a copy", expected: 10, actual: 9 })?;
    expect_same("untouched", &buffer.to_vec()?, &words(10))
}

fn wrong_device(device: &Device) -> Outcome {
    let Some(other) = other_device(device) else { return Ok(()) };
    let mut buffer = device.upload::<u32>(&words(10))?;
    let error = expect_error("a copy from another device", buffer.copy_from(&other.zeros(10)?))?;
    let (expected, actual) = (device.info().id, other.info().id);
    expect_equal("copy", &error, &Error::WrongDevice { what: "the source of a copy", expected, actual })?;
    expect_error("an event of another device", device.wait_for(None, &other.record(None)?))?;
    expect_error("a queue of another device", buffer.write_on(Some(&other.queue()?), 0, &[1]))?;
    expect_same("untouched", &buffer.to_vec()?, &words(10))
}

fn too_large_then_usable(device: &Device) -> Outcome {
    let limit = device.info().limits.buffer_bytes;
    for len in [usize::MAX, (limit as usize).saturating_add(1)] {
        let error = expect_error("an allocation past the limit", device.alloc::<u8>(len))?;
        let expected = Error::TooLarge { what: "buffer", device: device.info().id, limit, actual: len as u64 };
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
    let start = device.record(None)?;
    device.wait_for(Some(&first), &start)?;
    buffer.write_on(Some(&first), 0, &long)?;
    let written = device.record(Some(&first))?;
    device.wait_for(Some(&second), &written)?;
    expect_same("read on another queue", &buffer.read_on(Some(&second), 0, long.len())?.wait()?, &long)?;
    device.wait_for(None, &written)?;
    let copy = buffer.duplicate()?;
    let end = device.record(None)?;
    expect("time passes", device.elapsed(&start, &end)? >= device.elapsed(&start, &written)?)?;
    // Dropped while another queue may still work on it.
    buffer.write_on(Some(&second), 0, &long)?;
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
    // A size that nothing else uses, so that the pool hands out the same memory again.
    let len = 777_777;
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
    device.trim();
    expect_same("usable", &device.upload::<u32>(&words(1000))?.to_vec()?, &words(1000))
}
