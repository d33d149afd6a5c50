//! The kernels of ec-gpu-gen that Bellperson runs over BLS12-381, and the launches that its programs make of them, on
//! the first device.

use std::{iter, mem::swap, sync::Arc};

use anyhow::{Context, Result, ensure};
use ark_bls12_381::{Fq, Fr, G1Projective};
use ark_ff::{AdditiveGroup, BigInt, Field, PrimeField};
use cudarc::{
    driver::{
        CudaContext, CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg,
        sys::CUdevice_attribute_enum as Attribute,
    },
    nvrtc::Ptx,
};

/// Their machine code.
const CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ec_gpu.fatbin"));

/// log₂ of the elements of a pass, and of its threads, at most: `MAX_LOG2_RADIX` and `MAX_LOG2_LOCAL_WORK_SIZE` there.
const LOG_RADIX: u32 = 8;
const LOG_THREADS: u32 = 7;

/// Powers of the root that a pass looks up: ω^(2^i).
const POWERS: usize = 32;

/// Threads of a block of sums, `LOCAL_WORK_SIZE` there.
const SUM_THREADS: u32 = 128;

/// Bits of a window at most, `MAX_WINDOW_SIZE` there.
const WINDOW: u32 = 10;

/// Bits that the windows of a scalar make up.
const SCALAR_BITS: u32 = 256;

/// Bytes of an element of Fr, and of a point in Jacobian coordinates.
const ELEMENT: usize = 32;
const POINT: usize = 144;

/// Their programs on the first device.
#[derive(Debug)]
pub struct Program {
    stream: Arc<CudaStream>,
    transform: CudaFunction,
    sum: CudaFunction,
    /// Threads of a sum: `work_units` there.
    units: u32,
}

impl Program {
    /// Loads them.
    ///
    /// # Errors
    ///
    /// If there is no device, or it has no machine code in them.
    pub fn new() -> Result<Self> {
        let context = CudaContext::new(0)?;
        let (major, _) = context.compute_capability()?;
        let module = context.load_module(Ptx::from_binary(CODE.to_vec()))?;
        let processors = context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        // The authors found twice the number best on Ampere.
        let units = SUM_THREADS * u32::try_from(processors)? * if major == 8 { 2 } else { 1 };
        Ok(Self {
            stream: context.default_stream(),
            transform: module.load_function(env!("EC_GPU_TRANSFORM"))?,
            sum: module.load_function(env!("EC_GPU_SUM"))?,
            units,
        })
    }

    /// Waits for all that was queued.
    ///
    /// # Errors
    ///
    /// If some of it failed.
    pub fn wait(&self) -> Result<()> {
        Ok(self.stream.synchronize()?)
    }
}

/// Elements as devices have them.
fn bytes(elements: &[Fr]) -> Vec<u8> {
    elements.iter().flat_map(|element| element.0.0).flat_map(u64::to_le_bytes).collect()
}

/// A transform of 2^log_n elements of BLS12-381 Fr.
#[derive(Debug)]
pub struct Transform<'a> {
    program: &'a Program,
    log_n: u32,
    from: CudaSlice<u8>,
    to: CudaSlice<u8>,
    factors: CudaSlice<u8>,
    powers: CudaSlice<u8>,
}

impl<'a> Transform<'a> {
    /// Of these elements, by a root of unity ω of order 2^log_n.
    ///
    /// # Errors
    ///
    /// If the driver refuses memory.
    pub fn new(program: &'a Program, elements: &[Fr], root: Fr) -> Result<Self> {
        ensure!(elements.len().is_power_of_two() && elements.len() > 1, "{} elements", elements.len());
        let log_n = elements.len().trailing_zeros();
        let radix = log_n.min(LOG_RADIX);
        let step = root.pow([1u64 << (log_n - radix)]);
        let powers_of =
            |first, next: fn(Fr, Fr) -> Fr| iter::successors(Some(first), move |power| Some(next(*power, step)));
        let factors: Vec<Fr> = powers_of(Fr::ONE, |power, step| power * step).take(1 << radix >> 1).collect();
        let powers: Vec<Fr> = powers_of(root, |power, _| power.square()).take(POWERS).collect();
        let upload = |elements: &[Fr]| program.stream.clone_htod(&bytes(elements));
        Ok(Self {
            program,
            log_n,
            from: upload(elements)?,
            to: program.stream.alloc_zeros(ELEMENT * elements.len())?,
            factors: upload(&factors)?,
            powers: upload(&powers)?,
        })
    }

