//! The rules of talking: agree first, tell failures, then send.

use std::fmt::Display;

use evariste_backend::{Buffer, Device, Element, Error as DeviceError, HostBuffer, Transfer, author::Wiped};
use evariste_ntt::Rows;

use crate::{
    error::{Error, Result},
    nccl::{self, Nccl, Probe},
    ranks::Ranks,
    route::Route,
    rows::{moves, pieces},
};

/// Bytes of the text of an error that other ranks get.
const REASON: usize = 256;

/// Bytes before the data of a message: whether the rank failed, and why.
const HEADER: usize = 1 + REASON;

/// What stands in memory whose call never ended. As the start of a message, it says that its sender failed.
pub(crate) const TORN: u8 = 0xff;

/// Bytes of what ranks compare before a call.
pub(crate) const DIGEST: usize = 32;

/// Bytes that a rank sends to another one at a time through host memory, at most.
const PIECE: usize = 64 << 20;

/// Bytes that a rank sends and gets at a time, at most: libraries count all of a call in 31 bits.
const CALL: usize = i32::MAX as usize;

/// Bytes of a message between two devices, at most: libraries may count these in 31 bits too.
const MESSAGE: usize = 1 << 30;

/// Processes that work on one problem.
#[derive(Debug)]
pub struct Cluster<R> {
    // Before the ranks: it ends first.
    nccl: Option<Nccl>,
    host_reason: Option<String>,
    ranks: R,
    piece: usize,
}

impl<R: Ranks> Cluster<R> {
    /// Makes a cluster of processes whose devices exchange data through host memory.
    pub fn new(ranks: R) -> Self {
        Self { nccl: None, host_reason: None, ranks, piece: PIECE }
    }

