//! Programs: the computation for each element of a batch, as data that kernels walk through.
//!
//! A machine has an accumulator r, slots that hold elements, digits, a flag, a counter and a verdict. A step squares r
//! some times and multiplies it by an operand, or moves, adds, compares. So an exponentiation by a fixed exponent is a
//! list of steps made on the host, with sliding windows whose table lies in slots. Kernels have one multiplication in
//! their text, whatever the algorithm. All elements take the same steps, but for the few algorithms that search.

use evariste_field::{DevicePrimeField, source::iterations};

use crate::hash::Hash;

/// Where a slot is.
pub(crate) type Slot = u32;

/// What a step computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Slot(Slot),
    /// The slot given, or the next one if the flag is set.
    SlotByFlag(Slot),
    Constant(u32),
    /// The constant given, or the next one if the flag is set.
    ConstantByFlag(u32),
    /// The constant given, or one further by the counter.
    ConstantByCounter(u32),
    /// In a row of the table of powers, the element that a digit says.
    Table {
        row: u32,
        digit: u32,
    },
}

/// One step. The numbers of operations are those that the kernels know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// r = r^(2^times).
    Square(u32),
    /// r = r^(2^times) · operand.
    Multiply(u32, Operand),
    Load(Operand),
    Store(Slot),
    Add(Operand),
    Subtract(Operand),
    /// The flag says whether r equals the operand.
    Test(Operand),
    /// The verdict stays true only if r equals the operand.
    Check(Operand),
    /// The digit given becomes the logarithm of r in the smallest subgroup of the table.
    Digit(u32),
    /// Halves the number that the digits are, rounding down to a multiple of twice the generator's unit. The flag says
    /// whether it was odd.
    Halve,
    /// The flag becomes the parity of r, against what is wanted, unless an earlier one was not zero.
    Sign,
    /// r = −r if the flag is set.
    Negate,
    /// The verdict is 1 if r is 1, 0 if it is 0, and else 2^32 − 1.
    Symbol,
    /// Goes on at a step if the flag is as given.
    Jump(bool, u32),
    /// What is wanted becomes what the flag says, and the next sign is looked at anew.
    Want,
    /// The counter goes up by one, and the flag says whether it is still below the number.
    Next(u32),
}

impl Operand {
    /// Bits 4 to 7 of the first word, and the second word.
    fn encode(self) -> [u32; 2] {
        match self {
            Operand::Slot(at) => [0, at],
            Operand::SlotByFlag(at) => [2, at],
            Operand::Constant(at) => [1, at],
            Operand::ConstantByFlag(at) => [3, at],
            Operand::ConstantByCounter(at) => [5, at],
            Operand::Table { row, digit } => [9, row | digit << 16],
        }
    }
}

impl Step {
    /// Two words: operation, operand and times, then an index.
    fn encode(self) -> [u32; 2] {
        let with = |code: u32, times: u32, operand: Operand| {
            let [bits, index] = operand.encode();
            [code | bits << 4 | times << 8, index]
        };
        match self {
            Step::Square(times) => [times << 8, 0],
            Step::Multiply(times, operand) => with(1, times, operand),
            Step::Load(operand) => with(2, 0, operand),
            Step::Store(slot) => [3, slot],
            Step::Add(operand) => with(4, 0, operand),
            Step::Subtract(operand) => with(5, 0, operand),
            Step::Test(operand) => with(6, 0, operand),
            Step::Check(operand) => with(7, 0, operand),
            Step::Digit(digit) => [8, digit],
            Step::Halve => [9, 0],
            Step::Sign => [10, 0],
            Step::Negate => [11, 0],
            Step::Symbol => [12, 0],
            Step::Jump(flag, step) => [13 | u32::from(flag) << 8, step],
            Step::Next(limit) => [14, limit],
            Step::Want => [15, 0],
        }
    }

    /// Multiplications and squarings.
    fn products(self) -> u64 {
        match self {
            Step::Square(times) => times.into(),
            Step::Multiply(times, _) => u64::from(times) + 1,
            _ => 0,
        }
    }
}

