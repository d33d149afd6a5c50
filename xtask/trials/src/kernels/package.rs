//! `xtask kernels --package`: the kernels of usual plans compiled ahead of time, in one archive.
//!
//! Which kernels these are is not listed: plans are made, on devices that compute nothing and say of themselves what
//! usual GPUs do, and what the plans ask for is what is compiled. So an archive has what a plan of the same
//! configuration asks for on such a GPU.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    ops::RangeInclusive,
    path::Path,
    process::{self, ExitCode},
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use anyhow::{Context, Result, anyhow, ensure};
use ark_ec::{AffineRepr, short_weierstrass::Affine};
use ark_ff::FftField;
use brotli::enc::BrotliEncoderParams;
use evariste_aes::{Aes, KeySize, Method};
use evariste_backend::{
    Device, DeviceId, DeviceInfo, Features, Kind, Limits,
    archive::{self, Archive, Entry, Group, Target},
    author::KernelSpec,
    nvrtc,
};
use evariste_conformance::asked_for;
use evariste_field::{DeviceField, DevicePrimeField, Expression, Vector, small};
use evariste_machine::table::Table;
use evariste_msm::{Msm, MsmConfig, MsmCurve, Precompute};
use evariste_ntt::Ntt;
use evariste_primitives::RadixSort;
use evariste_sumcheck::{Statement, Sumcheck, Weight};
use rayon::prelude::*;

/// The file that is made.
const FILE: &str = "kernels.archive";

/// Where the crate that is published has it.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/kernels");

/// Bytes that a crate may have where crates are published, less what its other files take.
const MOST_BYTES: usize = 10_000_000 - 50_000;

/// What code is made for unless the user says otherwise: machine code for the generations of data centres and of
/// desktops, which later GPUs of a generation run too, and PTX for all others.
const TARGETS: [Target; 5] =
    [Target::Machine(80), Target::Machine(90), Target::Machine(100), Target::Machine(120), Target::Ptx(75)];

/// log₂ of transforms: those of most provers. With 2^24 an archive is larger than a crate may be.
const LOG_N: RangeInclusive<u32> = 16..=23;

/// Bytes of code that are compressed together, before that.
const GROUP_BYTES: usize = 4 << 20;

/// A GPU, as far as plans look at it.
struct Card {
    name: &'static str,
    /// Such as 90 for `sm_90`.
    architecture: u32,
    units: u32,
    workgroup_kib: u32,
    cache_mib: u64,
    memory_gib: u64,
}

const CARDS: [Card; 13] = [
    Card { name: "T4", architecture: 75, units: 40, workgroup_kib: 64, cache_mib: 4, memory_gib: 15 },
    Card { name: "A100", architecture: 80, units: 108, workgroup_kib: 163, cache_mib: 40, memory_gib: 80 },
    Card { name: "A10", architecture: 86, units: 72, workgroup_kib: 99, cache_mib: 6, memory_gib: 22 },
    Card { name: "RTX 3090", architecture: 86, units: 82, workgroup_kib: 99, cache_mib: 6, memory_gib: 24 },
    Card { name: "L4", architecture: 89, units: 58, workgroup_kib: 99, cache_mib: 48, memory_gib: 22 },
    Card { name: "RTX 4090", architecture: 89, units: 128, workgroup_kib: 99, cache_mib: 72, memory_gib: 24 },
    Card { name: "L40S", architecture: 89, units: 142, workgroup_kib: 99, cache_mib: 96, memory_gib: 45 },
    Card { name: "H100 PCIe", architecture: 90, units: 114, workgroup_kib: 227, cache_mib: 50, memory_gib: 79 },
    Card { name: "H100", architecture: 90, units: 132, workgroup_kib: 227, cache_mib: 50, memory_gib: 79 },
    Card { name: "H200", architecture: 90, units: 132, workgroup_kib: 227, cache_mib: 60, memory_gib: 139 },
    Card { name: "B200", architecture: 100, units: 148, workgroup_kib: 227, cache_mib: 126, memory_gib: 178 },
    Card { name: "RTX 5080", architecture: 120, units: 84, workgroup_kib: 99, cache_mib: 64, memory_gib: 15 },
    Card { name: "RTX 5090", architecture: 120, units: 170, workgroup_kib: 99, cache_mib: 96, memory_gib: 31 },
];

