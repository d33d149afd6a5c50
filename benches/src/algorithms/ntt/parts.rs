//! Parts of transforms, and what a prover does round them.

use anyhow::{Context, Result, ensure};
use ark_ff::FftField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use evariste::{
    backend::{Buffer, Element, HostBuffer, Secrecy, Transfer},
    field::{DeviceField, Mont},
    ntt::{Ntt, NttConfig, Order, Split, TwiddleTable, Twiddles, reference::root_of_unity, reverse_bits},
};

use super::{Problem, halves};
use crate::{
    limits::Work,
    session::{Case, IN_TURN, Session},
    target::Target,
};

/// What a prover does: tables made anew, data on its way, and seven transforms (three inverse ones, three on a coset
/// and one back). The upload goes on while tables are made, or before.
pub(super) fn seven<F: DeviceField + FftField>(session: &mut Session, target: &Target, problem: &Problem<F>) {
    for overlapped in [true, false] {
        let case = Case {
            name: format!("{}/plan-and-seven{}/host", problem.field, if overlapped { "" } else { IN_TURN }),
            device: target.device.info().id.to_string(),
            peer: None,
            log_n: problem.log_n,
            elements: Some(7 * problem.len()),
            floor: None,
        };
        session.measure(case, |budget| {
            let device = &target.device;
            let bytes = problem.len() * Mont::<F>::BYTES;
            let mut host = device.host_buffer(bytes, Transfer::Both, Secrecy::Public)?;
            Mont::<F>::encode(&problem.input, &mut host);
            let queue = device.queue()?;
            let mut data = device.alloc::<Mont<F>>(problem.len())?;
            let work = |host: HostBuffer, data: &mut Buffer<Mont<F>>| {
                let uploading = queue.write_pinned(&mut *data, host)?;
                if !overlapped {
                    device.sync()?;
                }
                let ntt = Ntt::<F>::new(device, problem.log_n)?;
                if !overlapped {
                    device.sync()?;
                }
                let host = uploading.wait()?;
                for _ in 0..3 {
                    ntt.inverse(&mut *data)?;
                    ntt.coset(F::GENERATOR).forward(&mut *data)?;
                }
                ntt.coset(F::GENERATOR).inverse(data)?;
                device.sync()?;
                anyhow::Ok(host)
            };
            let mut host = Some(work(host, &mut data)?);
            // Here, as what memory holds when it comes back is unspecified: later iterations may begin with anything.
            ensure!(data.to_vec()? == seven_by_arkworks(problem)?, "the seven transforms are wrong");
            let turn = || {
                host = host.take().map(|host| work(host, &mut data)).transpose()?;
                Ok(())
            };
            Ok((budget.time(turn)?, None, format!("ark-poly, all of 2^{} outputs", problem.log_n)))
        });
    }
}

/// The transforms of [`seven`] by `ark_poly`.
fn seven_by_arkworks<F: DeviceField + FftField>(problem: &Problem<F>) -> Result<Vec<F>> {
    let domain = Radix2EvaluationDomain::<F>::new(problem.len()).context("no domain of this size")?;
    let coset = domain.get_coset(F::GENERATOR).context("no such coset")?;
    let mut x = problem.input.clone();
    // The coset's inverse undoes the last of the three.
    for i in 0..3 {
        domain.ifft_in_place(&mut x);
        if i < 2 {
            coset.fft_in_place(&mut x);
        }
    }
    Ok(x)
}