/// What the lanes of a warp do together with one element before the steps, from slot 0 to slot 1
/// ([`Method::Warp`](crate::Method::Warp)): column 0 is a candidate y for the root and column k the power x^(2^(k −
/// 1)), where y² = a x; one lane has column k, and k + 32.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// How many columns there are: n.
    pub(crate) count: u32,
    /// (m − 1) / 2, the lowest digit first.
    pub(crate) exponent: Vec<bool>,
    /// Constants from here on are g^(−2^e), one for each e that lanes look at.
    pub(crate) inverses: u32,
}

impl Columns {
    /// Columns of one lane.
    pub(crate) fn each(&self) -> u32 {
        self.count.div_ceil(LANES)
    }

    /// Products in a row: of the power, of y and x, of the powers of x, and of all columns at once for each digit.
    fn products(&self) -> u64 {
        let beyond = (1..self.each()).map(|e| self.count - 1 - LANES * e).sum::<u32>();
        u64::from(self.exponent.len() as u32 + 2 + self.count.saturating_sub(2) + self.count - 1 + beyond)
    }
}

/// Threads that work on one element where there are [`Columns`].
pub(crate) const LANES: u32 = 32;

/// Steps with what they refer to.
#[derive(Clone, Debug)]
pub(crate) struct Program<B> {
    /// What comes before the steps.
    pub(crate) columns: Option<Columns>,
    pub(crate) steps: Vec<Step>,
    /// Constants, then the table of powers.
    pub(crate) constants: Vec<B>,
    /// Where the table begins.
    pub(crate) table: u32,
    pub(crate) hash: Hash,
    pub(crate) slots: u32,
    /// Digits of a logarithm, and their bits.
    pub(crate) digits: u32,
    pub(crate) width: u32,
    /// Bits of the lowest digit that are always zero.
    pub(crate) pad: u32,
    /// Products and iterations of loops, of searches that end at the first attempt.
    products: u64,
    iterations: u64,
    /// Products and iterations of one attempt of a search.
    attempt: [u64; 2],
    pub(crate) attempts: u32,
}

impl<B: DevicePrimeField> Program<B> {
    /// The steps as kernels read them, and behind them the digits of the exponent of [`Columns`].
    pub(crate) fn words(&self) -> Vec<u32> {
        let steps = self.steps.iter().flat_map(|step| step.encode());
        let exponent = self.columns.iter().flat_map(|columns| columns.exponent.chunks(32));
        let word = |digits: &[bool]| digits.iter().rev().fold(0, |word, digit| word << 1 | u32::from(*digit));
        steps.chain(exponent.map(word)).collect()
    }

    /// Threads that work on one element.
    pub(crate) fn lanes(&self) -> u32 {
        if self.columns.is_some() { LANES } else { 1 }
    }

    /// Multiplications and squarings for one element; where the steps search, those expected of two attempts.
    pub(crate) fn products(&self) -> u64 {
        self.products + if self.attempts > 1 { self.attempt[0] } else { 0 }
    }

    /// Whether what is done is not the same for all elements, or more than the steps.
    pub(crate) fn searches(&self) -> bool {
        self.columns.is_some() || self.steps.iter().any(|step| matches!(step, Step::Jump(..)))
    }

    /// Loop iterations that the loops of one thread take in WGSL, at most.
    pub(crate) fn iterations(&self) -> u64 {
        self.iterations + u64::from(self.attempts.max(1) - 1) * self.attempt[1]
    }
}

/// Writes programs.
#[derive(Debug)]
pub(crate) struct Builder<B> {
    columns: Option<Columns>,
    steps: Vec<Step>,
    constants: Vec<B>,
    table: Vec<B>,
    hash: Hash,
    slots: u32,
    digits: u32,
    width: u32,
    pad: u32,
    attempt: [u64; 2],
    attempts: u32,
    /// Products of steps that few elements take.
    seldom: u64,
}

/// Largest windows of an exponentiation: a table of 16 odd powers.
const MAX_WINDOW: usize = 5;

