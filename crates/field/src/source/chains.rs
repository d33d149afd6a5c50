//! Sums and products of a prime field in CUDA: chains of instructions with carries, one statement for each function.
//!
//! A statement of PTX for each instruction, or loops over limbs, would be more to read in `.cuh` files and less to write here, but
//! NVRTC inlines all functions of a kernel before it unrolls their loops one by one, and takes 0.1 ms for each statement of PTX
//! besides. 16 products of 12 limbs took its optimizer 1.4 s so, and 0.06 s as one statement each; the machine code is as long.
//!
//! Where the host runs the sources (`CARRY_MODEL` of `field/words.cuh`), the same instructions are calls of its model of the carry flag.
//!
//! A product accumulates in two arrays, one for the even columns of 32 bits and one for the odd, so that the two halves of each
//! 32×32 product land in neighbouring words and a row of products is one chain of `mad.lo`/`mad.hi` pairs, each pair one
//! IMAD.WIDE. After a row, one limb is reduced and the two arrays change roles. The reduction is interleaved by rows: "coarsely
//! integrated operand scanning" of Koç, Acar and Kaliski, "Analyzing and comparing Montgomery multiplication algorithms", IEEE
//! Micro 16 (1996). That products of values below 2p are below 2p where 4p fits the limbs: Walter, "Montgomery exponentiation
//! needs no final subtractions", Electronics Letters 35 (1999). Sums of products that are reduced once: Aranha, Karabina, Longa,
//! Gebotys and Lopez, "Faster explicit formulas for computing pairings over ordinary curves", EUROCRYPT 2011.

use std::fmt::Write;

use crate::constants::Constants;

/// A word that an instruction takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Input(usize),
    /// What instruction number so many gave.
    Result(usize),
    Constant(u32),
}

const ZERO: Word = Word::Constant(0);

/// An instruction, with the words that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instruction {
    Carry(Operation, Flag, [Word; 3]),
    /// a b mod 2^32.
    Multiply([Word; 2]),
    And([Word; 2]),
    /// The upper word of (b, a) shifted by one bit.
    Double([Word; 2]),
    /// Not a, but 0 for 0.
    NotUnlessZero(Word),
    /// b if a holds, else c.
    Select(Condition, [Word; 3]),
}

/// An operation that may read and set the carry flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// a + b.
    Add,
    /// a − b.
    Subtract,
    /// a b mod 2^32 + c.
    MadLow,
    /// ⌊a b / 2^32⌋ + c.
    MadHigh,
}

/// What an operation does with the carry flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flag {
    reads: bool,
    sets: bool,
}

const STARTS: Flag = Flag { reads: false, sets: true };
const GOES_ON: Flag = Flag { reads: true, sets: true };
const ENDS: Flag = Flag { reads: true, sets: false };
const ALONE: Flag = Flag { reads: false, sets: false };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    NotZero,
    Negative,
}

/// Where a chain starts: anew, or from the carry flag.
fn first(from_flag: bool) -> Flag {
    if from_flag { GOES_ON } else { STARTS }
}

/// The instructions of a function.
#[derive(Debug, Default)]
struct Chain {
    /// What the inputs are called.
    inputs: Vec<String>,
    instructions: Vec<Instruction>,
}

impl Chain {
    /// The limbs of a number of this name.
    fn limbs(&mut self, name: &str, count: usize) -> Vec<Word> {
        (0..count).map(|i| self.input(format!("{name}.l[{i}]"))).collect()
    }

    fn input(&mut self, name: String) -> Word {
        self.inputs.push(name);
        Word::Input(self.inputs.len() - 1)
    }

    fn push(&mut self, instruction: Instruction) -> Word {
        self.instructions.push(instruction);
        Word::Result(self.instructions.len() - 1)
    }

    fn plus(&mut self, flag: Flag, a: Word, b: Word) -> Word {
        self.push(Instruction::Carry(Operation::Add, flag, [a, b, ZERO]))
    }

