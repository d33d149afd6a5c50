//! Transforms of elements that are divided among all ranks.

use std::fmt;

use ark_ff::FftField;
use evariste_backend::{Buffer, Device, Error as DeviceError};
use evariste_field::{DeviceField, Mont};
use evariste_ntt::{NttConfig, Order, Rows, ShardedNtt, ShardedTransform};

use crate::{
    cluster::Cluster,
    error::{Error, Result},
    ranks::Ranks,
};

/// One way of transforming. The default is in natural order on the subgroup, with cyclic coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way<F> {
    /// The order of the data before the transform.
    pub input: Order,
    /// The order of the data after the transform.
    pub output: Order,
    /// The generator of the coset of evaluation points.
    pub coset: F,
    /// Whether coefficients in natural order are block-cyclic and not cyclic, which spares a pass.
    pub block_cyclic: bool,
}

impl<F: FftField> Default for Way<F> {
    fn default() -> Self {
        Self { input: Order::Natural, output: Order::Natural, coset: F::ONE, block_cyclic: false }
    }
}

/// A plan for transforms of 2^`log_n` elements, of which each of a power of two of ranks has an equal part.
///
/// The method and the distributions are those of [`ShardedNtt`], with ranks for places: natural order is cyclic, and
/// bit-reversed order lies in blocks.
pub struct ClusterNtt<'a, F: DeviceField, R> {
    cluster: &'a Cluster<R>,
    log_n: u32,
    plan: ShardedNtt<F>,
}

impl<'a, F: DeviceField + FftField, R: Ranks> ClusterNtt<'a, F, R> {
    /// Makes a plan for 2^`log_n` elements, with tables on the device of this rank. Data takes the cluster's route if
    /// `device` is the one that the route was made for, and host memory else.
    ///
    /// # Errors
    /// - [`Error::Disagree`] if ranks have different fields, sizes or routes.
    /// - [`Error::Ntt`] on a rank that fails under the conditions of [`ShardedNtt::part`]; [`Error::Failed`] on the
    ///   others.
    /// - [`Error::Timeout`] if a rank does not come.
    pub fn new(cluster: &'a Cluster<R>, device: &Device, log_n: u32, config: NttConfig) -> Result<Self> {
        let (field, route) = (std::any::type_name::<F>(), cluster.route_of(device));
        cluster.agree("transform", &format!("{field} 2^{log_n} by {route:?}"))?;
        let plan = ShardedNtt::part(device, cluster.rank(), cluster.size(), log_n, config);
        Ok(Self { cluster, log_n, plan: cluster.together(plan)? })
    }

    /// Evaluates a polynomial in place, of which `part` has the coefficients of this rank.
    ///
    /// # Errors
    /// - [`Error::Disagree`] if ranks transform in different ways or directions, by plans of different sizes, or secret
    ///   data on one and public data on another.
    /// - [`Error::Ntt`] on a rank that fails under the conditions of [`ShardedTransform::forward_part`];
    ///   [`Error::Failed`] on the others. Their data may have changed then.
    /// - [`Error::Exchange`] if data does not pass between the devices, and [`Error::Mpi`] if it does not pass between
    ///   the processes.
    /// - [`Error::Timeout`] if a rank does not come.
    pub fn forward(&self, part: &mut Buffer<Mont<F>>, way: Way<F>) -> Result<()> {
        self.run("forward", part, way, |transform, part, exchange| transform.forward_part(part, exchange))
    }

    /// Interpolates in place: the inverse of [`ClusterNtt::forward`] with the orders exchanged.
    ///
    /// # Errors
    /// Fails under the conditions of [`ClusterNtt::forward`].
    pub fn inverse(&self, part: &mut Buffer<Mont<F>>, way: Way<F>) -> Result<()> {
        self.run("inverse", part, way, |transform, part, exchange| transform.inverse_part(part, exchange))
    }

    fn run(
        &self,
        direction: &str,
        part: &mut Buffer<Mont<F>>,
        way: Way<F>,
        steps: impl FnOnce(&ShardedTransform<'_, F>, &mut Buffer<Mont<F>>, Exchange<'_, F>) -> evariste_ntt::Result<()>,
    ) -> Result<()> {
        let (field, log_n, secrecy) = (std::any::type_name::<F>(), self.log_n, part.secrecy());
        self.cluster.agree("way of transforming", &format!("{direction} {field} 2^{log_n} {way:?} {secrecy:?}"))?;
        let transform = self.plan.coset(way.coset).input(way.input).output(way.output);
        let transform = if way.block_cyclic { transform.block_cyclic() } else { transform };
        // What went wrong between the ranks, for which the transform has no error.
        let (mut met, mut failed) = (false, None);
        let mut exchange = |from: &Buffer<Mont<F>>, to: &mut Buffer<Mont<F>>, rows: &Rows| {
            met = true;
            let own = self.cluster.exchange_rows(from, to, rows).map_err(|error| {
                let reason = error.to_string();
                failed = Some(error);
                DeviceError::Driver { device: from.device().info().id, call: "exchange", reason }
            })?;
            // The others hear of an error of this rank's at the end, as of any later one.
            Ok(own?)
        };
        let own = steps(&transform, part, Box::new(&mut exchange)).map_err(Error::from);
        if let Some(error) = failed {
            return Err(error);
        }
        match own {
            // The others wait for this rank's part.
            Err(error) if !met => self.cluster.together(Err(error)),
            own => self.cluster.together(own),
        }
    }
}

/// What exchanges rows between ranks.
type Exchange<'e, F> = Box<dyn FnOnce(&Buffer<Mont<F>>, &mut Buffer<Mont<F>>, &Rows) -> evariste_ntt::Result<()> + 'e>;

impl<F: DeviceField, R> fmt::Debug for ClusterNtt<'_, F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterNtt").field("plan", &self.plan).finish_non_exhaustive()
    }
}
