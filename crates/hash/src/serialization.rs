use std::{fmt, marker::PhantomData, sync::Arc};

use evariste_backend::{
    Element, Error as DeviceError, Queue, Secrecy, View, ViewMut,
    author::{Arg, Binding, CpuArg, Kernel, KernelSpec, Language, LazyKernel},
    parallel, params,
};
use evariste_field::{
    Canonical, DevicePrimeField, Mont,
    small::BabyBear,
    source::{self, binding_type, iterations},
};

use crate::{
    bytes::{ByteHash, function::HashFunction, places},
    error::Result,
    layers::Arity,
    poseidon2::Rows,
    tree_hash::{Opened, TreeHash, TreeParameters, Wanted, gather, sealed::Sealed},
};

#[cfg(test)]
mod tests;

/// Bytes of serialised rows that are kept at a time, at most, unless one row has more.
const KEPT_BYTES: usize = 64 << 20;

/// Threads of a workgroup.
const THREADS: u32 = 256;

/// Rows that a CPU thread takes at a time.
const GRAIN: usize = 64;

/// The bytes of an element of a field: its words of 32 bits, the lowest first and each with its lowest byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The words of Montgomery's form x·R mod p, which devices compute with. They are hashed where they lie.
    Montgomery,
    /// The words of the integer below p.
    Canonical,
}

/// A hash function of bytes, and what bytes elements of fields have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Serialization {
    /// The function.
    pub function: HashFunction,
    /// The bytes of elements.
    pub form: Form,
    /// The digests that a compression takes.
    pub arity: Arity,
}

impl Serialization {
    /// Returns that of Plonky3's `SerializingHasher` over a hash of bytes: Montgomery's form for BabyBear and KoalaBear, and
    /// integers for Goldilocks and Mersenne31. Nodes have two children.
    pub fn plonky3<F: DevicePrimeField>(function: HashFunction) -> Self {
        let is_mersenne_31 = F::MODULUS == F::BigInt::from((1u64 << 31) - 1);
        let form = if F::LIMBS == 1 && !is_mersenne_31 { Form::Montgomery } else { Form::Canonical };
        Self { function, form, arity: Arity::Two }
    }

    /// Sets the digests that a compression takes.
    #[must_use]
    pub fn with_arity(mut self, arity: Arity) -> Self {
        self.arity = arity;
        self
    }

    /// The digest of digests, and of zeros for those that are missing.
    pub(crate) fn compressed(&self, children: &[[u8; 32]]) -> Vec<[u8; 32]> {
        let mut children = children.to_vec();
        children.resize(self.arity.children(), [0; 32]);
        vec![self.function.digest(children.as_flattened())]
    }

    /// The kernels that digests take.
    pub(crate) fn digest_kernels(&self) -> Vec<KernelSpec> {
        let mut kernels = ByteHash::kernels(self.function);
        if self.arity == Arity::Four {
            kernels.push(spread_spec());
        }
        kernels
    }

    /// Bytes of memory that so many nodes over `count` children each take beside these.
    pub(crate) fn bytes_of_nodes(&self, nodes: usize, count: usize) -> u64 {
        let all = self.arity.children();
        let spread = if count < all { (GROUPS.min(nodes) * all * 32) as u64 } else { 0 };
        spread.saturating_add(self.function.required_bytes(nodes, all * 32))
    }

    /// Returns the bytes of elements, one after the other.
    pub fn bytes<F: DevicePrimeField>(&self, elements: &[F]) -> Vec<u8> {
        // Aligned, as encoders count on.
        let mut words = vec![0u128; (elements.len() * Mont::<F>::BYTES).div_ceil(16)];
        let bytes = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut words)[..elements.len() * Mont::<F>::BYTES];
        match self.form {
            Form::Montgomery => Mont::<F>::encode(elements, bytes),
            Form::Canonical => Canonical::<F>::encode(elements, bytes),
        }
        bytes.to_vec()
    }
}

/// A hash of rows of field elements by their bytes, and of two or four digests, for [`Merkle`](crate::Merkle). Plonky3
/// calls these `SerializingHasher` and `CompressionFunctionFromHasher`.
///
/// Rows of one matrix in Montgomery's form are hashed where they lie. Others are serialised first, some 64 MiB at a time.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use evariste_backend::Device;
/// use evariste_field::{Mont, small::BabyBear};
/// use evariste_hash::{HashFunction, Merkle, Rows, Serialization, SerializingHash, verify};
///
/// let device = Device::best()?;
/// let serialization = Serialization::plonky3::<BabyBear>(HashFunction::Keccak256);
/// let merkle = Merkle::new(SerializingHash::new(&device, serialization)?);
/// let matrix = device.upload::<Mont<BabyBear>>(&[BabyBear::from(7); 24])?;
/// let matrices = [Rows::new(&matrix, 3)];
/// let tree = merkle.commit(&matrices)?;
/// let root: Vec<[u8; 32]> = merkle.root(&tree)?;
/// let openings = merkle.open(&tree, &matrices, &[6], 0)?;
/// verify(&serialization, &root, tree.dimensions(), 6, &openings[0])?;
/// # Ok(())
/// # }
/// ```
pub struct SerializingHash<F> {
    hash: ByteHash,
    serialization: Serialization,
    serialize: Arc<LazyKernel<Params>>,
    spread: Arc<LazyKernel<Params>>,
    field: PhantomData<fn() -> F>,
}

