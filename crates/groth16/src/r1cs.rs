//! Constraints of circuits: circom's `.r1cs`, version 1.

use std::path::Path;

use ark_ff::PrimeField;
use rayon::prelude::*;

use crate::{
    curve::Curve,
    error::{Error, Problem, Result},
    file,
    matrix::{Entry, Matrix, Rows, entries},
    sections::{Cursor, Format, Sections},
    witness::Witness,
    words::{self, expect_field},
};

const FORMAT: Format =
    Format { name: "r1cs", version: 1, sections: &[(1, "header"), (2, "constraints"), (3, "wire map")], optional: &[] };

/// The constraints of a circuit: A·w ∘ B·w = C·w for a witness w. Its variables are the constant 1, the public inputs,
/// and then the secret ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct R1cs<F> {
    pub(crate) a: Matrix<F>,
    pub(crate) b: Matrix<F>,
    pub(crate) c: Matrix<F>,
    public: usize,
    labels: Vec<u64>,
}

impl Curve {
    /// Returns the curve with whose scalar field circom has written constraints (`.r1cs`).
    ///
    /// The file is mapped into memory, so no program may change it during the call.
    ///
    /// # Errors
    /// [`Error::Io`] if the system does not map the file, and [`Error::File`] if its sections are damaged, or if the
    /// modulus is that of another curve.
    pub fn of_r1cs(path: impl AsRef<Path>) -> Result<Self> {
        let read =
            |bytes: &[u8]| words::curve::<ark_bn254::Fr, ark_bls12_381::Fr>(Sections::new(bytes, &FORMAT)?.cursor(1)?);
        file::map(path.as_ref(), read)
    }
}

impl<F: PrimeField> R1cs<F> {
    /// Reads a file that circom has written (`.r1cs`). Several entries of one constraint for one variable count as their
    /// sum. Files with custom gates, which Groth16 has not, are refused.
    ///
    /// The file is mapped into memory, so no program may change it during the call.
    ///
    /// # Errors
    /// [`Error::Io`] if the system does not map the file, and [`Error::File`] as for [`from_bytes`](Self::from_bytes).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        file::map(path.as_ref(), Self::from_bytes)
    }

    /// Reads the contents of a file that circom has written (`.r1cs`).
    ///
    /// # Errors
    /// [`Error::File`] if the bytes are no such file, or one for another field.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let sections = Sections::new(bytes, &FORMAT)?;
        let header = Header::read::<F>(sections.cursor(1)?)?;
        let mut labels = sections.cursor(3)?;
        labels.expect_elements(header.variables.into(), 8)?;
        let labels = (0..header.variables).map(|_| label(&mut labels, &header)).collect::<Result<_>>()?;
        let mut cursor = sections.cursor(2)?;
        let mut entries = [Vec::new(), Vec::new(), Vec::new()];
        for row in 0..header.constraints {
            entries.iter_mut().try_for_each(|entries| combination::<F>(&mut cursor, &header, row, entries))?;
        }
        cursor.finish()?;
        let (rows, width) = (header.constraints as usize, header.variables as usize);
        let [a, b, c] = entries.map(|entries| Matrix::new(rows, width, entries.iter().copied()));
        Ok(Self { a, b, c, public: header.public as usize, labels })
    }

    /// Makes constraints of the matrices that arkworks' constraint system gives (`ConstraintSystem::to_matrices`), and
    /// its numbers of variables and of public inputs, the latter without the constant 1.
    ///
    /// # Errors
    /// [`Error::Parts`] if the sizes do not fit together.
    pub fn from_arkworks(matrices: &[Rows<F>], variables: usize, public: usize) -> Result<Self> {
        let wrong = |part, expected: usize, actual: usize| {
            Err(Error::Parts { part, expected: expected as u64, actual: actual as u64 })
        };
        let [a, b, c] = matrices else { return wrong("matrices", 3, matrices.len()) };
        if public >= variables {
            return wrong("variables", public.saturating_add(1), variables);
        }
        if let Some(matrix) = [b, c].into_iter().find(|matrix| matrix.len() != a.len()) {
            return wrong("the rows of a matrix", a.len(), matrix.len());
        }
        let columns = matrices.iter().flatten().flatten().map(|(_, column)| *column);
        if let Some(column) = columns.filter(|column| *column >= variables || u32::try_from(*column).is_err()).max() {
            return wrong("a column of the matrices", variables, column);
        }
        let [a, b, c] = [a, b, c].map(|rows| Matrix::new(rows.len(), variables, entries(rows)));
        Ok(Self { a, b, c, public, labels: Vec::new() })
    }

    /// Returns the matrix A.
    pub fn a(&self) -> &Matrix<F> {
        &self.a
    }

    /// Returns the matrix B.
    pub fn b(&self) -> &Matrix<F> {
        &self.b
    }

    /// Returns the matrix C.
    pub fn c(&self) -> &Matrix<F> {
        &self.c
    }

    /// Returns the number of constraints.
    pub fn constraints(&self) -> usize {
        self.a.rows()
    }

    /// Returns the number of variables, the constant 1 among them.
    pub fn variables(&self) -> usize {
        self.a.width()
    }

    /// Returns the number of public inputs: circom's outputs and public inputs, without the constant 1.
    pub fn public_inputs(&self) -> usize {
        self.public
    }

    /// Returns the number of each variable in circom's table of symbols, from a file's wire map. Constraints from
    /// elsewhere have none.
    pub fn labels(&self) -> &[u64] {
        &self.labels
    }

    /// Checks a witness. The cost is one multiplication for each entry of the matrices.
    ///
    /// # Errors
    /// [`Error::WitnessLength`] if the witness has another length, [`Error::Unsatisfied`] with the first constraint that
    /// it does not satisfy.
    pub fn check(&self, witness: &Witness<F>) -> Result<()> {
        let (expected, values) = (self.variables(), witness.values());
        if values.len() != expected {
            return Err(Error::WitnessLength { expected, actual: values.len() });
        }
        let row = |matrix: &Matrix<F>, row| matrix.multiply_row(row, values);
        let wrong = |i: &usize| row(&self.a, *i) * row(&self.b, *i) != row(&self.c, *i);
        match (0..self.constraints()).into_par_iter().find_first(wrong) {
            Some(constraint) => Err(Error::Unsatisfied { constraint }),
            None => Ok(()),
        }
    }
}

