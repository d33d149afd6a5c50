//! RustCrypto's traits.
//!
//! The traits make ciphers from a key alone, so these types work on [`Device::best`], or on the CPU if that fails. The
//! CPU works on short data in any case ([`Aes::cpu_threshold`]). The type also chooses the method on a GPU: [`Fastest`]
//! or [`ConstantTime`].

use std::{fmt, marker::PhantomData, ops};

use aead::{AeadCore, AeadInOut, TagPosition, inout::InOutBuf};
use cipher::{
    IvSizeUser, KeyInit, KeyIvInit, KeySizeUser, OverflowError, SeekNum, StreamCipher, StreamCipherError,
    StreamCipherSeek, array::ArraySize, consts,
};
use evariste_backend::{Device, Queue};
use zeroize::Zeroizing;

use crate::{
    block::Counter,
    config::{AesConfig, Method, Mode},
    ctr_mode::Ctr,
    gcm::Gcm,
    plan::Aes,
};

/// A choice of method by type.
pub trait MethodChoice: fmt::Debug + Clone + Copy + Default + Send + Sync + 'static {
    /// The method, as [`AesConfig::method`] takes it.
    const METHOD: Option<Method>;
}

/// The choice of the fastest method that a device has room for, which looks up tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fastest;

impl MethodChoice for Fastest {
    const METHOD: Option<Method> = None;
}

/// The choice of [`Method::Bitsliced`]: no lookup and no branch depends on keys or data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConstantTime;

impl MethodChoice for ConstantTime {
    const METHOD: Option<Method> = Some(Method::Bitsliced);
}

/// The types for RustCrypto's traits with [`ConstantTime`], under the same names.
///
/// ```
/// use evariste_aes::{aead::KeyInit, constant_time::Aes256Gcm};
///
/// let gcm = <Aes256Gcm as KeyInit>::new(&[7; 32].into());
/// assert_eq!(gcm.aes().method(), evariste_aes::Method::Bitsliced);
/// ```
pub mod constant_time {
    use cipher::consts;

    use super::{ConstantTime, TypedCtr, TypedGcm};

    /// AES-128 in counter mode, 128-bit big-endian counter.
    pub type Aes128Ctr = TypedCtr<consts::U16, 128, ConstantTime>;
    /// AES-192 in counter mode, 128-bit big-endian counter.
    pub type Aes192Ctr = TypedCtr<consts::U24, 128, ConstantTime>;
    /// AES-256 in counter mode, 128-bit big-endian counter.
    pub type Aes256Ctr = TypedCtr<consts::U32, 128, ConstantTime>;
    /// AES-128 in counter mode, 32-bit big-endian counter.
    pub type Aes128Ctr32 = TypedCtr<consts::U16, 32, ConstantTime>;
    /// AES-192 in counter mode, 32-bit big-endian counter.
    pub type Aes192Ctr32 = TypedCtr<consts::U24, 32, ConstantTime>;
    /// AES-256 in counter mode, 32-bit big-endian counter.
    pub type Aes256Ctr32 = TypedCtr<consts::U32, 32, ConstantTime>;
    /// AES-128 in Galois/counter mode.
    pub type Aes128Gcm = TypedGcm<consts::U16, ConstantTime>;
    /// AES-192 in Galois/counter mode.
    pub type Aes192Gcm = TypedGcm<consts::U24, ConstantTime>;
    /// AES-256 in Galois/counter mode.
    pub type Aes256Gcm = TypedGcm<consts::U32, ConstantTime>;
}

/// A stream in counter mode with the length of its key, the width of its counter and the method in the type.
///
/// ```
/// # fn main() -> Result<(), evariste_aes::Error> {
/// use evariste_aes::{Aes128Ctr, cipher::StreamCipher};
/// use evariste_backend::Device;
///
/// let mut ctr = Aes128Ctr::new(&Device::best()?, &[1; 16], &[2; 16])?;
/// let mut bytes = *b"some data";
/// ctr.apply_host(&mut bytes)?; // ctr.apply_keystream(&mut bytes), but with errors
/// assert_ne!(&bytes, b"some data");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TypedCtr<KeyBytes, const BITS: u32, M = Fastest>(Ctr, PhantomData<(KeyBytes, M)>);

