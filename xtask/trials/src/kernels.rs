//! `xtask kernels`: every kernel over every field, compiled for every target. No GPU is needed.
//!
//! A kernel that trials launch is compiled as there, without a line here. What stands here are more fields, curves and
//! choices.
//!
//! A kernel's other choices, such as the size of a pass or where its factors come from, are compiled over one field,
//! one after the other and not all with each other: over fields that have an arithmetic of their own they would be the
//! same text again.

mod cuda;
mod package;
mod wgsl;

use std::{
    collections::BTreeSet,
    fmt,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use ark_ff::FftField;
use clap::Args;
use evariste_aes::{Aes, KeySize, Method};
use evariste_backend::{Device, DeviceInfo, Features, Kind, author::KernelSpec, nvrtc};
use evariste_curve::{PointSum, Points};
use evariste_field::{DeviceField, Expression, FieldSum, SparseMatrix, Vector, small};
use evariste_machine::table::Table;
use evariste_microbench::{AddChain, MulChain, Place, Products, Sharing, Step};
use evariste_modsqrt::{Jacobi, ModSqrt};
use evariste_msm::{Msm, MsmCurve};
use evariste_ntt::{Ntt, NttConfig, Split, TwiddleTable, Twiddles};
use evariste_primitives::SegmentedSum;
use evariste_sqrt::{Decompress, Encoding, HashToCurve, MapToCurve, RootField, Sqrt, SqrtConfig};
use libtest_mimic::Trial;
use rayon::prelude::*;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Prints failures only.
    #[arg(long)]
    check: bool,
    /// A CUDA architecture such as sm_90, for all fields; may be repeated. Unless given, sm_90 for all fields, and some
    /// from sm_75 to sm_120 for the first.
    #[arg(long, value_name = "SM")]
    arch: Vec<String>,
    /// Makes an archive of the kernels of usual plans instead, compiled ahead of time: kernels.archive in
    /// crates/kernels, or in the folder given by --out. It has machine code for sm_80, sm_90, sm_100 and sm_120, and
    /// PTX for other GPUs, or what --arch says.
    #[arg(long)]
    package: bool,
    /// Where the archive goes.
    #[arg(long, value_name = "DIR", requires = "package")]
    out: Option<PathBuf>,
    /// Takes from an archive that is there already what has not changed, whatever compiler made it.
    #[arg(long, requires = "package")]
    keep: bool,
}

/// A kernel over a field, and what to compile it for.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    field: &'static str,
    spec: KernelSpec,
    target: Target,
    /// Bytes that a workgroup has.
    workgroup_bytes: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Cuda { architecture: String },
    Wgsl { int64: bool },
}

/// What a kernel takes, as far as the compiler tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Takes {
    registers: Option<u32>,
    spill_bytes: Option<u32>,
    shared_bytes: u32,
}

