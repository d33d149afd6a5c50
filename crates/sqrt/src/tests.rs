use ark_ec::{
    AffineRepr, CurveConfig, CurveGroup, PrimeGroup,
    hashing::{
        HashToCurve as _,
        curve_maps::wb::{IsogenyMap, WBConfig, WBMap},
        map_to_curve_hasher::{MapToCurve as _, MapToCurveBasedHasher},
    },
    short_weierstrass::{Affine, Projective, SWCurveConfig},
};
use ark_ff::{
    AdditiveGroup, Field, Fp2, Fp2Config, Fp64, Fp256, MontBackend, MontConfig, MontFp, PrimeField, UniformRand, Zero,
    field_hashers::DefaultFieldHasher,
};
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use evariste_backend::{Device, Error as DeviceError};
use evariste_curve::{CurveConstant, CurveError, DeviceCurve};
use evariste_field::{
    Mont,
    small::{BabyBear, BabyBear2, Goldilocks},
};
use num_bigint::BigUint;

use crate::{
    Check, Choice, Config, Decompress, Encoding, Error, HashToCurve, MapToCurve, Method, NthRoot, PointError,
    RootField, Sqrt, reference, subgroup::Membership,
};

macro_rules! primes {
    ($($name:ident $config:ident $modulus:literal $generator:literal)*) => {$(
        #[derive(MontConfig)]
        #[modulus = $modulus]
        #[generator = $generator]
        struct $config;
        type $name = Fp64<MontBackend<$config, 1>>;
    )*};
}

// The smallest prime of each class modulo 16, those of more than one digit of a logarithm excepted.
primes! {
    F3 C3 "3" "2"
    F5 C5 "5" "2"
    F7 C7 "7" "3"
    F11 C11 "11" "2"
    F13 C13 "13" "2"
    F17 C17 "17" "3"
    F19 C19 "19" "2"
    F31 C31 "31" "3"
    F37 C37 "37" "2"
    F41 C41 "41" "6"
    F97 C97 "97" "5"
    F101 C101 "101" "2"
    F163 C163 "163" "2"
    F251 C251 "251" "6"
    // The configured generator is 6², by which arkworks has no root of unity of order 16, and square roots that never end.
    Square17 CSquare17 "17" "2"
    Composite CComposite "15" "2"
}

/// 2^251 + 17 · 2^192 + 1.
#[derive(MontConfig)]
#[modulus = "3618502788666131213697322783095070105623107215331596699973092056135872020481"]
#[generator = "3"]
struct StarkConfig;
type Stark = Fp256<MontBackend<StarkConfig, 4>>;

fn emulator() -> Device {
    evariste_emulator::device(evariste_emulator::Arithmetic::CarryFlag).unwrap()
}

fn devices() -> [Device; 3] {
    [Device::cpu(), Device::wgpu(0).unwrap(), emulator()]
}

/// Squares and what is none, and the edges.
fn sample<F: RootField>(len: usize) -> Vec<F> {
    let mut rng = ark_std::test_rng();
    let mut all = vec![F::ZERO, F::ONE, -F::ONE];
    all.extend((3..len).map(|i| {
        let x = F::rand(&mut rng);
        if i % 3 == 0 { x } else { x.square() }
    }));
    all
}

fn check<F: RootField>(device: &Device, elements: &[F], config: Config<F>) {
    let sqrt = Sqrt::<F>::with(device, config).unwrap();
    for (x, root) in elements.iter().zip(sqrt.sqrt_host(elements).unwrap()) {
        let message = format!("{:?} of {x} on {device:?}", sqrt.method());
        match config.choice {
            Choice::Any => {
                assert_eq!(
                    root.map(|root| root.square()),
                    x.legendre().is_qr().then_some(*x).or((*x == F::ZERO).then_some(*x)),
                    "{message}"
                );
            }
            choice => assert_eq!(root, reference::root(*x, choice), "{message}"),
        }
    }
}

fn check_ratios_and_symbols<F: RootField>(device: &Device, elements: &[F]) {
    let sqrt = Sqrt::<F>::new(device).unwrap();
    let n = elements.len();
    let u = device.upload::<Mont<F>>(elements).unwrap();
    let mut symbols = device.alloc(n).unwrap();
    sqrt.symbols(&u, &mut symbols).unwrap();
    assert_eq!(symbols.to_vec().unwrap(), elements.iter().map(|x| reference::symbol(*x)).collect::<Vec<_>>());
    if F::extension_degree() > 1 {
        return;
    }
    let mut reversed = elements.to_vec();
    reversed.reverse();
    let v = device.upload::<Mont<F>>(&reversed).unwrap();
    let (mut out, mut mask) = (device.alloc::<Mont<F>>(n).unwrap(), device.alloc(n).unwrap());
    sqrt.ratios(&u, &v, &mut out, &mut mask).unwrap();
    let results = out.to_vec().unwrap().into_iter().zip(mask.to_vec().unwrap());
    for ((u, v), (y, is_square)) in elements.iter().zip(&reversed).zip(results) {
        let expected = if v.is_zero() { *u == F::ZERO } else { !(*u * v).legendre().is_qnr() };
        assert_eq!(is_square == 1, expected, "{u} / {v}");
        let factor = if is_square == 1 { F::ONE } else { sqrt.non_residue() };
        assert_eq!(if v.is_zero() { y } else { y.square() * v }, if v.is_zero() { F::ZERO } else { factor * u });
    }
}

