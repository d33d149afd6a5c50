use std::{fmt, sync::Arc};

use crypto_bigint::{BoxedUint, Resize};
#[cfg(doc)]
use evariste_backend::Error as DeviceError;
use evariste_backend::{Device, KernelSpec, Queue, Secrecy, View, ViewMut};
use rayon::prelude::*;
use zeroize::Zeroizing;

use super::{
    jacobi,
    kernels::{self, Batch, Machine, Program, choice, mask},
    moduli::{Moduli, same_limbs},
    number,
    prime::{self, Prime},
    program,
};
#[cfg(doc)]
use crate::Error;
use crate::{Choice, Result};

/// Says what came of an element, as an entry of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Outcome {
    /// The element is no square. The root is written as 0.
    NoRoot = mask::NO_ROOT,
    /// The root is one.
    Root = mask::ROOT,
    /// The element is not below its prime. The root is written as 0.
    TooLarge = mask::TOO_LARGE,
    /// The element's index is not below the number of primes. The root is written as 0.
    NoPrime = mask::NO_PRIME,
}

impl Outcome {
    /// Tells what an entry of a mask says; `None` if it is no entry that a mask has.
    pub fn of(entry: u32) -> Option<Self> {
        [Self::NoRoot, Self::Root, Self::TooLarge, Self::NoPrime].into_iter().find(|outcome| *outcome as u32 == entry)
    }
}

/// Takes square roots modulo primes that are known at run time only, of 2 to 4096 bits.
///
/// # Data
/// An element is [`ModSqrt::limbs`] little-endian 32-bit limbs, zeros above its value, and n elements are n · limbs neighbouring words
/// of a buffer. A batch may be of several primes of the same number of limbs, with an index for each element
/// ([`ModSqrt::sqrt_mixed`]).
///
/// # Method
/// With p − 1 = 2^s q, q odd: w = a^((q − 1)/2) by windows of 4 bits, x = a w and b = x w, so that x² = a b. Where p ≡ 3 (mod 4)
/// b = 1. Else b is a power of z, z a non-residue to the power of q that is found when the plan is made; half of its logarithm
/// corrects x (Tonelli and Shanks). The logarithm is taken by Pohlig and Hellman's halving of its bits: no thread
/// waits for another's luck, and no random choice is made. At last x² is compared with a, which is what the mask tells.
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
/// Tonelli and Shanks' own loop would take s²/2 for the correction, and Cipolla's method about 5 k on average with symbols of its
/// random tries; a group of 32 threads that waits for its unluckiest one pays about twice that. So halving is the cheaper one for
/// all s up to about k, and it is what is used for huge s too. [`ModSqrt::multiplications`] tells the number. A batch of
/// several primes costs what the largest s and the longest exponent among them do.
///
/// A multiplication is 2 l² + l products of 32-bit limbs, for l limbs, and a root of 1024 bits takes 2.7 million. At 32 such products
/// a clock for each multiprocessor, the 132 of an H200 at 1.755 GHz come to 2.7 million such roots a second at most: an
/// estimate from the instructions of the kernel and the rate that shorter fields were measured at, not a measurement. The memory of
/// a call is 20 elements for each of those that are worked on at once ([`ModSqrt::required_bytes`]).
///
/// Kernels are compiled for a number of limbs and kept with the device: a new prime of the same length needs no compilation. The
/// number of multiplications does not depend on the elements. The last subtraction of one is a branch on the CPU, and
/// which memory is read depends on the primes and on what is found of the elements: nothing is promised of the time.
///
/// ```
/// # fn main() -> Result<(), evariste_sqrt::Error> {
/// use evariste_backend::Device;
/// use evariste_sqrt::modular::{BoxedUint, ModSqrt};
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
    machine: Arc<Machine>,
    queue: Queue,
    choice: Choice,
    primes: Arc<Primes>,
}

/// The primes of a plan, and the steps to roots modulo any of them.
struct Primes {
    moduli: Moduli,
    roots: Program,
}

impl fmt::Debug for ModSqrt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.primes.moduli.describe(f, "ModSqrt", "primes", (self.device(), self.limbs()))
    }
}

impl ModSqrt {
    /// Makes a plan for one prime on a queue (`&device` is its default one). Half a second of tests on one core for 2048 bits, a
    /// few for 4096: they are divided among all.
    ///
    /// # Errors
    /// Returns the errors of [`ModSqrt::with_primes`], for the same reasons.
    pub fn new(queue: impl Into<Queue>, prime: &BoxedUint) -> Result<Self> {
        Self::with_primes(queue, std::slice::from_ref(prime), Secrecy::Public)
    }