impl Card {
    /// Whether code for a target is for it: machine code for its generation. PTX is for cards without machine code,
    /// such as the oldest, and for later ones; the newest known stands for these.
    fn takes(&self, target: Target) -> bool {
        match target {
            Target::Machine(number) => number <= self.architecture && number / 10 == self.architecture / 10,
            Target::Ptx(_) => matches!(self.architecture, 75 | 100),
        }
    }

    fn info(&self) -> DeviceInfo {
        let memory_bytes = self.memory_gib << 30;
        DeviceInfo {
            id: DeviceId { kind: Kind::Cuda, index: 0 },
            name: self.name.to_owned(),
            driver: String::new(),
            architecture: format!("sm_{}", self.architecture),
            uuid: None,
            memory_bytes: Some(memory_bytes),
            parallelism: self.units,
            limits: Limits {
                buffer_bytes: memory_bytes,
                bindings: 64,
                workgroup_bytes: self.workgroup_kib << 10,
                cache_bytes: self.cache_mib << 20,
                workgroup_threads: super::cuda::WORKGROUP_THREADS,
                staging_bytes: 16 << 20,
                loop_iterations: None,
            },
            features: Features { int64: true, queues: true, forward_progress: true, software: false },
        }
    }
}

/// Makes plans, which ask the device for their kernels.
type Plans = fn(&Device) -> Result<()>;

/// What is packaged. Names are those of the summary.
const PLANS: [(&str, Plans); 11] = [
    ("vectors and transforms, bls12-381-fr", transforms::<ark_bls12_381::Fr>),
    ("vectors and transforms, bn254-fr", transforms::<ark_bn254::Fr>),
    ("vectors and transforms, goldilocks", transforms::<small::Goldilocks>),
    ("vectors and transforms, baby-bear", transforms::<small::BabyBear>),
    ("vectors and transforms, koala-bear", transforms::<small::KoalaBear>),
    ("sums, bls12-381", |device| {
        sums::<ark_bls12_381::g1::Config>(device)?;
        sums::<ark_bls12_381::g2::Config>(device)
    }),
    ("sums, bn254", |device| {
        sums::<ark_bn254::g1::Config>(device)?;
        sums::<ark_bn254::g2::Config>(device)
    }),
    ("sumchecks, bls12-381-fr", sumchecks::<ark_bls12_381::Fr>),
    ("sumchecks, bn254-fr", sumchecks::<ark_bn254::Fr>),
    ("sorts", |device| Ok(device.prepare(&RadixSort::kernels_on(device.info())).map(drop)?)),
    ("aes", aes),
];

/// Operations on vectors, and transforms in natural order, in place, on cosets too: what a plan has when it is made.
fn transforms<F: DeviceField + FftField>(device: &Device) -> Result<()> {
    let _ = device.prepare(&Vector::<F>::kernels())?;
    LOG_N.into_iter().try_for_each(|log_n| Ok(Ntt::<F>::new(device, log_n).map(drop)?))
}

/// Sums of points, with tables too.
fn sums<C: MsmCurve>(device: &Device) -> Result<()> {
    let bases = [Affine::<C>::generator(); 4];
    for precompute in [Precompute::None, Precompute::Tables { budget: u64::MAX }] {
        let config = MsmConfig::default().precompute(precompute);
        Msm::<C>::with_config(device, &bases, config)?.prepare()?;
    }
    Ok(())
}

/// Zero-checks of ab − c, and products of two columns.
fn sumchecks<F: DevicePrimeField>(device: &Device) -> Result<()> {
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    let cases = [(&a * &b - &c, Weight::ZeroCheck), (&a * &b, Weight::None)];
    for (expression, weight) in cases {
        let statement = Statement::<F>::new(*LOG_N.end() as usize, &expression)?.weight(weight);
        Sumcheck::<F>::new(device, &expression)?.prepare(&statement)?;
    }
    Ok(())
}

