//! arkworks' prover, with arkworks' reduction and with circom's.

use ark_bn254::{Bn254, Fr};
use ark_ec::pairing::Pairing;
use ark_ff::{AdditiveGroup, Field, PrimeField, UniformRand};
use ark_groth16::{
    Groth16,
    r1cs_to_qap::{LibsnarkReduction, R1CSToQAP, evaluate_constraint},
};
use ark_poly::EvaluationDomain;
use ark_relations::{
    gr1cs::{
        ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, LinearCombination, Matrix, OptimizationGoal,
        R1CS_PREDICATE_LABEL, Result as R1csResult, SynthesisError, SynthesisMode, Variable,
    },
    lc,
};
use ark_serialize::CanonicalSerialize;
use ark_std::test_rng;
use evariste_groth16::{Error, Key, Proof, ProvingKey, Quotient, R1cs, Verifier, Witness, reference};

/// x → x² + i, some times; the result and the number of steps are public.
#[derive(Clone, Copy)]
struct Squares<F> {
    start: F,
    steps: u64,
}

impl<F: Field> ConstraintSynthesizer<F> for Squares<F> {
    fn generate_constraints(self, cs: ConstraintSystemRef<F>) -> R1csResult<()> {
        let end = (0..self.steps).fold(self.start, |x, i| x.square() + F::from(i));
        let public = cs.new_input_variable(|| Ok(end))?;
        let count = cs.new_input_variable(|| Ok(F::from(self.steps)))?;
        let mut x = LinearCombination::from(cs.new_witness_variable(|| Ok(self.start))?);
        let mut value = self.start;
        for i in 0..self.steps {
            value = value.square();
            let square = cs.new_witness_variable(|| Ok(value))?;
            let factor = x.clone();
            cs.enforce_r1cs_constraint(|| factor.clone(), || factor.clone(), || lc!() + square)?;
            value += F::from(i);
            x = lc!() + square + (F::from(i), Variable::One);
        }
        cs.enforce_r1cs_constraint(|| x.clone(), || lc!() + Variable::One, || lc!() + public)?;
        let steps = F::from(self.steps);
        cs.enforce_r1cs_constraint(|| lc!() + (steps, Variable::One), || lc!() + Variable::One, || lc!() + count)
    }
}

struct System<F: Field> {
    matrices: Vec<Matrix<F>>,
    assignment: Vec<F>,
    inputs: usize,
}

fn system<F: PrimeField>(circuit: Squares<F>) -> System<F> {
    let cs = ConstraintSystem::new_ref();
    cs.set_optimization_goal(OptimizationGoal::Constraints);
    cs.set_mode(SynthesisMode::Prove { construct_matrices: true, generate_lc_assignments: false });
    circuit.generate_constraints(cs.clone()).unwrap();
    cs.finalize();
    let matrices = cs.to_matrices().unwrap()[R1CS_PREDICATE_LABEL].clone();
    let assignment = [cs.instance_assignment().unwrap(), cs.witness_assignment().unwrap()].concat();
    System { matrices, assignment, inputs: cs.num_instance_variables() }
}

fn bytes<E: Pairing>(proof: &Proof<E>) -> Vec<u8> {
    let mut bytes = Vec::new();
    proof.serialize_uncompressed(&mut bytes).unwrap();
    bytes
}

/// The reference prover and arkworks' make the same proof under the same blinding. snarkjs verifies those over BLS12-381.
fn agrees<Q: R1CSToQAP>(system: &System<Fr>, theirs: &ProvingKey<Bn254>, key: &Key<Bn254>) {
    let witness = Witness::new(system.assignment.clone()).unwrap();
    let rng = &mut test_rng();
    let blinding = [(); 2].map(|()| Fr::rand(rng));
    for [r, s] in [blinding, [Fr::ZERO; 2]] {
        let expected = Groth16::<Bn254, Q>::create_proof_with_reduction_and_matrices(
            theirs,
            r,
            s,
            &system.matrices,
            system.inputs,
            system.matrices[0].len(),
            &system.assignment,
        );
        let actual = reference::prove(key, &witness, r, s).unwrap();
        assert_eq!(bytes(&actual), bytes(&expected.unwrap()));
    }
}

fn arkworks_keys(steps: u64) {
    let rng = &mut test_rng();
    let circuit = Squares { start: Fr::rand(rng), steps };
    let system = system(circuit);
    let theirs = Groth16::<Bn254>::generate_random_parameters_with_reduction(circuit, rng).unwrap();
    let key = Key::from_arkworks(theirs.clone(), &system.matrices).unwrap();
    assert_eq!((key.quotient(), key.public_inputs()), (Quotient::Arkworks, 2));
    agrees::<LibsnarkReduction>(&system, &theirs, &key);

    let witness = Witness::new(system.assignment.clone()).unwrap();
    let r1cs = R1cs::from_arkworks(&system.matrices, key.variables(), key.public_inputs()).unwrap();
    r1cs.check(&witness).unwrap();
    let [r, s] = [(); 2].map(|()| Fr::rand(rng));
    let proof = reference::prove(&key, &witness, r, s).unwrap();
    let verifier = Verifier::new(key.verifying_key()).unwrap();
    verifier.verify(&proof, &system.assignment[1..3]).unwrap();
}

