//! Constraints as instructions of one kernel, which serves all of them.
//!
//! An instruction is four words: an operation, a target and two operands. A thread carries them out for its row. Values
//! that later instructions need are in slots: the first ones in workgroup memory, the others in a buffer. Columns and
//! constants have no slots, and are loaded where they are used.

use std::{cmp::Reverse, collections::BinaryHeap, ops::Range};

use evariste_field::DevicePrimeField;

use super::{Constraints, Node, Selector};

/// The operations, in the lowest bits of an instruction's first word.
pub(crate) const ADD: u32 = 0;
pub(crate) const SUB: u32 = 1;
pub(crate) const MUL: u32 = 2;

/// In the first word as well: the result is multiplied by the weight that the target is the number of, and added to the
/// sum.
pub(crate) const WEIGH: u32 = 4;

/// What an operand is, in its highest bits.
pub(crate) const SLOT: u32 = 0;
pub(crate) const ROW: u32 = 1;
pub(crate) const NEXT: u32 = 2;
pub(crate) const INPUT: u32 = 3;
pub(crate) const SELECTOR: u32 = 4;

/// The bits of an operand below what it is.
pub(crate) const INDEX_BITS: u32 = 29;

/// Inputs before constants and public values: 0, the factors of selectors, and 1 / Z.
pub(crate) const FIRST_CONSTANT: usize = 4;

/// An instruction.
pub(crate) type Instruction = [u32; 4];

/// Instructions in parts that share no slots, and no more than the sum.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) parts: Vec<Range<usize>>,
    pub(crate) slots: usize,
}

/// What limits a part.
#[derive(Clone, Copy, Debug)]
struct Limits {
    instructions: usize,
    slots: usize,
}

/// Slots and instructions of some constraints, while they are found.
struct Lowering<'a, B> {
    constraints: &'a Constraints<B>,
    /// Slots that a value and all that it is computed from need, if nothing is shared.
    need: Vec<u32>,
    /// For each value in the last part that it was in: that part's number, uses that are left, and the slot.
    part: Vec<u32>,
    uses: Vec<u32>,
    slot: Vec<u32>,
    parts: u32,
}

/// A step of a part: a value that gets a slot, or a constraint.
#[derive(Clone, Copy)]
enum Item {
    Value(u32),
    Zero(usize),
}

impl<B: DevicePrimeField> Constraints<B> {
    /// The program of all constraints, in parts of so many instructions at most if one constraint has no more. With
    /// `shared` slots in workgroup memory, what they share is computed once, or once a part.
    pub(crate) fn program(&self, shared: usize, instructions: usize) -> Program {
        let mut lowering = Lowering::new(self);
        let whole = lowering.program(Limits { instructions, slots: usize::MAX });
        if whole.slots <= shared {
            return whole;
        }
        let parts = lowering.program(Limits { instructions, slots: shared });
        if parts.cost(shared) < whole.cost(shared) { parts } else { whole }
    }
}

impl Program {
    /// Instructions, where a slot outside of workgroup memory is one more.
    fn cost(&self, shared: usize) -> usize {
        let far = |operand: &u32| operand >> INDEX_BITS == SLOT && *operand as usize >= shared;
        let accesses = |instruction: &Instruction| {
            let [operation, target, a, b] = instruction;
            usize::from(operation & WEIGH == 0 && far(target)) + usize::from(far(a)) + usize::from(far(b))
        };
        self.instructions.len() + self.instructions.iter().map(accesses).sum::<usize>()
    }
}

impl<'a, B: DevicePrimeField> Lowering<'a, B> {
    fn new(constraints: &'a Constraints<B>) -> Self {
        let nodes = &constraints.nodes;
        let mut need: Vec<u32> = Vec::with_capacity(nodes.len());
        for node in nodes {
            need.push(node.operands().map_or(0, |operands| {
                let [a, b] = operands.map(|operand| need[operand as usize]);
                if a == b { a + 1 } else { a.max(b) }
            }));
        }
        let of_nodes = || vec![0; nodes.len()];
        Self { constraints, need, part: of_nodes(), uses: of_nodes(), slot: of_nodes(), parts: 0 }
    }

    /// As many constraints in a part as the limits allow, or one.
    fn program(&mut self, limits: Limits) -> Program {
        let (mut program, mut first, count) = (Program::default(), 0, self.constraints.zeros.len());
        while first < count {
            let fits = |lowering: &mut Self, len: usize| {
                let (instructions, slots) = lowering.part(first..first + len);
                let fits = instructions.len() <= limits.instructions && slots <= limits.slots;
                (fits || len == 1).then_some((instructions, slots))
            };
            // It doubles the step while the part fits, and then halves it.
            let (mut len, mut step, mut grows) = (0, 1, true);
            let mut found = (Vec::new(), 0);
            while step > 0 {
                let part = if len + step <= count - first { fits(self, len + step) } else { None };
                grows &= part.is_some();
                if let Some(part) = part {
                    found = part;
                    len += step;
                }
                step = if grows { 2 * step } else { step / 2 };
            }
            let (instructions, slots) = found;
            let start = program.instructions.len();
            program.instructions.extend(instructions);
            program.parts.push(start..program.instructions.len());
            program.slots = program.slots.max(slots);
            first += len;
        }
        program
    }

