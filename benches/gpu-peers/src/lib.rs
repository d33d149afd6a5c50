//! Peers that run on NVIDIA GPUs, so that they can be measured beside Evariste in one run: sppark, through its crate,
//! and the kernels that Bellperson runs, whose text is ec-gpu-gen's. Elements are in Montgomery form, little-endian, as
//! devices have them, but for sppark's Goldilocks, which has none.
//!
//! Without the feature `nvcc` there is nothing here.

#![cfg(feature = "nvcc")]

pub mod ec_gpu;
pub mod sppark;
