//! Transforms of pinned host memory: the device computes one while the next arrives and the last returns.

use std::fmt;

use ark_ff::FftField;
use evariste_backend::{Buffer, Error as DeviceError, HostBuffer, PinnedPipeline, Queue, Secrecy};
use evariste_field::{DeviceField, Mont};

use crate::{
    error::{Error, Result},
    layout::Direction,
    transform::{Transform, whole_elements},
};

/// Transforms of pinned host memory in a stream. It holds device memory and queues for three transforms at a time, and
/// as much scratch.
///
/// ```
/// # fn main() -> Result<(), evariste_ntt::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::{Device, Element, Secrecy, Transfer};
/// use evariste_field::Mont;
/// use evariste_ntt::{Ntt, Pipeline};
///
/// let device = Device::best()?;
/// let ntt = Ntt::<Fr>::new(&device, 10)?;
/// let mut pipeline = Pipeline::new(ntt.transform(), 1, Secrecy::Public)?;
/// let mut done = 0;
/// for i in 0..5u64 {
///     let mut host = device.host_buffer(1024 * Mont::<Fr>::BYTES, Transfer::Both, Secrecy::Public)?;
///     Mont::<Fr>::encode(&[Fr::from(i); 1024], &mut host);
///     done += usize::from(pipeline.forward_pinned(host)?.is_some());
/// }
/// while let Some(host) = pipeline.next()? {
///     done += 1;
///     assert_eq!(host.len(), 32 * 1024);
/// }
/// assert_eq!(done, 5);
/// # Ok(())
/// # }
/// ```
pub struct Pipeline<'a, F: DeviceField> {
    transform: Transform<'a, F>,
    stream: PinnedPipeline<Mont<F>>,
    /// Of each transform's host memory.
    len: usize,
}

impl<'a, F: DeviceField + FftField> Pipeline<'a, F> {
    /// Makes a pipeline for host memory of `batch` transforms each. It uses queues of its own, not that of `transform`.
    ///
    /// # Errors
    /// [`Error::Device`] if the device has no room for the memory of three calls, or fails.
    pub fn new(transform: Transform<'a, F>, batch: usize, secrecy: Secrecy) -> Result<Self> {
        let len = transform.plan().size().saturating_mul(batch);
        let stream = PinnedPipeline::new(transform.plan().device(), len, secrecy)?;
        Ok(Self { transform, stream, len })
    }

    /// Queues the copy of `host` to the device, its forward transform, and the copy back into the same memory. `host`
    /// must allow both directions and hold elements in the device's form
    /// ([`encode`](evariste_backend::Element::encode)). Once all device memory is in use, each call returns the oldest
    /// result.
    ///
    /// # Errors
    /// - [`Error::ZeroCoset`] if the transform is on the coset of 0.
    /// - [`Error::TooLarge`] for 2^32 elements or more.
    /// - [`Error::Device`] if `host` has another length than `batch` transforms, or than whole matrices for a transform
    ///   of columns.
    /// - [`Error::Device`] if `host` does not allow both directions or belongs to another device.
    /// - [`Error::Device`] if scratch memory is exhausted, or if the device fails.
    ///
    /// `host` is dropped then.
    ///
    /// Later calls return earlier results, except one that the device failed to return.
    pub fn forward_pinned(&mut self, host: HostBuffer) -> Result<Option<HostBuffer>> {
        self.run(host, Direction::Forward)
    }

    /// Queues an inverse transform, as [`Pipeline::forward_pinned`] queues a forward one.
    ///
    /// # Errors
    /// Fails under the conditions of [`Pipeline::forward_pinned`].
    pub fn inverse_pinned(&mut self, host: HostBuffer) -> Result<Option<HostBuffer>> {
        self.run(host, Direction::Inverse)
    }

    fn run(&mut self, host: HostBuffer, direction: Direction) -> Result<Option<HostBuffer>> {
        let (expected, actual) = (self.len, whole_elements::<F>(&host)?);
        if actual != expected {
            return Err(DeviceError::length("the host memory of a pipeline", expected, actual).into());
        }
        let transform = self.transform.clone();
        let done = self.stream.run(vec![host], |queue: &Queue, data: &mut Buffer<Mont<F>>| {
            transform.on(queue).run(data.as_view_mut(), direction)?;
            Ok::<_, Error>(0..expected)
        })?;
        Ok(done.and_then(only))
    }

    /// Waits for the oldest pending result and returns it; `None` if none is pending.
    ///
    /// # Errors
    /// [`Error::Device`] if the device failed in that transform or its copies.
    #[expect(clippy::should_implement_trait, reason = "an iterator could not be fed in between")]
    pub fn next(&mut self) -> Result<Option<HostBuffer>> {
        Ok(self.stream.next()?.and_then(only))
    }
}

/// The host memory of a transform, which is a single part.
fn only(mut parts: Vec<HostBuffer>) -> Option<HostBuffer> {
    parts.pop()
}

impl<F: DeviceField> fmt::Debug for Pipeline<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("len", &self.len).field("stream", &self.stream).finish_non_exhaustive()
    }
}
