use std::{fmt, mem, sync::Arc};

use ark_ec::{
    AffineRepr,
    short_weierstrass::{Affine, Projective},
};
use evariste_backend::{
    Buffer, Device, Error as DeviceError, Event, HostBuffer, Queue, View,
    author::{KernelSpec, Ready, Wiped},
};
use evariste_curve::{AffinePoint, expect_generator, point::affine_is_infinity};
use evariste_field::DeviceField;
use evariste_primitives::RadixSort;
use rayon::prelude::*;

use crate::{
    accumulate::{Accumulate, Parts},
    adding::Adding,
    batch_affine::BatchAffine,
    config::{Aggregation, Bases, Infinity, MAX_WINDOW, MIN_WINDOW, MsmConfig},
    cost::{CostModel, MAX_LEVELS, MAX_SLICES, Shape},
    error::{Error, Result},
    kernels::{Kernels, extra_kernels},
    memory_plan::{self, cost_model, covered_bits, precomputed},
    msm_curve::MsmCurve,
    precompute::{self, PrecomputedTable},
    recode::Recode,
    reduce::{self, Reduce},
    scalars::{Input, Scalars},
    shared::scalar_bytes,
    whole_buckets::WholeBuckets,
};

/// A stage of a multi-scalar multiplication. The variants are in the order of execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Copies scalars from the host to the device.
    Upload,
    /// Recodes scalars to signed digits.
    Recode,
    /// Sorts digits by bucket.
    Sort,
    /// One level of batch-affine tree addition adds neighbours of the same bucket.
    BatchAffine,
    /// Adds points to buckets.
    Accumulate,
    /// Reduces buckets to few points.
    Reduce,
}

/// A plan for multi-scalar multiplications Σ s_i P_i, with bases P_i that stay on a device.
///
/// # Steps
/// Pippenger's method ("On the evaluation of powers and related problems", 1976) recodes a scalar s to signed digits,
/// `s = Σ d_w 2^(cw)` with |d_w| ≤ 2^(c−1). For each window w it adds the points ±P with |d_w| = k in bucket B_k. It
/// then reduces the buckets to Σ k·B_k.
///
/// 1. *Recode*: each digit that is not zero becomes a pair of its bucket and its point.
/// 2. *Sort* the pairs by bucket (radix sort).
/// 3. *Accumulate*: each thread takes an equal slice of the sorted pairs, whatever the buckets are. It adds the points
///    of a bucket in XYZZ form, 8M + 2S each. A tree joins the partial sums of buckets that slices share. Equal scalars
///    thus take no longer than others. (Chen et al., "Load-Balanced Parallel Implementation on GPUs for Multi-Scalar
///    Multiplication Algorithm", TCHES 2024/2.) On a processor, a thread adds the points of a bucket by batch-affine
///    tree addition, 5M + 1S each.
/// 4. *Reduce* the buckets of each window, in layers, to few points with weights that are powers of two. This takes two
///    additions of 12M + 2S for each bucket.
/// 5. *Combine* the windows on the host: about one doubling for each bit of a scalar.
///
/// With [`Precompute::Tables`](crate::Precompute::Tables), the windows share one set of buckets. The feature `compare`
/// has other multiples of the bases and other ways for steps 3 and 4.
///
/// The longest of public scalars from the host determines the number of windows. Large inputs from the host are copied
/// in two pieces, the second while the device works on the first.
///
/// Any number of threads may use an `Msm` at once, on any queue ([`Msm::on`]).
pub struct Msm<C: MsmCurve> {
    pub(crate) queue: Queue,
    pub(crate) config: MsmConfig,
    pub(crate) model: CostModel,
    /// The bases, then their multiples by 2^(window · windows), and so on, or by 2, and so on.
    pub(crate) bases: Arc<Buffer<AffinePoint<C>>>,
    /// When they are there.
    pub(crate) ready: Ready,
    pub(crate) len: usize,
    pub(crate) precomputed: PrecomputedTable,
    pub(crate) kernels: Arc<Kernels<C>>,
}

/// A sum, and an event behind each stage of its computation.
pub type Profiled<C> = (Projective<C>, Vec<(Stage, Event)>);

impl<C: MsmCurve> Msm<C> {
    /// Makes a plan for bases on the host, which it copies to the device on its queue; `&device` stands for its default
    /// queue.
    ///
    /// # Errors
    /// - [`Error::Curve`] if the coefficients, the generator or the order of the curve's configuration are wrong.
    /// - [`Error::Device`] for more than 2^31 bases, or if the device has no room for them.
    /// - [`Error::Device`] if a kernel does not compile, or if the device fails.
    pub fn new(queue: impl Into<Queue>, bases: &[Affine<C>]) -> Result<Self> {
        Self::with_config(queue, bases, MsmConfig::default())
    }

