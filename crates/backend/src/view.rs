//! Parts of buffers.

use std::{
    fmt,
    marker::PhantomData,
    ops::{Bound, Range, RangeBounds},
};

use crate::{
    buffer::{Buffer, Composite, Element},
    device::Device,
    error::{Error, Result},
    handles::Memory,
    host::HostBuffer,
    info::Transfer,
    secrecy::Secrecy,
    span::{Owner, Span, SpanMut},
};

/// Consecutive elements of a [`Buffer`], for reading.
///
/// Operations take a view wherever they take a buffer: `&buffer` is a view of the whole buffer, [`Buffer::view`] gives
/// one of a part. With CUDA and on the CPU, the bounds of a view cost nothing. With wgpu, a kernel is compiled once
/// more for views whose start is no multiple of the device's alignment of bindings (16 to 256 bytes). It is compiled
/// once more for launches that read one part of a buffer and write another.
///
/// A view borrows its buffer until an operation on it is queued. The device runs operations on the same elements in
/// the order in which they were queued: work on another queue waits where it must.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use evariste_backend::Device;
///
/// let mut buffer = Device::best()?.upload::<u32>(&[1, 2, 3, 4, 5])?;
/// assert_eq!(buffer.view(1..3)?.to_vec()?, [2, 3]);
/// let (low, mut high) = buffer.view_mut(..)?.split_at(2)?;
/// high.view_mut(1..)?.copy_from(&low)?;
/// assert_eq!(buffer.to_vec()?, [1, 2, 3, 1, 2]);
/// # Ok(())
/// # }
/// ```
pub struct View<'a, T: Element> {
    device: &'a Device,
    memory: &'a Memory,
    /// The first element, and how many.
    first: usize,
    len: usize,
    secrecy: Secrecy,
    /// Whether the maker of the view orders its uses behind those on other queues.
    is_ordered: bool,
    element: PhantomData<fn() -> T>,
}

/// Consecutive elements of a [`Buffer`], for reading and writing: [`Buffer::view_mut`].
///
/// Nobody else has a view of these elements. Use [`ViewMut::split_at`] to get non-overlapping views, which one launch
/// may take together.
pub struct ViewMut<'a, T: Element> {
    device: &'a Device,
    owner: Owner<'a>,
    first: usize,
    len: usize,
    secrecy: Secrecy,
    /// Whether the maker of the view orders its uses behind those on other queues.
    is_ordered: bool,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Element> Copy for View<'_, T> {}

impl<'a, T: Element> From<&'a Buffer<T>> for View<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        let (device, memory) = (&buffer.device, &buffer.memory);
        Self {
            device,
            memory,
            first: 0,
            len: buffer.len(),
            secrecy: buffer.secrecy(),
            is_ordered: false,
            element: PhantomData,
        }
    }
}

impl<'a, T: Element> From<&'a mut Buffer<T>> for View<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        Self::from(&*buffer)
    }
}

impl<'a, T: Element> From<&View<'a, T>> for View<'a, T> {
    fn from(view: &View<'a, T>) -> Self {
        *view
    }
}

impl<'a, T: Element> From<&'a ViewMut<'_, T>> for View<'a, T> {
    fn from(view: &'a ViewMut<'_, T>) -> Self {
        view.as_view()
    }
}

impl<'a, T: Element> From<&'a mut ViewMut<'_, T>> for View<'a, T> {
    fn from(view: &'a mut ViewMut<'_, T>) -> Self {
        view.as_view()
    }
}

impl<'a, T: Element> From<&'a mut Buffer<T>> for ViewMut<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        let (len, secrecy) = (buffer.len(), buffer.secrecy());
        let (device, owner) = (&buffer.device, Owner::Whole(&mut buffer.memory));
        Self { device, owner, first: 0, len, secrecy, is_ordered: false, element: PhantomData }
    }
}

impl<'a, T: Element> From<&'a mut ViewMut<'_, T>> for ViewMut<'a, T> {
    fn from(view: &'a mut ViewMut<'_, T>) -> Self {
        view.reborrow()
    }
}

impl<'a, T: Element> View<'a, T> {
    /// Returns the device that holds the elements.
    pub fn device(&self) -> &'a Device {
        self.device
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the index of its first element in the buffer.
    pub fn start(&self) -> usize {
        self.first
    }

    /// Returns whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes of the elements on the device.
    pub fn bytes(&self) -> u64 {
        self.len as u64 * T::BYTES as u64
    }

    /// Returns the secrecy of the buffer. Results computed from secret elements belong in secret memory.
    pub fn secrecy(&self) -> Secrecy {
        self.secrecy
    }

