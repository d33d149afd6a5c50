//! Sums of points that compile nothing once they are prepared.

use ark_bn254::g1;
use ark_ec::{AffineRepr, short_weierstrass::Affine};
use evariste::{
    backend::{Device, Error as DeviceError},
    field::Mont,
    msm::{Error, Msm, MsmConfig, MsmCurve, Tuning},
};

use crate::{curves, devices::is_emulated, expect::expect, harness::Outcome, prepared::quietly, samples::samples};

pub(super) fn sums(device: &Device) -> Outcome {
    // The kernels over the short curve take an emulated device a few seconds to compile.
    if is_emulated(device) { points::<curves::Short>(device) } else { points::<g1::Config>(device) }
}

fn points<C: MsmCurve>(device: &Device) -> Outcome {
    let bases = vec![Affine::<C>::generator(); 300];
    let msm = Msm::new(device, &bases)?;
    let scalars: Vec<C::ScalarField> = samples(bases.len(), 3);
    quietly(device, "a sum of points", || {
        let sum = msm.msm(&scalars)?;
        let scalars = device.upload::<Mont<C::ScalarField>>(&scalars)?;
        expect("the same sum of scalars on the device", msm.msm(&scalars)? == sum)?;
        expect("the same sum of digits", msm.start(&msm.digits(&scalars)?)?.wait()? == sum)
    })?;
    many_sums(device, &bases)
}

/// Several sums of short scalars, in memory that would not hold one sum of long ones: so that what they take is not
/// what the plan was made with.
fn many_sums<C: MsmCurve>(device: &Device, bases: &[Affine<C>]) -> Outcome {
    let with = |memory| {
        let tuning = Tuning::default().affine_levels(2);
        Msm::with_config(device, bases, MsmConfig::default().memory(memory).tuning(tuning))
    };
    let refused = with(0)?.scratch_bytes(bases.len(), 1);
    let Err(Error::Device(DeviceError::InsufficientMemory { needed, .. })) = refused else {
        return Err("a sum takes no memory".into());
    };
    let msm = with(needed - 1)?;
    msm.prepare()?;
    quietly(device, "several sums of points", || {
        let scalars: Vec<_> = (0..3 * bases.len()).map(|i| C::ScalarField::from((i % 3) as u64)).collect();
        let sums = msm.msm_batch(3, &scalars)?;
        expect("the sums", sums == [bases[0] * C::ScalarField::from(bases.len() as u64); 3])
    })
}
