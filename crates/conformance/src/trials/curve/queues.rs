//! Operations on points on a queue.

use ark_bls12_381::g1::Config;
use evariste::curve::{AffinePoint, Points};

use crate::{
    Named, Outcome,
    misplaced::Plan,
    order_checker::{expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("points", points)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[("points", |m| {
    let (affine, keys) = (m.device.zeros::<AffinePoint<Config>>(5)?, m.device.upload::<u32>(&[3; 5])?);
    let mut sums = m.device.zeros(5)?;
    let points = Points::<Config>::new(&m.device).on(&m.queue);
    m.refuses(|| points.mul(&affine, &keys, &mut sums))
})];

fn points() -> Outcome {
    on_plans(|ordered, made_on, queue| {
        let device = queue.device();
        let mut keys = device.alloc::<u32>(20)?;
        queue.write(&mut keys, &[9; 20])?;
        let points = Points::<Config>::new(made_on).on(queue);
        let (mut affine, mut sums) = (device.alloc::<AffinePoint<Config>>(20)?, device.alloc(20)?);
        queue.clear(&mut affine)?;
        points.mul(&affine, &keys, &mut sums)?;
        points.normalise_xyzz(&sums, &mut affine)?;
        expect_ordered(ordered, "points")
    })
}
