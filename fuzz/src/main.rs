//! Gives each fuzz target its time, on stable Rust. Each runs in a process of its own, so that an input that ends or
//! hangs it is found as well.

use std::{
    collections::VecDeque,
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use clap::Parser;
use evariste_fuzz::{TARGETS, Target};

/// How long one input may take before its target counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of an input at most.
const MAX_BYTES: usize = 1 << 12;

#[derive(Debug, Parser)]
#[command(about = "Runs fuzz targets; the same seed gives the same inputs in the same order")]
struct Options {
    /// Seconds for each target.
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// Where the random numbers start.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// A target to run; may be repeated. All of them unless given.
    #[arg(long, value_name = "T")]
    target: Vec<String>,
    /// Targets that run at a time.
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// Runs the one target named on this input only.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Runs the one target named in this process.
    #[arg(long, hide = true)]
    here: bool,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let known = |name: &String| {
        let target = TARGETS.iter().find(|target| target.name == name);
        target.with_context(|| format!("there is no target {name}, there are {}", TARGETS.map(|t| t.name).join(", ")))
    };
    let mut targets = options.target.iter().map(known).collect::<Result<Vec<_>>>()?;
    if let Some(file) = &options.replay {
        let [target] = targets[..] else { bail!("--replay needs one --target") };
        (target.run)(&fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?);
        return Ok(ExitCode::SUCCESS);
    }
    if options.here {
        let [target] = targets[..] else { bail!("--here needs one --target") };
        return work(target, &options);
    }
    if targets.is_empty() {
        targets = TARGETS.iter().collect();
    }
    let total = targets.len();
    let failed = supervise(targets.into(), &options)?;
    println!("{} passed, {failed} failed", total - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where the input is that a target works on.
fn artifact(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts").join(target.name).join("input")
}

/// Runs the targets in processes of their own, and gives how many failed.
fn supervise(mut waiting: VecDeque<&'static Target>, options: &Options) -> Result<usize> {
    let program = env::current_exe().context("this program has no path")?;
    let (mut running, mut failed) = (Vec::<(&Target, Child)>::new(), 0);
    println!("seed {}, {} s for each target", options.seed, options.seconds);
    while !waiting.is_empty() || !running.is_empty() {
        while running.len() < options.jobs.max(1)
            && let Some(target) = waiting.pop_front()
        {
            // What a run that was stopped left there would look like an input that hangs.
            let _ = fs::remove_file(artifact(target));
            let mut command = Command::new(&program);
            command.args(["--here", "--target", target.name]);
            command.args(["--seed", &options.seed.to_string(), "--seconds", &options.seconds.to_string()]);
            running.push((target, command.spawn().context("this program cannot be started again")?));
        }
        thread::sleep(Duration::from_millis(100));
        let mut still = Vec::new();
        for (target, mut child) in running {
            let hangs = is_stale(&artifact(target));
            if hangs {
                child.kill().context("a target that hangs cannot be ended")?;
            }
            match child.try_wait().context("a target is lost")? {
                None if !hangs => still.push((target, child)),
                Some(status) if status.success() => {}
                status => {
                    let why = match status.filter(|_| !hangs) {
                        Some(status) => status.to_string(),
                        None => format!("it takes over {PATIENCE:?}"),
                    };
                    let input = keep(&artifact(target))?;
                    println!("{}: FAILED: {why}; again by --target {0} --replay {}", target.name, input.display());
                    failed += 1;
                }
            }
        }
        running = still;
    }
    Ok(failed)
}

/// Gives an input that a target failed with the name of its contents.
fn keep(input: &Path) -> Result<PathBuf> {
    let data = fs::read(input).with_context(|| format!("{} cannot be read", input.display()))?;
    let kept = input.with_file_name(format!("crash-{}", &blake3::hash(&data).to_hex()[..16]));
    fs::rename(input, &kept).with_context(|| format!("{} cannot be renamed", input.display()))?;
    Ok(kept)
}

/// Whether a target has worked on one input for too long.
fn is_stale(input: &Path) -> bool {
    let written = input.metadata().and_then(|metadata| metadata.modified());
    written.ok().and_then(|time| time.elapsed().ok()).is_some_and(|age| age > PATIENCE)
}

/// Runs a target until its time is over. A panic ends this process, with the input left in its file.
fn work(target: &Target, options: &Options) -> Result<ExitCode> {
    let input = artifact(target);
    let folder = input.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let (start, mut cases) = (Instant::now(), 0_u64);
    while start.elapsed() < Duration::from_secs(options.seconds) {
        let data = case(target, options.seed, cases);
        fs::write(&input, &data).with_context(|| format!("{} cannot be written", input.display()))?;
        (target.run)(&data);
        cases += 1;
    }
    fs::remove_file(&input).context("an input cannot be removed")?;
    println!("{}: {cases} inputs in {:.0?}", target.name, start.elapsed());
    Ok(ExitCode::SUCCESS)
}

/// Input number `number`.
fn case(target: &Target, seed: u64, number: u64) -> Vec<u8> {
    let mut hasher = DefaultHasher::new();
    (target.name, seed, number).hash(&mut hasher);
    let mut rng = StdRng::seed_from_u64(hasher.finish());
    let mut data = match target.seeds {
        [] => random(&mut rng),
        _ if rng.gen_ratio(1, 8) => random(&mut rng),
        seeds => seeds[rng.gen_range(0..seeds.len())].to_vec(),
    };
    for _ in 0..rng.gen_range(0..6) {
        mutate(&mut data, &mut rng, target);
    }
    data.truncate(MAX_BYTES);
    data
}

/// Random bytes, short ones more often, and in one of four with many zeros: small numbers for what reads them.
fn random(rng: &mut StdRng) -> Vec<u8> {
    let bits = rng.gen_range(0..=MAX_BYTES.ilog2());
    let len = rng.gen_range(0..=1_usize << bits);
    let sparse = rng.gen_ratio(1, 4);
    (0..len).map(|_| if sparse && rng.gen_ratio(2, 3) { 0 } else { rng.r#gen() }).collect()
}

fn mutate(data: &mut Vec<u8>, rng: &mut StdRng, target: &Target) {
    const BYTES: [u8; 12] = [0, 1, 2, 16, 0x7f, 0x80, 0xff, b'0', b'9', b':', b'+', b'-'];
    let at = rng.gen_range(0..=data.len());
    let end = rng.gen_range(at..=data.len());
    match rng.gen_range(0..7) {
        0 if at < data.len() => data[at] ^= 1 << rng.gen_range(0..8),
        1 if at < data.len() => data[at] = BYTES[rng.gen_range(0..BYTES.len())],
        2 => data.insert(at, BYTES[rng.gen_range(0..BYTES.len())]),
        3 => drop(data.drain(at..end)),
        4 => data.extend_from_within(at..end),
        5 => data.truncate(at),
        _ => {
            let other = target.seeds.get(rng.gen_range(0..=target.seeds.len())).copied().unwrap_or(&[0; 16]);
            data.splice(at..end, other.iter().copied());
        }
    }
}
