//! Number-theoretic transforms.

#[cfg(feature = "gpu-peers")]
mod gpu;
mod parts;
mod peers;

use std::cell::{LazyCell, OnceCell};

use anyhow::{Context, Result, ensure};
use ark_ff::FftField;
use evariste::backend::{Buffer, Device, Element, HostBuffer, Secrecy, Transfer};
use evariste::field::{DeviceField, Mont, small};
use evariste::ntt::{
    Ntt, NttConfig, Order, OutOfCore, Pipeline, Split, Twiddles,
    reference::{horner, root_of_unity},
    reverse_bits,
};
#[cfg(feature = "gpu-peers")]
use evariste_gpu_peers::sppark;
use rayon::prelude::*;

#[cfg(feature = "gpu-peers")]
use crate::gpu_peers;
use crate::{
    ALL,
    input::{self, Lazy},
    limits::{Limits, Work},
    request::Request,
    session::{self, Algorithm, Case, Headline, IN_TURN, Record, Session},
    sizes::Sizes,
    target::Target,
    timing::Budget,
};

/// Transforms.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "ntt",
    headlines: &[
        Headline { case: "bls12-381-fr/forward/natural/device", title: "NTT, BLS12-381 Fr" },
        Headline { case: "goldilocks/forward/natural/device", title: "NTT, Goldilocks" },
        Headline { case: "baby-bear/forward/natural/device", title: "NTT, BabyBear" },
    ],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large,
};

pub(super) fn is_too_large(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(evariste::ntt::Error::Device(error)) => session::is_too_large_for_device(error),
        Some(error) => matches!(error, evariste::ntt::Error::TooLarge { .. }),
        None => session::is_too_large(error),
    }
}

/// Outputs that are checked.
const CHECKED: usize = 8;

/// The batch: transforms of the size of an Ethereum blob.
const BATCH: usize = 64;
const BATCH_LOG_N: u32 = 12;

/// One way of transforming.
#[derive(Clone, Copy, Debug)]
struct Variant {
    name: &'static str,
    inverse: bool,
    output: Order,
    config: fn() -> NttConfig,
    /// Side by side instead of one after the other.
    columns: bool,
    /// From host slice to host slice instead of in place on the device.
    host: bool,
}

/// PreNTT's split of odd sizes.
fn halves() -> NttConfig {
    NttConfig::default().split(Split::Halves)
}

const FORWARD: Variant = Variant {
    name: "forward/natural/device",
    inverse: false,
    output: Order::Natural,
    config: NttConfig::default,
    columns: false,
    host: false,
};

const REVERSED: Variant = Variant { name: "forward/bit-reversed/device", output: Order::BitReversed, ..FORWARD };

const VARIANTS: [Variant; 4] = [
    FORWARD,
    Variant { name: "inverse/natural/device", inverse: true, ..FORWARD },
    REVERSED,
    Variant { name: "forward/natural/host", host: true, ..FORWARD },
];

const BATCHED: [Variant; 2] = [
    Variant { name: "forward/natural/device/batch-64", ..FORWARD },
    Variant { name: "forward/natural/device/columns-64", columns: true, ..FORWARD },
];

/// PreNTT's comparison: where factors come from, and how passes are split.
const COMPARED: [Variant; 9] = [
    Variant {
        name: "forward/natural/device/two-powers",
        config: || NttConfig::default().twiddles(Twiddles::TwoPowers),
        ..FORWARD
    },
    Variant {
        name: "forward/natural/device/on-the-fly",
        config: || NttConfig::default().twiddles(Twiddles::OnTheFly),
        ..FORWARD
    },
    Variant {
        name: "forward/natural/device/binary-powers",
        config: || NttConfig::default().twiddles(Twiddles::BinaryPowers),
        ..FORWARD
    },
    Variant {
        name: "forward/natural/device/two-level",
        config: || NttConfig::default().twiddles(Twiddles::TwoLevel),
        ..FORWARD
    },
    Variant {
        name: "forward/natural/device/half-stored",
        config: || NttConfig::default().twiddles(Twiddles::HalfStored),
        ..FORWARD
    },
    Variant { name: "forward/natural/device/halves", config: halves, ..FORWARD },
    Variant { name: "forward/natural/device/square", config: || NttConfig::default().split(Split::Square), ..FORWARD },
    Variant {
        name: "forward/natural/device/rectangular",
        config: || NttConfig::default().split(Split::Rectangular),
        ..FORWARD
    },
    Variant {
        name: "forward/natural/device/three-way",
        config: || NttConfig::default().split(Split::ThreeWay),
        ..FORWARD
    },
];

