//! Zeroing of secrets in host memory.

use std::{hint, sync::atomic};

use rayon::prelude::*;

/// Bytes from which several threads share the work, each taking as many at a time.
const PIECE: usize = 1 << 20;

/// Zeroes memory before it goes to someone else, at the speed of memory: volatile writes of single words took five times
/// as long as the copies they clean up after.
pub(crate) fn erase(bytes: &mut [u8]) {
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
    fn everything_is_zeroed() {
        for len in [0, 1, 100, PIECE, 3 * PIECE + 5] {
            let mut bytes = vec![0xa5; len];
            erase(&mut bytes);
            assert!(bytes.iter().all(|byte| *byte == 0));
        }
    }
}
