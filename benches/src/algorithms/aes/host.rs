//! From host slice to host slice, and from pinned memory and back.

use std::cell::RefCell;

use anyhow::{Context, Result};
use evariste::aes::{Aes, AesConfig, Ctr, Mode, Xts};
use evariste::backend::{Buffer, HostBuffer, Kind, Secrecy, Transfer};
use rayon::ThreadPoolBuilder;

use super::{
    IV, KEY, Measured, NONCE, PEER_KEY_BYTES, SECTOR, case,
    check::{check_chain, check_host, check_slice, check_tag},
    pattern::{patterned_slice, patterned_vec},
    reference::{gcm_counter, reference_cbc_decrypt, reference_seal, reference_xts, stream, xts_key},
};
use crate::{
    session::{IN_TURN, Session},
    target::Target,
    timing::{Budget, MAX_BATCH, Timing},
};

/// log₂ of the most bytes of the cases that are not counter mode with the usual number of queues.
pub(super) const MAX_LOG_N: u32 = 30;

/// Numbers of queues that are compared. The usual one is among the others' cases.
const QUEUES: [usize; 3] = [1, 2, 8];

/// Times a mode on a host slice that has the pattern, and says what was compared.
type Run = fn(&Budget, &Aes, &mut [u8]) -> Result<(Timing, String)>;

/// The modes beside counter mode, and whose crossover they have.
const MODES: [(&str, Mode, Run); 4] = [
    ("gcm-seal", Mode::Gcm, seal),
    ("gcm-open", Mode::Gcm, gcm_open),
    ("cbc-decrypt", Mode::Cbc, cbc_decrypt),
    ("xts", Mode::Xts, xts),
];

const ON_ONE_THREAD: [(&str, Run); 5] = [
    ("ctr", counter),
    ("gcm-seal", seal),
    ("gcm-open", gcm_open),
    ("cbc-decrypt", cbc_decrypt),
    ("cbc-encrypt", cbc_encrypt),
];

pub(super) fn run(session: &mut Session, target: &Target, log_n: u32) {
    from_host(session, target, log_n);
    if log_n <= MAX_LOG_N {
        modes_from_host(session, target, log_n);
        if target.device.info().id.kind != Kind::Cpu {
            QUEUES.iter().for_each(|&queues| pinned(session, target, log_n, queues));
        }
    }
}

/// From host slice to host slice, and from pinned host memory and back: overlapped, and its parts one after the other;
/// and as the crossover has it.
fn from_host(session: &mut Session, target: &Target, log_n: u32) {
    let device = &target.device;
    let len = 1_usize << log_n;
    let on_device = AesConfig::default().cpu_threshold(0);
    let ctr = |config| -> Result<Ctr> { Ok(Aes::with_keys(device, &[&KEY[..16]], config)?.ctr(&IV)?) };
    let crossing = (device.info().id.kind != Kind::Cpu).then(|| ("aes-128-ctr-crossover/host", AesConfig::default()));
    for (name, config) in [("aes-128-ctr/host", on_device.clone())].into_iter().chain(crossing) {
        session.measure(case(target, name.into(), log_n), |budget| {
            let mut ctr = ctr(config.clone())?;
            let mut data = patterned_vec(len);
            ctr.apply_host(&mut data)?;
            let checked = check_host(&data)?;
            let checked = match config.cpu_threshold {
                Some(_) => checked,
                None => format!("{checked}; {}", crossover(ctr.aes().cpu_threshold(Mode::Ctr)?)),
            };
            let apply = || {
                ctr.seek(0)?;
                Ok(ctr.apply_host(&mut data)?)
            };
            Ok((budget.time_queued(apply, || Ok(()))?, None, checked))
        });
    }
    session.measure(case(target, format!("aes-128-ctr{IN_TURN}/host"), log_n), |budget| {
        slice_in_turn(budget, &ctr(on_device.clone())?, len)
    });
    pinned(session, target, log_n, AesConfig::default().queues);
    session.measure(case(target, format!("aes-128-ctr{IN_TURN}/pinned"), log_n), |budget| {
        pinned_in_turn(budget, &ctr(on_device.clone())?, len)
    });
}

