//! Roots modulo primes that are known at run time.

mod queues;
mod secrets;

use evariste::{
    backend::{Device, Error as DeviceError},
    modsqrt::{
        BoxedUint, Error, Jacobi, JacobiConfig, ModSqrt, ModSqrtConfig, Outcome as Found, RootChoice, limbs,
        rabin::{Encryption, PublicKey},
        reference,
    },
};

use crate::{
    area::Area,
    devices::{garbage, other_device},
    expect::{expect_equal, expect_error, expect_same},
    harness::{DeviceTrials, Outcome},
    launches::KernelGroup,
    sizes::lengths,
};

pub(crate) const AREA: Area = Area {
    kernels: KERNELS,
    operations: secrets::OPERATIONS,
    ordered: queues::ORDERED,
    plans: queues::PLANS,
    ..Area::new("modsqrt", add)
};

fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("roots", roots);
    trials.add("short", short);
    trials.add("long", long);
    trials.add("jacobi", symbols);
    trials.add("misuse", misuse);
}

const KERNELS: &[KernelGroup] = &[KernelGroup {
    name: "modsqrt",
    cases: &["roots", "long", "jacobi"],
    kernels: |_| {
        Ok([[64, 1088, 4096].map(ModSqrt::kernels).concat(), [64, 4096].map(Jacobi::kernels).concat()].concat())
    },
}];

/// 2^64 − 59, ≡ 5 (mod 8); 2^64 − 189, ≡ 3 (mod 4); 2055 · 2^52 + 1.
const PRIMES: [u64; 3] = [59u64.wrapping_neg(), 189u64.wrapping_neg(), (2055 << 52) + 1];

const LENGTHS: [usize; 5] = [0, 1, 128, 257, 600];

/// Limbs as words: 0, 1, what is not below the largest prime, and numbers without a pattern.
fn value(i: usize) -> [u32; 2] {
    match i {
        0 | 1 => [i as u32, 0],
        2 => [u32::MAX; 2],
        _ => {
            let x = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            [x as u32, (x >> 32) as u32]
        }
    }
}

fn boxed(limbs: &[u32]) -> BoxedUint {
    let bytes: Vec<u8> = limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect();
    BoxedUint::from_le_slice_vartime(&bytes)
}

/// Several primes of different classes, with an index for each element.
fn roots(device: &Device) -> Outcome {
    let primes = PRIMES.map(BoxedUint::from);
    let plan = ModSqrt::with_primes(device, &primes, ModSqrtConfig::default().choice(RootChoice::Larger))?;
    expect_equal("limbs", &plan.limbs(), &limbs(64))?;
    for len in lengths(device, &LENGTHS) {
        let indices: Vec<u32> = (0..len as u32).map(|i| i % 4).collect();
        let (mut expected, mut expected_mask) = (Vec::new(), Vec::new());
        for (i, index) in indices.iter().enumerate() {
            let number = boxed(&value(i));
            let (root, found) = match primes.get(*index as usize) {
                None => (None, Found::NoPrime),
                Some(prime) if number >= *prime => (None, Found::NotReduced),
                Some(prime) => match reference::sqrt(&number, prime) {
                    None => (None, Found::NoRoot),
                    Some(root) => {
                        // The opposite of 0 is 0.
                        let other = if i == 0 { root.clone() } else { prime.wrapping_sub(&root) };
                        (Some(if root < other { other } else { root }), Found::Root)
                    }
                },
            };
            let root = root.map_or(0, |root| u64::from_le_bytes(bytes(&root)));
            expected.extend([root as u32, (root >> 32) as u32]);
            expected_mask.push(found as u32);
        }
        let values: Vec<u32> = (0..len).flat_map(value).collect();
        let (indices, values) = (device.upload(&indices)?, device.upload(&values)?);
        let (mut roots, mut mask) = (garbage(device, 2 * len)?, garbage(device, len)?);
        plan.sqrt_indexed(&indices, &values, &mut roots, &mut mask)?;
        expect_same(&format!("{len} roots"), &roots.to_vec()?, &expected)?;
        expect_same(&format!("the mask of {len}"), &mask.to_vec()?, &expected_mask)?;
        let mut symbols = garbage(device, len)?;
        plan.legendre_indexed(&indices, &values, &mut symbols)?;
        let symbols: Vec<bool> = symbols.to_vec()?.into_iter().map(|symbol| symbol == u32::MAX).collect();
        let expected: Vec<bool> = expected_mask.into_iter().map(|found| found == Found::NoRoot as u32).collect();
        expect_same(&format!("{len} symbols"), &symbols, &expected)?;
    }
    Ok(())
}

