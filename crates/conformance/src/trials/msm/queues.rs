//! Sums of points on a queue.

use ark_bls12_381::{Fr, G1Affine, g1::Config};
use ark_ec::AffineRepr;
use evariste::{
    backend::{Device, Secrecy, Transfer},
    field::Mont,
    msm::{Accumulation, Addition, Aggregation, Msm, MsmConfig, Precompute, Tuning},
};

use super::memory_of_pieces;
use crate::{
    expect::expect_same,
    harness::{Named, Outcome},
    misplaced::Plan,
    order_checker::{expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("sums of points", sums_of_points)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[("sums of points", |m| {
    let scalars = [Fr::from(3); 4];
    let msm = Msm::<Config>::new(&m.device, &[G1Affine::generator(); 4])?.on(&m.queue);
    m.refuses(|| msm.msm(&scalars))?;
    let scalars = m.device.upload::<Mont<Fr>>(&scalars)?;
    m.refuses(|| msm.msm(&scalars))?;
    m.refuses(|| msm.msm_batch(1, &scalars))?;
    m.refuses(|| msm.msm_segmented(2, &scalars))?;
    m.refuses(|| msm.msm_profiled(&scalars))?;
    m.refuses(|| msm.digits(&scalars))?;
    let digits = msm.on(&m.device.default_queue()).digits(&scalars)?;
    m.refuses(|| msm.start(&digits))?;
    let pinned = m.device.host_buffer(4 * 32, Transfer::Upload, Secrecy::Public)?;
    m.refuses(|| msm.msm_pinned(pinned))
})];

/// Every step of a sum: tables of multiples, affine additions, both ways of adding to buckets, and scalars that come
/// from the host in pieces while the device works.
fn sums_of_points() -> Outcome {
    let bases = [G1Affine::generator(); 40];
    let scalars: Vec<Fr> = (1..41).map(Fr::from).collect();
    let tuning = Tuning::default().affine_levels(1);
    let (aggregation, addition) = (Aggregation::RunningSums, Addition::Double);
    let whole = Tuning::default().accumulation(Accumulation::WholeBuckets).aggregation(aggregation);
    let per_bucket = Tuning::default().accumulation(Accumulation::PerBucket).addition(addition);
    let plain = MsmConfig::default().window(4).tuning(tuning);
    let memory = memory_of_pieces::<Config>(&Device::cpu(), plain)?;
    for config in [
        plain,
        plain.precompute(Precompute::Tables { budget: u64::MAX }),
        plain.precompute(Precompute::OddSignedDigits { depth: 1 }).tuning(per_bucket),
        plain.precompute(Precompute::Doublings { depth: 1 }).tuning(whole),
        plain.precompute(Precompute::Doublings { depth: 1 }).tuning(Tuning::default()),
        plain.memory(memory),
    ] {
        on_plans(|ordered, made_on, queue| {
            let msm = Msm::<Config>::with_config(made_on, &bases, config)?.on(queue);
            let mut buffer = queue.device().alloc::<Mont<Fr>>(scalars.len())?;
            queue.write(&mut buffer, &scalars)?;
            let mut sums = vec![msm.msm(&scalars)?, msm.msm(&buffer)?, msm.msm_profiled(buffer.view(1..)?)?.0];
            if config.memory.is_none() {
                // On the queue that the plan was made with, by digits that were made on this one.
                let digits = msm.digits(&buffer)?;
                sums.push(msm.on(made_on).start(&digits)?.wait()?);
            }
            expect_ordered(ordered, &format!("{config:?}"))?;
            let expected = [820, 820, 819, 820].map(|factor| bases[0] * Fr::from(factor));
            expect_same("sums", &sums, &expected[..sums.len()])
        })?;
    }
    Ok(())
}
