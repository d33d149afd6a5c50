use std::{fmt, marker::PhantomData};

use ark_ff::AdditiveGroup;
use evariste_backend::{
    Buffer, Device, Error, Result,
    author::{Arg, Binding, CpuArg, Kernel, KernelSpec, Language},
    parallel, params,
};
use evariste_curve::{
    AffinePoint, DeviceCurve, Xyzz, point,
    source::{self, Form},
};
use evariste_field::{
    DeviceField,
    source::{binding_type, iterations},
};

use crate::THREADS;

/// Additions that one run of [`AddChain`] does for each point.
pub const ADDITIONS: u32 = 60;

/// Many mixed additions for each point and nothing else. The time of a run is that of its arithmetic, and gives the
/// rate of additions that a device can reach.
pub struct AddChain<C> {
    kernel: Kernel<Params>,
    curve: PhantomData<fn() -> C>,
}

params! {
    struct Params {
        len: u32,
    }
}

impl<C: DeviceCurve> AddChain<C> {
    /// Compiles the kernel for `device`.
    ///
    /// # Errors
    /// [`Error::Compile`] if the compiler refuses the kernel, [`Error::Unavailable`] if there is no compiler.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self { kernel: Kernel::new(device, Self::kernel())?, curve: PhantomData })
    }

    /// The kernel, for compiling it ahead.
    pub fn kernel() -> KernelSpec {
        let word = binding_type::<C::BaseField>();
        let bindings = [Binding::read("a", word), Binding::write("out", word)];
        let seen = [(bindings[0], Form::Affine), (bindings[1], Form::Xyzz)];
        let source = move |language| match language {
            Language::Cuda => {
                format!("{}#define LENGTH {ADDITIONS}u\n{}", source::cuda::<C>(), evariste_cuda::curve::CHAIN)
            }
            Language::Wgsl { int64 } => {
                let length = format!("const LENGTH = {ADDITIONS}u;\n");
                [&source::wgsl_kernel::<C>(int64, &seen), &length, evariste_shaders::curve::CHAIN].concat()
            }
        };
        let body = |params: &Params, [a, out]: &mut [CpuArg<'_>; 2]| {
            let (len, limbs) = (params.len as usize, C::BaseField::LIMBS);
            let a = &a.read::<u32>()[..len * 2 * limbs];
            parallel::chunks(&mut out.write::<u32>()[..len * 4 * limbs], 4 * limbs, &|i, out| {
                let points = (0..ADDITIONS as usize).map(|j| point::load(&a[(i + j) % len * 2 * limbs..]));
                let sum = points.fold([C::BaseField::ZERO; 4], point::xyzz_add_affine::<C>);
                point::store(&sum, out);
            });
        };
        let variant = format!("{ADDITIONS} over {}", source::label::<C>());
        let iterations = iterations::repeat(ADDITIONS.into(), source::iterations::<C>());
        KernelSpec::new("point_chain", variant, bindings, body, source)
            .threads(THREADS)
            .iterations(move |_: &Params| iterations)
    }

    /// `out[i]` = the sum of the [`ADDITIONS`] points from `a[i]` on, indices modulo the length, by additions one
    /// after the other.
    ///
    /// # Errors
    /// - [`Error::Length`] if lengths differ.
    /// - [`Error::TooLarge`] if a chain has more iterations than the loops of a thread may take
    ///   ([`Limits::loop_iterations`](evariste_backend::Limits::loop_iterations)).
    /// - [`Error::WrongDevice`] if a buffer is on another device.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn run(&self, a: &Buffer<AffinePoint<C>>, out: &mut Buffer<Xyzz<C>>) -> Result<()> {
        out.expect_len("the output", a.len())?;
        let len = u32::try_from(a.len()).map_err(|_| Error::TooLarge {
            what: "vector of points",
            device: a.device().info().id,
            expected: u32::MAX.into(),
            actual: a.len() as u64,
        })?;
        let args = &mut [Arg::read(a), Arg::write(out)];
        // SAFETY: both buffers have `len` elements, and threads touch only those below it.
        unsafe { self.kernel.launch(&a.device().default_queue(), len.div_ceil(THREADS).into(), &Params { len }, args) }
    }
}

impl<C> fmt::Debug for AddChain<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddChain").field("kernel", &self.kernel).finish_non_exhaustive()
    }
}
