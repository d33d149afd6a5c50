use super::*;

/// Squares and what is none, and the edges.
pub(super) fn sample<F: RootField>(len: usize) -> Vec<F> {
    let mut rng = ark_std::test_rng();
    let mut all = vec![F::ZERO, F::ONE, -F::ONE];
    all.extend((3..len).map(|i| {
        let x = F::rand(&mut rng);
        if i % 3 == 0 { x } else { x.square() }
    }));
    all
}

fn check<F: RootField>(device: &Device, elements: &[F], config: SqrtConfig<F>) {
    let sqrt = Sqrt::<F>::with_config(device, config).unwrap();
    for (x, root) in elements.iter().zip(sqrt.sqrt_host(elements).unwrap()) {
        let message = format!("{:?} of {x} on {device:?}", sqrt.method());
        match config.choice {
            RootChoice::Any => {
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
    sqrt.legendre(&u, &mut symbols).unwrap();
    assert_eq!(symbols.to_vec().unwrap(), elements.iter().map(|x| reference::symbol(*x)).collect::<Vec<_>>());
    if F::extension_degree() > 1 {
        return;
    }
    let mut reversed = elements.to_vec();
    reversed.reverse();
    let v = device.upload::<Mont<F>>(&reversed).unwrap();
    let (mut out, mut mask) = (device.alloc::<Mont<F>>(n).unwrap(), device.alloc(n).unwrap());
    sqrt.sqrt_ratio(&u, &v, &mut out, &mut mask).unwrap();
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
    for choice in RootChoice::ALL {
        check(&device, elements, SqrtConfig::default().choice(choice));
    }
    check_ratios_and_symbols(&device, elements);
    for &method in Method::ALL {
        let config = SqrtConfig::default().method(method);
        match Sqrt::<F>::with_config(&device, config) {
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
    for choice in RootChoice::ALL {
        let device = Device::cpu();
        let mut edges: Vec<_> = [4u8, 5, 6, 7].map(ark_bls12_381::Fq2::from).to_vec();
        edges.extend(edges.clone().iter().map(|x| *x * ark_bls12_381::Fq2::new(0u8.into(), 1u8.into())));
        edges.extend(sample::<ark_bls12_381::Fq2>(9));
        check(&device, &edges, SqrtConfig::default().choice(choice));
        check(&device, &sample::<ark_bls12_377::Fq2>(9), SqrtConfig::default().choice(choice));
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
        let config = SqrtConfig::default().choice(RootChoice::Smaller);
        check(&device, &sample::<ark_bls12_381::Fr>(9), config);
        check(&device, &sample::<ark_bls12_381::Fq2>(9), SqrtConfig::default().choice(RootChoice::Larger));
        check_ratios_and_symbols(&device, &sample::<ark_bls12_381::Fr>(9));
        for method in [Method::Cipolla, Method::Sze, Method::NeededColumns, Method::Warp] {
            check(&device, &sample::<BabyBear>(9), SqrtConfig::default().method(method));
        }
        check(&device, &(0..41u8).map(F41::from).collect::<Vec<_>>(), SqrtConfig::default().choice(RootChoice::Even));
    }
}

/// Fields with no column beside the root, with fewer than lanes, the same number, and more; batches that end within a
/// workgroup.
#[test]
fn warps_have_the_same_roots() {
    fn same<F: RootField>(device: &Device) {
        let sqrt =
            |method| Sqrt::<F>::with_config(device, SqrtConfig::default().method(method).choice(RootChoice::Larger));
        let (warp, best) = (sqrt(Some(Method::Warp)).unwrap(), sqrt(None).unwrap());
        for len in [1, 2, 3, 4, 5, 31, 33] {
            let elements = &sample::<F>(len.max(3))[..len];
            assert_eq!(warp.sqrt_host(elements).unwrap(), best.sqrt_host(elements).unwrap(), "{len} on {device:?}");
        }
        assert!(warp.sqrt_host(&[]).unwrap().is_empty());
    }
    // A trial has this one on every device.
    same::<ark_bls12_381::Fr>(&Device::cpu());
    for device in devices() {
        same::<F3>(&device);
        same::<F7>(&device);
        same::<F17>(&device);
        same::<F41>(&device);
        same::<BabyBear>(&device);
        same::<Goldilocks>(&device);
        same::<ark_bls12_377::Fr>(&device);
    }
}

fn check_degree<F: RootField + PrimeField>(device: &Device, elements: &[F], degree: u32) {
    let plan = NthRoot::<F>::new(device, degree).unwrap();
    let order: BigUint = F::MODULUS.into() - 1u8;
    let (unit, divides) = (plan.root_of_unity(), (&order % degree) == BigUint::ZERO);
    assert_eq!((unit != F::ONE, unit.pow([degree.into()])), (divides, F::ONE));
    for (x, root) in elements.iter().zip(plan.nth_root_host(elements).unwrap()) {
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
    assert_eq!(plan.nth_root(&a, &mut out, &mut mask), Err(length));
    assert_eq!(NthRoot::<ark_bls12_381::Fr>::new(&device, 3).unwrap().products(), 311);
}

#[test]
fn costs_are_as_documented() {
    fn products<F: RootField>(method: Option<Method>) -> (Method, u64) {
        let sqrt = Sqrt::<F>::with_config(&Device::cpu(), SqrtConfig::default().method(method)).unwrap();
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
    let square = SqrtConfig::default().non_residue(F97::from(4u8));
    assert_eq!(Sqrt::with_config(&device, square).unwrap_err(), Error::Square);
    let degree = Sqrt::<ark_bls12_381::Fq6>::new(&device).unwrap_err();
    assert_eq!(degree, Error::Field { what: "roots", degree: 6 });
}

#[test]
fn parts_are_all_of_a_batch() {
    let parts = |len, each| crate::kernel::parts(len, each).collect::<Vec<_>>();
    assert_eq!(parts(293, 128), [0..128, 128..256, 256..293]);
    assert_eq!(parts(256, 128), [0..128, 128..256]);
    assert_eq!(parts(0, 128), std::slice::from_ref(&(0..0)));
}

/// Two workgroups and a part of one, at once or in launches of one each.
#[test]
fn many_elements_are_divided_into_launches() {
    const EACH: usize = 128;
    for device in [Device::cpu()].into_iter().chain(vulkan()) {
        let elements: Vec<_> = (0..97u8).cycle().map(F97::from).take(2 * EACH + 37).collect();
        let u = device.upload::<Mont<F97>>(&elements).unwrap();
        let v = device.upload::<Mont<F97>>(&elements.iter().map(|x| *x + F97::ONE).collect::<Vec<_>>()).unwrap();
        let run = |sqrt: &Sqrt<F97>, ratios: bool| {
            let mut out = device.upload::<Mont<F97>>(&vec![F97::from(5u8); elements.len()]).unwrap();
            let mut mask = device.upload(&vec![7u32; elements.len()]).unwrap();
            match ratios {
                false => sqrt.sqrt(&u, &mut out, &mut mask).unwrap(),
                true => sqrt.sqrt_ratio(&u, &v, &mut out, &mut mask).unwrap(),
            }
            (out.to_vec().unwrap(), mask.to_vec().unwrap())
        };
        let sqrt = Sqrt::<F97>::new(&device).unwrap();
        let expected = [false, true].map(|ratios| run(&sqrt, ratios));
        let sqrt = sqrt.in_launches_of(EACH);
        assert!([false, true].map(|ratios| run(&sqrt, ratios)) == expected);
        let warp = SqrtConfig::default().method(Method::Warp);
        let sqrt = Sqrt::<F97>::with_config(&device, warp).unwrap();
        let whole = run(&sqrt, false);
        assert_eq!(whole.1, expected[0].1);
        assert!(run(&sqrt.in_launches_of(EACH / 4), false) == whole);
    }
}
