//! Ranks that `mpirun` starts on this machine, each with the CPU: right results on 1 to 5 ranks, a rank with another
//! problem, a rank that is killed, an error of the library, and a batch that a second run finishes.
//!
//! `cargo test -p evariste-cluster --features mpi --test mpi`; it takes `mpirun` of Open MPI.

#![cfg(feature = "mpi")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command, Output},
    time::{Duration, Instant},
};

use ark_bls12_381::{Fr, G1Affine, g1};
use ark_ec::AffineRepr;
use ark_ff::{AdditiveGroup, Field};
use evariste_backend::{Device, Devices, Distribution, Sharded};
use evariste_cluster::{Cluster, ClusterMsm, ClusterNtt, ClusterSumcheck, Error, Mpi, Ranks, Route, Unfinished, Way};
use evariste_expression::Expression;
use evariste_field::Mont;
use evariste_msm::MsmConfig;
use evariste_ntt::{NttConfig, reference};
use evariste_sumcheck::{Blake3Transcript, Statement, SumcheckConfig};

/// What a rank is to do, and where it keeps what it has done.
const ROLE: &str = "EVARISTE_CLUSTER_ROLE";
const FOLDER: &str = "EVARISTE_CLUSTER_FOLDER";

/// Jobs of a batch, and the one in which a rank dies.
const JOBS: usize = 5;
const LAST: usize = 3;

/// Starts this test's program as so many ranks.
fn ranks(count: usize, role: &str) -> Output {
    ranks_in(count, role, &env::temp_dir())
}

fn ranks_in(count: usize, role: &str, folder: &Path) -> Output {
    let program = env::current_exe().expect("the path of this program");
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "--enable-recovery", "-n", &count.to_string(), "-x", ROLE]);
    command.args(["-x", FOLDER]).env(FOLDER, folder);
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
    let limit = Duration::from_secs(if ["killed", "torn", "batch-dies"].contains(&&*role) { 3 } else { 60 });
    let mpi = Mpi::start(limit).expect("the library starts once");
    let device = Device::cpu();
    // No rank has NCCL or a GPU, or not all have one of their own.
    let cluster = Cluster::with_route(mpi, &device, Route::Automatic).expect("all ranks come");
    assert_eq!(cluster.route(), Route::Host);
    match role.as_str() {
        "right" => right(&cluster, &device),
        "other" => {
            let log_n = if cluster.rank() == 1 { 7 } else { 6 };
            let refused = ClusterNtt::<Fr, _>::new(&cluster, &device, log_n, NttConfig::default()).err();
            assert!(matches!(refused, Some(Error::Disagree { what: "transform", rank: 1 })), "{refused:?}");
            println!("rank has refused");
        }
        "torn" => torn(&cluster),
        "batch-dies" | "batch-resumes" => batch(&cluster, &device, role == "batch-dies"),
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

/// Ranks that gather different numbers of bytes: the library finds that on one of them.
fn torn(cluster: &Cluster<Mpi>) {
    let own = vec![1; if cluster.rank() == 0 { 8 } else { 4000 }];
    let first = cluster.ranks().all_gather(&own);
    let later = cluster.ranks().all_gather(&own);
    if cluster.rank() == 0 {
        assert!(matches!(&first, Err(Error::Mpi { reason, .. }) if reason.contains("TRUNCATE")), "{first:?}");
        assert!(matches!(later, Err(Error::Mpi { .. })), "{later:?}");
    }
    println!("rank is told");
}

/// Sums and transforms one after the other, whose results each rank keeps.
fn batch(cluster: &Cluster<Mpi>, device: &Device, dies: bool) {
    let (rank, size) = (cluster.rank(), cluster.size());
    let folder = PathBuf::from(env::var_os(FOLDER).expect("a folder"));
    let file = |job: usize| folder.join(format!("{rank}-{job}"));
    let kept = (0..JOBS).find(|job| !file(*job).exists()).unwrap_or(JOBS);
    let first = cluster.earliest(kept).expect("all ranks come");
    assert_eq!(first, if dies { 0 } else { LAST });
    let devices = Devices::from(device).over(size).expect("places");
    let msm = sums(cluster, device);
    let ntt = ClusterNtt::<Fr, _>::new(cluster, device, 6, NttConfig::default()).expect("a plan");
    let done = cluster.batch(first..JOBS, |job| {
        let host: Vec<Fr> = (1..=64).map(|i| Fr::from(i * (job + 1) as u64)).collect();
        let sum = msm.msm(&vec![Fr::from(job as u64); 1 + rank])?;
        if dies && job == LAST && rank == 1 {
            process::abort();
        }
        let part = |host: &[Fr]| {
            let all = Sharded::<Mont<Fr>>::upload(&devices, host, Distribution::Cyclic);
            all.map(|all| all.into_parts().swap_remove(rank))
        };
        let mut x = part(&host)?;
        ntt.forward(&mut x, Way::default())?;
        assert_eq!(sum, G1Affine::generator() * Fr::from((job * size * (size + 1) / 2) as u64));
        assert_eq!(x.to_vec()?, part(&reference::forward(&host, Fr::ONE))?.to_vec()?);
        fs::write(file(job), "").expect("a file");
        Ok(())
    });
    match (dies, done) {
        (true, Err(Unfinished { finished, job: LAST, error: Error::Timeout { .. } })) => {
            assert_eq!(finished.len(), LAST);
            println!("rank has stopped");
        }
        (false, Ok(done)) => {
            assert_eq!(done.len(), JOBS - LAST);
            println!("rank has finished");
        }
        (_, other) => panic!("{other:?}"),
    }
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

#[test]
fn an_error_of_the_library_does_not_end_the_process() {
    expect(&ranks(2, "torn"), 2, "rank is told");
}

#[test]
fn a_batch_goes_on_where_a_killed_rank_left_it() {
    let folder = env::temp_dir().join(format!("evariste-cluster-{}", process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    expect(&ranks_in(2, "batch-dies", &folder), 1, "rank has stopped");
    expect(&ranks_in(2, "batch-resumes", &folder), 2, "rank has finished");
    fs::remove_dir_all(&folder).expect("a folder");
}
