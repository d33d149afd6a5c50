//! AES: methods, key sizes and modes on data that lies on the device, and from host slice to host slice.
//!
//! Sizes are in bytes, so that throughput is bytes of plaintext in a second.
//!
//! All methods are measured in CTR and GCM, which share their kernel, and the fastest and the bitsliced one in XTS and CBC,
//! which take two kernels more each. So all cases of an H200 take some two minutes, most of it for what is of 1 GiB and
//! more.

use std::{cell::RefCell, sync::OnceLock};

use ::aes::{Aes128, Aes192, Aes256};
use aes_gcm::{
    AesGcm,
    aead::{AeadInOut, KeyInit},
};
use anyhow::{Context, Result, ensure};
use cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, BlockSizeUser, InnerIvInit,
    StreamCipher, StreamCipherSeek,
    consts::{U12, U16},
};
use ctr::{CtrCore, flavors};
use evariste_aes::{Aes, Config, Ctr, Gcm, GcmMessage, Message, Method, Mode, Tag, Xts};
use evariste_backend::{Buffer, Device, HostBuffer, Kind, Secrecy, Transfer};
use rayon::{ThreadPoolBuilder, prelude::*};

use super::{
    depth::Depth,
    limits::Work,
    session::{self, Algorithm, Case, Headline, IN_TURN, Session},
    target::Target,
    timing::{Budget, MAX_BATCH, Timing},
    wanted::Wanted,
};

/// AES in all its modes, where it has hundreds of cases, whose times vary little.
pub(crate) static ALGORITHM: Algorithm = Algorithm {
    name: "aes",
    headlines: &[
        Headline { case: "aes-128-ctr/device", title: "AES-128-CTR" },
        Headline { case: "aes-128-ctr-bitsliced/device", title: "AES-128-CTR, constant time" },
        Headline { case: "aes-128-gcm-seal/device", title: "AES-128-GCM, sealing" },
        Headline { case: "aes-128-xts/device", title: "AES-128-XTS" },
    ],
    budget: |_| Budget::brief(),
    run,
    is_too_large,
};

fn is_too_large(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(evariste_aes::Error::Device(error)) => session::is_too_large_for_device(error),
        _ => session::is_too_large(error),
    }
}

const KEY: [u8; 32] = [0x5a; 32];
const IV: [u8; 16] = [0xa5; 16];
const NONCE: [u8; 12] = [7; 12];

const KEY_BYTES: [usize; 3] = [16, 24, 32];

/// Those that peers are measured with, and ours on one thread beside them.
const PEER_KEY_BYTES: [usize; 2] = [16, 32];

/// Bytes of a sector of XTS.
const SECTOR: usize = 4096;

/// Bytes of a message of a batch: a record of TLS.
const RECORD: usize = 16 << 10;

/// Bytes that are compared at each place, at least.
const CHECKED: usize = 1 << 10;

/// log₂ of the most bytes of the host cases that are not counter mode with the usual number of queues.
const MAX_LOG_HOST: u32 = 30;

/// Numbers of queues that are compared. The usual one is among the others' cases.
const QUEUES: [usize; 3] = [1, 2, 8];

fn run(session: &mut Session, targets: &[Target], options: &Wanted) {
    for target in targets {
        let cpu = target.device.info().id.kind == Kind::Cpu;
        for log_n in sizes(&target.device, options) {
            for (bytes, method) in methods(&target.device, options.depth) {
                let config = Config::method(method);
                counter(session, target, log_n, bytes, &config);
                seal(session, target, log_n, bytes, method);
                if bytes == KEY_BYTES[0] && !cpu {
                    let config = Config { grid_stride: Some(!config.strides(target.device.info())), ..config };
                    counter(session, target, log_n, bytes, &config);
                }
                if method == Method::fastest(target.device.info()) || method == Method::Bitsliced {
                    blocks(session, target, log_n, bytes, method);
                }
            }
            electronic_codebook(session, target, log_n);
            batches(session, target, log_n);
            from_host(session, target, log_n);
            if log_n <= MAX_LOG_HOST {
                modes_from_host(session, target, log_n);
                if !cpu {
                    QUEUES.iter().for_each(|&queues| pinned(session, target, log_n, queues));
                }
            }
            if cpu && options.peers {
                one_thread(session, target, log_n);
                peers(session, target, log_n);
            }
        }
    }
}

/// log₂ of the bytes: the ladder from 1 KiB to 1 GiB, and 4 GiB where that takes no time, each four times the last.
fn sizes(device: &Device, options: &Wanted) -> Vec<u32> {
    let info = device.info();
    match (options.depth, info.id.kind) {
        _ if options.log_n.is_some() => {
            (10..=32).filter(|n| options.log_n.as_ref().is_some_and(|s| s.contains(*n))).collect()
        }
        (Depth::Summary, Kind::Cpu) => vec![24],
        (Depth::Summary, _) if info.features.software => vec![16],
        (Depth::Summary, _) => vec![28],
        _ if info.features.software => vec![10, 16, 20],
        (_, Kind::Cpu) => (10..=30).step_by(2).collect(),
        (Depth::Small, _) => vec![10, 16, 20, 24, 28],
        (Depth::Full, _) => (10..=32).step_by(2).collect(),
    }
}

