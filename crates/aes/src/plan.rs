//! A set of keys on a device, which launches of all modes share. Each mode has its launches in its own file.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock},
};

use evariste_backend::{
    Buffer, Device, Element, Queue, Secrecy,
    author::{Arg, LazyKernel, Ready},
};
use zeroize::Zeroizing;

use crate::{
    block::BLOCK,
    config::{AesConfig, MAX_STRIDES, Method},
    error::{Error, Result},
    host_cipher::HostCipher,
    kernels::{self, Ciphers, Shape, WARP},
    key::{Key, KeySize, on_wiped_stack},
    params::{BlockParams, ChainedParams, CtrParams, MoveParams, SerialParams},
    tables,
};

/// Keys of one size on a device, from which you make the modes. Clones share them.
///
/// A plain verb (`apply`, `seal`, `encrypt`) works on buffers and views of parts of them ([`View`], [`ViewMut`]) on the
/// queue of the plan. `_host` works on slices, `_pinned` on pinned memory. A device that fails in the middle of a call
/// may leave data done in part, unless the method says otherwise.
///
/// A view may start and end at any byte. On GPUs a call first copies a view that does not start at a multiple of 16
/// bytes in its buffer. [`Ctr::apply`](crate::Ctr::apply) says when it needs no copy.
///
/// [`View`]: evariste_backend::View
/// [`ViewMut`]: evariste_backend::ViewMut
/// [`View::declassify`]: evariste_backend::View::declassify
///
/// The host and the device zero key schedules when the last clone is gone. Keys do not make the data secret: a buffer
/// stays as secret as you made it. If ciphertext takes the place of a secret plaintext, copy it to public memory by
/// [`View::declassify`], since nothing else knows that it is encrypted.
///
/// ```
/// # fn main() -> Result<(), evariste_aes::Error> {
/// use evariste_aes::Aes;
/// use evariste_backend::Device;
///
/// let aes = Aes::new(&Device::best()?, &[7; 32])?;
/// let mut bytes = *b"any length at all";
/// aes.ctr(&[1; 16])?.apply_host(&mut bytes)?;
/// aes.ctr(&[1; 16])?.apply_host(&mut bytes)?;
/// assert_eq!(&bytes, b"any length at all");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Aes {
    pub(crate) plan: Arc<Plan>,
    queue: Queue,
}

pub(crate) struct Plan {
    pub(crate) device: Device,
    pub(crate) config: AesConfig,
    pub(crate) shape: Shape,
    pub(crate) ciphers: Ciphers,
    pub(crate) equal_keys: EqualKeys,
    pub(crate) hashes: Hashes,
    pub(crate) schedule: Buffer<u32>,
    pub(crate) tables: Buffer<u32>,
    /// When schedule and tables are there.
    pub(crate) ready: Ready,
    pub(crate) ctr: LazyKernel<CtrParams>,
    pub(crate) blocks: [[LazyKernel<BlockParams>; 2]; 5],
    pub(crate) serial: [[LazyKernel<SerialParams>; 2]; 2],
    pub(crate) chained: LazyKernel<ChainedParams>,
    pub(crate) moves: LazyKernel<MoveParams>,
}

/// For each key the index of the first one that is equal.
#[derive(Debug, Default)]
pub(crate) struct EqualKeys(pub(crate) OnceLock<Vec<u32>>);

/// Hashes of counter ranges, in memory that is kept from one check to the next: new pages would take longer than the
/// check.
#[derive(Debug, Default)]
pub(crate) struct Hashes(pub(crate) Mutex<Vec<u64>>);

/// Binds keys, and what only they and public numbers make, to a launch. What it writes counts as secret if the data
/// does that it is given: ciphertext is not as secret as its key.
pub(crate) fn key<T: Element>(words: &Buffer<T>) -> Arg<'_> {
    Arg::read(words.as_view().declassify())
}

