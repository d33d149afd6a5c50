//! Memory of a call that may never end.

use std::{mem::ManuallyDrop, ptr};

use evariste_backend::author::Wiped;

use crate::cluster::TORN;

/// Memory that a library sends from or receives to. Unless it is taken back, it is left to the library for good: it is
/// never freed, and holds nothing but [`TORN`].
#[derive(Debug)]
pub(crate) struct Lent {
    start: *mut u8,
    len: usize,
}

impl Lent {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self::new(bytes.into())
    }

    pub(crate) fn zeros(len: usize) -> Self {
        Self::new(vec![0; len].into_boxed_slice())
    }

    fn new(memory: Box<[u8]>) -> Self {
        let len = memory.len();
        Self { start: Box::into_raw(memory).cast(), len }
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Takes the memory back.
    ///
    /// # Safety
    /// The library does not use it any more.
    pub(crate) unsafe fn take(self) -> Wiped<u8> {
        let own = ManuallyDrop::new(self);
        // SAFETY: both come from a box, and nobody else uses it.
        let memory = unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(own.start, own.len)) };
        Wiped::from(memory.into_vec())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        for i in 0..self.len {
            // SAFETY: the memory has `len` bytes and is never freed. What the library does with it meanwhile is nothing
            // that this process relies on. Others are told by the value, or do not hear the end of the call.
            unsafe { self.start.add(i).write_volatile(TORN) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_a_library_holds_no_secrets() {
        let lent = Lent::of(&[7; 100]);
        let start = lent.start();
        drop(lent);
        // SAFETY: such memory is never freed.
        assert!((0..100).all(|i| unsafe { start.add(i).read() } == TORN));
        // SAFETY: there is no library.
        assert_eq!(*unsafe { Lent::of(&[1, 2]).take() }, [1, 2]);
        // SAFETY: as above.
        assert!(unsafe { Lent::zeros(0).take() }.is_empty());
    }
}