fn run(session: &mut Session, targets: &[Target], options: &Request) {
    let sizes: Vec<Sizes> = targets
        .iter()
        .map(|target| options.log_n.clone().unwrap_or_else(|| Sizes::usual(&target.device, options.coverage)))
        .collect();
    for log_n in Sizes::union(&sizes) {
        let here = || targets.iter().zip(&sizes).filter(|(_, sizes)| sizes.contains(log_n)).map(|(target, _)| target);
        let problem = Problem::<ark_bls12_381::Fr>::new("bls12-381-fr", log_n, 1);
        let variants = || VARIANTS.iter().chain(&COMPARED);
        here().for_each(|target| {
            variants().for_each(|variant| measure(session, target, &problem, variant));
            if !ALL {
                return;
            }
            single(session, target, &problem);
            pinned(session, target, &problem);
            parts::seven(session, target, &problem);
            parts::parts_of_halves(session, target, &problem);
            parts::twiddles_alone(session, target, &problem);
            parts::preparation(session, target, &problem);
            out_of_core(session, target, &problem);
        });
        let cpu = targets.iter().find(|target| target.device.is_same(&Device::cpu()));
        let limits = cpu.map(|target| target.limits);
        if options.peers {
            peers::arkworks(session, &problem, limits);
        }
        #[cfg(feature = "gpu-peers")]
        for target in here().filter(|target| options.peers && gpu_peers::work_on(target)) {
            gpu::sppark(session, target, &problem, sppark::Field::Bls12381);
            gpu::bellperson(session, target, &problem);
        }
        drop(problem);
        if ALL {
            let problem = Problem::<ark_bn254::Fr>::new("bn254-fr", log_n, 1);
            here().for_each(|target| measure(session, target, &problem, &FORWARD));
        }
        let here: Vec<&Target> = here().collect();
        let goldilocks = Problem::<small::Goldilocks>::new("goldilocks", log_n, 1);
        small_field(session, &here, options, &goldilocks, limits);
        #[cfg(feature = "gpu-peers")]
        for target in here.iter().filter(|target| options.peers && gpu_peers::work_on(target)) {
            gpu::sppark_of_integers(session, target, &goldilocks, sppark::Field::Goldilocks);
        }
        #[cfg(feature = "winterfell")]
        if options.peers {
            peers::winterfell(session, &goldilocks);
        }
        let baby_bear = Problem::<small::BabyBear>::new("baby-bear", log_n, 1);
        small_field(session, &here, options, &baby_bear, limits);
        #[cfg(feature = "gpu-peers")]
        for target in here.iter().filter(|target| options.peers && gpu_peers::work_on(target)) {
            gpu::sppark(session, target, &baby_bear, sppark::Field::BabyBear);
        }
        if ALL {
            small_field(session, &here, options, &Problem::<small::KoalaBear>::new("koala-bear", log_n, 1), limits);
        }
    }
    let problem = Problem::<ark_bls12_381::Fr>::new("bls12-381-fr", BATCH_LOG_N, BATCH);
    targets.iter().for_each(|target| BATCHED.iter().for_each(|variant| measure(session, target, &problem, variant)));
}

/// A field that the peers, as far as they are compiled in, have too.
#[cfg(feature = "plonky3")]
use crate::plonky3::Shared as SmallField;
#[cfg(not(feature = "plonky3"))]
trait SmallField: DeviceField + FftField {}
#[cfg(not(feature = "plonky3"))]
impl<F: DeviceField + FftField> SmallField for F {}

/// Forward transforms in both orders, of sizes that there are.
fn small_field<F: SmallField>(
    session: &mut Session,
    targets: &[&Target],
    request: &Request,
    problem: &Problem<F>,
    limits: Option<Limits>,
) {
    if problem.log_n > F::TWO_ADICITY {
        return;
    }
    for target in targets {
        [FORWARD, REVERSED].iter().for_each(|variant| measure(session, target, problem, variant));
    }
    if request.peers {
        peers::arkworks(session, problem, limits);
        #[cfg(feature = "plonky3")]
        peers::plonky3(session, problem);
    }
}

