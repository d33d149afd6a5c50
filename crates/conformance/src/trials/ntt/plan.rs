//! The use of plans: their memory, misuse, large sizes, threads and queues.

use std::thread;

use ark_ff::FftField;
use evariste::{
    backend::{Device, Error as DeviceError},
    field::{DeviceField, Mont},
    ntt::{Error, LowDegreeExtension, Ntt, NttConfig, Order, Twiddles, reference},
};

use super::{arkworks, length};
use crate::{
    devices::{is_checked_cpu, other_device},
    expect::{expect, expect_equal, expect_error, expect_same},
    harness::Outcome,
    samples::samples,
    trials::process::child,
};

/// What a plan says it takes is what it takes, to 1%.
pub(super) fn required_bytes<F: DeviceField + FftField>(device: &Device) -> Outcome {
    for (log_n, twiddles) in [(16, Twiddles::Stored), (17, Twiddles::Stored), (17, Twiddles::TwoLevel)] {
        let config = NttConfig::default().twiddles(twiddles);
        let required = Ntt::<F>::required_bytes(device, log_n, 1, config)?;
        for batch in [(1 << 32) >> log_n, 1 << 36, usize::MAX] {
            let refused = Ntt::<F>::required_bytes(device, log_n, batch, config);
            expect(&format!("{batch} × 2^{log_n} are {refused:?}"), matches!(refused, Err(Error::TooLarge { .. })))?;
        }
        let mut data = device.zeros::<Mont<F>>(1 << log_n)?;
        let before = device.stats().bytes_live;
        let ntt = Ntt::<F>::with_config(device, log_n, config)?;
        ntt.forward(&mut data)?;
        ntt.inverse(&mut data)?;
        device.sync()?;
        let tables = device.stats().bytes_live - before;
        let scratch = if ntt.passes_per_transform() > 1 { data.bytes() } else { 0 };
        let held = tables + scratch;
        expect(
            &format!("{required} bytes for 2^{log_n} with {twiddles:?} are within 1% of {held}"),
            held.abs_diff(required) * 100 <= required,
        )?;
    }
    Ok(())
}

pub(super) fn misuse<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let beyond = F::TWO_ADICITY + 1;
    let error = expect_error("a size beyond the two-adicity", Ntt::<F>::new(device, beyond))?;
    expect_equal("two-adicity", &error, &Error::TwoAdicity { expected: F::TWO_ADICITY, actual: beyond })?;
    expect_error("a size of 2^4000000000", Ntt::<F>::new(device, 4_000_000_000))?;

    let ntt = Ntt::<F>::new(device, 4)?;
    for len in [1, 15, 17, 40] {
        let x = samples::<F>(len, 10);
        let mut data = device.upload(&x)?;
        let error = expect_error("data of another length", ntt.forward(&mut data))?;
        expect_equal("length", &error, &length("the data of a transform, a multiple of", 16, len))?;
        expect_same("untouched", &data.to_vec()?, &x)?;
    }
    ntt.forward(&mut device.zeros(0)?)?;

    let x = samples::<F>(16, 10);
    let mut data = device.upload(&x)?;
    let error = expect_error("a coset of zero", ntt.coset(F::ZERO).forward(&mut data))?;
    expect_equal("coset", &error, &Error::ZeroCoset)?;
    if let Some(other) = other_device(device) {
        let error = expect_error("data elsewhere", ntt.forward(&mut other.zeros(16)?))?;
        let (expected, actual) = (device.info().id, other.info().id);
        let what = "the data of a transform";
        expect_equal("device", &error, &Error::Device(DeviceError::WrongDevice { what, expected, actual }))?;
    }
    let refused = ntt.transform().forward_into(&data, &mut device.zeros(32)?);
    expect_error("an output of another length", refused)?;
    let extension = LowDegreeExtension::<F>::new(device, 3, 1)?;
    let refused = extension.evaluate_into(&device.zeros(16)?, F::ONE, Order::Natural, &mut data);
    expect_error("an output of another length", refused)?;
    let refused = ntt.coset(F::ZERO).inverse_into(&device.zeros(16)?, &mut data);
    expect_equal("coset", &expect_error("a coset of zero", refused)?, &Error::ZeroCoset)?;
    if let Some(other) = other_device(device) {
        let is_refused =
            |refused: Result<(), Error>| matches!(refused, Err(Error::Device(DeviceError::WrongDevice { .. })));
        let into = ntt.transform().forward_into(&other.zeros(16)?, &mut data);
        let out_of = ntt.transform().forward_into(&data, &mut other.zeros(16)?);
        let extension = LowDegreeExtension::<F>::new(device, 3, 1)?;
        let (order, given) = (Order::BitReversed, other.zeros(8)?);
        let extended = extension.extend_into(&given, F::ONE, order, &mut data);
        let elsewhere = extension.extend_into(data.view(..8)?, F::ONE, order, &mut other.zeros(16)?);
        let evaluated = extension.evaluate_into(&given, F::ONE, order, &mut data);
        expect("wrong devices", [into, out_of, extended, elsewhere, evaluated].into_iter().all(is_refused))?;
    }
    expect_same("untouched", &data.to_vec()?, &x)?;
    ntt.forward(&mut data)?;
    expect_same("usable", &data.to_vec()?, &arkworks(&x, F::ONE))
}

