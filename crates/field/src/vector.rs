use std::{fmt, sync::Arc};

use evariste_backend::{
    Buffer, Device, Element, Error, Queue, Result, Secrecy, View, ViewMut,
    author::{Arg, Binding, BindingList, CpuArg, KernelSpec, Language, LazyKernel, Wiped},
    parallel, params,
};
use evariste_primitives::GatherScatter;

use crate::{
    add_sub::{self, AddSub},
    element::Mont,
    field::DeviceField,
    ifma::{self, Factor},
    native::Native,
    source::{self, binding_type, iterations},
};

mod formula;
mod fused;
mod map;
mod permute;
mod prefix;
mod reduce;

pub use formula::Formula;
pub use prefix::Prefix;

/// Threads of a workgroup of the element-wise kernels.
const THREADS: u32 = 256;

/// Elements of a thread at the least and at the most, where threads share inversions.
const INVERSE_RUN: [usize; 2] = [4, 64];

/// Threads for each unit that runs workgroups, before they take more elements.
const INVERSE_THREADS: usize = 512;

/// Neighbouring powers that one thread computes: the first costs up to 32 multiplications, the others one.
const POWERS_RUN: usize = 16;

/// Elements that one CPU thread takes at a time.
const GRAIN: usize = 1 << 10;

/// Binary powers that `powers` gets.
const BINARY_POWERS: usize = 32;

/// Longest vector: kernels count elements by 32 bits, and may count past the end by less than a tile.
const MAX_LEN: u32 = u32::MAX - u16::MAX as u32;

/// Operations on vectors of field elements on one device. Kernels are compiled at their first use and kept.
///
/// Operations are queued and return at once. An operation that returns a value to the host waits for it. Operands are
/// buffers and views of parts of them ([`View`], [`ViewMut`]), of at most 2³² − 2¹⁶ elements. A method ending in
/// `_assign` works in place; one ending in `_into` leaves its value on the device. [`Vector::on`] returns the same
/// operations on another queue of the device.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::Device;
/// use evariste_field::{Mont, Vector};
///
/// let device = Device::best()?;
/// let vector = Vector::<Fr>::new(&device);
/// let a = device.upload::<Mont<Fr>>(&[Fr::from(6), Fr::from(0)])?;
/// let mut inverse = device.alloc(2)?;
/// vector.inverse(&a, &mut inverse)?;
/// vector.mul_assign(&mut inverse, &a)?;
/// assert_eq!(inverse.to_vec()?, [Fr::from(1), Fr::from(0)]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Every operation returns:
///
/// - [`Error::WrongDevice`] if an operand or the queue belongs to another device.
/// - [`Error::TooLarge`] for more than 2³² − 2¹⁶ elements or if the kernel needs a larger workgroup or longer loops
///   than the device allows.
/// - [`Error::SecretInput`] if a result of secret operands would come to public memory.
/// - [`Error::Compile`] at the first use if the compiler refuses the source.
/// - [`Error::Unavailable`] at the first use if the compiler is missing.
/// - [`Error::Driver`] if a call of the driver fails.
/// - [`Error::Lost`] if the device is lost.
pub struct Vector<F> {
    /// The device of the kernels, which are compiled later. A queue of another device is refused.
    device: Device,
    queue: Queue,
    kernels: Arc<Kernels>,
    gather_scatter: GatherScatter<Mont<F>>,
}

/// The kernels that were used so far.
#[derive(Default)]
struct Kernels {
    pointwise: [[LazyKernel<PointwiseParams>; 2]; 3],
    inverse: LazyKernel<InverseParams>,
    powers: LazyKernel<PowersParams>,
    map: [[LazyKernel<map::Params>; 2]; 3],
    pow: [LazyKernel<map::PowParams>; 2],
    reduce: [LazyKernel<reduce::Params>; 4],
    prefix: [[LazyKernel<prefix::Params>; 2]; 3],
    bit_reverse: [LazyKernel<permute::ReverseParams>; 2],
    transpose: LazyKernel<permute::TransposeParams>,
    fused: fused::Kept<fused::Params>,
    fused_sums: fused::Kept<reduce::Params>,
}

