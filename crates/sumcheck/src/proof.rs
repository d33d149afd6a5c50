//! Proofs and their verification.

use evariste_field::DeviceField;

use crate::{
    error::Refused,
    polynomial::evaluate,
    statement::Statement,
    transcript::{Transcript, bytes_of, element_bytes, get},
};

/// A proof that a sum equals the claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof<E> {
    /// For each round the coefficients of X to X^degree; see [`Statement`].
    pub rounds: Vec<Vec<E>>,
    /// The value of each table at the point, after all rounds; none after some of them.
    pub values: Vec<E>,
}

/// The rest of the verifier's work: that the tables, which it knows by commitments or otherwise, have these values.
#[must_use = "a proof shows nothing before the values of the tables are checked"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubClaim<E> {
    /// The coordinates of the bound variables: by variable after all rounds, by round after some.
    pub point: Vec<E>,
    /// The claimed sum of the expression over the remaining variables, weighted by their factors of the weight. After
    /// all rounds, it is the value of the expression at the point.
    pub value: E,
    /// The claimed value of each table at the point; the expression of them is `value`. None after some of the rounds.
    pub tables: Vec<E>,
    /// The point of the weight, drawn from the transcript in a zero-check.
    pub weight: Option<Vec<E>>,
}

impl<E: DeviceField> Proof<E> {
    /// Encodes the proof as its elements one after the other, those of the rounds first. Each coefficient is an integer
    /// below the prime, in little-endian order. It has 4 bytes for each 32 bits that the prime has or begins.
    pub fn to_bytes(&self) -> Vec<u8> {
        let rounds = self.rounds.iter().flat_map(|round| bytes_of(round));
        rounds.chain(bytes_of(&self.values)).collect()
    }

    /// Decodes a proof of the first `rounds` rounds of a statement from the bytes of [`Proof::to_bytes`].
    ///
    /// # Errors
    /// - [`Refused::Shape`] if there are more rounds than the statement has variables, or another number of bytes than
    ///   these rounds take.
    /// - [`Refused::NotCanonical`] for an integer that is not below the prime.
    pub fn from_bytes(statement: &Statement<E>, rounds: usize, bytes: &[u8]) -> Result<Self, Refused> {
        let (each, degree) = (element_bytes::<E>(), statement.degree());
        let values = if rounds == statement.num_vars() { statement.tables() } else { 0 };
        let expected = rounds.saturating_mul(degree).saturating_add(values).saturating_mul(each);
        if rounds > statement.num_vars() {
            let expected = statement.num_vars();
            return Err(Refused::Shape { what: "the rounds of a proof", expected, actual: rounds });
        }
        if bytes.len() != expected {
            return Err(Refused::Shape { what: "the bytes of a proof", expected, actual: bytes.len() });
        }
        let element = |(index, bytes): (usize, &[u8])| get(bytes).ok_or(Refused::NotCanonical { index });
        let elements: Vec<E> = bytes.chunks_exact(each).enumerate().map(element).collect::<Result<_, _>>()?;
        let (messages, values) = elements.split_at(rounds * degree);
        Ok(Self { rounds: messages.chunks_exact(degree).map(<[E]>::to_vec).collect(), values: values.to_vec() })
    }
}

impl<E: DeviceField> Statement<E> {
    /// Checks a proof of all rounds that the sum is `claim`, with a transcript in the state in which the prover's was.
    ///
    /// # Errors
    /// - [`Refused::Shape`] unless the proof has the rounds, degree and values of this statement. Also if constants of
    ///   the statement or coordinates of its point are missing or too many.
    /// - [`Refused::ZeroCheckClaim`] for a zero-check with a claim that is not 0.
    /// - [`Refused::SmallChallenges`] if challenges give the statement fewer bits of soundness than
    ///   [`MIN_SOUNDNESS_BITS`](crate::MIN_SOUNDNESS_BITS), unless it allows that.
    /// - [`Refused::Final`] if the proof does not lead from the claim to its values.
    pub fn verify(
        &self,
        claim: E,
        proof: &Proof<E>,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<SubClaim<E>, Refused> {
        self.verify_rounds(self.num_vars(), claim, proof, transcript)
    }

    /// Checks a proof of the first `rounds` rounds. If these are not all, only its shape can be wrong, and the claim
    /// holds if the sum in the sub-claim does.
    ///
    /// # Errors
    /// Those of [`Statement::verify`], about shape, claim and challenges; [`Refused::Final`] only if these are all
    /// rounds.
    pub fn verify_rounds(
        &self,
        rounds: usize,
        claim: E,
        proof: &Proof<E>,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<SubClaim<E>, Refused> {
        let shape = |what, expected, actual| match expected == actual {
            true => Ok(()),
            false => Err(Refused::Shape { what, expected, actual }),
        };
        self.check()?;
        self.check_claim(claim)?;
        let (num_vars, degree) = (self.num_vars(), self.degree());
        shape("rounds of a proof", rounds.min(num_vars), proof.rounds.len())?;
        proof.rounds.iter().try_for_each(|round| shape("elements of a round", degree, round.len()))?;
        let whole = rounds >= num_vars;
        shape("values of tables", if whole { self.tables() } else { 0 }, proof.values.len())?;

        let weight = self.begin(claim, proof.rounds.len(), transcript);
        let mut value = claim;
        let mut point = vec![E::ZERO; proof.rounds.len()];
        for (i, round) in proof.rounds.iter().enumerate() {
            transcript.absorb(&bytes_of(round));
            let challenge = transcript.challenge();
            value = evaluate(&complete(round, value, self.weights(weight.as_deref(), i)), challenge);
            point[if whole { self.binding_order().variable(num_vars, i) } else { i }] = challenge;
        }
        if whole {
            transcript.absorb(&bytes_of(&proof.values));
            if self.expression().value(&proof.values, self.constants_of()) != value {
                return Err(Refused::Final);
            }
        }
        Ok(SubClaim { point, value, tables: proof.values.clone(), weight })
    }
}

/// The polynomial of a round with its constant coefficient, for which w₀ q(0) + w₁ q(1) is `sum`.
pub(crate) fn complete<E: DeviceField>(round: &[E], sum: E, [w0, w1]: [E; 2]) -> Vec<E> {
    let rest: E = round.iter().sum();
    // w₀ + w₁ is 1 or 2.
    let scale = if w0 + w1 == E::ONE { E::ONE } else { (w0 + w1).inverse().unwrap_or(E::ZERO) };
    let mut polynomial = vec![(sum - w1 * rest) * scale];
    polynomial.extend_from_slice(round);
    polynomial
}
