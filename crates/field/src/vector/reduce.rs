//! Reductions to one element: sum, product, inner product, the value of a polynomial.
//!
//! A workgroup reduces a chunk of neighbouring elements. Each thread takes those at its place modulo the workgroup's
//! size, from the last to the first. A tree then combines the threads' results. Chunks are so long that there are at
//! most [`MAX_CHUNKS`]. One more launch reduces their results. So any length takes two launches, and each element is
//! read once.
//!
//! All four are one scheme: `combine(near, far, d)` joins the results of a segment and of the one after it, whose
//! elements lie 2^d further. It is a sum, a product, or near + z^(2^d) · far for a polynomial's value at z. A table has
//! those powers. Such a value takes one multiplication and one addition for each element.

use evariste_backend::{
    Buffer, Result, Secrecy, View, ViewMut,
    author::{Arg, Binding, BindingList, CpuArg, Kernel, KernelSpec, Language, Wiped},
    parallel, params,
};

use super::{THREADS, Vector, secrecy_of, tile_threads, variant, wgsl_kernel};
use crate::{
    element::Mont,
    field::DeviceField,
    ifma,
    source::{self, binding_type, iterations},
};

/// Most chunks of a vector: one workgroup reduces their results, a few for each thread. On a GPU of 132 multiprocessors
/// this many workgroups of 256 threads also fill it.
const MAX_CHUNKS: usize = 1024;

/// log₂ of the elements that a thread has at least, where there are several chunks.
const LOG_RUN: u32 = 3;

/// log₂ of the shortest chunk of a CPU thread.
const LOG_CPU_CHUNK: u32 = 10;

/// Chunks for each CPU thread, so that none waits long for the others.
const CPU_CHUNKS: usize = 4;

/// Binary powers in a table of weights: of the elements of a chunk of chunks, at most.
pub(super) const WEIGHTS: usize = 64;

params! {
    pub(super) struct Params {
        pub(super) len: u32,
        /// log₂ of the elements of a chunk. The last chunk may have fewer.
        pub(super) log_chunk: u32,
        pub(super) chunks: u32,
        /// Chunks are counted from the end of the vector, so that it is the first elements that may lack in a chunk.
        /// Results lie in the order of the chunks in the vector all the same.
        pub(super) reversed: u32,
        /// Where in the table of weights the ones of this vector start.
        pub(super) weights: u32,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reduction {
    Sum,
    Product,
    InnerProduct,
    Evaluate,
}

impl Reduction {
    pub(super) const ALL: [Self; 4] =
        [Reduction::Sum, Reduction::Product, Reduction::InnerProduct, Reduction::Evaluate];

    /// What reduces the results of chunks.
    fn of_results(self) -> Self {
        if self == Reduction::InnerProduct { Reduction::Sum } else { self }
    }

    fn combine(self) -> Combine {
        match self {
            Reduction::Sum | Reduction::InnerProduct => Combine::Sum,
            Reduction::Product => Combine::Product,
            Reduction::Evaluate => Combine::Horner,
        }
    }
}

/// How the results of two segments are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    Sum,
    Product,
    /// near + weight · far.
    Horner,
}

impl Combine {
    pub(super) fn identity<F: DeviceField>(self) -> F {
        if self == Combine::Product { F::ONE } else { F::ZERO }
    }

    pub(super) fn apply<F: DeviceField>(self, near: F, far: F, weight: F) -> F {
        match self {
            Combine::Sum => near.native_add(&far),
            Combine::Product => near.native_mul(&far),
            Combine::Horner => near.native_add(&weight.native_mul(&far)),
        }
    }

    /// The identity and the function in CUDA, where `weights` is a buffer.
    pub(super) fn cuda(self) -> &'static str {
        match self {
            Combine::Sum => "#define IDENTITY f_zero()\n#define COMBINE(near, far, log) f_add(near, far)\n",
            Combine::Product => "#define IDENTITY f_one()\n#define COMBINE(near, far, log) f_mul(near, far)\n",
            Combine::Horner => {
                "#define WEIGHTS\n#define IDENTITY f_zero()\n\
                 #define COMBINE(near, far, log) f_add(near, f_mul(far, weights[params.weights + (log)]))\n"
            }
        }
    }

    /// The same in WGSL.
    pub(super) fn wgsl(self) -> String {
        let (identity, combine) = match self {
            Combine::Sum => ("f_zero()", "f_add(near, far)"),
            Combine::Product => ("f_one()", "f_mul(near, far)"),
            Combine::Horner => ("f_zero()", "f_add(near, f_mul(far, weights_load(params.weights + log)))"),
        };
        format!(
            "fn identity() -> F {{ return {identity}; }}\n\
             fn combine(near: F, far: F, log: u32) -> F {{ return {combine}; }}\n"
        )
    }

    pub(super) fn has_weights(self) -> bool {
        self == Combine::Horner
    }
}

