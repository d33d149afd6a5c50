//! Times of the stages of proofs, by the spans that Plonky3 enters.

use std::{
    fmt::Debug,
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use anyhow::Result;
use serde::Serialize;
use tracing::{Event, Metadata, Subscriber, span};

/// Plonky3's names of the stages.
const STAGES: [&str; 4] = ["commit to trace data", "quotient_values", "commit to quotient poly chunks", "open"];

/// When a stage began, and how long it took, by its number.
static TIMES: Mutex<[(Option<Instant>, Duration); 4]> = Mutex::new([(None, Duration::ZERO); 4]);

fn times() -> MutexGuard<'static, [(Option<Instant>, Duration); 4]> {
    TIMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Times the stages.
struct Stages;

impl Stages {
    fn number(metadata: &Metadata<'_>) -> Option<usize> {
        STAGES.iter().position(|stage| metadata.is_span() && *stage == metadata.name())
    }

    fn with(id: &span::Id, change: impl FnOnce(&mut (Option<Instant>, Duration))) {
        if let Some(time) = times().get_mut(id.into_u64() as usize - 1) {
            change(time);
        }
    }
}

impl Subscriber for Stages {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        Self::number(metadata).is_some()
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        // Others come only where nobody asked whether they are enabled.
        span::Id::from_u64(Self::number(span.metadata()).unwrap_or(STAGES.len()) as u64 + 1)
    }

    fn enter(&self, id: &span::Id) {
        Self::with(id, |(begun, _)| *begun = Some(Instant::now()));
    }

    fn exit(&self, id: &span::Id) {
        Self::with(id, |(begun, took)| *took += begun.take().map_or(Duration::ZERO, |begun| begun.elapsed()));
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {}
}

/// A proof as text, with the times of its commitment to the trace and of all.
pub(crate) struct Proved {
    pub(crate) proof: String,
    commit: Duration,
    whole: Duration,
}

/// Times stages from here on, and prints the heads of columns.
pub(crate) fn start() -> Result<()> {
    tracing::subscriber::set_global_default(Stages).map_err(anyhow::Error::msg)?;
    let heads = ["commit", "quotient", "its commit", "open", "rest", "whole"].map(|head| format!("{head:>11}"));
    println!("{:<36}{}", "milliseconds", heads.concat());
    Ok(())
}

/// Proves twice, and prints the times of the second proof.
pub(crate) fn proved<Trace: Clone, Proof: Serialize, E: Debug>(
    name: &str,
    trace: &Trace,
    prove: impl Fn(Trace) -> Result<Proof, E>,
) -> Result<Proved> {
    let (mut proof, mut whole) = (None, Duration::ZERO);
    for _ in 0..2 {
        let trace = trace.clone();
        *times() = Default::default();
        let start = Instant::now();
        proof = Some(prove(trace).map_err(|error| anyhow::anyhow!("{error:?}"))?);
        whole = start.elapsed();
    }
    let stages = times().map(|(_, took)| took);
    let rest = whole.saturating_sub(stages.iter().sum());
    let all = stages.into_iter().chain([rest, whole]).map(|time| format!("{:>11.1}", time.as_secs_f64() * 1e3));
    println!("{name:<36}{}", all.collect::<String>());
    Ok(Proved { proof: serde_json::to_string(&proof)?, commit: stages[0], whole })
}

impl Proved {
    /// Prints how many times as fast this is as another proof.
    pub(crate) fn beside(&self, other: &Self) {
        let times = |other: Duration, own: Duration| other.as_secs_f64() / own.as_secs_f64().max(1e-9);
        let (commit, whole) = (times(other.commit, self.commit), times(other.whole, self.whole));
        println!("the commitment to the trace is {commit:.1} times as fast, and the whole proof {whole:.1} times");
    }
}
