//! Ranks that are threads, each with a device of the CPU of its own.

use std::{thread, time::Duration};

use ark_bls12_381::{Fr, G1Affine, g1};
use ark_ec::AffineRepr;
use ark_ff::{AdditiveGroup, FftField, Field, UniformRand};
use evariste_backend::{Buffer, Device, Devices, Distribution, Secrecy, Sharded};
use evariste_expression::Expression;
use evariste_field::Mont;
use evariste_msm::MsmConfig;
use evariste_ntt::{NttConfig, Order, reference};
use evariste_sumcheck::{Blake3Transcript, Statement, Strategy, Sumcheck, SumcheckConfig, Weight};

use crate::{Cluster, ClusterMsm, ClusterNtt, ClusterSumcheck, Error, Way, threads::Threads};

const LIMIT: Duration = Duration::from_secs(20);

/// What a function returns on each of so many ranks.
fn on<T: Send>(size: usize, limit: Duration, run: impl Fn(&Cluster<Threads>, &Device) -> T + Sync) -> Vec<T> {
    let run = &run;
    thread::scope(|scope| {
        let start = |ranks| scope.spawn(move || run(&Cluster::new(ranks), &Device::another_cpu()));
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
    Sharded::<Mont<Fr>>::upload(&devices, host, distribution).unwrap().into_parts().swap_remove(rank)
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

#[test]
fn transforms_are_those_of_one_device() {
    let orders = [Order::Natural, Order::BitReversed];
    let distribution = |order| if order == Order::Natural { Distribution::Cyclic } else { Distribution::Blocks };
    for size in [1, 2, 4] {
        let coefficients = random(64);
        for (input, output) in orders.map(|input| orders.map(|output| (input, output))).into_iter().flatten() {
            let given = reference::reorder(&coefficients, Order::Natural, input);
            let expected =
                reference::reorder(&reference::forward(&coefficients, Fr::GENERATOR), Order::Natural, output);
            on(size, LIMIT, |cluster, device| {
                let ntt = ClusterNtt::<Fr, _>::new(cluster, device, 6, NttConfig::default()).unwrap();
                let own = |host: &[Fr], order| {
                    part(host, cluster.rank(), size, distribution(order), device).to_vec().unwrap()
                };
                let mut x = part(&given, cluster.rank(), size, distribution(input), device);
                let way = Way { input, output, coset: Fr::GENERATOR, block_cyclic: false };
                ntt.forward(&mut x, way).unwrap();
                assert_eq!(x.to_vec().unwrap(), own(&expected, output), "{size}, {input:?} to {output:?}");
                ntt.inverse(&mut x, Way { input: output, output: input, ..way }).unwrap();
                assert_eq!(x.to_vec().unwrap(), own(&given, input), "{size}, {input:?} to {output:?}, inverse");
            });
        }
    }
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
        let prover = ClusterSumcheck::<Fr, Fr, _>::new(cluster, device, &gate, SumcheckConfig::default()).unwrap();
        let table = device.zeros(8).unwrap();
        let label: &[u8] = if cluster.rank() == 0 { b"ranks" } else { b"others" };
        [other, prover.prove(&statement, &[&table], Fr::ZERO, &mut Blake3Transcript::new(label)).err()]
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