impl<F: DeviceField> Vector<F> {
    /// `Σ a[i]`. Waits for it.
    ///
    /// # Errors
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   chunks.
    /// - [`Error::Undecodable`](evariste_backend::Error::Undecodable) if the value is not an element of the field, as
    ///   may happen if `a` was never written.
    /// - The errors [of every operation](Vector#errors).
    pub fn sum<'a>(&self, a: impl Into<View<'a, Mont<F>>>) -> Result<F> {
        let a = a.into();
        self.value(a.secrecy(), |out| self.sum_into(a, out))
    }

    /// `out[0] = Σ a[i]`.
    ///
    /// # Errors
    /// - [`Error::Length`](evariste_backend::Error::Length) unless `out` has one element.
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   chunks.
    /// - The errors [of every operation](Vector#errors).
    pub fn sum_into<'a>(&self, a: impl Into<View<'a, Mont<F>>>, out: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        self.reduce(Reduction::Sum, a.into(), None, None, out.into())
    }

    /// `Π a[i]`. Waits for it.
    ///
    /// # Errors
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   chunks.
    /// - [`Error::Undecodable`](evariste_backend::Error::Undecodable) if the value is not an element of the field, as
    ///   may happen if `a` was never written.
    /// - The errors [of every operation](Vector#errors).
    pub fn product<'a>(&self, a: impl Into<View<'a, Mont<F>>>) -> Result<F> {
        let a = a.into();
        self.value(a.secrecy(), |out| self.product_into(a, out))
    }

    /// `out[0] = Π a[i]`.
    ///
    /// # Errors
    /// - [`Error::Length`](evariste_backend::Error::Length) unless `out` has one element.
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   chunks.
    /// - The errors [of every operation](Vector#errors).
    pub fn product_into<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.reduce(Reduction::Product, a.into(), None, None, out.into())
    }

    /// `Σ a[i] · b[i]`. Waits for it.
    ///
    /// # Errors
    /// - [`Error::Length`](evariste_backend::Error::Length) unless both vectors have the same length.
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   chunks.
    /// - [`Error::Undecodable`](evariste_backend::Error::Undecodable) if the value is not an element of the field, as
    ///   may happen if `a` was never written.
    /// - The errors [of every operation](Vector#errors).
    pub fn inner_product<'a>(&self, a: impl Into<View<'a, Mont<F>>>, b: impl Into<View<'a, Mont<F>>>) -> Result<F> {
        let (a, b) = (a.into(), b.into());
        self.value(secrecy_of([a, b]), |out| self.inner_product_into(a, b, out))
    }

    /// `out[0] = Σ a[i] · b[i]`.
    ///
    /// # Errors
    /// - [`Error::Length`](evariste_backend::Error::Length) unless `out` has one element and both vectors have the same
    ///   length.
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   chunks.
    /// - The errors [of every operation](Vector#errors).
    pub fn inner_product_into<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        b: impl Into<View<'a, Mont<F>>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        let (a, b) = (a.into(), b.into());
        b.expect_len("the second operand", a.len())?;
        self.reduce(Reduction::InnerProduct, a, Some(b), None, out.into())
    }

    /// `Σ a[i] · z^i`: the value at `z` of the polynomial with these coefficients. Waits for it.
    ///
    /// # Errors
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   chunks.
    /// - [`Error::Undecodable`](evariste_backend::Error::Undecodable) if the value is not an element of the field, as
    ///   may happen if `a` was never written.
    /// - The errors [of every operation](Vector#errors).
    pub fn evaluate<'a>(&self, a: impl Into<View<'a, Mont<F>>>, z: F) -> Result<F> {
        let a = a.into();
        self.value(a.secrecy(), |out| self.evaluate_into(a, z, out))
    }

    /// `out[0] = Σ a[i] · z^i`.
    ///
    /// # Errors
    /// - [`Error::Length`](evariste_backend::Error::Length) unless `out` has one element.
    /// - [`Error::OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the results of the
    ///   chunks.
    /// - The errors [of every operation](Vector#errors).
    pub fn evaluate_into<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        z: F,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        let weights = self.weights(z, secrecy_of([a, out.as_view()]))?;
        self.reduce(Reduction::Evaluate, a, None, Some(&weights), out)
    }

    /// What `queue` puts into a vector of one element.
    pub(super) fn value(&self, secrecy: Secrecy, queue: impl FnOnce(ViewMut<'_, Mont<F>>) -> Result<()>) -> Result<F> {
        let mut out = self.device.alloc_with(1, secrecy)?;
        queue(out.as_view_mut())?;
        let mut value = [F::ZERO];
        self.queue().read_into(&out, &mut value)?;
        Ok(value[0])
    }

    /// z^(2^j).
    pub(super) fn weights(&self, z: F, secrecy: Secrecy) -> Result<Buffer<Mont<F>>> {
        let mut powers = Wiped::with_capacity(WEIGHTS);
        powers.extend(std::iter::successors(Some(z), |power| Some(power.square())).take(WEIGHTS));
        self.upload(&powers, secrecy)
    }

    fn reduce(
        &self,
        reduction: Reduction,
        a: View<'_, Mont<F>>,
        b: Option<View<'_, Mont<F>>>,
        weights: Option<&Buffer<Mont<F>>>,
        out: ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        out.expect_len("a reduction's output", 1)?;
        self.checked_len(a.len())?;
        self.reduce_level(reduction, a, b, weights, 0, out)
    }

    /// Reduces chunks, then their results, which are one chunk if the limit on loop iterations allows
    /// needs. Elements stand for 2^`log` each.
    pub(super) fn reduce_level(
        &self,
        reduction: Reduction,
        a: View<'_, Mont<F>>,
        b: Option<View<'_, Mont<F>>>,
        weights: Option<&Buffer<Mont<F>>>,
        log: u32,
        out: ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        let kernel = self.kernels.reduce[reduction as usize].get(&self.device, || spec::<F>(reduction))?;
        let params = self.chunking(kernel, a.len() as u32, log);
        if params.chunks == 1 {
            return self.launch_reduce(reduction, params, a, b, weights, out);
        }
        let secrecy = secrecy_of([a, out.as_view()].into_iter().chain(b).chain(weights.map(View::from)));
        let mut results = self.device.alloc_with(params.chunks as usize, secrecy)?;
        self.launch_reduce(reduction, params, a, b, weights, results.as_view_mut())?;
        self.reduce_level(reduction.of_results(), results.as_view(), None, weights, log + params.log_chunk, out)
    }

    /// The chunks of a vector whose elements stand for 2^`log` each. For results of chunks it is one chunk, if the
    /// bound on the loops of a thread allows that.
    pub(super) fn chunking(&self, kernel: &Kernel<Params>, len: u32, log: u32) -> Params {
        let longest = if log == 0 { self.log_chunk(len as usize) } else { len.next_power_of_two().ilog2() };
        let of = |log_chunk: u32| {
            let chunks = (len as usize).div_ceil(1 << log_chunk).max(1) as u32;
            Params { len, log_chunk, chunks, reversed: 0, weights: log }
        };
        let shortest = tile_threads::<F>().ilog2().max(1);
        let log_chunk = (shortest..longest).rev().fold(
            longest,
            |kept, shorter| {
                if kernel.fits(&of(kept)) { kept } else { shorter }
            },
        );
        of(log_chunk)
    }

    fn log_chunk(&self, len: usize) -> u32 {
        let info = self.device.info();
        let (least, most) = match info.is_processor() {
            true => (LOG_CPU_CHUNK, (CPU_CHUNKS * info.parallelism as usize).clamp(1, MAX_CHUNKS)),
            false => (tile_threads::<F>().ilog2() + LOG_RUN, MAX_CHUNKS),
        };
        len.div_ceil(most).next_power_of_two().ilog2().max(least)
    }

    /// `a`, `b` and the weights as `reduction` has them; `out` has a place for each chunk's result.
    pub(super) fn launch_reduce(
        &self,
        reduction: Reduction,
        params: Params,
        a: View<'_, Mont<F>>,
        b: Option<View<'_, Mont<F>>>,
        weights: Option<&Buffer<Mont<F>>>,
        out: ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        let kernel = self.kernels.reduce[reduction as usize].get(&self.device, || spec::<F>(reduction))?;
        let mut args = vec![Arg::read(a)];
        args.extend(b.map(Arg::read));
        args.extend(weights.map(Arg::read));
        args.push(Arg::write(out));
        // SAFETY: the inputs have `len` elements, chunks lie inside them, the output has a place for each,
        // and the exponents of weights stay below log₂ of the length.
        unsafe { kernel.launch(self.queue(), params.chunks.into(), &params, &mut args) }
    }
}

