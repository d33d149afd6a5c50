use std::cmp::Ordering;

use ark_std::rand::{Rng, RngCore};

use super::{Combination, Eight, Factor, Job, Lanes, Limbs, MAX_LIMBS, MIN_LIMBS, Montgomery52, lane_limbs};

/// Moduli of `limbs` 32-bit limbs: the largest and the smallest, and some in between.
fn moduli(limbs: usize, rng: &mut impl RngCore) -> Vec<Vec<u32>> {
    let mut least = vec![0; limbs];
    least[limbs - 1] = 1;
    least[0] |= 1;
    let mut moduli = vec![vec![u32::MAX; limbs], least];
    for bits in [4, 12, 20, 32] {
        let mut modulus: Vec<u32> = (0..limbs).map(|_| rng.r#gen()).collect();
        modulus[limbs - 1] = modulus[limbs - 1] >> (32 - bits) | 1 << (bits - 1);
        modulus[0] |= 1;
        moduli.push(modulus);
    }
    moduli
}

fn field(p: &[u32]) -> Montgomery52 {
    Montgomery52::new(p, by_limbs!(p.len(), |N| &Limbs::<N, { lane_limbs(N) }>))
}

fn compare(a: &[u32], b: &[u32]) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

/// a − b and the borrow.
fn subtract(a: &[u32], b: &[u32]) -> (Vec<u32>, bool) {
    let mut borrow = false;
    let limb = |(a, b): (&u32, &u32)| {
        let (d, first) = a.overflowing_sub(*b);
        let (d, second) = d.overflowing_sub(borrow.into());
        borrow = first | second;
        d
    };
    (a.iter().zip(b).map(limb).collect(), borrow)
}

/// a · b / 2^(32 limbs) mod p, bit by bit: Montgomery's product in base 2.
fn product(a: &[u32], b: &[u32], p: &[u32]) -> Vec<u32> {
    let extended = |x: &[u32]| [x, &[0]].concat();
    let (b, p) = (extended(b), extended(p));
    let mut sum = vec![0; p.len()];
    let add = |sum: &mut [u32], x: &[u32]| {
        let mut carry = 0;
        for (sum, x) in sum.iter_mut().zip(x) {
            let wide = u64::from(*sum) + u64::from(*x) + carry;
            (*sum, carry) = (wide as u32, wide >> 32);
        }
    };
    for i in 0..32 * a.len() {
        if a[i / 32] >> (i % 32) & 1 == 1 {
            add(&mut sum, &b);
        }
        if sum[0] & 1 == 1 {
            add(&mut sum, &p);
        }
        for j in 0..sum.len() {
            sum[j] = sum[j] >> 1 | sum.get(j + 1).map_or(0, |next| next << 31);
        }
    }
    if compare(&sum, &p).is_ge() {
        sum = subtract(&sum, &p).0;
    }
    sum.truncate(a.len());
    sum
}

/// a + b mod p.
fn sum(a: &[u32], b: &[u32], p: &[u32]) -> Vec<u32> {
    let (negative, zero) = (subtract(p, b).0, b.iter().all(|limb| *limb == 0));
    match subtract(a, &negative) {
        _ if zero => a.to_vec(),
        (difference, false) => difference,
        (_, true) => subtract(p, &subtract(&negative, a).0).0,
    }
}

/// Elements one after the other: 0, 1, p − 1, p − 2, then random ones.
fn elements(p: &[u32], len: usize, rng: &mut impl RngCore) -> Vec<u32> {
    let small = |x: u32| [&[x], &vec![0; p.len() - 1][..]].concat();
    let edges = [small(0), small(1), subtract(p, &small(1)).0, subtract(p, &small(2)).0];
    let mut random = || loop {
        let mut x: Vec<u32> = p.iter().map(|_| rng.r#gen()).collect();
        x[p.len() - 1] &= p[p.len() - 1].checked_next_power_of_two().map_or(u32::MAX, |bound| 2 * bound - 1);
        if compare(&x, p).is_lt() {
            return x;
        }
    };
    (0..len).flat_map(|i| if i < 16 { edges[(i / 4 + i) % 4].clone() } else { random() }).collect()
}

#[test]
fn products_match_the_definition_for_every_number_of_limbs() {
    if evariste_backend::author::cpu_vectors() < Some(evariste_backend::author::CpuVectors::Avx512Ifma) {
        return;
    }
    let mut rng = ark_std::test_rng();
    for limbs in MIN_LIMBS..=MAX_LIMBS {
        for p in moduli(limbs, &mut rng) {
            let field = field(&p);
            for len in [0, 1, 7, 16, 37] {
                let a = elements(&p, len, &mut rng);
                let mut b = elements(&p, len, &mut rng);
                b.rotate_left(limbs * (len / 4));
                let one = &elements(&p, 20, &mut rng)[19 * limbs..];
                let of = |f: &dyn Fn(usize) -> Vec<u32>| -> Vec<u32> { (0..len).flat_map(f).collect() };
                let at = |x: &[u32], i: usize| x[i * limbs..][..limbs].to_vec();
                let mut out = vec![0; a.len()];
                field.mul(&a, Factor::Each(&b), &mut out);
                assert_eq!(out, of(&|i| product(&at(&a, i), &at(&b, i), &p)), "{len} products modulo {p:x?}");
                field.mul(&a, Factor::Itself, &mut out);
                assert_eq!(out, of(&|i| product(&at(&a, i), &at(&a, i), &p)), "{len} squares modulo {p:x?}");
                out.copy_from_slice(&a);
                field.mul_assign(&mut out, Factor::One(one));
                assert_eq!(out, of(&|i| product(&at(&a, i), one, &p)), "{len} multiples modulo {p:x?}");
                let mut runs = [&a[..], &b, &out].concat();
                field.combine(Combination::Product, &mut runs, [2 * len, 0, len], len);
                assert_eq!(runs[2 * a.len()..], of(&|i| product(&at(&a, i), &at(&b, i), &p)), "{len} modulo {p:x?}");
                field.combine(Combination::Sum, &mut runs, [len, 0, len], len);
                assert_eq!(runs[a.len()..][..a.len()], of(&|i| sum(&at(&a, i), &at(&b, i), &p)), "{len} modulo {p:x?}");
                field.combine(Combination::Difference, &mut runs, [len, len, 0], len);
                assert_eq!(runs[a.len()..][..a.len()], b, "{len} differences modulo {p:x?}");
            }
        }
    }
}

/// Reduces and multiplies eight elements in lanes: see the test.
struct Steps<'a> {
    x: &'a [u32],
    y: &'a [u32],
    times: u8,
}

impl Job for Steps<'_> {
    type Output = [Vec<u32>; 2];

    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) -> Self::Output {
        // SAFETY: as this function's caller vouches.
        unsafe { steps::<LIMBS, L>(&self, field) }
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn steps<const LIMBS: usize, const L: usize>(steps: &Steps<'_>, field: &Montgomery52) -> [Vec<u32>; 2] {
    let lanes = Lanes::<LIMBS, L>::new(field);
    let place = |x: &[u32]| Lanes::<LIMBS, L>::in_a_row(x.as_ptr().cast_mut());
    // SAFETY: both have eight elements.
    let [x, y] = [steps.x, steps.y].map(|x| unsafe { lanes.load(&place(x)) });
    let sum = lanes.normalise(&lanes.add(&x, &lanes.multiple(steps.times)));
    let difference = lanes.normalise(&lanes.sub(&lanes.multiple(steps.times + 1), &x));
    let constant: Eight<L> = lanes.constants(&y);
    let [product, negated] = lanes.mul2([&sum, &lanes.reduce(&difference)], [&constant; 2]);
    let both = lanes.reduce(&lanes.normalise(&lanes.add(&product, &negated)));
    [lanes.reduce(&sum), lanes.add(&both, &product)].map(|x| {
        let x = lanes.canonical(&lanes.reduce(&lanes.normalise(&x)));
        let mut out = vec![0; steps.x.len()];
        // SAFETY: it has eight elements.
        unsafe { lanes.store(&x, &Lanes::<LIMBS, L>::in_a_row(out.as_mut_ptr())) };
        out
    })
}

/// x + k · p comes back as x, and x · y + (−x) · y + x · y as x · y.
#[test]
fn values_of_several_times_the_modulus_are_reduced() {
    if evariste_backend::author::cpu_vectors() < Some(evariste_backend::author::CpuVectors::Avx512Ifma) {
        return;
    }
    let mut rng = ark_std::test_rng();
    for limbs in MIN_LIMBS..=MAX_LIMBS {
        for p in moduli(limbs, &mut rng) {
            let field = field(&p);
            let (x, y) = (elements(&p, 20, &mut rng)[12 * limbs..].to_vec(), elements(&p, 8, &mut rng));
            let products: Vec<u32> =
                x.chunks(limbs).zip(y.chunks(limbs)).flat_map(|(x, y)| product(x, y, &p)).collect();
            for times in 0..15 {
                let steps = Steps { x: &x, y: &y, times };
                // SAFETY: the processor has the instructions, and the field has these limbs.
                let [reduced, multiplied] = by_limbs!(limbs, |N| unsafe { steps.run::<N, { lane_limbs(N) }>(&field) });
                assert_eq!(reduced, x, "{times} times {p:x?}");
                assert_eq!(multiplied, products, "{times} times {p:x?}");
            }
        }
    }
}

#[test]
fn sums_of_products_match_the_definition_for_every_number_of_limbs() {
    if evariste_backend::author::cpu_vectors() < Some(evariste_backend::author::CpuVectors::Avx512Ifma) {
        return;
    }
    let mut rng = ark_std::test_rng();
    for limbs in MIN_LIMBS..=MAX_LIMBS {
        for p in moduli(limbs, &mut rng) {
            let field = field(&p);
            let largest = subtract(&p, &elements(&p, 4, &mut rng)[limbs..2 * limbs]).0;
            for len in [0, 1, 8, 97, 230] {
                let (mut a, b) = (elements(&p, len, &mut rng), elements(&p, len, &mut rng));
                // The largest products, for all lengths up to a sum before a reduction, and beyond.
                a.chunks_exact_mut(limbs).skip(20).for_each(|a| a.copy_from_slice(&largest));
                let terms = a.chunks(limbs).zip(b.chunks(limbs)).map(|(a, b)| product(a, b, &p));
                let expected = terms.fold(vec![0; limbs], |all, x| sum(&all, &x, &p));
                let parts = field.inner_product(&a, &b);
                let actual = parts.chunks(limbs).fold(vec![0; limbs], |all, x| sum(&all, x, &p));
                assert_eq!(actual, expected, "{len} products modulo {p:x?}");
            }
        }
    }
}
