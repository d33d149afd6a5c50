//! Nothing of a secret stays in freed memory of the host's heap, whether an operation succeeds or the device fails in it.
//!
//! All operands of an operation are secret. While it runs, with success, and with each launch and each read failing in turn, the
//! allocator ([`heap`]) looks for words of them in what is freed.

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    iter,
    sync::Arc,
};

use ark_bls12_381::Fr;
use ark_ec::{AffineRepr, CurveGroup, short_weierstrass::Affine};
use ark_ff::{BigInteger, PrimeField};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use evariste::aes::{Aes, Config as AesConfig};
use evariste::backend::{Buffer, Device, Element, Secrecy, Transfer};
use evariste::field::{Canonical, DevicePrimeField, Expression, Mont, small::Goldilocks};
use evariste::msm::{Bases, Msm, MsmConfig, Tuning};
use evariste::ntt::{Ntt, OutOfCore};
use evariste::sqrt::Sqrt;
use evariste::sumcheck::{Blake3Transcript, Config as SumcheckConfig, Statement, Sumcheck};
use libtest_mimic::Failed;

use crate::{
    Area, DeviceTrials, Outcome, expect,
    heap::{self, WORD},
    is_emulated,
    recorder::Recorder,
    samples::samples,
};

/// Elements: several chunks of a reduction, and tiles of a prefix sum.
const LEN: usize = 5000;

/// Scalars of a sum of points: more than a thread recodes at a time, and enough for inversions to be shared.
const SCALARS: usize = 6000;

/// Sums of many points, whose kernels are shorter.
type G1 = ark_bn254::g1::Config;
type Scalar = ark_bn254::Fr;

/// Launches and reads of an operation that fail, one after the other.
const FAILURES: usize = 40;

/// Where the processor emulates a GPU, which takes a second for some operations, one of so many fails.
const EMULATED_STEP: usize = 4;

