//! One way of applying a plan, on a device's data or on pinned memory.

use std::{ops::Range, sync::Arc};

use ark_ff::FftField;
use evariste_backend::{
    Buffer, Element, Error as DeviceError, HostBuffer, Queue, Secrecy, View, ViewMut,
    author::{Arg, Kernel},
    parallel,
};
use evariste_field::{DeviceField, Mont};

use crate::{
    error::{Error, Result},
    layout::{Batch, BufferRole, Direction, Domain, Layout, Pass},
    order::Order,
    pass::{KernelVariant, Params},
    plan::Ntt,
    tables::{Coset, PassTwiddles},
};

/// One way of applying a plan: orders, coset, columns and queue. Set these, then call [`Transform::forward`] or
/// [`Transform::inverse`].
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// # use ark_bls12_381::Fr;
/// # use ark_ff::FftField;
/// # use evariste_backend::Device;
/// # use evariste_field::Mont;
/// use evariste_ntt::{Ntt, Order};
///
/// # let device = Device::best()?;
/// let ntt = Ntt::<Fr>::new(&device, 3)?;
/// let mut x = device.upload::<Mont<Fr>>(&[7; 8].map(Fr::from))?;
/// // Evaluations on a coset in bit-reversed order, and back: no reordering pass at all.
/// ntt.coset(Fr::GENERATOR).output(Order::BitReversed).forward(&mut x)?;
/// ntt.coset(Fr::GENERATOR).input(Order::BitReversed).inverse(&mut x)?;
/// assert_eq!(x.to_vec()?, [7; 8].map(Fr::from));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `forward` or `inverse`"]
pub struct Transform<'a, F: DeviceField> {
    pub(crate) plan: &'a Ntt<F>,
    pub(crate) input: Order,
    pub(crate) output: Order,
    pub(crate) coset: F,
    pub(crate) columns: Option<usize>,
    /// Those of the matrix that they are some of, if they are not all.
    pub(crate) beside: Option<usize>,
    pub(crate) queue: &'a Queue,
}

impl<F: DeviceField + FftField> Ntt<F> {
    /// Evaluates each run of [`Ntt::size`] elements of `data` in place, natural order to natural order.
    ///
    /// # Errors
    /// - [`Error::TooLarge`] for 2^32 elements or more.
    /// - [`Error::Device`] if the length is no multiple of [`Ntt::size`], or if the data lies on another device.
    /// - [`Error::Device`] if scratch memory is exhausted, or if the device fails.
    ///
    /// The data is unchanged then, unless the device failed between the passes.
    pub fn forward<'d>(&self, data: impl Into<ViewMut<'d, Mont<F>>>) -> Result<()> {
        self.transform().forward(data)
    }

    /// Interpolates each run in place: the inverse of [`Ntt::forward`], n⁻¹ included.
    ///
    /// # Errors
    /// - [`Error::TooLarge`] for 2^32 elements or more.
    /// - [`Error::Device`] if the length is no multiple of [`Ntt::size`], or if the data lies on another device.
    /// - [`Error::Device`] if scratch memory is exhausted, or if the device fails.
    ///
    /// The data is unchanged then, unless the device failed between the passes.
    pub fn inverse<'d>(&self, data: impl Into<ViewMut<'d, Mont<F>>>) -> Result<()> {
        self.transform().inverse(data)
    }

    /// Starts a transform: set orders, a coset, columns or a queue on it, then apply it.
    pub fn transform(&self) -> Transform<'_, F> {
        let order = Order::Natural;
        Transform {
            plan: self,
            input: order,
            output: order,
            coset: F::ONE,
            columns: None,
            beside: None,
            queue: self.queue(),
        }
    }

    /// Starts a transform on the coset of `generator`.
    pub fn coset(&self, generator: F) -> Transform<'_, F> {
        self.transform().coset(generator)
    }
}

