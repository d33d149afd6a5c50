//! Against Plonky3's own types, on every device that is here.

mod fours;
mod goldilocks;
mod pcs;
mod stark;

use std::fmt::Debug;

use evariste_backend::Device;
use evariste_emulator::Arithmetic;
use evariste_hash::{HashFunction, Poseidon2Parameters};
use p3_baby_bear::{BabyBear, Poseidon2BabyBear, default_babybear_poseidon2_16};
use p3_commit::{BatchOpeningRef, Mmcs};
use p3_dft::{Radix2DitParallel, TwoAdicSubgroupDft};
use p3_field::{Field, PrimeCharacteristicRing};
use p3_goldilocks::Goldilocks;
use p3_matrix::{Dimensions, Matrix, dense::RowMajorMatrix};
use p3_merkle_tree::MerkleTreeMmcs;
use p3_symmetric::{
    CompressionFunctionFromHasher, CryptographicHasher, PaddingFreeSponge, SerializingHasher, TruncatedPermutation,
};

use crate::{
    dft::DeviceDft,
    mmcs::{DeviceByteMmcs, DeviceMmcs, Error},
    value::DeviceValue,
};

pub(crate) type Permutation16 = Poseidon2BabyBear<16>;
pub(crate) type Hash = PaddingFreeSponge<Permutation16, 16, 8, 8>;
pub(crate) type Compression = TruncatedPermutation<Permutation16, 2, 8, 16>;
pub(crate) type Packing = <BabyBear as Field>::Packing;
pub(crate) type HostMmcs = MerkleTreeMmcs<Packing, Packing, Hash, Compression, 2, 8>;
pub(crate) type OurMmcs = DeviceMmcs<BabyBear, Permutation16, 16, 8, 8>;

/// The CPU, and CUDA sources on the host, as far as there is a compiler.
pub(crate) fn devices() -> Vec<Device> {
    let emulated = evariste_emulator::device(Arithmetic::CarryFlag);
    [Device::cpu()].into_iter().chain(emulated).collect()
}

pub(crate) fn host_mmcs(cap_height: usize) -> HostMmcs {
    let permutation = default_babybear_poseidon2_16();
    MerkleTreeMmcs::new(Hash::new(permutation.clone()), Compression::new(permutation), cap_height)
}

pub(crate) fn our_mmcs(device: &Device, cap_height: usize) -> OurMmcs {
    let parameters = Poseidon2Parameters::plonky3(16).unwrap();
    DeviceMmcs::new(device, default_babybear_poseidon2_16(), parameters, cap_height).unwrap().min_elements(0)
}