    fn minus(&mut self, flag: Flag, a: Word, b: Word) -> Word {
        self.push(Instruction::Carry(Operation::Subtract, flag, [a, b, ZERO]))
    }

    /// r += b, on from the carry flag or not.
    fn add(&mut self, r: &mut [Word], b: &[Word], from_flag: bool) {
        for (i, (r, b)) in r.iter_mut().zip(b).enumerate() {
            *r = self.plus(first(from_flag || i > 0), *r, *b);
        }
    }

    /// r −= b.
    fn subtract(&mut self, r: &mut [Word], b: &[Word]) {
        for (i, (r, b)) in r.iter_mut().zip(b).enumerate() {
            *r = self.minus(first(i > 0), *r, *b);
        }
    }

    /// `acc` += the first, third and following limbs of a times b, on from the carry flag or not.
    fn mad(&mut self, acc: &mut [Word], a: &[Word], b: Word, from_flag: bool) {
        for (j, (acc, a)) in acc.chunks_exact_mut(2).zip(a.iter().step_by(2)).enumerate() {
            let low = Instruction::Carry(Operation::MadLow, first(from_flag || j > 0), [*a, b, acc[0]]);
            acc[0] = self.push(low);
            acc[1] = self.push(Instruction::Carry(Operation::MadHigh, GOES_ON, [*a, b, acc[1]]));
        }
    }

    /// `pairs` of these products, from nothing, and their carry to the word behind.
    fn mad_and_carry(&mut self, acc: &mut [Word], a: &[Word], b: Word, pairs: usize) {
        if pairs > 0 {
            self.mad(&mut acc[..2 * pairs], a, b, false);
            acc[2 * pairs] = self.plus(ENDS, acc[2 * pairs], ZERO);
        }
    }

    /// The mask of a borrow: all bits or none.
    fn borrow(&mut self) -> Word {
        self.minus(ENDS, ZERO, ZERO)
    }

    /// a if the condition holds for `test`, else b.
    fn select(&mut self, condition: Condition, test: Word, a: &[Word], b: &[Word]) -> Vec<Word> {
        a.iter().zip(b).map(|(a, b)| self.push(Instruction::Select(condition, [test, *a, *b]))).collect()
    }

    /// The text that puts these words into the limbs of `result`.
    fn render(&self, result: &str, outputs: &[Word]) -> String {
        let places: Vec<String> = (0..outputs.len()).map(|i| format!("{result}.l[{i}]")).collect();
        let mut text = "#if CARRY_MODEL\n".to_owned();
        let local = |word: Word| match word {
            Word::Input(i) => self.inputs[i].clone(),
            Word::Result(i) => format!("t{i}"),
            Word::Constant(value) => format!("{value:#x}u"),
        };
        for (i, instruction) in self.instructions.iter().enumerate() {
            let _ = writeln!(text, "    uint32_t t{i} = {};", instruction.call(local));
        }
        for (place, output) in places.iter().zip(outputs) {
            let _ = writeln!(text, "    {place} = {};", local(*output));
        }
        let register = |word: Word| match word {
            Word::Input(i) => format!("%{}", outputs.len() + i),
            Word::Result(i) => format!("t{i}"),
            Word::Constant(value) => format!("{value:#x}"),
        };
        let _ = write!(
            text,
            "#else\n    asm volatile(\n        \"{{.reg .u32 t<{}>; .reg .pred p;\"\n",
            self.instructions.len()
        );
        for (i, instruction) in self.instructions.iter().enumerate() {
            let _ = writeln!(text, "        \"{}\"", instruction.ptx(i, register));
        }
        for (i, output) in outputs.iter().enumerate() {
            let _ = writeln!(text, "        \"mov.u32 %{i},{};\"", register(*output));
        }
        let list = |constraint: &str, names: &[String]| {
            names.iter().map(|name| format!("\"{constraint}\"({name})")).collect::<Vec<_>>().join(", ")
        };
        text + &format!(
            "        \"}}\"\n        : {}\n        : {});\n#endif\n",
            list("=r", &places),
            list("r", &self.inputs)
        )
    }
}

