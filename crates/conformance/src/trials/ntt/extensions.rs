//! Products of polynomials and low-degree extensions.

use ark_ff::{FftField, Field};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use evariste::backend::{Buffer, Device, Element, Secrecy, Transfer};
use evariste::field::{DeviceField, Mont, small};
use evariste::ntt::{Error, LowDegreeExtension, Ntt, NttConfig, Order, Twiddles, reference};

use super::{arkworks, by_columns, length};
use crate::{
    expect::{expect, expect_equal, expect_error, expect_same},
    harness::Outcome,
    samples::samples,
    sizes::is_few,
};

/// Products of polynomials against the schoolbook's.
pub(super) fn products<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let ntt = Ntt::<F>::new(device, 7)?;
    for (a, b) in [(0, 0), (0, 5), (5, 0), (1, 1), (1, 128), (64, 65), (100, 3), (2, 2)] {
        let (a, b) = (samples::<F>(a, 30), samples::<F>(b, 31));
        let product = ntt.product(&device.upload(&a)?, &device.upload(&b)?)?.to_vec()?;
        expect_same(&format!("{} × {}", a.len(), b.len()), &product, &reference::product(&a, &b))?;
    }
    let [long, short] = [device.upload(&samples::<F>(100, 30))?, device.upload(&samples::<F>(30, 31))?];
    let error = expect_error("a product of 129 coefficients", ntt.product(&long, &short))?;
    expect_equal("size", &error, &Error::TooLarge { expected: 128, actual: 129 })
}

/// Low-degree extensions against values by Horner's rule.
pub(super) fn extensions<F: DeviceField + FftField>(device: &Device) -> Outcome {
    for (log_n, log_blowup, count) in [(0, 0, 1), (0, 3, 2), (3, 1, 3), (5, 2, 1), (8, 4, 2)] {
        let (n, size) = (1usize << log_n, 1usize << (log_n + log_blowup));
        // Some by other tables than plans choose.
        let config = NttConfig::default().twiddles((log_n == 5).then_some(Twiddles::TwoLevel));
        let extension = LowDegreeExtension::<F>::with_config(device, log_n, log_blowup, config)?;
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
        expect_equal("length", &error, &length("what is extended, a multiple of", unit, 20))?;
        let nothing = extension.clone().columns(columns).extend(&device.alloc(0)?, F::ONE, Order::BitReversed)?;
        expect_equal("values of nothing", &nothing.len(), &0)?;
    }
    let values = device.upload(&[F::ONE; 6])?;
    let error = expect_error("six values for runs of four", extension.extend(&values, F::ONE, Order::Natural))?;
    expect_equal("length", &error, &length("what is extended, a multiple of", 4, 6))?;
    let error = expect_error("a coset of zero", extension.extend(&device.zeros(4)?, F::ZERO, Order::Natural))?;
    expect_equal("coset", &error, &Error::ZeroCoset)?;
    let beyond = F::TWO_ADICITY + 1;
    let error = expect_error("too large an extension", LowDegreeExtension::<F>::new(device, 1, F::TWO_ADICITY))?;
    expect_equal("two-adicity", &error, &Error::TwoAdicity { expected: F::TWO_ADICITY, actual: beyond })
}

