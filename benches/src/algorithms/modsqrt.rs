//! Roots modulo primes that are known at run time, from short to long ones.

use anyhow::{Result, ensure};
use crypto_bigint::{
    BoxedUint, Limb, Odd, Resize, Uint,
    modular::{BoxedMontyForm, BoxedMontyParams},
};
use evariste::{
    backend::Kind,
    modsqrt::{Jacobi, ModSqrt, Outcome, limbs, reference},
};
use rayon::prelude::*;

use crate::{
    coverage::Coverage,
    input,
    limits::Work,
    request::Request,
    session::{Algorithm, Case, Headline, Session, is_too_large_for_device},
    sizes::Sizes,
    target::Target,
    timing::Budget,
};

/// Roots modulo primes of 16 to 4096 bits.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "modsqrt",
    headlines: &[Headline {
        case: "mod-1024/roots/device",
        title: "square roots modulo a run-time prime of 1024 bits",
    }],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large: |error| match error.downcast_ref() {
        Some(evariste::modsqrt::Error::Device(error)) => is_too_large_for_device(error),
        _ => error.downcast_ref().is_some_and(is_too_large_for_device),
    },
};

/// A prime, as what is to be subtracted from 2^bits.
#[derive(Clone, Copy, Debug)]
struct Prime {
    name: &'static str,
    bits: u32,
    less: u32,
}

/// One ≡ 3 (mod 4) of each length, and those of other classes for the length of the headline.
const PRIMES: [Prime; 12] = [
    Prime { name: "mod-16", bits: 16, less: 17 },
    Prime { name: "mod-32", bits: 32, less: 5 },
    Prime { name: "mod-64", bits: 64, less: 189 },
    Prime { name: "mod-128", bits: 128, less: 173 },
    Prime { name: "mod-256", bits: 256, less: 189 },
    Prime { name: "mod-512", bits: 512, less: 569 },
    Prime { name: "mod-1024", bits: 1024, less: 105 },
    Prime { name: "mod-1024-5-of-8", bits: 1024, less: 179 },
    Prime { name: "mod-1024-9-of-16", bits: 1024, less: 6615 },
    Prime { name: "mod-1024-17-of-32", bits: 1024, less: 19215 },
    Prime { name: "mod-2048", bits: 2048, less: 14505 },
    Prime { name: "mod-4096", bits: 4096, less: 2549 },
];

/// The one of 1024 bits.
const HEADLINE: Prime = PRIMES[6];

impl Prime {
    fn value(self) -> BoxedUint {
        let precision = 32 * limbs(self.bits) as u32;
        let highest = BoxedUint::max(precision).wrapping_shr_vartime(precision - self.bits);
        highest.wrapping_sub(BoxedUint::from(self.less - 1).resize_unchecked(precision))
    }

    /// log₂ of the elements that take as long as 2^log_n modulo a prime of 1024 bits.
    fn log_n(self, log_n: u32) -> u32 {
        // A root takes the cube of the bits.
        (log_n + 30).saturating_sub(3 * self.bits.ilog2()).clamp(2, 20)
    }
}

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    for target in targets {
        let info = target.device.info();
        let most = match (info.id.kind, request.coverage) {
            _ if info.features.software => 3,
            (Kind::Cpu, _) => CPU_LOG_N,
            (_, Coverage::Summary | Coverage::Small) => 17,
            (_, Coverage::Full) => 18,
        };
        if let Some(sizes) = &request.log_n {
            let sizes = Sizes::union([sizes]);
            for (prime, log_n) in PRIMES.into_iter().flat_map(|prime| sizes.iter().map(move |log_n| (prime, *log_n))) {
                roots(session, target, prime, log_n, false);
                roots(session, target, prime, log_n, true);
                if prime.value().as_words()[0] % 4 == 3 {
                    symbols(session, target, prime, log_n);
                }
            }
            continue;
        }
        for prime in PRIMES {
            roots(session, target, prime, prime.log_n(most), false);
            roots(session, target, prime, prime.log_n(most), true);
            if prime.value().as_words()[0] % 4 == 3 {
                symbols(session, target, prime, most);
            }
        }
        // One root alone.
        roots(session, target, HEADLINE, 0, false);
    }
    if request.peers {
        PRIMES.into_iter().filter(|prime| prime.value().as_words()[0] % 4 == 3).for_each(|prime| peer(session, prime));
        symbols_peer(session);
    }
}

/// log₂ of the elements on the CPU, for a prime of 1024 bits.
const CPU_LOG_N: u32 = 10;

