//! Cases, what algorithms are made of for the bench, and results as they come in.

use std::time::Duration;

use anyhow::{Error, Result};
use evariste::backend::{self as backend, DeviceId};
use serde::Serialize;

use crate::{
    limits::Bound,
    progress::Progress,
    request::Request,
    target::Target,
    timing::{Budget, Timing},
};

/// What is measured of one algorithm: a file that ends in a constant of this type, and a line in the bench's table.
#[derive(Debug)]
pub(crate) struct Algorithm {
    /// What `--only` calls it; several files may share a name.
    pub(crate) name: &'static str,
    /// The cases that the summary shows.
    pub(crate) headlines: &'static [Headline],
    /// How long one case is timed.
    pub(crate) budget: fn(&Request) -> Budget,
    /// Hands all cases to [`Session::measure`]. It is called twice: first to count them.
    pub(crate) run: fn(&mut Session, &[Target], &Request),
    /// Whether a case failed only because its data is too large for the device.
    pub(crate) is_too_large: fn(&Error) -> bool,
}

/// A row of the summary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headline {
    /// The name of the case. What stands before its last slash is its task, which peers' cases share.
    pub(crate) case: &'static str,
    /// What the row says.
    pub(crate) title: &'static str,
}

/// Whether an error of the backend says that data is too large for a device.
pub(crate) fn is_too_large(error: &Error) -> bool {
    error.downcast_ref().is_some_and(is_too_large_for_device)
}

pub(crate) fn is_too_large_for_device(error: &backend::Error) -> bool {
    matches!(error, backend::Error::OutOfMemory { .. } | backend::Error::TooLarge { .. })
}

/// What the name of a case adds where copies and kernel wait for each other: the sum of the parts of the case without
/// it.
pub(crate) const IN_TURN: &str = "-in-turn";

/// The name of a case without where its data lies.
pub(crate) fn task(case: &str) -> Option<&str> {
    case.rsplit_once('/').map(|(task, _)| task)
}

/// What is measured.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) device: String,
    pub(crate) peer: Option<&'static str>,
    pub(crate) log_n: u32,
    /// Elements worked on, of all transforms together.
    pub(crate) elements: Option<usize>,
    /// The shortest time in seconds by the device's limits, and what bounds it.
    pub(crate) floor: Option<(f64, Bound)>,
}

/// A result.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    pub(crate) algorithm: &'static str,
    pub(crate) case: String,
    pub(crate) device: String,
    pub(crate) peer: Option<&'static str>,
    pub(crate) log_n: u32,
    elements: Option<usize>,
    pub(crate) median_ms: f64,
    min_ms: f64,
    mean_ms: f64,
    /// Of the runs' times.
    variance_ms2: f64,
    runs: usize,
    /// Iterations of a run.
    batch: u32,
    /// Kernel launches of one iteration.
    launches: Option<u64>,
    /// Elements in a second.
    pub(crate) throughput: Option<f64>,
    /// Of transforms: see `settings`.
    pub(crate) relative_efficiency: Option<f64>,
    pub(crate) of_limit: Option<f64>,
    pub(crate) limit: Option<Bound>,
    pub(crate) checked: String,
    /// How many times faster than the fastest peer.
    pub(crate) speedup: Option<Speedup>,
    /// The time as a share of that of its parts one after the other.
    pub(crate) of_parts: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Speedup {
    pub(crate) peer: &'static str,
    pub(crate) ratio: f64,
}

/// A case that a device has no room for.
#[derive(Debug, Serialize)]
pub(crate) struct Skipped {
    pub(crate) device: String,
    pub(crate) case: String,
    pub(crate) log_n: u32,
    pub(crate) reason: String,
}

/// What one or several sessions measured.
#[derive(Debug, Default)]
pub(crate) struct Measurements {
    pub(crate) records: Vec<Record>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) failures: Vec<String>,
}

/// Which cases are measured: those that all of these take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The headlines, if nothing else is measured.
    pub(crate) headlines: Option<Vec<Headline>>,
    /// Parts of names. A case must have one of them; all cases count if there are none.
    pub(crate) parts: Vec<String>,
    /// Names of the cases, if they are known.
    pub(crate) names: Option<Vec<String>>,
}

