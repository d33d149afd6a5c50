//! AES: methods, key sizes and modes on data that lies on the device, and from host slice to host slice.
//!
//! Sizes are in bytes, so that throughput is bytes of plaintext in a second.

use ::aes::{Aes128, Aes256};
use aes_gcm::aead::{AeadInOut, KeyInit};
use anyhow::{Result, ensure};
use cipher::{KeyIvInit, StreamCipher, StreamCipherSeek, consts::U12};
use ctr::Ctr128BE;
use evariste_aes::{Aes, Config, Ctr, GcmMessage, Method, Mode, Xts};
use evariste_backend::{Buffer, Device, HostBuffer, Kind, Secrecy, Transfer};

use super::{
    Algorithm, Options, Profile, Target,
    limits::Work,
    report::{Case, Session},
    timing::{Budget, Timing},
};

const KEY: [u8; 32] = [0x5a; 32];
const IV: [u8; 16] = [0xa5; 16];
const NONCE: [u8; 12] = [7; 12];

const KEY_BYTES: [usize; 3] = [16, 24, 32];

/// Bytes of a sector of XTS.
const SECTOR: usize = 4096;

/// Bytes of a message of a batch: a record of TLS.
const RECORD: usize = 16 << 10;

/// Bytes that are checked at each place.
const CHECKED: usize = 1 << 10;

pub(crate) fn run(session: &mut Session, targets: &[Target], options: &Options) {
    for target in targets {
        let sizes = sizes(&target.device, options);
        for &log_n in &sizes {
            for (bytes, method) in methods(&target.device, options.profile) {
                on_device(session, target, log_n, bytes, method);
            }
            KEY_BYTES.iter().for_each(|&bytes| modes(session, target, log_n, bytes));
            batch(session, target, log_n);
            from_host(session, target, log_n);
        }
        if options.peers && target.device.info().id.kind == Kind::Cpu {
            sizes.iter().for_each(|&log_n| peers(session, target, log_n));
        }
    }
}

/// log₂ of the bytes: the ladder from 1 KiB to 1 GiB, and 4 GiB where that takes no time, each four times the last.
fn sizes(device: &Device, options: &Options) -> Vec<u32> {
    let info = device.info();
    let fast = info.id.kind != Kind::Cpu && !info.features.software;
    match (options.profile, fast, info.features.software) {
        _ if options.log_n.is_some() => {
            (10..=32).filter(|n| options.log_n.as_ref().is_some_and(|s| s.contains(*n))).collect()
        }
        (Profile::Quick, true, _) => vec![10, 16, 20, 24, 28],
        (Profile::Quick, false, false) => vec![10, 16, 20, 24],
        (Profile::Full, true, _) => (10..=32).step_by(2).collect(),
        (Profile::Full, false, false) => (10..=30).step_by(2).collect(),
        (_, _, true) => vec![10, 16, 20],
    }
}

/// Key bytes and methods of counter mode: all of them where methods differ.
fn methods(device: &Device, profile: Profile) -> Vec<(usize, Method)> {
    let fastest = Method::fastest(device.info());
    let mut methods = vec![fastest];
    if device.info().id.kind != Kind::Cpu {
        let all: &[Method] = if profile == Profile::Full { &Method::ALL } else { &[Method::Bitsliced] };
        methods.extend(all.iter().filter(|method| **method != fastest));
    }
    methods.into_iter().flat_map(|method| KEY_BYTES.map(|bytes| (bytes, method))).collect()
}

