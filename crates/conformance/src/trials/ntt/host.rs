//! Transforms of data that lies with the host: in slices, in pinned memory, and more of it than a device takes at once.

use std::sync::Arc;

use ark_bls12_381::Fr;
use ark_ff::{FftField, Field};
use evariste::backend::{Device, Element, Error as DeviceError, HostBuffer, Secrecy, Transfer};
use evariste::field::{DeviceField, Mont, small};
use evariste::ntt::{
    Error, Ntt, NttConfig, Order, OutOfCore, Pipeline, Split, forward_host, forward_out_of_core, inverse_host,
    inverse_out_of_core, reference,
};
use libtest_mimic::Failed;

use super::{ORDERS, arkworks, is_brief, length};
use crate::{
    expect::{expect, expect_equal, expect_error, expect_same},
    harness::Outcome,
    recorder::Recorder,
    samples::samples,
};

/// Host data with less device memory than it takes.
pub(super) fn out_of_core<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let element = Mont::<F>::BYTES as u64;
    let all = [(3u32, 4), (8, 5), (0, 4), (1, 7), (4, 4), (5, 4), (11, 9), (12, u64::MAX)];
    for &(log_n, lines) in if is_brief::<F>(device) { &all[..2] } else { &all } {
        let x = samples::<F>(1 << log_n, 33);
        let bytes = ((11 * element) << log_n.div_ceil(2)).saturating_mul(lines);
        let mut y = x.clone();
        forward_out_of_core(device, &mut y, bytes)?;
        expect_same(&format!("forward 2^{log_n} by {lines} lines"), &y, &arkworks(&x, F::ONE))?;
        inverse_out_of_core(device, &mut y, bytes)?;
        expect_same(&format!("inverse 2^{log_n} by {lines} lines"), &y, &x)?;
    }
    // One plan for several slices, whatever the direction.
    let x = samples::<F>(1 << 7, 33);
    let mut plan = OutOfCore::<F>::new(device, 7, (11 * element) << 4 << 2, Secrecy::Secret)?;
    let mut y = x.clone();
    for turn in ["the first", "the second"] {
        plan.forward_host(&mut y)?;
        expect_same(&format!("forward, {turn} time"), &y, &arkworks(&x, F::ONE))?;
        plan.inverse_host(&mut y)?;
        expect_same(&format!("inverse, {turn} time"), &y, &x)?;
    }
    let error = expect_error("half a slice", plan.forward_host(&mut y[1..]))?;
    expect_equal("length", &error, &length("the slice of a transform out of core", 128, 127))?;
    expect_same("untouched", &y, &x)?;
    let mut x = samples::<F>(64, 33);
    let least = 4 * 8 * 11 * element;
    let error = expect_error("less than four columns", forward_out_of_core(device, &mut x, least - 1))?;
    let expected = DeviceError::InsufficientMemory { needed: least, available: least - 1 };
    expect_equal("memory", &error, &Error::Device(expected))?;
    let error = expect_error("a length of 63", forward_out_of_core(device, &mut x[1..], u64::MAX))?;
    expect_equal("length", &error, &Error::NotPowerOfTwo { actual: 63 })?;
    expect_same("untouched", &x, &samples::<F>(64, 33))
}

/// Single transforms from and to pinned memory: of one pass and of more.
pub(super) fn pinned<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let secrecy = Secrecy::Secret;
    let all = [(3, 1), (12, 1), (0, 3), (9, 2), (13, 3), (15, 1)];
    for &(log_n, batch) in if is_brief::<F>(device) { &all[..2] } else { &all[..] } {
        let n = 1usize << log_n;
        let ntt = Ntt::<F>::new(device, log_n)?;
        let x = samples::<F>(n * batch, 44);
        let y: Vec<F> = x.chunks(n).flat_map(|x| arkworks(x, F::GENERATOR)).collect();
        for (input, output) in ORDERS {
            let reorder = |x: &[F], order| -> Vec<F> {
                x.chunks(n).flat_map(|x| reference::reorder(x, Order::Natural, order)).collect()
            };
            let mut host = device.host_buffer(x.len() * Mont::<F>::BYTES, Transfer::Both, secrecy)?;
            Mont::<F>::encode(&reorder(&x, input), &mut host);
            let host = ntt.coset(F::GENERATOR).input(input).output(output).forward_pinned(host, secrecy)?;
            let mut actual = vec![F::ZERO; x.len()];
            Mont::<F>::decode(&host, &mut actual)?;
            let what = format!("2^{log_n} × {batch}, {input:?} to {output:?}");
            expect_same(&format!("forward, {what}"), &actual, &reorder(&y, output))?;
            let host = ntt.coset(F::GENERATOR).input(output).output(input).inverse_pinned(host, secrecy)?;
            Mont::<F>::decode(&host, &mut actual)?;
            expect_same(&format!("inverse, {what}"), &actual, &reorder(&x, input))?;
        }
    }
    let ntt = Ntt::<F>::new(device, 4)?;
    let host = device.host_buffer(15 * Mont::<F>::BYTES, Transfer::Both, Secrecy::Public)?;
    let error = expect_error("another length", ntt.transform().forward_pinned(host, Secrecy::Public))?;
    expect_equal("length", &error, &length("the data of a transform, a multiple of", 16, 15))?;
    let bytes = Mont::<F>::BYTES;
    let single = Ntt::<F>::new(device, 0)?;
    for (ntt, len) in [(&ntt, 16 * bytes + 1), (&single, bytes - 1), (&single, 1)] {
        let host = device.host_buffer(len, Transfer::Both, Secrecy::Public)?;
        let error = expect_error("a part of an element", ntt.transform().forward_pinned(host, Secrecy::Public))?;
        let expected = len.next_multiple_of(bytes);
        expect_equal("bytes", &error, &length("the host memory of a transform, in bytes", expected, len))?;
    }
    let upload_only = device.host_buffer(16 * Mont::<F>::BYTES, Transfer::Upload, Secrecy::Public)?;
    expect_error("host memory for uploads only", ntt.transform().forward_pinned(upload_only, Secrecy::Public)).map(drop)
}

