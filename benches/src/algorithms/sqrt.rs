//! Square roots, each squared again, and points from their encodings, which are known multiples of the generator.

mod matrices;

use std::collections::BTreeSet;

use anyhow::{Error, Result, ensure};
use ark_bls12_381::{Fq, Fq2, Fr, g1, g2};
use ark_ec::short_weierstrass::Affine;
use ark_ff::Field;
use ark_serialize::CanonicalSerialize;
use evariste::backend::{Device, Element, Kind};
use evariste::curve::{AffinePoint, DeviceCurve};
use evariste::field::{DeviceField, Mont, small};
use evariste::sqrt::{
    self as sqrt, Check, Decompress, DecompressConfig, Encoding, Method, NthRoot, PointCheck, PointError, RootChoice,
    RootField, Sqrt, SqrtConfig, reference,
};
use rayon::prelude::*;

use crate::{
    ALL,
    coverage::Coverage,
    input,
    limits::Work,
    request::Request,
    session::{Algorithm, Case, Headline, Session, is_too_large_for_device},
    sizes::Sizes,
    target::Target,
    timing::Budget,
};

/// Roots of each class of prime by each method, and points with the check of the subgroup and without.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "sqrt",
    headlines: &[
        Headline { case: "bls12-381-fr/roots/device", title: "square roots, BLS12-381 Fr" },
        Headline { case: "bls12-381-fq/roots/device", title: "square roots, BLS12-381 Fq" },
        Headline { case: "bls12-381-g1/decompress/subgroup/device", title: "checked points from bytes, BLS12-381 G1" },
    ],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large,
};

fn is_too_large(error: &Error) -> bool {
    match error.downcast_ref() {
        Some(sqrt::Error::Device(error)) => is_too_large_for_device(error),
        _ => crate::session::is_too_large(error),
    }
}

/// Methods that are compared over one prime. The best one comes without a name.
const COMPARED: [(Method, &str); 6] = [
    (Method::Serial, "serial"),
    (Method::PowerMatrix, "power-matrix"),
    (Method::NeededColumns, "needed-columns"),
    (Method::Warp, "warp"),
    (Method::Sze, "sze"),
    (Method::Cipolla, "cipolla"),
];

/// Points whose encodings are repeated: making them takes the host a while.
const DISTINCT: usize = 1 << 12;

