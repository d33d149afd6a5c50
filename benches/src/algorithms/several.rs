//! One problem on one, two, four and eight devices: sums, transforms, sumchecks and extensions.
//!
//! All data are geometric series, which devices make where they need them. So every result has a closed form at any
//! size.

#![cfg(feature = "all")]

use anyhow::{Context, Error, Result, ensure};
use ark_bls12_381::{Fr, g1::Config};
use ark_ec::{AffineRepr, short_weierstrass::Affine};
use ark_ff::{AdditiveGroup, FftField, Field};
use evariste::backend::{Buffer, Device, Devices, Distribution, Secrecy, Sharded};
use evariste::curve::AffinePoint;
use evariste::field::{DeviceField, Expression, Mont, Vector, small::BabyBear};
use evariste::msm::{self as msm, MsmConfig, ShardedMsm};
use evariste::ntt::{
    self as ntt, LowDegreeExtension, Ntt, NttConfig, Order, ShardedNtt, Twiddles, reference::root_of_unity,
};
use evariste::sumcheck::{self as sumcheck, Blake3Transcript, ShardedSumcheck, Statement, SubClaim, Weight};

use crate::{
    coverage::Coverage,
    input,
    request::Request,
    session::{Algorithm, Case, Session, is_too_large_for_device},
    target::Target,
    timing::Budget,
};

/// Problems that are divided among devices.
pub(crate) const ALGORITHM: Algorithm =
    Algorithm { name: "several", headlines: &[], budget: |request| Budget::of(request.coverage), run, is_too_large };

fn is_too_large(error: &Error) -> bool {
    match error.downcast_ref::<msm::Error>() {
        Some(msm::Error::Device(error)) => return is_too_large_for_device(error),
        Some(_) => return false,
        None => {}
    }
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(ntt::Error::Device(error)), _) | (_, Some(sumcheck::Error::Device(error))) => {
            is_too_large_for_device(error)
        }
        _ => crate::session::is_too_large(error),
    }
}

/// Outputs that are checked.
const CHECKED: usize = 8;

/// Columns of the matrix that is extended.
const COLUMNS: usize = 256;

/// log₂ of the sizes of sums, transforms, sumchecks and of the rows of the matrix, on hardware and elsewhere.
const SIZES: [u32; 4] = [26, 28, 28, 20];
const SMALL_SIZES: [u32; 4] = [10; 4];

/// log₂ of the transform that one device of 80 GB does not hold.
const LARGEST: u32 = 31;

/// A transform's name, the distribution of its coefficients, and the order of its values.
type Way = (&'static str, Distribution, Order);

const WAYS: [Way; 3] = [
    ("natural", Distribution::Cyclic, Order::Natural),
    ("natural/block-cyclic", Distribution::BlockCyclic, Order::Natural),
    ("bit-reversed/block-cyclic", Distribution::BlockCyclic, Order::BitReversed),
];

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    let groups = groups(targets);
    let is_small = groups.first().is_none_or(|(_, devices)| {
        let info = devices[0].info();
        info.features.software || info.is_processor()
    });
    let given = if is_small || request.coverage == Coverage::Summary { SMALL_SIZES } else { SIZES };
    let sizes = |of: usize| match &request.log_n {
        Some(sizes) => crate::sizes::Sizes::union([sizes]),
        None => vec![given[of]],
    };
    for (name, devices) in &groups {
        sizes(0).into_iter().for_each(|log_n| sum(session, name, devices, log_n));
        for log_n in sizes(1) {
            for way in WAYS {
                transform(session, name, devices, log_n, way, NttConfig::default());
            }
        }
        if !is_small && devices.len() > 1 && request.log_n.is_none() {
            let config = NttConfig::default().twiddles(Twiddles::TwoLevel);
            transform(session, name, devices, LARGEST, WAYS[2], config);
        }
        sizes(2).into_iter().for_each(|log_n| zero_check(session, name, devices, log_n));
        sizes(3).into_iter().for_each(|log_n| extension(session, name, devices, log_n));
        link(session, name, devices, is_small);
    }
}

