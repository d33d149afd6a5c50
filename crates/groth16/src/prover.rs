//! The prover on a device.

mod pinned;
mod proofs;

use std::{
    fmt, iter,
    sync::Arc,
    time::{Duration, Instant},
};

use ark_ec::{AffineRepr, CurveGroup, short_weierstrass::Affine};
use ark_ff::{AdditiveGroup, FftField, Field, UniformRand};
use ark_groth16::Proof;
use ark_poly::EvaluationDomain;
use ark_std::rand::{CryptoRng, RngCore, SeedableRng, rngs::StdRng};
use evariste_backend::{Buffer, Device, Element as _, Queue, Secrecy, author::Wiped};
use evariste_curve::AffinePoint;
use evariste_field::{DevicePrimeField, Mont, SparseMatrix, Vector};
use evariste_msm::{Msm, MsmConfig, MsmCurve, PendingSum, Precompute};
use evariste_ntt::Ntt;

use crate::{
    curve::DevicePairing,
    domain,
    error::{Error, Result},
    key::{Key, Quotient},
    matrix::Matrix,
    verifier::{Claim, Verifier},
    witness::Witness,
};

pub use self::{pinned::PinnedWitness, proofs::Proofs};

/// The choices that a prover is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProverConfig {
    /// Whether a proof is verified before it is given out. The cost is three pairings on the host, some 2 ms.
    pub verify: bool,
    /// The bytes of device memory for multiples of the key's points: [`Precompute::Tables`]. With 0, which is the
    /// default, there are none.
    pub tables: u64,
}

impl Default for ProverConfig {
    fn default() -> Self {
        Self { verify: true, tables: 0 }
    }
}

impl ProverConfig {
    /// Sets [`ProverConfig::verify`].
    #[must_use]
    pub fn verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Sets [`ProverConfig::tables`].
    #[must_use]
    pub fn tables(mut self, bytes: u64) -> Self {
        self.tables = bytes;
        self
    }
}

/// A Groth16 prover, with a key on a device.
///
/// # Steps
/// Groth, "On the size of pairing-based non-interactive arguments", EUROCRYPT 2016, section 3.2, with n rows of
/// constraints and w the witness.
///
/// 1. A·w and B·w are products with sparse matrices, and C·w = A·w ∘ B·w.
/// 2. Three inverse transforms of n points give the polynomials, and three transforms their values on a coset.
///    [`Quotient`] says which, and what becomes of a∘b − c there.
/// 3. Sums over the queries A and L share the digits of w ([`Msm::digits`]), and so do those over B in G1 and in G2,
///    without the variables whose points are at infinity. A sum over H follows the transforms.
/// 4. The host adds the blinding, and verifies the proof.
///
/// Transforms and the sum over H run on a queue of their own. With a third one for the sums over B, a proof took 4 to
/// 20% longer on an H200. The witness, the blinding, and all that is computed from them is secret memory, on the host
/// and on the device.
///
/// Any number of threads may use a prover at once.
pub struct Prover<E: DevicePairing> {
    queue: Queue,
    /// Of the products, transforms, and the sum over H.
    side: Queue,
    config: ProverConfig,
    parts: Arc<Parts<E>>,
}

/// What the key has become.
struct Parts<E: DevicePairing> {
    /// The points that the host adds.
    verifier: Verifier<E>,
    beta_g1: E::G1Affine,
    delta_g1: E::G1Affine,
    quotient: Quotient,
    public_inputs: usize,
    variables: usize,
    a: SparseMatrix<E::ScalarField>,
    b: SparseMatrix<E::ScalarField>,
    ntt: Ntt<E::ScalarField>,
    vector: Vector<E::ScalarField>,
    a_query: Msm<E::G1Config>,
    /// As long as A: public variables have points at infinity.
    l_query: Msm<E::G1Config>,
    /// The variables with points in B. `None` for all.
    in_b: Option<Buffer<u32>>,
    b_g1_query: Msm<E::G1Config>,
    b_g2_query: Msm<E::G2Config>,
    h_query: Msm<E::G1Config>,
}

/// A proof that a device computes.
struct UnderWay<E: DevicePairing> {
    public: Vec<E::ScalarField>,
    blinding: Blinding<E::ScalarField>,
    b_g2: PendingSum<E::G2Config>,
    b_g1: PendingSum<E::G1Config>,
    a: PendingSum<E::G1Config>,
    l: PendingSum<E::G1Config>,
    h: PendingSum<E::G1Config>,
}

