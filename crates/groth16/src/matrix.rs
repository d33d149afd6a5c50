//! Sparse matrices of constraints.

use ark_ff::Field;
use rayon::prelude::*;

/// A sparse matrix by rows. A row may have several entries in one column, which count as their sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix<F> {
    width: usize,
    /// The place of each row's first entry, and after them the number of entries.
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<F>,
}

/// An entry of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<F> {
    /// The row.
    pub row: u32,
    /// The column.
    pub column: u32,
    /// The value.
    pub value: F,
}

/// A matrix as arkworks has it: its rows, each a list of values with their columns.
pub type Rows<F> = Vec<Vec<(F, usize)>>;

/// Returns the entries of a matrix by rows, in arkworks' form. Rows and columns have 32 bits.
pub(crate) fn entries<F: Field>(rows: &Rows<F>) -> impl Iterator<Item = Entry<F>> + Clone + '_ {
    (0..).zip(rows).flat_map(|(row, entries)| {
        entries.iter().map(move |(value, column)| Entry { row, column: *column as u32, value: *value })
    })
}

impl<F: Field> Matrix<F> {
    /// Makes a matrix of its entries, in any order. Entries of one row keep theirs.
    ///
    /// # Panics
    /// If an entry is outside of the matrix.
    pub(crate) fn new(rows: usize, width: usize, entries: impl Iterator<Item = Entry<F>> + Clone) -> Self {
        let mut starts = vec![0; rows + 1];
        for entry in entries.clone() {
            assert!((entry.column as usize) < width, "the callers have checked the columns");
            starts[entry.row as usize + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut columns = vec![0; starts[rows]];
        let mut values = vec![F::ZERO; starts[rows]];
        for entry in entries {
            let place = &mut next[entry.row as usize];
            columns[*place] = entry.column;
            values[*place] = entry.value;
            *place += 1;
        }
        Self { width, starts, columns, values }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the place of each row's first entry, and after them the number of entries.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Returns the column of each entry, row by row.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// Returns the value of each entry, row by row.
    pub fn values(&self) -> &[F] {
        &self.values
    }

    /// Returns the entries of a row: their columns and values.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (u32, F)> + Clone + '_ {
        let range = self.starts[row]..self.starts[row + 1];
        self.columns[range.clone()].iter().copied().zip(self.values[range].iter().copied())
    }

    /// Returns the entries, row by row.
    pub fn entries(&self) -> impl Iterator<Item = Entry<F>> + Clone + '_ {
        let row = |row: usize| self.row(row).map(move |(column, value)| Entry { row: row as u32, column, value });
        (0..self.rows()).flat_map(row)
    }

    /// Returns the product of a row with a vector.
    ///
    /// # Panics
    /// If there is no such row, or the vector is shorter than the row.
    pub fn multiply_row(&self, row: usize, vector: &[F]) -> F {
        self.row(row).map(|(column, value)| value * vector[column as usize]).sum()
    }

    /// Returns the product of the matrix with a vector.
    ///
    /// # Panics
    /// If the vector's length is not the number of columns.
    pub fn multiply(&self, vector: &[F]) -> Vec<F> {
        assert_eq!(vector.len(), self.width, "the vector has the length of a row");
        (0..self.rows()).into_par_iter().map(|row| self.multiply_row(row, vector)).collect()
    }
}
