//! The first program: which device there is, data on it, two operations, and the result back.
//!
//! ```text
//! EVARISTE_DEVICE=cpu cargo run --release --example hello
//! ```

use std::error::Error;

use ark_bls12_381::Fr;
use ark_ff::{AdditiveGroup, FftField};
use evariste::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    // CUDA, else a GPU by wgpu, else the CPU; EVARISTE_DEVICE names another one.
    let device = Device::best()?;
    println!("on {device}");

    // A polynomial of 2^16 coefficients over the scalar field of BLS12-381, in the memory of the device.
    let coefficients: Vec<Fr> = (0..1u64 << 16).map(Fr::from).collect();
    let mut values = device.upload::<Mont<Fr>>(&coefficients)?;

    // Its values at the roots of unity, each doubled, and the polynomial that has these values.
    let ntt = Ntt::<Fr>::new(&device, 16)?;
    ntt.forward(&mut values)?;
    let root = Fr::get_root_of_unity(1 << 16).ok_or("the field has no such root")?;
    let at_root = coefficients.iter().rev().fold(Fr::ZERO, |sum, x| sum * root + x);
    if values.view(1..2)?.to_vec()? != [at_root] {
        return Err("the transform differs from the polynomial's value".into());
    }
    Vector::new(&device).scale_assign(&mut values, Fr::from(2))?;
    ntt.inverse(&mut values)?;

    let doubled: Vec<Fr> = coefficients.iter().map(AdditiveGroup::double).collect();
    if values.to_vec()? != doubled {
        return Err("the result differs".into());
    }
    println!("2^16 values, doubled, and back: right");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs() {
        super::main().unwrap();
    }
}
