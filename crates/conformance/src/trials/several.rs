//! Problems that are divided among several devices: this one with others, of its kind where there are several.

use ark_ec::{
    AffineRepr, CurveGroup,
    short_weierstrass::{Affine, Projective},
};
use ark_ff::{FftField, Field};
use ark_serialize::CanonicalSerialize;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use evariste::backend::{Device, Devices, Distribution, Error, Kind, Secrecy, Sharded};
use evariste::field::{
    DeviceField, Expression, Mont,
    small::{BabyBear, BabyBear4},
};
use evariste::msm::{MsmConfig, MsmCurve, ShardedMsm};
use evariste::ntt::{self, Order, ShardedNtt};
use evariste::sqrt::{self, Decompress, Encoding};
use evariste::sumcheck::{
    self as sumcheck, Blake3Transcript, Challenge, ShardedSumcheck, Statement, SumcheckConfig, Weight,
};

use crate::{
    area::Area,
    curves,
    devices::{garbage, is_emulated},
    expect::{expect_equal, expect_error, expect_same},
    fields::EVERY_FIELD,
    harness::{DeviceTrials, Outcome},
    recorder::Recorder,
};

pub(crate) const AREA: Area = Area::new("several", add);

fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("copies", copies);
    trials.add("columns", columns);
    trials.add("failures", failures);
    trials.add("spread", spread);
    trials.add("short::sums", sums::<curves::Short>);
    trials.add("baby-bear::transforms", transforms::<BabyBear>);
    trials.add("baby-bear-4::proofs", proofs::<BabyBear4, BabyBear>);
    trials.add("baby-bear-4::unlike", unlike);
    if EVERY_FIELD || !is_emulated(trials.device) {
        trials.add("bls12-381-g1::sums", sums::<ark_bls12_381::g1::Config>);
        trials.add("bls12-381-fr::transforms", transforms::<ark_bls12_381::Fr>);
        trials.add("bls12-381-fr::proofs", proofs::<ark_bls12_381::Fr, ark_bls12_381::Fr>);
    }
    // Copies in pieces, beside work on other pieces.
    if trials.device.info().features.queues {
        trials.add("bls12-381-fr::large", large);
        trials.add("bls12-381-fr::overlapped", overlapped);
    }
}

/// Groups with this device: all of its kind where there are several, it with a processor, and with two more places.
fn groups(device: &Device) -> Result<Vec<Devices>, Error> {
    let mixed = Devices::new([device.clone(), Device::another_cpu()])?;
    let mut groups = vec![mixed.over(4)?, mixed];
    if device.info().id.kind == Kind::Cuda
        && let Ok(all) = Devices::all_cuda()
        && all.len() > 1
    {
        let places = 1 << all.len().ilog2();
        groups.push(all.over(places)?);
    }
    Ok(groups)
}

fn random<F: Field>(len: usize, seed: u64) -> Vec<F> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..len).map(|_| F::rand(&mut rng)).collect()
}

/// In both directions, directly and through host memory, behind work on either device.
fn copies(device: &Device) -> Outcome {
    let relayed = Device::unregistered(Recorder::plain(&Device::another_cpu()));
    for other in groups(device)?.iter().flat_map(|group| group.iter()).chain([&relayed]) {
        for len in [1, 7, 1000, 3 << 20] {
            let host: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
            let x = device.upload_with::<u32>(&host, Secrecy::Secret)?;
            let mut there = other.alloc_with::<u32>(len, Secrecy::Secret)?;
            there.copy_from(&x)?;
            // What was copied is changed before it comes back.
            there.view_mut(len / 2..)?.clear()?;
            let mut back = garbage::<u32>(device, len)?;
            back.copy_from(there.as_view().declassify())?;
            let expected = [&host[..len / 2], &vec![0; len - len / 2]].concat();
            expect_same("there and back", &back.to_vec()?, &expected)?;
            // The source may be dropped, and its memory given to others, while the copy is under way.
            let mut last = garbage::<u32>(device, len)?;
            let queue = device.queue()?;
            queue.receive(&other.upload::<u32>(&host)?, &mut last)?;
            drop((other.zeros::<u32>(len)?, x));
            expect_same("of dropped memory", &queue.read(&last)?, &host)?;
        }
        let secret = other.upload_with::<u32>(&[1; 8], Secrecy::Secret)?;
        let mut public = device.upload::<u32>(&[2; 8])?;
        let error = expect_error("a copy of a secret to public memory", public.copy_from(&secret))?;
        expect_equal("it", &matches!(error, Error::SecretInput { .. }), &true)?;
        let error = expect_error("a copy of another length", public.copy_from(&other.zeros(9)?))?;
        expect_equal("it", &error, &Error::Length { what: "the source of a copy", expected: 8, actual: 9 })?;
        expect_same("untouched", &public.to_vec()?, &[2; 8])?;
    }
    Ok(())
}

