//! An MPI library. All waits but that of its start end: calls are started and asked for, and never block in the library.
//!
//! The library returns errors instead of ending the process. After the first one, or after a wait without an end, it is
//! not used any more, since MPI does not say what state it is in.

use std::{
    cell::OnceCell,
    ffi::{c_char, c_int},
    fmt,
    marker::PhantomData,
    mem::{ManuallyDrop, MaybeUninit},
    ptr, slice, thread,
    time::{Duration, Instant},
};

use evariste_backend::author::Wiped;
use mpi::{
    Threading,
    environment::Universe,
    ffi,
    raw::AsRaw,
    topology::{Communicator, SimpleCommunicator},
};

use crate::{
    error::{Error, Result},
    memory::Lent,
    ranks::Ranks,
};

/// How long a wait spins before it sleeps, and sleeps before it asks again.
const SPIN: Duration = Duration::from_micros(200);
const SLEEP: Duration = Duration::from_micros(50);

/// The processes that an MPI launcher started. There is one value a process.
///
/// It ends the library when it is dropped, unless a call failed or a rank did not come. The library would wait for it
/// then, and is left to the end of the process.
pub struct Mpi {
    universe: ManuallyDrop<Universe>,
    world: SimpleCommunicator,
    limit: Duration,
    broken: OnceCell<Broken>,
    /// The library takes calls one after the other.
    one_thread: PhantomData<*mut ()>,
}