fn all<F: RootField>(elements: &[F]) {
    let device = Device::cpu();
    for choice in Choice::ALL {
        check(&device, elements, Config { choice, ..Config::default() });
    }
    check_ratios_and_symbols(&device, elements);
    for method in Method::ALL {
        let config = Config { method: Some(method), ..Config::default() };
        match Sqrt::<F>::with(&device, config) {
            Ok(_) => check(&device, elements, config),
            Err(Error::Method { method: refused, .. }) => assert_eq!(refused, method),
            Err(error) => panic!("{error}"),
        }
    }
}

fn tiny<F: RootField>(p: u64) {
    all(&(0..p).map(F::from).collect::<Vec<_>>());
}

#[test]
fn every_class_of_primes_has_all_its_roots_by_every_method() {
    tiny::<F3>(3);
    tiny::<F5>(5);
    tiny::<F7>(7);
    tiny::<F11>(11);
    tiny::<F13>(13);
    tiny::<F17>(17);
    tiny::<F31>(31);
    tiny::<F41>(41);
    tiny::<F97>(97);
    // 2 · 3², 4 · 3², 4 · 5², 2 · 3⁴ and 2 · 5³ below p: Sze's branch of odd primes.
    tiny::<F19>(19);
    tiny::<F37>(37);
    tiny::<F101>(101);
    tiny::<F163>(163);
    tiny::<F251>(251);
}

#[test]
fn large_primes() {
    all(&sample::<Goldilocks>(70));
    all(&sample::<BabyBear>(20));
    all(&sample::<ark_bls12_377::Fr>(9));
    all(&sample::<Stark>(9));
    all(&sample::<ark_bls12_381::Fr>(9));
    all(&sample::<ark_bls12_381::Fq>(9));
}

#[test]
fn quadratic_extensions() {
    for choice in Choice::ALL {
        let device = Device::cpu();
        let mut edges: Vec<_> = [4u8, 5, 6, 7].map(ark_bls12_381::Fq2::from).to_vec();
        edges.extend(edges.clone().iter().map(|x| *x * ark_bls12_381::Fq2::new(0u8.into(), 1u8.into())));
        edges.extend(sample::<ark_bls12_381::Fq2>(9));
        check(&device, &edges, Config { choice, ..Config::default() });
        check(&device, &sample::<ark_bls12_377::Fq2>(9), Config { choice, ..Config::default() });
    }
    check_ratios_and_symbols(&Device::cpu(), &sample::<ark_bls12_381::Fq2>(9));
    let device = Device::cpu();
    let elements = sample::<BabyBear2>(30);
    let roots = Sqrt::<BabyBear2>::new(&device).unwrap().sqrt_host(&elements).unwrap();
    for (x, root) in elements.iter().zip(roots) {
        assert_eq!(root.map(|root| root.square()), (!x.legendre().is_qnr()).then_some(*x));
    }
}

#[test]
fn every_device_has_the_same_roots() {
    for device in devices() {
        let config = Config { choice: Choice::Smaller, ..Config::default() };
        check(&device, &sample::<ark_bls12_381::Fr>(9), config);
        check(&device, &sample::<ark_bls12_381::Fq2>(9), Config { choice: Choice::Larger, ..Config::default() });
        check_ratios_and_symbols(&device, &sample::<ark_bls12_381::Fr>(9));
        for method in [Method::Cipolla, Method::Sze, Method::NeededColumns, Method::Warp] {
            check(&device, &sample::<BabyBear>(9), Config { method: Some(method), ..Config::default() });
        }
        check(
            &device,
            &(0..41u8).map(F41::from).collect::<Vec<_>>(),
            Config { choice: Choice::Even, ..Config::default() },
        );
    }
}

/// Fields with no column beside the root, with fewer than lanes, as many, and more; batches that end within a workgroup.
#[test]
fn warps_have_the_same_roots() {
    fn same<F: RootField>(device: &Device) {
        let sqrt = |method| Sqrt::<F>::with(device, Config { method, choice: Choice::Larger, ..Config::default() });
        let (warp, best) = (sqrt(Some(Method::Warp)).unwrap(), sqrt(None).unwrap());
        for len in [1, 2, 3, 4, 5, 31, 33] {
            let elements = &sample::<F>(len.max(3))[..len];
            assert_eq!(warp.sqrt_host(elements).unwrap(), best.sqrt_host(elements).unwrap(), "{len} on {device:?}");
        }
        assert!(warp.sqrt_host(&[]).unwrap().is_empty());
    }
    for device in devices() {
        same::<F3>(&device);
        same::<F7>(&device);
        same::<F17>(&device);
        same::<F41>(&device);
        same::<BabyBear>(&device);
        same::<Goldilocks>(&device);
        same::<ark_bls12_381::Fr>(&device);
        same::<ark_bls12_377::Fr>(&device);
    }
}

fn check_degree<F: RootField + PrimeField>(device: &Device, elements: &[F], degree: u32) {
    let plan = NthRoot::<F>::new(device, degree).unwrap();
    let order: BigUint = F::MODULUS.into() - 1u8;
    let (unit, divides) = (plan.root_of_unity(), (&order % degree) == BigUint::ZERO);
    assert_eq!((unit != F::ONE, unit.pow([degree.into()])), (divides, F::ONE));
    for (x, root) in elements.iter().zip(plan.roots_host(elements).unwrap()) {
        let expected = reference::has_root(*x, degree).then_some(*x);
        assert_eq!(root.map(|root| root.pow([degree.into()])), expected, "degree {degree} of {x} on {device:?}");
    }
}

