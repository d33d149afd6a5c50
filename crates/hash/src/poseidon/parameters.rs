use std::iter;

use ark_ff::Field;
use evariste_field::DevicePrimeField;

use super::grain::Grain;
use crate::error::{Error, Result};

/// The parameters of a Poseidon permutation.
///
/// [`PoseidonParameters::circomlib`] gives circomlib's, [`PoseidonParameters::generate`] those of the reference script
/// for any field and rounds, and [`PoseidonParameters::new`] takes your own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoseidonParameters<F> {
    width: usize,
    alpha: u32,
    full: usize,
    partial: usize,
    /// Of all rounds, one after the other.
    constants: Vec<F>,
    /// By rows.
    matrix: Vec<F>,
    /// What the device takes.
    sparse: Vec<F>,
}

/// Elements of a state, at most.
pub(super) const MAX_WIDTH: usize = 17;

/// The exponents of S-boxes.
const ALPHAS: [u32; 3] = [3, 5, 7];

/// Rounds of a kind, at most.
const MAX_ROUNDS: usize = 1000;

/// circomlib's partial rounds for states of 2 elements and more, with 8 full ones.
const CIRCOMLIB_PARTIAL: [usize; 16] = [56, 57, 56, 60, 60, 63, 64, 63, 60, 66, 60, 65, 70, 60, 64, 68];

/// Draws of elements for a matrix: one in 2^(bits of the field) fails.
const DRAWS: usize = 16;

fn refuse<T>(what: &'static str, expected: &'static str, actual: usize) -> Result<T> {
    Err(Error::Parameters { what, expected, actual: actual as u64 })
}

impl<F: DevicePrimeField> PoseidonParameters<F> {
    /// Makes parameters of a permutation of `width` elements, from 2 to 17, with the S-box x^`alpha`. There are
    /// `full` full rounds, half of them at each end, and `partial` ones between. `constants` has `width` elements for
    /// each round, and `matrix` has `width`² by rows: a round multiplies a column of elements by it.
    ///
    /// # Errors
    /// [`Error::Parameters`] for another width; unless `alpha` is 3, 5 or 7 and x^`alpha` a permutation; unless `full`
    /// is even, from 2 to 1000, and `partial` at most 1000; for other numbers of constants; and if the matrix has no
    /// inverse without its first row and column. Whether constants and rounds make a secure hash is yours to know.
    pub fn new(
        width: usize,
        alpha: u32,
        [full, partial]: [usize; 2],
        constants: Vec<F>,
        matrix: Vec<F>,
    ) -> Result<Self> {
        expect_shape::<F>(width, alpha, [full, partial])?;
        if constants.len() != width * (full + partial) {
            return refuse("the number of constants", "the width for each round", constants.len());
        }
        if matrix.len() != width * width {
            return refuse("the elements of the matrix", "the square of the width", matrix.len());
        }
        let Some(sparse) = sparse(width, [full, partial], &constants, &matrix) else {
            return refuse("the rank of the matrix without a row and a column, less than", "its size", width - 1);
        };
        Ok(Self { width, alpha, full, partial, constants, matrix, sparse })
    }

    /// Generates parameters with the S-box x^5 by the Grain register of Poseidon's reference script
    /// (`generate_parameters_grain.sage`), for states of `width` elements and these rounds. The matrix is the script's
    /// first one; the script's further tests of it, which it passes but for small fields, are not made.
    ///
    /// # Errors
    /// [`Error::Parameters`] as [`PoseidonParameters::new`].
    pub fn generate(width: usize, [full, partial]: [usize; 2]) -> Result<Self> {
        let alpha = 5;
        expect_shape::<F>(width, alpha, [full, partial])?;
        let mut grain = Grain::new(F::MODULUS_BIT_SIZE, width, full, partial);
        let constants = (0..width * (full + partial)).map(|_| grain.below()).collect();
        let matrix = iter::repeat_with(|| {
            let drawn: Vec<F> = (0..2 * width).map(|_| grain.reduced()).collect();
            let (x, y) = drawn.split_at(width);
            let is_new = |i: usize| !drawn[..i].contains(&drawn[i]);
            let distinct = (0..drawn.len()).all(is_new);
            let entries = x.iter().flat_map(|x| y.iter().map(|y| (*x + y).inverse())).collect::<Option<Vec<F>>>();
            entries.filter(|_| distinct)
        });
        match matrix.take(DRAWS).flatten().next() {
            Some(matrix) => Self::new(width, alpha, [full, partial], constants, matrix),
            None => refuse("the bits of the field", "enough for a Cauchy matrix", F::MODULUS_BIT_SIZE as usize),
        }
    }

    /// Generates parameters with 8 full rounds and circomlib's partial rounds for this width, from 2 to 17. Over the
    /// scalar field of BN254 they are circomlib's own, with hashes of `width` − 1 elements. The same rounds are for
    /// 128 bits of security over any field of 254 or 255 bits, such as the scalar field of BLS12-381.
    ///
    /// # Errors
    /// [`Error::Parameters`] for another width or field, or if x^5 is no permutation.
    pub fn circomlib(width: usize) -> Result<Self> {
        let bits = F::MODULUS_BIT_SIZE;
        if !(254..=256).contains(&bits) {
            return refuse("the bits of the field", "from 254 to 256", bits as usize);
        }
        match width.checked_sub(2).and_then(|number| CIRCOMLIB_PARTIAL.get(number)) {
            Some(partial) => Self::generate(width, [8, *partial]),
            None => refuse("the width of a state", "from 2 to 17", width),
        }
    }
}

