//! Which sizes to measure.

use std::{ops::RangeInclusive, str::FromStr};

use anyhow::{Context, Error, Result, ensure};
use evariste::backend::{Device, Kind};

use crate::coverage::Coverage;

/// log₂ of sizes, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes(Vec<u32>);

/// log₂ of the largest size there is: bytes of AES; transforms have up to 2^31 elements.
const MAX_LOG_N: u32 = 32;

impl FromStr for Sizes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut sizes = Vec::new();
        for part in text.split(',') {
            let range = range(part).with_context(|| format!("{part:?} is no size or range such as 16..24"))?;
            ensure!(!range.is_empty() && *range.end() <= MAX_LOG_N, "{part:?} is empty or beyond {MAX_LOG_N}");
            sizes.extend(range);
        }
        Ok(sizes.into())
    }
}

impl From<Vec<u32>> for Sizes {
    fn from(mut sizes: Vec<u32>) -> Self {
        sizes.sort_unstable();
        sizes.dedup();
        Self(sizes)
    }
}

fn range(text: &str) -> Result<RangeInclusive<u32>> {
    let number = |text: &str| text.trim().parse::<u32>();
    Ok(match text.split_once("..") {
        Some((first, last)) => number(first)?..=number(last.trim_start_matches('='))?,
        None => number(text)?..=number(text)?,
    })
}

impl Sizes {
    /// What is measured on a device unless the user says otherwise: what it does in well under a second.
    pub(crate) fn usual(device: &Device, coverage: Coverage) -> Self {
        let info = device.info();
        let fast = info.id.kind != Kind::Cpu && !info.features.software;
        Self(match (coverage, fast, info.features.software) {
            (Coverage::Summary, true, _) => vec![24],
            (Coverage::Summary, false, false) => vec![18],
            (Coverage::Summary, false, true) => vec![12],
            (Coverage::Small, true, _) => vec![16, 18, 20],
            (Coverage::Small, false, _) => vec![12, 14, 16],
            (Coverage::Full, _, false) => (16..=24).collect(),
            (Coverage::Full, _, true) => vec![12, 14, 16, 18],
        })
    }

    /// The size of a headline of which a device does up to 2^`most`, and a processor 2^`on_processors` in well under a
    /// second.
    pub(crate) fn of_headline(device: &Device, most: u32, on_processors: u32) -> u32 {
        let most = if device.info().id.kind == Kind::Cpu { on_processors } else { most };
        let Self(usual) = Self::usual(device, Coverage::Summary);
        usual.iter().map(|log_n| *log_n.min(&most)).max().unwrap_or(most)
    }

    pub(crate) fn contains(&self, log_n: u32) -> bool {
        self.0.contains(&log_n)
    }

    /// All sizes that one of several lists has.
    pub(crate) fn union<'a>(lists: impl IntoIterator<Item = &'a Self>) -> Vec<u32> {
        let mut all: Vec<u32> = lists.into_iter().flat_map(|sizes| sizes.0.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_understood() {
        let parse = |text: &str| text.parse::<Sizes>().map(|sizes| sizes.0);
        assert_eq!(parse("16").unwrap(), [16]);
        assert_eq!(parse("3..5,26,4").unwrap(), [3, 4, 5, 26]);
        assert_eq!(parse("3..=4").unwrap(), [3, 4]);
        for nonsense in ["", "x", "5..3", "1..99", "1..", "-1"] {
            assert!(parse(nonsense).is_err(), "{nonsense}");
        }
    }
}