pub(super) fn spec<F: DeviceField>(reduction: Reduction) -> KernelSpec {
    let combine = reduction.combine();
    let word = binding_type::<F>();
    let (a, out) = (Binding::read("a", word), Binding::write("out", word));
    let b = (reduction == Reduction::InnerProduct).then(|| Binding::read("b", word));
    let weights = combine.has_weights().then(|| Binding::read("weights", word));
    let bindings = (a, b, weights, out);
    let threads = tile_threads::<F>();
    let seen = bindings.list();
    let source = move |language| match language {
        Language::Cuda => {
            let products = if reduction == Reduction::InnerProduct { "#define PRODUCTS\n" } else { "" };
            cuda::<F>(&(source::cuda::<F>() + products), combine)
        }
        Language::Wgsl { int64 } => {
            let term = if reduction == Reduction::InnerProduct { "f_mul(a_load(i), b_load(i))" } else { "a_load(i)" };
            wgsl::<F>(int64, &seen, &format!("fn term(i: u32) -> F {{ return {term}; }}\n"), combine)
        }
    };
    let lanes = if reduction == Reduction::InnerProduct { ifma::Montgomery52::of::<F>() } else { None };
    let body = move |params: &Params, args: Args<'_, '_>| run::<F>(combine, lanes.as_ref(), params, args);
    let mul = iterations::mul::<F>();
    let join = if combine == Combine::Sum { 0 } else { mul };
    let term = if reduction == Reduction::InnerProduct { mul } else { join };
    KernelSpec::new("reduce", variant::<F>(&format!("{reduction:?}")), bindings, body, source)
        .threads(threads)
        .shared_bytes(source::tile_bytes::<F>(threads))
        .iterations(iterations(threads, term, join))
}