impl<'a, F: DeviceField + FftField> Transform<'a, F> {
    pub(crate) fn plan(&self) -> &'a Ntt<F> {
        self.plan
    }

    /// Sets the order of the data before the transform; the default is natural.
    pub fn input(mut self, order: Order) -> Self {
        self.input = order;
        self
    }

    /// Sets the order of the data after the transform; the default is natural.
    pub fn output(mut self, order: Order) -> Self {
        self.output = order;
        self
    }

    /// Sets the generator of the coset of evaluation points; the default is 1, the subgroup itself.
    pub fn coset(mut self, generator: F) -> Self {
        self.coset = generator;
        self
    }

    /// Transforms the columns of matrices of [`Ntt::size`] rows and `count` columns, stored by rows, one matrix after
    /// the other. The default is to transform runs of [`Ntt::size`] elements.
    pub fn columns(mut self, count: usize) -> Self {
        self.columns = Some(count);
        self
    }

    /// Has the columns lie in rows of `count` elements, where they are read or written.
    pub(crate) fn beside(mut self, count: usize) -> Self {
        self.beside = Some(count);
        self
    }

    /// Sets the queue; the default is the plan's.
    pub fn on(mut self, queue: &'a Queue) -> Self {
        self.queue = queue;
        self
    }

    /// Compiles the kernels of forward and inverse transforms like this one, in place and into other memory, side by
    /// side. It also computes their tables. Later calls compile nothing.
    ///
    /// ```
    /// # fn main() -> Result<(), evariste_ntt::Error> {
    /// # use ark_bls12_381::Fr;
    /// # use ark_ff::FftField;
    /// # use evariste_backend::Device;
    /// use evariste_ntt::{Ntt, Order};
    ///
    /// let ntt = Ntt::<Fr>::new(&Device::best()?, 3)?;
    /// let transform = ntt.coset(Fr::GENERATOR).output(Order::BitReversed);
    /// transform.prepare()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ZeroCoset`] if the generator of the coset is 0; [`Error::Device`] if memory is exhausted, if a kernel
    /// does not compile, or if the device fails.
    pub fn prepare(&self) -> Result<()> {
        if self.coset.is_zero() {
            return Err(Error::ZeroCoset);
        }
        let columns = self.columns.unwrap_or(1);
        if self.plan.size() == 1 || columns == 0 {
            return Ok(());
        }
        let plan = self.plan.of_columns(columns)?;
        let (orders, batch, domain) = ((self.input, self.output), Batch::of(columns), self.domain());
        let mut variants = Vec::new();
        for direction in [Direction::Forward, Direction::Inverse] {
            for start in [BufferRole::Data, BufferRole::Source] {
                variants.extend(plan.shared.layout.variants(orders, batch, direction, domain, start));
            }
        }
        plan.prepare(variants)?;
        plan.inverse_twiddles()?;
        if domain == Domain::Coset {
            for direction in [Direction::Forward, Direction::Inverse] {
                plan.coset_powers(self.coset, direction)?;
            }
        }
        Ok(())
    }

    fn domain(&self) -> Domain {
        if self.coset.is_one() { Domain::Subgroup } else { Domain::Coset }
    }

    /// Evaluates each run of [`Ntt::size`] elements of `data`, in place.
    ///
    /// # Errors
    /// - [`Error::TooLarge`] for 2^32 elements or more.
    /// - [`Error::ZeroCoset`] if the generator of the coset is 0.
    /// - [`Error::Device`] if the length is no multiple of [`Ntt::size`], times the number of columns.
    /// - [`Error::Device`] if the data lies on another device, or if memory for scratch or tables is exhausted.
    /// - [`Error::Device`] if a kernel does not compile at its first use, or if the device fails.
    ///
    /// The data is unchanged then, unless the device failed between the passes.
    pub fn forward<'d>(&self, data: impl Into<ViewMut<'d, Mont<F>>>) -> Result<()> {
        self.run(data.into(), Direction::Forward)
    }

    /// Interpolates each run: the inverse of [`Transform::forward`] with the orders exchanged.
    ///
    /// # Errors
    /// Fails under the conditions of [`Transform::forward`].
    pub fn inverse<'d>(&self, data: impl Into<ViewMut<'d, Mont<F>>>) -> Result<()> {
        self.run(data.into(), Direction::Inverse)
    }

    /// Evaluates each run of [`Ntt::size`] elements of `source` into `data`. The first pass reads `source`, so there is
    /// no copy.
    ///
    /// # Errors
    /// [`Error::Device`] if `data` has another length than `source`, lies on another device, or is public while
    /// `source` is secret. Otherwise it fails under the conditions of [`Transform::forward`].
    pub fn forward_into<'s, 'd>(
        &self,
        source: impl Into<View<'s, Mont<F>>>,
        data: impl Into<ViewMut<'d, Mont<F>>>,
    ) -> Result<()> {
        self.run_into(source.into(), data.into(), Direction::Forward)
    }

    /// Interpolates each run of `source` into `data`.
    ///
    /// # Errors
    /// Fails under the conditions of [`Transform::forward_into`].
    pub fn inverse_into<'s, 'd>(
        &self,
        source: impl Into<View<'s, Mont<F>>>,
        data: impl Into<ViewMut<'d, Mont<F>>>,
    ) -> Result<()> {
        self.run_into(source.into(), data.into(), Direction::Inverse)
    }

    /// Evaluates pinned host memory in place. `host` must allow both directions and hold elements in the device's form
    /// ([`Element::encode`](evariste_backend::Element::encode)). The first pass starts when the first columns are on
    /// the device. The first columns return while the last pass works on others. [`crate::Pipeline`] overlaps several
    /// transforms.
    ///
    /// # Errors
    /// [`Error::Device`] in these cases, and under the conditions of [`Transform::forward`]:
    ///
    /// - `host` is no whole number of elements, does not allow both directions, belongs to another device or differs
    ///   from `secrecy`.
    /// - Device memory for the data is exhausted.
    ///
    /// The host memory is dropped then.
    pub fn forward_pinned(&self, host: HostBuffer, secrecy: Secrecy) -> Result<HostBuffer> {
        self.run_pinned(host, secrecy, Direction::Forward)
    }

    /// Interpolates pinned host memory in place: the inverse of [`Transform::forward_pinned`] with the orders
    /// exchanged.
    ///
    /// # Errors
    /// Fails under the conditions of [`Transform::forward_pinned`].
    pub fn inverse_pinned(&self, host: HostBuffer, secrecy: Secrecy) -> Result<HostBuffer> {
        self.run_pinned(host, secrecy, Direction::Inverse)
    }

    /// Does only the first rounds of a forward transform, from natural order and in place. Returns their number r,
    /// which is 0 unless the plan has [`Split::Halves`](crate::Split::Halves). Each run of [`Ntt::size`] elements then
    /// holds 2^r independent inputs of n/2^r elements, one after the other, for transforms on the subgroup. Output k of
    /// transform t is output k·2^r + rev(t) of the whole, where rev reverses r bits.
    ///
    /// ```
    /// # fn main() -> Result<(), evariste_ntt::Error> {
    /// # use ark_bls12_381::Fr;
    /// # use evariste_backend::Device;
    /// # use evariste_field::Mont;
    /// use evariste_ntt::{Ntt, NttConfig, Split};
    ///
    /// # let device = Device::best()?;
    /// let halves = NttConfig::default().split(Split::Halves);
    /// let ntt = Ntt::<Fr>::with_config(&device, 3, halves)?;
    /// let mut x = device.upload::<Mont<Fr>>(&[1, 2, 3, 4, 5, 6, 7, 8].map(Fr::from))?;
    /// assert_eq!(ntt.transform().halve(&mut x)?, 1);
    /// Ntt::<Fr>::new(&device, 2)?.forward(&mut x)?;
    /// // Output 0 of the outputs with even index.
    /// assert_eq!(x.to_vec()?[0], Fr::from(36));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails under the conditions of [`Transform::forward`].
    #[cfg(any(test, feature = "compare"))]
    pub fn halve<'d>(&self, data: impl Into<ViewMut<'d, Mont<F>>>) -> Result<u32> {
        let (data, in_place) = (data.into(), self.clone().input(Order::Natural).output(Order::BitReversed));
        let Some(run) = in_place.ready(data.as_view(), Direction::Forward, None)? else { return Ok(0) };
        let (rounds, len) = (run.layout.halvings, data.len());
        let mut buffers = PassBuffers { source: None, data, scratch: None };
        (0..rounds).try_for_each(|i| run.launch(i, 0..run.lines(i, len), &mut buffers))?;
        Ok(rounds as u32)
    }

    /// [`Transform::forward`] or [`Transform::inverse`].
    pub(crate) fn run(&self, data: ViewMut<'_, Mont<F>>, direction: Direction) -> Result<()> {
        let Some(run) = self.ready(data.as_view(), direction, None)? else { return Ok(()) };
        let mut scratch = run.scratch(data.len(), data.secrecy())?;
        run.launch_all(
            data.len(),
            PassBuffers { source: None, data, scratch: scratch.as_mut().map(Buffer::as_view_mut) },
        )
    }

    fn run_into(&self, source: View<'_, Mont<F>>, mut data: ViewMut<'_, Mont<F>>, direction: Direction) -> Result<()> {
        self.plan.device().expect_same("the output of a transform", data.device())?;
        data.expect_len("the output of a transform", source.len())?;
        source.secrecy().expect_to(data.secrecy(), "transform", ["the source", "the output"])?;
        let Some(run) = self.ready(source, direction, Some(0))? else {
            return Ok(self.queue.copy(source, &mut data)?);
        };
        let mut scratch = run.scratch(source.len(), Secrecy::of([source.secrecy(), data.secrecy()]))?;
        let scratch = scratch.as_mut().map(Buffer::as_view_mut);
        run.launch_all(source.len(), PassBuffers { source: Some(source), data, scratch })
    }

    fn run_pinned(&self, host: HostBuffer, secrecy: Secrecy, direction: Direction) -> Result<HostBuffer> {
        let (device, bytes) = (self.plan.device(), Mont::<F>::BYTES);
        host.expect_download("the host memory of a transform")?;
        host.expect_secrecy("the host memory of a transform", secrecy)?;
        let len = whole_elements::<F>(&host)?;
        let mut data = device.alloc_with::<Mont<F>>(len, secrecy)?;
        let Some(run) = self.ready(data.as_view(), direction, None)? else { return Ok(host) };
        let mut scratch = run.scratch(len, secrecy)?;
        let transfers = device.queue()?;

        // Blocks of columns where the lines of the outer passes are columns of one matrix.
        let last = run.passes.len() - 1;
        let natural = (self.input, self.output) == (Order::Natural, Order::Natural);
        let whole = run.layout.log_n == len.ilog2() && natural && last > 0;
        let pieces = |i: usize| {
            let tiles = u64::from(run.lines(i, len)) / run.kernels[i].0.lines_per_group();
            let run_bytes = bytes << (run.layout.log_n - run.passes[i].log_rows);
            // Where copies do not overlap kernels, none is faster than another.
            let most = if device.info().features.queues { run_bytes / MIN_RUN_BYTES } else { PIECES };
            // A power of two, as the columns are.
            if whole { 1 << PIECES.min(tiles as usize).min(most).max(1).ilog2() } else { 1 }
        };
        let (into, out_of) = (pieces(0), pieces(last));
        let rows = |i: usize, pieces| if pieces > 1 { 1 << run.passes[i].log_rows } else { 1 };

        let (uploaded, uploading) = transfers.write_pinned_columns(&mut data, host, rows(0, into), into)?;
        let mut done = Vec::with_capacity(out_of);
        for i in 0..=last {
            let lines = run.lines(i, len);
            let pieces = if i == 0 {
                into
            } else if i == last {
                out_of
            } else {
                1
            };
            for piece in 0..pieces as u32 {
                if i == 0 {
                    self.queue.wait_for(&uploaded[piece as usize])?;
                }
                let share = lines / pieces as u32;
                let scratch = scratch.as_mut().map(Buffer::as_view_mut);
                // SAFETY: the lines of the first pass are those of a block of columns that was waited for, and others
                // come after all of these. What a pass writes is downloaded later, after an event.
                let data = unsafe { data.as_view_mut().assume_ordered() };
                run.launch(i, piece * share..(piece + 1) * share, &mut PassBuffers { source: None, data, scratch })?;
                if i == last {
                    done.push(self.queue.record()?);
                }
            }
        }
        // The memory is free again as soon as the device has the data, while it still works on it.
        let host = uploading.wait()?;
        // SAFETY: each block of columns is read after the event behind the launch that wrote its lines last.
        let results = unsafe { data.as_view().assume_ordered() };
        let back = transfers.read_pinned_columns(results, host, rows(last, out_of), &done)?;
        Ok(back.wait()?)
    }

    /// Refuses data that is not whole transforms, or more than one call takes.
    pub(crate) fn expect_len(&self, len: usize) -> Result<()> {
        let unit = self.plan.size().saturating_mul(self.columns.unwrap_or(1));
        if if unit == 0 { len > 0 } else { !len.is_multiple_of(unit) } {
            return Err(DeviceError::length("the data of a transform, a multiple of", unit, len).into());
        }
        if u32::try_from(len).is_err() {
            return Err(Error::TooLarge { expected: u32::MAX.into(), actual: len as u64 });
        }
        Ok(())
    }

    /// Checks the data and makes everything ready, unless nothing is to be done. The transform is in place, or its
    /// results go elsewhere. There they lie 2^`elsewhere` times the length of one apart.
    pub(crate) fn ready(
        &self,
        data: View<'_, Mont<F>>,
        direction: Direction,
        elsewhere: Option<u32>,
    ) -> Result<Option<Run<'a, F>>> {
        let start = if elsewhere.is_some() { BufferRole::Source } else { BufferRole::Data };
        self.ready_from(start, data, direction, elsewhere.unwrap_or(0))
    }

    /// Makes a transform ready whose input lies in the scratch memory, if it needs any, and otherwise in the data. The
    /// first pass stores where it loads.
    pub(crate) fn ready_in_scratch(&self, data: View<'_, Mont<F>>, direction: Direction) -> Result<Option<Run<'a, F>>> {
        let is_scratch = self.plan.shared.layout.needs_scratch(self.input, self.output);
        self.ready_from(if is_scratch { BufferRole::Scratch } else { BufferRole::Data }, data, direction, 0)
    }

    fn ready_from(
        &self,
        start: BufferRole,
        data: View<'_, Mont<F>>,
        direction: Direction,
        log_apart: u32,
    ) -> Result<Option<Run<'a, F>>> {
        let (plan, queue) = (self.plan, self.queue);
        // Before powers of a coset are computed.
        queue.expect_device(plan.device())?;
        plan.device().expect_same("the data of a transform", data.device())?;
        self.expect_len(data.len())?;
        let columns = self.columns.unwrap_or(1);
        if self.coset.is_zero() {
            return Err(Error::ZeroCoset);
        }
        if plan.size() == 1 || data.is_empty() {
            return Ok(None);
        }
        let of_matrix = self.beside.unwrap_or(columns);
        let plan = plan.of_columns(of_matrix)?;
        let layout = &plan.shared.layout;
        let orders = (self.input, self.output);
        let domain = self.domain();
        let mut passes = layout.passes(orders, Batch::of(of_matrix), start);
        layout.scale(&mut passes, orders, direction, domain);
        let variants = (0..passes.len()).map(|i| layout.variant_of(&passes, i));
        let kernels = variants.map(|variant| Ok((variant, plan.kernel(variant)?))).collect::<Result<Vec<_>>>()?;
        // Before the first pass: what a later one refused would leave the data half transformed.
        kernels.iter().try_for_each(|(_, kernel)| kernel.expect_fits(&Params::default()))?;
        let twiddles = match direction {
            Direction::Forward => &plan.shared.forward,
            Direction::Inverse => plan.inverse_twiddles()?,
        };
        let coset = match domain {
            Domain::Subgroup => None,
            Domain::Coset => Some(plan.coset_powers(self.coset, direction)?),
        };
        twiddles.ready.wait(queue)?;
        coset.iter().try_for_each(|coset| coset.ready.wait(queue))?;
        let scratch = layout.needs_scratch(self.input, self.output);
        let result_stride = layout.log_n + log_apart;
        Ok(Some(Run {
            plan,
            layout,
            queue,
            direction,
            columns,
            rows: RowLengths { source: columns, data: columns },
            passes,
            kernels,
            twiddles,
            coset,
            scratch,
            result_stride,
        }))
    }
}

