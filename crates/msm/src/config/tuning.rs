//! The division of the work among threads, for comparison with what plans choose.

// Without the feature, plans have the default alone.
#![cfg_attr(not(feature = "compare"), allow(dead_code, unreachable_pub))]

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

/// The division of the work among threads. A plan chooses by device what you don't set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Tuning {
    /// The division of bucket accumulation among threads.
    pub accumulation: Accumulation,
    /// The number of points added at a time. With `Precompute::Doublings` it is one, whatever this says.
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
    /// log₂ of the longest row that trees reduce: longer ones have layers first. With [`Aggregation::RunningSums`] trees
    /// reduce all rows.
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
