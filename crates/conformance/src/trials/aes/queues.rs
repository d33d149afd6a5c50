//! Modes of AES on a queue, and the counter mode with queues of its own.

use evariste::{
    aes::{Aes, AesConfig, Counter, GcmMessage, Message, Xts},
    backend::{Secrecy, Transfer},
};

use crate::{
    expect::expect_same,
    harness::{Named, Outcome},
    misplaced::Plan,
    order_checker::{OrderChecker, expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("counter mode", counter_mode), ("modes", modes)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[("modes", |m| {
    let mut data = m.device.upload::<u8>(&[1; 960])?;
    let aes = Aes::with_keys(&m.device, &[[7; 16]], AesConfig::default().cpu_threshold(0))?.on(&m.queue);
    m.refuses(|| aes.ctr(&[1; 16])?.apply(&mut data))?;
    m.refuses_slice(&[1; 960], |data| aes.ctr(&[1; 16])?.apply_host(data))?;
    m.refuses(|| aes.ecb().encrypt(&mut data))?;
    m.refuses_slice(&[1; 960], |data| aes.ecb().encrypt_host(data))?;
    m.refuses_slice(&[1; 960], |data| aes.cbc().encrypt_host(&[1; 16], data))?;
    m.refuses_slice(&[1; 960], |data| aes.cbc().decrypt_host(&[1; 16], data))?;
    m.refuses(|| aes.cbc().encrypt(&[1; 16], &mut data))?;
    m.refuses(|| aes.gcm())?;
    let gcm = Aes::with_keys(&m.device, &[[7; 16]], AesConfig::default().cpu_threshold(0))?.gcm()?.on(&m.queue);
    m.refuses(|| gcm.seal(&[1; 12], b"", &mut data))?;
    m.refuses_slice(&[1; 960], |data| gcm.seal_host(&[1; 12], b"", data))?;
    let xts = Xts::new(&m.device, &[[1; 16], [2; 16]].concat(), 40)?.on(&m.queue);
    m.refuses(|| xts.encrypt(7, &mut data))?;
    m.refuses(|| xts.decrypt(7, &mut data))?;
    m.refuses_slice(&[1; 960], |data| xts.decrypt_host(7, data))?;
    let mut pinned = m.device.host_buffer(960, Transfer::Both, Secrecy::Secret)?;
    pinned.fill(1);
    m.refuses(|| aes.ctr(&[1; 16])?.apply_pinned(&mut pinned))?;
    expect_same("pinned memory", &pinned, &[1; 960])?;
    m.refuses(|| aes.ctr(&[1; 16])?.apply_at(32, &mut data))?;
    m.refuses(|| aes.ecb().decrypt(&mut data))?;
    m.refuses(|| aes.cbc().decrypt(&[1; 16], &mut data))?;
    m.refuses(|| gcm.open(&[1; 12], b"", &mut data, &[0; 16]))?;
    let messages = [Message { offset: 0, len: 960, key: 0, iv: [1; 16] }];
    m.refuses(|| aes.ctr_batch(&mut data, &messages, Counter::Bits128))?;
    m.refuses(|| aes.ecb_encrypt_batch(&mut data, &messages))?;
    m.refuses(|| aes.ecb_decrypt_batch(&mut data, &messages))?;
    m.refuses(|| aes.cbc_encrypt_batch(&mut data, &messages))?;
    m.refuses(|| aes.cbc_decrypt_batch(&mut data, &messages))?;
    let messages = [GcmMessage { offset: 0, len: 960, key: 0, nonce: &[1; 12], aad: b"" }];
    m.refuses(|| gcm.seal_batch(&mut data, &messages))?;
    m.refuses(|| gcm.open_batch(&mut data, &messages, &[[0; 16]]))
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
