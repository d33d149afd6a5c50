//! What a round does with one pair of points, as a list of operations that every backend carries out.
//!
//! A pair is two points of the remaining cube that differ in the variable of the round. Each table has two elements for it, or
//! four where it is folded by the last challenge first. Between them it is a line, lo + X (hi − lo), and the round needs the sum
//! over all pairs of the expression of these lines at some X. At infinity that is the coefficient of X^degree, for which terms
//! of lower degree are left out.

use std::{collections::HashMap, ops::Range};

use evariste_field::{Expression, Step};

/// The X at which a round is evaluated, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Points {
    /// 0, or 1 where the launch says so.
    pub(crate) first: bool,
    /// 1.
    pub(crate) one: bool,
    /// Some from 2 on.
    pub(crate) middle: Range<u32>,
    /// Infinity.
    pub(crate) top: bool,
}

impl Points {
    /// 0 and 1, which the sum needs.
    pub(crate) const ENDS: Self = Self { first: true, one: true, middle: 2..2, top: false };

    /// How many.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first) + usize::from(self.one) + self.middle.len() + usize::from(self.top)
    }

    /// Each alone.
    pub(crate) fn each(&self) -> Vec<Self> {
        let none = Self { first: false, one: false, middle: 2..2, top: false };
        let ends = [(self.first, Self { first: true, ..none.clone() }), (self.one, Self { one: true, ..none.clone() })];
        let mut each: Vec<Self> = ends.into_iter().filter(|(wanted, _)| *wanted).map(|(_, point)| point).collect();
        each.extend(self.middle.clone().map(|x| Self { middle: x..x + 1, ..none.clone() }));
        each.extend(self.top.then_some(Self { top: true, ..none }));
        each
    }
}

/// A value by its number, where it is made, or by its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// An element of a table: part 0 or 1, and 2 or 3 where it is folded.
    Source {
        table: u32,
        part: u32,
    },
    /// One of the inputs, the first of which is the challenge.
    Input(u32),
    /// The weight of the pair.
    Weight,
    Add(u32, u32),
    Sub(u32, u32),
    Mul(u32, u32),
    Neg(u32),
    /// The first, or the second where the launch asks for 1 instead of 0.
    Select(u32, u32),
}

impl Op {
    fn operands(self) -> impl Iterator<Item = u32> {
        let (a, b) = match self {
            Op::Source { .. } | Op::Input(_) | Op::Weight => (None, None),
            Op::Neg(a) => (Some(a), None),
            Op::Add(a, b) | Op::Sub(a, b) | Op::Mul(a, b) | Op::Select(a, b) => (Some(a), Some(b)),
        };
        a.into_iter().chain(b)
    }

