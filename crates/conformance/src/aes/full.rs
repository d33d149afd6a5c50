//! What takes minutes: long chains, and sizes that 32 bits cannot say.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use ::aes::{Aes128, Aes192, Aes256};
use cipher::{Array, BlockCipherEncrypt, BlockSizeUser, KeyInit, KeyIvInit, StreamCipher, StreamCipherSeek, consts};
use ctr::Ctr128BE;
use evariste_aes::{Aes, Method};
use evariste_backend::Device;

use super::{bytes, on_device, streams::Folder};
use crate::{Outcome, Suite, expect_equal, expect_same};

/// Beyond what 32 bits can say of bytes.
const LONG: u64 = (4 << 30) + 1;

/// Bytes that are compared at each place.
const WINDOW: usize = 1 << 16;

const KEY: [u8; 32] = [3; 32];
const IV: [u8; 16] = [0xff; 16];

pub(super) fn add(suite: &mut Suite<'_>) {
    suite.add("full::monte_carlo", monte_carlo);
    // An emulated GPU would take hours.
    if !suite.device.info().features.software {
        suite.add_alone("full::four_gib_and_one_byte", four_gib_and_one_byte);
        suite.add_alone("full::files_of_four_gib_and_one_byte", long_files);
    }
}

/// The Monte Carlo test of AESAVS, 6.4.1, for encryption: 100 rounds of 1,000 encryptions, each of the last one's result.
fn monte_carlo(device: &Device) -> Outcome {
    monte_carlo_with::<Aes128>(device, 16)?;
    monte_carlo_with::<Aes192>(device, 24)?;
    monte_carlo_with::<Aes256>(device, 32)
}

fn monte_carlo_with<C>(device: &Device, key_bytes: usize) -> Outcome
where
    C: KeyInit + BlockCipherEncrypt + BlockSizeUser<BlockSize = consts::U16>,
{
    let mut key = bytes(key_bytes, 1);
    let mut block: [u8; 16] = bytes(16, 2).try_into().map_err(|_| "16 bytes")?;
    for round in 0..100 {
        let reference = C::new_from_slice(&key).map_err(|_| "the length of a key")?;
        let (mut last, mut expected) = ([0; 16], Array::from(block));
        let ecb = Aes::with_config(device, &[&key], on_device(Method::fastest(device.info())))?.ecb();
        let mut data = device.upload::<u8>(&block)?;
        for i in 0..1000 {
            if i == 999 {
                last = expected.0;
            }
            reference.encrypt_block(&mut expected);
            ecb.encrypt_range(&mut data, 0..16)?;
        }
        expect_same(&format!("AES-{}, round {round}", 8 * key_bytes), &data.to_vec()?, &expected)?;
        block = expected.0;
        // The last bytes of the two last blocks.
        let mask = [last, block].concat();
        key.iter_mut().zip(&mask[32 - key_bytes..]).for_each(|(key, byte)| *key ^= byte);
    }
    Ok(())
}

/// Places that are compared.
fn windows() -> [u64; 4] {
    [0, 1 << 31, (1 << 32) - WINDOW as u64, LONG - WINDOW as u64]
}

fn stream(at: u64) -> Vec<u8> {
    let mut expected = vec![0; WINDOW];
    let mut reference = Ctr128BE::<Aes256>::new(&KEY.into(), &IV.into());
    reference.seek(at);
    reference.apply_keystream(&mut expected);
    expected
}

/// Positions and places that need more than 32 bits.
fn four_gib_and_one_byte(device: &Device) -> Outcome {
    let len = LONG as usize;
    let mut data = device.zeros::<u8>(len)?;
    Aes::new(device, &KEY)?.ctr(&IV)?.apply_buffer(&mut data)?;
    for at in windows() {
        let mut actual = vec![0; WINDOW];
        data.read_at(at as usize, &mut actual)?;
        expect_same(&format!("at {at}"), &actual, &stream(at))?;
    }
    let gcm = Aes::new(device, &KEY)?.gcm()?;
    let tag = gcm.seal_range(&[1; 12], &[], &mut data, 0..len)?;
    Ok(gcm.open_range(&[1; 12], &[], &mut data, 0..len, tag.as_ref())?)
}

fn long_files(device: &Device) -> Outcome {
    let folder = Folder::new()?;
    let [plain, sealed, opened] = ["plain", "sealed", "opened"].map(|name| folder.file(name));
    File::create(&plain)?.set_len(LONG)?;
    let aes = Aes::new(device, &KEY)?;
    expect_equal("bytes", &aes.ctr(&IV)?.apply_file(&plain, &sealed, |_| ())?, &LONG)?;
    expect_windows("counter mode", &sealed, stream)?;
    aes.ctr(&IV)?.apply_file(&sealed, &sealed, |_| ())?;
    expect_windows("and back", &sealed, |_| vec![0; WINDOW])?;
    let gcm = aes.gcm()?;
    gcm.seal_file(&[1; 12], b"long", &plain, &sealed, |_| ())?;
    expect_equal("bytes", &sealed.metadata()?.len(), &(LONG + 16))?;
    gcm.open_file(&[1; 12], b"long", &sealed, &opened, |_| ())?;
    expect_windows("opened", &opened, |_| vec![0; WINDOW])?;
    fs::remove_file(&opened)?;
    folder.expect_files(2)
}

fn expect_windows(what: &str, path: &Path, expected: impl Fn(u64) -> Vec<u8>) -> Outcome {
    let mut file = File::open(path)?;
    expect_equal(&format!("{what}, bytes"), &file.metadata()?.len(), &LONG)?;
    for at in windows() {
        let mut actual = vec![0; WINDOW];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut actual)?;
        expect_same(&format!("{what}, at {at}"), &actual, &expected(at))?;
    }
    Ok(())
}
