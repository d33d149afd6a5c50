//! Transforms of 2³¹ and 2³² elements.

use ark_ff::FftField;
use evariste::{
    backend::{Device, author::Access},
    field::{
        DeviceField, Mont,
        small::{Goldilocks, KoalaBear},
    },
    ntt::{Error, LowDegreeExtension, Ntt, Order},
};

use crate::{
    expect::{expect, expect_equal, expect_error},
    harness::{Named, Outcome},
    null_device::{Cover, Launch, NullDevice},
};

pub(super) const BOUNDARIES: &[Named] = &[("transforms", transforms)];

fn transforms() -> Outcome {
    transforms_over::<KoalaBear>(&[1, 11, 20, 24])?;
    transforms_over::<Goldilocks>(&[30, 31])?;
    extensions()
}

/// Each coset of an extension to 2^31 values is written once, from all coefficients; 2^32 values are refused.
fn extensions() -> Outcome {
    let stub = NullDevice::new(1 << 40);
    let device = stub.device();
    let (log_n, log_blowup) = (28, 2);
    let extension = LowDegreeExtension::<Goldilocks>::new(&device, log_n, log_blowup)?;
    let given = device.alloc::<Mont<Goldilocks>>(2 << log_n)?;
    let run = 8 << log_n;
    stub.take_calls();
    let values = extension.evaluate(&given, Goldilocks::GENERATOR, Order::BitReversed)?;
    let mut written = Cover::default();
    let mut coset = 0;
    for pass in stub.take_launches().into_iter().filter(|launch| launch.name == "ntt_pass") {
        let data = pass.args.iter().find(|arg| arg.access == Access::Write).ok_or("a pass that writes nothing")?;
        let own = pass.args.len() > 4;
        if own {
            coset = data.at;
            expect_equal("what the first pass of a coset reads", &pass.args[0].bytes, &given.bytes())?;
            for i in 0..2 {
                let start = coset + i * (run << log_blowup);
                written.add(start..start + run);
            }
        }
        expect_equal("the coset that is worked on", &data.at, &coset)?;
        let pitches = (if own { log_n } else { log_n + log_blowup }, log_n + log_blowup);
        expect_equal("the distances of polynomials", &(pass.word(17), pass.word(18)), &pitches)?;
    }
    written.expect_exactly("the cosets", 0..values.bytes())?;

    let extension = LowDegreeExtension::<Goldilocks>::new(&device, log_n, 1)?.columns(8);
    let given = device.alloc::<Mont<Goldilocks>>(8 << log_n)?;
    stub.take_calls();
    let refused = extension.extend(&given, Goldilocks::GENERATOR, Order::BitReversed);
    let error = expect_error("2^32 values", refused)?;
    expect_equal("too many", &error, &Error::TooLarge { expected: u32::MAX.into(), actual: 1 << 32 })?;
    expect("nothing is launched", stub.take_launches().is_empty())
}

fn transforms_over<F: DeviceField + FftField>(sizes: &[u32]) -> Outcome {
    let stub = NullDevice::new(1 << 40);
    let device: Device = stub.device();
    for &log_n in sizes {
        let ntt = Ntt::<F>::new(&device, log_n)?;
        for batch in [(1 << (32 - log_n)) - 1, 1 << (32 - log_n), (1 << (32 - log_n)) + 1, 1 << (34 - log_n)] {
            let len = batch << log_n;
            let mut data = device.alloc::<Mont<F>>(len)?;
            stub.take_calls();
            let outcome = ntt.forward(&mut data);
            let passes: Vec<Launch> =
                stub.take_launches().into_iter().filter(|launch| launch.name == "ntt_pass").collect();
            if len >= 1 << 32 {
                let is_refused = matches!(outcome, Err(Error::TooLarge { actual, .. }) if actual == len as u64);
                expect(&format!("{batch} × 2^{log_n}: {outcome:?}"), is_refused && passes.is_empty())?;
                continue;
            }
            outcome?;
            expect(&format!("{} passes", passes.len()), passes.len() == ntt.passes_per_transform())?;
            let mut log_rows = 0;
            for pass in passes {
                let (first, end) = (u64::from(pass.word(0)), u64::from(pass.word(1)));
                let rows = len as u64 / end;
                log_rows += rows.ilog2();
                let mut cover = Cover::default();
                cover.add(first * rows..end * rows);
                cover.expect_exactly(&format!("{batch} × 2^{log_n}"), 0..len as u64)?;
                expect("every line has a workgroup", pass.groups > 0 && pass.groups <= end)?;
            }
            expect("the passes make up the transform", log_rows == log_n)?;
        }
    }
    Ok(())
}