/// Key bytes and methods: all of them where methods differ.
fn methods(device: &Device, depth: Depth) -> Vec<(usize, Method)> {
    let fastest = Method::fastest(device.info());
    let mut methods = vec![fastest];
    if device.info().id.kind != Kind::Cpu {
        let all: &[Method] = if depth == Depth::Full { &Method::ALL } else { &[Method::Bitsliced] };
        methods.extend(all.iter().filter(|method| **method != fastest));
    }
    methods.into_iter().flat_map(|method| KEY_BYTES.map(|bytes| (bytes, method))).collect()
}

fn case(target: &Target, name: String, log_n: u32) -> Case {
    let bytes = 1_usize << log_n;
    Case {
        name,
        device: target.device.info().id.to_string(),
        peer: None,
        log_n,
        elements: Some(bytes),
        floor: Some(target.limits.floor(Work { multiplications: 0.0, bytes: 2.0 * bytes as f64 })),
    }
}

fn aes(device: &Device, key_bytes: usize, method: Method) -> Result<Aes> {
    Ok(Aes::with_config(device, &[&KEY[..key_bytes]], Config::method(method))?)
}

/// Bytes after which the pattern repeats: whole blocks, but of nothing that data is cut into.
const PERIOD: usize = 16 * 65_537;

/// What all data is before, without a pattern that a cipher's blocks, sectors or pieces could hide.
fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 32) as u32
        };
        (0..PERIOD / 4).flat_map(|_| next().to_le_bytes()).collect()
    })
}

/// `len` bytes of the pattern from a place on.
fn pattern_at(at: usize, len: usize) -> Vec<u8> {
    pattern().iter().cycle().skip(at % PERIOD).take(len).copied().collect()
}

fn patterned_slice(data: &mut [u8]) {
    data.par_chunks_mut(PERIOD).for_each(|part| part.copy_from_slice(&pattern()[..part.len()]));
}

fn patterned_vec(len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    patterned_slice(&mut data);
    data
}

fn patterned(device: &Device, len: usize) -> Result<Buffer<u8>> {
    let mut data = device.alloc(len)?;
    for start in (0..len).step_by(PERIOD) {
        let end = len.min(start + PERIOD);
        data.view_mut(start..end)?.write(&pattern()[..end - start])?;
    }
    Ok(data)
}

/// Where results are compared: each place is a multiple of `unit`, and the last part reaches to the very end.
fn places(len: usize, unit: usize) -> Vec<(usize, usize)> {
    let window = CHECKED.next_multiple_of(unit).min(len);
    let middle = [1, 2, 3].map(|quarter| quarter * (len / 4) / unit * unit);
    let mut places: Vec<(usize, usize)> =
        [0, (len - window) / unit * unit].into_iter().chain(middle).map(|at| (at, window.min(len - at))).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Compares what a mode made of the pattern with what it should be: `expected` changes the pattern from a place on.
fn check(
    len: usize,
    unit: usize,
    mut read: impl FnMut(usize, &mut [u8]) -> Result<()>,
    expected: impl Fn(usize, &mut [u8]),
) -> Result<String> {
    let places = places(len, unit);
    for &(at, window) in &places {
        let mut actual = vec![0; window];
        read(at, &mut actual)?;
        let mut wanted = pattern_at(at, window);
        expected(at, &mut wanted);
        ensure!(actual == wanted, "the result is wrong at {at} of {len}");
    }
    Ok(format!("RustCrypto, {} × {} bytes", places.len(), places[0].1))
}

fn check_buffer(data: &Buffer<u8>, unit: usize, expected: impl Fn(usize, &mut [u8])) -> Result<String> {
    check(data.len(), unit, |at, part| Ok(data.view(at..at + part.len())?.read(part)?), expected)
}

fn check_slice(data: &[u8], unit: usize, expected: impl Fn(usize, &mut [u8])) -> Result<String> {
    let read = |at: usize, part: &mut [u8]| {
        part.copy_from_slice(&data[at..at + part.len()]);
        Ok(())
    };
    check(data.len(), unit, read, expected)
}

/// The counter of the first block that GCM encrypts with a nonce.
fn gcm_counter(nonce: &[u8; 12]) -> [u8; 16] {
    let mut counter = [0; 16];
    counter[..12].copy_from_slice(nonce);
    counter[15] = 2;
    counter
}

/// Most bytes of which RustCrypto computes a tag for a check.
const TAGGED: usize = 64 << 20;

/// Compares a tag over the pattern with RustCrypto's, unless that takes long.
fn check_tag(key_bytes: usize, len: usize, tag: &Tag) -> Result<&'static str> {
    if len > TAGGED {
        return Ok("");
    }
    let mut data = patterned_vec(len);
    ensure!(reference_seal(key_bytes, &NONCE, &mut data)? == tag.as_ref(), "the tag is wrong");
    Ok(", and the tag")
}

