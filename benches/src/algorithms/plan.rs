//! How long it takes to make a plan for the first time, and with its kernels in the cache.
//!
//! Each plan is made by a process of its own, with all caches in a fresh folder: Evariste's, and those of the drivers.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command, ExitCode},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use ark_bls12_381::Fr;
use clap::Args;
use evariste::backend::{CACHE_VARIABLE, Device, DeviceId};
use evariste::ntt::Ntt;
use evariste_machine::process::captured;
use serde::{Deserialize, Serialize};

use crate::{
    session::{self, Algorithm, Case, Session},
    target::Target,
    timing::{Budget, Timing},
};

/// Making a plan, with cold and with warm caches.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "ntt",
    headlines: &[],
    budget: |request| Budget::of(request.coverage),
    run: |session, targets, _| targets.iter().for_each(|target| run(session, target)),
    is_too_large: session::is_too_large,
};

/// The hidden command that makes one plan.
pub(crate) const COMMAND: &str = "make-plan";

/// log₂ of the size of the plan.
const LOG_N: u32 = 20;

/// Where drivers keep what they compiled: NVIDIA's for Vulkan and for CUDA, and Mesa's.
const DRIVER_CACHES: [&str; 3] = ["__GL_SHADER_DISK_CACHE_PATH", "CUDA_CACHE_PATH", "MESA_SHADER_CACHE_DIR"];

#[derive(Args, Debug)]
pub(crate) struct Options {
    #[arg(long)]
    device: DeviceId,
    #[arg(long)]
    log_n: u32,
}

/// What the process tells.
#[derive(Debug, Serialize, Deserialize)]
struct Made {
    seconds: f64,
    compiled: u64,
    cache_hits: u64,
}

/// Makes one plan and tells how long that took, with the device open before.
pub(crate) fn child(options: &Options) -> Result<ExitCode> {
    let device = Device::open(options.device)?;
    let start = Instant::now();
    let plan = Ntt::<Fr>::new(&device, options.log_n)?;
    device.sync()?;
    let seconds = start.elapsed().as_secs_f64();
    drop(plan);
    let stats = device.stats();
    println!("{}", serde_json::to_string(&Made { seconds, compiled: stats.compiled, cache_hits: stats.cache_hits })?);
    Ok(ExitCode::SUCCESS)
}

/// Measures a device that has compiled kernels before; others have nothing to compile.
fn run(session: &mut Session, target: &Target) {
    let stats = target.device.stats();
    if stats.compiled + stats.cache_hits == 0 {
        return;
    }
    let folder = Scratch::new();
    for (name, cached) in [("cold", false), ("cached", true)] {
        let case = Case {
            name: format!("bls12-381-fr/plan/{name}"),
            device: target.device.info().id.to_string(),
            peer: None,
            log_n: LOG_N,
            elements: None,
            floor: None,
        };
        session.measure(case, |_| {
            let made = in_process(target.device.info().id, &folder.0)?;
            let time = Duration::from_secs_f64(made.seconds);
            let Made { compiled, cache_hits, .. } = made;
            let wrong = if cached { compiled > 0 } else { cache_hits > 0 };
            anyhow::ensure!(!wrong, "{compiled} kernels compiled, {cache_hits} from the cache");
            let checked = format!("{compiled} kernels compiled, {cache_hits} from the cache");
            Ok((Timing::of(vec![time], 1), None, checked))
        });
    }
}

fn in_process(device: DeviceId, folder: &Path) -> Result<Made> {
    let mut command = Command::new(env::current_exe().context("the path of this program")?);
    command.arg(COMMAND).args(["--device", &device.to_string(), "--log-n", &LOG_N.to_string()]);
    command.env(CACHE_VARIABLE, folder.join("kernels")).envs(DRIVER_CACHES.map(|name| (name, folder)));
    Ok(serde_json::from_str(&captured(&mut command)?)?)
}

/// A folder that goes away.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        Self(env::temp_dir().join(format!("evariste-bench-{}", process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing is lost if a temporary folder stays.
        let _ = fs::remove_dir_all(&self.0);
    }
}
