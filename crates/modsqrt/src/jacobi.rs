//! Jacobi symbols by divsteps, for any odd modulus.

use std::{fmt, fmt::Write, sync::Arc};

use crypto_bigint::{BoxedUint, Integer};
#[cfg(doc)]
use evariste_backend::Error as DeviceError;
use evariste_backend::{
    Device, Queue, Secrecy, View, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Language, loop_iterations},
    params,
};
use evariste_field::source;
use rayon::prelude::*;
use zeroize::Zeroizing;

use crate::{
    config::JacobiConfig,
    error::{Error, Result},
    kernel::{Constants, batch_len, mask, threads},
    moduli::{Moduli, same_limbs},
    number::{self, MAX_BITS, MIN_BITS},
    steps::HEAD,
};

/// Divsteps of a batch on the GPU: their last one looks at three bits of words of 32.
const DIVSTEPS: u32 = 30;

/// Divsteps of a batch on the CPU, of words of 64 bits.
const CPU_DIVSTEPS: u32 = 62;

/// Products of limbs in one launch, of one element: what a small GPU does in less than the seconds after which a driver
/// takes it for hanging.
const WORK: usize = 1 << 22;

/// Divsteps that end with g = 0 for every odd f below 2^bits and 0 ≤ g ≤ f, where delta begins at 1/2: Wuille's bound
/// by convex hulls ("Bounds on divsteps iterations in safegcd", 2021).
const fn divsteps(bits: u32) -> u32 {
    ((45_907 * bits as u64 + 30_179) / 19_929) as u32
}

/// Computes Jacobi symbols (x / n) for odd moduli n from 3 on, of up to 4096 bits. A program may get the moduli when it
/// runs.
///
/// # Data
/// An element is [`Jacobi::limbs`] little-endian 32-bit limbs with zeros above its value, as in
/// [`ModSqrt`](crate::ModSqrt). A buffer of n elements has n · limbs words. A batch may have several moduli of the same
/// number of limbs, with an index for each element ([`Jacobi::jacobi_indexed`]). For a prime modulus the symbol is
/// Legendre's.
///
/// # Method
/// Bernstein and Yang's divsteps take (n, x) to (± gcd, 0), and look at the lowest bits of the two numbers only. Each
/// step changes the symbol by quadratic reciprocity, which needs the signs of both numbers. Their highest bits are
/// unknown until a batch ends. So the signs within a batch follow from those before and after it. The signs of the
/// vector (1, 0) under the same matrices decide the rest.
///
/// Sources: Bernstein and Yang, "Fast constant-time gcd computation and modular inversion", TCHES 2019(3); Hamburg,
/// "Computing the Jacobi symbol using Bernstein-Yang", Cryptology ePrint Archive 2021/1271. Its sign bookkeeping
/// differs from ours.
///
/// # Cost
/// A modulus of k bits takes 2.3 k divsteps in batches of 30. Each batch takes four products of a word with each limb.
/// The sum is 4 · 2.3 k / 30 · k / 32 products of words: 160,000 for 4096 bits. Euler's criterion takes 170 million.
///
/// A call keeps little more than two elements of scratch for each element in work at once ([`Jacobi::required_bytes`]).
/// Refused values take fewer steps. The steps do not depend on the other values, but the time may.
///
/// ```
/// # fn main() -> Result<(), evariste_modsqrt::Error> {
/// use evariste_backend::Device;
/// use evariste_modsqrt::{BoxedUint, Jacobi};
///
/// let modulus = BoxedUint::from(15u32);
/// let symbols = Jacobi::new(&Device::best()?, &modulus)?;
/// assert_eq!(symbols.jacobi_host(&[2u32, 5, 7].map(BoxedUint::from))?, [1, 0, -1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Jacobi {
    kernel: Arc<SymbolKernel>,
    queue: Queue,
    moduli: Arc<Moduli>,
}

impl fmt::Debug for Jacobi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.moduli.describe(f, "Jacobi", "moduli", (self.device(), self.limbs()))
    }
}

impl Jacobi {
    /// Makes a plan for one modulus on a queue (`&device` is its default one). The modulus need not be prime.
    ///
    /// # Errors
    /// - [`Error::EvenModulus`]: the modulus is even.
    /// - [`Error::ModulusBits`]: it is 1 or has more than 4096 bits.
    /// - [`Error::Device`]: the kernel does not compile, or the device has no room for the modulus or fails.
    pub fn new(queue: impl Into<Queue>, modulus: &BoxedUint) -> Result<Self> {
        Self::with_config(queue, modulus, JacobiConfig::default())
    }

