#![doc = include_str!("../README.md")]

#[cfg(feature = "aes")]
pub use evariste_aes as aes;
pub use evariste_backend as backend;
#[cfg(feature = "curve")]
pub use evariste_curve as curve;
#[cfg(feature = "field")]
pub use evariste_field as field;
#[cfg(feature = "fri")]
pub use evariste_fri as fri;
#[cfg(feature = "groth16")]
pub use evariste_groth16 as groth16;
#[cfg(feature = "hash")]
pub use evariste_hash as hash;
#[cfg(feature = "modsqrt")]
pub use evariste_modsqrt as modsqrt;
#[cfg(feature = "msm")]
pub use evariste_msm as msm;
#[cfg(feature = "ntt")]
pub use evariste_ntt as ntt;
#[cfg(feature = "primitives")]
pub use evariste_primitives as primitives;
#[cfg(feature = "sqrt")]
pub use evariste_sqrt as sqrt;
#[cfg(feature = "sumcheck")]
pub use evariste_sumcheck as sumcheck;

pub use evariste_backend::{
    Buffer, Device, DeviceId, DeviceInfo, Devices, Distribution, Error, Kind, Queue, Sharded, Stats,
};

/// Re-exports what most programs need: `use evariste::prelude::*`.
pub mod prelude {
    #[cfg(feature = "aes")]
    pub use evariste_aes::{Aes, Ctr, Gcm, Xts};
    pub use evariste_backend::{Buffer, Device, Devices, Distribution, Queue, Secrecy, Sharded};
    #[cfg(feature = "curve")]
    pub use evariste_curve::{AffinePoint, DeviceCurve, Points};
    #[cfg(feature = "field")]
    pub use evariste_field::{Canonical, DeviceField, Expression, Formula, Mont, Prefix, Vector};
    #[cfg(feature = "hash")]
    pub use evariste_hash::{ByteHash, HashFunction, Merkle, Poseidon2, Poseidon2Parameters, Rows};
    #[cfg(feature = "modsqrt")]
    pub use evariste_modsqrt::{Jacobi, ModSqrt};
    #[cfg(feature = "msm")]
    pub use evariste_msm::{Msm, MsmConfig};
    #[cfg(feature = "ntt")]
    pub use evariste_ntt::{Ntt, Order};
    #[cfg(feature = "sqrt")]
    pub use evariste_sqrt::{Decompress, HashToCurve, NthRoot, Sqrt};
    #[cfg(feature = "sumcheck")]
    pub use evariste_sumcheck::{Blake3Transcript, Statement, Sumcheck, Weight};
}
