//! sppark: transforms, and sums of products of points and scalars, on the first device.

use std::{
    ffi::{c_int, c_void},
    marker::PhantomData,
    ptr,
};

use anyhow::{Result, ensure};
use ark_ec::short_weierstrass::{Projective, SWCurveConfig};
use ark_ff::BigInt;
// Their libraries are what ours is linked with.
use blst as _;
use sppark as _;

/// Functions of C for one field.
#[derive(Clone, Copy, Debug)]
struct Functions {
    alloc: unsafe extern "C" fn(usize, *mut *mut c_void) -> c_int,
    free: unsafe extern "C" fn(*mut c_void),
    write: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
    read: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
    wait: unsafe extern "C" fn() -> c_int,
    forward: unsafe extern "C" fn(*mut c_void, u32) -> c_int,
}

/// Functions of C for one curve.
#[derive(Clone, Copy, Debug)]
struct SumFunctions {
    new: unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut *mut c_void) -> c_int,
    sum: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
    free: unsafe extern "C" fn(*mut c_void),
}

macro_rules! declare {
    ($functions:ident: $alloc:ident $free:ident $write:ident $read:ident $wait:ident $forward:ident) => {
        unsafe extern "C" {
            fn $alloc(bytes: usize, memory: *mut *mut c_void) -> c_int;
            fn $free(memory: *mut c_void);
            fn $write(to: *mut c_void, from: *const c_void, bytes: usize) -> c_int;
            fn $read(to: *mut c_void, from: *const c_void, bytes: usize) -> c_int;
            fn $wait() -> c_int;
            fn $forward(elements: *mut c_void, log_n: u32) -> c_int;
        }
        const $functions: Functions =
            Functions { alloc: $alloc, free: $free, write: $write, read: $read, wait: $wait, forward: $forward };
    };
}

macro_rules! declare_sum {
    ($functions:ident: $new:ident $sum:ident $free:ident) => {
        unsafe extern "C" {
            fn $new(bases: *mut c_void, scalars: *mut c_void, count: usize, sum: *mut *mut c_void) -> c_int;
            fn $sum(sum: *mut c_void, point: *mut c_void) -> c_int;
            fn $free(sum: *mut c_void);
        }
        const $functions: SumFunctions = SumFunctions { new: $new, sum: $sum, free: $free };
    };
}

declare!(BLS12_381: evariste_bls12_381_alloc evariste_bls12_381_free evariste_bls12_381_write evariste_bls12_381_read
         evariste_bls12_381_wait evariste_bls12_381_forward);
declare!(BN254: evariste_bn254_alloc evariste_bn254_free evariste_bn254_write evariste_bn254_read evariste_bn254_wait
         evariste_bn254_forward);
declare!(BABY_BEAR: evariste_baby_bear_alloc evariste_baby_bear_free evariste_baby_bear_write evariste_baby_bear_read
         evariste_baby_bear_wait evariste_baby_bear_forward);
declare!(GOLDILOCKS: evariste_goldilocks_alloc evariste_goldilocks_free evariste_goldilocks_write evariste_goldilocks_read
         evariste_goldilocks_wait evariste_goldilocks_forward);
declare_sum!(BLS12_381_SUMS: evariste_bls12_381_sum_new evariste_bls12_381_sum evariste_bls12_381_sum_free);
declare_sum!(BN254_SUMS: evariste_bn254_sum_new evariste_bn254_sum evariste_bn254_sum_free);

/// A field of transforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// BLS12-381 Fr: 32 bytes an element.
    Bls12381,
    /// BN254 Fr: 32 bytes.
    Bn254,
    /// BabyBear: 4 bytes.
    BabyBear,
    /// Goldilocks: 8 bytes, not in Montgomery form.
    Goldilocks,
}

impl Field {
    fn functions(self) -> Functions {
        match self {
            Field::Bls12381 => BLS12_381,
            Field::Bn254 => BN254,
            Field::BabyBear => BABY_BEAR,
            Field::Goldilocks => GOLDILOCKS,
        }
    }
}

fn check(what: &str, code: c_int) -> Result<()> {
    ensure!(code == 0, "sppark could not {what}: CUDA's error {code}");
    Ok(())
}

/// Memory of the device.
#[derive(Debug)]
struct Memory {
    functions: Functions,
    address: *mut c_void,
    bytes: usize,
}

impl Memory {
    fn of(functions: Functions, contents: &[u8]) -> Result<Self> {
        let mut address = ptr::null_mut();
        // SAFETY: the function writes an address, or returns an error.
        check("allocate memory", unsafe { (functions.alloc)(contents.len(), &mut address) })?;
        let memory = Self { functions, address, bytes: contents.len() };
        memory.write(contents)?;
        Ok(memory)
    }

    fn write(&self, contents: &[u8]) -> Result<()> {
        ensure!(contents.len() == self.bytes, "{} bytes for {}", contents.len(), self.bytes);
        // SAFETY: both are of this length, which was just checked.
        check("write", unsafe { (self.functions.write)(self.address, contents.as_ptr().cast(), self.bytes) })
    }

    /// The address, which is freed no longer.
    fn into_address(self) -> *mut c_void {
        std::mem::ManuallyDrop::new(self).address
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated by the same functions and is freed once.
        unsafe { (self.functions.free)(self.address) }
    }
}

/// A transform of 2^log_n elements on the device.
#[derive(Debug)]
pub struct Transform {
    field: Field,
    memory: Memory,
    log_n: u32,
}

