use std::{fmt, iter, mem, ops::Range, sync::Arc};

use ark_ec::{
    AffineRepr,
    short_weierstrass::{Affine, Projective},
};
use ark_ff::Zero;
use evariste_backend::{
    Buffer, Device, Error as DeviceError, Event, HostBuffer, HostData, KernelSpec, Lazy, Prefetch, Queue, Ready,
    Secrecy, View, ViewMut, Wiped,
};
use evariste_curve::{AffinePoint, Points, Xyzz, expect_generator, point::affine_is_infinity};
use evariste_field::{Canonical, DeviceField, DevicePrimeField, Mont};
use evariste_primitives::RadixSort;
use rayon::prelude::*;

use crate::{
    Accumulation, Aggregation, Bases, Error, Infinity, MsmConfig, MsmCurve, Precompute, Result, Scalars,
    accumulate::{Accumulate, List, Nodes, Parts, Way},
    adding::Adding,
    finish,
    layout::{MAX_LEVELS, MAX_SLICES, MAX_WINDOW, MIN_WINDOW, Machine, Multiples, Shape},
    memory::{Layout, covered_bits, halves, key_bits, machine, multiples},
    pairs::Pairs,
    recode::{Recode, Recoding, ScalarForm},
    reduce::{self, Reduce, Reduction},
    scalars,
    shared::scalar_bytes,
    tables,
    whole::{Share, Whole},
};

/// Scalars of one sum from which on they come from the host in two pieces: the copy of a few million takes as long as all
/// launches, and more often divided, buckets have too few points.
const OVERLAPPED: usize = 1 << 22;

/// The first of two pieces is one part of so many: the device works on it for longer than the rest takes to come.
const FIRST_PIECE: usize = 4;

/// Pieces from the host that have memory at a time: one comes while the device works on another.
const UPLOADS: usize = 2;

/// A step of an evaluation; the variants stand in the order in which they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Scalars go from the host to the device.
    Upload,
    /// Scalars become digits.
    Recode,
    /// Digits are sorted by bucket.
    Sort,
    /// Neighbours of the same bucket are added as affine points, once.
    Halve,
    /// Points are added to buckets.
    Accumulate,
    /// Buckets are added up to few points.
    Reduce,
}

/// A plan for multi-scalar multiplications Σ s_i P_i, with bases P_i that stay on a device.
///
/// # Steps
/// A scalar s becomes signed digits, s = Σ d_w 2^(cw) with |d_w| ≤ 2^(c−1). For each w, points of equal |d_w| are added up in
/// a bucket, ±P by the sign of the digit, and the buckets B_k to Σ k·B_k. (Pippenger, "On the evaluation of powers and related
/// problems", 1976.) Here:
///
/// 1. *Recode*: each digit that is not zero becomes a pair of its bucket and its point.
/// 2. *Sort* the pairs by bucket (radix sort).
/// 3. *Accumulate*: equal slices of the sorted pairs, whatever the buckets are, one for each thread, which adds the points of
///    a bucket in XYZZ form, 8M + 2S each. What slices have of the buckets at their ends is joined in a tree. So scalars that
///    are all equal take as long as others. (Chen et al., "Load-Balanced Parallel Implementation on GPUs for Multi-Scalar
///    Multiplication Algorithm", TCHES 2024/2.) On a processor, a thread adds neighbours of a bucket in pairs, then their sums,
///    and so on, in affine form with shared inversions, 5M + 1S each.
/// 4. *Reduce* the buckets of each w to few points with weights that are powers of two, in layers: two additions of 12M + 2S
///    for each bucket.
/// 5. *Finish* on the host: about as many doublings as a scalar has bits.
///
/// With tables ([`Precompute::Tables`]) of the multiples 2^(cw)·P, the digits of all w share one set of buckets. With doublings
/// ([`Precompute::OddDigits`], [`Precompute::Doublings`]), there are buckets of odd numbers alone. Steps 3 and 4 can be done in
/// other ways, to be compared ([`Tuning`](crate::Tuning)).
///
/// Scalars from the host have no more digits than the longest of them takes, unless they are secret. Many of them are copied in
/// two pieces, the second while the device works on the first.
///
/// An `Msm` is used by any number of threads at once, and on any queue ([`Msm::on`]).
pub struct Msm<C: MsmCurve> {
    pub(crate) queue: Queue,
    pub(crate) config: MsmConfig,
    pub(crate) machine: Machine,
    /// The bases, then their multiples by 2^(window · sets), and so on, or by 2, and so on.
    pub(crate) bases: Arc<Buffer<AffinePoint<C>>>,
    /// When they are there.
    pub(crate) ready: Ready,
    pub(crate) len: usize,
    pub(crate) multiples: Multiples,
    pub(crate) kernels: Arc<Kernels<C>>,
}