/// AES-128 in counter mode, 128-bit big-endian counter.
pub type Aes128Ctr = TypedCtr<consts::U16, 128>;
/// AES-192 in counter mode, 128-bit big-endian counter.
pub type Aes192Ctr = TypedCtr<consts::U24, 128>;
/// AES-256 in counter mode, 128-bit big-endian counter.
pub type Aes256Ctr = TypedCtr<consts::U32, 128>;
/// AES-128 in counter mode, 32-bit big-endian counter.
pub type Aes128Ctr32 = TypedCtr<consts::U16, 32>;
/// AES-192 in counter mode, 32-bit big-endian counter.
pub type Aes192Ctr32 = TypedCtr<consts::U24, 32>;
/// AES-256 in counter mode, 32-bit big-endian counter.
pub type Aes256Ctr32 = TypedCtr<consts::U32, 32>;

/// GCM with the length of its key and the method in the type, nonces of 12 bytes and tags of 16.
#[derive(Clone)]
pub struct TypedGcm<KeyBytes, M = Fastest>(Gcm, PhantomData<(KeyBytes, M)>);

/// AES-128 in Galois/counter mode.
pub type Aes128Gcm = TypedGcm<consts::U16>;
/// AES-192 in Galois/counter mode.
pub type Aes192Gcm = TypedGcm<consts::U24>;
/// AES-256 in Galois/counter mode.
pub type Aes256Gcm = TypedGcm<consts::U32>;

/// Keys on the best device that works; the CPU always does.
fn keys_anywhere<M: MethodChoice>(key: &[u8]) -> Aes {
    let made = Device::best().map_err(crate::error::Error::from).and_then(|device| keys_on::<M>(&device, key));
    match made.or_else(|_| keys_on::<M>(&Device::cpu(), key)) {
        Ok(aes) => aes,
        Err(error) => unreachable!("the type fixes the length of the key, and the CPU needs nothing: {error}"),
    }
}

fn keys_on<M: MethodChoice>(queue: impl Into<Queue>, key: &[u8]) -> crate::error::Result<Aes> {
    Aes::with_config(queue, key, AesConfig::default().method(M::METHOD))
}

fn expect_key<KeyBytes: ArraySize>(key: &[u8]) -> crate::error::Result<()> {
    let expected = match KeyBytes::USIZE {
        16 => "16",
        24 => "24",
        _ => "32",
    };
    if key.len() == KeyBytes::USIZE {
        Ok(())
    } else {
        Err(crate::error::Error::KeyLength { expected, actual: key.len() })
    }
}

impl<KeyBytes: ArraySize, const BITS: u32, M: MethodChoice> TypedCtr<KeyBytes, BITS, M> {
    const COUNTER: Counter = if BITS == 32 { Counter::Bits32 } else { Counter::Bits128 };

    /// Makes a stream from the counter block `iv` on, on a queue (`&device` is its default one).
    ///
    /// # Errors
    /// - [`crate::Error::KeyLength`]: `key` has another length than that of the type.
    /// - [`crate::Error::IvLength`]: `iv` has other than 16 bytes.
    /// - [`crate::Error::Device`]: the device fails or has too little memory for the schedule.
    pub fn new(queue: impl Into<Queue>, key: &[u8], iv: &[u8]) -> crate::error::Result<Self> {
        expect_key::<KeyBytes>(key)?;
        Ok(Self(keys_on::<M>(queue, key)?.ctr(iv)?.with_counter(Self::COUNTER), PhantomData))
    }
}

impl<KeyBytes, const BITS: u32, M> ops::Deref for TypedCtr<KeyBytes, BITS, M> {
    type Target = Ctr;

    fn deref(&self) -> &Ctr {
        &self.0
    }
}

