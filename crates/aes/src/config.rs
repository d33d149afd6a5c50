use evariste_backend::{DeviceInfo, Dialect};

use crate::{Error, Result, block::BLOCK};

/// How the kernels compute the cipher. The CPU computes it in a way of its own, in constant time, whatever is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// It looks up SubBytes in a table of 256 bytes and computes MixColumns.
    Sbox,
    /// It looks up rounds in one table of 256 words, whose entries it rotates for the rows.
    Table,
    /// It looks up rounds in two such tables, and rotates sums of entries.
    TwoTables,
    /// It looks up rounds in four such tables, one a row, and rotates nothing.
    FourTables,
    /// It computes by logic on the bits of 8 blocks at a time: no lookup and no branch depends on keys or data.
    Bitsliced,
}

impl Method {
    /// All methods, in the order of their declaration.
    pub const ALL: [Self; 5] = [Method::Sbox, Method::Table, Method::TwoTables, Method::FourTables, Method::Bitsliced];

    /// Returns the fastest method that a device has room for: four tables or else two, where 32 copies of them fit the
    /// memory of a workgroup, and otherwise one.
    pub fn fastest(info: &DeviceInfo) -> Self {
        let fits = |method: &&Self| method.tables() * FULL_COPIES * TABLE_BYTES <= info.limits.workgroup_bytes;
        [Method::FourTables, Method::TwoTables].iter().find(fits).copied().unwrap_or(Method::Table)
    }

    pub(crate) fn tables(self) -> u32 {
        match self {
            Method::Table => 1,
            Method::TwoTables => 2,
            Method::FourTables => 4,
            Method::Sbox | Method::Bitsliced => 0,
        }
    }

    /// Copies of each table that a device has room for: at most one a lane of a warp.
    pub(crate) fn copies(self, info: &DeviceInfo) -> Result<u32> {
        let Some(fitting) = (info.limits.workgroup_bytes / TABLE_BYTES).checked_div(self.tables()) else {
            return Ok(0);
        };
        match fitting.min(FULL_COPIES).checked_ilog2() {
            Some(log) if log >= MIN_COPIES.ilog2() => Ok(1 << log),
            _ => Err(Error::Method {
                method: self,
                expected: self.tables() * MIN_COPIES * TABLE_BYTES,
                actual: info.limits.workgroup_bytes,
            }),
        }
    }

    /// Blocks that a thread works on at a time.
    pub(crate) fn blocks_per_thread(self) -> u32 {
        if self == Method::Bitsliced { 8 } else { 1 }
    }
}

/// Bytes of a table.
pub(crate) const TABLE_BYTES: u32 = 1 << 10;

/// Strides of one thread: systems end launches that take long.
pub(crate) const MAX_STRIDES: u64 = 1 << 10;

/// Copies of a table with which no lookup of a warp waits for another.
const FULL_COPIES: u32 = 32;

/// Kernels fill tables by 16 bytes, that is four copies of an entry.
const MIN_COPIES: u32 = 4;

/// Queues of a ring of pieces, whatever the configuration says: more of them only take memory.
const MAX_QUEUES: usize = 16;

/// Bytes of a piece, whatever the configuration says, in each of the queues and on the host.
const MAX_CHUNK: usize = 64 << 20;

/// Blocks of one launch, so that 32-bit numbers hold all that kernels compute.
const MAX_LAUNCH: u64 = 1 << 31;

/// Blocks that each launch has at least, if there are so many: one thread's of any method.
const MIN_LAUNCH: u64 = 8;

/// Choices that a plan is made with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Config {
    /// How the kernels compute the cipher (`None`: the fastest that the device has room for, which looks up tables).
    pub method: Option<Method>,
    /// Whether as many workgroups run as the device has room for, and stride over the data, so that tables are loaded
    /// once. Otherwise there are workgroups for all data (`None`: as is faster, see [`Config::strides`]).
    pub grid_stride: Option<bool>,
    /// Queues that work on host data and files at the same time, so that copies in both directions overlap kernels: at
    /// least one, at most 16.
    pub queues: usize,
    /// Bytes of the pieces in which host data and files pass through the device: at least a block, or a sector of XTS, and
    /// at most 64 MiB, in whole blocks.
    pub chunk_bytes: usize,
    /// Bytes that one launch works on: at least 128, or a sector of XTS, and at most 32 GiB, in whole 128 bytes. Longer data
    /// takes several launches. Systems that share a GPU with a screen end launches that take seconds.
    pub launch_bytes: u64,
    /// Host slices shorter than this are worked on by the CPU (`None`: as measured at the first use of a mode on a device,
    /// see [`crate::Aes::crossover`]). Readers, writers and files are the device's, and buffers are worked on where they
    /// lie.
    pub crossover: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            method: None,
            grid_stride: None,
            queues: 4,
            chunk_bytes: 8 << 20,
            launch_bytes: 32 << 30,
            crossover: None,
        }
    }
}

impl Config {
    /// Returns whether workgroups stride over the data on a device: with CUDA for methods that load tables unless set,
    /// where it gave a third more. Without tables they gain nothing, and portable devices tell too little of how many they
    /// have room for: there they gave half. Where loops are ended after a number of turns, workgroups never stride.
    pub fn strides(&self, info: &DeviceInfo) -> bool {
        if info.limits.loop_turns.is_some() {
            return false;
        }
        let method = self.method.unwrap_or_else(|| Method::fastest(info));
        self.grid_stride.unwrap_or(info.dialect() == Dialect::Cuda && method.tables() > 0)
    }

    /// [`Config::queues`] within its bounds.
    pub(crate) fn queue_count(&self) -> usize {
        self.queues.clamp(1, MAX_QUEUES)
    }

    /// [`Config::chunk_bytes`] within its bounds.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.chunk_bytes.clamp(BLOCK, MAX_CHUNK) / BLOCK * BLOCK
    }

    /// [`Config::launch_bytes`] within its bounds, in blocks.
    pub(crate) fn launch_blocks(&self) -> u64 {
        (self.launch_bytes / BLOCK as u64).clamp(MIN_LAUNCH, MAX_LAUNCH) / MIN_LAUNCH * MIN_LAUNCH
    }

    /// Returns the defaults, with a method.
    pub fn method(method: Method) -> Self {
        Self { method: Some(method), ..Self::default() }
    }
}
