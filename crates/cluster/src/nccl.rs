//! NCCL: data from the memory of one GPU to that of another, without host memory.
//!
//! # Choices
//! - **Loaded at run time**, by a table of our own ([`library`]): `cudarc`'s panics if the library lacks a function, and
//!   is bound to the names of one version.
//! - **Started by the ranks**: the first one names the group, and the others hear it by what the ranks talk by.
//! - **Never blocking**: the communicator is made so. Its calls return at once, and are asked for until the limit. A GPU
//!   that waits for a rank that died is freed by `ncclCommAbort`.
//! - **The host waits** for an exchange before it goes on. Whatever comes next on the device may wait for it without a
//!   limit.
//!
//! # Invariants
//! - The stream is one of the device's queues, lent for the time of the calls. Its work is in the order of the uses of the
//!   memory.
//! - A communicator that failed is aborted at once, and no call follows.
//! - No exchange is under way on any rank when a call of the cluster has ended well: ranks have told each other. So a
//!   communicator can be aborted then, too, and no rank waits for another one at the end.

use std::{
    cell::{Cell, OnceCell},
    ffi::{c_int, c_void},
    fmt,
    ops::Range,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use evariste_backend::{
    Buffer, Device, Dialect, Element, Error as DeviceError, Queue,
    author::{Arg, Lent},
};

use crate::{
    error::{Error, Result},
    rows::Moves,
};
use library::{BYTES, Config, IN_PROGRESS, Library, RawComm, SUCCESS, UniqueId};

mod library;

/// Bytes of the name of a group.
pub(crate) const ID: usize = library::ID;

/// How long a wait asks again and again before it sleeps, and sleeps before it asks again.
const SPIN: Duration = Duration::from_millis(1);
const SLEEP: Duration = Duration::from_micros(20);

/// How long the end of a communicator may take. It goes on beside the program then.
const ABORT: Duration = Duration::from_secs(10);

/// What NCCL needs, found to be there.
#[derive(Debug)]
pub(crate) struct Probe {
    functions: &'static Library,
    gpu: [u8; 16],
}

impl Probe {
    /// Looks for the library, and for a GPU that it works with.
    pub(crate) fn of(device: &Device) -> Result<Self> {
        let info = device.info();
        match (info.dialect(), info.uuid) {
            (Dialect::Cuda, Some(gpu)) => Ok(Self { functions: Library::get()?, gpu }),
            _ => Err(Error::NoNccl { reason: format!("{} is no NVIDIA GPU that CUDA opened", info.id) }),
        }
    }

    /// What tells the GPU from all others.
    pub(crate) fn gpu(&self) -> [u8; 16] {
        self.gpu
    }

    /// Makes a name for a group.
    pub(crate) fn id(&self) -> Result<[u8; ID]> {
        let mut id = UniqueId([0; ID]);
        // SAFETY: the pointer is to a live value.
        match unsafe { (self.functions.get_unique_id)(&mut id) } {
            SUCCESS => Ok(id.0),
            code => Err(Error::NoNccl { reason: self.functions.describe("ncclGetUniqueId", code, RawComm::default()) }),
        }
    }
}

/// The GPU of this rank, joined with those of the others.
pub(crate) struct Nccl {
    functions: &'static Library,
    /// Null once it was aborted.
    comm: Cell<RawComm>,
    /// Where the library works, and where what stays on the device is copied meanwhile.
    queue: Queue,
    aside: Queue,
    rank: usize,
    limit: Duration,
    failed: OnceCell<String>,
}

impl Nccl {
    /// Joins the group of this name as rank number `rank` of `size`. A rank that fails at once waits for the others
    /// meanwhile: a start with its abort takes three quarters of the limit at most.
    pub(crate) fn start(
        probe: &Probe,
        device: &Device,
        [rank, size]: [usize; 2],
        id: [u8; ID],
        limit: Duration,
    ) -> Result<Self> {
        let library = probe.functions;
        let lost = |error: DeviceError| Error::Exchange { rank, device: device.info().id, reason: error.to_string() };
        let (queue, aside) = (device.queue().map_err(lost)?, device.queue().map_err(lost)?);
        let own =
            Self { functions: library, comm: Cell::default(), queue, aside, rank, limit, failed: OnceCell::new() };
        let (Ok(ranks), Ok(at)) = (c_int::try_from(size), c_int::try_from(rank)) else {
            return own.give_up(format!("{size} ranks are more than it counts"));
        };
        let begin = Instant::now();
        let (mut config, mut started) = (Config::new(), SUCCESS);
        // The library writes there once more when it has started, which may be after the limit: it is never freed.
        let slot = Box::into_raw(Box::new(RawComm::default()));
        let mut join = |_: Lent<'_>| {
            // SAFETY: the pointers are to live values, and the context of the device is current.
            started = unsafe { (library.comm_init)(slot, ranks, UniqueId(id), at, &mut config) };
            // SAFETY: as above. It writes the same value again.
            own.comm.set(unsafe { slot.read_volatile() });
            Ok(())
        };
        // SAFETY: no work is given to the stream.
        let joined = unsafe { own.queue.lend(&mut [], &mut join) };
        match (joined, started) {
            (Ok(()), SUCCESS | IN_PROGRESS) if !own.comm.get().is_null() => {}
            (Ok(()), code) => return own.give_up(library.describe("ncclCommInitRankConfig", code, own.comm.get())),
            (Err(error), _) => return own.give_up(error.to_string()),
        }
        match own.wait("the start of NCCL", begin, limit / 2, || own.state().map(|state| state == SUCCESS)) {
            Ok(()) => Ok(own),
            Err(reason) => own.give_up(reason),
        }
    }

    /// Ends a start that failed. The library was given no memory.
    fn give_up<T>(&self, reason: String) -> Result<T> {
        self.abort(ABORT.min(self.limit / 4));
        Err(self.error(reason))
    }

    pub(crate) fn device(&self) -> &Device {
        self.queue.device()
    }

    /// Refuses calls after a failure.
    pub(crate) fn expect_whole(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |reason| Err(self.error(reason.clone())))
    }

    fn error(&self, reason: String) -> Error {
        Error::Exchange { rank: self.rank, device: self.device().info().id, reason }
    }

    /// Ends the communicator after an exchange that failed, for good.
    fn fail<T>(&self, mut reason: String) -> Result<T> {
        if !self.abort(ABORT) {
            reason.push_str(&format!("; NCCL did not end its work within {ABORT:?}, and the device counts as lost"));
            // What was exchanged may still be written: nobody else gets that memory.
            let lost = DeviceError::Lost { device: self.device().info().id, reason: reason.clone() };
            // SAFETY: no work is given to the stream.
            _ = unsafe { self.queue.lend(&mut [], |_| Err(lost.clone())) };
        }
        Err(self.error(self.failed.get_or_init(|| reason).clone()))
    }

    /// Whether it ended in time. GPUs no longer wait for other ranks then.
    fn abort(&self, limit: Duration) -> bool {
        let comm = self.comm.take();
        if comm.is_null() {
            return true;
        }
        let (abort, queue, (tell, ended)) = (self.functions.comm_abort, self.queue.clone(), mpsc::channel());
        // It may wait for others, whatever its manual says. The queue is kept until it ends.
        thread::spawn(move || {
            let mut comm = Some(comm);
            let mut end = || {
                if let Some(comm) = comm.take() {
                    // SAFETY: the communicator is live, and not used after this.
                    unsafe { abort(comm) };
                }
            };
            // With the context of the device: on another one the library would make one. A lost device has none.
            // SAFETY: no work is given to the stream.
            let lent = unsafe {
                queue.lend(&mut [], |_| {
                    end();
                    Ok(())
                })
            };
            if lent.is_err() {
                end();
            }
            _ = tell.send(());
        });
        ended.recv_timeout(limit).is_ok()
    }

    /// Sends rows to the other ranks, and receives theirs. All of it is done in the end.
    pub(crate) fn exchange<T: Element>(&self, from: &Buffer<T>, to: &mut Buffer<T>, moves: &Moves) -> Result<()> {
        self.expect_whole()?;
        // Whatever fails, the others wait for this rank.
        match self.try_exchange(from, to, moves) {
            Ok(()) => Ok(()),
            Err(reason) => self.fail(reason),
        }
    }

    fn try_exchange<T: Element>(&self, from: &Buffer<T>, to: &mut Buffer<T>, moves: &Moves) -> Result<(), String> {
        let (text, begin) = (|error: DeviceError| error.to_string(), Instant::now());
        from.secrecy().expect_to(to.secrecy(), "exchange", ["what is sent", "what is received"]).map_err(text)?;
        let of = |bytes: &Range<usize>| bytes.start / T::BYTES..bytes.end / T::BYTES;
        let (sent, received) = (of(&moves.own.sent), of(&moves.own.received));
        let own = to.view_mut(received.clone()).map_err(text)?;
        self.aside.copy(from.view(sent.clone()).map_err(text)?, own).map_err(text)?;

        let (low, high) = to.view_mut(..).and_then(|to| to.split_at(received.start)).map_err(text)?;
        let high = high.split_at(received.len()).map_err(text)?.1;
        let before = from.view(..sent.start).map_err(text)?;
        let after = from.view(sent.end..).map_err(text)?;
        let mut failed = None;
        let give = |lent: Lent<'_>| {
            // SAFETY: the messages are those of the rows of both buffers but the own one, whose bytes are lent. The
            // stream is the device's.
            let given = unsafe { self.give(moves, [lent.addresses[0], lent.addresses[2]], lent.stream, begin) };
            given.map_err(|reason| {
                failed = Some(reason.clone());
                DeviceError::Driver { device: self.device().info().id, call: "ncclGroupEnd", reason }
            })
        };
        let args = &mut [Arg::read(before), Arg::read(after), Arg::write(low), Arg::write(high)];
        // SAFETY: all work of a group is on the stream when the call has ended well, and another one is aborted.
        // Messages lie in the rows of others: each row has one place (`rows::moves`), and none is the own one.
        let given = unsafe { self.queue.lend(args, give) };
        if let Some(reason) = failed {
            return Err(reason);
        }
        given.map_err(text)?;
        let end = self.queue.record().map_err(text)?;
        self.wait("an exchange between devices", begin, self.limit, || {
            self.expect_well()?;
            self.device().is_done(&end).map_err(text)
        })
    }

    /// Gives the messages to a stream as one group.
    ///
    /// # Safety
    /// From these addresses on lie the bytes that the messages are of, in memory of this device.
    unsafe fn give(
        &self,
        moves: &Moves,
        [from, to]: [u64; 2],
        stream: *mut c_void,
        begin: Instant,
    ) -> Result<(), String> {
        let (library, comm) = (self.functions, self.comm.get());
        let check = |call, code| match code {
            SUCCESS | IN_PROGRESS => Ok(()),
            _ => Err(library.describe(call, code, comm)),
        };
        // SAFETY: it takes no arguments.
        check("ncclGroupStart", unsafe { (library.group_start)() })?;
        let given = moves.others.iter().try_for_each(|message| {
            // The number of ranks is a C integer.
            let peer = message.peer as c_int;
            let (sent, received) = (from + message.sent.start as u64, to + message.received.start as u64);
            // SAFETY: the caller vouches for the bytes, and the communicator is live.
            check("ncclSend", unsafe {
                (library.send)(sent as *const c_void, message.sent.len(), BYTES, peer, comm, stream)
            })?;
            // SAFETY: as above.
            check("ncclRecv", unsafe {
                (library.receive)(received as *mut c_void, message.received.len(), BYTES, peer, comm, stream)
            })
        });
        // A group that was started is ended, whatever it has.
        // SAFETY: it takes no arguments.
        let ended = check("ncclGroupEnd", unsafe { (library.group_end)() });
        given.and(ended)?;
        // Until what was given is on the stream.
        self.wait("an exchange between devices", begin, self.limit, || self.state().map(|state| state == SUCCESS))
    }

    /// Refuses a communicator that met an error.
    fn expect_well(&self) -> Result<(), String> {
        self.state().map(drop)
    }

    fn state(&self) -> Result<c_int, String> {
        let (comm, mut state) = (self.comm.get(), SUCCESS);
        // SAFETY: the communicator is live, and the pointer is to a live value.
        match (unsafe { (self.functions.comm_get_async_error)(comm, &mut state) }, state) {
            (SUCCESS, SUCCESS | IN_PROGRESS) => Ok(state),
            (SUCCESS, error) => Err(self.functions.describe("NCCL", error, comm)),
            (code, _) => Err(self.functions.describe("ncclCommGetAsyncError", code, comm)),
        }
    }

    /// Asks until something is done, until an error, or until the limit.
    fn wait(
        &self,
        what: &str,
        begin: Instant,
        limit: Duration,
        is_done: impl Fn() -> Result<bool, String>,
    ) -> Result<(), String> {
        let start = Instant::now();
        while !is_done()? {
            if begin.elapsed() > limit {
                return Err(format!("{what}: not all ranks came within {limit:?}"));
            }
            if start.elapsed() > SPIN { thread::sleep(SLEEP) } else { thread::yield_now() }
        }
        Ok(())
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        self.abort(ABORT);
    }
}

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nccl").field("device", self.device()).field("rank", &self.rank).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_of_another_kind_has_none() {
        let refused = Probe::of(&Device::cpu()).err();
        assert!(matches!(&refused, Some(Error::NoNccl { reason }) if reason.contains("cpu")), "{refused:?}");
    }
}