    /// Makes a plan for bases on the host, as [`Msm::new`] does, with choices of your own.
    ///
    /// # Errors
    /// - [`Error::Config`] if a value of the configuration is out of its bounds, or for more doublings than that many
    ///   bases may have.
    /// - [`Error::NotOnCurve`] or [`Error::AtInfinity`] if a base is one that the configuration refuses.
    /// - [`Error::Curve`], for points of order r, if the coefficients, the generator or the order of the curve's
    ///   configuration are wrong.
    /// - [`Error::Device`] for more than 2^31 bases, or if the budget of
    ///   [`Precompute::Tables`](crate::Precompute::Tables) does not hold them.
    /// - [`Error::Device`] if the device has no room for the bases and their multiples.
    /// - [`Error::Device`] if a kernel does not compile, or if the device fails.
    pub fn with_config(queue: impl Into<Queue>, bases: &[Affine<C>], config: MsmConfig) -> Result<Self> {
        let queue = queue.into();
        let kernels = Arc::new(Kernels::new(queue.device(), extra_kernels::<C>(&config))?);
        Self::with_kernels(&queue, kernels, bases, config)
    }

    /// [`Msm::with_config`] with compiled kernels.
    pub(crate) fn with_kernels(
        queue: &Queue,
        kernels: Arc<Kernels<C>>,
        bases: &[Affine<C>],
        config: MsmConfig,
    ) -> Result<Self> {
        expect_bases(bases, &config)?;
        Self::build(queue, kernels, bases.len(), config, |copies| {
            let mut table = queue.device().alloc(bases.len() * copies)?;
            queue.write(table.view_mut(..bases.len())?, bases)?;
            Ok(table)
        })
    }

