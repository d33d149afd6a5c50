//! The precomputed multiples of the bases.

use std::fmt;

use evariste_backend::{
    Buffer, Element, Queue, Result,
    author::{Arg, CpuArg, Kernel, KernelSpec},
    parallel, params,
};
use evariste_curve::{
    AffinePoint, DeviceCurve, Points, Xyzz, point,
    source::{self, Form},
};
use evariste_field::source::iterations;

use crate::{
    config::MAX_WINDOW,
    shared::{self, load_affine, sum_words},
};

/// The bits of a base's number in a value that also holds an exponent, between its sign and the exponent.
pub(crate) const BASE_BITS: u32 = 26;

/// Threads of a workgroup.
const THREADS: u32 = 128;

/// Points that are doubled and brought to affine form at once.
const PIECE: usize = 1 << 20;

/// Bytes that [`extend`] allocates beside the copies of `len` bases.
pub(crate) fn scratch_bytes<C: DeviceCurve>(len: usize) -> u64 {
    (len.min(PIECE) * Xyzz::<C>::BYTES) as u64
}

/// The bases on the device and their multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrecomputedTable {
    /// The bases alone.
    None,
    /// Tables for digits of different weight.
    Tables {
        /// Points for each base, itself included.
        copies: u32,
        /// Bits of a digit.
        window: u32,
        /// Windows that have buckets of their own.
        windows: u32,
    },
    /// Doublings, for the exponents of digits.
    #[cfg_attr(not(feature = "compare"), allow(dead_code))]
    OddSignedDigits {
        /// Points for each base, itself included.
        copies: u32,
    },
    /// Doublings, for small exponents of digits; the accumulation computes larger ones.
    #[cfg_attr(not(feature = "compare"), allow(dead_code))]
    Doublings {
        /// Points for each base, itself included.
        copies: u32,
    },
}

impl fmt::Display for PrecomputedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrecomputedTable::None => f.write_str("no multiples"),
            PrecomputedTable::Tables { copies, window, windows } => {
                write!(f, "{copies} tables for digits of {window} bits in {windows} windows")
            }
            PrecomputedTable::OddSignedDigits { copies } => write!(f, "{copies} doublings for odd digits"),
            PrecomputedTable::Doublings { copies } => write!(f, "{copies} doublings"),
        }
    }
}

impl PrecomputedTable {
    /// Points for each base.
    pub(crate) fn copies(self) -> u32 {
        match self {
            PrecomputedTable::None => 1,
            PrecomputedTable::Tables { copies, .. }
            | PrecomputedTable::OddSignedDigits { copies }
            | PrecomputedTable::Doublings { copies } => copies,
        }
    }

    /// Digits that share a set of buckets.
    pub(crate) fn tables(self) -> u32 {
        if let PrecomputedTable::Tables { copies, .. } = self { copies } else { 1 }
    }

    /// Exponents for which digits share the buckets of their odd parts, or 0 if these are of all sizes.
    pub(crate) fn doublings(self) -> u32 {
        match self {
            PrecomputedTable::None | PrecomputedTable::Tables { .. } => 0,
            PrecomputedTable::OddSignedDigits { copies } => copies,
            PrecomputedTable::Doublings { .. } => MAX_WINDOW,
        }
    }

    /// The distance of the numbers of a point in one table and in the next, for `len` bases.
    pub(crate) fn stride(self, len: usize) -> usize {
        if let PrecomputedTable::Doublings { .. } = self { 1 << BASE_BITS } else { len }
    }
}

params! {
    struct Params {
        len: u32,
        times: u32,
    }
}

/// Appends to `len` bases their multiples 2^(`times` k) for k from 1 to `tables` − 1.
pub(crate) fn extend<C: DeviceCurve>(
    queue: &Queue,
    table: &mut Buffer<AffinePoint<C>>,
    len: usize,
    tables: usize,
    times: u32,
) -> Result<()> {
    table.expect_len("the tables", len * tables)?;
    let kernel = Kernel::new(queue.device(), spec::<C>())?;
    let points = Points::<C>::new(queue);
    let piece = len.min(PIECE);
    for first in (0..len * (tables - 1)).step_by(piece.max(1)) {
        // Pieces do not read what they write.
        let count = piece.min(len * (tables - 1) - first);
        let (before, mut multiples) = table.as_view_mut().split_at(len + first)?;
        let (from, mut out) = (before.view(first..first + count)?, multiples.view_mut(..count)?);
        let mut sums: Buffer<Xyzz<C>> = queue.device().alloc_with(count, before.secrecy())?;
        let mut left = times;
        while left > 0 {
            // All at once, where the device does not end such long loops.
            let mut params = Params { len: count as u32, times: left };
            while params.times > 1 && !kernel.fits(&params) {
                params.times /= 2;
            }
            let args = &mut [Arg::read(if left == times { from } else { out.as_view() }), Arg::write(&mut sums)];
            // SAFETY: there are `count` points, and `count` sums.
            unsafe { kernel.launch(queue, count.div_ceil(THREADS as usize) as u64, &params, args) }?;
            points.normalise_xyzz(&sums, &mut out)?;
            left -= params.times;
        }
    }
    Ok(())
}

pub(crate) fn spec<C: DeviceCurve>() -> KernelSpec {
    let seen = [shared::points::<C>("a", Form::Affine), shared::points_out::<C>("out", Form::Xyzz)];
    let source = move |language| {
        shared::text::<C>(language, &seen, THREADS, true, [evariste_cuda::msm::DOUBLE, evariste_shaders::msm::DOUBLE])
    };
    let variant = source::label::<C>();
    KernelSpec::new("msm_double", variant, shared::bindings(&seen), run::<C>, source)
        .threads(THREADS)
        .iterations(|params: &Params| iterations::repeat(params.times.into(), source::iterations::<C>()))
}

/// The body for the CPU.
fn run<C: DeviceCurve>(params: &Params, [a, out]: &mut [CpuArg<'_>; 2]) {
    let (a, words) = (a.read::<u32>(), sum_words::<C>());
    parallel::chunks(&mut out.write::<u32>()[..params.len as usize * words], words, &|i, out| {
        let point = point::xyzz_of_affine::<C>(load_affine::<C>(a, i));
        point::store(&(0..params.times).fold(point, |point, _| point::xyzz_double::<C>(point)), out);
    });
}
