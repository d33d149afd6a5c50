//! Copies of secrets.

use ark_bls12_381::Fr;
use evariste::{
    backend::{Element, Transfer},
    field::Mont,
};

use crate::{
    samples::samples,
    secrecy::{LEN, Operation},
};

pub(super) const OPERATIONS: &[Operation] = &[
    Operation::new("transfers", 1, |p| {
        let mut a = p.in_place(|p| p.elements(1))?;
        let host = samples::<Fr>(LEN, 1);
        p.watch(|| a.write(&host).and_then(|()| a.to_vec()))
    }),
    Operation::new("copies", 1, |p| {
        let a = p.elements(1)?;
        p.watch(|| a.duplicate())
    }),
    Operation::new("copy_from", 2, |p| {
        let (a, mut out) = (p.elements(1)?, p.output(LEN)?);
        p.watch(|| out.copy_from(&a))
    }),
    Operation::new("pinned", 3, |p| {
        let (mut a, from, to) = (p.in_place(|p| p.elements(1))?, p.next(), p.next_output());
        let host = |secrecy| p.device.host_buffer(LEN * Mont::<Fr>::BYTES, Transfer::Both, secrecy);
        let (from, mut to) = (host(from)?, Some(host(to)?));
        let mut from = Some(from);
        p.watch(|| -> evariste::backend::Result<()> {
            // A call that fails drops the memory.
            let (given, taken) = (from.take(), to.take());
            if let Some(given) = given {
                from = Some(a.write_pinned(given)?.wait()?);
            }
            if let Some(taken) = taken {
                to = Some(a.read_pinned(taken)?.wait()?);
            }
            Ok(())
        })
    }),
];
