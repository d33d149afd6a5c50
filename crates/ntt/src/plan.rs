use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use ark_ff::FftField;
use evariste_backend::{Buffer, Device, DeviceInfo, Kernel, KernelSpec, Lazy, Queue, Ready, ViewMut};
use evariste_field::{DeviceField, Mont, Vector, source};

use crate::{
    Config, Error, Order, Result, Transform, Twiddles,
    layout::{Batch, Direction, Domain, Layout, Place},
    pass::{self, Params, Shape},
    tables::{Coset, Factors, factors, inverse_of_n, inverted, roots, roots_len},
};

/// Cosets whose powers a plan keeps: of two low-degree extensions by 16, and some more.
const MAX_COSETS: usize = 36;

/// A plan for transforms of 2^`log_n` elements of `F` on one device.
///
/// The forward transform evaluates: X_k = Σ x_i w^(ik), with w arkworks' root of unity of order n, so that results agree
/// with `ark_poly`; where the field's configuration has one that is not primitive, w is another
/// ([`two_adic_root`](evariste_field::two_adic_root)). The inverse interpolates, n⁻¹ included. On a coset g·H the forward transform gives the values at
/// g·w^k.
///
/// A transform is split into up to four passes (five beyond 2^28 elements where workgroups have the least memory), each of which
/// does transforms of up to 2^10 points in the memory of a workgroup (Bailey's four-step method, applied again to what is left);
/// reordering happens as the passes load and store. It costs (n/2) log₂ n multiplications less the trivial ones in the passes, n
/// for the twiddles between two passes, which are stored (n elements for each direction, those of the inverse from its first use
/// on), and 2n on a coset; each pass reads and writes the data once. [`Ntt::on`] gives the same plan on another queue than the
/// default one.
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::Device;
/// use evariste_field::Mont;
/// use evariste_ntt::Ntt;
///
/// let device = Device::best()?;
/// let ntt = Ntt::<Fr>::new(&device, 2)?;
/// let mut x = device.upload::<Mont<Fr>>(&[1, 2, 3, 4].map(Fr::from))?;
/// ntt.forward(&mut x)?;
/// assert_eq!(x.to_vec()?[0], Fr::from(10));
/// ntt.inverse(&mut x)?;
/// assert_eq!(x.to_vec()?, [1, 2, 3, 4].map(Fr::from));
/// # Ok(())
/// # }
/// ```
pub struct Ntt<F: DeviceField> {
    pub(crate) shared: Arc<Shared<F>>,
    queue: Queue,
}

/// What a plan has on all queues.
pub(crate) struct Shared<F: DeviceField> {
    /// Where tables are made.
    pub(crate) queue: Queue,
    pub(crate) layout: Layout,
    /// Those that were used so far.
    pub(crate) kernels: Mutex<BTreeMap<Shape, Arc<Kernel<Params>>>>,
    /// Roots within passes, forward and inverse, as constants of Shoup's products; then n⁻¹ as one.
    pub(crate) roots: Buffer<u32>,
    pub(crate) forward: Factors<F>,
    pub(crate) inverse: Lazy<Factors<F>>,
    pub(crate) vector: Vector<F>,
    pub(crate) cosets: Mutex<VecDeque<Coset<F>>>,
    /// For columns of matrices, where other passes suit these better, from the first use on.
    of_columns: Lazy<Ntt<F>>,
}

impl<F: DeviceField + FftField> Ntt<F> {
    /// Makes a plan for 2^`log_n` elements on a queue (`&device` is its default one): compiles its kernels side by side, or loads
    /// them from the cache, and computes its tables. Transforms of rows in natural order, on the subgroup and on cosets, compile
    /// nothing afterwards; for all others there is [`Transform::prepare`].
    ///
    /// # Errors
    /// [`Error::TwoAdicity`] if the field has no root of unity of order 2^`log_n`; [`Error::TooLarge`] if `log_n` is
    /// above 31; [`Error::Device`] if the tables do not fit the device's memory, if a kernel does not compile, or if
    /// the device fails.
    pub fn new(queue: impl Into<Queue>, log_n: u32) -> Result<Self> {
        Self::with_config(queue, log_n, Config::default())
    }

    /// Makes a plan as [`Ntt::new`] does, with other tables or passes.
    ///
    /// # Errors
    /// Returns the errors of [`Ntt::new`], for the same reasons.
    pub fn with_config(queue: impl Into<Queue>, log_n: u32, config: Config) -> Result<Self> {
        let queue = queue.into();
        let layout = Layout::new::<F>(queue.device().info(), log_n, config)?;
        Self::with_layout(queue, layout)
    }