/// All elements, by the definition; degrees that divide p − 1 not at all, once and several times.
#[test]
fn roots_of_odd_degrees_are_those_of_the_definition() {
    fn tiny<F: RootField + PrimeField>(p: u64) {
        let elements: Vec<F> = (0..p).map(F::from).collect();
        for degree in [3u32, 5, 7, 61] {
            for x in &elements {
                let expected = elements.iter().any(|y| y.pow([degree.into()]) == *x);
                assert_eq!(reference::has_root(*x, degree), expected, "degree {degree} of {x} modulo {p}");
            }
            check_degree(&Device::cpu(), &elements, degree);
        }
    }
    tiny::<F3>(3);
    tiny::<F7>(7);
    tiny::<F17>(17);
    tiny::<F19>(19);
    tiny::<F31>(31);
    tiny::<F37>(37);
    tiny::<F101>(101);
    tiny::<F163>(163);
    tiny::<F251>(251);
}

/// Powers, and what is none where the degree divides p − 1.
#[test]
fn every_device_has_the_same_roots_of_odd_degrees() {
    fn powers<F: RootField>(len: usize, degree: u32) -> Vec<F> {
        let all = sample::<F>(len.max(3)).into_iter().enumerate();
        all.map(|(i, x)| if i % 2 == 0 { x.pow([degree.into()]) } else { x }).take(len).collect()
    }
    for device in devices() {
        for len in [0, 1, 31, 33] {
            check_degree(&device, &powers::<BabyBear>(len, 3), 3);
        }
        check_degree(&device, &powers::<Goldilocks>(9, 5), 5);
        check_degree(&device, &powers::<ark_bn254::Fr>(9, 3), 3);
        check_degree(&device, &powers::<ark_bls12_381::Fr>(9, 11), 11);
        check_degree(&device, &powers::<ark_bls12_381::Fr>(9, 5), 5);
        check_degree(&device, &(0..163u8).map(F163::from).collect::<Vec<_>>(), 3);
    }
}

#[test]
fn degrees_that_are_not_served_are_refused() {
    let device = Device::cpu();
    for degree in [0, 1, 2, 4, 9, 63, 67] {
        let refused = NthRoot::<F97>::new(&device, degree).unwrap_err();
        assert_eq!(refused, Error::Degree { expected: 61, actual: degree });
        assert!(NthRoot::<F97>::kernels(degree).is_empty());
    }
    let extension = Error::Field { what: "roots of odd degrees", degree: 2 };
    assert_eq!(NthRoot::<ark_bls12_381::Fq2>::new(&device, 3).unwrap_err(), extension);
    let composite = Error::Modulus { field: std::any::type_name::<Composite>() };
    assert_eq!(NthRoot::<Composite>::new(&device, 3).unwrap_err(), composite);
    let plan = NthRoot::<F97>::new(&device, 3).unwrap();
    let a = device.upload::<Mont<F97>>(&[F97::ONE; 3]).unwrap();
    let (mut out, mut mask) = (device.zeros::<Mont<F97>>(2).unwrap(), device.zeros::<u32>(3).unwrap());
    let length = Error::Device(DeviceError::Length { what: "the roots", expected: 3, actual: 2 });
    assert_eq!(plan.roots(&a, &mut out, &mut mask), Err(length));
    assert_eq!(NthRoot::<ark_bls12_381::Fr>::new(&device, 3).unwrap().products(), 311);
}

#[test]
fn costs_are_as_documented() {
    fn products<F: RootField>(method: Option<Method>) -> (Method, u64) {
        let sqrt = Sqrt::<F>::with(&Device::cpu(), Config { method, ..Config::default() }).unwrap();
        (sqrt.method(), sqrt.products())
    }
    let best = [
        products::<ark_bls12_381::Fr>(None),
        products::<ark_bls12_381::Fq>(None),
        products::<ark_bls12_381::Fq2>(None),
        products::<ark_bn254::Fq>(None),
        products::<ark_pallas::Fq>(None),
        products::<ark_bls12_377::Fr>(None),
        products::<Stark>(None),
        products::<Goldilocks>(None),
    ];
    let expected = [
        (Method::Table, 310),
        (Method::Power, 459),
        (Method::Table, 934),
        (Method::Power, 306),
        (Method::Table, 286),
        (Method::Table, 309),
        (Method::Table, 547),
        (Method::Table, 104),
    ];
    assert_eq!(best, expected);
    // What is there to compare with, over the same prime; searches are expected to take two attempts.
    let others =
        [Method::Serial, Method::PowerMatrix, Method::NeededColumns, Method::Warp, Method::Cipolla, Method::Sze];
    let expected = [802, 1329, 802, 286, 1118, 3009];
    assert_eq!(others.map(|method| products::<ark_bls12_381::Fr>(Some(method)).1), expected);
}

#[test]
fn what_does_not_fit_is_refused() {
    let device = Device::cpu();
    let sqrt = Sqrt::<F97>::new(&device).unwrap();
    let a = device.upload::<Mont<F97>>(&[F97::ONE; 3]).unwrap();
    let (mut out, mut mask) = (device.zeros::<Mont<F97>>(2).unwrap(), device.zeros::<u32>(3).unwrap());
    let length = |what| Err(Error::Device(DeviceError::Length { what, expected: 3, actual: 2 }));
    assert_eq!(sqrt.sqrt(&a, &mut out, &mut mask), length("the roots"));
    let mut out = device.zeros::<Mont<F97>>(3).unwrap();
    assert_eq!(sqrt.sqrt(&a, &mut out, mask.view_mut(..2).unwrap()), length("the mask"));
    assert_eq!(mask.to_vec().unwrap(), [0; 3]);
    assert_eq!(out.to_vec().unwrap(), [F97::ZERO; 3]);
    let square = Config { non_residue: Some(F97::from(4u8)), ..Config::default() };
    assert_eq!(Sqrt::with(&device, square).unwrap_err(), Error::Square);
    let degree = Sqrt::<ark_bls12_381::Fq6>::new(&device).unwrap_err();
    assert_eq!(degree, Error::Field { what: "roots", degree: 6 });
}

