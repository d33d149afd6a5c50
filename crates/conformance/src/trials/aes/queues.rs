//! Modes of AES on a queue, and the counter mode with queues of its own.

use evariste::aes::{Aes, Config, Xts};

use crate::{
    Named, Outcome,
    misplaced::Plan,
    order_checker::{OrderChecker, expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("counter mode", counter_mode), ("modes", modes)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[("modes", |m| {
    let mut data = m.device.upload::<u8>(&[1; 960])?;
    let aes = Aes::with_config(&m.device, &[[7; 16]], Config { crossover: Some(0), ..Config::default() })?.on(&m.queue);
    m.refuses(|| aes.ctr(&[1; 16])?.apply_buffer(&mut data))?;
    m.refuses(|| aes.ecb().encrypt_buffer(&mut data))?;
    m.refuses(|| aes.cbc().encrypt_buffer(&[1; 16], &mut data))?;
    m.refuses(|| aes.gcm()?.seal_buffer(&[1; 12], b"", &mut data))?;
    m.refuses(|| aes.gcm()?.seal(&[1; 12], b"", &mut [1; 960]))?;
    let xts = Xts::new(&m.device, &[[1; 16], [2; 16]].concat(), 40)?.on(&m.queue);
    m.refuses(|| xts.encrypt_buffer(7, &mut data))
})];

fn counter_mode() -> Outcome {
    let ordered = OrderChecker::new();
    let device = ordered.device();
    let config = Config { chunk_bytes: 1 << 12, crossover: Some(0), ..Config::default() };
    let aes = Aes::with_config(&device, &[[7; 16]], config)?;
    let mut data = vec![0; 1 << 16];
    let mut ctr = aes.ctr(&[1; 16])?;
    ctr.apply(&mut data)?;
    expect_ordered(&ordered, "counter mode in pieces")
}

fn modes() -> Outcome {
    on_plans(|ordered, made_on, queue| {
        let aes = Aes::new(made_on, &[7; 16])?.on(queue);
        let mut data = queue.upload::<u8>(&[1; 1000])?;
        aes.ctr(&[1; 16])?.apply_buffer(&mut data)?;
        aes.ecb().encrypt_buffer(data.view_mut(..960)?)?;
        aes.cbc().encrypt_buffer(&[1; 16], data.view_mut(..960)?)?;
        aes.gcm()?.seal_buffer(&[1; 12], b"", &mut data)?;
        expect_ordered(ordered, "modes on buffers")
    })
}
