//! Transforms over every field with two-adicity.

mod boundaries;
mod extensions;
mod freed;
mod host;
mod plan;
mod prepared;
mod queues;
mod secrets;

use ark_bls12_381::Fr;
use ark_ff::{FftField, Field};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use evariste::backend::{Device, DeviceInfo, Error as DeviceError, Kind, author::KernelSpec};
use evariste::field::{DeviceField, Mont, small};
use evariste::ntt::{Error, Ntt, NttConfig, Order, Split, TwiddleTable, Twiddles, reference};
use libtest_mimic::Failed;

use crate::{
    area::Area,
    curves::TinyField,
    devices::{is_checked_cpu, is_emulated},
    expect::{expect_equal, expect_error, expect_same},
    fields::{self, EVERY_FIELD},
    harness::{DeviceTrials, Outcome},
    launches::{self, Exception, KernelGroup, Launched},
    samples::samples,
    sizes::is_few,
};

pub(crate) const AREA: Area = Area {
    kernels: KERNELS,
    exceptions: &[
        // A pass of several has more than one tile, and large tiles are of long transforms.
        Exception::new("ntt_pass", "", Launched::InAnyVariant),
        Exception::new("ntt_halves", "", Launched::InAnyVariant),
    ],
    operations: secrets::OPERATIONS,
    freed: freed::FREED,
    without_operation: &[("ntt_twiddles_alone", "it computes public factors alone, for benches")],
    ordered: queues::ORDERED,
    boundaries: boundaries::BOUNDARIES,
    prepared: Some(prepared::transforms),
    plans: queues::PLANS,
    ..Area::new("ntt", add)
};

fn add(trials: &mut DeviceTrials<'_>) {
    // Emulated GPUs take minutes to compile all kernels over a long field. What transforms are made of does not depend
    // on it.
    if EVERY_FIELD || !is_emulated(trials.device) {
        over::<ark_bls12_381::Fr>(trials, "bls12-381-fr");
    } else {
        basic::<ark_bls12_381::Fr>(trials, "bls12-381-fr");
        trials.add("bls12-381-fr::columns", columns::<ark_bls12_381::Fr>);
    }
    over::<small::BabyBear>(trials, "baby-bear");
    basic::<small::Goldilocks>(trials, "goldilocks");
    trials.add("goldilocks::columns", columns::<small::Goldilocks>);
    if EVERY_FIELD || !is_emulated(trials.device) {
        trials.add("goldilocks::splits_and_twiddles", splits_and_twiddles::<small::Goldilocks>);
        trials.add("bls12-381-fr::large", plan::large::<ark_bls12_381::Fr>);
        trials.add_alone("bls12-381-fr::required_bytes", plan::required_bytes::<ark_bls12_381::Fr>);
    } else {
        trials.add("baby-bear::large", plan::large::<small::BabyBear>);
        trials.add_alone("baby-bear::required_bytes", plan::required_bytes::<small::BabyBear>);
    }
    if EVERY_FIELD {
        further::<small::Goldilocks>(trials, "goldilocks");
        basic::<fields::Mnt4>(trials, "mnt4-753-fr");
        trials.add("bn254-fr::orders_cosets_batches", few_orders_cosets_batches::<ark_bn254::Fr>);
        trials.add("bls12-377-fr::orders_cosets_batches", few_orders_cosets_batches::<ark_bls12_377::Fr>);
        trials.add("pallas-fq::orders_cosets_batches", few_orders_cosets_batches::<ark_pallas::Fq>);
        trials.add("vesta-fq::orders_cosets_batches", few_orders_cosets_batches::<ark_vesta::Fq>);
        trials.add("koala-bear::orders_cosets_batches", few_orders_cosets_batches::<small::KoalaBear>);
    } else if !trials.device.info().features.software {
        // Tiles of the longest elements.
        trials.add("mnt4-753-fr::sizes", sizes::<fields::Mnt4>);
    }
    trials.add("tiny::square_generator", square_generator);
    trials.add("goldilocks::long", long::<small::Goldilocks>);
    trials.add("baby-bear::long", long::<small::BabyBear>);
    trials.add("baby-bear::interrupted", host::interrupted);
    trials.add("baby-bear-4::extensions", extensions::of_extension_elements);
    trials.add("baby-bear::blocks_misused", extensions::blocks_misused);
    trials.add("baby-bear::many_columns", many_columns);
    trials.add("bls12-381-fr::no_host_copies_and_few_launches", plan::no_host_copies_and_few_launches);
    trials.add_alone("bls12-381-fr::cpu-threshold", host::slices_stay_on_the_cpu_below_the_threshold);
    trials.add("bls12-381-fr::two_threads", plan::two_threads);
    trials.add("bls12-381-fr::queues", plan::queues);
}