/// From pinned host memory and back, through a number of queues.
fn pinned(session: &mut Session, target: &Target, log_n: u32, queues: usize) {
    let device = &target.device;
    let config = AesConfig::default().cpu_threshold(0).queues(queues);
    let name = match queues == AesConfig::default().queues {
        true => "aes-128-ctr/pinned".into(),
        false => format!("aes-128-ctr-queues-{queues}/pinned"),
    };
    session.measure(case(target, name, log_n), |budget| {
        through_queues(budget, &mut Aes::with_keys(device, &[&KEY[..16]], config)?.ctr(&IV)?, 1 << log_n)
    });
}

/// Counter mode on a slice: copies, works, copies back, each when the last is done.
pub(super) fn slice_in_turn(budget: &Budget, ctr: &Ctr, len: usize) -> Result<Measured> {
    let device = ctr.aes().device();
    let mut data: Buffer<u8> = device.zeros(len)?;
    let mut host = patterned_vec(len);
    let mut in_turn = |host: &mut [u8]| -> Result<()> {
        data.write(host)?;
        device.sync()?;
        ctr.apply_at(0, &mut data)?;
        device.sync()?;
        Ok(data.read(host)?)
    };
    in_turn(&mut host)?;
    let checked = check_host(&host)?;
    Ok((budget.time_queued(|| in_turn(&mut host), || Ok(()))?, None, checked))
}

/// The same on pinned memory.
pub(super) fn pinned_in_turn(budget: &Budget, ctr: &Ctr, len: usize) -> Result<Measured> {
    let device = ctr.aes().device();
    let mut data: Buffer<u8> = device.zeros(len)?;
    let mut host = device.host_buffer(len, Transfer::Both, Secrecy::Public)?;
    patterned_slice(&mut host);
    let mut in_turn = |host: HostBuffer| -> Result<HostBuffer> {
        let host = data.write_pinned(host)?.wait()?;
        ctr.apply_at(0, &mut data)?;
        device.sync()?;
        Ok(data.read_pinned(host)?.wait()?)
    };
    host = in_turn(host)?;
    let checked = check_host(&host)?;
    let mut host = Some(host);
    let turn = || {
        host = host.take().map(&mut in_turn).transpose()?;
        Ok(())
    };
    Ok((budget.time_queued(turn, || Ok(()))?, None, checked))
}

/// Counter mode on pinned memory, through the queues of its configuration.
pub(super) fn through_queues(budget: &Budget, ctr: &mut Ctr, len: usize) -> Result<Measured> {
    let mut host = ctr.aes().device().host_buffer(len, Transfer::Both, Secrecy::Public)?;
    patterned_slice(&mut host);
    ctr.apply_pinned(&mut host)?;
    let checked = check_host(&host)?;
    let apply = || {
        ctr.seek(0)?;
        Ok(ctr.apply_pinned(&mut host)?)
    };
    Ok((budget.time_queued(apply, || Ok(()))?, None, checked))
}

/// The other modes on host slices, as the crossover has it, which the CPU has none of.
fn modes_from_host(session: &mut Session, target: &Target, log_n: u32) {
    let suffix = if target.device.info().id.kind == Kind::Cpu { "" } else { "-crossover" };
    for (name, mode, work) in MODES {
        session.measure(case(target, format!("aes-128-{name}{suffix}/host"), log_n), |budget| {
            let aes = Aes::new(&target.device, &KEY[..16])?;
            let (timing, checked) = work(budget, &aes, &mut patterned_vec(1 << log_n))?;
            Ok((timing, None, format!("{checked}; {}", crossover(aes.cpu_threshold(mode)?))))
        });
    }
}

