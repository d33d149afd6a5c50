//! Keys leave nothing on the heap.

use evariste::aes::{Aes, Config, Error};

use crate::freed::Freed;

pub(super) const FREED: &[Freed] = &[
    ("aes", |p| {
        let key = p.bytes(32);
        let config = Config { crossover: Some(0), ..Config::default() };
        p.watch_heap(|| -> Result<_, Error> {
            let mut data = vec![0; 5000];
            Aes::with_config(&p.device, &[&key], config.clone())?.ctr(&[0; 16])?.apply(&mut data)?;
            Ok(data)
        })
    }),
    ("gcm", |p| {
        let key = p.bytes(32);
        let config = Config { crossover: Some(0), ..Config::default() };
        p.watch_heap(|| -> Result<_, Error> {
            let mut data = vec![0; 5000];
            let tag = Aes::with_config(&p.device, &[&key], config.clone())?.gcm()?.seal(&[0; 12], &[], &mut data)?;
            Ok((data, tag))
        })
    }),
];
