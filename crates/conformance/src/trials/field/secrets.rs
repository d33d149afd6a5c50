//! Operations on vectors of secrets.

use ark_bls12_381::Fr;
use evariste::field::{Expression, Mont, Prefix, SparseMatrix};

use crate::{
    samples::samples,
    secrecy::{LEN, Operation},
};

pub(super) const OPERATIONS: &[Operation] = &[
    Operation::new("add", 3, |p| {
        let (v, a, b, mut out) = (p.vector(), p.elements(1)?, p.elements(2)?, p.output(LEN)?);
        p.watch(|| v.add(&a, &b, &mut out))
    }),
    Operation::new("mul_assign", 2, |p| {
        let (v, mut a, b) = (p.vector(), p.in_place(|p| p.elements(1))?, p.elements(2)?);
        p.watch(|| v.mul_assign(&mut a, &b))
    }),
    Operation::new("inverse", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.inverse(&a, &mut out))
    }),
    Operation::new("powers", 1, |p| {
        let (v, mut out) = (p.vector(), p.output(LEN)?);
        p.watch(|| v.powers(p.value(), p.value(), &mut out))
    }),
    Operation::new("square", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.square(&a, &mut out))
    }),
    Operation::new("scale", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.scale(&a, p.value(), &mut out))
    }),
    Operation::new("scale_assign", 1, |p| {
        let (v, mut a) = (p.vector(), p.in_place(|p| p.elements(1))?);
        p.watch(|| v.scale_assign(&mut a, p.value()))
    }),
    Operation::new("pow", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.pow(&a, [0x1234_5678_9abc], &mut out))
    }),
    Operation::new("pow_assign", 1, |p| {
        let (v, mut a) = (p.vector(), p.in_place(|p| p.elements(1))?);
        p.watch(|| v.pow_assign(&mut a, [0x1234_5678_9abc]))
    }),
    Operation::new("sum", 1, |p| {
        let (v, a) = (p.vector(), p.elements(1)?);
        p.watch(|| v.sum(&a))
    }),
    Operation::new("sum_into", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(3)?);
        p.watch(|| v.sum_into(&a, out.view_mut(1..2)?))
    }),
    Operation::new("product", 1, |p| {
        let (v, a) = (p.vector(), p.elements(1)?);
        p.watch(|| v.product(&a))
    }),
    Operation::new("product_into", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(3)?);
        p.watch(|| v.product_into(&a, out.view_mut(1..2)?))
    }),
    Operation::new("inner_product", 2, |p| {
        let (v, a, b) = (p.vector(), p.elements(1)?, p.elements(2)?);
        p.watch(|| v.inner_product(&a, &b))
    }),
    Operation::new("inner_product_into", 3, |p| {
        let (v, a, b, mut out) = (p.vector(), p.elements(1)?, p.elements(2)?, p.output(3)?);
        p.watch(|| v.inner_product_into(&a, &b, out.view_mut(1..2)?))
    }),
    Operation::new("evaluate", 1, |p| {
        let (v, a) = (p.vector(), p.elements(1)?);
        p.watch(|| v.evaluate(&a, p.value()))
    }),
    Operation::new("evaluate_into", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(3)?);
        p.watch(|| v.evaluate_into(&a, p.value(), out.view_mut(1..2)?))
    }),
    Operation::new("prefix_sum", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.prefix_sum(&a, Prefix::Inclusive, &mut out))
    }),
    Operation::new("prefix_product_assign", 1, |p| {
        let (v, mut a) = (p.vector(), p.in_place(|p| p.elements(1))?);
        p.watch(|| v.prefix_product_assign(&mut a, Prefix::Exclusive))
    }),
    Operation::new("divide_by_linear", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.divide_by_linear(&a, p.value(), &mut out))
    }),
    Operation::new("divide_by_linear_assign", 1, |p| {
        let (v, mut a) = (p.vector(), p.in_place(|p| p.elements(1))?);
        p.watch(|| v.divide_by_linear_assign(&mut a, p.value()))
    }),
    Operation::new("bit_reverse", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.first(1, 4096)?, p.output(4096)?);
        p.watch(|| v.bit_reverse(&a, &mut out))
    }),
    Operation::new("transpose", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.transpose(&a, 50, &mut out))
    }),
    Operation::new("gather", 3, |p| {
        let (v, a, indices, mut out) = (p.vector(), p.elements(1)?, p.places(LEN)?, p.output(LEN)?);
        p.watch(|| v.gather(&a, &indices, &mut out))
    }),
    Operation::new("scatter", 3, |p| {
        let (v, a, indices, mut out) = (p.vector(), p.elements(1)?, p.places(LEN)?, p.output(LEN)?);
        p.watch(|| v.scatter(&a, &indices, &mut out))
    }),
    Operation::new("sparse_product", 2, |p| {
        let (a, mut out) = (p.elements(1)?, p.output(LEN)?);
        // Sums of a long row are kept for a while.
        let entries = (0..LEN as u32).flat_map(|i| [(i, i / 2, p.value()), (7, i, p.value())]);
        let matrix = SparseMatrix::new(&p.device, LEN, LEN, entries)?;
        p.watch(|| matrix.multiply(&a, &mut out))
    }),
    Operation::new("expression", 3, |p| {
        let (v, a, b, mut out) = (p.vector(), p.elements(1)?, p.elements(2)?, p.output(LEN)?);
        let gate = Expression::column(0) * Expression::column(1) - Expression::constant(0);
        p.watch(|| v.evaluate_expression(&gate, &[&a, &b], &[p.value()], &mut out))
    }),
    Operation::new("sum_expression", 3, |p| {
        let (v, a, b, mut out) = (p.vector(), p.elements(1)?, p.elements(2)?, p.output(1)?);
        let gate = Expression::column(0) * Expression::column(1) - Expression::constant(0);
        p.watch(|| v.sum_expression_into(&gate, &[&a, &b], &[p.value()], &mut out))
    }),
    Operation::new("wide_expression", 3, |p| {
        // Of more columns than any device binds, the first and the last are operands.
        let (v, a, b, mut out) = (p.vector(), p.elements(1)?, p.elements(2)?, p.output(LEN)?);
        let others = p.device.upload::<Mont<Fr>>(&samples::<Fr>(LEN, 3))?;
        let wide: Expression = (0..41).map(|i| Expression::column(i) * i64::from(i + 1)).sum();
        let columns: Vec<_> = (0..41)
            .map(|i| {
                if i == 0 {
                    &a
                } else if i == 40 {
                    &b
                } else {
                    &others
                }
            })
            .collect();
        p.watch(|| v.evaluate_expression(&wide, &columns, &[], &mut out))
    }),
];