#[test]
fn parts_are_all_of_a_batch() {
    let parts = |len, each| crate::plan::parts(len, each).collect::<Vec<_>>();
    assert_eq!(parts(293, 128), [0..128, 128..256, 256..293]);
    assert_eq!(parts(256, 128), [0..128, 128..256]);
    assert_eq!(parts(0, 128), std::slice::from_ref(&(0..0)));
}

/// Two workgroups and a part of one, at once or in launches of one each.
#[test]
fn many_elements_are_divided_into_launches() {
    const EACH: usize = 128;
    for device in [Device::cpu(), Device::wgpu(0).unwrap()] {
        let elements: Vec<_> = (0..97u8).cycle().map(F97::from).take(2 * EACH + 37).collect();
        let u = device.upload::<Mont<F97>>(&elements).unwrap();
        let v = device.upload::<Mont<F97>>(&elements.iter().map(|x| *x + F97::ONE).collect::<Vec<_>>()).unwrap();
        let run = |sqrt: &Sqrt<F97>, ratios: bool| {
            let mut out = device.upload::<Mont<F97>>(&vec![F97::from(5u8); elements.len()]).unwrap();
            let mut mask = device.upload(&vec![7u32; elements.len()]).unwrap();
            match ratios {
                false => sqrt.sqrt(&u, &mut out, &mut mask).unwrap(),
                true => sqrt.ratios(&u, &v, &mut out, &mut mask).unwrap(),
            }
            (out.to_vec().unwrap(), mask.to_vec().unwrap())
        };
        let sqrt = Sqrt::<F97>::new(&device).unwrap();
        let expected = [false, true].map(|ratios| run(&sqrt, ratios));
        let sqrt = sqrt.in_launches_of(EACH);
        assert!([false, true].map(|ratios| run(&sqrt, ratios)) == expected);
        let warp = Config { method: Some(Method::Warp), ..Config::default() };
        let sqrt = Sqrt::<F97>::with(&device, warp).unwrap();
        let whole = run(&sqrt, false);
        assert_eq!(whole.1, expected[0].1);
        assert!(run(&sqrt.in_launches_of(EACH / 4), false) == whole);
    }
}

/// The last launch of points has one, which is refused; the 127 digits of the subgroup's scalar take three launches for each part.
#[test]
fn many_points_are_divided_into_launches() {
    use ark_bls12_381::{Fq, g1::Config as G1};

    let (_, mut bytes) = encoded::<G1>();
    outside::<G1>().serialize_compressed(&mut bytes).unwrap();
    outside::<G1>().serialize_compressed(&mut bytes).unwrap();
    for device in [Device::cpu(), emulator()] {
        let run = |decompress: &Decompress<G1>| {
            let (points, wrong) = decompress.try_decompress_host(&bytes).unwrap();
            (points.to_vec().unwrap(), wrong)
        };
        let decompress = Decompress::<G1>::new(&device, Encoding::Zcash, Check::Subgroup).unwrap();
        let expected = run(&decompress);
        assert_eq!(expected.1, [7, 8].map(|i| (i, PointError::NotInSubgroup)));
        assert!(run(&decompress.in_launches_of(4, 50)) == expected);
    }

    let device = Device::cpu();
    let u = device.upload::<Mont<Fq>>(&sample::<Fq>(9)).unwrap();
    let run = |map: &MapToCurve<G1>| {
        let mut points = device.zeros(9).unwrap();
        map.map(&u, &mut points).unwrap();
        points.to_vec().unwrap()
    };
    let map = MapToCurve::<G1>::new(&device).unwrap();
    let expected = run(&map);
    assert!(run(&map.in_launches_of(4)) == expected);
}

/// Points of the subgroup with y of both kinds, the point at infinity, and their encodings by arkworks.
fn encoded<C: DeviceCurve>() -> (Vec<Affine<C>>, Vec<u8>) {
    let multiples = (1..6u64).map(|k| (Projective::<C>::generator() * C::ScalarField::from(k)).into_affine());
    let points: Vec<_> = multiples.chain([Affine::identity(), -Affine::generator()]).collect();
    let mut bytes = Vec::new();
    points.iter().for_each(|p| p.serialize_compressed(&mut bytes).unwrap());
    (points, bytes)
}

/// A point of the curve outside of the subgroup.
fn outside<C: DeviceCurve>() -> Affine<C> {
    let mut x = C::BaseField::ONE;
    loop {
        x += C::BaseField::ONE;
        if let Some(p) =
            Affine::<C>::get_point_from_x_unchecked(x, true).filter(|p| !p.is_in_correct_subgroup_assuming_on_curve())
        {
            return p;
        }
    }
}

