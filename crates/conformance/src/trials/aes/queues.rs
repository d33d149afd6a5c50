//! Modes of AES on a queue, and the counter mode with queues of its own.

use evariste::aes::{Aes, AesConfig, Xts};

use crate::{
    Named, Outcome,
    misplaced::Plan,
    order_checker::{OrderChecker, expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("counter mode", counter_mode), ("modes", modes)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[("modes", |m| {
    let mut data = m.device.upload::<u8>(&[1; 960])?;
    let aes = Aes::with_keys(&m.device, &[[7; 16]], AesConfig::default().cpu_threshold(0))?.on(&m.queue);
    m.refuses(|| aes.ctr(&[1; 16])?.apply(&mut data))?;
    m.refuses(|| aes.ctr(&[1; 16])?.apply_host(&mut [1; 960]))?;
    m.refuses(|| aes.ecb().encrypt(&mut data))?;
    m.refuses(|| aes.ecb().encrypt_host(&mut [1; 960]))?;
    m.refuses(|| aes.cbc().encrypt_host(&[1; 16], &mut [1; 960]))?;
    m.refuses(|| aes.cbc().decrypt_host(&[1; 16], &mut [1; 960]))?;
    m.refuses(|| aes.cbc().encrypt(&[1; 16], &mut data))?;
    m.refuses(|| aes.gcm()?.seal(&[1; 12], b"", &mut data))?;
    m.refuses(|| aes.gcm()?.seal_host(&[1; 12], b"", &mut [1; 960]))?;
    let xts = Xts::new(&m.device, &[[1; 16], [2; 16]].concat(), 40)?.on(&m.queue);
    m.refuses(|| xts.encrypt(7, &mut data))?;
    m.refuses(|| xts.decrypt_host(7, &mut [1; 960]))
})];

fn counter_mode() -> Outcome {
    let ordered = OrderChecker::new();
    let device = ordered.device();
    let config = AesConfig::default().chunk_bytes(1 << 12).cpu_threshold(0);
    let aes = Aes::with_keys(&device, &[[7; 16]], config)?;
    let mut data = vec![0; 1 << 16];
    let mut ctr = aes.ctr(&[1; 16])?;
    ctr.apply_host(&mut data)?;
    expect_ordered(&ordered, "counter mode in pieces")
}

fn modes() -> Outcome {
    on_plans(|ordered, made_on, queue| {
        let aes = Aes::new(made_on, &[7; 16])?.on(queue);
        let mut data = queue.upload::<u8>(&[1; 1000])?;
        aes.ctr(&[1; 16])?.apply(&mut data)?;
        aes.ecb().encrypt(data.view_mut(..960)?)?;
        aes.cbc().encrypt(&[1; 16], data.view_mut(..960)?)?;
        aes.gcm()?.seal(&[1; 12], b"", &mut data)?;
        expect_ordered(ordered, "modes on buffers")
    })
}
