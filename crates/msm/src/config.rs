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
    /// The doublings 2^k·P of each base for k up to `depth`, as with [`Precompute::OddDigits`], but one set of buckets of odd
    /// numbers alone: for a digit ±m·2^e with e above `depth`, 2^`depth`·P is doubled e − `depth` times when it is added to the
    /// bucket of m. So fewer tables cost more doublings, (6M + 3S) · 2^-`depth` for each digit, and more where threads of a GPU
    /// wait for the one that doubles most. There are 2^26 bases at most, and no levels of affine additions ([`Tuning::levels`]).
    /// (Algorithm 4 of the same source, lines 13 to 16, where `depth` is τ.)
    Doublings {
        /// Doublings of each base, from 0 to 25. From the bits of a digit less 1 on, none is left for the accumulation.
        depth: u32,
    },
}

/// Says how points are added to buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accumulation {
    /// Each thread adds as many points as any other, and what threads have of the same bucket is added up in the end.
    #[default]
    Balanced,
    /// Each thread adds as many points as any other, but that the ends of its slice move on to the next border of buckets, so that
    /// each bucket is one thread's: what the balanced way is compared with. (Algorithm 2 of Chen et al., TCHES 2024/2.)
    WholeBuckets,
    /// Each thread adds all points of one bucket, so that all wait for the one with the longest.
    PerBucket,
}

/// Says how many points are added at a time to a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Addition {
    /// One, 8M + 2S.
    #[default]
    Single,
    /// Two: first to each other, 4M + 2S, then their sum to the bucket, 12M + 2S. In XYZZ form that is as much as two single ones;
    /// in other coordinates it is less. (Double-point addition of Chen et al., TCHES 2024/2, section 2.3.2.)
    Double,
}

/// Says how the buckets B_i of a digit become Σ i·B_i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Aggregation {
    /// In layers, each of which makes of runs of buckets their sums and their moments, until few are left.
    #[default]
    Layered,
    /// Each thread goes once over a run of buckets with a running sum, which it then multiplies by the number of buckets before the
    /// run; the results of all threads are added up in a tree. So fewer threads work, each for longer: what layers are compared with.
    RunningSums,
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
    /// How many points are added at a time. With [`Precompute::Doublings`], it is one, whatever this says.
    pub addition: Addition,
    /// How buckets are added up.
    pub aggregation: Aggregation,
    /// Threads that add points to buckets.
    pub slices: Option<u32>,
    /// Points that such a thread adds at least.
    pub least_slice: Option<u32>,
    /// How often neighbours among the sorted points of a bucket are added as affine points, 5M + 1S each with shared
    /// inversions, before the rest is added in XYZZ form, 8M + 2S each: 0 to 8. With 0, points are added one by one; with 1,
    /// two by two. ([`Addition::Double`] adds two points without shared inversions.)
    pub levels: Option<u32>,
    /// log₂ of the buckets that one thread adds in a layer of the reduction, or by running sums.
    pub layer: Option<u32>,
    /// log₂ of the most elements of a row that the last step of the reduction takes. [`Aggregation::RunningSums`] has no such step.
    pub last: Option<u32>,
}
