//! Elements in another order: bit reversal, transposition, gathering and scattering.

use evariste_backend::{
    Error, Result, View, ViewMut,
    author::{Arg, Binding, BindingList, CpuArg, KernelSpec, Language},
    parallel, params,
};

use super::{Output, THREADS, TILE_BYTES, Vector, for_each_run, in_and_out, variant, wgsl_kernel};
use crate::{
    element::Mont,
    field::DeviceField,
    source::{self, binding_type, iterations},
};

/// Side of the tiles in which a CPU thread transposes: each row of a tile lies in a cache line of its own.
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
}

impl<F: DeviceField> Vector<F> {
    /// `out[i] = a[reverse(i)]`, where `reverse` reverses the bits of an index. The length must be a power of two.
    ///
    /// # Errors
    /// [`Error::Length`] if the length is not a power of two, or if `out` has another length; and those [of every
    /// operation](Vector#errors).
    pub fn bit_reverse<'a>(&self, a: impl Into<View<'a, Mont<F>>>, out: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        out.expect_len("the output", a.len())?;
        self.launch_reverse(a.len(), Output::Apart, &mut [Arg::read(a), Arg::write(out)])
    }

    /// [`Vector::bit_reverse`] in place.
    ///
    /// # Errors
    /// [`Error::Length`] if the length is not a power of two; and those [of every operation](Vector#errors).
    pub fn bit_reverse_assign<'a>(&self, a: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        let a = a.into();
        self.launch_reverse(a.len(), Output::InPlace, &mut [Arg::write(a)])
    }

    /// Transposes a matrix of `rows` rows that lie one after the other: `out[c · rows + r] = a[r · columns + c]`.
    ///
    /// # Errors
    /// [`Error::Length`] if the length is not a multiple of `rows`, or if `out` has another length; and those
    /// [of every operation](Vector#errors).
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
    /// [`Error::Length`] unless `indices` and `out` have the same length; and those [of every
    /// operation](Vector#errors).
    pub fn gather<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        indices: impl Into<View<'a, u32>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.gather_scatter.gather(a, indices, out)
    }

    /// `out[indices[i]] = a[i]`, as if one i after the other: the last of several elements for the same place stays, on
    /// every device. Elements with an index beyond the end of `out` are dropped. Places that no index names keep their
    /// value.
    ///
    /// ```
    /// # fn main() -> Result<(), evariste_backend::Error> {
    /// use ark_bls12_381::Fr;
    /// use evariste_backend::Device;
    /// use evariste_field::{Mont, Vector};
    ///
    /// let device = Device::best()?;
    /// let a = device.upload::<Mont<Fr>>(&[10, 11, 12, 13].map(Fr::from))?;
    /// let mut out = device.upload(&[1, 2, 3].map(Fr::from))?;
    /// Vector::new(&device).scatter(&a, &device.upload(&[2, 0, 9, 2])?, &mut out)?;
    /// assert_eq!(out.to_vec()?, [11, 2, 13].map(Fr::from));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Error::Length`] unless `indices` and `a` have the same length.
    /// - [`Error::OutOfMemory`] if the device has no room for 4 bytes of scratch for each element of `out`.
    /// - The errors [of every operation](Vector#errors).
    pub fn scatter<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        indices: impl Into<View<'a, u32>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.gather_scatter.scatter(a, indices, out)
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
    let seen = bindings.list();
    let source = move |language| match language {
        Language::Cuda => format!("{}{}{}", source::cuda::<F>(), output.define(), evariste_cuda::vector::BIT_REVERSE),
        Language::Wgsl { int64 } => {
            let go = match output {
                Output::InPlace => {
                    "if (i < r) {\n  let x = a_load(i);\n  a_store(i, a_load(r));\n  a_store(r, x);\n  }"
                }
                Output::Apart => "out_store(i, a_load(r));",
            };
            let go = format!("fn go(i: u32, r: u32) {{\n  {go}\n}}\n");
            wgsl_kernel::<F>(int64, &seen, &go, evariste_shaders::vector::BIT_REVERSE)
        }
    };
    let body = |params: &ReverseParams, (a, out): (&mut CpuArg<'_>, Option<&mut CpuArg<'_>>)| {
        let (log_len, n) = (params.log_len, F::LIMBS);
        match out {
            Some(out) => {
                let a = a.read::<u32>();
                for_each_run::<F>(&mut out.write()[..n << log_len], &|at, out| {
                    for (i, out) in (at / n..).zip(out.chunks_exact_mut(n)) {
                        out.copy_from_slice(&a[reverse(i, log_len) * n..][..n]);
                    }
                });
            }
            None => {
                let a = a.write::<u32>();
                for (i, r) in (0..1 << log_len).map(|i| (i, reverse(i, log_len))).filter(|(i, r)| i < r) {
                    let (low, high) = a.split_at_mut(r * n);
                    low[i * n..][..n].swap_with_slice(&mut high[..n]);
                }
            }
        }
    };
    let variant = variant::<F>(match output {
        Output::InPlace => "in place",
        Output::Apart => "of a copy",
    });
    KernelSpec::new("bit_reverse", variant, bindings, body, source).threads(THREADS)
}

/// Side of the tiles in which a matrix is transposed. It is the largest whose tile keeps to the memory of a workgroup.
/// A tile has a column of padding, so that its columns lie in different banks.
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
            evariste_cuda::vector::TRANSPOSE
        ),
        Language::Wgsl { int64 } => {
            let extra = format!("{}const SIDE = {side}u;\n", source::wgsl_tile::<F>(tile));
            wgsl_kernel::<F>(int64, &bindings, &extra, evariste_shaders::vector::TRANSPOSE)
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
    KernelSpec::new("transpose_tiles", variant::<F>("matrix"), bindings, body, source)
        .threads(threads)
        .shared_bytes(source::tile_bytes::<F>(tile))
        .iterations(move |_: &TransposeParams| 2 * iterations::repeat((side * side).div_ceil(threads).into(), 0))
}