/// Over 17 elements, whose configured root of unity is of half the order: values at each root of unity, by Horner's
/// rule.
fn square_generator(device: &Device) -> Outcome {
    for log_n in 0..=4 {
        let n = 1u64 << log_n;
        let x: Vec<TinyField> = (1..=n).map(TinyField::from).collect();
        let mut data = device.upload::<Mont<TinyField>>(&x)?;
        let ntt = Ntt::<TinyField>::new(device, log_n)?;
        ntt.forward(&mut data)?;
        let mut values = data.to_vec()?;
        values.sort_unstable();
        let roots = (1..17).map(TinyField::from).filter(|root| root.pow([n]) == TinyField::from(1));
        let mut expected: Vec<_> = roots.map(|root| reference::horner(&x, root)).collect();
        expected.sort_unstable();
        expect_same(&format!("2^{log_n} values"), &values, &expected)?;
        ntt.inverse(&mut data)?;
        expect_same(&format!("2^{log_n} coefficients"), &data.to_vec()?, &x)?;
    }
    Ok(())
}

const KERNELS: &[KernelGroup] = if EVERY_FIELD { &[LONG, SHORT, GOLDILOCKS] } else { &[LONG, SHORT] };

const LONG: KernelGroup = KernelGroup {
    name: launches::LONG_TRANSFORMS,
    cases: &[
        "bls12-381-fr::passes",
        "bls12-381-fr::orders_cosets_batches",
        "bls12-381-fr::columns",
        "bls12-381-fr::splits_and_twiddles",
        "bls12-381-fr::factors_alone",
        "bls12-381-fr::first_round",
        "bls12-381-fr::pipelines",
        "bls12-381-fr::pinned",
    ],
    kernels: kernels::<Fr>,
};

const GOLDILOCKS: KernelGroup = KernelGroup {
    name: "ntt-goldilocks",
    cases: &[
        "goldilocks::passes",
        "goldilocks::orders_cosets_batches",
        "goldilocks::columns",
        "goldilocks::splits_and_twiddles",
        "goldilocks::factors_alone",
        "goldilocks::first_round",
        "goldilocks::pipelines",
        "goldilocks::pinned",
    ],
    kernels: kernels::<small::Goldilocks>,
};

const SHORT: KernelGroup = KernelGroup {
    name: launches::SHORT_TRANSFORMS,
    cases: &[
        "baby-bear::passes",
        "baby-bear::orders_cosets_batches",
        "baby-bear::columns",
        "baby-bear::splits_and_twiddles",
        "baby-bear::factors_alone",
        "baby-bear::first_round",
        "baby-bear::pipelines",
        "baby-bear::pinned",
        "baby-bear::matrices",
        "baby-bear::many_columns",
        "baby-bear::extensions_by_blocks",
        "baby-bear-4::extensions",
    ],
    kernels: kernels::<small::BabyBear>,
};

/// Transforms over a field, whose elements decide how large tiles are.
fn basic<F: DeviceField + FftField>(trials: &mut DeviceTrials<'_>, field: &str) {
    trials.add(&format!("{field}::definition"), definition::<F>);
    trials.add(&format!("{field}::sizes"), sizes::<F>);
    trials.add(&format!("{field}::passes"), passes::<F>);
    trials.add(&format!("{field}::orders_cosets_batches"), orders_cosets_batches::<F>);
    trials.add(&format!("{field}::edge_values"), edge_values::<F>);
}

/// Everything made of them too.
fn over<F: DeviceField + FftField>(trials: &mut DeviceTrials<'_>, field: &str) {
    basic::<F>(trials, field);
    trials.add(&format!("{field}::columns"), columns::<F>);
    trials.add(&format!("{field}::splits_and_twiddles"), splits_and_twiddles::<F>);
    further::<F>(trials, field);
}

