mod tuning;

use evariste_backend::Secrecy;

#[cfg_attr(not(feature = "compare"), allow(unreachable_pub))]
pub use tuning::{Accumulation, Addition, Aggregation, Tuning};

/// The fewest bits of a window.
pub(crate) const MIN_WINDOW: u32 = 2;

/// The most bits of a window.
pub(crate) const MAX_WINDOW: u32 = 26;

/// The group that the bases belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Bases {
    /// The subgroup of order r, where r is the modulus of the scalar field. Scalars count modulo r, so that
    /// k·P = (r − k)·(−P) spares a bit.
    #[default]
    Subgroup,
    /// The full group of the curve: any point on it. Scalars are integers that fill the words of a scalar.
    FullGroup,
}

/// The treatment of bases at infinity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Infinity {
    /// They count as zero.
    #[default]
    Allowed,
    /// A plan with such a base is an error.
    Refused,
}

/// The multiples of the bases that a plan computes and stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precompute {
    /// None: the plan stores the bases.
    #[default]
    None,
    /// The multiples 2^(kc)·P of each base, up to the number that fits the budget. Digits of several windows then share
    /// their buckets.
    Tables {
        /// The bytes for the bases and their multiples.
        budget: u64,
    },
    /// The doublings 2^k·P of each base for k ≤ `depth`. A signed digit is ±m·2^e with odd m. It adds ±2^(e mod
    /// (`depth` + 1))·P to the bucket of m. Only odd m have buckets, half of all. Each ⌊e / (`depth` + 1)⌋ > 0 has
    /// further buckets, fewer by 2^-(`depth` + 1) than those before. Compare it with the other methods. The source is
    /// Chen et al., "Load-Balanced Parallel Implementation on GPUs for Multi-Scalar Multiplication Algorithm", TCHES
    /// 2024/2.
    #[cfg(any(test, feature = "compare"))]
    OddSignedDigits {
        /// Doublings of each base, from 1 to 26. Beyond the bits of a digit less 2, further doublings spare no bucket.
        depth: u32,
    },
    /// The doublings 2^k·P of each base for k ≤ `depth`, as with [`Precompute::OddSignedDigits`], but with buckets for
    /// odd m only. For a digit ±m·2^e with e > `depth`, the accumulation doubles 2^`depth`·P e − `depth` times. Smaller
    /// tables cost more doublings: (6M + 3S)·2^-`depth` for each digit, and more on GPUs, where threads wait for the
    /// one that doubles most. There are 2^26 bases at most, and no batch-affine additions (`Tuning::affine_levels`).
    /// (Algorithm 4 of the same source, lines 13 to 16, where `depth` is τ.)
    #[cfg(any(test, feature = "compare"))]
    Doublings {
        /// Doublings of each base, from 0 to 25. From the bits of a digit less 1 on, the accumulation doubles nothing.
        depth: u32,
    },
}

/// The choices that a plan is made with. The default suits points of order r and any scalars.
///
/// ```
/// use evariste_msm::{MsmConfig, Precompute};
///
/// let config = MsmConfig::default().window(12).precompute(Precompute::Tables { budget: 1 << 30 });
/// assert_eq!(config.window, Some(12));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MsmConfig {
    /// The bits of a window, 2 to 26. The plan's choice is the number with the least cost.
    pub window: Option<u32>,
    /// The bits of scalars: they are below 2^`bits`, which takes fewer windows. The result is unspecified for larger
    /// scalars. The default is all scalars of the field. For public scalars from the host, each call finds their
    /// length. For points of order r it also counts short opposites, so that few bits, or 0 and ±1, take few windows.
    pub bits: Option<u32>,
    /// The multiples of the bases that the plan stores.
    pub precompute: Precompute,
    /// The group that the bases belong to.
    pub bases: Bases,
    /// Whether a plan checks that its bases are on the curve. A base at infinity passes. So does (0, 0) in a buffer, or
    /// (0, 1) if b = 0, since that is the device form of infinity.
    pub check: bool,
    /// The treatment of bases at infinity, including (0, 0) on the host, or (0, 1) if b = 0. Refuse them for points of
    /// foreign encodings, where they may be a mistake.
    pub infinity: Infinity,
    /// The bytes of device memory for one call, beside the bases. Larger calls are done in pieces. The plan's choice is
    /// nine tenths of the device's memory, less the bases.
    pub memory: Option<u64>,
    /// The secrecy of scalars from host slices. Scalars in buffers have the buffer's. Scalars in pinned memory are
    /// secret if either this or that memory is.
    pub secrecy: Secrecy,
    /// The division of the work among threads.
    #[cfg(feature = "compare")]
    pub tuning: Tuning,
    #[cfg(not(feature = "compare"))]
    pub(crate) tuning: Tuning,
}

impl MsmConfig {
    /// Sets [`MsmConfig::window`]; with `None` the plan chooses.
    #[must_use]
    pub fn window(mut self, bits: impl Into<Option<u32>>) -> Self {
        self.window = bits.into();
        self
    }

    /// Sets [`MsmConfig::bits`]; `None` stands for all scalars of the field.
    #[must_use]
    pub fn bits(mut self, bits: impl Into<Option<u32>>) -> Self {
        self.bits = bits.into();
        self
    }

    /// Sets [`MsmConfig::precompute`].
    #[must_use]
    pub fn precompute(mut self, precompute: Precompute) -> Self {
        self.precompute = precompute;
        self
    }

    /// Sets [`MsmConfig::bases`].
    #[must_use]
    pub fn bases(mut self, bases: Bases) -> Self {
        self.bases = bases;
        self
    }

    /// Sets [`MsmConfig::check`].
    #[must_use]
    pub fn check(mut self, check: bool) -> Self {
        self.check = check;
        self
    }

    /// Sets [`MsmConfig::infinity`].
    #[must_use]
    pub fn infinity(mut self, infinity: Infinity) -> Self {
        self.infinity = infinity;
        self
    }

    /// Sets [`MsmConfig::memory`]; with `None` the plan chooses.
    #[must_use]
    pub fn memory(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.memory = bytes.into();
        self
    }

    /// Sets [`MsmConfig::secrecy`].
    #[must_use]
    pub fn secrecy(mut self, secrecy: Secrecy) -> Self {
        self.secrecy = secrecy;
        self
    }

    /// Sets the division of the work among threads.
    #[cfg(any(test, feature = "compare"))]
    #[must_use]
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self
    }
}
