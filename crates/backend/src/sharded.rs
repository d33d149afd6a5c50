//! Vectors divided among several devices.

use std::{fmt, mem, ops::Range};

use crate::{
    buffer::{Buffer, Element},
    device::Device,
    devices::Devices,
    error::{Error, Result},
    secrecy::Secrecy,
    zeroize::Wiped,
};

/// The division of a vector among the places of a group of devices. Numbers of elements differ by at most one; the
/// first places have those more.
///
/// An algorithm says which distributions it takes. Places with neighbouring elements, or with every D-th, suit
/// algorithms that first work on one digit of the index or on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Each place has a run of elements, in order.
    Blocks,
    /// Place d of D has the elements d, d + D, d + 2D, and so on.
    Cyclic,
    /// The vector is D² runs of the same length, and place d has the runs d, d + D, d + 2D, and so on. The number of
    /// elements is a multiple of D².
    BlockCyclic,
}

/// A vector with a buffer on each of several devices.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::{Device, Devices, Distribution, Sharded};
///
/// let devices = Devices::from(&Device::best()?).over(2)?;
/// let x = Sharded::<u32>::upload(&devices, &[0, 1, 2, 3, 4], Distribution::Cyclic)?;
/// assert_eq!(x.parts()[1].to_vec()?, [1, 3]);
/// assert_eq!(x.to_vec()?, [0, 1, 2, 3, 4]);
/// # Ok(())
/// # }
/// ```
pub struct Sharded<T: Element> {
    parts: Vec<Buffer<T>>,
    distribution: Distribution,
}

impl<T: Element> Sharded<T> {
    /// Makes a vector with the elements of `host`.
    ///
    /// # Errors
    /// The errors of [`Device::upload`](crate::Device::upload), which name the device.
    pub fn upload(devices: &Devices, host: &[T::Host], distribution: Distribution) -> Result<Self> {
        Self::upload_with(devices, host, distribution, Secrecy::Public)
    }

    /// Makes a vector with the elements of `host`. If it is [`Secrecy::Secret`], its memory is zeroed when it is
    /// dropped.
    ///
    /// # Errors
    /// The errors of [`Device::upload`](crate::Device::upload), which name the device.
    pub fn upload_with(
        devices: &Devices,
        host: &[T::Host],
        distribution: Distribution,
        secrecy: Secrecy,
    ) -> Result<Self> {
        let (shares, places) = (devices.shares(host.len()), devices.len());
        expect_len(distribution, places, host.len())?;
        let parts = devices.run(|place, device| {
            let mut own = Wiped::with_capacity(shares[place].len());
            match distribution {
                Distribution::Blocks => return device.upload_with(&host[shares[place].clone()], secrecy),
                Distribution::Cyclic => own.extend(host.iter().skip(place).step_by(places)),
                Distribution::BlockCyclic => {
                    let run = host.len() / (places * places);
                    own.extend(host.chunks(run.max(1)).skip(place).step_by(places).flatten());
                }
            }
            device.upload_with(&own, secrecy)
        })?;
        Ok(Self { parts, distribution })
    }

    /// Makes a vector of `len` elements, whose contents are unspecified.
    ///
    /// # Errors
    /// The errors of [`Device::alloc_with`](crate::Device::alloc_with), which name the device. [`Error::Length`] if
    /// such a distribution has no `len` elements.
    pub fn alloc(devices: &Devices, len: usize, distribution: Distribution, secrecy: Secrecy) -> Result<Self> {
        let shares = devices.shares(len);
        expect_len(distribution, devices.len(), len)?;
        let part = |(device, share): (&Device, &Range<usize>)| device.alloc_with(share.len(), secrecy);
        Ok(Self { parts: devices.iter().zip(&shares).map(part).collect::<Result<_>>()?, distribution })
    }

    /// Makes a vector of what already lies on the devices: the buffer of each place.
    ///
    /// # Errors
    /// [`Error::Length`] if there is no buffer, or if one has another number of elements than its place has of all.
    pub fn from_parts(parts: Vec<Buffer<T>>, distribution: Distribution) -> Result<Self> {
        if parts.is_empty() {
            return Err(Error::length("the parts of a vector, at least", 1, 0));
        }
        let len: usize = parts.iter().map(Buffer::len).sum();
        expect_len(distribution, parts.len(), len)?;
        let vector = Self { parts, distribution };
        vector.expect_shares()?;
        Ok(vector)
    }

