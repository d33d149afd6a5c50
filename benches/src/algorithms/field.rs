//! Vector operations, which stream through memory.

use anyhow::{Result, ensure};
use ark_bls12_381::Fr;
use ark_ff::{AdditiveGroup, Field, Zero};
use evariste::backend::{Buffer, Device, Element, Kind};
use evariste::field::{Expression, Mont, Vector};
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

/// Vector operations.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "field",
    headlines: &[
        Headline { case: "bls12-381-fr/mul/device", title: "products of vectors, BLS12-381 Fr" },
        Headline { case: "bls12-381-fr/batch-inverse/device", title: "batch inverse, BLS12-381 Fr" },
    ],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large: session::is_too_large,
};

/// The inputs: elements, and each place once in random order.
struct Host {
    a: Vec<Fr>,
    b: Vec<Fr>,
    places: Vec<u32>,
}

/// The same on the device.
struct Inputs {
    a: Buffer<Mont<Fr>>,
    b: Buffer<Mont<Fr>>,
    places: Buffer<u32>,
}

impl Host {
    fn new(elements: usize) -> Self {
        let mut a = input::random::<Fr>(2 * elements);
        let b = a.split_off(elements);
        let keys = input::random::<u64>(elements);
        let mut places: Vec<u32> = (0..elements as u32).collect();
        places.par_sort_by_key(|place| keys[*place as usize]);
        Self { a, b, places }
    }

    fn upload(&self, device: &Device) -> Result<Inputs> {
        Ok(Inputs { a: device.upload(&self.a)?, b: device.upload(&self.b)?, places: device.upload(&self.places)? })
    }

    /// The first output that is not what `f` gives for its place.
    fn wrong(&self, out: &[Fr], holds: impl Fn(usize, Fr) -> bool + Sync) -> Option<usize> {
        (0..self.a.len()).into_par_iter().position_first(|i| !holds(i, out[i]))
    }
}

type Apply = fn(&Vector<Fr>, &Inputs, &mut Buffer<Mont<Fr>>) -> evariste::backend::Result<()>;

/// One operation.
struct Operation {
    name: &'static str,
    /// Multiplications an element, and elements read and written for each.
    cost: (f64, f64),
    apply: Apply,
    /// The same by arkworks, on all cores.
    arkworks: Option<fn(&Host, out: &mut [Fr])>,
    /// An output that is wrong.
    wrong: fn(&Host, out: &[Fr]) -> Option<usize>,
}

/// Elements that an index counts for.
const INDEX: f64 = size_of::<u32>() as f64 / <Mont<Fr> as Element>::BYTES as f64;

const OPERATIONS: [Operation; 6] = [
    Operation {
        name: "add",
        cost: (0.0, 3.0),
        apply: |vector, inputs, out| vector.add(&inputs.a, &inputs.b, out),
        arkworks: Some(|host, out| pointwise(&host.a, &host.b, out, |a, b| a + b)),
        wrong: |host, out| host.wrong(out, |i, out| out == host.a[i] + host.b[i]),
    },
    Operation {
        name: "mul",
        cost: (1.0, 3.0),
        apply: |vector, inputs, out| vector.mul(&inputs.a, &inputs.b, out),
        arkworks: Some(|host, out| pointwise(&host.a, &host.b, out, |a, b| a * b)),
        wrong: |host, out| host.wrong(out, |i, out| out == host.a[i] * host.b[i]),
    },
    Operation {
        name: "batch-inverse",
        cost: (3.0, 2.0),
        apply: |vector, inputs, out| vector.inverse(&inputs.a, out),
        arkworks: Some(|host, out| {
            out.copy_from_slice(&host.a);
            ark_ff::batch_inversion(out);
        }),
        wrong: |host, out| {
            host.wrong(out, |i, out| if host.a[i].is_zero() { out.is_zero() } else { host.a[i] * out == Fr::ONE })
        },
    },
    Operation {
        name: "sum-of-expression",
        cost: (1.0, 2.0),
        apply: |vector, inputs, out| {
            let [a, b] = [0, 1].map(Expression::column);
            let columns = [&inputs.a, &inputs.b];
            vector.sum_expression_into(&(&a * &b - &a), &columns, &[], out.view_mut(..1)?)
        },
        arkworks: Some(|host, out| {
            let terms = (&host.a, &host.b).into_par_iter().with_min_len(GRAIN);
            out[0] = terms.map(|(a, b)| *a * b - a).sum();
        }),
        wrong: |host, out| {
            let sum: Fr = (&host.a, &host.b).into_par_iter().map(|(a, b)| *a * b - a).sum();
            (out[0] != sum).then_some(0)
        },
    },
    Operation {
        name: "gather",
        cost: (0.0, 2.0 + INDEX),
        apply: |vector, inputs, out| vector.gather(&inputs.a, &inputs.places, out),
        arkworks: None,
        wrong: |host, out| host.wrong(out, |i, out| out == host.a[host.places[i] as usize]),
    },
    Operation {
        name: "scatter",
        // Indices are read, and the owner of a place is written, made out and read.
        cost: (0.0, 2.0 + 4.0 * INDEX),
        apply: |vector, inputs, out| vector.scatter(&inputs.a, &inputs.places, out),
        arkworks: None,
        wrong: |host, out| host.wrong(&host.a, |i, a| a == out[host.places[i] as usize]),
    },
];