/// A stage of a proof, in the order in which [`Prover::prove_profiled`] does them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Copies the witness to the device.
    Upload,
    /// Multiplies it by the matrices A and B, and the products by each other.
    Matrices,
    /// Transforms the three vectors, and computes the scalars of H.
    Transforms,
    /// Recodes and sorts the scalars of the witness, of all variables and of those in B.
    Digits,
    /// Computes the sum over B in G2.
    SumBG2,
    /// Computes the sum over B in G1.
    SumBG1,
    /// Computes the sum over A.
    SumA,
    /// Computes the sum over L.
    SumL,
    /// Recodes and sorts the scalars of H, and computes the sum over it.
    SumH,
    /// Combines windows, adds the blinding and, unless the prover does not, verifies the proof, on the host.
    Finish,
}

/// A proof, and how long each of its stages took: [`Prover::prove_profiled`].
pub type Profiled<E> = (Proof<E>, Vec<(Stage, Duration)>);

/// r and s.
type Blinding<F> = Wiped<F>;

impl<E: DevicePairing> Prover<E> {
    /// Makes a prover and copies its key to the device; `&device` stands for its default queue.
    ///
    /// # Errors
    /// [`Error::Device`] if the device has no room for the key, if a kernel does not compile, or if the device fails.
    /// [`Error::Point`] if a point of the verifying key is not in the subgroup of prime order.
    pub fn new(queue: impl Into<Queue>, key: &Key<E>) -> Result<Self> {
        Self::with_config(queue, key, ProverConfig::default())
    }

    /// Makes a prover as [`Prover::new`] does, with choices of your own.
    ///
    /// # Errors
    /// Fails under the conditions of [`Prover::new`].
    pub fn with_config(queue: impl Into<Queue>, key: &Key<E>, config: ProverConfig) -> Result<Self> {
        let queue = queue.into();
        let side = queue.device().queue()?;
        let Shape { list, in_b, copies } = Shape::new(queue.device(), key, config);
        let share = |points: &[E::G1Affine]| -> Vec<E::G1Affine> {
            list.as_ref().map_or_else(|| points.to_vec(), |list| list.iter().map(|&i| points[i as usize]).collect())
        };
        let in_g2: Vec<E::G2Affine> = match &list {
            Some(list) => list.iter().map(|&i| key.b_g2_query[i as usize]).collect(),
            None => key.b_g2_query.clone(),
        };
        let mut l_query = vec![E::G1Affine::zero(); key.variables() - key.l_query.len()];
        l_query.extend_from_slice(&key.l_query);
        let b_g1_query = sum::<E::G1Config>(&queue, &share(&key.b_g1_query), copies, None)?;
        // Digits are made once for both.
        let window = (copies > 1).then(|| b_g1_query.window(in_b, 1));
        let b_g2_query = sum::<E::G2Config>(&queue, &in_g2, copies, window)?;
        let parts = Parts {
            verifier: Verifier::new(&key.verifying_key)?,
            beta_g1: key.beta_g1,
            delta_g1: key.delta_g1,
            quotient: key.quotient,
            public_inputs: key.public_inputs(),
            variables: key.variables(),
            a: matrix(&side, &key.a)?,
            b: matrix(&side, &key.b)?,
            ntt: Ntt::new(&side, key.log_domain)?,
            vector: Vector::new(&side),
            a_query: sum::<E::G1Config>(&queue, &key.a_query, copies, None)?,
            l_query: sum::<E::G1Config>(&queue, &l_query, copies, None)?,
            b_g1_query,
            b_g2_query,
            h_query: sum::<E::G1Config>(&side, &key.h_query, copies, None)?,
            in_b: list.map(|list| queue.upload_with(&list, Secrecy::Public)).transpose()?,
        };
        let prover = Self { queue, side, config, parts: Arc::new(parts) };
        prover.prepare()?;
        Ok(prover)
    }

