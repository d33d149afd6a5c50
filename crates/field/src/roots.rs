use ark_ff::{FftField, Field, PrimeField};

/// Integers that are tried for one that is no square: of primes of 384 bits, the least is below 500.
const CANDIDATES: u64 = 1 << 10;

/// Returns a primitive root of unity of order 2^s, for s = [`FftField::TWO_ADICITY`]. This is the configured root if it
/// is primitive, and otherwise x^((p − 1) / 2^s) for the least integer x that gives one. The configured root is not
/// primitive if its generator is a square. The result is `None` if there is no such x, as modulo a composite number.
///
/// The call takes s squarings if the configured root is primitive.
pub fn two_adic_root<F: FftField>() -> Option<F> {
    let halvings = F::TWO_ADICITY.checked_sub(1)?;
    let is_primitive = |root: &F| (0..halvings).fold(*root, |root, _| root.square()) == -F::ONE;
    let configured = F::TWO_ADIC_ROOT_OF_UNITY;
    if is_primitive(&configured) {
        return Some(configured);
    }
    let mut exponent = F::BasePrimeField::MODULUS_MINUS_ONE_DIV_TWO;
    exponent >>= halvings;
    let root = |x: u64| F::from_base_prime_field(F::BasePrimeField::from(x).pow(exponent));
    (2..CANDIDATES).map(root).find(is_primitive)
}

#[cfg(test)]
mod tests {
    use ark_ff::{Fp64, Fp256, Fp384, MontBackend, MontConfig};

    use super::*;

    #[derive(MontConfig)]
    #[modulus = "17"]
    #[generator = "2"]
    struct SquareConfig;

    #[derive(MontConfig)]
    #[modulus = "115792089210356248762697446949407573530086143415290314195533631308867097853951"]
    #[generator = "6"]
    struct P256Config;

    #[derive(MontConfig)]
    #[modulus = "39402006196394479212279040100143613805079739270465446667948293404245721771496870329047266088258938001861606973112319"]
    #[generator = "2"]
    struct P384Config;

    #[derive(MontConfig)]
    #[modulus = "21"]
    #[generator = "2"]
    struct CompositeConfig;

    fn check<F: FftField>() {
        let root = two_adic_root::<F>().expect("the modulus is prime");
        assert_eq!(root.pow([1 << (F::TWO_ADICITY - 1)]), -F::ONE);
    }

    #[test]
    fn roots_are_primitive_whatever_generator_is_configured() {
        type Square = Fp64<MontBackend<SquareConfig, 1>>;
        assert_eq!(Square::TWO_ADIC_ROOT_OF_UNITY.pow([8]), Square::ONE, "2 is 6²");
        check::<Square>();
        check::<Fp256<MontBackend<P256Config, 4>>>();
        check::<Fp384<MontBackend<P384Config, 6>>>();
        check::<ark_bls12_381::Fr>();
        assert_eq!(two_adic_root(), Some(ark_bls12_381::Fr::TWO_ADIC_ROOT_OF_UNITY));
    }

    #[test]
    fn a_modulus_that_is_no_prime_has_none() {
        assert_eq!(two_adic_root::<Fp64<MontBackend<CompositeConfig, 1>>>(), None);
    }
}