fn check_points<C: DeviceCurve<BaseField: RootField>>(device: &Device, encoding: Encoding) {
    let decompress = Decompress::<C>::new(device, encoding, Check::Subgroup).unwrap();
    let (mut points, mut bytes) = encoded::<C>();
    assert_eq!(bytes.len(), points.len() * decompress.point_bytes());
    assert_eq!(decompress.decompress_host(&bytes).unwrap().to_vec().unwrap(), points);
    let mut expected = Vec::new();
    if !C::cofactor_is_one() {
        points.push(outside::<C>());
        points.last().unwrap().serialize_compressed(&mut bytes).unwrap();
        expected.push((points.len() - 1, PointError::NotInSubgroup));
        let unchecked = Decompress::<C>::new(device, encoding, Check::Curve).unwrap();
        assert_eq!(unchecked.decompress_host(&bytes).unwrap().to_vec().unwrap(), points);
        *points.last_mut().unwrap() = Affine::identity();
    }
    let each = decompress.point_bytes();
    let (high, low, flags) = match encoding {
        Encoding::Zcash => (0, each - 1, 0xe0),
        _ => (each - 1, 0, 0xc0),
    };
    // The lowest bytes counted up until there is no y.
    loop {
        bytes[2 * each + low] = bytes[2 * each + low].wrapping_add(1);
        let x = bytes[2 * each..3 * each].to_vec();
        let kinds = decompress.try_decompress_host(&x).unwrap().1;
        if kinds == [(0, PointError::NotOnCurve)] {
            break;
        }
    }
    expected.insert(0, (2, PointError::NotOnCurve));
    bytes[3 * each + high] |= !flags;
    bytes[3 * each + each / 2] = 0xff;
    for at in 1..each {
        bytes[3 * each + if high == 0 { at } else { at - 1 }] = 0xff;
    }
    expected.insert(1, (3, PointError::NotCanonical));
    // The point at infinity with a coordinate.
    bytes[5 * each + low] = 1;
    expected.insert(2, (5, PointError::Flags));
    for (i, _) in &expected {
        points[*i] = Affine::identity();
    }
    let (found, wrong) = decompress.try_decompress_host(&bytes).unwrap();
    assert_eq!(wrong, expected);
    assert_eq!(found.to_vec().unwrap(), points);
    let (expected, actual) = (2 * each as u64, each as u64 + 1);
    let length = DeviceError::Length { what: "the encodings, in bytes,", expected, actual };
    assert_eq!(decompress.decompress_host(&bytes[..=each]).unwrap_err(), Error::Device(length));
    let first = Error::Point { index: 2, kind: PointError::NotOnCurve };
    assert_eq!(decompress.decompress_host(&bytes).unwrap_err(), first);
}

#[test]
fn points_of_every_encoding() {
    let device = Device::cpu();
    check_points::<ark_bls12_381::g2::Config>(&device, Encoding::Zcash);
    check_points::<ark_bls12_377::g1::Config>(&device, Encoding::Arkworks);
    check_points::<ark_bls12_377::g2::Config>(&device, Encoding::Arkworks);
    check_points::<ark_bn254::g1::Config>(&device, Encoding::Arkworks);
    check_points::<ark_bn254::g2::Config>(&device, Encoding::Arkworks);
    check_points::<ark_pallas::PallasConfig>(&device, Encoding::Arkworks);
    let refused = Decompress::<ark_pallas::PallasConfig>::new(&device, Encoding::Zcash, Check::Curve).unwrap_err();
    assert_eq!(refused, Error::Flags { expected: 3, actual: 1 });
}

/// arkworks reads points whose last byte has any of the six bits that nothing needs, which would be 64 encodings of a point.
#[test]
fn bits_that_nothing_needs_are_refused_where_arkworks_ignores_them() {
    type C = ark_pallas::PallasConfig;

    let decompress = Decompress::<C>::new(&Device::cpu(), Encoding::Arkworks, Check::Subgroup).unwrap();
    let (points, bytes) = encoded::<C>();
    let (point, bytes) = (points[0], &bytes[..33]);
    assert_eq!(
        (decompress.point_bytes(), decompress.decompress_host(bytes).unwrap().to_vec().unwrap()),
        (33, vec![point])
    );
    for bit in 0..6 {
        let mut other = bytes.to_vec();
        other[32] |= 1 << bit;
        assert_eq!(Affine::<C>::deserialize_compressed(&other[..]).unwrap(), point, "bit {bit}");
        let refused = Error::Point { index: 0, kind: PointError::NotCanonical };
        assert_eq!(decompress.decompress_host(&other).unwrap_err(), refused, "bit {bit}");
    }
}

#[test]
fn every_device_has_the_same_points() {
    for device in devices() {
        check_points::<ark_bls12_381::g1::Config>(&device, Encoding::Zcash);
    }
    for device in [Device::wgpu(0).unwrap(), emulator()] {
        check_points::<ark_bls12_381::g2::Config>(&device, Encoding::Zcash);
        check_points::<ark_pallas::PallasConfig>(&device, Encoding::Arkworks);
    }
}

