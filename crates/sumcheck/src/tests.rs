//! Every strategy, order and place of tables at small sizes.

use std::collections::{HashMap, HashSet};

use ark_bls12_381::Fr;
use ark_ff::{AdditiveGroup, BigInteger, Field, Fp64, MontBackend, MontConfig, MontFp, PrimeField};
use evariste_backend::{Buffer, Device, KernelSpec, Language, Secrecy};
use evariste_field::{
    DeviceField, Expression, Extension, ExtensionConfig, Mont,
    small::{BabyBear, BabyBear4, Goldilocks, Goldilocks2, KoalaBear, KoalaBear4},
};

use super::*;

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
    for (strategy, draw) in
        STRATEGIES.map(|strategy| (strategy, Draw::Device)).into_iter().chain([(Strategy::ZeroCheck, Draw::Host)])
    {
        let config = Config { strategy, draw, check: true };
        let plan = Sumcheck::<E, T>::new(device, statement.expression(), config).unwrap();
        let context = format!("{n} {strategy:?} {draw:?} {statement:?} on {device}");
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
        check_order(&device, 4, Order::MsbFirst);
        check_small::<BabyBear4, BabyBear>(&device, Order::LsbFirst);
        streamed::<Fr, Fr>(&device, &satisfied(4), &Weight::ZeroCheck);
        many_products(&device);
    }
}

/// Degree 6 with so many products that a text has the expression once for all points, in rounds that are folded and are not, drawn
/// and are not, with all points and without those that are known.
fn many_products(device: &Device) {
    const NUM_VARS: usize = 4;
    let product = |i: u32| (0..6).map(|j| Expression::column((i * j + i) % 3) + i64::from(i)).product::<Expression>();
    let many: Expression = (0..3).map(product).sum();
    let tables: Vec<Vec<Goldilocks>> = (0..3).map(|i| random(1 << NUM_VARS, i)).collect();
    let zero = &many * Expression::column(3) - &many * Expression::column(4);
    let point = random(NUM_VARS, 9);
    let cases = [
        (&many, Weight::None, Strategy::Textbook, Order::MsbFirst),
        (&many, Weight::Eq(point), Strategy::SplitEq, Order::LsbFirst),
        (&zero, Weight::ZeroCheck, Strategy::ZeroCheck, Order::MsbFirst),
    ];
    for (expression, weight, strategy, order) in cases {
        let statement = Statement::<Goldilocks2>::new(NUM_VARS, expression).unwrap().weight(weight).order(order);
        let tables: Vec<Vec<Goldilocks>> =
            [&tables[..], &[random(1 << NUM_VARS, 8), random(1 << NUM_VARS, 8)]].concat();
        let tables = &tables[..statement.tables()];
        let lifted: Vec<Vec<Goldilocks2>> = tables
            .iter()
            .map(|table| table.iter().map(|x| Goldilocks2::new([*x, Goldilocks::ZERO])).collect())
            .collect();
        let claim = match statement.weight_of() {
            Weight::None => reference::sum(&statement, &lifted, None),
            Weight::Eq(point) => reference::sum(&statement, &lifted, Some(point)),
            Weight::ZeroCheck => Goldilocks2::ZERO,
        };
        let fresh = || Blake3Transcript::new(b"many");
        let (expected, _) = reference::prove(&statement, NUM_VARS, &lifted, claim, &mut fresh());
        let buffers = upload(device, tables);
        let given: Vec<_> = buffers.iter().collect();
        let config = Config { strategy, ..Config::default() };
        let plan = Sumcheck::<Goldilocks2, Goldilocks>::new(device, expression, config).unwrap();
        let proved = plan.prove(&statement, &given, claim, &mut fresh()).unwrap();
        assert_eq!(proved.proof, expected, "{strategy:?}, {order:?}");
    }
}

/// Up to degree 128, of which a message takes all threads of a workgroup, challenges are drawn on the device.
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

