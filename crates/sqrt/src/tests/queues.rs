//! What plans do with queues of other devices, and the memory that their calls take.

use super::*;

/// Elements, encodings and messages stay on the host.
#[test]
fn queues_of_other_devices_are_refused_before_anything_is_uploaded() {
    use ark_bls12_381::{Fr, g1::Config as G1};

    let (device, other) = (Device::cpu(), Device::another_cpu());
    let queue = other.default_queue();
    let sqrt = Sqrt::<Fr>::new(&device).unwrap().on(&queue);
    let cube = NthRoot::<Fr>::new(&device, 3).unwrap().on(&queue);
    let map = MapToCurve::<G1>::new(&device).unwrap().on(&queue);
    let decompress = Decompress::<G1>::new(&device, Encoding::Zcash).unwrap().on(&queue);
    let hash = HashToCurve::<G1>::new(&device, b"tag").unwrap().on(&queue);
    let (elements, bytes) = ([Fr::from(4)], vec![0; decompress.point_bytes()]);
    let (a, u) = (other.upload::<Mont<Fr>>(&elements).unwrap(), other.alloc(1).unwrap());
    let (mut out, mut mask) = (other.alloc(1).unwrap(), other.alloc(1).unwrap());
    let (mut mapped, mut points) = (other.alloc(1).unwrap(), other.alloc(1).unwrap());
    let encodings = other.upload::<u8>(&bytes).unwrap();
    let before = other.stats();
    let refused = [
        sqrt.sqrt_host(&elements).map(drop),
        sqrt.sqrt(&a, &mut out, &mut mask),
        sqrt.sqrt_ratio(&a, &a, &mut out, &mut mask),
        sqrt.legendre(&a, &mut mask),
        cube.nth_root_host(&elements).map(drop),
        cube.nth_root(&a, &mut out, &mut mask),
        map.map(&u, &mut mapped),
        decompress.decompress_host(&bytes).map(drop),
        decompress.try_decompress_host(&bytes).map(drop),
        decompress.decompress(&encodings, &mut points, &mut mask),
        hash.hash_host(&["message"]).map(drop),
    ];
    for (call, outcome) in refused.into_iter().enumerate() {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Device(DeviceError::WrongDevice { .. })), "call {call}: {error}");
    }
    let after = other.stats();
    assert_eq!((after.writes, after.launches, after.bytes_peak), (before.writes, before.launches, before.bytes_peak));
}

/// From calls that take less to those that take more, since peaks stay; but for an eighth and some words, by which
/// the CPU rounds allocations up.
#[test]
fn calls_take_no_more_memory_than_they_say() {
    use ark_bls12_381::{Fr, G1Affine, g1::Config as G1};

    let device = Device::another_cpu();
    let sqrt = Sqrt::<Fr>::new(&device).unwrap();
    let cube = NthRoot::<Fr>::new(&device, 3).unwrap();
    let decompress = Decompress::<G1>::new(&device, Encoding::Zcash).unwrap();
    let hash = HashToCurve::<G1>::new(&device, b"tag").unwrap();
    let live = device.stats().bytes_live;
    let expect = |what: &str, required: u64| {
        let taken = device.stats().bytes_peak - live;
        assert!(
            taken <= required + required / 8 + 8 * 16 && taken > required / 2,
            "{what}: {taken} of {required} bytes"
        );
    };
    let elements = sample::<Fr>(1000);
    sqrt.sqrt_host(&elements).unwrap();
    expect("roots", sqrt.required_bytes(1000));
    cube.nth_root_host(&elements).unwrap();
    expect("cube roots", cube.required_bytes(1000));
    let mut bytes = Vec::new();
    (0..1000).for_each(|_| G1Affine::generator().serialize_compressed(&mut bytes).unwrap());
    drop(decompress.decompress_host(&bytes).unwrap());
    expect("points", decompress.required_bytes(1000));
    drop(hash.hash_host(&["message"; 1000]).unwrap());
    expect("hashes", hash.required_bytes(1000));
}
