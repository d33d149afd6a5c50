use std::io::{self, IsTerminal};

/// How far the measurement is, on the standard error: a bar on a terminal; elsewhere nothing, since a bar is no text.
#[derive(Debug)]
pub(crate) struct Progress {
    terminal: bool,
    done: usize,
    total: usize,
}

/// Characters of the bar, and of a line.
const BAR: usize = 24;
const LINE: usize = 100;

impl Progress {
    pub(crate) fn new() -> Self {
        Self { terminal: io::stderr().is_terminal(), done: 0, total: 0 }
    }

    /// There is one step more to come.
    pub(crate) fn expect(&mut self) {
        self.total += 1;
    }

    /// Another step begins.
    pub(crate) fn step(&mut self, what: &str) {
        if self.terminal {
            eprint!("\r\x1b[K{}", self.line(what));
        }
        self.done += 1;
    }

    fn line(&self, what: &str) -> String {
        // Some cases turn up only later.
        let total = self.total.max(self.done + 1);
        let filled = BAR * self.done / total;
        let line = format!("{}{} {}/{total} {what}", "█".repeat(filled), "░".repeat(BAR - filled), self.done + 1);
        line.chars().take(LINE).collect()
    }

    pub(crate) fn finish(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_and_stays_on_its_line() {
        let mut progress = Progress { terminal: false, done: 0, total: 0 };
        (0..4).for_each(|_| progress.expect());
        assert_eq!(progress.line("x"), format!("{} 1/4 x", "░".repeat(BAR)));
        (0..3).for_each(|_| progress.step(""));
        assert_eq!(progress.line("x"), format!("{}{} 4/4 x", "█".repeat(18), "░".repeat(6)));
        (0..3).for_each(|_| progress.step(""));
        assert!(progress.line(&"long".repeat(100)).chars().count() == LINE, "more steps than were known do no harm");
    }
}
