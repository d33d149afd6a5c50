use std::{fmt, ops::Range, sync::Arc};

use evariste_backend::{
    Buffer, Device, Element, Queue, Secrecy, View, ViewMut,
    author::{Arg, Kernel, KernelSpec, LazyKernel, Ready},
};
use evariste_field::{
    DevicePrimeField, Mont,
    source::{LEAST_BYTES, tile_bytes},
};

use self::params::{
    CompressParams, GrindParams, HashParams, LANE_THREADS, LayersParams, MAX_HALVED, PermuteParams, Shape, THREADS,
    flags,
};
use crate::{error::Result, layers::Arity, parameters::Poseidon2Parameters};

mod cpu;
mod grind;
mod params;
mod spec;
mod wgsl;

/// Rows whose sponges several launches carry on, at a time: states of 16 words take 64 MiB.
const CARRIED_ROWS: usize = 1 << 20;

/// Nodes for each unit of a device in the longest layer that `compress_layers` computes. From twice as many on, one thread a
/// node keeps the 132 multiprocessors of an H200 as busy.
const NODES_PER_UNIT: usize = 64;

/// Words of a buffer that one launch indexes, at most.
const WORDS: usize = 1 << 31;

/// The Poseidon2 permutation on a device, and the sponge and the compression over it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use evariste_backend::Device;
/// use evariste_field::{Mont, small::BabyBear};
/// use evariste_hash::{Poseidon2, Poseidon2Parameters, Rows};
///
/// let device = Device::best()?;
/// let poseidon2 = Poseidon2::new(&device, Poseidon2Parameters::<BabyBear>::plonky3(16)?)?;
/// // Four rows of 10 elements, and a digest of 8 elements for each.
/// let rows: Vec<BabyBear> = (0..40).map(BabyBear::from).collect();
/// let rows = device.upload::<Mont<BabyBear>>(&rows)?;
/// let mut digests = device.alloc(4 * 8)?;
/// poseidon2.hash_rows(&[Rows::new(&rows, 10)], &mut digests)?;
/// # Ok(())
/// # }
/// ```
///
/// # Algorithm
///
/// A thread computes one permutation with the state in registers; near the root of a tree, it has one element of a state.
/// With width t, exponent α = 7, and R_F full and R_P partial rounds, a permutation takes 4·(t·R_F + R_P) multiplications
/// for S-boxes, and t·R_P for the matrix of partial rounds. That of full rounds takes additions alone. For Plonky3's
/// BabyBear of width 16 these are 772 multiplications.
///
/// The sponge overwrites: a block of `rate` elements replaces the first elements of the state, then the state is
/// permuted. A last block that is shorter replaces as many. There is no padding, so rows of one call should have a
/// length that the protocol fixes. Plonky3 calls it `PaddingFreeSponge`, and the compression `TruncatedPermutation`.
///
/// Source: Grassi, Khovratovich and Schofnegger, "Poseidon2: a faster version of the Poseidon hash function",
/// AFRICACRYPT 2023.
pub struct Poseidon2<F: DevicePrimeField> {
    queue: Queue,
    shared: Arc<Shared<F>>,
}

/// What plans on all queues share.
struct Shared<F: DevicePrimeField> {
    device: Device,
    parameters: Poseidon2Parameters<F>,
    shape: Shape,
    constants: Buffer<Mont<F>>,
    permute: LazyKernel<PermuteParams>,
    compress: LazyKernel<CompressParams>,
    compress_four: LazyKernel<CompressParams>,
    compress_layers: LazyKernel<LayersParams>,
    hash_rows: LazyKernel<HashParams>,
    carried: LazyKernel<HashParams>,
    grind: LazyKernel<GrindParams>,
    ready: Ready,
}

/// A matrix on a device, row by row.
#[derive(Debug)]
pub struct Rows<'a, F: DevicePrimeField> {
    values: View<'a, Mont<F>>,
    columns: usize,
}

impl<F: DevicePrimeField> Clone for Rows<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: DevicePrimeField> Copy for Rows<'_, F> {}

