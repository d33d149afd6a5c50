//! Encrypts files of any size with AES-256.
//!
//! ```text
//! encrypt_file ctr  KEY COUNTER INPUT OUTPUT   both directions, as `openssl enc -aes-256-ctr -K KEY -iv COUNTER`
//! encrypt_file seal KEY NONCE   INPUT OUTPUT   GCM: ciphertext, then a tag of 16 bytes
//! encrypt_file open KEY NONCE   INPUT OUTPUT   the inverse; nothing appears if the tag is wrong
//! ```
//! Key, counter block and nonce are hexadecimal. The output appears when it is complete: a run that is stopped leaves
//! what was there before, and beside it, on systems that have no files without a name, what it had written, as
//! `.OUTPUT.….part`. `open` reads its input twice, and writes nothing before the tag has been found to be right. Never
//! encrypt two files with one key and one counter block or nonce.

use std::{
    env,
    error::Error,
    io::{IsTerminal, Write, stderr},
    path::Path,
    process::ExitCode,
    time::Instant,
};

use evariste::{
    Device,
    aes::{Aes, Gcm},
};

type Outcome = Result<(), Box<dyn Error>>;

const USAGE: &str =
    "usage: encrypt_file ctr|seal|open KEY COUNTER|NONCE INPUT OUTPUT, with a key of 64 hexadecimal digits";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Outcome {
    let [mode, key, start, input, output] = arguments else { return Err(USAGE.into()) };
    let (key, start) = (hex(key)?, hex(start)?);
    let (input, output) = (Path::new(input), Path::new(output));
    if key.len() != 32 {
        return Err(USAGE.into());
    }
    let device = Device::best()?;
    let mut progress = Progress::new(input.metadata().map_or(0, |data| data.len()));
    match mode.as_str() {
        "ctr" => {
            Aes::new(&device, &key)?.ctr(&start)?.apply_file(input, output, |done| progress.show(done))?;
        }
        "seal" => {
            Gcm::new(&device, &key)?.seal_file(&start, &[], input, output, |done| progress.show(done))?;
        }
        "open" => Gcm::new(&device, &key)?.open_file(&start, &[], input, output, |done| progress.show(done))?,
        _ => return Err(USAGE.into()),
    }
    progress.finish(&device);
    Ok(())
}

fn hex(text: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return Err(format!("{text:?} is not hexadecimal").into());
    }
    Ok((0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16)).collect::<Result<_, _>>()?)
}

/// How far the work is, on one line of a terminal.
struct Progress {
    total: u64,
    done: u64,
    percent: u64,
    start: Instant,
}

impl Progress {
    fn new(total: u64) -> Self {
        Self { total, done: 0, percent: 0, start: Instant::now() }
    }

    fn show(&mut self, done: u64) {
        self.done = done;
        let percent = 100 * done / self.total.max(1);
        if percent != self.percent && stderr().is_terminal() {
            eprint!("\r{percent:3}% of {} MB, {:.1} GB/s", self.total / 1_000_000, self.rate());
            let _ = stderr().flush();
        }
        self.percent = percent;
    }

    fn finish(&self, device: &Device) {
        let clear = if stderr().is_terminal() { "\r\x1b[K" } else { "" };
        eprintln!("{clear}{} bytes on {device}, {:.2} GB/s", self.done, self.rate());
    }

    fn rate(&self) -> f64 {
        self.done as f64 / 1e9 / self.start.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf, process, thread, time::Duration};

    use super::*;

