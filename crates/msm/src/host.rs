use ark_ec::short_weierstrass::{Affine, Projective};
use evariste_backend::Device;

use crate::{Error, Msm, MsmConfig, MsmCurve, Result, plan::Kernels};

/// Σ `scalars[i]` · `bases[i]` for points of order r on the host, on a device. Kernels are compiled once and kept with the
/// device, until [`Device::trim`]; the bases go to it each time.
///
/// Who uses the same bases again makes an [`Msm`], which keeps them there.
///
/// ```
/// # fn main() -> Result<(), evariste_msm::Error> {
/// use ark_bls12_381::{Fr, G1Affine};
/// use ark_ec::AffineRepr;
/// use evariste_backend::Device;
///
/// let g = G1Affine::generator();
/// let sum = evariste_msm::evaluate(&Device::best()?, &[g, g], &[Fr::from(5), -Fr::from(2)])?;
/// assert_eq!(sum, g * Fr::from(3));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Length`] unless there are as many scalars as bases, [`Error::TooLittle`], [`Error::Device`].
pub fn evaluate<C: MsmCurve>(
    device: &Device,
    bases: &[Affine<C>],
    scalars: &[C::ScalarField],
) -> Result<Projective<C>> {
    if scalars.len() != bases.len() {
        let (expected, actual) = (bases.len(), scalars.len());
        return Err(Error::Length { what: "scalars, as many as bases", expected, actual });
    }
    let kernels = device.cached_plan("", || Kernels::new(device))?;
    Msm::with_kernels(device, kernels, bases, MsmConfig::default())?.evaluate(scalars)
}
