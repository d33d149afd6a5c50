//! Sums and products of a prime field in CUDA: chains of instructions with carries, one statement for each function.
//!
//! In `.cuh` files, a statement of PTX for each instruction, or loops over limbs, would be less to write here, but more
//! to read. NVRTC inlines all functions of a kernel before it unrolls their loops one by one, and takes 0.1 ms for each
//! statement of PTX besides. For 16 products of 12 limbs its optimizer took 1.4 s so, and 0.06 s as one statement each.
//! The machine code is as long.
//!
//! Where the host runs the sources (`CARRY_MODEL` of `field/words.cuh`), the same instructions are calls of its model
//! of the carry flag.
//!
//! A product accumulates in two arrays, one for the even columns of 32 bits and one for the odd. The two halves of each
//! 32×32 product land in neighbouring words. A row of products is one chain of `mad.lo`/`mad.hi` pairs, each pair one
//! IMAD.WIDE. After a row, one limb is reduced and the two arrays change roles.
//!
//! - The reduction is interleaved by rows: "coarsely integrated operand scanning" of Koç, Acar and Kaliski, "Analyzing
//!   and comparing Montgomery multiplication algorithms", IEEE Micro 16 (1996).
//! - Products of values below 2p are below 2p where 4p fits the limbs: Walter, "Montgomery exponentiation needs no
//!   final subtractions", Electronics Letters 35 (1999).
//! - Sums of products are reduced once: Aranha, Karabina, Longa, Gebotys and Lopez, "Faster explicit formulas for
//!   computing pairings over ordinary curves", EUROCRYPT 2011.

use self::instructions::{ALONE, Chain, Condition, ENDS, GOES_ON, Instruction, Operation, STARTS, Word, ZERO};
use crate::field::constants::Constants;

mod instructions;
#[cfg(test)]
mod tests;

/// A field. Each method that returns a [`Chain`] is one of its functions.
struct Field {
    limbs: usize,
    /// Limbs of an accumulator: an even number.
    row: usize,
    constants: Constants,
}

/// The sums and products of a field of two limbs or more, for `F_PTX`, and those on values in [0, 2p) if `lazy`, for
/// `F_LAZY`. Products in F[i] with i² = −1 come with them if `paired`.
pub(super) fn cuda(constants: &Constants, lazy: bool, paired: bool) -> String {
    let field = Field::new(constants);
    let mut text = format!("#if F_PTX\n{}", FUNCTIONS.map(|function| function.render(&field)).concat());
    if lazy {
        text += "// A sum of products that is not reduced: fewer than 2^32 of them.\nstruct FSum {\n    uint32_t l[2 * F_LIMBS + 1];\n};\n";
        text += &LAZY_FUNCTIONS.map(|function| function.render(&field)).concat();
        if field.has_mul_add() {
            text += "#define F_MUL_ADD 1\n";
            text += &MUL_ADD.render(&field);
            if paired {
                text += "#define F_MUL_PAIR 1\n";
                text += &MUL_PAIR.render(&field);
            }
        }
    }
    text + "#endif // F_PTX\n"
}

/// Highest limbs of p below which 5p fits the limbs, so that two products can be added row by row before they are
/// reduced: of values below 2p, a row leaves less than 2p + 2p + p.
const MUL_ADD_TOP: u32 = u32::MAX / 5;

/// Highest limbs of p below which 8p fits the limbs. Such a sum of products, below 8p²/R + p, then is below 2p.
/// Elsewhere it is below 4p.
const SMALL_MUL_ADD_TOP: u32 = 1 << 29;

/// A function of C++, and its instructions with what it gives.
struct Function {
    comment: &'static str,
    head: &'static str,
    /// What have the words that it gives, the same number each.
    results: &'static [&'static str],
    chain: fn(&Field) -> (Chain, Vec<Word>),
}

