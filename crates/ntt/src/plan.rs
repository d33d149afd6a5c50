use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use ark_ff::FftField;
use evariste_backend::{
    Buffer, Device, DeviceInfo, Queue,
    author::{Kernel, KernelSpec, Lazy, Ready},
};
use evariste_field::{DeviceField, Vector, source};

use crate::{
    config::{NttConfig, Twiddles},
    error::{Error, Result},
    layout::{Batch, BufferRole, Direction, Domain, Layout},
    order::Order,
    pass::{KernelVariant, Params, twiddle},
    tables::{Coset, PassTwiddles, inverse_of_n, inverted, pass_twiddles, roots, roots_len},
};

/// Cosets whose powers a plan keeps: of two low-degree extensions by 16, and some more.
const MAX_COSETS: usize = 36;

/// A plan for number-theoretic transforms of n = 2^`log_n` elements of `F` on one device.
///
/// The forward transform evaluates a polynomial: X_k = Σ x_i w^(ik). Here w is arkworks' root of unity of order n, so
/// that results agree with `ark_poly`. If the field's configuration has none that is primitive, w is
/// [`two_adic_root`](evariste_field::two_adic_root), squared down. The inverse interpolates, n⁻¹ included. On a coset
/// g·H, the forward transform computes the values at g·w^k.
///
/// A transform takes up to four passes, or five beyond 2^28 elements where workgroups have the least memory. Each pass
/// does transforms of up to 2^10 points in the memory of a workgroup: Bailey's four-step method, applied recursively.
/// The passes reorder as they load and store.
///
/// The cost is (n/2) log₂ n multiplications, less the trivial ones; n more for the twiddles between two passes; and 2n
/// more on a coset. Each pass reads and writes the data once. Stored twiddles take n elements for each direction; those
/// of the inverse are computed at its first use. [`Ntt::on`] returns the same plan on another queue.
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
    pub(crate) kernels: Mutex<BTreeMap<KernelVariant, Arc<Kernel<Params>>>>,
    /// Roots within passes, forward and inverse, as constants of Shoup's products; then n⁻¹ as one.
    pub(crate) roots: Buffer<u32>,
    pub(crate) forward: PassTwiddles<F>,
    pub(crate) inverse: Lazy<PassTwiddles<F>>,
    pub(crate) vector: Vector<F>,
    pub(crate) cosets: Mutex<VecDeque<Coset<F>>>,
    /// For columns of matrices, where other passes suit these better, from the first use on.
    of_columns: Lazy<Ntt<F>>,
}

impl<F: DeviceField + FftField> Ntt<F> {
    /// Makes a plan for 2^`log_n` elements on a queue; `&device` stands for its default queue. This compiles the
    /// kernels side by side, or loads them from the cache, and computes the tables. Transforms of rows in natural
    /// order, on the subgroup and on cosets, compile nothing later. Call
    /// [`Transform::prepare`](crate::Transform::prepare) for others.
    ///
    /// # Errors
    /// - [`Error::TwoAdicity`] if the field has no root of unity of order 2^`log_n`.
    /// - [`Error::TooLarge`] if `log_n` is above 31.
    /// - [`Error::Device`] if the tables do not fit the device's memory, if a kernel does not compile, or if the device
    ///   fails.
    pub fn new(queue: impl Into<Queue>, log_n: u32) -> Result<Self> {
        Self::with_config(queue, log_n, NttConfig::default())
    }

    /// Makes a plan as [`Ntt::new`] does, with tables and passes of your choice.
    ///
    /// # Errors
    /// - [`Error::TwoAdicity`] if the field has no root of unity of order 2^`log_n`.
    /// - [`Error::TooLarge`] if `log_n` is above 31.
    /// - [`Error::Device`] if the tables do not fit the device's memory, if a kernel does not compile, or if the device
    ///   fails.
    pub fn with_config(queue: impl Into<Queue>, log_n: u32, config: NttConfig) -> Result<Self> {
        let queue = queue.into();
        let layout = Layout::new::<F>(queue.device().info(), log_n, config)?;
        let orders = (Order::Natural, Order::Natural);
        let mut variants = BTreeSet::new();
        for direction in [Direction::Forward, Direction::Inverse] {
            for domain in [Domain::Subgroup, Domain::Coset] {
                variants.extend(layout.variants(orders, Batch::Rows, direction, domain, BufferRole::Data));
            }
        }
        Self::with_layout(queue, layout, &variants)
    }