    const KEY: &str = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
    const COUNTER: &str = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = env::temp_dir().join(format!("evariste-encrypt-{name}-{}", process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn file(&self, name: &str) -> String {
            self.0.join(name).to_string_lossy().into_owned()
        }

        /// Files that are not complete.
        fn parts(&self) -> Vec<PathBuf> {
            let files = fs::read_dir(&self.0).unwrap().map(|file| file.unwrap().path());
            files.filter(|path| path.extension().is_some_and(|extension| extension == "part")).collect()
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
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn encrypt_file(arguments: &[&str]) -> Outcome {
        run(&arguments.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    fn contents(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
    }

    fn openssl(input: &str, output: &str) -> bool {
        let command = ["enc", "-aes-256-ctr", "-nosalt", "-K", KEY, "-iv", COUNTER, "-in", input, "-out", output];
        process::Command::new("openssl").args(command).status().is_ok_and(|status| status.success())
    }

    #[test]
    fn openssl_reads_what_we_write_and_we_read_what_it_writes() {
        let folder = Folder::new("openssl");
        let [plain, ours, theirs, back] = ["plain", "ours", "theirs", "back"].map(|name| folder.file(name));
        for len in [0, 1, 15, 16, 100_000, 20_000_003] {
            fs::write(&plain, contents(len)).unwrap();
            if !openssl(&plain, &theirs) {
                println!("skipped: there is no openssl that knows aes-256-ctr");
                return;
            }
            encrypt_file(&["ctr", KEY, COUNTER, &plain, &ours]).unwrap();
            assert!(fs::read(&ours).unwrap() == fs::read(&theirs).unwrap(), "{len} bytes");
            encrypt_file(&["ctr", KEY, COUNTER, &theirs, &back]).unwrap();
            assert!(fs::read(&back).unwrap() == contents(len), "{len} bytes, from openssl");
            assert!(openssl(&ours, &back) && fs::read(&back).unwrap() == contents(len), "{len} bytes, to openssl");
        }
    }

    /// ring has nothing in common with RustCrypto's crates, which the CPU uses here.
    #[test]
    fn ring_opens_what_we_seal_and_we_open_what_it_seals() {
        use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

        let folder = Folder::new("ring");
        let [plain, ours, theirs, back] = ["plain", "ours", "theirs", "back"].map(|name| folder.file(name));
        let nonce = "000102030405060708090a0b";
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &hex(KEY).unwrap()).unwrap());
        let unique = || Nonce::try_assume_unique_for_key(&hex(nonce).unwrap()).unwrap();
        for len in [0, 1, 15, 16, 100_000, 20_000_003] {
            fs::write(&plain, contents(len)).unwrap();
            let mut sealed = contents(len);
            key.seal_in_place_append_tag(unique(), Aad::empty(), &mut sealed).unwrap();
            fs::write(&theirs, &sealed).unwrap();
            encrypt_file(&["seal", KEY, nonce, &plain, &ours]).unwrap();
            assert!(fs::read(&ours).unwrap() == sealed, "{len} bytes");
            encrypt_file(&["open", KEY, nonce, &theirs, &back]).unwrap();
            assert!(fs::read(&back).unwrap() == contents(len), "{len} bytes, from ring");
            let mut sealed = fs::read(&ours).unwrap();
            let opened = key.open_in_place(unique(), Aad::empty(), &mut sealed).unwrap();
            assert!(*opened == contents(len), "{len} bytes, to ring");
        }
    }

    #[test]
    fn sealed_files_open_and_changed_ones_do_not() {
        let folder = Folder::new("gcm");
        let [plain, sealed, back] = ["plain", "sealed", "back"].map(|name| folder.file(name));
        for len in [0, 1, 10_000_001] {
            fs::write(&plain, contents(len)).unwrap();
            encrypt_file(&["seal", KEY, "000102030405060708090a0b", &plain, &sealed]).unwrap();
            assert_eq!(fs::metadata(&sealed).unwrap().len(), len as u64 + 16);
            encrypt_file(&["open", KEY, "000102030405060708090a0b", &sealed, &back]).unwrap();
            assert!(fs::read(&back).unwrap() == contents(len), "{len} bytes");
            let mut changed = fs::read(&sealed).unwrap();
            changed[len / 2] ^= 1;
            fs::write(&sealed, changed).unwrap();
            assert!(encrypt_file(&["open", KEY, "000102030405060708090a0b", &sealed, &back]).is_err());
            assert!(fs::read(&back).unwrap() == contents(len), "what was there is there");
        }
    }

    /// Tells the child of the test below what to do.
    const CHILD: &str = "EVARISTE_ENCRYPT_FILE_CHILD";

    #[test]
    fn a_run_that_is_killed_leaves_the_good_file() {
        if let Ok(arguments) = env::var(CHILD) {
            return encrypt_file(&arguments.lines().collect::<Vec<_>>()).unwrap();
        }
        for mode in ["ctr", "seal"] {
            let folder = Folder::new(&format!("killed-{mode}"));
            let [input, output] = ["input", "output"].map(|name| folder.file(name));
            // A hole that takes seconds to go through, and no room on the disk.
            fs::File::create(&input).unwrap().set_len(4 << 30).unwrap();
            fs::write(&output, "good").unwrap();
            let start = if mode == "ctr" { COUNTER } else { "000102030405060708090a0b" };
            let mut child = process::Command::new(env::current_exe().unwrap())
                .args(["--exact", "tests::a_run_that_is_killed_leaves_the_good_file"])
                .env(CHILD, [mode, KEY, start, &input, &output].join("\n"))
                .stdout(process::Stdio::null())
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

            assert_eq!(fs::read_to_string(&output).unwrap(), "good", "{mode}");
            assert_eq!(
                folder.parts().len(),
                usize::from(has_name),
                "{mode}: what was written has another name or none"
            );
            assert_eq!(
                fs::read_dir(&folder.0).unwrap().count(),
                2 + folder.parts().len(),
                "{mode}: there is nothing else"
            );
        }
    }

    #[test]
    fn nothing_is_written_before_the_tag_is_known_to_be_right() {
        let folder = Folder::new("unverified");
        let [input, output] = ["input", "output"].map(|name| folder.file(name));
        // A hole that takes a while to hash; its tag is wrong.
        fs::File::create(&input).unwrap().set_len(1 << 30).unwrap();
        fs::write(&output, "good").unwrap();
        thread::scope(|scope| {
            let arguments = ["open", KEY, "000102030405060708090a0b", &input, &output];
            let run = scope.spawn(move || encrypt_file(&arguments).map_err(|error| error.to_string()));
            while !run.is_finished() {
                assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2, "beside the target");
                thread::sleep(Duration::from_millis(1));
            }
            let error = run.join().unwrap().unwrap_err();
            assert!(error.contains("tag"), "{error}");
        });
        assert_eq!(fs::read_to_string(&output).unwrap(), "good");
    }

    #[test]
    fn bad_arguments_are_refused() {
        let folder = Folder::new("arguments");
        let [plain, output] = ["plain", "output"].map(|name| folder.file(name));
        fs::write(&plain, contents(10)).unwrap();
        for arguments in [
            &["ctr", "00", COUNTER, &plain, &output][..],
            &["ctr", KEY, "00", &plain, &output],
            &["ctr", KEY, "nonsense", &plain, &output],
            &["what", KEY, COUNTER, &plain, &output],
            &["ctr", KEY, COUNTER, &plain],
            &["ctr", KEY, COUNTER, &folder.file("none"), &output],
        ] {
            assert!(encrypt_file(arguments).is_err(), "{arguments:?}");
        }
        assert!(!Path::new(&output).exists());
    }
}
