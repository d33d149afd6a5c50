//! Files of circom's tools.

use std::{fs, path::PathBuf};

use ark_ff::PrimeField;
use evariste_groth16::{Check, CircomCurve, Key, R1cs, Witness};

/// A circuit's folder.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new<E: CircomCurve>(circuit: &str) -> Self {
        let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        Self(data.join(format!("{circuit}-{}", E::NAME)))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn key<E: CircomCurve>(&self) -> Key<E> {
        Key::from_zkey_bytes(&self.bytes("circuit.zkey"), Check::Full).unwrap()
    }

    pub(crate) fn witness<F: PrimeField>(&self) -> Witness<F> {
        Witness::from_bytes(&self.bytes("witness.wtns")).unwrap()
    }

    pub(crate) fn r1cs<F: PrimeField>(&self) -> R1cs<F> {
        R1cs::from_bytes(&self.bytes("circuit.r1cs")).unwrap()
    }
}
