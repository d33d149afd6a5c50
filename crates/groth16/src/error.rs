use std::{
    fmt::{self, Display, Formatter},
    io,
    path::{Path, PathBuf},
};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of keys, witnesses, proofs and their files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system does not open, map, read or write a file.
    #[error("{}{reason}", prefix(path))]
    Io {
        /// The file; `None` for a stream of the caller.
        path: Option<PathBuf>,
        /// The kind of the system's error.
        kind: io::ErrorKind,
        /// The system's words.
        reason: String,
    },
    /// A binary file is invalid.
    #[error("{}{place}, byte {offset}: {problem}", prefix(path))]
    File {
        /// The file; `None` for bytes in memory.
        path: Option<PathBuf>,
        /// The section.
        place: Place,
        /// The offset of the invalid bytes in the file.
        offset: u64,
        /// The reason.
        problem: Problem,
    },
    /// A JSON text is invalid.
    #[error("{}{field}: {problem}", prefix(path))]
    Json {
        /// The file; `None` for a text in memory.
        path: Option<PathBuf>,
        /// The field of the text, such as `pi_a[1]`.
        field: String,
        /// The reason.
        problem: JsonProblem,
    },
    /// The parts of a key do not fit together.
    #[error("{part}: expected {expected}, found {actual}")]
    Parts {
        /// The part of the key.
        part: &'static str,
        /// The number that the other parts ask for.
        expected: u64,
        /// The number in the part.
        actual: u64,
    },
    /// The device has no room, or fails.
    #[error(transparent)]
    Device(#[from] evariste_backend::Error),
    /// A sum on the device fails.
    #[error(transparent)]
    Msm(#[from] evariste_msm::Error),
    /// A transform on the device fails.
    #[error(transparent)]
    Ntt(#[from] evariste_ntt::Error),
    /// No domain of roots of unity holds the constraints.
    #[error("{actual} constraints and public inputs are too many: the field has domains for {largest}")]
    Domain {
        /// The most constraints and public inputs together.
        largest: u64,
        /// The constraints and public inputs.
        actual: u64,
    },
    /// The operation is for keys of circom's form.
    #[error("the key has the quotient of arkworks, and only keys of circom's form have this file format")]
    Quotient,
    /// The first element of a witness is the constant 1.
    #[error("the first element of the witness is not 1")]
    WitnessOne,
    /// The witness has another length than the circuit.
    #[error("the witness has {actual} elements, and the circuit has {expected} variables")]
    WitnessLength {
        /// The variables of the circuit, the constant 1 among them.
        expected: usize,
        /// The elements of the witness.
        actual: usize,
    },
    /// The witness does not satisfy a constraint.
    #[error("the witness does not satisfy constraint {constraint}")]
    Unsatisfied {
        /// The first such constraint, counted from 0.
        constraint: usize,
    },
    /// The number of public inputs is not that of the key.
    #[error("there are {actual} public inputs, and the key has {expected}")]
    PublicInputs {
        /// The public inputs of the key.
        expected: usize,
        /// The public inputs of the call.
        actual: usize,
    },
    /// A point of a proof or a verifying key is invalid.
    #[error("{name}: {kind}")]
    Point {
        /// The point's name in the proof or key.
        name: &'static str,
        /// The reason.
        kind: PointError,
    },
    /// The proof does not hold for the public inputs.
    #[error("the proof does not hold for the public inputs")]
    Rejected,
    /// A proof of a batch fails.
    #[error("proof {index} of the batch: {reason}")]
    Batch {
        /// The index of the first such proof.
        index: usize,
        /// The reason.
        reason: Box<Error>,
    },
    /// The system's generator of random numbers fails.
    #[error("the system gives no random numbers: {reason}")]
    Randomness {
        /// The system's words.
        reason: String,
    },
}

impl Error {
    /// Names the file in an error that arose in its contents, for a caller that has read the file. Errors that have a
    /// file keep it.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        if let Error::File { path, .. } | Error::Json { path, .. } | Error::Io { path, .. } = &mut self {
            path.get_or_insert_with(|| file.to_owned());
        }
        self
    }

    pub(crate) fn io(path: Option<&Path>, error: &io::Error) -> Self {
        Error::Io { path: path.map(Path::to_owned), kind: error.kind(), reason: error.to_string() }
    }
}

fn prefix(path: &Option<PathBuf>) -> String {
    path.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default()
}

/// A part of a binary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// The beginning of the file, the headers of its sections, or its end.
    Container,
    /// A section.
    Section {
        /// The section's number in the file.
        number: u32,
        /// The section's contents.
        name: &'static str,
    },
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Place::Container => f.write_str("file header"),
            Place::Section { number, name } => write!(f, "section {number} ({name})"),
        }
    }
}

