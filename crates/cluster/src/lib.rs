#![doc = include_str!("../README.md")]

mod cluster;
mod error;
#[cfg(feature = "mpi")]
mod mpi;
mod msm;
mod ntt;
mod ranks;
mod sumcheck;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod threads;

pub use cluster::Cluster;
pub use error::{Error, Result};
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
pub use msm::ClusterMsm;
pub use ntt::{ClusterNtt, Way};
pub use ranks::Ranks;
pub use sumcheck::ClusterSumcheck;
