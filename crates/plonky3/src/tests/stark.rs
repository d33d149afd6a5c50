//! A proof of Plonky3's prover with our types under it: the bytes are those with its own, and its verifier accepts them.

use p3_air::{Air, AirBuilder, BaseAir, WindowAccess};
use p3_challenger::DuplexChallenger;
use p3_commit::{ExtensionMmcs, Mmcs};
use p3_field::{PrimeField64, extension::BinomialExtensionField};
use p3_fri::{FriParameters, TwoAdicFriPcs};
use p3_uni_stark::{Proof, StarkConfig, prove, verify};

use super::*;

type Challenge = BinomialExtensionField<BabyBear, 4>;
type Challenger = DuplexChallenger<BabyBear, Permutation16, 16, 8>;
type Pcs<Dft, ValMmcs> = TwoAdicFriPcs<BabyBear, Dft, ValMmcs, ExtensionMmcs<BabyBear, Challenge, ValMmcs>>;
type Config<Dft, ValMmcs> = StarkConfig<Pcs<Dft, ValMmcs>, Challenge, Challenger>;

fn config<Dft: Clone, ValMmcs: Mmcs<BabyBear>>(dft: Dft, mmcs: ValMmcs) -> Config<Dft, ValMmcs> {
    let parameters = FriParameters {
        log_blowup: 2,
        log_final_poly_len: 2,
        max_log_arity: 1,
        num_queries: 5,
        batch_proof_of_work_bits: 0,
        commit_proof_of_work_bits: 1,
        query_proof_of_work_bits: 2,
        mmcs: ExtensionMmcs::new(mmcs.clone()),
    };
    let pcs = Pcs::new(dft, mmcs, parameters);
    StarkConfig::new(pcs, Challenger::new(default_babybear_poseidon2_16()))
}

/// Rows (a, b), (b, a + b), and so on.
struct Fibonacci;

impl<F> BaseAir<F> for Fibonacci {
    fn width(&self) -> usize {
        2
    }

    fn num_public_values(&self) -> usize {
        3
    }
}

impl<AB: AirBuilder> Air<AB> for Fibonacci {
    fn eval(&self, builder: &mut AB) {
        let main = builder.main();
        let [a, b, last] = [0, 1, 2].map(|i| builder.public_values()[i]);
        let [left, right] = [0, 1].map(|i| main.current_slice()[i]);
        let [next_left, next_right] = [0, 1].map(|i| main.next_slice()[i]);
        let mut first = builder.when_first_row();
        first.assert_eq(left, a);
        first.assert_eq(right, b);
        let mut transition = builder.when_transition();
        transition.assert_eq(right, next_left);
        transition.assert_eq(left + right, next_right);
        builder.when_last_row().assert_eq(right, last);
    }
}

#[test]
fn plonky3s_verifier_accepts_proofs_that_equal_plonky3s() {
    let rows = 64;
    let (mut values, mut row) = (Vec::new(), [BabyBear::ZERO, BabyBear::ONE]);
    for _ in 0..rows {
        values.extend(row);
        row = [row[1], row[0] + row[1]];
    }
    let public = vec![values[0], values[1], values[2 * rows - 1]];
    let trace = || RowMajorMatrix::new(values.clone(), 2);
    let host = config(Radix2DitParallel::<BabyBear>::default(), host_mmcs(0));
    let expected = serde_json::to_string(&prove(&host, &Fibonacci, trace(), &public).unwrap()).unwrap();
    for device in devices() {
        let dft = DeviceDft::<BabyBear>::new(&device).min_elements(0);
        let ours = config(dft, our_mmcs(&device, 0));
        let before = device.stats().launches;
        let proof = serde_json::to_string(&prove(&ours, &Fibonacci, trace(), &public).unwrap()).unwrap();
        assert!(device.stats().launches > before, "nothing ran on {}", device.info().name);
        assert_eq!(proof, expected, "{}", device.info().name);
        let proof: Proof<Config<Radix2DitParallel<BabyBear>, HostMmcs>> = serde_json::from_str(&proof).unwrap();
        verify(&host, &Fibonacci, &proof, &public).unwrap();
        let mut other = public.clone();
        other[2] += BabyBear::from_u64(BabyBear::ORDER_U64 - 1);
        assert!(verify(&host, &Fibonacci, &proof, &other).is_err());
    }
}
