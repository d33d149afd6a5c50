//! The resident scheme by itself, beside Plonky3's.

use p3_challenger::CanSample;
use p3_commit::{
    CommitmentOpening, ExtensionMmcs, MatrixOpening, OpeningRequest, Pcs, PointOpening, UnivariateStarkPcs,
};
use p3_field::{PrimeCharacteristicRing, TwoAdicField, coset::TwoAdicMultiplicativeCoset};
use p3_fri::FriProverError;

use super::{
    stark::{Challenge, Challenger, HostPcs, fri},
    *,
};
use crate::{error::ProverError, pcs::DeviceFriPcs};

type Plonky3 = HostPcs<BabyBear, Radix2DitParallel<BabyBear>, HostMmcs>;
type Ours = DeviceFriPcs<BabyBear, OurMmcs>;
type Domain = TwoAdicMultiplicativeCoset<BabyBear>;

fn plonky3() -> Plonky3 {
    let mmcs = host_mmcs(1);
    Plonky3::new(Radix2DitParallel::default(), mmcs.clone(), fri(1, 4, ExtensionMmcs::new(mmcs)))
}

fn ours(device: &Device, min_elements: usize) -> Ours {
    let mmcs = our_mmcs(device, 1).min_elements(min_elements);
    Ours::new(mmcs.clone(), fri(1, 4, mmcs)).unwrap()
}

fn challenger() -> Challenger {
    Challenger::new(default_babybear_poseidon2_16())
}

/// Calls a function of a scheme with this challenger.
macro_rules! call {
    ($name:ident, $pcs:expr $(, $argument:expr)*) => {
        <_ as Pcs<Challenge<BabyBear>, Challenger>>::$name($pcs $(, $argument)*)
    };
}

/// And of a scheme for univariate proofs.
macro_rules! call_univariate {
    ($name:ident, $pcs:expr $(, $argument:expr)*) => {
        <_ as UnivariateStarkPcs<Challenge<BabyBear>, Challenger>>::$name($pcs $(, $argument)*)
    };
}

/// Requests to open two commitments at these points.
fn requests<'a, D>(
    data: [&'a D; 2],
    points: &[Vec<Vec<Challenge<BabyBear>>>; 2],
) -> Vec<OpeningRequest<'a, D, Challenge<BabyBear>>> {
    let requests = data.into_iter().zip(points.clone());
    requests.map(|(prover_data, points)| OpeningRequest { prover_data, points }).collect()
}

/// Devices on which nothing of other tests is counted: those share the processor.
fn own_devices() -> Vec<Device> {
    let mut devices = devices();
    devices[0] = Device::another_cpu();
    devices
}

#[test]
fn openings_of_several_matrices_are_plonky3s() {
    // Heights and widths of the matrices of two commitments.
    let shapes: [&[(usize, usize)]; 2] = [&[(64, 3), (8, 5), (64, 1)], &[(16, 2)]];
    let host = plonky3();
    let given = |shape: &[(usize, usize)]| -> Vec<(Domain, RowMajorMatrix<BabyBear>)> {
        let domain = |height| call!(natural_domain_for_degree, &host, height);
        shape.iter().map(|(height, width)| (domain(*height), matrix(*height, *width))).collect()
    };
    let [z, y] = [7, 1 << 20].map(|x| Challenge::<BabyBear>::from_u64(x) + Challenge::<BabyBear>::TWO.inverse());
    let points = [vec![vec![z, y], vec![z], vec![y]], vec![vec![y]]];
    let expected = shapes.map(|shape| call!(commit, &host, given(shape)).unwrap());
    let (values, proof) =
        call!(open, &host, requests([&expected[0].1, &expected[1].1], &points), &mut challenger()).unwrap();
    let proof = serde_json::to_string(&proof).unwrap();
    let claims = || {
        let claims = expected.iter().zip(shapes).zip(&points).zip(&values).map(|(((of, shape), points), values)| {
            let matrices = given(shape).into_iter().zip(points).zip(values).map(|(((domain, _), points), values)| {
                let points = points.iter().copied().zip(values.iter().cloned());
                MatrixOpening { domain, points: points.map(|(point, values)| PointOpening { point, values }).collect() }
            });
            CommitmentOpening { commitment: of.0.clone(), matrices: matrices.collect() }
        });
        claims.collect::<Vec<_>>()
    };
    for device in own_devices() {
        // All on the device; the second commitment with Plonky3; all with it.
        for min_elements in [0, 100, 10_000] {
            let pcs = ours(&device, min_elements);
            let committed = shapes.map(|shape| call!(commit, &pcs, given(shape)).unwrap());
            assert_eq!([0, 1].map(|i| committed[i].0.clone()), [0, 1].map(|i| expected[i].0.clone()));
            let before = device.stats();
            let mut transcript = challenger();
            let data = [&committed[0].1, &committed[1].1];
            let (found, ours) = call!(open, &pcs, requests(data, &points), &mut transcript).unwrap();
            assert_eq!(found, values);
            assert_eq!(serde_json::to_string(&ours).unwrap(), proof);
            assert_eq!(device.stats().launches > before.launches, min_elements < 10_000);
            call!(verify, &pcs, claims(), &ours, &mut challenger()).unwrap();

            let few = vec![OpeningRequest { prover_data: data[0], points: vec![vec![z]] }];
            let refused = call!(open, &pcs, few, &mut challenger()).err();
            assert_eq!(refused, Some(ProverError::Points { expected: 3, actual: 1 }));
        }
    }
}