/// What depends less on the field.
fn further<F: DeviceField + FftField>(trials: &mut DeviceTrials<'_>, field: &str) {
    trials.add(&format!("{field}::factors_alone"), factors_alone::<F>);
    trials.add(&format!("{field}::first_round"), first_round::<F>);
    trials.add(&format!("{field}::products"), extensions::products::<F>);
    trials.add(&format!("{field}::extensions"), extensions::extensions::<F>);
    trials.add(&format!("{field}::matrices"), extensions::matrices::<F>);
    trials.add(&format!("{field}::pipelines"), host::pipelines::<F>);
    trials.add(&format!("{field}::pinned"), host::pinned::<F>);
    // Emulated GPUs take a minute and more for longer elements, whose blocks are cut as those of words.
    if F::LIMBS == 1 || !trials.device.info().features.software {
        trials.add_alone(&format!("{field}::blocks_of_columns"), host::blocks_of_columns::<F>);
        trials.add(&format!("{field}::extensions_by_blocks"), extensions::by_blocks::<F>);
    }
    trials.add(&format!("{field}::out-of-core"), host::out_of_core::<F>);
    trials.add(&format!("{field}::host_slices"), host::host_slices::<F>);
    trials.add(&format!("{field}::misuse"), plan::misuse::<F>);
}

/// The forward transform by arkworks' own implementation.
fn arkworks<F: FftField>(x: &[F], g: F) -> Vec<F> {
    let domain = Radix2EvaluationDomain::<F>::new(x.len()).and_then(|domain| domain.get_coset(g));
    domain.map_or_else(Vec::new, |domain| domain.fft(x))
}

/// Naive at sizes that it can do: where sizes are few, at those that [`sizes`] has kernels for.
fn definition<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let all: &[u32] = if is_brief::<F>(device) { &[0, 1, 4] } else { &[0, 1, 2, 3, 4, 5, 6] };
    for &log_n in all {
        let x = samples::<F>(1 << log_n, 6);
        let ntt = Ntt::new(device, log_n)?;
        let mut data = device.upload(&x)?;
        ntt.forward(&mut data)?;
        expect_same(&format!("2^{log_n}"), &data.to_vec()?, &reference::forward(&x, F::ONE))?;
    }
    Ok(())
}

/// Every size up to one that takes two passes on every device, and some that take three.
fn sizes<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let all: &[u32] = if is_brief::<F>(device) {
        &[0, 1, 4, 8, 11, 14]
    } else {
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16]
    };
    for &log_n in all.iter().filter(|log_n| **log_n <= F::TWO_ADICITY) {
        let x = samples::<F>(1 << log_n, 7);
        let ntt = Ntt::new(device, log_n)?;
        let mut data = device.upload(&x)?;
        ntt.forward(&mut data)?;
        expect_same(&format!("forward 2^{log_n}"), &data.to_vec()?, &arkworks(&x, F::ONE))?;
        ntt.inverse(&mut data)?;
        expect_same(&format!("inverse 2^{log_n}"), &data.to_vec()?, &x)?;
    }
    Ok(())
}

/// log₂ of a size and a number of transforms: sizes that take one pass and two, and three with the second split.
const RUNS: [((u32, usize), Split); 14] = {
    use Split::{Balanced, Halves, ThreeWay};
    [
        ((0, 3), Balanced),
        ((1, 5), Balanced),
        ((4, 1), Balanced),
        ((5, 7), Balanced),
        ((9, 3), Balanced),
        ((11, 2), Balanced),
        ((13, 1), Balanced),
        ((14, 3), Balanced),
        ((3, 5), ThreeWay),
        ((6, 3), ThreeWay),
        ((13, 2), ThreeWay),
        ((1, 3), Halves),
        ((7, 70), Halves),
        ((13, 2), Halves),
    ]
};

/// log₂ of the rows, the columns, and the number of matrices.
const MATRICES: [((u32, usize, usize), Split); 10] = {
    use Split::{Balanced, Halves, ThreeWay};
    [
        ((0, 3, 2), Balanced),
        ((1, 2, 3), Balanced),
        ((3, 1, 4), Balanced),
        ((4, 5, 1), Balanced),
        ((6, 33, 3), Balanced),
        ((9, 7, 2), Balanced),
        ((12, 3, 1), Balanced),
        ((7, 5, 2), ThreeWay),
        ((5, 5, 1), Halves),
        ((11, 3, 2), Halves),
    ]
};

