//! Operations on points on a queue.

use ark_bls12_381::{G1Affine, g1::Config};
use ark_ec::AffineRepr;
use evariste::curve::{AffinePoint, FixedBase, Jacobian, Points, Xyzz};

use crate::{
    harness::{Named, Outcome},
    misplaced::Plan,
    order_checker::{expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("points", points), ("multiples of one point", multiples)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[
    ("multiples of one point", |m| {
        let (scalars, mut out) = (m.device.zeros(5)?, m.device.zeros(5)?);
        let fixed = FixedBase::<Config>::new(&m.device, G1Affine::generator())?.on(&m.queue);
        m.refuses(|| fixed.mul(&scalars, &mut out))
    }),
    ("points", |m| {
        let (affine, keys) = (m.device.zeros::<AffinePoint<Config>>(5)?, m.device.upload::<u32>(&[3; 5])?);
        let (a, b) = (m.device.zeros::<Xyzz<Config>>(5)?, m.device.zeros::<Jacobian<Config>>(5)?);
        let (mut out, mut xyzz, mut jacobian) = (m.device.zeros(5)?, m.device.zeros(5)?, m.device.zeros(5)?);
        let points = Points::<Config>::new(&m.device).on(&m.queue);
        m.refuses(|| points.mul(&affine, &keys, &mut xyzz))?;
        m.refuses(|| points.affine_to_xyzz(&affine, &mut xyzz))?;
        m.refuses(|| points.affine_to_jacobian(&affine, &mut jacobian))?;
        m.refuses(|| points.jacobian_to_xyzz(&b, &mut xyzz))?;
        m.refuses(|| points.xyzz_to_jacobian(&a, &mut jacobian))?;
        m.refuses(|| points.negate_affine(&affine, &mut out))?;
        m.refuses(|| points.negate_xyzz(&a, &mut xyzz))?;
        m.refuses(|| points.negate_jacobian(&b, &mut jacobian))?;
        m.refuses(|| points.double_xyzz(&a, &mut xyzz))?;
        m.refuses(|| points.double_jacobian(&b, &mut jacobian))?;
        m.refuses(|| points.add_xyzz(&a, &a, &mut xyzz))?;
        m.refuses(|| points.add_xyzz_affine(&a, &affine, &mut xyzz))?;
        m.refuses(|| points.add_jacobian(&b, &b, &mut jacobian))?;
        m.refuses(|| points.add_jacobian_affine(&b, &affine, &mut jacobian))?;
        m.refuses(|| points.add_affine(&affine, &affine, &mut out))?;
        m.refuses(|| points.normalise_xyzz(&a, &mut out))?;
        m.refuses(|| points.normalise_jacobian(&b, &mut out))?;
        m.refuses(|| points.gather(&affine, &keys, &mut out))?;
        m.refuses(|| points.scatter(&affine, &keys, &mut out))
    }),
];

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

/// The table is uploaded when the plan is made, on a queue that did not see that.
fn multiples() -> Outcome {
    on_plans(|ordered, made_on, queue| {
        let device = queue.device();
        let mut scalars = device.alloc(20)?;
        queue.clear(&mut scalars)?;
        let mut out = device.alloc(20)?;
        FixedBase::<Config>::new(made_on, G1Affine::generator())?.on(queue).mul(&scalars, &mut out)?;
        expect_ordered(ordered, "multiples of one point")
    })
}