    /// Makes a plan with some kernels.
    fn with_layout(queue: impl Into<Queue>, layout: Layout, variants: &BTreeSet<KernelVariant>) -> Result<Self> {
        let queue = queue.into();
        let passes = variants.iter().map(|variant| variant.spec::<F>());
        let kernels: Vec<KernelSpec> = passes.chain(table_kernels::<F>(&layout)).collect();
        let prepared = queue.device().prepare(&kernels)?;
        let vector = Vector::new(&queue);
        // Before the factors: where these are there, so are the roots.
        let roots = queue.upload(&roots::<F>(&layout)?)?;
        let forward = pass_twiddles::<F>(&queue, &layout, &vector, Direction::Forward)?;
        let kernels = variants.iter().enumerate().map(|(i, variant)| (*variant, Arc::new(prepared.kernel(i))));
        let kernels = Mutex::new(kernels.collect());
        let (inverse, cosets) = (Lazy::default(), Mutex::default());
        let (made_on, of_columns) = (queue.clone(), Lazy::default());
        let shared = Shared { queue: made_on, layout, kernels, roots, forward, inverse, vector, cosets, of_columns };
        Ok(Self { shared: Arc::new(shared), queue })
    }

    /// Makes kernels ready side by side, and keeps them.
    pub(crate) fn prepare(&self, variants: impl IntoIterator<Item = KernelVariant>) -> Result<()> {
        let known = || self.shared.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let missing: BTreeSet<KernelVariant> =
            variants.into_iter().filter(|variant| !known().contains_key(variant)).collect();
        let prepared = self.device().prepare(&missing.iter().map(|variant| variant.spec::<F>()).collect::<Vec<_>>())?;
        for (i, variant) in missing.into_iter().enumerate() {
            let kernel = Arc::new(prepared.kernel(i));
            // Where another thread was faster, this one's goes when the lock is free again.
            known().entry(variant).or_insert_with(|| Arc::clone(&kernel));
        }
        Ok(())
    }

    /// Returns the bytes of device memory that a plan and calls on `batch` transforms take beside the data: tables of
    /// both directions, and scratch. Powers of coset generators take 2√n elements each in addition. Transforms of columns
    /// of one or two limbs may need as many tables again, as they have other passes: on GPUs, those of matrices that fill
    /// them, and on processors those of 2^17 elements and more.
    ///
    /// # Errors
    /// - [`Error::TwoAdicity`] if the field has no root of unity of order 2^`log_n`.
    /// - [`Error::TooLarge`] if `log_n` is above 31, or if the batch has 2^32 elements or more.
    pub fn required_bytes(device: &Device, log_n: u32, batch: usize, config: NttConfig) -> Result<u64> {
        let layout = Layout::new::<F>(device.info(), log_n, config)?;
        let len = (batch as u64).saturating_mul(1 << log_n);
        if u32::try_from(len).is_err() {
            return Err(Error::TooLarge { expected: u32::MAX.into(), actual: len });
        }
        let scratch = if layout.needs_scratch(Order::Natural, Order::Natural) { len } else { 0 };
        let tables = 2 * layout.twiddles().1 + roots_len(&layout);
        Ok((scratch + tables as u64) * u64::from(source::tile_bytes::<F>(1)))
    }

    /// Lists the kernels of in-place transforms of rows in natural order on the subgroup. For tools that compile ahead.
    ///
    /// # Errors
    /// [`Error::TwoAdicity`] if the field has no root of unity of order 2^`log_n`; [`Error::TooLarge`] if `log_n` is
    /// above 31.
    #[doc(hidden)]
    pub fn kernels(info: &DeviceInfo, log_n: u32, config: NttConfig) -> Result<Vec<KernelSpec>> {
        Self::kernels_of(info, log_n, config, 2)
    }