    /// Computes a proof of zeros on the device, so that every kernel is compiled and was launched once, and what has no
    /// room is refused before a witness comes.
    fn prepare(&self) -> Result<()> {
        let [zero, one] = [E::ScalarField::ZERO, E::ScalarField::ONE];
        let values = iter::once(one).chain(iter::repeat(zero)).take(self.parts.variables);
        let UnderWay { b_g2, b_g1, a, l, h, .. } =
            self.start(&Witness::new(values.collect())?, vec![zero; 2].into())?;
        [b_g1, a, l, h].into_iter().try_for_each(|sum| sum.wait().map(drop))?;
        Ok(b_g2.wait().map(drop)?)
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        self.queue.device()
    }

    /// Returns the number of public inputs, without the constant 1.
    pub fn public_inputs(&self) -> usize {
        self.parts.public_inputs
    }

    /// Returns the number of variables: the length of a witness.
    pub fn variables(&self) -> usize {
        self.parts.variables
    }

    /// Returns the verifier of the prover's proofs.
    pub fn verifier(&self) -> &Verifier<E> {
        &self.parts.verifier
    }

    /// Proves that a witness satisfies the constraints, with blinding from the system's random numbers.
    ///
    /// # Errors
    /// - [`Error::WitnessLength`] if the witness has another number of variables.
    /// - [`Error::Rejected`] if the witness does not satisfy the constraints, unless the prover does not verify.
    /// - [`Error::Randomness`] if the system gives no random numbers.
    /// - [`Error::Device`] if the device has no memory for the proof, or if it fails.
    pub fn prove(&self, witness: &Witness<E::ScalarField>) -> Result<Proof<E>> {
        let blinding = blinding(&mut system_rng()?);
        Ok(self.finish(self.start(witness, blinding)?)?.0)
    }

    /// Proves as [`Prover::prove`] does, with blinding from a generator of your own. Two proofs with the same blinding
    /// reveal the witness.
    ///
    /// # Errors
    /// Fails under the conditions of [`Prover::prove`].
    pub fn prove_with(
        &self,
        witness: &Witness<E::ScalarField>,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<Proof<E>> {
        Ok(self.finish(self.start(witness, blinding(rng))?)?.0)
    }

    /// Proves as [`Prover::prove`] does, and returns how long each stage took. Each waits for the one before, so that all
    /// together take longer than in [`Prover::prove`], where they overlap. It waits for all work of the device, also that of
    /// others.
    ///
    /// # Errors
    /// Fails under the conditions of [`Prover::prove`].
    pub fn prove_profiled(&self, witness: &Witness<E::ScalarField>) -> Result<Profiled<E>> {
        let blinding = blinding(&mut system_rng()?);
        let (mut stages, mut from) = (Vec::new(), Instant::now());
        let mut mark = |stage| {
            self.device().sync()?;
            stages.push((stage, from.elapsed()));
            from = Instant::now();
            Ok(())
        };
        let started = self.start_marked(witness, blinding, &mut mark)?;
        let proof = self.finish(started)?.0;
        mark(Stage::Finish)?;
        Ok((proof, stages))
    }

    /// Proves many witnesses, in order, as [`Prover::proofs`] does.
    ///
    /// # Errors
    /// Fails under the conditions of [`Prover::prove`], at the first witness that fails.
    pub fn prove_many<'a>(
        &self,
        witnesses: impl IntoIterator<Item = &'a Witness<E::ScalarField>>,
    ) -> Result<Vec<Proof<E>>> {
        self.proofs(witnesses.into_iter().map(Ok))?.map(|claim| Ok(claim?.0)).collect()
    }

    /// Queues all of a proof.
    fn start(&self, witness: &Witness<E::ScalarField>, blinding: Blinding<E::ScalarField>) -> Result<UnderWay<E>> {
        self.start_marked(witness, blinding, &mut |_| Ok(()))
    }

    /// Queues all of a proof, and calls `mark` behind each stage.
    fn start_marked(
        &self,
        witness: &Witness<E::ScalarField>,
        blinding: Blinding<E::ScalarField>,
        mark: &mut dyn FnMut(Stage) -> Result<()>,
    ) -> Result<UnderWay<E>> {
        self.expect_variables(witness.values().len())?;
        let w = self.queue.upload_with(witness.values(), Secrecy::Secret)?;
        mark(Stage::Upload)?;
        self.start_on_device(witness.public(self.public_inputs())?.to_vec(), &w, blinding, mark)
    }

