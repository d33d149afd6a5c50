//! Proofs on a queue.

use ark_bls12_381::Fr;
use evariste::{
    backend::{Result, Secrecy},
    field::{Expression, Mont},
    sumcheck::{
        Blake3Transcript, Challenge, Mle, Order, Statement, Strategy, Sumcheck, SumcheckConfig, Weight, reference,
    },
};

use crate::{
    expect::expect_same,
    harness::{Named, Outcome},
    misplaced::Plan,
    order_checker::{expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("sumchecks", sumchecks)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[
    ("sumchecks", |m| {
        let square = Expression::column(0).pow(2);
        let statement = Statement::<Fr>::new(4, &square)?;
        let host = [Fr::from(3); 16];
        let table = m.device.upload::<Mont<Fr>>(&host)?;
        let plan = Sumcheck::<Fr>::new(&m.device, &square)?.on(&m.queue);
        let (claim, transcript) = (Fr::from(144), || Blake3Transcript::new(b"misplaced"));
        m.refuses(|| plan.sum(&statement, &[&table]))?;
        m.refuses(|| plan.prove(&statement, &[&table], claim, &mut transcript()))?;
        m.refuses(|| plan.prove_rounds(&statement, 2, &[&table], claim, &mut transcript()))?;
        let gather = |own: &[Fr]| Ok(vec![own.to_vec()]);
        m.refuses(|| plan.prove_part(&statement, [0, 1], &[&table], claim, &mut transcript(), gather))?;
        m.refuses(|| plan.prove_host(&statement, &[&host], 1 << 14, Secrecy::Public, claim, &mut transcript()))?;
        m.refuses(|| plan.prove_consuming(&statement, vec![table], claim, &mut transcript()))
    }),
    ("tables", |m| {
        let host = [Fr::from(3); 16];
        let table = m.device.upload::<Mont<Fr>>(&host)?;
        let tables = Mle::<Fr>::new(&m.device).on(&m.queue);
        m.refuses(|| tables.bind(&table, host[0], Order::MsbFirst))?;
        m.refuses(|| tables.eq(&host[..4]))
    }),
];

/// Proofs with challenges drawn on the device and on the host, about tables that stay, that do not, and that share a
/// buffer.
fn sumchecks() -> Outcome {
    const VARIABLES: usize = 4;
    const LEN: usize = 1 << VARIABLES;
    let few = Expression::column(0) * Expression::column(1);
    let many: Expression = (0..40).map(|i| Expression::column(i) * Expression::column(i + 1)).sum();
    let cases = [
        (&few, Strategy::ZeroCheck, Challenge::Device),
        (&few, Strategy::ZeroCheck, Challenge::Host),
        (&few, Strategy::Textbook, Challenge::Host),
        (&many, Strategy::SplitEq, Challenge::Host),
    ];
    for (expression, strategy, challenge) in cases {
        on_plans(|ordered, made_on, queue| {
            let config = SumcheckConfig::default().strategy(strategy).challenge(challenge).check(true);
            let plan = Sumcheck::<Fr>::with_config(made_on, expression, config)?.on(queue);
            let host: Vec<Fr> = (0..LEN as u64).map(Fr::from).collect();
            // The second half of a buffer.
            let mut buffer = queue.device().alloc::<Mont<Fr>>(2 * LEN)?;
            queue.write(buffer.view_mut(LEN..)?, &host)?;
            let table = buffer.view(LEN..)?;
            let operations = Mle::<Fr>::new(made_on).on(queue);
            operations.eq(&host[..VARIABLES])?;
            operations.bind(table, host[3], Order::MsbFirst)?;
            let (tables, given) = (vec![host.clone(); expression.columns()], vec![table; expression.columns()]);
            for order in [Order::MsbFirst, Order::LsbFirst] {
                let point = host[5..][..VARIABLES].to_vec();
                let statement = Statement::<Fr>::new(VARIABLES, expression)?.order(order).weight(Weight::Eq(point));
                let claim = plan.sum(&statement, &given)?;
                let transcript = || Blake3Transcript::new(b"ordered");
                let (expected, _) = reference::prove(&statement, VARIABLES, &tables, claim, &mut transcript());
                let proved = plan.prove(&statement, &given, claim, &mut transcript())?;
                expect_same("a proof", &proved.proof.to_bytes(), &expected.to_bytes())?;
                plan.prove_rounds(&statement, 2, &given, claim, &mut transcript())?;
                let owned = given.iter().map(|table| queue.duplicate(table)).collect::<Result<_>>()?;
                plan.prove_consuming(&statement, owned, claim, &mut transcript())?;
                if expression.columns() == 2 {
                    let slices: Vec<&[Fr]> = tables.iter().map(Vec::as_slice).collect();
                    plan.prove_host(&statement, &slices, 1 << 14, Secrecy::Public, claim, &mut transcript())?;
                }
            }
            expect_ordered(ordered, &format!("{strategy:?}, {challenge:?}"))
        })?;
    }
    Ok(())
}
