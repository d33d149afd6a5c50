use std::sync::Arc;

#[cfg(doc)]
use evariste_backend::Error;
use evariste_backend::{
    Queue, Result, Secrecy, View, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, loop_iterations},
    params,
};
use rayon::prelude::*;

use crate::words::{THREADS, checked_len, source};

/// Elements of a tile: with 8 a thread, a workgroup's memory of 16 KiB holds the tile.
const TILE: u32 = 8 * THREADS;

/// Workgroup memory of a scan over the threads of a group in WGSL.
pub(crate) const GROUP_BYTES: u32 = 4 * 2 * THREADS;

/// Loop iterations of such a scan.
pub(crate) const GROUP_ITERATIONS: u64 = loop_iterations(THREADS.ilog2() as u64, 0);

params! {
    struct SumsParams {
        len: u32,
        tiles: u32,
    }

    struct TilesParams {
        input_len: u32,
        len: u32,
    }
}

/// Computes exclusive prefix sums of 32-bit integers modulo 2³².
///
/// A first kernel adds tiles of 2048 elements. The same scheme scans their sums. A last kernel scans each tile from its
/// offset. An element takes two reads and one write.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::Device;
/// use evariste_primitives::Scan;
///
/// let device = Device::best()?;
/// let counts = device.upload::<u32>(&[3, 0, 4, 1])?;
/// let mut starts = device.alloc(5)?;
/// Scan::new(&device)?.exclusive(&counts, &mut starts)?;
/// assert_eq!(starts.to_vec()?, [0, 3, 3, 7, 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scan {
    queue: Queue,
    sums: Arc<Kernel<SumsParams>>,
    tiles: Arc<Kernel<TilesParams>>,
}

