use std::{borrow::Cow, fmt, mem, sync::Arc, thread};

use ark_ff::FftField;
use evariste_backend::{Buffer, Queue};
use evariste_field::Mont;
use evariste_fri::{ConstraintQuotients, Fri, FriCommitment, FriConfig, Opened, Quotients};
use evariste_hash::{MerkleTree, Rows, TreeHash};
use p3_challenger::{CanObserve, FieldChallenger, GrindingChallenger};
use p3_commit::{
    CommitmentOpening, ExtensionMmcs, OpenedValues, OpeningRequest, Pcs, PeriodicLdeTable, PolynomialSpace,
    UnivariateStarkPcs,
};
use p3_dft::TwoAdicSubgroupDft;
use p3_field::{
    BasedVectorSpace, PrimeCharacteristicRing, coset::TwoAdicMultiplicativeCoset, extension::BinomiallyExtendable,
};
use p3_fri::{
    BatchMultiOpening, CommitPhaseMultiStep, FriParameters, FriProof, FriProverError, FriShape, PcsProverTranscript,
    PcsShape, ProverTranscript, TwoAdicFriPcs, verifier::FriError,
};
use p3_matrix::{
    Matrix,
    bitrev::{BitReversedMatrixView, BitReversibleMatrix},
    dense::{RowMajorMatrix, RowMajorMatrixCow},
};

use crate::{
    air::DeviceAir,
    dft::DeviceDft,
    error::ProverError,
    mmcs::{DeviceTrees, Error, Node, Part},
    value::{Challenge, DeviceValue, Values, from_device, from_extension, to_device, to_extension},
};

/// Plonky3's scheme, with our transforms and trees under it.
type Host<P, M> = TwoAdicFriPcs<P, DeviceDft<P>, M, ExtensionMmcs<P, Challenge<P>, M>>;

/// Plonky3's proof.
type Proof<P, M> = FriProof<Challenge<P>, ExtensionMmcs<P, Challenge<P>, M>, P, Vec<BatchMultiOpening<P, M>>>;

/// The errors of Plonky3's verifier.
type VerifierError<P, M> = FriError<<M as p3_commit::Mmcs<P>>::Error, <M as p3_commit::Mmcs<P>>::Error>;

/// Plonky3's polynomial commitment scheme `TwoAdicFriPcs`, resident on a device of Evariste. Commitments and proofs are
/// the same, byte for byte, and Plonky3's own verifier accepts them. Challenges are of the extension of degree 4.
///
/// A commitment extends columns and builds their tree on the device, and leaves both there. An opening evaluates
/// columns at points, adds up quotients, folds them and opens queries there. What comes back are caps, opened values,
/// the final polynomial and the rows and paths of queries. The transcript and its proofs of work are those of your
/// challenger, on the host. What you commit to is dropped on a thread of its own, maybe after the call returns.
///
/// [`prove`](crate::prove) computes constraints there as well. A prover that computes them on the host, as Plonky3's own,
/// reads evaluations by
/// [`get_evaluations_on_domain`](UnivariateStarkPcs::get_evaluations_on_domain): no more rows than it asks for, and each
/// time anew.
///
/// Matrices of fewer elements than [`DeviceTreeMmcs::min_elements`](crate::DeviceTreeMmcs::min_elements), once extended,
/// stay with Plonky3; chunks of quotients that [`prove`](crate::prove) computes on the device do not. Beside others they are
/// copied to the device to be opened. What the device refuses or fails to do
/// is an error, and the prover may prove again with `TwoAdicFriPcs`. Memory is public: it is not zeroed.
///
/// Plonky3 takes any proof of work that one of its threads finds first: proofs with such differ from one run to the
/// next, with its own types too. As in Plonky3, nothing binds the rows of a matrix that is lower, once extended, than a
/// commitment has digests: choose `cap_height` below.
pub struct DeviceFriPcs<P: DeviceValue + BinomiallyExtendable<4>, M: DeviceTrees<P>> {
    mmcs: M,
    dft: DeviceDft<P>,
    parameters: FriParameters<M>,
    host: Host<P, M>,
    quotients: Quotients<P::Extension>,
    constraints: ConstraintQuotients<P::Extension>,
    fri: Arc<Fri<P::Extension, M::Hash>>,
}

