//! Timing: warm-up, then the median of several runs.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::coverage::Coverage;

/// How long to time one case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// The time of all runs together, at least.
    pub(crate) time: Duration,
    /// Runs at least. One run is not repeated, nor preceded by others.
    pub(crate) runs: usize,
}

/// Runs at most: beyond, the median does not move.
const MAX_RUNS: usize = 500;

/// What one run should take at least, so that a launch and a wait at its end, some 20 µs with CUDA and some 100 µs with
/// Vulkan, do not count: 0.1% and 0.5%.
pub(crate) const RUN_TIME: Duration = Duration::from_millis(20);

/// Iterations of a run at most, which bounds what waits in a queue.
pub(crate) const MAX_BATCH: u32 = 128;

/// What was timed, for one iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) median: Duration,
    pub(crate) min: Duration,
    pub(crate) mean: Duration,
    /// Of the runs' times, in square seconds, unbiased; 0 for one run.
    pub(crate) variance: f64,
    pub(crate) runs: usize,
    /// Iterations queued before the wait at the end of a run.
    pub(crate) batch: u32,
}

impl Timing {
    /// Of the times of runs, each of `batch` iterations. There is at least one.
    pub(crate) fn of(mut times: Vec<Duration>, batch: u32) -> Self {
        times.sort_unstable();
        let runs = times.len();
        let median = (times[(runs - 1) / 2] + times[runs / 2]) / 2;
        let seconds = |time: &Duration| time.as_secs_f64() / f64::from(batch);
        let mean = times.iter().map(seconds).sum::<f64>() / runs as f64;
        let squares: f64 = times.iter().map(|time| (seconds(time) - mean).powi(2)).sum();
        Self {
            median: median / batch,
            min: times[0] / batch,
            mean: Duration::from_secs_f64(mean),
            variance: squares / (runs - 1).max(1) as f64,
            runs,
            batch,
        }
    }
}

impl Budget {
    /// A program with debug assertions checks results, and its times say nothing.
    const ONCE: Option<Self> = if cfg!(debug_assertions) { Some(Self { time: Duration::ZERO, runs: 1 }) } else { None };

    pub(crate) fn of(coverage: Coverage) -> Self {
        if let Some(once) = Self::ONCE {
            return once;
        }
        let time = match coverage {
            Coverage::Summary | Coverage::Small => Duration::from_millis(300),
            Coverage::Full => Duration::from_secs(1),
        };
        Self { time, runs: 5 }
    }

    /// For algorithms with hundreds of cases, whose times vary little.
    pub(crate) fn brief() -> Self {
        Self::ONCE.unwrap_or(Self { time: Duration::from_millis(50), runs: 3 })
    }

    /// Times work that is queued: `queue` is called several times in a run, and `wait` at its end.
    pub(crate) fn time_queued(
        &self,
        mut queue: impl FnMut() -> Result<()>,
        mut wait: impl FnMut() -> Result<()>,
    ) -> Result<Timing> {
        let mut run = |batch: u32| {
            let start = Instant::now();
            (0..batch).try_for_each(|_| queue())?;
            wait()?;
            anyhow::Ok(start.elapsed())
        };
        if self.is_one_run() {
            return self.repeat(run, 1);
        }
        run(1)?;
        let once = run(1)?;
        let batch = (RUN_TIME.as_secs_f64() / once.as_secs_f64().max(1e-9)).ceil();
        self.repeat(run, (batch as u32).clamp(1, MAX_BATCH))
    }

    /// Times work that is done when it returns.
    pub(crate) fn time(&self, mut work: impl FnMut() -> Result<()>) -> Result<Timing> {
        if !self.is_one_run() {
            work()?;
            work()?;
        }
        let run = |_| {
            let start = Instant::now();
            work()?;
            Ok(start.elapsed())
        };
        self.repeat(run, 1)
    }

