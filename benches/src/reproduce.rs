//! `cargo xtask reproduce`: what the founding documents measured, on the devices at hand, beside what they published.

use std::{path::PathBuf, process::ExitCode, slice};

use anyhow::{Context, Result};
use clap::{Args, builder::PossibleValuesParser};
use evariste::backend::{Device, DeviceId, Kind};
use evariste_report::{
    Figures, Profile, Results,
    founding::{Run, SYSTEMS, Scale, System},
};

use crate::{
    algorithms::ALGORITHMS,
    coverage::Coverage,
    progress::Progress,
    report::Report,
    request::Request,
    session::{Algorithm, Measurements, Selection, Session},
    target::Target,
};

/// What stands for all systems.
const ALL: &str = "all";

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// What to reproduce.
    #[arg(required = true, value_name = "SYSTEM", value_parser = PossibleValuesParser::new(names()))]
    systems: Vec<String>,
    /// A device to measure: cpu, cuda:N, wgpu:N; may be repeated. Every device found unless given, without emulations.
    #[arg(long, value_name = "D")]
    device: Vec<DeviceId>,
    /// Measures GPUs at the small sizes too that CPUs and emulations are measured at.
    #[arg(long)]
    small: bool,
    /// Writes the results to a file, from which docs/comparisons.md can be written.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Shows what Nsight Compute counted of each kernel of HyperPlonk's sumcheck: a file that `ncu --csv --page raw`
    /// wrote.
    #[arg(long, value_name = "FILE")]
    ncu: Option<PathBuf>,
}

fn names() -> Vec<&'static str> {
    SYSTEMS.iter().map(|system| system.name).chain([ALL]).collect()
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let is_asked = |system: &&&'static System| options.systems.iter().any(|name| name == ALL || name == system.name);
    let systems: Vec<&'static System> = SYSTEMS.iter().filter(is_asked).copied().collect();
    let mut progress = Progress::new();
    let (targets, missing) = crate::targets(&options.device, Coverage::Small, &mut progress)?;
    progress.finish();
    let mut measured = Measurements::default();
    for target in &targets {
        let scale = scale(&target.device, options.small);
        for run in systems.iter().flat_map(|system| (system.runs)(scale)) {
            measure(target, &run, &mut measured)?;
        }
    }

    let report = Report::new(&targets, missing, Coverage::Small, measured);
    // As a file of them is read.
    let results: Results = serde_json::from_value(serde_json::to_value(&report)?).context("the results as JSON")?;
    for (target, device) in targets.iter().zip(&results.machine.devices) {
        // A GPU may be reached through two backends, by one name.
        let mut results = results.clone();
        results.machine.devices.retain(|other| other.device == device.device);
        for system in &systems {
            let figures = Figures::new(&device.name, [("this run", &results)]);
            println!("{}", system.section(&figures, scale(&target.device, options.small)).text());
        }
    }
    if let Some(path) = &options.ncu {
        // What profiles say is no part of what was measured here: without it the rest holds.
        match Profile::read(path) {
            Ok(profile) => println!("{}", profile.text()),
            Err(error) => println!("no counters of Nsight Compute: {error:#}"),
        }
    }
    results.machine.missing.iter().for_each(|missing| println!("{}: not measured: {}", missing.device, missing.reason));
    results.failures.iter().for_each(|failure| println!("FAILED {failure}"));
    if let Some(path) = &options.json {
        report.write(path)?;
    }
    Ok(if results.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn scale(device: &Device, small: bool) -> Scale {
    let info = device.info();
    match small || info.id.kind == Kind::Cpu || info.features.software {
        true => Scale::Small,
        false => Scale::Source,
    }
}

/// Adds what a run measures on a device, but what was measured there before. A case that the bench does not have is a
/// failure.
fn measure(target: &Target, run: &Run, measured: &mut Measurements) -> Result<()> {
    let device = target.device.info().id.to_string();
    let is_known = |case: &str, log_n: u32| {
        let mut known = measured.records.iter().filter(|record| record.device == device && record.log_n == log_n);
        known.any(|record| record.case == case)
    };
    let is_new = |case: &&String| !run.sizes.iter().all(|log_n| is_known(case, *log_n));
    let names: Vec<String> = run.cases.iter().filter(is_new).cloned().collect();
    let of_name = |algorithm: &&&'static Algorithm| algorithm.name == run.algorithm;
    let algorithms: Vec<&'static Algorithm> = ALGORITHMS.iter().filter(of_name).copied().collect();
    let request = Request { coverage: Coverage::Small, log_n: Some(run.sizes.clone().into()), peers: false };
    let selection = Selection { names: Some(names.clone()), ..Selection::default() };
    let session = Session::run(&algorithms, slice::from_ref(target), &request, selection, Progress::new());
    let Measurements { records, skipped, failures } =
        session.with_context(|| format!("there is no algorithm {}", run.algorithm))?.results();
    let is_told = |name: &&String| {
        records.iter().any(|record| record.case == **name)
            || skipped.iter().any(|skipped| skipped.case == **name)
            || failures.iter().any(|failure| failure.contains(name.as_str()))
    };
    let none = |name: &String| format!("{device}: the bench has no case {name} of {}", run.algorithm);
    measured.failures.extend(names.iter().filter(|name| !is_told(name)).map(none));
    measured.records.extend(records);
    measured.skipped.extend(skipped);
    measured.failures.extend(failures);
    Ok(())
}
