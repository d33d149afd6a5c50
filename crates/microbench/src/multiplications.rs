use std::{array, marker::PhantomData};

use evariste_backend::{
    Buffer, Device, Error, Result,
    author::{Arg, Binding, CpuArg, Kernel, KernelSpec, Language},
    constants, parallel, params,
};

use evariste_field::{
    DeviceField, Mont, ifma, shoup_constants,
    source::{self, binding_type, iterations},
};

use crate::THREADS;

/// Steps that one run of [`MulChain`] does on each element: some hundred times what loading and storing the element
/// costs on any device.
pub const MULTIPLICATIONS: u32 = 512;

constants! {
    /// The values of STEP in the sources: [`Step`].
    mod steps {
        STEP_MUL = Step::Mul as u32,
        STEP_SQUARE = Step::Square as u32,
        STEP_MAC = Step::Mac as u32,
        STEP_SHOUP = Step::Shoup as u32,
    }
}

/// What [`MulChain`] does with each element x.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Multiplies by x: x^([`MULTIPLICATIONS`] + 1) in the end.
    Mul,
    /// Squares: x^(2^[`MULTIPLICATIONS`]).
    Square,
    /// Adds the product of x and the element j places further, in a circle, for j from 0 on. In CUDA the sum is reduced
    /// once, over prime fields of an even number of limbs with a bit of room.
    Mac,
    /// Multiplies by a constant: x · w^[`MULTIPLICATIONS`]. In CUDA with a precomputed quotient, over the same fields.
    Shoup,
}

impl Step {
    /// All of them, in the order of their numbers in the sources.
    pub const ALL: [Self; 4] = [Step::Mul, Step::Square, Step::Mac, Step::Shoup];
}

/// Chains that a CPU core works on at once: one alone waits for the latency of each multiplication.
const LANES: usize = 4;

/// Many multiplications on each element and nothing else, so that the time of a run is that of its arithmetic.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use ark_bls12_381::Fr;
/// use ark_ff::Field;
/// use evariste_backend::Device;
/// use evariste_field::Mont;
/// use evariste_microbench::{MULTIPLICATIONS, MulChain, Step};
///
/// let device = Device::best()?;
/// let x = device.upload::<Mont<Fr>>(&[Fr::from(3)])?;
/// let mut out = device.alloc(1)?;
/// MulChain::new(&device, Step::Mul, Fr::ONE)?.run(&x, &mut out)?;
/// assert_eq!(out.to_vec()?, [Fr::from(3).pow([u64::from(MULTIPLICATIONS) + 1])]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MulChain<F> {
    kernel: Kernel<Params>,
    /// The constant in the forms that kernels multiply by.
    w: Buffer<u32>,
    field: PhantomData<fn() -> F>,
}

params! {
    struct Params {
        len: u32,
    }
}

impl<F: DeviceField> MulChain<F> {
    /// Compiles the kernel for `device`. `w` is the constant of [`Step::Shoup`]; the other steps do not use it.
    ///
    /// # Errors
    /// [`Error::Compile`] if the compiler refuses the kernel, [`Error::Unavailable`] if there is no compiler,
    /// [`Error::OutOfMemory`] if there is no memory for the constant.
    pub fn new(device: &Device, step: Step, w: F) -> Result<Self> {
        let w = device.upload::<u32>(&shoup_constants([w]))?;
        Ok(Self { kernel: Kernel::new(device, Self::kernel(step))?, w, field: PhantomData })
    }

    /// The kernel of a step, for compiling it ahead.
    pub fn kernel(step: Step) -> KernelSpec {
        let word = binding_type::<F>();
        let bindings = [Binding::read("x", word), Binding::read("w", word), Binding::write("out", word)];
        let source = move |language| match language {
            Language::Cuda => {
                let constants = format!("#define LENGTH {MULTIPLICATIONS}\n#define STEP {}\n", step as u32);
                [&source::cuda::<F>(), &constants, evariste_cuda::vector::MUL_CHAIN].concat()
            }
            Language::Wgsl { int64 } => {
                let accessors: String = bindings.iter().map(source::wgsl_accessors::<F>).collect();
                let constants = format!("const LENGTH = {MULTIPLICATIONS}u;\nconst STEP = {}u;\n", step as u32);
                [&source::wgsl::<F>(int64), &accessors, &constants, evariste_shaders::vector::MUL_CHAIN].concat()
            }
        };
        // Lanes have chains of multiplications only.
        let lanes = ifma::Montgomery52::of::<F>().filter(|_| step == Step::Mul);
        let body = move |params: &Params, [x, w, out]: &mut [CpuArg<'_>; 3]| {
            let limbs = params.len as usize * F::LIMBS;
            if let Some(lanes) = &lanes {
                let out = &mut out.write::<u32>()[..limbs];
                out.copy_from_slice(&x.read::<u32>()[..limbs]);
                return lanes.chain(out, MULTIPLICATIONS);
            }
            let (x, w) = (&x.read::<u32>()[..limbs], F::load(&w.read::<u32>()[..F::LIMBS]));
            parallel::chunks(&mut out.write::<u32>()[..limbs], LANES * F::LIMBS, &|chunk, out| {
                run_lanes(step, x, w, chunk * LANES, out);
            });
        };
        let variant = format!("{step:?} {MULTIPLICATIONS} over {}", source::label::<F>());
        let iterations = iterations::repeat(MULTIPLICATIONS.into(), iterations::mul::<F>());
        KernelSpec::new("mul_chain", variant, bindings, body, source)
            .constants(steps::ALL)
            .threads(THREADS)
            .iterations(move |_: &Params| iterations)
    }

