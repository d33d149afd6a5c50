use std::{
    fmt, mem,
    sync::{Arc, OnceLock},
};

use evariste_backend::{Buffer, Queue, Secrecy, View, ViewMut, parallel};
use rayon::prelude::*;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use crate::{
    batch::{Batch, Messages, Prepared, Span},
    block::{BLOCK, Counter, add_counter},
    block_modes::Work,
    config::{AesConfig, Mode},
    cpu,
    error::{Error, Result},
    gf128,
    ghash::Sum,
    hash_keys::HashKeys,
    keystream::CounterRange,
    params::POWERS,
    pieces,
    plan::Aes,
};

/// Bytes of a message: 2^32 − 2 blocks (NIST SP 800-38D, 5.2.1.1).
pub(crate) const MAX_MESSAGE: u64 = (1 << 36) - 32;

/// Keys whose powers of H 32-bit numbers tell apart.
const MAX_KEYS: usize = u32::MAX as usize / POWERS;

/// Bytes of a nonce or of associated data: their lengths in bits are 64-bit numbers.
const MAX_BYTES: u64 = (1 << 61) - 1;

/// Bytes of a nonce that is part of the counter, and not hashed.
const NONCE: usize = 12;

/// Messages of a batch whose counters or tags one thread computes at a time, at some 50 ns each.
const GRAIN: usize = 256;

/// Galois/counter mode (NIST SP 800-38D): authenticated encryption with associated data.
///
/// Never use a nonce twice with one key. Nonces have any length but 0; 12 bytes are best. Calls compare tags in
/// constant time, and data whose tag is wrong stays encrypted.
#[derive(Clone)]
pub struct Gcm {
    aes: Aes,
    hash: Arc<HashKeys>,
    tag_len: usize,
}

/// An authentication tag, of [`Gcm::tag_bytes`] bytes.
#[derive(Clone, Copy)]
pub struct Tag {
    bytes: [u8; BLOCK],
    len: usize,
}

impl Tag {
    /// Zero if `other` is this tag: at once, where comparing slices takes a step a byte.
    fn difference(&self, other: &[u8]) -> u128 {
        if other.len() != self.len {
            return u128::MAX;
        }
        let padded = other.first_chunk().copied().unwrap_or_else(|| {
            let mut padded = [0; BLOCK];
            padded[..self.len].copy_from_slice(other);
            padded
        });
        let [own, other] = [self.bytes, padded].map(u128::from_le_bytes);
        (own ^ other) << (8 * (BLOCK - self.len))
    }
}

impl Zeroize for Tag {
    fn zeroize(&mut self) {
        self.bytes.zeroize();
    }
}

impl AsRef<[u8]> for Tag {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl PartialEq for Tag {
    /// Compares in constant time.
    fn eq(&self, other: &Self) -> bool {
        self.as_ref().ct_eq(other.as_ref()).into()
    }
}

impl Eq for Tag {}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tag(")?;
        self.as_ref().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// One message of a batch, in the data that all messages share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcmMessage<'a> {
    /// The byte of the data where the message starts: a multiple of 16.
    pub offset: usize,
    /// Its length in bytes, without the tag.
    pub len: usize,
    /// The index of its key.
    pub key: usize,
    /// Its nonce, of any length but 0.
    pub nonce: &'a [u8],
    /// The associated data. The tag authenticates it, and nothing encrypts it.
    pub aad: &'a [u8],
}

impl Aes {
    /// Makes GCM with these keys, with tags of 16 bytes.
    ///
    /// # Errors
    /// - [`Error::Count`]: there are more than 53,687,091 keys. Kernels index the powers of H by 32 bits.
    /// - [`Error::Device`]: the queue is of another device, or the device fails or has too little memory for these
    ///   powers.
    pub fn gcm(&self) -> Result<Gcm> {
        if self.keys() > MAX_KEYS {
            return Err(Error::Count { what: "keys of GCM, at most", expected: MAX_KEYS, actual: self.keys() });
        }
        let h = |key| gf128::from_bytes(self.cipher(key).encrypt([0; BLOCK]));
        let hash = HashKeys::new(self.own_queue()?, h, self.keys())?.into();
        Ok(Gcm { aes: self.clone(), hash, tag_len: BLOCK })
    }
}

impl Gcm {
    /// Makes GCM with a key of 16, 24 or 32 bytes and tags of 16 bytes, on a queue (`&device` is its default one).
    ///
    /// # Errors
    /// - [`Error::KeyLength`]: `key` has other than 16, 24 or 32 bytes.
    /// - [`Error::Device`]: the device fails or has too little memory for the schedule and the powers of H.
    pub fn new(queue: impl Into<Queue>, key: &[u8]) -> Result<Self> {
        Self::with_config(queue, key, AesConfig::default())
    }

