//! AES of files.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::program::{Folder, Run, command};

const KEY: &str = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
const COUNTER: &str = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
const NONCE: &str = "000102030405060708090a0b";

const LENGTHS: [usize; 6] = [0, 1, 15, 16, 100_000, 20_000_003];

fn contents(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

impl Folder {
    fn aes(&self, verb: &str, mode: &str, nonce: &str, files: [&str; 2]) -> Run {
        self.run(&[verb, "--mode", mode, "--key", KEY, "--nonce", nonce, files[0], files[1]])
    }

    /// Files that are not complete.
    fn parts(&self) -> Vec<PathBuf> {
        self.names().into_iter().filter(|name| name.ends_with(".part")).map(|name| self.path(&name)).collect()
    }

    /// Files without a name in this folder that a process writes, as the system shows them.
    fn unnamed(&self, process: u32) -> Vec<PathBuf> {
        let Ok(open) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
        let is_unnamed = |path: &PathBuf| {
            let name = fs::read_link(path).unwrap_or_default();
            name.starts_with(&self.0) && name.to_string_lossy().ends_with("(deleted)")
        };
        open.filter_map(|file| Some(file.ok()?.path())).filter(is_unnamed).collect()
    }

    fn openssl(&self, input: &str, output: &str) -> bool {
        let command = ["enc", "-aes-256-ctr", "-nosalt", "-K", KEY, "-iv", COUNTER, "-in", input, "-out", output];
        Command::new("openssl").args(command).current_dir(&self.0).status().is_ok_and(|status| status.success())
    }
}

#[test]
fn openssl_reads_what_we_write_and_we_read_what_it_writes() {
    let folder = Folder::new("openssl");
    for len in LENGTHS {
        folder.write("plain", contents(len));
        if !folder.openssl("plain", "theirs") {
            println!("skipped: there is no openssl that knows aes-256-ctr");
            return;
        }
        folder.aes("encrypt", "ctr", COUNTER, ["plain", "ours"]).expect(0, &[]);
        assert!(folder.read("ours") == folder.read("theirs"), "{len} bytes");
        folder.aes("decrypt", "ctr", COUNTER, ["theirs", "back"]).expect(0, &[]);
        assert!(folder.read("back") == contents(len), "{len} bytes, from openssl");
        assert!(folder.openssl("ours", "back") && folder.read("back") == contents(len), "{len} bytes, to openssl");
    }
}

/// ring has nothing in common with RustCrypto's crates, which the CPU uses here.
#[test]
fn ring_opens_what_we_seal_and_we_open_what_it_seals() {
    let folder = Folder::new("ring");
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
    };
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &hex(KEY)).unwrap());
    let unique = || Nonce::try_assume_unique_for_key(&hex(NONCE)).unwrap();
    for len in LENGTHS {
        folder.write("plain", contents(len));
        let mut sealed = contents(len);
        key.seal_in_place_append_tag(unique(), Aad::empty(), &mut sealed).unwrap();
        folder.write("theirs", &sealed);
        folder.aes("encrypt", "gcm", NONCE, ["plain", "ours"]).expect(0, &[]);
        assert!(folder.read("ours") == sealed, "{len} bytes");
        folder.aes("decrypt", "gcm", NONCE, ["theirs", "back"]).expect(0, &[]);
        assert!(folder.read("back") == contents(len), "{len} bytes, from ring");
        let mut sealed = folder.read("ours");
        let opened = key.open_in_place(unique(), Aad::empty(), &mut sealed).unwrap();
        assert!(*opened == contents(len), "{len} bytes, to ring");
    }
}

#[test]
fn sealed_files_open_and_changed_ones_do_not() {
    let folder = Folder::new("gcm");
    for len in [0, 1, 10_000_001] {
        folder.write("plain", contents(len));
        folder.aes("encrypt", "gcm", NONCE, ["plain", "sealed"]).expect(0, &[]);
        assert_eq!(folder.read("sealed").len(), len + 16);
        folder.aes("decrypt", "gcm", NONCE, ["sealed", "back"]).expect(0, &[]);
        assert!(folder.read("back") == contents(len), "{len} bytes");
        folder.aes("decrypt", "gcm", "000102030405060708090a0c", ["sealed", "other"]).expect(1, &["tag"]);
        let mut changed = folder.read("sealed");
        changed[len / 2] ^= 1;
        folder.write("sealed", changed);
        folder.aes("decrypt", "gcm", NONCE, ["sealed", "back"]).expect(1, &["tag"]);
        assert!(folder.read("back") == contents(len), "the old file is there");
        assert_eq!(folder.names(), ["back", "plain", "sealed"]);
    }
}