impl Check {
    /// The name of its compiler.
    pub(crate) fn tool(&self) -> &'static str {
        match self.target {
            Target::Cuda { .. } => "nvrtc",
            Target::Wgsl { .. } => "wgsl",
        }
    }

    pub(crate) fn run(&self) -> Result<Takes> {
        match &self.target {
            Target::Cuda { architecture } => cuda::check(&self.spec, architecture, self.workgroup_bytes),
            Target::Wgsl { int64 } => wgsl::check(&self.spec, *int64, self.workgroup_bytes),
        }
    }

    /// A trial that compiles the kernel.
    pub(crate) fn trial(self) -> Trial {
        Trial::test(format!("{}::kernels::{self}", self.tool()), move || {
            self.run().map(drop).map_err(|error| format!("{error:#}").into())
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Cuda { architecture } => f.write_str(architecture),
            Target::Wgsl { int64: true } => f.write_str("wgsl, u64"),
            Target::Wgsl { int64: false } => f.write_str("wgsl, u32"),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{} ({}) for {}", self.field, self.spec.name, self.spec.variant, self.target)
    }
}

/// Fields with an arithmetic of their own beside the scalar fields, and an extension: their operations on vectors are
/// checked, after all of [`FIELDS`].
const VECTOR_FIELDS: &[Field] = &[
    Field { name: "goldilocks", kernels: small_kernels::<small::Goldilocks> },
    Field { name: "baby-bear", kernels: small_kernels::<small::BabyBear> },
    Field { name: "baby-bear-4", kernels: vector_kernels::<small::BabyBear4> },
];

/// Kernels for CUDA that are checked with every field alone, by their field and a part of their variant: other keys than
/// the longest and the shortest, and transforms side by side, which the first field has.
const FURTHER_VARIANTS: [(&str, &str); 3] =
    [("aes", "Aes192"), ("baby-bear", "interleaved"), ("goldilocks", "interleaved")];

/// What has the shape of one of those, or their arithmetic, or that of points above: `cargo xtask kernels` checks it, and
/// tests with every field do.
const FURTHER_FIELDS: &[Field] = &[
    Field { name: "bn254-fr", kernels: scalar_kernels::<ark_bn254::Fr> },
    Field { name: "bls12-381-fq", kernels: vector_kernels::<ark_bls12_381::Fq> },
    Field { name: "bls12-381-fq2", kernels: vector_kernels::<ark_bls12_381::Fq2> },
    Field { name: "goldilocks-3", kernels: vector_kernels::<small::Goldilocks3> },
    Field { name: "koala-bear-5", kernels: vector_kernels::<small::KoalaBear5> },
    Field { name: "bls12-381-g1", kernels: |_| Ok(MapToCurve::<ark_bls12_381::g1::Config>::kernels()) },
    Field { name: "bls12-381-g1", kernels: |_| Ok(HashToCurve::<ark_bls12_381::g1::Config>::kernels()) },
];

/// The operations on vectors, and expressions with few products and with many.
fn vector_kernels<F: DeviceField>(_: &DeviceInfo) -> Result<Vec<KernelSpec>> {
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    let gate = Expression::constant(0) * (&a * &b - &c);
    let many: Expression = (0..20).map(|i| &a * &b - &c + i).product();
    let mut kernels = [Vector::<F>::kernels(), SparseMatrix::<F>::kernels()].concat();
    kernels.extend([&gate, &many].map(Vector::<F>::expression_kernel));
    kernels.extend([&gate, &many].map(Vector::<F>::sum_expression_kernel));
    Ok(kernels)
}

/// A field or a curve whose kernels are checked, or what has kernels on integers.
#[derive(Clone, Copy, Debug)]
struct Field {
    name: &'static str,
    kernels: fn(&DeviceInfo) -> Result<Vec<KernelSpec>>,
}

const FIELDS: &[Field] = &[
    Field { name: "bls12-381-fr", kernels: kernels::<ark_bls12_381::Fr> },
    Field { name: "bls12-381-g1", kernels: points::<ark_bls12_381::g1::Config> },
    Field { name: "bn254-g2", kernels: points::<ark_bn254::g2::Config> },
    Field { name: "bls12-381-fr", kernels: |_| Ok(Sqrt::<ark_bls12_381::Fr>::kernels(&SqrtConfig::default())) },
    Field { name: "bls12-381-fq2", kernels: |_| Ok(Sqrt::<ark_bls12_381::Fq2>::kernels(&SqrtConfig::default())) },
    Field { name: "baby-bear", kernels: |_| Ok(Sqrt::<small::BabyBear>::kernels(&SqrtConfig::default())) },
    Field { name: "bls12-381-g1", kernels: encodings::<ark_bls12_381::g1::Config> },
    Field { name: "bls12-381-g2", kernels: encodings::<ark_bls12_381::g2::Config> },
    Field { name: "bls12-381-g2", kernels: |_| Ok(MapToCurve::<ark_bls12_381::g2::Config>::kernels()) },
    Field { name: "bls12-381-g2", kernels: |_| Ok(HashToCurve::<ark_bls12_381::g2::Config>::kernels()) },
    Field {
        name: "run-time primes",
        kernels: |_| {
            Ok([64, 1024, 2048, 4096].map(|bits| [ModSqrt::kernels(bits), Jacobi::kernels(bits)].concat()).concat())
        },
    },
    Field { name: "aes", kernels: aes },
];

/// What is checked on the architectures beside the main one: on the oldest, and on all of them with every field.
const ON_OTHERS: Field = Field { name: "bls12-381-fr", kernels: few_kernels::<ark_bls12_381::Fr> };

/// On the others.
const FEW_ON_OTHERS: Field = Field { name: "baby-bear", kernels: few_kernels::<small::BabyBear> };

/// log₂ of the transforms whose branches are all checked: one pass with the fewest points and with the most, and two
/// passes, which are as long as those of most larger transforms.
const LOG_N: [u32; 3] = [1, 9, 16];

/// Every kernel over a field, as a device gets it.
fn kernels<F: DeviceField + FftField>(info: &DeviceInfo) -> Result<Vec<KernelSpec>> {
    let transforms = transforms::<F>(info, &LOG_N, &Twiddles::ALL)?;
    Ok(distinct([rates::<F>(), vector_kernels::<F>(info)?, transforms, TwiddleTable::<F>::kernels()].concat()))
}

/// Every kernel over a field that differs from the first in its modulus alone, with transforms of one size.
fn scalar_kernels<F: DeviceField + FftField>(info: &DeviceInfo) -> Result<Vec<KernelSpec>> {
    Ok(distinct([rates::<F>(), few_kernels::<F>(info)?].concat()))
}

/// The operations on vectors over a field, and transforms of one size as devices get them.
fn few_kernels<F: DeviceField + FftField>(info: &DeviceInfo) -> Result<Vec<KernelSpec>> {
    let transforms = Ntt::<F>::kernels(info, 24, NttConfig::default())?;
    Ok(distinct([vector_kernels::<F>(info)?, transforms].concat()))
}

/// The kernels whose rates are measured, and sums.
fn rates<F: DeviceField>() -> Vec<KernelSpec> {
    let places = Place::ALL.into_iter();
    let products = places.flat_map(|place| Sharing::ALL.map(|sharing| Products::<F>::kernel(place, sharing)));
    let chains = Step::ALL.map(MulChain::<F>::kernel).into_iter();
    chains.chain(products).chain(SegmentedSum::<FieldSum<F>>::kernels()).collect()
}

fn distinct(mut kernels: Vec<KernelSpec>) -> Vec<KernelSpec> {
    let mut seen = BTreeSet::new();
    kernels.retain(|kernel| seen.insert((kernel.name, kernel.variant.clone())));
    kernels
}

/// Kernels of transforms: of some sizes with flags that are read when they run, which compiles every branch, side by
/// side too; with each source of factors, one after the other; and of others as devices get them. What sizes, sources
/// and places side by side do to a kernel does not depend on each other.
fn transforms<F: DeviceField + FftField>(
    info: &DeviceInfo,
    sizes: &[u32],
    twiddles: &[Twiddles],
) -> Result<Vec<KernelSpec>> {
    let mut general = info.clone();
    general.features.software = true;
    let mut kernels = Vec::new();
    for &log_n in sizes {
        kernels.extend(Ntt::<F>::all_kernels(&general, log_n, NttConfig::default())?);
    }
    for &twiddles in twiddles {
        let config = NttConfig::default().twiddles(twiddles);
        kernels.extend(Ntt::<F>::kernels(&general, 16, config)?);
    }
    let halves = NttConfig::default().split(Split::Halves);
    kernels.extend(Ntt::<F>::all_kernels(info, 9, halves)?.into_iter().filter(|kernel| kernel.name == "ntt_halves"));
    for log_n in [8, 24] {
        kernels.extend(Ntt::<F>::kernels(info, log_n, NttConfig::default())?);
    }
    Ok(kernels)
}

/// Operations on vectors, and transforms.
fn small_kernels<F: DeviceField + FftField>(info: &DeviceInfo) -> Result<Vec<KernelSpec>> {
    Ok(distinct([vector_kernels::<F>(info)?, transforms::<F>(info, &[10, 20], &[])?].concat()))
}

/// Every kernel over a curve.
fn points<C: MsmCurve>(_: &DeviceInfo) -> Result<Vec<KernelSpec>> {
    let mut kernels = [Points::<C>::kernels(), Msm::<C>::kernels()].concat();
    kernels.extend(SegmentedSum::<PointSum<C>>::kernels());
    kernels.push(AddChain::<C>::kernel());
    Ok(kernels)
}

/// The kernels that decode points.
fn encodings<C: MsmCurve<BaseField: RootField>>(_: &DeviceInfo) -> Result<Vec<KernelSpec>> {
    Ok(Decompress::<C>::kernels(Encoding::Zcash))
}

/// Every kernel of AES: all methods with the shortest keys, the fastest with the others.
fn aes(info: &DeviceInfo) -> Result<Vec<KernelSpec>> {
    let fastest = Method::fastest(info);
    let mut shapes: Vec<_> = Method::ALL.iter().map(|method| (*method, KeySize::Aes128)).collect();
    shapes.extend([(fastest, KeySize::Aes192), (fastest, KeySize::Aes256)]);
    let mut kernels = Vec::new();
    for (method, size) in shapes {
        kernels.extend(Aes::kernels(info, method, size)?);
    }
    Ok(distinct(kernels))
}

/// The kernels for a device, each with what it is over.
type Specs<'a> = dyn Fn(&DeviceInfo) -> Result<Vec<(&'static str, KernelSpec)>> + 'a;

