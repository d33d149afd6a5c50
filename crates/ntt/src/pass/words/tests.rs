use std::ops::Range;

use ark_ff::{FftField, UniformRand};
use evariste_field::{
    DeviceField,
    native::Native,
    small::{BabyBear, Goldilocks, KoalaBear},
    words::{Shoup, WordPart},
};

use super::*;
use crate::{
    config::{Split, Twiddles},
    layout::{Batch, BufferRole, Direction, Domain, Layout},
    order::Order,
    pass::{
        KernelVariant, Params,
        cpu::{Data, Table, Tile as Reference},
    },
    tables,
    tuning::Tiling,
};

/// A field of words that knows which lanes may be unreduced, and refuses to do with them what they are not for. Sums of
/// random words are hardly ever p or more, so that results alone would not show it.
#[derive(Clone, Copy, Debug)]
struct Tracked<F>(F);

#[derive(Clone, Copy, Debug)]
struct TrackedLanes<L> {
    lanes: L,
    unreduced: bool,
}

impl<L> TrackedLanes<L> {
    fn reduced(self) -> L {
        assert!(!self.unreduced, "what is unreduced is the first operand of a product alone");
        self.lanes
    }
}

fn tracked<L>(lanes: L) -> TrackedLanes<L> {
    TrackedLanes { lanes, unreduced: false }
}

impl<F: WordField> WordField for Tracked<F> {
    type Word = F::Word;
    type Lanes = TrackedLanes<F::Lanes>;

    const LANES: usize = F::LANES;
    const LOG_RADIX: usize = F::LOG_RADIX;
    const SHIFT_ROOT: Option<F::Word> = F::SHIFT_ROOT;

    fn apart<P: WordPart>(self, part: P) {
        self.0.apart(part);
    }

    fn mul_word(self, a: F::Word, b: F::Word) -> F::Word {
        self.0.mul_word(a, b)
    }

    fn shoup(self, factor: F::Word) -> Shoup<F::Word> {
        self.0.shoup(factor)
    }

    unsafe fn load(self, from: *const F::Word) -> Self::Lanes {
        // SAFETY: as the caller vouches.
        tracked(unsafe { self.0.load(from) })
    }

    unsafe fn store(self, to: *mut F::Word, x: Self::Lanes) {
        // SAFETY: as the caller vouches.
        unsafe { self.0.store(to, x.reduced()) }
    }

    fn splat(self, word: F::Word) -> Self::Lanes {
        tracked(self.0.splat(word))
    }

