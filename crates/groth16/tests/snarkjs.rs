//! snarkjs takes the proofs that are made here, and the keys. `EVARISTE_SNARKJS` names its program, which must be there
//! then. Without the variable, the tests run where the search path has it, and elsewhere they are reported as ignored.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command, ExitCode},
};

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ff::UniformRand;
use ark_std::test_rng;
use evariste_groth16::{CircomCurve, Key, R1cs, Verifier, Witness, reference, snarkjs};
use libtest_mimic::{Arguments, Failed, Trial};

/// The variable that names snarkjs' program.
const VARIABLE: &str = "EVARISTE_SNARKJS";

fn main() -> ExitCode {
    let named = env::var(VARIABLE).ok();
    let program = named.clone().unwrap_or_else(|| "snarkjs".to_owned());
    // It ends with an error after it has told its commands.
    let start = || Command::new(&program).arg("--help").output().err().map(|error| format!("{program}: {error}"));
    let reason = if named.is_some() { None } else { start() };
    let trial = |name: &str, run: fn(&str) -> Result<(), Failed>| {
        let (program, kind) = (program.clone(), reason.as_ref().map(|reason| format!("skipped: {reason}")));
        let trial = Trial::test(name, move || run(&program)).with_ignored_flag(kind.is_some());
        trial.with_kind(kind.unwrap_or_default())
    };
    let trials = vec![
        trial("bn254", |program| takes_proofs::<Bn254>(program, "merkle")),
        trial("bls12-381", |program| takes_proofs::<Bls12_381>(program, "chain")),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A folder for one test, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self, Failed> {
        let path = env::temp_dir().join(format!("evariste-groth16-{name}-{}", process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// snarkjs verifies our proof under its key and under a key of our own, makes a proof with our key that verifies here,
/// and refuses a changed proof and other public inputs.
fn takes_proofs<E: CircomCurve>(program: &str, circuit: &str) -> Result<(), Failed> {
    let folder = Folder::new(E::NAME)?;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(format!("{circuit}-{}", E::NAME));
    let run = |arguments: &[&str]| Command::new(program).args(arguments).current_dir(&folder.0).output();
    let verifies = || -> Result<bool, Failed> {
        let output = run(&["groth16", "verify", "verification_key.json", "public.json", "proof.json"])?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match (text.contains("OK!"), text.contains("Invalid proof")) {
            (true, false) if output.status.success() => Ok(true),
            (false, true) if !output.status.success() => Ok(false),
            _ => Err(format!("snarkjs said neither yes nor no: {text}").into()),
        }
    };
    let write = |name: &str, text: String| fs::write(folder.0.join(name), text);
    let rng = &mut test_rng();
    let witness = Witness::from_file(data.join("witness.wtns"))?;
    let r1cs = R1cs::from_file(data.join("circuit.r1cs"))?;
    let keys = [Key::<E>::from_zkey(data.join("circuit.zkey"))?, Key::insecure(&r1cs, rng)?];
    for key in &keys {
        let public = witness.public(key.public_inputs())?;
        let [r, s] = [(); 2].map(|()| E::ScalarField::rand(rng));
        let proof = reference::prove(key, &witness, r, s)?;
        write("verification_key.json", snarkjs::write_verifying_key::<E>(key.verifying_key()))?;
        write("public.json", snarkjs::write_public::<E>(public))?;
        write("proof.json", snarkjs::write_proof::<E>(&proof))?;
        expect(verifies()?, true, "our proof")?;

        let mut changed = proof.clone();
        changed.c = proof.a;
        write("proof.json", snarkjs::write_proof::<E>(&changed))?;
        expect(verifies()?, false, "a changed proof")?;
        write("proof.json", snarkjs::write_proof::<E>(&proof))?;
        let mut others = public.to_vec();
        others[0] += E::ScalarField::from(1_u64);
        write("public.json", snarkjs::write_public::<E>(&others))?;
        expect(verifies()?, false, "other public inputs")?;
    }
    let [_, key] = keys;
    key.write_zkey(&mut fs::File::create(folder.0.join("circuit.zkey"))?)?;
    fs::copy(data.join("witness.wtns"), folder.0.join("witness.wtns"))?;
    let output = run(&["groth16", "prove", "circuit.zkey", "witness.wtns", "proof.json", "public.json"])?;
    expect(output.status.success(), true, &String::from_utf8_lossy(&output.stdout))?;
    let proof = snarkjs::read_proof::<E>(&fs::read_to_string(folder.0.join("proof.json"))?)?;
    let public = snarkjs::read_public::<E>(&fs::read_to_string(folder.0.join("public.json"))?)?;
    Verifier::new(key.verifying_key())?.verify(&proof, &public)?;
    Ok(())
}

fn expect(actual: bool, expected: bool, what: &str) -> Result<(), Failed> {
    if actual == expected { Ok(()) } else { Err(format!("{what}: found {actual}, expected {expected}").into()) }
}
