use arbitrary::Unstructured;
use evariste_aes::{Aes, AesConfig, Counter, Error, GcmMessage, Message};
use evariste_backend::{Buffer, Device};

use crate::{
    choice,
    reference::{BLOCK, Cipher},
};

/// A message of a batch in any mode.
#[derive(Debug)]
struct Spec {
    offset: usize,
    len: usize,
    key: usize,
    iv: [u8; BLOCK],
    nonce: Vec<u8>,
    aad: Vec<u8>,
}

impl Spec {
    fn new(input: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let aligned = input.ratio(15, 16)?;
        let (offset, len) = (input.int_in_range(0..=600_usize)?, input.int_in_range(0..=200_usize)?);
        let extreme = input.ratio(1, 32)?;
        Ok(Self {
            offset: match (extreme, aligned) {
                (true, _) => usize::MAX - offset,
                (false, true) => offset / BLOCK * BLOCK,
                (false, false) => offset,
            },
            len: if input.ratio(1, 64)? { usize::MAX - len } else { len },
            key: input.int_in_range(0..=3)?,
            // Counters near their ends, too.
            iv: (input.arbitrary::<u128>()? | if input.ratio(1, 4)? { u128::MAX << 4 } else { 0 }).to_be_bytes(),
            nonce: bytes(input, 20)?,
            aad: bytes(input, 40)?,
        })
    }

    fn message(&self) -> Message {
        Message { offset: self.offset, len: self.len, key: self.key, iv: self.iv }
    }

    fn gcm(&self) -> GcmMessage<'_> {
        GcmMessage { offset: self.offset, len: self.len, key: self.key, nonce: &self.nonce, aad: &self.aad }
    }
}

fn bytes(input: &mut Unstructured<'_>, most: usize) -> arbitrary::Result<Vec<u8>> {
    let len = input.int_in_range(0..=most)?;
    (0..len).map(|_| input.arbitrary()).collect()
}

/// Batches of messages in one buffer, in CTR, CBC and GCM: either each message comes out as alone and nothing else of
/// the buffer changes, or the batch is refused and nothing changes at all.
///
/// # Panics
/// If a batch does anything else.
pub fn aes_batches(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let key_len = choice(input.choose(&[16_usize, 24, 32]).copied());
    let count = choice(input.int_in_range(1..=3));
    let keys: Vec<Vec<u8>> = (0..count).map(|_| (0..key_len).map(|_| choice(input.arbitrary())).collect()).collect();
    let mode = choice(input.int_in_range(0..=3_u8));
    let len = choice(input.int_in_range(0..=700_usize));
    let count = choice(input.int_in_range(0..=6));
    let mut specs: Vec<Spec> = (0..count).map(|_| choice(Spec::new(&mut input))).collect();
    if choice(input.ratio(1, 2)) {
        lay_out(&mut specs, len, keys.len());
    }
    if choice(input.ratio(1, 2)) && matches!(mode, 1 | 2) {
        specs.iter_mut().for_each(|spec| spec.len -= spec.len % BLOCK);
    }

    let device = Device::cpu();
    let aes = Aes::with_keys(&device, &keys, AesConfig::default()).expect("the keys have one length that AES has");
    let ciphers: Vec<Cipher> = keys.iter().map(|key| Cipher::new(key)).collect();
    let before: Vec<u8> = (0..len).map(|i| (i * 7 + i / 256) as u8).collect();
    let mut buffer = device.upload::<u8>(&before).expect("the CPU has room");
    let valid = is_valid(&specs, len, keys.len());
    let messages: Vec<Message> = specs.iter().map(Spec::message).collect();
    let mut expected = before.clone();
    match mode {
        0 => {
            let wide = choice(input.arbitrary());
            let (counter, bits) = if wide { (Counter::Bits128, 128) } else { (Counter::Bits32, 32) };
            let outcome = aes.ctr_batch(&mut buffer, &messages, counter);
            let shares = |a: &Spec, b: &Spec| keys.get(a.key) == keys.get(b.key) && a.shares_stream(b, bits);
            let fresh = is_fresh(&specs, shares);
            check(&outcome, Traits { valid, fresh }, &specs);
            if outcome.is_ok() {
                each(&specs, &mut expected, |spec, data| ciphers[spec.key].ctr(spec.iv, bits, 0, data));
            }
        }
        1 | 2 => {
            let valid = valid && specs.iter().all(|spec| spec.len % BLOCK == 0);
            let outcome = aes.cbc_encrypt_batch(&mut buffer, &messages);
            check(&outcome, Traits { valid, fresh: true }, &specs);
            if outcome.is_ok() {
                each(&specs, &mut expected, |spec, data| ciphers[spec.key].cbc_encrypt(spec.iv, data));
            }
            if mode == 2 && outcome.is_ok() {
                assert_eq!(read(&buffer), expected, "{specs:?}");
                aes.cbc_decrypt_batch(&mut buffer, &messages).expect("what was encrypted can be decrypted");
                expected.clone_from(&before);
            }
        }
        _ => {
            let valid = valid && specs.iter().all(|spec| !spec.nonce.is_empty());
            let gcm = aes.gcm().expect("the CPU has room");
            let messages: Vec<GcmMessage<'_>> = specs.iter().map(Spec::gcm).collect();
            let sealed = gcm.seal_batch(&mut buffer, &messages);
            let fresh = is_fresh(&specs, |a, b| keys.get(a.key) == keys.get(b.key) && a.nonce == b.nonce);
            check(&sealed, Traits { valid, fresh }, &specs);
            if let Ok(tags) = sealed {
                let mut reference = Vec::new();
                each(&specs, &mut expected, |spec, data| {
                    reference.push(ciphers[spec.key].seal(&spec.nonce, &spec.aad, data));
                });
                assert!(tags.iter().map(AsRef::as_ref).eq(reference.iter().map(|tag| &tag[..])), "{specs:?}");
                assert_eq!(read(&buffer), expected, "{specs:?}");
                if let Some(last) = reference.last_mut() {
                    last[usize::from(choice(input.int_in_range(0..=15_u8)))] ^= choice(input.int_in_range(1..=255));
                    let outcome = gcm.open_batch(&mut buffer, &messages, &reference);
                    assert_eq!(outcome, Err(Error::Tag { message: Some(specs.len() - 1) }));
                    assert_eq!(read(&buffer), expected, "a wrong tag leaves all as it is");
                }
                gcm.open_batch(&mut buffer, &messages, &tags).expect("what was sealed opens");
                expected.clone_from(&before);
            }
        }
    }
    assert_eq!(read(&buffer), expected, "{specs:?}");
}

