//! Transforms over every field with two-adicity.

use std::{sync::Arc, thread};

use ark_bls12_381::Fr;
use ark_ff::{FftField, Field};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use evariste_backend::{
    Device, DeviceInfo, Element, Error as DeviceError, HostBuffer, KernelSpec, Kind, Secrecy, Transfer,
};
use evariste_field::{DeviceField, Mont, small};
use evariste_ntt::{
    Config, Error, LowDegreeExtension, Ntt, Order, OutOfCore, Pipeline, Split, Twiddles, crossover, forward,
    forward_out_of_core, inverse, inverse_out_of_core, reference, set_crossover,
};

use libtest_mimic::Failed;

use crate::{
    Outcome, Suite, child, expect, expect_equal, expect_error, expect_same, fields,
    launches::{self, Family},
    other_device,
    recorder::Recorder,
    samples::samples,
    sizes::is_few,
};

pub(crate) fn add(suite: &mut Suite<'_>) {
    over::<ark_bls12_381::Fr>(suite, "bls12-381-fr");
    over::<small::Goldilocks>(suite, "goldilocks");
    over::<small::BabyBear>(suite, "baby-bear");
    basic::<fields::Mnt4>(suite, "mnt4-753-fr");
    suite.add("bn254-fr::orders_cosets_batches", few_orders_cosets_batches::<ark_bn254::Fr>);
    suite.add("bls12-377-fr::orders_cosets_batches", few_orders_cosets_batches::<ark_bls12_377::Fr>);
    suite.add("pallas-fq::orders_cosets_batches", few_orders_cosets_batches::<ark_pallas::Fq>);
    suite.add("vesta-fq::orders_cosets_batches", few_orders_cosets_batches::<ark_vesta::Fq>);
    suite.add("koala-bear::orders_cosets_batches", few_orders_cosets_batches::<small::KoalaBear>);
    suite.add("goldilocks::long", long::<small::Goldilocks>);
    suite.add("baby-bear::long", long::<small::BabyBear>);
    suite.add("baby-bear::interrupted", interrupted);
    suite.add("baby-bear-4::extensions", extensions_of_extension_elements);
    suite.add("bls12-381-fr::large", large::<ark_bls12_381::Fr>);
    suite.add("bls12-381-fr::no_host_copies_and_few_launches", no_host_copies_and_few_launches);
    suite.add_alone("bls12-381-fr::crossover", slices_stay_on_the_cpu_below_the_crossover);
    suite.add("bls12-381-fr::two_threads", two_threads);
    suite.add("bls12-381-fr::queues", queues);
    suite.add_alone("bls12-381-fr::required_bytes", required_bytes);
}

pub(crate) const FAMILIES: &[Family] = &[
    Family {
        name: launches::LONG_TRANSFORMS,
        cases: &[
            "bls12-381-fr::passes",
            "bls12-381-fr::orders_cosets_batches",
            "bls12-381-fr::columns",
            "bls12-381-fr::splits_and_twiddles",
            "bls12-381-fr::pipelines",
            "bls12-381-fr::pinned",
        ],
        kernels: kernels::<Fr>,
    },
    Family {
        name: "ntt-goldilocks",
        cases: &[
            "goldilocks::passes",
            "goldilocks::orders_cosets_batches",
            "goldilocks::columns",
            "goldilocks::splits_and_twiddles",
            "goldilocks::pipelines",
            "goldilocks::pinned",
        ],
        kernels: kernels::<small::Goldilocks>,
    },
    Family {
        name: "ntt-baby-bear",
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
        kernels: kernels::<small::BabyBear>,
    },
];

/// Transforms over a field, whose elements decide how large tiles are.
fn basic<F: DeviceField + FftField>(suite: &mut Suite<'_>, field: &str) {
    suite.add(&format!("{field}::definition"), definition::<F>);
    suite.add(&format!("{field}::sizes"), sizes::<F>);
    suite.add(&format!("{field}::passes"), passes::<F>);
    suite.add(&format!("{field}::orders_cosets_batches"), orders_cosets_batches::<F>);
    suite.add(&format!("{field}::edge_values"), edge_values::<F>);
}

/// Everything made of them too.
fn over<F: DeviceField + FftField>(suite: &mut Suite<'_>, field: &str) {
    basic::<F>(suite, field);
    suite.add(&format!("{field}::columns"), columns::<F>);
    suite.add(&format!("{field}::splits_and_twiddles"), splits_and_twiddles::<F>);
    suite.add(&format!("{field}::products"), products::<F>);
    suite.add(&format!("{field}::extensions"), extensions::<F>);
    suite.add(&format!("{field}::matrices"), matrices::<F>);
    suite.add(&format!("{field}::pipelines"), pipelines::<F>);
    suite.add(&format!("{field}::pinned"), pinned::<F>);
    // Emulated GPUs take a minute and more for longer elements, whose blocks are cut as those of words.
    if F::LIMBS == 1 || !suite.device.info().features.software {
        suite.add_alone(&format!("{field}::blocks_of_columns"), blocks_of_columns::<F>);
    }
    suite.add(&format!("{field}::out-of-core"), out_of_core::<F>);
    suite.add(&format!("{field}::host_slices"), host_slices::<F>);
    suite.add(&format!("{field}::misuse"), misuse::<F>);
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
const RUNS: [((u32, usize), Split); 11] = {
    use Split::{Balanced, ThreeWay};
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
    ]
};