    /// The instructions of a part with these constraints, and the slots that it takes.
    fn part(&mut self, constraints: Range<usize>) -> (Vec<Instruction>, usize) {
        let items = self.items(constraints);
        let nodes = &self.constraints.nodes;
        let (mut instructions, mut free, mut slots) = (Vec::with_capacity(items.len()), BinaryHeap::new(), 0);
        for item in items {
            let (node, weight) = match item {
                Item::Value(number) => (number, None),
                Item::Zero(constraint) => (self.constraints.zeros[constraint], Some(constraint as u32)),
            };
            let computed = match (nodes[node as usize].operands(), weight) {
                (Some(operands), None) => Some(operands),
                // What nothing else needs has no slot.
                (Some(operands), Some(_)) if self.slot[node as usize] == u32::MAX => Some(operands),
                _ => None,
            };
            let (operation, operands) = match computed {
                None => (ADD, [self.operand(node), INPUT << INDEX_BITS]),
                Some(operands) => {
                    let operation = match nodes[node as usize] {
                        Node::Sub(..) => SUB,
                        Node::Mul(..) => MUL,
                        _ => ADD,
                    };
                    (operation, operands.map(|operand| self.operand(operand)))
                }
            };
            // Slots that nothing needs after this are free for the result.
            let used = computed.map_or([Some(node), None], |operands| operands.map(Some));
            for operand in used.into_iter().flatten() {
                let uses = &mut self.uses[operand as usize];
                *uses -= 1;
                if *uses == 0 && nodes[operand as usize].operands().is_some() {
                    free.push(Reverse(self.slot[operand as usize]));
                }
            }
            let (operation, target) = match weight {
                Some(weight) => (operation | WEIGH, weight),
                None => {
                    let Reverse(slot) = free.pop().unwrap_or_else(|| {
                        slots += 1;
                        Reverse(slots - 1)
                    });
                    self.slot[node as usize] = slot;
                    (operation, slot)
                }
            };
            instructions.push([operation, target, operands[0], operands[1]]);
        }
        (instructions, slots as usize)
    }

    /// The values of a part in order, each before what needs it, with their uses counted.
    fn items(&mut self, constraints: Range<usize>) -> Vec<Item> {
        self.parts += 1;
        let (nodes, part) = (&self.constraints.nodes, self.parts);
        let (mut items, mut todo) = (Vec::new(), Vec::new());
        for constraint in constraints {
            let zero = self.constraints.zeros[constraint];
            todo.push((zero, false));
            while let Some((number, ready)) = todo.pop() {
                let at = number as usize;
                let operands = nodes[at].operands();
                if ready {
                    items.push(Item::Value(number));
                    continue;
                }
                if self.part[at] != part {
                    (self.part[at], self.uses[at], self.slot[at]) = (part, 0, 0);
                    if let Some([a, b]) = operands {
                        // What needs more slots first.
                        let swapped = self.need[a as usize] < self.need[b as usize];
                        let [first, second] = if swapped { [b, a] } else { [a, b] };
                        todo.extend([(number, true), (second, false), (first, false)]);
                    }
                }
                self.uses[at] += 1;
            }
            items.push(Item::Zero(constraint));
        }
        // A value that a constraint alone needs is computed there.
        for place in 0..items.len().saturating_sub(1) {
            if let (Item::Value(number), Item::Zero(constraint)) = (items[place], items[place + 1])
                && self.constraints.zeros[constraint] == number
                && self.uses[number as usize] == 1
            {
                self.slot[number as usize] = u32::MAX;
            }
        }
        items.retain(|item| !matches!(item, Item::Value(number) if self.slot[*number as usize] == u32::MAX));
        items
    }

    fn operand(&self, number: u32) -> u32 {
        let (kind, index) = match self.constraints.nodes[number as usize] {
            Node::Column { index, next: false } => (ROW, index),
            Node::Column { index, next: true } => (NEXT, index),
            Node::Constant(index) => (INPUT, FIRST_CONSTANT as u32 + index),
            // Indices are bounded before.
            Node::Public(index) => (INPUT, (FIRST_CONSTANT + self.constraints.constants.len()) as u32 + index),
            Node::Selector(Selector::FirstRow) => (SELECTOR, 0),
            Node::Selector(Selector::LastRow) => (SELECTOR, 1),
            Node::Selector(Selector::Transition) => (SELECTOR, 2),
            Node::Add(..) | Node::Sub(..) | Node::Mul(..) => (SLOT, self.slot[number as usize]),
        };
        kind << INDEX_BITS | index
    }
}
