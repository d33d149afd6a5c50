//! Narrow columns from pinned host memory, fetched by a kernel.
//!
//! The copy engine takes each row of a narrow block for itself. On an H200 it brings rows of 128 bytes at 46 GB/s, a
//! third slower beside kernels, and so it does rows that do not start at a multiple of 256 bytes. Few threads that read
//! the host memory over the link bring them at 51 GB/s, beside kernels too.

use std::{ffi::c_void, ptr, sync::Arc};

use cudarc::driver::sys::CUlaunchConfig;

use super::{
    driver::{Context, call},
    kernels::{Kernels, Module},
    stream::Stream,
};
use crate::{
    bindings::{Binding, BindingType},
    error::{Error, Result},
    params,
    spec::{KernelSpec, Language},
};

/// What a thread moves at once.
const WORD: usize = 16;

/// Least bytes of a row: the link carries fewer slower than the copy engine does.
const MIN_ROW_BYTES: usize = 128;

/// Rows of whole such parts are the copy engine's.
const ALIGNMENT: usize = 256;

/// Threads that have as many words under way as the link holds. More of them take the multiprocessors from others: an
/// extension and the tree of 2^20 rows of 256 words took 28.4 ms with these on an H200, 28.7 with four times the
/// workgroups of half the threads, 30.6 with eight times these, and 30.2 by the copy engine in wider blocks.
const GROUPS: u32 = 4;
const THREADS: u32 = 512;

/// Words that a thread has under way.
const UNDER_WAY: u32 = 4;

const SOURCE: &str = r#"
extern "C" __global__ void __launch_bounds__(THREADS) columns_from_host(const Params params, const uint4* host, uint4* device) {
    const uint32_t thread = blockIdx.x * THREADS + threadIdx.x;
    // A thread stays in its column.
    const uint32_t rows_at_once = gridDim.x * THREADS / params.width;
    uint32_t row = thread / params.width;
    if (row >= rows_at_once) return;
    const size_t step = (size_t)rows_at_once * params.pitch;
    size_t at = (size_t)row * params.pitch + thread % params.width;
    for (; row + (UNDER_WAY - 1) * rows_at_once < params.rows; row += UNDER_WAY * rows_at_once, at += UNDER_WAY * step) {
        uint4 words[UNDER_WAY];
        #pragma unroll
        for (int i = 0; i < UNDER_WAY; i++) words[i] = host[at + i * step];
        #pragma unroll
        for (int i = 0; i < UNDER_WAY; i++) device[at + i * step] = words[i];
    }
    for (; row < params.rows; row += rows_at_once, at += step) device[at] = host[at];
}
"#;

params! {
    /// All but the rows in words.
    struct Params {
        rows: u32,
        width: u32,
        pitch: u32,
    }
}

/// Blocks of columns of a matrix in pinned memory, and the kernel that fetches them.
pub(super) struct Fetch {
    module: Arc<Module>,
    params: Params,
}

impl Fetch {
    /// Makes ready for blocks of `rows` rows of `width` bytes, `pitch` bytes apart. `None` if the copy engine is better
    /// at them, or there is no kernel.
    pub(super) fn new(
        context: &Context,
        kernels: &Kernels,
        rows: usize,
        width: usize,
        pitch: usize,
    ) -> Result<Option<Self>> {
        let Some(params) = params(rows, width, pitch) else { return Ok(None) };
        match kernels.get(&spec()) {
            Ok(module) => Ok(Some(Self { module, params })),
            Err(lost @ Error::Lost { .. }) => Err(lost),
            Err(error) => {
                log::debug!("{} copies narrow columns by its copy engine: {error}", context.id());
                Ok(None)
            }
        }
    }

    /// Whether the kernel can take a block from and to these addresses.
    pub(super) fn takes(&self, from: *const c_void, to: u64) -> bool {
        from.addr().is_multiple_of(WORD) && to.is_multiple_of(WORD as u64)
    }

    /// Queues the copy of a block.
    ///
    /// # Safety
    /// The host memory of all its rows is pinned, and is kept until the copy is done. All rows of the target are in
    /// memory that the stream may write. [`Fetch::takes`] both.
    pub(super) unsafe fn queue(
        &self,
        context: &Context,
        stream: &Stream,
        mut from: *const c_void,
        mut to: u64,
    ) -> Result<()> {
        let (module, mut params) = (&self.module, self.params);
        let mut arguments: [*mut c_void; 3] =
            [ptr::from_mut(&mut params).cast(), ptr::from_mut(&mut from).cast(), ptr::from_mut(&mut to).cast()];
        let config = CUlaunchConfig {
            gridDimX: GROUPS,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: module.threads(),
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: module.shared_bytes(),
            hStream: stream.raw(),
            attrs: ptr::null_mut(),
            numAttrs: 0,
        };
        // SAFETY: the kernel takes these parameters and two addresses; what it reads and writes is the caller's. Pinned
        // memory has the same address on the device (CUDA Driver API, Unified Addressing). The driver reads the
        // configuration and the arguments before it returns.
        unsafe { call!(context, cuLaunchKernelEx(&config, module.function(), arguments.as_mut_ptr(), ptr::null_mut())) }
    }
}

/// What the kernel takes, if it is better at such blocks than the copy engine.
fn params(rows: usize, width: usize, pitch: usize) -> Option<Params> {
    let all_in = |unit: usize| width.is_multiple_of(unit) && pitch.is_multiple_of(unit);
    let fits = width <= (GROUPS * THREADS) as usize * WORD && i32::try_from(rows).is_ok();
    if rows < 2 || width < MIN_ROW_BYTES || !fits || !all_in(WORD) || all_in(ALIGNMENT) {
        return None;
    }
    let word = |n: usize| u32::try_from(n).ok();
    Some(Params { rows: word(rows)?, width: word(width / WORD)?, pitch: word(pitch / WORD)? })
}

/// The kernel.
pub(super) fn spec() -> KernelSpec {
    let bindings = vec![Binding::read("host", BindingType::Vec4), Binding::write("device", BindingType::Vec4)];
    let text = |language| match language {
        Language::Cuda => SOURCE.replace("UNDER_WAY", &UNDER_WAY.to_string()).replace("THREADS", &THREADS.to_string()),
        Language::Wgsl { .. } => String::new(),
    };
    KernelSpec::new::<Params, _>("columns_from_host", "", bindings, |_, _| {}, text).threads(THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_takes_what_the_copy_engine_is_slow_at() {
        let taken =
            |rows, width, pitch| params(rows, width, pitch).map(|Params { rows, width, pitch }| [rows, width, pitch]);
        assert_eq!(taken(7, 128, 1024), Some([7, 8, 64]));
        assert_eq!(taken(7, 256, 528), Some([7, 16, 33]));
        // Wide and aligned, narrow, one row, no whole words, wider than all threads, too many rows.
        let refused =
            [(7, 256, 1024), (7, 112, 1024), (1, 128, 1024), (7, 136, 1024), (7, 128, 1032), (7, 32784, 65568)];
        for (rows, width, pitch) in refused.into_iter().chain([(1 << 31, 128, 1024)]) {
            assert_eq!(taken(rows, width, pitch), None, "{rows} {width} {pitch}");
        }
    }
}
