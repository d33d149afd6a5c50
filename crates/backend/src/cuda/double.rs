//! A double of the driver in host memory, for tests of this backend.
//!
//! Each thread has a driver of its own, with two devices. Work is queued as in the driver, and done as late as it may
//! be: when someone waits for it. So the double sees memory that is freed or given to someone else too early. Work that
//! touches memory that is not allocated is noted as a fault. [`pending`] says whether work is left that touches host
//! memory. [`fail`] makes the n-th call of a function fail.
//!
//! A kernel's code is anything. A launch fills the words of its one buffer with the word of its parameters.

use std::{
    alloc::{Layout, dealloc},
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    ffi::c_int,
    mem, ptr, slice,
};

use cudarc::driver::sys::{CUevent, CUresult, CUstream};

pub(super) use functions::FUNCTIONS;
use functions::SUCCESS;

mod functions;

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Once, without having done anything.
    Once,
    /// Once, though it has done what it should.
    Late,
    /// Like every call after it, until [`heal`].
    Lasting,
    /// Once, and every call after it says that the context is gone.
    Lost,
}

/// Bytes from one row to the next that copies of several rows may have at most.
pub(super) const MAX_PITCH: usize = 1024;

/// A word that no memory may hold when it is freed.
pub(super) const SECRET: u32 = 0x5ec2_e7ed;

/// Functions whose failure leaks what they should have freed: that is the driver's.
pub(super) const RELEASES: [&str; 6] = [
    "cuDevicePrimaryCtxRelease_v2",
    "cuEventDestroy_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuModuleUnload",
    "cuStreamDestroy_v2",
];

thread_local! {
    static WORLD: RefCell<World> = RefCell::default();
}

#[derive(Default)]
struct World {
    calls: BTreeMap<&'static str, usize>,
    /// The call that is to fail, and how.
    fail: Option<(&'static str, usize, Failure)>,
    /// All calls fail with this.
    down: Option<CUresult>,
    faults: Vec<String>,
    current: usize,
    retained: [usize; 2],
    next: usize,
    streams: BTreeMap<usize, Stream>,
    events: BTreeMap<usize, Mark>,
    modules: usize,
    device: BTreeMap<u64, Vec<u8>>,
    host: BTreeMap<usize, usize>,
    without_pools: bool,
    /// What kernels are compiled for, if not for 90.
    architecture: Option<c_int>,
    /// Of each launch: attributes, blocks and threads of a block.
    launches: Vec<[u32; 3]>,
    /// Copies to and from host memory, in the order in which they were done.
    transfers: Vec<Transfer>,
}

/// A copy that was done: of host memory at this address.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Transfer {
    Up(usize),
    Down(usize),
}

struct Stream {
    context: usize,
    work: VecDeque<Work>,
    live: bool,
}

/// An event: the context that was current when it was made, and the streams on which it was recorded, one after the
/// other. It also knows whether that point is reached.
#[derive(Default)]
struct Mark {
    context: usize,
    points: Vec<(usize, bool)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Host(usize),
    Device(u64),
}

enum Work {
    Copy { from: Place, to: Place, bytes: usize },
    Set { at: u64, bytes: usize, value: u8 },
    Fill { at: u64, word: u32 },
    Record { event: usize, time: usize },
    Wait { event: usize, times: usize },
    Free { at: u64 },
}

impl Work {
    fn touches_host(&self, start: usize, len: usize) -> bool {
        let Self::Copy { from, to, bytes } = self else { return false };
        [from, to].into_iter().any(|place| matches!(place, Place::Host(at) if *at < start + len && start < at + bytes))
    }

    fn touches_device(&self, start: u64, len: u64) -> bool {
        let inside = |at: u64, bytes: usize| at < start + len && start < at + bytes as u64;
        match *self {
            Self::Copy { from, to, bytes } => {
                [from, to].into_iter().any(|place| matches!(place, Place::Device(at) if inside(at, bytes)))
            }
            Self::Set { at, bytes, .. } => inside(at, bytes),
            Self::Fill { at, .. } => inside(at, 4),
            _ => false,
        }
    }
}

