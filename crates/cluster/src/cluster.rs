//! The rules of talking: agree first, tell failures, then send.

use std::fmt::Display;

use evariste_backend::author::Wiped;

use crate::{
    error::{Error, Result},
    ranks::Ranks,
};

/// Bytes of the text of an error that other ranks get.
const REASON: usize = 256;

/// Bytes before the data of a message: whether the rank failed, and why.
const HEADER: usize = 1 + REASON;

/// Bytes that a rank sends to another one at a time, at most.
const PIECE: usize = 64 << 20;

/// Bytes that a rank sends and gets at a time, at most: libraries count all of a call in 31 bits.
const CALL: usize = i32::MAX as usize;

/// Processes that work on one problem.
#[derive(Debug)]
pub struct Cluster<R> {
    ranks: R,
}

impl<R: Ranks> Cluster<R> {
    /// Makes a cluster of processes.
    pub fn new(ranks: R) -> Self {
        Self { ranks }
    }

    /// Returns the number of this process, from 0 on.
    pub fn rank(&self) -> usize {
        self.ranks.rank()
    }

    /// Returns how many processes there are.
    pub fn size(&self) -> usize {
        self.ranks.size()
    }

    /// Returns what the processes talk by.
    pub fn ranks(&self) -> &R {
        &self.ranks
    }

    /// Refuses, on every rank, problems that differ. `shape` is everything that must be the same.
    pub(crate) fn agree(&self, what: &'static str, shape: &str) -> Result<()> {
        let digest = blake3::hash(shape.as_bytes());
        let all = self.ranks.all_gather(digest.as_bytes())?;
        match all.iter().position(|other| *other != all[0]) {
            Some(rank) => Err(Error::Disagree { what, rank }),
            None => Ok(()),
        }
    }

    /// Tells the other ranks how this one's own work ended, and hears of theirs. A rank that failed returns its own
    /// error; the others return that it failed.
    pub(crate) fn together<T, E: Display>(&self, own: Result<T, E>) -> Result<T>
    where
        Error: From<E>,
    {
        let reports = self.gather_with(own.as_ref().err().map(E::to_string), &[]);
        match own {
            Err(error) => Err(error.into()),
            Ok(value) => reports.map(|_| value),
        }
    }

    /// Returns the bytes of all ranks, unless one of them says that it failed. The bytes of one that did are not sent.
    pub(crate) fn gather_with(&self, failure: Option<String>, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut message = Wiped::with_capacity(HEADER + own.len());
        message.resize(HEADER, 0);
        if let Some(reason) = &failure {
            let mut end = reason.len().min(REASON);
            while !reason.is_char_boundary(end) {
                end -= 1;
            }
            message[0] = 1;
            message[1..1 + end].copy_from_slice(&reason.as_bytes()[..end]);
            message.resize(HEADER + own.len(), 0);
        } else {
            message.extend_from_slice(own);
        }
        let mut all = self.ranks.all_gather(&message)?;
        if let Some((rank, message)) = all.iter().enumerate().find(|(_, message)| message[0] != 0) {
            let text = String::from_utf8_lossy(&message[1..HEADER]);
            return Err(Error::Failed { rank, reason: text.trim_end_matches('\0').to_owned() });
        }
        all.iter_mut().for_each(|message| drop(message.drain(..HEADER)));
        Ok(all)
    }

    /// Sends an equal part of `own` to each rank, in pieces, and returns the parts for this one.
    pub(crate) fn exchange(&self, own: &[u8]) -> Result<Wiped<u8>> {
        let (size, part) = (self.size(), own.len() / self.size());
        let piece = PIECE.min(CALL / size).max(1);
        if part <= piece {
            return Ok(Wiped::from(self.ranks.all_to_all(own)?));
        }
        let mut received = Wiped::from(vec![0; own.len()]);
        for start in (0..part).step_by(piece) {
            let end = part.min(start + piece);
            let mut sent = Wiped::with_capacity((end - start) * size);
            (0..size).for_each(|rank| sent.extend_from_slice(&own[rank * part + start..rank * part + end]));
            let pieces = Wiped::from(self.ranks.all_to_all(&sent)?);
            for (rank, piece) in pieces.chunks(end - start).enumerate() {
                received[rank * part + start..rank * part + end].copy_from_slice(piece);
            }
        }
        Ok(received)
    }
}
