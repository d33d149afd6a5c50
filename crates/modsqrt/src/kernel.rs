//! The kernel that runs a [`StepList`] on a batch: compiled for a number of limbs, for all moduli of that length.

mod cpu;
mod wgsl;

use std::{fmt::Write, sync::Arc};

#[cfg(doc)]
use evariste_backend::Error as DeviceError;
use evariste_backend::{
    Buffer, Device, DeviceInfo, Queue, Result, Secrecy, View, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Language, loop_iterations},
    params,
};

use crate::{
    number::lanes,
    steps::{ARGUMENT_BITS, BITS, HEAD, MULTIPLICATIONS, SLOTS, Step, TABLE, WINDOW, section},
};

/// Threads of a multiprocessor at once: with CUDA, this number fits one with the registers of 32 limbs a thread.
const RESIDENT: u32 = 384;

/// Threads of a workgroup: for long elements, which threads share here, so few that a small batch is divided among all
/// multiprocessors.
pub(crate) const fn threads(limbs: usize) -> u32 {
    if lanes(limbs) == 1 { 128 } else { 32 }
}

/// Rows of products that a WGSL thread has side by side: of 1, 2, 4 and 8, two are the fastest on an H200, for all
/// lengths.
const ROWS: usize = 2;

/// Threads of a multiprocessor in one launch, for moduli of up to 32 limbs: some waves of what runs at once, so that
/// the last one, which may not be full, is short beside them. Their slots are the memory that a batch takes.
pub(crate) const THREADS_EACH: usize = 1536;

/// Limbs for which a launch has [`THREADS_EACH`] threads, each with an element.
const NAMED_LIMBS: usize = 32;

/// Products of limbs, of one element, in one launch: what a small GPU does in less than the seconds after which a
/// driver takes it for hanging.
const WORK: usize = 1 << 22;

/// Values of the mask.
pub(crate) mod mask {
    pub(crate) const NO_ROOT: u32 = 0;
    pub(crate) const ROOT: u32 = 1;
    pub(crate) const NOT_REDUCED: u32 = 2;
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
pub(crate) struct StepList {
    words: Buffer<u32>,
    multiplications: usize,
}

impl StepList {
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
pub(crate) struct RootKernel {
    device: Device,
    limbs: usize,
    kernel: Kernel<Params>,
}

impl RootKernel {
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

    /// Bytes of scratch for `len` elements.
    pub(crate) fn required_bytes(&self, len: usize) -> u64 {
        4 * (state_words(self.limbs) * len.min(self.batch_len())) as u64
    }

    /// Runs a program on all elements, in launches of some elements and some steps.
    ///
    /// # Errors
    /// - [`DeviceError::Length`]: values or output have other than the limbs of an element for each entry of the mask.
    /// - [`DeviceError::WrongDevice`]: one of the buffers lies on another device.
    /// - [`DeviceError::TooLarge`]: one step of one element exceeds the work of a thread.
    /// - [`DeviceError::OutOfMemory`]: there is no room for the slots.
    /// - [`DeviceError::Driver`]: a call of the driver fails.
    /// - [`DeviceError::Lost`]: the device is gone.
    pub(crate) fn run(&self, queue: &Queue, program: &StepList, batch: Batch<'_>) -> Result<()> {
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
                // SAFETY: the views have `len` elements of `limbs` limbs, and `state` has slots for `len`. Steps name
                // slots below SLOTS and sections that the constants of every modulus have. Threads without an element
                // touch none.
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

/// Elements of one launch, with `state_words` words of each kept between launches. The slots of roots take some hundred
/// megabytes on a large GPU, whatever the length of an element.
pub(crate) fn batch_len(info: &DeviceInfo, limbs: usize, state_words: usize) -> usize {
    let wanted = info.parallelism as usize * THREADS_EACH * NAMED_LIMBS / limbs.max(NAMED_LIMBS);
    let bytes = 4 * state_words;
    let most = usize::try_from(info.limits.buffer_bytes).unwrap_or(usize::MAX).min(u32::MAX as usize) / bytes;
    // Multiples of 64, so that the parts of a buffer start where all devices like it.
    (wanted.min(most) / 64 * 64).max(1)
}

/// The kernel for moduli of a number of limbs.
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
    let body = move |params: &Params, args: &mut [CpuArg<'_>; 7]| cpu::run(limbs, params, args);
    let source = move |language| source(language, limbs);
    let step = 3 * loop_iterations(limbs as u64, 0);
    // In WGSL: rows of words and the words for neighbours, each in two places.
    let shared_bytes = if lanes(limbs) == 1 { 0 } else { 4 * 2 * (ROWS as u32 + 1) * threads(limbs) };
    KernelSpec::new("mod_run", format!("{limbs} limbs"), bindings, body, source)
        .threads(threads(limbs))
        .shared_bytes(shared_bytes)
        .iterations(move |params: &Params| loop_iterations((params.end - params.first).into(), step))
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
        ("TOO_LARGE", mask::NOT_REDUCED),
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
            text + &wgsl::multiplication(limbs, int64) + evariste_shaders::modsqrt::RUN
        }
    }
}
