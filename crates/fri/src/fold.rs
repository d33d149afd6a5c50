use std::{fmt, sync::Arc};

use ark_ff::Field;
use evariste_backend::{
    Buffer, Device, Queue, View, ViewMut,
    author::{Arg, Kernel, KernelSpec, LazyKernel, Ready},
};
use evariste_field::Mont;

use crate::{
    error::{Error, Result},
    field::FriField,
    kernels::{self, FoldParams, WORDS, groups},
    points::Points,
};

/// log₂ of the arity of folds at most.
pub(crate) const MAX_LOG_ARITY: u32 = 4;

/// Folds of evaluations, by 2, 4, 8 or 16.
///
/// The evaluations of a polynomial f on the coset of `shift` lie in bit-reversed order, so that those on a coset of the
/// subgroup of 2^k elements, x·w^j, are neighbours. A fold takes the value at a challenge β of the polynomial of degree
/// below 2^k through each such row. The results are evaluations on the coset of `shift`^(2^k), in bit-reversed order:
/// those of f₀ + β·f₁ + β²·f₂ + …, where f(x) = Σ x^i·f_i(x^(2^k)). Its degree is that of f divided by 2^k.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ark_ff::{FftField, Field};
/// use evariste_backend::Device;
/// use evariste_field::{Mont, small::{BabyBear, BabyBear4}};
/// use evariste_fri::{Fold, reference};
///
/// let device = Device::best()?;
/// let fold = Fold::<BabyBear4>::new(&device, 3)?;
/// // f = 5 + 7 x on a coset of 8 points.
/// let [shift, beta] = [BabyBear::GENERATOR, BabyBear::from(1000)];
/// let points = reference::points(3, shift);
/// let f = |x: BabyBear| BabyBear4::from_base_prime_field(BabyBear::from(5) + BabyBear::from(7) * x);
/// let values: Vec<BabyBear4> = points.into_iter().map(f).collect();
/// let values = device.upload::<Mont<BabyBear4>>(&values)?;
/// let mut folded = device.alloc(4)?;
/// fold.fold(&values, BabyBear4::from_base_prime_field(beta), shift, &mut folded)?;
/// assert_eq!(folded.to_vec()?, [f(beta); 4]);
/// # Ok(())
/// # }
/// ```
///
/// # Algorithm
///
/// A thread reads a row, and halves it k times in registers: f(s), f(−s) become (f(s) + f(−s)) / 2 + β·(f(s) − f(−s)) /
/// 2s, with β squared from step to step. That takes 2^k − 1 products in the field, about as many by points, and k − 1
/// squares. Each value is read once, and each result written. A point comes from two tables of √N points by one
/// product; they are the same for all lengths.
///
/// Source: Ben-Sasson, Bentov, Horesh and Riabzev, "Fast Reed–Solomon interactive oracle proofs of proximity", ICALP
/// 2018.
pub struct Fold<F: FriField> {
    queue: Queue,
    shared: Arc<Shared<F>>,
}

/// What plans on all queues share.
struct Shared<F: FriField> {
    device: Device,
    points: Points<F::BasePrimeField>,
    /// By log₂ of the arity, without and with something added.
    kernels: [[LazyKernel<FoldParams>; 2]; MAX_LOG_ARITY as usize],
    ready: Ready,
}