impl<'a, F: DevicePrimeField> Rows<'a, F> {
    /// A matrix of rows of `columns` elements.
    pub fn new(values: impl Into<View<'a, Mont<F>>>, columns: usize) -> Self {
        Self { values: values.into(), columns }
    }

    /// Returns the elements, row by row.
    pub fn values(&self) -> View<'a, Mont<F>> {
        self.values
    }

    /// Returns the number of elements of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }
}

/// What one call absorbs of the rows that sponges hash.
#[derive(Clone, Copy)]
struct Part {
    /// Elements of a block of the sponge that are there already.
    position: usize,
    is_first: bool,
    is_last: bool,
}

impl Part {
    const WHOLE: Self = Self { position: 0, is_first: true, is_last: true };
}

/// Some columns of some rows.
struct Piece<'a, F: DevicePrimeField> {
    values: View<'a, Mont<F>>,
    pitch: usize,
    columns: usize,
}

impl<F: DevicePrimeField> Poseidon2<F> {
    /// Uploads the constants on a queue (`&device` is its default one). Kernels are compiled at their first use, or by
    /// [`Poseidon2::prepare`].
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if there is no memory, or if the device fails.
    pub fn new(queue: impl Into<Queue>, parameters: Poseidon2Parameters<F>) -> Result<Self> {
        let queue = queue.into();
        let Poseidon2Parameters { initial, terminal, diagonal, partial, .. } = &parameters;
        let constants = [&initial[..], terminal, diagonal, partial].concat();
        let shared = Shared {
            device: queue.device().clone(),
            constants: queue.upload_with(&constants, Secrecy::Public)?,
            permute: LazyKernel::default(),
            compress: LazyKernel::default(),
            compress_four: LazyKernel::default(),
            compress_layers: LazyKernel::default(),
            hash_rows: LazyKernel::default(),
            carried: LazyKernel::default(),
            grind: LazyKernel::default(),
            ready: Ready::behind(&queue)?,
            shape: Shape::of(&parameters),
            parameters,
        };
        Ok(Self { queue, shared: Arc::new(shared) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), shared: Arc::clone(&self.shared) }
    }

