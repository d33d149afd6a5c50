use std::{fmt, marker::PhantomData, sync::Arc};

#[cfg(doc)]
use evariste_backend::Error;
use evariste_backend::{
    Buffer, Element, Queue, Result, Secrecy, View, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Language, loop_iterations},
    parallel, params,
};

use crate::words::{THREADS, checked_len};

/// Values that a thread adds at least: what it leaves to the next level is two.
const MIN_SLICE: usize = 32;

/// Values that a thread adds at most.
const MAX_SLICE: usize = 4096;

/// Values that a thread adds at least where it may take few iterations of loops: with fewer, levels would not become
/// shorter.
const LEAST_SLICE: usize = 4;

/// Threads that each unit which runs workgroups should get, as far as slices do not become too short.
const THREADS_PER_UNIT: usize = 2048;

/// An associative operation with an identity, for kernels to reduce with.
///
/// The identity's device form is all zero bytes.
///
/// # Safety
/// Kernels are made of its [`source`](Monoid::source), and a launch relies on these promises:
///
/// - The functions and accessors of the text end.
/// - They touch no memory but their arguments and the elements that they are asked for.
/// - The type `M` has [`Element::BYTES`] bytes. This is a multiple of 4 and of the size of
///   [`binding_type`](Monoid::binding_type).
pub unsafe trait Monoid: Send + Sync + 'static {
    /// The values in buffers, of a multiple of 4 bytes.
    type Element: Element;

    /// A value as CPU bodies compute with it.
    type Value: Copy + Send + Sync;

    /// Returns its name in messages.
    fn name() -> String;

    /// Returns the word in which WGSL sees buffers of values.
    fn binding_type() -> BindingType;

    /// Returns the text of the type `M` of values as they lie in buffers, and of the functions `m_zero()` and
    /// `m_add(a, b)`. In WGSL also the accessors `x_load(i: u32) -> M` and, where it is written,
    /// `x_store(i: u32, value: M)` of each of `bindings`.
    fn source(language: Language, bindings: &[Binding]) -> String;

    /// Returns the most loop iterations that `m_add` takes in WGSL.
    fn iterations() -> u64;

    /// Returns the identity.
    fn zero() -> Self::Value;

    /// Applies the operation to two values.
    fn add(a: Self::Value, b: Self::Value) -> Self::Value;

    /// Reads a value from its device form, of [`Element::BYTES`] / 4 words.
    fn load(words: &[u32]) -> Self::Value;

    /// Writes the device form of a value, of [`Element::BYTES`] / 4 words.
    fn store(value: &Self::Value, words: &mut [u32]);
}

params! {
    struct Params {
        len: u32,
        slice: u32,
        slices: u32,
        segments: u32,
        last: u32,
    }
}

/// Adds the values with equal keys, for sorted keys.
///
/// Equal slices divide the work whatever the keys are: one segment with all values takes no longer than many small
/// ones. A thread adds a slice. It writes the sums of the segments inside. Its parts of the first and the last segment
/// go to the next level, a shorter vector of the same kind.
pub struct SegmentedSum<M> {
    queue: Queue,
    kernel: Arc<Kernel<Params>>,
    monoid: PhantomData<fn() -> M>,
}

