use std::{fmt, marker::PhantomData};

use evariste_backend::{Buffer, Element, Queue, Secrecy, View, ViewMut, author::KernelSpec};
use evariste_field::{DevicePrimeField, Mont};
use evariste_primitives::GatherScatter;

use self::verifier::Opening;
use crate::{
    dimensions::Dimensions,
    error::{Error, Result},
    layers::{Layer, cap_place, layers, siblings},
    poseidon2::{Poseidon2, Rows, elements_of},
    tree_hash::{TreeHash, TreeParameters, Wanted},
};

pub(crate) mod by_columns;
pub(crate) mod bytes;
pub(crate) mod verifier;

/// Merkle trees over the rows of matrices, hashed with Poseidon2 or, by [`SerializingHash`](crate::SerializingHash), with a
/// hash function of bytes.
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
/// children, or four ([`Arity`](crate::Arity), which the hash's parameters have). Where a layer has as many nodes as a
/// shorter matrix has rows, each node is compressed once more, with the digest of a row of these matrices. Plonky3 calls
/// this a mixed matrix commitment (`MerkleTreeMmcs`), and the roots are the same.
///
/// For 2^k rows of c elements it takes 2^k·⌈c / rate⌉ permutations for leaves and 2^k − 1 for nodes of two children, a
/// third of these for nodes of four. A launch hashes all rows, and another one each layer, or several layers of few nodes
/// with two children. The matrices are read once.
pub struct Merkle<F: DevicePrimeField, H: TreeHash<F> = Poseidon2<F>> {
    hash: H,
    rows: GatherScatter<Mont<F>>,
    digests: GatherScatter<H::Node>,
}

/// A Merkle tree on a device. Matrices are not part of it: they stay where they are.
pub struct MerkleTree<F, N: Element = Mont<F>> {
    /// The layers one after the other, from the leaves to the root.
    nodes: Buffer<N>,
    digest: usize,
    layers: Vec<Layer>,
    dimensions: Vec<Dimensions>,
    field: PhantomData<fn() -> F>,
}

impl<F: DevicePrimeField> Merkle<F> {
    /// Returns the permutation.
    pub fn poseidon2(&self) -> &Poseidon2<F> {
        &self.hash
    }

    /// Returns the bytes of device memory that a tree over such matrices takes, with what its computation needs beside
    /// the matrices. The parameters are those of any hash of trees.
    pub fn required_bytes<P: TreeParameters<F>>(parameters: &P, dimensions: &[Dimensions]) -> u64 {
        let layers = layers_of(parameters, dimensions);
        let digest = (parameters.digest_len() * P::Node::BYTES) as u64;
        let group_bytes = |nodes, count| parameters.group_bytes(nodes, count);
        tree_bytes(&layers, digest, dimensions, &group_bytes, &|rows, columns| parameters.row_bytes(rows, columns))
    }

    /// Returns the kernels, for tools that compile them ahead.
    #[doc(hidden)]
    pub fn kernels<P: TreeParameters<F>>(parameters: &P) -> Vec<KernelSpec> {
        let mut kernels = parameters.tree_kernels();
        kernels.extend(GatherScatter::<Mont<F>>::kernels());
        kernels
    }
}

impl<F: DevicePrimeField, H: TreeHash<F>> Merkle<F, H> {
    /// Makes trees with this hash, on its queue.
    pub fn new(hash: H) -> Self {
        let (rows, digests) = (GatherScatter::new(hash.tree_queue()), GatherScatter::new(hash.tree_queue()));
        Self { hash, rows, digests }
    }

