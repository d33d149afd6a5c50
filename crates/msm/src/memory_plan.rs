//! The memory of a plan and its calls: precomputed multiples, windows, groups and pieces.

use std::{iter, marker::PhantomData};

use ark_ff::PrimeField;
use evariste_backend::{Device, Element as _, Error as DeviceError};
use evariste_curve::{AffinePoint, source::iterations as point_iterations};
use evariste_field::{DeviceField, ifma};
use evariste_primitives::RadixSort;

use crate::{
    accumulate::Nodes,
    adding::Adding,
    batch_affine::BatchAffine,
    config::{Accumulation, Bases, MAX_WINDOW, MIN_WINDOW, MsmConfig, Precompute},
    cost::{self, CostModel, MAX_PAIRS, Shape},
    error::{Error, Result},
    msm_curve::MsmCurve,
    precompute::{self, PrecomputedTable},
    reduce::Reduction,
    shared::{scalar_bytes, sum_bytes},
};

/// Buckets of all windows at most: the indices of points among their sums fit 32 bits.
const MAX_BUCKETS: u64 = 1 << 28;

/// The groups and pieces of a call.
#[derive(Clone, Debug)]
pub(crate) struct MemoryPlan {
    /// Bits of a digit.
    pub(crate) window: u32,
    pub(crate) digits: u32,
    /// Windows of one sum that have buckets of their own.
    pub(crate) windows: u32,
    /// Sums at once.
    pub(crate) group: usize,
    /// Scalars of one sum at once.
    pub(crate) piece: usize,
    /// The levels of batch-affine addition.
    pub(crate) levels: u32,
    /// Whether one sum takes several pieces.
    pub(crate) in_pieces: bool,
}

/// What the memory of a call depends on beside its shape.
pub(crate) struct Sizes<'a, C: MsmCurve> {
    pub(crate) device: &'a Device,
    pub(crate) model: &'a CostModel,
    pub(crate) sort: &'a RadixSort,
    pub(crate) config: &'a MsmConfig,
    pub(crate) precomputed: PrecomputedTable,
    /// Whether digits stay until the sum is there, for other sums.
    pub(crate) keeps_digits: bool,
    pub(crate) curve: PhantomData<fn() -> C>,
}

/// The memory that a plan and a call may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Bytes of one buffer.
    buffer: u64,
    /// Bytes of all of them.
    memory: u64,
}

/// The limit that a plan exceeds, and by what value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Excess {
    /// Bytes of all buffers.
    Memory(u64),
    /// Bytes of the largest buffer.
    Buffer(u64),
    /// More buckets or pairs than there are numbers for.
    Numbers,
}

impl Budget {
    /// The budget of a device that holds `bases` bytes of bases.
    pub(crate) fn new(device: &Device, config: &MsmConfig, bases: u64) -> Self {
        let memory = device.info().memory_bytes.map_or(u64::MAX, |bytes| bytes / 10 * 9);
        let memory = config.memory.unwrap_or(memory.saturating_sub(bases));
        Self { buffer: device.info().limits.buffer_bytes, memory }
    }
}

