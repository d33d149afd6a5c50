//! Multilinear tables: eq, and tables with variables bound.

use std::{any::TypeId, marker::PhantomData, sync::Arc};

use evariste_backend::{
    Buffer, Device, Queue, Secrecy, View, ViewMut,
    author::{Arg, Binding, CpuArg, KernelSpec, Language, LazyKernel},
    parallel, params,
};
use evariste_field::{
    DeviceField, Mont,
    evaluator::lift,
    source::{self, binding_type, iterations},
};

use crate::{
    error::{Error, Result},
    params::{LOG_TAIL, MAX_CHUNKS},
    round,
    statement::{MAX_VARIABLES, Order},
};

/// Threads of a workgroup.
const THREADS: u32 = 256;

/// Elements that a CPU thread takes at a time.
const GRAIN: usize = 1 << 10;

params! {
    struct EqParams {
        low: u32,
        variables: u32,
        last: u32,
    }

    struct OuterParams {
        len: u32,
        low: u32,
    }

    struct BindParams {
        len: u32,
        neighbours: u32,
    }
}

/// Operations on multilinear extensions on one device. A multilinear extension in n variables is its table, a vector of
/// 2ⁿ elements. The value at the point x ∈ {0, 1}ⁿ stands at index Σ x_j 2^j. Kernels are compiled at their first use
/// and kept; [`Mle::on`] returns the same operations on another queue.
///
/// Challenges, coordinates and bound tables are of `E`. Other tables are over `T`, which is `E` or the prime field
/// right below it.
#[derive(Debug)]
pub struct Mle<E, T = E> {
    /// The device of the kernels, which are compiled later. A queue of another device is refused.
    device: Device,
    queue: Queue,
    kernels: Arc<Kernels>,
    fields: PhantomData<fn() -> (E, T)>,
}

/// The kernels that were used so far.
#[derive(Debug, Default)]
struct Kernels {
    eq: LazyKernel<EqParams>,
    outer: LazyKernel<OuterParams>,
    fold: [LazyKernel<BindParams>; 2],
}

/// The tables of eq for two groups of coordinates, each for every number of these from none on. The coordinates are the
/// first ones of the group, or the last ones if variables are bound from the lowest. A round finds its own among them,
/// whatever variables are left. Those of the second group may be scaled: the weight of a pair has one factor of them.
/// Final rounds need the scale 1, since they have a factor of one group only.
#[derive(Debug)]
pub(crate) struct SplitEq<E: DeviceField> {
    pub(crate) tables: Buffer<Mont<E>>,
    pub(crate) low: usize,
    order: Order,
}

/// Where the factors of a pair's weight are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WeightPlace {
    pub(crate) low_at: u32,
    pub(crate) low_bits: u32,
    pub(crate) high_at: u32,
}

impl WeightPlace {
    /// Those of the pairs of a round of so many variables.
    pub(crate) fn of_round(variables: usize, order: Order, round: usize) -> Self {
        let group = low_group(variables, order);
        let (left, high_start) = (variables - 1 - round, 2usize << group);
        let low = match order {
            Order::MsbFirst => group.min(left),
            Order::LsbFirst => group.saturating_sub(round + 1),
        };
        let high = left - low;
        let place = |low_at: usize, low_bits: usize, high_at: usize| Self {
            low_at: low_at as u32,
            low_bits: low_bits as u32,
            high_at: high_at as u32,
        };
        match low {
            // The factor of no coordinate is 1.
            0 => place(high_start + (1 << high), high, 1),
            _ => place(1 << low, low, high_start + (1 << high)),
        }
    }
}

impl<E: DeviceField> SplitEq<E> {
    /// The place p of the weights of the final rounds. The weight of pair x of a round of m pairs is at p + m + x.
    pub(crate) fn of_tail(&self) -> u32 {
        match self.order {
            Order::MsbFirst => 0,
            Order::LsbFirst => 2 << self.low,
        }
    }
}

/// Coordinates in the first group: half of them, or more. So a chunk of pairs has the factor of one entry of the other
/// group's table, if the highest variable is bound first. Those that the last rounds bind are all in one group: the
/// weights of their pairs have one factor.
fn low_group(variables: usize, order: Order) -> usize {
    let (half, last) = (variables.div_ceil(2), variables.min(LOG_TAIL as usize));
    match order {
        Order::MsbFirst => half.max(variables.saturating_sub(1 + MAX_CHUNKS.ilog2() as usize)).max(last),
        Order::LsbFirst => half.min(variables - last),
    }
}

