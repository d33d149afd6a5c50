use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use evariste_backend::{
    Buffer, Device, Element, Queue, Secrecy, ViewMut,
    author::{Arg, Kernel, KernelSpec, LazyKernel, Ready, Wiped},
};
use evariste_field::{DeviceField, Mont, Vector};
use evariste_hash::Rows;

use crate::{
    error::{Error, Result},
    field::FriField,
    fold::inverse_of,
    kernels::{self, CombineParams, DenominatorParams, EvaluateParams, QuotientParams, WORDS, groups},
    points::Points,
};

/// Batched quotients of polynomials by their values at points outside of the domain (DEEP).
///
/// A matrix has the evaluations of a polynomial p_i in each column, on the coset of a `shift` in bit-reversed order.
/// For each height, the quotients Σ α^k·(p_i(z) − p_i(x)) / (z − x) over all matrices of that height, their points z
/// and their columns i are added up. k counts these triples, in the order in which they are given. The results are
/// what FRI is to fold: Plonky3's `TwoAdicFriPcs` has the same ones.
///
/// # Algorithm
///
/// One launch combines the columns of a matrix, Σ α^i·p_i(x), and reads it once; that takes a product by an element of
/// the prime field for each of its elements. For each point, the differences z − x are inverted together (4 products
/// an element), and another launch adds the quotients (2 products).
///
/// Values at points outside are Lagrange's in barycentric form, p(z) = (z^n − 1) / n · Σ x·p(x) / (z − x) on a subgroup
/// of n elements. A thread sums up every so many rows of a column, so that neighbours read neighbours.
///
/// Source: Ben-Sasson, Goldberg, Kopparty and Saraf, "DEEP-FRI: sampling outside the box improves soundness", ITCS
/// 2020.
pub struct Quotients<F: FriField> {
    queue: Queue,
    vector: Vector<F>,
    shared: Arc<Shared<F>>,
}

/// What plans on all queues share.
struct Shared<F: FriField> {
    device: Device,
    points: Points<F::BasePrimeField>,
    combine: LazyKernel<CombineParams>,
    denominators: LazyKernel<DenominatorParams>,
    evaluate: LazyKernel<EvaluateParams>,
    quotients: LazyKernel<QuotientParams>,
    ready: Ready,
}

/// A matrix with the points at which it is opened.
#[derive(Debug)]
pub struct Opened<'a, F: FriField> {
    /// The evaluations, row by row, in bit-reversed order.
    pub matrix: Rows<'a, F::BasePrimeField>,
    /// The points outside of the domain, and the value of each column's polynomial there.
    pub points: &'a [(F, Vec<F>)],
}

impl<F: FriField> Quotients<F> {
    /// Computes points for matrices of up to 2^`log_len` rows on a queue (`&device` is its default one). Kernels are
    /// compiled at their first use, or by [`Quotients::prepare`].
    ///
    /// # Errors
    /// - [`Error::Domain`] if the field has no subgroup of so many elements, or if `log_len` is above 31.
    /// - [`Error::Device`] if there is no memory, or if the device fails.
    pub fn new(queue: impl Into<Queue>, log_len: u32) -> Result<Self> {
        let queue = queue.into();
        let shared = Shared {
            device: queue.device().clone(),
            points: Points::new(&queue, log_len, false)?,
            combine: LazyKernel::default(),
            denominators: LazyKernel::default(),
            evaluate: LazyKernel::default(),
            quotients: LazyKernel::default(),
            ready: Ready::behind(&queue)?,
        };
        Ok(Self { vector: Vector::new(&queue), queue, shared: Arc::new(shared) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), vector: self.vector.on(queue), shared: Arc::clone(&self.shared) }
    }