fn reference_seal(key_bytes: usize, nonce: &[u8; 12], data: &mut [u8]) -> Result<Vec<u8>> {
    fn run<C: Cipher + KeyInit>(nonce: &[u8; 12], data: &mut [u8]) -> Result<Vec<u8>> {
        let tag = AesGcm::<C, U12>::from(C::new(&key())).encrypt_inout_detached(&(*nonce).into(), &[], data.into());
        Ok(tag.ok().context("too long")?.to_vec())
    }
    match key_bytes {
        16 => run::<Aes128>(nonce, data),
        24 => run::<Aes192>(nonce, data),
        _ => run::<Aes256>(nonce, data),
    }
}

/// RustCrypto's block function on whole blocks.
fn reference_blocks(key: &[u8], decrypt: bool, data: &mut [u8]) {
    fn run<C: Cipher>(cipher: &C, decrypt: bool, data: &mut [u8]) {
        for block in Array::slice_as_chunks_mut(data).0 {
            if decrypt { cipher.decrypt_block(block) } else { cipher.encrypt_block(block) }
        }
    }
    match key.len() {
        16 => run(&Aes128::new_from_slice(key).expect("16 bytes"), decrypt, data),
        24 => run(&Aes192::new_from_slice(key).expect("24 bytes"), decrypt, data),
        _ => run(&Aes256::new_from_slice(key).expect("32 bytes"), decrypt, data),
    }
}

/// Sectors from a place on, by the definition (IEEE 1619).
fn reference_xts(key_bytes: usize, at: usize, data: &mut [u8]) {
    let key = xts_key(key_bytes);
    for (i, sector) in data.chunks_mut(SECTOR).enumerate() {
        let mut tweak = ((at / SECTOR + i) as u128).to_le_bytes();
        reference_blocks(&key[key_bytes..], false, &mut tweak);
        let mut tweak = u128::from_le_bytes(tweak);
        for block in sector.as_chunks_mut::<16>().0 {
            let mask = |block: &mut [u8; 16]| *block = (u128::from_le_bytes(*block) ^ tweak).to_le_bytes();
            mask(block);
            reference_blocks(&key[..key_bytes], false, block);
            mask(block);
            tweak = (tweak << 1) ^ ((tweak >> 127) * 0x87);
        }
    }
}

/// CBC decryption of the pattern from a place on.
fn reference_cbc_decrypt(key_bytes: usize, at: usize, data: &mut [u8]) {
    let before = if at == 0 { IV.to_vec() } else { pattern_at(at - 16, 16) };
    let previous = [&before[..], data].concat();
    reference_blocks(&KEY[..key_bytes], true, data);
    data.iter_mut().zip(previous).for_each(|(byte, before)| *byte ^= before);
}

/// CBC encryption from the start of a message on.
fn reference_cbc_encrypt(key_bytes: usize, iv: [u8; 16], data: &mut [u8]) {
    let mut last = iv;
    for block in data.as_chunks_mut::<16>().0 {
        block.iter_mut().zip(last).for_each(|(byte, last)| *byte ^= last);
        reference_blocks(&KEY[..key_bytes], false, block);
        last = *block;
    }
}

/// RustCrypto's stream from a position on.
fn stream(key_bytes: usize, iv: [u8; 16], position: usize, data: &mut [u8]) {
    fn run<C: Cipher>(cipher: &C, iv: [u8; 16], position: u64, data: &mut [u8]) {
        let mut stream = Stream::from_core(CtrCore::inner_iv_init(cipher, &iv.into()));
        stream.seek(position);
        stream.apply_keystream(data);
    }
    match key_bytes {
        16 => run(&Aes128::new(&key()), iv, position as u64, data),
        24 => run(&Aes192::new(&key()), iv, position as u64, data),
        _ => run(&Aes256::new(&key()), iv, position as u64, data),
    }
}

/// A block cipher of RustCrypto.
trait Cipher: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16> {}
impl<C: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16>> Cipher for C {}

type Stream<'a, C> = cipher::StreamCipherCoreWrapper<CtrCore<&'a C, flavors::Ctr128BE>>;

fn key<N: cipher::array::ArraySize>() -> Array<u8, N> {
    Array::from_fn(|i| KEY[i])
}

/// A case's name: what it does, by which method unless it is the fastest, and where the data lies.
fn name(device: &Device, key_bytes: usize, mode: &str, config: &Config, place: &str) -> String {
    let method = config.method.filter(|method| *method != Method::fastest(device.info()));
    let method = method.map(|method| format!("-{method:?}").to_lowercase()).unwrap_or_default();
    let info = device.info();
    let stride = if config.strides(info) || info.id.kind == Kind::Cpu { "" } else { "-no-stride" };
    format!("aes-{}-{mode}{method}{stride}/{place}", 8 * key_bytes)
}

