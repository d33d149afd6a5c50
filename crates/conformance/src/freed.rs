//! Nothing of a secret stays in freed memory of the host's heap, whether an operation succeeds or the device fails in
//! it.
//!
//! All operands of an operation are secret. While it runs, with success, and with each launch and each read failing in
//! turn, the allocator ([`heap`]) looks for words of them in what is freed.

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    sync::Arc,
};

use ark_bls12_381::Fr;
use ark_ff::BigInteger;
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use evariste::{
    backend::{Buffer, Device, Element, Secrecy, Transfer},
    field::{DevicePrimeField, Mont},
};
use libtest_mimic::Failed;

use crate::{
    devices::is_emulated,
    expect::expect,
    harness::{DeviceTrials, Outcome},
    heap::{self, WORD},
    recorder::Recorder,
    samples::samples,
    trials::AREAS,
};

/// Elements: several chunks of a reduction, and tiles of a prefix sum.
pub(crate) const LEN: usize = 5000;

/// Launches and reads of an operation that fail, one after the other.
const FAILURES: usize = 40;

/// Where the processor emulates a GPU, some operations take a second. One call in this number fails there.
const EMULATED_STEP: usize = 4;

/// What works on secrets, by its name.
pub(crate) type Freed = (&'static str, fn(&Probe) -> Outcome);

pub(crate) fn add(trials: &mut DeviceTrials<'_>) {
    for (name, run) in AREAS.iter().flat_map(|area| area.freed) {
        let device = trials.device.clone();
        trials.add_alone_with(name, move || run(&Probe::new(&device)));
    }
}

/// A device whose launches and reads fail, and the secrets that the allocator looks for.
pub(crate) struct Probe {
    pub(crate) device: Device,
    recorder: Arc<Recorder>,
    operands: Cell<u64>,
    /// Words of the secret operands.
    words: RefCell<HashSet<[u8; WORD]>>,
}

impl Probe {
    fn new(below: &Device) -> Self {
        heap::keep_clean();
        let recorder = Recorder::new(below, false);
        let device = Device::unregistered(Arc::clone(&recorder) as _);
        let (operands, words) = Default::default();
        Self { device, recorder, operands, words }
    }

    fn seed(&self) -> u64 {
        1000 + self.operands.replace(self.operands.get() + 1)
    }

    pub(crate) fn operand<T: Element>(&self, host: &[T::Host]) -> Result<Buffer<T>, Failed> {
        let buffer = self.device.upload_with::<T>(host, Secrecy::Secret)?;
        let bytes = self.device.host_buffer(buffer.bytes() as usize, Transfer::Download, Secrecy::Secret)?;
        self.look_for(&buffer.read_pinned(bytes)?.wait()?);
        Ok(buffer)
    }

    /// Has the words of some bytes looked for.
    pub(crate) fn look_for(&self, bytes: &[u8]) {
        let words = bytes.as_chunks::<WORD>().0.iter().copied();
        // Small integers are everywhere.
        self.words.borrow_mut().extend(words.filter(|word| word.iter().filter(|byte| **byte == 0).count() < 2));
    }

    /// Elements that are looked for only as operands.
    pub(crate) fn samples<F: DevicePrimeField>(&self, len: usize) -> Vec<F> {
        samples::<F>(len + 64, self.seed()).split_off(64)
    }

    /// Secret elements on the host. The allocator looks for their integers and their Montgomery forms.
    pub(crate) fn host<F: DevicePrimeField>(&self, len: usize) -> Vec<F> {
        let elements = self.samples::<F>(len);
        for element in &elements {
            let mut form = vec![0; F::LIMBS];
            element.store(&mut form);
            self.look_for(bytemuck::cast_slice(&form));
            self.look_for(&element.into_bigint().to_bytes_le());
        }
        elements
    }

    /// Secret bytes, on the heap: of a stack nothing is said, and the padding of what is moved from it to the heap is
    /// what it had.
    pub(crate) fn bytes(&self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.fill(&mut bytes);
        bytes
    }

    /// Makes some bytes secret ones.
    pub(crate) fn fill(&self, bytes: &mut [u8]) {
        StdRng::seed_from_u64(self.seed()).fill(bytes);
        self.look_for(bytes);
    }

    pub(crate) fn elements(&self) -> Result<Buffer<Mont<Fr>>, Failed> {
        self.operand(&self.samples::<Fr>(LEN))
    }

    /// Watches what is freed on the host's heap while an operation runs: with success, and with failures of the device,
    /// one launch or one read later each time, as far as there are such.
    pub(crate) fn watch_heap<T, E>(&self, mut run: impl FnMut() -> Result<T, E>) -> Outcome
    where
        Failed: From<E>,
    {
        expect("what is freed is looked at", heap::is_watched())?;
        let words: Vec<_> = self.words.borrow().iter().copied().collect();
        expect("there are words to look for", !words.is_empty())?;
        let mut watch = |what: &str| -> Result<bool, Failed> {
            let (result, found) = heap::watch(&words, &mut run);
            let found = found.first().map_or("", String::as_str);
            expect(&format!("after {what}, nothing of a secret is freed, but {found}: it"), found.is_empty())?;
            Ok(result.is_err())
        };
        if watch("success")? {
            return Err("the operation failed".into());
        }
        let step = if is_emulated(&self.device) { EMULATED_STEP } else { 1 };
        for number in (0..FAILURES).step_by(step) {
            self.recorder.fail_launch_after(number);
            let failed = watch("a failed launch");
            self.recorder.fail_launch_after(usize::MAX);
            if !failed? {
                break;
            }
        }
        for number in (0..FAILURES).step_by(step) {
            self.recorder.fail_read_after(number);
            let failed = watch("a failed read");
            self.recorder.fail_read_after(usize::MAX);
            if !failed? {
                break;
            }
        }
        Ok(())
    }
}
