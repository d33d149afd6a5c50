//! Memory that the threads of a CPU body write at places of their own.

use std::{
    slice,
    sync::atomic::{AtomicU32, Ordering},
};

/// A slice of words whose elements different threads write, each of them at most once. Should two write the same one,
/// as they would for counts that are not those of the keys, it has the word of either.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scattered<'a>(&'a [AtomicU32]);

impl<'a> Scattered<'a> {
    pub(crate) fn new(words: &'a mut [u32]) -> Self {
        // SAFETY: the words are borrowed exclusively for as long, and atomic ones have their size, alignment and
        // values.
        Self(unsafe { slice::from_raw_parts(words.as_mut_ptr().cast(), words.len()) })
    }

    /// Writes one element, which is a plain store; nothing where there is no such element.
    pub(crate) fn write(&self, i: usize, value: u32) {
        if let Some(word) = self.0.get(i) {
            word.store(value, Ordering::Relaxed);
        }
    }
}
