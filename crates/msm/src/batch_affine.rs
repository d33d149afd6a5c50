//! One level of batch-affine tree addition: neighbours of the same bucket are added with shared inversions.

use std::{borrow::Borrow, marker::PhantomData};

use evariste_backend::{
    Buffer, Device, Queue, Result, Secrecy,
    author::{Arg, Binding, CpuArg, Kernel, KernelSpec, Language, Wiped},
    params,
};
use evariste_curve::{
    AffinePoint, DeviceCurve, point,
    source::{self, Form},
};
use evariste_field::{
    DeviceField as _, ifma,
    source::{cuda_group_inverse, group_inverse_threads, iterations, wgsl_group_inverse},
};
use evariste_primitives::Scan;
use rayon::prelude::*;

use crate::{
    accumulate::List,
    affine_tree::{Additions, signed},
    shared::{self, affine_words},
};

/// Threads of a workgroup, if their memory allows.
const THREADS: u32 = 256;

/// Threads that run at once for each unit of a GPU that runs workgroups, over fields of so many limbs at most, as
/// `msm/pairs.cu` has it. Workgroups all take as long, so that a last wave of few takes as long as a full one: on an H200,
/// 864 of them in places for 396 did 2.38 G additions a second, 790 in two full waves 2.61.
const LANES: [(usize, u32); 3] = [(8, 512), (12, 384), (usize::MAX, 256)];

/// Pairs of a thread, about, which share an inversion with those of its workgroup.
const RUN: u32 = 192;

/// Pairs of a thread at least, however few there are.
const MIN_RUN: u32 = 4;

/// Threads of a workgroup of the kernels that find pairs.
const PLACE_THREADS: u32 = 256;

params! {
    struct BordersParams {
        len: u32,
        sentinel: u32,
    }

    struct HalvesParams {
        buckets: u32,
    }

    struct PlacesParams {
        len: u32,
        sentinel: u32,
        out_len: u32,
    }

    struct PairsParams {
        len: u32,
        sentinel: u32,
        threads: u32,
        out_len: u32,
    }
}

/// The sums of one level, sorted by bucket, and each bucket's last point if it had no neighbour.
#[derive(Debug)]
pub(crate) struct BatchAffineSums<C: DeviceCurve> {
    /// Those behind the last sum are no bucket.
    pub(crate) keys: Buffer<u32>,
    pub(crate) points: Buffer<AffinePoint<C>>,
    /// The first sum of each bucket, and in the end their number.
    offsets: Buffer<u32>,
}

/// A list of points, sorted by bucket.
#[derive(Debug)]
pub(crate) enum Unpaired<B, C: DeviceCurve> {
    /// Keys and values of digits: value 2·i + s is ±(base i).
    Digits([B; 2]),
    /// Those of the level before.
    Sums(BatchAffineSums<C>),
}

impl<B: Borrow<Buffer<u32>>, C: DeviceCurve> Unpaired<B, C> {
    /// The list, over these bases if it is one of digits.
    pub(crate) fn list<'a>(&'a self, bases: &'a Buffer<AffinePoint<C>>) -> List<'a, C> {
        match self {
            Self::Digits([keys, values]) => List { keys: keys.borrow(), values: Some(values.borrow()), points: bases },
            Self::Sums(BatchAffineSums { keys, points, .. }) => List { keys, values: None, points },
        }
    }
}

#[derive(Debug)]
pub(crate) struct BatchAffine<C> {
    device: Device,
    borders: Kernel<BordersParams>,
    halves: Kernel<HalvesParams>,
    places: Kernel<PlacesParams>,
    scan: Scan,
    /// Of points by their values, and one after the other.
    pairs: [Kernel<PairsParams>; 2],
    curve: PhantomData<fn() -> C>,
}

/// Points that `len` ones of `buckets` buckets become at most: half of each bucket's, rounded up.
fn half(len: usize, buckets: u64) -> usize {
    (len + buckets.min(len as u64) as usize) / 2
}

/// Pairs of a thread, so that all threads run in as many full waves as that takes.
fn run(parallelism: u32, limbs: usize, pairs: u32) -> u32 {
    let lanes = LANES.iter().find(|(most, _)| limbs <= *most).map_or(1, |(_, lanes)| *lanes);
    let lanes = parallelism.max(1).saturating_mul(lanes);
    let waves = pairs.div_ceil(lanes.saturating_mul(RUN)).max(1);
    pairs.div_ceil(lanes.saturating_mul(waves)).max(MIN_RUN)
}

