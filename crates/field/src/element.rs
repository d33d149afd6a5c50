use std::marker::PhantomData;

use ark_ff::BigInteger;
use evariste_backend::Element;

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

    fn decode(src: &[u8], dst: &mut [F]) {
        for (x, limbs) in dst.iter_mut().zip(bytemuck::cast_slice::<u8, u32>(src).chunks_exact(F::LIMBS)) {
            *x = F::load(limbs);
        }
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

    /// Integers that are not below p, which no kernel writes, are reduced.
    fn decode(src: &[u8], dst: &mut [F]) {
        for (x, limbs) in dst.iter_mut().zip(bytemuck::cast_slice::<u8, u32>(src).chunks_exact(F::LIMBS)) {
            let mut integer = F::BigInt::default();
            for (i, &limb) in limbs.iter().enumerate() {
                integer.as_mut()[i / 2] |= u64::from(limb) << (32 * (i % 2));
            }
            *x = F::from_bigint(integer).unwrap_or_else(|| F::from_le_bytes_mod_order(&integer.to_bytes_le()));
        }
    }
}