    /// The same of a witness on the device, by its public inputs and all values.
    fn start_on_device(
        &self,
        public: Vec<E::ScalarField>,
        w: &Buffer<Mont<E::ScalarField>>,
        blinding: Blinding<E::ScalarField>,
        mark: &mut dyn FnMut(Stage) -> Result<()>,
    ) -> Result<UnderWay<E>> {
        let parts = &*self.parts;
        let h = self.quotient(w, mark)?;
        mark(Stage::Transforms)?;
        let all = parts.a_query.digits(w)?;
        let gathered = match &parts.in_b {
            None => None,
            Some(list) => {
                let mut some = self.device().alloc_with(list.len(), Secrecy::Secret)?;
                parts.vector.on(&self.queue).gather(w, list, &mut some)?;
                Some(parts.b_g1_query.digits(&some)?)
            }
        };
        let in_b = gathered.as_ref().unwrap_or(&all);
        mark(Stage::Digits)?;
        let b_g2 = parts.b_g2_query.start(in_b)?;
        mark(Stage::SumBG2)?;
        let b_g1 = parts.b_g1_query.start(in_b)?;
        mark(Stage::SumBG1)?;
        let a = parts.a_query.start(&all)?;
        mark(Stage::SumA)?;
        let l = parts.l_query.start(&all)?;
        mark(Stage::SumL)?;
        let h = parts.h_query.start(&parts.h_query.digits(h.view(..parts.h_query.len())?)?)?;
        mark(Stage::SumH)?;
        Ok(UnderWay { public, blinding, b_g2, b_g1, a, l, h })
    }

    fn expect_variables(&self, actual: usize) -> Result<()> {
        let expected = self.parts.variables;
        if expected == actual { Ok(()) } else { Err(Error::WitnessLength { expected, actual }) }
    }

    /// The scalars of the query H, and perhaps more.
    fn quotient(
        &self,
        w: &Buffer<Mont<E::ScalarField>>,
        mark: &mut dyn FnMut(Stage) -> Result<()>,
    ) -> Result<Buffer<Mont<E::ScalarField>>> {
        let Parts { ntt, vector, .. } = &*self.parts;
        let size = ntt.size();
        let mut values = self.device().alloc_with(3 * size, Secrecy::Secret)?;
        {
            let (mut a, rest) = values.as_view_mut().split_at(size)?;
            let (mut b, c) = rest.split_at(size)?;
            self.parts.a.multiply(w, a.reborrow())?;
            self.parts.b.multiply(w, b.reborrow())?;
            vector.mul(a.as_view(), b.as_view(), c)?;
        }
        mark(Stage::Matrices)?;
        let shift = self.parts.shift();
        ntt.inverse(&mut values)?;
        ntt.coset(shift).forward(&mut values)?;
        let mut h = self.device().alloc_with(size, Secrecy::Secret)?;
        vector.mul(values.view(..size)?, values.view(size..2 * size)?, &mut h)?;
        vector.sub_assign(&mut h, values.view(2 * size..)?)?;
        if self.parts.quotient == Quotient::Arkworks {
            let vanishing = domain::of_size::<E::ScalarField>(size).evaluate_vanishing_polynomial(shift);
            vector.scale_assign(&mut h, vanishing.inverse().unwrap_or_default())?;
            ntt.coset(shift).inverse(&mut h)?;
        }
        Ok(h)
    }

    /// Waits for the sums of a proof, adds the blinding, and verifies. Returns the public inputs, too.
    fn finish(&self, proof: UnderWay<E>) -> Result<Claim<E>> {
        let Parts { verifier, beta_g1, delta_g1, .. } = &*self.parts;
        let key = verifier.key();
        let [r, s] = [proof.blinding[0], proof.blinding[1]];
        // The host is idle until the first sum is there.
        let (delta_r, delta_s) = (*delta_g1 * r, *delta_g1 * s);
        let mut sums = Wiped::from(vec![key.alpha_g1 + delta_r, *beta_g1 + delta_s, -(delta_r * s)]);
        let b_g2 = key.beta_g2 + key.delta_g2 * s + proof.b_g2.wait()?;
        sums[1] += proof.b_g1.wait()?;
        sums[0] += proof.a.wait()?;
        let blinded = sums[0] * s + sums[1] * r;
        sums[2] += blinded + proof.l.wait()?;
        let (a, c) = (sums[0], sums[2] + proof.h.wait()?);
        let points = E::G1::normalize_batch(&[a, c]);
        let made = Proof { a: points[0], b: b_g2.into_affine(), c: points[1] };
        if self.config.verify {
            verifier.verify(&made, &proof.public)?;
        }
        Ok((made, proof.public))
    }
}

