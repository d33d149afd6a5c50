use std::{fmt, marker::PhantomData, sync::Arc};

use ark_ff::{AdditiveGroup, Field};
use evariste_backend::{
    Buffer, Device, Element, Error as DeviceError, Queue, Secrecy, View, ViewMut,
    author::{Arg, Kernel, KernelSpec, LazyKernel, Ready},
};
use evariste_field::{DeviceField, Mont, Vector, two_adic_root};
use evariste_hash::Rows;

use super::{
    Constraints,
    program::{FIRST_CONSTANT, INDEX_BITS},
    spec,
};
use crate::{
    error::{Error, Result},
    field::FriField,
    fold::inverse_of,
    kernels::{self, ConstraintParams, DenominatorParams, WORDS, groups},
    points::{Points, reverse},
};

/// Quotients of constraints by the polynomial that vanishes on the rows of a trace: what a STARK commits to after its
/// trace.
///
/// The trace's rows are a subgroup of N elements, and its columns have the evaluations of polynomials on a larger
/// coset, in bit-reversed order. The quotients are Σ α^(m−1−k)·C_k(x) / (x^N − 1) over all m constraints, at 2^c·N
/// points of that coset: those that Plonky3's `p3-uni-stark` computes. They come in 2^c chunks, for cosets of the rows,
/// and each is a matrix that may be extended like a trace.
///
/// # Algorithm
///
/// One kernel serves all constraints. They are instructions in a buffer, and each thread carries them out for one row:
/// all threads are at the same one. So nothing is compiled for an AIR. An instruction takes a product, a sum or a
/// difference of columns, constants and earlier results, and a constraint takes a product by an element of the prime
/// field for each coefficient of α's powers. Neighbouring rows in bit-reversed order have neighbouring threads.
/// A GPU transposes wide chunks of the codeword first, if it has room, so that these read neighbours.
///
/// The last rows' successors are the first ones, and a chunk is N neighbouring rows of the codeword, with all of its
/// next rows.
pub struct ConstraintQuotients<F: FriField> {
    queue: Queue,
    vector: Vector<F::BasePrimeField>,
    shared: Arc<Shared<F>>,
    /// [`SPILLED_WORDS`], or fewer in tests.
    pub(crate) spilled_words: usize,
}

/// What plans on all queues share.
struct Shared<F: FriField> {
    device: Device,
    points: Points<F::BasePrimeField>,
    denominators: LazyKernel<DenominatorParams>,
    constraints: LazyKernel<ConstraintParams>,
    ready: Ready,
    field: PhantomData<fn() -> F>,
}

/// Constraints as instructions on a device ([`ConstraintQuotients::program`]).
pub struct ConstraintProgram<F: FriField> {
    code: Buffer<u32>,
    /// Instructions of each launch.
    launches: Vec<std::ops::Range<usize>>,
    /// Slots that are not in workgroup memory.
    spilled: usize,
    constants: Vec<F::BasePrimeField>,
    columns: usize,
    publics: usize,
    count: usize,
    selects: bool,
    ready: Ready,
}

impl<F: FriField> ConstraintProgram<F> {
    /// Counts the instructions of a row.
    pub fn instructions(&self) -> usize {
        self.launches.last().map_or(0, |last| last.end)
    }

    /// Counts the constraints.
    pub fn constraints(&self) -> usize {
        self.count
    }

    /// Slots that are not in workgroup memory.
    #[cfg(test)]
    pub(crate) fn spilled(&self) -> usize {
        self.spilled
    }
}

/// Words of the slots of a launch that are not in workgroup memory, at most, unless those of one row are more.
const SPILLED_WORDS: usize = 1 << 26;

/// Columns up to which rows are read as they lie: a thread finds them in what it read before.
const NARROW: usize = 8;

/// The distance of lists of selectors at least: they start at multiples of 256 bytes, as wgpu binds them.
const LEAST_PITCH: usize = 64;