/// The kernel in CUDA, after the arithmetic and what tells its elements from those of a vector.
pub(super) fn cuda<F: DeviceField>(before: &str, combine: Combine) -> String {
    let log_threads = tile_threads::<F>().ilog2();
    format!("{before}{}#define LOG_THREADS {log_threads}\n{}", combine.cuda(), evariste_cuda::vector::REDUCE)
}

/// The kernel in WGSL, with `term` a function that gives an element.
pub(super) fn wgsl<F: DeviceField>(int64: bool, bindings: &[Binding], term: &str, combine: Combine) -> String {
    let threads = tile_threads::<F>();
    let extra = format!(
        "{}{}{term}const LOG_THREADS = {}u;\n",
        source::wgsl_tile::<F>(threads),
        combine.wgsl(),
        threads.ilog2()
    );
    wgsl_kernel::<F>(int64, bindings, &extra, evariste_shaders::vector::REDUCE)
}

/// Loop iterations of a thread, where an element takes `term` and joining two results `join`.
pub(super) fn iterations(threads: u32, term: u64, join: u64) -> impl Fn(&Params) -> u64 {
    move |params| {
        let chunk = u64::from(params.len).min(1 << params.log_chunk);
        iterations::repeat(chunk.div_ceil(threads.into()), term) + iterations::repeat(threads.ilog2().into(), join)
    }
}

const _: () = assert!(THREADS.is_power_of_two());

/// `a`, `b` of inner products, weights, `out`.
type Args<'a, 'm> = (&'a mut CpuArg<'m>, Option<&'a mut CpuArg<'m>>, Option<&'a mut CpuArg<'m>>, &'a mut CpuArg<'m>);

fn run<F: DeviceField>(
    combine: Combine,
    lanes: Option<&ifma::Montgomery52>,
    params: &Params,
    (a, b, weights, out): Args<'_, '_>,
) {
    let (a, b) = (a.read::<u32>(), b.map(|b| b.read::<u32>()));
    let at = |limbs: &[u32], i: usize| F::load(&limbs[i * F::LIMBS..]);
    let weight = weights.map_or(F::ONE, |weights| at(weights.read(), params.weights as usize));
    let term = |i: usize| b.map_or_else(|| at(a, i), |b| at(a, i).native_mul(&at(b, i)));
    let (len, chunks) = (params.len as usize, params.chunks as usize);
    let results = &mut out.write::<u32>()[..chunks * F::LIMBS];
    parallel::chunks(results, F::LIMBS, &|slot, result| {
        let chunk = if params.reversed == 1 { chunks - 1 - slot } else { slot };
        let before = chunk << params.log_chunk;
        let count = (len - before).min(1 << params.log_chunk);
        let start = if params.reversed == 1 { len - before - count } else { before };
        if let (Some(lanes), Some(b)) = (lanes, b) {
            let [a, b] = [a, b].map(|x| &x[start * F::LIMBS..(start + count) * F::LIMBS]);
            return lanes.inner_product(a, b).chunks_exact(F::LIMBS).map(F::load).sum::<F>().store(result);
        }
        let elements = (start..start + count).rev();
        elements.fold(combine.identity(), |far, i| combine.apply(term(i), far, weight)).store(result);
    });
}