/// Extensions of the columns of matrices: coset by coset and whole, in one pass and in several.
pub(super) fn matrices<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let all = [(3, 1, 5, 2), (0, 2, 3, 1), (7, 2, 9, 1), (11, 1, 2, 2), (12, 4, 1, 1), (18, 1, 8, 1)];
    // Those of several passes are many kernels more, which emulated devices compile for long.
    let info = device.info();
    let taken = match info.features.software {
        software if is_few(device) || software && F::LIMBS > 2 => 1,
        // On GPUs, threads take more elements of so many.
        false if !info.is_processor() => all.len(),
        _ => all.len() - 1,
    };
    for (log_n, log_blowup, columns, matrices) in &all[..taken] {
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

/// Extensions of some columns at a time, and of matrices that arrive so from pinned memory, against those of whole
/// matrices.
pub(super) fn by_blocks<F: DeviceField + FftField>(device: &Device) -> Outcome {
    // Of one pass and of several; 12 columns arrive in fewer blocks than 256.
    let all = [(0, 1, 3, [1, 3]), (5, 1, 256, [1, 200]), (6, 2, 12, [5, 6]), (11, 1, 48, [16, 47])];
    let taken = if is_few(device) || device.info().features.software { 3 } else { all.len() };
    for (log_n, log_blowup, columns, ends) in &all[..taken] {
        let (n, columns) = (1usize << log_n, *columns);
        let what = format!("2^{log_n} × {columns} by 2^{log_blowup}");
        let extension = LowDegreeExtension::<F>::new(device, *log_n, *log_blowup)?.columns(columns);
        let values = samples::<F>(n * columns, 36);
        let given = device.upload::<Mont<F>>(&values)?;
        let expected = extension.extend(&given, F::GENERATOR, Order::BitReversed)?.to_vec()?;

        // Columns that were not extended yet stay as they are.
        let before = samples::<F>(expected.len(), 37);
        let mut out = device.upload::<Mont<F>>(&before)?;
        let mut start = 0;
        for end in ends.iter().copied().chain([columns]) {
            extension.extend_columns_into(&given, start..end, F::GENERATOR, &mut out)?;
            let here: Vec<F> =
                (0..expected.len()).map(|i| if i % columns < end { expected[i] } else { before[i] }).collect();
            expect_same(&format!("columns {start}..{end} of {what}"), &out.to_vec()?, &here)?;
            start = end;
        }

        let mut host = device.host_buffer(values.len() * Mont::<F>::BYTES, Transfer::Upload, Secrecy::Public)?;
        Mont::<F>::encode(&values, &mut host);
        let mut out = device.upload::<Mont<F>>(&before)?;
        let mut blocks = Vec::new();
        extension.extend_pinned(host, F::GENERATOR, &mut out, |block, out| {
            blocks.push((block, out.len()));
            Ok::<_, Error>(())
        })?;
        expect_same(&format!("pinned, {what}"), &out.to_vec()?, &expected)?;
        if columns == 256 && device.info().features.queues {
            expect("wide rows arrive in several blocks", blocks.len() > 1)?;
        }
        let mut covered = 0;
        for (block, len) in blocks {
            expect_equal("blocks follow each other", &(block.start, len), &(covered, expected.len()))?;
            covered = block.end;
        }
        expect_equal("all columns", &covered, &columns)?;
    }
    Ok(())
}

/// What extensions by blocks of columns refuse.
pub(super) fn blocks_misused(device: &Device) -> Outcome {
    type F = small::BabyBear;
    let extension = LowDegreeExtension::<F>::new(device, 3, 1)?.columns(4);
    let values = device.upload::<Mont<F>>(&samples(32, 38))?;
    let before = samples::<F>(64, 39);
    let mut out = device.upload::<Mont<F>>(&before)?;
    let refused = extension.extend_columns_into(&values, 2..5, F::GENERATOR, &mut out);
    let error = expect_error("a column that is not there", refused)?;
    expect_equal("columns", &error, &length("the columns of a matrix", 4, 5))?;
    let refused = extension.extend_columns_into(&values, 0..2, F::from(0_u64), &mut out);
    expect_equal("coset", &expect_error("a coset of zero", refused)?, &Error::ZeroCoset)?;
    let two = device.upload::<Mont<F>>(&samples(64, 38))?;
    let mut for_two = device.zeros::<Mont<F>>(128)?;
    let refused = extension.extend_columns_into(&two, 0..2, F::GENERATOR, &mut for_two);
    expect_equal("length", &expect_error("two matrices", refused)?, &length("a matrix", 32, 64))?;
    extension.extend_columns_into(&values, 4..4, F::GENERATOR, &mut out)?;

    let host = |bytes: usize, secrecy| device.host_buffer(bytes, Transfer::Upload, secrecy);
    let pinned = |bytes, secrecy, out: &mut Buffer<Mont<F>>| {
        extension.extend_pinned(host(bytes, secrecy)?, F::GENERATOR, out, |_, _| Ok::<_, Error>(())).map(drop)
    };
    let reversed = std::ops::Range { start: 5, end: 2 };
    let refused = extension.extend_columns_into(&values, reversed, F::GENERATOR, &mut out);
    let error = expect_error("columns behind the last", refused)?;
    expect_equal("columns", &error, &length("the columns of a matrix", 4, 5))?;
    let wide = LowDegreeExtension::<F>::new(device, 3, 5)?.columns(1);
    let refused = wide.extend_columns_into(values.view(..8)?, 0..1, F::GENERATOR, &mut device.zeros(256)?);
    expect_equal("blow-up", &expect_error("32 cosets", refused)?, &Error::TooLarge { expected: 16, actual: 32 })?;
    let error = expect_error("no whole elements", pinned(129, Secrecy::Public, &mut out))?;
    expect_equal("length", &error, &length("the host memory of a transform, in bytes", 132, 129))?;
    let error = expect_error("no whole matrix", pinned(124, Secrecy::Public, &mut out))?;
    expect_equal("length", &error, &length("what is extended, a multiple of", 32, 31))?;
    expect_error("a secret matrix", pinned(128, Secrecy::Secret, &mut out))?;
    expect_same("an output as it was", &out.to_vec()?, &before)?;
    // What the caller's work fails with is the error.
    let failed =
        extension.extend_pinned(host(128, Secrecy::Public)?, F::GENERATOR, &mut out, |_, _| Err(Error::ZeroCoset));
    expect_equal("its own error", &expect_error("work that fails", failed)?, &Error::ZeroCoset)?;
    expect_equal("columns afterwards", &extension.extend(&values, F::GENERATOR, Order::BitReversed)?.len(), &64)
}

/// The values of polynomials over an extension field, on a coset in the field below. Each coefficient of an element is
/// a column.
pub(super) fn of_extension_elements(device: &Device) -> Outcome {
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
