//! Keys of circom's tools: `.zkey`, version 1, with Groth16 as the proof system.
//!
//! | Section | Contents |
//! |---|---|
//! | 1 | the number of the proof system, 1 |
//! | 2 | both moduli, the numbers of variables and public inputs, the size of the domain, α, β, γ and δ |
//! | 3 | the points of the public inputs: the constant 1 and the others |
//! | 4 | the entries of A and B: matrix, row, column, value |
//! | 5 to 7 | the queries A, B in G1 and B in G2 |
//! | 8 | the query L |
//! | 9 | the query H |
//! | 10 | the contributions to the set-up, which proofs do not use |
//!
//! Integers are little-endian. Coordinates are in Montgomery form with R = 2^(8 · bytes), the device's form. Values of
//! entries are multiplied by R².

mod write;

use std::path::Path;

use ark_ec::AffineRepr;
use ark_ff::Field;
use ark_groth16::VerifyingKey;
use evariste_field::DeviceField;
use rayon::prelude::*;

use crate::{
    check::Check,
    curve::{CircomCurve, Curve},
    domain,
    error::{PointError, Problem, Result},
    file,
    key::{Key, Quotient},
    matrix::{Entry, Matrix},
    order::CircomOrder,
    sections::{Cursor, Format, Sections},
    words::{self, expect_field, point_bytes, points},
};

const FORMAT: Format = Format {
    name: "zkey",
    version: 1,
    sections: &[
        (1, "protocol"),
        (2, "header"),
        (3, "IC"),
        (4, "coefficients"),
        (5, "A"),
        (6, "B in G1"),
        (7, "B in G2"),
        (8, "L"),
        (9, "H"),
    ],
    // Keys of PLONK and FFLONK have more sections. They are told by the number of the proof system.
    optional: &[
        (CONTRIBUTIONS, "contributions"),
        (11, OTHER),
        (12, OTHER),
        (13, OTHER),
        (14, OTHER),
        (15, OTHER),
        (16, OTHER),
        (17, OTHER),
    ],
};

const CONTRIBUTIONS: u32 = 10;

const OTHER: &str = "of another proof system";

/// The number of Groth16 among circom's proof systems.
const GROTH16: u32 = 1;

/// The bytes of matrix, row and column before the value of an entry.
const PLACE_BYTES: usize = 12;

/// The bytes of a hash of a transcript.
const HASH_BYTES: u64 = 64;

impl Curve {
    /// Returns the curve that a key of circom's tools (`.zkey`) is for. It reads the headers of all sections and the
    /// modulus of the base field.
    ///
    /// The file is mapped into memory, so no program may change it during the call.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the system does not map the file, and [`Error::File`](crate::Error::File) as
    /// for [`of_zkey_bytes`](Self::of_zkey_bytes).
    pub fn of_zkey(path: impl AsRef<Path>) -> Result<Self> {
        file::map(path.as_ref(), Self::of_zkey_bytes)
    }

    /// Returns the curve that the contents of a `.zkey` file are for.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) if the sections are damaged, or if the modulus is that of another curve.
    pub fn of_zkey_bytes(bytes: &[u8]) -> Result<Self> {
        words::curve::<ark_bn254::Fq, ark_bls12_381::Fq>(Sections::new(bytes, &FORMAT)?.cursor(2)?)
    }
}

impl<E: CircomCurve> Key<E> {
    /// Reads a key of circom's tools (`.zkey`), with every check.
    ///
    /// The file is mapped into memory, so no program may change it during the call.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the system does not map the file, and [`Error::File`](crate::Error::File) if
    /// it is no such key, damaged, or for another curve.
    pub fn from_zkey(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_zkey_with(path, Check::Full)
    }

    /// Reads a key of circom's tools with these checks of its points.
    ///
    /// # Errors
    /// As for [`from_zkey`](Self::from_zkey).
    pub fn from_zkey_with(path: impl AsRef<Path>, check: Check) -> Result<Self> {
        file::map(path.as_ref(), |bytes| Self::from_zkey_bytes(bytes, check))
    }