    /// Does [`MULTIPLICATIONS`] steps one after the other on each element.
    ///
    /// # Errors
    /// - [`Error::Length`] if lengths differ.
    /// - [`Error::TooLarge`] if a chain has more iterations than the loops of a thread may take
    ///   ([`Limits::loop_iterations`](evariste_backend::Limits::loop_iterations)).
    /// - [`Error::WrongDevice`] if a buffer is on another device.
    /// - [`Error::Driver`] if a call of the driver fails.
    /// - [`Error::Lost`] if the device is lost.
    pub fn run(&self, x: &Buffer<Mont<F>>, out: &mut Buffer<Mont<F>>) -> Result<()> {
        out.expect_len("the output", x.len())?;
        let len = u32::try_from(x.len()).map_err(|_| Error::TooLarge {
            what: "vector",
            device: x.device().info().id,
            expected: u32::MAX.into(),
            actual: x.len() as u64,
        })?;
        let args = &mut [Arg::read(x), Arg::read(&self.w), Arg::write(out)];
        // SAFETY: both vectors have `len` elements, and threads touch only those below it; `w` has three.
        unsafe { self.kernel.launch(&x.device().default_queue(), len.div_ceil(THREADS).into(), &Params { len }, args) }
    }
}

/// The chains of up to [`LANES`] elements from number `first` on, side by side.
fn run_lanes<F: DeviceField>(step: Step, x: &[u32], w: F, first: usize, out: &mut [u32]) {
    let len = x.len() / F::LIMBS;
    let load = |i: usize| F::load(&x[i % len * F::LIMBS..][..F::LIMBS]);
    let own: [F; LANES] = array::from_fn(|lane| load(first + lane));
    let mut results = own;
    match step {
        Step::Mul => (0..MULTIPLICATIONS).for_each(|_| results.iter_mut().zip(&own).for_each(|(r, x)| *r *= x)),
        Step::Square => (0..MULTIPLICATIONS).for_each(|_| results.iter_mut().for_each(|r| *r = r.square())),
        Step::Shoup => (0..MULTIPLICATIONS).for_each(|_| results.iter_mut().for_each(|r| *r *= w)),
        Step::Mac => {
            results = [F::ZERO; LANES];
            for j in 0..MULTIPLICATIONS as usize {
                for (lane, (r, x)) in results.iter_mut().zip(&own).enumerate() {
                    *r += *x * load(first + lane + j);
                }
            }
        }
    }
    out.chunks_exact_mut(F::LIMBS).zip(&results).for_each(|(limbs, result)| result.store(limbs));
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bls12_381::Fr;
    use evariste_field::small::Goldilocks3;

    fn expect_chains<F: DeviceField>(device: &Device) {
        let mut rng = ark_std::test_rng();
        let w = F::rand(&mut rng);
        for (step, len) in
            Step::ALL.into_iter().flat_map(|step| [0, 1, LANES, 2 * LANES + 3, 16, 83].map(|len| (step, len)))
        {
            let x: Vec<F> = (0..len).map(|i| if i == 1 { -F::ONE } else { F::rand(&mut rng) }).collect();
            let mut out = device.alloc(len).unwrap();
            MulChain::new(device, step, w).unwrap().run(&device.upload(&x).unwrap(), &mut out).unwrap();
            let steps = u64::from(MULTIPLICATIONS);
            let expected = |i: usize| match step {
                Step::Mul => x[i].pow([steps + 1]),
                Step::Square => (0..steps).fold(x[i], |x, _| x.square()),
                Step::Mac => (0..MULTIPLICATIONS as usize).map(|j| x[i] * x[(i + j) % len]).sum(),
                Step::Shoup => x[i] * w.pow([steps]),
            };
            assert_eq!(out.to_vec().unwrap(), (0..len).map(expected).collect::<Vec<F>>(), "{step:?} {len}");
        }
    }

    #[test]
    fn chains_are_powers_for_every_number_of_lanes() {
        expect_chains::<Fr>(&Device::cpu());
        expect_chains::<Goldilocks3>(&Device::cpu());
    }
}
