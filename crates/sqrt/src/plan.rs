use std::{
    fmt,
    marker::PhantomData,
    ops::Range,
    sync::{Arc, Mutex},
};

use ark_ff::{Field, Zero};
use evariste_backend::{
    Arg, Binding, BindingList, BindingType, Buffer, CpuArg, Device, DeviceInfo, Kernel, KernelSpec, Language, Lazy,
    Queue, Ready, View, ViewMut, parallel, params,
};
use evariste_field::{DeviceField, DevicePrimeField, Mont, ifma::STEP, source};

use crate::{
    Error, Result, RootField,
    machine::{self, Machine, THREADS},
    methods::{self, Prime},
    program::{LANES, Program},
};

/// Says how roots are computed in a prime field, with p − 1 = 2^n · m for odd m and b bits of p. Costs are
/// multiplications and squarings for one element, without the squaring that checks it; W(b) is an exponentiation by b
/// bits with sliding windows, about b + b / 6 + 9.
///
/// [`Sqrt`] takes the first three where they apply, and else the cheaper of [`Table`](Self::Table) and
/// [`Cipolla`](Self::Cipolla). The others are there to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// p ≡ 3 (mod 4): a^((p + 1) / 4). W(b − 2) + 1.
    Power,
    /// p ≡ 5 (mod 8): one exponentiation, and a root of −1 that comes of it. W(b − 3) + 4. Atkin, "Probabilistic primality
    /// testing", INRIA 1992.
    Atkin,
    /// p ≡ 9 (mod 16): one exponentiation, and a second case by multiplications with constants. W(b − 4) + 10. Müller, "On the
    /// computation of square roots in finite fields", Designs, Codes and Cryptography 31 (2004), with the constants of Kong,
    /// Cai, Yu and Li.
    Muller,
    /// Any p: Tonelli–Shanks with logarithms of k = ⌈n / 8⌉ digits, found in tables of 2^⌈n / k⌉ powers for each. All elements
    /// take the same steps. W(b − n) + (k − 1) ⌈n / k⌉ + k (k + 1) / 2 + 3. Bernstein, "Faster square roots in annoying finite
    /// fields" (2001); Sarkar, "Computing square roots faster than the Tonelli-Shanks/Bernstein algorithm" (2020). A digit's
    /// logarithm is read at a place that one multiplication of its lowest limb gives.
    Table,
    /// p ≡ 1 (mod 4): a Lucas sequence, after a search for t such that t² a − 4 is no square: 2 b, and about 2 W(b) for two
    /// attempts. Cipolla (1903), Lehmer (1969), in the form of Müller's paper above. For p − 1 with a huge power of 2. One in
    /// 2^64 elements is not served: its verdict is 0.
    Cipolla,
    /// Any p: one binary digit of the logarithm after the other. W(b − n) + (n − 1) (n + 2) / 2 + 2. Shanks, "Five number-theoretic
    /// algorithms" (1972), with as many squarings for all elements.
    Serial,
    /// Tonelli–Shanks, n ≤ 64: all powers a^(m 2^j) are columns that each digit brings up to date, by multiplications that do
    /// not wait for one another. W(b − n) + (n − 1) (n + 2) + 2.
    PowerMatrix,
    /// The same with only the columns that later digits look at. W(b − n) + (n − 1) (n + 2) / 2 + 2: as many as
    /// serially, but n in a row at most.
    NeededColumns,
    /// Tonelli–Shanks, n ≤ 64, by the 32 threads of a warp together: thread j has the power a^(m 2^j), and each digit brings all
    /// of them up to date by one product of all threads at once. While one thread squares, the others multiply by its squares.
    /// b + n − 2 products in a row at most for n ≤ 32, and for more n − 33 more; those of digits that are 0 are left out. For few
    /// elements: it saves time, and takes 32 threads each.
    Warp,
    /// p ≡ 1 (mod 4), or p − 1 has an odd prime factor below 32: in the group of classes of u + v √a, without knowing the root
    /// and without a non-residue, by roots of unity of order 4 and of the orders of those primes. About 6 (b − n) for an attempt,
    /// 4 n, and W(b); where an odd prime is needed, 6 b for each that is tried. Sze, "On taking square roots without quadratic nonresidues over finite fields", Mathematics of Computation 80
    /// (2011). It tries as many elements as serve all but one in 2^64 random elements, 64 at most. Squares can be chosen that none of
    /// them serves, which then come out as having no root: use another method for elements that others choose.
    Sze,
}

