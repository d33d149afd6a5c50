//! Whole proofs of Plonky3's FRI, from our folds, trees and openings.

use std::marker::PhantomData;

use p3_baby_bear::{Poseidon2BabyBear, default_babybear_poseidon2_16};
use p3_challenger::DuplexChallenger;
use p3_commit::ExtensionMmcs;
use p3_field::{BasedVectorSpace, PrimeCharacteristicRing, PrimeField64, extension::BinomialExtensionField};
use p3_fri::{
    BatchMultiOpening, CommitPhaseMultiStep, FriFoldingStrategy, FriParameters, FriProof, FriShape, ProverTranscript,
    TwoAdicFriFolding, TwoAdicFriFoldingForMmcs, fold_schedule, prover::prove_fri,
};
use p3_matrix::dense::RowMajorMatrix;
use p3_merkle_tree::{MerkleCap, MerkleTreeMmcs, PrunedMerklePaths};
use p3_symmetric::{PaddingFreeSponge, TruncatedPermutation};

use super::*;
use crate::plan::QueryStep;

type Val = p3_baby_bear::BabyBear;
type Challenge = BinomialExtensionField<Val, 4>;
type Permutation16 = Poseidon2BabyBear<16>;
type Packing = <Val as p3_field::Field>::Packing;
type Hash = PaddingFreeSponge<Permutation16, 16, 8, 8>;
type Compression = TruncatedPermutation<Permutation16, 2, 8, 16>;
type ValMmcs = MerkleTreeMmcs<Packing, Packing, Hash, Compression, 2, 8>;
type ChallengeMmcs = ExtensionMmcs<Val, Challenge, ValMmcs>;
type Challenger = DuplexChallenger<Val, Permutation16, 16, 8>;
type Proof = FriProof<Challenge, ChallengeMmcs, Val, Vec<BatchMultiOpening<Val, ValMmcs>>>;

fn theirs(x: &BabyBear) -> Val {
    use ark_ff::PrimeField;
    Val::from_u64(x.into_bigint().0[0])
}

fn ours(x: &Val) -> BabyBear {
    BabyBear::from(x.as_canonical_u64())
}

fn their(x: &BabyBear4) -> Challenge {
    Challenge::from_basis_coefficients_fn(|i| theirs(&x.coefficients()[i]))
}

fn our(x: &Challenge) -> BabyBear4 {
    let coefficients: &[Val] = x.as_basis_coefficients_slice();
    BabyBear4::new(std::array::from_fn(|i| ours(&coefficients[i])))
}

fn digests(elements: &[BabyBear]) -> Vec<[Val; 8]> {
    elements.chunks_exact(8).map(|digest| std::array::from_fn(|i| theirs(&digest[i]))).collect()
}

fn mmcs(cap_height: usize) -> ValMmcs {
    let permutation = default_babybear_poseidon2_16();
    MerkleTreeMmcs::new(Hash::new(permutation.clone()), Compression::new(permutation), cap_height)
}

#[test]
fn folds_are_plonky3s() {
    let folding = TwoAdicFriFolding::<(), ()>(PhantomData);
    let values = random::<BabyBear4>(1 << 10);
    let beta = values[7];
    for device in devices() {
        let fold = Fold::<BabyBear4>::new(&device, 10).unwrap();
        let buffer = device.upload::<Mont<BabyBear4>>(&values).unwrap();
        for log_arity in 1..=4 {
            let matrix = RowMajorMatrix::new(values.iter().map(their).collect(), 1 << log_arity);
            let expected: Vec<Challenge> =
                FriFoldingStrategy::<Val, Challenge>::fold_matrix(&folding, their(&beta), log_arity, matrix.as_view());
            let mut out = device.alloc::<Mont<BabyBear4>>(1 << (10 - log_arity)).unwrap();
            fold.fold(&buffer, beta, BabyBear::from(1), &mut out).unwrap();
            assert_eq!(out.to_vec().unwrap(), expected.iter().map(our).collect::<Vec<_>>());
        }
    }
}

/// The paths of several rows without what the others tell, as Plonky3 sends them.
fn pruned(rows: &[usize], steps: &[&QueryStep<BabyBear4>]) -> PrunedMerklePaths<Val, 8> {
    let mut known: Vec<(usize, Vec<[Val; 8]>)> =
        rows.iter().zip(steps).map(|(row, step)| (*row, digests(&step.path))).collect();
    known.sort_by_key(|(row, _)| *row);
    let layers = known[0].1.len();
    let mut sibling_hashes = Vec::new();
    for layer in 0..layers {
        known.dedup_by_key(|(node, _)| *node);
        let nodes: Vec<usize> = known.iter().map(|(node, _)| *node).collect();
        let missing = known.iter().filter(|(node, _)| nodes.binary_search(&(node ^ 1)).is_err());
        sibling_hashes.extend(missing.map(|(_, path)| path[layer]));
        known.iter_mut().for_each(|(node, _)| *node >>= 1);
    }
    PrunedMerklePaths { sibling_hashes }
}

