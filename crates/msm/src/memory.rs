//! How a plan and its evaluations fit a device: multiples of the bases, digits, pieces, and the memory that they take.

use std::{iter, marker::PhantomData};

use ark_ff::PrimeField;
use evariste_backend::{Device, Element as _, Error as DeviceError};
use evariste_curve::{AffinePoint, source::turns as point_turns};
use evariste_field::{DeviceField, ifma};
use evariste_primitives::RadixSort;

use crate::{
    Accumulation, Bases, Error, Msm, MsmConfig, MsmCurve, Precompute, Result,
    accumulate::Nodes,
    adding::Adding,
    layout::{self, BASE_BITS, MAX_PAIRS, MAX_WINDOW, MIN_WINDOW, Machine, Multiples, Shape},
    pairs::Pairs,
    reduce::Reduction,
    shared::{scalar_bytes, sum_bytes},
};

/// Buckets of all sets at most: the indices of points among their sums fit 32 bits.
const MAX_BUCKETS: u64 = 1 << 28;

/// How one evaluation is done.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Bits of a digit.
    pub(crate) window: u32,
    pub(crate) digits: u32,
    /// Sets of buckets of one sum.
    pub(crate) sets: u32,
    /// Sums at once.
    pub(crate) group: usize,
    /// Scalars of one sum at once.
    pub(crate) piece: usize,
    /// How often neighbours are added as affine points.
    pub(crate) levels: u32,
    /// Whether one sum takes several pieces.
    pub(crate) in_pieces: bool,
}

/// What the memory of an evaluation depends on beside its shape.
pub(crate) struct Sizes<'a, C: MsmCurve> {
    device: &'a Device,
    machine: &'a Machine,
    sort: &'a RadixSort,
    config: &'a MsmConfig,
    multiples: Multiples,
    curve: PhantomData<fn() -> C>,
}

/// What a plan and an evaluation may use at most.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Bytes of one buffer.
    buffer: u64,
    /// Bytes of all of them.
    memory: u64,
}

/// What keeps an evaluation from being done in a layout, and what is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Excess {
    /// Bytes of all buffers.
    Memory(u64),
    /// Bytes of the largest buffer.
    Buffer(u64),
    /// More buckets or pairs than there are numbers for.
    Numbers,
}

impl<C: MsmCurve> Msm<C> {
    pub(crate) fn sizes(&self) -> Sizes<'_, C> {
        let Self { machine, config, multiples, .. } = self;
        let (device, sort) = (self.device(), &self.kernels.sort);
        Sizes { device, machine, sort, config, multiples: *multiples, curve: PhantomData }
    }

    pub(crate) fn layout(&self, len: usize, count: usize, bits: u32) -> Result<Layout> {
        let budget = Budget::new(self.device(), &self.config, self.bases.bytes());
        self.sizes().layout(budget, (len, count, bits))
    }
}

impl Budget {
    /// Of a device of which bases take so many bytes.
    fn new(device: &Device, config: &MsmConfig, bases: u64) -> Self {
        let memory = device.info().memory_bytes.map_or(u64::MAX, |bytes| bytes / 10 * 9);
        let memory = config.memory.unwrap_or(memory.saturating_sub(bases));
        Self { buffer: device.info().limits.buffer_bytes, memory }
    }
}

