//! Secrets stay in secret memory.
//!
//! What operations keep for themselves is as secret as the most secret of what they are given: nothing of a secret, be
//! it a partial sum, is left in memory that others get. What they write to is so already, or they refuse it
//! ([`SecretInput`](evariste::backend::Error::SecretInput)) and have written nothing.
//!
//! For each operation, every single operand is secret once, alone and with all that is written, and then all are and
//! none is. The device below sees what comes to which memory: nothing of a secret to what is public, whatever the
//! façade says of it. Whatever an operation allocates meanwhile, on the device and for staging, must be secret, and so
//! be zeroed before others get it; and memory of the same sizes, taken afterwards, must hold no word of the secret
//! operands.
//!
//! A kernel that no operation of these launches is found ([`common`]).

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use ark_bls12_381::Fr;
use evariste::{
    backend::{Buffer, Device, Element, Kind, Secrecy, Transfer, author::Arg},
    field::{Mont, Vector},
};
use libtest_mimic::{Failed, Trial};

use crate::{
    expect::{expect, expect_equal},
    harness::{DeviceTrials, Outcome},
    recorder::{Allocation, Recorder},
    samples::samples,
    trials::AREAS,
};

/// Elements: several chunks of a reduction, and tiles of a prefix sum.
pub(crate) const LEN: usize = 5000;

/// Points: several slices of a sum.
pub(crate) const POINTS: usize = 300;

/// Bytes that are looked for. A random match of this length is too rare to occur.
const PATTERN: usize = 8;

/// What is done with secrets.
#[derive(Debug)]
pub(crate) struct Operation {
    name: &'static str,
    /// How many operands it has.
    operands: usize,
    /// Makes the operands and watches the operation.
    run: fn(&Probe) -> Outcome,
    /// Whether Mesa takes minutes to compile its kernels.
    is_slow: bool,
}

impl Operation {
    pub(crate) const fn new(name: &'static str, operands: usize, run: fn(&Probe) -> Outcome) -> Self {
        Self { name, operands, run, is_slow: false }
    }

    /// One whose kernels take Mesa minutes to compile.
    pub(crate) const fn slow(name: &'static str, operands: usize, run: fn(&Probe) -> Outcome) -> Self {
        Self { name, operands, run, is_slow: true }
    }
}

/// The operations of all areas.
fn all() -> impl Iterator<Item = &'static Operation> {
    AREAS.iter().flat_map(|area| area.operations)
}

/// Which operands are secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Secret {
    None,
    All,
    /// This one.
    Alone(usize),
    /// This one and all that are written.
    With(usize),
}

pub(crate) fn add(trials: &mut DeviceTrials<'_>) {
    let software = trials.device.info().features.software && trials.device.info().id.kind == Kind::Wgpu;
    for &Operation { name, operands, run, is_slow } in all() {
        if software && is_slow {
            trials.skip(name, "Mesa takes minutes to compile it, and secrets are looked for on the host");
            continue;
        }
        let device = trials.device.clone();
        trials.add_alone_with(name, move || {
            let single = (0..operands).flat_map(|number| [Secret::Alone(number), Secret::With(number)]);
            for secret in single.chain([Secret::All, Secret::None]) {
                let probe = Probe::new(&device, secret);
                let outcome = run(&probe).and_then(|()| probe.expect_right(operands));
                outcome.map_err(|error| format!("secret {secret:?}: {}", error.message().unwrap_or("failed")))?;
            }
            Ok(())
        });
    }
}

/// Every operation, on any device, of public operands.
pub(crate) fn operations() -> impl Iterator<Item = (&'static str, impl Fn(&Device) -> Outcome)> {
    all().map(|operation| (operation.name, move |device: &Device| (operation.run)(&Probe::new(device, Secret::None))))
}

/// That no kernel is missing here.
pub(crate) fn common() -> Trial {
    Trial::test("any::secrecy::every_kernel_has_an_operation", || {
        let mut launched = BTreeSet::new();
        for Operation { name, run, .. } in all() {
            let probe = Probe::new(&Device::cpu(), Secret::None);
            run(&probe).map_err(|error| format!("{name}: {}", error.message().unwrap_or("failed")))?;
            launched.extend(probe.recorder.names());
        }
        let without: BTreeSet<_> =
            AREAS.iter().flat_map(|area| area.without_operation).map(|(name, _)| *name).collect();
        let names: BTreeSet<_> = evariste_cuda::KERNELS.iter().map(|(kernel, _)| *kernel).collect();
        expect_equal("kernels that no operation launches", &(&names - &launched), &without)
    })
}

