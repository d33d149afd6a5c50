//! The body of a pass for processors with AVX-512 IFMA: eight lines at a time, one in each lane.
//!
//! A tile stays in lanes from loading to storing, in limbs of 52 bits: row by row, with a vector for every eight lines.
//! Two levels of butterflies at a time (radix 4) are done in registers,
//!
//! ```text
//! s = a0 + a2, t = a1 + a3        y0 = s + t            y1 = (s − t) · w^2i
//! u = (a0 − a2) · w^i             y2 = u + v            y3 = (u − v) · w^2i
//! v = (a1 − a3) · w^(i + q)
//! ```
//!
//! with roots of the form that leaves the other factor's alone. Values are below 3p, so sums below 12p, and the product
//! of x by a root below p + x/16. So only y0 is reduced, and where i = 0 what would be multiplied by 1. Between two
//! passes elements stay below 2p, if that fits the form in memory.

use std::{
    arch::x86_64::__m512i,
    mem::{self, MaybeUninit},
    slice,
};

use evariste_backend::author::Wiped;
use evariste_field::{
    DeviceField,
    ifma::{Eight, Job, Lanes, Montgomery52, Places},
};
use rayon::prelude::*;

use super::{Endpoint, KernelVariant, Params, cpu::Pass, flags};
use crate::{config::Twiddles, order::reverse_bits};

/// Lines of a vector.
const LANES: usize = 8;

/// Most limbs of an element.
const MAX_LIMBS: usize = 24;

/// Parts into which the tiles are split for each thread, so that none waits long for the others.
const PARTS: usize = 4;

impl Pass<'_> {
    /// Does it on all cores.
    pub(super) fn run_in<F: DeviceField>(self, field: &Montgomery52) {
        field.run::<F, _>(self, Self::run_usual);
    }

    fn run_usual(self, field: &Montgomery52) {
        field.run_usual(self);
    }
}

impl Job for Pass<'_> {
    type Output = ();

    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) {
        let Params { first, lines, .. } = *self.params;
        let rows = 1usize << self.variant.log_rows;
        // SAFETY: as the caller vouches.
        let roots = unsafe { self.roots::<LIMBS, L>(field) };
        // Tiles are narrower where threads would get none.
        let (first, lines) = (first as usize, (lines - first) as usize);
        let each = (lines / rayon::current_num_threads()).next_power_of_two();
        let columns = (1 << self.variant.log_width).min(each).max(LANES);
        let tiles = lines.div_ceil(columns);
        let part = tiles.div_ceil(PARTS * rayon::current_num_threads());
        (0..tiles).into_par_iter().with_min_len(part).for_each_init(
            || Wiped::<Eight<L>>::with_capacity(rows * columns / LANES),
            |memory, i| {
                let memory = &mut memory.spare_capacity_mut()[..rows * columns / LANES];
                let tile =
                    Tile { pass: &self, field, first: first + i * columns, vectors: columns / LANES, roots: &roots };
                // SAFETY: as the caller vouches; the memory has the rows of a tile.
                unsafe { tile.run::<LIMBS>(memory) };
            },
        );
    }
}

impl Pass<'_> {
    /// The powers of the root of unity of the order of a line, as constants that multiply.
    ///
    /// # Safety
    /// As for [`Job::run`].
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    unsafe fn roots<const LIMBS: usize, const L: usize>(&self, field: &Montgomery52) -> Vec<[u64; L]> {
        let lanes = Lanes::<LIMBS, L>::new(field);
        let half = 1usize << self.variant.log_rows >> 1;
        let step = self.params.log_roots - self.variant.log_rows;
        let mut roots = Vec::with_capacity(half);
        while roots.len() < half {
            let mut places: Places = [std::ptr::null_mut(); LANES];
            for (lane, place) in places.iter_mut().enumerate() {
                let i = (roots.len() + lane).min(half - 1);
                *place =
                    self.roots[3 * (self.params.roots as usize + (i << step)) * LIMBS..][..LIMBS].as_ptr().cast_mut();
            }
            // SAFETY: each place has the limbs of a root.
            let constants = lanes.constants(&unsafe { lanes.load(&places) });
            let mut limbs = [[0; LANES]; L];
            for (limbs, constants) in limbs.iter_mut().zip(&constants) {
                // SAFETY: both are 64 bytes, and all bits are values of either.
                *limbs = unsafe { mem::transmute::<__m512i, [u64; LANES]>(*constants) };
            }
            let count = LANES.min(half - roots.len());
            roots.extend((0..count).map(|lane| std::array::from_fn(|j| limbs[j][lane])));
        }
        roots
    }
}