/// Blocks of columns, of parts of vectors, which nothing around them is changed by.
fn columns(device: &Device) -> Outcome {
    let (rows, pitch) = (37, 1000);
    let host: Vec<u32> = (0..rows * pitch).map(|i| (i as u32).wrapping_mul(0x9e37_79b9)).collect();
    for other in groups(device)?.iter().flat_map(|group| group.iter()) {
        let x = other.upload_with::<u32>(&host, Secrecy::Secret)?;
        for columns in [0..1, 3..998, 500..1000, 7..7] {
            let mut y = device.upload_with::<u32>(&vec![5; host.len() + 8], Secrecy::Secret)?;
            let inner = y.view_mut(3..3 + host.len())?;
            device.queue()?.receive_columns(&x, inner, rows, columns.clone())?;
            let inner = host.iter().enumerate().map(|(i, x)| if columns.contains(&(i % pitch)) { *x } else { 5 });
            let expected: Vec<u32> = [5; 3].into_iter().chain(inner).chain([5; 5]).collect();
            expect_same(&format!("columns {columns:?} from {}", other.info().id), &y.to_vec()?, &expected)?;
        }
    }
    Ok(())
}

/// Columns of matrices and points from their encodings, a part of them on each device.
fn spread(device: &Device) -> Outcome {
    type G1 = ark_bn254::g1::Config;
    let (log_n, columns, points) = (4, 10, 45);
    let matrix = random::<BabyBear>(columns << log_n, 5);
    let extend = |device: &Device, matrix: &[BabyBear], columns: usize| {
        let extension = ntt::LowDegreeExtension::<BabyBear>::new(device, log_n, 1)?.columns(columns);
        let mut out = device.alloc::<Mont<BabyBear>>(2 * matrix.len())?;
        let values = device.upload::<Mont<BabyBear>>(matrix)?;
        extension.extend_into(&values, BabyBear::GENERATOR, Order::BitReversed, &mut out)?;
        Ok::<_, ntt::Error>(out.to_vec()?)
    };
    let whole = extend(device, &matrix, columns)?;
    let generator = Affine::<G1>::generator();
    let known: Vec<Affine<G1>> =
        (1..=points as u64).map(|k| (generator * ark_bn254::Fr::from(k)).into_affine()).collect();
    let mut encoded = Vec::new();
    known.iter().try_for_each(|point| point.serialize_compressed(&mut encoded))?;
    let bytes = encoded.len() / points;
    for devices in groups(device)? {
        let (shares, of_points) = (devices.shares(columns), devices.shares(points));
        let parts = devices.run(|place, device| {
            let share = shares[place].clone();
            let part: Vec<BabyBear> = matrix.chunks(columns).flat_map(|row| &row[share.clone()]).copied().collect();
            extend(device, &part, share.len())
        })?;
        for (part, share) in parts.iter().zip(&shares) {
            let expected: Vec<BabyBear> = whole.chunks(columns).flat_map(|row| &row[share.clone()]).copied().collect();
            expect_same(&format!("columns {share:?} over {devices}"), part, &expected)?;
        }
        let found = devices.run(|place, device| {
            let share = of_points[place].start * bytes..of_points[place].end * bytes;
            let decompress = Decompress::<G1>::new(device, Encoding::Arkworks)?;
            Ok::<_, sqrt::Error>(decompress.decompress_host(&encoded[share])?.to_vec()?)
        })?;
        expect_same(&format!("points over {devices}"), &found.concat(), &known)?;
    }
    Ok(())
}

/// An exchange beside the next pass: of several passes on each place, of which one device may have two.
fn overlapped(device: &Device) -> Outcome {
    type Fr = ark_bls12_381::Fr;
    let log_n = 23;
    let host = random::<Fr>(1 << log_n, 8);
    let alone = ntt::Ntt::<Fr>::new(device, log_n)?;
    let mut groups = groups(device)?;
    groups.retain(|group| group.iter().all(|place| place.info().features.queues));
    groups.push(Devices::from(device).over(2)?);
    for output in [Order::Natural, Order::BitReversed] {
        let mut expected = device.upload::<Mont<Fr>>(&host)?;
        alone.transform().output(output).forward(&mut expected)?;
        let expected = expected.to_vec()?;
        for devices in &groups {
            let ntt = ShardedNtt::<Fr>::new(devices, log_n)?;
            let transform = ntt.transform().block_cyclic().output(output);
            let mut x = Sharded::upload(devices, &host, Distribution::BlockCyclic)?;
            for _ in 0..2 {
                transform.forward(&mut x)?;
                transform.clone().input(output).output(Order::Natural).inverse(&mut x)?;
            }
            transform.forward(&mut x)?;
            expect_same(&format!("a transform over {devices} to {output:?}"), &x.to_vec()?, &expected)?;
        }
    }
    Ok(())
}

