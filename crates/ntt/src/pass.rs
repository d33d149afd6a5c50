//! The one kernel of a transform: see `cuda/ntt/pass.cu` for what lines and tiles are.

use std::{fmt::Write as _, marker::PhantomData};

use evariste_backend::{Binding, BindingList, CpuArg, KernelSpec, Language, Wiped, constants, parallel, params};
use evariste_field::{
    DeviceField, ifma, shoup_constants,
    source::{self, turns},
    words::Words,
};

use crate::{config::Twiddles, reverse_bits};

mod halves;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod words;

/// Lines from which on a pass of its own is done in lanes, eight at a time.
#[cfg(target_arch = "x86_64")]
const MIN_LINES: u32 = 4;

/// What a kernel is specialised to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Shape {
    /// log₂ of the points of a line's transform.
    pub(crate) log_rows: u32,
    /// log₂ of the lines of a tile.
    pub(crate) log_columns: u32,
    /// log₂ of the elements that a thread of a GPU takes in a step: 4 at most, in WGSL 2.
    pub(crate) log_radix: u32,
    /// Threads of a workgroup, which share the tile.
    pub(crate) threads: u32,
    /// Where the factors between passes come from.
    pub(crate) twiddles: Twiddles,
    /// Transforms lie side by side.
    pub(crate) interleaved: bool,
    /// Reads and writes one buffer.
    pub(crate) in_place: bool,
    /// The flags of all launches, where there is a kernel for each set of them.
    pub(crate) flags: Option<u32>,
    /// log₂ of the roots' order over that of the pass, where there are kernels for each.
    pub(crate) log_root: Option<u32>,
    /// Where the root of order 16 is a power of two, by which CUDA multiplies by shifting: log₂ of it.
    pub(crate) root_shift: Option<u32>,
    /// In WGSL, elements are stored from where the last step computes them: neighbouring lines are neighbours there.
    pub(crate) direct: bool,
    /// The first round of a transform that is then two, which is a kernel of its own.
    pub(crate) halving: bool,
}

constants! {
    /// What a launch does beside its transforms.
    pub(crate) mod flags {
        /// Lines are numbered by reversed block index, and contiguous, where they are loaded.
        LOAD_REVERSED = 1,
        /// … where they are stored.
        STORE_REVERSED = 2,
        /// Row m in memory is element reverse(m) of the line.
        ROWS_IN_REVERSED = 4,
        /// Output k goes to row reverse(k).
        ROWS_OUT_REVERSED = 8,
        /// j is the line's offset within its stride.
        TWIDDLE_OFFSET = 16,
        /// j is the reversed index of the line's block.
        TWIDDLE_BLOCK = 32,
        /// Output 0 has a factor too.
        TWIDDLE_ZERO = 64,
        /// Element i is multiplied by scale(i) when loaded.
        SCALE_IN = 128,
        /// … when stored.
        SCALE_OUT = 256,
        /// i is the reversed place.
        SCALE_REVERSED = 512,
        /// scale(i) is the same for all i.
        SCALE_CONSTANT = 1024,
        /// The elements of a line are neighbours where they are loaded.
        LINES_IN = 2048,
        /// … where they are stored.
        LINES_OUT = 4096,
    }
}

constants! {
    /// Where factors come from: [`Twiddles`].
    pub(crate) mod factors {
        STORED = Twiddles::Stored as u32,
        TWO_TABLES = Twiddles::TwoLevel as u32,
        BINARY_POWERS = Twiddles::BinaryPowers as u32,
        ON_THE_FLY = Twiddles::OnTheFly as u32,
        WITH_QUOTIENTS = Twiddles::StoredWithQuotients as u32,
        HALF_STORED = Twiddles::HalfStored as u32,
        TWO_POWERS = Twiddles::TwoPowers as u32,
    }
}