    /// Makes a plan for one modulus with a configuration.
    ///
    /// # Errors
    /// - [`Error::EvenModulus`]: the modulus is even.
    /// - [`Error::ModulusBits`]: it is 1 or has more than 4096 bits.
    /// - [`Error::Device`]: the kernel does not compile, or the device has no room for the modulus or fails.
    pub fn with_config(queue: impl Into<Queue>, modulus: &BoxedUint, config: JacobiConfig) -> Result<Self> {
        Self::with_moduli(queue, std::slice::from_ref(modulus), config)
    }

    /// Makes a plan for some moduli of the same number of limbs.
    ///
    /// # Errors
    /// [`Error::NoModulus`] without a modulus. Three errors name the first modulus at fault:
    /// - [`Error::EvenModulus`]: it is even.
    /// - [`Error::ModulusBits`]: it is 1 or has more than 4096 bits.
    /// - [`Error::ModulusLimbs`]: it has another number of limbs than the first.
    ///
    /// [`Error::Device`] holds one of these:
    /// - [`DeviceError::Compile`]: the compiler refuses the kernel.
    /// - [`DeviceError::Unavailable`]: the compiler is missing.
    /// - [`DeviceError::TooLarge`]: the moduli are larger than a buffer.
    /// - [`DeviceError::OutOfMemory`]: the device has no room for the moduli.
    /// - [`DeviceError::Driver`]: a call of the driver fails.
    /// - [`DeviceError::Lost`]: the device is gone.
    pub fn with_moduli(queue: impl Into<Queue>, moduli: &[BoxedUint], config: JacobiConfig) -> Result<Self> {
        let queue = queue.into();
        for (index, modulus) in moduli.iter().enumerate() {
            let bits = modulus.bits();
            if !bool::from(modulus.is_odd()) {
                return Err(Error::EvenModulus { index });
            }
            if !(MIN_BITS..=MAX_BITS).contains(&bits) {
                return Err(Error::ModulusBits { index, expected: MIN_BITS..=MAX_BITS, actual: bits });
            }
        }
        let limbs = same_limbs(moduli.iter().map(|modulus| number::limbs(modulus.bits())))?;
        let stride = HEAD as usize + limbs;
        let mut words = Zeroizing::new(vec![0; stride * moduli.len()]);
        words
            .chunks_exact_mut(stride)
            .zip(moduli)
            .for_each(|(words, modulus)| number::store(modulus, &mut words[HEAD as usize..]));
        let kernel = SymbolKernel::new(queue.device(), limbs)?;
        let moduli = Moduli::new(&queue, moduli.iter(), &words, config.secrecy)?;
        Ok(Self { kernel, queue, moduli: Arc::new(moduli) })
    }

