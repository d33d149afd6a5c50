//! Elements and vector operations over every field.

mod boundaries;
mod loops;
mod matrix;
mod queues;
mod secrets;
mod vector;

use std::iter;

use ark_ff::{BigInteger, PrimeField};
use evariste::backend::{Buffer, Device, Element, Error, Secrecy, Transfer, author::KernelSpec};
use evariste::field::{
    Canonical, DeviceField, DevicePrimeField, Expression, Mont, SparseMatrix, Vector, reference, small,
};
use evariste_microbench::{MULTIPLICATIONS, MulChain, Place, Products, Sharing, Step};

use crate::{
    area::Area,
    devices::{garbage, other_device},
    expect::{expect_equal, expect_error, expect_same},
    fields::{self, EVERY_FIELD},
    harness::{DeviceTrials, Outcome},
    launches::{Exception, KernelGroup, Launched},
    samples::samples,
    sizes::lengths,
};

pub(crate) const AREA: Area = Area {
    kernels: KERNELS,
    // Of serial products, a workgroup of one thread makes all.
    exceptions: &[Exception::new("products", "Serial", Launched::ByOne)],
    operations: secrets::OPERATIONS,
    without_operation: &[("mul_chain", "it is for benches"), ("products", "it is for benches")],
    ordered: queues::ORDERED,
    boundaries: boundaries::BOUNDARIES,
    divided: loops::DIVIDED,
    plans: queues::PLANS,
    ..Area::new("field", add)
};

