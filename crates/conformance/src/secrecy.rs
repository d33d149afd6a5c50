//! What operations keep for themselves is as secret as the most secret of what they are given: nothing of a secret, be it a
//! partial sum, is left in memory that others get.
//!
//! For each operation, every single operand is secret once, and then all are. Whatever the operation allocates meanwhile,
//! on the device and for staging, must be secret, and so be zeroed before others get it; and memory of the same sizes, taken
//! afterwards, must hold no word of the secret operands. Nor must what is freed of the host's heap meanwhile, whether the operation
//! succeeds or the device fails in it.

use std::{
    cell::{Cell, RefCell},
    collections::HashSet,
    iter,
    sync::Arc,
};

use ark_bls12_381::Fr;
use ark_ec::{AffineRepr, CurveGroup, short_weierstrass::Affine};
use ark_ff::{BigInteger, FftField, PrimeField};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use evariste_aes::{Aes, Config as AesConfig};
use evariste_backend::{Buffer, Device, Element, Secrecy, Transfer};
use evariste_curve::{Jacobian, PointSum, Points, Xyzz};
use evariste_field::{Canonical, DevicePrimeField, Expression, FieldSum, Mont, Prefix, Vector, small::Goldilocks};
use evariste_msm::{Bases, Msm, MsmConfig, Tuning};
use evariste_ntt::{LowDegreeExtension, Ntt, Order, OutOfCore};
use evariste_primitives::{Histogram, RadixSort, Scan, SegmentedSum};
use evariste_sqrt::Sqrt;
use evariste_sumcheck::{Blake3Transcript, Config as SumcheckConfig, Statement, Sumcheck};
use libtest_mimic::Failed;

use crate::{
    Outcome, Suite, curve, expect,
    heap::{self, WORD},
    recorder::{Allocation, Recorder},
    samples::samples,
};

/// Elements: several chunks of a reduction, and tiles of a prefix sum.
const LEN: usize = 5000;

/// Points: several slices of a sum.
const POINTS: usize = 300;

/// Scalars of a sum of points: more than a thread recodes at a time, and enough for inversions to be shared.
const SCALARS: usize = 6000;

type Curve = ark_bls12_381::g1::Config;

/// Sums of many points, whose kernels are shorter.
type G1 = ark_bn254::g1::Config;
type Scalar = ark_bn254::Fr;

/// Launches and reads of an operation that fail, one after the other.
const FAILURES: usize = 40;