    /// Makes GCM with a configuration.
    ///
    /// # Errors
    /// - [`Error::KeyLength`]: `key` has other than 16, 24 or 32 bytes.
    /// - [`Error::Method`]: the device has too little workgroup memory for the method.
    /// - [`Error::Device`]: the device fails or has too little memory for the schedule and the powers of H.
    pub fn with_config(queue: impl Into<Queue>, key: &[u8], config: AesConfig) -> Result<Self> {
        Aes::with_config(queue, key, config)?.gcm()
    }

    /// Sets the length of tags: by default 16 bytes, and at least 12. NIST also allows 4 and 8, with precautions.
    ///
    /// # Errors
    /// [`Error::TagLength`] for another length than 4, 8, and 12 to 16.
    pub fn with_tag_bytes(mut self, bytes: usize) -> Result<Self> {
        if !matches!(bytes, 4 | 8 | 12..=BLOCK) {
            return Err(Error::TagLength { expected: BLOCK, actual: bytes });
        }
        self.tag_len = bytes;
        Ok(self)
    }

    /// Returns the same mode for work on `queue`, as [`Aes::on`] says.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { aes: self.aes.on(queue), ..self.clone() }
    }

    /// Returns the keys.
    pub fn aes(&self) -> &Aes {
        &self.aes
    }

    /// Returns the bytes of a tag.
    pub fn tag_bytes(&self) -> usize {
        self.tag_len
    }

    /// Encrypts a host slice with key 0 and returns its tag, which authenticates `aad` too. The CPU works on slices
    /// shorter than [`Aes::cpu_threshold`]. Longer ones pass through the device in pieces, on several queues.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::IvLength`]: the nonce is empty.
    /// - [`Error::TooLong`]: data has more than 2^36 − 32 bytes, or the nonce or associated data more than 2^61 − 1.
    ///
    /// [`Error::Device`] if the device fails or has too little memory. Some pieces of `data` may be encrypted then.
    pub fn seal_host(&self, nonce: &[u8], aad: &[u8], data: &mut [u8]) -> Result<Tag> {
        let start = self.start(0, nonce, aad, data.len())?;
        if self.aes.on_host(Mode::Gcm, data.len())? {
            let sum = self.hash.key(0).seal(&self.begin_hash(aad), self.aes.cipher(0), start.counter(), data);
            return Ok(self.tag(&start, aad.len(), data.len(), &sum));
        }
        let mut sum = self.begin_hash(aad);
        self.in_pieces(&start, data, |piece| sum = self.extend_hash(&sum, piece))?;
        Ok(self.tag(&start, aad.len(), data.len(), &sum))
    }

    /// Decrypts a host slice with key 0 if the tag is right; otherwise leaves it as it is.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::Tag`]: the tag is not that of the data.
    /// - [`Error::TagLength`]: the tag has other than [`Gcm::tag_bytes`] bytes.
    /// - [`Error::IvLength`]: the nonce is empty.
    /// - [`Error::TooLong`]: data has more than 2^36 − 32 bytes, or the nonce or associated data more than 2^61 − 1.
    ///
    /// [`Error::Device`] if the device fails or has too little memory. If the tag has passed its check by then, some
    /// pieces of `data` may be decrypted.
    pub fn open_host(&self, nonce: &[u8], aad: &[u8], data: &mut [u8], tag: &[u8]) -> Result<()> {
        let start = self.start(0, nonce, aad, data.len())?;
        self.expect_tag_len(tag)?;
        let sum = self.extend_hash(&self.begin_hash(aad), data);
        let expected = Zeroizing::new(self.tag(&start, aad.len(), data.len(), &sum));
        expect_tag(&expected, tag, None)?;
        if self.aes.on_host(Mode::Gcm, data.len())? {
            cpu::ctr(self.aes.cipher(0), start.counter(), Counter::Bits32, 0, data);
            return Ok(());
        }
        self.in_pieces(&start, data, |_| ())
    }

