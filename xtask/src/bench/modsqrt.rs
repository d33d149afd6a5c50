//! Roots modulo primes that are known at run time.

use anyhow::ensure;
use crypto_bigint::{
    BoxedUint, Odd, Resize,
    modular::{BoxedMontyForm, BoxedMontyParams},
};
use evariste_backend::Kind;
use evariste_sqrt::{
    ModSqrt,
    modular::{Outcome, limbs, reference},
};
use rayon::prelude::*;

use super::{
    depth::Depth,
    input,
    limits::Work,
    session::{Algorithm, Case, Headline, Session, is_too_large_for_device},
    target::Target,
    timing::Budget,
    wanted::Wanted,
};

/// Roots modulo primes of 256 to 4096 bits.
pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "modsqrt",
    headlines: &[Headline {
        case: "mod-1024/roots/device",
        title: "square roots modulo a run-time prime of 1024 bits",
    }],
    budget: |wanted| Budget::of(wanted.depth),
    run,
    is_too_large: |error| match error.downcast_ref() {
        Some(evariste_sqrt::Error::Device(error)) => is_too_large_for_device(error),
        _ => error.downcast_ref().is_some_and(is_too_large_for_device),
    },
};

/// Elements that are checked.
const CHECKED: usize = 4;

/// A prime, as what is to be subtracted from 2^bits.
#[derive(Clone, Copy, Debug)]
struct Prime {
    name: &'static str,
    bits: u32,
    less: u32,
}

/// One ≡ 3 (mod 4) of each length, and those of other classes for the length of the headline.
const PRIMES: [Prime; 8] = [
    Prime { name: "mod-256", bits: 256, less: 189 },
    Prime { name: "mod-512", bits: 512, less: 569 },
    Prime { name: "mod-1024", bits: 1024, less: 105 },
    Prime { name: "mod-1024-5-of-8", bits: 1024, less: 179 },
    Prime { name: "mod-1024-9-of-16", bits: 1024, less: 6615 },
    Prime { name: "mod-1024-17-of-32", bits: 1024, less: 19215 },
    Prime { name: "mod-2048", bits: 2048, less: 14505 },
    Prime { name: "mod-4096", bits: 4096, less: 2549 },
];

impl Prime {
    fn value(self) -> BoxedUint {
        let precision = 32 * limbs(self.bits) as u32;
        BoxedUint::max(precision).wrapping_sub(BoxedUint::from(self.less - 1).resize_unchecked(precision))
    }

    /// log₂ of the elements that take as long as 2^log_n modulo a prime of 1024 bits.
    fn log_n(self, log_n: u32) -> u32 {
        // A root takes the cube of the bits.
        (log_n + 30).saturating_sub(3 * self.bits.ilog2()).clamp(2, 20)
    }
}

fn run(session: &mut Session, targets: &[Target], wanted: &Wanted) {
    for target in targets {
        let info = target.device.info();
        let most = match (info.id.kind, wanted.depth) {
            _ if info.features.software => 3,
            (Kind::Cpu, _) => CPU_LOG_N,
            (_, Depth::Summary | Depth::Small) => 17,
            (_, Depth::Full) => 18,
        };
        for prime in PRIMES {
            roots(session, target, prime, prime.log_n(most));
        }
        // One root alone.
        roots(session, target, PRIMES[2], 0);
    }
    if wanted.peers {
        PRIMES.into_iter().filter(|prime| prime.value().as_words()[0] % 4 == 3).for_each(|prime| peer(session, prime));
    }
}

/// log₂ of the elements on the CPU, for a prime of 1024 bits.
const CPU_LOG_N: u32 = 10;

/// Random words: the highest bit of each element is 0, so that all are below the prime.
fn values(prime: Prime, len: usize) -> Vec<u32> {
    let limbs = limbs(prime.bits);
    let mut words: Vec<u32> = input::random(limbs * len);
    words.chunks_exact_mut(limbs).for_each(|value| value[limbs - 1] >>= 1);
    words
}