    /// Returns the same plan for work on `queue`.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { queue: queue.clone(), ..self.clone() }
    }

    /// Returns the device of the plan.
    pub fn device(&self) -> &Device {
        &self.kernel.device
    }

    /// Returns the number of 32-bit limbs of an element: [`limbs`](crate::limbs) of the bits of a modulus.
    pub fn limbs(&self) -> usize {
        self.kernel.limbs
    }

    /// Returns the number of moduli of the plan.
    pub fn moduli(&self) -> usize {
        self.moduli.len()
    }

    /// Returns the most bytes of device memory that a call for `len` elements allocates. [`Jacobi::jacobi_host`]
    /// allocates the values, the symbols and the scratch. Calls on views allocate the scratch alone.
    pub fn required_bytes(&self, len: usize) -> u64 {
        let element = 4 * (self.limbs() + 1);
        self.kernel.required_bytes(len).saturating_add((element as u64).saturating_mul(len as u64))
    }

    /// Returns the kernels for moduli of `bits` bits, so that you can compile them ahead. The list is empty for an
    /// unsupported length.
    #[doc(hidden)]
    pub fn kernels(bits: u32) -> Vec<KernelSpec> {
        let possible = (MIN_BITS..=MAX_BITS).contains(&bits);
        possible.then(|| spec(number::limbs(bits))).into_iter().collect()
    }

    /// Computes the symbol of each value: 1, 2³² − 1 for −1, or 0 where value and modulus have a common divisor. The
    /// symbol of a value that is not below the modulus is [`Outcome::NotReduced`](crate::Outcome::NotReduced).
    ///
    /// # Errors
    /// [`Error::Indices`] if there are several moduli.
    ///
    /// [`Error::Device`] holds one of these. With the first three, nothing is written.
    /// - [`DeviceError::Length`]: values have other than [`limbs`](Jacobi::limbs) words for each symbol.
    /// - [`DeviceError::WrongDevice`]: values, symbols or the queue are of another device.
    /// - [`DeviceError::TooLarge`]: one batch of divsteps exceeds the loop iterations of a thread.
    /// - [`DeviceError::OutOfMemory`]: the device has no room for the scratch.
    /// - [`DeviceError::Driver`]: a call of the driver fails.
    /// - [`DeviceError::Lost`]: the device is gone.
    pub fn jacobi<'a>(&self, values: impl Into<View<'a, u32>>, symbols: impl Into<ViewMut<'a, u32>>) -> Result<()> {
        self.moduli.one()?;
        self.run(None, values.into(), symbols.into())
    }

    /// Computes the symbol of each value as [`Jacobi::jacobi`] does, value i for the modulus with the number
    /// `indices[i]`. The symbol is [`Outcome::NoPrime`](crate::Outcome::NoPrime) if there is no such modulus.
    ///
    /// # Errors
    /// [`Error::Device`] holds one of these. With the first three, nothing is written.
    /// - [`DeviceError::Length`]: there is not one index, or there are not [`limbs`](Jacobi::limbs) words of values,
    ///   for each symbol.
    /// - [`DeviceError::WrongDevice`]: indices, values, symbols or the queue are of another device.
    /// - [`DeviceError::TooLarge`]: one batch of divsteps exceeds the loop iterations of a thread.
    /// - [`DeviceError::OutOfMemory`]: the device has no room for the scratch.
    /// - [`DeviceError::Driver`]: a call of the driver fails.
    /// - [`DeviceError::Lost`]: the device is gone.
    pub fn jacobi_indexed<'a>(
        &self,
        indices: impl Into<View<'a, u32>>,
        values: impl Into<View<'a, u32>>,
        symbols: impl Into<ViewMut<'a, u32>>,
    ) -> Result<()> {
        self.run(Some(indices.into()), values.into(), symbols.into())
    }

    /// Computes the symbols of values on the host: 1, 0 or −1. Waits for the device.
    ///
    /// # Errors
    /// [`Error::Indices`] if there are several moduli. [`Error::NotReduced`] for a value that is not below the modulus.
    ///
    /// [`Error::Device`] holds one of these:
    /// - [`DeviceError::WrongDevice`]: the queue is of another device.
    /// - [`DeviceError::TooLarge`]: one batch of divsteps exceeds the loop iterations of a thread.
    /// - [`DeviceError::OutOfMemory`]: the device has no room for [`Jacobi::required_bytes`].
    /// - [`DeviceError::Driver`]: a call of the driver fails.
    /// - [`DeviceError::Lost`]: the device is gone.
    pub fn jacobi_host(&self, values: &[BoxedUint]) -> Result<Vec<i8>> {
        self.moduli.expect_below(values)?;
        let secrecy = self.moduli.secrecy();
        let queue = self.queue.expect_device(self.device())?;
        let words = queue.upload_with(&number::encode(values, self.limbs()), secrecy)?;
        let mut symbols = self.device().alloc_with(values.len(), secrecy)?;
        self.jacobi(&words, &mut symbols)?;
        // 2³² − 1 becomes −1.
        Ok(Zeroizing::new(queue.read(&symbols)?).iter().map(|symbol| *symbol as i8).collect())
    }

    fn run(&self, indices: Option<View<'_, u32>>, values: View<'_, u32>, symbols: ViewMut<'_, u32>) -> Result<()> {
        self.moduli.ready.wait(&self.queue)?;
        let Moduli { constants, bits, .. } = &*self.moduli;
        Ok(self.kernel.run(&self.queue, constants, *bits, indices, values, symbols)?)
    }
}

params! {
    struct Params {
        len: u32,
        first: u32,
        end: u32,
        batches: u32,
        stride: u32,
        moduli: u32,
        indexed: u32,
    }
}

