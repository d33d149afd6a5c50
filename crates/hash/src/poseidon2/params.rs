//! What kernels take, and what their text depends on.

use evariste_backend::{constants, params};

/// Threads of a workgroup: a state takes 40 to 66 registers of a thread.
pub(super) const THREADS: u32 = 128;

/// Threads of a workgroup that have one element each.
pub(super) const LANE_THREADS: u32 = 256;

params! {
    /// What `permute` takes.
    pub(super) struct PermuteParams {
        /// How many states.
        pub(super) len: u32,
        /// Full rounds at each end.
        pub(super) half: u32,
        /// Partial rounds.
        pub(super) partial: u32,
    }

    /// What `compress` takes.
    pub(super) struct CompressParams {
        /// How many groups of digests.
        pub(super) len: u32,
        pub(super) half: u32,
        pub(super) partial: u32,
        /// The distance of digests in the output, in digests.
        pub(super) stride: u32,
    }

    /// What `compress_layers` takes.
    pub(super) struct LayersParams {
        /// The nodes of the first layer, a power of two.
        pub(super) len: u32,
        pub(super) half: u32,
        pub(super) partial: u32,
        /// How many layers: at most those in which a workgroup has nodes.
        pub(super) layers: u32,
    }

    /// What `hash_rows` takes.
    pub(super) struct HashParams {
        /// How many rows.
        pub(super) len: u32,
        pub(super) half: u32,
        pub(super) partial: u32,
        /// The distance of digests in the output, in digests.
        pub(super) stride: u32,
        /// Elements of a row that are absorbed.
        pub(super) columns: u32,
        /// The distance of rows, in elements.
        pub(super) pitch: u32,
        /// Elements of a block that the sponges have.
        pub(super) position: u32,
        pub(super) flags: u32,
    }

    /// What `grind` takes.
    pub(super) struct GrindParams {
        /// How many integers.
        pub(super) len: u32,
        pub(super) half: u32,
        pub(super) partial: u32,
        /// The element of the state that is replaced.
        pub(super) position: u32,
        /// The first integer. The sum of its low word and `len` is no carry.
        pub(super) start: [u32; 2],
        /// The bits that must be 0.
        pub(super) mask: [u32; 2],
    }
}

constants! {
    /// Flags of `hash_rows`.
    pub(super) mod flags {
        /// The sponges are new.
        FIRST = 1,
        /// The digests are written.
        LAST = 2,
    }
}

/// What the text of kernels depends on, beside the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) width: usize,
    pub(super) alpha: u32,
    pub(super) rate: usize,
    pub(super) digest: usize,
    /// The diagonal of the partial rounds starts with −2, 1 and 2, as Plonky3's over fields of one limb, and the state has
    /// 24 elements at most.
    pub(super) small_start: bool,
    /// For each element of the diagonal k for 2^−k, −k for −2^−k, and 0 for any other or where CUDA multiplies all the same.
    pub(super) halvings: [i8; MAX_HALVED],
}

/// Elements of the longest states whose products are shifts: longer ones are not measured.
pub(super) const MAX_HALVED: usize = 24;

impl Shape {
    /// Threads that have one element of a state each, or none.
    pub(super) fn lanes(&self) -> u32 {
        self.width.next_power_of_two() as u32
    }

    /// The layers in which a workgroup of `compress_layers` has nodes.
    pub(super) fn layers(&self) -> u32 {
        (LANE_THREADS / self.lanes()).ilog2() + 1
    }
}
