//! Proves Plonky3's Keccak AIR three times, and compares the proofs and the times of each stage: with Plonky3's own
//! types, with transforms and trees on a device, and with the commitment scheme that stays there.
//!
//! `cargo run --release -p evariste-plonky3 --example keccak -- 14 cuda:0` proves a trace of 2^14 rows. Without a device
//! it takes the one that `EVARISTE_DEVICE` names, or else the best one. Plonky3 has vector code only where this program
//! is built for it, as with `RUSTFLAGS=-Ctarget-cpu=native`.

#[path = "support/stages.rs"]
mod stages;

use std::time::Instant;

use anyhow::{Result, ensure};
use evariste_backend::Device;
use evariste_hash::Poseidon2Parameters;
use evariste_plonky3::{DeviceDft, DeviceFriPcs, DeviceMmcs};
use p3_baby_bear::{BabyBear, Poseidon2BabyBear, default_babybear_poseidon2_16};
use p3_challenger::DuplexChallenger;
use p3_commit::ExtensionMmcs;
use p3_dft::Radix2DitParallel;
use p3_field::{Field, extension::BinomialExtensionField};
use p3_fri::{FriParameters, TwoAdicFriPcs};
use p3_keccak_air::KeccakAir;
use p3_matrix::Matrix;
use p3_merkle_tree::MerkleTreeMmcs;
use p3_symmetric::{PaddingFreeSponge, TruncatedPermutation};
use p3_uni_stark::{Proof, StarkConfig, prove, verify};

type Permutation = Poseidon2BabyBear<16>;
type Hash = PaddingFreeSponge<Permutation, 16, 8, 8>;
type Compression = TruncatedPermutation<Permutation, 2, 8, 16>;
type Packing = <BabyBear as Field>::Packing;
type HostMmcs = MerkleTreeMmcs<Packing, Packing, Hash, Compression, 2, 8>;
type OurMmcs = DeviceMmcs<BabyBear, Permutation, 16, 8, 8>;

type Challenge = BinomialExtensionField<BabyBear, 4>;
type Challenger = DuplexChallenger<BabyBear, Permutation, 16, 8>;
type HostPcs<Dft, ValMmcs> = TwoAdicFriPcs<BabyBear, Dft, ValMmcs, ExtensionMmcs<BabyBear, Challenge, ValMmcs>>;
type OurPcs = DeviceFriPcs<BabyBear, OurMmcs>;
type Config<Pcs> = StarkConfig<Pcs, Challenge, Challenger>;
type HostConfig = Config<HostPcs<Radix2DitParallel<BabyBear>, HostMmcs>>;

/// Without proofs of work: Plonky3 takes any solution that one of its threads finds first, and proofs would differ.
fn fri<M>(mmcs: M) -> FriParameters<M> {
    FriParameters { query_proof_of_work_bits: 0, ..FriParameters::new_benchmark(mmcs) }
}

fn config<Pcs: Clone>(pcs: Pcs) -> Config<Pcs> {
    Config::new(pcs, Challenger::new(default_babybear_poseidon2_16()))
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let log_rows: u32 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let device = arguments.next().map_or_else(Device::best, |text| text.parse())?;
    ensure!((5..24).contains(&log_rows), "a trace has 2^5 to 2^23 rows, of which a permutation takes 24");

    let start = Instant::now();
    let trace = KeccakAir {}.generate_random_trace_rows::<BabyBear>((1 << log_rows) / 24, 1);
    println!("2^{} rows, {} columns, made in {:.1?}", trace.height().ilog2(), trace.width(), start.elapsed());
    stages::start()?;

    let permutation = default_babybear_poseidon2_16();
    let mmcs = HostMmcs::new(Hash::new(permutation.clone()), Compression::new(permutation.clone()), 0);
    let parameters = fri(ExtensionMmcs::new(mmcs.clone()));
    let host: HostConfig = config(HostPcs::new(Radix2DitParallel::default(), mmcs, parameters));
    let expected = stages::proved("Plonky3's types", &trace, |trace| prove(&host, &KeccakAir {}, trace, &[]))?;

    let name = device.info().id;
    let mmcs = OurMmcs::new(&device, permutation, Poseidon2Parameters::plonky3(16)?, 0)?;
    let parameters = fri(ExtensionMmcs::new(mmcs.clone()));
    let adapters = config(HostPcs::new(DeviceDft::<BabyBear>::new(&device), mmcs.clone(), parameters));
    let proof = stages::proved(&format!("transforms and trees on {name}"), &trace, |trace| {
        prove(&adapters, &KeccakAir {}, trace, &[])
    })?;
    ensure!(proof.proof == expected.proof, "the proofs differ");

    let resident = config(OurPcs::new(mmcs.clone(), fri(mmcs))?);
    let proof = stages::proved(&format!("all commitments on {name}"), &trace, |trace| {
        prove(&resident, &KeccakAir {}, trace, &[])
    })?;
    ensure!(proof.proof == expected.proof, "the proofs differ");

    proof.beside(&expected);

    let proof: Proof<HostConfig> = serde_json::from_str(&proof.proof)?;
    verify(&host, &KeccakAir {}, &proof, &[]).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    println!("the proofs are the same, and Plonky3's verifier accepts them ({})", device.info().name);
    Ok(())
}
