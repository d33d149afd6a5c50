use std::marker::PhantomData;

use evariste_backend::{Element, Error, Result};

use crate::{DeviceField, DevicePrimeField};

/// Field elements in Montgomery form, the form that kernels compute with.
#[derive(Debug)]
pub struct Mont<F>(PhantomData<fn() -> F>);

/// Field elements as canonical integers below p, the form of scalars and of serialised data.
#[derive(Debug)]
pub struct Canonical<F>(PhantomData<fn() -> F>);

impl<F: DeviceField> Element for Mont<F> {
    type Host = F;

    const BYTES: usize = 4 * F::LIMBS;

    fn encode(src: &[F], dst: &mut [u8]) {
        for (x, limbs) in src.iter().zip(bytemuck::cast_slice_mut::<u8, u32>(dst).chunks_exact_mut(F::LIMBS)) {
            x.store(limbs);
        }
    }

    fn decode(src: &[u8], dst: &mut [F]) -> Result<()> {
        let words = bytemuck::cast_slice::<u8, u32>(src);
        for (x, limbs) in dst.iter_mut().zip(words.chunks_exact(F::LIMBS)) {
            *x = F::load(limbs);
        }
        expect_stored::<F>(words, 1)
    }
}

/// Refuses words unless all are the device form of `F`, of which `each` make an element.
pub(crate) fn expect_stored<F: DeviceField>(words: &[u32], each: usize) -> Result<()> {
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
