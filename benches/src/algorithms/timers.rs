//! Timers beside each other on the same work, as one of the founding documents has them.

#![cfg(feature = "all")]

use std::{
    fmt,
    sync::OnceLock,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Result, ensure};
use evariste::backend::{Buffer, Device};
use evariste::field::{Mont, Vector, small::BabyBear};

use crate::{
    input,
    request::Request,
    session::{self, Algorithm, Case, Session},
    target::Target,
    timing::{Budget, Timing},
};

/// Timers.
pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "timers",
    headlines: &[],
    budget: |request| Budget::of(request.coverage),
    run,
    is_too_large: |error| error.is::<NoTimer>() || session::is_too_large(error),
};

/// Additions of a run.
const ADDITIONS: usize = 20_000_000;

/// log₂ of them, rounded up.
const LOG_ADDITIONS: u32 = ADDITIONS.ilog2() + 1;

/// Runs. The first does not count, since it includes the first work of the device.
const RUNS: usize = 11;

/// Times work on a device.
type Timer = fn(&Device, &mut dyn FnMut() -> Result<()>) -> Result<Duration>;

const TIMERS: [(&str, Timer); 5] = [
    ("process-clock", process_clock),
    ("monotonic-clock", monotonic_clock),
    ("system-clock", system_clock),
    ("time-stamp-counter", time_stamp_counter),
    ("device-events", device_events),
];

/// A timer that there is not where this program runs.
#[derive(Debug)]
struct NoTimer;

impl fmt::Display for NoTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this system or processor has no such timer")
    }
}

impl std::error::Error for NoTimer {}

fn run(session: &mut Session, targets: &[Target], request: &Request) {
    if request.log_n.as_ref().is_some_and(|sizes| !sizes.contains(LOG_ADDITIONS)) {
        return;
    }
    for target in targets {
        for (name, timer) in TIMERS {
            let described = Case {
                name: format!("{ADDITIONS}-additions/{name}"),
                device: target.device.info().id.to_string(),
                peer: None,
                log_n: LOG_ADDITIONS,
                elements: Some(ADDITIONS),
                floor: None,
            };
            session.measure(described, |_| Ok((additions(&target.device, timer)?, None, CHECKED.into())));
        }
    }
}

const CHECKED: &str = "first and last sums of field elements";

fn additions(device: &Device, timer: Timer) -> Result<Timing> {
    let vector = Vector::<BabyBear>::new(device);
    let host: Vec<BabyBear> = input::random(1 << 16);
    let cycled: Vec<BabyBear> = host.iter().copied().cycle().take(ADDITIONS).collect();
    let a = device.upload::<Mont<BabyBear>>(&cycled)?;
    let mut out: Buffer<Mont<BabyBear>> = device.alloc(ADDITIONS)?;
    let mut add = || -> Result<()> {
        vector.add(&a, &a, &mut out)?;
        Ok(device.sync()?)
    };
    let times: Vec<Duration> = (0..RUNS).map(|_| timer(device, &mut add)).collect::<Result<_>>()?;
    for at in [0, ADDITIONS - 1] {
        ensure!(out.view(at..=at)?.to_vec()? == [cycled[at] + cycled[at]], "sum {at} is wrong");
    }
    Ok(Timing::of(times[1..].to_vec(), 1))
}

fn monotonic_clock(_: &Device, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

fn system_clock(_: &Device, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
    let start = SystemTime::now();
    work()?;
    // Zero where somebody set the clock back meanwhile.
    Ok(start.elapsed().unwrap_or_default())
}

/// What all threads of this process have had of processors.
#[cfg(unix)]
fn process_clock(_: &Device, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
    use rustix::time::{ClockId, clock_gettime};

    let now = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let start = now();
    work()?;
    Ok(now() - start)
}

#[cfg(not(unix))]
fn process_clock(_: &Device, _: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
    Err(NoTimer.into())
}

/// Ticks of the processor's counter, at the rate that it has by the monotonic clock.
#[cfg(target_arch = "x86_64")]
fn time_stamp_counter(_: &Device, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
    /// Ticks in a second.
    static RATE: OnceLock<f64> = OnceLock::new();

    // SAFETY: all processors of this architecture have it.
    let now = || unsafe { core::arch::x86_64::_rdtsc() };
    let rate = RATE.get_or_init(|| {
        let (start, ticks) = (Instant::now(), now());
        while start.elapsed() < CALIBRATION {
            std::hint::spin_loop();
        }
        (now() - ticks) as f64 / start.elapsed().as_secs_f64()
    });
    let start = now();
    work()?;
    Ok(Duration::from_secs_f64(now().saturating_sub(start) as f64 / rate))
}

/// How long the rate of the counter is measured.
#[cfg(target_arch = "x86_64")]
const CALIBRATION: Duration = Duration::from_millis(100);

#[cfg(not(target_arch = "x86_64"))]
fn time_stamp_counter(_: &Device, _: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
    Err(NoTimer.into())
}

fn device_events(device: &Device, work: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
    let start = device.default_queue().record()?;
    work()?;
    Ok(device.elapsed(&start, &device.default_queue().record()?)?)
}
