use std::{any::type_name, fmt, sync::Arc};

use evariste_backend::{Device, Queue, View, ViewMut, author::KernelSpec};
use evariste_field::Mont;

use crate::{
    error::{Error, Result},
    kernel::{Loaded, Params, Shape, host_bytes, on_host, spec},
    methods::{self, Degree, Prime},
    program::Program,
    root_field::RootField,
};

/// Takes cube roots, and roots of other odd prime degrees, of the elements of a buffer over a prime field on one
/// device. Each thread takes one element, by Adleman, Manders and Miller's algorithm.
///
/// Let p − 1 = ℓ^s t for the degree ℓ, where ℓ does not divide t. If s = 0, every element has one root. Otherwise 0 has
/// one root, and one in ℓ of the other elements has ℓ: a root times the powers of [`NthRoot::root_of_unity`]. The plan
/// gives one of them, the same on every device. The same kernel raises it to the power ℓ and writes a mask: 1 where
/// there is a root, otherwise 0 and an output of zero.
///
/// All elements take the same steps: an exponentiation by about log₂ t bits, and (s − 1)(s − 2) / 2 powers with
/// exponent ℓ. The digits of a logarithm take about 2 (ℓ − 1)(s − 1) multiplications. Over BLS12-381 Fr, where 3
/// divides p − 1 once, a cube root takes 311 multiplications and squarings ([`NthRoot::products`]).
///
/// Source: Adleman, Manders and Miller, "On taking roots in finite fields", FOCS 1977.
///
/// ```
/// # fn main() -> Result<(), evariste_sqrt::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::Device;
/// use evariste_sqrt::NthRoot;
///
/// let cubes = NthRoot::<Fr>::new(&Device::best()?, 3)?;
/// let found = cubes.nth_root_host(&[Fr::from(27), Fr::from(2)])?;
/// let [root, other] = [found[0].unwrap_or_default(), Fr::from(3)];
/// let unit = cubes.root_of_unity();
/// assert!([other, other * unit, other * unit * unit].contains(&root));
/// # Ok(())
/// # }
/// ```
pub struct NthRoot<F: RootField> {
    queue: Queue,
    inner: Arc<Inner<F>>,
}

struct Inner<F: RootField> {
    device: Device,
    degree: u32,
    root_of_unity: F,
    products: u64,
    roots: Loaded<Params, F::BasePrimeField>,
}

impl<F: RootField> NthRoot<F> {
    /// The largest degree. The work for a digit of a logarithm grows with the degree.
    pub const MAX_DEGREE: u32 = 61;

    /// Makes a plan for roots of a degree on a queue (`&device` is its default one). Compiles the kernel.
    ///
    /// # Errors
    /// - [`Error::Degree`]: the degree is no odd prime up to [`NthRoot::MAX_DEGREE`].
    /// - [`Error::Field`]: the field is an extension.
    /// - [`Error::Modulus`]: the modulus is no prime.
    /// - [`Error::Device`]: the kernel does not compile, or the device has no room for the constants or fails.
    pub fn new(queue: impl Into<Queue>, degree: u32) -> Result<Self> {
        let queue = queue.into();
        let (of, program) = program::<F>(degree)?;
        let program = Arc::new(program);
        let roots = Loaded::new(&queue, &program, spec::<F>(Shape::Roots, &program, &detail(degree)))?;
        let root_of_unity = F::from_base_prime_field(of.root_of_unity());
        let inner =
            Inner { device: queue.device().clone(), degree, root_of_unity, products: program.products(), roots };
        Ok(Self { queue, inner: Arc::new(inner) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), inner: Arc::clone(&self.inner) }
    }

    /// Returns the kernels for a degree, so that you can compile them ahead. The list is empty where [`NthRoot::new`]
    /// refuses the field or the degree.
    #[doc(hidden)]
    pub fn kernels(degree: u32) -> Vec<KernelSpec> {
        let Ok((_, program)) = program::<F>(degree) else { return Vec::new() };
        vec![spec::<F>(Shape::Roots, &Arc::new(program), &detail(degree))]
    }

    /// Returns the degree.
    pub fn degree(&self) -> u32 {
        self.inner.degree
    }

    /// Returns a primitive root of unity of the degree. Its powers take one root to the others. It is 1 if every
    /// element has one root.
    pub fn root_of_unity(&self) -> F {
        self.inner.root_of_unity
    }

    /// Returns the number of multiplications and squarings for one element, with the check.
    pub fn products(&self) -> u64 {
        self.inner.products
    }

    /// Returns the most bytes of device memory that a call for `len` elements allocates. [`NthRoot::nth_root_host`]
    /// allocates the elements, the roots and the mask. Calls on views allocate nothing.
    pub fn required_bytes(&self, len: usize) -> u64 {
        host_bytes::<F>(len)
    }

    /// Writes a root of each element, `out[i]^ℓ = a[i]`, and `mask[i] = 1`. Where there is no root, both are 0.
    ///
    /// # Errors
    /// [`Error::Device`] holds one of these:
    /// - [`Length`](evariste_backend::Error::Length): the numbers of elements, roots and entries of the mask differ.
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice): elements, roots, the mask or the queue are of another
    ///   device.
    /// - [`TooLarge`](evariste_backend::Error::TooLarge): there are more than 2^31 elements, or the program exceeds the
    ///   loop iterations of a thread.
    /// - Another error, if the device fails.
    pub fn nth_root<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
        mask: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        let (a, out) = (a.into(), out.into());
        out.expect_len("the roots", a.len())?;
        self.inner.roots.launch::<F>(&self.queue, 0, &[a], Some(out), mask.into())
    }

    /// Takes the roots of elements in host memory, `None` where there is none. Waits for the device.
    ///
    /// # Errors
    /// [`Error::Device`] holds one of these:
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice): the queue is of another device.
    /// - [`TooLarge`](evariste_backend::Error::TooLarge): there are more than 2^31 elements, or the program exceeds the
    ///   loop iterations of a thread.
    /// - [`OutOfMemory`](evariste_backend::Error::OutOfMemory): the device has no room for [`NthRoot::required_bytes`].
    /// - Another error, if the device fails.
    pub fn nth_root_host(&self, a: &[F]) -> Result<Vec<Option<F>>> {
        on_host(&self.inner.device, &self.queue, a, |elements, out, mask| self.nth_root(elements, out, mask))
    }
}

/// A degree, and the program of its roots.
type Roots<F> = (Degree<F>, Program<F>);

fn program<F: RootField>(degree: u32) -> Result<Roots<F::BasePrimeField>> {
    let is_small = degree > 2 && degree <= NthRoot::<F>::MAX_DEGREE;
    if !is_small || (2..degree).any(|d| degree.is_multiple_of(d)) {
        return Err(Error::Degree { expected: NthRoot::<F>::MAX_DEGREE, actual: degree });
    }
    if F::extension_degree() > 1 {
        return Err(Error::Field { what: "roots of odd degrees", degree: F::extension_degree() });
    }
    let (prime, of) = (Prime::new()?, Degree::new(degree));
    let program = methods::roots_of_degree(&prime, &of);
    Ok((of, program))
}

fn detail(degree: u32) -> String {
    format!("degree {degree}")
}

impl<F: RootField> fmt::Debug for NthRoot<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NthRoot")
            .field("field", &type_name::<F>())
            .field("device", self.queue.device())
            .field("degree", &self.inner.degree)
            .finish_non_exhaustive()
    }
}