/// log₂ of the most elements that peers on the processor work on.
const PEER_SIZE: u32 = 14;

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    let mut all = Vec::new();
    for target in targets {
        let sizes = sizes(target, request);
        all.extend(sizes.iter().map(|log_n| (*log_n).min(PEER_SIZE)));
        for log_n in sizes {
            roots::<Fr>(session, target, "bls12-381-fr", log_n, None);
            roots::<Fq>(session, target, "bls12-381-fq", log_n, None);
            points::<g1::Config>(session, target, "bls12-381-g1", log_n, Check::Subgroup, false);
            if !ALL || request.coverage == Coverage::Summary {
                continue;
            }
            roots::<Fq2>(session, target, "bls12-381-fq2", log_n, None);
            roots::<ark_bn254::Fq>(session, target, "bn254-fq", log_n, None);
            roots::<ark_bn254::Fr>(session, target, "bn254-fr", log_n, None);
            #[cfg(feature = "all")]
            roots::<ark_pallas::Fq>(session, target, "pallas-fq", log_n, None);
            #[cfg(feature = "all")]
            roots::<ark_pallas::Fr>(session, target, "vesta-fq", log_n, None);
            roots::<small::Goldilocks>(session, target, "goldilocks", log_n, None);
            roots::<small::BabyBear>(session, target, "baby-bear", log_n, None);
            for compared in COMPARED {
                roots::<small::BabyBear>(session, target, "baby-bear", log_n, Some(compared));
                roots::<small::Goldilocks>(session, target, "goldilocks", log_n, Some(compared));
                roots::<ark_bn254::Fr>(session, target, "bn254-fr", log_n, Some(compared));
                roots::<Fr>(session, target, "bls12-381-fr", log_n, Some(compared));
            }
            from_host::<small::BabyBear>(session, target, "baby-bear", log_n);
            from_host::<small::Goldilocks>(session, target, "goldilocks", log_n);
            from_host::<ark_bn254::Fr>(session, target, "bn254-fr", log_n);
            from_host::<Fr>(session, target, "bls12-381-fr", log_n);
            cube_roots::<Fr>(session, target, "bls12-381-fr", log_n);
            if log_n == 0 {
                matrices::run::<small::BabyBear>(session, target, "baby-bear");
                matrices::run::<small::Goldilocks>(session, target, "goldilocks");
                matrices::run::<ark_bn254::Fr>(session, target, "bn254-fr");
                matrices::run::<Fr>(session, target, "bls12-381-fr");
            }
            points::<g1::Config>(session, target, "bls12-381-g1", log_n, Check::Curve, false);
            points::<g1::Config>(session, target, "bls12-381-g1", log_n, Check::Subgroup, true);
            points::<g2::Config>(session, target, "bls12-381-g2", log_n, Check::Subgroup, false);
            checked::<g1::Config>(session, target, "bls12-381-g1", log_n);
            checked::<ark_bn254::g2::Config>(session, target, "bn254-g2", log_n);
        }
    }
    if request.peers {
        for log_n in BTreeSet::from_iter(all) {
            arkworks::<Fr>(session, "bls12-381-fr", log_n);
            arkworks::<Fq>(session, "bls12-381-fq", log_n);
            #[cfg(feature = "all")]
            pasta::<ark_pallas::Fq, pasta_curves::Fp>(session, "pallas-fq", log_n);
            #[cfg(feature = "all")]
            pasta::<ark_pallas::Fr, pasta_curves::Fq>(session, "vesta-fq", log_n);
            arkworks_points(session, log_n);
            #[cfg(feature = "blst")]
            blst::measure(session, log_n);
        }
    }
}

/// The sizes asked for; else, and on processors and emulations, smaller ones. One root alone is 2^0.
fn sizes(target: &Target, request: &Request) -> Vec<u32> {
    if let Some(sizes) = &request.log_n {
        return Sizes::union([sizes]);
    }
    let info = target.device.info();
    match (request.coverage, info.id.kind, info.features.software) {
        (_, _, true) => vec![6],
        (Coverage::Summary, Kind::Cpu, _) => vec![14],
        (Coverage::Summary, ..) => vec![20],
        (Coverage::Small, Kind::Cpu, _) => vec![0, 12],
        (Coverage::Small, ..) => vec![0, 16, 20],
        (Coverage::Full, Kind::Cpu, _) => vec![0, 4, 8, 12, 16],
        (Coverage::Full, ..) => vec![0, 4, 8, 12, 16, 20, 24],
    }
}

/// Multiplications in BLS12-381 Fr that take as long as one in `F`.
fn weight<F: DeviceField>() -> f64 {
    (F::LIMBS as f64 / Fr::LIMBS as f64).powi(2)
}

/// Squares in even places, and squares times an element that is none in odd ones: what has a root is known of all.
fn elements<F: RootField + Default>(log_n: u32) -> Vec<F> {
    let mut elements: Vec<F> = input::random(1 << log_n);
    let other = input::random::<F>(64).into_iter().find(|x| x.legendre().is_qnr());
    let factors = [F::ONE, other.unwrap_or(F::ONE)];
    elements.par_iter_mut().enumerate().for_each(|(i, x)| *x = x.square() * factors[i % 2]);
    elements
}

/// Whether element `i` of [`elements`] has a root.
fn is_square<F: RootField>(i: usize, x: &F) -> bool {
    i.is_multiple_of(2) || x.is_zero()
}