impl Method {
    /// All variants, for going through them.
    pub const ALL: [Self; 10] = [
        Method::Power,
        Method::Atkin,
        Method::Muller,
        Method::Table,
        Method::Cipolla,
        Method::Serial,
        Method::PowerMatrix,
        Method::NeededColumns,
        Method::Warp,
        Method::Sze,
    ];
}

/// Says which of the two roots y and −y is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Choice {
    /// Whichever the method gives. It is the same on every device, but not for every method.
    #[default]
    Any,
    /// That with `sgn0` = 0 in RFC 9380: the lowest coefficient that is not zero is even.
    Even,
    /// The one that comes first in lexicographic order, the highest coefficient first: that is at most (p − 1) / 2.
    Smaller,
    /// The other one: the "lexicographically largest" of the encodings of points.
    Larger,
}

impl Choice {
    /// All variants, for going through them.
    pub const ALL: [Self; 4] = [Choice::Any, Choice::Even, Choice::Smaller, Choice::Larger];

    /// The parity that programs make.
    pub(crate) fn parity(self) -> u32 {
        u32::from(self == Choice::Larger)
    }
}

/// Says how a [`Sqrt`] takes roots.
#[derive(Clone, Copy, Debug)]
pub struct Config<F> {
    /// How roots are computed in a prime field; `None` is what costs least.
    pub method: Option<Method>,
    /// Which roots are given.
    pub choice: Choice,
    /// Z of [`Sqrt::ratios`]; `None` is the smallest integer that is no square.
    pub non_residue: Option<F>,
}

impl<F> Default for Config<F> {
    fn default() -> Self {
        Self { method: None, choice: Choice::Any, non_residue: None }
    }
}

params! {
    pub(crate) struct Params {
        pub(crate) len: u32,
        pub(crate) want: u32,
    }
}

/// What a kernel takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Roots,
    Ratios,
    Symbols,
    Maps,
}

impl Shape {
    const fn name(self) -> &'static str {
        match self {
            Shape::Roots => "roots",
            Shape::Ratios => "ratios",
            Shape::Symbols => "symbols",
            Shape::Maps => "maps",
        }
    }

    /// Elements of the prime field that come out for one of a field of this degree.
    const fn outputs(self, degree: usize) -> usize {
        match self {
            Shape::Roots | Shape::Ratios => degree,
            Shape::Symbols => 0,
            Shape::Maps => 3 * degree,
        }
    }
}

/// A kernel with its program on the device.
pub(crate) struct Loaded<P, B: DevicePrimeField> {
    pub(crate) kernel: Kernel<P>,
    pub(crate) program: Buffer<u32>,
    pub(crate) constants: Buffer<Mont<B>>,
    pub(crate) hashed: Buffer<u32>,
    /// Elements of one launch.
    pub(crate) each: usize,
    /// Threads that work on one element.
    lanes: u32,
    ready: Ready,
}

impl<P: evariste_backend::Params, B: DevicePrimeField> Loaded<P, B> {
    pub(crate) fn new(queue: &Queue, program: &Program<B>, spec: KernelSpec) -> Result<Self> {
        let device = queue.device();
        Ok(Self {
            kernel: Kernel::new(device, spec)?,
            program: queue.upload(&program.words())?,
            constants: queue.upload(&program.constants)?,
            hashed: queue.upload(&program.hash.entries)?,
            each: launch_len::<B>(device.info(), program.products()) / program.lanes() as usize,
            lanes: program.lanes(),
            ready: Ready::behind(queue)?,
        })
    }

    /// Refuses a queue of another device, before anything goes there.
    pub(crate) fn expect_queue(&self, queue: &Queue) -> Result<()> {
        Ok(self.kernel.device().expect_same("the queue of roots", queue.device())?)
    }

    /// The arguments of a launch on a queue, before those of the kernel itself.
    pub(crate) fn args(&self, queue: &Queue) -> Result<Vec<Arg<'_>>> {
        self.ready.wait(queue)?;
        Ok(vec![Arg::read(&self.program), Arg::read(&self.constants), Arg::read(&self.hashed)])
    }
}

