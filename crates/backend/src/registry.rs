//! Names of devices, and the registry of those that are open.

use std::{
    env,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use crate::{
    cpu,
    device::backend::Backend,
    device::{Device, Open},
    error::{Error, Result},
    info::{DeviceId, Kind},
};

/// The environment variable that overrides the choice of [`Device::best`].
pub const DEVICE_VARIABLE: &str = "EVARISTE_DEVICE";

/// A device that may be there, from [`Device::discover`].
#[derive(Debug)]
pub struct Discovered {
    /// The device's name.
    pub id: DeviceId,
    /// The open device, or the reason why it cannot be used.
    pub device: Result<Device>,
}

impl Device {
    /// Returns the host's processor as a device. It is always there.
    pub fn cpu() -> Self {
        match open(DeviceId::CPU) {
            Ok(device) => device,
            Err(error) => unreachable!("the CPU device does not depend on anything: {error}"),
        }
    }

    /// Opens a CPU device apart from [`Device::cpu`], for tests of two devices.
    #[doc(hidden)]
    pub fn another_cpu() -> Self {
        Self::unregistered(Arc::new(cpu::Cpu::new()))
    }

    /// Opens NVIDIA GPU number `index`, counted from 0.
    ///
    /// # Errors
    /// - [`Error::Unavailable`] if the program was built without the feature `cuda`, or if there is no GPU. Also if the
    ///   driver is missing, is too old or does not start.
    /// - [`Error::NoSuchDevice`] if there are only `index` GPUs or fewer.
    /// - [`Error::Driver`] or [`Error::Lost`] if the driver cannot open this one.
    pub fn cuda(index: usize) -> Result<Self> {
        open(DeviceId { kind: Kind::Cuda, index })
    }

    /// Opens GPU number `index`, counted from 0, of those with Vulkan, Metal or DirectX 12. Hardware comes before
    /// emulation.
    ///
    /// # Errors
    /// - [`Error::Unavailable`] if the program was built without the feature `wgpu`, or if no driver offers a GPU that
    ///   computes.
    /// - [`Error::NoSuchDevice`] if there are only `index` GPUs or fewer.
    /// - [`Error::Driver`] if this one cannot be opened, [`Error::OutOfMemory`] if it has no room for the buffers that
    ///   each device needs.
    pub fn wgpu(index: usize) -> Result<Self> {
        open(DeviceId { kind: Kind::Wgpu, index })
    }

    /// Opens the device of a name.
    ///
    /// # Errors
    /// [`Error::NoSuchDevice`] for a CPU other than number 0; the errors of [`Device::cuda`] or [`Device::wgpu`] for a
    /// GPU.
    pub fn open(id: DeviceId) -> Result<Self> {
        if id.kind == Kind::Cpu && id.index != 0 {
            return Err(Error::NoSuchDevice { actual: id, available: 1 });
        }
        open(id)
    }

    /// Opens the device that the environment variable `EVARISTE_DEVICE` names. Without it, opens the first CUDA
    /// device, else the first GPU through wgpu, else the CPU. It does not choose emulated GPUs.
    ///
    /// # Errors
    /// Only if `EVARISTE_DEVICE` is set:
    ///
    /// - [`Error::UnknownDevice`] if it is not the name of a device.
    /// - [`Error::Unavailable`], [`Error::NoSuchDevice`], [`Error::Driver`] or [`Error::OutOfMemory`] if this device
    ///   cannot be opened.
    pub fn best() -> Result<Self> {
        if let Some(name) = env::var_os(DEVICE_VARIABLE) {
            return name.to_string_lossy().parse();
        }
        if let Ok(device) = Self::cuda(0) {
            return Ok(device);
        }
        match Self::wgpu(0) {
            Ok(device) if !device.info().features.software => Ok(device),
            _ => Ok(Self::cpu()),
        }
    }

    /// Opens every device that works.
    pub fn all() -> Vec<Self> {
        Self::discover().into_iter().filter_map(|found| found.device.ok()).collect()
    }

    /// Lists all devices of all backends, with the reason for each that cannot be used. A backend without devices is
    /// listed as its number 0, with the reason.
    pub fn discover() -> Vec<Discovered> {
        let mut found = vec![Discovered { id: DeviceId::CPU, device: Ok(Self::cpu()) }];
        for kind in [Kind::Cuda, Kind::Wgpu] {
            match count(kind) {
                Ok(count) => found.extend((0..count).map(|index| {
                    let id = DeviceId { kind, index };
                    Discovered { id, device: open(id) }
                })),
                Err(error) => found.push(Discovered { id: DeviceId { kind, index: 0 }, device: Err(error) }),
            }
        }
        found
    }
}

impl FromStr for Device {
    type Err = Error;

    /// Opens the device of a name such as `cpu`, `cuda`, `cuda:1` or `wgpu:0`.
    fn from_str(name: &str) -> Result<Self> {
        Self::open(name.parse()?)
    }
}

impl FromStr for DeviceId {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let unknown = || Error::UnknownDevice { expected: Self::EXPECTED, actual: name.to_owned() };
        let (kind, index) = match name.split_once(':') {
            // A number would take a sign, too.
            Some((_, index)) if !index.bytes().all(|byte| byte.is_ascii_digit()) => return Err(unknown()),
            Some((kind, index)) => (kind, Some(index.parse().map_err(|_| unknown())?)),
            None => (name, None),
        };
        let kind = match kind {
            "cpu" if index.is_none() => Kind::Cpu,
            "cuda" => Kind::Cuda,
            "wgpu" => Kind::Wgpu,
            _ => return Err(unknown()),
        };
        Ok(Self { kind, index: index.unwrap_or(0) })
    }
}