/// The kernel for moduli of a number of limbs.
#[derive(Debug)]
pub(crate) struct SymbolKernel {
    device: Device,
    limbs: usize,
    kernel: Kernel<Params>,
}

impl SymbolKernel {
    /// Kept with the device: moduli of the same length share it.
    pub(crate) fn new(device: &Device, limbs: usize) -> evariste_backend::Result<Arc<Self>> {
        device.cached_plan(&limbs.to_string(), || {
            let kernel = Kernel::new(device, spec(limbs))?;
            Ok(Self { device: device.clone(), limbs, kernel })
        })
    }

    fn required_bytes(&self, len: usize) -> u64 {
        4 * (state_words(self.limbs) * len.min(batch_len(self.device.info(), self.limbs, state_words(self.limbs))))
            as u64
    }

    /// The symbols of values for moduli of at most `bits` bits, which stand at word [`HEAD`] of their constants.
    pub(crate) fn run(
        &self,
        queue: &Queue,
        constants: &Constants,
        bits: u32,
        indices: Option<View<'_, u32>>,
        values: View<'_, u32>,
        mut symbols: ViewMut<'_, u32>,
    ) -> evariste_backend::Result<()> {
        self.device.expect_same("the moduli", constants.words.device())?;
        self.device.expect_same("the values", values.device())?;
        self.device.expect_same("the symbols", symbols.device())?;
        let len = symbols.len();
        if let Some(indices) = &indices {
            self.device.expect_same("the indices", indices.device())?;
            indices.expect_len("the indices of moduli", len)?;
        }
        values.expect_len("the limbs of the values", len.saturating_mul(self.limbs))?;
        if len == 0 {
            return Ok(());
        }
        let batches = divsteps(bits).div_ceil(DIVSTEPS);
        let params = Params {
            len: 0,
            first: 0,
            end: 0,
            batches,
            stride: constants.stride,
            moduli: constants.moduli,
            indexed: indices.is_some().into(),
        };
        let of = |end: usize| Params { end: end as u32, ..params };
        let mut at_once = (WORK / (4 * self.limbs)).min(batches as usize);
        while at_once > 1 && !self.kernel.fits(&of(at_once)) {
            at_once = at_once.div_ceil(2);
        }
        self.kernel.expect_fits(&of(at_once))?;
        let secrecy = Secrecy::of([constants.words.secrecy(), values.secrecy(), symbols.secrecy()]);
        let each = batch_len(self.device.info(), self.limbs, state_words(self.limbs)).min(len);
        let mut state = self.device.alloc_with::<u32>(each * state_words(self.limbs), secrecy)?;
        for at in (0..len).step_by(each) {
            let end = len.min(at + each);
            let values = values.view(at * self.limbs..end * self.limbs)?;
            let indices = indices.map_or(Ok(constants.words.as_view()), |indices| indices.view(at..end))?;
            for first in (0..batches).step_by(at_once) {
                let last = batches.min(first + at_once as u32);
                let params = Params { len: (end - at) as u32, first, end: last, ..params };
                let args = &mut [
                    Arg::read(&constants.words),
                    Arg::read(indices),
                    Arg::read(values),
                    Arg::write(&mut state),
                    Arg::write(symbols.view_mut(at..end)?),
                ];
                // SAFETY: the views have `len` elements of `limbs` limbs, and `state` has room for `len`. Every modulus
                // that is looked at has its limbs behind `HEAD`, and threads without an element touch none.
                unsafe { self.kernel.launch(queue, params.len.div_ceil(threads(self.limbs)).into(), &params, args) }?;
            }
        }
        Ok(())
    }
}

/// Words of an element between batches: f and g and their signs, delta, and the sign of the symbol.
const fn state_words(limbs: usize) -> usize {
    2 * limbs + 4
}

