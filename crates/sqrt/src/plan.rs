use std::{fmt, marker::PhantomData, sync::Arc};

use ark_ff::{Field, Zero};
use evariste_backend::{
    Queue, View, ViewMut,
    author::{KernelSpec, Lazy},
};
use evariste_field::Mont;

use crate::{
    config::{RootChoice, SqrtConfig},
    error::{Error, Result},
    kernel::{Loaded, Params, Shape, host_bytes, on_host, spec},
    method::Method,
    methods::{self, Prime},
    program::Program,
    root_field::RootField,
};

/// Takes square roots of the elements of a buffer on one device. Each thread takes one element, by the algorithm that
/// suits the prime ([`Method`]).
///
/// The same kernel squares each root and writes a mask: 1 where there is a root, otherwise 0 and an output of zero. The
/// multiplications and squarings for one element, all included:
///
/// | Field | n | Method | Cost |
/// |---|---|---|---|
/// | BLS12-381 Fr | 32 | table | 310 |
/// | BLS12-381 Fq | 1 | power | 459 |
/// | BLS12-381 Fq2 | | norm | 934 |
/// | BN254 Fq | 1 | power | 306 |
/// | Pallas Fq | 32 | table | 286 |
/// | BLS12-377 Fr | 47 | table | 309 |
/// | Stark, p = 2^251 + 17 · 2^192 + 1 | 192 | table | 547 |
/// | Goldilocks | 32 | table | 104 |
///
/// Square roots in `F_{p²} = F_p[x] / (x² − β)` use the norm and two exponentiations in F_p.
///
/// ```
/// # fn main() -> Result<(), evariste_sqrt::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::Device;
/// use evariste_field::Mont;
/// use evariste_sqrt::{RootChoice, Sqrt, SqrtConfig};
///
/// let device = Device::best()?;
/// let squares = device.upload::<Mont<Fr>>(&[4, 5, 9].map(Fr::from))?;
/// let (mut roots, mut mask) = (device.alloc(3)?, device.alloc(3)?);
/// let sqrt = Sqrt::<Fr>::with_config(&device, SqrtConfig::default().choice(RootChoice::Smaller))?;
/// sqrt.sqrt(&squares, &mut roots, &mut mask)?;
/// assert_eq!(roots.to_vec()?, [2, 0, 3].map(Fr::from));
/// assert_eq!(mask.to_vec()?, [1, 0, 1]);
/// # Ok(())
/// # }
/// ```
pub struct Sqrt<F: RootField> {
    queue: Queue,
    inner: Arc<Inner<F>>,
}

struct Inner<F: RootField> {
    /// Where tables are made.
    queue: Queue,
    programs: Programs<F>,
    choice: RootChoice,
    method: Method,
    /// Z.
    non_residue: F,
    roots: Loaded<Params, F::BasePrimeField>,
    products: u64,
    ratios: Lazy<Loaded<Params, F::BasePrimeField>>,
    symbols: Lazy<Loaded<Params, F::BasePrimeField>>,
}

/// The programs of a field.
pub(crate) struct Programs<F: RootField> {
    pub(crate) prime: Prime<F::BasePrimeField>,
    /// β of a quadratic extension. It is no square, or the extension would be no field.
    pub(crate) beta: Option<F::BasePrimeField>,
    field: PhantomData<fn() -> F>,
}

impl<F: RootField> Programs<F> {
    pub(crate) fn new() -> Result<Self> {
        let (beta, prime) = (beta::<F>()?, Prime::new()?);
        if beta.is_some_and(|beta| prime.symbol(beta) != -F::BasePrimeField::ONE) {
            return Err(Error::Square);
        }
        Ok(Self { prime, beta, field: PhantomData })
    }

    fn roots(&self, method: Method, choice: RootChoice) -> Result<Program<F::BasePrimeField>> {
        match self.beta {
            Some(beta) => Ok(methods::roots2(&self.prime, beta, choice)),
            None => methods::roots(&self.prime, method, choice),
        }
    }

