//! Gray codes, which stream through memory.

use anyhow::ensure;
use evariste::{
    backend::Kind,
    gray::{Gray, reference},
};

use crate::{
    input,
    limits::Work,
    request::Request,
    session::{self, Algorithm, Case, Headline, Session},
    target::Target,
    timing::Budget,
};

/// Gray codes.
pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "gray",
    headlines: &[Headline { case: "u32/gray/device", title: "Gray codes" }],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large: session::is_too_large,
};

fn run(session: &mut Session, targets: &[Target], _: &Request) {
    for target in targets {
        let log_n = if target.device.info().id.kind == Kind::Cpu { 20 } else { 24 };
        let elements = 1usize << log_n;
        let case = Case {
            name: "u32/gray/device".into(),
            device: target.device.info().id.to_string(),
            peer: None,
            log_n,
            elements: Some(elements),
            floor: Some(target.limits.floor(Work { multiplications: 0.0, bytes: 8.0 * elements as f64 })),
        };
        session.measure(case, |budget| {
            let (device, gray) = (&target.device, Gray::new(&target.device)?);
            let host: Vec<u32> = input::random(elements);
            let input = device.upload::<u32>(&host)?;
            let mut out = device.alloc(elements)?;
            gray.encode(&input, &mut out)?;
            let right = out.to_vec()?.into_iter().eq(host.iter().copied().map(reference::code));
            ensure!(right, "a code is wrong");
            let timing = budget.time_queued(|| Ok(gray.encode(&input, &mut out)?), || Ok(device.sync()?))?;
            Ok((timing, Some(1), format!("the definition, all of 2^{log_n}")))
        });
    }
}