/// log₂ of the rows, the columns, and the number of matrices.
const MATRICES: [((u32, usize, usize), Split); 8] = {
    use Split::{Balanced, ThreeWay};
    [
        ((0, 3, 2), Balanced),
        ((1, 2, 3), Balanced),
        ((3, 1, 4), Balanced),
        ((4, 5, 1), Balanced),
        ((6, 33, 3), Balanced),
        ((9, 7, 2), Balanced),
        ((12, 3, 1), Balanced),
        ((7, 5, 2), ThreeWay),
    ]
};

/// Of [`RUNS`], a size of one workgroup and of several, of two passes and of three.
const FEW_RUNS: [((u32, usize), Split); 4] = {
    use Split::{Balanced, ThreeWay};
    [((4, 1), Balanced), ((5, 70), Balanced), ((11, 2), Balanced), ((6, 3), ThreeWay)]
};

const FEW_MATRICES: [((u32, usize, usize), Split); 3] = {
    use Split::{Balanced, ThreeWay};
    [((4, 5, 1), Balanced), ((11, 3, 1), Balanced), ((7, 5, 2), ThreeWay)]
};

/// Whether trials over a field keep to few sizes on a device: where they are asked to, and for fields of which a GPU's compiler
/// takes tens of seconds for each pass.
fn is_brief<F: DeviceField>(device: &Device) -> bool {
    is_few(device) || device.info().id.kind != Kind::Cpu && F::LIMBS > 12
}

/// log₂ of the size with which all sources of factors are tried where sizes are few.
const FEW_LOG_N: u32 = 11;

/// The kernels that the trials with few sizes launch: of transforms side by side and one after the other, in every order, and
/// with every source of factors.
fn kernels<F: DeviceField + FftField>(info: &DeviceInfo) -> Result<Vec<KernelSpec>, Failed> {
    let runs = FEW_RUNS.map(|((log_n, _), split)| (log_n, split, false));
    let matrices = FEW_MATRICES.map(|((log_n, ..), split)| (log_n, split, true));
    let mut kernels = Vec::new();
    for (log_n, split, side_by_side) in runs.into_iter().chain(matrices) {
        let plan = Ntt::<F>::kernels(info, log_n, Config { split, ..Config::default() }, true)?;
        kernels.extend(plan.into_iter().filter(|kernel| kernel.variant.contains("interleaved") == side_by_side));
    }
    for twiddles in Twiddles::ALL {
        kernels.extend(Ntt::<F>::kernels(
            info,
            FEW_LOG_N,
            Config { twiddles: Some(twiddles), split: Split::ThreeWay },
            false,
        )?);
    }
    Ok(kernels)
}

/// That the few sizes take one pass, two and three, where passes are as on a GPU.
fn passes<F: DeviceField + FftField>(device: &Device) -> Outcome {
    if device.info().limits.workgroup_threads == 1 {
        return Ok(());
    }
    for (((log_n, _), split), expected) in FEW_RUNS.into_iter().zip([1, 1, 2, 3]) {
        let ntt = Ntt::<F>::with_config(device, log_n, Config { split, ..Config::default() })?;
        expect_equal(&format!("passes of 2^{log_n}, {split:?}"), &ntt.passes_per_transform(), &expected)?;
    }
    Ok(())
}

fn orders_cosets_batches<F: DeviceField + FftField>(device: &Device) -> Outcome {
    orders_cosets_batches_of::<F>(device, if is_brief::<F>(device) { &FEW_RUNS } else { &RUNS })
}

/// Over fields whose arithmetic others have too: at few sizes on devices that the processor emulates, of one pass and of two
/// where that compiles for long.
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
    // These are kernels of their own, of which emulated devices take long to compile those over long fields.
    let elsewhere = F::LIMBS == 1 || !device.info().features.software;
    for &((log_n, batch), split) in runs {
        let n = 1 << log_n;
        let ntt = Ntt::<F>::with_config(device, log_n, Config { split, ..Config::default() })?;
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
        expect_equal("length", &error, &Error::Length { expected: unit, actual: 20 })?;
    }
    expect_same("untouched", &data.to_vec()?, &[F::ONE; 20])
}

/// Elements enough for every unit of a device, so that threads take as many short ones as they can, in passes of as many points as
/// that and of more. Threads of WGSL take no more than others, so that emulated Vulkan, which compiles for long, has one split.
fn long<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let software = device.info().features.software;
    let log_n = if software { 12 } else { 18 };
    let brief = software && device.info().id.kind == Kind::Wgpu;
    for split in if brief { &[Split::ThreeWay][..] } else { &[Split::Balanced, Split::ThreeWay] } {
        orders_cosets_batches_of::<F>(device, &[((log_n, 1), *split)])?;
        columns_of::<F>(device, &[((log_n, 3, 1), *split)])?;
    }
    Ok(())
}