    /// Returns the same for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { hash: self.hash.on_queue(queue), rows: self.rows.on(queue), digests: self.digests.on(queue) }
    }

    /// Returns the hash.
    pub fn hash(&self) -> &H {
        &self.hash
    }

    /// Compiles the kernels of [`commit`](Merkle::commit) side by side, so that no later call of it does. With wgpu,
    /// trees over matrices of several heights, and those with hash functions of bytes, compile a few once more at their
    /// first call: for views at odd starts.
    ///
    /// # Errors
    /// [`Error::Device`] if a kernel does not compile, or if the device fails.
    pub fn prepare(&self) -> Result<()> {
        self.hash.tree_prepare()
    }

    /// Builds the tree over matrices. Their heights are powers of two. Returns when the work is queued.
    ///
    /// # Errors
    /// - [`Error::NoMatrices`] if there are none.
    /// - [`Error::Columns`] for a matrix without columns, or with elements that are no whole rows.
    /// - [`Error::Height`] for a height that is no power of two.
    /// - [`Error::Device`] if a view is of another device, if there is no room for
    ///   [`required_bytes`](Merkle::required_bytes), or if the device fails.
    pub fn commit(&self, matrices: &[Rows<'_, F>]) -> Result<MerkleTree<F, H::Node>> {
        let dimensions =
            matrices.iter().enumerate().map(|(i, rows)| dimensions_of(i, rows.values().len(), rows.columns()));
        let dimensions = dimensions.collect::<Result<Vec<_>>>()?;
        if matrices.is_empty() {
            return Err(Error::NoMatrices);
        }
        let device = self.queue().device();
        for rows in matrices {
            device.expect_same("a matrix", rows.values().device())?;
        }
        let secrecy = Secrecy::of(matrices.iter().map(|rows| rows.values().secrecy()));
        let digest = self.hash.tree_parameters().digest_len();
        let layers = layers_of(self.hash.tree_parameters(), &dimensions);
        let plan = Plan { queue: self.queue(), layers: &layers, digest, dimensions: &dimensions };
        let rows = |height: usize, out: ViewMut<'_, H::Node>, stride: usize| {
            let of_height = matrices.iter().zip(&dimensions).filter(|(_, matrix)| matrix.height == height);
            let of_height: Vec<_> = of_height.map(|(rows, _)| *rows).collect();
            self.hash.tree_rows(&of_height, out, stride)
        };
        let nodes = plan.build(
            secrecy,
            &rows,
            &|children, count, out, stride| self.hash.tree_nodes(children, count, out, stride),
            Some(&|nodes, len, layers| self.hash.tree_layers(nodes, len, layers)),
        )?;
        Ok(MerkleTree { nodes, digest, layers, dimensions, field: PhantomData })
    }

    /// Reads the root: the digest of the whole tree. Waits for it.
    ///
    /// # Errors
    /// [`Error::Device`] if the tree is on another device, or if the device fails.
    pub fn root(&self, tree: &MerkleTree<F, H::Node>) -> Result<Vec<<H::Node as Element>::Host>> {
        self.cap(tree, 0)
    }

    /// Reads a cap: the digests of the layer `log_cap` layers from the root, one after the other, or the leaves if there
    /// are fewer layers. With two children a node, these are 2^`log_cap` digests. With four, they may end with zeros
    /// ([`Arity::Four`](crate::Arity::Four)). Waits for it.
    ///
    /// # Errors
    /// [`Error::Device`] if the tree is on another device, or if the device fails.
    pub fn cap(&self, tree: &MerkleTree<F, H::Node>, log_cap: u32) -> Result<Vec<<H::Node as Element>::Host>> {
        tree.read_cap(self.queue(), log_cap)
    }

    /// Opens rows: for each of `indices`, the rows of all matrices that belong to it, and the path to the cap `log_cap`
    /// layers from the root. An index is that of a row of the tallest matrices. A matrix of 2^k fewer rows has the row
    /// `index >> k`. `matrices` are those of the tree. All are read at once.
    ///
    /// # Errors
    /// - [`Error::OutOfRange`] for an index beyond the tallest matrices.
    /// - [`Error::OtherMatrices`] for matrices of other dimensions.
    /// - [`Error::Device`] if the tree or a view is on another device, if there is no room for what is read, or if the
    ///   device fails.
    pub fn open(
        &self,
        tree: &MerkleTree<F, H::Node>,
        matrices: &[Rows<'_, F>],
        indices: &[usize],
        log_cap: u32,
    ) -> Result<Vec<Opening<F, <H::Node as Element>::Host>>> {
        let dimensions =
            matrices.iter().enumerate().map(|(i, rows)| dimensions_of(i, rows.values().len(), rows.columns()));
        let dimensions = dimensions.collect::<Result<Vec<_>>>()?;
        if dimensions != tree.dimensions {
            return Err(Error::OtherMatrices { expected: tree.dimensions.clone(), actual: dimensions });
        }
        let device = self.queue().device();
        device.expect_same("a tree", tree.nodes.device())?;
        for rows in matrices {
            device.expect_same("a matrix", rows.values().device())?;
        }
        let (height, digest, count) = (tree.height(), tree.digest, indices.len());
        expect_indices(height, indices)?;
        let layers = &tree.layers[..cap_place(&tree.layers, log_cap as usize)];
        let shifted = |shift: u32| indices.iter().map(|index| index >> shift).collect();
        let heights = dimensions.iter().map(|matrix| (height / matrix.height).ilog2());
        let (rows, path) = self.hash.tree_opening(&Wanted {
            rows: &self.rows,
            digests: &self.digests,
            matrices: matrices.iter().copied().zip(heights.map(shifted)).collect(),
            nodes: tree.nodes.as_view(),
            path: indices.iter().flat_map(|index| siblings(layers, *index)).collect(),
        })?;

        let opening = |i: usize| {
            let mut start = 0;
            let row = |matrix: &Dimensions| {
                let place = start + i * matrix.columns;
                start += count * matrix.columns;
                rows[place..place + matrix.columns].to_vec()
            };
            let len = layers.iter().map(|layer| layer.children - 1).sum::<usize>() * digest;
            Opening { rows: dimensions.iter().map(row).collect(), path: path[i * len..(i + 1) * len].to_vec() }
        };
        Ok((0..count).map(opening).collect())
    }

    fn queue(&self) -> &Queue {
        self.hash.tree_queue()
    }
}