    /// Times work that uses up what it works on: `prepare` makes it anew for `batch` iterations, which does not count,
    /// and `work` gets the number of each.
    pub(crate) fn time_prepared(
        &self,
        batch: u32,
        mut prepare: impl FnMut(),
        mut work: impl FnMut(u32) -> Result<()>,
    ) -> Result<Timing> {
        let mut run = |batch: u32| {
            prepare();
            let start = Instant::now();
            (0..batch).try_for_each(&mut work)?;
            anyhow::Ok(start.elapsed())
        };
        if !self.is_one_run() {
            run(batch)?;
        }
        self.repeat(run, batch)
    }

    /// Times parts of work, which tell themselves how long they took.
    pub(crate) fn time_parts(&self, mut work: impl FnMut() -> Result<Duration>) -> Result<Timing> {
        if !self.is_one_run() {
            work()?;
            work()?;
        }
        self.repeat(|_| work(), 1)
    }

    fn is_one_run(&self) -> bool {
        self.runs == 1 && self.time.is_zero()
    }

    fn repeat(&self, mut run: impl FnMut(u32) -> Result<Duration>, batch: u32) -> Result<Timing> {
        if batch > 1 && !self.is_one_run() {
            run(batch)?;
        }
        let mut times = Vec::new();
        let mut total = Duration::ZERO;
        while times.len() < self.runs || (total < self.time && times.len() < MAX_RUNS) {
            let time = run(batch)?;
            total += time;
            times.push(time);
        }
        Ok(Timing::of(times, batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_work_is_batched_and_its_time_divided() {
        let budget = Budget { time: Duration::ZERO, runs: 5 };
        let (mut queued, mut waited) = (0u32, 0u32);
        let work = || {
            queued += 1;
            std::thread::sleep(Duration::from_millis(1));
            Ok(())
        };
        let wait = || {
            waited += 1;
            Ok(())
        };
        let timing = budget.time_queued(work, wait).unwrap();
        // A machine that does something else may sleep longer, not shorter.
        let most = RUN_TIME.as_millis() as u32;
        assert!((2..=most).contains(&timing.batch) && timing.runs == budget.runs, "{timing:?}");
        assert!(timing.min >= Duration::from_millis(1) && timing.median >= timing.min);
        assert_eq!((queued, waited), (2 + 6 * timing.batch, 8));
        assert_eq!(budget.time(|| Ok(())).unwrap().batch, 1);
    }

    #[test]
    fn one_run_is_not_repeated() {
        let once = Budget { time: Duration::ZERO, runs: 1 };
        let calls = std::cell::Cell::new(0);
        let call = || {
            calls.set(calls.get() + 1);
            Ok(())
        };
        assert_eq!(once.time_queued(call, || Ok(())).unwrap().runs, 1);
        assert_eq!(once.time(call).unwrap().runs, 1);
        assert_eq!(once.time_prepared(2, || (), |_| call()).unwrap().runs, 1);
        let part = || call().map(|()| Duration::from_secs(7));
        let timing = once.time_parts(part).unwrap();
        assert_eq!((timing.runs, timing.median), (1, Duration::from_secs(7)));
        assert_eq!(calls.get(), 1 + 1 + 2 + 1);
    }

    #[test]
    fn runs_have_a_median_a_mean_and_a_variance() {
        let timing = Timing::of([8, 2, 4, 2].map(Duration::from_secs).to_vec(), 2);
        assert_eq!(
            (timing.median, timing.min, timing.mean),
            (Duration::from_millis(1500), Duration::from_secs(1), Duration::from_secs(2))
        );
        assert_eq!((timing.variance, timing.runs, timing.batch), (2.0, 4, 2));
        assert_eq!(Timing::of(vec![Duration::from_secs(1)], 1).variance, 0.0);
    }

    #[test]
    fn what_is_prepared_is_used_once() {
        let budget = Budget { time: Duration::ZERO, runs: 3 };
        let fresh = std::cell::Cell::new(0);
        let work = |i: u32| {
            assert_eq!(fresh.replace(fresh.get() - 1), 4 - i);
            Ok(())
        };
        let timing = budget.time_prepared(4, || fresh.set(4), work).unwrap();
        assert_eq!((timing.batch, timing.runs, fresh.get()), (4, 3, 0));
    }
}
