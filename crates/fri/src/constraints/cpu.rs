//! The instructions of constraints on the CPU, many rows at a time.

use ark_ff::AdditiveGroup;
use evariste_backend::{author::Wiped, parallel};

use super::program::{INDEX_BITS, INPUT, MUL, NEXT, ROW, SLOT, SUB, WEIGH};
use crate::{
    field::FriField,
    kernels::{ConstraintParams, at},
    points::reverse,
};

/// Rows that a CPU thread takes at a time: so many values of some slots stay in its cache.
const ROWS: usize = 64;

/// A launch.
pub(crate) struct CpuRows<'a> {
    pub(crate) params: &'a ConstraintParams,
    pub(crate) code: &'a [u32],
    pub(crate) inputs: &'a [u32],
    pub(crate) weights: &'a [u32],
    pub(crate) selectors: &'a [u32],
    pub(crate) matrix: &'a [u32],
    /// All of them: none are elsewhere.
    pub(crate) slots: usize,
}

/// A row of a launch: its place in the output, and those of it and the next one in the matrix.
#[derive(Clone, Copy)]
struct Row {
    out: usize,
    place: usize,
    next: usize,
}

impl CpuRows<'_> {
    pub(crate) fn run<F: FriField>(&self, out: &mut [u32]) {
        let (log_rows, [first, len]) = (self.params.log_rows, [self.params.first, self.params.len].map(|i| i as usize));
        let count = 1usize << log_rows;
        parallel::chunks(&mut out[..count * F::LIMBS], ROWS * F::LIMBS, &|chunk, out| {
            let rows = (0..out.len() / F::LIMBS).map(|i| {
                let [place, next] = [0, 1].map(|step| reverse((chunk * ROWS + i + step) % count, log_rows));
                Row { out: i, place, next }
            });
            let rows: Vec<Row> = rows.filter(|row| (first..first + len).contains(&row.place)).collect();
            let sums = self.sums::<F>(&rows, out);
            for (row, sum) in rows.iter().zip(sums.iter()) {
                sum.store(&mut out[row.out * F::LIMBS..][..F::LIMBS]);
            }
        });
    }

    /// The sums of rows.
    fn sums<F: FriField>(&self, rows: &[Row], before: &[u32]) -> Wiped<F> {
        let zero = F::BasePrimeField::ZERO;
        let start = |row: &Row| if self.params.add == 1 { at::<F>(before, row.out) } else { F::ZERO };
        let mut sums = Wiped::from(rows.iter().map(start).collect::<Vec<F>>());
        let mut slots = Wiped::from(vec![zero; self.slots * rows.len()]);
        let [mut a, mut b] = [0, 1].map(|_| Wiped::from(vec![zero; rows.len()]));
        for instruction in self.code.as_chunks::<4>().0 {
            let [operation, target, left, right] = *instruction;
            self.fetch::<F>(left, rows, &slots, &mut a);
            self.fetch::<F>(right, rows, &slots, &mut b);
            let operands = a.iter_mut().zip(b.iter());
            match operation & !WEIGH {
                MUL => operands.for_each(|(a, b)| *a *= b),
                SUB => operands.for_each(|(a, b)| *a -= b),
                _ => operands.for_each(|(a, b)| *a += b),
            }
            if operation & WEIGH != 0 {
                let weight = at::<F>(self.weights, target as usize);
                sums.iter_mut().zip(a.iter()).for_each(|(sum, value)| *sum += weight.mul_by_base_prime_field(value));
            } else {
                slots[target as usize * rows.len()..][..rows.len()].copy_from_slice(&a);
            }
        }
        if self.params.last == 1 {
            let inverse = at::<F::BasePrimeField>(self.inputs, 3);
            sums.iter_mut().for_each(|sum| *sum = sum.mul_by_base_prime_field(&inverse));
        }
        sums
    }

    /// An operand of all rows.
    fn fetch<F: FriField>(
        &self,
        operand: u32,
        rows: &[Row],
        slots: &[F::BasePrimeField],
        out: &mut [F::BasePrimeField],
    ) {
        let (kind, index) = (operand >> INDEX_BITS, (operand & ((1 << INDEX_BITS) - 1)) as usize);
        let [row_pitch, column_pitch] = [self.params.row_pitch, self.params.column_pitch].map(|pitch| pitch as usize);
        let element = |place: usize| at(self.matrix, place * row_pitch + index * column_pitch);
        let rows = rows.iter().zip(out.iter_mut());
        match kind {
            SLOT => {
                let count = rows.len();
                out.copy_from_slice(&slots[index * count..][..count]);
            }
            ROW => rows.for_each(|(row, out)| *out = element(row.place)),
            NEXT => rows.for_each(|(row, out)| *out = element(row.next)),
            INPUT => out.fill(at(self.inputs, index)),
            _ => {
                let factor: F::BasePrimeField = at(self.inputs, if index == 2 { 2 } else { 1 });
                let first = index * self.params.selector_pitch as usize;
                rows.for_each(|(row, out)| *out = factor * at::<F::BasePrimeField>(self.selectors, first + row.place));
            }
        }
    }
}
