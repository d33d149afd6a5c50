//! Vector operations on a queue.

use ark_bls12_381::Fr;
use evariste::{
    backend::Secrecy,
    field::{Canonical, Expression, Formula, Mont, Prefix, SparseMatrix, Vector},
};

use super::matrix::random;
use crate::{
    harness::{Named, Outcome},
    misplaced::Plan,
    order_checker::{expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("vectors", vectors)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[
    ("matrix", |m| {
        let (vector, mut out) = (m.device.zeros(4)?, m.device.zeros(4)?);
        let matrix = SparseMatrix::new(&m.device, 4, 4, random::<Fr>(200, 4, 4, 66))?.on(&m.queue);
        m.refuses(|| matrix.multiply(&vector, &mut out))
    }),
    ("vectors", |m| {
        let (x, exponent) = (Fr::from(7), [5]);
        let mut a = m.device.upload::<Mont<Fr>>(&[Fr::from(3); 8])?;
        let (b, places) = (m.device.upload::<Mont<Fr>>(&[x; 8])?, m.device.upload::<u32>(&[3; 8])?);
        let (mut one, mut canonical) = (m.device.zeros::<Mont<Fr>>(1)?, m.device.zeros::<Canonical<Fr>>(8)?);
        let vector = Vector::new(&m.device).on(&m.queue);
        m.refuses(|| vector.add(&b, &b, &mut a))?;
        m.refuses(|| vector.sub(&b, &b, &mut a))?;
        m.refuses(|| vector.mul(&b, &b, &mut a))?;
        m.refuses(|| vector.add_assign(&mut a, &b))?;
        m.refuses(|| vector.sub_assign(&mut a, &b))?;
        m.refuses(|| vector.mul_assign(&mut a, &b))?;
        m.refuses(|| vector.scale(&b, x, &mut a))?;
        m.refuses(|| vector.scale_assign(&mut a, x))?;
        m.refuses(|| vector.neg(&b, &mut a))?;
        m.refuses(|| vector.neg_assign(&mut a))?;
        m.refuses(|| vector.square(&b, &mut a))?;
        m.refuses(|| vector.square_assign(&mut a))?;
        m.refuses(|| vector.pow(&b, exponent, &mut a))?;
        m.refuses(|| vector.pow_assign(&mut a, exponent))?;
        m.refuses(|| vector.inverse(&b, &mut a))?;
        m.refuses(|| vector.powers(x, x, &mut a))?;
        m.refuses(|| vector.to_canonical(&b, &mut canonical))?;
        m.refuses(|| vector.from_canonical(&canonical, &mut a))?;
        m.refuses(|| vector.sum(&b))?;
        m.refuses(|| vector.sum_into(&b, &mut one))?;
        m.refuses(|| vector.product(&b))?;
        m.refuses(|| vector.product_into(&b, &mut one))?;
        m.refuses(|| vector.inner_product(&b, &b))?;
        m.refuses(|| vector.inner_product_into(&b, &b, &mut one))?;
        m.refuses(|| vector.evaluate(&b, x))?;
        m.refuses(|| vector.evaluate_into(&b, x, &mut one))?;
        m.refuses(|| vector.prefix_sum(&b, Prefix::Inclusive, &mut a))?;
        m.refuses(|| vector.prefix_sum_assign(&mut a, Prefix::Exclusive))?;
        m.refuses(|| vector.prefix_product(&b, Prefix::Inclusive, &mut a))?;
        m.refuses(|| vector.prefix_product_assign(&mut a, Prefix::Exclusive))?;
        m.refuses(|| vector.divide_by_linear(&b, x, &mut a))?;
        m.refuses(|| vector.divide_by_linear_assign(&mut a, x))?;
        m.refuses(|| vector.bit_reverse(&b, &mut a))?;
        m.refuses(|| vector.bit_reverse_assign(&mut a))?;
        m.refuses(|| vector.transpose(&b, 2, &mut a))?;
        m.refuses(|| vector.gather(&b, &places, &mut a))?;
        m.refuses(|| vector.scatter(&b, &places, &mut a))?;
        let formula = Expression::column(0) + Expression::column(1);
        m.refuses(|| vector.compute(&formula, &[&b, &b], &[]))?;
        m.refuses(|| vector.evaluate_expression(&formula, &[&b, &b], &[], &mut a))?;
        m.refuses(|| vector.sum_expression(&formula, &[&b, &b], &[]))?;
        m.refuses(|| vector.sum_expression_into(&formula, &[&b, &b], &[], &mut one))?;
        let formula = Formula::from(&b) * Formula::from(&b);
        m.refuses(|| formula.to_buffer(&vector))?;
        m.refuses(|| formula.evaluate(&vector, &mut a))?;
        m.refuses(|| formula.sum(&vector))
    }),
];

/// All that operations take from the host, keep for themselves and give back is on their queue.
fn vectors() -> Outcome {
    on_plans(|ordered, made_on, queue| {
        let device = queue.device();
        let vector = Vector::<Fr>::new(made_on).on(queue);
        let len = 5000;
        let (mut a, mut out) = (device.alloc::<Mont<Fr>>(len)?, device.alloc::<Mont<Fr>>(len)?);
        queue.write(&mut a, &vec![Fr::from(3); len])?;
        let z = Fr::from(7);
        vector.scale(&a, z, &mut out)?;
        vector.pow_assign(&mut out, [5])?;
        vector.powers(z, z, &mut out)?;
        vector.inverse(&a, &mut out)?;
        vector.prefix_sum_assign(&mut out, Prefix::Exclusive)?;
        vector.divide_by_linear(&a, z, &mut out)?;
        vector.divide_by_linear(a.view(..0)?, z, out.view_mut(..0)?)?;
        vector.evaluate(&a, z)?;
        vector.inner_product(&a, &out)?;
        vector.transpose(&a, 50, &mut out)?;
        let places = queue.upload_with::<u32>(&vec![9; len], Secrecy::Public)?;
        vector.gather(&a, &places, &mut out)?;
        vector.scatter(&a, &places, &mut out)?;
        let entries = (0..len as u32).flat_map(|i| [(i, i / 2, z), (7, i, z)]);
        SparseMatrix::new(made_on, len, len, entries)?.on(queue).multiply(&a, &mut out)?;
        let wide: Expression = (0..41).map(|i| Expression::column(i) * i64::from(i + 1)).sum();
        vector.evaluate_expression(&wide, &[&a; 41], &[], &mut out)?;
        vector.sum_expression(&wide, &[&a; 41], &[])?;
        expect_ordered(ordered, "vectors")
    })
}