/// Whether `T` is the prime field right below `E`; if it is neither that nor `E`, it is refused.
pub(crate) fn is_below<E: DeviceField, T: DeviceField>() -> Result<bool> {
    let below = TypeId::of::<T>() == TypeId::of::<E::BasePrimeField>() && E::arithmetic().levels() == 1;
    match below || TypeId::of::<T>() == TypeId::of::<E>() {
        true => Ok(below),
        false => Err(Error::Field),
    }
}

impl<E, T> Clone for Mle<E, T> {
    fn clone(&self) -> Self {
        let (device, kernels) = (self.device.clone(), Arc::clone(&self.kernels));
        Self { device, queue: self.queue.clone(), kernels, fields: PhantomData }
    }
}

impl<E: DeviceField, T: DeviceField> Mle<E, T> {
    /// Makes the operations on a queue; `&device` stands for the device's default queue. Kernels are compiled at their
    /// first use.
    pub fn new(queue: impl Into<Queue>) -> Self {
        let queue = queue.into();
        Self { device: queue.device().clone(), queue, kernels: Arc::default(), fields: PhantomData }
    }

    /// Returns the same operations, with the same kernels, on another queue of the device.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), ..self.clone() }
    }

    /// Refuses a queue of another device, before anything goes there.
    fn expect_queue(&self) -> Result<()> {
        Ok(self.device.expect_same("the queue of multilinear tables", self.queue.device())?)
    }

    /// Lists the kernels, for tools that compile them ahead.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        vec![eq_spec::<E>(), outer_spec::<E>(), fold_spec::<E, T>(), fold_spec::<E, E>()]
    }

    /// Computes the table of eq(p, x) = Π (p_j x_j + (1 − p_j)(1 − x_j)) for the point p. It has 2ⁿ elements for n
    /// coordinates, and takes one multiplication an element.
    ///
    /// # Errors
    /// - [`Error::Variables`] for no coordinate or more than [`MAX_VARIABLES`].
    /// - [`Error::Device`] if the device has no room for the table, or fails. Also if the kernel does not compile at
    ///   its first use.
    pub fn eq(&self, point: &[E]) -> Result<Buffer<Mont<E>>> {
        let split = self.split_eq(point, E::ONE, Order::MsbFirst, Secrecy::Public)?;
        let (n, low) = (point.len(), split.low);
        let mut out = self.device.alloc(1 << n)?;
        // Those of all coordinates of each group.
        let low_eq = split.tables.view(1 << low..2 << low)?;
        let high_eq = split.tables.view((2 << low) + (1 << (n - low))..)?;
        let params = OuterParams { len: 1 << n, low: low as u32 };
        let kernel = self.kernels.outer.get(&self.device, outer_spec::<E>)?;
        let args = &mut [Arg::read(low_eq), Arg::read(high_eq), Arg::write(&mut out)];
        // SAFETY: the tables of both groups have an entry for each index, and the output has 2^n elements.
        unsafe { kernel.launch(&self.queue, (1u64 << n).div_ceil(THREADS.into()), &params, args) }?;
        Ok(out)
    }

    /// The tables whose products are the values of eq times `scale`.
    pub(crate) fn split_eq(&self, point: &[E], scale: E, order: Order, secrecy: Secrecy) -> Result<SplitEq<E>> {
        let variables = point.len();
        if variables == 0 || variables > MAX_VARIABLES {
            return Err(Error::Variables { expected: MAX_VARIABLES, actual: variables });
        }
        self.expect_queue()?;
        let low = low_group(variables, order);
        let len = (2usize << low) + (2usize << (variables - low));
        let point = self.queue.upload_with::<Mont<E>>(&[point, &[scale]].concat(), secrecy)?;
        let mut tables = self.device.alloc_with(len, secrecy)?;
        let params =
            EqParams { low: low as u32, variables: variables as u32, last: u32::from(order == Order::LsbFirst) };
        let kernel = self.kernels.eq.get(&self.device, eq_spec::<E>)?;
        let args = &mut [Arg::read(&point), Arg::write(&mut tables)];
        // SAFETY: the tables have the `len` elements that the parameters describe, and the point its coordinates and the
        // scale.
        unsafe { kernel.launch(&self.queue, (len as u64).div_ceil(THREADS.into()), &params, args) }?;
        Ok(SplitEq { tables, low, order })
    }

    /// Binds the first variable of `order` to `challenge`: T(x) becomes T(challenge, x), a table of half the length.
    /// One multiplication for each element of the result.
    ///
    /// # Errors
    /// - [`Error::Field`] if `T` is neither `E` nor the prime field right below it.
    /// - [`Error::Device`] unless the number of elements is a power of two from 2 to 2³¹.
    /// - [`Error::Device`] if the table or the queue belongs to another device.
    /// - [`Error::Device`] if there is no room for the result, or if the device fails. Also if the kernel does not
    ///   compile at its first use.
    pub fn bind<'a>(&self, table: impl Into<View<'a, Mont<T>>>, challenge: E, order: Order) -> Result<Buffer<Mont<E>>> {
        let table = table.into();
        self.expect_queue()?;
        self.device.expect_same("a table", table.device())?;
        variables_of(table.len())?;
        let challenge = self.queue.upload_with::<Mont<E>>(&[challenge], table.secrecy())?;
        let mut out = self.device.alloc_with(table.len() / 2, table.secrecy())?;
        self.bind_to_value(table, &challenge, order, out.as_view_mut())?;
        Ok(out)
    }

    /// Folds a table to one of half its length by the first element of `challenge`.
    pub(crate) fn bind_to_value<S: DeviceField>(
        &self,
        source: View<'_, Mont<S>>,
        challenge: &Buffer<Mont<E>>,
        order: Order,
        target: ViewMut<'_, Mont<E>>,
    ) -> Result<()> {
        let below = is_below::<E, S>()?;
        let kernel = self.kernels.fold[usize::from(below)].get(&self.device, fold_spec::<E, S>)?;
        let len = target.len();
        source.expect_len("a table to be folded", 2 * len)?;
        assert!(!challenge.is_empty(), "a challenge");
        let params = BindParams { len: len as u32, neighbours: u32::from(order == Order::LsbFirst) };
        let args = &mut [Arg::read(source), Arg::read(challenge), Arg::write(target)];
        // SAFETY: the source has twice the elements of the target, which are `len`, and there is a challenge.
        unsafe { kernel.launch(&self.queue, (len as u64).div_ceil(THREADS.into()), &params, args) }?;
        Ok(())
    }
}

