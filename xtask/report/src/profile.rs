//! Profiles of Nsight Compute: what share of its rates a kernel has of memory and of multiprocessors, as counters tell.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

use crate::{Table, section::cell};

/// The kernels of a profile, in the order in which they were launched.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    kernels: Vec<Kernel>,
}

/// What counters tell of one launch; what was not counted is not there.
#[derive(Clone, Debug, PartialEq)]
struct Kernel {
    name: String,
    /// In percent, as all below.
    memory: Option<f64>,
    multiprocessors: Option<f64>,
    l1_hits: Option<f64>,
}

/// The columns of `ncu`, whose names are those of its metrics, in `--page raw`.
const NAME: &str = "Kernel Name";
const MEMORY: &str = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
const MULTIPROCESSORS: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
const L1_HITS: &str = "l1tex__t_sector_hit_rate.pct";

impl Profile {
    /// Reads what `ncu --csv --page raw` writes, of a run with the sections `SpeedOfLight` and
    /// `MemoryWorkloadAnalysis`, or with all.
    ///
    /// # Errors
    /// If there is no such file, or it has no column of kernels' names.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        Self::of(&text).with_context(|| format!("{} is no output of ncu --csv --page raw", path.display()))
    }

    fn of(text: &str) -> Result<Self> {
        // Before the table stands what the program and the profiler printed.
        let mut lines = text.lines().map(fields).skip_while(|fields| !fields.iter().any(|field| field == NAME));
        let head = lines.next().context("no line has the column of kernels' names")?;
        let column = |name: &str| head.iter().position(|field| field == name);
        let name = column(NAME).context("no column of kernels' names")?;
        let counted = [MEMORY, MULTIPROCESSORS, L1_HITS].map(column);
        // Units stand below the names, with no kernel.
        let rows = lines.filter(|fields| fields.get(name).is_some_and(|name| !name.is_empty()));
        let kernel = |fields: Vec<String>| {
            let number = |column: Option<usize>| fields.get(column?)?.replace(',', "").parse().ok();
            let [memory, multiprocessors, l1_hits] = counted.map(number);
            Kernel { name: fields[name].clone(), memory, multiprocessors, l1_hits }
        };
        let kernels: Vec<Kernel> = rows.map(kernel).collect();
        ensure!(!kernels.is_empty(), "there are no kernels");
        Ok(Self { kernels })
    }

    /// The profile as plain text: a line for each launch, and what its rounds say.
    pub fn text(&self) -> String {
        let mut table = Table::new(
            "Counters of Nsight Compute, % of the peak",
            ["launch", "kernel", "memory", "multiprocessors", "hits of L1"],
        );
        for (i, kernel) in self.kernels.iter().enumerate() {
            let Kernel { name, memory, multiprocessors, l1_hits } = kernel;
            table.row([format!("{}", i + 1), name.clone(), cell(*memory), cell(*multiprocessors), cell(*l1_hits)]);
        }
        let mut text = table.text();
        self.verdicts().iter().for_each(|verdict| text += &format!("  {verdict}\n"));
        text
    }

    /// What the source of HyperPlonk's profile reads from its own: the share of multiprocessors from the first round to
    /// the second, and the hits of the cache as that of memory falls.
    fn verdicts(&self) -> Vec<String> {
        let rounds: Vec<&Kernel> =
            self.kernels.iter().filter(|kernel| kernel.name.starts_with("sumcheck_round")).collect();
        let mut verdicts = Vec::new();
        let ([first, second, ..], Some(last)) = (&rounds[..], rounds.last()) else { return verdicts };
        let pair = |a: Option<f64>, b: Option<f64>| Some((cell(Some(a?)), cell(Some(b?))));
        if let Some((a, b)) = pair(first.multiprocessors, second.multiprocessors) {
            verdicts.push(format!(
                "From the first round to the second the share of multiprocessors goes from {a} to {b}%; the source's doubles."
            ));
        }
        if let (Some((a, b)), Some((c, d))) = (pair(first.memory, last.memory), pair(first.l1_hits, last.l1_hits)) {
            verdicts.push(format!(
                "From the first round to the last one of this kernel that of memory goes from {a} to {b}%, and hits of L1 from {c} to \
                 {d}%; the source's rise as its share of memory falls."
            ));
        }
        verdicts
    }
}

/// The fields of a line of comma-separated values, which may be quoted.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                fields.last_mut().into_iter().for_each(|field| field.push('"'));
                characters.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().into_iter().for_each(|field| field.push(character)),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "==PROF== Connected to process 7\n\
        \"ID\",\"Kernel Name\",\"dram__throughput.avg.pct_of_peak_sustained_elapsed\",\"l1tex__t_sector_hit_rate.pct\",\
        \"sm__throughput.avg.pct_of_peak_sustained_elapsed\"\n\
        \"\",\"\",\"%\",\"%\",\"%\"\n\
        \"0\",\"sumcheck_round(Params, F, \"\"x\"\")\",\"81.5\",\"1,0.25\",\"20\"\n\
        \"1\",\"sumcheck_round\",\"60\",\"30\",\"40.5\"\n\
        \"2\",\"sumcheck_tail\",\"n/a\",\"30\",\"2\"\n";

    #[test]
    fn kernels_are_read_with_their_shares() {
        let Profile { kernels } = Profile::of(TEXT).unwrap();
        let shares: Vec<_> =
            kernels.iter().map(|kernel| (kernel.memory, kernel.multiprocessors, kernel.l1_hits)).collect();
        assert_eq!(
            shares,
            [
                (Some(81.5), Some(20.0), Some(10.25)),
                (Some(60.0), Some(40.5), Some(30.0)),
                (None, Some(2.0), Some(30.0))
            ]
        );
        assert_eq!(kernels[0].name, "sumcheck_round(Params, F, \"x\")");
    }

    #[test]
    fn rounds_are_told_and_a_dash_is_what_was_not_counted() {
        let text = Profile::of(TEXT).unwrap().text();
        assert!(text.contains("from 20.0 to 40.5%") && text.contains("from 81.5 to 60.0%"), "{text}");
        assert!(text.lines().any(|line| line.contains("sumcheck_tail") && line.contains('–')), "{text}");
    }

    #[test]
    fn what_is_no_profile_is_an_error() {
        assert!(Profile::of("").is_err() && Profile::of("a,b\n1,2\n").is_err());
        assert!(Profile::of("\"ID\",\"Kernel Name\"\n\"\",\"\"\n").is_err());
        assert!(Profile::read(Path::new("no such file")).is_err());
    }
}
