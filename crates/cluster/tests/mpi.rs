//! Ranks that `mpirun` starts on this machine, each with the CPU: right results on 1 to 5 ranks, a rank with another
//! problem, and a rank that is killed.
//!
//! `cargo test -p evariste-cluster --features mpi --test mpi`; it takes `mpirun` of Open MPI.

#![cfg(feature = "mpi")]

use std::{
    env,
    process::{self, Command, Output},
    time::{Duration, Instant},
};

use ark_bls12_381::{Fr, G1Affine, g1};
use ark_ec::AffineRepr;
use ark_ff::{AdditiveGroup, Field};
use evariste_backend::{Device, Devices, Distribution, Sharded};
use evariste_cluster::{Cluster, ClusterMsm, ClusterNtt, ClusterSumcheck, Error, Mpi, Way};
use evariste_expression::Expression;
use evariste_field::Mont;
use evariste_msm::MsmConfig;
use evariste_ntt::{NttConfig, reference};
use evariste_sumcheck::{Blake3Transcript, Statement, SumcheckConfig};

/// What a rank is to do.
const ROLE: &str = "EVARISTE_CLUSTER_ROLE";

/// Starts this test's program as so many ranks.
fn ranks(count: usize, role: &str) -> Output {
    let program = env::current_exe().expect("the path of this program");
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "--enable-recovery", "-n", &count.to_string(), "-x", ROLE]);
    command.arg(program).args(["--exact", "a_rank", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command.output().expect("mpirun runs")
}

#[track_caller]
fn expect(output: &Output, lines: usize, line: &str) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    assert_eq!(text.matches(line).count(), lines, "{line} in\n{text}");
}

/// A rank of another test: it does nothing if no launcher started it.
#[test]
fn a_rank() {
    let Ok(role) = env::var(ROLE) else { return };
    let limit = Duration::from_secs(if role == "killed" { 3 } else { 60 });
    let cluster = Cluster::new(Mpi::start(limit).expect("the library starts once"));
    let device = Device::cpu();
    match role.as_str() {
        "right" => right(&cluster, &device),
        "other" => {
            let log_n = if cluster.rank() == 1 { 7 } else { 6 };
            let refused = ClusterNtt::<Fr, _>::new(&cluster, &device, log_n, NttConfig::default()).err();
            assert!(matches!(refused, Some(Error::Disagree { what: "transform", rank: 1 })), "{refused:?}");
            println!("rank has refused");
        }
        _ => {
            let msm = sums(&cluster, &device);
            if cluster.rank() == 1 {
                process::abort();
            }
            let start = Instant::now();
            let late = msm.msm(&[Fr::ONE]).err();
            assert!(matches!(late, Some(Error::Timeout { .. })), "{late:?}");
            assert!(start.elapsed() < Duration::from_secs(10));
            assert!(matches!(msm.msm(&[Fr::ONE]), Err(Error::Timeout { .. })));
            println!("rank has given up");
        }
    }
}

fn sums<'a>(cluster: &'a Cluster<Mpi>, device: &Device) -> ClusterMsm<'a, g1::Config, Mpi> {
    // Another number on each rank.
    let bases = vec![G1Affine::generator(); 1 + cluster.rank()];
    ClusterMsm::new(cluster, device, &bases, MsmConfig::default()).expect("a plan")
}

fn right(cluster: &Cluster<Mpi>, device: &Device) {
    let (rank, size) = (cluster.rank(), cluster.size());
    let sum = sums(cluster, device).msm(&vec![Fr::from(3); 1 + rank]).expect("a sum");
    assert_eq!(sum, G1Affine::generator() * Fr::from((3 * size * (size + 1) / 2) as u64));
    if size.is_power_of_two() {
        let devices = Devices::from(device).over(size).expect("places");
        let host: Vec<Fr> = (1..=64).map(|i| Fr::from(i).square()).collect();
        let part = |host: &[Fr]| {
            let all = Sharded::<Mont<Fr>>::upload(&devices, host, Distribution::Cyclic).expect("memory");
            all.into_parts().swap_remove(rank)
        };
        let ntt = ClusterNtt::<Fr, _>::new(cluster, device, 6, NttConfig::default()).expect("a plan");
        let mut x = part(&host);
        ntt.forward(&mut x, Way::default()).expect("a transform");
        let expected = part(&reference::forward(&host, Fr::ONE));
        assert_eq!(x.to_vec().expect("elements"), expected.to_vec().expect("elements"));
        ntt.inverse(&mut x, Way::default()).expect("a transform");
        assert_eq!(x.to_vec().expect("elements"), part(&host).to_vec().expect("elements"));

        let square = Expression::column(0) * Expression::column(0);
        let statement = Statement::<Fr>::new(6, &square).expect("a statement");
        let claim = host.iter().map(Field::square).fold(Fr::ZERO, |sum, x| sum + x);
        let transcript = || Blake3Transcript::new(b"mpi");
        let config = SumcheckConfig::default();
        let prover = ClusterSumcheck::<Fr, Fr, _>::new(cluster, device, &square, config).expect("a prover");
        let proof = prover.prove(&statement, &[&part(&host)], claim, &mut transcript()).expect("a proof").proof;
        let (expected, _) = evariste_sumcheck::reference::prove(&statement, 6, &[host], claim, &mut transcript());
        assert_eq!(proof.to_bytes(), expected.to_bytes());
    }
    println!("rank is right");
}

#[test]
fn one_to_five_ranks_give_the_results_of_one_device() {
    for count in 1..=5 {
        expect(&ranks(count, "right"), count, "rank is right");
    }
}

#[test]
fn a_rank_with_another_problem_ends_the_call_on_all() {
    expect(&ranks(3, "other"), 3, "rank has refused");
}

#[test]
fn a_killed_rank_ends_the_wait_of_the_others() {
    expect(&ranks(3, "killed"), 2, "rank has given up");
}