impl Operation {
    fn name(self, flag: Flag) -> String {
        let (stem, half) = match self {
            Operation::Add => ("add", ""),
            Operation::Subtract => ("sub", ""),
            Operation::MadLow => ("mad", ".lo"),
            Operation::MadHigh => ("mad", ".hi"),
        };
        format!("{stem}{}{half}{}", if flag.reads { "c" } else { "" }, if flag.sets { ".cc" } else { "" })
    }

    fn operands(self) -> usize {
        match self {
            Operation::Add | Operation::Subtract => 2,
            Operation::MadLow | Operation::MadHigh => 3,
        }
    }
}

impl Instruction {
    /// As an expression of the host's model.
    fn call(&self, word: impl Fn(Word) -> String) -> String {
        match *self {
            Instruction::Carry(Operation::MadLow, ALONE, [a, b, c]) => {
                format!("{} * {} + {}", word(a), word(b), word(c))
            }
            Instruction::Carry(operation, flag, words) => {
                let words: Vec<String> = words.into_iter().take(operation.operands()).map(word).collect();
                format!("{}({})", operation.name(flag).replace('.', "_"), words.join(", "))
            }
            Instruction::Multiply([a, b]) => format!("{} * {}", word(a), word(b)),
            Instruction::And([a, b]) => format!("{} & {}", word(a), word(b)),
            Instruction::Double([a, b]) => format!("__funnelshift_l({}, {}, 1)", word(a), word(b)),
            Instruction::NotUnlessZero(a) => format!("{0} == 0 ? 0 : ~{0}", word(a)),
            Instruction::Select(Condition::NotZero, [a, b, c]) => {
                format!("{} != 0 ? {} : {}", word(a), word(b), word(c))
            }
            Instruction::Select(Condition::Negative, [a, b, c]) => {
                format!("(int32_t){} < 0 ? {} : {}", word(a), word(b), word(c))
            }
        }
    }

    /// As PTX whose result goes to register number `to`.
    fn ptx(&self, to: usize, word: impl Fn(Word) -> String) -> String {
        match *self {
            Instruction::Carry(operation, flag, words) => {
                let words: Vec<String> = words.into_iter().take(operation.operands()).map(word).collect();
                format!("{}.u32 t{to},{};", operation.name(flag), words.join(","))
            }
            Instruction::Multiply([a, b]) => format!("mul.lo.u32 t{to},{},{};", word(a), word(b)),
            Instruction::And([a, b]) => format!("and.b32 t{to},{},{};", word(a), word(b)),
            Instruction::Double([a, b]) => format!("shf.l.wrap.b32 t{to},{},{},1;", word(a), word(b)),
            Instruction::NotUnlessZero(a) => {
                format!("setp.eq.u32 p,{0},0; not.b32 t{to},{0}; selp.b32 t{to},0,t{to},p;", word(a))
            }
            Instruction::Select(condition, [a, b, c]) => {
                let test = match condition {
                    Condition::NotZero => "ne.u32",
                    Condition::Negative => "lt.s32",
                };
                format!("setp.{test} p,{},0; selp.b32 t{to},{},{},p;", word(a), word(b), word(c))
            }
        }
    }
}

/// A field, of which the methods that give a [`Chain`] are its functions.
struct Field {
    limbs: usize,
    /// Limbs of an accumulator: an even number.
    row: usize,
    constants: Constants,
}

