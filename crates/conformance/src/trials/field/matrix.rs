//! Products of sparse matrices and vectors over every field.

use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use evariste::{
    backend::{Device, Error, Secrecy},
    field::{DeviceField, Mont, SparseMatrix, reference, small::BabyBear},
    primitives::MAX_LEN,
};

use crate::{
    devices::other_device,
    expect::{expect, expect_equal, expect_error, expect_same},
    harness::{DeviceTrials, Outcome},
    samples::samples,
    sizes::{is_few, lengths},
};

/// An entry: its row, its column and its value.
pub(super) type Entry<F> = (u32, u32, F);

pub(super) fn add<F: DeviceField>(trials: &mut DeviceTrials<'_>, field: &str) {
    trials.add(&format!("{field}::matrices"), matrices::<F>);
}

/// What one field is enough for.
pub(super) fn add_once(trials: &mut DeviceTrials<'_>) {
    trials.add("bls12-381-fr::matrix_misuse", misuse::<ark_bls12_381::Fr>);
    trials.add("long_rows", long_rows);
    trials.add_alone("few_launches_of_matrices", few_launches);
}

/// Entries anywhere in these rows and columns, some at one place: two of three have the coefficients 1 and −1.
pub(super) fn random<F: DeviceField>(count: usize, rows: u32, columns: u32, seed: u64) -> Vec<Entry<F>> {
    let mut rng = StdRng::seed_from_u64(seed);
    let values = samples::<F>(count, seed).into_iter().enumerate();
    let values = values.map(|(i, value)| [value, F::ONE, -F::ONE][i % 3]);
    values.map(|value| (rng.gen_range(0..rows), rng.gen_range(0..columns), value)).collect()
}

/// Multiplies a vector of samples and compares with the definition. With `offset`, vectors are views that start there.
fn check<F: DeviceField>(
    device: &Device,
    what: &str,
    [rows, columns]: [usize; 2],
    entries: &[Entry<F>],
    offset: usize,
) -> Outcome {
    let (vector, before) = (samples::<F>(columns + offset, 60), samples::<F>(rows + 2 * offset, 61));
    let (uploaded, mut out) = (device.upload::<Mont<F>>(&vector)?, device.upload::<Mont<F>>(&before)?);
    let matrix = SparseMatrix::new(device, rows, columns, entries.iter().copied())?;
    matrix.multiply(uploaded.view(offset..)?, out.view_mut(offset..offset + rows)?)?;
    let mut expected = before;
    let product = reference::sparse_product(rows, entries, &vector[offset..]);
    expected[offset..offset + rows].copy_from_slice(&product);
    expect_same(what, &out.to_vec()?, &expected)?;
    expect_equal(what, &[matrix.rows(), matrix.columns()], &[rows, columns])
}

fn matrices<F: DeviceField>(device: &Device) -> Outcome {
    for size in [[0, 0], [0, 7], [7, 0], [7, 7]] {
        check::<F>(device, &format!("no entries, {size:?}"), size, &[], 0)?;
    }
    check(device, "one entry", [1, 1], &[(0, 0, -F::ONE)], 0)?;
    for len in lengths(device, &[2, 257, 1000, 5000]) {
        let (rows, entries) = (len as u32, random::<F>(3 * len, len as u32, len as u32 + 9, 62));
        check(device, &format!("{len} rows"), [len, len + 9], &entries, 0)?;
        // Rows at both ends and half of the others have no entries.
        let shifted: Vec<_> = entries.iter().map(|(row, column, x)| (rows / 2 + row / 2 * 2, *column, *x)).collect();
        check(device, &format!("rows without entries, {len}"), [3 * len, len + 9], &shifted, 3)?;
    }
    let value = |i: u32| [F::ONE, F::from(i), -F::ONE, -F::from(i)][i as usize % 4];
    let count = if is_few(device) { 1100 } else { 3000 };
    let column: Vec<_> = (0..count).map(|row| (row, 3, value(row))).collect();
    check(device, "one column", [count as usize, 7], &column, 1)?;
    let row: Vec<_> = (0..count).rev().map(|column| (3, column, value(column))).collect();
    check(device, "one row", [7, count as usize], &row, 1)?;
    // A long row among short ones, longer ones of each length that is divided otherwise, and the last one.
    let mut mixed = random::<F>(2 * count as usize, 500, count, 63);
    for (row, len) in [(17, 32), (18, 33), (19, 63), (20, 64), (21, 95), (22, 96), (250, count), (499, 100)] {
        mixed.extend((0..len).map(|column| (row, column, value(column + row))));
    }
    check(device, "long rows among short ones", [500, count as usize], &mixed, 0)?;
    // What is added may be nothing.
    let [two, max] = [F::from(2u8), -F::ONE];
    let cancelled = [(1, 0, two), (0, 1, max), (1, 0, -two), (0, 1, max), (1, 1, F::ZERO), (0, 0, max)];
    check(device, "entries that cancel out", [2, 2], &cancelled, 0)?;
    let matrix = SparseMatrix::new(device, 2, 2, cancelled)?;
    expect_equal("entries that are left", &matrix.entries(), &2)
}

