//! Sums of points leave nothing of their scalars on the heap.

use std::iter;

use ark_bn254::{Fr, G1Affine, g1::Config};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{BigInteger, PrimeField};
use evariste::{
    backend::{Buffer, Secrecy, Transfer},
    field::{Canonical, Mont},
    msm::{Bases, Msm, MsmConfig, Tuning},
};
use libtest_mimic::Failed;

use crate::freed::{Freed, Probe};

/// Scalars of a sum of points: more than a thread recodes at a time, and enough for inversions to be shared.
const SCALARS: usize = 6000;

pub(super) const FREED: &[Freed] = &[
    ("msm_of_forms", |p| {
        let (msm, scalars) = (plan(p, MsmConfig::default())?, p.operand::<Mont<Fr>>(&p.samples(SCALARS))?);
        p.watch_heap(|| msm.msm(&scalars))
    }),
    ("msm_of_digits", |p| {
        let (msm, scalars) = (plan(p, MsmConfig::default())?, p.operand::<Mont<Fr>>(&p.samples(SCALARS))?);
        p.watch_heap(|| msm.start(&msm.digits(&scalars)?)?.wait())
    }),
    ("msm_of_integers", |p| {
        let (msm, scalars) = (plan(p, MsmConfig::default())?, integers(p, SCALARS)?);
        p.watch_heap(|| msm.msm(&scalars))
    }),
    ("msm_of_any_integers", |p| {
        let config = MsmConfig::default().bases(Bases::FullGroup);
        let (msm, scalars) = (plan(p, config)?, integers(p, SCALARS)?);
        p.watch_heap(|| msm.msm(&scalars))
    }),
    ("msm_of_slices", |p| {
        let config = MsmConfig::default().secrecy(Secrecy::Secret);
        let (msm, scalars) = (plan(p, config)?, p.host(SCALARS));
        p.watch_heap(|| msm.msm(&scalars))
    }),
    ("msm_by_pairs", |p| {
        let tuning = Tuning::default().affine_levels(2);
        let msm = plan(p, MsmConfig::default().tuning(tuning).window(8))?;
        let scalars = p.operand::<Mont<Fr>>(&p.samples(SCALARS))?;
        p.watch_heap(|| msm.msm_batch(2, scalars.view(..SCALARS / 2 * 2)?))
    }),
];

/// Secret integers of 256 bits. Most are not below the order. The allocator looks for them, and for their remainders.
fn integers(p: &Probe, len: usize) -> Result<Buffer<Canonical<Fr>>, Failed> {
    let mut buffer = p.device.alloc_with::<Canonical<Fr>>(len, Secrecy::Secret)?;
    let mut host = p.device.host_buffer(32 * len, Transfer::Upload, Secrecy::Secret)?;
    p.fill(&mut host);
    for integer in host.chunks_exact(32) {
        let rest = Fr::from_le_bytes_mod_order(integer);
        p.look_for(&rest.into_bigint().to_bytes_le());
        p.look_for(bytemuck::cast_slice(&rest.0.0));
    }
    buffer.write_pinned(host)?.wait()?;
    Ok(buffer)
}

fn plan(p: &Probe, config: MsmConfig) -> Result<Msm<Config>, Failed> {
    let generator = G1Affine::generator();
    let multiples = iter::successors(Some(generator.into_group()), |point| Some(*point + generator));
    let multiples = CurveGroup::normalize_batch(&multiples.take(64).collect::<Vec<_>>());
    let bases: Vec<_> = multiples.into_iter().cycle().take(SCALARS).collect();
    Ok(Msm::with_config(&p.device, &bases, config)?)
}
