//! Transforms over several devices: Bailey's four steps (D. H. Bailey, "FFTs in external or hierarchical memory",
//! 1990), with one exchange between the devices.
//!
//! Let n = D·m for D devices. With i = b + m·a and k = k₁ + D·k₂, a transform on the coset g·H is
//!
//! ```text
//! X[k₁ + D k₂] = Σ_b (g w_n^(k₁))^b w_m^(b k₂) Σ_a (g^m)^a x[b + m a] w_D^(a k₁)
//! ```
//!
//! The inner sum is a transform of D points on the coset of g^m. The outer one is a transform of m points with twiddles.
//! A device that has all a for some b computes whole inner sums. Device k₁ needs the inner sums for k₁: one run of m/D
//! elements of each device. So there is one exchange, and n ≥ D² (M. A. Inda and R. H. Bisseling, "A simple and
//! efficient parallel FFT algorithm using the BSP model", 2001).
//!
//! | Coefficients | b of place e | Place of x[b + m a] there | The way to row k₁ |
//! |---|---|---|---|
//! | cyclic | e + D·j | j + (m/D)·a | received rows are transposed to the order of b |
//! | block-cyclic | (m/D)·e + j | j + (m/D)·a | received rows are in the order of b |
//! | bit-reversed, in blocks | rev(e) + D·j | rev(j)·D + rev(a) | the matrix is transposed before it is sent |
//!
//! Values are cyclic, or bit-reversed in blocks: place k₁ or rev(k₁) has all k₂.
//!
//! **Twiddles.** On the subgroup, the sender multiplies rows k₁ > 0 by stored powers of w_n. On a coset, or if tables are
//! to be small, the outer transform is one on the coset of g·w_n^(k₁): then it brings the twiddles.
//!
//! **Overlap.** Of coefficients in natural order, the inner sums are queued in pieces of columns b. A piece is copied
//! while the next one is transformed. Where received rows are in the order of b and the outer transform has several
//! passes, the exchange takes longer than the inner sums: its pieces are then the columns that the first of these passes
//! works on, and the pass transforms a piece while the next one is copied.
//!
//! The inverse does the same steps backwards. Its exchange overlaps the inner sums alone: the last pass of the outer
//! transform loads from the memory that the exchange would store to.

use std::{fmt, ops::Range, slice};

use ark_ff::FftField;
use evariste_backend::{
    Buffer, Device, Devices, Distribution, Element, Error as DeviceError, Event, Queue, Secrecy, Sharded, ViewMut,
    author::Lazy,
};
use evariste_field::{DeviceField, Mont, Vector};

use crate::{
    config::{NttConfig, Twiddles},
    error::{Error, Result},
    layout::Direction,
    order::{Order, reverse_bits},
    plan::Ntt,
    tables::{inverted, unity},
    transform::{PassBuffers, Run, Transform},
};

/// Pieces in which inner sums are queued and copied, at most: what is not overlapped is one piece of either.
const PIECES: usize = 8;

/// Least bytes of a copy of a piece. Links between GPUs reach half of their rate with some megabytes.
const PIECE_BYTES: usize = 4 << 20;

/// Least bytes side by side of a copy of several rows.
const ROW_BYTES: u64 = 64 << 10;

/// A plan for transforms of n = 2^`log_n` elements that are divided among a power of two of devices.
///
/// The values are those of [`Ntt`]. In natural order the elements have a cyclic distribution
/// ([`Distribution::Cyclic`]), in bit-reversed order they lie in blocks ([`Distribution::Blocks`]). Coefficients in
/// natural order may be block-cyclic instead ([`ShardedTransform::block_cyclic`]), which spares a pass over the data.
/// Devices that are no power of two have several places each: [`Devices::over`].
///
/// Each device does the (n/D/2) log₂ n multiplications of its part and sends n/D·(D − 1)/D elements, once. It holds its
/// n/D elements twice, with tables for n/D elements as [`Ntt`] has them, and as many twiddles. So n may be larger than
/// one device holds. To save memory, take [`Twiddles::TwoLevel`].
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::{Device, Devices, Distribution, Sharded};
/// use evariste_field::Mont;
/// use evariste_ntt::{Order, ShardedNtt};
///
/// let devices = Devices::from(&Device::best()?).over(2)?;
/// let ntt = ShardedNtt::<Fr>::new(&devices, 4)?;
/// let coefficients: Vec<Fr> = (0..16).map(Fr::from).collect();
/// let mut x = Sharded::<Mont<Fr>>::upload(&devices, &coefficients, Distribution::Cyclic)?;
/// ntt.transform().output(Order::BitReversed).forward(&mut x)?;
/// ntt.transform().input(Order::BitReversed).inverse(&mut x)?;
/// assert_eq!(x.to_vec()?, coefficients);
/// # Ok(())
/// # }
/// ```
pub struct ShardedNtt<F: DeviceField> {
    devices: Devices,
    log_n: u32,
    places: Vec<Place<F>>,
    /// The number of the first of these places among all, and that of all.
    first: usize,
    count: usize,
    /// Whether twiddles between the inner and the outer sums are stored.
    is_stored: bool,
    piece_bytes: usize,
    row_bytes: u64,
}

/// What a place has.
struct Place<F: DeviceField> {
    /// Transforms over a, of one point for each place.
    across: Ntt<F>,
    /// Transforms over b, of the elements of the place.
    local: Ntt<F>,
    vector: Vector<F>,
    /// Where the place computes, and where it receives.
    compute: Queue,
    transfers: Queue,
    /// Twiddles of its rows k₁ > 0, forward and inverse, by the distribution of coefficients, from the first use on.
    twiddles: [[Lazy<Buffer<Mont<F>>>; 3]; 2],
}

impl<F: DeviceField + FftField> Place<F> {
    fn new(device: &Device, log_places: u32, log_local: u32, config: NttConfig) -> Result<Self> {
        // Not the default queue, which waits for whatever others read of its memory.
        let (compute, transfers) = (device.queue()?, device.queue()?);
        let (across, local) = (Ntt::new(&compute, log_places)?, Ntt::with_config(&compute, log_local, config)?);
        let (vector, twiddles) = (Vector::new(&compute), Default::default());
        Ok(Self { across, local, vector, compute, transfers, twiddles })
    }
}