impl Aes {
    /// Makes a plan for one key of 16, 24 or 32 bytes on a queue (`&device` is its default one).
    ///
    /// # Errors
    /// - [`Error::KeyLength`]: `key` has other than 16, 24 or 32 bytes.
    /// - [`Error::Device`]: the device fails or has too little memory for the schedule.
    pub fn new(queue: impl Into<Queue>, key: &[u8]) -> Result<Self> {
        Self::with_config(queue, key, AesConfig::default())
    }

    /// Makes a plan for one key with a configuration.
    ///
    /// # Errors
    /// - [`Error::KeyLength`]: `key` has other than 16, 24 or 32 bytes.
    /// - [`Error::Method`]: the device has too little workgroup memory for the method.
    /// - [`Error::Device`]: the device fails or has too little memory for the schedule.
    pub fn with_config(queue: impl Into<Queue>, key: &[u8], config: AesConfig) -> Result<Self> {
        Self::with_keys(queue, &[key], config)
    }

    /// Makes a plan for several keys, all of one size of 16, 24 or 32 bytes. Messages of a batch choose one by its
    /// index; other calls use key 0.
    ///
    /// # Errors
    /// - [`Error::KeyLength`]: a key has other than 16, 24 or 32 bytes, or another length than the first.
    /// - [`Error::Count`]: there is no key.
    /// - [`Error::Method`]: the device has too little workgroup memory for the method.
    /// - [`Error::Device`]: the device fails or has too little memory for the schedules.
    pub fn with_keys(queue: impl Into<Queue>, keys: &[impl AsRef<[u8]>], config: AesConfig) -> Result<Self> {
        let queue = queue.into();
        let device = queue.device();
        let keys = keys.iter().map(|key| Key::new(key.as_ref())).collect::<Result<Vec<_>>>()?;
        let Some(first) = keys.first() else {
            return Err(Error::Count { what: "keys, at least", expected: 1, actual: 0 });
        };
        let size = first.size();
        if let Some(other) = keys.iter().find(|key| key.size() != size) {
            return Err(Error::KeyLength { expected: "as many as the first", actual: other.size().bytes() });
        }
        let method = config.method.unwrap_or_else(|| Method::fastest(device.info()));
        let shape = Shape::new(device.info(), method, size)?;
        let (words, ciphers) = on_wiped_stack(|| {
            let mut words = Zeroizing::new(Vec::with_capacity(keys.len() * shape.schedule_words()));
            for key in &keys {
                match shape.sliced() {
                    true => words.extend_from_slice(&key.sliced_schedule()),
                    false => words.extend_from_slice(&*key.schedule()),
                }
            }
            (words, keys.iter().map(HostCipher::new).collect())
        });
        let schedule = queue.upload_with::<u32>(&words, Secrecy::Secret)?;
        let tables = queue.upload::<u32>(&tables::words())?;
        let plan = Arc::new(Plan {
            device: device.clone(),
            config,
            shape,
            ciphers,
            equal_keys: EqualKeys::default(),
            hashes: Hashes::default(),
            schedule,
            tables,
            ready: Ready::behind(&queue)?,
            ctr: LazyKernel::default(),
            blocks: Default::default(),
            serial: Default::default(),
            chained: LazyKernel::default(),
            moves: LazyKernel::default(),
        });
        Ok(Self { plan, queue })
    }