    fn ratios(&self, z: F, choice: RootChoice) -> Result<Program<F::BasePrimeField>> {
        match z.to_base_prime_field_elements().next() {
            Some(z) if self.beta.is_none() => Ok(methods::ratios(&self.prime, z, choice)),
            _ => Err(Error::Field { what: "roots of ratios", degree: F::extension_degree() }),
        }
    }

    fn symbols(&self) -> Program<F::BasePrimeField> {
        methods::symbols(&self.prime, self.beta)
    }
}

/// β of the quadratic extension x² = β, and `None` of a prime field.
pub(crate) fn beta<F: RootField>() -> Result<Option<F::BasePrimeField>> {
    let degree = F::extension_degree();
    let refused = Err(Error::Field { what: "roots", degree });
    match degree {
        1 => Ok(None),
        2 => {
            let [zero, one] = [<F::BasePrimeField as ark_ff::AdditiveGroup>::ZERO, F::BasePrimeField::ONE];
            let Some(x) = F::from_base_prime_field_elems([zero, one]) else { return refused };
            let square: Vec<_> = x.square().to_base_prime_field_elements().collect();
            match square[..] {
                [beta, rest] if rest.is_zero() => Ok(Some(beta)),
                _ => refused,
            }
        }
        _ => refused,
    }
}

impl<F: RootField> Sqrt<F> {
    /// Makes a plan with the default configuration on a queue (`&device` is its default one). Compiles the kernel.
    ///
    /// # Errors
    /// - [`Error::Field`]: the field is neither prime nor a quadratic extension x² = β of a prime field.
    /// - [`Error::Square`]: β is a square.
    /// - [`Error::Modulus`]: the modulus is no prime.
    /// - [`Error::Device`]: the kernel does not compile, or the device has no room for the tables or fails.
    pub fn new(queue: impl Into<Queue>) -> Result<Self> {
        Self::with_config(queue, SqrtConfig::default())
    }

    /// Makes a plan with a configuration. The first calls of [`Sqrt::sqrt_ratio`] and [`Sqrt::legendre`] compile their
    /// kernels.
    ///
    /// # Errors
    /// - [`Error::Method`]: the method is not for this prime.
    /// - [`Error::Field`]: the field is neither prime nor a quadratic extension x² = β of a prime field. Or it is an
    ///   extension, and the configuration has a method.
    /// - [`Error::Square`]: the Z of the configuration or β is a square.
    /// - [`Error::Modulus`]: the modulus is no prime.
    /// - [`Error::Device`]: the kernel does not compile, or the device has no room for the tables or fails.
    pub fn with_config(queue: impl Into<Queue>, config: SqrtConfig<F>) -> Result<Self> {
        let queue = queue.into();
        let programs = Programs::<F>::new()?;
        if programs.beta.is_some() && config.method.is_some() {
            return Err(Error::Field { what: "methods of prime fields", degree: F::extension_degree() });
        }
        let method = match config.method {
            Some(method) => method,
            None if programs.beta.is_some() => Method::Table,
            None => methods::best(&programs.prime)?,
        };
        let default = F::from_base_prime_field(programs.prime.non_residue);
        let non_residue = config.non_residue.unwrap_or(default);
        if config.non_residue.is_some() && !non_residue.legendre().is_qnr() {
            return Err(Error::Square);
        }
        let program = Arc::new(programs.roots(method, config.choice)?);
        let roots = Loaded::new(&queue, &program, spec::<F>(Shape::Roots, &program, &detail(method, config.choice)))?;
        let (ratios, symbols, products) = (Lazy::default(), Lazy::default(), program.products());
        let (made_on, choice) = (queue.clone(), config.choice);
        let inner = Inner { queue: made_on, programs, choice, method, non_residue, roots, products, ratios, symbols };
        Ok(Self { queue, inner: Arc::new(inner) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), inner: Arc::clone(&self.inner) }
    }

