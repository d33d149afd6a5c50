//! What a prover leaves in memory that it frees, of tables that are secret.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    collections::HashSet,
    panic::{AssertUnwindSafe, catch_unwind},
    slice,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use ark_bls12_381::Fr;
use ark_ff::Field;
use evariste_backend::{Buffer, Device, Secrecy};
use evariste_field::{DeviceField, Expression, Mont};
use evariste_sumcheck::{
    Blake3Transcript, Challenge, Error, Order, Statement, Strategy, Sumcheck, SumcheckConfig, Transcript, Weight,
    reference,
};

/// The system's allocator, which looks at what is freed.
struct Watching;

#[global_allocator]
static ALLOCATOR: Watching = Watching;

static WATCHES: AtomicBool = AtomicBool::new(false);
static FOUND: AtomicUsize = AtomicUsize::new(0);
/// Halves of elements that no one may find.
static SECRETS: OnceLock<HashSet<u64>> = OnceLock::new();

// SAFETY: the system's allocator does all of it.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller vouches. Zeroed, so that what others have left is not found again.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller vouches.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if WATCHES.load(Ordering::SeqCst) && layout.align() >= 4 {
            // SAFETY: the block is the caller's, all of it was written, and words are aligned in it.
            let words = unsafe { slice::from_raw_parts(memory.cast::<u32>(), layout.size() / 4) };
            if let Some(secrets) = SECRETS.get() {
                let word = |pair: &[u32]| u64::from(pair[0]) | u64::from(pair[1]) << 32;
                FOUND
                    .fetch_add(words.windows(2).filter(|pair| secrets.contains(&word(pair))).count(), Ordering::SeqCst);
            }
        }
        // SAFETY: as the caller vouches.
        unsafe { System.dealloc(memory, layout) }
    }
}

const NUM_VARS: usize = 12;

/// Device memory in which the tables do not fit, so that they pass in pieces.
const SOME_BYTES: u64 = 200_000;

/// a · b − c.
fn gate() -> Expression {
    let [a, b, c] = [0, 1, 2].map(Expression::column);
    a * b - c
}

fn elements(seed: u64) -> Vec<Fr> {
    let of = |i: u64| Fr::from(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul((seed << 32) + i + 1)).square().square();
    (0..1 << NUM_VARS).map(of).collect()
}

fn value(tables: &[Vec<Fr>], x: usize) -> Fr {
    tables[0][x] * tables[1][x] - tables[2][x]
}

/// Two words of an element on the device, of those that no small integer has.
fn words(x: Fr) -> [u64; 2] {
    let mut limbs = [0; Fr::LIMBS];
    x.store(&mut limbs);
    [1, 2].map(|i| u64::from(limbs[2 * i]) | u64::from(limbs[2 * i + 1]) << 32)
}

/// The tables, sums of the first round over parts of the pairs, and inputs of the first two rounds that the proof
/// leaves out.
fn secrets(tables: &[Vec<Fr>]) -> HashSet<u64> {
    let mut secrets: Vec<Fr> = tables.concat();
    let half = 1 << (NUM_VARS - 1);
    for order in [Order::MsbFirst, Order::LsbFirst] {
        let [zero, one]: [Vec<Vec<Fr>>; 2] =
            [0u64, 1].map(|x| tables.iter().map(|table| reference::bind(table, Fr::from(x), order)).collect());
        let way: Vec<Vec<Fr>> =
            zero.iter().zip(&one).map(|(a, b)| a.iter().zip(b).map(|(a, b)| *b - a).collect()).collect();
        for log in 5..NUM_VARS - 1 {
            for chunk in 0..half >> log {
                let pairs = chunk << log..(chunk + 1) << log;
                secrets.extend([&zero, &one].map(|end| pairs.clone().map(|x| value(end, x)).sum::<Fr>()));
                secrets.push(pairs.map(|x| way[0][x] * way[1][x]).sum());
            }
        }
        for (x, y) in (0..3u64).flat_map(|x| (0..3u64).map(move |y| (x, y))) {
            let folded: Vec<Vec<Fr>> = tables
                .iter()
                .map(|table| reference::bind(&reference::bind(table, Fr::from(x), order), Fr::from(y), order))
                .collect();
            secrets.push((0..half / 2).map(|x| value(&folded, x)).sum());
        }
    }
    secrets.into_iter().flat_map(words).collect()
}

/// A transcript that panics at a challenge.
struct Failing(usize, Blake3Transcript);

impl Transcript<Fr> for Failing {
    fn absorb(&mut self, message: &[u8]) {
        self.1.absorb(message);
    }

    fn challenge(&mut self) -> Fr {
        self.0 = self.0.checked_sub(1).expect("made to fail");
        self.1.challenge()
    }
}

/// What was found in memory that `work` freed.
fn found(work: impl FnOnce()) -> usize {
    FOUND.store(0, Ordering::SeqCst);
    WATCHES.store(true, Ordering::SeqCst);
    work();
    WATCHES.store(false, Ordering::SeqCst);
    FOUND.load(Ordering::SeqCst)
}