const FUNCTIONS: [Function; 4] = [
    Function {
        comment: "a - p if that is not negative, else a; a < 2p.",
        head: "F f_reduce(const F& a)",
        results: &["r"],
        chain: Field::reduce,
    },
    Function { comment: "a + b.", head: "F f_add(const F& a, const F& b)", results: &["r"], chain: Field::add },
    Function { comment: "a - b.", head: "F f_sub(const F& a, const F& b)", results: &["r"], chain: Field::sub },
    Function {
        comment: "a * b / R in [0, 2p) for a in [0, p) and any b of F_LIMBS limbs: with both up to 2p, the accumulators could overflow.",
        head: "F f_mul_lazy(const F& a, const F& b)",
        results: &["r"],
        chain: Field::mul,
    },
];

const LAZY_FUNCTIONS: [Function; 6] = [
    Function {
        comment: "a + b mod 2p for a, b in [0, 2p), of which the sum may carry out of the limbs.",
        head: "F f_add_lazy(const F& a, const F& b)",
        results: &["r"],
        chain: Field::add_lazy,
    },
    Function {
        comment: "a - b mod 2p for a, b in [0, 2p).",
        head: "F f_sub_lazy(const F& a, const F& b)",
        results: &["r"],
        chain: Field::sub_lazy,
    },
    Function {
        comment: "a^2 / R in [0, 2p) for a in [0, p).",
        head: "F f_square_lazy(const F& a)",
        results: &["r"],
        chain: Field::square,
    },
    Function {
        comment: "a * w mod p in [0, 2p) for a in [0, 2p), with w in [0, p) and quotient = floor(2^(32 F_LIMBS) w / p) known.",
        head: "F f_mul_shoup(const F& a, const F& w, const F& quotient)",
        results: &["r"],
        chain: Field::mul_shoup,
    },
    Function {
        comment: "sum += a * b.",
        head: "void f_mac(FSum& sum, const F& a, const F& b)",
        results: &["sum"],
        chain: Field::mac,
    },
    Function {
        comment: "sum / (2^32 R) in [0, 2p).",
        head: "F f_sum_redc(const FSum& sum)",
        results: &["r"],
        chain: Field::sum_redc,
    },
];

const MUL_ADD: Function = Function {
    comment: "(a * b + c * d) / R in [0, 2p) for values up to 2p.",
    head: "F f_mul_add_lazy(const F& a, const F& b, const F& c, const F& d)",
    results: &["r"],
    chain: Field::mul_add,
};

const MUL_PAIR: Function = Function {
    comment: "(a + b i) (c + d i) / R with i^2 = -1, of which the result is the real part; in [0, 2p) for values up to 2p.",
    head: "F f_mul_pair_lazy(F& imaginary, const F& a, const F& b, const F& c, const F& d)",
    results: &["r", "imaginary"],
    chain: Field::mul_pair,
};

impl Function {
    fn render(&self, field: &Field) -> String {
        let (chain, words) = (self.chain)(field);
        let gives = self.head.starts_with("F ");
        let (local, give) = if gives { ("    F r;\n", "    return r;\n") } else { ("", "") };
        let body = chain.render(self.results, &words);
        format!("// {}\n__device__ __forceinline__ {} {{\n{local}{body}{give}}}\n", self.comment, self.head)
    }
}

impl Field {
    fn new(constants: &Constants) -> Self {
        let limbs = constants.modulus.len();
        Self { limbs, row: limbs + limbs % 2, constants: constants.clone() }
    }

    fn has_mul_add(&self) -> bool {
        self.constants.modulus[self.limbs - 1] < MUL_ADD_TOP
    }

    fn modulus(&self) -> Vec<Word> {
        self.constants.modulus.iter().map(|limb| Word::Constant(*limb)).collect()
    }

    fn twice_modulus(&self) -> Vec<Word> {
        let mut below = 0;
        let double = |limb: &u32| Word::Constant(limb << 1 | std::mem::replace(&mut below, limb >> 31));
        self.constants.modulus.iter().map(double).collect()
    }

    /// −1/p mod 2^32 in constant memory. As an immediate 0xffffffff it makes the assembler negate operands, which
    /// breaks the pairs. For a modulus with this value, an H200 then makes 53 instead of 60 G multiplications/s.
    fn n0(&self, chain: &mut Chain) -> Word {
        chain.input("f_n0".into())
    }