impl<B: DevicePrimeField> Loaded<Params, B> {
    /// Runs the program on all elements of the inputs. `want` is the parity of the root that is chosen.
    pub(crate) fn launch<F: RootField<BasePrimeField = B>>(
        &self,
        queue: &Queue,
        want: u32,
        inputs: &[View<'_, Mont<F>>],
        mut out: Option<ViewMut<'_, Mont<F>>>,
        mut verdicts: ViewMut<'_, u32>,
    ) -> Result<()> {
        let len = inputs[0].len();
        verdicts.expect_len("the mask", len)?;
        checked_len(self.program.device(), "a batch of roots", len)?;
        for part in parts(len, self.each) {
            let params = Params { len: part.len() as u32, want };
            let mut args = self.args(queue)?;
            for input in inputs {
                args.push(Arg::read(input.view(part.clone())?));
            }
            if let Some(out) = &mut out {
                args.push(Arg::write(out.view_mut(part.clone())?));
            }
            args.push(Arg::write(verdicts.view_mut(part)?));
            let groups = params.len.div_ceil(THREADS / self.lanes).into();
            // SAFETY: inputs, outputs and verdicts have `len` elements, and threads touch only those below it. The program refers
            // to its own slots, constants and digits alone, and a hash gives places in its table for any element.
            unsafe { self.kernel.launch(queue, groups, &params, &mut args) }?;
        }
        Ok(())
    }
}

/// What `roots` makes of elements in host memory, by buffers for these, the roots and the mask. Waits for the device.
pub(crate) fn on_host<F: RootField>(
    queue: &Queue,
    a: &[F],
    roots: impl FnOnce(&Buffer<Mont<F>>, &mut Buffer<Mont<F>>, &mut Buffer<u32>) -> Result<()>,
) -> Result<Vec<Option<F>>> {
    let device = queue.device();
    let mut elements = device.alloc::<Mont<F>>(a.len())?;
    let (mut out, mut mask) = (device.alloc::<Mont<F>>(a.len())?, device.alloc::<u32>(a.len())?);
    queue.write(&mut elements, a)?;
    roots(&elements, &mut out, &mut mask)?;
    let (roots, mask) = (queue.download(&out)?, queue.download(&mask)?);
    let (roots, mask) = (roots.wait()?, mask.wait()?);
    Ok(roots.into_iter().zip(mask).map(|(root, is_one)| (is_one == 1).then_some(root)).collect())
}

/// Takes square roots of the elements of buffers on one device: one thread an element, by the algorithm that suits the
/// prime ([`Method`]).
///
/// Roots come with a mask, computed in the same kernel by squaring them: 1 where there is a root, 0 where there is none and the
/// output is zero. Multiplications and squarings for one element, all told:
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
/// Roots in a quadratic extension x² = β are had by the norm, with two exponentiations in the prime field.
///
/// ```
/// # fn main() -> Result<(), evariste_sqrt::Error> {
/// use ark_bls12_381::Fr;
/// use evariste_backend::Device;
/// use evariste_field::Mont;
/// use evariste_sqrt::{Choice, Config, Sqrt};
///
/// let device = Device::best()?;
/// let squares = device.upload::<Mont<Fr>>(&[4, 5, 9].map(Fr::from))?;
/// let (mut roots, mut mask) = (device.alloc(3)?, device.alloc(3)?);
/// let sqrt = Sqrt::<Fr>::with(&device, Config { choice: Choice::Smaller, ..Config::default() })?;
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
    field: Plan<F>,
    choice: Choice,
    method: Method,
    /// Z.
    non_residue: F,
    roots: Loaded<Params, F::BasePrimeField>,
    products: u64,
    ratios: Lazy<Loaded<Params, F::BasePrimeField>>,
    symbols: Lazy<Loaded<Params, F::BasePrimeField>>,
}

/// The programs of a field.
pub(crate) struct Plan<F: RootField> {
    pub(crate) prime: Prime<F::BasePrimeField>,
    /// β of a quadratic extension, which is no square: else that would be no field.
    pub(crate) beta: Option<F::BasePrimeField>,
    field: PhantomData<fn() -> F>,
}

impl<F: RootField> Plan<F> {
    pub(crate) fn new() -> Result<Self> {
        let (beta, prime) = (beta::<F>()?, Prime::new()?);
        if beta.is_some_and(|beta| prime.symbol(beta) != -F::BasePrimeField::ONE) {
            return Err(Error::Square);
        }
        Ok(Self { prime, beta, field: PhantomData })
    }

