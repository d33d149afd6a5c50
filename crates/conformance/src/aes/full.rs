//! What takes long: done only where `EVARISTE_FULL` is set.

use std::env;

use ::aes::Aes256;
use cipher::{Array, BlockCipherEncrypt, KeyInit, KeyIvInit, StreamCipher, StreamCipherSeek};
use ctr::Ctr128BE;
use evariste_aes::{Aes, Config};
use evariste_backend::Device;

use super::bytes;
use crate::{Outcome, Suite, expect_same};

/// The environment variable that asks for these trials.
const VARIABLE: &str = "EVARISTE_FULL";

/// Beyond what 32 bits can say of bytes.
const LONG: usize = (4 << 30) + 1;

/// Bytes that are compared at each place.
const WINDOW: usize = 1 << 16;

pub(super) fn add(suite: &mut Suite<'_>) {
    if env::var_os(VARIABLE).is_some() {
        suite.add("full::monte_carlo", monte_carlo);
        suite.add("full::four_gib_and_one_byte", four_gib_and_one_byte);
    }
}

/// The Monte Carlo test of AESAVS, 6.4.1, shortened to 10 of its 100 rounds of 1,000 encryptions, with 256-bit keys.
fn monte_carlo(device: &Device) -> Outcome {
    let mut key: [u8; 32] = bytes(32, 1).try_into().map_err(|_| "32 bytes")?;
    let mut block: [u8; 16] = bytes(16, 2).try_into().map_err(|_| "16 bytes")?;
    for round in 0..10 {
        let reference = Aes256::new(&key.into());
        let (mut last, mut expected) = ([0; 16], Array::from(block));
        let ecb = Aes::with_config(device, &[key], Config { crossover: Some(0), ..Config::default() })?.ecb();
        let mut data = device.upload::<u8>(&block)?;
        for i in 0..1000 {
            if i == 999 {
                last = expected.0;
            }
            reference.encrypt_block(&mut expected);
            ecb.encrypt_range(&mut data, 0..16)?;
        }
        expect_same(&format!("round {round}"), &data.to_vec()?, &expected)?;
        block = expected.0;
        key.iter_mut().zip(last.iter().chain(&block)).for_each(|(key, byte)| *key ^= byte);
    }
    Ok(())
}

/// Positions and places that need more than 32 bits.
fn four_gib_and_one_byte(device: &Device) -> Outcome {
    let (key, iv) = ([3; 32], [0xff; 16]);
    let mut data = device.zeros::<u8>(LONG)?;
    let mut stream = Aes::new(device, &key)?.ctr(&iv)?;
    stream.apply_buffer(&mut data)?;
    for at in [0, 1 << 31, (1 << 32) - WINDOW, LONG - WINDOW] {
        let mut actual = vec![0; WINDOW];
        data.read_at(at, &mut actual)?;
        let mut expected = vec![0; WINDOW];
        let mut reference = Ctr128BE::<Aes256>::new(&key.into(), &iv.into());
        reference.seek(at as u64);
        reference.apply_keystream(&mut expected);
        expect_same(&format!("at {at}"), &actual, &expected)?;
    }
    let gcm = Aes::new(device, &key)?.gcm()?;
    let tag = gcm.seal_range(&[1; 12], &[], &mut data, 0..LONG)?;
    Ok(gcm.open_range(&[1; 12], &[], &mut data, 0..LONG, tag.as_ref())?)
}
