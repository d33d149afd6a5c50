use std::{fmt, iter};

use ark_ff::Field;
use evariste_backend::{Buffer, Element, Queue, Secrecy, View};
use evariste_field::Mont;
use evariste_hash::{Dimensions, Merkle, MerkleTree, Poseidon2, Rows, TreeHash, TreeParameters};

use crate::{
    error::{Error, Result},
    field::FriField,
    fold::{Fold, MAX_LOG_ARITY, inverse_of},
    points,
};

/// The parameters of FRI, beside those of the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FriConfig {
    /// log₂ of the evaluations for each coefficient; 1 or more.
    pub log_blowup: u32,
    /// log₂ of the coefficients of the final polynomial.
    pub log_final_len: u32,
    /// log₂ of the arity of a fold at most, from 1 to 4.
    pub max_log_arity: u32,
    /// The layer of a tree, from its root on, that is the commitment to a round: its cap. With two children a node it has
    /// 2^`log_cap` digests.
    pub log_cap: u32,
}

impl Default for FriConfig {
    /// Twice as many evaluations as coefficients, folds by 2, a constant in the end, and roots of trees.
    fn default() -> Self {
        Self { log_blowup: 1, log_final_len: 0, max_log_arity: 1, log_cap: 0 }
    }
}

impl FriConfig {
    /// log₂ of the evaluations of the final polynomial.
    pub(crate) fn log_last(&self) -> u32 {
        self.log_blowup.saturating_add(self.log_final_len)
    }

    pub(crate) fn expect(&self) -> Result<()> {
        let refuse = |what, expected, actual: u32| Err(Error::Parameter { what, expected, actual: actual.into() });
        if !(1..64).contains(&self.log_blowup) {
            return refuse("log₂ of the blow-up", "from 1 to 63", self.log_blowup);
        }
        if !(1..=MAX_LOG_ARITY).contains(&self.max_log_arity) {
            return refuse("log₂ of the arity", "from 1 to 4", self.max_log_arity);
        }
        if self.log_last() >= 64 {
            return refuse("log₂ of the final polynomial's length", "below 64 with the blow-up", self.log_final_len);
        }
        Ok(())
    }
}

/// Returns log₂ of the arities of the folds, from inputs of these log₂ lengths, which decrease. A fold ends where the
/// next input is as long, and the last one at the final polynomial. Plonky3's `fold_schedule` is the same.
pub fn log_arities(log_lens: &[u32], config: &FriConfig) -> Vec<u32> {
    let Some((first, others)) = log_lens.split_first() else { return Vec::new() };
    let (mut log_len, mut arities) = (*first, Vec::new());
    for stop in others.iter().copied().chain(iter::once(config.log_last())) {
        while log_len > stop {
            arities.push(config.max_log_arity.clamp(1, log_len - stop));
            log_len -= config.max_log_arity.clamp(1, log_len - stop);
        }
    }
    arities
}

/// FRI on a device: the commit phase and the openings of queries.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ark_ff::{Field, FftField};
/// use evariste_backend::Device;
/// use evariste_field::{Mont, small::{BabyBear, BabyBear4}};
/// use evariste_fri::{Error, Fri, FriConfig, reference, verify_query};
/// use evariste_hash::{DuplexSponge, Merkle, Poseidon2, Poseidon2Parameters};
///
/// let device = Device::best()?;
/// let parameters = Poseidon2Parameters::<BabyBear>::plonky3(16)?;
/// let merkle = Merkle::new(Poseidon2::new(&device, parameters.clone())?);
/// let config = FriConfig { log_blowup: 2, max_log_arity: 2, ..FriConfig::default() };
/// let fri = Fri::<BabyBear4>::new(merkle, 6, config)?;
///
/// // A polynomial of 16 coefficients on a coset of 64 points, in bit-reversed order.
/// let shift = BabyBear::GENERATOR;
/// let coefficients: Vec<BabyBear4> = (0..16u32).map(BabyBear4::from).collect();
/// let points = reference::points(6, shift);
/// let f = |x: BabyBear| reference::evaluate(&coefficients, BabyBear4::from_base_prime_field(x));
/// let values: Vec<BabyBear4> = points.into_iter().map(f).collect();
/// let evaluations = device.upload::<Mont<BabyBear4>>(&values)?;
///
/// let mut transcript = DuplexSponge::new(parameters.clone());
/// let mut challenges = Vec::new();
/// let committed = fri.commit(&[evaluations.as_view()], shift, |cap| {
///     transcript.observe(cap);
///     challenges.push(transcript.draw_extension());
///     Ok::<_, Error>(challenges[challenges.len() - 1])
/// })?;
/// let opened = fri.open(&committed, &evaluations, &[37])?;
///
/// let rounds: Vec<_> = committed.rounds().iter().map(|round| round.cap()).zip(challenges).collect();
/// let inputs = [(6, values[37])];
/// verify_query(&parameters, &config, shift, &rounds, committed.final_polynomial(), 37, &inputs, &opened[0])?;
/// # Ok(())
/// # }
/// ```
///
/// # Algorithm
///
/// A round commits to the evaluations by a tree, whose leaves are the rows that are folded together. The caller gets
/// its cap and draws a challenge. A fold ([`Fold`]) gives the evaluations of the next round. The evaluations and trees
/// stay on the device; a cap is read for each round, and the evaluations of the final polynomial in the end.
///
/// From N evaluations of an extension of degree d, with folds by 2^k and digests of r elements, the first round takes
/// N / 2^k sponges of d·2^k elements, and as many compressions; all rounds take 1 / (1 − 2^−k) times that. Hashes are
/// nearly all of the time.
pub struct Fri<F: FriField, H: TreeHash<F::BasePrimeField> = Poseidon2<<F as Field>::BasePrimeField>> {
    fold: Fold<F>,
    merkle: Merkle<F::BasePrimeField, H>,
    config: FriConfig,
}