/// Counter mode in place.
fn counter(session: &mut Session, target: &Target, log_n: u32, key_bytes: usize, config: &Config) {
    let device = &target.device;
    session.measure(case(target, name(device, key_bytes, "ctr", config, "device"), log_n), |budget| {
        let ctr = Aes::with_config(device, &[&KEY[..key_bytes]], config.clone())?.ctr(&IV)?;
        let mut data = patterned(device, 1 << log_n)?;
        let len = data.len();
        let before = device.stats().launches;
        ctr.apply_at(None, 0, &mut data, 0..len)?;
        let launches = device.stats().launches - before;
        let checked = check_buffer(&data, 16, |at, part| stream(key_bytes, IV, at, part))?;
        let timing = budget.time_queued(|| Ok(ctr.apply_at(None, 0, &mut data, 0..len)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), checked))
    });
}

/// Galois/counter mode in place; what is sealed is compared, and opened.
fn seal(session: &mut Session, target: &Target, log_n: u32, key_bytes: usize, method: Method) {
    let (device, len) = (&target.device, 1_usize << log_n);
    let config = Config::method(method);
    session.measure(case(target, name(device, key_bytes, "gcm-seal", &config, "device"), log_n), |budget| {
        let gcm = aes(device, key_bytes, method)?.gcm()?;
        let mut data = patterned(device, len)?;
        let tag = gcm.seal_range(&NONCE, &[], &mut data, 0..len)?;
        let checked = check_buffer(&data, 16, |at, part| stream(key_bytes, gcm_counter(&NONCE), at, part))?;
        let checked = checked + check_tag(key_bytes, len, &tag)?;
        gcm.open_range(&NONCE, &[], &mut data, 0..len, tag.as_ref())?;
        check_buffer(&data, 16, |_, _| ())?;
        let seal = || Ok(gcm.seal_range(&NONCE, &[], &mut data, 0..len).map(drop)?);
        Ok((budget.time_queued(seal, || Ok(()))?, None, checked))
    });
}

/// The modes with kernels of their own, in place.
fn blocks(session: &mut Session, target: &Target, log_n: u32, key_bytes: usize, method: Method) {
    let (device, len) = (&target.device, 1_usize << log_n);
    let config = Config::method(method);
    session.measure(case(target, name(device, key_bytes, "xts", &config, "device"), log_n), |budget| {
        let xts = Xts::with_config(device, &xts_key(key_bytes), SECTOR, config.clone())?;
        let mut data = patterned(device, len)?;
        xts.encrypt_range(0, &mut data, 0..len)?;
        let checked = check_buffer(&data, SECTOR, |at, part| reference_xts(key_bytes, at, part))?;
        xts.decrypt_range(0, &mut data, 0..len)?;
        check_buffer(&data, 16, |_, _| ())?;
        let timing = budget.time_queued(|| Ok(xts.encrypt_range(0, &mut data, 0..len)?), || Ok(device.sync()?))?;
        Ok((timing, None, checked))
    });
    session.measure(case(target, name(device, key_bytes, "cbc-decrypt", &config, "device"), log_n), |budget| {
        let cbc = aes(device, key_bytes, method)?.cbc();
        let mut data = patterned(device, len)?;
        cbc.decrypt_range(&IV, &mut data, 0..len)?;
        let checked = check_buffer(&data, 16, |at, part| reference_cbc_decrypt(key_bytes, at, part))?;
        let timing = budget.time_queued(|| Ok(cbc.decrypt_range(&IV, &mut data, 0..len)?), || Ok(device.sync()?))?;
        Ok((timing, None, checked))
    });
}

fn xts_key(key_bytes: usize) -> Vec<u8> {
    let mut key = vec![1; 2 * key_bytes];
    key[key_bytes..].copy_from_slice(&KEY[..key_bytes]);
    key
}

/// The bare cipher, to tell what counter mode saves.
fn electronic_codebook(session: &mut Session, target: &Target, log_n: u32) {
    let (device, len) = (&target.device, 1_usize << log_n);
    session.measure(case(target, "aes-128-ecb/device".into(), log_n), |budget| {
        let ecb = aes(device, 16, Method::fastest(device.info()))?.ecb();
        let mut data = patterned(device, len)?;
        ecb.encrypt_range(&mut data, 0..len)?;
        let checked = check_buffer(&data, 16, |_, part| reference_blocks(&KEY[..16], false, part))?;
        ecb.decrypt_range(&mut data, 0..len)?;
        check_buffer(&data, 16, |_, _| ())?;
        let timing = budget.time_queued(|| Ok(ecb.encrypt_range(&mut data, 0..len)?), || Ok(device.sync()?))?;
        Ok((timing, None, checked))
    });
}

/// Many messages with nonces of their own in one call.
fn batches(session: &mut Session, target: &Target, log_n: u32) {
    let device = &target.device;
    let method = Method::fastest(device.info());
    let len = 1_usize << log_n;
    if len < RECORD {
        return;
    }
    session.measure(case(target, "aes-128-gcm-seal-batch-16k/device".into(), log_n), |budget| {
        let gcm = aes(device, 16, method)?.gcm()?;
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
    });
    session.measure(case(target, "aes-128-cbc-encrypt-batch-16k/device".into(), log_n), |budget| {
        let aes = aes(device, 16, method)?;
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
    });
}