/// That kernel has the expression once for each point. Zero-checks of degree d evaluate later rounds at d points.
#[test]
fn rounds_at_many_points_are_not_compiled_into_one_kernel() {
    let tails = |degree: u32| {
        let kernels = Sumcheck::<Fr>::kernels(&Expression::column(0).pow(degree));
        kernels.iter().filter(|kernel| kernel.name == "sumcheck_tail").count()
    };
    assert!(tails(8) > 0);
    assert_eq!([14, 32, 128].map(tails), [0; 3]);
}

/// Memory for the sums of two rounds at once, which high degrees take more of than of anything else, is counted.
#[test]
fn pieces_of_tables_have_room_for_their_sums() {
    const DEGREE: u32 = 30;
    let (device, tables) = (Device::cpu(), [random::<Fr>(1 << 12, 1)]);
    let statement = Statement::<Fr>::new(12, &Expression::column(0).pow(DEGREE)).unwrap();
    let claim = reference::sum(&statement, &tables, None);
    let plan = Sumcheck::<Fr>::new(&device, statement.expression(), Config::default()).unwrap();
    let prove = |bytes: u64| {
        let transcript = &mut Blake3Transcript::new(b"test");
        plan.prove_from_host(&statement, &[&tables[0]], bytes, Secrecy::Public, claim, transcript)
    };
    let Error::InsufficientMemory { expected: least, .. } = prove(0).unwrap_err() else { panic!("of nothing") };
    let buffers = upload(&device, &tables);
    let expected =
        plan.prove(&statement, &buffers.iter().collect::<Vec<_>>(), claim, &mut Blake3Transcript::new(b"test"));
    assert_eq!(prove(least).unwrap().proof, expected.unwrap().proof);
    assert!((4 * 31 * 31 * 32..(1 << 12) * 64).contains(&least), "{least} bytes");
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
    let operations = Tables::<Fr>::new(&device);
    assert_eq!(operations.eq(&point).unwrap().to_vec().unwrap(), reference::eq(&point));
    for order in [Order::MsbFirst, Order::LsbFirst] {
        let folded = operations.fold(&buffers[0], r, order).unwrap().to_vec().unwrap();
        assert_eq!(folded, reference::fold(&tables[0], r, order));
    }
    let borrowed: Vec<_> = buffers.iter().collect();
    for order in [Order::MsbFirst, Order::LsbFirst] {
        let statement = Statement::<Fr>::new(5, &gate()).unwrap().order(order).weight(Weight::Eq(point.clone()));
        let claim = reference::sum(&statement, &tables, Some(&point));
        let plan = Sumcheck::<Fr>::new(&device, &gate(), Config::default()).unwrap();
        assert_eq!(plan.sum(&statement, &borrowed).unwrap(), claim);
        let transcript = || Blake3Transcript::new(b"test");
        let (expected, challenges) = reference::prove(&statement, 2, &tables, claim, &mut transcript());
        let proved = plan.prove_rounds(&statement, 2, &borrowed, claim, &mut transcript()).unwrap();
        assert_eq!((&proved.proof, &proved.point), (&expected, &challenges));
        let sub = statement.verify_rounds(2, claim, &expected, &mut transcript()).unwrap();
        assert_eq!((sub.point, sub.value), (challenges.clone(), proved.value));
        for (table, bound) in tables.iter().zip(&proved.tables) {
            let expected = challenges.iter().fold(table.clone(), |table, r| reference::fold(&table, *r, order));
            assert_eq!(bound.to_vec().unwrap(), expected);
        }
    }
    // A transcript of one's own, which devices do not know.
    let statement = Statement::<Fr>::new(5, &gate()).unwrap();
    let claim = reference::sum(&statement, &tables, None);
    let own = || Closure::new(|bytes: &[u8]| Fr::from(bytes.iter().map(|byte| u64::from(*byte) + 1).sum::<u64>()));
    let plan = Sumcheck::<Fr>::new(&device, &gate(), Config::default()).unwrap();
    let proved = plan.prove(&statement, &borrowed, claim, &mut own()).unwrap();
    assert_eq!(statement.verify(claim, &proved.proof, &mut own()).unwrap().point, proved.point);
}

