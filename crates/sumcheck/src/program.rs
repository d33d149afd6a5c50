//! The operations of a round on one pair of points, as a program that every backend carries out.
//!
//! A pair is two points of the remaining cube that differ in the variable of the round. Each table has two elements for
//! it, or four if it is folded by the last challenge first. Between them it is a line, lo + X (hi − lo). The round
//! needs the sum over all pairs of the expression of these lines at some X. At infinity that is the coefficient of
//! X^degree, which leaves out terms of lower degree.

use std::ops::Range;

use evariste_expression::{Constants, Expression, Op, Step};

/// The X at which a round is evaluated, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EvaluationPoints {
    /// 0, or 1 where the launch says so.
    pub(crate) zero: bool,
    /// 1.
    pub(crate) one: bool,
    /// Some from 2 on.
    pub(crate) integers: Range<u32>,
    /// Infinity.
    pub(crate) infinity: bool,
}

impl EvaluationPoints {
    /// 0 and 1, which the sum needs.
    pub(crate) const ENDS: Self = Self { zero: true, one: true, integers: 2..2, infinity: false };

    /// How many.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.zero) + usize::from(self.one) + self.integers.len() + usize::from(self.infinity)
    }

    /// Each alone.
    pub(crate) fn each(&self) -> Vec<Self> {
        let none = Self { zero: false, one: false, integers: 2..2, infinity: false };
        let ends = [(self.zero, Self { zero: true, ..none.clone() }), (self.one, Self { one: true, ..none.clone() })];
        let mut each: Vec<Self> = ends.into_iter().filter(|(wanted, _)| *wanted).map(|(_, point)| point).collect();
        each.extend(self.integers.clone().map(|x| Self { integers: x..x + 1, ..none.clone() }));
        each.extend(self.infinity.then_some(Self { infinity: true, ..none }));
        each
    }
}

/// A value that a round loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Leaf {
    /// An element of a table: part 0 or 1, and 2 or 3 where it is folded.
    Source { table: u32, part: u32 },
    /// An input. Input 0 is the challenge.
    Input(u32),
    /// The weight of the pair.
    Weight,
}

/// An effect with a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// Stores the folded element of a table, part 0 or 1.
    Store { table: u32, part: u32 },
    /// Adds a term to the sum at a point.
    Sum { point: u32 },
}

/// The operations for a pair.
pub(crate) type Program = evariste_expression::Program<Leaf, Effect>;

/// The first of the expression's constants among the inputs.
pub(crate) const FIRST_CONSTANT: usize = 1;

/// Where a term is multiplied by its weight: in the program, or where it is added to its sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weighing {
    None,
    Product,
    Sum,
}

/// A program while it is built, for an expression.
struct Builder<'a> {
    program: evariste_expression::Builder<Leaf, Effect>,
    constants: &'a Constants,
}

impl<'a> Builder<'a> {
    fn new(constants: &'a Constants) -> Self {
        Self { program: evariste_expression::Builder::default(), constants }
    }

    fn leaf(&mut self, leaf: Leaf) -> u32 {
        self.program.push(Op::Leaf(leaf))
    }

    /// One end of a table's line, which is stored if it is folded.
    fn end(&mut self, fold: Fold, table: u32, part: u32) -> u32 {
        let Some(parts) = fold.parts(part) else { return self.leaf(Leaf::Source { table, part }) };
        let [a, b] = parts.map(|part| self.leaf(Leaf::Source { table, part }));
        let challenge = self.leaf(Leaf::Input(0));
        let difference = self.program.push(Op::Sub(b, a));
        let product = self.program.push(Op::Mul(difference, challenge));
        let folded = self.program.push(Op::Add(a, product));
        self.program.effect(Effect::Store { table, part }, folded);
        folded
    }

    /// A term of the sum at a point.
    fn sum(&mut self, point: u32, value: u32, weighing: Weighing) {
        let term = match weighing {
            Weighing::Product => {
                let weight = self.leaf(Leaf::Weight);
                self.program.push(Op::Mul(weight, value))
            }
            Weighing::None | Weighing::Sum => value,
        };
        self.program.effect(Effect::Sum { point }, term);
    }

