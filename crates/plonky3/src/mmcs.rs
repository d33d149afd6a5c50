use std::{array, fmt, iter, marker::PhantomData, sync::Arc};

use evariste_backend::{Device, Element, Transfer, View, author::decode, parallel};
use evariste_hash::{
    Arity, HashFunction, Layer, Merkle, Poseidon2, Poseidon2Parameters, Rows, Serialization, SerializingHash, TreeHash,
    cap_place, layers, reference, siblings,
};
use p3_commit::{BatchOpening, BatchOpeningRef, Mmcs};
use p3_field::Field;
use p3_matrix::{Dimensions, Matrix};
use p3_merkle_tree::{MerkleCap, MerkleTreeError, MerkleTreeMmcs, PrunedMerklePaths};
use p3_symmetric::{
    CompressionFunctionFromHasher, CryptographicHasher, CryptographicPermutation, PaddingFreeSponge, SerializingHasher,
    TruncatedPermutation,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    dft::MIN_ELEMENTS,
    value::{DeviceValue, Values, from_device, to_device},
};

/// The errors of making a commitment scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The parameters are of states, rates or digests of other lengths.
    #[error("the parameters are of width, rate and digest {actual:?}, expected {expected:?}")]
    Lengths {
        /// Those of the scheme.
        expected: [usize; 3],
        /// Those of the parameters.
        actual: [usize; 3],
    },
    /// The parameters are of another permutation.
    #[error("the parameters are of another permutation")]
    OtherPermutation,
    /// The hash function of Plonky3 is another one than that for the device.
    #[error("the hash function is not {expected}")]
    OtherHash {
        /// That for the device.
        expected: HashFunction,
    },
    /// A parameter of FRI is none that the device has.
    #[error("{what} must be {expected}, got {actual}")]
    Parameter {
        /// The parameter.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What was given.
        actual: usize,
    },
    /// The device has no memory for the constants, or failed.
    #[error(transparent)]
    Hash(#[from] evariste_hash::Error),
    /// FRI refuses its parameters, or the device has no memory for its points, or failed.
    #[error(transparent)]
    Fri(#[from] evariste_fri::Error),
}

/// Plonky3's commitment scheme over Poseidon2.
type Sponges<P, Perm, const WIDTH: usize, const RATE: usize, const DIGEST: usize, const N: usize> = MerkleTreeMmcs<
    <P as Field>::Packing,
    <P as Field>::Packing,
    PaddingFreeSponge<Perm, WIDTH, RATE, DIGEST>,
    TruncatedPermutation<Perm, N, DIGEST, WIDTH>,
    N,
    DIGEST,
>;

/// Plonky3's commitment scheme over a hash function of bytes.
type Bytes<P, H, const N: usize> =
    MerkleTreeMmcs<P, u8, SerializingHasher<H>, CompressionFunctionFromHasher<H, N, BYTES>, N, BYTES>;

/// The bytes of a digest.
const BYTES: usize = 32;

/// Plonky3's [`MerkleTreeMmcs`] with Poseidon2 over a device of Evariste: [`PaddingFreeSponge`] for rows and
/// [`TruncatedPermutation`] for nodes, of `N` children: two or four.
pub type DeviceMmcs<P, Perm, const WIDTH: usize, const RATE: usize, const DIGEST: usize, const N: usize = 2> =
    DeviceTreeMmcs<P, P, Poseidon2<<P as DeviceValue>::Device>, Sponges<P, Perm, WIDTH, RATE, DIGEST, N>, DIGEST, N>;

/// Plonky3's [`MerkleTreeMmcs`] with a hash function of bytes over a device of Evariste: [`SerializingHasher`] for rows
/// and [`CompressionFunctionFromHasher`] for nodes, of `N` children: two or four.
pub type DeviceByteMmcs<P, H, const N: usize = 2> =
    DeviceTreeMmcs<P, u8, SerializingHash<<P as DeviceValue>::Device>, Bytes<P, H, N>, BYTES, N>;

/// Plonky3's [`MerkleTreeMmcs`] over a device of Evariste: [`DeviceMmcs`] or [`DeviceByteMmcs`]. Commitments, openings
/// and proofs are the same, byte for byte. A digest is `DIGEST` elements of `W`, and a node has `N` children.
///
/// The device hashes matrices of 2^14 elements or more ([`DeviceTreeMmcs::min_elements`]), with heights that are powers
/// of two. Plonky3 does the rest, and what the device refuses or fails to do: the trait has no errors, so that the log
/// has a warning then. It verifies, too: as released, it does not bind rows of matrices that are shorter than the cap.
/// Memory for matrices is public: it is not zeroed.
///
/// Nodes come back with the commitment, so that openings need no device. [`DeviceFriPcs`](crate::DeviceFriPcs) keeps
/// them there.
pub struct DeviceTreeMmcs<P: DeviceValue, W, H: TreeHash<P::Device>, Host, const DIGEST: usize, const N: usize = 2> {
    merkle: Arc<Merkle<P::Device, H>>,
    host: Host,
    cap_height: usize,
    min_elements: usize,
    digest: PhantomData<fn() -> W>,
}

/// What a commitment leaves with the prover: the matrices `M` and their tree, which is `Host` if Plonky3 has built it.
pub struct ProverData<Host, M, W, const DIGEST: usize>(Kind<Host, M, W, DIGEST>);

enum Kind<Host, M, W, const DIGEST: usize> {
    Host(Host),
    /// With the digests from the leaves to the root.
    Device {
        matrices: Vec<M>,
        nodes: Vec<[W; DIGEST]>,
    },
}

impl<Host, M, W, const DIGEST: usize> fmt::Debug for ProverData<Host, M, W, DIGEST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = match &self.0 {
            Kind::Host(_) => None,
            Kind::Device { nodes, .. } => Some(nodes.len()),
        };
        f.debug_struct("ProverData").field("nodes", &nodes).finish_non_exhaustive()
    }
}

