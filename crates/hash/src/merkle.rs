use std::{cmp::Reverse, fmt};

use evariste_backend::{Buffer, Element, Queue, Secrecy, View, ViewMut, author::KernelSpec};
use evariste_field::{DevicePrimeField, Mont};
use evariste_primitives::{GatherScatter, MAX_LEN};

use self::verifier::Opening;
use crate::{
    dimensions::Dimensions,
    error::{Error, Result},
    parameters::Poseidon2Parameters,
    poseidon2::{Poseidon2, Rows, elements_of},
};

pub(crate) mod verifier;

/// Merkle trees over the rows of matrices, hashed with Poseidon2.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use evariste_backend::Device;
/// use evariste_field::{Mont, small::BabyBear};
/// use evariste_hash::{Merkle, Poseidon2, Poseidon2Parameters, Rows, verify};
///
/// let device = Device::best()?;
/// let parameters = Poseidon2Parameters::<BabyBear>::plonky3(16)?;
/// let merkle = Merkle::new(Poseidon2::new(&device, parameters.clone())?);
/// // 8 rows of 10 elements.
/// let matrix: Vec<BabyBear> = (0..80).map(BabyBear::from).collect();
/// let matrix = device.upload::<Mont<BabyBear>>(&matrix)?;
/// let matrices = [Rows::new(&matrix, 10)];
/// let tree = merkle.commit(&matrices)?;
/// let root = merkle.root(&tree)?;
/// let openings = merkle.open(&tree, &matrices, &[5, 2], 0)?;
/// verify(&parameters, &root, tree.dimensions(), 5, &openings[0])?;
/// # Ok(())
/// # }
/// ```
///
/// # Algorithm
///
/// A leaf is the digest of a row of the tallest matrices, one after the other. A node is the compression of its two
/// children. Where a layer has as many nodes as a shorter matrix has rows, each node is compressed once more, with the
/// digest of a row of these matrices. Plonky3 calls this a mixed matrix commitment (`MerkleTreeMmcs`), and the roots
/// are the same.
///
/// For 2^k rows of c elements it takes 2^k·⌈c / rate⌉ permutations for leaves and 2^k − 1 for nodes. A launch hashes
/// all rows, and another one each layer. The matrices are read once.
pub struct Merkle<F: DevicePrimeField> {
    poseidon2: Poseidon2<F>,
    gather: GatherScatter<Mont<F>>,
}

/// A Merkle tree on a device. Matrices are not part of it: they stay where they are.
pub struct MerkleTree<F: DevicePrimeField> {
    /// The layers one after the other, from the leaves to the root.
    nodes: Buffer<Mont<F>>,
    digest: usize,
    dimensions: Vec<Dimensions>,
}

impl<F: DevicePrimeField> Merkle<F> {
    /// Makes trees with this permutation, on its queue.
    pub fn new(poseidon2: Poseidon2<F>) -> Self {
        let gather = GatherScatter::new(poseidon2.queue());
        Self { poseidon2, gather }
    }

