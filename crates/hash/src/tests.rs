//! Against Plonky3, on every device that is here.

use ark_ff::Field;
use ark_std::{rand::Rng, test_rng};
use evariste_backend::{Device, Error as DeviceError, Secrecy};
use evariste_emulator::Arithmetic;
use evariste_field::{
    DevicePrimeField, Mont,
    small::{BabyBear, Goldilocks, KoalaBear, Mersenne31},
};
use p3_field::PrimeField64;
use p3_symmetric::{
    CryptographicHasher, CryptographicPermutation, PaddingFreeSponge, PseudoCompressionFunction, TruncatedPermutation,
};

use crate::{
    error::Error,
    merkle::Merkle,
    parameters::Poseidon2Parameters,
    poseidon2::{Poseidon2, Rows},
    published::Poseidon2Field,
    reference,
};

mod duplex;
mod merkle;
mod poseidon;

/// The CPU, and CUDA sources on the host, as far as there is a compiler. Trials run on GPUs and their emulation.
fn devices() -> Vec<Device> {
    [Device::cpu()].into_iter().chain(evariste_emulator::device(Arithmetic::CarryFlag)).collect()
}

fn random<F: DevicePrimeField>(len: usize) -> Vec<F> {
    let mut rng = test_rng();
    let edges = [F::ZERO, F::ONE, -F::ONE];
    (0..len).map(|i| if i % 7 == 3 { edges[i % 3] } else { F::from(rng.r#gen::<u64>()) }).collect()
}

fn word<F: DevicePrimeField>(x: &F) -> u64 {
    x.into_bigint().as_ref()[0]
}

fn theirs<F: DevicePrimeField, P: PrimeField64>(values: &[F]) -> Vec<P> {
    values.iter().map(|x| P::from_u64(word(x))).collect()
}

fn ours<F: DevicePrimeField, P: PrimeField64>(values: &[P]) -> Vec<F> {
    values.iter().map(|x| F::from(x.as_canonical_u64())).collect()
}

/// Plonky3's functions over one permutation.
struct Theirs<'a, F> {
    permute: &'a dyn Fn(&[F]) -> Vec<F>,
    hash: &'a dyn Fn(&[F]) -> Vec<F>,
    compress: &'a dyn Fn(&[F]) -> Vec<F>,
}

/// States, sponges and compressions of Plonky3's permutation, on all devices and by the reference.
fn check<F: Poseidon2Field, P: PrimeField64, const W: usize, const R: usize, const D: usize>(
    permutation: impl CryptographicPermutation<[P; W]> + Clone,
) {
    let sponge = PaddingFreeSponge::<_, W, R, D>::new(permutation.clone());
    let compression = TruncatedPermutation::<_, 2, D, W>::new(permutation.clone());
    let permute = |state: &[F]| ours(&permutation.permute(theirs::<F, P>(state).try_into().unwrap()));
    let hash = |row: &[F]| {
        let digest: [P; D] = sponge.hash_iter(theirs::<F, P>(row));
        ours(&digest)
    };
    let compress = |pair: &[F]| {
        let [left, right] = [0, 1].map(|i| <[P; D]>::try_from(theirs::<F, P>(&pair[i * D..][..D])).unwrap());
        ours(&compression.compress([left, right]))
    };
    compare([W, R, D], &Theirs { permute: &permute, hash: &hash, compress: &compress });
}

/// Compiled once for all lengths.
fn compare<F: Poseidon2Field>([width, rate, digest]: [usize; 3], theirs: &Theirs<'_, F>) {
    let parameters = Poseidon2Parameters::<F>::plonky3(width).unwrap();
    assert_eq!((parameters.width(), parameters.rate(), parameters.digest()), (width, rate, digest));
    let states = random::<F>(131 * width);
    let mut permuted = states.clone();
    for state in permuted.chunks_exact_mut(width) {
        let expected = (theirs.permute)(state);
        reference::permute(&parameters, state);
        assert_eq!(state, expected, "the reference");
    }
    for device in devices() {
        let name = device.info().name.clone();
        let poseidon2 = Poseidon2::new(&device, parameters.clone()).unwrap();
        let mut buffer = device.upload::<Mont<F>>(&states).unwrap();
        poseidon2.permute(&mut buffer).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), permuted, "{name}");

        // Matrices of a row's parts, whose borders are anywhere in a block.
        let (more, many) = (2 * rate, 3 * rate + 1);
        for widths in [vec![0], vec![1], vec![rate], vec![rate + 3], vec![more, many], vec![rate - 1, 0, 1, 3, more, 1]]
        {
            let rows = 37;
            let matrices: Vec<Vec<F>> = widths.iter().map(|width| random(rows * width)).collect();
            let expected: Vec<F> = (0..rows)
                .flat_map(|row| {
                    let parts = matrices.iter().zip(&widths).flat_map(|(m, width)| &m[row * width..][..*width]);
                    let row: Vec<F> = parts.copied().collect();
                    let digest = (theirs.hash)(&row);
                    assert_eq!(digest, reference::hash(&parameters, &row));
                    digest
                })
                .collect();
            let buffers: Vec<_> = matrices.iter().map(|m| device.upload::<Mont<F>>(m).unwrap()).collect();
            let views: Vec<_> = buffers.iter().zip(&widths).map(|(buffer, width)| Rows::new(buffer, *width)).collect();
            let mut out = device.upload::<Mont<F>>(&vec![F::ONE; rows * digest]).unwrap();
            poseidon2.hash_rows(&views, &mut out).unwrap();
            assert_eq!(out.to_vec().unwrap(), expected, "{name}, rows of {widths:?}");
        }

        // At an odd place of a buffer.
        let digests = random::<F>(1 + 2 * digest * 33);
        let expected: Vec<F> = digests[1..]
            .chunks_exact(2 * digest)
            .flat_map(|pair| {
                let digest = (theirs.compress)(pair);
                assert_eq!(digest, reference::compress(&parameters, pair));
                digest
            })
            .collect();
        let buffer = device.upload::<Mont<F>>(&digests).unwrap();
        let mut out = device.alloc::<Mont<F>>(33 * digest).unwrap();
        poseidon2.compress(buffer.view(1..).unwrap(), &mut out).unwrap();
        assert_eq!(out.to_vec().unwrap(), expected, "{name}, compression");
    }
}