impl Transform {
    /// Elements that lie on the device from then on.
    ///
    /// # Errors
    ///
    /// If the runtime refuses memory, or the length is not a power of two of elements.
    pub fn new(field: Field, elements: &[u8], log_n: u32) -> Result<Self> {
        let bytes = match field {
            Field::Bls12381 | Field::Bn254 => 32,
            Field::BabyBear => 4,
            Field::Goldilocks => 8,
        };
        ensure!(elements.len() == bytes << log_n, "{} bytes are not 2^{log_n} elements", elements.len());
        Ok(Self { field, memory: Memory::of(field.functions(), elements)?, log_n })
    }

    /// Writes other elements.
    ///
    /// # Errors
    ///
    /// If the length is another one, or the copy fails.
    pub fn write(&mut self, elements: &[u8]) -> Result<()> {
        self.memory.write(elements)
    }

    /// Transforms in place, from and to natural order, and does not wait.
    ///
    /// # Errors
    ///
    /// If a launch fails.
    pub fn forward(&mut self) -> Result<()> {
        // SAFETY: the memory holds 2^log_n elements.
        check("transform", unsafe { (self.memory.functions.forward)(self.memory.address, self.log_n) })
    }

    /// The elements, once all that was queued is done.
    ///
    /// # Errors
    ///
    /// If some of it failed, or the copy does.
    pub fn read(&self) -> Result<Vec<u8>> {
        wait(self.field)?;
        let mut elements = vec![0u8; self.memory.bytes];
        let (to, from) = (elements.as_mut_ptr().cast(), self.memory.address.cast_const());
        // SAFETY: both are of this length.
        check("read", unsafe { (self.memory.functions.read)(to, from, self.memory.bytes) })?;
        Ok(elements)
    }
}

/// Waits for all transforms over a field that were queued.
///
/// # Errors
///
/// If some of it failed.
pub fn wait(field: Field) -> Result<()> {
    // SAFETY: it takes nothing.
    check("wait", unsafe { (field.functions().wait)() })
}

/// A curve that has sums here, by its parameters.
pub trait Curve: SWCurveConfig {
    /// Limbs of 64 bits of a coordinate.
    const LIMBS: usize;
    #[doc(hidden)]
    const FUNCTIONS: CurveFunctions;

    /// A coordinate of limbs in Montgomery form.
    fn coordinate(limbs: &[u64]) -> Self::BaseField;
}

/// What a curve's functions are.
#[derive(Clone, Copy, Debug)]
pub struct CurveFunctions {
    memory: Functions,
    sums: SumFunctions,
}

impl Curve for ark_bls12_381::g1::Config {
    const LIMBS: usize = 6;
    const FUNCTIONS: CurveFunctions = CurveFunctions { memory: BLS12_381, sums: BLS12_381_SUMS };

    fn coordinate(limbs: &[u64]) -> ark_bls12_381::Fq {
        ark_bls12_381::Fq::new_unchecked(BigInt(array(limbs)))
    }
}

impl Curve for ark_bn254::g1::Config {
    const LIMBS: usize = 4;
    const FUNCTIONS: CurveFunctions = CurveFunctions { memory: BN254, sums: BN254_SUMS };

    fn coordinate(limbs: &[u64]) -> ark_bn254::Fq {
        ark_bn254::Fq::new_unchecked(BigInt(array(limbs)))
    }
}

fn array<const N: usize>(limbs: &[u64]) -> [u64; N] {
    let mut limbs = limbs.iter().copied();
    [0; N].map(|_| limbs.next().unwrap_or_default())
}

/// A sum of products of bases and scalars, both on the device.
#[derive(Debug)]
pub struct Sum<C: Curve> {
    address: *mut c_void,
    curve: PhantomData<C>,
}

impl<C: Curve> Sum<C> {
    /// Of affine bases, x and y in Montgomery form, and as many scalars of 32 bytes, in Montgomery form too.
    ///
    /// # Errors
    ///
    /// If lengths differ, or the runtime refuses memory.
    pub fn new(bases: &[u8], scalars: &[u8]) -> Result<Self> {
        let count = scalars.len() / 32;
        ensure!(
            scalars.len() == 32 * count && bases.len() == 16 * C::LIMBS * count,
            "bases and scalars differ in number"
        );
        let CurveFunctions { memory, sums } = C::FUNCTIONS;
        let (bases, scalars) = (Memory::of(memory, bases)?, Memory::of(memory, scalars)?);
        let mut address = ptr::null_mut();
        // SAFETY: both are of `count`; the plan takes them over.
        check("make a plan", unsafe { (sums.new)(bases.into_address(), scalars.into_address(), count, &mut address) })?;
        Ok(Self { address, curve: PhantomData })
    }

    /// The sum.
    ///
    /// # Errors
    ///
    /// If a launch or a copy fails.
    pub fn evaluate(&self) -> Result<Projective<C>> {
        let mut point = vec![0u64; 3 * C::LIMBS];
        // SAFETY: the point has room for three coordinates, as Jacobian ones.
        check("sum", unsafe { (C::FUNCTIONS.sums.sum)(self.address, point.as_mut_ptr().cast()) })?;
        let mut coordinates = point.chunks_exact(C::LIMBS).map(C::coordinate);
        let mut next = || coordinates.next().unwrap_or_default();
        Ok(Projective::new_unchecked(next(), next(), next()))
    }
}

impl<C: Curve> Drop for Sum<C> {
    fn drop(&mut self) {
        // SAFETY: it was made by `new`, and is freed once.
        unsafe { (C::FUNCTIONS.sums.free)(self.address) }
    }
}
