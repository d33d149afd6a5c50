#![doc = include_str!("../README.md")]

mod batch;
mod cluster;
mod error;
#[cfg(any(feature = "mpi", test))]
mod memory;
#[cfg(feature = "mpi")]
mod mpi;
mod msm;
#[cfg_attr(not(feature = "nccl"), path = "no_nccl.rs")]
mod nccl;
mod ntt;
mod ranks;
mod route;
mod rows;
mod sumcheck;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod threads;

pub use evariste_backend::author::Wiped;

pub use batch::Unfinished;
pub use cluster::Cluster;
pub use error::{Error, Result};
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
pub use msm::ClusterMsm;
pub use ntt::{ClusterNtt, Way};
pub use ranks::Ranks;
pub use route::Route;
pub use sumcheck::ClusterSumcheck;