fn add(trials: &mut DeviceTrials<'_>) {
    // The arithmetic of one field of each number of limbs and shape of modulus, and of an extension of each kind of base;
    // all operations over a long field, short ones, and an extension.
    prime::<ark_bls12_381::Fr>(trials, "bls12-381-fr");
    vector::add::<ark_bls12_381::Fr>(trials, "bls12-381-fr");
    matrix::add::<ark_bls12_381::Fr>(trials, "bls12-381-fr");
    prime::<ark_bls12_381::Fq>(trials, "bls12-381-fq");
    prime::<small::Goldilocks>(trials, "goldilocks");
    vector::add::<small::Goldilocks>(trials, "goldilocks");
    matrix::add::<small::Goldilocks>(trials, "goldilocks");
    prime::<small::BabyBear>(trials, "baby-bear");
    vector::add::<small::BabyBear>(trials, "baby-bear");
    matrix::add::<small::BabyBear>(trials, "baby-bear");
    prime::<fields::Mersenne89>(trials, "mersenne-89");
    prime::<fields::Secp256k1>(trials, "secp256k1-fq");
    over::<ark_bls12_381::Fq2>(trials, "bls12-381-fq2");
    over::<small::BabyBear4>(trials, "baby-bear-4");
    vector::add::<small::BabyBear4>(trials, "baby-bear-4");
    matrix::add::<small::BabyBear4>(trials, "baby-bear-4");

    // Arithmetic over half a limb, with spare bits of other numbers, over the most limbs, over arkworks' other types,
    // and over extensions of the other degrees.
    prime::<fields::Sixteen>(trials, "sixteen-bit");
    prime::<ark_bn254::Fr>(trials, "bn254-fr");
    prime::<ark_bls12_377::Fr>(trials, "bls12-377-fr");
    prime::<fields::Mnt4>(trials, "mnt4-753-fr");
    prime::<fields::SmallBabyBear>(trials, "small-fp-31");
    prime::<fields::SmallGoldilocks>(trials, "small-fp-64");
    over::<fields::Goldilocks2>(trials, "goldilocks-fp2");
    over::<small::Goldilocks3>(trials, "goldilocks-3");
    over::<small::KoalaBear5>(trials, "koala-bear-5");
    if EVERY_FIELD {
        vector::add::<ark_bls12_381::Fq>(trials, "bls12-381-fq");
        matrix::add::<ark_bls12_381::Fq>(trials, "bls12-381-fq");
        vector::add::<fields::Mersenne89>(trials, "mersenne-89");
        matrix::add::<fields::Mersenne89>(trials, "mersenne-89");
        vector::add::<fields::Secp256k1>(trials, "secp256k1-fq");
        matrix::add::<fields::Secp256k1>(trials, "secp256k1-fq");
        vector::add::<ark_bls12_381::Fq2>(trials, "bls12-381-fq2");
        matrix::add::<ark_bls12_381::Fq2>(trials, "bls12-381-fq2");
        vector::add::<ark_bn254::Fr>(trials, "bn254-fr");
        matrix::add::<ark_bn254::Fr>(trials, "bn254-fr");
        vector::add::<fields::Mnt4>(trials, "mnt4-753-fr");
        matrix::add::<fields::Mnt4>(trials, "mnt4-753-fr");
        vector::add::<small::Goldilocks3>(trials, "goldilocks-3");
        matrix::add::<small::Goldilocks3>(trials, "goldilocks-3");
        prime::<ark_bn254::Fq>(trials, "bn254-fq");
        prime::<ark_bls12_377::Fq>(trials, "bls12-377-fq");
        prime::<ark_pallas::Fq>(trials, "pallas-fq");
        prime::<ark_vesta::Fq>(trials, "vesta-fq");
        prime::<small::KoalaBear>(trials, "koala-bear");
        prime::<small::Mersenne31>(trials, "mersenne-31");
        prime::<evariste_bls24_315::Fq>(trials, "bls24-315-fq");
        over::<ark_bn254::Fq2>(trials, "bn254-fq2");
        over::<small::Goldilocks2>(trials, "goldilocks-2");
        over::<small::Goldilocks4>(trials, "goldilocks-4");
        over::<small::Goldilocks5>(trials, "goldilocks-5");
        over::<small::BabyBear2>(trials, "baby-bear-2");
        over::<small::BabyBear3>(trials, "baby-bear-3");
        over::<small::BabyBear5>(trials, "baby-bear-5");
        over::<small::KoalaBear2>(trials, "koala-bear-2");
        over::<small::KoalaBear3>(trials, "koala-bear-3");
        over::<small::KoalaBear4>(trials, "koala-bear-4");
    }
    vector::add_once(trials);
    matrix::add_once(trials);
    trials.add("long_powers", loops::long_powers);
    trials.add("long_products", loops::long_products);
    trials.add("goldilocks::misuse", misuse::<small::Goldilocks>);
    trials.add("bls12-381-fr::misuse", misuse::<ark_bls12_381::Fr>);

    // One of each kind that multiplication has a way of its own for.
    trials.add("bls12-381-fr::products", products::<ark_bls12_381::Fr>);
    trials.add("bls12-381-fr::chains", chains::<ark_bls12_381::Fr>);
    trials.add("bn254-fr::chains", chains::<ark_bn254::Fr>);
    trials.add("bls12-377-fr::chains", chains::<ark_bls12_377::Fr>);
    trials.add("bls12-381-fq::chains", chains::<ark_bls12_381::Fq>);
    trials.add("secp256k1-fq::chains", chains::<fields::Secp256k1>);
    trials.add("mersenne-89::chains", chains::<fields::Mersenne89>);
    trials.add("goldilocks::chains", chains::<small::Goldilocks>);
    trials.add("baby-bear::chains", chains::<small::BabyBear>);
    trials.add("bls12-381-fq2::chains", chains::<ark_bls12_381::Fq2>);
    trials.add("goldilocks-3::chains", chains::<small::Goldilocks3>);
    trials.add("baby-bear-4::chains", chains::<small::BabyBear4>);
}

const KERNELS: &[KernelGroup] = if EVERY_FIELD { &[LONG, LONGER, SMALL] } else { &[LONG, SMALL] };

const LONG: KernelGroup = KernelGroup {
    name: "vector-long",
    cases: if EVERY_FIELD {
        &["bls12-381-fr::", "secp256k1-fq::", "mersenne-89::", "bn254-fr::"]
    } else {
        &["bls12-381-fr::"]
    },
    kernels: |_| {
        let mut kernels = [vector_kernels::<ark_bls12_381::Fr>(), product_kernels::<ark_bls12_381::Fr>()].concat();
        if EVERY_FIELD {
            kernels.extend(vector_kernels::<fields::Secp256k1>());
            kernels.extend(vector_kernels::<fields::Mersenne89>());
            kernels.extend(vector_kernels::<ark_bn254::Fr>());
        }
        Ok(kernels)
    },
};

