use evariste_backend::Secrecy;

/// Which points bases may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bases {
    /// Points of order r, the modulus of the scalar field, or infinity. Scalars count modulo r, so k·P = (r − k)·(−P), which
    /// spares a bit.
    #[default]
    Subgroup,
    /// Any points of the curve. Scalars are integers of as many bits as the words of a scalar have.
    Any,
}

/// What is computed from the bases beforehand.
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
}

/// How a multi-scalar multiplication is done. The default suits a curve's points of order r and any scalars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MsmConfig {
    /// Bits of a digit, 2 to 26; unless given, by the cost of all.
    pub window: Option<u32>,
    /// Scalars are below 2^`bits`: fewer digits then. The result is unspecified for those that are not. Unless given, all
    /// scalars of the field.
    pub bits: Option<u32>,
    /// What is computed from the bases beforehand.
    pub precompute: Precompute,
    /// Which points the bases are.
    pub bases: Bases,
    /// Whether bases are checked to be on the curve when the plan is made.
    pub check: bool,
    /// Device memory for one evaluation, beside the bases; larger ones are done in pieces. Unless given, nine tenths of what
    /// the device has.
    pub memory: Option<u64>,
    /// Whether scalars from the host are secret; those in buffers have the buffer's secrecy.
    pub secrecy: Secrecy,
    /// How the work is divided.
    pub tuning: Tuning,
}

/// How the work is divided among threads. What is not given is chosen by the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tuning {
    /// Threads that add points to buckets.
    pub slices: Option<u32>,
    /// Points that such a thread adds at least.
    pub least_slice: Option<u32>,
    /// How often neighbours among the sorted points of a bucket are added as affine points, 5M + 1S each with shared
    /// inversions, before the rest is added in XYZZ form, 8M + 2S each: 0 to 8.
    pub levels: Option<u32>,
    /// log₂ of the buckets that one thread adds in a layer of the reduction.
    pub layer: Option<u32>,
    /// log₂ of the most elements of a row that the last step of the reduction takes.
    pub last: Option<u32>,
}