#[test]
fn baby_bear_is_plonky3s() {
    check::<BabyBear, _, 16, 8, 8>(p3_baby_bear::default_babybear_poseidon2_16());
    check::<BabyBear, _, 24, 16, 8>(p3_baby_bear::default_babybear_poseidon2_24());
    check::<BabyBear, _, 32, 24, 8>(p3_baby_bear::default_babybear_poseidon2_32());
}

#[test]
fn koala_bear_is_plonky3s() {
    check::<KoalaBear, _, 16, 8, 8>(p3_koala_bear::default_koalabear_poseidon2_16());
    check::<KoalaBear, _, 24, 16, 8>(p3_koala_bear::default_koalabear_poseidon2_24());
    check::<KoalaBear, _, 32, 24, 8>(p3_koala_bear::default_koalabear_poseidon2_32());
}

#[test]
fn mersenne_31_is_plonky3s() {
    check::<Mersenne31, _, 16, 8, 8>(p3_mersenne_31::default_mersenne31_poseidon2_16());
    check::<Mersenne31, _, 24, 16, 8>(p3_mersenne_31::default_mersenne31_poseidon2_24());
}

#[test]
fn goldilocks_is_plonky3s() {
    check::<Goldilocks, p3_goldilocks::Goldilocks, 8, 4, 4>(p3_goldilocks::default_goldilocks_poseidon2_8());
    check::<Goldilocks, p3_goldilocks::Goldilocks, 12, 8, 4>(p3_goldilocks::default_goldilocks_poseidon2_12());
    check::<Goldilocks, p3_goldilocks::Goldilocks, 16, 12, 4>(p3_goldilocks::default_goldilocks_poseidon2_16());
}

