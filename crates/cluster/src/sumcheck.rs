//! Proofs about tables that are divided among all ranks.

use std::fmt;

use evariste_backend::{Buffer, Device, Error as DeviceError, author::Wiped};
use evariste_expression::Expression;
use evariste_field::{DeviceField, Mont};
use evariste_sumcheck::{Error as SumcheckError, ProverOutput, Statement, Sumcheck, SumcheckConfig, Transcript};

use crate::{
    cluster::{Cluster, Gathered},
    error::{Error, Result},
    ranks::Ranks,
};

/// A prover for statements about tables of which each of a power of two of ranks has an equal part. All ranks get the
/// proof, which is the one that one device makes.
///
/// Rank p has the rows in which the variables bound last spell p: of 2^k ranks, rows p mod 2^k if the highest variable is
/// bound first, and else a block.
pub struct ClusterSumcheck<'a, E, T, R> {
    cluster: &'a Cluster<R>,
    device: Device,
    plan: Sumcheck<E, T>,
}

impl<'a, E: DeviceField, T: DeviceField, R: Ranks> ClusterSumcheck<'a, E, T, R> {
    /// Makes a prover for `expression` on the device of this rank. The claim is not checked, whatever
    /// [`SumcheckConfig::check`] says: no rank has all of the tables.
    ///
    /// # Errors
    /// - [`Error::Disagree`] if ranks have different expressions, fields or configurations.
    /// - [`Error::Sumcheck`] on a rank that fails under the conditions of [`Sumcheck::with_config`]; [`Error::Failed`]
    ///   on the others.
    /// - [`Error::Timeout`] if a rank does not come.
    pub fn new(
        cluster: &'a Cluster<R>,
        device: &Device,
        expression: &Expression,
        config: SumcheckConfig,
    ) -> Result<Self> {
        let fields = [std::any::type_name::<E>(), std::any::type_name::<T>()];
        cluster.agree("expression", &format!("{fields:?} {:?} {config:?}", expression.digest()))?;
        let plan = cluster.together(Sumcheck::with_config(device, expression, config))?;
        Ok(Self { cluster, device: device.clone(), plan })
    }

    /// Proves that the weighted sum of a statement is `claim`, for the tables' rows of this rank. Give all ranks
    /// transcripts in the same state. After an error these may differ: take new ones.
    ///
    /// # Errors
    /// - [`Error::Disagree`] if ranks have different statements, claims or transcripts.
    /// - [`Error::Sumcheck`] on a rank that fails under the conditions of [`Sumcheck::prove_part`]; [`Error::Failed`] on
    ///   the others.
    /// - [`Error::Timeout`] if a rank does not come.
    pub fn prove(
        &self,
        statement: &Statement<E>,
        tables: &[&Buffer<Mont<T>>],
        claim: E,
        transcript: &mut dyn Transcript<E>,
    ) -> Result<ProverOutput<E>> {
        // The text of a statement leaves out what its expression is.
        let expression = statement.expression().digest();
        self.cluster.agree("statement", &format!("{statement:?} {expression:?} {claim}"))?;
        let places = [self.cluster.rank(), self.cluster.size()];
        // Messages of all rounds and of the end are equally long, so that a rank that fails need not know which one the
        // others wait for.
        let elements = statement.degree().max(statement.tables());
        let mut failed = None;
        let gather = |own: &[E]| {
            let all = self.cluster.gather_with(None, &encode(own, elements)).and_then(|all| decode(&all, own.len()));
            all.map_err(|error| {
                let reason = error.to_string();
                failed = Some(error);
                SumcheckError::Device(DeviceError::Driver { device: self.device.info().id, call: "gather", reason })
            })
        };
        let proved = self.plan.prove_part(statement, places, tables, claim, transcript, gather);
        match (failed, proved) {
            (Some(error), _) => Err(error),
            // Challenges that differ tell of transcripts that do.
            (None, Ok(output)) => {
                let digest = blake3::hash(format!("{:?}", output.point).as_bytes());
                let mut message = vec![0; 4 * E::LIMBS * elements];
                message.iter_mut().zip(digest.as_bytes()).for_each(|(byte, digest)| *byte = *digest);
                self.cluster.gather_with(None, &message)?.expect_same("transcript").map(|()| output)
            }
            // The others wait for a message of this rank. What they answer changes nothing.
            (None, Err(error)) => {
                let message = encode::<E>(&[], elements);
                _ = self.cluster.gather_with(Some(error.to_string()), &message);
                Err(error.into())
            }
        }
    }
}

/// Elements as words in the device's form, with zeros behind them.
fn encode<E: DeviceField>(own: &[E], elements: usize) -> Wiped<u8> {
    let mut words = Wiped::from(vec![0u32; elements * E::LIMBS]);
    own.iter().zip(words.chunks_exact_mut(E::LIMBS)).for_each(|(x, words)| x.store(words));
    let mut bytes = Wiped::with_capacity(4 * words.len());
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes
}

fn decode<E: DeviceField>(all: &Gathered, elements: usize) -> Result<Vec<Vec<E>>> {
    let of_rank = |(rank, bytes): (usize, &[u8])| {
        let mut words = Wiped::with_capacity(bytes.len() / 4);
        words.extend(
            bytes.chunks_exact(4).map(|bytes| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))),
        );
        let parts = || words.chunks_exact(E::LIMBS).take(elements);
        match parts().count() == elements && parts().all(E::is_stored) {
            true => Ok(parts().map(E::load).collect()),
            false => Err(Error::Undecodable { what: "message of a round", rank }),
        }
    };
    all.parts().enumerate().map(of_rank).collect()
}

impl<E, T, R> fmt::Debug for ClusterSumcheck<'_, E, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterSumcheck").field("plan", &self.plan).finish_non_exhaustive()
    }
}
