//! Elements in another order: bit reversal, transposition, gathering.

use evariste_backend::{
    Arg, Binding, BindingType, CpuArg, Error, KernelSpec, Language, Result, View, ViewMut, parallel, params,
};

use super::{Output, THREADS, TILE_BYTES, Vector, for_each_run, in_and_out, variant, wgsl_kernel};
use crate::{
    DeviceField, Mont,
    source::{self, binding_type, turns},
};

/// Side of the tiles in which a CPU thread transposes: a tile's rows lie in as many cache lines.
const CPU_SIDE: usize = 16;

params! {
    pub(super) struct ReverseParams {
        log_len: u32,
    }

    pub(super) struct TransposeParams {
        rows: u32,
        columns: u32,
        /// Tiles in a row of tiles.
        tiles: u32,
        /// Tiles in all.
        count: u32,
    }

    pub(super) struct GatherParams {
        /// Elements to choose from, and of the result.
        len: u32,
        count: u32,
    }
}

impl<F: DeviceField> Vector<F> {
    /// `out[i] = a[reverse(i)]`, where `reverse` reverses the bits of an index. The length must be a power of two.
    ///
    /// # Errors
    /// [`Error::Length`] with the next power of two as the expected length, and as [`Vector::add`].
    pub fn bit_reverse<'a>(&self, a: impl Into<View<'a, Mont<F>>>, out: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        out.expect_len("the output", a.len())?;
        self.launch_reverse(a.len(), Output::Apart, &mut [Arg::read(a), Arg::write(out)])
    }

    /// [`Vector::bit_reverse`] in place.
    ///
    /// # Errors
    /// As [`Vector::bit_reverse`].
    pub fn bit_reverse_assign<'a>(&self, a: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        let a = a.into();
        self.launch_reverse(a.len(), Output::InPlace, &mut [Arg::write(a)])
    }

    /// Transposes a matrix of `rows` rows that lie one after the other: `out[c · rows + r] = a[r · columns + c]`.
    ///
    /// # Errors
    /// [`Error::Length`] if the length is no multiple of `rows`, and as [`Vector::add`].
    pub fn transpose<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        rows: usize,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        out.expect_len("the output", a.len())?;
        let len = self.checked_len(a.len())?;
        if rows == 0 && len > 0 || rows > 0 && !a.len().is_multiple_of(rows) {
            let expected = a.len().div_ceil(rows.max(1)) * rows;
            return Err(Error::Length { what: "a matrix", expected: expected as u64, actual: len.into() });
        }
        if len == 0 {
            return Ok(());
        }
        let (rows, columns) = (rows as u32, len / rows as u32);
        let side = side::<F>();
        let tiles = columns.div_ceil(side);
        let count = u64::from(tiles) * u64::from(rows.div_ceil(side));
        let (limit, device) = (u32::MAX.into(), self.device.info().id);
        let count = u32::try_from(count).map_err(|_| Error::TooLarge {
            what: "the tiles of a matrix",
            device,
            expected: limit,
            actual: count,
        })?;
        let params = TransposeParams { rows, columns, tiles, count };
        let kernel = self.kernels.transpose.get(&self.device, transpose_spec::<F>)?;
        let args = &mut [Arg::read(a), Arg::write(out)];
        // SAFETY: both buffers have rows · columns elements, and tiles are cut to the matrix.
        unsafe { kernel.launch(self.queue(), count.into(), &params, args) }
    }

    /// `out[i] = a[indices[i]]`, and 0 where the index is beyond the end of `a`.
    ///
    /// # Errors
    /// As [`Vector::add`].
    pub fn gather<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        indices: impl Into<View<'a, u32>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        let (a, indices, out) = (a.into(), indices.into(), out.into());
        out.expect_len("the output", indices.len())?;
        let (len, count) = (self.checked_len(a.len())?, self.checked_len(indices.len())?);
        let kernel = self.kernels.gather.get(&self.device, gather_spec::<F>)?;
        let args = &mut [Arg::read(a), Arg::read(indices), Arg::write(out)];
        // SAFETY: threads touch indices and outputs below `count` only, and elements only below `len`.
        unsafe { kernel.launch(self.queue(), count.div_ceil(THREADS).into(), &GatherParams { len, count }, args) }
    }

    fn launch_reverse(&self, len: usize, output: Output, args: &mut [Arg<'_>]) -> Result<()> {
        let len = self.checked_len(len)?;
        if len == 0 {
            return Ok(());
        }
        if !len.is_power_of_two() {
            let expected = u64::from(len).next_power_of_two();
            return Err(Error::Length { what: "a vector to be bit-reversed", expected, actual: len.into() });
        }
        let kernel = self.kernels.bit_reverse[output as usize].get(&self.device, || reverse_spec::<F>(output))?;
        let params = ReverseParams { log_len: len.ilog2() };
        // SAFETY: the buffers have 2^log_len elements, and reversed indices are below that too.
        unsafe { kernel.launch(self.queue(), len.div_ceil(THREADS).into(), &params, args) }
    }
}

fn reverse(i: usize, log_len: u32) -> usize {
    ((i as u32).reverse_bits() >> 1 >> (31 - log_len)) as usize
}