/// Hashes of trees whose digests are `DIGEST` elements of `W` in Plonky3.
pub trait Digests<P: DeviceValue, W, const DIGEST: usize>: TreeHash<P::Device> {
    /// Returns digests that came from a device.
    #[doc(hidden)]
    fn digests(nodes: &[<Self::Node as Element>::Host]) -> Vec<[W; DIGEST]>;

    /// Reads all nodes of a tree.
    #[doc(hidden)]
    fn read(&self, nodes: View<'_, Self::Node>) -> evariste_backend::Result<Vec<[W; DIGEST]>>;
}

impl<P: DeviceValue, const DIGEST: usize> Digests<P, P, DIGEST> for Poseidon2<P::Device> {
    fn digests(nodes: &[P::Device]) -> Vec<[P; DIGEST]> {
        nodes.as_chunks().0.iter().map(|digest: &[P::Device; DIGEST]| digest.map(from_device)).collect()
    }

    fn read(&self, nodes: View<'_, Self::Node>) -> evariste_backend::Result<Vec<[P; DIGEST]>> {
        let queue = self.queue();
        let staging = queue.device().host_buffer(nodes.bytes() as usize, Transfer::Download, Default::default())?;
        let staging = queue.read_pinned(nodes, staging)?.wait()?;
        let mut digests = vec![[P::ZERO; DIGEST]; nodes.len() / DIGEST];
        decode::<Values<P>>(&staging, digests.as_flattened_mut())?;
        Ok(digests)
    }
}

impl<P: DeviceValue> Digests<P, u8, BYTES> for SerializingHash<P::Device> {
    fn digests(nodes: &[[u8; BYTES]]) -> Vec<[u8; BYTES]> {
        nodes.to_vec()
    }

