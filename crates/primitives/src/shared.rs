//! Memory that the threads of a CPU body write at places of their own.

use std::marker::PhantomData;

/// A slice whose elements different threads write, each of them at most once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scattered<'a, T> {
    start: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: threads only write, and `write` requires that no two of them write the same element.
unsafe impl<T: Send> Sync for Scattered<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Scattered<'_, T> {}

impl<'a, T: Copy> Scattered<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), borrow: PhantomData }
    }

    /// Writes one element.
    ///
    /// # Safety
    /// No other thread writes element `i` while the slice is shared.
    pub(crate) unsafe fn write(&self, i: usize, value: T) {
        assert!(i < self.len);
        // SAFETY: inside the slice, which is borrowed exclusively; the caller keeps other threads off.
        unsafe { self.start.add(i).write(value) }
    }
}
