//! The kernel that runs a [`Program`] on a batch: compiled for a number of limbs, for all moduli of that length.

use std::{fmt::Write, sync::Arc};

use bytemuck::{Pod, Zeroable};
#[cfg(doc)]
use evariste_backend::Error as DeviceError;
use evariste_backend::{
    Arg, Binding, Buffer, CpuArg, Device, DeviceInfo, Kernel, KernelSpec, Language, Queue, Result, Secrecy, View,
    ViewMut, Word, loop_turns,
};
use evariste_field::source;
use rayon::prelude::*;

use super::{
    number::lanes,
    program::{ACCUMULATOR, ARGUMENT_BITS, BITS, HEAD, MULTIPLICATIONS, SLOTS, Step, TABLE, WINDOW, section},
};

/// Threads of a workgroup: with the registers of 32 limbs a thread, three fit a multiprocessor with CUDA.
const THREADS: u32 = 128;

/// Threads of a multiprocessor in one launch, for moduli of up to 32 limbs: some waves of what runs at once, so that the last
/// one, which may not be full, is short beside them. Their slots are the memory that a batch takes.
pub(super) const THREADS_EACH: usize = 1536;

/// Limbs up to which a WGSL thread has its factor and the modulus in registers.
const NAMED_LIMBS: usize = 32;

/// Products of limbs, of one element, in one launch: what a small GPU does in less than the seconds after which a driver
/// takes it for hanging.
const WORK: usize = 1 << 22;

/// Values of the mask.
pub(crate) mod mask {
    pub(crate) const NO_ROOT: u32 = 0;
    pub(crate) const ROOT: u32 = 1;
    pub(crate) const TOO_LARGE: u32 = 2;
    pub(crate) const NO_PRIME: u32 = 3;
}

/// Values of [`Params::choice`].
pub(crate) mod choice {
    pub(crate) const ANY: u32 = 0;
    pub(crate) const EVEN: u32 = 1;
    pub(crate) const SMALLER: u32 = 2;
    pub(crate) const LARGER: u32 = 3;
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Params {
    len: u32,
    first: u32,
    end: u32,
    stride: u32,
    primes: u32,
    indexed: u32,
    choice: u32,
}

/// Steps on the device.
#[derive(Debug)]
pub(crate) struct Program {
    words: Buffer<u32>,
    multiplications: usize,
}

impl Program {
    pub(crate) fn new(device: &Device, steps: &[Step]) -> Result<Self> {
        let words: Vec<u32> = steps.iter().map(|step| step.encode()).collect();
        let multiplications = steps.iter().filter(|step| step.multiplies()).count();
        Ok(Self { words: device.upload(&words)?, multiplications })
    }

    /// Multiplications of an element.
    pub(crate) fn multiplications(&self) -> usize {
        self.multiplications
    }
}

/// The constants of the moduli of a batch, on the device.
#[derive(Debug)]
pub(crate) struct Constants {
    pub(crate) words: Buffer<u32>,
    /// How many moduli.
    pub(crate) moduli: u32,
    /// Words of one.
    pub(crate) stride: u32,
}

/// What a program is run on. There is an index for each entry of the mask.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) constants: &'a Constants,
    pub(crate) indices: Option<View<'a, u32>>,
    pub(crate) values: View<'a, u32>,
    pub(crate) out: ViewMut<'a, u32>,
    pub(crate) mask: ViewMut<'a, u32>,
    pub(crate) choice: u32,
}

/// The kernel for moduli of a number of limbs.
#[derive(Debug)]
pub(crate) struct Machine {
    device: Device,
    limbs: usize,
    kernel: Kernel<Params>,
}