impl<C: DeviceCurve> BatchAffine<C> {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            device: device.clone(),
            borders: Kernel::new(device, borders_spec())?,
            halves: Kernel::new(device, halves_spec())?,
            places: Kernel::new(device, places_spec())?,
            scan: Scan::new(device)?,
            pairs: [Kernel::new(device, pairs_spec::<C>(true))?, Kernel::new(device, pairs_spec::<C>(false))?],
            curve: PhantomData,
        })
    }

    pub(crate) fn specs() -> Vec<KernelSpec> {
        vec![borders_spec(), halves_spec(), places_spec(), pairs_spec::<C>(true), pairs_spec::<C>(false)]
    }

    /// Points that [`BatchAffine::run`] makes of `len` points in `buckets` buckets at most, bytes of all that it makes, and
    /// of all that is there at once meanwhile.
    pub(crate) fn required_bytes(len: usize, buckets: u64) -> (usize, [u64; 2]) {
        let out = half(len, buckets);
        let (points, point) = (out as u64, AffinePoint::<C>::BYTES as u64);
        let offsets = 4 * (buckets + 1);
        // The first and the last of each bucket, then their number, beside what a scan takes; then places.
        let counting = 12 * buckets + Scan::scratch_bytes(buckets as usize + 1);
        let placing = 8 * buckets + 4 * points;
        let adding = (8 + point) * points;
        (out, [offsets + (4 + point) * points, offsets + counting.max(placing).max(adding)])
    }

    /// Adds neighbours of the same bucket: see `msm/pairs.cu`.
    pub(crate) fn run<B: Borrow<Buffer<u32>>>(
        &self,
        queue: &Queue,
        unpaired: &Unpaired<B, C>,
        bases: &Buffer<AffinePoint<C>>,
        sentinel: u32,
        secrecy: Secrecy,
    ) -> Result<BatchAffineSums<C>> {
        let List { keys, values, points } = unpaired.list(bases);
        let (len, buckets) = (keys.len() as u32, sentinel as usize);
        let out_len = half(keys.len(), sentinel.into());
        let groups = |threads: usize| threads.div_ceil(PLACE_THREADS as usize) as u64;
        let words = |len| self.device.alloc_with::<u32>(len, secrecy);
        let mut offsets = words(buckets + 1)?;
        let mut places;
        {
            let mut own_firsts;
            let mut ends = words(buckets)?;
            let firsts = match unpaired {
                Unpaired::Digits(_) => {
                    own_firsts = words(buckets)?;
                    queue.clear(&mut own_firsts)?;
                    queue.clear(&mut ends)?;
                    let args = &mut [Arg::read(keys), Arg::write(&mut own_firsts), Arg::write(&mut ends)];
                    // SAFETY: there are `len` keys, and two places for each below `sentinel`.
                    unsafe { self.borders.launch(queue, groups(keys.len()), &BordersParams { len, sentinel }, args) }?;
                    own_firsts.as_view()
                }
                Unpaired::Sums(BatchAffineSums { offsets, .. }) => {
                    // With wgpu, a kernel that takes a view from its second element on is compiled for that.
                    queue.copy(offsets.view(1..)?, &mut ends)?;
                    offsets.view(..buckets)?
                }
            };
            let mut halves = words(buckets)?;
            let args = &mut [Arg::read(firsts), Arg::read(&ends), Arg::write(&mut halves)];
            // SAFETY: each has as many elements as there are buckets.
            unsafe { self.halves.launch(queue, groups(buckets), &HalvesParams { buckets: sentinel }, args) }?;
            self.scan.on(queue).exclusive(&halves, &mut offsets)?;
            drop(halves);
            places = words(out_len)?;
            let params = PlacesParams { len, sentinel, out_len: out_len as u32 };
            let args = &mut [Arg::read(keys), Arg::read(firsts), Arg::read(&offsets), Arg::write(&mut places)];
            // SAFETY: there are `len` keys, and those below `sentinel` are buckets, of which `offsets` has one more. Half
            // of each bucket's elements, rounded up, are `out_len` at most.
            unsafe { self.places.launch(queue, groups(keys.len().max(out_len)), &params, args) }?;
        }

        let kernel = &self.pairs[usize::from(values.is_none())];
        let out_len = out_len as u32;
        let mut run = run(self.device.info().parallelism, C::BaseField::LIMBS, out_len);
        let params = |run| PairsParams { len, sentinel, threads: out_len.div_ceil(run).max(1), out_len };
        while run > 1 && !kernel.fits(&params(run)) {
            run /= 2;
        }
        let params = params(run);
        let (mut out_keys, mut out) = (words(out_len as usize)?, self.device.alloc_with(out_len as usize, secrecy)?);
        let args = &mut [
            Arg::read(keys),
            Arg::read(values.unwrap_or(keys)),
            Arg::read(points),
            Arg::read(&places),
            Arg::write(&mut out_keys),
            Arg::write(&mut out),
        ];
        // SAFETY: there are `len` keys, and values of points if they are read; `out_len` places name keys, or none.
        unsafe { kernel.launch(queue, params.threads.div_ceil(kernel.spec().threads).into(), &params, args) }?;
        Ok(BatchAffineSums { keys: out_keys, points: out, offsets })
    }
}

