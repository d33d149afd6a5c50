//! Proofs of Plonky3's prover with our types under it: the bytes are those with its own, and its verifier accepts them.

use p3_air::{Air, AirBuilder, BaseAir, DebugConstraintBuilder, WindowAccess};
use p3_challenger::{DuplexChallenger, HashChallenger, SerializingChallenger32};
use p3_commit::ExtensionMmcs;
use p3_field::extension::BinomialExtensionField;
use p3_fri::{FriParameters, TwoAdicFriPcs};
use p3_keccak::Keccak256Hash;
use p3_keccak_air::KeccakAir;
use p3_koala_bear::{
    GenericPoseidon2LinearLayersKoalaBear, KOALABEAR_POSEIDON2_RC_16_EXTERNAL_FINAL,
    KOALABEAR_POSEIDON2_RC_16_EXTERNAL_INITIAL, KOALABEAR_POSEIDON2_RC_16_INTERNAL, KoalaBear, Poseidon2KoalaBear,
    default_koalabear_poseidon2_24,
};
use p3_poseidon2_air::{Poseidon2Air, RoundConstants};
use p3_uni_stark::{Proof, ProvingError, QuotientAir, StarkConfig, VerifierConstraintFolder, prove, verify};

use super::*;
use crate::{DeviceAir, ProverError, mmcs::DeviceByteMmcs, pcs::DeviceFriPcs};

pub(crate) type Challenge<P> = BinomialExtensionField<P, 4>;
pub(crate) type Challenger = DuplexChallenger<BabyBear, Permutation16, 16, 8>;
pub(crate) type HostPcs<P, Dft, ValMmcs> = TwoAdicFriPcs<P, Dft, ValMmcs, ExtensionMmcs<P, Challenge<P>, ValMmcs>>;
type HostConfig<P, ValMmcs, C> = StarkConfig<HostPcs<P, Radix2DitParallel<P>, ValMmcs>, Challenge<P>, C>;
type AdapterConfig<P, ValMmcs, C> = StarkConfig<HostPcs<P, DeviceDft<P>, ValMmcs>, Challenge<P>, C>;
type DeviceConfig<P, ValMmcs, C> = StarkConfig<DeviceFriPcs<P, ValMmcs>, Challenge<P>, C>;

/// Over folds by 2^`max_log_arity` at most. Without proofs of work: Plonky3 takes any solution that one of its threads
/// finds first.
pub(crate) fn fri<M>(log_blowup: usize, max_log_arity: usize, mmcs: M) -> FriParameters<M> {
    FriParameters {
        log_blowup,
        log_final_poly_len: 2,
        max_log_arity,
        num_queries: 5,
        batch_proof_of_work_bits: 0,
        commit_proof_of_work_bits: 0,
        query_proof_of_work_bits: 0,
        mmcs,
    }
}

