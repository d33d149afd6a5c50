//! Rabin's cryptosystem, on batches.

use std::{fmt, sync::Arc};

use crypto_bigint::{BoxedUint, ConcatenatingMul, NonZero, Odd, Resize};
#[cfg(doc)]
use evariste_backend::Error as DeviceError;
use evariste_backend::{Queue, Secrecy, author::Ready};
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    config::ModSqrtConfig,
    error::{Error, Result},
    kernel::{Batch, Constants, RootKernel, StepList, choice, mask},
    number,
    plan::ModSqrt,
    prime::{self, Modulus},
    steps::{self, HEAD, section},
};

/// The bits that each of the two primes of a key may have.
pub const PRIME_BITS: std::ops::RangeInclusive<u32> = 512..=2048;

/// The bytes at the end of a message that encryption repeats after it. A wrong root has this redundancy with a
/// probability of 2^−128.
pub const REDUNDANCY: usize = 16;

/// The modulus n = p q, which encrypts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(BoxedUint);

impl PublicKey {
    /// Makes a key from its modulus. It cannot check that the modulus is the product of two primes without them.
    ///
    /// # Errors
    /// [`Error::ModulusBits`] unless it has 1023 to 4096 bits. [`Error::EvenModulus`] if it is even.
    pub fn new(modulus: &BoxedUint) -> Result<Self> {
        let (bits, expected) = (modulus.bits(), 2 * PRIME_BITS.start() - 1..=2 * PRIME_BITS.end());
        if !expected.contains(&bits) {
            return Err(Error::ModulusBits { index: 0, expected, actual: bits });
        }
        Ok(Self(Modulus::new(0, modulus)?.value().clone()))
    }

    /// Returns the modulus n.
    pub fn modulus(&self) -> &BoxedUint {
        &self.0
    }

    /// Returns the bytes of a message: ⌊log₂ n / 8⌋ − [`REDUNDANCY`].
    pub fn message_bytes(&self) -> usize {
        (self.0.bits() as usize - 1) / 8 - REDUNDANCY
    }
}

/// The primes p and q, which decrypt. Dropping the key zeroes them, and its `Debug` output leaves them out.
pub struct SecretKey {
    p: Zeroizing<BoxedUint>,
    q: Zeroizing<BoxedUint>,
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey").field("public", &self.public()).finish_non_exhaustive()
    }
}

impl SecretKey {
    /// Draws a key of two random primes of `prime_bits` bits each.
    ///
    /// # Errors
    /// [`Error::ModulusBits`] unless `prime_bits` is 512 to 2048. [`Error::Randomness`] if the system gives no random
    /// bytes.
    pub fn generate(prime_bits: u32) -> Result<Self> {
        if !PRIME_BITS.contains(&prime_bits) {
            return Err(Error::ModulusBits { index: 0, expected: PRIME_BITS, actual: prime_bits });
        }
        let p = prime::random(prime_bits)?;
        loop {
            let q = prime::random(prime_bits)?;
            if p != q {
                return Ok(Self { p, q });
            }
        }
    }

    /// Makes a key from two primes of the same number of limbs ([`limbs`](crate::limbs)). [`Decryption::new`] tests
    /// whether they are prime.
    ///
    /// # Errors
    /// Each names p as number 0 and q as number 1:
    /// - [`Error::ModulusBits`]: one has other than 512 to 2048 bits.
    /// - [`Error::RabinPrime`]: one is not 3 modulo 4, or they are equal.
    /// - [`Error::ModulusLimbs`]: q has another number of limbs than p.
    pub fn from_primes(p: &BoxedUint, q: &BoxedUint) -> Result<Self> {
        for (index, prime) in [p, q].into_iter().enumerate() {
            let bits = prime.bits();
            if !PRIME_BITS.contains(&bits) {
                return Err(Error::ModulusBits { index, expected: PRIME_BITS, actual: bits });
            }
            if prime.as_words()[0] % 4 != 3 || (index == 1 && p == q) {
                return Err(Error::RabinPrime { index });
            }
        }
        let (expected, actual) = (number::limbs(p.bits()), number::limbs(q.bits()));
        if expected != actual {
            return Err(Error::ModulusLimbs { index: 1, expected, actual });
        }
        let own = |prime: &BoxedUint| Zeroizing::new(prime.clone().resize_unchecked(32 * expected as u32));
        Ok(Self { p: own(p), q: own(q) })
    }