/// A device that remembers what is allocated and written, and gives operands of the secrecy that is tried.
pub(crate) struct Probe {
    pub(crate) device: Device,
    recorder: Arc<Recorder>,
    secret: Secret,
    /// Of each operand, whether it is written.
    operands: RefCell<Vec<bool>>,
    writing: Cell<bool>,
    /// Whether the operation was refused.
    refused: Cell<bool>,
    /// Kernels that may bring secrets to public memory.
    declassifying: Cell<&'static [&'static str]>,
    /// Public operands.
    public: RefCell<HashSet<usize>>,
    /// Words of the secret operands.
    words: RefCell<HashSet<[u8; PATTERN]>>,
    allocated: RefCell<Vec<Allocation>>,
}

impl Probe {
    fn new(below: &Device, secret: Secret) -> Self {
        let recorder = Recorder::new(below, false);
        let device = Device::unregistered(Arc::clone(&recorder) as _);
        let (operands, writing, refused, declassifying) = Default::default();
        let (public, words, allocated) = Default::default();
        Self { device, recorder, secret, operands, writing, refused, declassifying, public, words, allocated }
    }

    pub(crate) fn vector(&self) -> Vector<Fr> {
        Vector::new(&self.device)
    }

    /// A value that the host gives.
    pub(crate) fn value(&self) -> Fr {
        Fr::from(0x1234_5678_9abc_def1_u64)
    }

    /// The secrecy of the next operand.
    pub(crate) fn next(&self) -> Secrecy {
        let (mut operands, is_written) = (self.operands.borrow_mut(), self.writing.get());
        let number = operands.len();
        operands.push(is_written);
        let is_secret = match self.secret {
            Secret::None => false,
            Secret::All => true,
            Secret::Alone(secret) => secret == number,
            Secret::With(secret) => secret == number || is_written,
        };
        if is_secret { Secrecy::Secret } else { Secrecy::Public }
    }

    pub(crate) fn next_output(&self) -> Secrecy {
        self.writing.set(true);
        let secrecy = self.next();
        self.writing.set(false);
        secrecy
    }

    /// Operands that are written, too.
    pub(crate) fn in_place<T>(&self, make: impl FnOnce(&Self) -> Result<T, Failed>) -> Result<T, Failed> {
        self.writing.set(true);
        let made = make(self);
        self.writing.set(false);
        made
    }

