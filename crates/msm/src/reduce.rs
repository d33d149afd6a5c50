//! Buckets to few points, whose sum with weights that are powers of two is that of the buckets with theirs.

use std::{iter, marker::PhantomData};

use evariste_backend::{
    Buffer, Device, Queue, Result, View,
    author::{Arg, CpuArg, Kernel, KernelSpec, Lazy},
    parallel, params,
};
use evariste_curve::{
    DeviceCurve, Xyzz, point,
    source::{self, Form},
};
use evariste_field::source::iterations;

use crate::shared::{self, load, sum_bytes, sum_words, zero};

/// Threads of a workgroup that adds up runs.
const THREADS: u32 = 128;

/// Threads of a workgroup that adds up a run by the bits of places: at least as many as the run has points.
const TREE_THREADS: u32 = 1 << TREE_LOG;

params! {
    struct LayerParams {
        rows: u32,
        weighted: u32,
        width: u32,
        log: u32,
    }

    struct BitsParams {
        rows: u32,
        weighted: u32,
        width: u32,
        log: u32,
        weigh: u32,
    }

    struct RunningParams {
        rows: u32,
        row_log: u32,
        log: u32,
        odd: u32,
    }
}

/// log₂ of the points that one workgroup adds up by the bits of their places.
pub(crate) const TREE_LOG: u32 = 8;

/// Additions of one thread for each level of a tree at most: one in the level, and a doubling and one where it weighs.
pub(crate) const TREE_ADDITIONS: u64 = 3;

/// How rows of 2^`log` buckets are reduced.
///
/// A row has the points x_i, and its value is Σ (i + 1)·x_i, or Σ (2 i + 1)·x_i if buckets are `odd`. A layer takes
/// runs of L = 2^`layers[k]` points. It makes their sums y_j and their weighted sums m_j, Σ t·x_t with t counted in the
/// run: Σ i·x_i = Σ m_j + L Σ j·y_j. So the next layer has as rows the sums, to be weighted again, and the weighted
/// sums. The weighted sums are added up like those of the layers before. A tree takes runs of 2^`trees[k]` points. In
/// place of m_j it makes, for each bit b of t, the sum of those x_t whose t has bit b: m_j is the sum of these with
/// weights 2^b, which trees that `weigh` make of them. In the end each row has one point.
///
/// By `running` sums, the first layer makes of each run its part of the row's value. The trees add these up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reduction {
    /// Rows.
    pub(crate) rows: u32,
    /// log₂ of a row's points.
    pub(crate) log: u32,
    /// log₂ of the lengths of runs that one thread adds up.
    pub(crate) layers: Vec<u32>,
    /// log₂ of the lengths of runs that one workgroup adds up, behind the layers. Together they are `log`.
    pub(crate) trees: Vec<u32>,
    /// Whether trees make weighted sums, as layers do.
    pub(crate) weigh: bool,
    /// Whether buckets are those of odd numbers alone.
    pub(crate) odd: bool,
    /// Whether buckets are weighted by running sums.
    pub(crate) running: bool,
}

/// A step of a reduction: runs of 2^`log` points become one.
#[derive(Clone, Copy, Debug)]
struct Step {
    log: u32,
    is_tree: bool,
    /// Points of a weighted run beside its sum.
    kinds: u32,
    /// Rows before it.
    rows: u64,
    /// log₂ of a row's points behind it.
    left: u32,
    /// Rows that come of it.
    made: u64,
}

impl Step {
    /// Points that a tree works in.
    fn scratch(&self) -> u64 {
        if self.is_tree { self.rows << (self.left + self.log) } else { 0 }
    }

    fn outputs(&self) -> u64 {
        self.made << self.left
    }
}

impl Reduction {
    /// Buckets.
    pub(crate) fn buckets(&self) -> u64 {
        u64::from(self.rows) << self.log
    }

    /// Rows whose points have weights, in all steps.
    fn weighted(&self) -> u32 {
        if self.running { 0 } else { self.rows }
    }