/// Data to transform, and what some outputs must be.
#[derive(Debug)]
struct Problem<F> {
    field: &'static str,
    log_n: u32,
    batch: usize,
    /// Made when it is first used: cases that are only counted need none.
    input: Lazy<F>,
    /// Places of the checked outputs, in natural order.
    places: Vec<usize>,
    forward: OnceCell<Vec<F>>,
    inverse: OnceCell<Vec<F>>,
}

impl<F: DeviceField + FftField> Problem<F> {
    fn new(field: &'static str, log_n: u32, batch: usize) -> Self {
        let len = batch << log_n;
        Self {
            field,
            log_n,
            batch,
            input: LazyCell::new(Box::new(move || input::random(len))),
            places: input::places(CHECKED, len),
            forward: OnceCell::new(),
            inverse: OnceCell::new(),
        }
    }

    /// Elements of all transforms.
    fn len(&self) -> usize {
        self.batch << self.log_n
    }

    /// What transforming takes: n/2 log₂ n multiplications, and reading and writing the data once.
    fn work(&self) -> Work {
        let len = self.len() as f64;
        // Multiplications of the limits' field, as both grow with the square of the limbs.
        let weight = (F::LIMBS as f64 / ark_bls12_381::Fr::LIMBS as f64).powi(2);
        Work {
            multiplications: weight * len / 2.0 * f64::from(self.log_n),
            bytes: 2.0 * len * <Mont<F> as evariste::backend::Element>::BYTES as f64,
        }
    }

    /// Compares some outputs, which `output` reads, with the polynomial's values by Horner's rule, and says so.
    fn check(&self, inverse: bool, order: Order, mut output: impl FnMut(usize) -> Result<F>) -> Result<String> {
        let known = if inverse { &self.inverse } else { &self.forward };
        let expected = known.get_or_init(|| self.places.iter().map(|place| self.value(*place, inverse)).collect());
        for (&place, expected) in self.places.iter().zip(expected) {
            let (transform, index) = (place >> self.log_n, place & ((1 << self.log_n) - 1));
            let index = match order {
                Order::Natural => index,
                Order::BitReversed => reverse_bits(index as u32, self.log_n) as usize,
            };
            let actual = output((transform << self.log_n) + index)?;
            ensure!(actual == *expected, "output {place} is {actual}, Horner's rule gives {expected}");
        }
        let batch = if self.batch == 1 { String::new() } else { format!("{} × ", self.batch) };
        Ok(format!("horner, {CHECKED} of {batch}2^{} outputs", self.log_n))
    }

    /// The output at a place: X_k = Σ x_i w^(ik), or for the inverse n⁻¹ Σ x_i w^(−ik).
    fn value(&self, place: usize, inverse: bool) -> F {
        let n = 1 << self.log_n;
        let x = &self.input[place / n * n..][..n];
        let k = (place % n) as u64;
        let w: F = root_of_unity(self.log_n).expect("sizes are checked against the two-adicity of the field");
        match inverse {
            false => horner_in_parallel(x, w.pow([k])),
            true => horner_in_parallel(x, w.pow([n as u64 - k])) / F::from(n as u64),
        }
    }
}

/// Elements that one thread evaluates.
pub(super) const GRAIN: usize = 1 << 12;

pub(super) fn horner_in_parallel<F: FftField>(x: &[F], z: F) -> F {
    let step = z.pow([GRAIN as u64]);
    let part = |(i, chunk): (usize, &[F])| horner(chunk, z) * step.pow([i as u64]);
    x.par_chunks(GRAIN).enumerate().map(part).sum()
}

