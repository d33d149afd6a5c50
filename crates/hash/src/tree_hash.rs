//! The hashes that trees are built with.

use std::fmt;

use evariste_backend::{Element, Queue, Secrecy, View, ViewMut, author::KernelSpec};
use evariste_field::{DevicePrimeField, Mont};
use evariste_primitives::{GatherScatter, MAX_LEN};

use crate::{
    error::Result,
    layers::Arity,
    parameters::Poseidon2Parameters,
    poseidon2::{Poseidon2, Rows},
    reference,
};

/// A hash of rows of elements of `F`, and of two or four digests, on a device: [`Poseidon2`], or
/// [`SerializingHash`](crate::SerializingHash) for hash functions of bytes. There are no others.
pub trait TreeHash<F: DevicePrimeField>: Clone + fmt::Debug + sealed::Sealed {
    /// Digests consist of these.
    type Node: Element<Host: PartialEq + fmt::Debug>;

    /// What the host computes the same with.
    type Parameters: TreeParameters<F, Node = Self::Node>;

    /// Returns the parameters.
    fn tree_parameters(&self) -> &Self::Parameters;

    /// Returns the queue.
    fn tree_queue(&self) -> &Queue;

    /// Returns the same for work on `queue`.
    #[must_use]
    fn on_queue(&self, queue: &Queue) -> Self;

    /// Compiles the kernels of the digests, and makes what launches within a tree need.
    #[doc(hidden)]
    fn tree_prepare(&self) -> Result<()>;

