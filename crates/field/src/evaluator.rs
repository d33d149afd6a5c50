//! The slots of compiled expressions on the CPU: many rows at a time, in lanes if the processor has AVX-512 IFMA.
//!
//! This module is for authors of kernels, and exempt from semantic versioning.

use evariste_backend::author::Wiped;
use evariste_expression::Slots;

use crate::{
    field::DeviceField,
    ifma::{self, Combination},
};

/// Returns constants for computing in lanes, where a processor has them and elements have the same form on it as on
/// devices.
pub fn lanes_of<E: DeviceField>() -> Option<ifma::Montgomery52> {
    if E::LIMBS.is_multiple_of(2) && E::LIMBS >= 8 { ifma::Montgomery52::of::<E>() } else { None }
}

/// Returns an element of a field below, or of `E` itself, as one of `E`: the coefficients that follow are 0.
pub fn lift<E: DeviceField>(limbs: &[u32]) -> E {
    if limbs.len() >= E::LIMBS {
        return E::load(limbs);
    }
    let mut whole = Wiped::from(vec![0; E::LIMBS]);
    whole[..limbs.len()].copy_from_slice(limbs);
    E::load(&whole)
}

/// The slots of a program, each with a value for every row that a thread takes at a time.
#[derive(Debug)]
pub struct Rows<'a, E: Copy> {
    values: Values<'a, E>,
    stride: usize,
    slots: usize,
}

#[derive(Debug)]
enum Values<'a, E: Copy> {
    One(Wiped<E>),
    /// As on devices, and computed many at a time: one slot more, for sums.
    Lanes(Wiped<u32>, &'a ifma::Montgomery52),
}

impl<'a, E: DeviceField> Rows<'a, E> {
    /// Makes `slots` slots of `stride` rows, all 0. `lanes` come from [`lanes_of`].
    pub fn new(slots: usize, stride: usize, lanes: Option<&'a ifma::Montgomery52>) -> Self {
        let values = match lanes {
            None => Values::One(vec![E::ZERO; slots * stride].into()),
            Some(field) => Values::Lanes(vec![0; (slots + 1) * stride * E::LIMBS].into(), field),
        };
        Self { values, stride, slots }
    }

    /// Where the first rows of a slot start.
    fn start(&self, slot: u32, rows: usize) -> usize {
        assert!(rows <= self.stride, "{rows} rows of slots of {}", self.stride);
        slot as usize * self.stride
    }

    /// Sets the first rows of a slot to the sums, differences or products of those of two slots, which it may be one
    /// of.
    fn combine(&mut self, rows: usize, target: u32, [a, b]: [u32; 2], how: Combination) {
        let [target, a, b] = [target, a, b].map(|slot| self.start(slot, rows));
        match &mut self.values {
            Values::Lanes(values, field) => field.combine(how, values, [target, a, b], rows),
            Values::One(values) => {
                let mut each = |f: fn(E, E) -> E| {
                    for row in 0..rows {
                        values[target + row] = f(values[a + row], values[b + row]);
                    }
                };
                match how {
                    Combination::Sum => each(|a, b| a.native_add(&b)),
                    Combination::Difference => each(|a, b| a.native_sub(&b)),
                    Combination::Product => each(|a, b| a.native_mul(&b)),
                }
            }
        }
    }

    /// Sets the first rows of a slot to the elements of an iterator.
    ///
    /// # Panics
    /// If a slot has fewer rows, here and in the other functions.
    pub fn set(&mut self, target: u32, elements: impl ExactSizeIterator<Item = E>) {
        let target = self.start(target, elements.len());
        match &mut self.values {
            Values::One(values) => values[target..].iter_mut().zip(elements).for_each(|(value, x)| *value = x),
            Values::Lanes(values, _) => {
                let values = values[target * E::LIMBS..].chunks_exact_mut(E::LIMBS);
                values.zip(elements).for_each(|(value, x)| x.store(value));
            }
        }
    }

