//! Vector operations over every field: maps, reductions, prefixes, permutations, expressions.

use ark_bls12_381::Fr;
use evariste::backend::{Buffer, Device, Error};
use evariste::field::{
    DeviceField, Expression, Formula, Mont, Prefix, Vector, reference,
    small::{BabyBear, Goldilocks},
};

use evariste::primitives::reference as by_index;

use crate::{
    devices::{garbage, other_device},
    expect::{expect, expect_equal, expect_error, expect_same},
    harness::{DeviceTrials, Outcome},
    samples::samples,
    sizes::lengths,
};

pub(crate) fn add<F: DeviceField>(trials: &mut DeviceTrials<'_>, field: &str) {
    trials.add(&format!("{field}::maps"), maps::<F>);
    trials.add(&format!("{field}::reductions"), reductions::<F>);
    trials.add(&format!("{field}::prefixes"), prefixes::<F>);
    trials.add(&format!("{field}::division"), division::<F>);
    trials.add(&format!("{field}::permutations"), permutations::<F>);
    trials.add(&format!("{field}::expressions"), expressions::<F>);
    trials.add(&format!("{field}::expression_sums"), expression_sums::<F>);
}

/// What one field is enough for.
pub(crate) fn add_once(trials: &mut DeviceTrials<'_>) {
    trials.add("goldilocks::vector_misuse", misuse::<Goldilocks>);
    trials.add("bls12-381-fr::vector_misuse", misuse::<Fr>);
    trials.add("deep_prefixes", deep_prefixes);
    trials.add_alone("few_launches", few_launches);
}

/// Nothing, around a workgroup, several tiles, and one more than a power of two.
const LENGTHS: [usize; 8] = [0, 1, 2, 255, 257, 1000, 9000, (1 << 16) + 1];

/// All lengths for small fields; for large ones those up to several tiles, to keep the time of a software GPU down.
fn sizes<F: DeviceField>(device: &Device) -> Vec<usize> {
    lengths(device, if F::LIMBS <= 8 { &LENGTHS } else { &LENGTHS[..LENGTHS.len() - 1] })
}

type Elements<F> = Buffer<Mont<F>>;

