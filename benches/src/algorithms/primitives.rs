//! Sorting, and the rates of point additions.

use anyhow::{Result, ensure};
use ark_bls12_381::{
    Fq, G1Affine, G1Projective,
    g1::{Config, G1_GENERATOR_X, G1_GENERATOR_Y},
};
use evariste::backend::{Buffer, Device, Element, Kind};
use evariste::curve::{AffinePoint, Points};
use evariste::field::{DeviceField, Mont};
use evariste::primitives::{RadixSort, SortMethod};
use evariste_microbench::{ADDITIONS, AddChain};
use rayon::prelude::*;

use crate::{
    coverage::Coverage,
    input,
    limits::Work,
    request::Request,
    session::{self, Algorithm, Case, Headline, Session},
    target::Target,
    timing::Budget,
};

/// Sorting and additions of points.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "field",
    headlines: &[
        Headline { case: "bls12-381-g1/add-affine/device", title: "additions of points, BLS12-381 G1" },
        Headline { case: "u32/sort-32-bits", title: "radix sort, 32-bit keys with payload" },
    ],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large: session::is_too_large,
};

/// Results of additions that are checked.
const CHECKED: usize = 8;

/// Multiplications of the limits' field that one of this field's counts for, as both grow with the square of the limbs.
fn weight() -> f64 {
    (Fq::LIMBS as f64 / (<Mont<ark_bls12_381::Fr> as Element>::BYTES / 4) as f64).powi(2)
}

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    for target in targets {
        let info = target.device.info();
        // log₂ of the keys, of the chains, and of the pairs of affine points.
        let [keys, chains, pairs] = match (info.id.kind, request.coverage) {
            _ if info.features.software => [16, 8, 12],
            (Kind::Cpu, _) => [22, 10, 16],
            (_, Coverage::Summary | Coverage::Small) => [22, 18, 20],
            (_, Coverage::Full) => [24, 20, 23],
        };
        sort(session, target, keys, 32);
        sort(session, target, keys, 16);
        xyzz(session, target, chains);
        affine(session, target, pairs);
    }
}

/// Keys with values, by the lowest `bits` bits of the keys.
fn sort(session: &mut Session, target: &Target, log_n: u32, bits: u32) {
    let elements = 1 << log_n;
    let digits = |width: u32| f64::from(bits.div_ceil(width));
    let bytes = match SortMethod::fastest(target.device.info()) {
        SortMethod::Sweep => 4.0 + 16.0 * digits(8),
        SortMethod::Scatter => 20.0 * digits(4),
    };
    let work = Work { multiplications: 0.0, bytes: bytes * elements as f64 };
    let case = case(target, &format!("u32/sort-{bits}-bits"), log_n, elements, work);
    session.measure(case, |budget| {
        let device = &target.device;
        let sort = RadixSort::new(device)?;
        let mut host: Vec<(u32, u32)> =
            input::random::<u64>(elements).into_iter().map(|x| (x as u32, (x >> 32) as u32)).collect();
        let (keys, values): (Vec<u32>, Vec<u32>) = host.iter().copied().unzip();
        let (mut keys, mut values) = (device.upload::<u32>(&keys)?, device.upload::<u32>(&values)?);
        let before = device.stats().launches;
        sort.sort(&mut keys, &mut values, 0..bits)?;
        let launches = device.stats().launches - before;
        host.par_sort_by_key(|(key, _)| u64::from(*key) & ((1 << bits) - 1));
        let sorted: Vec<(u32, u32)> = keys.to_vec()?.into_iter().zip(values.to_vec()?).collect();
        ensure!(sorted == host, "the pairs are not sorted");
        // Keys and values change places each time: what is sorted by was put in random order by the sort before.
        let timing = budget.time_queued(
            || {
                std::mem::swap(&mut keys, &mut values);
                Ok(sort.sort(&mut keys, &mut values, 0..bits)?)
            },
            || Ok(device.sync()?),
        )?;
        Ok((timing, Some(launches), format!("a sort on the host, all of 2^{log_n} pairs")))
    });
}