/// Proofs about tables in host memory, with as little device memory as can be, some more, and enough.
fn streamed<E: DeviceField, T: DeviceField>(device: &Device, tables: &[Vec<T>], weight: &Weight<E>) {
    let buffers = upload(device, tables);
    let borrowed: Vec<_> = buffers.iter().collect();
    let slices: Vec<&[T]> = tables.iter().map(Vec::as_slice).collect();
    let plan = Sumcheck::<E, T>::new(device, &gate(), Config { check: true, ..Config::default() }).unwrap();
    let transcript = || Blake3Transcript::new(b"streamed");
    for order in [Order::MsbFirst, Order::LsbFirst] {
        let statement = Statement::<E>::new(tables[0].len().ilog2() as usize, &gate()).unwrap();
        let statement = statement.weight(weight.clone()).order(order);
        let claim = if *weight == Weight::ZeroCheck { E::ZERO } else { plan.sum(&statement, &borrowed).unwrap() };
        let expected = plan.prove(&statement, &borrowed, claim, &mut transcript()).unwrap();
        let prove = |bytes: u64, claim: E| {
            plan.prove_from_host(&statement, &slices, bytes, Secrecy::Secret, claim, &mut transcript())
        };
        let Error::InsufficientMemory { expected: least, actual: 0 } = prove(0, claim).unwrap_err() else {
            panic!("of nothing")
        };
        assert!(matches!(prove(least - 1, claim), Err(Error::InsufficientMemory { .. })));
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
        let short = plan.prove_from_host(&statement, &slices[1..], 0, Secrecy::Public, claim, &mut transcript());
        assert!(matches!(short, Err(Error::Length { expected: 3, actual: 2, .. })));
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
    let config = Config { check: true, ..Config::default() };
    let plan = Sumcheck::<Fr>::new(&device, joined.expression(), config).unwrap();
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
    assert!(matches!(none, Err(Error::Length { expected: 1, actual: 0, .. })));
}

#[test]
fn any_changed_byte_is_refused() {
    let tables = satisfied::<Fr>(3);
    let statement = Statement::<Fr>::new(3, &gate()).unwrap().weight(Weight::ZeroCheck);
    let transcript = || Blake3Transcript::new(b"bytes");
    let (proof, _) = reference::prove(&statement, 3, &tables, Fr::from(0), &mut transcript());
    let bytes = proof.to_bytes();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        let read = Proof::from_bytes(&statement, 3, &changed);
        let outcome = read.and_then(|proof| statement.verify(Fr::from(0), &proof, &mut transcript()));
        assert!(matches!(outcome, Err(Refused::Final | Refused::NotCanonical { .. })), "{at}");
    }
    assert_eq!(statement.verify(Fr::from(1), &proof, &mut transcript()), Err(Refused::ZeroCheckClaim));
    let plain = Statement::<Fr>::new(3, &gate()).unwrap();
    let (sum, _) = reference::prove(&plain, 3, &tables, Fr::from(0), &mut transcript());
    assert_eq!(plain.verify(Fr::from(1), &sum, &mut transcript()), Err(Refused::Final));
    let shorter = Proof::from_bytes(&statement, 3, &bytes[1..]);
    assert!(matches!(shorter, Err(Refused::Shape { .. })));
    let more = Proof::from_bytes(&statement, 4, &bytes).unwrap_err();
    assert_eq!(more, Refused::Shape { what: "the rounds of a proof", expected: 3, actual: 4 });
    let mut fewer = proof.clone();
    fewer.rounds.pop();
    assert!(matches!(statement.verify(Fr::from(0), &fewer, &mut transcript()), Err(Refused::Shape { .. })));
}