params! {
    struct PointwiseParams {
        len: u32,
    }

    struct InverseParams {
        len: u32,
        threads: u32,
    }

    struct PowersParams {
        len: u32,
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Add,
    Sub,
    Mul,
}

impl Operation {
    const ALL: [Self; 3] = [Operation::Add, Operation::Sub, Operation::Mul];

    fn function(self) -> &'static str {
        match self {
            Operation::Add => "f_add",
            Operation::Sub => "f_sub",
            Operation::Mul => "f_mul",
        }
    }

    fn apply<F: DeviceField>(self, a: F, b: F) -> F {
        match self {
            Operation::Add => a + b,
            Operation::Sub => a - b,
            Operation::Mul => a.native_mul(&b),
        }
    }
}

/// Where an operation's results go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    /// To a vector of their own.
    Apart,
    /// Where the operand was.
    InPlace,
}

impl Output {
    const ALL: [Self; 2] = [Output::Apart, Output::InPlace];

    /// What the variant of a kernel says of it.
    fn label(self) -> &'static str {
        match self {
            Output::Apart => "",
            Output::InPlace => " in place",
        }
    }

    /// What says so to a kernel in CUDA.
    fn define(self) -> &'static str {
        match self {
            Output::Apart => "",
            Output::InPlace => "#define ASSIGN\n",
        }
    }
}

impl<F: DeviceField> Vector<F> {
    /// Makes the operations on a queue; `&device` stands for the device's default queue. Kernels are compiled at their
    /// first use.
    pub fn new(queue: impl Into<Queue>) -> Self {
        let queue = queue.into();
        let (device, gather_scatter) = (queue.device().clone(), GatherScatter::new(&queue));
        Self { device, queue, kernels: Arc::default(), gather_scatter }
    }

