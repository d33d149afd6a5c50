//! The kernels: their declarations in all three languages.

use std::sync::Arc;

use evariste_backend::{
    DeviceInfo, Dialect,
    author::{Binding, BindingType, CpuArg, KernelSpec, Language, loop_iterations},
    constants,
};

use crate::{
    config::{MAX_STRIDES, Method, TABLE_BYTES},
    cpu_kernels,
    error::{Error, Result},
    ghash::HashKey,
    host_cipher::HostCipher,
    key::{KeySize, ROUND_KEYS, SCHEDULE_WORDS, SLICED_WORDS},
    params::{
        BlockMode, BlockParams, ChainedParams, CtrParams, Direction, GhashParams, MoveParams, SerialMode, SerialParams,
    },
};

/// Threads of a workgroup.
pub(crate) const THREADS: u32 = 256;

/// Threads of a warp of CUDA.
pub(crate) const WARP: u32 = 32;

/// Threads of a workgroup of the kernels with tables in CUDA, and of the CTR kernel where devices take this number: the
/// round keys of AES-256 stay in 128 registers a thread.
const TABLE_THREADS: u32 = 512;

/// Blocks that one thread of the CTR kernel takes at a time.
pub(crate) const CTR_RUN: u32 = 8;

/// Units after which CBC decryption keeps the block that the next one needs: what a workgroup or a warp takes at a
/// time.
pub(crate) const CHAINED_UNITS: u32 = 256;

/// Bytes that a warp keeps of the matrices of two powers in CUDA: see `aes/ghash.cu`.
const MATRIX_BYTES: u32 = 2 * 16 * 33 * 4;

/// The keys of the kernels' bodies for the CPU, which would expand those of the schedule anew at each launch. None
/// where kernels are only compiled.
pub(crate) type Ciphers = Arc<[HostCipher]>;

/// Rounds of AES-256.
const MAX_ROUNDS: u64 = 14;

/// Loop iterations that the tweak of a block takes, in a sector of a number of blocks.
fn tweak_iterations(blocks: u32) -> u64 {
    loop_iterations(u64::from(blocks / 32), 0) + loop_iterations(32, 0)
}

constants! {
    /// The values of MODE in the sources of independent blocks.
    mod block_modes {
        MODE_ECB = BlockMode::Ecb as u32,
        MODE_CBC = BlockMode::Cbc as u32,
        MODE_CTR = BlockMode::Ctr as u32,
        MODE_XTS = BlockMode::Xts as u32,
        MODE_TWEAK = BlockMode::Tweak as u32,
    }
}

constants! {
    /// The values of MODE in the sources of what goes block after block.
    mod serial_modes {
        MODE_CBC_ENCRYPT = SerialMode::CbcEncrypt as u32,
        MODE_XTS_STEAL = SerialMode::XtsSteal as u32,
    }
}

/// A cipher as kernels compute it on one kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) method: Method,
    pub(crate) size: KeySize,
    table_copies: u32,
}

impl Shape {
    pub(crate) fn new(info: &DeviceInfo, method: Method, size: KeySize) -> Result<Self> {
        let (expected, actual) = (method.least_bytes(), info.limits.workgroup_bytes);
        let table_copies = method.table_copies(info).ok_or(Error::Method { method, expected, actual })?;
        Ok(Self { method, size, table_copies })
    }

    pub(crate) fn sliced(self) -> bool {
        self.method == Method::Bitsliced
    }

    /// Words of a key's schedule.
    pub(crate) fn schedule_words(self) -> usize {
        if self.sliced() { SLICED_WORDS } else { SCHEDULE_WORDS }
    }

    fn shared_bytes(self) -> u32 {
        if self.method == Method::Sbox { 256 } else { self.method.tables() * self.table_copies * TABLE_BYTES }
    }