/// Points of the whole curve, of the subgroup, of the other one, and sums of those; also where the other one is small, so that
/// multiples of points are infinite on the way to that by the scalar.
fn check_membership<C: DeviceCurve<BaseField: RootField>>(device: &Device, encoding: Encoding) {
    let mut rng = ark_std::test_rng();
    let order = C::ScalarField::characteristic();
    let mut random = || loop {
        let found = Affine::<C>::get_point_from_x_unchecked(C::BaseField::rand(&mut rng), true);
        if let Some(p) = found {
            break p;
        }
    };
    let mut points: Vec<Affine<C>> = (0..4)
        .flat_map(|_| {
            let p = random();
            let [inside, other] = [C::COFACTOR, order].map(|k| p.mul_bigint(k).into_affine());
            [p, inside, other, (other + Affine::generator()).into_affine()]
        })
        .collect();
    let cofactor = C::COFACTOR.iter().rev().fold(BigUint::ZERO, |x, limb| (x << 64u32) + *limb);
    let small: Vec<u32> =
        (2..100).filter(|q| (&cofactor % q) == BigUint::ZERO && (2..*q).all(|d| q % d != 0)).collect();
    // Curves may multiply by an endomorphism that is right in the subgroup alone.
    let times = |p: Affine<C>, k: &BigUint| {
        let digits = (0..k.bits()).rev().map(|bit| k.bit(bit));
        digits
            .fold(Projective::<C>::zero(), |sum, digit| if digit { sum.double() + p } else { sum.double() })
            .into_affine()
    };
    for q in &small {
        let (mut without, prime) = (cofactor.clone(), BigUint::from(*q));
        while (&without % q) == BigUint::ZERO {
            without /= *q;
        }
        let outside = (0..32).map(|_| times(times(random(), &C::ScalarField::MODULUS.into()), &without));
        let mut other = outside.into_iter().find(|p| !p.is_zero()).unwrap();
        // A multiple of order q.
        for _ in 0..128 {
            let multiple = times(other, &prime);
            if multiple.is_zero() {
                break;
            }
            other = multiple;
        }
        assert!(times(other, &prime).is_zero());
        points.extend([other, (other + Affine::generator()).into_affine()]);
    }
    let mut bytes = Vec::new();
    points.iter().for_each(|p| p.serialize_compressed(&mut bytes).unwrap());
    let decompress = Decompress::<C>::new(device, encoding, Check::Subgroup).unwrap();
    let (_, wrong) = decompress.try_decompress_host(&bytes).unwrap();
    let outside = points.iter().enumerate().filter(|(_, p)| !p.mul_bigint(order).is_zero());
    assert_eq!(wrong, outside.map(|(i, _)| (i, PointError::NotInSubgroup)).collect::<Vec<_>>());
    assert_eq!(wrong.len(), 12 + 2 * small.len());
}

#[test]
fn subgroups_are_told_from_what_is_outside() {
    check_membership::<ark_bn254::g2::Config>(&Device::cpu(), Encoding::Arkworks);
    check_membership::<ark_bn254::g2::Config>(&Device::wgpu(0).unwrap(), Encoding::Arkworks);
    check_membership::<ark_bls12_381::g1::Config>(&Device::cpu(), Encoding::Zcash);
    check_membership::<ark_bls12_381::g2::Config>(&Device::cpu(), Encoding::Zcash);
    check_membership::<ark_bls12_377::g1::Config>(&Device::cpu(), Encoding::Arkworks);
    check_membership::<ark_bls12_377::g2::Config>(&Device::cpu(), Encoding::Arkworks);
}

/// Members in every place of steps of which some are full, beside points that are outside, infinite or refused.
fn check_members<C: DeviceCurve<BaseField: RootField>>(encoding: Encoding) {
    const LEN: u64 = 37;
    let mut points: Vec<Affine<C>> =
        (1..=LEN).map(|k| (Projective::<C>::generator() * C::ScalarField::from(k)).into_affine()).collect();
    (points[5], points[9], points[20]) = (outside::<C>(), Affine::identity(), outside::<C>());
    let mut bytes = Vec::new();
    points.iter().for_each(|p| p.serialize_compressed(&mut bytes).unwrap());
    let decompress = Decompress::<C>::new(&Device::cpu(), encoding, Check::Subgroup).unwrap();
    (points[5], points[20]) = (Affine::identity(), Affine::identity());
    let refused = [5, 20].map(|i| (i, PointError::NotInSubgroup));
    let (found, wrong) = decompress.try_decompress_host(&bytes).unwrap();
    assert_eq!((found.to_vec().unwrap(), &wrong[..]), (points, &refused[..]));
}

#[test]
fn members_of_subgroups_are_found_in_every_place() {
    check_members::<ark_bls12_381::g1::Config>(Encoding::Zcash);
    check_members::<ark_bls12_381::g2::Config>(Encoding::Zcash);
    check_members::<ark_bls12_377::g1::Config>(Encoding::Arkworks);
    check_members::<ark_bls12_377::g2::Config>(Encoding::Arkworks);
    check_members::<ark_bn254::g2::Config>(Encoding::Arkworks);
}

/// Of the curves that have one, the scalar is that of the endomorphism: with the order, all of these checks would hold as well.
#[test]
fn scalars_of_subgroups_are_short() {
    fn bits<C: DeviceCurve<BaseField: RootField>>() -> Option<u64> {
        Membership::<C::BaseField>::of::<C>().map(|membership| membership.scalar.bits())
    }
    assert_eq!([bits::<ark_bls12_381::g1::Config>(), bits::<ark_bls12_381::g2::Config>()], [Some(128), Some(64)]);
    assert_eq!([bits::<ark_bls12_377::g1::Config>(), bits::<ark_bls12_377::g2::Config>()], [Some(127), Some(64)]);
    assert_eq!([bits::<ark_bn254::g1::Config>(), bits::<ark_bn254::g2::Config>()], [None, Some(127)]);
}