    /// Names kernels that may bring secrets to public memory.
    pub(crate) fn allow_declassifying(&self, kernels: &'static [&'static str]) {
        self.declassifying.set(kernels);
    }

    fn remember<T: Element>(&self, buffer: &Buffer<T>) {
        if buffer.secrecy() == Secrecy::Public {
            self.public.borrow_mut().insert(Arg::read(buffer).memory().address());
        }
    }

    pub(crate) fn operand<T: Element>(&self, host: &[T::Host]) -> Result<Buffer<T>, Failed> {
        let secrecy = self.next();
        let buffer = self.device.upload_with::<T>(host, secrecy)?;
        self.remember(&buffer);
        if secrecy == Secrecy::Secret {
            let mut bytes = self.device.host_buffer(buffer.bytes() as usize, Transfer::Download, Secrecy::Secret)?;
            bytes = buffer.read_pinned(bytes)?.wait()?;
            let words = bytes.as_chunks::<PATTERN>().0.iter().copied();
            // Small integers are everywhere.
            self.words.borrow_mut().extend(words.filter(|word| word.iter().filter(|byte| **byte == 0).count() < 2));
        }
        Ok(buffer)
    }

    /// A number for each choice of what is secret, which values depend on: what was public with another choice may
    /// still lie in the device's pools.
    pub(crate) fn run(&self) -> u32 {
        match self.secret {
            Secret::None => 0,
            Secret::All => 1,
            Secret::Alone(number) => 2 * number as u32 + 2,
            Secret::With(number) => 2 * number as u32 + 3,
        }
    }

    /// The same without edge values.
    pub(crate) fn first(&self, seed: u64, len: usize) -> Result<Buffer<Mont<Fr>>, Failed> {
        self.operand(&samples::<Fr>(len + 64, 1000 * u64::from(self.run()) + seed)[64..])
    }

    pub(crate) fn elements(&self, seed: u64) -> Result<Buffer<Mont<Fr>>, Failed> {
        self.first(seed, LEN)
    }

    /// Values of 32 bits. No two operands of an operation share one in the same place.
    pub(crate) fn keys(&self, len: usize) -> Result<Buffer<u32>, Failed> {
        let seed = (self.run() + 1000 * self.operands.borrow().len() as u32).wrapping_mul(0x5bd1_e995);
        let key = |i: u32| i.wrapping_mul(2_654_435_761).wrapping_add(seed);
        self.operand(&(0..len as u32).map(key).collect::<Vec<_>>())
    }

    /// Indices behind pairs of others that are looked for. Half of them are below the length.
    pub(crate) fn places(&self, len: usize) -> Result<Buffer<u32>, Failed> {
        let place = |i: u32| {
            let key = i.wrapping_mul(2_654_435_761).wrapping_add(self.run().wrapping_mul(0x5bd1_e995));
            if i % 4 < 2 { key } else { key % len as u32 }
        };
        self.operand(&(0..len as u32).map(place).collect::<Vec<_>>())
    }

    pub(crate) fn sorted(&self, len: usize) -> Result<Buffer<u32>, Failed> {
        self.operand(&(0..len as u32).map(|i| i / 50).collect::<Vec<_>>())
    }

    pub(crate) fn output_of<T: Element>(&self, len: usize) -> Result<Buffer<T>, Failed> {
        let buffer = self.device.alloc_with(len, self.next_output())?;
        self.remember(&buffer);
        Ok(buffer)
    }

    pub(crate) fn output(&self, len: usize) -> Result<Buffer<Mont<Fr>>, Failed> {
        self.output_of(len)
    }

    pub(crate) fn output_keys(&self, len: usize) -> Result<Buffer<u32>, Failed> {
        self.output_of(len)
    }

    /// Runs an operation once for what is made at its first use, such as tables, and then watches what it allocates.
    pub(crate) fn watch<T, E>(&self, mut run: impl FnMut() -> Result<T, E>) -> Outcome
    where
        Failed: From<E>,
    {
        self.watch_call(&mut || run().map(drop).map_err(Failed::from))
    }

    /// Compiled once for all operations.
    fn watch_call(&self, run: &mut dyn FnMut() -> Outcome) -> Outcome {
        self.recorder.written();
        self.recorder.leaks();
        let first = run();
        self.expect_no_leak()?;
        if let Err(error) = first {
            if !error.message().is_some_and(|text| text.contains("is secret, and")) {
                return Err(error);
            }
            self.refused.set(true);
            let written = self.recorder.written();
            return expect("a refused call has written nothing", self.public.borrow().is_disjoint(&written));
        }
        self.recorder.allocations();
        run()?;
        self.expect_no_leak()?;
        let allocated = self.recorder.allocations();
        // The numbers of messages and sectors are public, and so is what is computed of public operands.
        if self.secret == Secret::None || !self.declassifying.get().is_empty() {
            return Ok(());
        }
        let public: Vec<_> = allocated.iter().filter(|allocation| allocation.secrecy == Secrecy::Public).collect();
        expect(&format!("all is secret of what is allocated, but {public:?}: it"), public.is_empty())?;
        self.allocated.replace(allocated);
        Ok(())
    }

    /// Keys are no secret of their ciphertext's, but with secret data there is no public memory for anything.
    fn expect_no_leak(&self) -> Outcome {
        let mut leaks = self.recorder.leaks();
        if self.secret == Secret::None {
            leaks.retain(|kernel| !self.declassifying.get().contains(kernel));
        }
        expect(&format!("no secret comes to public memory, but by {leaks:?}: it"), leaks.is_empty())
    }

    /// Whether the operation was refused where it had to be, and left nothing behind.
    fn expect_right(&self, operands: usize) -> Outcome {
        let of = self.operands.borrow();
        expect_equal("the number of operands", &of.len(), &operands)?;
        let (written, refused) = (of.iter().filter(|is_written| **is_written).count(), self.refused.get());
        match self.secret {
            Secret::None | Secret::All | Secret::With(_) => expect("it is done", !refused)?,
            // Whether a kernel reads what it writes is not declared.
            Secret::Alone(number) if of[number] && written > 1 => {}
            Secret::Alone(number) if of[number] || written == 0 => expect("it is done", !refused)?,
            Secret::Alone(_) => expect("it is refused", refused)?,
        }
        self.expect_nothing_left()
    }

    /// After the operands were dropped.
    fn expect_nothing_left(&self) -> Outcome {
        self.device.sync()?;
        let words = self.words.borrow();
        let is_clean = |bytes: &[u8]| bytes.windows(PATTERN).step_by(4).all(|window| !words.contains(window));
        let (mut buffers, mut hosts) = (Vec::new(), Vec::new());
        for allocation in self.allocated.borrow().iter() {
            match allocation.transfer {
                None => buffers.push(self.device.alloc::<u8>(allocation.bytes as usize)?),
                Some(transfer) => {
                    hosts.push(self.device.host_buffer(allocation.bytes as usize, transfer, Secrecy::Public)?);
                }
            }
        }
        for buffer in &buffers {
            expect("memory is clean", is_clean(&buffer.to_vec()?))?;
        }
        expect("staging memory is clean", hosts.iter().all(|host| is_clean(host)))
    }
}
