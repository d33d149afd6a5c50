#![doc = include_str!("../README.md")]

mod constants;
mod expression;
mod program;
mod run;
mod steps;
mod text;

pub use constants::Constants;
pub use expression::Expression;
pub use program::{Builder, Line, Op, Program};
pub use run::{Port, Slots};
pub use steps::Step;
pub use text::{Text, cuda_product};
