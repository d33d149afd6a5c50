//! Zeroing of secrets in host memory.

use std::{hint, sync::atomic};

use rayon::prelude::*;

/// Zeroes all memory of a vector, that behind its elements too, and leaves it empty. For CPU bodies of kernels, whose memory
/// may hold what comes of secrets: at the speed of memory, so that it need not be told when it does.
pub fn zeroize_vec<T: Copy + Default>(memory: &mut Vec<T>) {
    memory.clear();
    memory.resize(memory.capacity(), T::default());
    hint::black_box(&mut *memory);
    memory.clear();
}

/// Bytes from which several threads share the work, each taking as many at a time.
const PIECE: usize = 1 << 20;

/// Zeroes memory before it goes to someone else, at the speed of memory: volatile writes of single words took five times
/// as long as the copies they clean up after.
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
        // SAFETY: it has room for so many, which `zeroize_vec` has written.
        unsafe { memory.set_len(100) };
        assert_eq!(memory, [0; 100]);
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