/// Its operands, and what uses them.
type Operation = (&'static str, usize, fn(&Probe) -> Outcome);

const OPERATIONS: [Operation; 55] = [
    ("add", 3, |p| {
        let (v, a, b, mut out) = (p.vector(), p.elements(1)?, p.elements(2)?, p.output(LEN)?);
        p.watch(|| v.add(&a, &b, &mut out))
    }),
    ("mul_assign", 2, |p| {
        let (v, mut a, b) = (p.vector(), p.elements(1)?, p.elements(2)?);
        p.watch(|| v.mul_assign(&mut a, &b))
    }),
    ("inverse", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.inverse(&a, &mut out))
    }),
    ("powers", 1, |p| {
        let (v, mut out, value) = (p.vector(), p.output(LEN)?, p.host(1)[0]);
        p.watch(|| v.powers(value, value, &mut out))
    }),
    ("square", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.square(&a, &mut out))
    }),
    ("scale", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.scale(&a, p.value(), &mut out))
    }),
    ("scale_assign", 1, |p| {
        let (v, mut a) = (p.vector(), p.elements(1)?);
        p.watch(|| v.scale_assign(&mut a, p.value()))
    }),
    ("pow", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.pow(&a, [0x1234_5678_9abc], &mut out))
    }),
    ("pow_assign", 1, |p| {
        let (v, mut a) = (p.vector(), p.elements(1)?);
        p.watch(|| v.pow_assign(&mut a, [0x1234_5678_9abc]))
    }),
    ("sum", 1, |p| {
        let (v, a) = (p.vector(), p.elements(1)?);
        p.watch(|| v.sum(&a))
    }),
    ("sum_to", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(3)?);
        p.watch(|| v.sum_to(&a, out.view_mut(1..2)?))
    }),
    ("product", 1, |p| {
        let (v, a) = (p.vector(), p.elements(1)?);
        p.watch(|| v.product(&a))
    }),
    ("product_to", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(3)?);
        p.watch(|| v.product_to(&a, out.view_mut(1..2)?))
    }),
    ("inner_product", 2, |p| {
        let (v, a, b) = (p.vector(), p.elements(1)?, p.elements(2)?);
        p.watch(|| v.inner_product(&a, &b))
    }),
    ("inner_product_to", 3, |p| {
        let (v, a, b, mut out) = (p.vector(), p.elements(1)?, p.elements(2)?, p.output(3)?);
        p.watch(|| v.inner_product_to(&a, &b, out.view_mut(1..2)?))
    }),
    ("evaluate", 1, |p| {
        let (v, a) = (p.vector(), p.elements(1)?);
        p.watch(|| v.evaluate(&a, p.value()))
    }),
    ("evaluate_to", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(3)?);
        p.watch(|| v.evaluate_to(&a, p.value(), out.view_mut(1..2)?))
    }),
    ("prefix_sum", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.prefix_sum(&a, Prefix::Inclusive, &mut out))
    }),
    ("prefix_product_assign", 1, |p| {
        let (v, mut a) = (p.vector(), p.elements(1)?);
        p.watch(|| v.prefix_product_assign(&mut a, Prefix::Exclusive))
    }),
    ("divide_by_linear", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.divide_by_linear(&a, p.value(), &mut out))
    }),
    ("divide_by_linear_assign", 1, |p| {
        let (v, mut a) = (p.vector(), p.elements(1)?);
        p.watch(|| v.divide_by_linear_assign(&mut a, p.value()))
    }),
    ("bit_reverse", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.first(1, 4096)?, p.output(4096)?);
        p.watch(|| v.bit_reverse(&a, &mut out))
    }),
    ("transpose", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.transpose(&a, 50, &mut out))
    }),
    ("gather", 3, |p| {
        let (v, a, indices, mut out) = (p.vector(), p.elements(1)?, p.places(LEN)?, p.output(LEN)?);
        p.watch(|| v.gather(&a, &indices, &mut out))
    }),
    ("scatter", 3, |p| {
        let (v, a, indices, mut out) = (p.vector(), p.elements(1)?, p.places(LEN)?, p.output(LEN)?);
        p.watch(|| v.scatter(&a, &indices, &mut out))
    }),
    ("expression", 3, |p| {
        let (v, a, b, mut out) = (p.vector(), p.elements(1)?, p.elements(2)?, p.output(LEN)?);
        let gate = Expression::column(0) * Expression::column(1) - Expression::constant(0);
        p.watch(|| v.evaluate_expression(&gate, &[&a, &b], &[p.value()], &mut out))
    }),
    ("sum_expression", 3, |p| {
        let (v, a, b, mut out) = (p.vector(), p.elements(1)?, p.elements(2)?, p.output(1)?);
        let gate = Expression::column(0) * Expression::column(1) - Expression::constant(0);
        p.watch(|| v.sum_expression_to(&gate, &[&a, &b], &[p.value()], &mut out))
    }),
    ("wide_expression", 3, |p| {
        // Of more columns than any device binds, the first and the last are operands.
        let (v, a, b, mut out) = (p.vector(), p.elements(1)?, p.elements(2)?, p.output(LEN)?);
        let others = p.device.upload::<Mont<Fr>>(&samples::<Fr>(LEN, 3))?;
        let wide: Expression = (0..41).map(|i| Expression::column(i) * i64::from(i + 1)).sum();
        let columns: Vec<_> = (0..41)
            .map(|i| {
                if i == 0 {
                    &a
                } else if i == 40 {
                    &b
                } else {
                    &others
                }
            })
            .collect();
        p.watch(|| v.evaluate_expression(&wide, &columns, &[], &mut out))
    }),
    ("scan", 2, |p| {
        let (scan, input, mut out) = (Scan::new(&p.device)?, p.keys(10_000)?, p.output_keys(10_001)?);
        p.watch(|| scan.exclusive(&input, &mut out))
    }),
    ("histogram", 2, |p| {
        let (histogram, keys, mut out) = (Histogram::new(&p.device)?, p.keys(10_000)?, p.output_keys(1 << 8)?);
        p.watch(|| histogram.count(&keys, 3..11, &mut out))
    }),
    // What is moved changes places with what it is moved from: so of both each has its own secrecy.
    ("sort", 0, |p| {
        let (sort, mut keys, mut values) = (RadixSort::new(&p.device)?, p.keys(5000)?, p.keys(5000)?);
        p.watch(|| sort.sort(&mut keys, &mut values, 0..20))
    }),
    ("segmented_sum", 3, |p| {
        let sum = SegmentedSum::<FieldSum<Fr>>::new(&p.device)?;
        let (keys, values, mut out) = (p.sorted(LEN)?, p.elements(1)?, p.output(100)?);
        p.watch(|| sum.reduce(&keys, &values, &mut out))
    }),
    ("segmented_sum_of_points", 3, |p| {
        let sum = SegmentedSum::<PointSum<Curve>>::new(&p.device)?;
        let (keys, values) = (p.sorted(POINTS)?, p.operand::<Xyzz<Curve>>(&curve::some_points(POINTS))?);
        let mut out = p.output_of::<Xyzz<Curve>>(9)?;
        p.watch(|| sum.reduce(&keys, &values, &mut out))
    }),
    ("times", 3, |p| {
        let points = Points::<Curve>::new(&p.device);
        let affine: Vec<_> = curve::some_points::<Curve>(POINTS).into_iter().map(Into::into).collect();
        let (a, k, mut out) = (p.operand(&affine)?, p.keys(POINTS)?, p.output_of(POINTS)?);
        p.watch(|| points.times(&a, &k, &mut out))
    }),
    ("normalise", 2, |p| {
        let points = Points::<Curve>::new(&p.device);
        let (a, mut out) = (p.operand::<Jacobian<Curve>>(&curve::some_points(POINTS))?, p.output_of(POINTS)?);
        p.watch(|| points.normalise_jacobian(&a, &mut out))
    }),
    ("transform", 1, |p| {
        let (ntt, mut data) = (Ntt::<Fr>::new(&p.device, 12)?, p.first(1, 1 << 12)?);
        p.watch(|| ntt.forward(&mut data).and_then(|()| ntt.inverse(&mut data)))
    }),
    ("transform_on_a_coset", 1, |p| {
        let (ntt, mut data) = (Ntt::<Fr>::new(&p.device, 12)?, p.first(1, 1 << 12)?);
        p.watch(|| ntt.coset(Fr::GENERATOR).output(Order::BitReversed).forward(&mut data))
    }),
    ("polynomial_product", 2, |p| {
        let (ntt, a, b) = (Ntt::<Fr>::new(&p.device, 10)?, p.first(1, 500)?, p.first(2, 400)?);
        p.watch(|| ntt.product(&a, &b))
    }),
    ("extension", 1, |p| {
        let (extension, values) = (LowDegreeExtension::<Fr>::new(&p.device, 8, 2)?, p.first(1, 512)?);
        p.watch(|| extension.extend(&values, Fr::GENERATOR, Order::Natural))
    }),
    ("extension_into", 2, |p| {
        let extension = LowDegreeExtension::<Fr>::new(&p.device, 12, 1)?;
        let (values, mut out) = (p.first(1, 1 << 12)?, p.output(1 << 13)?);
        p.watch(|| {
            extension.extend_into(&values, Fr::GENERATOR, Order::Natural, &mut out)?;
            extension.extend_into(&values, Fr::GENERATOR, Order::BitReversed, &mut out)
        })
    }),
    ("transform_into", 2, |p| {
        let (ntt, x, mut y) = (Ntt::<Fr>::new(&p.device, 12)?, p.first(1, 1 << 12)?, p.output(1 << 12)?);
        p.watch(|| ntt.transform().forward_into(&x, &mut y))
    }),
    ("transfers", 1, |p| {
        let mut a = p.elements(1)?;
        let host = samples::<Fr>(LEN, 1);
        p.watch(|| a.write(&host).and_then(|()| a.to_vec()))
    }),
    ("copies", 1, |p| {
        let a = p.elements(1)?;
        p.watch(|| a.duplicate())
    }),
    ("transfers", 1, |p| {
        let x = p.host::<Fr>(LEN);
        p.watch_heap(|| p.device.upload_with::<Mont<Fr>>(&x, Secrecy::Secret)?.to_vec())
    }),
    ("msm_of_forms", 1, |p| {
        let (msm, scalars) = (p.msm(MsmConfig::default())?, p.operand::<Mont<Scalar>>(&p.samples(SCALARS))?);
        p.watch(|| msm.evaluate(&scalars))
    }),
    ("msm_of_integers", 1, |p| {
        let (msm, scalars) = (p.msm(MsmConfig::default())?, p.integers(SCALARS)?);
        p.watch(|| msm.evaluate(&scalars))
    }),
    ("msm_of_any_integers", 1, |p| {
        let config = MsmConfig { bases: Bases::Any, ..MsmConfig::default() };
        let (msm, scalars) = (p.msm(config)?, p.integers(SCALARS)?);
        p.watch(|| msm.evaluate(&scalars))
    }),
    ("msm_of_slices", 1, |p| {
        let config = MsmConfig { secrecy: Secrecy::Secret, ..MsmConfig::default() };
        let (msm, scalars) = (p.msm(config)?, p.host(SCALARS));
        p.watch(|| msm.evaluate(&scalars))
    }),
    ("msm_by_pairs", 1, |p| {
        let tuning = Tuning { levels: Some(2), ..Tuning::default() };
        let msm = p.msm(MsmConfig { tuning, window: Some(8), ..MsmConfig::default() })?;
        let scalars = p.operand::<Mont<Scalar>>(&p.samples(SCALARS))?;
        p.watch(|| msm.evaluate_many(2, scalars.view(..SCALARS / 2 * 2)?))
    }),
    ("sumcheck", 3, |p| {
        let [a, b, c] = [0, 1, 2].map(Expression::column);
        let gate = a * b - c;
        let statement = Statement::<Fr>::new(10, &gate)?;
        let tables = (0..3).map(|_| p.operand::<Mont<Fr>>(&p.samples(1 << 10))).collect::<Result<Vec<_>, _>>()?;
        let (plan, tables) =
            (Sumcheck::<Fr>::new(&p.device, &gate, SumcheckConfig::default())?, tables.iter().collect::<Vec<_>>());
        let claim = plan.sum(&statement, &tables)?;
        p.watch_heap(|| plan.prove(&statement, &tables, claim, &mut Blake3Transcript::new(b"secrecy")))
    }),
    ("roots", 1, |p| {
        let (plan, a, mut out) =
            (Sqrt::<Fr>::new(&p.device)?, p.elements(1)?, p.device.alloc_with(LEN, Secrecy::Secret)?);
        let mut mask = p.device.alloc_with(LEN, Secrecy::Secret)?;
        p.watch_heap(|| plan.roots(&a, &mut out, &mut mask))
    }),
    ("ntt_of_words", 1, |p| {
        let (ntt, mut x) =
            (Ntt::<Goldilocks>::new(&p.device, 12)?, p.operand::<Mont<Goldilocks>>(&p.samples(1 << 12))?);
        p.watch(|| ntt.forward(&mut x))
    }),
    ("ntt_out_of_core", 1, |p| {
        let (x, bytes) = (p.host::<Fr>(1 << 12), 11 * 32 << 8);
        let mut plan = OutOfCore::<Fr>::new(&p.device, 12, bytes, Secrecy::Secret)?;
        let mut y = x.clone();
        p.watch_heap(|| {
            y.copy_from_slice(&x);
            plan.forward(&mut y)
        })
    }),
    ("aes", 1, |p| {
        let key: [u8; 32] = p.bytes();
        let config = AesConfig { crossover: Some(0), ..AesConfig::default() };
        p.watch_heap(|| -> Result<_, evariste_aes::Error> {
            let mut data = vec![0; 5000];
            Aes::with_config(&p.device, &[key], config.clone())?.ctr(&[0; 16])?.apply(&mut data)?;
            Ok(data)
        })
    }),
    ("gcm", 1, |p| {
        let key: [u8; 32] = p.bytes();
        let config = AesConfig { crossover: Some(0), ..AesConfig::default() };
        p.watch_heap(|| -> Result<_, evariste_aes::Error> {
            let mut data = vec![0; 5000];
            let tag = Aes::with_config(&p.device, &[key], config.clone())?.gcm()?.seal(&[0; 12], &[], &mut data)?;
            Ok((data, tag))
        })
    }),
];