fn columns_of<F: DeviceField + FftField>(device: &Device, all: &[((u32, usize, usize), Split)]) -> Outcome {
    for &((log_n, count, matrices), split) in all {
        let n = 1usize << log_n;
        let ntt = Ntt::<F>::with_config(device, log_n, Config { split, ..Config::default() })?;
        let x = samples::<F>(n * count * matrices, 21);
        for g in [F::ONE, F::GENERATOR] {
            let expected: Vec<F> = by_columns(&x, n, count, |x| arkworks(x, g));
            for (input, output) in ORDERS {
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
    let splits = Split::ALL.map(|split| Config { split, ..Config::default() });
    let sources = Twiddles::ALL.map(|twiddles| Config { twiddles: Some(twiddles), split: Split::ThreeWay });
    // An emulated GPU takes seconds to compile a kernel over many limbs.
    let sizes: &[u32] = match F::LIMBS {
        13.. if device.info().features.software => &[5],
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

/// Products of polynomials against the schoolbook's.
fn products<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let ntt = Ntt::<F>::new(device, 7)?;
    for (a, b) in [(0, 0), (0, 5), (5, 0), (1, 1), (1, 128), (64, 65), (100, 3), (2, 2)] {
        let (a, b) = (samples::<F>(a, 30), samples::<F>(b, 31));
        let product = ntt.product(&device.upload(&a)?, &device.upload(&b)?)?.to_vec()?;
        expect_same(&format!("{} × {}", a.len(), b.len()), &product, &reference::product(&a, &b))?;
    }
    let [long, short] = [device.upload(&samples::<F>(100, 30))?, device.upload(&samples::<F>(30, 31))?];
    let error = expect_error("a product of 129 coefficients", ntt.product(&long, &short))?;
    expect_equal("size", &error, &Error::TooLarge { expected: 7, actual: 129 })
}

/// Low-degree extensions against values by Horner's rule.
fn extensions<F: DeviceField + FftField>(device: &Device) -> Outcome {
    for (log_n, log_blowup, count) in [(0, 0, 1), (0, 3, 2), (3, 1, 3), (5, 2, 1), (8, 4, 2)] {
        let (n, size) = (1usize << log_n, 1usize << (log_n + log_blowup));
        let extension = LowDegreeExtension::<F>::new(device, log_n, log_blowup)?;
        let coefficients = samples::<F>(n * count, 32);
        let values: Vec<F> = coefficients.chunks(n).flat_map(|x| arkworks(x, F::ONE)).collect();
        let w = reference::root_of_unity::<F>(log_n + log_blowup).ok_or("no root of unity")?;
        let expected: Vec<F> = coefficients
            .chunks(n)
            .flat_map(|x| (0..size as u64).map(|k| reference::horner(x, F::GENERATOR * w.pow([k]))).collect::<Vec<F>>())
            .collect();
        for order in [Order::Natural, Order::BitReversed] {
            let what = format!("{count} of 2^{log_n} to 2^{}, {order:?}", log_n + log_blowup);
            let ordered: Vec<F> =
                expected.chunks(size).flat_map(|x| reference::reorder(x, Order::Natural, order)).collect();
            let given = device.upload(&values)?;
            expect_same(&what, &extension.extend(&given, F::GENERATOR, order)?.to_vec()?, &ordered)?;
            expect_same("values as they were", &given.to_vec()?, &values)?;
            // So that memory which is used again does not hold the result.
            device.upload::<Mont<F>>(&samples(expected.len(), 35))?;
            let from_coefficients = extension.evaluate(&device.upload(&coefficients)?, F::GENERATOR, order)?;
            expect_same(&format!("coefficients, {what}"), &from_coefficients.to_vec()?, &ordered)?;
        }
    }
    let extension = LowDegreeExtension::<F>::new(device, 2, 1)?;
    let mut short = device.upload(&[F::ONE; 7])?;
    let refused = extension.extend_into(&device.zeros(4)?, F::ONE, Order::BitReversed, &mut short);
    expect_error("an output of seven for eight values", refused)?;
    expect_same("an output as it was", &short.to_vec()?, &[F::ONE; 7])?;
    for (columns, unit) in [(0, 0), (3, 12), (usize::MAX, usize::MAX)] {
        let refused = extension.clone().columns(columns).extend(&device.zeros(20)?, F::ONE, Order::BitReversed);
        let error = expect_error("columns that do not fit", refused)?;
        expect_equal("length", &error, &Error::Length { expected: unit, actual: 20 })?;
        let nothing = extension.clone().columns(columns).extend(&device.alloc(0)?, F::ONE, Order::BitReversed)?;
        expect_equal("values of nothing", &nothing.len(), &0)?;
    }
    let values = device.upload(&[F::ONE; 6])?;
    let error = expect_error("six values for runs of four", extension.extend(&values, F::ONE, Order::Natural))?;
    expect_equal("length", &error, &Error::Length { expected: 4, actual: 6 })?;
    let error = expect_error("a coset of zero", extension.extend(&device.zeros(4)?, F::ZERO, Order::Natural))?;
    expect_equal("coset", &error, &Error::ZeroCoset)?;
    let beyond = F::TWO_ADICITY + 1;
    let error = expect_error("too large an extension", LowDegreeExtension::<F>::new(device, 1, F::TWO_ADICITY))?;
    expect_equal("two-adicity", &error, &Error::TwoAdicity { expected: F::TWO_ADICITY, actual: beyond })
}

/// Extensions of the columns of matrices: coset by coset and whole, in one pass and in several.
fn matrices<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let all = [(3, 1, 5, 2), (0, 2, 3, 1), (7, 2, 9, 1), (11, 1, 2, 2), (12, 4, 1, 1)];
    // Those of several passes are many kernels more, which emulated devices compile for long.
    let emulated = F::LIMBS > 2 && device.info().features.software;
    for (log_n, log_blowup, columns, matrices) in if emulated || is_few(device) { &all[..1] } else { &all[..] } {
        let (n, size) = (1usize << log_n, 1usize << (log_n + log_blowup));
        let extension = LowDegreeExtension::<F>::new(device, *log_n, *log_blowup)?.columns(*columns);
        let values = samples::<F>(n * columns * matrices, 33);
        let by_runs: Vec<F> = by_columns(&values, n, *columns, |column| {
            let mut coefficients =
                Radix2EvaluationDomain::<F>::new(n).map_or_else(Vec::new, |domain| domain.ifft(column));
            coefficients.resize(size, F::ZERO);
            arkworks(&coefficients, F::GENERATOR)
        });
        let given = device.upload(&values)?;
        for order in [Order::Natural, Order::BitReversed] {
            let expected = by_columns(&by_runs, size, *columns, |x| reference::reorder(x, Order::Natural, order));
            let what = format!("{matrices} of 2^{log_n} × {columns} to 2^{}, {order:?}", log_n + log_blowup);
            expect_same(&what, &extension.extend(&given, F::GENERATOR, order)?.to_vec()?, &expected)?;
            expect_same("values as they were", &given.to_vec()?, &values)?;
        }
    }
    Ok(())
}

/// The values of polynomials over an extension field, on a coset in the field below: each element is as many columns as it has
/// coefficients.
fn extensions_of_extension_elements(device: &Device) -> Outcome {
    type F = small::BabyBear;
    let (log_n, log_blowup, columns) = (5, 2, 3);
    let (n, size) = (1usize << log_n, 1u64 << (log_n + log_blowup));
    let coefficients = samples::<small::BabyBear4>(n * columns, 34);
    let generator = F::GENERATOR;
    let w = reference::root_of_unity::<F>(log_n + log_blowup).ok_or("no root of unity")?;
    let expected = by_columns(&coefficients, n, columns, |x| {
        let points = (0..size).map(|k| small::BabyBear4::from_base_prime_field(generator * w.pow([k])));
        let values: Vec<_> = points.map(|z| reference::horner(x, z)).collect();
        reference::reorder(&values, Order::Natural, Order::BitReversed)
    });
    let extension = LowDegreeExtension::<F>::new(device, log_n, log_blowup)?.columns(4 * columns);
    let given = device.upload::<Mont<small::BabyBear4>>(&coefficients)?;
    let values = extension.evaluate(given.as_view().flattened(), generator, Order::BitReversed)?;
    let expected: Vec<F> = expected.iter().flat_map(Field::to_base_prime_field_elements).collect();
    expect_same("values", &values.to_vec()?, &expected)?;

    // In place, and from one buffer to another.
    let mut data = device.upload::<Mont<small::BabyBear4>>(&coefficients)?;
    let ntt = Ntt::<F>::new(device, log_n)?;
    ntt.transform().columns(4 * columns).forward(data.as_view_mut().flattened())?;
    let mut others = device.alloc::<Mont<small::BabyBear4>>(coefficients.len())?;
    ntt.transform().columns(4 * columns).forward_into(given.as_view().flattened(), others.as_view_mut().flattened())?;
    expect_same("two buffers", &others.to_vec()?, &data.to_vec()?)?;
    expect_same("the first as it was", &given.to_vec()?, &coefficients)?;
    ntt.transform().columns(4 * columns).inverse_into(others.as_view().flattened(), data.as_view_mut().flattened())?;
    expect_same("and back", &data.to_vec()?, &coefficients)
}

/// Host data with less device memory than it takes.
fn out_of_core<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let element = Mont::<F>::BYTES as u64;
    let all = [(3u32, 4), (8, 5), (0, 4), (1, 7), (4, 4), (5, 4), (11, 9), (12, u64::MAX)];
    for &(log_n, lines) in if is_brief::<F>(device) { &all[..2] } else { &all } {
        let x = samples::<F>(1 << log_n, 33);
        let bytes = ((11 * element) << log_n.div_ceil(2)).saturating_mul(lines);
        let mut y = x.clone();
        forward_out_of_core(device, &mut y, bytes)?;
        expect_same(&format!("forward 2^{log_n} by {lines} lines"), &y, &arkworks(&x, F::ONE))?;
        inverse_out_of_core(device, &mut y, bytes)?;
        expect_same(&format!("inverse 2^{log_n} by {lines} lines"), &y, &x)?;
    }
    // One plan for several slices, whatever the direction.
    let x = samples::<F>(1 << 7, 33);
    let mut plan = OutOfCore::<F>::new(device, 7, (11 * element) << 4 << 2, Secrecy::Secret)?;
    let mut y = x.clone();
    for turn in ["the first", "the second"] {
        plan.forward(&mut y)?;
        expect_same(&format!("forward, {turn} time"), &y, &arkworks(&x, F::ONE))?;
        plan.inverse(&mut y)?;
        expect_same(&format!("inverse, {turn} time"), &y, &x)?;
    }
    let error = expect_error("half a slice", plan.forward(&mut y[1..]))?;
    expect_equal("length", &error, &Error::Length { expected: 128, actual: 127 })?;
    expect_same("untouched", &y, &x)?;
    let mut x = samples::<F>(64, 33);
    let least = 4 * 8 * 11 * element;
    let error = expect_error("less than four columns", forward_out_of_core(device, &mut x, least - 1))?;
    expect_equal("memory", &error, &Error::TooLittle { expected: least, actual: least - 1 })?;
    let error = expect_error("a length of 63", forward_out_of_core(device, &mut x[1..], u64::MAX))?;
    expect_equal("length", &error, &Error::NotPowerOfTwo { actual: 63 })?;
    expect_same("untouched", &x, &samples::<F>(64, 33))
}

/// Single transforms from and to pinned memory: of one pass and of more.
fn pinned<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let secrecy = Secrecy::Secret;
    let all = [(3, 1), (12, 1), (0, 3), (9, 2), (13, 3), (15, 1)];
    for &(log_n, batch) in if is_brief::<F>(device) { &all[..2] } else { &all[..] } {
        let n = 1usize << log_n;
        let ntt = Ntt::<F>::new(device, log_n)?;
        let x = samples::<F>(n * batch, 44);
        let y: Vec<F> = x.chunks(n).flat_map(|x| arkworks(x, F::GENERATOR)).collect();
        for (input, output) in ORDERS {
            let reorder = |x: &[F], order| -> Vec<F> {
                x.chunks(n).flat_map(|x| reference::reorder(x, Order::Natural, order)).collect()
            };
            let mut host = device.host_buffer(x.len() * Mont::<F>::BYTES, Transfer::Both, secrecy)?;
            Mont::<F>::encode(&reorder(&x, input), &mut host);
            let host = ntt.coset(F::GENERATOR).input(input).output(output).forward_pinned(host, secrecy)?;
            let mut actual = vec![F::ZERO; x.len()];
            Mont::<F>::decode(&host, &mut actual)?;
            let what = format!("2^{log_n} × {batch}, {input:?} to {output:?}");
            expect_same(&format!("forward, {what}"), &actual, &reorder(&y, output))?;
            let host = ntt.coset(F::GENERATOR).input(output).output(input).inverse_pinned(host, secrecy)?;
            Mont::<F>::decode(&host, &mut actual)?;
            expect_same(&format!("inverse, {what}"), &actual, &reorder(&x, input))?;
        }
    }
    let ntt = Ntt::<F>::new(device, 4)?;
    let host = device.host_buffer(15 * Mont::<F>::BYTES, Transfer::Both, Secrecy::Public)?;
    let error = expect_error("another length", ntt.transform().forward_pinned(host, Secrecy::Public))?;
    expect_equal("length", &error, &Error::Length { expected: 16, actual: 15 })?;
    let bytes = Mont::<F>::BYTES;
    let single = Ntt::<F>::new(device, 0)?;
    for (ntt, len) in [(&ntt, 16 * bytes + 1), (&single, bytes - 1), (&single, 1)] {
        let host = device.host_buffer(len, Transfer::Both, Secrecy::Public)?;
        let error = expect_error("a part of an element", ntt.transform().forward_pinned(host, Secrecy::Public))?;
        let expected = len.next_multiple_of(bytes);
        expect_equal("bytes", &error, &Error::HostBytes { expected, actual: len })?;
    }
    let upload_only = device.host_buffer(16 * Mont::<F>::BYTES, Transfer::Upload, Secrecy::Public)?;
    expect_error("host memory for uploads only", ntt.transform().forward_pinned(upload_only, Secrecy::Public)).map(drop)
}

/// Transforms from and to pinned memory that come and go in blocks of columns, which have launches of their own. Where copies
/// overlap kernels, that takes rows of 64 KiB, so that transforms are the longer the shorter elements are.
fn blocks_of_columns<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let secrecy = Secrecy::Public;
    let (log_n, split) = if device.info().features.queues {
        // Of three passes, the first takes a third of the levels.
        let log_row = ((64 << 10) / Mont::<F>::BYTES).ilog2();
        (log_row + log_row.div_ceil(2), Split::ThreeWay)
    } else {
        // With the kernels of other trials.
        (15, Split::Balanced)
    };
    let ntt = Ntt::<F>::with_config(device, log_n, Config { split, ..Config::default() })?;
    let x = samples::<F>(1 << log_n, 45);
    let y = arkworks(&x, F::GENERATOR);
    let mut host = device.host_buffer(x.len() * Mont::<F>::BYTES, Transfer::Both, secrecy)?;
    Mont::<F>::encode(&x, &mut host);
    let mut actual = vec![F::ZERO; x.len()];
    let mut launches = 0;
    // Tables are made the first time.
    for _ in 0..2 {
        let before = device.stats().launches;
        host = ntt.coset(F::GENERATOR).forward_pinned(host, secrecy)?;
        Mont::<F>::decode(&host, &mut actual)?;
        expect_same(&format!("forward 2^{log_n}"), &actual, &y)?;
        host = ntt.coset(F::GENERATOR).inverse_pinned(host, secrecy)?;
        Mont::<F>::decode(&host, &mut actual)?;
        expect_same(&format!("inverse 2^{log_n}"), &actual, &x)?;
        launches = device.stats().launches - before;
    }
    // The first pass and the last one, there and back.
    let least = 2 * (ntt.passes_per_transform() as u64 + 2);
    expect(&format!("{launches} launches for 2^{log_n}, at least {least}"), launches >= least)
}