/// The sums and products of a field of two limbs or more, for `F_PTX`, and those on values in [0, 2p) if `lazy`, for `F_LAZY`.
pub(super) fn cuda(constants: &Constants, lazy: bool) -> String {
    let field = Field::new(constants);
    let mut text = format!("#if F_PTX\n{}", FUNCTIONS.map(|function| function.render(&field)).concat());
    if lazy {
        text += "// A sum of products that is not reduced: fewer than 2^32 of them.\nstruct FSum {\n    uint32_t l[2 * F_LIMBS + 1];\n};\n";
        text += &LAZY_FUNCTIONS.map(|function| function.render(&field)).concat();
        if field.has_mul_add() {
            text += &MUL_ADD.render(&field);
        }
    }
    text + "#endif // F_PTX\n"
}

/// Highest limbs of p below which 8p fits the limbs, so that two products can be added before they are reduced.
const MUL_ADD_TOP: u32 = 1 << 29;

/// A function of C++, and its instructions with what it gives.
struct Function {
    comment: &'static str,
    head: &'static str,
    /// What has the words that it gives.
    result: &'static str,
    chain: fn(&Field) -> (Chain, Vec<Word>),
}

const FUNCTIONS: [Function; 4] = [
    Function {
        comment: "a - p if that is not negative, else a; a < 2p.",
        head: "F f_reduce(const F& a)",
        result: "r",
        chain: Field::reduce,
    },
    Function { comment: "a + b.", head: "F f_add(const F& a, const F& b)", result: "r", chain: Field::add },
    Function { comment: "a - b.", head: "F f_sub(const F& a, const F& b)", result: "r", chain: Field::sub },
    Function {
        comment: "a * b / R in [0, 2p) for a in [0, p) and any b of F_LIMBS limbs: with both up to 2p, the accumulators could overflow.",
        head: "F f_mul_lazy(const F& a, const F& b)",
        result: "r",
        chain: Field::mul,
    },
];

const LAZY_FUNCTIONS: [Function; 6] = [
    Function {
        comment: "a + b mod 2p for a, b in [0, 2p), of which the sum may carry out of the limbs.",
        head: "F f_add_lazy(const F& a, const F& b)",
        result: "r",
        chain: Field::add_lazy,
    },
    Function {
        comment: "a - b mod 2p for a, b in [0, 2p).",
        head: "F f_sub_lazy(const F& a, const F& b)",
        result: "r",
        chain: Field::sub_lazy,
    },
    Function {
        comment: "a^2 / R in [0, 2p) for a in [0, p).",
        head: "F f_square_lazy(const F& a)",
        result: "r",
        chain: Field::square,
    },
    Function {
        comment: "a * w mod p in [0, 2p) for a in [0, 2p), with w in [0, p) and quotient = floor(2^(32 F_LIMBS) w / p) known.",
        head: "F f_mul_shoup(const F& a, const F& w, const F& quotient)",
        result: "r",
        chain: Field::mul_shoup,
    },
    Function {
        comment: "sum += a * b.",
        head: "void f_mac(FSum& sum, const F& a, const F& b)",
        result: "sum",
        chain: Field::mac,
    },
    Function {
        comment: "sum / (2^32 R) in [0, 2p).",
        head: "F f_sum_redc(const FSum& sum)",
        result: "r",
        chain: Field::sum_redc,
    },
];

const MUL_ADD: Function = Function {
    comment: "(a * b + c * d) / R in [0, 2p) for values up to 2p.",
    head: "F f_mul_add_lazy(const F& a, const F& b, const F& c, const F& d)",
    result: "r",
    chain: Field::mul_add,
};

