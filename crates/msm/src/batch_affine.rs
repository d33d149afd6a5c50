//! One level of batch-affine tree addition: neighbours of the same bucket are added with shared inversions.

use std::marker::PhantomData;

use evariste_backend::{
    Buffer, Device, Queue, Result, Secrecy,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Language, Wiped},
    params,
};
use evariste_curve::{
    AffinePoint, DeviceCurve, point,
    source::{self, Form},
};
use evariste_field::{
    ifma,
    source::{cuda_group_inverse, group_inverse_threads, iterations, wgsl_group_inverse},
};
use evariste_primitives::Scan;
use rayon::prelude::*;

use crate::{
    affine_tree::{Additions, signed},
    shared::{self, affine_words},
};

/// Threads of a workgroup, if their memory allows.
const THREADS: u32 = 256;

/// BatchAffine of a thread at most, which share an inversion with those of its workgroup.
const MAX_RUN: u32 = 64;

/// BatchAffine of a thread at least, however few there are.
const MIN_RUN: u32 = 4;

params! {
    struct EdgesParams {
        len: u32,
        sentinel: u32,
    }

    struct PairsParams {
        len: u32,
        sentinel: u32,
        threads: u32,
        leftovers: u32,
    }
}

/// The sums of one level, sorted by bucket, and the odd points that had no neighbour.
#[derive(Debug)]
pub(crate) struct BatchAffineSums<C: DeviceCurve> {
    pub(crate) keys: Buffer<u32>,
    pub(crate) points: Buffer<AffinePoint<C>>,
    pub(crate) odd_keys: Buffer<u32>,
    /// The values of odd points, which name points of the level before.
    pub(crate) odd_values: Buffer<u32>,
}

#[derive(Debug)]
pub(crate) struct BatchAffine<C> {
    device: Device,
    edges: Kernel<EdgesParams>,
    scan: Scan,
    /// Of points by their values, and one after the other.
    pairs: [Kernel<PairsParams>; 2],
    curve: PhantomData<fn() -> C>,
}

impl<C: DeviceCurve> BatchAffine<C> {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            device: device.clone(),
            edges: Kernel::new(device, edges_spec())?,
            scan: Scan::new(device)?,
            pairs: [Kernel::new(device, pairs_spec::<C>(true))?, Kernel::new(device, pairs_spec::<C>(false))?],
            curve: PhantomData,
        })
    }

    pub(crate) fn specs() -> Vec<KernelSpec> {
        vec![edges_spec(), pairs_spec::<C>(true), pairs_spec::<C>(false)]
    }

    /// Bytes of what [`BatchAffine::run`] makes of `len` elements in `buckets` buckets, and of its scratch.
    pub(crate) fn required_bytes(len: usize, buckets: u64) -> [u64; 2] {
        let half = len.div_ceil(2) as u64;
        let leftovers = half.min(buckets);
        let point = AffinePoint::<C>::BYTES as u64;
        [half * (4 + point) + 8 * leftovers, 8 * half + 4 + Scan::scratch_bytes(half as usize + 1)]
    }

    /// Adds neighbours of the same bucket: see `msm/pairs.cu`. Without `values`, element i is `points[i]`.
    pub(crate) fn run(
        &self,
        queue: &Queue,
        keys: &Buffer<u32>,
        values: Option<&Buffer<u32>>,
        points: &Buffer<AffinePoint<C>>,
        sentinel: u32,
        secrecy: Secrecy,
    ) -> Result<BatchAffineSums<C>> {
        let half = keys.len().div_ceil(2);
        let (len, leftovers) = (keys.len() as u32, half.min(sentinel as usize).max(1));
        let mut edges = self.device.alloc_with(half, secrecy)?;
        let args = &mut [Arg::read(keys), Arg::write(&mut edges)];
        // SAFETY: there are `len` keys and `half` edges.
        unsafe { self.edges.launch(queue, half.div_ceil(256) as u64, &EdgesParams { len, sentinel }, args) }?;
        let mut places = self.device.alloc_with(half + 1, secrecy)?;
        self.scan.on(queue).exclusive(&edges, &mut places)?;
        drop(edges);

        let kernel = &self.pairs[usize::from(values.is_none())];
        let most = self.device.info().parallelism.max(1).saturating_mul(2 * THREADS);
        let mut run = (half as u32).div_ceil(most).clamp(MIN_RUN, MAX_RUN);
        let params =
            |run| PairsParams { len, sentinel, threads: (half as u32).div_ceil(run), leftovers: leftovers as u32 };
        while run > 1 && !kernel.fits(&params(run)) {
            run /= 2;
        }
        let params = params(run);
        let mut level = BatchAffineSums {
            keys: self.device.alloc_with(half, secrecy)?,
            points: self.device.alloc_with(half, secrecy)?,
            odd_keys: self.device.alloc_with(leftovers, secrecy)?,
            odd_values: self.device.alloc_with(leftovers, secrecy)?,
        };
        let args = &mut [
            Arg::read(keys),
            Arg::read(values.unwrap_or(keys)),
            Arg::read(points),
            Arg::read(&places),
            Arg::write(&mut level.keys),
            Arg::write(&mut level.points),
            Arg::write(&mut level.odd_keys),
            Arg::write(&mut level.odd_values),
        ];
        // SAFETY: there are `len` keys, and values of points if they are read; the rest is half as long. Each bucket is
        // left over once at most, so that there are no more of these than buckets and than pairs.
        unsafe { kernel.launch(queue, params.threads.div_ceil(kernel.spec().threads).into(), &params, args) }?;
        Ok(level)
    }
}

