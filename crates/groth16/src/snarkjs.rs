//! Proofs, public inputs and verifying keys as snarkjs writes them: JSON with decimal numbers, and the arguments of the
//! Solidity verifier.
//!
//! Readers refuse other fields, numbers that are not below the modulus, signs, leading zeros, and points that are not in
//! the subgroup of prime order.

mod number;
mod point;

use ark_ec::AffineRepr;
use ark_ff::{Field, PrimeField};
use ark_groth16::{Proof, VerifyingKey};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::ser::{PrettyFormatter, Serializer};

use self::{
    number::{from_decimal, to_decimal, to_hex},
    point::{G1Json, G2Json, affine, from_g1, from_g2, to_g1, to_g2},
};
use crate::{
    curve::{CircomCurve, Curve},
    error::{Error, JsonProblem, PointError, Result},
};

/// The name of the proof system.
const PROTOCOL: &str = "groth16";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProofJson {
    pi_a: G1Json,
    pi_b: G2Json,
    pi_c: G1Json,
    protocol: String,
    /// Some provers leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    curve: Option<String>,
}

type TargetJson = [[[String; 2]; 3]; 2];

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VerifyingKeyJson {
    protocol: String,
    curve: String,
    #[serde(rename = "nPublic")]
    public: usize,
    vk_alpha_1: G1Json,
    vk_beta_2: G2Json,
    vk_gamma_2: G2Json,
    vk_delta_2: G2Json,
    /// e(α, β). Some programs leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    vk_alphabeta_12: Option<TargetJson>,
    #[serde(rename = "IC")]
    ic: Vec<G1Json>,
}

/// Writes a proof as snarkjs' `proof.json`.
pub fn write_proof<E: CircomCurve>(proof: &Proof<E>) -> String {
    pretty(&ProofJson {
        pi_a: to_g1(&proof.a),
        pi_b: to_g2(&proof.b),
        pi_c: to_g1(&proof.c),
        protocol: PROTOCOL.to_owned(),
        curve: Some(E::NAME.to_owned()),
    })
}

/// Reads a proof from snarkjs' `proof.json`.
///
/// # Errors
/// [`Error::Json`] names the first field that is not as snarkjs writes it.
pub fn read_proof<E: CircomCurve>(text: &str) -> Result<Proof<E>> {
    let json: ProofJson = parse(text)?;
    expect("protocol", PROTOCOL, &json.protocol)?;
    if let Some(curve) = &json.curve {
        expect("curve", E::NAME, curve)?;
    }
    Ok(Proof { a: from_g1("pi_a", &json.pi_a)?, b: from_g2("pi_b", &json.pi_b)?, c: from_g1("pi_c", &json.pi_c)? })
}

/// Writes public inputs as snarkjs' `public.json`.
pub fn write_public<E: CircomCurve>(public: &[E::ScalarField]) -> String {
    pretty(&public.iter().map(to_decimal).collect::<Vec<_>>())
}

/// Reads public inputs from snarkjs' `public.json`.
///
/// # Errors
/// [`Error::Json`] names the first input that is not as snarkjs writes it.
pub fn read_public<E: CircomCurve>(text: &str) -> Result<Vec<E::ScalarField>> {
    let json: Vec<String> = parse(text)?;
    json.iter().enumerate().map(|(i, digits)| from_decimal(&format!("[{i}]"), digits)).collect()
}

/// Writes a verifying key as snarkjs' `verification_key.json`.
pub fn write_verifying_key<E: CircomCurve>(key: &VerifyingKey<E>) -> String {
    pretty(&VerifyingKeyJson {
        protocol: PROTOCOL.to_owned(),
        curve: E::NAME.to_owned(),
        public: key.gamma_abc_g1.len().saturating_sub(1),
        vk_alpha_1: to_g1(&key.alpha_g1),
        vk_beta_2: to_g2(&key.beta_g2),
        vk_gamma_2: to_g2(&key.gamma_g2),
        vk_delta_2: to_g2(&key.delta_g2),
        vk_alphabeta_12: Some(alpha_beta::<E>(key)),
        ic: key.gamma_abc_g1.iter().map(to_g1).collect(),
    })
}

