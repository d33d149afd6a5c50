use std::{fmt, sync::Arc};

use crypto_bigint::{BoxedUint, Resize};
#[cfg(doc)]
use evariste_backend::Error as DeviceError;
use evariste_backend::{Device, Queue, View, ViewMut, author::KernelSpec};
use rayon::prelude::*;
use zeroize::Zeroizing;

#[cfg(doc)]
use crate::error::Error;
use crate::{
    config::{ModSqrtConfig, RootChoice},
    error::Result,
    jacobi,
    kernel::{self, Batch, RootKernel, StepList, choice, mask},
    moduli::{Moduli, same_limbs},
    number,
    prime::{self, Prime},
    steps,
};

/// The outcome for one element, as an entry of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Outcome {
    /// The element is no square. The root is written as 0.
    NoRoot = mask::NO_ROOT,
    /// The output is a root.
    Root = mask::ROOT,
    /// The element is not below its prime. The root is written as 0.
    NotReduced = mask::NOT_REDUCED,
    /// The element's index is not below the number of primes. The root is written as 0.
    NoPrime = mask::NO_PRIME,
}

impl Outcome {
    /// Reads an entry of a mask; `None` for a value that is no outcome.
    pub fn from_mask(entry: u32) -> Option<Self> {
        [Self::NoRoot, Self::Root, Self::NotReduced, Self::NoPrime].into_iter().find(|outcome| *outcome as u32 == entry)
    }
}

/// Takes square roots modulo primes of 2 to 4096 bits. A program may get the primes when it runs.
///
/// # Data
/// An element is [`ModSqrt::limbs`] little-endian 32-bit limbs with zeros above its value. A buffer of n elements has n
/// · limbs words. A batch may have several primes of the same number of limbs, with an index for each element
/// ([`ModSqrt::sqrt_indexed`]).
///
/// # Method
/// Let p − 1 = 2^s q with odd q. By windows of 4 bits, w = a^((q − 1)/2), x = a w and b = x w, so that x² = a b. If p ≡
/// 3 (mod 4), then b = 1.
///
/// Otherwise b is a power of z, the q-th power of a non-residue that the plan finds. Dividing x by the power of z with
/// half of the logarithm of b corrects it (Tonelli and Shanks). Pohlig and Hellman's halving of its bits gives the
/// logarithm, so that every element takes the same steps. The mask says whether x² = a in the end.
///
/// # Cost
/// In multiplications modulo p, for primes of k bits:
///
/// | p | multiplications |
/// |---|---|
/// | ≡ 3 (mod 4) | 5/4 k + 20 |
/// | ≡ 5 (mod 8) | 5/4 k + 22. Atkin's formula takes one more, where the non-residue's power is known |
/// | ≡ 9 (mod 16) | 5/4 k + 25. Müller's takes a second exponentiation for half of the elements |
/// | any | 5/4 (k − s) + 20 + (s − 1)(1 + ⌈log₂ (s − 1)⌉) at most |
///
/// Tonelli and Shanks' own loop would take s²/2 for the correction. Cipolla's method takes about 5 k on average, and
/// twice that where 32 threads wait for the unluckiest of them. So halving is the cheapest for all s up to about k.
/// [`ModSqrt::multiplications`] returns the number for a plan. A batch of several primes costs the largest s and the
/// longest exponent among them.
///
/// A multiplication of l limbs is 2 l² + l products of 32-bit limbs, and a root of 1024 bits takes 2.7 million. An H200
/// has 132 multiprocessors at 1.755 GHz. At 32 such products a clock for each, it would take 2.7 million such roots a
/// second. This is an estimate from the kernel's instructions and from the rate measured for shorter fields.
///
/// A call keeps 20 elements of scratch for each element in work at once ([`ModSqrt::required_bytes`]).
///
/// The device keeps the kernel of each number of limbs: a new prime of the same length compiles nothing. The number of
/// multiplications does not depend on the elements, but the time may. On the CPU the last subtraction of each is a
/// branch, and the addresses of reads depend on the primes and on the elements.
///
/// ```
/// # fn main() -> Result<(), evariste_modsqrt::Error> {
/// use evariste_backend::Device;
/// use evariste_modsqrt::{BoxedUint, ModSqrt};
///
/// let prime = BoxedUint::from((1u128 << 127) - 1);
/// let roots = ModSqrt::new(&Device::best()?, &prime)?;
/// let found = roots.sqrt_host(&[BoxedUint::from(49u32), BoxedUint::from(3u32)])?;
/// assert!(found[0] == Some(BoxedUint::from(7u32)) || found[0] == Some(prime.wrapping_sub(&BoxedUint::from(7u32))));
/// assert_eq!(found[1], None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ModSqrt {
    kernel: Arc<RootKernel>,
    queue: Queue,
    choice: RootChoice,
    primes: Arc<Primes>,
}

