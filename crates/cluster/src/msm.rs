//! Sums over the bases of all ranks.

use std::fmt;

use ark_ec::{
    CurveGroup,
    short_weierstrass::{Affine, Projective},
};
use ark_ff::Zero;
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use evariste_backend::{Device, author::Wiped};
use evariste_msm::{Msm, MsmConfig, MsmCurve, Scalars};

use crate::{
    cluster::Cluster,
    error::{Error, Result},
    ranks::Ranks,
};

/// A plan for sums over bases of which each rank has some. Each rank adds up its own, and all get the sum of these.
pub struct ClusterMsm<'a, C: MsmCurve, R> {
    cluster: &'a Cluster<R>,
    plan: Msm<C>,
}

impl<'a, C: MsmCurve, R: Ranks> ClusterMsm<'a, C, R> {
    /// Makes a plan for the bases of this rank. Ranks may have different numbers of bases.
    ///
    /// # Errors
    /// - [`Error::Disagree`] if ranks have different curves.
    /// - [`Error::Msm`] on a rank that fails under the conditions of [`Msm::with_config`]; [`Error::Failed`] on the
    ///   others.
    /// - [`Error::Timeout`] if a rank does not come.
    pub fn new(cluster: &'a Cluster<R>, device: &Device, bases: &[Affine<C>], config: MsmConfig) -> Result<Self> {
        cluster.agree("curve", std::any::type_name::<C>())?;
        let plan = cluster.together(Msm::with_config(device, bases, config))?;
        Ok(Self { cluster, plan })
    }

    /// Computes Σ sᵢ·Pᵢ over the bases of all ranks, for the scalars of this rank. All ranks get the sum.
    ///
    /// # Errors
    /// - [`Error::Disagree`] if another rank calls something else.
    /// - [`Error::Msm`] on a rank that fails under the conditions of [`Msm::msm`]; [`Error::Failed`] on the others.
    /// - [`Error::Timeout`] if a rank does not come.
    pub fn msm<'s>(&self, scalars: impl Into<Scalars<'s, C::ScalarField>>) -> Result<Projective<C>> {
        self.cluster.agree("call", &format!("sum over {}", std::any::type_name::<C>()))?;
        let own = self.plan.msm(scalars);
        let point = own.as_ref().map_or_else(|_| Affine::<C>::default(), |sum| sum.into_affine());
        // The sum of a rank may depend on secrets, and tell more than that of all.
        let mut bytes = Wiped::with_capacity(point.uncompressed_size());
        // Writing to memory does not fail.
        let written = point.serialize_uncompressed(&mut *bytes).map_err(|error| error.to_string());
        let failure = own.as_ref().err().map(ToString::to_string).or(written.err());
        let all = self.cluster.gather_with(failure, &bytes);
        if let Err(error) = own {
            return Err(error.into());
        }
        let mut sum = Projective::zero();
        for (rank, bytes) in all?.parts().enumerate() {
            // Another rank of this program computed it: it is on the curve.
            let point = Affine::<C>::deserialize_uncompressed_unchecked(bytes);
            sum += point.map_err(|_| Error::Undecodable { what: "point", rank })?;
        }
        Ok(sum)
    }
}

impl<C: MsmCurve, R> fmt::Debug for ClusterMsm<'_, C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterMsm").field("plan", &self.plan).finish_non_exhaustive()
    }
}
