//! Sums of the points of each bucket, each by one thread, for comparison.

use std::marker::PhantomData;

use evariste_backend::{
    Buffer, Device, Queue, Result,
    author::{Arg, CpuArg, Kernel, KernelSpec, Language},
    parallel, params,
};
use evariste_curve::{
    DeviceCurve, Xyzz, point,
    source::{self, Form},
};
use evariste_field::source::iterations;
use rayon::prelude::*;

use crate::{
    accumulate::{self, List},
    adding::Adding,
    cost::Slices,
    shared::{self, Sum, load, sum_words},
};

params! {
    struct Params {
        /// Pairs, and the key behind all buckets.
        len: u32,
        sentinel: u32,
        /// Threads, and pairs of each at least.
        threads: u32,
        least: u32,
        /// Whether point i is points[i], and there are no values.
        ordered: u32,
        /// Points between those of one doubling and of the next, and how many doublings there are.
        table: u32,
        tables: u32,
    }
}

/// Which buckets are a thread's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// Those that begin in its slice of the pairs: Algorithm 2 of the paper that
    /// [`Accumulation`](crate::config::Accumulation) names.
    Slice(Slices),
    /// One.
    Bucket,
}

/// Accumulation of whole buckets.
#[derive(Debug)]
pub(crate) struct WholeBuckets<C> {
    kernel: Kernel<Params>,
    curve: PhantomData<fn() -> C>,
}

impl<C: DeviceCurve> WholeBuckets<C> {
    pub(crate) fn new(device: &Device, per_bucket: bool, adding: Adding) -> Result<Self> {
        Ok(Self { kernel: Kernel::new(device, spec::<C>(per_bucket, adding))?, curve: PhantomData })
    }

    /// All of them.
    pub(crate) fn specs() -> Vec<KernelSpec> {
        Adding::ALL.into_iter().flat_map(|adding| [false, true].map(|each| spec::<C>(each, adding))).collect()
    }

    /// Adds to each bucket the points of its pairs, as [`Accumulate::run`](accumulate::Accumulate::run) does. `share`
    /// and `adding` are of the kind that the kernel was made for.
    pub(crate) fn run(
        &self,
        queue: &Queue,
        &List { keys, values, points }: &List<'_, C>,
        share: Share,
        adding: Adding,
        buckets: &mut Buffer<Xyzz<C>>,
    ) -> Result<()> {
        let (values, ordered) = (values.unwrap_or(keys), values.is_none());
        values.expect_len("the values of digits", keys.len())?;
        let sentinel = buckets.len() as u32;
        let (threads, least) = match share {
            Share::Slice(slices) => (slices.count, slices.least),
            Share::Bucket => (sentinel, 1),
        };
        let [table, tables] = adding.tables();
        let params =
            |len: usize| Params { len: len as u32, sentinel, threads, least, ordered: ordered.into(), table, tables };
        // All pairs may be those of one bucket.
        let mut piece = keys.len().max(1);
        while piece > 1 && !self.kernel.fits(&params(piece)) {
            piece = piece.div_ceil(2);
        }
        for begin in (0..keys.len()).step_by(piece) {
            let range = begin..keys.len().min(begin + piece);
            let (keys, values) = (keys.view(range.clone())?, values.view(range.clone())?);
            let points = if ordered { points.view(range)? } else { points.as_view() };
            let args = &mut [Arg::read(keys), Arg::read(values), Arg::read(points), Arg::write(&mut *buckets)];
            // SAFETY: there are `len` keys and values, and values name points, as recoding makes them. Keys below
            // `sentinel` are buckets, and only one thread adds to each.
            unsafe {
                self.kernel.launch(queue, threads.div_ceil(accumulate::THREADS).into(), &params(keys.len()), args)
            }?;
        }
        Ok(())
    }
}

