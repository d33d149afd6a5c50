//! Trees against Plonky3's, on every device that is here.

use ark_ff::{BigInteger, PrimeField};
use ark_std::{rand::Rng, test_rng};
use evariste_backend::Device;
use evariste_emulator::Arithmetic;
use evariste_field::small::{BabyBear, Goldilocks, KoalaBear, Mersenne31};
use p3_commit::Mmcs;
use p3_field::{PrimeCharacteristicRing, PrimeField64};
use p3_matrix::dense::RowMajorMatrix;
use p3_merkle_tree::MerkleTreeMmcs;
use p3_symmetric::{CompressionFunctionFromHasher, SerializingHasher};

use super::*;
use crate::{
    dimensions::Dimensions,
    error::Error,
    layers::Arity,
    merkle::{
        Merkle,
        verifier::{Opening, verify},
    },
};

/// The CPU, and CUDA sources on the host, as far as there is a compiler. Trials run on GPUs and their emulation.
fn devices() -> Vec<Device> {
    [Device::cpu()].into_iter().chain(evariste_emulator::device(Arithmetic::CarryFlag)).collect()
}

fn random<F: DevicePrimeField>(len: usize) -> Vec<F> {
    let mut rng = test_rng();
    let edges = [F::ZERO, F::ONE, -F::ONE];
    (0..len).map(|i| if i % 7 == 3 { edges[i % 3] } else { F::from(rng.r#gen::<u64>()) }).collect()
}

/// Heights and columns of matrices: rows of less and more than a chunk of BLAKE3.
const SHAPES: [&[(usize, usize)]; 4] =
    [&[(1, 1)], &[(16, 300)], &[(8, 5), (64, 2), (1, 7), (8, 8), (32, 300)], &[(4, 1), (4, 34), (2, 3)]];

/// Roots, caps and openings of the trees with Plonky3's hash `$theirs` over its field `$p`.
macro_rules! check {
    ($f:ty, $p:ty, $function:expr, $theirs:expr, $arity:expr, $n:literal) => {
        let serialization = Serialization::plonky3::<$f>($function).with_arity($arity);
        let ours = |values: &[$p]| -> Vec<$f> { values.iter().map(|x| <$f>::from(x.as_canonical_u64())).collect() };
        for device in devices() {
            let name = device.info().name.clone();
            let merkle = Merkle::new(SerializingHash::<$f>::new(&device, serialization).unwrap());
            for shape in SHAPES {
                let values: Vec<Vec<$f>> = shape.iter().map(|(height, columns)| random(height * columns)).collect();
                let buffers: Vec<_> = values.iter().map(|m| device.upload::<Mont<$f>>(m).unwrap()).collect();
                let matrices: Vec<_> =
                    buffers.iter().zip(shape).map(|(buffer, (_, columns))| Rows::new(buffer, *columns)).collect();
                let tree = merkle.commit(&matrices).unwrap();
                let required = Merkle::<$f>::required_bytes(&serialization, tree.dimensions());
                assert!(tree.nodes().bytes() <= required, "{shape:?}");
                let height = 1 << tree.log_height();
                for log_cap in [0, 1] {
                    let mmcs = MerkleTreeMmcs::<$p, u8, _, _, $n, 32>::new(
                        SerializingHasher::new($theirs),
                        CompressionFunctionFromHasher::new($theirs),
                        log_cap,
                    );
                    let theirs = values.iter().zip(shape).map(|(m, (_, columns))| {
                        let values = m.iter().map(|x| <$p>::from_u64(x.into_bigint().as_ref()[0])).collect();
                        RowMajorMatrix::<$p>::new(values, *columns)
                    });
                    let (expected, data) = mmcs.commit(theirs.collect::<Vec<_>>());
                    let cap = merkle.cap(&tree, log_cap as u32).unwrap();
                    assert_eq!(cap, expected.roots(), "{name}, {shape:?}");
                    let indices = [0, height - 1, height / 3];
                    let openings = merkle.open(&tree, &matrices, &indices, log_cap as u32).unwrap();
                    for (index, opening) in indices.iter().zip(&openings) {
                        let (rows, path) = mmcs.open_batch(*index, &data).unpack();
                        let rows = rows.iter().map(|row| ours(row)).collect();
                        assert_eq!(*opening, Opening { rows, path }, "{name}, {shape:?}, row {index}");
                        let lowest = shape.iter().map(|(height, _)| *height).min().unwrap();
                        if cap.len() <= lowest {
                            verify(&serialization, &cap, tree.dimensions(), *index, opening).unwrap();
                        }
                    }
                }
            }
        }
    };
}

#[test]
fn trees_of_keccak_are_plonky3s() {
    check!(BabyBear, p3_baby_bear::BabyBear, HashFunction::Keccak256, p3_keccak::Keccak256Hash, Arity::Two, 2);
}

#[test]
fn trees_of_blake3_are_plonky3s() {
    check!(Goldilocks, p3_goldilocks::Goldilocks, HashFunction::Blake3, p3_blake3::Blake3, Arity::Two, 2);
    check!(Mersenne31, p3_mersenne_31::Mersenne31, HashFunction::Blake3, p3_blake3::Blake3, Arity::Two, 2);
}

#[test]
fn trees_of_sha_256_are_plonky3s() {
    check!(KoalaBear, p3_koala_bear::KoalaBear, HashFunction::Sha256, p3_sha256::Sha256, Arity::Two, 2);
}

#[test]
fn trees_of_four_children_are_plonky3s() {
    check!(BabyBear, p3_baby_bear::BabyBear, HashFunction::Keccak256, p3_keccak::Keccak256Hash, Arity::Four, 4);
    check!(Goldilocks, p3_goldilocks::Goldilocks, HashFunction::Blake3, p3_blake3::Blake3, Arity::Four, 4);
}

/// A field of many words, whose rows are canonical bytes.
#[test]
fn canonical_rows_of_long_fields() {
    let serialization = Serialization { function: HashFunction::Blake2s256, form: Form::Canonical, arity: Arity::Two };
    let values = random::<ark_bls12_381::Fr>(7 * 4);
    for device in devices() {
        let merkle = Merkle::new(SerializingHash::new(&device, serialization).unwrap());
        let buffer = device.upload::<Mont<ark_bls12_381::Fr>>(&values).unwrap();
        let tree = merkle.commit(&[Rows::new(&buffer, 7)]).unwrap();
        let leaves = tree.nodes().view(..4).unwrap().to_vec().unwrap();
        for (row, leaf) in values.chunks_exact(7).zip(leaves) {
            let bytes: Vec<u8> = row.iter().flat_map(|x| x.into_bigint().to_bytes_le()).collect();
            assert_eq!(leaf, HashFunction::Blake2s256.digest(&bytes));
        }
    }
}

#[test]
fn forgeries_are_refused() {
    let device = Device::cpu();
    let serialization = Serialization::plonky3::<BabyBear>(HashFunction::Keccak256);
    let merkle = Merkle::new(SerializingHash::new(&device, serialization).unwrap());
    let buffer = device.upload::<Mont<BabyBear>>(&random(64 * 3)).unwrap();
    let matrices = [Rows::new(&buffer, 3), Rows::new(&buffer, 6)];
    let tree = merkle.commit(&matrices).unwrap();
    let cap = merkle.cap(&tree, 1).unwrap();
    let opening = merkle.open(&tree, &matrices, &[21], 1).unwrap().remove(0);
    let check = |opening: &Opening<BabyBear, [u8; 32]>, dimensions: &[Dimensions]| {
        verify(&serialization, &cap, dimensions, 21, opening)
    };
    check(&opening, tree.dimensions()).unwrap();
    let mut forged = opening.clone();
    forged.rows[1][2] += BabyBear::from(1);
    assert_eq!(check(&forged, tree.dimensions()), Err(Error::OtherRoot));
    let mut forged = opening.clone();
    forged.path[2][31] ^= 1;
    assert_eq!(check(&forged, tree.dimensions()), Err(Error::OtherRoot));
    forged.path.pop();
    let expected = Error::Opening { what: "the path", expected: 5, actual: 4 };
    assert_eq!(check(&forged, tree.dimensions()), Err(expected));
}
