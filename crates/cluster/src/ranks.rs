//! What processes talk by.

use std::time::Duration;

use evariste_backend::author::Wiped;

use crate::error::Result;

/// Processes that work together, each with a number, its rank. All call the same functions in the same order.
pub trait Ranks {
    /// Returns the number of this process, from 0 on.
    fn rank(&self) -> usize;

    /// Returns how many processes there are.
    fn size(&self) -> usize;

    /// Returns how long a call waits for other ranks at most.
    fn limit(&self) -> Duration;

    /// Returns the bytes of all ranks, by rank, one behind the other. All give equally many.
    ///
    /// # Errors
    /// [`Error::Timeout`](crate::Error::Timeout) if not all ranks come within the limit.
    fn all_gather(&self, own: &[u8]) -> Result<Wiped<u8>>;

    /// Sends an equal part of `own` to each rank, and returns the parts for this one, by rank.
    ///
    /// # Errors
    /// [`Error::Timeout`](crate::Error::Timeout) if not all ranks come within the limit.
    fn all_to_all(&self, own: &[u8]) -> Result<Wiped<u8>>;
}