    /// Reads the contents of a `.zkey` file with these checks of its points.
    ///
    /// # Errors
    /// [`Error::File`](crate::Error::File) if the bytes are no such key, damaged, or for another curve.
    pub fn from_zkey_bytes(bytes: &[u8], check: Check) -> Result<Self> {
        let sections = Sections::new(bytes, &FORMAT)?;
        let mut protocol = sections.cursor(1)?;
        let start = protocol.clone();
        let actual = protocol.word()?;
        if actual != GROTH16 {
            return Err(start.error(Problem::Protocol { expected: GROTH16, actual }));
        }
        protocol.finish()?;
        let header = Header::<E>::read(sections.cursor(2)?, check)?;
        if let Some((number, cursor)) = (11..=17).find_map(|number| Some((number, sections.optional(number)?))) {
            return Err(cursor.error(Problem::Unknown { number }));
        }
        if let Some(cursor) = sections.optional(CONTRIBUTIONS) {
            contributions::<E>(cursor)?;
        }

        // All lengths before the first allocation.
        let (g1, g2) = (point_bytes::<E::G1Config>() as u64, point_bytes::<E::G2Config>() as u64);
        let (variables, inputs) = (u64::from(header.variables), u64::from(header.public) + 1);
        let domain = u64::from(header.domain);
        let lengths =
            [(3, inputs, g1), (5, variables, g1), (6, variables, g1), (7, variables, g2), (8, variables - inputs, g1)];
        for (number, count, bytes) in lengths.into_iter().chain([(9, domain, g1)]) {
            sections.cursor(number)?.expect_elements(count, bytes)?;
        }
        let order = CircomOrder::new::<E::ScalarField>(header.domain.ilog2());
        let [a, b] = matrices(sections.cursor(4)?, &header, &order)?;

        let read = |number, count| points::<E::G1Config>(&mut sections.cursor(number)?, count, check);
        let mut h_query = read(9, domain)?;
        order.sort(&mut h_query);
        Ok(Self {
            verifying_key: VerifyingKey { gamma_abc_g1: read(3, inputs)?, ..header.verifying_key },
            beta_g1: header.beta_g1,
            delta_g1: header.delta_g1,
            a_query: read(5, variables)?,
            b_g1_query: read(6, variables)?,
            b_g2_query: points::<E::G2Config>(&mut sections.cursor(7)?, variables, check)?,
            h_query,
            l_query: read(8, variables - inputs)?,
            a,
            b,
            log_domain: header.domain.ilog2(),
            quotient: Quotient::Circom,
        })
    }
}

/// Section 2.
struct Header<E: CircomCurve> {
    variables: u32,
    /// Without the constant 1.
    public: u32,
    domain: u32,
    /// Without the points of the public inputs.
    verifying_key: VerifyingKey<E>,
    beta_g1: E::G1Affine,
    delta_g1: E::G1Affine,
}

impl<E: CircomCurve> Header<E> {
    fn read(mut cursor: Cursor<'_>, check: Check) -> Result<Self> {
        expect_field::<E::BaseField>(&mut cursor)?;
        expect_field::<E::ScalarField>(&mut cursor)?;
        let start = cursor.clone();
        let (variables, public, domain) = (cursor.word()?, cursor.word()?, cursor.word()?);
        let range =
            |what, least: u64, most: u64, actual: u32| Problem::Range { what, least, most, actual: actual.into() };
        if variables == 0 {
            return Err(start.error(range("number of variables", 1, u32::MAX.into(), variables)));
        }
        if public >= variables {
            let most = u64::from(variables) - 1;
            return Err(start.error_at(4, range("number of public inputs", 0, most, public)));
        }
        if !domain.is_power_of_two() {
            return Err(start.error_at(8, Problem::DomainSize { actual: domain }));
        }
        let most = 1 << domain::largest_log::<E::ScalarField>();
        if u64::from(domain) > most {
            return Err(start.error_at(8, range("domain size", 1, most, domain)));
        }
        let (alpha_g1, beta_g1) = (g1::<E>(&mut cursor, check)?, g1::<E>(&mut cursor, check)?);
        let (beta_g2, gamma_g2) = (g2::<E>(&mut cursor, check)?, g2::<E>(&mut cursor, check)?);
        let (delta_g1, delta_g2) = (g1::<E>(&mut cursor, check)?, g2::<E>(&mut cursor, check)?);
        cursor.finish()?;
        let verifying_key = VerifyingKey { alpha_g1, beta_g2, gamma_g2, delta_g2, gamma_abc_g1: Vec::new() };
        Ok(Self { variables, public, domain, verifying_key, beta_g1, delta_g1 })
    }
}