    fn steps(&self) -> impl Iterator<Item = Step> {
        let layers = self.layers.iter().map(|log| (*log, false));
        let trees = self.trees.iter().map(|log| (*log, true));
        layers.chain(trees).scan((u64::from(self.rows), self.log), |(rows, left), (log, is_tree)| {
            *left -= log;
            let (before, kinds) = (*rows, if is_tree && !self.weigh { log } else { 1 });
            *rows += u64::from(self.weighted()) * u64::from(kinds);
            Some(Step { log, is_tree, kinds, rows: before, left: *left, made: *rows })
        })
    }

    /// For each point of the value of row `row`, its place in the output and log₂ of its weight.
    pub(crate) fn weights(&self, row: usize) -> Vec<(usize, u32)> {
        if self.running {
            return vec![(row, 0)];
        }
        // What is multiplied by i counts twice where buckets are odd.
        let (mut done, mut weights) = (u32::from(self.odd), Vec::new());
        for step in self.steps() {
            // What a step makes comes before what others made.
            weights.splice(0..0, done..done + step.kinds);
            done += step.log;
        }
        let made = weights.into_iter().zip(1..).map(|(weight, kind)| (kind * self.rows as usize + row, weight));
        iter::once((row, 0)).chain(made).collect()
    }

    /// Points of the largest buffer beside the buckets at most.
    pub(crate) fn largest(&self) -> u64 {
        self.steps().map(|step| step.scratch().max(step.outputs())).max().unwrap_or(0)
    }

    /// Bytes beside the buckets: those of a step that are there at once.
    pub(crate) fn required_bytes<C: DeviceCurve>(&self) -> u64 {
        let input = iter::once(0).chain(self.steps().map(|step| step.outputs()));
        let all = self.steps().zip(input).map(|(step, input)| input + step.scratch() + step.outputs());
        all.max().unwrap_or(0) * sum_bytes::<C>()
    }
}

#[derive(Debug)]
pub(crate) struct Reduce<C> {
    device: Device,
    layer: Kernel<LayerParams>,
    bits: Kernel<BitsParams>,
    /// Compiled when a plan may use it.
    running: Lazy<Kernel<RunningParams>>,
    curve: PhantomData<fn() -> C>,
}

impl<C: DeviceCurve> Reduce<C> {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        Ok(Self {
            device: device.clone(),
            layer: Kernel::new(device, layer_spec::<C>())?,
            bits: Kernel::new(device, bits_spec::<C>())?,
            running: Lazy::default(),
            curve: PhantomData,
        })
    }

    pub(crate) fn specs() -> Vec<KernelSpec> {
        vec![layer_spec::<C>(), bits_spec::<C>()]
    }

    /// Compiles the kernel of running sums.
    pub(crate) fn prepare_running(&self) -> Result<()> {
        self.running().map(drop)
    }

    fn running(&self) -> Result<&Kernel<RunningParams>> {
        self.running.get_or_make(|| Kernel::new(&self.device, running_spec::<C>()))
    }

    /// The points of [`Reduction::weights`].
    pub(crate) fn run(
        &self,
        queue: &Queue,
        reduction: &Reduction,
        buckets: View<'_, Xyzz<C>>,
    ) -> Result<Buffer<Xyzz<C>>> {
        let (secrecy, weighted) = (buckets.secrecy(), reduction.weighted());
        buckets.expect_len("the buckets", reduction.buckets() as usize)?;
        let mut done: Option<Buffer<_>> = None;
        for (k, step) in reduction.steps().enumerate() {
            let Step { log, left, .. } = step;
            let (rows, width) = (step.rows as u32, 1 << left);
            let mut out = self.device.alloc_with(step.outputs() as usize, secrecy)?;
            let runs = step.rows << left;
            let groups = runs.div_ceil(THREADS.into());
            let input = done.as_ref().map_or(buckets, Buffer::as_view);
            if step.is_tree {
                let mut scratch: Buffer<Xyzz<C>> = self.device.alloc_with(step.scratch() as usize, secrecy)?;
                let params = BitsParams { rows, weighted, width, log, weigh: reduction.weigh.into() };
                let args = &mut [Arg::read(input), Arg::write(&mut scratch), Arg::write(&mut out)];
                // SAFETY: the input has `rows` rows of `width` runs, the scratch as many elements, and the output
                // `weighted` rows of `width` more for each bit, or once.
                unsafe { self.bits.launch(queue, runs, &params, args) }?;
            } else if reduction.running && k == 0 {
                let params = RunningParams { rows, row_log: left + log, log, odd: reduction.odd.into() };
                let args = &mut [Arg::read(input), Arg::write(&mut out)];
                // SAFETY: the input has `rows` rows of 2^row_log buckets, and the output an element for each run of
                // them.
                unsafe { self.running()?.launch(queue, groups, &params, args) }?;
            } else {
                let params = LayerParams { rows, weighted, width, log };
                let args = &mut [Arg::read(input), Arg::write(&mut out)];
                // SAFETY: the input has `rows` rows of `width` runs, and the output `weighted` rows of `width` more.
                unsafe { self.layer.launch(queue, groups, &params, args) }?;
            }
            done = Some(out);
        }
        // There is a step.
        match done {
            Some(done) => Ok(done),
            None => self.device.alloc_with(0, secrecy),
        }
    }
}