params! {
    /// The kernel's parameters.
    pub(crate) struct Params {
        /// Line of all transforms of the batch to start with.
        pub(crate) first: u32,
        /// … and to end before.
        pub(crate) lines: u32,
        /// Of one transform.
        pub(crate) log_n: u32,
        /// Log2 of the distance of a line's elements where they are loaded.
        pub(crate) stride_in: u32,
        /// … where they are stored.
        pub(crate) stride_out: u32,
        pub(crate) flags: u32,
        /// Where in `roots` the roots w^i start, w of order 2^log_roots, i < 2^(log_roots - 1).
        pub(crate) roots: u32,
        pub(crate) log_roots: u32,
        /// Where in `twiddles` this pass' factors start.
        pub(crate) twiddles: u32,
        /// Log2 of the number of j.
        pub(crate) log_twiddles: u32,
        /// Log2 of the power of the plan's root that w is.
        pub(crate) shift: u32,
        /// TWO_TABLES: log2 of the entries of the first.
        pub(crate) split: u32,
        /// Where in `scale` s^i starts, i < 2^log_scales; c s^(i 2^log_scales) follows.
        pub(crate) scales: u32,
        pub(crate) log_scales: u32,
        /// Transforms side by side.
        pub(crate) interleaved: u32,
        /// Log2 of the distance of transforms where they are loaded, in positions.
        pub(crate) pitch_in: u32,
        /// … where they are stored.
        pub(crate) pitch_out: u32,
    }
}

impl Params {
    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    fn line(&self, line: u32) -> Line {
        Line { index: line / self.interleaved, column: line % self.interleaved }
    }

    /// Lines from one on.
    fn lines_from(&self, line: u32) -> impl Iterator<Item = Line> {
        let next = |line: &Line| match line.column + 1 {
            column if column == self.interleaved => Some(Line { index: line.index + 1, column: 0 }),
            column => Some(Line { index: line.index, column }),
        };
        std::iter::successors(Some(self.line(line)), next)
    }

    /// Where the element of a line at a position lies.
    fn address(&self, line: Line, position: usize) -> usize {
        position * self.interleaved as usize + line.column as usize
    }

    /// The position of row 0 of a line of 2^`log_rows` rows; that of row r is r << stride further.
    fn place(&self, log_rows: u32, line: u32, End { reversed, stride, pitch }: End) -> usize {
        let log_lines = self.log_n - log_rows;
        let start = ((line >> log_lines) as usize) << pitch;
        let line = line & ((1 << log_lines) - 1);
        if reversed {
            return start + ((reverse_bits(line, log_lines) as usize) << log_rows);
        }
        start + (((line >> stride) as usize) << (stride + log_rows)) + (line & ((1 << stride) - 1)) as usize
    }

    /// How lines lie where they are loaded, and where they are stored.
    fn ends(&self) -> [End; 2] {
        let end = |flag, stride, pitch| End { reversed: self.has(flag), stride, pitch };
        [
            end(flags::LOAD_REVERSED, self.stride_in, self.pitch_in),
            end(flags::STORE_REVERSED, self.stride_out, self.pitch_out),
        ]
    }

    /// Elements from the start of the data to the end of the last transform of which there are lines.
    fn reach(&self, log_rows: u32, pitch: u32) -> usize {
        let last = (self.lines.saturating_sub(1) / self.interleaved) >> (self.log_n - log_rows);
        (((last as usize) << pitch) + (1 << self.log_n)) * self.interleaved as usize
    }

    /// The j of a line's twiddles.
    fn twiddle_index(&self, log_rows: u32, line: u32) -> usize {
        let (log_lines, stride) = (self.log_n - log_rows, self.stride_in);
        let line = line & ((1 << log_lines) - 1);
        if self.has(flags::TWIDDLE_OFFSET) {
            (line & ((1 << stride) - 1)) as usize
        } else {
            reverse_bits(line >> stride, log_lines - stride) as usize
        }
    }

    /// Where in the table of scales the two factors of a position lie.
    fn scale_entries(&self, position: usize) -> [usize; 2] {
        let i = (position & ((1 << self.log_n) - 1)) as u32;
        let i = if self.has(flags::SCALE_REVERSED) { reverse_bits(i, self.log_n) } else { i };
        let (low, high) = ((i & ((1 << self.log_scales) - 1)) as usize, (i >> self.log_scales) as usize);
        [low, (1 << self.log_scales) + high].map(|entry| self.scales as usize + entry)
    }

    /// Where, behind the start of the pass' table of two levels, the two factors of output `k` and index `j` lie.
    fn two_levels(&self, j: usize, k: usize) -> [usize; 2] {
        let e = (j * k) << self.shift;
        [e & ((1 << self.split) - 1), (1 << self.split) + (e >> self.split)]
    }
}

