//! Shows how long a program waits for its first results, and for which kernels.
//!
//! ```text
//! EVARISTE_CACHE=off cargo run --release --example cold_start -- [--device cpu|cuda:0|wgpu:0] [--log-n 20] [ntt] [msm] [sumcheck] [groth16]
//! ```
//!
//! With `EVARISTE_CACHE` naming a folder with an archive that `cargo xtask kernels --package` made, it needs no NVRTC.
//!
//! Each part makes a plan, calls it, and calls it again. `ntt` transforms over BLS12-381 Fr, `msm` sums points of
//! BLS12-381 G1, `sumcheck` zero-checks ab − c over BLS12-381 Fr, and `groth16` makes what a prover over BN254 needs:
//! transforms on cosets, sums in G1 and in G2. Kernels are compiled side by side when plans are made, and progress is
//! shown; calls compile nothing.

use std::{
    env,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use ark_ec::{AffineRepr, short_weierstrass::Affine};
use ark_ff::{FftField, UniformRand};
use evariste::{msm::MsmCurve, prelude::*};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Points of a sum.
const LOG_POINTS: u32 = 16;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let (mut device, mut log_n, mut parts) = (None, 20, Vec::new());
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--device" => device = Some(arguments.next().ok_or("--device needs a name")?.parse()?),
            "--log-n" => log_n = arguments.next().ok_or("--log-n needs a number")?.parse()?,
            _ => parts.push(argument),
        }
    }
    let device = if let Some(device) = device { device } else { Device::best()? };
    println!("{device}");
    let done = AtomicU64::new(0);
    device.on_compile(Some(Arc::new(move |compilation| {
        let number = done.fetch_add(1, Ordering::Relaxed) + 1;
        println!("  kernel {number}: {} in {:.2?} ({:?})", compilation.kernel, compilation.time, compilation.origin);
    })));
    if parts.is_empty() {
        parts.push("ntt".into());
    }
    for part in parts {
        match part.as_str() {
            "ntt" => timed(&device, "ntt", || transforms::<ark_bls12_381::Fr>(&device, log_n))?,
            "msm" => timed(&device, "msm", || sums::<ark_bls12_381::g1::Config>(&device))?,
            "sumcheck" => timed(&device, "sumcheck", || zero_check(&device, log_n))?,
            "groth16" => timed(&device, "groth16", || {
                transforms::<ark_bn254::Fr>(&device, log_n)?;
                sums::<ark_bn254::g1::Config>(&device)?;
                sums::<ark_bn254::g2::Config>(&device)
            })?,
            other => return Err(format!("{other} is none of ntt, msm, sumcheck, groth16").into()),
        }
    }
    Ok(())
}

/// Does it twice, and tells how long that took and what was compiled.
fn timed(device: &Device, name: &str, work: impl Fn() -> Result<()>) -> Result<()> {
    for turn in ["first", "second"] {
        let (start, before) = (Instant::now(), device.stats());
        work()?;
        device.sync()?;
        let (time, after) = (start.elapsed(), device.stats());
        println!(
            "{name}, plan and calls, {turn}: {time:.2?}; {} kernels compiled in {:.2?} of all threads, {} from the cache in {:.2?}",
            after.compiled - before.compiled,
            after.compile_time - before.compile_time,
            after.cache_hits - before.cache_hits,
            after.load_time - before.load_time,
        );
    }
    Ok(())
}

fn random<F: UniformRand>(len: usize) -> Vec<F> {
    let mut rng = ark_std::test_rng();
    (0..len).map(|_| F::rand(&mut rng)).collect()
}

/// Fails if a call compiles anything.
fn quietly<T>(device: &Device, call: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = device.stats();
    let result = call()?;
    let after = device.stats();
    match (after.compiled, after.cache_hits) == (before.compiled, before.cache_hits) {
        true => Ok(result),
        false => Err("a call compiled".into()),
    }
}

fn transforms<F: DeviceField + FftField>(device: &Device, log_n: u32) -> Result<()> {
    let ntt = Ntt::<F>::new(device, log_n)?;
    let mut data = device.upload::<Mont<F>>(&vec![F::GENERATOR; 1 << log_n])?;
    quietly(device, || {
        ntt.inverse(&mut data)?;
        ntt.coset(F::GENERATOR).forward(&mut data)?;
        ntt.coset(F::GENERATOR).inverse(&mut data)?;
        Ok(ntt.forward(&mut data)?)
    })?;
    match data.view(..2)?.to_vec()? == [F::GENERATOR; 2] {
        true => Ok(()),
        false => Err("there and back is another vector".into()),
    }
}

fn sums<C: MsmCurve>(device: &Device) -> Result<()> {
    let bases = vec![Affine::<C>::generator(); 1 << LOG_POINTS];
    let scalars: Vec<C::ScalarField> = random(bases.len());
    let msm = Msm::new(device, &bases)?;
    let sum = quietly(device, || Ok(msm.msm(&scalars)?))?;
    match sum == Affine::<C>::generator() * scalars.iter().sum::<C::ScalarField>() {
        true => Ok(()),
        false => Err("the sum is another point".into()),
    }
}

fn zero_check(device: &Device, log_n: u32) -> Result<()> {
    type Fr = ark_bls12_381::Fr;
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    let expression = a * b - c;
    let statement = Statement::<Fr>::new(log_n as usize, &expression)?.weight(Weight::ZeroCheck);
    let sumcheck = Sumcheck::<Fr>::new(device, &expression)?;
    sumcheck.prepare(&statement)?;
    let tables = [2u8, 3, 6].map(|value| device.upload::<Mont<Fr>>(&vec![Fr::from(value); 1 << log_n]));
    let tables: Vec<_> = tables.into_iter().collect::<Result<_, _>>()?;
    let views: Vec<_> = tables.iter().map(Buffer::as_view).collect();
    let transcript = || Blake3Transcript::new(b"cold start");
    let proved = quietly(device, || Ok(sumcheck.prove(&statement, &views, Fr::from(0u8), &mut transcript())?))?;
    let claim = statement.verify(Fr::from(0u8), &proved.proof, &mut transcript())?;
    match claim.value == proved.value {
        true => Ok(()),
        false => Err("the verifier has another claim".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_right() {
        let device = Device::cpu();
        transforms::<ark_bn254::Fr>(&device, 6).unwrap();
        zero_check(&device, 6).unwrap();
        assert!(quietly(&device, || Err::<(), _>("no".into())).is_err());
    }
}