impl<B: DevicePrimeField> Builder<B> {
    /// An empty program whose first `inputs` slots hold its inputs.
    pub(crate) fn new(inputs: u32) -> Self {
        Self {
            columns: None,
            steps: Vec::new(),
            constants: Vec::new(),
            table: Vec::new(),
            hash: Hash::default(),
            slots: inputs,
            digits: 1,
            width: 1,
            pad: 0,
            attempt: [0; 2],
            attempts: 1,
            seldom: 0,
        }
    }

    pub(crate) fn push(&mut self, step: Step) -> &mut Self {
        self.steps.push(step);
        self
    }

    pub(crate) fn extend(&mut self, steps: impl IntoIterator<Item = Step>) -> &mut Self {
        self.steps.extend(steps);
        self
    }

    /// A slot of its own.
    pub(crate) fn slot(&mut self) -> Slot {
        self.slots(1)
    }

    /// Neighbouring slots of their own.
    pub(crate) fn slots(&mut self, count: u32) -> Slot {
        self.slots += count;
        self.slots - count
    }

    /// Steps so far.
    pub(crate) fn here(&self) -> u32 {
        self.steps.len() as u32
    }

    /// A step that jumps to where `land` is called with what this gives.
    pub(crate) fn jump(&mut self, flag: bool) -> usize {
        self.steps.push(Step::Jump(flag, 0));
        self.steps.len() - 1
    }

    /// Makes the jump `from` end here.
    pub(crate) fn land(&mut self, from: usize) {
        let here = self.here();
        if let Step::Jump(_, to) = &mut self.steps[from] {
            *to = here;
        }
    }

    pub(crate) fn constant(&mut self, x: B) -> Operand {
        let at = self.constants.iter().position(|y| *y == x).unwrap_or_else(|| {
            self.constants.push(x);
            self.constants.len() - 1
        });
        Operand::Constant(at as u32)
    }

    /// `unset`, or `set` where the flag is.
    pub(crate) fn by_flag(&mut self, unset: B, set: B) -> Operand {
        let at = self.constants.windows(2).position(|pair| *pair == [unset, set]).unwrap_or_else(|| {
            self.constants.extend([unset, set]);
            self.constants.len() - 2
        });
        Operand::ConstantByFlag(at as u32)
    }

    /// One of these for each value of the counter, and something for when it has come to its limit.
    pub(crate) fn by_counter(&mut self, all: impl IntoIterator<Item = B>) -> Operand {
        let at = self.constants.len() as u32;
        self.constants.extend(all);
        self.constants.push(B::ZERO);
        Operand::ConstantByCounter(at)
    }

    /// The table of powers that digits choose from, of rows of 2^`width`, and the logarithms in the first row's
    /// subgroup.
    pub(crate) fn set_table(&mut self, table: Vec<B>, hash: Hash, width: u32, pad: u32) {
        self.digits = (table.len() >> width) as u32;
        (self.table, self.hash, self.width, self.pad) = (table, hash, width, pad);
    }

    /// Leaves the products of the steps from number `start` on out of those that are expected: few elements take them.
    #[cfg(any(test, feature = "compare"))]
    pub(crate) fn seldom(&mut self, start: u32) {
        self.seldom += self.steps[start as usize..].iter().map(|step| step.products()).sum::<u64>();
    }

    /// Puts columns before the steps, with the inverses g^(−2^e) that their digits choose from.
    pub(crate) fn set_columns(&mut self, count: u32, exponent: &[bool], inverses: impl IntoIterator<Item = B>) {
        let at = self.constants.len() as u32;
        self.constants.extend(inverses);
        self.columns = Some(Columns { count, exponent: exponent.to_vec(), inverses: at });
    }

    /// Ends a search that starts over at step `start` while the flag is set, so often at most as `attempts` says.
    pub(crate) fn end_search(&mut self, start: u32, attempts: u32) {
        self.push(Step::Next(attempts)).push(Step::Jump(true, start));
        let steps = &self.steps[start as usize..];
        let products = steps.iter().map(|step| step.products()).sum::<u64>() - self.seldom;
        self.attempt = [products, self.iterations_of(steps)];
        self.attempts = attempts;
    }

