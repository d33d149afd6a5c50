//! What trials expect, told by the place of the caller.

use std::{fmt::Debug, panic::Location};

use libtest_mimic::Failed;

use crate::harness::Outcome;

/// Replaces `assert_eq!`, which would print all of two values. Values here are long vectors, and one trial compares
/// them (`what`) for many fields and lengths.
#[track_caller]
pub(crate) fn expect_equal<T: PartialEq + Debug>(what: &str, actual: &T, expected: &T) -> Outcome {
    if actual == expected {
        return Ok(());
    }
    let shorten = |text: String| text.chars().take(500).collect::<String>();
    let [expected, actual] = [expected, actual].map(|value| shorten(format!("{value:?}")));
    Err(format!("{what}: expected {expected}, got {actual} (at {})", here()).into())
}

/// Compares vectors and names the first place where they differ.
#[track_caller]
pub(crate) fn expect_same<T: PartialEq + Debug>(what: &str, actual: &[T], expected: &[T]) -> Outcome {
    expect_equal(&format!("{what}, length"), &actual.len(), &expected.len())?;
    match actual.iter().zip(expected).position(|(a, e)| a != e) {
        None => Ok(()),
        Some(i) => expect_equal(&format!("{what} at {i} of {}", actual.len()), &actual[i], &expected[i]),
    }
}

/// The line of the caller, from the root of the workspace on.
#[track_caller]
fn here() -> String {
    let place = Location::caller().to_string();
    place.rsplit_once("/../").map_or(place.as_str(), |(_, place)| place).to_owned()
}

#[track_caller]
pub(crate) fn expect(what: &str, holds: bool) -> Outcome {
    if holds { Ok(()) } else { Err(format!("{what} does not hold (at {})", here()).into()) }
}

/// Unwraps the error of a call that must fail.
pub(crate) fn expect_error<T, E>(what: &str, result: Result<T, E>) -> Result<E, Failed> {
    result.err().ok_or_else(|| format!("{what} must fail").into())
}
