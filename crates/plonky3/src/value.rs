//! Elements of Plonky3's fields in buffers of a device.

use std::{fmt, marker::PhantomData, slice};

use ark_ff::{AdditiveGroup, FftField, Field, PrimeField};
use evariste_backend::{Element, Error, Result, author::Composite};
use evariste_field::{DevicePrimeField, Mont, small};
use evariste_fri::FriField;
use evariste_hash::Poseidon2Field;
use p3_field::{
    BasedVectorSpace, PrimeField64, TwoAdicField,
    extension::{BinomialExtensionField, BinomiallyExtendable},
};

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

    /// Its extension of degree 4 in Evariste, which Plonky3 calls `BinomialExtensionField<Self, 4>`.
    type Extension: FriField<BasePrimeField = Self::Device>;
}

impl Sealed for p3_baby_bear::BabyBear {}
impl Sealed for p3_koala_bear::KoalaBear {}

impl DeviceValue for p3_baby_bear::BabyBear {
    type Device = small::BabyBear;
    type Extension = small::BabyBear4;
}

impl DeviceValue for p3_koala_bear::KoalaBear {
    type Device = small::KoalaBear;
    type Extension = small::KoalaBear4;
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

/// An element of Evariste's field.
pub(crate) fn from_device<P: DeviceValue>(x: P::Device) -> P {
    P::from_u64(x.into_bigint().as_ref()[0])
}

/// The field of challenges.
pub(crate) type Challenge<P> = BinomialExtensionField<P, 4>;

/// A challenge in Evariste's field.
pub(crate) fn to_extension<P: DeviceValue + BinomiallyExtendable<4>>(x: Challenge<P>) -> P::Extension {
    let coefficients: &[P] = x.as_basis_coefficients_slice();
    let coefficients = coefficients.iter().copied().map(to_device);
    P::Extension::from_base_prime_field_elems(coefficients).unwrap_or(P::Extension::ZERO)
}

/// An element of Evariste's extension.
pub(crate) fn from_extension<P: DeviceValue + BinomiallyExtendable<4>>(x: P::Extension) -> Challenge<P> {
    let mut coefficients = x.to_base_prime_field_elements();
    Challenge::<P>::from_basis_coefficients_fn(|_| coefficients.next().map_or(P::ZERO, from_device))
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

    fn check_extension<P: DeviceValue + BinomiallyExtendable<4>>() {
        let [x, y] =
            [5, 1 << 40].map(|salt| Challenge::<P>::from_basis_coefficients_fn(|i| P::from_u64(salt * 77 + i as u64)));
        assert_eq!(from_extension::<P>(to_extension(x)), x);
        assert_eq!(from_extension::<P>(to_extension(x) * to_extension(y)), x * y);
    }

    #[test]
    fn values_are_the_same_on_both_sides() {
        check_extension::<p3_baby_bear::BabyBear>();
        check_extension::<p3_koala_bear::KoalaBear>();
        check::<p3_baby_bear::BabyBear>();
        check::<p3_koala_bear::KoalaBear>();
    }
}
