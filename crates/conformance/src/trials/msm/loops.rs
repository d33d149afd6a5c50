//! Sums of points where a device ends loops early.

use ark_bls12_381::{Fr, g1};
use ark_ec::{AffineRepr, short_weierstrass::Affine};
use evariste::{
    backend::{Device, Element},
    curve::AffinePoint,
    msm::{Msm, MsmConfig, Precompute, Tuning},
};

use crate::{expect::expect_equal, harness::Outcome, loops::Divided, samples::samples};

pub(super) const DIVIDED: &[Divided] = &[("msm", 4000, |device| check_msm(device, 200))];

/// With affine additions and with tables, in parts that are as long as the device allows.
fn check_msm(device: &Device, len: usize) -> Outcome {
    let scalars = samples::<Fr>(len, 58);
    let bases = vec![Affine::<g1::Config>::generator(); len];
    let expected = Affine::<g1::Config>::generator() * scalars.iter().sum::<Fr>();
    let tuning = Tuning::default().slices(1).min_slice(u32::MAX).log_reduction_run(20).log_final_row(20);
    let budget = 8 * (len * AffinePoint::<g1::Config>::BYTES) as u64;
    for (levels, precompute) in [(0, Precompute::Tables { budget }), (1, Precompute::None)] {
        let tuning = tuning.affine_levels(levels);
        let config = MsmConfig::default().window(8).tuning(tuning).precompute(precompute);
        expect_equal("a sum", &Msm::with_config(device, &bases, config)?.msm(&scalars)?, &expected)?;
    }
    Ok(())
}
