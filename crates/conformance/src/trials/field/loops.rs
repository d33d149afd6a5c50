//! Vectors where a device ends loops early.

use ark_bls12_381::Fr;
use ark_ff::Field;
use evariste::{
    backend::Device,
    field::{Mont, SparseMatrix, Vector, reference},
};
use evariste_microbench::{Place, Products, Sharing};

use super::matrix::random;
use crate::{
    devices::garbage,
    expect::{expect_equal, expect_same},
    harness::Outcome,
    loops::Divided,
    samples::samples,
};

pub(super) const DIVIDED: &[Divided] = &[
    ("powers", 100, |device| check_powers(device, 20, &[0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321, 7])),
    ("products", 100, |device| check_products(device, 200)),
    ("inverse", 2000, |device| check_inverse(device, 5000)),
    ("reductions", 120, |device| check_reductions(device, 70_000)),
    ("matrices", 400, check_matrix),
];

pub(super) fn long_powers(device: &Device) -> Outcome {
    let exponent: Vec<u64> = (0..125).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63).collect();
    check_powers(device, 20, &exponent)
}

fn check_powers(device: &Device, len: usize, exponent: &[u64]) -> Outcome {
    let vector = Vector::<Fr>::new(device);
    let a = samples::<Fr>(len, 50);
    let expected: Vec<Fr> = a.iter().map(|x| x.pow(exponent)).collect();
    let mut da = device.upload::<Mont<Fr>>(&a)?;
    let mut out = garbage::<Mont<Fr>>(device, len)?;
    vector.pow(&da, exponent, &mut out)?;
    expect_same("powers", &out.to_vec()?, &expected)?;
    vector.pow_assign(&mut da, exponent)?;
    expect_same("powers in place", &da.to_vec()?, &expected)
}

/// As many products by one thread as are measured on hardware.
pub(super) fn long_products(device: &Device) -> Outcome {
    check_products(device, 10_000)
}

fn check_products(device: &Device, len: usize) -> Outcome {
    let (a, b, before) = (samples::<Fr>(len, 51), samples::<Fr>(len, 52), samples::<Fr>(len, 53));
    let products = reference::pointwise(&a, &b, |a, b| a * b);
    let (a, b) = (device.upload::<Mont<Fr>>(&a)?, device.upload::<Mont<Fr>>(&b)?);
    for place in Place::ALL {
        let mut expected = products.clone();
        expected.iter_mut().zip(&before).filter(|(product, _)| !place.writes(*product)).for_each(|(x, y)| *x = *y);
        let mut out = device.upload::<Mont<Fr>>(&before)?;
        Products::new(device, place, Sharing::Serial)?.run(&a, &b, &mut out)?;
        expect_same(&format!("{place:?}"), &out.to_vec()?, &expected)?;
    }
    Ok(())
}

fn check_inverse(device: &Device, len: usize) -> Outcome {
    let a = samples::<Fr>(len, 53);
    let mut out = garbage::<Mont<Fr>>(device, len)?;
    Vector::new(device).inverse(&device.upload(&a)?, &mut out)?;
    expect_same("inverse", &out.to_vec()?, &reference::inverse(&a))
}

fn check_reductions(device: &Device, len: usize) -> Outcome {
    let vector = Vector::<Fr>::new(device);
    let (a, b) = (samples::<Fr>(len, 54), samples::<Fr>(len, 55));
    let z = a[len - 1];
    let (da, db) = (device.upload(&a)?, device.upload(&b)?);
    expect_equal("inner product", &vector.inner_product(&da, &db)?, &reference::inner_product(&a, &b))?;
    expect_equal("value", &vector.evaluate(&da, z)?, &reference::evaluate(&a, z))
}

fn check_matrix(device: &Device) -> Outcome {
    let (entries, vector) = (random::<Fr>(5000, 50, 70, 66), samples::<Fr>(70, 67));
    let mut out = garbage(device, 50)?;
    let matrix = SparseMatrix::new(device, 50, 70, entries.iter().copied())?;
    matrix.multiply(&device.upload(&vector)?, &mut out)?;
    expect_same("a sparse product", &out.to_vec()?, &reference::sparse_product(50, &entries, &vector))
}
