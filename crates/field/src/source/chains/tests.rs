//! Chains beside arithmetic in fields of any length.

use super::{
    instructions::{Flag, Operation},
    *,
};
use crate::{
    field::{DeviceField, DevicePrimeField},
    source::has_room,
};

/// Of two limbs and of three, for which nothing is lazy; the latter's lowest limbs are 1 and 2^32 - 1.
#[derive(ark_ff::MontConfig)]
#[modulus = "2305843009213693951"]
#[generator = "37"]
struct ShortConfig;
type Short = ark_ff::Fp64<ark_ff::MontBackend<ShortConfig, 1>>;

#[derive(ark_ff::MontConfig)]
#[modulus = "19807041145074918457958465537"]
#[generator = "3"]
struct OddConfig;
type Odd = ark_ff::Fp128<ark_ff::MontBackend<OddConfig, 2>>;

/// Numbers of 4, 5, 6 and 24 limbs whose arithmetic is that of primes.
#[derive(ark_ff::MontConfig)]
#[modulus = "42535295865117307932921825924676059137"]
#[generator = "5"]
struct OnesConfig;
type Ones = ark_ff::Fp<ark_ff::MontBackend<OnesConfig, 2>, 2>;

#[derive(ark_ff::MontConfig)]
#[modulus = "170141182192818631503457902219180900351"]
#[generator = "5"]
struct MostConfig;
type Most = ark_ff::Fp<ark_ff::MontBackend<MostConfig, 2>, 2>;

#[derive(ark_ff::MontConfig)]
#[modulus = "730750818665451459101842416358141509827966271487"]
#[generator = "5"]
struct FiveConfig;
type Five = ark_ff::Fp<ark_ff::MontBackend<FiveConfig, 3>, 3>;

#[derive(ark_ff::MontConfig)]
#[modulus = "3138550842847812547292545102141191051874366388081164025857"]
#[generator = "5"]
struct OneConfig;
type One = ark_ff::Fp<ark_ff::MontBackend<OneConfig, 3>, 3>;

#[derive(ark_ff::MontConfig)]
#[modulus = "776259040005300093425408470869990436991172777905802193380493325301942874785966668299471268619141586889623391939891781278819813468061113215570764935485211049054632760417012657708742364449751832668508623269962220167949229420483444737"]
#[generator = "5"]
struct LongConfig;
type Long = ark_ff::Fp<ark_ff::MontBackend<LongConfig, 12>, 12>;

#[derive(ark_ff::MontConfig)]
#[modulus = "41898788091882009380975123841123919394421604259408409915337958554652890185087600553291488263229197334898399038434764329902956731266666262160683698565070132498240000737261197856216877587801825101054520229702552223900505521258495"]
#[generator = "5"]
struct Full24Config;
type Full24 = ark_ff::Fp<ark_ff::MontBackend<Full24Config, 12>, 12>;

/// What the instructions give, one after the other as the processor does them.
fn run(chain: &Chain, inputs: &[u32], outputs: &[Word]) -> Vec<u32> {
    assert_eq!(chain.inputs.len(), inputs.len());
    let (mut results, mut flag): (Vec<u32>, u64) = (Vec::new(), 0);
    for instruction in &chain.instructions {
        let word = |word: Word| match word {
            Word::Input(i) => inputs[i],
            Word::Result(i) => results[i],
            Word::Constant(value) => value,
        };
        let result = match *instruction {
            Instruction::Carry(operation, Flag { reads, sets }, words) => {
                let [a, b, c] = words.map(|w| u64::from(word(w)));
                let carry = if reads { flag } else { 0 };
                let wide = match operation {
                    Operation::Add => a + b + carry,
                    Operation::Subtract => a.wrapping_sub(b).wrapping_sub(carry),
                    Operation::MadLow => u64::from((a * b) as u32) + c + carry,
                    Operation::MadHigh => ((a * b) >> 32) + c + carry,
                };
                if sets {
                    flag = wide >> 32 & 1;
                }
                wide as u32
            }
            Instruction::Multiply([a, b]) => word(a).wrapping_mul(word(b)),
            Instruction::And([a, b]) => word(a) & word(b),
            Instruction::Double([a, b]) => word(b) << 1 | word(a) >> 31,
            Instruction::NotUnlessZero(a) => {
                if word(a) == 0 {
                    0
                } else {
                    !word(a)
                }
            }
            Instruction::Select(condition, [a, b, c]) => {
                let holds = match condition {
                    Condition::NotZero => word(a) != 0,
                    Condition::Negative => (word(a) as i32) < 0,
                };
                word(if holds { b } else { c })
            }
        };
        results.push(result);
    }
    let word = |word: &Word| match *word {
        Word::Input(i) => inputs[i],
        Word::Result(i) => results[i],
        Word::Constant(value) => value,
    };
    outputs.iter().map(word).collect()
}

