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

/// Threads of a workgroup.
pub(crate) const THREADS: u32 = 128;

params! {
    struct LayerParams {
        rows: u32,
        weighted: u32,
        width: u32,
        log: u32,
    }

    struct BitsParams {
        weighted: u32,
        log: u32,
        sums: u32,
    }

    struct RunningParams {
        rows: u32,
        row_log: u32,
        log: u32,
        odd: u32,
    }
}

/// How rows of 2^`log` buckets are reduced.
///
/// A row has the points x_i, and its value is Σ (i + 1)·x_i, or Σ (2 i + 1)·x_i if buckets are `odd`. A layer takes
/// runs of L = 2^`layers[k]` points. It makes their sums y_j and their weighted sums m_j, Σ t·x_t with t counted in the
/// run: Σ i·x_i = Σ m_j + L Σ j·y_j. So the next layer has as rows the sums, to be weighted again, and the weighted
/// sums. The weighted sums are added up like those of the layers before. In the end the rows are short. Then Σ j·y_j is
/// the sum over b of 2^b times the sum of those y_j whose j has bit b.
///
/// By `running` sums, the first layer makes of each run its part of the row's value. The other layers add these up, as
/// the last step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reduction {
    /// Rows.
    pub(crate) rows: u32,
    /// log₂ of a row's points.
    pub(crate) log: u32,
    /// log₂ of the lengths of runs.
    pub(crate) layers: Vec<u32>,
    /// Whether buckets are those of odd numbers alone.
    pub(crate) odd: bool,
    /// Whether buckets are weighted by running sums.
    pub(crate) running: bool,
}

impl Reduction {
    /// Buckets.
    pub(crate) fn buckets(&self) -> u64 {
        u64::from(self.rows) << self.log
    }

    /// log₂ of a row's points behind the layers.
    fn final_log(&self) -> u32 {
        self.log - self.layers.iter().sum::<u32>()
    }

    /// Rows behind a number of layers.
    fn rows_after(&self, layers: usize) -> u64 {
        u64::from(self.rows) * if self.running { 1 } else { layers as u64 + 1 }
    }

    /// Points in the end.
    pub(crate) fn outputs(&self) -> usize {
        self.rows as usize * self.terms()
    }

    /// Points of scratch behind the layers: one for each thread.
    fn scratch(&self) -> usize {
        self.outputs() * THREADS as usize
    }

    /// Points in the end for one row.
    fn terms(&self) -> usize {
        if self.running { 1 } else { self.final_log() as usize + 1 + self.layers.len() }
    }

    /// For each point of the value of row `row`, its place in the output and log₂ of its weight.
    pub(crate) fn weights(&self, row: usize) -> Vec<(usize, u32)> {
        if self.running {
            return vec![(row, 0)];
        }
        let (each, rows) = (self.final_log() as usize + 1, self.rows as usize);
        // What is multiplied by i counts twice where buckets are odd.
        let twice = u32::from(self.odd);
        let done = twice + self.layers.iter().sum::<u32>();
        let bits = (0..self.final_log()).map(|bit| (row * each + bit as usize, done + bit));
        // The weighted sums of the last layer come first.
        let weighted_sum = |layer: usize| {
            let place = (self.layers.len() - 1 - layer) * rows + row;
            (rows * each + place, twice + self.layers[..layer].iter().sum::<u32>())
        };
        bits.chain([(row * each + each - 1, 0)]).chain((0..self.layers.len()).map(weighted_sum)).collect()
    }

    /// Points behind each layer, and in the last step.
    fn sizes(&self) -> Vec<u64> {
        let mut log = self.log;
        let mut sizes = Vec::new();
        for (k, layer) in self.layers.iter().enumerate() {
            log -= layer;
            sizes.push(self.rows_after(k + 1) << log);
        }
        sizes.push((self.outputs() + self.scratch()) as u64);
        sizes
    }

    /// Points of the largest buffer beside the buckets at most.
    pub(crate) fn largest(&self) -> u64 {
        self.sizes().into_iter().max().unwrap_or(0)
    }

