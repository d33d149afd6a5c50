//! AES of files.

use std::{path::Path, time::Instant};

use anyhow::{Result, anyhow};
use evariste_aes::{Aes, Gcm, Result as AesResult};
use evariste_backend::Device;
use serde_json::json;
use zeroize::Zeroizing;

use crate::{
    arguments::{Cipher, Decrypt, Encrypt, Mode},
    devices,
    exit::Usage,
    files,
    outcome::{Outcome, milliseconds, path},
    progress::Items,
};

/// Encrypts a file, with a nonce from the caller or from the system.
pub(crate) fn encrypt(arguments: &Encrypt) -> Result<Outcome> {
    let cipher = &arguments.cipher;
    let nonce = match &arguments.nonce {
        Some(digits) => from_hex("--nonce", digits)?,
        None => draw(cipher.mode)?,
    };
    let device = devices::open(&arguments.target)?;
    let seal = |key: &[u8], input: &Path, output: &Path, progress: &mut dyn FnMut(u64)| {
        Gcm::new(&device, key)?.seal_file(&nonce, &[], input, output, progress).map(drop)
    };
    run(cipher, &device, &nonce, seal)
}

/// Decrypts a file. With GCM, nothing is written before the tag has been found right.
pub(crate) fn decrypt(arguments: &Decrypt) -> Result<Outcome> {
    let nonce = from_hex("--nonce", &arguments.nonce)?;
    let device = devices::open(&arguments.target)?;
    let open = |key: &[u8], input: &Path, output: &Path, progress: &mut dyn FnMut(u64)| {
        Gcm::new(&device, key)?.open_file(&nonce, &[], input, output, progress)
    };
    run(&arguments.cipher, &device, &nonce, open)
}

/// Does the work of GCM by `gcm`, and that of CTR, which is the same in both directions.
fn run(
    cipher: &Cipher,
    device: &Device,
    nonce: &[u8],
    gcm: impl FnOnce(&[u8], &Path, &Path, &mut dyn FnMut(u64)) -> AesResult<()>,
) -> Result<Outcome> {
    let Cipher { mode, input, output, .. } = cipher;
    let key = key(cipher)?;
    let (start, mut bytes) = (Instant::now(), 0);
    let bar = Items::bytes("AES", files::len(input));
    let mut progress = |done| {
        bytes = done;
        bar.set(done);
    };
    match mode {
        Mode::Gcm => gcm(&key, input, output, &mut progress)?,
        Mode::Ctr => drop(Aes::new(device, &key)?.ctr(nonce)?.apply_file(input, output, progress)?),
    }
    drop(bar);
    let (elapsed, nonce) = (start.elapsed(), to_hex(nonce));
    let rate = bytes as f64 / 1e9 / elapsed.as_secs_f64();
    let text = format!("{}: {bytes} bytes on {device}, {rate:.2} GB/s\nnonce {nonce}", output.display());
    let json = json!({
        "input": path(input),
        "output": path(output),
        "bytes": bytes,
        "nonce": nonce,
        "device": device.info().id.to_string(),
        "device_name": device.info().name,
        "ms": milliseconds(elapsed),
    });
    Ok(Outcome::new(text, json))
}

fn key(cipher: &Cipher) -> Result<Zeroizing<Vec<u8>>> {
    let (name, digits) = match (&cipher.key, &cipher.key_file) {
        (Some(digits), _) => ("--key", Zeroizing::new(digits.clone())),
        (None, Some(path)) => ("--key-file", Zeroizing::new(files::text_or_input(path)?)),
        (None, None) => return Err(Usage("a key is missing: --key-file FILE or --key HEX".to_owned()).into()),
    };
    from_hex(name, digits.trim())
}

/// Draws a nonce of GCM or a counter block of CTR.
fn draw(mode: Mode) -> Result<Zeroizing<Vec<u8>>> {
    let mut nonce = Zeroizing::new(vec![0; if mode == Mode::Gcm { 12 } else { 16 }]);
    getrandom::fill(&mut nonce).map_err(|error| anyhow!("the system gives no random numbers: {error}"))?;
    Ok(nonce)
}

fn from_hex(name: &str, digits: &str) -> Result<Zeroizing<Vec<u8>>> {
    // The digits may be secret: no error shows them, and no vector that grows leaves a part of them behind.
    let wrong = || Usage(format!("{name} is not a text of pairs of hexadecimal digits"));
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = Zeroizing::new(Vec::with_capacity(pairs.len()));
    for [high, low] in pairs {
        let (high, low) = digit(*high).zip(digit(*low)).ok_or_else(wrong)?;
        bytes.push((16 * high + low) as u8);
    }
    if rest.is_empty() { Ok(bytes) } else { Err(wrong().into()) }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