fn maps<F: DeviceField>(device: &Device) -> Outcome {
    type Apply<F> = fn(&Vector<F>, &Elements<F>, F, &mut Elements<F>) -> Result<(), Error>;
    type Assign<F> = fn(&Vector<F>, &mut Elements<F>, F) -> Result<(), Error>;
    type Case<F> = (&'static str, Apply<F>, Assign<F>, fn(F, F) -> F);

    const EXPONENT: [u64; 2] = [0xf000_0000_0000_000b, 5];
    let cases: [Case<F>; 6] = [
        ("neg", |v, a, _, out| v.neg(a, out), |v, a, _| v.neg_assign(a), |x, _| -x),
        ("square", |v, a, _, out| v.square(a, out), |v, a, _| v.square_assign(a), |x, _| x * x),
        ("scale", |v, a, f, out| v.scale(a, f, out), |v, a, f| v.scale_assign(a, f), |x, f| x * f),
        ("pow", |v, a, _, out| v.pow(a, EXPONENT, out), |v, a, _| v.pow_assign(a, EXPONENT), |x, _| x.pow(EXPONENT)),
        ("pow 1", |v, a, _, out| v.pow(a, [1, 0], out), |v, a, _| v.pow_assign(a, [1]), |x, _| x),
        ("pow 0", |v, a, _, out| v.pow(a, [], out), |v, a, _| v.pow_assign(a, [0, 0]), |_, _| F::ONE),
    ];
    let vector = Vector::<F>::new(device);
    let factor = samples::<F>(70, 9)[69];
    for len in [0, 1, 255, 257, 1000] {
        let a = samples::<F>(len, 10);
        let mut da = device.upload::<Mont<F>>(&a)?;
        let mut out = garbage(device, len)?;
        for (name, apply, assign, scalar) in cases {
            let expected: Vec<F> = a.iter().map(|x| scalar(*x, factor)).collect();
            apply(&vector, &da, factor, &mut out)?;
            expect_same(&format!("{name} of {len}"), &out.to_vec()?, &expected)?;
            assign(&vector, &mut da, factor)?;
            expect_same(&format!("{name} of {len} in place"), &da.to_vec()?, &expected)?;
            da.write(&a)?;
        }
    }
    Ok(())
}

fn reductions<F: DeviceField>(device: &Device) -> Outcome {
    let vector = Vector::<F>::new(device);
    let z = samples::<F>(70, 11)[69];
    for len in sizes::<F>(device) {
        let (a, b) = (samples::<F>(len, 12), samples::<F>(len, 13));
        // Samples have zeros.
        let factors: Vec<F> = b.iter().map(|b| if b.is_zero() { z } else { *b }).collect();
        let (da, db) = (device.upload(&a)?, device.upload(&b)?);
        expect_equal(&format!("sum of {len}"), &vector.sum(&da)?, &reference::sum(&a))?;
        let product = vector.product(&device.upload(&factors)?)?;
        expect_equal(&format!("product of {len}"), &product, &reference::product(&factors))?;
        let inner = vector.inner_product(&da, &db)?;
        expect_equal(&format!("inner product of {len}"), &inner, &reference::inner_product(&a, &b))?;
        expect_equal(&format!("value of {len}"), &vector.evaluate(&da, z)?, &reference::evaluate(&a, z))?;

        let mut out = device.upload(&[F::ONE; 6])?;
        vector.sum_into(&da, out.view_mut(1..2)?)?;
        vector.evaluate_into(&da, F::ZERO, out.view_mut(2..3)?)?;
        vector.evaluate_into(&da, F::ONE, out.view_mut(3..4)?)?;
        vector.inner_product_into(&da, &da, out.view_mut(5..)?)?;
        let (sum, first) = (reference::sum(&a), a.first().copied().unwrap_or(F::ZERO));
        let expected = [F::ONE, sum, first, sum, F::ONE, reference::inner_product(&a, &a)];
        expect_same(&format!("in their places, {len}"), &out.to_vec()?, &expected)?;
    }
    Ok(())
}

fn prefixes<F: DeviceField>(device: &Device) -> Outcome {
    let vector = Vector::<F>::new(device);
    let one = samples::<F>(70, 14)[69];
    for len in sizes::<F>(device) {
        // Without zeros, after which all products are zero.
        let a: Vec<F> = samples::<F>(len, 15).iter().map(|x| if x.is_zero() { one } else { *x }).collect();
        let mut da = device.upload(&a)?;
        let mut out = garbage(device, len)?;
        for prefix in [Prefix::Inclusive, Prefix::Exclusive] {
            let sums = reference::prefix(&a, prefix, F::ZERO, |x, y| x + y);
            vector.prefix_sum(&da, prefix, &mut out)?;
            expect_same(&format!("{prefix:?} sums of {len}"), &out.to_vec()?, &sums)?;
            vector.prefix_sum_assign(&mut da, prefix)?;
            expect_same(&format!("{prefix:?} sums of {len} in place"), &da.to_vec()?, &sums)?;
            da.write(&a)?;
            let products = reference::prefix(&a, prefix, F::ONE, |x, y| x * y);
            vector.prefix_product(&da, prefix, &mut out)?;
            expect_same(&format!("{prefix:?} products of {len}"), &out.to_vec()?, &products)?;
            vector.prefix_product_assign(&mut da, prefix)?;
            expect_same(&format!("{prefix:?} products of {len} in place"), &da.to_vec()?, &products)?;
            da.write(&a)?;
        }
    }
    Ok(())
}

fn division<F: DeviceField>(device: &Device) -> Outcome {
    let vector = Vector::<F>::new(device);
    let random = samples::<F>(70, 16)[69];
    for len in sizes::<F>(device) {
        let a = samples::<F>(len, 17);
        let mut out = garbage(device, len)?;
        for z in [random, F::ZERO] {
            let (quotient, remainder) = reference::divide_by_linear(&a, z);
            let mut da = device.upload(&a)?;
            expect_equal(&format!("remainder of {len}"), &vector.divide_by_linear(&da, z, &mut out)?, &remainder)?;
            expect_same(&format!("quotient of {len}"), &out.to_vec()?, &quotient)?;
            let in_place = vector.divide_by_linear_assign(&mut da, z)?;
            expect_equal(&format!("remainder of {len} in place"), &in_place, &remainder)?;
            expect_same(&format!("quotient of {len} in place"), &da.to_vec()?, &quotient)?;
        }
    }
    Ok(())
}

fn permutations<F: DeviceField>(device: &Device) -> Outcome {
    let vector = Vector::<F>::new(device);
    for len in [0, 1, 2, 4, 256, 512, 1 << 14] {
        let a = samples::<F>(len, 18);
        let mut da = device.upload(&a)?;
        let mut out = garbage(device, len)?;
        let expected = reference::bit_reverse(&a);
        vector.bit_reverse(&da, &mut out)?;
        expect_same(&format!("{len} bit-reversed"), &out.to_vec()?, &expected)?;
        vector.bit_reverse_assign(&mut da)?;
        expect_same(&format!("{len} bit-reversed in place"), &da.to_vec()?, &expected)?;
    }
    for (rows, columns) in [(0, 0), (3, 0), (1, 1), (1, 300), (300, 1), (16, 16), (17, 33), (100, 101), (64, 257)] {
        let a = samples::<F>(rows * columns, 19);
        let mut out = garbage(device, a.len())?;
        vector.transpose(&device.upload(&a)?, rows, &mut out)?;
        expect_same(&format!("{rows} × {columns} transposed"), &out.to_vec()?, &reference::transpose(&a, rows))?;
    }
    let a = samples::<F>(1000, 20);
    for len in lengths(device, &LENGTHS) {
        let indices: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 21).collect();
        let uploaded = device.upload(&indices)?;
        let mut out = garbage(device, len)?;
        vector.gather(&device.upload(&a)?, &uploaded, &mut out)?;
        expect_same(&format!("{len} gathered"), &out.to_vec()?, &by_index::gather(&a, &indices))?;
        // Many of them for the same places, and half of them for none.
        let (source, mut expected, mut out) = (samples::<F>(len, 44), a.clone(), device.upload(&a)?);
        vector.scatter(&device.upload(&source)?, &uploaded, &mut out)?;
        by_index::scatter(&source, &indices, &mut expected);
        expect_same(&format!("{len} scattered"), &out.to_vec()?, &expected)?;
    }
    let places = device.upload(&[0, 1, u32::MAX])?;
    let mut out = device.upload(&[F::ONE; 3])?;
    vector.gather(&garbage(device, 0)?, &places, &mut out)?;
    expect_same("gathered from nothing", &out.to_vec()?, &[F::ZERO; 3])?;
    vector.scatter(&out, &places, &mut device.alloc(0)?)?;
    let mut one = device.upload(&[F::ZERO; 2])?;
    let x = samples::<F>(3, 45);
    let source = device.upload(&x)?;
    vector.scatter(&source, &device.upload(&[1; 3])?, one.view_mut(..1)?)?;
    vector.scatter(source.view(..0)?, places.view(..0)?, &mut one)?;
    expect_same("scattered to none", &one.to_vec()?, &[F::ZERO; 2])?;
    vector.scatter(&source, &device.upload(&[0; 3])?, one.view_mut(1..)?)?;
    expect_same("scattered to one", &one.to_vec()?, &[F::ZERO, x[2]])?;
    // A permutation and its inverse, at places that no binding starts at.
    let permutation: Vec<u32> = (0..1000).map(|i| i * 391 % 1000).collect();
    let uploaded = device.upload(&permutation)?;
    let mut parts = garbage(device, 2002)?;
    let (forth, back) = parts.as_view_mut().split_at(1001)?;
    let (mut forth, mut back) = (forth.into_part(1..)?, back.into_part(1..)?);
    vector.scatter(&device.upload(&a)?, &uploaded, &mut forth)?;
    vector.gather(&forth, &uploaded, &mut back)?;
    expect_same("there and back", &back.to_vec()?, &a)
}