/// Why the library is not used any more.
enum Broken {
    Late { what: &'static str },
    Failed { call: &'static str, reason: String },
}

/// A function of the library, which starts a call.
type Start = unsafe extern "C" fn(
    *const std::ffi::c_void,
    c_int,
    ffi::MPI_Datatype,
    *mut std::ffi::c_void,
    c_int,
    ffi::MPI_Datatype,
    ffi::MPI_Comm,
    *mut ffi::MPI_Request,
) -> c_int;

impl Mpi {
    /// Starts the library. No wait for other ranks takes longer than `limit`.
    ///
    /// # Errors
    /// - [`Error::Start`] if the library was started before in this process, or if it cannot be used by threads one
    ///   after the other.
    /// - [`Error::Mpi`] if it does not return errors to its callers.
    pub fn start(limit: Duration) -> Result<Self> {
        let reason = || "the MPI library was started before in this process".to_owned();
        let started = mpi::initialize_with_threading(Threading::Serialized);
        let (universe, provided) = started.ok_or_else(|| Error::Start { reason: reason() })?;
        if provided < Threading::Serialized {
            return Err(Error::Start { reason: format!("the MPI library provides {provided:?} threads alone") });
        }
        let (world, broken) = (universe.world(), OnceCell::new());
        let own = Self { universe: ManuallyDrop::new(universe), world, limit, broken, one_thread: PhantomData };
        // SAFETY: the library is started, and the communicator is live. By default, it ends the process on errors.
        own.check("MPI_Comm_set_errhandler", unsafe {
            ffi::MPI_Comm_set_errhandler(own.world.as_raw(), ffi::RSMPI_ERRORS_RETURN)
        })?;
        Ok(own)
    }

    /// Refuses every call after the first one that did not end well.
    fn expect_whole(&self) -> Result<()> {
        match self.broken.get() {
            None => Ok(()),
            Some(Broken::Late { what }) => Err(Error::Timeout { what, limit: self.limit }),
            Some(Broken::Failed { call, reason }) => Err(Error::Mpi { call, reason: reason.clone() }),
        }
    }

    fn fail(&self, broken: Broken) -> Result<()> {
        _ = self.broken.set(broken);
        self.expect_whole()
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        match code == ffi::MPI_SUCCESS as c_int {
            true => Ok(()),
            false => self.fail(Broken::Failed { call, reason: describe(code) }),
        }
    }

    /// Waits for a call.
    fn wait(&self, what: &'static str, mut request: ffi::MPI_Request) -> Result<()> {
        let start = Instant::now();
        loop {
            let mut is_done = 0;
            // SAFETY: the request is one of the library, the pointers are to live values, and nobody asks for a status.
            let code = unsafe { ffi::MPI_Test(&mut request, &mut is_done, ffi::RSMPI_STATUS_IGNORE) };
            self.check("MPI_Test", code)?;
            let waited = start.elapsed();
            match () {
                () if is_done != 0 => return Ok(()),
                () if waited > self.limit => return self.fail(Broken::Late { what }),
                () if waited > SPIN => thread::sleep(SLEEP),
                () => {}
            }
        }
    }

    /// Does a call with memory of its own. Each rank sends and gets `part` bytes at a time.
    fn call(
        &self,
        [what, call]: [&'static str; 2],
        start: Start,
        own: &[u8],
        [part, received]: [usize; 2],
    ) -> Result<Wiped<u8>> {
        self.expect_whole()?;
        let too_large = |_| Error::Mpi { call, reason: format!("{part} bytes are more than a call takes") };
        let count = c_int::try_from(part).map_err(too_large)?;
        let (sent, received) = (Lent::of(own), Lent::zeros(received));
        let mut request = MaybeUninit::uninit();
        // SAFETY: all counts are those of the memory, which is taken back when the call has ended, and never freed if it
        // does not.
        let code = unsafe {
            start(
                sent.start().cast(),
                count,
                ffi::RSMPI_UINT8_T,
                received.start().cast(),
                count,
                ffi::RSMPI_UINT8_T,
                self.world.as_raw(),
                request.as_mut_ptr(),
            )
        };
        self.check(call, code)?;
        // SAFETY: a call that was started has written its request.
        self.wait(what, unsafe { request.assume_init() })?;
        // SAFETY: the call has ended.
        unsafe {
            drop(sent.take());
            Ok(received.take())
        }
    }
}

/// What the library says of an error.
fn describe(code: c_int) -> String {
    let mut text = [0 as c_char; ffi::MPI_MAX_ERROR_STRING as usize];
    let mut len = 0;
    // SAFETY: there is room for the longest text that there is, and the pointers are to live values.
    let described = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr(), &mut len) };
    match (described == ffi::MPI_SUCCESS as c_int).then(|| usize::try_from(len)) {
        // SAFETY: the library has written so many bytes.
        Some(Ok(len)) => String::from_utf8_lossy(unsafe {
            slice::from_raw_parts(ptr::from_ref(&text).cast::<u8>(), len.min(text.len()))
        })
        .into_owned(),
        _ => format!("error {code}"),
    }
}

impl Ranks for Mpi {
    fn rank(&self) -> usize {
        usize::try_from(self.world.rank()).unwrap_or(0)
    }

    fn size(&self) -> usize {
        usize::try_from(self.world.size()).unwrap_or(1)
    }

    fn limit(&self) -> Duration {
        self.limit
    }

    fn all_gather(&self, own: &[u8]) -> Result<Wiped<u8>> {
        let names = ["a gathering of all ranks", "MPI_Iallgather"];
        self.call(names, ffi::MPI_Iallgather, own, [own.len(), own.len() * self.size()])
    }

    fn all_to_all(&self, own: &[u8]) -> Result<Wiped<u8>> {
        let (names, size) = (["an exchange between all ranks", "MPI_Ialltoall"], self.size());
        // Of what does not divide, nobody sends the rest.
        self.call(names, ffi::MPI_Ialltoall, own, [own.len() / size, own.len()])
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if self.broken.get().is_some() {
            return;
        }
        let mut request = MaybeUninit::uninit();
        // SAFETY: the pointer is to a live value, which a call that was started has written.
        let started = unsafe { ffi::MPI_Ibarrier(self.world.as_raw(), request.as_mut_ptr()) };
        // The end of the library waits for all ranks without a limit, so they meet before it.
        let met = self.check("MPI_Ibarrier", started).and_then(|()| {
            // SAFETY: as above.
            self.wait("the end", unsafe { request.assume_init() })
        });
        if met.is_ok() {
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
