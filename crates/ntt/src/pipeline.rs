//! Transforms from pinned host memory to pinned host memory: while one is computed, the next is on its way to the device
//! and the last on its way back.

use std::fmt;

use ark_ff::FftField;
use evariste_backend::{Buffer, HostBuffer, PinnedPipeline, Queue, Secrecy};
use evariste_field::{DeviceField, Mont};

use crate::{Error, Result, Transform, layout::Direction, transform::whole_elements};

/// A stream of transforms from pinned host memory and back: device memory and queues for three at a time, with as much
/// scratch.
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
///     done += usize::from(pipeline.forward(host)?.is_some());
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
    /// Makes a pipeline for host memory with `batch` transforms each. The queue of `transform` is not used.
    ///
    /// # Errors
    /// [`Error::Device`] if the device has no room for its memory, three times that of one call, or fails.
    pub fn new(transform: Transform<'a, F>, batch: usize, secrecy: Secrecy) -> Result<Self> {
        let len = transform.plan().size().saturating_mul(batch);
        let stream = PinnedPipeline::new(transform.plan().device(), len, secrecy)?;
        Ok(Self { transform, stream, len })
    }

    /// Queues a forward transform of what `host` holds in the device's form ([`encode`](evariste_backend::Element::encode)),
    /// once it is on the device, and its way back into the same memory, which must be for both directions. Gives the result
    /// of an earlier call when all memory is in use, in the order of the calls.
    ///
    /// # Errors
    /// [`Error::HostBytes`] if `host` is no whole number of elements; [`Error::Length`] unless it has those of `batch`
    /// transforms, or if these are no whole number of matrices where the transform is of columns; [`Error::ZeroCoset`] if
    /// the transform is on the coset of 0; [`Error::TooLarge`] for 2^32 elements or more; [`Error::Device`] if `host` is
    /// not for both directions or belongs to another device, if scratch memory is exhausted, or if the device fails. `host`
    /// is dropped then; the results of earlier calls are given by later ones, but for one that the device failed to give.
    pub fn forward(&mut self, host: HostBuffer) -> Result<Option<HostBuffer>> {
        self.run(host, Direction::Forward)
    }

    /// Does what [`Pipeline::forward`] does, with inverse transforms.
    ///
    /// # Errors
    /// Returns the errors of [`Pipeline::forward`], for the same reasons.
    pub fn inverse(&mut self, host: HostBuffer) -> Result<Option<HostBuffer>> {
        self.run(host, Direction::Inverse)
    }

    fn run(&mut self, host: HostBuffer, direction: Direction) -> Result<Option<HostBuffer>> {
        let (expected, actual) = (self.len, whole_elements::<F>(&host)?);
        if actual != expected {
            return Err(Error::Length { expected, actual });
        }
        let transform = self.transform.clone();
        let done = self.stream.run(vec![host], |queue: &Queue, data: &mut Buffer<Mont<F>>| {
            transform.on(queue).run(data.as_view_mut(), direction)?;
            Ok::<_, Error>(0..expected)
        })?;
        Ok(done.and_then(only))
    }

    /// Waits for the oldest result that was not given yet, if there is one.
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