/// What plans of a curve share on a device.
#[derive(Debug)]
pub(crate) struct Kernels<C: MsmCurve> {
    recode: Recode<C::ScalarField>,
    pub(crate) sort: RadixSort,
    accumulate: Accumulate<C>,
    reduce: Reduce<C>,
    /// Compiled when a plan may use them.
    pairs: Lazy<Pairs<C>>,
    parts: [Lazy<Parts<C>>; Adding::ALL.len()],
    /// Of slices, and of buckets.
    whole: [[Lazy<Whole<C>>; Adding::ALL.len()]; 2],
}

impl<C: MsmCurve> Kernels<C> {
    /// Those of every plan, and some more, side by side.
    pub(crate) fn new(device: &Device, more: Vec<KernelSpec>) -> Result<Self> {
        let mut kernels = more;
        kernels.push(Recode::<C::ScalarField>::spec());
        kernels.extend(RadixSort::kernels_on(device.info()));
        kernels.extend(Accumulate::<C>::specs());
        kernels.extend(Reduce::<C>::specs());
        let _prepared = device.prepare(&kernels)?;
        Ok(Self {
            recode: Recode::new(device)?,
            sort: RadixSort::new(device)?,
            accumulate: Accumulate::new(device)?,
            reduce: Reduce::new(device)?,
            pairs: Lazy::default(),
            parts: Default::default(),
            whole: Default::default(),
        })
    }

    fn pairs(&self, device: &Device) -> Result<&Pairs<C>> {
        Ok(self.pairs.get_or_make(|| {
            let _prepared = device.prepare(&Pairs::<C>::specs())?;
            Pairs::new(device)
        })?)
    }

    /// The first kernel of a balanced accumulation that adds so, unless it is that of every plan.
    fn parts(&self, device: &Device, adding: Adding) -> Result<Option<&Parts<C>>> {
        match adding {
            Adding::Single => Ok(None),
            _ => Ok(Some(self.parts[adding.index()].get_or_make(|| Parts::new(device, adding))?)),
        }
    }

    fn whole(&self, device: &Device, per_bucket: bool, adding: Adding) -> Result<&Whole<C>> {
        let kernel = &self.whole[usize::from(per_bucket)][adding.index()];
        Ok(kernel.get_or_make(|| Whole::new(device, per_bucket, adding))?)
    }

    /// Compiles what an accumulation takes beside the kernels of every plan.
    fn prepare(&self, device: &Device, accumulation: Accumulation, adding: Adding) -> Result<()> {
        match accumulation {
            Accumulation::Balanced => self.parts(device, adding).map(drop),
            Accumulation::WholeBuckets => self.whole(device, false, adding).map(drop),
            Accumulation::PerBucket => self.whole(device, true, adding).map(drop),
        }
    }
}

/// The kernels that a configuration asks for beside those of every plan.
fn extra_kernels<C: MsmCurve>(config: &MsmConfig) -> Vec<KernelSpec> {
    let mut kernels = Vec::new();
    if config.precompute != Precompute::None {
        kernels.extend([tables::spec::<C>(), Points::<C>::normalise_xyzz_kernel()]);
    }
    if config.tuning.aggregation == Aggregation::RunningSums {
        kernels.push(reduce::running_spec::<C>());
    }
    kernels
}

