//! Multi-scalar multiplication: sums of known multiples of the generator.

mod freed;
mod loops;
mod prepared;
mod queues;
mod secrets;

use std::sync::Arc;

use ark_ec::{
    AffineRepr, CurveGroup,
    short_weierstrass::{Affine, Projective},
};
use ark_ff::{Field, UniformRand, Zero};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use evariste::backend::{Device, Element, Error as DeviceError, Secrecy, Transfer};
use evariste::curve::AffinePoint;
use evariste::field::{Canonical, DeviceField, Mont};
use evariste::msm::{
    Accumulation, Addition, Aggregation, Bases, Error, Infinity, Msm, MsmConfig, MsmCurve, Precompute, Tuning,
    msm_host, reference,
};

use crate::{
    area::Area,
    curves,
    devices::{is_emulated, other_device},
    expect::{expect, expect_equal, expect_same},
    fields::EVERY_FIELD,
    harness::{DeviceTrials, Outcome},
    launches::{Exception, KernelGroup, Launched},
    recorder::Recorder,
    sizes::{is_few, lengths},
};

pub(crate) const AREA: Area = Area {
    kernels: KERNELS,
    exceptions: &[
        // A workgroup for each run of buckets.
        Exception::new("msm_bits", "", Launched::BySeveral),
        // There are more buckets than threads of a workgroup.
        Exception::new("msm_whole", "each bucket", Launched::BySeveral),
    ],
    operations: secrets::OPERATIONS,
    freed: freed::FREED,
    ordered: queues::ORDERED,
    divided: loops::DIVIDED,
    prepared: Some(prepared::sums),
    plans: queues::PLANS,
    ..Area::new("msm", add)
};

fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("bn254-g1::scalars", scalars::<ark_bn254::g1::Config>);
    trials.add("bn254-g1::integers", integers::<ark_bn254::g1::Config>);
    trials.add("short::counts", counts::<curves::Short>);
    // Emulated GPUs take minutes to compile all kernels over long fields. The trials of points have these curves too.
    if EVERY_FIELD || !is_emulated(trials.device) {
        // Over an extension of a longer field, and with a ≠ 0.
        trials.add("bls12-381-g2::scalars", scalars::<ark_bls12_381::g2::Config>);
        trials.add("bls12-381::digits", shared_digits::<ark_bls12_381::g1::Config, ark_bls12_381::g2::Config>);
        trials.add("p-256::scalars", scalars::<curves::P256>);
        trials.add("bls12-381-g1::scalars", scalars::<ark_bls12_381::g1::Config>);
        trials.add("bn254-g1::counts", counts::<ark_bn254::g1::Config>);
        trials.add("bn254-g1::divisions", divisions::<ark_bn254::g1::Config>);
        trials.add("bn254-g1::methods", methods::<ark_bn254::g1::Config>);
        trials.add("bls12-381-g1::divisions", divisions::<ark_bls12_381::g1::Config>);
    }
    trials.add("short::digits", shared_digits::<curves::Short, curves::Short>);
    trials.add("short::divisions", divisions::<curves::Short>);
    trials.add("short::methods", methods::<curves::Short>);
    if EVERY_FIELD {
        trials.add("bls12-381-g1::integers", integers::<ark_bls12_381::g1::Config>);
        trials.add("bls12-381-g2::divisions", divisions::<ark_bls12_381::g2::Config>);
        trials.add("pallas::scalars", scalars::<ark_pallas::PallasConfig>);
        if !trials.device.info().features.software {
            trials.add("bls24-315-g1::methods", methods::<evariste_bls24_315::g1::Config>);
        }
        trials.add("bls24-315-g1::sum", sum::<evariste_bls24_315::g1::Config>);
        trials.add("secp256k1::sum", sum::<curves::Secp256k1>);
    }
    trials.add("tiny::slices", tiny);
    trials.add("pinned", pinned);
    trials.add("small_buffers", small_buffers);
    trials.add("two_threads", two_threads);
    trials.add_alone("cpu-threshold", small_sums_stay_on_the_cpu);
    trials.add_alone("memory", memory);
    trials.add("with_bases", with_bases);
    trials.add("misuse", misuse);
}