    /// Workgroups of `threads` that one multiprocessor keeps at a time.
    pub(crate) fn resident(self, info: &DeviceInfo, threads: u32) -> u32 {
        // 2048 threads are what GPUs of this kind hold, and 64 registers a thread half of that.
        let by_threads = (1024 / threads).max(1);
        match self.shared_bytes() {
            0 => by_threads,
            bytes => (info.limits.workgroup_bytes / bytes).clamp(1, by_threads),
        }
    }

    fn variant(self, what: &str) -> String {
        format!("{what}{:?} {:?} ×{}", self.method, self.size, self.table_copies)
    }

    /// The block function in a language, before a kernel.
    fn source(self, language: Language, direction: Direction, threads: u32, defines: &[(&str, u32)]) -> String {
        let Self { method, size, table_copies: copies } = self;
        let decrypt = direction == Direction::Decrypt;
        let (rounds, schedule) = (size.rounds(), self.schedule_words() / 4);
        match language {
            Language::Cuda => {
                let kind = match method {
                    Method::Sbox => "METHOD_SBOX",
                    Method::Bitsliced => "METHOD_BITSLICED",
                    Method::Table | Method::TwoTables | Method::FourTables => "METHOD_TABLES",
                };
                let mut text = format!(
                    "#define METHOD {kind}\n#define TABLES {}\n#define COPIES {copies}u\n#define ROUNDS {rounds}u\n\
                     #define DECRYPT {}\n#define THREADS {threads}u\n#define SCHEDULE_WORDS {schedule}u\n",
                    method.tables(),
                    u32::from(decrypt),
                );
                text.extend(defines.iter().map(|(name, value)| format!("#define {name} {value}\n")));
                text += evariste_cuda::AES;
                if self.sliced() {
                    text += evariste_cuda::aes::BITS;
                }
                text
            }
            Language::Wgsl { .. } => {
                let mut text = format!(
                    "const TABLES = {}u;\nconst COPIES = {copies}u;\nconst ROUNDS = {rounds}u;\n\
                     const DECRYPT = {decrypt};\nconst SCHEDULE_WORDS = {schedule}u;\n",
                    method.tables(),
                );
                text.extend(defines.iter().map(|(name, value)| format!("const {name} = {value}u;\n")));
                text += evariste_shaders::aes::HEADER;
                text += match method {
                    Method::Sbox => evariste_shaders::aes::SBOX,
                    Method::Bitsliced => evariste_shaders::aes::BITS,
                    _ => evariste_shaders::aes::TABLES,
                };
                if !self.sliced() {
                    text += evariste_shaders::aes::WORDS;
                }
                text
            }
        }
    }

    /// Threads of a workgroup of the CTR kernel.
    pub(crate) fn ctr_threads(self, info: &DeviceInfo) -> u32 {
        if self.method.tables() > 0 { TABLE_THREADS.min(info.limits.workgroup_threads.max(1)) } else { THREADS }
    }

    pub(crate) fn ctr(self, info: &DeviceInfo, ciphers: Ciphers) -> KernelSpec {
        let threads = self.ctr_threads(info);
        let source = move |language| {
            let head = self.source(language, Direction::Encrypt, threads, &[]);
            match language {
                Language::Cuda => head + evariste_cuda::aes::CTR,
                Language::Wgsl { .. } => head + &self.unroll(evariste_shaders::aes::CTR),
            }
        };
        let body = move |params: &CtrParams, [data, ..]: &mut [CpuArg<'_>; 3]| {
            cpu_kernels::ctr_kernel(params, data.write(), &ciphers[0]);
        };
        KernelSpec::new("aes_ctr", self.variant(""), CTR_BINDINGS, body, source)
            .threads(threads)
            .shared_bytes(self.shared_bytes())
            // Workgroups do not stride where iterations are limited.
            .iterations(move |_: &CtrParams| {
                self.iterations_of_start(threads) + loop_iterations(1, self.iterations_of_blocks())
            })
    }

    /// Threads of a workgroup of the kernel of independent blocks.
    pub(crate) fn block_threads(self, info: &DeviceInfo) -> u32 {
        if info.dialect() == Dialect::Wgsl { THREADS } else { self.ctr_threads(info).max(THREADS) }
    }