    /// Makes a plan for some primes of the same number of limbs. With [`Secrecy::Secret`], what the device holds of
    /// them is zeroed when it is given back, and so is the scratch of every call.
    ///
    /// Composites are refused by Baillie, Pomerance, Selfridge and Wagstaff's test and 32 rounds of Miller and Rabin's with
    /// random bases: whoever chose the number gets a composite through with a probability of at most 2^−64.
    ///
    /// # Errors
    /// [`Error::NoModulus`] without a prime; [`Error::Randomness`] if the system gives no random bytes for the tests.
    /// Of the others, the index is that of the first prime at fault: [`Error::ModulusBits`] if it has fewer than 2
    /// bits or more than 4096, [`Error::EvenModulus`] if it is even, [`Error::Composite`] if it does not pass the
    /// tests, [`Error::ModulusLimbs`] if it has another number of limbs than the first. [`Error::Device`] with
    /// [`DeviceError::Compile`] if the kernel's source is refused, [`DeviceError::Unavailable`] where the compiler is
    /// missing, [`DeviceError::TooLarge`] for constants larger than a buffer, [`DeviceError::OutOfMemory`] if the
    /// device has no room for them, [`DeviceError::Driver`] if a call of the driver fails, [`DeviceError::Lost`] if the
    /// device is gone.
    pub fn with_primes(queue: impl Into<Queue>, primes: &[BoxedUint], secrecy: Secrecy) -> Result<Self> {
        let queue = queue.into();
        let primes =
            primes.iter().enumerate().map(|(index, prime)| Prime::new(index, prime)).collect::<Result<Vec<_>>>()?;
        let limbs = same_limbs(primes.iter().map(|prime| prime.modulus.limbs))?;
        let most = |of: fn(&Prime) -> u32| primes.iter().map(of).max().unwrap_or(1);
        let adicity = most(|prime| prime.adicity);
        let stride = prime::stride(limbs, adicity);
        let mut words = Zeroizing::new(vec![0; stride * primes.len()]);
        words.par_chunks_exact_mut(stride).zip(&primes).for_each(|(words, prime)| prime.store(adicity, words));
        let machine = Machine::new(queue.device(), limbs)?;
        let roots = Program::new(&queue, &program::roots(most(Prime::exponent_bits), adicity))?;
        let moduli = Moduli::new(&queue, primes.iter().map(|prime| prime.modulus.value()), &words, secrecy)?;
        Ok(Self { machine, queue, choice: Choice::Any, primes: Arc::new(Primes { moduli, roots }) })
    }

