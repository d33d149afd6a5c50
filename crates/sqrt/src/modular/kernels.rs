//! The kernel that runs a [`Program`] on a batch: compiled for a number of limbs, for all moduli of that length.

use std::{fmt::Write, sync::Arc};

#[cfg(doc)]
use evariste_backend::Error as DeviceError;
use evariste_backend::{
    Arg, Binding, BindingType, Buffer, CpuArg, Device, DeviceInfo, Kernel, KernelSpec, Language, Queue, Result,
    Secrecy, View, ViewMut, loop_turns, params,
};
use evariste_field::source;
use rayon::prelude::*;
use zeroize::Zeroizing;

use super::{
    number::lanes,
    program::{ACCUMULATOR, ARGUMENT_BITS, BITS, HEAD, MULTIPLICATIONS, SLOTS, Step, TABLE, WINDOW, section},
};

/// Threads of a multiprocessor at once: with the registers of 32 limbs a thread, as many fit one with CUDA.
const RESIDENT: u32 = 384;

/// Threads of a workgroup: for long elements, which threads share here, so few that a small batch is divided among all
/// multiprocessors.
pub(super) const fn threads(limbs: usize) -> u32 {
    if lanes(limbs) == 1 { 128 } else { 32 }
}

/// Rows of products that a WGSL thread has side by side: of 1, 2, 4 and 8, two are the fastest on an H200, for all lengths.
const ROWS: usize = 2;

/// Threads of a multiprocessor in one launch, for moduli of up to 32 limbs: some waves of what runs at once, so that the last
/// one, which may not be full, is short beside them. Their slots are the memory that a batch takes.
pub(super) const THREADS_EACH: usize = 1536;

/// Limbs for which a launch has [`THREADS_EACH`] threads, each with an element.
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

params! {
    struct Params {
        len: u32,
        first: u32,
        end: u32,
        stride: u32,
        primes: u32,
        indexed: u32,
        choice: u32,
    }
}

/// Steps on the device.
#[derive(Debug)]
pub(crate) struct Program {
    words: Buffer<u32>,
    multiplications: usize,
}

impl Program {
    pub(crate) fn new(queue: &Queue, steps: &[Step]) -> Result<Self> {
        let words: Vec<u32> = steps.iter().map(|step| step.encode()).collect();
        let multiplications = steps.iter().filter(|step| step.multiplies()).count();
        Ok(Self { words: queue.upload(&words)?, multiplications })
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
        batch_len(self.device.info(), self.limbs, state_words(self.limbs))
    }

    /// Bytes of scratch for so many elements.
    pub(crate) fn required_bytes(&self, len: usize) -> u64 {
        4 * (state_words(self.limbs) * len.min(self.batch_len())) as u64
    }

