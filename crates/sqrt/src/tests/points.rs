use super::*;

/// The last launch of points has one, which is refused; the 127 digits of the subgroup's scalar take three launches for
/// each part.
#[test]
fn many_points_are_divided_into_launches() {
    use ark_bls12_381::{Fq, g1::Config as G1};

    let (_, mut bytes) = encoded::<G1>();
    outside::<G1>().serialize_compressed(&mut bytes).unwrap();
    outside::<G1>().serialize_compressed(&mut bytes).unwrap();
    for device in [Device::cpu()].into_iter().chain(emulator()) {
        let run = |decompress: &Decompress<G1>| {
            let (points, wrong) = decompress.try_decompress_host(&bytes).unwrap();
            (points.to_vec().unwrap(), wrong)
        };
        let decompress = Decompress::<G1>::new(&device, Encoding::Zcash).unwrap();
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
    let decompress = Decompress::<C>::new(device, encoding).unwrap();
    let (mut points, mut bytes) = encoded::<C>();
    assert_eq!(bytes.len(), points.len() * decompress.point_bytes());
    assert_eq!(decompress.decompress_host(&bytes).unwrap().to_vec().unwrap(), points);
    let mut expected = Vec::new();
    if !C::cofactor_is_one() {
        points.push(outside::<C>());
        points.last().unwrap().serialize_compressed(&mut bytes).unwrap();
        expected.push((points.len() - 1, PointError::NotInSubgroup));
        let unchecked =
            Decompress::<C>::with_config(device, encoding, DecompressConfig::default().check(Check::Curve)).unwrap();
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
    let refused = Decompress::<ark_pallas::PallasConfig>::with_config(
        &device,
        Encoding::Zcash,
        DecompressConfig::default().check(Check::Curve),
    )
    .unwrap_err();
    assert_eq!(refused, Error::Flags { expected: 3, actual: 1 });
}

/// arkworks reads points whose last byte has any of the six bits that nothing needs, which would be 64 encodings of a
/// point.
#[test]
fn bits_that_nothing_needs_are_refused_where_arkworks_ignores_them() {
    type C = ark_pallas::PallasConfig;

    let decompress = Decompress::<C>::new(&Device::cpu(), Encoding::Arkworks).unwrap();
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
    check_points::<ark_bls12_381::g1::Config>(&Device::cpu(), Encoding::Zcash);
    // A trial has points over one prime on every device.
    for device in vulkan().into_iter().chain(emulator()) {
        check_points::<ark_bls12_381::g2::Config>(&device, Encoding::Zcash);
        check_points::<ark_pallas::PallasConfig>(&device, Encoding::Arkworks);
    }
}

/// Points of the whole curve, of the subgroup, of the other one, and sums of those; also where the other one is small,
/// so that multiples of points are infinite on the way to that by the scalar.
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
    let decompress = Decompress::<C>::new(device, encoding).unwrap();
    let (_, wrong) = decompress.try_decompress_host(&bytes).unwrap();
    let outside = points.iter().enumerate().filter(|(_, p)| !p.mul_bigint(order).is_zero());
    assert_eq!(wrong, outside.map(|(i, _)| (i, PointError::NotInSubgroup)).collect::<Vec<_>>());
    assert_eq!(wrong.len(), 12 + 2 * small.len());
}

#[test]
fn subgroups_are_told_from_what_is_outside() {
    check_membership::<ark_bn254::g2::Config>(&Device::cpu(), Encoding::Arkworks);
    if let Some(device) = vulkan() {
        check_membership::<ark_bn254::g2::Config>(&device, Encoding::Arkworks);
    }
    check_membership::<ark_bls12_381::g1::Config>(&Device::cpu(), Encoding::Zcash);
    check_membership::<ark_bls12_381::g2::Config>(&Device::cpu(), Encoding::Zcash);
    check_membership::<ark_bls12_377::g1::Config>(&Device::cpu(), Encoding::Arkworks);
    check_membership::<ark_bls12_377::g2::Config>(&Device::cpu(), Encoding::Arkworks);
}

/// Members in every place of steps, full or not, beside points that are outside, infinite or refused.
fn check_members<C: DeviceCurve<BaseField: RootField>>(encoding: Encoding) {
    const LEN: u64 = 37;
    let mut points: Vec<Affine<C>> =
        (1..=LEN).map(|k| (Projective::<C>::generator() * C::ScalarField::from(k)).into_affine()).collect();
    (points[5], points[9], points[20]) = (outside::<C>(), Affine::identity(), outside::<C>());
    let mut bytes = Vec::new();
    points.iter().for_each(|p| p.serialize_compressed(&mut bytes).unwrap());
    let decompress = Decompress::<C>::new(&Device::cpu(), encoding).unwrap();
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

/// Of the curves that have one, the scalar is that of the endomorphism: with the order, all of these checks would hold
/// as well.
#[test]
fn scalars_of_subgroups_are_short() {
    fn bits<C: DeviceCurve<BaseField: RootField>>() -> Option<u64> {
        Membership::<C::BaseField>::of::<C>().map(|membership| membership.scalar.bits())
    }
    assert_eq!([bits::<ark_bls12_381::g1::Config>(), bits::<ark_bls12_381::g2::Config>()], [Some(128), Some(64)]);
    assert_eq!([bits::<ark_bls12_377::g1::Config>(), bits::<ark_bls12_377::g2::Config>()], [Some(127), Some(64)]);
    assert_eq!([bits::<ark_bn254::g1::Config>(), bits::<ark_bn254::g2::Config>()], [None, Some(127)]);
}
