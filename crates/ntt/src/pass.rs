//! The one kernel of a pass: see `cuda/ntt/pass.cu` for lines and tiles.

use evariste_backend::{
    author::{Binding, CpuArg},
    constants, params,
};

use crate::{config::Twiddles, order::reverse_bits};

mod cpu;
mod halves;
#[cfg(target_arch = "x86_64")]
mod lanes;
mod spec;
pub(crate) mod twiddle;
mod words;

/// What a kernel is specialised to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KernelVariant {
    /// log₂ of the points of a line's transform.
    pub(crate) log_rows: u32,
    /// log₂ of the lines of a tile.
    pub(crate) log_width: u32,
    /// log₂ of the elements that a thread of a GPU takes in a step: 5 at most, in WGSL 2.
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
    pub(crate) direct_stores: bool,
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
    /// The sources of twiddles, by number: [`Twiddles`].
    pub(crate) mod methods {
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
        /// Elements of a row in memory where they are loaded: those of further transforms lie beside these.
        pub(crate) row_in: u32,
        /// … where they are stored.
        pub(crate) row_out: u32,
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

    /// The position of row 0 of a line of 2^`log_rows` rows; that of row r is r << stride further.
    fn place(&self, log_rows: u32, line: u32, Endpoint { reversed, stride, pitch, .. }: Endpoint) -> usize {
        let log_lines = self.log_n - log_rows;
        let start = ((line >> log_lines) as usize) << pitch;
        let line = line & ((1 << log_lines) - 1);
        if reversed {
            return start + ((reverse_bits(line, log_lines) as usize) << log_rows);
        }
        start + (((line >> stride) as usize) << (stride + log_rows)) + (line & ((1 << stride) - 1)) as usize
    }

    /// How lines lie where they are loaded, and where they are stored.
    fn endpoints(&self) -> [Endpoint; 2] {
        let end =
            |flag, stride, pitch, row: u32| Endpoint { reversed: self.has(flag), stride, pitch, row: row as usize };
        [
            end(flags::LOAD_REVERSED, self.stride_in, self.pitch_in, self.row_in),
            end(flags::STORE_REVERSED, self.stride_out, self.pitch_out, self.row_out),
        ]
    }

    /// The elements up to the end of the last transform in a launch.
    fn reach(&self, log_rows: u32, Endpoint { pitch, row, .. }: Endpoint) -> usize {
        let last = (self.lines.saturating_sub(1) / self.interleaved) >> (self.log_n - log_rows);
        (((last as usize) << pitch) + (1 << self.log_n) - 1) * row + self.interleaved as usize
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

/// How lines lie where they are loaded or stored.
#[derive(Clone, Copy, Debug)]
struct Endpoint {
    /// They are numbered by reversed block index, and contiguous.
    reversed: bool,
    /// log₂ of the distance of a line's elements.
    stride: u32,
    /// log₂ of the distance of transforms.
    pitch: u32,
    /// Elements of a row in memory.
    row: usize,
}

impl Endpoint {
    /// Where the element of a line at a position lies.
    fn address(self, line: Line, position: usize) -> usize {
        position * self.row + line.column as usize
    }
}

/// A line: its number among those of its transforms, and which of the transforms side by side it is of.
#[derive(Clone, Copy)]
struct Line {
    index: u32,
    column: u32,
}

/// Data, which may be the same in and out, and tables.
type Args<'a, 'm> = ((&'a mut CpuArg<'m>, Option<&'a mut CpuArg<'m>>), &'a mut [CpuArg<'m>; 3]);

/// The same as kernels declare them.
type Bindings = ((Binding, Option<Binding>), [Binding; 3]);