#[test]
fn misuse_is_told() {
    let device = Device::cpu();
    assert_eq!(Statement::<Fr>::new(0, &gate()).err(), Some(Error::Variables { expected: 31, actual: 0 }));
    let constant = Expression::integer(3);
    assert_eq!(Statement::<Fr>::new(3, &constant).err(), Some(Error::Degree { expected: MAX_DEGREE, actual: 0 }));
    let gap = Expression::column(u32::MAX) * Expression::column(0).pow(2);
    assert_eq!(Statement::<Fr>::new(3, &gap).err(), Some(Error::UnusedColumn { column: 1, columns: 1 << 32 }));
    assert_eq!(Sumcheck::<BabyBear4, Goldilocks>::new(&device, &gate(), Config::default()).err(), Some(Error::Field));
    for unprovable in [constant, gap] {
        assert!(Sumcheck::<Fr>::kernels(&unprovable).is_empty());
    }
    // More tables than there are bindings for.
    let many: Expression = (0..40u32).map(Expression::column).sum();
    assert!(!Sumcheck::<Fr>::kernels(&many).is_empty() && !Sumcheck::<BabyBear4, BabyBear>::kernels(&many).is_empty());
    let plan = Sumcheck::<Fr>::new(&device, &gate(), Config::default()).unwrap();
    let statement = Statement::<Fr>::new(2, &gate()).unwrap();
    let buffers = upload(&device, &satisfied::<Fr>(2));
    let borrowed: Vec<_> = buffers.iter().collect();
    let refused = |statement: &Statement<Fr>, tables: &[&Buffer<Mont<Fr>>]| {
        plan.prove(statement, tables, Fr::from(0), &mut Blake3Transcript::new(b"")).unwrap_err()
    };
    let tables = Error::Length { what: "the tables of a statement", expected: 3, actual: 2 };
    assert_eq!(refused(&statement, &borrowed[..2]), tables);
    let short = device.upload::<Mont<Fr>>(&[Fr::from(1); 3]).unwrap();
    let elements = Error::Length { what: "the elements of a table", expected: 4, actual: 3 };
    assert_eq!(refused(&statement, &[borrowed[0], &short, borrowed[1]]), elements);
    let point = statement.clone().weight(Weight::Eq(vec![Fr::from(1)]));
    assert!(matches!(refused(&point, &borrowed), Error::Length { expected: 2, actual: 1, .. }));
    assert!(matches!(refused(&statement.clone().constants(&[Fr::from(1)]), &borrowed), Error::Length { .. }));
    let other = Statement::<Fr>::new(2, &Expression::column(0)).unwrap();
    assert_eq!(refused(&other, &borrowed), Error::OtherExpression);
    assert!(matches!(Tables::<Fr>::new(&device).fold(&short, Fr::from(1), Order::MsbFirst), Err(Error::Length { .. })));
}

/// A transcript that keeps what it is told.
struct Kept<'a> {
    told: &'a mut Vec<Vec<u8>>,
    of: Blake3Transcript,
}

impl<E: DeviceField> Transcript<E> for Kept<'_> {
    fn absorb(&mut self, message: &[u8]) {
        self.told.push(message.to_vec());
        self.of.absorb(message);
    }

    fn challenge(&mut self) -> E {
        self.of.challenge()
    }
}

/// What a proof begins with, and its first challenge.
fn first_message<E: DeviceField>() -> (Vec<u8>, E) {
    let statement = Statement::<E>::new(1, &Expression::column(0)).unwrap().allow_small_challenges();
    let mut told = Vec::new();
    let mut transcript = Kept { told: &mut told, of: Blake3Transcript::new(b"first") };
    let tables = [vec![E::from(3u8), E::from(4u8)]];
    let (_, challenges) = reference::prove(&statement, 1, &tables, E::from(7u8), &mut transcript);
    (told.swap_remove(0), challenges[0])
}

struct ByEleven;

