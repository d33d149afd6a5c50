//! How a plan and its evaluations fit a device: multiples of the bases, digits, pieces, and the memory that they take.

use ark_ff::PrimeField;
use evariste_backend::{Device, Element as _, Error as DeviceError};
use evariste_curve::{AffinePoint, source::turns as point_turns};
use evariste_field::{DeviceField, ifma};

use crate::{
    Accumulation, Bases, Error, Msm, MsmConfig, MsmCurve, Precompute, Result,
    accumulate::Nodes,
    layout::{self, MAX_PAIRS, MAX_WINDOW, MIN_WINDOW, Machine, Multiples, Shape},
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

impl<C: MsmCurve> Msm<C> {
    pub(crate) fn shape_window(&self, shape: &Shape) -> u32 {
        match self.multiples {
            Multiples::Tables { window, .. } => window,
            multiples => {
                let most = most_buckets::<C>(&self.device).max(shape.count as u64);
                self.config.window.unwrap_or_else(|| layout::window(&self.machine, shape, multiples, most))
            }
        }
    }

    /// Bytes of scratch for `group` sums of `piece` scalars at once.
    pub(crate) fn bytes_of(&self, layout: &Layout, piece: usize, group: usize) -> u64 {
        let pairs = piece * group * layout.digits as usize;
        let reductions = self.reductions(layout, group);
        let buckets = reductions.iter().map(Reduction::buckets).sum();
        let slices = self.machine.slices(&self.config.tuning, pairs as u64).count;
        let upload = (piece * group) as u64 * scalar_bytes::<C::ScalarField>();
        // Of several pieces, two are there at once, throughout.
        let (upload, uploads) = if layout.in_pieces { (0, 2 * upload) } else { (upload, 0) };
        let sort = 8 * pairs as u64 + self.kernels.sort.required_bytes(pairs, key_bits(buckets)).max(upload);
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
            Accumulation::Unbalanced => 0,
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

    pub(crate) fn layout(&self, len: usize, count: usize, bits: u32) -> Result<Layout> {
        let memory = self.device.info().memory_bytes.map_or(u64::MAX, |bytes| bytes / 10 * 9);
        let memory = self.config.memory.unwrap_or(memory.saturating_sub(self.bases.bytes()));
        self.layout_within(self.device.info().limits.buffer_bytes, memory, (len, count, bits))
    }

    /// With buffers of `limit` bytes and `memory` bytes of all of them at most.
    fn layout_within(&self, limit: u64, memory: u64, (len, count, bits): (usize, usize, u32)) -> Result<Layout> {
        let mut group = count.max(1);
        let mut piece = len.max(1);
        loop {
            let window = self.shape_window(&Shape { len, count: group, bits });
            let digits = bits.div_ceil(window);
            let sets = if let Multiples::Tables { sets, .. } = self.multiples { sets.min(digits) } else { digits };
            let pairs = (piece as u64).saturating_mul(group as u64).saturating_mul(digits.into());
            let each = layout::buckets(window, self.multiples.doublings());
            let buckets = (group as u64).saturating_mul(sets.into()).saturating_mul(each);
            let limbs = C::BaseField::LIMBS;
            let levels = self.machine.levels(&self.config.tuning, limbs, pairs, buckets);
            let mut layout = Layout { window, digits, sets, group, piece, levels, in_pieces: piece < len };
            let fits = pairs < MAX_PAIRS && buckets <= MAX_BUCKETS;
            let is_large = fits && (self.bytes_of(&layout, piece, group) > memory || self.largest(&layout) > limit);
            if is_large && self.config.tuning.levels.is_none() {
                layout.levels = 0;
            }
            let largest = if fits { self.largest(&layout) } else { 0 };
            if fits && largest <= limit && self.bytes_of(&layout, piece, group) <= memory {
                return Ok(layout);
            }
            match (group, piece) {
                (1, 1) if !fits => {
                    let (what, least, most) = ("the bits of so many digits", MIN_WINDOW, MAX_WINDOW - 1);
                    return Err(Error::Config { what, expected: least..=most, actual: window });
                }
                (1, 1) if largest > limit => {
                    let device = self.device.info().id;
                    return Err(DeviceError::TooLarge {
                        what: "a buffer of one sum",
                        device,
                        expected: limit,
                        actual: largest,
                    }
                    .into());
                }
                (1, 1) => {
                    let expected = self.bytes_of(&layout, 1, 1);
                    return Err(Error::TooLittle { expected, actual: memory });
                }
                (1, _) => piece = piece.div_ceil(2),
                _ => group = group.div_ceil(2),
            }
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

pub(crate) fn machine<C: MsmCurve>(device: &Device) -> Machine {
    Machine::new(device.info(), point_turns::<C>(), ifma::Field::of::<C::BaseField>().is_some())
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
        Precompute::Tables { budget } => table_shape::<C>(device, machine, config, len, budget)?,
        Precompute::OddDigits { depth } => Multiples::Doublings { copies: doublings(len, depth)? },
    })
}

/// How many tables fit the budget, with the bits of a digit and the sets of buckets that go with them.
pub(crate) fn table_shape<C: MsmCurve>(
    device: &Device,
    machine: &Machine,
    config: &MsmConfig,
    len: usize,
    budget: u64,
) -> Result<Multiples> {
    let own = (len * AffinePoint::<C>::BYTES) as u64;
    if budget < own {
        return Err(Error::TooLittle { expected: own, actual: budget });
    }
    let bits = covered_bits::<C>(config);
    // Points of all tables have numbers of 31 bits.
    let room = budget.min(device.info().limits.buffer_bytes);
    let most = (room / own.max(1)).max(1).min(MAX_PAIRS / len.max(1) as u64).min(bits.into()) as u32;
    let shape = Shape { len, count: 1, bits };
    let share = Multiples::Tables { copies: most, window: 0, sets: 0 };
    let window = config.window.unwrap_or_else(|| layout::window(machine, &shape, share, most_buckets::<C>(device)));
    let digits = bits.div_ceil(window);
    let sets = digits.div_ceil(most.min(digits));
    let copies = digits.div_ceil(sets);
    Ok(if copies > 1 { Multiples::Tables { copies, window, sets } } else { Multiples::None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_have_numbers_of_31_bits() {
        type C = ark_bn254::g1::Config;
        let device = Device::cpu();
        let machine = machine::<C>(&device);
        let tables = Precompute::Tables { budget: u64::MAX };
        for precompute in [Precompute::None, tables, Precompute::OddDigits { depth: 1 }] {
            let config = MsmConfig { precompute, ..MsmConfig::default() };
            let refused = multiples::<C>(&device, &machine, &config, (1 << 31) + 1);
            assert!(matches!(refused, Err(Error::Device(DeviceError::TooLarge { .. }))), "{refused:?}");
        }
        assert_eq!(multiples::<C>(&device, &machine, &MsmConfig::default(), 1 << 31), Ok(Multiples::None));
    }

    /// What a reduction and its slices work in is far more than the buckets of many short sums.
    #[test]
    fn all_buffers_of_many_sums_fit_a_buffer() {
        type C = ark_bn254::g1::Config;
        let config = MsmConfig { window: Some(4), ..MsmConfig::default() };
        let msm = Msm::<C>::new(&Device::cpu(), &[], config).unwrap();
        let limit = 1 << 24;
        let layout = msm.layout_within(limit, u64::MAX, (10, 1000, 254)).unwrap();
        assert!((1..1000).contains(&layout.group), "{layout:?}");
        for reduction in msm.reductions(&layout, layout.group) {
            let threads = u64::from(crate::reduce::THREADS);
            assert!(reduction.outputs() as u64 * threads * sum_bytes::<C>() <= limit, "{layout:?}");
        }
        let layout = msm.layout_within(limit, u64::MAX, (1 << 20, 1, 254)).unwrap();
        assert!(layout.in_pieces && 4 * layout.piece as u64 * u64::from(layout.digits) <= limit, "{layout:?}");
        let slices = msm.layout_within(1 << 10, u64::MAX, (10, 1, 2));
        assert!(matches!(slices, Err(Error::Device(DeviceError::TooLarge { expected: 1024, .. }))), "{slices:?}");
    }
}
