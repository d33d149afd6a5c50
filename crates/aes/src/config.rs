use evariste_backend::{DeviceInfo, Dialect};

use crate::block::BLOCK;

/// The way in which the kernels compute the cipher. The CPU always computes it in constant time, in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// A table of 256 bytes for SubBytes; MixColumns is computed.
    Sbox,
    /// One table of 256 words for a round, whose entries are rotated for the rows.
    Table,
    /// Two such tables; sums of entries are rotated.
    TwoTables,
    /// Four such tables, one a row; nothing is rotated.
    FourTables,
    /// Logic on the bits of 8 blocks at a time: no lookup and no branch depends on keys or data.
    Bitsliced,
}

impl Method {
    /// All methods, in the order of their declaration.
    pub const ALL: [Self; 5] = [Method::Sbox, Method::Table, Method::TwoTables, Method::FourTables, Method::Bitsliced];

    /// Returns the fastest method that a device has room for. It is four tables, or else two, if 32 copies of them fit
    /// the memory of a workgroup. Otherwise it is one.
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

    /// Copies of each table that a device has room for, at most one a lane of a warp; `None` if they are fewer than
    /// [`MIN_COPIES`].
    pub(crate) fn table_copies(self, info: &DeviceInfo) -> Option<u32> {
        match (info.limits.workgroup_bytes / TABLE_BYTES).checked_div(self.tables()) {
            None => Some(0),
            Some(fitting) => {
                let log = fitting.min(FULL_COPIES).checked_ilog2()?;
                (log >= MIN_COPIES.ilog2()).then(|| 1 << log)
            }
        }
    }

    /// Bytes of workgroup memory that the tables take at least.
    pub(crate) fn least_bytes(self) -> u32 {
        self.tables() * MIN_COPIES * TABLE_BYTES
    }

    /// Blocks that a thread works on at a time.
    pub(crate) fn blocks_per_thread(self) -> u32 {
        if self == Method::Bitsliced { 8 } else { 1 }
    }
}

/// A mode with a CPU threshold of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Counter mode.
    Ctr,
    /// Galois/counter mode.
    Gcm,
    /// XTS.
    Xts,
    /// Decryption in CBC, and ECB, which moves data in the same way.
    Cbc,
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

/// Blocks that each launch has at least, if the data has them: one thread's of any method.
const MIN_LAUNCH: u64 = 8;

/// The choices that a plan is made with.
///
/// ```
/// # fn main() -> Result<(), evariste_aes::Error> {
/// use evariste_aes::{Aes, AesConfig, Method};
/// use evariste_backend::Device;
///
/// // Constant time on GPUs too, and all host slices on the CPU.
/// let config = AesConfig::default().method(Method::Bitsliced).cpu_threshold(usize::MAX);
/// let aes = Aes::with_config(&Device::best()?, &[7; 32], config)?;
/// assert_eq!(aes.method(), Method::Bitsliced);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct AesConfig {
    /// The method of the kernels. `None` is the fastest method that the device has room for, which looks up tables.
    pub method: Option<Method>,
    /// Whether workgroups stride over the data. Then no more of them run than the device has room for, and each loads
    /// its tables once. Otherwise there are workgroups for all data. `None` is the faster choice, see
    /// [`AesConfig::strides`].
    pub grid_stride: Option<bool>,
    /// The queues that work on host data and files at the same time: 1 to 16. Copies in both directions overlap kernels
    /// then.
    pub queues: usize,
    /// The bytes of the pieces in which host data and files pass through the device, in whole blocks. A piece has at
    /// least a block, or a sector of XTS, and at most 64 MiB.
    pub chunk_bytes: usize,
    /// The bytes of one launch, in whole 128 bytes: at least 128, or a sector of XTS, and at most 32 GiB. Longer data
    /// takes several launches. Systems that share a GPU with a screen end launches that take seconds.
    pub launch_bytes: u64,
    /// The length in bytes from which the device works on host slices. The CPU works on shorter ones. With `None`, the
    /// first use of a mode on a device measures it, see [`Aes::cpu_threshold`](crate::Aes::cpu_threshold). The device
    /// works on readers, writers and files of any length, and on buffers where they lie.
    pub cpu_threshold: Option<usize>,
}

impl Default for AesConfig {
    fn default() -> Self {
        Self {
            method: None,
            grid_stride: None,
            queues: 4,
            chunk_bytes: 8 << 20,
            launch_bytes: 32 << 30,
            cpu_threshold: None,
        }
    }
}

impl AesConfig {
    /// Sets [`AesConfig::method`]; with `None` the plan chooses.
    #[must_use]
    pub fn method(mut self, method: impl Into<Option<Method>>) -> Self {
        self.method = method.into();
        self
    }

    /// Sets [`AesConfig::grid_stride`]; with `None` the plan chooses.
    #[must_use]
    pub fn grid_stride(mut self, grid_stride: impl Into<Option<bool>>) -> Self {
        self.grid_stride = grid_stride.into();
        self
    }

    /// Sets [`AesConfig::queues`].
    #[must_use]
    pub fn queues(mut self, queues: usize) -> Self {
        self.queues = queues;
        self
    }

    /// Sets [`AesConfig::chunk_bytes`].
    #[must_use]
    pub fn chunk_bytes(mut self, chunk_bytes: usize) -> Self {
        self.chunk_bytes = chunk_bytes;
        self
    }

    /// Sets [`AesConfig::launch_bytes`].
    #[must_use]
    pub fn launch_bytes(mut self, launch_bytes: u64) -> Self {
        self.launch_bytes = launch_bytes;
        self
    }

    /// Sets [`AesConfig::cpu_threshold`]; with `None` the plan measures it.
    #[must_use]
    pub fn cpu_threshold(mut self, cpu_threshold: impl Into<Option<usize>>) -> Self {
        self.cpu_threshold = cpu_threshold.into();
        self
    }

    /// Returns whether workgroups stride over the data on a device. Unless set, they do so with CUDA for methods that
    /// load tables, which was faster by a third. Methods without tables gain nothing. Devices of WGSL tell too little
    /// about their room, and striding took twice the time there. Workgroups never stride where a device limits loop
    /// iterations.
    pub fn strides(&self, info: &DeviceInfo) -> bool {
        if info.limits.loop_iterations.is_some() {
            return false;
        }
        let method = self.method.unwrap_or_else(|| Method::fastest(info));
        self.grid_stride.unwrap_or(info.dialect() == Dialect::Cuda && method.tables() > 0)
    }

    /// [`AesConfig::queues`] within its bounds.
    pub(crate) fn queue_count(&self) -> usize {
        self.queues.clamp(1, MAX_QUEUES)
    }

    /// [`AesConfig::chunk_bytes`] within its bounds.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.chunk_bytes.clamp(BLOCK, MAX_CHUNK) / BLOCK * BLOCK
    }

    /// [`AesConfig::launch_bytes`] within its bounds, in blocks.
    pub(crate) fn launch_blocks(&self) -> u64 {
        (self.launch_bytes / BLOCK as u64).clamp(MIN_LAUNCH, MAX_LAUNCH) / MIN_LAUNCH * MIN_LAUNCH
    }
}