    /// Gives the same plan on a queue of its own.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), ..self.clone() }
    }

    /// Gives the same plan with another choice among the two roots.
    #[must_use]
    pub fn choose(&self, choice: Choice) -> Self {
        Self { choice, ..self.clone() }
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Gives the device that the plan is on.
    pub fn device(&self) -> &Device {
        self.machine.device()
    }

    /// Counts the 32-bit limbs of an element: [`limbs`](super::limbs) of the bits of a prime.
    pub fn limbs(&self) -> usize {
        self.machine.limbs()
    }

    /// Counts the primes of the plan.
    pub fn primes(&self) -> usize {
        self.primes.moduli.len()
    }

    /// Counts the multiplications modulo the prime that one root takes.
    pub fn multiplications(&self) -> usize {
        self.primes.roots.multiplications()
    }

    /// Counts the bytes of scratch that a call for so many elements takes on the device.
    pub fn required_bytes(&self, len: usize) -> u64 {
        self.machine.required_bytes(len)
    }

    /// Lists the kernels for primes of so many bits, for compiling them ahead; none for lengths that are refused.
    pub fn kernels(bits: u32) -> Vec<KernelSpec> {
        let possible = (number::MIN_BITS..=number::MAX_BITS).contains(&bits);
        possible.then(|| kernels::spec(number::limbs(bits))).into_iter().collect()
    }

    /// Writes a root of each value, and an entry of the mask that says whether there is one ([`Outcome`]).
    ///
    /// # Errors
    /// [`Error::Indices`] if there are several primes. [`Error::Device`] with [`DeviceError::Length`] unless values and
    /// roots have [`limbs`](ModSqrt::limbs) words for each entry of the mask, [`DeviceError::WrongDevice`] if one of
    /// the three lies on another device, [`DeviceError::TooLarge`] if a thread of the device may not do as much as one
    /// multiplication takes; nothing is written then. [`DeviceError::OutOfMemory`] if the device has no room for the
    /// scratch ([`ModSqrt::required_bytes`]), [`DeviceError::Driver`] if a call of the driver fails,
    /// [`DeviceError::Lost`] if the device is gone.
    pub fn sqrt<'a>(
        &self,
        values: impl Into<View<'a, u32>>,
        roots: impl Into<ViewMut<'a, u32>>,
        mask: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        self.primes.moduli.one()?;
        self.run(None, values.into(), roots.into(), mask.into())
    }

    /// Takes roots as [`ModSqrt::sqrt`] does, each modulo the prime that its index says.
    ///
    /// # Errors
    /// [`Error::Device`] with [`DeviceError::Length`] unless there is an index for each entry of the mask; and the
    /// errors of [`ModSqrt::sqrt`] of the device, for the same reasons.
    pub fn sqrt_mixed<'a>(
        &self,
        indices: impl Into<View<'a, u32>>,
        values: impl Into<View<'a, u32>>,
        roots: impl Into<ViewMut<'a, u32>>,
        mask: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        self.run(Some(indices.into()), values.into(), roots.into(), mask.into())
    }

    /// Computes the Legendre symbol of each value: 1 for squares, 2³² − 1 for others, 0 for 0; and
    /// [`Outcome::TooLarge`] for a value that is not below the prime. By divsteps, which cost far less than a root; of
    /// moduli that need not be prime, [`Jacobi`](super::Jacobi) has the symbols, and says how. The first call compiles
    /// their kernel.
    ///
    /// # Errors
    /// [`Error::Indices`] if there are several primes. [`Error::Device`] at the first call with
    /// [`DeviceError::Compile`] if the kernel's source is refused and [`DeviceError::Unavailable`] where the compiler
    /// is missing; with [`DeviceError::Length`] unless values have [`limbs`](ModSqrt::limbs) words for each symbol,
    /// [`DeviceError::WrongDevice`] if values or symbols lie on another device, [`DeviceError::TooLarge`] if a thread
    /// of the device may not do as much as one batch of divsteps takes; nothing is written then.
    /// [`DeviceError::OutOfMemory`] if the device has no room for the scratch, [`DeviceError::Driver`] if a call of the
    /// driver fails, [`DeviceError::Lost`] if the device is gone.
    pub fn symbols<'a>(&self, values: impl Into<View<'a, u32>>, symbols: impl Into<ViewMut<'a, u32>>) -> Result<()> {
        self.primes.moduli.one()?;
        self.run_symbols(None, values.into(), symbols.into())
    }

    /// Computes the symbols as [`ModSqrt::symbols`] does, each modulo the prime that its index says, or
    /// [`Outcome::NoPrime`].
    ///
    /// # Errors
    /// [`Error::Device`] with [`DeviceError::Length`] unless there is an index for each symbol; and the errors of
    /// [`ModSqrt::symbols`] of the device, for the same reasons.
    pub fn symbols_mixed<'a>(
        &self,
        indices: impl Into<View<'a, u32>>,
        values: impl Into<View<'a, u32>>,
        symbols: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        self.run_symbols(Some(indices.into()), values.into(), symbols.into())
    }

    /// Takes the roots of values on the host, `None` for those that are no squares. Waits for the device.
    ///
    /// # Errors
    /// [`Error::Indices`] if there are several primes; [`Error::TooLarge`] for a value that is not below the prime; and
    /// the errors of [`ModSqrt::sqrt`], for the same reasons.
    pub fn sqrt_host(&self, values: &[BoxedUint]) -> Result<Vec<Option<BoxedUint>>> {
        self.primes.moduli.expect_below(values)?;
        let (limbs, device) = (self.limbs(), self.device());
        let secrecy = self.primes.moduli.secrecy();
        device.expect_same("the queue of roots", self.queue.device())?;
        let words = self.queue.upload_with(&number::encode(values, limbs), secrecy)?;
        let mut roots = device.alloc_with(words.len(), secrecy)?;
        let mut mask = device.alloc_with(values.len(), secrecy)?;
        self.sqrt(&words, &mut roots, &mut mask)?;
        let (roots, mask) = (Zeroizing::new(self.queue.read(&roots)?), self.queue.read(&mask)?);
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
        let machine = jacobi::Machine::new(self.device(), self.limbs())?;
        moduli.ready.wait(&self.queue)?;
        Ok(machine.run(&self.queue, &moduli.constants, moduli.bits, indices, values, symbols)?)
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
            Choice::Any => choice::ANY,
            Choice::Even => choice::EVEN,
            Choice::Smaller => choice::SMALLER,
            Choice::Larger => choice::LARGER,
        };
        let moduli = &self.primes.moduli;
        moduli.ready.wait(&self.queue)?;
        let batch = Batch { constants: &moduli.constants, indices, values, out: roots, mask, choice };
        Ok(self.machine.run(&self.queue, &self.primes.roots, batch)?)
    }
}