impl<C: MsmCurve> Sizes<'_, C> {
    /// The window of least cost, whatever memory it takes.
    pub(crate) fn window(&self, shape: &Shape) -> u32 {
        match self.multiples {
            Multiples::Tables { window, .. } => window,
            multiples => {
                let most = most_buckets::<C>(self.device).max(shape.count as u64);
                self.config.window.unwrap_or_else(|| layout::window(self.machine, shape, multiples, most))
            }
        }
    }

    /// Bytes of scratch for `group` sums of `piece` scalars at once.
    pub(crate) fn bytes(&self, layout: &Layout, piece: usize, group: usize) -> u64 {
        let pairs = piece * group * layout.digits as usize;
        let reductions = self.reductions(layout, group);
        let buckets = reductions.iter().map(Reduction::buckets).sum();
        let slices = self.machine.slices(&self.config.tuning, pairs as u64).count;
        let upload = (piece * group) as u64 * scalar_bytes::<C::ScalarField>();
        // Of several pieces, two are there at once, throughout.
        let (upload, uploads) = if layout.in_pieces { (0, 2 * upload) } else { (upload, 0) };
        let sort = 8 * pairs as u64 + self.sort.required_bytes(pairs, key_bits(buckets)).max(upload);
        let (mut list, mut len, mut add) = (8 * pairs as u64, pairs, 0);
        for _ in 0..layout.levels {
            let [halved, scratch] = Pairs::<C>::required_bytes(len, buckets);
            add = add.max(list + halved + scratch);
            (list, len) = (halved, len.div_ceil(2));
        }
        let balanced = self.config.tuning.accumulation == Accumulation::Balanced;
        let nodes = if balanced { Nodes::<C>::required_bytes(slices) } else { 0 };
        let add = add.max(list) + nodes;
        let reduce = reductions.iter().map(Reduction::required_bytes::<C>).max().unwrap_or(0);
        buckets * sum_bytes::<C>() + uploads + sort.max(add).max(reduce)
    }

    /// Bytes of the largest buffer of an evaluation in this layout.
    fn largest(&self, layout: &Layout) -> u64 {
        let (scalars, points) = ((layout.piece * layout.group) as u64, AffinePoint::<C>::BYTES as u64);
        let pairs = scalars * u64::from(layout.digits);
        let reductions = self.reductions(layout, layout.group);
        let buckets: u64 = reductions.iter().map(Reduction::buckets).sum();
        let nodes = match self.config.tuning.accumulation {
            Accumulation::Balanced => 2 * u64::from(self.machine.slices(&self.config.tuning, pairs).count),
            Accumulation::WholeBuckets | Accumulation::PerBucket => 0,
        };
        let reduced = reductions.iter().map(Reduction::largest).max().unwrap_or(0);
        let halved = if layout.levels > 0 { pairs.div_ceil(2) * points } else { 0 };
        let sums = buckets.max(nodes).max(reduced) * sum_bytes::<C>();
        (scalars * scalar_bytes::<C::ScalarField>()).max(4 * pairs).max(halved).max(sums)
    }

    /// Of each class of digits.
    pub(crate) fn reductions(&self, layout: &Layout, group: usize) -> Vec<Reduction> {
        let (rows, doublings) = (layout.sets * group as u32, self.multiples.doublings());
        let logs = layout::bucket_logs(layout.window, doublings).into_iter();
        logs.map(|log| self.machine.reduction(&self.config.tuning, rows, log, doublings > 0)).collect()
    }

    /// `group` sums of `len` scalars in digits of `window` bits, `piece` scalars at once: as it is done best, or else, unless the
    /// configuration says how often neighbours are added, with as little memory as can be.
    fn try_layout(
        &self,
        budget: Budget,
        window: u32,
        (len, bits): (usize, u32),
        [group, piece]: [usize; 2],
    ) -> Result<Layout, Excess> {
        let digits = bits.div_ceil(window);
        let sets = if let Multiples::Tables { sets, .. } = self.multiples { sets.min(digits) } else { digits };
        let pairs = (piece as u64).saturating_mul(group as u64).saturating_mul(digits.into());
        let each = layout::buckets(window, self.multiples.doublings());
        let buckets = (group as u64).saturating_mul(sets.into()).saturating_mul(each);
        if pairs >= MAX_PAIRS || buckets > MAX_BUCKETS {
            return Err(Excess::Numbers);
        }
        let levels = match self.multiples {
            // Points are not in memory before they are added.
            Multiples::Doubled { .. } => 0,
            _ => self.machine.levels(&self.config.tuning, C::BaseField::LIMBS, pairs, buckets),
        };
        let layout = Layout { window, digits, sets, group, piece, levels, in_pieces: piece < len };
        let fits = |layout: Layout| match (self.largest(&layout), self.bytes(&layout, piece, group)) {
            (largest, _) if largest > budget.buffer => Err(Excess::Buffer(largest)),
            (_, bytes) if bytes > budget.memory => Err(Excess::Memory(bytes)),
            _ => Ok(layout),
        };
        let with_levels = fits(layout.clone());
        if self.config.tuning.levels.is_some() || levels == 0 {
            return with_levels;
        }
        with_levels.or_else(|before| fits(Layout { levels: 0, ..layout }).map_err(|excess| excess.min(before)))
    }

    /// One sum of `len` scalars in digits of `window` bits, in as few pieces as there is memory for; or the least excess of all.
    fn in_pieces(&self, budget: Budget, window: u32, (len, bits): (usize, u32)) -> Result<Layout, Excess> {
        let mut least = Excess::Numbers;
        let mut pieces = iter::successors(Some(len.max(1)), |piece| (*piece > 1).then(|| piece.div_ceil(2)));
        let found = pieces.find_map(|piece| {
            let layout = self.try_layout(budget, window, (len, bits), [1, piece]);
            layout.map_err(|excess| least = least.min(excess)).ok()
        });
        found.ok_or(least)
    }

    fn layout(&self, budget: Budget, (len, count, bits): (usize, usize, u32)) -> Result<Layout> {
        let (mut group, whole) = (count.max(1), len.max(1));
        loop {
            let window = self.window(&Shape { len, count: group, bits });
            match self.try_layout(budget, window, (len, bits), [group, whole]) {
                Ok(layout) => return Ok(layout),
                Err(_) if group > 1 => group = group.div_ceil(2),
                Err(_) => break,
            }
        }
        // One sum, in pieces: the window and the pieces that cost least among those that there is memory for.
        let shape = Shape { len, count: 1, bits };
        let windows = match (self.multiples, self.config.window) {
            (Multiples::Tables { window, .. }, _) | (_, Some(window)) => window..=window,
            _ => MIN_WINDOW..=MAX_WINDOW,
        };
        let cost = |layout: &Layout| {
            let pieces = len.div_ceil(layout.piece);
            layout::cost_in_pieces(self.machine, &shape, layout.window, self.multiples, pieces)
        };
        let (mut found, mut least) = (Vec::new(), Excess::Numbers);
        for window in windows.clone() {
            match self.in_pieces(budget, window, (len, bits)) {
                Ok(layout) => found.push(layout),
                Err(excess) => least = least.min(excess),
            }
        }
        if let Some(best) = found.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b))) {
            return Ok(best);
        }
        Err(match least {
            Excess::Numbers => {
                let (what, least, most) = ("the bits of so many digits", MIN_WINDOW, MAX_WINDOW - 1);
                Error::Config { what, expected: least..=most, actual: *windows.start() }
            }
            Excess::Buffer(actual) => {
                let (device, expected) = (self.device.info().id, budget.buffer);
                DeviceError::TooLarge { what: "a buffer of one sum", device, expected, actual }.into()
            }
            Excess::Memory(expected) => Error::InsufficientMemory { expected, actual: budget.memory },
        })
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