    /// Makes a cluster of processes, of which this one has `device`. Plans on that device exchange data by `route`.
    ///
    /// # Errors
    /// - [`Error::Disagree`] if ranks ask for different routes.
    /// - If [`Route::Nccl`] is asked for: [`Error::NoNccl`] on a rank that cannot use NCCL, [`Error::Exchange`] on one
    ///   where it does not start, and [`Error::Failed`] on the others.
    /// - [`Error::Timeout`] if a rank does not come.
    pub fn with_route(ranks: R, device: &Device, route: Route) -> Result<Self> {
        let mut cluster = Self::new(ranks);
        cluster.agree("route", &format!("{route:?}"))?;
        if route != Route::Host {
            let started = cluster.start_nccl(device);
            match started {
                Ok(nccl) => cluster.nccl = Some(nccl),
                // All ranks come here together.
                Err(error @ (Error::NoNccl { .. } | Error::Exchange { .. } | Error::Failed { .. }))
                    if route == Route::Automatic =>
                {
                    cluster.host_reason = Some(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(cluster)
    }

    /// Starts NCCL on all ranks, or on none of them.
    fn start_nccl(&self, device: &Device) -> Result<Nccl> {
        let place = [self.rank(), self.size()];
        let probe = self.heard(Probe::of(device))?;
        let gpus = self.gather_with(None, &probe.gpu())?;
        let gpus: Vec<&[u8]> = gpus.parts().collect();
        let same = |second: &usize| gpus[..*second].iter().position(|gpu| *gpu == gpus[*second]);
        if let Some((first, second)) = (0..gpus.len()).find_map(|second| Some((same(&second)?, second))) {
            let reason = format!("ranks {first} and {second} have the same device; give each its own");
            return Err(Error::NoNccl { reason });
        }
        // The first rank names the group.
        let id = if place[0] == 0 { probe.id() } else { Ok([0; nccl::ID]) };
        let sent = id.as_ref().map_or([0; nccl::ID], |id| *id);
        let ids = self.gather_with(id.as_ref().err().map(Error::to_string), &sent);
        let (mut first, ids) = own_first(id, ids)?;
        ids.parts().take(1).for_each(|id| first.copy_from_slice(id));
        self.heard(Nccl::start(&probe, device, place, first, self.ranks.limit()))
    }

    /// [`Cluster::together`] for a start that may be done without: an error of its own must not hide that ranks do not
    /// hear each other.
    fn heard<T>(&self, own: Result<T>) -> Result<T> {
        let reports = self.gather_with(own.as_ref().err().map(Error::to_string), &[]);
        own_first(own, reports).map(|(own, _)| own)
    }

    /// Sets how many bytes a rank sends to another one at a time through host memory.
    #[cfg(test)]
    pub(crate) fn with_piece(self, piece: usize) -> Self {
        Self { piece, ..self }
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

    /// Returns the way of data between devices: NCCL or host memory.
    pub fn route(&self) -> Route {
        if self.nccl.is_some() { Route::Nccl } else { Route::Host }
    }

    /// Returns why data takes host memory, where [`Route::Automatic`] found that NCCL cannot be used.
    pub fn host_reason(&self) -> Option<&str> {
        self.host_reason.as_deref()
    }

    /// The way of data of plans on a device.
    pub(crate) fn route_of(&self, device: &Device) -> Route {
        if self.nccl_of(device).is_some() { Route::Nccl } else { Route::Host }
    }

    fn nccl_of(&self, device: &Device) -> Option<&Nccl> {
        self.nccl.as_ref().filter(|nccl| nccl.device().is_same(device))
    }

    /// Bytes of all ranks. After a failure between devices, ranks no longer know of each other what they do.
    pub(crate) fn gather(&self, own: &[u8]) -> Result<Gathered> {
        self.nccl.as_ref().map_or(Ok(()), Nccl::expect_whole)?;
        Ok(Gathered { bytes: self.ranks.all_gather(own)?, each: own.len(), header: 0 })
    }

    /// Refuses, on every rank, problems that differ. `shape` is everything that must be the same.
    pub(crate) fn agree(&self, what: &'static str, shape: &str) -> Result<()> {
        let digest: [u8; DIGEST] = *blake3::hash(shape.as_bytes()).as_bytes();
        self.gather(&digest)?.expect_same(what)
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
    pub(crate) fn gather_with(&self, failure: Option<String>, own: &[u8]) -> Result<Gathered> {
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
        let all = Gathered { header: HEADER, ..self.gather(&message)? };
        let failed = all.headers().enumerate().find(|(_, header)| header[0] != 0).map(|(rank, header)| {
            let text = String::from_utf8_lossy(&header[1..]);
            let reason = if header[0] == TORN { "it had given up waiting" } else { text.trim_end_matches('\0') };
            Error::Failed { rank, reason: reason.to_owned() }
        });
        failed.map_or(Ok(all), Err)
    }

    /// Sends an equal part of `from` to each rank, and receives that of each rank in `to`, by rank. Data takes the
    /// cluster's route if `from` is on the device that the route was made for, and host memory else.
    ///
    /// # Errors
    /// - [`Error::Disagree`] if ranks have different numbers or types of elements, routes or secrecies.
    /// - [`Error::Device`] on a rank whose buffers have another length each, or no equal part for each rank, or whose
    ///   device fails; [`Error::Failed`] on the others.
    /// - [`Error::Exchange`] if data does not pass between the devices, and [`Error::Mpi`] if it does not pass between
    ///   the processes.
    /// - [`Error::Timeout`] if a rank does not come.
    pub fn exchange<T: Element>(&self, from: &Buffer<T>, to: &mut Buffer<T>) -> Result<()> {
        let (element, len, size) = (std::any::type_name::<T>(), from.len(), self.size());
        let (route, secrecy) = (self.route_of(from.device()), from.secrecy());
        self.agree("exchange", &format!("{len} {element} by {route:?}, {secrecy:?}"))?;
        let parts = "elements of an exchange, a multiple of the number of ranks";
        let own = match len % size {
            0 => from.device().expect_same("what an exchange writes", to.device()),
            _ => Err(DeviceError::length(parts, len.next_multiple_of(size), len)),
        };
        self.together(own.and_then(|()| to.as_view().expect_len("what an exchange writes", len)))?;
        let places: Vec<usize> = (0..size).collect();
        let own = self.exchange_rows(from, to, &Rows { sent: places.clone(), received: places })?;
        self.together(own)
    }

    /// Exchanges the rows of a transform. The outer error is one between ranks. The inner one is of this rank alone, and
    /// others hear of it at the end of the call.
    pub(crate) fn exchange_rows<T: Element>(
        &self,
        from: &Buffer<T>,
        to: &mut Buffer<T>,
        rows: &Rows,
    ) -> Result<Result<(), DeviceError>> {
        let (size, bytes) = (self.size(), from.len() * T::BYTES);
        let of = |most| match moves(self.rank(), rows, bytes / size, most) {
            Some(moves) if rows.sent.len() == size && to.len() == from.len() => Ok(moves),
            _ => Err(DeviceError::length("the rows of an exchange", size, rows.sent.len())),
        };
        if let Some(nccl) = self.nccl_of(from.device()) {
            let moves = self.together(of(MESSAGE))?;
            return nccl.exchange(from, to, &moves).map(Ok);
        }
        let sent = self.together(of(bytes.max(1)).and_then(|_| from.read_pinned(host(from)?)?.wait()))?;
        let row = bytes / size;
        let received = host(to);
        let mut received = self.together(received)?;
        for piece in pieces(row, self.piece.min(CALL / size)) {
            let mut own = Wiped::with_capacity(piece.len() * size);
            rows.sent.iter().for_each(|at| own.extend_from_slice(&sent[at * row..][piece.clone()]));
            let all = self.ranks.all_to_all(&own)?;
            for (part, at) in all.chunks_exact(piece.len()).zip(&rows.received) {
                received[at * row..][piece.clone()].copy_from_slice(part);
            }
        }
        Ok(to.write_pinned(received).and_then(|write| write.wait()).map(drop))
    }
}

/// An error of this rank comes before that of another one, but not before that ranks do not hear each other.
fn own_first<T, U>(own: Result<T>, all: Result<U>) -> Result<(T, U)> {
    match (own, all) {
        (Err(own), Ok(_) | Err(Error::Failed { .. })) => Err(own),
        (own, all) => all.and_then(|all| Ok((own?, all))),
    }
}

/// Host memory for all of a buffer, as secret as the buffer.
fn host<T: Element>(buffer: &Buffer<T>) -> Result<HostBuffer, DeviceError> {
    buffer.device().host_buffer(buffer.len() * T::BYTES, Transfer::Both, buffer.secrecy())
}

/// What all ranks sent.
pub(crate) struct Gathered {
    bytes: Wiped<u8>,
    /// Bytes of each message, and how many of these come before the data.
    each: usize,
    header: usize,
}

impl Gathered {
    fn messages(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.each.max(1))
    }

    fn headers(&self) -> impl Iterator<Item = &[u8]> {
        self.messages().map(|message| &message[..self.header])
    }

    /// The data of each rank.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.messages().map(|message| &message[self.header..])
    }

    /// Refuses data that differ.
    pub(crate) fn expect_same(&self, what: &'static str) -> Result<()> {
        let first = self.parts().next();
        match self.parts().position(|other| Some(other) != first) {
            Some(rank) => Err(Error::Disagree { what, rank }),
            None => Ok(()),
        }
    }
}