impl<M: Monoid> SegmentedSum<M> {
    /// Makes a plan on a queue (`&device` is its default one). Compiles the kernel.
    ///
    /// # Errors
    /// - [`Error::Compile`] if the compiler or the driver refuses the kernel.
    /// - [`Error::Unavailable`] if the compiler is missing and the disk cache has not the kernel.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn new(queue: impl Into<Queue>) -> Result<Self> {
        let queue = queue.into();
        let kernel = Arc::new(Kernel::new(queue.device(), Self::spec())?);
        Ok(Self { queue, kernel, monoid: PhantomData })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), kernel: Arc::clone(&self.kernel), monoid: PhantomData }
    }

    /// Returns the kernel, for compiling it ahead.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        vec![Self::spec()]
    }

    fn spec() -> KernelSpec {
        let word = M::binding_type();
        let bindings = [
            Binding::read("keys", BindingType::U32),
            Binding::read("values", word),
            Binding::write("out", word),
            Binding::write("next_keys", BindingType::U32),
            Binding::write("next_values", word),
        ];
        let seen = [bindings[1], bindings[2], bindings[4]];
        let source = move |language| {
            let body = match language {
                Language::Cuda => evariste_cuda::primitives::SEGMENTED_SUM,
                Language::Wgsl { .. } => evariste_shaders::primitives::SEGMENTED_SUM,
            };
            M::source(language, &seen) + body
        };
        let add = M::iterations();
        KernelSpec::new("segmented_sum", M::name(), bindings, run::<M>, source)
            .threads(THREADS)
            .iterations(move |params: &Params| loop_iterations(params.slice.into(), add))
    }

    /// Returns the bytes of scratch that [`SegmentedSum::reduce`] takes for `len` values.
    pub fn required_bytes(&self, len: usize) -> u64 {
        let below = |len: usize| {
            let slices = len.div_ceil(self.slice(len));
            if slices <= 1 { 1 } else { 2 * slices }
        };
        let levels = std::iter::successors(Some(below(len)), |len| (*len > 1).then(|| below(*len)));
        levels.map(|len| (len * (4 + M::Element::BYTES)) as u64).sum()
    }

    /// Sets `out[k]` to the sum of `values[i]` over all i with `keys[i] = k`, in ascending order of i; the empty sum is
    /// the identity. Values whose key is `out.len()` or more are left out.
    ///
    /// The keys must be in ascending order; otherwise the sums are unspecified.
    ///
    /// # Errors
    /// - [`Error::Length`] unless there is a value for each key.
    /// - [`Error::WrongDevice`] if a view or the queue is of another device.
    /// - [`Error::TooLarge`] for more than [`MAX_LEN`](crate::MAX_LEN) keys or sums. Also if the loop for the fewest
    ///   values of a thread exceeds the iterations that the device allows.
    /// - [`Error::SecretInput`] if keys or values are secret and `out` is not.
    /// - [`Error::OutOfMemory`] if there is no room for the scratch.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    ///
    /// After [`Error::OutOfMemory`], [`Error::Driver`] and [`Error::Lost`] `out` may have some of the sums. After any
    /// other error nothing has been written.
    pub fn reduce<'a>(
        &self,
        keys: impl Into<View<'a, u32>>,
        values: impl Into<View<'a, M::Element>>,
        out: impl Into<ViewMut<'a, M::Element>>,
    ) -> Result<()> {
        let (keys, values, mut out) = (keys.into(), values.into(), out.into());
        values.expect_len("the values of a segmented sum", keys.len())?;
        let device = self.queue.expect_device(self.kernel.device())?.device();
        device.expect_same("the keys of a segmented sum", keys.device())?;
        device.expect_same("the values of a segmented sum", values.device())?;
        device.expect_same("the output of a segmented sum", out.device())?;
        checked_len(device, "segmented sum", keys.len())?;
        checked_len(device, "segmented sum", out.len())?;
        let given = Secrecy::of([keys.secrecy(), values.secrecy()]);
        given.expect_to(out.secrecy(), "segmented sum", ["the keys or the values", "the output"])?;
        let slice = self.slice(keys.len()) as u32;
        self.kernel.expect_fits(&Params { slice, ..Params::default() })?;
        self.queue.clear(&mut out)?;
        let mut level = self.level(keys, values, out.reborrow())?;
        while let Some((keys, values)) = level {
            level = self.level(keys.as_view(), values.as_view(), out.reborrow())?;
        }
        Ok(())
    }

    /// Adds slices, and gives what is left to add.
    fn level(
        &self,
        keys: View<'_, u32>,
        values: View<'_, M::Element>,
        out: ViewMut<'_, M::Element>,
    ) -> Result<Option<Rest<M>>> {
        let slice = self.slice(keys.len());
        let slices = keys.len().div_ceil(slice);
        let last = slices <= 1;
        let rest = if last { 1 } else { 2 * slices };
        let secrecy = Secrecy::of([keys.secrecy(), values.secrecy(), out.secrecy()]);
        let mut next_keys = self.queue.device().alloc_with(rest, secrecy)?;
        let mut next_values = self.queue.device().alloc_with(rest, secrecy)?;
        let params = Params {
            len: keys.len() as u32,
            slice: slice as u32,
            slices: slices as u32,
            segments: out.len() as u32,
            last: last.into(),
        };
        let args = &mut [
            Arg::read(keys),
            Arg::read(values),
            Arg::write(out),
            Arg::write(&mut next_keys),
            Arg::write(&mut next_values),
        ];
        // SAFETY: there are `len` keys and values; threads own slices of them, check keys against `segments`, the
        // length of the output, and unless this is the last level write two of the 2 · `slices` rests.
        unsafe { self.kernel.launch(&self.queue, slices.div_ceil(THREADS as usize) as u64, &params, args) }?;
        Ok((!last).then_some((next_keys, next_values)))
    }

    fn slice(&self, len: usize) -> usize {
        let threads = (self.queue.device().info().parallelism as usize).saturating_mul(THREADS_PER_UNIT).max(1);
        let mut slice = (len / threads).clamp(MIN_SLICE, MAX_SLICE);
        while slice > LEAST_SLICE && !self.kernel.fits(&Params { slice: slice as u32, ..Params::default() }) {
            slice = (slice / 2).max(LEAST_SLICE);
        }
        slice
    }
}