pub(super) fn reverse_spec<F: DeviceField>(output: Output) -> KernelSpec {
    let (bindings, _) = in_and_out::<F>(output);
    let seen = bindings.clone();
    let source = move |language| match language {
        Language::Cuda => format!("{}{}{}", source::cuda::<F>(), output.define(), evariste_cuda::BIT_REVERSE),
        Language::Wgsl { int64 } => {
            let go = match output {
                Output::InPlace => {
                    "if (i < r) {\n  let x = a_load(i);\n  a_store(i, a_load(r));\n  a_store(r, x);\n  }"
                }
                Output::Apart => "out_store(i, a_load(r));",
            };
            let go = format!("fn go(i: u32, r: u32) {{\n  {go}\n}}\n");
            wgsl_kernel::<F>(int64, &seen, &go, evariste_shaders::BIT_REVERSE)
        }
    };
    let body = |params: &ReverseParams, args: &mut [CpuArg<'_>]| {
        let (log_len, n) = (params.log_len, F::LIMBS);
        match args {
            [a, out] => {
                let a = a.read::<u32>();
                for_each_run::<F>(&mut out.write()[..n << log_len], &|at, out| {
                    for (i, out) in (at / n..).zip(out.chunks_exact_mut(n)) {
                        out.copy_from_slice(&a[reverse(i, log_len) * n..][..n]);
                    }
                });
            }
            [a] => {
                let a = a.write::<u32>();
                for (i, r) in (0..1 << log_len).map(|i| (i, reverse(i, log_len))).filter(|(i, r)| i < r) {
                    let (low, high) = a.split_at_mut(r * n);
                    low[i * n..][..n].swap_with_slice(&mut high[..n]);
                }
            }
            _ => unreachable!("the launch checks the number of buffers"),
        }
    };
    let variant = variant::<F>(match output {
        Output::InPlace => "in place",
        Output::Apart => "of a copy",
    });
    KernelSpec::new("bit_reverse", variant, bindings, body, source).threads(THREADS)
}

/// Side of the tiles in which a matrix is transposed: the largest whose tile, with a column of padding so that its
/// columns lie in different banks, keeps to the memory of a workgroup.
const fn side<F: DeviceField>() -> u32 {
    let mut side = 32;
    while side > 1 && source::tile_bytes::<F>(side * (side + 1)) > TILE_BYTES {
        side /= 2;
    }
    side
}

pub(super) fn transpose_spec<F: DeviceField>() -> KernelSpec {
    let word = binding_type::<F>();
    let bindings = [Binding::read("a", word), Binding::write("out", word)];
    let side = side::<F>();
    let threads = (side * side).min(THREADS);
    let tile = side * (side + 1);
    let source = move |language| match language {
        Language::Cuda => format!(
            "{}#define SIDE {side}u\n#define THREADS {threads}u\n{}",
            source::cuda::<F>(),
            evariste_cuda::TRANSPOSE
        ),
        Language::Wgsl { int64 } => {
            let extra = format!("{}const SIDE = {side}u;\n", source::wgsl_tile::<F>(tile));
            wgsl_kernel::<F>(int64, &bindings, &extra, evariste_shaders::TRANSPOSE)
        }
    };
    let body = |params: &TransposeParams, [a, out]: &mut [CpuArg<'_>; 2]| {
        let (rows, columns, n) = (params.rows as usize, params.columns as usize, F::LIMBS);
        let a = a.read::<u32>();
        let out = &mut out.write::<u32>()[..rows * columns * n];
        parallel::chunks(out, (CPU_SIDE * rows * n).max(1), &|band, out| {
            for first in (0..rows).step_by(CPU_SIDE) {
                for (c, out) in out.chunks_exact_mut(rows * n).enumerate() {
                    for r in first..rows.min(first + CPU_SIDE) {
                        let from = (r * columns + band * CPU_SIDE + c) * n;
                        out[r * n..][..n].copy_from_slice(&a[from..][..n]);
                    }
                }
            }
        });
    };
    KernelSpec::of("transpose_tiles", variant::<F>("matrix"), bindings, body, source)
        .threads(threads)
        .shared_bytes(source::tile_bytes::<F>(tile))
        .turns(move |_: &TransposeParams| 2 * turns::repeat((side * side).div_ceil(threads).into(), 0))
}

pub(super) fn gather_spec<F: DeviceField>() -> KernelSpec {
    let word = binding_type::<F>();
    let bindings = [Binding::read("a", word), Binding::read("indices", BindingType::U32), Binding::write("out", word)];
    let elements = [bindings[0], bindings[2]];
    let source = move |language| match language {
        Language::Cuda => source::cuda::<F>() + evariste_cuda::GATHER,
        Language::Wgsl { int64 } => wgsl_kernel::<F>(int64, &elements, "", evariste_shaders::GATHER),
    };
    let body = |params: &GatherParams, [a, indices, out]: &mut [CpuArg<'_>; 3]| {
        let n = F::LIMBS;
        let a = &a.read::<u32>()[..params.len as usize * n];
        let indices = indices.read::<u32>();
        for_each_run::<F>(&mut out.write()[..params.count as usize * n], &|at, out| {
            for (out, index) in out.chunks_exact_mut(n).zip(&indices[at / n..]) {
                match a.chunks_exact(n).nth(*index as usize) {
                    Some(x) => out.copy_from_slice(x),
                    None => out.fill(0),
                }
            }
        });
    };
    KernelSpec::of("gather", variant::<F>("by index"), bindings, body, source).threads(THREADS)
}