const KERNELS: &[KernelGroup] = &[KernelGroup {
    name: "msm",
    cases: &["bn254-g1::scalars", "bn254-g1::divisions", "bn254-g1::integers", "bn254-g1::methods"],
    kernels: |_| {
        let mut kernels = Msm::<ark_bn254::g1::Config>::kernels();
        kernels.extend(Msm::<ark_bn254::g1::Config>::optional_kernels());
        kernels.retain(|kernel| kernel.name.starts_with("msm"));
        Ok(kernels)
    },
}];

/// Multiples of the generator and what they are multiplied by: small integers of both signs, so that points repeat and
/// have their opposites among them, and infinity.
fn bases<C: MsmCurve>(len: usize) -> (Vec<Affine<C>>, Vec<C::ScalarField>) {
    let generator = Affine::<C>::generator();
    let multiples = std::iter::successors(Some(Projective::<C>::zero()), |point| Some(*point + generator));
    let multiples = CurveGroup::normalize_batch(&multiples.take(24).collect::<Vec<_>>());
    let mut rng = StdRng::seed_from_u64(len as u64);
    let base = |_| {
        let k = rng.gen_range(0..24usize);
        let (point, scalar) = (multiples[k], C::ScalarField::from(k as u64));
        if rng.r#gen() { (point, scalar) } else { (-point, -scalar) }
    };
    (0..len).map(base).unzip()
}

/// A scalar from its place and a source of randomness.
type Kind<F> = fn(usize, &mut StdRng) -> F;