/// Data, which may be the same in and out, and tables.
type Args<'a, 'm> = ((&'a mut CpuArg<'m>, Option<&'a mut CpuArg<'m>>), &'a mut [CpuArg<'m>; 3]);

/// The same as kernels declare them.
type Bindings = ((Binding, Option<Binding>), [Binding; 3]);

impl Shape {
    /// Lines of a workgroup's tile.
    pub(crate) fn lines_per_group(self) -> u64 {
        1 << self.log_columns
    }

    fn bindings<F: DeviceField>(self) -> Bindings {
        let word = source::binding_type::<F>();
        let data = match self.in_place {
            true => (Binding::write("x", word), None),
            false => (Binding::read("x", word), Some(Binding::write("y", word))),
        };
        (data, ["roots", "twiddles", "scale"].map(|name| Binding::read(name, word)))
    }

    pub(crate) fn spec<F: DeviceField>(self) -> KernelSpec {
        if self.halving {
            return self.halving_spec::<F>();
        }
        let bindings = self.bindings::<F>();
        let seen = bindings.list();
        let source = move |language| match language {
            Language::Cuda => self.cuda::<F>(),
            Language::Wgsl { int64 } => self.wgsl::<F>(int64, &seen),
        };
        let Self {
            log_rows,
            log_columns,
            log_radix,
            threads,
            twiddles,
            interleaved,
            in_place,
            flags,
            log_root,
            root_shift,
            direct,
            halving: _,
        } = self;
        let variant = format!(
            "2^{log_rows} × 2^{log_columns} by 2^{log_radix} on {threads}, {twiddles:?}{}{}{}{}{}{} over {}",
            if interleaved { ", interleaved" } else { "" },
            if in_place { ", in place" } else { "" },
            flags.map(|flags| format!(", flags {flags:#x}")).unwrap_or_default(),
            log_root.map(|log_root| format!(", roots 2^{log_root}")).unwrap_or_default(),
            root_shift.map(|shift| format!(", shifts by {shift}")).unwrap_or_default(),
            if direct { ", direct" } else { "" },
            source::label::<F>(),
        );
        let (words, lanes) = (Words::of::<F>(), ifma::Field::of::<F>());
        let body = move |params: &Params, args: Args<'_, '_>| self.run::<F>(words, lanes.as_ref(), params, args);
        let turns = self.turns::<F>();
        KernelSpec::new("ntt_pass", variant, bindings, body, source)
            .constants(flags::ALL)
            .constants(factors::ALL)
            .threads(threads)
            .shared_bytes(source::tile_bytes::<F>(1 << (log_rows + log_columns)))
            .turns(move |_: &Params| turns)
    }

    /// Turns of loops of a thread at most.
    fn turns<F: DeviceField>(self) -> u64 {
        /// Of the exponent of a twiddle.
        const BITS: u64 = 32;

        let mul = turns::mul::<F>();
        let each = (1 << (self.log_rows + self.log_columns)) / u64::from(self.threads);
        let groups = (each >> self.log_radix).max(1);
        let steps = u64::from(self.log_rows.div_ceil(self.log_radix.max(1)));
        // Each element is scaled by two factors and multiplied by a root at each of up to four levels.
        let step = (1 << self.log_radix) * (2 + 4) * mul;
        let finished = match self.twiddles {
            Twiddles::Stored | Twiddles::StoredWithQuotients | Twiddles::HalfStored | Twiddles::TwoLevel => 2 * mul,
            Twiddles::TwoPowers => 2 * (mul + turns::repeat(BITS, 2 * mul)),
            Twiddles::BinaryPowers | Twiddles::OnTheFly => mul + turns::repeat(BITS, 2 * mul),
        };
        turns::repeat(steps, turns::repeat(groups, step)) + turns::repeat(each, finished)
    }