impl ExtensionConfig<2> for ByEleven {
    type BaseField = BabyBear;
    const REDUCTION: [BabyBear; 2] = [MontFp!("11"), BabyBear::ZERO];
}

/// (X − 31)² = 11, in other words: a field that differs from the one above in its basis alone.
struct Shifted;

impl ExtensionConfig<2> for Shifted {
    type BaseField = BabyBear;
    const REDUCTION: [BabyBear; 2] = [MontFp!("-950"), MontFp!("62")];
}

/// Two fields with one prime and degree have other challenges, as elements are other ones.
#[test]
fn transcripts_are_bound_to_the_polynomials_of_fields() {
    let head = |degree: u32| {
        let numbers = [1, 1, 1, 1, 0, 0, degree].map(u32::to_le_bytes).concat();
        [Expression::column(0).digest().to_vec(), numbers].concat()
    };
    let word = |x: u32| x.to_le_bytes().to_vec();
    const P: u32 = 0x7800_0001;
    // Of prime fields, elements alone.
    let expected = [head(1), BabyBear::MODULUS.to_bytes_le(), word(0), word(7)].concat();
    assert_eq!(first_message::<BabyBear>().0, expected);
    let of = |polynomial: [u32; 2]| {
        let tower = [word(2), word(polynomial[0]), word(polynomial[1])].concat();
        [head(2), BabyBear::MODULUS.to_bytes_le(), tower, word(0), word(7), word(0)].concat()
    };
    let (first, second) = (first_message::<Extension<ByEleven, 2>>(), first_message::<Extension<Shifted, 2>>());
    assert_eq!((first.0, second.0), (of([11, 0]), of([P - 950, 62])));
    assert_ne!(first.1.coefficients(), second.1.coefficients());
    // Every floor of a tower.
    let (message, _) = first_message::<ark_bls12_381::Fq12>();
    let floors = ark_bls12_381::Fq12::tower();
    let tower: Vec<u8> =
        floors.iter().flat_map(|floor| [word(floor.len() as u32), transcript::bytes_of(floor)].concat()).collect();
    assert_eq!(floors.iter().map(Vec::len).collect::<Vec<_>>(), [2, 6, 12]);
    assert!(message.windows(tower.len()).any(|part| part == tower));
}

#[test]
fn zero_checks_claim_0() {
    let device = Device::cpu();
    // Σ eq(τ, x) · 5 is 5 for every τ, so that proofs of it would be accepted.
    let (table, five) = (vec![Fr::from(5); 8], Fr::from(5));
    let statement = Statement::<Fr>::new(3, &Expression::column(0)).unwrap().weight(Weight::ZeroCheck);
    let fresh = || Blake3Transcript::new(b"zero");
    let (proof, _) = reference::prove(&statement, 3, std::slice::from_ref(&table), five, &mut fresh());
    let untouched = |transcript: &Blake3Transcript| assert_eq!(transcript.state(), fresh().state());
    let mut transcript = fresh();
    for rounds in 1..=3 {
        let outcome = statement.verify_rounds(
            rounds,
            five,
            &Proof { rounds: proof.rounds[..rounds].to_vec(), ..proof.clone() },
            &mut transcript,
        );
        assert!(matches!(outcome, Err(Refused::ZeroCheckClaim | Refused::Shape { .. })), "{rounds}");
    }
    assert_eq!(statement.verify(five, &proof, &mut transcript), Err(Refused::ZeroCheckClaim));
    untouched(&transcript);

    let plan = Sumcheck::<Fr>::new(&device, statement.expression(), Config::default()).unwrap();
    let buffer = device.upload::<Mont<Fr>>(&table).unwrap();
    let outcomes = [
        plan.prove(&statement, &[&buffer], five, &mut transcript),
        plan.prove_rounds(&statement, 2, &[&buffer], five, &mut transcript),
        plan.prove_from_host(&statement, &[&table], 1 << 20, Secrecy::Public, five, &mut transcript),
        plan.prove_consuming(&statement, vec![buffer], five, &mut transcript),
    ];
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().err() == Some(&Error::ZeroCheckClaim)));
    let statements = [statement.clone(), statement];
    let batch = Statement::batch(&statements, &[Fr::from(0), five], &mut transcript);
    assert_eq!(batch.err(), Some(Error::ZeroCheckClaim));
    untouched(&transcript);
}