#[test]
fn evaluations_on_domains_are_plonky3s() {
    let host = plonky3();
    let trace = || (call!(natural_domain_for_degree, &host, 32), matrix(32, 3));
    let expected = call!(commit, &host, [trace()]).unwrap().1;
    let domains = [(BabyBear::GENERATOR, 6), (BabyBear::GENERATOR, 5), (BabyBear::GENERATOR, 8), (BabyBear::TWO, 5)];
    for device in own_devices() {
        let pcs = ours(&device, 0);
        let data = call!(commit, &pcs, [trace()]).unwrap().1;
        for (shift, log_size) in domains {
            let domain = Domain::new(shift, log_size).unwrap();
            let before = device.stats().bytes_down;
            let found = call_univariate!(get_evaluations_on_domain, &pcs, &data, 0, domain).to_row_major_matrix();
            let read = device.stats().bytes_down - before;
            let theirs = call_univariate!(get_evaluations_on_domain, &host, &expected, 0, domain);
            assert_eq!(found, theirs.to_row_major_matrix(), "{shift}, 2^{log_size}");
            if log_size < 7 && shift == BabyBear::GENERATOR {
                assert_eq!(read, (12 << log_size) as u64, "rows that nobody asked for were read");
            }
        }
    }
}

#[test]
fn codewords_and_wrong_arguments() {
    let (host, device) = (plonky3(), Device::cpu());
    let domain = |height| call!(natural_domain_for_degree, &host, height);
    let pcs = ours(&device, 0);
    let ldes = call_univariate!(get_quotient_ldes, &pcs, [(domain(32), matrix(32, 2))], 1).unwrap();
    let (expected, _) = call_univariate!(commit_ldes, &host, ldes.clone()).unwrap();
    assert_eq!(call_univariate!(commit_ldes, &pcs, ldes).unwrap().0, expected);
    let short = call_univariate!(commit_ldes, &pcs, vec![matrix(1, 2)]).map(drop);
    assert_eq!(short, Err(ProverError::Rows { expected: 2, actual: 1 }));
    let other = call!(commit, &pcs, [(domain(8), matrix(4, 1))]).map(drop);
    assert_eq!(other, Err(ProverError::Rows { expected: 8, actual: 4 }));
    assert!(call!(commit, &pcs, [(domain(4), matrix(4, 0))]).is_err());

    // A codeword no longer than that of the final polynomial, and a point of the domain.
    let open = |height: usize, point| {
        let data = call!(commit, &pcs, [(domain(height), matrix(height, 1))]).unwrap().1;
        let request = OpeningRequest { prover_data: &data, points: vec![vec![point]] };
        call!(open, &pcs, vec![request], &mut challenger()).map(drop)
    };
    let too_small = FriProverError::InputHeightTooSmall { log_input_height: 3, log_final_height: 3 };
    let z = Challenge::<BabyBear>::from_u64(5);
    assert_eq!(open(4, z), Err(ProverError::Parameters(too_small)));
    let inside = Challenge::<BabyBear>::from(BabyBear::GENERATOR);
    assert!(matches!(open(16, inside), Err(ProverError::Fri(evariste_fri::Error::PointInDomain { .. }))));
    // One of the longer domain alone, in the second matrix. The transcript is as it was.
    let data = call!(commit, &pcs, [(domain(16), matrix(16, 1)), (domain(16), matrix(16, 2))]).unwrap().1;
    let point = Challenge::<BabyBear>::from(BabyBear::GENERATOR * BabyBear::two_adic_generator(5));
    let request = OpeningRequest { prover_data: &data, points: vec![vec![z], vec![z, point]] };
    let mut transcript = challenger();
    let refused = call!(open, &pcs, vec![request], &mut transcript).map(drop);
    let expected = evariste_fri::Error::PointInDomain { matrix: 1, point: 1 };
    assert_eq!(refused, Err(ProverError::Fri(expected)));
    let drawn: [BabyBear; 2] = [&mut transcript, &mut challenger()].map(|transcript| transcript.sample());
    assert_eq!(drawn[0], drawn[1]);

    let none: Vec<OpeningRequest<'_, _, Challenge<BabyBear>>> = Vec::new();
    assert_eq!(call!(open, &pcs, none, &mut challenger()).map(drop), Err(ProverError::NoMatrices));
    assert_eq!(call!(commit, &pcs, []).map(drop), Err(ProverError::NoMatrices));

    let new = |log_blowup, max_log_arity, num_queries| {
        let mmcs = our_mmcs(&device, 0);
        Ours::new(mmcs.clone(), p3_fri::FriParameters { num_queries, ..fri(log_blowup, max_log_arity, mmcs) }).err()
    };
    assert_eq!(new(1, 1, 1), None);
    assert!(matches!(new(0, 1, 1), Some(Error::Fri(evariste_fri::Error::Parameter { actual: 0, .. }))));
    assert!(matches!(new(1, 5, 1), Some(Error::Fri(evariste_fri::Error::Parameter { actual: 5, .. }))));
    assert!(matches!(new(1, 1, 0), Some(Error::Parameter { actual: 0, .. })));
}