/// Streams of transforms from and to pinned memory.
fn pipelines<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let (log_n, batch) = (9, 3);
    let n = 1usize << log_n;
    let ntt = Ntt::<F>::new(device, log_n)?;
    let pinned = |x: &[F]| -> Result<HostBuffer, Failed> {
        let mut host = device.host_buffer(x.len() * Mont::<F>::BYTES, Transfer::Both, Secrecy::Public)?;
        Mont::<F>::encode(x, &mut host);
        Ok(host)
    };
    for inverse in [false, true] {
        let inputs: Vec<Vec<F>> = (0..8).map(|seed| samples::<F>(n * batch, 40 + seed)).collect();
        let mut pipeline = Pipeline::new(ntt.coset(F::GENERATOR), batch, Secrecy::Public)?;
        let mut results = Vec::new();
        for x in &inputs {
            let host = pinned(x)?;
            results.extend(if inverse { pipeline.inverse(host)? } else { pipeline.forward(host)? });
        }
        while let Some(host) = pipeline.next()? {
            results.push(host);
        }
        expect_equal("results", &results.len(), &inputs.len())?;
        for (i, (host, x)) in results.iter().zip(&inputs).enumerate() {
            let mut actual = vec![F::ZERO; x.len()];
            Mont::<F>::decode(host, &mut actual)?;
            let (from, to) = if inverse { (&actual, x) } else { (x, &actual) };
            let expected: Vec<F> = from.chunks(n).flat_map(|x| arkworks(x, F::GENERATOR)).collect();
            expect_same(&format!("transform {i}, inverse: {inverse}"), to, &expected)?;
        }
    }
    let mut pipeline = Pipeline::new(ntt.transform(), batch, Secrecy::Public)?;
    let error = expect_error("host memory of another length", pipeline.forward(pinned(&[F::ONE; 7])?))?;
    expect_equal("length", &error, &Error::Length { expected: n * batch, actual: 7 })?;
    let actual = n * batch * Mont::<F>::BYTES + 1;
    let longer = device.host_buffer(actual, Transfer::Both, Secrecy::Public)?;
    let error = expect_error("host memory that is a byte longer", pipeline.forward(longer))?;
    let expected = actual.next_multiple_of(Mont::<F>::BYTES);
    expect_equal("bytes", &error, &Error::HostBytes { expected, actual })?;
    let upload_only = device.host_buffer(n * batch * Mont::<F>::BYTES, Transfer::Upload, Secrecy::Public)?;
    expect_error("host memory for uploads only", pipeline.forward(upload_only))?;
    let host = pinned(&vec![F::ZERO; n * batch])?;
    expect("nothing is ready yet", pipeline.forward(host)?.is_none())?;
    expect("usable", pipeline.next()?.is_some_and(|host| host.iter().all(|byte| *byte == 0)))
}