/// All modes, as keys are used that say nothing of methods.
fn aes(device: &Device) -> Result<()> {
    for size in [KeySize::Aes128, KeySize::Aes192, KeySize::Aes256] {
        let _ = device.prepare(&Aes::kernels(device.info(), Method::fastest(device.info()), size)?)?;
    }
    Ok(())
}

/// A kernel that is compiled for a target.
struct Job {
    plans: &'static str,
    target: Target,
    key: [u8; 32],
    spec: KernelSpec,
}

/// Every kernel for these targets, once.
fn jobs(targets: &[Target]) -> Result<Vec<Job>> {
    let (mut jobs, mut seen) = (Vec::new(), BTreeSet::new());
    for card in &CARDS {
        let targets: Vec<Target> = targets.iter().copied().filter(|target| card.takes(*target)).collect();
        if targets.is_empty() {
            continue;
        }
        for (plans, make) in PLANS {
            let specs = asked_for(card.info(), |device| Ok(make(device).map_err(|error| format!("{error:#}"))?));
            let specs = specs.map_err(|error| anyhow!("{plans} on {}: {:?}", card.name, error.message()))?;
            for (spec, target) in specs.iter().flat_map(|spec| targets.iter().map(move |target| (spec, *target))) {
                let key = nvrtc::key(spec, &target.to_string());
                if seen.insert(key) {
                    jobs.push(Job { plans, target, key, spec: spec.clone() });
                }
            }
        }
    }
    // Alike beside alike: that is what compresses well.
    jobs.sort_by(|a, b| {
        let place = |job: &Job| (job.target, job.spec.name, job.spec.variant.clone(), job.key);
        place(a).cmp(&place(b))
    });
    Ok(jobs)
}

/// Makes the archive in a folder. `kept` takes over what an archive there has already.
pub(crate) fn run(architectures: &[String], folder: Option<&Path>, kept: bool) -> Result<ExitCode> {
    let targets = architectures.iter().map(|name| Ok(name.parse()?)).collect::<Result<Vec<Target>>>()?;
    let targets = if targets.is_empty() { TARGETS.to_vec() } else { targets };
    let folder = folder.unwrap_or(Path::new(FOLDER));
    fs::create_dir_all(folder)?;
    let path = folder.join(FILE);
    let (start, (major, minor)) = (Instant::now(), nvrtc::version()?);
    let before = match kept.then(|| fs::read(&path)) {
        Some(Ok(bytes)) => Some(Archive::open(FILE, bytes)?),
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(|| path.display().to_string());
        }
        _ => None,
    };
    let jobs = jobs(&targets)?;
    let lacking = targets.iter().find(|target| jobs.iter().all(|job| job.target != **target));
    ensure!(
        lacking.is_none(),
        "no card that plans are made for takes {}",
        lacking.map(Target::to_string).unwrap_or_default()
    );
    println!("{} kernels for {} targets, by NVRTC {major}.{minor}", jobs.len(), targets.len());

    let done = AtomicUsize::new(0);
    let code: Vec<Vec<u8>> = jobs
        .par_iter()
        .map(|job| {
            let known = before.as_ref().and_then(|archive| archive.get(&job.key));
            let code = match known {
                Some(code) => code,
                None => nvrtc::compile(&job.spec, &job.target.to_string())?.code,
            };
            let done = 1 + done.fetch_add(1, Ordering::Relaxed);
            if done.is_multiple_of(50) {
                println!("{done} of {} in {:.0?}", jobs.len(), start.elapsed());
            }
            Ok(code)
        })
        .collect::<Result<_>>()?;
    let compiled = start.elapsed();

    summarise(&jobs, &code);
    let groups = groups(&jobs, code);
    let packed = archive::pack(&groups, compress)?;
    let archive = Archive::open(FILE, packed.clone())?;
    let mut table = Table::new(1, &["target", "bytes of code", "compressed"]);
    let mut sizes: BTreeMap<Target, [usize; 2]> = BTreeMap::new();
    for (target, bytes, compressed) in archive.groups() {
        let sum = sizes.entry(target).or_default();
        *sum = [sum[0] + bytes, sum[1] + compressed];
    }
    for (target, [bytes, compressed]) in sizes {
        table.row([target.to_string(), bytes.to_string(), compressed.to_string()]);
    }
    println!("{}", table.render());
    // A program that reads the archive meanwhile finds the one before.
    let aside = path.with_extension(format!("archive.{}", process::id()));
    let written = fs::write(&aside, &packed).and_then(|()| fs::rename(&aside, &path));
    written.inspect_err(|_| drop(fs::remove_file(&aside))).with_context(|| path.display().to_string())?;
    println!(
        "{}: {} kernels in {} bytes, compiled in {compiled:.0?}, in all {:.0?}",
        path.display(),
        archive.len(),
        packed.len(),
        start.elapsed()
    );
    // Devices take it all the same.
    ensure!(
        packed.len() <= MOST_BYTES,
        "a crate may have {MOST_BYTES} bytes: choose fewer targets by --arch, with --keep"
    );
    Ok(ExitCode::SUCCESS)
}