params! {
    struct Params {
        /// How many elements.
        len: u32,
        /// Those of a row.
        columns: u32,
        /// The distance of rows in the output, and the place of these in them.
        pitch: u32,
        place: u32,
    }
}

impl<F> SerializingHash<F> {
    /// Makes a plan on a queue (`&device` is its default one). Kernels are compiled at their first use.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if there is no memory, or if the device fails.
    pub fn new(queue: impl Into<Queue>, serialization: Serialization) -> Result<Self> {
        let hash = ByteHash::new(queue, serialization.function)?;
        let (serialize, spread) = Default::default();
        Ok(Self { hash, serialization, serialize, spread, field: PhantomData })
    }

    /// Returns the hash of bytes.
    pub fn hash(&self) -> &ByteHash {
        &self.hash
    }

    /// Returns the same for work on `queue`.
    pub(crate) fn on(&self, queue: &Queue) -> Self {
        Self { hash: self.hash.on(queue), ..self.clone() }
    }

    pub(crate) fn serialization(&self) -> &Serialization {
        &self.serialization
    }

    /// Compiles the kernels that digests take.
    pub(crate) fn prepare_digests(&self) -> Result<()> {
        self.hash.prepare()?;
        if self.serialization.arity == Arity::Four {
            self.spread_kernel()?;
        }
        Ok(())
    }

    fn spread_kernel(&self) -> Result<&Kernel<Params>> {
        Ok(self.spread.get(self.hash.device(), spread_spec)?)
    }

    /// Compresses each `count` neighbours, and zeros for digests that are missing, to digests `stride` apart.
    pub(crate) fn compress_apart(
        &self,
        children: View<'_, [u8; 32]>,
        count: usize,
        mut out: ViewMut<'_, [u8; 32]>,
        stride: usize,
    ) -> Result<()> {
        let (nodes, all, what) =
            (out.len().div_ceil(stride), self.serialization.arity.children(), "the digests to compress");
        if count == all {
            return self.hash.hash_apart(what, children, count, nodes, out, stride);
        }
        children.expect_len(what, nodes.saturating_mul(count))?;
        children.secrecy().expect_to(out.secrecy(), "compression", ["the digests", "the output"])?;
        // With zeros for the digests that are missing.
        let most = GROUPS.min(nodes);
        let mut groups = self.hash.device().alloc_with::<[u8; 32]>(most * all, out.secrecy())?;
        self.hash.queue().clear(&mut groups)?;
        let kernel = self.spread_kernel()?;
        for start in (0..nodes).step_by(most.max(1)) {
            let len = most.min(nodes - start);
            let words = len * count * DIGEST_WORDS;
            let [columns, pitch] = [count, all].map(|digests| (digests * DIGEST_WORDS) as u32);
            let params = Params { len: words as u32, columns, pitch, place: 0 };
            let args = &mut [
                Arg::read(children.view(start * count..(start + len) * count)?),
                Arg::write(groups.view_mut(..len * all)?),
            ];
            // SAFETY: there are so many words, and groups of `pitch` words for them.
            unsafe { kernel.launch(self.hash.queue(), (words as u64).div_ceil(THREADS.into()), &params, args)? };
            let digests = out.view_mut(start * stride..start * stride + places(len, stride))?;
            self.hash.hash_apart(what, groups.view(..len * all)?, all, len, digests, stride)?;
        }
        Ok(())
    }
}

impl<F: DevicePrimeField> SerializingHash<F> {
    /// Returns the kernels, for tools that compile them ahead.
    #[doc(hidden)]
    pub fn kernels(serialization: Serialization) -> Vec<KernelSpec> {
        let mut kernels = serialization.digest_kernels();
        kernels.push(spec::<F>(serialization.form));
        kernels
    }

    fn serialize_kernel(&self) -> Result<&Kernel<Params>> {
        Ok(self.serialize.get(self.hash.device(), || spec::<F>(self.serialization.form))?)
    }

