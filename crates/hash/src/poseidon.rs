use std::{fmt, iter, sync::Arc};

use evariste_backend::{
    Buffer, Device, Queue, Secrecy, View, ViewMut,
    author::{Arg, Kernel, KernelSpec, LazyKernel, Ready},
};
use evariste_field::{DevicePrimeField, Mont};

use self::{
    parameters::PoseidonParameters,
    spec::{Params, Shape, THREADS},
};
use crate::error::{Error, Result};

mod grain;
#[cfg(target_arch = "x86_64")]
mod lanes;
pub(crate) mod parameters;
mod spec;

/// Words of a buffer that one launch indexes, at most.
const WORDS: usize = 1 << 31;

/// Poseidon on a device: the permutation, and hashes of rows of one element less than a state, as circomlib has them.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::Device;
/// use evariste_field::Mont;
/// use evariste_hash::{Poseidon, PoseidonParameters};
///
/// let device = Device::best()?;
/// let poseidon = Poseidon::new(&device, PoseidonParameters::<Fr>::circomlib(3)?)?;
/// // Four pairs, and the hash of each.
/// let pairs: Vec<Fr> = (0..8).map(Fr::from).collect();
/// let pairs = device.upload::<Mont<Fr>>(&pairs)?;
/// let mut hashes = device.alloc(4)?;
/// poseidon.hash_rows(&pairs, &mut hashes)?;
/// # Ok(())
/// # }
/// ```
///
/// # Algorithm
///
/// A thread computes one permutation. With width t, R_F full and R_P partial rounds and the S-box x^5, it takes
/// 3·(t·R_F + R_P) multiplications for S-boxes, t²·(R_F + 1) for the matrices of full rounds and of the last partial
/// one, and (2t − 1)·(R_P − 1) for the others, which are sparse. For t = 3, R_F = 8 and R_P = 57 these are 604; with
/// the matrix as it is given they are 828. A row of a matrix is a sum of products, which is reduced once.
///
/// Source: Grassi, Khovratovich, Rechberger, Roy and Schofnegger, "Poseidon: a new hash function for zero-knowledge
/// proof systems", USENIX Security 2021.
pub struct Poseidon<F: DevicePrimeField> {
    queue: Queue,
    shared: Arc<Shared<F>>,
}

/// What plans on all queues share.
struct Shared<F: DevicePrimeField> {
    device: Device,
    parameters: PoseidonParameters<F>,
    constants: Buffer<Mont<F>>,
    permute: LazyKernel<Params>,
    hash: LazyKernel<Params>,
    ready: Ready,
}

impl<F: DevicePrimeField> Poseidon<F> {
    /// Uploads the constants on a queue (`&device` is its default one). Kernels are compiled at their first use, or by
    /// [`Poseidon::prepare`].
    ///
    /// # Errors
    /// [`Error::Device`] if there is no memory, or if the device fails.
    pub fn new(queue: impl Into<Queue>, parameters: PoseidonParameters<F>) -> Result<Self> {
        let queue = queue.into();
        let shared = Shared {
            device: queue.device().clone(),
            constants: queue.upload_with(parameters.sparse(), Secrecy::Public)?,
            permute: LazyKernel::default(),
            hash: LazyKernel::default(),
            ready: Ready::behind(&queue)?,
            parameters,
        };
        Ok(Self { queue, shared: Arc::new(shared) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), shared: Arc::clone(&self.shared) }
    }

