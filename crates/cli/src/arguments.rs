//! The arguments of the program.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use evariste_backend::DeviceId;
use evariste_groth16::{Check, ProverConfig};

const EXIT_CODES: &str = "\
Exit codes:
  0  all is well
  1  the answer is no: an invalid proof, a witness that does not satisfy the constraints, a wrong tag
  2  the arguments are wrong
  3  a file cannot be read or written
  4  the contents of a file are invalid, or files do not fit together
  5  the device is missing, has no room or fails";

#[derive(Parser, Debug)]
#[command(name = "evariste", version, about = "Groth16 proofs and AES of files, on any GPU and the CPU")]
#[command(after_help = EXIT_CODES, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Prove a small circuit that the program carries, and verify the proof
    Demo(Demo),
    /// Prove that witnesses satisfy the constraints of a key
    #[command(after_help = EXIT_CODES)]
    Prove(Prove),
    /// Verify a proof
    #[command(after_help = EXIT_CODES)]
    Verify(Verify),
    /// Make a key for tests and benches, which is not secure
    Setup(Setup),
    /// Encrypt a file by AES
    #[command(after_help = EXIT_CODES)]
    Encrypt(Encrypt),
    /// Decrypt a file by AES
    #[command(after_help = EXIT_CODES)]
    Decrypt(Decrypt),
    /// Time proofs with a key of yours, or with a circuit of a given size
    Bench(Bench),
    /// List the devices
    Devices,
    /// Print a script that completes the arguments in a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// The device that works.
#[derive(Args, Debug)]
pub(crate) struct Target {
    /// The device: cpu, cuda:N or wgpu:N. Without it, EVARISTE_DEVICE, else the first GPU, else the CPU
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<DeviceId>,
}

/// The choices of a prover.
#[derive(Args, Debug)]
pub(crate) struct Choices {
    /// The checks of the key's points
    #[arg(long, value_enum, value_name = "CHECK", default_value_t = Points::Full)]
    check: Points,
    /// The same as --check trusted, for a key that has passed a full check before
    #[arg(long, conflicts_with = "check")]
    trusted: bool,
    /// Bytes of device memory for multiples of the key's points, such as 4GiB: proofs are faster
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = bytes)]
    tables: u64,
}

impl Choices {
    pub(crate) fn check(&self) -> Check {
        match self.check {
            _ if self.trusted => Check::Trusted,
            Points::Full => Check::Full,
            Points::Curve => Check::Curve,
            Points::Trusted => Check::Trusted,
        }
    }