    fn read(&self, nodes: View<'_, Self::Node>) -> evariste_backend::Result<Vec<[u8; BYTES]>> {
        self.hash().queue().read(nodes)
    }
}

impl<P: DeviceValue, Perm, const WIDTH: usize, const RATE: usize, const DIGEST: usize, const N: usize>
    DeviceMmcs<P, Perm, WIDTH, RATE, DIGEST, N>
where
    Perm: CryptographicPermutation<[P; WIDTH]> + Clone,
{
    /// Makes the scheme for a device, with a permutation of Plonky3 and its parameters. A state has room for the digests of
    /// all children of a node: it does not compile otherwise. Commitments are the layer `cap_height` below the root:
    /// 2^`cap_height` digests with two children a node.
    ///
    /// # Errors
    /// - [`Error::Lengths`] if the parameters are of states, rates or digests of other lengths.
    /// - [`Error::OtherPermutation`] if they are of another permutation.
    /// - [`Error::Hash`] if the device has no memory for the constants, or fails.
    pub fn new(
        device: &Device,
        permutation: Perm,
        parameters: Poseidon2Parameters<P::Device>,
        cap_height: usize,
    ) -> Result<Self, Error> {
        const {
            assert!(
                N * DIGEST <= WIDTH,
                "a state of the permutation must have room for the digests of a node's children"
            )
        };
        let (expected, actual) = ([WIDTH, RATE, DIGEST], [parameters.width(), parameters.rate(), parameters.digest()]);
        if expected != actual {
            return Err(Error::Lengths { expected, actual });
        }
        let state: [P; WIDTH] = array::from_fn(|i| P::from_u64(i as u64 + 1));
        let mut there = state.map(to_device);
        reference::permute(&parameters, &mut there);
        if permutation.permute(state).map(to_device) != there {
            return Err(Error::OtherPermutation);
        }
        let (hash, compression) = (PaddingFreeSponge::new(permutation.clone()), TruncatedPermutation::new(permutation));
        let host = MerkleTreeMmcs::new(hash, compression, cap_height);
        Ok(Self::over(Poseidon2::new(device, parameters.with_arity(arity::<N>()))?, host, cap_height))
    }
}

impl<P: DeviceValue, H: CryptographicHasher<u8, [u8; BYTES]> + Clone, const N: usize> DeviceByteMmcs<P, H, N> {
    /// Makes the scheme for a device, with a hash of Plonky3 and the same function for the device. Commitments are the
    /// layer `cap_height` below the root: 2^`cap_height` digests with two children a node.
    ///
    /// # Errors
    /// - [`Error::OtherHash`] if the functions differ.
    /// - [`Error::Hash`] if the device has no memory, or fails.
    pub fn new(device: &Device, hash: H, function: HashFunction, cap_height: usize) -> Result<Self, Error> {
        let serialization = Serialization::plonky3::<P::Device>(function).with_arity(arity::<N>());
        let row: Vec<P> = (1..100).map(P::from_u64).collect();
        let there = serialization.bytes(&row.iter().copied().map(to_device).collect::<Vec<_>>());
        let hasher = SerializingHasher::new(hash.clone());
        let digest: [u8; BYTES] = hasher.hash_iter(row);
        if digest != function.digest(&there) {
            return Err(Error::OtherHash { expected: function });
        }
        let host = MerkleTreeMmcs::new(hasher, CompressionFunctionFromHasher::new(hash), cap_height);
        Ok(Self::over(SerializingHash::new(device, serialization)?, host, cap_height))
    }
}

/// The number of children of a node, as devices know it.
fn arity<const N: usize>() -> Arity {
    const { assert!(N == 2 || N == 4, "a node has two or four children") };
    if N == 2 { Arity::Two } else { Arity::Four }
}

impl<P: DeviceValue, W, H: TreeHash<P::Device>, Host, const DIGEST: usize, const N: usize>
    DeviceTreeMmcs<P, W, H, Host, DIGEST, N>
{
    fn over(hash: H, host: Host, cap_height: usize) -> Self {
        let (merkle, digest) = (Arc::new(Merkle::new(hash)), PhantomData);
        Self { merkle, host, cap_height, min_elements: MIN_ELEMENTS, digest }
    }

    /// Sets the elements of all matrices from which on the device hashes them.
    #[must_use]
    pub fn min_elements(mut self, count: usize) -> Self {
        self.min_elements = count;
        self
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        self.merkle.hash().tree_queue().device()
    }

    /// Builds the tree on the device, and reads its nodes.
    fn nodes<M: Matrix<P>>(&self, matrices: &[M]) -> Result<Vec<[W; DIGEST]>, evariste_hash::Error>
    where
        H: Digests<P, W, DIGEST>,
    {
        let queue = self.merkle.hash().tree_queue();
        let device = queue.device();
        let mut buffers = Vec::with_capacity(matrices.len());
        for matrix in matrices {
            let (height, width) = (matrix.height(), matrix.width());
            let row_bytes = Values::<P>::BYTES * width;
            let mut staging = device.host_buffer(height * row_bytes, Transfer::Upload, Default::default())?;
            let rows_at_a_time = (CHUNK_BYTES / row_bytes).max(1);
            parallel::chunks(&mut staging[..], rows_at_a_time * row_bytes, &|chunk, bytes| {
                for (row, bytes) in (chunk * rows_at_a_time..height).zip(bytes.chunks_exact_mut(row_bytes)) {
                    matrix.row_slice(row).into_iter().for_each(|row| Values::<P>::encode(&row, bytes));
                }
            });
            let mut buffer = device.alloc::<Values<P>>(height * width)?;
            drop(queue.write_pinned(&mut buffer, staging)?.wait()?);
            buffers.push(buffer);
        }
        let views = buffers.iter().zip(matrices);
        let views: Vec<_> =
            views.map(|(buffer, matrix)| Rows::new(buffer.as_view().flattened(), matrix.width())).collect();
        let tree = self.merkle.commit(&views)?;
        Ok(self.merkle.hash().read(tree.nodes())?)
    }
}

/// Bytes of rows that a thread copies at a time.
const CHUNK_BYTES: usize = 1 << 16;

impl<P: DeviceValue, W, H: TreeHash<P::Device>, Host: Clone, const DIGEST: usize, const N: usize> Clone
    for DeviceTreeMmcs<P, W, H, Host, DIGEST, N>
{
    fn clone(&self) -> Self {
        let Self { merkle, host, cap_height, min_elements, digest } = self;
        let (merkle, host) = (Arc::clone(merkle), host.clone());
        Self { merkle, host, cap_height: *cap_height, min_elements: *min_elements, digest: *digest }
    }
}

impl<P: DeviceValue, W, H: TreeHash<P::Device>, Host, const DIGEST: usize, const N: usize> fmt::Debug
    for DeviceTreeMmcs<P, W, H, Host, DIGEST, N>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceTreeMmcs")
            .field("device", self.device())
            .field("cap_height", &self.cap_height)
            .field("min_elements", &self.min_elements)
            .finish_non_exhaustive()
    }
}

