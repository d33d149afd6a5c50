//! What opens a tree, and its verification on the host.

use evariste_backend::Element;
use evariste_field::DevicePrimeField;

use crate::{
    dimensions::Dimensions,
    error::{Error, Result},
    layers::{Arity, cap_place, layers},
    merkle::layers_of,
    tree_hash::TreeParameters,
};

/// Opened rows, with the digests that lead from them to the cap.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an opening proves nothing until it is verified"]
pub struct Opening<F, D = F> {
    /// A row of each matrix, in their order.
    pub rows: Vec<Vec<F>>,
    /// The siblings of the nodes from the leaf to the cap, one digest after the other: one or three of each layer.
    pub path: Vec<D>,
}

/// Returns the elements of the cap `log_cap` layers from the root of a tree over such matrices ([`Merkle::cap`]).
///
/// [`Merkle::cap`]: crate::Merkle::cap
pub fn cap_len<F: DevicePrimeField, P: TreeParameters<F>>(
    parameters: &P,
    dimensions: &[Dimensions],
    log_cap: u32,
) -> usize {
    let layers = layers_of(parameters, dimensions);
    layers[cap_place(&layers, log_cap as usize)].digests * parameters.digest_len()
}

/// Verifies on the host that an opening of row `index` leads to `cap`, the digests of a layer one after the other. The
/// root alone is such a cap. The parameters are those of the tree's hash:
/// [`Poseidon2Parameters`](crate::Poseidon2Parameters) or [`Serialization`](crate::Serialization). The dimensions are those
/// of the matrices that the cap commits to, in their order: take them from where the cap comes from, not from the opening.
///
/// # Errors
/// - [`Error::NoMatrices`] without matrices.
/// - [`Error::Height`] for a height that is no power of two.
/// - [`Error::OutOfRange`] for an index beyond the tallest matrices.
/// - [`Error::Opening`] if the cap, the rows or the path have a wrong length. A cap has at most as many digests as the
///   shortest matrix has rows: above it, a tree binds nothing that an opening has.
/// - [`Error::OtherRoot`] if the opening does not lead to the cap.
pub fn verify<F: DevicePrimeField, P: TreeParameters<F>>(
    parameters: &P,
    cap: &[<P::Node as Element>::Host],
    dimensions: &[Dimensions],
    index: usize,
    opening: &Opening<F, <P::Node as Element>::Host>,
) -> Result<()> {
    let hash = HostHash {
        arity: parameters.arity(),
        digest: parameters.digest_len(),
        row: &|row| parameters.hash_row(row),
        compress: &|children| parameters.compress(children),
    };
    hash.verify(cap, dimensions, index, opening)
}

/// What the host verifies openings with.
pub(super) struct HostHash<'a, T, D> {
    pub(super) arity: Arity,
    /// Elements of a digest.
    pub(super) digest: usize,
    pub(super) row: &'a dyn Fn(&[T]) -> Vec<D>,
    pub(super) compress: &'a dyn Fn(&[D]) -> Vec<D>,
}

impl<T: Clone, D: Clone + PartialEq> HostHash<'_, T, D> {
    /// [`verify`].
    pub(super) fn verify(
        &self,
        cap: &[D],
        dimensions: &[Dimensions],
        index: usize,
        opening: &Opening<T, D>,
    ) -> Result<()> {
        let height = dimensions.iter().map(|matrix| matrix.height).max().ok_or(Error::NoMatrices)?;
        if let Some(matrix) = dimensions.iter().position(|matrix| !matrix.height.is_power_of_two()) {
            return Err(Error::Height { matrix, actual: dimensions[matrix].height });
        }
        if index >= height {
            return Err(Error::OutOfRange { height, index });
        }
        let Self { arity, digest, row: hash_row, compress } = *self;
        let expect = |what, expected: usize, actual: usize| match expected == actual {
            true => Ok(()),
            false => Err(Error::Opening { what, expected, actual }),
        };
        let layers = layers(arity, dimensions.iter().map(|matrix| matrix.height));
        // Matrices of fewer rows than a cap has nodes come into the tree above it, so that nothing would bind their rows.
        let lowest = dimensions.iter().map(|matrix| matrix.height).min().unwrap_or(height);
        let is_binding = |place: &usize| layers[*place].nodes <= lowest;
        let holds_cap = |place: &usize| layers[*place].digests >= cap.len() / digest;
        let binding = (0..layers.len()).rev().take_while(is_binding);
        let place = binding.clone().find(holds_cap).or(binding.last()).unwrap_or(0);
        expect("the cap", layers[place].digests * digest, cap.len())?;
        expect("the opened rows", dimensions.len(), opening.rows.len())?;
        for (matrix, row) in dimensions.iter().zip(&opening.rows) {
            expect("an opened row", matrix.columns, row.len())?;
        }
        let below = &layers[..place];
        expect("the path", below.iter().map(|layer| layer.children - 1).sum::<usize>() * digest, opening.path.len())?;

        // The digest of the rows of the matrices of a height.
        let rows_of = |height: usize| {
            let rows = dimensions.iter().zip(&opening.rows).filter(|(matrix, _)| matrix.height == height);
            let rows: Vec<&[T]> = rows.map(|(_, row)| &row[..]).collect();
            (!rows.is_empty()).then(|| hash_row(&rows.concat()))
        };
        let (mut node, mut place, mut path) = (rows_of(height).unwrap_or_default(), index, &opening.path[..]);
        for (layer, next) in below.iter().zip(&layers[1..]) {
            let (siblings, others) = path.split_at((layer.children - 1) * digest);
            let (left, right) = siblings.split_at(place % layer.children * digest);
            node = compress(&[left, &node, right].concat());
            if let Some(rows) = rows_of(next.nodes) {
                node = compress(&[node, rows].concat());
            }
            (place, path) = (place / layer.children, others);
        }
        match cap[place * digest..][..digest] == node {
            true => Ok(()),
            false => Err(Error::OtherRoot),
        }
    }
}
