//! Every kernel launched, with one workgroup and with several, at sizes that sanitizers take.
//!
//! A group of kernels names trials that launch them, which run on a device that remembers launches. Its kernels are
//! those that the crates list for compiling ahead, over a field or curve of each kind that has an arithmetic of its
//! own. A test compares the kernels of all groups with the sources.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use evariste::backend::{
    Device, DeviceInfo, Error, Kind,
    author::{Backend, Binding, BindingType, CpuArg, Executable, Kernel, KernelSpec, Language},
    params,
};
use evariste::curve::Points;
use evariste::field::{DevicePrimeField, Vector};
use evariste::msm::{Msm, MsmCurve};
use evariste::ntt::Ntt;
use libtest_mimic::{Failed, Trial};

use crate::{
    devices::is_emulated,
    expect::{expect, expect_equal, expect_error},
    fields::EVERY_FIELD,
    harness::{Add, Case, DeviceTrials, Outcome, timed},
    recorder::Recorder,
    sizes,
    trials::AREAS,
};

/// Some kernels, and trials that launch them.
#[derive(Debug)]
pub(crate) struct KernelGroup {
    pub(crate) name: &'static str,
    /// Which trials: where their names start.
    pub(crate) cases: &'static [&'static str],
    pub(crate) kernels: fn(&DeviceInfo) -> Result<Vec<KernelSpec>, Failed>,
}

/// Kernels that are not launched both by one workgroup and by several.
#[derive(Debug)]
pub(crate) struct Exception {
    /// How their names start.
    pub(crate) name: &'static str,
    /// A part of their variants.
    pub(crate) variant: &'static str,
    pub(crate) launched: Launched,
}

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launched {
    /// By one workgroup only.
    ByOne,
    /// By several only.
    BySeveral,
    /// By one and by several, of whatever variant.
    InAnyVariant,
    /// Not on the CPU, whose body does without.
    NotByCpu,
}

impl Exception {
    pub(crate) const fn new(name: &'static str, variant: &'static str, launched: Launched) -> Self {
        Self { name, variant, launched }
    }

    fn is_for(&self, spec: &KernelSpec) -> bool {
        // `aes_` stands for all kernels of AES.
        let is_named = if self.name.ends_with('_') { spec.name.starts_with(self.name) } else { spec.name == self.name };
        is_named && spec.variant.contains(self.variant)
    }
}

fn exceptions() -> impl Iterator<Item = &'static Exception> {
    AREAS.iter().flat_map(|area| area.exceptions)
}

/// Every group, with the function that adds its trials.
fn groups() -> impl Iterator<Item = (&'static KernelGroup, Add)> {
    AREAS.iter().flat_map(|area| area.kernels.iter().map(|group| (group, area.add)))
}

/// Transforms over a long field. The host's compiler would take minutes for each set of flags, so that their kernels
/// read the flags when they run, as on emulated devices.
pub(crate) const LONG_TRANSFORMS: &str = "ntt-bls12-381-fr";

/// Transforms over a short field. With every field, a kernel has its flags when it is compiled, as GPUs get it:
/// hundreds of kernels.
pub(crate) const SHORT_TRANSFORMS: &str = "ntt-baby-bear";

/// Trials that say nothing of launches, or that watch what belongs to the device.
const NOT_HERE: [&str; 9] = [
    "misuse",
    "host_slices",
    "large",
    "no_host_copies_and_few_launches",
    "two_threads",
    "required_bytes",
    "unsorted_keys",
    "sort_with_false_counts",
    "sort_large",
];

/// Compiles kernels on all cores, so that trials find them where the device keeps what is in use.
fn compile(device: &Device, kernels: &[KernelSpec]) -> Result<Vec<Executable>, Failed> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<Executable>, Failed> {
        let specs = iter::from_fn(|| kernels.get(next.fetch_add(1, Ordering::Relaxed)));
        specs.map(|spec| Ok(device.backend().compile(spec)?)).collect()
    };
    let count = thread::available_parallelism()?.get();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        let compiled = threads.into_iter().map(|thread| thread.join().map_err(|_| "a compilation panicked")?);
        Ok(compiled.collect::<Result<Vec<_>, Failed>>()?.into_iter().flatten().collect())
    })
}

