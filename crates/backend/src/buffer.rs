//! Buffers, and the elements that they hold.

use std::{
    fmt,
    marker::PhantomData,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    device::Device,
    error::{Error, Result},
    handles::Memory,
    parallel,
    secrecy::Secrecy,
};

/// A type of elements of buffers: its form on the host and its bytes on the device.
pub trait Element: Send + Sync + 'static {
    /// The type of an element on the host.
    type Host: Copy + Default + Send + Sync + 'static;

    /// The bytes of an element on the device, at least 1. A buffer of elements without bytes does not compile.
    const BYTES: usize;

    /// Whether encoding and decoding only copy bytes, or compute little. One thread then does all the work for few
    /// elements.
    const COPIED: bool = false;

    /// Writes the device form of `src` to `dst`, which has `src.len() * BYTES` bytes. `dst` is aligned to 16 if
    /// `BYTES` is a multiple of 4, else to the largest power of two that divides `BYTES`.
    fn encode(src: &[Self::Host], dst: &mut [u8]);

    /// Reads the device form `src`, which has `dst.len() * BYTES` bytes and the alignment of [`Element::encode`].
    ///
    /// # Errors
    /// [`Error::Undecodable`] with the index of the first element whose bytes are no device form. From that index on,
    /// `dst` has other values. Whatever the memory holds, these are values that [`Element::encode`] can produce.
    fn decode(src: &[u8], dst: &mut [Self::Host]) -> Result<()>;
}

/// Whether bytes are checked to be elements before they go to a device: [`Queue::upload_bytes`](crate::Queue::upload_bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ByteCheck {
    /// The host decodes each element, on all cores, as a read does: integers are below the modulus. A point may still
    /// be off its curve.
    #[default]
    Elements,
    /// Nothing. What operations compute of bytes that are no element is unspecified, but they stay inside their
    /// buffers. A read refuses them.
    None,
}

/// An element that consists of several elements of another type, such as one of an extension field.
///
/// # Safety
/// [`Element::BYTES`] is a multiple of that of the part. The device form of an element is the forms of its parts, one
/// after the other, and any parts make an element.
pub unsafe trait Composite: Element {
    /// The type of the parts.
    type Part: Element;
}

/// Reads the device form of `dst.len()` elements, as [`Element::decode`] does, on all cores.
///
/// # Errors
/// [`Error::Undecodable`] with the index of the first element whose bytes are no device form. The elements of `dst`
/// from there on are unspecified.
///
/// # Panics
/// If `src` does not have `dst.len() * T::BYTES` bytes.
pub fn decode<T: Element>(src: &[u8], dst: &mut [T::Host]) -> Result<()> {
    assert_eq!(Some(src.len()), dst.len().checked_mul(T::BYTES), "bytes of {} elements", dst.len());
    let (chunk, first) = (chunk_len::<T>(dst.len()), AtomicU64::new(u64::MAX));
    parallel::chunks(dst, chunk, &|i, dst| {
        if let Err(error) = T::decode(&src[i * chunk * T::BYTES..][..dst.len() * T::BYTES], dst) {
            let within = if let Error::Undecodable { index } = error { index } else { 0 };
            first.fetch_min((i * chunk) as u64 + within, Ordering::Relaxed);
        }
    });
    match first.into_inner() {
        u64::MAX => Ok(()),
        index => Err(Error::Undecodable { index }),
    }
}

macro_rules! plain_element {
    ($($t:ty),*) => {$(
        impl Element for $t {
            type Host = Self;

            const BYTES: usize = size_of::<Self>();
            const COPIED: bool = true;

            fn encode(src: &[Self], dst: &mut [u8]) {
                dst.copy_from_slice(bytemuck::cast_slice(src));
            }

            fn decode(src: &[u8], dst: &mut [Self]) -> Result<()> {
                bytemuck::cast_slice_mut(dst).copy_from_slice(src);
                Ok(())
            }
        }
    )*};
}

plain_element!(u8, u32, u64, [u8; 32]);

/// Bytes that one thread copies alone, faster than another one wakes. With two threads, 64 KiB to a GPU and back took
/// 0.098 ms in place of 0.054 (16 cores beside an H100).
const ALONE_BYTES: usize = 128 << 10;