    /// Returns the bytes of device memory that [`Quotients::quotients`] takes for matrices of these heights, with its
    /// results. [`Quotients::evaluate`] takes two elements for each row and a few MiB for each point.
    pub fn required_bytes(heights: &[usize]) -> u64 {
        let bytes = Mont::<F>::BYTES as u64;
        let results: BTreeSet<usize> = heights.iter().copied().collect();
        let results = results.into_iter().map(|height| height as u64).fold(0, u64::saturating_add);
        let most = heights.iter().copied().max().unwrap_or(0) as u64;
        // A matrix combined, and differences with their inverses.
        results.saturating_add(most.saturating_mul(3)).saturating_mul(bytes)
    }

    /// Compiles all kernels side by side, so that no later call does.
    ///
    /// # Errors
    /// [`Error::Device`] if a kernel does not compile, or if the device fails.
    pub fn prepare(&self) -> Result<()> {
        let prepared = self.shared.device.prepare(&Self::kernels())?;
        self.combine_kernel()?;
        self.denominators_kernel()?;
        self.evaluate_kernel()?;
        self.quotients_kernel()?;
        // Inverts nothing, and keeps the kernel.
        let mut nothing = self.shared.device.alloc::<Mont<F>>(0)?;
        let none = self.shared.device.alloc::<Mont<F>>(0)?;
        self.vector.inverse(&none, &mut nothing)?;
        drop(prepared);
        Ok(())
    }