impl KernelGroup {
    /// Runs the trials and tells which kernels were not launched as they should be.
    fn run(&self, add: Add, device: &Device) -> Outcome {
        let reads_flags = self.name == LONG_TRANSFORMS || !EVERY_FIELD && self.name == SHORT_TRANSFORMS;
        let recorder = Recorder::new(device, !reads_flags);
        let recorded = Device::unregistered(Arc::clone(&recorder) as _);
        sizes::keep_to_few(&recorded);
        let kernels = (self.kernels)(recorder.info())?;
        let _compiled = compile(&recorded, &kernels)?;
        let mut trials = DeviceTrials { device: &recorded, label: "", name: self.name, cases: Vec::new() };
        add(&mut trials);
        for Case { name, run, .. } in trials.cases.into_iter().filter(|case| case.skipped.is_none()) {
            let case = name.trim_start_matches("::").split_once("::").map_or("", |(_, case)| case);
            if self.cases.iter().any(|start| case.starts_with(start)) && !NOT_HERE.iter().any(|end| case.ends_with(end))
            {
                run().map_err(|error| format!("{case}: {}", error.message().unwrap_or("failed")))?;
            }
        }
        let wrong: Vec<String> = kernels.iter().filter_map(|spec| not_as_wanted(spec, &recorder)).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
    }
}

/// What is missing of the launches of a kernel.
fn not_as_wanted(spec: &KernelSpec, recorder: &Recorder) -> Option<String> {
    let what = format!("{} ({})", spec.name, spec.variant);
    let is = |launched| exceptions().any(|exception| exception.launched == launched && exception.is_for(spec));
    let one_thread = recorder.info().limits.workgroup_threads == 1;
    let groups = match recorder.launched(spec) {
        None if one_thread && is(Launched::NotByCpu) => return None,
        None => return Some(format!("{what} was not launched")),
        Some(_) if one_thread => return None,
        Some(_) if is(Launched::InAnyVariant) => recorder.launched_as(spec.name)?,
        Some(groups) => groups,
    };
    if groups.least > 1 && !is(Launched::BySeveral) {
        return Some(format!("{what} had {} workgroups at least", groups.least));
    }
    (groups.most == 1 && !is(Launched::ByOne)).then(|| format!("{what} had one workgroup only"))
}

/// The trials of each group of kernels on a device, named `device::launches::group`.
pub fn launches(device: &Device) -> Vec<Trial> {
    let mut trials = DeviceTrials { device, label: &device.info().id.to_string(), name: "launches", cases: Vec::new() };
    add(&mut trials);
    trials.cases.into_iter().map(Case::trial).collect()
}

pub(crate) fn add(trials: &mut DeviceTrials<'_>) {
    let emulated = is_emulated(trials.device);
    for (group, add) in groups() {
        if emulated {
            trials.skip(group.name, "emulated: its other trials launch the same kernels at more sizes");
            continue;
        }
        let device = trials.device.clone();
        // The trials take their turns themselves.
        trials.push(group.name, move |name| timed(name, || group.run(add, &device)));
    }
}

/// The kernels of every group, each with the group's name: for compiling them ahead.
///
/// # Errors
/// What planning for such a device gives.
pub fn kernels(info: &DeviceInfo) -> Result<Vec<(&'static str, KernelSpec)>, Failed> {
    let mut all = Vec::new();
    for (group, _) in groups() {
        all.extend((group.kernels)(info)?.into_iter().map(|spec| (group.name, spec)));
    }
    Ok(all)
}

