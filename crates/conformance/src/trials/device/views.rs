//! Parts of buffers: in launches, in transfers, and as operands of every kind of operation, on a queue of their own.

use ark_bls12_381::Fq;
use evariste::backend::{
    Device, Error, Queue, Secrecy, Transfer, View, ViewMut,
    author::{Arg, Binding, BindingType, CpuArg, Kernel, KernelSpec, Language},
    params,
};
use evariste::curve::{AffinePoint, Points};
use evariste::field::{
    Canonical, DeviceField, DevicePrimeField, Expression, FieldSum, Mont, Prefix, Vector, reference,
    small::{BabyBear, BabyBear4, Goldilocks},
};
use evariste::primitives::{RadixSort, RadixSortConfig, Scan, SegmentedSum, SortMethod, reference as sorted};

use crate::{
    devices::garbage,
    expect::{expect_equal, expect_error, expect_same},
    harness::{DeviceTrials, Outcome},
    samples::samples,
    trials::curve,
};

pub(crate) fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("views::launches", launches);
    trials.add("views::transfers", transfers);
    trials.add("views::misuse", misuse);
    trials.add("views::vectors::bls12-381-fq", vectors::<Fq>);
    trials.add("views::vectors::baby-bear", vectors::<BabyBear>);
    trials.add("views::vectors::baby-bear-4", vectors::<BabyBear4>);
    trials.add("views::forms::bls12-381-fq", forms::<Fq>);
    trials.add("views::forms::baby-bear", forms::<BabyBear>);
    trials.add("views::forms::goldilocks", forms::<Goldilocks>);
    trials.add("views::primitives", primitives);
    trials.add("views::points", points);
}

/// Places that no binding starts at, and some that one may.
const PLACES: [usize; 5] = [0, 1, 31, 33, 64];

params! {
    struct Params {
        len: u32,
    }
}

const CUDA: &str = "
extern \"C\" __global__ void halves(const Params params, const uint32_t* x, uint32_t* low, uint32_t* high) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= params.len) return;
    low[i] += x[i];
    high[i] ^= x[i];
}
";

const WGSL: &str = "
@compute @workgroup_size(THREADS)
fn halves(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
          @builtin(local_invocation_index) thread: u32) {
    let i = (group.x + group.y * groups.x) * THREADS + thread;
    if (i < params.len) {
        low_set(i, low_get(i) + x_get(i));
        high_set(i, high_get(i) ^ x_get(i));
    }
}
";

/// `low[i] += x[i]` and `high[i] ^= x[i]`.
fn halves() -> KernelSpec {
    let bindings = [
        Binding::read("x", BindingType::U32),
        Binding::write("low", BindingType::U32),
        Binding::write("high", BindingType::U32),
    ];
    let body = |params: &Params, [x, low, high]: &mut [CpuArg<'_>; 3]| {
        for (i, x) in x.read::<u32>()[..params.len as usize].iter().enumerate() {
            low.write::<u32>()[i] = low.read::<u32>()[i].wrapping_add(*x);
            high.write::<u32>()[i] ^= x;
        }
    };
    let source = |language| match language {
        Language::Cuda => CUDA.into(),
        Language::Wgsl { .. } => WGSL.into(),
    };
    KernelSpec::new("halves", "views", bindings, body, source).threads(64)
}