    /// Runs a program on all elements, in launches of some elements and some steps.
    ///
    /// # Errors
    /// [`DeviceError::Length`] unless values and output have the limbs of as many elements as the mask has entries;
    /// [`DeviceError::WrongDevice`] if one of the buffers lies on another device; [`DeviceError::TooLarge`] if not even one step of
    /// one element fits what a thread may do; [`DeviceError::OutOfMemory`] if there is no room for the slots,
    /// [`DeviceError::Driver`] if a call of the driver fails, [`DeviceError::Lost`] if the device is gone.
    pub(crate) fn run(&self, queue: &Queue, program: &Program, batch: Batch<'_>) -> Result<()> {
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
                let groups =
                    (u64::from(params.len) * u64::from(lanes(self.limbs))).div_ceil(threads(self.limbs).into());
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

/// Elements of one launch, with so many words of each kept between launches: so many that the slots of roots are some hundred
/// megabytes on a large GPU, whatever the length of an element.
pub(super) fn batch_len(info: &DeviceInfo, limbs: usize, state_words: usize) -> usize {
    let wanted = info.parallelism as usize * THREADS_EACH * NAMED_LIMBS / limbs.max(NAMED_LIMBS);
    let bytes = 4 * state_words;
    let most = usize::try_from(info.limits.buffer_bytes).unwrap_or(usize::MAX).min(u32::MAX as usize) / bytes;
    // Multiples of 64, so that the parts of a buffer start where all devices like it.
    (wanted.min(most) / 64 * 64).max(1)
}

/// The kernel for moduli of so many limbs.
pub(crate) fn spec(limbs: usize) -> KernelSpec {
    let bindings = [
        Binding::read("program", BindingType::U32),
        Binding::read("constants", BindingType::U32),
        Binding::read("indices", BindingType::U32),
        Binding::read("values", BindingType::U32),
        Binding::write("state", BindingType::U32),
        Binding::write("out", BindingType::U32),
        Binding::write("mask", BindingType::U32),
    ];
    let body = move |params: &Params, args: &mut [CpuArg<'_>; 7]| cpu(limbs, params, args);
    let source = move |language| source(language, limbs);
    let step = 3 * loop_turns(limbs as u64, 0);
    // In WGSL: rows of words and what neighbours are told, each in two places.
    let shared_bytes = if lanes(limbs) == 1 { 0 } else { 4 * 2 * (ROWS as u32 + 1) * threads(limbs) };
    KernelSpec::new("mod_run", format!("{limbs} limbs"), bindings, body, source)
        .threads(threads(limbs))
        .shared_bytes(shared_bytes)
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
            let threads = threads(limbs);
            let _ = writeln!(text, "#define THREADS {threads}u\n#define BLOCKS {}", RESIDENT / threads);
            constants(limbs).iter().for_each(|(name, value)| {
                let _ = writeln!(text, "#define {name} {value}u");
            });
            text + evariste_cuda::MODSQRT + evariste_cuda::modsqrt::RUN
        }
        Language::Wgsl { int64 } => {
            constants(limbs).iter().for_each(|(name, value)| {
                let _ = writeln!(text, "const {name} = {value}u;");
            });
            text + &multiplication(limbs, int64) + evariste_shaders::modsqrt::RUN
        }
    }
}

/// `m_multiply` in WGSL, straight-line over the limbs of one thread, which are named variables as those of the accumulator and of the
/// modulus are: [`ROWS`] rows of products and of their reduction side by side, from the lowest position up. Threads that share an
/// element hand down the limbs that a block of rows pushes out of theirs, and the first one hands out the factors of the modulus
/// for the next block, which its lowest limbs determine, at one barrier a block.
///
/// A row adds a multiple of one factor and a multiple of the modulus limb by limb: "finely integrated operand scanning" of Koç,
/// Acar and Kaliski, "Analyzing and comparing Montgomery multiplication algorithms", IEEE Micro 16 (1996).
fn multiplication(limbs: usize, int64: bool) -> String {
    let (lanes, rows) = (lanes(limbs) as usize, ROWS);
    let (shared, own) = (lanes > 1, limbs / lanes);
    let mut text = if int64 { String::new() } else { source::F_MAC.to_owned() };
    let mut line = |of: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "  {of}");
    };
    line(format_args!("fn m_multiply(slot: bool, at: u32) {{"));
    line(format_args!("let n0 = constants_get(own - HEAD);"));
    for j in 0..own {
        line(format_args!("let a{j} = accumulator(lane * {own}u + {j}u);"));
        line(format_args!("let p{j} = constants_get(own + MODULUS * LIMBS + lane * {own}u + {j}u);"));
        line(format_args!("var t{j} = 0u;"));
    }
    line(format_args!("var top = 0u;"));
    for k in 0..rows {
        line(format_args!("var x{k} = factor(slot, at, {k}u);"));
    }
    if shared {
        line(format_args!("var half = 0u;"));
        line(format_args!("if (lane == 0u) {{"));
        multiples(&mut line, rows, int64);
        line(format_args!("}}"));
        line(format_args!("workgroupBarrier();"));
    }
    line(format_args!("for (var i = 0u; i < LIMBS; i += {rows}u) {{"));
    for k in 0..rows {
        if shared {
            line(format_args!("let m{k} = words[half + (thread - lane) * {rows}u + {k}u];"));
            line(format_args!("let y{k} = factor(slot, at, (i + {}u) % LIMBS);", rows + k));
        }
        let zero = if int64 { "u64(0u)" } else { "0u" };
        line(format_args!("var c{k} = {zero}; var d{k} = {zero};"));
    }
    for position in 0..own + rows {
        match position.checked_sub(own) {
            None => line(format_args!("var v{position} = t{position};")),
            // The row that ended brings its carries.
            Some(k) => {
                let above = if k == 0 { "top".to_owned() } else { format!("h{}", k - 1) };
                if int64 {
                    line(format_args!("let s{k} = c{k} + d{k} + u64({above});"));
                    line(format_args!("var v{position} = u32(s{k}); let h{k} = u32(s{k} >> 32u);"));
                } else {
                    line(format_args!("let s{k} = c{k} + d{k};"));
                    line(format_args!("var v{position} = s{k} + {above};"));
                    line(format_args!("let h{k} = u32(s{k} < c{k}) + u32(v{position} < s{k});"));
                }
            }
        }
        for k in 0..rows {
            let Some(j) = position.checked_sub(k).filter(|j| *j < own) else { continue };
            row(
                &mut line,
                [&format!("v{position}"), &format!("x{k}"), &format!("m{k}")],
                [j, k],
                !shared && j == 0,
                int64,
            );
        }
        if let Some(to) = position.checked_sub(rows) {
            line(format_args!("t{to} = v{position};"));
        }
    }
    line(format_args!("top = h{};", rows - 1));
    if shared {
        line(format_args!("half = HALF - half;"));
        (0..rows).for_each(|k| line(format_args!("x{k} = y{k};")));
        line(format_args!("if (lane == 0u) {{"));
        multiples(&mut line, rows, int64);
        line(format_args!("}} else {{"));
        (0..rows).for_each(|k| line(format_args!("words[half + thread * {rows}u + {k}u] = v{k};")));
        line(format_args!("}}"));
        line(format_args!("workgroupBarrier();"));
        line(format_args!("if (lane + 1u < LANES) {{"));
        line(format_args!("var carry = 0u;"));
        for k in 0..rows {
            let t = own - rows + k;
            line(format_args!("let e{k} = words[half + (thread + 1u) * {rows}u + {k}u];"));
            line(format_args!("let f{k} = t{t} + e{k}; let g{k} = f{k} + carry;"));
            line(format_args!("carry = u32(f{k} < e{k}) | u32(g{k} < f{k}); t{t} = g{k};"));
        }
        line(format_args!("top += carry;"));
        line(format_args!("}}"));
    } else {
        (0..rows).for_each(|k| line(format_args!("x{k} = factor(slot, at, (i + {}u) % LIMBS);", rows + k)));
    }
    line(format_args!("}}"));
    // Carries go on to the neighbour as often as there are neighbours.
    if shared {
        line(format_args!("var carry = top; top = 0u;"));
        line(format_args!("for (var step = 1u; step < LANES; step++) {{"));
        line(format_args!("top += carry; carry = m_below(carry, step);"));
        for j in 0..own {
            line(format_args!("t{j} += carry; carry = u32(t{j} < carry);"));
        }
        line(format_args!("}}"));
        line(format_args!("top += carry;"));
    }
    // Less the modulus if that is not negative.
    line(format_args!("var borrow = 0u;"));
    for j in 0..own {
        line(format_args!("let l{j} = t{j} - p{j}; var z{j} = l{j} - borrow;"));
        line(format_args!("borrow = u32(l{j} > t{j}) | u32(l{j} < borrow);"));
    }
    if shared {
        line(format_args!("var lent = borrow;"));
        line(format_args!("for (var step = 1u; step < LANES; step++) {{"));
        line(format_args!("borrow = m_below(borrow, step + LANES - 1u);"));
        for j in 0..own {
            line(format_args!("let b{j} = z{j} - borrow; borrow = u32(z{j} < borrow); z{j} = b{j};"));
        }
        line(format_args!("lent |= borrow;"));
        line(format_args!("}}"));
        line(format_args!("let keep = m_last(u32(lent > top)) == 1u;"));
    } else {
        line(format_args!("let keep = borrow > top;"));
    }
    line(format_args!("if (present) {{"));
    for j in 0..own {
        line(format_args!("state_set(element + (lane * {own}u + {j}u) * params.len, select(z{j}, t{j}, keep));"));
    }
    line(format_args!("}}"));
    line(format_args!("}}"));
    if shared { text + &neighbours(rows) } else { text }
}

