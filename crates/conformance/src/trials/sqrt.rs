//! Square roots and points from their encodings, compared with arkworks.

mod freed;
mod queues;
mod secrets;

use ark_bls12_381::{Fq2, Fr, g1, g2};
use ark_ec::{
    AffineRepr, CurveGroup, PrimeGroup,
    hashing::{HashToCurve as _, curve_maps::wb::WBMap, map_to_curve_hasher::MapToCurveBasedHasher},
    short_weierstrass::{Affine, Projective},
};
use ark_ff::{AdditiveGroup, Field, PrimeField, field_hashers::DefaultFieldHasher};
use ark_serialize::CanonicalSerialize;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use evariste::backend::{ByteCheck, Device, Element, Error as DeviceError};
use evariste::curve::{AffinePoint, DeviceCurve};
use evariste::field::{
    DeviceField, Mont,
    small::{BabyBear, Goldilocks},
};
use evariste::sqrt::{
    Check, Decompress, DecompressConfig, Encoding, Error, HashToCurve, Method, NthRoot, PointCheck, PointError,
    RootChoice, RootField, Sqrt, SqrtConfig, reference,
};

use crate::{
    area::Area,
    devices::{garbage, other_device},
    expect::{expect_equal, expect_same},
    harness::{DeviceTrials, Outcome},
    launches::KernelGroup,
    sizes::lengths,
};

pub(crate) const AREA: Area = Area {
    kernels: KERNELS,
    operations: secrets::OPERATIONS,
    freed: freed::FREED,
    without_operation: &[
        ("sqrt_frobenius", "messages that are hashed are public"),
        ("sqrt_multiple", "messages that are hashed are public"),
    ],
    ordered: queues::ORDERED,
    plans: queues::PLANS,
    ..Area::new("sqrt", add)
};

fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("bls12-381-fr::roots", roots::<Fr>);
    trials.add("bls12-381-fr::ratios_and_symbols", ratios_and_symbols);
    trials.add("bls12-381-fq2::roots", roots::<Fq2>);
    trials.add("bls12-381-g1::points", points);
    trials.add("bls12-381-g1::checked", checked::<g1::Config>);
    trials.add("bn254-g2::checked", checked::<ark_bn254::g2::Config>);
    trials.add("bls12-381-g2::hashes", hashes);
    trials.add("bls12-381-fr::warps", warps::<Fr>);
    trials.add("baby-bear::warps", warps::<BabyBear>);
    trials.add("bls12-381-fr::cube_roots", roots_of_degree::<Fr, 3>);
    trials.add("bn254-fr::cube_roots", roots_of_degree::<ark_bn254::Fr, 3>);
    trials.add("goldilocks::seventh_roots", roots_of_degree::<Goldilocks, 7>);
    trials.add("goldilocks::seventeenth_roots", roots_of_degree::<Goldilocks, 17>);
    trials.add("methods", methods);
    trials.add("views", views);
    trials.add("misuse", misuse);
}

const KERNELS: &[KernelGroup] = &[KernelGroup {
    name: "sqrt",
    cases: &["bls12-381-fr::", "bls12-381-g1::", "bls12-381-g2::"],
    kernels: |_| {
        let points = Decompress::<g1::Config>::kernels(Encoding::Zcash);
        let hashes = HashToCurve::<g2::Config>::kernels();
        let even = SqrtConfig::default().method(Method::Warp).choice(RootChoice::Even);
        let warps = Sqrt::<Fr>::kernels(&even).into_iter().filter(|spec| spec.name == "sqrt_warp").collect();
        let checked = PointCheck::<g1::Config>::kernels();
        let roots = Sqrt::<Fr>::kernels(&SqrtConfig::default());
        Ok([roots, NthRoot::<Fr>::kernels(3), warps, points, checked, hashes].concat())
    },
}];

/// Of roots and points: one workgroup, and one more.
const LENGTHS: [usize; 4] = [0, 1, 3, 257];