/// Scalars of every shape that could favour some buckets, or digits with a carry into the highest.
fn kinds<F: Field>() -> [(&'static str, Kind<F>); 8] {
    [
        ("random", |_, rng| F::rand(rng)),
        ("all zero", |_, _| F::ZERO),
        ("all one", |_, _| F::ONE),
        ("r - 1", |_, _| -F::ONE),
        ("one in ten", |i, rng| if i % 10 == 3 { F::rand(rng) } else { F::ZERO }),
        ("16 bits", |_, rng| F::from(rng.r#gen::<u16>())),
        ("both signs", |i, _| if i % 2 == 0 { F::from(77u8) } else { -F::from(77u8) }),
        ("halves", |i, _| F::from(2u8).inverse().unwrap_or(F::ONE) - F::from((i % 3) as u64)),
    ]
}

/// Sums over three sets of bases of two curves share the digits of their scalars, and are under way at once.
fn shared_digits<A: MsmCurve, B: MsmCurve<ScalarField = A::ScalarField>>(device: &Device) -> Outcome {
    for len in lengths(device, &[1, 257, 3000]) {
        let ((first, own), (second, others)) = (bases::<A>(len), bases::<B>(len));
        let mut reversed = first.clone();
        reversed.reverse();
        for copies in [1, 3] {
            let tables = |each: usize| Precompute::Tables { budget: (copies * len * each) as u64 };
            let config = |each| MsmConfig::default().window(8).precompute(tables(each));
            let (in_a, in_b) = (config(AffinePoint::<A>::BYTES), config(AffinePoint::<B>::BYTES));
            let plans = (Msm::<A>::with_config(device, &first, in_a)?, Msm::<A>::with_config(device, &reversed, in_a)?);
            let other = Msm::<B>::with_config(device, &second, in_b)?;
            for kind in [0, 3, 4] {
                let (name, scalars, expected) = sample::<A>(&own, kind);
                let (.., expected_other) = sample::<B>(&others, kind);
                let what = |sum: &str| format!("the {sum} sum of {len} {name} scalars with {copies} copies");
                let uploaded = device.upload::<Mont<A::ScalarField>>(&scalars)?;
                for digits in [plans.0.digits(&scalars)?, plans.1.digits(&uploaded)?] {
                    let sums = (other.start(&digits)?, plans.1.start(&digits)?, plans.0.start(&digits)?);
                    drop(digits);
                    let backwards: A::ScalarField = scalars.iter().rev().zip(&own).map(|(s, k)| *s * k).sum();
                    expect(&what("other curve's"), sums.0.wait()? == expected_other)?;
                    expect(&what("reversed"), sums.1.wait()? == Affine::<A>::generator() * backwards)?;
                    expect(&what("first"), sums.2.wait()? == expected)?;
                }
            }
        }
    }
    Ok(())
}

/// The name of a kind of scalars, one for each base, and their sum.
fn sample<C: MsmCurve>(
    multipliers: &[C::ScalarField],
    kind: usize,
) -> (&'static str, Vec<C::ScalarField>, Projective<C>) {
    let (name, make) = kinds::<C::ScalarField>()[kind];
    let mut rng = StdRng::seed_from_u64(kind as u64);
    let scalars: Vec<C::ScalarField> = (0..multipliers.len()).map(|i| make(i, &mut rng)).collect();
    let sum: C::ScalarField = scalars.iter().zip(multipliers).map(|(s, k)| *s * k).sum();
    (name, scalars, Affine::<C>::generator() * sum)
}

/// Compares the sum over some scalars, from the host and in both forms on the device.
fn check<C: MsmCurve>(device: &Device, msm: &Msm<C>, multipliers: &[C::ScalarField], kind: usize) -> Outcome {
    let (name, scalars, expected) = sample::<C>(multipliers, kind);
    let is_right =
        |sum: Projective<C>, how| expect(&format!("the sum of {} {name} scalars {how}", msm.len()), sum == expected);
    is_right(msm.msm(&scalars)?, "from the host")?;
    let secret = device.upload_with::<Mont<C::ScalarField>>(&scalars, Secrecy::Secret)?;
    is_right(msm.msm(&secret)?, "in Montgomery form")?;
    is_right(msm.msm(&device.upload::<Canonical<C::ScalarField>>(&scalars)?)?, "as integers")
}

fn scalars<C: MsmCurve>(device: &Device) -> Outcome {
    for len in [0, 1, 2, 3, 130] {
        let (bases, multipliers) = bases::<C>(len);
        let msm = Msm::<C>::new(device, &bases)?;
        let kinds = if len == 130 { 0..kinds::<C::ScalarField>().len() } else { 0..1 };
        for kind in kinds {
            check(device, &msm, &multipliers, kind)?;
        }
    }
    Ok(())
}

/// One way of adding up, over one more field.
fn sum<C: MsmCurve>(device: &Device) -> Outcome {
    let (bases, multipliers) = bases::<C>(40);
    let msm = Msm::<C>::with_config(device, &bases, MsmConfig::default().window(4).check(true))?;
    check(device, &msm, &multipliers, 0)
}

/// The memory of sums in pieces of 20 scalars, of which two are there at a time.
fn memory_of_pieces<C: MsmCurve>(device: &Device, config: MsmConfig) -> Result<u64, Error> {
    let bytes = Msm::<C>::with_config(device, &[], config)?.scratch_bytes(20, 1)?;
    Ok(bytes + 2 * 20 * Mont::<C::ScalarField>::BYTES as u64)
}

/// Every way of dividing the work: slices, layers, tables, affine additions, pieces.
fn divisions<C: MsmCurve>(device: &Device) -> Outcome {
    let (bases, multipliers) = bases::<C>(90);
    let tuning = |slices: u32, min_slice: u32, run: u32, last: u32, levels: u32| {
        let sliced = Tuning::default().slices(slices).min_slice(min_slice);
        sliced.log_reduction_run(run).log_final_row(last).affine_levels(levels)
    };
    let tables = |count: usize| Precompute::Tables { budget: (count * bases.len() * AffinePoint::<C>::BYTES) as u64 };
    let plain = MsmConfig::default();
    let pieces = plain.window(3).tuning(tuning(20, 1, 1, 1, 1));
    let memory = memory_of_pieces::<C>(device, pieces)?;
    let configs = [
        plain.window(6).tuning(tuning(600, 1, 2, 1, 0)),
        plain.window(4).tuning(tuning(1, 1, 1, 9, 2)).precompute(tables(5)),
        plain.window(8).tuning(tuning(300, 2, 3, 0, 1)).precompute(tables(90)),
        plain.window(2).tuning(tuning(5, 7, 1, 1, 8)).bases(Bases::FullGroup),
        pieces.memory(memory),
        plain.window(5).precompute(Precompute::OddSignedDigits { depth: 1 }),
    ];
    // Where sanitizers run, one kind of scalars is enough to launch all kernels; each division has another where
    // devices are emulated. The kernels of each take long to compile there over extensions, where other curves have all
    // divisions.
    let kinds = [0, 4, 6];
    let emulated = device.info().features.software && C::BaseField::extension_degree() > 1;
    for (i, config) in configs.into_iter().enumerate().skip(if emulated { 4 } else { 0 }) {
        let msm = Msm::<C>::with_config(device, &bases, config)?;
        let kinds = match (is_few(device), device.info().features.software) {
            (true, _) => &kinds[..1],
            (false, true) => &kinds[i % kinds.len()..][..1],
            (false, false) => &kinds[..],
        };
        kinds.iter().try_for_each(|kind| check(device, &msm, &multipliers, *kind))?;
    }
    // For a few points a workgroup adds all pairs; for more, several prepare them.
    let few = plain.window(8).tuning(tuning(20, 1, 1, 1, 2));
    let many = plain.window(16).tuning(tuning(20, 1, 2, 1, 0)).precompute(tables(14));
    for (len, config) in [(3, few), (600, many)] {
        let (bases, multipliers) = self::bases::<C>(len);
        check(device, &Msm::<C>::with_config(device, &bases, config)?, &multipliers, 0)?;
    }
    // No point is left, or all are in one bucket.
    let msm = Msm::<C>::with_config(device, &bases, few)?;
    [1, 2].into_iter().try_for_each(|kind| check(device, &msm, &multipliers, kind))?;
    Ok(())
}

/// What the ways of the default are compared with: whole buckets by slices and one by one, points two by two and
/// doubled on the way, and running sums; of few threads and of many.
fn methods<C: MsmCurve>(device: &Device) -> Outcome {
    use Accumulation::{Balanced, PerBucket, WholeBuckets};
    use Addition::{Double, Single};
    let odd = Precompute::OddSignedDigits { depth: 1 };
    let doublings = |depth| Precompute::Doublings { depth };
    let ways = [
        (Balanced, Double, Precompute::None),
        (Balanced, Single, doublings(0)),
        (WholeBuckets, Single, Precompute::None),
        (WholeBuckets, Double, odd),
        (WholeBuckets, Single, doublings(2)),
        (PerBucket, Single, odd),
        (PerBucket, Double, Precompute::None),
        (PerBucket, Single, doublings(3)),
    ];
    // Of emulated devices, each way has two kinds of scalars, and all of them together every kind.
    let (all, emulated) = (kinds::<C::ScalarField>().len(), is_few(device) || device.info().features.software);
    for (i, (accumulation, addition, precompute)) in ways.into_iter().enumerate() {
        // Runs of one bucket, and of whole rows.
        for (len, slices, layer) in [(87, 300, 1), (87, 20, 26), (1, 5, 2)] {
            let tuning = Tuning::default()
                .accumulation(accumulation)
                .addition(addition)
                .aggregation(if i % 2 == 0 { Aggregation::RunningSums } else { Aggregation::Layered })
                .slices(slices)
                .min_slice(1)
                .log_reduction_run(layer);
            let (bases, multipliers) = bases::<C>(len);
            let config = MsmConfig::default().window(6).precompute(precompute).tuning(tuning);
            let msm = Msm::<C>::with_config(device, &bases, config)?;
            let kinds = match (emulated, slices) {
                (_, 5) => i..i + 1,
                (true, 300) => 0..1,
                (true, _) => i..i + 1,
                (false, _) => 0..all,
            };
            for kind in kinds {
                check(device, &msm, &multipliers, kind)?;
            }
        }
    }
    Ok(())
}

/// Words that are no residues: integers for any points, residues for those of order r.
fn integers<C: MsmCurve>(device: &Device) -> Outcome {
    let (bases, _) = bases::<C>(4);
    let bytes = 4 * C::ScalarField::LIMBS;
    let mut words = device.host_buffer(4 * bytes, Transfer::Upload, Secrecy::Public)?;
    words.fill(u8::MAX);
    let mut scalars = device.alloc::<Canonical<C::ScalarField>>(4)?;
    scalars.write_pinned(words)?.wait()?;
    let expected = reference::msm::<C, _>(&bases, &vec![vec![u64::MAX; bytes / 8]; 4]);
    for kind in [Bases::FullGroup, Bases::Subgroup] {
        let msm = Msm::<C>::with_config(device, &bases, MsmConfig::default().bases(kind))?;
        expect(&format!("{kind:?}"), msm.msm(&scalars)? == expected)?;
    }
    Ok(())
}

/// Several sums at once, over the same bases and over bases of their own.
fn counts<C: MsmCurve>(device: &Device) -> Outcome {
    let (bases, multipliers) = bases::<C>(60);
    let mut rng = StdRng::seed_from_u64(60);
    let scalars: Vec<C::ScalarField> = (0..60).map(|_| UniformRand::rand(&mut rng)).collect();
    let msm = Msm::<C>::new(device, &bases)?;
    for count in [1, 3, 20, 60] {
        let len = 60 / count;
        let sum = |i: usize, first: usize| {
            let terms = scalars[i * len..(i + 1) * len].iter().zip(&multipliers[first..]);
            Affine::<C>::generator() * terms.map(|(s, k)| *s * k).sum::<C::ScalarField>()
        };
        let shared: Vec<Projective<C>> = (0..count).map(|i| sum(i, 0)).collect();
        let own: Vec<Projective<C>> = (0..count).map(|i| sum(i, i * len)).collect();
        expect_same("sums over the same bases", &msm.msm_batch(count, &scalars)?, &shared)?;
        expect_same("sums over bases of their own", &msm.msm_segmented(count, &scalars)?, &own)?;
    }
    Ok(())
}

/// Sums of each of two threads, on queues of their own: a thousand together, but where threads of a GPU are emulated.
fn two_threads(device: &Device) -> Outcome {
    type C = ark_bn254::g1::Config;
    let info = device.info();
    let emulated = info.features.software || info.limits.workgroup_threads == 1 || is_few(device);
    let rounds = if emulated { 5 } else { 1000 / 4 };
    let (bases, multipliers) = bases::<C>(100);
    let msm = Msm::<C>::new(device, &bases)?;
    std::thread::scope(|scope| {
        let work = |kind: usize| {
            let (msm, multipliers) = (&msm, &multipliers);
            scope.spawn(move || -> Outcome {
                let queue = device.queue()?;
                let (msm, (_, scalars, expected)) = (msm.on(&queue), sample::<C>(multipliers, kind));
                for _ in 0..rounds {
                    let uploaded = queue.upload_with::<Mont<ark_bn254::Fr>>(&scalars, Secrecy::Secret)?;
                    expect("the sum of scalars from the host", msm.msm(&scalars)? == expected)?;
                    expect("the sum of scalars on the device", msm.msm(&uploaded)? == expected)?;
                }
                Ok(())
            })
        };
        let threads = [work(0), work(5)];
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })
}

/// Below the CPU threshold nothing comes to the device; its results are the CPU's.
fn small_sums_stay_on_the_cpu(device: &Device) -> Outcome {
    type C = ark_bn254::g1::Config;
    let measured = Msm::<C>::cpu_threshold(device)?;
    expect_equal("a threshold is measured once", &Msm::<C>::cpu_threshold(device)?, &measured)?;
    let (bases, multipliers) = bases::<C>(9);
    let (_, scalars, expected) = sample::<C>(&multipliers, 0);
    for (pinned, stays) in [(0, false), (9, false), (10, true), (usize::MAX, true)] {
        Msm::<C>::set_cpu_threshold(device, pinned);
        let before = device.stats().launches;
        expect("the sum", msm_host::<C>(device, &bases, &scalars)? == expected)?;
        let stayed = device.stats().launches == before;
        let is_cpu = device.info().limits.workgroup_threads == 1;
        expect(&format!("the threshold {pinned} keeps 9 points: {stays}"), stayed == (stays && !is_cpu))?;
    }
    Msm::<C>::set_cpu_threshold(device, measured);
    Ok(())
}

/// What an evaluation says that it needs is what it takes.
fn memory(device: &Device) -> Outcome {
    type C = ark_bn254::g1::Config;
    let recorder = Recorder::plain(device);
    let device = &Device::unregistered(Arc::clone(&recorder) as _);
    let len = if is_few(device) { 3000 } else { 20_000 };
    let (bases, multipliers) = bases::<C>(len);
    let scalars = device.upload::<Mont<ark_bn254::Fr>>(&multipliers)?;
    let msm = Msm::<C>::new(device, &bases)?;
    let required = msm.scratch_bytes(len, 1)?;
    let before = device.stats().bytes_live;
    let _ = recorder.peak();
    let _ = msm.msm(&scalars)?;
    let taken = recorder.peak().saturating_sub(before);
    expect(&format!("{required} bytes are within 5% of {taken}"), taken.abs_diff(required) * 20 <= required)
}

/// Scalars in memory that the device copies from itself, at once and in pieces. It comes back as it was.
fn pinned(device: &Device) -> Outcome {
    type C = ark_bn254::g1::Config;
    type Scalar = Mont<ark_bn254::Fr>;
    let (bases, multipliers) = bases::<C>(90);
    let (_, scalars, expected) = sample::<C>(&multipliers, 0);
    let small = MsmConfig::default().window(3);
    let memory = memory_of_pieces::<C>(device, small)?;
    let filled = || {
        let mut host = device.host_buffer(90 * Scalar::BYTES, Transfer::Upload, Secrecy::Public)?;
        Scalar::encode(&scalars, &mut host);
        Ok::<_, Error>(host)
    };
    for config in [MsmConfig::default(), small.memory(memory)] {
        let msm = Msm::<C>::with_config(device, &bases, config)?;
        let (sum, host) = msm.msm_pinned(filled()?)?;
        expect(&format!("{config:?}"), sum == expected)?;
        expect_same("the memory that came back", &host, &filled()?)?;
        let mut few = host;
        drop(few.split_off(2 * Scalar::BYTES));
        let expected = bases[0] * scalars[0] + bases[1] * scalars[1];
        expect("a sum of two", msm.msm_pinned(few)?.0 == expected)?;
        let none = device.host_buffer(0, Transfer::Upload, Secrecy::Public)?;
        expect("a sum of none", msm.msm_pinned(none)?.0.is_zero())?;
    }
    let msm = Msm::<C>::new(device, &bases[..89])?;
    let is = |host, right: fn(&Error) -> bool| {
        let result = msm.msm_pinned(host);
        expect(&format!("the error of {result:?}"), result.is_err_and(|error| right(&error)))
    };
    is(filled()?, |error| matches!(error, Error::Device(DeviceError::Length { expected: 89, actual: 90, .. })))?;
    let odd = device.host_buffer(Scalar::BYTES + 1, Transfer::Upload, Secrecy::Public)?;
    is(odd, |error| matches!(error, Error::Device(DeviceError::Length { expected: 64, actual: 33, .. })))?;
    if let Some(other) = other_device(device) {
        let elsewhere = other.host_buffer(Scalar::BYTES, Transfer::Upload, Secrecy::Public)?;
        is(elsewhere, |error| matches!(error, Error::Device(DeviceError::WrongDevice { .. })))?;
    }
    Ok(())
}

/// Where buffers are short, fewer sums are done at once.
fn small_buffers(device: &Device) -> Outcome {
    type C = ark_bn254::g1::Config;
    let (bases, multipliers) = bases::<C>(10);
    let (_, scalars, expected) = sample::<C>(&multipliers, 5);
    // What one sum of 16-bit scalars is reduced in takes 200 to 300 kB.
    let device = &Recorder::with_buffers_of(device, 1 << 20);
    let tuning = Tuning::default().slices(64);
    for precompute in [Precompute::None, Precompute::Tables { budget: u64::MAX }] {
        let msm = Msm::<C>::with_config(
            device,
            &bases,
            MsmConfig::default().window(3).precompute(precompute).tuning(tuning),
        )?;
        let sums = msm.msm_batch(8, &scalars.repeat(8))?;
        expect(&format!("{precompute:?}"), sums == [expected; 8])?;
    }
    let wide = MsmConfig::default().window(16);
    let refused = Msm::<C>::with_config(device, &bases, wide)?.msm(&scalars);
    let limit = device.info().limits.buffer_bytes;
    let is_right = |error| matches!(error, Error::Device(DeviceError::TooLarge { expected: l, .. }) if l == limit);
    expect(&format!("the error of {refused:?}"), refused.is_err_and(is_right))
}

/// Sums over host slices whose scalars are of an order below a byte, on the device and where its threshold says.
fn tiny(device: &Device) -> Outcome {
    type C = curves::Tiny;
    let (bases, multipliers) = bases::<C>(300);
    let scalars: Vec<_> = (0..300u64).map(|i| curves::TinyScalar::from(i * i + i / 7)).collect();
    let sum = multipliers.iter().zip(&scalars).map(|(k, s)| *k * s).sum::<curves::TinyScalar>();
    let expected = Affine::<C>::generator() * sum;
    expect("a threshold is measured", Msm::<C>::cpu_threshold(device)? <= 1 << 14)?;
    for points in [None, Some(0), Some(usize::MAX)] {
        points.into_iter().for_each(|points| Msm::<C>::set_cpu_threshold(device, points));
        expect_equal(&format!("the sum, threshold {points:?}"), &msm_host(device, &bases, &scalars)?, &expected)?;
    }
    Ok(())
}

/// Plans that keep the bases of a buffer, with tables and without, of secret ones, and what they refuse.
fn with_bases(device: &Device) -> Outcome {
    type C = curves::Short;
    let (host, multipliers) = bases::<C>(40);
    let expected: Projective<C> = host.iter().zip(&multipliers).map(|(base, k)| *base * k).sum();
    let upload = |secrecy| device.upload_with::<AffinePoint<C>>(&host, secrecy);
    let tables = MsmConfig::default().precompute(Precompute::Tables { budget: 1 << 20 });
    for (config, secrecy) in [
        (MsmConfig::default(), Secrecy::Public),
        (MsmConfig::default().check(true), Secrecy::Secret),
        (tables, Secrecy::Public),
    ] {
        let queue = device.queue()?;
        let msm = Msm::with_bases(&queue, upload(secrecy)?, config)?;
        expect_equal("the bases", &msm.len(), &host.len())?;
        expect_equal(&format!("the sum with {config:?}"), &msm.msm(&multipliers)?, &expected)?;
    }
    let before = device.stats().bytes_live;
    let msm = Msm::with_bases(device, upload(Secrecy::Public)?, MsmConfig::default())?;
    let held = device.stats().bytes_live - before;
    expect(&format!("{held} bytes are held: one copy"), held < 2 * msm.bytes())?;
    let none = Msm::<C>::with_bases(device, device.alloc(0)?, MsmConfig::default())?;
    expect_equal("the sum of nothing", &none.msm(&[])?, &Projective::zero())?;
    let at = host.iter().position(AffineRepr::is_zero).ok_or("no base is infinite")?;
    let refused = Msm::with_bases(device, upload(Secrecy::Public)?, MsmConfig::default().infinity(Infinity::Refused));
    expect_equal("a base at infinity", &refused.err(), &Some(Error::AtInfinity { index: at }))?;
    if let Some(other) = other_device(device) {
        let refused = Msm::with_bases(device, other.upload::<AffinePoint<C>>(&host)?, MsmConfig::default()).err();
        expect("bases elsewhere", matches!(refused, Some(Error::Device(DeviceError::WrongDevice { .. }))))?;
    }
    Ok(())
}

fn misuse(device: &Device) -> Outcome {
    type C = ark_bn254::g1::Config;
    let (bases, multipliers) = bases::<C>(6);
    let msm = Msm::<C>::new(device, &bases[..5])?;
    let is = |result: Result<(), Error>, right: fn(&Error) -> bool| {
        expect(&format!("the error of {result:?}"), result.as_ref().is_err_and(right))
    };
    is(msm.msm(&multipliers).map(drop), |e| {
        matches!(e, Error::Device(DeviceError::Length { expected: 5, actual: 6, .. }))
    })?;
    is(msm_host::<C>(device, &bases, &multipliers[1..]).map(drop), |e| {
        matches!(e, Error::Device(DeviceError::Length { expected: 6, actual: 5, .. }))
    })?;
    if let Some(other) = other_device(device) {
        let elsewhere = other.upload::<Mont<ark_bn254::Fr>>(&multipliers[..5])?;
        is(msm.msm(&elsewhere).map(drop), |e| matches!(e, Error::Device(DeviceError::WrongDevice { .. })))?;
    }
    let msm = Msm::<C>::with_config(device, &bases, MsmConfig::default().memory(1))?;
    is(msm.msm(&multipliers).map(drop), |e| {
        matches!(e, Error::Device(DeviceError::InsufficientMemory { available: 1, .. }))
    })
}