/// Ours on one thread, as the peers are.
pub(super) fn one_thread(session: &mut Session, target: &Target, log_n: u32) {
    for key_bytes in PEER_KEY_BYTES {
        for (mode, work) in ON_ONE_THREAD {
            let name = format!("aes-{}-{mode}/one-thread", 8 * key_bytes);
            session.measure(case(target, name, log_n), |budget| {
                let aes = Aes::new(&target.device, &KEY[..key_bytes])?;
                let pool = ThreadPoolBuilder::new().num_threads(1).build().context("a pool of one thread")?;
                let mut data = patterned_vec(1 << log_n);
                let (timing, checked) = pool.install(|| work(budget, &aes, &mut data))?;
                Ok((timing, None, checked))
            });
        }
    }
}

fn counter(budget: &Budget, aes: &Aes, data: &mut [u8]) -> Result<(Timing, String)> {
    let mut ctr = aes.ctr(&IV)?;
    let mut apply = |data: &mut [u8]| -> Result<()> {
        ctr.seek(0)?;
        Ok(ctr.apply_host(data)?)
    };
    apply(data)?;
    let key_bytes = aes.key_size().bytes();
    let checked = check_slice(data, 16, |at, part| stream(key_bytes, IV, at, part))?;
    Ok((budget.time_queued(|| apply(data), || Ok(()))?, checked))
}

fn seal(budget: &Budget, aes: &Aes, data: &mut [u8]) -> Result<(Timing, String)> {
    let (gcm, key_bytes) = (aes.gcm()?, aes.key_size().bytes());
    let tag = gcm.seal_host(&NONCE, &[], data)?;
    let checked = check_slice(data, 16, |at, part| stream(key_bytes, gcm_counter(&NONCE), at, part))?;
    let checked = checked + check_tag(key_bytes, data.len(), &tag)?;
    Ok((budget.time_queued(|| Ok(gcm.seal_host(&NONCE, &[], data).map(drop)?), || Ok(()))?, checked))
}

fn gcm_open(budget: &Budget, aes: &Aes, data: &mut [u8]) -> Result<(Timing, String)> {
    let (gcm, key_bytes) = (aes.gcm()?, aes.key_size().bytes());
    let open = |data: &mut [u8], tag: &Vec<u8>| Ok(gcm.open_host(&NONCE, &[], data, tag)?);
    time_open(budget, data, |data| reference_seal(key_bytes, &NONCE, data), open)
}

fn cbc_decrypt(budget: &Budget, aes: &Aes, data: &mut [u8]) -> Result<(Timing, String)> {
    let (cbc, key_bytes) = (aes.cbc(), aes.key_size().bytes());
    cbc.decrypt_host(&IV, data)?;
    let checked = check_slice(data, 16, |at, part| reference_cbc_decrypt(key_bytes, at, part))?;
    Ok((budget.time_queued(|| Ok(cbc.decrypt_host(&IV, data)?), || Ok(()))?, checked))
}

fn cbc_encrypt(budget: &Budget, aes: &Aes, data: &mut [u8]) -> Result<(Timing, String)> {
    let cbc = aes.cbc();
    cbc.encrypt_host(&IV, data)?;
    let checked = check_chain(aes.key_size().bytes(), data)?;
    Ok((budget.time_queued(|| Ok(cbc.encrypt_host(&IV, data)?), || Ok(()))?, checked))
}

fn xts(budget: &Budget, aes: &Aes, data: &mut [u8]) -> Result<(Timing, String)> {
    let xts = Xts::new(aes.device(), &xts_key(16), SECTOR)?;
    xts.encrypt_host(0, data)?;
    let checked = check_slice(data, SECTOR, |at, part| reference_xts(16, at, part))?;
    Ok((budget.time_queued(|| Ok(xts.encrypt_host(0, data)?), || Ok(()))?, checked))
}

fn crossover(bytes: usize) -> String {
    match bytes {
        usize::MAX => "always on the CPU".into(),
        bytes => format!("on the device from 2^{} on", bytes.ilog2()),
    }
}

/// Bytes of the copies that are opened one after the other in a run: they stay in a level 2 cache.
const COPIED: usize = 1 << 18;

/// Times `open` on what `seal` has made of the pattern, which opening destroys: on copies that are made between the
/// runs.
pub(super) fn time_open<T>(
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