    /// With zeros up to the length of an accumulator.
    fn padded(&self, mut words: Vec<Word>) -> Vec<Word> {
        words.resize(self.row, ZERO);
        words
    }

    /// s − m if that is not negative, else s.
    fn reduced(chain: &mut Chain, sum: &[Word], multiple: &[Word]) -> Vec<Word> {
        let mut less = sum.to_vec();
        chain.subtract(&mut less, multiple);
        let negative = chain.borrow();
        chain.select(Condition::NotZero, negative, sum, &less)
    }

    fn reduce(&self) -> (Chain, Vec<Word>) {
        let mut chain = Chain::default();
        let a = chain.limbs("a", self.limbs);
        let result = Self::reduced(&mut chain, &a, &self.modulus());
        (chain, result)
    }

    fn add(&self) -> (Chain, Vec<Word>) {
        let mut chain = Chain::default();
        let (mut sum, b) = (chain.limbs("a", self.limbs), chain.limbs("b", self.limbs));
        chain.add(&mut sum, &b, false);
        let result = Self::reduced(&mut chain, &sum, &self.modulus());
        (chain, result)
    }

    /// a − b, and the multiple where that is negative.
    fn difference(&self, multiple: &[Word]) -> (Chain, Vec<Word>) {
        let mut chain = Chain::default();
        let (mut r, b) = (chain.limbs("a", self.limbs), chain.limbs("b", self.limbs));
        chain.subtract(&mut r, &b);
        let negative = chain.borrow();
        let multiple: Vec<Word> = multiple.iter().map(|limb| chain.push(Instruction::And([negative, *limb]))).collect();
        chain.add(&mut r, &multiple, false);
        (chain, r)
    }

    fn sub(&self) -> (Chain, Vec<Word>) {
        self.difference(&self.modulus())
    }

    fn add_lazy(&self) -> (Chain, Vec<Word>) {
        let mut chain = Chain::default();
        let (mut sum, b) = (chain.limbs("a", self.limbs), chain.limbs("b", self.limbs));
        chain.add(&mut sum, &b, false);
        let carry = chain.plus(ENDS, ZERO, ZERO);
        let mut less = sum.clone();
        chain.subtract(&mut less, &self.twice_modulus());
        let top = chain.minus(ENDS, carry, ZERO);
        let result = chain.select(Condition::Negative, top, &sum, &less);
        (chain, result)
    }

    fn sub_lazy(&self) -> (Chain, Vec<Word>) {
        self.difference(&self.twice_modulus())
    }

    /// even + 2^32 odd += m p, with the m that makes the lowest limb zero, on from the carry flag or not. The lowest
    /// word of `even` is left as it is: it is not needed again.
    fn mad_modulus(&self, chain: &mut Chain, even: &mut [Word], odd: &mut [Word], n0: Word, from_flag: bool) {
        let p = self.padded(self.modulus());
        let lowest = even[0];
        let m = chain.push(Instruction::Multiply([lowest, n0]));
        if p[..2] == [Word::Constant(1), Word::Constant(u32::MAX)] {
            // p[1] m = 2^32 m − m has the words `lowest` and not `lowest`, unless that is 0.
            let upper = chain.push(Instruction::NotUnlessZero(lowest));
            chain.add(&mut odd[..2], &[lowest, upper], from_flag);
            chain.mad(&mut odd[2..], &p[3.min(self.row)..], m, true);
        } else {
            chain.mad(odd, &p[1..], m, from_flag);
        }
        if p[0] == Word::Constant(1) {
            // p[0] m only carries, unless `lowest` is 0.
            chain.plus(STARTS, lowest, Word::Constant(u32::MAX));
            even[1] = chain.plus(GOES_ON, even[1], ZERO);
            chain.mad(&mut even[2..], &p[2..], m, true);
        } else {
            chain.mad(even, &p, m, false);
        }
        odd[self.row - 1] = chain.plus(ENDS, odd[self.row - 1], ZERO);
    }