impl Spec {
    /// Whether a counter block comes up in both, as far as lengths that are valid tell.
    fn shares_stream(&self, other: &Self, bits: u32) -> bool {
        let mask = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
        let (a, b) = (u128::from_be_bytes(self.iv), u128::from_be_bytes(other.iv));
        let blocks = |spec: &Self| spec.len.div_ceil(BLOCK) as u128;
        let ahead = |from: u128, to: u128| to.wrapping_sub(from) & mask;
        a & !mask == b & !mask
            && self.len > 0
            && other.len > 0
            && (ahead(a, b) < blocks(self) || ahead(b, a) < blocks(other))
    }
}

/// Whether no two messages repeat each other.
fn is_fresh(specs: &[Spec], repeats: impl Fn(&Spec, &Spec) -> bool) -> bool {
    specs.iter().enumerate().all(|(i, a)| specs[..i].iter().all(|b| !repeats(a, b)))
}

/// Puts the messages one after the other, with the keys that there are.
fn lay_out(specs: &mut [Spec], len: usize, keys: usize) {
    let mut at = 0_usize;
    for spec in specs {
        spec.offset = at;
        spec.len = spec.len.min(len.saturating_sub(at));
        spec.key %= keys;
        at = (at + spec.len).next_multiple_of(BLOCK);
    }
}

/// Whether all messages have a key, a place in the buffer at a multiple of a block, and that for themselves.
fn is_valid(specs: &[Spec], len: usize, keys: usize) -> bool {
    let end = |spec: &Spec| spec.offset.checked_add(spec.len).filter(|end| *end <= len);
    let apart = |a: &Spec, b: &Spec| match (end(a), end(b)) {
        (Some(end_a), Some(end_b)) => a.len == 0 || b.len == 0 || end_a <= b.offset || end_b <= a.offset,
        _ => false,
    };
    specs.iter().enumerate().all(|(i, spec)| {
        spec.key < keys
            && spec.offset.is_multiple_of(BLOCK)
            && end(spec).is_some()
            && specs[..i].iter().all(|other| apart(spec, other))
    })
}

/// What decides whether a batch is refused.
struct Traits {
    /// All messages have what the mode asks for.
    valid: bool,
    /// No keystream repeats.
    fresh: bool,
}

/// What is valid and fresh is done, and all else is refused.
fn check<T>(outcome: &Result<T, Error>, Traits { valid, fresh }: Traits, specs: &[Spec]) {
    match outcome {
        Ok(_) => assert!(valid && fresh, "done, though it is not valid or not fresh: {specs:?}"),
        Err(Error::RepeatedKeystream { .. }) => assert!(!fresh, "refused, though no keystream repeats: {specs:?}"),
        Err(error) => assert!(!valid, "{error}: {specs:?}"),
    }
}

fn each(specs: &[Spec], data: &mut [u8], mut work: impl FnMut(&Spec, &mut [u8])) {
    specs.iter().for_each(|spec| work(spec, &mut data[spec.offset..spec.offset + spec.len]));
}

fn read(buffer: &Buffer<u8>) -> Vec<u8> {
    buffer.to_vec().expect("the CPU can be read from")
}
