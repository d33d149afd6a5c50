//! Transforms that compile nothing once they are prepared.

use ark_ff::{FftField, Field};
use evariste::{
    backend::Device,
    field::small::BabyBear,
    ntt::{LowDegreeExtension, Ntt, Order},
};

use crate::{harness::Outcome, prepared::quietly, samples::samples};

/// log₂ of a transform of two passes.
const LOG_N: u32 = 13;

pub(super) fn transforms(device: &Device) -> Outcome {
    let (ntt, columns) = (Ntt::<BabyBear>::new(device, LOG_N)?, 3);
    let mut data = device.upload(&samples::<BabyBear>(columns << LOG_N, 1))?;
    let mut out = device.alloc(data.len())?;
    quietly(device, "transforms in natural order", || {
        for transform in [ntt.transform(), ntt.coset(BabyBear::GENERATOR)] {
            transform.forward(&mut data)?;
            transform.inverse(&mut data)?;
        }
        Ok(())
    })?;
    for coset in [BabyBear::ONE, BabyBear::GENERATOR] {
        for (input, output) in [(Order::Natural, Order::BitReversed), (Order::BitReversed, Order::Natural)] {
            let transform = ntt.coset(coset).input(input).output(output).columns(columns);
            transform.prepare()?;
            quietly(device, &format!("columns of {input:?} to {output:?} order"), || {
                transform.forward(&mut data)?;
                transform.inverse(&mut data)?;
                transform.forward_into(&data, &mut out)?;
                Ok(transform.inverse_into(&data, &mut out)?)
            })?;
        }
    }
    let extension = LowDegreeExtension::<BabyBear>::new(device, LOG_N, 1)?.columns(columns);
    extension.prepare(BabyBear::GENERATOR, Order::BitReversed)?;
    quietly(device, "a low-degree extension", || {
        extension.extend(&data, BabyBear::GENERATOR, Order::BitReversed)?;
        Ok(())
    })
}
