//! Transforms from pinned host memory to pinned host memory: while one is computed, the next is on its way to the device
//! and the last on its way back.

use std::{collections::VecDeque, fmt};

use ark_ff::FftField;
use evariste_backend::{Buffer, Element, HostBuffer, Pending, Queue, Secrecy};
use evariste_field::{DeviceField, Mont};

use crate::{Error, Result, Transform};

/// Pieces of device memory in turn: one that is filled, one that is worked on, one that is emptied.
const SLOTS: usize = 3;

/// Device memory and queues for a stream of transforms: three times the data of one, and as much scratch.
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
    idle: Vec<Slot<F>>,
    /// Oldest first.
    busy: VecDeque<(Slot<F>, Pending)>,
    bytes: usize,
}

struct Slot<F: DeviceField> {
    queue: Queue,
    data: Buffer<Mont<F>>,
}

impl<'a, F: DeviceField + FftField> Pipeline<'a, F> {
    /// For host memory with `batch` transforms each. The queue of `transform` is not used.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn new(transform: Transform<'a, F>, batch: usize, secrecy: Secrecy) -> Result<Self> {
        let device = transform.plan().device();
        let len = transform.plan().size().saturating_mul(batch);
        let slot = |_| Ok(Slot { queue: device.queue()?, data: device.alloc_with(len, secrecy)? });
        let idle = (0..SLOTS).map(slot).collect::<Result<Vec<_>>>()?;
        let bytes = len * Mont::<F>::BYTES;
        Ok(Self { transform, idle, busy: VecDeque::new(), bytes })
    }

    /// Queues a forward transform of what `host` holds in the device's form ([`Element::encode`]), once it is on the
    /// device, and its way back into the same memory, which must be for both directions. Gives the result of an earlier
    /// call when all memory is in use, in the order of the calls.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::ZeroCoset`], [`Error::Device`]. Both host memories are dropped then.
    pub fn forward(&mut self, host: HostBuffer) -> Result<Option<HostBuffer>> {
        self.run(host, false)
    }

    /// The same with inverse transforms.
    ///
    /// # Errors
    /// As [`Pipeline::forward`].
    pub fn inverse(&mut self, host: HostBuffer) -> Result<Option<HostBuffer>> {
        self.run(host, true)
    }

    fn run(&mut self, host: HostBuffer, inverse: bool) -> Result<Option<HostBuffer>> {
        if host.len() != self.bytes {
            let (expected, actual) = (self.bytes / Mont::<F>::BYTES, host.len() / Mont::<F>::BYTES);
            return Err(Error::Length { expected, actual });
        }
        host.expect_download("the host memory of a transform")?;
        let done = if self.idle.is_empty() { self.next()? } else { None };
        let Some(mut slot) = self.idle.pop() else { unreachable!("the oldest slot has just become idle") };
        let outcome = self.queue(&mut slot, host, inverse);
        match outcome {
            Ok(pending) => self.busy.push_back((slot, pending)),
            Err(error) => {
                self.idle.push(slot);
                return Err(error);
            }
        }
        Ok(done)
    }

    fn queue(&self, slot: &mut Slot<F>, host: HostBuffer, inverse: bool) -> Result<Pending> {
        let Slot { queue, data } = slot;
        let uploaded = data.as_view_mut().write_pinned(Some(queue), host)?;
        let transform = self.transform.clone().on(queue);
        if inverse {
            transform.inverse(&mut *data)?
        } else {
            transform.forward(&mut *data)?
        }
        // The memory is free again as soon as the device has the data, while it still works on it.
        let host = uploaded.wait()?;
        Ok(data.as_view().read_pinned(Some(queue), host)?)
    }

    /// Waits for the oldest result that was not given yet, if there is one.
    ///
    /// # Errors
    /// [`Error::Device`].
    #[expect(clippy::should_implement_trait, reason = "an iterator could not be fed in between")]
    pub fn next(&mut self) -> Result<Option<HostBuffer>> {
        let Some((slot, pending)) = self.busy.pop_front() else { return Ok(None) };
        self.idle.push(slot);
        Ok(Some(pending.wait()?))
    }
}

impl<F: DeviceField> fmt::Debug for Pipeline<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("bytes", &self.bytes).field("busy", &self.busy.len()).finish_non_exhaustive()
    }
}
