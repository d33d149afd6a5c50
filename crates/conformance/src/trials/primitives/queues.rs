//! Scans, histograms, sorts and sums on a queue.

use ark_bls12_381::Fr;
use evariste::{
    field::{FieldSum, Mont},
    primitives::{GatherScatter, Histogram, RadixSort, RadixSortConfig, Scan, SegmentedSum, SortMethod},
};

use crate::{
    harness::{Named, Outcome},
    misplaced::Plan,
    order_checker::{expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("primitives", primitives)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[
    ("scan", |m| {
        let (a, mut out) = (m.device.upload::<u32>(&[1; 5])?, m.device.zeros(5)?);
        let scan = Scan::new(&m.device)?.on(&m.queue);
        m.refuses(|| scan.exclusive(&a, &mut out))
    }),
    ("histogram", |m| {
        let (a, mut out) = (m.device.upload::<u32>(&[1; 5])?, m.device.zeros(16)?);
        let histogram = Histogram::new(&m.device)?.on(&m.queue);
        m.refuses(|| histogram.count(&a, 0..4, &mut out))
    }),
    ("sort", |m| {
        let (mut keys, mut values) = (m.device.upload::<u32>(&[1; 5])?, m.device.zeros(5)?);
        for method in [SortMethod::Sweep, SortMethod::Scatter] {
            let sort = RadixSort::with_config(&m.device, RadixSortConfig::default().method(method))?.on(&m.queue);
            m.refuses(|| sort.sort(&mut keys, &mut values, 0..4))?;
        }
        Ok(())
    }),
    ("segmented sum", |m| {
        let (keys, values) = (m.device.upload::<u32>(&[1; 5])?, m.device.upload::<Mont<Fr>>(&[Fr::from(3); 5])?);
        let mut out = m.device.zeros(4)?;
        let sum = SegmentedSum::<FieldSum<Fr>>::new(&m.device)?.on(&m.queue);
        m.refuses(|| sum.reduce(&keys, &values, &mut out))
    }),
    ("gather and scatter", |m| {
        let (a, mut out) = (m.device.upload::<u32>(&[1; 5])?, m.device.zeros(5)?);
        let gather_scatter = GatherScatter::<u32>::new(&m.device).on(&m.queue);
        m.refuses(|| gather_scatter.gather(&a, &a, &mut out))?;
        m.refuses(|| gather_scatter.scatter(&a, &a, &mut out))
    }),
];

fn primitives() -> Outcome {
    on_plans(|ordered, made_on, queue| {
        let device = queue.device();
        let len = 5000;
        let (mut a, mut out) = (device.alloc::<Mont<Fr>>(len)?, device.alloc::<Mont<Fr>>(len)?);
        queue.write(&mut a, &vec![Fr::from(3); len])?;
        let (mut keys, mut values) = (device.alloc::<u32>(len)?, device.alloc::<u32>(len)?);
        queue.write(&mut keys, &vec![9; len])?;
        Scan::new(made_on)?.on(queue).exclusive(&keys, &mut values)?;
        Histogram::new(made_on)?.on(queue).count(&keys, 0..4, values.view_mut(..16)?)?;
        Histogram::new(made_on)?.on(queue).count(keys.view(..0)?, 0..4, values.view_mut(..16)?)?;
        for method in [SortMethod::Sweep, SortMethod::Scatter] {
            RadixSort::with_config(made_on, RadixSortConfig::default().method(method))?.on(queue).sort(
                &mut keys,
                values.view_mut(..)?,
                0..4,
            )?;
        }
        SegmentedSum::<FieldSum<Fr>>::new(made_on)?.on(queue).reduce(&keys, &a, &mut out)?;
        expect_ordered(ordered, "primitives")
    })
}
