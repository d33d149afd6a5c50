//! Transforms leave nothing on the heap.

use ark_bls12_381::Fr;
use evariste::{
    backend::Secrecy,
    field::{Mont, small::Goldilocks},
    ntt::{Ntt, OutOfCore},
};

use crate::freed::Freed;

pub(super) const FREED: &[Freed] = &[
    ("ntt_of_words", |p| {
        let (ntt, mut x) =
            (Ntt::<Goldilocks>::new(&p.device, 12)?, p.operand::<Mont<Goldilocks>>(&p.samples(1 << 12))?);
        p.watch_heap(|| ntt.forward(&mut x))
    }),
    ("ntt_out_of_core", |p| {
        let (x, bytes) = (p.host::<Fr>(1 << 12), (11 * 32) << 8);
        let mut plan = OutOfCore::<Fr>::new(&p.device, 12, bytes, Secrecy::Secret)?;
        let mut y = x.clone();
        p.watch_heap(|| {
            y.copy_from_slice(&x);
            plan.forward_host(&mut y)
        })
    }),
];