/// Squares and what is none, and the edges.
fn elements<F: Field>(len: usize) -> Vec<F> {
    let mut rng = StdRng::seed_from_u64(len as u64);
    let edges = [F::ZERO, F::ONE, -F::ONE];
    let random = (0..len).map(|i| {
        let x = F::rand(&mut rng);
        if i % 3 == 0 { x } else { x.square() }
    });
    edges.into_iter().chain(random).take(len).collect()
}

/// That these are the roots of elements, and that the mask says where there is none.
fn expect_roots<F: Field>(elements: &[F], roots: &[F], mask: &[u32]) -> Outcome {
    let is_square: Vec<u32> = elements.iter().map(|x| u32::from(!x.legendre().is_qnr())).collect();
    expect_same("the mask", mask, &is_square)?;
    let squares: Vec<F> = roots.iter().map(Field::square).collect();
    let expected: Vec<F> = elements.iter().zip(mask).map(|(x, one)| if *one == 1 { *x } else { F::ZERO }).collect();
    expect_same("the squares", &squares, &expected)
}

fn roots<F: RootField>(device: &Device) -> Outcome {
    let sqrt = Sqrt::<F>::new(device)?;
    for len in lengths(device, &LENGTHS) {
        let host = elements::<F>(len);
        let a = device.upload::<Mont<F>>(&host)?;
        let (mut out, mut mask) = (garbage::<Mont<F>>(device, len)?, garbage::<u32>(device, len)?);
        sqrt.sqrt(&a, &mut out, &mut mask)?;
        expect_roots(&host, &out.to_vec()?, &mask.to_vec()?)?;
    }
    Ok(())
}

fn ratios_and_symbols(device: &Device) -> Outcome {
    let sqrt = Sqrt::<Fr>::new(device)?;
    for len in lengths(device, &LENGTHS) {
        let (u, v): (Vec<Fr>, Vec<Fr>) = (elements(len), elements(len + 1)[1..].to_vec());
        let (du, dv) = (device.upload::<Mont<Fr>>(&u)?, device.upload::<Mont<Fr>>(&v)?);
        let (mut out, mut mask) = (garbage::<Mont<Fr>>(device, len)?, garbage::<u32>(device, len)?);
        sqrt.sqrt_ratio(&du, &dv, &mut out, &mut mask)?;
        let mask = mask.to_vec()?;
        let products: Vec<Fr> = out.to_vec()?.iter().zip(&v).map(|(y, v)| y.square() * v).collect();
        let expected: Vec<Fr> =
            u.iter().zip(&mask).map(|(u, one)| if *one == 1 { *u } else { sqrt.non_residue() * u }).collect();
        expect_same("y² v", &products, &expected)?;
        let squares = u.iter().zip(&v).map(|(u, v)| u32::from(!(*u * v).legendre().is_qnr())).collect::<Vec<_>>();
        expect_same("the mask", &mask, &squares)?;
        let mut symbols = garbage::<u32>(device, len)?;
        sqrt.legendre(&du, &mut symbols)?;
        let expected: Vec<u32> = u.iter().map(|x| reference::symbol(*x)).collect();
        expect_same("the symbols", &symbols.to_vec()?, &expected)?;
    }
    Ok(())
}

/// One element, and batches that end within a workgroup.
fn warps<F: RootField>(device: &Device) -> Outcome {
    let config = |method| SqrtConfig::default().method(method).choice(RootChoice::Even);
    let warp = Sqrt::<F>::with_config(device, config(Some(Method::Warp)))?;
    for len in lengths(device, &[1, 31, 33]) {
        let host = elements::<F>(len);
        let expected: Vec<_> = host.iter().map(|x| reference::root(*x, RootChoice::Even)).collect();
        expect_same(&format!("{len} roots"), &warp.sqrt_host(&host)?, &expected)?;
    }
    Ok(())
}

