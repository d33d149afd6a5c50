//! What opens a tree, and its verification on the host.

use evariste_backend::Element;
use evariste_field::DevicePrimeField;

use crate::{
    dimensions::Dimensions,
    error::{Error, Result},
    tree_hash::TreeParameters,
};

/// Opened rows, with the digests that lead from them to the cap.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "an opening proves nothing until it is verified"]
pub struct Opening<F, D = F> {
    /// A row of each matrix, in their order.
    pub rows: Vec<Vec<F>>,
    /// The siblings of the nodes from the leaf to the cap, one digest after the other.
    pub path: Vec<D>,
}

/// Verifies on the host that an opening of row `index` leads to `cap`, the digests of a layer one after the other. The
/// root alone is such a cap. The parameters are those of the tree's hash:
/// [`Poseidon2Parameters`](crate::Poseidon2Parameters) or [`Serialization`](crate::Serialization). The dimensions are those of the matrices that the cap commits to, in their order: take
/// them from where the cap comes from, not from the opening.
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
    let height = dimensions.iter().map(|matrix| matrix.height).max().ok_or(Error::NoMatrices)?;
    if let Some(matrix) = dimensions.iter().position(|matrix| !matrix.height.is_power_of_two()) {
        return Err(Error::Height { matrix, actual: dimensions[matrix].height });
    }
    if index >= height {
        return Err(Error::OutOfRange { height, index });
    }
    let digest = parameters.digest_len();
    let expect = |what, expected: usize, actual: usize| match expected == actual {
        true => Ok(()),
        false => Err(Error::Opening { what, expected, actual }),
    };
    let roots = cap.len() / digest;
    // Matrices of fewer rows than a cap has digests come into the tree above it, so that nothing would bind their rows.
    let lowest = dimensions.iter().map(|matrix| matrix.height).min().unwrap_or(height);
    expect("the cap", roots.next_power_of_two().clamp(1, lowest) * digest, cap.len())?;
    expect("the opened rows", dimensions.len(), opening.rows.len())?;
    for (matrix, row) in dimensions.iter().zip(&opening.rows) {
        expect("an opened row", matrix.columns, row.len())?;
    }
    let layers = (height / roots).ilog2();
    expect("the path", layers as usize * digest, opening.path.len())?;

    // The digest of the rows of the matrices of a height.
    let rows_of = |height: usize| {
        let rows = dimensions.iter().zip(&opening.rows).filter(|(matrix, _)| matrix.height == height);
        let rows: Vec<&[F]> = rows.map(|(_, row)| &row[..]).collect();
        (!rows.is_empty()).then(|| parameters.hash_row(&rows.concat()))
    };
    let mut node = rows_of(height).unwrap_or_default();
    for (layer, sibling) in opening.path.chunks_exact(digest).enumerate() {
        node = match index >> layer & 1 {
            0 => parameters.compress_pair([&node, sibling]),
            _ => parameters.compress_pair([sibling, &node]),
        };
        if let Some(rows) = rows_of(height >> (layer + 1)) {
            node = parameters.compress_pair([&node, &rows]);
        }
    }
    match cap[(index >> layers) * digest..][..digest] == node {
        true => Ok(()),
        false => Err(Error::OtherRoot),
    }
}