/// The two parts of [`halves`] where log₂ n is odd: the first round of butterflies with its factors, and the transforms
/// that it leaves, which are squares.
pub(super) fn parts_of_halves<F: DeviceField + FftField>(session: &mut Session, target: &Target, problem: &Problem<F>) {
    if problem.log_n.is_multiple_of(2) {
        return;
    }
    let len = problem.len() as f64;
    let element = Mont::<F>::BYTES as f64;
    let of_round = Work { multiplications: len, bytes: 2.0 * len * element };
    for (part, floor) in [("pre-kernel", Some(of_round)), ("main-kernel", None)] {
        let case = Case {
            name: format!("{}/halves/{part}/device", problem.field),
            device: target.device.info().id.to_string(),
            peer: None,
            log_n: problem.log_n,
            elements: Some(problem.len()),
            floor: floor.map(|work| target.limits.floor(work)),
        };
        session.measure(case, |budget| {
            let device = &target.device;
            let ntt = Ntt::<F>::with_config(device, problem.log_n, halves())?;
            let mut data = device.upload::<Mont<F>>(&problem.input)?;
            let rounds = ntt.transform().halve(&mut data)?;
            let square = NttConfig::default().split(Split::Square);
            let main = Ntt::<F>::with_config(device, problem.log_n - rounds, square)?;
            main.forward(&mut data)?;
            // Output k is one of transform k modulo their number, whose bits are reversed.
            let checked = problem.check(false, Order::Natural, |k| {
                let transform = reverse_bits(k as u32 & ((1 << rounds) - 1), rounds) as usize;
                let at = (transform << (problem.log_n - rounds)) + (k >> rounds);
                let mut element = [F::ZERO];
                data.view(at..=at)?.read(&mut element)?;
                Ok(element[0])
            })?;
            let before = device.stats().launches;
            let work = |data: &mut Buffer<Mont<F>>| -> Result<()> {
                match part {
                    "pre-kernel" => ntt.transform().halve(data).map(|_| ())?,
                    _ => main.forward(data)?,
                }
                Ok(())
            };
            work(&mut data)?;
            let launches = device.stats().launches - before;
            let timing = budget.time_queued(|| work(&mut data), || Ok(device.sync()?))?;
            Ok((timing, Some(launches), format!("{checked}, after both parts")))
        });
    }
}

/// How factors are computed, and what the cases are called.
const METHODS: [(&str, Twiddles); 5] = [
    ("two-powers", Twiddles::TwoPowers),
    ("on-the-fly", Twiddles::OnTheFly),
    ("binary-powers", Twiddles::BinaryPowers),
    ("two-level", Twiddles::TwoLevel),
    ("half-stored", Twiddles::HalfStored),
];

/// All factors between two passes by each method, and nothing else.
pub(super) fn twiddles_alone<F: DeviceField + FftField>(session: &mut Session, target: &Target, problem: &Problem<F>) {
    for (name, method) in METHODS {
        let case = Case {
            name: format!("{}/twiddles-alone/{name}/device", problem.field),
            device: target.device.info().id.to_string(),
            peer: None,
            log_n: problem.log_n,
            elements: Some(problem.len()),
            floor: None,
        };
        session.measure(case, |budget| {
            let (device, log_n) = (&target.device, problem.log_n);
            let table = TwiddleTable::<F>::new(device, log_n, method)?;
            let mut factors = device.zeros::<Mont<F>>(table.size())?;
            table.fill(&mut factors)?;
            let root: F = root_of_unity(log_n).context("no root of this order")?;
            let columns = 1 << log_n.div_ceil(2);
            for &at in problem.places.iter().chain(&[0, problem.len() - 1]) {
                let expected = root.pow([(at / columns * (at % columns)) as u64]);
                ensure!(factors.view(at..=at)?.to_vec()? == [expected], "factor {at} is wrong");
            }
            let timing = budget.time_queued(|| Ok(table.fill(&mut factors)?), || Ok(device.sync()?))?;
            Ok((timing, Some(1), format!("powers, {} of 2^{log_n} factors", problem.places.len() + 2)))
        });
    }
}

/// What has to be done before a transform beside its factors: device memory for the data, and its upload from pinned
/// memory.
pub(super) fn preparation<F: DeviceField + FftField>(session: &mut Session, target: &Target, problem: &Problem<F>) {
    let case = Case {
        name: format!("{}/preparation/pinned", problem.field),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n: problem.log_n,
        elements: Some(problem.len()),
        floor: None,
    };
    session.measure(case, |budget| {
        let device = &target.device;
        let bytes = problem.len() * Mont::<F>::BYTES;
        let mut host = device.host_buffer(bytes, Transfer::Upload, Secrecy::Public)?;
        Mont::<F>::encode(&problem.input, &mut host);
        let prepare = |host: HostBuffer| {
            let mut data = device.alloc::<Mont<F>>(problem.len())?;
            let host = data.write_pinned(host)?.wait()?;
            anyhow::Ok((host, data))
        };
        let (host, data) = prepare(host)?;
        ensure!(data.to_vec()? == *problem.input, "what was uploaded is not the input");
        drop(data);
        let mut host = Some(host);
        let timing = budget.time(|| {
            host = host.take().map(|host| anyhow::Ok(prepare(host)?.0)).transpose()?;
            Ok(())
        })?;
        Ok((timing, None, format!("all of 2^{} elements", problem.log_n)))
    });
}