/// Apart, since the emulator takes longest with it.
const LONGER: KernelGroup = KernelGroup {
    name: "vector-longer",
    cases: &["bls12-381-fq::", "bls12-381-fq2::"],
    kernels: |_| {
        // The elements of the one are pairs of the other's.
        Ok([vector_kernels::<ark_bls12_381::Fq2>(), vector_kernels::<ark_bls12_381::Fq>()].concat())
    },
};

const SMALL: KernelGroup = KernelGroup {
    name: "vector-small",
    cases: if EVERY_FIELD {
        &["goldilocks::", "baby-bear::", "baby-bear-4::", "goldilocks-3::"]
    } else {
        &["goldilocks::", "baby-bear::", "baby-bear-4::"]
    },
    kernels: |_| {
        let fields = [
            vector_kernels::<small::Goldilocks>(),
            vector_kernels::<small::BabyBear>(),
            vector_kernels::<small::BabyBear4>(),
            if EVERY_FIELD { vector_kernels::<small::Goldilocks3>() } else { Vec::new() },
        ];
        Ok(fields.concat())
    },
};

fn vector_kernels<F: DeviceField>() -> Vec<KernelSpec> {
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    let chains = Step::ALL.map(MulChain::<F>::kernel);
    let mut kernels = Vector::<F>::kernels();
    kernels.extend(SparseMatrix::<F>::kernels());
    let gate = a * b - c;
    kernels.extend([Vector::<F>::expression_kernel(&gate), Vector::<F>::sum_expression_kernel(&gate)]);
    kernels.extend(chains);
    kernels
}

fn product_kernels<F: DeviceField>() -> Vec<KernelSpec> {
    let places = Place::ALL.into_iter();
    places.flat_map(|place| Sharing::ALL.map(|sharing| Products::<F>::kernel(place, sharing))).collect()
}

fn prime<F: DevicePrimeField<BasePrimeField: DeviceField>>(trials: &mut DeviceTrials<'_>, field: &str) {
    trials.add(&format!("{field}::canonical"), canonical::<F>);
    over::<F>(trials, field);
}

fn over<F: DeviceField<BasePrimeField: DeviceField>>(trials: &mut DeviceTrials<'_>, field: &str) {
    trials.add(&format!("{field}::elements"), elements::<F>);
    trials.add(&format!("{field}::operations"), operations::<F>);
    trials.add(&format!("{field}::inverse"), inverse::<F>);
    trials.add(&format!("{field}::powers"), powers::<F>);
}

const LENGTHS: [usize; 7] = [0, 1, 2, 255, 257, 1000, 9000];

fn elements<F: DeviceField<BasePrimeField: DeviceField>>(device: &Device) -> Outcome {
    for len in lengths(device, &LENGTHS) {
        let x = samples::<F>(len, 1);
        expect_same("Montgomery form", &device.upload::<Mont<F>>(&x)?.to_vec()?, &x)?;
    }
    expect_same("zero bytes are zero", &device.zeros::<Mont<F>>(9)?.to_vec()?, &[F::ZERO; 9])?;
    // p and more are no elements, whichever coefficient they are of.
    let limbs = <F::BasePrimeField as DeviceField>::LIMBS;
    let modulus = F::BasePrimeField::MODULUS;
    let words = modulus.as_ref().iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]);
    let modulus: Vec<u32> = words.take(limbs).collect();
    for at in (0..F::LIMBS).step_by(limbs) {
        for wrong in [&modulus, &vec![u32::MAX; limbs]] {
            let mut host = device.host_buffer(3 * Mont::<F>::BYTES, Transfer::Both, Secrecy::Public)?;
            host.fill(0);
            host[Mont::<F>::BYTES + 4 * at..][..4 * limbs].copy_from_slice(bytemuck::cast_slice(wrong));
            let mut x = device.alloc::<Mont<F>>(3)?;
            x.write_pinned(host)?.wait()?;
            let error = expect_error("what is no element", x.to_vec())?;
            expect_equal("element", &error, &Error::Undecodable { index: 1 })?;
        }
    }
    Ok(())
}