#[test]
fn nothing_is_left_of_secret_tables() {
    let device = Device::cpu();
    let tables: Vec<Vec<Fr>> = (0..3).map(elements).collect();
    SECRETS.set(secrets(&tables)).unwrap();
    let slices: Vec<&[Fr]> = tables.iter().map(Vec::as_slice).collect();
    let upload = || -> Vec<Buffer<Mont<Fr>>> {
        tables.iter().map(|table| device.upload_with(table, Secrecy::Secret).unwrap()).collect()
    };
    let buffers = upload();
    let given: Vec<_> = buffers.iter().collect();
    assert!(found(|| drop(tables.clone())) > 3 << NUM_VARS, "what watches sees");

    let fresh = || Blake3Transcript::new(b"freed");
    for order in [Order::MsbFirst, Order::LsbFirst] {
        let statement = Statement::<Fr>::new(NUM_VARS, &gate()).unwrap().order(order);
        for (strategy, challenge) in [
            (Strategy::ZeroCheck, Challenge::Device),
            (Strategy::ZeroCheck, Challenge::Host),
            (Strategy::FromClaim, Challenge::Host),
            (Strategy::Textbook, Challenge::Host),
        ] {
            let config = SumcheckConfig::default().strategy(strategy).challenge(challenge).check(true);
            let plan = Sumcheck::<Fr>::with_config(&device, &gate(), config).unwrap();
            let claim = plan.sum(&statement, &given).unwrap();
            let context = format!("{order:?}, {strategy:?}, {challenge:?}");
            let clean = |what: &str, work: &dyn Fn()| assert_eq!(found(work), 0, "{what}: {context}");
            clean("a sum", &|| assert_eq!(plan.sum(&statement, &given).unwrap(), claim));
            clean("a proof", &|| drop(plan.prove(&statement, &given, claim, &mut fresh()).unwrap()));
            clean("a consumed proof", &|| {
                drop(plan.prove_consuming(&statement, upload(), claim, &mut fresh()).unwrap())
            });
            clean("a false claim", &|| {
                let refused = plan.prove(&statement, &given, claim + Fr::ONE, &mut fresh());
                assert_eq!(refused.err(), Some(Error::FalseClaim));
            });
            for bytes in [SOME_BYTES, u64::MAX] {
                clean("a proof from the host", &|| {
                    let proved = plan.prove_host(&statement, &slices, bytes, Secrecy::Secret, claim, &mut fresh());
                    drop(proved.unwrap());
                });
            }
            for challenges in [0, 1, 3] {
                clean("a panic", &|| {
                    let mut failing = Failing(challenges, fresh());
                    let panics = catch_unwind(AssertUnwindSafe(|| plan.prove(&statement, &given, claim, &mut failing)));
                    assert!(panics.is_err());
                    let mut failing = Failing(challenges, fresh());
                    let panics = catch_unwind(AssertUnwindSafe(|| {
                        plan.prove_host(&statement, &slices, SOME_BYTES, Secrecy::Secret, claim, &mut failing)
                    }));
                    assert!(panics.is_err());
                });
            }
        }
    }
    // With a weight, as a table too, which is public and is folded with the tables.
    let point = elements(7)[..NUM_VARS].to_vec();
    for order in [Order::MsbFirst, Order::LsbFirst] {
        let statement = Statement::<Fr>::new(NUM_VARS, &gate()).unwrap().order(order).weight(Weight::Eq(point.clone()));
        for strategy in [Strategy::ZeroCheck, Strategy::SplitEq, Strategy::FromClaim, Strategy::Textbook] {
            let config = SumcheckConfig::default().strategy(strategy);
            let plan = Sumcheck::<Fr>::with_config(&device, &gate(), config).unwrap();
            let claim = plan.sum(&statement, &given).unwrap();
            let found = found(|| {
                let mut proofs = [(); 2].map(|()| Vec::new());
                proofs[0].push(plan.prove(&statement, &given, claim, &mut fresh()).unwrap().proof);
                proofs[1].push(plan.prove_consuming(&statement, upload(), claim, &mut fresh()).unwrap().proof);
                assert_eq!(proofs[0], proofs[1]);
                drop(statement.verify(claim, &proofs[0][0], &mut fresh()).unwrap());
            });
            assert_eq!(found, 0, "{order:?}, {strategy:?}");
        }
    }
    let check = Statement::<Fr>::new(NUM_VARS, &gate()).unwrap().weight(Weight::ZeroCheck);
    let config = SumcheckConfig::default().check(true);
    let plan = Sumcheck::<Fr>::with_config(&device, &gate(), config).unwrap();
    let refused =
        found(|| assert_eq!(plan.prove(&check, &given, Fr::from(0), &mut fresh()).err(), Some(Error::FalseClaim)));
    assert_eq!(refused, 0);
}