use evariste_backend::Element as _;

fn borders_spec() -> KernelSpec {
    let bindings = [words("keys"), words_out("firsts"), words_out("ends")];
    let body = |params: &BordersParams, [keys, firsts, ends]: &mut [CpuArg<'_>; 3]| {
        let keys = &keys.read::<u32>()[..params.len as usize];
        let (firsts, ends) = (firsts.write::<u32>(), ends.write::<u32>());
        for (i, key) in keys.iter().enumerate().filter(|(_, key)| **key < params.sentinel) {
            if i == 0 || keys[i - 1] != *key {
                firsts[*key as usize] = i as u32;
            }
            ends[*key as usize] = i as u32 + 1;
        }
    };
    let sources = [evariste_cuda::msm::BORDERS, evariste_shaders::msm::BORDERS];
    KernelSpec::new("msm_borders", "u32", bindings, body, plain(sources)).threads(PLACE_THREADS)
}

fn halves_spec() -> KernelSpec {
    let bindings = [words("firsts"), words("ends"), words_out("halves")];
    let body = |params: &HalvesParams, [firsts, ends, halves]: &mut [CpuArg<'_>; 3]| {
        let (firsts, ends) = (firsts.read::<u32>(), ends.read::<u32>());
        let halves = &mut halves.write::<u32>()[..params.buckets as usize];
        for (half, (first, end)) in halves.iter_mut().zip(firsts.iter().zip(ends)) {
            *half = (end - first).div_ceil(2);
        }
    };
    let sources = [evariste_cuda::msm::HALVES, evariste_shaders::msm::HALVES];
    KernelSpec::new("msm_halves", "u32", bindings, body, plain(sources)).threads(PLACE_THREADS)
}

fn places_spec() -> KernelSpec {
    let bindings = [words("keys"), words("firsts"), words("offsets"), words_out("places")];
    let body = |params: &PlacesParams, [keys, firsts, offsets, places]: &mut [CpuArg<'_>; 4]| {
        let keys = &keys.read::<u32>()[..params.len as usize];
        let (firsts, offsets) = (firsts.read::<u32>(), offsets.read::<u32>());
        let places = &mut places.write::<u32>()[..params.out_len as usize];
        places[offsets[params.sentinel as usize] as usize..].fill(NO_PLACE);
        for (i, key) in (0..).zip(keys).filter(|(_, key)| **key < params.sentinel) {
            let number = i - firsts[*key as usize];
            if number % 2 == 0 {
                places[(offsets[*key as usize] + number / 2) as usize] = i;
            }
        }
    };
    let sources = [evariste_cuda::msm::PLACES, evariste_shaders::msm::PLACES];
    KernelSpec::new("msm_places", "u32", bindings, body, plain(sources)).threads(PLACE_THREADS)
}

/// A place behind the end of the next list.
const NO_PLACE: u32 = u32::MAX;

fn words(name: &'static str) -> Binding {
    shared::words(name).0
}

fn words_out(name: &'static str) -> Binding {
    shared::words_out(name).0
}

