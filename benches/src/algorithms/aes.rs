//! AES: methods, key sizes and modes on data that lies on the device, and from host slice to host slice.
//!
//! Sizes are in bytes, so that throughput is bytes of plaintext in a second.
//!
//! All methods are measured in CTR and GCM, which share their kernel, and the fastest and the bitsliced one in XTS and
//! CBC, which take two kernels more each. So all cases of an H200 take some two minutes, most of it for what is of 1
//! GiB and more.

#[cfg(feature = "aws-lc")]
mod aws_lc;
mod check;
mod device;
#[cfg(feature = "all")]
mod generate;
mod host;
mod pattern;
mod peers;
mod reference;
#[cfg(feature = "all")]
mod steps;

use evariste::backend::{Device, Kind};
#[cfg(feature = "all")]
pub(crate) use generate::Input;

use crate::{
    coverage::Coverage,
    limits::Work,
    request::Request,
    session::{self, Algorithm, Case, Headline, Session},
    target::Target,
    timing::{Budget, Timing},
};

/// AES in all its modes, where it has hundreds of cases, whose times vary little.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "aes",
    headlines: &[
        Headline { case: "aes-128-ctr/device", title: "AES-128-CTR" },
        Headline { case: "aes-128-ctr-bitsliced/device", title: "AES-128-CTR, constant time" },
        Headline { case: "aes-128-gcm-seal/device", title: "AES-128-GCM, sealing" },
        Headline { case: "aes-128-xts/device", title: "AES-128-XTS" },
    ],
    budget: |_| Budget::brief(),
    run,
    is_too_large,
};

fn is_too_large(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(evariste::aes::Error::Device(error)) => session::is_too_large_for_device(error),
        Some(evariste::aes::Error::Method { .. }) => true,
        _ => session::is_too_large(error),
    }
}

const KEY: [u8; 32] = [0x5a; 32];
const IV: [u8; 16] = [0xa5; 16];
const NONCE: [u8; 12] = [7; 12];

const KEY_BYTES: [usize; 3] = [16, 24, 32];

/// Those that peers are measured with, and ours on one thread beside them.
const PEER_KEY_BYTES: [usize; 2] = [16, 32];

/// Bytes of a sector of XTS.
const SECTOR: usize = 4096;

/// The median, the launches, and what was compared.
type Measured = (Timing, Option<u64>, String);

fn run(session: &mut Session, targets: &[Target], options: &Request) {
    for target in targets {
        let cpu = target.device.info().id.kind == Kind::Cpu;
        for log_n in sizes(&target.device, options) {
            device::run(session, target, log_n, options.coverage);
            host::run(session, target, log_n);
            #[cfg(feature = "all")]
            steps::run(session, target, log_n);
            if cpu && options.peers {
                host::one_thread(session, target, log_n);
                peers::run(session, target, log_n);
            }
        }
    }
}

/// log₂ of the bytes: the ladder from 1 KiB to 1 GiB, and 4 GiB where that takes no time, each four times the last.
fn sizes(device: &Device, options: &Request) -> Vec<u32> {
    let info = device.info();
    match (options.coverage, info.id.kind) {
        _ if options.log_n.is_some() => {
            (10..=32).filter(|n| options.log_n.as_ref().is_some_and(|s| s.contains(*n))).collect()
        }
        (Coverage::Summary, Kind::Cpu) => vec![24],
        (Coverage::Summary, _) if info.features.software => vec![16],
        (Coverage::Summary, _) => vec![28],
        _ if info.features.software => vec![10, 16, 20],
        (_, Kind::Cpu) => (10..=30).step_by(2).collect(),
        (Coverage::Small, _) => vec![10, 16, 20, 24, 28],
        (Coverage::Full, _) => (10..=32).step_by(2).collect(),
    }
}

fn case(target: &Target, name: String, log_n: u32) -> Case {
    let bytes = 1_usize << log_n;
    Case {
        name,
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(bytes),
        floor: Some(target.limits.floor(Work { multiplications: 0.0, bytes: 2.0 * bytes as f64 })),
    }
}
