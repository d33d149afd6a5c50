//! The rate of multiplications that a device can reach: what the speed of everything else is held against.

use std::array;

use bytemuck::{Pod, Zeroable};
use evariste_backend::{Arg, Binding, Buffer, CpuArg, Device, Error, Kernel, KernelSpec, Language, Result};
use rayon::prelude::*;

use crate::{
    DeviceField, Mont, ifma,
    source::{self, word},
};

/// Multiplications that one run of [`MulChain`] does on each element: some hundred times what loading and storing the
/// element costs on any device.
pub const CHAIN_LENGTH: u32 = 512;

/// Threads of a workgroup.
const THREADS: u32 = 256;

/// Chains that a CPU core works on at once: one alone waits for the latency of each multiplication.
const LANES: usize = 4;

/// Many multiplications on each element and nothing else, so that the time of a run is that of its arithmetic.
///
/// ```
/// # fn main() -> Result<(), evariste_backend::Error> {
/// use ark_bls12_381::Fr;
/// use ark_ff::Field;
/// use evariste_backend::Device;
/// use evariste_field::{Mont, rate::{CHAIN_LENGTH, MulChain}};
///
/// let device = Device::best()?;
/// let mut x = device.upload::<Mont<Fr>>(&[Fr::from(3)])?;
/// MulChain::new(&device)?.run(&mut x)?;
/// assert_eq!(x.to_vec()?, [Fr::from(3).pow([u64::from(CHAIN_LENGTH) + 1])]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MulChain<F> {
    kernel: Kernel<Params>,
    field: std::marker::PhantomData<fn() -> F>,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Params {
    len: u32,
}

impl<F: DeviceField> MulChain<F> {
    /// Compiles the kernel for `device`.
    ///
    /// # Errors
    /// [`Error::Compile`], [`Error::Unavailable`] where the compiler is missing.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self { kernel: Kernel::new(device, Self::kernel())?, field: std::marker::PhantomData })
    }

    /// The kernel, for compiling it ahead.
    pub fn kernel() -> KernelSpec {
        let bindings = vec![Binding::write("x", word::<F>())];
        let seen = bindings.clone();
        let source = move |language| match language {
            Language::Cuda => {
                format!("{}#define LENGTH {CHAIN_LENGTH}\n{}", source::cuda::<F>(), evariste_cuda::MUL_CHAIN)
            }
            Language::Wgsl { int64 } => {
                let accessors: String = seen.iter().map(source::wgsl_accessors::<F>).collect();
                let length = format!("const LENGTH = {CHAIN_LENGTH}u;\n");
                [&source::wgsl::<F>(int64), &accessors, &length, evariste_shaders::MUL_CHAIN].concat()
            }
        };
        let lanes = ifma::Field::of::<F>();
        let body = move |params: &Params, args: &mut [CpuArg<'_>]| {
            let [x] = args else { unreachable!("the launch checks the number of buffers") };
            let limbs = params.len as usize * F::LIMBS;
            if let Some(lanes) = &lanes {
                return lanes.chain(&mut x.write()[..limbs], CHAIN_LENGTH);
            }
            x.write::<u32>()[..limbs].par_chunks_mut(LANES * F::LIMBS).for_each(run_lanes::<F>);
        };
        let variant = format!("{CHAIN_LENGTH} over {}", source::label::<F>());
        KernelSpec::new("mul_chain", variant, bindings, body, source).threads(THREADS)
    }

    /// `x[i] = x[i]^(CHAIN_LENGTH + 1)`, by [`CHAIN_LENGTH`] multiplications one after the other on each element.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::WrongDevice`], [`Error::Driver`], [`Error::Lost`].
    pub fn run(&self, x: &mut Buffer<Mont<F>>) -> Result<()> {
        let len = u32::try_from(x.len()).map_err(|_| Error::TooLarge {
            what: "vector",
            device: x.device().info().id,
            limit: u32::MAX.into(),
            actual: x.len() as u64,
        })?;
        // SAFETY: the buffer has `len` elements, and threads touch only those below it.
        unsafe { self.kernel.launch(None, len.div_ceil(THREADS).into(), &Params { len }, &mut [Arg::write(x)]) }
    }
}

/// The chains of up to [`LANES`] elements, side by side.
fn run_lanes<F: DeviceField>(limbs: &mut [u32]) {
    let factors: [F; LANES] = {
        let mut elements = limbs.chunks_exact(F::LIMBS).map(F::load);
        array::from_fn(|_| elements.next().unwrap_or(F::ZERO))
    };
    let mut products = factors;
    for _ in 0..CHAIN_LENGTH {
        products.iter_mut().zip(&factors).for_each(|(product, factor)| *product *= factor);
    }
    limbs.chunks_exact_mut(F::LIMBS).zip(&products).for_each(|(limbs, product)| product.store(limbs));
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::Fr;
    use ark_ff::{Field, UniformRand};

    use super::*;

    #[test]
    fn chains_are_powers_for_every_number_of_lanes() {
        let device = Device::cpu();
        let chain = MulChain::<Fr>::new(&device).unwrap();
        let mut rng = ark_std::test_rng();
        for len in [0, 1, LANES, 2 * LANES + 3, 16, 83] {
            let host: Vec<Fr> = (0..len).map(|_| Fr::rand(&mut rng)).collect();
            let mut x = device.upload::<Mont<Fr>>(&host).unwrap();
            chain.run(&mut x).unwrap();
            let expected: Vec<Fr> = host.iter().map(|x| x.pow([u64::from(CHAIN_LENGTH) + 1])).collect();
            assert_eq!(x.to_vec().unwrap(), expected);
        }
    }
}