/// Squares of random numbers in even places, and squares times a non-residue in odd ones: what has a root is known of
/// all.
fn values(prime: Prime, len: usize) -> Result<Vec<u32>> {
    let (limbs, params) = (limbs(prime.bits), params(prime)?);
    let mut words: Vec<u32> = input::random(limbs * len);
    let small = |x: u32| BoxedUint::from(x).resize_unchecked(32 * limbs as u32);
    let non_residue = (2..)
        .map(small)
        .find(|x| reference::sqrt(x, &prime.value()).is_none())
        .ok_or_else(|| anyhow::anyhow!("all numbers are squares"))?;
    let factor = BoxedMontyForm::new(non_residue, &params);
    words.par_chunks_exact_mut(limbs).enumerate().for_each(|(i, words)| {
        // The highest bit is 0 and the lowest is 1, so that all are below the prime, and none is 0.
        for (word, low) in words.iter_mut().zip((0..).step_by(32)) {
            let bits = (prime.bits - 1).saturating_sub(low);
            *word &= 1u32.checked_shl(bits).map_or(u32::MAX, |bit| bit - 1);
        }
        words[0] |= 1;
        let square = BoxedMontyForm::new(number(words), &params).square();
        let value = if i % 2 == 0 { square } else { square.mul(&factor) };
        words.iter_mut().zip(value.retrieve().to_le_bytes().chunks_exact(4)).for_each(|(word, bytes)| {
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        });
    });
    Ok(words)
}

fn params(prime: Prime) -> Result<BoxedMontyParams> {
    let odd = Option::<Odd<BoxedUint>>::from(prime.value().to_odd());
    Ok(BoxedMontyParams::new_vartime(odd.ok_or_else(|| anyhow::anyhow!("the prime is even"))?))
}

/// Whether element `i` of [`values`] has this root: its square for those in even places, and none for the others.
fn is_right(i: usize, value: &BoxedUint, root: Option<BoxedUint>, params: &BoxedMontyParams) -> bool {
    match root {
        Some(root) => {
            i.is_multiple_of(2)
                && root < **params.modulus()
                && BoxedMontyForm::new(root, params).square().retrieve() == *value
        }
        None => i % 2 == 1,
    }
}

fn number(limbs: &[u32]) -> BoxedUint {
    let bytes: Vec<u8> = limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect();
    BoxedUint::from_le_slice_truncated(&bytes, 32 * limbs.len() as u32)
}

fn on_device(target: &Target, prime: Prime, what: &str, log_n: u32, work: Work) -> Case {
    Case {
        name: format!("{}/{what}", prime.name),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(1 << log_n),
        floor: Some(target.limits.floor(work)),
    }
}

fn by_crypto_bigint(prime: Prime, what: &str, log_n: u32) -> Case {
    Case {
        name: format!("{}/{what}/host", prime.name),
        device: "cpu".into(),
        peer: Some("crypto-bigint"),
        log_n,
        elements: Some(1 << log_n),
        floor: None,
    }
}

fn roots(session: &mut Session, target: &Target, prime: Prime, log_n: u32, from_host: bool) {
    let (limbs, elements) = (limbs(prime.bits), 1 << log_n);
    // Windows of 4 bits, against multiplications of the limits' field of 8 limbs.
    let each = 1.25 * f64::from(prime.bits) * (limbs as f64 / 8.0).powi(2);
    let work = Work { multiplications: each * elements as f64, bytes: (8 * limbs * elements) as f64 };
    let what = if from_host { "roots/host" } else { "roots/device" };
    session.measure(on_device(target, prime, what, log_n, work), |budget| {
        let (device, params) = (&target.device, params(prime)?);
        let plan = ModSqrt::new(device, &prime.value())?;
        let host = values(prime, elements)?;
        let values = device.upload(&host)?;
        let (mut roots, mut mask) = (device.zeros(host.len())?, device.zeros(elements)?);
        let before = device.stats().launches;
        plan.sqrt(&values, &mut roots, &mut mask)?;
        let launches = device.stats().launches - before;
        let (found, outcomes) = (roots.to_vec()?, mask.to_vec()?);
        let all = (host.par_chunks_exact(limbs), found.par_chunks_exact(limbs), &outcomes).into_par_iter().enumerate();
        let wrong = all.find_any(|(i, (value, root, outcome))| match Outcome::from_mask(**outcome) {
            Some(Outcome::Root) => !is_right(*i, &number(value), Some(number(root)), &params),
            Some(Outcome::NoRoot) => !is_right(*i, &number(value), None, &params),
            _ => true,
        });
        ensure!(wrong.is_none(), "root {} is wrong", wrong.map_or(0, |(i, _)| i));
        let timing = match from_host {
            true => budget.time(|| {
                let values = device.upload(&host)?;
                plan.sqrt(&values, &mut roots, &mut mask)?;
                std::hint::black_box((roots.to_vec()?, mask.to_vec()?));
                Ok(())
            })?,
            false => budget.time_queued(|| Ok(plan.sqrt(&values, &mut roots, &mut mask)?), || Ok(device.sync()?))?,
        };
        Ok((timing, Some(launches), format!("squared, and known to have none, all of 2^{log_n}")))
    });
}