fn case(target: &Target, name: String, log_n: u32) -> Case {
    let bytes = 1_usize << log_n;
    Case {
        algorithm: Algorithm::Aes,
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

/// Compares the stream on zeros with RustCrypto's at the start, in the middle and at the end.
fn check_stream(data: &Buffer<u8>, key_bytes: usize) -> Result<String> {
    let len = data.len().min(CHECKED);
    for at in [0, data.len() / 2 / 16 * 16, data.len() - len] {
        let mut actual = vec![0; len.min(data.len() - at)];
        data.read_at(at, &mut actual)?;
        let mut expected = vec![0; actual.len()];
        stream(key_bytes, at as u64, &mut expected);
        ensure!(actual == expected, "the stream is wrong at {at}");
    }
    Ok(format!("RustCrypto, 3 × {len} bytes"))
}

fn stream(key_bytes: usize, position: u64, data: &mut [u8]) {
    fn run(mut cipher: impl StreamCipher + StreamCipherSeek, position: u64, data: &mut [u8]) {
        cipher.seek(position);
        cipher.apply_keystream(data);
    }
    let iv = &IV.into();
    match key_bytes {
        16 => run(Ctr128BE::<Aes128>::new(KEY[..16].try_into().expect("16 bytes"), iv), position, data),
        24 => run(Ctr128BE::<::aes::Aes192>::new(KEY[..24].try_into().expect("24 bytes"), iv), position, data),
        _ => run(Ctr128BE::<Aes256>::new(&KEY.into(), iv), position, data),
    }
}

/// Counter mode in place.
fn on_device(session: &mut Session, target: &Target, log_n: u32, key_bytes: usize, method: Method) {
    let device = &target.device;
    let name = match method == Method::fastest(device.info()) {
        true => format!("aes-{}-ctr/device", 8 * key_bytes),
        false => format!("aes-{}-ctr-{}/device", 8 * key_bytes, format!("{method:?}").to_lowercase()),
    };
    session.measure(case(target, name, log_n), |budget| {
        let ctr = aes(device, key_bytes, method)?.ctr(&IV)?;
        let mut data: Buffer<u8> = device.zeros(1 << log_n)?;
        let len = data.len();
        let before = device.stats().launches;
        ctr.apply_at(None, 0, &mut data, 0..len)?;
        let launches = device.stats().launches - before;
        let checked = check_stream(&data, key_bytes)?;
        let timing = budget.time_queued(|| Ok(ctr.apply_at(None, 0, &mut data, 0..len)?), || Ok(device.sync()?))?;
        Ok((timing, Some(launches), checked))
    });
}

/// The other modes, in place; what is encrypted is decrypted for a check.
fn modes(session: &mut Session, target: &Target, log_n: u32, key_bytes: usize) {
    let device = &target.device;
    let method = Method::fastest(device.info());
    let len = 1_usize << log_n;
    let name = |mode: &str| format!("aes-{}-{mode}/device", 8 * key_bytes);
    session.measure(case(target, name("gcm-seal"), log_n), |budget| {
        let gcm = aes(device, key_bytes, method)?.gcm()?;
        let mut data: Buffer<u8> = device.zeros(len)?;
        let tag = gcm.seal_range(&NONCE, &[], &mut data, 0..len)?;
        gcm.open_range(&NONCE, &[], &mut data, 0..len, tag.as_ref())?;
        let checked = is_zero(&data)?;
        let timing = budget.time(|| Ok(gcm.seal_range(&NONCE, &[], &mut data, 0..len).map(drop)?))?;
        Ok((timing, None, checked))
    });
    session.measure(case(target, name("xts"), log_n), |budget| {
        let mut key = vec![1; 2 * key_bytes];
        key[key_bytes..].copy_from_slice(&KEY[..key_bytes]);
        let xts = Xts::with_config(device, &key, SECTOR, Config::method(method))?;
        let mut data: Buffer<u8> = device.zeros(len)?;
        xts.encrypt_range(0, &mut data, 0..len)?;
        xts.decrypt_range(0, &mut data, 0..len)?;
        let checked = is_zero(&data)?;
        let timing = budget.time_queued(|| Ok(xts.encrypt_range(0, &mut data, 0..len)?), || Ok(device.sync()?))?;
        Ok((timing, None, checked))
    });
    session.measure(case(target, name("cbc-decrypt"), log_n), |budget| {
        let cbc = aes(device, key_bytes, method)?.cbc();
        let mut data: Buffer<u8> = device.zeros(len)?;
        cbc.decrypt_range(&IV, &mut data, 0..len)?;
        let mut head = vec![0; len.min(CHECKED)];
        data.read_at(0, &mut head)?;
        cbc.encrypt(&IV, &mut head)?;
        ensure!(head.iter().all(|byte| *byte == 0), "decryption is not the inverse of encryption");
        let timing = budget.time_queued(|| Ok(cbc.decrypt_range(&IV, &mut data, 0..len)?), || Ok(device.sync()?))?;
        Ok((timing, None, "there and back".into()))
    });
}

fn is_zero(data: &Buffer<u8>) -> Result<String> {
    let mut end = vec![1; data.len().min(CHECKED)];
    data.read_at(data.len() - end.len(), &mut end)?;
    ensure!(end.iter().all(|byte| *byte == 0), "decryption does not give back what was encrypted");
    Ok("there and back".into())
}

/// Many messages with nonces of their own in one call.
fn batch(session: &mut Session, target: &Target, log_n: u32) {
    let device = &target.device;
    let method = Method::fastest(device.info());
    let len = 1_usize << log_n;
    if len < RECORD {
        return;
    }
    session.measure(case(target, "aes-128-gcm-seal-batch-16k/device".into(), log_n), |budget| {
        let gcm = aes(device, 16, method)?.gcm()?;
        let mut data: Buffer<u8> = device.zeros(len)?;
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
        gcm.open_batch(&mut data, &messages, &tags)?;
        let checked = is_zero(&data)?;
        let timing = budget.time(|| Ok(gcm.seal_batch(&mut data, &messages).map(drop)?))?;
        Ok((timing, None, checked))
    });
}

/// What the name of a case adds where copies and kernel wait for each other: the sum of the parts of the case without it.
pub(super) const IN_TURN: &str = "-in-turn";

/// From host slice to host slice, and from pinned host memory and back: overlapped, and its parts one after the other; and
/// as the crossover has it.
fn from_host(session: &mut Session, target: &Target, log_n: u32) {
    let device = &target.device;
    let len = 1_usize << log_n;
    let on_device = Config { crossover: Some(0), ..Config::default() };
    let ctr = |config| -> Result<Ctr> { Ok(Aes::with_config(device, &[&KEY[..16]], config)?.ctr(&IV)?) };
    for (name, config) in [("aes-128-ctr/host", &on_device), ("aes-128-ctr-crossover/host", &Config::default())] {
        session.measure(case(target, name.into(), log_n), |budget| {
            let mut ctr = ctr(config.clone())?;
            let mut data = vec![0; len];
            ctr.apply(&mut data)?;
            let checked = check_host(&data)?;
            let checked = match config.crossover {
                Some(_) => checked,
                None => format!("{checked}; {}", crossover(ctr.aes().crossover(Mode::Ctr)?)),
            };
            let timing = budget.time(|| {
                ctr.seek(0)?;
                Ok(ctr.apply(&mut data)?)
            })?;
            Ok((timing, None, checked))
        });
    }
    session.measure(case(target, format!("aes-128-ctr{IN_TURN}/host"), log_n), |budget| {
        let ctr = ctr(on_device.clone())?;
        let mut data: Buffer<u8> = device.zeros(len)?;
        let mut host = vec![0; len];
        let mut in_turn = |host: &mut [u8]| -> Result<()> {
            data.write_at(0, host)?;
            device.sync()?;
            ctr.apply_at(None, 0, &mut data, 0..len)?;
            device.sync()?;
            Ok(data.read_at(0, host)?)
        };
        in_turn(&mut host)?;
        let checked = check_host(&host)?;
        Ok((budget.time(|| in_turn(&mut host))?, None, checked))
    });
    session.measure(case(target, "aes-128-ctr/pinned".into(), log_n), |budget| {
        let mut ctr = ctr(on_device.clone())?;
        let mut host = device.host_buffer(len, Transfer::Both, Secrecy::Public)?;
        host.fill(0);
        ctr.apply_pinned(&mut host)?;
        let checked = check_host(&host)?;
        let timing = budget.time(|| {
            ctr.seek(0)?;
            Ok(ctr.apply_pinned(&mut host)?)
        })?;
        Ok((timing, None, checked))
    });
    session.measure(case(target, format!("aes-128-ctr{IN_TURN}/pinned"), log_n), |budget| {
        let ctr = ctr(on_device.clone())?;
        let mut data: Buffer<u8> = device.zeros(len)?;
        let mut host = device.host_buffer(len, Transfer::Both, Secrecy::Public)?;
        host.fill(0);
        let mut in_turn = |host: HostBuffer| -> Result<HostBuffer> {
            let host = data.write_pinned(None, 0, host)?.wait()?;
            ctr.apply_at(None, 0, &mut data, 0..len)?;
            device.sync()?;
            Ok(data.read_pinned(None, 0, host)?.wait()?)
        };
        host = in_turn(host)?;
        let checked = check_host(&host)?;
        let mut host = Some(host);
        let timing = budget.time(|| {
            host = host.take().map(&mut in_turn).transpose()?;
            Ok(())
        })?;
        Ok((timing, None, checked))
    });
}

fn crossover(bytes: usize) -> String {
    match bytes {
        usize::MAX => "always on the CPU".into(),
        bytes => format!("on the device from 2^{} on", bytes.ilog2()),
    }
}

/// Compares the stream on zeros with RustCrypto's, at the start and at the end.
fn check_host(data: &[u8]) -> Result<String> {
    let len = data.len().min(CHECKED);
    for at in [0, data.len() - len] {
        let mut expected = vec![0; len];
        stream(16, at as u64, &mut expected);
        ensure!(data[at..at + len] == expected, "the stream is wrong at {at}");
    }
    Ok(format!("RustCrypto, 2 × {len} bytes"))
}

/// RustCrypto and, if it is built in, aws-lc, on one thread.
fn peers(session: &mut Session, target: &Target, log_n: u32) {
    let len = 1_usize << log_n;
    for key_bytes in [16, 32] {
        let task = |mode: &str| format!("aes-{}-{mode}/host", 8 * key_bytes);
        let peer = |name: &'static str, mode: &str| Case { peer: Some(name), ..case(target, task(mode), log_n) };
        session.measure(peer("rustcrypto", "ctr"), |budget| {
            let mut data = vec![0; len];
            let timing = budget.time(|| {
                stream(key_bytes, 0, &mut data);
                Ok(())
            })?;
            Ok((timing, None, "–".into()))
        });
        session.measure(peer("rustcrypto", "gcm-seal"), |budget| {
            let mut data = vec![0; len];
            let timing = match key_bytes {
                16 => time_gcm(budget, &aes_gcm::Aes128Gcm::new(KEY[..16].try_into()?), &mut data)?,
                _ => time_gcm(budget, &aes_gcm::Aes256Gcm::new(&KEY.into()), &mut data)?,
            };
            Ok((timing, None, "–".into()))
        });
        #[cfg(feature = "aws-lc")]
        {
            session.measure(peer("aws-lc", "ctr"), |budget| aws_lc::ctr(budget, key_bytes, len));
            session.measure(peer("aws-lc", "gcm-seal"), |budget| aws_lc::gcm(budget, key_bytes, len));
        }
    }
}

fn time_gcm(budget: &Budget, gcm: &impl AeadInOut<NonceSize = U12>, data: &mut [u8]) -> Result<Timing> {
    budget.time(|| {
        ensure!(gcm.encrypt_inout_detached(&NONCE.into(), &[], data.into()).is_ok(), "too long");
        Ok(())
    })
}

/// The library of Amazon Web Services, from BoringSSL and OpenSSL, with assembly for every processor.
#[cfg(feature = "aws-lc")]
mod aws_lc {
    use anyhow::{Result, ensure};
    use aws_lc_rs::{aead, cipher, iv::FixedLength};

    use super::{IV, KEY, NONCE, check_host};
    use crate::bench::timing::{Budget, Timing};

    pub(super) fn ctr(budget: &Budget, key_bytes: usize, len: usize) -> Result<(Timing, Option<u64>, String)> {
        let algorithm = if key_bytes == 16 { &cipher::AES_128 } else { &cipher::AES_256 };
        let key = cipher::EncryptingKey::ctr(cipher::UnboundCipherKey::new(algorithm, &KEY[..key_bytes])?)?;
        let mut data = vec![0; len];
        let mut apply = || {
            let context = cipher::EncryptionContext::Iv128(FixedLength::from(IV));
            key.less_safe_encrypt(&mut data, context).map(drop).map_err(anyhow::Error::from)
        };
        let timing = budget.time(&mut apply)?;
        let mut data = vec![0; len];
        let context = cipher::EncryptionContext::Iv128(FixedLength::from(IV));
        key.less_safe_encrypt(&mut data, context)?;
        let checked = if key_bytes == 16 { check_host(&data)? } else { "–".into() };
        Ok((timing, None, checked))
    }

    pub(super) fn gcm(budget: &Budget, key_bytes: usize, len: usize) -> Result<(Timing, Option<u64>, String)> {
        let algorithm = if key_bytes == 16 { &aead::AES_128_GCM } else { &aead::AES_256_GCM };
        let key = aead::LessSafeKey::new(aead::UnboundKey::new(algorithm, &KEY[..key_bytes])?);
        let mut data = vec![0; len];
        let timing = budget.time(|| {
            let nonce = aead::Nonce::assume_unique_for_key(NONCE);
            let sealed = key.seal_in_place_separate_tag(nonce, aead::Aad::empty(), &mut data);
            ensure!(sealed.is_ok(), "too long");
            Ok(())
        })?;
        Ok((timing, None, "–".into()))
    }
}