    fn roots(&self, method: Method, choice: Choice) -> Result<Program<F::BasePrimeField>> {
        match self.beta {
            Some(beta) => Ok(methods::roots2(&self.prime, beta, choice)),
            None => methods::roots(&self.prime, method, choice),
        }
    }

    fn ratios(&self, z: F, choice: Choice) -> Result<Program<F::BasePrimeField>> {
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
    /// Makes a plan for any root, by the method that costs least, on a queue (`&device` is its default one).
    ///
    /// # Errors
    /// Returns the errors of [`Sqrt::with`], for the same reasons.
    pub fn new(queue: impl Into<Queue>) -> Result<Self> {
        Self::with(queue, Config::default())
    }

    /// Makes a plan for roots as configured: makes the program and its tables, and compiles the kernel for them. Those
    /// of [`Sqrt::ratios`] and [`Sqrt::symbols`] are made at their first use.
    ///
    /// # Errors
    /// [`Error::Method`] if the method is not for this prime; [`Error::Field`] if the field is neither prime nor a quadratic
    /// extension x² = β of a prime field, or if a method is given for an extension; [`Error::Square`] if the Z of the
    /// configuration or β is a square; [`Error::Modulus`] if the modulus is no prime; [`Error::Device`] if a kernel does not
    /// compile, if the device has no room for the tables, or if it fails.
    pub fn with(queue: impl Into<Queue>, config: Config<F>) -> Result<Self> {
        let queue = queue.into();
        let field = Plan::<F>::new()?;
        if field.beta.is_some() && config.method.is_some() {
            return Err(Error::Field { what: "methods of prime fields", degree: F::extension_degree() });
        }
        let method = match config.method {
            Some(method) => method,
            None if field.beta.is_some() => Method::Table,
            None => methods::best(&field.prime)?,
        };
        let default = F::from_base_prime_field(field.prime.non_residue);
        let non_residue = config.non_residue.unwrap_or(default);
        if config.non_residue.is_some() && !non_residue.legendre().is_qnr() {
            return Err(Error::Square);
        }
        let program = Arc::new(field.roots(method, config.choice)?);
        let roots = Loaded::new(&queue, &program, spec::<F>(Shape::Roots, &program, &detail(method, config.choice)))?;
        let (ratios, symbols, products) = (Lazy::default(), Lazy::default(), program.products());
        let (made_on, choice) = (queue.clone(), config.choice);
        let inner = Inner { queue: made_on, field, choice, method, non_residue, roots, products, ratios, symbols };
        Ok(Self { queue, inner: Arc::new(inner) })
    }

    /// Gives the same operations, with the same kernels, on a queue of their own.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), inner: Arc::clone(&self.inner) }
    }

    /// Lists the kernels of the method that costs least and any choice of root, for compiling them ahead; none for a
    /// field that [`Sqrt::with`] refuses.
    pub fn kernels() -> Vec<KernelSpec> {
        Self::kernels_of(&Config::default())
    }

    /// Lists the kernels of a configuration, for compiling them ahead; none for a field or a method that [`Sqrt::with`]
    /// refuses.
    pub fn kernels_of(config: &Config<F>) -> Vec<KernelSpec> {
        let Ok(field) = Plan::<F>::new() else { return Vec::new() };
        let method = match config.method {
            Some(_) if field.beta.is_some() => return Vec::new(),
            Some(method) => Ok(method),
            None if field.beta.is_some() => Ok(Method::Table),
            None => methods::best(&field.prime),
        };
        let Ok(method) = method else { return Vec::new() };
        let z = config.non_residue.unwrap_or_else(|| F::from_base_prime_field(field.prime.non_residue));
        let choice = config.choice;
        let all = [
            (Shape::Roots, field.roots(method, choice), detail(method, choice)),
            (Shape::Ratios, field.ratios(z, choice), detail(Method::Table, choice)),
            (Shape::Symbols, Ok(field.symbols()), detail(Method::Power, choice)),
        ];
        all.into_iter()
            .filter_map(|(shape, program, detail)| Some(spec::<F>(shape, &Arc::new(program.ok()?), &detail)))
            .collect()
    }

    /// Gives the method that is used in the prime field.
    pub fn method(&self) -> Method {
        self.inner.method
    }

    /// Counts the multiplications and squarings that [`Sqrt::sqrt`] takes for one element, the check included; for
    /// methods that search, those expected.
    pub fn products(&self) -> u64 {
        self.inner.products
    }