/// Reads a point of G1 that is not the one at infinity.
fn g1<E: CircomCurve>(cursor: &mut Cursor<'_>, check: Check) -> Result<E::G1Affine> {
    let start = cursor.clone();
    finite(&start, points::<E::G1Config>(cursor, 1, check)?)
}

/// Reads a point of G2 that is not the one at infinity.
fn g2<E: CircomCurve>(cursor: &mut Cursor<'_>, check: Check) -> Result<E::G2Affine> {
    let start = cursor.clone();
    finite(&start, points::<E::G2Config>(cursor, 1, check)?)
}

fn finite<P: AffineRepr>(start: &Cursor<'_>, points: Vec<P>) -> Result<P> {
    let point = points.into_iter().find(|point| !point.is_zero());
    point.ok_or_else(|| start.error(Problem::Point { index: 0, kind: PointError::Infinity }))
}

/// An entry of the matrix A or B.
type Coefficient<F> = (bool, Entry<F>);

/// Reads section 4.
fn matrices<E: CircomCurve>(
    mut cursor: Cursor<'_>,
    header: &Header<E>,
    order: &CircomOrder,
) -> Result<[Matrix<E::ScalarField>; 2]> {
    let count = u64::from(cursor.word()?);
    let each = PLACE_BYTES + words::bytes::<E::ScalarField>();
    cursor.expect_elements(count, each as u64)?;
    // R², of which the element below takes one factor away by itself.
    let factor = E::ScalarField::from(2_u64).pow([32 * E::ScalarField::LIMBS as u64]).inverse();
    let factor = factor.unwrap_or(E::ScalarField::ONE);
    let start = cursor.clone();
    let read = |(index, bytes): (usize, &[u8])| -> Result<Coefficient<E::ScalarField>> {
        let mut entry = start.clone();
        entry.skip(index * each);
        let range = |at, what, bound: u32, actual: u32| {
            entry.error_at(at, Problem::Range { what, least: 0, most: u64::from(bound) - 1, actual: actual.into() })
        };
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (matrix, row, column) = (word(0), word(4), word(8));
        if matrix > 1 {
            return Err(range(0, "matrix", 2, matrix));
        }
        if row >= header.domain {
            return Err(range(4, "constraint", header.domain, row));
        }
        if column >= header.variables {
            return Err(range(8, "variable", header.variables, column));
        }
        let value = words::element::<E::ScalarField>(&bytes[PLACE_BYTES..]);
        let wrong = || entry.error_at(PLACE_BYTES as u64, Problem::NotCanonical { index: index as u64 });
        let value = value.ok_or_else(wrong)? * factor;
        Ok((matrix == 1, Entry { row: order.row(row), column, value }))
    };
    let bytes = cursor.take(count * each as u64)?;
    let entries = || bytes.par_chunks_exact(each).enumerate().map(read);
    let coefficients: Result<Vec<_>> = entries().collect();
    // Threads found the error, perhaps not the first one.
    let coefficients = coefficients.map_err(|error| entries().find_map_first(Result::err).unwrap_or(error))?;
    Ok([false, true].map(|matrix| {
        let entries = coefficients.iter().filter(|(of, _)| *of == matrix).map(|(_, entry)| *entry);
        Matrix::new(header.domain as usize, header.variables as usize, entries)
    }))
}

/// Checks that section 10 is a list of contributions. Their proofs are not checked.
fn contributions<E: CircomCurve>(mut cursor: Cursor<'_>) -> Result<()> {
    let points = 3 * point_bytes::<E::G1Config>() + point_bytes::<E::G2Config>();
    cursor.take(HASH_BYTES)?;
    for _ in 0..cursor.word()? {
        cursor.take(points as u64)?;
        cursor.take(HASH_BYTES)?;
        let _kind = cursor.word()?;
        let parameters = cursor.word()?;
        cursor.take(parameters.into())?;
    }
    cursor.finish()
}