    /// Refuses parts that are not the shares of all: whoever changed parts may have put others in their place.
    fn expect_shares(&self) -> Result<()> {
        let (len, places) = (self.len(), self.parts.len());
        self.parts.iter().enumerate().try_for_each(|(place, part)| {
            part.as_view().expect_len("a part of a vector", len / places + usize::from(place < len % places))
        })
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Buffer::len).sum()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns which elements the places have.
    pub fn distribution(&self) -> Distribution {
        self.distribution
    }

    /// Takes the elements for those of another distribution, without moving any. Operations that reorder a vector say so
    /// by this.
    pub fn assume_distribution(&mut self, distribution: Distribution) {
        self.distribution = distribution;
    }

    /// Returns the secrecy of the vector: secret if one of its buffers is.
    pub fn secrecy(&self) -> Secrecy {
        Secrecy::of(self.parts.iter().map(Buffer::secrecy))
    }

    /// Returns the buffers, by place.
    pub fn parts(&self) -> &[Buffer<T>] {
        &self.parts
    }

    /// Returns the buffers for changing what they hold, by place. Operations refuse buffers of other lengths.
    pub fn parts_mut(&mut self) -> &mut [Buffer<T>] {
        &mut self.parts
    }

    /// Returns the buffers themselves, by place.
    pub fn into_parts(self) -> Vec<Buffer<T>> {
        self.parts
    }

    /// Returns an error unless place i lies on device i of `devices`. `what` names the vector.
    ///
    /// # Errors
    /// [`Error::Length`] if there are more or fewer places than devices, or if a buffer has another number of elements
    /// than its place has of all. [`Error::WrongDevice`] if a buffer is on another device than its place is.
    pub fn expect_on(&self, what: &'static str, devices: &Devices) -> Result<()> {
        if self.parts.len() != devices.len() {
            return Err(Error::length("the parts of a vector", devices.len(), self.parts.len()));
        }
        devices.iter().zip(&self.parts).try_for_each(|(device, part)| device.expect_same(what, part.device()))?;
        self.expect_shares()
    }

    /// Copies all elements to the host and returns them in order.
    ///
    /// # Errors
    /// The errors of [`Buffer::to_vec`], which name the device. [`Error::Undecodable`] has an index in its buffer.
    /// [`Error::Length`] if the vector cannot have its distribution.
    pub fn to_vec(&self) -> Result<Vec<T::Host>> {
        self.expect_shares()?;
        expect_len(self.distribution, self.parts.len(), self.len())?;
        let mut all = Wiped::from(vec![T::Host::default(); self.len()]);
        match self.distribution {
            Distribution::Blocks => {
                let mut rest = &mut all[..];
                for part in &self.parts {
                    let (own, behind) = rest.split_at_mut(part.len());
                    part.read(own)?;
                    rest = behind;
                }
            }
            Distribution::Cyclic => {
                for (place, part) in self.parts.iter().enumerate() {
                    let own = Wiped::from(part.to_vec()?);
                    all.iter_mut().skip(place).step_by(self.parts.len()).zip(&*own).for_each(|(to, x)| *to = *x);
                }
            }
            Distribution::BlockCyclic => {
                let places = self.parts.len();
                let run = (all.len() / (places * places)).max(1);
                for (place, part) in self.parts.iter().enumerate() {
                    let own = Wiped::from(part.to_vec()?);
                    let runs = all.chunks_mut(run).skip(place).step_by(places);
                    runs.zip(own.chunks(run)).for_each(|(to, x)| to.copy_from_slice(x));
                }
            }
        }
        Ok(mem::take(&mut *all))
    }
}

