//! Every case on the CPU, the portable backend and the host's CUDA, against another big-integer crate.

use evariste_backend::{Device, Error as DeviceError};
use evariste_emulator::Arithmetic;
use num_bigint::BigUint;

use crate::{
    BoxedUint,
    config::{JacobiConfig, ModSqrtConfig, RootChoice},
    error::Error,
    jacobi::Jacobi,
    kernel::{Batch, Constants, RootKernel, StepList, THREADS_EACH, choice},
    number::limbs,
    plan::{ModSqrt, Outcome},
    prime::{self, Modulus},
    rabin::{Decryption, Encryption, SecretKey},
    reference,
    steps::{self, HEAD, Step, section},
};

/// All that this machine has: none is there by chance, so that nothing is skipped where CI says what must be there.
fn devices() -> Vec<Device> {
    let mut devices = vec![Device::cpu()];
    devices.extend(Device::wgpu(0));
    devices.extend(evariste_emulator::device(Arithmetic::CarryFlag));
    devices
}

fn below(bits: u32, less: u32) -> BigUint {
    (BigUint::from(1u32) << bits) - less
}

/// k 2^e + 1.
fn proth(k: u32, e: u32) -> BigUint {
    (BigUint::from(k) << e) + 1u32
}

fn boxed(x: &BigUint) -> BoxedUint {
    BoxedUint::from_le_slice_vartime(&x.to_bytes_le())
}

fn words(values: &[BigUint], limbs: usize) -> Vec<u32> {
    let padded = values.iter().flat_map(|value| {
        let mut digits = value.to_u32_digits();
        assert!(digits.len() <= limbs);
        digits.resize(limbs, 0);
        digits
    });
    padded.collect()
}

/// Numbers without a pattern.
fn noise(seed: u32, bits: u32) -> BigUint {
    let words = (0..bits.div_ceil(32)).scan(u64::from(seed) + 1, |state, _| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((*state >> 32) as u32)
    });
    BigUint::new(words.collect())
}

/// 0, 1, p − 1, squares and others, and what is not below p if there is room.
fn values(p: &BigUint, count: usize) -> Vec<BigUint> {
    let bits = p.bits() as u32;
    let mut values = vec![BigUint::ZERO, BigUint::from(1u32), p - 1u32];
    if bits < 32 * limbs(bits) as u32 || *p < below(bits, 1) {
        values.push(p.clone());
    }
    values.extend((0..).map(|seed| noise(seed, bits) % p).take(count.saturating_sub(values.len())));
    values.truncate(count);
    values
}

fn check(device: &Device, primes: &[BigUint], indices: &[u32], values: &[BigUint]) {
    let limbs = limbs(primes[0].bits() as u32);
    let boxes: Vec<BoxedUint> = primes.iter().map(boxed).collect();
    let plan = ModSqrt::with_primes(device, &boxes, ModSqrtConfig::default().choice(RootChoice::Even)).unwrap();
    let input = device.upload(&words(values, limbs)).unwrap();
    let places = device.upload(indices).unwrap();
    let garbage = vec![7; input.len()];
    let (mut roots, mut mask) = (device.upload(&garbage).unwrap(), device.upload(&garbage[..values.len()]).unwrap());
    let mut symbols = device.upload(&garbage[..values.len()]).unwrap();
    if primes.len() == 1 {
        plan.sqrt(&input, &mut roots, &mut mask).unwrap();
        plan.legendre(&input, &mut symbols).unwrap();
    } else {
        plan.sqrt_indexed(&places, &input, &mut roots, &mut mask).unwrap();
        plan.legendre_indexed(&places, &input, &mut symbols).unwrap();
    }
    let (roots, mask, symbols) = (roots.to_vec().unwrap(), mask.to_vec().unwrap(), symbols.to_vec().unwrap());
    for (i, value) in values.iter().enumerate() {
        let name = format!("{:?}, {} bits, value {i}", device.info().name, primes[0].bits());
        let root = BigUint::new(roots[i * limbs..][..limbs].to_vec());
        let Some(p) = primes.get(indices[i] as usize) else {
            assert_eq!(
                (root, mask[i], symbols[i]),
                (BigUint::ZERO, Outcome::NoPrime as u32, Outcome::NoPrime as u32),
                "{name}"
            );
            continue;
        };
        if value >= p {
            assert_eq!(
                (root, mask[i], symbols[i]),
                (BigUint::ZERO, Outcome::NotReduced as u32, Outcome::NotReduced as u32),
                "{name}"
            );
            continue;
        }
        let power = value.modpow(&(p >> 1), p);
        let symbol = if power == p - 1u32 { u32::MAX } else { u32::try_from(&power).unwrap() };
        assert_eq!(symbols[i], symbol, "{name}");
        if symbol == u32::MAX {
            assert_eq!((root, mask[i]), (BigUint::ZERO, Outcome::NoRoot as u32), "{name}");
        } else {
            assert_eq!(mask[i], Outcome::Root as u32, "{name}");
            assert!(&root < p && !root.bit(0) && &root * &root % p == *value, "{name}");
        }
    }
}