/// Primes of 2, 5, 7, 17, 31 and 61 bits, with all squares and all others of the short ones among the numbers.
fn short(device: &Device) -> Outcome {
    const SHORT: [u64; 6] = [3, 17, 97, 65537, (1 << 31) - 1, (1 << 61) - 1];
    let plan = ModSqrt::with_primes(
        device,
        &SHORT.map(BoxedUint::from),
        ModSqrtConfig::default().choice(RootChoice::Smaller),
    )?;
    for len in lengths(device, &[1, 31, 33, 700]) {
        let indices: Vec<u32> = (0..len as u32).map(|i| i % 6).collect();
        let number = |i: usize| (i as u64 / 6).pow(1 + i as u32 % 3) % SHORT[i % 6];
        let (mut expected, mut expected_mask) = (Vec::new(), Vec::new());
        for i in 0..len {
            let (p, x) = (SHORT[i % 6], number(i));
            let root = reference::sqrt(&BoxedUint::from(x), &BoxedUint::from(p)).map(|root| {
                let root = u64::from_le_bytes(bytes(&root));
                root.min((p - root) % p)
            });
            expected.extend([root.unwrap_or(0) as u32, (root.unwrap_or(0) >> 32) as u32]);
            expected_mask.push(if root.is_some() { Found::Root } else { Found::NoRoot } as u32);
        }
        let values: Vec<u32> = (0..len).map(number).flat_map(|x| [x as u32, (x >> 32) as u32]).collect();
        let (indices, values) = (device.upload(&indices)?, device.upload(&values)?);
        let (mut roots, mut mask) = (garbage(device, 2 * len)?, garbage(device, len)?);
        plan.sqrt_indexed(&indices, &values, &mut roots, &mut mask)?;
        expect_same(&format!("{len} roots"), &roots.to_vec()?, &expected)?;
        expect_same(&format!("the mask of {len}"), &mask.to_vec()?, &expected_mask)?;
    }
    let composite = expect_error("a composite", ModSqrt::new(device, &BoxedUint::from(9u32)))?;
    expect_equal("a composite", &composite, &Error::Composite { index: 0 })
}

fn bytes(x: &BoxedUint) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(x.to_le_bytes()).for_each(|(byte, x)| *byte = x);
    bytes
}

/// Threads that share an element. Two multiplications for each square show whether all limbs meet.
fn long(device: &Device) -> Outcome {
    for (bits, counts) in [(1088, [1, 70]), (4096, [1, 40])] {
        let modulus = boxed(&[[u32::MAX - 188].as_slice(), &vec![u32::MAX; bits / 32 - 1]].concat());
        let key = PublicKey::new(&modulus)?;
        let encryption = Encryption::new(device, &key)?;
        let length = key.message_bytes();
        for count in counts {
            let messages: Vec<Vec<u8>> =
                (0..count).map(|i| (0..length).map(|j| (((i + 1) * (j + 7) * 151) >> 3) as u8).collect()).collect();
            let odd = Option::<_>::from(modulus.to_nz()).ok_or("the modulus is not 0")?;
            let expected: Vec<BoxedUint> = messages
                .iter()
                .map(|message| {
                    let text = [message.as_slice(), &message[length - 16..]].concat();
                    BoxedUint::from_be_slice_truncated(&text, modulus.bits_precision()).square_mod(&odd)
                })
                .collect();
            expect_same(&format!("{count} of {bits} bits"), &encryption.encrypt_host(&messages)?, &expected)?;
        }
    }
    Ok(())
}