/// Bytes that one thread encodes or decodes at a time if it computes. With four times this, 2 MiB were one chunk for
/// each of 16 cores, and the last core to wake decided. An H200's host then took 10% longer for transforms of 2^16
/// elements of 32 bytes from slices.
const CHUNK_BYTES: usize = 32 << 10;

/// Elements that one thread encodes or decodes at a time, of `len` elements in all. Few elements are one chunk;
/// otherwise every chunk is aligned as the first.
pub(crate) fn chunk_len<T: Element>(len: usize) -> usize {
    const { assert!(T::BYTES > 0, "an element has at least one byte") };
    if T::COPIED && len <= ALONE_BYTES / T::BYTES {
        return len.max(1);
    }
    (CHUNK_BYTES / T::BYTES).next_multiple_of(ALIGN).max(ALIGN)
}

/// Alignment that encoders and decoders count on, at most.
const ALIGN: usize = 16;

/// Elements in the memory of a device.
///
/// Lengths and ranges count elements. A buffer keeps its device alive. Operations take a whole buffer, or a part of
/// it: [`Buffer::view`], [`Buffer::view_mut`].
pub struct Buffer<T: Element> {
    pub(crate) device: Device,
    pub(crate) memory: Memory,
    len: usize,
    secrecy: Secrecy,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Buffer<T> {
    pub(crate) fn from_parts(device: Device, memory: Memory, len: usize, secrecy: Secrecy) -> Self {
        Self { device, memory, len, secrecy, element: PhantomData }
    }

    /// Returns the device that holds the buffer.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it holds no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns how many bytes the elements have on the device.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Returns whether the buffer is zeroed when it is dropped.
    pub fn secrecy(&self) -> Secrecy {
        self.secrecy
    }
}

impl Device {
    /// Allocates a buffer of `len` elements, whose contents are unspecified.
    ///
    /// # Errors
    /// - [`Error::TooLarge`] if a buffer cannot have `len` elements
    ///   ([`Limits::buffer_bytes`](crate::Limits::buffer_bytes)).
    /// - [`Error::OutOfMemory`] if the device has no room for them.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.alloc_with(len, Secrecy::Public)
    }

    /// Allocates a buffer of `len` elements, whose contents are unspecified. If it is [`Secrecy::Secret`], it is
    /// zeroed when it is dropped.
    ///
    /// # Errors
    /// - [`Error::TooLarge`] if a buffer cannot have `len` elements
    ///   ([`Limits::buffer_bytes`](crate::Limits::buffer_bytes)).
    /// - [`Error::OutOfMemory`] if the device has no room for them.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn alloc_with<T: Element>(&self, len: usize, secrecy: Secrecy) -> Result<Buffer<T>> {
        const { assert!(T::BYTES > 0, "an element has at least one byte") };
        let limit = self.info().limits.buffer_bytes;
        let bytes = (len as u64).checked_mul(T::BYTES as u64).filter(|bytes| *bytes <= limit);
        let bytes = bytes.ok_or(Error::TooLarge {
            what: "buffer",
            device: self.info().id,
            expected: limit / T::BYTES as u64,
            actual: len as u64,
        })?;
        let memory = self.alloc_memory(bytes, secrecy)?;
        Ok(Buffer::from_parts(self.clone(), memory, len, secrecy))
    }
}