/// Elements of a field of at most 128 bits.
fn size_of_field<E: DeviceField>() -> u128 {
    let prime =
        E::BasePrimeField::MODULUS.as_ref().iter().rev().fold(0u128, |value, limb| value << 64 | u128::from(*limb));
    prime.pow(E::extension_degree() as u32)
}

#[derive(MontConfig)]
#[modulus = "67108859"]
#[generator = "2"]
struct C26;

struct By26;

impl ExtensionConfig<4> for By26 {
    type BaseField = Fp64<MontBackend<C26, 1>>;
    const REDUCTION: [Self::BaseField; 4] =
        [Self::BaseField::ONE, Self::BaseField::ZERO, Self::BaseField::ZERO, Self::BaseField::ONE];
}

#[test]
fn soundness_is_that_of_the_formula() {
    fn check_bits<E: DeviceField>() {
        for (num_vars, degree) in [(1, 1), (3, 2), (20, 3), (31, 12)] {
            let plain = Statement::<E>::new(num_vars, &Expression::column(0).pow(degree)).unwrap();
            let failures = num_vars as u128 * u128::from(degree);
            for (statement, failures) in
                [(plain.clone(), failures), (plain.weight(Weight::ZeroCheck), failures + num_vars as u128)]
            {
                let bits = statement.soundness_bits();
                let size = size_of_field::<E>();
                // |F| ÷ 2^bits holds the failures, and half of it does not.
                let over = |bits: u32| size.checked_shr(bits).unwrap_or(0) >= failures;
                assert!(over(bits) && !over(bits + 1), "{bits} of {failures}");
            }
        }
    }
    check_bits::<BabyBear>();
    check_bits::<BabyBear4>();
    check_bits::<KoalaBear4>();
    check_bits::<Goldilocks>();
    check_bits::<Goldilocks2>();
    assert_eq!(Statement::<Fr>::new(16, &Expression::column(0)).unwrap().soundness_bits(), 250);
    assert_eq!(Statement::<ark_bls12_381::Fq12>::new(16, &Expression::column(0)).unwrap().soundness_bits(), 4564);
}

