//! Devices that end the loops of a thread after some turns: work is divided into launches that stay below, or refused, and
//! never comes out wrong.

use std::sync::Arc;

use ark_bls12_381::{Fr, g1};
use ark_ec::{
    AffineRepr, PrimeGroup,
    short_weierstrass::{Affine, Projective},
};
use ark_ff::{Field, Zero};
use evariste_backend::{
    Arg, Binding, BindingType, Buffer, CpuArg, Device, Element, Error, Kernel, KernelSpec, Language, params,
};
use evariste_curve::{AffinePoint, DeviceCurve, PointSum, Points, Xyzz};
use evariste_field::{Expression, Mont, Vector, reference};
use evariste_microbench::{Place, Products, Sharing};
use evariste_msm::{Msm, MsmConfig, Precompute, Tuning};
use evariste_ntt::{Config, Ntt, Twiddles};
use evariste_primitives::{Histogram, RadixSort, SegmentedSum, SortMethod, reference as of_words};
use evariste_sumcheck::{Blake3Transcript, Statement, Sumcheck};
use libtest_mimic::Failed;

use crate::{
    Outcome, Suite, curve, curves, expect, expect_equal, expect_error, expect_same, garbage, recorder::Recorder,
    samples::samples,
};

pub(crate) fn add(suite: &mut Suite<'_>) {
    suite.add("turns", turns);
    suite.add("long_points", long_points);
    suite.add("long_powers", long_powers);
    suite.add("long_products", long_products);
    suite.add("many_keys", many_keys);
    suite.add("many_keys_by_one_workgroup", many_keys_by_one_workgroup);
    for (name, least, run) in OPERATIONS {
        suite.add_with(&format!("divided::{name}"), move |device| divided(device, least, run));
    }
    suite.add("refused", refused);
    suite.add("refused_before_compiling", refused_before_compiling);
    suite.add("whole_or_not_at_all", whole_or_not_at_all);
}

params! {
    struct Params {
        outer: u32,
        inner: u32,
    }
}

impl Params {
    fn turns(self) -> u64 {
        (u64::from(self.inner) + 2) * u64::from(self.outer) + 1
    }

    /// What the kernel computes: no compiler finds it without the loops.
    fn result(self) -> u32 {
        (0..self.outer * self.inner).fold(1, |x: u32, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223))
    }
}

fn spec() -> KernelSpec {
    let source = |language| match language {
        Language::Cuda => {
            "extern \"C\" __global__ void turns(const Params params, uint32_t* out) {\n\
             if (blockIdx.x * blockDim.x + threadIdx.x > 0) return;\n\
             uint32_t x = 1;\n\
             for (uint32_t i = 0; i < params.outer; i++) {\n\
             for (uint32_t j = 0; j < params.inner; j++) x = x * 1664525u + 1013904223u;\n}\n\
             out[0] = x;\n}\n"
        }
        Language::Wgsl { .. } => {
            "@compute @workgroup_size(THREADS)\n\
             fn turns(@builtin(global_invocation_id) id: vec3<u32>) {\n\
             if (id.x + id.y + id.z > 0u) { return; }\n\
             var x = 1u;\n\
             for (var i = 0u; i < params.outer; i++) {\n\
             for (var j = 0u; j < params.inner; j++) { x = x * 1664525u + 1013904223u; }\n}\n\
             out_set(0u, x);\n}\n"
        }
    };
    let body = |params: &Params, out: &mut CpuArg<'_>| out.write::<u32>()[0] = params.result();
    let bindings = Binding::write("out", BindingType::U32);
    KernelSpec::new("turns", "of two loops", bindings, body, move |language| source(language).to_owned())
        .threads(64)
        .turns(|params: &Params| params.turns())
}