/// That kernels of one name and variant have one text, over fields and curves of one size too.
pub(crate) fn names() -> Trial {
    Trial::test("any::launches::names_and_variants_tell_texts_apart", || {
        let info = Device::cpu().info().clone();
        let mut specs: Vec<KernelSpec> = kernels(&info)?.into_iter().map(|(_, spec)| spec).collect();
        add_kernels_of::<ark_bls12_381::Fr>(&mut specs, &info)?;
        add_kernels_of::<ark_bn254::Fr>(&mut specs, &info)?;
        // Of the same length as those in groups.
        add_kernels_of_sums::<ark_bn254::g1::Config>(&mut specs);
        add_kernels_of_sums::<crate::curves::P256>(&mut specs);
        if EVERY_FIELD {
            add_kernels_of::<ark_pallas::Fq>(&mut specs, &info)?;
            add_kernels_of::<ark_pallas::Fr>(&mut specs, &info)?;
            add_kernels_of_sums::<ark_pallas::PallasConfig>(&mut specs);
            add_kernels_of_sums::<ark_vesta::VestaConfig>(&mut specs);
        }
        let mut texts: BTreeMap<(&str, &str), Vec<[String; 2]>> = BTreeMap::new();
        for spec in &specs {
            let text = [spec.cuda_source(), spec.source(Language::Wgsl { int64: true })];
            let known = texts.entry((spec.name, &spec.variant)).or_default();
            if !known.contains(&text) {
                known.push(text);
            }
        }
        let several: Vec<_> = texts.iter().filter(|(_, texts)| texts.len() > 1).map(|(names, _)| names).collect();
        expect_equal("names of several texts", &several, &vec![])
    })
}

fn add_kernels_of<F: DevicePrimeField>(specs: &mut Vec<KernelSpec>, info: &DeviceInfo) -> Result<(), Failed> {
    specs.extend(Vector::<F>::kernels());
    specs.extend(Ntt::<F>::all_kernels(info, 12, evariste::ntt::NttConfig::default())?);
    Ok(())
}

fn add_kernels_of_sums<C: MsmCurve>(specs: &mut Vec<KernelSpec>) {
    specs.extend(Msm::<C>::kernels());
    specs.extend(Msm::<C>::optional_kernels());
    specs.extend(Points::<C>::kernels());
}

/// That a device refuses a second text under one name and variant.
pub(crate) fn second_text(device: &Device) -> Outcome {
    let make = |text: &'static str| {
        let source = move |language| match language {
            Language::Cuda => format!(
                "extern \"C\" __global__ void word(const Params params, BUFFERS(uint32_t)) {{\n\
                 if (blockIdx.x * blockDim.x + threadIdx.x == 0) out[0] = params.word {text};\n}}\n"
            ),
            Language::Wgsl { .. } => format!(
                "@compute @workgroup_size(THREADS)\nfn word(@builtin(global_invocation_id) id: vec3<u32>) {{\n\
                 if (id.x + id.y + id.z == 0u) {{ out_set(0u, params.word {text}); }}\n}}\n"
            ),
        };
        let bindings = Binding::write("out", BindingType::U32);
        let body = |params: &Word, out: &mut CpuArg<'_>| out.write::<u32>()[0] = params.word;
        Kernel::<Word>::new(device, KernelSpec::new("word", "of two texts", bindings, body, source))
    };
    make("+ 0u")?;
    make("+ 0u")?;
    match device.info().id.kind {
        // Its bodies are no text.
        Kind::Cpu => make("+ 1u").map(drop).map_err(Into::into),
        _ => {
            let error = expect_error("another text", make("+ 1u"))?;
            let refused = matches!(&error, Error::Compile { kernel, .. } if kernel == "word (of two texts)");
            expect(&format!("it is refused: {error}"), refused)
        }
    }
}

params! {
    struct Word {
        word: u32,
    }
}

/// That every kernel of the sources is in a group, so that one without a launch is found.
pub(crate) fn common() -> Trial {
    Trial::test("any::launches::groups_have_every_kernel", || {
        let kernels = kernels(Device::cpu().info())?;
        let launched: BTreeSet<&str> = kernels.iter().map(|(_, spec)| spec.name).collect();
        let [cuda, shaders]: [BTreeSet<&str>; 2] = [evariste_cuda::KERNELS, evariste_shaders::KERNELS]
            .map(|list| list.iter().map(|(name, _)| *name).collect());
        expect_equal("the kernels in WGSL", &shaders, &cuda)?;
        let missing: BTreeSet<&str> = cuda.difference(&launched).copied().collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("in no group: {missing:?}").into()) }
    })
}