/// Transforms from and to pinned memory that come and go in blocks of columns, which have launches of their own. Where
/// copies overlap kernels, that takes rows of 64 KiB, so that transforms are the longer the shorter elements are.
pub(super) fn blocks_of_columns<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let secrecy = Secrecy::Public;
    let (log_n, split) = if device.info().features.queues {
        // Of three passes, the first takes a third of the levels.
        let log_row = ((64 << 10) / Mont::<F>::BYTES).ilog2();
        (log_row + log_row.div_ceil(2), Split::ThreeWay)
    } else {
        // With the kernels of other trials.
        (15, Split::Balanced)
    };
    let ntt = Ntt::<F>::with_config(device, log_n, NttConfig::default().split(split))?;
    let x = samples::<F>(1 << log_n, 45);
    let y = arkworks(&x, F::GENERATOR);
    let mut host = device.host_buffer(x.len() * Mont::<F>::BYTES, Transfer::Both, secrecy)?;
    Mont::<F>::encode(&x, &mut host);
    let mut actual = vec![F::ZERO; x.len()];
    let mut launches = 0;
    // Tables are made the first time.
    for _ in 0..2 {
        let before = device.stats().launches;
        host = ntt.coset(F::GENERATOR).forward_pinned(host, secrecy)?;
        Mont::<F>::decode(&host, &mut actual)?;
        expect_same(&format!("forward 2^{log_n}"), &actual, &y)?;
        host = ntt.coset(F::GENERATOR).inverse_pinned(host, secrecy)?;
        Mont::<F>::decode(&host, &mut actual)?;
        expect_same(&format!("inverse 2^{log_n}"), &actual, &x)?;
        launches = device.stats().launches - before;
    }
    // The first pass and the last one, there and back.
    let least = 2 * (ntt.passes_per_transform() as u64 + 2);
    expect(&format!("{launches} launches for 2^{log_n}, at least {least}"), launches >= least)
}

/// Streams of transforms from and to pinned memory.
pub(super) fn pipelines<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let (log_n, batch) = (9, 3);
    let n = 1usize << log_n;
    let ntt = Ntt::<F>::new(device, log_n)?;
    let pinned = |x: &[F]| -> Result<HostBuffer, Failed> {
        let mut host = device.host_buffer(x.len() * Mont::<F>::BYTES, Transfer::Both, Secrecy::Public)?;
        Mont::<F>::encode(x, &mut host);
        Ok(host)
    };
    for inverse in [false, true] {
        let inputs: Vec<Vec<F>> = (0..8).map(|seed| samples::<F>(n * batch, 40 + seed)).collect();
        let mut pipeline = Pipeline::new(ntt.coset(F::GENERATOR), batch, Secrecy::Public)?;
        let mut results = Vec::new();
        for x in &inputs {
            let host = pinned(x)?;
            results.extend(if inverse { pipeline.inverse_pinned(host)? } else { pipeline.forward_pinned(host)? });
        }
        while let Some(host) = pipeline.next()? {
            results.push(host);
        }
        expect_equal("results", &results.len(), &inputs.len())?;
        for (i, (host, x)) in results.iter().zip(&inputs).enumerate() {
            let mut actual = vec![F::ZERO; x.len()];
            Mont::<F>::decode(host, &mut actual)?;
            let (from, to) = if inverse { (&actual, x) } else { (x, &actual) };
            let expected: Vec<F> = from.chunks(n).flat_map(|x| arkworks(x, F::GENERATOR)).collect();
            expect_same(&format!("transform {i}, inverse: {inverse}"), to, &expected)?;
        }
    }
    let mut pipeline = Pipeline::new(ntt.transform(), batch, Secrecy::Public)?;
    let error = expect_error("host memory of another length", pipeline.forward_pinned(pinned(&[F::ONE; 7])?))?;
    expect_equal("length", &error, &length("the host memory of a pipeline", n * batch, 7))?;
    let actual = n * batch * Mont::<F>::BYTES + 1;
    let longer = device.host_buffer(actual, Transfer::Both, Secrecy::Public)?;
    let error = expect_error("host memory that is a byte longer", pipeline.forward_pinned(longer))?;
    let expected = actual.next_multiple_of(Mont::<F>::BYTES);
    expect_equal("bytes", &error, &length("the host memory of a transform, in bytes", expected, actual))?;
    let upload_only = device.host_buffer(n * batch * Mont::<F>::BYTES, Transfer::Upload, Secrecy::Public)?;
    expect_error("host memory for uploads only", pipeline.forward_pinned(upload_only))?;
    let host = pinned(&vec![F::ZERO; n * batch])?;
    expect("nothing is ready yet", pipeline.forward_pinned(host)?.is_none())?;
    expect("usable", pipeline.next()?.is_some_and(|host| host.iter().all(|byte| *byte == 0)))
}