/// The primes of a plan, and the steps to roots modulo any of them.
struct Primes {
    moduli: Moduli,
    roots: StepList,
}

impl fmt::Debug for ModSqrt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.primes.moduli.describe(f, "ModSqrt", "primes", (self.device(), self.limbs()))
    }
}

impl ModSqrt {
    /// Makes a plan for one prime on a queue (`&device` is its default one). Testing a prime of 2048 bits takes half a
    /// second on one core, and all cores share the work.
    ///
    /// # Errors
    /// - [`Error::ModulusBits`]: the prime has other than 2 to 4096 bits.
    /// - [`Error::EvenModulus`]: it is even.
    /// - [`Error::Composite`]: it fails the tests.
    /// - [`Error::Randomness`]: the system gives no random bytes for the tests.
    /// - [`Error::Device`]: the kernel does not compile, or the device has no room for the constants or fails.
    pub fn new(queue: impl Into<Queue>, prime: &BoxedUint) -> Result<Self> {
        Self::with_config(queue, prime, ModSqrtConfig::default())
    }

    /// Makes a plan for one prime with a configuration.
    ///
    /// # Errors
    /// - [`Error::ModulusBits`]: the prime has other than 2 to 4096 bits.
    /// - [`Error::EvenModulus`]: it is even.
    /// - [`Error::Composite`]: it fails the tests.
    /// - [`Error::Randomness`]: the system gives no random bytes for the tests.
    /// - [`Error::Device`]: the kernel does not compile, or the device has no room for the constants or fails.
    pub fn with_config(queue: impl Into<Queue>, prime: &BoxedUint, config: ModSqrtConfig) -> Result<Self> {
        Self::with_primes(queue, std::slice::from_ref(prime), config)
    }

    /// Makes a plan for some primes of the same number of limbs.
    ///
    /// Each prime must pass the test of Baillie, Pomerance, Selfridge and Wagstaff, and 32 rounds of Miller and Rabin's
    /// with random bases. A composite passes with a probability of at most 2^−64, even one that an attacker chose.
    ///
    /// # Errors
    /// [`Error::NoModulus`] without a prime. [`Error::Randomness`] if the system gives no random bytes for the tests.
    ///
    /// Four errors name the first prime at fault:
    /// - [`Error::ModulusBits`]: it has other than 2 to 4096 bits.
    /// - [`Error::EvenModulus`]: it is even.
    /// - [`Error::Composite`]: it fails the tests.
    /// - [`Error::ModulusLimbs`]: it has another number of limbs than the first.
    ///
    /// [`Error::Device`] holds one of these:
    /// - [`DeviceError::Compile`]: the compiler refuses the kernel.
    /// - [`DeviceError::Unavailable`]: the compiler is missing.
    /// - [`DeviceError::TooLarge`]: the constants are larger than a buffer.
    /// - [`DeviceError::OutOfMemory`]: the device has no room for the constants.
    /// - [`DeviceError::Driver`]: a call of the driver fails.
    /// - [`DeviceError::Lost`]: the device is gone.
    pub fn with_primes(queue: impl Into<Queue>, primes: &[BoxedUint], config: ModSqrtConfig) -> Result<Self> {
        let queue = queue.into();
        let primes =
            primes.iter().enumerate().map(|(index, prime)| Prime::new(index, prime)).collect::<Result<Vec<_>>>()?;
        let limbs = same_limbs(primes.iter().map(|prime| prime.modulus.limbs))?;
        let most = |of: fn(&Prime) -> u32| primes.iter().map(of).max().unwrap_or(1);
        let adicity = most(|prime| prime.adicity);
        let stride = prime::stride(limbs, adicity);
        let mut words = Zeroizing::new(vec![0; stride * primes.len()]);
        words.par_chunks_exact_mut(stride).zip(&primes).for_each(|(words, prime)| prime.store(adicity, words));
        let kernel = RootKernel::new(queue.device(), limbs)?;
        let roots = StepList::new(&queue, &steps::roots(most(Prime::exponent_bits), adicity))?;
        let moduli = Moduli::new(&queue, primes.iter().map(|prime| prime.modulus.value()), &words, config.secrecy)?;
        Ok(Self { kernel, queue, choice: config.choice, primes: Arc::new(Primes { moduli, roots }) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), ..self.clone() }
    }

    /// Returns the same plan with another choice among the two roots.
    #[must_use]
    pub fn with_choice(&self, choice: RootChoice) -> Self {
        Self { choice, ..self.clone() }
    }

    /// The queue, for what is uploaded before a launch could refuse it: never one of another device.
    pub(crate) fn own_queue(&self) -> Result<&Queue> {
        Ok(self.queue.expect_device(self.device())?)
    }