/// Results as they come in.
#[derive(Debug)]
pub(crate) struct Session {
    /// Of which algorithm the cases to come are.
    algorithm: &'static Algorithm,
    budget: Budget,
    /// Cases are counted and not measured.
    counting: bool,
    selection: Selection,
    pub(crate) progress: Progress,
    pub(crate) records: Vec<Record>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) failures: Vec<String>,
}

impl Session {
    /// Runs the cases of these algorithms that are selected.
    pub(crate) fn run(
        algorithms: &[&'static Algorithm],
        targets: &[Target],
        request: &Request,
        selection: Selection,
        progress: Progress,
    ) -> Option<Self> {
        let mut session = Self {
            algorithm: algorithms.first()?,
            budget: Budget::brief(),
            counting: true,
            selection,
            progress,
            records: Vec::new(),
            skipped: Vec::new(),
            failures: Vec::new(),
        };
        for counting in [true, false] {
            session.counting = counting;
            for algorithm in algorithms {
                (session.algorithm, session.budget) = (algorithm, (algorithm.budget)(request));
                (algorithm.run)(&mut session, targets, request);
            }
        }
        session.progress.finish();
        Some(session)
    }

    /// What was measured.
    pub(crate) fn results(self) -> Measurements {
        Measurements { records: self.records, skipped: self.skipped, failures: self.failures }
    }

    /// Measures one case: `work` checks the result, times it, and tells the launches and the check that was made.
    pub(crate) fn measure(&mut self, case: Case, work: impl FnOnce(&Budget) -> Result<(Timing, Option<u64>, String)>) {
        if !self.takes(&case) {
            return;
        }
        if self.counting {
            return self.progress.expect();
        }
        let Case { name, device, peer, log_n, elements, floor } = case;
        let by = peer.map(|peer| format!(" by {peer}")).unwrap_or_default();
        self.progress.step(&format!("{device}: {name} 2^{log_n}{by}"));
        match work(&self.budget) {
            Ok((timing, launches, checked)) => {
                let seconds = timing.median.as_secs_f64();
                self.records.push(Record {
                    algorithm: self.algorithm.name,
                    case: name,
                    device,
                    peer,
                    log_n,
                    elements,
                    median_ms: milliseconds(timing.median),
                    min_ms: milliseconds(timing.min),
                    mean_ms: milliseconds(timing.mean),
                    variance_ms2: 1e6 * timing.variance,
                    runs: timing.runs,
                    batch: timing.batch,
                    launches,
                    throughput: elements.map(|elements| elements as f64 / seconds),
                    of_limit: floor.map(|(floor, _)| floor / seconds),
                    limit: floor.map(|(_, bound)| bound),
                    checked,
                    relative_efficiency: None,
                    speedup: None,
                    of_parts: None,
                });
            }
            Err(error) if (self.algorithm.is_too_large)(&error) => {
                self.skipped.push(Skipped { device, case: name, log_n, reason: error.to_string() });
            }
            Err(error) => self.failures.push(format!("{device}: {name} 2^{log_n}{by}: {error:#}")),
        }
    }

    fn takes(&self, case: &Case) -> bool {
        let Selection { headlines, parts, names } = &self.selection;
        let of_summary = headlines.as_ref().is_none_or(|headlines| {
            headlines.iter().any(|headline| match case.peer {
                None => headline.case == case.name,
                Some(_) => task(headline.case) == task(&case.name),
            })
        });
        let has_part = parts.is_empty() || parts.iter().any(|part| case.name.contains(part.as_str()));
        of_summary && has_part && names.as_ref().is_none_or(|names| names.contains(&case.name))
    }
}

fn milliseconds(time: Duration) -> f64 {
    1e3 * time.as_secs_f64()
}

/// Sets how many times faster each record is than the fastest peer's of the same task and size, wherever the data of
/// either lies: peers on the processor are compared with every device, those on a GPU with it alone.
pub(crate) fn with_speedups(mut records: Vec<Record>) -> Vec<Record> {
    let task = |record: &Record| (task(&record.case).map(str::to_owned), record.log_n);
    let peers: Vec<_> = records
        .iter()
        .filter_map(|record| Some((task(record), record.peer?, record.median_ms, record.device.clone())))
        .collect();
    for record in records.iter_mut().filter(|record| record.peer.is_none()) {
        let here = |device: &str| device == record.device || device == DeviceId::CPU.to_string();
        let peers = peers.iter().filter(|(of, .., device)| *of == task(record) && here(device));
        let peer = peers.min_by(|a, b| a.2.total_cmp(&b.2));
        record.speedup = peer.map(|&(_, peer, median_ms, _)| Speedup { peer, ratio: median_ms / record.median_ms });
    }
    records
}

/// Sets which share each overlapped transfer takes of the time of its parts one after the other.
pub(crate) fn with_shares(mut records: Vec<Record>) -> Vec<Record> {
    let in_turn = |case: &str| case.rsplit_once('/').map(|(task, place)| format!("{task}{IN_TURN}/{place}"));
    let parts: Vec<_> = records.iter().map(|r| (r.device.clone(), r.case.clone(), r.log_n, r.median_ms)).collect();
    for record in records.iter_mut().filter(|record| record.peer.is_none()) {
        let Some(case) = in_turn(&record.case) else { continue };
        let sum = parts.iter().find(|part| (&part.0, &part.1, part.2) == (&record.device, &case, record.log_n));
        record.of_parts = sum.map(|part| record.median_ms / part.3);
    }
    records
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::coverage::Coverage;

    fn run(session: &mut Session, _: &[Target], _: &Request) {
        let case = |name: &str, peer| Case {
            name: name.into(),
            device: "cpu".into(),
            peer,
            log_n: 4,
            elements: Some(16),
            floor: Some((0.5e-3, Bound::Copy)),
        };
        let timing = |ms| Timing::of(vec![Duration::from_millis(ms)], 1);
        let mut one = |name, peer, ms| session.measure(case(name, peer), |_| Ok((timing(ms), None, "checked".into())));
        one("sort/device", None, 1);
        one("sort/host", Some("std"), 3);
        one("scan/device", None, 1);
        one("sort-in-turn/device", None, 2);
        session.measure(case("huge/device", None), |_| {
            Err(backend::Error::TooLarge { what: "buffer", device: backend::DeviceId::CPU, expected: 1, actual: 2 }
                .into())
        });
        session.measure(case("wrong/device", None), |_| anyhow::bail!("output 3 is wrong"));
    }

    static SORTS: Algorithm = Algorithm {
        name: "sorts",
        headlines: &[Headline { case: "sort/device", title: "sort" }],
        budget: |request| Budget::of(request.coverage),
        run,
        is_too_large,
    };

    fn session(selection: Selection) -> Session {
        let request = Request { coverage: Coverage::Summary, log_n: None, peers: true };
        Session::run(&[&SORTS], &[], &request, selection, Progress::new()).unwrap()
    }

    #[test]
    fn results_have_ratios_and_failures_are_told() {
        let session = session(Selection::default());
        assert_eq!(session.failures, ["cpu: wrong/device 2^4: output 3 is wrong"]);
        assert_eq!(session.skipped.len(), 1);
        let records = with_shares(with_speedups(session.records));
        assert_eq!(records.len(), 4);
        let sort = &records[0];
        assert!(sort.speedup.as_ref().is_some_and(|speedup| speedup.peer == "std" && speedup.ratio == 3.0));
        assert_eq!((sort.of_parts, sort.of_limit, sort.throughput), (Some(0.5), Some(0.5), Some(16e3)));
        assert!(records[2].speedup.is_none());
    }

    #[test]
    fn a_summary_has_headlines_and_their_peers_only() {
        let names =
            |session: Session| -> Vec<String> { session.records.into_iter().map(|record| record.case).collect() };
        let headlines = Selection { headlines: Some(SORTS.headlines.to_vec()), ..Selection::default() };
        assert_eq!(names(session(headlines)), ["sort/device", "sort/host"]);
        let parts = Selection { parts: vec!["scan".into()], ..Selection::default() };
        assert_eq!(names(session(parts)), ["scan/device"]);
        let named = Selection { names: Some(vec!["sort/device".into(), "sort".into()]), ..Selection::default() };
        assert_eq!(names(session(named)), ["sort/device"]);
    }
}