#[test]
fn nonces_are_drawn_and_keys_come_from_files() {
    let folder = Folder::new("drawn");
    folder.write("plain", contents(1000));
    folder.write("key", format!("{KEY}\n"));
    folder.write("other", KEY.replace('6', "7"));
    let nonces = ["one", "two"].map(|sealed| {
        let json = folder.run(&["encrypt", "--json", "--key-file", "key", "plain", sealed]).json();
        json["nonce"].as_str().unwrap().to_owned()
    });
    assert!(nonces[0].len() == 24 && nonces[0] != nonces[1], "{nonces:?}");
    let decrypt = |key: &str| folder.run(&["decrypt", "--key-file", key, "--nonce", &nonces[0], "one", "back"]);
    decrypt("other").expect(1, &["tag"]);
    assert!(!folder.path("back").exists());
    decrypt("key").expect(0, &[]);
    assert!(folder.read("back") == contents(1000));
}

#[test]
fn a_run_that_is_killed_leaves_the_good_file() {
    for (mode, nonce) in [("ctr", COUNTER), ("gcm", NONCE)] {
        let folder = Folder::new(&format!("killed-{mode}"));
        // A hole that takes seconds to go through, and no room on the disk.
        fs::File::create(folder.path("input")).unwrap().set_len(4 << 30).unwrap();
        folder.write("output", "good");
        let mut child = command()
            .args(["encrypt", "--mode", mode, "--key", KEY, "--nonce", nonce, "input", "output"])
            .current_dir(&folder.0)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let is_begun = |path: &PathBuf| path.metadata().is_ok_and(|file| file.len() > 0);
        let has_name = loop {
            if folder.parts().iter().any(is_begun) {
                break true;
            }
            if folder.unnamed(child.id()).iter().any(is_begun) {
                break false;
            }
            assert_eq!(child.try_wait().unwrap(), None, "{mode} ended before it had written anything");
            thread::sleep(Duration::from_millis(1));
        };
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success(), "{mode} was done before it was killed");

        assert_eq!(folder.read("output"), b"good", "{mode}");
        assert_eq!(folder.parts().len(), usize::from(has_name), "{mode}: the parts have another name or none");
        assert_eq!(folder.names().len(), 2 + folder.parts().len(), "{mode}: there is nothing else");
    }
}

#[test]
fn nothing_is_written_before_the_tag_is_known_to_be_right() {
    let folder = Folder::new("unverified");
    // A hole that takes a while to hash; its tag is wrong.
    fs::File::create(folder.path("input")).unwrap().set_len(1 << 30).unwrap();
    folder.write("output", "good");
    thread::scope(|scope| {
        let run = scope.spawn(|| folder.aes("decrypt", "gcm", NONCE, ["input", "output"]));
        while !run.is_finished() {
            assert_eq!(folder.names().len(), 2, "beside the target");
            thread::sleep(Duration::from_millis(1));
        }
        run.join().unwrap().expect(1, &["tag"]);
    });
    assert_eq!(folder.read("output"), b"good");
}

#[test]
fn bad_arguments_are_refused() {
    let folder = Folder::new("arguments");
    folder.write("plain", contents(10));
    let encrypt = |mode: &str, key: &str, nonce: &str, input: &str| {
        folder.run(&["encrypt", "--mode", mode, "--key", key, "--nonce", nonce, input, "output"])
    };
    encrypt("ctr", "00", COUNTER, "plain").expect(2, &["key"]);
    encrypt("ctr", "0", COUNTER, "plain").expect(2, &["--key"]);
    encrypt("ctr", KEY, "00", "plain").expect(2, &["16 bytes"]);
    encrypt("ctr", KEY, "nonsense", "plain").expect(2, &["--nonce"]);
    encrypt("gcm", KEY, "", "plain").expect(2, &["nonce"]);
    encrypt("what", KEY, COUNTER, "plain").expect(2, &["what"]);
    encrypt("ctr", KEY, COUNTER, "none").expect(3, &["none"]);
    assert_eq!(folder.names(), ["plain"]);
}