impl Scan {
    /// Makes a plan on a queue (`&device` is its default one). Compiles the kernels.
    ///
    /// # Errors
    /// - [`Error::Compile`] if the compiler or the driver refuses a kernel.
    /// - [`Error::Unavailable`] if the compiler is missing and the disk cache has not the kernels.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn new(queue: impl Into<Queue>) -> Result<Self> {
        let queue = queue.into();
        let (sums, tiles) = (Kernel::new(queue.device(), sums_spec())?, Kernel::new(queue.device(), tiles_spec())?);
        Ok(Self { queue, sums: Arc::new(sums), tiles: Arc::new(tiles) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), ..self.clone() }
    }

    /// Returns the kernels, for compiling them ahead.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        vec![sums_spec(), tiles_spec()]
    }

    /// Returns the bytes of scratch that [`Scan::exclusive`] takes for an output of `len` elements.
    pub fn required_bytes(&self, len: usize) -> u64 {
        Self::scratch_bytes(len)
    }

    /// [`Scan::required_bytes`] on any device, for plans that count memory before they make their kernels.
    #[doc(hidden)]
    pub fn scratch_bytes(len: usize) -> u64 {
        let levels = std::iter::successors(Some(len), |len| Some(len.div_ceil(TILE as usize))).skip(1);
        levels.take_while(|tiles| *tiles > 1).map(|tiles| 8 * tiles as u64).sum::<u64>() + 4
    }

    /// Sets `out[i]` to the sum of `input[j]` for `j < i`, modulo 2³². The output has the length of the input, or one
    /// element more, the sum of all.
    ///
    /// # Errors
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::Length`] unless `out` has the length of `input` or one element more.
    /// - [`Error::TooLarge`] if it has more than [`MAX_LEN`](crate::MAX_LEN).
    /// - [`Error::OutOfMemory`] if there is no room for the scratch.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    ///
    /// Nothing has been written to `out` then, unless a call of the driver failed or the device was lost.
    pub fn exclusive<'a>(&self, input: impl Into<View<'a, u32>>, out: impl Into<ViewMut<'a, u32>>) -> Result<()> {
        let (input, out) = (input.into(), out.into());
        let device = self.queue.expect_device(self.sums.device())?.device();
        device.expect_same("the input of a scan", input.device())?;
        device.expect_same("the output of a scan", out.device())?;
        if out.len() != input.len() + 1 {
            out.expect_len("the output of a scan", input.len())?;
        }
        checked_len(device, "scan", out.len())?;
        self.level(input, out)
    }

    /// Of checked lengths.
    fn level(&self, input: View<'_, u32>, out: ViewMut<'_, u32>) -> Result<()> {
        let (input_len, len) = (input.len() as u32, out.len() as u32);
        let tiles = len.div_ceil(TILE);
        if tiles == 0 {
            return Ok(());
        }
        let secrecy = Secrecy::of([input.secrecy(), out.secrecy()]);
        let offsets = if tiles == 1 {
            let mut zero = self.queue.device().alloc_with(1, secrecy)?;
            self.queue.clear::<u32>(&mut zero)?;
            zero
        } else {
            let mut sums = self.queue.device().alloc_with::<u32>(tiles as usize, secrecy)?;
            let params = SumsParams { len: input_len, tiles };
            // SAFETY: the input has `len` elements and `sums` has `tiles`; tiles beyond them do nothing.
            unsafe {
                self.sums.launch(&self.queue, tiles.into(), &params, &mut [Arg::read(input), Arg::write(&mut sums)])
            }?;
            let mut offsets = self.queue.device().alloc_with::<u32>(tiles as usize, secrecy)?;
            self.level(sums.as_view(), offsets.as_view_mut())?;
            offsets
        };
        let args = &mut [Arg::read(input), Arg::read(&offsets), Arg::write(out)];
        // SAFETY: input and output have `input_len` and `len` elements, and `offsets` has one for each tile of `len`.
        unsafe { self.tiles.launch(&self.queue, tiles.into(), &TilesParams { input_len, len }, args) }
    }
}

fn sums_spec() -> KernelSpec {
    let bindings = [Binding::read("input", BindingType::U32), Binding::write("sums", BindingType::U32)];
    let body = |params: &SumsParams, [input, sums]: &mut [CpuArg<'_>; 2]| {
        let input = &input.read::<u32>()[..params.len as usize];
        sums.write::<u32>()[..params.tiles as usize].par_iter_mut().enumerate().for_each(|(tile, sum)| {
            let first = (tile * TILE as usize).min(input.len());
            let end = (first + TILE as usize).min(input.len());
            *sum = input[first..end].iter().fold(0, |sum, x| sum.wrapping_add(*x));
        });
    };
    let source = |language| {
        source(
            language,
            &[("TILE", TILE)],
            &[evariste_cuda::GROUP, evariste_cuda::primitives::SCAN_SUMS],
            &[evariste_shaders::primitives::GROUP, evariste_shaders::primitives::SCAN_SUMS],
        )
    };
    KernelSpec::new("scan_sums", "u32", bindings, body, source)
        .threads(THREADS)
        .shared_bytes(GROUP_BYTES)
        .iterations(|_: &SumsParams| loop_iterations((TILE / THREADS).into(), 0) + GROUP_ITERATIONS)
}

fn tiles_spec() -> KernelSpec {
    let bindings = [
        Binding::read("input", BindingType::U32),
        Binding::read("offsets", BindingType::U32),
        Binding::write("out", BindingType::U32),
    ];
    let body = |params: &TilesParams, [input, offsets, out]: &mut [CpuArg<'_>; 3]| {
        let input = &input.read::<u32>()[..params.input_len as usize];
        let out = out.write::<u32>()[..params.len as usize].par_chunks_mut(TILE as usize);
        out.zip(offsets.read::<u32>()).enumerate().for_each(|(tile, (out, offset))| {
            let first = tile * TILE as usize;
            let mut sum = *offset;
            for (i, out) in out.iter_mut().enumerate() {
                *out = sum;
                sum = sum.wrapping_add(input.get(first + i).copied().unwrap_or(0));
            }
        });
    };
    let source = |language| {
        source(
            language,
            &[("TILE", TILE)],
            &[evariste_cuda::GROUP, evariste_cuda::primitives::SCAN_TILES],
            &[evariste_shaders::primitives::GROUP, evariste_shaders::primitives::SCAN_TILES],
        )
    };
    KernelSpec::new("scan_tiles", "u32", bindings, body, source)
        .threads(THREADS)
        .shared_bytes(4 * (TILE + TILE / 32) + GROUP_BYTES)
        .iterations(|_: &TilesParams| 4 * loop_iterations((TILE / THREADS).into(), 0) + GROUP_ITERATIONS)
}
