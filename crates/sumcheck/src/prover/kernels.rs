//! The kernels of a prover: those that proofs take, and those that were compiled.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, PoisonError},
};

use evariste_backend::author::{Kernel, KernelSpec};
use evariste_expression::Expression;
use evariste_field::DeviceField;

use super::{Sumcheck, messages::points};
use crate::{
    config::Strategy,
    error::{Error, Result},
    params::Params,
    program::{EvaluationPoints, Fold},
    round::{self, Kind, Source, TABLES, Target},
    statement::{Order, Statement, Weight},
    table::{Mle, is_below},
};

/// Kernels by what they are made for.
pub(super) type Kernels = HashMap<(Kind, Use), Arc<Kernel<Params>>>;

/// Which of the two kernels of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Use {
    Round,
    Finish,
}

impl<E: DeviceField, T: DeviceField> Sumcheck<E, T> {
    /// Lists the kernels of an expression, for tools that compile them ahead: without a weight, with one, and of a
    /// zero-check. Tables are in buffers of their own unless there are too many, and challenges are drawn on the
    /// device. The list is empty for an expression that [`Sumcheck::new`] refuses.
    #[doc(hidden)]
    pub fn kernels(expression: &Expression) -> Vec<KernelSpec> {
        let mut specs = Self::all_kernels(expression);
        let mut seen = HashSet::new();
        specs.retain(|spec| seen.insert((spec.name, spec.variant.clone())));
        specs
    }

    /// The same, some of them several times.
    pub(crate) fn all_kernels(expression: &Expression) -> Vec<KernelSpec> {
        let (Ok(_), Ok(_)) = (is_below::<E, T>(), Statement::<E>::new(1, expression)) else { return Vec::new() };
        let mut kinds = Vec::new();
        for (weighted, zero) in [(false, false), (true, false), (true, true)] {
            for order in [Order::MsbFirst, Order::LsbFirst] {
                kinds.extend(Self::kinds(expression, weighted, zero, order));
            }
        }
        let mut specs: Vec<KernelSpec> =
            kinds.iter().map(|(kind, finishes)| Self::spec(expression, kind, finishes.as_ref())).collect();
        specs.extend(Mle::<E, T>::kernels());
        specs
    }

    fn spec(expression: &Expression, kind: &Kind, finishes: Option<&EvaluationPoints>) -> KernelSpec {
        match finishes {
            Some(points) => round::finish_spec::<E, T>(expression.degree() as usize, kind, points),
            None => round::spec::<E, T>(expression, kind),
        }
    }

    /// The kinds of kernels of proofs whose challenges are drawn on the device. Tables are in buffers of their own
    /// unless there are too many. Kernels that finish a proof have the points of the round before.
    fn kinds(
        expression: &Expression,
        weighted: bool,
        zero: bool,
        order: Order,
    ) -> Vec<(Kind, Option<EvaluationPoints>)> {
        let below = is_below::<E, T>().unwrap_or(false);
        let (tables, degree) = (expression.columns(), expression.degree());
        let separate = match tables <= TABLES.len() {
            true => Source::Separate { below: if below { tables } else { 0 } },
            false => Source::Packed { below },
        };
        let packed = Source::Packed { below: false };
        let [first, then] = [zero, false].map(|zero| points(Strategy::ZeroCheck, degree, zero));
        let folding = if order == Order::MsbFirst { Fold::High } else { Fold::Low };
        let kind = |fold, source, target, points: &EvaluationPoints, drawn: Option<&EvaluationPoints>| Kind {
            tables,
            fold,
            high: order == Order::MsbFirst,
            source,
            target,
            points: points.clone(),
            weighted,
            drawn: drawn.cloned(),
            tail: false,
        };
        let start = kind(Fold::No, separate, Target::None, &first, None);
        let mut kinds = vec![start.clone(), kind(folding, separate, Target::Packed, &then, Some(&first))];
        let packed_target = if order == Order::MsbFirst { Target::InPlace } else { Target::Packed };
        let mut then_on = vec![kind(folding, packed, packed_target, &then, Some(&then))];
        if !below && order == Order::MsbFirst {
            let in_place = |drawn| kind(Fold::High, separate, Target::InPlace, &then, Some(drawn));
            kinds.push(in_place(&first));
            then_on.push(in_place(&then));
        }
        kinds.extend(then_on.into_iter().flat_map(|kind| kind.tail().into_iter().chain([kind])));
        if !zero {
            kinds.push(Kind { points: EvaluationPoints::ENDS, ..start.clone() });
        }
        kinds.retain(|kind| kind.points.len() > 0);
        let finishing = [(start, first), (kind(Fold::No, packed, Target::None, &then, None), then)];
        kinds.into_iter().map(|kind| (kind, None)).chain(finishing.map(|(kind, points)| (kind, Some(points)))).collect()
    }