    /// Returns the device of the plan.
    pub fn device(&self) -> &Device {
        self.kernel.device()
    }

    /// Returns the number of 32-bit limbs of an element: [`limbs`](crate::limbs) of the bits of a prime.
    pub fn limbs(&self) -> usize {
        self.kernel.limbs()
    }

    /// Returns the number of primes of the plan.
    pub fn primes(&self) -> usize {
        self.primes.moduli.len()
    }

    /// Returns the number of multiplications modulo the prime that one root takes.
    pub fn multiplications(&self) -> usize {
        self.primes.roots.multiplications()
    }

    /// Returns the most bytes of device memory that a call for `len` elements allocates. [`ModSqrt::sqrt_host`]
    /// allocates the values, the roots, the mask and the scratch. Calls on views allocate the scratch alone.
    pub fn required_bytes(&self, len: usize) -> u64 {
        let element = 4 * (2 * self.limbs() + 1);
        self.kernel.required_bytes(len).saturating_add((element as u64).saturating_mul(len as u64))
    }

    /// Returns the kernels for primes of `bits` bits, so that you can compile them ahead. The list is empty for an
    /// unsupported length.
    #[doc(hidden)]
    pub fn kernels(bits: u32) -> Vec<KernelSpec> {
        let possible = (number::MIN_BITS..=number::MAX_BITS).contains(&bits);
        possible.then(|| kernel::spec(number::limbs(bits))).into_iter().collect()
    }

