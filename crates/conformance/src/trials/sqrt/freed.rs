//! Square roots leave nothing on the heap.

use ark_bls12_381::Fr;
use evariste::{backend::Secrecy, sqrt::Sqrt};

use crate::freed::{Freed, LEN};

pub(super) const FREED: &[Freed] = &[("roots", |p| {
    let (plan, a, mut out) = (Sqrt::<Fr>::new(&p.device)?, p.elements()?, p.device.alloc_with(LEN, Secrecy::Secret)?);
    let mut mask = p.device.alloc_with(LEN, Secrecy::Secret)?;
    p.watch_heap(|| plan.sqrt(&a, &mut out, &mut mask))
})];