impl Field {
    fn specs(&self, info: &DeviceInfo) -> Result<Vec<(&'static str, KernelSpec)>> {
        Ok((self.kernels)(info)?.into_iter().map(|spec| (self.name, spec)).collect())
    }
}

/// Every kernel: those of [`FIELDS`] and of [`VECTOR_FIELDS`], with `every` those of [`FURTHER_FIELDS`], and what
/// groups of trials launch beside them.
fn specs(info: &DeviceInfo, every: bool) -> Result<Vec<(&'static str, KernelSpec)>> {
    let mut specs = Vec::new();
    for field in FIELDS.iter().chain(VECTOR_FIELDS).chain(if every { FURTHER_FIELDS } else { &[] }) {
        specs.extend(field.specs(info)?);
    }
    let known: BTreeSet<&str> = specs.iter().map(|(_, spec)| spec.name).collect();
    let launched = evariste_conformance::kernels(info);
    let launched = launched.map_err(|error| anyhow!("{}", error.message().unwrap_or("kernels cannot be planned")))?;
    let mut seen = BTreeSet::new();
    let mut is_new = |spec: &KernelSpec| !known.contains(spec.name) && seen.insert((spec.name, spec.variant.clone()));
    specs.extend(launched.into_iter().filter(|(_, spec)| is_new(spec)));
    Ok(specs)
}

