#![doc = include_str!("../README.md")]
//!
//! Every call is queued and returns at once. It works on the queue of its plan, and takes buffers and views of at most
//! [`MAX_LEN`] elements. The scratch comes from the device's pool and has the secrecy of the input.
//!
//! # Choices
//! If a device promises [`Features::forward_progress`], [`RadixSort`] uses decoupled look-back. On other devices
//! workgroups never wait for each other: a first kernel reduces totals, a second one scans them, and a last one adds
//! them. No kernel counts in device memory with atomics. Workgroups count in their own memory and write rows, and
//! another kernel adds the rows. [`GatherScatter`] takes the maximum of some numbers in device memory, which does not
//! depend on their order.
//!
//! [`Features::forward_progress`]: evariste_backend::Features::forward_progress

mod gather_scatter;
mod histogram;
pub mod reference;
mod scan;
mod scattered;
mod segmented;
mod sort;
#[cfg(test)]
mod tests;
mod words;

pub use gather_scatter::GatherScatter;
pub use histogram::{Histogram, MAX_BITS};
pub use scan::Scan;
pub use segmented::{Monoid, SegmentedSum};
pub use sort::{RadixSort, RadixSortConfig, SortMethod};
pub use words::{MAX_LEN, checked_len};
