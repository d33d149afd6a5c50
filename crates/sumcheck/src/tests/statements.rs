//! Statements, transcripts and what is refused.

use ark_ff::{AdditiveGroup, BigInteger, Field, Fp64, MontBackend, MontConfig, MontFp, PrimeField};
use evariste_backend::{Buffer, Device, Error as DeviceError, Secrecy};
use evariste_field::{
    DeviceField, Expression, Extension, ExtensionConfig, Mont,
    small::{BabyBear, BabyBear4, Goldilocks, Goldilocks2, KoalaBear4},
};

use super::{Fr, gate, satisfied, upload};
use crate::{transcript::bytes_of, *};

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
    assert_eq!(Sumcheck::<BabyBear4, Goldilocks>::new(&device, &gate()).err(), Some(Error::Field));
    for unprovable in [constant, gap] {
        assert!(Sumcheck::<Fr>::kernels(&unprovable).is_empty());
    }
    // More tables than there are bindings for.
    let many: Expression = (0..40u32).map(Expression::column).sum();
    assert!(!Sumcheck::<Fr>::kernels(&many).is_empty() && !Sumcheck::<BabyBear4, BabyBear>::kernels(&many).is_empty());
    let plan = Sumcheck::<Fr>::new(&device, &gate()).unwrap();
    let statement = Statement::<Fr>::new(2, &gate()).unwrap();
    let buffers = upload(&device, &satisfied::<Fr>(2));
    let borrowed: Vec<_> = buffers.iter().collect();
    let refused = |statement: &Statement<Fr>, tables: &[&Buffer<Mont<Fr>>]| {
        plan.prove(statement, tables, Fr::from(0), &mut Blake3Transcript::new(b"")).unwrap_err()
    };
    let tables = Error::length("the tables of a statement", 3, 2);
    assert_eq!(refused(&statement, &borrowed[..2]), tables);
    let short = device.upload::<Mont<Fr>>(&[Fr::from(1); 3]).unwrap();
    let elements = Error::length("the elements of a table", 4, 3);
    assert_eq!(refused(&statement, &[borrowed[0], &short, borrowed[1]]), elements);
    let point = statement.clone().weight(Weight::Eq(vec![Fr::from(1)]));
    assert!(matches!(refused(&point, &borrowed), Error::Device(DeviceError::Length { expected: 2, actual: 1, .. })));
    assert!(matches!(
        refused(&statement.clone().constants(&[Fr::from(1)]), &borrowed),
        Error::Device(DeviceError::Length { .. })
    ));
    let other = Statement::<Fr>::new(2, &Expression::column(0)).unwrap();
    assert_eq!(refused(&other, &borrowed), Error::OtherExpression);
    assert!(matches!(
        Mle::<Fr>::new(&device).bind(&short, Fr::from(1), Order::MsbFirst),
        Err(Error::Device(DeviceError::Length { .. }))
    ));
}

/// A transcript that keeps the messages.
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
    let tower: Vec<u8> = floors.iter().flat_map(|floor| [word(floor.len() as u32), bytes_of(floor)].concat()).collect();
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

    let plan = Sumcheck::<Fr>::new(&device, statement.expression()).unwrap();
    let buffer = device.upload::<Mont<Fr>>(&table).unwrap();
    let outcomes = [
        plan.prove(&statement, &[&buffer], five, &mut transcript),
        plan.prove_rounds(&statement, 2, &[&buffer], five, &mut transcript),
        plan.prove_host(&statement, &[&table], 1 << 20, Secrecy::Public, five, &mut transcript),
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
    let plan = Sumcheck::<Goldilocks>::new(&device, &gate()).unwrap();
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
    let from_host = plan.prove_host(&statement, &slices, 1 << 20, Secrecy::Public, zero, &mut transcript);
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

    // Statements that have 100 bits or more each but not together, and one that does not allow that.
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