fn expressions<F: DeviceField>(device: &Device) -> Outcome {
    let column = Expression::column;
    let [a, b, c] = [0, 1, 2].map(column);
    let [r, s] = [0, 1].map(Expression::constant);
    let square = (&a + &b) * (&a + &b);
    let cases = [
        ("a column", b.clone()),
        ("an integer", Expression::integer(-7)),
        ("a constant", s.clone()),
        ("a gate", &a * &b - &c),
        ("few products", &r * (&a * &b - &c) + &s * (&a * (&a - 1)) - 3),
        ("shared parts", &square * &square - square.clone() * &c + -&square),
        ("many products", (0..24).map(|i| (&a + i) * (&b - &r) - &c * i).product::<Expression>() + a.pow(37)),
        ("a power", (c.pow(5) + r.pow(3)).pow(7)),
    ];
    let vector = Vector::<F>::new(device);
    let constants = samples::<F>(72, 21).split_off(70);
    for len in [0, 1, 257, 1000] {
        let columns: Vec<Vec<F>> = (0..3).map(|seed| samples(len, 22 + seed)).collect();
        let uploaded = columns.iter().map(|column| device.upload(column)).collect::<Result<Vec<_>, _>>()?;
        let mut out = garbage(device, len)?;
        for (name, expression) in &cases {
            let row = |i: usize| columns.iter().map(|column| column[i]).collect::<Vec<F>>();
            let expected: Vec<F> = (0..len).map(|i| expression.value(&row(i), &constants)).collect();
            vector.evaluate_expression(expression, &uploaded.iter().collect::<Vec<_>>(), &constants, &mut out)?;
            expect_same(&format!("{name} in {len} rows"), &out.to_vec()?, &expected)?;
        }
    }
    // Halves of columns are columns.
    let (x, y) = (samples::<F>(602, 41), samples::<F>(602, 42));
    let (dx, dy) = (device.upload(&x)?, device.upload(&y)?);
    let [x0, x1, y0, y1] = [0, 1, 2, 3].map(column);
    let folded = &x0 + (&x1 - &x0) * &r + &y0 * &y1;
    for half in [1, 300, 301] {
        let halves = [dx.view(..half)?, dx.view(half..2 * half)?, dy.view(..half)?, dy.view(half..2 * half)?];
        let row = |i: usize| folded.value(&[x[i], x[half + i], y[i], y[half + i]], &constants);
        let expected: Vec<F> = (0..half).map(row).collect();
        let out = vector.compute(&folded, &halves, &constants)?;
        expect_same(&format!("halves of {half}"), &out.to_vec()?, &expected)?;
        let sum = vector.sum_expression(&folded, &halves, &constants)?;
        expect_equal(&format!("sum over halves of {half}"), &sum, &reference::sum(&expected))?;
    }

    // More columns than any device binds, some of them unused, one of them twice.
    let wide: Expression = (0..41).filter(|i| i % 5 != 3).map(|i| column(i) * i64::from(i)).sum();
    for len in [100, 300] {
        let columns: Vec<Vec<F>> = (0..40).map(|seed| samples(len, 30 + seed)).collect();
        let uploaded = columns.iter().map(|column| device.upload(column)).collect::<Result<Vec<_>, _>>()?;
        let mut given: Vec<_> = uploaded.iter().collect();
        given.push(&uploaded[0]);
        let value = |i: usize| {
            let mut row: Vec<F> = columns.iter().map(|column| column[i]).collect();
            row.push(row[0]);
            wide.value(&row, &[])
        };
        let mut out = garbage(device, len)?;
        let expected: Vec<F> = (0..len).map(value).collect();
        vector.evaluate_expression(&wide, &given, &[], &mut out)?;
        expect_same(&format!("41 columns of {len}"), &out.to_vec()?, &expected)?;
        let sum = vector.sum_expression(&wide, &given, &[])?;
        expect_equal(&format!("sum over 41 columns of {len}"), &sum, &reference::sum(&expected))?;
    }
    Ok(())
}