impl<F: FriField> ConstraintQuotients<F> {
    /// Computes points for traces of up to 2^`log_len` rows on a queue (`&device` is its default one). Kernels are
    /// compiled at their first use, or by [`ConstraintQuotients::prepare`].
    ///
    /// # Errors
    /// - [`Error::Domain`] if the field has no subgroup of so many elements, or if `log_len` is above 31.
    /// - [`Error::Device`] if there is no memory, or if the device fails.
    pub fn new(queue: impl Into<Queue>, log_len: u32) -> Result<Self> {
        let queue = queue.into();
        let shared = Shared {
            device: queue.device().clone(),
            points: Points::new(&queue, log_len, false)?,
            denominators: LazyKernel::default(),
            constraints: LazyKernel::default(),
            ready: Ready::behind(&queue)?,
            field: PhantomData,
        };
        let (vector, shared) = (Vector::new(&queue), Arc::new(shared));
        Ok(Self { queue, vector, shared, spilled_words: SPILLED_WORDS })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        let (queue, vector, shared) = (queue.clone(), self.vector.on(queue), Arc::clone(&self.shared));
        Self { queue, vector, shared, spilled_words: self.spilled_words }
    }

    /// Compiles all kernels side by side, so that no later call does.
    ///
    /// # Errors
    /// [`Error::Device`] if a kernel does not compile, or if the device fails.
    pub fn prepare(&self) -> Result<()> {
        let prepared = self.shared.device.prepare(&Self::kernels())?;
        self.denominators_kernel()?;
        self.constraints_kernel()?;
        // Inverts and transposes an element, and keeps the kernels.
        let one = self.shared.device.zeros::<Mont<F::BasePrimeField>>(1)?;
        let mut out = self.shared.device.zeros::<Mont<F::BasePrimeField>>(1)?;
        self.vector.inverse(&one, &mut out)?;
        self.vector.transpose(&one, 1, &mut out)?;
        drop(prepared);
        Ok(())
    }