fn check_one(devices: &[Device], p: &BigUint, count: usize) {
    let values = values(p, count);
    let indices = vec![0; values.len()];
    devices.iter().for_each(|device| check(device, std::slice::from_ref(p), &indices, &values));
}

#[test]
fn primes_of_every_class_are_mixed() {
    // The largest primes of each odd class modulo 16 below 2^64, some of large 2-adicity, and the largest one of 64
    // bits with the least.
    let mut primes: Vec<BigUint> = (1..16)
        .step_by(2)
        .map(|class| {
            let less = (1u32..)
                .find(|less| (below(64, *less) % 16u32) == BigUint::from(class as u32) && is_prime(&below(64, *less)));
            below(64, less.unwrap())
        })
        .collect();
    primes.extend(
        (40..63).rev().filter_map(|e| (1u32 << (63 - e)..1 << (64 - e)).map(|k| proth(k | 1, e)).find(is_prime)),
    );
    let mut all: Vec<(u32, BigUint)> = Vec::new();
    for (i, p) in primes.iter().enumerate() {
        all.extend(values(p, 9).into_iter().map(|value| (i as u32, value)));
    }
    all.push((primes.len() as u32, BigUint::from(4u32)));
    all.push((u32::MAX, BigUint::from(4u32)));
    let (indices, values): (Vec<u32>, Vec<BigUint>) = all.into_iter().unzip();
    devices().iter().for_each(|device| check(device, &primes, &indices, &values));
}

/// Miller and Rabin's test with the bases that tell all numbers of 64 bits, and some that are longer.
fn is_prime(n: &BigUint) -> bool {
    let less = n - 1u32;
    let adicity = less.trailing_zeros().unwrap_or(0);
    [2u32, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37].into_iter().all(|base| {
        let mut power = BigUint::from(base).modpow(&(&less >> adicity), n);
        if power == BigUint::from(1u32) || power == less {
            return true;
        }
        (1..adicity).any(|_| {
            power = &power * &power % n;
            power == less
        })
    })
}

/// All numbers modulo the primes below 100, in one batch, and some modulo primes of each further length below 64 bits.
#[test]
fn the_shortest_primes() {
    let mut primes: Vec<BigUint> = (3u32..100).step_by(2).map(BigUint::from).filter(is_prime_by_division).collect();
    let all = |i: usize, p: &BigUint| {
        let p = u32::try_from(p).unwrap();
        (0..=p).map(move |x| (i as u32, BigUint::from(x)))
    };
    let mut elements: Vec<(u32, BigUint)> = primes.iter().enumerate().flat_map(|(i, p)| all(i, p)).collect();
    for bits in 8..64 {
        let less = (1..).step_by(2).find(|less| is_prime(&below(bits, *less)));
        let p = below(bits, less.unwrap());
        elements.extend(values(&p, 9).into_iter().map(|value| (primes.len() as u32, value)));
        primes.push(p);
    }
    let (indices, values): (Vec<u32>, Vec<BigUint>) = elements.into_iter().unzip();
    devices().iter().for_each(|device| check(device, &primes, &indices, &values));
}