fn measure<F: DeviceField + FftField>(session: &mut Session, target: &Target, problem: &Problem<F>, variant: &Variant) {
    let case = Case {
        name: format!("{}/{}", problem.field, variant.name),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n: problem.log_n,
        elements: Some(problem.len()),
        // The way over the bus is none of the limits that are measured.
        floor: (!variant.host).then(|| target.limits.floor(problem.work())),
    };
    session.measure(case, |budget| {
        let device = &target.device;
        let ntt = Ntt::<F>::with_config(device, problem.log_n, (variant.config)())?;
        // Side by side, element i of transform t lies at i * batch + t.
        let place = |i: usize| match variant.columns {
            true => (i & (ntt.size() - 1)) * problem.batch + (i >> problem.log_n),
            false => i,
        };
        let mut input = problem.input.clone();
        if variant.columns {
            problem.input.iter().enumerate().for_each(|(i, x)| input[place(i)] = *x);
        }
        let mut data = device.upload::<Mont<F>>(&input)?;
        let transform = |data: &mut Buffer<Mont<F>>| {
            let transform = ntt.transform().output(variant.output);
            let transform = if variant.columns { transform.columns(problem.batch) } else { transform };
            if variant.inverse { transform.inverse(data) } else { transform.forward(data) }
        };

        let before = device.stats().launches;
        transform(&mut data)?;
        let launches = device.stats().launches - before;
        if variant.host {
            let mut output = vec![F::ZERO; problem.len()];
            let mut work = |output: &mut [F]| {
                data.write(&problem.input)?;
                transform(&mut data)?;
                Ok(data.read(output)?)
            };
            work(&mut output)?;
            let checked = problem.check(variant.inverse, variant.output, |place| Ok(output[place]))?;
            return Ok((budget.time(|| work(&mut output))?, Some(launches), checked));
        }
        let checked = problem.check(variant.inverse, variant.output, |i| {
            let mut element = [F::ZERO];
            let place = place(i);
            data.view(place..=place)?.read(&mut element)?;
            Ok(element[0])
        })?;
        let timing = budget.time_queued(|| Ok(transform(&mut data)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), checked))
    });
}

/// The outputs of a transform in pinned memory.
fn check_pinned<F: DeviceField + FftField>(problem: &Problem<F>, host: &HostBuffer) -> Result<String> {
    problem.check(false, Order::Natural, |i| {
        let mut element = [F::ZERO];
        Mont::<F>::decode(&host[i * Mont::<F>::BYTES..][..Mont::<F>::BYTES], &mut element)?;
        Ok(element[0])
    })
}

/// One transform from pinned host memory and back, whose outer passes overlap with its transfers.
fn single<F: DeviceField + FftField>(session: &mut Session, target: &Target, problem: &Problem<F>) {
    let case = Case {
        name: format!("{}/forward/natural-single/pinned", problem.field),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n: problem.log_n,
        elements: Some(problem.len()),
        floor: None,
    };
    session.measure(case, |budget| {
        let device = &target.device;
        let ntt = Ntt::<F>::new(device, problem.log_n)?;
        let mut host = device.host_buffer(problem.len() * Mont::<F>::BYTES, Transfer::Both, Secrecy::Public)?;
        Mont::<F>::encode(&problem.input, &mut host);
        let transform = ntt.transform();
        let turn = |host| anyhow::Ok(transform.forward_pinned(host, Secrecy::Public)?);
        let host = turn(host)?;
        let checked = check_pinned(problem, &host)?;
        let mut host = Some(host);
        let timing = budget.time(|| {
            host = host.take().map(turn).transpose()?;
            Ok(())
        })?;
        Ok((timing, None, checked))
    });
}

/// Transforms of a stream of [`STREAM`] from pinned host memory and back: overlapped, and one step after the other.
fn pinned<F: DeviceField + FftField>(session: &mut Session, target: &Target, problem: &Problem<F>) {
    for overlapped in [true, false] {
        let case = Case {
            name: format!("{}/forward/natural{}/pinned", problem.field, if overlapped { "" } else { IN_TURN }),
            device: target.device.info().id.to_string(),
            peer: None,
            log_n: problem.log_n,
            elements: Some(problem.len()),
            floor: None,
        };
        session.measure(case, |budget| {
            let device = &target.device;
            let ntt = Ntt::<F>::new(device, problem.log_n)?;
            let mut host = device.host_buffer(problem.len() * Mont::<F>::BYTES, Transfer::Both, Secrecy::Public)?;
            Mont::<F>::encode(&problem.input, &mut host);
            let check = |host: &HostBuffer| check_pinned(problem, host);
            if !overlapped {
                let mut data = device.alloc::<Mont<F>>(problem.len())?;
                let mut turn = |host| {
                    let host = data.write_pinned(host)?.wait()?;
                    ntt.forward(&mut data)?;
                    device.sync()?;
                    anyhow::Ok(data.read_pinned(host)?.wait()?)
                };
                let mut host = Some(turn(host)?);
                let checked = host.as_ref().map(check).transpose()?.unwrap_or_default();
                let timing = budget.time(|| {
                    host = host.take().map(&mut turn).transpose()?;
                    Ok(())
                })?;
                return Ok((timing, None, checked));
            }
            let mut pipeline = Pipeline::new(ntt.transform(), 1, Secrecy::Public)?;
            ensure!(pipeline.forward_pinned(host)?.is_none(), "a result before there can be one");
            let first = pipeline.next()?.context("no result")?;
            let checked = check(&first)?;
            let more = (1..IN_FLIGHT).map(|_| device.host_buffer(first.len(), Transfer::Both, Secrecy::Public));
            let mut idle = more.collect::<Result<Vec<_>, _>>()?;
            idle.iter_mut().for_each(|host| host.copy_from_slice(&first));
            idle.push(first);
            let mut timing = budget.time(|| {
                for _ in 0..STREAM {
                    let host = match idle.pop() {
                        Some(host) => host,
                        None => pipeline.next()?.context("no result")?,
                    };
                    idle.extend(pipeline.forward_pinned(host)?);
                }
                while let Some(host) = pipeline.next()? {
                    idle.push(host);
                }
                Ok(())
            })?;
            timing.median /= STREAM;
            timing.min /= STREAM;
            Ok((timing, None, format!("{checked}; each of {STREAM} in a row")))
        });
    }
}

