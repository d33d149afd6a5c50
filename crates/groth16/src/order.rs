//! The order of circom's domains.
//!
//! Constraint i of a circom key belongs to ω^i with ω a root of unity of the domain's order n. snarkjs takes the root
//! from the least quadratic non-residue, arkworks from a generator of its choice. The two agree on BN254 (5 is both),
//! and not on BLS12-381 (5 and 7). Here rows and H are put where arkworks' root has them.
//!
//! If circom's ζ of order 2n is arkworks' one to the power of k, then circom's i-th row ω^i = ζ^2i is row k·i mod n,
//! and its i-th point ζ^(2i+1) of the coset is the one with 2j + 1 = k·(2i + 1) mod 2n.

use ark_ff::PrimeField;

/// The way from circom's order of a domain to arkworks'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CircomOrder {
    /// k modulo 2n.
    power: u64,
    /// 2n.
    order: u64,
}

impl CircomOrder {
    /// The order of a domain of 2^`log_domain` points, fewer than the field's largest.
    pub(crate) fn new<F: PrimeField>(log_domain: u32) -> Self {
        let log_order = log_domain + 1;
        let squarings = F::TWO_ADICITY - log_order;
        let power = |mut root: F, squarings: u32| {
            (0..squarings).for_each(|_| {
                root.square_in_place();
            });
            root
        };
        let residue = |x: &F| x.legendre().is_qnr();
        let non_residue = (2_u64..).map(F::from).find(residue).unwrap_or(F::GENERATOR);
        let circom = power(non_residue.pow(F::TRACE), squarings);
        let arkworks = power(F::TWO_ADIC_ROOT_OF_UNITY, squarings);
        // Bit by bit, from the lowest on: what is left of circom's root after the bits so far has a smaller order.
        let (mut k, mut rest, mut step) = (0, circom, arkworks.inverse().unwrap_or(F::ONE));
        for bit in 0..log_order {
            if power(rest, log_order - 1 - bit) != F::ONE {
                k |= 1 << bit;
                rest *= step;
            }
            step.square_in_place();
        }
        Self { power: k, order: 1 << log_order }
    }

    /// The place of circom's row `i`.
    pub(crate) fn row(&self, i: u32) -> u32 {
        ((u64::from(i) * self.power) & (self.order / 2 - 1)) as u32
    }

    /// The place of circom's point `i` of H.
    pub(crate) fn coset(&self, i: u32) -> u32 {
        ((((2 * u64::from(i) + 1) * self.power) & (self.order - 1)) / 2) as u32
    }

    /// Puts the points of H from circom's order into arkworks'.
    pub(crate) fn sort<T: Copy>(&self, h: &mut [T]) {
        if self.power != 1 {
            let circom = h.to_vec();
            (0..).zip(circom).for_each(|(i, point)| h[self.coset(i) as usize] = point);
        }
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::{FftField, Field};

    use super::*;

    /// Places are where arkworks' roots equal those that snarkjs has.
    #[test]
    fn rows_and_points_belong_to_the_same_roots() {
        // ffjavascript's `Fr.w[31]` of BLS12-381.
        let digits = "43599901455287962219281063402626541872197057165786841304067502694013639882090";
        let Ok(theirs) = digits.parse::<Fr>() else { panic!("the digits are a number") };
        for log_domain in [0, 1, 2, 5] {
            let order = CircomOrder::new::<Fr>(log_domain);
            let root = |root: Fr, log: u32| root.pow([1 << (31 - log)]);
            let zeta = root(theirs, log_domain + 1);
            let arkworks = root(Fr::TWO_ADIC_ROOT_OF_UNITY.square(), log_domain + 1);
            // Roots of small orders are the same by chance.
            assert!(log_domain < 5 || zeta != arkworks);
            for i in 0..1 << log_domain {
                let (row, coset) = (u64::from(order.row(i)), u64::from(order.coset(i)));
                assert_eq!(zeta.pow([2 * u64::from(i)]), arkworks.pow([2 * row]));
                assert_eq!(zeta.pow([2 * u64::from(i) + 1]), arkworks.pow([2 * coset + 1]));
            }
        }
    }

    #[test]
    fn the_curves_with_the_same_root_keep_their_order() {
        for log_domain in [0, 1, 10, 27] {
            assert_eq!(CircomOrder::new::<ark_bn254::Fr>(log_domain), CircomOrder { power: 1, order: 2 << log_domain });
        }
    }
}