    /// The sum of two accumulators that have changed roles for each limb: the one whose lowest word is zero stands one
    /// column below the other.
    fn joined(&self, chain: &mut Chain, even: &[Word], odd: &[Word]) -> Vec<Word> {
        let mut sum = even[..self.limbs].to_vec();
        let shifted = self.padded(odd[1..].to_vec());
        chain.add(&mut sum, &shifted[..self.limbs], false);
        sum
    }

    /// Σ a b / R of some products, whose sum must fit.
    fn products(&self, chain: &mut Chain, factors: &[[Vec<Word>; 2]], n0: Word) -> Vec<Word> {
        let (mut even, mut odd) = (vec![ZERO; self.row], vec![ZERO; self.row]);
        let last = self.row - 1;
        for limb in 0..self.limbs {
            for (i, [a, b]) in factors.iter().enumerate() {
                let (a, b) = (self.padded(a.clone()), b[limb]);
                if i == 0 {
                    // `odd` is the even accumulator of the row before.
                    even[0] = chain.plus(STARTS, even[0], odd[1]);
                    odd.rotate_left(2);
                    odd[last - 1..].fill(ZERO);
                }
                chain.mad(&mut odd, &a[1..], b, i == 0);
                chain.mad(&mut even, &a, b, false);
                odd[last] = chain.plus(ENDS, odd[last], ZERO);
            }
            self.mad_modulus(chain, &mut even, &mut odd, n0, false);
            std::mem::swap(&mut even, &mut odd);
        }
        self.joined(chain, &even, &odd)
    }

    fn mul(&self) -> (Chain, Vec<Word>) {
        let mut chain = Chain::default();
        let factors = [["a", "b"].map(|name| chain.limbs(name, self.limbs))];
        let n0 = self.n0(&mut chain);
        let result = self.products(&mut chain, &factors, n0);
        (chain, result)
    }

    fn mul_add(&self) -> (Chain, Vec<Word>) {
        let mut chain = Chain::default();
        let factors = [["a", "b"], ["c", "d"]].map(|pair| pair.map(|name| chain.limbs(name, self.limbs)));
        let n0 = self.n0(&mut chain);
        let sum = self.products(&mut chain, &factors, n0);
        let result = match self.constants.modulus[self.limbs - 1] < SMALL_MUL_ADD_TOP {
            true => sum,
            false => Self::reduced(&mut chain, &sum, &self.twice_modulus()),
        };
        (chain, result)
    }

    /// The words of which a b is the sum: of even columns, and of odd ones, of which word i stands in column i + 1.
    fn columns(&self, chain: &mut Chain, a: &[Word], b: &[Word]) -> [Vec<Word>; 2] {
        let limbs = self.limbs;
        let [mut even, mut odd] = [(); 2].map(|()| vec![ZERO; 2 * limbs + 2]);
        for (j, b) in b.iter().enumerate() {
            let parity = j % 2;
            chain.mad_and_carry(&mut even[j + parity..], &a[parity..], *b, limbs / 2);
            chain.mad_and_carry(&mut odd[j - parity..], &a[1 - parity..], *b, limbs / 2);
        }
        [even, odd]
    }

    /// a b, of twice the limbs.
    fn product(&self, chain: &mut Chain, a: &[Word], b: &[Word]) -> Vec<Word> {
        let [mut even, odd] = self.columns(chain, a, b);
        even.truncate(2 * self.limbs);
        chain.add(&mut even[1..], &odd, false);
        even
    }

