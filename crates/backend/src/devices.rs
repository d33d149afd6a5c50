//! Groups of devices.

use std::{
    fmt,
    ops::{Deref, Range},
    panic,
    str::FromStr,
    thread,
};

use crate::{
    device::Device,
    error::{Error, Result},
    info::DeviceId,
};

/// Local devices that work on one problem together, at least one. It dereferences to a slice of them.
///
/// The devices may be of different kinds. Each has a place, from 0 on; work and data are divided by place. Clones are
/// the same devices.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::{Device, Devices, Error};
///
/// let devices: Devices = "cpu".parse()?;
/// assert!(devices[0].is_same(&Device::cpu()));
/// // Each place does a part of the work, all at once.
/// let parts = devices.shares(1000);
/// let sums = devices.run(|place, _| Ok::<_, Error>(parts[place].clone().sum::<usize>()))?;
/// assert_eq!(sums.iter().sum::<usize>(), 999 * 500);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Devices(Vec<Device>);

impl Devices {
    /// Makes a group of different devices.
    ///
    /// # Errors
    /// [`Error::Length`] if there is none, [`Error::RepeatedDevice`] if a device is there twice.
    pub fn new(devices: impl Into<Vec<Device>>) -> Result<Self> {
        let devices = devices.into();
        for (i, device) in devices.iter().enumerate() {
            if devices[..i].iter().any(|other| other.is_same(device)) {
                return Err(Error::RepeatedDevice { device: device.info().id });
            }
        }
        Self::with_repeats(devices)
    }

    /// Makes a group in which a device may have several places. Such a device does the work of each of them.
    ///
    /// # Errors
    /// [`Error::Length`] if there is no device.
    pub fn with_repeats(devices: impl Into<Vec<Device>>) -> Result<Self> {
        let devices = devices.into();
        match devices.is_empty() {
            true => Err(Error::length("the devices of a group, at least", 1, 0)),
            false => Ok(Self(devices)),
        }
    }

