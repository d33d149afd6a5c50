//! Roots modulo primes that are known at run time, on a queue.

use evariste::modsqrt::{BoxedUint, Jacobi, ModSqrt};

use crate::{
    harness::{Named, Outcome},
    misplaced::Plan,
    order_checker::{expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("roots modulo primes", roots)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[
    ("roots modulo primes", |m| {
        let values = m.device.upload::<u32>(&[1; 10])?;
        let (mut roots, mut mask) = (m.device.zeros(10)?, m.device.zeros(5)?);
        let plan = ModSqrt::new(&m.device, &BoxedUint::from(59u64.wrapping_neg()))?.on(&m.queue);
        let indices = m.device.zeros(5)?;
        m.refuses(|| plan.sqrt(&values, &mut roots, &mut mask))?;
        m.refuses(|| plan.sqrt_indexed(&indices, &values, &mut roots, &mut mask))?;
        m.refuses(|| plan.legendre(&values, &mut mask))?;
        m.refuses(|| plan.legendre_indexed(&indices, &values, &mut mask))?;
        m.refuses(|| plan.sqrt_host(&[BoxedUint::from(4u32)]))
    }),
    ("symbols", |m| {
        let (values, mut symbols) = (m.device.upload::<u32>(&[1; 10])?, m.device.zeros(5)?);
        let plan = Jacobi::new(&m.device, &BoxedUint::from(15u32))?.on(&m.queue);
        let indices = m.device.zeros(5)?;
        m.refuses(|| plan.jacobi(&values, &mut symbols))?;
        m.refuses(|| plan.jacobi_indexed(&indices, &values, &mut symbols))?;
        m.refuses(|| plan.jacobi_host(&[BoxedUint::from(4u32)]))
    }),
];

fn roots() -> Outcome {
    on_plans(|ordered, made_on, queue| {
        let device = queue.device();
        let mut mask = device.alloc::<u32>(5)?;
        let (mut values, mut found) = (device.alloc::<u32>(10)?, device.alloc::<u32>(10)?);
        queue.clear(&mut values)?;
        let plan = ModSqrt::new(made_on, &BoxedUint::from(59u64.wrapping_neg()))?.on(queue);
        plan.sqrt(&values, &mut found, &mut mask)?;
        expect_ordered(ordered, "roots modulo a prime that is known at run time")?;
        Jacobi::new(made_on, &BoxedUint::from(15u32))?.on(queue).jacobi(&values, &mut mask)?;
        expect_ordered(ordered, "symbols for a modulus that is known at run time")
    })
}
