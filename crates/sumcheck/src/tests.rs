//! Every strategy, order and place of tables at small sizes.

use std::collections::HashSet;

use ark_bls12_381::Fr;
use ark_ff::{AdditiveGroup, Field, Fp64, MontBackend, MontConfig};
use evariste_backend::{Buffer, Device, Error as DeviceError, Secrecy};
use evariste_field::{
    DeviceField, Expression, Mont,
    small::{BabyBear, BabyBear4, Goldilocks, Goldilocks2, KoalaBear, KoalaBear4},
};

use super::*;

mod kernels;
mod statements;

fn random<F: Field>(len: usize, seed: u64) -> Vec<F> {
    use ark_std::rand::SeedableRng;
    let mut rng = ark_std::rand::rngs::StdRng::seed_from_u64(seed);
    (0..len).map(|_| F::rand(&mut rng)).collect()
}

/// a · b − c.
fn gate() -> Expression {
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    a * b - c
}

const STRATEGIES: [Strategy; 4] = [Strategy::Textbook, Strategy::FromClaim, Strategy::SplitEq, Strategy::ZeroCheck];

fn upload<F: DeviceField>(device: &Device, tables: &[Vec<F>]) -> Vec<Buffer<Mont<F>>> {
    tables.iter().map(|table| device.upload::<Mont<F>>(table).unwrap()).collect()
}

/// What a claim is refused by that is one too large.
fn of_false<E: DeviceField>(weight: &Weight<E>) -> Error {
    if *weight == Weight::ZeroCheck { Error::ZeroCheckClaim } else { Error::FalseClaim }
}

/// All strategies give the reference's proof, and it is accepted.
fn check<E: DeviceField, T: DeviceField>(device: &Device, statement: &Statement<E>, tables: &[Vec<T>]) {
    let lifted: Vec<Vec<E>> = tables
        .iter()
        .map(|table| {
            let lift = |x: &T| {
                let mut limbs = vec![0; E::LIMBS];
                x.store(&mut limbs);
                E::load(&limbs)
            };
            table.iter().map(lift).collect()
        })
        .collect();
    let n = statement.num_vars();
    let claim = match statement.weight_of() {
        Weight::ZeroCheck => E::ZERO,
        Weight::None => reference::sum(statement, &lifted, None),
        Weight::Eq(point) => reference::sum(statement, &lifted, Some(point)),
    };
    let (expected, challenges) = reference::prove(statement, n, &lifted, claim, &mut Blake3Transcript::new(b"test"));
    let sub = statement.verify(claim, &expected, &mut Blake3Transcript::new(b"test")).unwrap();
    assert_eq!((0..n).map(|i| sub.point[statement.binding_order().variable(n, i)]).collect::<Vec<_>>(), challenges);
    for (table, value) in lifted.iter().zip(&sub.tables) {
        assert_eq!(reference::evaluate(table, &sub.point), *value);
    }
    let bytes = expected.to_bytes();
    assert_eq!(Proof::from_bytes(statement, n, &bytes).unwrap(), expected);

    let buffers = upload(device, tables);
    let borrowed: Vec<_> = buffers.iter().collect();
    for (strategy, challenge) in STRATEGIES
        .map(|strategy| (strategy, Challenge::Device))
        .into_iter()
        .chain([(Strategy::ZeroCheck, Challenge::Host)])
    {
        let config = SumcheckConfig::default().strategy(strategy).challenge(challenge).check(true);
        let plan = Sumcheck::<E, T>::with_config(device, statement.expression(), config).unwrap();
        let context = format!("{n} {strategy:?} {challenge:?} {statement:?} on {device}");
        let proved = plan.prove(statement, &borrowed, claim, &mut Blake3Transcript::new(b"test")).unwrap();
        assert_eq!(proved.proof.to_bytes(), bytes, "{context}");
        assert_eq!((proved.point, proved.value), (sub.point.clone(), sub.value), "{context}");
        let owned = upload(device, tables);
        let proved = plan.prove_consuming(statement, owned, claim, &mut Blake3Transcript::new(b"test")).unwrap();
        assert_eq!(proved.proof.to_bytes(), bytes, "consumed: {context}");
        let wrong = plan.prove(statement, &borrowed, claim + E::ONE, &mut Blake3Transcript::new(b"test"));
        assert_eq!(wrong.err(), Some(of_false(statement.weight_of())), "{context}");
    }
    for (table, buffer) in tables.iter().zip(&buffers) {
        assert_eq!(&buffer.to_vec().unwrap(), table);
    }
}