fn layer_spec<C: DeviceCurve>() -> KernelSpec {
    let seen = [shared::points::<C>("input", Form::Xyzz), shared::points_out::<C>("out", Form::Xyzz)];
    let source = move |language| {
        let sources = [evariste_cuda::msm::LAYER, evariste_shaders::msm::LAYER];
        shared::text::<C>(language, &seen, THREADS, true, sources)
    };
    let variant = source::label::<C>();
    KernelSpec::new("msm_layer", variant, shared::bindings(&seen), layer::<C>, source)
        .threads(THREADS)
        .iterations(layer_iterations::<C>)
}

fn layer_iterations<C: DeviceCurve>(params: &LayerParams) -> u64 {
    iterations::repeat(2 << params.log, source::iterations::<C>())
}

fn bits_spec<C: DeviceCurve>() -> KernelSpec {
    let seen = [
        shared::points::<C>("input", Form::Xyzz),
        shared::points_out::<C>("scratch", Form::Xyzz),
        shared::points_out::<C>("out", Form::Xyzz),
    ];
    let source = move |language| {
        let sources = [evariste_cuda::msm::BITS, evariste_shaders::msm::BITS];
        shared::quad_text::<C>(language, &seen, TREE_THREADS, sources)
    };
    let variant = source::label::<C>();
    KernelSpec::new("msm_bits", variant, shared::bindings(&seen), bits::<C>, source)
        .threads(TREE_THREADS)
        .iterations(bits_iterations::<C>)
}

fn bits_iterations<C: DeviceCurve>(params: &BitsParams) -> u64 {
    let additions = if params.weigh == 1 { TREE_ADDITIONS } else { 1 } * u64::from(params.log);
    iterations::repeat(additions, source::iterations::<C>())
}

pub(crate) fn running_spec<C: DeviceCurve>() -> KernelSpec {
    let seen = [shared::points::<C>("input", Form::Xyzz), shared::points_out::<C>("out", Form::Xyzz)];
    let source = move |language| {
        let sources = [evariste_cuda::msm::RUNNING, evariste_shaders::msm::RUNNING];
        shared::text::<C>(language, &seen, THREADS, true, sources)
    };
    let variant = source::label::<C>();
    KernelSpec::new("msm_running", variant, shared::bindings(&seen), running::<C>, source)
        .threads(THREADS)
        .iterations(running_iterations::<C>)
}

fn running_iterations<C: DeviceCurve>(params: &RunningParams) -> u64 {
    let additions = (2 << params.log) + u64::from(2 * params.row_log) + 3;
    iterations::repeat(additions, source::iterations::<C>())
}