/// The rows of an exchange between places: which one goes to each, and which one comes from each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// By place, the row of what is sent that goes there.
    pub sent: Vec<usize>,
    /// By place, the row that what comes from there becomes.
    pub received: Vec<usize>,
}

/// Elements of each row of a matrix that is exchanged: of each run of `period` elements, those in `columns`.
#[derive(Clone, Debug)]
struct Block {
    columns: Range<usize>,
    period: usize,
}

impl Block {
    /// Part `piece` of `pieces` parts of equal width.
    fn new(period: usize, piece: usize, pieces: usize) -> Self {
        let share = period / pieces;
        Self { columns: piece * share..(piece + 1) * share, period }
    }
}

/// What copies blocks of rows from each place's memory to the others'.
type Exchange<'a, F> = &'a mut dyn FnMut(&Steps<F>, &[Buffer<Mont<F>>], &mut [Buffer<Mont<F>>], Block) -> Result<()>;

impl<F: DeviceField + FftField> ShardedNtt<F> {
    /// Makes a plan for 2^`log_n` elements, with tables and kernels on each device.
    ///
    /// # Errors
    /// - [`Error::Devices`] unless their number is a power of two.
    /// - [`Error::TwoAdicity`] if the field has no root of unity of order 2^`log_n`.
    /// - [`Error::TooLarge`] if a device would have more than 2^31 elements.
    /// - [`Error::Device`] with `Length` inside for fewer elements than the square of the number of devices.
    /// - [`Error::Device`] if tables do not fit a device's memory, if a kernel does not compile, or if a device fails.
    pub fn new(devices: &Devices, log_n: u32) -> Result<Self> {
        Self::with_config(devices, log_n, NttConfig::default())
    }

    /// Makes a plan as [`ShardedNtt::new`] does. `config` is that of the transforms of n/D elements.
    ///
    /// # Errors
    /// Fails under the conditions of [`ShardedNtt::new`].
    pub fn with_config(devices: &Devices, log_n: u32, config: NttConfig) -> Result<Self> {
        let log_devices = log_devices::<F>(devices, log_n)?;
        let log_local = log_n - log_devices;
        let places = devices.run(|_, device| Place::new(device, log_devices, log_local, config))?;
        let (is_stored, count) = (is_stored::<F>(devices, log_local, config)?, devices.len());
        let devices = devices.clone();
        Ok(Self { devices, log_n, places, first: 0, count, is_stored, piece_bytes: PIECE_BYTES, row_bytes: ROW_BYTES })
    }

    /// Makes the plan of place number `at` of `count`, where other processes have the others. It takes
    /// [`ShardedTransform::forward_part`] and [`ShardedTransform::inverse_part`] alone. Twiddles between places are not
    /// stored.
    ///
    /// # Errors
    /// Fails under the conditions of [`ShardedNtt::new`], and with [`Error::Device`] and `OutOfRange` inside unless `at`
    /// is below `count`.
    pub fn part(device: &Device, at: usize, count: usize, log_n: u32, config: NttConfig) -> Result<Self> {
        if at >= count {
            let (offset, len) = (at as u64, count as u64);
            return Err(DeviceError::OutOfRange { what: "the place of a transform", offset, count: 1, len }.into());
        }
        let log_count = log_places::<F>(count, log_n)?;
        let places = vec![Place::new(device, log_count, log_n - log_count, config)?];
        let (devices, is_stored) = (device.into(), false);
        Ok(Self { devices, log_n, places, first: at, count, is_stored, piece_bytes: PIECE_BYTES, row_bytes: ROW_BYTES })
    }

    /// Returns the bytes of device memory that a plan and a call take on each device beside the data, by place: tables
    /// of both directions, and memory for what the device receives.
    ///
    /// # Errors
    /// Fails under the conditions of [`ShardedNtt::new`] that concern numbers.
    pub fn required_bytes(devices: &Devices, log_n: u32, config: NttConfig) -> Result<Vec<u64>> {
        let log_local = log_n - log_devices::<F>(devices, log_n)?;
        let received = (Mont::<F>::BYTES as u64) << log_local;
        // Of all rows but one, in both directions.
        let twiddles = match is_stored::<F>(devices, log_local, config)? {
            true => 2 * (received - received / devices.len() as u64),
            false => 0,
        };
        // Scratch is the memory for what is received.
        let own = |device| Ok(Ntt::<F>::required_bytes(device, log_local, 0, config)? + received + twiddles);
        devices.iter().map(own).collect()
    }

    /// Returns the devices of the plan.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Returns the number of elements of a transform, on all devices.
    pub fn size(&self) -> u64 {
        1 << self.log_n
    }

    /// Evaluates a polynomial in place: the coefficients `x` become its values, both in natural order.
    ///
    /// # Errors
    /// Fails under the conditions of [`ShardedTransform::forward`].
    pub fn forward(&self, x: &mut Sharded<Mont<F>>) -> Result<()> {
        self.transform().forward(x)
    }

    /// Interpolates in place: the inverse of [`ShardedNtt::forward`].
    ///
    /// # Errors
    /// Fails under the conditions of [`ShardedTransform::forward`].
    pub fn inverse(&self, x: &mut Sharded<Mont<F>>) -> Result<()> {
        self.transform().inverse(x)
    }

    /// Starts a transform: set orders or a coset on it, then apply it.
    pub fn transform(&self) -> ShardedTransform<'_, F> {
        let (order, coset) = (Order::Natural, F::ONE);
        ShardedTransform { plan: self, input: order, output: order, coset, natural: Distribution::Cyclic }
    }

    /// Starts a transform on the coset of `generator`.
    pub fn coset(&self, generator: F) -> ShardedTransform<'_, F> {
        self.transform().coset(generator)
    }
}

impl<F: DeviceField> fmt::Debug for ShardedNtt<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedNtt").field("devices", &self.devices).field("log_n", &self.log_n).finish_non_exhaustive()
    }
}

