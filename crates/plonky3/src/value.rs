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
    use evariste_backend::Result;

    /// How elements lie on a device. It keeps others from implementing what `unsafe` code relies on.
    pub trait Form: Sized {
        /// Bytes of an element.
        const BYTES: usize;

        /// Whether they are those of the host.
        const COPIED: bool;

        fn encode(src: &[Self], dst: &mut [u8]);

        fn decode(src: &[u8], dst: &mut [Self]) -> Result<()>;
    }
}
use sealed::Form;

/// A field of Plonky3 that devices compute in. Elements of BabyBear and KoalaBear lie in memory as they do on a device: in
/// Montgomery form with R = 2^32. Those of Goldilocks are converted.
pub trait DeviceValue: TwoAdicField + PrimeField64 + Default + Form {
    /// The same field in Evariste.
    type Device: DevicePrimeField + FftField + Poseidon2Field;

    /// Its extension in Evariste that challenges are of. Plonky3 calls it `BinomialExtensionField<Self, 4>`, and that of
    /// Goldilocks, which [`DeviceFriPcs`](crate::DeviceFriPcs) does not take, `BinomialExtensionField<Self, 2>`.
    type Extension: FriField<BasePrimeField = Self::Device>;
}

impl DeviceValue for p3_baby_bear::BabyBear {
    type Device = small::BabyBear;
    type Extension = small::BabyBear4;
}

impl DeviceValue for p3_koala_bear::KoalaBear {
    type Device = small::KoalaBear;
    type Extension = small::KoalaBear4;
}

impl DeviceValue for p3_goldilocks::Goldilocks {
    type Device = small::Goldilocks;
    type Extension = small::Goldilocks2;
}

macro_rules! copied {
    ($($field:ty),*) => {$(
        impl Form for $field {
            const BYTES: usize = 4;
            const COPIED: bool = true;

            fn encode(src: &[Self], dst: &mut [u8]) {
                const { assert!(size_of::<Self>() == 4 && align_of::<Self>() == 4) };
                // SAFETY: elements are transparent wrappers of `u32` (`MontyField31`), and have its size.
                let words: &[u32] = unsafe { slice::from_raw_parts(src.as_ptr().cast(), src.len()) };
                dst.copy_from_slice(bytemuck::cast_slice(words));
            }

            fn decode(src: &[u8], dst: &mut [Self]) -> Result<()> {
                let src = bytemuck::cast_slice::<u8, u32>(src);
                if let Some(index) = src.iter().position(|word| u64::from(*word) >= <$field>::ORDER_U64) {
                    return Err(Error::Undecodable { index: index as u64 });
                }
                // SAFETY: as above, and what is written is below p.
                let words: &mut [u32] = unsafe { slice::from_raw_parts_mut(dst.as_mut_ptr().cast(), dst.len()) };
                words.copy_from_slice(src);
                Ok(())
            }
        }
    )*};
}

copied!(p3_baby_bear::BabyBear, p3_koala_bear::KoalaBear);

/// Plonky3 has any integer of 64 bits for an element, a device Montgomery's form with R = 2^64.
impl Form for p3_goldilocks::Goldilocks {
    const BYTES: usize = Mont::<small::Goldilocks>::BYTES;
    const COPIED: bool = false;

    fn encode(src: &[Self], dst: &mut [u8]) {
        for (x, bytes) in src.iter().zip(dst.chunks_exact_mut(<Self as Form>::BYTES)) {
            Mont::encode(&[to_device(*x)], bytes);
        }
    }

    fn decode(src: &[u8], dst: &mut [Self]) -> Result<()> {
        for (index, (bytes, x)) in src.chunks_exact(<Self as Form>::BYTES).zip(dst).enumerate() {
            let mut element = [small::Goldilocks::ZERO];
            Mont::decode(bytes, &mut element).map_err(|_| Error::Undecodable { index: index as u64 })?;
            *x = from_device(element[0]);
        }
        Ok(())
    }
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

    const BYTES: usize = <P as Form>::BYTES;
    const COPIED: bool = <P as Form>::COPIED;

    fn encode(src: &[P], dst: &mut [u8]) {
        P::encode(src, dst);
    }

    fn decode(src: &[u8], dst: &mut [P]) -> Result<()> {
        P::decode(src, dst)
    }
}

// SAFETY: an element is one element of the device's field: words of an integer below p, any of which is an element.
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
        let mut words = [0u64; 2];
        let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..2 * Values::<P>::BYTES];
        Values::<P>::encode(&[P::ONE, P::TWO], bytes);
        bytes[Values::<P>::BYTES..].fill(u8::MAX);
        let decoded = Values::<P>::decode(bytes, &mut [P::ONE; 2]);
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
        check::<p3_goldilocks::Goldilocks>();
    }
}