/// Of [`RUNS`], a size of one workgroup and of several, of two passes and of three, and of a round before one pass.
const FEW_RUNS: [((u32, usize), Split); 5] = {
    use Split::{Balanced, Halves, ThreeWay};
    [((4, 1), Balanced), ((5, 70), Balanced), ((11, 2), Balanced), ((6, 3), ThreeWay), ((5, 70), Halves)]
};

const FEW_MATRICES: [((u32, usize, usize), Split); 4] = {
    use Split::{Balanced, Halves, ThreeWay};
    [((4, 5, 1), Balanced), ((11, 3, 1), Balanced), ((7, 5, 2), ThreeWay), ((5, 5, 1), Halves)]
};

/// Whether trials over a field keep to few sizes on a device: on request, and for fields with slow compilers. A GPU's
/// compiler takes tens of seconds for each pass over them, and seconds where it is the processor's. Short fields have
/// all sizes there.
fn is_brief<F: DeviceField>(device: &Device) -> bool {
    let most = if is_emulated(device) && !EVERY_FIELD { 2 } else { 12 };
    is_few(device) || device.info().id.kind != Kind::Cpu && F::LIMBS > most
}

/// log₂ of the size with which all sources of factors are tried where sizes are few.
const FEW_LOG_N: u32 = 11;

/// The kernels that the trials with few sizes launch: of transforms side by side and one after the other, in every
/// order, and with every source of factors.
fn kernels<F: DeviceField + FftField>(info: &DeviceInfo) -> Result<Vec<KernelSpec>, Failed> {
    let runs = FEW_RUNS.map(|((log_n, _), split)| (log_n, split, false));
    let matrices = FEW_MATRICES.map(|((log_n, ..), split)| (log_n, split, true));
    let mut kernels = Vec::new();
    for (log_n, split, side_by_side) in runs.into_iter().chain(matrices) {
        let plan = Ntt::<F>::all_kernels(info, log_n, NttConfig::default().split(split))?;
        kernels.extend(plan.into_iter().filter(|kernel| kernel.variant.contains("interleaved") == side_by_side));
    }
    for twiddles in Twiddles::ALL {
        let config = NttConfig::default().twiddles(twiddles).split(Split::ThreeWay);
        kernels.extend(Ntt::<F>::kernels(info, FEW_LOG_N, config)?);
    }
    kernels.extend(TwiddleTable::<F>::kernels());
    Ok(kernels)
}

/// That the few sizes take one pass, two and three, where passes are as on a GPU.
fn passes<F: DeviceField + FftField>(device: &Device) -> Outcome {
    if device.info().limits.workgroup_threads == 1 {
        return Ok(());
    }
    for (((log_n, _), split), expected) in FEW_RUNS.into_iter().zip([1, 1, 2, 3, 2]) {
        let ntt = Ntt::<F>::with_config(device, log_n, NttConfig::default().split(split))?;
        expect_equal(&format!("passes of 2^{log_n}, {split:?}"), &ntt.passes_per_transform(), &expected)?;
    }
    Ok(())
}

fn orders_cosets_batches<F: DeviceField + FftField>(device: &Device) -> Outcome {
    orders_cosets_batches_of::<F>(device, if is_brief::<F>(device) { &FEW_RUNS } else { &RUNS })
}

/// Over fields whose arithmetic others have too: at few sizes on devices that the processor emulates, of one pass and
/// of two where that compiles for long.
fn few_orders_cosets_batches<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let info = device.info();
    orders_cosets_batches_of::<F>(
        device,
        match info.features.software {
            true if info.id.kind == Kind::Wgpu => &FEW_RUNS[1..3],
            true => &FEW_RUNS,
            false => &RUNS,
        },
    )
}

