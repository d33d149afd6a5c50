//! Trees whose nodes have four children.

use p3_merkle_tree::MerkleTreeMmcs;
use p3_symmetric::{CompressionFunctionFromHasher, PaddingFreeSponge, SerializingHasher, TruncatedPermutation};

use super::*;

#[test]
fn poseidon2_with_four_digests_in_a_state() {
    type Hash = PaddingFreeSponge<Permutation16, 16, 12, 4>;
    type Host = MerkleTreeMmcs<Packing, Packing, Hash, TruncatedPermutation<Permutation16, 4, 4, 16>, 4, 4>;
    let permutation = default_babybear_poseidon2_16;
    let host = |cap_height| Host::new(Hash::new(permutation()), TruncatedPermutation::new(permutation()), cap_height);
    let ours = |device: &Device, cap_height| {
        let parameters = Poseidon2Parameters::plonky3(16).unwrap().sponge(12, 4).unwrap();
        let ours = DeviceMmcs::<BabyBear, _, 16, 12, 4, 4>::new(device, permutation(), parameters, cap_height);
        ours.unwrap().min_elements(0)
    };
    check_trees(host, ours, &[0, 1, 9]);
}

#[test]
fn a_hash_of_bytes_with_four_digests() {
    type Host =
        MerkleTreeMmcs<BabyBear, u8, SerializingHasher<AnyHash>, CompressionFunctionFromHasher<AnyHash, 4, 32>, 4, 32>;
    let host =
        |cap_height| Host::new(SerializingHasher::new(KECCAK), CompressionFunctionFromHasher::new(KECCAK), cap_height);
    let ours = |device: &Device, cap_height| {
        let ours = DeviceByteMmcs::<BabyBear, _, 4>::new(device, KECCAK, HashFunction::Keccak256, cap_height);
        ours.unwrap().min_elements(0)
    };
    check_trees(host, ours, &[0, 1]);
}