    /// Units that a workgroup of it takes at a time.
    pub(crate) fn block_units(self, info: &DeviceInfo) -> u32 {
        let threads = self.block_threads(info);
        if info.dialect() != Dialect::Wgsl && self.method.tables() > 0 {
            threads / WARP * CHAINED_UNITS
        } else {
            threads
        }
    }

    pub(crate) fn blocks(
        self,
        info: &DeviceInfo,
        mode: BlockMode,
        direction: Direction,
        ciphers: Ciphers,
    ) -> KernelSpec {
        let threads = self.block_threads(info);
        let previous = (mode == BlockMode::Cbc).then(|| Binding::read("previous", BindingType::Vec4));
        let bindings = (CIPHER_BINDINGS, previous);
        let source = move |language| {
            let head =
                self.source(language, direction, threads, &[("MODE", mode as u32), ("PREVIOUS_UNITS", CHAINED_UNITS)]);
            let parts = match language {
                Language::Cuda => [evariste_cuda::aes::XTS, evariste_cuda::aes::MESSAGE, evariste_cuda::aes::BLOCKS]
                    .map(str::to_owned),
                Language::Wgsl { .. } => {
                    let stub = if mode == BlockMode::Cbc { "" } else { CHAINED_STUB };
                    let body = stub.to_owned() + &self.unroll(evariste_shaders::aes::BLOCKS);
                    [evariste_shaders::aes::XTS.into(), evariste_shaders::aes::MESSAGE.into(), body]
                }
            };
            head + &parts.concat()
        };
        // The CPU's body of CBC decryption keeps the previous blocks itself.
        let body = move |params: &BlockParams, ([data, messages, ..], _): Args<'_, '_>| {
            cpu_kernels::message_kernel(mode, direction, params, data.write(), messages.read(), &ciphers);
        };
        KernelSpec::new("aes_blocks", self.variant(&format!("{mode:?} {direction:?} ")), bindings, body, source)
            .constants(block_modes::ALL)
            .threads(threads)
            .shared_bytes(self.shared_bytes())
            .iterations(move |params: &BlockParams| {
                let tweak = if mode == BlockMode::Xts { tweak_iterations(params.blocks) } else { 0 };
                self.iterations_of_start(threads) + loop_iterations(1, tweak + self.iterations_of_blocks())
            })
    }

    pub(crate) fn serial(self, mode: SerialMode, direction: Direction, ciphers: Ciphers) -> KernelSpec {
        let source = move |language| {
            let head = self.source(language, direction, THREADS, &[("MODE", mode as u32)]);
            let parts = match language {
                Language::Cuda => [evariste_cuda::aes::XTS, evariste_cuda::aes::MESSAGE, evariste_cuda::aes::SERIAL]
                    .map(str::to_owned),
                Language::Wgsl { .. } => [
                    evariste_shaders::aes::XTS.into(),
                    evariste_shaders::aes::MESSAGE.into(),
                    self.unroll(evariste_shaders::aes::SERIAL),
                ],
            };
            head + &parts.concat()
        };
        let body = move |params: &SerialParams, [data, messages, ..]: &mut [CpuArg<'_>; 4]| match mode {
            SerialMode::CbcEncrypt => cpu_kernels::cbc_encrypt_kernel(params, data.write(), messages.read(), &ciphers),
            SerialMode::XtsSteal => unreachable!("XTS steals itself"),
        };
        let variant = self.variant(&format!("{mode:?} {direction:?} "));
        KernelSpec::new("aes_serial", variant, CIPHER_BINDINGS, body, source)
            .constants(serial_modes::ALL)
            .threads(THREADS)
            .shared_bytes(self.shared_bytes())
            .iterations(move |params: &SerialParams| {
                let chain = match mode {
                    SerialMode::CbcEncrypt => loop_iterations(params.blocks.into(), self.iterations_of_blocks()),
                    SerialMode::XtsSteal => {
                        tweak_iterations(params.blocks) + loop_iterations(2, self.iterations_of_blocks())
                    }
                };
                self.iterations_of_start(THREADS) + loop_iterations(1, chain)
            })
    }

