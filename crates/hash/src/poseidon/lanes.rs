//! Permutations in lanes of AVX-512 IFMA, for the CPU bodies of kernels: sixteen states side by side.

use std::{arch::x86_64::__m512i, array::from_fn};

use evariste_backend::author::Wiped;
use evariste_field::ifma::{COLUMNS, Eight, Job, Lanes, Montgomery52, STEP};

use super::parameters::MAX_WIDTH;

/// What makes a kernel's constants of their device form: limbs of 52 bits, times R.
pub(super) struct Constants<'a>(pub(super) &'a [u32]);

impl Constants<'_> {
    pub(super) fn run_usual(self, field: &Montgomery52) -> Vec<u64> {
        field.run_usual(self)
    }
}

impl Job for Constants<'_> {
    type Output = Vec<u64>;

    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) -> Vec<u64> {
        // SAFETY: as the caller vouches.
        unsafe { constants::<LIMBS, L>(field, self.0) }
    }
}

/// # Safety
/// As for [`Job::run`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn constants<const LIMBS: usize, const L: usize>(field: &Montgomery52, words: &[u32]) -> Vec<u64> {
    let lanes = Lanes::<LIMBS, L>::new(field);
    let mut all = Vec::with_capacity(words.len() / LIMBS * L);
    for element in words.chunks_exact(LIMBS) {
        // SAFETY: an element, for all lanes.
        let x = lanes.constants(&unsafe { lanes.load(&[element.as_ptr().cast_mut(); 8]) });
        // SAFETY: both have the bits of eight integers.
        all.extend(x.map(|limb| unsafe { std::mem::transmute::<__m512i, [u64; 8]>(limb) }[0]));
    }
    all
}

/// What permutes states of `width` elements one after the other, a multiple of [`STEP`] of them.
pub(super) struct States<'a> {
    pub(super) width: usize,
    /// The exponent of the S-box: 3, 5 or 7.
    pub(super) alpha: u32,
    /// Full rounds at each end, and partial ones.
    pub(super) rounds: [usize; 2],
    /// What [`Constants`] makes.
    pub(super) constants: &'a [u64],
    /// 1 in device form.
    pub(super) one: &'a [u32],
    pub(super) states: &'a mut [u32],
}

/// An element of sixteen states.
type Both<const L: usize> = [Eight<L>; 2];

impl States<'_> {
    pub(super) fn run_usual(self, field: &Montgomery52) {
        field.run_usual(self);
    }
}

impl Job for States<'_> {
    type Output = ();

    unsafe fn run<const LIMBS: usize, const L: usize>(self, field: &Montgomery52) {
        // SAFETY: as the caller vouches.
        unsafe { run::<LIMBS, L>(field, self) }
    }
}

/// The permutation by constants times R. Elements of a state are normalised and below 3.6p between rounds, so that an
/// S-box, which takes them with a constant, gives less than 1.7p: a product is below p + a·b / R, and R is 16p at least.
struct Permutation<'a, const LIMBS: usize, const L: usize> {
    lanes: Lanes<LIMBS, L>,
    alpha: u32,
    half: usize,
    partial: usize,
    width: usize,
    /// `L` limbs each.
    constants: &'a [u64],
}

