//! Keys leave nothing on the heap.

use evariste::aes::{Aes, AesConfig, Error};

use crate::freed::Freed;

pub(super) const FREED: &[Freed] = &[
    ("aes", |p| {
        let key = p.bytes(32);
        let config = AesConfig::default().cpu_threshold(0);
        p.watch_heap(|| -> Result<_, Error> {
            let mut data = vec![0; 5000];
            Aes::with_keys(&p.device, &[&key], config.clone())?.ctr(&[0; 16])?.apply_host(&mut data)?;
            Ok(data)
        })
    }),
    ("gcm", |p| {
        let key = p.bytes(32);
        let config = AesConfig::default().cpu_threshold(0);
        p.watch_heap(|| -> Result<_, Error> {
            let mut data = vec![0; 5000];
            let tag = Aes::with_keys(&p.device, &[&key], config.clone())?.gcm()?.seal_host(&[0; 12], &[], &mut data)?;
            Ok((data, tag))
        })
    }),
];