impl<C: MsmCurve> Sizes<'_, C> {
    /// The window of least cost, whatever memory it takes.
    pub(crate) fn window(&self, shape: &Shape) -> u32 {
        match self.precomputed {
            PrecomputedTable::Tables { window, .. } => window,
            precomputed => {
                let most = most_buckets::<C>(self.device).max(shape.count as u64);
                self.config.window.unwrap_or_else(|| cost::best_window(self.model, shape, precomputed, most))
            }
        }
    }

    /// Bytes of scratch for `group` sums of `piece` scalars at once.
    pub(crate) fn bytes(&self, plan: &MemoryPlan, piece: usize, group: usize) -> u64 {
        let pairs = piece * group * plan.digits as usize;
        let reductions = self.reductions(plan, group);
        let buckets = reductions.iter().map(Reduction::buckets).sum();
        let slices = self.model.slices(&self.config.tuning, C::BaseField::LIMBS, pairs as u64).count;
        let upload = (piece * group) as u64 * scalar_bytes::<C::ScalarField>();
        // Of several pieces, two are there at once, throughout.
        let (upload, uploads) = if plan.in_pieces { (0, 2 * upload) } else { (upload, 0) };
        let sort = 8 * pairs as u64 + self.sort.required_bytes(pairs, key_bits(buckets)).max(upload);
        let (mut list, mut len, mut add) = (8 * pairs as u64, pairs, 0);
        let kept = if self.keeps_digits { list } else { 0 };
        for _ in 0..plan.levels {
            let (left, [level_sums, all]) = BatchAffine::<C>::required_bytes(len, buckets);
            add = add.max(list + all);
            (list, len) = (kept + level_sums, left);
        }
        let balanced = self.config.tuning.accumulation == Accumulation::Balanced;
        let nodes = if balanced { Nodes::<C>::required_bytes(slices) } else { 0 };
        let add = add.max(list) + nodes;
        let reduce = reductions.iter().map(Reduction::required_bytes::<C>).max().unwrap_or(0);
        buckets * sum_bytes::<C>() + uploads + sort.max(add).max(reduce)
    }

    /// Bytes of the largest buffer of an evaluation in this plan.
    fn largest(&self, plan: &MemoryPlan) -> u64 {
        let (scalars, points) = ((plan.piece * plan.group) as u64, AffinePoint::<C>::BYTES as u64);
        let pairs = scalars * u64::from(plan.digits);
        let reductions = self.reductions(plan, plan.group);
        let buckets: u64 = reductions.iter().map(Reduction::buckets).sum();
        let nodes = match self.config.tuning.accumulation {
            Accumulation::Balanced => {
                2 * u64::from(self.model.slices(&self.config.tuning, C::BaseField::LIMBS, pairs).count)
            }
            Accumulation::WholeBuckets | Accumulation::PerBucket => 0,
        };
        let reduced = reductions.iter().map(Reduction::largest).max().unwrap_or(0);
        let level_sums = if plan.levels > 0 { (pairs + buckets.min(pairs)) / 2 * points } else { 0 };
        let sums = buckets.max(nodes).max(reduced) * sum_bytes::<C>();
        (scalars * scalar_bytes::<C::ScalarField>()).max(4 * pairs).max(level_sums).max(sums)
    }

    /// Of each class of digits.
    pub(crate) fn reductions(&self, plan: &MemoryPlan, group: usize) -> Vec<Reduction> {
        let (rows, doublings) = (plan.windows * group as u32, self.precomputed.doublings());
        let logs = cost::bucket_logs(plan.window, doublings).into_iter();
        logs.map(|log| self.model.reduction(&self.config.tuning, rows, log, doublings > 0)).collect()
    }

    /// `group` sums of `len` scalars in digits of `window` bits, `piece` scalars at once, done in the best way. If that
    /// does not fit, done with the least memory, unless the configuration says how often neighbours are added.
    fn try_plan(
        &self,
        budget: Budget,
        window: u32,
        (len, bits): (usize, u32),
        [group, piece]: [usize; 2],
    ) -> Result<MemoryPlan, Excess> {
        let digits = bits.div_ceil(window);
        let windows =
            if let PrecomputedTable::Tables { windows, .. } = self.precomputed { windows.min(digits) } else { digits };
        let pairs = (piece as u64).saturating_mul(group as u64).saturating_mul(digits.into());
        let each = cost::buckets(window, self.precomputed.doublings());
        let buckets = (group as u64).saturating_mul(windows.into()).saturating_mul(each);
        if pairs >= MAX_PAIRS || buckets > MAX_BUCKETS {
            return Err(Excess::Numbers);
        }
        let levels = match self.precomputed {
            // Points are not in memory before they are added.
            PrecomputedTable::Doublings { .. } => 0,
            _ => self.model.levels(&self.config.tuning, C::BaseField::LIMBS, pairs, buckets),
        };
        let plan = MemoryPlan { window, digits, windows, group, piece, levels, in_pieces: piece < len };
        let fits = |plan: MemoryPlan| match (self.largest(&plan), self.bytes(&plan, piece, group)) {
            (largest, _) if largest > budget.buffer => Err(Excess::Buffer(largest)),
            (_, bytes) if bytes > budget.memory => Err(Excess::Memory(bytes)),
            _ => Ok(plan),
        };
        let with_levels = fits(plan.clone());
        if self.config.tuning.affine_levels.is_some() || levels == 0 {
            return with_levels;
        }
        with_levels.or_else(|before| fits(MemoryPlan { levels: 0, ..plan }).map_err(|excess| excess.min(before)))
    }

    /// One sum of `len` scalars in digits of `window` bits, in as few pieces as there is memory for; or the least
    /// excess of all.
    fn in_pieces(&self, budget: Budget, window: u32, (len, bits): (usize, u32)) -> Result<MemoryPlan, Excess> {
        let mut least = Excess::Numbers;
        let mut pieces = iter::successors(Some(len.max(1)), |piece| (*piece > 1).then(|| piece.div_ceil(2)));
        let found = pieces.find_map(|piece| {
            let plan = self.try_plan(budget, window, (len, bits), [1, piece]);
            plan.map_err(|excess| least = least.min(excess)).ok()
        });
        found.ok_or(least)
    }

    pub(crate) fn memory_plan(&self, budget: Budget, (len, count, bits): (usize, usize, u32)) -> Result<MemoryPlan> {
        let (mut group, whole) = (count.max(1), len.max(1));
        loop {
            let window = self.window(&Shape { len, count: group, bits });
            match self.try_plan(budget, window, (len, bits), [group, whole]) {
                Ok(plan) => return Ok(plan),
                Err(_) if group > 1 => group = group.div_ceil(2),
                Err(_) => break,
            }
        }
        // One sum, in pieces: the window and the pieces that cost least among those that there is memory for.
        let shape = Shape { len, count: 1, bits };
        let window_sizes = match (self.precomputed, self.config.window) {
            (PrecomputedTable::Tables { window, .. }, _) | (_, Some(window)) => window..=window,
            _ => MIN_WINDOW..=MAX_WINDOW,
        };
        let cost = |plan: &MemoryPlan| {
            let pieces = len.div_ceil(plan.piece);
            cost::cost_in_pieces(self.model, &shape, plan.window, self.precomputed, pieces)
        };
        let (mut found, mut least) = (Vec::new(), Excess::Numbers);
        for window in window_sizes.clone() {
            match self.in_pieces(budget, window, (len, bits)) {
                Ok(plan) => found.push(plan),
                Err(excess) => least = least.min(excess),
            }
        }
        if let Some(best) = found.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b))) {
            return Ok(best);
        }
        Err(self.refused(budget, *window_sizes.start(), least))
    }

    /// One sum of scalars of a length and bits, at once, by digits that stay.
    pub(crate) fn whole_plan(&self, budget: Budget, window: u32, shape: (usize, u32)) -> Result<MemoryPlan> {
        let plan = Self { keeps_digits: true, ..*self }.try_plan(budget, window, shape, [1, shape.0]);
        plan.map_err(|excess| self.refused(budget, window, excess))
    }

    fn refused(&self, budget: Budget, window: u32, excess: Excess) -> Error {
        match excess {
            Excess::Numbers => {
                let (what, least, most) = ("the bits of a window, with these scalars", MIN_WINDOW, MAX_WINDOW - 1);
                Error::Config { what, expected: least..=most, actual: window }
            }
            Excess::Buffer(actual) => {
                let (device, expected) = (self.device.info().id, budget.buffer);
                DeviceError::TooLarge { what: "a buffer of one sum", device, expected, actual }.into()
            }
            Excess::Memory(needed) => DeviceError::InsufficientMemory { needed, available: budget.memory }.into(),
        }
    }
}