/// Multiples of the generator by random 32-bit integers.
fn points(device: &Device, points: &Points<Config>, len: usize) -> Result<Buffer<AffinePoint<Config>>> {
    let generator = G1Affine::new_unchecked(G1_GENERATOR_X, G1_GENERATOR_Y);
    let generators = device.upload::<AffinePoint<Config>>(&vec![generator; len])?;
    let (mut multiples, mut affine) = (device.zeros(len)?, device.zeros(len)?);
    points.mul(&generators, &device.upload::<u32>(&input::random(len))?, &mut multiples)?;
    points.normalise_xyzz(&multiples, &mut affine)?;
    Ok(affine)
}

/// Mixed additions in XYZZ form, in registers.
fn xyzz(session: &mut Session, target: &Target, log_n: u32) {
    let elements = (ADDITIONS as usize) << log_n;
    let work = Work { multiplications: 10.0 * weight() * elements as f64, bytes: 0.0 };
    session.measure(case(target, "bls12-381-g1/add-xyzz-affine/chain", log_n, elements, work), |budget| {
        let (device, len) = (&target.device, 1usize << log_n);
        let a = points(device, &Points::new(device), len)?;
        let chain = AddChain::<Config>::new(device)?;
        let mut out = device.zeros(len)?;
        chain.run(&a, &mut out)?;
        let (host, sums) = (a.to_vec()?, out.to_vec()?);
        for i in input::places(CHECKED, len) {
            let terms = (i..i + ADDITIONS as usize).map(|j| host[j % len]);
            let expected = terms.fold(G1Projective::default(), |sum, point| sum + point);
            ensure!(sums[i] == expected, "chain {i} is wrong");
        }
        let timing = budget.time_queued(|| Ok(chain.run(&a, &mut out)?), || Ok(device.sync()?))?;
        Ok((timing, Some(1), format!("arkworks, {CHECKED} of 2^{log_n} chains")))
    });
}

/// Affine additions with shared inversions, from and to memory.
fn affine(session: &mut Session, target: &Target, log_n: u32) {
    let elements = 1 << log_n;
    let bytes = 3.0 * <AffinePoint<Config> as Element>::BYTES as f64;
    let work = Work { multiplications: 6.0 * weight() * elements as f64, bytes: bytes * elements as f64 };
    session.measure(case(target, "bls12-381-g1/add-affine/device", log_n, elements, work), |budget| {
        let device = &target.device;
        let operations = Points::new(device);
        let a = points(device, &operations, elements)?;
        // Twice each point and its opposite: their sum is known, and all of them need their division.
        let mut b = device.zeros(elements)?;
        operations.negate_affine(&a, &mut b)?;
        let mut doubled = device.zeros(elements)?;
        operations.add_affine(&a, &a, &mut doubled)?;
        let mut out = device.zeros(elements)?;
        operations.add_affine(&doubled, &b, &mut out)?;
        for i in input::places(CHECKED, elements) {
            let (p, q) = (read(&doubled, i)?, read(&b, i)?);
            ensure!(G1Projective::from(read(&out, i)?) == p + q, "sum {i} is wrong");
        }
        let timing =
            budget.time_queued(|| Ok(operations.add_affine(&doubled, &b, &mut out)?), || Ok(device.sync()?))?;
        Ok((timing, Some(1), format!("arkworks, {CHECKED} of 2^{log_n} sums")))
    });
}

fn read(points: &Buffer<AffinePoint<Config>>, i: usize) -> Result<G1Affine> {
    Ok(points.view(i..=i)?.to_vec()?[0])
}

fn case(target: &Target, name: &str, log_n: u32, elements: usize, work: Work) -> Case {
    Case {
        name: name.to_owned(),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(work)),
    }
}
