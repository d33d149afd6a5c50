//! Against the definitions, published digests and other implementations, on every device that is here.

use std::iter;

use ark_std::{rand::Rng, test_rng};
use evariste_backend::{Device, Error as DeviceError, Secrecy};
use evariste_emulator::Arithmetic;
use tiny_keccak::Hasher;

use super::{ByteHash, Most, function::HashFunction};
use crate::{error::Error, reference::bytes::digest as defined};

/// The CPU, and CUDA sources on the host, as far as there is a compiler. Trials run on GPUs and their emulation.
fn devices() -> Vec<Device> {
    [Device::cpu()].into_iter().chain(evariste_emulator::device(Arithmetic::CarryFlag)).collect()
}

fn random(len: usize) -> Vec<u8> {
    let mut rng = test_rng();
    (0..len).map(|_| rng.r#gen()).collect()
}

/// Lengths around the ends of words, of blocks and of what padding takes, and of chunks and layers of BLAKE3.
const LENGTHS: [usize; 27] = [
    0, 1, 3, 4, 31, 32, 55, 56, 59, 63, 64, 65, 119, 120, 128, 135, 136, 137, 272, 1023, 1024, 1025, 2048, 2049, 3073,
    5120, 6500,
];

#[test]
fn definitions_give_the_published_digests() {
    // FIPS 202 and 180-4 (NIST's examples), RFC 7693 (appendix B), BLAKE3's README and Ethereum's empty hash.
    let published = [
        (HashFunction::Keccak256, "", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (HashFunction::Keccak256, "abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
        (HashFunction::Sha3_256, "", "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a"),
        (HashFunction::Sha3_256, "abc", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
        (HashFunction::Sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (HashFunction::Sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            HashFunction::Sha256,
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ),
        (HashFunction::Blake2s256, "abc", "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"),
        (HashFunction::Blake3, "", "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"),
        (HashFunction::Blake3, "abc", "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"),
    ];
    for (function, message, expected) in published {
        let digest: String = defined(function, message.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, expected, "{function} of {message:?}");
    }
}

#[test]
fn definitions_are_other_implementations() {
    let message = random(6500);
    for len in LENGTHS {
        let message = &message[..len];
        let keccak = |mut hasher: tiny_keccak::Keccak| {
            let mut digest = [0; 32];
            hasher.update(message);
            hasher.finalize(&mut digest);
            digest
        };
        let sha3 = |mut hasher: tiny_keccak::Sha3| {
            let mut digest = [0; 32];
            hasher.update(message);
            hasher.finalize(&mut digest);
            digest
        };
        assert_eq!(defined(HashFunction::Keccak256, message), keccak(tiny_keccak::Keccak::v256()), "{len}");
        assert_eq!(defined(HashFunction::Sha3_256, message), sha3(tiny_keccak::Sha3::v256()), "{len}");
        for function in HashFunction::ALL {
            assert_eq!(defined(function, message), function.digest(message), "{function}, {len} bytes");
        }
    }
}

#[test]
fn rows_and_many_and_pairs_are_the_definitions() {
    let bytes = random(1 << 16);
    for device in devices() {
        let name = device.info().name.clone();
        // Starts within a word.
        let data = device.upload::<u8>(&bytes).unwrap();
        for function in HashFunction::ALL {
            let hash = ByteHash::new(&device, function).unwrap();
            for (i, len) in LENGTHS.into_iter().enumerate() {
                let (start, count) = (i % 9, if len > 1024 { 3 } else { 5 });
                let messages = data.view(start..start + count * len).unwrap();
                let mut out = device.upload::<[u8; 32]>(&vec![[1; 32]; count]).unwrap();
                hash.hash_rows(messages, len, &mut out).unwrap();
                let expected: Vec<_> =
                    (0..count).map(|row| defined(function, &bytes[start + row * len..][..len])).collect();
                assert_eq!(out.to_vec().unwrap(), expected, "{name}, {function}, rows of {len}");
            }
            let offsets: Vec<usize> = iter::once(0)
                .chain(LENGTHS)
                .scan(7, |end, len| {
                    *end += len;
                    Some(*end)
                })
                .collect();
            let mut out = device.upload::<[u8; 32]>(&[[1; 32]; LENGTHS.len()]).unwrap();
            hash.hash_many(&data, &offsets, &mut out).unwrap();
            let expected: Vec<_> = offsets.windows(2).map(|pair| defined(function, &bytes[pair[0]..pair[1]])).collect();
            assert_eq!(out.to_vec().unwrap(), expected, "{name}, {function}, messages of different lengths");

            let mut pairs = device.alloc::<[u8; 32]>(LENGTHS.len() / 2).unwrap();
            hash.compress(out.view(1..).unwrap(), &mut pairs).unwrap();
            let expected: Vec<_> =
                expected[1..].chunks_exact(2).map(|pair| defined(function, pair.as_flattened())).collect();
            assert_eq!(pairs.to_vec().unwrap(), expected, "{name}, {function}, pairs");
            assert_eq!(hash.digest(data.view(5..40_005).unwrap()).unwrap(), defined(function, &bytes[5..40_005]));
        }
    }
}

/// Launches that take few messages, bytes or chunks.
#[test]
fn long_inputs_are_divided() {
    let (device, bytes) = (Device::cpu(), random(40_000));
    let data = device.upload::<u8>(&bytes).unwrap();
    for most in [
        Most { bytes: 7000, messages: 2, leaves: 100, leaf: 1024 },
        Most { bytes: 7000, messages: 100, leaves: 4, leaf: 1024 },
        Most { bytes: 3000, messages: 100, leaves: 100, leaf: 1024 },
        Most { bytes: 7000, messages: 100, leaves: 3, leaf: 2048 },
        Most { bytes: 7000, messages: 100, leaves: 100, leaf: 4096 },
    ] {
        for function in HashFunction::ALL {
            let hash = ByteHash::with_most((&device).into(), function, most).unwrap();
            // BLAKE3 cuts messages too.
            let (lengths, len) = match function {
                HashFunction::Blake3 => ([0, 1, 9000, 6999, 1025, 0, 2100], 4100),
                _ => ([0, 1, 2900, 3000, 1025, 0, 2100], 900),
            };
            let rows = data.view(3..3 + 7 * len).unwrap();
            let mut out = device.upload::<[u8; 32]>(&[[1; 32]; 7]).unwrap();
            hash.hash_rows(rows, len, &mut out).unwrap();
            let expected: Vec<_> = (0..7).map(|row| defined(function, &bytes[3 + row * len..][..len])).collect();
            assert_eq!(out.to_vec().unwrap(), expected, "{function}, rows by {most:?}");
            let ends = |end: &mut usize, len| {
                *end += len;
                Some(*end)
            };
            let offsets: Vec<usize> = iter::once(0).chain(lengths).scan(5, ends).collect();
            hash.hash_many(&data, &offsets, &mut out).unwrap();
            let expected: Vec<_> = offsets.windows(2).map(|pair| defined(function, &bytes[pair[0]..pair[1]])).collect();
            assert_eq!(out.to_vec().unwrap(), expected, "{function}, messages by {most:?}");
            if function != HashFunction::Blake3 {
                let error = hash.digest(&data).unwrap_err();
                assert!(matches!(error, Error::Device(DeviceError::TooLarge { .. })), "{error}");
            }
        }
    }
}

#[test]
fn wrong_arguments_are_refused_and_nothing_is_written() {
    let device = Device::cpu();
    let data = device.upload::<u8>(&random(64)).unwrap();
    let secret = device.upload_with::<u8>(&random(64), Secrecy::Secret).unwrap();
    let mut out = device.upload::<[u8; 32]>(&[[1; 32]; 3]).unwrap();
    for function in HashFunction::ALL {
        let hash = ByteHash::new(&device, function).unwrap();
        let refused = |result: Result<(), Error>| match result {
            Err(Error::Device(error)) => error,
            other => panic!("{other:?}"),
        };
        for error in [
            refused(hash.hash_rows(&data, 16, &mut out)),
            refused(hash.hash_rows(&data, usize::MAX, &mut out)),
            refused(hash.compress(&device.alloc(5).unwrap(), &mut out)),
        ] {
            assert!(matches!(error, DeviceError::Length { .. }), "{error}");
        }
        let error = refused(hash.hash_many(&secret, &[0, 1, 2, 3], &mut out));
        assert!(matches!(error, DeviceError::SecretInput { .. }), "{error}");
        let many = |offsets: &[usize]| hash.hash_many(&data, offsets, &mut device.alloc(3).unwrap()).unwrap_err();
        assert_eq!(many(&[]), Error::Offsets { expected: 4, actual: 0 });
        assert_eq!(many(&[0, 1, 2]), Error::Offsets { expected: 4, actual: 3 });
        assert_eq!(many(&[0, 5, 4, 6]), Error::Offset { index: 2, least: 5, most: 64, actual: 4 });
        assert_eq!(many(&[0, 5, 6, 65]), Error::Offset { index: 3, least: 6, most: 64, actual: 65 });
        hash.hash_rows(data.view(..0).unwrap(), 16, out.view_mut(..0).unwrap()).unwrap();
        hash.hash_many(&data, &[64], out.view_mut(..0).unwrap()).unwrap();
    }
    assert_eq!(out.to_vec().unwrap(), [[1; 32]; 3]);
}
