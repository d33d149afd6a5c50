//! Secrets stay in secret memory.
//!
//! What operations keep for themselves is as secret as the most secret of what they are given: nothing of a secret, be it a
//! partial sum, is left in memory that others get. What they write to is so already, or they refuse it
//! ([`SecretInput`](evariste_backend::Error::SecretInput)) and have written nothing.
//!
//! For each operation, every single operand is secret once, alone and with all that is written, and then all are and none is. The
//! device below sees what comes to which memory: nothing of a secret to what is public, whatever the façade says of it. Whatever
//! an operation allocates meanwhile, on the device and for staging, must be secret, and so be zeroed before others get it; and
//! memory of the same sizes, taken afterwards, must hold no word of the secret operands.
//!
//! A kernel that no operation of these launches is found ([`common`]).

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use ark_bls12_381::Fr;
use ark_ec::short_weierstrass::Affine;
use ark_ff::{AdditiveGroup, FftField, Field};
use evariste_aes::{Aes, Counter, GcmMessage, Message, Xts};
use evariste_backend::{Arg, Buffer, Device, Element, Kind, Secrecy, Transfer};
use evariste_curve::{AffinePoint, Jacobian, PointSum, Points, Xyzz};
use evariste_field::{
    Canonical, Expression, FieldSum, Mont, Prefix, Vector,
    small::{BabyBear, BabyBear4},
};
use evariste_msm::{Accumulation, Addition, Aggregation, Msm, MsmConfig, Precompute, Tuning};
use evariste_ntt::{self as ntt, LowDegreeExtension, Ntt, Order, Split};
use evariste_primitives::{Histogram, RadixSort, Scan, SegmentedSum, SortMethod};
use evariste_sqrt::{
    Check, Config, Decompress, Encoding, MapToCurve, Method, ModSqrt, NthRoot, Sqrt,
    modular::{BoxedUint, Jacobi},
};
use evariste_sumcheck::{
    self as sumcheck, Blake3Transcript, Order as BindingOrder, Statement, Sumcheck, Tables, Weight,
};
use libtest_mimic::{Failed, Trial};

use crate::{
    Outcome, Suite, curve, expect, expect_equal,
    recorder::{Allocation, Recorder},
    samples::samples,
};

/// Elements: several chunks of a reduction, and tiles of a prefix sum.
const LEN: usize = 5000;

/// Points: several slices of a sum.
const POINTS: usize = 300;

/// Bytes that are looked for: so many random ones do not come about by themselves.
const PATTERN: usize = 8;

type Curve = ark_bls12_381::g1::Config;

/// The curve of sums, as in their trials.
type Sums = ark_bn254::g1::Config;

