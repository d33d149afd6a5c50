use std::time::Duration;

use evariste_backend::{DeviceId, Error as DeviceError};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The errors of problems over several processes. All ranks of a call get one; after [`Error::Timeout`] on one, others may
/// have ended the call before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The processes cannot be joined: the library does not start, or was started before.
    #[error("the processes cannot be joined: {reason}")]
    Start {
        /// What is wrong.
        reason: String,
    },
    /// Ranks were called with different problems. Nothing was computed.
    #[error("rank {rank} has another {what} than rank 0")]
    Disagree {
        /// What differs, such as "transform".
        what: &'static str,
        /// The first rank that differs from rank 0.
        rank: usize,
    },
    /// A rank failed in its own part.
    #[error("rank {rank} failed: {reason}")]
    Failed {
        /// The first rank that failed.
        rank: usize,
        /// Its error, cut to some hundred bytes.
        reason: String,
    },
    /// A rank did not come within the limit. It may have died. Every later call on the cluster fails so.
    #[error("{what}: not all ranks came within {limit:?}")]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// A call of the MPI library failed. Every later call on the cluster fails so.
    #[error("{call} failed: {reason}")]
    Mpi {
        /// The function.
        call: &'static str,
        /// What the library said.
        reason: String,
    },
    /// NCCL was asked for, and cannot carry data between the devices of the ranks.
    #[error("NCCL cannot be used: {reason}")]
    NoNccl {
        /// What is missing, and what to install or change.
        reason: String,
    },
    /// Data between devices did not pass: NCCL failed, or not all ranks came within the limit. Every later call on the
    /// cluster fails so. The device stays usable, unless `reason` says that it is lost.
    #[error("the exchange between devices failed on rank {rank}, {device}: {reason}")]
    Exchange {
        /// This rank.
        rank: usize,
        /// Its device.
        device: DeviceId,
        /// What happened.
        reason: String,
    },
    /// What another rank sent is none of this problem's data.
    #[error("rank {rank} sent bytes that are no {what}")]
    Undecodable {
        /// What was expected.
        what: &'static str,
        /// The rank.
        rank: usize,
    },
    /// A sum on this rank refuses its arguments, or its device fails.
    #[error(transparent)]
    Msm(#[from] evariste_msm::Error),
    /// A transform on this rank refuses its arguments, or its device fails.
    #[error(transparent)]
    Ntt(#[from] evariste_ntt::Error),
    /// A sumcheck on this rank refuses its arguments, or its device fails.
    #[error(transparent)]
    Sumcheck(#[from] evariste_sumcheck::Error),
    /// The device of this rank refuses an argument, or fails.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