    /// By three products of limbs in place of four, each coefficient reduced once: Karatsuba's way, on what is not
    /// reduced. With values below 2p and 4p below R, sums of two fit the limbs, and
    ///
    /// - the real part is above −4p², and below 4p². A negative one gets p R. Both are below p R then.
    /// - the imaginary part is below 8p². It loses p R if it is not below that.
    fn mul_pair(&self) -> (Chain, Vec<Word>) {
        let mut chain = Chain::default();
        let (limbs, p) = (self.limbs, self.modulus());
        let [mut a, b, mut c, d] = ["a", "b", "c", "d"].map(|name| chain.limbs(name, limbs));
        let n0 = self.n0(&mut chain);
        let [mut real, imaginary_squared] = [[&a, &c], [&b, &d]].map(|[a, b]| self.product(&mut chain, a, b));
        let mut both = real.clone();
        chain.add(&mut both, &imaginary_squared, false);
        chain.subtract(&mut real, &imaginary_squared);
        let negative = chain.borrow();
        let more: Vec<Word> = p.iter().map(|limb| chain.push(Instruction::And([negative, *limb]))).collect();
        chain.add(&mut real[limbs..], &more, false);
        let mut result = self.redc(&mut chain, &real, n0);
        chain.add(&mut a, &b, false);
        chain.add(&mut c, &d, false);
        let mut imaginary = self.product(&mut chain, &a, &c);
        chain.subtract(&mut imaginary, &both);
        if self.constants.modulus[limbs - 1] >= SMALL_MUL_ADD_TOP {
            let upper = Self::reduced(&mut chain, &imaginary[limbs..], &p);
            imaginary.splice(limbs.., upper);
        }
        result.extend(self.redc(&mut chain, &imaginary, n0));
        (chain, result)
    }

    /// t / R in [0, 2p) for t below p R, of twice the limbs: the rows of a product without its products.
    fn redc(&self, chain: &mut Chain, t: &[Word], n0: Word) -> Vec<Word> {
        let (mut even, mut odd) = (t[..self.limbs].to_vec(), vec![ZERO; self.limbs]);
        for limb in 0..self.limbs {
            if limb > 0 {
                even[0] = chain.plus(STARTS, even[0], odd[1]);
                odd.rotate_left(2);
                odd[self.limbs - 2..].fill(ZERO);
            }
            self.mad_modulus(chain, &mut even, &mut odd, n0, limb > 0);
            std::mem::swap(&mut even, &mut odd);
        }
        let mut sum = self.joined(chain, &even, &odd);
        chain.add(&mut sum, &t[self.limbs..], false);
        sum
    }

    fn square(&self) -> (Chain, Vec<Word>) {
        let mut chain = Chain::default();
        let (limbs, a) = (self.limbs, chain.limbs("a", self.limbs));
        let n0 = self.n0(&mut chain);
        // Products of different limbs, odd[i] in column i + 1, are computed once and doubled.
        let (mut even, mut odd) = (vec![ZERO; 2 * limbs + 2], vec![ZERO; 2 * limbs + 2]);
        for i in 0..limbs - 1 {
            chain.mad_and_carry(&mut odd[2 * i..], &a[i + 1..], a[i], (limbs - i) / 2);
            chain.mad_and_carry(&mut even[2 * i + 2..], &a[limbs.min(i + 2)..], a[i], (limbs - 1 - i) / 2);
        }
        let mut t = [&[ZERO, odd[0]], &even[2..2 * limbs]].concat();
        chain.add(&mut t[2..], &odd[1..2 * limbs - 1], false);
        for i in (1..2 * limbs).rev() {
            t[i] = chain.push(Instruction::Double([t[i - 1], t[i]]));
        }
        for i in 0..limbs {
            chain.mad(&mut t[2 * i..2 * i + 2], &a[i..], a[i], i > 0);
        }
        let result = self.redc(&mut chain, &t, n0);
        (chain, result)
    }

    /// even + 2^32 odd += a b mod 2^(32 limbs), b standing `row` columns up.
    fn mad_low(&self, chain: &mut Chain, [even, odd]: [&mut [Word]; 2], a: &[Word], b: Word, row: usize) {
        let (limbs, up) = (self.limbs, row % 2);
        let (pairs, others) = ((limbs - row - up) / 2, (limbs - row - 1 + up) / 2);
        chain.mad(&mut even[row + up..][..2 * pairs], &a[up..], b, false);
        let odd = &mut odd[row - up..];
        chain.mad(&mut odd[..2 * others], &a[1 - up..], b, false);
        // Of one more product only the low word is needed.
        let flag = if others > 0 { ENDS } else { ALONE };
        let words = [a[1 - up + 2 * others], b, odd[2 * others]];
        odd[2 * others] = chain.push(Instruction::Carry(Operation::MadLow, flag, words));
    }