impl World {
    fn id(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn push(&mut self, stream: CUstream, work: Work) {
        match self.streams.get_mut(&(stream as usize)).filter(|stream| stream.live) {
            Some(stream) => stream.work.push_back(work),
            None => self.faults.push("work for a stream that is not there".into()),
        }
    }

    fn run(&mut self, stream: usize) {
        while let Some(work) = self.streams.get_mut(&stream).and_then(|stream| stream.work.pop_front()) {
            self.step(stream, work);
        }
    }

    /// Does what comes before the point that an event marked when it was recorded for the `times`-th time.
    fn run_to(&mut self, event: usize, times: usize) {
        let point = |world: &Self| world.events.get(&event)?.points.get(times.checked_sub(1)?).copied();
        while let Some((stream, false)) = point(self) {
            let Some(work) = self.streams.get_mut(&stream).and_then(|stream| stream.work.pop_front()) else { return };
            self.step(stream, work);
        }
    }

    fn times(&self, event: CUevent) -> usize {
        self.events.get(&(event as usize)).map_or(0, |mark| mark.points.len())
    }

    fn step(&mut self, stream: usize, work: Work) {
        match work {
            Work::Copy { from, to, bytes } => {
                let Some(data) = self.read(from, bytes) else { return };
                self.write(to, &data);
                self.transfers.extend(match (from, to) {
                    (Place::Host(at), _) => Some(Transfer::Up(at)),
                    (_, Place::Host(at)) => Some(Transfer::Down(at)),
                    _ => None,
                });
            }
            Work::Set { at, bytes, value } => self.write(Place::Device(at), &vec![value; bytes]),
            Work::Fill { at, word } => {
                let words = self.device.get(&at).map_or(1, |memory| memory.len() / 4);
                self.write(Place::Device(at), &word.to_le_bytes().repeat(words));
            }
            Work::Record { event, time } => {
                if let Some((_, done)) = self.events.get_mut(&event).and_then(|mark| mark.points.get_mut(time)) {
                    *done = true;
                }
            }
            Work::Wait { event, times } => self.run_to(event, times),
            Work::Free { at } => {
                let Some(memory) = self.device.remove(&at) else {
                    return self.faults.push(format!("{at:#x} is freed twice"));
                };
                let used = |other: &Stream| other.work.iter().any(|work| work.touches_device(at, memory.len() as u64));
                if self.streams.iter().any(|(id, other)| *id != stream && used(other)) {
                    self.faults.push(format!("{at:#x} is freed under work of another stream"));
                }
                self.expect_no_secret("device", &memory);
            }
        }
    }

    fn expect_no_secret(&mut self, kind: &str, memory: &[u8]) {
        if memory.chunks_exact(4).any(|word| word == SECRET.to_le_bytes()) {
            self.faults.push(format!("{kind} memory is freed with a secret in it"));
        }
    }

    fn device_range(&mut self, at: u64, bytes: usize) -> Option<&mut [u8]> {
        let found = self.device.range_mut(..=at).next_back();
        let range = found.and_then(|(start, memory)| memory.get_mut((at - start) as usize..)?.get_mut(..bytes));
        if range.is_none() {
            self.faults.push(format!("{bytes} bytes at {at:#x} are not device memory"));
        }
        range
    }

    fn is_host(&mut self, at: usize, bytes: usize) -> bool {
        let found = self.host.range(..=at).next_back();
        let inside = found.is_some_and(|(start, len)| at - start <= *len && bytes <= len - (at - start));
        if !inside {
            self.faults.push(format!("{bytes} bytes at {at:#x} are not pinned memory"));
        }
        inside
    }

    fn read(&mut self, from: Place, bytes: usize) -> Option<Vec<u8>> {
        match from {
            Place::Device(at) => self.device_range(at, bytes).map(|range| range.to_vec()),
            // SAFETY: memory that was given out and is not freed.
            Place::Host(at) => self
                .is_host(at, bytes)
                .then(|| unsafe { slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(at), bytes) }.to_vec()),
        }
    }