/// Symbols for a product of two primes, one of small primes, and 3; and for a modulus of all limbs.
fn symbols(device: &Device) -> Outcome {
    let moduli = [0xffff_fffb * 0xffff_ffef, 3 * 5 * 7 * 11 * 13 * 17, 3u64];
    let plan = Jacobi::with_moduli(device, &moduli.map(BoxedUint::from), JacobiConfig::default())?;
    for len in lengths(device, &[0, 1, 300]) {
        let indices: Vec<u32> = (0..len as u32).map(|i| i % 4).collect();
        let numbers: Vec<u64> = (0..len).map(|i| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64)).collect();
        let expected = numbers.iter().zip(&indices).map(|(x, index)| match moduli.get(*index as usize) {
            None => Found::NoPrime as u32,
            Some(n) if x >= n => Found::NotReduced as u32,
            Some(n) => jacobi(*x, *n),
        });
        let expected: Vec<u32> = expected.collect();
        let values: Vec<u32> = numbers.iter().flat_map(|x| [*x as u32, (x >> 32) as u32]).collect();
        let (indices, values) = (device.upload(&indices)?, device.upload(&values)?);
        let mut symbols = garbage(device, len)?;
        plan.jacobi_indexed(&indices, &values, &mut symbols)?;
        expect_same(&format!("{len} symbols"), &symbols.to_vec()?, &expected)?;
    }
    // 2^4096 − 1 is 7 modulo 8, 0 modulo 3, 1 modulo 7 and 8 modulo 11. Of these, 7 and 11 are 3 modulo 4.
    let plan = Jacobi::new(device, &boxed(&[u32::MAX; 128]))?;
    // As many as one workgroup takes, and more.
    for times in [1, 6] {
        let numbers: Vec<_> = [0u32, 1, 2, 3, 7, 11].repeat(times).into_iter().map(BoxedUint::from).collect();
        expect_equal("4096 bits", &plan.jacobi_host(&numbers)?, &[0, 1, 1, 0, -1, 1].repeat(times))?;
    }
    let even = expect_error(
        "an even modulus",
        Jacobi::with_moduli(device, &[3u32, 4].map(BoxedUint::from), JacobiConfig::default()),
    )?;
    expect_equal("an even modulus", &even, &Error::EvenModulus { index: 1 })
}

/// (a / n), where −1 is 2³² − 1, by the law of quadratic reciprocity.
fn jacobi(mut a: u64, mut n: u64) -> u32 {
    let mut symbol = 1u32;
    while a != 0 {
        let twos = a.trailing_zeros();
        a >>= twos;
        let turns = twos % 2 == 1 && [3, 5].contains(&(n % 8));
        if turns != (a % 4 == 3 && n % 4 == 3) {
            symbol = symbol.wrapping_neg();
        }
        (a, n) = (n % a, a);
    }
    if n == 1 { symbol } else { 0 }
}

fn misuse(device: &Device) -> Outcome {
    let prime = |x: u64| BoxedUint::from(x);
    let refused =
        |x: &[BoxedUint]| expect_error("a modulus", ModSqrt::with_primes(device, x, ModSqrtConfig::default()));
    expect_equal("a composite", &refused(&[prime(PRIMES[0] - 2)])?, &Error::Composite { index: 0 })?;
    expect_equal(
        "an even one",
        &refused(&[prime(PRIMES[0]), prime(PRIMES[0] - 1)])?,
        &Error::EvenModulus { index: 1 },
    )?;
    let plan = ModSqrt::new(device, &prime(PRIMES[0]))?;
    let (values, short) = (device.upload(&[4u32, 0, 9, 0])?, device.upload(&[4u32, 0, 9])?);
    let (mut roots, mut mask) = (device.upload(&[7u32; 4])?, device.upload(&[7u32; 2])?);
    let error = expect_error("too few limbs", plan.sqrt(&short, &mut roots, &mut mask))?;
    let length = DeviceError::Length { what: "the limbs of the values", expected: 4, actual: 3 };
    expect_equal("too few limbs", &error, &Error::Device(length))?;
    if let Some(other) = other_device(device) {
        let far = other.upload(&[4u32, 0, 9, 0])?;
        let error = expect_error("another device's values", plan.sqrt(&far, &mut roots, &mut mask))?;
        let (expected, actual) = (device.info().id, other.info().id);
        let wrong = DeviceError::WrongDevice { what: "the values", expected, actual };
        expect_equal("another device's values", &error, &Error::Device(wrong))?;
    }
    expect_same("roots", &roots.to_vec()?, &[7; 4])?;
    expect_same("the mask", &mask.to_vec()?, &[7; 2])?;
    plan.with_choice(RootChoice::Even).sqrt(&values, &mut roots, &mut mask)?;
    expect_same("the mask", &mask.to_vec()?, &[Found::Root as u32; 2])
}
