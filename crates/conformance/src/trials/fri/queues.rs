//! FRI on a queue.

use ark_ff::{FftField, Field};
use evariste::field::{Mont, small::BabyBear};
use evariste::fri::{ConstraintQuotients, Error, Fold, Fri, Opened, Quotients};
use evariste::hash::{Merkle, Poseidon2, Rows};

use super::{CONFIG, F, chain, merkle, parameters};
use crate::{
    harness::{Named, Outcome},
    misplaced::Plan,
    order_checker::{expect_ordered, on_plans},
    samples::samples,
};

pub(super) const ORDERED: &[Named] = &[("fri", ordered)];

fn ordered() -> Outcome {
    on_plans(|ordered, made_on, queue| {
        let device = queue.device();
        let mut data = device.alloc::<Mont<F>>(64)?;
        queue.write(&mut data, &[F::from(3u8); 64])?;
        let merkle = Merkle::new(Poseidon2::new(made_on, parameters()?)?);
        let fri = Fri::<F>::new(merkle, 6, CONFIG)?.on(queue);
        let committed = fri.commit(&[data.as_view()], BabyBear::ONE, |_| Ok::<_, Error>(F::from(5u8)))?;
        let _ = fri.open(&committed, &data, &[5, 9])?;
        let points = [(samples::<F>(70, 7)[69], samples::<F>(4, 8))];
        let opened = [Opened { matrix: Rows::new(data.as_view().flattened(), 4), points: &points }];
        let sums = Quotients::<F>::new(made_on, 6)?.on(queue).quotients(&opened, F::from(3u8), BabyBear::ONE)?;
        queue.read(&sums[0])?;
        let constraints = ConstraintQuotients::<F>::new(made_on, 6)?.on(queue);
        let (program, rows) = (constraints.program(&chain(4, 3))?, Rows::new(data.as_view().flattened(), 4));
        let (public, shift) = ([BabyBear::ONE], BabyBear::GENERATOR);
        let chunks = constraints.quotients(&program, &rows, [64, 0], &public, F::from(3u8), shift)?;
        queue.read(&chunks[0])?;
        expect_ordered(ordered, "FRI")
    })
}

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[
    ("fold", |m| {
        let plan = Fold::<F>::new(&m.device, 4)?.on(&m.queue);
        let (data, mut out) = (m.device.upload::<Mont<F>>(&[F::from(2u8); 16])?, m.device.zeros::<Mont<F>>(8)?);
        m.refuses(|| plan.fold(&data, F::ONE, BabyBear::ONE, &mut out))?;
        let added = (data.view(..8)?, F::ONE);
        m.refuses(|| plan.fold_and_add(&data, F::ONE, BabyBear::ONE, added, &mut out))
    }),
    ("quotients", |m| {
        let plan = Quotients::<F>::new(&m.device, 4)?.on(&m.queue);
        let data = m.device.upload::<Mont<BabyBear>>(&[BabyBear::ONE; 16])?;
        let points = [(samples::<F>(70, 7)[69], vec![F::ONE])];
        let opened = [Opened { matrix: Rows::new(&data, 1), points: &points }];
        m.refuses(|| plan.quotients(&opened, F::ONE, BabyBear::ONE))
    }),
    ("constraints", |m| {
        let made = ConstraintQuotients::<F>::new(&m.device, 4)?;
        let (plan, program) = (made.on(&m.queue), made.program(&chain(1, 1))?);
        let data = m.device.upload::<Mont<BabyBear>>(&[BabyBear::ONE; 16])?;
        let (rows, public) = (Rows::new(&data, 1), [BabyBear::ONE]);
        m.refuses(|| plan.quotients(&program, &rows, [16, 0], &public, F::ONE, BabyBear::GENERATOR))
    }),
    ("fri", |m| {
        let plan = Fri::<F>::new(merkle(&m.device)?, 4, CONFIG)?;
        let data = m.device.upload::<Mont<F>>(&[F::from(2u8); 16])?;
        let challenge = |_: &[BabyBear]| Ok::<_, Error>(F::ONE);
        let committed = plan.commit(&[data.as_view()], BabyBear::ONE, challenge)?;
        let misplaced = plan.on(&m.queue);
        m.refuses(|| misplaced.commit(&[data.as_view()], BabyBear::ONE, challenge))?;
        m.refuses(|| misplaced.open(&committed, &data, &[1]))
    }),
];
