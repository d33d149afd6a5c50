//! The first round of a transform that is then two: see `cuda/ntt/halves.cu`.

use std::fmt::Write as _;

use evariste_backend::{
    author::{Binding, BindingList, KernelSpec, Language},
    parallel,
};
use evariste_field::{
    DeviceField,
    source::{self, iterations},
};

use super::{
    Args, KernelVariant, Params,
    cpu::{Data, Table},
    flags,
};
use crate::config::Twiddles;

impl KernelVariant {
    /// The round as a pass over pairs. Its flags are read when it runs: it does too little for them to count.
    pub(crate) fn halving(threads: u32, interleaved: bool, in_place: bool) -> Self {
        Self {
            log_rows: 1,
            log_width: threads.ilog2(),
            log_radix: 1,
            threads,
            twiddles: Twiddles::TwoLevel,
            interleaved,
            in_place,
            flags: None,
            log_root: None,
            root_shift: None,
            direct_stores: false,
            halving: true,
        }
    }

    pub(super) fn halving_spec<F: DeviceField>(self) -> KernelSpec {
        let Self { threads, interleaved, in_place, .. } = self;
        let bindings = self.bindings::<F>();
        let seen = bindings.list();
        let source = move |language| match language {
            Language::Cuda => self.halving_cuda::<F>(),
            Language::Wgsl { int64 } => self.halving_wgsl::<F>(int64, &seen),
        };
        let variant = format!(
            "halves on {threads}{}{} over {}",
            if interleaved { ", interleaved" } else { "" },
            if in_place { ", in place" } else { "" },
            source::label::<F>(),
        );
        let body = move |params: &Params, args: Args<'_, '_>| halve::<F>(params, args);
        // Both elements are scaled by two factors, and their sum and difference by one and two.
        let iterations = 7 * iterations::mul::<F>();
        KernelSpec::new("ntt_halves", variant, bindings, body, source)
            .constants(flags::ALL)
            .threads(threads)
            .iterations(move |_: &Params| iterations)
    }

    fn halving_cuda<F: DeviceField>(self) -> String {
        let mut text = source::cuda::<F>();
        text += "#define LOG_ROWS 1\n";
        text += if self.interleaved { "#define INTERLEAVED\n" } else { "" };
        text += if self.in_place { "#define IN_PLACE\n" } else { "" };
        text + evariste_cuda::ntt::LINES + evariste_cuda::ntt::HALVES
    }

    fn halving_wgsl<F: DeviceField>(self, int64: bool, bindings: &[Binding]) -> String {
        let mut text = source::wgsl::<F>(int64);
        text.extend(bindings.iter().map(source::wgsl_accessors::<F>));
        if self.in_place {
            text += "fn y_store(i: u32, v: F) { x_store(i, v); }\n";
        }
        let interleaved = self.interleaved;
        let _ = write!(
            text,
            "const LOG_ROWS = 1u;\nconst INTERLEAVED = {interleaved};\nfn flags() -> u32 {{ return params.flags; }}\n"
        );
        text + evariste_shaders::ntt::LINES + evariste_shaders::ntt::HALVES
    }
}

/// The body for the CPU.
fn halve<F: DeviceField>(params: &Params, ((x, y), tables): Args<'_, '_>) {
    let data = Data::<F>::of(x, y);
    let [_, twiddles, scale] = tables.each_ref().map(|table| Table::<F>::new(table.read()));
    let [load, store] = params.endpoints();
    let factor = |entry: usize| twiddles.at(params.twiddles as usize + entry);
    let one = |number: u32| {
        let line = params.line(number);
        let (from, to) = (params.place(1, line.index, load), params.place(1, line.index, store));
        let element = |row: usize| {
            let position = from + (row << load.stride);
            let x = data.load(load.address(line, position));
            if params.has(flags::SCALE_IN) { x * scale.scale_of(params, position) } else { x }
        };
        let (a, b) = (element(0), element(1));
        let [low, high] = params.two_levels(params.twiddle_index(1, line.index), 1);
        let sum = if params.has(flags::TWIDDLE_ZERO) { (a + b) * factor(1 << params.split) } else { a + b };
        data.store(store.address(line, to), sum);
        let difference = (a - b) * factor(low) * factor(high);
        data.store(store.address(line, to + (1 << store.stride)), difference);
    };
    let count = (params.lines - params.first) as usize;
    parallel::ranges(count, &|lines| lines.for_each(|line| one(params.first + line as u32)));
}
