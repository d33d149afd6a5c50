//! Gray codes, compared with the definition.

use evariste::{
    backend::{Buffer, Device, Error},
    gray::{Gray, reference},
};

use crate::{
    area::Area,
    devices::{garbage, other_device},
    expect::{expect_equal, expect_error, expect_same},
    harness::{DeviceTrials, Outcome},
    launches::KernelGroup,
    order_checker::{expect_ordered, on_plans},
    secrecy::Operation,
    sizes::lengths,
};

pub(crate) const AREA: Area = Area {
    kernels: &[KernelGroup { name: "gray", cases: &["encode"], kernels: |_| Ok(Gray::kernels()) }],
    operations: &[Operation::new("gray", 2, |p| {
        let (gray, input, mut out) = (Gray::new(&p.device)?, p.keys(1000)?, p.output_keys(1000)?);
        p.watch(|| gray.encode(&input, &mut out))
    })],
    ordered: &[("Gray codes", ordered)],
    plans: &[("Gray codes", |m| {
        let (input, mut out) = (m.device.upload::<u32>(&[1, 2, 3])?, m.device.zeros(3)?);
        let gray = Gray::new(&m.device)?.on(&m.queue);
        m.refuses(|| gray.encode(&input, &mut out))
    })],
    ..Area::new("gray", add)
};

fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("encode", encode);
    trials.add("misuse", misuse);
}

fn ordered() -> Outcome {
    on_plans(|ordered, made_on, queue| {
        let input = queue.upload::<u32>(&[1, 2, 3])?;
        let mut out = queue.device().alloc(3)?;
        Gray::new(made_on)?.on(queue).encode(&input, &mut out)?;
        expect_ordered(ordered, "Gray codes")
    })
}

fn encode(device: &Device) -> Outcome {
    let gray = Gray::new(device)?;
    for len in lengths(device, &[0, 1, 255, 256, 257, 10_000]) {
        let input: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let expected: Vec<u32> = input.iter().copied().map(reference::code).collect();
        let mut out = garbage(device, len)?;
        gray.encode(&device.upload(&input)?, &mut out)?;
        expect_same(&format!("{len}"), &out.to_vec()?, &expected)?;
    }
    Ok(())
}

fn misuse(device: &Device) -> Outcome {
    let gray = Gray::new(device)?;
    let input = device.upload::<u32>(&[1, 2, 3])?;
    let mut four: Buffer<u32> = device.zeros(4)?;
    let error = expect_error("another length", gray.encode(&input, &mut four))?;
    expect_equal("length", &error, &Error::Length { what: "the Gray codes", expected: 3, actual: 4 })?;
    expect_same("the output", &four.to_vec()?, &[0; 4])?;
    if let Some(other) = other_device(device) {
        let mut foreign: Buffer<u32> = other.zeros(3)?;
        let error = expect_error("another device", gray.encode(&input, &mut foreign))?;
        expect_equal("device", &matches!(error, Error::WrongDevice { .. }), &true)?;
    }
    Ok(())
}
