//! The rates of field arithmetic in registers: multiplications, squarings, sums of products, and products with a
//! constant.

#![cfg(feature = "all")]

use anyhow::{Result, ensure};
use ark_bls12_381::{Fq, Fr};
use ark_ff::Field;
use evariste::backend::Kind;
use evariste::field::{DeviceField, Mont, small};
use evariste_microbench::{MULTIPLICATIONS, MulChain, Place, Products, Sharing, Step};

use crate::{
    coverage::Coverage,
    input,
    limits::Work,
    request::Request,
    session::{self, Algorithm, Case, Session},
    target::Target,
    timing::Budget,
};

/// Products in registers. The limits of a device have the headline.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "field",
    headlines: &[],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large: session::is_too_large,
};

/// Chains that are checked.
const CHECKED: usize = 8;

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    for target in targets {
        let info = target.device.info();
        let log_n = match (info.id.kind, request.coverage) {
            _ if info.features.software => 8,
            (Kind::Cpu, _) => 10,
            (_, Coverage::Summary | Coverage::Small) => 18,
            (_, Coverage::Full) => 20,
        };
        for step in Step::ALL {
            chain::<Fr>(session, target, "bls12-381-fr", step, log_n);
            chain::<Fq>(session, target, "bls12-381-fq", step, log_n);
        }
        for (place, sharing) in Place::ALL.into_iter().flat_map(|place| Sharing::ALL.map(|sharing| (place, sharing))) {
            products::<Fr>(session, target, "bls12-381-fr", place, sharing);
            products::<Fq>(session, target, "bls12-381-fq", place, sharing);
            products::<small::BabyBear>(session, target, "baby-bear", place, sharing);
            products::<small::Goldilocks>(session, target, "goldilocks", place, sharing);
        }
    }
}

fn chain<F: DeviceField>(session: &mut Session, target: &Target, field: &str, step: Step, log_n: u32) {
    let elements = (MULTIPLICATIONS as usize) << log_n;
    // Multiplications of the limits' field, as both grow with the square of the limbs.
    let weight = (F::LIMBS as f64 / Fr::LIMBS as f64).powi(2);
    let work = Work { multiplications: weight * elements as f64, bytes: 0.0 };
    let case = Case {
        name: format!("{field}/{}/chain", format!("{step:?}").to_lowercase()),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(case, |budget| {
        let (device, len) = (&target.device, 1usize << log_n);
        let w = F::from(3u8).pow([1 << 40]);
        let x = input::random::<F>(len);
        let chain = MulChain::<F>::new(device, step, w)?;
        let (uploaded, mut out) = (device.upload::<Mont<F>>(&x)?, device.zeros(len)?);
        chain.run(&uploaded, &mut out)?;
        check(step, &x, w, &out.to_vec()?)?;
        let timing = budget.time_queued(|| Ok(chain.run(&uploaded, &mut out)?), || Ok(device.sync()?))?;
        Ok((timing, Some(1), format!("arkworks, {CHECKED} of 2^{log_n} chains")))
    });
}

/// Products of the table of places, as published for square roots on GPUs.
const PRODUCTS: usize = 10_000;

/// The same where a GPU is emulated: the most that one thread may do in one launch there ([`Limits::loop_iterations`]).
///
/// [`Limits::loop_iterations`]: evariste::backend::Limits::loop_iterations
const EMULATED_PRODUCTS: usize = 1_000;

fn products<F: DeviceField>(session: &mut Session, target: &Target, field: &str, place: Place, sharing: Sharing) {
    let count = if target.device.info().features.software { EMULATED_PRODUCTS } else { PRODUCTS };
    let [place_name, sharing_name] = [format!("{place:?}"), format!("{sharing:?}")].map(|name| name.to_lowercase());
    let case = Case {
        name: format!("{field}/{count}-products/{place_name}/{sharing_name}"),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n: count.ilog2(),
        elements: Some(count),
        floor: None,
    };
    session.measure(case, |budget| {
        let device = &target.device;
        let products = Products::<F>::new(device, place, sharing)?;
        let (a, b) = (input::random::<F>(count), input::random::<F>(count));
        let (x, y) = (device.upload::<Mont<F>>(&a)?, device.upload::<Mont<F>>(&b)?);
        let mut out = device.zeros(count)?;
        products.run(&x, &y, &mut out)?;
        let expected = |product: F| if place.writes(&product) { product } else { F::ZERO };
        let right = out.to_vec()?.iter().zip(a.iter().zip(&b)).all(|(out, (a, b))| *out == expected(*a * b));
        ensure!(right, "a product is wrong");
        let timing = budget.time_queued(|| Ok(products.run(&x, &y, &mut out)?), || Ok(device.sync()?))?;
        Ok((timing, Some(1), format!("arkworks, all {count} products")))
    });
}

fn check<F: Field>(step: Step, x: &[F], w: F, out: &[F]) -> Result<()> {
    for i in input::places(CHECKED, x.len()) {
        let expected = match step {
            Step::Mul => x[i].pow([u64::from(MULTIPLICATIONS) + 1]),
            Step::Square => (0..MULTIPLICATIONS).fold(x[i], |x, _| x.square()),
            Step::Mac => (i..i + MULTIPLICATIONS as usize).map(|j| x[i] * x[j % x.len()]).sum(),
            Step::Shoup => x[i] * w.pow([MULTIPLICATIONS.into()]),
        };
        ensure!(out[i] == expected, "chain {i} is wrong");
    }
    Ok(())
}