/// What a commit phase leaves: trees and folded evaluations on the device, and the final polynomial. Digests consist of
/// `N`.
pub struct FriCommitment<F: FriField, N: Element = Mont<<F as Field>::BasePrimeField>> {
    rounds: Vec<FriRound<F, N>>,
    final_polynomial: Vec<F>,
    log_len: u32,
}

/// A round of a commit phase.
pub struct FriRound<F: FriField, N: Element = Mont<<F as Field>::BasePrimeField>> {
    log_arity: u32,
    cap: Vec<N::Host>,
    tree: MerkleTree<F::BasePrimeField, N>,
    /// What the fold gives.
    folded: Buffer<Mont<F>>,
}

/// A round's part of the opening of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryStep<F: FriField, D = <F as Field>::BasePrimeField> {
    /// The evaluations that are folded together, with the queried one among them.
    pub values: Vec<F>,
    /// The path of their row to the cap, one digest after the other.
    pub path: Vec<D>,
}

impl<F: FriField> Fri<F> {
    /// Returns the bytes of device memory that a commit phase takes beside its inputs, of these lengths from the
    /// longest on. [`FriCommitment`] keeps them. The parameters are those of any hash of trees.
    pub fn required_bytes<P: TreeParameters<F::BasePrimeField>>(
        parameters: &P,
        lens: &[usize],
        config: &FriConfig,
    ) -> u64 {
        let log_lens: Vec<u32> = lens.iter().map(|len| len.max(&1).ilog2()).collect();
        let mut len = lens.first().copied().unwrap_or(0);
        let each = log_arities(&log_lens, config).into_iter().map(|log_arity| {
            len >>= log_arity;
            let dimensions = Dimensions { height: len, columns: columns::<F>(log_arity) };
            let tree = Merkle::required_bytes(parameters, &[dimensions]);
            tree.saturating_add((len as u64).saturating_mul(Mont::<F>::BYTES as u64))
        });
        each.fold(Fold::<F>::required_bytes(0), u64::saturating_add)
    }
}

impl<F: FriField, H: TreeHash<F::BasePrimeField>> Fri<F, H> {
    /// Makes a plan for up to 2^`log_len` evaluations, on the queue of `merkle`.
    ///
    /// # Errors
    /// - [`Error::Parameter`] for a configuration that is none.
    /// - [`Error::Domain`] if the field has no subgroup of so many elements.
    /// - [`Error::Device`] if there is no memory, or if the device fails.
    pub fn new(merkle: Merkle<F::BasePrimeField, H>, log_len: u32, config: FriConfig) -> Result<Self> {
        config.expect()?;
        Ok(Self { fold: Fold::new(merkle.hash().tree_queue(), log_len)?, merkle, config })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { fold: self.fold.on(queue), merkle: self.merkle.on(queue), config: self.config }
    }

    /// Returns the parameters.
    pub fn config(&self) -> &FriConfig {
        &self.config
    }

    /// Returns the trees' plan.
    pub fn merkle(&self) -> &Merkle<F::BasePrimeField, H> {
        &self.merkle
    }

