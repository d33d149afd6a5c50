use std::{array, fmt, sync::Arc};

use evariste_backend::{Device, Element, Transfer, author::decode, parallel};
use evariste_hash::{Merkle, Poseidon2, Poseidon2Parameters, Rows, layer_start, reference};
use p3_commit::{BatchOpening, BatchOpeningRef, Mmcs};
use p3_field::{Field, PackedValue};
use p3_matrix::{Dimensions, Matrix};
use p3_merkle_tree::{MerkleCap, MerkleTree, MerkleTreeError, MerkleTreeMmcs, PrunedMerklePaths};
use p3_symmetric::{CryptographicPermutation, PaddingFreeSponge, TruncatedPermutation};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    dft::MIN_ELEMENTS,
    value::{DeviceValue, Values, to_device},
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
    /// The device has no memory for the constants, or failed.
    #[error(transparent)]
    Hash(#[from] evariste_hash::Error),
}

/// The commitment scheme of Plonky3 that this one computes.
type Host<P, Perm, const WIDTH: usize, const RATE: usize, const DIGEST: usize> = MerkleTreeMmcs<
    <P as Field>::Packing,
    <P as Field>::Packing,
    PaddingFreeSponge<Perm, WIDTH, RATE, DIGEST>,
    TruncatedPermutation<Perm, 2, DIGEST, WIDTH>,
    2,
    DIGEST,
>;

/// Plonky3's [`MerkleTreeMmcs`] with Poseidon2 over a device of Evariste: [`PaddingFreeSponge`] for rows and
/// [`TruncatedPermutation`] for nodes. Commitments, openings and proofs are the same, byte for byte.
///
/// The device hashes matrices of 2^14 elements or more ([`DeviceMmcs::min_elements`]), with heights that are powers of
/// two. Plonky3 does the rest, and what the device refuses or fails to do: the trait has no errors, so that the log has
/// a warning then. It verifies, too: as released, it does not bind rows of matrices that are shorter than the cap.
/// Memory for matrices is public: it is not zeroed.
///
/// Nodes come back with the commitment, so that openings need no device.
pub struct DeviceMmcs<P: DeviceValue, Perm, const WIDTH: usize, const RATE: usize, const DIGEST: usize> {
    merkle: Arc<Merkle<P::Device>>,
    host: Host<P, Perm, WIDTH, RATE, DIGEST>,
    min_elements: usize,
}

/// What a commitment leaves with the prover: the matrices and their tree.
pub struct ProverData<P, M, const DIGEST: usize>(Kind<P, M, DIGEST>);

enum Kind<P, M, const DIGEST: usize> {
    Host(MerkleTree<P, P, M, 2, DIGEST>),
    /// With the nodes from the leaves to the root.
    Device {
        matrices: Vec<M>,
        nodes: Vec<P>,
    },
}

impl<P, M, const DIGEST: usize> fmt::Debug for ProverData<P, M, DIGEST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = match &self.0 {
            Kind::Host(_) => None,
            Kind::Device { nodes, .. } => Some(nodes.len() / DIGEST),
        };
        f.debug_struct("ProverData").field("nodes", &nodes).finish_non_exhaustive()
    }
}

impl<P: DeviceValue, Perm, const WIDTH: usize, const RATE: usize, const DIGEST: usize>
    DeviceMmcs<P, Perm, WIDTH, RATE, DIGEST>
where
    Perm: CryptographicPermutation<[P; WIDTH]> + Clone,
{
    /// Makes the scheme for a device, with a permutation of Plonky3 and its parameters. Commitments are caps of
    /// 2^`cap_height` digests.
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
        Ok(Self {
            merkle: Merkle::new(Poseidon2::new(device, parameters)?).into(),
            host: MerkleTreeMmcs::new(hash, compression, cap_height),
            min_elements: MIN_ELEMENTS,
        })
    }
}