fn is_prime_by_division(n: &BigUint) -> bool {
    let n = u32::try_from(n).unwrap();
    n > 1 && (2..n).take_while(|d| d * d <= n).all(|d| n % d != 0)
}

/// Every odd number of up to 11 bits, by the definitions.
#[test]
fn short_composites_are_refused() {
    let device = Device::cpu();
    for n in (3u32..2048).step_by(2) {
        let plan = ModSqrt::new(&device, &BoxedUint::from(n));
        if !is_prime_by_division(&BigUint::from(n)) {
            assert_eq!(plan.unwrap_err(), Error::Composite { index: 0 }, "{n}");
            continue;
        }
        let plan = plan.unwrap().with_choice(RootChoice::Smaller);
        let numbers = [0, 1, 2, 3, n - 2, n - 1].map(|x| x % n);
        let found = plan.sqrt_host(&numbers.map(BoxedUint::from)).unwrap();
        for (x, root) in numbers.into_iter().zip(found) {
            let expected = (0..=n / 2).find(|y| y * y % n == x);
            assert_eq!(root, expected.map(BoxedUint::from), "{x} modulo {n}");
        }
    }
}

#[test]
fn short_primes() {
    check_one(&devices(), &below(64, 59), 200);
    check_one(&devices(), &((BigUint::from(1u32) << 64) + 13u32), 5);
}

#[test]
fn primes_of_521_and_1024_bits() {
    check_one(&devices(), &below(521, 1), 5);
    check_one(&devices(), &below(1024, 105), 6);
}

/// The host runs CUDA's sources a thousand times slower than a GPU: on it there are
/// [`few_steps_of_long_numbers`] only.
#[test]
fn long_primes() {
    let mut devices = devices();
    devices.truncate(2);
    check_one(&devices, &below(2048, 2543), 4);
    check_one(&devices[..1], &below(4096, 2549), 4);
}

/// All kinds of steps, with a short exponent and too short a logarithm: what comes out is no root, but the same
/// everywhere.
#[test]
fn few_steps_of_long_numbers() {
    let cpu = Device::cpu();
    let portable = evariste_emulator::device(Arithmetic::Portable);
    for (bits, less, adicity) in [(1088, 1, 8), (4096, 2549, 4)] {
        let modulus = below(bits, less);
        let values = values(&modulus, 19);
        let expected = run_few(&cpu, &modulus, adicity, &values);
        let others = devices().into_iter().skip(1);
        for device in others.chain(portable.clone().ok().filter(|_| bits == 1088)) {
            let found = run_few(&device, &modulus, adicity, &values);
            assert!(found == expected, "{} bits, {}", bits, device.info().name);
        }
    }
}

/// The roots and mask of a program that is cut short.
fn run_few(device: &Device, modulus: &BigUint, adicity: u32, values: &[BigUint]) -> [Vec<u32>; 2] {
    let kernel = RootKernel::new(device, limbs(modulus.bits() as u32)).unwrap();
    let limbs = kernel.limbs();
    let stride = prime::stride(limbs, adicity);
    let mut words = vec![0; stride];
    Modulus::new(0, &boxed(modulus)).unwrap().store(&mut words);
    // Exponents and powers of any value.
    let rest = HEAD as usize + section::ROOT_EXPONENT as usize * limbs;
    let noise = (0..).map(|seed| noise(seed, 32 * limbs as u32 - 1)).flat_map(|x| self::words(&[x], limbs));
    words[rest..].iter_mut().zip(noise).for_each(|(word, noise)| *word = noise);
    let constants = Constants { words: device.upload(&words).unwrap(), moduli: 1, stride: stride as u32 };
    let input = device.upload(&self::words(values, limbs)).unwrap();
    let (mut out, mut mask) = (device.alloc(input.len()).unwrap(), device.alloc(values.len()).unwrap());
    // Without the comparison, which no element would pass.
    let steps: Vec<Step> =
        steps::roots(8, adicity).into_iter().filter(|step| !matches!(step, Step::Check(_))).collect();
    let program = StepList::new(&device.default_queue(), &steps).unwrap();
    let batch = Batch {
        constants: &constants,
        indices: None,
        values: input.as_view(),
        out: out.as_view_mut(),
        mask: mask.as_view_mut(),
        choice: choice::SMALLER,
    };
    kernel.run(&device.default_queue(), &program, batch).unwrap();
    [out, mask].map(|buffer| buffer.to_vec().unwrap())
}