fn roots<F: RootField + Default>(
    session: &mut Session,
    target: &Target,
    field: &str,
    log_n: u32,
    compared: Option<(Method, &str)>,
) {
    let elements_count = 1usize << log_n;
    let degree = F::extension_degree() as f64;
    // One exponentiation for each coefficient, by the digits of the prime.
    let bits = f64::from(<F::BasePrimeField as ark_ff::PrimeField>::MODULUS_BIT_SIZE);
    let work = Work {
        multiplications: degree * bits * weight::<F::BasePrimeField>() * elements_count as f64,
        bytes: (2 * 4 * F::LIMBS + 4) as f64 * elements_count as f64,
    };
    let task = compared.map_or_else(|| "roots".into(), |(_, name)| format!("roots/{name}"));
    let described = Case {
        name: format!("{field}/{task}/device"),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements_count),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(described, |budget| {
        let device = &target.device;
        let plan = Sqrt::<F>::with_config(device, SqrtConfig::default().method(compared.map(|(method, _)| method)))?;
        let host = elements::<F>(log_n);
        let a = device.upload::<Mont<F>>(&host)?;
        let (mut out, mut mask) = (device.zeros::<Mont<F>>(host.len())?, device.zeros::<u32>(host.len())?);
        let before = device.stats().launches;
        plan.sqrt(&a, &mut out, &mut mask)?;
        let launches = device.stats().launches - before;
        let (roots, found) = (out.to_vec()?, mask.to_vec()?);
        let wrong = (&host, &roots, &found).into_par_iter().enumerate().find_any(|(i, (x, root, found))| {
            let is_root = root.square() == **x;
            is_root != (**found == 1) || is_root != is_square(*i, *x)
        });
        ensure!(wrong.is_none(), "root {} is wrong", wrong.map_or(0, |(i, _)| i));
        let timing = budget.time_queued(|| Ok(plan.sqrt(&a, &mut out, &mut mask)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("squared, all of 2^{log_n}; {} products each", plan.products())))
    });
}

/// Roots with the way to the device and back; and, beside one of them, one root on one core of the host.
fn from_host<F: RootField + Default>(session: &mut Session, target: &Target, field: &str, log_n: u32) {
    let case = |task: &str| Case {
        name: format!("{field}/{task}/host"),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(1 << log_n),
        floor: None,
    };
    let right = |host: &[F], roots: &[Option<F>]| {
        host.iter().zip(roots).enumerate().all(|(i, (x, root))| match root {
            Some(root) => root.square() == *x && is_square(i, x),
            None => !is_square(i, x),
        })
    };
    session.measure(case("roots"), |budget| {
        let (plan, host) = (Sqrt::<F>::new(&target.device)?, elements::<F>(log_n));
        let before = target.device.stats().launches;
        ensure!(right(&host, &plan.sqrt_host(&host)?), "a root is wrong");
        let launches = target.device.stats().launches - before;
        let timing = budget.time(|| plan.sqrt_host(&host).map(drop).map_err(Error::from))?;
        Ok((timing, Some(launches), format!("squared, all of 2^{log_n}")))
    });
    if log_n > 0 {
        return;
    }
    session.measure(case("roots/one-core"), |budget| {
        let host = elements::<F>(log_n);
        let serial = || host.iter().map(|x| reference::root(*x, RootChoice::Any)).collect::<Vec<_>>();
        ensure!(right(&host, &serial()), "a root is wrong");
        let timing = budget.time(|| {
            std::hint::black_box(serial());
            Ok(())
        })?;
        Ok((timing, None, "squared; arkworks' Tonelli and Shanks on the host, whatever the device".into()))
    });
}