    /// Makes a plan for bases on the device, which it copies on its queue; `&device` stands for its default queue.
    ///
    /// # Errors
    /// [`Error::Device`] if the bases lie on another device or, with [`MsmConfig::check`], are no device form of
    /// points. Otherwise it fails under the conditions of [`Msm::with_config`].
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
        Self::build(&queue, kernels, bases.len(), config, |copies| copied(&queue, bases, copies))
    }

    /// Makes a plan for bases on the device, which it keeps: without multiples, there is no second copy of them.
    /// `&device` stands for its default queue.
    ///
    /// ```
    /// # fn main() -> Result<(), evariste_msm::Error> {
    /// # use ark_bls12_381::{Fr, G1Affine, g1};
    /// # use ark_ec::AffineRepr;
    /// # use evariste_backend::{ByteCheck, Device, Element, bytemuck};
    /// # use evariste_curve::AffinePoint;
    /// use evariste_msm::{Msm, MsmConfig};
    ///
    /// // The bytes of a file whose points have the device's form.
    /// # let mut words = vec![0u32; 2 * 96 / 4];
    /// # AffinePoint::<g1::Config>::encode(&[G1Affine::generator(); 2], bytemuck::cast_slice_mut(&mut words));
    /// # let bytes: &[u8] = bytemuck::cast_slice(&words);
    /// let device = Device::best()?;
    /// let bases = device.upload_bytes::<AffinePoint<g1::Config>>(bytes, ByteCheck::Elements)?;
    /// let msm = Msm::with_bases(&device, bases, MsmConfig::default().check(true))?;
    /// assert_eq!(msm.msm(&[Fr::from(1u8), Fr::from(2u8)])?, G1Affine::generator() * Fr::from(3u8));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails under the conditions of [`Msm::from_buffer`].
    pub fn with_bases(queue: impl Into<Queue>, bases: Buffer<AffinePoint<C>>, config: MsmConfig) -> Result<Self> {
        let queue = queue.into();
        let device = queue.device();
        device.expect_same("the bases", bases.device())?;
        if config.check || config.infinity == Infinity::Refused {
            expect_bases(&Wiped::from(queue.read(&bases)?), &config)?;
        }
        let kernels = Arc::new(Kernels::new(device, extra_kernels::<C>(&config))?);
        Self::build(&queue, kernels, bases.len(), config, |copies| match copies {
            1 => Ok(bases),
            _ => copied(&queue, bases.as_view(), copies),
        })
    }

    /// `bases` makes room for so many points for each base, with the bases first.
    fn build(
        queue: &Queue,
        kernels: Arc<Kernels<C>>,
        len: usize,
        config: MsmConfig,
        bases: impl FnOnce(usize) -> Result<Buffer<AffinePoint<C>>>,
    ) -> Result<Self> {
        let device = queue.device();
        check_config::<C>(&config)?;
        if config.bases == Bases::Subgroup {
            expect_generator::<C>(device)?;
        }
        let model = cost_model::<C>(device, &config);
        let precomputed = precomputed::<C>(device, &model, &kernels.sort, &config, len)?;
        let copies = precomputed.copies() as usize;
        let mut bases = bases(copies)?;
        if len > 0 && copies > 1 {
            let times =
                if let PrecomputedTable::Tables { window, windows, .. } = precomputed { window * windows } else { 1 };
            precompute::extend::<C>(queue, &mut bases, len, copies, times)?;
        }
        let (bases, ready) = (Arc::new(bases), Ready::behind(queue)?);
        let msm = Self { queue: queue.clone(), config, model, bases, ready, len, precomputed, kernels };
        // Compiled now, so that the first evaluation is as fast as the next.
        if msm.memory_plan(len, 1, covered_bits::<C>(&config)).is_ok_and(|plan| plan.levels > 0) {
            msm.kernels.batch_affine(device)?;
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

    /// Returns the same plan, with the same bases and kernels, on another queue of its device.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), ..self.clone() }
    }

    /// Compiles every kernel that calls of this plan may launch. Later calls compile nothing. A new plan has compiled
    /// the kernels of one sum over all bases; more sums at once, or fewer bits, may take others
    /// ([`Stage::BatchAffine`]).
    ///
    /// ```
    /// # fn main() -> Result<(), evariste_msm::Error> {
    /// # use ark_bls12_381::{Fr, G1Affine, g1};
    /// # use ark_ec::AffineRepr;
    /// # use evariste_backend::Device;
    /// use evariste_msm::Msm;
    ///
    /// let msm = Msm::<g1::Config>::new(&Device::best()?, &[G1Affine::generator(); 2])?;
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
        // The most pairs of the fewest buckets. Points that are doubled on the way have no levels.
        let doubled = matches!(self.precomputed, PrecomputedTable::Doublings { .. });
        if !doubled && self.model.levels(&self.config.tuning, C::BaseField::LIMBS, u64::MAX, 1) > 0 {
            self.kernels.batch_affine(self.device())?;
        }
        Ok(())
    }

    /// Lists the kernels of plans with the default tuning. For tools that compile ahead.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        let mut kernels = vec![Recode::<C::ScalarField>::spec(), precompute::spec::<C>()];
        kernels.extend(RadixSort::kernels());
        kernels.extend(BatchAffine::<C>::specs());
        kernels.extend(Accumulate::<C>::specs());
        kernels.extend(Reduce::<C>::specs());
        kernels
    }

    /// Lists the kernels that only some values of the feature `compare` take. For
    /// tools that compile ahead.
    #[doc(hidden)]
    pub fn optional_kernels() -> Vec<KernelSpec> {
        let mut kernels = [Parts::<C>::specs(), WholeBuckets::<C>::specs()].concat();
        kernels.push(reduce::running_spec::<C>());
        kernels
    }

    /// How points are added to buckets.
    pub(crate) fn adding(&self) -> Adding {
        Adding::new(self.config.tuning.addition, self.precomputed, self.len)
    }

    /// Returns the number of bases.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no bases.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bits of a window in a call of `count` sums of `len` scalars each. The number has the least cost that
    /// the memory allows.
    pub fn window(&self, len: usize, count: usize) -> u32 {
        let bits = covered_bits::<C>(&self.config);
        let plan = self.memory_plan(len, count, bits);
        plan.map_or_else(|_| self.sizes().window(&Shape { len, count, bits }), |plan| plan.window)
    }

    /// Returns the bytes of device memory that the plan holds.
    pub fn bytes(&self) -> u64 {
        self.bases.bytes()
    }

    /// Returns the bytes of device memory that a plan with `len` bases and its calls of `count` sums over them take:
    /// [`Msm::bytes`] and [`Msm::scratch_bytes`]. Nothing is allocated, but the kernels of sorting are compiled.
    ///
    /// # Errors
    /// - [`Error::Config`] if a value of the configuration is out of its bounds or takes more than 2^28 buckets.
    /// - [`Error::Device`] if the memory of the configuration, or of the device, does not hold a sum of one scalar.
    /// - [`Error::Device`] for more than 2^31 bases, or if a buffer exceeds the device's limit.
    /// - [`Error::Device`] if a kernel does not compile.
    pub fn required_bytes(device: &Device, len: usize, count: usize, config: MsmConfig) -> Result<u64> {
        check_config::<C>(&config)?;
        let (model, sort) = (cost_model::<C>(device, &config), RadixSort::new(device)?);
        memory_plan::required_bytes::<C>(device, &model, &sort, &config, len, count)
    }

    /// Returns the bytes of device memory that a call of `count` sums of `len` scalars each takes beside the plan's
    /// own. They include the scalars if these come from the host.
    ///
    /// # Errors
    /// - [`Error::Config`] if the configuration's window takes more than 2^28 buckets.
    /// - [`Error::Device`] if the memory of the configuration, or of the device, does not hold a sum of one scalar.
    ///   Also if a buffer exceeds the device's limit.
    pub fn scratch_bytes(&self, len: usize, count: usize) -> Result<u64> {
        let plan = self.memory_plan(len, count, covered_bits::<C>(&self.config))?;
        Ok(self.sizes().bytes(&plan, plan.piece.min(len), plan.group.min(count)))
    }

    /// Computes Σ `scalars[i]` · `bases[i]`. There may be fewer scalars than bases.
    ///
    /// # Errors
    /// - [`Error::Config`] if the configuration's window takes more than 2^28 buckets.
    /// - [`Error::Device`] for more scalars than bases, or if the scalars lie on another device.
    /// - [`Error::Device`] if the memory of the configuration, or of the device, does not hold a sum of one scalar.
    /// - [`Error::Device`] if a buffer exceeds the device's limit, if memory is exhausted, or if the device fails.
    pub fn msm<'a>(&self, scalars: impl Into<Scalars<'a, C::ScalarField>>) -> Result<Projective<C>> {
        let scalars = scalars.into();
        self.expect_at_most("the scalars, at most one for each base", self.len, scalars.len())?;
        let len = scalars.len();
        Ok(self.sums(&mut scalars.into(), len, 1, true, &mut |_| Ok(()))?[0])
    }

    /// Computes a sum as [`Msm::msm`] does, over scalars in pinned host memory
    /// ([`Device::host_buffer`](evariste_backend::Device::host_buffer)), in device form
    /// ([`Mont`](evariste_field::Mont)'s [`Element::encode`](evariste_backend::Element::encode)). It returns the memory
    /// with the sum. The scalars are secret if [`MsmConfig::secrecy`] or the memory is. With wgpu, whose mappings end
    /// as a whole, they pass through staging memory.
    ///
    /// # Errors
    /// [`Error::Device`] unless `scalars` is a whole number of scalars, at most that of the bases, or if it belongs to
    /// another device. Otherwise it fails under the conditions of [`Msm::msm`]. The host memory is dropped then.
    pub fn msm_pinned(&self, scalars: HostBuffer) -> Result<(Projective<C>, HostBuffer)> {
        let (expected, actual) = (self.device().info().id, scalars.device());
        if expected != actual {
            return Err(DeviceError::WrongDevice { what: "the scalars", expected, actual }.into());
        }
        let each = scalar_bytes::<C::ScalarField>() as usize;
        let len = scalars.len() / each;
        if !scalars.len().is_multiple_of(each) {
            let expected = scalars.len().next_multiple_of(each);
            return Err(DeviceError::length("the host memory of scalars, in bytes", expected, scalars.len()).into());
        }
        self.expect_at_most("the scalars, at most one for each base", self.len, len)?;
        let mut scalars = Input::Pinned(scalars);
        let sum = self.sums(&mut scalars, len, 1, true, &mut |_| Ok(()))?[0];
        match scalars {
            Input::Pinned(scalars) => Ok((sum, scalars)),
            _ => unreachable!("these were given"),
        }
    }

    /// Computes a sum as [`Msm::msm`] does. It also returns an event on the plan's queue for the end of each stage.
    ///
    /// # Errors
    /// Fails under the conditions of [`Msm::msm`].
    pub fn msm_profiled<'a>(&self, scalars: impl Into<Scalars<'a, C::ScalarField>>) -> Result<Profiled<C>> {
        let scalars = scalars.into();
        self.expect_at_most("the scalars, at most one for each base", self.len, scalars.len())?;
        let mut events = Vec::new();
        let mut mark = |stage| {
            events.push((stage, self.queue.record()?));
            Ok(())
        };
        let len = scalars.len();
        let sum = self.sums(&mut scalars.into(), len, 1, true, &mut mark)?[0];
        Ok((sum, events))
    }

    /// Computes `count` sums over the same bases. `scalars` holds those of one sum after the other, the same number for
    /// each.
    ///
    /// # Errors
    /// [`Error::Device`] unless `count` divides the number of scalars, or for more scalars of one sum than bases.
    /// Otherwise it fails under the conditions of [`Msm::msm`].
    pub fn msm_batch<'a>(
        &self,
        count: usize,
        scalars: impl Into<Scalars<'a, C::ScalarField>>,
    ) -> Result<Vec<Projective<C>>> {
        let scalars = scalars.into();
        let len = scalars.len().checked_div(count).unwrap_or(0);
        expect_multiple(count, len, scalars.len())?;
        self.expect_at_most("the scalars of one sum, at most one for each base", self.len, len)?;
        Ok(mem::take(&mut *self.sums(&mut scalars.into(), len, count, true, &mut |_| Ok(()))?))
    }

    /// Computes `count` sums, each over a segment of [`Msm::len`] / `count` consecutive bases and scalars.
    ///
    /// # Errors
    /// [`Error::Device`] unless scalars and bases have the same length and `count` divides it. Otherwise it fails under
    /// the conditions of [`Msm::msm`].
    pub fn msm_segmented<'a>(
        &self,
        count: usize,
        scalars: impl Into<Scalars<'a, C::ScalarField>>,
    ) -> Result<Vec<Projective<C>>> {
        let scalars = scalars.into();
        let len = self.len.checked_div(count).unwrap_or(0);
        expect_multiple(count, len, self.len)?;
        if scalars.len() != self.len {
            return Err(DeviceError::length("the scalars, one for each base", self.len, scalars.len()).into());
        }
        Ok(mem::take(&mut *self.sums(&mut scalars.into(), len, count, false, &mut |_| Ok(()))?))
    }

    pub(crate) fn expect_at_most(&self, what: &'static str, most: usize, actual: usize) -> Result<()> {
        match actual <= most {
            true => Ok(()),
            false => Err(DeviceError::length(what, most, actual).into()),
        }
    }
}

