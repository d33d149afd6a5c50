//! Transforms of secrets.

use ark_bls12_381::Fr;
use ark_ff::FftField;
use evariste::ntt::{LowDegreeExtension, Ntt, NttConfig, Order, Split};

use crate::secrecy::Operation;

pub(super) const OPERATIONS: &[Operation] = &[
    Operation::new("transform", 1, |p| {
        let (ntt, mut data) = (Ntt::<Fr>::new(&p.device, 12)?, p.in_place(|p| p.first(1, 1 << 12))?);
        p.watch(|| ntt.forward(&mut data).and_then(|()| ntt.inverse(&mut data)))
    }),
    Operation::new("transform_by_halves", 1, |p| {
        let config = NttConfig::default().split(Split::Halves);
        let ntt = Ntt::<Fr>::with_config(&p.device, 11, config)?;
        let mut data = p.in_place(|p| p.first(1, 1 << 11))?;
        p.watch(|| ntt.forward(&mut data))
    }),
    Operation::new("transform_on_a_coset", 1, |p| {
        let (ntt, mut data) = (Ntt::<Fr>::new(&p.device, 12)?, p.in_place(|p| p.first(1, 1 << 12))?);
        p.watch(|| ntt.coset(Fr::GENERATOR).output(Order::BitReversed).forward(&mut data))
    }),
    Operation::new("polynomial_product", 2, |p| {
        let (ntt, a, b) = (Ntt::<Fr>::new(&p.device, 10)?, p.first(1, 500)?, p.first(2, 400)?);
        p.watch(|| ntt.product(&a, &b))
    }),
    Operation::new("extension", 1, |p| {
        let (extension, values) = (LowDegreeExtension::<Fr>::new(&p.device, 8, 2)?, p.first(1, 512)?);
        p.watch(|| extension.extend(&values, Fr::GENERATOR, Order::Natural))
    }),
    Operation::new("extension_into", 2, |p| {
        let extension = LowDegreeExtension::<Fr>::new(&p.device, 12, 1)?;
        let (values, mut out) = (p.first(1, 1 << 12)?, p.output(1 << 13)?);
        p.watch(|| {
            extension.extend_into(&values, Fr::GENERATOR, Order::Natural, &mut out)?;
            extension.extend_into(&values, Fr::GENERATOR, Order::BitReversed, &mut out)?;
            extension.extend_columns_into(&values, 0..1, Fr::GENERATOR, &mut out)
        })
    }),
    Operation::new("transform_into", 2, |p| {
        let (ntt, x, mut y) = (Ntt::<Fr>::new(&p.device, 12)?, p.first(1, 1 << 12)?, p.output(1 << 12)?);
        p.watch(|| ntt.transform().forward_into(&x, &mut y))
    }),
];