    /// Writes rows of all matrices beside each other, by a launch for each.
    fn serialize(
        &self,
        matrices: &[Rows<'_, F>],
        [start, count]: [usize; 2],
        mut out: ViewMut<'_, Mont<F>>,
    ) -> Result<()> {
        let kernel = self.serialize_kernel()?;
        let all: usize = matrices.iter().map(Rows::columns).sum();
        let mut place = 0;
        for rows in matrices {
            let columns = rows.columns();
            let len = count * columns;
            if len == 0 {
                continue;
            }
            let params = Params { len: len as u32, columns: columns as u32, pitch: all as u32, place: place as u32 };
            let values = rows.values().view(start * columns..(start + count) * columns)?;
            let args = &mut [Arg::read(values), Arg::write(out.reborrow())];
            // SAFETY: there are so many elements, and rows of all matrices' columns to write.
            unsafe { kernel.launch(self.hash.queue(), (len as u64).div_ceil(THREADS.into()), &params, args)? };
            place += columns;
        }
        Ok(())
    }
}

impl<F> Sealed for SerializingHash<F> {}

impl Sealed for Serialization {}

impl<F: DevicePrimeField> TreeHash<F> for SerializingHash<F> {
    type Node = [u8; 32];
    type Parameters = Serialization;

    fn tree_parameters(&self) -> &Serialization {
        &self.serialization
    }

    fn tree_queue(&self) -> &Queue {
        self.hash.queue()
    }

    fn on_queue(&self, queue: &Queue) -> Self {
        self.on(queue)
    }

    fn tree_prepare(&self) -> Result<()> {
        let prepared = self.hash.device().prepare(&Self::kernels(self.serialization))?;
        self.prepare_digests()?;
        self.serialize_kernel()?;
        drop(prepared);
        Ok(())
    }

    fn tree_rows(&self, matrices: &[Rows<'_, F>], mut out: ViewMut<'_, [u8; 32]>, stride: usize) -> Result<()> {
        let count = out.len().div_ceil(stride);
        if let ([rows], Form::Montgomery) = (matrices, self.serialization.form) {
            return self.hash.hash_apart("a matrix", rows.values(), rows.columns(), count, out, stride);
        }
        let secrecy = Secrecy::of(matrices.iter().map(|rows| rows.values().secrecy()).chain([out.secrecy()]));
        for rows in matrices {
            rows.values().expect_len("a matrix", count.saturating_mul(rows.columns()))?;
            rows.values().secrecy().expect_to(out.secrecy(), "hash of rows", ["a matrix", "the digests"])?;
        }
        let columns: usize = matrices.iter().map(Rows::columns).sum();
        if columns.saturating_mul(F::LIMBS) > MOST_WORDS {
            let (device, expected) = (self.hash.device().info().id, MOST_WORDS as u64);
            let actual = columns.saturating_mul(F::LIMBS) as u64;
            return Err(DeviceError::TooLarge { what: "row, in words", device, expected, actual }.into());
        }
        let most = rows_at_once::<F>(columns).min(count);
        let mut kept = self.hash.device().alloc_with::<Mont<F>>(most * columns, secrecy)?;
        for start in (0..count).step_by(most.max(1)) {
            let len = most.min(count - start);
            self.serialize(matrices, [start, len], kept.view_mut(..len * columns)?)?;
            let digests = out.view_mut(start * stride..start * stride + places(len, stride))?;
            self.hash.hash_apart("a matrix", kept.view(..len * columns)?, columns, len, digests, stride)?;
        }
        Ok(())
    }

    fn tree_nodes(
        &self,
        children: View<'_, [u8; 32]>,
        count: usize,
        out: ViewMut<'_, [u8; 32]>,
        stride: usize,
    ) -> Result<()> {
        self.compress_apart(children, count, out, stride)
    }

    /// By two copies, for which the host waits once both are queued.
    fn tree_opening(&self, wanted: &Wanted<'_, F, [u8; 32]>) -> Result<Opened<F, [u8; 32]>> {
        let (device, queue) = (self.hash.device(), self.hash.queue());
        let mut rows = device.alloc_with::<Mont<F>>(wanted.row_elements(), wanted.secrecy())?;
        let mut path = device.alloc_with::<[u8; 32]>(wanted.path.len(), wanted.secrecy())?;
        wanted.gather_rows(queue, rows.as_view_mut())?;
        gather(wanted.digests, queue, wanted.nodes, 1, &wanted.path, path.as_view_mut())?;
        let (rows, path) = (queue.download(&rows)?, queue.download(&path)?);
        Ok((rows.wait()?, path.wait()?))
    }
}

impl<F: DevicePrimeField> TreeParameters<F> for Serialization {
    type Node = [u8; 32];

    fn digest_len(&self) -> usize {
        1
    }

    fn hash_row(&self, row: &[F]) -> Vec<[u8; 32]> {
        vec![self.function.digest(&self.bytes(row))]
    }

    fn arity(&self) -> Arity {
        self.arity
    }