fn orders_cosets_batches_of<F: DeviceField + FftField>(device: &Device, runs: &[((u32, usize), Split)]) -> Outcome {
    // These are kernels of their own, and emulated devices take long to compile them over long fields.
    let elsewhere = F::LIMBS == 1 || !device.info().features.software;
    for &((log_n, batch), split) in runs {
        let n = 1 << log_n;
        let ntt = Ntt::<F>::with_config(device, log_n, NttConfig::default().split(split))?;
        let x = samples::<F>(n * batch, 8);
        for g in [F::ONE, F::GENERATOR, -F::from(3u8)] {
            let expected: Vec<F> = x.chunks(n).flat_map(|x| arkworks(x, g)).collect();
            for (input, output) in ORDERS {
                let reorder = |x: &[F], order| -> Vec<F> {
                    x.chunks(n).flat_map(|x| reference::reorder(x, Order::Natural, order)).collect()
                };
                let what = format!("2^{log_n} × {batch}, {split:?}, {input:?} to {output:?}, coset of {g}");
                let mut data = device.upload(&reorder(&x, input))?;
                ntt.coset(g).input(input).output(output).forward(&mut data)?;
                expect_same(&format!("forward, {what}"), &data.to_vec()?, &reorder(&expected, output))?;
                ntt.coset(g).input(output).output(input).inverse(&mut data)?;
                expect_same(&format!("inverse, {what}"), &data.to_vec()?, &reorder(&x, input))?;
                if elsewhere && g == F::GENERATOR {
                    let others = samples::<F>(data.len(), 9);
                    let mut values = device.upload(&others)?;
                    ntt.coset(g).input(input).output(output).forward_into(&data, &mut values)?;
                    expect_same(&format!("forward into, {what}"), &values.to_vec()?, &reorder(&expected, output))?;
                    expect_same("the source as it was", &data.to_vec()?, &reorder(&x, input))?;
                    data.write(&others)?;
                    ntt.coset(g).input(output).output(input).inverse_into(&values, &mut data)?;
                    expect_same(&format!("inverse into, {what}"), &data.to_vec()?, &reorder(&x, input))?;
                }
            }
        }
    }
    Ok(())
}

/// The error of an argument of another length.
fn length(what: &'static str, expected: usize, actual: usize) -> Error {
    Error::Device(DeviceError::length(what, expected, actual))
}

const ORDERS: [(Order, Order); 4] = {
    use Order::{BitReversed, Natural};
    [(Natural, Natural), (Natural, BitReversed), (BitReversed, Natural), (BitReversed, BitReversed)]
};

/// Transforms side by side, in several matrices.
fn columns<F: DeviceField + FftField>(device: &Device) -> Outcome {
    columns_of::<F>(device, if is_brief::<F>(device) { &FEW_MATRICES[..] } else { &MATRICES })?;
    let ntt = Ntt::<F>::new(device, 2)?;
    let mut data = device.upload(&[F::ONE; 20])?;
    for (count, unit) in [(0, 0), (3, 12), (usize::MAX, usize::MAX)] {
        let error = expect_error("columns that do not fit", ntt.transform().columns(count).forward(&mut data))?;
        expect_equal("length", &error, &length("the data of a transform, a multiple of", unit, 20))?;
    }
    expect_same("untouched", &data.to_vec()?, &[F::ONE; 20])
}

/// Elements enough for every unit of a device: threads take the most short ones that they can, in passes of that number
/// of points and of more. Threads of WGSL take no more than others. Emulated Vulkan compiles for long, and has one
/// split.
fn long<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let software = device.info().features.software;
    let log_n = match software {
        true => 12,
        false if is_checked_cpu(device) => 16,
        false => 18,
    };
    let brief = software && device.info().id.kind == Kind::Wgpu;
    for split in if brief { &[Split::ThreeWay][..] } else { &[Split::Balanced, Split::ThreeWay] } {
        orders_cosets_batches_of::<F>(device, &[((log_n, 1), *split)])?;
        columns_of::<F>(device, &[((log_n, 3, 1), *split)])?;
    }
    Ok(())
}

/// Columns enough for the tiles that GPUs have for many: in one pass and in several.
fn many_columns(device: &Device) -> Outcome {
    let DeviceInfo { features, id, .. } = device.info();
    let all = match (features.software, id.kind) {
        (true, Kind::Wgpu) => &[(10, 64)][..],
        (true, _) => &[(10, 128), (11, 64)],
        (false, _) if device.info().is_processor() => &[(10, 128)],
        (false, _) => &[(10, 4096), (14, 256), (18, 16)],
    };
    let all: Vec<_> = all.iter().map(|(log_n, columns)| ((*log_n, *columns, 1), Split::Balanced)).collect();
    let orders = [(Order::Natural, Order::Natural), (Order::Natural, Order::BitReversed)];
    columns_between::<small::BabyBear>(device, &all, &[small::BabyBear::GENERATOR], &orders)
}

fn columns_of<F: DeviceField + FftField>(device: &Device, all: &[((u32, usize, usize), Split)]) -> Outcome {
    columns_between::<F>(device, all, &[F::ONE, F::GENERATOR], &ORDERS)
}