/// What scalars are given as.
enum Given<'a, F: DevicePrimeField> {
    Host(&'a [F]),
    /// In device form, for one sum: empty while pieces of it are on their way.
    Pinned(HostBuffer),
    Montgomery(View<'a, Mont<F>>),
    Canonical(View<'a, Canonical<F>>),
}

impl<'a, F: DevicePrimeField> From<Scalars<'a, F>> for Given<'a, F> {
    fn from(scalars: Scalars<'a, F>) -> Self {
        match scalars {
            Scalars::Host(host) => Self::Host(host),
            Scalars::Montgomery(view) => Self::Montgomery(view),
            Scalars::Canonical(view) => Self::Canonical(view),
        }
    }
}

/// Where scalars are, or come from.
enum Source<'a, F: DevicePrimeField> {
    /// On the host, what has not been sent yet.
    Host(Prefetch<Mont<F>>, HostData<'a, Mont<F>>),
    Montgomery(View<'a, Mont<F>>),
    Canonical(View<'a, Canonical<F>>),
}

/// A sum, and for each stage on the way to it an event behind that stage.
pub type Staged<C> = (Projective<C>, Vec<(Stage, Event)>);

impl<C: MsmCurve> Msm<C> {
    /// Makes a plan for bases on the host, which go to the device on the plan's queue (`&device` is its default one).
    ///
    /// # Errors
    /// [`Error::Config`] if a value of the configuration lies outside of its bounds, or for more doublings than so many bases may
    /// have; [`Error::NotOnCurve`] if the configuration asks for a check and a base is not on the curve; [`Error::AtInfinity`] if
    /// the configuration refuses bases at infinity and one is; [`Error::Curve`] for points of order r if the coefficients, the
    /// generator or the order of the curve's configuration do not hold; [`Error::InsufficientMemory`] if the budget of
    /// [`Precompute::Tables`] does not hold the bases themselves; [`Error::Device`] for more than 2^31 bases, if the device has
    /// no room for them and their multiples, if a kernel does not compile, or if the device fails.
    pub fn new(queue: impl Into<Queue>, bases: &[Affine<C>], config: MsmConfig) -> Result<Self> {
        let queue = queue.into();
        let kernels = Arc::new(Kernels::new(queue.device(), extra_kernels::<C>(&config))?);
        Self::with_kernels(&queue, kernels, bases, config)
    }

    /// [`Msm::new`] with kernels that are compiled.
    pub(crate) fn with_kernels(
        queue: &Queue,
        kernels: Arc<Kernels<C>>,
        bases: &[Affine<C>],
        config: MsmConfig,
    ) -> Result<Self> {
        expect_bases(bases, &config)?;
        Self::build(queue, kernels, (bases.len(), Secrecy::Public), config, |table| Ok(queue.write(table, bases)?))
    }

    /// Makes a plan for bases on the device, of which it makes a copy on the plan's queue (`&device` is its default one).
    ///
    /// # Errors
    /// [`Error::Device`] if the bases lie on another device or, where the configuration asks for a check, if they are
    /// no device form of points; and the errors of [`Msm::new`], for the same reasons.
    pub fn from_buffer<'a>(
        queue: impl Into<Queue>,
        bases: impl Into<View<'a, AffinePoint<C>>>,
        config: MsmConfig,
    ) -> Result<Self> {
        let (queue, bases) = (queue.into(), bases.into());
        let device = queue.device();
        device.expect_same("the bases", bases.device())?;
        if config.check || config.infinity == Infinity::Refused {
            expect_bases(&Wiped::from(queue.read(bases)?), &config)?;
        }
        let kernels = Arc::new(Kernels::new(device, extra_kernels::<C>(&config))?);
        Self::build(&queue, kernels, (bases.len(), bases.secrecy()), config, |table| Ok(queue.copy(bases, table)?))
    }

    fn build(
        queue: &Queue,
        kernels: Arc<Kernels<C>>,
        (len, secrecy): (usize, Secrecy),
        config: MsmConfig,
        fill: impl FnOnce(ViewMut<'_, AffinePoint<C>>) -> Result<()>,
    ) -> Result<Self> {
        let device = queue.device();
        check_config::<C>(&config)?;
        if config.bases == Bases::Subgroup {
            expect_generator::<C>(device)?;
        }
        let machine = machine::<C>(device, &config);
        let multiples = multiples::<C>(device, &machine, &kernels.sort, &config, len)?;
        let copies = multiples.copies() as usize;
        let mut bases = device.alloc_with(len * copies, secrecy)?;
        fill(bases.view_mut(..len)?)?;
        if len > 0 && copies > 1 {
            let times = if let Multiples::Tables { window, sets, .. } = multiples { window * sets } else { 1 };
            tables::extend::<C>(queue, &mut bases, len, copies, times)?;
        }
        let (bases, ready) = (Arc::new(bases), Ready::behind(queue)?);
        let msm = Self { queue: queue.clone(), config, machine, bases, ready, len, multiples, kernels };
        // Compiled now, so that the first evaluation is as fast as the next.
        if msm.layout(len, 1, covered_bits::<C>(&config)).is_ok_and(|layout| layout.levels > 0) {
            msm.kernels.pairs(device)?;
        }
        msm.kernels.prepare(device, config.tuning.accumulation, msm.adding())?;
        if config.tuning.aggregation == Aggregation::RunningSums {
            msm.kernels.reduce.prepare_running()?;
        }
        Ok(msm)
    }

    /// That of the bases.
    pub(crate) fn device(&self) -> &Device {
        self.bases.device()
    }

    /// Gives the same plan, with the same bases and kernels, on a queue of its own.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self {
            queue: queue.clone(),
            config: self.config,
            machine: self.machine,
            bases: Arc::clone(&self.bases),
            ready: self.ready.clone(),
            len: self.len,
            multiples: self.multiples,
            kernels: Arc::clone(&self.kernels),
        }
    }

    /// Makes ready every kernel that calls of this plan may launch, so that calls compile nothing, of however many sums of however
    /// many scalars. A new plan has what one sum over all of its bases takes; more sums at once, or fewer bits, may be added up
    /// another way ([`Stage::Halve`]).
    ///
    /// ```
    /// # fn main() -> Result<(), evariste_msm::Error> {
    /// # use ark_bls12_381::{Fr, G1Affine, g1};
    /// # use ark_ec::AffineRepr;
    /// # use evariste_backend::Device;
    /// use evariste_msm::{Msm, MsmConfig};
    ///
    /// let msm = Msm::<g1::Config>::new(&Device::best()?, &[G1Affine::generator(); 2], MsmConfig::default())?;
    /// msm.prepare()?;
    /// let sums = msm.msm_batch(2, &[1u8, 2, 3, 4].map(Fr::from))?;
    /// assert_eq!(sums, [G1Affine::generator() * Fr::from(3u8), G1Affine::generator() * Fr::from(7u8)]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Device`] if a kernel does not compile, or if the device fails.
    pub fn prepare(&self) -> Result<()> {
        // As many pairs of as few buckets as can be. Points that are doubled on the way have no levels.
        let doubled = matches!(self.multiples, Multiples::Doubled { .. });
        if !doubled && self.machine.levels(&self.config.tuning, C::BaseField::LIMBS, u64::MAX, 1) > 0 {
            self.kernels.pairs(self.device())?;
        }
        Ok(())
    }

    /// Lists the kernels of plans whose [`Tuning`](crate::Tuning) says nothing, for compiling them ahead.
    pub fn kernels() -> Vec<KernelSpec> {
        let mut kernels = vec![Recode::<C::ScalarField>::spec(), tables::spec::<C>()];
        kernels.extend(RadixSort::kernels());
        kernels.extend(Pairs::<C>::specs());
        kernels.extend(Accumulate::<C>::specs());
        kernels.extend(Reduce::<C>::specs());
        kernels
    }

    /// Lists the kernels of which a plan has those that its [`Tuning`](crate::Tuning) and [`Precompute::Doublings`] ask for, for
    /// compiling them ahead.
    pub fn kernels_of_choice() -> Vec<KernelSpec> {
        let mut kernels = [Parts::<C>::specs(), Whole::<C>::specs()].concat();
        kernels.push(reduce::running_spec::<C>());
        kernels
    }

    /// How points are added to buckets.
    fn adding(&self) -> Adding {
        Adding::new(self.config.tuning.addition, self.multiples, self.len)
    }

    /// Counts the bases.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Tells whether there are no bases.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Counts the bits of a digit in an evaluation of `count` sums of `len` scalars each: those that cost least of all that there is
    /// memory for.
    pub fn window(&self, len: usize, count: usize) -> u32 {
        let bits = covered_bits::<C>(&self.config);
        let layout = self.layout(len, count, bits);
        layout.map_or_else(|_| self.sizes().window(&Shape { len, count, bits }), |layout| layout.window)
    }

    /// Counts the bytes of device memory that the plan holds.
    pub fn bytes(&self) -> u64 {
        self.bases.bytes()
    }

    /// Counts the bytes of device memory that an evaluation of `count` sums of `len` scalars each takes beside the
    /// plan's own: pieces included if they are on the host.
    ///
    /// # Errors
    /// [`Error::Config`] if the configuration asks for digits of so many bits that there are more than 2^28 buckets;
    /// [`Error::InsufficientMemory`] if the memory of the configuration, or of the device, does not hold what a sum of one
    /// scalar takes; [`Error::Device`] if that needs a larger buffer than the device allows.
    pub fn required_bytes(&self, len: usize, count: usize) -> Result<u64> {
        let layout = self.layout(len, count, covered_bits::<C>(&self.config))?;
        Ok(self.sizes().bytes(&layout, layout.piece.min(len), layout.group.min(count)))
    }

    /// Computes Σ `scalars[i]` · `bases[i]`. There may be fewer scalars than bases.
    ///
    /// # Errors
    /// [`Error::Length`] if there are more scalars than bases; [`Error::Config`] if the configuration asks for digits
    /// of so many bits that there are more than 2^28 buckets; [`Error::InsufficientMemory`] if the memory of the configuration,
    /// or of the device, does not hold what a sum of one scalar takes; [`Error::Device`] if that needs a larger buffer
    /// than the device allows, if the scalars lie on another device, if memory is exhausted, or if the device fails.
    pub fn msm<'a>(&self, scalars: impl Into<Scalars<'a, C::ScalarField>>) -> Result<Projective<C>> {
        let scalars = scalars.into();
        self.expect_at_most("scalars, of which there may be as many as bases", self.len, scalars.len())?;
        let len = scalars.len();
        Ok(self.sums(&mut scalars.into(), len, 1, true, &mut |_| Ok(()))?[0])
    }

    /// Does what [`Msm::msm`] does, of scalars in host memory that the device copies from without a detour
    /// ([`Device::host_buffer`](evariste_backend::Device::host_buffer)), in device form ([`Mont`]'s
    /// [`Element::encode`](evariste_backend::Element::encode)). Gives the memory back with the sum. The scalars are
    /// secret if [`MsmConfig::secrecy`] says so or the memory was made so. With wgpu, whose mappings end as a
    /// whole, they pass through memory of its own.
    ///
    /// # Errors
    /// [`Error::Length`] unless `scalars` has the bytes of a number of scalars, at most as many as there are bases;
    /// [`Error::Device`] if it belongs to another device; and the other errors of [`Msm::msm`], for the same
    /// reasons. The host memory is dropped then.
    pub fn msm_pinned(&self, scalars: HostBuffer) -> Result<(Projective<C>, HostBuffer)> {
        let (expected, actual) = (self.device().info().id, scalars.device());
        if expected != actual {
            return Err(DeviceError::WrongDevice { what: "the scalars", expected, actual }.into());
        }
        let each = scalar_bytes::<C::ScalarField>() as usize;
        let len = scalars.len() / each;
        if !scalars.len().is_multiple_of(each) {
            let expected = scalars.len().next_multiple_of(each);
            return Err(Error::Length { what: "bytes of scalars", expected, actual: scalars.len() });
        }
        self.expect_at_most("scalars, of which there may be as many as bases", self.len, len)?;
        let mut scalars = Given::Pinned(scalars);
        let sum = self.sums(&mut scalars, len, 1, true, &mut |_| Ok(()))?[0];
        match scalars {
            Given::Pinned(scalars) => Ok((sum, scalars)),
            _ => unreachable!("these were given"),
        }
    }

    /// Does what [`Msm::msm`] does, and gives an event for the end of each stage on the plan's queue.
    ///
    /// # Errors
    /// Returns the errors of [`Msm::msm`], for the same reasons.
    pub fn msm_profiled<'a>(&self, scalars: impl Into<Scalars<'a, C::ScalarField>>) -> Result<Staged<C>> {
        let scalars = scalars.into();
        self.expect_at_most("scalars, of which there may be as many as bases", self.len, scalars.len())?;
        let mut events = Vec::new();
        let mut mark = |stage| {
            events.push((stage, self.queue.record()?));
            Ok(())
        };
        let len = scalars.len();
        let sum = self.sums(&mut scalars.into(), len, 1, true, &mut mark)?[0];
        Ok((sum, events))
    }

    /// Computes `count` sums over the same bases, each of as many scalars, one after the other in `scalars`.
    ///
    /// # Errors
    /// [`Error::Length`] if there are not `count` times a number of scalars, or if that number is larger than that of
    /// the bases; and the other errors of [`Msm::msm`], for the same reasons.
    pub fn msm_batch<'a>(
        &self,
        count: usize,
        scalars: impl Into<Scalars<'a, C::ScalarField>>,
    ) -> Result<Vec<Projective<C>>> {
        let scalars = scalars.into();
        let len = scalars.len().checked_div(count).unwrap_or(0);
        expect_multiple(count, len, scalars.len())?;
        self.expect_at_most("scalars of one sum, of which there may be as many as bases", self.len, len)?;
        Ok(mem::take(&mut *self.sums(&mut scalars.into(), len, count, true, &mut |_| Ok(()))?))
    }

    /// Computes `count` sums, each over its own share of the bases: of `len / count` neighbours, with as many scalars.
    ///
    /// # Errors
    /// [`Error::Length`] if there are not as many scalars as bases, or if `count` does not divide their number; and the
    /// other errors of [`Msm::msm`], for the same reasons.
    pub fn msm_segmented<'a>(
        &self,
        count: usize,
        scalars: impl Into<Scalars<'a, C::ScalarField>>,
    ) -> Result<Vec<Projective<C>>> {
        let scalars = scalars.into();
        let len = self.len.checked_div(count).unwrap_or(0);
        expect_multiple(count, len, self.len)?;
        if scalars.len() != self.len {
            let (expected, actual) = (self.len, scalars.len());
            return Err(Error::Length { what: "a batch, as many as bases", expected, actual });
        }
        Ok(mem::take(&mut *self.sums(&mut scalars.into(), len, count, false, &mut |_| Ok(()))?))
    }

    fn expect_at_most(&self, what: &'static str, most: usize, actual: usize) -> Result<()> {
        match actual <= most {
            true => Ok(()),
            false => Err(Error::Length { what, expected: most, actual }),
        }
    }

    /// `count` sums of `len` scalars each, over the same bases or over bases of their own.
    fn sums(
        &self,
        scalars: &mut Given<'_, C::ScalarField>,
        len: usize,
        count: usize,
        shared: bool,
        mark: &mut dyn FnMut(Stage) -> Result<()>,
    ) -> Result<Wiped<Projective<C>>> {
        let mut sums = Wiped::default();
        if sums.try_reserve_exact(count).is_err() {
            let requested = (count as u64).saturating_mul(size_of::<Projective<C>>() as u64);
            let device = self.device().info().id;
            return Err(DeviceError::OutOfMemory { device, requested, available: None }.into());
        }
        if len == 0 {
            sums.resize(count, Projective::zero());
            return Ok(sums);
        }
        match scalars {
            Given::Host(_) | Given::Pinned(_) => {}
            Given::Montgomery(buffer) => self.device().expect_same("the scalars", buffer.device())?,
            Given::Canonical(buffer) => self.device().expect_same("the scalars", buffer.device())?,
        }
        let layout = self.layout(len, count, self.bits(scalars))?;
        self.ready.wait(&self.queue)?;
        for first in (0..count).step_by(layout.group) {
            let group = layout.group.min(count - first);
            sums.extend_from_slice(&self.group(&layout, scalars, len, first..first + group, shared, mark)?);
        }
        Ok(sums)
    }

    /// Bits that digits have to cover.
    fn bits(&self, scalars: &Given<'_, C::ScalarField>) -> u32 {
        let all = covered_bits::<C>(&self.config);
        match scalars {
            Given::Host(host) if self.config.bits.is_none() && self.config.secrecy == Secrecy::Public => {
                all.min(scalars::longest(host, self.config.bases == Bases::Subgroup) + 1)
            }
            _ => all,
        }
    }

    /// The pieces of each of some sums of `len` scalars.
    fn pieces(
        &self,
        layout: &Layout,
        scalars: &Given<'_, C::ScalarField>,
        len: usize,
        sums: usize,
    ) -> Vec<Range<usize>> {
        let piece = if sums == 1 { layout.piece } else { len };
        // A digit takes 16 bytes, and a scalar 32: with so many digits, the scalars have room where the first piece was.
        let overlapped = matches!(scalars, Given::Host(_) | Given::Pinned(_))
            && self.device().info().features.queues
            && layout.digits as usize >= 2 * FIRST_PIECE;
        let first =
            if overlapped && sums == 1 && (OVERLAPPED..=piece).contains(&len) { len / FIRST_PIECE } else { piece };
        let rest = (first..len).step_by(piece).map(|start| start..len.min(start + piece));
        iter::once(0..first.min(len)).chain(rest).collect()
    }

    /// Some sums at once.
    fn group(
        &self,
        layout: &Layout,
        scalars: &mut Given<'_, C::ScalarField>,
        len: usize,
        group: Range<usize>,
        shared: bool,
        mark: &mut dyn FnMut(Stage) -> Result<()>,
    ) -> Result<Wiped<Projective<C>>> {
        let secrecy = match scalars {
            Given::Host(_) => self.config.secrecy,
            Given::Pinned(host) => Secrecy::of([self.config.secrecy, host.secrecy()]),
            Given::Montgomery(buffer) => buffer.secrecy(),
            Given::Canonical(buffer) => buffer.secrecy(),
        };
        let secrecy = Secrecy::of([secrecy, self.bases.secrecy()]);
        let queue = &self.queue;
        // One sum in pieces, or several whole ones.
        let pieces = self.pieces(layout, scalars, len, group.len());
        let upload = |host| -> Result<_> {
            // All memory now: what is allocated later comes behind the work that has been queued by then.
            let lens: Vec<usize> = pieces.iter().map(|piece| piece.len() * group.len()).collect();
            Ok(Source::Host(Prefetch::ahead_of(queue, &lens, UPLOADS, secrecy)?, host))
        };
        let mut source = match scalars {
            Given::Host(host) => upload(HostData::Slice(&host[group.start * len..group.end * len]))?,
            Given::Pinned(host) => upload(HostData::Pinned(host.split_off(0)))?,
            Given::Montgomery(buffer) => Source::Montgomery(*buffer),
            Given::Canonical(buffer) => Source::Canonical(*buffer),
        };
        let reductions = self.sizes().reductions(layout, group.len());
        let count: u64 = reductions.iter().map(Reduction::buckets).sum();
        let mut buckets: Buffer<Xyzz<C>> = self.device().alloc_with(count as usize, secrecy)?;
        queue.clear(&mut buckets)?;
        for piece in pieces {
            let (start, piece) = (piece.start, piece.len());
            let recoding = Recoding {
                len: piece * group.len(),
                count: piece,
                points: if shared { piece } else { piece * group.len() },
                first: if shared { start } else { group.start * len + start },
                bits: layout.window,
                digits: layout.digits,
                sets: layout.sets,
                table: self.multiples.stride(self.len),
                sentinel: buckets.len() as u32,
                form: ScalarForm::Montgomery,
                halve: halves::<C>(&self.config),
                doublings: self.multiples.doublings(),
                rows: layout.sets * group.len() as u32,
            };
            let (keys, values) = self.digits(recoding, &mut source, group.start * len + start, secrecy, mark)?;
            let mut fresh = start == 0;
            let slices = self.machine.slices(&self.config.tuning, keys.len() as u64);
            let adding = self.adding();
            let mut nodes = match self.config.tuning.accumulation {
                Accumulation::Balanced => Some(Nodes::new(self.device(), slices.count, secrecy)?),
                Accumulation::WholeBuckets | Accumulation::PerBucket => None,
            };
            let mut add = |list: &List<'_, C>, fresh: bool, buckets: &mut Buffer<Xyzz<C>>| -> Result<()> {
                if let Some(nodes) = &mut nodes {
                    let parts = self.kernels.parts(self.device(), adding)?.map(|parts| (parts, adding));
                    let way = Way { slices, parts, fresh };
                    return Ok(self.kernels.accumulate.run(queue, list, &way, nodes, buckets)?);
                }
                let per_bucket = self.config.tuning.accumulation == Accumulation::PerBucket;
                let share = if per_bucket { Share::Bucket } else { Share::Slice(slices) };
                Ok(self.kernels.whole(self.device(), per_bucket, adding)?.run(queue, list, share, adding, buckets)?)
            };
            let (mut keys, mut values, mut points) = (keys, Some(values), None);
            for _ in 0..layout.levels {
                let from = points.as_ref().unwrap_or(&*self.bases);
                let halved = self.kernels.pairs(self.device())?.run(
                    queue,
                    &keys,
                    values.as_ref(),
                    from,
                    buckets.len() as u32,
                    secrecy,
                )?;
                let sides = List { keys: &halved.side_keys, values: Some(&halved.side_values), points: from };
                add(&sides, fresh, &mut buckets)?;
                fresh = false;
                (keys, values, points) = (halved.keys, None, Some(halved.points));
                mark(Stage::Halve)?;
            }
            let points = points.as_ref().unwrap_or(&*self.bases);
            let list = List { keys: &keys, values: values.as_ref(), points };
            add(&list, fresh, &mut buckets)?;
            mark(Stage::Accumulate)?;
        }
        if let (Given::Pinned(host), Source::Host(mut uploads, _)) = (scalars, source) {
            while let Some(part) = uploads.next()? {
                if host.join(part).is_err() {
                    return Err(DeviceError::other_memory(self.device()).into());
                }
            }
        }
        // The buckets of each class of digits lie one after the other.
        let mut rest = buckets.as_view();
        let reduce = |reduction: &Reduction| {
            let (part, others) = rest.split_at(reduction.buckets() as usize)?;
            rest = others;
            Ok(self.kernels.reduce.run(queue, reduction, part)?)
        };
        let reduced = reductions.iter().map(reduce).collect::<Result<Vec<_>>>()?;
        mark(Stage::Reduce)?;
        let mut rows = Wiped::from(vec![Projective::zero(); layout.sets as usize * group.len()]);
        let weights = (0..).step_by(self.multiples.doublings().max(1) as usize);
        for ((reduction, points), weight) in reductions.iter().zip(reduced).zip(weights) {
            let points = Wiped::from(queue.read(&points)?);
            let own = finish::rows::<C>(reduction, &points, weight);
            rows.iter_mut().zip(own.iter()).for_each(|(row, own)| *row += own);
        }
        Ok(finish::sums::<C>(&rows, layout.sets as usize, layout.window))
    }

    /// The digits of scalars with their points, sorted by bucket: of a piece of those from the host, or of those in a buffer from
    /// one on.
    fn digits(
        &self,
        recoding: Recoding,
        source: &mut Source<'_, C::ScalarField>,
        start: usize,
        secrecy: Secrecy,
        mark: &mut dyn FnMut(Stage) -> Result<()>,
    ) -> Result<(Buffer<u32>, Buffer<u32>)> {
        let canonical = match self.config.bases {
            Bases::Subgroup => ScalarForm::Reduced,
            Bases::Any => ScalarForm::Plain,
        };
        let (queue, recode, range) = (&self.queue, &self.kernels.recode, start..start + recoding.len);
        let pairs = recoding.len * recoding.digits as usize;
        let (mut keys, mut values) =
            (self.device().alloc_with(pairs, secrecy)?, self.device().alloc_with(pairs, secrecy)?);
        match source {
            Source::Host(uploads, host) => uploads.run(host.split_to(recoding.len), |_, scalars, _| {
                mark(Stage::Upload)?;
                Ok::<_, Error>(recode.run(queue, &recoding, scalars, &mut keys, &mut values)?)
            })?,
            Source::Montgomery(scalars) => {
                recode.run(queue, &recoding, scalars.view(range)?, &mut keys, &mut values)?;
            }
            Source::Canonical(scalars) => {
                let recoding = Recoding { form: canonical, ..recoding };
                recode.run(queue, &recoding, scalars.view(range)?, &mut keys, &mut values)?;
            }
        }
        mark(Stage::Recode)?;
        self.kernels.sort.on(queue).sort(&mut keys, &mut values, 0..key_bits(recoding.sentinel.into()))?;
        mark(Stage::Sort)?;
        Ok((keys, values))
    }
}