    /// Compiles the kernels for proofs of a statement side by side, so that proofs of statements like it compile
    /// nothing. Their challenges are drawn where the configuration says. The caller keeps the tables or gives them
    /// away, each in a binding of its own. Strategies with the weight as a table, and transcripts on the host in spite
    /// of the configuration, still compile.
    ///
    /// # Errors
    /// [`Error::OtherExpression`] if the statement is about another expression than the prover's; [`Error::Device`] if
    /// a kernel does not compile, or if the device fails.
    pub fn prepare(&self, statement: &Statement<E>) -> Result<()> {
        if *statement.expression() != self.expression {
            return Err(Error::OtherExpression);
        }
        let weighted = *statement.weight_of() != Weight::None;
        let zero = self.is_zero_at_first(statement);
        let mut kinds = Self::kinds(&self.expression, weighted, zero, statement.binding_order());
        if !self.may_draw(statement) {
            kinds.retain(|(kind, finishes)| !kind.tail && finishes.is_none());
            kinds.iter_mut().for_each(|(kind, _)| kind.drawn = None);
        }
        let spec =
            |(kind, finishes): &(Kind, Option<EvaluationPoints>)| Self::spec(&self.expression, kind, finishes.as_ref());
        let specs: Vec<KernelSpec> = kinds.iter().map(spec).chain(Mle::<E, T>::kernels()).collect();
        let _prepared = self.device.prepare(&specs)?;
        for (kind, finishes) in kinds {
            match finishes {
                Some(points) => self.finish(self.expression.degree() as usize, kind, &points)?,
                None => self.kernel(&self.expression, kind)?,
            };
        }
        Ok(())
    }

    /// The kernel of a kind. That with the weight as a table has one table more, which tells it from the others.
    pub(super) fn kernel(&self, expression: &Expression, kind: Kind) -> Result<Arc<Kernel<Params>>> {
        // One pair of a round, or the last round alone.
        let least = Params { pairs: 1, chunks: 1, rounds: 1, ..Params::default() };
        self.kept((kind, Use::Round), |kind| round::spec::<E, T>(expression, kind), &least)
    }

    /// The kernel behind the last round, for tables where `kind` has them, after one that was evaluated at these
    /// points.
    pub(super) fn finish(&self, degree: usize, kind: Kind, previous: &EvaluationPoints) -> Result<Arc<Kernel<Params>>> {
        let kind = Kind { drawn: Some(previous.clone()), ..kind };
        self.kept((kind, Use::Finish), |kind| round::finish_spec::<E, T>(degree, kind, previous), &Params::default())
    }

    /// A kernel, unless one thread does not fit the device even with the smallest launch. Compilers would take minutes
    /// for a text that is too long for that.
    fn kept(
        &self,
        key: (Kind, Use),
        spec: impl FnOnce(&Kind) -> KernelSpec,
        least: &Params,
    ) -> Result<Arc<Kernel<Params>>> {
        let lock = || self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = lock().get(&key) {
            return Ok(Arc::clone(kernel));
        }
        let spec = spec(&key.0);
        spec.expect_fits(&self.device, least)?;
        let kernel = Arc::new(Kernel::new(&self.device, spec)?);
        // Where another thread was faster, this one's goes when the lock is free again.
        Ok(Arc::clone(lock().entry(key).or_insert_with(|| Arc::clone(&kernel))))
    }
}
