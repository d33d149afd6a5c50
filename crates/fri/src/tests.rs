//! Against the definitions and Plonky3, on every device that is here.

mod constraints;
mod plonky3;

use ark_ff::{FftField, Field};
use ark_std::test_rng;
use evariste_backend::{Device, Error as DeviceError, Secrecy};
use evariste_emulator::Arithmetic;
use evariste_field::{
    Mont,
    small::{BabyBear, BabyBear4, Goldilocks2, KoalaBear5},
};
use evariste_hash::{DuplexSponge, Merkle, Poseidon2, Poseidon2Parameters, Rows};

use crate::{
    error::Error,
    field::FriField,
    fold::Fold,
    plan::{Fri, FriConfig, FriRound, log_arities},
    quotients::{Opened, Quotients},
    reference,
    verifier::verify_query,
};

/// The CPU, and CUDA sources on the host, as far as there is a compiler. Trials run on GPUs and their emulation.
pub(crate) fn devices() -> Vec<Device> {
    [Device::cpu()].into_iter().chain(evariste_emulator::device(Arithmetic::CarryFlag)).collect()
}

pub(crate) fn random<F: Field>(len: usize) -> Vec<F> {
    let mut rng = test_rng();
    (0..len).map(|i| if i % 11 == 5 { -F::ONE } else { F::rand(&mut rng) }).collect()
}

/// Evaluations of a polynomial of `len >> log_blowup` coefficients.
pub(crate) fn codeword<F: FriField>(log_len: u32, log_blowup: u32, shift: F::BasePrimeField) -> Vec<F> {
    let coefficients = random::<F>(1 << (log_len - log_blowup));
    let points = reference::points(log_len, shift);
    points.into_iter().map(|x| reference::evaluate(&coefficients, F::from_base_prime_field(x))).collect()
}

pub(crate) fn parameters() -> Poseidon2Parameters<BabyBear> {
    Poseidon2Parameters::plonky3(16).unwrap()
}

pub(crate) fn merkle(device: &Device) -> Merkle<BabyBear> {
    Merkle::new(Poseidon2::new(device, parameters()).unwrap())
}

fn check_folds<F: FriField>(log_len: u32) {
    let shift = F::BasePrimeField::GENERATOR;
    let (values, [beta, factor]) = (random::<F>(1 << log_len), [0, 1].map(|i| random::<F>(2)[i]));
    for device in devices() {
        let name = device.info().name.clone();
        // Points of a larger domain do as well.
        let fold = Fold::<F>::new(&device, log_len + 1).unwrap();
        let buffer = device.upload::<Mont<F>>(&values).unwrap();
        for log_arity in 1..=4 {
            let expected = reference::fold(&values, log_arity, beta, shift);
            let mut out = device.upload::<Mont<F>>(&vec![F::ONE; expected.len()]).unwrap();
            fold.fold(&buffer, beta, shift, &mut out).unwrap();
            assert_eq!(out.to_vec().unwrap(), expected, "{name}, by 2^{log_arity}");
            let added = buffer.view(3..3 + expected.len()).unwrap();
            fold.fold_and_add(&buffer, beta, shift, (added, factor), &mut out).unwrap();
            let sums: Vec<F> = expected.iter().zip(&values[3..]).map(|(x, y)| *x + factor * y).collect();
            assert_eq!(out.to_vec().unwrap(), sums, "{name}, by 2^{log_arity}, added to");
        }
    }
}

#[test]
fn folds_are_those_of_the_definition() {
    check_folds::<BabyBear4>(7);
    check_folds::<BabyBear>(4);
    check_folds::<KoalaBear5>(5);
    check_folds::<Goldilocks2>(5);
    check_folds::<ark_bls12_381::Fr>(4);
}

