//! Roots by the definition of Tonelli and Shanks, on the host, to compare with.

use crypto_bigint::{
    BoxedUint, Odd, Resize,
    modular::{BoxedMontyForm, BoxedMontyParams},
};

/// Takes a root of `value` modulo a prime. Gives `None` if `value` is no square, or if `prime` is even.
///
/// Each step finds the order of the remaining factor by squarings, and lowers it by a power of a non-residue. For p − 1
/// = 2^s q these are s²/2 squarings.
///
/// Source: Shanks, "Five number-theoretic algorithms", Proceedings of the Second Manitoba Conference on Numerical
/// Mathematics (1972).
pub fn sqrt(value: &BoxedUint, prime: &BoxedUint) -> Option<BoxedUint> {
    let odd = Option::<Odd<BoxedUint>>::from(prime.to_odd())?;
    let params = BoxedMontyParams::new(odd);
    let form = |x: &BoxedUint| BoxedMontyForm::new(x.clone().resize_unchecked(prime.bits_precision()), &params);
    let small = |small: u32| form(&BoxedUint::from(small));
    let one = small(1);
    let less = prime.wrapping_sub(BoxedUint::one());
    let symbol = |x: &BoxedMontyForm| x.pow(&(&less >> 1));
    let a = form(value);
    if bool::from(a.is_zero()) {
        return Some(a.retrieve());
    }
    if symbol(&a) != one {
        return None;
    }
    let adicity = less.trailing_zeros();
    let q = &less >> adicity;
    let mut z = (2..).map(small).find(|z| symbol(z) != one)?.pow(&q);
    let mut root = a.pow(&(&q >> 1)).mul(&a);
    let mut left = a.pow(&q);
    let mut order = adicity;
    while left != one {
        let mut square = left.clone();
        let mut steps = 0;
        while square != one {
            square = square.square();
            steps += 1;
        }
        for _ in steps + 1..order {
            z = z.square();
        }
        root = root.mul(&z);
        z = z.square();
        left = left.mul(&z);
        order = steps;
    }
    Some(root.retrieve())
}
