//! Membership in the subgroup of prime order, by one multiplication by a short scalar where the curve has an
//! endomorphism for it.

use std::any::type_name;

use ark_ec::{AffineRepr, CurveGroup, short_weierstrass::Affine};
use ark_ff::{Field, PrimeField, Zero};
use evariste_backend::Device;
use evariste_curve::{CurveConstant, CurveError, DeviceCurve, expect_generator};
use num_bigint::BigUint;

use crate::{error::Result, root_field::RootField};

/// The largest β of an extension by the root of −β that is computed with in lanes of the CPU.
pub(crate) const MAX_BETA: u8 = 6;

/// k P = (ends[0] x, ends[1] y), or of the conjugates of x and y, for the points of the subgroup alone; without ends, k
/// P = 0.
#[derive(Clone, Debug)]
pub(crate) struct Membership<F> {
    pub(crate) scalar: BigUint,
    pub(crate) ends: Option<[F; 2]>,
    pub(crate) conjugate: bool,
}

impl<F: RootField> Membership<F> {
    /// [`Membership::of`], of a curve whose generator has the order that is claimed, and whose cofactor is one that it
    /// may have.
    pub(crate) fn checked<C: DeviceCurve<BaseField = F>>(device: &Device) -> Result<Option<Self>> {
        expect_generator::<C>(device)?;
        // The numbers of points of curves over q elements are those between (√q − 1)² and (√q + 1)².
        let (order, p): (BigUint, BigUint) = (C::ScalarField::MODULUS.into(), F::BasePrimeField::MODULUS.into());
        let (points, q) = (cofactor::<C>() * order, p.pow(F::extension_degree() as u32));
        let middle = &q + 1u8;
        let trace = if points > middle { points - middle } else { middle - points };
        match &trace * &trace <= q * 4u8 {
            true => Ok(Self::of::<C>()),
            false => Err(CurveError { curve: type_name::<C>(), constant: CurveConstant::Cofactor }.into()),
        }
    }

    /// `None` where the whole curve is the subgroup.
    pub(crate) fn of<C: DeviceCurve<BaseField = F>>() -> Option<Self> {
        let cofactor = C::COFACTOR;
        if cofactor.split_first().is_some_and(|(low, high)| *low == 1 && high.iter().all(|limb| *limb == 0)) {
            return None;
        }
        let order: BigUint = C::ScalarField::MODULUS.into();
        let short = match F::extension_degree() {
            _ if !C::COEFF_A.is_zero() => None,
            1 => Self::of_first_group::<C>(&order),
            _ => Self::of_second_group::<C>(&order),
        };
        Some(short.unwrap_or(Self { scalar: order, ends: None, conjugate: false }))
    }

    /// In the family of Barreto, Lynn and Scott with embedding degree 12, r = z⁴ − z² + 1. For φ(x, y) = (β x, y) with
    /// a primitive third root of unity β, φ² + φ + 1 = 0 on the whole curve. If z² P = −φ(P), then r P = (z⁴ − z² + 1)
    /// P = (φ² + φ + 1) P = 0. Of both β one has this on the subgroup. Bowe, "Faster subgroup checks for BLS12-381"
    /// (2019), in the form of Scott, "A note on group membership tests" (2021).
    fn of_first_group<C: DeviceCurve<BaseField = F>>(order: &BigUint) -> Option<Self> {
        let square = order.sqrt() + 1u8;
        let z = square.sqrt();
        if &square * &square + 1u8 != order + &square || &z * &z != square {
            return None;
        }
        let p: BigUint = F::BasePrimeField::MODULUS.into();
        let beta = third_root::<F>(&p)?;
        let candidates = [beta, beta.square()].map(|beta| [beta, -F::ONE]);
        Self::tried::<C>(&square, candidates, false)
    }

    /// For ψ = the Frobenius endomorphism brought to the twist, or its negative: of degree p, so that ψ² − t ψ + p = 0
    /// with |t| ≤ 2 √p. Where p = n r ± k for a short k > 0, ψ = k on the subgroup for one such ψ, where t = k + p / k
    /// = k ± 1 modulo r, and t itself as both are short beside r. If ψ(P) = k P, then 0 = (k² − t k + p) P = (p ∓ k) P
    /// = n r P; and n has no factor in common with the cofactor of the twist, which is checked, so that r P = 0. In the
    /// family of Barreto, Lynn and Scott k = |z| (Scott's paper), and in that of Barreto and Naehrig k = 6 z² with n =
    /// 1 (El Housni, Guillevic and Piellard, "Co-factor clearing and subgroup membership testing on pairing-friendly
    /// curves", 2022, section 4.3).
    fn of_second_group<C: DeviceCurve<BaseField = F>>(order: &BigUint) -> Option<Self> {
        let p: BigUint = F::BasePrimeField::MODULUS.into();
        let (below, above) = (&p % order, order - &p % order);
        let (k, multiple) = if below < above { (below, &p / order) } else { (above, &p / order + 1u8) };
        let end = &k + 1u8;
        let short = &end * &end <= &p * 4u8 && order * order > &p * 16u8;
        if !short || greatest_common_divisor(multiple, cofactor::<C>()) != BigUint::from(1u8) {
            return None;
        }
        // (x, y) ↦ (u² x^p, u³ y^p) maps the curve to itself if u⁶ = b^(1 − p).
        let inverse = C::COEFF_B.inverse()?;
        let square = inverse.pow(((&p - 1u8) / 3u8).to_u64_digits());
        let cube = inverse.pow(((&p - 1u8) / 2u8).to_u64_digits());
        let beta = third_root::<F>(&p)?;
        let candidates = [F::ONE, beta, beta.square()].into_iter();
        let candidates = candidates.flat_map(|beta| [[square * beta, cube], [square * beta, -cube]]);
        Self::tried::<C>(&k, candidates, true)
    }

    /// With the first of these ends that the generator of the subgroup has.
    fn tried<C: DeviceCurve<BaseField = F>>(
        scalar: &BigUint,
        ends: impl IntoIterator<Item = [F; 2]>,
        conjugate: bool,
    ) -> Option<Self> {
        let generator = Affine::<C>::generator();
        let multiple = generator.mul_bigint(scalar.to_u64_digits()).into_affine();
        let of = |x: F| if conjugate { x.frobenius_map(1) } else { x };
        let found =
            ends.into_iter().find(|[u, v]| multiple.x == *u * of(generator.x) && multiple.y == *v * of(generator.y));
        Some(Self { scalar: scalar.clone(), ends: Some(found?), conjugate })
    }
}

fn cofactor<C: DeviceCurve>() -> BigUint {
    C::COFACTOR.iter().rev().fold(BigUint::ZERO, |x, limb| (x << 64u32) + *limb)
}

/// A primitive third root of unity of the prime field.
fn third_root<F: RootField>(p: &BigUint) -> Option<F> {
    let exponent = (p - 1u8) / 3u8;
    let powers = (2u64..64).map(|x| F::BasePrimeField::from(x).pow(exponent.to_u64_digits()));
    let root = powers.into_iter().find(|x| *x != F::BasePrimeField::ONE)?;
    (root.square() + root + F::BasePrimeField::ONE).is_zero().then(|| F::from_base_prime_field(root))
}

fn greatest_common_divisor(mut a: BigUint, mut b: BigUint) -> BigUint {
    while b != BigUint::ZERO {
        (a, b) = (b.clone(), a % b);
    }
    a
}