/// Transforms in a row, each timed as a share of the whole.
const STREAM: u32 = 8;

/// Host memories that are under way at once.
const IN_FLIGHT: usize = 4;

/// A transform of a host slice in pieces of an eighth of it, with a plan made before.
fn out_of_core<F: DeviceField + FftField>(session: &mut Session, target: &Target, problem: &Problem<F>) {
    let case = Case {
        name: format!("{}/forward/natural/out-of-core", problem.field),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n: problem.log_n,
        elements: Some(problem.len()),
        floor: None,
    };
    session.measure(case, |budget| {
        let bytes = (11 * problem.len() * Mont::<F>::BYTES) as u64 / 8;
        let mut plan = OutOfCore::<F>::new(&target.device, problem.log_n, bytes, Secrecy::Public)?;
        let mut x = problem.input.clone();
        plan.forward_host(&mut x)?;
        let checked = problem.check(false, Order::Natural, |i| Ok(x[i]))?;
        Ok((budget.time(|| Ok(plan.forward_host(&mut x)?))?, None, checked))
    });
}

/// Bits of the modulus of a field that has transforms here, by its name in cases.
fn bits(field: &str) -> Option<u32> {
    use ark_ff::PrimeField;

    Some(match field {
        "bls12-381-fr" => ark_bls12_381::Fr::MODULUS_BIT_SIZE,
        "bn254-fr" => ark_bn254::Fr::MODULUS_BIT_SIZE,
        "goldilocks" => small::Goldilocks::MODULUS_BIT_SIZE,
        "baby-bear" => small::BabyBear::MODULUS_BIT_SIZE,
        "koala-bear" => small::KoalaBear::MODULUS_BIT_SIZE,
        _ => return None,
    })
}

/// Sets N·log₂N·bits² in a second for one or several transforms of N elements together, the measure by which PreNTT
/// compares.
pub(crate) fn with_relative_efficiency(mut records: Vec<Record>) -> Vec<Record> {
    for record in records.iter_mut().filter(|record| record.algorithm == ALGORITHM.name) {
        let (case, log_n, throughput) = (&record.case, record.log_n, record.throughput);
        record.relative_efficiency = throughput.and_then(|throughput| relative_efficiency(case, log_n, throughput));
    }
    records
}

/// `None` for what is no transform. The throughput is in elements a second.
fn relative_efficiency(case: &str, log_n: u32, throughput: f64) -> Option<f64> {
    let (field, task) = case.split_once('/')?;
    let bits = f64::from(bits(field)?);
    let is_transform = task.starts_with("forward/") || task.starts_with("inverse/");
    is_transform.then(|| throughput * f64::from(log_n) * bits * bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efficiency_is_of_transforms() {
        let of = |case| relative_efficiency(case, 4, 16.0);
        assert_eq!(of("bls12-381-fr/forward/natural/device"), Some(16.0 * 4.0 * 255.0 * 255.0));
        assert_eq!(of("baby-bear/inverse/natural/device"), Some(16.0 * 4.0 * 31.0 * 31.0));
        assert_eq!((of("bls12-381-fr/twiddles-alone/two-level/device"), of("sort/device")), (None, None));
    }
}
