use std::sync::LazyLock;

use arbitrary::Unstructured;
use ark_bls12_381::{g1, g2};
use ark_ec::{AffineRepr, CurveGroup, short_weierstrass::Affine};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use evariste_backend::Device;
use evariste_curve::DeviceCurve;
use evariste_sqrt::{Decompress, Encoding, RootField};

use crate::choice;

/// Encodings of a batch at most.
const MOST: usize = 8;

/// Changes of bytes of an encoding at most.
const CHANGES: u8 = 3;

/// Points from bytes: encodings of multiples of the generator with some bytes changed, and bytes that are none, with
/// the check of the subgroup, by the device that every machine has and by arkworks.
///
/// # Panics
/// If one takes what the other refuses, or makes another point of it.
pub fn points(data: &[u8]) {
    static G1: LazyLock<Decompress<g1::Config>> = LazyLock::new(plan);
    static G2: LazyLock<Decompress<g2::Config>> = LazyLock::new(plan);
    let mut input = Unstructured::new(data);
    match choice(input.arbitrary()) {
        true => check(&G1, &mut input),
        false => check(&G2, &mut input),
    }
}

fn plan<C: DeviceCurve<BaseField: RootField>>() -> Decompress<C> {
    match Decompress::new(&Device::cpu(), Encoding::Zcash) {
        Ok(plan) => plan,
        Err(error) => panic!("the CPU makes a plan: {error}"),
    }
}

fn check<C: DeviceCurve<BaseField: RootField>>(plan: &Decompress<C>, input: &mut Unstructured<'_>) {
    let each = plan.point_bytes();
    let mut bytes = Vec::new();
    for _ in 0..choice(input.int_in_range(0..=MOST)) {
        let mut encoding = Vec::new();
        let multiple = Affine::<C>::generator().mul_bigint([choice(input.arbitrary::<u64>())]).into_affine();
        if multiple.serialize_compressed(&mut encoding).is_err() {
            panic!("a point is not encoded");
        }
        for _ in 0..choice(input.int_in_range(0..=CHANGES)) {
            let place = choice(input.int_in_range(0..=each - 1));
            encoding[place] = choice(input.arbitrary());
        }
        // Now and then, bytes from the input alone.
        if choice(input.ratio(1, 8)) {
            encoding.fill_with(|| choice(input.arbitrary()));
        }
        bytes.extend(encoding);
    }
    let found = plan.try_decompress_host(&bytes).and_then(|(points, refused)| Ok((points.to_vec()?, refused)));
    let (points, refused) = match found {
        Ok(found) => found,
        Err(error) => panic!("no encoding makes a call fail: {error}"),
    };
    for (i, (point, encoding)) in points.into_iter().zip(bytes.chunks_exact(each)).enumerate() {
        let expected = Affine::<C>::deserialize_compressed(encoding);
        let why = refused.iter().find(|(index, _)| *index == i);
        match (expected, why) {
            (Ok(expected), None) => assert_eq!(point, expected, "point {i} of {encoding:02x?}"),
            (Err(_), Some(_)) => assert!(point.is_zero(), "what is refused becomes the point at infinity"),
            (expected, why) => panic!("{encoding:02x?}: arkworks says {expected:?}, here it is {why:?}"),
        }
    }
}