fn matrix<P: DeviceValue>(height: usize, width: usize) -> RowMajorMatrix<P> {
    let values = (0..height * width).map(|i| P::from_u64((i as u64 + 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20));
    RowMajorMatrix::new(values.collect(), width)
}

fn check_transforms<P: DeviceValue>() {
    let host = Radix2DitParallel::<P>::default();
    for device in devices() {
        let ours = DeviceDft::<P>::new(&device).min_elements(0);
        for (height, width) in [(1, 3), (2, 1), (64, 5), (256, 1)] {
            let given = || matrix::<P>(height, width);
            let shift = P::GENERATOR;
            let rows =
                |evaluations: <DeviceDft<P> as TwoAdicSubgroupDft<P>>::Evaluations| evaluations.to_row_major_matrix();
            assert_eq!(rows(ours.dft_batch(given())), host.dft_batch(given()).to_row_major_matrix());
            assert_eq!(
                rows(ours.coset_dft_batch(given(), shift)),
                host.coset_dft_batch(given(), shift).to_row_major_matrix()
            );
            assert_eq!(ours.idft_batch(given()), host.idft_batch(given()));
            assert_eq!(ours.coset_idft_batch(given(), shift), host.coset_idft_batch(given(), shift));
            assert_eq!(rows(ours.lde_batch(given(), 1)), host.lde_batch(given(), 1).to_row_major_matrix());
            for added in [0, 2] {
                assert_eq!(
                    rows(ours.coset_lde_batch(given(), added, shift)),
                    host.coset_lde_batch(given(), added, shift).to_row_major_matrix(),
                    "{height} rows of {width}, {added} bits"
                );
            }
        }
    }
}

#[test]
fn transforms_are_plonky3s() {
    check_transforms::<BabyBear>();
    check_transforms::<Goldilocks>();
}

/// Compares commitments and openings of both schemes, with caps of some heights.
fn check_trees<P, Host, Ours>(
    host: impl Fn(usize) -> Host,
    ours: impl Fn(&Device, usize) -> Ours,
    caps_of_all: &[usize],
) where
    P: DeviceValue,
    Host: Mmcs<P, Commitment: PartialEq + Debug, Error: Debug, Proof: PartialEq + Debug>,
    Ours: Mmcs<P, Commitment = Host::Commitment, Proof = Host::Proof, MultiProof = Host::MultiProof>,
{
    // Heights that are no powers of two stay on the host, where Plonky3 has no caps of them.
    let shapes: [&[(usize, usize)]; 5] =
        [&[(1, 1)], &[(32, 9)], &[(16, 8), (64, 3), (64, 16), (1, 2)], &[(8, 2), (4, 1), (2, 3)], &[(6, 3)]];
    for device in devices() {
        for shape in shapes {
            let caps = if shape[0].0 == 6 { &[0] } else { caps_of_all };
            for cap_height in caps.iter().copied() {
                let (host, ours) = (host(cap_height), ours(&device, cap_height));
                let matrices = || shape.iter().map(|(height, width)| matrix(*height, *width)).collect::<Vec<_>>();
                let (expected, host_data) = host.commit(matrices());
                let (cap, data) = ours.commit(matrices());
                assert_eq!(cap, expected, "{shape:?}, cap {cap_height}");
                assert_eq!(ours.get_matrices(&data), host.get_matrices(&host_data));
                let dimensions: Vec<Dimensions> = matrices().iter().map(|matrix| matrix.dimensions()).collect();
                let height = ours.get_max_height(&data);
                let indices = [height - 1, 0, height / 2, height / 3, 0];
                for index in indices {
                    let (rows, path) = ours.open_batch(index, &data).unpack();
                    let (expected_rows, expected_path) = host.open_batch(index, &host_data).unpack();
                    assert_eq!((&rows, &path), (&expected_rows, &expected_path), "{shape:?}, row {index}");
                    ours.verify_batch(&cap, &dimensions, index, BatchOpeningRef::new(&rows, &path)).unwrap();
                    host.verify_batch(&cap, &dimensions, index, BatchOpeningRef::new(&rows, &path)).unwrap();
                }
                let (rows, proof) = ours.open_multi_batch(&indices, &data);
                let (expected_rows, expected_proof) = host.open_multi_batch(&indices, &host_data);
                let json = |proof: &Host::MultiProof| serde_json::to_string(proof).unwrap();
                assert_eq!((&rows, json(&proof)), (&expected_rows, json(&expected_proof)));
                ours.verify_multi_batch(&cap, &dimensions, &indices, &rows, &proof).unwrap();
            }
        }
    }
}

#[test]
fn commitments_and_openings_are_plonky3s() {
    check_trees(host_mmcs, our_mmcs, &[0, 2, 9]);
}

/// A hash of Plonky3's, whichever it is, so that trees by all of them are compiled once.
#[derive(Clone)]
pub(crate) struct AnyHash(fn(Vec<u8>) -> [u8; 32]);

pub(crate) const KECCAK: AnyHash = AnyHash(|bytes| p3_keccak::Keccak256Hash.hash_iter(bytes));

pub(crate) type HostByteMmcs<P> =
    MerkleTreeMmcs<P, u8, SerializingHasher<AnyHash>, CompressionFunctionFromHasher<AnyHash, 2, 32>, 2, 32>;

pub(crate) fn host_byte_mmcs<P: Field>(hash: AnyHash, cap_height: usize) -> HostByteMmcs<P> {
    HostByteMmcs::new(SerializingHasher::new(hash.clone()), CompressionFunctionFromHasher::new(hash), cap_height)
}

impl CryptographicHasher<u8, [u8; 32]> for AnyHash {
    fn hash_iter<I: IntoIterator<Item = u8>>(&self, input: I) -> [u8; 32] {
        (self.0)(input.into_iter().collect())
    }
}

fn check_bytes(hash: AnyHash, function: HashFunction) {
    let host = |cap_height| host_byte_mmcs::<BabyBear>(hash.clone(), cap_height);
    let ours = |device: &Device, cap_height| {
        DeviceByteMmcs::<BabyBear, _>::new(device, hash.clone(), function, cap_height).unwrap().min_elements(0)
    };
    check_trees(host, ours, &[1]);
    let other = DeviceByteMmcs::<BabyBear, _>::new(&Device::cpu(), hash.clone(), HashFunction::Sha3_256, 0);
    assert_eq!(other.err(), Some(Error::OtherHash { expected: HashFunction::Sha3_256 }));
}

#[test]
fn trees_by_hashes_of_bytes_are_plonky3s() {
    check_bytes(KECCAK, HashFunction::Keccak256);
    check_bytes(AnyHash(|bytes| p3_sha256::Sha256.hash_iter(bytes)), HashFunction::Sha256);
    check_bytes(AnyHash(|bytes| p3_blake3::Blake3.hash_iter(bytes)), HashFunction::Blake3);
}

#[test]
fn other_parameters_are_refused() {
    let device = Device::cpu();
    let new = |parameters| {
        DeviceMmcs::<BabyBear, _, 16, 8, 8>::new(&device, default_babybear_poseidon2_16(), parameters, 0).err()
    };
    let parameters = |width| Poseidon2Parameters::plonky3(width).unwrap();
    assert_eq!(new(parameters(16)), None);
    assert_eq!(new(parameters(24)), Some(Error::Lengths { expected: [16, 8, 8], actual: [24, 16, 8] }));
    let other = parameters(16).sponge(8, 4).unwrap();
    assert_eq!(new(other), Some(Error::Lengths { expected: [16, 8, 8], actual: [16, 8, 4] }));
    type F = <BabyBear as DeviceValue>::Device;
    let ones = |len| vec![F::from(1); len];
    let own = Poseidon2Parameters::new(7, ones(64), ones(13), ones(64), ones(16)).unwrap();
    assert_eq!(new(own), Some(Error::OtherPermutation));
}
