//! A server that asks clients for square roots before it works for them (Jerschow and Mauve, "Modular square root
//! puzzles").
//!
//! ```text
//! client_puzzle [BITS] [PUZZLES]    a prime of 512 to 2048 bits, 1024 unless given; 200 puzzles
//! ```
//! The client solves one puzzle on a core, as it has to, and then all of them at once, as one with a fast device may.
//! Solutions are checked by the server with one multiplication each, and by another big-integer library.

use std::{env, error::Error, process::ExitCode, time::Instant};

use evariste::{
    Device,
    modsqrt::{BoxedUint, ModSqrt, ModSqrtConfig, Puzzle, RootChoice},
};
use num_bigint::BigUint;

type Outcome = Result<(), Box<dyn Error>>;

const USAGE: &str = "usage: client_puzzle [BITS] [PUZZLES]";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number =
        |i: usize, default: u32| arguments.get(i).map_or(Ok(default), |text| text.parse().map_err(|_| USAGE.into()));
    let outcome = number(0, 1024)
        .and_then(|bits| Device::best().map_err(Into::into).and_then(|device| run(&device, bits, number(1, 200)?)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn big(x: &BoxedUint) -> BigUint {
    BigUint::from_bytes_le(&x.to_le_bytes())
}

fn run(device: &Device, bits: u32, count: u32) -> Outcome {
    if !(512..=2048).contains(&bits) {
        return Err(USAGE.into());
    }
    let start = Instant::now();
    let prime = Puzzle::draw_prime(bits)?;
    println!("server: a prime of {bits} bits in {:.2?}", start.elapsed());
    let start = Instant::now();
    let puzzles = (0..count).map(|_| Puzzle::draw(&prime)).collect::<Result<Vec<_>, _>>()?;
    println!("server: {count} puzzles in {:.2?}", start.elapsed());

    if let Some(puzzle) = puzzles.first() {
        let start = Instant::now();
        let root = puzzle.solve().ok_or("the first puzzle has no solution")?;
        println!("client: one solution on one core in {:.2?}", start.elapsed());
        if !puzzle.verify(&root) {
            return Err("the server refuses the first solution".into());
        }
    }

    // A client knows no more of a prime than the number: the plan tests whether it is one.
    let plan = ModSqrt::with_config(device, &prime, ModSqrtConfig::default().choice(RootChoice::Smaller))?;
    let squares: Vec<BoxedUint> = puzzles.iter().map(|puzzle| puzzle.square().clone()).collect();
    let start = Instant::now();
    let roots = plan.sqrt_host(&squares)?;
    println!("client: {count} solutions on {} in {:.2?}", device.info().name, start.elapsed());

    let start = Instant::now();
    let accepted =
        puzzles.iter().zip(&roots).filter(|(puzzle, root)| root.as_ref().is_some_and(|root| puzzle.verify(root)));
    let accepted = accepted.count();
    println!("server: {accepted} solutions accepted in {:.2?}", start.elapsed());
    let modulus = big(&prime);
    let right = puzzles.iter().zip(roots.iter().flatten()).all(|(puzzle, root)| {
        let root = big(root);
        &root * &root % &modulus == big(puzzle.square())
    });
    if accepted != puzzles.len() || !right {
        return Err("a solution is wrong".into());
    }
    // The opposite of a root is a root too: it must not count as a second solution.
    let opposite = |root: &BoxedUint| prime.wrapping_sub(root);
    if puzzles.iter().zip(roots.iter().flatten()).any(|(puzzle, root)| puzzle.verify(&opposite(root))) {
        return Err("the server takes a puzzle twice".into());
    }
    Ok(())
}

#[test]
fn puzzles_are_solved() -> Outcome {
    run(&Device::cpu(), 512, 20)
}
