//! Proves, as far as a zero-check does, that somebody knows a text of a given SHA-256 hash.
//!
//! ```text
//! cargo run --release --example r1cs_zerocheck -- [--device cpu|cuda:0|wgpu:0] [TEXT]
//! ```
//!
//! arkworks' gadgets make an R1CS of the hash function: matrices A, B and C, and an assignment z, such that each row of
//! Az times that of Bz is that of Cz. The device forms the three vectors from z, and the sumcheck proves that Az·Bz −
//! Cz is 0 in every row: Σ eq(τ, x) (Az(x) Bz(x) − Cz(x)) = 0 for a point τ that the transcript gives. The verifier is
//! left with the values of Az, Bz and Cz at a random point, which a proof system takes from a commitment to z, and this
//! program from the tables. With a wrong assignment the proof is refused.

use std::{env, process::ExitCode, time::Instant};

use ark_bls12_381::Fr;
use ark_crypto_primitives::crh::sha256::{Sha256, constraints::Sha256Gadget, digest::Digest};
use ark_ff::{AdditiveGroup, Field};
use ark_r1cs_std::{eq::EqGadget, uint8::UInt8};
use ark_relations::gr1cs::{ConstraintSystem, R1CS_PREDICATE_LABEL};
use evariste::{
    field::FieldSum,
    prelude::*,
    primitives::SegmentedSum,
    sumcheck::{Refused, reference},
};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// For each row, its entries and their columns.
type Matrix = Vec<Vec<(Fr, usize)>>;

/// The protocol's name in the transcript.
const DOMAIN: &[u8] = b"an R1CS of SHA-256";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let (mut device, mut text) = (None, "the quick brown fox jumps over the lazy dog".to_owned());
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--device" => device = Some(arguments.next().ok_or("--device needs a name")?.parse()?),
            _ => text = argument,
        }
    }
    let device = if let Some(device) = device { device } else { Device::best()? };
    let system = System::new(text.as_bytes())?;
    println!("{device}: {} constraints on {} variables", system.rows, system.assignment.len());
    let start = Instant::now();
    let right = check(&device, &system, &system.assignment)?;
    println!("the right assignment: {right:?}, all in {:?}", start.elapsed());
    let mut wrong = system.assignment.clone();
    let last = wrong.len() - 1;
    wrong[last] += Fr::ONE;
    let outcome = check(&device, &system, &wrong)?;
    println!("a wrong assignment: {outcome:?}");
    match (right, outcome) {
        (Ok(()), Err(Refused::Final)) => Ok(()),
        _ => Err("the proofs are not what they should be".into()),
    }
}

/// An R1CS with an assignment of its variables.
struct System {
    matrices: Vec<Matrix>,
    rows: usize,
    assignment: Vec<Fr>,
}

impl System {
    /// That of the hash of `text`, whose hash is public.
    fn new(text: &[u8]) -> Result<Self> {
        let system = ConstraintSystem::<Fr>::new_ref();
        let secret = UInt8::new_witness_vec(system.clone(), text)?;
        let hash = UInt8::new_input_vec(system.clone(), &Sha256::digest(text))?;
        Sha256Gadget::digest(&secret)?.0.enforce_equal(&hash)?;
        system.finalize();
        let matrices = system.to_matrices()?.remove(R1CS_PREDICATE_LABEL).ok_or("it has no constraints")?;
        let rows = system.num_constraints();
        let assignment = [system.instance_assignment()?, system.witness_assignment()?].concat();
        Ok(Self { matrices, rows, assignment })
    }

    /// log₂ of the rows, when their number is a power of two.
    fn num_vars(&self) -> usize {
        self.rows.next_power_of_two().ilog2() as usize
    }

    /// A matrix times the assignment, and rows of zeros.
    fn product(&self, device: &Device, matrix: &Matrix, assignment: &Buffer<Mont<Fr>>) -> Result<Buffer<Mont<Fr>>> {
        let entries =
            matrix.iter().enumerate().flat_map(|(row, entries)| entries.iter().map(move |entry| (row, entry)));
        let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (row, (value, column)) in entries {
            rows.push(row as u32);
            columns.push(*column as u32);
            values.push(*value);
        }
        let (rows, columns) = (device.upload::<u32>(&rows)?, device.upload::<u32>(&columns)?);
        let vector = Vector::<Fr>::new(device);
        let mut terms = device.alloc(columns.len())?;
        vector.gather(assignment, &columns, &mut terms)?;
        vector.mul_assign(&mut terms, &device.upload(&values)?)?;
        let mut product = device.alloc(1 << self.num_vars())?;
        SegmentedSum::<FieldSum<Fr>>::new(device)?.reduce(&rows, &terms, &mut product)?;
        Ok(product)
    }
}

/// Proves and verifies that an assignment satisfies the system.
fn check(device: &Device, system: &System, assignment: &[Fr]) -> Result<Result<(), Refused>> {
    let assignment = device.upload::<Mont<Fr>>(assignment)?;
    let products = system.matrices.iter().map(|matrix| system.product(device, matrix, &assignment));
    let tables = products.collect::<Result<Vec<_>>>()?;

    let [a, b, c] = [0, 1, 2].map(Expression::column);
    let gate = a * b - c;
    let statement = Statement::new(system.num_vars(), &gate)?.weight(Weight::ZeroCheck);
    let prover = Sumcheck::<Fr>::new(device, &gate)?;
    let given: Vec<_> = tables.iter().collect();
    let start = Instant::now();
    let proved = prover.prove(&statement, &given, Fr::ZERO, &mut Blake3Transcript::new(DOMAIN))?;
    println!("proved in {:?}, {} bytes", start.elapsed(), proved.proof.to_bytes().len());

    let sub = match statement.verify(Fr::ZERO, &proved.proof, &mut Blake3Transcript::new(DOMAIN)) {
        Ok(sub) => sub,
        Err(refused) => return Ok(Err(refused)),
    };
    for (table, value) in tables.iter().zip(&sub.tables) {
        if reference::evaluate(&table.to_vec()?, &sub.point) != *value {
            return Err("the proof was accepted with a wrong value of a table".into());
        }
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_assignment_alone_is_accepted() {
        let device = Device::cpu();
        let system = System::new(b"abc").unwrap();
        assert_eq!(check(&device, &system, &system.assignment).unwrap(), Ok(()));
        let mut wrong = system.assignment.clone();
        wrong[1] += Fr::ONE;
        assert_eq!(check(&device, &system, &wrong).unwrap(), Err(Refused::Final));
    }
}
