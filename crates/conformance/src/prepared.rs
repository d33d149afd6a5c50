//! That calls compile nothing once their plan was made, or was prepared for them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use ark_bn254::g1;
use ark_ec::{AffineRepr, short_weierstrass::Affine};
use ark_ff::{FftField, Field};
use evariste_backend::{Device, Kind};
use evariste_field::{Expression, Mont, small::BabyBear};
use evariste_msm::{Error, Msm, MsmConfig, MsmCurve, Tuning};
use evariste_ntt::{LowDegreeExtension, Ntt, Order};
use evariste_sumcheck::{Blake3Transcript, Config, Order as Binding, Statement, Sumcheck, Weight};
use libtest_mimic::Failed;

use crate::{Outcome, curves, expect, expect_equal, is_emulated, samples::samples};

/// log₂ of a transform of two passes.
const LOG_N: u32 = 13;

/// Checks a device that nobody else uses meanwhile, and tells what it compiled. Sums of points are left out where their kernels
/// take minutes.
pub(crate) fn check(device: &Device, with_points: bool) -> Result<String, Failed> {
    let told = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&told);
    device.on_compile(Some(Arc::new(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    })));
    let before = device.stats();
    transforms(device)?;
    sumchecks(device)?;
    match with_points {
        false => {}
        // Whose kernels they compile in a few seconds.
        true if is_emulated(device) => points::<curves::Short>(device)?,
        true => points::<g1::Config>(device)?,
    }
    device.on_compile(None);
    let after = device.stats();
    let (compiled, loaded) = (after.compiled - before.compiled, after.cache_hits - before.cache_hits);
    expect_equal("kernels that the observer was told of", &told.load(Ordering::Relaxed), &(compiled + loaded))?;
    // A device of the CPU's kind that has workgroups runs CUDA's sources.
    let info = device.info();
    let compiles = info.id.kind != Kind::Cpu || info.limits.workgroup_threads > 1;
    expect_equal("some kernels are compiled", &(compiled + loaded > 0), &compiles)?;
    expect("compiling took time", compiled == 0 || after.compile_time > before.compile_time)?;
    Ok(format!("{compiled} compiled, {loaded} from the cache"))
}

/// Does what must compile nothing.
fn quietly(device: &Device, what: &str, call: impl FnOnce() -> Outcome) -> Outcome {
    let before = device.stats();
    call()?;
    let after = device.stats();
    expect_equal(what, &(after.compiled, after.cache_hits), &(before.compiled, before.cache_hits))
}

fn transforms(device: &Device) -> Outcome {
    let (ntt, columns) = (Ntt::<BabyBear>::new(device, LOG_N)?, 3);
    let mut data = device.upload(&samples::<BabyBear>(columns << LOG_N, 1))?;
    let mut out = device.alloc(data.len())?;
    quietly(device, "transforms in natural order", || {
        for transform in [ntt.transform(), ntt.coset(BabyBear::GENERATOR)] {
            transform.forward(&mut data)?;
            transform.inverse(&mut data)?;
        }
        Ok(())
    })?;
    for coset in [BabyBear::ONE, BabyBear::GENERATOR] {
        for (input, output) in [(Order::Natural, Order::BitReversed), (Order::BitReversed, Order::Natural)] {
            let transform = ntt.coset(coset).input(input).output(output).columns(columns);
            transform.prepare()?;
            quietly(device, &format!("columns of {input:?} to {output:?} order"), || {
                transform.forward(&mut data)?;
                transform.inverse(&mut data)?;
                transform.forward_into(&data, &mut out)?;
                Ok(transform.inverse_into(&data, &mut out)?)
            })?;
        }
    }
    let extension = LowDegreeExtension::<BabyBear>::new(device, LOG_N, 1)?.columns(columns);
    extension.prepare(BabyBear::GENERATOR, Order::BitReversed)?;
    quietly(device, "a low-degree extension", || {
        extension.extend(&data, BabyBear::GENERATOR, Order::BitReversed)?;
        Ok(())
    })
}

fn sumchecks(device: &Device) -> Outcome {
    const NUM_VARS: usize = 9;
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    let expression = a * b - c;
    let sumcheck = Sumcheck::<BabyBear>::new(device, &expression, Config::default())?;
    let [a, b] = [1, 2].map(|seed| samples::<BabyBear>(1 << NUM_VARS, seed));
    let c: Vec<BabyBear> = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
    let upload = || [&a, &b, &c].map(|table| device.upload(table)).into_iter().collect::<Result<Vec<_>, _>>();
    for order in [Binding::MsbFirst, Binding::LsbFirst] {
        for weight in [Weight::None, Weight::ZeroCheck] {
            let statement =
                Statement::new(NUM_VARS, &expression)?.weight(weight.clone()).order(order).allow_small_challenges();
            sumcheck.prepare(&statement)?;
            let tables = upload()?;
            quietly(device, &format!("a proof with {weight:?} from {order:?}"), || {
                let views: Vec<_> = tables.iter().map(|table| table.as_view()).collect();
                let claim = BabyBear::from(0u8);
                sumcheck.prove(&statement, &views, claim, &mut Blake3Transcript::new(b"prepared"))?;
                sumcheck.prove_consuming(&statement, upload()?, claim, &mut Blake3Transcript::new(b"prepared"))?;
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn points<C: MsmCurve>(device: &Device) -> Outcome {
    let bases = vec![Affine::<C>::generator(); 300];
    let msm = Msm::new(device, &bases, MsmConfig::default())?;
    let scalars: Vec<C::ScalarField> = samples(bases.len(), 3);
    quietly(device, "a sum of points", || {
        let sum = msm.msm(&scalars)?;
        let scalars = device.upload::<Mont<C::ScalarField>>(&scalars)?;
        expect("the same sum of scalars on the device", msm.msm(&scalars)? == sum)
    })?;
    many_sums(device, &bases)
}

/// Several sums of short scalars, in memory that would not hold one sum of long ones: so that what they take is not what the plan
/// was made with.
fn many_sums<C: MsmCurve>(device: &Device, bases: &[Affine<C>]) -> Outcome {
    let with = |memory| {
        let tuning = Tuning { levels: Some(2), ..Tuning::default() };
        Msm::new(device, bases, MsmConfig { memory: Some(memory), tuning, ..MsmConfig::default() })
    };
    let Err(Error::InsufficientMemory { expected, .. }) = with(0)?.required_bytes(bases.len(), 1) else {
        return Err("a sum takes no memory".into());
    };
    let msm = with(expected - 1)?;
    msm.prepare()?;
    quietly(device, "several sums of points", || {
        let scalars: Vec<_> = (0..3 * bases.len()).map(|i| C::ScalarField::from((i % 3) as u64)).collect();
        let sums = msm.msm_batch(3, &scalars)?;
        expect("the sums", sums == [bases[0] * C::ScalarField::from(bases.len() as u64); 3])
    })
}