    fn cuda<F: DeviceField>(self) -> String {
        let Self { log_rows, log_columns, log_radix, threads, .. } = self;
        let mut text = source::cuda::<F>();
        let _ = write!(
            text,
            "#define LOG_ROWS {log_rows}\n#define LOG_COLUMNS {log_columns}\n#define LOG_RADIX {log_radix}\n\
             #define THREADS {threads}u\n#define MIN_BLOCKS {}\n#define FACTORS {}\n{}{}",
            (65_536 / self.registers::<F>() / threads).clamp(1, 16),
            self.twiddles as u32,
            if self.interleaved { "#define INTERLEAVED\n" } else { "" },
            if self.in_place { "#define IN_PLACE\n" } else { "" },
        );
        if let Some(flags) = self.flags {
            let _ = writeln!(text, "#define FLAGS {flags}u");
        }
        if let Some(log_root) = self.log_root {
            let _ = writeln!(text, "#define LOG_ROOT {log_root}u");
        }
        if let Some(shift) = self.root_shift {
            let _ = writeln!(text, "#define ROOT_SHIFT {shift}u");
        }
        if self.twiddles == Twiddles::TwoPowers {
            text += evariste_cuda::ntt::POWER;
        }
        text + evariste_cuda::ntt::LINES + evariste_cuda::ntt::PASS
    }

    /// Registers that a thread may use, of a multiprocessor's 65,536.
    fn registers<F: DeviceField>(self) -> u32 {
        match (F::LIMBS, self.log_radix) {
            (1, _) => 40,
            (2, _) => 80,
            // Where blocks are few, there are enough for all.
            (..=8, 1) => 128,
            (..=8, _) => 80,
            _ => 168,
        }
    }

    fn wgsl<F: DeviceField>(self, int64: bool, bindings: &[Binding]) -> String {
        let Self { log_rows, log_columns, log_radix, twiddles, interleaved, .. } = self;
        let mut text = source::wgsl::<F>(int64);
        text.extend(bindings.iter().map(source::wgsl_accessors::<F>));
        text += &source::wgsl_tile::<F>(1 << (log_rows + log_columns));
        if self.in_place {
            text += "fn y_store(i: u32, v: F) { x_store(i, v); }\n";
        }
        let _ = write!(
            text,
            "const LOG_ROWS = {log_rows}u;\nconst LOG_COLUMNS = {log_columns}u;\nconst LOG_RADIX = {}u;\n\
             const FACTORS = {}u;\nconst INTERLEAVED = {interleaved};\nconst DIRECT = {};\nconst BANKS = {}u;\n\
             fn flags() -> u32 {{ return {}; }}\nfn log_root() -> u32 {{ return {}; }}\n",
            log_radix.min(2),
            twiddles as u32,
            self.direct,
            (128 / source::binding_type::<F>().bytes()).ilog2(),
            self.flags.map_or("params.flags".to_owned(), |flags| format!("{flags}u")),
            self.log_root.map_or("params.log_roots - LOG_ROWS".to_owned(), |log_root| format!("{log_root}u")),
        );
        text += evariste_shaders::ntt::POWER;
        text += evariste_shaders::ntt::LINES;
        match source::wgsl_lazy::<F>().filter(|_| int64) {
            Some(lazy) => text + &lazy + evariste_shaders::ntt::LAZY + evariste_shaders::ntt::PASS,
            None => text + evariste_shaders::ntt::PLAIN + evariste_shaders::ntt::PASS,
        }
    }

    /// The body for the CPU: a thread owns a tile, as a workgroup does.
    fn run<F: DeviceField>(
        self,
        words: Option<Words>,
        lanes: Option<&ifma::Field>,
        params: &Params,
        ((x, y), tables): Args<'_, '_>,
    ) {
        let data = Data::<F>::of(x, y);
        let [roots, twiddles, scale] = tables.each_ref().map(|table| Table::<F>::new(table.read()));
        if matches!(self.twiddles, Twiddles::Stored | Twiddles::TwoLevel) {
            let Data { input, output, input_limbs, output_limbs, .. } = data;
            let [roots, twiddles, scale] = [roots, twiddles, scale].map(|table| table.limbs);
            let (log_rows, limbs) = (self.log_rows, [input_limbs, output_limbs]);
            for (pitch, limbs) in [params.pitch_in, params.pitch_out].into_iter().zip(limbs) {
                assert!(params.reach(log_rows, pitch) * F::LIMBS <= limbs, "the data of a pass");
            }
            let pass = Pass { shape: self, params, input, output, roots, twiddles, scale };
            if let Some(words) = words {
                return pass.run_in_words(words);
            }
            #[cfg(target_arch = "x86_64")]
            if let Some(field) = lanes
                && (params.log_n > self.log_rows || params.lines - params.first >= MIN_LINES)
            {
                return pass.run_in::<F>(field);
            }
        }
        let half = 1 << self.log_rows >> 1;
        let step = params.log_roots - self.log_rows;
        let roots: Vec<F> = (0..half).map(|i| roots.at(3 * (params.roots as usize + (i << step)))).collect();
        let radix = F::from(2u8).pow([32 * F::LIMBS as u64]);
        let tile = Tile { shape: self, params, data, twiddles, scale, roots: &roots, radix };
        let tiles = (params.lines - params.first).div_ceil(1 << self.log_columns);
        parallel::ranges(tiles as usize, &|tiles| {
            let mut memory = Wiped::from(vec![F::ZERO; 1 << (self.log_rows + self.log_columns)]);
            for i in tiles {
                tile.run(params.first + ((i as u32) << self.log_columns), &mut memory);
            }
        });
    }
}