/// What a plan says it takes is what it takes, to 1%.
fn required_bytes(device: &Device) -> Outcome {
    type F = ark_bls12_381::Fr;
    for (log_n, twiddles) in [(16, Twiddles::Stored), (17, Twiddles::Stored), (17, Twiddles::TwoLevel)] {
        let config = Config { twiddles: Some(twiddles), ..Config::default() };
        let required = Ntt::<F>::required_bytes(device, log_n, 1, config)?;
        for batch in [(1 << 32) >> log_n, 1 << 36, usize::MAX] {
            let refused = Ntt::<F>::required_bytes(device, log_n, batch, config);
            expect(&format!("{batch} × 2^{log_n} are {refused:?}"), matches!(refused, Err(Error::TooLarge { .. })))?;
        }
        let mut data = device.zeros::<Mont<F>>(1 << log_n)?;
        let before = device.stats().bytes_live;
        let ntt = Ntt::<F>::with_config(device, log_n, config)?;
        ntt.forward(&mut data)?;
        ntt.inverse(&mut data)?;
        device.sync()?;
        let tables = device.stats().bytes_live - before;
        let scratch = if ntt.passes_per_transform() > 1 { data.bytes() } else { 0 };
        let held = tables + scratch;
        expect(
            &format!("{required} bytes for 2^{log_n} with {twiddles:?} are within 1% of {held}"),
            held.abs_diff(required) * 100 <= required,
        )?;
    }
    Ok(())
}