/// Quotients on the device, on one of the cosets that they are split into.
pub(crate) type Chunk<P> = Buffer<Mont<<P as DeviceValue>::Extension>>;

/// What a commitment leaves with the prover: extended matrices and their tree on the device, or with Plonky3.
pub struct DevicePcsData<P: DeviceValue, M: DeviceTrees<P>>(Kind<P, M>);

enum Kind<P: DeviceValue, M: DeviceTrees<P>> {
    Host(M::ProverData<RowMajorMatrix<P>>),
    Device { matrices: Vec<Resident<P>>, tree: MerkleTree<P::Device, Node<P, M>> },
}

/// A codeword in each column, in bit-reversed order.
struct Resident<P: DeviceValue> {
    values: Buffer<Values<P>>,
    width: usize,
}

impl<P: DeviceValue> Resident<P> {
    fn height(&self) -> usize {
        self.values.len() / self.width
    }

    fn rows(&self) -> Rows<'_, P::Device> {
        Rows::new(self.values.as_view().flattened(), self.width)
    }
}

impl<P: DeviceValue + BinomiallyExtendable<4>, M: DeviceTrees<P>> DeviceFriPcs<P, M> {
    /// Makes the scheme on the device of its trees: `mmcs` for matrices, and that of `parameters` for folded
    /// evaluations.
    ///
    /// # Errors
    /// - [`Error::Parameter`] without queries, or for a number beyond 32 bits.
    /// - [`Error::Fri`] if the blow-up is 1, if folds are not by 2, 4, 8 or 16 at most, if the trees are on different
    ///   devices, if there is no memory, or if the device fails.
    pub fn new(mmcs: M, parameters: FriParameters<M>) -> Result<Self, Error> {
        if parameters.num_queries == 0 {
            return Err(Error::Parameter { what: "the number of queries", expected: "at least 1", actual: 0 });
        }
        let number = |what, actual: usize| {
            u32::try_from(actual).map_err(|_| Error::Parameter { what, expected: "below 2^32", actual })
        };
        let config = FriConfig {
            log_blowup: number("log₂ of the blow-up", parameters.log_blowup)?,
            log_final_len: number("log₂ of the final polynomial", parameters.log_final_poly_len)?,
            max_log_arity: number("log₂ of the arity", parameters.max_log_arity)?,
            log_cap: log_cap(&parameters.mmcs),
        };
        let (queue, folds) = (queue(&mmcs), queue(&parameters.mmcs));
        let device = queue.device();
        device.expect_same("the trees of folded evaluations", folds.device()).map_err(evariste_fri::Error::from)?;
        let log_len = <P::Device as FftField>::TWO_ADICITY;
        let fri = Fri::new(parameters.mmcs.merkle().on(queue), log_len, config)?;
        let dft = DeviceDft::new(device).min_elements(mmcs.least_elements());
        let FriParameters { log_blowup, log_final_poly_len, max_log_arity, num_queries, .. } = parameters;
        let theirs = FriParameters {
            log_blowup,
            log_final_poly_len,
            max_log_arity,
            num_queries,
            batch_proof_of_work_bits: parameters.batch_proof_of_work_bits,
            commit_proof_of_work_bits: parameters.commit_proof_of_work_bits,
            query_proof_of_work_bits: parameters.query_proof_of_work_bits,
            mmcs: ExtensionMmcs::new(parameters.mmcs.clone()),
        };
        Ok(Self {
            host: TwoAdicFriPcs::new(dft.clone(), mmcs.clone(), theirs),
            quotients: Quotients::new(queue, log_len)?,
            constraints: ConstraintQuotients::new(queue, log_len)?,
            fri: Arc::new(fri),
            dft,
            parameters,
            mmcs,
        })
    }

    /// Returns the trees of matrices.
    pub fn mmcs(&self) -> &M {
        &self.mmcs
    }

    fn queue(&self) -> &Queue {
        queue(&self.mmcs)
    }