    /// Writes the digests of the rows of several matrices, one after the other, `stride` apart.
    #[doc(hidden)]
    fn tree_rows(&self, matrices: &[Rows<'_, F>], out: ViewMut<'_, Self::Node>, stride: usize) -> Result<()>;

    /// Writes the nodes over each `count` neighbours, `stride` apart.
    #[doc(hidden)]
    fn tree_nodes(
        &self,
        children: View<'_, Self::Node>,
        count: usize,
        out: ViewMut<'_, Self::Node>,
        stride: usize,
    ) -> Result<()>;

    /// Writes some of `layers` layers of nodes over two children: `nodes` starts with `2·len` children, then come `len`
    /// nodes over them, half as many over these, and so on. Returns how many layers it wrote: none unless a hash has a way
    /// of its own.
    #[doc(hidden)]
    fn tree_layers(&self, nodes: ViewMut<'_, Self::Node>, len: usize, layers: usize) -> Result<usize> {
        let _ = (nodes, len, layers);
        Ok(0)
    }

    /// Reads rows of each matrix, and then digests.
    #[doc(hidden)]
    fn tree_opening(&self, wanted: &Wanted<'_, F, Self::Node>) -> Result<Opened<F, Self::Node>>;
}

/// What the host computes a hash of rows and digests with: [`Poseidon2Parameters`], or
/// [`Serialization`](crate::Serialization). There are no others.
pub trait TreeParameters<F: DevicePrimeField>: sealed::Sealed {
    /// Digests consist of these.
    type Node: Element<Host: PartialEq + fmt::Debug>;

    /// Returns the number of elements of a digest.
    fn digest_len(&self) -> usize;

    /// Hashes a row.
    fn hash_row(&self, row: &[F]) -> Vec<<Self::Node as Element>::Host>;

    /// Returns the children of a node.
    fn arity(&self) -> Arity;

    /// Compresses digests, one after the other: two, or up to four.
    fn compress(&self, children: &[<Self::Node as Element>::Host]) -> Vec<<Self::Node as Element>::Host>;

    /// Returns the bytes of memory that hashes of rows take beside their arguments, for matrices of so many columns.
    #[doc(hidden)]
    fn row_bytes(&self, rows: usize, columns: &[usize]) -> u64;

    /// Returns the bytes of memory that `nodes` nodes over `count` children each take beside these.
    #[doc(hidden)]
    fn group_bytes(&self, nodes: usize, count: usize) -> u64;

    /// Returns the kernels.
    #[doc(hidden)]
    fn tree_kernels(&self) -> Vec<KernelSpec>;
}

/// Rows of matrices and digests that are read at once.
#[derive(Debug)]
pub struct Wanted<'a, F: DevicePrimeField, N: Element> {
    pub(crate) rows: &'a GatherScatter<Mont<F>>,
    pub(crate) digests: &'a GatherScatter<N>,
    /// Matrices, and the numbers of their rows.
    pub(crate) matrices: Vec<(Rows<'a, F>, Vec<usize>)>,
    pub(crate) nodes: View<'a, N>,
    /// The numbers of digests.
    pub(crate) path: Vec<usize>,
}

/// Elements of rows and of digests.
pub(crate) type Opened<F, N> = (Vec<F>, Vec<<N as Element>::Host>);

pub(crate) mod sealed {
    pub trait Sealed {}
}

impl<F: DevicePrimeField> sealed::Sealed for Poseidon2<F> {}

impl<F> sealed::Sealed for Poseidon2Parameters<F> {}

impl<F: DevicePrimeField> TreeHash<F> for Poseidon2<F> {
    type Node = Mont<F>;
    type Parameters = Poseidon2Parameters<F>;

    fn tree_parameters(&self) -> &Poseidon2Parameters<F> {
        self.parameters()
    }

    fn tree_queue(&self) -> &Queue {
        self.queue()
    }

    fn on_queue(&self, queue: &Queue) -> Self {
        self.on(queue)
    }

    fn tree_prepare(&self) -> Result<()> {
        self.prepare()
    }

    fn tree_rows(&self, matrices: &[Rows<'_, F>], out: ViewMut<'_, Mont<F>>, stride: usize) -> Result<()> {
        self.hash_rows_apart(matrices, out, stride)
    }

    fn tree_nodes(
        &self,
        children: View<'_, Mont<F>>,
        count: usize,
        out: ViewMut<'_, Mont<F>>,
        stride: usize,
    ) -> Result<()> {
        self.compress_apart(children, count, out, stride)
    }

    fn tree_layers(&self, nodes: ViewMut<'_, Mont<F>>, len: usize, layers: usize) -> Result<usize> {
        self.compress_layers(nodes, len, layers)
    }

    /// By one read: digests are elements too.
    fn tree_opening(&self, wanted: &Wanted<'_, F, Mont<F>>) -> Result<Opened<F, Mont<F>>> {
        let (device, queue, digest) = (self.queue().device(), self.queue(), self.parameters().digest());
        let path = wanted.path.len() * digest;
        let mut opened = device.alloc_with::<Mont<F>>(wanted.row_elements() + path, wanted.secrecy())?;
        let rest = wanted.gather_rows(queue, opened.as_view_mut())?;
        gather(wanted.rows, queue, wanted.nodes, digest, &wanted.path, rest)?;
        let mut rows = queue.read(&opened)?;
        let path = rows.split_off(rows.len() - path);
        Ok((rows, path))
    }
}

impl<F: DevicePrimeField> TreeParameters<F> for Poseidon2Parameters<F> {
    type Node = Mont<F>;

    fn digest_len(&self) -> usize {
        self.digest
    }

    fn hash_row(&self, row: &[F]) -> Vec<F> {
        reference::hash(self, row)
    }

    fn arity(&self) -> Arity {
        self.arity
    }

    fn compress(&self, children: &[F]) -> Vec<F> {
        reference::compress(self, children)
    }

    fn row_bytes(&self, rows: usize, columns: &[usize]) -> u64 {
        Poseidon2::scratch_bytes(self, rows, columns.len())
    }

    fn group_bytes(&self, nodes: usize, count: usize) -> u64 {
        let zeros = self.missing_elements(count);
        if self.is_truncated() || zeros == 0 {
            return 0;
        }
        let zeros = (nodes as u64).saturating_mul((zeros * Mont::<F>::BYTES) as u64);
        zeros.saturating_add(Poseidon2::scratch_bytes(self, nodes, 2))
    }

    fn tree_kernels(&self) -> Vec<KernelSpec> {
        Poseidon2::kernels(self)
    }
}

impl<F: DevicePrimeField, N: Element> Wanted<'_, F, N> {
    /// Elements of all rows.
    pub(crate) fn row_elements(&self) -> usize {
        self.matrices.iter().map(|(rows, numbers)| rows.columns() * numbers.len()).sum()
    }

    /// That of what is read.
    pub(crate) fn secrecy(&self) -> Secrecy {
        let matrices = self.matrices.iter().map(|(rows, _)| rows.values().secrecy());
        Secrecy::of(matrices.chain([self.nodes.secrecy()]))
    }

    /// Copies the rows of each matrix to the start of `out`, and returns the rest.
    pub(crate) fn gather_rows<'o>(&self, queue: &Queue, out: ViewMut<'o, Mont<F>>) -> Result<ViewMut<'o, Mont<F>>> {
        let mut rest = out;
        for (rows, numbers) in &self.matrices {
            let (out, others) = rest.split_at(rows.columns() * numbers.len())?;
            gather(self.rows, queue, rows.values(), rows.columns(), numbers, out)?;
            rest = others;
        }
        Ok(rest)
    }
}

/// Copies rows of so many elements to `out`, one after the other.
pub(crate) fn gather<T: Element>(
    gather: &GatherScatter<T>,
    queue: &Queue,
    values: View<'_, T>,
    columns: usize,
    numbers: &[usize],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    // Places are 32 bits, and a gather counts a little beyond.
    if values.len() <= MAX_LEN {
        let places = numbers.iter().flat_map(|row| row * columns..(row + 1) * columns);
        let places: Vec<u32> = places.map(|place| place as u32).collect();
        return Ok(gather.gather(values, &queue.upload::<u32>(&places)?, out)?);
    }
    for (i, row) in numbers.iter().enumerate() {
        let target = out.view_mut(i * columns..(i + 1) * columns)?;
        queue.copy(values.view(row * columns..(row + 1) * columns)?, target)?;
    }
    Ok(())
}