fn check(log_lens: &[u32], config: FriConfig) {
    let codewords: Vec<Vec<BabyBear4>> =
        log_lens.iter().map(|log_len| codeword(*log_len, config.log_blowup, BabyBear::from(1))).collect();
    let parameters_ = FriParameters {
        log_blowup: config.log_blowup as usize,
        log_final_poly_len: config.log_final_len as usize,
        max_log_arity: config.max_log_arity as usize,
        num_queries: 7,
        batch_proof_of_work_bits: 0,
        commit_proof_of_work_bits: 0,
        query_proof_of_work_bits: 0,
        mmcs: ChallengeMmcs::new(mmcs(config.log_cap as usize)),
    };
    let challenger = Challenger::new(default_babybear_poseidon2_16());
    let folding: TwoAdicFriFoldingForMmcs<Val, ValMmcs> = TwoAdicFriFolding(PhantomData);
    let inputs = codewords.iter().map(|values| values.iter().map(their).collect()).collect();
    let log_len = log_lens[0] as usize;
    let expected: Proof = prove_fri(
        &folding,
        &parameters_,
        inputs,
        &mut challenger.clone(),
        log_len,
        &[],
        &mmcs(config.log_cap as usize),
        Val::ZERO,
    )
    .unwrap();

    let heights: Vec<usize> = log_lens.iter().map(|log_len| *log_len as usize).collect();
    let last = (config.log_blowup + config.log_final_len) as usize;
    let schedule = fold_schedule(&heights, last, config.max_log_arity as usize);
    assert_eq!(log_arities(log_lens, &config).iter().map(|x| *x as usize).collect::<Vec<_>>(), schedule);
    for device in devices() {
        let fri = Fri::<BabyBear4>::new(merkle(&device), log_lens[0], config).unwrap();
        let buffers: Vec<_> =
            codewords.iter().map(|values| device.upload::<Mont<BabyBear4>>(values).unwrap()).collect();
        let inputs: Vec<_> = buffers.iter().map(|buffer| buffer.as_view()).collect();
        let mut challenger = challenger.clone();
        let shape = FriShape::new(&parameters_, &heights, log_len);
        let mut transcript = ProverTranscript::<Challenger, Val, Challenge>::new(&mut challenger, shape);
        let mut commits = Vec::new();
        let committed = fri
            .commit(&inputs, BabyBear::from(1), |cap| {
                let cap = MerkleCap::new(digests(cap));
                commits.push(cap.clone());
                Ok::<_, Error>(our(&transcript.commit_round(cap).0))
            })
            .unwrap();
        let final_poly: Vec<Challenge> = committed.final_polynomial().iter().map(their).collect();
        let (indices, _) = transcript.query_phase(&final_poly);
        transcript.finish();
        let opened = fri.open(&committed, inputs[0], &indices).unwrap();
        let mut places = indices.clone();
        let openings = schedule.iter().enumerate().map(|(round, log_arity)| {
            let steps: Vec<_> = opened.iter().map(|steps| &steps[round]).collect();
            let siblings = places.iter().zip(&steps).map(|(place, step)| {
                let others = step.values.iter().enumerate().filter(|(i, _)| *i != place % (1 << log_arity));
                others.map(|(_, value)| their(value)).collect()
            });
            let sibling_values = siblings.collect();
            places.iter_mut().for_each(|place| *place >>= log_arity);
            CommitPhaseMultiStep { sibling_values, opening_proof: pruned(&places, &steps) }
        });
        let proof = Proof {
            batch_pow_witness: Val::ZERO,
            commit_pow_witnesses: vec![Val::ZERO; commits.len()],
            commit_phase_commits: commits,
            input_openings: Vec::new(),
            commit_phase_openings: openings.collect(),
            final_poly,
            query_pow_witness: Val::ZERO,
        };
        let json = |proof: &Proof| serde_json::to_string(proof).unwrap();
        assert_eq!(json(&proof), json(&expected), "{}, {log_lens:?}, {config:?}", device.info().name);
    }
}

#[test]
fn proofs_are_plonky3s() {
    check(&[8], FriConfig::default());
    check(&[9, 6, 4], FriConfig { log_blowup: 2, log_final_len: 1, max_log_arity: 3, log_cap: 2 });
    check(&[10], FriConfig { log_blowup: 1, log_final_len: 3, max_log_arity: 4, log_cap: 0 });
}
