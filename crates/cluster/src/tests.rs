//! Ranks that are threads, each with a device of the CPU of its own.

use std::{thread, time::Duration};

use ark_bls12_381::{Fr, G1Affine, g1};
use ark_ec::AffineRepr;
use ark_ff::{AdditiveGroup, FftField, Field, UniformRand};
use evariste_backend::{Buffer, Device, Devices, Distribution, Error as DeviceError, Secrecy, Sharded};
use evariste_expression::Expression;
use evariste_field::Mont;
use evariste_msm::MsmConfig;
use evariste_ntt::{NttConfig, Order, reference};
use evariste_sumcheck::{Blake3Transcript, Statement, Strategy, Sumcheck, SumcheckConfig, Weight};

use crate::{Cluster, ClusterMsm, ClusterNtt, ClusterSumcheck, Error, Ranks, Route, Unfinished, Way, threads::Threads};

const LIMIT: Duration = Duration::from_secs(20);

/// What a function returns on each of so many ranks.
fn on<T: Send>(size: usize, limit: Duration, run: impl Fn(&Cluster<Threads>, &Device) -> T + Sync) -> Vec<T> {
    on_ranks(size, limit, |ranks, device| run(&Cluster::new(ranks), device))
}

fn on_ranks<T: Send>(size: usize, limit: Duration, run: impl Fn(Threads, &Device) -> T + Sync) -> Vec<T> {
    let run = &run;
    thread::scope(|scope| {
        let start = |ranks| scope.spawn(move || run(ranks, &Device::another_cpu()));
        let threads: Vec<_> = Threads::new(size, limit).into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn random(len: usize) -> Vec<Fr> {
    let mut rng = ark_std::test_rng();
    (0..len).map(|_| Fr::rand(&mut rng)).collect()
}

/// The part of a rank.
fn part(host: &[Fr], rank: usize, size: usize, distribution: Distribution, device: &Device) -> Buffer<Mont<Fr>> {
    let devices = Devices::from(device).over(size).unwrap();
    let all = Sharded::<Mont<Fr>>::upload_with(&devices, host, distribution, Secrecy::Secret);
    all.unwrap().into_parts().swap_remove(rank)
}

#[test]
fn sums_are_those_of_all_bases() {
    for size in 1..=5 {
        let scalars = random(23);
        let expected = G1Affine::generator() * scalars.iter().sum::<Fr>();
        let sums = on(size, LIMIT, |cluster, device| {
            // Some ranks have none.
            let own: Vec<Fr> = scalars
                .iter()
                .skip(cluster.rank() * 7)
                .take(if cluster.rank() == size - 1 { 99 } else { 7 })
                .copied()
                .collect();
            let bases = vec![G1Affine::generator(); own.len()];
            let msm = ClusterMsm::<g1::Config, _>::new(cluster, device, &bases, MsmConfig::default()).unwrap();
            msm.msm(&own).unwrap()
        });
        assert!(sums.iter().all(|sum| *sum == expected), "{size} ranks");
    }
}

/// In all orders and distributions, through host memory in pieces of so many bytes.
fn check_transforms(size: usize, piece: usize) {
    let orders = [Order::Natural, Order::BitReversed];
    let coefficients = random(64);
    for (input, output) in orders.map(|input| orders.map(|output| (input, output))).into_iter().flatten() {
        for block_cyclic in [false, true] {
            // Of coefficients alone.
            let distribution = |order, is_input| match order {
                Order::Natural if block_cyclic && is_input => Distribution::BlockCyclic,
                Order::Natural => Distribution::Cyclic,
                Order::BitReversed => Distribution::Blocks,
            };
            let given = reference::reorder(&coefficients, Order::Natural, input);
            let expected =
                reference::reorder(&reference::forward(&coefficients, Fr::GENERATOR), Order::Natural, output);
            on_ranks(size, LIMIT, |ranks, device| {
                let cluster = Cluster::new(ranks).with_piece(piece);
                let ntt = ClusterNtt::<Fr, _>::new(&cluster, device, 6, NttConfig::default()).unwrap();
                let part = |host: &[Fr], order, is_input| {
                    part(host, cluster.rank(), size, distribution(order, is_input), device)
                };
                let case = format!("{size} ranks, {piece}, {input:?} to {output:?}, {block_cyclic}");
                let mut x = part(&given, input, true);
                let way = Way { input, output, coset: Fr::GENERATOR, block_cyclic };
                ntt.forward(&mut x, way).unwrap();
                assert_eq!(x.to_vec().unwrap(), part(&expected, output, false).to_vec().unwrap(), "{case}");
                ntt.inverse(&mut x, Way { input: output, output: input, ..way }).unwrap();
                assert_eq!(x.to_vec().unwrap(), part(&given, input, true).to_vec().unwrap(), "{case}, inverse");
            });
        }
    }
}

#[test]
fn transforms_are_those_of_one_device() {
    // Rows of 1024, 512 and 128 bytes: whole, and in pieces that divide them or do not.
    for (size, piece) in [(1, 1000), (2, 1 << 20), (2, 256), (4, 48)] {
        check_transforms(size, piece);
    }
}

#[test]
fn exchanges_send_a_part_to_each() {
    for (size, piece) in [(1, 7), (3, 5), (5, 1 << 20)] {
        on_ranks(size, LIMIT, |ranks, device| {
            let cluster = Cluster::new(ranks).with_piece(piece);
            let own = cluster.rank();
            let sent: Vec<u32> = (0..3 * size).map(|i| (1000 * own + i) as u32).collect();
            let (from, mut to) = (device.upload::<u32>(&sent).unwrap(), device.zeros::<u32>(3 * size).unwrap());
            cluster.exchange(&from, &mut to).unwrap();
            let expected: Vec<u32> = (0..3 * size).map(|i| (i / 3 * 1000 + 3 * own + i % 3) as u32).collect();
            assert_eq!(to.to_vec().unwrap(), expected, "{size} ranks");
        });
    }
    let errors = on(2, LIMIT, |cluster, device| {
        let (first, one) = (cluster.rank() == 0, |len| device.zeros::<u32>(len).unwrap());
        let lengths = cluster.exchange(&one(if first { 2 } else { 4 }), &mut one(4)).err();
        let odd = cluster.exchange(&one(3), &mut one(3)).err();
        let short = cluster.exchange(&one(4), &mut one(if first { 4 } else { 2 })).err();
        [lengths, odd, short]
    });
    for (rank, [lengths, odd, short]) in errors.iter().enumerate() {
        assert!(matches!(lengths, Some(Error::Disagree { what: "exchange", rank: 1 })), "{lengths:?}");
        assert!(matches!(odd, Some(Error::Device(DeviceError::Length { expected: 4, actual: 3, .. }))), "{odd:?}");
        let is_own = matches!(short, Some(Error::Device(DeviceError::Length { expected: 4, actual: 2, .. })));
        assert!(is_own && rank == 1 || matches!(short, Some(Error::Failed { rank: 1, .. })), "{short:?}");
    }
}

#[test]
fn ranks_without_nccl_take_host_memory_or_say_so() {
    let ended = on_ranks(2, LIMIT, |ranks, device| {
        let cluster = Cluster::with_route(ranks, device, Route::Automatic).unwrap();
        assert!(cluster.route() == Route::Host && cluster.host_reason().is_some_and(|text| text.contains("NCCL")));
        let (from, mut to) = (device.upload::<u32>(&[1, 2]).unwrap(), device.zeros::<u32>(2).unwrap());
        cluster.exchange(&from, &mut to).unwrap();
        to.to_vec().unwrap()
    });
    assert_eq!(ended, [[1, 1], [2, 2]]);
    let errors = on_ranks(2, LIMIT, |ranks, device| Cluster::with_route(ranks, device, Route::Nccl).err());
    assert!(errors.iter().all(|error| matches!(error, Some(Error::NoNccl { .. }))), "{errors:?}");
    let errors = on_ranks(2, LIMIT, |ranks, device| {
        let route = if ranks.rank() == 0 { Route::Host } else { Route::Automatic };
        Cluster::with_route(ranks, device, route).err()
    });
    assert!(errors.iter().all(|error| matches!(error, Some(Error::Disagree { what: "route", rank: 1 }))), "{errors:?}");
}

/// Data could take host memory, but the ranks do not hear each other any more.
#[test]
fn a_start_without_nccl_does_not_hide_that_a_rank_is_gone() {
    let ended = on_ranks(2, Duration::from_millis(200), |ranks, device| {
        if ranks.rank() == 0 {
            return Cluster::with_route(ranks, device, Route::Automatic).map(drop);
        }
        Cluster::new(ranks).agree("route", &format!("{:?}", Route::Automatic))
    });
    assert!(matches!(&ended[..], [Err(Error::Timeout { .. }), Ok(())]), "{ended:?}");
}

#[test]
fn proofs_are_those_of_one_device() {
    let gate = Expression::column(0) * Expression::column(1) - Expression::column(2);
    let (a, b) = (random(32), random(32));
    let c: Vec<Fr> = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
    let statement = Statement::<Fr>::new(5, &gate).unwrap().weight(Weight::ZeroCheck);
    let transcript = || Blake3Transcript::new(b"ranks");
    let device = Device::cpu();
    let tables = [&a, &b, &c].map(|table| device.upload::<Mont<Fr>>(table).unwrap());
    let one = Sumcheck::<Fr>::new(&device, &gate).unwrap();
    let expected = one.prove(&statement, &tables.each_ref(), Fr::ZERO, &mut transcript()).unwrap();
    for size in [1, 2, 4] {
        let proofs = on(size, LIMIT, |cluster, device| {
            let prover = ClusterSumcheck::<Fr, Fr, _>::new(cluster, device, &gate, SumcheckConfig::default()).unwrap();
            let own = [&a, &b, &c].map(|table| part(table, cluster.rank(), size, Distribution::Cyclic, device));
            prover.prove(&statement, &own.each_ref(), Fr::ZERO, &mut transcript()).unwrap().proof.to_bytes()
        });
        assert!(proofs.iter().all(|proof| *proof == expected.proof.to_bytes()), "{size} ranks");
    }
}

#[test]
fn ranks_with_different_problems_all_say_so() {
    let errors = on(3, LIMIT, |cluster, device| {
        ClusterNtt::<Fr, _>::new(cluster, device, if cluster.rank() == 1 { 7 } else { 6 }, NttConfig::default()).err()
    });
    assert!(errors.iter().all(|error| matches!(error, Some(Error::Disagree { what: "transform", rank: 1 }))));
    let errors = on(2, LIMIT, |cluster, device| {
        let ntt = ClusterNtt::<Fr, _>::new(cluster, device, 6, NttConfig::default()).unwrap();
        let mut x = device.zeros(32).unwrap();
        let output = if cluster.rank() == 1 { Order::BitReversed } else { Order::Natural };
        ntt.forward(&mut x, Way { output, ..Way::default() }).err()
    });
    assert!(errors.iter().all(|error| matches!(error, Some(Error::Disagree { rank: 1, .. }))));
    // Another direction, secret data on one rank, and another call.
    let errors = on(2, LIMIT, |cluster, device| {
        let ntt = ClusterNtt::<Fr, _>::new(cluster, device, 6, NttConfig::default()).unwrap();
        let msm = ClusterMsm::<g1::Config, _>::new(cluster, device, &[G1Affine::generator()], MsmConfig::default());
        let (msm, first) = (msm.unwrap(), cluster.rank() == 0);
        let mut x = device.zeros(32).unwrap();
        let direction = if first { ntt.forward(&mut x, Way::default()) } else { ntt.inverse(&mut x, Way::default()) };
        let secrecy = if first { Secrecy::Secret } else { Secrecy::Public };
        let mut secret = device.alloc_with(32, secrecy).unwrap();
        secret.clear().unwrap();
        let secrets = ntt.forward(&mut secret, Way::default());
        let call = if first { msm.msm(&[Fr::ONE]).map(drop) } else { ntt.forward(&mut x, Way::default()) };
        [direction.err(), secrets.err(), call.err()]
    });
    let disagree = |error: &Option<Error>| matches!(error, Some(Error::Disagree { rank: 1, .. }));
    assert!(errors.iter().flatten().all(disagree), "{errors:?}");
    let gate = Expression::column(0) * Expression::column(0);
    let statement = Statement::<Fr>::new(4, &gate).unwrap();
    let errors = on(2, LIMIT, |cluster, device| {
        let config = SumcheckConfig::default().strategy(match cluster.rank() {
            0 => Strategy::Textbook,
            _ => SumcheckConfig::default().strategy,
        });
        let other = ClusterSumcheck::<Fr, Fr, _>::new(cluster, device, &gate, config).err();
        let checked = SumcheckConfig::default().check(cluster.rank() == 0);
        let check = ClusterSumcheck::<Fr, Fr, _>::new(cluster, device, &gate, checked).err();
        let prover = ClusterSumcheck::<Fr, Fr, _>::new(cluster, device, &gate, SumcheckConfig::default()).unwrap();
        let table = device.zeros(8).unwrap();
        let label: &[u8] = if cluster.rank() == 0 { b"ranks" } else { b"others" };
        let transcript = prover.prove(&statement, &[&table], Fr::ZERO, &mut Blake3Transcript::new(label)).err();
        // Another expression of the same shape.
        let cube = Expression::column(0) * (Expression::column(0) + Expression::column(0));
        let expressions = [&gate, &cube].map(|expression| Statement::<Fr>::new(4, expression).unwrap());
        let statement = &expressions[cluster.rank()];
        let expression = prover.prove(statement, &[&table], Fr::ZERO, &mut Blake3Transcript::new(b"ranks")).err();
        [other, check, transcript, expression]
    });
    assert!(errors.iter().flatten().all(disagree), "{errors:?}");
    // Three ranks are no power of two: each finds that by itself.
    let errors =
        on(3, LIMIT, |cluster, device| ClusterNtt::<Fr, _>::new(cluster, device, 6, NttConfig::default()).err());
    assert!(errors.iter().all(|error| matches!(error, Some(Error::Ntt(evariste_ntt::Error::Devices { actual: 3 })))));
}

#[test]
fn a_rank_that_fails_ends_the_call_on_all() {
    let errors = on(2, LIMIT, |cluster, device| {
        let ntt = ClusterNtt::<Fr, _>::new(cluster, device, 6, NttConfig::default()).unwrap();
        let mut x = device.zeros(if cluster.rank() == 0 { 31 } else { 32 }).unwrap();
        ntt.forward(&mut x, Way::default()).err()
    });
    assert!(matches!(&errors[0], Some(Error::Ntt(_))), "{errors:?}");
    assert!(matches!(&errors[1], Some(Error::Failed { rank: 0, reason }) if reason.contains("31")), "{errors:?}");
    let errors = on(2, LIMIT, |cluster, device| {
        let msm = ClusterMsm::<g1::Config, _>::new(cluster, device, &[G1Affine::generator()], MsmConfig::default());
        let (msm, scalars) = (msm.unwrap(), [Fr::ONE; 2]);
        let failed = msm.msm(&scalars[cluster.rank()..]).err();
        // The next call works.
        assert_eq!(msm.msm(&scalars[1..]).unwrap(), G1Affine::generator() * Fr::from(2));
        failed
    });
    assert!(matches!(&errors[..], [Some(Error::Msm(_)), Some(Error::Failed { rank: 0, .. })]), "{errors:?}");
    let gate = Expression::column(0) * Expression::column(0);
    let statement = Statement::<Fr>::new(4, &gate).unwrap();
    let errors = on(2, LIMIT, |cluster, device| {
        let prover = ClusterSumcheck::<Fr, Fr, _>::new(cluster, device, &gate, SumcheckConfig::default()).unwrap();
        let table = device.zeros(if cluster.rank() == 1 { 4 } else { 8 }).unwrap();
        prover.prove(&statement, &[&table], Fr::ZERO, &mut Blake3Transcript::new(b"ranks")).err()
    });
    assert!(matches!(&errors[..], [Some(Error::Failed { rank: 1, .. }), Some(Error::Sumcheck(_))]), "{errors:?}");
}

#[test]
fn a_rank_that_never_comes_ends_the_wait() {
    let errors = on(3, Duration::from_millis(200), |cluster, device| {
        if cluster.rank() == 2 {
            return None;
        }
        Some(ClusterNtt::<Fr, _>::new(cluster, device, 6, NttConfig::default()).err())
    });
    let late = |error: &Option<Option<Error>>| matches!(error, None | Some(Some(Error::Timeout { .. })));
    assert!(errors.iter().all(late), "{errors:?}");
}

#[test]
fn batches_end_at_the_same_job_on_all_ranks() {
    let finished = on(3, LIMIT, |cluster, device| {
        let bases = [G1Affine::generator()];
        let msm = ClusterMsm::<g1::Config, _>::new(cluster, device, &bases, MsmConfig::default()).unwrap();
        let sum = |job: usize| msm.msm(&[Fr::from(job as u64)]);
        let all = cluster.batch(0..4, sum).unwrap();
        // A rank that leaves a job before its sum, and one that fails behind it.
        for (rank, is_before) in [(0, true), (2, true), (1, false)] {
            let ended = cluster.batch(0..4, |job| {
                let fail = job == 2 && cluster.rank() == rank;
                if fail && is_before {
                    return Err(Error::Start { reason: "asked for".into() });
                }
                let done = sum(job)?;
                if fail { Err(Error::Start { reason: "asked for".into() }) } else { Ok(done) }
            });
            let Err(Unfinished { finished, job: 2, error }) = ended else { panic!("job 2 fails: {ended:?}") };
            assert_eq!(finished, all[..2]);
            let is_told = match is_before {
                true => matches!(error, Error::Disagree { .. }),
                false => matches!(&error, Error::Failed { rank: 1, reason } if reason.contains("asked for")),
            };
            assert!(is_told || cluster.rank() == rank && matches!(error, Error::Start { .. }), "{error:?}");
            // The cluster goes on from there.
            let first = cluster.earliest(if cluster.rank() == 1 { 2 } else { 3 }).unwrap();
            assert_eq!(cluster.batch(first..4, sum).unwrap(), all[2..]);
        }
        // A rank that does more than the others.
        let more = |job| if cluster.rank() == 1 { sum(job).and(sum(job)) } else { sum(job) };
        let ended = cluster.batch(0..1, more);
        assert!(matches!(ended, Err(Unfinished { job: 0, .. })), "{ended:?}");
        let ended = cluster.batch(cluster.rank()..4, sum).map_err(|ended| ended.error);
        assert!(matches!(ended, Err(Error::Disagree { what: "batch", rank: 1 })), "{ended:?}");
        all
    });
    let expected: Vec<_> = (0..4).map(|job| G1Affine::generator() * Fr::from(3 * job)).collect();
    assert!(finished.iter().all(|sums| *sums == expected));
}