/// How many kernels there are of each name in each kind of plan, and the bytes of their code.
fn summarise(jobs: &[Job], code: &[Vec<u8>]) {
    let mut names: BTreeMap<(&str, Target, &str), Vec<usize>> = BTreeMap::new();
    for (job, code) in jobs.iter().zip(code) {
        names.entry((job.plans, job.target, job.spec.name)).or_default().push(code.len());
    }
    let mut table = Table::new(3, &["plans", "target", "kernel", "kernels", "least B", "median B", "most B", "all B"]);
    for ((plans, target, name), mut bytes) in names {
        bytes.sort_unstable();
        let all: usize = bytes.iter().sum();
        let numbers = [bytes.len(), bytes[0], bytes[bytes.len() / 2], bytes[bytes.len() - 1], all];
        let [count, least, median, most, all] = numbers.map(|number| number.to_string());
        table.row([plans.to_owned(), target.to_string(), name.to_owned(), count, least, median, most, all]);
    }
    println!("{}", table.render());
}

fn groups(jobs: &[Job], code: Vec<Vec<u8>>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut bytes = 0;
    for (job, code) in jobs.iter().zip(code) {
        bytes += code.len();
        let fits = bytes <= GROUP_BYTES && groups.last().is_some_and(|group| group.target == job.target);
        if !fits {
            bytes = code.len();
            groups.push(Group { target: job.target, entries: Vec::new() });
        }
        if let Some(group) = groups.last_mut() {
            group.entries.push(Entry { key: job.key, code });
        }
    }
    groups
}

fn compress(mut bytes: &[u8]) -> io::Result<Vec<u8>> {
    let params = BrotliEncoderParams { quality: 11, lgwin: 24, size_hint: bytes.len(), ..Default::default() };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut bytes, &mut compressed, &params)?;
    Ok(compressed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_kernels_of_all_plans() {
        let jobs = jobs(&TARGETS).unwrap();
        let keys: BTreeSet<[u8; 32]> = jobs.iter().map(|job| job.key).collect();
        assert_eq!(keys.len(), jobs.len());
        for (plans, target) in PLANS.iter().flat_map(|(plans, _)| TARGETS.map(|target| (*plans, target))) {
            // What several need is counted where it comes first.
            let count = jobs.iter().filter(|job| job.target == target && job.plans == plans).count();
            assert!(count > 0 || plans == "sorts", "{plans} for {target}");
        }
    }

    #[test]
    fn groups_keep_to_one_target_and_to_their_size() {
        let spec = |name: &'static str| KernelSpec::new::<(), _>(name, "", vec![], |_, _| {}, |_| String::new());
        let job = |i: u8, target| Job { plans: "", target, key: [i; 32], spec: spec("f") };
        let jobs: Vec<Job> =
            (0..8).map(|i| job(i, if i < 5 { Target::Machine(80) } else { Target::Machine(90) })).collect();
        let code = vec![vec![1; GROUP_BYTES / 2]; 8];
        let groups = groups(&jobs, code);
        let sizes: Vec<_> = groups.iter().map(|group| (group.target, group.entries.len())).collect();
        let [old, new] = [80, 90].map(Target::Machine);
        assert_eq!(sizes, [(old, 2), (old, 2), (old, 1), (new, 2), (new, 1)]);
    }
}
