use evariste_backend::Secrecy;

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
    OddSignedDigits {
        /// Doublings of each base, from 1 to 26. Beyond the bits of a digit less 2, further doublings spare no bucket.
        depth: u32,
    },
    /// The doublings 2^k·P of each base for k ≤ `depth`, as with [`Precompute::OddSignedDigits`], but with buckets for
    /// odd m only. For a digit ±m·2^e with e > `depth`, the accumulation doubles 2^`depth`·P e − `depth` times. Smaller
    /// tables cost more doublings: (6M + 3S)·2^-`depth` for each digit, and more on GPUs, where threads wait for the
    /// one that doubles most. There are 2^26 bases at most, and no batch-affine additions ([`Tuning::affine_levels`]).
    /// (Algorithm 4 of the same source, lines 13 to 16, where `depth` is τ.)
    Doublings {
        /// Doublings of each base, from 0 to 25. From the bits of a digit less 1 on, the accumulation doubles nothing.
        depth: u32,
    },
}

/// The division of bucket accumulation among threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Accumulation {
    /// All threads add the same number of points. Partial sums of a bucket are added in the end.
    #[default]
    Balanced,
    /// All threads get slices of the same number of points, then move the ends of their slices to the next border of
    /// buckets. Each bucket belongs to one thread. For comparison with the balanced way. (Algorithm 2 of Chen et al.,
    /// TCHES 2024/2.)
    WholeBuckets,
    /// Each thread adds all points of one bucket, so that all wait for the longest bucket.
    PerBucket,
}

/// The number of points that a thread adds to a bucket at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Addition {
    /// One point, 8M + 2S.
    #[default]
    Single,
    /// Two points: first to each other, 4M + 2S, then their sum to the bucket, 12M + 2S. In XYZZ form this equals two
    /// single additions; in other coordinates it is less. (Double-point addition of Chen et al., TCHES 2024/2, section
    /// 2.3.2.)
    Double,
}

/// The reduction of a window's buckets B_i to Σ i·B_i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Aggregation {
    /// Layers. Each reduces runs of buckets to their sums and weighted sums, until few are left.
    #[default]
    Layered,
    /// Running sums: each thread goes once over a run of buckets, then multiplies its sum by the number of buckets
    /// before the run. A tree adds the results of all threads. Fewer threads work, each for longer. For comparison with
    /// layers.
    RunningSums,
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
    pub tuning: Tuning,
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

    /// Sets [`MsmConfig::tuning`].
    #[must_use]
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self
    }
}

/// The division of the work among threads. A plan chooses by device what you don't set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Tuning {
    /// The division of bucket accumulation among threads.
    pub accumulation: Accumulation,
    /// The number of points added at a time. With [`Precompute::Doublings`] it is one, whatever this says.
    pub addition: Addition,
    /// The reduction of buckets.
    pub aggregation: Aggregation,
    /// The threads that add points to buckets.
    pub slices: Option<u32>,
    /// The fewest points that such a thread adds.
    pub min_slice: Option<u32>,
    /// The levels of batch-affine tree addition, 0 to 8. Each level adds neighbours among the sorted points of a bucket
    /// in affine form with shared inversions, 5M + 1S each. The rest is added in XYZZ form, 8M + 2S each. With 0,
    /// points are added one by one; with 1, two by two. ([`Addition::Double`] adds two points without shared
    /// inversions.)
    pub affine_levels: Option<u32>,
    /// log₂ of the buckets that one thread adds in a layer of the bucket reduction, or by running sums.
    pub log_reduction_run: Option<u32>,
    /// log₂ of the longest row that the last step of the bucket reduction takes. [`Aggregation::RunningSums`] has no
    /// such step.
    pub log_final_row: Option<u32>,
}

impl Tuning {
    /// Sets [`Tuning::accumulation`].
    #[must_use]
    pub fn accumulation(mut self, accumulation: Accumulation) -> Self {
        self.accumulation = accumulation;
        self
    }

    /// Sets [`Tuning::addition`].
    #[must_use]
    pub fn addition(mut self, addition: Addition) -> Self {
        self.addition = addition;
        self
    }

    /// Sets [`Tuning::aggregation`].
    #[must_use]
    pub fn aggregation(mut self, aggregation: Aggregation) -> Self {
        self.aggregation = aggregation;
        self
    }

    /// Sets [`Tuning::slices`]; with `None` the plan chooses.
    #[must_use]
    pub fn slices(mut self, threads: impl Into<Option<u32>>) -> Self {
        self.slices = threads.into();
        self
    }

    /// Sets [`Tuning::min_slice`]; with `None` the plan chooses.
    #[must_use]
    pub fn min_slice(mut self, points: impl Into<Option<u32>>) -> Self {
        self.min_slice = points.into();
        self
    }

    /// Sets [`Tuning::affine_levels`]; with `None` the plan chooses.
    #[must_use]
    pub fn affine_levels(mut self, levels: impl Into<Option<u32>>) -> Self {
        self.affine_levels = levels.into();
        self
    }

    /// Sets [`Tuning::log_reduction_run`]; with `None` the plan chooses.
    #[must_use]
    pub fn log_reduction_run(mut self, log: impl Into<Option<u32>>) -> Self {
        self.log_reduction_run = log.into();
        self
    }

    /// Sets [`Tuning::log_final_row`]; with `None` the plan chooses.
    #[must_use]
    pub fn log_final_row(mut self, log: impl Into<Option<u32>>) -> Self {
        self.log_final_row = log.into();
        self
    }
}