    /// r = base^exponent for the binary digits of an exponent, the lowest first, by sliding windows. What is in slots
    /// from `table` on is overwritten.
    pub(crate) fn power(&mut self, base: Slot, exponent: &[bool], table: Slot) {
        let windows = (1..=MAX_WINDOW).map(|width| Windows::new(exponent, width));
        let Some(windows) = windows.min_by_key(Windows::products).filter(|windows| !windows.parts.is_empty()) else {
            let one = self.constant(B::ONE);
            self.push(Step::Load(one));
            return;
        };
        let odd = |value: usize| if value == 1 { base } else { table + (value / 2) as u32 };
        self.push(Step::Load(Operand::Slot(base)));
        if windows.largest > 1 {
            self.extend([Step::Square(1), Step::Store(table)]);
            let square = Operand::Slot(table);
            self.push(Step::Load(Operand::Slot(base)));
            for value in (3..=windows.largest).step_by(2) {
                self.extend([Step::Multiply(0, square), Step::Store(odd(value))]);
            }
        }
        for (i, (squarings, value)) in windows.parts.iter().enumerate() {
            let operand = Operand::Slot(odd(*value));
            self.push(if i == 0 { Step::Load(operand) } else { Step::Multiply(*squarings, operand) });
        }
        if windows.last > 0 {
            self.push(Step::Square(windows.last));
        }
        self.at_least(table + (windows.largest / 2) as u32 + 1);
    }

    /// Has at least `slots` slots.
    pub(crate) fn at_least(&mut self, slots: u32) {
        self.slots = self.slots.max(slots);
    }

    /// The program, whose first slots hold its results.
    pub(crate) fn finish(self) -> Program<B> {
        let before = self.columns.as_ref().map_or(0, Columns::products);
        let products = before + self.steps.iter().map(|step| step.products()).sum::<u64>() - self.seldom;
        let iterations = iterations::repeat(before, iterations::mul::<B>()) + self.iterations_of(&self.steps);
        let table = self.constants.len() as u32;
        let mut constants = self.constants;
        constants.extend(self.table);
        // Kernels bind no empty buffers.
        constants.resize(constants.len().max(1), B::ONE);
        Program {
            columns: self.columns,
            steps: self.steps,
            constants,
            table,
            hash: self.hash,
            slots: self.slots,
            digits: self.digits,
            width: self.width,
            pad: self.pad,
            products,
            iterations,
            attempt: self.attempt,
            attempts: self.attempts,
        }
    }

    fn iterations_of(&self, steps: &[Step]) -> u64 {
        let mul = iterations::mul::<B>();
        let each = |step: &Step| match step {
            Step::Square(_) | Step::Multiply(..) => iterations::repeat(step.products(), mul),
            Step::Halve => iterations::repeat(self.digits.into(), 0),
            _ => 0,
        };
        iterations::repeat(steps.len() as u64, 0) + steps.iter().map(each).sum::<u64>()
    }
}

/// An exponent cut into odd windows.
struct Windows {
    /// From the highest down: squarings, then an odd factor. The squarings of the first are not made.
    parts: Vec<(u32, usize)>,
    /// Squarings behind the last window.
    last: u32,
    largest: usize,
}

impl Windows {
    fn new(exponent: &[bool], width: usize) -> Self {
        let (mut parts, mut pending, mut largest) = (Vec::new(), 0, 0);
        let mut top = exponent.len();
        while top > 0 {
            if !exponent[top - 1] {
                pending += 1;
                top -= 1;
                continue;
            }
            let least = top.saturating_sub(width);
            let low = (least..top).find(|i| exponent[*i]).unwrap_or(top - 1);
            let value = (low..top).rev().fold(0, |value, i| value << 1 | usize::from(exponent[i]));
            largest = value.max(largest);
            parts.push((pending + (top - low) as u32, value));
            (pending, top) = (0, low);
        }
        Self { parts, last: pending, largest }
    }

    fn products(&self) -> u64 {
        let table = if self.largest > 1 { 1 + self.largest as u64 / 2 } else { 0 };
        let squarings: u64 = self.parts.iter().skip(1).map(|(squarings, _)| u64::from(*squarings)).sum();
        table + squarings + u64::from(self.last) + (self.parts.len() as u64).saturating_sub(1)
    }
}
