//! Other libraries on one thread of the host.

use ::aes::{Aes128, Aes256};
use aes_gcm::{
    AesGcm,
    aead::{AeadInOut, KeyInit},
};
use anyhow::{Context, Result, ensure};
use cipher::{Array, BlockModeDecrypt, BlockModeEncrypt, InnerIvInit, StreamCipher, consts::U12};
use ctr::CtrCore;
use evariste::aes::Aes;
use evariste::backend::Device;

use super::{
    IV, KEY, NONCE, case,
    host::time_open,
    pattern::patterned_vec,
    reference::{Cipher, Stream, key},
};
use crate::{
    session::{Case, Session},
    target::Target,
    timing::{Budget, Timing},
};

/// RustCrypto and, if it is built in, aws-lc, on one thread, with keys expanded before.
pub(super) fn run(session: &mut Session, target: &Target, log_n: u32) {
    rustcrypto::<Aes128>(session, target, log_n, 16);
    rustcrypto::<Aes256>(session, target, log_n, 32);
    #[cfg(feature = "aws-lc")]
    for key_bytes in super::PEER_KEY_BYTES {
        let case = |mode| peer(target, "aws-lc", key_bytes, mode, log_n);
        let len = 1 << log_n;
        session.measure(case("ctr"), |budget| super::aws_lc::ctr(budget, key_bytes, len));
        session.measure(case("gcm-seal"), |budget| super::aws_lc::gcm_seal(budget, key_bytes, len));
        session.measure(case("gcm-open"), |budget| super::aws_lc::gcm_open(budget, key_bytes, len));
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
        let checked = ours(&|aes, data| Ok(aes.ctr(&IV)?.apply_host(data)?), data)?;
        Ok((budget.time_queued(|| apply(data), || Ok(()))?, checked))
    });
    measure("gcm-seal", &|budget, data| {
        let tag = seal(data)?;
        let compare = |aes: &Aes, data: &mut [u8]| {
            ensure!(aes.gcm()?.seal_host(&NONCE, &[], data)?.as_ref() == &tag[..], "the peer's tag is not ours");
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
        let checked = ours(&|aes, data| Ok(aes.cbc().decrypt_host(&IV, data)?), data)?;
        Ok((budget.time_queued(|| decrypt(data), || Ok(()))?, checked))
    });
    measure("cbc-encrypt", &|budget, data| {
        let encrypt = |data: &mut [u8]| {
            let blocks = Array::slice_as_chunks_mut(data).0;
            cbc::Encryptor::inner_iv_init(&cipher, &IV.into()).encrypt_blocks(blocks);
            Ok(())
        };
        encrypt(data)?;
        let checked = ours(&|aes, data| Ok(aes.cbc().encrypt_host(&IV, data)?), data)?;
        Ok((budget.time_queued(|| encrypt(data), || Ok(()))?, checked))
    });
}
