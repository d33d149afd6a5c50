//! The body for the CPU.

use std::marker::PhantomData;

use evariste_backend::{
    author::{CpuArg, Wiped},
    parallel,
};
use evariste_field::{DeviceField, ifma, native::Native, words::Words};

use super::{Args, Endpoint, KernelVariant, Line, Params, flags};
use crate::{config::Twiddles, order::reverse_bits};

/// Lines from which on a pass of its own is done in lanes, eight at a time.
#[cfg(target_arch = "x86_64")]
const MIN_LINES: u32 = 4;

impl KernelVariant {
    /// The body for the CPU: a thread owns a tile, as a workgroup does.
    pub(super) fn run<F: DeviceField>(
        self,
        words: Option<Words>,
        lanes: Option<&ifma::Montgomery52>,
        params: &Params,
        ((x, y), tables): Args<'_, '_>,
    ) {
        let data = Data::<F>::of(x, y);
        let [roots, twiddles, scale] = tables.each_ref().map(|table| Table::<F>::new(table.read()));
        if matches!(self.twiddles, Twiddles::Stored | Twiddles::TwoLevel) {
            let Data { input, output, input_limbs, output_limbs, .. } = data;
            let [roots, twiddles, scale] = [roots, twiddles, scale].map(|table| table.limbs);
            let (log_rows, limbs) = (self.log_rows, [input_limbs, output_limbs]);
            for (end, limbs) in params.endpoints().into_iter().zip(limbs) {
                assert!(params.reach(log_rows, end) * F::LIMBS <= limbs, "the data of a pass");
            }
            let pass = Pass { variant: self, params, input, output, roots, twiddles, scale };
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
        let roots: Vec<Native<F>> = (0..half).map(|i| roots.at(3 * (params.roots as usize + (i << step)))).collect();
        let radix = Native(F::from(2u8).pow([32 * F::LIMBS as u64]));
        let tile = Tile { variant: self, params, data, twiddles, scale, roots: &roots, radix };
        let tiles = (params.lines - params.first).div_ceil(1 << self.log_width);
        parallel::ranges(tiles as usize, &|tiles| {
            let mut memory = Wiped::from(vec![Native::<F>::ZERO; 1 << (self.log_rows + self.log_width)]);
            for i in tiles {
                tile.run(params.first + ((i as u32) << self.log_width), &mut memory);
            }
        });
    }
}

/// Elements of a read-only buffer.
#[derive(Clone, Copy)]
pub(super) struct Table<'a, F> {
    limbs: &'a [u32],
    field: PhantomData<F>,
}

impl<'a, F: DeviceField> Table<'a, F> {
    pub(super) fn new(limbs: &'a [u32]) -> Self {
        Self { limbs, field: PhantomData }
    }

    pub(super) fn at(&self, i: usize) -> Native<F> {
        Native::load(&self.limbs[i * F::LIMBS..][..F::LIMBS])
    }

    /// The factor of the element at a position, where this is the table of scales.
    pub(super) fn scale_of(&self, params: &Params, position: usize) -> Native<F> {
        if params.has(flags::SCALE_CONSTANT) {
            return self.at(params.scales as usize);
        }
        let [low, high] = params.scale_entries(position);
        self.at(low) * self.at(high)
    }
}

/// The data of a pass. Each tile owns the elements of its lines.
#[derive(Clone, Copy)]
pub(super) struct Data<F> {
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
    pub(super) fn new(input: *const u32, output: *mut u32, input_limbs: usize, output_limbs: usize) -> Self {
        Self { input, output, input_limbs, output_limbs, field: PhantomData }
    }

    /// Data in one buffer, or in two.
    pub(super) fn of(x: &mut CpuArg<'_>, y: Option<&mut CpuArg<'_>>) -> Self {
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

    pub(super) fn load(&self, i: usize) -> Native<F> {
        assert!((i + 1) * F::LIMBS <= self.input_limbs);
        // SAFETY: inside the buffer, and no other thread writes this element.
        Native::load(unsafe { std::slice::from_raw_parts(self.input.add(i * F::LIMBS), F::LIMBS) })
    }

    pub(super) fn store(&self, i: usize, x: Native<F>) {
        assert!((i + 1) * F::LIMBS <= self.output_limbs);
        // SAFETY: inside the buffer, and no other thread reads or writes this element.
        x.store(unsafe { std::slice::from_raw_parts_mut(self.output.add(i * F::LIMBS), F::LIMBS) });
    }
}

/// A pass over data in memory, for bodies that do several lines at a time. The data reaches as far as [`Params::reach`]
/// says.
pub(super) struct Pass<'a> {
    pub(super) variant: KernelVariant,
    pub(super) params: &'a Params,
    pub(super) input: *const u32,
    pub(super) output: *mut u32,
    pub(super) roots: &'a [u32],
    pub(super) twiddles: &'a [u32],
    pub(super) scale: &'a [u32],
}

// SAFETY: tiles share no element: see `Data`.
unsafe impl Sync for Pass<'_> {}

/// A tile of neighbouring lines.
pub(super) struct Tile<'a, F> {
    pub(super) variant: KernelVariant,
    pub(super) params: &'a Params,
    pub(super) data: Data<F>,
    pub(super) twiddles: Table<'a, F>,
    pub(super) scale: Table<'a, F>,
    pub(super) roots: &'a [Native<F>],
    /// R = 2^(32·LIMBS) of Montgomery forms.
    pub(super) radix: Native<F>,
}

