//! The device memory of a prover, before there is one.

use evariste_backend::{Device, Element as _};
use evariste_curve::AffinePoint;
use evariste_field::{DevicePrimeField, Mont, SparseMatrix};
use evariste_msm::{Msm, MsmCurve};
use evariste_ntt::{Ntt, NttConfig};

use crate::{
    curve::DevicePairing,
    error::Result,
    key::Key,
    matrix::Matrix,
    prover::{Prover, ProverConfig, Shape, sum_config},
};

/// Bytes of the points of a sum, and of a call.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    held: u64,
    call: u64,
}

impl<E: DevicePairing> Prover<E> {
    /// Returns the bytes of device memory that a prover of a key takes at most, with so many proofs under way at once:
    /// one in [`Prover::prove`], two in [`Prover::prove_many`]. Nothing is allocated, but the kernels of sorting are
    /// compiled.
    ///
    /// # Errors
    /// [`Error::Msm`](crate::Error::Msm) if the device has no room for a sum, [`Error::Ntt`](crate::Error::Ntt) if it
    /// has none for a transform.
    pub fn required_bytes(device: &Device, key: &Key<E>, config: ProverConfig, proofs: usize) -> Result<u64> {
        let shape = Shape::new(device, key, config);
        let all = sum::<E::G1Config>(device, key.variables(), shape.copies)?;
        let h = sum::<E::G1Config>(device, key.h_query.len(), shape.copies)?;
        let in_g1 = sum::<E::G1Config>(device, shape.in_b, shape.copies)?;
        let in_g2 = sum::<E::G2Config>(device, shape.in_b, shape.copies)?;
        let matrices = [&key.a, &key.b].map(matrix::<E::ScalarField>);
        let transforms = Ntt::<E::ScalarField>::required_bytes(device, key.log_domain, 3, NttConfig::default())?;
        let elements = (key.variables() + shape.in_b + 4 * key.domain_size()) as u64;
        let scalars = elements * Mont::<E::ScalarField>::BYTES as u64;
        let held = 2 * all.held + h.held + in_g1.held + in_g2.held + matrices.iter().sum::<u64>() + transforms;
        // The sum over H runs beside the others. These follow each other, and the digits of all variables stay.
        let proof = scalars + h.call + all.call.max(in_g1.call).max(in_g2.call) + all.call;
        Ok(held + proof * proofs as u64)
    }
}

fn sum<C: MsmCurve>(device: &Device, len: usize, copies: u64) -> Result<Bytes> {
    let all = Msm::<C>::required_bytes(device, len, 1, sum_config::<C>(len, copies, None))?;
    // Tables may have fewer points than there is room for. Calls then take what is left beside one point for each.
    let held = copies.saturating_mul((len * AffinePoint::<C>::BYTES) as u64).min(all);
    let alone = Msm::<C>::required_bytes(device, len, 1, sum_config::<C>(len, 1, None))?;
    let call = alone.saturating_sub((len * AffinePoint::<C>::BYTES) as u64);
    Ok(Bytes { held, call: call.max(all - held) })
}

fn matrix<F: DevicePrimeField>(matrix: &Matrix<F>) -> u64 {
    let entries = matrix.values().len();
    SparseMatrix::<F>::required_bytes(matrix.rows(), entries, entries)
}
