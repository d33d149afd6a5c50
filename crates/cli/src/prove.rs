//! Proofs.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Error, Result};
use ark_ff::PrimeField;
use evariste_backend::Device;
use evariste_groth16::{
    CircomCurve, Claim, Curve, Error as Groth16Error, Key, Prover, R1cs, Result as Groth16Result, Witness, snarkjs,
};
use serde_json::{Value, json};

use crate::{
    arguments::Prove,
    devices,
    exit::{Usage, is_of_device},
    files,
    outcome::{Outcome, milliseconds, path, report, time},
    progress::{Items, Step},
};

/// A witness, and the files of its proof.
struct Job {
    witness: PathBuf,
    proof: PathBuf,
    public: PathBuf,
}

/// Proves all witnesses with one key.
pub(crate) fn run(arguments: &Prove) -> Result<Outcome> {
    let jobs = jobs(arguments)?;
    let curve = Curve::of_zkey(&arguments.zkey)?;
    let device = devices::open(&arguments.target)?;
    match curve {
        Curve::Bn254 => prove::<ark_bn254::Bn254>(arguments, &device, &jobs),
        Curve::Bls12381 => prove::<ark_bls12_381::Bls12_381>(arguments, &device, &jobs),
    }
}

/// Finds the files that are read and written. None of the latter is written twice.
fn jobs(arguments: &Prove) -> Result<Vec<Job>> {
    let mut witnesses = arguments.wtns.clone();
    if let Some(list) = &arguments.wtns_list {
        let text = files::text_or_input(list)?;
        witnesses.extend(text.lines().filter(|line| !line.is_empty()).map(PathBuf::from));
    }
    let Some(folder) = &arguments.out_dir else {
        let [witness] = witnesses.as_slice() else {
            let count = witnesses.len();
            return Err(Usage(format!("{count} witnesses need --out-dir, a folder for their proofs")).into());
        };
        let (proof, public) = (&arguments.proof, &arguments.public);
        files::expect_targets([proof, public])?;
        return Ok(vec![Job { witness: witness.clone(), proof: proof.clone(), public: public.clone() }]);
    };
    let mut stems = HashSet::new();
    let job = |witness: PathBuf| {
        let Some(stem) = witness.file_stem() else {
            return Err(Usage(format!("{} is not the name of a file", witness.display())));
        };
        if !stems.insert(stem.to_owned()) {
            let stem = stem.to_string_lossy();
            return Err(Usage(format!("two witnesses have the name {stem}, and so would their proofs")));
        }
        let file = |end: &str| {
            let mut name = stem.to_owned();
            name.push(end);
            folder.join(name)
        };
        let (proof, public) = (file(".proof.json"), file(".public.json"));
        Ok(Job { witness, proof, public })
    };
    let jobs = witnesses.into_iter().map(job).collect::<Result<Vec<_>, _>>()?;
    if jobs.is_empty() {
        return Err(Usage("there is no witness to prove".into()).into());
    }
    if folder.exists() {
        jobs.iter().try_for_each(|job| files::expect_targets([&job.proof, &job.public]))?;
    }
    Ok(jobs)
}

fn prove<E: CircomCurve>(arguments: &Prove, device: &Device, jobs: &[Job]) -> Result<Outcome> {
    let start = Instant::now();
    let r1cs = arguments.r1cs.as_deref().map(R1cs::from_file).transpose()?;
    let prover = {
        let _step = Step::new("reading the key");
        let key = Key::<E>::from_zkey_with(&arguments.zkey, arguments.choices.check())?;
        Prover::with_config(device, &key, arguments.choices.config().verify(!arguments.no_verify))?
    };
    let prepared = start.elapsed();
    if let Some(folder) = &arguments.out_dir {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let mut made = Made { total: jobs.len(), prepared, ..Made::default() };
    let progress = Items::new("proving", jobs.len() as u64);
    let start = Instant::now();
    let witnesses = jobs.iter().map(|job| read(&job.witness, r1cs.as_ref()));
    for (job, claim) in jobs.iter().zip(prover.proofs(witnesses)?) {
        match claim.map_err(|error| of_witness(error, &job.witness)).and_then(|claim| write(job, &claim)) {
            Ok(()) => made.proofs.push(entry(job)),
            Err(error) => {
                made.failed.push(json!({ "witness": path(&job.witness), "error": format!("{error:#}") }));
                let ends = !arguments.keep_going || is_of_device(&error);
                if arguments.keep_going {
                    progress.suspend(|| report(&error));
                }
                made.error.get_or_insert(error);
                if ends {
                    break;
                }
            }
        }
        progress.set((made.proofs.len() + made.failed.len()) as u64);
    }
    made.proving = start.elapsed();
    drop(progress);
    if arguments.keep_going {
        let context = format!("{} of {} witnesses failed, the first of them", made.failed.len(), jobs.len());
        made.error = made.error.map(|error| error.context(context));
    }
    Ok(made.outcome(device, E::NAME, jobs))
}

/// Reads a witness, and checks it if the constraints are there.
fn read<F: PrimeField>(file: &Path, r1cs: Option<&R1cs<F>>) -> Groth16Result<Witness<F>> {
    let witness = Witness::from_file(file)?;
    r1cs.map_or(Ok(()), |r1cs| r1cs.check(&witness))?;
    Ok(witness)
}

/// Names the witness in an error, unless the error names it.
fn of_witness(error: Groth16Error, file: &Path) -> Error {
    let file = file.display();
    match error {
        Groth16Error::Io { .. } | Groth16Error::File { .. } => error.into(),
        Groth16Error::Rejected => Error::from(error).context(format!(
            "{file}: the witness does not satisfy the constraints (--r1cs FILE names the first of them)"
        )),
        _ => Error::from(error).context(file.to_string()),
    }
}

fn write<E: CircomCurve>(job: &Job, (proof, public): &Claim<E>) -> Result<()> {
    let (proof, public) = (snarkjs::write_proof::<E>(proof), snarkjs::write_public::<E>(public));
    files::write(&[(&job.proof, proof), (&job.public, public)])
}

fn entry(job: &Job) -> Value {
    json!({ "witness": path(&job.witness), "proof": path(&job.proof), "public": path(&job.public) })
}

/// The proofs that have been made, and the witnesses that failed.
#[derive(Default)]
struct Made {
    total: usize,
    prepared: Duration,
    proving: Duration,
    proofs: Vec<Value>,
    failed: Vec<Value>,
    /// The first one.
    error: Option<Error>,
}

impl Made {
    fn outcome(self, device: &Device, curve: &str, jobs: &[Job]) -> Outcome {
        let Self { total, prepared, proving, proofs, failed, error } = self;
        let count = proofs.len();
        let on = format!("on {device}; the key took {}", time(prepared));
        let text = match jobs {
            _ if count == 0 => String::new(),
            [job] => {
                format!("{} and {}: {} {on}", job.proof.display(), job.public.display(), time(proving))
            }
            _ => format!("{count} of {total} proofs: {}, {} each, {on}", time(proving), time(proving / count as u32)),
        };
        let json = json!({
            "curve": curve,
            "device": device.info().id.to_string(),
            "device_name": device.info().name,
            "prepare_ms": milliseconds(prepared),
            "prove_ms": milliseconds(proving),
            "proofs": proofs,
            "failed": failed,
        });
        Outcome::new(text, json).with_error(error)
    }
}