impl<const LIMBS: usize, const L: usize> Permutation<'_, LIMBS, L> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn sum(&self, a: &Both<L>, b: &Both<L>) -> Both<L> {
        from_fn(|i| self.lanes.normalise(&self.lanes.add(&a[i], &b[i])))
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn product(&self, a: &Both<L>, b: &Both<L>) -> Both<L> {
        self.lanes.mul2([&a[0], &a[1]], [&b[0], &b[1]])
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn constant(&self, at: usize) -> Both<L> {
        [self.element(at); 2]
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn element(&self, at: usize) -> Eight<L> {
        let limbs = &self.constants[at * L..][..L];
        self.lanes.all(&from_fn(|limb| limbs[limb]))
    }

    /// (x + c)^alpha.
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn power(&self, x: &Both<L>, at: usize) -> Both<L> {
        let y = self.sum(x, &self.constant(at));
        let square = self.product(&y, &y);
        match self.alpha {
            3 => self.product(&square, &y),
            5 => self.product(&self.product(&square, &square), &y),
            _ => self.product(&self.product(&self.product(&square, &square), &square), &y),
        }
    }

    /// The sum of a state's elements times a row of constants. Of up to [`MAX_WIDTH`] elements that come of S-boxes it is
    /// below 2.7p, and of such and one S-box, in the first partial round, below 3.6p.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn row(&self, state: &[Both<L>], at: usize) -> Both<L> {
        let mut columns = [[self.lanes.all(&[0; L])[0]; COLUMNS]; 2];
        for (i, x) in state.iter().enumerate() {
            let constant = self.element(at + i);
            for (columns, x) in columns.iter_mut().zip(x) {
                self.lanes.accumulate(columns, x, &constant);
            }
        }
        from_fn(|i| self.lanes.divided(&columns[i]))
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn multiply(&self, state: &mut [Both<L>], sums: &mut [Both<L>], matrix: usize) {
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum = self.row(state, matrix + i * self.width);
        }
        state.copy_from_slice(sums);
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
    fn permute(&self, state: &mut [Both<L>], sums: &mut [Both<L>]) {
        let width = self.width;
        let matrix = 2 * self.half * width;
        let (last, sparse) = (matrix + width * width, matrix + 2 * width * width);
        for number in 0..2 * self.half {
            if number == self.half {
                for round in 0..self.partial {
                    let at = sparse + 2 * width * round;
                    let x = self.power(&state[0], at);
                    state[0] = x;
                    if round + 1 == self.partial {
                        self.multiply(state, sums, last);
                        break;
                    }
                    let sum = self.row(state, at + 1);
                    for (i, y) in state.iter_mut().enumerate().skip(1) {
                        let more = self.sum(y, &self.product(&x, &self.constant(at + width + i)));
                        // Below 3.6p and 1.2p, or below 2p and that.
                        *y = from_fn(|i| self.lanes.reduce(&more[i]));
                    }
                    state[0] = sum;
                }
            }
            for (i, x) in state.iter_mut().enumerate() {
                *x = self.power(x, number * width + i);
            }
            self.multiply(state, sums, matrix);
        }
    }
}

/// # Safety
/// As for [`Job::run`].
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vbmi2")]
unsafe fn run<const LIMBS: usize, const L: usize>(field: &Montgomery52, job: States<'_>) {
    let States { width, alpha, rounds: [half, partial], constants, one, states } = job;
    assert!(one.len() == LIMBS && states.len() % (STEP * width * LIMBS) == 0);
    // With longer states, elements could exceed R.
    assert!(width <= MAX_WIDTH);
    let lanes = Lanes::<LIMBS, L>::new(field);
    // By which what is times R becomes what is in memory.
    // SAFETY: an element, for all lanes.
    let memory = [unsafe { lanes.load(&[one.as_ptr().cast_mut(); 8]) }; 2];
    let permutation = Permutation { lanes, alpha, half, partial, width, constants };
    let zero = [lanes.all(&[0; L]); 2];
    let [mut state, mut sums] = [(); 2].map(|()| Wiped::from(vec![zero; width]));
    for states in states.chunks_exact_mut(STEP * width * LIMBS) {
        let first = states.as_mut_ptr();
        let places = |k: usize| -> [[*mut u32; 8]; 2] {
            from_fn(|i| from_fn(|lane| first.wrapping_add(((8 * i + lane) * width + k) * LIMBS)))
        };
        for (k, x) in state.iter_mut().enumerate() {
            // SAFETY: each place has an element of these states.
            *x = places(k).map(|places| lanes.constants(&unsafe { lanes.load(&places) }));
        }
        permutation.permute(&mut state, &mut sums);
        for (k, x) in state.iter().enumerate() {
            let x = permutation.product(x, &memory);
            for (x, places) in x.iter().zip(places(k)) {
                // SAFETY: as above; nobody else has these states.
                unsafe { lanes.store(&lanes.canonical(x), &places) };
            }
        }
    }
}