/// What lies on the device is the integer itself, in little-endian bytes.
fn canonical<F: DevicePrimeField>(device: &Device) -> Outcome {
    let bytes = Canonical::<F>::BYTES;
    for len in lengths(device, &LENGTHS) {
        let x = samples::<F>(len, 1);
        let integers: Vec<u8> = x
            .iter()
            .flat_map(|x| x.into_bigint().to_bytes_le().into_iter().chain(iter::repeat(0)).take(bytes))
            .collect();
        let uploaded = device.upload::<Canonical<F>>(&x)?;
        let host = device.host_buffer(len * bytes, Transfer::Both, Secrecy::Public)?;
        let mut host = uploaded.read_pinned(host)?.wait()?;
        expect_same("bytes on the device", &host, &integers)?;

        host.copy_from_slice(&integers);
        let mut written = garbage::<Canonical<F>>(device, len)?;
        written.write_pinned(host)?.wait()?;
        expect_same("elements of the bytes", &written.to_vec()?, &x)?;
    }
    Ok(())
}

fn operations<F: DeviceField>(device: &Device) -> Outcome {
    type Binary<F> = fn(&Vector<F>, &Buffer<Mont<F>>, &Buffer<Mont<F>>, &mut Buffer<Mont<F>>) -> Result<(), Error>;
    type Assign<F> = fn(&Vector<F>, &mut Buffer<Mont<F>>, &Buffer<Mont<F>>) -> Result<(), Error>;
    type Case<F> = (&'static str, Binary<F>, Assign<F>, fn(F, F) -> F);

    let vector = Vector::<F>::new(device);
    let cases: [Case<F>; 3] = [
        ("add", |v, a, b, out| v.add(a, b, out), |v, a, b| v.add_assign(a, b), |a, b| a + b),
        ("sub", |v, a, b, out| v.sub(a, b, out), |v, a, b| v.sub_assign(a, b), |a, b| a - b),
        ("mul", |v, a, b, out| v.mul(a, b, out), |v, a, b| v.mul_assign(a, b), |a, b| a * b),
    ];
    for len in lengths(device, &LENGTHS) {
        let (a, b) = (samples::<F>(len, 2), samples::<F>(len, 3));
        let (mut da, db) = (device.upload::<Mont<F>>(&a)?, device.upload::<Mont<F>>(&b)?);
        let mut out = garbage(device, len)?;
        for (name, apply, assign, scalar) in cases {
            let expected = reference::pointwise(&a, &b, scalar);
            apply(&vector, &da, &db, &mut out)?;
            expect_same(name, &out.to_vec()?, &expected)?;
            assign(&vector, &mut da, &db)?;
            expect_same(&format!("{name} in place"), &da.to_vec()?, &expected)?;
            da.write(&a)?;
        }
    }
    Ok(())
}

fn inverse<F: DeviceField>(device: &Device) -> Outcome {
    let vector = Vector::<F>::new(device);
    for len in lengths(device, &LENGTHS) {
        let mut a = samples::<F>(len, 4);
        a.iter_mut().skip(100).step_by(97).for_each(|x| *x = F::ZERO);
        let mut out = garbage(device, len)?;
        vector.inverse(&device.upload(&a)?, &mut out)?;
        expect_same("inverse", &out.to_vec()?, &reference::inverse(&a))?;
    }
    // Inversions of the edge values themselves, and not of products of elements.
    for x in samples::<F>(8, 0) {
        let mut out = garbage(device, 1)?;
        vector.inverse(&device.upload(&[x])?, &mut out)?;
        expect_same("inverse of one element", &out.to_vec()?, &reference::inverse(&[x]))?;
    }
    let mut out = garbage(device, 1000)?;
    vector.inverse(&device.zeros(1000)?, &mut out)?;
    expect_same("inverse of zeros", &out.to_vec()?, &[F::ZERO; 1000])
}

fn powers<F: DeviceField>(device: &Device) -> Outcome {
    let vector = Vector::<F>::new(device);
    let base = samples::<F>(70, 5)[69];
    for len in lengths(device, &LENGTHS) {
        let mut out = device.zeros(len + 7)?;
        vector.powers(base, F::from(5u8), out.view_mut(3..len + 3)?)?;
        let mut expected = vec![F::ZERO; len + 7];
        expected[3..len + 3].copy_from_slice(&reference::powers(base, F::from(5u8), len));
        expect_same("powers", &out.to_vec()?, &expected)?;
    }
    let mut out = garbage(device, 3)?;
    vector.powers(F::ZERO, F::ONE, &mut out)?;
    expect_same("powers of zero", &out.to_vec()?, &[F::ONE, F::ZERO, F::ZERO])
}

/// Products in every memory, whose rates are compared.
fn products<F: DeviceField>(device: &Device) -> Outcome {
    for (place, sharing) in Place::ALL.into_iter().flat_map(|place| Sharing::ALL.map(|sharing| (place, sharing))) {
        let products = Products::new(device, place, sharing)?;
        for len in [1, 100, 300] {
            let (a, b, before) = (samples::<F>(len, 8), samples::<F>(len, 9), samples::<F>(len, 10));
            let mut out = device.upload(&before)?;
            products.run(&device.upload(&a)?, &device.upload(&b)?, &mut out)?;
            let mut expected = reference::pointwise(&a, &b, |a, b| a * b);
            expected.iter_mut().zip(&before).filter(|(product, _)| !place.writes(*product)).for_each(|(x, y)| *x = *y);
            expect_same(&format!("{len}, {place:?}, {sharing:?}"), &out.to_vec()?, &expected)?;
        }
    }
    Ok(())
}

/// The chains whose rates are measured.
fn chains<F: DeviceField>(device: &Device) -> Outcome {
    let w = samples::<F>(70, 6)[69];
    for step in Step::ALL {
        let chain = MulChain::new(device, step, w)?;
        for len in [1, 300] {
            let x = samples::<F>(len, 7);
            let mut out = garbage(device, len)?;
            chain.run(&device.upload(&x)?, &mut out)?;
            let result = |i: usize| match step {
                Step::Mul => x[i].pow([u64::from(MULTIPLICATIONS) + 1]),
                Step::Square => (0..MULTIPLICATIONS).fold(x[i], |x, _| x * x),
                Step::Mac => (0..MULTIPLICATIONS as usize).map(|j| x[i] * x[(i + j) % len]).sum(),
                Step::Shoup => x[i] * w.pow([u64::from(MULTIPLICATIONS)]),
            };
            expect_same(&format!("{step:?} of {len}"), &out.to_vec()?, &(0..len).map(result).collect::<Vec<F>>())?;
        }
    }
    Ok(())
}

fn misuse<F: DeviceField>(device: &Device) -> Outcome {
    let vector = Vector::<F>::new(device);
    let (a, b) = (device.upload::<Mont<F>>(&[F::ONE; 4])?, device.zeros(5)?);
    let mut out = device.upload::<Mont<F>>(&[F::ONE; 4])?;
    let error = expect_error("operands of two lengths", vector.mul(&a, &b, &mut out))?;
    expect_equal("operand", &error, &Error::Length { what: "the second operand", expected: 4, actual: 5 })?;
    let error = expect_error("an output of another length", vector.inverse(&b, &mut out))?;
    expect_equal("output", &error, &Error::Length { what: "the output", expected: 5, actual: 4 })?;
    if let Some(other) = other_device(device) {
        let error = expect_error("an operand elsewhere", vector.add_assign(&mut out, &other.zeros(4)?))?;
        let (expected, actual) = (device.info().id, other.info().id);
        expect_equal("device", &error, &Error::WrongDevice { what: "a kernel argument", expected, actual })?;
    }
    expect_same("untouched", &out.to_vec()?, &[F::ONE; 4])
}