fn words(len: usize) -> Vec<u32> {
    (1..=len as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect()
}

/// What is read and what is written are parts of one buffer, or of two.
fn launches(device: &Device) -> Outcome {
    let kernel = Kernel::<Params>::new(device, halves())?;
    let launch = |x: View<'_, u32>, low: ViewMut<'_, u32>, high: ViewMut<'_, u32>| {
        let (len, args) = (x.len() as u32, &mut [Arg::read(x), Arg::write(low), Arg::write(high)]);
        // SAFETY: all three views have `len` elements, and threads beyond do nothing.
        unsafe { kernel.launch(&device.default_queue(), len.div_ceil(64).into(), &Params { len }, args) }
    };
    let all = words(500);
    let other = device.upload::<u32>(&all)?;
    for at in PLACES {
        for len in [0, 1, 31, 65] {
            let parts = [at, at + len + 1, at + 2 * len + 3];
            let mut buffer = device.upload::<u32>(&all)?;
            let (mut x, rest) = buffer.view_mut(at..)?.split_at(len + 1)?;
            let (mut low, mut high) = rest.split_at(len + 2)?;
            let mut expected = all.clone();
            for round in 0..2 {
                let (low, high) = (low.view_mut(..len)?, high.view_mut(..len)?);
                if round == 0 {
                    launch(x.view(..len)?, low, high)?;
                } else {
                    launch(other.view(parts[0]..parts[0] + len)?, low, high)?;
                }
                for i in 0..len {
                    expected[parts[1] + i] = expected[parts[1] + i].wrapping_add(all[parts[0] + i]);
                    expected[parts[2] + i] ^= all[parts[0] + i];
                }
            }
            x.view_mut(len..)?.write(&[7])?;
            expected[at + len] = 7;
            expect_same(&format!("{len} words from {at} on"), &buffer.to_vec()?, &expected)?;
        }
    }
    // The last word, and two halves that are all of a buffer.
    let mut buffer = device.upload::<u32>(&all)?;
    let (low, high) = buffer.as_view_mut().split_at(250)?;
    launch(other.view(250..)?, low, high)?;
    let (mut low, mut high) = (all[..250].to_vec(), all[250..].to_vec());
    low.iter_mut().zip(&all[250..]).for_each(|(low, x)| *low = low.wrapping_add(*x));
    high.fill(0);
    expect_same("halves", &buffer.to_vec()?, &[low, high].concat())
}

fn transfers(device: &Device) -> Outcome {
    let all = words(400);
    for at in PLACES {
        for len in [0, 1, 33, 100] {
            let mut buffer = device.upload::<u32>(&all)?;
            let mut expected = all.clone();
            expect_same("read", &buffer.view(at..at + len)?.to_vec()?, &all[at..at + len])?;
            let (mut part, mut behind) = buffer.view_mut(at..)?.split_at(len)?;
            part.write(&words(len))?;
            expected[at..at + len].copy_from_slice(&words(len));
            behind.view_mut(1..=len)?.copy_from(&part)?;
            expected.copy_within(at..at + len, at + len + 1);
            part.clear()?;
            expected[at..at + len].fill(0);
            let mut host = device.host_buffer(4 * len, Transfer::Both, Secrecy::Public)?;
            host.fill(3);
            let sent = behind.view_mut(len + 1..2 * len + 1)?.write_pinned(host)?.wait()?;
            expected[at + 2 * len + 1..at + 3 * len + 1].fill(0x0303_0303);
            let back = behind.view(1..=len)?.read_pinned(sent)?.wait()?;
            expect_same("read back", &back, bytemuck::cast_slice(&expected[at + len + 1..at + 2 * len + 1]))?;
            expect_same(&format!("{len} words from {at} on"), &buffer.to_vec()?, &expected)?;
            let copy = buffer.view(at..)?.duplicate()?;
            expect_same("copy", &copy.to_vec()?, &expected[at..])?;
        }
    }
    Ok(())
}

