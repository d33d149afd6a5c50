//! Sums of the points of each bucket.

use std::{hint, marker::PhantomData};

use evariste_backend::{
    Buffer, Device, Queue, Result, Secrecy,
    author::{Arg, Binding, CpuArg, Kernel, KernelSpec, Wiped},
    params,
};
use evariste_curve::{
    AffinePoint, DeviceCurve, Xyzz, point,
    source::{self, Form},
};
use evariste_field::{DeviceField, ifma, source::iterations};
use rayon::prelude::*;

use crate::{
    adding::Adding,
    affine_tree::AffineTree,
    cost::Slices,
    shared::{self, Sum, load, sum_bytes, sum_words, zero},
};

/// Threads of a workgroup that adds points to buckets: with more, fewer of them find registers at once.
pub(crate) const THREADS: u32 = 128;

/// Threads of a workgroup that joins nodes, and nodes that it joins.
const MERGE_THREADS: u32 = 256;

params! {
    struct AccumulateParams {
        len: u32,
        sentinel: u32,
        slices: u32,
        least: u32,
        fresh: u32,
        /// Whether point i is points[i], and there are no values.
        ordered: u32,
    }

    /// Those of kernels that do not add points one by one.
    struct PartsParams {
        len: u32,
        sentinel: u32,
        slices: u32,
        least: u32,
        fresh: u32,
        ordered: u32,
        /// Points between those of one doubling and of the next, and how many doublings there are.
        table: u32,
        tables: u32,
    }

    struct MergeParams {
        nodes: u32,
        stride: u32,
        sentinel: u32,
        last: u32,
    }
}

/// What slices have of the buckets at their ends.
#[derive(Debug)]
pub(crate) struct Nodes<C: DeviceCurve> {
    keys: Buffer<u32>,
    sums: Buffer<Xyzz<C>>,
}

impl<C: DeviceCurve> Nodes<C> {
    pub(crate) fn new(device: &Device, slices: u32, secrecy: Secrecy) -> Result<Self> {
        let len = 2 * slices as usize;
        Ok(Self { keys: device.alloc_with(len, secrecy)?, sums: device.alloc_with(len, secrecy)? })
    }

    pub(crate) fn required_bytes(slices: u32) -> u64 {
        2 * u64::from(slices) * (4 + sum_bytes::<C>())
    }
}

/// The first kernel of [`Accumulate`] for another way of adding than one by one.
#[derive(Debug)]
pub(crate) struct Parts<C> {
    kernel: Kernel<PartsParams>,
    curve: PhantomData<fn() -> C>,
}

impl<C: DeviceCurve> Parts<C> {
    pub(crate) fn new(device: &Device, adding: Adding) -> Result<Self> {
        Ok(Self { kernel: Kernel::new(device, parts_spec::<C>(adding))?, curve: PhantomData })
    }

    pub(crate) fn specs() -> Vec<KernelSpec> {
        Adding::ALL[1..].iter().map(|adding| parts_spec::<C>(*adding)).collect()
    }
}

/// How a list is added to buckets.
#[derive(Debug)]
pub(crate) struct Way<'a, C> {
    pub(crate) slices: Slices,
    /// Unless points are added one by one.
    pub(crate) parts: Option<(&'a Parts<C>, Adding)>,
    /// Whether buckets that have pairs are overwritten.
    pub(crate) fresh: bool,
}

/// Pairs of a bucket and a point, sorted by bucket. A value is twice the number of a point, and 1 more if its
/// opposite is meant; without values, all points come in order.
#[derive(Debug)]
pub(crate) struct List<'a, C: DeviceCurve> {
    pub(crate) keys: &'a Buffer<u32>,
    pub(crate) values: Option<&'a Buffer<u32>>,
    pub(crate) points: &'a Buffer<AffinePoint<C>>,
}

#[derive(Debug)]
pub(crate) struct Accumulate<C> {
    accumulate: Kernel<AccumulateParams>,
    merge: Kernel<MergeParams>,
    curve: PhantomData<fn() -> C>,
}