/// Defines a function that proves side by side: with Plonky3's types, with transforms and trees of ours, with the resident
/// scheme, and with the constraints on the device as well, on every device.
macro_rules! side_by_side {
    ($name:ident, $val:ty, $host:ty, $ours:ty, $challenger:ty) => {
        fn $name<A>(
            air: &A,
            trace: &RowMajorMatrix<$val>,
            public: &[$val],
            [log_blowup, max_log_arity]: [usize; 2],
            host: &$host,
            ours: &dyn Fn(&Device) -> $ours,
            challenger: $challenger,
        ) where
            A: QuotientAir<HostConfig<$val, $host, $challenger>>
                + QuotientAir<AdapterConfig<$val, $ours, $challenger>>
                + QuotientAir<DeviceConfig<$val, $ours, $challenger>>
                + for<'a> Air<DebugConstraintBuilder<'a, $val>>
                + for<'a> Air<VerifierConstraintFolder<'a, HostConfig<$val, $host, $challenger>>>
                + for<'a> Air<VerifierConstraintFolder<'a, DeviceConfig<$val, $ours, $challenger>>>,
        {
            let extension = ExtensionMmcs::new(host.clone());
            let parameters = fri(log_blowup, max_log_arity, extension);
            let pcs = HostPcs::new(Radix2DitParallel::<$val>::default(), host.clone(), parameters);
            let host = HostConfig::new(pcs, challenger.clone());
            let expected = serde_json::to_string(&prove(&host, air, trace.clone(), public).unwrap()).unwrap();
            let mut other = public.to_vec();
            other.iter_mut().for_each(|value| *value += <$val>::ONE);
            for device in devices() {
                let name = &device.info().name;
                let mmcs = ours(&device);
                let dft = DeviceDft::<$val>::new(&device).min_elements(0);
                let parameters = fri(log_blowup, max_log_arity, ExtensionMmcs::new(mmcs.clone()));
                let adapters = AdapterConfig::new(HostPcs::new(dft, mmcs.clone(), parameters), challenger.clone());
                let before = device.stats().launches;
                let proof = serde_json::to_string(&prove(&adapters, air, trace.clone(), public).unwrap()).unwrap();
                assert!(device.stats().launches > before, "nothing ran on {name}");
                assert_eq!(proof, expected, "by transforms and trees, {name}");

                let pcs = DeviceFriPcs::new(mmcs.clone(), fri(log_blowup, max_log_arity, mmcs)).unwrap();
                let resident = DeviceConfig::new(pcs, challenger.clone());
                let before = device.stats().launches;
                let proof = prove(&resident, air, trace.clone(), public).unwrap();
                assert!(device.stats().launches > before, "nothing ran on {name}");
                verify(&resident, air, &proof, public).unwrap();
                let proof = serde_json::to_string(&proof).unwrap();
                assert_eq!(proof, expected, "by the resident scheme, {name}");
                let all = crate::prove(&resident, air, trace.clone(), public).unwrap();
                assert_eq!(serde_json::to_string(&all).unwrap(), expected, "with constraints there, {name}");
                let proof: Proof<HostConfig<$val, $host, $challenger>> = serde_json::from_str(&proof).unwrap();
                verify(&host, air, &proof, public).unwrap();
                assert!(public.is_empty() || verify(&host, air, &proof, &other).is_err());
            }
        }
    };
}

side_by_side!(by_poseidon2, BabyBear, HostMmcs, OurMmcs, Challenger);

/// AIRs of two columns, of one type so that proofs of them are compiled once.
enum Small {
    /// Rows (a, b), (b, a + b), and so on.
    Fibonacci,
    /// Rows (x, x^5), and as x the row's number, from a public value to another.
    Powers,
    /// Rows (x, x²) without regard to each other, with a bound of the degree that is above it.
    Squares,
}

use Small::{Fibonacci, Powers, Squares};

impl<F> BaseAir<F> for Small {
    fn width(&self) -> usize {
        2
    }

    fn num_public_values(&self) -> usize {
        match self {
            Fibonacci => 3,
            Powers => 2,
            Squares => 0,
        }
    }

    fn main_next_row_columns(&self) -> Vec<usize> {
        match self {
            Fibonacci => vec![0, 1],
            Powers => vec![0],
            Squares => Vec::new(),
        }
    }

    fn max_constraint_degree(&self) -> Option<usize> {
        matches!(self, Squares).then_some(3)
    }
}