/// Blocks of columns in which one transform's data comes and goes: the part of the outer passes that is not overlapped
/// with a transfer.
const PIECES: usize = 8;

/// Least bytes side by side of such a block, as each row of a copy takes time of its own. On an H200, transforms of
/// 2^16 and 2^20 elements of 32 bytes took 0.205 and 1.51 ms with eight blocks of any width. With these blocks they
/// took 0.125 and 1.42 ms.
const MIN_RUN_BYTES: usize = 32 << 10;

/// Elements that host memory holds in the device's form.
///
/// # Errors
/// [`DeviceError::Length`] unless they fill it.
pub(crate) fn whole_elements<F: DeviceField>(host: &HostBuffer) -> Result<usize> {
    let (actual, each) = (host.len(), Mont::<F>::BYTES);
    match actual.is_multiple_of(each) {
        true => Ok(actual / each),
        false => {
            let expected = actual.next_multiple_of(each);
            Err(DeviceError::length("the host memory of a transform, in bytes", expected, actual).into())
        }
    }
}

/// A transform with everything that its launches need.
pub(crate) struct Run<'a, F: DeviceField> {
    plan: &'a Ntt<F>,
    layout: &'a Layout,
    queue: &'a Queue,
    direction: Direction,
    /// Transforms side by side.
    columns: usize,
    rows: RowLengths,
    passes: Vec<Pass>,
    kernels: Vec<(KernelVariant, Arc<Kernel<Params>>)>,
    twiddles: &'a PassTwiddles<F>,
    coset: Option<Coset<F>>,
    /// A second buffer is needed.
    scratch: bool,
    /// log₂ of the distance of the results.
    result_stride: u32,
}

