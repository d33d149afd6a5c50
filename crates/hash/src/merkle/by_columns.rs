//! Trees over a matrix whose columns are computed one block after the other.

use std::fmt;

use evariste_backend::{Buffer, Element, Error as DeviceError, Secrecy};
use evariste_field::{DevicePrimeField, Mont};

use super::{Merkle, MerkleTree, Plan, dimensions_of, layers_of};
use crate::{
    dimensions::Dimensions,
    error::{Error, Result},
    poseidon2::{Poseidon2, Rows},
    tree_hash::TreeHash,
};

/// A tree over one matrix, which absorbs columns as they are computed: [`Merkle::by_columns`].
pub struct TreeByColumns<'a, F: DevicePrimeField> {
    merkle: &'a Merkle<F>,
    dimensions: Dimensions,
    /// A sponge for each row.
    states: Buffer<Mont<F>>,
    nodes: Buffer<Mont<F>>,
    absorbed: usize,
    /// Why the sponges hold nothing of use, if they do not.
    failure: Option<Error>,
}

impl<F: DevicePrimeField> Merkle<F> {
    /// Starts the tree over a matrix whose columns come one block after the other. It is the tree of
    /// [`commit`](Merkle::commit). A sponge for each row lies in device memory in between, beside what
    /// [`required_bytes`](Merkle::required_bytes) tells.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use evariste_backend::{Device, Secrecy};
    /// use evariste_field::{Mont, small::BabyBear};
    /// use evariste_hash::{Dimensions, Merkle, Poseidon2, Poseidon2Parameters, Rows};
    ///
    /// let device = Device::best()?;
    /// let merkle = Merkle::new(Poseidon2::new(&device, Poseidon2Parameters::<BabyBear>::plonky3(16)?)?);
    /// let matrix: Vec<BabyBear> = (0..80).map(BabyBear::from).collect();
    /// let matrix = device.upload::<Mont<BabyBear>>(&matrix)?;
    /// let matrix = Rows::new(&matrix, 10);
    /// let mut tree = merkle.by_columns(Dimensions { height: 8, columns: 10 }, Secrecy::Public)?;
    /// tree.absorb(matrix, 7)?;
    /// // Here the last three columns could be computed.
    /// tree.absorb(matrix, 3)?;
    /// assert_eq!(merkle.root(&tree.finish()?)?, merkle.root(&merkle.commit(&[matrix])?)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Error::Columns`] for a matrix without columns.
    /// - [`Error::Height`] for a height that is no power of two.
    /// - [`Error::Device`] for more elements than an address can tell apart, if there is no room, or if the device fails.
    pub fn by_columns(&self, dimensions: Dimensions, secrecy: Secrecy) -> Result<TreeByColumns<'_, F>> {
        let Dimensions { height, columns } = dimensions;
        let parameters = self.hash.parameters();
        // Of the matrix, of sponges, and of nodes over up to four children with what completes them.
        let widest = columns.max(parameters.width()).max(4 * parameters.digest());
        let (actual, expected) = (height as u128 * widest as u128, isize::MAX as u128 / Mont::<F>::BYTES as u128);
        if actual > expected {
            let (actual, expected) = (u64::try_from(actual).unwrap_or(u64::MAX), expected as u64);
            let device = self.queue().device().info().id;
            return Err(DeviceError::TooLarge { what: "tree", device, expected, actual }.into());
        }
        dimensions_of(0, height * columns, columns)?;
        let layers = layers_of(parameters, &[dimensions]);
        let plan =
            Plan { queue: self.queue(), layers: &layers, digest: parameters.digest(), dimensions: &[dimensions] };
        let nodes = plan.room(secrecy)?;
        let states = self.queue().device().alloc_with(height * parameters.width(), secrecy)?;
        Ok(TreeByColumns { merkle: self, dimensions, states, nodes, absorbed: 0, failure: None })
    }
}

impl<F: DevicePrimeField> TreeByColumns<'_, F> {
    /// Absorbs the next `count` columns of `matrix`, which has room for all of them. Later columns are not read. Returns
    /// when the work is queued.
    ///
    /// # Errors
    /// - [`Error::ColumnCount`] if fewer are missing.
    /// - [`Error::OtherMatrices`] for a matrix of other dimensions.
    /// - [`Error::Device`] if the matrix is on another device, is secret while the tree is public, or if the device
    ///   fails. All later calls return such a failure.
    pub fn absorb(&mut self, matrix: Rows<'_, F>, count: usize) -> Result<()> {
        let Self { merkle, dimensions, states, nodes, absorbed, failure } = self;
        let actual = dimensions_of(0, matrix.values().len(), matrix.columns())?;
        if actual != *dimensions {
            return Err(Error::OtherMatrices { expected: vec![*dimensions], actual: vec![actual] });
        }
        let missing = dimensions.columns - *absorbed;
        if count > missing {
            return Err(Error::ColumnCount { expected: missing, actual: count });
        }
        if count > 0 {
            let digests = nodes.view_mut(..dimensions.height * merkle.hash.parameters().digest())?;
            merkle.hash.expect_absorbable(matrix, states, &digests)?;
            if let Some(failure) = failure {
                return Err(failure.clone());
            }
            if let Err(error) = merkle.hash.absorb(matrix, *absorbed..*absorbed + count, states, digests) {
                return Err(failure.insert(error).clone());
            }
            *absorbed += count;
        }
        Ok(())
    }

    /// Computes the layers over the leaves. Returns when the work is queued.
    ///
    /// # Errors
    /// - [`Error::ColumnCount`] unless all columns are absorbed.
    /// - [`Error::Device`] if there is no room for scratch, or if the device fails.
    pub fn finish(self) -> Result<MerkleTree<F>> {
        let Self { merkle, dimensions, mut nodes, absorbed, states, failure } = self;
        if let Some(failure) = failure {
            return Err(failure);
        }
        if absorbed < dimensions.columns {
            return Err(Error::ColumnCount { expected: dimensions.columns - absorbed, actual: 0 });
        }
        drop(states);
        let hash: &Poseidon2<F> = &merkle.hash;
        let digest = hash.parameters().digest();
        let (layers, dimensions) = (layers_of(hash.parameters(), &[dimensions]), vec![dimensions]);
        let plan = Plan { queue: merkle.queue(), layers: &layers, digest, dimensions: &dimensions };
        plan.build_over_leaves(
            &mut nodes,
            &|_, _, _| unreachable!("the rows of the only matrix are the leaves"),
            &|children, count, out, stride| hash.tree_nodes(children, count, out, stride),
            Some(&|nodes, len, layers| hash.tree_layers(nodes, len, layers)),
        )?;
        Ok(MerkleTree { nodes, digest, layers, dimensions, field: std::marker::PhantomData })
    }
}

impl<F: DevicePrimeField> fmt::Debug for TreeByColumns<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dimensions, absorbed, .. } = self;
        f.debug_struct("TreeByColumns")
            .field("dimensions", dimensions)
            .field("absorbed", absorbed)
            .finish_non_exhaustive()
    }
}