/// A device to plan for, with so much memory in a workgroup.
fn device(kind: Kind, workgroup_bytes: u32, workgroup_threads: u32, features: Features) -> DeviceInfo {
    let mut info = Device::cpu().info().clone();
    info.id.kind = kind;
    info.limits.workgroup_bytes = workgroup_bytes;
    info.limits.workgroup_threads = workgroup_threads;
    info.features = features;
    info
}

/// Every kernel for WebGPU's smallest workgroups and for those of usual GPUs, with and without 64-bit integers.
pub(crate) fn wgsl_checks(every: bool) -> Result<Vec<Check>> {
    let (mut checks, mut seen) = (Vec::new(), BTreeSet::new());
    for workgroup_bytes in wgsl::WORKGROUP_BYTES {
        let info = device(Kind::Wgpu, workgroup_bytes, wgsl::WORKGROUP_THREADS, Features::default());
        for (field, spec) in specs(&info, every)? {
            if seen.insert((field, spec.name, spec.variant.clone())) {
                let check =
                    |int64| Check { field, spec: spec.clone(), target: Target::Wgsl { int64 }, workgroup_bytes };
                checks.extend([false, true].map(check));
            }
        }
    }
    Ok(checks)
}

/// Every kernel for these architectures; if there are none, for the usual ones. There, unless `every` asks for more, one
/// kernel of each name over each field is assembled, and the others are compiled to what the assembler takes: all inline
/// assembly is in functions that the kernels over a field share, or in kernels whose variants have the same of it.
pub(crate) fn cuda_checks(architectures: &[String], every: bool) -> Result<Vec<Check>> {
    let features = Features { int64: true, queues: true, forward_progress: true, software: false };
    let assembles_all = every || !architectures.is_empty();
    let mut checks = Vec::new();
    let mut add = |specs: &Specs<'_>, architecture: &str| -> Result<()> {
        let workgroup_bytes = cuda::workgroup_bytes(architecture)?;
        let mut specs = specs(&device(Kind::Cuda, workgroup_bytes, cuda::WORKGROUP_THREADS, features))?;
        if !assembles_all {
            let is_further = |field, spec: &KernelSpec| {
                FURTHER_VARIANTS.iter().any(|(of, part)| *of == field && spec.variant.contains(part))
            };
            specs.retain(|(field, spec)| !is_further(*field, spec));
        }
        let mut assembled = BTreeSet::new();
        let check = |(field, spec): (&'static str, KernelSpec)| {
            let is_assembled = assembled.insert((field, spec.name, hashes(&spec.variant))) || assembles_all;
            let architecture =
                if is_assembled { architecture.to_owned() } else { architecture.replace("sm_", "compute_") };
            Check { field, spec, target: Target::Cuda { architecture }, workgroup_bytes }
        };
        checks.extend(specs.into_iter().map(check));
        Ok(())
    };
    if architectures.is_empty() {
        add(&|info| specs(info, every), cuda::MAIN)?;
        for (i, architecture) in cuda::OTHERS.into_iter().enumerate() {
            let field = if i == 0 || every { &ON_OTHERS } else { &FEW_ON_OTHERS };
            add(&|info| field.specs(info), architecture)?;
        }
    }
    architectures.iter().try_for_each(|architecture| add(&|info| specs(info, every), architecture))?;
    Ok(checks)
}