impl<AB: AirBuilder> Air<AB> for Small {
    fn eval(&self, builder: &mut AB) {
        let main = builder.main();
        let [x, y] = [0, 1].map(|i| main.current_slice()[i]);
        match self {
            Fibonacci => {
                let [a, b, last] = [0, 1, 2].map(|i| builder.public_values()[i]);
                let [next_x, next_y] = [0, 1].map(|i| main.next_slice()[i]);
                let mut first = builder.when_first_row();
                first.assert_eq(x, a);
                first.assert_eq(y, b);
                let mut transition = builder.when_transition();
                transition.assert_eq(y, next_x);
                transition.assert_eq(x + y, next_y);
                builder.when_last_row().assert_eq(y, last);
            }
            Powers => {
                let next = main.next_slice()[0];
                let [first, last] = [0, 1].map(|i| builder.public_values()[i]);
                builder.when_first_row().assert_eq(x, first);
                builder.when_last_row().assert_eq(x, last);
                builder.when_transition().assert_eq(x + AB::Expr::ONE, next);
                let square = x * x;
                builder.assert_eq(square.clone() * square * x, y);
            }
            Squares => builder.assert_eq(x * x, y),
        }
    }
}

/// A trace of Fibonacci numbers, and its public values.
fn fibonacci(rows: usize) -> (RowMajorMatrix<BabyBear>, Vec<BabyBear>) {
    let (mut values, mut row) = (Vec::new(), [BabyBear::ZERO, BabyBear::ONE]);
    for _ in 0..rows {
        values.extend(row);
        row = [row[1], row[0] + row[1]];
    }
    let public = vec![values[0], values[1], values[2 * rows - 1]];
    (RowMajorMatrix::new(values, 2), public)
}

#[test]
fn proofs_of_fibonacci_are_plonky3s() {
    let (trace, public) = fibonacci(64);
    let challenger = || Challenger::new(default_babybear_poseidon2_16());
    // All on the device, with and without caps; then the trace of 512 extended elements stays on the CPU.
    for (min_elements, cap_height) in [(0, 0), (0, 2), (1000, 0)] {
        let ours = |device: &Device| our_mmcs(device, cap_height).min_elements(min_elements);
        by_poseidon2(&Fibonacci, &trace, &public, [2, 1], &host_mmcs(cap_height), &ours, challenger());
    }
}

#[test]
fn proofs_with_proofs_of_work_are_accepted() {
    let (trace, public) = fibonacci(32);
    let parameters = |mmcs: OurMmcs| FriParameters {
        batch_proof_of_work_bits: 1,
        commit_proof_of_work_bits: 2,
        query_proof_of_work_bits: 3,
        ..fri(1, 1, mmcs)
    };
    let mmcs = our_mmcs(&Device::cpu(), 0);
    let pcs = DeviceFriPcs::new(mmcs.clone(), parameters(mmcs)).unwrap();
    let resident =
        DeviceConfig::new(pcs, Challenger::new(default_babybear_poseidon2_16())).with_ood_proof_of_work_bits(2);
    let own = crate::prove(&resident, &Fibonacci, trace.clone(), &public).unwrap();
    verify(&resident, &Fibonacci, &own, &public).unwrap();
    let mut proof = prove(&resident, &Fibonacci, trace, &public).unwrap();
    verify(&resident, &Fibonacci, &proof, &public).unwrap();
    assert_ne!(proof.opening_proof.commit_phase_commits, []);
    proof.opening_proof.final_poly[0] += Challenge::<BabyBear>::ONE;
    assert!(verify(&resident, &Fibonacci, &proof, &public).is_err());
}

#[test]
fn proofs_of_keccak_are_plonky3s() {
    let trace = KeccakAir {}.generate_random_trace_rows::<BabyBear>(2, 0);
    assert_eq!(trace.height(), 64);
    let challenger = Challenger::new(default_babybear_poseidon2_16());
    let ours = |device: &Device| our_mmcs(device, 1);
    by_poseidon2(&KeccakAir {}, &trace, &[], [1, 3], &host_mmcs(1), &ours, challenger);
}