/// The rows of all matrices that belong to an index below `height`.
fn rows<P: DeviceValue, M: Matrix<P>>(matrices: &[M], height: usize, index: usize) -> Vec<Vec<P>> {
    assert!(index < height, "index {index} out of bounds for height {height}");
    let row = |matrix: &M| matrix.row(index >> (height / matrix.height()).ilog2()).into_iter().flatten().collect();
    matrices.iter().map(row).collect()
}

/// The layers of the tree over matrices.
fn layers_of<P: DeviceValue, M: Matrix<P>>(arity: Arity, matrices: &[M]) -> Vec<Layer> {
    layers(arity, matrices.iter().map(Matrix::height))
}

/// The paths from leaves through layers without what the others tell: layer by layer, from left to right, the siblings of
/// opened nodes that are not opened themselves. `sibling` is given the number of a layer, that of a digest, and the place
/// among `leaves` of one whose path has it.
fn pruned<T>(leaves: &[usize], layers: &[Layer], sibling: impl Fn(usize, usize, usize) -> T) -> Vec<T> {
    let mut known: Vec<(usize, usize)> =
        leaves.iter().copied().enumerate().map(|(place, leaf)| (leaf, place)).collect();
    known.sort_unstable();
    known.dedup_by_key(|(node, _)| *node);
    let mut siblings = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        let parent = |(node, _): &(usize, usize)| node / layer.children;
        for opened in known.chunk_by(|a, b| parent(a) == parent(b)) {
            let (node, place) = opened[0];
            let first = node - node % layer.children;
            let is_missing = |node: &usize| opened.iter().all(|(known, _)| known != node);
            let missing = (first..first + layer.children).filter(is_missing);
            siblings.extend(missing.map(|node| sibling(number, layer.start + node, place)));
        }
        known.iter_mut().for_each(|(node, _)| *node /= layer.children);
        known.dedup_by_key(|(node, _)| *node);
    }
    siblings
}

