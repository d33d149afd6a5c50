//! `cargo xtask reproduce`: what the founding documents measured, on the devices at hand, beside what they published.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, Result, ensure};
use clap::{Args, builder::PossibleValuesParser};
use evariste_backend::{Device, DeviceId, Kind};
use evariste_report::{
    Figures, Results,
    founding::{Run, SYSTEMS, Scale, System},
};

use crate::{
    ALGORITHMS, aes,
    depth::Depth,
    progress::Progress,
    report::Report,
    session::{Algorithm, Measurements, Selection, Session},
    sizes::Sizes,
    target::Target,
    wanted::Wanted,
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
}

#[derive(Args, Debug)]
pub(crate) struct Input {
    /// Bytes.
    bytes: u64,
    /// Where to.
    file: PathBuf,
}

fn names() -> Vec<&'static str> {
    SYSTEMS.iter().map(|system| system.name).chain([ALL]).collect()
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let is_asked = |system: &&&'static System| options.systems.iter().any(|name| name == ALL || name == system.name);
    let systems: Vec<&'static System> = SYSTEMS.iter().filter(is_asked).copied().collect();
    let mut progress = Progress::new();
    let (targets, missing) = crate::targets(&options.device, Depth::Small, &mut progress)?;
    progress.finish();
    let mut measured = Measurements::default();
    for target in &targets {
        let scale = scale(&target.device, options.small);
        for run in systems.iter().flat_map(|system| (system.runs)(scale)) {
            measure(target, &run, &mut measured)?;
        }
    }

    let report = Report::new(&targets, missing, Depth::Small, measured);
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

/// Adds what a run measures on a device, but what was measured there before.
fn measure(target: &Target, run: &Run, measured: &mut Measurements) -> Result<()> {
    let device = target.device.info().id.to_string();
    let is_new = |case: &&String| {
        let is_it = |log_n: &u32| {
            let known = measured.records.iter();
            known.filter(|record| record.device == device && record.log_n == *log_n).any(|record| record.case == **case)
        };
        !run.sizes.iter().all(is_it)
    };
    let names: Vec<String> = run.cases.iter().filter(is_new).cloned().collect();
    let of_name = |algorithm: &&&'static Algorithm| algorithm.name == run.algorithm;
    let algorithms: Vec<&'static Algorithm> = ALGORITHMS.iter().filter(of_name).copied().collect();
    let sizes: Sizes = run.sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(",").parse()?;
    let wanted = Wanted { depth: Depth::Small, log_n: Some(sizes), peers: false };
    let selection = Selection { names: Some(names), ..Selection::default() };
    let targets = std::slice::from_ref(target);
    let session = Session::run(&algorithms, targets, &wanted, selection, Progress::new());
    let more = session.with_context(|| format!("there is no algorithm {}", run.algorithm))?.results();
    measured.records.extend(more.records);
    measured.skipped.extend(more.skipped);
    measured.failures.extend(more.failures);
    Ok(())
}

/// Writes bytes without a pattern, the same ones each time.
pub(crate) fn input(input: &Input) -> Result<ExitCode> {
    let writing = || format!("writing {}", input.file.display());
    ensure!(!input.file.exists(), "{} is there already", input.file.display());
    let mut file = BufWriter::new(File::create_new(&input.file).with_context(writing)?);
    let mut left = input.bytes;
    while left > 0 {
        let part = left.min(aes::pattern::PERIOD as u64) as usize;
        file.write_all(&aes::pattern::patterned_vec(part)).with_context(writing)?;
        left -= part as u64;
    }
    file.flush().with_context(writing)?;
    Ok(ExitCode::SUCCESS)
}
