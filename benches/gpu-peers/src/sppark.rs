//! sppark: transforms on the first device.

use std::{
    ffi::{c_int, c_void},
    ptr,
};

use anyhow::{Result, ensure};
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

declare!(BLS12_381: evariste_bls12_381_alloc evariste_bls12_381_free evariste_bls12_381_write evariste_bls12_381_read
         evariste_bls12_381_wait evariste_bls12_381_forward);
declare!(BN254: evariste_bn254_alloc evariste_bn254_free evariste_bn254_write evariste_bn254_read evariste_bn254_wait
         evariste_bn254_forward);
declare!(BABY_BEAR: evariste_baby_bear_alloc evariste_baby_bear_free evariste_baby_bear_write evariste_baby_bear_read
         evariste_baby_bear_wait evariste_baby_bear_forward);
declare!(GOLDILOCKS: evariste_goldilocks_alloc evariste_goldilocks_free evariste_goldilocks_write evariste_goldilocks_read
         evariste_goldilocks_wait evariste_goldilocks_forward);

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
