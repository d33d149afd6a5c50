//! Instructions with carries, as one statement of PTX and as calls of the host's model of the carry flag.

use std::fmt::Write;

/// An operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Input(usize),
    /// The result of the instruction with this number.
    Result(usize),
    Constant(u32),
}

pub(super) const ZERO: Word = Word::Constant(0);

/// An instruction with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
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
pub(super) enum Operation {
    /// a + b.
    Add,
    /// a − b.
    Subtract,
    /// a b mod 2^32 + c.
    MadLow,
    /// ⌊a b / 2^32⌋ + c.
    MadHigh,
}

/// The use that an operation makes of the carry flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flag {
    pub(super) reads: bool,
    pub(super) sets: bool,
}

pub(super) const STARTS: Flag = Flag { reads: false, sets: true };
pub(super) const GOES_ON: Flag = Flag { reads: true, sets: true };
pub(super) const ENDS: Flag = Flag { reads: true, sets: false };
pub(super) const ALONE: Flag = Flag { reads: false, sets: false };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    NotZero,
    Negative,
}

/// Where a chain starts: anew, or from the carry flag.
pub(super) fn first(from_flag: bool) -> Flag {
    if from_flag { GOES_ON } else { STARTS }
}

/// The instructions of a function.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// The names of the inputs.
    pub(super) inputs: Vec<String>,
    pub(super) instructions: Vec<Instruction>,
}

impl Chain {
    /// The limbs of a number of this name.
    pub(super) fn limbs(&mut self, name: &str, count: usize) -> Vec<Word> {
        (0..count).map(|i| self.input(format!("{name}.l[{i}]"))).collect()
    }

    pub(super) fn input(&mut self, name: String) -> Word {
        self.inputs.push(name);
        Word::Input(self.inputs.len() - 1)
    }

    pub(super) fn push(&mut self, instruction: Instruction) -> Word {
        self.instructions.push(instruction);
        Word::Result(self.instructions.len() - 1)
    }

    pub(super) fn plus(&mut self, flag: Flag, a: Word, b: Word) -> Word {
        self.push(Instruction::Carry(Operation::Add, flag, [a, b, ZERO]))
    }

    pub(super) fn minus(&mut self, flag: Flag, a: Word, b: Word) -> Word {
        self.push(Instruction::Carry(Operation::Subtract, flag, [a, b, ZERO]))
    }

    /// r += b, on from the carry flag or not.
    pub(super) fn add(&mut self, r: &mut [Word], b: &[Word], from_flag: bool) {
        for (i, (r, b)) in r.iter_mut().zip(b).enumerate() {
            *r = self.plus(first(from_flag || i > 0), *r, *b);
        }
    }

    /// r −= b.
    pub(super) fn subtract(&mut self, r: &mut [Word], b: &[Word]) {
        for (i, (r, b)) in r.iter_mut().zip(b).enumerate() {
            *r = self.minus(first(i > 0), *r, *b);
        }
    }

    /// `acc` += the first, third and following limbs of a times b, on from the carry flag or not.
    pub(super) fn mad(&mut self, acc: &mut [Word], a: &[Word], b: Word, from_flag: bool) {
        for (j, (acc, a)) in acc.chunks_exact_mut(2).zip(a.iter().step_by(2)).enumerate() {
            let low = Instruction::Carry(Operation::MadLow, first(from_flag || j > 0), [*a, b, acc[0]]);
            acc[0] = self.push(low);
            acc[1] = self.push(Instruction::Carry(Operation::MadHigh, GOES_ON, [*a, b, acc[1]]));
        }
    }

    /// `pairs` of these products, from nothing, and their carry to the word behind.
    pub(super) fn mad_and_carry(&mut self, acc: &mut [Word], a: &[Word], b: Word, pairs: usize) {
        if pairs > 0 {
            self.mad(&mut acc[..2 * pairs], a, b, false);
            acc[2 * pairs] = self.plus(ENDS, acc[2 * pairs], ZERO);
        }
    }

    /// The mask of a borrow: all bits or none.
    pub(super) fn borrow(&mut self) -> Word {
        self.minus(ENDS, ZERO, ZERO)
    }

    /// a if the condition holds for `test`, else b.
    pub(super) fn select(&mut self, condition: Condition, test: Word, a: &[Word], b: &[Word]) -> Vec<Word> {
        a.iter().zip(b).map(|(a, b)| self.push(Instruction::Select(condition, [test, *a, *b]))).collect()
    }

    /// The text that puts these words into the limbs of `results`, the same number into each.
    pub(super) fn render(&self, results: &[&str], outputs: &[Word]) -> String {
        let limbs = outputs.len() / results.len().max(1);
        let places: Vec<String> =
            results.iter().flat_map(|result| (0..limbs).map(move |i| format!("{result}.l[{i}]"))).collect();
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