impl<F, N: Element> MerkleTree<F, N> {
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
        self.dimensions.iter().map(|matrix| matrix.height).max().unwrap_or(1)
    }

    /// Reads the digests of a layer.
    fn read_cap(&self, queue: &Queue, log_cap: u32) -> Result<Vec<N::Host>> {
        let Layer { start, digests, .. } = self.layers[cap_place(&self.layers, log_cap as usize)];
        Ok(queue.read(self.nodes.view(start * self.digest..(start + digests) * self.digest)?)?)
    }

    /// Returns the digests, layer by layer, from the leaves to the root, with the zeros that complete compressions.
    pub fn nodes(&self) -> View<'_, N> {
        self.nodes.as_view()
    }
}

impl<F: DevicePrimeField, H: TreeHash<F>> fmt::Debug for Merkle<F, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merkle").field("hash", &self.hash).finish_non_exhaustive()
    }
}

impl<F, N: Element> fmt::Debug for MerkleTree<F, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MerkleTree").field("dimensions", &self.dimensions).finish_non_exhaustive()
    }
}

/// The layers of a tree over such matrices.
pub(crate) fn layers_of<F: DevicePrimeField, P: TreeParameters<F>>(
    parameters: &P,
    dimensions: &[Dimensions],
) -> Vec<Layer> {
    layers(parameters.arity(), dimensions.iter().map(|matrix| matrix.height))
}

/// The bytes of a tree with digests of so many bytes, and of what nodes over so many children take beside it, and digests
/// of so many rows of matrices.
fn tree_bytes(
    layers: &[Layer],
    digest: u64,
    dimensions: &[Dimensions],
    group_bytes: &dyn Fn(usize, usize) -> u64,
    row_bytes: &dyn Fn(usize, &[usize]) -> u64,
) -> u64 {
    let columns = |height: usize| -> Vec<usize> {
        dimensions.iter().filter(|matrix| matrix.height == height).map(|matrix| matrix.columns).collect()
    };
    let scratch = layers.iter().enumerate().map(|(i, layer)| {
        let columns = columns(layer.nodes);
        let nodes = i.checked_sub(1).map_or(0, |below| group_bytes(layer.nodes, layers[below].children));
        if columns.is_empty() {
            return nodes;
        }
        let pairs = (layer.nodes as u64).saturating_mul(2).saturating_mul(digest);
        let pairs = pairs.saturating_add(group_bytes(layer.nodes, 2));
        let injected = if i == 0 { 0 } else { pairs };
        nodes.saturating_add(injected).saturating_add(row_bytes(layer.nodes, &columns))
    });
    let digests = layers.last().map_or(0, |root| root.start.saturating_add(1)) as u64;
    digests.saturating_mul(digest).saturating_add(scratch.max().unwrap_or(0))
}

/// A tree that is to be built.
struct Plan<'a> {
    queue: &'a Queue,
    layers: &'a [Layer],
    digest: usize,
    dimensions: &'a [Dimensions],
}

