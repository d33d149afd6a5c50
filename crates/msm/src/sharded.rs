//! Sums over several devices, each over a part of the bases.

use std::{fmt, ops::Range};

use ark_ec::short_weierstrass::{Affine, Projective};
use ark_ff::Zero;
use evariste_backend::{Device, Devices, Distribution, Element, Error as DeviceError, Sharded, author::Wiped};
use evariste_curve::AffinePoint;
use evariste_field::Mont;

use crate::{
    config::MsmConfig,
    error::{Error, Result},
    msm_curve::MsmCurve,
    plan::Msm,
    scalars::Scalars,
};

/// A plan for multi-scalar multiplications Σ s_i P_i with bases that are divided among several devices.
///
/// Each device has a plan ([`Msm`]) for its run of bases and computes the sum over them. The host adds one point of each
/// device. So D devices take a D-th of the time for bases and scalars, and also of memory. Windows of a device's plan
/// suit its own number of bases.
///
/// ```
/// # fn main() -> Result<(), evariste_msm::Error> {
/// use ark_bls12_381::{Fr, G1Affine, g1};
/// use ark_ec::AffineRepr;
/// use evariste_backend::{Device, Devices};
/// use evariste_msm::ShardedMsm;
///
/// // On a machine with two GPUs: "cuda:0,cuda:1".parse()?
/// let devices = Devices::from(&Device::best()?).over(2)?;
/// let g = G1Affine::generator();
/// let msm = ShardedMsm::<g1::Config>::new(&devices, &[g, g, g])?;
/// assert_eq!(msm.msm(&[1u8, 2, 3].map(Fr::from))?, g * Fr::from(6u8));
/// # Ok(())
/// # }
/// ```
pub struct ShardedMsm<C: MsmCurve> {
    devices: Devices,
    shares: Vec<Range<usize>>,
    plans: Vec<Msm<C>>,
}

impl<C: MsmCurve> ShardedMsm<C> {
    /// Makes a plan for bases on the host, and copies a run of them to each device.
    ///
    /// # Errors
    /// Fails under the conditions of [`Msm::new`]. An error of a device names it.
    pub fn new(devices: &Devices, bases: &[Affine<C>]) -> Result<Self> {
        Self::with_config(devices, bases, MsmConfig::default())
    }

    /// Makes a plan as [`ShardedMsm::new`] does, with choices of your own for the plan of each device. Budgets of memory
    /// are those of one device.
    ///
    /// # Errors
    /// Fails under the conditions of [`Msm::with_config`]. Indices of bases are those in `bases`.
    pub fn with_config(devices: &Devices, bases: &[Affine<C>], config: MsmConfig) -> Result<Self> {
        Self::build(devices, bases.len(), |_, device, share| Msm::with_config(device, &bases[share], config))
    }

    /// Makes a plan for bases that lie on the devices in blocks. Each is copied on its device.
    ///
    /// # Errors
    /// [`Error::Distribution`] if the bases do not lie in blocks, [`Error::Device`] if they lie on other devices.
    /// Otherwise it fails under the conditions of
    /// [`Msm::from_buffer`].
    pub fn from_sharded(devices: &Devices, bases: &Sharded<AffinePoint<C>>, config: MsmConfig) -> Result<Self> {
        expect_blocks("the bases", devices, bases)?;
        Self::build(devices, bases.len(), |place, device, _| Msm::from_buffer(device, &bases.parts()[place], config))
    }

    fn build(
        devices: &Devices,
        len: usize,
        plan: impl Fn(usize, &Device, Range<usize>) -> Result<Msm<C>> + Sync,
    ) -> Result<Self> {
        let shares = devices.shares(len);
        let plans = devices.run(|place, device| {
            let start = shares[place].start;
            plan(place, device, shares[place].clone()).map_err(|error| match error {
                Error::NotOnCurve { index } => Error::NotOnCurve { index: start + index },
                Error::AtInfinity { index } => Error::AtInfinity { index: start + index },
                error => error,
            })
        })?;
        Ok(Self { devices: devices.clone(), shares, plans })
    }