impl<F> PoseidonParameters<F> {
    /// Returns the number of elements of a state.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the exponent of the S-box.
    pub fn alpha(&self) -> u32 {
        self.alpha
    }

    /// Returns the full rounds and the partial ones.
    pub fn rounds(&self) -> [usize; 2] {
        [self.full, self.partial]
    }

    /// Returns the constants of all rounds, one after the other.
    pub fn constants(&self) -> &[F] {
        &self.constants
    }

    /// Returns the matrix, by rows.
    pub fn matrix(&self) -> &[F] {
        &self.matrix
    }

    /// The constants in the order of `poseidon.cuh`.
    pub(super) fn sparse(&self) -> &[F] {
        &self.sparse
    }
}

fn expect_shape<F: DevicePrimeField>(width: usize, alpha: u32, [full, partial]: [usize; 2]) -> Result<()> {
    if !(2..=MAX_WIDTH).contains(&width) {
        return refuse("the width of a state", "from 2 to 17", width);
    }
    if !ALPHAS.contains(&alpha) || crate::parameters::is_multiple(F::MODULUS_MINUS_ONE_DIV_TWO.as_ref(), alpha.into()) {
        return refuse("the exponent of the S-box", "3, 5 or 7, and coprime to p − 1", alpha as usize);
    }
    if full < 2 || !full.is_multiple_of(2) || full > MAX_ROUNDS {
        return refuse("the number of full rounds", "even, from 2 to 1000", full);
    }
    if partial > MAX_ROUNDS {
        return refuse("the number of partial rounds", "at most 1000", partial);
    }
    Ok(())
}

/// The constants of rounds with sparse matrices. With M = [[m, v], [w, N]], the partial round number r has the sparse
/// matrix [[m, v·N^r], [N^−(r+1)·w, 1]], and the last one, number R − 1, the matrix M·diag(1, N^(R−1)). Constants of
/// other elements than the first go through M into the next round.
fn sparse<F: Field>(width: usize, [full, partial]: [usize; 2], constants: &[F], matrix: &[F]) -> Option<Vec<F>> {
    let half = full / 2;
    let rows: Vec<&[F]> = constants.chunks_exact(width).collect();
    let (initial, rest) = rows.split_at(half);
    let (middle, terminal) = rest.split_at(partial);

    let mut moved = vec![F::ZERO; width];
    let mut firsts = Vec::with_capacity(partial);
    for row in middle {
        let mut sums: Vec<F> = row.iter().zip(&moved).map(|(x, y)| *x + y).collect();
        firsts.push(sums[0]);
        sums[0] = F::ZERO;
        moved = product(matrix, width, &sums);
    }
    let first_terminal = terminal[0].iter().zip(&moved).map(|(x, y)| *x + y);

    let n: Vec<F> = matrix.chunks_exact(width).skip(1).flat_map(|row| &row[1..]).copied().collect();
    let inverse = inverse(&n, width - 1)?;
    let mut v = matrix[1..width].to_vec();
    let mut w: Vec<F> = matrix.chunks_exact(width).skip(1).map(|row| row[0]).collect();
    let mut rounds = Vec::with_capacity(2 * width * partial);
    let mut last = matrix.to_vec();
    for (number, first) in firsts.into_iter().enumerate() {
        w = product(&inverse, width - 1, &w);
        rounds.extend([first, matrix[0]]);
        rounds.extend_from_slice(&v);
        rounds.extend_from_slice(&w);
        if number + 1 < partial {
            v = row_product(&v, &n, width - 1);
            for row in last.chunks_exact_mut(width) {
                let moved = row_product(&row[1..], &n, width - 1);
                row[1..].copy_from_slice(&moved);
            }
        }
    }
    let full = initial.iter().copied().flatten().copied().chain(first_terminal);
    let full = full.chain(terminal[1..].iter().copied().flatten().copied());
    Some(full.chain(matrix.iter().copied()).chain(last).chain(rounds).collect())
}

/// A matrix times a column.
fn product<F: Field>(matrix: &[F], width: usize, column: &[F]) -> Vec<F> {
    let rows = matrix.chunks_exact(width);
    rows.map(|row| row.iter().zip(column).map(|(x, y)| *x * y).sum()).collect()
}

/// A row times a matrix.
fn row_product<F: Field>(row: &[F], matrix: &[F], width: usize) -> Vec<F> {
    let column = |k: usize| row.iter().zip(matrix.iter().skip(k).step_by(width));
    (0..width).map(|k| column(k).map(|(x, y)| *x * y).sum()).collect()
}

/// The inverse, by Gauss and Jordan.
fn inverse<F: Field>(matrix: &[F], width: usize) -> Option<Vec<F>> {
    let mut rows: Vec<Vec<F>> = matrix
        .chunks_exact(width)
        .enumerate()
        .map(|(i, row)| {
            let unit = (0..width).map(|k| if i == k { F::ONE } else { F::ZERO });
            row.iter().copied().chain(unit).collect()
        })
        .collect();
    for column in 0..width {
        let pivot = (column..width).find(|row| !rows[*row][column].is_zero())?;
        rows.swap(column, pivot);
        let scale = rows[column][column].inverse()?;
        rows[column].iter_mut().for_each(|x| *x *= scale);
        let line = rows[column].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(i, _)| *i != column) {
            let factor = row[column];
            row.iter_mut().zip(&line).for_each(|(x, y)| *x -= factor * y);
        }
    }
    Some(rows.into_iter().flat_map(|row| row.into_iter().skip(width)).collect())
}