    /// Compiles all kernels of commit phases side by side, so that no later one does; see [`Merkle::prepare`] for
    /// what wgpu compiles all the same.
    ///
    /// # Errors
    /// [`Error::Device`] if a kernel does not compile, or if the device fails.
    pub fn prepare(&self) -> Result<()> {
        self.fold.prepare()?;
        Ok(self.merkle.prepare()?)
    }

    /// Commits to evaluations, and to all that they are folded to. `inputs` are in bit-reversed order and become
    /// shorter. The first one is on the coset of `shift`; each other one is on the coset to which the first is folded
    /// where it is as long, which is that of `shift`^(ratio of the lengths). There it is added, times the challenge to
    /// the power of the arity. Evaluations on g·H are those of f(g·x) on H: with a `shift` of 1, inputs of any cosets
    /// are folded so, as in Plonky3.
    ///
    /// `challenge` gets the cap of each round's tree, one digest after the other, and returns the challenge by which
    /// the round folds. A proof of work goes there as well.
    ///
    /// A round's tree and folded evaluations are secret if an input is that came in so far. It waits for each cap.
    /// Whether the evaluations are of polynomials of low degree is not checked.
    ///
    /// # Errors
    /// - [`Error::NoInput`] without inputs.
    /// - [`Error::Height`] if a length is no power of two, and [`Error::Order`] if inputs do not become shorter.
    /// - [`Error::TooLong`] if the plan is for less evaluations, and [`Error::TooShort`] for less than those of the
    ///   final polynomial.
    /// - [`Error::Parameter`] if `shift` is 0.
    /// - [`Error::Device`] if an input is on another device, if there is no room for
    ///   [`required_bytes`](Fri::required_bytes), or if the device fails.
    /// - The error that `challenge` returns. Inputs are as they were.
    pub fn commit<E: From<Error>>(
        &self,
        inputs: &[View<'_, Mont<F>>],
        shift: F::BasePrimeField,
        mut challenge: impl FnMut(&[Digest<F, H>]) -> Result<F, E>,
    ) -> Result<FriCommitment<F, H::Node>, E> {
        let log_lens = self.expect(inputs, shift)?;
        let device = self.fold.queue().device();
        let [first, others @ ..] = inputs else { return Err(Error::NoInput.into()) };
        let (mut others, mut shift) = (others.iter(), shift);
        let mut next = others.next();
        let mut rounds: Vec<FriRound<F, H::Node>> = Vec::new();
        for log_arity in log_arities(&log_lens, &self.config) {
            let values = rounds.last().map_or(*first, |round| round.folded.as_view());
            let tree = self.merkle.commit(&[rows(values, log_arity)]).map_err(Error::from)?;
            let cap = self.merkle.cap(&tree, self.config.log_cap).map_err(Error::from)?;
            let beta = challenge(&cap)?;
            let len = values.len() >> log_arity;
            let added = next.filter(|input| input.len() == len);
            let secrecy = Secrecy::of(added.iter().map(|input| input.secrecy()).chain([values.secrecy()]));
            let mut folded = device.alloc_with::<Mont<F>>(len, secrecy).map_err(Error::from)?;
            match added {
                None => self.fold.fold(values, beta, shift, &mut folded)?,
                Some(input) => {
                    let factor = beta.pow([1 << log_arity]);
                    self.fold.fold_and_add(values, beta, shift, (*input, factor), &mut folded)?;
                    next = others.next();
                }
            }
            shift = shift.pow([1 << log_arity]);
            rounds.push(FriRound { log_arity, cap, tree, folded });
        }
        let last = rounds.last().map_or(*first, |round| round.folded.as_view());
        let last = last.view(..1 << self.config.log_final_len).map_err(Error::from)?;
        let values = self.fold.queue().read(last).map_err(Error::from)?;
        let final_polynomial = points::coefficients(values, inverse_of(shift)?);
        Ok(FriCommitment { rounds, final_polynomial, log_len: log_lens[0] })
    }

    /// Checks inputs before anything is committed to. Returns log₂ of their lengths.
    fn expect(&self, inputs: &[View<'_, Mont<F>>], shift: F::BasePrimeField) -> Result<Vec<u32>> {
        inverse_of(shift)?;
        let mut log_lens: Vec<u32> = Vec::with_capacity(inputs.len());
        for (index, input) in inputs.iter().enumerate() {
            let log_len = self.fold.expect("the evaluations", input.len())?;
            if let Some(before) = log_lens.last()
                && log_len >= *before
            {
                return Err(Error::Order { index, before: 1 << before, actual: input.len() });
            }
            if log_len < self.config.log_last() {
                let expected = 1usize.checked_shl(self.config.log_last()).unwrap_or(usize::MAX);
                return Err(Error::TooShort { what: "the evaluations", expected, actual: input.len() });
            }
            self.fold.queue().device().expect_same("the evaluations", input.device())?;
            log_lens.push(log_len);
        }
        match log_lens.is_empty() {
            true => Err(Error::NoInput),
            false => Ok(log_lens),
        }
    }

    /// Opens queries: for each of `indices` into the evaluations, the row of each round that leads to it, with its path
    /// to the cap. `first` is the first input of the commit phase. One read for each round's tree.
    ///
    /// # Errors
    /// - [`Error::Parameter`] for an index beyond the evaluations.
    /// - [`Error::Device`] if `first` has another length than the first input, if it or the trees are on another
    ///   device, if there is no room for what is read, or if the device fails.
    pub fn open<'a>(
        &self,
        commitment: &FriCommitment<F, H::Node>,
        first: impl Into<View<'a, Mont<F>>>,
        indices: &[usize],
    ) -> Result<Queries<F, H>> {
        let first = first.into();
        first.expect_len("the first input", 1 << commitment.log_len)?;
        if let Some(index) = indices.iter().find(|index| **index >> commitment.log_len != 0) {
            let (what, expected) = ("an index", "below the number of evaluations");
            return Err(Error::Parameter { what, expected, actual: *index as u64 });
        }
        let mut queries: Vec<Vec<_>> = indices.iter().map(|_| Vec::new()).collect();
        let mut places = indices.to_vec();
        let mut values = first;
        for FriRound { log_arity, tree, folded, .. } in &commitment.rounds {
            places.iter_mut().for_each(|place| *place >>= log_arity);
            let opened = self.merkle.open(tree, &[rows(values, *log_arity)], &places, self.config.log_cap)?;
            for (query, opening) in queries.iter_mut().zip(opened) {
                let elements = opening.rows.iter().flatten().copied().collect::<Vec<_>>();
                let element = |part: &[_]| F::from_base_prime_field_elems(part.iter().copied());
                let degree = F::extension_degree() as usize;
                let values = elements.chunks_exact(degree).filter_map(element).collect();
                query.push(QueryStep { values, path: opening.path });
            }
            values = folded.as_view();
        }
        Ok(queries)
    }
}

/// What digests consist of.
type Digest<F, H> = <<H as TreeHash<<F as Field>::BasePrimeField>>::Node as Element>::Host;

/// The steps of each query.
type Queries<F, H> = Vec<Vec<QueryStep<F, Digest<F, H>>>>;

/// Elements of the prime field in a leaf.
fn columns<F: FriField>(log_arity: u32) -> usize {
    (F::extension_degree() as usize) << log_arity
}

/// The matrix of the rows that are folded together.
fn rows<F: FriField>(values: View<'_, Mont<F>>, log_arity: u32) -> Rows<'_, F::BasePrimeField> {
    Rows::new(values.flattened(), columns::<F>(log_arity))
}

impl<F: FriField, N: Element> FriCommitment<F, N> {
    /// Returns the rounds, from the first on.
    pub fn rounds(&self) -> &[FriRound<F, N>] {
        &self.rounds
    }

    /// Returns the coefficients of the final polynomial, the constant one first.
    pub fn final_polynomial(&self) -> &[F] {
        &self.final_polynomial
    }
}

impl<F: FriField, N: Element> FriRound<F, N> {
    /// Returns log₂ of the round's arity.
    pub fn log_arity(&self) -> u32 {
        self.log_arity
    }

    /// Returns the commitment: digests one after the other.
    pub fn cap(&self) -> &[N::Host] {
        &self.cap
    }

    /// Returns the tree over the evaluations that the round folds.
    pub fn tree(&self) -> &MerkleTree<F::BasePrimeField, N> {
        &self.tree
    }

    /// Returns what the round's fold gave, with a shorter input added.
    pub fn folded(&self) -> View<'_, Mont<F>> {
        self.folded.as_view()
    }
}

impl<F: FriField, H: TreeHash<F::BasePrimeField>> fmt::Debug for Fri<F, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fold, merkle, config } = self;
        f.debug_struct("Fri").field("fold", fold).field("merkle", merkle).field("config", config).finish()
    }
}

impl<F: FriField, N: Element> fmt::Debug for FriCommitment<F, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FriCommitment").field("rounds", &self.rounds).finish_non_exhaustive()
    }
}

impl<F: FriField, N: Element> fmt::Debug for FriRound<F, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { log_arity, tree, .. } = self;
        f.debug_struct("FriRound").field("log_arity", log_arity).field("tree", tree).finish_non_exhaustive()
    }
}
