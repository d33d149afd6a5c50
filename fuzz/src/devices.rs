use std::str;

use evariste_backend::{DeviceId, Error, Kind};

pub(crate) const SEEDS: &[&[u8]] =
    &[b"cpu", b"cuda", b"cuda:1", b"wgpu:0", b"cuda:18446744073709551615", b"cuda:00", b"wgpu:+1", b"cpu:0"];

/// Names of devices: what is understood names one device only, and all else is refused with the name in the error.
///
/// # Panics
/// If a name is understood that should not be, or the other way round.
pub fn device_names(data: &[u8]) {
    let Ok(name) = str::from_utf8(data) else { return };
    let (kind, index) = match name.split_once(':') {
        Some((kind, index)) => (kind, Some(index)),
        None => (name, None),
    };
    let kind = match (kind, index) {
        ("cpu", None) => Some(Kind::Cpu),
        ("cuda", _) => Some(Kind::Cuda),
        ("wgpu", _) => Some(Kind::Wgpu),
        _ => None,
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = match index {
        None => Some(0),
        Some(index) => index.parse().ok().filter(|_| digits(index)),
    };
    match (name.parse::<DeviceId>(), kind.zip(number)) {
        (Ok(id), Some((kind, index))) => {
            assert_eq!(id, DeviceId { kind, index }, "{name:?}");
            assert_eq!(id.to_string().parse(), Ok(id), "{name:?}");
        }
        (Err(error), None) => {
            assert_eq!(error, Error::UnknownDevice { expected: DeviceId::EXPECTED, actual: name.to_owned() });
        }
        (actual, expected) => panic!("{name:?} gave {actual:?}, expected {expected:?}"),
    }
}
