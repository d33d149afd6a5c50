//! Vector operations on a queue.

use ark_bls12_381::Fr;
use evariste::{
    backend::Secrecy,
    field::{Expression, Mont, Prefix, Vector},
};

use crate::{
    Named, Outcome,
    misplaced::Plan,
    order_checker::{expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("vectors", vectors)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[("vectors", |m| {
    let mut a = m.device.upload::<Mont<Fr>>(&[Fr::from(3); 5])?;
    let vector = Vector::new(&m.device).on(&m.queue);
    m.refuses(|| vector.scale_assign(&mut a, Fr::from(7)))?;
    m.refuses(|| vector.inner_product(&a, &a))
})];

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
        let wide: Expression = (0..41).map(|i| Expression::column(i) * i64::from(i + 1)).sum();
        vector.evaluate_expression(&wide, &[&a; 41], &[], &mut out)?;
        vector.sum_expression(&wide, &[&a; 41], &[])?;
        expect_ordered(ordered, "vectors")
    })
}
