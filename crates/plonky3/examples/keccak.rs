//! Proves Plonky3's Keccak AIR four times, and compares the proofs and the times of each stage: with Plonky3's own
//! types, with transforms and trees on a device, with the commitment scheme that stays there, and with constraints there
//! as well.
//!
//! `cargo run --release -p evariste-plonky3 --example keccak -- 14 cuda:0` proves a trace of 2^14 rows. Without a device
//! it takes the one that `EVARISTE_DEVICE` names, or else the best one. Plonky3 has vector code only where this program
//! is built for it, as with `RUSTFLAGS=-Ctarget-cpu=native`.

#[path = "support/sides.rs"]
mod sides;
#[path = "support/stages.rs"]
mod stages;

use std::time::Instant;

use anyhow::{Result, ensure};
use evariste_backend::Device;
use evariste_plonky3::{DeviceAir, prove_with};
use p3_baby_bear::BabyBear;
use p3_keccak_air::KeccakAir;
use p3_matrix::Matrix;
use p3_uni_stark::{Proof, prove, verify};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let log_rows: u32 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let device = arguments.next().map_or_else(Device::best, |text| text.parse())?;
    ensure!((5..24).contains(&log_rows), "a trace has 2^5 to 2^23 rows, of which a permutation takes 24");

    let start = Instant::now();
    let trace = KeccakAir {}.generate_random_trace_rows::<BabyBear>((1 << log_rows) / 24, 1);
    println!("2^{} rows, {} columns, made in {:.1?}", trace.height().ilog2(), trace.width(), start.elapsed());
    stages::start()?;

    let host = sides::host();
    let expected = stages::proved("Plonky3's types", &trace, |trace| prove(&host, &KeccakAir {}, trace, &[]))?;

    let name = device.info().id;
    let adapters = sides::adapters(&device)?;
    let proof = stages::proved(&format!("transforms and trees on {name}"), &trace, |trace| {
        prove(&adapters, &KeccakAir {}, trace, &[])
    })?;
    ensure!(proof.proof == expected.proof, "the proofs differ");

    let resident = sides::resident(&device)?;
    let proof = stages::proved(&format!("all commitments on {name}"), &trace, |trace| {
        prove(&resident, &KeccakAir {}, trace, &[])
    })?;
    ensure!(proof.proof == expected.proof, "the proofs differ");

    let constraints = DeviceAir::new(&KeccakAir {})?;
    let proof = stages::proved(&format!("constraints on {name} as well"), &trace, |trace| {
        prove_with(&resident, &KeccakAir {}, &constraints, trace, &[])
    })?;
    ensure!(proof.proof == expected.proof, "the proofs differ");
    proof.beside(&expected);

    let proof: Proof<sides::HostConfig> = serde_json::from_str(&proof.proof)?;
    verify(&host, &KeccakAir {}, &proof, &[]).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    println!("the proofs are the same, and Plonky3's verifier accepts them ({})", device.info().name);
    Ok(())
}
