//! Bytes of any length that pass through a device in pieces: from ordinary memory, readers and pinned memory.

use std::{collections::VecDeque, fmt, mem, ops::Range};

use crate::{
    buffer::Buffer,
    device::Device,
    error::{Error, Result},
    host::{HostBuffer, Pending},
    info::Transfer,
    parallel,
    queue::Queue,
    secrecy::Secrecy,
    slots::{HOST, Slot, Slots},
};

/// Bytes of the widest words that kernels read: they may read whole ones of what ends in the middle of one.
const WIDEST: usize = 16;

/// A pipeline of pieces of bytes. While the device works on one piece, the next is on its way to the device and the one
/// before on its way back.
///
/// Ordinary memory is copied to pinned memory and back by all cores. One piece is copied while another one is uploaded
/// or downloaded. The pinned memory lives as long as the pipeline, so that secrets in it are zeroed once at the end.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::{Device, Queue, BytePipeline, Secrecy};
///
/// let device = Device::best()?;
/// let mut data: Vec<u8> = (0..96).collect();
/// let mut seen = 0;
/// // The first four bytes of each piece become its second four.
/// let work = |queue: &Queue, piece: &mut _, _at, _len| {
///     let (first, mut rest) = evariste_backend::ViewMut::from(piece).split_at(4)?;
///     queue.copy(&first, rest.view_mut(..4)?)
/// };
/// BytePipeline::new(&device, 32, 3, Secrecy::Public)?.run(&mut data, work, |done| seen += done.len())?;
/// assert_eq!(seen, 96);
/// assert!(data.chunks(32).all(|piece| piece[..4] == piece[4..8]));
/// # Ok(())
/// # }
/// ```
pub struct BytePipeline {
    device: Device,
    slots: Slots<u8>,
    depth: usize,
    piece_bytes: usize,
    secrecy: Secrecy,
    /// Host memory on its way up, or back from there, oldest first: none until a piece has taken it.
    ups: VecDeque<Pending>,
}

