//! Copies, whichever call fails.

use super::super::double::{self, Failure, SECRET};
use super::*;
use crate::{
    device::Device,
    error::{Error, Result},
    info::Transfer,
    secrecy::Secrecy,
};

/// A bit of everything, in an order in which what is dropped is under work.
fn work(device: &Device) -> Result<()> {
    let queue = device.queue()?;
    let kernel = fill(device)?;
    let mut secret = device.upload_with::<u32>(&[SECRET; LEN], Secrecy::Secret)?;
    let mut x = device.zeros::<u32>(LEN)?;
    let made = device.default_queue().record()?;
    queue.wait_for(&made)?;
    // Writes that nobody waits for, of one host memory in parts too.
    drop(queue.write_pinned(&mut x, host(device, Transfer::Upload, Secrecy::Public, 1)?)?);
    drop(queue.write_pinned(&mut secret, host(device, Transfer::Both, Secrecy::Secret, SECRET)?)?);
    let mut first = host(device, Transfer::Both, Secrecy::Public, 2)?;
    let second = first.split_off(BYTES / 2);
    let first = queue.write_pinned(x.view_mut(..LEN / 2)?, first)?;
    drop(queue.write_pinned(x.view_mut(LEN / 2..)?, second)?);
    launch(&kernel, &queue, 3, &mut x)?;
    let (events, columns) =
        queue.write_pinned_columns(&mut x, host(device, Transfer::Both, Secrecy::Public, 4)?, 4, 4)?;
    let seen = queue.record()?;
    device.default_queue().wait_for(&seen)?;
    let mut y = x.duplicate()?;
    y.copy_from(&x)?;
    y.view_mut(..16)?.clear()?;
    let down = device.default_queue().read_pinned_columns(
        &y,
        host(device, Transfer::Both, Secrecy::Public, 9)?,
        4,
        &events,
    )?;
    let words = queue.read(&x)?;
    assert!(words.iter().all(|word| *word == 4), "{words:?}");
    let down = down.wait()?;
    let down: Vec<u32> = down.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    assert!(down.iter().enumerate().all(|(i, word)| *word == if i < 16 { 0 } else { 4 }), "{down:?}");
    // Reads of secrets: one is abandoned.
    drop(secret.read_pinned(host(device, Transfer::Both, Secrecy::Secret, 0)?)?);
    assert_eq!(secret.to_vec()?, [SECRET; LEN]);
    device.elapsed(&events[0], &seen)?;
    let first = first.wait()?;
    drop((columns, first));
    device.sync()?;
    device.trim();
    // A last use that nobody waits for.
    launch(&kernel, &queue, 5, &mut y)?;
    drop(queue.read_pinned(&y, host(device, Transfer::Both, Secrecy::Public, 0)?)?);
    Ok(())
}

/// Whether a call that fails can have done its work all the same.
fn may_be_late(function: &str) -> bool {
    ["Memcpy", "Memset", "Launch", "Record", "Wait", "Synchronize"].iter().any(|part| function.contains(part))
}

fn run(function: &'static str, n: usize, failure: Failure, without_pools: bool) {
    let case = format!("call {n} of {function} fails: {failure:?}, without pools: {without_pools}");
    double::reset(without_pools);
    double::fail(function, n, failure);
    let opened = open(0);
    let is_open = opened.is_ok();
    if let Ok(device) = opened {
        let done = work(&device);
        if failure == Failure::Lost && !double::is_armed() {
            // Whatever is asked for says so.
            let lost = device.alloc::<u32>(1).map(drop);
            assert!(matches!(lost, Err(Error::Lost { .. })), "{case}: {done:?}, then {lost:?}");
            assert!(
                matches!(device.host_buffer(1, Transfer::Both, Secrecy::Public), Err(Error::Lost { .. })),
                "{case}"
            );
        } else {
            double::heal();
            expect_no_dma(&device, &case);
            let again = work(&device);
            assert!(again.is_ok(), "{case}: {done:?}, then {again:?}");
        }
        drop(device);
    }
    double::run_all();
    let faults = double::faults();
    assert!(faults.is_empty(), "{case}: {faults:?}");
    // Without a context nothing can be freed.
    let driver_leaks =
        function == "cuCtxSetCurrent" || double::RELEASES.contains(&function) || !is_open && failure != Failure::Once;
    if failure == Failure::Lost || driver_leaks {
        return double::heal();
    }
    let [device, host, streams, events, modules, contexts] = double::left();
    assert_eq!([device, host, contexts], [0; 3], "{case}: device memory, host memory, contexts");
    if failure != Failure::Lasting {
        assert_eq!([streams, events, modules], [0; 3], "{case}: streams, events, modules");
    }
}