/// All turns that a device says it has are done; with more, a launch is refused.
fn turns(device: &Device) -> Outcome {
    const INNER: u32 = 100;

    let kernel = Kernel::<Params>::new(device, spec())?;
    let limit = device.info().limits.loop_turns;
    let most = (limit.unwrap_or(200_000) - 1) / (INNER + 2);
    let run = |params: Params| -> Result<u32, Error> {
        let mut out = garbage::<u32>(device, 1)?;
        // SAFETY: one thread writes one element.
        unsafe { kernel.launch(&device.default_queue(), 1, &params, &mut [Arg::write(&mut out)]) }?;
        Ok(out.to_vec()?[0])
    };
    for outer in [0, 1, most / 2, most] {
        let params = Params { outer, inner: INNER };
        expect_equal(&format!("{outer} times {INNER} turns"), &run(params)?, &params.result())?;
    }
    let more = Params { outer: most + 1, inner: INNER };
    match limit {
        None => expect_equal("more turns", &run(more)?, &more.result()),
        Some(limit) => {
            expect("more turns do not fit", !kernel.fits(&more))?;
            let (limit, what) = (limit.into(), "the work of one thread, in turns of its loops,");
            let expected = Error::TooLarge { what, device: device.info().id, expected: limit, actual: more.turns() };
            expect_equal("more turns", &expect_error("more turns", run(more))?, &expected)
        }
    }
}

fn check_times<C: DeviceCurve>(device: &Device, len: usize) -> Outcome {
    let points: Vec<Affine<C>> = curve::some_points::<C>(len).into_iter().map(Into::into).collect();
    let k: Vec<u32> = (0..len as u32).map(|i| if i < 4 { i } else { i.wrapping_mul(0x9e37_79b9) }).collect();
    let expected: Vec<Projective<C>> =
        points.iter().zip(&k).map(|(p, k)| p.into_group().mul_bigint([u64::from(*k)])).collect();
    let mut out = garbage::<Xyzz<C>>(device, len)?;
    let (a, k) = (device.upload::<AffinePoint<C>>(&points)?, device.upload::<u32>(&k)?);
    Points::<C>::new(device).mul(&a, &k, &mut out)?;
    expect_same("multiples", &out.to_vec()?, &expected)
}

fn check_normalise<C: DeviceCurve>(device: &Device, len: usize) -> Outcome {
    let points: Vec<Projective<C>> = curve::some_points::<C>(20).into_iter().cycle().take(len).collect();
    let mut out = garbage::<AffinePoint<C>>(device, len)?;
    Points::<C>::new(device).normalise_xyzz(&device.upload(&points)?, &mut out)?;
    let expected: Vec<Affine<C>> = points[..20.min(len)].iter().map(|p| (*p).into()).collect();
    let expected: Vec<Affine<C>> = expected.into_iter().cycle().take(len).collect();
    expect_same("affine points", &out.to_vec()?, &expected)
}

fn check_sums<C: DeviceCurve>(device: &Device, len: usize) -> Outcome {
    let values: Vec<Projective<C>> = curve::some_points::<C>(20).into_iter().cycle().take(len).collect();
    let keys: Vec<u32> = (0..len as u32).map(|i| i / 1000).collect();
    let expected = of_words::segmented_sum(&keys, &values, 9, Projective::zero(), |a, b| a + b);
    let mut out = garbage::<Xyzz<C>>(device, 9)?;
    let sum = SegmentedSum::<PointSum<C>>::new(device)?;
    sum.reduce(&device.upload(&keys)?, &device.upload(&values)?, &mut out)?;
    expect_same("sums of points", &out.to_vec()?, &expected)
}

/// Over a base field of 48 limbs, where one addition of points takes a thousand turns.
fn long_points(device: &Device) -> Outcome {
    check_times::<curves::Long>(device, 20)?;
    check_normalise::<curves::Long>(device, 600)?;
    check_sums::<curves::Long>(device, 600)
}

