//! Proofs, their verification, and keys.

use std::fs;

use crate::program::{Folder, command, data};

const PROVE: [&str; 5] = ["prove", "--zkey", "circuit.zkey", "--wtns", "witness.wtns"];

/// A folder with the key and the witness.
fn circuit(name: &str) -> Folder {
    let folder = Folder::new(name);
    for file in ["circuit.zkey", "witness.wtns"] {
        fs::copy(data(file), folder.path(file)).unwrap();
    }
    folder
}

/// Files of another crate's tests, where this crate stands in its workspace.
fn chain(curve: &str, name: &str) -> Vec<u8> {
    let path = format!("{}/../groth16/tests/data/chain-{curve}/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn with(head: &[&'static str], tail: &[&'static str]) -> Vec<&'static str> {
    [head, tail].concat()
}

#[test]
fn the_demo_proves_and_its_files_verify() {
    let folder = Folder::new("demo");
    let run = folder.run(&["demo", "--out-dir", "files"]);
    run.expect(0, &[]);
    assert!(run.out.contains("first proof") && run.out.contains("on cpu"), "{}", run.out);
    let files = |name: &str| format!("files/{name}");
    let [key, proof, public] = ["verification_key.json", "proof.json", "public.json"].map(files);
    let verify = ["verify", "--key", &key, "--proof", &proof, "--public", &public];
    folder.run(&verify).expect(0, &[]);
    assert_eq!(folder.run(&["demo", "--json"]).json()["valid"], true);
}

#[test]
fn proofs_verify_and_changed_ones_do_not() {
    let folder = circuit("prove");
    folder.run(&["demo", "--out-dir", "."]).expect(0, &[]);
    let json = folder.run(&with(&PROVE, &["--json"])).json();
    assert_eq!((&json["curve"], &json["device"]), (&"bn128".into(), &"cpu".into()));
    assert_eq!(json["proofs"][0]["proof"], "proof.json");
    let run = folder.run(&["verify"]);
    run.expect(0, &[]);
    assert_eq!(run.out, "valid\n");
    let json = folder.run(&["verify", "--json"]).json();
    assert_eq!((&json["valid"], &json["exit_code"]), (&true.into(), &0.into()));

    let [proof, public] = ["proof.json", "public.json"].map(|name| String::from_utf8(folder.read(name)).unwrap());
    // Another input; another point, which is none of the curve; points that changed places; no number below p.
    folder.write("public.json", public.replacen("146", "147", 1));
    folder.run(&["verify"]).expect(1, &["invalid proof"]);
    let json = folder.run(&["verify", "--json"]).json();
    assert_eq!((&json["valid"], &json["exit_code"]), (&false.into(), &1.into()));
    folder.write("public.json", &public);
    let parsed: serde_json::Value = serde_json::from_str(&proof).unwrap();
    let mut changed = parsed.clone();
    changed["pi_a"][0] = "1".into();
    folder.write("proof.json", changed.to_string());
    folder.run(&["verify"]).expect(1, &["proof.json", "pi_a"]);
    let mut changed = parsed.clone();
    changed["pi_a"] = parsed["pi_c"].clone();
    folder.write("proof.json", changed.to_string());
    folder.run(&["verify"]).expect(1, &["does not hold"]);
    let mut changed = parsed.clone();
    changed["pi_c"][1] = "9".repeat(77).into();
    folder.write("proof.json", changed.to_string());
    folder.run(&["verify"]).expect(1, &["pi_c[1]"]);

    // What is no proof at all is invalid in another way.
    folder.write("proof.json", "{");
    folder.run(&["verify"]).expect(4, &["proof.json", "line 1"]);
    fs::remove_file(folder.path("proof.json")).unwrap();
    folder.run(&["verify"]).expect(3, &["proof.json"]);
}

#[test]
fn bad_files_leave_the_old_ones() {
    let folder = circuit("bad");
    folder.write("proof.json", "old");
    let (zkey, wtns) = (folder.read("circuit.zkey"), folder.read("witness.wtns"));
    let expect = |code, texts: &[&str]| {
        folder.run(&PROVE).expect(code, texts);
        assert_eq!(folder.names(), ["circuit.zkey", "proof.json", "witness.wtns"]);
        assert_eq!(folder.read("proof.json"), b"old");
    };
    // The last section is that of the contributions.
    folder.write("circuit.zkey", &zkey[..zkey.len() - 1]);
    expect(4, &["circuit.zkey: section 10 (contributions), byte "]);
    folder.write("circuit.zkey", &zkey[..200]);
    expect(4, &["circuit.zkey: section ", ", byte ", "found"]);
    folder.write("circuit.zkey", [&zkey[..], &[0]].concat());
    expect(4, &["circuit.zkey: file header, byte ", "1 bytes too many"]);
    folder.write("circuit.zkey", "");
    expect(4, &["circuit.zkey"]);
    folder.write("circuit.zkey", chain("bls12381", "circuit.zkey"));
    expect(4, &["witness.wtns: section 1 (header), byte ", "modulus"]);
    folder.write("circuit.zkey", chain("bn128", "circuit.zkey"));
    expect(4, &["witness.wtns: the witness has 216 elements"]);
    folder.write("circuit.zkey", &zkey);

    folder.write("witness.wtns", &wtns[..wtns.len() - 1]);
    expect(4, &["witness.wtns: section 2 (values), byte "]);
    let mut unsatisfying = wtns.clone();
    let last = unsatisfying.len() - 32;
    unsatisfying[last] ^= 1;
    folder.write("witness.wtns", &unsatisfying);
    expect(1, &["witness.wtns: the witness does not satisfy"]);
    fs::remove_file(folder.path("witness.wtns")).unwrap();
    folder.run(&PROVE).expect(3, &["witness.wtns"]);
    folder.write("witness.wtns", &wtns);
    folder.run(&["prove", "--zkey", "none", "--wtns", "witness.wtns"]).expect(3, &["none"]);
    folder.run(&with(&PROVE, &["--proof", "none/proof.json"])).expect(3, &["none/proof.json"]);
    folder.run(&with(&PROVE, &["--proof", "."])).expect(3, &["not a file"]);

    assert_eq!(folder.read("proof.json"), b"old");
    folder.run(&PROVE).expect(0, &[]);
    assert_ne!(folder.read("proof.json"), b"old");
    assert_eq!(folder.names(), ["circuit.zkey", "proof.json", "public.json", "witness.wtns"]);
}

#[test]
fn choices_of_the_prover_are_taken() {
    let folder = circuit("choices");
    for choice in [&["--trusted"][..], &["--check", "curve", "--tables", "64MiB"], &["--device", "cpu", "--no-verify"]]
    {
        folder.run(&[&PROVE, choice].concat()).expect(0, &[]);
    }
    // A point that is not on the curve is found by the first two of the checks alone.
    let mut zkey = folder.read("circuit.zkey");
    let at = zkey.len() - 2000;
    zkey[at] ^= 1;
    folder.write("circuit.zkey", &zkey);
    folder.run(&PROVE).expect(4, &["section", "point"]);
    folder.run(&with(&PROVE, &["--check", "curve"])).expect(4, &["section", "point"]);
    // Nothing that such a key makes is given out.
    folder.run(&with(&PROVE, &["--trusted", "--proof", "new.json"])).expect(4, &["not on the curve"]);
    assert!(!folder.path("new.json").exists());
}

#[test]
fn many_witnesses_have_proofs_by_their_names() {
    let folder = circuit("many");
    folder.run(&["demo", "--out-dir", "."]).expect(0, &[]);
    let wtns = folder.read("witness.wtns");
    let mut wrong = wtns.clone();
    let last = wrong.len() - 32;
    wrong[last] ^= 1;
    for name in ["a.wtns", "b.wtns", "d.wtns", "e.wtns"] {
        folder.write(name, &wtns);
    }
    folder.write("c.wtns", &wrong);
    folder.write("list", "a.wtns\nb.wtns\n\nc.wtns\nmissing.wtns\nd.wtns\n");
    let files = |out: &str| fs::read_dir(folder.path(out)).unwrap().count();
    let prove = ["prove", "--zkey", "circuit.zkey", "--out-dir"];

    let run = folder.run(&with(&prove, &["good", "--wtns", "a.wtns", "b.wtns", "d.wtns", "--json"]));
    run.expect(0, &[]);
    assert_eq!(run.json()["proofs"].as_array().map(Vec::len), Some(3));
    for name in ["a", "b", "d"] {
        let [proof, public] = ["proof", "public"].map(|kind| format!("good/{name}.{kind}.json"));
        folder.run(&["verify", "--proof", &proof, "--public", &public]).expect(0, &[]);
    }
    assert_eq!(files("good"), 6);

    // Without a key there is no folder, and where a folder stands there is no proof.
    folder.run(&["prove", "--zkey", "none", "--wtns", "a.wtns", "--out-dir", "no/folder"]).expect(3, &["none"]);
    assert!(!folder.path("no").exists());
    fs::create_dir_all(folder.path("taken/a.proof.json")).unwrap();
    folder.run(&with(&prove, &["taken", "--wtns", "b.wtns", "a.wtns"])).expect(3, &["a.proof.json", "not a file"]);
    assert_eq!(files("taken"), 1);

    // The first error ends it; the proofs before stay.
    let run = folder.run(&with(&prove, &["stopped", "--wtns-list", "list", "--json"]));
    run.expect(1, &["c.wtns: the witness does not satisfy"]);
    assert_eq!(run.json()["proofs"].as_array().map(Vec::len), Some(2));
    assert_eq!(files("stopped"), 4);

    let run = folder.run(&with(&prove, &["all", "--wtns-list", "list", "--wtns", "e.wtns", "--keep-going", "--json"]));
    run.expect(1, &["c.wtns", "missing.wtns", "2 of 6 witnesses failed"]);
    let json = run.json();
    assert_eq!(json["proofs"].as_array().map(Vec::len), Some(4));
    assert_eq!(json["failed"][1]["witness"], "missing.wtns");
    assert_eq!(files("all"), 8);
}

#[test]
fn keys_of_our_own_prove_on_both_curves() {
    for curve in ["bn128", "bls12381"] {
        let folder = Folder::new(&format!("setup-{curve}"));
        for name in ["circuit.r1cs", "witness.wtns"] {
            folder.write(name, chain(curve, name));
        }
        let setup = ["setup", "--r1cs", "circuit.r1cs", "--zkey", "circuit.zkey"];
        folder.run(&setup).expect(2, &["--insecure", "ceremony"]);
        assert_eq!(folder.names(), ["circuit.r1cs", "witness.wtns"]);
        let json = folder.run(&with(&setup, &["--insecure", "--json"])).json();
        assert_eq!((&json["constraints"], &json["curve"]), (&61.into(), &curve.into()));
        folder.run(&with(&PROVE, &["--r1cs", "circuit.r1cs"])).expect(0, &[]);
        folder.run(&["verify"]).expect(0, &[]);

        let mut wtns = folder.read("witness.wtns");
        let last = wtns.len() - 32;
        wtns[last] ^= 1;
        folder.write("witness.wtns", &wtns);
        folder.run(&with(&PROVE, &["--r1cs", "circuit.r1cs"])).expect(1, &["witness.wtns: ", "constraint "]);
        folder.run(&["setup", "--insecure", "--r1cs", "witness.wtns", "--zkey", "k"]).expect(4, &["witness.wtns: "]);
    }
}

#[test]
fn the_bench_times_proofs_that_hold() {
    let folder = circuit("bench");
    for choice in [&["--zkey", "circuit.zkey", "--wtns", "witness.wtns"][..], &["--log-size", "6"]] {
        let arguments = [&["bench", "--count", "2", "--json"], choice].concat();
        let json = folder.run(&arguments).json();
        assert!(json["median_ms"].as_f64().is_some_and(|time| time > 0.0), "{json}");
        assert_eq!(json["exit_code"], 0);
    }
    let mut wtns = folder.read("witness.wtns");
    let last = wtns.len() - 32;
    wtns[last] ^= 1;
    folder.write("witness.wtns", &wtns);
    folder.run(&["bench", "--zkey", "circuit.zkey", "--wtns", "witness.wtns", "--count", "1"]).expect(1, &[]);
}

/// Names of files are bytes on most systems.
#[cfg(target_os = "linux")]
#[test]
fn names_need_not_be_unicode() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let folder = circuit("bytes");
    let name = OsStr::from_bytes(b"\xff.wtns");
    fs::copy(data("witness.wtns"), folder.0.join(name)).unwrap();
    let mut prove = command();
    prove.current_dir(&folder.0).args(["prove", "--json", "--zkey", "circuit.zkey", "--out-dir", "out", "--wtns"]);
    let output = prove.arg(name).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["proofs"][0]["witness"], "\u{fffd}.wtns");
    assert!(folder.path("out").join(OsStr::from_bytes(b"\xff.proof.json")).is_file());
}

/// Two names of one file, and nothing to prove, are refused before the key is read.
#[test]
fn two_names_of_one_file_are_refused() {
    let folder = circuit("names");
    let same = folder.run(&with(&PROVE, &["--proof", "out.json", "--public", "./out.json"]));
    same.expect(2, &["are the same file"]);
    assert!(!folder.path("out.json").exists());
    fs::write(folder.path("none"), "\n").unwrap();
    let none = ["prove", "--zkey", "circuit.zkey", "--wtns-list", "none", "--out-dir", "."];
    folder.run(&none).expect(2, &["no witness"]);
}