    fn with_layout(queue: impl Into<Queue>, layout: Layout) -> Result<Self> {
        let queue = queue.into();
        let orders = (Order::Natural, Order::Natural);
        let mut shapes = BTreeSet::new();
        for direction in [Direction::Forward, Direction::Inverse] {
            for domain in [Domain::Subgroup, Domain::Coset] {
                shapes.extend(layout.shapes(orders, Batch::Rows, direction, domain, Place::Data));
            }
        }
        let passes = shapes.iter().map(|shape| shape.spec::<F>());
        let kernels: Vec<KernelSpec> = passes.chain(table_kernels::<F>(&layout)).collect();
        let prepared = queue.device().prepare(&kernels)?;
        let vector = Vector::new(&queue);
        // Before the factors: where these are there, so are the roots.
        let roots = queue.upload(&roots::<F>(&layout)?)?;
        let forward = factors::<F>(&queue, &layout, &vector, Direction::Forward)?;
        let kernels = shapes.into_iter().enumerate().map(|(i, shape)| (shape, Arc::new(prepared.kernel(i))));
        let kernels = Mutex::new(kernels.collect());
        let (inverse, cosets) = (Lazy::default(), Mutex::default());
        let (made_on, of_columns) = (queue.clone(), Lazy::default());
        let shared = Shared { queue: made_on, layout, kernels, roots, forward, inverse, vector, cosets, of_columns };
        Ok(Self { shared: Arc::new(shared), queue })
    }

    /// Makes kernels ready side by side, and keeps them.
    pub(crate) fn prepare(&self, shapes: impl IntoIterator<Item = Shape>) -> Result<()> {
        let known = || self.shared.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let missing: BTreeSet<Shape> = shapes.into_iter().filter(|shape| !known().contains_key(shape)).collect();
        let prepared = self.device().prepare(&missing.iter().map(|shape| shape.spec::<F>()).collect::<Vec<_>>())?;
        for (i, shape) in missing.into_iter().enumerate() {
            let kernel = Arc::new(prepared.kernel(i));
            // Where another thread was faster, this one's goes when the lock is free again.
            known().entry(shape).or_insert_with(|| Arc::clone(&kernel));
        }
        Ok(())
    }

    /// Counts the device memory in bytes that a plan of this size and calls on `batch` transforms take beside the data:
    /// tables of both directions, and scratch. Powers of coset generators, 2√n elements each, come on top, as do the
    /// tables for columns of matrices where these are transformed in fewer passes: on processors, of 2^17 elements of
    /// one or two limbs and more.
    ///
    /// # Errors
    /// [`Error::TwoAdicity`] if the field has no root of unity of order 2^`log_n`; [`Error::TooLarge`] if `log_n` is
    /// above 31, or if the batch is one that no call takes: of 2^32 elements or more.
    pub fn required_bytes(device: &Device, log_n: u32, batch: usize, config: Config) -> Result<u64> {
        let layout = Layout::new::<F>(device.info(), log_n, config)?;
        let len = (batch as u64).saturating_mul(1 << log_n);
        if u32::try_from(len).is_err() {
            return Err(Error::TooLarge { expected: 32, actual: len });
        }
        let scratch = if layout.needs_scratch(Order::Natural, Order::Natural) { len } else { 0 };
        let tables = 2 * layout.twiddles().1 + roots_len(&layout);
        Ok((scratch + tables as u64) * u64::from(source::tile_bytes::<F>(1)))
    }

    /// Lists the kernels of a plan, for compiling them ahead: those of its transforms in natural order, one after the
    /// other, and with `all` of columns, between all orders and on cosets too, all in place.
    ///
    /// # Errors
    /// [`Error::TwoAdicity`] if the field has no root of unity of order 2^`log_n`; [`Error::TooLarge`] if `log_n` is
    /// above 31.
    pub fn kernels(info: &DeviceInfo, log_n: u32, config: Config, all: bool) -> Result<Vec<KernelSpec>> {
        let layout = Layout::new::<F>(info, log_n, config)?;
        let mut shapes = BTreeSet::new();
        for case in 0..if all { 1 << 5 } else { 2 } {
            let is = |bit: u32| case >> bit & 1 == 1;
            let [input, output] = [3, 4].map(|bit| if is(bit) { Order::BitReversed } else { Order::Natural });
            let batch = if is(2) { Batch::Columns } else { Batch::Rows };
            let direction = if is(0) { Direction::Inverse } else { Direction::Forward };
            let domain = if is(1) { Domain::Coset } else { Domain::Subgroup };
            shapes.extend(layout.shapes((input, output), batch, direction, domain, Place::Data));
        }
        let passes = shapes.into_iter().map(Shape::spec::<F>);
        Ok(passes.chain([pass::twiddles::spec::<F>(layout.twiddles == Twiddles::StoredWithQuotients)]).collect())
    }

