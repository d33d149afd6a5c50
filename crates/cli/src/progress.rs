//! Progress on the standard error, where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const TICK: Duration = Duration::from_millis(100);

/// A step without a known length. The line goes when it is dropped.
pub(crate) struct Step(ProgressBar);

impl Step {
    pub(crate) fn new(message: &'static str) -> Self {
        let bar = ProgressBar::new_spinner().with_style(style("{spinner} {msg} {elapsed}")).with_message(message);
        bar.enable_steady_tick(TICK);
        Self(bar)
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Items of a number that is known.
pub(crate) struct Items(ProgressBar);

impl Items {
    pub(crate) fn new(message: &'static str, count: u64) -> Self {
        Self::with_style(message, count, "{msg} {wide_bar} {pos}/{len} {per_sec} {eta}")
    }

    pub(crate) fn bytes(message: &'static str, count: u64) -> Self {
        Self::with_style(message, count, "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
    }

    fn with_style(message: &'static str, count: u64, template: &str) -> Self {
        Self(ProgressBar::new(count).with_style(style(template)).with_message(message))
    }

    pub(crate) fn set(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Does something that prints, without the bar in its way.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