fn columns_between<F: DeviceField + FftField>(
    device: &Device,
    all: &[((u32, usize, usize), Split)],
    cosets: &[F],
    orders: &[(Order, Order)],
) -> Outcome {
    for &((log_n, count, matrices), split) in all {
        let n = 1usize << log_n;
        let ntt = Ntt::<F>::with_config(device, log_n, NttConfig::default().split(split))?;
        let x = samples::<F>(n * count * matrices, 21);
        for &g in cosets {
            let expected: Vec<F> = by_columns(&x, n, count, |x| arkworks(x, g));
            for &(input, output) in orders {
                let reorder =
                    |x: &[F], order| by_columns(x, n, count, |x| reference::reorder(x, Order::Natural, order));
                let what =
                    format!("{matrices} of 2^{log_n} × {count}, {split:?}, {input:?} to {output:?}, coset of {g}");
                let mut data = device.upload(&reorder(&x, input))?;
                let transform = ntt.coset(g).columns(count);
                transform.clone().input(input).output(output).forward(&mut data)?;
                expect_same(&format!("forward, {what}"), &data.to_vec()?, &reorder(&expected, output))?;
                transform.input(output).output(input).inverse(&mut data)?;
                expect_same(&format!("inverse, {what}"), &data.to_vec()?, &reorder(&x, input))?;
            }
        }
    }
    Ok(())
}

/// Applies a function to each column of matrices of `rows` × `columns`, stored by rows.
fn by_columns<F: Field>(x: &[F], rows: usize, columns: usize, apply: impl Fn(&[F]) -> Vec<F>) -> Vec<F> {
    let matrix = |x: &[F]| {
        let results: Vec<Vec<F>> =
            (0..columns).map(|c| apply(&(0..rows).map(|r| x[r * columns + c]).collect::<Vec<F>>())).collect();
        let rows = results.first().map_or(0, Vec::len);
        (0..rows * columns).map(|i| results[i % columns][i / columns]).collect::<Vec<F>>()
    };
    x.chunks(rows * columns).flat_map(matrix).collect()
}

/// Every way of splitting and every source of factors.
fn splits_and_twiddles<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let splits = Split::ALL.map(|split| NttConfig::default().split(split));
    let sources = Twiddles::ALL.map(|twiddles| NttConfig::default().twiddles(twiddles).split(Split::ThreeWay));
    // An emulated GPU takes seconds to compile a kernel over several limbs.
    let sizes: &[u32] = match F::LIMBS {
        13.. if device.info().features.software => &[5],
        2.. if device.info().features.software => &[FEW_LOG_N],
        _ if is_few(device) => &[FEW_LOG_N],
        _ => &[1, 4, FEW_LOG_N, 14],
    };
    for &log_n in sizes {
        let x = samples::<F>(1 << log_n, 22);
        let expected = arkworks(&x, F::GENERATOR);
        for config in splits.into_iter().chain(sources) {
            let ntt = Ntt::with_config(device, log_n, config)?;
            let mut data = device.upload(&x)?;
            ntt.coset(F::GENERATOR).forward(&mut data)?;
            expect_same(&format!("forward 2^{log_n}, {config:?}"), &data.to_vec()?, &expected)?;
            ntt.coset(F::GENERATOR).inverse(&mut data)?;
            expect_same(&format!("inverse 2^{log_n}, {config:?}"), &data.to_vec()?, &x)?;
            ntt.transform().output(Order::BitReversed).forward(&mut data)?;
            ntt.transform().input(Order::BitReversed).inverse(&mut data)?;
            expect_same(&format!("there and back 2^{log_n}, {config:?}"), &data.to_vec()?, &x)?;
            ntt.forward(&mut data)?;
            ntt.inverse(&mut data)?;
            expect_same(&format!("in natural order 2^{log_n}, {config:?}"), &data.to_vec()?, &x)?;
        }
    }
    Ok(())
}

