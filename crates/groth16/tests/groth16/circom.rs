//! circom's tools beside what is made here: snarkjs takes our proofs and keys, and refuses what was changed; and circuits of
//! circomlib, compiled when the test runs.
//!
//! `EVARISTE_CIRCOM` names a folder with the npm packages of `.ci/circom/package.json`, which must be there then. Without the
//! variable, tests that need snarkjs alone run where the search path has it, and others are reported as ignored.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ff::UniformRand;
use ark_groth16::Proof;
use ark_std::test_rng;
use evariste_backend::Device;
use evariste_groth16::{CircomCurve, Key, Prover, R1cs, Verifier, Witness, reference, snarkjs};
use libtest_mimic::{Failed, Trial};
use sha2::{Digest, Sha256};

/// The variable that names the packages' folder.
const VARIABLE: &str = "EVARISTE_CIRCOM";

/// The trials. What a machine lacks for one is its reason to be skipped.
pub(crate) fn trials() -> Vec<Trial> {
    // Programs run in folders of their own.
    let packages = env::var_os(VARIABLE).map(|folder| fs::canonicalize(&folder).unwrap_or_else(|_| folder.into()));
    let program = match &packages {
        Some(packages) => packages.join("node_modules/.bin/snarkjs").display().to_string(),
        None => "snarkjs".to_owned(),
    };
    // It ends with an error after it has told its commands.
    let start = || Command::new(&program).arg("--help").output().err().map(|error| format!("{program}: {error}"));
    let no_snarkjs = if packages.is_some() { None } else { start() };
    let no_packages = if packages.is_some() { None } else { Some(format!("{VARIABLE} is not set")) };
    let trial = |name: &str, reason: &Option<String>, run: fn(&str, &Path) -> Result<(), Failed>| {
        let (program, packages) = (program.clone(), packages.clone().unwrap_or_default());
        let kind = reason.as_ref().map(|reason| format!("skipped: {reason}"));
        let trial = Trial::test(format!("circom::{name}"), move || run(&program, &packages));
        trial.with_ignored_flag(kind.is_some()).with_kind(kind.unwrap_or_default())
    };
    vec![
        trial("bn254", &no_snarkjs, |program, _| takes_proofs::<Bn254>(program, "merkle")),
        trial("bls12-381", &no_snarkjs, |program, _| takes_proofs::<Bls12_381>(program, "chain")),
        trial("poseidon_path", &no_packages, poseidon_path),
        trial("sha256", &no_packages, sha256),
    ]
}

/// A folder for one test, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(place: &Path, name: &str) -> Result<Self, Failed> {
        let path = place.join(format!("evariste-groth16-{name}-{}", process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// snarkjs' program, in a folder of its own.
struct Snarkjs<'a> {
    program: &'a str,
    folder: &'a Path,
}

impl Snarkjs<'_> {
    fn run(&self, arguments: &[&str]) -> Result<process::Output, Failed> {
        Ok(Command::new(self.program).args(arguments).current_dir(self.folder).output()?)
    }

    fn write(&self, name: &str, text: String) -> Result<(), Failed> {
        Ok(fs::write(self.folder.join(name), text)?)
    }

    fn verifies(&self) -> Result<bool, Failed> {
        let output = self.run(&["groth16", "verify", "verification_key.json", "public.json", "proof.json"])?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match (text.contains("OK!"), text.contains("Invalid proof")) {
            (true, false) if output.status.success() => Ok(true),
            (false, true) if !output.status.success() => Ok(false),
            _ => Err(format!("snarkjs said neither yes nor no: {text}").into()),
        }
    }

    /// It verifies a proof, and refuses a changed one and other public inputs.
    fn takes<E: CircomCurve>(&self, key: &Key<E>, proof: &Proof<E>, public: &[E::ScalarField]) -> Result<(), Failed> {
        self.write("verification_key.json", snarkjs::write_verifying_key::<E>(key.verifying_key()))?;
        self.write("public.json", snarkjs::write_public::<E>(public))?;
        self.write("proof.json", snarkjs::write_proof::<E>(proof))?;
        expect(self.verifies()?, true, "our proof")?;

        let mut changed = proof.clone();
        changed.c = proof.a;
        self.write("proof.json", snarkjs::write_proof::<E>(&changed))?;
        expect(self.verifies()?, false, "a changed proof")?;
        self.write("proof.json", snarkjs::write_proof::<E>(proof))?;
        let mut others = public.to_vec();
        others[0] += E::ScalarField::from(1_u64);
        self.write("public.json", snarkjs::write_public::<E>(&others))?;
        expect(self.verifies()?, false, "other public inputs")
    }

    /// A proof that it makes with our key verifies here.
    fn proves<E: CircomCurve>(&self, key: &Key<E>) -> Result<(), Failed> {
        key.write_zkey(&mut fs::File::create(self.folder.join("circuit.zkey"))?)?;
        let output = self.run(&["groth16", "prove", "circuit.zkey", "witness.wtns", "proof.json", "public.json"])?;
        expect(output.status.success(), true, &String::from_utf8_lossy(&output.stdout))?;
        let proof = snarkjs::read_proof::<E>(&fs::read_to_string(self.folder.join("proof.json"))?)?;
        let public = snarkjs::read_public::<E>(&fs::read_to_string(self.folder.join("public.json"))?)?;
        Ok(Verifier::new(key.verifying_key())?.verify(&proof, &public)?)
    }
}