/// Section 1.
struct Header {
    variables: u32,
    /// Without the constant 1.
    public: u32,
    labels: u64,
    constraints: u32,
}

impl Header {
    fn read<F: PrimeField>(mut cursor: Cursor<'_>) -> Result<Self> {
        expect_field::<F>(&mut cursor)?;
        let start = cursor.clone();
        let variables = cursor.word()?;
        if variables == 0 {
            let (what, most) = ("number of variables", u32::MAX.into());
            return Err(start.error(Problem::Range { what, least: 1, most, actual: 0 }));
        }
        let [outputs, public, secret] = [cursor.word()?, cursor.word()?, cursor.word()?].map(u64::from);
        let most = u64::from(variables) - 1;
        if outputs + public + secret > most {
            let (what, actual) = ("number of inputs and outputs", outputs + public + secret);
            return Err(start.error_at(4, Problem::Range { what, least: 0, most, actual }));
        }
        let (labels, constraints) = (cursor.long()?, cursor.word()?);
        cursor.finish()?;
        Ok(Self { variables, public: (outputs + public) as u32, labels, constraints })
    }
}

/// Reads an entry of the wire map.
fn label(cursor: &mut Cursor<'_>, header: &Header) -> Result<u64> {
    let start = cursor.clone();
    match cursor.long()? {
        label if label < header.labels => Ok(label),
        actual => {
            let most = header.labels.saturating_sub(1);
            Err(start.error(Problem::Range { what: "label", least: 0, most, actual }))
        }
    }
}

/// Reads a linear combination: a row of a matrix.
fn combination<F: PrimeField>(
    cursor: &mut Cursor<'_>,
    header: &Header,
    row: u32,
    entries: &mut Vec<Entry<F>>,
) -> Result<()> {
    for index in 0..cursor.word()? {
        let start = cursor.clone();
        let column = cursor.word()?;
        if column >= header.variables {
            let (what, most) = ("variable", u64::from(header.variables) - 1);
            return Err(start.error(Problem::Range { what, least: 0, most, actual: column.into() }));
        }
        let start = cursor.clone();
        let value = words::integer(cursor.take(words::bytes::<F>() as u64)?);
        let wrong = || start.error(Problem::NotCanonical { index: index.into() });
        entries.push(Entry { row, column, value: value.ok_or_else(wrong)? });
    }
    Ok(())
}
