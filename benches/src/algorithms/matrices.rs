//! Transforms of the columns of matrices over small fields, as STARK provers use them.

#![cfg(feature = "all")]

use std::cell::LazyCell;

use anyhow::{Result, ensure};
use ark_ff::{FftField, batch_inversion};
use evariste::backend::Element;
use evariste::field::{DeviceField, Mont, small};
use evariste::ntt::{LowDegreeExtension, Ntt, Order, reference::root_of_unity, reverse_bits};
use rayon::prelude::*;

use crate::{
    algorithms::ntt::{GRAIN, horner_in_parallel, is_too_large},
    input::{self, Lazy},
    limits::Work,
    request::Request,
    session::{Algorithm, Case, Session},
    sizes::Sizes,
    target::Target,
    timing::Budget,
};

/// Matrices of KoalaBear take as long as those of BabyBear.
pub(crate) const ALGORITHM: Algorithm =
    Algorithm { name: "ntt", headlines: &[], budget: |request| Budget::of(request.coverage), run, is_too_large };

/// Columns of a matrix.
const COLUMNS: [usize; 2] = [64, 256];

/// log₂ of the most rows.
const MAX_LOG_ROWS: u32 = 20;

/// log₂ of the factor by which an extension has more values.
const LOG_BLOWUP: u32 = 1;

/// Values that are checked.
const CHECKED: usize = 8;

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    let sizes: Vec<Sizes> = targets
        .iter()
        .map(|target| request.log_n.clone().unwrap_or_else(|| Sizes::usual(&target.device, request.coverage)))
        .collect();
    for log_n in Sizes::union(&sizes).into_iter().filter(|log_n| *log_n <= MAX_LOG_ROWS) {
        let here: Vec<&Target> =
            targets.iter().zip(&sizes).filter(|(_, sizes)| sizes.contains(log_n)).map(|(target, _)| target).collect();
        for columns in COLUMNS {
            both::<small::BabyBear>(session, &here, request, "baby-bear", log_n, columns);
            both::<small::Goldilocks>(session, &here, request, "goldilocks", log_n, columns);
        }
    }
}

/// A field that the peers, as far as they are compiled in, have too.
#[cfg(feature = "plonky3")]
use crate::plonky3::Shared as Field;
#[cfg(not(feature = "plonky3"))]
trait Field: DeviceField + FftField {}
#[cfg(not(feature = "plonky3"))]
impl<F: DeviceField + FftField> Field for F {}

fn both<F: Field>(
    session: &mut Session,
    targets: &[&Target],
    request: &Request,
    field: &'static str,
    log_n: u32,
    columns: usize,
) {
    let matrix = Matrix::<F>::new(field, log_n, columns);
    for target in targets {
        forward(session, target, &matrix);
        extend(session, target, &matrix);
    }
    if request.peers {
        #[cfg(feature = "plonky3")]
        plonky3(session, &matrix);
    }
}

/// Columns to transform, by rows.
#[derive(Debug)]
struct Matrix<F> {
    field: &'static str,
    log_n: u32,
    columns: usize,
    input: Lazy<F>,
}

impl<F: DeviceField + FftField> Matrix<F> {
    fn new(field: &'static str, log_n: u32, columns: usize) -> Self {
        let len = columns << log_n;
        Self { field, log_n, columns, input: LazyCell::new(Box::new(move || input::random(len))) }
    }

    fn len(&self) -> usize {
        self.columns << self.log_n
    }

    /// A case. An extension has 2^`log_blowup` times the values, and multiplies and moves that number of elements.
    fn case(&self, what: &str, target: Option<&Target>) -> Case {
        let (len, log_n) = (self.len() as f64, f64::from(self.log_n));
        let extends = what == EXTEND;
        let more = f64::from(1u32 << LOG_BLOWUP);
        // Multiplications of the limits' field, as both grow with the square of the limbs.
        let weight = (F::LIMBS as f64 / ark_bls12_381::Fr::LIMBS as f64).powi(2);
        let (butterflies, moved) = match extends {
            false => (len / 2.0 * log_n, 2.0 * len),
            true => (len / 2.0 * log_n + more * len / 2.0 * log_n, (1.0 + more) * len),
        };
        let work = Work { multiplications: weight * butterflies, bytes: moved * Mont::<F>::BYTES as f64 };
        Case {
            name: format!(
                "{}/{what}/columns-{}/{}",
                self.field,
                self.columns,
                if target.is_some() { "device" } else { "host" }
            ),
            device: target.map_or_else(|| "cpu".into(), |target| target.device.info().id.to_string()),
            peer: None,
            log_n: self.log_n,
            elements: Some(self.len()),
            floor: target.map(|target| target.limits.floor(work)),
        }
    }