    /// Lists the kernels of all in-place transforms: of rows and of few columns, between all orders, on the subgroup and
    /// on cosets. For tools that compile ahead.
    ///
    /// # Errors
    /// [`Error::TwoAdicity`] if the field has no root of unity of order 2^`log_n`; [`Error::TooLarge`] if `log_n` is
    /// above 31.
    #[doc(hidden)]
    pub fn all_kernels(info: &DeviceInfo, log_n: u32, config: NttConfig) -> Result<Vec<KernelSpec>> {
        Self::kernels_of(info, log_n, config, 1 << 5)
    }

    /// The kernels of the first `cases` ways to transform: bits are direction, domain, batch, input and output order.
    fn kernels_of(info: &DeviceInfo, log_n: u32, config: NttConfig, cases: u32) -> Result<Vec<KernelSpec>> {
        let layout = Layout::new::<F>(info, log_n, config)?;
        let mut variants = BTreeSet::new();
        for case in 0..cases {
            let is = |bit: u32| case >> bit & 1 == 1;
            let [input, output] = [3, 4].map(|bit| if is(bit) { Order::BitReversed } else { Order::Natural });
            let batch = if is(2) { Batch::Columns } else { Batch::Rows };
            let direction = if is(0) { Direction::Inverse } else { Direction::Forward };
            let domain = if is(1) { Domain::Coset } else { Domain::Subgroup };
            variants.extend(layout.variants((input, output), batch, direction, domain, BufferRole::Data));
        }
        let passes = variants.into_iter().map(KernelVariant::spec::<F>);
        Ok(passes.chain([twiddle::spec::<F>(layout.twiddles == Twiddles::StoredWithQuotients)]).collect())
    }

    /// Returns the device of the plan.
    pub fn device(&self) -> &Device {
        self.shared.queue.device()
    }

    /// Returns the same plan, with the same tables and kernels, on another queue of its device.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { shared: Arc::clone(&self.shared), queue: queue.clone() }
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The plan for `columns` columns: this one, or one with other passes.
    pub(crate) fn of_columns(&self, columns: usize) -> Result<&Self> {
        let Shared { queue, layout, of_columns, .. } = &*self.shared;
        let Some(layout) = layout.of_columns(columns) else { return Ok(self) };
        of_columns.get_or_make(|| Self::with_layout(queue, layout, &BTreeSet::new()))
    }

    /// Operations where the plan works.
    pub(crate) fn vector(&self) -> Vector<F> {
        let vector = &self.shared.vector;
        vector.on(&self.queue)
    }

    /// Returns the number of elements of one transform.
    pub fn size(&self) -> usize {
        1 << self.shared.layout.log_n
    }

    /// Returns the number of launches of one transform.
    pub fn passes_per_transform(&self) -> usize {
        self.shared.layout.log_rows.len()
    }

    pub(crate) fn kernel(&self, variant: KernelVariant) -> Result<Arc<Kernel<Params>>> {
        let kernels = || self.shared.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = kernels().get(&variant) {
            return Ok(kernel.clone());
        }
        let kernel = Arc::new(Kernel::new(self.device(), variant.spec::<F>())?);
        // Where another thread was faster, this one's goes when the lock is free again.
        Ok(Arc::clone(kernels().entry(variant).or_insert_with(|| Arc::clone(&kernel))))
    }