/// v = v + x a + m p at limb j of row k, with what the limbs below carried; m is found if it is to be.
fn row(
    line: &mut dyn FnMut(std::fmt::Arguments<'_>),
    [v, x, m]: [&str; 3],
    [j, k]: [usize; 2],
    find: bool,
    int64: bool,
) {
    if int64 {
        line(format_args!("let r{k}_{j} = u64({x}) * u64(a{j}) + u64({v}) + c{k}; c{k} = r{k}_{j} >> 32u;"));
        if find {
            line(format_args!("let {m} = u32(r{k}_{j}) * n0;"));
        }
        line(format_args!("let q{k}_{j} = u64({m}) * u64(p{j}) + u64(u32(r{k}_{j})) + d{k};"));
        line(format_args!("d{k} = q{k}_{j} >> 32u; {v} = u32(q{k}_{j});"));
    } else {
        line(format_args!("let r{k}_{j} = f_mac({x}, a{j}, {v}, c{k}); c{k} = r{k}_{j}.y;"));
        if find {
            line(format_args!("let {m} = r{k}_{j}.x * n0;"));
        }
        line(format_args!("let q{k}_{j} = f_mac({m}, p{j}, r{k}_{j}.x, d{k}); d{k} = q{k}_{j}.y; {v} = q{k}_{j}.x;"));
    }
}

/// The factors of the modulus for the next rows, by their lowest limbs alone.
fn multiples(line: &mut dyn FnMut(std::fmt::Arguments<'_>), rows: usize, int64: bool) {
    let zero = if int64 { "u64(0u)" } else { "0u" };
    line(format_args!("{{"));
    (0..rows).for_each(|k| line(format_args!("var c{k} = {zero}; var d{k} = {zero}; var w{k} = t{k};")));
    for position in 0..rows {
        for k in 0..=position {
            let names = [format!("w{position}"), format!("x{k}"), format!("o{k}")];
            let [v, x, m] = &names;
            row(line, [v, x, m], [position - k, k], k == position, int64);
        }
    }
    (0..rows).for_each(|k| line(format_args!("words[half + thread * {rows}u + {k}u] = o{k};")));
    line(format_args!("}}"));
}

/// What threads that share an element tell each other. There are two places, so that one barrier is enough.
fn neighbours(rows: usize) -> String {
    format!(
        "\
const HALF = THREADS * {rows}u;
var<workgroup> words: array<u32, 2u * HALF>;
var<workgroup> told: array<u32, 2u * THREADS>;
fn m_below(word: u32, turn: u32) -> u32 {{
  let place = turn % 2u * THREADS + thread;
  told[place] = word;
  workgroupBarrier();
  return select(0u, told[place - min(lane, 1u)], lane > 0u);
}}
fn m_last(word: u32) -> u32 {{
  if (lane == LANES - 1u) {{
    words[thread] = word;
  }}
  workgroupBarrier();
  return words[thread - lane + LANES - 1u];
}}
"
    )
}

/// The launch on the CPU, by words of 64 bits. An element's slots lie together.
fn cpu(limbs: usize, params: &Params, [program, constants, indices, values, state, out, mask]: &mut [CpuArg<'_>; 7]) {
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
        // It never grows, which would leave a copy behind.
        || Zeroizing::new(vec![0; 2 * words]),
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
                let other: Zeroizing<Vec<u64>> = Zeroizing::new(other.collect());
                let swap = match wanted {
                    choice::EVEN => root[0] & 1 == 1,
                    choice::SMALLER => is_below(&other, root),
                    // The opposite of 0 is 0.
                    choice::LARGER => is_below(root, &other) && root.iter().any(|word| *word != 0),
                    _ => false,
                };
                let root = if swap { &other[..] } else { root };
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
