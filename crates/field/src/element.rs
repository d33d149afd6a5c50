use std::marker::PhantomData;

use evariste_backend::{Element, Error, Result, author::Composite};

use crate::field::{DeviceField, DevicePrimeField};

/// Field elements in Montgomery form, the form that kernels compute with.
#[derive(Debug)]
pub struct Mont<F>(PhantomData<fn() -> F>);

/// Field elements as canonical integers below p, the form of scalars and of serialised data.
#[derive(Debug)]
pub struct Canonical<F>(PhantomData<fn() -> F>);

impl<F: DeviceField> Element for Mont<F> {
    type Host = F;

    const BYTES: usize = 4 * F::LIMBS;
    const COPIED: bool = F::COPIED;

    fn encode(src: &[F], dst: &mut [u8]) {
        for (x, limbs) in src.iter().zip(bytemuck::cast_slice_mut::<u8, u32>(dst).chunks_exact_mut(F::LIMBS)) {
            x.store(limbs);
        }
    }

    fn decode(src: &[u8], dst: &mut [F]) -> Result<()> {
        let words = bytemuck::cast_slice::<u8, u32>(src);
        // One pass that tells whether all are elements; only where one is not, another finds which.
        let mut stored = true;
        for (x, limbs) in dst.iter_mut().zip(words.chunks_exact(F::LIMBS)) {
            stored &= F::is_stored(limbs);
            *x = F::load(limbs);
        }
        if stored { Ok(()) } else { expect_stored::<F>(words, 1) }
    }
}

// SAFETY: the device form of an element of an extension is that of its coefficients, which may be any; that of an
// element of a prime field is its own.
unsafe impl<F: DeviceField<BasePrimeField: DeviceField>> Composite for Mont<F> {
    type Part = Mont<F::BasePrimeField>;
}

/// Refuses words that are not the device form of elements of `F`. `each` elements, such as the coordinates of a point,
/// make one decoded value.
///
/// # Errors
/// [`Error::Undecodable`] if some words are an integer that is not below the modulus. Its `index` counts decoded
/// values: it is the index of the first such element divided by `each`.
pub fn expect_stored<F: DeviceField>(words: &[u32], each: usize) -> Result<()> {
    match words.chunks_exact(F::LIMBS).position(|limbs| !F::is_stored(limbs)) {
        None => Ok(()),
        Some(i) => Err(Error::Undecodable { index: (i / each) as u64 }),
    }
}

impl<F: DevicePrimeField> Element for Canonical<F> {
    type Host = F;

    const BYTES: usize = 4 * F::LIMBS;

    fn encode(src: &[F], dst: &mut [u8]) {
        for (x, limbs) in src.iter().zip(bytemuck::cast_slice_mut::<u8, u32>(dst).chunks_exact_mut(F::LIMBS)) {
            let integer = x.into_bigint();
            for (i, limb) in limbs.iter_mut().enumerate() {
                *limb = (integer.as_ref()[i / 2] >> (32 * (i % 2))) as u32;
            }
        }
    }

    fn decode(src: &[u8], dst: &mut [F]) -> Result<()> {
        let words = bytemuck::cast_slice::<u8, u32>(src).chunks_exact(F::LIMBS);
        for (index, (x, limbs)) in dst.iter_mut().zip(words).enumerate() {
            let mut integer = F::BigInt::default();
            for (i, &limb) in limbs.iter().enumerate() {
                integer.as_mut()[i / 2] |= u64::from(limb) << (32 * (i % 2));
            }
            *x = F::from_bigint(integer).ok_or(Error::Undecodable { index: index as u64 })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::{Fp64, MontBackend, PrimeField};
    use evariste_backend::Device;

    use super::*;
    use crate::small::BabyBear4;

    #[derive(ark_ff::SmallFpConfig)]
    #[modulus = "2013265921"]
    #[generator = "31"]
    struct SmallConfig;
    type Small = ark_ff::SmallFp<SmallConfig>;

    #[derive(ark_ff::MontConfig)]
    #[modulus = "18446744069414584321"]
    #[generator = "7"]
    struct WideConfig;
    type Wide = Fp64<MontBackend<WideConfig, 1>>;

    /// Reads a buffer of three elements back whose words are those of elements but for one limb's worth in the second.
    fn read<E: Element>(host: E::Host, at: usize, words: &[u32]) -> Result<Vec<E::Host>> {
        let device = Device::cpu();
        let mut bytes = vec![0; 3 * E::BYTES];
        for element in bytes.chunks_exact_mut(E::BYTES) {
            let mut whole = vec![0u128; E::BYTES.div_ceil(16)];
            let whole = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut whole)[..E::BYTES];
            E::encode(&[host], whole);
            element.copy_from_slice(whole);
        }
        bytes[E::BYTES + 4 * at..][..4 * words.len()].copy_from_slice(bytemuck::cast_slice(words));
        let mut raw = device.host_buffer(bytes.len(), evariste_backend::Transfer::Both, Default::default())?;
        raw.copy_from_slice(&bytes);
        let mut buffer = device.alloc::<E>(3)?;
        drop(buffer.write_pinned(raw)?);
        buffer.to_vec()
    }

    fn check<E: Element>(host: E::Host, at: usize, modulus: &[u32]) {
        let refused = Some(Error::Undecodable { index: 1 });
        assert_eq!(read::<E>(host, at, modulus).err(), refused, "p");
        assert_eq!(read::<E>(host, at, &vec![u32::MAX; modulus.len()]).err(), refused, "all ones");
        let mut less = modulus.to_vec();
        less[0] -= 1;
        assert!(read::<E>(host, at, &less).is_ok(), "p − 1");
        assert!(read::<E>(host, at, &vec![0; modulus.len()]).is_ok(), "0");
    }

    fn words<F: PrimeField>() -> Vec<u32> {
        let modulus = F::MODULUS;
        let limbs = modulus.as_ref().iter().flat_map(|limb| [*limb as u32, (*limb >> 32) as u32]);
        limbs.take((F::MODULUS_BIT_SIZE as usize).div_ceil(32)).collect()
    }

    #[test]
    fn bytes_that_are_no_element_are_told() {
        check::<Mont<Fr>>(Fr::from(5), 0, &words::<Fr>());
        check::<Canonical<Fr>>(Fr::from(5), 0, &words::<Fr>());
        check::<Mont<Wide>>(Wide::from(5), 0, &words::<Wide>());
        check::<Mont<Small>>(Small::from(5u8), 0, &words::<Small>());
        check::<Canonical<Small>>(Small::from(5u8), 0, &words::<Small>());
        // A coefficient behind the first.
        check::<Mont<BabyBear4>>(BabyBear4::from(5u8), 2, &words::<Small>());
    }
}