/// By the law of quadratic reciprocity, as Jacobi has it.
fn jacobi(mut a: BigUint, mut n: BigUint) -> u32 {
    let mut symbol = 1u32;
    let mut turn = |if_so: bool| symbol = if if_so { symbol.wrapping_neg() } else { symbol };
    while a != BigUint::ZERO {
        let twos = a.trailing_zeros().unwrap_or(0);
        a >>= twos;
        turn(twos % 2 == 1 && n.bit(1) != n.bit(2));
        turn(a.bit(1) && n.bit(1));
        (a, n) = (n % &a, a);
    }
    if n == BigUint::from(1u32) { symbol } else { 0 }
}

fn check_symbols(device: &Device, moduli: &[BigUint], indices: &[u32], values: &[BigUint]) {
    let limbs = limbs(moduli[0].bits() as u32);
    let boxes: Vec<BoxedUint> = moduli.iter().map(boxed).collect();
    let plan = Jacobi::with_moduli(device, &boxes, JacobiConfig::default()).unwrap();
    assert_eq!((plan.limbs(), plan.moduli()), (limbs, moduli.len()));
    let expected: Vec<u32> = values
        .iter()
        .zip(indices)
        .map(|(value, index)| match moduli.get(*index as usize) {
            None => Outcome::NoPrime as u32,
            Some(n) if value >= n => Outcome::NotReduced as u32,
            Some(n) => jacobi(value.clone(), n.clone()),
        })
        .collect();
    let (input, places) = (device.upload(&words(values, limbs)).unwrap(), device.upload(indices).unwrap());
    let mut symbols = device.upload(&vec![7; values.len()]).unwrap();
    match moduli.len() {
        1 => plan.jacobi(&input, &mut symbols).unwrap(),
        _ => plan.jacobi_indexed(&places, &input, &mut symbols).unwrap(),
    }
    assert_eq!(symbols.to_vec().unwrap(), expected, "{:?}, {} bits", device.info().name, moduli[0].bits());
}

#[test]
fn symbols_of_small_moduli_are_all_right() {
    let moduli: Vec<BigUint> = (3u32..48).step_by(2).map(BigUint::from).collect();
    let all = moduli.iter().zip(0u32..).flat_map(|(n, i)| {
        let n = u32::try_from(n).unwrap();
        (0..=n).map(move |x| (i, BigUint::from(x)))
    });
    let (mut indices, mut values): (Vec<u32>, Vec<BigUint>) = all.unzip();
    indices.extend([moduli.len() as u32, u32::MAX]);
    values.extend([BigUint::ZERO, BigUint::from(1u32)]);
    devices().iter().for_each(|device| check_symbols(device, &moduli, &indices, &values));
}