fn edge_values<F: DeviceField + FftField>(device: &Device) -> Outcome {
    // Where elements are few, threads take two each: from here on they take as many as registers hold.
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

/// Whichever read fails: the error says whether the slice is whole.
fn interrupted(device: &Device) -> Outcome {
    type F = small::BabyBear;
    let whole = samples::<F>(1 << 10, 31);
    // Eight pieces of each step, each in eight blocks.
    let device_bytes = 11 << 9;
    let recorder = Recorder::plain(device);
    let device = &Device::unregistered(Arc::clone(&recorder) as _);
    let [mut refused, mut interrupted] = [0; 2];
    for reads in 0.. {
        recorder.fail_read_after(reads);
        let mut x = whole.clone();
        match forward_out_of_core(device, &mut x, device_bytes) {
            Ok(()) => {
                expect_same("after all reads", &x, &arkworks(&whole, F::ONE))?;
                break;
            }
            Err(Error::Interrupted(_)) => interrupted += 1,
            Err(error) => {
                expect(&format!("{error} of the device"), matches!(error, Error::Device(_)))?;
                expect_same(&format!("{error} after {reads} reads"), &x, &whole)?;
                refused += 1;
            }
        }
    }
    expect_equal("reads that lose nothing, and others", &(refused, interrupted), &(96, 32))
}

fn host_slices<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let measured = crossover::<F>(device)?;
    expect_equal("a crossover is measured once", &crossover::<F>(device)?, &measured)?;
    // All on the device, all on the CPU, and as measured.
    for pinned in [0, u32::MAX, measured] {
        set_crossover::<F>(device, pinned);
        for len in [0, 1, 2, 1024] {
            let x = samples::<F>(len, 9);
            let mut y = x.clone();
            forward(device, &mut y)?;
            expect_same("forward", &y, &if len == 0 { Vec::new() } else { arkworks(&x, F::ONE) })?;
            inverse(device, &mut y)?;
            expect_same("inverse", &y, &x)?;
        }
    }
    let x = samples::<F>(1000, 9);
    let mut y = x.clone();
    let error = expect_error("a length of 1000", forward(device, &mut y))?;
    expect_equal("length", &error, &Error::NotPowerOfTwo { actual: 1000 })?;
    expect_same("untouched", &y, &x)
}