/// Its operands, and what uses them.
type Operation = (&'static str, usize, fn(&Probe) -> Outcome);

const OPERATIONS: &[Operation] = &[
    ("add", 3, |p| {
        let (v, a, b, mut out) = (p.vector(), p.elements(1)?, p.elements(2)?, p.output(LEN)?);
        p.watch(|| v.add(&a, &b, &mut out))
    }),
    ("mul_assign", 2, |p| {
        let (v, mut a, b) = (p.vector(), p.in_place(|p| p.elements(1))?, p.elements(2)?);
        p.watch(|| v.mul_assign(&mut a, &b))
    }),
    ("inverse", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.inverse(&a, &mut out))
    }),
    ("powers", 1, |p| {
        let (v, mut out) = (p.vector(), p.output(LEN)?);
        p.watch(|| v.powers(p.value(), p.value(), &mut out))
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
        let (v, mut a) = (p.vector(), p.in_place(|p| p.elements(1))?);
        p.watch(|| v.scale_assign(&mut a, p.value()))
    }),
    ("pow", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.pow(&a, [0x1234_5678_9abc], &mut out))
    }),
    ("pow_assign", 1, |p| {
        let (v, mut a) = (p.vector(), p.in_place(|p| p.elements(1))?);
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
        let (v, mut a) = (p.vector(), p.in_place(|p| p.elements(1))?);
        p.watch(|| v.prefix_product_assign(&mut a, Prefix::Exclusive))
    }),
    ("divide_by_linear", 2, |p| {
        let (v, a, mut out) = (p.vector(), p.elements(1)?, p.output(LEN)?);
        p.watch(|| v.divide_by_linear(&a, p.value(), &mut out))
    }),
    ("divide_by_linear_assign", 1, |p| {
        let (v, mut a) = (p.vector(), p.in_place(|p| p.elements(1))?);
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
    ("sort", 2, |p| sort(p, SortMethod::of(p.device.info()))),
    // The other method on the CPU.
    ("sort_by_counts", 2, |p| sort(p, SortMethod::Scatter)),
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
        p.watch(|| points.mul(&a, &k, &mut out))
    }),
    ("normalise", 2, |p| {
        let points = Points::<Curve>::new(&p.device);
        let (a, mut out) = (p.operand::<Jacobian<Curve>>(&curve::some_points(POINTS))?, p.output_of(POINTS)?);
        p.watch(|| points.normalise_jacobian(&a, &mut out))
    }),
    ("transform", 1, |p| {
        let (ntt, mut data) = (Ntt::<Fr>::new(&p.device, 12)?, p.in_place(|p| p.first(1, 1 << 12))?);
        p.watch(|| ntt.forward(&mut data).and_then(|()| ntt.inverse(&mut data)))
    }),
    ("transform_by_halves", 1, |p| {
        let config = ntt::Config { split: Split::Halves, ..ntt::Config::default() };
        let ntt = Ntt::<Fr>::with_config(&p.device, 11, config)?;
        let mut data = p.in_place(|p| p.first(1, 1 << 11))?;
        p.watch(|| ntt.forward(&mut data))
    }),
    ("transform_on_a_coset", 1, |p| {
        let (ntt, mut data) = (Ntt::<Fr>::new(&p.device, 12)?, p.in_place(|p| p.first(1, 1 << 12))?);
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
        let mut a = p.in_place(|p| p.elements(1))?;
        let host = samples::<Fr>(LEN, 1);
        p.watch(|| a.write(&host).and_then(|()| a.to_vec()))
    }),
    ("copies", 1, |p| {
        let a = p.elements(1)?;
        p.watch(|| a.duplicate())
    }),
    ("copy_from", 2, |p| {
        let (a, mut out) = (p.elements(1)?, p.output(LEN)?);
        p.watch(|| out.copy_from(&a))
    }),
    ("pinned", 3, |p| {
        let (mut a, from, to) = (p.in_place(|p| p.elements(1))?, p.next(), p.next_output());
        let host = |secrecy| p.device.host_buffer(LEN * Mont::<Fr>::BYTES, Transfer::Both, secrecy);
        let (from, mut to) = (host(from)?, Some(host(to)?));
        let mut from = Some(from);
        p.watch(|| -> evariste_backend::Result<()> {
            // A call that fails drops the memory.
            let (given, taken) = (from.take(), to.take());
            if let Some(given) = given {
                from = Some(a.write_pinned(given)?.wait()?);
            }
            if let Some(taken) = taken {
                to = Some(a.read_pinned(taken)?.wait()?);
            }
            Ok(())
        })
    }),
    ("gather_points", 3, |p| {
        let points = Points::<Curve>::new(&p.device);
        let (a, indices) = (p.operand::<Xyzz<Curve>>(&curve::some_points(POINTS))?, p.places(POINTS)?);
        let mut out = p.output_of::<Xyzz<Curve>>(POINTS)?;
        p.watch(|| points.gather(&a, &indices, &mut out))
    }),
    ("scatter_points", 3, |p| {
        let points = Points::<Curve>::new(&p.device);
        let (a, indices) = (p.operand::<Xyzz<Curve>>(&curve::some_points(POINTS))?, p.places(POINTS)?);
        let mut out = p.output_of::<Xyzz<Curve>>(POINTS)?;
        p.watch(|| points.scatter(&a, &indices, &mut out))
    }),
    ("add_points", 3, |p| {
        let (points, host) = (Points::<Curve>::new(&p.device), curve::some_points(POINTS));
        let (a, b, mut out) = (p.operand::<Jacobian<Curve>>(&host)?, p.operand(&host)?, p.output_of(POINTS)?);
        p.watch(|| points.add_jacobian(&a, &b, &mut out))
    }),
    ("sums_of_points", 2, |p| {
        let points = p.bases(0);
        let (bases, scalars) = (p.operand::<AffinePoint<Sums>>(&points)?, p.scalars::<Mont<_>>()?);
        let msm = Msm::<Sums>::from_buffer(&p.device, &bases, MsmConfig::default())?;
        p.watch(|| msm.msm(&scalars))
    }),
    ("sums_of_points_in_pieces", 2, |p| {
        let points = p.bases(1);
        let (bases, scalars) = (p.operand::<AffinePoint<Sums>>(&points)?, p.scalars::<Canonical<_>>()?);
        let tuning = Tuning { levels: Some(1), ..Tuning::default() };
        let tables = Precompute::Tables { budget: 4 * bases.bytes() };
        let config = MsmConfig { window: Some(4), precompute: tables, tuning, ..MsmConfig::default() };
        let msm = Msm::<Sums>::from_buffer(&p.device, &bases, config)?;
        p.watch(|| msm.msm(&scalars))
    }),
    ("sums_of_points_one_by_one", 2, |p| {
        p.sums_by(2, Accumulation::PerBucket, Addition::Single, Precompute::OddDigits { depth: 2 })
    }),
    ("sums_of_points_by_whole_buckets", 2, |p| {
        p.sums_by(3, Accumulation::WholeBuckets, Addition::Double, Precompute::None)
    }),
    ("sums_of_points_two_by_two", 2, |p| p.sums_by(4, Accumulation::Balanced, Addition::Double, Precompute::None)),
    ("sums_of_points_doubled", 2, |p| {
        p.sums_by(5, Accumulation::Balanced, Addition::Single, Precompute::Doublings { depth: 1 })
    }),
    ("proof", 3, |p| {
        let (statement, plan) = statement(p, BindingOrder::MsbFirst)?;
        let tables = [p.table(1)?, p.table(2)?, p.table(3)?];
        let given = tables.each_ref();
        p.watch(|| plan.prove(&statement, &given, BabyBear4::ZERO, &mut Blake3Transcript::new(b"secrecy")))
    }),
    ("proof_from_the_lowest", 3, |p| {
        let (statement, plan) = statement(p, BindingOrder::LsbFirst)?;
        let tables = [p.table(1)?, p.table(2)?, p.table(3)?];
        let given = tables.each_ref();
        p.watch(|| plan.prove(&statement, &given, BabyBear4::ZERO, &mut Blake3Transcript::new(b"secrecy")))
    }),
    ("proof_that_consumes", 3, |p| {
        let gate = gate();
        let statement = Statement::<BabyBear4>::new(VARIABLES, &gate)?;
        let plan = Sumcheck::<BabyBear4>::new(&p.device, &gate, sumcheck::Config::default())?;
        let table = |seed| p.operand::<Mont<BabyBear4>>(&samples(1 << VARIABLES, 1000 * u64::from(p.run()) + seed));
        let tables = vec![table(1)?, table(2)?, table(3)?];
        let others = tables.iter().map(Buffer::duplicate).collect::<Result<Vec<_>, _>>()?;
        let mut given = vec![tables, others];
        p.watch(|| {
            let tables = given.pop().unwrap_or_default();
            plan.prove_consuming(&statement, tables, BabyBear4::ZERO, &mut Blake3Transcript::new(b"secrecy"))
        })
    }),
    ("proof_of_few_rounds", 1, |p| {
        let square = Expression::column(0).pow(2);
        let statement = Statement::<BabyBear4>::new(2, &square)?;
        let plan = Sumcheck::<BabyBear4, BabyBear>::new(&p.device, &square, sumcheck::Config::default())?;
        let table = p.operand::<Mont<BabyBear>>(&samples::<BabyBear>(4, 1000 * u64::from(p.run()) + 1))?;
        p.watch(|| plan.prove(&statement, &[&table], BabyBear4::ZERO, &mut Blake3Transcript::new(b"secrecy")))
    }),
    ("fold", 1, |p| {
        let (tables, table) = (Tables::<BabyBear4, BabyBear>::new(&p.device), p.table(1)?);
        p.watch(|| tables.fold(&table, BabyBear4::ONE.double(), BindingOrder::MsbFirst))
    }),
    ("roots", 3, |p| {
        let (sqrt, a) = (Sqrt::<Fr>::new(&p.device)?, p.first(1, POINTS)?);
        let (mut out, mut mask) = (p.output(POINTS)?, p.output_keys(POINTS)?);
        p.watch(|| sqrt.sqrt(&a, &mut out, &mut mask))
    }),
    ("roots_by_warps", 3, |p| {
        let config = Config { method: Some(Method::Warp), ..Config::default() };
        let (sqrt, a) = (Sqrt::<Fr>::with(&p.device, config)?, p.first(1, POINTS)?);
        let (mut out, mut mask) = (p.output(POINTS)?, p.output_keys(POINTS)?);
        p.watch(|| sqrt.sqrt(&a, &mut out, &mut mask))
    }),
    ("cube_roots", 3, |p| {
        let (cubes, a) = (NthRoot::<Fr>::new(&p.device, 3)?, p.first(1, POINTS)?);
        let (mut out, mut mask) = (p.output(POINTS)?, p.output_keys(POINTS)?);
        p.watch(|| cubes.roots(&a, &mut out, &mut mask))
    }),
    ("symbols", 2, |p| {
        let (sqrt, a, mut out) = (Sqrt::<Fr>::new(&p.device)?, p.first(1, POINTS)?, p.output_keys(POINTS)?);
        p.watch(|| sqrt.symbols(&a, &mut out))
    }),
    ("decompressed_points", 3, |p| {
        let decompress = Decompress::<Curve>::new(&p.device, Encoding::Zcash, Check::Subgroup)?;
        let bytes: Vec<u8> = (0..48 * 30u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let (bytes, mut out, mut status) = (p.operand::<u8>(&bytes)?, p.output_of(30)?, p.output_keys(30)?);
        p.watch(|| decompress.decompress(&bytes, &mut out, &mut status))
    }),
    ("mapped_points", 2, |p| {
        type Twist = ark_bls12_381::g2::Config;

        let map = MapToCurve::<Twist>::new(&p.device)?;
        let host = samples::<ark_bls12_381::Fq2>(94, 1000 * u64::from(p.run()) + 5);
        let (u, mut out) = (p.operand::<Mont<_>>(&host[64..])?, p.output_of::<Jacobian<Twist>>(30)?);
        p.watch(|| map.map(&u, &mut out))
    }),
    ("modular_roots", 4, |p| {
        let primes = [59u64.wrapping_neg(), 189u64.wrapping_neg()].map(BoxedUint::from);
        let plan = ModSqrt::with_primes(&p.device, &primes, Secrecy::Public)?;
        let (indices, values) = (p.keys(100)?, p.keys(200)?);
        let (mut out, mut mask) = (p.output_keys(200)?, p.output_keys(100)?);
        p.watch(|| plan.sqrt_mixed(&indices, &values, &mut out, &mut mask))
    }),
    ("modular_symbols", 3, |p| {
        let plan = Jacobi::with_moduli(&p.device, &[15u64, 21].map(BoxedUint::from), Secrecy::Public)?;
        let (indices, values, mut out) = (p.keys(100)?, p.keys(200)?, p.output_keys(100)?);
        p.watch(|| plan.symbols_mixed(&indices, &values, &mut out))
    }),
    ("aes_ctr", 1, |p| p.cipher(|aes, data| aes.ctr(&[1; 16])?.apply_buffer(data))),
    ("aes_ctr_batch", 1, |p| {
        p.cipher(|aes, data| aes.ctr_batch(data, &[message(0, 64), message(64, 100)], Counter::Bits128))
    }),
    ("aes_gcm", 1, |p| p.cipher(|aes, data| aes.gcm()?.seal_buffer(&[2; 12], b"", data).map(drop))),
    ("aes_gcm_batch", 1, |p| {
        // The counter of one of them is a hash of its nonce, and so a secret of the key's.
        let of = |offset, nonce: &'static [u8]| GcmMessage { offset, len: 64, key: 0, nonce, aad: b"" };
        p.cipher(|aes, data| aes.gcm()?.seal_batch(data, &[of(0, &[2; 12]), of(64, &[3; 20])]).map(drop))
    }),
    ("aes_cbc", 1, |p| {
        p.cipher(|aes, data| {
            aes.cbc().encrypt_buffer(&[1; 16], &mut *data)?;
            aes.cbc().decrypt_buffer(&[1; 16], data)
        })
    }),
    ("aes_xts", 1, |p| {
        let xts = Xts::new(&p.device, &[[1; 16], [2; 16]].concat(), 40)?;
        p.cipher(|_, data| xts.encrypt_buffer(7, data))
    }),
];