    /// With B = 2^(32 limbs) and q = ⌊a quotient / B⌋, a w − q p is below (1 + a/B) p (Shoup). Products of limbs below
    /// column limbs − 2 are left out of q. That makes q one less only if the fraction that it cuts off is below limbs /
    /// 2^32. Then a w − q p is below (1 + a/B + limbs/2^32) p, still under 2p as `F_LAZY` requires. It is
    /// `a w + q (B − p)` mod B, which takes low halves of products only. Rows of B − p that are zero are skipped.
    fn mul_shoup(&self) -> (Chain, Vec<Word>) {
        let mut chain = Chain::default();
        let limbs = self.limbs;
        let [a, w, quotient] = ["a", "w", "quotient"].map(|name| chain.limbs(name, limbs));
        let (mut even, mut odd) = (vec![ZERO; limbs + 4], vec![ZERO; limbs + 4]);
        let cut = limbs - 2;
        for (j, b) in quotient.into_iter().enumerate() {
            // a[i] quotient[j] stands in column i + j − cut: its first i here, and the first of each parity of columns.
            let from = cut.saturating_sub(j);
            let column = from + j - cut;
            let parity = column % 2;
            let pairs = [(limbs - from - parity).div_ceil(2), (limbs - from + parity) / 2];
            chain.mad_and_carry(&mut even[column + parity..], &a[limbs.min(from + parity)..], b, pairs[0]);
            chain.mad_and_carry(&mut odd[column - parity..], &a[from + 1 - parity..], b, pairs[1]);
        }
        // Columns cut + 2 and up are the quotient.
        chain.plus(STARTS, even[1], odd[0]);
        let mut q = even[2..][..limbs].to_vec();
        chain.add(&mut q, &odd[1..], true);

        let (mut even, mut odd) = (vec![ZERO; limbs + 2], vec![ZERO; limbs + 2]);
        for (row, b) in w.into_iter().enumerate() {
            self.mad_low(&mut chain, [&mut even, &mut odd], &a, b, row);
        }
        for (row, limb) in self.constants.complement().into_iter().enumerate().filter(|(_, limb)| *limb != 0) {
            self.mad_low(&mut chain, [&mut even, &mut odd], &q, Word::Constant(limb), row);
        }
        let mut result = even[..limbs].to_vec();
        chain.add(&mut result[1..], &odd, false);
        (chain, result)
    }

    fn mac(&self) -> (Chain, Vec<Word>) {
        let mut chain = Chain::default();
        let limbs = self.limbs;
        let mut sum = chain.limbs("sum", 2 * limbs + 1);
        let [a, b] = ["a", "b"].map(|name| chain.limbs(name, limbs));
        let [even, odd] = self.columns(&mut chain, &a, &b);
        for (at, products) in [(0, &even), (1, &odd)] {
            chain.add(&mut sum[at..2 * limbs], products, false);
            sum[2 * limbs] = chain.plus(ENDS, sum[2 * limbs], ZERO);
        }
        (chain, sum)
    }

    /// One limb is reduced first, which leaves less than p R.
    fn sum_redc(&self) -> (Chain, Vec<Word>) {
        let mut chain = Chain::default();
        let (limbs, p) = (self.limbs, self.modulus());
        let mut t = chain.limbs("sum", 2 * limbs + 1);
        let n0 = self.n0(&mut chain);
        let m = chain.push(Instruction::Multiply([t[0], n0]));
        for parity in 0..2 {
            chain.mad(&mut t[parity..][..limbs], &p[parity..], m, false);
            for word in &mut t[limbs + parity..] {
                *word = chain.plus(GOES_ON, *word, ZERO);
            }
        }
        let result = self.redc(&mut chain, &t[1..], n0);
        (chain, result)
    }
}