impl<C: MsmCurve> fmt::Debug for Msm<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Msm")
            .field("device", self.device())
            .field("len", &self.len)
            .field("config", &self.config)
            .field("multiples", &self.multiples)
            .finish_non_exhaustive()
    }
}

fn expect_multiple(count: usize, len: usize, actual: usize) -> Result<()> {
    match len * count == actual {
        true => Ok(()),
        false => Err(Error::Length { what: "sums of equal length", expected: len * count, actual }),
    }
}

fn check_config<C: MsmCurve>(config: &MsmConfig) -> Result<()> {
    let check = |what, value: Option<u32>, least, most| match value {
        Some(actual) if !(least..=most).contains(&actual) => {
            Err(Error::Config { what, expected: least..=most, actual })
        }
        _ => Ok(()),
    };
    check("the bits of a digit", config.window, MIN_WINDOW, MAX_WINDOW)?;
    check("the bits of scalars", config.bits, 1, 32 * C::ScalarField::LIMBS as u32)?;
    check("the threads", config.tuning.slices, 1, MAX_SLICES)?;
    if let Precompute::OddDigits { depth } = config.precompute {
        check("the doublings of each base", Some(depth), 1, MAX_WINDOW)?;
    }
    if let Precompute::Doublings { depth } = config.precompute {
        check("the doublings of each base", Some(depth), 0, MAX_WINDOW - 1)?;
        check("the levels of affine additions, with doublings on the way to buckets", config.tuning.levels, 0, 0)?;
    }
    check("the points of a thread", config.tuning.least_slice, 1, u32::MAX)?;
    check("the levels of affine additions", config.tuning.levels, 0, MAX_LEVELS)?;
    check("the buckets of a layer", config.tuning.layer, 1, MAX_WINDOW)?;
    check("the elements of the last step", config.tuning.last, 0, MAX_WINDOW)
}

/// Refuses bases as the configuration says.
fn expect_bases<C: MsmCurve>(bases: &[Affine<C>], config: &MsmConfig) -> Result<()> {
    let first = |is: &(dyn Fn(&Affine<C>) -> bool + Sync)| bases.par_iter().position_first(is);
    let at_infinity = |base: &Affine<C>| base.xy().is_none_or(|(x, y)| affine_is_infinity::<C>(&[x, y]));
    if config.check
        && let Some(index) = first(&|base| !base.is_on_curve())
    {
        return Err(Error::NotOnCurve { index });
    }
    match config.infinity {
        Infinity::Refused => first(&at_infinity).map_or(Ok(()), |index| Err(Error::AtInfinity { index })),
        Infinity::Allowed => Ok(()),
    }
}