impl<E: DevicePairing> Parts<E> {
    /// Where the quotient is computed: the coset of the domain by this element.
    fn shift(&self) -> E::ScalarField {
        match self.quotient {
            Quotient::Circom => domain::of_size::<E::ScalarField>(2 * self.ntt.size()).group_gen(),
            Quotient::Arkworks => E::ScalarField::GENERATOR,
        }
    }
}

impl<E: DevicePairing> Clone for Prover<E> {
    fn clone(&self) -> Self {
        let Self { queue, side, config, parts } = self;
        Self { queue: queue.clone(), side: side.clone(), config: *config, parts: Arc::clone(parts) }
    }
}

impl<E: DevicePairing> fmt::Debug for Prover<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prover")
            .field("device", self.device())
            .field("variables", &self.variables())
            .field("public_inputs", &self.public_inputs())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// How the sums of a key are computed.
pub(crate) struct Shape {
    /// The variables with a point in B, if that leaves out one in eight at least.
    list: Option<Vec<u32>>,
    /// The points in B.
    pub(crate) in_b: usize,
    /// Points for each point of the key, itself included, as there is room for.
    pub(crate) copies: u64,
}

impl Shape {
    pub(crate) fn new<E: DevicePairing>(device: &Device, key: &Key<E>, config: ProverConfig) -> Self {
        let buffer_bytes = device.info().limits.buffer_bytes;
        let points = key.b_g1_query.iter().zip(&key.b_g2_query);
        let is_there = |(g1, g2): (&E::G1Affine, &E::G2Affine)| !g1.is_zero() || !g2.is_zero();
        let list: Vec<u32> = (0..).zip(points).filter(|(_, points)| is_there(*points)).map(|(i, _)| i).collect();
        let list = (8 * list.len() <= 7 * key.variables()).then_some(list);
        let in_b = list.as_ref().map_or(key.variables(), Vec::len);
        let in_g1 = (2 * key.variables() + in_b + key.h_query.len()) * AffinePoint::<E::G1Config>::BYTES;
        let bytes = (in_g1 + in_b * AffinePoint::<E::G2Config>::BYTES) as u64;
        // Plans that share digits have as many points for each: as many as those of G2 have room for.
        let most = buffer_bytes / (in_b * AffinePoint::<E::G2Config>::BYTES).max(1) as u64;
        Self { list, in_b, copies: (config.tables / bytes.max(1)).min(most).max(1) }
    }
}

fn matrix<F: DevicePrimeField>(queue: &Queue, matrix: &Matrix<F>) -> Result<SparseMatrix<F>> {
    let entries = matrix.entries().map(|entry| (entry.row, entry.column, entry.value));
    Ok(SparseMatrix::new(queue, matrix.rows(), matrix.width(), entries)?)
}

/// Sums by secret scalars over these points, and so many for each.
fn sum<C: MsmCurve>(queue: &Queue, points: &[Affine<C>], copies: u64, window: Option<u32>) -> Result<Msm<C>> {
    Ok(Msm::with_config(queue, points, sum_config::<C>(points.len(), copies, window))?)
}

/// For `len` points.
pub(crate) fn sum_config<C: MsmCurve>(len: usize, copies: u64, window: Option<u32>) -> MsmConfig {
    let budget = copies.saturating_mul((len * AffinePoint::<C>::BYTES) as u64);
    let precompute = if copies > 1 { Precompute::Tables { budget } } else { Precompute::None };
    MsmConfig::default().secrecy(Secrecy::Secret).window(window).precompute(precompute)
}

fn blinding<F: UniformRand + Copy>(rng: &mut (impl RngCore + CryptoRng)) -> Blinding<F> {
    vec![F::rand(rng), F::rand(rng)].into()
}

/// A generator with a seed of the system.
fn system_rng() -> Result<StdRng> {
    let mut seed = Wiped::from(vec![0; 32]);
    getrandom::fill(&mut seed).map_err(|error| Error::Randomness { reason: error.to_string() })?;
    let mut bytes = [0; 32];
    bytes.copy_from_slice(&seed);
    Ok(StdRng::from_seed(bytes))
}