fn spec(limbs: usize) -> KernelSpec {
    let bindings = [
        Binding::read("constants", BindingType::U32),
        Binding::read("indices", BindingType::U32),
        Binding::read("values", BindingType::U32),
        Binding::write("state", BindingType::U32),
        Binding::write("symbols", BindingType::U32),
    ];
    let body = move |params: &Params, args: &mut [CpuArg<'_>; 5]| cpu(limbs, params, args);
    let batch = loop_iterations(DIVSTEPS.into(), 0) + loop_iterations(limbs as u64, 0);
    let ends = 3 * loop_iterations(limbs as u64, 0);
    KernelSpec::new("mod_symbols", format!("{limbs} limbs"), bindings, body, move |language| source(language, limbs))
        .threads(threads(limbs))
        .iterations(move |params: &Params| loop_iterations((params.end - params.first).into(), batch) + ends)
}

fn source(language: Language, limbs: usize) -> String {
    let constants = [
        ("LIMBS", limbs as u32),
        ("HEAD", HEAD),
        ("DIVSTEPS", DIVSTEPS),
        ("ROOT", mask::ROOT),
        ("TOO_LARGE", mask::NOT_REDUCED),
        ("NO_PRIME", mask::NO_PRIME),
    ];
    let mut text = String::new();
    match language {
        Language::Cuda => {
            let _ = writeln!(text, "#define THREADS {}u", threads(limbs));
            constants.iter().for_each(|(name, value)| {
                let _ = writeln!(text, "#define {name} {value}u");
            });
            text + evariste_cuda::modsqrt::SYMBOLS
        }
        Language::Wgsl { int64 } => {
            constants.iter().for_each(|(name, value)| {
                let _ = writeln!(text, "const {name} = {value}u;");
            });
            text + if int64 { WIDE_MAC } else { source::F_MAC } + evariste_shaders::modsqrt::SYMBOLS
        }
    }
}

/// `f_mac` where there are integers of 64 bits.
const WIDE_MAC: &str = "\
fn f_mac(a: u32, b: u32, c: u32, d: u32) -> vec2<u32> {
  let r = u64(a) * u64(b) + u64(c) + u64(d);
  return vec2(u32(r), u32(r >> 32u));
}
";

/// The launch on the CPU: by words of 64 bits and longer batches, all of them in the first launch of an element.
fn cpu(limbs: usize, params: &Params, [constants, indices, values, _, symbols]: &mut [CpuArg<'_>; 5]) {
    if params.first > 0 {
        return;
    }
    let (constants, indices, values) = (constants.read::<u64>(), indices.read::<u32>(), values.read::<u32>());
    let (words, stride) = (limbs / 2, params.stride as usize / 2);
    let steps = params.batches * DIVSTEPS;
    let symbols = &mut symbols.write::<u32>()[..params.len as usize];
    symbols.par_iter_mut().zip(values.par_chunks_exact(limbs)).enumerate().for_each_init(
        || Zeroizing::new(vec![0; 2 * (words + 1)]),
        |pair, (i, (symbol, value))| {
            let which = if params.indexed != 0 { indices[i] } else { 0 };
            if which >= params.moduli {
                *symbol = mask::NO_PRIME;
                return;
            }
            let modulus = &constants[which as usize * stride + HEAD as usize / 2..][..words];
            let (f, g) = pair.split_at_mut(words + 1);
            f[..words].copy_from_slice(modulus);
            let value = value.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32);
            g.iter_mut().zip(value).for_each(|(word, value)| *word = value);
            (f[words], g[words]) = (0, 0);
            *symbol = match g.iter().rev().lt(f.iter().rev()) {
                true => symbol_of(f, g, steps.div_ceil(CPU_DIVSTEPS)),
                false => mask::NOT_REDUCED,
            };
        },
    );
}

/// The symbol (g / f), for numbers with a word of their sign above, by `batches` batches of divsteps. Overwrites both.
fn symbol_of(f: &mut [u64], g: &mut [u64], batches: u32) -> u32 {
    let words = f.len() - 1;
    let (mut delta, mut flips) = (1, 0);
    for _ in 0..batches {
        let batch = divsteps_of(&mut delta, f[0], g[0]);
        let signs = [f[words], g[words]];
        combine(f, g, batch.matrix);
        flips ^= batch.flips ^ turns_of(&batch, signs, f[words]);
    }
    let sign = f[words];
    let rest = f[1..words].iter().fold(f[0] ^ (sign | 1), |rest, word| rest | (word ^ sign));
    match (rest, flips & 1) {
        (0, 0) => 1,
        (0, _) => u32::MAX,
        _ => 0,
    }
}