fn spec<C: DeviceCurve>(per_bucket: bool, adding: Adding) -> KernelSpec {
    let seen = [
        shared::words("keys"),
        shared::words("values"),
        shared::points::<C>("points", Form::Affine),
        shared::points_out::<C>("buckets", Form::Xyzz),
    ];
    let source = move |language| match language {
        Language::Cuda => {
            let threads = format!("#define THREADS {}u\n", accumulate::THREADS);
            let share = if per_bucket { "#define PER_BUCKET\n" } else { "" };
            let kernel = [&adding.cuda(), evariste_cuda::msm::WHOLE].concat();
            shared::cuda_text::<C>(&(threads + share), true, &kernel)
        }
        Language::Wgsl { int64 } => {
            let share =
                [evariste_shaders::msm::SLICE_PAIRS, evariste_shaders::msm::BUCKET_PAIRS][usize::from(per_bucket)];
            let parts = [adding.wgsl(), share, evariste_shaders::msm::WHOLE];
            shared::wgsl_text::<C>(int64, &seen) + &parts.concat()
        }
    };
    let body = move |params: &Params, args: &mut [CpuArg<'_>; 4]| run::<C>(per_bucket, adding, params, args);
    // Of three searches, and of the additions.
    let iterations = move |params: &Params| {
        let each = adding.iterations() * source::iterations::<C>();
        3 * iterations::repeat(u32::BITS.into(), 0) + iterations::repeat(params.len.into(), each)
    };
    let share = if per_bucket { "each bucket" } else { "slices" };
    let variant = format!("{share}, {}, over {}", adding.name(), source::label::<C>());
    KernelSpec::new("msm_whole", variant, shared::bindings(&seen), body, source)
        .threads(accumulate::THREADS)
        .iterations(iterations)
}

/// The body for the CPU.
fn run<C: DeviceCurve>(
    per_bucket: bool,
    kind: Adding,
    params: &Params,
    [keys, values, points, buckets]: &mut [CpuArg<'_>; 4],
) {
    let (keys, values, points) =
        (&keys.read::<u32>()[..params.len as usize], values.read::<u32>(), points.read::<u32>());
    let adding = match kind {
        Adding::Doubled { .. } => Adding::Doubled { table: params.table, tables: params.tables },
        others => others,
    };
    let (sentinel, words) = (params.sentinel as usize, sum_words::<C>());
    let buckets = &mut buckets.write::<u32>()[..sentinel * words];
    let count = keys.partition_point(|key| (*key as usize) < sentinel);
    let number = |i: usize| if params.ordered == 1 { 2 * i as u32 } else { values[i] };
    // Adds the pairs of a range, whose buckets are `own` from `first` on.
    let add = |range: std::ops::Range<usize>, own: &mut [u32], first: usize| {
        let start = range.start;
        adding.sum::<C>(&keys[range], &|i| number(start + i), points, &mut |key, sum: Sum<C>| {
            let own = &mut own[(key as usize - first) * words..][..words];
            point::store(&point::xyzz_add::<C>(load::<C>(own, 0), sum), own);
        });
    };
    if per_bucket {
        parallel::chunks(buckets, words, &|bucket, own| {
            let first = keys.partition_point(|key| (*key as usize) < bucket);
            let len = keys[first..].partition_point(|key| *key as usize == bucket);
            add(first..first + len, own, bucket);
        });
        return;
    }
    let slice = count.div_ceil(params.threads as usize).max(params.least as usize);
    // Where the bucket of the pair before ends.
    let border = |at: usize| match at {
        0 => 0,
        at => at + keys[at..count].partition_point(|key| *key == keys[at - 1]),
    };
    let (mut rest, mut done, mut tasks) = (buckets, 0, Vec::new());
    for start in (0..count).step_by(slice) {
        let range = border(start)..border(count.min(start + slice));
        if range.is_empty() {
            continue;
        }
        let end = keys[range.end - 1] as usize + 1;
        let (own, others) = rest.split_at_mut((end - done) * words);
        tasks.push((range, own, done));
        (rest, done) = (others, end);
    }
    tasks.into_par_iter().for_each(|(range, own, first)| add(range, own, first));
}