    /// Returns a view of the same elements that counts as public. Use it for results that are no secret once they are
    /// computed, such as a commitment, a ciphertext or a proof.
    ///
    /// Operations and copies may write results of the view to public memory. Their own scratch memory is then public
    /// too, and is not zeroed. The buffer itself stays secret and is zeroed when it is dropped.
    #[must_use]
    pub fn declassify(&self) -> Self {
        Self { secrecy: Secrecy::Public, ..*self }
    }

    /// Returns a view of the same elements whose uses do not wait for other queues. Use it for parts that a range
    /// cannot describe, such as columns that arrive one after the other.
    ///
    /// # Safety
    /// You order the uses of the view by events: behind all work on other queues that writes elements which they read.
    #[must_use]
    pub unsafe fn assume_ordered(&self) -> Self {
        Self { is_ordered: true, ..*self }
    }

    /// Borrows a range of the view's elements.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a range that leaves it, or that ends before it starts.
    pub fn view(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        let range = checked("a view", &range, self.len)?;
        Ok(Self { first: self.first + range.start, len: range.len(), ..*self })
    }

    /// Divides the view at index `at`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there are fewer than `at` elements.
    pub fn split_at(&self, at: usize) -> Result<(Self, Self)> {
        Ok((self.view(..at)?, self.view(at..)?))
    }

    /// Returns an error unless this view, the argument called `what`, has `len` elements.
    ///
    /// # Errors
    /// [`Error::Length`] if its length is not `len`.
    pub fn expect_len(&self, what: &'static str, len: usize) -> Result<()> {
        if self.len == len {
            return Ok(());
        }
        Err(Error::Length { what, expected: len as u64, actual: self.len as u64 })
    }

    /// The whole allocation.
    pub(crate) fn memory(&self) -> &'a Memory {
        self.memory
    }

    /// Its bytes.
    pub(crate) fn span(&self) -> Span<'a> {
        let bytes = self.byte_range();
        self.span_of(&bytes)
    }

    /// Bytes of the buffer, which no one writes as long as this view is there.
    pub(crate) fn span_of(&self, bytes: &Range<u64>) -> Span<'a> {
        match Span::new(self.memory, bytes.start, bytes.end - bytes.start) {
            Ok(span) => span.with_order(self.is_ordered),
            Err(_) => unreachable!("a view lies in its buffer"),
        }
    }

    fn byte_range(&self) -> Range<u64> {
        byte_range::<T>(self.first, self.len)
    }

    /// Checks a transfer that fills whole host memory and gives the bytes that it is of.
    pub(crate) fn expect_pinned(&self, what: &'static str, host: &HostBuffer) -> Result<Span<'a>> {
        host.expect_download("the host memory of a read")?;
        expect_host(self.device, self.bytes(), host)?;
        self.secrecy.expect_to(host.secrecy(), "read", ["the view", "the host memory of a read"])?;
        Ok(self.span_of(&self.expect_words(what)?))
    }

    /// The bytes, which must be whole words.
    pub(crate) fn expect_words(&self, what: &'static str) -> Result<Range<u64>> {
        let bytes = self.byte_range();
        match covered(self.memory, &bytes) == bytes {
            true => Ok(bytes),
            false => Err(Error::Unaligned { what, expected: 4, offset: bytes.start, count: bytes.end - bytes.start }),
        }
    }

    pub(crate) fn staging(&self, bytes: u64, transfer: Transfer) -> Result<HostBuffer> {
        self.device.host_buffer(bytes as usize, transfer, self.secrecy)
    }

    /// Elements that pass through staging memory in one piece.
    pub(crate) fn staging_len(&self) -> usize {
        staging_len(self.device.info().limits.staging_bytes, self.byte_range().start, T::BYTES as u64)
    }
}

impl<'a, T: Composite> View<'a, T> {
    /// Views the same memory as the parts of the elements, those of the first element first.
    pub fn flattened(&self) -> View<'a, T::Part> {
        let Self { device, memory, secrecy, is_ordered, .. } = *self;
        let parts = T::BYTES / T::Part::BYTES;
        View {
            device,
            memory,
            first: self.first * parts,
            len: self.len * parts,
            secrecy,
            is_ordered,
            element: PhantomData,
        }
    }
}

impl<'a, T: Composite> ViewMut<'a, T> {
    /// Turns the view into one of the parts of its elements, those of the first element first.
    pub fn flattened(self) -> ViewMut<'a, T::Part> {
        let Self { device, owner, first, len, secrecy, is_ordered, .. } = self;
        let parts = T::BYTES / T::Part::BYTES;
        ViewMut { device, owner, first: first * parts, len: len * parts, secrecy, is_ordered, element: PhantomData }
    }
}

impl<'a, T: Element> ViewMut<'a, T> {
    /// Returns the device that holds the elements.
    pub fn device(&self) -> &'a Device {
        self.device
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the index of its first element in the buffer.
    pub fn start(&self) -> usize {
        self.first
    }