/// Parameters of a field of many words, and an exponent that no published ones have.
#[test]
fn parameters_may_be_ones_own() {
    fn check<F: DevicePrimeField>(alpha: u32, width: usize, [half, partial]: [usize; 2]) {
        let values = random::<F>(2 * half * width + partial + width);
        let (initial, rest) = values.split_at(half * width);
        let (terminal, rest) = rest.split_at(half * width);
        let (diagonal, partial) = rest.split_at(width);
        let parameters =
            Poseidon2Parameters::new(alpha, initial.into(), partial.into(), terminal.into(), diagonal.into()).unwrap();
        let states = random::<F>(5 * width);
        let mut expected = states.clone();
        expected.chunks_exact_mut(width).for_each(|state| reference::permute(&parameters, state));
        for device in devices() {
            let poseidon2 = Poseidon2::new(&device, parameters.clone()).unwrap();
            let mut buffer = device.upload::<Mont<F>>(&states).unwrap();
            poseidon2.permute(&mut buffer).unwrap();
            assert_eq!(buffer.to_vec().unwrap(), expected, "{}", device.info().name);
            // Trees, by layers of one workgroup and of several.
            for digest in [1, parameters.digest()] {
                let parameters = parameters.clone().sponge(width - digest, digest).unwrap();
                let merkle = Merkle::new(Poseidon2::new(&device, parameters.clone()).unwrap());
                for rows in [4, 64, 256] {
                    let values = random::<F>(rows);
                    let mut layer: Vec<F> = values.iter().flat_map(|x| reference::hash(&parameters, &[*x])).collect();
                    while layer.len() > digest {
                        layer =
                            layer.chunks(2 * digest).flat_map(|pair| reference::compress(&parameters, pair)).collect();
                    }
                    let values = device.upload::<Mont<F>>(&values).unwrap();
                    let tree = merkle.commit(&[Rows::new(&values, 1)]).unwrap();
                    assert_eq!(merkle.root(&tree).unwrap(), layer, "{rows} rows, {}", device.info().name);
                }
            }
        }
    }
    check::<ark_bls12_381::Fr>(5, 8, [1, 2]);
    check::<BabyBear>(7, 12, [0, 3]);
    check::<KoalaBear>(3, 8, [2, 0]);
}

#[test]
fn wrong_arguments_are_refused_and_nothing_is_written() {
    let device = Device::cpu();
    let poseidon2 = Poseidon2::new(&device, Poseidon2Parameters::<BabyBear>::plonky3(16).unwrap()).unwrap();
    let refused = |result: Result<(), Error>| match result {
        Err(Error::Device(error)) => error,
        other => panic!("{other:?}"),
    };
    let values = device.upload::<Mont<BabyBear>>(&random(64)).unwrap();
    let mut out = device.upload::<Mont<BabyBear>>(&[BabyBear::ONE; 33]).unwrap();
    let rows = |columns| [Rows::new(&values, columns)];
    for error in [
        refused(poseidon2.permute(&mut out)),
        refused(poseidon2.hash_rows(&rows(16), &mut out)),
        refused(poseidon2.hash_rows(&rows(16), out.view_mut(..24).unwrap())),
        refused(poseidon2.hash_rows(&rows(usize::MAX), out.view_mut(..16).unwrap())),
        refused(poseidon2.compress(&values, out.view_mut(..24).unwrap())),
        refused(poseidon2.compress(&values, out.view_mut(..31).unwrap())),
    ] {
        assert!(matches!(error, DeviceError::Length { .. }), "{error}");
    }
    let secret = device.upload_with::<Mont<BabyBear>>(&random(64), Secrecy::Secret).unwrap();
    for error in [
        refused(poseidon2.hash_rows(&[Rows::new(&secret, 16)], out.view_mut(..32).unwrap())),
        refused(poseidon2.compress(&secret, out.view_mut(..32).unwrap())),
    ] {
        assert!(matches!(error, DeviceError::SecretInput { .. }), "{error}");
    }
    assert_eq!(out.to_vec().unwrap(), [BabyBear::ONE; 33]);
    poseidon2.hash_rows(&[], out.view_mut(..0).unwrap()).unwrap();
    poseidon2.compress(values.view(..0).unwrap(), out.view_mut(..0).unwrap()).unwrap();
}