    /// XORs the stream onto a host slice by the device; `done` sees the results in order.
    fn in_pieces(&self, start: &Start, data: &mut [u8], done: impl FnMut(&[u8]) + Send) -> Result<()> {
        let work = |queue: &Queue, piece: &mut Buffer<u8>, at: usize, len| {
            let counter = add_counter(start.counter(), (at / BLOCK) as u128, Counter::Bits32);
            self.aes.on(queue).ctr_aligned(piece.view_mut(..len)?, 0, counter, Counter::Bits32)
        };
        pieces::for_len(&self.aes, data.len(), BLOCK)?.run(data, work, done)
    }

    /// Encrypts device memory with key 0 and returns its tag, which authenticates `aad` too. Waits for the device.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::IvLength`]: the nonce is empty.
    /// - [`Error::TooLong`]: data has more than 2^36 − 32 bytes, or the nonce or associated data more than 2^61 − 1.
    /// - [`Error::Device`]: data or the queue are of another device.
    ///
    /// [`Error::Device`] if the device fails or has too little memory.
    pub fn seal<'d>(&self, nonce: &[u8], aad: &[u8], data: impl Into<ViewMut<'d, u8>>) -> Result<Tag> {
        let data = data.into();
        let len = data.len();
        self.aes.own_queue()?;
        self.aes.expect_here(data.device())?;
        let start = self.start(0, nonce, aad, len)?;
        let hash = self.aes.aligned(data, 0, |mut data| {
            self.aes.ctr_aligned(data.reborrow(), 0, start.counter(), Counter::Bits32)?;
            self.aes.ghash(data.as_view(), &self.hash, 0)
        })?;
        Ok(self.tag_of_sum(&start, aad, len, &hash))
    }

    /// Decrypts device memory with key 0 if the tag is right; otherwise leaves it as it is. Waits for the hash.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::Tag`]: the tag is not that of the data.
    /// - [`Error::TagLength`]: the tag has other than [`Gcm::tag_bytes`] bytes.
    /// - [`Error::IvLength`]: the nonce is empty.
    /// - [`Error::TooLong`]: data has more than 2^36 − 32 bytes, or the nonce or associated data more than 2^61 − 1.
    /// - [`Error::Device`]: data or the queue are of another device.
    ///
    /// [`Error::Device`] if the device fails or has too little memory.
    pub fn open<'d>(&self, nonce: &[u8], aad: &[u8], data: impl Into<ViewMut<'d, u8>>, tag: &[u8]) -> Result<()> {
        let data = data.into();
        let len = data.len();
        self.aes.own_queue()?;
        self.aes.expect_here(data.device())?;
        let start = self.start(0, nonce, aad, len)?;
        self.expect_tag_len(tag)?;
        let hash = self.aes.aligned_read(data.as_view(), |data| self.aes.ghash(data, &self.hash, 0))?;
        expect_tag(&Zeroizing::new(self.tag_of_sum(&start, aad, len, &hash)), tag, None)?;
        self.aes.aligned(data, 0, |data| self.aes.ctr_aligned(data, 0, start.counter(), Counter::Bits32))
    }

    /// Encrypts each message with its key and nonce, and returns the tags in the order of the messages. Waits for the
    /// device.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::Alignment`]: a message does not start at a multiple of 16.
    /// - [`Error::NoSuchKey`]: a message names a key that the plan lacks.
    /// - [`Error::Overlap`]: two messages share bytes.
    /// - [`Error::IvLength`]: a nonce is empty.
    /// - [`Error::TooLong`]: a message has more than 2^36 − 32 bytes, or a nonce or associated data more than 2^61 − 1.
    /// - [`Error::RepeatedKeystream`]: two messages with equal keys have the same nonce. Or they have nonces of another
    ///   length than 12 bytes whose counters overlap.
    /// - [`Error::Device`]: a message leaves `data`, or data or the queue are of another device.
    ///
    /// [`Error::Device`] if the device fails or has too little memory.
    pub fn seal_batch<'d>(&self, data: impl Into<ViewMut<'d, u8>>, messages: &[GcmMessage<'_>]) -> Result<Vec<Tag>> {
        let data = data.into();
        in_pool(messages.len(), || {
            let messages = self.messages(messages);
            let batch = messages.batch(data.as_view())?;
            let stream = |message| {
                let span = batch.span(message);
                // The block that masks the tag, then those of the data.
                let blocks = 1 + span.len.div_ceil(BLOCK) as u64;
                CounterRange { key: span.key, start: messages.number(message), blocks }
            };
            let streams = (0..batch.count()).into_par_iter().map(stream);
            let expect = || self.aes.expect_apart(streams, Counter::Bits32, batch.secrecy());
            let prepare = || self.aes.prepare(Work::Ctr(Counter::Bits32), &batch);
            let (apart, parts) = match batch.count() {
                ..=GRAIN => (expect(), prepare()),
                _ => rayon::join(expect, prepare),
            };
            apart?;
            let parts = parts?;
            self.aes.aligned(data, 0, |mut data| {
                self.aes.run(Work::Ctr(Counter::Bits32), data.reborrow(), &parts)?;
                self.tags(data.as_view(), &messages, &batch, &parts)
            })
        })
    }

    /// Decrypts the messages if all tags are right; otherwise leaves all of them as they are. Waits for the hashes.
    ///
    /// # Errors
    /// Nothing is written with these:
    /// - [`Error::Alignment`]: a message does not start at a multiple of 16.
    /// - [`Error::NoSuchKey`]: a message names a key that the plan lacks.
    /// - [`Error::Overlap`]: two messages share bytes.
    /// - [`Error::Count`]: there is not one tag for each message.
    /// - [`Error::TagLength`]: a tag has another length than [`Gcm::tag_bytes`].
    /// - [`Error::Tag`]: a tag is wrong. The error has the first such message.
    /// - [`Error::IvLength`]: a nonce is empty.
    /// - [`Error::TooLong`]: a message has more than 2^36 − 32 bytes, or a nonce or associated data more than 2^61 − 1.
    /// - [`Error::Device`]: a message leaves `data`, or data or the queue are of another device.
    ///
    /// [`Error::Device`] if the device fails or has too little memory.
    pub fn open_batch<'d>(
        &self,
        data: impl Into<ViewMut<'d, u8>>,
        messages: &[GcmMessage<'_>],
        tags: &[impl AsRef<[u8]>],
    ) -> Result<()> {
        let data = data.into();
        if tags.len() != messages.len() {
            return Err(Error::Count { what: "tags", expected: messages.len(), actual: tags.len() });
        }
        tags.iter().try_for_each(|tag| self.expect_tag_len(tag.as_ref()))?;
        let (parts, expected) = in_pool(messages.len(), || -> Result<_> {
            let messages = self.messages(messages);
            let batch = messages.batch(data.as_view())?;
            let parts = self.aes.prepare(Work::Ctr(Counter::Bits32), &batch)?;
            let tags = |data: View<'_, u8>| self.tags(data, &messages, &batch, &parts);
            let expected = Zeroizing::new(self.aes.aligned_read(data.as_view(), tags)?);
            Ok((parts, expected))
        })?;
        let different =
            expected.iter().zip(tags).fold(0, |all, (expected, tag)| all | expected.difference(tag.as_ref()));
        if !bool::from(different.ct_eq(&0)) {
            for (message, (expected, tag)) in expected.iter().zip(tags).enumerate() {
                expect_tag(expected, tag.as_ref(), Some(message))?;
            }
            // A caller whose `AsRef` gives other bytes each time gets no further.
            return Err(Error::Tag { message: None });
        }
        self.aes.aligned(data, 0, |data| self.aes.run(Work::Ctr(Counter::Bits32), data, &parts))
    }

    fn messages<'a>(&'a self, messages: &'a [GcmMessage<'a>]) -> Sealed<'a> {
        Sealed { gcm: self, messages, starts: OnceLock::new() }
    }

    fn tags(
        &self,
        data: View<'_, u8>,
        messages: &Sealed<'_>,
        batch: &Batch<'_>,
        parts: &[Prepared],
    ) -> Result<Vec<Tag>> {
        if batch.count() == 0 {
            return Ok(Vec::new());
        }
        // What the tags are but for the hashes of the ciphertexts, which add those times H^2: the hash is linear.
        let without = |message| {
            let (start, GcmMessage { len, aad, .. }) = (messages.start(message), messages.messages[message]);
            let sum = self.hash_of_sum(&start, aad, len, &Sum::default());
            self.tag(&start, aad.len(), len, &sum)
        };
        let meanwhile = || {
            let mut tags = Zeroizing::new(Vec::new());
            (0..batch.count()).into_par_iter().with_min_len(GRAIN).map(without).collect_into_vec(&mut tags);
            tags
        };
        let done = |mut tags: Zeroizing<Vec<Tag>>, hashes: &[[u8; BLOCK]]| {
            let add = |(message, (tag, hash)): (usize, (&mut Tag, &[u8; BLOCK]))| {
                let hash = self.hash.key(batch.span(message).key).times_square(hash);
                tag.bytes = (u128::from_ne_bytes(tag.bytes) ^ u128::from_ne_bytes(*hash)).to_ne_bytes();
            };
            tags.par_iter_mut().zip(hashes).enumerate().with_min_len(GRAIN).for_each(add);
            mem::take(&mut *tags)
        };
        self.aes.ghash_messages(data, batch, parts, &self.hash, meanwhile, done)
    }

    /// The first counter block of a message (SP 800-38D, 7.1, J_0).
    pub(crate) fn start(&self, key: usize, nonce: &[u8], aad: &[u8], len: usize) -> Result<Start> {
        expect_message(nonce, aad, len)?;
        Ok(self.start_of(key, nonce))
    }

    /// [`Gcm::start`] of what [`expect_message`] lets through.
    fn start_of(&self, key: usize, nonce: &[u8]) -> Start {
        if let Some(start) = plain_start(nonce) {
            return Start { key, block: Zeroizing::new(start.to_be()) };
        }
        let hash = self.hash.key(key);
        let sum = hash.extend(&hash.extend_parallel(&[0; BLOCK], nonce), &lengths(0, nonce.len()));
        Start { key, block: Zeroizing::new(u128::from_ne_bytes(*sum)) }
    }

    /// The hash of key 0 over associated data, which that over the data goes on from.
    pub(crate) fn begin_hash(&self, aad: &[u8]) -> Sum {
        self.extend_hash(&[0; BLOCK], aad)
    }

    /// Goes on with a hash of key 0. All data but the last must be whole blocks.
    pub(crate) fn extend_hash(&self, sum: &[u8; BLOCK], data: &[u8]) -> Sum {
        self.hash.key(0).extend_parallel(sum, data)
    }

    /// The tag, from the hash over associated data and data.
    pub(crate) fn tag(&self, start: &Start, aad_len: usize, len: usize, sum: &[u8; BLOCK]) -> Tag {
        let sum = self.hash.key(start.key).extend(sum, &lengths(aad_len, len));
        let mask = Zeroizing::new(self.aes.cipher(start.key).encrypt(start.block()));
        Tag { bytes: (u128::from_ne_bytes(*sum) ^ u128::from_ne_bytes(*mask)).to_ne_bytes(), len: self.tag_len }
    }

    /// The tag, from Σ C_i H^(m−1−i) over the m blocks of ciphertext.
    fn tag_of_sum(&self, start: &Start, aad: &[u8], len: usize, sum: &[u8; BLOCK]) -> Tag {
        self.tag(start, aad.len(), len, &self.hash_of_sum(start, aad, len, sum))
    }

    /// The hash over associated data and ciphertext, from Σ C_i H^(m−1−i) over the m blocks of the latter.
    fn hash_of_sum(&self, start: &Start, aad: &[u8], len: usize, sum: &[u8; BLOCK]) -> Sum {
        let key = self.hash.key(start.key);
        // A block's own hash is its product with H.
        let mut sum = key.extend(&[0; BLOCK], sum);
        if !aad.is_empty() {
            sum = key.append(&key.extend_parallel(&[0; BLOCK], aad), &sum, len);
        }
        sum
    }

    pub(crate) fn expect_tag_len(&self, tag: &[u8]) -> Result<()> {
        match tag.len() == self.tag_len {
            true => Ok(()),
            false => Err(Error::TagLength { expected: self.tag_len, actual: tag.len() }),
        }
    }
}