impl<P, W, H, Host, const DIGEST: usize, const N: usize> Mmcs<P> for DeviceTreeMmcs<P, W, H, Host, DIGEST, N>
where
    P: DeviceValue,
    W: Copy,
    H: Digests<P, W, DIGEST>,
    Host: HostMmcs<P, W, DIGEST>,
    [W; DIGEST]: Serialize + DeserializeOwned,
{
    type ProverData<M> = ProverData<Host::ProverData<M>, M, W, DIGEST>;
    type Commitment = MerkleCap<P, [W; DIGEST]>;
    type Proof = Vec<[W; DIGEST]>;
    type MultiProof = PrunedMerklePaths<W, DIGEST>;
    type Error = MerkleTreeError;

    fn commit<M: Matrix<P>>(&self, inputs: Vec<M>) -> (Self::Commitment, Self::ProverData<M>) {
        let elements: usize = inputs.iter().map(|matrix| matrix.width().saturating_mul(matrix.height())).sum();
        let fits = |matrix: &M| matrix.height().is_power_of_two() && matrix.width() > 0;
        if elements >= self.min_elements.max(1) && inputs.iter().all(fits) {
            match self.nodes(&inputs) {
                Ok(nodes) => {
                    let layers = layers_of(arity::<N>(), &inputs);
                    let Layer { start, digests, .. } = layers[cap_place(&layers, self.cap_height)];
                    let cap = MerkleCap::new(nodes[start..start + digests].to_vec());
                    return (cap, ProverData(Kind::Device { matrices: inputs, nodes }));
                }
                Err(error) => {
                    log::warn!("{} did not hash {elements} elements, the CPU does: {error}", self.device().info().id);
                }
            }
        }
        let (cap, tree) = self.host.commit(inputs);
        (cap, ProverData(Kind::Host(tree)))
    }

    fn open_batch<M: Matrix<P>>(&self, index: usize, data: &Self::ProverData<M>) -> BatchOpening<P, Self> {
        let (rows, path) = match &data.0 {
            Kind::Host(tree) => self.host.open_batch(index, tree).unpack(),
            Kind::Device { matrices, nodes } => {
                let layers = layers_of(arity::<N>(), matrices);
                let path = siblings(&layers[..cap_place(&layers, self.cap_height)], index);
                (rows(matrices, layers[0].nodes, index), path.map(|number| nodes[number]).collect())
            }
        };
        BatchOpening::new(rows, path)
    }

    fn get_matrices<'a, M: Matrix<P>>(&self, data: &'a Self::ProverData<M>) -> Vec<&'a M> {
        match &data.0 {
            Kind::Host(tree) => self.host.get_matrices(tree),
            Kind::Device { matrices, .. } => matrices.iter().collect(),
        }
    }

    fn verify_batch(
        &self,
        commit: &Self::Commitment,
        dimensions: &[Dimensions],
        index: usize,
        opening: BatchOpeningRef<'_, P, Self>,
    ) -> Result<(), Self::Error> {
        let (rows, path) = opening.unpack();
        self.host.verify_batch(commit, dimensions, index, BatchOpeningRef::new(rows, path))
    }

    fn open_multi_batch<M: Matrix<P>>(
        &self,
        indices: &[usize],
        data: &Self::ProverData<M>,
    ) -> (Vec<Vec<Vec<P>>>, Self::MultiProof) {
        let (matrices, nodes) = match &data.0 {
            Kind::Host(tree) => return self.host.open_multi_batch(indices, tree),
            Kind::Device { matrices, nodes } => (matrices, nodes),
        };
        let layers = layers_of(arity::<N>(), matrices);
        let opened = indices.iter().map(|index| rows(matrices, layers[0].nodes, *index)).collect();
        let below = &layers[..cap_place(&layers, self.cap_height)];
        let sibling_hashes = pruned(indices, below, |_, number, _| nodes[number]);
        (opened, PrunedMerklePaths { sibling_hashes })
    }

    fn verify_multi_batch<R: AsRef<[P]> + PartialEq>(
        &self,
        commit: &Self::Commitment,
        dimensions: &[Dimensions],
        indices: &[usize],
        opened: &[Vec<R>],
        proof: &Self::MultiProof,
    ) -> Result<(), Self::Error> {
        self.host.verify_multi_batch(commit, dimensions, indices, opened, proof)
    }
}

