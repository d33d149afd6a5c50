//! The kernel that runs a [`Program`] on a batch, and its launches.

use std::{
    ops::Range,
    sync::{Arc, Mutex},
};

use evariste_backend::{
    Buffer, Device, DeviceInfo, Element, Queue, View, ViewMut,
    author::{Arg, Binding, BindingList, BindingType, CpuArg, Kernel, KernelSpec, Language, Ready},
    parallel, params,
};
use evariste_field::{DeviceField, DevicePrimeField, Mont, ifma::STEP, source};

use crate::{
    error::{Error, Result},
    machine::{self, Machine, THREADS},
    program::{LANES, Program},
    root_field::RootField,
};

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

impl<P: evariste_backend::author::Params, B: DevicePrimeField> Loaded<P, B> {
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
        let queue = queue.expect_device(self.kernel.device())?;
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
            // SAFETY: inputs, outputs and verdicts have `len` elements, and threads touch only those below it. The
            // program refers to its own slots, constants and digits alone, and a hash gives places in its table for any
            // element.
            unsafe { self.kernel.launch(queue, groups, &params, &mut args) }?;
        }
        Ok(())
    }
}

/// Takes roots of elements in host memory by `roots`, which gets buffers for the elements, the roots and the mask.
/// Waits for the device, which must be the queue's.
pub(crate) fn on_host<F: RootField>(
    device: &Device,
    queue: &Queue,
    a: &[F],
    roots: impl FnOnce(&Buffer<Mont<F>>, &mut Buffer<Mont<F>>, &mut Buffer<u32>) -> Result<()>,
) -> Result<Vec<Option<F>>> {
    let queue = queue.expect_device(device)?;
    let mut elements = device.alloc::<Mont<F>>(a.len())?;
    let (mut out, mut mask) = (device.alloc::<Mont<F>>(a.len())?, device.alloc::<u32>(a.len())?);
    queue.write(&mut elements, a)?;
    roots(&elements, &mut out, &mut mask)?;
    let (roots, mask) = (queue.download(&out)?, queue.download(&mask)?);
    let (roots, mask) = (roots.wait()?, mask.wait()?);
    Ok(roots.into_iter().zip(mask).map(|(root, is_one)| (is_one == 1).then_some(root)).collect())
}

/// Bytes of device memory that [`on_host`] allocates for `len` elements.
pub(crate) fn host_bytes<F: RootField>(len: usize) -> u64 {
    (len as u64).saturating_mul(2 * <Mont<F> as Element>::BYTES as u64 + 4)
}

/// Products of limbs in one launch for each unit of a device: less than a tenth of a second's on a large GPU, and on a
/// small one less than the seconds after which systems that share it with a screen take it for hanging.
const WORK: u64 = 1 << 31;

/// Elements of a launch, for a number of products in a field for each: whole workgroups, at least one for each unit.
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
            let kernel: &[&str] = match rendered.columns {
                Some(_) => &[evariste_cuda::warp::FUNCTIONS, evariste_cuda::sqrt::WARP],
                None => &[evariste_cuda::sqrt::ROOTS],
            };
            [&[&*field, &machine::cuda(&rendered), &sizes], kernel].concat().concat()
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
    let (run, iterations) = (Arc::clone(program), program.iterations());
    let body = move |params: &Params, args: Args<'_, '_>| body::<F>(&run, shape, *params, args);
    let name = if program.columns.is_some() { "sqrt_warp" } else { "sqrt_roots" };
    let (field, program) = (source::label::<F>(), machine::label(program));
    let variant = format!("{} over {field} ({detail}; {program})", shape.name());
    let shared = if name == "sqrt_warp" { source::tile_bytes::<F::BasePrimeField>(TILE) + 4 * TILE } else { 0 };
    KernelSpec::new(name, variant, bindings, body, source)
        .threads(THREADS)
        .shared_bytes(shared)
        .iterations(move |_: &Params| iterations)
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
    // One thread's work: the elements from number `first` on, one for each verdict.
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