fn number(limbs: &[u32]) -> BoxedUint {
    let bytes: Vec<u8> = limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect();
    BoxedUint::from_le_slice_truncated(&bytes, 32 * limbs.len() as u32)
}

fn roots(session: &mut Session, target: &Target, prime: Prime, log_n: u32) {
    let (limbs, elements) = (limbs(prime.bits), 1 << log_n);
    // Windows of 4 bits, against multiplications of the limits' field of 8 limbs.
    let each = 1.25 * f64::from(prime.bits) * (limbs as f64 / 8.0).powi(2);
    let work = Work { multiplications: each * elements as f64, bytes: (8 * limbs * elements) as f64 };
    let case = Case {
        name: format!("{}/roots/device", prime.name),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(case, |budget| {
        let (device, p) = (&target.device, prime.value());
        let plan = ModSqrt::new(device, &p)?;
        let host = values(prime, elements);
        let values = device.upload(&host)?;
        let (mut roots, mut mask) = (device.zeros(host.len())?, device.zeros(elements)?);
        let before = device.stats().launches;
        plan.roots(&values, &mut roots, &mut mask)?;
        let launches = device.stats().launches - before;
        let (found, outcomes) = (roots.to_vec()?, mask.to_vec()?);
        for i in input::places(CHECKED, elements) {
            let place = i * limbs..(i + 1) * limbs;
            let expected = reference::sqrt(&number(&host[place.clone()]), &p);
            let is_root = |root: &BoxedUint| {
                let found = number(&found[place.clone()]);
                found == *root || found == p.wrapping_sub(root)
            };
            let right = match &expected {
                Some(root) => outcomes[i] == Outcome::Root as u32 && is_root(root),
                None => outcomes[i] == Outcome::NoRoot as u32,
            };
            ensure!(right, "root {i} is wrong");
        }
        let timing = budget.time_queued(|| Ok(plan.roots(&values, &mut roots, &mut mask)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("Tonelli and Shanks on the host, {CHECKED} of 2^{log_n}")))
    });
}

/// The power (p + 1)/4 by crypto-bigint on all cores, and its square to see whether it is a root.
fn peer(session: &mut Session, prime: Prime) {
    let log_n = prime.log_n(CPU_LOG_N);
    let case = Case {
        name: format!("{}/roots/host", prime.name),
        device: "cpu".into(),
        peer: Some("crypto-bigint"),
        log_n,
        elements: Some(1 << log_n),
        floor: None,
    };
    session.measure(case, |budget| {
        let (p, limbs) = (prime.value(), limbs(prime.bits));
        let odd = Option::<Odd<BoxedUint>>::from(p.to_odd()).ok_or_else(|| anyhow::anyhow!("the prime is even"))?;
        let params = BoxedMontyParams::new_vartime(odd);
        let exponent = p.wrapping_shr_vartime(2).wrapping_add(BoxedUint::one());
        let values: Vec<BoxedUint> = values(prime, 1 << log_n).chunks_exact(limbs).map(number).collect();
        let roots = || -> Vec<Option<BoxedUint>> {
            let root = |value: &BoxedUint| {
                let value = BoxedMontyForm::new(value.clone(), &params);
                let root = value.pow(&exponent);
                (root.square() == value).then(|| root.retrieve())
            };
            values.par_iter().map(root).collect()
        };
        let found = roots();
        for i in input::places(CHECKED, values.len()) {
            ensure!(found[i].is_some() == reference::sqrt(&values[i], &p).is_some(), "root {i} is wrong");
        }
        let timing = budget.time(|| {
            ensure!(roots().len() == values.len(), "roots are missing");
            Ok(())
        })?;
        Ok((timing, None, format!("Tonelli and Shanks on the host, {CHECKED} of 2^{log_n}")))
    });
}
