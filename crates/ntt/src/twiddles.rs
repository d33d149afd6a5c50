//! The twiddles between two passes alone, by each method, to compare their cost.

use std::fmt;

use ark_ff::FftField;
use evariste_backend::{
    Buffer, Queue, ViewMut,
    author::{Arg, Binding, CpuArg, Kernel, KernelSpec, Language},
    parallel, params,
};
use evariste_field::{
    DeviceField, Mont, Vector,
    source::{self, iterations},
};

use crate::{
    config::Twiddles,
    error::{Error, Result},
    pass::methods,
    tables::unity,
};

/// Largest size: exponents are of 32 bits.
const MAX_LOG_N: u32 = 31;

/// Bits of the exponent of a factor.
const BITS: u64 = 32;

/// Elements that one CPU thread takes at a time.
const GRAIN: usize = 1 << 10;

params! {
    struct Params {
        /// 2^log_n.
        len: u32,
        log_n: u32,
        log_columns: u32,
        split: u32,
    }
}

/// The twiddles between the two passes of a square transform of 2^`log_n` elements, by one method of [`Twiddles`],
/// without the transform. Twiddle w^(jk), of output k < 2^⌊`log_n` / 2⌋ and line j, lies at k·2^⌈`log_n` / 2⌉ + j.
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// use ark_bls12_381::Fr;
/// use ark_ff::Field;
/// use evariste_backend::Device;
/// use evariste_field::Mont;
/// use evariste_ntt::{TwiddleTable, Twiddles, reference::root_of_unity};
///
/// let device = Device::best()?;
/// let table = TwiddleTable::<Fr>::new(&device, 6, Twiddles::BinaryPowers)?;
/// let mut twiddles = device.alloc::<Mont<Fr>>(table.size())?;
/// table.fill(&mut twiddles)?;
/// let w: Fr = root_of_unity(6).unwrap();
/// assert_eq!(twiddles.to_vec()?[3 * 8 + 5], w.pow([15]));
/// # Ok(())
/// # }
/// ```
pub struct TwiddleTable<F: DeviceField> {
    queue: Queue,
    kernel: Kernel<Params>,
    powers: Buffer<Mont<F>>,
    params: Params,
}

impl<F: DeviceField + FftField> TwiddleTable<F> {
    /// Compiles the kernel and computes the tables of a method for 2^`log_n` elements, on a queue; `&device` stands for
    /// its default queue. [`Twiddles::Stored`] and [`Twiddles::StoredWithQuotients`] are computed as
    /// [`Twiddles::TwoLevel`] is.
    ///
    /// # Errors
    /// - [`Error::TwoAdicity`] if the field has no root of unity of order 2^`log_n`.
    /// - [`Error::TooLarge`] if `log_n` is above 31.
    /// - [`Error::Device`] if the kernel does not compile, if memory is exhausted, or if the device fails.
    pub fn new(queue: impl Into<Queue>, log_n: u32, method: Twiddles) -> Result<Self> {
        let queue = queue.into();
        let device = queue.device();
        let root = unity::<F>(log_n)?;
        if log_n > MAX_LOG_N {
            return Err(Error::TooLarge { expected: 1 << MAX_LOG_N, actual: 1 << log_n.min(63) });
        }
        let method = computed(method);
        let (vector, split) = (Vector::new(&queue), log_n.div_ceil(2));
        let powers = match method {
            Twiddles::BinaryPowers => {
                let powers = std::iter::successors(Some(root), |power| Some(power.square()));
                queue.upload::<Mont<F>>(&powers.take(log_n.max(1) as usize).collect::<Vec<F>>())?
            }
            Twiddles::TwoLevel => {
                let mut powers = device.alloc((1 << split) + (1 << (log_n - split)))?;
                let (low, high) = powers.as_view_mut().split_at(1 << split)?;
                vector.powers(root, F::ONE, low)?;
                vector.powers(root.pow([1 << split]), F::ONE, high)?;
                powers
            }
            Twiddles::HalfStored => {
                let mut powers = device.alloc((1 << log_n >> 1).max(1))?;
                vector.powers(root, F::ONE, &mut powers)?;
                powers
            }
            _ => queue.upload::<Mont<F>>(&[root])?,
        };
        let kernel = Kernel::new(device, spec::<F>(method))?;
        let params = Params { len: 1 << log_n, log_n, log_columns: split, split };
        Ok(Self { queue, kernel, powers, params })
    }

    /// Returns the number of twiddles.
    pub fn size(&self) -> usize {
        self.params.len as usize
    }

