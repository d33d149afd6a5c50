//! Encryption of secrets.

use evariste::{
    aes::{self, Aes, Counter, GcmMessage, Message, Xts},
    backend::Buffer,
};

use crate::{
    harness::Outcome,
    secrecy::{Operation, Probe},
};

/// What encrypts: of the keys' secrets, it brings what it makes to data that may be public. Only the data tells which.
const CIPHERS: [&str; 3] = ["aes_blocks", "aes_ctr", "aes_serial"];

pub(super) const OPERATIONS: &[Operation] = &[
    Operation::new("aes_ctr", 1, |p| cipher(p, |aes, data| aes.ctr(&[1; 16])?.apply(data))),
    Operation::new("aes_ctr_batch", 1, |p| {
        cipher(p, |aes, data| aes.ctr_batch(data, &[message(0, 64), message(64, 100)], Counter::Bits128))
    }),
    Operation::new("aes_gcm", 1, |p| cipher(p, |aes, data| aes.gcm()?.seal(&[2; 12], b"", data).map(drop))),
    Operation::new("aes_gcm_batch", 1, |p| {
        // The counter of one of them is a hash of its nonce, and so a secret of the key's.
        let of = |offset, nonce: &'static [u8]| GcmMessage { offset, len: 64, key: 0, nonce, aad: b"" };
        cipher(p, |aes, data| aes.gcm()?.seal_batch(data, &[of(0, &[2; 12]), of(64, &[3; 20])]).map(drop))
    }),
    Operation::new("aes_cbc", 1, |p| {
        cipher(p, |aes, data| {
            aes.cbc().encrypt(&[1; 16], &mut *data)?;
            aes.cbc().decrypt(&[1; 16], data)
        })
    }),
    Operation::new("aes_xts", 1, |p| {
        let xts = Xts::new(&p.device, &[[1; 16], [2; 16]].concat(), 40)?;
        cipher(p, |_, data| xts.encrypt(7, data))
    }),
];

fn message(offset: usize, len: usize) -> Message {
    Message { offset, len, key: 0, iv: [offset as u8; 16] }
}

/// Watches what encrypts 164 bytes in place.
fn cipher(p: &Probe, run: impl Fn(&Aes, &mut Buffer<u8>) -> aes::Result<()>) -> Outcome {
    let host: Vec<u8> = (0..176u32).map(|i| (i + p.run()).wrapping_mul(0x9e37_79b9).to_le_bytes()[3]).collect();
    let (aes, mut data) = (Aes::new(&p.device, &[7; 16])?, p.in_place(|p| p.operand::<u8>(&host))?);
    p.allow_declassifying(&CIPHERS);
    p.watch(|| run(&aes, &mut data))
}