type Permutation24 = Poseidon2KoalaBear<24>;
type KoalaPacking = <KoalaBear as Field>::Packing;
type KoalaHash = PaddingFreeSponge<Permutation24, 24, 16, 8>;
type KoalaCompression = TruncatedPermutation<Permutation24, 2, 8, 24>;
type KoalaMmcs = MerkleTreeMmcs<KoalaPacking, KoalaPacking, KoalaHash, KoalaCompression, 2, 8>;
type OurKoalaMmcs = DeviceMmcs<KoalaBear, Permutation24, 24, 16, 8>;
type KoalaChallenger = DuplexChallenger<KoalaBear, Permutation24, 24, 16>;

side_by_side!(by_wide_poseidon2, KoalaBear, KoalaMmcs, OurKoalaMmcs, KoalaChallenger);

#[test]
fn proofs_of_poseidon2_are_plonky3s() {
    let constants = RoundConstants::new(
        KOALABEAR_POSEIDON2_RC_16_EXTERNAL_INITIAL,
        KOALABEAR_POSEIDON2_RC_16_INTERNAL,
        KOALABEAR_POSEIDON2_RC_16_EXTERNAL_FINAL,
    );
    let air: Poseidon2Air<KoalaBear, GenericPoseidon2LinearLayersKoalaBear, 16, 3, 0, 4, 20> =
        Poseidon2Air::new(constants);
    let trace = air.generate_random_trace_rows(64, 0);
    let permutation = default_koalabear_poseidon2_24();
    let (hash, compression) = (KoalaHash::new(permutation.clone()), KoalaCompression::new(permutation.clone()));
    let ours = |device: &Device| {
        let parameters = Poseidon2Parameters::plonky3(24).unwrap();
        OurKoalaMmcs::new(device, default_koalabear_poseidon2_24(), parameters, 0).unwrap().min_elements(0)
    };
    let challenger = KoalaChallenger::new(permutation);
    let host = KoalaMmcs::new(hash, compression, 0);
    by_wide_poseidon2(&air, &trace, &[], [1, 2], &host, &ours, challenger);
}

type KeccakChallenger = SerializingChallenger32<BabyBear, HashChallenger<u8, Keccak256Hash, 32>>;

side_by_side!(by_bytes, BabyBear, HostByteMmcs<BabyBear>, DeviceByteMmcs<BabyBear, AnyHash>, KeccakChallenger);

#[test]
fn proofs_by_a_hash_of_bytes_are_plonky3s() {
    let (trace, public) = fibonacci(64);
    let host = host_byte_mmcs(KECCAK, 1);
    let ours =
        |device: &Device| DeviceByteMmcs::new(device, KECCAK, HashFunction::Keccak256, 1).unwrap().min_elements(0);
    let challenger = KeccakChallenger::from_hasher(vec![], Keccak256Hash);
    by_bytes(&Fibonacci, &trace, &public, [1, 2], &host, &ours, challenger);
}

fn powers(rows: usize) -> (RowMajorMatrix<BabyBear>, [BabyBear; 2]) {
    let values = (0..rows).flat_map(|i| [1, 5].map(|exponent| BabyBear::from_usize(i + 3).exp_u64(exponent))).collect();
    (RowMajorMatrix::new(values, 2), [3, rows + 2].map(BabyBear::from_usize))
}

#[test]
fn proofs_with_four_chunks_are_plonky3s() {
    let challenger = || Challenger::new(default_babybear_poseidon2_16());
    // Where the codeword has as many points as the quotients, and fewer.
    for (rows, log_blowup) in [(8, 2), (64, 1)] {
        let (trace, public) = powers(rows);
        let ours = |device: &Device| our_mmcs(device, 0).min_elements(0);
        by_poseidon2(&Powers, &trace, &public, [log_blowup, 2], &host_mmcs(0), &ours, challenger());
    }
}

#[test]
fn proofs_without_next_rows_are_plonky3s() {
    let values = (0..16).flat_map(|i| [1, 2].map(|exponent| BabyBear::from_usize(i + 5).exp_u64(exponent))).collect();
    let (trace, challenger) = (RowMajorMatrix::new(values, 2), Challenger::new(default_babybear_poseidon2_16()));
    by_poseidon2(&Squares, &trace, &[], [1, 1], &host_mmcs(0), &|device| our_mmcs(device, 0), challenger);
}