/// Tables of a · b − c that is 0 everywhere.
fn satisfied<F: Field>(n: usize) -> Vec<Vec<F>> {
    let (a, b) = (random::<F>(1 << n, 1), random::<F>(1 << n, 2));
    let c = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
    vec![a, b, c]
}

fn check_order(device: &Device, n: usize, order: Order) {
    let statement = Statement::<Fr>::new(n, &gate()).unwrap().order(order);
    check::<Fr, Fr>(device, &statement.clone().weight(Weight::ZeroCheck), &satisfied::<Fr>(n));
    let tables: Vec<Vec<Fr>> = (0..3).map(|i| random(1 << n, i)).collect();
    check::<Fr, Fr>(device, &statement, &tables);
    let mut point = random(n, 9);
    point[0] = Fr::from(0);
    point[n / 2] = Fr::from(1);
    check::<Fr, Fr>(device, &statement.weight(Weight::Eq(point)), &tables);
}

/// Tables over a small field, challenges of an extension of it.
fn check_small<E: DeviceField, T: DeviceField>(device: &Device, order: Order) {
    let statement = Statement::<E>::new(4, &gate()).unwrap().order(order);
    check::<E, T>(device, &statement.clone().weight(Weight::ZeroCheck), &satisfied::<T>(4));
    let tables: Vec<Vec<T>> = (0..3).map(|i| random(16, i)).collect();
    check::<E, T>(device, &statement, &tables);
}

/// Degree 1, as a zero-check too, and degree 5, constants and integers, and more tables than WebGPU binds.
fn check_expressions(device: &Device) {
    let x: Vec<Expression> = (0..9u32).map(Expression::column).collect();
    let tables: Vec<Vec<Fr>> = (0..9).map(|i| random(8, 20 + i)).collect();
    let line = Statement::<Fr>::new(3, &x[0]).unwrap().weight(Weight::Eq(random(3, 8)));
    check::<Fr, Fr>(device, &line, &tables[..1]);
    let equal = Statement::<Fr>::new(3, &(&x[0] - &x[1])).unwrap().weight(Weight::ZeroCheck);
    check::<Fr, Fr>(device, &equal, &[tables[0].clone(), tables[0].clone()]);
    let r = Expression::constant(0);
    let many = x[..5].iter().cloned().product::<Expression>() * &r - (&x[5] + 3) * &x[6] * 7 - x[7].pow(2) + &x[8] - 1;
    let statement = Statement::<Fr>::new(3, &many).unwrap().constants(&random(1, 7)).order(Order::LsbFirst);
    check::<Fr, Fr>(device, &statement.weight(Weight::Eq(random(3, 6))), &tables);
}

#[test]
fn proofs_are_those_of_the_reference_on_the_cpu() {
    let device = Device::cpu();
    for order in [Order::MsbFirst, Order::LsbFirst] {
        [1, 2, 5].into_iter().for_each(|n| check_order(&device, n, order));
        check_small::<BabyBear4, BabyBear>(&device, order);
        check_small::<Goldilocks2, Goldilocks>(&device, order);
        check_small::<KoalaBear4, KoalaBear>(&device, order);
        check_small::<KoalaBear4, KoalaBear4>(&device, order);
    }
    // Several chunks, in rows of eq, and rounds between the first two and those that are done together.
    check_order(&device, 12, Order::MsbFirst);
    check_order(&device, 12, Order::LsbFirst);
    check_expressions(&device);
}

#[test]
fn proofs_are_those_of_the_reference_through_wgpu() {
    if let Ok(device) = Device::wgpu(0) {
        // Over a short field: its compiler takes a minute for kernels over a long one, which trials have.
        check_small::<BabyBear4, BabyBear>(&device, Order::LsbFirst);
        streamed::<BabyBear4, BabyBear>(&device, &satisfied(4), &Weight::ZeroCheck);
        many_products(&device);
    }
}