fn misuse(device: &Device) -> Outcome {
    let mut x = device.upload::<u32>(&words(10))?;
    let error = expect_error("a view past the end", x.view(3..11))?;
    expect_equal("view", &error, &Error::OutOfRange { what: "a view", offset: 3, count: 8, len: 10 })?;
    let error = expect_error("a view of a view past its end", x.view_mut(5..)?.view_mut(..6))?;
    expect_equal("view", &error, &Error::OutOfRange { what: "a view", offset: 0, count: 6, len: 5 })?;
    let error = expect_error("a division past the end", x.as_view_mut().split_at(11))?;
    expect_equal("division", &error, &Error::OutOfRange { what: "a view", offset: 11, count: 0, len: 10 })?;
    let error = expect_error("a write of another length", x.view_mut(2..4)?.write(&[1; 3]))?;
    expect_equal("write", &error, &Error::Length { what: "the target of a write", expected: 3, actual: 2 })?;
    let kernel = Kernel::<Params>::new(device, halves())?;
    let mut bytes = device.upload::<u8>(&[5; 12])?;
    let (low, high) = x.as_view_mut().split_at(5)?;
    let args = &mut [Arg::read(bytes.view(1..5)?), Arg::write(low), Arg::write(high)];
    // SAFETY: the launch is refused.
    let error = expect_error("a launch on part of a word", unsafe {
        kernel.launch(&device.default_queue(), 1, &Params { len: 1 }, args)
    })?;
    let what = "a kernel argument";
    expect_equal("launch", &error, &Error::Unaligned { what, expected: 4, offset: 1, count: 4 })?;
    let error = expect_error("part of a word cleared", bytes.view_mut(4..6)?.clear())?;
    expect_equal("clear", &error, &Error::Unaligned { what: "clear", expected: 4, offset: 4, count: 2 })?;
    expect_same("untouched", &bytes.to_vec()?, &[5; 12])?;
    expect_same("untouched", &x.to_vec()?, &words(10))
}

/// A queue behind all that the default queue has been given.
fn queue_behind(device: &Device) -> Result<Queue, Error> {
    let queue = device.queue()?;
    let so_far = device.default_queue().record()?;
    queue.wait_for(&so_far)?;
    Ok(queue)
}

/// Lets the default queue wait for another.
fn join(device: &Device, queue: &Queue) -> Result<(), Error> {
    device.default_queue().wait_for(&queue.record()?)
}

fn vectors<F: DeviceField>(device: &Device) -> Outcome {
    let vector = Vector::<F>::new(device);
    for (at, len) in [(0, 33), (1, 300), (31, 1), (33, 0), (5, 31)] {
        let (all, b) = (samples::<F>(1000, 61), samples::<F>(len, 62));
        let (mut buffer, db) = (device.upload::<Mont<F>>(&all)?, device.upload::<Mont<F>>(&b)?);
        let mut expected = all.clone();
        let queue = queue_behind(device)?;
        let vector = vector.on(&queue);
        let (a, rest) = buffer.view_mut(at..)?.split_at(len)?;
        let (mut out, mut values) = rest.split_at(len)?;
        let a_values = &all[at..at + len];
        let places = (at + len, at + 2 * len);
        vector.add(&a, &db, &mut out)?;
        vector.prefix_sum_assign(&mut out, Prefix::Inclusive)?;
        vector.inner_product_into(&a, &db, values.view_mut(1..2)?)?;
        vector.powers(F::from(3u8), F::from(5u8), values.view_mut(2..5)?)?;
        let sums = reference::pointwise(a_values, &b, |a, b| a + b);
        let sums = reference::prefix(&sums, Prefix::Inclusive, F::ZERO, |x, y| x + y);
        expected[places.0..places.1].copy_from_slice(&sums);
        expected[places.1 + 1] = reference::inner_product(a_values, &b);
        expected[places.1 + 2..places.1 + 5].copy_from_slice(&reference::powers(F::from(3u8), F::from(5u8), 3));
        expect_equal("sum", &vector.sum(&out)?, &reference::sum(&sums))?;
        // The halves of a column.
        let mut differences = garbage(device, len / 2)?;
        let (low, high) = (a.view(..len / 2)?, a.view(len / 2..len / 2 * 2)?);
        let difference = Expression::column(1) - Expression::column(0);
        vector.evaluate_expression(&difference, &[low, high], &[], &mut differences)?;
        join(device, &queue)?;
        let (low, high) = (&a_values[..len / 2], &a_values[len / 2..len / 2 * 2]);
        let halves = reference::pointwise(high, low, |a, b| a - b);
        expect_same(&format!("halves of {len} from {at} on"), &differences.to_vec()?, &halves)?;
        expect_same(&format!("{len} from {at} on"), &buffer.to_vec()?, &expected)?;
    }
    Ok(())
}

