//! The modes on data that lies on the device.

use std::cell::{Cell, RefCell};

use anyhow::{Result, ensure};
use evariste::aes::{Aes, AesConfig, GcmMessage, Message, Method, Xts};
use evariste::backend::{Device, Kind};

use super::{
    IV, KEY, KEY_BYTES, Measured, NONCE, SECTOR, case,
    check::{check_buffer, check_tag},
    pattern::patterned,
    reference::{
        gcm_counter, reference_blocks, reference_cbc_decrypt, reference_cbc_encrypt, reference_seal, reference_xts,
        stream, xts_key,
    },
};
use crate::{coverage::Coverage, session::Session, target::Target, timing::Budget};

/// Bytes of a message of a batch: a record of TLS.
const RECORD: usize = 16 << 10;

/// What a case works with.
struct Setting<'a> {
    device: &'a Device,
    key_bytes: usize,
    config: AesConfig,
    len: usize,
}

type Run = fn(&Budget, &Setting<'_>) -> Result<Measured>;

/// With what a mode is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum With {
    /// Every method and length of keys.
    All,
    /// Every method, with the shortest keys.
    Shortest,
    /// The shortest keys, with or without a grid-stride loop, whichever the method does not have by default. Not on the
    /// CPU.
    OtherStride,
    /// The fastest method and the bitsliced one, with every length of keys: it has kernels of its own.
    Two,
}

const BY_METHOD: [(&str, With, Run); 6] = [
    ("ctr", With::All, counter),
    ("gcm-seal", With::All, seal),
    ("ctr", With::OtherStride, counter),
    ("ecb", With::Shortest, electronic_codebook),
    ("xts", With::Two, xts),
    ("cbc-decrypt", With::Two, cbc_decrypt),
];

/// Cases with AES-128 and the fastest method, each with its least bytes.
const ONCE: [(&str, usize, Run); 5] = [
    ("ecb-decrypt", 0, electronic_codebook_back),
    ("xts-decrypt", SECTOR, xts_back),
    ("gcm-open", 0, open),
    ("gcm-seal-batch-16k", RECORD, seal_batch),
    ("cbc-encrypt-batch-16k", RECORD, cbc_encrypt_batch),
];

pub(super) fn run(session: &mut Session, target: &Target, log_n: u32, coverage: Coverage) {
    let (device, len) = (&target.device, 1 << log_n);
    let fastest = Method::fastest(device.info());
    for (key_bytes, method) in methods(device, coverage) {
        for (mode, with, work) in BY_METHOD {
            let config = AesConfig::default().method(method);
            let config = match with {
                With::OtherStride if key_bytes != KEY_BYTES[0] || device.info().id.kind == Kind::Cpu => continue,
                With::OtherStride => {
                    let strides = config.strides(device.info());
                    config.grid_stride(!strides)
                }
                With::Shortest if key_bytes != KEY_BYTES[0] => continue,
                With::Two if method != fastest && method != Method::Bitsliced => continue,
                With::All | With::Shortest | With::Two => config,
            };
            let name = name(device, key_bytes, mode, &config);
            let setting = Setting { device, key_bytes, config, len };
            session.measure(case(target, name, log_n), |budget| work(budget, &setting));
        }
    }
    for (mode, _, work) in ONCE.into_iter().filter(|(_, least, _)| len >= *least) {
        let setting = Setting { device, key_bytes: 16, config: AesConfig::default().method(fastest), len };
        session.measure(case(target, format!("aes-128-{mode}/device"), log_n), |budget| work(budget, &setting));
    }
}

/// Key bytes and methods: all of them where methods differ.
fn methods(device: &Device, coverage: Coverage) -> Vec<(usize, Method)> {
    let fastest = Method::fastest(device.info());
    let mut methods = vec![fastest];
    if device.info().id.kind != Kind::Cpu {
        let all: &[Method] = if coverage == Coverage::Full { &Method::ALL } else { &[Method::Bitsliced] };
        methods.extend(all.iter().filter(|method| **method != fastest));
    }
    methods.into_iter().flat_map(|method| KEY_BYTES.map(|bytes| (bytes, method))).collect()
}

fn aes(device: &Device, key_bytes: usize, config: &AesConfig) -> Result<Aes> {
    Ok(Aes::with_keys(device, &[&KEY[..key_bytes]], config.clone())?)
}

