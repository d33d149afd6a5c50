#![doc = include_str!("../README.md")]

pub use evariste_aes as aes;
pub use evariste_backend as backend;
pub use evariste_field as field;
pub use evariste_ntt as ntt;

pub use evariste_backend::{Buffer, Device, DeviceId, DeviceInfo, Error, Kind, Stats};

/// What most programs need: `use evariste::prelude::*`.
pub mod prelude {
    pub use evariste_aes::{Aes, Ctr, Gcm, Xts};
    pub use evariste_backend::{Buffer, Device, Secrecy};
    pub use evariste_field::{Canonical, DeviceField, Expression, Mont, Prefix, Vector};
    pub use evariste_ntt::{Ntt, Order};
}