    pub(crate) fn chained(self) -> KernelSpec {
        let bindings = [
            Binding::read("data", BindingType::Bytes),
            Binding::read("messages", BindingType::Vec4),
            Binding::write("previous", BindingType::Vec4),
        ];
        let units = self.per_thread();
        let source = move |language| match language {
            Language::Cuda => {
                let head = format!(
                    "#define PER_THREAD {units}u\n#define THREADS {THREADS}u\n#define METHOD METHOD_BITSLICED\n#define DECRYPT 0\n"
                );
                [&head, evariste_cuda::AES, evariste_cuda::aes::MESSAGE, evariste_cuda::aes::PREVIOUS].concat()
            }
            Language::Wgsl { .. } => {
                let head = format!("const PER_THREAD = {units}u;\n");
                [&head, evariste_shaders::aes::MESSAGE, evariste_shaders::aes::PREVIOUS].concat()
            }
        };
        // Only GPUs launch it.
        let body = |_: &ChainedParams, _: &mut [CpuArg<'_>; 3]| {};
        KernelSpec::new("aes_previous", format!("{units} blocks a thread"), bindings, body, source)
            .threads(THREADS)
            .iterations(|_: &ChainedParams| loop_iterations(u32::BITS.into(), 0))
    }

    /// Iterations of the loops of a thread beside those of its blocks: it helps to load tables, and looks for its
    /// message.
    fn iterations_of_start(self, threads: u32) -> u64 {
        loop_iterations(u64::from(self.shared_bytes() / 4).div_ceil(threads.into()), 0)
            + loop_iterations(u32::BITS.into(), 0)
    }

    /// Loop iterations of the blocks that a thread takes at a time.
    fn iterations_of_blocks(self) -> u64 {
        let ciphers = if self.sliced() { 1 } else { self.per_thread() };
        u64::from(ciphers) * loop_iterations(MAX_ROUNDS, 0)
    }

    pub(crate) fn per_thread(self) -> u32 {
        self.method.blocks_per_thread()
    }

    /// Repeats the lines of a WGSL kernel that are for one block of a thread.
    fn unroll(self, text: &str) -> String {
        let blocks = self.per_thread();
        let mut unrolled = String::with_capacity(2 * text.len());
        for line in text.lines() {
            if line.contains("$j") {
                (0..blocks).for_each(|j| unrolled += &(line.replace("$j", &j.to_string()) + "\n"));
                continue;
            }
            let mut line = line.to_owned();
            while let Some((before, rest)) = line.split_once("$(").map(|(b, r)| (b.to_owned(), r.to_owned())) {
                let (name, after) = rest.split_once(')').unwrap_or((&rest, ""));
                let list: Vec<_> = (0..blocks).map(|j| format!("{name}{j}")).collect();
                line = format!("{before}{}{after}", list.join(", "));
            }
            unrolled += &(line + "\n");
        }
        unrolled
    }
}

const CHAINED_STUB: &str = "fn previous_get(i: u32) -> vec4<u32> { return vec4<u32>(); }\n";

/// What ciphers bind, and the previous blocks of CBC decryption.
type Args<'a, 'm> = (&'a mut [CpuArg<'m>; 4], Option<&'a mut CpuArg<'m>>);

const CTR_BINDINGS: [Binding; 3] = [
    Binding::write("data", BindingType::Bytes),
    Binding::read("schedule", BindingType::Vec4),
    Binding::read("tables", BindingType::U32),
];

const CIPHER_BINDINGS: [Binding; 4] = [
    Binding::write("data", BindingType::Bytes),
    Binding::read("messages", BindingType::Vec4),
    Binding::read("schedule", BindingType::Vec4),
    Binding::read("tables", BindingType::U32),
];

/// Segments that a workgroup of GHASH takes at a time: one a warp in CUDA.
pub(crate) fn hashed_at_once(info: &DeviceInfo) -> u32 {
    if info.dialect() == Dialect::Wgsl { 1 } else { THREADS / WARP }
}