/// Factors between two passes, computed once for a plan: see `cuda/ntt/twiddles.cu`.
pub(crate) mod twiddles {
    use super::*;

    params! {
        pub(crate) struct Params {
            pub(crate) len: u32,
            pub(crate) at: u32,
            pub(crate) log_columns: u32,
            pub(crate) shift: u32,
            pub(crate) split: u32,
        }
    }

    /// Elements that one CPU thread takes at a time.
    const GRAIN: usize = 1 << 10;

    /// With `quotients`, factors are integers with their quotients.
    pub(crate) fn spec<F: DeviceField>(quotients: bool) -> KernelSpec {
        let bindings =
            [Binding::read("powers", source::binding_type::<F>()), Binding::write("out", source::binding_type::<F>())];
        let source = move |language| match language {
            Language::Cuda if quotients => source::cuda::<F>() + "#define QUOTIENTS\n" + evariste_cuda::ntt::TWIDDLES,
            Language::Cuda => source::cuda::<F>() + evariste_cuda::ntt::TWIDDLES,
            Language::Wgsl { int64 } => {
                let accessors: String = bindings.iter().map(source::wgsl_accessors::<F>).collect();
                source::wgsl::<F>(int64) + &accessors + evariste_shaders::ntt::TWIDDLES
            }
        };
        let entry = F::LIMBS * (1 + usize::from(quotients));
        let body = move |params: &Params, [powers, out]: &mut [CpuArg<'_>; 2]| {
            let powers = Table::<F>::new(powers.read());
            let start = params.at as usize * F::LIMBS;
            let out = &mut out.write::<u32>()[start..][..params.len as usize * entry];
            parallel::chunks(out, GRAIN * entry, &|run, out| {
                for (i, out) in (run * GRAIN..).zip(out.chunks_exact_mut(entry)) {
                    // The first one is of output 0.
                    let (j, k) = i
                        .checked_sub(1)
                        .map_or((0, 0), |i| (i & ((1 << params.log_columns) - 1), (i >> params.log_columns) + 1));
                    let e = (j * k) << params.shift;
                    let (low, high) = (e & ((1 << params.split) - 1), (1 << params.split) + (e >> params.split));
                    let factor = powers.at(low) * powers.at(high);
                    match quotients {
                        true => out.copy_from_slice(&shoup_constants([factor])[F::LIMBS..]),
                        false => factor.store(out),
                    }
                }
            });
        };
        let quotients = if quotients { " with quotients" } else { "" };
        let variant = format!("twiddles{quotients} over {}", source::label::<F>());
        KernelSpec::new("ntt_twiddles", variant, bindings, body, source).turns(|_: &Params| turns::mul::<F>())
    }
}

/// Elements of a read-only buffer.
#[derive(Clone, Copy)]
struct Table<'a, F> {
    limbs: &'a [u32],
    field: PhantomData<F>,
}

impl<'a, F: DeviceField> Table<'a, F> {
    fn new(limbs: &'a [u32]) -> Self {
        Self { limbs, field: PhantomData }
    }

    fn at(&self, i: usize) -> F {
        F::load(&self.limbs[i * F::LIMBS..][..F::LIMBS])
    }

    /// What the element at a position is multiplied by, where this is the table of scales.
    fn scale_of(&self, params: &Params, position: usize) -> F {
        if params.has(flags::SCALE_CONSTANT) {
            return self.at(params.scales as usize);
        }
        let [low, high] = params.scale_entries(position);
        self.at(low) * self.at(high)
    }
}