    /// Returns the kernels, for tools that compile them ahead.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        let inverses = Vector::<F>::kernels().into_iter().filter(|spec| spec.name == "batch_inverse");
        let own = [kernels::combine::<F>, kernels::denominators::<F>, kernels::evaluate::<F>, kernels::quotients::<F>];
        inverses.chain(own.map(|spec| spec())).collect()
    }

    /// Adds up the quotients of matrices by powers of `alpha`, for each height, and returns the sums from the tallest
    /// on. `shift` is that of the coset. The sums are secret if a matrix is. Returns when the work is
    /// queued.
    ///
    /// # Errors
    /// - [`Error::NoInput`] without a matrix.
    /// - [`Error::Height`] if a height is no power of two, and [`Error::TooLong`] if the plan is for less rows.
    /// - [`Error::Proof`] if a point has another number of values than its matrix has columns.
    /// - [`Error::PointInDomain`] if a point is one of the domain.
    /// - [`Error::Parameter`] if `shift` is 0.
    /// - [`Error::Hash`] if a matrix has no columns, or no whole rows.
    /// - [`Error::Device`] if a view is of another device, if there is no room for
    ///   [`required_bytes`](Quotients::required_bytes), or if the device fails.
    pub fn quotients(
        &self,
        matrices: &[Opened<'_, F>],
        alpha: F,
        shift: F::BasePrimeField,
    ) -> Result<Vec<Buffer<Mont<F>>>> {
        let device = &self.shared.device;
        self.queue.expect_device(device)?;
        let unshift = inverse_of(shift)?;
        if matrices.is_empty() {
            return Err(Error::NoInput);
        }
        let mut heights = BTreeSet::new();
        for (index, opened) in matrices.iter().enumerate() {
            heights.insert(self.expect(index, opened, unshift)?);
        }
        let secrecy = Secrecy::of(matrices.iter().map(|opened| opened.matrix.values().secrecy()));
        // The sums of each height, with the number of terms.
        let mut sums = BTreeMap::new();
        for height in heights {
            sums.insert(height, (device.alloc_with::<Mont<F>>(height, secrecy)?, 0u64));
        }
        self.shared.ready.wait(&self.queue)?;
        for opened in matrices {
            let columns = opened.matrix.columns();
            let height = opened.matrix.values().len() / columns;
            let Some((sum, terms)) = sums.get_mut(&height) else { continue };
            if opened.points.is_empty() {
                continue;
            }
            let mut combined = device.alloc_with::<Mont<F>>(height, secrecy)?;
            self.combine(&opened.matrix, alpha, combined.as_view_mut())?;
            let mut differences = device.alloc_with::<Mont<F>>(height, secrecy)?;
            let mut inverses = device.alloc_with::<Mont<F>>(height, secrecy)?;
            for (z, values) in opened.points {
                self.differences(z.mul_by_base_prime_field(&unshift), differences.as_view_mut())?;
                self.vector.inverse(&differences, &mut inverses)?;
                let weight = alpha.pow([*terms]).mul_by_base_prime_field(&unshift);
                let at_z = values.iter().rev().fold(F::ZERO, |sum, value| sum * alpha + value);
                let scalars = self.queue.upload_with::<Mont<F>>(&[weight * at_z, weight], secrecy)?;
                let kernel = self.quotients_kernel()?;
                let most = WORDS / F::LIMBS;
                for first in (0..height).step_by(most) {
                    let part = first..height.min(first + most);
                    let params = QuotientParams { len: part.len() as u32, add: u32::from(*terms > 0) };
                    let args = &mut [
                        Arg::read(&scalars),
                        Arg::read(combined.view(part.clone())?),
                        Arg::read(inverses.view(part.clone())?),
                        Arg::write(sum.view_mut(part.clone())?),
                    ];
                    // SAFETY: all have `len` elements, and there are two scalars.
                    unsafe { kernel.launch(&self.queue, groups(part.len()), &params, args)? };
                }
                *terms += columns as u64;
            }
        }
        // Matrices without points have no quotients.
        for (sum, terms) in sums.values_mut() {
            if *terms == 0 {
                self.queue.clear(sum)?;
            }
        }
        Ok(sums.into_values().rev().map(|(sum, _)| sum).collect())
    }

    /// Evaluates polynomials at points outside of their domain. The columns of `matrix` have their evaluations, on the
    /// coset of `shift` in bit-reversed order. Their degrees are below the number of rows: of a longer codeword, the
    /// first rows do. Returns the values of all columns for each point. Waits for them.
    ///
    /// # Errors
    /// - [`Error::Height`] if the height is no power of two, and [`Error::TooLong`] if the plan is for less rows.
    /// - [`Error::PointInDomain`] if a point is one of the domain.
    /// - [`Error::Parameter`] if `shift` is 0.
    /// - [`Error::Hash`] if the matrix has no columns, or no whole rows.
    /// - [`Error::Device`] if the view is of another device, if there is no room, or if the device fails.
    pub fn evaluate(
        &self,
        matrix: &Rows<'_, F::BasePrimeField>,
        points: &[F],
        shift: F::BasePrimeField,
    ) -> Result<Vec<Vec<F>>> {
        let (device, columns) = (&self.shared.device, matrix.columns());
        self.queue.expect_device(device)?;
        let unshift = inverse_of(shift)?;
        let height = self.expect_matrix(0, matrix)?;
        for (point, z) in points.iter().enumerate() {
            expect_outside([0, point], z.mul_by_base_prime_field(&unshift), height)?;
        }
        if points.is_empty() {
            return Ok(Vec::new());
        }
        self.shared.ready.wait(&self.queue)?;
        let secrecy = matrix.values().secrecy();
        let kernel = self.evaluate_kernel()?;
        let mut differences = device.alloc_with::<Mont<F>>(height, secrecy)?;
        let mut inverses = device.alloc_with::<Mont<F>>(height, secrecy)?;
        // Rows of a launch, and their parts of sums.
        let most = (WORDS / (columns * F::BasePrimeField::LIMBS)).min(WORDS / F::LIMBS).min(height);
        let params = |rows: usize, stripes: usize| EvaluateParams {
            len: (stripes * columns) as u32,
            columns: columns as u32,
            rows: rows as u32,
            stripes: stripes as u32,
        };
        let mut stripes = (SUMS / columns).clamp(1, (most / SUMMED).max(1));
        while stripes < most && !kernel.fits(&params(most, stripes)) {
            stripes = most.min(2 * stripes);
        }
        kernel.expect_fits(&params(most, stripes))?;
        let mut parts = Vec::new();
        for z in points {
            let z = z.mul_by_base_prime_field(&unshift);
            self.differences(z, differences.as_view_mut())?;
            self.vector.inverse(&differences, &mut inverses)?;
            let z = self.queue.upload_with::<Mont<F>>(&[z], secrecy)?;
            for first in (0..height).step_by(most) {
                let rows = most.min(height - first);
                let params = params(rows, stripes.min(rows));
                let mut out = device.alloc_with::<Mont<F>>(params.len as usize, secrecy)?;
                let args = &mut [
                    Arg::read(&z),
                    Arg::read(inverses.view(first..first + rows)?),
                    Arg::read(matrix.values().view(first * columns..(first + rows) * columns)?),
                    Arg::write(&mut out),
                ];
                // SAFETY: there are `rows` rows of `columns` elements, as many inverses, at most as many stripes, and a
                // place for each sum.
                unsafe { kernel.launch(&self.queue, groups(params.len as usize), &params, args)? };
                parts.push(out);
            }
        }
        let mut reads = parts.iter().map(|part| self.queue.download(part)).collect::<Result<Vec<_>, _>>()?.into_iter();
        // p(x) = (x^n − 1) / n · Σ y·p(y) / (x − y) over the n elements y of a subgroup.
        let scale = inverse_of(F::BasePrimeField::from(height as u64))?;
        let mut found = Vec::with_capacity(points.len());
        for z in points {
            let mut values = vec![F::ZERO; columns];
            for part in reads.by_ref().take(height.div_ceil(most)) {
                for sums in Wiped::from(part.wait()?).chunks_exact(columns) {
                    values.iter_mut().zip(sums).for_each(|(value, sum)| *value += sum);
                }
            }
            let vanishing = z.mul_by_base_prime_field(&unshift).pow([height as u64]) - F::ONE;
            let factor = vanishing.mul_by_base_prime_field(&scale);
            values.iter_mut().for_each(|value| *value *= factor);
            found.push(values);
        }
        Ok(found)
    }

    /// Checks a matrix and its points. Returns its height.
    fn expect(&self, index: usize, opened: &Opened<'_, F>, unshift: F::BasePrimeField) -> Result<usize> {
        let height = self.expect_matrix(index, &opened.matrix)?;
        for (point, (z, values)) in opened.points.iter().enumerate() {
            let columns = opened.matrix.columns();
            if values.len() != columns {
                let what = "the values at a point";
                return Err(Error::Proof { what, expected: columns, actual: values.len() });
            }
            expect_outside([index, point], z.mul_by_base_prime_field(&unshift), height)?;
        }
        Ok(height)
    }

    /// Checks matrix number `index`. Returns its height.
    fn expect_matrix(&self, index: usize, matrix: &Rows<'_, F::BasePrimeField>) -> Result<usize> {
        let (values, columns) = (matrix.values(), matrix.columns());
        if columns == 0 || !values.len().is_multiple_of(columns) {
            let elements = values.len();
            return Err(evariste_hash::Error::Columns { matrix: index, columns, elements }.into());
        }
        let height = values.len() / columns;
        self.shared.points.expect("a column of a matrix", height)?;
        self.shared.device.expect_same("a matrix", values.device())?;
        if columns.saturating_mul(F::BasePrimeField::LIMBS) > WORDS {
            let device = self.shared.device.info().id;
            let (what, expected, actual) = ("row", WORDS as u64, columns as u64);
            return Err(evariste_backend::Error::TooLarge { what, device, expected, actual }.into());
        }
        Ok(height)
    }

    /// `out[row]` = Σ α^i·matrix[row][i].
    fn combine(&self, matrix: &Rows<'_, F::BasePrimeField>, alpha: F, mut out: ViewMut<'_, Mont<F>>) -> Result<()> {
        let (columns, height) = (matrix.columns(), out.len());
        let powers = std::iter::successors(Some(F::ONE), |power| Some(*power * alpha)).take(columns);
        let weights: Vec<F> = powers.collect();
        let weights = self.queue.upload_with::<Mont<F>>(&weights, out.secrecy())?;
        let kernel = self.combine_kernel()?;
        let params = |columns: usize| CombineParams { columns: columns as u32, ..CombineParams::default() };
        let mut each = columns;
        while each > 1 && !kernel.fits(&params(each)) {
            each = each.div_ceil(2);
        }
        kernel.expect_fits(&params(each))?;
        let most = WORDS / (columns * F::BasePrimeField::LIMBS).max(F::LIMBS);
        for first in (0..height).step_by(most) {
            let len = most.min(height - first);
            for column in (0..columns).step_by(each) {
                let count = each.min(columns - column);
                let params = CombineParams {
                    len: len as u32,
                    columns: count as u32,
                    pitch: columns as u32,
                    add: u32::from(column > 0),
                };
                let args = &mut [
                    Arg::read(weights.view(column..column + count)?),
                    Arg::read(matrix.values().view(first * columns + column..(first + len) * columns)?),
                    Arg::write(out.view_mut(first..first + len)?),
                ];
                // SAFETY: there are `len` rows `pitch` apart with so many columns, a weight for each, and `len` places.
                unsafe { kernel.launch(&self.queue, groups(len), &params, args)? };
            }
        }
        Ok(())
    }

    /// `out[i]` = z − x_i, of the subgroup in bit-reversed order.
    fn differences(&self, z: F, mut out: ViewMut<'_, Mont<F>>) -> Result<()> {
        let z = self.queue.upload_with::<Mont<F>>(&[z], out.secrecy())?;
        let kernel = self.denominators_kernel()?;
        let (most, len) = (WORDS / F::LIMBS, out.len());
        for first in (0..len).step_by(most) {
            let part = first..len.min(first + most);
            let params = DenominatorParams {
                len: part.len() as u32,
                first: first as u32,
                low_bits: self.shared.points.low_bits,
            };
            let args =
                &mut [Arg::read(&self.shared.points.table), Arg::read(&z), Arg::write(out.view_mut(part.clone())?)];
            // SAFETY: there are `len` places, and points for all of them.
            unsafe { kernel.launch(&self.queue, groups(part.len()), &params, args)? };
        }
        Ok(())
    }

    fn combine_kernel(&self) -> Result<&Kernel<CombineParams>> {
        Ok(self.shared.combine.get(&self.shared.device, kernels::combine::<F>)?)
    }

    fn denominators_kernel(&self) -> Result<&Kernel<DenominatorParams>> {
        Ok(self.shared.denominators.get(&self.shared.device, kernels::denominators::<F>)?)
    }

    fn evaluate_kernel(&self) -> Result<&Kernel<EvaluateParams>> {
        Ok(self.shared.evaluate.get(&self.shared.device, kernels::evaluate::<F>)?)
    }

    fn quotients_kernel(&self) -> Result<&Kernel<QuotientParams>> {
        Ok(self.shared.quotients.get(&self.shared.device, kernels::quotients::<F>)?)
    }
}

/// Sums that a launch of `fri_evaluate` makes, at most, unless a row is longer: as many threads keep a large device busy.
/// The host adds them up.
const SUMS: usize = 1 << 17;

/// Elements of each sum, at least.
const SUMMED: usize = 16;

/// Refuses a point of the subgroup of `height` elements: number `point` of matrix number `matrix`.
fn expect_outside<F: FriField>([matrix, point]: [usize; 2], z: F, height: usize) -> Result<()> {
    match z.pow([height as u64]) == F::ONE {
        true => Err(Error::PointInDomain { matrix, point }),
        false => Ok(()),
    }
}

impl<F: FriField> fmt::Debug for Quotients<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quotients")
            .field("device", &self.shared.device)
            .field("log_len", &self.shared.points.log_len)
            .finish_non_exhaustive()
    }
}