/// The reason why a binary file is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The first four bytes are those of another format.
    #[error("expected the format {expected:?}, found {actual:?}")]
    Format {
        /// The format's name.
        expected: &'static str,
        /// The bytes of the file, as text.
        actual: String,
    },
    /// The version of the format is not served.
    #[error("expected version {expected}, found {actual}")]
    Version {
        /// The version.
        expected: u32,
        /// The version of the file.
        actual: u32,
    },
    /// The file or the section ends too early.
    #[error("expected {expected} bytes, found {actual}")]
    Truncated {
        /// The bytes of what should stand here.
        expected: u64,
        /// The bytes up to the end.
        actual: u64,
    },
    /// Bytes follow the end of the last section, or of what a section contains.
    #[error("{actual} bytes too many")]
    Trailing {
        /// The number of these bytes.
        actual: u64,
    },
    /// The section occurs a second time.
    #[error("the section occurs twice")]
    Twice,
    /// The section does not occur.
    #[error("the section is missing")]
    Missing,
    /// The format has no section of this number.
    #[error("section {number} is not part of the format")]
    Unknown {
        /// The number of the section.
        number: u32,
    },
    /// The proof system is not Groth16.
    #[error("expected Groth16 (protocol {expected}), found protocol {actual}")]
    Protocol {
        /// The number of Groth16.
        expected: u32,
        /// The number in the file.
        actual: u32,
    },
    /// Field elements have another length than those of the curve.
    #[error("expected field elements of {expected} bytes, found {actual}")]
    ElementBytes {
        /// The bytes of an element of the curve's field.
        expected: u32,
        /// The number in the file.
        actual: u32,
    },
    /// The file is for another curve: its modulus is another one.
    #[error("expected the modulus {expected}, found {actual}")]
    Modulus {
        /// The modulus of the curve's field.
        expected: String,
        /// The modulus in the file.
        actual: String,
    },
    /// The modulus is that of no curve that is served.
    #[error("expected the modulus of BN254 or BLS12-381, found {actual}")]
    Curve {
        /// The modulus in the file.
        actual: String,
    },
    /// A number is out of range.
    #[error("{what} {actual} is out of range: expected {least} to {most}")]
    Range {
        /// The kind of number.
        what: &'static str,
        /// The least valid number.
        least: u64,
        /// The greatest valid number.
        most: u64,
        /// The number in the file.
        actual: u64,
    },
    /// The size of the domain is no power of two.
    #[error("the domain size {actual} is no power of two")]
    DomainSize {
        /// The number in the file.
        actual: u32,
    },
    /// A field element is not below the modulus.
    #[error("element {index} is not below the modulus")]
    NotCanonical {
        /// The index of the element in the section.
        index: u64,
    },
    /// A point is invalid.
    #[error("point {index}: {kind}")]
    Point {
        /// The index of the point in the section.
        index: u64,
        /// The reason.
        kind: PointError,
    },
    /// The first element of a witness is the constant 1.
    #[error("the first element is not 1")]
    One,
}

/// The reason why a point is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum PointError {
    /// A coefficient of a coordinate is not below the modulus.
    #[error("a coordinate is not below the modulus")]
    NotCanonical,
    /// The point is not on the curve.
    #[error("the point is not on the curve")]
    NotOnCurve,
    /// The point is not in the subgroup of prime order.
    #[error("the point is not in the subgroup")]
    NotInSubgroup,
    /// The point at infinity stands where proofs would mean nothing with it.
    #[error("the point is the one at infinity")]
    Infinity,
}

/// The reason why a JSON text is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonProblem {
    /// The text is no JSON, or not of the form that snarkjs writes.
    #[error("line {line}, column {column}: {reason}")]
    Syntax {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// The parser's words.
        reason: String,
    },
    /// A name is another one.
    #[error("expected {expected:?}, found {actual:?}")]
    Name {
        /// The name.
        expected: &'static str,
        /// The name in the text.
        actual: String,
    },
    /// The name is that of no curve that is served.
    #[error("expected the curve \"bn128\" or \"bls12381\", found {actual:?}")]
    Curve {
        /// The name in the text.
        actual: String,
    },
    /// A list has another length.
    #[error("expected {expected} entries, found {actual}")]
    Length {
        /// The length.
        expected: usize,
        /// The length in the text.
        actual: usize,
    },
    /// A number is not in decimal digits without sign and leading zeros.
    #[error("not a decimal number")]
    NotDecimal,
    /// A number is not below the modulus.
    #[error("the number is not below the modulus")]
    NotCanonical,
    /// A third coordinate is not that of an affine point.
    #[error("the third coordinate is that of no affine point")]
    NotAffine,
    /// The value beside α and β is not their pairing.
    #[error("the value is not the pairing of α and β")]
    Pairing,
    /// A point is invalid.
    #[error("{kind}")]
    Point {
        /// The reason.
        kind: PointError,
    },
}
