#![doc = include_str!("../README.md")]

mod alignment;
mod aside;
mod batch;
mod block;
mod block_modes;
mod cbc;
mod config;
mod cpu;
mod cpu_kernels;
mod cpu_threshold;
mod ctr_mode;
#[cfg(feature = "hazmat")]
mod ecb;
mod error;
mod files;
mod gcm;
mod gf128;
mod ghash;
mod hash_keys;
mod host_cipher;
mod kernels;
mod key;
mod keystream;
mod params;
mod pieces;
mod plan;
mod tables;
mod traits;
#[cfg(target_arch = "x86_64")]
mod vaes;
mod xts;

pub use batch::Message;
pub use block::Counter;
pub use cbc::Cbc;
pub use config::{AesConfig, Method, Mode};
pub use ctr_mode::Ctr;
#[cfg(feature = "hazmat")]
pub use ecb::Ecb;
pub use error::{Error, Result};
pub use gcm::{Gcm, GcmMessage, Tag};
pub use key::KeySize;
pub use plan::Aes;
pub use traits::{
    Aes128Ctr, Aes128Ctr32, Aes128Gcm, Aes192Ctr, Aes192Ctr32, Aes192Gcm, Aes256Ctr, Aes256Ctr32, Aes256Gcm,
    ConstantTime, Fastest, MethodChoice, TypedCtr, TypedGcm, constant_time,
};
pub use xts::Xts;

pub use aead;
pub use cipher;