impl<C: DeviceCurve> Accumulate<C> {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            accumulate: Kernel::new(device, accumulate_spec::<C>())?,
            merge: Kernel::new(device, merge_spec::<C>())?,
            curve: PhantomData,
        })
    }

    pub(crate) fn specs() -> Vec<KernelSpec> {
        vec![accumulate_spec::<C>(), merge_spec::<C>()]
    }

    /// Adds to each bucket the points of its pairs, which are sorted by bucket. Keys from the number of buckets on are
    /// left out; they all are that number.
    pub(crate) fn run(
        &self,
        queue: &Queue,
        &List { keys, values, points }: &List<'_, C>,
        &Way { slices, parts, fresh }: &Way<'_, C>,
        nodes: &mut Nodes<C>,
        buckets: &mut Buffer<Xyzz<C>>,
    ) -> Result<()> {
        values.unwrap_or(keys).expect_len("the values of digits", keys.len())?;
        nodes.keys.expect_len("the nodes of slices", 2 * slices.count as usize)?;
        assert!(slices.least > 0 && slices.count > 0, "{slices:?}");
        let (len, sentinel) = (keys.len() as u32, buckets.len() as u32);
        let params = AccumulateParams {
            len,
            sentinel,
            slices: slices.count,
            least: slices.least,
            fresh: fresh.into(),
            ordered: values.is_none().into(),
        };
        let args = &mut [
            Arg::read(keys),
            Arg::read(values.unwrap_or(keys)),
            Arg::read(points),
            Arg::write(&mut *buckets),
            Arg::write(&mut nodes.keys),
            Arg::write(&mut nodes.sums),
        ];
        // SAFETY: there are `len` keys and values; keys below `sentinel` are buckets, and values name points, as
        // recoding makes them; each slice has a node.
        unsafe {
            let groups = slices.count.div_ceil(THREADS).into();
            match parts {
                None => self.accumulate.launch(queue, groups, &params, args),
                Some((parts, adding)) => parts.kernel.launch(queue, groups, &params.with(adding), args),
            }
        }?;
        self.merge(queue, slices.count, nodes, buckets)
    }

    /// Joins nodes until one is left, and stores that.
    fn merge(&self, queue: &Queue, count: u32, nodes: &mut Nodes<C>, buckets: &mut Buffer<Xyzz<C>>) -> Result<()> {
        let (sentinel, group) = (buckets.len() as u32, self.merge.spec().threads);
        let (mut stride, mut left) = (1, count);
        loop {
            let groups = left.div_ceil(group);
            let params = MergeParams { nodes: count, stride, sentinel, last: (groups <= 1).into() };
            let args = &mut [Arg::write(&mut nodes.keys), Arg::write(&mut nodes.sums), Arg::write(&mut *buckets)];
            // SAFETY: there are `count` nodes, whose keys are buckets or `sentinel`; groups touch their own.
            unsafe { self.merge.launch(queue, groups.into(), &params, args) }?;
            if groups <= 1 {
                return Ok(());
            }
            (stride, left) = (stride * group, groups);
        }
    }
}

impl AccumulateParams {
    /// The same for another way of adding.
    fn with(self, adding: Adding) -> PartsParams {
        let Self { len, sentinel, slices, least, fresh, ordered } = self;
        let [table, tables] = adding.tables();
        PartsParams { len, sentinel, slices, least, fresh, ordered, table, tables }
    }
}

/// What kernels that add points to buckets see.
fn seen<C: DeviceCurve>() -> [(Binding, Option<Form>); 6] {
    [
        shared::words("keys"),
        shared::words("values"),
        shared::points::<C>("points", Form::Affine),
        shared::points_out::<C>("buckets", Form::Xyzz),
        shared::words_out("node_keys"),
        shared::points_out::<C>("node_sums", Form::Xyzz),
    ]
}

fn accumulate_spec<C: DeviceCurve>() -> KernelSpec {
    let seen = seen::<C>();
    let source = move |language| {
        let shaders = [Adding::Single.wgsl(), evariste_shaders::msm::ACCUMULATE].concat();
        shared::text::<C>(language, &seen, THREADS, calls::<C>(), [evariste_cuda::msm::ACCUMULATE, &shaders])
    };
    let lanes = ifma::Montgomery52::of::<C::BaseField>();
    let body = move |params: &AccumulateParams, args: &mut [CpuArg<'_>; 6]| {
        accumulate::<C, _>(
            params,
            args,
            || AffineTree::<C>::new(lanes.as_ref()),
            |levels, slice, values, points| {
                slice.sum(levels, values, points, params.fresh == 1);
            },
        );
    };
    let variant = source::label::<C>();
    KernelSpec::new("msm_accumulate", variant, shared::bindings(&seen), body, source)
        .threads(THREADS)
        .iterations(accumulate_iterations::<C>)
}