/// A case's name: what it does, by which method unless it is the fastest.
fn name(device: &Device, key_bytes: usize, mode: &str, config: &AesConfig) -> String {
    let method = config.method.filter(|method| *method != Method::fastest(device.info()));
    let method = method.map(|method| format!("-{method:?}").to_lowercase()).unwrap_or_default();
    let info = device.info();
    let stride = if config.strides(info) || info.id.kind == Kind::Cpu { "" } else { "-no-stride" };
    format!("aes-{}-{mode}{method}{stride}/device", 8 * key_bytes)
}

/// Counter mode in place.
fn counter(budget: &Budget, &Setting { device, key_bytes, ref config, len }: &Setting<'_>) -> Result<Measured> {
    let ctr = Aes::with_keys(device, &[&KEY[..key_bytes]], config.clone())?.ctr(&IV)?;
    let mut data = patterned(device, len)?;
    let before = device.stats().launches;
    ctr.apply_at(0, &mut data)?;
    let launches = device.stats().launches - before;
    let checked = check_buffer(&data, 16, |at, part| stream(key_bytes, IV, at, part))?;
    let timing = budget.time_queued(|| Ok(ctr.apply_at(0, &mut data)?), || Ok(device.sync()?))?;
    Ok((timing, Some(launches), checked))
}

/// Galois/counter mode in place; what is sealed is compared, and opened.
fn seal(budget: &Budget, &Setting { device, key_bytes, ref config, len }: &Setting<'_>) -> Result<Measured> {
    let gcm = aes(device, key_bytes, config)?.gcm()?;
    let mut data = patterned(device, len)?;
    let tag = gcm.seal(&NONCE, &[], &mut data)?;
    let checked = check_buffer(&data, 16, |at, part| stream(key_bytes, gcm_counter(&NONCE), at, part))?;
    let checked = checked + check_tag(key_bytes, len, &tag)?;
    gcm.open(&NONCE, &[], &mut data, tag.as_ref())?;
    check_buffer(&data, 16, |_, _| ())?;
    let seal = || Ok(gcm.seal(&NONCE, &[], &mut data).map(drop)?);
    Ok((budget.time_queued(seal, || Ok(()))?, None, checked))
}

fn xts(budget: &Budget, &Setting { device, key_bytes, ref config, len }: &Setting<'_>) -> Result<Measured> {
    let xts = Xts::with_config(device, &xts_key(key_bytes), SECTOR, config.clone())?;
    let mut data = patterned(device, len)?;
    xts.encrypt(0, &mut data)?;
    let checked = check_buffer(&data, SECTOR, |at, part| reference_xts(key_bytes, at, part))?;
    xts.decrypt(0, &mut data)?;
    check_buffer(&data, 16, |_, _| ())?;
    let timing = budget.time_queued(|| Ok(xts.encrypt(0, &mut data)?), || Ok(device.sync()?))?;
    Ok((timing, None, checked))
}

fn cbc_decrypt(budget: &Budget, &Setting { device, key_bytes, ref config, len }: &Setting<'_>) -> Result<Measured> {
    let cbc = aes(device, key_bytes, config)?.cbc();
    let mut data = patterned(device, len)?;
    cbc.decrypt(&IV, &mut data)?;
    let checked = check_buffer(&data, 16, |at, part| reference_cbc_decrypt(key_bytes, at, part))?;
    let timing = budget.time_queued(|| Ok(cbc.decrypt(&IV, &mut data)?), || Ok(device.sync()?))?;
    Ok((timing, None, checked))
}

/// The bare cipher, to tell what counter mode saves.
fn electronic_codebook(budget: &Budget, &Setting { device, ref config, len, .. }: &Setting<'_>) -> Result<Measured> {
    let ecb = aes(device, 16, config)?.ecb();
    let mut data = patterned(device, len)?;
    ecb.encrypt(&mut data)?;
    let checked = check_buffer(&data, 16, |_, part| reference_blocks(&KEY[..16], false, part))?;
    ecb.decrypt(&mut data)?;
    check_buffer(&data, 16, |_, _| ())?;
    let timing = budget.time_queued(|| Ok(ecb.encrypt(&mut data)?), || Ok(device.sync()?))?;
    Ok((timing, None, checked))
}

fn electronic_codebook_back(
    budget: &Budget,
    &Setting { device, ref config, len, .. }: &Setting<'_>,
) -> Result<Measured> {
    let ecb = aes(device, 16, config)?.ecb();
    let mut data = patterned(device, len)?;
    ecb.decrypt(&mut data)?;
    let checked = check_buffer(&data, 16, |_, part| reference_blocks(&KEY[..16], true, part))?;
    let timing = budget.time_queued(|| Ok(ecb.decrypt(&mut data)?), || Ok(device.sync()?))?;
    Ok((timing, None, checked))
}