/// The hashes in a variant: of fields, and of expressions over them.
fn hashes(variant: &str) -> Vec<String> {
    let is_hash = |word: &&str| word.len() == 16 && word.chars().all(|c| c.is_ascii_hexdigit());
    variant.split([' ', ',']).filter(is_hash).map(str::to_owned).collect()
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if options.package {
        return package::run(&options.arch, options.out.as_deref(), options.keep);
    }
    let mut checks = wgsl_checks(true)?;
    match nvrtc::version() {
        Ok(_) => checks.extend(cuda_checks(&options.arch, true)?),
        Err(error) if options.arch.is_empty() => println!("CUDA kernels are not compiled: {error}"),
        Err(error) => return Err(error.into()),
    }
    let timed = |check: &Check| {
        let start = Instant::now();
        (check.run(), start.elapsed())
    };
    let outcomes: Vec<(Result<Takes>, Duration)> = checks.par_iter().map(timed).collect();

    let head = ["field", "kernel", "variant", "target", "registers", "spilled B", "shared B", "ms to compile"];
    let mut table = Table::new(4, &head);
    let mut failed = 0;
    for (check, (outcome, time)) in checks.iter().zip(outcomes) {
        match outcome {
            Ok(takes) => table.row(row(check, takes, time)),
            Err(error) => {
                failed += 1;
                println!("FAILED {check}: {error:#}");
            }
        }
    }
    if !options.check {
        println!("{}", table.render());
    }
    println!("{} passed, {failed} failed", checks.len() - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(check: &Check, takes: Takes, time: Duration) -> [String; 8] {
    let number = |value: Option<u32>| value.map_or_else(|| "–".into(), |value| value.to_string());
    [
        check.field.to_owned(),
        check.spec.name.to_owned(),
        check.spec.variant.clone(),
        check.target.to_string(),
        number(takes.registers),
        number(takes.spill_bytes),
        takes.shared_bytes.to_string(),
        time.as_millis().to_string(),
    ]
}
