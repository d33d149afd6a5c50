//! Every kernel launched, with one workgroup and with several, at sizes that sanitizers take.
//!
//! A family is a selection of the other trials, run on a device that remembers launches. Which kernels it must launch is
//! what the crates list for compiling ahead, over a field or curve of each kind that the arithmetic has a way of its own
//! for. That the families have all kernels is read off the sources.

use std::{
    collections::BTreeSet,
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use ark_bls12_381::{Fq, Fq2, Fr};
use evariste_aes::{Aes, KeySize, Method};
use evariste_backend::{Backend, Device, DeviceInfo, Executable, KernelSpec, Kind};
use evariste_curve::{DeviceCurve, PointSum, Points};
use evariste_field::{
    DeviceField, Expression, FieldSum, Vector,
    small::{BabyBear, BabyBear4, Goldilocks, Goldilocks3},
};
use evariste_microbench::{AddChain, MulChain, Place, Products, Sharing, Step};
use evariste_msm::Msm;
use evariste_primitives::{RadixSort, SegmentedSum};
use evariste_sqrt::{Decompress, Encoding, HashToCurve, Jacobi, ModSqrt, Sqrt};
use evariste_sumcheck::Sumcheck;
use libtest_mimic::{Failed, Trial};

use crate::{
    Case, Outcome, Suite, aes, curve, curves, field, fields, modsqrt, msm, ntt, primitives, recorder::Recorder, sqrt,
    sumcheck, timed,
};

/// Some kernels, and trials that launch them.
struct Family {
    name: &'static str,
    /// Adds the trials of the suite.
    add: fn(&mut Suite<'_>),
    /// Which of them: where their names start.
    cases: &'static [&'static str],
    kernels: fn(&DeviceInfo) -> Result<Vec<KernelSpec>, Failed>,
}

const FAMILIES: [Family; 18] = [
    Family {
        name: "vector-long",
        add: field::add,
        cases: &["bls12-381-fr::", "bn254-fr::", "secp256k1-fq::", "mersenne-89::"],
        kernels: |_| {
            let fields = [
                vector::<Fr>(),
                vector::<ark_bn254::Fr>(),
                vector::<fields::Secp256k1>(),
                vector::<fields::Mersenne89>(),
                products::<Fr>(),
            ];
            Ok(fields.concat())
        },
    },
    // Apart, since the emulator takes longest with it.
    Family {
        name: "vector-longer",
        add: field::add,
        cases: &["bls12-381-fq::", "bls12-381-fq2::"],
        kernels: |_| Ok([vector::<Fq>(), vector::<Fq2>()].concat()),
    },
    Family {
        name: "vector-small",
        add: field::add,
        cases: &["goldilocks::", "baby-bear::", "goldilocks-3::", "baby-bear-4::"],
        kernels: |_| {
            let fields = [vector::<Goldilocks>(), vector::<BabyBear>(), vector::<Goldilocks3>(), vector::<BabyBear4>()];
            Ok(fields.concat())
        },
    },
    Family {
        name: LONG_TRANSFORMS,
        add: ntt::add,
        cases: &[
            "bls12-381-fr::passes",
            "bls12-381-fr::orders_cosets_batches",
            "bls12-381-fr::columns",
            "bls12-381-fr::splits_and_twiddles",
            "bls12-381-fr::pipelines",
            "bls12-381-fr::pinned",
        ],
        kernels: ntt::kernels::<Fr>,
    },
    Family {
        name: "ntt-goldilocks",
        add: ntt::add,
        cases: &[
            "goldilocks::passes",
            "goldilocks::orders_cosets_batches",
            "goldilocks::columns",
            "goldilocks::splits_and_twiddles",
            "goldilocks::pipelines",
            "goldilocks::pinned",
        ],
        kernels: ntt::kernels::<Goldilocks>,
    },
    Family {
        name: "ntt-baby-bear",
        add: ntt::add,
        cases: &[
            "baby-bear::passes",
            "baby-bear::orders_cosets_batches",
            "baby-bear::columns",
            "baby-bear::splits_and_twiddles",
            "baby-bear::pipelines",
            "baby-bear::pinned",
            "baby-bear::matrices",
            "baby-bear-4::extensions",
        ],
        kernels: ntt::kernels::<BabyBear>,
    },
    Family {
        name: "curve",
        add: curve::add,
        cases: &["bls12-381-g1::", "bn254-g2::", "p-256::", "even-order::"],
        kernels: |_| {
            let curves = [
                points::<ark_bls12_381::g1::Config>(),
                points::<ark_bn254::g2::Config>(),
                points::<curves::P256>(),
                points::<curves::EvenOrder>(),
            ];
            Ok(curves.concat())
        },
    },
    Family {
        name: "msm",
        add: msm::add,
        cases: &["bn254-g1::scalars", "bn254-g1::divisions", "bn254-g1::integers"],
        kernels: |_| {
            let mut kernels = Msm::<ark_bn254::g1::Config>::kernels();
            kernels.retain(|kernel| kernel.name.starts_with("msm"));
            Ok(kernels)
        },
    },
    Family {
        name: "sumcheck",
        add: sumcheck::add,
        cases: &["bls12-381-fr::", "baby-bear-4::"],
        kernels: |_| {
            let long = Sumcheck::<Fr>::kernels(&sumcheck::gate());
            Ok([long, Sumcheck::<BabyBear4, BabyBear>::kernels(&sumcheck::gate())].concat())
        },
    },
    Family {
        name: "sqrt",
        add: sqrt::add,
        cases: &["bls12-381-fr::", "bls12-381-g1::", "bls12-381-g2::"],
        kernels: |_| {
            let points = Decompress::<ark_bls12_381::g1::Config>::kernels(Encoding::Zcash);
            let hashes = HashToCurve::<ark_bls12_381::g2::Config>::kernels();
            Ok([Sqrt::<Fr>::kernels(), points, hashes].concat())
        },
    },
    Family {
        name: "primitives",
        add: primitives::add,
        cases: &["scan", "histogram", "sort", "segmented_sum::"],
        kernels: |_| {
            let sums = [
                SegmentedSum::<FieldSum<Fr>>::kernel(),
                SegmentedSum::<FieldSum<BabyBear>>::kernel(),
                SegmentedSum::<FieldSum<ark_bn254::Fq2>>::kernel(),
                SegmentedSum::<FieldSum<fields::Mersenne89>>::kernel(),
            ];
            Ok(RadixSort::kernels().into_iter().chain(sums).collect())
        },
    },
    Family {
        name: "modsqrt",
        add: modsqrt::add,
        cases: &["roots", "long", "jacobi"],
        kernels: |_| {
            Ok([[64, 1088, 4096].map(ModSqrt::kernels).concat(), [64, 4096].map(Jacobi::kernels).concat()].concat())
        },
    },
    Family { name: "aes-sbox", add: aes::add, cases: &["sbox::"], kernels: |info| aes_of(info, Method::Sbox) },
    Family { name: "aes-table", add: aes::add, cases: &["table::"], kernels: |info| aes_of(info, Method::Table) },
    Family {
        name: "aes-twotables",
        add: aes::add,
        cases: &["twotables::"],
        kernels: |info| aes_of(info, Method::TwoTables),
    },
    Family {
        name: "aes-fourtables",
        add: aes::add,
        cases: &["fourtables::"],
        kernels: |info| aes_of(info, Method::FourTables),
    },
    Family {
        name: "aes-bitsliced",
        add: aes::add,
        cases: &["bitsliced::", "counters", "long_ghash"],
        kernels: |info| aes_of(info, Method::Bitsliced),
    },
    Family {
        name: "aes-previous",
        add: aes::add,
        cases: &["boundaries", "sbox::cbc", "bitsliced::cbc"],
        kernels: aes_previous,
    },
];

/// Transforms over a long field, of which the host's compiler would take minutes for each set of flags: there they read them
/// when they run, as on emulated devices. Those over short fields are compiled as GPUs get them.
const LONG_TRANSFORMS: &str = "ntt-bls12-381-fr";

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

fn vector<F: DeviceField>() -> Vec<KernelSpec> {
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    let chains = Step::ALL.map(MulChain::<F>::kernel);
    let mut kernels = Vector::<F>::kernels();
    let gate = a * b - c;
    kernels.extend([Vector::<F>::expression_kernel(&gate), Vector::<F>::sum_expression_kernel(&gate)]);
    kernels.extend(chains);
    kernels
}

fn products<F: DeviceField>() -> Vec<KernelSpec> {
    let places = Place::ALL.into_iter();
    places.flat_map(|place| Sharing::ALL.map(|sharing| Products::<F>::kernel(place, sharing))).collect()
}

/// The kernels of a method, but for that of the previous blocks of CBC, of which several workgroups take much more data.
fn aes_of(info: &DeviceInfo, method: Method) -> Result<Vec<KernelSpec>, Failed> {
    let mut kernels = Aes::kernels(info, method, KeySize::Aes256)?;
    kernels.retain(|kernel| kernel.name != "aes_previous");
    Ok(kernels)
}

fn aes_previous(info: &DeviceInfo) -> Result<Vec<KernelSpec>, Failed> {
    let of = |method| Aes::kernels(info, method, KeySize::Aes256);
    let mut kernels = [Method::Sbox, Method::Bitsliced].map(of).into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    kernels.retain(|kernel| kernel.name == "aes_previous");
    Ok(kernels)
}

fn points<C: DeviceCurve>() -> Vec<KernelSpec> {
    let sums = [SegmentedSum::<PointSum<C>>::kernel(), AddChain::<C>::kernel()];
    Points::<C>::kernels().into_iter().chain(sums).collect()
}

/// Whether trials on a device keep to few sizes.
#[derive(Debug, Default)]
struct Few(AtomicBool);

pub(crate) fn is_few(device: &Device) -> bool {
    device.notes::<Few>().0.load(Ordering::Relaxed)
}

/// The lengths of these that trials on a device go through: of few, one element, one more than a workgroup has threads,
/// and the largest that sanitizers and the emulator are quick with.
pub(crate) fn lengths(device: &Device, all: &[usize]) -> Vec<usize> {
    const MOST: usize = 10_000;

    let few = is_few(device);
    let most = all.iter().copied().filter(|len| *len <= MOST).max();
    all.iter().copied().filter(|len| !few || [1, 257].contains(len) || Some(*len) == most).collect()
}

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
    fn run(&self, device: &Device) -> Outcome {
        let recorder = Recorder::new(device, self.name != LONG_TRANSFORMS);
        let recorded = Device::unregistered(Arc::clone(&recorder) as _);
        recorded.notes::<Few>().0.store(true, Ordering::Relaxed);
        let kernels = (self.kernels)(recorder.info())?;
        let _compiled = compile(&recorded, &kernels)?;
        let mut suite = Suite { device: &recorded, label: "", name: self.name, cases: Vec::new() };
        (self.add)(&mut suite);
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
        // A single thread keeps what it needs of the neighbours' blocks.
        None if one_thread && spec.name == "aes_previous" => return None,
        None => return Some(format!("{what} was not launched")),
        Some(_) if one_thread => return None,
        Some(groups) => groups,
    };
    let (groups, one, several) = match spec.name {
        // A pass of several has more than one tile, and large tiles are of long transforms.
        "ntt_pass" => (recorder.launched_as(spec.name)?, true, true),
        // One thread, or more in as many workgroups as it takes.
        "products" if spec.variant.contains("Serial") => (groups, true, false),
        // A workgroup for each bit of a bucket's number.
        "msm_bits" => (groups, false, true),
        // One workgroup draws the last challenge, and does the last rounds, so that few pairs are never a round's.
        "sumcheck_finish" | "sumcheck_tail" => (groups, true, false),
        "sumcheck_round" => (groups, false, true),
        // There are more buckets than threads of a workgroup.
        "msm_unbalanced" => (groups, false, true),
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

/// The trials of each family on a device, named `device::launches::family`.
pub fn launches(device: &Device) -> Vec<Trial> {
    let mut suite = Suite { device, label: &device.info().id.to_string(), name: "launches", cases: Vec::new() };
    add(&mut suite);
    suite.cases.into_iter().map(Case::trial).collect()
}

pub(crate) fn add(suite: &mut Suite<'_>) {
    let info = suite.device.info();
    let emulated = info.id.kind == Kind::Wgpu && info.features.software;
    for family in &FAMILIES {
        if emulated {
            suite.skip(family.name, "emulated: its other trials launch the same kernels at more sizes");
            continue;
        }
        let device = suite.device.clone();
        // The trials take their turns themselves.
        suite.push(family.name, move |name| timed(name, || family.run(&device)));
    }
}

/// That every source belongs to a family, so that a new one that nobody launches is found.
pub(crate) fn common() -> Trial {
    Trial::test("any::launches::families_have_every_kernel", || {
        let mut launched = BTreeSet::new();
        for family in &FAMILIES {
            launched.extend((family.kernels)(Device::cpu().info())?.iter().map(|spec| spec.name));
        }
        let sources = evariste_cuda::KERNELS.iter().chain(&evariste_shaders::KERNELS).map(|(name, _)| *name);
        let missing: BTreeSet<&str> = sources.filter(|name| !launched.contains(name)).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("in no family: {missing:?}").into()) }
    })
}