pub(crate) fn add(suite: &mut Suite<'_>) {
    for (name, operands, run) in OPERATIONS {
        let device = suite.device.clone();
        suite.add_alone_with(name, move || {
            for secret in (0..operands).map(Some).chain([None]) {
                let probe = Probe::new(&device, secret);
                let what = secret.map_or("all operands".to_owned(), |number| format!("operand {number}"));
                let outcome = run(&probe).and_then(|()| probe.expect_nothing_left());
                outcome.map_err(|error| format!("{what} secret: {}", error.message().unwrap_or("failed")))?;
            }
            Ok(())
        });
    }
}

/// A device that remembers what is allocated, and gives operands of the secrecy that is tried.
struct Probe {
    device: Device,
    recorder: Arc<Recorder>,
    /// The only secret operand; all of them if none.
    secret: Option<usize>,
    operands: Cell<usize>,
    /// Words of the secret operands.
    words: RefCell<HashSet<[u8; WORD]>>,
    allocated: RefCell<Vec<Allocation>>,
}

impl Probe {
    fn new(below: &Device, secret: Option<usize>) -> Self {
        heap::keep_clean();
        let recorder = Recorder::new(below, false);
        let device = Device::unregistered(Arc::clone(&recorder) as _);
        let (operands, words, allocated) = Default::default();
        Self { device, recorder, secret, operands, words, allocated }
    }