pub(crate) fn ghash(info: &DeviceInfo, keys: Arc<Vec<HashKey>>) -> KernelSpec {
    let bindings = [
        Binding::read("data", BindingType::Bytes),
        Binding::read("messages", BindingType::Vec4),
        Binding::read("powers", BindingType::Vec4),
        Binding::write("out", BindingType::Vec4),
    ];
    let source = |language| match language {
        Language::Cuda => {
            let head = format!(
                "#define PER_THREAD 1u\n#define THREADS {THREADS}u\n#define METHOD METHOD_BITSLICED\n#define DECRYPT 0\n"
            );
            let parts = [evariste_cuda::AES, evariste_cuda::aes::XTS, evariste_cuda::aes::MESSAGE];
            [head, parts.concat(), evariste_cuda::aes::GHASH.into()].concat()
        }
        Language::Wgsl { .. } => [evariste_shaders::aes::HEADER, evariste_shaders::aes::GHASH].concat(),
    };
    let body = move |params: &GhashParams, [data, messages, _, out]: &mut [CpuArg<'_>; 4]| {
        cpu_kernels::ghash_kernel(params, data.read(), messages.read(), &keys, out.write());
    };
    // A message of a batch takes at most the iterations of a launch's strides.
    let iterations = |params: &GhashParams| {
        let own = if params.segment == 0 { MAX_STRIDES } else { params.segment.div_ceil(THREADS).into() };
        loop_iterations(own, 0) + loop_iterations(THREADS.ilog2().into(), 0)
    };
    let shared_bytes =
        if info.dialect() == Dialect::Wgsl { 16 * THREADS } else { (1 + hashed_at_once(info)) * MATRIX_BYTES };
    KernelSpec::new("ghash", "", bindings, body, source)
        .threads(THREADS)
        .shared_bytes(shared_bytes)
        .iterations(iterations)
}

pub(crate) fn move_bytes() -> KernelSpec {
    let bindings = [Binding::read("src", BindingType::Bytes), Binding::write("dst", BindingType::Bytes)];
    let source = |language| match language {
        Language::Cuda => {
            let head = format!("#define THREADS {THREADS}u\n#define METHOD METHOD_BITSLICED\n#define DECRYPT 0\n");
            [&head, evariste_cuda::AES, evariste_cuda::aes::MOVE_BYTES].concat()
        }
        Language::Wgsl { .. } => [evariste_shaders::aes::HEADER, evariste_shaders::aes::MOVE_BYTES].concat(),
    };
    // The CPU's bodies take bytes where they are.
    let body = |_: &MoveParams, _: &mut [CpuArg<'_>; 2]| {};
    KernelSpec::new("move_bytes", "", bindings, body, source)
        .threads(THREADS)
        .iterations(|_: &MoveParams| loop_iterations(1, 0))
}

/// Every kernel of a shape, for compiling them ahead.
pub(crate) fn all(shape: Shape, info: &DeviceInfo) -> Vec<KernelSpec> {
    let (both, none) = ([Direction::Encrypt, Direction::Decrypt], || Ciphers::from([]));
    let mut specs = vec![shape.ctr(info, none()), shape.chained(), ghash(info, Arc::default()), move_bytes()];
    for mode in BlockMode::ALL {
        let directions = match mode {
            BlockMode::Ecb | BlockMode::Xts => &both[..],
            BlockMode::Cbc => &both[1..],
            BlockMode::Ctr | BlockMode::Tweak => &both[..1],
        };
        specs.extend(directions.iter().map(|direction| shape.blocks(info, mode, *direction, none())));
    }
    specs.push(shape.serial(SerialMode::CbcEncrypt, Direction::Encrypt, none()));
    specs.extend(both.map(|direction| shape.serial(SerialMode::XtsSteal, direction, none())));
    specs
}

// The kernels count on schedules of this many round keys.
const _: () = assert!(ROUND_KEYS == 15);