    /// Gives Z of [`Sqrt::ratios`].
    pub fn non_residue(&self) -> F {
        self.inner.non_residue
    }

    /// Writes a root of each element, `out[i]² = a[i]`, and `mask[i] = 1`; where there is no root, both are 0.
    ///
    /// # Errors
    /// [`Error::Device`], with [`Length`](evariste_backend::Error::Length) unless roots and mask are as many as the
    /// elements, with [`WrongDevice`](evariste_backend::Error::WrongDevice) if one of the three lies on another device,
    /// with [`TooLarge`](evariste_backend::Error::TooLarge) for more than 2^31 elements or for a method that takes more
    /// turns of loops than a thread of the device may do, or with what the device fails with.
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

    /// Takes roots of quotients, as `sqrt_ratio` of RFC 9380, appendix F.2.1: `out[i]² = u[i] / v[i]` and `mask[i] = 1`
    /// where that is a square, else `out[i]² = Z · u[i] / v[i]` and `mask[i] = 0`, with Z of the [`Config`]. Without an
    /// inversion: about n + n / 6 products more than a root by [`Method::Table`]. Where v is 0, `out[i]` is 0, and the
    /// mask says whether u is 0.
    ///
    /// # Errors
    /// [`Error::Field`] if the field is an extension; [`Error::Device`] if denominators, roots or mask are not as many
    /// as the numerators or, at the first call, if the kernel does not compile; and the errors of [`Sqrt::sqrt`], for
    /// the same reasons.
    pub fn ratios<'a>(
        &self,
        u: impl Into<View<'a, Mont<F>>>,
        v: impl Into<View<'a, Mont<F>>>,
        out: impl Into<ViewMut<'a, Mont<F>>>,
        mask: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        let (u, v, out, mask) = (u.into(), v.into(), out.into(), mask.into());
        v.expect_len("the denominators", u.len())?;
        out.expect_len("the roots", u.len())?;
        let loaded = self.loaded(&self.inner.ratios, Shape::Ratios, Method::Table, |inner| {
            inner.field.ratios(inner.non_residue, inner.choice)
        })?;
        self.launch(loaded, &[u, v], Some(out), mask)
    }

    /// Computes the quadratic residue symbol of each element, Legendre's in a prime field: `symbols[i]` is 1 for a
    /// square, 0 for 0, and `u32::MAX` (−1) for what is no square. An exponentiation by (p − 1) / 2.
    ///
    /// # Errors
    /// [`Error::Device`] at the first call if the kernel does not compile; and the errors of [`Sqrt::sqrt`], for the
    /// same reasons.
    pub fn symbols<'a>(&self, a: impl Into<View<'a, Mont<F>>>, symbols: impl Into<ViewMut<'a, u32>>) -> Result<()> {
        let (a, symbols) = (a.into(), symbols.into());
        let loaded =
            self.loaded(&self.inner.symbols, Shape::Symbols, Method::Power, |inner| Ok(inner.field.symbols()))?;
        self.launch(loaded, &[a], None, symbols)
    }

    /// Takes the roots of elements in host memory, `None` where there is none. Waits for the device.
    ///
    /// # Errors
    /// [`Error::Device`], with [`OutOfMemory`](evariste_backend::Error::OutOfMemory) if the device has no room for the
    /// elements, their roots and the mask; and the errors of [`Sqrt::sqrt`], for the same reasons.
    pub fn sqrt_host(&self, a: &[F]) -> Result<Vec<Option<F>>> {
        self.expect_queue()?;
        on_host(&self.queue, a, |elements, out, mask| self.sqrt(elements, out, mask))
    }

    /// Refuses a queue of another device, before anything goes there.
    fn expect_queue(&self) -> Result<()> {
        Ok(self.inner.queue.device().expect_same("the queue of roots", self.queue.device())?)
    }

    fn loaded<'a>(
        &'a self,
        slot: &'a Lazy<Loaded<Params, F::BasePrimeField>>,
        shape: Shape,
        method: Method,
        program: impl FnOnce(&Inner<F>) -> Result<Program<F::BasePrimeField>>,
    ) -> Result<&'a Loaded<Params, F::BasePrimeField>> {
        self.expect_queue()?;
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

    /// The same operations in launches of so many elements.
    #[cfg(test)]
    pub(crate) fn in_launches_of(mut self, each: usize) -> Self {
        let inner = Arc::get_mut(&mut self.inner).expect("a plan with one handle");
        let others = [&mut inner.ratios, &mut inner.symbols].into_iter().filter_map(Lazy::get_mut);
        std::iter::once(&mut inner.roots).chain(others).for_each(|loaded| loaded.each = each);
        self
    }
}