/// The GPUs of the first kind that has several, else two devices of the processor, in groups of each number.
fn groups(targets: &[Target]) -> Vec<(&'static str, Devices)> {
    let same = |first: &&Target| {
        let kind = first.device.info().id.kind;
        targets.iter().filter(move |target| target.device.info().id.kind == kind)
    };
    let several = targets.iter().find(|first| same(first).count() > 1);
    let devices: Vec<Device> = match (several, targets.first()) {
        (Some(first), _) => same(&first).map(|target| target.device.clone()).collect(),
        (None, Some(target)) if target.device.info().is_processor() => {
            vec![target.device.clone(), Device::another_cpu()]
        }
        _ => return Vec::new(),
    };
    let numbers = [("one-device", 1), ("two-devices", 2), ("four-devices", 4), ("eight-devices", 8)];
    let group = |(name, count): (&'static str, usize)| Some((name, Devices::new(devices.get(..count)?).ok()?));
    numbers.into_iter().filter_map(group).collect()
}

fn case(devices: &Devices, name: String, log_n: u32, elements: usize) -> Case {
    Case { name, device: devices.to_string(), peer: None, log_n, elements: Some(elements), floor: None }
}

/// c·bⁱ for each i, divided among devices.
fn series<F: DeviceField>(
    devices: &Devices,
    len: usize,
    base: F,
    first: F,
    distribution: Distribution,
) -> Result<Sharded<Mont<F>>> {
    let mut x = Sharded::alloc(devices, len, distribution, Secrecy::Public)?;
    let (places, share) = (devices.len() as u64, (len / devices.len()) as u64);
    for (place, part) in x.parts_mut().iter_mut().enumerate() {
        let (step, start) = match distribution {
            Distribution::Cyclic => (places, place as u64),
            Distribution::Blocks => (1, place as u64 * share),
            Distribution::BlockCyclic => (1, place as u64 * share / places),
        };
        let vector = Vector::<F>::new(part.device());
        let run = if distribution == Distribution::BlockCyclic { share / places } else { share };
        for (i, at) in (0..share).step_by(run as usize).enumerate() {
            let start = base.pow([start + i as u64 * share]);
            vector.powers(base.pow([step]), first * start, part.view_mut(at as usize..(at + run) as usize)?)?;
        }
    }
    Ok(x)
}

/// Σ c·xⁱ for i below n.
fn series_sum<F: Field>(first: F, x: F, n: u64) -> F {
    match (x - F::ONE).inverse() {
        Some(inverse) => first * (x.pow([n]) - F::ONE) * inverse,
        None => first * F::from(n),
    }
}

/// An element of a vector on several devices.
fn element<F: DeviceField>(x: &Sharded<Mont<F>>, index: usize) -> Result<F> {
    let (places, share) = (x.parts().len(), x.len() / x.parts().len());
    let (place, at) = match x.distribution() {
        Distribution::Cyclic => (index % places, index / places),
        Distribution::Blocks => (index / share, index % share),
        Distribution::BlockCyclic => anyhow::bail!("no value is block-cyclic"),
    };
    x.parts()[place].view(at..=at)?.to_vec()?.first().copied().context("an element")
}

fn sum(session: &mut Session, name: &str, devices: &Devices, log_n: u32) {
    let len = 1usize << log_n;
    session.measure(case(devices, format!("bls12-381-g1/msm/{name}"), log_n, len), |budget| {
        let base: Vec<Fr> = input::random(2);
        let scalars = series(devices, len, base[0], base[1], Distribution::Blocks)?;
        let parts = devices.run(|place, device| bases(device, devices.shares(len)[place].len(), place))?;
        let (bases, multipliers): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let bases = Sharded::from_parts(bases, Distribution::Blocks)?;
        let plan = ShardedMsm::<Config>::from_sharded(devices, &bases, MsmConfig::default())?;
        drop(bases);
        let (mut expected, mut scalar) = (Fr::ZERO, base[1]);
        for k in multipliers.into_iter().flatten() {
            expected += scalar * Fr::from(k);
            scalar *= base[0];
        }
        let expected = Affine::<Config>::generator() * expected;
        let timing = budget.time(|| {
            ensure!(plan.msm_sharded(&scalars)? == expected, "a sum is wrong");
            Ok(())
        })?;
        Ok((timing, None, format!("known multiples of the generator, all of 2^{log_n}")))
    });
}

/// Multiples of the generator by random 32-bit integers, and these: others at each place.
fn bases(device: &Device, len: usize, place: usize) -> Result<(Buffer<AffinePoint<Config>>, Vec<u32>)> {
    let multipliers: Vec<u32> = input::random::<u32>(len).into_iter().map(|k| k.rotate_left(place as u32)).collect();
    Ok((input::multiples::<Config>(device, &multipliers)?, multipliers))
}

fn transform(session: &mut Session, name: &str, devices: &Devices, log_n: u32, way: Way, config: NttConfig) {
    let (len, (kind, coefficients, output)) = (1usize << log_n, way);
    session.measure(case(devices, format!("bls12-381-fr/ntt/{kind}/{name}"), log_n, len), |budget| {
        let base: Vec<Fr> = input::random(2);
        let plan = ShardedNtt::<Fr>::with_config(devices, log_n, config)?;
        let transform = plan.transform().output(output);
        let transform = if coefficients == Distribution::BlockCyclic { transform.block_cyclic() } else { transform };
        let mut x = series(devices, len, base[0], base[1], coefficients)?;
        transform.forward(&mut x)?;
        let root: Fr = root_of_unity(log_n).context("a root of unity")?;
        for place in input::places(CHECKED, len) {
            let expected = series_sum(base[1], base[0] * root.pow([place as u64]), len as u64);
            let index = match output {
                Order::Natural => place,
                Order::BitReversed => ntt::reverse_bits(place as u32, log_n) as usize,
            };
            ensure!(element(&x, index)? == expected, "output {place} is wrong");
        }
        // Of whatever it holds: the time is the same.
        let timing = budget.time(|| {
            x.assume_distribution(coefficients);
            transform.forward(&mut x)?;
            Ok(devices.sync()?)
        })?;
        Ok((timing, None, format!("closed form, {CHECKED} of 2^{log_n} outputs")))
    });
}

fn zero_check(session: &mut Session, name: &str, devices: &Devices, log_n: u32) {
    let len = 1usize << log_n;
    session.measure(case(devices, format!("bls12-381-fr/sumcheck/{name}"), log_n, len), |budget| {
        let [a, b, c] = [0, 1, 2].map(Expression::column);
        let gate = a * b - c;
        let statement = Statement::<Fr>::new(log_n as usize, &gate)?.weight(Weight::ZeroCheck);
        let plan = ShardedSumcheck::<Fr>::new(devices, &gate)?;
        let base: Vec<Fr> = input::random(2);
        let powers = [1, 2, 3].map(|power| [base[0].pow([power]), base[1].pow([power])]);
        let table =
            |[base, first]: [Fr; 2]| series(devices, len, base, first, ShardedSumcheck::<Fr>::distribution(&statement));
        let tables = powers.map(table).into_iter().collect::<Result<Vec<_>>>()?;
        let tables: Vec<_> = tables.iter().collect();
        let prove = || plan.prove(&statement, &tables, Fr::ZERO, &mut Blake3Transcript::new(b"bench"));
        let proved = prove()?;
        let sub = statement.verify(Fr::ZERO, &proved.proof, &mut Blake3Transcript::new(b"bench"))?;
        check_values(&sub, &powers)?;
        let timing = budget.time(|| {
            ensure!(prove()?.proof == proved.proof, "another proof");
            Ok(())
        })?;
        Ok((timing, None, "verified, and the values of the tables by their closed form".into()))
    });
}

/// The multilinear extension of c·bⁱ is c·Π (1 − r_j + r_j·b^(2^j)).
fn check_values(sub: &SubClaim<Fr>, tables: &[[Fr; 2]]) -> Result<()> {
    for ([base, first], value) in tables.iter().zip(&sub.tables) {
        let (mut expected, mut power) = (*first, *base);
        for r in &sub.point {
            expected *= Fr::ONE - r + *r * power;
            power.square_in_place();
        }
        ensure!(expected == *value, "a table has another value");
    }
    Ok(())
}

/// The columns of a matrix of small elements, extended to twice their length: each device has some of them.
fn extension(session: &mut Session, name: &str, devices: &Devices, log_n: u32) {
    let (rows, columns) = (1usize << log_n, COLUMNS / devices.len());
    session.measure(case(devices, format!("baby-bear/extension-256/{name}"), log_n, rows * COLUMNS), |budget| {
        let (base, generator) = (BabyBear::from(3u8), BabyBear::GENERATOR);
        // Of each column a geometric series, by its values.
        let mut plans = devices.run(|_, device| {
            let extension = LowDegreeExtension::<BabyBear>::new(device, log_n, 1)?.columns(columns);
            let mut values = device.alloc::<Mont<BabyBear>>(rows * columns)?;
            Vector::<BabyBear>::new(device).powers(base, BabyBear::ONE, &mut values)?;
            Ntt::<BabyBear>::new(device, log_n)?.transform().columns(columns).forward(&mut values)?;
            let out = device.alloc::<Mont<BabyBear>>(2 * rows * columns)?;
            Ok::<_, Error>((extension, values, out))
        })?;
        // Work that is queued needs no thread for each device.
        let extend = |plans: &mut [(LowDegreeExtension<BabyBear>, _, _)]| {
            for (extension, values, out) in plans {
                extension.extend_into(&*values, generator, Order::BitReversed, &mut *out)?;
            }
            Ok(devices.sync()?)
        };
        extend(&mut plans)?;
        let root: BabyBear = root_of_unity(log_n + 1).context("a root of unity")?;
        for place in input::places(CHECKED, rows * columns) {
            let (k, column) = (place / columns, (place % columns) as u64);
            let x = base.pow([columns as u64]) * generator * root.pow([k as u64]);
            let expected = series_sum(base.pow([column]), x, rows as u64);
            let at = ntt::reverse_bits(k as u32, log_n + 1) as usize * columns + column as usize;
            for (_, _, out) in &plans {
                ensure!(out.view(at..=at)?.to_vec()? == [expected], "output {place} is wrong");
            }
        }
        let timing = budget.time(|| extend(&mut plans))?;
        Ok((timing, None, format!("closed form, {CHECKED} outputs of each device")))
    });
}

/// Copies between neighbours, all at once.
fn link(session: &mut Session, name: &str, devices: &Devices, is_small: bool) {
    if devices.len() < 2 {
        return;
    }
    let log_bytes = if is_small { 20 } else { 31 };
    let len = 1usize << (log_bytes - 2);
    session.measure(case(devices, format!("copy/all-to-next/{name}"), log_bytes, 1 << log_bytes), |budget| {
        let from = devices.run(|place, device| device.upload::<u32>(&vec![place as u32; len]))?;
        let mut to = devices.run(|_, device| device.zeros::<u32>(len))?;
        // Queues of their own: a device's default queue waits for those who read its memory.
        let queues = devices.run(|_, device| device.queue())?;
        let copy = |to: &mut [Buffer<u32>]| {
            for ((place, to), queue) in to.iter_mut().enumerate().zip(&queues) {
                queue.receive(&from[(place + 1) % from.len()], to)?;
            }
            Ok(devices.sync()?)
        };
        let timing = budget.time(|| copy(&mut to))?;
        // What is timed is checked, and not what was there before.
        to.iter_mut().try_for_each(Buffer::clear)?;
        copy(&mut to)?;
        for (place, to) in to.iter().enumerate() {
            let next = ((place + 1) % devices.len()) as u32;
            for word in [0, len / 2, len - 1] {
                ensure!(to.view(word..=word)?.to_vec()? == [next], "a copy is wrong");
            }
        }
        Ok((timing, None, "the ends and the middle of each copy".into()))
    });
}