/// Cube roots, raised to the third power again.
fn cube_roots<F: RootField + Default>(session: &mut Session, target: &Target, field: &str, log_n: u32) {
    let bits = f64::from(<F::BasePrimeField as ark_ff::PrimeField>::MODULUS_BIT_SIZE);
    let elements_count = 1usize << log_n;
    let work = Work {
        multiplications: bits * weight::<F::BasePrimeField>() * elements_count as f64,
        bytes: (2 * 4 * F::LIMBS + 4) as f64 * elements_count as f64,
    };
    let described = Case {
        name: format!("{field}/cube-roots/device"),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements_count),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(described, |budget| {
        let (device, plan) = (&target.device, NthRoot::<F>::new(&target.device, 3)?);
        let mut host: Vec<F> = input::random(elements_count);
        host.par_iter_mut().step_by(2).for_each(|x| *x = x.square() * *x);
        let a = device.upload::<Mont<F>>(&host)?;
        let (mut out, mut mask) = (device.zeros::<Mont<F>>(host.len())?, device.zeros::<u32>(host.len())?);
        let before = device.stats().launches;
        plan.nth_root(&a, &mut out, &mut mask)?;
        let launches = device.stats().launches - before;
        let (roots, found) = (out.to_vec()?, mask.to_vec()?);
        let wrong = (&host, &roots, &found).into_par_iter().enumerate().find_any(|(i, (x, root, found))| {
            let is_root = root.square() * **root == **x;
            is_root != (**found == 1) || (i.is_multiple_of(2) && !is_root)
        });
        ensure!(wrong.is_none(), "root {} is wrong", wrong.map_or(0, |(i, _)| i));
        let timing = budget.time_queued(|| Ok(plan.nth_root(&a, &mut out, &mut mask)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("cubed, all of 2^{log_n}; {} products each", plan.products())))
    });
}

/// Multiples of the generator and their encodings, `DISTINCT` at most and then the same ones again.
fn encoded<C: DeviceCurve>(len: usize) -> Result<(Vec<Affine<C>>, Vec<u8>)> {
    let distinct = len.min(DISTINCT);
    let multiples = input::multiples::<C>(&Device::cpu(), &input::random::<u32>(distinct))?;
    let (points, mut bytes) = (multiples.to_vec()?, Vec::new());
    points.iter().try_for_each(|p| p.serialize_compressed(&mut bytes))?;
    Ok((points.into_iter().cycle().take(len).collect(), bytes.repeat(len / distinct)))
}

fn task(check: Check) -> &'static str {
    if check == Check::Subgroup { "decompress/subgroup" } else { "decompress" }
}