/// Three passes, and on fast devices four where workgroup memory is small: Horner at a few outputs.
pub(super) fn large<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let sizes: &[u32] = match device.info().features.software {
        true => &[18],
        false if is_checked_cpu(device) => &[18, 19, 20],
        false => &[18, 19, 20, 21, 22],
    };
    for &log_n in sizes {
        let n = 1usize << log_n;
        let x = samples::<F>(n, 11);
        let ntt = Ntt::new(device, log_n)?;
        let mut data = device.upload(&x)?;
        ntt.coset(F::GENERATOR).forward(&mut data)?;
        let y = data.to_vec()?;
        let w = reference::root_of_unity::<F>(log_n).ok_or("no root of unity")?;
        for k in [0, 1, 2, n / 2, n / 2 + 1, n / 3, n - 1] {
            let expected = reference::horner(&x, F::GENERATOR * w.pow([k as u64]));
            expect_equal(&format!("output {k} of 2^{log_n}"), &y[k], &expected)?;
        }
        ntt.coset(F::GENERATOR).inverse(&mut data)?;
        expect_same(&format!("inverse 2^{log_n}"), &data.to_vec()?, &x)?;
    }
    Ok(())
}

/// In a process of its own, since counters are the device's and other trials add to them.
pub(super) fn no_host_copies_and_few_launches(device: &Device) -> Outcome {
    let report = child::run(&format!("launches {}", device.info().id), &[], None)?;
    expect(&report, report.starts_with("ok: "))
}

pub(super) fn two_threads(device: &Device) -> Outcome {
    type F = ark_bls12_381::Fr;
    let shared = Ntt::<F>::new(device, 12)?;
    let work = |seed: u64| -> Outcome {
        let own = Ntt::<F>::new(device, 11)?;
        for round in 0..10 {
            for ntt in [&shared, &own] {
                let x = samples::<F>(ntt.size(), 100 * seed + round);
                let mut data = device.upload(&x)?;
                ntt.coset(F::from(seed + 2)).forward(&mut data)?;
                expect_same("forward", &data.to_vec()?, &arkworks(&x, F::from(seed + 2)))?;
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads = [0, 1].map(|seed| scope.spawn(move || work(seed)));
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })
}

pub(super) fn queues(device: &Device) -> Outcome {
    type F = ark_bls12_381::Fr;
    let ntt = Ntt::<F>::new(device, 14)?;
    let queues = [device.queue()?, device.queue()?];
    let inputs = [13, 14].map(|seed| samples::<F>(1 << 14, seed));
    let mut buffers = Vec::new();
    for (queue, x) in queues.iter().zip(&inputs) {
        let mut data = device.alloc::<Mont<F>>(x.len())?;
        queue.write(&mut data, x)?;
        ntt.on(queue).forward(&mut data)?;
        buffers.push(data);
    }
    for ((queue, x), data) in queues.iter().zip(&inputs).zip(&buffers) {
        let y = queue.read(data)?;
        expect_same("forward", &y, &arkworks(x, F::from(1u8)))?;
    }
    Ok(())
}
