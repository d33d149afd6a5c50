//! Elements of Plonky3's fields in buffers of a device.

use std::{fmt, marker::PhantomData, slice};

use ark_ff::FftField;
use evariste_backend::{Element, Error, Result, author::Composite};
use evariste_field::{DevicePrimeField, Mont, small};
use evariste_hash::Poseidon2Field;
use p3_field::{PrimeField64, TwoAdicField};

mod sealed {
    /// Keeps others from implementing what `unsafe` code relies on.
    pub trait Sealed {}
}
use sealed::Sealed;

/// A field of Plonky3 that devices compute in. Its elements lie in memory as they do on a device: in Montgomery form
/// with R = 2^32.
pub trait DeviceValue: TwoAdicField + PrimeField64 + Default + Sealed {
    /// The same field in Evariste.
    type Device: DevicePrimeField + FftField + Poseidon2Field;
}

impl Sealed for p3_baby_bear::BabyBear {}
impl Sealed for p3_koala_bear::KoalaBear {}

impl DeviceValue for p3_baby_bear::BabyBear {
    type Device = small::BabyBear;
}

impl DeviceValue for p3_koala_bear::KoalaBear {
    type Device = small::KoalaBear;
}

/// The words of elements.
fn words<P: DeviceValue>(values: &[P]) -> &[u32] {
    const { assert!(size_of::<P>() == 4 && align_of::<P>() == 4) };
    // SAFETY: elements of the two fields are transparent wrappers of `u32` (`MontyField31`), and have its size.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// The words of elements, for writing those of other elements: integers below p.
fn words_mut<P: DeviceValue>(values: &mut [P]) -> &mut [u32] {
    const { assert!(size_of::<P>() == 4 && align_of::<P>() == 4) };
    // SAFETY: as above. What callers write is below p.
    unsafe { slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
}

/// The type of a buffer of elements of a field of Plonky3. [`View::flattened`](evariste_backend::View::flattened) gives
/// the view that algorithms of Evariste take.
pub struct Values<P>(PhantomData<fn() -> P>);

impl<P> fmt::Debug for Values<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Values")
    }
}

impl<P: DeviceValue> Element for Values<P> {
    type Host = P;

    const BYTES: usize = 4;
    const COPIED: bool = true;

    fn encode(src: &[P], dst: &mut [u8]) {
        dst.copy_from_slice(bytemuck::cast_slice(words(src)));
    }

    fn decode(src: &[u8], dst: &mut [P]) -> Result<()> {
        let src = bytemuck::cast_slice::<u8, u32>(src);
        if let Some(index) = src.iter().position(|word| u64::from(*word) >= P::ORDER_U64) {
            return Err(Error::Undecodable { index: index as u64 });
        }
        words_mut(dst).copy_from_slice(src);
        Ok(())
    }
}

// SAFETY: an element is one word below p, as an element of the device's field is, and any such word is an element.
unsafe impl<P: DeviceValue> Composite for Values<P> {
    type Part = Mont<P::Device>;
}

/// An element in Evariste's field.
pub(crate) fn to_device<P: DeviceValue>(x: P) -> P::Device {
    P::Device::from(x.as_canonical_u64())
}

#[cfg(test)]
mod tests {
    use evariste_backend::Device;

    use super::*;

    fn check<P: DeviceValue>() {
        let values: Vec<P> = (0..100u64).map(|i| P::from_u64(i * i * 0x1234_5677)).chain([P::NEG_ONE]).collect();
        let device = Device::cpu();
        let buffer = device.upload::<Values<P>>(&values).unwrap();
        let there = buffer.as_view().flattened().to_vec().unwrap();
        assert_eq!(there, values.iter().map(|x| to_device(*x)).collect::<Vec<_>>());
        assert_eq!(buffer.to_vec().unwrap(), values);
        let mut bytes = [0; 8];
        Values::<P>::encode(&[P::ONE, P::TWO], &mut bytes);
        bytes[4..].copy_from_slice(&(P::ORDER_U64 as u32).to_le_bytes());
        let decoded =
            Values::<P>::decode(bytemuck::cast_slice(&bytemuck::cast::<_, [u32; 2]>(bytes)), &mut [P::ONE; 2]);
        assert_eq!(decoded, Err(Error::Undecodable { index: 1 }));
    }

    #[test]
    fn values_are_the_same_on_both_sides() {
        check::<p3_baby_bear::BabyBear>();
        check::<p3_koala_bear::KoalaBear>();
    }
}