/// Whether all plans of the devices store their twiddles, so that there is memory for those between the devices too.
fn is_stored<F: DeviceField + FftField>(devices: &Devices, log_local: u32, config: NttConfig) -> Result<bool> {
    let stored = [Twiddles::Stored, Twiddles::StoredWithQuotients, Twiddles::HalfStored];
    for device in devices.iter() {
        let twiddles = config.resolve::<F>(device, log_local)?.twiddles;
        if !twiddles.is_some_and(|twiddles| stored.contains(&twiddles)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// log₂ of the number of devices, which must suit the number of elements.
fn log_devices<F: FftField>(devices: &Devices, log_n: u32) -> Result<u32> {
    log_places::<F>(devices.len(), log_n)
}

fn log_places<F: FftField>(count: usize, log_n: u32) -> Result<u32> {
    if !count.is_power_of_two() {
        return Err(Error::Devices { actual: count });
    }
    let log_devices = count.ilog2();
    if log_n < 2 * log_devices {
        let (expected, actual) = (1u64.checked_shl(2 * log_devices).unwrap_or(u64::MAX), 1 << log_n);
        let what = "the elements of a transform, at least the square of the number of devices";
        return Err(DeviceError::Length { what, expected, actual }.into());
    }
    // The root of the whole, which no device's own transforms ask for.
    unity::<F>(log_n)?;
    Ok(log_devices)
}

/// One way of applying a plan: orders and coset. Set these, then call [`ShardedTransform::forward`] or
/// [`ShardedTransform::inverse`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `forward` or `inverse`"]
pub struct ShardedTransform<'a, F: DeviceField> {
    plan: &'a ShardedNtt<F>,
    input: Order,
    output: Order,
    coset: F,
    /// The distribution of coefficients in natural order.
    natural: Distribution,
}

impl<F: DeviceField + FftField> ShardedTransform<'_, F> {
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

    /// Takes coefficients in natural order as block-cyclic ([`Distribution::BlockCyclic`]) and not as cyclic: those that
    /// a forward transform is given, and those that an inverse one computes.
    pub fn block_cyclic(mut self) -> Self {
        self.natural = Distribution::BlockCyclic;
        self
    }

    /// Evaluates a polynomial in place. The data gets the distribution of the output's order.
    ///
    /// # Errors
    /// - [`Error::ZeroCoset`] if the generator of the coset is 0.
    /// - [`Error::Distribution`] if the data has another distribution than its order.
    /// - [`Error::Device`] if the data has another length, or lies on other devices.
    /// - [`Error::Device`] if memory is exhausted, if a kernel does not compile at its first use, or if a device fails.
    ///
    /// The data is unchanged then, unless a device or an allocation failed between the steps.
    pub fn forward(&self, x: &mut Sharded<Mont<F>>) -> Result<()> {
        let coefficients = self.coefficients(self.input);
        self.check(x, coefficients)?;
        let places = &self.plan.places;
        self.forward_by(x.parts_mut(), &mut |steps, from, to, block| {
            steps.exchange(places, from, to, &block, |from, to| (steps.residue(to, self.output), from))
        })?;
        x.assume_distribution(distribution(self.output));
        Ok(())
    }

    /// Does the part of [`ShardedTransform::forward`] of the place of a plan from [`ShardedNtt::part`]. `exchange` is
    /// called once, with memory of as many rows as there are places, for what is sent and for what is received. It is not
    /// called if there is one place.
    ///
    /// # Errors
    /// - [`Error::ZeroCoset`] if the generator of the coset is 0.
    /// - [`Error::Device`] unless `part` has a share of the elements, on the device of the plan.
    /// - [`Error::Device`] if memory is exhausted, if a kernel does not compile at its first use, or if the device fails.
    /// - The error of `exchange`.
    pub fn forward_part(
        &self,
        part: &mut Buffer<Mont<F>>,
        exchange: impl FnOnce(&Buffer<Mont<F>>, &mut Buffer<Mont<F>>, &Rows) -> Result<()>,
    ) -> Result<()> {
        self.expect_part(part)?;
        let (places, mut exchange) = (0..self.plan.count, Some(exchange));
        self.forward_by(slice::from_mut(part), &mut |steps, from, to, _| {
            let rows = Rows {
                sent: places.clone().map(|to| steps.residue(to, self.output)).collect(),
                received: places.clone().collect(),
            };
            once(&mut exchange, from, to, &rows)
        })
    }

    /// Does the part of [`ShardedTransform::inverse`] of the place of a plan from [`ShardedNtt::part`], as
    /// [`ShardedTransform::forward_part`] does.
    ///
    /// # Errors
    /// Fails under the conditions of [`ShardedTransform::forward_part`].
    pub fn inverse_part(
        &self,
        part: &mut Buffer<Mont<F>>,
        exchange: impl FnOnce(&Buffer<Mont<F>>, &mut Buffer<Mont<F>>, &Rows) -> Result<()>,
    ) -> Result<()> {
        self.expect_part(part)?;
        let (places, mut exchange) = (0..self.plan.count, Some(exchange));
        self.inverse_by(slice::from_mut(part), &mut |steps, from, to, _| {
            let rows = Rows {
                sent: places.clone().collect(),
                received: places.clone().map(|from| steps.residue(from, self.input)).collect(),
            };
            once(&mut exchange, from, to, &rows)
        })
    }

    /// The steps of a forward transform on the parts of these places.
    fn forward_by(&self, parts: &mut [Buffer<Mont<F>>], exchange: Exchange<'_, F>) -> Result<()> {
        let coefficients = self.coefficients(self.input);
        let (steps, places) = (self.steps(coefficients)?, &self.plan.places);
        let mut received = self.memory(parts)?;
        if self.plan.count == 1 {
            return self.local(&steps, parts, &mut received, self.output, Direction::Forward);
        }
        if self.input == Order::BitReversed {
            for ((at, place), (part, sent)) in places.iter().enumerate().zip(parts.iter_mut().zip(&mut received)) {
                steps.across(place).input(self.input).forward(&mut *part)?;
                place.vector.transpose(part, steps.columns, &mut *sent)?;
                self.twiddle(&steps, at, Direction::Forward, sent.as_view_mut(), 0..steps.columns)?;
            }
            exchange(&steps, &received, parts, steps.piece(0, 1))?;
        } else {
            let runs = self.runs(&steps, parts, Direction::Forward)?;
            if coefficients == Distribution::BlockCyclic && self.plan.count == self.plan.places.len() {
                let outer = self.outer_runs(&steps, parts)?;
                let pieces = self.outer_pieces(&outer, parts);
                if pieces > 1 {
                    return self.forward_overlapped(&steps, &runs, &outer, pieces, [parts, &mut received], exchange);
                }
            }
            let pieces = self.pieces(&steps, &runs, parts);
            for piece in 0..pieces {
                let block = steps.piece(piece, pieces);
                for ((at, run), part) in runs.iter().enumerate().zip(&mut *parts) {
                    let (len, data) = (part.len(), part.as_view_mut());
                    let mut data = match piece {
                        0 => data,
                        // SAFETY: the first piece comes behind all earlier work on the data. Others come behind it on
                        // the same queue. Nobody else uses their columns before they are copied, and copies come behind
                        // this queue.
                        _ => unsafe { data.assume_ordered() },
                    };
                    if let Some(run) = run {
                        let data = data.reborrow();
                        run.launch_piece(piece, pieces, len, PassBuffers { source: None, data, scratch: None })?;
                    }
                    self.twiddle(&steps, at, Direction::Forward, data, block.columns.clone())?;
                }
                exchange(&steps, parts, &mut received, block)?;
            }
            for ((place, part), received) in places.iter().zip(&mut *parts).zip(&mut received) {
                match coefficients {
                    Distribution::Cyclic => place.vector.transpose(&*received, steps.rows, part)?,
                    // They are in order: the data is there from now on.
                    _ => std::mem::swap(part, received),
                }
            }
        }
        self.local(&steps, parts, &mut received, self.output, Direction::Forward)
    }

    /// The steps of a forward transform of block-cyclic coefficients whose exchange is overlapped with the first pass of
    /// the outer transforms.
    fn forward_overlapped(
        &self,
        steps: &Steps<F>,
        inner: &[Option<Run<'_, F>>],
        outer: &[Run<'_, F>],
        pieces: usize,
        [parts, received]: [&mut [Buffer<Mont<F>>]; 2],
        exchange: Exchange<'_, F>,
    ) -> Result<()> {
        let places = &self.plan.places;
        for ((at, run), part) in inner.iter().enumerate().zip(&mut *parts) {
            if let Some(run) = run {
                let (len, data) = (part.len(), part.as_view_mut());
                run.launch_all(len, PassBuffers { source: None, data, scratch: None })?;
            }
            self.twiddle(steps, at, Direction::Forward, part.as_view_mut(), 0..steps.columns)?;
        }
        // All before the first outer pass: a copy comes behind all that its source's device has been given for it.
        let blocks = |run: &Run<'_, F>, part: &Buffer<Mont<F>>| part.len() / run.first_rows();
        let mut arrived = Vec::with_capacity(pieces);
        for piece in 0..pieces {
            exchange(steps, parts, received, Block::new(blocks(&outer[0], &parts[0]), piece, pieces))?;
            arrived.push(places.iter().map(|place| place.transfers.record()).collect::<Result<Vec<Event>, _>>()?);
        }
        for (piece, arrived) in arrived.iter().enumerate() {
            for ((at, run), (part, received)) in outer.iter().enumerate().zip(parts.iter_mut().zip(&mut *received)) {
                places[at].compute.wait_for(&arrived[at])?;
                let len = part.len();
                // SAFETY: the columns of this piece have arrived at the event. Other pieces are other columns, and all
                // other work on the memory comes behind this pass on its queue.
                let data = unsafe { received.as_view_mut().assume_ordered() };
                let buffers = match run.needs_scratch() {
                    true => PassBuffers { source: None, data: part.as_view_mut(), scratch: Some(data) },
                    false => PassBuffers { source: None, data, scratch: None },
                };
                run.launch_first(piece, pieces, len, buffers)?;
            }
        }
        for (run, (part, received)) in outer.iter().zip(parts.iter_mut().zip(received)) {
            if !run.needs_scratch() {
                std::mem::swap(part, received);
            }
            let (len, scratch) = (part.len(), Some(received.as_view_mut()));
            run.launch_others(len, PassBuffers { source: None, data: part.as_view_mut(), scratch })?;
        }
        Ok(())
    }

    /// The outer transforms of each place, of received rows. None if they have nothing to do.
    fn outer_runs(&self, steps: &Steps<F>, parts: &[Buffer<Mont<F>>]) -> Result<Vec<Run<'_, F>>> {
        let runs = self.plan.places.iter().zip(parts).enumerate().map(|(at, (place, part))| {
            let transform = steps.local(place, self.plan.first + at, self.output);
            transform.input(self.input).output(self.output).ready_in_scratch(part.as_view(), Direction::Forward)
        });
        let runs = runs.collect::<Result<Option<Vec<_>>>>()?;
        Ok(runs.unwrap_or_default())
    }

    /// In how many pieces the exchange and the first pass of the outer transforms are overlapped. 1 if they are not.
    fn outer_pieces(&self, runs: &[Run<'_, F>], parts: &[Buffer<Mont<F>>]) -> usize {
        let Some(rows) = runs.first().map(Run::first_rows) else { return 1 };
        // Each row that is received is whole rows of that matrix, and all places exchange the same blocks.
        if rows < self.plan.count || runs.iter().any(|run| run.first_rows() != rows) {
            return 1;
        }
        let of_place = |(run, part): (&Run<'_, F>, &Buffer<Mont<F>>)| {
            let (row_bytes, copy_bytes) = (part.bytes() / rows as u64, part.bytes() / self.plan.count as u64);
            let most = (row_bytes / self.plan.row_bytes).min(copy_bytes / self.plan.piece_bytes as u64);
            run.first_pieces(part.len(), most.clamp(1, PIECES as u64) as usize)
        };
        runs.iter().zip(parts).map(of_place).min().unwrap_or(1)
    }

    /// Interpolates: the inverse of [`ShardedTransform::forward`] with the orders exchanged.
    ///
    /// # Errors
    /// Fails under the conditions of [`ShardedTransform::forward`].
    pub fn inverse(&self, x: &mut Sharded<Mont<F>>) -> Result<()> {
        self.check(x, distribution(self.input))?;
        let places = &self.plan.places;
        self.inverse_by(x.parts_mut(), &mut |steps, from, to, block| {
            steps.exchange(places, from, to, &block, |from, to| (to, steps.residue(from, self.input)))
        })?;
        x.assume_distribution(self.coefficients(self.output));
        Ok(())
    }

    /// The steps of an inverse transform on the parts of these places.
    fn inverse_by(&self, parts: &mut [Buffer<Mont<F>>], exchange: Exchange<'_, F>) -> Result<()> {
        let coefficients = self.coefficients(self.output);
        let (steps, places) = (self.steps(coefficients)?, &self.plan.places);
        let mut received = self.memory(parts)?;
        self.local(&steps, parts, &mut received, self.input, Direction::Inverse)?;
        if self.plan.count == 1 {
            return Ok(());
        }
        if self.output == Order::BitReversed {
            exchange(&steps, parts, &mut received, steps.piece(0, 1))?;
            for ((at, place), (part, received)) in places.iter().enumerate().zip(parts.iter_mut().zip(&mut received)) {
                self.twiddle(&steps, at, Direction::Inverse, received.as_view_mut(), 0..steps.columns)?;
                place.vector.transpose(&*received, steps.rows, &mut *part)?;
                steps.across(place).output(self.output).inverse(part)?;
            }
        } else {
            for ((place, part), sent) in places.iter().zip(&mut *parts).zip(&mut received) {
                match coefficients {
                    Distribution::Cyclic => place.vector.transpose(&*part, steps.columns, sent)?,
                    _ => std::mem::swap(part, sent),
                }
            }
            // From here on, what is sent lies in the second memory, and comes to the first.
            let runs = self.runs(&steps, parts, Direction::Inverse)?;
            let pieces = self.pieces(&steps, &runs, parts);
            let mut arrived = Vec::with_capacity(pieces);
            for piece in 0..pieces {
                exchange(&steps, &received, parts, steps.piece(piece, pieces))?;
                arrived.push(places.iter().map(|place| place.transfers.record()).collect::<Result<Vec<Event>, _>>()?);
            }
            for (piece, arrived) in arrived.iter().enumerate() {
                let block = steps.piece(piece, pieces);
                for ((at, run), part) in runs.iter().enumerate().zip(&mut *parts) {
                    places[at].compute.wait_for(&arrived[at])?;
                    let len = part.len();
                    // SAFETY: the columns of this piece have arrived at the event. All other work on the memory was
                    // given to this queue before, or touches other columns.
                    let mut data = unsafe { part.as_view_mut().assume_ordered() };
                    self.twiddle(&steps, at, Direction::Inverse, data.reborrow(), block.columns.clone())?;
                    if let Some(run) = run {
                        run.launch_piece(piece, pieces, len, PassBuffers { source: None, data, scratch: None })?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Compiles the kernels of transforms like this one, forward and inverse, and computes their tables. Later calls
    /// compile no more than kernels of products and transpositions.
    ///
    /// # Errors
    /// [`Error::ZeroCoset`] if the generator of the coset is 0; [`Error::Device`] if memory is exhausted, if a kernel
    /// does not compile, or if a device fails.
    pub fn prepare(&self) -> Result<()> {
        for (order, direction) in [(self.input, Direction::Forward), (self.output, Direction::Inverse)] {
            let steps = self.steps(self.coefficients(order))?;
            self.plan.devices.run(|at, _| {
                let place = &self.plan.places[at];
                let across = steps.across(place);
                match direction {
                    Direction::Forward => across.input(order).prepare()?,
                    Direction::Inverse => across.output(order).prepare()?,
                }
                let values = if direction == Direction::Forward { self.output } else { self.input };
                steps.local(place, self.plan.first + at, values).input(self.input).output(self.output).prepare()?;
                if steps.has_tables {
                    self.twiddles(&steps, at, direction)?;
                }
                Ok::<_, Error>(())
            })?;
        }
        Ok(())
    }

    /// The distribution of coefficients in this order.
    fn coefficients(&self, order: Order) -> Distribution {
        if order == Order::Natural { self.natural } else { distribution(order) }
    }

    /// The transforms over a of each place, of coefficients in natural order.
    fn runs(
        &self,
        steps: &Steps<F>,
        parts: &[Buffer<Mont<F>>],
        direction: Direction,
    ) -> Result<Vec<Option<Run<'_, F>>>> {
        let ready = |place, part: &Buffer<_>| steps.across(place).ready(part.as_view(), direction, None);
        self.plan.places.iter().zip(parts).map(|(place, part)| ready(place, part)).collect()
    }

    /// In how many pieces all places queue these.
    fn pieces(&self, steps: &Steps<F>, runs: &[Option<Run<'_, F>>], parts: &[Buffer<Mont<F>>]) -> usize {
        // What others copy comes at once.
        if self.plan.count > self.plan.places.len() {
            return 1;
        }
        let most = (steps.columns * Mont::<F>::BYTES / self.plan.piece_bytes).clamp(1, PIECES.min(steps.columns));
        let of_place = |(run, part): (&Option<Run<'_, F>>, &Buffer<Mont<F>>)| match run {
            Some(run) => run.pieces(part.len(), most),
            None => 1,
        };
        runs.iter().zip(parts).map(of_place).min().unwrap_or(1)
    }

    /// Multiplies some columns of the matrix of a place by its twiddles.
    fn twiddle(
        &self,
        steps: &Steps<F>,
        at: usize,
        direction: Direction,
        mut matrix: ViewMut<'_, Mont<F>>,
        columns: Range<usize>,
    ) -> Result<()> {
        if !steps.has_tables || steps.rows == 1 {
            return Ok(());
        }
        let (place, twiddles) = (&self.plan.places[at], self.twiddles(steps, at, direction)?);
        for row in 1..steps.rows {
            let part = |row: usize| row * steps.columns + columns.start..row * steps.columns + columns.end;
            place.vector.mul_assign(matrix.view_mut(part(row))?, twiddles.view(part(row - 1))?)?;
        }
        Ok(())
    }

    /// The twiddles of a place, made on its queue.
    fn twiddles(&self, steps: &Steps<F>, at: usize, direction: Direction) -> Result<&Buffer<Mont<F>>> {
        let place = &self.plan.places[at];
        let known = &place.twiddles[direction as usize][steps.coefficients as usize];
        known.get_or_make(|| {
            let root = if direction == Direction::Forward { steps.root } else { inverted(steps.root) };
            let mut table = place.compute.device().alloc((steps.rows - 1) * steps.columns)?;
            let (first, step) = match steps.coefficients {
                Distribution::Cyclic => (at, steps.rows),
                Distribution::Blocks => (steps.residue(at, Order::BitReversed), steps.rows),
                Distribution::BlockCyclic => (at * steps.columns, 1),
            };
            for row in 1..steps.rows {
                let mut powers = table.view_mut((row - 1) * steps.columns..row * steps.columns)?;
                let power = |exponent: usize| root.pow([row as u64]).pow([exponent as u64]);
                place.vector.powers(power(step), power(first), &mut powers)?;
                if steps.coefficients == Distribution::Blocks {
                    place.vector.bit_reverse_assign(powers)?;
                }
            }
            Ok(table)
        })
    }

    /// The transforms over b, whose values have this order.
    fn local(
        &self,
        steps: &Steps<F>,
        parts: &mut [Buffer<Mont<F>>],
        scratch: &mut [Buffer<Mont<F>>],
        values: Order,
        direction: Direction,
    ) -> Result<()> {
        let places = self.plan.places.iter().enumerate();
        for ((at, place), (part, scratch)) in places.zip(parts.iter_mut().zip(scratch)) {
            let transform = steps.local(place, self.plan.first + at, values).input(self.input).output(self.output);
            let data = part.as_view_mut();
            let Some(run) = transform.ready(data.as_view(), direction, None)? else { continue };
            let scratch = Some(scratch.as_view_mut());
            run.launch_all(data.len(), PassBuffers { source: None, data, scratch })?;
        }
        Ok(())
    }

    /// Refuses data that is none of this transform.
    fn check(&self, x: &Sharded<Mont<F>>, expected: Distribution) -> Result<()> {
        x.expect_on("the data of a transform", &self.plan.devices)?;
        if self.plan.count > self.plan.places.len() {
            let (what, expected) = ("the places of a transform of the whole", self.plan.count);
            return Err(DeviceError::length(what, expected, self.plan.places.len()).into());
        }
        let (len, actual) = (self.plan.size(), x.len() as u64);
        if actual != len {
            return Err(DeviceError::Length { what: "the data of a transform", expected: len, actual }.into());
        }
        if self.coset.is_zero() {
            return Err(Error::ZeroCoset);
        }
        // Of one place, all are the same.
        match x.distribution() == expected || self.plan.places.len() == 1 {
            true => Ok(()),
            false => Err(Error::Distribution { expected, actual: x.distribution() }),
        }
    }

    /// Memory for what each place receives, which is scratch of its own transforms as well.
    fn memory(&self, parts: &[Buffer<Mont<F>>]) -> Result<Vec<Buffer<Mont<F>>>> {
        let secrecy = Secrecy::of(parts.iter().map(Buffer::secrecy));
        let lowest = parts.iter().map(Buffer::secrecy).min().unwrap_or_default();
        secrecy.expect_to(lowest, "transform", ["a part of the data", "another part"])?;
        let own = |part: &Buffer<Mont<F>>| Ok(part.device().alloc_with(part.len(), secrecy)?);
        parts.iter().map(own).collect()
    }

    /// Refuses a part that is none of this plan's place.
    fn expect_part(&self, part: &Buffer<Mont<F>>) -> Result<()> {
        self.plan.devices[0].expect_same("the data of a transform", part.device())?;
        let expected = self.plan.size() / self.plan.count as u64;
        if self.plan.places.len() != 1 || part.len() as u64 != expected {
            let what = "the data of a place of a transform";
            return Err(DeviceError::Length { what, expected, actual: part.len() as u64 }.into());
        }
        if self.coset.is_zero() {
            return Err(Error::ZeroCoset);
        }
        Ok(())
    }

    fn steps(&self, coefficients: Distribution) -> Result<Steps<F>> {
        let (log_n, log_devices) = (self.plan.log_n, self.plan.count.ilog2());
        let local = 1u64 << (log_n - log_devices);
        Ok(Steps {
            rows: 1 << log_devices,
            columns: (local >> log_devices) as usize,
            generator: self.coset,
            across: self.coset.pow([local]),
            root: unity::<F>(log_n)?,
            coefficients,
            has_tables: self.plan.is_stored && self.coset.is_one(),
        })
    }
}

/// Does the exchange of the rows of one place, which is the caller's.
fn once<F: DeviceField>(
    exchange: &mut Option<impl FnOnce(&Buffer<Mont<F>>, &mut Buffer<Mont<F>>, &Rows) -> Result<()>>,
    from: &[Buffer<Mont<F>>],
    to: &mut [Buffer<Mont<F>>],
    rows: &Rows,
) -> Result<()> {
    exchange.take().map_or(Ok(()), |exchange| exchange(&from[0], &mut to[0], rows))
}

/// The numbers of a transform.
struct Steps<F> {
    /// Of the matrix that is exchanged: a row for each place, of runs.
    rows: usize,
    columns: usize,
    generator: F,
    /// g^m.
    across: F,
    /// Of the whole transform.
    root: F,
    coefficients: Distribution,
    /// Whether twiddles come from tables, and not from cosets.
    has_tables: bool,
}

impl<F: DeviceField + FftField> Steps<F> {
    /// The transforms over a: of columns, or of runs where coefficients are bit-reversed.
    fn across<'a>(&self, place: &'a Place<F>) -> Transform<'a, F> {
        let transform = place.across.coset(self.across);
        if self.coefficients == Distribution::Blocks { transform } else { transform.columns(self.columns) }
    }

    /// The transform over b of the place number `at`, whose values have this order.
    fn local<'a>(&self, place: &'a Place<F>, at: usize, values: Order) -> Transform<'a, F> {
        let residue = if self.has_tables { 0 } else { self.residue(at, values) };
        place.local.coset(self.generator * self.root.pow([residue as u64]))
    }

    /// A piece of neighbouring columns.
    fn piece(&self, piece: usize, pieces: usize) -> Block {
        Block::new(self.columns, piece, pieces)
    }

    /// The residue class modulo the number of places that the place number `at` has of data in this order.
    fn residue(&self, at: usize, order: Order) -> usize {
        match order {
            Order::Natural => at,
            Order::BitReversed => reverse_bits(at as u32, self.rows.ilog2()) as usize,
        }
    }

    /// Copies a block of a row of each place to each place. `rows` gives the row that the first place sends to the
    /// second, and the row that it is there.
    fn exchange(
        &self,
        places: &[Place<F>],
        from: &[Buffer<Mont<F>>],
        to: &mut [Buffer<Mont<F>>],
        block: &Block,
        rows: impl Fn(usize, usize) -> (usize, usize),
    ) -> Result<()> {
        let run = |row: usize| row * self.columns..(row + 1) * self.columns;
        let runs = self.columns / block.period;
        // Places take turns, so that no two of them read from the same one.
        for turn in 0..from.len() {
            for ((target, memory), place) in to.iter_mut().enumerate().zip(places) {
                let source = (target + turn) % from.len();
                let (sent, received) = rows(source, target);
                // What stays is copied where it was computed: others who read it wait for all queues that use it, and
                // copies to both sides then are under way at once.
                let queue = if source == target { &place.compute } else { &place.transfers };
                let (sent, received) = (from[source].view(run(sent))?, memory.view_mut(run(received))?);
                queue.receive_columns(sent, received, runs, block.columns.clone())?;
            }
        }
        Ok(())
    }
}

/// The distribution of data in this order.
fn distribution(order: Order) -> Distribution {
    match order {
        Order::Natural => Distribution::Cyclic,
        Order::BitReversed => Distribution::Blocks,
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use evariste_backend::DeviceId;
    use evariste_field::small::BabyBear;

    use super::*;
    use crate::{config::Twiddles, reference};

    const ORDERS: [Order; 2] = [Order::Natural, Order::BitReversed];

    /// Values by the definition, and back, in all orders.
    fn check<F: DeviceField + FftField>(devices: &Devices, log_n: u32, config: NttConfig) {
        let mut rng = ark_std::test_rng();
        let coefficients: Vec<F> = (0..1 << log_n).map(|_| F::rand(&mut rng)).collect();
        let mut ntt = ShardedNtt::<F>::with_config(devices, log_n, config).unwrap();
        // In as many pieces as there may be.
        (ntt.piece_bytes, ntt.row_bytes) = (1, 1);
        let inputs = [
            (Order::Natural, Distribution::Cyclic),
            (Order::Natural, Distribution::BlockCyclic),
            (Order::BitReversed, Distribution::Blocks),
        ];
        for generator in [F::ONE, F::GENERATOR] {
            let values = reference::forward(&coefficients, generator);
            for ((input, distribution), output) in
                inputs.map(|input| ORDERS.map(|output| (input, output))).into_iter().flatten()
            {
                let case = format!("2^{log_n} over {}, {input:?} {distribution:?} to {output:?}", devices.len());
                let given = reference::reorder(&coefficients, Order::Natural, input);
                let mut x = Sharded::upload_with(devices, &given, distribution, Secrecy::Secret).unwrap();
                let transform = ntt.coset(generator);
                let transform =
                    if distribution == Distribution::BlockCyclic { transform.block_cyclic() } else { transform };
                transform.clone().input(input).output(output).forward(&mut x).unwrap();
                assert_eq!(x.to_vec().unwrap(), reference::reorder(&values, Order::Natural, output), "{case}");
                transform.input(output).output(input).inverse(&mut x).unwrap();
                assert_eq!(x.to_vec().unwrap(), given, "{case}, inverse");
            }
        }
    }

    fn group(places: usize) -> Devices {
        let devices: Vec<Device> = (0..places).map(|_| Device::another_cpu()).collect();
        Devices::new(devices).unwrap()
    }

    #[test]
    fn any_power_of_two_of_devices_gives_the_definition() {
        for (places, sizes) in [(1, 0..4), (2, 2..8), (4, 4..8), (8, 6..8)] {
            for log_n in sizes {
                check::<Fr>(&group(places), log_n, NttConfig::default());
            }
        }
        check::<BabyBear>(&group(2), 9, NttConfig::default().twiddles(Twiddles::TwoLevel));
        check::<BabyBear>(&group(4), 10, NttConfig::default());
        // Three devices in turn.
        check::<BabyBear>(&group(3).over(4).unwrap(), 6, NttConfig::default());
    }

    /// Of sizes whose outer transforms take several passes, beside transforms of one device.
    #[test]
    fn an_exchange_overlaps_the_first_outer_pass() {
        const LOG_N: u32 = 16;
        let mut rng = ark_std::test_rng();
        let coefficients: Vec<Fr> = (0..1 << LOG_N).map(|_| ark_ff::UniformRand::rand(&mut rng)).collect();
        let alone = Ntt::<Fr>::new(&Device::cpu(), LOG_N).unwrap();
        for (places, generator) in [(2, Fr::from(1)), (4, Fr::GENERATOR)] {
            let devices = group(places);
            let mut ntt = ShardedNtt::<Fr>::new(&devices, LOG_N).unwrap();
            (ntt.piece_bytes, ntt.row_bytes) = (1, 1);
            for output in ORDERS {
                let mut expected = Device::cpu().upload::<Mont<Fr>>(&coefficients).unwrap();
                alone.coset(generator).output(output).forward(&mut expected).unwrap();
                let mut x = Sharded::upload(&devices, &coefficients, Distribution::BlockCyclic).unwrap();
                let transform = ntt.coset(generator).block_cyclic().output(output);
                let steps = transform.steps(Distribution::BlockCyclic).unwrap();
                let outer = transform.outer_runs(&steps, x.parts()).unwrap();
                assert!(transform.outer_pieces(&outer, x.parts()) > 1, "{places} places to {output:?}");
                transform.forward(&mut x).unwrap();
                assert!(x.to_vec().unwrap() == expected.to_vec().unwrap(), "{places} places to {output:?}");
            }
        }
    }

    /// Places that are plans of their own: an exchange through the host, as other processes would do.
    fn check_parts(count: usize, log_n: u32) {
        let mut rng = ark_std::test_rng();
        let coefficients: Vec<Fr> = (0..1 << log_n).map(|_| ark_ff::UniformRand::rand(&mut rng)).collect();
        let devices = group(count);
        let plan = |at: usize| ShardedNtt::<Fr>::part(&devices[at], at, count, log_n, NttConfig::default()).unwrap();
        let plans: Vec<_> = (0..count).map(plan).collect();
        for (input, output) in ORDERS.map(|input| ORDERS.map(|output| (input, output))).into_iter().flatten() {
            for generator in [Fr::from(1), Fr::GENERATOR] {
                let given = reference::reorder(&coefficients, Order::Natural, input);
                let x = Sharded::<Mont<Fr>>::upload(&devices, &given, distribution(input)).unwrap();
                let distribution_in = x.distribution();
                let run = (1 << log_n) / (count * count);
                let mut parts = x.into_parts();
                for is_forward in [true, false] {
                    let sent = std::sync::Mutex::new(vec![Vec::new(); count]);
                    let barrier = std::sync::Barrier::new(count);
                    std::thread::scope(|scope| {
                        for (at, (plan, part)) in plans.iter().zip(&mut parts).enumerate() {
                            let (sent, barrier) = (&sent, &barrier);
                            scope.spawn(move || {
                                let exchange = |from: &Buffer<Mont<Fr>>, to: &mut Buffer<Mont<Fr>>, rows: &Rows| {
                                    let from = from.to_vec()?;
                                    let row = |row: &usize| from[row * run..][..run].to_vec();
                                    sent.lock().unwrap()[at] = rows.sent.iter().map(row).collect::<Vec<_>>();
                                    barrier.wait();
                                    for (place, row) in rows.received.iter().enumerate() {
                                        let received = sent.lock().unwrap()[place][at].clone();
                                        to.view_mut(row * run..(row + 1) * run)?.write(&received)?;
                                    }
                                    Ok(())
                                };
                                match is_forward {
                                    true => {
                                        let transform = plan.coset(generator).input(input).output(output);
                                        transform.forward_part(part, exchange).unwrap();
                                    }
                                    false => {
                                        let transform = plan.coset(generator).input(output).output(input);
                                        transform.inverse_part(part, exchange).unwrap();
                                    }
                                }
                            });
                        }
                    });
                    let (expected, order) = match is_forward {
                        true => (
                            reference::reorder(&reference::forward(&coefficients, generator), Order::Natural, output),
                            distribution(output),
                        ),
                        false => (given.clone(), distribution_in),
                    };
                    let x = Sharded::from_parts(parts, order).unwrap();
                    assert_eq!(x.to_vec().unwrap(), expected, "{count} places, {input:?} to {output:?}, {is_forward}");
                    parts = x.into_parts();
                }
            }
        }
    }

    #[test]
    fn plans_of_single_places_exchange_rows() {
        for (count, log_n) in [(1, 3), (2, 5), (4, 6)] {
            check_parts(count, log_n);
        }
        let device = Device::cpu();
        let part = |at| ShardedNtt::<Fr>::part(&device, at, 2, 4, NttConfig::default());
        assert!(matches!(part(2), Err(Error::Device(DeviceError::OutOfRange { .. }))));
        let plan = part(1).unwrap();
        let mut short = device.zeros::<Mont<Fr>>(4).unwrap();
        let refused = plan.transform().forward_part(&mut short, |_, _, _| Ok(()));
        assert!(matches!(refused, Err(Error::Device(DeviceError::Length { expected: 8, actual: 4, .. }))));
        let mut whole = Sharded::upload(&(&device).into(), &[Fr::from(1); 16], Distribution::Cyclic).unwrap();
        assert!(matches!(
            plan.forward(&mut whole),
            Err(Error::Device(DeviceError::Length { expected: 2, actual: 1, .. }))
        ));
    }

    #[test]
    fn what_does_not_suit_is_refused_and_stays() {
        let devices = group(2);
        assert_eq!(ShardedNtt::<Fr>::new(&group(3), 8).err(), Some(Error::Devices { actual: 3 }));
        let error = ShardedNtt::<Fr>::new(&group(4), 3).unwrap_err();
        assert!(matches!(error, Error::Device(DeviceError::Length { expected: 16, actual: 8, .. })), "{error}");
        assert_eq!(
            ShardedNtt::<BabyBear>::new(&devices, 28).err(),
            Some(Error::TwoAdicity { expected: 27, actual: 28 })
        );
        assert_eq!(ShardedNtt::<Fr>::new(&devices, 64).err(), Some(Error::TwoAdicity { expected: 32, actual: 64 }));
        let ntt = ShardedNtt::<Fr>::new(&devices, 4).unwrap();
        let host: Vec<Fr> = (0..16).map(Fr::from).collect();
        let mut x = Sharded::<Mont<Fr>>::upload(&devices, &host, Distribution::Blocks).unwrap();
        let (expected, actual) = (Distribution::Cyclic, Distribution::Blocks);
        assert_eq!(ntt.forward(&mut x), Err(Error::Distribution { expected, actual }));
        assert_eq!(ntt.coset(Fr::from(0)).input(Order::BitReversed).forward(&mut x), Err(Error::ZeroCoset));
        let other = group(2);
        let foreign = ShardedNtt::<Fr>::new(&other, 4).unwrap().transform().input(Order::BitReversed).forward(&mut x);
        let id = DeviceId::CPU;
        let what = "the data of a transform";
        assert_eq!(foreign, Err(DeviceError::WrongDevice { what, expected: id, actual: id }.into()));
        assert_eq!(x.to_vec().unwrap(), host);
        let mut short = Sharded::<Mont<Fr>>::upload(&devices, &host[..8], Distribution::Cyclic).unwrap();
        assert_eq!(ntt.inverse(&mut short), Err(DeviceError::Length { what, expected: 16, actual: 8 }.into()));
        let least = ShardedNtt::<Fr>::required_bytes(&devices, 4, NttConfig::default()).unwrap();
        assert!(least.len() == 2 && least[0] >= 8 * 32, "{least:?}");
    }
}
