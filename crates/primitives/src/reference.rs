//! Naive versions of the primitives, to compare with.

use std::ops::Range;

/// Returns for each element the sum of those before it, modulo 2³², and then the sum of all.
pub fn exclusive_scan(input: &[u32]) -> Vec<u32> {
    let mut out = vec![0u32];
    for (i, x) in input.iter().enumerate() {
        out.push(out[i].wrapping_add(*x));
    }
    out
}

/// Returns the integer that these bits of a key make.
pub fn digit(key: u32, bits: &Range<u32>) -> u32 {
    bits.clone().rev().fold(0, |digit, bit| digit << 1 | key >> bit & 1)
}

/// Returns for each value of these bits how many keys have it.
pub fn histogram(keys: &[u32], bits: &Range<u32>) -> Vec<u32> {
    let mut counts = vec![0; 1 << bits.len()];
    keys.iter().for_each(|key| counts[digit(*key, bits) as usize] += 1);
    counts
}

/// Returns keys and values in the order of a digit of the keys, and of equal digits in the order they had.
pub fn sort(keys: &[u32], values: &[u32], bits: &Range<u32>) -> (Vec<u32>, Vec<u32>) {
    let mut pairs: Vec<(u32, u32)> = keys.iter().copied().zip(values.iter().copied()).collect();
    pairs.sort_by_key(|(key, _)| digit(*key, bits));
    pairs.into_iter().unzip()
}

/// Returns for each k below `segments` the sum of the values whose key is k.
pub fn segmented_sum<T: Copy>(keys: &[u32], values: &[T], segments: usize, zero: T, add: impl Fn(T, T) -> T) -> Vec<T> {
    let mut sums = vec![zero; segments];
    for (key, value) in keys.iter().zip(values) {
        if let Some(sum) = sums.get_mut(*key as usize) {
            *sum = add(*sum, *value);
        }
    }
    sums
}

/// `a[indices[i]]`, and the default value where there is no such element.
pub fn gather<T: Copy + Default>(a: &[T], indices: &[u32]) -> Vec<T> {
    indices.iter().map(|i| a.get(*i as usize).copied().unwrap_or_default()).collect()
}

/// `out[indices[i]] = a[i]`, one after the other, where there is such a place.
pub fn scatter<T: Copy>(a: &[T], indices: &[u32], out: &mut [T]) {
    for (x, index) in a.iter().zip(indices) {
        if let Some(place) = out.get_mut(*index as usize) {
            *place = *x;
        }
    }
}