/// Products of limbs in one launch for each unit of a device: less than a tenth of a second's on a large GPU, and on a small one
/// less than the seconds after which systems that share it with a screen take it for hanging.
const WORK: u64 = 1 << 31;

/// Elements of a launch that takes so many products in a field for each: whole workgroups, at least one for each unit.
pub(crate) fn launch_len<F: DeviceField>(info: &DeviceInfo, products: u64) -> usize {
    let each = products.max(1) * (F::LIMBS * F::LIMBS) as u64 * u64::from(THREADS);
    let groups = (WORK / each).max(1) * u64::from(info.parallelism.max(1));
    groups as usize * THREADS as usize
}

/// The elements of each launch: of one without any if there are none, so that its arguments are checked.
pub(crate) fn parts(len: usize, each: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len.div_ceil(each).max(1)).map(move |i| i * each..len.min((i + 1) * each))
}

/// Most elements of a batch.
const MAX_LEN: usize = 1 << 31;

pub(crate) fn checked_len(device: &Device, what: &'static str, len: usize) -> Result<u32> {
    match u32::try_from(len) {
        Ok(short) if len <= MAX_LEN => Ok(short),
        _ => {
            let (device, limit, actual) = (device.info().id, MAX_LEN as u64, len as u64);
            Err(Error::Device(evariste_backend::Error::TooLarge { what, device, expected: limit, actual }))
        }
    }
}

fn detail(method: Method, choice: Choice) -> String {
    format!("{method:?}, {choice:?}")
}

/// Elements in workgroup memory, and words, where the lanes of a warp work together: two for each warp.
const TILE: u32 = 2 * THREADS / LANES;

/// Elements that a CPU thread takes at a time.
const GRAIN: usize = 64;

pub(crate) fn spec<F: RootField>(shape: Shape, program: &Arc<Program<F::BasePrimeField>>, detail: &str) -> KernelSpec {
    let (word, degree) = (source::binding_type::<F::BasePrimeField>(), F::extension_degree() as usize);
    let b = (shape == Shape::Ratios).then(|| Binding::read("b", word));
    let out = (shape != Shape::Symbols).then(|| Binding::write("out", word));
    let elements = (Binding::read("a", word), b, out);
    let seen = elements.list();
    let bindings = (machine::bindings::<F::BasePrimeField>(), elements, Binding::write("verdicts", BindingType::U32));
    let rendered = Arc::clone(program);
    let source = move |language| match language {
        Language::Cuda => {
            let (pairs, out) = (u32::from(shape == Shape::Ratios), shape.outputs(degree));
            let sizes = format!("#define COEFFICIENTS {degree}\n#define PAIRS {pairs}\n#define OUT {out}\n");
            let field = source::cuda::<F::BasePrimeField>();
            let kernel =
                if rendered.columns.is_some() { evariste_cuda::sqrt::WARP } else { evariste_cuda::sqrt::ROOTS };
            [&field, &machine::cuda(&rendered), &sizes, kernel].concat()
        }
        Language::Wgsl { int64 } => {
            let accessors: String = seen.iter().map(source::wgsl_accessors::<F::BasePrimeField>).collect();
            let field = source::wgsl::<F::BasePrimeField>(int64);
            let machine = machine::wgsl(&rendered);
            let start = [&field, &*machine, &accessors].concat();
            match rendered.columns {
                None => [&start, &*wgsl_ends(shape, degree), evariste_shaders::sqrt::ROOTS].concat(),
                Some(_) => {
                    [&start, &*source::wgsl_tile::<F::BasePrimeField>(TILE), evariste_shaders::sqrt::WARP].concat()
                }
            }
        }
    };
    let (run, turns) = (Arc::clone(program), program.turns());
    let body = move |params: &Params, args: Args<'_, '_>| body::<F>(&run, shape, *params, args);
    let name = if program.columns.is_some() { "sqrt_warp" } else { "sqrt_roots" };
    let (field, program) = (source::label::<F>(), machine::label(program));
    let variant = format!("{} over {field} ({detail}; {program})", shape.name());
    let shared = if name == "sqrt_warp" { source::tile_bytes::<F::BasePrimeField>(TILE) + 4 * TILE } else { 0 };
    KernelSpec::new(name, variant, bindings, body, source)
        .threads(THREADS)
        .shared_bytes(shared)
        .turns(move |_: &Params| turns)
}

