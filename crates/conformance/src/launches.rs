//! Every kernel launched, with one workgroup and with several, at sizes that sanitizers take.
//!
//! A family is a selection of the other trials, run on a device that remembers launches. Which kernels it must launch is
//! what the crates list for compiling ahead, over a field or curve of each kind that the arithmetic has a way of its own
//! for. That the families have all kernels is read off the sources.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use evariste_backend::{
    Backend, Binding, BindingType, CpuArg, Device, DeviceInfo, Error, Executable, Kernel, KernelSpec, Kind, Language,
    params,
};
use evariste_curve::Points;
use evariste_field::{DevicePrimeField, Vector};
use evariste_msm::{Msm, MsmCurve};
use evariste_ntt::Ntt;
use libtest_mimic::{Failed, Trial};

use crate::{
    Case, EVERY_FIELD, Outcome, Suite, TOPICS, expect, expect_equal, expect_error, is_emulated, recorder::Recorder,
    sizes, timed,
};

/// Some kernels, and trials of a suite that launch them.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// Which trials: where their names start.
    pub(crate) cases: &'static [&'static str],
    pub(crate) kernels: fn(&DeviceInfo) -> Result<Vec<KernelSpec>, Failed>,
}

/// Every family, with what adds the trials of its suite.
fn families() -> impl Iterator<Item = (&'static Family, fn(&mut Suite<'_>))> {
    TOPICS.iter().flat_map(|topic| topic.families.iter().map(|family| (family, topic.add)))
}

/// Transforms over a long field, of which the host's compiler would take minutes for each set of flags: there they read them
/// when they run, as on emulated devices. Those over short fields are compiled as GPUs get them.
pub(crate) const LONG_TRANSFORMS: &str = "ntt-bls12-381-fr";

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

impl Family {
    /// Runs the trials and tells which kernels were not launched as they should be.
    fn run(&self, add: fn(&mut Suite<'_>), device: &Device) -> Outcome {
        let recorder = Recorder::new(device, self.name != LONG_TRANSFORMS);
        let recorded = Device::unregistered(Arc::clone(&recorder) as _);
        sizes::keep_to_few(&recorded);
        let kernels = (self.kernels)(recorder.info())?;
        let _compiled = compile(&recorded, &kernels)?;
        let mut suite = Suite { device: &recorded, label: "", name: self.name, cases: Vec::new() };
        add(&mut suite);
        for Case { name, run, .. } in suite.cases.into_iter().filter(|case| case.skipped.is_none()) {
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
    let one_thread = recorder.info().limits.workgroup_threads == 1;
    let groups = match recorder.launched(spec) {
        None if one_thread && needless(spec) => return None,
        None => return Some(format!("{what} was not launched")),
        Some(_) if one_thread => return None,
        Some(groups) => groups,
    };
    let (groups, one, several) = match spec.name {
        // A pass of several has more than one tile, and large tiles are of long transforms.
        "ntt_pass" | "ntt_halves" => (recorder.launched_as(spec.name)?, true, true),
        // One thread, or more in as many workgroups as it takes.
        "products" if spec.variant.contains("Serial") => (groups, true, false),
        // A workgroup for each bit of a bucket's number.
        "msm_bits" => (groups, false, true),
        // One workgroup draws the last challenge, and does the last rounds, so that few pairs are never a round's.
        "sumcheck_finish" | "sumcheck_tail" => (groups, true, false),
        "sumcheck_round" => (groups, false, true),
        // There are more buckets than threads of a workgroup.
        "msm_whole" if spec.variant.starts_with("each bucket") => (groups, false, true),
        // One tile's sum is no one's offset.
        "scan_sums" => (groups, false, true),
        // Sectors that are not whole blocks go one by one.
        "aes_serial" if spec.variant.starts_with("XtsSteal") => (groups, true, false),
        _ => (groups, true, true),
    };
    if one && groups.least > 1 {
        return Some(format!("{what} had {} workgroups at least", groups.least));
    }
    (several && groups.most == 1).then(|| format!("{what} had one workgroup only"))
}

/// Whether a body for the CPU has no need of a kernel: of the neighbours' blocks it keeps what it needs, it takes bytes where they
/// are, and a sector as a whole.
fn needless(spec: &KernelSpec) -> bool {
    let of_sectors = ["Tweak", "XtsSteal"].iter().any(|mode| spec.variant.starts_with(mode));
    matches!(spec.name, "aes_previous" | "move_bytes") || spec.name.starts_with("aes_") && of_sectors
}

/// The trials of each family on a device, named `device::launches::family`.
pub fn launches(device: &Device) -> Vec<Trial> {
    let mut suite = Suite { device, label: &device.info().id.to_string(), name: "launches", cases: Vec::new() };
    add(&mut suite);
    suite.cases.into_iter().map(Case::trial).collect()
}

pub(crate) fn add(suite: &mut Suite<'_>) {
    let emulated = is_emulated(suite.device);
    for (family, add) in families() {
        if emulated {
            suite.skip(family.name, "emulated: its other trials launch the same kernels at more sizes");
            continue;
        }
        let device = suite.device.clone();
        // The trials take their turns themselves.
        suite.push(family.name, move |name| timed(name, || family.run(add, &device)));
    }
}

/// The kernels of every family, each with the family's name: for compiling them ahead.
///
/// # Errors
/// What planning for such a device gives.
pub fn kernels(info: &DeviceInfo) -> Result<Vec<(&'static str, KernelSpec)>, Failed> {
    let mut all = Vec::new();
    for (family, _) in families() {
        all.extend((family.kernels)(info)?.into_iter().map(|spec| (family.name, spec)));
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
        // Of the same length as what families have.
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
    specs.extend(Ntt::<F>::kernels(info, 12, evariste_ntt::Config::default(), true)?);
    Ok(())
}

fn add_kernels_of_sums<C: MsmCurve>(specs: &mut Vec<KernelSpec>) {
    specs.extend(Msm::<C>::kernels());
    specs.extend(Msm::<C>::kernels_of_choice());
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

/// That every source belongs to a family, so that a new one that nobody launches is found.
pub(crate) fn common() -> Trial {
    Trial::test("any::launches::families_have_every_kernel", || {
        let kernels = kernels(Device::cpu().info())?;
        let launched: BTreeSet<&str> = kernels.iter().map(|(_, spec)| spec.name).collect();
        let [cuda, shaders]: [BTreeSet<&str>; 2] = [evariste_cuda::KERNELS, evariste_shaders::KERNELS]
            .map(|list| list.iter().map(|(name, _)| *name).collect());
        expect_equal("the kernels in WGSL", &shaders, &cuda)?;
        let missing: BTreeSet<&str> = cuda.difference(&launched).copied().collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("in no family: {missing:?}").into()) }
    })
}
