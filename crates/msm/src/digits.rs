//! Sums that share scalars, and sums that a caller does not wait for.

use std::{fmt, marker::PhantomData};

use ark_ec::short_weierstrass::Projective;
use ark_ff::Zero;
use evariste_backend::{
    Buffer, Element as _, HostData, Pending as PendingCopy, Prefetch, Secrecy, Transfer,
    author::{Ready, Wiped, decode},
};
use evariste_curve::Xyzz;

use crate::{
    combine::Windows,
    config::Bases,
    cost::Shape,
    error::{Error, Result},
    memory_plan::{Budget, MemoryPlan, halves},
    msm_curve::MsmCurve,
    plan::Msm,
    precompute::PrecomputedTable,
    reduce::Reduction,
    scalars::Scalars,
    schedule::Pending,
};

/// The signed digits of some scalars, sorted by bucket, on a device. [`Msm::digits`] makes them, and [`Msm::start`]
/// takes them, of plans for several sets of bases.
pub struct Digits<F> {
    keys: Buffer<u32>,
    values: Buffer<u32>,
    shared: Shared,
    bits: u32,
    plan: MemoryPlan,
    sentinel: u32,
    ready: Ready,
    field: PhantomData<fn() -> F>,
}

/// What plans have in common that can take the same digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shared {
    /// Bases.
    len: usize,
    precomputed: PrecomputedTable,
    bases: Bases,
    halve: bool,
}

/// A sum that a device computes. [`PendingSum::wait`] gives it.
#[must_use = "the sum is there only after `wait`"]
pub struct PendingSum<C: MsmCurve> {
    /// What the device leaves of each class of digits.
    parts: Vec<(Reduction, PendingCopy)>,
    windows: Windows<C>,
}

impl<F> Digits<F> {
    /// Returns the number of scalars.
    pub fn len(&self) -> usize {
        self.plan.piece
    }

    /// Returns whether there are no scalars.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the secrecy of the scalars.
    pub fn secrecy(&self) -> Secrecy {
        self.keys.secrecy()
    }

    /// Returns the bytes of device memory.
    pub fn bytes(&self) -> u64 {
        self.keys.bytes() + self.values.bytes()
    }
}

impl<F> fmt::Debug for Digits<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Digits").field("len", &self.len()).field("window", &self.plan.window).finish_non_exhaustive()
    }
}