/// Whichever read fails: the error says whether the slice is whole.
pub(super) fn interrupted(device: &Device) -> Outcome {
    type F = small::BabyBear;
    let whole = samples::<F>(1 << 10, 31);
    // Eight pieces of each step, each in eight blocks.
    let device_bytes = 11 << 9;
    let recorder = Recorder::plain(device);
    let device = &Device::unregistered(Arc::clone(&recorder) as _);
    let [mut refused, mut interrupted] = [0; 2];
    for reads in 0.. {
        recorder.fail_read_after(reads);
        let mut x = whole.clone();
        match forward_out_of_core(device, &mut x, device_bytes) {
            Ok(()) => {
                expect_same("after all reads", &x, &arkworks(&whole, F::ONE))?;
                break;
            }
            Err(Error::Interrupted(_)) => interrupted += 1,
            Err(error) => {
                expect(&format!("{error} of the device"), matches!(error, Error::Device(_)))?;
                expect_same(&format!("{error} after {reads} reads"), &x, &whole)?;
                refused += 1;
            }
        }
    }
    expect_equal("reads that lose nothing, and others", &(refused, interrupted), &(96, 32))
}

pub(super) fn host_slices<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let measured = Ntt::<F>::cpu_threshold(device)?;
    expect_equal("a threshold is measured once", &Ntt::<F>::cpu_threshold(device)?, &measured)?;
    // All on the device, all on the CPU, and as measured.
    for pinned in [0, usize::MAX, measured] {
        Ntt::<F>::set_cpu_threshold(device, pinned);
        for len in [0, 1, 2, 1024] {
            let x = samples::<F>(len, 9);
            let mut y = x.clone();
            forward_host(device, &mut y)?;
            expect_same("forward", &y, &if len == 0 { Vec::new() } else { arkworks(&x, F::ONE) })?;
            inverse_host(device, &mut y)?;
            expect_same("inverse", &y, &x)?;
        }
    }
    // A plan works on its device whatever the threshold is, on several transforms too.
    let (ntt, x) = (Ntt::<F>::new(device, 3)?, samples::<F>(24, 9));
    let mut y = x.clone();
    ntt.forward_host(&mut y)?;
    expect_same("forward by a plan", &y, &x.chunks(8).flat_map(|x| arkworks(x, F::ONE)).collect::<Vec<F>>())?;
    ntt.inverse_host(&mut y)?;
    expect_same("inverse by a plan", &y, &x)?;
    let error = expect_error("three and a half transforms", ntt.forward_host(&mut y[..20]))?;
    expect_equal("length", &error, &length("the data of a transform, a multiple of", 8, 20))?;
    expect_same("untouched by a plan", &y, &x)?;
    let x = samples::<F>(1000, 9);
    let mut y = x.clone();
    let error = expect_error("a length of 1000", forward_host(device, &mut y))?;
    expect_equal("length", &error, &Error::NotPowerOfTwo { actual: 1000 })?;
    expect_same("untouched", &y, &x)
}

pub(super) fn slices_stay_on_the_cpu_below_the_threshold(device: &Device) -> Outcome {
    let measured = Ntt::<Fr>::cpu_threshold(device)?;
    let mut x = samples::<Fr>(1 << 4, 9);
    let mut launches = |pinned| -> Result<u64, Failed> {
        Ntt::<Fr>::set_cpu_threshold(device, pinned);
        let before = device.stats().launches;
        forward_host(device, &mut x)?;
        Ok(device.stats().launches - before)
    };
    let (first, second, below) = (launches(16)?, launches(16)?, launches(17)?);
    Ntt::<Fr>::set_cpu_threshold(device, measured);
    expect("a plan is made once", second <= first && second > 0)?;
    let expected = if device.is_same(&Device::cpu()) { second } else { 0 };
    expect_equal("launches below the threshold", &below, &expected)
}