#[test]
fn whichever_call_fails_memory_is_kept_while_it_is_used_and_freed_after() {
    for without_pools in [false, true] {
        double::reset(without_pools);
        double::calls();
        let device = open(0).unwrap();
        work(&device).unwrap();
        drop(device);
        double::run_all();
        assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]));
        for (function, count) in double::calls() {
            let failures = [Failure::Once, Failure::Late, Failure::Lasting, Failure::Lost];
            for failure in failures.into_iter().filter(|f| *f != Failure::Late || may_be_late(function)) {
                if function == "nvrtc" && failure != Failure::Once {
                    continue;
                }
                (0..count).for_each(|n| run(function, n, failure, without_pools));
            }
        }
    }
}

#[test]
fn an_event_of_another_device_is_refused_before_anything_is_queued() {
    double::reset(false);
    let (device, other) = (open(0).unwrap(), open(1).unwrap());
    let x = device.zeros::<u32>(LEN).unwrap();
    let (own, foreign) = (device.default_queue().record().unwrap(), other.default_queue().record().unwrap());
    let memory = host(&device, Transfer::Both, Secrecy::Public, 7).unwrap();
    let error = device.default_queue().read_pinned_columns(&x, memory, 4, &[own, foreign]).unwrap_err();
    assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
    expect_no_dma(&device, "a foreign event");
    assert_eq!(double::faults(), [""; 0]);
}

/// Rows that are further apart than the driver's copies of several rows can have them.
#[test]
fn matrices_of_any_width_are_copied() {
    const WORDS: usize = double::MAX_PITCH / 2;

    for (rows, pieces, rectangles) in [(1, 1, 0), (1, 4, 0), (2, 1, 0), (2, 4, 8), (1, WORDS, 0), (WORDS, 1, 0)] {
        for factor in [1, 3] {
            let case = format!("{rows} rows in {pieces} pieces, {factor}");
            double::reset(false);
            let device = open(0).unwrap();
            let words: Vec<u32> = (0..(factor * WORDS) as u32).collect();
            let mut host = device.host_buffer(4 * words.len(), Transfer::Both, Secrecy::Public).unwrap();
            host.copy_from_slice(bytemuck::cast_slice(&words));
            let mut x = device.zeros::<u32>(words.len()).unwrap();
            let (events, sent) = device.default_queue().write_pinned_columns(&mut x, host, rows, pieces).unwrap();
            assert_eq!(x.to_vec().unwrap(), words, "{case}");
            let mut host = sent.wait().unwrap();
            host.fill(0);
            let host = device.default_queue().read_pinned_columns(&x, host, rows, &events).unwrap().wait().unwrap();
            assert!(*host == *bytemuck::cast_slice::<u32, u8>(&words), "{case}");
            let called = double::calls().get("cuMemcpy2DAsync_v2").copied().unwrap_or(0);
            assert_eq!(called, if factor == 1 { rectangles } else { 0 }, "{case}");
            drop((host, x, events, device));
            double::run_all();
            assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]), "{case}");
        }
    }
}

