use std::{collections::HashMap, fmt, ptr};

use evariste_backend::author::Lazy;
use evariste_fri::{ConstraintProgram, ConstraintQuotients, Constraints, Selector, Term};
use p3_air::{
    Air, BaseEntry,
    symbolic::{
        AirLayout, BaseLeaf, SymbolicAirBuilder, SymbolicExpr, SymbolicExpression, get_all_symbolic_constraints,
    },
};

use crate::{
    error::ProverError,
    value::{DeviceValue, to_device},
};

/// The constraints of an AIR for devices, which proofs of any number of traces use: see [`prove_with`](crate::prove_with).
///
/// Plonky3 evaluates the AIR once, by `SymbolicAirBuilder`. Values that constraints share are computed once. The first
/// proof on a device makes a program there.
pub struct DeviceAir<P: DeviceValue> {
    constraints: Constraints<P::Device>,
    program: Lazy<ConstraintProgram<P::Extension>>,
    layout: AirLayout,
    /// log₂ of the chunks of quotients.
    log_chunks: usize,
}

impl<P: DeviceValue> DeviceAir<P> {
    /// Takes the constraints of an AIR.
    ///
    /// # Errors
    /// [`ProverError::Unsupported`] if the AIR has preprocessed or periodic columns, constraints over the extension, or
    /// no constraints.
    pub fn new<A: Air<SymbolicAirBuilder<P>>>(air: &A) -> Result<Self, ProverError> {
        let layout = AirLayout::from_air::<P>(air);
        let refused = |what| Err(ProverError::Unsupported { what });
        if layout.preprocessed_width > 0 {
            return refused("preprocessed columns");
        }
        if layout.num_periodic_columns > 0 {
            return refused("periodic columns");
        }
        let (base, extension) = get_all_symbolic_constraints::<P, P, A>(air, layout);
        if !extension.is_empty() {
            return refused("constraints over the extension");
        }
        if base.is_empty() {
            return refused("no constraints");
        }
        // As Plonky3 counts chunks, without periodic columns.
        let degree = base.iter().map(SymbolicExpression::degree_multiple).chain(air.max_constraint_degree()).max();
        let log_chunks = (degree.unwrap_or(0).max(2) - 1).next_power_of_two().ilog2() as usize;
        let mut translation = Translation { constraints: Constraints::default(), terms: HashMap::new() };
        for constraint in &base {
            let zero = translation.term(constraint)?;
            translation.constraints.assert_zero(zero);
        }
        Ok(Self { constraints: translation.constraints, program: Lazy::default(), layout, log_chunks })
    }

    /// log₂ of the chunks of quotients.
    pub(crate) fn log_chunks(&self) -> usize {
        self.log_chunks
    }

    /// How many columns and values of each kind there are.
    pub(crate) fn layout(&self) -> AirLayout {
        self.layout
    }

    /// The program, on the device of the first call.
    pub(crate) fn program(
        &self,
        plan: &ConstraintQuotients<P::Extension>,
    ) -> Result<&ConstraintProgram<P::Extension>, evariste_fri::Error> {
        self.program.get_or_make(|| plan.program(&self.constraints))
    }
}

/// Symbolic expressions as terms, once each. Those of the same address are not looked at again: all must stay where they
/// are.
struct Translation<P: DeviceValue> {
    constraints: Constraints<P::Device>,
    terms: HashMap<*const SymbolicExpression<P>, Term>,
}

impl<P: DeviceValue> Translation<P> {
    /// Without recursion: expressions may be deep.
    fn term(&mut self, whole: &SymbolicExpression<P>) -> Result<Term, ProverError> {
        // What must be known first.
        let mut todo = Vec::new();
        loop {
            let expression = todo.last().copied().unwrap_or(whole);
            if let Some(term) = self.known(expression) {
                if todo.pop().is_none() {
                    return Ok(term);
                }
                continue;
            }
            let term = match expression {
                SymbolicExpr::Leaf(leaf) => Some(self.leaf(leaf)?),
                SymbolicExpr::Neg { x, .. } => self.both(x, x, &mut todo).map(|(x, _)| self.constraints.neg(x)),
                SymbolicExpr::Add { x, y, .. } => self.both(x, y, &mut todo).map(|(x, y)| self.constraints.add(x, y)),
                SymbolicExpr::Sub { x, y, .. } => self.both(x, y, &mut todo).map(|(x, y)| self.constraints.sub(x, y)),
                SymbolicExpr::Mul { x, y, .. } => self.both(x, y, &mut todo).map(|(x, y)| self.constraints.mul(x, y)),
            };
            if let Some(term) = term {
                self.terms.insert(ptr::from_ref(expression), term);
            }
        }
    }

    fn known(&self, expression: &SymbolicExpression<P>) -> Option<Term> {
        self.terms.get(&ptr::from_ref(expression)).copied()
    }

    /// Both operands, or what is to do before they are known.
    fn both<'a>(
        &self,
        x: &'a SymbolicExpression<P>,
        y: &'a SymbolicExpression<P>,
        todo: &mut Vec<&'a SymbolicExpression<P>>,
    ) -> Option<(Term, Term)> {
        let known = self.known(x).zip(self.known(y));
        if known.is_none() {
            todo.extend([y, x]);
        }
        known
    }

    fn leaf(&mut self, leaf: &BaseLeaf<P>) -> Result<Term, ProverError> {
        let variable = match leaf {
            BaseLeaf::Constant(value) => return Ok(self.constraints.constant(to_device(*value))),
            BaseLeaf::IsFirstRow => return Ok(self.constraints.selector(Selector::FirstRow)),
            BaseLeaf::IsLastRow => return Ok(self.constraints.selector(Selector::LastRow)),
            BaseLeaf::IsTransition => return Ok(self.constraints.selector(Selector::Transition)),
            BaseLeaf::Variable(variable) => variable,
        };
        let index = variable.index as u32;
        let what = match variable.entry {
            BaseEntry::Main { offset: 0 } => return Ok(self.constraints.column(index)),
            BaseEntry::Main { offset: 1 } => return Ok(self.constraints.next(index)),
            BaseEntry::Public => return Ok(self.constraints.public(index)),
            BaseEntry::Main { .. } => "rows after the next one",
            BaseEntry::Preprocessed { .. } => "preprocessed columns",
            BaseEntry::Periodic => "periodic columns",
        };
        Err(ProverError::Unsupported { what })
    }
}

impl<P: DeviceValue> fmt::Debug for DeviceAir<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceAir")
            .field("constraints", &self.constraints.len())
            .field("chunks", &(1usize << self.log_chunks))
            .field("program", &self.program.get())
            .finish_non_exhaustive()
    }
}