/// What a batch of divsteps does.
struct DivstepBatch {
    /// (u f + v g) / 2^n and (q f + r g) / 2^n are the next f and g.
    matrix: [i64; 4],
    /// Its lowest bit: whether the symbol changes its sign by what f and g are modulo 8.
    flips: u64,
    /// How often the sign of f would change if f were 1 and g nearly 0, and whether it is negative then.
    turns: u64,
    negative: u64,
}

fn divsteps_of(delta: &mut i64, mut f: u64, mut g: u64) -> DivstepBatch {
    let [mut u, mut v, mut q, mut r] = [1i64, 0, 0, 1];
    let [mut flips, mut turns, mut negative] = [0; 3];
    for _ in 0..CPU_DIVSTEPS {
        let odd = (g & 1).wrapping_neg();
        let swap = odd & u64::from(*delta > 0).wrapping_neg();
        // (g | f) (f | g) = −1 if both are 3 modulo 4; and g comes in place of f as f comes, negated, in place of g.
        flips ^= swap & g >> 1 & !(f >> 1);
        let signed = swap as i64;
        let x = (f ^ g) & swap;
        f ^= x;
        g = (g ^ x ^ swap).wrapping_sub(swap);
        let [y, z] = [(u ^ q) & signed, (v ^ r) & signed];
        (u, v) = (u ^ y, v ^ z);
        (q, r) = ((q ^ y ^ signed) - signed, (r ^ z ^ signed) - signed);
        *delta = (*delta ^ signed) - signed + 2;
        let sign = ((if u == 0 { v } else { u }) as u64) >> 63;
        turns += sign ^ negative;
        negative = sign;
        g = g.wrapping_add(f & odd);
        (q, r) = (q + (u & odd as i64), r + (v & odd as i64));
        // (2 | f) = −1 if f is 3 or 5 modulo 8.
        flips ^= f >> 1 ^ f >> 2;
        g >>= 1;
        (u, v) = (u << 1, v << 1);
    }
    DivstepBatch { matrix: [u, v, q, r], flips, turns, negative }
}

/// The effect of a batch's signs on the symbol, which is that of |f|: −1 for each time that f > 0 > g change places, so
/// that f becomes negative. While f is 1 and g nearly 0, `turns` are the changes of the sign of f. No step takes a pair
/// past another one, since the matrices have positive determinants. So (f, g) has the same number of changes. If its
/// last sign excludes that number, a pair on the left of (1, 0) has one fewer, and a pair on its right one more.
fn turns_of(batch: &DivstepBatch, [f_sign, g_sign]: [u64; 2], last_sign: u64) -> u64 {
    let others = (last_sign ^ f_sign) & 1 ^ batch.negative;
    let more = if f_sign == g_sign { others.wrapping_neg() } else { others };
    batch.turns.wrapping_add(more).wrapping_add(!f_sign & 1) >> 1
}

/// f and g times a matrix, less the bits that its divsteps took.
fn combine(f: &mut [u64], g: &mut [u64], [u, v, q, r]: [i64; 4]) {
    let words = f.len() - 1;
    let sum = |a: i64, x: u64, b: i64, y: u64, carry: i128| {
        carry + i128::from(a) * i128::from(x) + i128::from(b) * i128::from(y)
    };
    let shifted = |low: u64, next: i128| low >> CPU_DIVSTEPS | (next as u64) << (u64::BITS - CPU_DIVSTEPS);
    let [mut f_sum, mut g_sum] = [0i128; 2];
    let [mut f_last, mut g_last] = [0; 2];
    for j in 0..words {
        let (x, y) = (f[j], g[j]);
        f_sum = sum(u, x, v, y, f_sum);
        g_sum = sum(q, x, r, y, g_sum);
        if j > 0 {
            (f[j - 1], g[j - 1]) = (shifted(f_last, f_sum), shifted(g_last, g_sum));
        }
        (f_last, g_last) = (f_sum as u64, g_sum as u64);
        (f_sum, g_sum) = (f_sum >> 64, g_sum >> 64);
    }
    // The words of the signs are 0 or −1.
    let (x, y) = (f[words] as i64, g[words] as i64);
    f_sum -= i128::from(u & x) + i128::from(v & y);
    g_sum -= i128::from(q & x) + i128::from(r & y);
    (f[words - 1], g[words - 1]) = (shifted(f_last, f_sum), shifted(g_last, g_sum));
    (f[words], g[words]) = ((f_sum >> 127) as u64, (g_sum >> 127) as u64);
}
