//! Many jobs one after the other, of which all ranks know which are done.
//!
//! At the end of a job, ranks compare how it ended. These messages are as long as the digest at the start of every call.
//! So a rank that left a job on its own meets the others at their next call. They find that it does something else, which
//! ends their job too.

use std::ops::Range;

use crate::{
    cluster::{Cluster, DIGEST},
    error::{Error, Result},
    ranks::Ranks,
};

/// A batch that ended early.
#[derive(Debug, thiserror::Error)]
#[error("job {job} of a batch failed: {error}")]
pub struct Unfinished<T> {
    /// The results of the jobs before.
    pub finished: Vec<T>,
    /// The first job that is not finished. All ranks return the same one, unless a rank was lost just when they compared
    /// how a job ended: then it may be the next one on some of them ([`Cluster::earliest`]).
    pub job: usize,
    /// What ended it on this rank.
    pub error: Error,
}

impl<R: Ranks> Cluster<R> {
    /// Does jobs one after the other, on all ranks, and returns their results. A job may be any calls on the cluster, and
    /// work of a rank's own. It is finished when it has succeeded on every rank.
    ///
    /// After an error, the results of the jobs before are in [`Unfinished`]. Go on from [`Unfinished::job`] with this
    /// cluster, or with a new one if the cluster is no longer usable. Keep results outside of the process if it may die.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use evariste_cluster::{Cluster, Ranks, Result, Wiped};
    /// # struct Alone;
    /// # impl Ranks for Alone {
    /// #     fn rank(&self) -> usize { 0 }
    /// #     fn size(&self) -> usize { 1 }
    /// #     fn limit(&self) -> Duration { Duration::MAX }
    /// #     fn all_gather(&self, own: &[u8]) -> Result<Wiped<u8>> { Ok(own.to_vec().into()) }
    /// #     fn all_to_all(&self, own: &[u8]) -> Result<Wiped<u8>> { Ok(own.to_vec().into()) }
    /// # }
    /// # let cluster = Cluster::new(Alone);
    /// let squares = cluster.batch(0..4, |job| Ok(job * job)).expect("no job fails");
    /// assert_eq!(squares, [0, 1, 4, 9]);
    /// ```
    ///
    /// # Errors
    /// [`Unfinished`] with:
    ///
    /// - [`Error::Disagree`] if ranks are to do different jobs.
    /// - The error of the job on a rank where it fails, and [`Error::Failed`] or that of their own job on the others.
    /// - [`Error::Timeout`] if a rank does not come.
    pub fn batch<T>(
        &self,
        jobs: Range<usize>,
        mut job: impl FnMut(usize) -> Result<T>,
    ) -> Result<Vec<T>, Unfinished<T>> {
        let mut finished = Vec::new();
        if let Err(error) = self.agree("batch", &format!("{jobs:?}")) {
            return Err(Unfinished { finished, job: jobs.start, error });
        }
        for at in jobs {
            match self.end_job(at, job(at)) {
                Ok(result) => finished.push(result),
                Err(error) => return Err(Unfinished { finished, job: at, error }),
            }
        }
        Ok(finished)
    }

    /// Returns the least of the numbers that ranks give. Use it to agree on the job to go on from, where ranks of a new
    /// cluster have kept different numbers of results. A rank that needs none gives `usize::MAX`.
    ///
    /// # Errors
    /// - [`Error::Disagree`] if another rank calls something else.
    /// - [`Error::Timeout`] if a rank does not come.
    pub fn earliest(&self, job: usize) -> Result<usize> {
        self.agree("call", "the earliest job")?;
        let all = self.gather(&(job as u64).to_le_bytes())?;
        let number = |part: &[u8]| part.try_into().map_or(u64::MAX, u64::from_le_bytes);
        Ok(all.parts().map(number).min().map_or(job, |least| usize::try_from(least).unwrap_or(usize::MAX)))
    }

    /// Compares how a job ended.
    fn end_job<T>(&self, job: usize, mut own: Result<T>) -> Result<T> {
        loop {
            let all = match (self.gather(&message(job, own.is_ok())), &own) {
                (Ok(all), _) => all,
                (Err(error), Ok(_)) => return Err(error),
                // The first error tells more.
                (Err(_), Err(_)) => return own,
            };
            let is = |is_done: bool| all.parts().map(move |part| part == message(job, is_done));
            if is(true).all(|is_done| is_done) {
                return own;
            }
            match is(true).zip(is(false)).position(|(is_done, is_failed)| !is_done && !is_failed) {
                None => return self.together(own),
                // That rank is in another call still. It has this message in place of that call's, and fails.
                Some(rank) => own = own.and(Err(Error::Disagree { what: "job", rank })),
            }
        }
    }
}

/// How a job ended, as ranks tell each other.
fn message(job: usize, is_done: bool) -> [u8; DIGEST] {
    let end = if is_done { "done" } else { "failed" };
    *blake3::hash(format!("the end of job {job}: {end}").as_bytes()).as_bytes()
}