#[test]
fn transfers_that_are_forgotten_keep_their_memory() {
    double::reset(false);
    let device = open(0).unwrap();
    let mut x = device.zeros::<u32>(LEN).unwrap();
    std::mem::forget(x.write_pinned(host(&device, Transfer::Both, Secrecy::Public, 1).unwrap()).unwrap());
    std::mem::forget(x.read_pinned(host(&device, Transfer::Both, Secrecy::Public, 1).unwrap()).unwrap());
    std::mem::forget(device.default_queue().download(&x).unwrap());
    drop(x);
    expect_no_dma(&device, "forgotten transfers");
    drop(device);
    double::run_all();
    assert_eq!(double::faults(), [""; 0]);
}

#[test]
fn transfers_outlive_their_device() {
    for function in ["none", "cuEventSynchronize", "cuStreamSynchronize", "cuCtxSynchronize"] {
        double::reset(false);
        let device = open(0).unwrap();
        let x = device.upload::<u32>(&[8; LEN]).unwrap();
        let memory = || host(&device, Transfer::Both, Secrecy::Public, 0).unwrap();
        let waited = x.read_pinned(memory()).unwrap();
        let dropped = x.read_pinned(memory()).unwrap();
        drop((x, device));
        let words = waited.wait().unwrap();
        assert!(words.chunks_exact(4).all(|word| word == 8u32.to_le_bytes()));
        double::fail(function, 0, Failure::Once);
        drop((words, dropped));
        double::heal();
        double::run_all();
        assert_eq!(double::faults(), [""; 0], "{function}");
    }
}

/// Rows of both devices and of one, closer together than the driver's copies of several rows can have them and further.
#[test]
fn columns_are_copied_by_one_call() {
    const ROWS: usize = 8;
    for (words, calls) in [(double::MAX_PITCH / 4, 1), (double::MAX_PITCH / 4 + 1, 0)] {
        for from in [0, 1] {
            double::reset(false);
            let device = open(0).unwrap();
            let other = if from == 0 { device.clone() } else { open(from).unwrap() };
            let host: Vec<u32> = (0..(ROWS * words) as u32).collect();
            let (x, mut y) = (other.upload::<u32>(&host).unwrap(), device.zeros::<u32>(host.len()).unwrap());
            device.default_queue().receive_columns(&x, &mut y, ROWS, 3..words - 1).unwrap();
            drop((x, other));
            let is_copied = |i: usize| (3..words - 1).contains(&(i % words));
            let expected = host.iter().map(|word| if is_copied(*word as usize) { *word } else { 0 });
            assert_eq!(y.to_vec().unwrap(), expected.collect::<Vec<_>>(), "{words} words from {from}");
            assert_eq!(double::calls().get("cuMemcpy3DPeerAsync").copied().unwrap_or(0), calls);
            drop((y, device));
            double::run_all();
            assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]), "{words} words from {from}");
        }
    }
}

#[test]
fn copies_between_devices_hold_both() {
    for function in ["none", "cuMemcpyPeerAsync", "cuEventRecord", "cuStreamWaitEvent", "cuStreamSynchronize"] {
        for (n, failure) in (0..6).flat_map(|n| [(n, Failure::Once), (n, Failure::Late), (n, Failure::Lasting)]) {
            let case = format!("call {n} of {function} fails: {failure:?}");
            double::reset(false);
            let (device, other) = (open(0).unwrap(), open(1).unwrap());
            let x = other.upload::<u32>(&[6; LEN]).unwrap();
            let mut y = device.zeros::<u32>(LEN).unwrap();
            double::fail(function, n, failure);
            let backend = device.backend();
            let copied = backend.copy(backend.default_queue(), x.as_view().span(), (&mut y.memory).into());
            double::heal();
            drop(x);
            other.trim();
            drop(other);
            if copied.is_ok() {
                assert_eq!(y.to_vec().unwrap(), [6; LEN], "{case}");
            }
            drop((y, device));
            double::run_all();
            assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]), "{case}: {copied:?}");
        }
    }
}