/// Bits of keys up to `sentinel`.
pub(crate) fn key_bits(sentinel: u64) -> u32 {
    u64::BITS - sentinel.leading_zeros()
}

/// Buckets that one buffer has room for.
pub(crate) fn most_buckets<C: MsmCurve>(device: &Device) -> u64 {
    MAX_BUCKETS.min(device.info().limits.buffer_bytes / sum_bytes::<C>())
}

pub(crate) fn cost_model<C: MsmCurve>(device: &Device, config: &MsmConfig) -> CostModel {
    // In lanes, points are added one by one.
    let precomputed = match config.precompute {
        #[cfg(any(test, feature = "compare"))]
        Precompute::Doublings { .. } => PrecomputedTable::Doublings { copies: 1 },
        _ => PrecomputedTable::None,
    };
    let adding = Adding::new(config.tuning.addition, precomputed, 0);
    let in_lanes = adding == Adding::Single && ifma::Montgomery52::of::<C::BaseField>().is_some();
    let whole = config.tuning.accumulation != Accumulation::Balanced;
    CostModel::new(device.info(), adding.iterations() * point_iterations::<C>(), in_lanes, whole)
}

/// Whether scalars above half the order are replaced by their opposites.
pub(crate) fn halves<C: MsmCurve>(config: &MsmConfig) -> bool {
    config.bases == Bases::Subgroup && config.bits.is_none_or(|bits| bits >= C::ScalarField::MODULUS_BIT_SIZE)
}