/// The factors alone, by every method, against powers.
fn factors_alone<F: DeviceField + FftField>(device: &Device) -> Outcome {
    for log_n in [0, 1, 2, 5, 10] {
        let w = reference::root_of_unity::<F>(log_n).ok_or("no root of unity")?;
        let columns = 1u64 << log_n.div_ceil(2);
        let expected: Vec<F> = (0..1u64 << log_n).map(|i| w.pow([(i % columns) * (i / columns)])).collect();
        for method in Twiddles::ALL {
            let table = TwiddleTable::<F>::new(device, log_n, method)?;
            let mut factors = device.upload::<Mont<F>>(&vec![F::ZERO; table.size()])?;
            table.fill(&mut factors)?;
            expect_same(&format!("factors of 2^{log_n}, {method:?}"), &factors.to_vec()?, &expected)?;
        }
    }
    let table = TwiddleTable::<F>::new(device, 4, Twiddles::TwoLevel)?;
    let error = expect_error("a table of another length", table.fill(&mut device.zeros(15)?))?;
    expect_equal("length", &error, &length("a table of twiddles", 16, 15))
}

/// The first round alone leaves two transforms, of the outputs with even index and of those with odd index, on a coset
/// too; where log₂ n is even there is none.
fn first_round<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let halves = NttConfig::default().split(Split::Halves);
    let n = 1usize << 5;
    let x = samples::<F>(3 * n, 23);
    for g in [F::ONE, F::GENERATOR] {
        let expected: Vec<F> = x.chunks(n).flat_map(|x| arkworks(x, g)).collect();
        let mut data = device.upload(&x)?;
        let ntt = Ntt::<F>::with_config(device, 5, halves)?;
        expect_equal("rounds of 2^5", &ntt.coset(g).halve(&mut data)?, &1)?;
        let (w, half) = (reference::root_of_unity::<F>(5).ok_or("no root")?, n / 2);
        let of = |x: &[F], i: usize| {
            let (a, b) =
                (x[i % half] * g.pow([(i % half) as u64]), x[i % half + half] * g.pow([(i % half + half) as u64]));
            if i < half { a + b } else { (a - b) * w.pow([(i - half) as u64]) }
        };
        let halves: Vec<F> = x.chunks(n).flat_map(|x| (0..n).map(|i| of(x, i)).collect::<Vec<_>>()).collect();
        expect_same(&format!("halves, coset of {g}"), &data.to_vec()?, &halves)?;
        Ntt::<F>::new(device, 4)?.forward(&mut data)?;
        let values = data.to_vec()?;
        let together: Vec<F> = (0..3 * n).map(|i| values[i / n * n + i % 2 * (n / 2) + i % n / 2]).collect();
        expect_same(&format!("even and odd outputs, coset of {g}"), &together, &expected)?;
    }
    let mut data = device.upload(&x)?;
    for (log_n, split) in [(4, Split::Halves), (5, Split::Square), (0, Split::Halves)] {
        let ntt = Ntt::<F>::with_config(device, log_n, halves.split(split))?;
        expect_equal(&format!("rounds of 2^{log_n}, {split:?}"), &ntt.transform().halve(&mut data)?, &0)?;
    }
    expect_same("untouched", &data.to_vec()?, &x)
}

fn edge_values<F: DeviceField + FftField>(device: &Device) -> Outcome {
    // Where elements are few, threads take two each. From here on they take the number that registers hold.
    let busy =
        4 * 256 * u64::from(device.info().limits.workgroup_threads.min(2) - 1) * u64::from(device.info().parallelism);
    let few = is_few(device) && F::LIMBS > 8;
    let log_n = if few { 10 } else { busy.max(1 << 10).next_power_of_two().ilog2().min(F::TWO_ADICITY) };
    let n = 1 << log_n;
    let ntt = Ntt::new(device, log_n)?;
    let extremes =
        |is: &dyn Fn(usize) -> bool| (0..n).map(|i| if is(i) { -F::ONE } else { F::ZERO }).collect::<Vec<F>>();
    let spike = |at: usize| extremes(&|i| i == at);
    // Alternating with the first digits of indexes, and with the last ones, and neither.
    let (high, low, mixed) =
        (extremes(&|i| i < n / 2), extremes(&|i| i % 2 == 0), extremes(&|i| i.count_ones() % 2 == 0));
    let cases =
        [vec![F::ZERO; n], vec![F::ONE; n], vec![-F::ONE; n], spike(0), spike(1), spike(n - 1), high, low, mixed];
    for (case, x) in cases.iter().enumerate() {
        let mut data = device.upload(x)?;
        ntt.forward(&mut data)?;
        expect_same(&format!("case {case}"), &data.to_vec()?, &arkworks(x, F::ONE))?;
        ntt.inverse(&mut data)?;
        expect_same(&format!("inverse of case {case}"), &data.to_vec()?, x)?;
    }
    Ok(())
}
