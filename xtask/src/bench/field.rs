//! Vector operations, which stream through memory.

use anyhow::{Result, ensure};
use ark_bls12_381::Fr;
use ark_ff::{AdditiveGroup, Field, Zero};
use evariste_backend::{Buffer, Kind};
use evariste_field::{Mont, Vector};
use rayon::prelude::*;

use super::{
    depth::Depth,
    input,
    limits::Work,
    session::{self, Algorithm, Case, Headline, Session},
    target::Target,
    timing::Budget,
    wanted::Wanted,
};

/// Vector operations.
pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "field",
    headlines: &[
        Headline { case: "bls12-381-fr/mul/device", title: "products of vectors, BLS12-381 Fr" },
        Headline { case: "bls12-381-fr/batch-inverse/device", title: "batch inverse, BLS12-381 Fr" },
    ],
    budget: |wanted| Budget::of(wanted.depth),
    run,
    is_too_large: session::is_too_large,
};

type Apply = fn(&Vector<Fr>, &[Buffer<Mont<Fr>>; 2], &mut Buffer<Mont<Fr>>) -> evariste_backend::Result<()>;

/// One operation: out = a ∘ b.
struct Operation {
    name: &'static str,
    /// Multiplications an element, and elements read and written for each.
    cost: (f64, f64),
    apply: Apply,
    /// The same by arkworks, on all cores.
    arkworks: fn(a: &[Fr], b: &[Fr], out: &mut [Fr]),
    /// Whether an output is right.
    holds: fn(a: Fr, b: Fr, out: Fr) -> bool,
}

const OPERATIONS: [Operation; 3] = [
    Operation {
        name: "add",
        cost: (0.0, 3.0),
        apply: |vector, [a, b], out| vector.add(a, b, out),
        arkworks: |a, b, out| pointwise(a, b, out, |a, b| a + b),
        holds: |a, b, out| out == a + b,
    },
    Operation {
        name: "mul",
        cost: (1.0, 3.0),
        apply: |vector, [a, b], out| vector.mul(a, b, out),
        arkworks: |a, b, out| pointwise(a, b, out, |a, b| a * b),
        holds: |a, b, out| out == a * b,
    },
    Operation {
        name: "batch-inverse",
        cost: (3.0, 2.0),
        apply: |vector, [a, _], out| vector.inverse(a, out),
        arkworks: |a, _, out| {
            out.copy_from_slice(a);
            ark_ff::batch_inversion(out);
        },
        holds: |a, _, out| if a.is_zero() { out.is_zero() } else { a * out == Fr::ONE },
    },
];

fn run(session: &mut Session, targets: &[Target], options: &Wanted) {
    for target in targets {
        let info = target.device.info();
        let sizes: &[u32] = match (info.id.kind, options.depth) {
            _ if info.features.software => &[16],
            (Kind::Cpu, Depth::Summary) => &[20],
            (_, Depth::Summary) => &[24],
            // What caches of one core hold, of several, and what memory holds; of a GPU, its cache and memory.
            (Kind::Cpu, _) => &[14, 16, 20],
            _ => &[20, 24],
        };
        for (log_n, operation) in sizes.iter().flat_map(|log_n| OPERATIONS.iter().map(move |op| (*log_n, op))) {
            measure(session, target, operation, log_n);
            if options.peers && info.id.kind == Kind::Cpu {
                arkworks(session, target, operation, log_n);
            }
        }
    }
}

impl Operation {
    fn work(&self, elements: usize) -> Work {
        let (multiplications, passes) = self.cost;
        let bytes = <Mont<Fr> as evariste_backend::Element>::BYTES as f64;
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
        let mut a = input::random::<Fr>(2 * elements);
        let b = a.split_off(elements);
        let vector = Vector::<Fr>::new(device);
        let inputs = [device.upload::<Mont<Fr>>(&a)?, device.upload(&b)?];
        let mut out = device.zeros(elements)?;
        let before = device.stats().launches;
        (operation.apply)(&vector, &inputs, &mut out)?;
        let launches = device.stats().launches - before;
        check(operation, &a, &b, &out.to_vec()?)?;
        let timing =
            budget.time_queued(|| Ok((operation.apply)(&vector, &inputs, &mut out)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("arkworks, all of 2^{log_n} outputs")))
    });
}

fn check(operation: &Operation, a: &[Fr], b: &[Fr], out: &[Fr]) -> Result<()> {
    let wrong = (a, b, out).into_par_iter().position_any(|(a, b, out)| !(operation.holds)(*a, *b, *out));
    ensure!(wrong.is_none(), "output {} is wrong", wrong.unwrap_or_default());
    Ok(())
}

/// An operation on vectors by `ark_ff`, on all cores.
fn arkworks(session: &mut Session, target: &Target, operation: &Operation, log_n: u32) {
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
        let mut a = input::random::<Fr>(2 * elements);
        let b = a.split_off(elements);
        let mut out = vec![Fr::ZERO; elements];
        let mut work = || {
            (operation.arkworks)(&a, &b, &mut out);
            Ok(())
        };
        // Batched as ours is, so that both have the same share of what a run costs.
        let timing = budget.time_queued(&mut work, || Ok(()))?;
        check(operation, &a, &b, &out)?;
        Ok((timing, None, format!("itself, all of 2^{log_n} outputs")))
    });
}

/// Elements that one thread takes at least.
const GRAIN: usize = 1 << 10;

fn pointwise(a: &[Fr], b: &[Fr], out: &mut [Fr], f: impl Fn(Fr, Fr) -> Fr + Sync) {
    (a, b, out).into_par_iter().with_min_len(GRAIN).for_each(|(a, b, out)| *out = f(*a, *b));
}