impl<P: DeviceValue, Perm, const WIDTH: usize, const RATE: usize, const DIGEST: usize>
    DeviceMmcs<P, Perm, WIDTH, RATE, DIGEST>
{
    /// Sets the elements of all matrices from which on the device hashes them.
    #[must_use]
    pub fn min_elements(mut self, count: usize) -> Self {
        self.min_elements = count;
        self
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        self.merkle.poseidon2().queue().device()
    }

    /// Builds the tree on the device, and reads its nodes.
    fn nodes<M: Matrix<P>>(&self, matrices: &[M]) -> Result<Vec<P>, evariste_hash::Error> {
        let queue = self.merkle.poseidon2().queue();
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
        let staging = device.host_buffer(tree.nodes().bytes() as usize, Transfer::Download, Default::default())?;
        let staging = queue.read_pinned(tree.nodes(), staging)?.wait()?;
        let mut nodes = vec![P::ZERO; tree.nodes().len()];
        decode::<Values<P>>(&staging, &mut nodes)?;
        Ok(nodes)
    }
}

/// Bytes of rows that a thread copies at a time.
const CHUNK_BYTES: usize = 1 << 16;

impl<P: DeviceValue, Perm: Clone, const WIDTH: usize, const RATE: usize, const DIGEST: usize> Clone
    for DeviceMmcs<P, Perm, WIDTH, RATE, DIGEST>
{
    fn clone(&self) -> Self {
        let Self { merkle, host, min_elements } = self;
        Self { merkle: Arc::clone(merkle), host: host.clone(), min_elements: *min_elements }
    }
}

impl<P: DeviceValue, Perm, const WIDTH: usize, const RATE: usize, const DIGEST: usize> fmt::Debug
    for DeviceMmcs<P, Perm, WIDTH, RATE, DIGEST>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceMmcs")
            .field("device", self.device())
            .field("cap_height", &self.host.cap_height())
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

impl<P, Perm, const WIDTH: usize, const RATE: usize, const DIGEST: usize> Mmcs<P>
    for DeviceMmcs<P, Perm, WIDTH, RATE, DIGEST>
where
    P: DeviceValue + Eq,
    P::Packing: PackedValue<Value = P>,
    Perm: CryptographicPermutation<[P; WIDTH]> + CryptographicPermutation<[P::Packing; WIDTH]> + Clone + Sync,
    [P; DIGEST]: Serialize + DeserializeOwned,
{
    type ProverData<M> = ProverData<P, M, DIGEST>;
    type Commitment = MerkleCap<P, [P; DIGEST]>;
    type Proof = Vec<[P; DIGEST]>;
    type MultiProof = PrunedMerklePaths<P, DIGEST>;
    type Error = MerkleTreeError;

    fn commit<M: Matrix<P>>(&self, inputs: Vec<M>) -> (Self::Commitment, Self::ProverData<M>) {
        let elements: usize = inputs.iter().map(|matrix| matrix.width().saturating_mul(matrix.height())).sum();
        let fits = |matrix: &M| matrix.height().is_power_of_two() && matrix.width() > 0;
        if elements >= self.min_elements.max(1) && inputs.iter().all(fits) {
            match self.nodes(&inputs) {
                Ok(nodes) => {
                    let digests: &[[P; DIGEST]] = nodes.as_chunks().0;
                    let len = digests.len().div_ceil(2).min(1 << self.host.cap_height().min(63));
                    // The layer of so many nodes, of which those above have one less.
                    let end = digests.len() + 1 - len;
                    let cap = MerkleCap::new(digests[end - len..end].to_vec());
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
                let nodes: &[[P; DIGEST]] = nodes.as_chunks().0;
                let height = nodes.len().div_ceil(2);
                let layers = height.ilog2().saturating_sub(self.host.cap_height() as u32);
                let sibling = |layer| nodes[layer_start(height, layer) + ((index >> layer) ^ 1)];
                (rows(matrices, height, index), (0..layers).map(sibling).collect())
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
        let nodes: &[[P; DIGEST]] = nodes.as_chunks().0;
        let height = nodes.len().div_ceil(2);
        let opened = indices.iter().map(|index| rows(matrices, height, *index)).collect();
        // Layer by layer, from left to right, the siblings of opened nodes that are not opened themselves.
        let mut known = indices.to_vec();
        known.sort_unstable();
        known.dedup();
        let mut sibling_hashes = Vec::new();
        for layer in 0..height.ilog2().saturating_sub(self.host.cap_height() as u32) {
            let layer = &nodes[layer_start(height, layer)..];
            let missing = known.iter().map(|node| node ^ 1).filter(|node| known.binary_search(node).is_err());
            sibling_hashes.extend(missing.map(|node| layer[node]));
            known.iter_mut().for_each(|node| *node >>= 1);
            known.dedup();
        }
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
