use serde::Serialize;

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Coverage {
    /// The headlines of each algorithm, at one size.
    Summary,
    /// All cases, at small sizes.
    Small,
    /// All cases and sizes.
    Full,
}
