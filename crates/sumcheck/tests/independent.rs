//! The messages of an independent prover, that of `ark-linear-sumcheck`, under the same challenges. It is built on
//! another version of arkworks: elements pass as bytes.

use std::rc::Rc;

use ark_bls12_381::Fr;
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField};
use ark_ff_04::PrimeField as _;
use ark_linear_sumcheck::ml_sumcheck::{
    data_structures::ListOfProductsOfPolynomials,
    protocol::{IPForMLSumcheck, verifier::VerifierMsg},
};
use ark_poly_04::DenseMultilinearExtension;
use ark_serialize_04::CanonicalSerialize;
use evariste_backend::{Buffer, Device};
use evariste_field::{Expression, Mont};
use evariste_sumcheck::{Closure, Order, Statement, Sumcheck, Weight, reference};

type Other = ark_bls12_381_04::Fr;

const NUM_VARS: usize = 5;

fn other(x: &Fr) -> Other {
    Other::from_le_bytes_mod_order(&x.into_bigint().to_bytes_le())
}

/// Σ c · Π T over products of tables, as both say it.
struct Sum {
    tables: Vec<Vec<Fr>>,
    /// Coefficients, and tables by number.
    products: Vec<(u64, Vec<usize>)>,
}

impl Sum {
    fn expression(&self) -> Expression {
        let product = |(coefficient, tables): &(u64, Vec<usize>)| {
            let factors = tables.iter().map(|table| Expression::column(*table as u32));
            factors.product::<Expression>() * *coefficient as i64
        };
        self.products.iter().map(product).sum()
    }

    /// The values at 0, 1, …, degree of each round's polynomial by the other prover, with `weight` a factor of every
    /// product.
    fn by_other(&self, weight: Option<&[Fr]>, challenges: &[Fr]) -> Vec<Vec<Fr>> {
        let table = |values: &[Fr]| {
            let values = values.iter().map(other).collect();
            Rc::new(DenseMultilinearExtension::from_evaluations_vec(NUM_VARS, values))
        };
        let tables: Vec<_> = self.tables.iter().map(|values| table(values)).collect();
        let weight = weight.map(table);
        let mut polynomial = ListOfProductsOfPolynomials::new(NUM_VARS);
        for (coefficient, factors) in &self.products {
            let factors = factors.iter().map(|i| Rc::clone(&tables[*i])).chain(weight.clone());
            polynomial.add_product(factors, Other::from(*coefficient));
        }
        let mut state = IPForMLSumcheck::prover_init(&polynomial);
        let mut challenge = None;
        let round = |next: &Fr| {
            let message = IPForMLSumcheck::prove_round(&mut state, &challenge);
            challenge = Some(VerifierMsg { randomness: other(next) });
            let mut bytes = Vec::new();
            message.serialize_uncompressed(&mut bytes).unwrap();
            // Behind their number.
            bytes[8..].chunks_exact(32).map(Fr::from_le_bytes_mod_order).collect()
        };
        challenges.iter().map(round).collect()
    }
}

fn numbers(len: usize, seed: u64) -> Vec<Fr> {
    (0..len as u64).map(|i| Fr::from(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(64 * seed + i + 1)).square()).collect()
}

/// Values at 0, 1, …, `degree` of the polynomial with a coefficient for each power, the constant one first.
fn values(coefficients: &[Fr], degree: usize) -> Vec<Fr> {
    let at = |x: u64| coefficients.iter().rev().fold(Fr::ZERO, |value, c| value * Fr::from(x) + c);
    (0..=degree as u64).map(at).collect()
}

#[test]
fn messages_are_those_of_an_independent_prover() {
    let tables: Vec<Vec<Fr>> = (0..3).map(|table| numbers(1 << NUM_VARS, table)).collect();
    let sum = Sum { tables, products: vec![(3, vec![0, 1, 2]), (1, vec![0, 0]), (7, vec![2])] };
    let (point, challenges) = (numbers(NUM_VARS, 10), numbers(NUM_VARS, 11));
    let device = Device::cpu();
    let buffers: Vec<Buffer<Mont<Fr>>> = sum.tables.iter().map(|table| device.upload(table).unwrap()).collect();
    let borrowed: Vec<&Buffer<Mont<Fr>>> = buffers.iter().collect();
    let plan = Sumcheck::<Fr>::new(&device, &sum.expression()).unwrap();

    for weight in [Weight::None, Weight::Eq(point.clone())] {
        let weighted = weight != Weight::None;
        let statement = Statement::new(NUM_VARS, &sum.expression()).unwrap().weight(weight).order(Order::LsbFirst);
        let eq = |x: usize| -> Fr {
            point.iter().enumerate().map(|(j, p)| if x >> j & 1 == 1 { *p } else { Fr::ONE - p }).product()
        };
        let eq: Vec<Fr> = (0..1 << NUM_VARS).map(eq).collect();
        let expected = sum.by_other(weighted.then_some(&eq), &challenges);

        let claim = reference::sum(&statement, &sum.tables, weighted.then_some(&point));
        assert_eq!(expected[0][0] + expected[0][1], claim);
        let mut drawn = challenges.iter();
        let mut transcript = Closure::new(|_: &[u8]| *drawn.next().unwrap());
        let proved = plan.prove(&statement, &borrowed, claim, &mut transcript).unwrap();
        assert_eq!(proved.point, challenges);

        // Ours leaves out the constant coefficient, which follows from the claim, and the weight's factors of this
        // variable and of those before.
        let (mut claim, mut before) = (claim, Fr::ONE);
        for (round, (message, expected)) in proved.proof.rounds.iter().zip(&expected).enumerate() {
            let [low, high] = if weighted { [Fr::ONE - point[round], point[round]] } else { [Fr::ONE; 2] };
            let constant = (claim - high * message.iter().sum::<Fr>()) * (low + high).inverse().unwrap();
            let polynomial: Vec<Fr> = std::iter::once(constant).chain(message.iter().copied()).collect();
            let r = challenges[round];
            let factor = |x: Fr| if weighted { before * (low + (high - low) * x) } else { Fr::ONE };
            let degree = message.len() + usize::from(weighted);
            let whole: Vec<Fr> =
                values(&polynomial, degree).iter().enumerate().map(|(x, y)| *y * factor(Fr::from(x as u64))).collect();
            assert_eq!(&whole, expected, "round {round}, {:?}", statement.binding_order());
            claim = polynomial.iter().rev().fold(Fr::ZERO, |value, c| value * r + c);
            before = factor(r);
        }
    }
}
