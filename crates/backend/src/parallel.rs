//! Loops over all cores with bodies behind a reference. Compiling each body, over each of many fields, together with
//! rayon's machinery would take several times as long.

use std::{ops::Range, slice};

use rayon::prelude::*;

/// Calls `body` with each number below `count`, on rayon's pool.
pub fn for_each(count: usize, body: &(dyn Fn(usize) + Sync)) {
    match count {
        0 => {}
        1 => body(0),
        _ => (0..count).into_par_iter().for_each(body),
    }
}

/// Ranges of a thread in [`ranges`].
const PARTS: usize = 4;

/// Splits the numbers below `count` into a few ranges for each thread, and calls `body` with each, on rayon's pool.
/// Use it for work that shares an expensive set-up.
pub fn ranges(count: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
    let each = count.div_ceil(PARTS * rayon::current_num_threads()).max(1);
    for_each(count.div_ceil(each), &|i| body(i * each..count.min((i * each).saturating_add(each))));
}

/// Runs `work` on a thread of rayon's pool, or here if this is one. Use it for work of many parallel steps: outside
/// the pool, each step would enter the pool and wake this thread at its end.
pub fn in_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| work())
}

/// A place that threads write parts of, each its own.
#[derive(Clone, Copy)]
struct Place<T>(*mut T);

// SAFETY: users of the place see to it that no two threads use the same part.
unsafe impl<T: Send> Send for Place<T> {}
// SAFETY: see above.
unsafe impl<T: Send> Sync for Place<T> {}

impl<T> Place<T> {
    /// # Safety
    /// The part lies inside the data, and nobody else uses it.
    unsafe fn part<'a>(&self, start: usize, len: usize) -> &'a mut [T] {
        // SAFETY: the caller says so.
        unsafe { slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}

/// Splits `data` into chunks of `len` elements and calls `body` with the index of each chunk and the chunk, on rayon's
/// pool. The last chunk may be shorter.
///
/// # Panics
/// If `len` is 0.
pub fn chunks<T: Send>(data: &mut [T], len: usize, body: &(dyn Fn(usize, &mut [T]) + Sync)) {
    let (place, all) = (Place(data.as_mut_ptr()), data.len());
    for_each(all.div_ceil(len), &|i| {
        let start = i * len;
        // SAFETY: chunks are disjoint and lie inside `data`, which is borrowed until all are done.
        body(i, unsafe { place.part(start, len.min(all - start)) });
    });
}

/// Bytes that a thread copies at a time.
const COPY_BYTES: usize = 1 << 18;

/// Copies bytes, many of them on all cores: one core copies at a third of the rate of a link to a device, or less.
///
/// # Panics
/// If the lengths differ.
pub fn copy(src: &[u8], dst: &mut [u8]) {
    assert_eq!(src.len(), dst.len());
    chunks(dst, COPY_BYTES, &|i, dst| dst.copy_from_slice(&src[i * COPY_BYTES..][..dst.len()]));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn copies_are_whole() {
        for len in [0, 1, COPY_BYTES, 3 * COPY_BYTES + 5] {
            let src: Vec<u8> = (0..len).map(|i| (i * 7 + i / 251) as u8).collect();
            let mut dst = vec![0; len];
            copy(&src, &mut dst);
            assert_eq!(dst, src);
        }
    }

    #[test]
    fn every_number_comes_once() {
        for count in [0, 1, 2, 1000] {
            let seen: Vec<AtomicUsize> = (0..count).map(AtomicUsize::new).collect();
            for_each(count, &|i| {
                seen[i].fetch_add(1, Ordering::Relaxed);
            });
            assert!(seen.iter().enumerate().all(|(i, seen)| seen.load(Ordering::Relaxed) == i + 1));
        }
    }

    #[test]
    fn ranges_have_every_number_once() {
        for count in [0, 1, 2, 1000] {
            let seen: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            ranges(count, &|range| {
                for i in range {
                    seen[i].fetch_add(1, Ordering::Relaxed);
                }
            });
            assert!(seen.iter().all(|seen| seen.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn chunks_are_those_of_slices() {
        for (len, chunk) in [(0, 1), (1, 1), (10, 3), (12, 3), (5, 8), (1000, 1)] {
            let mut data = vec![0; len];
            chunks(&mut data, chunk, &|i, data| data.fill(i + 1));
            let expected: Vec<usize> = (0..len).map(|at| at / chunk + 1).collect();
            assert_eq!(data, expected);
        }
    }

    #[test]
    #[should_panic(expected = "divide by zero")]
    fn chunks_of_nothing_panic() {
        chunks(&mut [1], 0, &|_, _| {});
    }
}