    /// Returns the same operations, with the same kernels, on another queue of the device.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        let (device, kernels) = (self.device.clone(), Arc::clone(&self.kernels));
        Self { device, queue: queue.clone(), kernels, gather_scatter: self.gather_scatter.on(queue) }
    }

    /// Lists the kernels, for tools that compile them ahead. Expressions have kernels of their own.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        let both = Output::ALL;
        let pointwise = Operation::ALL.iter().flat_map(|op| both.map(|output| pointwise_spec::<F>(*op, output)));
        let map = map::Map::ALL.iter().flat_map(|op| both.map(|output| map::spec::<F>(*op, output)));
        let prefix = prefix::Scan::ALL.iter().flat_map(|scan| both.map(|output| prefix::spec::<F>(*scan, output)));
        let others = [inverse_spec::<F>(), powers_spec::<F>(), permute::transpose_spec::<F>()];
        pointwise
            .chain(map)
            .chain(both.map(map::pow_spec::<F>))
            .chain(reduce::Reduction::ALL.map(reduce::spec::<F>))
            .chain(prefix)
            .chain(both.map(permute::reverse_spec::<F>))
            .chain(others)
            .chain(GatherScatter::<Mont<F>>::kernels())
            .collect()
    }

    /// Returns the kernel of [`Vector::powers`], for tools that compile it ahead.
    #[doc(hidden)]
    pub fn powers_kernel() -> KernelSpec {
        powers_spec::<F>()
    }

    /// `out[i] = a[i] + b[i]`.
    ///
    /// # Errors
    /// [`Error::Length`] unless `a`, `b` and `out` have the same length; and those [of every operation](Vector#errors).
    pub fn add<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        b: impl Into<View<'a, Mont<F>>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.apply(Operation::Add, a.into(), b.into(), out.into())
    }

    /// `out[i] = a[i] − b[i]`.
    ///
    /// # Errors
    /// [`Error::Length`] unless `a`, `b` and `out` have the same length; and those [of every operation](Vector#errors).
    pub fn sub<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        b: impl Into<View<'a, Mont<F>>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.apply(Operation::Sub, a.into(), b.into(), out.into())
    }

    /// `out[i] = a[i] · b[i]`.
    ///
    /// # Errors
    /// [`Error::Length`] unless `a`, `b` and `out` have the same length; and those [of every operation](Vector#errors).
    pub fn mul<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        b: impl Into<View<'a, Mont<F>>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.apply(Operation::Mul, a.into(), b.into(), out.into())
    }

    /// `a[i] += b[i]`.
    ///
    /// # Errors
    /// [`Error::Length`] unless both vectors have the same length; and those [of every operation](Vector#errors).
    pub fn add_assign<'a>(&self, a: impl Into<ViewMut<'a, Mont<F>>>, b: impl Into<View<'a, Mont<F>>>) -> Result<()> {
        self.assign(Operation::Add, a.into(), b.into())
    }

    /// `a[i] −= b[i]`.
    ///
    /// # Errors
    /// [`Error::Length`] unless both vectors have the same length; and those [of every operation](Vector#errors).
    pub fn sub_assign<'a>(&self, a: impl Into<ViewMut<'a, Mont<F>>>, b: impl Into<View<'a, Mont<F>>>) -> Result<()> {
        self.assign(Operation::Sub, a.into(), b.into())
    }

    /// `a[i] *= b[i]`.
    ///
    /// # Errors
    /// [`Error::Length`] unless both vectors have the same length; and those [of every operation](Vector#errors).
    pub fn mul_assign<'a>(&self, a: impl Into<ViewMut<'a, Mont<F>>>, b: impl Into<View<'a, Mont<F>>>) -> Result<()> {
        self.assign(Operation::Mul, a.into(), b.into())
    }

    /// `out[i] = 1 / a[i]`, and 0 where `a[i]` is 0. Montgomery's trick: 3 multiplications an element, and one
    /// inversion for every 16 elements or more.
    ///
    /// # Errors
    /// [`Error::Length`] unless both vectors have the same length; and those [of every operation](Vector#errors).
    pub fn inverse<'a>(&self, a: impl Into<View<'a, Mont<F>>>, out: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        out.expect_len("the output", a.len())?;
        let len = self.checked_len(a.len())?;
        let kernel = self.kernels.inverse.get(&self.device, inverse_spec::<F>)?;
        let threads = (self.device.info().parallelism as usize).saturating_mul(INVERSE_THREADS).max(1);
        let mut run = (len as usize).div_ceil(threads).clamp(INVERSE_RUN[0], INVERSE_RUN[1]) as u32;
        while run > 1 && !kernel.fits(&InverseParams { len, threads: len.div_ceil(run) }) {
            run /= 2;
        }
        let threads = len.div_ceil(run);
        let groups = threads.div_ceil(kernel.spec().threads);
        let args = &mut [Arg::read(a), Arg::write(out)];
        // SAFETY: both buffers have `len` elements, and threads touch only those below it.
        unsafe { kernel.launch(self.queue(), groups.into(), &InverseParams { len, threads }, args) }
    }

    /// `out[i] = scale · base^i`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the device has no room for 33 more elements; and those [of every
    /// operation](Vector#errors).
    pub fn powers<'a>(&self, base: F, scale: F, out: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        let out = out.into();
        let len = self.checked_len(out.len())?;
        let mut bases = Wiped::with_capacity(1 + BINARY_POWERS);
        bases.push(scale);
        bases.extend(std::iter::successors(Some(base), |power| Some(power.square())).take(BINARY_POWERS));
        let bases = self.upload::<Mont<F>>(&bases, out.secrecy())?;
        let kernel = self.kernels.powers.get(&self.device, powers_spec::<F>)?;
        let groups = u64::from(len).div_ceil(POWERS_RUN as u64).div_ceil(THREADS.into());
        let args = &mut [Arg::read(&bases), Arg::write(out)];
        // SAFETY: `base` has the scale and 32 powers, and `out` has `len` elements.
        unsafe { kernel.launch(self.queue(), groups, &PowersParams { len }, args) }
    }

    fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Refuses a queue of another device, before anything goes there.
    fn expect_queue(&self) -> Result<()> {
        self.device.expect_same("the queue of vectors", self.queue.device())
    }

    /// Uploads the elements that an operation takes from the host.
    fn upload<T: Element>(&self, host: &[T::Host], secrecy: Secrecy) -> Result<Buffer<T>> {
        self.expect_queue()?;
        self.queue().upload_with(host, secrecy)
    }

    fn apply(
        &self,
        operation: Operation,
        a: View<'_, Mont<F>>,
        b: View<'_, Mont<F>>,
        out: ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        b.expect_len("the second operand", a.len())?;
        out.expect_len("the output", a.len())?;
        let len = self.checked_len(a.len())?;
        let slot = &self.kernels.pointwise[operation as usize][Output::Apart as usize];
        let kernel = slot.get(&self.device, || pointwise_spec::<F>(operation, Output::Apart))?;
        let args = &mut [Arg::read(a), Arg::read(b), Arg::write(out)];
        // SAFETY: all buffers have `len` elements, and threads touch only those below it.
        unsafe { kernel.launch(self.queue(), len.div_ceil(THREADS).into(), &PointwiseParams { len }, args) }
    }

    fn assign(&self, operation: Operation, a: ViewMut<'_, Mont<F>>, b: View<'_, Mont<F>>) -> Result<()> {
        b.expect_len("the second operand", a.len())?;
        let len = self.checked_len(a.len())?;
        let slot = &self.kernels.pointwise[operation as usize][Output::InPlace as usize];
        let kernel = slot.get(&self.device, || pointwise_spec::<F>(operation, Output::InPlace))?;
        let args = &mut [Arg::write(a), Arg::read(b)];
        // SAFETY: both buffers have `len` elements, and threads touch only those below it.
        unsafe { kernel.launch(self.queue(), len.div_ceil(THREADS).into(), &PointwiseParams { len }, args) }
    }

    fn checked_len(&self, len: usize) -> Result<u32> {
        u32::try_from(len).ok().filter(|len| *len <= MAX_LEN).ok_or(Error::TooLarge {
            what: "vector",
            device: self.device.info().id,
            expected: MAX_LEN.into(),
            actual: len as u64,
        })
    }
}

