//! Vectors, primitives and transforms where their lengths come to 2^31 and 2^32, on a device without memory: what is accepted
//! is launched in full, and what is not has launched nothing.

use ark_ff::{AdditiveGroup, FftField};
use evariste_backend::{Access, Buffer, Device, Element, Error, Result};
use evariste_field::{
    DeviceField, Expression, FieldSum, Mont, Prefix, Vector,
    small::{Goldilocks, Goldilocks3, KoalaBear},
};
use evariste_ntt::{Error as NttError, LowDegreeExtension, Ntt, Order};
use evariste_primitives::{Histogram, MAX_LEN, RadixSort, Scan, SegmentedSum, SortMethod};
use libtest_mimic::Trial;

use crate::{
    Outcome, expect, expect_equal, expect_error,
    stub::{Cover, Launch, Stub},
};

/// One limb, so that 2^32 elements are 2^32 words.
type F = KoalaBear;
type Elements = Buffer<Mont<F>>;

/// What a vector may have, as `evariste_field` says it: with as much to spare as workgroups reach past the end.
const MAX_VECTOR: usize = (u32::MAX - u16::MAX as u32) as usize;

pub(crate) fn common() -> Vec<Trial> {
    let trials: [crate::Named; 3] = [("vectors", vectors), ("primitives", primitives), ("transforms", transforms)];
    trials.into_iter().map(|(name, run)| Trial::test(format!("any::boundaries::{name}"), run)).collect()
}

/// Runs `work` on lengths around `most`, and checks that those above are refused before anything is launched.
fn check(
    stub: &Stub,
    what: &str,
    most: usize,
    lengths: &[usize],
    mut work: impl FnMut(usize) -> Result<()>,
    covers: impl Fn(&Launch, usize) -> bool,
) -> Outcome {
    stub.take_calls();
    for len in lengths {
        let outcome = work(*len);
        let launches = stub.take_launches();
        let what = format!("{what} of {len}: {outcome:?}, {launches:?}");
        match *len <= most {
            true => expect(&what, outcome.is_ok() && launches.iter().any(|launch| covers(launch, *len)))?,
            false => {
                let is_refused = matches!(outcome, Err(Error::TooLarge { actual, .. }) if actual == *len as u64);
                expect(&what, is_refused && launches.is_empty())?;
            }
        }
    }
    Ok(())
}

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

fn vectors() -> Outcome {
    let stub = Stub::new(1 << 40);
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
        check(&stub, name, MAX_VECTOR, &LENGTHS, |len| work(&new(len)?, &mut new(len)?), threads)?;
    }
    // Elements and indices of each kernel are as many.
    let gather: Work<'_> = &|a, out| vector.gather(a, &places(a)?, out);
    let scatter: Work<'_> = &|a, out| vector.scatter(a, &places(a)?, out);
    for (kernel, name, work) in
        [("gather", "gather", gather), ("claim", "scatter", scatter), ("gather", "scatter", scatter)]
    {
        let covers = |launch: &Launch, len: usize| {
            launch.name == kernel && threads(launch, len) && launch.word(1) as usize == len
        };
        check(&stub, name, MAX_VECTOR, &LENGTHS, |len| work(&new(len)?, &mut new(len)?), covers)?;
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
        check(&stub, name, MAX_VECTOR, &LENGTHS, |len| work(&new(len)?, &mut new(len)?), whole)?;
    }
    // Elements of three words, of which 32 bits count those of a third of a vector.
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
        vector.sum_to(&a, long.view_mut(at..=at)?)?;
        vector.powers(F::ZERO, F::ZERO, long.view_mut(at..=at)?)?;
        let bytes = Mont::<F>::BYTES as u64;
        for launch in stub.take_launches() {
            let out = launch.args.last().map(|arg| (arg.at, arg.bytes));
            expect_equal(&format!("{} at {at}", launch.name), &out, &Some((at as u64 * bytes, bytes)))?;
        }
    }
    Ok(())
}

fn primitives() -> Outcome {
    let stub = Stub::new(1 << 40);
    let device = stub.device();
    let words = |len: usize| device.alloc::<u32>(len);
    let lengths = [MAX_LEN - 1, MAX_LEN, MAX_LEN + 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 34];
    let whole = |launch: &Launch, len: usize| launch.word(0) as usize == len;
    let scan = Scan::new(&device)?;
    check(&stub, "scan", MAX_LEN, &lengths, |len| scan.exclusive(&words(len)?, &mut words(len)?), whole)?;
    let histogram = Histogram::new(&device)?;
    let count = |len| histogram.count(&words(len)?, 0..16, &mut words(1 << 16)?);
    check(&stub, "histogram", MAX_LEN, &lengths, count, whole)?;
    for method in [SortMethod::Sweep, SortMethod::Scatter] {
        let sort = RadixSort::with_method(&device, method)?;
        let work = |len| sort.sort(&mut words(len)?, &mut words(len)?, 0..32);
        check(&stub, &format!("{method:?}"), MAX_LEN, &lengths, work, whole)?;
    }
    let sum = SegmentedSum::<FieldSum<F>>::new(&device)?;
    let mut out = device.alloc::<Mont<F>>(1000)?;
    let work = |len| sum.reduce(&words(len)?, &device.alloc(len)?, &mut out);
    check(&stub, "segmented sum", MAX_LEN, &lengths, work, whole)
}