pub(crate) fn machine<C: MsmCurve>(device: &Device, config: &MsmConfig) -> Machine {
    // In lanes, points are added one by one.
    let multiples = if let Precompute::Doublings { .. } = config.precompute {
        Multiples::Doubled { copies: 1 }
    } else {
        Multiples::None
    };
    let adding = Adding::new(config.tuning.addition, multiples, 0);
    let in_lanes = adding == Adding::Single && ifma::Field::of::<C::BaseField>().is_some();
    Machine::new(device.info(), adding.turns() * point_turns::<C>(), in_lanes)
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
        Bases::Any => 32 * C::ScalarField::LIMBS as u32 + 1,
    };
    config.bits.map_or(all, |bits| bits.saturating_add(1).min(all))
}

/// Points for each of `len` bases with so many doublings. All of them have numbers of 31 bits.
pub(crate) fn doublings(len: usize, depth: u32) -> Result<u32> {
    let most = (MAX_PAIRS / len.max(1) as u64).saturating_sub(1).min(MAX_WINDOW.into()) as u32;
    match depth <= most {
        true => Ok(depth + 1),
        false => Err(Error::Config { what: "the doublings of so many bases", expected: 0..=most, actual: depth }),
    }
}

/// What is kept of each of `len` bases.
pub(crate) fn multiples<C: MsmCurve>(
    device: &Device,
    machine: &Machine,
    sort: &RadixSort,
    config: &MsmConfig,
    len: usize,
) -> Result<Multiples> {
    // Points have numbers of 31 bits.
    if len as u64 > MAX_PAIRS {
        let (device, limit, actual) = (device.info().id, MAX_PAIRS, len as u64);
        return Err(DeviceError::TooLarge { what: "the bases of a plan", device, expected: limit, actual }.into());
    }
    Ok(match config.precompute {
        Precompute::None => Multiples::None,
        Precompute::Tables { budget } => table_shape::<C>(device, machine, sort, config, len, budget)?,
        Precompute::OddDigits { depth } => Multiples::Doublings { copies: doublings(len, depth)? },
        Precompute::Doublings { .. } if len > 1 << BASE_BITS => {
            let (device, expected, actual) = (device.info().id, 1 << BASE_BITS, len as u64);
            return Err(DeviceError::TooLarge { what: "the bases of doublings", device, expected, actual }.into());
        }
        Precompute::Doublings { depth } => Multiples::Doubled { copies: doublings(len, depth)? },
    })
}