impl<F: FriField> Fold<F> {
    /// Computes points for vectors of up to 2^`log_len` elements on a queue (`&device` is its default one). Kernels are
    /// compiled at their first use, or by [`Fold::prepare`].
    ///
    /// # Errors
    /// - [`Error::Domain`] if the field has no subgroup of so many elements, or if `log_len` is above 31.
    /// - [`Error::Device`] if there is no memory, or if the device fails.
    pub fn new(queue: impl Into<Queue>, log_len: u32) -> Result<Self> {
        let queue = queue.into();
        let shared = Shared {
            device: queue.device().clone(),
            points: Points::new(&queue, log_len, true)?,
            kernels: Default::default(),
            ready: Ready::behind(&queue)?,
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

    /// Returns the bytes of device memory that a plan for 2^`log_len` elements takes.
    pub fn required_bytes(log_len: u32) -> u64 {
        // And a challenge.
        Points::<F::BasePrimeField>::bytes(log_len.min(63)).saturating_add(8 * F::LIMBS as u64)
    }

    /// Compiles all kernels side by side, so that no later call does.
    ///
    /// # Errors
    /// [`Error::Device`] if a kernel does not compile, or if the device fails.
    pub fn prepare(&self) -> Result<()> {
        let prepared = self.shared.device.prepare(&Self::kernels())?;
        for log_arity in 1..=MAX_LOG_ARITY {
            self.kernel(log_arity, false)?;
            self.kernel(log_arity, true)?;
        }
        drop(prepared);
        Ok(())
    }

    /// Returns the kernels, for tools that compile them ahead.
    #[doc(hidden)]
    pub fn kernels() -> Vec<KernelSpec> {
        (1..=MAX_LOG_ARITY)
            .flat_map(|log_arity| [false, true].map(|adds| kernels::fold::<F>(log_arity, adds)))
            .collect()
    }

    /// Refuses evaluations that are too many, or no power of two. Returns log₂ of their number.
    pub(crate) fn expect(&self, what: &'static str, len: usize) -> Result<u32> {
        self.shared.points.expect(what, len)
    }

    fn kernel(&self, log_arity: u32, adds: bool) -> Result<&Kernel<FoldParams>> {
        let kernel = &self.shared.kernels[log_arity as usize - 1][usize::from(adds)];
        Ok(kernel.get(&self.shared.device, || kernels::fold::<F>(log_arity, adds))?)
    }

    /// Folds evaluations on the coset of `shift` at the challenge `beta`. The ratio of the lengths is the arity.
    /// Returns when the work is queued.
    ///
    /// # Errors
    /// - [`Error::Height`] if a length is no power of two.
    /// - [`Error::TooLong`] if there are more values than the plan is for.
    /// - [`Error::Arity`] unless the ratio of the lengths is 2, 4, 8 or 16.
    /// - [`Error::Parameter`] if `shift` is 0.
    /// - [`Error::Device`] if a view is of another device, if the values are secret and `out` is not, or if the device
    ///   fails.
    pub fn fold<'a>(
        &self,
        values: impl Into<View<'a, Mont<F>>>,
        beta: F,
        shift: F::BasePrimeField,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.run(values.into(), beta, shift, None, out.into())
    }

    /// [`Fold::fold`], plus `factor` times `added`, element by element. FRI takes in shorter inputs so.
    ///
    /// # Errors
    /// Those of [`Fold::fold`], and [`Error::Device`] unless `added` is as long as `out`, and there.
    pub fn fold_and_add<'a>(
        &self,
        values: impl Into<View<'a, Mont<F>>>,
        beta: F,
        shift: F::BasePrimeField,
        (added, factor): (impl Into<View<'a, Mont<F>>>, F),
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        self.run(values.into(), beta, shift, Some((added.into(), factor)), out.into())
    }

    fn run(
        &self,
        values: View<'_, Mont<F>>,
        beta: F,
        shift: F::BasePrimeField,
        added: Option<(View<'_, Mont<F>>, F)>,
        mut out: ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        let device = &self.shared.device;
        let log_len = self.expect("the evaluations", values.len())?;
        let log_folded = self.expect("the output of a fold", out.len())?;
        let log_arity = match log_len.checked_sub(log_folded) {
            Some(log_arity @ 1..=MAX_LOG_ARITY) => log_arity,
            _ => return Err(Error::Arity { values: values.len(), folded: out.len() }),
        };
        self.queue.expect_device(device)?;
        device.expect_same("the evaluations", values.device())?;
        device.expect_same("the output of a fold", out.device())?;
        values.secrecy().expect_to(out.secrecy(), "fold", ["the evaluations", "the output"])?;
        if let Some((added, _)) = &added {
            added.expect_len("what is added to a fold", out.len())?;
            device.expect_same("what is added to a fold", added.device())?;
            added.secrecy().expect_to(out.secrecy(), "fold", ["what is added", "the output"])?;
        }
        let challenge = beta.mul_by_base_prime_field(&inverse_of(shift)?);
        let factor = added.as_ref().map_or(F::ZERO, |(_, factor)| *factor);
        let challenge: Buffer<Mont<F>> = self.queue.upload_with(&[challenge, factor], out.secrecy())?;
        let kernel = self.kernel(log_arity, added.is_some())?;
        self.shared.ready.wait(&self.queue)?;
        let most = WORDS / (F::LIMBS << log_arity);
        for first in (0..out.len()).step_by(most) {
            let len = most.min(out.len() - first);
            let params = FoldParams { len: len as u32, first: first as u32, low_bits: self.shared.points.low_bits };
            let values = values.view(first << log_arity..(first + len) << log_arity)?;
            let mut args = vec![Arg::read(&self.shared.points.table), Arg::read(&challenge), Arg::read(values)];
            if let Some((added, _)) = &added {
                args.push(Arg::read(added.view(first..first + len)?));
            }
            args.push(Arg::write(out.view_mut(first..first + len)?));
            // SAFETY: there are `len` rows, as many places, and points for all of them.
            unsafe { kernel.launch(&self.queue, groups(len), &params, &mut args)? };
        }
        Ok(())
    }
}

/// 1 / `shift`.
pub(crate) fn inverse_of<B: Field>(shift: B) -> Result<B> {
    let refused = Error::Parameter { what: "the shift of a coset", expected: "not 0", actual: 0 };
    shift.inverse().ok_or(refused)
}

impl<F: FriField> Clone for Fold<F> {
    fn clone(&self) -> Self {
        self.on(&self.queue)
    }
}

impl<F: FriField> fmt::Debug for Fold<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fold")
            .field("device", &self.shared.device)
            .field("log_len", &self.shared.points.log_len)
            .finish_non_exhaustive()
    }
}
