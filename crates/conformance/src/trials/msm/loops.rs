//! Sums of points where a device ends loops early.

use ark_bls12_381::{Fr, g1};
use ark_ec::{AffineRepr, short_weierstrass::Affine};
use evariste::{
    backend::{Device, Element},
    curve::AffinePoint,
    msm::{Msm, MsmConfig, Precompute, Tuning},
};

use crate::{Outcome, expect_equal, loops::Divided, samples::samples};

pub(super) const DIVIDED: &[Divided] = &[("msm", 4000, |device| check_msm(device, 200))];

/// With affine additions and with tables, in parts that are as long as the device allows.
fn check_msm(device: &Device, len: usize) -> Outcome {
    let scalars = samples::<Fr>(len, 58);
    let bases = vec![Affine::<g1::Config>::generator(); len];
    let expected = Affine::<g1::Config>::generator() * scalars.iter().sum::<Fr>();
    let tuning =
        Tuning { slices: Some(1), least_slice: Some(u32::MAX), layer: Some(20), last: Some(20), ..Tuning::default() };
    let budget = 8 * (len * AffinePoint::<g1::Config>::BYTES) as u64;
    for (levels, precompute) in [(0, Precompute::Tables { budget }), (1, Precompute::None)] {
        let tuning = Tuning { levels: Some(levels), ..tuning };
        let config = MsmConfig { window: Some(8), tuning, precompute, ..MsmConfig::default() };
        expect_equal("a sum", &Msm::new(device, &bases, config)?.msm(&scalars)?, &expected)?;
    }
    Ok(())
}