fn points<C: DeviceCurve<BaseField: RootField>>(
    session: &mut Session,
    target: &Target,
    curve: &str,
    log_n: u32,
    check: Check,
    from_host: bool,
) {
    let elements = 1usize << log_n;
    let each = weight::<<C::BaseField as Field>::BasePrimeField>() * C::BaseField::extension_degree() as f64;
    let bits = f64::from(<<C::BaseField as Field>::BasePrimeField as ark_ff::PrimeField>::MODULUS_BIT_SIZE);
    // One exponentiation for each coefficient. The check of the subgroup takes doublings for half of the scalar field's
    // bits.
    let membership = if check == Check::Subgroup { 127.0 * 8.0 } else { 0.0 };
    let work = Work {
        multiplications: each * (bits + membership) * elements as f64,
        bytes: 3.0 * 4.0 * C::BaseField::LIMBS as f64 * elements as f64,
    };
    let place = if from_host { "host" } else { "device" };
    let described = Case {
        name: format!("{curve}/{}/{place}", task(check)),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(described, |budget| {
        let device = &target.device;
        let plan = Decompress::<C>::with_config(device, Encoding::Zcash, DecompressConfig::default().check(check))?;
        let (expected, bytes) = encoded::<C>(elements)?;
        let uploaded = device.upload::<u8>(&bytes)?;
        let (mut out, mut status) = (device.zeros::<AffinePoint<C>>(elements)?, device.zeros::<u32>(elements)?);
        let before = device.stats().launches;
        plan.decompress(&uploaded, &mut out, &mut status)?;
        let launches = device.stats().launches - before;
        ensure!(status.to_vec()?.iter().all(|status| *status == 0), "a point is refused");
        ensure!(out.to_vec()? == expected, "a point is wrong");
        let timing = match from_host {
            true => budget.time(|| plan.decompress_host(&bytes).map(drop).map_err(Error::from))?,
            false => {
                budget.time_queued(|| Ok(plan.decompress(&uploaded, &mut out, &mut status)?), || Ok(device.sync()?))?
            }
        };
        Ok((timing, Some(launches), format!("known multiples of the generator, all of 2^{log_n}")))
    });
}

/// Points in affine form, with the check of the subgroup.
fn checked<C: DeviceCurve<BaseField: RootField>>(session: &mut Session, target: &Target, curve: &str, log_n: u32) {
    let elements = 1usize << log_n;
    let each = weight::<<C::BaseField as Field>::BasePrimeField>() * C::BaseField::extension_degree() as f64;
    let work = Work {
        multiplications: each * 127.0 * 8.0 * elements as f64,
        bytes: (AffinePoint::<C>::BYTES * elements) as f64,
    };
    let described = Case {
        name: format!("{curve}/check/subgroup/device"),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(elements),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(described, |budget| {
        let device = &target.device;
        let plan = PointCheck::<C>::new(device, Check::Subgroup)?;
        let (mut host, _) = encoded::<C>(elements)?;
        let good = device.upload::<AffinePoint<C>>(&host)?;
        // One that is off the curve is found.
        let off = Affine::new_unchecked(host[elements / 2].x, host[elements / 2].y + C::BaseField::ONE);
        host[elements / 2] = off;
        let mut points = device.upload::<AffinePoint<C>>(&host)?;
        let wrong = plan.invalid(&mut points)?;
        ensure!(wrong == [(elements / 2, PointError::NotOnCurve)], "{wrong:?} are refused");
        points.copy_from(&good)?;
        let mut status = device.zeros::<u32>(elements)?;
        let before = device.stats().launches;
        plan.check(&mut points, &mut status)?;
        let launches = device.stats().launches - before;
        let timing = budget.time_queued(|| Ok(plan.check(&mut points, &mut status)?), || Ok(device.sync()?))?;
        ensure!(status.to_vec()?.iter().all(|status| *status == 0), "a point is refused");
        Ok((timing, Some(launches), format!("all of 2^{log_n}, and one that is off the curve")))
    });
}

fn peer(name: String, peer: &'static str, log_n: u32) -> Case {
    Case { name, device: "cpu".into(), peer: Some(peer), log_n, elements: Some(1 << log_n), floor: None }
}

/// `ark_ff`'s roots, on all cores.
fn arkworks<F: RootField + Default>(session: &mut Session, field: &str, log_n: u32) {
    session.measure(peer(format!("{field}/roots/host"), "arkworks", log_n), |budget| {
        let host = elements::<F>(log_n);
        let roots = || host.par_iter().map(Field::sqrt).collect::<Vec<_>>();
        let right = (roots(), &host).into_par_iter().enumerate().all(|(i, (root, x))| match root {
            Some(root) => root.square() == *x,
            None => !is_square(i, x),
        });
        ensure!(right, "a root is wrong");
        let timing = budget.time(|| {
            std::hint::black_box(roots());
            Ok(())
        })?;
        Ok((timing, None, format!("squared, all of 2^{log_n}")))
    });
}

/// `pasta_curves`' roots by its tables, on all cores, each compared with ours.
#[cfg(feature = "all")]
fn pasta<F, P>(session: &mut Session, field: &str, log_n: u32)
where
    F: RootField + ark_ff::PrimeField + Default,
    P: pasta_curves::group::ff::PrimeField<Repr = [u8; 32]> + Send + Sync,
{
    use ark_ff::BigInteger;

    session.measure(peer(format!("{field}/roots/host"), "pasta_curves", log_n), |budget| {
        let host = elements::<F>(log_n);
        let theirs = |x: &F| -> Option<P> {
            let mut bytes = [0; 32];
            bytes.iter_mut().zip(x.into_bigint().to_bytes_le()).for_each(|(byte, own)| *byte = own);
            P::from_repr(bytes).into()
        };
        let inputs: Option<Vec<P>> = host.iter().map(theirs).collect();
        let inputs = inputs.ok_or_else(|| anyhow::anyhow!("the fields are not the same"))?;
        let roots = || inputs.par_iter().map(|x| Option::<P>::from(x.sqrt())).collect::<Vec<_>>();
        let ours = Sqrt::<F>::new(&Device::cpu())?.sqrt_host(&host)?;
        let wrong = roots().into_par_iter().zip(&ours).find_any(|(root, own)| match (root, own) {
            (Some(root), Some(own)) => Some(*root) != theirs(own) && Some(*root) != theirs(&-*own),
            (root, own) => root.is_some() || own.is_some(),
        });
        ensure!(wrong.is_none(), "a root differs from ours");
        let timing = budget.time(|| {
            std::hint::black_box(roots());
            Ok(())
        })?;
        Ok((timing, None, format!("ours or their opposites, all of 2^{log_n}")))
    });
}

/// arkworks' own decoding with its check of the subgroup, on all cores.
fn arkworks_points(session: &mut Session, log_n: u32) {
    use ark_serialize::CanonicalDeserialize;

    session.measure(peer("bls12-381-g1/decompress/subgroup/host".into(), "arkworks", log_n), |budget| {
        let (expected, bytes) = encoded::<g1::Config>(1 << log_n)?;
        let each = bytes.len() >> log_n;
        let decode = || bytes.par_chunks_exact(each).map(Affine::<g1::Config>::deserialize_compressed);
        ensure!(decode().collect::<Result<Vec<_>, _>>()? == expected, "a point is wrong");
        let timing = budget.time(|| {
            std::hint::black_box(decode().collect::<Result<Vec<_>, _>>()?);
            Ok(())
        })?;
        Ok((timing, None, format!("known multiples of the generator, all of 2^{log_n}")))
    });
}

/// blst's decoding and check of the subgroup, on all cores.
#[cfg(feature = "blst")]
mod blst {
    use ::blst::{BLST_ERROR, blst_p1_affine, blst_p1_affine_in_g1, blst_p1_uncompress};
    use rayon::prelude::*;

    use super::{Session, encoded, ensure, g1, peer};

    pub(super) fn measure(session: &mut Session, log_n: u32) {
        session.measure(peer("bls12-381-g1/decompress/subgroup/host".into(), "blst", log_n), |budget| {
            let (expected, bytes) = encoded::<g1::Config>(1 << log_n)?;
            let each = bytes.len() >> log_n;
            let decode = |bytes: &[u8]| {
                let mut point = blst_p1_affine::default();
                // SAFETY: 48 bytes, and a point of its own.
                let found = unsafe { blst_p1_uncompress(&mut point, bytes.as_ptr()) };
                // SAFETY: a point of the curve.
                (found == BLST_ERROR::BLST_SUCCESS && unsafe { blst_p1_affine_in_g1(&point) }).then_some(point)
            };
            let all = || bytes.par_chunks_exact(each).map(decode).collect::<Option<Vec<_>>>();
            let points = all().unwrap_or_default();
            let same = points.iter().zip(&expected).all(|(own, p)| own.x.l == p.x.0.0 && own.y.l == p.y.0.0);
            ensure!(points.len() == expected.len() && same, "a point is wrong");
            let timing = budget.time(|| {
                std::hint::black_box(all());
                Ok(())
            })?;
            Ok((timing, None, format!("known multiples of the generator, all of 2^{log_n}")))
        });
    }
}