impl fmt::Debug for Gcm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gcm").field("aes", &self.aes).field("tag_len", &self.tag_len).finish_non_exhaustive()
    }
}

/// The first counter block, as a big-endian number, where it is the nonce and a 1.
#[inline]
fn plain_start(nonce: &[u8]) -> Option<u128> {
    let (high, low) = <&[u8; NONCE]>::try_from(nonce).ok()?.split_first_chunk()?;
    let low = u32::from_be_bytes(*low.first_chunk()?);
    Some(u128::from(u64::from_be_bytes(*high)) << 64 | u128::from(low) << 32 | 1)
}

/// Where a message's counter starts.
#[derive(Clone)]
pub(crate) struct Start {
    key: usize,
    /// In the order of memory. Where the nonce is hashed, a function of the key.
    block: Zeroizing<u128>,
}

impl Start {
    /// The counter block of the first block of data.
    pub(crate) fn counter(&self) -> [u8; BLOCK] {
        add_counter(self.block(), 1, Counter::Bits32)
    }

    fn block(&self) -> [u8; BLOCK] {
        self.block.to_ne_bytes()
    }
}

/// The messages of a batch.
struct Sealed<'a> {
    gcm: &'a Gcm,
    messages: &'a [GcmMessage<'a>],
    /// Where they start, if nonces had to be hashed for it.
    starts: OnceLock<Vec<Start>>,
}