impl BytePipeline {
    /// Makes a pipeline with device memory for `depth` pieces of `piece_bytes` bytes each. `depth` is at least 1;
    /// `piece_bytes` is rounded down to a multiple of 16, and is at least 16. Each piece has a queue of its own if the
    /// device has several. `secrecy` is that of the data.
    ///
    /// # Errors
    /// - [`Error::TooLarge`] if a buffer cannot have `piece_bytes` bytes.
    /// - [`Error::OutOfMemory`] if the device has no room for all pieces.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn new(device: &Device, piece_bytes: usize, depth: usize, secrecy: Secrecy) -> Result<Self> {
        let (depth, piece_bytes) = (depth.max(1), piece_bytes.max(WIDEST) / WIDEST * WIDEST);
        let ups = VecDeque::with_capacity(depth);
        Ok(Self {
            device: device.clone(),
            slots: Slots::new(device, piece_bytes, depth, secrecy)?,
            depth,
            piece_bytes,
            secrecy,
            ups,
        })
    }

    /// Returns the bytes of a piece. Only the last one may be shorter.
    pub fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    /// Uploads each piece of `data`, lets `work` queue operations on it, and downloads it to where it came from. `work`
    /// receives the queue to use, a buffer that starts with the piece, the position of the piece in `data`, and its
    /// length in bytes. `done` receives the results in order.
    ///
    /// # Errors
    /// - [`Error::OutOfMemory`] if there is no pinned memory for a piece, or no device memory for a last piece that is
    ///   not whole words.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - The first error of `work`.
    ///
    /// Then `data` holds results as far as `done` has received them, and its former contents behind.
    pub fn run<E: From<Error> + Send>(
        mut self,
        data: &mut [u8],
        work: impl Fn(&Queue, &mut Buffer<u8>, usize, usize) -> Result<(), E> + Sync,
        done: impl FnMut(&[u8]) + Send,
    ) -> Result<(), E> {
        parallel::in_pool(|| self.run_in_pool(data, &work, done))
    }

    fn run_in_pool<E: From<Error> + Send>(
        &mut self,
        data: &mut [u8],
        work: &(impl Fn(&Queue, &mut Buffer<u8>, usize, usize) -> Result<(), E> + Sync),
        mut done: impl FnMut(&[u8]) + Send,
    ) -> Result<(), E> {
        let (mut stored, mut start) = (0, 0);
        let mut store = |host: &HostBuffer, data: &mut [u8]| {
            parallel::copy(host, &mut data[stored..][..host.len()]);
            stored += host.len();
            done(host);
        };
        while start < data.len() {
            let (before, rest) = data.split_at_mut(start);
            let next = &rest[..rest.len().min(self.piece_bytes)];
            let finished = self.finished()?;
            // The next piece goes up as soon as it is copied, while the oldest one is still being copied out.
            let send = || -> Result<(), E> {
                let mut host = self.host_for_upload(next.len(), Transfer::Upload)?;
                parallel::copy(next, &mut host);
                self.send(host, |queue, piece| work(queue, piece, start, next.len()))
            };
            let copy_out = || {
                if let Some(host) = &finished {
                    store(host, before);
                }
            };
            rayon::join(send, copy_out).0?;
            let len = next.len();
            self.receive(finished, len)?;
            start += len;
        }
        while let Some(host) = self.last()? {
            store(&host, data);
        }
        Ok(())
    }

    /// Reads pieces from `input`, lets `work` queue operations on each, and gives the results to `done` in order. The
    /// input ends with the first piece that `input` does not fill.
    ///
    /// `work` receives the queue to use and a buffer that starts with the piece. It also receives the position of the
    /// piece in the input, and its length in bytes.
    ///
    /// # Errors
    /// - [`Error::OutOfMemory`] if there is no pinned memory for a piece, or no device memory for a last piece that is
    ///   not whole words.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - The first error of `input`, `work` or `done`.
    ///
    /// Then `done` keeps what it has received, and pieces under way are lost.
    pub fn pump<E: From<Error>>(
        mut self,
        mut input: impl FnMut(&mut [u8]) -> Result<usize, E>,
        work: impl Fn(&Queue, &mut Buffer<u8>, u64, usize) -> Result<(), E>,
        mut done: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = 0;
        loop {
            // Readers may read what they have written: at a crawl, from memory for uploads only.
            let mut host = self.host_for_upload(self.piece_bytes, Transfer::Both)?;
            let len = input(&mut host)?.min(host.len());
            if len > 0 {
                drop(host.split_off(len));
                let finished = self.finished()?;
                self.send(host, |queue, piece| work(queue, piece, at, len))?;
                if let Some(host) = &finished {
                    done(host)?;
                }
                self.receive(finished, len)?;
                at += len as u64;
            }
            if len < self.piece_bytes {
                break;
            }
        }
        while let Some(host) = self.last()? {
            done(&host)?;
        }
        Ok(())
    }

    /// Does what [`BytePipeline::run`] does, on pinned memory for both directions, without a copy on the host. The
    /// results replace the bytes in `data`, and so have the secrecy of `data`, not that of the pipeline.
    ///
    /// # Errors
    /// - [`Error::WrongTransfer`] if `data` is for uploads only.
    /// - [`Error::WrongDevice`] if it is of another device.
    /// - [`Error::SecretInput`] if it is secret and the pipeline is public.
    /// - [`Error::OutOfMemory`] if there is no memory for staging or for a last piece that is not whole words.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    /// - The first error of `work`.
    ///
    /// In the first three cases, nothing has happened. In the others `data` is empty, since its parts were lost with
    /// the copies.
    pub fn run_pinned<E: From<Error>>(
        mut self,
        data: &mut HostBuffer,
        work: impl Fn(&Queue, &mut Buffer<u8>, usize, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        data.expect_download(HOST)?;
        let (expected, actual) = (self.device.info().id, data.device());
        if expected != actual {
            return Err(Error::WrongDevice { what: HOST, expected, actual }.into());
        }
        self.device.backend().expect_host(data)?;
        data.secrecy().expect_to(self.secrecy, "write", [HOST, "the memory of a pipeline"])?;
        let mut rest = data.split_off(0);
        let (mut start, mut parts) = (0, Vec::new());
        while !rest.is_empty() {
            let len = rest.len().min(self.piece_bytes);
            let tail = rest.split_off(len);
            let part = mem::replace(&mut rest, tail);
            parts.extend(self.finished()?);
            let slot = self.slots.first();
            fit(slot, len, self.secrecy)?;
            let pending = slot.queue(vec![part], |queue, piece| {
                work(queue, piece, start, len)?;
                Ok::<Range<usize>, E>(0..len)
            })?;
            self.slots.begin(pending);
            start += len;
        }
        while let Some(part) = self.last()? {
            parts.push(part);
        }
        for part in parts {
            if data.join(part).is_err() {
                return Err(Error::other_memory(&self.device).into());
            }
        }
        Ok(())
    }

    /// Waits for the oldest result if no memory is idle.
    fn finished(&mut self) -> Result<Option<HostBuffer>> {
        Ok(self.slots.free()?.and_then(|mut parts| parts.pop()))
    }

    /// Waits for the oldest result, if there is one.
    fn last(&mut self) -> Result<Option<HostBuffer>> {
        Ok(self.slots.next()?.and_then(|mut parts| parts.pop()))
    }

    /// Host memory for the next `len` bytes.
    fn host_for_upload(&mut self, len: usize, transfer: Transfer) -> Result<HostBuffer> {
        let oldest = if self.ups.len() < self.depth { None } else { self.ups.pop_front() };
        let mut host = match oldest {
            Some(pending) => pending.wait()?,
            None => self.device.host_buffer(self.piece_bytes, transfer, self.secrecy)?,
        };
        drop(host.split_off(len));
        Ok(host)
    }

    /// Queues the upload of a piece to memory that is idle, and `work` on it.
    fn send<E: From<Error>>(
        &mut self,
        host: HostBuffer,
        work: impl FnOnce(&Queue, &mut Buffer<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let slot = self.slots.first();
        fit(slot, host.len(), self.secrecy)?;
        let Slot { queue, data, .. } = slot;
        self.ups.push_back(queue.write_pinned(data.view_mut(..host.len())?, host)?);
        work(queue, data)
    }

    /// Queues the download of the piece that was sent.
    fn receive(&mut self, host: Option<HostBuffer>, len: usize) -> Result<()> {
        let mut host = match host {
            Some(host) => host,
            None => self.device.host_buffer(self.piece_bytes, Transfer::Download, self.secrecy)?,
        };
        drop(host.split_off(len));
        let Slot { queue, data, .. } = self.slots.first();
        let pending = queue.read_pinned(data.view(..len)?, host)?;
        self.slots.begin(vec![pending]);
        Ok(())
    }
}

/// Gives the last piece memory of its own length if it is not whole words. Devices write part of a word only at the end
/// of a buffer, and kernels read whole words. Bytes behind the end of a buffer have a value. Bytes that an earlier
/// piece might have written need not have one.
fn fit(slot: &mut Slot<u8>, len: usize, secrecy: Secrecy) -> Result<()> {
    if !len.is_multiple_of(WIDEST) {
        slot.data = slot.data.device().alloc_with(len, secrecy)?;
    }
    Ok(())
}

impl fmt::Debug for BytePipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BytePipeline").field("piece_bytes", &self.piece_bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::view::ViewMut;

    const PIECE: usize = 64;

    /// Copies the first 4 bytes of each piece to the next 4, if it has 8.
    fn work(queue: &Queue, piece: &mut Buffer<u8>, _at: usize, len: usize) -> Result<()> {
        if len < 8 {
            return Ok(());
        }
        let (first, mut rest) = ViewMut::from(piece).split_at(4)?;
        queue.copy(&first, rest.view_mut(..4)?)
    }

    fn worked(data: &[u8]) -> Vec<u8> {
        let mut data = data.to_vec();
        data.chunks_mut(PIECE).filter(|piece| piece.len() >= 8).for_each(|piece| piece.copy_within(..4, 4));
        data
    }

    fn pipeline(slots: usize) -> BytePipeline {
        BytePipeline::new(&Device::cpu(), PIECE, slots, Secrecy::Secret).unwrap()
    }

    fn data(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
    }

    const LENGTHS: [usize; 8] = [0, 1, 7, PIECE - 1, PIECE, PIECE + 9, 4 * PIECE, 11 * PIECE + 33];

    #[test]
    fn every_piece_comes_back_once_and_in_order() {
        for slots in [0, 1, 2, 3, 5] {
            for len in LENGTHS {
                let (data, expected) = (data(len), worked(&data(len)));
                let (mut slice, mut seen) = (data.clone(), Vec::new());
                pipeline(slots).run(&mut slice, work, |piece| seen.extend_from_slice(piece)).unwrap();
                assert_eq!((&slice, &seen), (&expected, &expected), "{slots} {len}");

                let (mut left, mut seen) = (&data[..], Vec::new());
                let input = |piece: &mut [u8]| Ok(left.read(piece).unwrap());
                let done = |piece: &[u8]| {
                    seen.extend_from_slice(piece);
                    Ok(())
                };
                pipeline(slots).pump(input, |queue, piece, _, len| work(queue, piece, 0, len), done).unwrap();
                assert_eq!(seen, expected, "{slots} {len}");

                let mut host = Device::cpu().host_buffer(len, Transfer::Both, Secrecy::Secret).unwrap();
                host.copy_from_slice(&data);
                pipeline(slots).run_pinned(&mut host, work).unwrap();
                assert_eq!(&*host, expected, "{slots} {len}");
            }
        }
    }

    #[test]
    fn what_was_not_done_is_as_it_was() {
        let data = data(11 * PIECE + 33);
        for (slots, bad) in [(1, 0), (1, 4), (3, 0), (3, 2), (3, 7), (3, 11)] {
            let fail = |queue: &Queue, piece: &mut Buffer<u8>, at, len| match at / PIECE == bad {
                true => Err(Error::Undecodable { index: at as u64 }),
                false => work(queue, piece, at, len),
            };
            let (mut slice, mut seen) = (data.clone(), 0);
            let failed = pipeline(slots).run(&mut slice, fail, |piece| seen += piece.len());
            assert_eq!(failed.unwrap_err(), Error::Undecodable { index: (bad * PIECE) as u64 });
            assert!(seen <= bad * PIECE && seen.is_multiple_of(PIECE));
            assert_eq!(slice, [&worked(&data[..seen]), &data[seen..]].concat(), "{slots} {bad}");

            let mut host = Device::cpu().host_buffer(data.len(), Transfer::Both, Secrecy::Secret).unwrap();
            assert!(pipeline(slots).run_pinned(&mut host, fail).is_err());
            assert!(host.is_empty());
        }
    }

    #[test]
    fn memory_that_does_not_come_back_is_refused() {
        let mut host = Device::cpu().host_buffer(PIECE, Transfer::Upload, Secrecy::Public).unwrap();
        assert!(matches!(pipeline(2).run_pinned(&mut host, work), Err(Error::WrongTransfer { .. })));
        assert_eq!(host.len(), PIECE);
    }
}