    /// Returns the kernels of a configuration, so that you can compile them ahead. The list is empty for a field or a
    /// method that [`Sqrt::with_config`] refuses.
    #[doc(hidden)]
    pub fn kernels(config: &SqrtConfig<F>) -> Vec<KernelSpec> {
        let Ok(programs) = Programs::<F>::new() else { return Vec::new() };
        let method = match config.method {
            Some(_) if programs.beta.is_some() => return Vec::new(),
            Some(method) => Ok(method),
            None if programs.beta.is_some() => Ok(Method::Table),
            None => methods::best(&programs.prime),
        };
        let Ok(method) = method else { return Vec::new() };
        let z = config.non_residue.unwrap_or_else(|| F::from_base_prime_field(programs.prime.non_residue));
        let choice = config.choice;
        let all = [
            (Shape::Roots, programs.roots(method, choice), detail(method, choice)),
            (Shape::Ratios, programs.ratios(z, choice), detail(Method::Table, choice)),
            (Shape::Symbols, Ok(programs.symbols()), detail(Method::Power, choice)),
        ];
        all.into_iter()
            .filter_map(|(shape, program, detail)| Some(spec::<F>(shape, &Arc::new(program.ok()?), &detail)))
            .collect()
    }

    /// Returns the method in the prime field.
    pub fn method(&self) -> Method {
        self.inner.method
    }

    /// Returns the number of multiplications and squarings that [`Sqrt::sqrt`] takes for one element, with the check.
    /// For methods that search it is the expected number.
    pub fn products(&self) -> u64 {
        self.inner.products
    }

    /// Returns Z of [`Sqrt::sqrt_ratio`].
    pub fn non_residue(&self) -> F {
        self.inner.non_residue
    }

    /// Returns the most bytes of device memory that a call for `len` elements allocates. [`Sqrt::sqrt_host`] allocates
    /// the elements, the roots and the mask. Calls on views allocate nothing.
    pub fn required_bytes(&self, len: usize) -> u64 {
        host_bytes::<F>(len)
    }

