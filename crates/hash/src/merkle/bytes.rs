//! Trees over rows of bytes.

use std::{fmt, marker::PhantomData};

use evariste_backend::{Queue, Secrecy, View, ViewMut, author::KernelSpec};
use evariste_primitives::GatherScatter;

use super::{
    MerkleTree, Plan, dimensions_of, expect_indices, tree_bytes,
    verifier::{HostHash, Opening},
};
use crate::{
    bytes::{ByteHash, function::HashFunction},
    dimensions::Dimensions,
    error::{Error, Result},
    layers::{Arity, cap_place, layers, siblings},
    serialization::{Form, Serialization, SerializingHash},
    tree_hash::gather,
};

#[cfg(test)]
mod tests;

/// A digest.
type Digest = [u8; 32];

/// A matrix of bytes on a device, row by row.
#[derive(Clone, Copy, Debug)]
pub struct ByteRows<'a> {
    values: View<'a, u8>,
    columns: usize,
}

impl<'a> ByteRows<'a> {
    /// A matrix of rows of `columns` bytes.
    pub fn new(values: impl Into<View<'a, u8>>, columns: usize) -> Self {
        Self { values: values.into(), columns }
    }

    /// Returns the bytes, row by row.
    pub fn values(&self) -> View<'a, u8> {
        self.values
    }

    /// Returns the number of bytes of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }
}

/// Merkle trees over rows of bytes, by a hash function of bytes: [`Merkle`](crate::Merkle) for what is no field.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use evariste_backend::Device;
/// use evariste_hash::{Arity, ByteMerkle, ByteRows, HashFunction, verify_bytes};
///
/// let device = Device::best()?;
/// let merkle = ByteMerkle::new(&device, HashFunction::Keccak256, Arity::Two)?;
/// // 8 rows of 45 bytes.
/// let matrix = device.upload::<u8>(&[7; 360])?;
/// let matrices = [ByteRows::new(&matrix, 45)];
/// let tree = merkle.commit(&matrices)?;
/// let root = merkle.root(&tree)?;
/// let openings = merkle.open(&tree, &matrices, &[6, 1], 0)?;
/// verify_bytes(HashFunction::Keccak256, Arity::Two, &root, tree.dimensions(), 6, &openings[0])?;
/// # Ok(())
/// # }
/// ```
///
/// A leaf is the digest of a row, where it lies. The matrices have different heights: powers of two. Nodes are those of
/// [`Merkle`](crate::Merkle).
#[derive(Clone)]
pub struct ByteMerkle {
    hash: SerializingHash<u8>,
    digests: GatherScatter<Digest>,
}

/// What compresses digests. The form of elements does not matter.
fn serialization(function: HashFunction, arity: Arity) -> Serialization {
    Serialization { function, form: Form::Montgomery, arity }
}

impl ByteMerkle {
    /// Makes trees on a queue (`&device` is its default one). Kernels are compiled at their first use, or by
    /// [`ByteMerkle::prepare`].
    ///
    /// # Errors
    /// [`Error::Device`] if there is no memory, or if the device fails.
    pub fn new(queue: impl Into<Queue>, function: HashFunction, arity: Arity) -> Result<Self> {
        let hash = SerializingHash::new(queue, serialization(function, arity))?;
        let digests = GatherScatter::new(hash.hash().queue());
        Ok(Self { hash, digests })
    }