    /// Computes all twiddles into `out`.
    ///
    /// # Errors
    /// [`Error::Device`] unless `out` has [`TwiddleTable::size`] elements, if it lies on another device, or if the
    /// device fails.
    pub fn fill<'a>(&self, out: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        let out = out.into();
        self.queue.device().expect_same("a table of twiddles", out.device())?;
        out.expect_len("a table of twiddles", self.size())?;
        let groups = u64::from(self.params.len).div_ceil(u64::from(self.kernel.spec().threads));
        let args = &mut [Arg::read(&self.powers), Arg::write(out)];
        // SAFETY: exponents are below 2^log_n, for which there are powers, and `out` has one element for each exponent.
        Ok(unsafe { self.kernel.launch(&self.queue, groups, &self.params, args) }?)
    }

    /// Lists the kernels of all methods. For tools that compile ahead.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        Twiddles::ALL.into_iter().filter(|method| computed(*method) == *method).map(spec::<F>).collect()
    }
}

/// The method by which factors are computed that end up as a method has them.
fn computed(method: Twiddles) -> Twiddles {
    match method {
        Twiddles::Stored | Twiddles::StoredWithQuotients => Twiddles::TwoLevel,
        method => method,
    }
}

fn spec<F: DeviceField>(method: Twiddles) -> KernelSpec {
    let word = source::binding_type::<F>();
    let bindings = [Binding::read("powers", word), Binding::write("out", word)];
    let number = method as u32;
    let source = move |language| match language {
        Language::Cuda => {
            let head = format!("#define TWIDDLES {number}\n");
            source::cuda::<F>() + &head + evariste_cuda::ntt::POWER + evariste_cuda::ntt::TWIDDLES_ALONE
        }
        Language::Wgsl { int64 } => {
            let accessors: String = bindings.iter().map(source::wgsl_accessors::<F>).collect();
            let head = format!("const TWIDDLES = {number}u;\n");
            source::wgsl::<F>(int64)
                + &accessors
                + &head
                + evariste_shaders::ntt::POWER
                + evariste_shaders::ntt::TWIDDLES_ALONE
        }
    };
    let body = move |params: &Params, [powers, out]: &mut [CpuArg<'_>; 2]| {
        let (powers, out) = (powers.read::<u32>(), out.write::<u32>());
        let at = |i: usize| F::load(&powers[i * F::LIMBS..][..F::LIMBS]);
        let out = &mut out[..params.len as usize * F::LIMBS];
        let columns = 1 << params.log_columns;
        parallel::chunks(out, GRAIN * F::LIMBS, &|run, out| {
            for (i, out) in (run * GRAIN..).zip(out.chunks_exact_mut(F::LIMBS)) {
                let (j, k) = (i % columns, i / columns);
                factor(method, params, at, j, k).store(out);
            }
        });
    };
    let mul = iterations::mul::<F>();
    let iterations = match method {
        Twiddles::TwoPowers => 2 * iterations::repeat(BITS, 2 * mul),
        Twiddles::OnTheFly | Twiddles::BinaryPowers => iterations::repeat(BITS, 2 * mul),
        _ => mul,
    };
    let variant = format!("factors, {method:?}, over {}", source::label::<F>());
    KernelSpec::new("ntt_twiddles_alone", variant, bindings, body, source)
        .constants(methods::ALL)
        .iterations(move |_: &Params| iterations)
}

/// w^(jk), where `at` gives an entry of the powers of w.
fn factor<F: DeviceField>(method: Twiddles, params: &Params, at: impl Fn(usize) -> F, j: usize, k: usize) -> F {
    let e = j * k;
    match method {
        Twiddles::TwoPowers => at(0).pow([j as u64]).pow([k as u64]),
        Twiddles::OnTheFly => at(0).pow([e as u64]),
        Twiddles::BinaryPowers => (0..params.log_n as usize).filter(|bit| e >> bit & 1 == 1).map(at).product(),
        Twiddles::HalfStored => {
            let half = (1usize << params.log_n >> 1).max(1);
            let stored = at(e & (half - 1));
            if e & half == 0 { stored } else { -stored }
        }
        _ => at(e & ((1 << params.split) - 1)) * at((1 << params.split) + (e >> params.split)),
    }
}

impl<F: DeviceField> fmt::Debug for TwiddleTable<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwiddleTable")
            .field("device", self.queue.device())
            .field("len", &self.params.len)
            .finish_non_exhaustive()
    }
}