use evariste_backend::Element as _;

fn edges_spec() -> KernelSpec {
    let bindings = [Binding::read("keys", BindingType::U32), Binding::write("edges", BindingType::U32)];
    let body = |params: &EdgesParams, [keys, edges]: &mut [CpuArg<'_>; 2]| {
        let keys = keys.read::<u32>()[..params.len as usize].chunks(2);
        for (edge, keys) in edges.write::<u32>().iter_mut().zip(keys) {
            *edge = matches!(keys, [a, b] if a != b && *b < params.sentinel).into();
        }
    };
    let source = |language| match language {
        Language::Cuda => evariste_cuda::msm::EDGES.to_owned(),
        Language::Wgsl { .. } => evariste_shaders::msm::EDGES.to_owned(),
    };
    KernelSpec::new("msm_edges", "u32", bindings, body, source).threads(256)
}

fn pairs_spec<C: DeviceCurve>(by_value: bool) -> KernelSpec {
    let seen = [
        shared::words("keys"),
        shared::words("values"),
        shared::points::<C>("points", Form::Affine),
        shared::words("edges"),
        shared::words_out("out_keys"),
        shared::points_out::<C>("out", Form::Affine),
        shared::words_out("side_keys"),
        shared::words_out("side_values"),
    ];
    let (threads, bytes) = group_inverse_threads::<C::BaseField>(THREADS);
    let source = move |language| match language {
        Language::Cuda => {
            let values = if by_value { "#define VALUES\n" } else { "" };
            let inverse = cuda_group_inverse(threads);
            shared::cuda_text::<C>(&(inverse + values), false, evariste_cuda::msm::PAIRS)
        }
        Language::Wgsl { int64 } => {
            let values = match by_value {
                true => "fn value_of(i: u32) -> u32 { return values_get(i); }\n",
                false => "fn value_of(i: u32) -> u32 { return 2u * i; }\n",
            };
            let inverse = wgsl_group_inverse::<C::BaseField>(threads);
            let parts = [source::wgsl_affine_addition(), &inverse, values, evariste_shaders::msm::PAIRS];
            shared::wgsl_text::<C>(int64, &seen) + &parts.concat()
        }
    };
    let lanes = ifma::Montgomery52::of::<C::BaseField>();
    let body = move |params: &PairsParams, args: &mut [CpuArg<'_>; 8]| {
        pairs::<C>(by_value, lanes.as_ref(), params, args);
    };
    let variant = format!("{} over {}", if by_value { "by value" } else { "in order" }, source::label::<C>());
    KernelSpec::new("msm_pairs", variant, shared::bindings(&seen), body, source)
        .threads(threads)
        .shared_bytes(bytes)
        .iterations(move |params: &PairsParams| pairs_iterations::<C>(params, threads))
}

fn pairs_iterations<C: DeviceCurve>(params: &PairsParams, threads: u32) -> u64 {
    let (addition, inverse) = (source::iterations::<C>(), iterations::group_inverse::<C::BaseField>(threads));
    let own = |len: u32| u64::from(len.div_ceil(params.threads));
    let leftovers = iterations::repeat(own(params.leftovers), 0);
    2 * iterations::repeat(own(params.len.div_ceil(2)), addition) + leftovers + inverse
}