#[test]
fn maps_to_the_curve_are_those_of_rfc_9380() {
    use ark_bls12_381::{Fq, G1Affine, g1::Config as G1};

    // J.9.1, of the empty message: u[0] and u[1], and Q0 and Q1, in hexadecimal.
    const VECTORS: [[&str; 3]; 2] = [
        [
            "0ba14bd907ad64a016293ee7c2d276b8eae71f25a4b941eece7b0d89f17f75cb3ae5438a614fb61d6835ad59f29c564f",
            "11a3cce7e1d90975990066b2f2643b9540fa40d6137780df4e753a8054d07580db3b7f1f03396333d4a359d1fe3766fe",
            "0eeaf6d794e479e270da10fdaf768db4c96b650a74518fc67b04b03927754bac66f3ac720404f339ecdcc028afa091b7",
        ],
        [
            "019b9bd7979f12657976de2884c7cce192b82c177c80e0ec604436a7f538d231552f0d96d9f7babe5fa3b19b3ff25ac9",
            "160003aaf1632b13396dbad518effa00fff532f604de1a7fc2082ff4cb0afa2d63b2c32da1bef2bf6c5ca62dc6b72f9c",
            "0d8bb2d14e20cf9f6036152ed386d79189415b6d015a20133acb4e019139b94e9c146aaad5817f866c95d609a361735e",
        ],
    ];
    let element =
        |text: &str| text.chars().fold(Fq::ZERO, |x, c| x * Fq::from(16u8) + Fq::from(c.to_digit(16).unwrap()));
    let vectors = VECTORS.map(|vector| vector.map(element));
    for device in devices() {
        let map = MapToCurve::<G1>::new(&device).unwrap();
        let mut elements = sample::<Fq>(9);
        let mut expected: Vec<G1Affine> = elements.iter().map(|u| WBMap::<G1>::map_to_curve(*u).unwrap()).collect();
        elements.extend(vectors.map(|[u, ..]| u));
        expected.extend(vectors.map(|[_, x, y]| G1Affine::new_unchecked(x, y)));
        let uploaded = device.upload::<Mont<Fq>>(&elements).unwrap();
        let mut points = device.zeros(elements.len()).unwrap();
        map.map(&uploaded, &mut points).unwrap();
        let points: Vec<G1Affine> = points.to_vec().unwrap().into_iter().map(Into::into).collect();
        assert_eq!(points, expected);
    }
}

/// Elements without a pattern, 0, where the denominator of x would be 0, and those whose sign the second coefficient tells.
#[test]
fn maps_to_a_curve_over_an_extension_are_those_of_arkworks() {
    use ark_bls12_381::{Fq, Fq2, G2Affine, g2::Config as G2};

    let mut elements = sample::<Fq2>(9);
    elements.extend([Fq2::ZERO, Fq2::ONE, Fq2::new(Fq::ZERO, Fq::ONE), Fq2::new(Fq::ZERO, -Fq::ONE)]);
    let expected: Vec<G2Affine> = elements.iter().map(|u| WBMap::<G2>::map_to_curve(*u).unwrap()).collect();
    for device in devices() {
        let uploaded = device.upload::<Mont<Fq2>>(&elements).unwrap();
        let mut points = device.zeros(elements.len()).unwrap();
        MapToCurve::<G2>::new(&device).unwrap().map(&uploaded, &mut points).unwrap();
        let points: Vec<G2Affine> = points.to_vec().unwrap().into_iter().map(Into::into).collect();
        assert!(points == expected, "{}", device.info().name);
    }
}

/// The points of RFC 9380, J.9.1 and J.10.1, of the empty message, and of others by arkworks.
#[test]
fn hashes_to_curves_are_those_of_rfc_9380() {
    use ark_bls12_381::{Fq, Fq2, g1::Config as G1, g2::Config as G2};

    const G1_DOMAIN: &[u8] = b"QUUX-V01-CS02-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
    const G2_DOMAIN: &[u8] = b"QUUX-V01-CS02-with-BLS12381G2_XMD:SHA-256_SSWU_RO_";
    let element =
        |text: &str| text.chars().fold(Fq::ZERO, |x, c| x * Fq::from(16u8) + Fq::from(c.to_digit(16).unwrap()));
    let first = Affine::<G1>::new_unchecked(
        element("052926add2207b76ca4fa57a8734416c8dc95e24501772c814278700eed6d1e4e8cf62d9c09db0fac349612b759e79a1"),
        element("08ba738453bfed09cb546dbb0783dbb3a5f1f566ed67bb6be0e8c67e2e81a4cc68ee29813bb7994998f3eae0c9c6a265"),
    );
    let second = Affine::<G2>::new_unchecked(
        Fq2::new(
            element("0141ebfbdca40eb85b87142e130ab689c673cf60f1a3e98d69335266f30d9b8d4ac44c1038e9dcdd5393faf5c41fb78a"),
            element("05cb8437535e20ecffaef7752baddf98034139c38452458baeefab379ba13dff5bf5dd71b72418717047f5b0f37da03d"),
        ),
        Fq2::new(
            element("0503921d7f6a12805e72940b963c0cf3471c7b2a524950ca195d11062ee75ec076daf2d4bc358c4b190c0c98064fdd92"),
            element("12424ac32561493f3fe3c260708a12b7c620e7be00099a974e259ddc7d1f6395c3c811cdd19f1e8dbf3e9ecfdcbab8d6"),
        ),
    );
    for device in devices() {
        check_hashes(&device, G1_DOMAIN, first);
        check_hashes(&device, G2_DOMAIN, second);
        assert_eq!(HashToCurve::<G1>::new(&device, b"").unwrap_err(), Error::Domain);
    }
}

fn check_hashes<C>(device: &Device, domain: &[u8], of_nothing: Affine<C>)
where
    C: WBConfig + DeviceCurve<BaseField: RootField>,
{
    let mut messages = vec![String::new(), "abc".into()];
    messages.extend((0..3).map(|i| "message ".repeat(7 * i + 1)));
    let reference =
        MapToCurveBasedHasher::<Projective<C>, DefaultFieldHasher<sha2::Sha256>, WBMap<C>>::new(domain).unwrap();
    let expected: Vec<Affine<C>> = messages.iter().map(|message| reference.hash(message.as_bytes()).unwrap()).collect();
    assert!(expected[0] == of_nothing);
    let hash = HashToCurve::<C>::new(device, domain).unwrap();
    assert!(hash.hash(&messages).unwrap().to_vec().unwrap() == expected, "{}", device.info().name);
    let queue = device.queue().unwrap();
    assert!(hash.on(&queue).hash(&messages[..1]).unwrap().to_vec().unwrap() == expected[..1]);
    assert!(hash.hash::<&str>(&[]).unwrap().to_vec().unwrap().is_empty());
}

