use ark_ff::{BigInt, Fp, MontBackend, MontConfig, UniformRand};
use ark_std::rand::{Rng, RngCore};

use super::{Chains, Modulus};

/// Fields of every number of words that have one, two and more spare bits, and of some that have none.
macro_rules! fields {
    ($($name:ident, $n:literal, $modulus:literal;)*) => {
        $(
            #[derive(MontConfig)]
            #[modulus = $modulus]
            #[generator = "3"]
            struct $name;
        )*
    };
}

fields! {
    TwoWords, 2, "79228162514264337593543950319";
    // 2^126 − 137, 2^127 − 1 and 2^128 − 159.
    TwoOnes, 2, "85070591730234615865843651857942052727";
    TwoTight, 2, "170141183460469231731687303715884105727";
    TwoFull, 2, "340282366920938463463374607431768211297";
    // 2^189 − 25 and 2^190 − 11.
    ThreeWords, 3, "784637716923335095479473677900958302012794430558004314087";
    ThreeOnes, 3, "1569275433846670190958947355801916604025588861116008628213";
    // 2^254 − 245, and the base field of secp256k1.
    FourOnes, 4, "28948022309329048855892746252171976963317496166410141009864396001978282409739";
    FourFull, 4, "115792089237316195423570985008687907853269984665640564039457584007908834671663";
    // The scalar field of MNT4-298.
    FiveWords, 5, "475922286169261325753349249653048451545124879242694725395555128576210262817955800483758081";
    // 2^382 − 105.
    SixOnes, 6, "9850501549098619803069760025035903451269934817616361666987073351061430442874302652853566563721228910201656997576599";
    SixFull, 6, "39402006196394479212279040100143613805079739270465446667948293404245721771496870329047266088258938001861606973112319";
    // 2^440 − 33.
    SevenWords, 7, "2839213766779714416208296124562517712318911565184836172974571090549372219192960637992933791850638927971728600024477257552869537611743";
}

/// Values below p: small and large ones, some with words of ones or zeros, and random ones.
fn values<P: MontConfig<N>, const N: usize>(rng: &mut impl RngCore) -> Vec<Fp<MontBackend<P, N>, N>> {
    let p = P::MODULUS;
    let mut integers: Vec<BigInt<N>> = [0u64, 1, 2, u64::MAX].map(BigInt::from).into();
    let mut below = p;
    for _ in 0..3 {
        below.0[0] -= 1;
        integers.push(below);
    }
    integers.extend([P::R, P::R2]);
    for word in 0..N {
        for (inside, outside) in [(u64::MAX, 0), (0, u64::MAX), (1 << 63, 0)] {
            let mut x = BigInt([outside; N]);
            x.0[word] = inside;
            integers.push(x);
            // As large as the modulus above that word.
            x.0[word + 1..].copy_from_slice(&p.0[word + 1..]);
            integers.push(x);
        }
    }
    integers.extend((0..20).map(|_| BigInt(std::array::from_fn(|_| [0, u64::MAX, rng.r#gen()][rng.gen_range(0..3)]))));
    integers.retain(|x| *x < p);
    // In the form that is multiplied.
    let mut values: Vec<_> = integers.into_iter().map(Fp::new_unchecked).collect();
    values.extend((0..20).map(|_| Fp::rand(rng)));
    values
}

/// Compares with arkworks. `is_made` tells whether there is such arithmetic for the modulus, and `has_two_bits` whether
/// squares are shorter than products.
fn check<P: MontConfig<N>, const N: usize>(modulus: &'static Option<Modulus<N>>, is_made: bool, has_two_bits: bool) {
    assert_eq!(modulus.is_some(), is_made, "{}", P::MODULUS);
    assert_eq!(modulus.is_some_and(|modulus| modulus.has_two_bits()), has_two_bits, "{}", P::MODULUS);
    let Some(chains) = Chains::of(modulus) else { return };
    let values = values::<P, N>(&mut ark_std::test_rng());
    for a in &values {
        assert_eq!(chains.square(&a.0.0), (*a * a).0.0, "{a}²");
        for b in &values {
            assert_eq!(chains.mul(&a.0.0, &b.0.0), (*a * b).0.0, "{a} · {b}");
            assert_eq!(chains.add(&a.0.0, &b.0.0), (*a + b).0.0, "{a} + {b}");
            assert_eq!(chains.sub(&a.0.0, &b.0.0), (*a - b).0.0, "{a} − {b}");
        }
    }
}

macro_rules! check {
    ($($config:ty, $is_made:literal, $has_two_bits:literal;)*) => {
        $(check::<$config, _>(const { &Modulus::new(<$config>::MODULUS.0, <$config>::INV) }, $is_made, $has_two_bits);)*
    };
}

#[test]
fn all_operations_give_what_arkworks_does() {
    check! {
        TwoWords, true, true;
        TwoOnes, true, false;
        TwoTight, false, false;
        TwoFull, false, false;
        ThreeWords, true, true;
        ThreeOnes, true, false;
        FourOnes, true, false;
        FourFull, false, false;
        ark_bls12_381::FrConfig, true, false;
        ark_bn254::FrConfig, true, true;
        ark_bn254::FqConfig, true, true;
        FiveWords, true, true;
        ark_bls12_381::FqConfig, true, true;
        SixOnes, true, false;
        SixFull, false, false;
        SevenWords, false, false;
    }
}
