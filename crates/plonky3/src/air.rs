use std::{collections::HashMap, fmt};

use evariste_backend::author::Lazy;
use evariste_fri::{ConstraintProgram, ConstraintQuotients, Constraints, Selector, Term};
use p3_air::{
    Air, BaseEntry,
    symbolic::{
        AirLayout, BaseLeaf, SymbolicAirBuilder, SymbolicExpr, SymbolicExpression, get_all_symbolic_constraints,
    },
};

use crate::{
    pcs::ProverError,
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
            return refused("AIRs without constraints");
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
    fn term(&mut self, expression: &SymbolicExpression<P>) -> Result<Term, ProverError> {
        let mut todo = vec![expression];
        while let Some(&expression) = todo.last() {
            let key: *const SymbolicExpression<P> = expression;
            if self.terms.contains_key(&key) {
                todo.pop();
                continue;
            }
            let operands: [Option<&SymbolicExpression<P>>; 2] = match expression {
                SymbolicExpr::Leaf(_) => [None, None],
                SymbolicExpr::Neg { x, .. } => [Some(x), None],
                SymbolicExpr::Add { x, y, .. } | SymbolicExpr::Sub { x, y, .. } | SymbolicExpr::Mul { x, y, .. } => {
                    [Some(x), Some(y)]
                }
            };
            let known =
                operands.map(|operand| operand.map(|operand| self.terms.get(&std::ptr::from_ref(operand)).copied()));
            let [Some(x), y] = known else {
                let term = self.leaf(expression)?;
                self.terms.insert(key, term);
                continue;
            };
            let (Some(x), Some(y)) = (x, y.unwrap_or(x)) else {
                todo.extend(operands.iter().rev().flatten());
                continue;
            };
            let term = match expression {
                SymbolicExpr::Add { .. } => self.constraints.add(x, y),
                SymbolicExpr::Sub { .. } => self.constraints.sub(x, y),
                SymbolicExpr::Mul { .. } => self.constraints.mul(x, y),
                SymbolicExpr::Leaf(_) | SymbolicExpr::Neg { .. } => self.constraints.neg(x),
            };
            self.terms.insert(key, term);
        }
        // It is there: the loop ends behind it.
        self.terms
            .get(&std::ptr::from_ref(expression))
            .copied()
            .ok_or(ProverError::Unsupported { what: "such constraints" })
    }

    fn leaf(&mut self, expression: &SymbolicExpression<P>) -> Result<Term, ProverError> {
        let SymbolicExpr::Leaf(leaf) = expression else {
            return Err(ProverError::Unsupported { what: "such constraints" });
        };
        Ok(match leaf {
            BaseLeaf::Constant(value) => self.constraints.constant(to_device(*value)),
            BaseLeaf::IsFirstRow => self.constraints.selector(Selector::FirstRow),
            BaseLeaf::IsLastRow => self.constraints.selector(Selector::LastRow),
            BaseLeaf::IsTransition => self.constraints.selector(Selector::Transition),
            BaseLeaf::Variable(variable) => {
                let index = variable.index as u32;
                match variable.entry {
                    BaseEntry::Main { offset: 0 } => self.constraints.column(index),
                    BaseEntry::Main { offset: 1 } => self.constraints.next(index),
                    BaseEntry::Main { .. } => return Err(ProverError::Unsupported { what: "rows after the next one" }),
                    BaseEntry::Public => self.constraints.public(index),
                    BaseEntry::Preprocessed { .. } => {
                        return Err(ProverError::Unsupported { what: "preprocessed columns" });
                    }
                    BaseEntry::Periodic => return Err(ProverError::Unsupported { what: "periodic columns" }),
                }
            }
        })
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
