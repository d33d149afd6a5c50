//! An MPI library. All waits but that of its start end: calls are started and asked for, and never block in the library.

use std::{
    fmt,
    marker::PhantomData,
    mem::ManuallyDrop,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use mpi::{
    Threading,
    collective::CommunicatorCollectives,
    environment::Universe,
    request::{Request, StaticScope},
    topology::{Communicator, SimpleCommunicator},
};

use crate::{
    error::{Error, Result},
    ranks::Ranks,
};

/// How long a wait spins before it sleeps, and sleeps before it asks again.
const SPIN: Duration = Duration::from_micros(200);
const SLEEP: Duration = Duration::from_micros(50);

/// The processes that an MPI launcher started. There is one value a process.
///
/// It ends the library when it is dropped, unless a rank did not come: then the library would wait for it, and is left to
/// the end of the process.
pub struct Mpi {
    universe: ManuallyDrop<Universe>,
    world: SimpleCommunicator,
    limit: Duration,
    is_broken: AtomicBool,
    /// The library takes calls one after the other.
    one_thread: PhantomData<*mut ()>,
}

impl Mpi {
    /// Starts the library. No wait for other ranks takes longer than `limit`.
    ///
    /// # Errors
    /// [`Error::Start`] if the library was started before in this process, or if it cannot be used by threads one after
    /// the other.
    pub fn start(limit: Duration) -> Result<Self> {
        let reason = || "the MPI library was started before in this process".to_owned();
        let started = mpi::initialize_with_threading(Threading::Serialized);
        let (universe, provided) = started.ok_or_else(|| Error::Start { reason: reason() })?;
        if provided < Threading::Serialized {
            return Err(Error::Start { reason: format!("the MPI library provides {provided:?} threads alone") });
        }
        let (world, is_broken) = (universe.world(), AtomicBool::new(false));
        Ok(Self { universe: ManuallyDrop::new(universe), world, limit, is_broken, one_thread: PhantomData })
    }

    /// Waits for a call. Its memory is left to the library if it does not end.
    fn wait<D: ?Sized>(&self, what: &'static str, mut request: Request<'static, D, StaticScope>) -> Result<()> {
        let start = Instant::now();
        loop {
            request = match request.test() {
                Ok(_) => return Ok(()),
                Err(request) => request,
            };
            let waited = start.elapsed();
            if waited > self.limit {
                // Dropping a request that is open panics, and the library may still write to its memory.
                std::mem::forget(request);
                self.is_broken.store(true, Ordering::Relaxed);
                return Err(Error::Timeout { what, limit: self.limit });
            }
            if waited > SPIN {
                thread::sleep(SLEEP);
            }
        }
    }

    /// Does a call with memory of its own, which is freed when the call has ended.
    fn call(
        &self,
        what: &'static str,
        own: &[u8],
        bytes: usize,
        start: impl FnOnce(&SimpleCommunicator, &'static [u8], &'static mut [u8]) -> Request<'static, [u8], StaticScope>,
    ) -> Result<Vec<u8>> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(Error::Timeout { what, limit: self.limit });
        }
        let (sent, received) = (Box::into_raw(own.into()), Box::into_raw(vec![0; bytes].into_boxed_slice()));
        // SAFETY: both come from boxes, and nobody else uses them until the call has ended; if it never does, they are
        // never freed.
        let request = unsafe { start(&self.world, &*sent, &mut *received) };
        self.wait(what, request)?;
        // SAFETY: as above, and the call has ended.
        let (sent, received) = unsafe { (Box::from_raw(sent), Box::from_raw(received)) };
        drop(evariste_backend::author::Wiped::from(sent.into_vec()));
        Ok(received.into_vec())
    }
}

impl Ranks for Mpi {
    fn rank(&self) -> usize {
        usize::try_from(self.world.rank()).unwrap_or(0)
    }

    fn size(&self) -> usize {
        usize::try_from(self.world.size()).unwrap_or(1)
    }

    fn all_gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let all = self.call("a gathering of all ranks", own, own.len() * self.size(), |world, sent, received| {
            world.immediate_all_gather_into(StaticScope, sent, received)
        })?;
        Ok(all.chunks(own.len().max(1)).map(<[u8]>::to_vec).collect())
    }

    fn all_to_all(&self, own: &[u8]) -> Result<Vec<u8>> {
        self.call("an exchange between all ranks", own, own.len(), |world, sent, received| {
            world.immediate_all_to_all_into(StaticScope, sent, received)
        })
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        // The end of the library waits for all ranks without a limit, so they meet before it.
        if !*self.is_broken.get_mut() && self.wait("the end", self.world.immediate_barrier()).is_ok() {
            // SAFETY: it is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.universe) }
        }
    }
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mpi").field("rank", &self.rank()).field("size", &self.size()).finish_non_exhaustive()
    }
}
