//! The five systems that this workspace was founded on: what their sources published, and what of it the bench
//! measures.

mod aes;
mod hyperplonk;
mod msm;
mod prentt;
mod sqrt;

use crate::{Figures, Section, Table};

/// One of the five.
#[derive(Debug)]
pub struct System {
    /// What `reproduce` calls it.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Authors, title, where it was published.
    pub source: &'static str,
    /// On what the source measured.
    pub hardware: &'static str,
    /// What the tables show, and how it differs from what the source did.
    pub notes: &'static str,
    /// What the bench has to measure.
    pub runs: fn(Scale) -> Vec<Run>,
    compare: fn(&Figures<'_>, Scale) -> Comparison,
}

/// Cases of an algorithm of the bench, with their sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// What `--only` calls the algorithm.
    pub algorithm: &'static str,
    /// The names of the cases.
    pub cases: Vec<String>,
    /// log₂ of the sizes.
    pub sizes: Vec<u32>,
}

/// At which sizes to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Those of the source.
    Source,
    /// Small ones, for devices to which those of the source are too large.
    Small,
}

impl Scale {
    fn pick<T>(self, source: T, small: T) -> T {
        match self {
            Scale::Source => source,
            Scale::Small => small,
        }
    }
}

/// Tables, and what they say.
#[derive(Debug, Default)]
struct Comparison {
    tables: Vec<Table>,
    verdicts: Vec<String>,
}

/// The five, in the order of their documents.
pub static SYSTEMS: [&System; 5] = [&prentt::SYSTEM, &hyperplonk::SYSTEM, &aes::SYSTEM, &msm::SYSTEM, &sqrt::SYSTEM];

impl System {
    /// The system of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SYSTEMS.into_iter().find(|system| system.name == name)
    }

    /// What was published beside these figures.
    pub fn section(&self, figures: &Figures<'_>, scale: Scale) -> Section {
        let Comparison { tables, verdicts } = (self.compare)(figures, scale);
        let files = figures.sources().into_iter().map(|(file, commit)| (file.to_owned(), commit.to_owned()));
        Section {
            title: self.title,
            source: self.source,
            hardware: self.hardware,
            notes: self.notes,
            tables,
            verdicts,
            lacking: figures.lacking(),
            files: files.collect(),
        }
    }
}

fn names(cases: &[&str]) -> Vec<String> {
    cases.iter().map(ToString::to_string).collect()
}

/// Heads of columns: one of text, and a size each.
fn sizes_head(first: &str, sizes: &[u32]) -> Vec<String> {
    [first.to_owned()].into_iter().chain(sizes.iter().map(|log_n| format!("2^{log_n}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Results, figures::tests::results};

    /// All cases of all runs of a system, each of a millisecond.
    fn all(system: &System, scale: Scale) -> Results {
        let runs = (system.runs)(scale);
        let cases = runs.iter().flat_map(|run| {
            run.cases.iter().flat_map(|case| run.sizes.iter().map(|log_n| (case.as_str(), *log_n, 1.0)))
        });
        results(&cases.collect::<Vec<_>>())
    }

    #[test]
    fn what_is_compared_is_what_is_measured() {
        for (system, scale) in SYSTEMS.into_iter().flat_map(|system| [(system, Scale::Source), (system, Scale::Small)])
        {
            let results = all(system, scale);
            let figures = Figures::new("card", [("all", &results)]);
            let section = system.section(&figures, scale);
            assert_eq!(section.lacking, [""; 0], "{} at {scale:?}", system.name);
            assert!(!section.tables.is_empty() && !section.verdicts.is_empty(), "{} at {scale:?}", system.name);
            assert!(section.tables.iter().all(|table| table.rows.iter().all(|row| row.len() == table.head.len())));
        }
    }

    #[test]
    fn what_lacks_is_told_and_the_rest_goes_on() {
        for system in SYSTEMS {
            let results = results(&[]);
            let section = system.section(&Figures::new("card", [("none", &results)]), Scale::Source);
            assert!(!section.lacking.is_empty() && !section.tables.is_empty(), "{}", system.name);
        }
    }

    #[test]
    fn systems_are_known_by_their_names() {
        assert!(SYSTEMS.iter().all(|system| System::named(system.name).is_some()));
        assert!(System::named("rsa").is_none());
    }
}