impl Machine {
    /// Kept with the device: moduli of the same length share it.
    pub(crate) fn new(device: &Device, limbs: usize) -> Result<Arc<Self>> {
        device.cached_plan(&limbs.to_string(), || {
            let kernel = Kernel::new(device, spec(limbs))?;
            Ok(Self { device: device.clone(), limbs, kernel })
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn limbs(&self) -> usize {
        self.limbs
    }

    /// Elements of one launch.
    fn batch_len(&self) -> usize {
        batch_len(self.device.info(), self.limbs)
    }

    /// Bytes of scratch for so many elements.
    pub(crate) fn required_bytes(&self, len: usize) -> u64 {
        4 * (state_words(self.limbs) * len.min(self.batch_len())) as u64
    }

    /// Runs a program on all elements, in launches of some elements and some steps.
    ///
    /// # Errors
    /// [`DeviceError::Length`] unless values and output have the limbs of as many elements as the mask has entries; [`DeviceError::WrongDevice`]; [`DeviceError::TooLarge`] if not even one step of one element fits what a thread may do;
    /// [`DeviceError::OutOfMemory`], [`DeviceError::Driver`], [`DeviceError::Lost`].
    pub(crate) fn run(&self, queue: Option<&Queue>, program: &Program, batch: Batch<'_>) -> Result<()> {
        let Batch { constants, indices, values, mut out, mut mask, choice } = batch;
        self.device.expect_same("the moduli", constants.words.device())?;
        self.device.expect_same("the values", values.device())?;
        self.device.expect_same("the mask", mask.device())?;
        if let Some(indices) = indices {
            self.device.expect_same("the indices", indices.device())?;
        }
        self.device.expect_same("the output", out.device())?;
        let len = mask.len();
        let words = len.saturating_mul(self.limbs);
        values.expect_len("the limbs of the values", words)?;
        out.expect_len("the limbs of the output", words)?;
        if len == 0 {
            return Ok(());
        }
        let secrecy = Secrecy::of([constants.words.secrecy(), values.secrecy(), mask.secrecy(), out.secrecy()]);
        let params = Params {
            len: 0,
            first: 0,
            end: 0,
            stride: constants.stride,
            primes: constants.moduli,
            indexed: indices.is_some().into(),
            choice,
        };
        let steps = self.steps_each(program.words.len(), params)?;
        let each = self.batch_len().min(len);
        let mut state = self.device.alloc_with::<u32>(each * state_words(self.limbs), secrecy)?;
        for at in (0..len).step_by(each) {
            let end = len.min(at + each);
            let values = values.view(at * self.limbs..end * self.limbs)?;
            let indices = indices.map_or(Ok(program.words.as_view()), |indices| indices.view(at..end))?;
            for first in (0..program.words.len()).step_by(steps) {
                let last = program.words.len().min(first + steps);
                let params = Params { len: (end - at) as u32, first: first as u32, end: last as u32, ..params };
                let out = out.view_mut(at * self.limbs..end * self.limbs)?;
                // In WGSL a thread has a whole element, and the last groups have none.
                let groups = (u64::from(params.len) * u64::from(lanes(self.limbs))).div_ceil(THREADS.into());
                let args = &mut [
                    Arg::read(&program.words),
                    Arg::read(&constants.words),
                    Arg::read(indices),
                    Arg::read(values),
                    Arg::write(&mut state),
                    Arg::write(out),
                    Arg::write(mask.view_mut(at..end)?),
                ];
                // SAFETY: the views have `len` elements of `limbs` limbs, `state` has slots for as many, steps name slots below
                // SLOTS and sections that the constants of every modulus have, and threads without an element touch none.
                unsafe { self.kernel.launch(queue, groups, &params, args) }?;
            }
        }
        Ok(())
    }

    /// Steps of one launch.
    fn steps_each(&self, total: usize, params: Params) -> Result<usize> {
        let mut steps = (WORK / (self.limbs * self.limbs)).clamp(1, total);
        let of = |steps: usize| Params { end: steps as u32, ..params };
        while steps > 1 && !self.kernel.fits(&of(steps)) {
            steps = steps.div_ceil(2);
        }
        self.kernel.expect_fits(&of(steps))?;
        Ok(steps)
    }
}

/// Words of an element's slots.
const fn state_words(limbs: usize) -> usize {
    SLOTS as usize * limbs
}

/// Elements of one launch: so many that the slots are some hundred megabytes on a large GPU, whatever the length of an element.
fn batch_len(info: &DeviceInfo, limbs: usize) -> usize {
    let wanted = info.parallelism as usize * THREADS_EACH * NAMED_LIMBS / limbs.max(NAMED_LIMBS);
    let bytes = 4 * state_words(limbs);
    let most = usize::try_from(info.limits.buffer_bytes).unwrap_or(usize::MAX).min(u32::MAX as usize) / bytes;
    // Multiples of 64, so that the parts of a buffer start where all devices like it.
    (wanted.min(most) / 64 * 64).max(1)
}

/// The kernel for moduli of so many limbs.
pub(crate) fn spec(limbs: usize) -> KernelSpec {
    let bindings = vec![
        Binding::read("program", Word::U32),
        Binding::read("constants", Word::U32),
        Binding::read("indices", Word::U32),
        Binding::read("values", Word::U32),
        Binding::write("state", Word::U32),
        Binding::write("out", Word::U32),
        Binding::write("mask", Word::U32),
    ];
    let body = move |params: &Params, args: &mut [CpuArg<'_>]| cpu(limbs, params, args);
    let source = move |language| source(language, limbs);
    let step = 3 * loop_turns(limbs as u64, 0);
    KernelSpec::new("mod_run", format!("{limbs} limbs"), bindings, body, source)
        .threads(THREADS)
        .turns(move |params: &Params| loop_turns((params.end - params.first).into(), step))
}

/// Names and values that the sources share with the host.
fn constants(limbs: usize) -> Vec<(&'static str, u32)> {
    let mut all = vec![
        ("LIMBS", limbs as u32),
        ("LANES", lanes(limbs)),
        ("HEAD", HEAD),
        ("WINDOW", WINDOW),
        ("TABLE", TABLE),
        ("BITS", BITS),
        ("ARGUMENT_BITS", ARGUMENT_BITS),
        ("MULTIPLICATIONS", MULTIPLICATIONS),
        ("MODULUS", section::MODULUS),
        ("ONE", section::ONE),
        ("NO_ROOT", mask::NO_ROOT),
        ("ROOT", mask::ROOT),
        ("TOO_LARGE", mask::TOO_LARGE),
        ("NO_PRIME", mask::NO_PRIME),
        ("EVEN", choice::EVEN),
        ("SMALLER", choice::SMALLER),
        ("LARGER", choice::LARGER),
    ];
    all.extend(Step::NAMES.into_iter().zip(0..));
    all
}

fn source(language: Language, limbs: usize) -> String {
    let mut text = String::new();
    match language {
        Language::Cuda => {
            let _ = writeln!(text, "#define THREADS {THREADS}u");
            constants(limbs).iter().for_each(|(name, value)| {
                let _ = writeln!(text, "#define {name} {value}u");
            });
            text + evariste_cuda::MOD + evariste_cuda::MOD_RUN
        }
        Language::Wgsl { int64 } => {
            constants(limbs).iter().for_each(|(name, value)| {
                let _ = writeln!(text, "const {name} = {value}u;");
            });
            text + &multiplication(limbs, int64) + evariste_shaders::MOD_RUN
        }
    }
}

/// `m_multiply` in WGSL: a row of products and its reduction in one go, straight-line over the limbs of the sum, which are named
/// variables. The factor in the accumulator and the modulus are named too, unless there are too many for registers.
fn multiplication(limbs: usize, int64: bool) -> String {
    let named = limbs <= NAMED_LIMBS;
    let (load_a, load_p) = (
        |j: usize| format!("accumulator({j}u)"),
        |j: usize| format!("constants_get(own + {}u)", section::MODULUS as usize * limbs + j),
    );
    let (a, p) = (
        |j: usize| if named { format!("a{j}") } else { load_a(j) },
        |j: usize| if named { format!("p{j}") } else { load_p(j) },
    );
    let mut text = String::new();
    if !int64 {
        text += source::F_MAC;
    }
    text += "fn m_multiply(slot: bool, at: u32) {\n  let n0 = constants_get(own - HEAD);\n";
    for j in 0..limbs {
        if named {
            let _ = writeln!(text, "  let a{j} = {};\n  let p{j} = {};", load_a(j), load_p(j));
        }
        let _ = writeln!(text, "  var t{j} = 0u;");
    }
    text += "  var top = 0u;\n  for (var i = 0u; i < LIMBS; i++) {\n";
    if int64 {
        let _ = write!(
            text,
            "    let x = u64(factor(slot, at, i));\n    var r = x * u64({}) + u64(t0);\n    var c = r >> 32u;\n\
             \x20   let m = u64(u32(r) * n0);\n    var q = m * u64({}) + u64(u32(r));\n    var d = q >> 32u;\n",
            a(0),
            p(0),
        );
        for j in 1..limbs {
            let _ = write!(
                text,
                "    r = x * u64({}) + u64(t{j}) + c; c = r >> 32u;\n\
                 \x20   q = m * u64({}) + u64(u32(r)) + d; d = q >> 32u; t{} = u32(q);\n",
                a(j),
                p(j),
                j - 1,
            );
        }
        let _ = writeln!(text, "    let h = c + d + u64(top); t{} = u32(h); top = u32(h >> 32u);", limbs - 1);
    } else {
        let _ = write!(
            text,
            "    let x = factor(slot, at, i);\n    var r = f_mac(x, {}, t0, 0u);\n    var c = r.y;\n\
             \x20   let m = r.x * n0;\n    var q = f_mac(m, {}, r.x, 0u);\n    var d = q.y;\n",
            a(0),
            p(0),
        );
        for j in 1..limbs {
            let _ = write!(
                text,
                "    r = f_mac(x, {}, t{j}, c); c = r.y;\n    q = f_mac(m, {}, r.x, d); d = q.y; t{} = q.x;\n",
                a(j),
                p(j),
                j - 1,
            );
        }
        let last = limbs - 1;
        let _ = writeln!(text, "    let h = c + d; let g = h + top; t{last} = g; top = u32(h < c) + u32(g < h);");
    }
    text += "  }\n";
    for j in 0..limbs {
        let _ = writeln!(text, "  state_set(element + {j}u * params.len, t{j});");
    }
    text + REDUCE
}

/// The end of `m_multiply`: top 2^(32 LIMBS) and the accumulator, less the modulus if that is not negative.
const REDUCE: &str = "\
  var borrow = 0u;
  for (var j = 0u; j < LIMBS; j++) {
    let limb = accumulator(j);
    let less = limb - constants_get(own + MODULUS * LIMBS + j);
    borrow = u32(less > limb) | u32(less < borrow);
  }
  if (borrow > top) {
    return;
  }
  borrow = 0u;
  for (var j = 0u; j < LIMBS; j++) {
    let limb = accumulator(j);
    let less = limb - constants_get(own + MODULUS * LIMBS + j);
    state_set(element + j * params.len, less - borrow);
    borrow = u32(less > limb) | u32(less < borrow);
  }
}
";

/// The launch on the CPU, by words of 64 bits. An element's slots lie together.
fn cpu(limbs: usize, params: &Params, args: &mut [CpuArg<'_>]) {
    let [program, constants, indices, values, state, out, mask] = args else {
        unreachable!("the launch checks the number of buffers")
    };
    let (len, words) = (params.len as usize, limbs / 2);
    let steps: Vec<Step> = program.read::<u32>()[params.first as usize..params.end as usize]
        .iter()
        .map(|word| Step::decode(*word))
        .collect();
    let (constants, indices, values) = (constants.read::<u64>(), indices.read::<u32>(), values.read::<u32>());
    let state = &mut state.write::<u64>()[..len * SLOTS as usize * words];
    let mask = &mut mask.write::<u32>()[..len];
    let out = out.write::<u32>()[..len * limbs].par_chunks_exact_mut(limbs);
    let elements = state.par_chunks_exact_mut(SLOTS as usize * words).zip(out).zip(mask).enumerate();
    elements.for_each_init(
        || vec![0; 2 * words],
        |product, (i, ((slots, out), mask))| {
            let prime = if params.indexed != 0 { indices[i] } else { 0 };
            let known = prime < params.primes;
            let stride = params.stride as usize / 2;
            let constants = &constants[if known { prime as usize } else { 0 } * stride..][..stride];
            let mut element = Element { words, constants, slots, product };
            let value = &values[i * limbs..][..limbs];
            for step in &steps {
                element.step(*step, known, value, params.choice, out, mask);
            }
        },
    );
}

/// An element on the CPU.
struct Element<'a> {
    words: usize,
    /// Of its modulus.
    constants: &'a [u64],
    slots: &'a mut [u64],
    /// A product before it is reduced.
    product: &'a mut [u64],
}

impl Element<'_> {
    fn section(&self, section: u32) -> &[u64] {
        &self.constants[HEAD as usize / 2 + section as usize * self.words..][..self.words]
    }

    fn slot(&self, slot: u32) -> &[u64] {
        &self.slots[slot as usize * self.words..][..self.words]
    }

    fn slot_mut(&mut self, slot: u32) -> &mut [u64] {
        &mut self.slots[slot as usize * self.words..][..self.words]
    }

    fn accumulator(&self) -> &[u64] {
        self.slot(ACCUMULATOR)
    }

    fn step(&mut self, step: Step, known: bool, value: &[u32], wanted: u32, out: &mut [u32], mask: &mut u32) {
        let words = self.words;
        match step {
            Step::Square => self.multiply_slot(ACCUMULATOR),
            Step::Slot(slot) => self.multiply_slot(slot),
            Step::Digit { digit, section } => {
                let low = digit * WINDOW;
                let digit =
                    self.section(section)[(low / u64::BITS) as usize] >> (low % u64::BITS) & ((1 << WINDOW) - 1);
                self.multiply_slot(TABLE + digit as u32);
            }
            Step::Constant(section) => self.multiply_section(section),
            Step::Correct { bit, section } => {
                let set = self.slot(BITS)[(bit / u64::BITS) as usize] >> (bit % u64::BITS) & 1 == 1;
                self.multiply_section(if set { section } else { section::ONE });
            }
            Step::Start => {
                let limbs = value.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32);
                self.slot_mut(ACCUMULATOR).iter_mut().zip(limbs).for_each(|(word, limb)| *word = limb);
                let below = is_below(self.accumulator(), self.section(section::MODULUS));
                if !known || !below {
                    self.slot_mut(ACCUMULATOR).fill(0);
                }
                *mask = match (known, below) {
                    (false, _) => mask::NO_PRIME,
                    (true, false) => mask::TOO_LARGE,
                    (true, true) => mask::ROOT,
                };
            }
            Step::Store(slot) => self.slots.copy_within(..words, slot as usize * words),
            Step::Load(slot) => self.slots.copy_within(slot as usize * words..(slot as usize + 1) * words, 0),
            Step::LoadConstant(section) => {
                let from = HEAD as usize / 2 + section as usize * words;
                self.slots[..words].copy_from_slice(&self.constants[from..][..words]);
            }
            Step::Bit(bit) => {
                let differs = u64::from(self.accumulator() != self.section(section::ONE));
                let word = &mut self.slot_mut(BITS)[(bit / u64::BITS) as usize];
                let shift = bit % u64::BITS;
                *word = if shift == 0 { 0 } else { *word } | differs << shift;
            }
            Step::Check(slot) => {
                if *mask == mask::ROOT && self.accumulator() != self.slot(slot) {
                    *mask = mask::NO_ROOT;
                }
            }
            Step::Finish => {
                let root = self.accumulator();
                let mut borrow = false;
                let other = self.section(section::MODULUS).iter().zip(root).map(|(p, root)| {
                    let (part, first) = p.overflowing_sub(*root);
                    let (part, second) = part.overflowing_sub(borrow.into());
                    borrow = first | second;
                    part
                });
                let other: Vec<u64> = other.collect();
                let swap = match wanted {
                    choice::EVEN => root[0] & 1 == 1,
                    choice::SMALLER => is_below(&other, root),
                    // The opposite of 0 is 0.
                    choice::LARGER => is_below(root, &other) && root.iter().any(|word| *word != 0),
                    _ => false,
                };
                let root = if swap { &other } else { root };
                let valid = *mask == mask::ROOT;
                out.chunks_exact_mut(2).zip(root).for_each(|(out, word)| {
                    out.copy_from_slice(&if valid { [*word as u32, (*word >> 32) as u32] } else { [0; 2] });
                });
            }
        }
    }

    fn multiply_slot(&mut self, slot: u32) {
        let words = self.words;
        match slot {
            ACCUMULATOR => square(self.product, &self.slots[..words]),
            _ => multiply(self.product, &self.slots[..words], &self.slots[slot as usize * words..][..words]),
        }
        self.reduce();
    }

    fn multiply_section(&mut self, section: u32) {
        let factor = &self.constants[HEAD as usize / 2 + section as usize * self.words..][..self.words];
        multiply(self.product, &self.slots[..self.words], factor);
        self.reduce();
    }

    /// The accumulator becomes the product / R mod p.
    fn reduce(&mut self) {
        let modulus = &self.constants[HEAD as usize / 2..][..self.words];
        reduce(&mut self.slots[..self.words], self.product, modulus, self.constants[0]);
    }
}

fn is_below(a: &[u64], b: &[u64]) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

/// The words of a b.
fn multiply(product: &mut [u64], a: &[u64], b: &[u64]) {
    let words = a.len();
    product.fill(0);
    for (i, x) in b.iter().enumerate() {
        product[i + words] = add_multiple(&mut product[i..i + words], a, *x);
    }
}

/// The words of a²: products of different words once, twice their sum, and the squares of words.
fn square(product: &mut [u64], a: &[u64]) {
    let words = a.len();
    product.fill(0);
    for (i, x) in a.iter().enumerate() {
        product[i + words] = add_multiple(&mut product[2 * i + 1..i + words], &a[i + 1..], *x);
    }
    let (mut bit, mut carry) = (0, 0);
    for (pair, x) in product.as_chunks_mut::<2>().0.iter_mut().zip(a) {
        let (low, high) = wide(*x, *x, pair[0] << 1 | bit, carry);
        let twice = u128::from(pair[1] << 1 | pair[0] >> 63) + u128::from(high);
        (bit, carry) = (pair[1] >> 63, (twice >> 64) as u64);
        *pair = [low, twice as u64];
    }
}

/// out = product / R mod p, for a product below R p, which is used up.
fn reduce(out: &mut [u64], product: &mut [u64], p: &[u64], n0: u64) {
    let words = p.len();
    let mut top = 0;
    for i in 0..words {
        let m = product[i].wrapping_mul(n0);
        let carry = add_multiple(&mut product[i..i + words], p, m);
        let high = u128::from(product[i + words]) + u128::from(carry) + u128::from(top);
        (product[i + words], top) = (high as u64, (high >> 64) as u64);
    }
    out.copy_from_slice(&product[words..]);
    if top == 1 || !is_below(out, p) {
        let mut borrow = false;
        for (out, p) in out.iter_mut().zip(p) {
            let (part, first) = out.overflowing_sub(*p);
            let (part, second) = part.overflowing_sub(borrow.into());
            (*out, borrow) = (part, first | second);
        }
    }
}

/// sum += a x, and the carry; by four words, which compilers do better with than with single ones.
fn add_multiple(sum: &mut [u64], a: &[u64], x: u64) -> u64 {
    let mut carry = 0;
    let mut add = |sum: &mut u64, a: u64| (*sum, carry) = wide(a, x, *sum, carry);
    let (fours, rest) = sum.as_chunks_mut::<4>();
    let (a_fours, a_rest) = a.as_chunks::<4>();
    for (sum, a) in fours.iter_mut().zip(a_fours) {
        add(&mut sum[0], a[0]);
        add(&mut sum[1], a[1]);
        add(&mut sum[2], a[2]);
        add(&mut sum[3], a[3]);
    }
    rest.iter_mut().zip(a_rest).for_each(|(sum, a)| add(sum, *a));
    carry
}

/// The words of a b + c + d.
fn wide(a: u64, b: u64, c: u64, d: u64) -> (u64, u64) {
    let sum = u128::from(a) * u128::from(b) + u128::from(c) + u128::from(d);
    (sum as u64, (sum >> 64) as u64)
}
