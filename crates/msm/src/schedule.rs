//! The stages of a call, in order: groups of sums, pieces of one sum, and the inputs of each stage.

use std::{borrow::Borrow, iter, marker::PhantomData, ops::Range};

use ark_ec::short_weierstrass::Projective;
use ark_ff::Zero;
use evariste_backend::{Buffer, Error as DeviceError, HostData, Prefetch, Secrecy, View, author::Wiped};
use evariste_curve::Xyzz;
use evariste_field::{Canonical, DeviceField, DevicePrimeField, Mont};

use crate::{
    accumulate::{Nodes, Way},
    batch_affine::Unpaired,
    combine::Windows,
    config::{Accumulation, Bases},
    error::{Error, Result},
    memory_plan::{Budget, MemoryPlan, Sizes, covered_bits, halves, key_bits},
    msm_curve::MsmCurve,
    plan::{Msm, Stage},
    recode::{Recoding, ScalarForm},
    reduce::Reduction,
    scalars::{self, Input},
    whole_buckets::Share,
};

/// Scalars of one sum from which on they come from the host in two pieces. The copy of a few million takes as long as
/// all launches. In more pieces, buckets have too few points.
const OVERLAPPED: usize = 1 << 22;

/// The first of two pieces is one such part: the device works on it for longer than the copy of the rest takes.
const FIRST_PIECE: usize = 4;

/// Pieces from the host that have memory at a time: one comes while the device works on another.
const UPLOADS: usize = 2;