    fn vector(&self) -> Vector<Fr> {
        Vector::new(&self.device)
    }

    /// A value that the host gives.
    fn value(&self) -> Fr {
        Fr::from(0x1234_5678_9abc_def1_u64)
    }

    /// The secrecy of the next operand.
    fn next(&self) -> Secrecy {
        let number = self.operands.replace(self.operands.get() + 1);
        if self.secret.is_none_or(|secret| secret == number) { Secrecy::Secret } else { Secrecy::Public }
    }

    fn operand<T: Element>(&self, host: &[T::Host]) -> Result<Buffer<T>, Failed> {
        let secrecy = self.next();
        let buffer = self.device.upload_with::<T>(host, secrecy)?;
        if secrecy == Secrecy::Secret {
            let mut bytes = self.device.host_buffer(buffer.bytes() as usize, Transfer::Download, Secrecy::Secret)?;
            bytes = buffer.read_pinned(None, bytes)?.wait()?;
            self.look_for(&bytes);
        }
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
        let seed = 77 + 1000 * u64::from(self.run()) + self.operands.get() as u64;
        samples::<F>(len + 64, seed).split_off(64)
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

    fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        StdRng::seed_from_u64(u64::from(self.run())).fill(&mut bytes[..]);
        self.look_for(&bytes);
        bytes
    }