/// Proofs under snarkjs' key and under a key of our own.
fn takes_proofs<E: CircomCurve>(program: &str, circuit: &str) -> Result<(), Failed> {
    let folder = Folder::new(&env::temp_dir(), E::NAME)?;
    let snarkjs = Snarkjs { program, folder: &folder.0 };
    let data = data().join(format!("{circuit}-{}", E::NAME));
    let rng = &mut test_rng();
    let witness = Witness::from_file(data.join("witness.wtns"))?;
    let r1cs = R1cs::from_file(data.join("circuit.r1cs"))?;
    let keys = [Key::<E>::from_zkey(data.join("circuit.zkey"))?, Key::insecure(&r1cs, rng)?];
    for key in &keys {
        let [r, s] = [(); 2].map(|()| E::ScalarField::rand(rng));
        let proof = reference::prove(key, &witness, r, s)?;
        snarkjs.takes(key, &proof, witness.public(key.public_inputs())?)?;
    }
    fs::copy(data.join("witness.wtns"), folder.0.join("witness.wtns"))?;
    snarkjs.proves(&keys[1])
}

/// A path of 20 Poseidon hashes: 4,900 constraints.
fn poseidon_path(program: &str, packages: &Path) -> Result<(), Failed> {
    let siblings: Vec<_> = (0..20).map(|level| format!("\"{}\"", 1000 + level)).collect();
    let sides: Vec<_> = (0..20).map(|level| format!("\"{}\"", level % 3 % 2)).collect();
    let (siblings, sides) = (siblings.join(","), sides.join(","));
    let input = format!("{{\"leaf\":\"7\",\"siblings\":[{siblings}],\"is_right\":[{sides}]}}");
    compiled(program, packages, "path", &input).map(drop)
}

/// The hash of a block: 31,264 constraints. The public inputs are its bits.
fn sha256(program: &str, packages: &Path) -> Result<(), Failed> {
    let bits = |bytes: &[u8]| -> Vec<u8> {
        bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect()
    };
    let message: Vec<u8> = (0..55u8).map(|i| i.wrapping_mul(37)).collect();
    let digits: Vec<_> = bits(&message).iter().map(|bit| format!("\"{bit}\"")).collect();
    let public = compiled(program, packages, "sha256", &format!("{{\"message\":[{}]}}", digits.join(",")))?;
    let expected: Vec<_> = bits(&Sha256::digest(&message)).into_iter().map(ark_bn254::Fr::from).collect();
    expect(public == expected, true, "the hash of the message")
}

/// Compiles a circuit, computes the witness of an input, and proves it with a key of our own. Returns the public inputs.
fn compiled(program: &str, packages: &Path, circuit: &str, input: &str) -> Result<Vec<ark_bn254::Fr>, Failed> {
    // circom sees files below the folder that it runs in alone.
    let folder = Folder::new(packages, circuit)?;
    let name = folder.0.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    fs::copy(data().join(format!("{circuit}.circom")), folder.0.join(format!("{circuit}.circom")))?;
    fs::write(folder.0.join("input.json"), input)?;
    let run = |program: &str, arguments: &[&str]| -> Result<(), Failed> {
        let output = Command::new(program).args(arguments).current_dir(packages).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        expect(output.status.success(), true, &format!("{program} {arguments:?}: {text}"))
    };
    let at = |file: &str| format!("{name}/{file}");
    let [source, wasm, calculator] = [
        at(&format!("{circuit}.circom")),
        at(&format!("{circuit}_js/{circuit}.wasm")),
        at(&format!("{circuit}_js/generate_witness.js")),
    ];
    run("node", &["node_modules/.bin/circom2", &source, "--r1cs", "--wasm", "-l", "node_modules", "-o", name])?;
    run("node", &[&calculator, &wasm, &at("input.json"), &at("witness.wtns")])?;

    let r1cs = R1cs::from_file(folder.0.join(format!("{circuit}.r1cs")))?;
    let witness = Witness::from_file(folder.0.join("witness.wtns"))?;
    r1cs.check(&witness)?;
    let device = Device::cpu();
    let key = Key::<Bn254>::insecure_on(&device, &r1cs, &mut test_rng())?;
    let public = witness.public(key.public_inputs())?;
    let proof = Prover::new(&device, &key)?.prove(&witness)?;
    let snarkjs = Snarkjs { program, folder: &folder.0 };
    snarkjs.takes(&key, &proof, public)?;
    snarkjs.proves(&key)?;
    Ok(public.to_vec())
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn expect(actual: bool, expected: bool, what: &str) -> Result<(), Failed> {
    if actual == expected { Ok(()) } else { Err(format!("{what}: found {actual}, expected {expected}").into()) }
}