impl<KeyBytes, const BITS: u32, M> ops::DerefMut for TypedCtr<KeyBytes, BITS, M> {
    fn deref_mut(&mut self) -> &mut Ctr {
        &mut self.0
    }
}

impl<KeyBytes, const BITS: u32, M> fmt::Debug for TypedCtr<KeyBytes, BITS, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<KeyBytes: ArraySize, const BITS: u32, M> KeySizeUser for TypedCtr<KeyBytes, BITS, M> {
    type KeySize = KeyBytes;
}

impl<KeyBytes, const BITS: u32, M> IvSizeUser for TypedCtr<KeyBytes, BITS, M> {
    type IvSize = consts::U16;
}

impl<KeyBytes: ArraySize, const BITS: u32, M: MethodChoice> KeyIvInit for TypedCtr<KeyBytes, BITS, M> {
    fn new(key: &cipher::Key<Self>, iv: &cipher::Iv<Self>) -> Self {
        match keys_anywhere::<M>(key).ctr(iv) {
            Ok(ctr) => Self(ctr.with_counter(Self::COUNTER), PhantomData),
            Err(error) => unreachable!("the type fixes the length of the counter block: {error}"),
        }
    }
}

impl StreamCipher for Ctr {
    fn check_remaining(&self, data_len: usize) -> Result<(), StreamCipherError> {
        if self.remaining() >= data_len as u128 { Ok(()) } else { Err(StreamCipherError) }
    }

    /// Writes zeros instead of data beyond the end of the keystream, which the caller excludes. The keystream never
    /// repeats.
    fn unchecked_apply_keystream_inout(&mut self, mut data: InOutBuf<'_, '_, u8>) {
        if self.apply_inout(data.reborrow()).is_err() {
            data.get_out().fill(0);
        }
    }

    /// Writes the keystream. Beyond its end it writes zeros, as [`StreamCipher::unchecked_apply_keystream_inout`] does.
    fn unchecked_write_keystream(&mut self, data: &mut [u8]) {
        data.fill(0);
        self.unchecked_apply_keystream(data);
    }

    /// Fails if the device fails; the data is then as it was before.
    fn try_apply_keystream(&mut self, data: &mut [u8]) -> Result<(), StreamCipherError> {
        self.apply_host(data).map_err(|_| StreamCipherError)
    }
}

impl Ctr {
    /// Where the device fails the CPU takes over, since most of these traits' methods cannot tell. The only error is
    /// the end of the keystream.
    fn apply_inout(&mut self, data: InOutBuf<'_, '_, u8>) -> crate::error::Result<()> {
        let len = data.len();
        self.expect(len as u64)?;
        let output = data.into_out_with_copied_in();
        if !self.aes().on_host(Mode::Ctr, len).unwrap_or(true) {
            match self.apply_host(output) {
                Ok(()) => return Ok(()),
                Err(error) => log::warn!("{error}; the CPU goes on"),
            }
        }
        self.apply_on_host(self.position(), output);
        self.advance(len as u64);
        Ok(())
    }
}

impl StreamCipherSeek for Ctr {
    fn try_current_pos<T: SeekNum>(&self) -> Result<T, OverflowError> {
        let (block, byte) = (self.position() / 16, (self.position() % 16) as u8);
        match byte {
            0 => T::from_block_byte(block, 16, 16),
            _ => T::from_block_byte(block.checked_add(1).ok_or(OverflowError)?, byte, 16),
        }
    }

    fn try_seek<T: SeekNum>(&mut self, position: T) -> Result<(), StreamCipherError> {
        let (block, byte): (u128, u8) = position.into_block_byte(16).map_err(|_| StreamCipherError)?;
        let position = block.checked_mul(16).and_then(|start| start.checked_add(byte.into()));
        self.seek(position.ok_or(StreamCipherError)?).map_err(|_| StreamCipherError)
    }
}

impl<KeyBytes, const BITS: u32, M> StreamCipher for TypedCtr<KeyBytes, BITS, M> {
    fn check_remaining(&self, data_len: usize) -> Result<(), StreamCipherError> {
        self.0.check_remaining(data_len)
    }