/// What encrypts: of the keys' secrets, it brings what it makes to data that may be public. Only the data tells which.
const CIPHERS: [&str; 3] = ["aes_blocks", "aes_ctr", "aes_serial"];

/// Kernels that no operation of the table launches on the CPU, and why.
const NOT_HERE: [(&str, &str); 9] = [
    ("aes_previous", "GPUs alone have to keep what CBC chains"),
    ("move_bytes", "GPUs alone need bytes at words"),
    ("mul_chain", "it is for benches"),
    ("ntt_factors", "it computes public factors alone, for benches"),
    ("point_chain", "it is for benches"),
    ("products", "it is for benches"),
    ("sqrt_frobenius", "messages that are hashed are public"),
    ("sqrt_multiple", "messages that are hashed are public"),
    ("sumcheck_outer", "it has no input but a point"),
];

/// Operations whose kernels take Mesa minutes to compile.
const SLOW_ON_MESA: [&str; 16] = [
    "sums_of_points",
    "sums_of_points_in_pieces",
    "sums_of_points_one_by_one",
    "sums_of_points_by_whole_buckets",
    "sums_of_points_two_by_two",
    "sums_of_points_doubled",
    "proof",
    "proof_from_the_lowest",
    "proof_that_consumes",
    "proof_of_few_rounds",
    "fold",
    "roots",
    "symbols",
    "decompressed_points",
    "mapped_points",
    "modular_roots",
];