    /// Writes a root of each element, `out[i]² = a[i]`, and `mask[i] = 1`. Where there is no root, both are 0.
    ///
    /// # Errors
    /// [`Error::Device`] holds one of these:
    /// - [`Length`](evariste_backend::Error::Length): the numbers of elements, roots and entries of the mask differ.
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice): elements, roots, the mask or the queue are of another
    ///   device.
    /// - [`TooLarge`](evariste_backend::Error::TooLarge): there are more than 2^31 elements, or the method exceeds the
    ///   loop iterations of a thread.
    /// - Another error, if the device fails.
    pub fn sqrt<'a>(
        &self,
        a: impl Into<View<'a, Mont<F>>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
        mask: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        let (a, out, mask) = (a.into(), out.into(), mask.into());
        out.expect_len("the roots", a.len())?;
        self.launch(&self.inner.roots, &[a], Some(out), mask)
    }

    /// Takes roots of quotients as `sqrt_ratio` of RFC 9380 does (appendix F.2.1), with Z of the [`SqrtConfig`]:
    ///
    /// - If the quotient is a square, `out[i]² = u[i] / v[i]` and `mask[i] = 1`.
    /// - Otherwise `out[i]² = Z · u[i] / v[i]` and `mask[i] = 0`.
    /// - If v is 0, `out[i]` is 0, and the mask says whether u is 0.
    ///
    /// It needs no inversion, and costs about n + n / 6 products more than a root by [`Method::Table`].
    ///
    /// # Errors
    /// [`Error::Field`] if the field is an extension. [`Error::Device`] at the first call if the kernel does not
    /// compile.
    ///
    /// [`Error::Device`] at any call holds one of these:
    /// - [`Length`](evariste_backend::Error::Length): the numbers of numerators, denominators, roots and entries of the
    ///   mask differ.
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice): numerators, denominators, roots, the mask or the queue
    ///   are of another device.
    /// - [`TooLarge`](evariste_backend::Error::TooLarge): there are more than 2^31 elements, or the program exceeds the
    ///   loop iterations of a thread.
    /// - Another error, if the device fails.
    pub fn sqrt_ratio<'a>(
        &self,
        u: impl Into<View<'a, Mont<F>>>,
        v: impl Into<View<'a, Mont<F>>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
        mask: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        let (u, v, out, mask) = (u.into(), v.into(), out.into(), mask.into());
        v.expect_len("the denominators", u.len())?;
        out.expect_len("the roots", u.len())?;
        self.queue.expect_device(self.inner.queue.device())?;
        let loaded = self.loaded(&self.inner.ratios, Shape::Ratios, Method::Table, |inner| {
            inner.programs.ratios(inner.non_residue, inner.choice)
        })?;
        self.launch(loaded, &[u, v], Some(out), mask)
    }

    /// Computes the quadratic character of each element, the Legendre symbol in a prime field. `symbols[i]` is 1 for a
    /// square, 0 for 0, and `u32::MAX` (−1) for a non-residue. It takes an exponentiation by (p − 1) / 2.
    ///
    /// # Errors
    /// [`Error::Device`] at the first call if the kernel does not compile.
    ///
    /// [`Error::Device`] at any call holds one of these:
    /// - [`Length`](evariste_backend::Error::Length): there is not one symbol for each element.
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice): elements, symbols or the queue are of another device.
    /// - [`TooLarge`](evariste_backend::Error::TooLarge): there are more than 2^31 elements, or the exponentiation
    ///   exceeds the loop iterations of a thread.
    /// - Another error, if the device fails.
    pub fn legendre<'a>(&self, a: impl Into<View<'a, Mont<F>>>, symbols: impl Into<ViewMut<'a, u32>>) -> Result<()> {
        let (a, symbols) = (a.into(), symbols.into());
        self.queue.expect_device(self.inner.queue.device())?;
        let loaded =
            self.loaded(&self.inner.symbols, Shape::Symbols, Method::Power, |inner| Ok(inner.programs.symbols()))?;
        self.launch(loaded, &[a], None, symbols)
    }

    /// Takes the roots of elements in host memory, `None` for non-residues. Waits for the device.
    ///
    /// # Errors
    /// [`Error::Device`] holds one of these:
    /// - [`WrongDevice`](evariste_backend::Error::WrongDevice): the queue is of another device.
    /// - [`TooLarge`](evariste_backend::Error::TooLarge): there are more than 2^31 elements, or the method exceeds the
    ///   loop iterations of a thread.
    /// - [`OutOfMemory`](evariste_backend::Error::OutOfMemory): the device has no room for [`Sqrt::required_bytes`].
    /// - Another error, if the device fails.
    pub fn sqrt_host(&self, a: &[F]) -> Result<Vec<Option<F>>> {
        on_host(self.inner.queue.device(), &self.queue, a, |elements, out, mask| self.sqrt(elements, out, mask))
    }

    fn loaded<'a>(
        &'a self,
        slot: &'a Lazy<Loaded<Params, F::BasePrimeField>>,
        shape: Shape,
        method: Method,
        program: impl FnOnce(&Inner<F>) -> Result<Program<F::BasePrimeField>>,
    ) -> Result<&'a Loaded<Params, F::BasePrimeField>> {
        slot.get_or_make(|| {
            let program = Arc::new(program(&self.inner)?);
            Loaded::new(&self.inner.queue, &program, spec::<F>(shape, &program, &detail(method, self.inner.choice)))
        })
    }

    fn launch(
        &self,
        loaded: &Loaded<Params, F::BasePrimeField>,
        inputs: &[View<'_, Mont<F>>],
        out: Option<ViewMut<'_, Mont<F>>>,
        verdicts: ViewMut<'_, u32>,
    ) -> Result<()> {
        let want = self.inner.choice.parity();
        loaded.launch(&self.queue, want, inputs, out, verdicts)
    }

    /// The same plan with launches of `each` elements.
    #[cfg(test)]
    pub(crate) fn in_launches_of(mut self, each: usize) -> Self {
        let inner = Arc::get_mut(&mut self.inner).expect("a plan with one handle");
        let others = [&mut inner.ratios, &mut inner.symbols].into_iter().filter_map(Lazy::get_mut);
        std::iter::once(&mut inner.roots).chain(others).for_each(|loaded| loaded.each = each);
        self
    }
}

fn detail(method: Method, choice: RootChoice) -> String {
    format!("{method:?}, {choice:?}")
}

impl<F: RootField> fmt::Debug for Sqrt<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqrt")
            .field("device", self.queue.device())
            .field("method", &self.inner.method)
            .field("choice", &self.inner.choice)
            .finish_non_exhaustive()
    }
}