/// From host slice to host slice, and from pinned host memory and back: overlapped, and its parts one after the other; and
/// as the crossover has it.
fn from_host(session: &mut Session, target: &Target, log_n: u32) {
    let device = &target.device;
    let len = 1_usize << log_n;
    let on_device = Config { crossover: Some(0), ..Config::default() };
    let ctr = |config| -> Result<Ctr> { Ok(Aes::with_config(device, &[&KEY[..16]], config)?.ctr(&IV)?) };
    let crossing = (device.info().id.kind != Kind::Cpu).then(|| ("aes-128-ctr-crossover/host", Config::default()));
    for (name, config) in [("aes-128-ctr/host", on_device.clone())].into_iter().chain(crossing) {
        session.measure(case(target, name.into(), log_n), |budget| {
            let mut ctr = ctr(config.clone())?;
            let mut data = patterned_vec(len);
            ctr.apply(&mut data)?;
            let checked = check_host(&data)?;
            let checked = match config.crossover {
                Some(_) => checked,
                None => format!("{checked}; {}", crossover(ctr.aes().crossover(Mode::Ctr)?)),
            };
            let apply = || {
                ctr.seek(0)?;
                Ok(ctr.apply(&mut data)?)
            };
            Ok((budget.time_queued(apply, || Ok(()))?, None, checked))
        });
    }
    session.measure(case(target, format!("aes-128-ctr{IN_TURN}/host"), log_n), |budget| {
        let ctr = ctr(on_device.clone())?;
        let mut data: Buffer<u8> = device.zeros(len)?;
        let mut host = patterned_vec(len);
        let mut in_turn = |host: &mut [u8]| -> Result<()> {
            data.write(host)?;
            device.sync()?;
            ctr.apply_at(None, 0, &mut data, 0..len)?;
            device.sync()?;
            Ok(data.read(host)?)
        };
        in_turn(&mut host)?;
        let checked = check_host(&host)?;
        Ok((budget.time_queued(|| in_turn(&mut host), || Ok(()))?, None, checked))
    });
    pinned(session, target, log_n, Config::default().queues);
    session.measure(case(target, format!("aes-128-ctr{IN_TURN}/pinned"), log_n), |budget| {
        let ctr = ctr(on_device.clone())?;
        let mut data: Buffer<u8> = device.zeros(len)?;
        let mut host = device.host_buffer(len, Transfer::Both, Secrecy::Public)?;
        patterned_slice(&mut host);
        let mut in_turn = |host: HostBuffer| -> Result<HostBuffer> {
            let host = data.write_pinned(None, host)?.wait()?;
            ctr.apply_at(None, 0, &mut data, 0..len)?;
            device.sync()?;
            Ok(data.read_pinned(None, host)?.wait()?)
        };
        host = in_turn(host)?;
        let checked = check_host(&host)?;
        let mut host = Some(host);
        let turn = || {
            host = host.take().map(&mut in_turn).transpose()?;
            Ok(())
        };
        Ok((budget.time_queued(turn, || Ok(()))?, None, checked))
    });
}

/// From pinned host memory and back, through a number of queues.
fn pinned(session: &mut Session, target: &Target, log_n: u32, queues: usize) {
    let device = &target.device;
    let config = Config { crossover: Some(0), queues, ..Config::default() };
    let name = match queues == Config::default().queues {
        true => "aes-128-ctr/pinned".into(),
        false => format!("aes-128-ctr-queues-{queues}/pinned"),
    };
    session.measure(case(target, name, log_n), |budget| {
        let mut ctr = Aes::with_config(device, &[&KEY[..16]], config)?.ctr(&IV)?;
        let mut host = device.host_buffer(1 << log_n, Transfer::Both, Secrecy::Public)?;
        patterned_slice(&mut host);
        ctr.apply_pinned(&mut host)?;
        let checked = check_host(&host)?;
        let apply = || {
            ctr.seek(0)?;
            Ok(ctr.apply_pinned(&mut host)?)
        };
        Ok((budget.time_queued(apply, || Ok(()))?, None, checked))
    });
}

/// What times a case on host slices that have the pattern, and says what was compared.
type TimeHost = dyn Fn(&Budget, &Aes, &mut [u8]) -> Result<(Timing, String)> + Sync;

/// The other modes on host slices, as the crossover has it, which the CPU has none of.
fn modes_from_host(session: &mut Session, target: &Target, log_n: u32) {
    let suffix = if target.device.info().id.kind == Kind::Cpu { "" } else { "-crossover" };
    let mut measure = |mode, name: &str, work: &TimeHost| {
        session.measure(case(target, format!("aes-128-{name}{suffix}/host"), log_n), |budget| {
            let aes = Aes::new(&target.device, &KEY[..16])?;
            let (timing, checked) = work(budget, &aes, &mut patterned_vec(1 << log_n))?;
            Ok((timing, None, format!("{checked}; {}", crossover(aes.crossover(mode)?))))
        });
    };
    measure(Mode::Gcm, "gcm-seal", &|budget, aes, data| time_seal(budget, &aes.gcm()?, data));
    measure(Mode::Gcm, "gcm-open", &|budget, aes, data| time_gcm_open(budget, &aes.gcm()?, data));
    measure(Mode::Cbc, "cbc-decrypt", &|budget, aes, data| time_cbc_decrypt(budget, aes, data));
    measure(Mode::Xts, "xts", &|budget, aes, data| {
        let xts = Xts::new(aes.device(), &xts_key(16), SECTOR)?;
        xts.encrypt(0, data)?;
        let checked = check_slice(data, SECTOR, |at, part| reference_xts(16, at, part))?;
        Ok((budget.time_queued(|| Ok(xts.encrypt(0, data)?), || Ok(()))?, checked))
    });
}