    /// Whether matrices of so many elements go to the device.
    fn is_for_device(&self, elements: usize) -> bool {
        elements >= self.mmcs.least_elements().max(1)
    }

    /// Builds the tree over codewords, and reads its cap. What they were made of goes on another thread: giving memory of
    /// the host back takes longer than a tree.
    fn committed<Source: Send + 'static>(
        &self,
        matrices: Vec<Resident<P>>,
        source: Source,
    ) -> Result<(M::Commitment, DevicePcsData<P, M>), ProverError> {
        let rows: Vec<_> = matrices.iter().map(Resident::rows).collect();
        let merkle = self.mmcs.merkle();
        let tree = merkle.commit(&rows)?;
        drop_aside(source);
        let cap = M::commitment(&merkle.cap(&tree, log_cap(&self.mmcs))?);
        Ok((cap, DevicePcsData(Kind::Device { matrices, tree })))
    }

    /// Computes the quotients of an AIR's constraints where the trace is, in chunks. `None` if it is not on the device
    /// alone, or if its codeword has fewer points than the quotients.
    pub(crate) fn constraint_quotients(
        &self,
        air: &DeviceAir<P>,
        data: &DevicePcsData<P, M>,
        domain: TwoAdicMultiplicativeCoset<P>,
        public_values: &[P],
        alpha: Challenge<P>,
    ) -> Result<Option<Vec<Chunk<P>>>, ProverError> {
        let Kind::Device { matrices, .. } = &data.0 else { return Ok(None) };
        let [matrix] = &matrices[..] else { return Ok(None) };
        let (points, rows) = (domain.size(), matrix.height() >> self.parameters.log_blowup);
        if points > matrix.height() || domain.shift() != P::GENERATOR {
            return Ok(None);
        }
        let program = air.program(&self.constraints)?;
        let codeword = matrix.values.view(..points * matrix.width)?;
        let codeword = Rows::new(codeword.flattened(), matrix.width);
        let public: Vec<P::Device> = public_values.iter().copied().map(to_device).collect();
        let (shape, shift) = ([rows, (points / rows).ilog2() as usize], to_device(P::GENERATOR));
        Ok(Some(self.constraints.quotients(program, &codeword, shape, &public, to_extension(alpha), shift)?))
    }

    /// Extends chunks of quotients that are on the device, and commits to them there.
    pub(crate) fn commit_chunks(
        &self,
        domain: TwoAdicMultiplicativeCoset<P>,
        chunks: Vec<Chunk<P>>,
    ) -> Result<(M::Commitment, DevicePcsData<P, M>), ProverError> {
        let domains = domain.split_domains(chunks.len());
        let mut matrices = Vec::with_capacity(chunks.len());
        for (domain, chunk) in domains.into_iter().zip(chunks) {
            // The coefficients of elements of the extension are columns.
            let width = <Challenge<P> as BasedVectorSpace<P>>::DIMENSION;
            let shift = P::GENERATOR / domain.shift();
            let values =
                self.dft.extended_from(chunk.as_view().flattened(), width, self.parameters.log_blowup, shift)?;
            matrices.push(Resident { values, width });
        }
        self.committed(matrices, ())
    }

    /// Evaluations of a matrix on a domain, as
    /// [`get_evaluations_on_domain`](UnivariateStarkPcs::get_evaluations_on_domain) tells.
    pub(crate) fn evaluations<'a, Challenger>(
        &self,
        data: &'a DevicePcsData<P, M>,
        idx: usize,
        domain: TwoAdicMultiplicativeCoset<P>,
    ) -> Result<BitReversedMatrixView<RowMajorMatrixCow<'a, P>>, ProverError>
    where
        Challenger: FieldChallenger<P> + CanObserve<M::Commitment> + GrindingChallenger<Witness = P>,
    {
        let matrix = match &data.0 {
            Kind::Host(data) => {
                let host = &self.host;
                return Ok(UnivariateStarkPcs::<Challenge<P>, Challenger>::get_evaluations_on_domain(
                    host, data, idx, domain,
                ));
            }
            Kind::Device { matrices, .. } => &matrices[idx],
        };
        let (width, height) = (matrix.width, matrix.height());
        let values = if domain.shift() == P::GENERATOR && height >= domain.size() {
            self.read(matrix, domain.size())?.values
        } else {
            let rows =
                self.read(matrix, height >> self.parameters.log_blowup)?.bit_reverse_rows().to_row_major_matrix();
            let mut coefficients = self.dft.coset_idft_batch(rows, P::GENERATOR);
            coefficients.values.resize(domain.size() * width, P::ZERO);
            self.dft.coset_dft_batch(coefficients, domain.shift()).bit_reverse_rows().to_row_major_matrix().values
        };
        Ok(RowMajorMatrixCow::new(Cow::Owned(values), width).bit_reverse_rows())
    }

    fn uploaded(&self, matrix: &RowMajorMatrix<P>) -> Result<Resident<P>, ProverError> {
        let values = self.queue().device().upload::<Values<P>>(&matrix.values)?;
        Ok(Resident { values, width: matrix.width })
    }

    /// Rows of a codeword, on the host.
    fn read(&self, matrix: &Resident<P>, count: usize) -> evariste_backend::Result<RowMajorMatrix<P>> {
        let values = self.queue().read(matrix.values.view(..count * matrix.width)?)?;
        Ok(RowMajorMatrix::new(values, matrix.width))
    }

    /// Refuses heights that FRI cannot fold to the final polynomial, as Plonky3 does.
    fn expect_height(&self, height: usize) -> Result<(), ProverError> {
        let (log_input_height, log_final) = (height.ilog2() as usize, self.parameters.log_final_poly_len);
        let log_final_height = log_final + self.parameters.log_blowup;
        match log_final > 0 && log_input_height <= log_final_height {
            true => Err(FriProverError::InputHeightTooSmall { log_input_height, log_final_height }.into()),
            false => Ok(()),
        }
    }

    /// FRI over quotients, from the longest on: the proof without openings of matrices, and the queries.
    fn low_degree_test<Challenger>(
        &self,
        inputs: &[Buffer<Mont<P::Extension>>],
        batch_pow_witness: P,
        challenger: &mut Challenger,
    ) -> Result<(Proof<P, M>, Vec<usize>), ProverError>
    where
        Challenger: FieldChallenger<P> + CanObserve<M::Commitment> + GrindingChallenger<Witness = P>,
    {
        let log_heights: Vec<usize> = inputs.iter().map(|input| input.len().ilog2() as usize).collect();
        let shape = FriShape::new(&self.parameters, &log_heights, log_heights[0]);
        let log_arities = shape.log_arities.clone();
        let mut transcript = ProverTranscript::<Challenger, P, Challenge<P>>::new(challenger, shape);
        let (mut commit_phase_commits, mut commit_pow_witnesses) = (Vec::new(), Vec::new());
        let inputs: Vec<_> = inputs.iter().map(Buffer::as_view).collect();
        // Plonky3 takes evaluations on any coset as such of another polynomial on the subgroup.
        let committed = self.fri.commit(&inputs, to_device(P::ONE), |cap| {
            let cap = M::commitment(cap);
            let (beta, witness) = transcript.commit_round(cap.clone());
            commit_phase_commits.push(cap);
            commit_pow_witnesses.push(witness.unwrap_or(P::ZERO));
            Ok::<_, evariste_fri::Error>(to_extension(beta))
        });
        let committed: FriCommitment<P::Extension, Node<P, M>> = match committed {
            Ok(committed) => committed,
            Err(error) => {
                // It has no other way to end before its last step, and panics when it is dropped.
                mem::forget(transcript);
                return Err(error.into());
            }
        };
        let final_poly: Vec<_> = committed.final_polynomial().iter().copied().map(from_extension).collect();
        let (indices, query_pow_witness) = transcript.query_phase(&final_poly);
        transcript.finish();
        let queries = self.fri.open(&committed, inputs[0], &indices)?;
        let mut places = indices.clone();
        let opened = log_arities.into_iter().enumerate().map(|(round, log_arity)| {
            let steps: Vec<_> = queries.iter().map(|steps| &steps[round]).collect();
            let others = |(place, values): (&usize, &[P::Extension])| {
                let queried = place & ((1 << log_arity) - 1);
                let others = values.iter().enumerate().filter(|(i, _)| *i != queried);
                others.map(|(_, value)| from_extension(*value)).collect()
            };
            let values = steps.iter().map(|step| &step.values[..]);
            let sibling_values = places.iter().zip(values).map(others).collect();
            places.iter_mut().for_each(|place| *place >>= log_arity);
            let paths: Vec<&[Part<P, M>]> = steps.iter().map(|step| &step.path[..]).collect();
            CommitPhaseMultiStep { sibling_values, opening_proof: M::multi_proof(&places, &paths) }
        });
        let commit_phase_openings = opened.collect();
        let proof = FriProof {
            batch_pow_witness,
            commit_phase_commits,
            commit_pow_witnesses,
            input_openings: Vec::new(),
            commit_phase_openings,
            final_poly,
            query_pow_witness: query_pow_witness.unwrap_or(P::ZERO),
        };
        Ok((proof, indices))
    }

    /// Opens rows of matrices for queries into the longest codeword.
    fn opened_rows(
        &self,
        data: &DevicePcsData<P, M>,
        log_height: usize,
        indices: &[usize],
    ) -> Result<BatchMultiOpening<P, M>, ProverError> {
        let shifted = |height: usize| -> Vec<usize> {
            indices.iter().map(|index| index >> (log_height - height.ilog2() as usize)).collect()
        };
        match &data.0 {
            Kind::Host(data) => {
                let (opened_values, opening_proof) =
                    self.mmcs.open_multi_batch(&shifted(self.mmcs.get_max_height(data)), data);
                Ok(BatchMultiOpening { opened_values, opening_proof })
            }
            Kind::Device { matrices, tree } => {
                let places = shifted(1 << tree.log_height());
                let rows: Vec<_> = matrices.iter().map(Resident::rows).collect();
                let openings = self.mmcs.merkle().open(tree, &rows, &places, log_cap(&self.mmcs))?;
                let paths: Vec<&[Part<P, M>]> = openings.iter().map(|opening| &opening.path[..]).collect();
                let opening_proof = M::multi_proof(&places, &paths);
                let row = |row: Vec<P::Device>| row.into_iter().map(from_device).collect();
                let rows = openings.into_iter().map(|opening| opening.rows.into_iter().map(row).collect());
                Ok(BatchMultiOpening { opened_values: rows.collect(), opening_proof })
            }
        }
    }
}