pub(crate) fn arkworks_keys_give_the_same_bytes() {
    // From one constraint less than fill a domain to one more.
    for steps in [0, 1, 10, 11, 12, 100] {
        arkworks_keys(steps);
    }
}

/// circom's reduction as circom's users of arkworks have it.
struct CircomReduction;

impl R1CSToQAP for CircomReduction {
    fn instance_map_with_evaluation<F: PrimeField, D: EvaluationDomain<F>>(
        cs: ConstraintSystemRef<F>,
        t: &F,
    ) -> R1csResult<(Vec<F>, Vec<F>, Vec<F>, F, usize, usize)> {
        LibsnarkReduction::instance_map_with_evaluation::<F, D>(cs, t)
    }

    fn witness_map_from_matrices<F: PrimeField, D: EvaluationDomain<F>>(
        matrices: &[Matrix<F>],
        inputs: usize,
        constraints: usize,
        assignment: &[F],
    ) -> R1csResult<Vec<F>> {
        let domain = D::new(constraints + inputs).ok_or(SynthesisError::PolynomialDegreeTooLarge)?;
        let shift = F::get_root_of_unity(2 * domain.size() as u64).ok_or(SynthesisError::PolynomialDegreeTooLarge)?;
        let mut a: Vec<_> = matrices[0].iter().map(|row| evaluate_constraint(row, assignment)).collect();
        let mut b: Vec<_> = matrices[1].iter().map(|row| evaluate_constraint(row, assignment)).collect();
        a.extend(&assignment[..inputs]);
        b.resize(a.len(), F::ZERO);
        let mut c: Vec<_> = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
        for values in [&mut a, &mut b, &mut c] {
            domain.ifft_in_place(values);
            D::distribute_powers(values, shift);
            domain.fft_in_place(values);
        }
        Ok(a.iter().zip(&b).zip(&c).map(|((a, b), c)| *a * b - c).collect())
    }

    fn h_query_scalars<F: PrimeField, D: EvaluationDomain<F>>(_: usize, _: F, _: F, _: F) -> R1csResult<Vec<F>> {
        Err(SynthesisError::Unsatisfiable)
    }
}

pub(crate) fn circom_keys_give_the_same_bytes() {
    let rng = &mut test_rng();
    for steps in [1, 11, 12, 50] {
        let system = system(Squares { start: Fr::rand(rng), steps });
        let r1cs = R1cs::from_arkworks(&system.matrices, system.assignment.len(), system.inputs - 1).unwrap();
        let key = Key::<Bn254>::insecure(&r1cs, rng).unwrap();
        let theirs = ProvingKey {
            vk: key.verifying_key().clone(),
            beta_g1: key.beta_g1(),
            delta_g1: key.delta_g1(),
            a_query: key.a_query().to_vec(),
            b_g1_query: key.b_g1_query().to_vec(),
            b_g2_query: key.b_g2_query().to_vec(),
            h_query: key.h_query().to_vec(),
            l_query: key.l_query().to_vec(),
        };
        agrees::<CircomReduction>(&system, &theirs, &key);
    }
}

pub(crate) fn keys_and_matrices_fit_together() {
    let rng = &mut test_rng();
    let circuit = Squares { start: Fr::rand(rng), steps: 5 };
    let system = system(circuit);
    let good = Groth16::<Bn254>::generate_random_parameters_with_reduction(circuit, rng).unwrap();
    let part = |key: &ProvingKey<Bn254>, matrices: &[Matrix<Fr>]| match Key::from_arkworks(key.clone(), matrices) {
        Err(Error::Parts { part, .. }) => part,
        other => panic!("{other:?}"),
    };
    assert_eq!(part(&good, &system.matrices[..1]), "matrices");
    type Change = fn(&mut ProvingKey<Bn254>);
    let changes: [(&str, Change); 5] = [
        ("b_g1_query", |key| key.b_g1_query.truncate(2)),
        ("b_g2_query", |key| key.b_g2_query.truncate(2)),
        ("l_query", |key| key.l_query.truncate(2)),
        ("h_query", |key| key.h_query.truncate(2)),
        ("gamma_abc_g1", |key| key.vk.gamma_abc_g1.clear()),
    ];
    for (name, change) in changes {
        let mut key = good.clone();
        change(&mut key);
        assert_eq!(part(&key, &system.matrices), name);
    }
    let mut matrices = system.matrices.clone();
    matrices[1].pop();
    assert_eq!(part(&good, &matrices), "the rows of B");
    for column in [system.assignment.len(), usize::MAX] {
        let mut matrices = system.matrices.clone();
        matrices[0][0].push((Fr::ONE, column));
        assert_eq!(part(&good, &matrices), "a column of the matrices");
        assert!(matches!(R1cs::from_arkworks(&matrices, system.assignment.len(), 2), Err(Error::Parts { .. })));
    }
    assert_eq!(Key::from_arkworks(good, &system.matrices).unwrap().write_zkey(&mut Vec::new()), Err(Error::Quotient));
}
