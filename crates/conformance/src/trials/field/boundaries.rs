//! Vectors of lengths around 2³².

use ark_ff::AdditiveGroup;
use evariste::{
    backend::{Buffer, Element, Result},
    field::{
        Expression, Mont, Prefix, Vector,
        small::{Goldilocks3, KoalaBear},
    },
};

use crate::{
    boundaries,
    expect::{expect, expect_equal},
    harness::{Named, Outcome},
    null_device::{Cover, Launch, NullDevice},
};

/// One limb, so that 2^32 elements are 2^32 words.
type F = KoalaBear;
type Elements = Buffer<Mont<F>>;

/// What a vector may have, as `evariste::field` says it: with as much to spare as workgroups reach past the end.
const MAX_VECTOR: usize = (u32::MAX - u16::MAX as u32) as usize;

const LENGTHS: [usize; 10] = [
    MAX_VECTOR - 1,
    MAX_VECTOR,
    MAX_VECTOR + 1,
    (1 << 32) - 256,
    (1 << 32) - 2,
    (1 << 32) - 1,
    1 << 32,
    (1 << 32) + 1,
    (1 << 33) + 7,
    1 << 34,
];

pub(super) const BOUNDARIES: &[Named] = &[("vectors", vectors)];

fn vectors() -> Outcome {
    let stub = NullDevice::new(1 << 40);
    let device = stub.device();
    let vector = Vector::<F>::new(&device);
    // A thread an element, or several.
    let whole = |launch: &Launch, len: usize| launch.word(0) as usize == len;
    let threads =
        |launch: &Launch, len: usize| whole(launch, len) && launch.groups * u64::from(launch.threads) >= len as u64;
    let new = |len: usize| device.alloc::<Mont<F>>(len);
    type Work<'a> = &'a dyn Fn(&Elements, &mut Elements) -> Result<()>;
    let single: [(&str, Work<'_>); 5] = [
        ("add", &|a, out| vector.add(a, a, out)),
        ("mul_assign", &|a, out| vector.mul_assign(out, a)),
        ("square", &|a, out| vector.square(a, out)),
        ("scale", &|a, out| vector.scale(a, F::from(3), out)),
        ("pow", &|a, out| vector.pow(a, [5], out)),
    ];
    let places = |a: &Elements| device.alloc::<u32>(a.len());
    for (name, work) in single {
        boundaries::check(&stub, name, MAX_VECTOR, &LENGTHS, |len| work(&new(len)?, &mut new(len)?), threads)?;
    }
    // The elements and the indices of each kernel have the same number.
    let gather: Work<'_> = &|a, out| vector.gather(a, &places(a)?, out);
    let scatter: Work<'_> = &|a, out| vector.scatter(a, &places(a)?, out);
    for (kernel, name, work) in
        [("gather", "gather", gather), ("last_writer", "scatter", scatter), ("gather", "scatter", scatter)]
    {
        let covers = |launch: &Launch, len: usize| {
            launch.name == kernel && threads(launch, len) && launch.word(1) as usize == len
        };
        boundaries::check(&stub, name, MAX_VECTOR, &LENGTHS, |len| work(&new(len)?, &mut new(len)?), covers)?;
    }
    let column = Expression::column(0);
    let several: [(&str, Work<'_>); 8] = [
        ("sum of an expression", &|a, _| vector.sum_expression(&column, &[a], &[]).map(drop)),
        ("inverse", &|a, out| vector.inverse(a, out)),
        ("powers", &|_, out| vector.powers(F::from(3), F::from(5), out)),
        ("sum", &|a, _| vector.sum(a).map(drop)),
        ("inner product", &|a, _| vector.inner_product(a, a).map(drop)),
        ("value", &|a, _| vector.evaluate(a, F::from(3)).map(drop)),
        ("prefix sum", &|a, out| vector.prefix_sum(a, Prefix::Inclusive, out)),
        ("quotient", &|a, out| vector.divide_by_linear(a, F::from(3), out).map(drop)),
    ];
    for (name, work) in several {
        boundaries::check(&stub, name, MAX_VECTOR, &LENGTHS, |len| work(&new(len)?, &mut new(len)?), whole)?;
    }
    // Elements of three words: 32 bits count the words of a third of a vector.
    let (wide, places) = (Vector::<Goldilocks3>::new(&device), device.alloc::<u32>(MAX_VECTOR)?);
    let (a, mut out) = (device.alloc::<Mont<Goldilocks3>>(MAX_VECTOR)?, device.alloc(MAX_VECTOR)?);
    stub.take_calls();
    for scatter in [false, true] {
        match scatter {
            true => wide.scatter(&a, &places, &mut out)?,
            false => wide.gather(&a, &places, &mut out)?,
        }
        let mut written = Cover::default();
        for launch in stub.take_launches().into_iter().filter(|launch| launch.name == "gather") {
            let part = launch.args.last().ok_or("a launch that writes nothing")?;
            expect("a thread for each word", launch.groups * u64::from(launch.threads) >= part.bytes / 8)?;
            expect("which 32 bits count", launch.groups * u64::from(launch.threads) < 1 << 32)?;
            written.add(part.at..part.at + part.bytes);
        }
        written.expect_exactly("elements of three words", 0..out.bytes())?;
    }
    // Places of a buffer that is longer than any vector: views reach them.
    let mut long = new(1 << 33)?;
    let a = new(100)?;
    for at in [MAX_VECTOR, (1 << 32) - 1, 1 << 32, (1 << 33) - 1] {
        vector.sum_into(&a, long.view_mut(at..=at)?)?;
        vector.powers(F::ZERO, F::ZERO, long.view_mut(at..=at)?)?;
        let bytes = Mont::<F>::BYTES as u64;
        for launch in stub.take_launches() {
            let out = launch.args.last().map(|arg| (arg.at, arg.bytes));
            expect_equal(&format!("{} at {at}", launch.name), &out, &Some((at as u64 * bytes, bytes)))?;
        }
    }
    Ok(())
}