/// Variables of a statement.
const VARIABLES: usize = 10;

/// a · b − c.
fn gate() -> Expression {
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    a * b - c
}

fn statement(p: &Probe, order: BindingOrder) -> Result<(Statement<BabyBear4>, Sumcheck<BabyBear4, BabyBear>), Failed> {
    let statement = Statement::new(VARIABLES, &gate())?.order(order).weight(Weight::ZeroCheck);
    Ok((statement, Sumcheck::new(&p.device, &gate(), sumcheck::Config::default())?))
}

fn message(offset: usize, len: usize) -> Message {
    Message { offset, len, key: 0, iv: [offset as u8; 16] }
}

/// What is moved changes places with what it is moved from: so both are as secret as each other.
fn sort(p: &Probe, method: SortMethod) -> Outcome {
    let sort = RadixSort::with_method(&p.device, method)?;
    let (mut keys, mut values) = (p.in_place(|p| p.keys(5000))?, p.in_place(|p| p.keys(5000))?);
    p.watch(|| sort.sort(&mut keys, &mut values, 0..20))
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

pub(crate) fn add(suite: &mut Suite<'_>) {
    let software = suite.device.info().features.software && suite.device.info().id.kind == Kind::Wgpu;
    for &(name, operands, run) in OPERATIONS {
        if software && SLOW_ON_MESA.contains(&name) {
            suite.skip(name, "Mesa takes minutes to compile it, and secrets are looked for on the host");
            continue;
        }
        let device = suite.device.clone();
        suite.add_alone_with(name, move || {
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
    OPERATIONS.iter().map(|(name, _, run)| (*name, move |device: &Device| run(&Probe::new(device, Secret::None))))
}

/// That no kernel is missing here.
pub(crate) fn common() -> Trial {
    Trial::test("any::secrecy::every_kernel_has_an_operation", || {
        let mut launched = BTreeSet::new();
        for (name, _, run) in OPERATIONS {
            let probe = Probe::new(&Device::cpu(), Secret::None);
            run(&probe).map_err(|error| format!("{name}: {}", error.message().unwrap_or("failed")))?;
            launched.extend(probe.recorder.names());
        }
        let is_here = |kernel: &str| launched.contains(kernel);
        let missing: Vec<_> =
            evariste_cuda::KERNELS.iter().map(|(kernel, _)| *kernel).filter(|k| !is_here(k)).collect();
        let expected: Vec<_> = missing.iter().copied().filter(|k| NOT_HERE.iter().any(|(name, _)| name == k)).collect();
        expect_equal("kernels that no operation launches", &missing, &expected)?;
        let needless: Vec<_> = NOT_HERE.iter().filter(|(kernel, _)| is_here(kernel)).collect();
        expect_equal("kernels that an operation launches", &needless, &Vec::new())
    })
}

/// A device that remembers what is allocated and written, and gives operands of the secrecy that is tried.
struct Probe {
    device: Device,
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

    fn vector(&self) -> Vector<Fr> {
        Vector::new(&self.device)
    }

    /// A value that the host gives.
    fn value(&self) -> Fr {
        Fr::from(0x1234_5678_9abc_def1_u64)
    }

    /// The secrecy of the next operand.
    fn next(&self) -> Secrecy {
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

    fn next_output(&self) -> Secrecy {
        self.writing.set(true);
        let secrecy = self.next();
        self.writing.set(false);
        secrecy
    }

    /// Operands that are written, too.
    fn in_place<T>(&self, make: impl FnOnce(&Self) -> Result<T, Failed>) -> Result<T, Failed> {
        self.writing.set(true);
        let made = make(self);
        self.writing.set(false);
        made
    }

    fn remember<T: Element>(&self, buffer: &Buffer<T>) {
        if buffer.secrecy() == Secrecy::Public {
            self.public.borrow_mut().insert(Arg::read(buffer).memory().address());
        }
    }

    fn operand<T: Element>(&self, host: &[T::Host]) -> Result<Buffer<T>, Failed> {
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

    /// Bases that no other choice of what is secret has, nor another operation, by its number.
    fn bases(&self, number: usize) -> Vec<Affine<Sums>> {
        curve::random::<Sums>(POINTS, 1000 + 10 * number as u64 + u64::from(self.run()))
    }

    /// A number for each choice of what is secret, which values depend on: what was public with another choice may still lie in
    /// the device's pools.
    fn run(&self) -> u32 {
        match self.secret {
            Secret::None => 0,
            Secret::All => 1,
            Secret::Alone(number) => 2 * number as u32 + 2,
            Secret::With(number) => 2 * number as u32 + 3,
        }
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

    /// Scalars of sums of points.
    fn scalars<T: Element<Host = ark_bn254::Fr>>(&self) -> Result<Buffer<T>, Failed> {
        self.operand(&samples::<ark_bn254::Fr>(POINTS + 64, 1000 * u64::from(self.run()) + 9)[64..])
    }

    /// Watches sums of points that are added up by running sums of buckets, over bases of this number.
    fn sums_by(
        &self,
        number: usize,
        accumulation: Accumulation,
        addition: Addition,
        precompute: Precompute,
    ) -> Outcome {
        let points = self.bases(number);
        let (bases, scalars) = (self.operand::<AffinePoint<Sums>>(&points)?, self.scalars::<Mont<_>>()?);
        let aggregation = Aggregation::RunningSums;
        let tuning = Tuning { accumulation, addition, aggregation, ..Tuning::default() };
        let config = MsmConfig { window: Some(4), precompute, tuning, ..MsmConfig::default() };
        let msm = Msm::<Sums>::from_buffer(&self.device, &bases, config)?;
        self.watch(|| msm.msm(&scalars))
    }

    /// A table of a statement.
    fn table(&self, seed: u64) -> Result<Buffer<Mont<BabyBear>>, Failed> {
        self.operand(&samples::<BabyBear>(1 << VARIABLES, 1000 * u64::from(self.run()) + seed))
    }

    /// Watches what encrypts 164 bytes in place.
    fn cipher(&self, run: impl Fn(&Aes, &mut Buffer<u8>) -> evariste_aes::Result<()>) -> Outcome {
        let host: Vec<u8> = (0..176u32).map(|i| (i + self.run()).wrapping_mul(0x9e37_79b9).to_le_bytes()[3]).collect();
        let (aes, mut data) = (Aes::new(&self.device, &[7; 16])?, self.in_place(|p| p.operand::<u8>(&host))?);
        self.declassifying.set(&CIPHERS);
        self.watch(|| run(&aes, &mut data))
    }

    fn output_of<T: Element>(&self, len: usize) -> Result<Buffer<T>, Failed> {
        let buffer = self.device.alloc_with(len, self.next_output())?;
        self.remember(&buffer);
        Ok(buffer)
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
        self.recorder.written();
        self.recorder.leaks();
        let first = run().map(drop).map_err(Failed::from);
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
        drop(run()?);
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