#[test]
fn quotients_are_those_of_the_definition() {
    type F = BabyBear4;
    let shift = BabyBear::GENERATOR;
    let (alpha, z) = (random::<F>(1)[0], random::<F>(3));
    // Heights, columns and points of matrices.
    let shapes = [(32, 3, 2), (8, 5, 1), (32, 1, 1), (8, 2, 0), (2, 1, 0)];
    let matrices: Vec<Vec<BabyBear>> = shapes.iter().map(|(height, columns, _)| random(height * columns)).collect();
    let points: Vec<Vec<(F, Vec<F>)>> = shapes
        .iter()
        .enumerate()
        .map(|(i, (_, columns, points))| (0..*points).map(|j| (z[(i + j) % 3], random(*columns))).collect())
        .collect();
    let mut expected = [32, 8, 2].map(|height: usize| (height, 0u64, vec![F::from(0u8); height]));
    for ((matrix, points), (height, columns, _)) in matrices.iter().zip(&points).zip(shapes) {
        let (_, terms, sums) = expected.iter_mut().find(|(of, ..)| *of == height).unwrap();
        for (z, values) in points {
            let quotients = reference::quotients(matrix, values, *z, alpha, shift);
            sums.iter_mut().zip(quotients).for_each(|(sum, q)| *sum += alpha.pow([*terms]) * q);
            *terms += columns as u64;
        }
    }
    for device in devices() {
        let plan = Quotients::<F>::new(&device, 6).unwrap();
        let buffers: Vec<_> = matrices.iter().map(|m| device.upload::<Mont<BabyBear>>(m).unwrap()).collect();
        let opened: Vec<_> = buffers
            .iter()
            .zip(&shapes)
            .zip(&points)
            .map(|((buffer, (_, columns, _)), points)| Opened { matrix: Rows::new(buffer, *columns), points })
            .collect();
        let sums = plan.quotients(&opened, alpha, shift).unwrap();
        let sums: Vec<Vec<F>> = sums.iter().map(|sum| sum.to_vec().unwrap()).collect();
        assert_eq!(sums, expected.iter().map(|(.., sums)| sums.clone()).collect::<Vec<_>>(), "{}", device.info().name);

        let refused = |opened: &[Opened<'_, F>], shift| plan.quotients(opened, alpha, shift).err();
        assert_eq!(refused(&[], shift), Some(Error::NoInput));
        assert!(matches!(refused(&opened, BabyBear::from(0)), Some(Error::Parameter { .. })));
        let inside = [(F::from_base_prime_field(reference::points(5, shift)[3]), random(3))];
        let inside = [Opened { matrix: opened[0].matrix, points: &inside }];
        assert_eq!(refused(&inside, shift), Some(Error::PointInDomain { matrix: 0, point: 0 }));
        let short = [(z[0], random(2))];
        let short = [Opened { matrix: opened[0].matrix, points: &short }];
        let expected = Error::Proof { what: "the values at a point", expected: 3, actual: 2 };
        assert_eq!(refused(&short, shift), Some(expected));
        let odd = [Opened { matrix: Rows::new(&buffers[0], 32), points: &[] }];
        assert!(matches!(refused(&odd, shift), Some(Error::Height { actual: 3, .. })));
    }
}

#[test]
fn values_are_those_of_the_polynomials() {
    type F = BabyBear4;
    let shift = BabyBear::GENERATOR;
    for (log_height, columns) in [(0, 3), (4, 1), (5, 40)] {
        let points_of_domain = reference::points(log_height, shift);
        let coefficients = random::<BabyBear>(columns << log_height);
        let coefficients: Vec<&[BabyBear]> = coefficients.chunks(1 << log_height).collect();
        let rows = points_of_domain.iter().flat_map(|x| coefficients.iter().map(|p| reference::evaluate(p, *x)));
        let rows: Vec<BabyBear> = rows.collect();
        let points = [random::<F>(3)[2], F::from(0u8)];
        let lift = |p: &&[BabyBear]| p.iter().map(|x| F::from_base_prime_field(*x)).collect::<Vec<_>>();
        let expected =
            points.map(|z| coefficients.iter().map(|p| reference::evaluate(&lift(p), z)).collect::<Vec<_>>());
        for device in devices() {
            let plan = Quotients::<F>::new(&device, 6).unwrap();
            let buffer = device.upload::<Mont<BabyBear>>(&rows).unwrap();
            let matrix = Rows::new(&buffer, columns);
            assert_eq!(plan.evaluate(&matrix, &points, shift).unwrap(), expected, "{}", device.info().name);
            assert_eq!(plan.evaluate(&matrix, &[], shift), Ok(Vec::new()));
            let inside = F::from_base_prime_field(points_of_domain[0]);
            let refused = plan.evaluate(&matrix, &[points[0], inside], shift);
            assert_eq!(refused, Err(Error::PointInDomain { matrix: 0, point: 1 }));
            assert!(matches!(plan.evaluate(&matrix, &points, BabyBear::from(0)), Err(Error::Parameter { .. })));
        }
    }
}

/// A commit phase with inputs of three lengths, by the definition of folds, and queries.
#[test]
fn commit_phases_fold_to_the_final_polynomial() {
    type F = BabyBear4;
    for (max_log_arity, log_final_len, log_cap) in [(1, 0, 0), (3, 2, 1), (4, 1, 9)] {
        let config = FriConfig { log_blowup: 2, log_final_len, max_log_arity, log_cap };
        let shift = BabyBear::GENERATOR;
        let log_lens = [9, 6, 4];
        let codewords = log_lens.map(|log_len| codeword::<F>(log_len, 2, shift.pow([1 << (9 - log_len)])));
        for device in devices() {
            let fri = Fri::<F>::new(merkle(&device), 10, config).unwrap();
            let buffers = codewords.clone().map(|values| device.upload::<Mont<F>>(&values).unwrap());
            let inputs = buffers.each_ref().map(|buffer| buffer.as_view());
            let (mut transcript, mut betas) = (DuplexSponge::new(parameters()), Vec::new());
            let committed = fri
                .commit(&inputs, shift, |cap| {
                    transcript.observe(cap);
                    betas.push(transcript.draw_extension::<F>());
                    Ok::<_, Error>(*betas.last().unwrap())
                })
                .unwrap();
            let arities = log_arities(&log_lens, &config);
            assert_eq!(committed.rounds().iter().map(|round| round.log_arity()).collect::<Vec<_>>(), arities);
            let (mut values, mut coset) = (codewords[0].clone(), shift);
            for (round, beta) in committed.rounds().iter().zip(&betas) {
                values = reference::fold(&values, round.log_arity(), *beta, coset);
                coset = coset.pow([1 << round.log_arity()]);
                if let Some(input) = codewords[1..].iter().find(|input| input.len() == values.len()) {
                    let factor = beta.pow([1 << round.log_arity()]);
                    values.iter_mut().zip(input).for_each(|(x, y)| *x += factor * y);
                }
                assert_eq!(round.folded().to_vec().unwrap(), values);
            }
            let coefficients = reference::coefficients(&values, coset);
            let (polynomial, zeros) = coefficients.split_at(1 << log_final_len);
            assert_eq!(committed.final_polynomial(), polynomial);
            assert!(zeros.iter().all(|x| *x == F::from(0u8)), "the degree is too high");

            let indices = [0, 511, 300, 300];
            let opened = fri.open(&committed, &buffers[0], &indices).unwrap();
            let rounds: Vec<_> = committed.rounds().iter().map(|round| round.cap()).zip(betas).collect();
            for (index, steps) in indices.into_iter().zip(&opened) {
                let inputs: Vec<_> = log_lens
                    .iter()
                    .zip(&codewords)
                    .map(|(log_len, values)| (*log_len, values[index >> (9 - log_len)]))
                    .collect();
                let verify = |inputs: &[(u32, F)], polynomial: &[F], steps: &[_]| {
                    verify_query(&parameters(), &config, shift, &rounds, polynomial, index, inputs, steps)
                };
                verify(&inputs, polynomial, steps).unwrap();
                let mut other = polynomial.to_vec();
                other[0] += F::from(1u8);
                assert_eq!(verify(&inputs, &other, steps), Err(Error::OtherPolynomial { index }));
                // A smaller cap would go with a longer path.
                let mut short = rounds.clone();
                short[0].0 = &short[0].0[..short[0].0.len() / 2];
                let refused =
                    verify_query(&parameters(), &config, shift, &short, polynomial, index, &inputs, steps).unwrap_err();
                assert!(matches!(refused, Error::Proof { what: "a cap", .. }), "{refused}");
                let mut wrong = inputs.clone();
                wrong[2].1 += F::from(1u8);
                assert_eq!(verify(&wrong, polynomial, steps), Err(Error::OtherPolynomial { index }));
                let mut steps = steps.clone();
                let place = (index % (1 << arities[0])) ^ 1;
                steps[0].values[place] += F::from(1u8);
                assert_eq!(verify(&inputs, polynomial, &steps), Err(Error::Hash(evariste_hash::Error::OtherRoot)));
                steps.pop();
                assert!(matches!(verify(&inputs, polynomial, &steps), Err(Error::Proof { .. })));
            }
        }
    }
}

#[test]
fn wrong_arguments_are_refused_and_nothing_is_written() {
    type F = BabyBear4;
    let device = Device::cpu();
    let values = random::<F>(64);
    let buffer = device.upload::<Mont<F>>(&values).unwrap();
    let fold = Fold::<F>::new(&device, 5).unwrap();
    let mut out = device.upload::<Mont<F>>(&values).unwrap();
    let (beta, one) = (values[0], BabyBear::from(1));
    let mut refused = |len: usize, folded: usize, shift: BabyBear| {
        fold.fold(buffer.view(..len).unwrap(), beta, shift, out.view_mut(..folded).unwrap()).unwrap_err()
    };
    assert!(matches!(refused(24, 12, one), Error::Height { actual: 24, .. }));
    assert!(matches!(refused(0, 0, one), Error::Height { actual: 0, .. }));
    assert!(matches!(refused(16, 3, one), Error::Height { actual: 3, .. }));
    assert!(matches!(refused(64, 32, one), Error::TooLong { expected: 32, actual: 64, .. }));
    for (len, folded) in [(32, 1), (32, 32), (16, 32)] {
        assert_eq!(refused(len, folded, one), Error::Arity { values: len, folded });
    }
    assert!(matches!(refused(32, 16, BabyBear::from(0)), Error::Parameter { .. }));
    let secret = device.upload_with::<Mont<F>>(&values[..32], Secrecy::Secret).unwrap();
    let refused = fold.fold(&secret, beta, one, out.view_mut(..16).unwrap()).unwrap_err();
    assert!(matches!(refused, Error::Device(DeviceError::SecretInput { .. })));
    let short = buffer.view(..15).unwrap();
    let refused = fold.fold_and_add(buffer.view(..32).unwrap(), beta, one, (short, beta), out.view_mut(..16).unwrap());
    assert!(matches!(refused, Err(Error::Device(DeviceError::Length { expected: 16, actual: 15, .. }))));
    assert_eq!(out.to_vec().unwrap(), values);

    assert!(matches!(Fold::<F>::new(&device, 28), Err(Error::Domain { expected: 27, actual: 28 })));
    let config = FriConfig { log_blowup: 1, log_final_len: 2, max_log_arity: 2, log_cap: 0 };
    let fri = |config| Fri::<F>::new(merkle(&device), 5, config);
    for config in [
        FriConfig { log_blowup: 0, ..config },
        FriConfig { max_log_arity: 0, ..config },
        FriConfig { max_log_arity: 5, ..config },
        FriConfig { log_final_len: 63, ..config },
    ] {
        assert!(matches!(fri(config), Err(Error::Parameter { .. })), "{config:?}");
    }
    let fri = fri(config).unwrap();
    let refused = |lens: &[usize]| {
        let inputs: Vec<_> = lens.iter().map(|len| buffer.view(..*len).unwrap()).collect();
        fri.commit(&inputs, one, |_| -> Result<F, Error> { panic!("nothing is committed to") }).unwrap_err()
    };
    assert_eq!(refused(&[]), Error::NoInput);
    assert!(matches!(refused(&[32, 12]), Error::Height { actual: 12, .. }));
    assert!(matches!(refused(&[64]), Error::TooLong { expected: 32, actual: 64, .. }));
    assert!(matches!(refused(&[32, 4]), Error::TooShort { expected: 8, actual: 4, .. }));
    assert_eq!(refused(&[16, 16]), Error::Order { index: 1, before: 16, actual: 16 });
    // The caller's own error comes back.
    let input = [buffer.view(..32).unwrap()];
    let stopped = fri.commit(&input, one, |_| Err(Error::NoInput)).unwrap_err();
    assert_eq!(stopped, Error::NoInput);
    let committed = fri.commit(&input, one, |_| Ok::<_, Error>(beta)).unwrap();
    assert!(matches!(fri.open(&committed, input[0], &[32]), Err(Error::Parameter { actual: 32, .. })));
    assert!(matches!(
        fri.open(&committed, &buffer, &[1]),
        Err(Error::Device(DeviceError::Length { expected: 32, actual: 64, .. }))
    ));
}

/// What a commit phase keeps is no more than it says.
#[test]
fn required_bytes_suffice() {
    type F = BabyBear4;
    let device = Device::cpu();
    let config = FriConfig { max_log_arity: 3, ..FriConfig::default() };
    let fri = Fri::<F>::new(merkle(&device), 12, config).unwrap();
    let input = device.upload::<Mont<F>>(&random::<F>(1 << 12)).unwrap();
    let committed = fri.commit(&[input.as_view()], BabyBear::from(1), |_| Ok::<_, Error>(F::from(3u8))).unwrap();
    let bytes = |round: &FriRound<F>| round.tree().nodes().bytes() + round.folded().bytes();
    let kept: u64 = committed.rounds().iter().map(bytes).sum();
    let required = Fri::<F>::required_bytes(&parameters(), &[1 << 12], &config);
    assert!(kept <= required, "{kept} of {required} bytes");
}