/// log₂ of the length of a table.
pub(crate) fn variables_of(len: usize) -> Result<usize> {
    if len.is_power_of_two() && (2..=1 << MAX_VARIABLES).contains(&len) {
        return Ok(len.ilog2() as usize);
    }
    let expected = len.next_power_of_two().clamp(2, 1 << MAX_VARIABLES);
    Err(Error::length("the elements of a table, a power of two", expected, len))
}

/// Text of a kernel whose bindings all have elements of `E`.
fn text<E: DeviceField>(language: Language, bindings: &[Binding], [cuda, wgsl]: [&str; 2]) -> String {
    match language {
        Language::Cuda => source::cuda::<E>() + cuda,
        Language::Wgsl { int64 } => {
            let accessors: String = bindings.iter().map(source::wgsl_accessors::<E>).collect();
            source::wgsl::<E>(int64) + &accessors + wgsl
        }
    }
}

fn eq_spec<E: DeviceField>() -> KernelSpec {
    let bindings = [Binding::read("point", binding_type::<E>()), Binding::write("eq", binding_type::<E>())];
    let source =
        move |language| text::<E>(language, &bindings, [evariste_cuda::sumcheck::EQ, evariste_shaders::sumcheck::EQ]);
    let body = |params: &EqParams, [point, eq]: &mut [CpuArg<'_>; 2]| {
        let EqParams { low, variables, last } = *params;
        let point: Vec<E> = point.read::<u32>().chunks_exact(E::LIMBS).map(E::load).collect();
        let (low, all) = (low as usize, variables as usize);
        let (first, second) = eq.write::<u32>().split_at_mut((2 << low) * E::LIMBS);
        for (group, scale, out) in [(&point[..low], E::ONE, first), (&point[low..all], point[all], second)] {
            let mut table = vec![scale];
            scale.store(out);
            for bits in 0..=group.len() {
                for (entry, out) in table.iter().zip(out[(1 << bits) * E::LIMBS..].chunks_exact_mut(E::LIMBS)) {
                    entry.store(out);
                }
                let high = last == 0;
                let Some(p) = (if high { group.get(bits) } else { group.iter().rev().nth(bits) }) else { break };
                let halves = table.iter().map(|entry| *entry * p);
                let ones: Vec<E> = halves.collect();
                let zeros: Vec<E> = table.iter().zip(&ones).map(|(entry, one)| *entry - one).collect();
                table = match high {
                    true => zeros.into_iter().chain(ones).collect(),
                    false => zeros.into_iter().zip(ones).flat_map(|(zero, one)| [zero, one]).collect(),
                };
            }
        }
    };
    let mul = iterations::mul::<E>();
    let iterations = move |params: &EqParams| iterations::repeat(params.variables.into(), mul);
    KernelSpec::new("sumcheck_eq", source::label::<E>(), bindings, body, source).threads(THREADS).iterations(iterations)
}

