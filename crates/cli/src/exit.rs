//! Exit codes. The program's help lists them.

use std::io;

use evariste_groth16::Error as Groth16Error;

/// The answer to the question is no.
const REFUSED: u8 = 1;
/// clap exits with this code, too.
const USAGE: u8 = 2;
const IO: u8 = 3;
const CONTENTS: u8 = 4;
const DEVICE: u8 = 5;

/// Arguments are wrong in a way that their declaration does not tell.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// A proof is invalid, for the reason beside it.
#[derive(Debug, thiserror::Error)]
#[error("invalid proof")]
pub(crate) struct InvalidProof;

/// Returns the exit code for an error.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    if error.is::<InvalidProof>() {
        REFUSED
    } else if error.is::<Usage>() {
        USAGE
    } else if let Some(error) = error.downcast_ref() {
        of_groth16(error)
    } else if let Some(error) = error.downcast_ref() {
        of_aes(error)
    } else if error.is::<evariste_backend::Error>() {
        DEVICE
    } else if error.is::<io::Error>() {
        IO
    } else {
        CONTENTS
    }
}

fn of_groth16(error: &Groth16Error) -> u8 {
    match error {
        Groth16Error::Rejected | Groth16Error::Unsatisfied { .. } => REFUSED,
        Groth16Error::Batch { reason, .. } => of_groth16(reason),
        Groth16Error::Io { .. } => IO,
        Groth16Error::Device(_) | Groth16Error::Msm(_) | Groth16Error::Ntt(_) | Groth16Error::Randomness { .. } => {
            DEVICE
        }
        _ => CONTENTS,
    }
}

fn of_aes(error: &evariste_aes::Error) -> u8 {
    use evariste_aes::Error;

    match error {
        Error::Tag { .. } => REFUSED,
        Error::KeyLength { .. } | Error::IvLength { .. } => USAGE,
        Error::Io { .. } => IO,
        Error::Device(_) | Error::Method { .. } => DEVICE,
        _ => CONTENTS,
    }
}

/// Returns whether an error is one of the device, with which nothing after it would succeed.
pub(crate) fn is_of_device(error: &anyhow::Error) -> bool {
    code(error) == DEVICE
}
