//! Proofs about secret tables.

use ark_ff::{AdditiveGroup, Field};
use evariste::{
    backend::Buffer,
    field::{
        Expression, Mont,
        small::{BabyBear, BabyBear4},
    },
    sumcheck::{Blake3Transcript, Mle, Order, Statement, Sumcheck, Weight},
};
use libtest_mimic::Failed;

use super::gate;
use crate::{
    samples::samples,
    secrecy::{Operation, Probe},
};

/// Variables of a statement.
const VARIABLES: usize = 10;

pub(super) const OPERATIONS: &[Operation] = &[
    Operation::slow("proof", 3, |p| {
        let (statement, plan) = statement(p, Order::MsbFirst)?;
        let tables = [table(p, 1)?, table(p, 2)?, table(p, 3)?];
        let given = tables.each_ref();
        p.watch(|| plan.prove(&statement, &given, BabyBear4::ZERO, &mut Blake3Transcript::new(b"secrecy")))
    }),
    Operation::slow("proof_from_the_lowest", 3, |p| {
        let (statement, plan) = statement(p, Order::LsbFirst)?;
        let tables = [table(p, 1)?, table(p, 2)?, table(p, 3)?];
        let given = tables.each_ref();
        p.watch(|| plan.prove(&statement, &given, BabyBear4::ZERO, &mut Blake3Transcript::new(b"secrecy")))
    }),
    Operation::slow("proof_that_consumes", 3, |p| {
        let gate = gate();
        let statement = Statement::<BabyBear4>::new(VARIABLES, &gate)?;
        let plan = Sumcheck::<BabyBear4>::new(&p.device, &gate)?;
        let table = |seed| p.operand::<Mont<BabyBear4>>(&samples(1 << VARIABLES, 1000 * u64::from(p.run()) + seed));
        let tables = vec![table(1)?, table(2)?, table(3)?];
        let others = tables.iter().map(Buffer::duplicate).collect::<Result<Vec<_>, _>>()?;
        let mut given = vec![tables, others];
        p.watch(|| {
            let tables = given.pop().unwrap_or_default();
            plan.prove_consuming(&statement, tables, BabyBear4::ZERO, &mut Blake3Transcript::new(b"secrecy"))
        })
    }),
    Operation::slow("proof_of_few_rounds", 1, |p| {
        let square = Expression::column(0).pow(2);
        let statement = Statement::<BabyBear4>::new(2, &square)?;
        let plan = Sumcheck::<BabyBear4, BabyBear>::new(&p.device, &square)?;
        let table = p.operand::<Mont<BabyBear>>(&samples::<BabyBear>(4, 1000 * u64::from(p.run()) + 1))?;
        p.watch(|| plan.prove(&statement, &[&table], BabyBear4::ZERO, &mut Blake3Transcript::new(b"secrecy")))
    }),
    Operation::slow("fold", 1, |p| {
        let (tables, table) = (Mle::<BabyBear4, BabyBear>::new(&p.device), table(p, 1)?);
        p.watch(|| tables.bind(&table, BabyBear4::ONE.double(), Order::MsbFirst))
    }),
];

fn statement(p: &Probe, order: Order) -> Result<(Statement<BabyBear4>, Sumcheck<BabyBear4, BabyBear>), Failed> {
    let statement = Statement::new(VARIABLES, &gate())?.order(order).weight(Weight::ZeroCheck);
    Ok((statement, Sumcheck::new(&p.device, &gate())?))
}

/// A table of a statement.
fn table(p: &Probe, seed: u64) -> Result<Buffer<Mont<BabyBear>>, Failed> {
    p.operand(&samples::<BabyBear>(1 << VARIABLES, 1000 * u64::from(p.run()) + seed))
}
