//! The split of a transform into passes, for comparison with what plans choose.

// Without the feature, plans have the default alone.
#![cfg_attr(not(feature = "compare"), allow(dead_code, unreachable_pub))]

/// The split of a transform into passes. A pass is at most as large as a workgroup's memory allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Split {
    /// The fewest balanced passes that load and store long enough runs of neighbouring elements.
    #[default]
    Balanced,
    /// Halves, split again while they are too large: 1, 2, 4 or 8 passes. For odd log₂ n one half has a level more, a
    /// step of radix 2.
    Square,
    /// The largest passes, then one with the rest.
    Rectangular,
    /// Three passes, or more if these were too large.
    ThreeWay,
    /// Squares only: the method for odd log₂ n of PreNTT. A kernel of its own does the first round of Gentleman and
    /// Sande's butterflies and computes its twiddles. It leaves two independent transforms of n/2 points: the outputs
    /// with even index and those with odd index. Each launch of the passes does both, and the last one stores them
    /// interleaved. While a square of two passes is too small for what is left, further rounds follow. A round costs
    /// n/2 multiplications more for its twiddles, and reads and writes the data once.
    Halves,
}

impl Split {
    /// All variants, to iterate over.
    pub const ALL: [Self; 5] = [Self::Balanced, Self::Square, Self::Rectangular, Self::ThreeWay, Self::Halves];
}
