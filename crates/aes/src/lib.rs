#![doc = include_str!("../README.md")]

mod aside;
mod batch;
mod block;
mod blocks;
mod bodies;
mod cbc;
mod config;
mod copies;
mod cpu;
mod crossover;
mod ctr_mode;
#[cfg(feature = "hazmat")]
mod ecb;
mod engine;
mod error;
mod gcm;
mod gf128;
mod ghash;
mod hash_keys;
mod host_cipher;
mod kernels;
mod key;
mod keystream;
mod params;
mod ring;
mod stream;
mod tables;
mod traits;
#[cfg(target_arch = "x86_64")]
mod vaes;
mod xts;

pub use block::Counter;
pub use cbc::Cbc;
pub use config::{Config, Method};
pub use crossover::Mode;
pub use ctr_mode::{Ctr, Message};
#[cfg(feature = "hazmat")]
pub use ecb::Ecb;
pub use engine::Aes;
pub use error::{Error, Result};
pub use gcm::{Gcm, GcmMessage, Tag};
pub use key::KeySize;
pub use traits::{
    Aes128Ctr, Aes128Ctr32, Aes128Gcm, Aes192Ctr, Aes192Ctr32, Aes192Gcm, Aes256Ctr, Aes256Ctr32, Aes256Gcm, Choice,
    ConstantTime, Fastest, TypedCtr, TypedGcm, constant_time,
};
pub use xts::Xts;

pub use aead;
pub use cipher;