fn long_powers(device: &Device) -> Outcome {
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
fn long_products(device: &Device) -> Outcome {
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

fn many_keys(device: &Device) -> Outcome {
    // On two units a thread would take 2^16 of them.
    let len = if device.info().limits.loop_turns.is_some() { 1 << 26 } else { 1 << 20 };
    check_histogram(device, len)
}

fn check_histogram(device: &Device, len: usize) -> Outcome {
    let keys: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let mut out = garbage::<u32>(device, 1 << 5)?;
    Histogram::new(device)?.count(&device.upload(&keys)?, 7..12, &mut out)?;
    expect_same("counts", &out.to_vec()?, &of_words::histogram(&keys, &(7..12)))
}

/// Without forward progress a sweep is a loop over all keys: either done to the end, or refused with the keys as they were.
fn many_keys_by_one_workgroup(device: &Device) -> Outcome {
    let keys: Vec<u32> = (0..100_000u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let values: Vec<u32> = (0..keys.len() as u32).collect();
    let (mut dk, mut dv) = (device.upload::<u32>(&keys)?, device.upload::<u32>(&values)?);
    let sort = RadixSort::with_method(device, SortMethod::Sweep)?;
    let (keys, values) = match sort.sort(&mut dk, &mut dv, 3..19) {
        Ok(()) => {
            let mut sorted = values;
            sorted.sort_by_key(|i| keys[*i as usize] >> 3 & 0xffff);
            (sorted.iter().map(|i| keys[*i as usize]).collect(), sorted)
        }
        Err(Error::TooLarge { expected: limit, .. })
            if device.info().limits.loop_turns.map(u64::from) == Some(limit) =>
        {
            (keys, values)
        }
        Err(error) => return Err(error.into()),
    };
    expect_same("keys", &dk.to_vec()?, &keys)?;
    expect_same("values", &dv.to_vec()?, &values)
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

/// With affine additions and with tables, in parts that are as long as the device allows.
fn check_msm(device: &Device, len: usize) -> Outcome {
    let scalars = samples::<Fr>(len, 58);
    let bases = vec![Affine::<g1::Config>::generator(); len];
    let expected = Affine::<g1::Config>::generator() * scalars.iter().sum::<Fr>();
    let tuning =
        Tuning { slices: Some(1), least_slice: Some(u32::MAX), layer: Some(20), last: Some(20), ..Tuning::default() };
    let budget = 8 * (len * AffinePoint::<g1::Config>::BYTES) as u64;
    for (levels, precompute) in [(0, Precompute::Tables { budget }), (1, Precompute::None)] {
        let tuning = Tuning { levels: Some(levels), ..tuning };
        let config = MsmConfig { window: Some(8), tuning, precompute, ..MsmConfig::default() };
        expect_equal("a sum", &Msm::new(device, &bases, config)?.msm(&scalars)?, &expected)?;
    }
    Ok(())
}

/// A name, turns that must do, and what is tried.
type Operation = (&'static str, u32, fn(&Device) -> Outcome);

const OPERATIONS: [Operation; 9] = [
    ("times", 2000, |device| check_times::<g1::Config>(device, 20)),
    ("normalise", 2000, |device| check_normalise::<g1::Config>(device, 600)),
    ("sums_of_points", 2000, |device| check_sums::<g1::Config>(device, 600)),
    ("powers", 100, |device| check_powers(device, 20, &[0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321, 7])),
    ("products", 100, |device| check_products(device, 200)),
    ("inverse", 2000, |device| check_inverse(device, 5000)),
    ("reductions", 120, |device| check_reductions(device, 70_000)),
    ("histogram", 200, |device| check_histogram(device, 300_000)),
    ("msm", 4000, |device| check_msm(device, 200)),
];

/// The device as one that ends loops earlier.
fn impatient(device: &Device, turns: u32) -> Device {
    Device::unregistered(Recorder::impatient(device, turns) as Arc<_>)
}

/// With as few turns as `least`, work is done in more launches; with fewer, it is done or refused.
fn divided(device: &Device, least: u32, run: fn(&Device) -> Outcome) -> Outcome {
    for turns in [least, 100, 10] {
        let outcome = run(&impatient(device, turns));
        let refused = |error: &Failed| error.message().is_some_and(|text| text.contains("in turns of its loops"));
        match outcome {
            Err(error) if turns == least || !refused(&error) => {
                return Err(format!("{turns} turns: {}", error.message().unwrap_or("failed")).into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// What cannot be divided is an error before anything is written.
fn refused(device: &Device) -> Outcome {
    let device = &impatient(device, 100);
    let vector = Vector::<Fr>::new(device);
    let a = device.upload::<Mont<Fr>>(&samples(10, 56))?;
    let mut out = device.upload::<Mont<Fr>>(&[Fr::from(5); 10])?;
    let gate = Expression::column(0).pow(1 << 20);
    let error = expect_error("an expression of 20 products", vector.evaluate_expression(&gate, &[&a], &[], &mut out))?;
    expect("the error says so", matches!(error, Error::TooLarge { expected: 100, .. }))?;
    expect_same("untouched", &out.to_vec()?, &[Fr::from(5); 10])
}

/// Expressions too long for any launch are refused before a compiler sees them.
fn refused_before_compiling(device: &Device) -> Outcome {
    let recorder = Recorder::impatient(device, 100);
    let device = &Device::unregistered(Arc::clone(&recorder) as _);
    let a = device.upload::<Mont<Fr>>(&samples(8, 58))?;
    let mut out = device.upload::<Mont<Fr>>(&[Fr::from(5); 8])?;
    let vector = Vector::<Fr>::new(device);
    let long: Expression = (0..3000).map(|i| (Expression::column(0) + i) * Expression::column(0)).sum();
    let is_refused = |what: &str, error: Error| {
        expect(&format!("{what}: {error}"), matches!(error, Error::TooLarge { expected: 100, .. }))?;
        expect_equal(&format!("kernels that were compiled for {what}"), &recorder.compiled(), &0)
    };
    let evaluated = vector.evaluate_expression(&long, &[&a], &[], &mut out);
    is_refused("values", expect_error("values", evaluated)?)?;
    is_refused("a new vector", expect_error("a new vector", vector.compute(&long, &[&a], &[]))?)?;
    is_refused("a sum", expect_error("a sum", vector.sum_expression(&long, &[&a], &[]))?)?;
    expect_same("untouched", &out.to_vec()?, &[Fr::from(5); 8])?;
    let statement = Statement::<Fr>::new(3, &long)?;
    let plan = Sumcheck::<Fr>::new(device, &long, evariste_sumcheck::Config::default())?;
    let proved = plan.prove(&statement, &[&a], Fr::from(0), &mut Blake3Transcript::new(b"long"));
    match expect_error("a proof", proved)? {
        evariste_sumcheck::Error::Device(error) => is_refused("a proof", error),
        other => Err(format!("a proof: {other}").into()),
    }
}

/// An operation on a vector.
type Run<'a> = dyn Fn(&mut Buffer<Mont<Fr>>) -> Result<(), Failed> + 'a;

/// Whatever a device allows, an operation of several launches in place is done to the end or has touched nothing.
fn whole_or_not_at_all(device: &Device) -> Outcome {
    const LOG_N: u32 = 12;

    let a = samples::<Fr>(1 << LOG_N, 57);
    let config = Config { twiddles: Some(Twiddles::OnTheFly), ..Config::default() };
    let mut transformed = device.upload::<Mont<Fr>>(&a)?;
    Ntt::<Fr>::with_config(device, LOG_N, config)?.forward(&mut transformed)?;
    let transformed = transformed.to_vec()?;
    let raised: Vec<Fr> = a.iter().map(|x| x.pow([0x1234_5678_9abc])).collect();
    let (mut refused, mut done) = (0, 0);
    for turns in (1..14).map(|log| 1 << log).chain([25, 30, 35, 40]) {
        let device = &impatient(device, turns);
        let vector = Vector::<Fr>::new(device);
        // Tables are not what is tried.
        let ntt = Ntt::<Fr>::with_config(device, LOG_N, config);
        let mut check = |what: &str, expected: &[Fr], run: &Run<'_>| {
            let mut data = device.upload::<Mont<Fr>>(&a)?;
            let outcome = run(&mut data);
            let expected = if outcome.is_ok() { expected } else { &a[..] };
            *if outcome.is_ok() { &mut done } else { &mut refused } += 1;
            expect_same(&format!("{what} in {turns} turns: {outcome:?}"), &data.to_vec()?, expected)
        };
        check("powers", &raised, &|data| Ok(vector.pow_assign(data, [0x1234_5678_9abc])?))?;
        if let Ok(ntt) = &ntt {
            check("a transform", &transformed, &|data| Ok(ntt.forward(data)?))?;
        }
    }
    expect("some were refused and some done", refused > 0 && done > 0)
}