/// `inputs` and `outputs` in WGSL.
fn wgsl_ends(shape: Shape, degree: usize) -> String {
    let at = |k: usize| format!("{degree}u * i + {k}u");
    let mut inputs: String = (0..degree).map(|k| format!("  slots[{k}] = a_load({});\n", at(k))).collect();
    if shape == Shape::Ratios {
        inputs += "  slots[1] = b_load(i);\n";
    }
    let outputs: String = match shape {
        Shape::Symbols => String::new(),
        Shape::Ratios => "  out_store(i, slots[0]);\n".into(),
        Shape::Roots | Shape::Maps => {
            let count = shape.outputs(degree);
            let store = |k| format!("  out_store({count}u * i + {k}u, slots[{k}]);\n");
            let clear = |k| format!("  out_store({count}u * i + {k}u, f_zero());\n");
            let [stores, clears] =
                [&store as &dyn Fn(usize) -> String, &clear].map(|f| (0..count).map(f).collect::<String>());
            format!("  if (verdict != 0u) {{\n{stores}  }} else {{\n{clears}  }}\n")
        }
    };
    format!("fn inputs(i: u32) {{\n{inputs}}}\nfn outputs(i: u32, verdict: u32) {{\n{outputs}}}\n")
}

/// What the machine binds, elements `a`, `b` and `out`, verdicts.
type Args<'a, 'm> = (
    &'a mut [CpuArg<'m>; 3],
    (&'a mut CpuArg<'m>, Option<&'a mut CpuArg<'m>>, Option<&'a mut CpuArg<'m>>),
    &'a mut CpuArg<'m>,
);

fn body<F: RootField>(
    program: &Program<F::BasePrimeField>,
    shape: Shape,
    params: Params,
    ([words, constants, hashed], (a, b, out), verdicts): Args<'_, '_>,
) {
    let machine = Machine::new(program, words.read(), constants.read(), hashed.read());
    let (len, limbs) = (params.len as usize, F::LIMBS);
    let each = F::BasePrimeField::LIMBS;
    let (a, b) = (a.read::<u32>(), b.map(|b| b.read::<u32>()));
    let (inputs, keep) = (if b.is_some() { 2 } else { limbs / each }, shape == Shape::Ratios);
    let outputs = shape.outputs(limbs / each);
    let width = outputs * each;
    // What one thread does: the elements from number `first` on, as many as there are verdicts.
    let run = |first: usize, mut out: Option<&mut [u32]>, verdicts: &mut [u32]| {
        let mut group = machine.group(inputs.max(outputs));
        group.want = [params.want; STEP];
        for (at, verdicts) in (0..).step_by(STEP).zip(verdicts.chunks_mut(STEP)) {
            for i in 0..verdicts.len() {
                let place = (first + at + i) * limbs;
                for (k, words) in a[place..place + limbs].chunks_exact(each).enumerate() {
                    group.words(k, i).copy_from_slice(words);
                }
                if let Some(b) = b {
                    group.words(1, i).copy_from_slice(&b[place..place + each]);
                }
            }
            machine.run(&mut group, verdicts.len());
            verdicts.copy_from_slice(&group.verdicts[..verdicts.len()]);
            let Some(out) = &mut out else { continue };
            let out = out[at * width..].chunks_exact_mut(width);
            for (i, (out, verdict)) in out.zip(verdicts).enumerate() {
                for (k, words) in out.chunks_exact_mut(each).enumerate() {
                    if *verdict != 0 || keep { words.copy_from_slice(group.words(k, i)) } else { words.fill(0) }
                }
            }
        }
    };
    let verdicts = &mut verdicts.write::<u32>()[..len];
    let Some(out) = out else {
        return parallel::chunks(verdicts, GRAIN, &|chunk, verdicts| run(chunk * GRAIN, None, verdicts));
    };
    let verdicts: Vec<_> = verdicts.chunks_mut(GRAIN).map(Mutex::new).collect();
    parallel::chunks(&mut out.write::<u32>()[..len * width], GRAIN * width, &|chunk, out| {
        // Nobody else takes this chunk.
        if let Ok(mut verdicts) = verdicts[chunk].lock() {
            run(chunk * GRAIN, Some(out), &mut verdicts);
        }
    });
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