    /// The expression of these values of the columns.
    fn evaluate(&mut self, steps: &[Step], columns: &[u32]) -> u32 {
        let constants = self.constants;
        self.program.evaluate(steps, |program, step| match (step, constants.index(step)) {
            (Step::Column(index), _) => columns[index as usize],
            (_, Some(index)) => program.push(Op::Leaf(Leaf::Input(FIRST_CONSTANT as u32 + index))),
            (_, None) => unreachable!("every integer of an expression has a number"),
        })
    }
}

/// A round at any number of points in parts, each once in a kernel's text. The whole has the expression once for each
/// point, which would take compilers long.
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
    pub(crate) fn new(
        expression: &Expression,
        tables: usize,
        fold: Fold,
        points: &EvaluationPoints,
        weighing: Weighing,
    ) -> Self {
        let (steps, constants) = (expression.steps(), Constants::of(expression));
        let value = |steps: &[Step]| {
            let mut builder = Builder::new(&constants);
            let columns: Vec<u32> =
                (0..tables as u32).map(|table| builder.leaf(Leaf::Source { table, part: 0 })).collect();
            let value = builder.evaluate(steps, &columns);
            builder.sum(0, value, weighing);
            builder.program.finish()
        };
        let ends = (fold != Fold::No).then(|| {
            let mut builder = Builder::new(&constants);
            for table in 0..tables as u32 {
                for part in [0, 1] {
                    builder.end(fold, table, part);
                }
            }
            builder.program.finish()
        });
        Self { ends, value: value(steps), top: points.infinity.then(|| value(&top_of(steps))) }
    }
}

/// The program of a round of `tables` tables, folded first or not.
pub(crate) fn round(
    expression: &Expression,
    tables: usize,
    fold: Fold,
    points: &EvaluationPoints,
    weighing: Weighing,
) -> Program {
    let (steps, constants) = (expression.steps(), Constants::of(expression));
    let mut builder = Builder::new(&constants);
    // Both ends of each table's line, and the way between them.
    let (mut low, mut high, mut way) = (Vec::new(), Vec::new(), Vec::new());
    for table in 0..tables as u32 {
        let [lo, hi] = [0, 1].map(|part| builder.end(fold, table, part));
        low.push(lo);
        high.push(hi);
        if points.infinity || !points.integers.is_empty() {
            way.push(builder.program.push(Op::Sub(hi, lo)));
        }
    }
    let mut sums = 0;
    let mut sum = |builder: &mut Builder<'_>, value: u32| {
        builder.sum(sums, value, weighing);
        sums += 1;
    };
    if points.zero {
        let select = |builder: &mut Builder<'_>, (lo, hi): (&u32, &u32)| match points.one {
            // At both ends, 0 is 0.
            true => *lo,
            false => builder.program.push(Op::Select(*lo, *hi)),
        };
        let columns: Vec<u32> = low.iter().zip(&high).map(|ends| select(&mut builder, ends)).collect();
        let value = builder.evaluate(steps, &columns);
        sum(&mut builder, value);
    }
    if points.one {
        let value = builder.evaluate(steps, &high);
        sum(&mut builder, value);
    }
    let mut columns = high;
    for x in 2..points.integers.end {
        for (column, way) in columns.iter_mut().zip(&way) {
            *column = builder.program.push(Op::Add(*column, *way));
        }
        if !points.integers.contains(&x) {
            continue;
        }
        let value = builder.evaluate(steps, &columns);
        sum(&mut builder, value);
    }
    if points.infinity {
        let top = top_of(steps);
        let value = builder.evaluate(&top, &way);
        sum(&mut builder, value);
    }
    builder.program.finish()
}

/// Whether tables are bound to the last challenge, and which of their parts go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fold {
    No,
    /// Parts are halves of halves.
    High,
    /// Parts are neighbours.
    Low,
}

impl Fold {
    /// The two parts that this part is bound from.
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

/// The steps of the homogeneous part of the degree that the structure of the expression allows. With the slopes of the
/// lines as columns, its value is the coefficient of X^degree.
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
            Top::Own => step.operands().for_each(|operand| needed[operand as usize] = true),
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
