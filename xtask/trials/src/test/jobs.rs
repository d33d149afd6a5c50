//! Tests in processes of their own, several side by side.
//!
//! An emulated GPU compiles kernels on one thread of each process. Most programs of tests leave a core idle for much of
//! their time.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, PipeReader, Write},
    num::NonZero,
    process::{Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

/// Processes at a time at most: each may have a device with memory of its own.
const MOST: usize = 8;

/// Threads of tests in a process at least, so that tests meet on one device.
const FEWEST_THREADS: usize = 2;

/// How long output is waited for once its process has ended: processes that this one has left behind may hold the pipe.
const PATIENCE: Duration = Duration::from_secs(5);

/// Commands that run one after the other, whatever comes of them.
#[derive(Debug, Default)]
pub(super) struct Job {
    pub(super) steps: Vec<Step>,
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) command: Command,
    /// Printed when the command starts, where its lines are printed together once it has ended. Without a name they are
    /// printed as they come.
    pub(super) name: Option<String>,
}

/// Processes at a time, and threads of tests in each, for so many jobs.
pub(super) fn shares(jobs: usize) -> [usize; 2] {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let processes = cores.min(MOST).min(jobs).max(1);
    [processes, (cores / processes).max(FEWEST_THREADS)]
}

/// Runs all, and gives how each step of each job ended.
pub(super) fn run(jobs: Vec<Job>) -> Vec<Vec<Result<ExitStatus>>> {
    let [processes, _] = shares(jobs.len());
    let ended: Vec<Mutex<Vec<Result<ExitStatus>>>> = jobs.iter().map(|_| Mutex::default()).collect();
    let waiting = Mutex::new(jobs.into_iter().zip(&ended).collect::<VecDeque<_>>());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        for _ in 0..processes {
            scope.spawn(|| {
                while let Some((job, ended)) = next() {
                    let outcomes = job.steps.into_iter().map(Step::run).collect();
                    *ended.lock().unwrap_or_else(PoisonError::into_inner) = outcomes;
                }
            });
        }
    });
    ended.into_iter().map(|ended| ended.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

impl Step {
    fn run(self) -> Result<ExitStatus> {
        let Self { mut command, name } = self;
        if let Some(name) = &name {
            print(format!("running {name}\n").as_bytes());
        }
        let (reader, writer) = io::pipe().context("a pipe could not be made")?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let program = command.get_program().to_owned();
        let mut child = command.spawn().with_context(|| format!("{} could not be started", program.display()))?;
        // It has the pipe's other end, which would stay open.
        drop(command);
        let kept = Arc::new(Mutex::new(Vec::new()));
        let reading = {
            let (kept, streams) = (Arc::clone(&kept), name.is_none());
            thread::spawn(move || read(reader, streams, &kept))
        };
        let status = child.wait();
        let end = Instant::now() + PATIENCE;
        while !reading.is_finished() && Instant::now() < end {
            thread::sleep(Duration::from_millis(2));
        }
        print(&kept.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(status?)
    }
}

/// Reads to the end: prints lines as they come, or keeps them.
fn read(reader: PipeReader, streams: bool, kept: &Mutex<Vec<u8>>) {
    let (mut lines, mut line) = (BufReader::new(reader), Vec::new());
    while lines.read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
        if streams {
            print(&line);
        } else {
            kept.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&line);
        }
        line.clear();
    }
}

/// Prints a text in one piece. If nobody takes it, tests go on.
fn print(text: &[u8]) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text).and_then(|()| stdout.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    fn script(text: &str, name: Option<&str>) -> Step {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        Step { command, name: name.map(str::to_owned) }
    }

    #[cfg(unix)]
    #[test]
    fn outcomes_are_in_the_order_of_jobs_and_steps() {
        let nowhere = Step { command: Command::new("/nowhere/at/all"), name: None };
        let jobs = vec![
            Job { steps: vec![script("sleep 0.2; exit 3", Some("slow")), script("echo out; echo err >&2", None)] },
            Job { steps: vec![nowhere, script("exit 4", None)] },
            Job { steps: vec![script("kill -9 $$", None)] },
            Job::default(),
        ];
        let code = |ended: &Result<ExitStatus>| ended.as_ref().ok().map(ExitStatus::code);
        let codes: Vec<Vec<_>> = run(jobs).iter().map(|ended| ended.iter().map(code).collect()).collect();
        assert_eq!(codes, [vec![Some(Some(3)), Some(Some(0))], vec![None, Some(Some(4))], vec![Some(None)], vec![]]);
    }

    #[cfg(unix)]
    #[test]
    fn what_holds_the_pipe_is_not_waited_for() {
        let start = Instant::now();
        let ended = run(vec![Job { steps: vec![script("sleep 30 & echo $!", None)] }]);
        assert!(ended[0][0].as_ref().is_ok_and(ExitStatus::success));
        assert!(start.elapsed() < Duration::from_secs(29));
    }

    #[test]
    fn shares_fill_the_cores() {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        assert_eq!(shares(1), [1, cores.max(FEWEST_THREADS)]);
        assert_eq!(shares(0)[0], 1);
        assert_eq!(shares(1000)[0], cores.min(MOST));
    }
}