/// What works on secrets.
type Operation = (&'static str, fn(&Probe) -> Outcome);

const OPERATIONS: [Operation; 12] = [
    ("transfers", |p| {
        let x = p.host::<Fr>(LEN);
        p.watch_heap(|| p.device.upload_with::<Mont<Fr>>(&x, Secrecy::Secret)?.to_vec())
    }),
    ("msm_of_forms", |p| {
        let (msm, scalars) = (p.msm(MsmConfig::default())?, p.operand::<Mont<Scalar>>(&p.samples(SCALARS))?);
        p.watch_heap(|| msm.msm(&scalars))
    }),
    ("msm_of_integers", |p| {
        let (msm, scalars) = (p.msm(MsmConfig::default())?, p.integers(SCALARS)?);
        p.watch_heap(|| msm.msm(&scalars))
    }),
    ("msm_of_any_integers", |p| {
        let config = MsmConfig { bases: Bases::Any, ..MsmConfig::default() };
        let (msm, scalars) = (p.msm(config)?, p.integers(SCALARS)?);
        p.watch_heap(|| msm.msm(&scalars))
    }),
    ("msm_of_slices", |p| {
        let config = MsmConfig { secrecy: Secrecy::Secret, ..MsmConfig::default() };
        let (msm, scalars) = (p.msm(config)?, p.host(SCALARS));
        p.watch_heap(|| msm.msm(&scalars))
    }),
    ("msm_by_pairs", |p| {
        let tuning = Tuning { levels: Some(2), ..Tuning::default() };
        let msm = p.msm(MsmConfig { tuning, window: Some(8), ..MsmConfig::default() })?;
        let scalars = p.operand::<Mont<Scalar>>(&p.samples(SCALARS))?;
        p.watch_heap(|| msm.msm_batch(2, scalars.view(..SCALARS / 2 * 2)?))
    }),
    ("sumcheck", |p| {
        let [a, b, c] = [0, 1, 2].map(Expression::column);
        let gate = a * b - c;
        let statement = Statement::<Fr>::new(10, &gate)?;
        let tables = (0..3).map(|_| p.operand::<Mont<Fr>>(&p.samples(1 << 10))).collect::<Result<Vec<_>, _>>()?;
        let (plan, tables) =
            (Sumcheck::<Fr>::new(&p.device, &gate, SumcheckConfig::default())?, tables.iter().collect::<Vec<_>>());
        let claim = plan.sum(&statement, &tables)?;
        p.watch_heap(|| plan.prove(&statement, &tables, claim, &mut Blake3Transcript::new(b"secrecy")))
    }),
    ("roots", |p| {
        let (plan, a, mut out) =
            (Sqrt::<Fr>::new(&p.device)?, p.elements()?, p.device.alloc_with(LEN, Secrecy::Secret)?);
        let mut mask = p.device.alloc_with(LEN, Secrecy::Secret)?;
        p.watch_heap(|| plan.sqrt(&a, &mut out, &mut mask))
    }),
    ("ntt_of_words", |p| {
        let (ntt, mut x) =
            (Ntt::<Goldilocks>::new(&p.device, 12)?, p.operand::<Mont<Goldilocks>>(&p.samples(1 << 12))?);
        p.watch_heap(|| ntt.forward(&mut x))
    }),
    ("ntt_out_of_core", |p| {
        let (x, bytes) = (p.host::<Fr>(1 << 12), (11 * 32) << 8);
        let mut plan = OutOfCore::<Fr>::new(&p.device, 12, bytes, Secrecy::Secret)?;
        let mut y = x.clone();
        p.watch_heap(|| {
            y.copy_from_slice(&x);
            plan.forward(&mut y)
        })
    }),
    ("aes", |p| {
        let key = p.bytes(32);
        let config = AesConfig { crossover: Some(0), ..AesConfig::default() };
        p.watch_heap(|| -> Result<_, evariste::aes::Error> {
            let mut data = vec![0; 5000];
            Aes::with_config(&p.device, &[&key], config.clone())?.ctr(&[0; 16])?.apply(&mut data)?;
            Ok(data)
        })
    }),
    ("gcm", |p| {
        let key = p.bytes(32);
        let config = AesConfig { crossover: Some(0), ..AesConfig::default() };
        p.watch_heap(|| -> Result<_, evariste::aes::Error> {
            let mut data = vec![0; 5000];
            let tag = Aes::with_config(&p.device, &[&key], config.clone())?.gcm()?.seal(&[0; 12], &[], &mut data)?;
            Ok((data, tag))
        })
    }),
];

pub(crate) const AREA: Area = Area::new("freed", add);

fn add(trials: &mut DeviceTrials<'_>) {
    for (name, run) in OPERATIONS {
        let device = trials.device.clone();
        trials.add_alone_with(name, move || run(&Probe::new(&device)));
    }
}

/// A device of which launches and reads fail, and what is looked for.
struct Probe {
    device: Device,
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

    fn operand<T: Element>(&self, host: &[T::Host]) -> Result<Buffer<T>, Failed> {
        let buffer = self.device.upload_with::<T>(host, Secrecy::Secret)?;
        let bytes = self.device.host_buffer(buffer.bytes() as usize, Transfer::Download, Secrecy::Secret)?;
        self.look_for(&buffer.read_pinned(bytes)?.wait()?);
        Ok(buffer)
    }

    /// Has the words of some bytes looked for.
    fn look_for(&self, bytes: &[u8]) {
        let words = bytes.as_chunks::<WORD>().0.iter().copied();
        // Small integers are everywhere.
        self.words.borrow_mut().extend(words.filter(|word| word.iter().filter(|byte| **byte == 0).count() < 2));
    }

    /// Elements that are looked for only as operands.
    fn samples<F: DevicePrimeField>(&self, len: usize) -> Vec<F> {
        samples::<F>(len + 64, self.seed()).split_off(64)
    }

    /// Elements on the host that are secret, of which the integers and their Montgomery forms are looked for.
    fn host<F: DevicePrimeField>(&self, len: usize) -> Vec<F> {
        let elements = self.samples::<F>(len);
        for element in &elements {
            let mut form = vec![0; F::LIMBS];
            element.store(&mut form);
            self.look_for(bytemuck::cast_slice(&form));
            self.look_for(&element.into_bigint().to_bytes_le());
        }
        elements
    }

    /// Secret bytes, on the heap: of a stack nothing is said, and the padding of what is moved from it to the heap is what it had.
    fn bytes(&self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        StdRng::seed_from_u64(self.seed()).fill(&mut bytes[..]);
        self.look_for(&bytes);
        bytes
    }

    /// Secret integers of 256 bits, most of which are not below the order. They are looked for, and what they leave, too.
    fn integers(&self, len: usize) -> Result<Buffer<Canonical<Scalar>>, Failed> {
        let mut buffer = self.device.alloc_with::<Canonical<Scalar>>(len, Secrecy::Secret)?;
        let mut host = self.device.host_buffer(32 * len, Transfer::Upload, Secrecy::Secret)?;
        StdRng::seed_from_u64(self.seed()).fill(&mut host[..]);
        self.look_for(&host);
        for integer in host.chunks_exact(32) {
            let rest = Scalar::from_le_bytes_mod_order(integer);
            self.look_for(&rest.into_bigint().to_bytes_le());
            self.look_for(bytemuck::cast_slice(&rest.0.0));
        }
        buffer.write_pinned(host)?.wait()?;
        Ok(buffer)
    }

    fn msm(&self, config: MsmConfig) -> Result<Msm<G1>, Failed> {
        let generator = Affine::<G1>::generator();
        let multiples = iter::successors(Some(generator.into_group()), |point| Some(*point + generator));
        let multiples = CurveGroup::normalize_batch(&multiples.take(64).collect::<Vec<_>>());
        let bases: Vec<_> = multiples.into_iter().cycle().take(SCALARS).collect();
        Ok(Msm::new(&self.device, &bases, config)?)
    }

    fn elements(&self) -> Result<Buffer<Mont<Fr>>, Failed> {
        self.operand(&self.samples::<Fr>(LEN))
    }

    /// Watches what is freed on the host's heap while an operation runs: with success, and with failures of the device, one
    /// launch or one read later each time, as far as there are such.
    fn watch_heap<T, E>(&self, mut run: impl FnMut() -> Result<T, E>) -> Outcome
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