    /// Returns the same for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { poseidon2: self.poseidon2.on(queue), gather: self.gather.on(queue) }
    }

    /// Returns the permutation.
    pub fn poseidon2(&self) -> &Poseidon2<F> {
        &self.poseidon2
    }

    /// Returns the bytes of device memory that a tree over such matrices takes, with what its computation needs beside
    /// the matrices.
    pub fn required_bytes(parameters: &Poseidon2Parameters<F>, dimensions: &[Dimensions]) -> u64 {
        let height = dimensions.iter().map(|matrix| matrix.height).max().unwrap_or(0);
        let digest = (parameters.digest() * Mont::<F>::BYTES) as u64;
        let count = |height: usize| dimensions.iter().filter(|matrix| matrix.height == height).count();
        let scratch = dimensions.iter().map(|matrix| {
            let pairs = if matrix.height < height { (2 * matrix.height as u64).saturating_mul(digest) } else { 0 };
            pairs.saturating_add(Poseidon2::<F>::scratch_bytes(parameters, matrix.height, count(matrix.height)))
        });
        (2 * height as u64).saturating_mul(digest).saturating_add(scratch.max().unwrap_or(0))
    }

    /// Builds the tree over matrices. Their heights are powers of two. Returns when the work is queued.
    ///
    /// # Errors
    /// - [`Error::NoMatrices`] if there are none.
    /// - [`Error::Columns`] for a matrix without columns, or with elements that are no whole rows.
    /// - [`Error::Height`] for a height that is no power of two.
    /// - [`Error::Device`] if a view is of another device, if there is no room for
    ///   [`required_bytes`](Merkle::required_bytes), or if the device fails.
    pub fn commit(&self, matrices: &[Rows<'_, F>]) -> Result<MerkleTree<F>> {
        let dimensions =
            matrices.iter().enumerate().map(|(i, rows)| dimensions_of(i, rows)).collect::<Result<Vec<_>>>()?;
        let height = dimensions.iter().map(|matrix| matrix.height).max().ok_or(Error::NoMatrices)?;
        let device = self.poseidon2.queue().device();
        for rows in matrices {
            device.expect_same("a matrix", rows.values().device())?;
        }
        let secrecy = Secrecy::of(matrices.iter().map(|rows| rows.values().secrecy()));
        let digest = self.poseidon2.parameters().digest();
        let mut nodes = device.alloc_with::<Mont<F>>((2 * height - 1) * digest, secrecy)?;

        let mut order: Vec<usize> = (0..matrices.len()).collect();
        order.sort_by_key(|i| Reverse(dimensions[*i].height));
        let mut rest = &order[..];
        let mut of_height = |height: usize| {
            let (these, others) = rest.split_at(rest.partition_point(|i| dimensions[*i].height >= height));
            rest = others;
            these.iter().map(|i| matrices[*i]).collect::<Vec<_>>()
        };
        self.poseidon2.hash_rows(&of_height(height), nodes.view_mut(..height * digest)?)?;
        for layer in 0..height.ilog2() {
            let len = height >> layer;
            let (before, after) = nodes.as_view_mut().split_at(layer_start(height, layer + 1) * digest)?;
            let children = before.view(layer_start(height, layer) * digest..)?;
            let parents = after.into_part(..len / 2 * digest)?;
            let injected = of_height(len / 2);
            if injected.is_empty() {
                self.poseidon2.compress(children, parents)?;
                continue;
            }
            // Each node beside the digest of its row.
            let mut pairs = device.alloc_with::<Mont<F>>(len * digest, secrecy)?;
            let end = elements_of(len / 2, digest, 2);
            self.poseidon2.compress_apart(children, pairs.view_mut(..end)?, 2)?;
            self.poseidon2.hash_rows_apart(&injected, pairs.view_mut(digest..digest + end)?, 2)?;
            self.poseidon2.compress(&pairs, parents)?;
        }
        Ok(MerkleTree { nodes, digest, dimensions })
    }

    /// Reads the root: the digest of the whole tree. Waits for it.
    ///
    /// # Errors
    /// [`Error::Device`] if the tree is on another device, or if the device fails.
    pub fn root(&self, tree: &MerkleTree<F>) -> Result<Vec<F>> {
        self.cap(tree, 0)
    }

    /// Reads a cap: the digests of the layer of 2^`log_len` nodes, one after the other, or the leaves if there are
    /// fewer. Waits for it.
    ///
    /// # Errors
    /// [`Error::Device`] if the tree is on another device, or if the device fails.
    pub fn cap(&self, tree: &MerkleTree<F>, log_len: u32) -> Result<Vec<F>> {
        let len = 1usize << log_len.min(tree.log_height());
        let end = layer_start(tree.height(), tree.log_height() - len.ilog2()) + len;
        Ok(self.poseidon2.queue().read(tree.nodes.view((end - len) * tree.digest..end * tree.digest)?)?)
    }

    /// Opens rows: for each of `indices`, the rows of all matrices that belong to it, and the path to the cap of
    /// 2^`log_cap` digests. An index is that of a row of the tallest matrices. A matrix of 2^k fewer rows has the row
    /// `index >> k`. `matrices` are those of the tree. All are read at once.
    ///
    /// # Errors
    /// - [`Error::OutOfRange`] for an index beyond the tallest matrices.
    /// - [`Error::OtherMatrices`] for matrices of other dimensions.
    /// - [`Error::Device`] if the tree or a view is on another device, if there is no room for what is read, or if the
    ///   device fails.
    pub fn open(
        &self,
        tree: &MerkleTree<F>,
        matrices: &[Rows<'_, F>],
        indices: &[usize],
        log_cap: u32,
    ) -> Result<Vec<Opening<F>>> {
        let dimensions =
            matrices.iter().enumerate().map(|(i, rows)| dimensions_of(i, rows)).collect::<Result<Vec<_>>>()?;
        if dimensions != tree.dimensions {
            return Err(Error::OtherMatrices { expected: tree.dimensions.clone(), actual: dimensions });
        }
        let device = self.poseidon2.queue().device();
        device.expect_same("a tree", tree.nodes.device())?;
        for rows in matrices {
            device.expect_same("a matrix", rows.values().device())?;
        }
        let (height, digest, count) = (tree.height(), tree.digest, indices.len());
        if let Some(index) = indices.iter().copied().find(|index| *index >= height) {
            return Err(Error::OutOfRange { height, index });
        }
        let (queue, nodes) = (self.poseidon2.queue(), tree.nodes.as_view());
        let secrecy = Secrecy::of(matrices.iter().map(|rows| rows.values().secrecy()).chain([nodes.secrecy()]));
        let layers = tree.log_height().saturating_sub(log_cap);
        let path = layers as usize * digest;
        let each: usize = dimensions.iter().map(|matrix| matrix.columns).sum::<usize>() + path;
        let mut opened = device.alloc_with::<Mont<F>>(each * count, secrecy)?;
        let mut rest = opened.as_view_mut();
        for (rows, matrix) in matrices.iter().zip(&dimensions) {
            let shift = (height / matrix.height).ilog2();
            let (out, others) = rest.split_at(count * matrix.columns)?;
            self.gather_rows(rows, indices.iter().map(|index| index >> shift), out)?;
            rest = others;
        }
        let siblings = |index: usize| (0..layers).map(move |layer| layer_start(height, layer) + ((index >> layer) ^ 1));
        let indices = indices.iter().flat_map(|index| siblings(*index));
        self.gather_rows(&Rows::new(nodes, digest), indices, rest)?;

        let values = queue.read(&opened)?;
        let opening = |i: usize| {
            let mut start = 0;
            let mut part = |len: usize| {
                let from = start + i * len;
                start += count * len;
                values[from..from + len].to_vec()
            };
            let rows = dimensions.iter().map(|matrix| part(matrix.columns)).collect();
            Opening { rows, path: part(path) }
        };
        Ok((0..count).map(opening).collect())
    }

    /// Copies rows to `out`, one after the other.
    fn gather_rows(
        &self,
        rows: &Rows<'_, F>,
        indices: impl Iterator<Item = usize>,
        mut out: ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        let (values, columns, queue) = (rows.values(), rows.columns(), self.poseidon2.queue());
        // Places are 32 bits, and a gather counts a little beyond.
        if values.len() <= MAX_LEN {
            let places = indices.flat_map(|row| row * columns..(row + 1) * columns);
            let places: Vec<u32> = places.map(|place| place as u32).collect();
            return Ok(self.gather.gather(values, &queue.upload::<u32>(&places)?, out)?);
        }
        for (i, row) in indices.enumerate() {
            let target = out.view_mut(i * columns..(i + 1) * columns)?;
            queue.copy(values.view(row * columns..(row + 1) * columns)?, target)?;
        }
        Ok(())
    }

    /// Returns the kernels, for tools that compile them ahead.
    #[doc(hidden)]
    pub fn kernels(parameters: &Poseidon2Parameters<F>) -> Vec<KernelSpec> {
        let mut kernels = Poseidon2::kernels(parameters);
        kernels.extend(GatherScatter::<Mont<F>>::kernels());
        kernels
    }
}

impl<F: DevicePrimeField> MerkleTree<F> {
    /// Returns the dimensions of the matrices, in their order.
    pub fn dimensions(&self) -> &[Dimensions] {
        &self.dimensions
    }

    /// Returns log₂ of the number of leaves.
    pub fn log_height(&self) -> u32 {
        self.height().ilog2()
    }

    /// Returns the number of leaves.
    fn height(&self) -> usize {
        (self.nodes.len() / self.digest).div_ceil(2)
    }

    /// Returns the digests, layer by layer, from the leaves to the root.
    pub fn nodes(&self) -> View<'_, Mont<F>> {
        self.nodes.as_view()
    }
}

impl<F: DevicePrimeField> fmt::Debug for Merkle<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merkle").field("poseidon2", &self.poseidon2).finish_non_exhaustive()
    }
}

impl<F: DevicePrimeField> fmt::Debug for MerkleTree<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MerkleTree").field("dimensions", &self.dimensions).finish_non_exhaustive()
    }
}

/// Returns the number of nodes below a layer of a tree of `height` leaves. For adapters, exempt from semantic
/// versioning.
#[doc(hidden)]
pub fn layer_start(height: usize, layer: u32) -> usize {
    2 * height - ((2 * height) >> layer)
}

/// The dimensions of matrix number `index`, of a power of two rows.
fn dimensions_of<F: DevicePrimeField>(index: usize, rows: &Rows<'_, F>) -> Result<Dimensions> {
    let (len, columns) = (rows.values().len(), rows.columns());
    if columns == 0 || !len.is_multiple_of(columns) {
        return Err(Error::Columns { matrix: index, columns, elements: len });
    }
    let height = len / columns;
    match height.is_power_of_two() {
        true => Ok(Dimensions { height, columns }),
        false => Err(Error::Height { matrix: index, actual: height }),
    }
}