/// Degree 6 with enough products that a text has the expression once for all points, as a zero-check. A trial has other
/// weights.
fn many_products(device: &Device) {
    const NUM_VARS: usize = 4;
    let product = |i: u32| (0..6).map(|j| Expression::column((i * j + i) % 3) + i64::from(i)).product::<Expression>();
    let many: Expression = (0..3).map(product).sum();
    let zero = &many * Expression::column(3) - &many * Expression::column(4);
    let mut tables: Vec<Vec<Goldilocks>> = (0..3).map(|i| random(1 << NUM_VARS, i)).collect();
    tables.extend([random(1 << NUM_VARS, 8), random(1 << NUM_VARS, 8)]);
    let lifted: Vec<Vec<Goldilocks2>> =
        tables.iter().map(|table| table.iter().map(|x| Goldilocks2::new([*x, Goldilocks::ZERO])).collect()).collect();
    let statement = Statement::<Goldilocks2>::new(NUM_VARS, &zero).unwrap().weight(Weight::ZeroCheck);
    let fresh = || Blake3Transcript::new(b"many");
    let (expected, _) = reference::prove(&statement, NUM_VARS, &lifted, Goldilocks2::ZERO, &mut fresh());
    let buffers = upload(device, &tables);
    let given: Vec<_> = buffers.iter().collect();
    let plan = Sumcheck::<Goldilocks2, Goldilocks>::new(device, &zero).unwrap();
    let proved = plan.prove(&statement, &given, Goldilocks2::ZERO, &mut fresh()).unwrap();
    assert_eq!(proved.proof, expected);
}

/// Up to degree 128, where a message takes all threads of a workgroup, challenges are drawn on the device.
#[test]
fn degrees_around_the_largest_for_which_devices_draw() {
    assert!(draw::can::<Fr>(128) && !draw::can::<Fr>(129));
    for degree in [127, 128, 129] {
        let expression = Expression::column(0).pow(degree - 1) * Expression::column(1) + 3;
        let statement = Statement::<Fr>::new(3, &expression).unwrap();
        let tables: Vec<Vec<Fr>> = (0..2).map(|i| random(8, i)).collect();
        check::<Fr, Fr>(&Device::cpu(), &statement, &tables);
    }
}

/// Memory for the sums of two rounds at once, which high degrees take more of than of anything else, is counted.
#[test]
fn pieces_of_tables_have_room_for_their_sums() {
    const DEGREE: u32 = 30;
    let (device, tables) = (Device::cpu(), [random::<Fr>(1 << 12, 1)]);
    let statement = Statement::<Fr>::new(12, &Expression::column(0).pow(DEGREE)).unwrap();
    let claim = reference::sum(&statement, &tables, None);
    let plan = Sumcheck::<Fr>::new(&device, statement.expression()).unwrap();
    let prove = |bytes: u64| {
        let transcript = &mut Blake3Transcript::new(b"test");
        plan.prove_host(&statement, &[&tables[0]], bytes, Secrecy::Public, claim, transcript)
    };
    let Error::Device(DeviceError::InsufficientMemory { needed: least, .. }) = prove(0).unwrap_err() else {
        panic!("of nothing")
    };
    let buffers = upload(&device, &tables);
    let expected =
        plan.prove(&statement, &buffers.iter().collect::<Vec<_>>(), claim, &mut Blake3Transcript::new(b"test"));
    assert_eq!(prove(least).unwrap().proof, expected.unwrap().proof);
    let whole = Sumcheck::<Fr>::required_bytes(&SumcheckConfig::default(), &statement);
    assert_eq!(whole, (1 << 12) * 64);
    assert!((4 * 31 * 31 * 32..whole).contains(&least), "{least} bytes");
    // The weight as a table, and its bound form.
    let weighted = statement.weight(Weight::Eq(random(12, 2)));
    let textbook = SumcheckConfig::default().strategy(Strategy::Textbook);
    assert_eq!(Sumcheck::<Fr>::required_bytes(&textbook, &weighted), 2 * whole);
}

#[derive(MontConfig)]
#[modulus = "17"]
#[generator = "3"]
struct C17;
type F17 = Fp64<MontBackend<C17, 1>>;