    /// Returns the kernels, for tools that compile them ahead.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        let names = ["batch_inverse", "transpose_tiles"];
        let others = Vector::<F::BasePrimeField>::kernels().into_iter().filter(|spec| names.contains(&spec.name));
        others.chain([kernels::denominators::<F::BasePrimeField>(), spec::spec::<F>()]).collect()
    }

    /// Makes instructions of constraints and copies them to the device. A program serves any number of quotients, for
    /// traces of any height.
    ///
    /// # Errors
    /// - [`Error::NoInput`] without constraints.
    /// - [`Error::Device`] with `TooLarge` inside if there are 2^29 columns or more, or as many values in a row, or as
    ///   many constants and public values. Also if one constraint takes more instructions than the device allows a
    ///   thread.
    /// - [`Error::Device`] if there is no memory, or if the device fails.
    pub fn program(&self, constraints: &Constraints<F::BasePrimeField>) -> Result<ConstraintProgram<F>> {
        let device = &self.shared.device;
        if constraints.is_empty() {
            return Err(Error::NoInput);
        }
        let inputs = (FIRST_CONSTANT + constraints.constants.len()).saturating_add(constraints.publics());
        for (what, count) in [
            ("column of constraints", constraints.columns()),
            ("value of constraints", constraints.nodes.len()),
            ("constant or public value of constraints", inputs),
        ] {
            // An operand has its index in so many bits.
            let (expected, actual) = (1u64 << INDEX_BITS, count as u64);
            if actual >= expected {
                return Err(DeviceError::TooLarge { what, device: device.info().id, expected, actual }.into());
            }
        }
        let kernel = spec::spec::<F>();
        let params = |instructions: usize| ConstraintParams {
            instructions: u32::try_from(instructions).unwrap_or(u32::MAX),
            ..ConstraintParams::default()
        };
        let mut most = 1usize << 24;
        while most > 1 && kernel.expect_fits(device, &params(most)).is_err() {
            most /= 2;
        }
        let slots = spec::constraint_slots::<F>() as usize;
        let program = constraints.program(slots, most);
        let mut launches: Vec<std::ops::Range<usize>> = Vec::new();
        for part in program.parts {
            kernel.expect_fits(device, &params(part.len()))?;
            match launches.last_mut() {
                Some(launch) if part.end - launch.start <= most => launch.end = part.end,
                _ => launches.push(part),
            }
        }
        let uses = |node: &super::Node| matches!(node, super::Node::Selector(_));
        Ok(ConstraintProgram {
            code: self.queue.upload_with(&program.instructions.concat(), Secrecy::Public)?,
            launches,
            spilled: program.slots.saturating_sub(slots),
            constants: constraints.constants.clone(),
            columns: constraints.columns(),
            publics: constraints.publics(),
            count: constraints.len(),
            selects: constraints.nodes.iter().any(uses),
            ready: Ready::behind(&self.queue)?,
        })
    }

    /// Returns the bytes of device memory that [`ConstraintQuotients::quotients`] takes for a trace of `rows` rows and
    /// `columns` columns, and `chunks` chunks, with its results. Programs with many values at a time may take 256 MiB
    /// more.
    pub fn required_bytes([rows, columns]: [usize; 2], chunks: usize) -> u64 {
        let [rows, columns, chunks] = [rows, columns, chunks].map(|count| count as u64);
        let each = Mont::<F::BasePrimeField>::BYTES as u64;
        // Selectors and what they are inverses of, and a chunk of the codeword.
        let of_row = each.saturating_mul(columns.saturating_add(4));
        let results = chunks.saturating_mul(Mont::<F>::BYTES as u64);
        rows.saturating_mul(of_row.saturating_add(results))
    }

    /// Computes the quotients of a trace of `rows` rows, in 2^`log_chunks` chunks. `codeword` has the evaluations of
    /// its columns on the coset of `shift`, in bit-reversed order: `rows`·2^`log_chunks` rows, which are the first ones
    /// of any longer codeword. Chunk j has the quotients on the coset of `shift`·w^j with `rows` elements, in natural
    /// order, where w generates the subgroup of all points. They are secret if the codeword is. Returns when the work is
    /// queued.
    ///
    /// # Errors
    /// - [`Error::Height`] if `rows` is no power of two, and [`Error::TooLong`] if the plan is for less.
    /// - [`Error::Domain`] if the field has no subgroup of so many points.
    /// - [`Error::Proof`] if the codeword has another number of rows, or fewer columns than the constraints name, or if
    ///   there are fewer public values.
    /// - [`Error::Parameter`] if `shift` is 0, or if a point is one of the rows'.
    /// - [`Error::Device`] if a view is of another device, if there is no room for
    ///   [`required_bytes`](ConstraintQuotients::required_bytes), if a chunk's rows have more than 2^32 words, or if the
    ///   device fails.
    pub fn quotients(
        &self,
        program: &ConstraintProgram<F>,
        codeword: &Rows<'_, F::BasePrimeField>,
        [rows, log_chunks]: [usize; 2],
        public: &[F::BasePrimeField],
        alpha: F,
        shift: F::BasePrimeField,
    ) -> Result<Vec<Buffer<Mont<F>>>> {
        let device = &self.shared.device;
        self.queue.expect_device(device)?;
        device.expect_same("constraints", program.code.device())?;
        device.expect_same("a codeword", codeword.values().device())?;
        let log_rows = self.shared.points.expect("a trace", rows)?;
        let log_points = log_rows.saturating_add(u32::try_from(log_chunks).unwrap_or(u32::MAX));
        let expected = <F::BasePrimeField as ark_ff::FftField>::TWO_ADICITY.min(31);
        if log_points > expected {
            return Err(Error::Domain { expected, actual: log_points });
        }
        let (values, columns) = (codeword.values(), codeword.columns());
        let length = |what, expected: usize, actual: usize| match expected == actual {
            true => Ok(()),
            false => Err(Error::Proof { what, expected, actual }),
        };
        length("the columns of a codeword", program.columns.max(columns), columns)?;
        length("a codeword", columns.saturating_mul(rows).saturating_mul(1 << log_chunks), values.len())?;
        length("the public values", program.publics.max(public.len()), public.len())?;
        let words = (rows as u64).saturating_mul(columns as u64).saturating_mul(F::BasePrimeField::LIMBS as u64);
        if words > 2 * WORDS as u64 {
            let (what, expected) = ("chunk of a codeword", 2 * WORDS as u64);
            return Err(DeviceError::TooLarge { what, device: device.info().id, expected, actual: words }.into());
        }
        inverse_of(shift)?;
        let secrecy = values.secrecy();
        let root = two_adic_root::<F::BasePrimeField>().unwrap_or(F::BasePrimeField::ONE);
        let of_order = |log: u32| root.pow([1 << (<F::BasePrimeField as ark_ff::FftField>::TWO_ADICITY - log)]);
        let last = inverse_of(of_order(log_rows))?;
        let powers = std::iter::successors(Some(F::ONE), |power| Some(*power * alpha)).take(program.count);
        let mut weights: Vec<F> = powers.collect();
        weights.reverse();
        let weights = self.queue.upload_with::<Mont<F>>(&weights, secrecy)?;
        self.shared.ready.wait(&self.queue)?;
        program.ready.wait(&self.queue)?;
        // Slots of a processor are its threads' own.
        let spills = program.spilled > 0 && !device.info().is_processor();
        let piece = match program.spilled * F::BasePrimeField::LIMBS {
            words if spills => (self.spilled_words / words).clamp(1, rows),
            _ => rows,
        };
        // Neighbouring threads then read neighbours. The CPU goes through rows.
        let is_transposed = columns > NARROW && !device.info().is_processor() && words <= WORDS as u64;
        let spilled = if spills { piece * program.spilled } else { 1 };
        let mut spilled = device.alloc_with::<Mont<F::BasePrimeField>>(spilled, secrecy)?;
        let mut chunks = (0..1usize << log_chunks).map(|_| None).collect::<Vec<_>>();
        for block in 0..1usize << log_chunks {
            let chunk = reverse(block, log_chunks as u32);
            let shift = shift * of_order(log_points).pow([chunk as u64]);
            let vanishing = shift.pow([rows as u64]) - F::BasePrimeField::ONE;
            let Some(inverse) = vanishing.inverse() else {
                let (what, expected) = ("the order of the shift", "none of the points'");
                return Err(Error::Parameter { what, expected, actual: rows as u64 });
            };
            let unshift = inverse_of(shift)?;
            let mut inputs = vec![F::BasePrimeField::ZERO, -vanishing * unshift, -shift, inverse];
            debug_assert_eq!(inputs.len(), FIRST_CONSTANT);
            inputs.extend_from_slice(&program.constants);
            inputs.extend_from_slice(public);
            let inputs = self.queue.upload_with::<Mont<F::BasePrimeField>>(&inputs, secrecy)?;
            let selectors = self.selectors(program, rows, [unshift, last * unshift], secrecy)?;
            let mut out = device.alloc_with::<Mont<F>>(rows, secrecy)?;
            let matrix = values.view(block * rows * columns..(block + 1) * rows * columns)?;
            let transposed = if is_transposed { self.transposed(matrix, rows)? } else { None };
            let (matrix, [row_pitch, column_pitch]) = match &transposed {
                Some(transposed) => (transposed.as_view(), [1, rows as u32]),
                None => (matrix, [columns as u32, 1]),
            };
            let params = ConstraintParams {
                log_rows,
                row_pitch,
                column_pitch,
                selector_pitch: rows.max(LEAST_PITCH) as u32,
                ..ConstraintParams::default()
            };
            for first in (0..rows).step_by(piece) {
                let params = ConstraintParams { first: first as u32, len: piece.min(rows - first) as u32, ..params };
                let scratch = spilled.as_view_mut();
                self.launch(
                    program,
                    params,
                    [inputs.as_view(), selectors.as_view(), matrix],
                    &weights,
                    scratch,
                    &mut out,
                )?;
            }
            chunks[chunk] = Some(out);
        }
        Ok(chunks.into_iter().flatten().collect())
    }

    /// A matrix with its columns one after the other, if there is room.
    fn transposed(
        &self,
        matrix: View<'_, Mont<F::BasePrimeField>>,
        rows: usize,
    ) -> Result<Option<Buffer<Mont<F::BasePrimeField>>>> {
        match self.shared.device.alloc_with::<Mont<F::BasePrimeField>>(matrix.len(), matrix.secrecy()) {
            Ok(mut transposed) => {
                self.vector.transpose(matrix, rows, &mut transposed)?;
                Ok(Some(transposed))
            }
            Err(DeviceError::OutOfMemory { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The launches for some rows of a chunk.
    fn launch(
        &self,
        program: &ConstraintProgram<F>,
        params: ConstraintParams,
        [inputs, selectors, matrix]: [View<'_, Mont<F::BasePrimeField>>; 3],
        weights: &Buffer<Mont<F>>,
        mut spilled: ViewMut<'_, Mont<F::BasePrimeField>>,
        out: &mut Buffer<Mont<F>>,
    ) -> Result<()> {
        let kernel = self.constraints_kernel()?;
        for (number, launch) in program.launches.iter().enumerate() {
            let params = ConstraintParams {
                instructions: launch.len() as u32,
                add: u32::from(number > 0),
                last: u32::from(number + 1 == program.launches.len()),
                spilled: program.spilled as u32,
                ..params
            };
            let args = &mut [
                Arg::read(program.code.view(4 * launch.start..4 * launch.end)?),
                Arg::read(inputs),
                Arg::read(weights),
                Arg::read(selectors),
                Arg::read(matrix),
                Arg::write(spilled.view_mut(..)?),
                Arg::write(out.as_view_mut()),
            ];
            // SAFETY: instructions name slots, columns, inputs and weights that there are, and selectors only if they are
            // there. The matrix has 2^`log_rows` rows, `out` as many elements, and `spilled` room for `len` rows.
            unsafe { kernel.launch(&self.queue, groups(params.len as usize), &params, args)? };
        }
        Ok(())
    }

    /// 1 / (a − x) and 1 / (b − x) for all points x of the rows' subgroup in bit-reversed order, and b − x. One element
    /// if no constraint has a selector.
    fn selectors(
        &self,
        program: &ConstraintProgram<F>,
        rows: usize,
        [first, last]: [F::BasePrimeField; 2],
        secrecy: Secrecy,
    ) -> Result<Buffer<Mont<F::BasePrimeField>>> {
        let device = &self.shared.device;
        if !program.selects {
            return Ok(device.alloc_with::<Mont<F::BasePrimeField>>(1, secrecy)?);
        }
        let pitch = rows.max(LEAST_PITCH);
        let mut selectors = device.alloc_with::<Mont<F::BasePrimeField>>(3 * pitch, secrecy)?;
        let mut differences = device.alloc_with::<Mont<F::BasePrimeField>>(rows, secrecy)?;
        for (list, z) in [first, last].into_iter().enumerate() {
            self.differences(z, differences.as_view_mut())?;
            self.vector.inverse(&differences, selectors.view_mut(list * pitch..list * pitch + rows)?)?;
        }
        self.differences(last, selectors.view_mut(2 * pitch..2 * pitch + rows)?)?;
        Ok(selectors)
    }

    /// `out[i]` = z − x_i, of the subgroup in bit-reversed order.
    fn differences(&self, z: F::BasePrimeField, mut out: ViewMut<'_, Mont<F::BasePrimeField>>) -> Result<()> {
        let z = self.queue.upload_with::<Mont<F::BasePrimeField>>(&[z], out.secrecy())?;
        let params = DenominatorParams { len: out.len() as u32, first: 0, low_bits: self.shared.points.low_bits };
        let args = &mut [Arg::read(&self.shared.points.table), Arg::read(&z), Arg::write(out.view_mut(..)?)];
        // SAFETY: there are `len` places, and points for all of them.
        unsafe { self.denominators_kernel()?.launch(&self.queue, groups(params.len as usize), &params, args)? };
        Ok(())
    }

    fn denominators_kernel(&self) -> Result<&Kernel<DenominatorParams>> {
        Ok(self.shared.denominators.get(&self.shared.device, kernels::denominators::<F::BasePrimeField>)?)
    }

    fn constraints_kernel(&self) -> Result<&Kernel<ConstraintParams>> {
        Ok(self.shared.constraints.get(&self.shared.device, spec::spec::<F>)?)
    }
}

impl<F: FriField> fmt::Debug for ConstraintQuotients<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConstraintQuotients")
            .field("device", &self.shared.device)
            .field("log_len", &self.shared.points.log_len)
            .finish_non_exhaustive()
    }
}

impl<F: FriField> fmt::Debug for ConstraintProgram<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConstraintProgram")
            .field("constraints", &self.count)
            .field("instructions", &self.instructions())
            .field("launches", &self.launches.len())
            .field("spilled", &self.spilled)
            .finish_non_exhaustive()
    }
}
