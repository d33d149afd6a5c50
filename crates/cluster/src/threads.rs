//! Threads in place of processes, for tests.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use evariste_backend::author::Wiped;

use crate::{
    error::{Error, Result},
    ranks::Ranks,
};

/// A message of each rank, and how many have taken them.
#[derive(Debug, Default)]
struct Round {
    messages: Vec<Option<Wiped<u8>>>,
    taken: usize,
}

/// A rank that is a thread.
#[derive(Debug)]
pub(crate) struct Threads {
    rank: usize,
    size: usize,
    limit: Duration,
    shared: Arc<(Mutex<Round>, Condvar)>,
}

impl Threads {
    /// So many ranks, which wait for each other no longer than the limit.
    pub(crate) fn new(size: usize, limit: Duration) -> Vec<Self> {
        let round = Round { messages: vec![None; size], taken: 0 };
        let shared = Arc::new((Mutex::new(round), Condvar::new()));
        (0..size).map(|rank| Self { rank, size, limit, shared: Arc::clone(&shared) }).collect()
    }

    fn timeout<T>(&self) -> Result<T> {
        Err(Error::Timeout { what: "threads", limit: self.limit })
    }
}

impl Ranks for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn limit(&self) -> Duration {
        self.limit
    }

    fn all_gather(&self, own: &[u8]) -> Result<Wiped<u8>> {
        let (round, changed) = &*self.shared;
        let round = round.lock().unwrap_or_else(PoisonError::into_inner);
        // The message of the last round is taken by all.
        let free = |round: &mut Round| round.messages[self.rank].is_some();
        let (mut round, late) =
            changed.wait_timeout_while(round, self.limit, free).unwrap_or_else(PoisonError::into_inner);
        if late.timed_out() {
            return self.timeout();
        }
        round.messages[self.rank] = Some(Wiped::from(own.to_vec()));
        changed.notify_all();
        let open = |round: &mut Round| round.messages.iter().any(Option::is_none);
        let (mut round, late) =
            changed.wait_timeout_while(round, self.limit, open).unwrap_or_else(PoisonError::into_inner);
        if late.timed_out() {
            return self.timeout();
        }
        let mut all = Wiped::with_capacity(own.len() * self.size);
        round.messages.iter().flatten().for_each(|message| all.extend_from_slice(message));
        round.taken += 1;
        if round.taken == self.size {
            *round = Round { messages: vec![None; self.size], taken: 0 };
            changed.notify_all();
        }
        Ok(all)
    }

    fn all_to_all(&self, own: &[u8]) -> Result<Wiped<u8>> {
        let part = own.len() / self.size;
        let all = self.all_gather(own)?;
        let mut parts = Wiped::with_capacity(own.len());
        all.chunks(own.len().max(1)).for_each(|sent| parts.extend_from_slice(&sent[self.rank * part..][..part]));
        Ok(parts)
    }
}
