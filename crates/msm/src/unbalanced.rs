//! Sums of the points of each bucket by one thread each, for comparison.

use std::marker::PhantomData;

use evariste_backend::{Arg, Buffer, CpuArg, Device, Kernel, KernelSpec, Queue, Result, parallel, params};
use evariste_curve::{
    DeviceCurve, Xyzz, point,
    source::{self, Form},
};
use evariste_field::source::turns;

use crate::{
    accumulate::{self, List},
    shared::{self, load, load_affine, sum_words},
};

params! {
    struct Params {
        /// Pairs and buckets.
        len: u32,
        buckets: u32,
        /// Whether point i is points[i], and there are no values.
        ordered: u32,
    }
}

/// Unbalanced accumulation: Algorithm 2 of the paper that [`Accumulation`](crate::Accumulation) names.
#[derive(Debug)]
pub(crate) struct Unbalanced<C> {
    kernel: Kernel<Params>,
    curve: PhantomData<fn() -> C>,
}

impl<C: DeviceCurve> Unbalanced<C> {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self { kernel: Kernel::new(device, spec::<C>())?, curve: PhantomData })
    }

    /// Adds to each bucket the points of its pairs, as [`Accumulate::run`](accumulate::Accumulate::run) does.
    pub(crate) fn run(
        &self,
        queue: Option<&Queue>,
        &List { keys, values, points }: &List<'_, C>,
        buckets: &mut Buffer<Xyzz<C>>,
    ) -> Result<()> {
        let (values, ordered) = (values.unwrap_or(keys), values.is_none());
        values.expect_len("the values of digits", keys.len())?;
        let count = buckets.len() as u32;
        let params = |len: usize| Params { len: len as u32, buckets: count, ordered: ordered.into() };
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
            // SAFETY: there are `len` keys and values, values name points, as recoding makes them, and there are as many
            // buckets as threads that do not return at once.
            unsafe {
                self.kernel.launch(queue, count.div_ceil(accumulate::THREADS).into(), &params(keys.len()), args)
            }?;
        }
        Ok(())
    }
}

pub(crate) fn spec<C: DeviceCurve>() -> KernelSpec {
    let seen = [
        shared::words("keys"),
        shared::words("values"),
        shared::points::<C>("points", Form::Affine),
        shared::points_out::<C>("buckets", Form::Xyzz),
    ];
    let source = move |language| {
        let sources = [evariste_cuda::MSM_UNBALANCED, evariste_shaders::MSM_UNBALANCED];
        shared::text::<C>(language, &seen, accumulate::THREADS, true, sources)
    };
    // Of two searches, and of the additions.
    let turns = |params: &Params| {
        2 * turns::repeat(u32::BITS.into(), 0) + turns::repeat(params.len.into(), source::turns::<C>())
    };
    let variant = source::label::<C>();
    KernelSpec::new("msm_unbalanced", variant, shared::bindings(&seen), run::<C>, source)
        .threads(accumulate::THREADS)
        .turns(turns)
}

/// The body for the CPU.
fn run<C: DeviceCurve>(params: &Params, [keys, values, points, buckets]: &mut [CpuArg<'_>; 4]) {
    let (len, words) = (params.len as usize, sum_words::<C>());
    let (keys, values, points) = (&keys.read::<u32>()[..len], values.read::<u32>(), points.read::<u32>());
    let buckets = &mut buckets.write::<u32>()[..params.buckets as usize * words];
    parallel::chunks(buckets, words, &|bucket, out| {
        let first = keys.partition_point(|key| (*key as usize) < bucket);
        let len = keys[first..].partition_point(|key| *key as usize == bucket);
        if len == 0 {
            return;
        }
        let mut sum = load::<C>(out, 0);
        let range = first..first + len;
        for (value, i) in values[range.clone()].iter().zip(range) {
            let value = if params.ordered == 1 { 2 * i as u32 } else { *value };
            let mut point = load_affine::<C>(points, value as usize / 2);
            if value % 2 == 1 {
                point = point::affine_negate::<C>(point);
            }
            sum = point::xyzz_add_affine::<C>(sum, point);
        }
        point::store(&sum, out);
    });
}
