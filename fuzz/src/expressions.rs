use arbitrary::Unstructured;
use ark_bls12_381::Fr;
use ark_ff::PrimeField;
use evariste_backend::{Buffer, Device, Error};
use evariste_field::{DeviceField, Expression, Mont, Vector, small::BabyBear};

use crate::choice;

/// More than a kernel binds one by one.
const COLUMNS: u32 = 40;
const CONSTANTS: u32 = 3;

/// Expressions: built step by step beside their values, which the expression has in each row, by itself and as a
/// kernel.
///
/// # Panics
/// If a value differs, or a degree, a number of columns or constants, or the digest of the same expression made again.
pub fn expressions(data: &[u8]) {
    let mut input = Unstructured::new(data);
    match choice(input.arbitrary()) {
        true => check::<Fr>(&mut input),
        false => check::<BabyBear>(&mut input),
    }
}

/// An expression, and what it should be.
#[derive(Clone)]
struct Term<F> {
    expression: Expression,
    /// The same one from parts of its own.
    again: Expression,
    values: Vec<F>,
    columns: usize,
    constants: usize,
    degree: u64,
}

impl<F: PrimeField> Term<F> {
    fn leaf(make: impl Fn() -> Expression, values: Vec<F>) -> Self {
        let (expression, again) = (make(), make());
        Self { expression, again, values, columns: 0, constants: 0, degree: 0 }
    }

    fn map(&self, make: impl Fn(&Expression) -> Expression, value: impl Fn(F) -> F) -> Self {
        let (expression, again) = (make(&self.expression), make(&self.again));
        let values = self.values.iter().map(|x| value(*x)).collect();
        Self { expression, again, values, ..*self }
    }

    fn join(
        &self,
        other: &Self,
        make: impl Fn(&Expression, &Expression) -> Expression,
        value: impl Fn(F, F) -> F,
        degree: fn(u64, u64) -> u64,
    ) -> Self {
        Self {
            expression: make(&self.expression, &other.expression),
            again: make(&self.again, &other.again),
            values: self.values.iter().zip(&other.values).map(|(a, b)| value(*a, *b)).collect(),
            columns: self.columns.max(other.columns),
            constants: self.constants.max(other.constants),
            degree: degree(self.degree, other.degree),
        }
    }
}

fn check<F: DeviceField + PrimeField>(input: &mut Unstructured<'_>) {
    // A CPU thread takes 256 rows at a time.
    let rows = *choice(input.choose(&[1_usize, 2, 3, 5, 255, 256, 257, 600]));
    let seed: u64 = choice(input.arbitrary());
    let element = |index: u64| F::from(seed.wrapping_mul(2 * index + 1) ^ seed >> 7).square();
    let columns: Vec<Vec<F>> =
        (0..COLUMNS.into()).map(|i| (0..rows as u64).map(|row| element(1000 * i + row)).collect()).collect();
    let constants: Vec<F> = (0..CONSTANTS.into()).map(|i| element(1_000_000 + i)).collect();

    let mut stack: Vec<Term<F>> = Vec::new();
    for _ in 0..choice(input.int_in_range(1..=60)) {
        let step = choice(input.int_in_range(0..=9_u8));
        let term = match (step, stack.len()) {
            (0..=2, _) | (_, 0) => leaf(input, &columns, &constants, rows),
            (3, n) => stack[choice(input.int_in_range(0..=n - 1))].clone(),
            (4, n) => stack[n - 1].map(|a| -a, |x| -x),
            (5, n) => {
                let exponent = choice(exponent(input));
                let base = &stack[n - 1];
                let power = base.map(|a| a.pow(exponent), |x| x.pow([exponent.into()]));
                let degree = base.degree.saturating_mul(exponent.into());
                // To the power 0 nothing of the base is left.
                let used = exponent.min(1) as usize;
                Term { degree, columns: base.columns * used, constants: base.constants * used, ..power }
            }
            (_, n) => {
                let (a, b) = (&stack[n - 1], &stack[choice(input.int_in_range(0..=n - 1))]);
                match step {
                    6 => a.join(b, |a, b| a + b, |x, y| x + y, u64::max),
                    7 => a.join(b, |a, b| a - b, |x, y| x - y, u64::max),
                    _ => a.join(b, |a, b| a * b, |x, y| x * y, u64::saturating_add),
                }
            }
        };
        stack.push(term);
    }
    let Some(term) = stack.pop() else { return };
    compare(&term, &columns, &constants);
}

fn leaf<F: PrimeField>(input: &mut Unstructured<'_>, columns: &[Vec<F>], constants: &[F], rows: usize) -> Term<F> {
    match choice(input.int_in_range(0..=3_u8)) {
        0 => {
            let edges = [0, 1, -1, i64::MIN, i64::MAX];
            let value =
                if choice(input.arbitrary()) { choice(input.arbitrary()) } else { *choice(input.choose(&edges)) };
            Term::leaf(|| Expression::integer(value), vec![F::from(value); rows])
        }
        1 => {
            let index = choice(input.int_in_range(0..=CONSTANTS - 1));
            let term = Term::leaf(|| Expression::constant(index), vec![constants[index as usize]; rows]);
            Term { constants: index as usize + 1, ..term }
        }
        _ => {
            let index = choice(input.int_in_range(0..=COLUMNS - 1));
            let term = Term::leaf(|| Expression::column(index), columns[index as usize].clone());
            Term { columns: index as usize + 1, degree: 1, ..term }
        }
    }
}

fn exponent(input: &mut Unstructured<'_>) -> arbitrary::Result<u32> {
    if input.ratio(7, 8)? { input.int_in_range(0..=20) } else { input.arbitrary() }
}

fn compare<F: DeviceField + PrimeField>(term: &Term<F>, columns: &[Vec<F>], constants: &[F]) {
    let Term { expression, again, values, .. } = term;
    let shape = (expression.columns(), expression.constants(), expression.degree());
    assert_eq!(shape, (term.columns, term.constants, term.degree), "{expression:?}");
    assert_eq!(expression, again);
    assert_eq!(expression.digest(), again.digest());
    for row in [0, values.len() - 1] {
        let row_of: Vec<F> = columns.iter().map(|column| column[row]).collect();
        assert_eq!(expression.value(&row_of, constants), values[row], "{expression:?}");
    }

    let device = Device::cpu();
    let uploaded: Vec<Buffer<Mont<F>>> =
        columns[..term.columns].iter().map(|column| device.upload(column).expect("the CPU has room")).collect();
    let given: Vec<&Buffer<Mont<F>>> = uploaded.iter().collect();
    let vector = Vector::new(&device);
    // Ones, so that a value that is not written is seen.
    let mut out = device.upload::<Mont<F>>(&vec![F::ONE; values.len()]).expect("the CPU has room");
    vector
        .evaluate_expression(expression, &given, &constants[..term.constants], &mut out)
        .expect("there are as many columns and constants as it needs");
    assert!(out.to_vec().expect("the CPU can be read from") == *values, "{expression:?}");
    if let Some((_, fewer)) = given.split_last() {
        let outcome = vector.evaluate_expression(expression, fewer, constants, &mut out);
        assert!(matches!(outcome, Err(Error::Length { .. })), "{outcome:?}");
    }
}