/// Sources that nothing comes before.
fn plain([cuda, wgsl]: [&'static str; 2]) -> impl Fn(Language) -> String {
    move |language| match language {
        Language::Cuda => cuda.to_owned(),
        Language::Wgsl { .. } => wgsl.to_owned(),
    }
}

fn pairs_spec<C: DeviceCurve>(by_value: bool) -> KernelSpec {
    let seen = [
        shared::words("keys"),
        shared::words("values"),
        shared::points::<C>("points", Form::Affine),
        shared::words("places"),
        shared::words_out("out_keys"),
        shared::points_out::<C>("out", Form::Affine),
    ];
    let (threads, bytes) = group_inverse_threads::<C::BaseField>(THREADS);
    let source = move |language| match language {
        Language::Cuda => {
            let values = if by_value { "#define VALUES\n" } else { "" };
            let inverse = cuda_group_inverse(threads);
            shared::cuda_text::<C>(&(inverse + values), calls::<C>(), evariste_cuda::msm::PAIRS)
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
    let body = move |params: &PairsParams, args: &mut [CpuArg<'_>; 6]| {
        pairs::<C>(by_value, lanes.as_ref(), params, args);
    };
    let variant = format!("{} over {}", if by_value { "by value" } else { "in order" }, source::label::<C>());
    KernelSpec::new("msm_pairs", variant, shared::bindings(&seen), body, source)
        .threads(threads)
        .shared_bytes(bytes)
        .iterations(move |params: &PairsParams| pairs_iterations::<C>(params, threads))
}

/// Whether products are called in the kernel that adds pairs. On an H200, that took 0.99 of the time of inlined ones over
/// 24 limbs and 1.02 over 12.
const fn calls<C: DeviceCurve>() -> bool {
    C::BaseField::LIMBS > 12
}

fn pairs_iterations<C: DeviceCurve>(params: &PairsParams, threads: u32) -> u64 {
    let (addition, inverse) = (source::iterations::<C>(), iterations::group_inverse::<C::BaseField>(threads));
    let own = params.out_len.div_ceil(params.threads);
    2 * iterations::repeat(own.into(), addition) + inverse
}

/// Sums that a CPU thread takes at a time: enough for inversions to be a small share.
const GRAIN: usize = 1 << 10;

/// The body for the CPU.
fn pairs<C: DeviceCurve>(
    by_value: bool,
    lanes: Option<&ifma::Montgomery52>,
    params: &PairsParams,
    [keys, values, points, places, out_keys, out]: &mut [CpuArg<'_>; 6],
) {
    let (out_len, words) = (params.out_len as usize, affine_words::<C>());
    let (keys, points) = (&keys.read::<u32>()[..params.len as usize], points.read::<u32>());
    let (values, places) = (values.read::<u32>(), &places.read::<u32>()[..out_len]);
    let value = |i: usize| if by_value { values[i] } else { 2 * i as u32 };
    let is_pair = |i: usize| keys.get(i + 1) == Some(&keys[i]);
    let (out_keys, out) = (&mut out_keys.write::<u32>()[..out_len], &mut out.write::<u32>()[..out_len * words]);
    let outs = out_keys.par_chunks_mut(GRAIN).zip(out.par_chunks_mut(GRAIN * words));
    let memory = || (Additions::<C>::new(lanes), Wiped::<[u32; 2]>::with_capacity(GRAIN));
    places.par_chunks(GRAIN).zip(outs).for_each_init(memory, |(additions, pairs), (places, (out_keys, out))| {
        // Places without an element come last.
        let live = places.partition_point(|place| *place != NO_PLACE);
        out_keys[live..].fill(params.sentinel);
        pairs.clear();
        pairs.extend(
            places[..live].iter().map(|i| *i as usize).filter(|i| is_pair(*i)).map(|i| [value(i), value(i + 1)]),
        );
        // All sums at the start of the output, and from the last one on to where they belong.
        let mut sums = pairs.len();
        additions.add_all(points, pairs, &mut out[..sums * words]);
        for (j, i) in places[..live].iter().map(|i| *i as usize).enumerate().rev() {
            out_keys[j] = keys[i];
            if is_pair(i) {
                sums -= 1;
                out.copy_within(sums * words..(sums + 1) * words, j * words);
            } else {
                point::store(&signed::<C>(points, value(i)), &mut out[j * words..][..words]);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_fill_their_waves() {
        for (limbs, pairs) in [(8, 7_000_000u32), (12, 7_000_000), (12, 3_400_000), (24, 100_000_000)] {
            let lanes = 132 * LANES.iter().find(|(most, _)| limbs <= *most).unwrap().1;
            let threads = pairs.div_ceil(run(132, limbs, pairs));
            let waves = threads.div_ceil(lanes);
            assert!(100 * threads >= 97 * waves * lanes, "{threads} threads for {waves} waves of {lanes}");
        }
        assert_eq!(run(132, 12, 1), MIN_RUN);
        assert_eq!(run(0, 12, 3840), 10);
        assert!(run(u32::MAX, 12, u32::MAX) >= MIN_RUN);
    }
}
