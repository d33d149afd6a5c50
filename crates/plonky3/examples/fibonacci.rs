//! Proves Fibonacci sequences side by side: with Plonky3's own types, with transforms and trees on a device, with the
//! commitment scheme that stays there, and with constraints there as well. Compares the proofs and the times.
//!
//! `cargo run --release -p evariste-plonky3 --example fibonacci -- 16 64 cuda:0` proves 2^16 steps of 64 sequences.
//! Without a device it takes the one that `EVARISTE_DEVICE` names, or else the best one. Plonky3 has vector code only
//! where this program is built for it, as with `RUSTFLAGS=-Ctarget-cpu=native`.

#[path = "support/sides.rs"]
mod sides;
#[path = "support/stages.rs"]
mod stages;

use anyhow::{Result, ensure};
use evariste_backend::Device;
use evariste_plonky3::{DeviceAir, prove_with};
use p3_air::{Air, AirBuilder, BaseAir, WindowAccess};
use p3_baby_bear::BabyBear;
use p3_field::PrimeCharacteristicRing;
use p3_matrix::dense::RowMajorMatrix;
use p3_uni_stark::{Proof, prove, verify};

/// Rows of pairs (a, b), each followed by (b, a + b). The first row is public.
struct Sequences(usize);

impl<F> BaseAir<F> for Sequences {
    fn width(&self) -> usize {
        2 * self.0
    }

    fn num_public_values(&self) -> usize {
        2 * self.0
    }
}

impl<AB: AirBuilder> Air<AB> for Sequences {
    fn eval(&self, builder: &mut AB) {
        let main = builder.main();
        for column in 0..2 * self.0 {
            let (first, value) = (builder.public_values()[column], main.current_slice()[column]);
            builder.when_first_row().assert_eq(value, first);
        }
        for column in (0..2 * self.0).step_by(2) {
            let [left, right] = [0, 1].map(|i| main.current_slice()[column + i]);
            let [next_left, next_right] = [0, 1].map(|i| main.next_slice()[column + i]);
            let mut transition = builder.when_transition();
            transition.assert_eq(right, next_left);
            transition.assert_eq(left + right, next_right);
        }
    }
}

/// A trace of 2^`log_rows` rows.
fn trace(log_rows: u32, sequences: usize) -> RowMajorMatrix<BabyBear> {
    let mut row: Vec<BabyBear> = (0..2 * sequences).map(BabyBear::from_usize).collect();
    let mut values = Vec::with_capacity(row.len() << log_rows);
    for _ in 0..1usize << log_rows {
        values.extend(&row);
        for pair in row.as_chunks_mut::<2>().0 {
            *pair = [pair[1], pair[0] + pair[1]];
        }
    }
    RowMajorMatrix::new(values, 2 * sequences)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let log_rows = arguments.next().map_or(Ok(12), |text| text.parse())?;
    let sequences = arguments.next().map_or(Ok(16), |text| text.parse())?;
    let device = arguments.next().map_or_else(Device::best, |text| text.parse())?;
    let (air, trace) = (Sequences(sequences), trace(log_rows, sequences));
    let public = trace.values[..2 * sequences].to_vec();
    println!("2^{log_rows} rows, {} columns", 2 * sequences);

    stages::start()?;

    let host = sides::host();
    let expected = stages::proved("Plonky3's types", &trace, |trace| prove(&host, &air, trace, &public))?;

    let name = device.info().id;
    let adapters = sides::adapters(&device)?;
    let text = format!("transforms and trees on {name}");
    let proof = stages::proved(&text, &trace, |trace| prove(&adapters, &air, trace, &public))?;
    ensure!(proof.proof == expected.proof, "the proofs differ");

    let resident = sides::resident(&device)?;
    let text = format!("all commitments on {name}");
    let proof = stages::proved(&text, &trace, |trace| prove(&resident, &air, trace, &public))?;
    ensure!(proof.proof == expected.proof, "the proofs differ");
    let constraints = DeviceAir::new(&air)?;
    let text = format!("constraints on {name} as well");
    let proof = stages::proved(&text, &trace, |trace| prove_with(&resident, &air, &constraints, trace, &public))?;
    ensure!(proof.proof == expected.proof, "the proofs differ");
    proof.beside(&expected);

    let proof: Proof<sides::HostConfig> = serde_json::from_str(&proof.proof)?;
    verify(&host, &air, &proof, &public).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    println!("the proofs are the same, and Plonky3's verifier accepts them ({})", device.info().name);
    Ok(())
}