    /// Opens all NVIDIA GPUs of the machine.
    ///
    /// # Errors
    /// The errors of [`Device::cuda`] for the first of them that cannot be opened.
    pub fn all_cuda() -> Result<Self> {
        let mut devices = vec![Device::cuda(0)?];
        loop {
            match Device::cuda(devices.len()) {
                Ok(device) => devices.push(device),
                Err(Error::NoSuchDevice { .. }) => return Self::new(devices),
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns a group of `places` places, which the devices of this one take in turn. Three devices so have four
    /// places, as an algorithm may ask for that takes a power of two.
    ///
    /// # Errors
    /// [`Error::Length`] for no places.
    pub fn over(&self, places: usize) -> Result<Self> {
        Self::with_repeats(self.0.iter().cycle().take(places).cloned().collect::<Vec<_>>())
    }

    /// Returns the range of each place if `len` elements are divided evenly, in order. The first places have one more
    /// where the number does not divide.
    pub fn shares(&self, len: usize) -> Vec<Range<usize>> {
        let places = self.len();
        let start = |place: usize| place * (len / places) + place.min(len % places);
        (0..places).map(|place| start(place)..start(place + 1)).collect()
    }

    /// Calls `work` for each place at once, each on a thread of its own, and returns the results by place. Use it for
    /// work that is independent and waits for results: sums, proofs, roots. Calls that only queue work, such as
    /// transforms, need no threads: give each device its part, and then call [`Devices::sync`].
    ///
    /// # Errors
    /// The error of the first place that fails, when all have ended.
    pub fn run<R: Send, E: Send>(&self, work: impl Fn(usize, &Device) -> Result<R, E> + Sync) -> Result<Vec<R>, E> {
        if let [device] = &*self.0 {
            return Ok(vec![work(0, device)?]);
        }
        let work = &work;
        let done: Vec<Result<R, E>> = thread::scope(|scope| {
            let start = |(place, device)| scope.spawn(move || work(place, device));
            let threads: Vec<_> = self.iter().enumerate().map(start).collect();
            let end = |done: thread::Result<_>| done.unwrap_or_else(|panicked| panic::resume_unwind(panicked));
            threads.into_iter().map(|thread| end(thread.join())).collect()
        });
        done.into_iter().collect()
    }

    /// Waits until all devices are idle, and reports errors of their work.
    ///
    /// # Errors
    /// The first error of [`Device::sync`].
    pub fn sync(&self) -> Result<()> {
        self.iter().try_for_each(Device::sync)
    }
}

impl Deref for Devices {
    type Target = [Device];

    fn deref(&self) -> &[Device] {
        &self.0
    }
}

impl From<&Device> for Devices {
    fn from(device: &Device) -> Self {
        Self(vec![device.clone()])
    }
}

impl FromStr for Devices {
    type Err = Error;

    /// Opens the devices of names with commas in between, such as `cuda:0,cuda:1`. `cuda:all` stands for
    /// [`Devices::all_cuda`].
    fn from_str(names: &str) -> Result<Self> {
        if names == "cuda:all" {
            return Self::all_cuda();
        }
        let ids = names.split(',').map(|name| name.trim().parse()).collect::<Result<Vec<DeviceId>>>()?;
        // Before any is opened.
        if let Some(device) = ids.iter().enumerate().find_map(|(i, id)| ids[..i].contains(id).then_some(*id)) {
            return Err(Error::RepeatedDevice { device });
        }
        Self::new(ids.into_iter().map(Device::open).collect::<Result<Vec<_>>>()?)
    }
}

impl fmt::Debug for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Devices").field(&self.0).finish()
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, device) in self.iter().enumerate() {
            write!(f, "{}{}", if place > 0 { "," } else { "" }, device.info().id)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::Kind;

    #[test]
    fn a_device_is_in_a_group_once_unless_asked_for() {
        let (device, other) = (Device::cpu(), Device::another_cpu());
        assert_eq!(Devices::new([device.clone(), other.clone()]).unwrap().len(), 2);
        let twice = [device.clone(), other, device.clone()];
        assert_eq!(Devices::new(twice.clone()).unwrap_err(), Error::RepeatedDevice { device: DeviceId::CPU });
        assert_eq!(Devices::with_repeats(twice).unwrap().to_string(), "cpu,cpu,cpu");
        assert_eq!("cpu,cpu".parse::<Devices>().unwrap_err(), Error::RepeatedDevice { device: DeviceId::CPU });
        assert!(matches!("cpu,gpu".parse::<Devices>(), Err(Error::UnknownDevice { .. })));
        assert!(matches!("".parse::<Devices>(), Err(Error::UnknownDevice { .. })));
        assert_eq!(
            "cuda,cuda:0".parse::<Devices>().unwrap_err(),
            Error::RepeatedDevice { device: DeviceId { kind: Kind::Cuda, index: 0 } }
        );
        assert!(matches!(Devices::new([]), Err(Error::Length { .. })));
        assert!(matches!(Devices::from(&device).over(0), Err(Error::Length { .. })));
    }

    #[test]
    fn shares_are_even_and_in_order() {
        let devices = Devices::from(&Device::cpu()).over(3).unwrap();
        assert_eq!(devices.shares(8), [0..3, 3..6, 6..8]);
        assert_eq!(devices.shares(2), [0..1, 1..2, 2..2]);
        assert_eq!(devices.shares(0), [0..0, 0..0, 0..0]);
        assert_eq!(devices.shares(usize::MAX)[2].end, usize::MAX);
    }

    #[test]
    fn the_first_place_that_fails_is_reported_when_all_have_ended() {
        let devices = Devices::from(&Device::cpu()).over(4).unwrap();
        let ended = std::sync::atomic::AtomicUsize::new(0);
        let work = |place, _: &Device| {
            ended.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if place % 2 == 1 { Err(place) } else { Ok(10 * place) }
        };
        assert_eq!(devices.run(work), Err(1));
        assert_eq!(ended.into_inner(), 4);
        assert_eq!(devices.run(|place, _| Ok::<_, ()>(place)), Ok(vec![0, 1, 2, 3]));
    }
}