/// Powers and what is none; over BN254's scalar field 9 divides p − 1, and over Goldilocks 7 does not.
fn roots_of_degree<F: RootField + PrimeField, const DEGREE: u32>(device: &Device) -> Outcome {
    let plan = NthRoot::<F>::new(device, DEGREE)?;
    for len in lengths(device, &LENGTHS) {
        let mut host = elements::<F>(len);
        host.iter_mut().skip(3).step_by(2).for_each(|x| *x = x.pow([DEGREE.into()]));
        let a = device.upload::<Mont<F>>(&host)?;
        let (mut out, mut mask) = (garbage::<Mont<F>>(device, len)?, garbage::<u32>(device, len)?);
        plan.nth_root(&a, &mut out, &mut mask)?;
        let has_root: Vec<u32> = host.iter().map(|x| u32::from(reference::has_root(*x, DEGREE))).collect();
        expect_same("the mask", &mask.to_vec()?, &has_root)?;
        let powers: Vec<F> = out.to_vec()?.into_iter().map(|root: F| root.pow([DEGREE.into()])).collect();
        let expected: Vec<F> = host.iter().zip(&has_root).map(|(x, one)| *x * F::from(*one)).collect();
        expect_same("the powers", &powers, &expected)?;
    }
    let refused = NthRoot::<F>::new(device, 9).err();
    expect_equal("a composite degree", &refused, &Some(Error::Degree { expected: 61, actual: 9 }))
}

/// Every method of a prime with roots of unity of high order gives the same smaller roots.
fn methods(device: &Device) -> Outcome {
    let host = elements::<BabyBear>(33);
    let expected: Vec<_> = host.iter().map(|x| reference::root(*x, RootChoice::Smaller)).collect();
    for &method in Method::ALL {
        let config = SqrtConfig::default().method(method).choice(RootChoice::Smaller);
        let roots = match Sqrt::with_config(device, config) {
            Err(Error::Method { .. }) => continue,
            sqrt => sqrt?.sqrt_host(&host)?,
        };
        expect_same(&format!("{method:?}"), &roots, &expected)?;
    }
    Ok(())
}

/// Multiples of the generator and the point at infinity, with their encodings.
fn encoded(len: usize) -> Result<(Vec<Affine<g1::Config>>, Vec<u8>), ark_serialize::SerializationError> {
    let generator = Projective::<g1::Config>::generator();
    let multiples: Vec<_> = std::iter::successors(Some(-generator), |p| Some(*p + generator)).take(len).collect();
    let (points, mut bytes) = (Projective::normalize_batch(&multiples), Vec::new());
    points.iter().try_for_each(|p| p.serialize_compressed(&mut bytes))?;
    Ok((points, bytes))
}

fn points(device: &Device) -> Outcome {
    let decompress = Decompress::<g1::Config>::new(device, Encoding::Zcash)?;
    let each = decompress.point_bytes();
    for len in lengths(device, &LENGTHS) {
        let (mut expected, mut bytes) = encoded(len)?;
        let mut kinds = Vec::new();
        if len > 3 {
            bytes[each] = 0;
            bytes[2 * each..3 * each].fill(0xff);
            bytes[2 * each] = 0x9f;
            let mut x = ark_bls12_381::Fq::ONE;
            while Affine::<g1::Config>::get_point_from_x_unchecked(x, false).is_none() {
                x += ark_bls12_381::Fq::ONE;
            }
            let mut outside = Vec::new();
            x.serialize_compressed(&mut outside)?;
            outside.reverse();
            outside[0] |= 0x80;
            bytes[3 * each..4 * each].copy_from_slice(&outside);
            kinds = vec![(1, PointError::Flags), (2, PointError::NotCanonical), (3, PointError::NotInSubgroup)];
        }
        kinds.iter().for_each(|(i, _)| expected[*i] = Affine::identity());
        let bytes = device.upload::<u8>(&bytes)?;
        let (mut out, mut status) = (garbage::<AffinePoint<_>>(device, len)?, garbage::<u32>(device, len)?);
        decompress.decompress(&bytes, &mut out, &mut status)?;
        expect_same("points", &out.to_vec()?, &expected)?;
        let status = status.to_vec()?;
        let wrong: Vec<_> =
            status.iter().enumerate().filter_map(|(i, status)| Some((i, PointError::from_status(*status)?))).collect();
        expect_same("what is wrong", &wrong, &kinds)?;
    }
    Ok(())
}