/// The same plan: a clone has no bases of its own.
impl<C: MsmCurve> Clone for Msm<C> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            config: self.config,
            model: self.model,
            bases: Arc::clone(&self.bases),
            ready: self.ready.clone(),
            len: self.len,
            precomputed: self.precomputed,
            kernels: Arc::clone(&self.kernels),
        }
    }
}

impl<C: MsmCurve> fmt::Debug for Msm<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Msm")
            .field("device", self.device())
            .field("len", &self.len)
            .field("config", &self.config)
            .field("precomputed", &self.precomputed)
            .finish_non_exhaustive()
    }
}

fn expect_multiple(count: usize, len: usize, actual: usize) -> Result<()> {
    match len * count == actual {
        true => Ok(()),
        false => Err(DeviceError::length("the scalars or bases of sums of equal length", len * count, actual).into()),
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
    #[cfg(any(test, feature = "compare"))]
    if let crate::config::Precompute::OddSignedDigits { depth } = config.precompute {
        check("the doublings of each base", Some(depth), 1, MAX_WINDOW)?;
    }
    #[cfg(any(test, feature = "compare"))]
    if let crate::config::Precompute::Doublings { depth } = config.precompute {
        check("the doublings of each base", Some(depth), 0, MAX_WINDOW - 1)?;
        check(
            "the levels of affine additions, with doublings on the way to buckets",
            config.tuning.affine_levels,
            0,
            0,
        )?;
    }
    check("the points of a thread", config.tuning.min_slice, 1, u32::MAX)?;
    check("the levels of affine additions", config.tuning.affine_levels, 0, MAX_LEVELS)?;
    check("the buckets of a layer", config.tuning.log_reduction_run, 1, MAX_WINDOW)?;
    check("the longest row of trees", config.tuning.log_final_row, 0, MAX_WINDOW)
}

/// A table with so many points for each base, the bases first.
fn copied<C: MsmCurve>(
    queue: &Queue,
    bases: View<'_, AffinePoint<C>>,
    copies: usize,
) -> Result<Buffer<AffinePoint<C>>> {
    let mut table = queue.device().alloc_with(bases.len() * copies, bases.secrecy())?;
    queue.copy(bases, table.view_mut(..bases.len())?)?;
    Ok(table)
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
