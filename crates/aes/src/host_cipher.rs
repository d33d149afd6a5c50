//! The cipher with a key, on the host.

use aes::{Aes128, Aes192, Aes256};
use cipher::{Array, BlockCipherEncrypt, KeyInit};

#[cfg(target_arch = "x86_64")]
use crate::vaes::Lanes;
use crate::{
    block::BLOCK,
    key::{Key, KeySize},
};

/// RustCrypto's cipher of one of the key sizes. Its schedule is zeroed when dropped.
#[derive(Clone)]
pub(crate) enum BlockCipher {
    Aes128(Aes128),
    Aes192(Aes192),
    Aes256(Aes256),
}

/// Evaluates an expression with the cipher of its size.
macro_rules! with_cipher {
    ($cipher:expr, $c:ident => $body:expr) => {
        match &$cipher.blocks {
            $crate::host_cipher::BlockCipher::Aes128($c) => $body,
            $crate::host_cipher::BlockCipher::Aes192($c) => $body,
            $crate::host_cipher::BlockCipher::Aes256($c) => $body,
        }
    };
}
pub(crate) use with_cipher;

/// A cipher of the host: RustCrypto's, and where the processor has its instructions, ours for counter mode.
#[derive(Clone)]
pub(crate) struct HostCipher {
    pub(crate) blocks: BlockCipher,
    #[cfg(target_arch = "x86_64")]
    pub(crate) lanes: Option<Lanes>,
}

impl HostCipher {
    pub(crate) fn new(key: &Key) -> Self {
        fn new<C: KeyInit>(bytes: &[u8]) -> C {
            match C::new_from_slice(bytes) {
                Ok(cipher) => cipher,
                Err(_) => unreachable!("the length of a key is checked when it is made"),
            }
        }
        let blocks = match key.size() {
            KeySize::Aes128 => BlockCipher::Aes128(new(key.bytes())),
            KeySize::Aes192 => BlockCipher::Aes192(new(key.bytes())),
            KeySize::Aes256 => BlockCipher::Aes256(new(key.bytes())),
        };
        Self {
            blocks,
            #[cfg(target_arch = "x86_64")]
            lanes: Lanes::new(key),
        }
    }

    pub(crate) fn encrypt(&self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = Array::from(block);
        with_cipher!(self, c => c.encrypt_block(&mut block));
        block.0
    }
}
