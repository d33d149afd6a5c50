//! Against Plonky3's trees over bytes.

use evariste_backend::{Device, Error as DeviceError};
use evariste_emulator::Arithmetic;
use evariste_field::small::BabyBear;
use p3_symmetric::{CryptographicHasher, PseudoCompressionFunction};

use super::*;
use crate::{merkle::Merkle, parameters::Poseidon2Parameters, serialization::Serialization};

/// The CPU, and CUDA sources on the host, as far as there is a compiler. Trials run on GPUs and their emulation.
fn devices() -> Vec<Device> {
    [Device::cpu()].into_iter().chain(evariste_emulator::device(Arithmetic::CarryFlag)).collect()
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * i / 7 % 251) as u8).collect()
}

/// Heights and bytes of rows: no whole words, and more than a chunk of BLAKE3.
const SHAPES: [&[(usize, usize)]; 4] = [&[(1, 3)], &[(64, 45)], &[(2, 5), (32, 1), (16, 137)], &[(4, 1300), (2, 64)]];

/// The root by the definition: nodes of `N` children with zeros for those that are missing, two where a matrix comes in.
fn root<const N: usize>(
    hash: impl Fn(&[u8]) -> Digest,
    compress: impl Fn([Digest; N]) -> Digest,
    matrices: &[(Vec<u8>, usize)],
) -> Digest {
    let hashes = |height: usize| -> Vec<Digest> {
        let matrix = matrices.iter().find(|(values, columns)| values.len() / columns == height);
        matrix.map_or(Vec::new(), |(values, columns)| values.chunks_exact(*columns).map(&hash).collect())
    };
    let node = |children: &[Digest]| compress(std::array::from_fn(|i| children.get(i).copied().unwrap_or_default()));
    let mut layer = hashes(matrices.iter().map(|(values, columns)| values.len() / columns).max().unwrap());
    while layer.len() > 1 {
        let group = if layer.len() >= N && !hashes(layer.len() / 2).is_empty() { 2 } else { N };
        layer = layer.chunks(group).map(node).collect();
        let rows = hashes(layer.len());
        layer.iter_mut().zip(&rows).for_each(|(own, row)| *own = node(&[*own, *row]));
    }
    layer[0]
}

fn check<const N: usize, H: CryptographicHasher<u8, Digest>>(theirs: H, function: HashFunction, arity: Arity)
where
    p3_symmetric::CompressionFunctionFromHasher<H, N, 32>: PseudoCompressionFunction<Digest, N>,
{
    let compression = p3_symmetric::CompressionFunctionFromHasher::<H, N, 32>::new(theirs.clone());
    for device in devices() {
        let merkle = ByteMerkle::new(&device, function, arity).unwrap();
        for shape in SHAPES {
            let values: Vec<_> = shape.iter().map(|(height, columns)| (bytes(height * columns), *columns)).collect();
            // At odd places of buffers.
            let buffers: Vec<_> =
                values.iter().map(|(m, _)| device.upload::<u8>(&[&[1, 2, 3], &m[..]].concat()).unwrap()).collect();
            let views = buffers.iter().zip(shape);
            let matrices: Vec<_> =
                views.map(|(buffer, (_, columns))| ByteRows::new(buffer.view(3..).unwrap(), *columns)).collect();
            let tree = merkle.commit(&matrices).unwrap();
            let required = ByteMerkle::required_bytes(function, arity, tree.dimensions());
            assert!(tree.nodes().bytes() <= required, "{shape:?}");
            let expected = root(|row| theirs.hash_iter(row.iter().copied()), |all| compression.compress(all), &values);
            assert_eq!(merkle.root(&tree).unwrap(), [expected], "{}, {shape:?}", device.info().name);
            let height = 1 << tree.log_height();
            let indices = [0, height - 1, height / 3];
            for log_cap in [0, 1] {
                let cap = merkle.cap(&tree, log_cap).unwrap();
                let openings = merkle.open(&tree, &matrices, &indices, log_cap).unwrap();
                for (index, mut opening) in indices.into_iter().zip(openings) {
                    for ((values, columns), row) in values.iter().zip(&opening.rows) {
                        let place = index / (height * columns / values.len()) * columns;
                        assert_eq!(*row, values[place..place + columns]);
                    }
                    let check = |opening: &_| verify_bytes(function, arity, &cap, tree.dimensions(), index, opening);
                    check(&opening).unwrap();
                    opening.rows[0][0] ^= 1;
                    assert_eq!(check(&opening), Err(Error::OtherRoot));
                }
            }
        }
    }
}