/// Points of the subgroup, of the curve alone, off it, and with coordinates that are none, as bytes that came so.
fn checked<C: DeviceCurve<BaseField: RootField>>(device: &Device) -> Outcome {
    let mut x = C::BaseField::ONE;
    let outside = loop {
        let point = Affine::<C>::get_point_from_x_unchecked(x, true);
        match point.filter(|point| !point.is_in_correct_subgroup_assuming_on_curve()) {
            Some(point) => break point,
            None => x += C::BaseField::ONE,
        }
    };
    let generator = Affine::<C>::generator();
    let off = Affine::new_unchecked(generator.x, generator.y + C::BaseField::ONE);
    let [curve, subgroup] = [Check::Curve, Check::Subgroup].map(|check| PointCheck::<C>::new(device, check));
    let (curve, subgroup) = (curve?, subgroup?);
    for len in lengths(device, &[0, 1, 7, 300]) {
        let edges = [generator, Affine::zero(), outside, off, -generator];
        let host: Vec<_> = (0..len).map(|i| edges[i % edges.len()]).collect();
        let mut words = vec![0u32; len * AffinePoint::<C>::BYTES / 4];
        AffinePoint::<C>::encode(&host, bytemuck::cast_slice_mut(&mut words));
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        let mut wrong = Vec::new();
        if len > 6 {
            // y of an element that would be valid is p or more.
            bytes[6 * AffinePoint::<C>::BYTES..][..AffinePoint::<C>::BYTES].fill(0xff);
            wrong.push((6, PointError::NotCanonical));
        }
        let off_curve = (0..len).filter(|i| i % 5 == 3).map(|i| (i, PointError::NotOnCurve));
        let outsiders = (0..len).filter(|i| i % 5 == 2).map(|i| (i, PointError::NotInSubgroup));
        wrong.extend(off_curve);
        for (check, more) in [(&curve, vec![]), (&subgroup, outsiders.collect::<Vec<_>>())] {
            let mut wrong = [wrong.clone(), more].concat();
            wrong.sort_by_key(|(i, _)| *i);
            let mut points = device.upload_bytes::<AffinePoint<C>>(bytes, ByteCheck::None)?;
            expect_equal("what is wrong", &check.invalid(&mut points)?, &wrong)?;
            let mut expected = host.clone();
            wrong.iter().for_each(|(i, _)| expected[*i] = Affine::zero());
            expect_same("what is left", &points.to_vec()?, &expected)?;
            check.expect_valid(&mut points)?;
        }
    }
    // p in place of each coefficient of valid points, alone and of all: (p, p) is none of infinity's forms.
    let limbs = <C::BaseField as Field>::BasePrimeField::LIMBS;
    let modulus = <<C::BaseField as Field>::BasePrimeField as PrimeField>::MODULUS;
    let modulus: Vec<u32> = modulus.as_ref().iter().flat_map(|limb| [*limb as u32, (*limb >> 32) as u32]).collect();
    let coefficients = AffinePoint::<C>::BYTES / 4 / limbs;
    let mut words = vec![0u32; (coefficients + 1) * AffinePoint::<C>::BYTES / 4];
    AffinePoint::<C>::encode(&vec![generator; coefficients + 1], bytemuck::cast_slice_mut(&mut words));
    for (i, word) in words.iter_mut().enumerate() {
        let (point, coefficient) = (i / limbs / coefficients, i / limbs % coefficients);
        if point == coefficient || point == coefficients {
            *word = modulus[i % limbs];
        }
    }
    let mut points = device.upload_bytes::<AffinePoint<C>>(bytemuck::cast_slice(&words), ByteCheck::None)?;
    let refused: Vec<_> = (0..=coefficients).map(|i| (i, PointError::NotCanonical)).collect();
    expect_same("coefficients of p", &curve.invalid(&mut points)?, &refused)?;
    let mut points = device.zeros::<AffinePoint<C>>(3)?;
    let short = curve.check(&mut points, &mut device.zeros::<u32>(2)?).err();
    let length = DeviceError::Length { what: "the statuses", expected: 3, actual: 2 };
    expect_equal("statuses of another length", &short, &Some(Error::Device(length)))
}