    fn renamed(self, to: impl Fn(u32) -> u32) -> Self {
        match self {
            Op::Source { .. } | Op::Input(_) | Op::Weight => self,
            Op::Neg(a) => Op::Neg(to(a)),
            Op::Add(a, b) => Op::Add(to(a), to(b)),
            Op::Sub(a, b) => Op::Sub(to(a), to(b)),
            Op::Mul(a, b) => Op::Mul(to(a), to(b)),
            Op::Select(a, b) => Op::Select(to(a), to(b)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Line {
    /// A slot gets a value.
    Set { slot: u32, op: Op },
    /// The folded element of a table, part 0 or 1.
    Store { table: u32, part: u32, slot: u32 },
    /// A term of the sum at a point.
    Sum { point: u32, slot: u32 },
}

/// What is done with a pair.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) lines: Vec<Line>,
    pub(crate) slots: usize,
    pub(crate) points: usize,
}

/// The first of the expression's constants among the inputs.
pub(crate) const FIRST_CONSTANT: usize = 1;

/// The integers of an expression, which follow its constants among the inputs, without repetition.
pub(crate) fn integers(steps: &[Step]) -> Vec<i64> {
    let integer = |step: &Step| if let Step::Integer(value) = step { Some(*value) } else { None };
    steps.iter().filter_map(integer).collect()
}

/// Whether a line is multiplied by its weight in the program, or by what adds it to its sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weighing {
    None,
    Product,
    Sum,
}

#[derive(Default)]
struct Builder {
    ops: Vec<Op>,
    known: HashMap<Op, u32>,
    /// A store or a sum behind so many operations.
    effects: Vec<(usize, Line)>,
}

impl Builder {
    fn push(&mut self, op: Op) -> u32 {
        if let Some(number) = self.known.get(&op) {
            return *number;
        }
        let number = self.ops.len() as u32;
        self.ops.push(op);
        self.known.insert(op, number);
        number
    }

    fn effect(&mut self, line: Line) {
        self.effects.push((self.ops.len(), line));
    }

    /// One end of a table's line, which is stored if it is folded.
    fn end(&mut self, fold: Fold, table: u32, part: u32) -> u32 {
        let Some(parts) = fold.parts(part) else { return self.push(Op::Source { table, part }) };
        let [a, b] = parts.map(|part| self.push(Op::Source { table, part }));
        let challenge = self.push(Op::Input(0));
        let difference = self.push(Op::Sub(b, a));
        let product = self.push(Op::Mul(difference, challenge));
        let folded = self.push(Op::Add(a, product));
        self.effect(Line::Store { table, part, slot: folded });
        folded
    }

    /// A term of the sum at a point.
    fn sum(&mut self, point: u32, value: u32, weighing: Weighing) {
        let slot = match weighing {
            Weighing::Product => {
                let weight = self.push(Op::Weight);
                self.push(Op::Mul(weight, value))
            }
            Weighing::None | Weighing::Sum => value,
        };
        self.effect(Line::Sum { point, slot });
    }

    /// The expression of these values of the columns.
    fn evaluate(&mut self, steps: &[Step], inputs: &HashMap<Step, u32>, columns: &[u32]) -> u32 {
        let mut numbers: Vec<u32> = Vec::with_capacity(steps.len());
        for step in steps {
            let at = |number: u32| numbers[number as usize];
            let number = match *step {
                Step::Column(index) => columns[index as usize],
                Step::Constant(_) | Step::Integer(_) => self.push(Op::Input(inputs[step])),
                Step::Add(a, b) => self.push(Op::Add(at(a), at(b))),
                Step::Sub(a, b) => self.push(Op::Sub(at(a), at(b))),
                Step::Mul(a, b) => self.push(Op::Mul(at(a), at(b))),
                Step::Neg(a) => self.push(Op::Neg(at(a))),
            };
            numbers.push(number);
        }
        numbers.last().copied().unwrap_or(0)
    }

    /// The steps in slots, which are used again when their value is not needed any more.
    fn finish(self, points: usize) -> Program {
        let mut last_use: Vec<usize> = (0..self.ops.len()).collect();
        for (number, op) in self.ops.iter().enumerate() {
            op.operands().for_each(|operand| last_use[operand as usize] = number);
        }
        for (behind, line) in &self.effects {
            if let Line::Store { slot, .. } | Line::Sum { slot, .. } = line {
                let last = &mut last_use[*slot as usize];
                // Until the operation after the effect.
                *last = (*last).max(*behind);
            }
        }
        let mut dying: Vec<Vec<u32>> = vec![Vec::new(); self.ops.len() + 1];
        let mut free: Vec<u32> = Vec::new();
        let (mut slots, mut slot_of) = (0, vec![0; self.ops.len()]);
        let mut lines = Vec::new();
        let mut effects = self.effects.into_iter().peekable();
        for number in 0..=self.ops.len() {
            while let Some((_, line)) = effects.next_if(|(behind, _)| *behind == number) {
                lines.push(match line {
                    Line::Store { table, part, slot } => Line::Store { table, part, slot: slot_of[slot as usize] },
                    Line::Sum { point, slot } => Line::Sum { point, slot: slot_of[slot as usize] },
                    set => set,
                });
            }
            let Some(op) = self.ops.get(number) else { break };
            let renamed = op.renamed(|operand| slot_of[operand as usize]);
            // Values of which this is the last use make room for the result.
            free.append(&mut dying[number]);
            let slot = free.pop().unwrap_or_else(|| {
                slots += 1;
                slots - 1
            });
            slot_of[number] = slot;
            // A value that nothing needs makes room for the next one.
            dying[last_use[number].max(number + 1).min(self.ops.len())].push(slot);
            lines.push(Line::Set { slot, op: renamed });
        }
        Program { lines, slots: slots as usize, points }
    }
}

/// Which of the inputs each constant and each integer of an expression is.
fn inputs_of(expression: &Expression, steps: &[Step]) -> HashMap<Step, u32> {
    let mut inputs = HashMap::new();
    let mut next_integer = (FIRST_CONSTANT + expression.constants()) as u32;
    for step in steps {
        match *step {
            Step::Constant(index) => {
                inputs.insert(*step, FIRST_CONSTANT as u32 + index);
            }
            Step::Integer(_) => {
                inputs.insert(*step, next_integer);
                next_integer += 1;
            }
            _ => {}
        }
    }
    inputs
}

/// A round at any number of points in parts, of which each stands once in a kernel's text: where the whole, which has the
/// expression once for each point, would take compilers long.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// Folds each table to both ends of its line, which it stores, if tables are folded.
    pub(crate) ends: Option<Program>,
    /// The value of the expression where columns are parts 0 of their tables.
    pub(crate) value: Program,
    /// The same of its homogeneous part of the highest degree, if a round needs it.
    pub(crate) top: Option<Program>,
}

impl Parts {
    pub(crate) fn new(expression: &Expression, tables: usize, fold: Fold, points: &Points, weighing: Weighing) -> Self {
        let steps = expression.steps();
        let inputs = inputs_of(expression, &steps);
        let value = |steps: &[Step]| {
            let mut builder = Builder::default();
            let columns: Vec<u32> =
                (0..tables as u32).map(|table| builder.push(Op::Source { table, part: 0 })).collect();
            let value = builder.evaluate(steps, &inputs, &columns);
            builder.sum(0, value, weighing);
            builder.finish(1)
        };
        let ends = (fold != Fold::No).then(|| {
            let mut builder = Builder::default();
            for table in 0..tables as u32 {
                for part in [0, 1] {
                    builder.end(fold, table, part);
                }
            }
            builder.finish(0)
        });
        Self { ends, value: value(&steps), top: points.top.then(|| value(&top_of(&steps))) }
    }
}

impl Program {
    /// Nothing.
    pub(crate) const NONE: Self = Self { lines: Vec::new(), slots: 0, points: 0 };