    fn column(&self, column: usize) -> Vec<F> {
        self.input.iter().skip(column).step_by(self.columns).copied().collect()
    }

    /// Compares some values, which `output` reads and which lie by rows in bit-reversed order, with those of the
    /// polynomials.
    fn check(&self, extended: bool, output: impl Fn(usize) -> Result<F>) -> Result<String> {
        let log_rows = self.log_n + if extended { LOG_BLOWUP } else { 0 };
        let root: F = root_of_unity(log_rows).expect("sizes are checked against the two-adicity of the field");
        for place in input::places(CHECKED, self.columns << log_rows) {
            let (row, column) = (place / self.columns, place % self.columns);
            let point = root.pow([u64::from(reverse_bits(row as u32, log_rows))]);
            let given = self.column(column);
            let expected = match extended {
                false => horner_in_parallel(&given, point),
                true => interpolated(&given, F::GENERATOR * point),
            };
            let actual = output(place)?;
            ensure!(
                actual == expected,
                "row {row} of column {column} is {actual}, the polynomial's value is {expected}"
            );
        }
        let by = if extended { "barycentric" } else { "horner" };
        Ok(format!("{by}, {CHECKED} of {} × 2^{log_rows} outputs", self.columns))
    }
}

/// What the transforms of columns are called.
const FORWARD: &str = "forward/bit-reversed";
const EXTEND: &str = "extend-2/bit-reversed";

/// The value at `z` of the polynomial with these n values at the powers of the root w of order n: (zⁿ − 1)/n · Σ
/// v_i·wⁱ/(z − wⁱ).
fn interpolated<F: FftField>(values: &[F], z: F) -> F {
    let n = values.len() as u64;
    let root: F = root_of_unity(n.ilog2()).expect("sizes are checked against the two-adicity of the field");
    let part = |(i, chunk): (usize, &[F])| {
        let first = root.pow([(i * GRAIN) as u64]);
        let powers: Vec<F> = chunk.iter().scan(first, |next, _| Some(std::mem::replace(next, *next * root))).collect();
        let mut inverses: Vec<F> = powers.iter().map(|power| z - power).collect();
        batch_inversion(&mut inverses);
        chunk.iter().zip(powers).zip(inverses).map(|((value, power), inverse)| *value * power * inverse).sum::<F>()
    };
    let sum: F = values.par_chunks(GRAIN).enumerate().map(part).sum();
    (z.pow([n]) - F::ONE) / F::from(n) * sum
}

fn forward<F: DeviceField + FftField>(session: &mut Session, target: &Target, matrix: &Matrix<F>) {
    session.measure(matrix.case(FORWARD, Some(target)), |budget| {
        let device = &target.device;
        let ntt = Ntt::<F>::new(device, matrix.log_n)?;
        let mut data = device.upload::<Mont<F>>(&matrix.input)?;
        let transform = ntt.transform().columns(matrix.columns).output(Order::BitReversed);
        let before = device.stats().launches;
        transform.forward(&mut data)?;
        let launches = device.stats().launches - before;
        let checked = matrix.check(false, |i| Ok(data.view(i..=i)?.to_vec()?[0]))?;
        let timing = budget.time_queued(|| Ok(transform.forward(&mut data)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), checked))
    });
}

/// The values on a coset of twice the points, from those on the subgroup: back to coefficients, and forward.
fn extend<F: DeviceField + FftField>(session: &mut Session, target: &Target, matrix: &Matrix<F>) {
    session.measure(matrix.case(EXTEND, Some(target)), |budget| {
        let device = &target.device;
        let extension = LowDegreeExtension::<F>::new(device, matrix.log_n, LOG_BLOWUP)?.columns(matrix.columns);
        let values = device.upload::<Mont<F>>(&matrix.input)?;
        let mut out = device.alloc::<Mont<F>>(matrix.len() << LOG_BLOWUP)?;
        let mut work = || Ok(extension.extend_into(&values, F::GENERATOR, Order::BitReversed, &mut out)?);
        let before = device.stats().launches;
        work()?;
        let launches = device.stats().launches - before;
        let timing = budget.time_queued(work, || Ok(device.sync()?))?;
        let checked = matrix.check(true, |i| Ok(out.view(i..=i)?.to_vec()?[0]))?;
        Ok((timing, Some(launches), checked))
    });
}

#[cfg(feature = "plonky3")]
fn plonky3<F: Field>(session: &mut Session, matrix: &Matrix<F>) {
    use crate::plonky3::{Task, measure};

    for (what, task) in [(FORWARD, Task::Forward(Order::BitReversed)), (EXTEND, Task::Extend)] {
        let check = |output: &dyn Fn(usize) -> Result<F>| matrix.check(what == EXTEND, output);
        measure(session, matrix.case(what, None), task, matrix.columns, &matrix.input, check);
    }
}