/// Writes the digests of the rows of all matrices of a height, so far apart.
type HashRows<'a, N> = &'a dyn Fn(usize, ViewMut<'_, N>, usize) -> Result<()>;

/// Writes the nodes over each so many neighbours, so far apart.
type HashNodes<'a, N> = &'a dyn Fn(View<'_, N>, usize, ViewMut<'_, N>, usize) -> Result<()>;

/// Writes some of so many layers over two children, with so many nodes in the first: [`TreeHash::tree_layers`].
type HashLayers<'a, N> = &'a dyn Fn(ViewMut<'_, N>, usize, usize) -> Result<usize>;

impl Plan<'_> {
    /// Computes all layers.
    fn build<N: Element>(
        &self,
        secrecy: Secrecy,
        hash_rows: HashRows<'_, N>,
        hash_nodes: HashNodes<'_, N>,
        hash_layers: Option<HashLayers<'_, N>>,
    ) -> Result<Buffer<N>> {
        let mut nodes = self.room(secrecy)?;
        let leaves = self.layers[0].nodes;
        hash_rows(leaves, nodes.view_mut(..leaves * self.digest)?, 1)?;
        self.build_over_leaves(&mut nodes, hash_rows, hash_nodes, hash_layers)?;
        Ok(nodes)
    }

    /// Memory for all layers, with the zeros that complete compressions.
    fn room<N: Element>(&self, secrecy: Secrecy) -> Result<Buffer<N>> {
        let Self { queue, layers, digest, .. } = *self;
        let digests = layers.last().map_or(0, |root| root.start + 1);
        let mut nodes = queue.device().alloc_with::<N>(digests * digest, secrecy)?;
        for layer in layers.iter().filter(|layer| layer.digests > layer.nodes) {
            let [from, to] = [layer.nodes, layer.digests].map(|end| (layer.start + end) * digest);
            queue.clear(nodes.view_mut(from..to)?)?;
        }
        Ok(nodes)
    }

    /// Computes the layers over the leaves.
    fn build_over_leaves<N: Element>(
        &self,
        nodes: &mut Buffer<N>,
        hash_rows: HashRows<'_, N>,
        hash_nodes: HashNodes<'_, N>,
        hash_layers: Option<HashLayers<'_, N>>,
    ) -> Result<()> {
        let Self { queue, layers, digest, dimensions } = *self;
        let (device, secrecy) = (queue.device(), nodes.secrecy());
        let is_plain = |next: &Layer| dimensions.iter().all(|matrix| matrix.height != next.nodes);
        let mut i = 0;
        while let [layer, next, ..] = &layers[i..] {
            // Layers over two children each that lie one after the other.
            let alike = layers[i..]
                .iter()
                .zip(&layers[i + 1..])
                .take_while(|(layer, next)| layer.children == 2 && layer.digests == layer.nodes && is_plain(next));
            if let (Some(hash_layers), alike @ 1..) = (hash_layers, alike.count()) {
                let done = hash_layers(nodes.view_mut(layer.start * digest..)?, next.nodes, alike)?;
                i += done;
                if done > 0 {
                    continue;
                }
            }
            i += 1;
            let (before, after) = nodes.as_view_mut().split_at(next.start * digest)?;
            let children = before.view(layer.start * digest..)?;
            let parents = after.into_part(..next.nodes * digest)?;
            if is_plain(next) {
                hash_nodes(children, layer.children, parents, 1)?;
                continue;
            }
            // Each node beside the digest of its row.
            let mut pairs = device.alloc_with::<N>(2 * next.nodes * digest, secrecy)?;
            let end = elements_of(next.nodes, digest, 2);
            hash_nodes(children, layer.children, pairs.view_mut(..end)?, 2)?;
            hash_rows(next.nodes, pairs.view_mut(digest..digest + end)?, 2)?;
            hash_nodes(pairs.as_view(), 2, parents, 1)?;
        }
        Ok(())
    }
}

fn expect_indices(height: usize, indices: &[usize]) -> Result<()> {
    match indices.iter().copied().find(|index| *index >= height) {
        Some(index) => Err(Error::OutOfRange { height, index }),
        None => Ok(()),
    }
}

/// The dimensions of matrix number `index`, of a power of two rows.
fn dimensions_of(index: usize, len: usize, columns: usize) -> Result<Dimensions> {
    if columns == 0 || !len.is_multiple_of(columns) {
        return Err(Error::Columns { matrix: index, columns, elements: len });
    }
    let height = len / columns;
    match height.is_power_of_two() {
        true => Ok(Dimensions { height, columns }),
        false => Err(Error::Height { matrix: index, actual: height }),
    }
}