/// Messages hashed to G2: the map over an extension, the endomorphism, and multiplications by one scalar.
fn hashes(device: &Device) -> Outcome {
    type Reference = MapToCurveBasedHasher<Projective<g2::Config>, DefaultFieldHasher<sha2::Sha256>, WBMap<g2::Config>>;

    let domain = b"EXAMPLE-V01-CS02-with-BLS12381G2_XMD:SHA-256_SSWU_RO_";
    let hash = HashToCurve::<g2::Config>::new(device, domain)?;
    let reference = Reference::new(domain).map_err(|error| error.to_string())?;
    for len in lengths(device, &[0, 1, 3, 130]) {
        let messages: Vec<[u8; 2]> = (0..len).map(|i| (i as u16).to_le_bytes()).collect();
        let expected = messages.iter().map(|message| reference.hash(message));
        let expected = expected.collect::<Result<Vec<Affine<_>>, _>>().map_err(|error| error.to_string())?;
        expect_same(&format!("{len} points"), &hash.hash_host(&messages)?.to_vec()?, &expected)?;
    }
    let refused = HashToCurve::<g2::Config>::new(device, b"").err();
    expect_equal("no domain", &refused, &Some(Error::Domain))
}

/// Parts of buffers, on another queue; what lies around them stays as it is.
fn views(device: &Device) -> Outcome {
    let queue = device.queue()?;
    let host = elements::<Fr>(40);
    let a = device.upload::<Mont<Fr>>(&host)?;
    let (mut out, mut mask) = (device.zeros::<Mont<Fr>>(40)?, device.zeros::<u32>(40)?);
    let ready = device.default_queue().record()?;
    queue.wait_for(&ready)?;
    let sqrt = Sqrt::<Fr>::new(device)?.on(&queue);
    sqrt.sqrt(a.view(3..36)?, out.view_mut(5..38)?, mask.view_mut(1..34)?)?;
    device.default_queue().wait_for(&queue.record()?)?;
    let (roots, mask) = (out.to_vec()?, mask.to_vec()?);
    expect_roots(&host[3..36], &roots[5..38], &mask[1..34])?;
    let around: Vec<_> = roots[..5].iter().chain(&roots[38..]).collect();
    expect_equal("elements around", &around.iter().all(|x| **x == Fr::ZERO), &true)?;
    expect_equal("the mask around", &(mask[0], &mask[34..]), &(0, &[0; 6][..]))
}

fn misuse(device: &Device) -> Outcome {
    let sqrt = Sqrt::<Fr>::new(device)?;
    let a = device.upload::<Mont<Fr>>(&elements::<Fr>(4))?;
    let (mut out, mut mask) = (device.zeros::<Mont<Fr>>(3)?, device.zeros::<u32>(4)?);
    let length = |what, expected, actual| Some(Error::Device(DeviceError::Length { what, expected, actual }));
    expect_equal("a short output", &sqrt.sqrt(&a, &mut out, &mut mask).err(), &length("the roots", 4, 3))?;
    let mut out = device.zeros::<Mont<Fr>>(4)?;
    let short = sqrt.sqrt(&a, &mut out, mask.view_mut(..3)?).err();
    expect_equal("a short mask", &short, &length("the mask", 4, 3))?;
    let decompress = Decompress::<g1::Config>::with_config(
        device,
        Encoding::Zcash,
        DecompressConfig::default().check(Check::Curve),
    )?;
    let bytes = device.zeros::<u8>(47)?;
    let mut points = device.zeros::<AffinePoint<g1::Config>>(1)?;
    let short = decompress.decompress(&bytes, &mut points, mask.view_mut(..1)?).err();
    expect_equal("a short encoding", &short, &length("the encodings, in bytes,", 48, 47))?;
    if let Some(other) = other_device(device) {
        let elsewhere = other.upload::<Mont<Fr>>(&elements::<Fr>(4))?;
        let (expected, actual) = (device.info().id, other.info().id);
        let refused = Error::Device(DeviceError::WrongDevice { what: "a kernel argument", expected, actual });
        expect_equal("elements elsewhere", &sqrt.sqrt(&elsewhere, &mut out, &mut mask).err(), &Some(refused))?;
    }
    expect_equal("untouched", &(out.to_vec()?, mask.to_vec()?), &(vec![Fr::ZERO; 4], vec![0; 4]))
}