/// With the weight as a factor, a round's polynomial has one degree more, for which the field has no elements left.
#[test]
fn the_largest_degree_over_a_small_field() {
    let most = |degree: u32| Statement::<F17>::new(2, &Expression::column(0).pow(degree));
    assert_eq!(most(17).err(), Some(Error::Degree { expected: 16, actual: 17 }));
    let statement = most(16).unwrap().weight(Weight::Eq([3u8, 5].map(F17::from).to_vec())).allow_small_challenges();
    check::<F17, F17>(&Device::cpu(), &statement, &[random(4, 1)]);
}

#[test]
fn folding_eq_and_partial_rounds() {
    let device = Device::cpu();
    let tables: Vec<Vec<Fr>> = (0..3).map(|i| random(32, i)).collect();
    let (buffers, point, r) = (upload(&device, &tables), random::<Fr>(5, 9), random::<Fr>(1, 10)[0]);
    let operations = Mle::<Fr>::new(&device);
    assert_eq!(operations.eq(&point).unwrap().to_vec().unwrap(), reference::eq(&point));
    for order in [Order::MsbFirst, Order::LsbFirst] {
        let folded = operations.bind(&buffers[0], r, order).unwrap().to_vec().unwrap();
        assert_eq!(folded, reference::bind(&tables[0], r, order));
    }
    let borrowed: Vec<_> = buffers.iter().collect();
    for order in [Order::MsbFirst, Order::LsbFirst] {
        let statement = Statement::<Fr>::new(5, &gate()).unwrap().order(order).weight(Weight::Eq(point.clone()));
        let claim = reference::sum(&statement, &tables, Some(&point));
        let plan = Sumcheck::<Fr>::new(&device, &gate()).unwrap();
        assert_eq!(plan.sum(&statement, &borrowed).unwrap(), claim);
        let transcript = || Blake3Transcript::new(b"test");
        let (expected, challenges) = reference::prove(&statement, 2, &tables, claim, &mut transcript());
        let proved = plan.prove_rounds(&statement, 2, &borrowed, claim, &mut transcript()).unwrap();
        assert_eq!((&proved.proof, &proved.point), (&expected, &challenges));
        let sub = statement.verify_rounds(2, claim, &expected, &mut transcript()).unwrap();
        assert_eq!((sub.point, sub.value), (challenges.clone(), proved.value));
        for (table, bound) in tables.iter().zip(&proved.tables) {
            let expected = challenges.iter().fold(table.clone(), |table, r| reference::bind(&table, *r, order));
            assert_eq!(bound.to_vec().unwrap(), expected);
        }
    }
    // A transcript of one's own, which devices do not know.
    let statement = Statement::<Fr>::new(5, &gate()).unwrap();
    let claim = reference::sum(&statement, &tables, None);
    let own = || Closure::new(|bytes: &[u8]| Fr::from(bytes.iter().map(|byte| u64::from(*byte) + 1).sum::<u64>()));
    let plan = Sumcheck::<Fr>::new(&device, &gate()).unwrap();
    let proved = plan.prove(&statement, &borrowed, claim, &mut own()).unwrap();
    assert_eq!(statement.verify(claim, &proved.proof, &mut own()).unwrap().point, proved.point);
}

/// Proofs about tables in host memory, with as little device memory as can be, some more, and enough.
fn streamed<E: DeviceField, T: DeviceField>(device: &Device, tables: &[Vec<T>], weight: &Weight<E>) {
    let buffers = upload(device, tables);
    let borrowed: Vec<_> = buffers.iter().collect();
    let slices: Vec<&[T]> = tables.iter().map(Vec::as_slice).collect();
    let plan = Sumcheck::<E, T>::with_config(device, &gate(), SumcheckConfig::default().check(true)).unwrap();
    let transcript = || Blake3Transcript::new(b"streamed");
    for order in [Order::MsbFirst, Order::LsbFirst] {
        let statement = Statement::<E>::new(tables[0].len().ilog2() as usize, &gate()).unwrap();
        let statement = statement.weight(weight.clone()).order(order);
        let claim = if *weight == Weight::ZeroCheck { E::ZERO } else { plan.sum(&statement, &borrowed).unwrap() };
        let expected = plan.prove(&statement, &borrowed, claim, &mut transcript()).unwrap();
        let prove = |bytes: u64, claim: E| {
            plan.prove_host(&statement, &slices, bytes, Secrecy::Secret, claim, &mut transcript())
        };
        let Error::Device(DeviceError::InsufficientMemory { needed: least, available: 0 }) =
            prove(0, claim).unwrap_err()
        else {
            panic!("of nothing")
        };
        assert!(matches!(prove(least - 1, claim), Err(Error::Device(DeviceError::InsufficientMemory { .. }))));
        for bytes in [least, 2 * least, 4 * least, u64::MAX] {
            let proved = prove(bytes, claim).unwrap();
            assert_eq!(
                (proved.proof, proved.value),
                (expected.proof.clone(), expected.value),
                "{order:?}, {bytes} bytes"
            );
            assert_eq!((proved.point, proved.weight), (expected.point.clone(), expected.weight.clone()));
            assert_eq!(prove(bytes, claim + E::ONE).unwrap_err(), of_false(weight));
        }
        let short = plan.prove_host(&statement, &slices[1..], 0, Secrecy::Public, claim, &mut transcript());
        assert!(matches!(short, Err(Error::Device(DeviceError::Length { expected: 3, actual: 2, .. }))));
    }
}