/// How many tables fit the budget, with the bits of a digit and the sets of buckets that go with them.
fn table_shape<C: MsmCurve>(
    device: &Device,
    machine: &Machine,
    sort: &RadixSort,
    config: &MsmConfig,
    len: usize,
    budget: u64,
) -> Result<Multiples> {
    let own = (len * AffinePoint::<C>::BYTES) as u64;
    if budget < own {
        return Err(Error::InsufficientMemory { expected: own, actual: budget });
    }
    let bits = covered_bits::<C>(config);
    // Points of all tables have numbers of 31 bits.
    let room = budget.min(device.info().limits.buffer_bytes);
    let most = (room / own.max(1)).max(1).min(MAX_PAIRS / len.max(1) as u64).min(bits.into()) as u32;
    let of_window = |window: u32| {
        let digits = bits.div_ceil(window);
        let sets = digits.div_ceil(most.min(digits));
        let copies = digits.div_ceil(sets);
        if copies > 1 { Multiples::Tables { copies, window, sets } } else { Multiples::None }
    };
    if let Some(window) = config.window {
        return Ok(of_window(window));
    }
    // A sum of all bases has room beside them, if any window leaves some.
    let excess = |window: &u32| {
        let multiples = of_window(*window);
        let sizes = Sizes::<C> { device, machine, sort, config, multiples, curve: PhantomData };
        let budget = Budget::new(device, config, own.saturating_mul(multiples.copies().into()));
        sizes.in_pieces(budget, *window, (len, bits)).err()
    };
    let (shape, share) = (Shape { len, count: 1, bits }, Multiples::Tables { copies: most, window: 0, sets: 0 });
    let windows = layout::windows(machine, &shape, share, most_buckets::<C>(device));
    let fitting = windows.iter().find(|window| excess(window).is_none());
    let window = fitting.or_else(|| windows.iter().min_by_key(|window| excess(window)));
    Ok(of_window(window.copied().unwrap_or(MIN_WINDOW)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Aggregation, Tuning};

    #[test]
    fn points_have_numbers_of_31_bits() {
        type C = ark_bn254::g1::Config;
        let device = Device::cpu();
        let (machine, sort) = (machine::<C>(&device, &MsmConfig::default()), RadixSort::new(&device).unwrap());
        let tables = Precompute::Tables { budget: u64::MAX };
        for precompute in [Precompute::None, tables, Precompute::OddDigits { depth: 1 }] {
            let config = MsmConfig { precompute, ..MsmConfig::default() };
            let refused = multiples::<C>(&device, &machine, &sort, &config, (1 << 31) + 1);
            assert!(matches!(refused, Err(Error::Device(DeviceError::TooLarge { .. }))), "{refused:?}");
        }
        assert_eq!(multiples::<C>(&device, &machine, &sort, &MsmConfig::default(), 1 << 31), Ok(Multiples::None));
        // Beside an exponent there are 26 bits.
        let config = MsmConfig { precompute: Precompute::Doublings { depth: 3 }, ..MsmConfig::default() };
        let with = |len| multiples::<C>(&device, &machine, &sort, &config, len);
        assert_eq!(with(1 << 26), Ok(Multiples::Doubled { copies: 4 }));
        let refused = with((1 << 26) + 1);
        assert!(matches!(refused, Err(Error::Device(DeviceError::TooLarge { .. }))), "{refused:?}");
    }

    /// What a reduction and its slices work in is far more than the buckets of many short sums.
    #[test]
    fn all_buffers_of_many_sums_fit_a_buffer() {
        type C = ark_bn254::g1::Config;
        let config = MsmConfig { window: Some(4), ..MsmConfig::default() };
        let msm = Msm::<C>::new(&Device::cpu(), &[], config).unwrap();
        let within = |buffer: u64, shape| msm.sizes().layout(Budget { buffer, memory: u64::MAX }, shape);
        let limit = 1 << 24;
        let layout = within(limit, (10, 1000, 254)).unwrap();
        assert!((1..1000).contains(&layout.group), "{layout:?}");
        for reduction in msm.sizes().reductions(&layout, layout.group) {
            let threads = u64::from(crate::reduce::THREADS);
            assert!(reduction.outputs() as u64 * threads * sum_bytes::<C>() <= limit, "{layout:?}");
        }
        let layout = within(limit, (1 << 20, 1, 254)).unwrap();
        assert!(layout.in_pieces && 4 * layout.piece as u64 * u64::from(layout.digits) <= limit, "{layout:?}");
        let slices = within(1 << 10, (10, 1, 2));
        assert!(matches!(slices, Err(Error::Device(DeviceError::TooLarge { expected: 1024, .. }))), "{slices:?}");
    }

    /// Each plan with the least memory that its error names, and with one byte less.
    #[test]
    fn the_least_memory_is_enough_and_less_is_not() {
        type C = ark_bn254::g1::Config;
        let device = Device::cpu();
        let bases = vec![ark_bn254::G1Affine::identity(); 300];
        let tables = Precompute::Tables { budget: 300 * 64 * 40 };
        let odd = [Precompute::OddDigits { depth: 3 }, Precompute::Doublings { depth: 3 }];
        let precomputes = [Precompute::None, tables, odd[0], odd[1]];
        let plain = Tuning::default();
        let tunings = [
            plain,
            Tuning { levels: Some(2), ..plain },
            Tuning { accumulation: Accumulation::WholeBuckets, ..plain },
            Tuning { accumulation: Accumulation::PerBucket, ..plain },
            Tuning { aggregation: Aggregation::RunningSums, ..plain },
        ];
        let all = tunings.into_iter().flat_map(|tuning| precomputes.map(|precompute| (tuning, precompute)));
        // Points that are doubled on the way have no levels.
        for (tuning, precompute) in all.filter(|(tuning, precompute)| tuning.levels.is_none() || *precompute != odd[1])
        {
            for (window, kind) in [(None, Bases::Subgroup), (None, Bases::Any), (Some(9), Bases::Subgroup)] {
                let with = |memory: u64| {
                    let memory = Some(memory);
                    let config = MsmConfig { precompute, tuning, window, bases: kind, memory, ..MsmConfig::default() };
                    Msm::<C>::new(&device, &bases, config).unwrap()
                };
                for (len, count) in [(1, 1), (2, 1), (300, 1), (7, 3), (300, 5)] {
                    let refused = with(0).required_bytes(len, count);
                    let Err(Error::InsufficientMemory { expected, actual: 0 }) = refused else { panic!("{refused:?}") };
                    let needed = with(expected).required_bytes(len, count).unwrap();
                    assert!(needed <= expected, "{needed} of {expected} bytes");
                    let less = with(expected - 1).required_bytes(len, count);
                    let same = Error::InsufficientMemory { expected, actual: expected - 1 };
                    assert_eq!(less.unwrap_err(), same, "{len} × {count}, {precompute:?}, {tuning:?}");
                }
            }
        }
    }

    /// 2^20 scalars, as many as fit a window of 8 bits in whole.
    #[test]
    fn windows_are_chosen_with_the_memory_in_mind() {
        type C = ark_bls12_381::g1::Config;
        let msm = Msm::<C>::new(&Device::cpu(), &[], MsmConfig::default()).unwrap();
        let shape = (1 << 20, 1, 255);
        let with = |memory: u64| msm.sizes().layout(Budget { buffer: u64::MAX, memory }, shape);
        let Err(Error::InsufficientMemory { expected: least, .. }) = with(0) else { panic!("of nothing") };
        let mut before = f64::INFINITY;
        for memory in (0..).map(|i| least << i).take_while(|memory| *memory < 1 << 36) {
            let layout = with(memory).unwrap();
            assert!(msm.sizes().bytes(&layout, layout.piece, 1) <= memory, "{layout:?}");
            let pieces = (1usize << 20).div_ceil(layout.piece);
            let shape = Shape { len: 1 << 20, count: 1, bits: 255 };
            let cost = layout::cost_in_pieces(&msm.machine, &shape, layout.window, Multiples::None, pieces);
            assert!(cost <= before, "{memory} bytes: {layout:?}");
            before = cost;
        }
        let all = with(u64::MAX).unwrap();
        assert_eq!((all.window, all.in_pieces), (msm.window(1 << 20, 1), false));
        let layout = with(64 << 20).unwrap();
        assert!(layout.window < all.window && layout.piece >= 1 << 16, "{layout:?}");
    }
}