impl<T: Element> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("device", &self.device)
            .field("len", &self.len)
            .field("element", &std::any::type_name::<T>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::Transfer;

    /// Asserts the alignment that is promised, and decodes even first bytes only.
    struct Checked<const BYTES: usize>;

    impl<const BYTES: usize> Element for Checked<BYTES> {
        type Host = u8;

        const BYTES: usize = BYTES;
        const COPIED: bool = BYTES.is_multiple_of(2);

        fn encode(src: &[u8], dst: &mut [u8]) {
            Self::expect_aligned(dst);
            src.iter().zip(dst.chunks_exact_mut(BYTES)).for_each(|(x, bytes)| bytes.fill(*x));
        }

        fn decode(src: &[u8], dst: &mut [u8]) -> Result<()> {
            Self::expect_aligned(src);
            for (index, (x, bytes)) in dst.iter_mut().zip(src.chunks_exact(BYTES)).enumerate() {
                if bytes[0] % 2 == 1 {
                    return Err(Error::Undecodable { index: index as u64 });
                }
                *x = bytes[0];
            }
            Ok(())
        }
    }

    impl<const BYTES: usize> Checked<BYTES> {
        fn expect_aligned(bytes: &[u8]) {
            let promised = if BYTES.is_multiple_of(4) { ALIGN } else { 1 << BYTES.trailing_zeros() };
            assert!(bytes.as_ptr().addr().is_multiple_of(promised), "{BYTES} bytes are not aligned to {promised}");
        }
    }

    fn check<const BYTES: usize>() {
        let device = Device::cpu();
        let host: Vec<u8> = (0..140_003u32).map(|i| (2 * i) as u8).collect();
        let mut buffer = device.upload::<Checked<BYTES>>(&host).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), host);
        for offset in 1..5 {
            buffer.view_mut(offset..139_990).unwrap().write(&host[offset..139_990]).unwrap();
            let mut part = vec![1; 139_900];
            buffer.view(offset..offset + 139_900).unwrap().read(&mut part).unwrap();
            assert_eq!(part, host[offset..][..139_900]);
        }
        // One byte that is no element's, at the places where threads meet.
        let chunk = chunk_len::<Checked<BYTES>>(host.len());
        for index in [0, 1, chunk - 1, chunk, 139_999] {
            let index = index.min(host.len() - 1);
            let mut wrong = host.clone();
            wrong[index] = 1;
            buffer.write(&wrong).unwrap();
            assert_eq!(buffer.to_vec().unwrap_err(), Error::Undecodable { index: index as u64 });
            // The same from bytes at an odd address.
            let mut bytes = vec![0; 1 + wrong.len() * BYTES];
            bytes[1..].chunks_exact_mut(BYTES).zip(&wrong).for_each(|(bytes, x)| bytes.fill(*x));
            let refused = device.upload_bytes::<Checked<BYTES>>(&bytes[1..], ByteCheck::Elements).unwrap_err();
            assert_eq!(refused, Error::Undecodable { index: index as u64 });
            let unchecked = device.upload_bytes::<Checked<BYTES>>(&bytes[1..], ByteCheck::None).unwrap();
            assert_eq!(unchecked.view(..index).unwrap().to_vec().unwrap(), host[..index]);
            bytes[1 + index * BYTES..][..BYTES].fill(host[index]);
            let checked = device.upload_bytes::<Checked<BYTES>>(&bytes[1..], ByteCheck::Elements).unwrap();
            assert_eq!(checked.to_vec().unwrap(), host);
            if BYTES > 1 {
                let cut = bytes.len() - 2;
                let refused = device.upload_bytes::<Checked<BYTES>>(&bytes[1..=cut], ByteCheck::None).unwrap_err();
                assert_eq!(refused, Error::length("the bytes of elements", cut + 1, cut));
            }
            let start = index.saturating_sub(3);
            let error = buffer.view(start..).unwrap().to_vec().unwrap_err();
            assert_eq!(error, Error::Undecodable { index: index as u64 });
        }
    }

    #[test]
    fn elements_of_any_size_are_aligned_as_promised_and_told_when_they_are_none() {
        check::<1>();
        check::<2>();
        check::<3>();
        check::<6>();
        check::<12>();
        check::<24>();
        check::<40>();
        check::<48>();
        check::<520>();
    }

    #[test]
    fn sizes_at_their_extremes_are_errors() {
        let device = Device::cpu();
        for len in [usize::MAX, usize::MAX / 8, usize::MAX / 8 + 1, isize::MAX as usize] {
            let error = device.alloc::<u64>(len).unwrap_err();
            assert!(matches!(error, Error::TooLarge { .. } | Error::OutOfMemory { .. }), "{error}");
            let error = device.host_buffer(len, Transfer::Both, Secrecy::Public).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        }
        let mut x = device.zeros::<u32>(4).unwrap();
        for (rows, pieces) in [(usize::MAX, usize::MAX), (0, usize::MAX), (1, usize::MAX), (usize::MAX, 0), (3, 1)] {
            for len in [0, 16] {
                let host = device.host_buffer(len, Transfer::Both, Secrecy::Public).unwrap();
                let written = device.default_queue().write_pinned_columns(&mut x, host, rows, pieces);
                let is_nothing = len == 0 && pieces <= 1;
                assert!(is_nothing || matches!(written, Err(Error::Length { .. })), "{rows} × {pieces}: {written:?}");
            }
        }
    }
}