impl Sealed<'_> {
    fn batch(&self, data: View<'_, u8>) -> Result<Batch<'_>> {
        let batch = Batch::new(&self.gcm.aes, data, self)?;
        if batch.secrecy() == Secrecy::Secret {
            let start = |message: &GcmMessage<'_>| self.gcm.start_of(message.key, message.nonce);
            // Made before the cell is asked: a thread of the pool may do other work meanwhile.
            let starts = self.messages.par_iter().with_min_len(GRAIN).map(start).collect();
            self.starts.get_or_init(|| starts);
        }
        Ok(batch)
    }

    /// [`Sealed::start`] as a big-endian number: a nonce's, from where no secret is.
    fn number(&self, message: usize) -> u128 {
        match self.starts.get() {
            Some(starts) => u128::from_be(*starts[message].block),
            None => {
                plain_start(self.messages[message].nonce).unwrap_or_else(|| u128::from_be(*self.start(message).block))
            }
        }
    }

    /// Where a message that was found to be right starts.
    fn start(&self, message: usize) -> Start {
        match self.starts.get() {
            Some(starts) => starts[message].clone(),
            None => self.gcm.start_of(self.messages[message].key, self.messages[message].nonce),
        }
    }
}

impl Messages for Sealed<'_> {
    fn count(&self) -> usize {
        self.messages.len()
    }

    fn span(&self, message: usize) -> Span {
        let GcmMessage { offset, len, key, .. } = self.messages[message];
        Span { offset, len, key }
    }

    fn iv(&self, message: usize) -> [u8; BLOCK] {
        add_counter(self.number(message).to_be_bytes(), 1, Counter::Bits32)
    }

    /// Counters that are hashes of nonces tell of the key.
    fn secrecy(&self, message: usize) -> Secrecy {
        if self.messages[message].nonce.len() == NONCE { Secrecy::Public } else { Secrecy::Secret }
    }

    fn expect(&self, message: usize) -> Result<()> {
        let GcmMessage { len, key, nonce, aad, .. } = self.messages[message];
        self.gcm.aes.expect_key(message, key)?;
        expect_message(nonce, aad, len)
    }
}