/// Primes, squares, multiples of what values have in common with them, and the longest of their limbs.
#[test]
fn symbols_of_long_moduli_are_right() {
    let devices = devices();
    for (bits, counts) in [(64, [300, 300]), (70, [40, 40]), (1024, [9, 9]), (1088, [9, 9]), (4096, [9, 3])] {
        let square = below(bits / 2, 17).pow(2);
        let triple = below(bits, 1) / 3u32 * 3u32;
        let noise = noise(5, bits) | (BigUint::from(1u32) << (bits - 1)) | BigUint::from(1u32);
        let moduli = [below(bits, 1), square.clone(), triple, noise, below(bits, 59)];
        let moduli: Vec<BigUint> = moduli.into_iter().filter(|n| n.bit(0)).collect();
        for (at, device) in devices.iter().enumerate() {
            let mut all: Vec<(u32, BigUint)> = Vec::new();
            for (i, n) in moduli.iter().enumerate() {
                let mut own = values(n, counts[usize::from(at > 0)]);
                own.extend([BigUint::from(2u32), n / 3u32, below(bits / 2, 17)]);
                all.extend(own.into_iter().map(|value| (i as u32, value)));
            }
            let (indices, values): (Vec<u32>, Vec<BigUint>) = all.into_iter().unzip();
            check_symbols(device, &moduli, &indices, &values);
        }
    }
    // The host forms, and more elements than the CPU takes at once.
    let device = Device::cpu();
    let n = below(64, 59);
    let many = values(&n, THREADS_EACH * device.info().parallelism as usize + 3);
    check_symbols(&device, std::slice::from_ref(&n), &vec![0; many.len()], &many);
    let plan = Jacobi::new(&device, &BoxedUint::from(15u32)).unwrap();
    assert_eq!(plan.jacobi_host(&[0u32, 1, 2, 3, 7].map(BoxedUint::from)).unwrap(), [0, 1, 1, 0, -1]);
    assert_eq!(plan.jacobi_host(&[14u32, 15].map(BoxedUint::from)).unwrap_err(), Error::NotReduced { index: 1 });
    assert_eq!(plan.jacobi_host(&[]).unwrap(), []);
}

#[test]
fn what_has_no_symbols_is_refused() {
    let device = Device::cpu();
    let plan = |moduli: &[BigUint]| {
        let moduli: Vec<BoxedUint> = moduli.iter().map(boxed).collect();
        Jacobi::with_moduli(&device, &moduli, JacobiConfig::default()).unwrap_err()
    };
    let good = BigUint::from(9u32);
    assert_eq!(plan(&[]), Error::NoModulus);
    assert_eq!(plan(&[good.clone(), BigUint::from(10u32)]), Error::EvenModulus { index: 1 });
    assert_eq!(plan(&[BigUint::ZERO]), Error::EvenModulus { index: 0 });
    let bits = |actual| Error::ModulusBits { index: 1, expected: 2..=4096, actual };
    assert_eq!(plan(&[good.clone(), BigUint::from(1u32)]), bits(1));
    assert_eq!(plan(&[good.clone(), below(4097, 1)]), bits(4097));
    assert_eq!(plan(&[good.clone(), below(65, 1)]), Error::ModulusLimbs { index: 1, expected: 2, actual: 4 });
    assert!([0, 1, 4097].into_iter().all(|bits| Jacobi::kernels(bits).is_empty()));
    let both = Jacobi::with_moduli(&device, &[boxed(&good), boxed(&good)], JacobiConfig::default()).unwrap();
    assert_eq!(both.jacobi_host(&[]).unwrap_err(), Error::Indices { moduli: 2 });
    let upload = |len: usize| device.upload::<u32>(&vec![7; len]).unwrap();
    let (values, short, mut symbols) = (upload(6), upload(5), upload(3));
    let length = |what, expected, actual| Error::Device(DeviceError::Length { what, expected, actual });
    let refused = both.jacobi_indexed(&upload(2), &values, &mut symbols).unwrap_err();
    assert_eq!(refused, length("the indices of moduli", 3, 2));
    let refused = both.jacobi_indexed(&upload(3), &short, &mut symbols).unwrap_err();
    assert_eq!(refused, length("the limbs of the values", 6, 5));
    assert_eq!(symbols.to_vec().unwrap(), [7; 3]);
}

#[test]
fn roots_are_those_of_the_definition() {
    for p in [below(64, 59), below(521, 1), below(1024, 19215)] {
        let prime = boxed(&p);
        let values: Vec<BoxedUint> = values(&p, 8).iter().filter(|x| **x < p).map(boxed).collect();
        let plan = ModSqrt::new(&Device::cpu(), &prime).unwrap();
        let [smaller, larger] = [RootChoice::Smaller, RootChoice::Larger]
            .map(|choice| plan.with_choice(choice).sqrt_host(&values).unwrap());
        for ((value, smaller), larger) in values.iter().zip(smaller).zip(larger) {
            let both = reference::sqrt(value, &prime).map(|root| {
                // The opposite of 0 is 0.
                let other = if *value == BoxedUint::zero() { root.clone() } else { prime.wrapping_sub(&root) };
                if root < other { (root, other) } else { (other, root) }
            });
            assert_eq!(smaller.zip(larger), both);
        }
    }
}