    /// Returns the same keys for work on `queue`. Calls on host data and files make queues of their own. With a queue
    /// of another device, calls return an error.
    #[must_use]
    pub fn on(&self, queue: &Queue) -> Self {
        Self { plan: Arc::clone(&self.plan), queue: queue.clone() }
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The queue, for what is uploaded before a launch could refuse it: never one of another device.
    pub(crate) fn own_queue(&self) -> Result<&Queue> {
        Ok(self.queue.expect_device(&self.plan.device)?)
    }

    /// Returns the kernels of a method and a key size on a device, so that you can compile them ahead.
    ///
    /// # Errors
    /// [`Error::Method`] if the device has less workgroup memory than four copies of the method's tables take.
    #[doc(hidden)]
    pub fn kernels(
        info: &evariste_backend::DeviceInfo,
        method: Method,
        size: KeySize,
    ) -> Result<Vec<evariste_backend::author::KernelSpec>> {
        Ok(kernels::all(Shape::new(info, method, size)?, info))
    }

    /// Returns the device that holds the keys.
    pub fn device(&self) -> &Device {
        &self.plan.device
    }

    /// Returns the configuration.
    pub fn config(&self) -> &AesConfig {
        &self.plan.config
    }

    /// Returns the method of the kernels.
    pub fn method(&self) -> Method {
        self.plan.shape.method
    }

    /// Returns the size of the keys.
    pub fn key_size(&self) -> KeySize {
        self.plan.shape.size
    }

    /// Returns the number of keys.
    pub fn keys(&self) -> usize {
        self.plan.ciphers.len()
    }

    pub(crate) fn cipher(&self, key: usize) -> &HostCipher {
        &self.plan.ciphers[key]
    }

    pub(crate) fn equal_keys(&self) -> &EqualKeys {
        &self.plan.equal_keys
    }

    pub(crate) fn ciphers(&self) -> Ciphers {
        Arc::clone(&self.plan.ciphers)
    }

    /// Refuses a batch's message that names no key.
    pub(crate) fn expect_key(&self, message: usize, key: usize) -> Result<()> {
        match key < self.keys() {
            true => Ok(()),
            false => Err(Error::NoSuchKey { message, expected: self.keys(), actual: key }),
        }
    }

    pub(crate) fn per_thread(&self) -> u32 {
        self.plan.shape.per_thread()
    }

    /// Units of work that blocks of one message are.
    pub(crate) fn units(&self, blocks: u64) -> u64 {
        // A power of two: a division takes as long as all else that is done for a message.
        let per_thread = u64::from(self.per_thread());
        (blocks + per_thread - 1) >> per_thread.ilog2()
    }

    /// Refuses data on another device.
    pub(crate) fn expect_here(&self, data: &Device) -> Result<()> {
        Ok(self.plan.device.expect_same("the data of a cipher", data)?)
    }

    /// Workgroups for `units` of work, if a workgroup takes `each` at a time.
    pub(crate) fn groups(&self, units: u64, each: u64, threads: u32) -> u64 {
        let info = self.plan.device.info();
        let needed = units.div_ceil(each);
        let resident = u64::from(info.parallelism) * u64::from(self.plan.shape.resident(info, threads));
        let enough = resident.max(1).max(needed.div_ceil(MAX_STRIDES));
        if self.plan.config.strides(info) { needed.min(enough) } else { needed }
    }

    /// Workgroups of the kernel of independent blocks for some units.
    pub(crate) fn block_groups(&self, units: u64) -> u64 {
        let (info, shape) = (self.plan.device.info(), self.plan.shape);
        let (each, threads) = (shape.block_units(info), shape.block_threads(info));
        self.spread_groups(units, each.into(), threads)
    }

    /// [`Aes::groups`] of a kernel whose warps take `each` units of a workgroup's together: where workgroups stride,
    /// warps of different ones take neighbouring parts, so that short data is spread over the device.
    pub(crate) fn spread_groups(&self, units: u64, each: u64, threads: u32) -> u64 {
        let by_warps = self.plan.shape.method.tables() > 0 && each > threads.into();
        let warps = if by_warps { u64::from(threads / WARP).max(1) } else { 1 };
        match self.plan.config.strides(self.plan.device.info()) {
            true => self.groups(units, each / warps, threads),
            false => self.groups(units, each, threads),
        }
    }

    /// Whether one thread is a workgroup, as on the CPU: kernels' bodies share out the work of a launch themselves.
    pub(crate) fn whole_launches(&self) -> bool {
        self.plan.device.info().is_processor()
    }

    /// Bytes that one launch works on at most: whole blocks.
    pub(crate) fn launch_bytes(&self) -> usize {
        usize::try_from(self.plan.config.launch_blocks()).unwrap_or(usize::MAX).saturating_mul(BLOCK) / BLOCK * BLOCK
    }
}

impl fmt::Debug for Aes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aes")
            .field("device", &self.plan.device)
            .field("key_size", &self.key_size())
            .field("keys", &self.keys())
            .field("method", &self.method())
            .finish_non_exhaustive()
    }
}