/// Refuses what the standard has no counter or tag for.
fn expect_message(nonce: &[u8], aad: &[u8], len: usize) -> Result<()> {
    if nonce.is_empty() {
        return Err(Error::IvLength { what: "a nonce", expected: "1 or more", actual: 0 });
    }
    for (what, actual, limit) in [
        ("a nonce", nonce.len(), MAX_BYTES),
        ("associated data", aad.len(), MAX_BYTES),
        ("a message", len, MAX_MESSAGE),
    ] {
        if actual as u64 > limit {
            return Err(Error::TooLong { what, expected: limit, actual: actual as u64 });
        }
    }
    Ok(())
}

/// Does work over a number of messages on a thread of the pool, if they are several tasks. Entering the pool at each of
/// many steps takes longer than the steps.
fn in_pool<T: Send>(messages: usize, work: impl FnOnce() -> T + Send) -> T {
    match messages {
        ..=GRAIN => work(),
        _ => parallel::in_pool(work),
    }
}

/// The last block that is hashed: both lengths in bits.
fn lengths(aad: usize, data: usize) -> [u8; BLOCK] {
    (((aad as u128 * 8) << 64) | (data as u128 * 8)).to_be_bytes()
}

pub(crate) fn expect_tag(expected: &Tag, actual: &[u8], message: Option<usize>) -> Result<()> {
    match expected.as_ref().ct_eq(actual).into() {
        true => Ok(()),
        false => Err(Error::Tag { message }),
    }
}