    /// Returns the queue of the plan.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &Poseidon2Parameters<F> {
        &self.shared.parameters
    }

    /// Compiles all kernels side by side, so that no later call does.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if a kernel does not compile, or if the device fails.
    pub fn prepare(&self) -> Result<()> {
        let prepared = self.shared.device.prepare(&Self::kernels(&self.shared.parameters))?;
        self.shared.permute()?;
        for count in compressed(&self.shared.parameters) {
            self.shared.compress(*count)?;
        }
        if has_layers::<F>(&self.shared.parameters) {
            self.shared.compress_layers()?;
        }
        self.shared.hash_rows(false)?;
        self.shared.hash_rows(true)?;
        self.shared.grind()?;
        drop(prepared);
        Ok(())
    }

    /// Returns the kernels, for tools that compile them ahead.
    #[doc(hidden)]
    pub fn kernels(parameters: &Poseidon2Parameters<F>) -> Vec<KernelSpec> {
        let shape = Shape::of(parameters);
        let compressions = compressed(parameters).iter().map(|count| spec::compress::<F>(shape, *count));
        let layers = has_layers::<F>(parameters).then(|| spec::compress_layers::<F>(shape));
        let others = [
            spec::permute::<F>(shape),
            spec::hash_rows::<F>(shape, false),
            spec::hash_rows::<F>(shape, true),
            spec::grind::<F>(shape),
        ];
        compressions.chain(layers).chain(others).collect()
    }

    /// Returns the bytes of device memory that [`Poseidon2::hash_rows`] takes beside its arguments, for `matrices`
    /// matrices of `rows` rows. On devices that limit the loops of a thread, wide matrices take as much as several.
    pub fn scratch_bytes(parameters: &Poseidon2Parameters<F>, rows: usize, matrices: usize) -> u64 {
        let states = if matrices > 1 { rows.min(CARRIED_ROWS) } else { 0 };
        states as u64 * (parameters.width * Mont::<F>::BYTES) as u64
    }

    /// Permutes each of the states, which follow each other. Returns when the work is queued.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device), with
    /// - [`Length`](evariste_backend::Error::Length) if the elements are no whole states,
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice) if they are on another device,
    /// - the errors of a compiler and a driver.
    pub fn permute<'a>(&self, states: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        let mut states = states.into();
        let width = self.shared.parameters.width;
        let count = states.len() / width;
        states.expect_len("the states of a permutation", count * width)?;
        self.expect_here(states.device())?;
        let kernel = self.shared.permute()?;
        let most = WORDS / (width * F::LIMBS);
        self.shared.ready.wait(&self.queue)?;
        let [half, partial] = self.shared.rounds();
        for from in (0..count).step_by(most) {
            let len = most.min(count - from);
            let args = &mut [
                Arg::read(&self.shared.constants),
                Arg::write(states.view_mut(from * width..(from + len) * width)?),
            ];
            let params = PermuteParams { len: len as u32, half, partial };
            // SAFETY: there are `len` states, and the constants of so many rounds.
            unsafe { kernel.launch(&self.queue, groups(len), &params, args)? };
        }
        Ok(())
    }

    /// Compresses digests: `out` has one digest for two neighbouring ones of `children`, or for four if the parameters have
    /// that arity ([`Poseidon2Parameters::with_arity`]). It is the first elements of their permuted state. Returns when the
    /// work is queued.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device), with
    /// - [`Length`](evariste_backend::Error::Length) unless `out` has whole digests, and `children` twice as many, or
    ///   four times,
    /// - [`SecretInput`](evariste_backend::Error::SecretInput) if `children` are secret and `out` is not,
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice) if a view is of another device,
    /// - [`OutOfMemory`](evariste_backend::Error::OutOfMemory) if a sponge hashes four digests, without room for its state,
    /// - the errors of a compiler and a driver.
    pub fn compress<'a>(
        &self,
        children: impl Into<View<'a, Mont<F>>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.compress_apart(children.into(), self.shared.parameters.arity.children(), out.into(), 1)
    }

    /// Compresses each `group` neighbours, and zeros for digests that are missing, to digests `stride` apart. The view
    /// ends with the last one.
    pub(crate) fn compress_apart(
        &self,
        children: View<'_, Mont<F>>,
        group: usize,
        mut out: ViewMut<'_, Mont<F>>,
        stride: usize,
    ) -> Result<()> {
        if !self.shared.parameters.is_truncated() {
            return self.compress_by_sponge(children, group, out, stride);
        }
        let digest = self.shared.parameters.digest;
        let count = digests_in(out.len(), digest, stride);
        out.expect_len("the output of a compression", elements_of(count, digest, stride))?;
        children.expect_len("the digests to compress", group * count * digest)?;
        self.expect_here(children.device())?;
        self.expect_here(out.device())?;
        children.secrecy().expect_to(out.secrecy(), "compression", ["the digests", "the output"])?;
        let kernel = self.shared.compress(group)?;
        let most = WORDS / (group * stride * digest * F::LIMBS);
        self.shared.ready.wait(&self.queue)?;
        let [half, partial] = self.shared.rounds();
        for from in (0..count).step_by(most) {
            let len = most.min(count - from);
            let start = from * stride * digest;
            let args = &mut [
                Arg::read(&self.shared.constants),
                Arg::read(children.view(group * from * digest..group * (from + len) * digest)?),
                Arg::write(out.view_mut(start..start + elements_of(len, digest, stride))?),
            ];
            let params = CompressParams { len: len as u32, half, partial, stride: stride as u32 };
            // SAFETY: there are `len` groups and places for digests, and the constants of so many rounds.
            unsafe { kernel.launch(&self.queue, groups(len), &params, args)? };
        }
        Ok(())
    }

    /// Computes layers of nodes over two children, by one launch. `nodes` has the children, `2·len` digests for a power of
    /// two `len`, then places for `len` nodes, for half as many, and so on. Returns how many of `layers` layers it takes;
    /// for none, nothing is launched.
    pub(crate) fn compress_layers(&self, nodes: ViewMut<'_, Mont<F>>, len: usize, layers: usize) -> Result<usize> {
        let units = self.shared.device.info().parallelism as usize;
        if !has_layers::<F>(&self.shared.parameters) || len > NODES_PER_UNIT * units {
            return Ok(0);
        }
        self.expect_here(nodes.device())?;
        let [half, partial] = self.shared.rounds();
        let params = |layers: usize| LayersParams { len: len as u32, half, partial, layers: layers as u32 };
        let kernel = self.shared.compress_layers()?;
        // Devices may limit the iterations of a loop.
        let most = layers.min(self.shared.shape.layers() as usize);
        let Some(layers) = (1..=most).rev().find(|layers| kernel.fits(&params(*layers))) else { return Ok(0) };
        let digests = 4 * len - ((2 * len) >> layers);
        let nodes = nodes.into_part(..digests * self.shared.parameters.digest)?;
        self.shared.ready.wait(&self.queue)?;
        let args = &mut [Arg::read(&self.shared.constants), Arg::write(nodes)];
        let groups = (len as u64 * u64::from(self.shared.shape.lanes())).div_ceil(LANE_THREADS.into());
        // SAFETY: there are 2·`len` children, then the layers, and the constants of so many rounds. No workgroup needs a node
        // of another.
        unsafe { kernel.launch(&self.queue, groups, &params(layers), args)? };
        Ok(layers)
    }

    /// The same as [`Self::compress_apart`] with the hash of the digests.
    fn compress_by_sponge(
        &self,
        children: View<'_, Mont<F>>,
        group: usize,
        out: ViewMut<'_, Mont<F>>,
        stride: usize,
    ) -> Result<()> {
        let digest = self.shared.parameters.digest;
        let children = Rows::new(children, group * digest);
        let missing = self.shared.parameters.missing_elements(group);
        if missing == 0 {
            return self.hash_rows_apart(&[children], out, stride);
        }
        let mut zeros = self.shared.device.alloc::<Mont<F>>(digests_in(out.len(), digest, stride) * missing)?;
        self.queue.clear(&mut zeros)?;
        self.hash_rows_apart(&[children, Rows::new(&zeros, missing)], out, stride)
    }

    /// Hashes rows: the digest of row i is that of the rows i of all matrices, one after the other. `out` has a digest
    /// for each row. Returns when the work is queued.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device), with
    /// - [`Length`](evariste_backend::Error::Length) unless `out` has whole digests, and each matrix as many rows,
    /// - [`SecretInput`](evariste_backend::Error::SecretInput) if a matrix is secret and `out` is not,
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice) if a view is of another device,
    /// - [`TooLarge`](evariste_backend::Error::TooLarge) for a row of more than 2^31 words,
    /// - [`OutOfMemory`](evariste_backend::Error::OutOfMemory) without room for
    ///   [`scratch_bytes`](Poseidon2::scratch_bytes),
    /// - the errors of a compiler and a driver.
    pub fn hash_rows<'a>(&self, matrices: &[Rows<'_, F>], out: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        self.hash_rows_apart(matrices, out.into(), 1)
    }

    /// [`Poseidon2::hash_rows`], with digests of the output `stride` apart. The view ends with the last one.
    pub(crate) fn hash_rows_apart(
        &self,
        matrices: &[Rows<'_, F>],
        mut out: ViewMut<'_, Mont<F>>,
        stride: usize,
    ) -> Result<()> {
        let Poseidon2Parameters { digest, width, .. } = self.shared.parameters;
        let count = digests_in(out.len(), digest, stride);
        out.expect_len("the output of hashes of rows", elements_of(count, digest, stride))?;
        self.expect_here(out.device())?;
        let mut widest = width.max(stride * digest);
        for Rows { values, columns } in matrices {
            values.expect_len("a matrix", count.saturating_mul(*columns))?;
            self.expect_here(values.device())?;
            values.secrecy().expect_to(out.secrecy(), "hash of rows", ["a matrix", "the output"])?;
            widest = widest.max(*columns);
        }
        let most = self.rows_of_a_launch(widest)?;
        let each = self.columns_of_a_launch()?;
        let launches: usize = matrices.iter().map(|rows| rows.columns.div_ceil(each)).sum();
        let is_carried = launches > 1;
        let kernel = self.shared.hash_rows(is_carried)?;
        let most = if is_carried { most.min(CARRIED_ROWS) } else { most };
        let secrecy = Secrecy::of(matrices.iter().map(|rows| rows.values.secrecy()).chain([out.secrecy()]));
        let mut states = match is_carried {
            true => Some(self.shared.device.alloc_with::<Mont<F>>(most.min(count) * width, secrecy)?),
            false => None,
        };
        self.shared.ready.wait(&self.queue)?;
        for from in (0..count).step_by(most) {
            let len = most.min(count - from);
            let mut pieces = Vec::with_capacity(launches);
            for Rows { values, columns } in matrices {
                for column in (0..*columns).step_by(each) {
                    let values = values.view(from * columns + column..(from + len) * columns)?;
                    pieces.push(Piece { values, pitch: *columns, columns: each.min(columns - column) });
                }
            }
            let start = from * stride * digest;
            let out = out.view_mut(start..start + elements_of(len, digest, stride))?;
            let states = states.as_mut().map(|states| states.view_mut(..len * width)).transpose()?;
            self.launch_hashes(kernel, &pieces, states, out, [len, stride], Part::WHOLE)?;
        }
        Ok(())
    }

    /// Refuses what [`Self::absorb`] cannot do, before it does a part of it.
    pub(crate) fn expect_absorbable(
        &self,
        matrix: Rows<'_, F>,
        states: &Buffer<Mont<F>>,
        digests: &ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        let width = self.shared.parameters.width;
        matrix.values.expect_len("a matrix", states.len() / width * matrix.columns)?;
        self.expect_here(matrix.values.device())?;
        self.rows_of_a_launch(matrix.columns.max(width))?;
        Ok(matrix.values.secrecy().expect_to(digests.secrecy(), "hash of rows", ["a matrix", "the output"])?)
    }

    /// Absorbs some columns of a matrix, where `states` has a sponge for each row. `digests` has the digests once the last
    /// column is absorbed.
    pub(crate) fn absorb(
        &self,
        matrix: Rows<'_, F>,
        columns: Range<usize>,
        states: &mut Buffer<Mont<F>>,
        mut digests: ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        let Poseidon2Parameters { digest, width, rate, .. } = self.shared.parameters;
        let count = states.len() / width;
        let most = self.rows_of_a_launch(matrix.columns.max(width))?;
        let each = self.columns_of_a_launch()?;
        let part = Part {
            position: columns.start % rate,
            is_first: columns.start == 0,
            is_last: columns.end == matrix.columns,
        };
        self.shared.ready.wait(&self.queue)?;
        for from in (0..count).step_by(most) {
            let len = most.min(count - from);
            let piece = |column: usize| {
                let values = matrix.values.view(from * matrix.columns + column..(from + len) * matrix.columns)?;
                Ok(Piece { values, pitch: matrix.columns, columns: each.min(columns.end - column) })
            };
            let pieces = columns.clone().step_by(each).map(piece).collect::<Result<Vec<_>>>()?;
            let states = states.view_mut(from * width..(from + len) * width)?;
            let digests = digests.view_mut(from * digest..(from + len) * digest)?;
            self.launch_hashes(self.shared.hash_rows(true)?, &pieces, Some(states), digests, [len, 1], part)?;
        }
        Ok(())
    }

    /// How many rows of so many elements one launch indexes.
    fn rows_of_a_launch(&self, elements: usize) -> Result<usize> {
        let words = elements.saturating_mul(F::LIMBS);
        match WORDS / words {
            0 => {
                let (device, actual) = (self.shared.device.info().id, words as u64);
                let expected = WORDS as u64;
                Err(evariste_backend::Error::TooLarge { what: "row", device, expected, actual }.into())
            }
            most => Ok(most),
        }
    }

    /// Hashes some rows, or a part of each, by a launch for each piece.
    fn launch_hashes(
        &self,
        kernel: &Kernel<HashParams>,
        pieces: &[Piece<'_, F>],
        mut states: Option<ViewMut<'_, Mont<F>>>,
        mut out: ViewMut<'_, Mont<F>>,
        [len, stride]: [usize; 2],
        part: Part,
    ) -> Result<()> {
        let nothing = Piece { values: self.shared.constants.view(..0)?, pitch: 0, columns: 0 };
        let pieces = if pieces.is_empty() { &[nothing] } else { pieces };
        let rate = self.shared.parameters.rate;
        let [half, partial] = self.shared.rounds();
        let mut position = part.position;
        for (i, Piece { values, pitch, columns }) in pieces.iter().enumerate() {
            let first = if part.is_first && i == 0 { flags::FIRST } else { 0 };
            let last = if part.is_last && i + 1 == pieces.len() { flags::LAST } else { 0 };
            let params = HashParams {
                len: len as u32,
                half,
                partial,
                stride: stride as u32,
                columns: *columns as u32,
                pitch: *pitch as u32,
                position: position as u32,
                flags: first | last,
            };
            let mut args = vec![Arg::read(&self.shared.constants), Arg::read(values)];
            if let Some(states) = &mut states {
                args.push(Arg::write(states.reborrow()));
            }
            args.push(Arg::write(out.reborrow()));
            // SAFETY: there are `len` rows `pitch` apart with so many columns, states and places for digests, and the
            // constants of so many rounds.
            unsafe { kernel.launch(&self.queue, groups(len), &params, &mut args)? };
            position = (position + columns) % rate;
        }
        Ok(())
    }

    /// How many columns one launch absorbs at most: devices may limit the iterations of a loop.
    fn columns_of_a_launch(&self) -> Result<usize> {
        let kernel = self.shared.hash_rows(false)?;
        let [half, partial] = self.shared.rounds();
        let rate = self.shared.parameters.rate as u32;
        let params = |columns| HashParams { half, partial, columns, position: rate - 1, ..HashParams::default() };
        // Kernels in WGSL count them by signed integers, up to a block beyond the last.
        let mut columns = 1 << 30;
        while !kernel.fits(&params(columns)) && columns > 1 {
            columns /= 2;
        }
        kernel.expect_fits(&params(columns))?;
        Ok(columns as usize)
    }

    fn expect_here(&self, device: &Device) -> Result<()> {
        self.queue.expect_device(&self.shared.device)?;
        Ok(self.shared.device.expect_same("a kernel argument", device)?)
    }
}

impl<F: DevicePrimeField> Shared<F> {
    /// Full rounds at each end, and partial rounds.
    fn rounds(&self) -> [u32; 2] {
        [self.parameters.half(), self.parameters.partial.len()].map(|rounds| rounds as u32)
    }

    fn permute(&self) -> Result<&Kernel<PermuteParams>> {
        Ok(self.permute.get(&self.device, || spec::permute::<F>(self.shape))?)
    }

    /// Of two or four digests.
    fn compress(&self, count: usize) -> Result<&Kernel<CompressParams>> {
        let kernel = if count == 2 { &self.compress } else { &self.compress_four };
        Ok(kernel.get(&self.device, || spec::compress::<F>(self.shape, count))?)
    }

    fn compress_layers(&self) -> Result<&Kernel<LayersParams>> {
        Ok(self.compress_layers.get(&self.device, || spec::compress_layers::<F>(self.shape))?)
    }

    fn hash_rows(&self, is_carried: bool) -> Result<&Kernel<HashParams>> {
        let kernel = if is_carried { &self.carried } else { &self.hash_rows };
        Ok(kernel.get(&self.device, || spec::hash_rows::<F>(self.shape, is_carried))?)
    }

    fn grind(&self) -> Result<&Kernel<GrindParams>> {
        Ok(self.grind.get(&self.device, || spec::grind::<F>(self.shape))?)
    }
}

impl Shape {
    fn of<F: DevicePrimeField>(parameters: &Poseidon2Parameters<F>) -> Self {
        let Poseidon2Parameters { width, alpha, rate, digest, ref diagonal, .. } = *parameters;
        let two = F::from(2u8);
        let is_short = F::LIMBS == 1 && width <= MAX_HALVED;
        let small_start = is_short && diagonal.starts_with(&[-two, F::ONE, two]);
        let mut halvings = [0; MAX_HALVED];
        if is_short {
            halvings.iter_mut().zip(diagonal).for_each(|(k, factor)| *k = halvings_of(*factor));
        }
        Self { width, alpha, rate, digest, small_start, halvings }
    }
}

/// k for 2^−k and −k for −2^−k, if kernels divide by that: `halved` in `hash/poseidon2.cuh`. Otherwise 0.
fn halvings_of<F: DevicePrimeField>(factor: F) -> i8 {
    let p = u64::from(F::MODULUS.as_ref().first().map_or(0, |word| *word as u32));
    if 2 * p >= 1 << 32 {
        return 0;
    }
    let sign = |k: u32| {
        let power = factor * F::from(1u64 << k);
        if power == F::ONE {
            k as i8
        } else if -power == F::ONE {
            -(k as i8)
        } else {
            0
        }
    };
    (1..=(p - 1).trailing_zeros()).map(sign).find(|k| *k != 0).unwrap_or(0)
}

impl<F: DevicePrimeField> Clone for Poseidon2<F> {
    fn clone(&self) -> Self {
        self.on(&self.queue)
    }
}

impl<F: DevicePrimeField> fmt::Debug for Poseidon2<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Poseidon2Parameters { width, alpha, rate, digest, .. } = self.shared.parameters;
        f.debug_struct("Poseidon2")
            .field("device", &self.shared.device)
            .field("width", &width)
            .field("alpha", &alpha)
            .field("rate", &rate)
            .field("digest", &digest)
            .finish_non_exhaustive()
    }
}

