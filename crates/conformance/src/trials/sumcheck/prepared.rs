//! Proofs that compile nothing once they are prepared.

use evariste::{
    backend::Device,
    field::{Expression, small::BabyBear},
    sumcheck::{Blake3Transcript, Order, Statement, Sumcheck, Weight},
};

use crate::{harness::Outcome, prepared::quietly, samples::samples};

pub(super) fn sumchecks(device: &Device) -> Outcome {
    const NUM_VARS: usize = 9;
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    let expression = a * b - c;
    let sumcheck = Sumcheck::<BabyBear>::new(device, &expression)?;
    let [a, b] = [1, 2].map(|seed| samples::<BabyBear>(1 << NUM_VARS, seed));
    let c: Vec<BabyBear> = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
    let upload = || [&a, &b, &c].map(|table| device.upload(table)).into_iter().collect::<Result<Vec<_>, _>>();
    for order in [Order::MsbFirst, Order::LsbFirst] {
        for weight in [Weight::None, Weight::ZeroCheck] {
            let statement =
                Statement::new(NUM_VARS, &expression)?.weight(weight.clone()).order(order).allow_small_challenges();
            sumcheck.prepare(&statement)?;
            let tables = upload()?;
            quietly(device, &format!("a proof with {weight:?} from {order:?}"), || {
                let views: Vec<_> = tables.iter().map(|table| table.as_view()).collect();
                let claim = BabyBear::from(0u8);
                sumcheck.prove(&statement, &views, claim, &mut Blake3Transcript::new(b"prepared"))?;
                sumcheck.prove_consuming(&statement, upload()?, claim, &mut Blake3Transcript::new(b"prepared"))?;
                Ok(())
            })?;
        }
    }
    Ok(())
}