    /// Writes a root of each value, and an entry of the mask that says whether there is one ([`Outcome`]).
    ///
    /// # Errors
    /// [`Error::Indices`] if there are several primes.
    ///
    /// [`Error::Device`] holds one of these. With the first three, nothing is written.
    /// - [`DeviceError::Length`]: values or roots have other than [`limbs`](ModSqrt::limbs) words for each entry of the
    ///   mask.
    /// - [`DeviceError::WrongDevice`]: values, roots, the mask or the queue are of another device.
    /// - [`DeviceError::TooLarge`]: one multiplication exceeds the loop iterations of a thread.
    /// - [`DeviceError::OutOfMemory`]: the device has no room for the scratch.
    /// - [`DeviceError::Driver`]: a call of the driver fails.
    /// - [`DeviceError::Lost`]: the device is gone.
    pub fn sqrt<'a>(
        &self,
        values: impl Into<View<'a, u32>>,
        roots: impl Into<ViewMut<'a, u32>>,
        mask: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        self.primes.moduli.one()?;
        self.run(None, values.into(), roots.into(), mask.into())
    }

    /// Writes a root of each value as [`ModSqrt::sqrt`] does, value i modulo the prime with the number `indices[i]`.
    ///
    /// # Errors
    /// [`Error::Device`] holds one of these. With the first three, nothing is written.
    /// - [`DeviceError::Length`]: there is not one index for each entry of the mask, or values or roots have other than
    ///   [`limbs`](ModSqrt::limbs) words for each.
    /// - [`DeviceError::WrongDevice`]: indices, values, roots, the mask or the queue are of another device.
    /// - [`DeviceError::TooLarge`]: one multiplication exceeds the loop iterations of a thread.
    /// - [`DeviceError::OutOfMemory`]: the device has no room for the scratch.
    /// - [`DeviceError::Driver`]: a call of the driver fails.
    /// - [`DeviceError::Lost`]: the device is gone.
    pub fn sqrt_indexed<'a>(
        &self,
        indices: impl Into<View<'a, u32>>,
        values: impl Into<View<'a, u32>>,
        roots: impl Into<ViewMut<'a, u32>>,
        mask: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        self.run(Some(indices.into()), values.into(), roots.into(), mask.into())
    }

    /// Computes the Legendre symbol of each value: 1 for squares, 2³² − 1 for non-residues, 0 for 0. The symbol of a
    /// value that is not below the prime is [`Outcome::NotReduced`]. Divsteps compute it at a fraction of a root's cost
    /// ([`Jacobi`](crate::Jacobi)). The first call compiles their kernel.
    ///
    /// # Errors
    /// [`Error::Indices`] if there are several primes.
    ///
    /// [`Error::Device`] at the first call holds one of these:
    /// - [`DeviceError::Compile`]: the compiler refuses the kernel.
    /// - [`DeviceError::Unavailable`]: the compiler is missing.
    ///
    /// [`Error::Device`] at any call holds one of these. With the first three, nothing is written.
    /// - [`DeviceError::Length`]: values have other than [`limbs`](ModSqrt::limbs) words for each symbol.
    /// - [`DeviceError::WrongDevice`]: values, symbols or the queue are of another device.
    /// - [`DeviceError::TooLarge`]: one batch of divsteps exceeds the loop iterations of a thread.
    /// - [`DeviceError::OutOfMemory`]: the device has no room for the scratch.
    /// - [`DeviceError::Driver`]: a call of the driver fails.
    /// - [`DeviceError::Lost`]: the device is gone.
    pub fn legendre<'a>(&self, values: impl Into<View<'a, u32>>, symbols: impl Into<ViewMut<'a, u32>>) -> Result<()> {
        self.primes.moduli.one()?;
        self.run_symbols(None, values.into(), symbols.into())
    }

    /// Computes the Legendre symbol of each value as [`ModSqrt::legendre`] does, value i modulo the prime with the
    /// number `indices[i]`. The symbol is [`Outcome::NoPrime`] if there is no such prime.
    ///
    /// # Errors
    /// [`Error::Device`] at the first call holds one of these:
    /// - [`DeviceError::Compile`]: the compiler refuses the kernel.
    /// - [`DeviceError::Unavailable`]: the compiler is missing.
    ///
    /// [`Error::Device`] at any call holds one of these. With the first three, nothing is written.
    /// - [`DeviceError::Length`]: there is not one index, or there are not [`limbs`](ModSqrt::limbs) words of values,
    ///   for each symbol.
    /// - [`DeviceError::WrongDevice`]: indices, values, symbols or the queue are of another device.
    /// - [`DeviceError::TooLarge`]: one batch of divsteps exceeds the loop iterations of a thread.
    /// - [`DeviceError::OutOfMemory`]: the device has no room for the scratch.
    /// - [`DeviceError::Driver`]: a call of the driver fails.
    /// - [`DeviceError::Lost`]: the device is gone.
    pub fn legendre_indexed<'a>(
        &self,
        indices: impl Into<View<'a, u32>>,
        values: impl Into<View<'a, u32>>,
        symbols: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        self.run_symbols(Some(indices.into()), values.into(), symbols.into())
    }

    /// Takes the roots of values on the host, `None` for non-residues. Waits for the device.
    ///
    /// # Errors
    /// [`Error::Indices`] if there are several primes. [`Error::NotReduced`] for a value that is not below the prime.
    ///
    /// [`Error::Device`] holds one of these:
    /// - [`DeviceError::WrongDevice`]: the queue is of another device.
    /// - [`DeviceError::TooLarge`]: one multiplication exceeds the loop iterations of a thread.
    /// - [`DeviceError::OutOfMemory`]: the device has no room for [`ModSqrt::required_bytes`].
    /// - [`DeviceError::Driver`]: a call of the driver fails.
    /// - [`DeviceError::Lost`]: the device is gone.
    pub fn sqrt_host(&self, values: &[BoxedUint]) -> Result<Vec<Option<BoxedUint>>> {
        self.primes.moduli.expect_below(values)?;
        let (limbs, device, queue) = (self.limbs(), self.device(), self.own_queue()?);
        let secrecy = self.primes.moduli.secrecy();
        let words = queue.upload_with(&number::encode(values, limbs), secrecy)?;
        let mut roots = device.alloc_with(words.len(), secrecy)?;
        let mut mask = device.alloc_with(values.len(), secrecy)?;
        self.sqrt(&words, &mut roots, &mut mask)?;
        let (roots, mask) = (Zeroizing::new(queue.read(&roots)?), queue.read(&mask)?);
        let roots = roots.chunks_exact(limbs).map(number::load).map(|root| root.resize_unchecked(32 * limbs as u32));
        Ok(roots.zip(mask).map(|(root, mask)| (mask == mask::ROOT).then_some(root)).collect())
    }

    fn run_symbols(
        &self,
        indices: Option<View<'_, u32>>,
        values: View<'_, u32>,
        symbols: ViewMut<'_, u32>,
    ) -> Result<()> {
        let moduli = &self.primes.moduli;
        let kernel = jacobi::SymbolKernel::new(self.device(), self.limbs())?;
        moduli.ready.wait(&self.queue)?;
        Ok(kernel.run(&self.queue, &moduli.constants, moduli.bits, indices, values, symbols)?)
    }

    fn run(
        &self,
        indices: Option<View<'_, u32>>,
        values: View<'_, u32>,
        roots: ViewMut<'_, u32>,
        mask: ViewMut<'_, u32>,
    ) -> Result<()> {
        if let Some(indices) = indices {
            indices.expect_len("the indices of primes", mask.len())?;
        }
        let choice = match self.choice {
            RootChoice::Any => choice::ANY,
            RootChoice::Even => choice::EVEN,
            RootChoice::Smaller => choice::SMALLER,
            RootChoice::Larger => choice::LARGER,
        };
        let moduli = &self.primes.moduli;
        moduli.ready.wait(&self.queue)?;
        let batch = Batch { constants: &moduli.constants, indices, values, out: roots, mask, choice };
        Ok(self.kernel.run(&self.queue, &self.primes.roots, batch)?)
    }
}