    fn set_one(&mut self, slot: u32, row: usize, value: E) {
        let at = slot as usize * self.stride + row;
        match &mut self.values {
            Values::One(values) => values[at] = value,
            Values::Lanes(values, _) => value.store(&mut values[at * E::LIMBS..]),
        }
    }

    fn get(&self, slot: u32, row: usize) -> E {
        let at = slot as usize * self.stride + row;
        match &self.values {
            Values::One(values) => values[at],
            Values::Lanes(values, _) => E::load(&values[at * E::LIMBS..]),
        }
    }

    /// Sets the first rows of a slot to elements of `each` limbs, one at the start of every `step` limbs.
    pub fn load(&mut self, rows: usize, target: u32, limbs: &[u32], step: usize, each: usize) {
        let start = self.start(target, rows);
        match &mut self.values {
            Values::Lanes(values, _) if each == E::LIMBS => {
                let values = &mut values[start * E::LIMBS..][..rows * E::LIMBS];
                match step == each {
                    true => values.copy_from_slice(&limbs[..rows * each]),
                    false => values
                        .chunks_exact_mut(each)
                        .zip(limbs.chunks(step))
                        .for_each(|(value, limbs)| value.copy_from_slice(&limbs[..each])),
                }
            }
            _ => self.set(target, limbs.chunks(step).take(rows).map(|limbs| lift(&limbs[..each]))),
        }
    }

    /// Stores the first rows of a slot, each at the start of a `step` elements.
    pub fn store(&self, rows: usize, slot: u32, out: &mut [u32], step: usize) {
        let start = self.start(slot, rows);
        let out = out.chunks_mut(step * E::LIMBS);
        match &self.values {
            Values::One(values) => values[start..][..rows].iter().zip(out).for_each(|(value, out)| value.store(out)),
            Values::Lanes(values, _) => {
                let values = values[start * E::LIMBS..][..rows * E::LIMBS].chunks_exact(E::LIMBS);
                values.zip(out).for_each(|(value, out)| out[..E::LIMBS].copy_from_slice(value));
            }
        }
    }

    /// Returns the sum of the first rows of a slot.
    pub fn sum(&mut self, mut rows: usize, slot: u32) -> E {
        let (spare, start) = (self.slots * self.stride, self.start(slot, rows));
        if let Values::Lanes(values, field) = &mut self.values {
            // Halves are added while they fill the lanes.
            let mut from = start;
            while rows >= 2 * ifma::STEP && rows.is_multiple_of(2) {
                rows /= 2;
                field.combine(Combination::Sum, values, [spare, from, from + rows], rows);
                from = spare;
            }
            let left = values[from * E::LIMBS..][..rows * E::LIMBS].chunks_exact(E::LIMBS);
            return left.map(E::load).sum();
        }
        (0..rows).fold(E::ZERO, |sum, row| sum.native_add(&self.get(slot, row)))
    }
}

impl<E: DeviceField> Slots for Rows<'_, E> {
    fn add(&mut self, rows: usize, target: u32, a: u32, b: u32) {
        self.combine(rows, target, [a, b], Combination::Sum);
    }

    fn sub(&mut self, rows: usize, target: u32, a: u32, b: u32) {
        self.combine(rows, target, [a, b], Combination::Difference);
    }

    fn mul(&mut self, rows: usize, target: u32, a: u32, b: u32) {
        self.combine(rows, target, [a, b], Combination::Product);
    }

    fn negate(&mut self, rows: usize, target: u32, a: u32) {
        (0..rows).for_each(|row| self.set_one(target, row, -self.get(a, row)));
    }

    fn copy(&mut self, rows: usize, target: u32, a: u32) {
        let [target, from] = [target, a].map(|slot| self.start(slot, rows));
        match &mut self.values {
            Values::One(values) => values.copy_within(from..from + rows, target),
            Values::Lanes(values, _) => {
                values.copy_within(from * E::LIMBS..(from + rows) * E::LIMBS, target * E::LIMBS);
            }
        }
    }
}
