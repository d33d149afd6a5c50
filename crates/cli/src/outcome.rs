//! Results on the standard output, errors on the standard error.

use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use anyhow::{Error, Result};
use serde_json::{Value, json};

use crate::exit;

/// The result of a command.
pub(crate) struct Outcome {
    /// For people.
    text: String,
    /// For programs: an object.
    json: Value,
    /// An error beside the result, such as that of one witness of many.
    error: Option<Error>,
}

impl Outcome {
    pub(crate) fn new(text: impl Into<String>, json: Value) -> Self {
        Self { text: text.into(), json, error: None }
    }

    pub(crate) fn with_error(self, error: Option<Error>) -> Self {
        Self { error, ..self }
    }
}

/// Prints the result of a command, and returns its exit code.
pub(crate) fn print(result: Result<Outcome>, as_json: bool) -> ExitCode {
    let Outcome { text, mut json, error } =
        result.unwrap_or_else(|error| Outcome::new("", json!({})).with_error(Some(error)));
    let mut code = error.as_ref().map_or(0, exit::code);
    if let Some(error) = &error {
        json["error"] = format!("{error:#}").into();
        report(error);
    }
    json["exit_code"] = code.into();
    let text = if as_json { json.to_string() } else { text };
    if let Err(error) = line(&text) {
        let error = Error::from(error).context("standard output");
        code = if code == 0 { exit::code(&error) } else { code };
        report(&error);
    }
    ExitCode::from(code)
}

fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if !text.is_empty() {
        writeln!(out, "{text}")?;
    }
    out.flush()
}

/// Tells of an error on the standard error, if there is one.
pub(crate) fn report(error: &Error) {
    let _ = writeln!(io::stderr(), "error: {error:#}");
}

/// A time for people.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 { format!("{:.3} ms", 1e3 * seconds) } else { format!("{seconds:.3} s") }
}

/// A path for programs. What is no Unicode in it is replaced.
pub(crate) fn path(path: &Path) -> Value {
    path.to_string_lossy().into()
}

/// A time for programs.
pub(crate) fn milliseconds(time: Duration) -> Value {
    json!(1e3 * time.as_secs_f64())
}
