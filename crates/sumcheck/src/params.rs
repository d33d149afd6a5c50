//! Parameters and grid sizes of the round kernels.

use evariste_backend::params;
use evariste_field::{DeviceField, source};

/// Threads of a workgroup.
const THREADS: u32 = 256;

/// Workgroup memory that every device has.
const TILE_BYTES: u32 = 16 << 10;

/// Chunks of a round at most, if the limit on loop iterations allows that. On a GPU of 132 multiprocessors, this number
/// of workgroups of 256 threads fills it twice. Each workgroup of the next round goes through the sums of all, so fewer
/// are better.
pub(crate) const MAX_CHUNKS: u32 = 512;

/// log₂ of the pairs from which on one workgroup does all rounds that are left in one launch.
pub(crate) const LOG_TAIL: u32 = 8;

params! {
    pub(crate) struct Params {
        pub(crate) pairs: u32,
        pub(crate) log_chunk: u32,
        pub(crate) chunks: u32,
        /// From one table to the next, where they share a buffer.
        pub(crate) source_stride: u32,
        pub(crate) target_stride: u32,
        /// The weight of pair x is `eq[low_at + low bits of x]`, times `eq[high_at + the others]`.
        pub(crate) low_at: u32,
        pub(crate) low_bits: u32,
        pub(crate) high_at: u32,
        /// Chunks have pairs of several factors of the second kind.
        pub(crate) both: u32,
        pub(crate) partials_at: u32,
        /// Where a challenge is drawn: what the round before left, and where its message goes.
        pub(crate) previous_chunks: u32,
        pub(crate) previous_at: u32,
        /// The claimed sum in two slots: a round reads the one that `parity` selects, and writes the other.
        pub(crate) claim_at: u32,
        pub(crate) parity: u32,
        /// What the first two values of a round count in its message.
        pub(crate) lines_at: u32,
        /// What the other values of any round count.
        pub(crate) matrix_at: u32,
        pub(crate) message_at: u32,
        /// In bit j whether the first point was 1 and not 0: of the round before, and of those of this launch.
        pub(crate) ones: u32,
        /// Rounds of this launch, if it does all that are left.
        pub(crate) rounds: u32,
    }
}

impl Params {
    /// Those of one round of such a launch, which the CPU does like any other.
    pub(crate) fn of_round(&self, round: u32, degree: usize) -> Self {
        let (pairs, after) = (self.pairs >> round, u32::from(round > 0));
        let places = [self.partials_at, self.previous_at];
        Self {
            pairs,
            log_chunk: pairs.max(1).ilog2(),
            chunks: 1,
            low_at: self.low_at + pairs,
            low_bits: pairs.max(1).ilog2(),
            high_at: 1,
            both: 0,
            partials_at: places[(round & 1) as usize],
            previous_at: places[(1 - (round & 1)) as usize],
            previous_chunks: if after == 1 { 1 } else { self.previous_chunks },
            parity: self.parity + round,
            lines_at: self.lines_at + round * 4 * degree as u32,
            message_at: self.message_at + round * degree as u32,
            ones: self.ones >> round,
            ..*self
        }
    }
}

/// Threads of a workgroup, with one element each in workgroup memory.
pub(crate) fn threads<E: DeviceField>() -> u32 {
    let mut threads = THREADS;
    while threads > 1 && source::tile_bytes::<E>(threads) > TILE_BYTES {
        threads /= 2;
    }
    threads
}