    /// Returns the devices of the plan.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Returns the number of bases, on all devices.
    pub fn len(&self) -> usize {
        self.shares.iter().map(Range::len).sum()
    }

    /// Returns whether there are no bases.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of memory that the plan holds, by device.
    pub fn bytes(&self) -> Vec<u64> {
        self.plans.iter().map(Msm::bytes).collect()
    }

    /// Computes Σ `scalars[i]` · `bases[i]`. There may be fewer scalars than bases.
    ///
    /// # Errors
    /// Fails under the conditions of [`Msm::msm`].
    pub fn msm(&self, scalars: &[C::ScalarField]) -> Result<Projective<C>> {
        Ok(self.msm_batch(1, scalars)?[0])
    }

    /// Computes `count` sums over the same bases. `scalars` holds those of one sum after the other, the same number for
    /// each.
    ///
    /// # Errors
    /// Fails under the conditions of [`Msm::msm_batch`].
    pub fn msm_batch(&self, count: usize, scalars: &[C::ScalarField]) -> Result<Vec<Projective<C>>> {
        let len = scalars.len().checked_div(count).unwrap_or(0);
        if len * count != scalars.len() {
            return Err(DeviceError::length("the scalars of sums of equal length", len * count, scalars.len()).into());
        }
        if len > self.len() {
            return Err(
                DeviceError::length("the scalars of one sum, at most one for each base", self.len(), len).into()
            );
        }
        self.sums(count, |place, plan| {
            let share = &self.shares[place];
            let own = share.start.min(len)..share.end.min(len);
            match count {
                1 => plan.msm_batch(1, &scalars[own]),
                _ => {
                    let mut gathered = Wiped::with_capacity(own.len() * count);
                    (0..count).for_each(|sum| gathered.extend_from_slice(&scalars[sum * len..][own.clone()]));
                    plan.msm_batch(count, &*gathered)
                }
            }
        })
    }

    /// Computes Σ `scalars[i]` · `bases[i]`, for scalars that lie on the devices in blocks, one for each base.
    ///
    /// # Errors
    /// - [`Error::Distribution`] if the scalars do not lie in blocks.
    /// - [`Error::Device`] unless there is a scalar for each base, on its device.
    /// - Otherwise it fails under the conditions of [`Msm::msm`].
    pub fn msm_sharded(&self, scalars: &Sharded<Mont<C::ScalarField>>) -> Result<Projective<C>> {
        expect_blocks("the scalars", &self.devices, scalars)?;
        if scalars.len() != self.len() {
            return Err(DeviceError::length("the scalars, one for each base", self.len(), scalars.len()).into());
        }
        Ok(self.sums(1, |place, plan| plan.msm_batch(1, Scalars::from(&scalars.parts()[place])))?[0])
    }

    /// Adds up what the devices have of each sum.
    fn sums(
        &self,
        count: usize,
        own: impl Fn(usize, &Msm<C>) -> Result<Vec<Projective<C>>> + Sync,
    ) -> Result<Vec<Projective<C>>> {
        // The sums of parts are as secret as the scalars; the sum itself is the caller's.
        let parts = self.devices.run(|place, _| Ok::<_, Error>(Wiped::from(own(place, &self.plans[place])?)))?;
        let sum = |i: usize| parts.iter().fold(Projective::zero(), |sum, part| sum + part[i]);
        Ok((0..count).map(sum).collect())
    }
}

fn expect_blocks<T: Element>(what: &'static str, devices: &Devices, vector: &Sharded<T>) -> Result<()> {
    vector.expect_on(what, devices)?;
    match vector.distribution() {
        Distribution::Blocks => Ok(()),
        _ if devices.len() == 1 => Ok(()),
        actual => Err(Error::Distribution { what, actual }),
    }
}