impl<F> Clone for Vector<F> {
    fn clone(&self) -> Self {
        let Self { device, queue, kernels, gather_scatter } = self;
        Self {
            device: device.clone(),
            queue: queue.clone(),
            kernels: Arc::clone(kernels),
            gather_scatter: gather_scatter.clone(),
        }
    }
}

impl<F> fmt::Debug for Vector<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vector").field("device", &self.device).finish_non_exhaustive()
    }
}

/// The secrecy of what is computed from some vectors.
fn secrecy_of<'a, F: DeviceField>(vectors: impl IntoIterator<Item = View<'a, Mont<F>>>) -> Secrecy {
    Secrecy::of(vectors.into_iter().map(|vector| vector.secrecy()))
}

/// Calls `f` with runs of the elements in `out` and the limb where each begins, on all cores.
fn for_each_run<F: DeviceField>(out: &mut [u32], f: &(dyn Fn(usize, &mut [u32]) + Sync)) {
    let limbs = GRAIN * F::LIMBS;
    parallel::chunks(out, limbs, &|run, out| f(run * limbs, out));
}

fn variant<F: DeviceField>(detail: &str) -> String {
    format!("{detail} over {}", source::label::<F>())
}

fn pointwise_spec<F: DeviceField>(operation: Operation, output: Output) -> KernelSpec {
    let ((a, out), _) = in_and_out::<F>(output);
    let bindings = (a, Binding::read("b", binding_type::<F>()), out);
    let seen = bindings.list();
    let source = move |language| {
        let function = operation.function();
        match language {
            Language::Cuda => {
                let define = output.define();
                format!("{}#define OP {function}\n{define}{}", source::cuda::<F>(), evariste_cuda::vector::POINTWISE)
            }
            Language::Wgsl { int64 } => {
                let (_, store) = in_and_out::<F>(output);
                let op = format!("fn op(a: F, b: F) -> F {{ return {function}(a, b); }}\n");
                wgsl_kernel::<F>(int64, &seen, &(op + store), evariste_shaders::vector::POINTWISE)
            }
        }
    };
    let (lanes, sums) = match operation {
        Operation::Add => (None, AddSub::of::<F>(add_sub::Operation::Add)),
        Operation::Sub => (None, AddSub::of::<F>(add_sub::Operation::Sub)),
        Operation::Mul => (ifma::Montgomery52::of::<F>(), None),
    };
    let body = move |params: &PointwiseParams,
                     (a, b, out): (&mut CpuArg<'_>, &mut CpuArg<'_>, Option<&mut CpuArg<'_>>)| {
        let limbs = params.len as usize * F::LIMBS;
        let b = &b.read()[..limbs];
        let run = |a: F, b: &[u32], out: &mut [u32]| operation.apply(a, F::load(b)).store(out);
        match out {
            None => {
                let a = &mut a.write()[..limbs];
                match (&sums, &lanes) {
                    (Some(sums), _) => sums.assign(a, b),
                    (_, Some(lanes)) => lanes.mul_assign(a, Factor::Each(b)),
                    _ => for_each_run::<F>(a, &|at, a| {
                        let b = b[at..].chunks_exact(F::LIMBS);
                        a.chunks_exact_mut(F::LIMBS).zip(b).for_each(|(a, b)| run(F::load(a), b, a));
                    }),
                }
            }
            Some(out) => {
                let (a, out) = (&a.read()[..limbs], &mut out.write()[..limbs]);
                match (&sums, &lanes) {
                    (Some(sums), _) => sums.apply(a, b, out),
                    (_, Some(lanes)) => lanes.mul(a, Factor::Each(b), out),
                    _ => for_each_run::<F>(out, &|at, out| {
                        let inputs = a[at..].chunks_exact(F::LIMBS).zip(b[at..].chunks_exact(F::LIMBS));
                        out.chunks_exact_mut(F::LIMBS).zip(inputs).for_each(|(out, (a, b))| run(F::load(a), b, out));
                    }),
                }
            }
        }
    };
    let variant = variant::<F>(&format!("{operation:?}{}", output.label()));
    let mul = iterations::mul::<F>();
    KernelSpec::new("pointwise", variant, bindings, body, source)
        .threads(THREADS)
        .iterations(move |_: &PointwiseParams| mul)
}