    fn unchecked_apply_keystream_inout(&mut self, data: InOutBuf<'_, '_, u8>) {
        self.0.unchecked_apply_keystream_inout(data);
    }

    fn unchecked_write_keystream(&mut self, data: &mut [u8]) {
        self.0.unchecked_write_keystream(data);
    }

    fn try_apply_keystream(&mut self, data: &mut [u8]) -> Result<(), StreamCipherError> {
        self.0.try_apply_keystream(data)
    }
}

impl<KeyBytes, const BITS: u32, M> StreamCipherSeek for TypedCtr<KeyBytes, BITS, M> {
    fn try_current_pos<T: SeekNum>(&self) -> Result<T, OverflowError> {
        self.0.try_current_pos()
    }

    fn try_seek<T: SeekNum>(&mut self, position: T) -> Result<(), StreamCipherError> {
        self.0.try_seek(position)
    }
}

impl<KeyBytes: ArraySize, M: MethodChoice> TypedGcm<KeyBytes, M> {
    /// Makes GCM on a queue (`&device` is its default one).
    ///
    /// # Errors
    /// - [`crate::Error::KeyLength`]: `key` has another length than that of the type.
    /// - [`crate::Error::Device`]: the device fails or has too little memory for the schedule and the powers of H.
    pub fn new(queue: impl Into<Queue>, key: &[u8]) -> crate::error::Result<Self> {
        expect_key::<KeyBytes>(key)?;
        Ok(Self(keys_on::<M>(queue, key)?.gcm()?, PhantomData))
    }
}

impl<KeyBytes, M> ops::Deref for TypedGcm<KeyBytes, M> {
    type Target = Gcm;

    fn deref(&self) -> &Gcm {
        &self.0
    }
}

impl<KeyBytes, M> fmt::Debug for TypedGcm<KeyBytes, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<KeyBytes: ArraySize, M> KeySizeUser for TypedGcm<KeyBytes, M> {
    type KeySize = KeyBytes;
}

impl<KeyBytes: ArraySize, M: MethodChoice> KeyInit for TypedGcm<KeyBytes, M> {
    fn new(key: &cipher::Key<Self>) -> Self {
        match keys_anywhere::<M>(key).gcm().or_else(|_| keys_on::<M>(&Device::cpu(), key)?.gcm()) {
            Ok(gcm) => Self(gcm, PhantomData),
            Err(error) => unreachable!("the type fixes the length of the key, and the CPU needs nothing: {error}"),
        }
    }
}

impl<KeyBytes, M> AeadCore for TypedGcm<KeyBytes, M> {
    type NonceSize = consts::U12;
    type TagSize = consts::U16;
    const TAG_POSITION: TagPosition = TagPosition::Postfix;
}

impl<KeyBytes, M> AeadInOut for TypedGcm<KeyBytes, M> {
    fn encrypt_inout_detached(
        &self,
        nonce: &aead::Nonce<Self>,
        aad: &[u8],
        data: InOutBuf<'_, '_, u8>,
    ) -> aead::Result<aead::Tag<Self>> {
        let output = data.into_out_with_copied_in();
        match self.0.seal_host(nonce, aad, output) {
            Ok(tag) => aead::Tag::<Self>::try_from(tag.as_ref()).map_err(|_| aead::Error),
            Err(_) => {
                output.fill(0);
                Err(aead::Error)
            }
        }
    }

    fn decrypt_inout_detached(
        &self,
        nonce: &aead::Nonce<Self>,
        aad: &[u8],
        mut data: InOutBuf<'_, '_, u8>,
        tag: &aead::Tag<Self>,
    ) -> aead::Result<()> {
        let mut bytes = Zeroizing::new(data.get_in().to_vec());
        self.0.open_host(nonce, aad, &mut bytes, tag).map_err(|_| aead::Error)?;
        data.get_out().copy_from_slice(&bytes);
        Ok(())
    }
}
