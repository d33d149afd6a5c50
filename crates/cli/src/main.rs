#![doc = include_str!("../README.md")]

mod arguments;
mod bench;
mod circuit;
mod demo;
mod devices;
mod encrypt;
mod exit;
mod files;
mod outcome;
mod progress;
mod prove;
mod setup;
mod verify;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};
use serde_json::json;

use crate::{
    arguments::{Arguments, Command},
    outcome::Outcome,
};

fn main() -> ExitCode {
    let Arguments { command, json } = Arguments::parse();
    outcome::print(run(&command), json)
}

fn run(command: &Command) -> Result<Outcome> {
    match command {
        Command::Demo(demo) => demo::run(demo),
        Command::Prove(prove) => prove::run(prove),
        Command::Verify(verify) => verify::run(verify),
        Command::Setup(setup) => setup::run(setup),
        Command::Encrypt(encrypt) => encrypt::encrypt(encrypt),
        Command::Decrypt(decrypt) => encrypt::decrypt(decrypt),
        Command::Bench(bench) => bench::run(bench),
        Command::Devices => Ok(devices::list()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "evariste", &mut script);
            let script = String::from_utf8_lossy(&script).trim_end().to_owned();
            let json = json!({ "shell": shell.to_string(), "script": script });
            Ok(Outcome::new(script, json))
        }
    }
}