    /// For `tables` tables, folded first or not.
    pub(crate) fn new(expression: &Expression, tables: usize, fold: Fold, points: &Points, weighing: Weighing) -> Self {
        let steps = expression.steps();
        let inputs = inputs_of(expression, &steps);
        let mut builder = Builder::default();
        // Both ends of each table's line, and the way between them.
        let (mut low, mut high, mut way) = (Vec::new(), Vec::new(), Vec::new());
        for table in 0..tables as u32 {
            let [lo, hi] = [0, 1].map(|part| builder.end(fold, table, part));
            low.push(lo);
            high.push(hi);
            if points.top || !points.middle.is_empty() {
                way.push(builder.push(Op::Sub(hi, lo)));
            }
        }
        let mut sums = 0;
        let mut sum = |builder: &mut Builder, value: u32| {
            builder.sum(sums, value, weighing);
            sums += 1;
        };
        if points.first {
            let select = |builder: &mut Builder, (lo, hi): (&u32, &u32)| match points.one {
                // At both ends, 0 is 0.
                true => *lo,
                false => builder.push(Op::Select(*lo, *hi)),
            };
            let columns: Vec<u32> = low.iter().zip(&high).map(|ends| select(&mut builder, ends)).collect();
            let value = builder.evaluate(&steps, &inputs, &columns);
            sum(&mut builder, value);
        }
        if points.one {
            let value = builder.evaluate(&steps, &inputs, &high);
            sum(&mut builder, value);
        }
        let mut columns = high;
        for x in 2..points.middle.end {
            for (column, way) in columns.iter_mut().zip(&way) {
                *column = builder.push(Op::Add(*column, *way));
            }
            if !points.middle.contains(&x) {
                continue;
            }
            let value = builder.evaluate(&steps, &inputs, &columns);
            sum(&mut builder, value);
        }
        if points.top {
            let top = top_of(&steps);
            let value = builder.evaluate(&top, &inputs, &way);
            sum(&mut builder, value);
        }
        builder.finish(points.len())
    }