fn outer_spec<E: DeviceField>() -> KernelSpec {
    let word = binding_type::<E>();
    let bindings = [Binding::read("low_eq", word), Binding::read("high_eq", word), Binding::write("out", word)];
    let source = move |language| {
        text::<E>(language, &bindings, [evariste_cuda::sumcheck::OUTER, evariste_shaders::sumcheck::OUTER])
    };
    let body = |params: &OuterParams, [low_eq, high_eq, out]: &mut [CpuArg<'_>; 3]| {
        let (low_eq, high_eq) = (low_eq.read::<u32>(), high_eq.read::<u32>());
        let (low, mask) = (params.low, (1usize << params.low) - 1);
        let at = |eq: &[u32], i: usize| E::load(&eq[i * E::LIMBS..]);
        let out = &mut out.write::<u32>()[..params.len as usize * E::LIMBS];
        parallel::chunks(out, GRAIN * E::LIMBS, &|run, out| {
            for (x, out) in (run * GRAIN..).zip(out.chunks_exact_mut(E::LIMBS)) {
                (at(low_eq, x & mask) * at(high_eq, x >> low)).store(out);
            }
        });
    };
    let mul = iterations::mul::<E>();
    let iterations = move |_: &OuterParams| mul;
    KernelSpec::new("sumcheck_outer", source::label::<E>(), bindings, body, source)
        .threads(THREADS)
        .iterations(iterations)
}

fn fold_spec<E: DeviceField, S: DeviceField>() -> KernelSpec {
    let below = S::LIMBS < E::LIMBS;
    let word_of = if below { binding_type::<S>() } else { binding_type::<E>() };
    let bindings = [
        Binding::read("source", word_of),
        Binding::read("challenge", binding_type::<E>()),
        Binding::write("folded", binding_type::<E>()),
    ];
    let source = move |language| match language {
        Language::Cuda => {
            let (name, extended) = if below { ("B", 1) } else { ("F", 0) };
            format!(
                "{}#define SOURCE {name}\n#define EXTENDED {extended}\n#define WEIGHTED 0\n#define POINTS 1\n{}{}",
                source::cuda::<E>(),
                evariste_cuda::sumcheck::HEADER,
                evariste_cuda::sumcheck::BIND
            )
        }
        Language::Wgsl { int64 } => {
            let skip = usize::from(below);
            let accessors: String = bindings[skip..].iter().map(source::wgsl_accessors::<E>).collect();
            let lift = round::wgsl_lift::<E, S>(&bindings[0], below);
            source::wgsl::<E>(int64) + &accessors + &lift + evariste_shaders::sumcheck::BIND
        }
    };
    let body = |params: &BindParams, [source, challenge, folded]: &mut [CpuArg<'_>; 3]| {
        let challenge = E::load(challenge.read::<u32>());
        let limbs = S::LIMBS;
        let from = source.read::<u32>();
        let at = |i: usize| lift::<E>(&from[i * limbs..][..limbs]);
        let len = params.len as usize;
        let out = &mut folded.write::<u32>()[..len * E::LIMBS];
        parallel::chunks(out, GRAIN * E::LIMBS, &|run, out| {
            for (x, out) in (run * GRAIN..).zip(out.chunks_exact_mut(E::LIMBS)) {
                let (a, b) = if params.neighbours == 1 { (2 * x, 2 * x + 1) } else { (x, x + len) };
                let (a, b) = (at(a), at(b));
                (a + (b - a) * challenge).store(out);
            }
        });
    };
    let mul = iterations::mul::<E>();
    let iterations = move |_: &BindParams| mul;
    let from = if below { ", from below" } else { "" };
    let variant = source::label::<E>() + from;
    KernelSpec::new("sumcheck_bind", variant, bindings, body, source).threads(THREADS).iterations(iterations)
}