/// The data of a pass, of which each tile owns the elements of its lines.
#[derive(Clone, Copy)]
struct Data<F> {
    input: *const u32,
    output: *mut u32,
    input_limbs: usize,
    output_limbs: usize,
    field: PhantomData<F>,
}

// SAFETY: the lines of a pass partition its elements, where they are loaded and where they are stored; a pass whose two
// partitions differ has two buffers, or one tile a transform. So tiles on different threads share no element.
unsafe impl<F> Sync for Data<F> {}
// SAFETY: as above.
unsafe impl<F> Send for Data<F> {}

impl<F: DeviceField> Data<F> {
    fn new(input: *const u32, output: *mut u32, input_limbs: usize, output_limbs: usize) -> Self {
        Self { input, output, input_limbs, output_limbs, field: PhantomData }
    }

    /// Data in one buffer, or in two.
    fn of(x: &mut CpuArg<'_>, y: Option<&mut CpuArg<'_>>) -> Self {
        match y {
            None => {
                let x = x.write::<u32>();
                let (len, start) = (x.len(), x.as_mut_ptr());
                Self::new(start, start, len, len)
            }
            Some(y) => {
                let (x, y) = (x.read::<u32>(), y.write::<u32>());
                Self::new(x.as_ptr(), y.as_mut_ptr(), x.len(), y.len())
            }
        }
    }

    fn load(&self, i: usize) -> F {
        assert!((i + 1) * F::LIMBS <= self.input_limbs);
        // SAFETY: inside the buffer, and no other thread writes this element.
        F::load(unsafe { std::slice::from_raw_parts(self.input.add(i * F::LIMBS), F::LIMBS) })
    }

    fn store(&self, i: usize, x: F) {
        assert!((i + 1) * F::LIMBS <= self.output_limbs);
        // SAFETY: inside the buffer, and no other thread reads or writes this element.
        x.store(unsafe { std::slice::from_raw_parts_mut(self.output.add(i * F::LIMBS), F::LIMBS) });
    }
}

/// A pass over data in memory, for bodies that do several lines at a time. The data reaches as far as [`Params::reach`] says.
struct Pass<'a> {
    shape: Shape,
    params: &'a Params,
    input: *const u32,
    output: *mut u32,
    roots: &'a [u32],
    twiddles: &'a [u32],
    scale: &'a [u32],
}

// SAFETY: tiles share no element: see `Data`.
unsafe impl Sync for Pass<'_> {}

/// How lines lie where they are loaded or stored.
#[derive(Clone, Copy, Debug)]
struct End {
    /// They are numbered by reversed block index, and contiguous.
    reversed: bool,
    /// log₂ of the distance of a line's elements.
    stride: u32,
    /// log₂ of the distance of transforms.
    pitch: u32,
}

/// A line: its number among those of its transforms, and which of the transforms side by side it is of.
#[derive(Clone, Copy)]
struct Line {
    index: u32,
    column: u32,
}

struct Tile<'a, F> {
    shape: Shape,
    params: &'a Params,
    data: Data<F>,
    twiddles: Table<'a, F>,
    scale: Table<'a, F>,
    roots: &'a [F],
    /// 2^(32 limbs), that of Montgomery forms.
    radix: F,
}