    pub(crate) fn multiplications(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line, Line::Set { op: Op::Mul(..), .. })).count()
    }
}

/// Whether tables are folded by the last challenge, and what belongs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fold {
    No,
    /// Parts are halves of halves.
    High,
    /// Parts are neighbours.
    Low,
}

impl Fold {
    /// The two parts of which this part is made.
    fn parts(self, part: u32) -> Option<[u32; 2]> {
        match self {
            Fold::No => None,
            Fold::High => Some([part, part + 2]),
            Fold::Low => Some([2 * part, 2 * part + 1]),
        }
    }

    /// Elements of a table that a pair is made of.
    pub(crate) fn count(self) -> usize {
        if self == Fold::No { 2 } else { 4 }
    }
}

/// The steps of the homogeneous part of the degree that the way in which the expression is built allows: with columns for
/// their lines' slopes, its value is the coefficient of X^degree.
fn top_of(steps: &[Step]) -> Vec<Step> {
    let mut degrees: Vec<u64> = Vec::with_capacity(steps.len());
    for step in steps {
        let of = |number: u32| degrees[number as usize];
        degrees.push(match *step {
            Step::Column(_) => 1,
            Step::Constant(_) | Step::Integer(_) => 0,
            Step::Add(a, b) | Step::Sub(a, b) => of(a).max(of(b)),
            Step::Mul(a, b) => of(a) + of(b),
            Step::Neg(a) => of(a),
        });
    }
    // What the top of a step is: that of another one, its negative, or its own operation.
    #[derive(Clone, Copy)]
    enum Top {
        Same(u32),
        Negative(u32),
        Own,
    }
    let of = |number: u32| degrees[number as usize];
    let tops: Vec<Top> = steps
        .iter()
        .map(|step| match *step {
            Step::Add(a, b) if of(a) < of(b) => Top::Same(b),
            Step::Add(a, b) | Step::Sub(a, b) if of(a) > of(b) => Top::Same(a),
            Step::Sub(a, b) if of(a) < of(b) => Top::Negative(b),
            _ => Top::Own,
        })
        .collect();
    // Backwards, what is needed.
    let mut needed = vec![false; steps.len()];
    if let Some(last) = needed.last_mut() {
        *last = true;
    }
    for (number, step) in steps.iter().enumerate().rev() {
        if !needed[number] {
            continue;
        }
        match tops[number] {
            Top::Same(a) | Top::Negative(a) => needed[a as usize] = true,
            Top::Own => operands(*step).for_each(|operand| needed[operand as usize] = true),
        }
    }
    let (mut kept, mut place) = (Vec::new(), vec![0; steps.len()]);
    for (number, step) in steps.iter().enumerate().filter(|(number, _)| needed[*number]) {
        let at = |operand: u32| place[operand as usize];
        let own = match (tops[number], *step) {
            (Top::Same(a), _) => {
                place[number] = at(a);
                continue;
            }
            (Top::Negative(a), _) | (Top::Own, Step::Neg(a)) => Step::Neg(at(a)),
            (Top::Own, Step::Add(a, b)) => Step::Add(at(a), at(b)),
            (Top::Own, Step::Sub(a, b)) => Step::Sub(at(a), at(b)),
            (Top::Own, Step::Mul(a, b)) => Step::Mul(at(a), at(b)),
            (Top::Own, leaf) => leaf,
        };
        place[number] = kept.len() as u32;
        kept.push(own);
    }
    // The result is the last step, which may stand for an earlier one.
    kept.truncate(place.last().map_or(0, |last| *last as usize + 1));
    kept
}

fn operands(step: Step) -> impl Iterator<Item = u32> {
    let (a, b) = match step {
        Step::Column(_) | Step::Constant(_) | Step::Integer(_) => (None, None),
        Step::Neg(a) => (Some(a), None),
        Step::Add(a, b) | Step::Sub(a, b) | Step::Mul(a, b) => (Some(a), Some(b)),
    };
    a.into_iter().chain(b)
}