fn run(session: &mut Session, targets: &[Target], options: &Request) {
    for target in targets {
        let info = target.device.info();
        let sizes: &[u32] = match (info.id.kind, options.coverage) {
            _ if info.features.software => &[16],
            (Kind::Cpu, Coverage::Summary) => &[20],
            (_, Coverage::Summary) => &[24],
            // What caches of one core hold, of several, and what memory holds; of a GPU, its cache and memory.
            (Kind::Cpu, _) => &[14, 16, 20],
            _ => &[20, 24],
        };
        for (log_n, operation) in sizes.iter().flat_map(|log_n| OPERATIONS.iter().map(move |op| (*log_n, op))) {
            measure(session, target, operation, log_n);
            if options.peers
                && info.id.kind == Kind::Cpu
                && let Some(work) = operation.arkworks
            {
                arkworks(session, target, operation, work, log_n);
            }
        }
    }
}

impl Operation {
    fn work(&self, elements: usize) -> Work {
        let (multiplications, passes) = self.cost;
        let bytes = <Mont<Fr> as evariste::backend::Element>::BYTES as f64;
        Work { multiplications: multiplications * elements as f64, bytes: passes * bytes * elements as f64 }
    }
}

fn measure(session: &mut Session, target: &Target, operation: &Operation, log_n: u32) {
    let elements = 1 << log_n;
    let case = Case {
        name: format!("bls12-381-fr/{}/device", operation.name),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(operation.work(elements))),
    };
    session.measure(case, |budget| {
        let device = &target.device;
        let (host, vector) = (Host::new(elements), Vector::<Fr>::new(device));
        let inputs = host.upload(device)?;
        let mut out = device.zeros(elements)?;
        let before = device.stats().launches;
        (operation.apply)(&vector, &inputs, &mut out)?;
        let launches = device.stats().launches - before;
        check(operation, &host, &out.to_vec()?)?;
        let timing =
            budget.time_queued(|| Ok((operation.apply)(&vector, &inputs, &mut out)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("arkworks, all of 2^{log_n} outputs")))
    });
}

fn check(operation: &Operation, host: &Host, out: &[Fr]) -> Result<()> {
    let wrong = (operation.wrong)(host, out);
    ensure!(wrong.is_none(), "output {} is wrong", wrong.unwrap_or_default());
    Ok(())
}

/// An operation on vectors by `ark_ff`, on all cores.
fn arkworks(session: &mut Session, target: &Target, operation: &Operation, work: fn(&Host, &mut [Fr]), log_n: u32) {
    let elements = 1 << log_n;
    let case = Case {
        name: format!("bls12-381-fr/{}/host", operation.name),
        device: "cpu".into(),
        peer: Some("arkworks"),
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(operation.work(elements))),
    };
    session.measure(case, |budget| {
        let host = Host::new(elements);
        let mut out = vec![Fr::ZERO; elements];
        let run = || {
            work(&host, &mut out);
            Ok(())
        };
        // Batched as ours is, so that both have the same share of what a run costs.
        let timing = budget.time_queued(run, || Ok(()))?;
        check(operation, &host, &out)?;
        Ok((timing, None, format!("itself, all of 2^{log_n} outputs")))
    });
}

/// Elements that one thread takes at least.
const GRAIN: usize = 1 << 10;

fn pointwise(a: &[Fr], b: &[Fr], out: &mut [Fr], f: impl Fn(Fr, Fr) -> Fr + Sync) {
    (a, b, out).into_par_iter().with_min_len(GRAIN).for_each(|(a, b, out)| *out = f(*a, *b));
}