impl<F: DeviceField> Tile<'_, F> {
    /// Transforms the lines from `first` on. `memory` holds them row by row.
    fn run(&self, first: u32, memory: &mut [F]) {
        let Shape { log_rows, log_columns, .. } = self.shape;
        let (rows, columns) = (1usize << log_rows, 1usize << log_columns);
        let count = columns.min((self.params.lines - first) as usize);
        let lines: Vec<Line> = (0..count as u32).map(|c| self.params.line(first + c)).collect();
        let walk = |end: End, visit: &mut dyn FnMut(u32, u32, usize, usize)| {
            let End { stride, .. } = end;
            let places: Vec<usize> = lines.iter().map(|line| self.params.place(log_rows, line.index, end)).collect();
            let mut visit = |m: usize, c: usize| {
                let position = places[c] + (m << stride);
                visit(m as u32, c as u32, position, self.params.address(lines[c], position));
            };
            // Contiguous lines one after the other, others side by side.
            if stride == 0 && !self.shape.interleaved {
                (0..count).for_each(|c| (0..rows).for_each(|m| visit(m, c)));
            } else {
                (0..rows).for_each(|m| (0..count).for_each(|c| visit(m, c)));
            }
        };

        let (rows_reversed, scaled) = (self.params.has(flags::ROWS_IN_REVERSED), self.params.has(flags::SCALE_IN));
        let [load, store] = self.params.ends();
        walk(load, &mut |m, c, position, address| {
            let r = if rows_reversed { reverse_bits(m, log_rows) } else { m };
            let v = self.data.load(address);
            memory[(r as usize) << log_columns | c as usize] = if scaled { v * self.scale_of(position) } else { v };
        });

        for step in 0..log_rows {
            let half = rows >> (step + 1);
            for block in memory.chunks_exact_mut(2 * half * columns) {
                let (top, bottom) = block.split_at_mut(half * columns);
                for (i, (top, bottom)) in
                    top.chunks_exact_mut(columns).zip(bottom.chunks_exact_mut(columns)).enumerate()
                {
                    let w = self.roots[i << step];
                    for (u, v) in top[..count].iter_mut().zip(&mut bottom[..count]) {
                        let difference = *u - *v;
                        *u += *v;
                        *v = if i == 0 { difference } else { difference * w };
                    }
                }
            }
        }

        let twiddled = self.params.has(flags::TWIDDLE_OFFSET | flags::TWIDDLE_BLOCK);
        let columns: Vec<usize> = lines.iter().map(|line| self.params.twiddle_index(log_rows, line.index)).collect();
        let (rows_reversed, scaled) = (self.params.has(flags::ROWS_OUT_REVERSED), self.params.has(flags::SCALE_OUT));
        walk(store, &mut |m, c, position, address| {
            let k = if rows_reversed { reverse_bits(m, log_rows) } else { m };
            let v = memory[(reverse_bits(k, log_rows) as usize) << log_columns | c as usize];
            let v = if twiddled { self.twiddled(v, columns[c as usize], k as usize) } else { v };
            self.data.store(address, if scaled { v * self.scale_of(position) } else { v });
        });
    }

    /// `v` times the factor of output `k` and index `j`.
    fn twiddled(&self, v: F, j: usize, k: usize) -> F {
        let Params { twiddles, log_twiddles, shift, .. } = *self.params;
        let (at, zero) = (twiddles as usize, self.params.has(flags::TWIDDLE_ZERO));
        let e = (j * k) << shift;
        let entry = k.checked_sub(1).map_or(0, |k| 1 + (k << log_twiddles | j));
        match self.shape.twiddles {
            Twiddles::Stored | Twiddles::StoredWithQuotients if k == 0 && !zero => v,
            Twiddles::Stored => v * self.twiddles.at(at + entry),
            // An integer, taken for a Montgomery form: R has to be made up for.
            Twiddles::StoredWithQuotients => v * self.twiddles.at(at + 2 * entry) * self.radix,
            _ if e == 0 && !zero => v,
            Twiddles::HalfStored => {
                let (e, half) = (j * k, 1 << (self.params.log_n - shift - 1));
                let factor = self.twiddles.at(at + 1 + (e & (half - 1)));
                if e & half == 0 { v * factor } else { -(v * factor) }
            }
            Twiddles::TwoPowers => {
                let v = if zero { v * self.twiddles.at(at) } else { v };
                v * self.twiddles.at(at + 1).pow([j as u64]).pow([k as u64])
            }
            Twiddles::TwoLevel => {
                let [low, high] = self.params.two_levels(j, k);
                v * self.twiddles.at(at + low) * self.twiddles.at(at + high)
            }
            Twiddles::BinaryPowers | Twiddles::OnTheFly => {
                let mut v = if zero { v * self.twiddles.at(at) } else { v };
                let (mut power, mut rest) = (self.twiddles.at(at + 1), e);
                for bit in 1.. {
                    if rest & 1 == 1 {
                        v *= power;
                    }
                    rest >>= 1;
                    if rest == 0 {
                        break;
                    }
                    let stored = self.shape.twiddles == Twiddles::BinaryPowers;
                    power = if stored { self.twiddles.at(at + 1 + bit) } else { power.square() };
                }
                v
            }
        }
    }

    fn scale_of(&self, position: usize) -> F {
        self.scale.scale_of(self.params, position)
    }
}
