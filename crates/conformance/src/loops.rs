//! Devices that end the loops of a thread after some iterations: work is divided into launches that stay below, or
//! refused, and never comes out wrong.

use std::sync::Arc;

use ark_bls12_381::Fr;
use ark_ff::Field;
use evariste::{
    backend::{
        Buffer, Device, Error,
        author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Language},
        params,
    },
    field::{Expression, Mont, Vector},
    ntt::{Ntt, NttConfig, Twiddles},
    sumcheck::{self, Blake3Transcript, Statement, Sumcheck},
};
use libtest_mimic::Failed;

use crate::{
    devices::garbage,
    expect::{expect, expect_equal, expect_error, expect_same},
    harness::{DeviceTrials, Outcome},
    recorder::Recorder,
    samples::samples,
    trials::AREAS,
};

pub(crate) fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("iterations", iterations);
    for &(name, least, run) in AREAS.iter().flat_map(|area| area.divided) {
        trials.add_with(&format!("divided::{name}"), move |device| divided(device, least, run));
    }
    trials.add("refused", refused);
    trials.add("refused_before_compiling", refused_before_compiling);
    trials.add("whole_or_not_at_all", whole_or_not_at_all);
}

params! {
    struct Params {
        outer: u32,
        inner: u32,
    }
}

impl Params {
    fn iterations(self) -> u64 {
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
            "extern \"C\" __global__ void iterations(const Params params, uint32_t* out) {\n\
             if (blockIdx.x * blockDim.x + threadIdx.x > 0) return;\n\
             uint32_t x = 1;\n\
             for (uint32_t i = 0; i < params.outer; i++) {\n\
             for (uint32_t j = 0; j < params.inner; j++) x = x * 1664525u + 1013904223u;\n}\n\
             out[0] = x;\n}\n"
        }
        Language::Wgsl { .. } => {
            "@compute @workgroup_size(THREADS)\n\
             fn iterations(@builtin(global_invocation_id) id: vec3<u32>) {\n\
             if (id.x + id.y + id.z > 0u) { return; }\n\
             var x = 1u;\n\
             for (var i = 0u; i < params.outer; i++) {\n\
             for (var j = 0u; j < params.inner; j++) { x = x * 1664525u + 1013904223u; }\n}\n\
             out_set(0u, x);\n}\n"
        }
    };
    let body = |params: &Params, out: &mut CpuArg<'_>| out.write::<u32>()[0] = params.result();
    let bindings = Binding::write("out", BindingType::U32);
    KernelSpec::new("iterations", "of two loops", bindings, body, move |language| source(language).to_owned())
        .threads(64)
        .iterations(|params: &Params| params.iterations())
}

/// All iterations that a device says it has are done; with more, a launch is refused.
fn iterations(device: &Device) -> Outcome {
    const INNER: u32 = 100;

    let kernel = Kernel::<Params>::new(device, spec())?;
    let limit = device.info().limits.loop_iterations;
    let most = (limit.unwrap_or(200_000) - 1) / (INNER + 2);
    let run = |params: Params| -> Result<u32, Error> {
        let mut out = garbage::<u32>(device, 1)?;
        // SAFETY: one thread writes one element.
        unsafe { kernel.launch(&device.default_queue(), 1, &params, &mut [Arg::write(&mut out)]) }?;
        Ok(out.to_vec()?[0])
    };
    for outer in [0, 1, most / 2, most] {
        let params = Params { outer, inner: INNER };
        expect_equal(&format!("{outer} times {INNER} iterations"), &run(params)?, &params.result())?;
    }
    let more = Params { outer: most + 1, inner: INNER };
    match limit {
        None => expect_equal("more iterations", &run(more)?, &more.result()),
        Some(limit) => {
            expect("more iterations do not fit", !kernel.fits(&more))?;
            let (limit, what) = (limit.into(), "the work of one thread, in iterations of its loops,");
            let expected =
                Error::TooLarge { what, device: device.info().id, expected: limit, actual: more.iterations() };
            expect_equal("more iterations", &expect_error("more iterations", run(more))?, &expected)
        }
    }
}

/// A name, iterations that must do, and what is tried.
pub(crate) type Divided = (&'static str, u32, fn(&Device) -> Outcome);

/// The device as one that ends loops earlier.
fn impatient(device: &Device, iterations: u32) -> Device {
    Device::unregistered(Recorder::impatient(device, iterations) as Arc<_>)
}

/// With as few iterations as `least`, work is done in more launches; with fewer, it is done or refused.
fn divided(device: &Device, least: u32, run: fn(&Device) -> Outcome) -> Outcome {
    for iterations in [least, 100, 10] {
        let outcome = run(&impatient(device, iterations));
        let refused = |error: &Failed| error.message().is_some_and(|text| text.contains("in iterations of its loops"));
        match outcome {
            Err(error) if iterations == least || !refused(&error) => {
                return Err(format!("{iterations} iterations: {}", error.message().unwrap_or("failed")).into());
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
    let plan = Sumcheck::<Fr>::new(device, &long)?;
    let proved = plan.prove(&statement, &[&a], Fr::from(0), &mut Blake3Transcript::new(b"long"));
    match expect_error("a proof", proved)? {
        sumcheck::Error::Device(error) => is_refused("a proof", error),
        other => Err(format!("a proof: {other}").into()),
    }
}

/// An operation on a vector.
type Run<'a> = dyn Fn(&mut Buffer<Mont<Fr>>) -> Result<(), Failed> + 'a;

/// Whatever a device allows, an operation of several launches in place is done to the end or has touched nothing.
fn whole_or_not_at_all(device: &Device) -> Outcome {
    const LOG_N: u32 = 12;

    let a = samples::<Fr>(1 << LOG_N, 57);
    let config = NttConfig::default().twiddles(Twiddles::OnTheFly);
    let mut transformed = device.upload::<Mont<Fr>>(&a)?;
    Ntt::<Fr>::with_config(device, LOG_N, config)?.forward(&mut transformed)?;
    let transformed = transformed.to_vec()?;
    let raised: Vec<Fr> = a.iter().map(|x| x.pow([0x1234_5678_9abc])).collect();
    let (mut refused, mut done) = (0, 0);
    for iterations in (1..14).map(|log| 1 << log).chain([25, 30, 35, 40]) {
        let device = &impatient(device, iterations);
        let vector = Vector::<Fr>::new(device);
        // Tables are not what is tried.
        let ntt = Ntt::<Fr>::with_config(device, LOG_N, config);
        let mut check = |what: &str, expected: &[Fr], run: &Run<'_>| {
            let mut data = device.upload::<Mont<Fr>>(&a)?;
            let outcome = run(&mut data);
            let expected = if outcome.is_ok() { expected } else { &a[..] };
            *if outcome.is_ok() { &mut done } else { &mut refused } += 1;
            expect_same(&format!("{what} in {iterations} iterations: {outcome:?}"), &data.to_vec()?, expected)
        };
        check("powers", &raised, &|data| Ok(vector.pow_assign(data, [0x1234_5678_9abc])?))?;
        if let Ok(ntt) = &ntt {
            check("a transform", &transformed, &|data| Ok(ntt.forward(data)?))?;
        }
    }
    expect("some were refused and some done", refused > 0 && done > 0)
}