fn xts_back(budget: &Budget, &Setting { device, key_bytes, ref config, len }: &Setting<'_>) -> Result<Measured> {
    let xts = Xts::with_config(device, &xts_key(key_bytes), SECTOR, config.clone())?;
    let mut data = patterned(device, len)?;
    xts.encrypt(0, &mut data)?;
    let checked = check_buffer(&data, SECTOR, |at, part| reference_xts(key_bytes, at, part))?;
    xts.decrypt(0, &mut data)?;
    check_buffer(&data, 16, |_, _| ())?;
    let timing = budget.time_queued(|| Ok(xts.decrypt(0, &mut data)?), || Ok(device.sync()?))?;
    Ok((timing, None, format!("{checked}, and back")))
}

/// Opens one message again and again, which is sealed anew in between, outside of the time.
fn open(budget: &Budget, &Setting { device, key_bytes, ref config, len }: &Setting<'_>) -> Result<Measured> {
    let gcm = aes(device, key_bytes, config)?.gcm()?;
    let data = RefCell::new(patterned(device, len)?);
    let tag = gcm.seal(&NONCE, &[], &mut *data.borrow_mut())?;
    let checked = check_buffer(&data.borrow(), 16, |at, part| stream(key_bytes, gcm_counter(&NONCE), at, part))?;
    gcm.open(&NONCE, &[], &mut *data.borrow_mut(), tag.as_ref())?;
    check_buffer(&data.borrow(), 16, |_, _| ())?;
    let failed = Cell::new(false);
    let seal = || {
        let sealed = gcm.seal(&NONCE, &[], &mut *data.borrow_mut());
        failed.set(!sealed.is_ok_and(|again| again == tag) || device.sync().is_err());
    };
    let timing = budget.time_prepared(1, seal, |_| {
        ensure!(!failed.get(), "the message has another tag");
        Ok(gcm.open(&NONCE, &[], &mut *data.borrow_mut(), tag.as_ref())?)
    })?;
    Ok((timing, None, format!("{checked}, and back")))
}

/// Many messages with nonces of their own in one call.
fn seal_batch(budget: &Budget, &Setting { device, ref config, len, .. }: &Setting<'_>) -> Result<Measured> {
    let gcm = aes(device, 16, config)?.gcm()?;
    let mut data = patterned(device, len)?;
    let nonces: Vec<[u8; 12]> = (0..len / RECORD)
        .map(|i| {
            let mut nonce = NONCE;
            nonce[..8].copy_from_slice(&(i as u64).to_le_bytes());
            nonce
        })
        .collect();
    let message = |i: usize| GcmMessage { offset: i * RECORD, len: RECORD, key: 0, nonce: &nonces[i], aad: &[] };
    let messages: Vec<GcmMessage<'_>> = (0..nonces.len()).map(message).collect();
    let tags = gcm.seal_batch(&mut data, &messages)?;
    let record = |at: usize, part: &mut [u8]| {
        let sealed = reference_seal(16, &nonces[at / RECORD], part);
        // A wrong tag is a wrong record too.
        if !sealed.is_ok_and(|tag| tag == tags[at / RECORD].as_ref()) {
            part.fill(0);
        }
    };
    let checked = check_buffer(&data, RECORD, record)? + " with their tags";
    gcm.open_batch(&mut data, &messages, &tags)?;
    check_buffer(&data, 16, |_, _| ())?;
    let timing = budget.time_queued(|| Ok(gcm.seal_batch(&mut data, &messages).map(drop)?), || Ok(()))?;
    Ok((timing, None, checked))
}

/// Many messages with initialisation vectors of their own in one call.
fn cbc_encrypt_batch(budget: &Budget, &Setting { device, ref config, len, .. }: &Setting<'_>) -> Result<Measured> {
    let aes = aes(device, 16, config)?;
    let mut data = patterned(device, len)?;
    let iv = |i: usize| (i as u128).to_le_bytes();
    let message = |i: usize| Message { offset: i * RECORD, len: RECORD, key: 0, iv: iv(i) };
    let messages: Vec<Message> = (0..len / RECORD).map(message).collect();
    aes.cbc_encrypt_batch(&mut data, &messages)?;
    let record = |at: usize, part: &mut [u8]| reference_cbc_encrypt(16, iv(at / RECORD), part);
    let checked = check_buffer(&data, RECORD, record)?;
    aes.cbc_decrypt_batch(&mut data, &messages)?;
    check_buffer(&data, 16, |_, _| ())?;
    let timing = budget.time_queued(|| Ok(aes.cbc_encrypt_batch(&mut data, &messages)?), || Ok(device.sync()?))?;
    Ok((timing, None, checked))
}