/// Drops a value on a thread of its own, or here if there can be none.
fn drop_aside<T: Send + 'static>(value: T) {
    if mem::needs_drop::<T>() {
        // A thread that cannot start drops what it was given.
        drop(thread::Builder::new().spawn(move || drop(value)));
    }
}

/// Whether a point is one of a codeword of so many rows.
fn is_in_domain<P: DeviceValue + BinomiallyExtendable<4>>(z: Challenge<P>, height: usize) -> bool {
    let power = (0..height.ilog2()).fold(z * P::GENERATOR.inverse(), |power, _| power.square());
    power == Challenge::<P>::ONE
}

/// The queue of trees.
fn queue<P: DeviceValue, M: DeviceTrees<P>>(mmcs: &M) -> &Queue {
    mmcs.merkle().hash().tree_queue()
}

/// log₂ of the digests of a commitment.
fn log_cap<P: DeviceValue, M: DeviceTrees<P>>(mmcs: &M) -> u32 {
    u32::try_from(mmcs.cap_height()).unwrap_or(u32::MAX)
}

impl<P, M, Challenger> Pcs<Challenge<P>, Challenger> for DeviceFriPcs<P, M>
where
    P: DeviceValue + BinomiallyExtendable<4>,
    M: DeviceTrees<P>,
    Challenger: FieldChallenger<P> + CanObserve<M::Commitment> + GrindingChallenger<Witness = P>,
{
    type Domain = TwoAdicMultiplicativeCoset<P>;
    type Commitment = M::Commitment;
    type ProverData = DevicePcsData<P, M>;
    type Proof = Proof<P, M>;
    type Error = VerifierError<P, M>;
    type ProverError = ProverError;

    fn natural_domain_for_degree(&self, degree: usize) -> Self::Domain {
        Pcs::<Challenge<P>, Challenger>::natural_domain_for_degree(&self.host, degree)
    }

    fn commit(
        &self,
        evaluations: impl IntoIterator<Item = (Self::Domain, RowMajorMatrix<P>)>,
    ) -> Result<(Self::Commitment, Self::ProverData), ProverError> {
        let evaluations: Vec<_> = evaluations.into_iter().collect();
        if evaluations.is_empty() {
            return Err(ProverError::NoMatrices);
        }
        let mut elements = 0usize;
        let blowup = u32::try_from(self.parameters.log_blowup).ok().and_then(|log| 1usize.checked_shl(log));
        let blowup = blowup.unwrap_or(usize::MAX);
        for (domain, matrix) in &evaluations {
            let (expected, actual) = (domain.size(), matrix.height());
            if expected != actual {
                return Err(ProverError::Rows { expected, actual });
            }
            elements = elements.saturating_add(matrix.values.len().saturating_mul(blowup));
        }
        if !self.is_for_device(elements) {
            let (cap, data) = Pcs::<Challenge<P>, Challenger>::commit(&self.host, evaluations)?;
            return Ok((cap, DevicePcsData(Kind::Host(data))));
        }
        let mut matrices = Vec::with_capacity(evaluations.len());
        for (domain, matrix) in &evaluations {
            let shift = P::GENERATOR / domain.shift();
            let values = self.dft.extended_there(matrix, self.parameters.log_blowup, shift)?;
            matrices.push(Resident { values, width: matrix.width });
        }
        self.committed(matrices, evaluations)
    }

    fn open(
        &self,
        requests: Vec<OpeningRequest<'_, Self::ProverData, Challenge<P>>>,
        challenger: &mut Challenger,
    ) -> Result<(OpenedValues<Challenge<P>>, Self::Proof), ProverError> {
        if requests.is_empty() {
            return Err(ProverError::NoMatrices);
        }
        // What is with Plonky3 only is opened there, and what is beside others is copied.
        let mut on_host = Vec::with_capacity(requests.len());
        let mut copied: Vec<Vec<Resident<P>>> = Vec::with_capacity(requests.len());
        for OpeningRequest { prover_data, points } in &requests {
            let expected = match &prover_data.0 {
                Kind::Host(data) => self.mmcs.get_matrices(data).len(),
                Kind::Device { matrices, .. } => matrices.len(),
            };
            let actual = points.len();
            if expected != actual {
                return Err(ProverError::Points { expected, actual });
            }
            if let Kind::Host(prover_data) = &prover_data.0 {
                on_host.push(OpeningRequest { prover_data, points: points.clone() });
            }
        }
        if on_host.len() == requests.len() {
            return Ok(Pcs::<Challenge<P>, Challenger>::open(&self.host, on_host, challenger)?);
        }
        drop(on_host);
        for OpeningRequest { prover_data, .. } in &requests {
            copied.push(match &prover_data.0 {
                Kind::Host(data) => {
                    let matrices = self.mmcs.get_matrices(data).into_iter();
                    matrices.map(|matrix| self.uploaded(matrix)).collect::<Result<_, _>>()?
                }
                Kind::Device { .. } => Vec::new(),
            });
        }
        let mut matrices = Vec::with_capacity(requests.len());
        for (OpeningRequest { prover_data, .. }, copied) in requests.iter().zip(&copied) {
            let of_request = match &prover_data.0 {
                Kind::Host(_) => copied,
                Kind::Device { matrices, .. } => matrices,
            };
            of_request.iter().try_for_each(|matrix| self.expect_height(matrix.height()))?;
            matrices.push(of_request);
        }
        let heights = matrices.iter().copied().flatten().map(Resident::height);
        let log_height = heights.max().ok_or(ProverError::NoMatrices)?.ilog2() as usize;

        let shift = to_device(P::GENERATOR);
        // Before anything is drawn from the transcript: quotients have other rows than what is evaluated.
        let all = matrices.iter().copied().flatten().zip(requests.iter().flat_map(|request| &request.points));
        for (matrix, (opened, points)) in all.enumerate() {
            if let Some(point) = points.iter().position(|z| is_in_domain::<P>(*z, opened.height())) {
                return Err(evariste_fri::Error::PointInDomain { matrix, point }.into());
            }
        }
        // The points of each matrix with the values there, all matrices one after the other.
        let mut points_and_values = Vec::new();
        let mut opened_values = Vec::with_capacity(requests.len());
        for (matrices, OpeningRequest { points, .. }) in matrices.iter().zip(&requests) {
            let mut of_request = Vec::with_capacity(matrices.len());
            for (matrix, points) in matrices.iter().zip(points) {
                let points: Vec<P::Extension> = points.iter().copied().map(to_extension).collect();
                // As many rows as the polynomials have coefficients.
                let rows = matrix.height() >> self.parameters.log_blowup;
                let values = matrix.values.view(..rows * matrix.width)?;
                let values = self.quotients.evaluate(&Rows::new(values.flattened(), matrix.width), &points, shift)?;
                let theirs = |values: &Vec<P::Extension>| values.iter().copied().map(from_extension).collect();
                of_request.push(values.iter().map(theirs).collect());
                points_and_values.push(points.into_iter().zip(values).collect::<Vec<_>>());
            }
            opened_values.push(of_request);
        }

        let shape = PcsShape::from_opened_values(&self.parameters, &opened_values);
        let mut transcript = PcsProverTranscript::<Challenger, P, Challenge<P>>::new(challenger, shape);
        transcript.claimed_openings(&opened_values);
        let (alpha, batch_pow_witness) = transcript.batch_phase();
        let opened: Vec<_> = matrices
            .iter()
            .copied()
            .flatten()
            .zip(&points_and_values)
            .map(|(matrix, points)| Opened { matrix: matrix.rows(), points })
            .collect();
        let test = |challenger: &mut Challenger| {
            let inputs = self.quotients.quotients(&opened, to_extension(alpha), shift)?;
            self.low_degree_test(&inputs, batch_pow_witness.unwrap_or(P::ZERO), challenger)
        };
        let (mut proof, indices) = match transcript.delegate(test) {
            Ok(done) => done,
            Err(error) => {
                transcript.abort();
                return Err(error);
            }
        };
        transcript.finish();
        for OpeningRequest { prover_data, .. } in &requests {
            proof.input_openings.push(self.opened_rows(prover_data, log_height, &indices)?);
        }
        Ok((opened_values, proof))
    }

    fn verify(
        &self,
        openings: Vec<CommitmentOpening<Challenge<P>, Self::Commitment, Self::Domain>>,
        proof: &Self::Proof,
        challenger: &mut Challenger,
    ) -> Result<(), Self::Error> {
        self.host.verify(openings, proof, challenger)
    }
}

