//! Ranges of an allocation, as backends get them.

use std::ops::Range;

use crate::{
    error::{Error, Result},
    handles::Memory,
};

/// A yes or no as wide as what lies beside it. What has padding is moved to the heap with what the stack held there
/// before, such as words of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Flag {
    No,
    Yes,
}

impl From<bool> for Flag {
    fn from(value: bool) -> Self {
        if value { Self::Yes } else { Self::No }
    }
}

/// A range of bytes of an allocation that nobody writes meanwhile. Only views of buffers make spans: a handle to an
/// allocation does not say which part belongs to whom.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    memory: &'a Memory,
    at: u64,
    bytes: u64,
    is_ordered: Flag,
}

impl<'a> Span<'a> {
    /// `bytes` bytes from byte `at` on, which the caller knows that nobody writes.
    pub(crate) fn new(memory: &'a Memory, at: u64, bytes: u64) -> Result<Self> {
        expect_range(memory, at, bytes)?;
        Ok(Self { memory, at, bytes, is_ordered: Flag::No })
    }

    /// Returns the allocation. Others may write bytes outside the range.
    pub fn memory(&self) -> &'a Memory {
        self.memory
    }

    /// Returns where the range starts in its allocation, in bytes.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Returns the length of the range in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether the maker of the span orders its uses behind those on other queues
    /// ([`crate::View::assume_ordered`]). The backend then adds no waits.
    pub fn is_ordered(&self) -> bool {
        self.is_ordered == Flag::Yes
    }

    pub(crate) fn with_order(self, is_ordered: bool) -> Self {
        Self { is_ordered: is_ordered.into(), ..self }
    }

    /// Returns whether the range is the whole allocation.
    pub fn is_whole(&self) -> bool {
        self.bytes == self.memory.bytes()
    }

    /// Returns `bytes` bytes from byte `at` of the range on.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if they leave the range.
    pub fn part(&self, at: u64, bytes: u64) -> Result<Self> {
        match at.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(Self { at: self.at + at, bytes, ..*self }),
            _ => Err(Error::OutOfRange { what: "a part of a range", offset: at, count: bytes, len: self.bytes }),
        }
    }
}

/// A range of bytes of an allocation that nobody else reads or writes. Like `&mut`, it is an exclusive right. It is
/// made from a `&mut Memory`, and divided.
#[derive(Debug)]
pub struct SpanMut<'a> {
    owner: Owner<'a>,
    at: u64,
    bytes: u64,
    is_ordered: Flag,
}

/// The right to a part of an allocation, which the owner of this value keeps track of.
#[derive(Debug)]
pub(crate) enum Owner<'a> {
    /// There is no other part.
    Whole(&'a mut Memory),
    /// There are others.
    Part(&'a Memory),
}

impl<'a> Owner<'a> {
    pub(crate) fn memory(&self) -> &Memory {
        match self {
            Owner::Whole(memory) => memory,
            Owner::Part(memory) => memory,
        }
    }

    pub(crate) fn reborrow(&mut self) -> Owner<'_> {
        match self {
            Owner::Whole(memory) => Owner::Whole(memory),
            Owner::Part(memory) => Owner::Part(memory),
        }
    }

    /// As what two may hold.
    pub(crate) fn into_shared(self) -> &'a Memory {
        match self {
            Owner::Whole(memory) => memory,
            Owner::Part(memory) => memory,
        }
    }
}

impl<'a> SpanMut<'a> {
    /// Takes the right to `bytes` bytes from byte `at` of an allocation on.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the bytes leave the allocation.
    pub fn new(memory: &'a mut Memory, at: u64, bytes: u64) -> Result<Self> {
        expect_range(memory, at, bytes)?;
        Ok(Self { owner: Owner::Whole(memory), at, bytes, is_ordered: Flag::No })
    }

    /// The caller holds the right to these bytes, which lie in the allocation.
    pub(crate) fn of(owner: Owner<'a>, at: u64, bytes: u64) -> Self {
        Self { owner, at, bytes, is_ordered: Flag::No }
    }