/// The open devices, so that two independent crates that ask for `cuda:0` can exchange buffers.
static REGISTRY: Mutex<Vec<(DeviceId, Place)>> = Mutex::new(Vec::new());

/// The slot of a device. The thread that opens the device holds this lock, not that of the registry: drivers and
/// loggers that run meanwhile may ask for another device.
type Place = Arc<Mutex<Weak<Open>>>;

fn place(id: DeviceId) -> Place {
    let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, place)) = registry.iter().find(|(known, _)| *known == id) {
        return Arc::clone(place);
    }
    registry.retain(|(_, place)| {
        Arc::strong_count(place) > 1 || place.try_lock().is_ok_and(|open| open.strong_count() > 0)
    });
    let place = Place::default();
    registry.push((id, Arc::clone(&place)));
    place
}

fn open(id: DeviceId) -> Result<Device> {
    let place = place(id);
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(open) = place.upgrade() {
        return Ok(Device(open));
    }
    let backend: Arc<dyn Backend> = match id.kind {
        Kind::Cpu => Arc::new(cpu::Cpu::new()),
        #[cfg(feature = "cuda")]
        Kind::Cuda => crate::cuda::open(id.index)?,
        #[cfg(feature = "wgpu")]
        Kind::Wgpu => crate::wgpu::open(id.index)?,
        #[cfg(not(all(feature = "cuda", feature = "wgpu")))]
        kind => return Err(not_built(kind)),
    };
    let open = Open::new(backend);
    *place = Arc::downgrade(&open);
    Ok(Device(open))
}

fn count(kind: Kind) -> Result<usize> {
    match kind {
        Kind::Cpu => Ok(1),
        #[cfg(feature = "cuda")]
        Kind::Cuda => crate::cuda::count(),
        #[cfg(feature = "wgpu")]
        Kind::Wgpu => crate::wgpu::count(),
        #[cfg(not(all(feature = "cuda", feature = "wgpu")))]
        kind => Err(not_built(kind)),
    }
}

#[cfg(not(all(feature = "cuda", feature = "wgpu")))]
fn not_built(backend: Kind) -> Error {
    Error::Unavailable { backend, reason: format!("this program was built without the feature `{backend}`") }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use super::*;

    /// Refuses to wait for good.
    pub(crate) fn within_a_minute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(work()));
        receiver.recv_timeout(Duration::from_secs(60)).expect("it ends")
    }

    #[test]
    fn names_round_trip_and_nonsense_is_refused() {
        for name in ["cpu", "cuda:0", "cuda:7", "wgpu:1"] {
            assert_eq!(name.parse::<DeviceId>().unwrap().to_string(), name);
        }
        assert_eq!("cuda".parse::<DeviceId>().unwrap(), DeviceId { kind: Kind::Cuda, index: 0 });
        for name in ["", "nonsense", "cpu:0", "cuda:", "cuda:-1", "cuda:+1", "wgpu:x", "CUDA:0"] {
            let error = name.parse::<DeviceId>().unwrap_err();
            assert_eq!(error, Error::UnknownDevice { expected: DeviceId::EXPECTED, actual: name.into() });
            assert!(error.to_string().contains("wgpu:N"));
        }
    }

    #[test]
    fn a_device_opens_while_another_one_does() {
        let id = DeviceId { kind: Kind::Wgpu, index: usize::MAX };
        let place = place(id);
        let opening = place.lock().unwrap();
        assert!(within_a_minute(Device::cpu).is_same(&Device::cpu()));
        drop(opening);
        drop(place);
        // What did not open leaves nothing behind.
        drop(super::place(DeviceId { index: usize::MAX - 1, ..id }));
        assert!(REGISTRY.lock().unwrap().iter().all(|(known, _)| *known != id));
    }

    #[test]
    fn the_same_device_twice_is_one_device() {
        assert!(Device::cpu().is_same(&"cpu".parse().unwrap()));
    }
}