    /// Returns whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes of the elements on the device.
    pub fn bytes(&self) -> u64 {
        self.as_view().bytes()
    }

    /// Returns whether the buffer is zeroed when it is dropped.
    pub fn secrecy(&self) -> Secrecy {
        self.secrecy
    }

    /// Borrows the same elements for reading.
    pub fn as_view(&self) -> View<'_, T> {
        let Self { device, first, len, secrecy, is_ordered, .. } = *self;
        View { device, memory: self.owner.memory(), first, len, secrecy, is_ordered, element: PhantomData }
    }

    /// Returns a view of the same elements whose uses do not wait for other queues, as [`View::assume_ordered`] does.
    ///
    /// # Safety
    /// You order the uses of the view by events. They come after all work on other queues that reads elements which
    /// they write, or that writes elements which they read or write.
    #[must_use]
    pub unsafe fn assume_ordered(self) -> Self {
        Self { is_ordered: true, ..self }
    }

    /// Borrows the view for a shorter time, so that you can pass it on and use it again.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        let Self { device, first, len, secrecy, is_ordered, .. } = *self;
        ViewMut { device, owner: self.owner.reborrow(), first, len, secrecy, is_ordered, element: PhantomData }
    }

    /// Borrows a range of the view's elements for reading.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a range that leaves the view, or that ends before it starts.
    pub fn view(&self, range: impl RangeBounds<usize>) -> Result<View<'_, T>> {
        self.as_view().view(range)
    }

    /// Borrows a range of the view's elements for reading and writing.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a range that leaves the view, or that ends before it starts.
    pub fn view_mut(&mut self, range: impl RangeBounds<usize>) -> Result<ViewMut<'_, T>> {
        self.reborrow().into_part(range)
    }

    /// Narrows the view to a range of its elements, for the rest of its life.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the range leaves the view, or ends before it starts.
    pub fn into_part(self, range: impl RangeBounds<usize>) -> Result<Self> {
        let range = checked("a view", &range, self.len)?;
        Ok(Self { first: self.first + range.start, len: range.len(), ..self })
    }

    /// Divides the view at index `at` into two views that do not overlap.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there are fewer than `at` elements. [`Error::Unaligned`] if the second part starts
    /// within a word of 4 bytes, other than at the end of the buffer.
    pub fn split_at(self, at: usize) -> Result<(Self, Self)> {
        let range = checked("a view", &(at..), self.len)?;
        let (middle, bytes) = (byte_range::<T>(self.first + at, 0).start, self.bytes());
        if !middle.is_multiple_of(4) && middle != self.owner.memory().bytes() {
            return Err(Error::Unaligned { what: "a view", expected: 4, offset: middle, count: bytes });
        }
        let Self { device, owner, first, secrecy, is_ordered, .. } = self;
        let memory = owner.into_shared();
        let part = |first, len| Self {
            device,
            owner: Owner::Part(memory),
            first,
            len,
            secrecy,
            is_ordered,
            element: PhantomData,
        };
        Ok((part(first, at), part(first + at, range.len())))
    }

    /// Returns an error unless this view, the argument called `what`, has `len` elements.
    ///
    /// # Errors
    /// [`Error::Length`] if its length is not `len`.
    pub fn expect_len(&self, what: &'static str, len: usize) -> Result<()> {
        self.as_view().expect_len(what, len)
    }

    /// The whole allocation.
    pub(crate) fn memory(&self) -> &Memory {
        self.owner.memory()
    }

    /// The right to the elements.
    pub(crate) fn owner_mut(&mut self) -> &mut Owner<'a> {
        &mut self.owner
    }

    /// Bytes of the buffer, to which this view is the right.
    pub(crate) fn span_mut_of(&mut self, bytes: &Range<u64>) -> SpanMut<'_> {
        SpanMut::of(self.owner.reborrow(), bytes.start, bytes.end - bytes.start).with_order(self.is_ordered)
    }

    /// Refuses host memory of another device or length, and secret memory if this view is public.
    pub(crate) fn expect_source(&self, host: &HostBuffer) -> Result<()> {
        expect_host(self.device, self.bytes(), host)?;
        host.secrecy().expect_to(self.secrecy, "write", ["the host memory of a write", "the view"])
    }

    /// Its bytes.
    pub(crate) fn into_span(self) -> SpanMut<'a> {
        let bytes = byte_range::<T>(self.first, self.len);
        SpanMut::of(self.owner, bytes.start, bytes.end - bytes.start).with_order(self.is_ordered)
    }

    /// Its bytes, which must be whole words.
    pub(crate) fn expect_span(&mut self, what: &'static str) -> Result<SpanMut<'_>> {
        self.as_view().expect_words(what)?;
        Ok(self.reborrow().into_span())
    }
}