    fn add(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes {
        tracked(self.0.add(a.reduced(), b.reduced()))
    }

    fn sub(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes {
        tracked(self.0.sub(a.reduced(), b.reduced()))
    }

    fn mul(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes {
        tracked(self.0.mul(a.lanes, b.reduced()))
    }

    fn mul_difference(self, u: Self::Lanes, v: Self::Lanes, w: &Shoup<F::Word>) -> Self::Lanes {
        tracked(self.0.mul_difference(u.reduced(), v.reduced(), w))
    }

    fn mul_factor(self, a: Self::Lanes, w: &Shoup<F::Word>) -> Self::Lanes {
        tracked(self.0.mul_factor(a.lanes, w))
    }

    fn add_unreduced(self, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes {
        TrackedLanes { lanes: self.0.add_unreduced(a.reduced(), b.reduced()), unreduced: true }
    }

    fn shift_difference<const SHIFTS: usize>(self, u: Self::Lanes, v: Self::Lanes) -> Self::Lanes {
        tracked(self.0.shift_difference::<SHIFTS>(u.reduced(), v.reduced()))
    }

    fn exchange<const BIT: usize>(self, a: Self::Lanes, b: Self::Lanes) -> [Self::Lanes; 2] {
        self.0.exchange::<BIT>(a.reduced(), b.reduced()).map(tracked)
    }
}

/// A pass over a [`Tracked`] field, a few lines at a time.
struct TrackedPass<'a>(&'a Pass<'a>);

impl WordJob for TrackedPass<'_> {
    type Output = ();

    fn run<F: WordField>(self, field: F) {
        let Self(pass) = self;
        let field = Tracked(field);
        let setup = Setup::new(pass, field, F::LANES);
        let tiles = 0..((pass.params.lines - pass.params.first) as usize).div_ceil(F::LANES);
        Tiles { pass, setup: &setup, tiles }.run(field);
    }
}

fn random<F: DeviceField + UniformRand>(len: usize) -> Vec<u32> {
    let mut rng = ark_std::test_rng();
    let mut limbs = vec![0; len * F::LIMBS];
    limbs.chunks_exact_mut(F::LIMBS).for_each(|limbs| F::rand(&mut rng).store(limbs));
    limbs
}

/// Passes of every kind, of `batch` transforms or matrices of columns, with tables of anything. All instruction sets of
/// this processor run them, and the body over arkworks' arithmetic gives the results to compare.
fn check<F: DeviceField + FftField>(log_n: u32, log_tile: u32, batch: usize, columns: usize) {
    let (log_balanced, log_run, log_radix, log_tiles) = (log_tile, 0, 2, 2);
    let tiling = Tiling {
        log_tile,
        log_balanced,
        log_run,
        log_radix,
        threads: 1,
        log_tiles,
        specialised: false,
        direct_stores: false,
    };
    let len = (batch * columns) << log_n;
    let source = random::<F>(len);
    let all: Vec<Words> = Words::each_of::<F>();
    for case in 0..1 << 5 {
        let is = |bit: u32| case >> bit & 1 == 1;
        let order = |bit| if is(bit) { Order::BitReversed } else { Order::Natural };
        let (orders, inverse, coset) = ((order(0), order(1)), is(2), is(3));
        let twiddles = if is(4) { Twiddles::TwoLevel } else { Twiddles::Stored };
        let layout = Layout::tiled(log_n, Split::Balanced, twiddles, tiling);
        let roots = tables::roots::<F>(&layout).unwrap();
        let mut factors = random::<F>(layout.twiddles().1.max(1));
        if twiddles == Twiddles::TwoLevel {
            // The first power of each level, by which only some bodies multiply.
            for (start, _) in &layout.twiddles().0[..layout.log_rows.len() - 1] {
                for entry in [*start, start + (1 << layout.log_split())] {
                    F::ONE.store(&mut factors[entry * F::LIMBS..][..F::LIMBS]);
                }
            }
        }
        let scale = random::<F>(3 * (2 * layout.roots() + 1) + layout.powers());
        let mut passes = layout.passes(orders, Batch::of(columns), BufferRole::Source);
        let direction = if inverse { Direction::Inverse } else { Direction::Forward };
        let domain = if coset { Domain::Coset } else { Domain::Subgroup };
        layout.scale(&mut passes, orders, direction, domain);
        for (i, pass) in passes.iter().enumerate() {
            let variant = KernelVariant { in_place: false, ..layout.variant_of(&passes, i) };
            let params = Params {
                first: 0,
                lines: (len >> pass.log_rows) as u32,
                log_n,
                stride_in: pass.stride_in,
                stride_out: pass.stride_out,
                flags: pass.flags,
                roots: if inverse { layout.roots() as u32 } else { 0 },
                log_roots: layout.log_roots(),
                twiddles: pass.twiddles as u32,
                log_twiddles: pass.log_twiddles,
                shift: pass.shift,
                split: layout.log_split(),
                scales: 0,
                log_scales: layout.log_split(),
                interleaved: columns as u32,
                row_in: columns as u32,
                row_out: columns as u32,
                pitch_in: log_n,
                pitch_out: log_n,
            };
            let step = params.log_roots - variant.log_rows;
            let root = |i: usize| Table::<F>::new(&roots).at(3 * (params.roots as usize + (i << step)));
            let within: Vec<Native<F>> = (0..1 << variant.log_rows >> 1).map(root).collect();
            let [twiddles, scales] = [&factors, &scale].map(|table| Table::<F>::new(table));
            // Results beside each other, and with room between.
            for apart in 0..2 {
                let params = Params { pitch_out: log_n + apart, ..params };
                let mut expected = vec![0; source.len() << apart];
                let data = Data::<F>::new(source.as_ptr(), expected.as_mut_ptr(), source.len(), expected.len());
                let tile = Reference {
                    variant,
                    params: &params,
                    data,
                    twiddles,
                    scale: scales,
                    roots: &within,
                    radix: Native::ONE,
                };
                let mut memory = vec![Native::<F>::ZERO; 1 << (variant.log_rows + variant.log_width)];
                (0..params.lines).step_by(1 << variant.log_width).for_each(|first| tile.run(first, &mut memory));
                let (input, roots, twiddles, scale) = (source.as_ptr(), &roots[..], &factors[..], &scale[..]);
                let run = |words: Words, lines: Range<u32>, input: *const u32, output: *mut u32| {
                    let params = &Params { first: lines.start, lines: lines.end, ..params };
                    Pass { variant, params, input, output, roots, twiddles, scale }.run_in_words(words);
                };
                for words in &all {
                    let what = format!("{words:?}: 2^{log_n} × {columns}, {batch} times, {params:?}");
                    let mut memory = vec![0; expected.len() + CACHE_LINE];
                    let aligned = memory.as_ptr().align_offset(CACHE_LINE);
                    let output = &mut memory[aligned..][..expected.len()];
                    run(*words, 0..params.lines, input, output.as_mut_ptr());
                    assert!(output == expected, "{what}");
                    output.fill(0);
                    let all_lines =
                        Pass { variant, params: &params, input, output: output.as_mut_ptr(), roots, twiddles, scale };
                    words.run(TrackedPass(&all_lines));
                    assert!(output == expected, "tracked, {what}");
                    output.fill(0);
                    for lines in [0..params.lines / 3, params.lines / 3..params.lines] {
                        run(*words, lines, input, output.as_mut_ptr());
                    }
                    assert!(output == expected, "in two parts, {what}");
                    if pass.from == pass.to && apart == 0 {
                        output.copy_from_slice(&source);
                        let start = output.as_mut_ptr();
                        run(*words, 0..params.lines, start, start);
                        assert!(output == expected, "in place, {what}");
                    }
                }
            }
        }
    }
}

fn check_all<F: DeviceField + FftField>() {
    // A single pass of each number of rows, on lines that fill vectors or do not.
    for log_n in 1..=9 {
        check::<F>(log_n, 12, 1, 1);
        check::<F>(log_n, 12, 5, 3);
        check::<F>(log_n, 12, 32, 1);
        check::<F>(log_n, 12, 1, 16);
    }
    // Two and three passes.
    for (log_n, log_tile) in [(5, 3), (7, 4), (8, 4), (9, 5), (10, 5), (11, 4), (13, 7)] {
        check::<F>(log_n, log_tile, 1, 1);
    }
    for (batch, columns) in [(2, 1), (1, 9), (2, 16), (1, 40)] {
        check::<F>(8, 4, batch, columns);
    }
    check::<F>(9, 3, 2, 9);
}

// A test for each, so that they run side by side.
#[test]
fn passes_over_goldilocks_are_those_of_arkworks_in_all_vectors() {
    check_all::<Goldilocks>();
}

#[test]
fn passes_over_baby_bear_are_those_of_arkworks_in_all_vectors() {
    check_all::<BabyBear>();
}

/// The same code as over BabyBear, with another modulus: some passes of each kind.
#[test]
fn passes_over_koala_bear_are_those_of_arkworks_in_all_vectors() {
    check::<KoalaBear>(4, 12, 5, 3);
    check::<KoalaBear>(9, 5, 1, 1);
    check::<KoalaBear>(8, 4, 2, 16);
}