fn inverse_spec<F: DeviceField>() -> KernelSpec {
    let bindings = [Binding::read("a", binding_type::<F>()), Binding::write("out", binding_type::<F>())];
    let (threads, bytes) = source::group_inverse_threads::<F>(THREADS);
    let source = move |language| match language {
        Language::Cuda => {
            [&source::cuda::<F>(), &source::cuda_group_inverse(threads), evariste_cuda::vector::BATCH_INVERSE].concat()
        }
        Language::Wgsl { int64 } => {
            let extra = source::wgsl_group_inverse::<F>(threads);
            wgsl_kernel::<F>(int64, &bindings, &extra, evariste_shaders::vector::BATCH_INVERSE)
        }
    };
    let lanes = ifma::Montgomery52::of::<F>();
    let body = move |params: &InverseParams, [a, out]: &mut [CpuArg<'_>; 2]| {
        let limbs = params.len as usize * F::LIMBS;
        if let Some(lanes) = &lanes {
            let mut one = vec![0; F::LIMBS];
            F::ONE.store(&mut one);
            return lanes.inverse(&a.read()[..limbs], &mut out.write()[..limbs], &one, &invert::<F>);
        }
        let a = a.read::<u32>();
        for_each_run::<F>(&mut out.write()[..limbs], &|at, out| inverse_run::<F>(&a[at..][..out.len()], out));
    };
    let (mul, shared) = (iterations::mul::<F>(), iterations::group_inverse::<F>(threads));
    let iterations = move |params: &InverseParams| {
        let run = u64::from(params.len.div_ceil(params.threads.max(1)));
        iterations::repeat(run, mul) + shared + iterations::repeat(run, 2 * mul)
    };
    KernelSpec::new("batch_inverse", variant::<F>("batch"), bindings, body, source)
        .threads(threads)
        .shared_bytes(bytes)
        .iterations(iterations)
}

/// Inverts elements in device form in place, with one inversion for all; zero maps to zero. Three multiplications an
/// element (Montgomery's trick).
pub fn invert<F: DeviceField>(elements: &mut [u32]) {
    // It may come of secrets.
    let before = Wiped::from(elements.to_vec());
    inverse_run::<F>(&before, elements);
}

/// Montgomery's trick over one run, with the prefix products in `out`.
fn inverse_run<F: DeviceField>(a: &[u32], out: &mut [u32]) {
    let mut product = Native::<F>::ONE;
    for (a, out) in a.chunks_exact(F::LIMBS).zip(out.chunks_exact_mut(F::LIMBS)) {
        product.store(out);
        let x = Native::<F>::load(a);
        if !x.is_zero() {
            product *= x;
        }
    }
    let mut inverse = Native(product.0.inverse().unwrap_or(F::ZERO));
    for (a, out) in a.chunks_exact(F::LIMBS).zip(out.chunks_exact_mut(F::LIMBS)).rev() {
        let x = Native::<F>::load(a);
        if x.is_zero() {
            F::ZERO.store(out);
        } else {
            (inverse * Native::load(out)).store(out);
            inverse *= x;
        }
    }
}