    fn write(&mut self, to: Place, data: &[u8]) {
        match to {
            Place::Device(at) => {
                if let Some(range) = self.device_range(at, data.len()) {
                    range.copy_from_slice(data);
                }
            }
            Place::Host(at) => {
                if self.is_host(at, data.len()) {
                    // SAFETY: memory that was given out and is not freed.
                    unsafe { ptr::with_exposed_provenance_mut::<u8>(at).copy_from(data.as_ptr(), data.len()) };
                }
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for (start, len) in mem::take(&mut self.host) {
            free_host(start, len);
        }
    }
}

fn host_layout(len: usize) -> Layout {
    Layout::from_size_align(len, 4096).unwrap()
}

fn free_host(start: usize, len: usize) {
    // SAFETY: allocated with this layout, and freed once.
    unsafe { dealloc(ptr::with_exposed_provenance_mut(start), host_layout(len)) }
}

fn world<T>(act: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(act)
}

/// A call: counted, and failed if it is the one.
fn call(name: &'static str, act: impl FnOnce(&mut World) -> CUresult) -> CUresult {
    world(|world| {
        *world.calls.entry(name).or_default() += 1;
        if let Some(down) = world.down {
            return down;
        }
        match world.fail {
            Some((failing, left, failure)) if failing == name => {
                world.fail = (left > 0).then(|| (failing, left - 1, failure));
                if left > 0 {
                    return act(world);
                }
                match failure {
                    Failure::Once => {}
                    Failure::Late => drop(act(world)),
                    Failure::Lasting => world.down = Some(CUresult::CUDA_ERROR_UNKNOWN),
                    Failure::Lost => {
                        world.down = Some(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
                        return CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
                    }
                }
                CUresult::CUDA_ERROR_UNKNOWN
            }
            _ => act(world),
        }
    })
}

/// Lets the call number `n` from now on of a function fail.
pub(super) fn fail(function: &'static str, n: usize, failure: Failure) {
    world(|world| world.fail = Some((function, n, failure)));
}

/// Whether the call that should fail is still to come.
pub(super) fn is_armed() -> bool {
    world(|world| world.fail.is_some())
}

/// Lets calls succeed again.
pub(super) fn heal() {
    world(|world| (world.fail, world.down) = (None, None));
}

/// Calls of each function since the last question.
pub(super) fn calls() -> BTreeMap<&'static str, usize> {
    world(|world| mem::take(&mut world.calls))
}

/// Whether work is left that touches host memory.
pub(super) fn pending(memory: &[u8]) -> bool {
    let (start, len) = (memory.as_ptr().addr(), memory.len());
    world(|world| world.streams.values().flat_map(|stream| &stream.work).any(|work| work.touches_host(start, len)))
}

/// Does all that is queued, as a device does that nobody waits for.
pub(super) fn run_all() {
    world(|world| {
        for stream in world.streams.keys().copied().collect::<Vec<_>>() {
            world.run(stream);
        }
    });
}

/// Does at most `steps` steps of the n-th stream that was made.
pub(super) fn run_some(n: usize, steps: usize) {
    world(|world| {
        let Some(stream) = world.streams.keys().copied().nth(n) else { return };
        for _ in 0..steps {
            if let Some(work) = world.streams.get_mut(&stream).and_then(|stream| stream.work.pop_front()) {
                world.step(stream, work);
            }
        }
    });
}

/// Does all that is queued, what the n-th stream that was made has been given as late as others allow.
pub(super) fn run_last(n: usize) {
    world(|world| {
        let streams: Vec<_> = world.streams.keys().copied().collect();
        let others = streams.iter().enumerate().rev().filter(|(i, _)| *i != n);
        others.chain(streams.iter().enumerate().filter(|(i, _)| *i == n)).for_each(|(_, stream)| world.run(*stream));
    });
}

/// What went wrong since the last question.
pub(super) fn faults() -> Vec<String> {
    world(|world| mem::take(&mut world.faults))
}

/// A call of the compiler.
pub(super) fn compile() -> bool {
    call("nvrtc", |_| SUCCESS) == SUCCESS
}

/// What is allocated of device memory, host memory, streams, events and modules, and how often contexts are retained.
pub(super) fn left() -> [usize; 6] {
    world(|world| {
        let streams = world.streams.values().filter(|stream| stream.live).count();
        let contexts = world.retained.iter().sum();
        [world.device.len(), world.host.len(), streams, world.events.len(), world.modules, contexts]
    })
}

/// Has kernels be those of an architecture such as 90 from now on.
pub(super) fn compile_for(architecture: c_int) {
    world(|world| world.architecture = Some(architecture));
}

/// Takes what launches asked for: attributes, blocks and threads of a block.
pub(super) fn launches() -> Vec<[u32; 3]> {
    world(|world| mem::take(&mut world.launches))
}

/// Takes what was copied to and from host memory.
pub(super) fn transfers() -> Vec<Transfer> {
    world(|world| mem::take(&mut world.transfers))
}

/// A driver as when its thread began, but of devices without memory pools if so told.
pub(super) fn reset(without_pools: bool) {
    world(|world| {
        *world = World::default();
        world.without_pools = without_pools;
    });
}