    /// Returns the same for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { hash: self.hash.on(queue), digests: self.digests.on(queue) }
    }

    /// Returns the hash.
    pub fn hash(&self) -> &ByteHash {
        self.hash.hash()
    }

    /// Returns the number of children of a node.
    pub fn arity(&self) -> Arity {
        self.hash.serialization().arity
    }

    /// Compiles the kernels of [`ByteMerkle::commit`], so that no later call of it does.
    ///
    /// # Errors
    /// [`Error::Device`] if a kernel does not compile, or if the device fails.
    pub fn prepare(&self) -> Result<()> {
        self.hash.prepare_digests()
    }

    /// Returns the kernels, for tools that compile them ahead.
    #[doc(hidden)]
    pub fn kernels(function: HashFunction, arity: Arity) -> Vec<KernelSpec> {
        let mut kernels = serialization(function, arity).digest_kernels();
        kernels.extend(GatherScatter::<Digest>::kernels());
        kernels
    }

    /// Returns the bytes of device memory that a tree over such matrices takes, with what its computation needs beside
    /// the matrices.
    pub fn required_bytes(function: HashFunction, arity: Arity, dimensions: &[Dimensions]) -> u64 {
        let serialization = serialization(function, arity);
        let layers = layers(arity, dimensions.iter().map(|matrix| matrix.height));
        let row_bytes = |rows, columns: &[usize]| {
            function.required_bytes(rows, columns.iter().fold(0, |all, columns| all.saturating_add(*columns)))
        };
        tree_bytes(&layers, 32, dimensions, &|nodes, count| serialization.bytes_of_nodes(nodes, count), &row_bytes)
    }

    /// Builds the tree over matrices. Their heights are powers of two, each another one. Returns when the work is queued.
    ///
    /// # Errors
    /// - [`Error::NoMatrices`] if there are none.
    /// - [`Error::Columns`] for a matrix without columns, or with bytes that are no whole rows.
    /// - [`Error::Height`] for a height that is no power of two.
    /// - [`Error::SeveralMatrices`] for matrices of one height.
    /// - [`Error::Device`] if a view is of another device, if there is no room for
    ///   [`required_bytes`](ByteMerkle::required_bytes), or if the device fails.
    pub fn commit(&self, matrices: &[ByteRows<'_>]) -> Result<MerkleTree<u8, Digest>> {
        let dimensions = self.expect(matrices)?;
        if matrices.is_empty() {
            return Err(Error::NoMatrices);
        }
        for (i, Dimensions { height, .. }) in dimensions.iter().copied().enumerate() {
            if dimensions[..i].iter().any(|matrix| matrix.height == height) {
                return Err(Error::SeveralMatrices { height });
            }
        }
        let layers = layers(self.arity(), dimensions.iter().map(|matrix| matrix.height));
        let plan = Plan { queue: self.hash().queue(), layers: &layers, digest: 1, dimensions: &dimensions };
        let rows = |height: usize, mut out: ViewMut<'_, Digest>, stride: usize| {
            let of_height = matrices.iter().zip(&dimensions).filter(|(_, matrix)| matrix.height == height);
            for (rows, _) in of_height {
                self.hash().hash_apart("a matrix", rows.values, rows.columns, height, out.reborrow(), stride)?;
            }
            Ok(())
        };
        let secrecy = Secrecy::of(matrices.iter().map(|rows| rows.values.secrecy()));
        let nodes = plan.build(
            secrecy,
            &rows,
            &|children, count, out, stride| self.hash.compress_apart(children, count, out, stride),
            None,
        )?;
        Ok(MerkleTree { nodes, digest: 1, layers, dimensions, field: PhantomData })
    }

    /// Reads the root: the digest of the whole tree. Waits for it.
    ///
    /// # Errors
    /// [`Error::Device`] if the tree is on another device, or if the device fails.
    pub fn root(&self, tree: &MerkleTree<u8, Digest>) -> Result<Vec<Digest>> {
        self.cap(tree, 0)
    }

    /// Reads a cap, as [`Merkle::cap`](crate::Merkle::cap) does. Waits for it.
    ///
    /// # Errors
    /// [`Error::Device`] if the tree is on another device, or if the device fails.
    pub fn cap(&self, tree: &MerkleTree<u8, Digest>, log_cap: u32) -> Result<Vec<Digest>> {
        tree.read_cap(self.hash().queue(), log_cap)
    }

    /// Opens rows, as [`Merkle::open`](crate::Merkle::open) does. Each row is read by a copy of its own, all of them
    /// queued at once.
    ///
    /// # Errors
    /// - [`Error::OutOfRange`] for an index beyond the tallest matrix.
    /// - [`Error::OtherMatrices`] for matrices of other dimensions.
    /// - [`Error::Device`] if the tree or a view is on another device, if there is no room for what is read, or if the
    ///   device fails.
    pub fn open(
        &self,
        tree: &MerkleTree<u8, Digest>,
        matrices: &[ByteRows<'_>],
        indices: &[usize],
        log_cap: u32,
    ) -> Result<Vec<Opening<u8, Digest>>> {
        let dimensions = self.expect(matrices)?;
        if dimensions != tree.dimensions {
            return Err(Error::OtherMatrices { expected: tree.dimensions.clone(), actual: dimensions });
        }
        let queue = self.hash().queue();
        queue.device().expect_same("a tree", tree.nodes.device())?;
        let height = tree.height();
        expect_indices(height, indices)?;
        let below = &tree.layers[..cap_place(&tree.layers, log_cap as usize)];
        let path: Vec<usize> = indices.iter().flat_map(|index| siblings(below, *index)).collect();
        let mut digests = queue.device().alloc_with::<Digest>(path.len(), tree.nodes.secrecy())?;
        gather(&self.digests, queue, tree.nodes.as_view(), 1, &path, digests.as_view_mut())?;
        let mut rows = Vec::with_capacity(indices.len() * matrices.len());
        for index in indices {
            for (ByteRows { values, columns }, matrix) in matrices.iter().zip(&dimensions) {
                let row = index >> (height / matrix.height).ilog2();
                rows.push(queue.download(values.view(row * columns..(row + 1) * columns)?)?);
            }
        }
        let digests = queue.download(&digests)?.wait()?;
        let mut rows = rows.into_iter();
        let len = digests.len() / indices.len().max(1);
        let opening = |i: usize| {
            let rows = rows.by_ref().take(matrices.len()).map(|row| row.wait());
            Ok(Opening { rows: rows.collect::<Result<_, _>>()?, path: digests[i * len..(i + 1) * len].to_vec() })
        };
        (0..indices.len()).map(opening).collect()
    }

    /// The dimensions of matrices, which are on the device.
    fn expect(&self, matrices: &[ByteRows<'_>]) -> Result<Vec<Dimensions>> {
        let dimensions = matrices.iter().enumerate().map(|(i, rows)| dimensions_of(i, rows.values.len(), rows.columns));
        let dimensions = dimensions.collect::<Result<Vec<_>>>()?;
        for rows in matrices {
            self.hash().queue().device().expect_same("a matrix", rows.values.device())?;
        }
        Ok(dimensions)
    }
}

/// Verifies on the host that an opening of rows of bytes leads to `cap`, as [`verify`](crate::verify) does.
///
/// # Errors
/// Those of [`verify`](crate::verify).
pub fn verify_bytes(
    function: HashFunction,
    arity: Arity,
    cap: &[Digest],
    dimensions: &[Dimensions],
    index: usize,
    opening: &Opening<u8, Digest>,
) -> Result<()> {
    let serialization = serialization(function, arity);
    let row = |row: &[u8]| vec![function.digest(row)];
    let compress = |children: &[Digest]| serialization.compressed(children);
    HostHash { arity, digest: 1, row: &row, compress: &compress }.verify(cap, dimensions, index, opening)
}

impl fmt::Debug for ByteMerkle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteMerkle").field("hash", self.hash()).field("arity", &self.arity()).finish_non_exhaustive()
    }
}