/// Sums over all rows, of one chunk and of several, and formulas.
fn expression_sums<F: DeviceField>(device: &Device) -> Outcome {
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    let [r, s] = [0, 1].map(Expression::constant);
    let cases = [
        ("a column", b.clone()),
        ("a constant", &s - 3),
        ("a gate", &a * &b - &c),
        ("many products", (0..20).map(|i| (&a + i) * (&b - &r) - &c * i).product::<Expression>()),
    ];
    let vector = Vector::<F>::new(device);
    let constants = samples::<F>(72, 46).split_off(70);
    let most = if F::LIMBS <= 8 { 9000 } else { 3000 };
    for len in lengths(device, &[0, 1, 255, 257, 1000, most]) {
        let columns: Vec<Vec<F>> = (0..3).map(|seed| samples(len, 47 + seed)).collect();
        let uploaded = columns.iter().map(|column| device.upload(column)).collect::<Result<Vec<_>, _>>()?;
        let given: Vec<_> = uploaded.iter().collect();
        let value =
            |expression: &Expression, i| expression.value(&[columns[0][i], columns[1][i], columns[2][i]], &constants);
        let mut out = device.upload(&[F::ONE; 3])?;
        for (name, expression) in &cases {
            let expected: F = (0..len).map(|i| value(expression, i)).sum();
            let sum = vector.sum_expression(expression, &given, &constants)?;
            expect_equal(&format!("sum of {name} in {len} rows"), &sum, &expected)?;
            vector.sum_expression_into(expression, &given, &constants, out.view_mut(1..2)?)?;
            expect_same(&format!("{name} in its place, {len}"), &out.to_vec()?, &[F::ONE, expected, F::ONE])?;
        }
        let [x, y, z] = [0, 1, 2].map(|i| Formula::from(&uploaded[i]));
        let formula = (&x * &y - &z) * constants[1] + &x * constants[0] - 5;
        let expected: Vec<F> = (0..len)
            .map(|i| (columns[0][i] * columns[1][i] - columns[2][i]) * constants[1] + columns[0][i] * constants[0])
            .map(|x| x - F::from(5u8))
            .collect();
        expect_same(&format!("a formula in {len} rows"), &formula.to_buffer(&vector)?.to_vec()?, &expected)?;
        expect_equal(&format!("its sum, {len}"), &formula.sum(&vector)?, &reference::sum(&expected))?;
    }
    Ok(())
}