/// Bits that the signed digits have to cover: one more than scalars have.
pub(crate) fn covered_bits<C: MsmCurve>(config: &MsmConfig) -> u32 {
    let field = C::ScalarField::MODULUS_BIT_SIZE;
    let all = match config.bases {
        Bases::Subgroup => field,
        Bases::FullGroup => 32 * C::ScalarField::LIMBS as u32 + 1,
    };
    config.bits.map_or(all, |bits| bits.saturating_add(1).min(all))
}

/// Points for each of `len` bases with `depth` doublings. All of them have numbers of 31 bits.
#[cfg(any(test, feature = "compare"))]
pub(crate) fn doublings(len: usize, depth: u32) -> Result<u32> {
    let most = (MAX_PAIRS / len.max(1) as u64).saturating_sub(1).min(MAX_WINDOW.into()) as u32;
    match depth <= most {
        true => Ok(depth + 1),
        false => Err(Error::Config { what: "the doublings of each of these bases", expected: 0..=most, actual: depth }),
    }
}

/// What is kept of each of `len` bases.
pub(crate) fn precomputed<C: MsmCurve>(
    device: &Device,
    model: &CostModel,
    sort: &RadixSort,
    config: &MsmConfig,
    len: usize,
) -> Result<PrecomputedTable> {
    // Points have numbers of 31 bits.
    if len as u64 > MAX_PAIRS {
        let (device, limit, actual) = (device.info().id, MAX_PAIRS, len as u64);
        return Err(DeviceError::TooLarge { what: "the bases of a plan", device, expected: limit, actual }.into());
    }
    Ok(match config.precompute {
        Precompute::None => PrecomputedTable::None,
        Precompute::Tables { budget } => table_shape::<C>(device, model, sort, config, len, budget)?,
        #[cfg(any(test, feature = "compare"))]
        Precompute::OddSignedDigits { depth } => PrecomputedTable::OddSignedDigits { copies: doublings(len, depth)? },
        #[cfg(any(test, feature = "compare"))]
        Precompute::Doublings { .. } if len > 1 << precompute::BASE_BITS => {
            let (device, expected, actual) = (device.info().id, 1 << precompute::BASE_BITS, len as u64);
            return Err(DeviceError::TooLarge { what: "the bases of doublings", device, expected, actual }.into());
        }
        #[cfg(any(test, feature = "compare"))]
        Precompute::Doublings { depth } => PrecomputedTable::Doublings { copies: doublings(len, depth)? },
    })
}

/// Bytes that a plan with `len` bases and a call of `count` sums over them take.
pub(crate) fn required_bytes<C: MsmCurve>(
    device: &Device,
    model: &CostModel,
    sort: &RadixSort,
    config: &MsmConfig,
    len: usize,
    count: usize,
) -> Result<u64> {
    let precomputed = precomputed::<C>(device, model, sort, config, len)?;
    let bases = (len * AffinePoint::<C>::BYTES) as u64 * u64::from(precomputed.copies());
    let sizes = Sizes::<C> { device, model, sort, config, precomputed, keeps_digits: false, curve: PhantomData };
    let plan = sizes.memory_plan(Budget::new(device, config, bases), (len, count, covered_bits::<C>(config)))?;
    let call = sizes.bytes(&plan, plan.piece.min(len), plan.group.min(count));
    let copies = if precomputed.copies() > 1 { precompute::scratch_bytes::<C>(len) } else { 0 };
    Ok(bases + call.max(copies))
}

