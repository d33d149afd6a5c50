//! Poseidon over the scalar fields of BN254 and BLS12-381, with circomlib's parameters.

use anyhow::ensure;
use evariste::backend::Element;
use evariste::field::{DeviceField, DevicePrimeField, Mont};
use evariste::hash::{Error, Poseidon, PoseidonParameters, reference};

use crate::{
    ALL,
    coverage::Coverage,
    input,
    limits::Work,
    request::Request,
    session::{self, Algorithm, Case, Headline, Session},
    sizes::Sizes,
    target::Target,
    timing::Budget,
};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "poseidon",
    headlines: &[Headline { case: "bn254-fr/poseidon-t3/device", title: "Poseidon of pairs, BN254 Fr" }],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large: |error| match error.downcast_ref() {
        Some(Error::Device(error)) => session::is_too_large_for_device(error),
        _ => session::is_too_large(error),
    },
};

/// log₂ of the most hashes.
const MAX_LOG_HASHES: u32 = 24;

/// Hashes that are checked.
const CHECKED: usize = 8;

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    for target in targets {
        if !ALL || request.coverage == Coverage::Summary {
            let log_n = Sizes::of_headline(&target.device, MAX_LOG_HASHES, 14);
            hash::<ark_bn254::Fr>(session, target, "bn254-fr", 3, log_n);
            continue;
        }
        let sizes = request.log_n.clone().unwrap_or_else(|| Sizes::usual(&target.device, request.coverage));
        for log_n in Sizes::union(&[sizes]).into_iter().filter(|log_n| *log_n <= MAX_LOG_HASHES) {
            hash::<ark_bn254::Fr>(session, target, "bn254-fr", 3, log_n);
            hash::<ark_bn254::Fr>(session, target, "bn254-fr", 5, log_n);
            hash::<ark_bn254::Fr>(session, target, "bn254-fr", 17, log_n);
            hash::<ark_bls12_381::Fr>(session, target, "bls12-381-fr", 3, log_n);
        }
    }
}

/// Multiplications of a permutation: of S-boxes, and of dense and sparse matrices.
fn multiplications(width: usize, [full, partial]: [usize; 2]) -> usize {
    3 * (width * full + partial) + width * width * (full + 1) + (2 * width - 1) * (partial - 1)
}

fn hash<F: DevicePrimeField>(session: &mut Session, target: &Target, field: &str, width: usize, log_n: u32) {
    let (count, columns) = (1usize << log_n, width - 1);
    let rounds = PoseidonParameters::<F>::circomlib(width).map_or([8, 57], |parameters| parameters.rounds());
    let weight = (F::LIMBS as f64 / ark_bls12_381::Fr::LIMBS as f64).powi(2);
    let work = Work {
        multiplications: weight * (count * multiplications(width, rounds)) as f64,
        bytes: (count * width * Mont::<F>::BYTES) as f64,
    };
    let case = Case {
        name: format!("{field}/poseidon-t{width}/device"),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(count),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(case, |budget| {
        let device = &target.device;
        let parameters = PoseidonParameters::<F>::circomlib(width)?;
        let poseidon = Poseidon::new(device, parameters.clone())?;
        let rows: Vec<F> = input::random(count * columns);
        let (data, mut out) = (device.upload::<Mont<F>>(&rows)?, device.zeros::<Mont<F>>(count)?);
        let before = device.stats().launches;
        poseidon.hash_rows(&data, &mut out)?;
        let launches = device.stats().launches - before;
        for place in input::places(CHECKED, count) {
            let expected = reference::poseidon_hash(&parameters, &rows[place * columns..][..columns]);
            ensure!(out.view(place..=place)?.to_vec()? == [expected], "hash {place} is wrong");
        }
        let timing = budget.time_queued(|| Ok(poseidon.hash_rows(&data, &mut out)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("definition, {CHECKED} of 2^{log_n} hashes")))
    });
}
