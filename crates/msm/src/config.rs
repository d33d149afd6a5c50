use evariste_backend::Secrecy;

/// Says which points the bases may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bases {
    /// Points of order r, the modulus of the scalar field, or infinity. Scalars count modulo r, so k·P = (r − k)·(−P), which
    /// spares a bit.
    #[default]
    Subgroup,
    /// Any points of the curve. Scalars are integers of as many bits as the words of a scalar have.
    Any,
}

/// Says what becomes of bases at infinity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Infinity {
    /// They count as zero.
    #[default]
    Allowed,
    /// They are an error when the plan is made.
    Refused,
}

/// Says what is computed from the bases beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precompute {
    /// Nothing: the plan holds the bases.
    #[default]
    None,
    /// Multiples 2^(k c)·P of each base, as many as fit so many bytes with the bases. Digits of different weight then share
    /// their buckets.
    Tables {
        /// Bytes for the bases and their multiples.
        budget: u64,
    },
    /// The doublings 2^k·P of each base for k up to `depth`. A digit is then a sign, an odd part m and an exponent e,
    /// ±m·2^e, and adds ±2^(e mod (`depth` + 1))·P to a bucket of m. So there are buckets of odd numbers alone, half as many,
    /// and for each ⌊e / (`depth` + 1)⌋ above 0 a set of fewer, 2^-(`depth` + 1) of those before: to be compared with the other
    /// two. (Chen et al., "Load-Balanced Parallel Implementation on GPUs for Multi-Scalar Multiplication Algorithm", TCHES
    /// 2024/2.)
    OddDigits {
        /// Doublings of each base, from 1 to 26. From the bits of a digit less 1 on, no further bucket is spared.
        depth: u32,
    },
}

/// Says how points are added to buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accumulation {
    /// Each thread adds as many points as any other, and what threads have of the same bucket is added up in the end.
    #[default]
    Balanced,
    /// Each thread adds all points of one bucket, so that all wait for the one with the longest: what the balanced way is
    /// compared with. (Algorithm 2 of Chen et al., TCHES 2024/2.)
    Unbalanced,
}

/// Says how a multi-scalar multiplication is done. The default suits a curve's points of order r and any scalars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MsmConfig {
    /// Bits of a digit, 2 to 26. Unless given, the number that makes all steps cost least.
    pub window: Option<u32>,
    /// Scalars are below 2^`bits`: fewer digits then. The result is unspecified for those that are not. Unless given, all
    /// scalars of the field; how long those from the host are is found out each time, unless they are secret, and for points of
    /// order r a short opposite counts too, so that few bits, or 0 and ±1, cost few digits.
    pub bits: Option<u32>,
    /// What is computed from the bases beforehand.
    pub precompute: Precompute,
    /// Which points the bases are.
    pub bases: Bases,
    /// Whether bases are checked to be on the curve when the plan is made. A base at infinity is; and so (0, 0) in a buffer passes,
    /// or (0, 1) where b = 0, since that is how the device has infinity.
    pub check: bool,
    /// What becomes of bases at infinity, with (0, 0) on the host too, or (0, 1) where b = 0: for points of foreign encodings, where
    /// that may be a mistake.
    pub infinity: Infinity,
    /// Bytes of device memory for one evaluation, beside the bases; larger ones are done in pieces. Unless given, nine
    /// tenths of what the device has.
    pub memory: Option<u64>,
    /// Whether scalars from the host are secret; those in buffers have the buffer's secrecy, and those in pinned memory are secret
    /// if that is.
    pub secrecy: Secrecy,
    /// How the work is divided.
    pub tuning: Tuning,
}

/// Says how the work is divided among threads. What is not given is chosen by the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tuning {
    /// How points are added to buckets.
    pub accumulation: Accumulation,
    /// Threads that add points to buckets.
    pub slices: Option<u32>,
    /// Points that such a thread adds at least.
    pub least_slice: Option<u32>,
    /// How often neighbours among the sorted points of a bucket are added as affine points, 5M + 1S each with shared
    /// inversions, before the rest is added in XYZZ form, 8M + 2S each: 0 to 8. With 0, points are added one by one; with 1,
    /// two by two. (Without shared inversions, a sum of two affine points costs as much less as adding it to a bucket costs
    /// more, 4M + 2S and 12M + 2S, so that this is not there.)
    pub levels: Option<u32>,
    /// log₂ of the buckets that one thread adds in a layer of the reduction.
    pub layer: Option<u32>,
    /// log₂ of the most elements of a row that the last step of the reduction takes.
    pub last: Option<u32>,
}