fn time_seal(budget: &Budget, gcm: &Gcm, data: &mut [u8]) -> Result<(Timing, String)> {
    let key_bytes = gcm.aes().key_size().bytes();
    let tag = gcm.seal(&NONCE, &[], data)?;
    let checked = check_slice(data, 16, |at, part| stream(key_bytes, gcm_counter(&NONCE), at, part))?;
    let checked = checked + check_tag(key_bytes, data.len(), &tag)?;
    Ok((budget.time_queued(|| Ok(gcm.seal(&NONCE, &[], data).map(drop)?), || Ok(()))?, checked))
}

fn time_gcm_open(budget: &Budget, gcm: &Gcm, data: &mut [u8]) -> Result<(Timing, String)> {
    let key_bytes = gcm.aes().key_size().bytes();
    let open = |data: &mut [u8], tag: &Vec<u8>| Ok(gcm.open(&NONCE, &[], data, tag)?);
    time_open(budget, data, |data| reference_seal(key_bytes, &NONCE, data), open)
}

fn time_cbc_decrypt(budget: &Budget, aes: &Aes, data: &mut [u8]) -> Result<(Timing, String)> {
    let (cbc, key_bytes) = (aes.cbc(), aes.key_size().bytes());
    cbc.decrypt(&IV, data)?;
    let checked = check_slice(data, 16, |at, part| reference_cbc_decrypt(key_bytes, at, part))?;
    Ok((budget.time_queued(|| Ok(cbc.decrypt(&IV, data)?), || Ok(()))?, checked))
}

fn crossover(bytes: usize) -> String {
    match bytes {
        usize::MAX => "always on the CPU".into(),
        bytes => format!("on the device from 2^{} on", bytes.ilog2()),
    }
}

/// Compares counter mode with AES-128 over the pattern.
fn check_host(data: &[u8]) -> Result<String> {
    check_slice(data, 16, |at, part| stream(16, IV, at, part))
}

/// Ours on one thread, as the peers are.
fn one_thread(session: &mut Session, target: &Target, log_n: u32) {
    let mut measure = |key_bytes: usize, mode: &str, work: &TimeHost| {
        let name = format!("aes-{}-{mode}/one-thread", 8 * key_bytes);
        session.measure(case(target, name, log_n), |budget| {
            let aes = Aes::new(&target.device, &KEY[..key_bytes])?;
            let pool = ThreadPoolBuilder::new().num_threads(1).build().context("a pool of one thread")?;
            let mut data = patterned_vec(1 << log_n);
            let (timing, checked) = pool.install(|| work(budget, &aes, &mut data))?;
            Ok((timing, None, checked))
        });
    };
    for key_bytes in PEER_KEY_BYTES {
        measure(key_bytes, "ctr", &|budget, aes, data| {
            let mut ctr = aes.ctr(&IV)?;
            let mut apply = |data: &mut [u8]| -> Result<()> {
                ctr.seek(0)?;
                Ok(ctr.apply(data)?)
            };
            apply(data)?;
            let key_bytes = aes.key_size().bytes();
            let checked = check_slice(data, 16, |at, part| stream(key_bytes, IV, at, part))?;
            Ok((budget.time_queued(|| apply(data), || Ok(()))?, checked))
        });
        measure(key_bytes, "gcm-seal", &|budget, aes, data| time_seal(budget, &aes.gcm()?, data));
        measure(key_bytes, "gcm-open", &|budget, aes, data| time_gcm_open(budget, &aes.gcm()?, data));
        measure(key_bytes, "cbc-decrypt", &time_cbc_decrypt);
        measure(key_bytes, "cbc-encrypt", &|budget, aes, data| {
            let cbc = aes.cbc();
            cbc.encrypt(&IV, data)?;
            let checked = check_chain(aes.key_size().bytes(), data)?;
            Ok((budget.time_queued(|| Ok(cbc.encrypt(&IV, data)?), || Ok(()))?, checked))
        });
    }
}