    pub(crate) fn inverse_twiddles(&self) -> Result<&PassTwiddles<F>> {
        let Shared { queue, layout, vector, inverse, .. } = &*self.shared;
        inverse.get_or_make(|| pass_twiddles::<F>(queue, layout, vector, Direction::Inverse))
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
        kernels.push(twiddle::spec::<F>(quotients));
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
    use evariste_backend::{Error as DeviceError, Secrecy};
    use evariste_field::{Mont, small::Goldilocks};

    use super::*;
    use crate::{config::Split, out_of_core::forward_out_of_core, pipeline::Pipeline, reference, tuning::Tiling};

    fn random<F: UniformRand>(len: usize) -> Vec<F> {
        let mut rng = ark_std::test_rng();
        (0..len).map(|_| F::rand(&mut rng)).collect()
    }

    #[test]
    fn a_queue_of_another_device_is_refused_before_anything_goes_anywhere() {
        let [device, other] = [(); 2].map(|()| Device::another_cpu());
        let queue = other.default_queue();
        let ntt = Ntt::<Fr>::new(&device, 4).unwrap();
        let mut x = random::<Fr>(16);
        let mut data = device.upload::<Mont<Fr>>(&x).unwrap();
        let counts = || [&device, &other].map(|device| [device.stats().launches, device.stats().writes]);
        let before = counts();
        let refused = [
            ntt.on(&queue).forward(&mut data),
            ntt.coset(Fr::GENERATOR).on(&queue).inverse(&mut data),
            ntt.on(&queue).forward_host(&mut x),
            ntt.on(&queue).inverse_host(&mut []),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(Error::Device(DeviceError::WrongDevice { .. }))), "{refused:?}");
        }
        let wrong = ntt.forward_host(&mut x[..15]);
        assert!(matches!(wrong, Err(Error::Device(DeviceError::Length { expected: 16, actual: 15, .. }))), "{wrong:?}");
        assert_eq!(counts(), before);
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
                let (log_radix, log_tiles, specialised, direct_stores) = (2, 2, false, false);
                let tiling = Tiling {
                    log_tile,
                    log_balanced,
                    log_run,
                    log_radix,
                    threads: 1,
                    log_tiles,
                    specialised,
                    direct_stores,
                };
                let layout = Layout::tiled(log_n, split, twiddles, tiling);
                let ntt = Ntt::<Fr>::with_layout(&device, layout, &BTreeSet::new()).unwrap();
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
        let refused = |log_n| Ntt::<Goldilocks>::required_bytes(&device, log_n, 1, NttConfig::default()).unwrap_err();
        assert!(matches!(refused(32), Error::TooLarge { .. }));
        assert!(matches!(refused(33), Error::TwoAdicity { .. }));
        assert!(matches!(refused(u32::MAX), Error::TwoAdicity { .. }));
        for (log_n, batch) in [(28, 16), (28, 1 << 36), (0, 1 << 32), (1, usize::MAX), (0, usize::MAX)] {
            let error = Ntt::<Goldilocks>::required_bytes(&device, log_n, batch, NttConfig::default()).unwrap_err();
            assert!(matches!(error, Error::TooLarge { expected: 0xffff_ffff, .. }), "2^{log_n} × {batch}: {error}");
        }
        let most = Ntt::<Goldilocks>::required_bytes(&device, 28, 15, NttConfig::default()).unwrap();
        assert!(most > (15 << 28) * 8 && most < (18 << 28) * 8, "{most}");

        let ntt = Ntt::<Goldilocks>::new(&device, 3).unwrap();
        let mut nothing = device.alloc(0).unwrap();
        let mut data = device.upload(&random::<Goldilocks>(16)).unwrap();
        let before = data.to_vec().unwrap();
        for columns in [0, 3, usize::MAX / 8, usize::MAX] {
            ntt.transform().columns(columns).forward(&mut nothing).unwrap();
            let error = ntt.transform().columns(columns).forward(&mut data).unwrap_err();
            assert!(matches!(error, Error::Device(DeviceError::Length { actual: 16, .. })), "{columns}: {error}");
        }
        assert_eq!(data.to_vec().unwrap(), before);
        for batch in [usize::MAX, usize::MAX / 8, 1 << 59] {
            assert!(Pipeline::new(ntt.transform(), batch, Secrecy::Public).is_err(), "{batch}");
        }
        let mut host = random::<Goldilocks>(16);
        for device_bytes in [0, 1] {
            let error = forward_out_of_core(&device, &mut host, device_bytes).unwrap_err();
            assert!(matches!(error, Error::Device(DeviceError::InsufficientMemory { .. })), "{error}");
        }
        let expected = reference::forward(&host, Goldilocks::from(1));
        forward_out_of_core(&device, &mut host, u64::MAX).unwrap();
        assert_eq!(host, expected);
    }

    /// Transforms of `columns` columns of each of `matrices` matrices, on a coset, and back.
    fn check_columns<F: DeviceField + FftField>(log_n: u32, matrices: usize, columns: usize, twiddles: Twiddles) {
        let device = Device::cpu();
        let ntt = Ntt::<F>::with_config(&device, log_n, NttConfig::default().twiddles(twiddles)).unwrap();
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