/// The scalars that no stage has taken yet.
pub(crate) enum Pending<'a, F: DevicePrimeField> {
    /// On the host, not copied yet.
    Host(Prefetch<Mont<F>>, HostData<'a, Mont<F>>),
    Montgomery(View<'a, Mont<F>>),
    Canonical(View<'a, Canonical<F>>),
}

impl<C: MsmCurve> Msm<C> {
    pub(crate) fn sizes(&self) -> Sizes<'_, C> {
        let Self { model, config, precomputed, .. } = self;
        let (device, sort) = (self.device(), &self.kernels.sort);
        Sizes { device, model, sort, config, precomputed: *precomputed, keeps_digits: false, curve: PhantomData }
    }

    pub(crate) fn memory_plan(&self, len: usize, count: usize, bits: u32) -> Result<MemoryPlan> {
        let budget = Budget::new(self.device(), &self.config, self.bases.bytes());
        self.sizes().memory_plan(budget, (len, count, bits))
    }

    /// `count` sums of `len` scalars each, over the same bases or over bases of their own.
    pub(crate) fn sums(
        &self,
        scalars: &mut Input<'_, C::ScalarField>,
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
            Input::Host(_) | Input::Pinned(_) => {}
            Input::Montgomery(buffer) => self.device().expect_same("the scalars", buffer.device())?,
            Input::Canonical(buffer) => self.device().expect_same("the scalars", buffer.device())?,
        }
        let plan = self.memory_plan(len, count, self.bits(scalars))?;
        self.ready.wait(&self.queue)?;
        for first in (0..count).step_by(plan.group) {
            let group = plan.group.min(count - first);
            sums.extend_from_slice(&self.group(&plan, scalars, len, first..first + group, shared, mark)?);
        }
        Ok(sums)
    }

    /// Bits that digits have to cover.
    pub(crate) fn bits(&self, scalars: &Input<'_, C::ScalarField>) -> u32 {
        let all = covered_bits::<C>(&self.config);
        match scalars {
            Input::Host(host) if self.config.bits.is_none() && self.config.secrecy == Secrecy::Public => {
                all.min(scalars::longest(host, self.config.bases == Bases::Subgroup) + 1)
            }
            _ => all,
        }
    }

    /// The pieces of each of some sums of `len` scalars.
    fn pieces(
        &self,
        plan: &MemoryPlan,
        scalars: &Input<'_, C::ScalarField>,
        len: usize,
        sums: usize,
    ) -> Vec<Range<usize>> {
        let piece = if sums == 1 { plan.piece } else { len };
        // A digit takes 16 bytes, and a scalar 32. With this number of digits, the scalars have room where the first
        // piece was.
        let overlapped = matches!(scalars, Input::Host(_) | Input::Pinned(_))
            && self.device().info().features.queues
            && plan.digits as usize >= 2 * FIRST_PIECE;
        let first =
            if overlapped && sums == 1 && (OVERLAPPED..=piece).contains(&len) { len / FIRST_PIECE } else { piece };
        let rest = (first..len).step_by(piece).map(|start| start..len.min(start + piece));
        iter::once(0..first.min(len)).chain(rest).collect()
    }

    /// Some sums at once.
    fn group(
        &self,
        plan: &MemoryPlan,
        scalars: &mut Input<'_, C::ScalarField>,
        len: usize,
        group: Range<usize>,
        shared: bool,
        mark: &mut dyn FnMut(Stage) -> Result<()>,
    ) -> Result<Wiped<Projective<C>>> {
        let secrecy = match scalars {
            Input::Host(_) => self.config.secrecy,
            Input::Pinned(host) => Secrecy::of([self.config.secrecy, host.secrecy()]),
            Input::Montgomery(buffer) => buffer.secrecy(),
            Input::Canonical(buffer) => buffer.secrecy(),
        };
        let secrecy = Secrecy::of([secrecy, self.bases.secrecy()]);
        let queue = &self.queue;
        // One sum in pieces, or several whole ones.
        let pieces = self.pieces(plan, scalars, len, group.len());
        let upload = |host| -> Result<_> {
            // All memory now: what is allocated later comes behind the work that has been queued by then.
            let lens: Vec<usize> = pieces.iter().map(|piece| piece.len() * group.len()).collect();
            Ok(Pending::Host(Prefetch::ahead_of(queue, &lens, UPLOADS, secrecy)?, host))
        };
        let mut source = match scalars {
            Input::Host(host) => upload(HostData::Slice(&host[group.start * len..group.end * len]))?,
            Input::Pinned(host) => upload(HostData::Pinned(host.split_off(0)))?,
            Input::Montgomery(buffer) => Pending::Montgomery(*buffer),
            Input::Canonical(buffer) => Pending::Canonical(*buffer),
        };
        let reductions = self.sizes().reductions(plan, group.len());
        let count: u64 = reductions.iter().map(Reduction::buckets).sum();
        let mut buckets: Buffer<Xyzz<C>> = self.device().alloc_with(count as usize, secrecy)?;
        queue.clear(&mut buckets)?;
        for piece in pieces {
            let (start, piece) = (piece.start, piece.len());
            let whole = self.recoding(plan, piece, group.len(), buckets.len() as u32);
            let recoding = match shared {
                true => Recoding { points: piece, first: start, ..whole },
                false => Recoding { first: group.start * len + start, ..whole },
            };
            let digits = self.sorted_digits(recoding, &mut source, group.start * len + start, secrecy, mark)?;
            self.accumulate(plan, digits, start == 0, &mut buckets, mark)?;
            mark(Stage::Accumulate)?;
        }
        if let (Input::Pinned(host), Pending::Host(mut uploads, _)) = (scalars, source) {
            while let Some(part) = uploads.next()? {
                if host.join(part).is_err() {
                    return Err(DeviceError::other_memory(self.device()).into());
                }
            }
        }
        self.reduce(plan, &reductions, &buckets, group.len(), mark)
    }

    /// The recoding of `len` scalars of each of some sums over bases of their own, the first ones.
    pub(crate) fn recoding(&self, plan: &MemoryPlan, len: usize, sums: usize, sentinel: u32) -> Recoding {
        Recoding {
            len: len * sums,
            count: len,
            points: len * sums,
            first: 0,
            bits: plan.window,
            digits: plan.digits,
            windows: plan.windows,
            table: self.precomputed.stride(self.len),
            sentinel,
            form: ScalarForm::Montgomery,
            halve: halves::<C>(&self.config),
            doublings: self.precomputed.doublings(),
            rows: plan.windows * sums as u32,
        }
    }

    /// Adds the points of sorted digits, keys and values, to their buckets; `fresh` buckets start from zero. Digits that
    /// are given away are dropped as soon as possible.
    pub(crate) fn accumulate<B: Borrow<Buffer<u32>>>(
        &self,
        plan: &MemoryPlan,
        digits: [B; 2],
        fresh: bool,
        buckets: &mut Buffer<Xyzz<C>>,
        mark: &mut dyn FnMut(Stage) -> Result<()>,
    ) -> Result<()> {
        let keys: &Buffer<u32> = digits[0].borrow();
        let (queue, secrecy) = (&self.queue, Secrecy::of([keys.secrecy(), self.bases.secrecy()]));
        let mut unpaired = Unpaired::Digits(digits);
        for _ in 0..plan.levels {
            let kernels = self.kernels.batch_affine(self.device())?;
            let level = kernels.run(queue, &unpaired, &self.bases, buckets.len() as u32, secrecy)?;
            unpaired = Unpaired::Sums(level);
            mark(Stage::BatchAffine)?;
        }
        let list = unpaired.list(&self.bases);
        // At most as many as for all digits, for which there is memory.
        let slices = self.model.slices(&self.config.tuning, C::BaseField::LIMBS, list.keys.len() as u64);
        let adding = self.adding();
        match self.config.tuning.accumulation {
            Accumulation::Balanced => {
                let mut nodes = Nodes::new(self.device(), slices.count, secrecy)?;
                let parts = self.kernels.parts(self.device(), adding)?.map(|parts| (parts, adding));
                let way = Way { slices, parts, fresh };
                Ok(self.kernels.accumulate.run(queue, &list, &way, &mut nodes, buckets)?)
            }
            way @ (Accumulation::WholeBuckets | Accumulation::PerBucket) => {
                let per_bucket = way == Accumulation::PerBucket;
                let share = if per_bucket { Share::Bucket } else { Share::Slice(slices) };
                let kernel = self.kernels.whole(self.device(), per_bucket, adding)?;
                Ok(kernel.run(queue, &list, share, adding, buckets)?)
            }
        }
    }

    /// Reduces the buckets of `count` sums, and combines their windows on the host.
    fn reduce(
        &self,
        plan: &MemoryPlan,
        reductions: &[Reduction],
        buckets: &Buffer<Xyzz<C>>,
        count: usize,
        mark: &mut dyn FnMut(Stage) -> Result<()>,
    ) -> Result<Wiped<Projective<C>>> {
        let reduced = self.reduced(reductions, buckets)?;
        mark(Stage::Reduce)?;
        let mut windows = Windows::new(plan, self.precomputed, count);
        for (reduction, points) in reductions.iter().zip(reduced) {
            windows.add(reduction, &Wiped::from(self.queue.read(&points)?));
        }
        Ok(windows.into_sums())
    }

    /// What the device leaves of the buckets: the points of each class of digits.
    pub(crate) fn reduced(&self, reductions: &[Reduction], buckets: &Buffer<Xyzz<C>>) -> Result<Vec<Buffer<Xyzz<C>>>> {
        // The buckets of each class of digits lie one after the other.
        let mut rest = buckets.as_view();
        let reduce = |reduction: &Reduction| {
            let (part, others) = rest.split_at(reduction.buckets() as usize)?;
            rest = others;
            Ok(self.kernels.reduce.run(&self.queue, reduction, part)?)
        };
        reductions.iter().map(reduce).collect()
    }

    /// The digits of scalars with their points, sorted by bucket. The scalars are a piece of those from the host, or
    /// those in a buffer from one on.
    pub(crate) fn sorted_digits(
        &self,
        recoding: Recoding,
        source: &mut Pending<'_, C::ScalarField>,
        start: usize,
        secrecy: Secrecy,
        mark: &mut dyn FnMut(Stage) -> Result<()>,
    ) -> Result<[Buffer<u32>; 2]> {
        let canonical = match self.config.bases {
            Bases::Subgroup => ScalarForm::Reduced,
            Bases::FullGroup => ScalarForm::Plain,
        };
        let (queue, recode, range) = (&self.queue, &self.kernels.recode, start..start + recoding.len);
        let pairs = recoding.len * recoding.digits as usize;
        let (mut keys, mut values) =
            (self.device().alloc_with(pairs, secrecy)?, self.device().alloc_with(pairs, secrecy)?);
        match source {
            Pending::Host(uploads, host) => uploads.run(host.split_to(recoding.len), |_, scalars, _| {
                mark(Stage::Upload)?;
                Ok::<_, Error>(recode.run(queue, &recoding, scalars, &mut keys, &mut values)?)
            })?,
            Pending::Montgomery(scalars) => {
                recode.run(queue, &recoding, scalars.view(range)?, &mut keys, &mut values)?;
            }
            Pending::Canonical(scalars) => {
                let recoding = Recoding { form: canonical, ..recoding };
                recode.run(queue, &recoding, scalars.view(range)?, &mut keys, &mut values)?;
            }
        }
        mark(Stage::Recode)?;
        self.kernels.sort.on(queue).sort(&mut keys, &mut values, 0..key_bits(recoding.sentinel.into()))?;
        mark(Stage::Sort)?;
        Ok([keys, values])
    }
}