    /// Gives the device that the plan is on.
    pub fn device(&self) -> &Device {
        self.shared.queue.device()
    }

    /// Gives the same plan, with the same tables and kernels, on a queue of its own.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { shared: Arc::clone(&self.shared), queue: queue.clone() }
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// What transforms so many columns: the plan itself, or one of other passes.
    pub(crate) fn of_columns(&self, columns: usize) -> Result<&Self> {
        let Shared { queue, layout, of_columns, .. } = &*self.shared;
        let Some(layout) = layout.of_columns::<F>(columns) else { return Ok(self) };
        of_columns.get_or_make(|| Self::with_layout(queue, layout))
    }

    /// Operations where the plan works.
    pub(crate) fn vector(&self) -> Vector<F> {
        let vector = &self.shared.vector;
        vector.on(&self.queue)
    }

    /// Counts the elements of one transform.
    pub fn size(&self) -> usize {
        1 << self.shared.layout.log_n
    }

    /// Counts the launches that one transform takes.
    pub fn passes_per_transform(&self) -> usize {
        self.shared.layout.log_rows.len()
    }

    /// Evaluates in place, natural order to natural order, each run of [`Ntt::size`] elements of `data` on its own.
    ///
    /// # Errors
    /// [`Error::Length`] unless `data` has a multiple of [`Ntt::size`] elements; [`Error::TooLarge`] for 2^32 elements
    /// or more; [`Error::Device`] if the data lies on another device, if scratch memory is exhausted, or if the device
    /// fails. The data is unchanged then, unless the device failed in the middle.
    pub fn forward<'d>(&self, data: impl Into<ViewMut<'d, Mont<F>>>) -> Result<()> {
        self.transform().forward(data)
    }

    /// Interpolates in place: the inverse of [`Ntt::forward`], n⁻¹ included.
    ///
    /// # Errors
    /// Returns the errors of [`Ntt::forward`], for the same reasons.
    pub fn inverse<'d>(&self, data: impl Into<ViewMut<'d, Mont<F>>>) -> Result<()> {
        self.transform().inverse(data)
    }

    /// Starts a transform, on which other orders, a coset or another queue are then set.
    pub fn transform(&self) -> Transform<'_, F> {
        let order = Order::Natural;
        Transform { plan: self, input: order, output: order, coset: F::ONE, columns: None, queue: self.queue() }
    }

    /// Starts a transform on the coset of `generator`.
    pub fn coset(&self, generator: F) -> Transform<'_, F> {
        self.transform().coset(generator)
    }

    pub(crate) fn kernel(&self, shape: Shape) -> Result<Arc<Kernel<Params>>> {
        let kernels = || self.shared.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = kernels().get(&shape) {
            return Ok(kernel.clone());
        }
        let kernel = Arc::new(Kernel::new(self.device(), shape.spec::<F>())?);
        // Where another thread was faster, this one's goes when the lock is free again.
        Ok(Arc::clone(kernels().entry(shape).or_insert_with(|| Arc::clone(&kernel))))
    }

    pub(crate) fn inverse_factors(&self) -> Result<&Factors<F>> {
        let Shared { queue, layout, vector, inverse, .. } = &*self.shared;
        inverse.get_or_make(|| factors::<F>(queue, layout, vector, Direction::Inverse))
    }

    /// The powers of a coset's generator: g^i for the forward transform, g^(−i) for the inverse, with n⁻¹ where no
    /// twiddle brings it.
    pub(crate) fn coset_powers(&self, generator: F, direction: Direction) -> Result<Coset<F>> {
        let lock = || self.shared.cosets.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |coset: &&Coset<F>| coset.generator == generator && coset.direction == direction;
        {
            let mut cosets = lock();
            if let Some(i) = cosets.iter().position(|coset| known(&coset)) {
                // Those that are used stay.
                let coset = cosets.remove(i).unwrap_or_else(|| unreachable!("its place was found"));
                cosets.push_front(coset.clone());
                return Ok(coset);
            }
        }
        let (base, scale) = match direction {
            Direction::Forward => (generator, F::ONE),
            // A single pass has no twiddles that bring n⁻¹.
            Direction::Inverse if self.shared.layout.log_rows.len() < 2 => {
                (inverted(generator), inverse_of_n::<F>(self.shared.layout.log_n)?)
            }
            Direction::Inverse => (inverted(generator), F::ONE),
        };
        let split = self.shared.layout.log_split();
        let mut powers = self.device().alloc(self.shared.layout.powers())?;
        let (low, high) = powers.as_view_mut().split_at(1 << split)?;
        self.shared.vector.powers(base, F::ONE, low)?;
        self.shared.vector.powers(base.pow([1 << split]), scale, high)?;
        let ready = Ready::behind(&self.shared.queue)?;
        let coset = Coset { generator, direction, powers: Arc::new(powers), ready };
        let mut cosets = lock();
        // What goes gives its memory back: not under the lock.
        let kept = cosets.len().min(MAX_COSETS - 1);
        let oldest = cosets.split_off(kept);
        cosets.push_front(coset.clone());
        drop(cosets);
        drop(oldest);
        Ok(coset)
    }
}

