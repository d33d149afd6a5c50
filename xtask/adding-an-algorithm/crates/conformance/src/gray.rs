//! Gray codes, compared with the definition.

use evariste_backend::{Buffer, Device, Error};
use evariste_gray::{Gray, reference};

use crate::{
    Outcome, Suite, expect_equal, expect_error, expect_same, garbage, launches::Family, other_device, sizes::lengths,
};

pub(crate) fn add(suite: &mut Suite<'_>) {
    suite.add("encode", encode);
    suite.add("misuse", misuse);
}

pub(crate) const FAMILIES: &[Family] = &[Family { name: "gray", cases: &["encode"], kernels: |_| Ok(Gray::kernels()) }];

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