/// Neighbouring lines of a pass.
struct Tile<'a, const L: usize> {
    pass: &'a Pass<'a>,
    field: &'a Montgomery52,
    first: usize,
    /// Eights of lines.
    vectors: usize,
    roots: &'a [[u64; L]],
}

/// Where eight lines lie.
struct Lines {
    /// The elements of the row that is next.
    places: Places,
    /// How far it is to the next row, in limbs. A lane without a line stays where it is.
    steps: [usize; LANES],
}

impl Lines {
    fn advance(&mut self) {
        for (place, step) in self.places.iter_mut().zip(&self.steps) {
            *place = place.wrapping_add(*step);
        }
    }
}

impl<const L: usize> Tile<'_, L> {
    /// Transforms the lines of the tile.
    ///
    /// # Safety
    /// As for [`Job::run`], and `memory` has a vector for each row and eight lines.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    unsafe fn run<const LIMBS: usize>(&self, memory: &mut [MaybeUninit<Eight<L>>]) {
        let log_rows = self.pass.variant.log_rows;
        let lanes = Lanes::<LIMBS, L>::new(self.field);
        // SAFETY: as the caller vouches; `load` writes all of the memory.
        unsafe {
            self.load(&lanes, memory);
            let memory = slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<Eight<L>>(), memory.len());
            let mut step = 0;
            while step + 2 <= log_rows {
                self.four(&lanes, memory, step);
                step += 2;
            }
            if step < log_rows {
                self.two(&lanes, memory);
            }
            self.store(&lanes, memory);
        }
    }

    fn lines<const LIMBS: usize>(&self, data: *mut u32, end: Endpoint, nothing: &mut [u32; MAX_LIMBS]) -> Vec<Lines> {
        let Pass { variant, params, .. } = self.pass;
        let lines = |vector: usize| {
            let mut lines = Lines { places: [nothing.as_mut_ptr(); LANES], steps: [0; LANES] };
            for lane in 0..LANES {
                let line = self.first + LANES * vector + lane;
                if line < params.lines as usize {
                    let line = params.line(line as u32);
                    let place = params.place(variant.log_rows, line.index, end);
                    lines.places[lane] = data.wrapping_add(end.address(line, place) * LIMBS);
                    lines.steps[lane] = (LIMBS * end.row) << end.stride;
                }
            }
            lines
        };
        (0..self.vectors).map(lines).collect()
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    unsafe fn load<const LIMBS: usize>(&self, lanes: &Lanes<LIMBS, L>, memory: &mut [MaybeUninit<Eight<L>>]) {
        let Pass { variant, params, input, .. } = self.pass;
        let mut nothing = [0; MAX_LIMBS];
        let input = input.cast_mut();
        let [end, _] = params.endpoints();
        let mut lines = self.lines::<LIMBS>(input, end, &mut nothing);
        let (rows_reversed, scaled) = (params.has(flags::ROWS_IN_REVERSED), params.has(flags::SCALE_IN));
        for m in 0..1u32 << variant.log_rows {
            let row = if rows_reversed { reverse_bits(m, variant.log_rows) } else { m } as usize;
            let row = &mut memory[row * self.vectors..][..self.vectors];
            for (lines, value) in lines.iter_mut().zip(row) {
                // SAFETY: elements of this tile's lines, or of what stands for no line.
                let mut x = unsafe { lanes.load(&lines.places) };
                if scaled {
                    // SAFETY: the lines are those of the input.
                    x = unsafe { self.scale(lanes, &x, lines, input, end.row) };
                }
                value.write(x);
                lines.advance();
            }
        }
    }

    /// One level of butterflies with the root 1, between neighbouring rows.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn two<const LIMBS: usize>(&self, lanes: &Lanes<LIMBS, L>, memory: &mut [Eight<L>]) {
        let three = lanes.multiple(3);
        for rows in memory.chunks_exact_mut(2 * self.vectors) {
            let (top, bottom) = rows.split_at_mut(self.vectors);
            for (top, bottom) in top.iter_mut().zip(bottom) {
                let (u, v) = (*top, *bottom);
                *top = lanes.normalise(&lanes.add(&u, &v));
                *bottom = lanes.normalise(&lanes.add(&lanes.sub(&u, &v), &three));
            }
        }
    }

    /// The levels of butterflies from `step` on, two at once.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn four<const LIMBS: usize>(&self, lanes: &Lanes<LIMBS, L>, memory: &mut [Eight<L>], step: u32) {
        let (three, six) = (lanes.multiple(3), lanes.multiple(6));
        let quarter = 1usize << self.pass.variant.log_rows >> (step + 2);
        let vectors = self.vectors;
        for block in memory.chunks_exact_mut(4 * quarter * vectors) {
            let (first, second) = block.split_at_mut(2 * quarter * vectors);
            let (a0, a1) = first.split_at_mut(quarter * vectors);
            let (a2, a3) = second.split_at_mut(quarter * vectors);
            let corner = lanes.all(&self.roots[quarter << step]);
            for at in 0..vectors {
                let (s, t) = (lanes.add(&a0[at], &a2[at]), lanes.add(&a1[at], &a3[at]));
                let u = lanes.normalise(&lanes.add(&lanes.sub(&a0[at], &a2[at]), &three));
                let v = lanes.normalise(&lanes.add(&lanes.sub(&a1[at], &a3[at]), &three));
                let [v, _] = lanes.mul2([&v; 2], [&corner; 2]);
                let u = lanes.reduce(&u);
                a0[at] = lanes.reduce(&lanes.normalise(&lanes.add(&s, &t)));
                a1[at] = lanes.reduce(&lanes.normalise(&lanes.add(&lanes.sub(&s, &t), &six)));
                a2[at] = lanes.normalise(&lanes.add(&u, &v));
                a3[at] = lanes.reduce(&lanes.normalise(&lanes.add(&lanes.sub(&u, &v), &three)));
            }
            for i in 1..quarter {
                let [first, second, both] = [i << step, (i + quarter) << step, (2 * i) << step].map(|i| &self.roots[i]);
                for at in i * vectors..(i + 1) * vectors {
                    let (s, t) = (lanes.add(&a0[at], &a2[at]), lanes.add(&a1[at], &a3[at]));
                    let u = lanes.normalise(&lanes.add(&lanes.sub(&a0[at], &a2[at]), &three));
                    let v = lanes.normalise(&lanes.add(&lanes.sub(&a1[at], &a3[at]), &three));
                    let [u, v] = lanes.mul2([&u, &v], [&lanes.all(first), &lanes.all(second)]);
                    a0[at] = lanes.reduce(&lanes.normalise(&lanes.add(&s, &t)));
                    a2[at] = lanes.normalise(&lanes.add(&u, &v));
                    let s = lanes.normalise(&lanes.add(&lanes.sub(&s, &t), &six));
                    let u = lanes.normalise(&lanes.add(&lanes.sub(&u, &v), &three));
                    [a1[at], a3[at]] = lanes.mul2([&s, &u], [&lanes.all(both); 2]);
                }
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    unsafe fn store<const LIMBS: usize>(&self, lanes: &Lanes<LIMBS, L>, memory: &[Eight<L>]) {
        let Pass { variant: KernelVariant { log_rows, .. }, params, output, .. } = *self.pass;
        let mut nothing = [0; MAX_LIMBS];
        let [_, end] = params.endpoints();
        let mut lines = self.lines::<LIMBS>(output, end, &mut nothing);
        let (rows_reversed, scaled) = (params.has(flags::ROWS_OUT_REVERSED), params.has(flags::SCALE_OUT));
        let twiddled = params.has(flags::TWIDDLE_OFFSET | flags::TWIDDLE_BLOCK);
        let lazy = twiddled && self.field.has_room();
        let column = |vector: usize, lane: usize| {
            let line = (self.first + LANES * vector + lane).min(params.lines as usize - 1);
            params.twiddle_index(log_rows, params.line(line as u32).index)
        };
        let columns: Vec<[usize; LANES]> =
            (0..self.vectors).map(|vector| std::array::from_fn(|lane| column(vector, lane))).collect();
        for m in (0..1u32 << log_rows).step_by(2) {
            let k = [m, m + 1].map(|m| if rows_reversed { reverse_bits(m, log_rows) } else { m });
            let rows = k.map(|k| reverse_bits(k, log_rows) as usize * self.vectors);
            for (vector, lines) in lines.iter_mut().enumerate() {
                let mut x = [memory[rows[0] + vector], memory[rows[1] + vector]];
                if twiddled {
                    // SAFETY: as the caller vouches.
                    x = unsafe { self.twiddled(lanes, &x, k, &columns[vector]) };
                }
                for x in &mut x {
                    if scaled {
                        // SAFETY: the lines are those of the output.
                        *x = unsafe { self.scale(lanes, x, lines, output, end.row) };
                    }
                    *x = lanes.reduce(x);
                    if !lazy {
                        *x = lanes.canonical(x);
                    }
                    // SAFETY: elements of this tile's lines, or of what stands for no line.
                    unsafe { lanes.store(x, &lines.places) };
                    lines.advance();
                }
            }
        }
    }

    /// The outputs `k` of eight lines with the indices `columns`, times their factors.
    ///
    /// # Safety
    /// As for [`Job::run`].
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    unsafe fn twiddled<const LIMBS: usize>(
        &self,
        lanes: &Lanes<LIMBS, L>,
        x: &[Eight<L>; 2],
        k: [u32; 2],
        columns: &[usize; LANES],
    ) -> [Eight<L>; 2] {
        let Pass { variant, params, twiddles, .. } = self.pass;
        let entry = |i: usize| twiddles[(params.twiddles as usize + i) * LIMBS..][..LIMBS].as_ptr().cast_mut();
        let product = |x: &[Eight<L>; 2], places: [Places; 2]| {
            // SAFETY: entries of the table.
            let [first, second] = unsafe { [lanes.load_factor(&places[0]), lanes.load_factor(&places[1])] };
            lanes.mul2([&x[0], &x[1]], [&first, &second])
        };
        match variant.twiddles {
            Twiddles::TwoLevel => {
                let [first, second] = k.map(|k| columns.map(|column| params.two_levels(column, k as usize)));
                let level = |level: usize| [first.map(|e| entry(e[level])), second.map(|e| entry(e[level]))];
                product(&product(x, level(0)), level(1))
            }
            _ => {
                let at = |k: u32, column: usize| match k as usize {
                    0 => entry(0),
                    k => entry(1 + ((k - 1) << params.log_twiddles | column)),
                };
                product(x, k.map(|k| columns.map(|column| at(k, column))))
            }
        }
    }

    /// The elements of the next row of eight lines in `data`, scaled.
    ///
    /// # Safety
    /// As for [`Job::run`].
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    unsafe fn scale<const LIMBS: usize>(
        &self,
        lanes: &Lanes<LIMBS, L>,
        x: &Eight<L>,
        lines: &Lines,
        data: *const u32,
        row: usize,
    ) -> Eight<L> {
        let Pass { params, scale, .. } = self.pass;
        let entry = |i: usize| scale[i * LIMBS..][..LIMBS].as_ptr().cast_mut();
        let mut places = [[entry(params.scales as usize); LANES]; 2];
        if params.has(flags::SCALE_CONSTANT) {
            // SAFETY: an element of the table.
            let factor = unsafe { lanes.load_factor(&places[0]) };
            return lanes.mul2([x; 2], [&factor; 2])[0];
        }
        for lane in (0..LANES).filter(|lane| lines.steps[*lane] > 0) {
            let address = (lines.places[lane].addr() - data.addr()) / (LIMBS * size_of::<u32>());
            let [low, high] = params.scale_entries(address / row);
            (places[0][lane], places[1][lane]) = (entry(low), entry(high));
        }
        // SAFETY: elements of the table.
        let [low, high] = unsafe { [lanes.load_factor(&places[0]), lanes.load_factor(&places[1])] };
        let [x, _] = lanes.mul2([x; 2], [&low; 2]);
        lanes.mul2([&x; 2], [&high; 2])[0]
    }
}