impl<C: MsmCurve> Msm<C> {
    /// Recodes and sorts scalars on the device, for sums over the bases of this plan and of others with as many.
    ///
    /// ```
    /// # fn main() -> Result<(), evariste_msm::Error> {
    /// # use ark_bls12_381::{Fr, G1Affine, G2Affine, g1, g2};
    /// # use ark_ec::AffineRepr;
    /// # use evariste_backend::Device;
    /// use evariste_msm::Msm;
    ///
    /// let device = Device::best()?;
    /// let first = Msm::<g1::Config>::new(&device, &[G1Affine::generator(); 2])?;
    /// let second = Msm::<g2::Config>::new(&device, &[G2Affine::generator(); 2])?;
    /// let digits = first.digits(&[3u8, 4].map(Fr::from))?;
    /// let sums = (first.start(&digits)?, second.start(&digits)?);
    /// assert_eq!(sums.0.wait()?, G1Affine::generator() * Fr::from(7u8));
    /// assert_eq!(sums.1.wait()?, G2Affine::generator() * Fr::from(7u8));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Error::Device`] for more scalars than bases, or if the scalars lie on another device.
    /// - [`Error::Device`] if the memory of the configuration, or of the device, does not hold all digits and one sum
    ///   at once.
    /// - [`Error::Config`] if the configuration's window takes more than 2^28 buckets.
    /// - [`Error::Device`] if memory is exhausted, or if the device fails.
    pub fn digits<'a>(&self, scalars: impl Into<Scalars<'a, C::ScalarField>>) -> Result<Digits<C::ScalarField>> {
        let scalars = scalars.into();
        let len = scalars.len();
        self.expect_at_most("the scalars, at most one for each base", self.len, len)?;
        let queue = &self.queue;
        self.ready.wait(queue)?;
        let bits = self.bits(&scalars.into());
        let window = self.sizes().window(&Shape { len, count: 1, bits });
        let plan = self.whole_plan(window, (len, bits))?;
        let sentinel = buckets(&self.sizes().reductions(&plan, 1)) as u32;
        let recoding = self.recoding(&plan, len, 1, sentinel);
        let (mut source, secrecy) = match scalars {
            Scalars::Host(host) => {
                let uploads = Prefetch::ahead_of(queue, &[len], 1, self.config.secrecy)?;
                (Pending::Host(uploads, HostData::Slice(host)), self.config.secrecy)
            }
            Scalars::Montgomery(view) => {
                self.device().expect_same("the scalars", view.device())?;
                (Pending::Montgomery(view), view.secrecy())
            }
            Scalars::Canonical(view) => {
                self.device().expect_same("the scalars", view.device())?;
                (Pending::Canonical(view), view.secrecy())
            }
        };
        // As in a sum, all that comes from secret bases is secret.
        let secrecy = Secrecy::of([secrecy, self.bases.secrecy()]);
        let [keys, values] = match len {
            0 => [self.device().alloc_with(0, secrecy)?, self.device().alloc_with(0, secrecy)?],
            _ => self.sorted_digits(recoding, &mut source, 0, secrecy, &mut |_| Ok(()))?,
        };
        let ready = Ready::behind(queue)?;
        Ok(Digits { keys, values, shared: self.shared(), bits, plan, sentinel, ready, field: PhantomData })
    }

    /// Queues the sum over the bases of this plan by scalars that were recoded and sorted for it or for another plan on
    /// its device. Both plans have the same number of bases, of multiples of each, and of bits of scalars, and bases of
    /// the same group. Memory of the sum is as secret as the scalars.
    ///
    /// # Errors
    /// - [`Error::Digits`] if the digits were made for other plans than that.
    /// - [`Error::Device`] if they lie on another device.
    /// - [`Error::Device`] if memory is exhausted, or if the device fails.
    pub fn start(&self, digits: &Digits<C::ScalarField>) -> Result<PendingSum<C>> {
        let queue = &self.queue;
        self.ready.wait(queue)?;
        self.device().expect_same("the digits", digits.keys.device())?;
        let refused = || {
            let (expected, actual) = (digits.shared.to_string(), self.shared().to_string());
            Err(Error::Digits { expected, actual })
        };
        if digits.shared != self.shared() {
            return refused();
        }
        let plan = self.whole_plan(digits.plan.window, (digits.len(), digits.bits))?;
        let reductions = self.sizes().reductions(&plan, 1);
        let count = buckets(&reductions);
        // Kernels count on it: keys are numbers of buckets, or the sentinel.
        if count != digits.sentinel.into() {
            return refused();
        }
        let windows = Windows::new(&plan, self.precomputed, 1);
        let mut sum = PendingSum { parts: Vec::new(), windows };
        if digits.is_empty() {
            return Ok(sum);
        }
        digits.ready.wait(queue)?;
        let secrecy = Secrecy::of([digits.secrecy(), self.bases.secrecy()]);
        let mut buckets: Buffer<Xyzz<C>> = self.device().alloc_with(count as usize, secrecy)?;
        queue.clear(&mut buckets)?;
        self.accumulate(&plan, [&digits.keys, &digits.values], true, &mut buckets, &mut |_| Ok(()))?;
        for (reduction, points) in reductions.iter().zip(self.reduced(&reductions, &buckets)?) {
            let host = self.device().host_buffer(points.len() * Xyzz::<C>::BYTES, Transfer::Download, secrecy)?;
            sum.parts.push((reduction.clone(), queue.read_pinned(&points, host)?));
        }
        Ok(sum)
    }

    fn shared(&self) -> Shared {
        let Self { len, precomputed, config, .. } = self;
        Shared { len: *len, precomputed: *precomputed, bases: config.bases, halve: halves::<C>(config) }
    }

    /// A sum at once, whatever its parts.
    fn whole_plan(&self, window: u32, shape: (usize, u32)) -> Result<MemoryPlan> {
        self.sizes().whole_plan(Budget::new(self.device(), &self.config, self.bases.bytes()), window, shape)
    }
}

/// The buckets of all classes of digits.
fn buckets(reductions: &[Reduction]) -> u64 {
    reductions.iter().map(Reduction::buckets).sum()
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bases = match self.bases {
            Bases::Subgroup => "points of order r",
            Bases::FullGroup => "any points",
        };
        let halve = if self.halve { "" } else { ", scalars of fewer bits" };
        write!(f, "{} {bases} with {}{halve}", self.len, self.precomputed)
    }
}

impl<C: MsmCurve> PendingSum<C> {
    /// Waits for the device, and combines what it leaves on the host: about one doubling for each bit of a scalar.
    ///
    /// # Errors
    /// [`Error::Device`] if the device fails.
    pub fn wait(mut self) -> Result<Projective<C>> {
        for (reduction, pending) in self.parts {
            let host = pending.wait()?;
            let mut points = Wiped::from(vec![Projective::zero(); host.len() / Xyzz::<C>::BYTES]);
            decode::<Xyzz<C>>(&host, &mut points)?;
            self.windows.add(&reduction, &points);
        }
        Ok(self.windows.into_sums()[0])
    }
}

