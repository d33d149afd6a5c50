//! The witness: the values of a circuit's variables.

use std::{fmt, path::Path};

use ark_ff::PrimeField;
use evariste_backend::author::Wiped;

use crate::{
    error::{Error, Problem, Result},
    file,
    sections::{Format, Sections},
    words::{self, expect_field},
};

const FORMAT: Format = Format { name: "wtns", version: 2, sections: &[(1, "header"), (2, "values")], optional: &[] };

/// The values of a circuit's variables: the constant 1, the public inputs, and then the secret ones. Their memory is
/// zeroed when it is dropped.
#[derive(Clone)]
pub struct Witness<F: PrimeField> {
    values: Wiped<F>,
}

impl<F: PrimeField> Witness<F> {
    /// Makes a witness of the values of all variables. The first one is the constant 1.
    ///
    /// # Errors
    /// [`Error::WitnessOne`] if the first value is not 1, or there is none.
    pub fn new(values: Vec<F>) -> Result<Self> {
        let values = Wiped::from(values);
        if values.first() != Some(&F::ONE) {
            return Err(Error::WitnessOne);
        }
        Ok(Self { values })
    }

    /// Reads a file that a circuit of circom has written (`.wtns`, version 2).
    ///
    /// The file is mapped into memory, so no program may change it during the call.
    ///
    /// # Errors
    /// [`Error::Io`] if the system does not map the file, and [`Error::File`] as for [`from_bytes`](Self::from_bytes).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        file::map(path.as_ref(), Self::from_bytes)
    }

    /// Reads the contents of a file that a circuit of circom has written (`.wtns`, version 2).
    ///
    /// # Errors
    /// [`Error::File`] if the bytes are no such file, or one for another field.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let sections = Sections::new(bytes, &FORMAT)?;
        let mut header = sections.cursor(1)?;
        expect_field::<F>(&mut header)?;
        let count = header.word()?;
        header.finish()?;
        let mut cursor = sections.cursor(2)?;
        let mut values = Wiped::with_capacity(cursor.expect_elements(count.into(), words::bytes::<F>() as u64)?);
        words::integers(&mut cursor, count.into(), &mut values)?;
        if values.first() != Some(&F::ONE) {
            return Err(sections.cursor(2)?.error(Problem::One));
        }
        Ok(Self { values })
    }

    /// Returns the values of all variables.
    pub fn values(&self) -> &[F] {
        &self.values
    }

    /// Returns the values of so many public inputs.
    ///
    /// # Errors
    /// [`Error::WitnessLength`] if the witness is too short for them.
    pub fn public(&self, inputs: usize) -> Result<&[F]> {
        let wrong = Error::WitnessLength { expected: inputs.saturating_add(1), actual: self.values.len() };
        self.values[1..].get(..inputs).ok_or(wrong)
    }
}

impl<F: PrimeField> fmt::Debug for Witness<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness").field("len", &self.values.len()).finish_non_exhaustive()
    }
}