/// Elements of a row in memory, where transforms are some of those side by side. Scratch has their own elements alone.
#[derive(Clone, Copy)]
pub(crate) struct RowLengths {
    pub(crate) source: usize,
    pub(crate) data: usize,
}

/// The buffers of a transform's passes.
pub(crate) struct PassBuffers<'a, F: DeviceField> {
    /// What is transformed, unless `data` is.
    pub(crate) source: Option<View<'a, Mont<F>>>,
    pub(crate) data: ViewMut<'a, Mont<F>>,
    pub(crate) scratch: Option<ViewMut<'a, Mont<F>>>,
}

impl<F: DeviceField + FftField> Run<'_, F> {
    /// The same transforms, of columns in rows of at least as many elements, the last of which end inside the views.
    pub(crate) fn in_rows(self, rows: RowLengths) -> Self {
        Self { rows, ..self }
    }

    /// Scratch for passes over `len` elements, if they need any.
    pub(crate) fn scratch(&self, len: usize, secrecy: Secrecy) -> Result<Option<Buffer<Mont<F>>>> {
        match self.scratch {
            true => Ok(Some(self.plan.device().alloc_with(len, secrecy)?)),
            false => Ok(None),
        }
    }

    /// Queues all passes over `len` elements.
    pub(crate) fn launch_all(&self, len: usize, mut buffers: PassBuffers<'_, F>) -> Result<()> {
        let mut launch =
            || (0..self.passes.len()).try_for_each(|i| self.launch(i, 0..self.lines(i, len), &mut buffers));
        let in_pool = self.passes.len() > 1 && self.plan.device().info().is_processor();
        if in_pool { parallel::in_pool(launch) } else { launch() }
    }

    /// How many pieces of equally many lines a transform of one pass over `len` elements can be queued in: at most
    /// `most`, and 1 if it has several passes.
    pub(crate) fn pieces(&self, len: usize, most: usize) -> usize {
        match self.passes.len() {
            1 => {
                let tiles = u64::from(self.lines(0, len)) / self.kernels[0].0.lines_per_group();
                1 << (most as u64).min(tiles).max(1).ilog2()
            }
            _ => 1,
        }
    }

    /// Queues piece `piece` of `pieces` of a transform over `len` elements: see [`Run::pieces`].
    pub(crate) fn launch_piece(
        &self,
        piece: usize,
        pieces: usize,
        len: usize,
        buffers: PassBuffers<'_, F>,
    ) -> Result<()> {
        if pieces == 1 {
            return self.launch_all(len, buffers);
        }
        self.launch_first(piece, pieces, len, buffers)
    }

    /// In how many pieces of equally many columns the first pass over one transform can be queued, at most `most`: those
    /// of a matrix that has [`Run::first_rows`] rows. The pass works on each column alone, and stores where it loads.
    pub(crate) fn first_pieces(&self, len: usize, most: usize) -> usize {
        let first = &self.passes[0];
        let columns = self.lines(0, len);
        let is_matrix = self.passes.len() > 1
            && self.layout.log_n == len.ilog2()
            && (first.stride_in, first.stride_out) == (columns.ilog2(), columns.ilog2());
        let tiles = u64::from(columns) / self.kernels[0].0.lines_per_group();
        if is_matrix { 1 << (most as u64).min(tiles).max(1).ilog2() } else { 1 }
    }

    /// The rows of the matrix whose columns the first pass transforms.
    pub(crate) fn first_rows(&self) -> usize {
        1 << self.passes[0].log_rows
    }

    /// Queues piece `piece` of `pieces` of the first pass over `len` elements: see [`Run::first_pieces`].
    pub(crate) fn launch_first(
        &self,
        piece: usize,
        pieces: usize,
        len: usize,
        mut buffers: PassBuffers<'_, F>,
    ) -> Result<()> {
        let share = self.lines(0, len) / pieces as u32;
        self.launch(0, piece as u32 * share..(piece as u32 + 1) * share, &mut buffers)
    }

    /// Queues all passes but the first.
    pub(crate) fn launch_others(&self, len: usize, mut buffers: PassBuffers<'_, F>) -> Result<()> {
        (1..self.passes.len()).try_for_each(|i| self.launch(i, 0..self.lines(i, len), &mut buffers))
    }

    /// Whether the transform needs a second buffer.
    pub(crate) fn needs_scratch(&self) -> bool {
        self.scratch
    }

    /// The lines of a pass over `len` elements.
    fn lines(&self, pass: usize, len: usize) -> u32 {
        (len >> self.passes[pass].log_rows) as u32
    }

    /// Queues pass `i` of some lines.
    fn launch(&self, i: usize, lines: Range<u32>, buffers: &mut PassBuffers<'_, F>) -> Result<()> {
        let (Self { plan, layout, .. }, pass) = (self, self.passes[i]);
        let stride = |role| if role == BufferRole::Data { self.result_stride } else { layout.log_n };
        let row = |role| match role {
            BufferRole::Source => self.rows.source as u32,
            BufferRole::Data => self.rows.data as u32,
            BufferRole::Scratch => self.columns as u32,
        };
        let (variant, kernel) = &self.kernels[i];
        let params = Params {
            first: lines.start,
            lines: lines.end,
            log_n: layout.log_n,
            stride_in: pass.stride_in,
            stride_out: pass.stride_out,
            flags: pass.flags,
            roots: match self.direction {
                Direction::Forward => 0,
                Direction::Inverse => layout.roots() as u32,
            },
            log_roots: layout.log_roots(),
            twiddles: pass.twiddles as u32,
            log_twiddles: pass.log_twiddles,
            shift: pass.shift,
            split: layout.log_split(),
            scales: if self.coset.is_some() { 0 } else { 3 * 2 * layout.roots() as u32 },
            log_scales: layout.log_split(),
            interleaved: self.columns as u32,
            row_in: row(pass.from),
            row_out: row(pass.to),
            pitch_in: stride(pass.from),
            pitch_out: stride(pass.to),
        };
        let groups = u64::from(lines.end - lines.start).div_ceil(variant.lines_per_group());
        let scale = self.coset.as_ref().map_or(Arg::read(&plan.shared.roots), |coset| Arg::read(&*coset.powers));
        let (roots, twiddles) = (Arg::read(&plan.shared.roots), Arg::read(&self.twiddles.table));
        let PassBuffers { source, data, scratch } = buffers;
        let (from, to) = match (pass.from, pass.to, source, scratch) {
            (BufferRole::Source, BufferRole::Data, Some(source), _) => {
                (Some(Arg::read(*source)), Arg::write(data.reborrow()))
            }
            (BufferRole::Source, BufferRole::Scratch, Some(source), Some(scratch)) => {
                (Some(Arg::read(*source)), Arg::write(scratch.reborrow()))
            }
            (BufferRole::Data, BufferRole::Scratch, _, Some(scratch)) => {
                (Some(Arg::read(&*data)), Arg::write(scratch.reborrow()))
            }
            (BufferRole::Scratch, BufferRole::Data, _, Some(scratch)) => {
                (Some(Arg::read(&*scratch)), Arg::write(data.reborrow()))
            }
            (BufferRole::Scratch, BufferRole::Scratch, _, Some(scratch)) => (None, Arg::write(scratch.reborrow())),
            (BufferRole::Data, BufferRole::Data, ..) => (None, Arg::write(data.reborrow())),
            _ => unreachable!("passes read a source where there is one, and have scratch where they need it"),
        };
        let (mut two, mut one);
        let args: &mut [Arg<'_>] = match from {
            Some(from) => {
                two = [from, to, roots, twiddles, scale];
                &mut two
            }
            None => {
                one = [to, roots, twiddles, scale];
                &mut one
            }
        };
        // SAFETY: lines are among those that cover exactly the elements of the source, or of its columns, whose rows all
        // end inside the views. Their results lie in the data, and values between them in the scratch, at the distances
        // given. Rows and offsets of lines stay inside the tables.
        Ok(unsafe { kernel.launch(self.queue, groups, &params, args) }?)
    }
}