/// The body for the CPU.
fn running<C: DeviceCurve>(params: &RunningParams, [input, out]: &mut [CpuArg<'_>; 2]) {
    let (words, input) = (sum_words::<C>(), input.read::<u32>());
    let width = 1usize << (params.row_log - params.log);
    let out = &mut out.write::<u32>()[..params.rows as usize * width * words];
    parallel::chunks(out, words, &|run, out| {
        let add = point::xyzz_add::<C>;
        let (mut sum, mut weighted_sum) = (zero::<C>(), zero::<C>());
        for t in (0..1 << params.log).rev() {
            sum = add(sum, load::<C>(input, (run << params.log) + t));
            if t > 0 {
                weighted_sum = add(weighted_sum, sum);
            }
        }
        // This number of buckets of the row lies before the run.
        let before = (run % width) << params.log;
        let shift = (0..params.row_log).rev().fold(zero::<C>(), |shift, bit| {
            let double = add(shift, shift);
            if before >> bit & 1 == 1 { add(double, sum) } else { double }
        });
        weighted_sum = add(weighted_sum, shift);
        if params.odd == 1 {
            weighted_sum = add(weighted_sum, weighted_sum);
        }
        point::store(&add(weighted_sum, sum), out);
    });
}

/// The body for the CPU.
fn layer<C: DeviceCurve>(params: &LayerParams, [input, out]: &mut [CpuArg<'_>; 2]) {
    let words = sum_words::<C>();
    let (runs, shift) = (params.rows * params.width, params.weighted * params.width);
    let (runs, shift) = (runs as usize, shift as usize);
    let input = &input.read::<u32>()[..(runs << params.log) * words];
    let out = &mut out.write::<u32>()[..(runs + shift) * words];
    let (sums, rest) = out.split_at_mut(shift * words);
    let (weighted_sums, plain) = rest.split_at_mut(shift * words);
    let mut tasks: Vec<(&mut [u32], Option<&mut [u32]>)> = sums
        .chunks_exact_mut(words)
        .zip(weighted_sums.chunks_exact_mut(words))
        .map(|(sum, weighted_sum)| (sum, Some(weighted_sum)))
        .collect();
    tasks.extend(plain.chunks_exact_mut(words).map(|sum| (sum, None)));
    parallel::chunks(&mut tasks, 1, &|run, tasks| {
        let (out, weighted_out) = &mut tasks[0];
        let (mut sum, mut weighted_sum) = (zero::<C>(), zero::<C>());
        for t in (0..1 << params.log).rev() {
            sum = point::xyzz_add::<C>(sum, load::<C>(input, (run << params.log) + t));
            if t > 0 && weighted_out.is_some() {
                weighted_sum = point::xyzz_add::<C>(weighted_sum, sum);
            }
        }
        point::store(&sum, out);
        if let Some(out) = weighted_out {
            point::store(&weighted_sum, out);
        }
    });
}

/// The body for the CPU.
fn bits<C: DeviceCurve>(params: &BitsParams, [input, _, out]: &mut [CpuArg<'_>; 3]) {
    let (words, input) = (sum_words::<C>(), input.read::<u32>());
    let &BitsParams { rows, weighted, width, log, weigh } = params;
    let (weighted, width, kinds) = (weighted as usize, width as usize, if weigh == 1 { 1 } else { log as usize });
    let made = rows as usize + weighted * kinds;
    parallel::chunks(&mut out.write::<u32>()[..made * width * words], words, &|at, out| {
        let (row, place) = (at / width, at % width);
        // The sums, then those of each bit or the weighted ones, then the sums of rows without weights.
        let (row, kind) = match row.checked_sub(weighted * (kinds + 1)) {
            Some(other) => (weighted + other, None),
            None => (row % weighted, (row / weighted).checked_sub(1)),
        };
        let from = (row * width + place) << log;
        let (mut sum, mut weighted_sum) = (zero::<C>(), zero::<C>());
        for t in (0..1usize << log).rev() {
            if kind.is_none_or(|bit| weigh == 1 || t >> bit & 1 == 1) {
                sum = point::xyzz_add::<C>(sum, load::<C>(input, from + t));
            }
            if t > 0 && weigh == 1 && kind.is_some() {
                weighted_sum = point::xyzz_add::<C>(weighted_sum, sum);
            }
        }
        point::store(if weigh == 1 && kind.is_some() { &weighted_sum } else { &sum }, out);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_many_rows_are_more_than_32_bits_count() {
        // Three digits for each of 2^30 sums.
        let reduction = Reduction {
            rows: 3 << 30,
            log: 2,
            layers: vec![],
            trees: vec![2],
            weigh: false,
            odd: false,
            running: false,
        };
        assert_eq!(reduction.largest(), 12 << 30);
    }
}