    /// Secret integers of 256 bits, most of which are not below the order. They are looked for, and what they leave, too.
    fn integers(&self, len: usize) -> Result<Buffer<Canonical<Scalar>>, Failed> {
        let secrecy = self.next();
        let mut buffer = self.device.alloc_with::<Canonical<Scalar>>(len, secrecy)?;
        let mut host = self.device.host_buffer(32 * len, Transfer::Upload, secrecy)?;
        StdRng::seed_from_u64(u64::from(self.run())).fill(&mut host[..]);
        self.look_for(&host);
        for integer in host.chunks_exact(32) {
            let rest = Scalar::from_le_bytes_mod_order(integer);
            self.look_for(&rest.into_bigint().to_bytes_le());
            self.look_for(bytemuck::cast_slice(&rest.0.0));
        }
        buffer.write_pinned(None, host)?.wait()?;
        Ok(buffer)
    }

    fn msm(&self, config: MsmConfig) -> Result<Msm<G1>, Failed> {
        let generator = Affine::<G1>::generator();
        let multiples = iter::successors(Some(generator.into_group()), |point| Some(*point + generator));
        let multiples = CurveGroup::normalize_batch(&multiples.take(64).collect::<Vec<_>>());
        let bases: Vec<_> = multiples.into_iter().cycle().take(SCALARS).collect();
        Ok(Msm::new(&self.device, &bases, config)?)
    }

    /// A number for each choice of what is secret, which values depend on: what was public with another choice may still lie in
    /// the device's pools.
    fn run(&self) -> u32 {
        self.secret.map_or(1, |number| number as u32 + 2)
    }