fn limbs<F: DeviceField>(x: F) -> Vec<u32> {
    let mut limbs = vec![0; F::LIMBS];
    x.store(&mut limbs);
    limbs
}

/// x + p as limbs, which must hold it.
fn more(x: &[u32], p: &[u32]) -> Vec<u32> {
    let mut carry = 0;
    let sum = x.iter().zip(p).map(|(x, p)| {
        let wide = u64::from(*x) + u64::from(*p) + carry;
        carry = wide >> 32;
        wide as u32
    });
    sum.collect()
}

/// Whether limbs are an element or that and p.
fn is<F: DeviceField>(limbs_of: &[u32], x: F, p: &[u32]) -> bool {
    limbs_of == limbs(x) || limbs_of == more(&limbs(x), p)
}

fn check<F: DevicePrimeField>() {
    let constants = Constants::of::<F>();
    let (field, p, n0) = (Field::new(&constants), &constants.modulus, [constants.n0]);
    let lazy = has_room(&constants);
    let rng = &mut ark_std::test_rng();
    let mut edges = vec![F::ZERO, F::ONE, -F::ONE];
    // The least and the greatest by their limbs.
    let mut least = vec![0; F::LIMBS];
    least[0] = 1;
    edges.extend([F::load(&least), -F::load(&least)]);
    let values: Vec<F> = edges.into_iter().chain((0..40).map(|_| F::rand(rng))).collect();
    for (i, &a) in values.iter().enumerate() {
        for &b in &values[i..] {
            let both = [limbs(a), limbs(b)].concat();
            let call = |function: fn(&Field) -> (Chain, Vec<Word>), inputs: &[u32]| {
                let (chain, outputs) = function(&field);
                run(&chain, inputs, &outputs)
            };
            assert_eq!(call(Field::add, &both), limbs(a + b));
            assert_eq!(call(Field::sub, &both), limbs(a - b));
            assert_eq!(call(Field::reduce, &more(&limbs(a), p)), limbs(a));
            assert_eq!(call(Field::reduce, &limbs(a)), limbs(a));
            assert!(is(&call(Field::mul, &[&both[..], &n0].concat()), a * b, p));
            if !lazy {
                continue;
            }
            // Both with p on top of them.
            let above = [more(&limbs(a), p), more(&limbs(b), p)].concat();
            for inputs in [&both, &above] {
                assert!(is(&call(Field::add_lazy, inputs), a + b, p));
                assert!(is(&call(Field::sub_lazy, inputs), a - b, p));
            }
            if field.has_mul_add() {
                // All are the largest once.
                let others = if a == b { [a; 2] } else { [a + b + F::ONE, a - b.double()] };
                let factors = [a, b, others[0], others[1]];
                for above in 0..16 {
                    let all = factors.iter().enumerate();
                    let inputs = all.flat_map(|(i, factor)| match above >> i & 1 {
                        0 => limbs(*factor),
                        _ => more(&limbs(*factor), p),
                    });
                    let inputs: Vec<u32> = inputs.chain(n0.iter().copied()).collect();
                    let [a, b, c, d] = factors;
                    assert!(is(&call(Field::mul_add, &inputs), a * b + c * d, p));
                    let pair = call(Field::mul_pair, &inputs);
                    let (real, imaginary) = pair.split_at(F::LIMBS);
                    assert!(is(real, a * c - b * d, p));
                    assert!(is(imaginary, a * d + b * c, p));
                }
            }
            assert!(is(&call(Field::square, &[&limbs(a)[..], &n0].concat()), a.square(), p));
            let known = &crate::shoup_constants([b])[F::LIMBS..];
            for factor in [limbs(a), more(&limbs(a), p)] {
                assert!(is(&call(Field::mul_shoup, &[&factor[..], known].concat()), a * b, p));
            }
            let mut sum = vec![0; 2 * F::LIMBS + 1];
            for _ in 0..3 {
                sum = call(Field::mac, &[&sum[..], &both].concat());
            }
            let reduced = call(Field::sum_redc, &[&sum[..], &n0].concat());
            assert!(is(&reduced, F::from(3u8) * a * b * F::from(1u64 << 32).inverse().unwrap_or_default(), p));
        }
    }
}

#[test]
fn chains_are_the_arithmetic_of_fields_of_any_length() {
    check::<ark_bls12_381::Fr>();
    check::<ark_bls12_381::Fq>();
    check::<ark_bn254::Fq>();
    check::<ark_bn254::Fr>();
    check::<Short>();
    check::<Odd>();
    check::<Ones>();
    check::<Most>();
    check::<Five>();
    check::<One>();
    check::<Long>();
    check::<Full24>();
}