    /// Returns the key that encrypts.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.p.concatenating_mul(&*self.q))
    }
}

/// Encrypts on a device: c = m² mod n. The number m is the message with its last [`REDUNDANCY`] bytes repeated, in
/// big-endian order.
///
/// **A research primitive, not a padded encryption scheme.** Equal messages have equal ciphertexts, and nothing is
/// authenticated. Without the redundancy, an attacker learns the key from the decryptions of chosen ciphertexts. Use a
/// scheme with random padding for the secrets of a protocol.
///
/// Source: Rabin, "Digitalized signatures and public-key functions as intractable as factorization", MIT/LCS/TR-212
/// (1979); with redundancy as in Menezes, van Oorschot and Vanstone, "Handbook of applied cryptography", section 8.3.
#[derive(Debug)]
pub struct Encryption {
    key: PublicKey,
    queue: Queue,
    plan: Arc<EncryptionPlan>,
}

/// What every queue shares.
#[derive(Debug)]
struct EncryptionPlan {
    kernel: Arc<RootKernel>,
    constants: Constants,
    squares: StepList,
    /// When all that was uploaded is on the device.
    ready: Ready,
}

impl Encryption {
    /// Makes a plan for a key on a queue (`&device` is its default one).
    ///
    /// # Errors
    /// [`Error::Device`] if the kernel does not compile, if the device has no room for the constants, or if it fails.
    pub fn new(queue: impl Into<Queue>, key: &PublicKey) -> Result<Self> {
        let queue = queue.into();
        let modulus = Modulus::new(0, &key.0)?;
        let stride = HEAD as usize + (section::UNIT + 1) as usize * modulus.limbs;
        let mut words = vec![0; stride];
        modulus.store(&mut words);
        let constants = Constants { words: queue.upload(&words)?, moduli: 1, stride: stride as u32 };
        let kernel = RootKernel::new(queue.device(), modulus.limbs)?;
        let squares = StepList::new(&queue, &steps::squares())?;
        let ready = Ready::behind(&queue)?;
        Ok(Self { key: key.clone(), queue, plan: Arc::new(EncryptionPlan { kernel, constants, squares, ready }) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { key: self.key.clone(), queue: queue.clone(), plan: Arc::clone(&self.plan) }
    }

    /// Computes the ciphertext of each message, by two multiplications modulo n. Waits for the device.
    ///
    /// # Errors
    /// [`Error::MessageLength`] unless each has [`PublicKey::message_bytes`] bytes.
    ///
    /// [`Error::Device`] holds one of these:
    /// - [`DeviceError::WrongDevice`]: the queue is of another device. Nothing is uploaded then.
    /// - [`DeviceError::TooLarge`]: one multiplication exceeds the loop iterations of a thread.
    /// - [`DeviceError::OutOfMemory`]: the device has no room for messages, ciphertexts and scratch.
    /// - [`DeviceError::Driver`]: a call of the driver fails.
    /// - [`DeviceError::Lost`]: the device is gone.
    pub fn encrypt_host<M: AsRef<[u8]>>(&self, messages: &[M]) -> Result<Vec<BoxedUint>> {
        let expected = self.key.message_bytes();
        for (index, message) in messages.iter().enumerate() {
            let actual = message.as_ref().len();
            if actual != expected {
                return Err(Error::MessageLength { index, expected, actual });
            }
        }
        let EncryptionPlan { kernel, constants, squares, ready } = &*self.plan;
        let (device, limbs) = (kernel.device(), kernel.limbs());
        let queue = self.queue.expect_device(device)?;
        ready.wait(queue)?;
        let mut words = Zeroizing::new(vec![0; limbs * messages.len()]);
        for (words, message) in words.chunks_exact_mut(limbs).zip(messages) {
            // It does not grow, which would leave a copy behind.
            let mut bytes = Zeroizing::new(Vec::with_capacity(expected + REDUNDANCY));
            bytes.extend_from_slice(message.as_ref());
            bytes.extend_from_within(expected - REDUNDANCY..);
            let number = Zeroizing::new(BoxedUint::from_be_slice_truncated(&bytes, 32 * limbs as u32));
            number::store(&number, words);
        }
        let values = queue.upload_with(&words, Secrecy::Secret)?;
        let mut out = device.alloc_with(words.len(), Secrecy::Secret)?;
        let mut mask = device.alloc_with(messages.len(), Secrecy::Secret)?;
        let batch = Batch {
            constants,
            indices: None,
            values: values.as_view(),
            out: out.as_view_mut(),
            mask: mask.as_view_mut(),
            choice: choice::ANY,
        };
        kernel.run(queue, squares, batch)?;
        Ok(queue.read(&out)?.chunks_exact(limbs).map(number::load).collect())
    }
}

/// Decrypts on a device: takes the roots modulo p and modulo q in one batch. The host combines them into the four roots
/// modulo n by the Chinese remainder theorem, and picks the one with the redundancy. [`Encryption`] says why this is no
/// padded scheme.
pub struct Decryption {
    roots: ModSqrt,
    public: PublicKey,
    p: NonZero<BoxedUint>,
    q: NonZero<BoxedUint>,
    /// q⁻¹ mod p.
    inverse: Zeroizing<BoxedUint>,
}

impl fmt::Debug for Decryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decryption").field("public", &self.public).finish_non_exhaustive()
    }
}

