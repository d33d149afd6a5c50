//! Transforms on a queue, and those that have queues of their own.

use ark_bls12_381::Fr;
use ark_ff::FftField;
use evariste::{
    backend::{Element, Secrecy, Transfer},
    field::Mont,
    ntt::{Error, LowDegreeExtension, Ntt, NttConfig, Order, Pipeline, Split, Twiddles, forward_out_of_core},
};

use crate::{
    expect::expect,
    harness::{Named, Outcome},
    misplaced::Plan,
    order_checker::{OrderChecker, expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("transforms", transforms), ("pipelines and pinned memory", pipelines)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[
    ("transforms", |m| {
        let mut data = m.device.upload::<Mont<Fr>>(&[Fr::from(3); 16])?;
        let ntt = Ntt::<Fr>::new(&m.device, 4)?;
        let source = m.device.upload::<Mont<Fr>>(&[Fr::from(3); 16])?;
        m.refuses(|| ntt.on(&m.queue).forward(&mut data))?;
        m.refuses(|| ntt.on(&m.queue).transform().forward_into(&source, &mut data))?;
        m.refuses(|| ntt.on(&m.queue).transform().inverse_into(&source, &mut data))?;
        let halves = Ntt::<Fr>::with_config(&m.device, 4, NttConfig::default().split(Split::Halves))?.on(&m.queue);
        m.refuses(|| halves.transform().halve(&mut data))?;
        m.refuses(|| ntt.on(&m.queue).product(data.view(..8)?, data.view(..8)?))?;
        m.refuses_slice(&[Fr::from(3); 16], |data| ntt.on(&m.queue).forward_host(data))?;
        m.refuses(|| ntt.on(&m.queue).inverse_host(&mut []))?;
        let pinned = || m.device.host_buffer(16 * 32, Transfer::Both, Secrecy::Public);
        m.refuses(|| ntt.on(&m.queue).transform().forward_pinned(pinned()?, Secrecy::Public))?;
        m.refuses(|| ntt.on(&m.queue).transform().inverse_pinned(pinned()?, Secrecy::Public))?;
        m.refuses(|| ntt.coset(Fr::GENERATOR).on(&m.queue).inverse(&mut data))
    }),
    ("extensions", |m| {
        let data = m.device.upload::<Mont<Fr>>(&[Fr::from(3); 16])?;
        let extension = LowDegreeExtension::<Fr>::new(&m.device, 4, 1)?.on(&m.queue);
        let mut out = m.device.zeros(32)?;
        m.refuses(|| extension.extend(&data, Fr::GENERATOR, Order::Natural))?;
        m.refuses(|| extension.extend_into(&data, Fr::GENERATOR, Order::BitReversed, &mut out))?;
        m.refuses(|| extension.extend_columns_into(&data, 0..1, Fr::GENERATOR, &mut out))?;
        let pinned = || m.device.host_buffer(16 * 32, Transfer::Upload, Secrecy::Public);
        m.refuses(|| extension.extend_pinned(pinned()?, Fr::GENERATOR, &mut out, |_, _| Ok::<_, Error>(())))?;
        m.refuses(|| extension.evaluate(&data, Fr::GENERATOR, Order::BitReversed))?;
        m.refuses(|| extension.evaluate_into(&data, Fr::GENERATOR, Order::Natural, &mut out))
    }),
];

fn transforms() -> Outcome {
    let x: Vec<Fr> = (0..1 << 9).map(Fr::from).collect();
    let cases = [false, true].into_iter().flat_map(|inverse| [false, true].map(|coset| (inverse, coset)));
    for (twiddles, split) in Twiddles::ALL.into_iter().flat_map(|twiddles| Split::ALL.map(|split| (twiddles, split))) {
        for (inverse, coset) in cases.clone() {
            on_plans(|ordered, made_on, queue| {
                let ntt = Ntt::<Fr>::with_config(made_on, 9, NttConfig::default().twiddles(twiddles).split(split))?;
                let mut data = queue.device().alloc::<Mont<Fr>>(x.len())?;
                queue.write(&mut data, &x)?;
                let generator = if coset { Fr::GENERATOR } else { Fr::from(1) };
                let transform = ntt.coset(generator).output(Order::BitReversed).on(queue);
                if inverse {
                    transform.inverse(&mut data)?
                } else {
                    transform.forward(&mut data)?
                };
                queue.read(&data)?;
                expect_ordered(ordered, &format!("{twiddles:?}, {split:?}, inverse: {inverse}, coset: {coset}"))
            })?;
        }
    }
    Ok(())
}

fn pipelines() -> Outcome {
    let bytes = Mont::<Fr>::BYTES << 9;
    for inverse in [false, true] {
        let ordered = OrderChecker::new();
        let device = ordered.device();
        let ntt = Ntt::<Fr>::new(&device, 9)?;
        let mut pipeline = Pipeline::new(ntt.coset(Fr::GENERATOR), 1, Secrecy::Public)?;
        for _ in 0..5 {
            let mut host = device.host_buffer(bytes, Transfer::Both, Secrecy::Public)?;
            host.fill(0);
            if inverse {
                pipeline.inverse_pinned(host)?
            } else {
                pipeline.forward_pinned(host)?
            };
        }
        while pipeline.next()?.is_some() {}
        expect_ordered(&ordered, "a pipeline")?;

        // In blocks of columns, whose rows are of 64 KiB at least.
        let ordered = OrderChecker::new();
        let device = ordered.device();
        let ntt = Ntt::<Fr>::with_config(&device, 17, NttConfig::default().split(Split::ThreeWay))?;
        let mut host = device.host_buffer(Mont::<Fr>::BYTES << 17, Transfer::Both, Secrecy::Public)?;
        host.fill(0);
        let queue = device.queue()?;
        let transform = ntt.transform().on(&queue);
        let run = |host| match inverse {
            true => transform.inverse_pinned(host, Secrecy::Public),
            false => transform.forward_pinned(host, Secrecy::Public),
        };
        let host = run(host)?;
        expect_ordered(&ordered, "a transform of pinned memory")?;
        // Tables were made by now.
        let before = device.stats().launches;
        run(host)?;
        let (launches, passes) = (device.stats().launches - before, ntt.passes_per_transform() as u64);
        expect(&format!("{launches} launches of {passes} passes"), launches > passes)?;
    }
    on_plans(|ordered, made_on, queue| {
        let device = queue.device();
        let (mut a, mut b) = (device.alloc::<Mont<Fr>>(300)?, device.alloc::<Mont<Fr>>(128)?);
        queue.clear(&mut a)?;
        queue.clear(&mut b)?;
        Ntt::<Fr>::new(made_on, 9)?.on(queue).product(&a, b.view(3..)?)?;
        let extension = LowDegreeExtension::<Fr>::new(made_on, 6, 1)?.on(queue);
        extension.extend(&b, Fr::GENERATOR, Order::Natural)?;
        expect_ordered(ordered, "products and extensions")
    })?;

    let ordered = OrderChecker::new();
    let mut x: Vec<Fr> = (0..1 << 9).map(Fr::from).collect();
    forward_out_of_core(&ordered.device(), &mut x, 1 << 16)?;
    expect_ordered(&ordered, "a transform out of core")
}