impl<P, M, Challenger> UnivariateStarkPcs<Challenge<P>, Challenger> for DeviceFriPcs<P, M>
where
    P: DeviceValue + BinomiallyExtendable<4>,
    M: DeviceTrees<P>,
    Challenger: FieldChallenger<P> + CanObserve<M::Commitment> + GrindingChallenger<Witness = P>,
{
    type EvaluationsOnDomain<'a> = BitReversedMatrixView<RowMajorMatrixCow<'a, P>>;

    const ZK: bool = false;

    fn log_max_trace_height(&self) -> usize {
        UnivariateStarkPcs::<Challenge<P>, Challenger>::log_max_trace_height(&self.host)
    }

    fn log_min_trace_height(&self) -> usize {
        UnivariateStarkPcs::<Challenge<P>, Challenger>::log_min_trace_height(&self.host)
    }

    fn commit_quotient(
        &self,
        quotient_domain: Self::Domain,
        quotient_evaluations: RowMajorMatrix<P>,
        num_chunks: usize,
    ) -> Result<(Self::Commitment, Self::ProverData), ProverError> {
        let chunks = quotient_domain.split_evals(num_chunks, quotient_evaluations);
        let chunks = quotient_domain.split_domains(num_chunks).into_iter().zip(chunks);
        Pcs::<Challenge<P>, Challenger>::commit(self, chunks)
    }

    fn get_quotient_ldes(
        &self,
        evaluations: impl IntoIterator<Item = (Self::Domain, RowMajorMatrix<P>)>,
        num_chunks: usize,
    ) -> Result<Vec<RowMajorMatrix<P>>, ProverError> {
        let host = &self.host;
        Ok(UnivariateStarkPcs::<Challenge<P>, Challenger>::get_quotient_ldes(host, evaluations, num_chunks)?)
    }

    fn commit_ldes(&self, ldes: Vec<RowMajorMatrix<P>>) -> Result<(Self::Commitment, Self::ProverData), ProverError> {
        if ldes.is_empty() {
            return Err(ProverError::NoMatrices);
        }
        let expected = 1 << self.parameters.log_blowup;
        if let Some(actual) = ldes.iter().map(|matrix| matrix.height()).find(|height| *height < expected) {
            return Err(ProverError::Rows { expected, actual });
        }
        let elements = ldes.iter().map(|matrix| matrix.values.len()).fold(0, usize::saturating_add);
        if !self.is_for_device(elements) {
            let (cap, data) = UnivariateStarkPcs::<Challenge<P>, Challenger>::commit_ldes(&self.host, ldes)?;
            return Ok((cap, DevicePcsData(Kind::Host(data))));
        }
        self.committed(ldes.iter().map(|matrix| self.uploaded(matrix)).collect::<Result<_, _>>()?, ldes)
    }

    /// Reads evaluations from the device: the first rows of the codeword if they are those on `domain`. Otherwise it
    /// reads as many rows as polynomials have coefficients, and evaluates these anew.
    ///
    /// # Panics
    /// If the device fails: the trait has no error here.
    fn get_evaluations_on_domain<'a>(
        &self,
        prover_data: &'a Self::ProverData,
        idx: usize,
        domain: Self::Domain,
    ) -> Self::EvaluationsOnDomain<'a> {
        match self.evaluations::<Challenger>(prover_data, idx, domain) {
            Ok(evaluations) => evaluations,
            Err(error) => panic!("the evaluations cannot be read: {error}"),
        }
    }

    fn build_periodic_lde_table(
        &self,
        periodic_cols: &[Vec<P>],
        trace_domain: Self::Domain,
        quotient_domain: Self::Domain,
    ) -> PeriodicLdeTable<P> {
        UnivariateStarkPcs::<Challenge<P>, Challenger>::build_periodic_lde_table(
            &self.host,
            periodic_cols,
            trace_domain,
            quotient_domain,
        )
    }
}

impl<P: DeviceValue + BinomiallyExtendable<4>, M: DeviceTrees<P>> Clone for DeviceFriPcs<P, M> {
    fn clone(&self) -> Self {
        let Self { mmcs, dft, parameters, host, quotients, constraints, fri } = self;
        Self {
            mmcs: mmcs.clone(),
            dft: dft.clone(),
            parameters: parameters.clone(),
            host: host.clone(),
            quotients: quotients.on(queue(mmcs)),
            constraints: constraints.on(queue(mmcs)),
            fri: Arc::clone(fri),
        }
    }
}

impl<P: DeviceValue + BinomiallyExtendable<4>, M: DeviceTrees<P>> fmt::Debug for DeviceFriPcs<P, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceFriPcs").field("fri", &self.fri).finish_non_exhaustive()
    }
}

impl<P: DeviceValue, M: DeviceTrees<P>> fmt::Debug for DevicePcsData<P, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tree = match &self.0 {
            Kind::Host(_) => None,
            Kind::Device { tree, .. } => Some(tree),
        };
        f.debug_struct("DevicePcsData").field("tree", &tree).finish_non_exhaustive()
    }
}