#[test]
fn tables_in_host_memory_need_not_fit() {
    let device = Device::cpu();
    for num_vars in [4, 9] {
        let tables: Vec<Vec<Fr>> = (0..3).map(|i| random(1 << num_vars, i)).collect();
        streamed::<Fr, Fr>(&device, &tables, &Weight::None);
        streamed::<Fr, Fr>(&device, &tables, &Weight::Eq(random(num_vars, 9)));
        streamed::<Fr, Fr>(&device, &satisfied(num_vars), &Weight::ZeroCheck);
    }
    let tables: Vec<Vec<BabyBear>> = (0..3).map(|i| random(1 << 9, i)).collect();
    streamed::<BabyBear4, BabyBear>(&device, &tables, &Weight::Eq(random(9, 9)));
}

#[test]
fn batches_are_joined_by_a_random_combination() {
    let device = Device::cpu();
    let tables: Vec<Vec<Fr>> = (0..5).map(|i| random(8, i)).collect();
    let other = Expression::column(0).pow(3) + Expression::column(1) * Expression::constant(0);
    let first = Statement::<Fr>::new(3, &gate()).unwrap();
    let second = Statement::<Fr>::new(3, &other).unwrap().constants(&[Fr::from(9)]);
    let claims = [reference::sum(&first, &tables[..3], None), reference::sum(&second, &tables[3..], None)];
    let transcript = || Blake3Transcript::new(b"batch");
    let statements = [first, second];
    let mut prover = transcript();
    let (joined, claim) = Statement::batch(&statements, &claims, &mut prover).unwrap();
    assert_eq!((joined.tables(), joined.degree()), (5, 3));
    let buffers = upload(&device, &tables);
    let config = SumcheckConfig::default().check(true);
    let plan = Sumcheck::<Fr>::with_config(&device, joined.expression(), config).unwrap();
    let proved = plan.prove(&joined, &buffers.iter().collect::<Vec<_>>(), claim, &mut prover).unwrap();
    let mut verifier = transcript();
    let (joined, claim) = Statement::batch(&statements, &claims, &mut verifier).unwrap();
    assert_eq!(joined.verify(claim, &proved.proof, &mut verifier).unwrap().tables, proved.proof.values);
    // What could be chosen after the coefficient, were it not in the transcript.
    let state = |num_vars, order, coordinate: u64| {
        let point = vec![Fr::from(coordinate); num_vars];
        let statement = Statement::<Fr>::new(num_vars, &gate()).unwrap().order(order).weight(Weight::Eq(point));
        let mut transcript = transcript();
        Statement::batch(&[statement.clone(), statement], &claims, &mut transcript).unwrap();
        transcript.state()
    };
    let states = [(3, Order::MsbFirst, 5), (3, Order::MsbFirst, 6), (3, Order::LsbFirst, 5), (4, Order::MsbFirst, 5)];
    let states: HashSet<_> = states.map(|(num_vars, order, coordinate)| state(num_vars, order, coordinate)).into();
    assert_eq!(states.len(), 4);
    let none = Statement::<Fr>::batch(&[], &[], &mut transcript());
    assert!(matches!(none, Err(Error::Device(DeviceError::Length { expected: 1, actual: 0, .. }))));
}