/// A device that fails ends the call on all of them with its error, and the next call works.
fn failures(device: &Device) -> Outcome {
    let broken = Recorder::plain(&Device::another_cpu());
    let devices = Devices::new([device.clone(), Device::unregistered(broken.clone())])?;
    let num_vars = 5;
    let gate = Expression::column(0) * Expression::column(0);
    let statement = Statement::<BabyBear4>::new(num_vars, &gate)?;
    let host = random::<BabyBear>(1 << num_vars, 3);
    let distribution = ShardedSumcheck::<BabyBear4, BabyBear>::distribution(&statement);
    let table = Sharded::upload(&devices, &host, distribution)?;
    let claim = BabyBear4::from_base_prime_field(host.iter().map(Field::square).sum());
    // Two rounds; or all.
    for (challenge, launches) in [(Challenge::Device, 2), (Challenge::Host, 4)] {
        let config = SumcheckConfig::default().challenge(challenge);
        let prover = ShardedSumcheck::<BabyBear4, BabyBear>::with_config(&devices, &gate, config)?;
        let prove = || prover.prove(&statement, &[&table], claim, &mut Blake3Transcript::new(b"failures"));
        let proof = prove()?.proof;
        for after in 0..launches {
            broken.fail_launch_after(after);
            let error = expect_error("a proof on a broken device", prove())?;
            let is_told =
                matches!(&error, sumcheck::Error::Device(Error::Driver { reason, .. }) if reason == "told to fail");
            expect_equal(&format!("{error}"), &is_told, &true)?;
            expect_equal("the proof after that", &prove()?.proof, &proof)?;
        }
        // What is read of it at the end, and, unless both are processors, copies from it.
        for after in 0.. {
            broken.fail_read_after(after);
            match prove() {
                Err(error) => {
                    let told = matches!(&error, sumcheck::Error::Device(Error::Driver { reason, .. }) if reason == "made to fail");
                    expect_equal(&format!("{error}"), &told, &true)?;
                }
                Ok(proved) => {
                    expect_equal("reads of a proof", &(after > 0), &true)?;
                    expect_equal("a proof on a device that works", &proved.proof, &proof)?;
                    break;
                }
            }
        }
        broken.fail_read_after(usize::MAX);
    }
    let ntt = ShardedNtt::<BabyBear>::new(&devices, 6)?;
    let host = random::<BabyBear>(1 << 6, 4);
    let expected = ntt::reference::forward(&host, BabyBear::ONE);
    for after in [0, usize::MAX] {
        broken.fail_launch_after(after);
        let mut x = Sharded::upload(&devices, &host, Distribution::Cyclic)?;
        if after == 0 {
            let error = expect_error("a transform on a broken device", ntt.forward(&mut x))?;
            let is_told =
                matches!(&error, ntt::Error::Device(Error::Driver { reason, .. }) if reason == "told to fail");
            expect_equal(&format!("{error}"), &is_told, &true)?;
            continue;
        }
        ntt.forward(&mut x)?;
        expect_same("a transform", &x.to_vec()?, &expected)?;
    }
    Ok(())
}

/// Sums of any length, on two and four places, against those of multiples of the generator.
fn sums<C: MsmCurve>(device: &Device) -> Outcome {
    let generator = Affine::<C>::generator();
    let multiples = std::iter::successors(Some(generator.into_group()), |point| Some(*point + generator));
    let multiples = CurveGroup::normalize_batch(&multiples.take(301).collect::<Vec<Projective<C>>>());
    for devices in groups(device)? {
        for len in [1, 5, 301] {
            let scalars = random::<C::ScalarField>(2 * len, len as u64);
            let expected = |scalars: &[C::ScalarField]| {
                let terms = (1u64..).zip(scalars).map(|(k, scalar)| *scalar * C::ScalarField::from(k));
                generator * terms.sum::<C::ScalarField>()
            };
            let msm = ShardedMsm::<C>::new(&devices, &multiples[..len])?;
            let (first, second) = scalars.split_at(len);
            let sums = msm.msm_batch(2, &scalars)?;
            expect_same(&format!("sums of {len} over {devices}"), &sums, &[expected(first), expected(second)])?;
            let parts = Sharded::upload_with(&devices, first, Distribution::Blocks, Secrecy::Secret)?;
            let bases = Sharded::upload(&devices, &multiples[..len], Distribution::Blocks)?;
            let msm = ShardedMsm::<C>::from_sharded(&devices, &bases, MsmConfig::default())?;
            expect_equal("of buffers", &msm.msm_sharded(&parts)?, &expected(first))?;
        }
    }
    Ok(())
}

