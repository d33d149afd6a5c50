//! Transforms by their definition, as a reference.

use ark_ff::{FftField, Field};
use evariste_field::two_adic_root;

use crate::order::{Order, reverse_bits};

/// Returns the primitive root of unity of order 2^`log_n` of all transforms: [`two_adic_root`], squared down. `None` if
/// `log_n` exceeds the field's two-adicity, or if the field has no such root.
pub fn root_of_unity<F: FftField>(log_n: u32) -> Option<F> {
    let squarings = F::TWO_ADICITY.checked_sub(log_n)?;
    if log_n == 0 {
        return Some(F::ONE);
    }
    Some((0..squarings).fold(two_adic_root()?, |root: F, _| root.square()))
}

/// Computes X_k = Σ x_i (g w^k)^i for each k, in n² multiplications.
///
/// # Panics
/// If the length is no power of two, or beyond the field's two-adicity.
pub fn forward<F: FftField>(x: &[F], g: F) -> Vec<F> {
    let w: F = root_of_unity(x.len().ilog2()).expect("the field has a root of unity of this order");
    assert!(x.len().is_power_of_two());
    (0..x.len() as u64).map(|k| horner(x, g * w.pow([k]))).collect()
}

/// Evaluates Σ x_i z^i.
pub fn horner<F: Field>(x: &[F], z: F) -> F {
    x.iter().rev().fold(F::ZERO, |sum, x| sum * z + x)
}

/// Reorders elements; their number must be a power of two.
pub fn reorder<T: Copy>(x: &[T], from: Order, to: Order) -> Vec<T> {
    if from == to {
        return x.to_vec();
    }
    let log_n = x.len().ilog2();
    (0..x.len() as u32).map(|i| x[reverse_bits(i, log_n) as usize]).collect()
}

/// Multiplies two polynomials, given by their coefficients from the constant term on. The product is empty if a factor
/// is.
pub fn product<F: FftField>(a: &[F], b: &[F]) -> Vec<F> {
    let len = if a.is_empty() || b.is_empty() { 0 } else { a.len() + b.len() - 1 };
    let mut product = vec![F::ZERO; len];
    for (i, x) in a.iter().enumerate() {
        b.iter().enumerate().for_each(|(j, y)| product[i + j] += *x * y);
    }
    product
}

#[cfg(test)]
mod tests {
    use ark_ff::{AdditiveGroup, Fp64, Fp384, MontBackend, MontConfig};
    use evariste_backend::{Device, Error as DeviceError, Secrecy};
    use evariste_field::{DeviceField, Mont};

    use super::*;
    use crate::{
        error::Error,
        host::{forward_host, inverse_host},
        out_of_core::OutOfCore,
        plan::Ntt,
    };

    /// 2 is 6², and so of order 8.
    #[derive(MontConfig)]
    #[modulus = "17"]
    #[generator = "2"]
    struct SquareConfig;
    type Square = Fp64<MontBackend<SquareConfig, 1>>;

    /// That of secp384r1, where 2 is a square as well.
    #[derive(MontConfig)]
    #[modulus = "39402006196394479212279040100143613805079739270465446667948293404245721771496870329047266088258938001861606973112319"]
    #[generator = "2"]
    struct P384Config;
    type P384 = Fp384<MontBackend<P384Config, 6>>;

    #[derive(MontConfig)]
    #[modulus = "21"]
    #[generator = "2"]
    struct CompositeConfig;
    type Composite = Fp64<MontBackend<CompositeConfig, 1>>;

    /// The value at each root of unity comes once, whichever the first root is, and nothing else.
    fn check<F: DeviceField + FftField>(log_n: u32) {
        let n = 1usize << log_n;
        let x: Vec<F> = (1..=n as u64).map(F::from).collect();
        let mut y = x.clone();
        forward_host(&Device::cpu(), &mut y).unwrap();
        let all = (1..).map(F::from).filter(|root| root.pow([n as u64]) == F::ONE);
        let mut expected: Vec<F> = all.take(n).map(|root| horner(&x, root)).collect();
        let mut found = y.clone();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "2^{log_n}");
        assert_eq!(y, forward(&x, F::ONE));
        inverse_host(&Device::cpu(), &mut y).unwrap();
        assert_eq!(y, x);
    }

    #[test]
    fn a_generator_that_is_a_square_changes_nothing() {
        (0..=4).for_each(check::<Square>);
        check::<P384>(0);
        assert_eq!(root_of_unity::<P384>(1), Some(-P384::ONE));
        let mut x = [P384::from(3), P384::from(5)];
        forward_host(&Device::cpu(), &mut x).unwrap();
        assert_eq!(x, [8, -2].map(P384::from));
        let refused = Ntt::<Square>::new(&Device::cpu(), 5).unwrap_err();
        assert_eq!(refused, Error::TwoAdicity { expected: 4, actual: 5 });
    }

    #[test]
    fn a_field_without_a_root_is_an_error() {
        let error = Error::NoRoot { field: std::any::type_name::<Composite>() };
        assert_eq!(Ntt::<Composite>::new(&Device::cpu(), 1).unwrap_err(), error);
        assert_eq!(forward_host(&Device::cpu(), &mut [Composite::ZERO; 2]), Err(error));
    }

    /// The least memory that the error names is enough, and one byte less is not.
    #[test]
    fn the_least_memory_out_of_core_is_enough() {
        type F = ark_bls12_381::Fr;
        let device = Device::cpu();
        for log_n in 0..=16 {
            let plan = |bytes: u64| OutOfCore::<F>::new(&device, log_n, bytes, Secrecy::Public);
            let Error::Device(DeviceError::InsufficientMemory { needed, available: 0 }) = plan(0).unwrap_err() else {
                panic!("of nothing")
            };
            let refused = plan(needed - 1).unwrap_err();
            let expected = DeviceError::InsufficientMemory { needed, available: needed - 1 };
            assert_eq!(refused, Error::Device(expected), "2^{log_n}");
            let x: Vec<F> = (0..1 << log_n).map(F::from).collect();
            let (mut y, mut data) = (x.clone(), device.upload::<Mont<F>>(&x).unwrap());
            plan(needed).unwrap().forward_host(&mut y).unwrap();
            Ntt::new(&device, log_n).unwrap().forward(&mut data).unwrap();
            assert_eq!(y, data.to_vec().unwrap(), "2^{log_n}");
        }
    }
}