    /// Bytes beside the buckets: the largest two layers that are there at once, or the last one and what follows.
    pub(crate) fn required_bytes<C: DeviceCurve>(&self) -> u64 {
        let sizes: Vec<u64> = iter::once(0).chain(self.sizes()).collect();
        sizes.windows(2).map(|pair| pair[0] + pair[1]).max().unwrap_or(0) * sum_bytes::<C>()
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
        let secrecy = buckets.secrecy();
        // Rows whose elements have weights.
        let weighted = if reduction.running { 0 } else { reduction.rows };
        buckets.expect_len("the buckets", reduction.buckets() as usize)?;
        let (mut done, mut log): (Option<Buffer<_>>, _) = (None, reduction.log);
        for (k, &layer) in reduction.layers.iter().enumerate() {
            log -= layer;
            let rows = reduction.rows_after(k) as u32;
            let mut out = self.device.alloc_with((rows + weighted) as usize * (1 << log), secrecy)?;
            let groups = (u64::from(rows) << log).div_ceil(THREADS.into());
            let input = done.as_ref().map_or(buckets, Buffer::as_view);
            let args = &mut [Arg::read(input), Arg::write(&mut out)];
            if reduction.running && k == 0 {
                let params = RunningParams { rows, row_log: log + layer, log: layer, odd: reduction.odd.into() };
                // SAFETY: the input has `rows` rows of 2^row_log buckets, and the output an element for each run of
                // them.
                unsafe { self.running()?.launch(queue, groups, &params, args) }?;
            } else {
                let params = LayerParams { rows, weighted, width: 1 << log, log: layer };
                // SAFETY: the input has `rows` rows of `width` runs, and the output `weighted` rows of `width` more.
                unsafe { self.layer.launch(queue, groups, &params, args) }?;
            }
            done = Some(out);
        }
        let sums = reduction.outputs() as u32;
        let mut scratch: Buffer<Xyzz<C>> = self.device.alloc_with(reduction.scratch(), secrecy)?;
        let mut out = self.device.alloc_with(sums as usize, secrecy)?;
        let params = BitsParams { weighted, log, sums };
        let input = done.as_ref().map_or(buckets, Buffer::as_view);
        let args = &mut [Arg::read(input), Arg::write(&mut scratch), Arg::write(&mut out)];
        // SAFETY: the input has rows of 2^log elements; their number is that of the sums less log for each weighted
        // one. The scratch has THREADS elements for each sum.
        unsafe { self.bits.launch(queue, sums.into(), &params, args) }?;
        Ok(out)
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
        shared::text::<C>(language, &seen, THREADS, true, sources)
    };
    let variant = source::label::<C>();
    KernelSpec::new("msm_bits", variant, shared::bindings(&seen), bits::<C>, source)
        .threads(THREADS)
        .iterations(bits_iterations::<C>)
}

fn bits_iterations<C: DeviceCurve>(params: &BitsParams) -> u64 {
    let (own, others) = ((1u64 << params.log).div_ceil(THREADS.into()), u64::from(THREADS.ilog2()));
    iterations::repeat(own, source::iterations::<C>()) + iterations::repeat(others, source::iterations::<C>())
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
    let (log, each) = (params.log as usize, params.log as usize + 1);
    let weighted = params.weighted as usize;
    parallel::chunks(&mut out.write::<u32>()[..params.sums as usize * words], words, &|task, out| {
        let (row, bit) = if task < weighted * each { (task / each, task % each) } else { (task - weighted * log, log) };
        let elements = (0..1 << log).filter(|i| bit == log || i >> bit & 1 == 1);
        let sum = elements.fold(zero::<C>(), |sum, i| point::xyzz_add::<C>(sum, load::<C>(input, (row << log) + i)));
        point::store(&sum, out);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_of_many_rows_has_a_point_for_each_thread() {
        // Two digits for each of 2^24 sums: more points than 32 bits count.
        let reduction = Reduction { rows: 1 << 25, log: 2, layers: vec![], odd: false, running: false };
        assert_eq!(reduction.scratch() as u64, (3 << 25) * u64::from(THREADS));
    }
}