/// A proof that has begun ends with an error: nothing panics.
#[test]
fn constraints_of_another_device_are_refused() {
    let (trace, public) = fibonacci(16);
    let air = DeviceAir::new(&Fibonacci).unwrap();
    let proved = |device: &Device| {
        let mmcs = our_mmcs(device, 0);
        let pcs = DeviceFriPcs::new(mmcs.clone(), fri(1, 1, mmcs)).unwrap();
        let config = DeviceConfig::new(pcs, Challenger::new(default_babybear_poseidon2_16()));
        crate::prove_with(&config, &Fibonacci, &air, trace.clone(), &public).map(|proof| {
            verify(&config, &Fibonacci, &proof, &public).unwrap();
        })
    };
    proved(&Device::cpu()).unwrap();
    let refused = proved(&Device::another_cpu());
    assert!(matches!(refused, Err(ProvingError::Pcs { phase: "constraints", .. })), "{refused:?}");
    proved(&Device::cpu()).unwrap();
}

/// Bytes that proofs of a trace read from a device of their own, with the constraints on the host and on the device.
fn read_from_device(air: &Small, trace: &RowMajorMatrix<BabyBear>, public: &[BabyBear], log_blowup: usize) -> [i64; 2] {
    let device = Device::another_cpu();
    let mmcs = our_mmcs(&device, 0).min_elements(0);
    let pcs = DeviceFriPcs::new(mmcs.clone(), fri(log_blowup, 1, mmcs)).unwrap();
    let config = DeviceConfig::new(pcs, Challenger::new(default_babybear_poseidon2_16()));
    let read = |proved: &dyn Fn()| {
        let before = device.stats().bytes_down as i64;
        proved();
        device.stats().bytes_down as i64 - before
    };
    let host = read(&|| drop(prove(&config, air, trace.clone(), public).unwrap()));
    let own = read(&|| drop(crate::prove(&config, air, trace.clone(), public).unwrap()));
    [host, own]
}

#[test]
fn constraints_stay_on_the_device() {
    let (trace, public) = fibonacci(64);
    let [host, own] = read_from_device(&Fibonacci, &trace, &public, 1);
    // The trace's columns, which have as many points as there are rows.
    assert_eq!(host - own, 64 * 2 * 4);
    let air = DeviceAir::<BabyBear>::new(&Fibonacci).unwrap();
    assert!(format!("{air:?}").contains("constraints: 5, chunks: 1"), "{air:?}");
    // Four chunks, where the codeword has as many points, and fewer.
    let (trace, public) = powers(8);
    let [host, own] = read_from_device(&Powers, &trace, &public, 2);
    assert_eq!(host - own, 4 * 8 * 2 * 4);
    let [host, own] = read_from_device(&Powers, &trace, &public, 1);
    assert_eq!(host, own);
}

/// An AIR with columns that devices do not have.
struct Unsupported([usize; 2]);

impl<F> BaseAir<F> for Unsupported {
    fn width(&self) -> usize {
        1
    }

    fn preprocessed_width(&self) -> usize {
        self.0[0]
    }

    fn num_periodic_columns(&self) -> usize {
        self.0[1]
    }
}

impl<AB: AirBuilder> Air<AB> for Unsupported {
    fn eval(&self, _: &mut AB) {}
}

#[test]
fn other_airs_are_refused() {
    let refused = |columns| DeviceAir::<BabyBear>::new(&Unsupported(columns)).err();
    for (columns, what) in [([1, 0], "preprocessed columns"), ([0, 1], "periodic columns"), ([0, 0], "no constraints")]
    {
        assert_eq!(refused(columns), Some(ProverError::Unsupported { what }));
    }
}