#[test]
fn roots_and_openings_are_those_of_plonky3s_hashes() {
    check::<2, _>(p3_keccak::Keccak256Hash, HashFunction::Keccak256, Arity::Two);
    check::<4, _>(p3_blake3::Blake3, HashFunction::Blake3, Arity::Four);
    check::<4, _>(p3_sha256::Sha256, HashFunction::Sha256, Arity::Four);
}

#[test]
fn misuse_is_refused() {
    let device = Device::cpu();
    let merkle = ByteMerkle::new(&device, HashFunction::Sha3_256, Arity::Two).unwrap();
    let buffer = device.upload::<u8>(&bytes(24)).unwrap();
    let rows = |columns| ByteRows::new(&buffer, columns);
    assert_eq!(merkle.commit(&[]).unwrap_err(), Error::NoMatrices);
    assert_eq!(merkle.commit(&[rows(5)]).unwrap_err(), Error::Columns { matrix: 0, columns: 5, elements: 24 });
    assert_eq!(merkle.commit(&[rows(3), rows(8)]).unwrap_err(), Error::Height { matrix: 1, actual: 3 });
    assert_eq!(merkle.commit(&[rows(3), rows(3)]).unwrap_err(), Error::SeveralMatrices { height: 8 });
    let tree = merkle.commit(&[rows(3), rows(6)]).unwrap();
    let matrices = [rows(3), rows(6)];
    assert_eq!(merkle.open(&tree, &matrices, &[8], 0).unwrap_err(), Error::OutOfRange { height: 8, index: 8 });
    assert!(matches!(merkle.open(&tree, &[rows(6), rows(3)], &[1], 0), Err(Error::OtherMatrices { .. })));
    assert!(merkle.open(&tree, &matrices, &[], 0).unwrap().is_empty());
    if let Ok(other) = evariste_emulator::device(Arithmetic::CarryFlag) {
        let there = other.upload::<u8>(&bytes(24)).unwrap();
        let error = merkle.commit(&[ByteRows::new(&there, 3)]).unwrap_err();
        assert!(matches!(error, Error::Device(DeviceError::WrongDevice { .. })), "{error}");
    }
}

/// Sizes that no device has are told, and overflow nothing.
#[test]
fn required_bytes_of_absurd_matrices_are_many() {
    let absurd = [Dimensions { height: 1 << 63, columns: usize::MAX }, Dimensions { height: 1 << 62, columns: 3 }];
    for arity in [Arity::Two, Arity::Four] {
        for function in [HashFunction::Keccak256, HashFunction::Blake3] {
            assert!(ByteMerkle::required_bytes(function, arity, &absurd) >= 1 << 63, "{function:?}, {arity:?}");
            let serialization = Serialization::plonky3::<BabyBear>(function).with_arity(arity);
            assert!(Merkle::<BabyBear>::required_bytes(&serialization, &absurd) >= 1 << 63, "{function:?}, {arity:?}");
        }
        for width in [16, 24] {
            let parameters = Poseidon2Parameters::<BabyBear>::plonky3(width).unwrap().with_arity(arity);
            assert!(Merkle::<BabyBear>::required_bytes(&parameters, &absurd) >= 1 << 63, "{width}, {arity:?}");
        }
    }
}