impl<F: DeviceField> Tile<'_, F> {
    /// Transforms the lines from `first` on. `memory` holds them row by row.
    pub(super) fn run(&self, first: u32, memory: &mut [Native<F>]) {
        let KernelVariant { log_rows, log_width, .. } = self.variant;
        let (rows, columns) = (1usize << log_rows, 1usize << log_width);
        let count = columns.min((self.params.lines - first) as usize);
        let lines: Vec<Line> = (0..count as u32).map(|c| self.params.line(first + c)).collect();
        let walk = |end: Endpoint, visit: &mut dyn FnMut(u32, u32, usize, usize)| {
            let Endpoint { stride, .. } = end;
            let places: Vec<usize> = lines.iter().map(|line| self.params.place(log_rows, line.index, end)).collect();
            let mut visit = |m: usize, c: usize| {
                let position = places[c] + (m << stride);
                visit(m as u32, c as u32, position, end.address(lines[c], position));
            };
            // Contiguous lines one after the other, others side by side.
            if stride == 0 && !self.variant.interleaved {
                (0..count).for_each(|c| (0..rows).for_each(|m| visit(m, c)));
            } else {
                (0..rows).for_each(|m| (0..count).for_each(|c| visit(m, c)));
            }
        };

        let (rows_reversed, scaled) = (self.params.has(flags::ROWS_IN_REVERSED), self.params.has(flags::SCALE_IN));
        let [load, store] = self.params.endpoints();
        walk(load, &mut |m, c, position, address| {
            let r = if rows_reversed { reverse_bits(m, log_rows) } else { m };
            let v = self.data.load(address);
            memory[(r as usize) << log_width | c as usize] = if scaled { v * self.scale_of(position) } else { v };
        });

        let mut step = 0;
        while step + 2 <= log_rows {
            self.four(memory, step, count);
            step += 2;
        }
        if step < log_rows {
            self.two(memory, step, count);
        }

        let twiddled = self.params.has(flags::TWIDDLE_OFFSET | flags::TWIDDLE_BLOCK);
        let columns: Vec<usize> = lines.iter().map(|line| self.params.twiddle_index(log_rows, line.index)).collect();
        let (rows_reversed, scaled) = (self.params.has(flags::ROWS_OUT_REVERSED), self.params.has(flags::SCALE_OUT));
        walk(store, &mut |m, c, position, address| {
            let k = if rows_reversed { reverse_bits(m, log_rows) } else { m };
            let v = memory[(reverse_bits(k, log_rows) as usize) << log_width | c as usize];
            let v = if twiddled { self.twiddled(v, columns[c as usize], k as usize) } else { v };
            self.data.store(address, if scaled { v * self.scale_of(position) } else { v });
        });
    }

    /// A level of butterflies, on the first `count` lines.
    fn two(&self, memory: &mut [Native<F>], step: u32, count: usize) {
        let columns = 1usize << self.variant.log_width;
        let half = (1 << self.variant.log_rows >> (step + 1)) * columns;
        for block in memory.chunks_exact_mut(2 * half) {
            let (top, bottom) = block.split_at_mut(half);
            for (i, (top, bottom)) in top.chunks_exact_mut(columns).zip(bottom.chunks_exact_mut(columns)).enumerate() {
                let w = self.roots[i << step];
                for (u, v) in top[..count].iter_mut().zip(&mut bottom[..count]) {
                    let difference = *u - *v;
                    *u += *v;
                    *v = if i == 0 { difference } else { difference * w };
                }
            }
        }
    }

    /// Two levels, with one visit to each element.
    fn four(&self, memory: &mut [Native<F>], step: u32, count: usize) {
        let columns = 1usize << self.variant.log_width;
        let rows = 1usize << self.variant.log_rows >> (step + 2);
        for block in memory.chunks_exact_mut(4 * rows * columns) {
            let (top, bottom) = block.split_at_mut(2 * rows * columns);
            let ((first, second), (third, fourth)) =
                (top.split_at_mut(rows * columns), bottom.split_at_mut(rows * columns));
            for i in 0..rows {
                let [w, w_second, square] = [i << step, (i + rows) << step, i << (step + 1)].map(|at| self.roots[at]);
                let line = i * columns..i * columns + count;
                let [a, b, c, d] = [&mut *first, &mut *second, &mut *third, &mut *fourth].map(|x| &mut x[line.clone()]);
                for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                    let (sum, sum_second) = (*a + *c, *b + *d);
                    let (mut difference, difference_second) = (*a - *c, (*b - *d) * w_second);
                    *a = sum + sum_second;
                    *b = sum - sum_second;
                    if i > 0 {
                        difference *= w;
                        *b *= square;
                    }
                    *c = difference + difference_second;
                    *d = difference - difference_second;
                    if i > 0 {
                        *d *= square;
                    }
                }
            }
        }
    }

    /// `v` times the factor of output `k` and index `j`.
    fn twiddled(&self, v: Native<F>, j: usize, k: usize) -> Native<F> {
        let Params { twiddles, log_twiddles, shift, .. } = *self.params;
        let (at, zero) = (twiddles as usize, self.params.has(flags::TWIDDLE_ZERO));
        let e = (j * k) << shift;
        let entry = k.checked_sub(1).map_or(0, |k| 1 + (k << log_twiddles | j));
        match self.variant.twiddles {
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
                v * self.twiddles.at(at + 1).pow(&[j as u64]).pow(&[k as u64])
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
                    let stored = self.variant.twiddles == Twiddles::BinaryPowers;
                    power = if stored { self.twiddles.at(at + 1 + bit) } else { power.square() };
                }
                v
            }
        }
    }

    fn scale_of(&self, position: usize) -> Native<F> {
        self.scale.scale_of(self.params, position)
    }
}