/// A commitment scheme of Plonky3 whose digests are `DIGEST` elements of `W`. Every one is.
pub trait HostMmcs<P: DeviceValue, W, const DIGEST: usize>:
    Mmcs<
        P,
        Commitment = MerkleCap<P, [W; DIGEST]>,
        Proof = Vec<[W; DIGEST]>,
        MultiProof = PrunedMerklePaths<W, DIGEST>,
        Error = MerkleTreeError,
    >
{
}

impl<P: DeviceValue, W, T, const DIGEST: usize> HostMmcs<P, W, DIGEST> for T where
    T: Mmcs<
            P,
            Commitment = MerkleCap<P, [W; DIGEST]>,
            Proof = Vec<[W; DIGEST]>,
            MultiProof = PrunedMerklePaths<W, DIGEST>,
            Error = MerkleTreeError,
        >
{
}

/// What a device's digests consist of.
pub(crate) type Part<P, M> = <Node<P, M> as Element>::Host;

/// The element of a buffer of digests.
pub(crate) type Node<P, M> = <<M as DeviceTrees<P>>::Hash as TreeHash<<P as DeviceValue>::Device>>::Node;

/// A commitment scheme whose trees a device builds: [`DeviceMmcs`] or [`DeviceByteMmcs`] with two children a node. There
/// are no others.
pub trait DeviceTrees<P: DeviceValue>: Mmcs<P, MultiProof: Sync, Error: Sync> + Clone + sealed::Sealed {
    /// The hash.
    type Hash: TreeHash<P::Device>;

    /// Returns the trees' plan.
    fn merkle(&self) -> &Merkle<P::Device, Self::Hash>;

    /// Returns log₂ of the digests of a commitment.
    fn cap_height(&self) -> usize;

    /// Returns the elements of all matrices from which on the device hashes them.
    fn least_elements(&self) -> usize;

    /// Makes a commitment of a cap.
    #[doc(hidden)]
    fn commitment(cap: &[Part<P, Self>]) -> Self::Commitment;

    /// Makes one proof of the paths of rows.
    #[doc(hidden)]
    fn multi_proof(rows: &[usize], paths: &[&[Part<P, Self>]]) -> Self::MultiProof;
}

mod sealed {
    pub trait Sealed {}
}

impl<P: DeviceValue, W, H: TreeHash<P::Device>, Host, const DIGEST: usize> sealed::Sealed
    for DeviceTreeMmcs<P, W, H, Host, DIGEST>
{
}

impl<P, W, H, Host, const DIGEST: usize> DeviceTrees<P> for DeviceTreeMmcs<P, W, H, Host, DIGEST>
where
    P: DeviceValue,
    W: Copy + Sync,
    H: Digests<P, W, DIGEST>,
    Host: HostMmcs<P, W, DIGEST> + Clone,
    [W; DIGEST]: Serialize + DeserializeOwned,
{
    type Hash = H;

    fn merkle(&self) -> &Merkle<P::Device, H> {
        &self.merkle
    }

    fn cap_height(&self) -> usize {
        self.cap_height
    }

    fn least_elements(&self) -> usize {
        self.min_elements
    }

    fn commitment(cap: &[<H::Node as Element>::Host]) -> Self::Commitment {
        MerkleCap::new(H::digests(cap))
    }

    fn multi_proof(rows: &[usize], paths: &[&[<H::Node as Element>::Host]]) -> Self::MultiProof {
        let paths: Vec<Vec<[W; DIGEST]>> = paths.iter().map(|path| H::digests(path)).collect();
        let len = paths.first().map_or(0, Vec::len);
        let layers = layers(Arity::Two, iter::once(1 << len));
        PrunedMerklePaths { sibling_hashes: pruned(rows, &layers[..len], |layer, _, place| paths[place][layer]) }
    }
}
