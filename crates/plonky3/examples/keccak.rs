//! Proves Plonky3's Keccak AIR three times, and compares the proofs and the times of each stage: with Plonky3's own
//! types, with transforms and trees on a device, and with the commitment scheme that stays there.
//!
//! `cargo run --release -p evariste-plonky3 --example keccak -- 14 cuda:0` proves a trace of 2^14 rows. Without a device
//! it takes the one that `EVARISTE_DEVICE` names, or else the best one. Plonky3 has vector code only where this program
//! is built for it, as with `RUSTFLAGS=-Ctarget-cpu=native`.

use std::{
    fmt::Debug,
    sync::Mutex,
    time::{Duration, Instant},
};

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
use p3_matrix::{Matrix, dense::RowMajorMatrix};
use p3_merkle_tree::MerkleTreeMmcs;
use p3_symmetric::{PaddingFreeSponge, TruncatedPermutation};
use p3_uni_stark::{Proof, StarkConfig, prove, verify};
use serde::Serialize;
use tracing::{Event, Metadata, Subscriber, span};

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

/// Plonky3's names of the stages of a proof.
const STAGES: [&str; 4] = ["commit to trace data", "quotient_values", "commit to quotient poly chunks", "open"];

/// When a stage began, and how long it took, by its number.
static TIMES: Mutex<[(Option<Instant>, Duration); 4]> = Mutex::new([(None, Duration::ZERO); 4]);

/// Times the stages.
struct Stages;

impl Stages {
    fn number(metadata: &Metadata<'_>) -> Option<usize> {
        STAGES.iter().position(|stage| metadata.is_span() && *stage == metadata.name())
    }

    fn with(id: &span::Id, change: impl FnOnce(&mut (Option<Instant>, Duration))) {
        let number = id.into_u64() as usize - 1;
        if let Some(time) = TIMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_mut(number) {
            change(time);
        }
    }
}

impl Subscriber for Stages {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        Self::number(metadata).is_some()
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        // Others come only where nobody asked whether they are enabled.
        span::Id::from_u64(Self::number(span.metadata()).unwrap_or(STAGES.len()) as u64 + 1)
    }

    fn enter(&self, id: &span::Id) {
        Self::with(id, |(begun, _)| *begun = Some(Instant::now()));
    }

    fn exit(&self, id: &span::Id) {
        Self::with(id, |(begun, took)| *took += begun.take().map_or(Duration::ZERO, |begun| begun.elapsed()));
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {}
}

/// Proves twice, prints the times of the second proof, and returns it as text.
fn proved<T: Serialize, E: Debug>(
    name: &str,
    trace: &RowMajorMatrix<BabyBear>,
    prove: impl Fn(RowMajorMatrix<BabyBear>) -> Result<T, E>,
) -> Result<String> {
    let times = || TIMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (mut proof, mut whole) = (None, Duration::ZERO);
    for _ in 0..2 {
        let trace = trace.clone();
        *times() = Default::default();
        let start = Instant::now();
        proof = Some(prove(trace).map_err(|error| anyhow::anyhow!("{error:?}"))?);
        whole = start.elapsed();
    }
    let stages = times().map(|(_, took)| took);
    let rest = whole.saturating_sub(stages.iter().sum());
    let all = stages.into_iter().chain([rest, whole]).map(|time| format!("{:>11.1}", time.as_secs_f64() * 1e3));
    println!("{name:<36}{}", all.collect::<String>());
    Ok(serde_json::to_string(&proof)?)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let log_rows: u32 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let device = arguments.next().map_or_else(Device::best, |text| text.parse())?;
    ensure!((5..24).contains(&log_rows), "a trace has 2^5 to 2^23 rows, of which a permutation takes 24");
    tracing::subscriber::set_global_default(Stages).map_err(anyhow::Error::msg)?;

    let start = Instant::now();
    let trace = KeccakAir {}.generate_random_trace_rows::<BabyBear>((1 << log_rows) / 24, 1);
    println!("2^{} rows, {} columns, made in {:.1?}", trace.height().ilog2(), trace.width(), start.elapsed());
    let heads = ["commit", "quotient", "commit", "open", "rest", "whole"].map(|head| format!("{head:>11}"));
    println!("{:<36}{}", "milliseconds", heads.concat());

    let permutation = default_babybear_poseidon2_16();
    let mmcs = HostMmcs::new(Hash::new(permutation.clone()), Compression::new(permutation.clone()), 0);
    let parameters = fri(ExtensionMmcs::new(mmcs.clone()));
    let host: HostConfig = config(HostPcs::new(Radix2DitParallel::default(), mmcs, parameters));
    let expected = proved("Plonky3's types", &trace, |trace| prove(&host, &KeccakAir {}, trace, &[]))?;

    let name = device.info().id;
    let mmcs = OurMmcs::new(&device, permutation, Poseidon2Parameters::plonky3(16)?, 0)?;
    let parameters = fri(ExtensionMmcs::new(mmcs.clone()));
    let adapters = config(HostPcs::new(DeviceDft::<BabyBear>::new(&device), mmcs.clone(), parameters));
    let proof = proved(&format!("transforms and trees on {name}"), &trace, |trace| {
        prove(&adapters, &KeccakAir {}, trace, &[])
    })?;
    ensure!(proof == expected, "the proofs differ");

    let resident = config(OurPcs::new(mmcs.clone(), fri(mmcs))?);
    let proof =
        proved(&format!("all commitments on {name}"), &trace, |trace| prove(&resident, &KeccakAir {}, trace, &[]))?;
    ensure!(proof == expected, "the proofs differ");

    let proof: Proof<HostConfig> = serde_json::from_str(&proof)?;
    verify(&host, &KeccakAir {}, &proof, &[]).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    println!("the proofs are the same, and Plonky3's verifier accepts them ({})", device.info().name);
    Ok(())
}