fn parts_spec<C: DeviceCurve>(kind: Adding) -> KernelSpec {
    let seen = seen::<C>();
    let source = move |language| {
        let cuda = [&kind.cuda(), evariste_cuda::msm::ACCUMULATE].concat();
        let shaders = [kind.wgsl(), evariste_shaders::msm::ACCUMULATE].concat();
        shared::text::<C>(language, &seen, THREADS, true, [&cuda, &shaders])
    };
    let body = move |params: &PartsParams, args: &mut [CpuArg<'_>; 6]| {
        let &PartsParams { len, sentinel, slices, least, fresh, ordered, table, tables } = params;
        let adding = if let Adding::Doubled { .. } = kind { Adding::Doubled { table, tables } } else { kind };
        let params = AccumulateParams { len, sentinel, slices, least, fresh, ordered };
        accumulate::<C, _>(
            &params,
            args,
            || (),
            |(), slice, values, points| {
                slice.sum_by(adding, values, points, fresh == 1);
            },
        );
    };
    let iterations = move |params: &PartsParams| {
        let slice = params.len.div_ceil(params.slices).max(params.least).min(params.len);
        iterations::repeat(u32::BITS.into(), 0)
            + iterations::repeat(slice.into(), kind.iterations() * source::iterations::<C>())
    };
    let variant = format!("{} over {}", kind.name(), source::label::<C>());
    KernelSpec::new("msm_accumulate", variant, shared::bindings(&seen), body, source)
        .threads(THREADS)
        .iterations(iterations)
}

/// Of the search for the last pair, and of the additions.
fn accumulate_iterations<C: DeviceCurve>(params: &AccumulateParams) -> u64 {
    let slice = params.len.div_ceil(params.slices).max(params.least).min(params.len);
    iterations::repeat(u32::BITS.into(), 0) + iterations::repeat(slice.into(), source::iterations::<C>())
}

/// Whether products are called in the kernel that adds points. On an H200, over twelve limbs that took 0.96 of the time
/// of inlined ones, which no cache for instructions holds. It took a tenth of the time to compile. Over eight limbs it
/// took 1.1 of the time.
const fn calls<C: DeviceCurve>() -> bool {
    C::BaseField::LIMBS > 8
}

fn merge_spec<C: DeviceCurve>() -> KernelSpec {
    let seen = [
        shared::words_out("keys"),
        shared::points_out::<C>("sums", Form::Xyzz),
        shared::points_out::<C>("buckets", Form::Xyzz),
    ];
    let source = move |language| {
        let sources = [evariste_cuda::msm::MERGE, evariste_shaders::msm::MERGE];
        shared::quad_text::<C>(language, &seen, MERGE_THREADS, sources)
    };
    let variant = source::label::<C>();
    KernelSpec::new("msm_merge", variant, shared::bindings(&seen), merge::<C>, source)
        .threads(MERGE_THREADS)
        .iterations(|_: &MergeParams| {
            // In WGSL: with CUDA, loops may be of any length.
            iterations::repeat(MERGE_THREADS.ilog2().into(), source::iterations::<C>())
        })
}

/// A slice of the pairs on the CPU, with the buckets between its first and its last, which no other slice touches.
struct Slice<'a, C: DeviceCurve> {
    keys: &'a [u32],
    /// The number of the first of them.
    start: usize,
    buckets: &'a mut [u32],
    /// Sums of the first bucket and of the last.
    ends: [Sum<C>; 2],
}