/// From Montgomery to canonical form and back.
fn forms<F: DevicePrimeField>(device: &Device) -> Outcome {
    let vector = Vector::<F>::new(device);
    let a = samples::<F>(300, 64);
    let mut integers = garbage::<Canonical<F>>(device, 301)?;
    vector.to_canonical(&device.upload::<Mont<F>>(&a)?, integers.view_mut(1..)?)?;
    expect_same("integers", &integers.view(1..)?.to_vec()?, &a)?;
    let mut back = garbage::<Mont<F>>(device, 299)?;
    vector.from_canonical(integers.view(2..)?, &mut back)?;
    expect_same("elements", &back.to_vec()?, &a[1..])
}

fn primitives(device: &Device) -> Outcome {
    let scan = Scan::new(device)?;
    let (at, len) = (33, 3001);
    let all = words(2 * len + 100);
    let mut buffer = device.upload::<u32>(&all)?;
    let queue = queue_behind(device)?;
    let (keys, mut starts) = buffer.view_mut(at..)?.split_at(len)?;
    scan.on(&queue).exclusive(&keys, starts.view_mut(1..len + 2)?)?;
    join(device, &queue)?;
    let mut expected = all.clone();
    expected[at + len + 1..at + 2 * len + 2].copy_from_slice(&sorted::exclusive_scan(&all[at..at + len]));
    expect_same("scan", &buffer.to_vec()?, &expected)?;

    // One digit, so that what was moved must come back, and two.
    for (method, bits) in
        [(SortMethod::Scatter, 3..7), (SortMethod::Scatter, 0..8), (SortMethod::fastest(device.info()), 5..13)]
    {
        let sort = RadixSort::with_config(device, RadixSortConfig::default().method(method))?;
        let mut buffer = device.upload::<u32>(&all)?;
        let queue = queue_behind(device)?;
        let (keys, mut values) = buffer.view_mut(at..)?.split_at(len)?;
        sort.on(&queue).sort(keys, values.view_mut(..len)?, bits.clone())?;
        join(device, &queue)?;
        let (keys, values) = sorted::sort(&all[at..at + len], &all[at + len..at + 2 * len], &bits);
        let expected = [&all[..at], &keys, &values, &all[at + 2 * len..]].concat();
        expect_same(&format!("{method:?} by {bits:?}"), &buffer.to_vec()?, &expected)?;
    }

    let sum = SegmentedSum::<FieldSum<BabyBear>>::new(device)?;
    let keys: Vec<u32> = (0..1000).map(|i| i / 100).collect();
    let values = samples::<BabyBear>(1000, 63);
    let (dk, dv) = (device.upload::<u32>(&keys)?, device.upload::<Mont<BabyBear>>(&values)?);
    let mut out = garbage::<Mont<BabyBear>>(device, 13)?;
    let before = device.upload::<Mont<BabyBear>>(&[BabyBear::from(9u8); 13])?;
    out.copy_from(&before)?;
    let queue = queue_behind(device)?;
    sum.on(&queue).reduce(dk.view(1..)?, dv.view(1..)?, out.view_mut(2..12)?)?;
    join(device, &queue)?;
    let segment = |k: usize| reference::sum(&values[100 * k + usize::from(k == 0)..100 * (k + 1)]);
    let nine = BabyBear::from(9u8);
    let expected: Vec<BabyBear> = [nine; 2].into_iter().chain((0..10).map(segment)).chain([nine]).collect();
    expect_same("segmented sum", &out.to_vec()?, &expected)
}

fn points(device: &Device) -> Outcome {
    type Curve = ark_bn254::g1::Config;
    let points = Points::<Curve>::new(device);
    let all: Vec<_> = curve::some_points::<Curve>(40).into_iter().map(Into::into).collect();
    let mut buffer = device.upload::<AffinePoint<Curve>>(&all)?;
    let queue = queue_behind(device)?;
    let (a, mut out) = buffer.view_mut(1..)?.split_at(12)?;
    points.on(&queue).negate_affine(&a, out.view_mut(3..15)?)?;
    join(device, &queue)?;
    let mut expected = all.clone();
    for i in 0..12 {
        expected[16 + i] = -all[1 + i];
    }
    expect_same("opposites", &buffer.to_vec()?, &expected)
}