/// All orders, on the subgroup and on a coset, and back.
fn transforms<F: DeviceField + FftField>(device: &Device) -> Outcome {
    let orders = [Order::Natural, Order::BitReversed];
    for devices in groups(device)? {
        let log_n = 9;
        let ntt = ShardedNtt::<F>::new(&devices, log_n)?;
        let coefficients = random::<F>(1 << log_n, 5);
        for generator in [F::ONE, F::GENERATOR] {
            let values = ntt::reference::forward(&coefficients, generator);
            let every = orders.iter().flat_map(|input| orders.iter().map(move |output| (*input, *output, false)));
            // Coefficients that need no transposition.
            for (input, output, block_cyclic) in every.chain([(Order::Natural, Order::Natural, true)]) {
                let case = format!("2^{log_n} over {devices}, {input:?} to {output:?}");
                let distribution = |order| match order {
                    Order::Natural if block_cyclic => Distribution::BlockCyclic,
                    Order::Natural => Distribution::Cyclic,
                    Order::BitReversed => Distribution::Blocks,
                };
                let given = ntt::reference::reorder(&coefficients, Order::Natural, input);
                let mut x = Sharded::upload_with(&devices, &given, distribution(input), Secrecy::Secret)?;
                let transform = ntt.coset(generator);
                let transform = if block_cyclic { transform.block_cyclic() } else { transform };
                transform.clone().input(input).output(output).forward(&mut x)?;
                let expected = ntt::reference::reorder(&values, Order::Natural, output);
                expect_same(&case, &x.to_vec()?, &expected)?;
                transform.input(output).output(input).inverse(&mut x)?;
                expect_same(&format!("{case}, and back"), &x.to_vec()?, &given)?;
            }
        }
    }
    Ok(())
}

/// Transforms and proofs long enough that copies and work overlap, compared with those of one device.
fn large(device: &Device) -> Outcome {
    type Fr = ark_bls12_381::Fr;
    let log_n = 21;
    let host = random::<Fr>(1 << log_n, 6);
    let mut expected = device.upload::<Mont<Fr>>(&host)?;
    ntt::Ntt::<Fr>::new(device, log_n)?.forward(&mut expected)?;
    let expected = expected.to_vec()?;
    let gate = Expression::column(0) * Expression::column(0);
    let statement = Statement::<Fr>::new(log_n as usize, &gate)?;
    let claim = host.iter().map(Field::square).sum();
    let table = device.upload::<Mont<Fr>>(&host)?;
    let transcript = || Blake3Transcript::new(b"several devices");
    let one = sumcheck::Sumcheck::<Fr>::new(device, &gate)?.prove(&statement, &[&table], claim, &mut transcript())?;
    for devices in groups(device)? {
        let ntt = ShardedNtt::<Fr>::new(&devices, log_n)?;
        for distribution in [Distribution::Cyclic, Distribution::BlockCyclic] {
            let transform = ntt.transform();
            let transform = if distribution == Distribution::Cyclic { transform } else { transform.block_cyclic() };
            let mut x = Sharded::upload(&devices, &host, distribution)?;
            for round in 0..3 {
                transform.forward(&mut x)?;
                if round == 1 {
                    expect_same(&format!("a transform over {devices}"), &x.to_vec()?, &expected)?;
                }
                transform.inverse(&mut x)?;
            }
            expect_same(&format!("three there and back over {devices}"), &x.to_vec()?, &host)?;
        }
        let table = Sharded::upload(&devices, &host, Distribution::Cyclic)?;
        let prover = ShardedSumcheck::<Fr>::new(&devices, &gate)?;
        let proved = prover.prove(&statement, &[&table], claim, &mut transcript())?;
        expect_equal(&format!("a proof over {devices}"), &proved.proof.to_bytes(), &one.proof.to_bytes())?;
    }
    Ok(())
}