    /// Transforms, from and to natural order, and does not wait.
    ///
    /// # Errors
    ///
    /// If a launch fails.
    pub fn forward(&mut self) -> Result<()> {
        let n = 1u32 << self.log_n;
        let radix = self.log_n.min(LOG_RADIX);
        let mut done = 0;
        while done < self.log_n {
            let levels = radix.min(self.log_n - done);
            let config = LaunchConfig {
                grid_dim: (n >> levels, 1, 1),
                block_dim: (1 << (levels - 1).min(LOG_THREADS), 1, 1),
                shared_mem_bytes: (ELEMENT as u32) << levels,
            };
            // Shared memory, which the text takes from elsewhere.
            let none = 0u64;
            let mut launch = self.program.stream.launch_builder(&self.program.transform);
            launch.arg(&self.from).arg(&mut self.to).arg(&self.factors).arg(&self.powers).arg(&none);
            launch.arg(&n).arg(&done).arg(&levels).arg(&radix);
            // SAFETY: arguments are those of the kernel, whose memory is of n elements, of the factors and of the
            // powers.
            unsafe { launch.launch(config) }?;
            done += levels;
            swap(&mut self.from, &mut self.to);
        }
        Ok(())
    }

    /// An output.
    ///
    /// # Errors
    ///
    /// If a launch had failed.
    pub fn read(&self) -> Result<Vec<Fr>> {
        let bytes = self.program.stream.clone_dtoh(&self.from)?;
        Ok(bytes.chunks_exact(ELEMENT).map(|bytes| Fr::new_unchecked(BigInt(limbs(bytes)))).collect())
    }
}

fn limbs<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut limbs = [0; N];
    for (limb, bytes) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
        *limb = bytes.iter().rev().fold(0, |limb, byte| limb << 8 | u64::from(*byte));
    }
    limbs
}

/// A sum of products of points of BLS12-381 G1 and scalars, both on the device.
#[derive(Debug)]
pub struct Sum<'a> {
    program: &'a Program,
    count: u32,
    window: u32,
    bases: CudaSlice<u8>,
    scalars: CudaSlice<u8>,
    buckets: CudaSlice<u8>,
    results: CudaSlice<u8>,
}

impl<'a> Sum<'a> {
    /// Memory for affine bases of 96 bytes each, with one scalar for each.
    ///
    /// # Errors
    ///
    /// If lengths differ, or the driver refuses memory.
    pub fn new(program: &'a Program, bases: &[u8], scalars: &[Fr]) -> Result<Self> {
        ensure!(bases.len() == 96 * scalars.len(), "{} bytes of bases for {} scalars", bases.len(), scalars.len());
        let stream = &program.stream;
        let integers: Vec<u8> =
            scalars.iter().flat_map(|scalar| scalar.into_bigint().0).flat_map(u64::to_le_bytes).collect();
        let units = program.units as usize;
        let window = (scalars.len().div_ceil(units).max(1).ilog2() + 2).min(WINDOW);
        Ok(Self {
            program,
            count: u32::try_from(scalars.len()).context("scalars")?,
            window,
            bases: stream.clone_htod(bases)?,
            scalars: stream.clone_htod(&integers)?,
            buckets: stream.alloc_zeros((units * POINT) << window)?,
            results: stream.alloc_zeros(units * POINT)?,
        })
    }

    /// The sum, whose last additions the host does as there.
    ///
    /// # Errors
    ///
    /// If a launch or a copy fails.
    pub fn evaluate(&mut self) -> Result<G1Projective> {
        let windows = SCALAR_BITS.div_ceil(self.window);
        let groups = self.program.units / windows;
        let config = LaunchConfig {
            grid_dim: ((windows * groups).div_ceil(SUM_THREADS), 1, 1),
            block_dim: (SUM_THREADS, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = self.program.stream.launch_builder(&self.program.sum);
        launch.arg(&self.bases).arg(&mut self.buckets).arg(&mut self.results).arg(&self.scalars);
        launch.arg(&self.count).arg(&groups).arg(&windows).arg(&self.window);
        // SAFETY: arguments are those of the kernel; buckets are of 2^window for each unit, results one.
        unsafe { launch.launch(config) }?;
        let results = self.program.stream.clone_dtoh(&self.results)?;
        let points: Vec<G1Projective> = results.chunks_exact(POINT).map(point).collect();
        let mut sum = G1Projective::ZERO;
        for window in 0..windows {
            let bits = self.window.min(SCALAR_BITS - window * self.window);
            (0..bits).for_each(|_| _ = sum.double_in_place());
            sum += points
                .iter()
                .skip(window as usize)
                .step_by(windows as usize)
                .take(groups as usize)
                .sum::<G1Projective>();
        }
        Ok(sum)
    }
}

fn point(bytes: &[u8]) -> G1Projective {
    let [x, y, z] = [0, 1, 2].map(|i| Fq::new_unchecked(BigInt(limbs(&bytes[48 * i..48 * (i + 1)]))));
    G1Projective::new_unchecked(x, y, z)
}