/// The kernels that compute a plan's tables.
fn table_kernels<F: DeviceField>(layout: &Layout) -> Vec<KernelSpec> {
    let mut kernels = vec![Vector::<F>::powers_kernel()];
    let quotients = layout.twiddles == Twiddles::StoredWithQuotients;
    let stored = matches!(layout.twiddles, Twiddles::HalfStored | Twiddles::Stored);
    if layout.log_rows.len() > 1 && (quotients || stored) {
        kernels.push(pass::twiddles::spec::<F>(quotients));
    }
    kernels
}

impl<F: DeviceField> Clone for Ntt<F> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), queue: self.queue.clone() }
    }
}

impl<F: DeviceField> fmt::Debug for Ntt<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ntt")
            .field("device", self.shared.queue.device())
            .field("layout", &self.shared.layout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::UniformRand;
    use evariste_backend::Secrecy;
    use evariste_field::small::Goldilocks;

    use super::*;
    use crate::{Split, layout::Tiling, reference};

    fn random<F: UniformRand>(len: usize) -> Vec<F> {
        let mut rng = ark_std::test_rng();
        (0..len).map(|_| F::rand(&mut rng)).collect()
    }

    #[test]
    fn every_order_and_size_matches_the_definition() {
        let device = Device::cpu();
        let orders = [Order::Natural, Order::BitReversed];
        for log_n in 0..9 {
            let x = random::<Fr>(1 << log_n);
            let expected = reference::forward(&x, Fr::GENERATOR);
            // Small tiles bring several passes into reach of the naive reference.
            let tiles = [(3, 0), (4, 1), (4, 0), (5, 2), (12, 0)];
            let configs = Twiddles::ALL.map(|twiddles| Split::ALL.map(|split| (twiddles, split)));
            for ((log_tile, log_run), (twiddles, split)) in
                tiles.iter().flat_map(|tile| configs.iter().flatten().map(|c| (*tile, *c)))
            {
                let log_balanced = log_tile;
                let (log_radix, log_tiles, specialised, direct) = (2, 2, false, false);
                let tiling =
                    Tiling { log_tile, log_balanced, log_run, log_radix, threads: 1, log_tiles, specialised, direct };
                let layout = Layout::tiled(log_n, split, twiddles, tiling);
                let ntt = Ntt::<Fr>::with_layout(&device, layout).unwrap();
                for (input, output) in orders.iter().flat_map(|i| orders.map(|o| (*i, o))) {
                    let mut data = device.upload(&reference::reorder(&x, Order::Natural, input)).unwrap();
                    let transform = ntt.coset(Fr::GENERATOR).input(input).output(output);
                    transform.forward(&mut data).unwrap();
                    assert_eq!(
                        data.to_vec().unwrap(),
                        reference::reorder(&expected, Order::Natural, output),
                        "2^{log_n}, tile 2^{log_tile}, {twiddles:?}, {split:?}, {input:?} to {output:?}"
                    );
                    ntt.coset(Fr::GENERATOR).input(output).output(input).inverse(&mut data).unwrap();
                    assert_eq!(data.to_vec().unwrap(), reference::reorder(&x, Order::Natural, input));
                }
            }
        }
    }

    #[test]
    fn numbers_at_their_extremes_are_errors_or_nothing_to_do() {
        let device = Device::cpu();
        let refused = |log_n| Ntt::<Goldilocks>::required_bytes(&device, log_n, 1, Config::default()).unwrap_err();
        assert!(matches!(refused(32), Error::TooLarge { .. }));
        assert!(matches!(refused(33), Error::TwoAdicity { .. }));
        assert!(matches!(refused(u32::MAX), Error::TwoAdicity { .. }));
        for (log_n, batch) in [(28, 16), (28, 1 << 36), (0, 1 << 32), (1, usize::MAX), (0, usize::MAX)] {
            let error = Ntt::<Goldilocks>::required_bytes(&device, log_n, batch, Config::default()).unwrap_err();
            assert!(matches!(error, Error::TooLarge { expected: 32, .. }), "2^{log_n} × {batch}: {error}");
        }
        let most = Ntt::<Goldilocks>::required_bytes(&device, 28, 15, Config::default()).unwrap();
        assert!(most > (15 << 28) * 8 && most < (18 << 28) * 8, "{most}");

        let ntt = Ntt::<Goldilocks>::new(&device, 3).unwrap();
        let mut nothing = device.alloc(0).unwrap();
        let mut data = device.upload(&random::<Goldilocks>(16)).unwrap();
        let before = data.to_vec().unwrap();
        for columns in [0, 3, usize::MAX / 8, usize::MAX] {
            ntt.transform().columns(columns).forward(&mut nothing).unwrap();
            let error = ntt.transform().columns(columns).forward(&mut data).unwrap_err();
            assert!(matches!(error, Error::Length { actual: 16, .. }), "{columns}: {error}");
        }
        assert_eq!(data.to_vec().unwrap(), before);
        for batch in [usize::MAX, usize::MAX / 8, 1 << 59] {
            assert!(crate::Pipeline::new(ntt.transform(), batch, Secrecy::Public).is_err(), "{batch}");
        }
        let mut host = random::<Goldilocks>(16);
        for device_bytes in [0, 1] {
            let error = crate::forward_out_of_core(&device, &mut host, device_bytes).unwrap_err();
            assert!(matches!(error, Error::InsufficientMemory { .. }), "{error}");
        }
        let expected = reference::forward(&host, Goldilocks::from(1));
        crate::forward_out_of_core(&device, &mut host, u64::MAX).unwrap();
        assert_eq!(host, expected);
    }

    /// Transforms of `columns` columns of each of `matrices` matrices, on a coset, and back.
    fn check_columns<F: DeviceField + FftField>(log_n: u32, matrices: usize, columns: usize, twiddles: Twiddles) {
        let device = Device::cpu();
        let ntt =
            Ntt::<F>::with_config(&device, log_n, Config { twiddles: Some(twiddles), ..Config::default() }).unwrap();
        let x = random::<F>((matrices * columns) << log_n);
        let mut expected = x.clone();
        for matrix in expected.chunks_mut(columns << log_n) {
            for column in 0..columns {
                let values: Vec<F> = matrix[column..].iter().step_by(columns).copied().collect();
                let output = reference::forward(&values, F::GENERATOR);
                matrix[column..].iter_mut().step_by(columns).zip(output).for_each(|(place, value)| *place = value);
            }
        }
        let mut data = device.upload(&x).unwrap();
        let transform = ntt.coset(F::GENERATOR).columns(columns);
        transform.forward(&mut data).unwrap();
        let case = format!("{matrices} × {columns} × 2^{log_n}, {twiddles:?}");
        assert_eq!(data.to_vec().unwrap(), expected, "{case}");
        transform.inverse(&mut data).unwrap();
        assert_eq!(data.to_vec().unwrap(), x, "{case}");
    }

    #[test]
    fn lines_may_fill_vectors_or_not() {
        for (log_n, matrices, columns) in
            [(1, 7, 3), (3, 1, 1), (3, 5, 1), (6, 1, 1), (7, 3, 1), (4, 1, 9), (7, 2, 3), (9, 1, 1)]
        {
            for twiddles in [Twiddles::Stored, Twiddles::TwoLevel, Twiddles::OnTheFly] {
                check_columns::<Fr>(log_n, matrices, columns, twiddles);
                check_columns::<Goldilocks>(log_n, matrices, columns, twiddles);
            }
        }
    }
}