/// Keys, and values to add for them.
type Rest<M> = (Buffer<u32>, Buffer<<M as Monoid>::Element>);

impl<M> fmt::Debug for SegmentedSum<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentedSum").field("kernel", &self.kernel).finish_non_exhaustive()
    }
}

/// The body for the CPU.
fn run<M: Monoid>(params: &Params, [keys, values, out, next_keys, next_values]: &mut [CpuArg<'_>; 5]) {
    let words = M::Element::BYTES / 4;
    let (len, slice) = (params.len as usize, params.slice as usize);
    let keys = &keys.read::<u32>()[..len];
    let values = &values.read::<u32>()[..len * words];
    let mut out = &mut out.write::<u32>()[..params.segments as usize * words];
    let slices = keys.chunks(slice).zip(values.chunks(slice * words));
    if params.last == 1 {
        for (keys, values) in slices {
            let mut store = |key: u32, sum: &M::Value| store::<M>(out, 0, key, sum);
            let [(first, head), (last, tail)] = add_slice::<M>(keys, values, &mut store);
            store(first, &head);
            if first != last {
                store(last, &tail);
            }
        }
        return;
    }
    // Each slice gets the part of the output between its first and its last key: disjoint, as the keys are sorted.
    let mut begin = 0;
    let mut tasks = Vec::with_capacity(params.slices as usize);
    for (keys, values) in slices {
        let inside = |key: u32| key.min(params.segments) as usize;
        let start = (inside(keys[0]) + 1).clamp(begin, (params.segments as usize).max(begin));
        let end = inside(keys[keys.len() - 1]).max(start);
        let (_, rest) = out.split_at_mut((start - begin) * words);
        let (own, rest) = rest.split_at_mut((end - start) * words);
        (out, begin) = (rest, end);
        tasks.push((keys, values, start, own));
    }
    let next_keys = next_keys.write::<u32>().chunks_exact_mut(2);
    let next_values = next_values.write::<u32>().chunks_exact_mut(2 * words);
    let mut tasks: Vec<_> = tasks.into_iter().zip(next_keys.zip(next_values)).collect();
    parallel::chunks(&mut tasks, 1, &|_, tasks| {
        for ((keys, values, start, own), (next_keys, next_values)) in tasks {
            let ends = add_slice::<M>(keys, values, &mut |key, sum| store::<M>(own, *start, key, sum));
            let places = next_keys.iter_mut().zip(next_values.chunks_mut(words));
            for ((key, sum), (next_key, next)) in ends.iter().zip(places) {
                *next_key = *key;
                M::store(sum, next);
            }
        }
    });
}

/// Writes the sum of a segment to `out`, which starts at segment `start`, unless it lies outside.
fn store<M: Monoid>(out: &mut [u32], start: usize, key: u32, sum: &M::Value) {
    let words = M::Element::BYTES / 4;
    let place = (key as usize).checked_sub(start).and_then(|i| out.get_mut(i * words..(i + 1) * words));
    if let Some(place) = place {
        M::store(sum, place);
    }
}

/// Adds a slice that is not empty. It stores the sums of the segments between the first and the last, and returns those
/// two. If they are one, the second sum is the identity.
fn add_slice<M: Monoid>(keys: &[u32], values: &[u32], store: &mut impl FnMut(u32, &M::Value)) -> [(u32, M::Value); 2] {
    let mut head = None;
    let (mut key, mut sum) = (keys[0], M::zero());
    for (next, value) in keys.iter().zip(values.chunks_exact(M::Element::BYTES / 4)) {
        if *next != key {
            match head {
                None => head = Some((key, sum)),
                Some(_) => store(key, &sum),
            }
            (key, sum) = (*next, M::zero());
        }
        sum = M::add(sum, M::load(value));
    }
    match head {
        Some(head) => [head, (key, sum)],
        None => [(key, sum), (key, M::zero())],
    }
}