/// A row so long that its sums take several launches.
fn long_rows(device: &Device) -> Outcome {
    let columns: u32 = if is_few(device) { 5000 } else { 200_000 };
    let mut entries = random::<BabyBear>(3000, 1000, columns, 64);
    entries.extend((0..columns).map(|column| (77, column, BabyBear::from(column))));
    check(device, "a row of all columns", [1000, columns as usize], &entries, 0)
}

/// Without long rows a product takes one launch, and nothing is allocated or copied.
fn few_launches(device: &Device) -> Outcome {
    let entries = (0..30_000).map(|i| (i / 3, i * 7 % 10_000, BabyBear::from(i)));
    let matrix = SparseMatrix::new(device, 10_000, 10_000, entries)?;
    let (vector, mut out) = (device.upload(&samples::<BabyBear>(10_000, 65))?, device.alloc(10_000)?);
    let before = device.stats();
    matrix.multiply(&vector, &mut out)?;
    let after = device.stats();
    expect_equal("launches of a product", &(after.launches - before.launches), &1)?;
    expect("it copies nothing to the device", after.bytes_up == before.bytes_up)?;
    expect("it copies nothing from the device", after.bytes_down == before.bytes_down)
}

fn misuse<F: DeviceField>(device: &Device) -> Outcome {
    let one = (0, 0, F::ONE);
    let (matrix, mut out) = (SparseMatrix::new(device, 2, 3, [one])?, device.upload(&[F::ONE; 2])?);
    let (two, three) = (device.upload(&[F::ONE; 2])?, device.upload(&[F::ONE; 3])?);
    let case = |name, result, expected| expect_equal(name, &expect_error(name, result)?, &expected);
    let length = |what, expected, actual| Error::Length { what, expected, actual };
    case("a short vector", matrix.multiply(&two, &mut out), length("the vector of a sparse product", 3, 2))?;
    let mut long = device.upload(&[F::ONE; 3])?;
    case("a long output", matrix.multiply(&three, &mut long), length("the output of a sparse product", 2, 3))?;
    let new = |rows, columns, entry| SparseMatrix::<F>::new(device, rows, columns, [one, entry]).map(drop);
    let outside = |what, offset, len| Error::OutOfRange { what, offset, count: 1, len };
    case("a row outside", new(2, 3, (2, 0, F::ONE)), outside("the row of an entry", 2, 2))?;
    case("a column outside", new(2, 3, (1, 3, F::ONE)), outside("the column of an entry", 3, 3))?;
    case("no rows", new(0, 3, one), outside("the row of an entry", 0, 0))?;
    let large =
        |what| Error::TooLarge { what, device: device.info().id, expected: MAX_LEN as u64, actual: MAX_LEN as u64 + 1 };
    case("too many rows", new(MAX_LEN + 1, 3, one), large("rows of a sparse matrix"))?;
    case("too many columns", new(2, MAX_LEN + 1, one), large("columns of a sparse matrix"))?;
    let secret = device.upload_with::<Mont<F>>(&[F::ONE; 3], Secrecy::Secret)?;
    let expected = Error::SecretInput { operation: "sparse product", input: "the vector", output: "the output" };
    case("a secret vector", matrix.multiply(&secret, &mut out), expected)?;
    if let Some(other) = other_device(device) {
        let (expected, actual) = (device.info().id, other.info().id);
        let elsewhere = |what| Error::WrongDevice { what, expected, actual };
        let strange = other.upload(&[F::ONE; 3])?;
        let what = elsewhere("the vector of a sparse product");
        case("a vector elsewhere", matrix.multiply(&strange, &mut out), what)?;
        let mut strange = other.upload(&[F::ONE; 2])?;
        let what = elsewhere("the output of a sparse product");
        case("an output elsewhere", matrix.multiply(&three, &mut strange), what)?;
    }
    expect_same("untouched", &out.to_vec()?, &[F::ONE; 2])
}
