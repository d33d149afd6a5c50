//! Where the digests of a tree lie.

use std::iter;

/// How many children the nodes of a tree have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arity {
    /// Two.
    #[default]
    Two,
    /// Four, and two where a shorter matrix has half the rows of a layer. A compression takes four digests all the same:
    /// zeros stand for those that are not there. Plonky3's `MerkleTreeMmcs` of `N` = 4 is such a tree.
    Four,
}

impl Arity {
    /// Returns the number of digests that a compression takes.
    pub fn children(self) -> usize {
        match self {
            Arity::Two => 2,
            Arity::Four => 4,
        }
    }
}

/// A layer of a tree. For adapters, exempt from semantic versioning.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The digests of all layers below it.
    pub start: usize,
    /// Its nodes.
    pub nodes: usize,
    /// Its digests: those of its nodes, and zeros up to a whole compression.
    pub digests: usize,
    /// How many of its digests have one parent. The root has none, and 1 here.
    pub children: usize,
}

/// The layers of a tree over matrices of these heights, from the leaves to the root. Heights are powers of two. For
/// adapters, exempt from semantic versioning.
#[doc(hidden)]
pub fn layers(arity: Arity, heights: impl Iterator<Item = usize> + Clone) -> Vec<Layer> {
    let all = arity.children();
    let (mut start, mut nodes) = (0usize, heights.clone().max().unwrap_or(1));
    let mut layers = Vec::new();
    while nodes > 1 {
        let digests = nodes.max(all);
        let is_halved = nodes >= all && heights.clone().any(|height| height == nodes / 2);
        let children = if is_halved { 2 } else { all };
        layers.push(Layer { start, nodes, digests, children });
        start = start.saturating_add(digests);
        nodes = digests / children;
    }
    layers.push(Layer { start, nodes: 1, digests: 1, children: 1 });
    layers
}

/// The numbers of the digests that lead from a leaf through these layers: those which have the same parent as the node.
/// For adapters, exempt from semantic versioning.
#[doc(hidden)]
pub fn siblings(layers: &[Layer], leaf: usize) -> impl Iterator<Item = usize> {
    let mut layers = layers.iter();
    let mut node = leaf;
    iter::from_fn(move || {
        let layer = layers.next()?;
        let (own, first) = (node, node - node % layer.children);
        node /= layer.children;
        let group = first..first + layer.children;
        Some(group.filter(move |sibling| *sibling != own).map(|sibling| layer.start + sibling))
    })
    .flatten()
}

/// The place of the layer that a cap consists of, this many layers from the root, or the leaves if there are fewer. For
/// adapters, exempt from semantic versioning.
#[doc(hidden)]
pub fn cap_place(layers: &[Layer], log_cap: usize) -> usize {
    layers.len().saturating_sub(1).saturating_sub(log_cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Digests and children of each layer.
    fn shape(arity: Arity, heights: &[usize]) -> Vec<(usize, usize)> {
        layers(arity, heights.iter().copied()).iter().map(|layer| (layer.digests, layer.children)).collect()
    }

    #[test]
    fn layers_of_four_are_halved_where_a_matrix_comes_in() {
        assert_eq!(shape(Arity::Two, &[8, 2]), [(8, 2), (4, 2), (2, 2), (1, 1)]);
        assert_eq!(shape(Arity::Four, &[1]), [(1, 1)]);
        assert_eq!(shape(Arity::Four, &[16]), [(16, 4), (4, 4), (1, 1)]);
        assert_eq!(shape(Arity::Four, &[8]), [(8, 4), (4, 4), (1, 1)]);
        assert_eq!(shape(Arity::Four, &[16, 8, 1]), [(16, 2), (8, 4), (4, 4), (1, 1)]);
        assert_eq!(shape(Arity::Four, &[4, 2]), [(4, 2), (4, 4), (1, 1)]);
        let of_eight = layers(Arity::Four, [8].into_iter());
        assert_eq!(siblings(&of_eight[..2], 5).collect::<Vec<_>>(), [4, 6, 7, 8, 10, 11]);
        assert_eq!(of_eight[1], Layer { start: 8, nodes: 2, digests: 4, children: 4 });
    }
}