/// How many tables fit the budget, with the bits of a digit and the windows of buckets that go with them.
fn table_shape<C: MsmCurve>(
    device: &Device,
    model: &CostModel,
    sort: &RadixSort,
    config: &MsmConfig,
    len: usize,
    budget: u64,
) -> Result<PrecomputedTable> {
    let own = (len * AffinePoint::<C>::BYTES) as u64;
    if budget < own {
        return Err(DeviceError::InsufficientMemory { needed: own, available: budget }.into());
    }
    let bits = covered_bits::<C>(config);
    // Points of all tables have numbers of 31 bits.
    let room = budget.min(device.info().limits.buffer_bytes);
    let most = (room / own.max(1)).max(1).min(MAX_PAIRS / len.max(1) as u64).min(bits.into()) as u32;
    let of_window = |window: u32| {
        let digits = bits.div_ceil(window);
        let windows = digits.div_ceil(most.min(digits));
        let copies = digits.div_ceil(windows);
        if copies > 1 { PrecomputedTable::Tables { copies, window, windows } } else { PrecomputedTable::None }
    };
    if let Some(window) = config.window {
        return Ok(of_window(window));
    }
    // A sum of all bases has room beside them, if any window leaves some.
    let excess = |window: &u32| {
        let precomputed = of_window(*window);
        let sizes = Sizes::<C> { device, model, sort, config, precomputed, keeps_digits: false, curve: PhantomData };
        let budget = Budget::new(device, config, own.saturating_mul(precomputed.copies().into()));
        sizes.in_pieces(budget, *window, (len, bits)).err()
    };
    let (shape, share) =
        (Shape { len, count: 1, bits }, PrecomputedTable::Tables { copies: most, window: 0, windows: 0 });
    let sizes = cost::window_sizes(model, &shape, share, most_buckets::<C>(device));
    let fitting = sizes.iter().find(|window| excess(window).is_none());
    let window = fitting.or_else(|| sizes.iter().min_by_key(|window| excess(window)));
    Ok(of_window(window.copied().unwrap_or(MIN_WINDOW)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{Aggregation, Tuning},
        plan::Msm,
    };

    #[test]
    fn points_have_numbers_of_31_bits() {
        type C = ark_bn254::g1::Config;
        let device = Device::cpu();
        let (model, sort) = (cost_model::<C>(&device, &MsmConfig::default()), RadixSort::new(&device).unwrap());
        let tables = Precompute::Tables { budget: u64::MAX };
        for precompute in [Precompute::None, tables, Precompute::OddSignedDigits { depth: 1 }] {
            let config = MsmConfig::default().precompute(precompute);
            let refused = precomputed::<C>(&device, &model, &sort, &config, (1 << 31) + 1);
            assert!(matches!(refused, Err(Error::Device(DeviceError::TooLarge { .. }))), "{refused:?}");
        }
        assert_eq!(
            precomputed::<C>(&device, &model, &sort, &MsmConfig::default(), 1 << 31),
            Ok(PrecomputedTable::None)
        );
        // Beside an exponent there are 26 bits.
        let config = MsmConfig::default().precompute(Precompute::Doublings { depth: 3 });
        let with = |len| precomputed::<C>(&device, &model, &sort, &config, len);
        assert_eq!(with(1 << 26), Ok(PrecomputedTable::Doublings { copies: 4 }));
        let refused = with((1 << 26) + 1);
        assert!(matches!(refused, Err(Error::Device(DeviceError::TooLarge { .. }))), "{refused:?}");
    }

    /// What a reduction and its slices work in is far more than the buckets of many short sums.
    #[test]
    fn all_buffers_of_many_sums_fit_a_buffer() {
        type C = ark_bn254::g1::Config;
        let config = MsmConfig::default().window(4);
        let msm = Msm::<C>::with_config(&Device::cpu(), &[], config).unwrap();
        let within = |buffer: u64, shape| msm.sizes().memory_plan(Budget { buffer, memory: u64::MAX }, shape);
        let limit = 1 << 24;
        let plan = within(limit, (10, 1000, 254)).unwrap();
        assert!((1..1000).contains(&plan.group), "{plan:?}");
        for reduction in msm.sizes().reductions(&plan, plan.group) {
            assert!(reduction.buckets().max(reduction.largest()) * sum_bytes::<C>() <= limit, "{plan:?}");
        }
        let plan = within(limit, (1 << 20, 1, 254)).unwrap();
        assert!(plan.in_pieces && 4 * plan.piece as u64 * u64::from(plan.digits) <= limit, "{plan:?}");
        let slices = within(1 << 10, (10, 1, 2));
        assert!(matches!(slices, Err(Error::Device(DeviceError::TooLarge { expected: 1024, .. }))), "{slices:?}");
    }

    /// Each plan with the least memory that its error names, and with one byte less.
    #[test]
    fn the_least_memory_is_enough_and_less_is_not() {
        type C = ark_bn254::g1::Config;
        let device = Device::cpu();
        let bases = vec![ark_bn254::G1Affine::identity(); 60];
        let tables = Precompute::Tables { budget: 60 * 64 * 40 };
        let odd = [Precompute::OddSignedDigits { depth: 3 }, Precompute::Doublings { depth: 3 }];
        let precomputes = [Precompute::None, tables, odd[0], odd[1]];
        let plain = Tuning::default();
        let tunings = [
            plain,
            plain.affine_levels(2),
            plain.accumulation(Accumulation::WholeBuckets),
            plain.accumulation(Accumulation::PerBucket),
            plain.aggregation(Aggregation::RunningSums),
        ];
        let all = tunings.into_iter().flat_map(|tuning| precomputes.map(|precompute| (tuning, precompute)));
        // Points that are doubled on the way have no levels.
        for (tuning, precompute) in
            all.filter(|(tuning, precompute)| tuning.affine_levels.is_none() || *precompute != odd[1])
        {
            for (window, kind) in [(None, Bases::Subgroup), (None, Bases::FullGroup), (Some(9), Bases::Subgroup)] {
                let with = |memory: u64| {
                    let memory = Some(memory);
                    let config = MsmConfig::default()
                        .precompute(precompute)
                        .tuning(tuning)
                        .window(window)
                        .bases(kind)
                        .memory(memory);
                    Msm::<C>::with_config(&device, &bases, config).unwrap()
                };
                for (len, count) in [(1, 1), (2, 1), (60, 1), (7, 3), (60, 5)] {
                    let refused = with(0).scratch_bytes(len, count);
                    let Err(Error::Device(DeviceError::InsufficientMemory { needed, available: 0 })) = refused else {
                        panic!("{refused:?}")
                    };
                    let taken = with(needed).scratch_bytes(len, count).unwrap();
                    assert!(taken <= needed, "{taken} of {needed} bytes");
                    let less = with(needed - 1).scratch_bytes(len, count);
                    let same = DeviceError::InsufficientMemory { needed, available: needed - 1 };
                    assert_eq!(less.unwrap_err(), Error::Device(same), "{len} × {count}, {precompute:?}, {tuning:?}");
                    // Before anything is allocated.
                    if len == bases.len() {
                        let plan = with(needed);
                        let all = Msm::<C>::required_bytes(&device, len, count, plan.config).unwrap();
                        let copies = if plan.bytes() > (len * AffinePoint::<C>::BYTES) as u64 {
                            precompute::scratch_bytes::<C>(len)
                        } else {
                            0
                        };
                        let expected = plan.bytes() + taken.max(copies);
                        assert_eq!(all, expected, "{len} × {count}, {precompute:?}, {tuning:?}");
                    }
                }
            }
        }
    }

    /// 2^20 scalars, the number that fits a window of 8 bits in whole.
    #[test]
    fn windows_are_chosen_with_the_memory_in_mind() {
        type C = ark_bls12_381::g1::Config;
        let msm = Msm::<C>::new(&Device::cpu(), &[]).unwrap();
        let shape = (1 << 20, 1, 255);
        let with = |memory: u64| msm.sizes().memory_plan(Budget { buffer: u64::MAX, memory }, shape);
        let Err(Error::Device(DeviceError::InsufficientMemory { needed: least, .. })) = with(0) else {
            panic!("of nothing")
        };
        let mut before = f64::INFINITY;
        for memory in (0..).map(|i| least << i).take_while(|memory| *memory < 1 << 36) {
            let plan = with(memory).unwrap();
            assert!(msm.sizes().bytes(&plan, plan.piece, 1) <= memory, "{plan:?}");
            let pieces = (1usize << 20).div_ceil(plan.piece);
            let shape = Shape { len: 1 << 20, count: 1, bits: 255 };
            let cost = cost::cost_in_pieces(&msm.model, &shape, plan.window, PrecomputedTable::None, pieces);
            assert!(cost <= before, "{memory} bytes: {plan:?}");
            before = cost;
        }
        let all = with(u64::MAX).unwrap();
        assert_eq!((all.window, all.in_pieces), (msm.window(1 << 20, 1), false));
        let plan = with(64 << 20).unwrap();
        assert!(plan.window < all.window && plan.piece >= 1 << 16, "{plan:?}");
    }
}