fn misuse<F: DeviceField>(device: &Device) -> Outcome {
    let vector = Vector::<F>::new(device);
    let (three, four) = (device.upload(&[F::ONE; 3])?, device.upload(&[F::ONE; 4])?);
    let mut out = device.upload(&[F::ONE; 4])?;
    let length = |what, expected, actual| Error::Length { what, expected, actual };
    let case = |name, result, expected| expect_equal(name, &expect_error(name, result)?, &expected);
    case("a map to another length", vector.scale(&three, F::ONE, &mut out), length("the output", 3, 4))?;
    case("a power to another length", vector.pow(&three, [2], &mut out), length("the output", 3, 4))?;
    let sums = vector.prefix_sum(&three, Prefix::Inclusive, &mut out);
    case("prefix sums to another length", sums, length("the output", 3, 4))?;
    case("unequal factors", vector.inner_product(&three, &four).map(drop), length("the second operand", 3, 4))?;
    case("a sum of four elements", vector.sum_into(&three, &mut out), length("a reduction's output", 1, 4))?;
    let mut two = device.upload(&[F::ONE; 3])?;
    let reversed = vector.bit_reverse_assign(&mut two);
    case("three bit-reversed", reversed, length("a vector to be bit-reversed", 4, 3))?;
    case("four in three rows", vector.transpose(&four, 3, &mut out), length("a matrix", 6, 4))?;
    case("four in no rows", vector.transpose(&four, 0, &mut out), length("a matrix", 0, 4))?;
    let (three_places, four_places) = (device.upload::<u32>(&[0; 3])?, device.upload::<u32>(&[0; 4])?);
    let gathered = vector.gather(&four, &three_places, &mut out);
    case("four gathered by three indices", gathered, length("the output", 3, 4))?;
    let scattered = vector.scatter(&three, &four_places, &mut out);
    case("three scattered by four indices", scattered, length("the indices", 3, 4))?;
    if let Some(other) = other_device(device) {
        let (expected, actual) = (device.info().id, other.info().id);
        let elsewhere = || Error::WrongDevice { what: "a kernel argument", expected, actual };
        let (strange, places) = (other.upload(&[F::ONE; 4])?, other.upload::<u32>(&[0; 4])?);
        case("elements gathered elsewhere", vector.gather(&strange, &four_places, &mut out), elsewhere())?;
        case("elements scattered elsewhere", vector.scatter(&strange, &four_places, &mut out), elsewhere())?;
        case("places elsewhere", vector.scatter(&four, &places, &mut out), elsewhere())?;
    }
    let gate = Expression::column(0) * Expression::column(1) - Expression::constant(0);
    let few = vector.evaluate_expression(&gate, &[&four], &[F::ONE], &mut out);
    case("a missing column", few, length("the columns of an expression", 2, 1))?;
    let none = vector.evaluate_expression(&gate, &[&four, &four], &[], &mut out);
    case("a missing constant", none, length("the constants of an expression", 1, 0))?;
    let short = vector.evaluate_expression(&gate, &[&four, &three], &[F::ONE], &mut out);
    case("a short column", short, length("a column of an expression", 4, 3))?;
    let sum = vector.sum_expression_into(&gate, &[&four, &three], &[F::ONE], out.view_mut(..1)?);
    case("a short column of a sum", sum, length("a column of an expression", 4, 3))?;
    let sum = vector.sum_expression(&gate, &[&four], &[F::ONE]).map(drop);
    case("a missing column of a sum", sum, length("the columns of an expression", 2, 1))?;
    let sum = vector.sum_expression(&gate, &[&four, &four], &[]).map(drop);
    case("a missing constant of a sum", sum, length("the constants of an expression", 1, 0))?;
    let sum = vector.sum_expression_into(&gate, &[&four, &four], &[F::ONE], out.view_mut(..2)?);
    case("a sum to two elements", sum, length("a reduction's output", 1, 2))?;
    let none: [&Elements<F>; 0] = [];
    let sum = vector.sum_expression(&Expression::integer(1), &none, &[]).map(drop);
    case("a sum without columns", sum, length("the columns of an expression", 1, 0))?;
    let short = (Formula::from(&four) + Formula::from(&three)).to_buffer(&vector).map(drop);
    case("a formula over two lengths", short, length("a column of an expression", 4, 3))?;
    let unused = (Formula::from(&four) + Formula::from(&three).pow(0)).to_buffer(&vector).map(drop);
    case("a formula whose power of 0 has another length", unused, length("a column of an expression", 4, 3))?;
    if let Some(other) = other_device(device) {
        let (strange, columns) = (other.upload(&[F::ONE; 4])?, "columns elsewhere");
        let error = expect_error(columns, vector.sum_expression(&gate, &[&four, &strange], &[F::ONE]))?;
        let (expected, actual) = (device.info().id, other.info().id);
        expect_equal(columns, &error, &Error::WrongDevice { what: "a kernel argument", expected, actual })?;
        let error = expect_error(columns, Formula::from(&strange).to_buffer(&vector))?;
        expect_equal(columns, &error, &Error::WrongDevice { what: "a column of an expression", expected, actual })?;
    }
    expect_same("untouched", &out.to_vec()?, &[F::ONE; 4])
}