/// Proofs by this device and one with another parallelism: they divide rounds differently. Parts of a table may be public
/// beside secret ones.
fn unlike(device: &Device) -> Outcome {
    let below = Device::another_cpu();
    let mut info = below.info().clone();
    info.parallelism = if device.info().parallelism < 16 { 256 } else { 1 };
    let other = Device::unregistered(Recorder::with_info(&below, info, &[]));
    let [a, b] = [0, 1].map(Expression::column);
    for gate in [a.clone(), a.clone() * b.clone(), a.clone() * a.clone() * b + a] {
        for num_vars in 9..=11 {
            let tables = [random::<BabyBear>(1 << num_vars, 1), random(1 << num_vars, 2)];
            let tables = &tables[..gate.columns()];
            let statement = Statement::<BabyBear4>::new(num_vars, &gate)?.weight(Weight::Eq(random(num_vars, 3)));
            let whole =
                tables.iter().map(|table| device.upload::<Mont<BabyBear>>(table)).collect::<Result<Vec<_>, _>>()?;
            let whole: Vec<_> = whole.iter().collect();
            let transcript = || Blake3Transcript::new(b"unlike devices");
            let one = sumcheck::Sumcheck::<BabyBear4, BabyBear>::new(device, &gate)?;
            let claim = one.sum(&statement, &whole)?;
            let expected = one.prove(&statement, &whole, claim, &mut transcript())?.proof;
            for devices in [[device, &other], [&other, device]] {
                let devices = Devices::new(devices.map(Device::clone))?;
                let prover = ShardedSumcheck::<BabyBear4, BabyBear>::new(&devices, &gate)?;
                let parts = tables.iter().map(|table| {
                    let upload = |place: usize| {
                        let own: Vec<BabyBear> = table.iter().skip(place).step_by(2).copied().collect();
                        let secrecy = if place == 0 { Secrecy::Public } else { Secrecy::Secret };
                        devices[place].upload_with::<Mont<BabyBear>>(&own, secrecy)
                    };
                    Sharded::from_parts(vec![upload(0)?, upload(1)?], Distribution::Cyclic)
                });
                let parts = parts.collect::<Result<Vec<_>, _>>()?;
                let parts: Vec<_> = parts.iter().collect();
                let proved = prover.prove(&statement, &parts, claim, &mut transcript())?;
                expect_equal(&format!("2^{num_vars} over {devices}, {gate:?}"), &proved.proof, &expected)?;
            }
        }
    }
    Ok(())
}

/// Proofs of each weight, compared with those by definition.
fn proofs<E: DeviceField, T: DeviceField>(device: &Device) -> Outcome {
    let num_vars = 6;
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    let gate = a * b - c;
    let (a, b) = (random::<T>(1 << num_vars, 1), random::<T>(1 << num_vars, 2));
    let c = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
    let tables = [a, b, c];
    let lift = |x: &T| {
        let mut limbs = vec![0; E::LIMBS];
        x.store(&mut limbs);
        E::load(&limbs)
    };
    let lifted: Vec<Vec<E>> = tables.iter().map(|table| table.iter().map(lift).collect()).collect();
    let point = random::<E>(num_vars, 3);
    for devices in groups(device)? {
        let config = SumcheckConfig::default().check(true);
        let prover = ShardedSumcheck::<E, T>::with_config(&devices, &gate, config)?;
        for order in [sumcheck::Order::MsbFirst, sumcheck::Order::LsbFirst] {
            for weight in [Weight::None, Weight::ZeroCheck, Weight::Eq(point.clone())] {
                let statement = Statement::<E>::new(num_vars, &gate)?.order(order).weight(weight);
                let transcript = || Blake3Transcript::new(b"several devices");
                let zero = E::ZERO;
                let (expected, _) = sumcheck::reference::prove(&statement, num_vars, &lifted, zero, &mut transcript());
                let distribution = ShardedSumcheck::<E, T>::distribution(&statement);
                let upload = |table: &Vec<T>| Sharded::upload_with(&devices, table, distribution, Secrecy::Secret);
                let parts = tables.iter().map(upload).collect::<Result<Vec<_>, _>>()?;
                let parts: Vec<_> = parts.iter().collect();
                let proved = prover.prove(&statement, &parts, zero, &mut transcript())?;
                let case = format!("a proof over {devices}, {order:?}");
                expect_equal(&case, &proved.proof.to_bytes(), &expected.to_bytes())?;
                let sub = statement.verify(zero, &proved.proof, &mut transcript())?;
                expect_equal("its point", &proved.point, &sub.point)?;
            }
        }
    }
    Ok(())
}