/// Whether trees have a kernel for several layers: with two children a node, and elements of which every device has room for one
/// a thread in the memory of a workgroup.
fn has_layers<F: DevicePrimeField>(parameters: &Poseidon2Parameters<F>) -> bool {
    parameters.arity == Arity::Two && tile_bytes::<F>(LANE_THREADS) <= LEAST_BYTES
}

/// How many digests the kernels `compress` take.
fn compressed<F>(parameters: &Poseidon2Parameters<F>) -> &'static [usize] {
    match parameters.arity {
        Arity::Two => &[2],
        Arity::Four if parameters.is_truncated() => &[2, 4],
        Arity::Four => &[],
    }
}

fn groups(threads: usize) -> u64 {
    (threads as u64).div_ceil(THREADS.into())
}

/// How many digests `stride` apart have their end at most `elements` from the start.
fn digests_in(elements: usize, digest: usize, stride: usize) -> usize {
    if elements < digest { 0 } else { (elements - digest) / (stride * digest) + 1 }
}

/// From the start of the first of `count` digests `stride` apart to the end of the last.
pub(crate) fn elements_of(count: usize, digest: usize, stride: usize) -> usize {
    count.checked_sub(1).map_or(0, |last| (last * stride + 1) * digest)
}

#[cfg(test)]
mod tests {
    use evariste_field::small::{BabyBear, Goldilocks, KoalaBear, Mersenne31};

    use super::*;
    use crate::Poseidon2Field;

    fn halvings<F: Poseidon2Field>(width: usize) -> Vec<i8> {
        Shape::of(&Poseidon2Parameters::<F>::plonky3(width).unwrap()).halvings[..width.min(MAX_HALVED)].to_vec()
    }

    #[test]
    fn halvings_are_the_powers_of_two_that_divide_the_order() {
        assert_eq!(halvings::<BabyBear>(16), [0, 0, 0, 1, 0, 0, -1, 0, 0, 8, 2, 3, 27, -8, -4, -27]);
        assert_eq!(halvings::<KoalaBear>(16), [0, 0, 0, 1, 0, 0, -1, 0, 0, 8, 3, 24, -8, -3, -4, -24]);
        assert!(halvings::<BabyBear>(32).iter().chain(&halvings::<Goldilocks>(8)).all(|k| *k == 0));
        // p − 1 is twice an odd number.
        assert!(halvings::<Mersenne31>(16).iter().all(|k| k.abs() <= 1));
    }
}