#[test]
fn small_challenges_are_asked_for_by_name() {
    let device = Device::cpu();
    let tables = satisfied::<Goldilocks>(3);
    let slices: Vec<&[Goldilocks]> = tables.iter().map(Vec::as_slice).collect();
    let buffers = upload(&device, &tables);
    let given: Vec<_> = buffers.iter().collect();
    let plan = Sumcheck::<Goldilocks>::new(&device, &gate(), Config::default()).unwrap();
    let statement = Statement::<Goldilocks>::new(3, &gate()).unwrap().weight(Weight::ZeroCheck);
    // 2^64 ÷ (3 · 2 + 3).
    let (expected, actual) = (MIN_SOUNDNESS_BITS, 60);
    let refused = Some(Error::SmallChallenges { expected, actual });
    let zero = Goldilocks::ZERO;
    let fresh = || Blake3Transcript::new(b"small");
    let mut transcript = fresh();
    assert_eq!(plan.prove(&statement, &given, zero, &mut transcript).err(), refused);
    assert_eq!(plan.prove_rounds(&statement, 1, &given, zero, &mut transcript).err(), refused);
    assert_eq!(plan.prove_consuming(&statement, upload(&device, &tables), zero, &mut transcript).err(), refused);
    let from_host = plan.prove_from_host(&statement, &slices, 1 << 20, Secrecy::Public, zero, &mut transcript);
    assert_eq!(from_host.err(), refused);
    let (proof, _) = reference::prove(&statement, 3, &tables, zero, &mut fresh());
    let verified = statement.verify(zero, &proof, &mut transcript);
    assert_eq!(verified, Err(Refused::SmallChallenges { expected, actual }));
    assert_eq!(Statement::batch(std::slice::from_ref(&statement), &[zero], &mut transcript).err(), refused);
    assert_eq!(transcript.state(), fresh().state());

    let allowed = statement.clone().allow_small_challenges();
    let proved = plan.prove(&allowed, &given, zero, &mut fresh()).unwrap();
    assert_eq!(proved.proof, proof);
    assert_eq!(allowed.verify(zero, &proof, &mut fresh()).unwrap().point, proved.point);
    // A sum takes no challenge.
    let sum = Statement::<Goldilocks>::new(3, &gate()).unwrap();
    assert_eq!(plan.sum(&sum, &given).unwrap(), zero);

    // Statements each of which has 100 bits or more, and together they have not, and one that does not allow that.
    type F104 = Extension<By26, 4>;
    let short = Statement::<F104>::new(3, &Expression::column(0).pow(3)).unwrap().weight(Weight::ZeroCheck);
    assert_eq!(short.soundness_bits(), 100);
    let batch = |count: usize, allowed: usize| {
        let of = |i: usize| if i < allowed { short.clone().allow_small_challenges() } else { short.clone() };
        let statements: Vec<_> = (0..count).map(of).collect();
        Statement::batch(&statements, &vec![F104::ZERO; count], &mut fresh())
    };
    assert_eq!(batch(3, 0).unwrap().0.soundness_bits(), 100);
    assert_eq!(batch(8, 7).err(), Some(Error::SmallChallenges { expected, actual: 99 }));
    let (joined, claim) = batch(8, 8).unwrap();
    assert_eq!((joined.soundness_bits(), claim), (99, F104::ZERO));
    assert!(joined.check_claim(claim).is_ok());
}

/// A list of kernels in which two have one name leaves one of them out.
#[test]
fn names_and_variants_tell_kernels_apart() {
    fn texts(specs: &[KernelSpec]) -> HashMap<(&'static str, String), Vec<[String; 3]>> {
        let mut texts: HashMap<_, Vec<[String; 3]>> = HashMap::new();
        for spec in specs {
            let wgsl = |int64| spec.source(Language::Wgsl { int64 });
            let text = [spec.cuda_source(), wgsl(true), wgsl(false)];
            let known = texts.entry((spec.name, spec.variant.clone())).or_default();
            if !known.contains(&text) {
                known.push(text);
            }
        }
        texts
    }
    let few = [gate(), Expression::column(0), Expression::column(0).pow(7) * Expression::column(1) + 2];
    let many: Expression = (0..40u32).map(Expression::column).sum();
    let mut specs = Vec::new();
    for expression in few.iter().chain([&many]) {
        specs.extend(Sumcheck::<Fr>::all_kernels(expression));
        specs.extend(Sumcheck::<ark_bls12_381::Fq>::all_kernels(expression));
        specs.extend(Sumcheck::<BabyBear4, BabyBear>::all_kernels(expression));
        specs.extend(Sumcheck::<BabyBear4>::all_kernels(expression));
        specs.extend(Sumcheck::<KoalaBear4, KoalaBear>::all_kernels(expression));
    }
    for ((name, variant), texts) in texts(&specs) {
        assert_eq!(texts.len(), 1, "{name} ({variant})");
    }
    // What compiles ahead misses nothing.
    let (all, listed) = (Sumcheck::<Fr>::all_kernels(&gate()), Sumcheck::<Fr>::kernels(&gate()));
    let distinct: HashSet<String> = all.iter().map(KernelSpec::cuda_source).collect();
    assert_eq!(listed.iter().map(KernelSpec::cuda_source).collect::<HashSet<_>>(), distinct);
}