    fn compress(&self, children: &[[u8; 32]]) -> Vec<[u8; 32]> {
        self.compressed(children)
    }

    fn row_bytes(&self, rows: usize, columns: &[usize]) -> u64 {
        let all = columns.iter().fold(0usize, |all, columns| all.saturating_add(*columns));
        let (bytes, at_once) = (all.saturating_mul(Mont::<F>::BYTES), rows_at_once::<F>(all).min(rows));
        let is_kept = columns.len() > 1 || self.form == Form::Canonical;
        let kept = if is_kept { at_once.saturating_mul(bytes) as u64 } else { 0 };
        kept.saturating_add(self.function.required_bytes(rows, bytes))
    }

    fn group_bytes(&self, nodes: usize, count: usize) -> u64 {
        self.bytes_of_nodes(nodes, count)
    }

    fn tree_kernels(&self) -> Vec<KernelSpec> {
        SerializingHash::<F>::kernels(*self)
    }
}

impl<F> Clone for SerializingHash<F> {
    fn clone(&self) -> Self {
        let Self { hash, serialization, serialize, spread, field } = self;
        let (serialize, spread) = (Arc::clone(serialize), Arc::clone(spread));
        Self { hash: hash.clone(), serialization: *serialization, serialize, spread, field: *field }
    }
}

impl<F> fmt::Debug for SerializingHash<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SerializingHash")
            .field("hash", &self.hash)
            .field("form", &self.serialization.form)
            .field("arity", &self.serialization.arity)
            .finish_non_exhaustive()
    }
}

/// Words of a row that is serialised, at most: kernels count them by 32 bits.
const MOST_WORDS: usize = 1 << 31;

/// Words of a digest.
const DIGEST_WORDS: usize = 8;

/// Nodes whose children are written beside zeros at a time: they take 64 MiB.
const GROUPS: usize = KEPT_BYTES / (4 * 32);

/// The kernel `serialize` for digests: it copies their words, as those of a field of one word.
fn spread_spec() -> KernelSpec {
    spec::<BabyBear>(Form::Montgomery)
}

/// How many rows of so many elements are serialised at a time.
fn rows_at_once<F: DevicePrimeField>(columns: usize) -> usize {
    (KEPT_BYTES / columns.saturating_mul(Mont::<F>::BYTES).max(1)).max(1)
}

/// The kernel `serialize`.
fn spec<F: DevicePrimeField>(form: Form) -> KernelSpec {
    let word = binding_type::<F>();
    let bindings = [Binding::read("x", word), Binding::write("out", word)];
    let canonical = form == Form::Canonical;
    let body = move |params: &Params, [x, out]: &mut [CpuArg<'_>; 2]| {
        serialize_rows::<F>(params, canonical, x.read(), out.write());
    };
    let text = move |language| match language {
        Language::Cuda => {
            let defined = format!("#define THREADS {THREADS}\n#define CANONICAL {}\n", u32::from(canonical));
            [&source::cuda::<F>(), &defined, evariste_cuda::hash::SERIALIZE].concat()
        }
        Language::Wgsl { int64 } => {
            let accessors: String = bindings.iter().map(source::wgsl_accessors::<F>).collect();
            let serialized = match canonical {
                true => {
                    let one = source::list(F::LIMBS, |i| format!("{}u", u32::from(i == 0)));
                    format!("fn serialized(value: F) -> F {{ return f_mul(value, F({one})); }}\n")
                }
                false => "fn serialized(value: F) -> F { return value; }\n".to_owned(),
            };
            [&source::wgsl::<F>(int64), &accessors, &serialized, evariste_shaders::hash::SERIALIZE].concat()
        }
    };
    let variant = format!("{}, {form:?}", source::label::<F>());
    KernelSpec::new("serialize", variant, bindings, body, text)
        .threads(THREADS)
        .iterations(|_: &Params| iterations::mul::<F>())
}

/// The body of `serialize`.
fn serialize_rows<F: DevicePrimeField>(params: &Params, canonical: bool, x: &[u32], out: &mut [u32]) {
    let [len, columns, pitch, place] =
        [params.len, params.columns, params.pitch, params.place].map(|value| value as usize * F::LIMBS);
    let rows = len / columns.max(1);
    parallel::chunks(&mut out[..rows * pitch], GRAIN * pitch, &|chunk, out| {
        for (i, row) in out.chunks_exact_mut(pitch).enumerate() {
            let source = &x[(chunk * GRAIN + i) * columns..][..columns];
            let target = &mut row[place..place + columns];
            if !canonical {
                target.copy_from_slice(source);
                continue;
            }
            for (words, target) in source.chunks_exact(F::LIMBS).zip(target.chunks_exact_mut(F::LIMBS)) {
                Canonical::<F>::encode(&[F::load(words)], bytemuck::cast_slice_mut(target));
            }
        }
    });
}