fn transforms() -> Outcome {
    transforms_over::<F>(&[1, 11, 20, 24])?;
    transforms_over::<Goldilocks>(&[30, 31])?;
    extensions()
}

/// Each coset of an extension to 2^31 values is written once, from all coefficients; 2^32 values are refused.
fn extensions() -> Outcome {
    let stub = Stub::new(1 << 40);
    let device = stub.device();
    let (log_n, log_blowup) = (28, 2);
    let extension = LowDegreeExtension::<Goldilocks>::new(&device, log_n, log_blowup)?;
    let given = device.alloc::<Mont<Goldilocks>>(2 << log_n)?;
    let run = 8 << log_n;
    stub.take_calls();
    let values = extension.evaluate(&given, Goldilocks::GENERATOR, Order::BitReversed)?;
    let mut written = Cover::default();
    let mut coset = 0;
    for pass in stub.take_launches().into_iter().filter(|launch| launch.name == "ntt_pass") {
        let data = pass.args.iter().find(|arg| arg.access == Access::Write).ok_or("a pass that writes nothing")?;
        let own = pass.args.len() > 4;
        if own {
            coset = data.at;
            expect_equal("what the first pass of a coset reads", &pass.args[0].bytes, &given.bytes())?;
            for i in 0..2 {
                let start = coset + i * (run << log_blowup);
                written.add(start..start + run);
            }
        }
        expect_equal("the coset that is worked on", &data.at, &coset)?;
        let pitches = (if own { log_n } else { log_n + log_blowup }, log_n + log_blowup);
        expect_equal("the distances of polynomials", &(pass.word(15), pass.word(16)), &pitches)?;
    }
    written.expect_exactly("the cosets", 0..values.bytes())?;

    let extension = LowDegreeExtension::<Goldilocks>::new(&device, log_n, 1)?.columns(8);
    let given = device.alloc::<Mont<Goldilocks>>(8 << log_n)?;
    stub.take_calls();
    let refused = extension.extend(&given, Goldilocks::GENERATOR, Order::BitReversed);
    let error = expect_error("2^32 values", refused)?;
    expect_equal("too many", &error, &NttError::TooLarge { expected: 32, actual: 1 << 32 })?;
    expect("nothing is launched", stub.take_launches().is_empty())
}

fn transforms_over<F: DeviceField + FftField>(sizes: &[u32]) -> Outcome {
    let stub = Stub::new(1 << 40);
    let device: Device = stub.device();
    for &log_n in sizes {
        let ntt = Ntt::<F>::new(&device, log_n)?;
        for batch in [(1 << (32 - log_n)) - 1, 1 << (32 - log_n), (1 << (32 - log_n)) + 1, 1 << (34 - log_n)] {
            let len = batch << log_n;
            let mut data = device.alloc::<Mont<F>>(len)?;
            stub.take_calls();
            let outcome = ntt.forward(&mut data);
            let passes: Vec<Launch> =
                stub.take_launches().into_iter().filter(|launch| launch.name == "ntt_pass").collect();
            if len >= 1 << 32 {
                let is_refused = matches!(outcome, Err(NttError::TooLarge { actual, .. }) if actual == len as u64);
                expect(&format!("{batch} × 2^{log_n}: {outcome:?}"), is_refused && passes.is_empty())?;
                continue;
            }
            outcome?;
            expect(&format!("{} passes", passes.len()), passes.len() == ntt.passes_per_transform())?;
            let mut log_rows = 0;
            for pass in passes {
                let (first, end) = (u64::from(pass.word(0)), u64::from(pass.word(1)));
                let rows = len as u64 / end;
                log_rows += rows.ilog2();
                let mut cover = Cover::default();
                cover.add(first * rows..end * rows);
                cover.expect_exactly(&format!("{batch} × 2^{log_n}"), 0..len as u64)?;
                expect("every line has a workgroup", pass.groups > 0 && pass.groups <= end)?;
            }
            expect("the passes make up the transform", log_rows == log_n)?;
        }
    }
    Ok(())
}
