//! `xtask bench`: the limits of each device, then every algorithm as a share of them.

mod aes;
mod field;
mod input;
mod limits;
mod ntt;
mod peers;
pub(crate) mod plan;
mod primitives;
mod rates;
mod report;
mod sizes;
mod timing;

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use evariste_backend::{Device, DeviceId, Error};
use serde::Serialize;

use crate::{
    devices::{self, Found},
    machine::{DeviceEntry, Host, commit},
};
use limits::Limits;
use report::{Machine, Report, Session, Settings};
use sizes::Sizes;
use timing::Budget;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// A device to measure: cpu, cuda:N, wgpu:N; may be repeated. Every device found unless given.
    #[arg(long, value_name = "D")]
    device: Vec<DeviceId>,
    /// Algorithms to measure. All unless given.
    #[arg(long, value_name = "A", value_delimiter = ',')]
    only: Vec<Algorithm>,
    /// Only cases whose names contain this; may be repeated.
    #[arg(long, value_name = "TEXT")]
    case: Vec<String>,
    /// log₂ of the sizes, of transforms in elements and of AES in bytes: numbers and ranges such as 16..24, both ends
    /// included, separated by commas.
    #[arg(long, value_name = "A..B")]
    log_n: Option<Sizes>,
    /// Measures peers too, on the CPU: arkworks on all its cores, RustCrypto on one, and so aws-lc if this program is built
    /// with that feature.
    #[arg(long)]
    peers: bool,
    /// How long to measure. AES has hundreds of cases and takes 50 ms for each in both profiles.
    #[arg(long, value_enum, default_value_t = Profile::Quick)]
    profile: Profile,
    /// Writes the results to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Algorithm {
    Ntt,
    Field,
    Aes,
}

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Profile {
    /// Small sizes, 0.3 s a case.
    Quick,
    /// All sizes, 1 s a case.
    Full,
}

/// A device under measurement.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) device: Device,
    pub(crate) limits: Limits,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let Found { devices, missing } = devices::select(&options.device)?;
    for missing in &missing {
        eprintln!("{}: not measured: {}", missing.device, missing.reason);
    }
    let budget = Budget::of(options.profile);
    let mut session = Session::new(budget, options.case.clone());
    let mut targets = Vec::new();
    for device in devices {
        session.progress.step(&format!("{device}: copy bandwidth and multiplication rate"));
        let limits = Limits::measure(&device, &budget).with_context(|| format!("the limits of {device}"))?;
        targets.push(Target { device, limits });
    }

    let wanted = |algorithm| options.only.is_empty() || options.only.contains(&algorithm);
    if wanted(Algorithm::Field) {
        field::run(&mut session, &targets, options);
        rates::run(&mut session, &targets, options.profile);
        primitives::run(&mut session, &targets, options.profile);
    }
    if wanted(Algorithm::Ntt) {
        ntt::run(&mut session, &targets, options);
        for target in &targets {
            plan::run(&mut session, target);
        }
    }
    if wanted(Algorithm::Aes) {
        session.budget = Budget::brief();
        aes::run(&mut session, &targets, options);
    }
    session.progress.finish();

    let ladder = aes::ladder(&session.records);
    let report = Report {
        machine: Machine {
            host: Host::here(),
            devices: targets
                .iter()
                .map(|target| (DeviceEntry::from(target.device.info()), target.limits).into())
                .collect(),
            missing,
        },
        commit: commit(),
        settings: Settings::of(options),
        failures: session.failures,
        skipped: session.skipped,
        ladder,
        records: report::with_shares(report::with_speedups(session.records)),
    };
    println!("{report}");
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&report).context("the results as JSON")?;
        fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
        eprintln!("written to {}", path.display());
    }
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether a case failed only because its data is too large for the device.
fn is_too_large(error: &anyhow::Error) -> bool {
    let device = |error: &Error| matches!(error, Error::OutOfMemory { .. } | Error::TooLarge { .. });
    if let Some(evariste_aes::Error::Device(error)) = error.downcast_ref() {
        return device(error);
    }
    match error.downcast_ref::<evariste_ntt::Error>() {
        Some(evariste_ntt::Error::Device(error)) => device(error),
        Some(error) => matches!(error, evariste_ntt::Error::TooLarge { .. }),
        None => error.downcast_ref().is_some_and(device),
    }
}