/// So many tiles that their results take tiles of tiles.
fn deep_prefixes(device: &Device) -> Outcome {
    let len = (1 << 22) + 5;
    let vector = Vector::<BabyBear>::new(device);
    let a: Vec<BabyBear> = (0..len as u64).map(|i| BabyBear::from(i * i + 1)).collect();
    let z = BabyBear::from(12_345u32);
    let mut data = device.upload(&a)?;
    let mut out = garbage(device, len)?;
    vector.prefix_sum(&data, Prefix::Exclusive, &mut out)?;
    let sums = reference::prefix(&a, Prefix::Exclusive, BabyBear::from(0u32), |x, y| x + y);
    expect_same("sums", &out.to_vec()?, &sums)?;
    let (quotient, remainder) = reference::divide_by_linear(&a, z);
    expect_equal("value", &vector.evaluate(&data, z)?, &remainder)?;
    expect_equal("remainder", &vector.divide_by_linear_assign(&mut data, z)?, &remainder)?;
    expect_same("quotient", &data.to_vec()?, &quotient)
}

fn few_launches(device: &Device) -> Outcome {
    let vector = Vector::<BabyBear>::new(device);
    let data = device.upload(&samples::<BabyBear>(1 << 20, 40))?;
    let mut out = garbage(device, 1 << 20)?;
    let launches = |run: &mut dyn FnMut() -> Result<(), Error>| -> Result<u64, Error> {
        let before = device.stats().launches;
        run()?;
        Ok(device.stats().launches - before)
    };
    expect("a sum takes two launches", launches(&mut || vector.sum_into(&data, out.view_mut(..1)?))? <= 2)?;
    let sums = launches(&mut || vector.prefix_sum(&data, Prefix::Inclusive, &mut out))?;
    expect("prefix sums take three launches", sums <= 3)?;
    let gate = Expression::column(0).pow(3) - Expression::column(1) + 5;
    let fused = launches(&mut || vector.evaluate_expression(&gate, &[&data, &data], &[], &mut out))?;
    expect("an expression takes one launch", fused == 1)?;
    let sum = launches(&mut || vector.sum_expression_into(&gate, &[&data, &data], &[], out.view_mut(..1)?))?;
    expect("a sum of an expression takes two launches", sum <= 2)?;
    let before = device.stats();
    let formula = (Formula::from(&data).pow(3) - Formula::from(&data) + 5).to_buffer(&vector)?;
    let after = device.stats();
    expect("a formula takes one launch", after.launches - before.launches == 1)?;
    expect("and copies no vector", after.bytes_up - before.bytes_up < 100)?;
    expect_equal("its length", &formula.len(), &data.len())
}