    pub(crate) fn config(&self) -> ProverConfig {
        ProverConfig::default().tables(self.tables)
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Points {
    /// Each point is on its curve and in the subgroup
    Full,
    /// Each point is on its curve
    Curve,
    /// No check, for a key that has passed a full check before
    Trusted,
}

#[derive(Args, Debug)]
pub(crate) struct Demo {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Write the key, the witness and the proof into this folder, for the other commands and for snarkjs
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out_dir: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Prove {
    /// The proving key, from snarkjs
    #[arg(long, value_name = "FILE")]
    pub(crate) zkey: PathBuf,
    /// The witness, from circom. With --out-dir, there may be many
    #[arg(long, value_name = "FILE", num_args = 1.., required_unless_present = "wtns_list")]
    pub(crate) wtns: Vec<PathBuf>,
    /// A text with the path of a witness on each line; - for the standard input
    #[arg(long, value_name = "FILE", requires = "out_dir")]
    pub(crate) wtns_list: Option<PathBuf>,
    /// The proof that is written
    #[arg(long, value_name = "FILE", default_value = "proof.json")]
    pub(crate) proof: PathBuf,
    /// The public inputs that are written
    #[arg(long, value_name = "FILE", default_value = "public.json")]
    pub(crate) public: PathBuf,
    /// Write NAME.proof.json and NAME.public.json for each NAME.wtns into this folder, as soon as the proof is made
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["proof", "public"])]
    pub(crate) out_dir: Option<PathBuf>,
    /// Go on after a witness that fails. The exit code is that of the first one
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// The constraints, from circom: an error names the first one that a witness does not satisfy
    #[arg(long, value_name = "FILE")]
    pub(crate) r1cs: Option<PathBuf>,
    /// Give out proofs without verifying them
    #[arg(long)]
    pub(crate) no_verify: bool,
    #[command(flatten)]
    pub(crate) choices: Choices,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// The verifying key, from snarkjs
    #[arg(long, value_name = "FILE", default_value = "verification_key.json")]
    pub(crate) key: PathBuf,
    /// The proof
    #[arg(long, value_name = "FILE", default_value = "proof.json")]
    pub(crate) proof: PathBuf,
    /// The public inputs
    #[arg(long, value_name = "FILE", default_value = "public.json")]
    pub(crate) public: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct Setup {
    /// You know that whoever runs this command could keep its secrets, and prove anything with them
    #[arg(long)]
    pub(crate) insecure: bool,
    /// The constraints, from circom
    #[arg(long, value_name = "FILE")]
    pub(crate) r1cs: PathBuf,
    /// The proving key that is written
    #[arg(long, value_name = "FILE")]
    pub(crate) zkey: PathBuf,
    /// The verifying key that is written
    #[arg(long, value_name = "FILE", default_value = "verification_key.json")]
    pub(crate) key: PathBuf,
}

/// The mode, key and files of AES.
#[derive(Args, Debug)]
pub(crate) struct Cipher {
    /// The mode
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Mode::Gcm)]
    pub(crate) mode: Mode,
    /// A file with the key of 128, 192 or 256 bits in hexadecimal digits; - for the standard input
    #[arg(long, value_name = "FILE", required_unless_present = "key")]
    pub(crate) key_file: Option<PathBuf>,
    /// The key in hexadecimal digits. Other users of the machine may see it
    #[arg(long, value_name = "HEX", conflicts_with = "key_file")]
    pub(crate) key: Option<String>,
    /// The file that is read
    pub(crate) input: PathBuf,
    /// The file that is written, when all of it is complete
    pub(crate) output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Encrypts and authenticates: the ciphertext ends with a tag of 16 bytes
    Gcm,
    /// Encrypts alone, as `openssl enc -aes-256-ctr` does
    Ctr,
}

#[derive(Args, Debug)]
pub(crate) struct Encrypt {
    #[command(flatten)]
    pub(crate) cipher: Cipher,
    /// The nonce of GCM (12 bytes), or the first counter block of CTR (16 bytes), in hexadecimal digits. Never use one
    /// twice with a key. Without it, the program draws one and prints it
    #[arg(long, value_name = "HEX")]
    pub(crate) nonce: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Args, Debug)]
pub(crate) struct Decrypt {
    #[command(flatten)]
    pub(crate) cipher: Cipher,
    /// The nonce or counter block that the file was encrypted with
    #[arg(long, value_name = "HEX")]
    pub(crate) nonce: String,
    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// The proving key, from snarkjs
    #[arg(long, value_name = "FILE", requires = "wtns", required_unless_present = "log_size")]
    pub(crate) zkey: Option<PathBuf>,
    /// The witness, from circom
    #[arg(long, value_name = "FILE", requires = "zkey")]
    pub(crate) wtns: Option<PathBuf>,
    /// Instead of files, a circuit over BN254 with a domain of 2^N, 2^N - 2 constraints, and a key of the program's own
    #[arg(long, value_name = "N", conflicts_with = "zkey", value_parser = clap::value_parser!(u32).range(2..=26))]
    pub(crate) log_size: Option<u32>,
    /// The proofs that are timed
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) count: u32,
    #[command(flatten)]
    pub(crate) choices: Choices,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// Reads a number of bytes, perhaps with a unit.
fn bytes(text: &str) -> Result<u64, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("", 0)];
    let (digits, log) =
        units.iter().find_map(|(unit, log)| Some((text.strip_suffix(unit)?, *log))).unwrap_or((text, 0));
    let number: u64 =
        digits.trim_end().parse().map_err(|_| "expected a number of bytes, KiB, MiB or GiB".to_owned())?;
    number.checked_mul(1 << log).ok_or_else(|| "more bytes than 64 bits can count".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes("0"), Ok(0));
        assert_eq!(bytes("17"), Ok(17));
        assert_eq!(bytes("2KiB"), Ok(2048));
        assert_eq!(bytes("4 GiB"), Ok(4 << 30));
        assert!(["", "GiB", "-1", "1.5GiB", "1GB", "17179869184GiB"].iter().all(|text| bytes(text).is_err()));
    }
}
