//! Trees over Goldilocks, whose elements are converted.

use p3_goldilocks::{Poseidon2Goldilocks, default_goldilocks_poseidon2_8, default_goldilocks_poseidon2_16};

use p3_symmetric::CryptographicPermutation;

use super::*;

type PackedGoldilocks = <Goldilocks as Field>::Packing;

#[test]
fn poseidon2_of_two_and_four_children() {
    fn check<const WIDTH: usize, const RATE: usize, const N: usize>(
        permutation: impl Fn() -> Poseidon2Goldilocks<WIDTH>,
        caps: &[usize],
    ) where
        Poseidon2Goldilocks<WIDTH>:
            CryptographicPermutation<[Goldilocks; WIDTH]> + CryptographicPermutation<[PackedGoldilocks; WIDTH]>,
    {
        let host = |cap_height| {
            let (rows, nodes) = (PaddingFreeSponge::new(permutation()), TruncatedPermutation::new(permutation()));
            MerkleTreeMmcs::<
                PackedGoldilocks,
                PackedGoldilocks,
                PaddingFreeSponge<_, WIDTH, RATE, 4>,
                TruncatedPermutation<_, N, 4, WIDTH>,
                N,
                4,
            >::new(rows, nodes, cap_height)
        };
        let ours = |device: &Device, cap_height| {
            let parameters = Poseidon2Parameters::plonky3(WIDTH).unwrap();
            let ours =
                DeviceMmcs::<Goldilocks, _, WIDTH, RATE, 4, N>::new(device, permutation(), parameters, cap_height);
            ours.unwrap().min_elements(0)
        };
        check_trees::<Goldilocks, _, _>(host, ours, caps);
    }
    check::<8, 4, 2>(default_goldilocks_poseidon2_8, &[1]);
    check::<16, 12, 4>(default_goldilocks_poseidon2_16, &[0, 1]);
}

#[test]
fn a_hash_of_bytes() {
    let host = |cap_height| host_byte_mmcs::<Goldilocks>(KECCAK, cap_height);
    let ours = |device: &Device, cap_height| {
        let ours = DeviceByteMmcs::<Goldilocks, _>::new(device, KECCAK, HashFunction::Keccak256, cap_height);
        ours.unwrap().min_elements(0)
    };
    check_trees::<Goldilocks, _, _>(host, ours, &[0]);
}