fn slices_stay_on_the_cpu_below_the_crossover(device: &Device) -> Outcome {
    let measured = crossover::<Fr>(device)?;
    let mut x = samples::<Fr>(1 << 4, 9);
    let mut launches = |pinned| -> Result<u64, Failed> {
        set_crossover::<Fr>(device, pinned);
        let before = device.stats().launches;
        forward(device, &mut x)?;
        Ok(device.stats().launches - before)
    };
    let (first, second, below) = (launches(4)?, launches(4)?, launches(5)?);
    set_crossover::<Fr>(device, measured);
    expect("a plan is made once", second <= first && second > 0)?;
    let expected = if device.is_same(&Device::cpu()) { second } else { 0 };
    expect_equal("launches below the crossover", &below, &expected)
}

fn misuse<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let beyond = F::TWO_ADICITY + 1;
    let error = expect_error("a size beyond the two-adicity", Ntt::<F>::new(device, beyond))?;
    expect_equal("two-adicity", &error, &Error::TwoAdicity { expected: F::TWO_ADICITY, actual: beyond })?;
    expect_error("a size of 2^4000000000", Ntt::<F>::new(device, 4_000_000_000))?;

    let ntt = Ntt::<F>::new(device, 4)?;
    for len in [1, 15, 17, 40] {
        let x = samples::<F>(len, 10);
        let mut data = device.upload(&x)?;
        let error = expect_error("data of another length", ntt.forward(&mut data))?;
        expect_equal("length", &error, &Error::Length { expected: 16, actual: len })?;
        expect_same("untouched", &data.to_vec()?, &x)?;
    }
    ntt.forward(&mut device.zeros(0)?)?;

    let x = samples::<F>(16, 10);
    let mut data = device.upload(&x)?;
    let error = expect_error("a coset of zero", ntt.coset(F::ZERO).forward(&mut data))?;
    expect_equal("coset", &error, &Error::ZeroCoset)?;
    if let Some(other) = other_device(device) {
        let error = expect_error("data elsewhere", ntt.forward(&mut other.zeros(16)?))?;
        let (expected, actual) = (device.info().id, other.info().id);
        let what = "the data of a transform";
        expect_equal("device", &error, &Error::Device(DeviceError::WrongDevice { what, expected, actual }))?;
    }
    let refused = ntt.transform().forward_into(&data, &mut device.zeros(32)?);
    expect_error("an output of another length", refused)?;
    let extension = LowDegreeExtension::<F>::new(device, 3, 1)?;
    let refused = extension.evaluate_into(&device.zeros(16)?, F::ONE, Order::Natural, &mut data);
    expect_error("an output of another length", refused)?;
    let refused = ntt.coset(F::ZERO).inverse_into(&device.zeros(16)?, &mut data);
    expect_equal("coset", &expect_error("a coset of zero", refused)?, &Error::ZeroCoset)?;
    if let Some(other) = other_device(device) {
        let is_refused =
            |refused: Result<(), Error>| matches!(refused, Err(Error::Device(DeviceError::WrongDevice { .. })));
        let into = ntt.transform().forward_into(&other.zeros(16)?, &mut data);
        let out_of = ntt.transform().forward_into(&data, &mut other.zeros(16)?);
        let extension = LowDegreeExtension::<F>::new(device, 3, 1)?;
        let (order, given) = (Order::BitReversed, other.zeros(8)?);
        let extended = extension.extend_into(&given, F::ONE, order, &mut data);
        let elsewhere = extension.extend_into(data.view(..8)?, F::ONE, order, &mut other.zeros(16)?);
        let evaluated = extension.evaluate_into(&given, F::ONE, order, &mut data);
        expect("wrong devices", [into, out_of, extended, elsewhere, evaluated].into_iter().all(is_refused))?;
    }
    expect_same("untouched", &data.to_vec()?, &x)?;
    ntt.forward(&mut data)?;
    expect_same("usable", &data.to_vec()?, &arkworks(&x, F::ONE))
}