#[test]
fn a_batch_of_several_launches() {
    // More elements than the CPU takes at once.
    let p = below(64, 59);
    let device = Device::cpu();
    let values = values(&p, 4096 * device.info().parallelism as usize + 3);
    check(&device, &[p], &vec![0; values.len()], &values);
}

#[test]
fn what_makes_no_plan_is_refused() {
    let device = Device::cpu();
    let good = boxed(&below(64, 59));
    let plan = |moduli: &[BigUint]| {
        let moduli: Vec<BoxedUint> = moduli.iter().map(boxed).collect();
        ModSqrt::with_primes(&device, &moduli, ModSqrtConfig::default()).unwrap_err()
    };
    let prime = below(64, 59);
    assert_eq!(ModSqrt::with_primes(&device, &[], ModSqrtConfig::default()).unwrap_err(), Error::NoModulus);
    let bits = |actual| Error::ModulusBits { index: 1, expected: 2..=4096, actual };
    assert_eq!(plan(&[prime.clone(), BigUint::from(1u32)]), bits(1));
    assert_eq!(plan(&[prime.clone(), BigUint::from(2u32)]), Error::EvenModulus { index: 1 });
    assert_eq!(plan(&[prime.clone(), BigUint::ZERO]), bits(0));
    assert_eq!(plan(&[prime.clone(), below(4097, 1)]), bits(4097));
    assert_eq!(plan(&[prime.clone(), below(64, 2)]), Error::EvenModulus { index: 1 });
    assert_eq!(plan(&[prime.clone(), below(65, 49)]), Error::ModulusLimbs { index: 1, expected: 2, actual: 4 });
    // A product of two primes, a square, and what passes for a prime with many small bases (Arnault, 1995).
    let arnault = "1195068768795265792518361315725116351898245581";
    for composite in [below(32, 5) * below(32, 17), below(32, 5).pow(2), arnault.parse().unwrap()] {
        assert_eq!(plan(&[composite]), Error::Composite { index: 0 });
    }
    assert!([0, 1, 4097].into_iter().all(|bits| ModSqrt::kernels(bits).is_empty()));
    let both = ModSqrt::with_primes(&device, &[good.clone(), good.clone()], ModSqrtConfig::default()).unwrap();
    assert_eq!(both.sqrt_host(&[]).unwrap_err(), Error::Indices { moduli: 2 });
    let one = ModSqrt::new(&device, &good).unwrap();
    assert_eq!(one.sqrt_host(&[BoxedUint::one(), good]).unwrap_err(), Error::NotReduced { index: 1 });
    assert_eq!(one.sqrt_host(&[]).unwrap(), []);
}