    /// Returns the queue of the plan.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &PoseidonParameters<F> {
        &self.shared.parameters
    }

    /// Returns the bytes of device memory that a plan takes. Its calls take none beside their arguments.
    pub fn required_bytes(parameters: &PoseidonParameters<F>) -> u64 {
        (parameters.sparse().len() * 4 * F::LIMBS) as u64
    }

    /// Compiles all kernels side by side, so that no later call does.
    ///
    /// # Errors
    /// [`Error::Device`] if a kernel does not compile, or if the device fails.
    pub fn prepare(&self) -> Result<()> {
        let prepared = self.shared.device.prepare(&Self::kernels(&self.shared.parameters))?;
        self.shared.permute()?;
        self.shared.hash()?;
        drop(prepared);
        Ok(())
    }

    /// Returns the kernels, for tools that compile them ahead.
    #[doc(hidden)]
    pub fn kernels(parameters: &PoseidonParameters<F>) -> Vec<KernelSpec> {
        let shape = shape(parameters);
        vec![spec::permute::<F>(shape), spec::hash::<F>(shape)]
    }

    /// Permutes each of the states, which follow each other. Returns when the work is queued.
    ///
    /// # Errors
    /// [`Error::Device`], with
    /// - [`Length`](evariste_backend::Error::Length) if the elements are no whole states,
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice) if they are on another device,
    /// - the errors of a compiler and a driver.
    pub fn permute<'a>(&self, states: impl Into<ViewMut<'a, Mont<F>>>) -> Result<()> {
        let mut states = states.into();
        let width = self.shared.parameters.width();
        let count = states.len() / width;
        states.expect_len("states of a permutation", count * width)?;
        self.expect_here(states.device())?;
        let kernel = self.shared.permute()?;
        self.shared.ready.wait(&self.queue)?;
        let most = WORDS / (width * F::LIMBS);
        for first in (0..count).step_by(most) {
            let len = most.min(count - first);
            let states = states.view_mut(first * width..(first + len) * width)?;
            let args = &mut [Arg::read(&self.shared.constants), Arg::write(states)];
            // SAFETY: there are `len` states, and the constants of so many rounds.
            unsafe { kernel.launch(&self.queue, groups(len), &self.shared.params(len), args)? };
        }
        Ok(())
    }

    /// Hashes rows of `width` − 1 elements, which follow each other: a hash is element 0 of the permuted state of 0 and
    /// the row. With a width of 3 it compresses pairs. Returns when the work is queued.
    ///
    /// # Errors
    /// [`Error::Device`], with
    /// - [`Length`](evariste_backend::Error::Length) unless there is a row for each element of `out`,
    /// - [`SecretInput`](evariste_backend::Error::SecretInput) if the rows are secret and `out` is not,
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice) if a view is of another device,
    /// - the errors of a compiler and a driver.
    pub fn hash_rows<'a>(
        &self,
        rows: impl Into<View<'a, Mont<F>>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
    ) -> Result<()> {
        let (rows, mut out) = (rows.into(), out.into());
        let (count, columns) = (out.len(), self.shared.parameters.width() - 1);
        rows.expect_len("the rows to hash", count.saturating_mul(columns))?;
        self.expect_here(rows.device())?;
        self.expect_here(out.device())?;
        rows.secrecy().expect_to(out.secrecy(), "hash of rows", ["the rows", "the output"])?;
        let kernel = self.shared.hash()?;
        self.shared.ready.wait(&self.queue)?;
        let most = WORDS / (columns * F::LIMBS);
        for first in (0..count).step_by(most) {
            let len = most.min(count - first);
            let args = &mut [
                Arg::read(&self.shared.constants),
                Arg::read(rows.view(first * columns..(first + len) * columns)?),
                Arg::write(out.view_mut(first..first + len)?),
            ];
            // SAFETY: there are `len` rows and places, and the constants of so many rounds.
            unsafe { kernel.launch(&self.queue, groups(len), &self.shared.params(len), args)? };
        }
        Ok(())
    }

    /// Builds a tree over `leaves`, by hashes of `width` − 1 neighbours: its layers one after the other, from the
    /// leaves, which are copied, to the root, which is the last element. Returns when the work is queued.
    ///
    /// # Errors
    /// - [`Error::Parameters`] unless the number of leaves is a power of `width` − 1, and if the width is 2.
    /// - [`Error::Device`] if they are on another device, if there is no room for the nodes, or if the device fails.
    pub fn tree<'a>(&self, leaves: impl Into<View<'a, Mont<F>>>) -> Result<Buffer<Mont<F>>> {
        let leaves = leaves.into();
        let arity = self.shared.parameters.width() - 1;
        let refuse = |what, expected, actual: usize| Err(Error::Parameters { what, expected, actual: actual as u64 });
        if arity < 2 {
            return refuse("the width for a tree", "3 or more", arity + 1);
        }
        let above = |len: &usize| (*len > 1 && len.is_multiple_of(arity)).then(|| len / arity);
        let layers: Vec<usize> = iter::successors(Some(leaves.len()), above).collect();
        if layers.last() != Some(&1) {
            return refuse("the number of leaves", "a power of the width − 1", leaves.len());
        }
        self.expect_here(leaves.device())?;
        let mut nodes = self.shared.device.alloc_with::<Mont<F>>(layers.iter().sum(), leaves.secrecy())?;
        self.queue.copy(leaves, nodes.view_mut(..leaves.len())?)?;
        let mut start = 0;
        for layer in layers.windows(2) {
            let (before, after) = nodes.as_view_mut().split_at(start + layer[0])?;
            self.hash_rows(before.view(start..)?, after.into_part(..layer[1])?)?;
            start += layer[0];
        }
        Ok(nodes)
    }

    fn expect_here(&self, device: &Device) -> Result<()> {
        self.queue.expect_device(&self.shared.device)?;
        Ok(self.shared.device.expect_same("a kernel argument", device)?)
    }
}

impl<F: DevicePrimeField> Shared<F> {
    fn params(&self, len: usize) -> Params {
        let [full, partial] = self.parameters.rounds();
        Params { len: len as u32, half: full as u32 / 2, partial: partial as u32 }
    }

    fn permute(&self) -> Result<&Kernel<Params>> {
        Ok(self.permute.get(&self.device, || spec::permute::<F>(shape(&self.parameters)))?)
    }

    fn hash(&self) -> Result<&Kernel<Params>> {
        Ok(self.hash.get(&self.device, || spec::hash::<F>(shape(&self.parameters)))?)
    }
}

fn shape<F>(parameters: &PoseidonParameters<F>) -> Shape {
    Shape { width: parameters.width(), alpha: parameters.alpha() }
}

fn groups(threads: usize) -> u64 {
    (threads as u64).div_ceil(THREADS.into())
}

impl<F: DevicePrimeField> Clone for Poseidon<F> {
    fn clone(&self) -> Self {
        self.on(&self.queue)
    }
}

impl<F: DevicePrimeField> fmt::Debug for Poseidon<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poseidon")
            .field("device", &self.shared.device)
            .field("width", &self.shared.parameters.width())
            .field("rounds", &self.shared.parameters.rounds())
            .finish_non_exhaustive()
    }
}