/// By squares, since arkworks' roots do not end.
#[test]
fn a_generator_that_is_a_square_has_all_roots() {
    let device = Device::cpu();
    let elements: Vec<Square17> = (0..17).map(Square17::from).collect();
    let squares: Vec<Square17> = elements.iter().map(|x| x.square()).collect();
    for method in Method::ALL.map(Some).into_iter().chain([None]) {
        let plan = match Sqrt::<Square17>::with(&device, Config { method, ..Config::default() }) {
            Err(Error::Method { .. }) => continue,
            plan => plan.unwrap(),
        };
        for (x, root) in elements.iter().zip(plan.sqrt_host(&elements).unwrap()) {
            assert_eq!(root.map(|root| root.square()), squares.contains(x).then_some(*x), "{method:?}");
        }
    }
}

/// x² = 4, which is no field.
struct Split;

impl Fp2Config for Split {
    type Fp = F13;

    const NONRESIDUE: F13 = MontFp!("4");
    const FROBENIUS_COEFF_FP2_C1: &'static [F13] = &[F13::ONE, MontFp!("-1")];
}

/// Curves like G1 of BLS12-381 but for what is said.
macro_rules! curves {
    ($($name:ident $b:literal $y:literal [$($cofactor:literal),*])*) => {$(
        #[derive(Debug)]
        struct $name;

        impl CurveConfig for $name {
            type BaseField = ark_bls12_381::Fq;
            type ScalarField = ark_bls12_381::Fr;

            const COFACTOR: &'static [u64] = &[$($cofactor),*];
            const COFACTOR_INV: ark_bls12_381::Fr = ark_bls12_381::Fr::ONE;
        }

        impl SWCurveConfig for $name {
            type ZeroFlag = bool;

            const COEFF_A: ark_bls12_381::Fq = MontFp!("0");
            const COEFF_B: ark_bls12_381::Fq = MontFp!($b);
            const GENERATOR: Affine<Self> = Affine::new_unchecked(
                MontFp!("3685416753713387016781088315183077757961620795782546409894578378688607592378376318836054947676345821548104185464507"),
                MontFp!($y),
            );
        }

        impl WBConfig for $name {
            type IsogenousCurve = <ark_bls12_381::g1::Config as WBConfig>::IsogenousCurve;

            const ISOGENY_MAP: IsogenyMap<'static, Self::IsogenousCurve, Self> = {
                let map = <ark_bls12_381::g1::Config as WBConfig>::ISOGENY_MAP;
                IsogenyMap {
                    x_map_numerator: map.x_map_numerator,
                    x_map_denominator: map.x_map_denominator,
                    y_map_numerator: map.y_map_numerator,
                    y_map_denominator: map.y_map_denominator,
                }
            };
        }
    )*};
}

curves! {
    Same "4" "1339506544944476473020471379941921221584933875938349620426543736416511423956333506472724655353366534992391756441569" [0x8c00aaab0000aaab, 0x396c8c005555e156]
    NoCofactor "4" "1339506544944476473020471379941921221584933875938349620426543736416511423956333506472724655353366534992391756441569" [1]
    OffTheCurve "4" "1339506544944476473020471379941921221584933875938349620426543736416511423956333506472724655353366534992391756441568" [0x8c00aaab0000aaab, 0x396c8c005555e156]
    Twisted "5" "1339506544944476473020471379941921221584933875938349620426543736416511423956333506472724655353366534992391756441569" [0x8c00aaab0000aaab, 0x396c8c005555e156]
}

#[test]
fn constants_that_do_not_hold_are_errors() {
    let device = Device::cpu();
    let composite = Error::Modulus { field: std::any::type_name::<Composite>() };
    assert_eq!(Sqrt::<Composite>::new(&device).unwrap_err(), composite);
    assert_eq!(Sqrt::<Fp2<Split>>::new(&device).unwrap_err(), Error::Square);

    fn refused<C: WBConfig + DeviceCurve<BaseField = ark_bls12_381::Fq>>(
        device: &Device,
    ) -> [Option<CurveConstant>; 3] {
        let of = |error: Error| match error {
            Error::Curve(CurveError { curve, constant }) if curve == std::any::type_name::<C>() => constant,
            other => panic!("{other}"),
        };
        let decompress = |check| Decompress::<C>::new(device, Encoding::Zcash, check).err();
        assert_eq!(decompress(Check::Curve), None, "the subgroup is not relied on");
        [decompress(Check::Subgroup), MapToCurve::<C>::new(device).err(), HashToCurve::<C>::new(device, b"tag").err()]
            .map(|error| error.map(of))
    }
    assert_eq!(refused::<Same>(&device), [None; 3]);
    let cofactor = Some(CurveConstant::Cofactor);
    assert_eq!(refused::<NoCofactor>(&device), [cofactor, None, cofactor]);
    let generator = Some(CurveConstant::Generator);
    assert_eq!(refused::<OffTheCurve>(&device), [generator, None, generator]);
    assert_eq!(refused::<Twisted>(&device), [generator, Some(CurveConstant::Isogeny), generator]);
}
