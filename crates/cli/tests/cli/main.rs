//! Runs the program on the CPU as a user would, with the files of `data` and those of `evariste-groth16`'s tests.

mod aes;
mod groth16;
mod program;
mod surface;
