//! The transcript against Plonky3's.

use p3_challenger::{CanObserve, CanSample, CanSampleBits, DuplexChallenger, GrindingChallenger};

use super::*;
use crate::duplex::DuplexSponge;

#[test]
fn draws_and_proofs_of_work_are_plonky3s() {
    type P = p3_baby_bear::BabyBear;
    let mut theirs_ = DuplexChallenger::<P, _, 16, 8>::new(p3_baby_bear::default_babybear_poseidon2_16());
    let parameters = Poseidon2Parameters::<BabyBear>::plonky3(16).unwrap();
    let mut transcript = DuplexSponge::new(parameters.clone());
    let ours_of = |x: P| ours::<BabyBear, P>(&[x])[0];
    for (i, len) in [0, 3, 8, 1, 17, 7, 0].into_iter().enumerate() {
        let values = random::<BabyBear>(len);
        transcript.observe(&values);
        CanObserve::observe_slice(&mut theirs_, &theirs::<BabyBear, P>(&values));
        for device in devices() {
            let poseidon2 = Poseidon2::new(&device, parameters.clone()).unwrap();
            let mut here = transcript.clone();
            let bits = [0, 5, 9][i % 3];
            let witness = here.grind(&poseidon2, bits).unwrap();
            let mut there = theirs_.clone();
            assert!(there.check_witness(bits as usize, theirs::<BabyBear, P>(&[witness])[0]));
            assert!(transcript.clone().check_witness(bits, witness).unwrap());
            let less = (0..word(&witness)).rev().take(100).map(BabyBear::from);
            assert!(less.into_iter().all(|x| !transcript.clone().check_witness(bits, x).unwrap()), "the smallest");
            assert_eq!(here.draw(), ours_of(there.sample()));
        }
        for _ in 0..i * 3 {
            assert_eq!(transcript.draw(), ours_of(theirs_.sample()));
        }
        assert_eq!(transcript.draw_bits(20).unwrap(), theirs_.sample_bits(20) as u64);
    }
}

/// Integers of two words.
#[test]
fn goldilocks_grinds() {
    type P = p3_goldilocks::Goldilocks;
    let parameters = Poseidon2Parameters::<Goldilocks>::plonky3(8).unwrap();
    let theirs_ = DuplexChallenger::<P, _, 8, 4>::new(p3_goldilocks::default_goldilocks_poseidon2_8());
    for device in devices() {
        let poseidon2 = Poseidon2::new(&device, parameters.clone()).unwrap();
        let witness = DuplexSponge::new(parameters.clone()).grind(&poseidon2, 8).unwrap();
        assert!(theirs_.clone().check_witness(8, theirs::<Goldilocks, P>(&[witness])[0]));
    }
}

#[test]
fn impossible_proofs_of_work_are_refused() {
    let parameters = Poseidon2Parameters::<BabyBear>::plonky3(16).unwrap();
    let poseidon2 = Poseidon2::new(&Device::cpu(), parameters.clone()).unwrap();
    let state = vec![BabyBear::ONE; 16];
    let refused = |result| matches!(result, Err(Error::Parameters { .. }));
    assert!(refused(poseidon2.grind(&state[1..], 0, 4)) && refused(poseidon2.grind(&state, 8, 4)));
    assert!(refused(poseidon2.grind(&state, 0, 31)));
    let other = Poseidon2::new(&Device::cpu(), Poseidon2Parameters::<BabyBear>::plonky3(24).unwrap()).unwrap();
    let mut transcript = DuplexSponge::new(parameters);
    assert!(refused(transcript.grind(&other, 4)));
    assert!(transcript.draw_bits(31).is_err() && transcript.check_witness(64, BabyBear::ONE).is_err());
}
