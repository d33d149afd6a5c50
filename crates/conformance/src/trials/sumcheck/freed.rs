//! Proofs leave nothing of their tables on the heap.

use ark_bls12_381::Fr;
use evariste::{
    field::Mont,
    sumcheck::{Blake3Transcript, Statement, Sumcheck},
};

use super::gate;
use crate::freed::Freed;

pub(super) const FREED: &[Freed] = &[("sumcheck", |p| {
    let gate = gate();
    let statement = Statement::<Fr>::new(10, &gate)?;
    let tables = (0..3).map(|_| p.operand::<Mont<Fr>>(&p.samples(1 << 10))).collect::<Result<Vec<_>, _>>()?;
    let (plan, tables) = (Sumcheck::<Fr>::new(&p.device, &gate)?, tables.iter().collect::<Vec<_>>());
    let claim = plan.sum(&statement, &tables)?;
    p.watch_heap(|| plan.prove(&statement, &tables, claim, &mut Blake3Transcript::new(b"secrecy")))
})];