impl<C: MsmCurve> fmt::Debug for ShardedMsm<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedMsm").field("plans", &self.plans).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::{Fr, G1Affine, g1};
    use ark_ec::AffineRepr;
    use ark_ff::{PrimeField, UniformRand};
    use evariste_backend::Device;

    use super::*;
    use crate::{config::Infinity, reference};

    fn group(places: usize) -> Devices {
        let devices: Vec<Device> = (0..places).map(|_| Device::another_cpu()).collect();
        Devices::new(devices).unwrap()
    }

    #[test]
    fn any_number_of_devices_gives_the_definition() {
        let mut rng = ark_std::test_rng();
        for len in [0, 1, 2, 37] {
            let bases: Vec<G1Affine> = (0..len).map(|_| G1Affine::rand(&mut rng)).collect();
            let scalars: Vec<Fr> = (0..2 * len).map(|_| Fr::rand(&mut rng)).collect();
            let (first, second) = scalars.split_at(len);
            let expected = |len: usize, scalars: &[Fr]| {
                let integers: Vec<_> = scalars[..len].iter().map(|scalar| scalar.into_bigint()).collect();
                reference::msm(&bases[..len], &integers)
            };
            let [one, two] = [first, second].map(|scalars| expected(len, scalars));
            for places in 1..=4 {
                let devices = group(places);
                let msm = ShardedMsm::<g1::Config>::new(&devices, &bases).unwrap();
                assert_eq!((msm.len(), msm.bytes().len()), (len, places));
                assert_eq!(msm.msm(first).unwrap(), one, "{len} over {places}");
                assert_eq!(msm.msm_batch(2, &scalars).unwrap(), [one, two], "{len} over {places}");
                // Fewer scalars than bases: some devices have none.
                let few = expected(len / 3, first);
                assert_eq!(msm.msm(&first[..len / 3]).unwrap(), few);
                let on_devices = Sharded::upload(&devices, first, Distribution::Blocks).unwrap();
                assert_eq!(msm.msm_sharded(&on_devices).unwrap(), one);
                let bases = Sharded::upload(&devices, &bases, Distribution::Blocks).unwrap();
                let msm = ShardedMsm::<g1::Config>::from_sharded(&devices, &bases, MsmConfig::default()).unwrap();
                assert_eq!(msm.msm_sharded(&on_devices).unwrap(), one);
            }
        }
    }

    #[test]
    fn what_does_not_suit_is_refused() {
        let (devices, g) = (group(2), G1Affine::generator());
        let msm = ShardedMsm::<g1::Config>::new(&devices, &[g; 3]).unwrap();
        let scalars = [Fr::from(1u8); 4];
        for refused in [
            msm.msm(&scalars).err(),
            msm.msm_batch(2, &scalars[..3]).err(),
            msm.msm_batch(0, &scalars[..1]).err(),
            msm.msm_sharded(&Sharded::upload(&devices, &scalars[..2], Distribution::Blocks).unwrap()).err(),
        ] {
            assert!(matches!(refused, Some(Error::Device(DeviceError::Length { .. }))), "{refused:?}");
        }
        let (what, actual) = ("the scalars", Distribution::Cyclic);
        let refused = msm.msm_sharded(&Sharded::upload(&devices, &scalars[..3], actual).unwrap());
        assert_eq!(refused, Err(Error::Distribution { what, actual }));
        let foreign = Sharded::upload(&group(2), &scalars[..3], Distribution::Blocks).unwrap();
        let refused = msm.msm_sharded(&foreign).unwrap_err();
        assert!(matches!(refused, Error::Device(DeviceError::WrongDevice { .. })), "{refused}");
        assert!(msm.msm_batch(0, &[]).unwrap().is_empty());
        // Indices are those of the caller, not of a device.
        let config = MsmConfig::default().infinity(Infinity::Refused);
        let refused = ShardedMsm::<g1::Config>::with_config(&devices, &[g, g, g, G1Affine::zero()], config);
        assert_eq!(refused.err(), Some(Error::AtInfinity { index: 3 }));
    }
}