impl<C: MsmCurve> fmt::Debug for PendingSum<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingSum").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::{g1, g2};
    use ark_ec::{PrimeGroup, short_weierstrass::Affine};
    use ark_ff::UniformRand;
    use ark_std::test_rng;
    use evariste_backend::{Device, Error as DeviceError};
    use evariste_field::{Canonical, Mont};

    use super::*;
    use crate::config::{MsmConfig, Precompute};

    type F = ark_bls12_381::Fr;

    fn bases<C: MsmCurve<ScalarField = F>>(len: usize) -> Vec<Affine<C>> {
        let mut rng = test_rng();
        let generator = Projective::<C>::generator();
        (0..len).map(|i| if i % 7 == 3 { Affine::identity() } else { (generator * F::rand(&mut rng)).into() }).collect()
    }

    fn naive<C: MsmCurve<ScalarField = F>>(bases: &[Affine<C>], scalars: &[F]) -> Projective<C> {
        bases.iter().zip(scalars).map(|(base, scalar)| Projective::from(*base) * scalar).sum()
    }

    #[test]
    fn plans_of_both_groups_share_digits() {
        let device = Device::cpu();
        let (first, second, third) = (bases::<g1::Config>(300), bases::<g1::Config>(300), bases::<g2::Config>(300));
        let tables = |each: u64| Precompute::Tables { budget: 300 * each * 10 };
        let all = [
            [Precompute::None; 2],
            [tables(96), tables(192)],
            [Precompute::OddSignedDigits { depth: 2 }; 2],
            [Precompute::Doublings { depth: 2 }; 2],
        ];
        let mut rng = test_rng();
        let mut scalars: Vec<F> = (0..300).map(|_| F::rand(&mut rng)).collect();
        (scalars[0], scalars[1], scalars[299]) = (F::from(0), -F::from(1), F::from(1));
        for [one, two] in all {
            let config = |precompute| MsmConfig::default().window(6).precompute(precompute);
            let a = Msm::with_config(&device, &first, config(one)).unwrap();
            let b = Msm::with_config(&device, &second, config(one)).unwrap();
            let c = Msm::with_config(&device, &third, config(two)).unwrap();
            for len in [300, 299, 1, 0] {
                let scalars = &scalars[..len];
                let montgomery = device.upload::<Mont<F>>(scalars).unwrap();
                let canonical = device.upload::<Canonical<F>>(scalars).unwrap();
                let digits = [a.digits(scalars), b.digits(&montgomery), a.clone().digits(&canonical)];
                for digits in digits.map(Result::unwrap) {
                    assert_eq!((digits.len(), digits.is_empty()), (len, len == 0));
                    // All are under way before the first is waited for, and digits may go meanwhile.
                    let sums = (a.start(&digits).unwrap(), b.start(&digits).unwrap(), c.start(&digits).unwrap());
                    drop(digits);
                    assert_eq!(sums.2.wait().unwrap(), naive(&third, scalars), "{len} {one:?}");
                    assert_eq!(sums.1.wait().unwrap(), naive(&second, scalars), "{len} {one:?}");
                    assert_eq!(sums.0.wait().unwrap(), naive(&first, scalars), "{len} {one:?}");
                }
            }
        }
    }

    #[test]
    fn digits_of_other_plans_are_refused() {
        let device = Device::cpu();
        let bases = bases::<g1::Config>(9);
        let plan = |len: usize, config| Msm::<g1::Config>::with_config(&device, &bases[..len], config).unwrap();
        let config = MsmConfig::default();
        let own = plan(9, config);
        let digits = own.digits(&[F::from(5u8); 9]).unwrap();
        let tables = Precompute::Tables { budget: 9 * 96 * 3 };
        let others = [
            plan(8, config),
            plan(9, config.precompute(tables)),
            plan(9, config.bits(8)),
            plan(9, config.bases(Bases::FullGroup)),
        ];
        for other in others {
            let refused = other.start(&digits).unwrap_err();
            assert!(matches!(&refused, Error::Digits { expected, actual } if expected != actual), "{refused}");
        }
        let long = own.digits(&[F::from(5u8); 10]).unwrap_err();
        assert!(matches!(long, Error::Device(DeviceError::Length { expected: 9, actual: 10, .. })), "{long}");
        let small = plan(9, config.memory(64)).digits(&[F::from(5u8); 9]).unwrap_err();
        assert!(matches!(small, Error::Device(DeviceError::InsufficientMemory { available: 64, .. })), "{small}");
        assert_eq!(own.start(&digits).unwrap().wait().unwrap(), naive(&bases, &[F::from(5u8); 9]));
    }

    #[test]
    fn digits_of_secret_scalars_are_secret() {
        let device = Device::cpu();
        let bases = bases::<g1::Config>(9);
        let plan = Msm::with_config(&device, &bases, MsmConfig::default().secrecy(Secrecy::Secret)).unwrap();
        assert_eq!(plan.digits(&[F::from(5u8); 9]).unwrap().secrecy(), Secrecy::Secret);
        let public = Msm::new(&device, &bases).unwrap();
        assert_eq!(public.digits(&[F::from(5u8); 9]).unwrap().secrecy(), Secrecy::Public);
        let scalars = device.alloc_with::<Mont<F>>(9, Secrecy::Secret).unwrap();
        assert_eq!(public.digits(&scalars).unwrap().secrecy(), Secrecy::Secret);
    }
}