/// A range of `len` elements.
fn checked(what: &'static str, range: &impl RangeBounds<usize>, len: usize) -> Result<Range<usize>> {
    let start = match range.start_bound() {
        Bound::Included(start) => Some(*start),
        Bound::Excluded(before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.checked_add(1),
        Bound::Excluded(end) => Some(*end),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => Ok(start..end),
        (start, end) => {
            let (start, end) = (start.unwrap_or(usize::MAX), end.unwrap_or(usize::MAX));
            let (offset, count) = (start as u64, end.saturating_sub(start) as u64);
            Err(Error::OutOfRange { what, offset, count, len: len as u64 })
        }
    }
}

pub(crate) fn byte_range<T: Element>(first: usize, len: usize) -> Range<u64> {
    let size = T::BYTES as u64;
    first as u64 * size..(first + len) as u64 * size
}

/// Elements of the longest pieces that take at most `bytes` of staging memory each. An element has `size` bytes, and
/// the first piece starts at byte `start`. The number is a multiple of four, so that all pieces start at whole words
/// if the first does.
pub(crate) fn staging_len(bytes: u64, start: u64, size: u64) -> usize {
    // Pieces between words take parts of one more.
    let bytes = if start.is_multiple_of(4) { bytes } else { bytes.saturating_sub(4) };
    // Bounded, so that the end of a piece stays in the range of indices.
    let len = usize::try_from(bytes / size).unwrap_or(usize::MAX).min(isize::MAX as usize / 2);
    (len / 4 * 4).max(4)
}

/// The words around a range of bytes.
pub(crate) fn covered(memory: &Memory, bytes: &Range<u64>) -> Range<u64> {
    bytes.start / 4 * 4..bytes.end.next_multiple_of(4).min(memory.bytes())
}

/// Refuses host memory of another device or length.
fn expect_host(device: &Device, bytes: u64, host: &HostBuffer) -> Result<()> {
    let (expected, actual) = (device.info().id, host.device());
    if expected != actual {
        return Err(Error::WrongDevice { what: "the host memory of a copy", expected, actual });
    }
    let actual = host.len() as u64;
    if bytes != actual {
        return Err(Error::Length { what: "the host memory of a copy, in bytes", expected: bytes, actual });
    }
    Ok(())
}

/// Refuses a transfer of a matrix in blocks of columns unless rows of all blocks have the same number of elements.
pub(crate) fn expect_columns<T: Element>(host: &HostBuffer, rows: usize, pieces: usize) -> Result<()> {
    let (len, unit) = (host.len() as u64, rows.saturating_mul(pieces).saturating_mul(T::BYTES) as u64);
    let expected = match unit {
        0 => 0,
        // Nothing is one block at most: blocks without columns could be any number.
        _ if pieces > 1 => len.max(1).checked_next_multiple_of(unit).unwrap_or(unit),
        _ => len.checked_next_multiple_of(unit).unwrap_or(unit),
    };
    let expected = if len == 0 && pieces > 1 { unit.max(T::BYTES as u64) } else { expected };
    if expected != len {
        return Err(Error::Length { what: "the blocks of columns of a copy, in bytes", expected, actual: len });
    }
    Ok(())
}

impl<T: Element> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("device", &self.device)
            .field("first", &self.first)
            .field("len", &self.len)
            .field("element", &std::any::type_name::<T>())
            .finish_non_exhaustive()
    }
}

impl<T: Element> fmt::Debug for ViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_view().fmt(f)
    }
}

impl<T: Element> Buffer<T> {
    /// Borrows the whole buffer for reading.
    pub fn as_view(&self) -> View<'_, T> {
        self.into()
    }

    /// Borrows the whole buffer for reading and writing.
    pub fn as_view_mut(&mut self) -> ViewMut<'_, T> {
        self.into()
    }

    /// Borrows a range of elements for reading.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a range that leaves the buffer, or that ends before it starts.
    pub fn view(&self, range: impl RangeBounds<usize>) -> Result<View<'_, T>> {
        self.as_view().view(range)
    }

    /// Borrows a range of elements for reading and writing. [`ViewMut::split_at`] gives several at once.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a range that leaves the buffer, or that ends before it starts.
    pub fn view_mut(&mut self, range: impl RangeBounds<usize>) -> Result<ViewMut<'_, T>> {
        self.as_view_mut().into_part(range)
    }

    /// Returns an error unless this buffer, the argument called `what`, has `len` elements.
    ///
    /// # Errors
    /// [`Error::Length`] if its length is not `len`.
    pub fn expect_len(&self, what: &'static str, len: usize) -> Result<()> {
        self.as_view().expect_len(what, len)
    }
}
