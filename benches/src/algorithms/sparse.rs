//! Products of sparse matrices and vectors, as provers of rank-1 constraint systems (R1CS) compute them.

#![cfg(feature = "all")]

use anyhow::{Result, ensure};
use ark_bls12_381::Fr;
use ark_ff::Field;
use evariste::backend::{Element, Kind};
use evariste::field::{Mont, SparseMatrix, reference};

use crate::{
    coverage::Coverage,
    input,
    limits::Work,
    request::Request,
    session::{self, Algorithm, Case, Session},
    target::Target,
    timing::Budget,
};

/// They stand with the operations on vectors.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "field",
    headlines: &[],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large: session::is_too_large,
};

/// Entries of a row.
const EACH: usize = 3;

/// An entry: its row, its column and its value.
type Entry = (u32, u32, Fr);

/// A matrix of as many rows as columns.
struct Matrix {
    name: &'static str,
    /// Entries of a row with a coefficient other than 1 and −1, on average.
    general: f64,
    entries: fn(rows: usize) -> Vec<Entry>,
}

const MATRICES: [Matrix; 3] = [
    Matrix { name: "matrix-r1cs", general: 0.5, entries: constraints },
    // A row with half a million entries in 2^20 rows: what the constant takes part in.
    Matrix {
        name: "matrix-transposed",
        general: 0.5,
        entries: |rows| constraints(rows).into_iter().map(|(row, column, value)| (column, row, value)).collect(),
    },
    Matrix { name: "matrix-random", general: EACH as f64, entries: random },
];

/// A constraint a row: the constant in every other one with a power of two, and variables nearby and anywhere with the
/// coefficients 1 and −1.
fn constraints(rows: usize) -> Vec<Entry> {
    let (rows, places) = (rows as u32, input::random::<u32>(rows));
    let constraint = |row: u32| {
        let place = places[row as usize];
        let first = match row % 2 {
            0 => (row, 0, Fr::from(1u64 << (1 + place % 8))),
            _ => (row, place / 7 % rows, Fr::ONE),
        };
        [first, (row, (row + 1 + place % 16) % rows, Fr::ONE), (row, place % rows, -Fr::ONE)]
    };
    (0..rows).flat_map(constraint).collect()
}

/// Columns anywhere, and coefficients that are all different.
fn random(rows: usize) -> Vec<Entry> {
    let (columns, values) = (input::random::<u32>(EACH * rows), input::random::<Fr>(EACH * rows));
    let entries = columns.into_iter().zip(values).enumerate();
    entries.map(|(i, (column, value))| ((i / EACH) as u32, column % rows as u32, value)).collect()
}

fn run(session: &mut Session, targets: &[Target], options: &Request) {
    for target in targets {
        let info = target.device.info();
        let sizes: &[u32] = match (info.id.kind, options.coverage) {
            _ if info.features.software => &[14],
            (Kind::Cpu, Coverage::Small) => &[14, 18],
            _ => &[18, 20],
        };
        for (log_n, matrix) in sizes.iter().flat_map(|log_n| MATRICES.iter().map(move |matrix| (*log_n, matrix))) {
            measure(session, target, matrix, log_n);
        }
    }
}

fn measure(session: &mut Session, target: &Target, matrix: &Matrix, log_n: u32) {
    let rows = 1 << log_n;
    // An entry is read with its element, and a row with its place is written.
    let (pair, element) = (u64::BYTES as f64, <Mont<Fr> as Element>::BYTES as f64);
    let work = Work {
        multiplications: matrix.general * rows as f64,
        bytes: (EACH + 1) as f64 * (pair + element) * rows as f64,
    };
    let case = Case {
        name: format!("bls12-381-fr/{}/device", matrix.name),
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(rows),
        floor: Some(target.limits.floor(work)),
    };
    session.measure(case, |budget| {
        let device = &target.device;
        let (entries, vector) = ((matrix.entries)(rows), input::random::<Fr>(rows));
        let plan = SparseMatrix::new(device, rows, rows, entries.iter().copied())?;
        let uploaded = device.upload::<Mont<Fr>>(&vector)?;
        let mut out = device.zeros(rows)?;
        let before = device.stats().launches;
        plan.multiply(&uploaded, &mut out)?;
        let launches = device.stats().launches - before;
        check(&out.to_vec()?, &reference::sparse_product(rows, &entries, &vector))?;
        let timing = budget.time_queued(|| Ok(plan.multiply(&uploaded, &mut out)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), format!("definition, all of 2^{log_n} outputs")))
    });
}

fn check(out: &[Fr], expected: &[Fr]) -> Result<()> {
    let wrong = out.iter().zip(expected).position(|(out, expected)| out != expected);
    ensure!(wrong.is_none() && out.len() == expected.len(), "output {} is wrong", wrong.unwrap_or_default());
    Ok(())
}