/// Refuses a number of elements that a distribution over so many places cannot have.
fn expect_len(distribution: Distribution, places: usize, len: usize) -> Result<()> {
    let unit = if distribution == Distribution::BlockCyclic { places * places } else { 1 };
    match len.is_multiple_of(unit) {
        true => Ok(()),
        false => {
            let expected = len.checked_next_multiple_of(unit).unwrap_or(usize::MAX);
            Err(Error::length("the elements of a block-cyclic vector, a multiple of D²", expected, len))
        }
    }
}

impl<T: Element> fmt::Debug for Sharded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharded")
            .field("distribution", &self.distribution)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_back_in_order_from_any_number_of_places() {
        for places in 1..=5 {
            let devices = Devices::from(&Device::cpu()).over(places).unwrap();
            for len in [0, 1, 2, 7, 64] {
                let host: Vec<u32> = (0..len).collect();
                for distribution in [Distribution::Blocks, Distribution::Cyclic, Distribution::BlockCyclic] {
                    if distribution == Distribution::BlockCyclic && len % (places * places) as u32 != 0 {
                        let refused = Sharded::<u32>::upload(&devices, &host, distribution);
                        assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
                        continue;
                    }
                    let x = Sharded::<u32>::upload_with(&devices, &host, distribution, Secrecy::Secret).unwrap();
                    assert_eq!((x.to_vec().unwrap(), x.secrecy()), (host.clone(), Secrecy::Secret));
                    assert_eq!(x.expect_on("x", &devices), Ok(()));
                    let again = Sharded::from_parts(x.into_parts(), distribution).unwrap();
                    assert_eq!(again.to_vec().unwrap(), host);
                }
            }
        }
    }

    #[test]
    fn vectors_of_other_shares_are_refused() {
        let devices = Devices::from(&Device::cpu()).over(2).unwrap();
        let vector = |len: u32| {
            let host: Vec<u32> = (0..len).collect();
            Sharded::<u32>::upload(&devices, &host, Distribution::Blocks).unwrap()
        };
        let (mut six, mut two) = (vector(6), vector(2));
        std::mem::swap(&mut six.parts_mut()[0], &mut two.parts_mut()[0]);
        let refused = Error::length("a part of a vector", 2, 1);
        assert_eq!((six.expect_on("x", &devices), six.to_vec().err()), (Err(refused.clone()), Some(refused)));
        let mut ten = vector(10);
        ten.assume_distribution(Distribution::BlockCyclic);
        assert!(matches!(ten.to_vec(), Err(Error::Length { expected: 12, actual: 10, .. })));
        let endless = expect_len(Distribution::BlockCyclic, 2, usize::MAX);
        assert!(matches!(endless, Err(Error::Length { .. })));
    }

    #[test]
    fn each_distribution_gives_a_place_its_elements() {
        let devices = Devices::from(&Device::cpu()).over(2).unwrap();
        let host: Vec<u32> = (0..8).collect();
        for (distribution, first) in [
            (Distribution::Blocks, [0, 1, 2, 3]),
            (Distribution::Cyclic, [0, 2, 4, 6]),
            (Distribution::BlockCyclic, [0, 1, 4, 5]),
        ] {
            let x = Sharded::<u32>::upload(&devices, &host, distribution).unwrap();
            assert_eq!(x.parts()[0].to_vec().unwrap(), first, "{distribution:?}");
        }
    }

    #[test]
    fn parts_of_other_lengths_or_devices_are_refused() {
        let (device, other) = (Device::cpu(), Device::another_cpu());
        let parts = |lengths: &[usize]| lengths.iter().map(|len| device.zeros::<u32>(*len).unwrap()).collect();
        for lengths in [&[][..], &[1, 2], &[3, 1], &[2, 2, 0]] {
            let made = Sharded::<u32>::from_parts(parts(lengths), Distribution::Blocks);
            assert!(matches!(made, Err(Error::Length { .. })), "{lengths:?}");
        }
        let x = Sharded::<u32>::from_parts(parts(&[2, 1]), Distribution::Cyclic).unwrap();
        let devices = Devices::new([device.clone(), other]).unwrap();
        assert!(matches!(x.expect_on("x", &devices), Err(Error::WrongDevice { what: "x", .. })));
        assert!(matches!(x.expect_on("x", &(&device).into()), Err(Error::Length { .. })));
    }
}
