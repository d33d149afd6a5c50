//! The program, and a folder for each test.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use serde_json::Value;

/// The program's binary.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_evariste");

/// The files of the demo.
pub(crate) fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/merkle").join(name);
    path.to_string_lossy().into_owned()
}

/// How a run of the program ended.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) errors: String,
}

impl Run {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }

    /// Expects an exit code, and texts that are part of the error.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32, texts: &[&str]) {
        let Self { code: actual, out, errors } = self;
        assert_eq!(*actual, Some(code), "{out}{errors}");
        assert!(texts.iter().all(|text| errors.contains(text)), "expected {texts:?} in {errors}");
    }
}

/// A command with the CPU as its device.
pub(crate) fn command() -> Command {
    let mut command = Command::new(PROGRAM);
    command.env("EVARISTE_DEVICE", "cpu");
    command
}

/// A folder, gone when it is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("evariste-cli-{name}-{}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    /// Names of all files in the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Runs the program in the folder.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let output = command().args(arguments).current_dir(&self.0).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Run { code: output.status.code(), out: text(&output.stdout), errors: text(&output.stderr) }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