fn powers_spec<F: DeviceField>() -> KernelSpec {
    let bindings = [Binding::read("base", binding_type::<F>()), Binding::write("out", binding_type::<F>())];
    let source = move |language| match language {
        Language::Cuda => format!("{}#define RUN {POWERS_RUN}\n{}", source::cuda::<F>(), evariste_cuda::vector::POWERS),
        Language::Wgsl { int64 } => {
            let run = format!("const RUN = {POWERS_RUN}u;\n");
            wgsl_kernel::<F>(int64, &bindings, &run, evariste_shaders::vector::POWERS)
        }
    };
    let body = |params: &PowersParams, [base, out]: &mut [CpuArg<'_>; 2]| {
        let base = base.read::<u32>().chunks_exact(F::LIMBS);
        let base: Wiped<Native<F>> = base.map(Native::load).collect::<Vec<_>>().into();
        for_each_run::<F>(&mut out.write()[..params.len as usize * F::LIMBS], &|at, out| {
            let first = at / F::LIMBS;
            let digits = (0..BINARY_POWERS).filter(|j| first >> j & 1 == 1);
            let mut x = digits.fold(base[0], |x, j| x * base[1 + j]);
            for out in out.chunks_exact_mut(F::LIMBS) {
                x.store(out);
                x *= base[1];
            }
        });
    };
    let mul = iterations::mul::<F>();
    let all = iterations::repeat(BINARY_POWERS as u64, mul) + iterations::repeat(POWERS_RUN as u64, mul);
    KernelSpec::new("powers", variant::<F>("powers"), bindings, body, source)
        .threads(THREADS)
        .iterations(move |_: &PowersParams| all)
}

/// The data of a kernel from `a` to `out`, or in place: what it binds, and in WGSL how it stores then.
fn in_and_out<F: DeviceField>(output: Output) -> ((Binding, Option<Binding>), &'static str) {
    let word = binding_type::<F>();
    match output {
        Output::InPlace => ((Binding::write("a", word), None), "fn out_store(i: u32, v: F) { a_store(i, v); }\n"),
        Output::Apart => ((Binding::read("a", word), Some(Binding::write("out", word))), ""),
    }
}

/// Bytes of workgroup memory that kernels with a tile keep to: what WebGPU promises.
const TILE_BYTES: u32 = 16 << 10;

/// Threads of a workgroup with one element each in workgroup memory.
const fn tile_threads<F: DeviceField>() -> u32 {
    let mut threads = THREADS;
    while threads > 1 && source::tile_bytes::<F>(threads) > TILE_BYTES {
        threads /= 2;
    }
    threads
}

/// A WGSL kernel over `F`: arithmetic, accessors of the bindings, which are all of elements, `extra`, then `body`.
fn wgsl_kernel<F: DeviceField>(int64: bool, bindings: &[Binding], extra: &str, body: &str) -> String {
    let accessors: String = bindings.iter().map(source::wgsl_accessors::<F>).collect();
    [&source::wgsl::<F>(int64), &accessors, extra, body].concat()
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::{AdditiveGroup, Field, UniformRand, Zero};

    use super::*;
    use crate::reference;

    #[test]
    fn operations_match_the_reference_on_the_cpu() {
        let device = Device::cpu();
        let vector = Vector::<Fr>::new(&device);
        let mut rng = ark_std::test_rng();
        for len in [0, 1, 5, 3000] {
            let mut random = || -> Vec<Fr> { (0..len).map(|_| Fr::rand(&mut rng)).collect() };
            let (mut a, b) = (random(), random());
            a.iter_mut().step_by(7).for_each(|x| *x = Fr::ZERO);
            let (da, db) = (device.upload::<Mont<Fr>>(&a).unwrap(), device.upload(&b).unwrap());
            let mut out = device.alloc(len).unwrap();
            vector.sub(&da, &db, &mut out).unwrap();
            assert_eq!(out.to_vec().unwrap(), reference::pointwise(&a, &b, |a, b| a - b));
            vector.inverse(&da, &mut out).unwrap();
            assert_eq!(out.to_vec().unwrap(), reference::inverse(&a));
            assert_eq!(vector.inner_product(&da, &db).unwrap(), reference::inner_product(&a, &b));
            vector.mul_assign(&mut out, &da).unwrap();
            assert!(out.to_vec().unwrap().iter().zip(&a).all(|(x, a)| *x == if a.is_zero() { *a } else { Fr::ONE }));
            vector.powers(Fr::from(3), Fr::from(5), &mut out).unwrap();
            assert_eq!(out.to_vec().unwrap(), reference::powers(Fr::from(3), Fr::from(5), len));
        }
    }
}