/// The body for the CPU. `sum` adds up a slice, in what `memory` makes.
fn accumulate<C: DeviceCurve, T>(
    params: &AccumulateParams,
    [keys, values, points, buckets, node_keys, node_sums]: &mut [CpuArg<'_>; 6],
    memory: impl Fn() -> T + Sync + Send,
    sum: impl Fn(&mut T, &mut Slice<'_, C>, Option<&[u32]>, &[u32]) + Sync,
) {
    let (keys, words) = (&keys.read::<u32>()[..params.len as usize], sum_words::<C>());
    let count = keys.partition_point(|key| *key < params.sentinel);
    let (keys, values) = (&keys[..count], &values.read::<u32>()[..count]);
    let values = if params.ordered == 1 { None } else { Some(values) };
    let points = points.read::<u32>();
    let node_keys = &mut node_keys.write::<u32>()[..2 * params.slices as usize];
    node_keys.fill(params.sentinel);

    let len = count.div_ceil(params.slices as usize).max(params.least as usize);
    let mut rest = &mut buckets.write::<u32>()[..params.sentinel as usize * words];
    let (mut done, mut before) = (0, None);
    // At once, so that no sums are left in memory that was too small.
    let mut slices: Vec<Slice<'_, C>> = Vec::with_capacity(count.div_ceil(len));
    for (number, keys) in keys.chunks(len).enumerate() {
        let [first, last] = [keys[0], keys[keys.len() - 1]];
        // Whoever starts a bucket starts from what it has.
        let from = |key: u32, starts: bool| match params.fresh == 0 && starts {
            true => load::<C>(rest, key as usize - done),
            false => zero::<C>(),
        };
        let ends = [from(first, before != Some(first)), from(last, first != last)];
        let inside = (first as usize + 1).min(last as usize)..last as usize;
        rest = &mut rest[(inside.start - done) * words..];
        let (own, others) = rest.split_at_mut(inside.len() * words);
        slices.push(Slice { keys, start: number * len, buckets: own, ends });
        (rest, done, before) = (others, inside.end, Some(last));
    }
    slices.par_iter_mut().for_each_init(memory, |memory, slice| sum(memory, slice, values, points));
    let nodes = node_keys.chunks_exact_mut(2).zip(node_sums.write::<u32>().chunks_exact_mut(2 * words));
    for (slice, (keys, sums)) in slices.iter().zip(nodes) {
        keys.copy_from_slice(&slice.borders());
        for (sum, words) in slice.ends.iter().zip(sums.chunks_exact_mut(words)) {
            point::store(sum, words);
        }
    }
}

impl<C: DeviceCurve> Drop for Slice<'_, C> {
    /// Zeroes the sums, which come of secrets.
    fn drop(&mut self) {
        self.ends = [zero::<C>(); 2];
        hint::black_box(&mut self.ends);
    }
}

impl<C: DeviceCurve> Slice<'_, C> {
    fn borders(&self) -> [u32; 2] {
        [self.keys[0], self.keys[self.keys.len() - 1]]
    }

    /// Adds up the points of each bucket as `adding` says.
    fn sum_by(&mut self, adding: Adding, values: Option<&[u32]>, points: &[u32], fresh: bool) {
        let ([first, last], words) = (self.borders(), sum_words::<C>());
        let (start, buckets, ends) = (self.start, &mut self.buckets, &mut self.ends);
        let number = |i: usize| values.map_or(2 * (start + i) as u32, |values| values[start + i]);
        adding.sum::<C>(self.keys, &number, points, &mut |key, sum| {
            if key == first || key == last {
                let end = &mut ends[usize::from(key != first)];
                *end = point::xyzz_add::<C>(*end, sum);
                return;
            }
            let own = &mut buckets[(key - first - 1) as usize * words..][..words];
            // Each bucket is found once.
            let before = if fresh { zero::<C>() } else { load::<C>(own, 0) };
            point::store(&point::xyzz_add::<C>(before, sum), own);
        });
    }

    fn sum(&mut self, levels: &mut AffineTree<'_, C>, values: Option<&[u32]>, points: &[u32], fresh: bool) {
        let ([first, last], words) = (self.borders(), sum_words::<C>());
        // Buckets that were found before have a sum.
        let mut found_before = Wiped::from(vec![!fresh; self.buckets.len() / words]);
        let (start, buckets, ends) = (self.start, &mut self.buckets, &mut self.ends);
        let numbers = |i: usize| values.map_or(2 * (start + i) as u32, |values| values[start + i]);
        levels.sum(self.keys, &numbers, points, &mut |key, point| {
            if key == first || key == last {
                let end = &mut ends[usize::from(key != first)];
                *end = point::xyzz_add_affine::<C>(*end, point);
                return;
            }
            let at = (key - first) as usize - 1;
            let sum = match std::mem::replace(&mut found_before[at], true) {
                true => point::xyzz_add_affine::<C>(load::<C>(buckets, at), point),
                false => point::xyzz_of_affine::<C>(point),
            };
            point::store(&sum, &mut buckets[at * words..][..words]);
        });
    }
}

/// The body for the CPU.
fn merge<C: DeviceCurve>(params: &MergeParams, [keys, sums, buckets]: &mut [CpuArg<'_>; 3]) {
    let words = sum_words::<C>();
    let nodes = params.nodes as usize;
    let (keys, sums) = (keys.write::<u32>(), sums.write::<u32>());
    let buckets = &mut buckets.write::<u32>()[..params.sentinel as usize * words];
    if params.last == 0 {
        // All is done by the last launch.
        return;
    }
    let mut open: Option<(u32, Sum<C>)> = None;
    for node in 0..nodes {
        let [first, last] = [0, 1].map(|end| keys[2 * node + end]);
        if first == params.sentinel {
            continue;
        }
        for (key, at) in [(first, 2 * node), (last, 2 * node + 1)].into_iter().take(1 + usize::from(first != last)) {
            let sum = load::<C>(sums, at);
            open = match open.take() {
                Some((known, before)) if known == key => Some((key, point::xyzz_add::<C>(before, sum))),
                Some((known, before)) => {
                    point::store(&before, &mut buckets[known as usize * words..][..words]);
                    Some((key, sum))
                }
                None => Some((key, sum)),
            };
        }
    }
    if let Some((key, sum)) = open {
        point::store(&sum, &mut buckets[key as usize * words..][..words]);
    }
}