/// Three passes, and on fast devices four where workgroup memory is small: Horner at a few outputs.
fn large<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let sizes: &[u32] = if device.info().features.software { &[18] } else { &[18, 19, 20, 21, 22] };
    for &log_n in sizes {
        let n = 1usize << log_n;
        let x = samples::<F>(n, 11);
        let ntt = Ntt::new(device, log_n)?;
        let mut data = device.upload(&x)?;
        ntt.coset(F::GENERATOR).forward(&mut data)?;
        let y = data.to_vec()?;
        let w = reference::root_of_unity::<F>(log_n).ok_or("no root of unity")?;
        for k in [0, 1, 2, n / 2, n / 2 + 1, n / 3, n - 1] {
            let expected = reference::horner(&x, F::GENERATOR * w.pow([k as u64]));
            expect_equal(&format!("output {k} of 2^{log_n}"), &y[k], &expected)?;
        }
        ntt.coset(F::GENERATOR).inverse(&mut data)?;
        expect_same(&format!("inverse 2^{log_n}"), &data.to_vec()?, &x)?;
    }
    Ok(())
}

/// In a process of its own, since counters are the device's and other trials add to them.
fn no_host_copies_and_few_launches(device: &Device) -> Outcome {
    let report = child::run(&format!("launches {}", device.info().id), &[], None)?;
    expect(&report, report.starts_with("ok: "))
}

fn two_threads(device: &Device) -> Outcome {
    type F = ark_bls12_381::Fr;
    let shared = Ntt::<F>::new(device, 12)?;
    let work = |seed: u64| -> Outcome {
        let own = Ntt::<F>::new(device, 11)?;
        for round in 0..10 {
            for ntt in [&shared, &own] {
                let x = samples::<F>(ntt.size(), 100 * seed + round);
                let mut data = device.upload(&x)?;
                ntt.coset(F::from(seed + 2)).forward(&mut data)?;
                expect_same("forward", &data.to_vec()?, &arkworks(&x, F::from(seed + 2)))?;
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads = [0, 1].map(|seed| scope.spawn(move || work(seed)));
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })
}

fn queues(device: &Device) -> Outcome {
    type F = ark_bls12_381::Fr;
    let ntt = Ntt::<F>::new(device, 14)?;
    let queues = [device.queue()?, device.queue()?];
    let inputs = [13, 14].map(|seed| samples::<F>(1 << 14, seed));
    let mut buffers = Vec::new();
    for (queue, x) in queues.iter().zip(&inputs) {
        let mut data = device.alloc::<Mont<F>>(x.len())?;
        data.write_on(Some(queue), x)?;
        ntt.on(queue).forward(&mut data)?;
        buffers.push(data);
    }
    for ((queue, x), data) in queues.iter().zip(&inputs).zip(&buffers) {
        let y = data.read_on(Some(queue))?.wait()?;
        expect_same("forward", &y, &arkworks(x, F::from(1u8)))?;
    }
    Ok(())
}
