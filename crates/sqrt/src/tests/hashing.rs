use super::*;

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

/// Elements without a pattern, 0, where the denominator of x would be 0, and those whose sign the second coefficient
/// tells.
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
    // Every device hashes to the other group in a trial.
    check_hashes(&Device::cpu(), G2_DOMAIN, second);
    for device in devices() {
        check_hashes(&device, G1_DOMAIN, first);
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
    assert!(hash.hash_host(&messages).unwrap().to_vec().unwrap() == expected, "{}", device.info().name);
    let queue = device.queue().unwrap();
    assert!(hash.on(&queue).hash_host(&messages[..1]).unwrap().to_vec().unwrap() == expected[..1]);
    assert!(hash.hash_host::<&str>(&[]).unwrap().to_vec().unwrap().is_empty());
}