/// Reads a verifying key from snarkjs' `verification_key.json`. If the text has e(α, β), the pairing is computed too.
///
/// # Errors
/// [`Error::Json`] names the first field that is not as snarkjs writes it.
pub fn read_verifying_key<E: CircomCurve>(text: &str) -> Result<VerifyingKey<E>> {
    let json: VerifyingKeyJson = parse(text)?;
    expect("protocol", PROTOCOL, &json.protocol)?;
    expect("curve", E::NAME, &json.curve)?;
    let (expected, actual) = (json.public.saturating_add(1), json.ic.len());
    if expected != actual {
        return Err(error("IC", JsonProblem::Length { expected, actual }));
    }
    let ic = json.ic.iter().enumerate().map(|(i, point)| from_g1(&format!("IC[{i}]"), point));
    let key = VerifyingKey {
        alpha_g1: finite("vk_alpha_1", from_g1("vk_alpha_1", &json.vk_alpha_1)?)?,
        beta_g2: finite("vk_beta_2", from_g2("vk_beta_2", &json.vk_beta_2)?)?,
        gamma_g2: finite("vk_gamma_2", from_g2("vk_gamma_2", &json.vk_gamma_2)?)?,
        delta_g2: finite("vk_delta_2", from_g2("vk_delta_2", &json.vk_delta_2)?)?,
        gamma_abc_g1: ic.collect::<Result<_>>()?,
    };
    if json.vk_alphabeta_12.is_some_and(|given| given != alpha_beta::<E>(&key)) {
        return Err(error("vk_alphabeta_12", JsonProblem::Pairing));
    }
    Ok(key)
}

/// Returns the curve that a `verification_key.json` names.
///
/// # Errors
/// [`Error::Json`] if the text is no JSON, names no curve, or another one than those of [`Curve`].
pub fn curve_of_verifying_key(text: &str) -> Result<Curve> {
    #[derive(Deserialize)]
    struct Named {
        curve: String,
    }
    let Named { curve } = parse(text)?;
    let known = [Curve::Bn254, Curve::Bls12381].into_iter().find(|known| known.name() == curve);
    known.ok_or_else(|| error("curve", JsonProblem::Curve { actual: curve }))
}

/// Returns e(α, β) by its coefficients in the tower of degrees 2, 3 and 2, which arkworks and snarkjs share.
fn alpha_beta<E: CircomCurve>(key: &VerifyingKey<E>) -> TargetJson {
    let value = E::pairing(key.alpha_g1, key.beta_g2).0;
    let mut coefficients = value.to_base_prime_field_elements();
    [(); 2]
        .map(|()| [(); 3].map(|()| [(); 2].map(|()| coefficients.next().map(|x| to_decimal(&x)).unwrap_or_default())))
}

/// Returns the arguments of the Solidity verifier's `verifyProof`, as `snarkjs generatecall` does. Numbers have at least
/// 64 hexadecimal digits. The verifier takes BN254 alone.
pub fn solidity_calldata<E: CircomCurve>(proof: &Proof<E>, public: &[E::ScalarField]) -> String {
    let g1 = |point: &E::G1Affine| list(affine(point), ", ");
    // The contract has the coefficient of u before the constant one.
    let mut y = affine(&proof.b);
    let mut x: Vec<_> = y.drain(..y.len() / 2).collect();
    x.reverse();
    y.reverse();
    let (x, y, inputs) = (list(x, ", "), list(y, ", "), list(public.to_vec(), ","));
    format!("[{}],[[{x}],[{y}]],[{}],[{inputs}]", g1(&proof.a), g1(&proof.c))
}

/// Numbers in quotation marks.
fn list(numbers: Vec<impl PrimeField>, separator: &str) -> String {
    numbers.iter().map(|number| format!("\"{}\"", to_hex(number))).collect::<Vec<_>>().join(separator)
}

/// Writes JSON as snarkjs does, which indents by one space.
fn pretty(json: &impl Serialize) -> String {
    let mut text = Vec::new();
    let mut writer = Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b" "));
    json.serialize(&mut writer).expect("strings, lists and structures of them have JSON, and memory takes it");
    String::from_utf8_lossy(&text).into_owned()
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|problem| {
        let (line, column) = (problem.line(), problem.column());
        error("text", JsonProblem::Syntax { line, column, reason: problem.to_string() })
    })
}

fn error(field: &str, problem: JsonProblem) -> Error {
    Error::Json { path: None, field: field.to_owned(), problem }
}

fn expect(field: &str, expected: &'static str, actual: &str) -> Result<()> {
    let problem = || JsonProblem::Name { expected, actual: actual.to_owned() };
    if actual == expected { Ok(()) } else { Err(error(field, problem())) }
}

fn finite<P: AffineRepr>(field: &str, point: P) -> Result<P> {
    let infinity = || error(field, JsonProblem::Point { kind: PointError::Infinity });
    if point.is_zero() { Err(infinity()) } else { Ok(point) }
}
