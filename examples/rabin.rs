//! Encrypts a batch of messages with Rabin's cryptosystem and decrypts them again, on the fastest device.
//!
//! ```text
//! rabin [PRIME_BITS] [MESSAGES]    512 to 2048 bits for each of the two primes, 1024 unless given; 1000 messages
//! ```
//! Each ciphertext is compared with a square by another big-integer library, and the messages with what was encrypted.
//! This is Rabin's primitive with plain redundancy, for research: a scheme for secrets pads at random.

use std::{env, error::Error, process::ExitCode, time::Instant};

use evariste::{
    Device,
    modsqrt::rabin::{Decryption, Encryption, REDUNDANCY, SecretKey},
};
use num_bigint::BigUint;

type Outcome = Result<(), Box<dyn Error>>;

const USAGE: &str = "usage: rabin [PRIME_BITS] [MESSAGES]";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number =
        |i: usize, default: u32| arguments.get(i).map_or(Ok(default), |text| text.parse().map_err(|_| USAGE.into()));
    let outcome = number(0, 1024)
        .and_then(|bits| Device::best().map_err(Into::into).and_then(|device| run(&device, bits, number(1, 1000)?)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(device: &Device, prime_bits: u32, count: u32) -> Outcome {
    let start = Instant::now();
    let key = SecretKey::generate(prime_bits)?;
    let public = key.public();
    println!("a key with a modulus of {} bits in {:.2?}", public.modulus().bits(), start.elapsed());

    let length = public.message_bytes();
    let messages: Vec<Vec<u8>> = (0..count)
        .map(|i| {
            let text = format!("message {i} of {count}, ");
            text.bytes().cycle().take(length).collect()
        })
        .collect();
    let encryption = Encryption::new(device, &public)?;
    let start = Instant::now();
    let ciphertexts = encryption.encrypt_host(&messages)?;
    println!("{count} messages of {length} bytes encrypted on {} in {:.2?}", device.info().name, start.elapsed());

    let modulus = BigUint::from_bytes_le(&public.modulus().to_le_bytes());
    for (message, ciphertext) in messages.iter().zip(&ciphertexts) {
        let number = BigUint::from_bytes_be(&[message.as_slice(), &message[length - REDUNDANCY..]].concat());
        if BigUint::from_bytes_le(&ciphertext.to_le_bytes()) != &number * &number % &modulus {
            return Err("a ciphertext is not the square of its message".into());
        }
    }

    let decryption = Decryption::new(device, &key)?;
    let start = Instant::now();
    let decrypted = decryption.decrypt_host(&ciphertexts)?;
    println!("decrypted in {:.2?}", start.elapsed());
    let right = decrypted.iter().zip(&messages).all(|(found, message)| found.as_deref() == Some(message));
    if !right || decrypted.len() != messages.len() {
        return Err("a message did not come back".into());
    }
    println!("all messages came back, each one of four roots");
    Ok(())
}

#[test]
fn messages_come_back() -> Outcome {
    run(&Device::cpu(), 512, 20)
}