impl Function {
    fn render(&self, field: &Field) -> String {
        let (chain, words) = (self.chain)(field);
        let gives = self.head.starts_with("F ");
        let (local, give) = if gives { ("    F r;\n", "    return r;\n") } else { ("", "") };
        let body = chain.render(self.result, &words);
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

    /// −1/p mod 2^32 in constant memory: as an immediate 0xffffffff it makes the assembler negate operands, which breaks the
    /// pairs (53 against 60 G multiplications/s on an H200 for a modulus with this value).
    fn n0(&self, chain: &mut Chain) -> Word {
        chain.input("f_n0".into())
    }

    /// With zeros up to the length of an accumulator.
    fn padded(&self, mut words: Vec<Word>) -> Vec<Word> {
        words.resize(self.row, ZERO);
        words
    }

    /// s − p if that is not negative, else s; s < 2p.
    fn reduced(&self, chain: &mut Chain, sum: &[Word]) -> Vec<Word> {
        let mut less = sum.to_vec();
        chain.subtract(&mut less, &self.modulus());
        let negative = chain.borrow();
        chain.select(Condition::NotZero, negative, sum, &less)
    }

    fn reduce(&self) -> (Chain, Vec<Word>) {
        let mut chain = Chain::default();
        let a = chain.limbs("a", self.limbs);
        let result = self.reduced(&mut chain, &a);
        (chain, result)
    }

    fn add(&self) -> (Chain, Vec<Word>) {
        let mut chain = Chain::default();
        let (mut sum, b) = (chain.limbs("a", self.limbs), chain.limbs("b", self.limbs));
        chain.add(&mut sum, &b, false);
        let result = self.reduced(&mut chain, &sum);
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

    /// even + 2^32 odd += m p, with the m that makes the lowest limb zero, on from the carry flag or not. The lowest word of `even`
    /// is left as it is: it is not needed again.
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

    /// The sum of two accumulators that have changed roles for each limb: the one whose lowest word is zero stands one column below
    /// the other.
    fn joined(&self, chain: &mut Chain, even: &[Word], odd: &[Word]) -> Vec<Word> {
        let mut sum = even[..self.limbs].to_vec();
        let shifted = self.padded(odd[1..].to_vec());
        chain.add(&mut sum, &shifted[..self.limbs], false);
        sum
    }

    /// Σ a b / R of some products, of which sums must fit.
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
        let result = self.products(&mut chain, &factors, n0);
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

    /// With B = 2^(32 limbs) and q = ⌊a quotient / B⌋, a w − q p is below (1 + a / B) p (Shoup). Products of limbs below column
    /// limbs − 2 are left out of q, which makes it one less only where the fraction that q cuts off is below limbs / 2^32: then
    /// a w − q p is below (1 + a / B + limbs / 2^32) p, still under 2p as `F_LAZY` requires. a w − q p = a w + q (B − p) mod B
    /// takes low halves of products only; rows of B − p that are zero are skipped.
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
        // odd[i] stands in column i + 1.
        let (mut even, mut odd) = (vec![ZERO; 2 * limbs + 2], vec![ZERO; 2 * limbs + 2]);
        for (j, b) in b.into_iter().enumerate() {
            let parity = j % 2;
            chain.mad_and_carry(&mut even[j + parity..], &a[parity..], b, limbs / 2);
            chain.mad_and_carry(&mut odd[j - parity..], &a[1 - parity..], b, limbs / 2);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceField, DevicePrimeField, source::has_room};

    /// Of two limbs and of three, for which nothing is lazy; the latter's lowest limbs are 1 and 2^32 - 1.
    #[derive(ark_ff::MontConfig)]
    #[modulus = "2305843009213693951"]
    #[generator = "37"]
    struct ShortConfig;
    type Short = ark_ff::Fp64<ark_ff::MontBackend<ShortConfig, 1>>;

    #[derive(ark_ff::MontConfig)]
    #[modulus = "19807041145074918457958465537"]
    #[generator = "3"]
    struct OddConfig;
    type Odd = ark_ff::Fp128<ark_ff::MontBackend<OddConfig, 2>>;

    /// Numbers of 4, 5, 6 and 24 limbs whose arithmetic is that of primes.
    #[derive(ark_ff::MontConfig)]
    #[modulus = "42535295865117307932921825924676059137"]
    #[generator = "5"]
    struct OnesConfig;
    type Ones = ark_ff::Fp<ark_ff::MontBackend<OnesConfig, 2>, 2>;

    #[derive(ark_ff::MontConfig)]
    #[modulus = "170141182192818631503457902219180900351"]
    #[generator = "5"]
    struct MostConfig;
    type Most = ark_ff::Fp<ark_ff::MontBackend<MostConfig, 2>, 2>;

    #[derive(ark_ff::MontConfig)]
    #[modulus = "730750818665451459101842416358141509827966271487"]
    #[generator = "5"]
    struct FiveConfig;
    type Five = ark_ff::Fp<ark_ff::MontBackend<FiveConfig, 3>, 3>;

    #[derive(ark_ff::MontConfig)]
    #[modulus = "3138550842847812547292545102141191051874366388081164025857"]
    #[generator = "5"]
    struct OneConfig;
    type One = ark_ff::Fp<ark_ff::MontBackend<OneConfig, 3>, 3>;

    #[derive(ark_ff::MontConfig)]
    #[modulus = "776259040005300093425408470869990436991172777905802193380493325301942874785966668299471268619141586889623391939891781278819813468061113215570764935485211049054632760417012657708742364449751832668508623269962220167949229420483444737"]
    #[generator = "5"]
    struct LongConfig;
    type Long = ark_ff::Fp<ark_ff::MontBackend<LongConfig, 12>, 12>;

    #[derive(ark_ff::MontConfig)]
    #[modulus = "41898788091882009380975123841123919394421604259408409915337958554652890185087600553291488263229197334898399038434764329902956731266666262160683698565070132498240000737261197856216877587801825101054520229702552223900505521258495"]
    #[generator = "5"]
    struct Full24Config;
    type Full24 = ark_ff::Fp<ark_ff::MontBackend<Full24Config, 12>, 12>;

    /// What the instructions give, one after the other as the processor does them.
    fn run(chain: &Chain, inputs: &[u32], outputs: &[Word]) -> Vec<u32> {
        assert_eq!(chain.inputs.len(), inputs.len());
        let (mut results, mut flag): (Vec<u32>, u64) = (Vec::new(), 0);
        for instruction in &chain.instructions {
            let word = |word: Word| match word {
                Word::Input(i) => inputs[i],
                Word::Result(i) => results[i],
                Word::Constant(value) => value,
            };
            let result = match *instruction {
                Instruction::Carry(operation, Flag { reads, sets }, words) => {
                    let [a, b, c] = words.map(|w| u64::from(word(w)));
                    let carry = if reads { flag } else { 0 };
                    let wide = match operation {
                        Operation::Add => a + b + carry,
                        Operation::Subtract => a.wrapping_sub(b).wrapping_sub(carry),
                        Operation::MadLow => u64::from((a * b) as u32) + c + carry,
                        Operation::MadHigh => ((a * b) >> 32) + c + carry,
                    };
                    if sets {
                        flag = wide >> 32 & 1;
                    }
                    wide as u32
                }
                Instruction::Multiply([a, b]) => word(a).wrapping_mul(word(b)),
                Instruction::And([a, b]) => word(a) & word(b),
                Instruction::Double([a, b]) => word(b) << 1 | word(a) >> 31,
                Instruction::NotUnlessZero(a) => {
                    if word(a) == 0 {
                        0
                    } else {
                        !word(a)
                    }
                }
                Instruction::Select(condition, [a, b, c]) => {
                    let holds = match condition {
                        Condition::NotZero => word(a) != 0,
                        Condition::Negative => (word(a) as i32) < 0,
                    };
                    word(if holds { b } else { c })
                }
            };
            results.push(result);
        }
        let word = |word: &Word| match *word {
            Word::Input(i) => inputs[i],
            Word::Result(i) => results[i],
            Word::Constant(value) => value,
        };
        outputs.iter().map(word).collect()
    }

    fn limbs<F: DeviceField>(x: F) -> Vec<u32> {
        let mut limbs = vec![0; F::LIMBS];
        x.store(&mut limbs);
        limbs
    }

    /// x + p as limbs, which must hold it.
    fn more(x: &[u32], p: &[u32]) -> Vec<u32> {
        let mut carry = 0;
        let sum = x.iter().zip(p).map(|(x, p)| {
            let wide = u64::from(*x) + u64::from(*p) + carry;
            carry = wide >> 32;
            wide as u32
        });
        sum.collect()
    }

    /// Whether limbs are an element or that and p.
    fn is<F: DeviceField>(limbs_of: &[u32], x: F, p: &[u32]) -> bool {
        limbs_of == limbs(x) || limbs_of == more(&limbs(x), p)
    }

    fn check<F: DevicePrimeField>() {
        let constants = Constants::of::<F>();
        let (field, p, n0) = (Field::new(&constants), &constants.modulus, [constants.n0]);
        let lazy = has_room(&constants);
        let rng = &mut ark_std::test_rng();
        let mut edges = vec![F::ZERO, F::ONE, -F::ONE];
        // The least and the greatest by their limbs.
        let mut least = vec![0; F::LIMBS];
        least[0] = 1;
        edges.extend([F::load(&least), -F::load(&least)]);
        let values: Vec<F> = edges.into_iter().chain((0..40).map(|_| F::rand(rng))).collect();
        for (i, &a) in values.iter().enumerate() {
            for &b in &values[i..] {
                let both = [limbs(a), limbs(b)].concat();
                let call = |function: fn(&Field) -> (Chain, Vec<Word>), inputs: &[u32]| {
                    let (chain, outputs) = function(&field);
                    run(&chain, inputs, &outputs)
                };
                assert_eq!(call(Field::add, &both), limbs(a + b));
                assert_eq!(call(Field::sub, &both), limbs(a - b));
                assert_eq!(call(Field::reduce, &more(&limbs(a), p)), limbs(a));
                assert_eq!(call(Field::reduce, &limbs(a)), limbs(a));
                assert!(is(&call(Field::mul, &[&both[..], &n0].concat()), a * b, p));
                if !lazy {
                    continue;
                }
                // Both with p on top of them.
                let above = [more(&limbs(a), p), more(&limbs(b), p)].concat();
                for inputs in [&both, &above] {
                    assert!(is(&call(Field::add_lazy, inputs), a + b, p));
                    assert!(is(&call(Field::sub_lazy, inputs), a - b, p));
                    if field.has_mul_add() {
                        let twice = [&inputs[..], inputs, &n0].concat();
                        assert!(is(&call(Field::mul_add, &twice), (a * b).double(), p));
                    }
                }
                assert!(is(&call(Field::square, &[&limbs(a)[..], &n0].concat()), a.square(), p));
                let known = &crate::shoup_constants([b])[F::LIMBS..];
                for factor in [limbs(a), more(&limbs(a), p)] {
                    assert!(is(&call(Field::mul_shoup, &[&factor[..], known].concat()), a * b, p));
                }
                let mut sum = vec![0; 2 * F::LIMBS + 1];
                for _ in 0..3 {
                    sum = call(Field::mac, &[&sum[..], &both].concat());
                }
                let reduced = call(Field::sum_redc, &[&sum[..], &n0].concat());
                assert!(is(&reduced, F::from(3u8) * a * b * F::from(1u64 << 32).inverse().unwrap_or_default(), p));
            }
        }
    }

    #[test]
    fn chains_are_the_arithmetic_of_fields_of_any_length() {
        check::<ark_bls12_381::Fr>();
        check::<ark_bls12_381::Fq>();
        check::<ark_bn254::Fq>();
        check::<ark_bn254::Fr>();
        check::<Short>();
        check::<Odd>();
        check::<Ones>();
        check::<Most>();
        check::<Five>();
        check::<One>();
        check::<Long>();
        check::<Full24>();
    }
}