/// Compares CBC encryption of the pattern, which nobody can start in the middle of, by decrypting it there.
fn check_chain(key_bytes: usize, data: &[u8]) -> Result<String> {
    let places = places(data.len(), 16);
    for &(at, window) in &places {
        let before = if at == 0 { &IV[..] } else { &data[at - 16..at] };
        let previous = [before, &data[at..at + window]].concat();
        let mut plain = data[at..at + window].to_vec();
        reference_blocks(&KEY[..key_bytes], true, &mut plain);
        plain.iter_mut().zip(previous).for_each(|(byte, before)| *byte ^= before);
        ensure!(plain == pattern_at(at, window), "the result is wrong at {at}");
    }
    Ok(format!("RustCrypto, {} × {} bytes", places.len(), places[0].1))
}

/// Bytes of the copies that are opened one after the other in a run: they stay in a level 2 cache.
const COPIED: usize = 1 << 18;

/// Times `open` on what `seal` has made of the pattern, which opening destroys: on copies that are made between the runs.
fn time_open<T>(
    budget: &Budget,
    data: &mut [u8],
    seal: impl FnOnce(&mut [u8]) -> Result<T>,
    open: impl Fn(&mut [u8], &T) -> Result<()>,
) -> Result<(Timing, String)> {
    let tag = seal(data)?;
    let len = data.len();
    let batch = (COPIED / len).clamp(1, MAX_BATCH as usize);
    let copies = RefCell::new(vec![0; batch * len]);
    let prepare = || copies.borrow_mut().chunks_exact_mut(len).for_each(|copy| copy.copy_from_slice(data));
    let open_one = |i: u32| open(&mut copies.borrow_mut()[i as usize * len..][..len], &tag);
    let timing = budget.time_prepared(batch as u32, prepare, open_one)?;
    for copy in copies.borrow().chunks_exact(len) {
        check_slice(copy, 16, |_, _| ())?;
    }
    Ok((timing, "the plaintext, of what RustCrypto sealed".into()))
}

/// RustCrypto and, if it is built in, aws-lc, on one thread, with keys expanded before.
fn peers(session: &mut Session, target: &Target, log_n: u32) {
    rustcrypto::<Aes128>(session, target, log_n, 16);
    rustcrypto::<Aes256>(session, target, log_n, 32);
    #[cfg(feature = "aws-lc")]
    for key_bytes in PEER_KEY_BYTES {
        let case = |mode| peer(target, "aws-lc", key_bytes, mode, log_n);
        let len = 1 << log_n;
        session.measure(case("ctr"), |budget| aws_lc::ctr(budget, key_bytes, len));
        session.measure(case("gcm-seal"), |budget| aws_lc::gcm_seal(budget, key_bytes, len));
        session.measure(case("gcm-open"), |budget| aws_lc::gcm_open(budget, key_bytes, len));
    }
}

fn peer(target: &Target, name: &'static str, key_bytes: usize, mode: &str, log_n: u32) -> Case {
    Case { peer: Some(name), ..case(target, format!("aes-{}-{mode}/one-thread", 8 * key_bytes), log_n) }
}

/// Times a peer on some bytes, and says what its result was compared with.
type Peer<'a> = dyn Fn(&Budget, &mut [u8]) -> Result<(Timing, String)> + 'a;

fn rustcrypto<C: Cipher + KeyInit>(session: &mut Session, target: &Target, log_n: u32, key_bytes: usize) {
    let len = 1_usize << log_n;
    let cipher = C::new(&key());
    let gcm = AesGcm::<C, U12>::from(C::new(&key()));
    let seal = |data: &mut [u8]| {
        let tag = gcm.encrypt_inout_detached(&NONCE.into(), &[], data.into());
        tag.ok().context("too long")
    };
    // What it makes of the pattern is compared with what ours makes of it on the CPU, all of it.
    let ours = |work: &dyn Fn(&Aes, &mut [u8]) -> Result<()>, theirs: &[u8]| {
        let mut data = patterned_vec(len);
        work(&Aes::new(&Device::cpu(), &KEY[..key_bytes])?, &mut data)?;
        ensure!(data == theirs, "the peer's result is not ours");
        anyhow::Ok(format!("ours, {len} bytes"))
    };
    let mut measure = |mode, work: &Peer<'_>| {
        session.measure(peer(target, "rustcrypto", key_bytes, mode, log_n), |budget| {
            let (timing, checked) = work(budget, &mut patterned_vec(len))?;
            Ok((timing, None, checked))
        });
    };
    measure("ctr", &|budget, data| {
        let apply = |data: &mut [u8]| {
            Stream::from_core(CtrCore::inner_iv_init(&cipher, &IV.into())).apply_keystream(data);
            Ok(())
        };
        apply(data)?;
        let checked = ours(&|aes, data| Ok(aes.ctr(&IV)?.apply(data)?), data)?;
        Ok((budget.time_queued(|| apply(data), || Ok(()))?, checked))
    });
    measure("gcm-seal", &|budget, data| {
        let tag = seal(data)?;
        let compare = |aes: &Aes, data: &mut [u8]| {
            ensure!(aes.gcm()?.seal(&NONCE, &[], data)?.as_ref() == &tag[..], "the peer's tag is not ours");
            Ok(())
        };
        let checked = ours(&compare, data)? + " and the tag";
        Ok((budget.time_queued(|| seal(data).map(drop), || Ok(()))?, checked))
    });
    measure("gcm-open", &|budget, data| {
        let open = |data: &mut [u8], tag: &_| {
            gcm.decrypt_inout_detached(&NONCE.into(), &[], data.into(), tag).ok().context("a wrong tag")
        };
        time_open(budget, data, seal, open)
    });
    measure("cbc-decrypt", &|budget, data| {
        let decrypt = |data: &mut [u8]| {
            let blocks = Array::slice_as_chunks_mut(data).0;
            cbc::Decryptor::inner_iv_init(&cipher, &IV.into()).decrypt_blocks(blocks);
            Ok(())
        };
        decrypt(data)?;
        let checked = ours(&|aes, data| Ok(aes.cbc().decrypt(&IV, data)?), data)?;
        Ok((budget.time_queued(|| decrypt(data), || Ok(()))?, checked))
    });
    measure("cbc-encrypt", &|budget, data| {
        let encrypt = |data: &mut [u8]| {
            let blocks = Array::slice_as_chunks_mut(data).0;
            cbc::Encryptor::inner_iv_init(&cipher, &IV.into()).encrypt_blocks(blocks);
            Ok(())
        };
        encrypt(data)?;
        let checked = ours(&|aes, data| Ok(aes.cbc().encrypt(&IV, data)?), data)?;
        Ok((budget.time_queued(|| encrypt(data), || Ok(()))?, checked))
    });
}

