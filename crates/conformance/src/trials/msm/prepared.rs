//! Sums of points that compile nothing once they are prepared.

use ark_bn254::g1;
use ark_ec::{AffineRepr, short_weierstrass::Affine};
use evariste::{
    backend::Device,
    field::Mont,
    msm::{Error, Msm, MsmConfig, MsmCurve, Tuning},
};

use crate::{Outcome, curves, expect, is_emulated, prepared::quietly, samples::samples};

pub(super) fn sums(device: &Device) -> Outcome {
    // The kernels over the short curve take an emulated device a few seconds to compile.
    if is_emulated(device) { points::<curves::Short>(device) } else { points::<g1::Config>(device) }
}

fn points<C: MsmCurve>(device: &Device) -> Outcome {
    let bases = vec![Affine::<C>::generator(); 300];
    let msm = Msm::new(device, &bases, MsmConfig::default())?;
    let scalars: Vec<C::ScalarField> = samples(bases.len(), 3);
    quietly(device, "a sum of points", || {
        let sum = msm.msm(&scalars)?;
        let scalars = device.upload::<Mont<C::ScalarField>>(&scalars)?;
        expect("the same sum of scalars on the device", msm.msm(&scalars)? == sum)
    })?;
    many_sums(device, &bases)
}

/// Several sums of short scalars, in memory that would not hold one sum of long ones: so that what they take is not what the plan
/// was made with.
fn many_sums<C: MsmCurve>(device: &Device, bases: &[Affine<C>]) -> Outcome {
    let with = |memory| {
        let tuning = Tuning { levels: Some(2), ..Tuning::default() };
        Msm::new(device, bases, MsmConfig { memory: Some(memory), tuning, ..MsmConfig::default() })
    };
    let Err(Error::InsufficientMemory { expected, .. }) = with(0)?.required_bytes(bases.len(), 1) else {
        return Err("a sum takes no memory".into());
    };
    let msm = with(expected - 1)?;
    msm.prepare()?;
    quietly(device, "several sums of points", || {
        let scalars: Vec<_> = (0..3 * bases.len()).map(|i| C::ScalarField::from((i % 3) as u64)).collect();
        let sums = msm.msm_batch(3, &scalars)?;
        expect("the sums", sums == [bases[0] * C::ScalarField::from(bases.len() as u64); 3])
    })
}