    /// The same without edge values.
    fn first(&self, seed: u64, len: usize) -> Result<Buffer<Mont<Fr>>, Failed> {
        self.operand(&samples::<Fr>(len + 64, 1000 * u64::from(self.run()) + seed)[64..])
    }

    fn elements(&self, seed: u64) -> Result<Buffer<Mont<Fr>>, Failed> {
        self.first(seed, LEN)
    }

    fn keys(&self, len: usize) -> Result<Buffer<u32>, Failed> {
        let key = |i: u32| i.wrapping_mul(2_654_435_761).wrapping_add(self.run().wrapping_mul(0x5bd1_e995));
        self.operand(&(0..len as u32).map(key).collect::<Vec<_>>())
    }

    /// Indices, half of which are below the length, behind pairs of others that are looked for.
    fn places(&self, len: usize) -> Result<Buffer<u32>, Failed> {
        let place = |i: u32| {
            let key = i.wrapping_mul(2_654_435_761).wrapping_add(self.run().wrapping_mul(0x5bd1_e995));
            if i % 4 < 2 { key } else { key % len as u32 }
        };
        self.operand(&(0..len as u32).map(place).collect::<Vec<_>>())
    }

    fn sorted(&self, len: usize) -> Result<Buffer<u32>, Failed> {
        self.operand(&(0..len as u32).map(|i| i / 50).collect::<Vec<_>>())
    }

    fn output_of<T: Element>(&self, len: usize) -> Result<Buffer<T>, Failed> {
        Ok(self.device.alloc_with(len, self.next())?)
    }

    fn output(&self, len: usize) -> Result<Buffer<Mont<Fr>>, Failed> {
        self.output_of(len)
    }

    fn output_keys(&self, len: usize) -> Result<Buffer<u32>, Failed> {
        self.output_of(len)
    }

    /// Runs an operation once for what is made at its first use, such as tables, and then watches what it allocates.
    fn watch<T, E>(&self, mut run: impl FnMut() -> Result<T, E>) -> Outcome
    where
        Failed: From<E>,
    {
        drop(run()?);
        self.recorder.allocations();
        drop(run()?);
        let allocated = self.recorder.allocations();
        self.watch_heap(run)?;
        let public: Vec<_> = allocated.iter().filter(|allocation| allocation.secrecy == Secrecy::Public).collect();
        expect(&format!("all is secret of what is allocated, but {public:?}: it"), public.is_empty())?;
        self.allocated.replace(allocated);
        Ok(())
    }

    /// Watches what is freed on the host's heap while an operation runs: with success, and with failures of the device, one launch or
    /// one read later each time, as far as there are such.
    fn watch_heap<T, E>(&self, mut run: impl FnMut() -> Result<T, E>) -> Outcome
    where
        Failed: From<E>,
    {
        expect("what is freed is looked at", heap::is_watched())?;
        let words: Vec<_> = self.words.borrow().iter().copied().collect();
        // There are none where the only secret operand is the output.
        expect("there are words to look for", !words.is_empty() || self.secret.is_some())?;
        let mut watch = |what: &str| -> Result<bool, Failed> {
            let (result, found) = heap::watch(&words, &mut run);
            let found = found.first().map_or("", String::as_str);
            expect(&format!("after {what}, nothing of a secret is freed, but {found}: it"), found.is_empty())?;
            Ok(result.is_err())
        };
        if watch("success")? {
            return Err("the operation failed".into());
        }
        for number in 0..FAILURES {
            self.recorder.fail_launch_after(number);
            let failed = watch("a failed launch");
            self.recorder.fail_launch_after(usize::MAX);
            if !failed? {
                break;
            }
        }
        for number in 0..FAILURES {
            self.recorder.fail_read_after(number);
            let failed = watch("a failed read");
            self.recorder.fail_read_after(usize::MAX);
            if !failed? {
                break;
            }
        }
        Ok(())
    }

    /// After the operands were dropped.
    fn expect_nothing_left(&self) -> Outcome {
        self.device.sync()?;
        let words = self.words.borrow();
        let is_clean = |bytes: &[u8]| bytes.windows(WORD).step_by(4).all(|window| !words.contains(window));
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