/// The library of Amazon Web Services, from BoringSSL and OpenSSL, with assembly for every processor.
#[cfg(feature = "aws-lc")]
mod aws_lc {
    use anyhow::{Result, ensure};
    use aws_lc_rs::{aead, cipher, iv::FixedLength};

    use super::{IV, KEY, NONCE, check_slice, gcm_counter, patterned_vec, reference_seal, stream};
    use crate::bench::timing::{Budget, Timing};

    pub(super) fn ctr(budget: &Budget, key_bytes: usize, len: usize) -> Result<(Timing, Option<u64>, String)> {
        let algorithm = if key_bytes == 16 { &cipher::AES_128 } else { &cipher::AES_256 };
        let key = cipher::EncryptingKey::ctr(cipher::UnboundCipherKey::new(algorithm, &KEY[..key_bytes])?)?;
        let mut data = patterned_vec(len);
        let apply = |data: &mut [u8]| {
            let context = cipher::EncryptionContext::Iv128(FixedLength::from(IV));
            key.less_safe_encrypt(data, context).map(drop).map_err(anyhow::Error::from)
        };
        apply(&mut data)?;
        let checked = check_slice(&data, 16, |at, part| stream(key_bytes, IV, at, part))?;
        Ok((budget.time_queued(|| apply(&mut data), || Ok(()))?, None, checked))
    }

    fn gcm_key(key_bytes: usize) -> Result<aead::LessSafeKey> {
        let algorithm = if key_bytes == 16 { &aead::AES_128_GCM } else { &aead::AES_256_GCM };
        Ok(aead::LessSafeKey::new(aead::UnboundKey::new(algorithm, &KEY[..key_bytes])?))
    }

    fn seal(key: &aead::LessSafeKey, data: &mut [u8]) -> Result<aead::Tag> {
        let nonce = aead::Nonce::assume_unique_for_key(NONCE);
        Ok(key.seal_in_place_separate_tag(nonce, aead::Aad::empty(), data)?)
    }

    pub(super) fn gcm_seal(budget: &Budget, key_bytes: usize, len: usize) -> Result<(Timing, Option<u64>, String)> {
        let key = gcm_key(key_bytes)?;
        let mut data = patterned_vec(len);
        let tag = seal(&key, &mut data)?;
        let checked = check_slice(&data, 16, |at, part| stream(key_bytes, gcm_counter(&NONCE), at, part))?;
        let expected = reference_seal(key_bytes, &NONCE, &mut patterned_vec(len))?;
        ensure!(tag.as_ref() == expected, "the tag is wrong");
        let timing = budget.time_queued(|| seal(&key, &mut data).map(drop), || Ok(()))?;
        Ok((timing, None, checked + ", and the tag"))
    }

    pub(super) fn gcm_open(budget: &Budget, key_bytes: usize, len: usize) -> Result<(Timing, Option<u64>, String)> {
        let key = gcm_key(key_bytes)?;
        let open = |data: &mut [u8], tag: &[u8]| {
            let nonce = aead::Nonce::assume_unique_for_key(NONCE);
            key.open_in_place_separate_tag(nonce, aead::Aad::empty(), tag, data).map(drop)?;
            Ok(())
        };
        let sealed = |data: &mut [u8]| {
            let tag = reference_seal(key_bytes, &NONCE, data)?;
            ensure!(seal(&key, &mut patterned_vec(len))?.as_ref() == tag, "the tag is wrong");
            Ok(tag)
        };
        let open = |data: &mut [u8], tag: &Vec<u8>| open(data, tag);
        let (timing, checked) = super::time_open(budget, &mut patterned_vec(len), sealed, open)?;
        Ok((timing, None, checked))
    }
}