#[test]
fn refused_calls_write_nothing() {
    let (device, other) = (Device::cpu(), evariste_emulator::device(Arithmetic::Portable));
    let plan = ModSqrt::new(&device, &boxed(&below(65, 49))).unwrap();
    assert_eq!(plan.limbs(), 4);
    let upload = |device: &Device, len: usize| device.upload::<u32>(&vec![7; len]).unwrap();
    let (values, mut roots, mut mask) = (upload(&device, 12), upload(&device, 12), upload(&device, 3));
    let (short, mut short_out) = (upload(&device, 11), upload(&device, 8));
    let length = |what, expected, actual| Error::Device(DeviceError::Length { what, expected, actual });
    let what = "the limbs of the values";
    assert_eq!(plan.sqrt(&short, &mut roots, &mut mask).unwrap_err(), length(what, 12, 11));
    assert_eq!(plan.legendre(&short, &mut mask).unwrap_err(), length(what, 12, 11));
    assert_eq!(plan.sqrt(&values, &mut short_out, &mut mask).unwrap_err(), length("the limbs of the output", 12, 8));
    let indices = upload(&device, 2);
    let refused = plan.sqrt_indexed(&indices, &values, &mut roots, &mut mask).unwrap_err();
    assert_eq!(refused, length("the indices of primes", 3, 2));
    if let Ok(other) = other {
        let mut far = upload(&other, 12);
        let mut far_mask = upload(&other, 3);
        let wrong = |what| {
            let (expected, actual) = (device.info().id, other.info().id);
            Error::Device(DeviceError::WrongDevice { what, expected, actual })
        };
        assert_eq!(plan.sqrt(&far, &mut roots, &mut mask).unwrap_err(), wrong("the values"));
        assert_eq!(plan.sqrt(&values, &mut far, &mut mask).unwrap_err(), wrong("the output"));
        assert_eq!(plan.sqrt(&values, &mut roots, &mut far_mask).unwrap_err(), wrong("the mask"));
        assert_eq!(far.to_vec().unwrap(), [7; 12]);
    }
    assert_eq!((roots.to_vec().unwrap(), mask.to_vec().unwrap()), (vec![7; 12], vec![7; 3]));
}

/// Values, messages and ciphertexts stay on the host.
#[test]
fn queues_of_other_devices_are_refused_before_anything_is_uploaded() {
    let (device, other) = (Device::cpu(), Device::another_cpu());
    let queue = other.default_queue();
    let (p, q) = (boxed(&below(512, 569)), boxed(&below(512, 4653)));
    let key = SecretKey::from_primes(&p, &q).unwrap();
    let encryption = Encryption::new(&device, &key.public()).unwrap().on(&queue);
    let decryption = Decryption::new(&device, &key).unwrap().on(&queue);
    let sqrt = ModSqrt::new(&device, &boxed(&below(64, 59))).unwrap().on(&queue);
    let jacobi = Jacobi::new(&device, &BoxedUint::from(15u32)).unwrap().on(&queue);
    let (values, message) = ([BoxedUint::one()], vec![0; key.public().message_bytes()]);
    let words = other.upload::<u32>(&[1, 0]).unwrap();
    let (mut roots, mut mask) = (other.alloc(2).unwrap(), other.alloc(1).unwrap());
    let before = other.stats();
    let refused = [
        sqrt.sqrt_host(&values).map(drop),
        sqrt.sqrt(&words, &mut roots, &mut mask),
        sqrt.legendre(&words, &mut mask),
        jacobi.jacobi_host(&values).map(drop),
        jacobi.jacobi(&words, &mut mask),
        encryption.encrypt_host(&[message]).map(drop),
        decryption.decrypt_host(&values).map(drop),
    ];
    for (call, outcome) in refused.into_iter().enumerate() {
        let error = outcome.unwrap_err();
        assert!(matches!(error, Error::Device(DeviceError::WrongDevice { .. })), "call {call}: {error}");
    }
    let after = other.stats();
    assert_eq!((after.writes, after.launches, after.bytes_peak), (before.writes, before.launches, before.bytes_peak));
}

/// But for an eighth and some words, by which the CPU rounds allocations up.
#[test]
fn calls_take_no_more_memory_than_they_say() {
    let rounded = |bytes: u64| bytes + bytes / 8 + 4 * 16;
    let device = Device::another_cpu();
    let p = below(521, 1);
    let values: Vec<BoxedUint> = values(&p, 40).iter().filter(|x| **x < p).map(boxed).collect();
    let (sqrt, jacobi) = (ModSqrt::new(&device, &boxed(&p)).unwrap(), Jacobi::new(&device, &boxed(&p)).unwrap());
    let live = device.stats().bytes_live;
    jacobi.jacobi_host(&values).unwrap();
    assert!(device.stats().bytes_peak - live <= rounded(jacobi.required_bytes(values.len())));
    sqrt.sqrt_host(&values).unwrap();
    let taken = device.stats().bytes_peak - live;
    assert!(taken <= rounded(sqrt.required_bytes(values.len())) && taken > sqrt.required_bytes(values.len() / 2));
}