    /// Returns the allocation. Bytes outside the range may belong to others.
    pub fn memory(&self) -> &Memory {
        self.owner.memory()
    }

    /// Returns the allocation for changing it, if nobody holds a right to another part of it.
    pub fn memory_mut(&mut self) -> Option<&mut Memory> {
        match &mut self.owner {
            Owner::Whole(memory) => Some(memory),
            Owner::Part(_) => None,
        }
    }

    /// Returns where the range starts in its allocation, in bytes.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Returns the length of the range in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether the maker of the span orders its uses behind those on other queues
    /// ([`crate::View::assume_ordered`]). The backend then adds no waits.
    pub fn is_ordered(&self) -> bool {
        self.is_ordered == Flag::Yes
    }

    pub(crate) fn with_order(self, is_ordered: bool) -> Self {
        Self { is_ordered: is_ordered.into(), ..self }
    }

    /// Returns whether the range is the whole allocation.
    pub fn is_whole(&self) -> bool {
        self.bytes == self.memory().bytes()
    }

    /// Borrows the range for reading.
    pub fn as_span(&self) -> Span<'_> {
        Span { memory: self.memory(), at: self.at, bytes: self.bytes, is_ordered: self.is_ordered }
    }

    /// Lends the right for a shorter time.
    pub fn reborrow(&mut self) -> SpanMut<'_> {
        let Self { at, bytes, is_ordered, .. } = *self;
        SpanMut { owner: self.owner.reborrow(), at, bytes, is_ordered }
    }

    /// Divides the right into that to the first `bytes` bytes and that to the others.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the range has fewer than `bytes` bytes.
    pub fn split_at(self, bytes: u64) -> Result<(Self, Self)> {
        if bytes > self.bytes {
            return Err(Error::OutOfRange { what: "split", offset: bytes, count: 0, len: self.bytes });
        }
        let (at, rest, is_ordered) = (self.at, self.bytes - bytes, self.is_ordered());
        let memory = self.owner.into_shared();
        let part = |at, bytes| Self::of(Owner::Part(memory), at, bytes).with_order(is_ordered);
        Ok((part(at, bytes), part(at + bytes, rest)))
    }
}

impl<'a> From<&'a mut Memory> for SpanMut<'a> {
    fn from(memory: &'a mut Memory) -> Self {
        let bytes = memory.bytes();
        Self { owner: Owner::Whole(memory), at: 0, bytes, is_ordered: Flag::No }
    }
}

/// Returns an error unless both ends of a transfer have the same length. `what` names the argument.
pub(crate) fn expect_len(what: &'static str, expected: u64, actual: u64) -> Result<()> {
    if expected == actual { Ok(()) } else { Err(Error::Length { what, expected, actual }) }
}

/// The bytes of a row of two matrices of equal shape, of which `columns` are copied.
pub(crate) fn row_bytes(src: &Span<'_>, dst: &SpanMut<'_>, rows: usize, columns: &Range<u64>) -> Result<u64> {
    expect_len("the source of a copy, in bytes", dst.bytes(), src.bytes())?;
    let rows = rows.max(1) as u64;
    if !src.bytes().is_multiple_of(rows) {
        let expected = src.bytes().next_multiple_of(rows);
        return Err(Error::Length { what: "a matrix of whole rows, in bytes", expected, actual: src.bytes() });
    }
    let pitch = src.bytes() / rows;
    if columns.start > columns.end || columns.end > pitch {
        let count = columns.end.saturating_sub(columns.start);
        return Err(Error::OutOfRange { what: "columns of a row, in bytes", offset: columns.start, count, len: pitch });
    }
    Ok(pitch)
}

fn expect_range(memory: &Memory, offset: u64, count: u64) -> Result<()> {
    match offset.checked_add(count) {
        Some(end) if end <= memory.bytes() => Ok(()),
        _ => Err(Error::OutOfRange { what: "a range of memory", offset, count, len: memory.bytes() }),
    }
}