/// Jacobi symbols for the modulus of a prime, whose elements are squares or none as [`values`] makes them.
fn symbols(session: &mut Session, target: &Target, prime: Prime, log_n: u32) {
    let (limbs, elements) = (limbs(prime.bits), 1 << log_n);
    // Four products of a word with each limb for 30 of 2.3 divsteps a bit.
    let each = 4.0 * 2.3 * f64::from(prime.bits) / 30.0 * limbs as f64 / 136.0;
    let work = Work { multiplications: each * elements as f64, bytes: (4 * limbs * elements) as f64 };
    session.measure(on_device(target, prime, "symbols/device", log_n, work), |budget| {
        let device = &target.device;
        let plan = Jacobi::new(device, &prime.value())?;
        let values = device.upload(&values(prime, elements)?)?;
        let mut symbols = device.zeros::<u32>(elements)?;
        let before = device.stats().launches;
        plan.jacobi(&values, &mut symbols)?;
        let launches = device.stats().launches - before;
        let right =
            symbols.to_vec()?.iter().enumerate().all(|(i, symbol)| *symbol == if i % 2 == 0 { 1 } else { u32::MAX });
        ensure!(right, "a symbol is wrong");
        let timing = budget.time_queued(|| Ok(plan.jacobi(&values, &mut symbols)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("squares and products of one with a non-residue, all of 2^{log_n}")))
    });
}

/// Jacobi symbols of crypto-bigint, in variable time, on all cores.
fn symbols_peer(session: &mut Session) {
    const LIMBS: usize = 1024 / Limb::BITS as usize;
    let (prime, log_n) = (HEADLINE, CPU_LOG_N);
    session.measure(by_crypto_bigint(prime, "symbols", log_n), |budget| {
        let fixed = |x: &BoxedUint| Uint::<LIMBS>::from_le_slice(&x.to_le_bytes());
        let modulus = Option::<Odd<Uint<LIMBS>>>::from(fixed(&prime.value()).to_odd());
        let modulus = modulus.ok_or_else(|| anyhow::anyhow!("the modulus is even"))?;
        let host = values(prime, 1 << log_n)?;
        let values: Vec<Uint<LIMBS>> = host.chunks_exact(limbs(prime.bits)).map(|x| fixed(&number(x))).collect();
        let symbols = || values.par_iter().map(|x| i8::from(x.jacobi_symbol_vartime(&modulus))).collect::<Vec<_>>();
        let right = symbols().iter().enumerate().all(|(i, symbol)| *symbol == if i % 2 == 0 { 1 } else { -1 });
        ensure!(right, "a symbol is wrong");
        let timing = budget.time(|| {
            std::hint::black_box(symbols());
            Ok(())
        })?;
        Ok((timing, None, format!("squares and products of one with a non-residue, all of 2^{log_n}")))
    });
}

/// The power (p + 1)/4 by crypto-bigint on all cores, and its square to see whether it is a root.
fn peer(session: &mut Session, prime: Prime) {
    let log_n = prime.log_n(CPU_LOG_N);
    session.measure(by_crypto_bigint(prime, "roots", log_n), |budget| {
        let (p, limbs, params) = (prime.value(), limbs(prime.bits), params(prime)?);
        let exponent = p.wrapping_shr_vartime(2).wrapping_add(BoxedUint::one());
        let values: Vec<BoxedUint> = values(prime, 1 << log_n)?.chunks_exact(limbs).map(number).collect();
        let roots = || -> Vec<Option<BoxedUint>> {
            let root = |value: &BoxedUint| {
                let value = BoxedMontyForm::new(value.clone(), &params);
                let root = value.pow(&exponent);
                (root.square() == value).then(|| root.retrieve())
            };
            values.par_iter().map(root).collect()
        };
        let right = (roots(), &values).into_par_iter().enumerate().all(|(i, (root, x))| is_right(i, x, root, &params));
        ensure!(right, "a root is wrong");
        let timing = budget.time(|| {
            ensure!(roots().len() == values.len(), "roots are missing");
            Ok(())
        })?;
        Ok((timing, None, format!("squared, and known to have none, all of 2^{log_n}")))
    });
}