impl Drop for Decryption {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.p);
        zeroize::Zeroize::zeroize(&mut self.q);
    }
}

impl Decryption {
    /// Makes a plan for a key on a queue (`&device` is its default one). The device zeroes its copy of the key when you
    /// drop the plan.
    ///
    /// # Errors
    /// - [`Error::Composite`]: p, number 0, or q, number 1, is no prime.
    /// - [`Error::Randomness`]: the system gives no random bytes for the tests.
    /// - [`Error::Device`]: the kernel does not compile, or the device has no room for the constants or fails.
    pub fn new(queue: impl Into<Queue>, key: &SecretKey) -> Result<Self> {
        let primes = [(*key.p).clone(), (*key.q).clone()].map(Zeroizing::new);
        let [p, q] = &primes;
        let both = Zeroizing::new(vec![(**p).clone(), (**q).clone()]);
        let roots = ModSqrt::with_primes(queue, &both, ModSqrtConfig::default().secrecy(Secrecy::Secret))?;
        let odd = Option::<Odd<BoxedUint>>::from(p.to_odd()).ok_or(Error::EvenModulus { index: 0 })?;
        let non_zero =
            |x: &BoxedUint, index| Option::<NonZero<BoxedUint>>::from(x.to_nz()).ok_or(Error::EvenModulus { index });
        let inverse = Option::from(q.invert_odd_mod(&odd)).ok_or(Error::RabinPrime { index: 1 })?;
        let (p, q) = (non_zero(p, 0)?, non_zero(q, 1)?);
        Ok(Self { roots, public: key.public(), p, q, inverse: Zeroizing::new(inverse) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        let (public, inverse) = (self.public.clone(), self.inverse.clone());
        Self { roots: self.roots.on(queue), public, p: self.p.clone(), q: self.q.clone(), inverse }
    }

    /// Decrypts each ciphertext. The message is `None` where the ciphertext is not one of this key: it has no root, or
    /// no root has the redundancy. For n of k bits, a ciphertext takes 5/4 k multiplications modulo p and q. Waits for
    /// the device.
    ///
    /// # Errors
    /// [`Error::NotReduced`] for a ciphertext that is not below n.
    ///
    /// [`Error::Device`] holds one of these:
    /// - [`DeviceError::WrongDevice`]: the queue is of another device. Nothing is uploaded then.
    /// - [`DeviceError::TooLarge`]: one multiplication exceeds the loop iterations of a thread.
    /// - [`DeviceError::OutOfMemory`]: the device has no room for two roots of each ciphertext and scratch.
    /// - [`DeviceError::Driver`]: a call of the driver fails.
    /// - [`DeviceError::Lost`]: the device is gone.
    pub fn decrypt_host(&self, ciphertexts: &[BoxedUint]) -> Result<Vec<Option<Zeroizing<Vec<u8>>>>> {
        if let Some(index) = ciphertexts.iter().position(|c| *c >= self.public.0) {
            return Err(Error::NotReduced { index });
        }
        let (queue, limbs, count) = (self.roots.own_queue()?, self.roots.limbs(), ciphertexts.len());
        let device = queue.device();
        let precision = self.public.0.bits_precision();
        let rest = |prime: &NonZero<BoxedUint>| {
            let values: Vec<BoxedUint> =
                ciphertexts.par_iter().map(|c| c.clone().resize_unchecked(precision).rem(prime)).collect();
            number::encode(&Zeroizing::new(values), limbs)
        };
        let values = Zeroizing::new([rest(&self.p).as_slice(), rest(&self.q).as_slice()].concat());
        let indices: Vec<u32> = (0..2 * count).map(|i| u32::from(i >= count)).collect();
        let (values, indices) = (queue.upload_with(&values, Secrecy::Secret)?, queue.upload(&indices)?);
        let mut roots = device.alloc_with(values.len(), Secrecy::Secret)?;
        let mut found = device.alloc_with(2 * count, Secrecy::Secret)?;
        self.roots.sqrt_indexed(&indices, &values, &mut roots, &mut found)?;
        let (roots, found) = (Zeroizing::new(queue.read(&roots)?), Zeroizing::new(queue.read(&found)?));
        let (of_p, of_q) = roots.split_at(limbs * count);
        let messages = (0..count).into_par_iter().map(|i| {
            let root = |of: &[u32]| Zeroizing::new(number::load(&of[i * limbs..][..limbs]));
            let both = [found[i], found[count + i]] == [mask::ROOT; 2];
            both.then(|| self.message(&root(of_p), &root(of_q))).flatten()
        });
        Ok(messages.collect())
    }

    /// The message among the four roots.
    fn message(&self, of_p: &BoxedUint, of_q: &BoxedUint) -> Option<Zeroizing<Vec<u8>>> {
        let other = Zeroizing::new(of_q.neg_mod(&self.q));
        let roots = [of_q, &*other].into_iter().flat_map(|of_q| {
            let root = self.combined(of_p, of_q);
            let opposite = Zeroizing::new(self.public.0.wrapping_sub(&*root));
            [root, opposite]
        });
        let messages = roots.filter_map(|root| {
            let bytes = Zeroizing::new(root.to_be_bytes().into_vec());
            let (zeros, text) = bytes.split_at(bytes.len() - self.public.message_bytes() - REDUNDANCY);
            let (message, redundancy) = text.split_at(self.public.message_bytes());
            let whole = zeros.iter().all(|byte| *byte == 0) && message.ends_with(redundancy);
            whole.then(|| Zeroizing::new(message.to_vec()))
        });
        // Two roots may be equal where a message is 0 modulo a prime; different messages have the same ciphertext once
        // in 2^126.
        let mut messages: Vec<_> = messages.collect();
        messages.dedup();
        match messages.len() {
            1 => messages.pop(),
            _ => None,
        }
    }

    /// The number below n with these rests: r_q + q ((r_p − r_q) q⁻¹ mod p).
    fn combined(&self, of_p: &BoxedUint, of_q: &BoxedUint) -> Zeroizing<BoxedUint> {
        let rest = Zeroizing::new(of_q.rem(&self.p));
        let difference = Zeroizing::new(of_p.sub_mod(&rest, &self.p));
        let factor = Zeroizing::new(difference.mul_mod(&self.inverse, &self.p));
        let product = Zeroizing::new(factor.concatenating_mul(self.q.as_ref()));
        let precision = self.public.0.bits_precision();
        Zeroizing::new(product.wrapping_add(of_q).resize_unchecked(precision))
    }
}

#[cfg(test)]
mod tests {
    use evariste_backend::Device;
    use num_bigint::BigUint;

    use super::*;

    fn below(bits: u32, less: u32) -> BoxedUint {
        BoxedUint::from_le_slice_vartime(&((BigUint::from(1u32) << bits) - less).to_bytes_le())
    }

    fn big(x: &BoxedUint) -> BigUint {
        BigUint::from_bytes_le(&x.to_le_bytes())
    }

    #[test]
    fn messages_come_back() {
        let device = Device::cpu();
        let (p, q) = (below(512, 569), below(512, 4653));
        let key = SecretKey::from_primes(&p, &q).unwrap();
        let public = PublicKey::new(key.public().modulus()).unwrap();
        assert_eq!(public, key.public());
        let bytes = public.message_bytes();
        assert_eq!(bytes, 111);
        let messages: Vec<Vec<u8>> =
            (0..20u8).map(|i| (0..bytes as u8).map(|j| j.wrapping_mul(37) ^ i.wrapping_mul(91)).collect()).collect();
        let messages = [messages, vec![vec![0; bytes], vec![255; bytes]]].concat();
        let ciphertexts = Encryption::new(&device, &public).unwrap().encrypt_host(&messages).unwrap();
        let n = big(&p) * big(&q);
        for (message, ciphertext) in messages.iter().zip(&ciphertexts) {
            let number = BigUint::from_bytes_be(&[&message[..], &message[bytes - 16..]].concat());
            assert_eq!(big(ciphertext), &number * &number % &n);
        }
        let decryption = Decryption::new(&device, &key).unwrap();
        let decrypted = decryption.decrypt_host(&ciphertexts).unwrap();
        assert!(decrypted.iter().zip(&messages).all(|(found, message)| found.as_deref() == Some(message)));
        // Squares without the redundancy, and what is no square.
        let foreign = [4u32, 5, 6, 7].map(BoxedUint::from);
        assert!(decryption.decrypt_host(&foreign).unwrap().iter().all(Option::is_none));
        let n = public.modulus().clone();
        assert_eq!(decryption.decrypt_host(&[n]).unwrap_err(), Error::NotReduced { index: 0 });
        let short = Encryption::new(&device, &public).unwrap().encrypt_host(&[vec![0; bytes], vec![0; bytes - 1]]);
        assert_eq!(short.unwrap_err(), Error::MessageLength { index: 1, expected: bytes, actual: bytes - 1 });
    }

    #[test]
    fn what_makes_no_key_is_refused() {
        let (p, q) = (below(512, 569), below(512, 4653));
        let bits = |index, expected, actual| Error::ModulusBits { index, expected, actual };
        let refused = |p: &BoxedUint, q: &BoxedUint| SecretKey::from_primes(p, q).unwrap_err();
        assert_eq!(refused(&p, &below(511, 1)), bits(1, PRIME_BITS, 511));
        assert_eq!(refused(&p, &p), Error::RabinPrime { index: 1 });
        assert_eq!(refused(&below(512, 875), &q), Error::RabinPrime { index: 0 });
        assert_eq!(refused(&p, &below(1024, 105)), Error::ModulusLimbs { index: 1, expected: 16, actual: 32 });
        assert_eq!(SecretKey::generate(511).unwrap_err(), bits(0, PRIME_BITS, 511));
        assert_eq!(PublicKey::new(&p).unwrap_err(), bits(0, 1023..=4096, 512));
        assert_eq!(PublicKey::new(&below(1024, 2)).unwrap_err(), Error::EvenModulus { index: 0 });
        let composite = SecretKey::from_primes(&p, &below(512, 1)).unwrap();
        assert_eq!(Decryption::new(&Device::cpu(), &composite).unwrap_err(), Error::Composite { index: 1 });
    }
}