/// BatchAffine that a CPU thread takes at a time: enough for inversions to be a small share.
const GRAIN: usize = 1 << 10;

/// Some pairs on the CPU, with the places of what comes of them.
struct Part<'a> {
    /// The number of the first key.
    first: usize,
    keys: &'a [u32],
    out_keys: &'a mut [u32],
    out: &'a mut [u32],
    odd_keys: &'a mut [u32],
    odd_values: &'a mut [u32],
}

/// The body for the CPU.
fn pairs<C: DeviceCurve>(
    by_value: bool,
    lanes: Option<&ifma::Montgomery52>,
    params: &PairsParams,
    [keys, values, points, edges, out_keys, out, odd_keys, odd_values]: &mut [CpuArg<'_>; 8],
) {
    let (len, words) = (params.len as usize, affine_words::<C>());
    let (keys, points) = (&keys.read::<u32>()[..len], points.read::<u32>());
    let (values, edges) = (values.read::<u32>(), edges.read::<u32>());
    let value = |i: usize| if by_value { values[i] } else { 2 * i as u32 };
    odd_keys.write::<u32>()[..params.leftovers as usize].fill(params.sentinel);
    let (mut odd_keys, mut odd_values) = (odd_keys.write::<u32>(), odd_values.write::<u32>());
    let (out_keys, out) = (out_keys.write::<u32>(), &mut out.write::<u32>()[..len.div_ceil(2) * words]);
    let mut parts = Vec::with_capacity(len.div_ceil(2 * GRAIN));
    let outs = out_keys.chunks_mut(GRAIN).zip(out.chunks_mut(GRAIN * words));
    for ((number, keys), (out_keys, out)) in keys.chunks(2 * GRAIN).enumerate().zip(outs) {
        let (first, half) = (number * GRAIN, keys.len().div_ceil(2));
        // What is left over has places one after the other.
        let leftovers = (edges[first + half] - edges[first]) as usize;
        let (own_keys, rest_keys) = odd_keys.split_at_mut(leftovers);
        let (own_values, rest_values) = odd_values.split_at_mut(leftovers);
        (odd_keys, odd_values) = (rest_keys, rest_values);
        parts.push(Part { first: 2 * first, keys, out_keys, out, odd_keys: own_keys, odd_values: own_values });
    }
    let work = |(additions, pairs): &mut (Additions<'_, C>, Wiped<[u32; 2]>), part: &mut Part<'_>| {
        part.add_pairs(params.sentinel, &value, points, additions, pairs);
    };
    parts.par_iter_mut().for_each_init(|| (Additions::new(lanes), Wiped::with_capacity(GRAIN)), work);
}

impl Part<'_> {
    /// Adds the pairs of one bucket, and places all else.
    fn add_pairs<C: DeviceCurve>(
        &mut self,
        sentinel: u32,
        value: &dyn Fn(usize) -> u32,
        points: &[u32],
        additions: &mut Additions<'_, C>,
        pairs: &mut Wiped<[u32; 2]>,
    ) {
        let words = affine_words::<C>();
        let is_pair = |keys: &[u32]| matches!(keys, [a, b] if a == b && *a != sentinel);
        pairs.clear();
        let adjacent = self.keys.chunks(2).zip((self.first..).step_by(2)).filter(|(keys, _)| is_pair(keys));
        pairs.extend(adjacent.map(|(_, at)| [value(at), value(at + 1)]));
        // All sums at the start of the output, and from the last one on to where they belong.
        let count = pairs.len();
        additions.add_all(points, pairs, &mut self.out[..count * words]);
        let (mut sums, mut leftovers) = (count, self.odd_keys.len());
        for (j, keys) in self.keys.chunks(2).enumerate().rev() {
            let (key, at) = (keys[0], self.first + 2 * j);
            self.out_keys[j] = key;
            if is_pair(keys) {
                sums -= 1;
                self.out.copy_within(sums * words..(sums + 1) * words, j * words);
                continue;
            }
            let alone = match keys.get(1) {
                _ if key == sentinel => continue,
                Some(next) if *next < sentinel => {
                    leftovers -= 1;
                    (self.odd_keys[leftovers], self.odd_values[leftovers]) = (key, value(at));
                    self.out_keys[j] = *next;
                    at + 1
                }
                _ => at,
            };
            point::store(&signed::<C>(points, value(alone)), &mut self.out[j * words..][..words]);
        }
    }
}
