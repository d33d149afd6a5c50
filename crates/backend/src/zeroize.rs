//! Zeroing of secrets in host memory.

use std::{
    fmt, hint,
    ops::{Deref, DerefMut},
    sync::atomic,
};

use rayon::prelude::*;

/// Zeroes all memory of a vector, including its spare capacity, and leaves the vector empty. CPU bodies of kernels
/// call it at the speed of memory on scratch that may hold secrets, whether it does or not.
pub fn zeroize_vec<T: Copy>(memory: &mut Vec<T>) {
    memory.clear();
    // SAFETY: the vector owns room for `capacity` elements, and is empty.
    unsafe { memory.as_mut_ptr().write_bytes(0, memory.capacity()) };
    hint::black_box(memory);
}

/// A vector that zeroes all of its memory when it is dropped, also on errors and panics. It is for intermediate
/// results of a host that may depend on secrets.
///
/// It zeroes the memory that it has in the end. A vector that grows leaves its former memory as it was, so reserve all
/// the room it needs ([`Wiped::with_capacity`]).
#[derive(Clone)]
pub struct Wiped<T: Copy>(Vec<T>);

impl<T: Copy> Wiped<T> {
    /// Makes an empty vector with room for `capacity` elements.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }
}

impl<T: Copy> Default for Wiped<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> From<Vec<T>> for Wiped<T> {
    fn from(memory: Vec<T>) -> Self {
        Self(memory)
    }
}

impl<T: Copy> Deref for Wiped<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Copy> DerefMut for Wiped<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T: Copy> Drop for Wiped<T> {
    fn drop(&mut self) {
        zeroize_vec(&mut self.0);
    }
}

impl<T: Copy> fmt::Debug for Wiped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wiped").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// From this length in bytes on, several threads share the work in pieces of it.
const PIECE: usize = 1 << 20;

/// Zeroes memory before it goes to someone else, at the speed of memory. Volatile writes of single words took five
/// times as long as the copies they clean up after.
pub(crate) fn zeroize(bytes: &mut [u8]) {
    match bytes.len() {
        0..=PIECE => bytes.fill(0),
        _ => bytes.par_chunks_mut(PIECE).for_each(|piece| piece.fill(0)),
    }
    // The compiler has to assume that someone reads the zeros, so that it cannot leave them out.
    hint::black_box(bytes);
    atomic::compiler_fence(atomic::Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_wiped_to_their_capacity() {
        let mut memory = vec![7u32; 100];
        memory.truncate(50);
        zeroize_vec(&mut memory);
        assert!(memory.is_empty() && memory.capacity() >= 100);
        // SAFETY: it has room for 100 elements, which `zeroize_vec` has written.
        unsafe { memory.set_len(100) };
        assert_eq!(memory, [0; 100]);
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(format!("{:?}", Wiped::from(vec![0x5ec2e7u32; 3])), "Wiped { len: 3, .. }");
    }

    #[test]
    fn everything_is_zeroed() {
        for len in [0, 1, 100, PIECE, 3 * PIECE + 5] {
            let mut bytes = vec![0xa5; len];
            zeroize(&mut bytes);
            assert!(bytes.iter().all(|byte| *byte == 0));
        }
    }
}
